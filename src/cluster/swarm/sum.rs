//! What a swarm has come to is summed up.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use vsrun_model::inject;

use super::chance::{missed, DEPTHS};
use super::lots;
use super::plan::{name_of, KINDS};
use super::store::{Bug, Clock, Description, Done};
use crate::explore::{Covered, Failure};
use crate::finding::{BugKind, LotKind, Missed, Swarm, SwarmBug};
use crate::incomplete::Reason;
use crate::scenario::Scenario;
use crate::search::Chance;

/// Names of faults.
fn names(faults: u32) -> Vec<&'static str> {
    inject::NAMES.iter().filter(|(_, bit)| faults & bit != 0).map(|(name, _)| *name).collect()
}

/// The report. Scenarios are written to a directory.
///
/// # Errors
/// A file of the swarm is damaged.
pub fn sum(dir: &Path, scenario_dir: &Path) -> Result<Swarm, Failure> {
    let (description, id) = Description::of(dir)?;
    let clock = Clock::of(dir)?;
    let mut sum = Sum::default();
    let mut left = 0;
    for (path, lot) in lots(dir, id)? {
        match Done::of(&path, &lot)? {
            Some(done) => sum.add(&done),
            None => left += 1,
        }
    }
    let mut report = sum.report();
    report.program.clone_from(&description.program.argv);
    (report.left, report.seconds, report.newest) = (left, clock.seconds, clock.newest);
    let mut own = BTreeSet::new();
    for (bug, found) in sum.bugs.values() {
        let bug = show(bug, found.len() as u64, written(dir, scenario_dir, bug, &mut own));
        report.bugs.push(bug);
    }
    report.bugs.sort_by(|a, b| (a.kind, a.transitions, &a.summary).cmp(&(b.kind, b.transitions, &b.summary)));
    report.reasons.insert(Reason::Random);
    Ok(report)
}

/// What is known of tasks so far.
#[derive(Default)]
struct Sum {
    all: LotKind,
    searches: BTreeMap<usize, LotKind>,
    faults: BTreeMap<u32, LotKind>,
    covered: Covered,
    /// Each bug with its task, and all tasks that have found it.
    bugs: BTreeMap<(BugKind, u64), ((Bug, Done), BTreeSet<u64>)>,
    chances: BTreeMap<(u32, u32, u32), u64>,
    reasons: BTreeSet<Reason>,
    notes: Vec<String>,
    max_depth: u64,
    unwatched: bool,
}

impl Sum {
    fn add(&mut self, done: &Done) {
        let news = self.covered.join(&done.covered);
        let bugs = done.bugs.iter().filter(|bug| !self.bugs.contains_key(&(bug.kind, bug.identity))).count() as u64;
        let kind = done.lot.kind as usize;
        let (search, faults) =
            (self.searches.entry(kind).or_default(), self.faults.entry(done.lot.faults).or_default());
        for of in [&mut self.all, search, faults] {
            of.tasks += 1;
            of.executions += done.executions;
            of.ended += done.ended;
            of.cut += done.cut;
            of.transitions += done.transitions;
            of.seconds += done.seconds;
            of.news += news;
            of.bugs += bugs;
        }
        for bug in &done.bugs {
            let known = self.bugs.entry((bug.kind, bug.identity));
            let (best, tasks) = known.or_insert_with(|| ((bug.clone(), done.clone()), BTreeSet::new()));
            if bug.scenario.is_some() && (best.0.scenario.is_none() || bug.transitions < best.0.transitions) {
                *best = (bug.clone(), done.clone());
            }
            tasks.insert(done.lot.number);
        }
        for chance in &done.chances {
            *self.chances.entry((chance.depth, chance.threads, chance.length)).or_default() += chance.executions;
        }
        self.reasons.extend(done.reasons.iter().copied().filter(|reason| !is_of_one_task(*reason)));
        for note in &done.notes {
            let words = |note: &str| note.replace(|c: char| c.is_ascii_digit(), "");
            if !self.notes.iter().any(|known| words(known) == words(note)) {
                self.notes.push(note.clone());
            }
        }
        self.max_depth = self.max_depth.max(done.max_depth);
        self.unwatched |= !done.watched;
    }

    fn report(&self) -> Swarm {
        let named = |name: String, of: &LotKind| LotKind { name, ..of.clone() };
        let of_faults = |(faults, of): (&u32, &LotKind)| {
            let name = if *faults == 0 { "none".to_string() } else { names(*faults).join(",") };
            named(name, of)
        };
        let of = |(&(depth, threads, length), &executions): (&(u32, u32, u32), &u64)| Chance {
            depth,
            threads,
            length,
            executions,
        };
        let chances: Vec<Chance> = self.chances.iter().map(of).collect();
        let told = |&depth: &u32| {
            let (chance, executions) = missed(&chances, depth);
            Missed { depth, chance, executions }
        };
        let range = |of: fn(&Chance) -> u32| {
            let all = || chances.iter().map(of);
            (all().min().unwrap_or(0), all().max().unwrap_or(0))
        };
        Swarm {
            searches: (0..KINDS.len())
                .filter_map(|kind| Some(named(name_of(kind), self.searches.get(&kind)?)))
                .collect(),
            faults: self.faults.iter().map(of_faults).collect(),
            all: self.all.clone(),
            max_depth: self.max_depth,
            pairs: self.covered.pairs(),
            both_ways: self.covered.both_ways(),
            missed: DEPTHS.iter().map(told).collect(),
            threads: range(|chance| chance.threads),
            lengths: range(|chance| chance.length),
            reasons: self.reasons.clone(),
            watched: !self.unwatched,
            notes: self.notes.clone(),
            ..Swarm::default()
        }
    }
}

/// Each task comes to such an end.
fn is_of_one_task(reason: Reason) -> bool {
    matches!(reason, Reason::Time | Reason::Executions | Reason::Interrupted)
}

fn show((bug, done): &(Bug, Done), tasks: u64, scenario: Option<PathBuf>) -> SwarmBug {
    SwarmBug {
        kind: bug.kind,
        summary: bug.summary.clone(),
        scenario,
        task: done.lot.number,
        search: name_of(done.lot.kind as usize),
        seed: done.lot.seed,
        faults: names(done.lot.faults),
        execution: bug.execution,
        transitions: bug.transitions,
        tasks,
    }
}

/// The scenario of a bug, in the directory for scenarios. What is there already is not written again.
fn written(dir: &Path, scenario_dir: &Path, (bug, _): &(Bug, Done), own: &mut BTreeSet<PathBuf>) -> Option<PathBuf> {
    let from = dir.join(bug.scenario.as_ref()?);
    let scenario = Scenario::load_file(&from).ok()?.scenario;
    let path = scenario.write(scenario_dir).ok()?;
    let path = scenario.unless_known(&path, own).unwrap_or(path);
    own.insert(path.clone());
    Some(path)
}
