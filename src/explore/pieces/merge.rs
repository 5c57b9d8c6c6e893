//! What the pieces have come to is summed up.

use std::collections::BTreeMap;
use std::fs;

use super::super::failure::Failure;
use super::super::run::explore;
use super::super::save::{with_ending, Header, Saved};
use super::store::{Manifest, State};
use crate::base::files;
use crate::base::text::escape;
use crate::config::{Config, MergePieces};
use crate::finding::Summary;
use crate::incomplete::Reason;
use crate::search::{InOrder, Search};

/// One report of all pieces, as if one search, that of `config`, had explored them. Bugs that they have found are run once more, here.
///
/// # Errors
/// A piece is missing or of something else, or the program cannot be run here.
pub fn merge(args: &MergePieces, config: Config) -> Result<Summary, Failure> {
    let manifest = Manifest::of(&args.dir)?;
    let states = manifest.states(&args.dir)?;
    let Some(first) = states.first() else {
        return Err(Failure::environment(format!("{} has no pieces", escape(&args.dir))));
    };
    if let Some(other) = states.iter().position(|state| !is_of_the_same(&first.saved.header, &state.saved.header)) {
        let name = &manifest.pieces[other];
        return Err(Failure::environment(format!("piece {name} in {} is of another search", escape(&args.dir))));
    }
    let saved = sum(&states, manifest.transitions)?;
    let cwd = std::path::PathBuf::from(&saved.header.program.cwd);
    let scenario_dir = std::path::absolute(&args.scenario_dir)?;
    std::env::set_current_dir(&cwd)
        .map_err(|e| Failure::environment(format!("the program runs in {}, which is not there: {e}", escape(&cwd))))?;
    // What is resumed is saved again at its end, which is of no use here.
    let (path, file) = files::temporary(&std::env::temp_dir())?;
    drop(file);
    let written = fs::write(&path, saved.to_bytes());
    let config = Config { resume: Some(path.clone()), workers: Some(1), scenario_dir, format: args.format, ..config };
    let summary = written.map_err(Failure::from).and_then(|()| explore(&config));
    let _ = fs::remove_file(&path);
    let _ = fs::remove_file(with_ending(&path, ".1"));
    summary
}

/// Two pieces are of one search.
fn is_of_the_same(one: &Header, two: &Header) -> bool {
    let of = |h: &Header| (h.program.exe.clone(), h.program.argv.clone(), h.program.cwd.clone(), h.search.clone());
    let words = |h: &Header| h.piece.as_ref().map(|piece| piece.words.clone());
    of(one) == of(two) && one.fingerprint == two.fingerprint && words(one) == words(two)
}

/// The state of a search that has explored what they have.
fn sum(states: &[State], above: u64) -> Result<Saved, Failure> {
    let first = &states[0].saved.header;
    let mut header = Header { piece: None, ..first.clone() };
    for state in &states[1..] {
        header.add(&state.saved.header);
    }
    header.sharing = header.sharing.settled();
    let mut left = BTreeMap::new();
    for state in states {
        let reason = match () {
            () if state.is_outdated() => Reason::Again,
            () if !state.is_over() => Reason::Pieces,
            () => continue,
        };
        *left.entry(reason).or_insert(0) += 1;
    }
    if let Some(n) = left.get(&Reason::Pieces) {
        header.notes.push(format!("{n} of {} pieces have something left", states.len()));
    }
    header.reasons.extend(left);
    let all = |count: fn(&InOrder) -> u64| states.iter().map(|state| count(&state.search)).sum::<u64>();
    let counts = (above + all(|search| search.transitions()), all(|search| search.sleep_blocked()));
    // One that is over and has not explored all of its part makes the whole so.
    let partial = states.iter().any(|state| state.is_over() && !state.search.exhaustive());
    let search = InOrder::over(counts, partial).save();
    let search = search.ok_or_else(|| Failure::own("vsrun bug: a search that is over cannot be saved"))?;
    Ok(Saved { header, search })
}
