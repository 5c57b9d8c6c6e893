//! A scenario without a supervisor, for debuggers: this process becomes its program.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsRawFd;
use std::path::Path;

use super::failure::Failure;
use super::replay::{input_of, load, schedule_of, spec_of};
use super::setting::output_file;
use crate::config::Replay;
use crate::finding::BugKind;
use crate::runtime::streams::own_terminal;
use crate::runtime::{direct, tracee, Worker};
use crate::scenario::Scenario;

/// The scenario at `path`, to be run in a debugger. `trusted`: whoever wrote it.
///
/// # Errors
/// It cannot be read, its program is another one now, or it needs the supervisor.
pub fn for_debugger(path: &Path, trusted: bool) -> Result<Scenario, Failure> {
    let (scenario, _) = load(path, trusted, false)?;
    refuse_what_needs_the_supervisor(&scenario)?;
    Ok(scenario)
}

fn refuse_what_needs_the_supervisor(scenario: &Scenario) -> Result<(), Failure> {
    if scenario.options.tosses.is_empty() {
        return Ok(());
    }
    Err(Failure::environment(
        "unsupported: in the scenario functions return a choice (--toss), which only the supervisor can give them: there is no --no-supervisor \
         and no debugger for it; 'vsrun replay --until N' shows the state after any step",
    ))
}

/// The patches that the program makes in its own code, where the scenario is about memory; they are the same each time it runs.
///
/// # Errors
/// The program, which is started for that, does not come to its root.
pub fn patches(scenario: &Scenario) -> Result<Option<Vec<u8>>, Failure> {
    match scenario.is_about_memory() {
        true => Ok(Worker::patches_of(&spec_of(scenario, &[]))?),
        false => Ok(None),
    }
}

/// `vsrun replay --no-supervisor FILE`.
///
/// # Errors
/// The scenario cannot be read or needs the supervisor, or its program cannot be started.
pub fn replay(args: &Replay) -> Result<Infallible, Failure> {
    let scenario = for_debugger(&args.file, args.trust)?;
    let patches = patches(&scenario)?;
    let output = args.output.as_deref().map(|path| output_file(Some(path))).transpose()?;
    // Step N is over when the next one is about to be made.
    let stop_before = args.until.map_or(0, |steps| steps.saturating_add(1));
    // On the way to a step nobody looks who writes to vsrun's memory, which takes most of the time.
    let guarded = stop_before == 0 || scenario.bug.kind == BugKind::Crash;
    become_program(&scenario, output.as_ref(), patches.as_deref(), (stop_before, guarded))
}

/// This process becomes the program; `output`: where that prints, if not where vsrun does. Before transition `stop_before`, from 1, it stops
/// in the debugger that traces it; 0: at the end only. `guarded`: who writes to vsrun's memory faults.
///
/// # Errors
/// The program cannot be started.
pub fn become_program(
    scenario: &Scenario,
    output: Option<&File>,
    patches: Option<&[u8]>,
    (stop_before, guarded): (u64, bool),
) -> Result<Infallible, Failure> {
    let input = input_of(scenario)?;
    // Of a terminal it gets a description of its own: nobody is left to give the shell back the flags of the shell's.
    let own = own_terminal(&io::stdout());
    let out = output.or(own.as_ref()).map_or(1, File::as_raw_fd);
    let err = match output {
        Some(_) => out,
        None if io::stderr().is_terminal() && own.is_some() => out,
        None => 2,
    };
    let mut parts = direct(&spec_of(scenario, &[]), &schedule_of(scenario), [input.fd(), out, err], patches)?;
    parts.arena.control.told_from = stop_before;
    if !guarded {
        parts.arena.control.guarded = 0;
    }
    tracee::launch_untraced(&parts.launch)
        .map_err(|e| Failure::environment(format!("the program could not be started: {e}")))
}
