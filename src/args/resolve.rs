//! Raw arguments resolved, or refused.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Parser, ValueEnum};

use super::raw::{CheckpointName, RaceName, Raw, RawCommand, RawExplore, SearchName};
use crate::config::{Bounds, Checkpoint, Command, Config, SearchKind};

/// The names that are vsrun's own; a program of that name is reached as `./NAME`.
const COMMANDS: [&str; 3] = ["replay", "show", "doctor"];

/// Why vsrun stops at once: wrong usage (exit code 2), or `--help` and `--version` (0).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageError {
    /// What to print, without the last line end: one line that starts with `vsrun: ` unless it is help.
    pub text: String,
    /// Exit code. 0: the text belongs on stdout; otherwise on stderr.
    pub code: i32,
}

impl UsageError {
    fn wrong(what: impl std::fmt::Display) -> UsageError {
        UsageError { text: format!("vsrun: {what}; try 'vsrun --help'"), code: 2 }
    }

    fn not_yet(what: impl std::fmt::Display) -> UsageError {
        UsageError { text: format!("vsrun: {what} is not supported yet"), code: 2 }
    }
}

impl From<clap::Error> for UsageError {
    /// clap's first paragraph on one line; the rest of its text repeats the help.
    fn from(error: clap::Error) -> UsageError {
        let text = error.render().to_string();
        if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
            return UsageError { text: text.trim_end().to_string(), code: 0 };
        }
        let words =
            text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
        let line = words.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        UsageError::wrong(line.strip_prefix("error: ").unwrap_or(&line))
    }
}

/// Reads the command line; the first of `args` is the name of vsrun itself.
///
/// # Errors
/// Wrong usage and what is not supported yet (code 2); `--help` and `--version` (code 0).
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command, UsageError> {
    let args: Vec<OsString> = args.into_iter().collect();
    let raw = Raw::try_parse_from(&args)?;
    match raw.command {
        Some(RawCommand::Replay(replay)) => Ok(Command::Replay(replay)),
        Some(RawCommand::Show(show)) => Ok(Command::Show(show)),
        Some(RawCommand::Doctor) => Ok(Command::Doctor),
        None => {
            check_program(&args, &raw.explore.program)?;
            resolve(raw.explore).map(Command::Explore)
        }
    }
}

/// Options of a command stand after its name; before it, the name would be taken for a program's.
fn check_program(args: &[OsString], program: &[OsString]) -> Result<(), UsageError> {
    let Some(name) = program.first() else { return Err(UsageError::wrong("no program given")) };
    let forced = args.len() > program.len() && args[args.len() - program.len() - 1] == "--";
    match COMMANDS.iter().find(|command| name == *command) {
        Some(command) if !forced => Err(UsageError::wrong(format!(
            "options of '{command}' stand after it (for a program of that name: ./{command})"
        ))),
        _ if name.is_empty() => Err(UsageError::wrong("the program's name is empty")),
        _ => Ok(()),
    }
}

fn resolve(raw: RawExplore) -> Result<Config, UsageError> {
    refuse_later_work(&raw)?;
    Ok(Config {
        search: match raw.bound {
            Some(bound) => SearchKind::Bounded(bound),
            None if raw.once => SearchKind::Once,
            None => search_kind(raw.search)?,
        },
        pct_depth: raw.pct_depth,
        bounds: Bounds { depth: raw.max_depth, executions: raw.max_executions, time: raw.time },
        keep_going: raw.keep_going,
        seed: raw.seed,
        timeouts: raw.timeouts,
        inject: raw.inject.iter().fold(0, |all, bit| all | bit),
        checkpoint: checkpoint(raw.checkpoint)?,
        divergence_timeout: raw.divergence_timeout,
        livelock: raw.livelock,
        fail_on_exit: raw.fail_on_exit,
        files: raw.files,
        with: raw.with.into_iter().map(|words| words.0).collect(),
        stop_signal: raw.stop_signal.unwrap_or(0),
        allow_misuse: raw.allow_misuse,
        all_objects: raw.all_objects,
        unshared: raw.unshared,
        atomic: raw.atomic,
        annotations: raw.annotations,
        workers: raw.workers,
        progress: raw.progress,
        save: raw.save,
        resume: raw.resume,
        scenario_dir: raw.scenario_dir,
        output: raw.output,
        format: raw.format,
        program: raw.program,
    })
}

fn refuse_later_work(raw: &RawExplore) -> Result<(), UsageError> {
    let later = [
        ("--watch", !raw.watch.is_empty()),
        ("--toss", !raw.toss.is_empty()),
        ("--race other than off", raw.race != RaceName::Off),
    ];
    later.iter().find(|(_, given)| *given).map_or(Ok(()), |(what, _)| Err(UsageError::not_yet(what)))
}

fn search_kind(name: SearchName) -> Result<SearchKind, UsageError> {
    match name {
        SearchName::Optimal => Ok(SearchKind::Optimal),
        SearchName::Naive => Ok(SearchKind::Naive),
        SearchName::Traces => Ok(SearchKind::Traces),
        SearchName::Dpor => Ok(SearchKind::Dpor),
        SearchName::Sss => Ok(SearchKind::Sss),
        SearchName::IfSss => Ok(SearchKind::IfSss),
        SearchName::Exitblock => Ok(SearchKind::ExitBlock),
        SearchName::ExitblockRw => Ok(SearchKind::ExitBlockRw),
        SearchName::Random => Ok(SearchKind::Random),
        SearchName::Walk => Ok(SearchKind::Walk),
        SearchName::Pct => Ok(SearchKind::Pct),
        later => Err(UsageError::not_yet(format!("--search {}", name_of(&later)))),
    }
}

fn checkpoint(name: CheckpointName) -> Result<Checkpoint, UsageError> {
    match name {
        CheckpointName::Auto => Ok(Checkpoint::Auto),
        CheckpointName::Fork => Ok(Checkpoint::Fork),
        later => Err(UsageError::not_yet(format!("--checkpoint {}", name_of(&later)))),
    }
}

fn name_of(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |v| v.get_name().to_string())
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
