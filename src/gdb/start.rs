//! vsrun becomes gdb.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::mem::offset_of;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::fcntl::{fcntl, FcntlArg, FdFlag};
use serde_json::{json, Value};
use vsrun_model::arena::{Arena, ARENA_FD};

use super::names::{PATCHES, PROGRAM, STATES};
use crate::config::Debug;
use crate::explore::alone::{for_debugger, patches};
use crate::explore::Failure;
use crate::finding::BugKind;
use crate::report::shell_word;
use crate::runtime::session::PrivateDir;
use crate::runtime::LOOKED_AT_CALLS;
use crate::scenario::{Scenario, ScenarioStep};

/// The script.
static SCRIPT: &str = include_str!("script.py");

/// What gdb runs, which loads the script.
static LOADER: &str =
    "import os, sys\nsys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))\nimport vsrun_gdb\n";

/// `vsrun debug FILE`: this process becomes gdb. Returns only if it cannot.
///
/// # Errors
/// The scenario cannot be read, its program has changed or needs the supervisor; there is no gdb.
pub fn debug(args: &Debug) -> Result<i32, Failure> {
    let scenario = for_debugger(&args.file, args.trust)?;
    let file = args.file.canonicalize().map_err(|e| Failure::environment(format!("{}: {e}", args.file.display())))?;
    let dir = PrivateDir::create(false)?;
    let place = dir.shim().parent().map(Path::to_path_buf).unwrap_or_default();
    if let Some(patches) = patches(&scenario)? {
        fs::write(place.join(PATCHES), patches)?;
    }
    fs::write(place.join("facts.json"), facts(&scenario, &file, &place)?.to_string())?;
    // A module, so that its names are none of those of the user's own scripts.
    fs::write(place.join("vsrun_gdb.py"), SCRIPT)?;
    let script = place.join("vsrun.py");
    fs::write(&script, LOADER)?;
    // gdb has the pipe to the guard now: when it and the program are gone the directory is removed.
    if let Some(pipe) = dir.guard_pipe() {
        keep_open(pipe)?;
    }
    let mut gdb = Command::new("gdb");
    gdb.arg("-q").arg("-x").arg(script).arg(&scenario.program.exe).args(&args.gdb);
    // The program is started by way of a shell, which is to be one that has exec.
    let error = gdb.env("SHELL", "/bin/sh").exec();
    Err(Failure::environment(match error.kind() {
        io::ErrorKind::NotFound => "gdb is not installed (or not in PATH); it is needed with its Python".to_string(),
        _ => format!("gdb could not be started: {error}"),
    }))
}

fn keep_open(descriptor: i32) -> io::Result<()> {
    fcntl(descriptor, FcntlArg::F_SETFD(FdFlag::empty()))?;
    Ok(())
}

/// The crash that the scenario shows may be a write to vsrun's memory, which faults where that is guarded.
fn guards(scenario: &Scenario) -> bool {
    scenario.bug.kind == BugKind::Crash && !scenario.is_about_memory()
}

/// What the script is to know.
fn facts(scenario: &Scenario, file: &Path, place: &Path) -> io::Result<Value> {
    let vsrun = std::env::current_exe()?;
    let words: [&OsStr; 4] = [vsrun.as_os_str(), PROGRAM.as_ref(), file.as_os_str(), place.as_os_str()];
    let wrapper: Vec<String> = words.iter().map(|word| shell_word(word.as_bytes())).collect();
    let step = |step: &ScenarioStep| {
        let text = if step.text.is_empty() { step.op.name() } else { step.text.as_str() };
        json!({"thread": step.thread.to_string(), "text": text, "at": step.at})
    };
    Ok(json!({
        "program": scenario.program.exe.to_string_lossy(),
        "wrapper": wrapper.join(" "),
        "states": [vsrun.to_string_lossy(), STATES],
        "kind": scenario.bug.kind.name(),
        "summary": scenario.bug.summary,
        "people": scenario.people,
        "steps": scenario.steps.iter().map(step).collect::<Vec<_>>(),
        "all": scenario.then.is_none(),
        "memory": scenario.is_about_memory(),
        "guarded": if guards(scenario) { LOOKED_AT_CALLS } else { 0 },
        "arena": {
            "descriptor": ARENA_FD,
            "told_from": offset_of!(Arena, control.told_from),
            "guarded": offset_of!(Arena, control.guarded),
            "taken": offset_of!(Arena, taken),
        },
    }))
}
