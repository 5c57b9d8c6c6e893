//! Replays of scenarios: under the supervisor, compared step by step; or without, for debuggers.

use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use vsrun_model::End;

use crate::args::{Format, Replay};
use crate::explore::{self, examine, output_file, Failure, View};
use crate::report::mismatch::mismatch;
use crate::report::{self, Bug, BugKind};
use crate::runtime::inspect::{with_names, Inspector};
use crate::runtime::session::Input;
use crate::runtime::tracee;
use crate::runtime::worker::{Ending, Spec, Worker};
use crate::scenario::Scenario;
use crate::schedule::Schedule;

/// Reads a scenario and checks that the program is still the one it was written for.
fn load(path: &Path) -> Result<Scenario, Failure> {
    let scenario = Scenario::load(path).map_err(|e| Failure::environment(e.to_string()))?;
    let exe = PathBuf::from(&scenario.program.exe);
    let script = Some(PathBuf::from(&scenario.program.script)).filter(|s| !s.as_os_str().is_empty());
    let now = explore::identity_of(&exe, script.as_deref().unwrap_or(&exe), &scenario.options.with)
        .map_err(|f| Failure::environment(format!("the scenario's program cannot be read: {}", f.message)))?;
    if now != scenario.fingerprint {
        let same_exe = now.get(0) == scenario.fingerprint.get(0);
        let changed = script.filter(|_| same_exe).unwrap_or(exe);
        return Err(Failure::own(format!(
            "{} has changed since the scenario was written, so it cannot be replayed; explore it again",
            changed.display()
        )));
    }
    Ok(scenario)
}

fn spec_of(scenario: &Scenario) -> Spec {
    let options = &scenario.options;
    Spec {
        exe: PathBuf::from(&scenario.program.exe),
        argv: scenario.program.argv.clone(),
        env: scenario.program.env.clone(),
        cwd: PathBuf::from(&scenario.program.cwd),
        timeouts_any: options.timeouts_any,
        inject: options.inject,
        allow_misuse: options.allow_misuse,
        livelock: options.livelock,
        fail_on_exit: options.fail_on_exit,
        private_files: !options.real_files,
        with: options.with.clone(),
        stop_signal: options.stop_signal,
        divergence_timeout: Duration::from_millis(options.divergence_timeout_ms),
        max_depth: options.max_depth.unwrap_or(u64::MAX),
        objects: Arc::new(scenario.objects.clone()),
    }
}

fn schedule_of(scenario: &Scenario) -> Schedule {
    let prefix = scenario.prefix();
    match &scenario.then {
        Some(then) => then.schedule(prefix),
        None => Schedule { prefix, ..Schedule::default() },
    }
}

fn input_of(scenario: &Scenario) -> Result<Input, Failure> {
    match scenario.options.stdin.as_str() {
        "null" => Ok(Input::null()?),
        _ => Ok(Input::prepare(true)?),
    }
}

/// `vsrun replay FILE`: returns the exit code.
pub fn replay(args: &Replay) -> Result<i32, Failure> {
    let scenario = load(&args.file)?;
    if args.no_supervisor {
        return direct(&scenario, args);
    }
    let mut shown = output_file(args.output.as_deref())?;
    let mut worker = Worker::start(spec_of(&scenario), input_of(&scenario)?, None)?;
    let view = examine(&mut worker, &mut Inspector::default(), &schedule_of(&scenario))?;
    worker.output.copy_to(&mut shown)?;
    shown.flush()?;
    check(&scenario, &view, &worker)?;
    let kind = view.kind.unwrap_or(BugKind::Error);
    let transitions = view.trace.steps.len() as u64 + view.trace.unrecorded;
    let mut details = view.seen.details;
    details.steps = view.steps;
    let bug = Bug {
        kind,
        summary: view.summary,
        scenario: Some(args.file.clone()),
        execution: scenario.found.execution,
        transitions,
        details,
    };
    if args.format == Format::Json {
        let line = serde_json::json!({
            "vsrun": env!("CARGO_PKG_VERSION"), "replayed": true, "kind": bug.kind.name(), "summary": bug.summary,
            "scenario": args.file.to_string_lossy(), "transitions": transitions,
        });
        println!("{line}");
    } else {
        print!("{}", report::text::bug(&bug, report::colours_for(&std::io::stdout())));
    }
    Ok(1)
}

/// Says at which step a replay went another way, what was expected and what came.
fn check(scenario: &Scenario, view: &View, worker: &Worker) -> Result<(), Failure> {
    let world = &worker.arena.world;
    if view.trace.end == End::MISMATCH {
        let line = with_names(world, &view.seen.objects, |names| mismatch(&scenario.steps, world, names));
        return Err(Failure::own(line.unwrap_or_else(|| "the replay diverged".into())));
    }
    if view.kind != Some(scenario.bug.kind) {
        return Err(Failure::own(format!(
            "the replay diverged at its end, after step {}: expected {}; came: {}",
            view.trace.steps.len(),
            scenario.bug.summary,
            view.summary
        )));
    }
    if scenario.then.is_none() && view.trace.steps.len() != scenario.steps.len() {
        return Err(Failure::own(format!(
            "the replay diverged: {} steps were expected, {} came",
            scenario.steps.len(),
            view.trace.steps.len()
        )));
    }
    debug_assert!(view.ending != Ending::Interrupted);
    Ok(())
}

/// Without a supervisor: this process becomes the program.
fn direct(scenario: &Scenario, args: &Replay) -> Result<i32, Failure> {
    let input = input_of(scenario)?;
    let output = match &args.output {
        Some(path) => Some(output_file(Some(path))?),
        None => None,
    };
    let out = output.as_ref().map_or([1, 2], |f| [f.as_raw_fd(), f.as_raw_fd()]);
    let parts = Worker::direct(&spec_of(scenario), &schedule_of(scenario), [input.fd(), out[0], out[1]])?;
    match tracee::launch_untraced(&parts.launch) {
        Ok(never) => match never {},
        Err(e) => Err(Failure::environment(format!("the program could not be started: {e}"))),
    }
}
