//! What a swarm has come to is summed up.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use vsrun_model::inject;

use super::chance::{missed, DEPTHS};
use super::plan::{name_of, KINDS};
use super::store::{lots, Bug, Clock, Description, Done, Lot};
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
            Some(done) => sum.add(&done, dir),
            None => left += 1,
        }
    }
    let mut report = sum.report();
    report.program.clone_from(&description.program.argv);
    (report.left, report.seconds, report.newest) = (left, clock.seconds, clock.newest);
    let mut own = BTreeSet::new();
    for known in sum.bugs.values() {
        report.bugs.push(show(known, written(dir, scenario_dir, &known.best, &mut own)));
    }
    report.bugs.sort_by(|a, b| (a.kind, a.transitions, &a.summary).cmp(&(b.kind, b.transitions, &b.summary)));
    report.reasons.insert(Reason::Random);
    Ok(report)
}

/// A bug.
struct Known {
    /// As it is shown, by the task of this.
    best: Bug,
    by: Lot,
    /// All tasks that have found it.
    tasks: BTreeSet<u64>,
}

/// What is known of tasks so far.
#[derive(Default)]
pub(super) struct Sum {
    all: LotKind,
    searches: BTreeMap<usize, LotKind>,
    faults: BTreeMap<u32, LotKind>,
    covered: Covered,
    bugs: BTreeMap<(BugKind, u64), Known>,
    chances: BTreeMap<(u32, u32, u32), u64>,
    reasons: BTreeSet<Reason>,
    notes: Vec<String>,
    max_depth: u64,
    unwatched: bool,
}

impl Sum {
    pub fn add(&mut self, done: &Done, dir: &Path) {
        let there = |bug: &Bug| bug.scenario.as_ref().is_some_and(|name| dir.join(name).exists());
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
            let new = || Known { best: bug.clone(), by: done.lot.clone(), tasks: BTreeSet::new() };
            let known = self.bugs.entry((bug.kind, bug.identity)).or_insert_with(new);
            // Of those that are equally short the file of one stays.
            let better = !there(&known.best) || bug.transitions < known.best.transitions;
            if there(bug) && better {
                (known.best, known.by) = (bug.clone(), done.lot.clone());
            }
            known.tasks.insert(done.lot.number);
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

    pub fn report(&self) -> Swarm {
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

fn show(known: &Known, scenario: Option<PathBuf>) -> SwarmBug {
    let Known { best, by, tasks } = known;
    SwarmBug {
        kind: best.kind,
        summary: best.summary.clone(),
        scenario,
        task: by.number,
        search: name_of(by.kind as usize),
        seed: by.seed,
        faults: names(by.faults),
        execution: best.execution,
        transitions: best.transitions,
        tasks: tasks.len() as u64,
    }
}

/// The scenario of a bug, in the directory for scenarios. What is there already is not written again.
fn written(dir: &Path, scenario_dir: &Path, bug: &Bug, own: &mut BTreeSet<PathBuf>) -> Option<PathBuf> {
    let from = dir.join(bug.scenario.as_ref()?);
    let scenario = Scenario::load_file(&from).ok()?.scenario;
    let path = scenario.write(scenario_dir).ok()?;
    let path = scenario.unless_known(&path, own).unwrap_or(path);
    own.insert(path.clone());
    Some(path)
}
