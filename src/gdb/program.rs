//! What gdb starts: the program of a scenario, by way of vsrun; and the vsrun that answers the script.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::names::{NUMBER, OUTPUT, PATCHES, PROGRAM, STATES, STOP};
use super::state::answer;
use crate::explore::alone::{become_program, for_debugger};
use crate::explore::Failure;

/// What a vsrun does that gdb or its script has started. `None`: these arguments are a user's.
pub fn of_debugger(mut arguments: impl Iterator<Item = OsString>) -> Option<Result<i32, Failure>> {
    let first = arguments.next()?;
    match first.to_str()? {
        PROGRAM => Some(program(arguments.next().map(PathBuf::from), arguments.next().map(PathBuf::from))),
        STATES => Some(answer()),
        _ => None,
    }
}

/// Becomes the program of the scenario `file`; `dir` has what is wanted.
fn program(file: Option<PathBuf>, dir: Option<PathBuf>) -> Result<i32, Failure> {
    let (Some(file), Some(dir)) = (file, dir) else { return Err(Failure::environment("only gdb starts this")) };
    let scenario = for_debugger(&file, true)?;
    let patches = std::fs::read(dir.join(PATCHES)).ok();
    let stop_before = std::fs::read_to_string(dir.join(STOP)).ok().and_then(|text| text.trim().parse().ok());
    let output = output(&dir)?;
    std::fs::write(dir.join(NUMBER), std::process::id().to_string())?;
    let stop_before = stop_before.unwrap_or(0);
    // The script asks for it behind the step at which it stops.
    match become_program(&scenario, Some(&output), patches.as_deref(), (stop_before, stop_before == 0))? {}
}

/// Where the program prints: the script shows it at each stop, and only once where somebody goes back.
fn output(dir: &Path) -> Result<std::fs::File, Failure> {
    let path = dir.join(OUTPUT);
    std::fs::File::create(&path)?;
    Ok(std::fs::OpenOptions::new().append(true).open(path)?)
}
