//! A task is done.

use std::ffi::OsString;
use std::path::Path;

use super::plan::{name_of, KINDS};
use super::store::{self, done_file, lot_file, Bug, Description, Done, Lot};
use crate::base::text::escape;
use crate::base::{files, surroundings};
use crate::config::{Config, ProgressMode, WorkPiece};
use crate::explore::{self, draw, Drawn, Failure};
use crate::finding::{BugKind, LotWorked};
use crate::{args, pack};

/// The file is a task of a swarm, not a piece of a search.
pub fn is_task(path: &Path) -> bool {
    store::is_lot(path)
}

/// What the words of a swarm say.
pub(super) fn config_of(words: &[OsString]) -> Result<Config, Failure> {
    let mut config = args::drawn(words).map_err(|e| Failure::environment(e.text))?;
    if surroundings::is_pack() {
        config.each_path(&mut |path| *path = pack::to_node(path));
    }
    Ok(config)
}

/// Does a task, if it has not been done, and writes what it came to.
///
/// # Errors
/// It is none, or cannot be run here.
pub fn work(asked: &WorkPiece) -> Result<LotWorked, Failure> {
    let file = std::path::absolute(&asked.file)?;
    let dir = files::directory_of(&file).to_path_buf();
    let (description, id) = Description::of(&dir)?;
    let lot = Lot::of(&file, id)?;
    if let Some(done) = Done::of(&file, &lot)? {
        return Ok(worked(&done));
    }
    let kept = lot.from.map(|number| kept_by(&dir, id, number)).transpose()?.flatten();
    let config = config_of(&description.words())?;
    let (search, depth) = KINDS[lot.kind as usize % KINDS.len()];
    let mut config = Config {
        search,
        pct_depth: if depth > 0 { depth } else { config.pct_depth },
        draws: false,
        seed: lot.seed,
        workers: Some(asked.workers),
        scenario_dir: dir.clone(),
        progress: ProgressMode::Never,
        ..config
    };
    (config.bounds.time, config.bounds.executions) = (asked.time, lot.executions);
    config.inject.extend((0..u32::BITS).map(|bit| 1 << bit).filter(|bit| lot.faults & bit != 0));
    if let Some(wanted) = &asked.wanted {
        explore::end_without(std::path::absolute(wanted)?);
    }
    let of = explore::Lot { program: description.program, fingerprint: description.fingerprint, kept };
    let drawn = draw(&config, of)?;
    let bugs = &drawn.summary.bugs;
    if let Some(obstacle) = bugs.iter().find(|bug| !bug.kind.is_of_program()) {
        if bugs.iter().all(|bug| !bug.kind.is_of_program()) {
            let own = matches!(obstacle.kind, BugKind::Unconfirmed | BugKind::Fault);
            return Err(Failure { code: if own { 4 } else { 2 }, message: obstacle.summary.clone() });
        }
    }
    if drawn.summary.executions == 0 && bugs.is_empty() {
        return Err(Failure::interrupted("the time was over before an execution had come to its end"));
    }
    let done = done(lot, drawn);
    done.write(&file).map_err(|e| Failure::environment(format!("{}: {e}", escape(&dir))))?;
    Ok(worked(&Done::of(&file, &done.lot)?.unwrap_or(done)))
}

/// What a task has kept for others to go on from.
fn kept_by(dir: &Path, id: u64, number: u64) -> Result<Option<Vec<u8>>, Failure> {
    let file = lot_file(dir, number);
    let done = Done::of(&file, &Lot::of(&file, id)?)?;
    let missing =
        || Failure::environment(format!("{} is not there: the task goes on from it", escape(done_file(&file))));
    Ok(done.ok_or_else(missing)?.kept)
}

fn done(lot: Lot, drawn: Drawn) -> Done {
    let summary = drawn.summary;
    let name = |path: &std::path::PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let bug = |bug: &crate::finding::Bug| Bug {
        kind: bug.kind,
        identity: bug.told_apart(),
        summary: bug.summary.clone(),
        scenario: bug.scenario.as_ref().and_then(name),
        execution: bug.execution,
        transitions: bug.transitions,
    };
    let bugs = summary.bugs.iter().filter(|bug| bug.kind.is_of_program()).map(bug).collect();
    // Faults strike by lot too: what is known of the chances is of executions without any.
    let chances = if lot.faults == 0 { drawn.chances } else { Vec::new() };
    Done {
        lot,
        executions: summary.executions + summary.earlier,
        transitions: summary.transitions,
        cut: summary.cut,
        ended: summary.ended,
        max_depth: summary.max_depth,
        seconds: summary.seconds,
        newest: drawn.newest,
        covered: drawn.covered,
        chances,
        kept: drawn.kept,
        bugs,
        reasons: summary.reasons.into_iter().collect(),
        notes: summary.notes,
        watched: summary.watched,
    }
}

fn worked(done: &Done) -> LotWorked {
    let found = |bug: &Bug| (bug.kind, bug.summary.clone(), bug.scenario.clone());
    LotWorked {
        number: done.lot.number,
        search: name_of(done.lot.kind as usize),
        seed: done.lot.seed,
        executions: done.executions,
        transitions: done.transitions,
        pairs: (done.covered.pairs(), done.covered.both_ways()),
        bugs: done.bugs.iter().map(found).collect(),
    }
}
