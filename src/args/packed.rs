//! The search of a pack: how its options are kept, and how those that are given later come before them.

use std::ffi::{OsStr, OsString};

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

use crate::config::Packed;

/// Why a command line of a pack is none.
pub(super) enum Wrong {
    /// As for any command line.
    Usage(Box<clap::Error>),
    /// It has what is not for a pack.
    Packed(&'static str),
}

impl From<clap::Error> for Wrong {
    fn from(e: clap::Error) -> Wrong {
        Wrong::Usage(Box::new(e))
    }
}

/// Commands with options of their own that are followed by the program.
const OF_A_PROGRAM: [&str; 2] = ["trace", "daemon"];

/// The options that were given: the id of each, and a word that gives it again.
fn options_of(command: &Command, matches: &ArgMatches) -> Vec<(String, OsString)> {
    let mut all = Vec::new();
    for arg in command.get_arguments().filter(|arg| !arg.is_positional()) {
        let id = arg.get_id().as_str();
        if matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        let (front, between) = match (arg.get_long(), arg.get_short()) {
            (Some(long), _) => (format!("--{long}"), "="),
            (None, Some(short)) => (format!("-{short}"), ""),
            (None, None) => continue,
        };
        if !arg.get_action().takes_values() {
            all.push((id.to_string(), front.into()));
            continue;
        }
        for value in matches.get_raw(id).into_iter().flatten() {
            let front = OsString::from(format!("{front}{between}"));
            all.push((id.to_string(), [front.as_os_str(), value].join(OsStr::new(""))));
        }
    }
    all
}

/// The search that such words ask for, as after `vsrun`.
///
/// # Errors
/// They ask for something else.
pub(super) fn packed(command: &Command, words: &[OsString]) -> Result<Packed, Wrong> {
    let matches = command.clone().try_get_matches_from([&["vsrun".into()], words].concat())?;
    let program: Vec<OsString> = matches.get_raw("program").into_iter().flatten().map(OsString::from).collect();
    match matches.subcommand_name() {
        None if !program.is_empty() => Ok(Packed { options: options_of(command, &matches), program }),
        _ => Err(Wrong::Packed("what is packed is a search: options and a program are expected")),
    }
}

/// These options of a search, with those of the pack that they do not give, and its program.
///
/// # Errors
/// There is something else among them.
pub(super) fn filled(command: &Command, given: &[OsString], packed: &Packed) -> Result<Vec<OsString>, Wrong> {
    let open = command.clone().mut_arg("program", |program| program.required(false));
    let matches = open.try_get_matches_from([&["vsrun".into()], given].concat())?;
    if matches.get_raw("program").is_some() {
        return Err(Wrong::Packed(
            "a pack runs the program that is in it, with its arguments: options are expected, no program",
        ));
    }
    let find = |id: &str| command.get_arguments().find(|arg| arg.get_id() == id);
    let excludes = |one: &str, other: &str| {
        find(one).is_some_and(|arg| command.get_arg_conflicts_with(arg).iter().any(|arg| arg.get_id() == other))
    };
    // What is given later comes before what the pack has: the same option, and one that cannot be given beside it.
    let instead = options_of(command, &matches);
    let replaced =
        |id: &str| instead.iter().any(|(other, _)| other == id || excludes(id, other) || excludes(other, id));
    let kept = packed.options.iter().filter(|(id, _)| find(id).is_some() && !replaced(id));
    let words = kept.map(|(_, word)| word).chain(given).cloned().chain(["--".into()]);
    Ok(words.chain(packed.program.iter().cloned()).collect())
}

/// A command line, the name of vsrun first, with the search of the pack where one is expected.
///
/// # Errors
/// As those of [`filled`].
pub(super) fn completed(
    command: &Command,
    commands: &[&str],
    args: Vec<OsString>,
    packed: &Packed,
) -> Result<Vec<OsString>, Wrong> {
    let (name, words) =
        args.split_first().map_or((OsString::from("vsrun"), &[][..]), |(name, words)| (name.clone(), words));
    let asks = |word: &OsString| word == "-h" || word == "--help" || word == "-V" || word == "--version";
    let first = words.first().and_then(|word| word.to_str());
    let own = match first {
        Some(first) if OF_A_PROGRAM.contains(&first) && !words.iter().any(asks) => {
            let Some(sub) = command.find_subcommand(first) else { return Ok(args) };
            [&words[..1], &filled(sub, &words[1..], packed)?].concat()
        }
        Some(first) if commands.contains(&first) => return Ok(args),
        _ if words.iter().any(asks) => return Ok(args),
        _ => filled(command, words, packed)?,
    };
    Ok([&[name], &own[..]].concat())
}
