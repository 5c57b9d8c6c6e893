//! A swarm: executions drawn by lot, by many searches side by side, where exploring all is out of reach. Each task draws for a while, with a kind of
//! search, a seed and faults of its own; which come next goes by what the others have covered. What has been done stands in files alone, so whoever is
//! killed, the command too, costs no more than the tasks under way.

mod chance;
pub mod fuzz;
mod plan;
mod store;
mod sum;
mod work;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::base::text::escape;
use crate::config::{Searched, SwarmBounds};
use crate::explore::{program_of, Covered, Failure, OfPack, Progress};
use crate::finding::BugKind;
use vsrun_model::inject;

use plan::{seed_of, Plan};
use store::{lots, Bug, Clock, Description, Done, Lot};
use work::config_of;

pub use sum::sum;
pub use work::{is_task, work};

/// Where so many executions were asked for, what is left of them is enough for so many tasks of each that draws; and a task is no smaller than this.
const TAKES: u64 = 8;
const SMALLEST: u64 = 20;
/// How often it is written down how long it has gone on.
const WRITTEN: f64 = 0.5;

/// Faults that are varied unless something else is asked for: those that any program has to expect.
const VARIED: u32 = inject::SHORT_IO | inject::EINTR | inject::SPURIOUS;

/// What is known of a swarm while tasks are handed out.
pub(super) struct Swarm {
    dir: PathBuf,
    description: Description,
    id: u64,
    plan: Plan,
    /// What all have covered.
    covered: Covered,
    /// The last task.
    last: u64,
    /// Those that were begun, or are to be.
    open: BTreeMap<PathBuf, Lot>,
    /// Executions that were made.
    executions: u64,
    /// By kind of search, the last task that has kept what another one can go on from.
    kept: BTreeMap<u32, u64>,
    bugs: BTreeMap<(BugKind, u64), Bug>,
    clock: Clock,
    began: Instant,
    before: f64,
    until: Option<Instant>,
    written: f64,
    /// So many draw at a time.
    nodes: usize,
}

/// The directory has a swarm.
pub fn is_there(dir: &Path) -> bool {
    Description::is_there(dir)
}

/// Describes a swarm in a directory that has none.
///
/// # Errors
/// The program cannot be run, or the directory cannot be written.
pub fn begin(dir: &Path, search: &Searched, said: SwarmBounds) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::environment(format!("{}: {e}", escape(dir)));
    std::fs::create_dir_all(dir).map_err(failed)?;
    let mut description = Description::new(&search.words, program_of(&search.config)?);
    let bounds = &search.config.bounds;
    description.seed = said.seed.unwrap_or(search.config.seed);
    description.vary = said.vary.unwrap_or(VARIED);
    description.seconds = said.time.or(bounds.time).map(|time| time.as_secs_f64());
    description.executions = said.executions.or(bounds.executions);
    description.write(dir).map_err(failed)
}

/// The search that a directory has a swarm of.
///
/// # Errors
/// It has none, or it is damaged.
pub fn searched(dir: &Path) -> Result<Searched, Failure> {
    let words = Description::of(dir)?.0.words();
    config_of(&words).map(|config| Searched { words, config })
}

/// The pack in which the swarm of a directory was begun, if it was one.
///
/// # Errors
/// It has none, or it is damaged.
pub fn pack_of(dir: &Path) -> Result<Option<OfPack>, Failure> {
    Ok(Description::of(dir)?.0.pack)
}

impl Swarm {
    /// The swarm of a directory, and its tasks that were begun and not done. `more`: bounds from now on, in place of what is left of those that it began
    /// with.
    ///
    /// # Errors
    /// A file is missing, damaged, or of another swarm.
    pub fn open(dir: &Path, more: SwarmBounds, nodes: usize) -> Result<(Swarm, Vec<Progress>), Failure> {
        let (description, id) = Description::of(dir)?;
        let clock = Clock::of(dir)?;
        let mut swarm = Swarm {
            dir: dir.to_path_buf(),
            plan: Plan::new(description.vary),
            description,
            id,
            covered: Covered::default(),
            last: 0,
            open: BTreeMap::new(),
            executions: 0,
            kept: BTreeMap::new(),
            bugs: BTreeMap::new(),
            clock,
            began: Instant::now(),
            before: clock.seconds,
            until: None,
            written: 0.0,
            nodes: nodes.max(1),
        };
        let lots = lots(dir, id)?;
        for (path, lot) in &lots {
            swarm.last = lot.number;
            swarm.plan.begun(lot.kind as usize, lot.faults);
            match Done::of(path, lot)? {
                Some(done) => drop(swarm.add(&done)),
                None => drop(swarm.open.insert(path.clone(), lot.clone())),
            }
        }
        let rest = swarm.description.seconds.map(|seconds| clock.rest(seconds));
        swarm.until = more.time.or(rest).and_then(|time| swarm.began.checked_add(time));
        if let Some(executions) = more.executions {
            swarm.description.executions = Some(swarm.executions.saturating_add(executions));
        }
        let left = swarm.open.keys().map(|path| progress(path, None)).collect();
        Ok((swarm, left))
    }

    /// The time is over.
    pub fn is_late(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// How long what begins now may go on, which is no longer than `grain`.
    pub fn turn(&self, grain: Duration) -> Duration {
        let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        left.map_or(grain, |left| left.min(grain)).max(Duration::from_millis(1))
    }

    /// Executions that nobody has been given.
    fn free(&self) -> Option<u64> {
        let given: u64 = self.open.values().filter_map(|lot| lot.executions).sum();
        self.description.executions.map(|all| all.saturating_sub(self.executions).saturating_sub(given))
    }

    /// Nothing new is to be begun.
    pub fn is_spent(&self) -> bool {
        self.is_late() || self.free() == Some(0)
    }

    /// One more task.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn next(&mut self) -> Result<Option<Progress>, Failure> {
        if self.is_spent() {
            return Ok(None);
        }
        let number = self.last + 1;
        let (kind, faults) = self.plan.next(number);
        let share = |free: u64| free.div_ceil(TAKES * self.nodes as u64).max(SMALLEST).min(free);
        let lot = Lot {
            swarm: self.id,
            number,
            kind: kind as u32,
            seed: seed_of(self.description.seed, number),
            faults,
            executions: self.free().map(share),
            from: self.kept.get(&(kind as u32)).copied(),
        };
        let path = lot.write(&self.dir).map_err(|e| Failure::environment(format!("{}: {e}", escape(&self.dir))))?;
        self.last = number;
        self.open.insert(path.clone(), lot);
        Ok(Some(progress(&path, None)))
    }

    /// How far the task of that file is.
    ///
    /// # Errors
    /// What it came to is damaged.
    pub fn progress_of(&self, path: &Path) -> Result<Progress, Failure> {
        let done = self.open.get(path).map(|lot| Done::of(path, lot)).transpose()?.flatten();
        Ok(progress(path, done.as_ref()))
    }

    /// Takes what the task of that file came to, if it has been done.
    ///
    /// # Errors
    /// That is damaged.
    pub fn take(&mut self, path: &Path) -> Result<(), Failure> {
        let Some(done) = self.open.get(path).map(|lot| Done::of(path, lot)).transpose()?.flatten() else {
            return Ok(());
        };
        self.open.remove(path);
        let now = self.now();
        if self.add(&done) > 0 {
            self.clock.newest = self.clock.newest.max(now - (done.seconds - done.newest).max(0.0));
        }
        self.tick(true);
        Ok(())
    }

    /// How many orders of two operations are new.
    fn add(&mut self, done: &Done) -> u64 {
        let news = self.covered.join(&done.covered);
        self.executions += done.executions;
        self.plan.take((done.lot.kind as usize, done.lot.faults), news, done.seconds);
        if done.kept.is_some() {
            self.kept.insert(done.lot.kind, done.lot.number);
        }
        for bug in &done.bugs {
            self.forget_longer(bug);
        }
        news
    }

    /// Of a bug that several tasks have found one scenario stays, the shortest.
    fn forget_longer(&mut self, bug: &Bug) {
        let there = |bug: &Bug| bug.scenario.as_ref().is_some_and(|name| self.dir.join(name).exists());
        if !there(bug) {
            return;
        }
        let key = (bug.kind, bug.identity);
        let known = self.bugs.get(&key).filter(|known| there(known)).cloned();
        let (stays, goes) = match known {
            Some(known) if known.transitions <= bug.transitions => (known, Some(bug.clone())),
            Some(known) => (bug.clone(), Some(known)),
            None => (bug.clone(), None),
        };
        if let Some(name) = goes.and_then(|bug| bug.scenario).filter(|name| stays.scenario.as_ref() != Some(name)) {
            // It does no harm where it stays.
            let _ = std::fs::remove_file(self.dir.join(name));
        }
        self.bugs.insert(key, stays);
    }

    /// Seconds since it began, what it was not under way left out.
    fn now(&self) -> f64 {
        self.before + self.began.elapsed().as_secs_f64()
    }

    /// Writes down how long it has gone on, now and then.
    pub fn tick(&mut self, at_once: bool) {
        self.clock.seconds = self.now();
        if at_once || self.clock.seconds - self.written >= WRITTEN {
            self.written = self.clock.seconds;
            // Where it cannot be written, results cannot either, and that is told.
            let _ = self.clock.write(&self.dir);
        }
    }

    /// How far it is.
    pub fn news(&self, under_way: usize, speed: f64) -> String {
        let bugs = self.bugs.len();
        let plural = if bugs == 1 { "" } else { "s" };
        format!(
            "{} tasks done, {under_way} under way; {} executions, {speed:.0}/s; {} pairs of operations, {} in both orders; {bugs} bug{plural}",
            self.last as usize - self.open.len(),
            self.executions,
            self.covered.pairs(),
            self.covered.both_ways()
        )
    }
}

fn progress(path: &Path, done: Option<&Done>) -> Progress {
    Progress {
        file: path.to_path_buf(),
        over: done.is_some(),
        outdated: false,
        executions: done.map_or(0, |done| done.executions),
    }
}
