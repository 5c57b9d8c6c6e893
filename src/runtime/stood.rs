//! What a worker knows of going back to the first choice: see `runtime::back`.

use std::collections::BTreeSet;
use std::time::Instant;

use nix::unistd::Pid;
use vsrun_model::arena::{Arena, Choice, Plan, Policy};
use vsrun_model::back::{Hinders, Reached, MAX_MARKS, MAX_WANTED};
use vsrun_model::Effects;

use super::checkpoint::{ArenaMap, RootState};
use super::kept::Kept;

/// A process that stands before its first choice, or has an execution under way from there.
pub(super) struct Stood {
    pub pid: Pid,
    pub key: Key,
    /// What stood in the arena.
    pub state: Box<RootState>,
    pub recorded: ArenaMap,
    /// What is shared with others.
    pub kept: Kept,
    /// Bytes that it had printed.
    pub printed: u64,
}

/// A state within an execution that its process can come back to.
pub(super) struct Mark {
    /// Where the process has what it needs.
    pub slot: u32,
    /// Transitions that lead there,
    pub step: u64,
    /// and what else the way there depends on, see [`until_prefix_ends`].
    pub plan: Plan,
    /// Of the states behind so many of these it is recorded what was pending.
    pub seen_from: u64,
    /// What stood in the arena.
    pub state: Box<RootState>,
    pub reached: Reached,
    /// What stood in the pool.
    pub pool: Vec<u8>,
    /// Bytes that had been printed, and the places in files.
    pub printed: u64,
    pub places: Vec<Option<u64>>,
}

/// The marks on the way of the execution that is under way, or was last.
#[derive(Default)]
pub(super) struct Marks {
    /// Ascending.
    pub all: Vec<Mark>,
    /// The choices that lead to the last one.
    pub path: Vec<Choice>,
    /// Memory for more.
    pub spare: Vec<Box<RootState>>,
    /// As [`Mark::seen_from`], of the execution.
    pub seen_from: u64,
    /// Where it began, in transitions, and when.
    pub began: (u64, Option<Instant>),
    /// What a transition takes, in ns; 0: that is not known.
    pub transition: f64,
    /// The same of a mark.
    pub mark: f64,
}

/// So many times what a mark takes an execution runs before the next one is made, behind where it leaves the one before.
const APART: f64 = 8.0;
/// What a mark takes at least, in ns.
const LEAST: f64 = 30_000.0;

/// Of the states behind so many transitions of an execution it is recorded what is pending. `None`: of none.
pub(super) fn recorded_from(plan: &Plan) -> Option<u64> {
    plan.record.then(|| u64::from(plan.prefix_len.saturating_sub(plan.record_back)))
}

/// What a plan says of the way along its prefix.
pub(super) fn until_prefix_ends(plan: Plan) -> Plan {
    Plan {
        prefix_len: 0,
        record: false,
        record_back: 0,
        wake_by_effects: false,
        expected_effects: Effects::default(),
        late_wake: false,
        ..plan
    }
}

impl Marks {
    /// They cannot be come back to any more.
    pub fn clear(&mut self) {
        self.keep(0);
        self.path.clear();
    }

    fn keep(&mut self, n: usize) {
        self.spare.extend(self.all.drain(n..).map(|mark| mark.state));
    }

    /// The mark from which an execution by that prefix is to go on, which needs what is pending in the states behind so many of its choices; others are
    /// forgotten, as what comes after it is recorded anew.
    pub fn choose(&mut self, plan: &Plan, prefix: &[Choice], usable: u32) -> Option<&Mark> {
        let recorded_from = recorded_from(plan);
        let plan = until_prefix_ends(*plan);
        let same = |(a, b): &(&Choice, &Choice)| (a.uid, a.value) == (b.uid, b.value);
        let common = self.path.iter().zip(prefix).take_while(same).count() as u64;
        let fits = |mark: &Mark| {
            let seen = recorded_from.is_none_or(|from| mark.step <= from || mark.seen_from <= from);
            mark.step <= common && mark.plan == plan && seen && usable >> mark.slot & 1 != 0
        };
        let n = self.all.iter().rposition(fits).map_or(0, |at| at + 1);
        self.keep(n);
        let (step, seen_from) = self.all.last().map_or((0, u64::MAX), |mark| (mark.step, mark.seen_from));
        self.path.truncate(step as usize);
        self.seen_from = match recorded_from {
            None => u64::MAX,
            // Without a gap.
            Some(from) if from <= step && seen_from <= step => seen_from,
            Some(from) => from,
        };
        self.all.last()
    }

    /// Where marks are to be made: on the way to the last choice of the prefix, where others may leave it, ever nearer to that; and how far apart behind it.
    pub fn wanted(&self, start: u64, prefix: u64, forced: u64) -> (Vec<u64>, u64) {
        if forced > 0 {
            return (Vec::new(), forced);
        }
        if self.transition == 0.0 {
            return (Vec::new(), 0);
        }
        let least = (self.mark.max(LEAST) / self.transition).max(1.0) as u64;
        let end = prefix.saturating_sub(1);
        let (mut at, mut wanted) = (start, Vec::new());
        while wanted.len() < MAX_WANTED && end.saturating_sub(at) > least {
            at += ((end - at) / 2).max(least).min(end - at);
            wanted.push(at);
        }
        wanted.reverse();
        (wanted, ((least as f64 * APART) as u64).max(1))
    }

    /// A place for one more. Where there is none, one is given up so that those left lie the closer the nearer they are to the last.
    pub fn free_slot(&mut self, most: usize) -> u32 {
        if self.all.len() >= most {
            let last = self.all.last().map_or(0, |mark| mark.step);
            let gap = |n: usize| {
                let before = if n == 0 { 0 } else { self.all[n - 1].step };
                let after = self.all.get(n + 1).map_or(last, |mark| mark.step);
                (after - before) as f64 / (last - self.all[n].step + 1) as f64
            };
            let least = (0..self.all.len() - 1).min_by(|&a, &b| gap(a).total_cmp(&gap(b)));
            if let Some(n) = least {
                self.spare.push(self.all.remove(n).state);
            }
        }
        (0..MAX_MARKS as u32).find(|slot| self.all.iter().all(|mark| mark.slot != *slot)).unwrap_or(u32::MAX)
    }

    /// An execution is over after so many transitions.
    pub fn over(&mut self, taken: u64) {
        let (start, Some(since)) = self.began else { return };
        self.began.1 = None;
        if taken > start {
            let each = since.elapsed().as_nanos() as f64 / (taken - start) as f64;
            self.transition = if self.transition == 0.0 { each } else { 0.9 * self.transition + 0.1 * each };
        }
    }
}

/// What the way to the first choice depends on, beside the program.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Key {
    plan: Plan,
    /// Pages that several threads use, so many: more only come.
    common: u32,
}

impl Key {
    /// What a plan says only of what comes at the first choice and behind it does not count; all else does.
    pub fn of(plan: Plan, arena: &Arena) -> Key {
        let plan = Plan {
            policy: Policy::STAY,
            prefix_len: 0,
            guide_len: 0,
            seed: 0,
            pct_depth: 0,
            pct_length: 0,
            pct_fair: 0,
            max_depth: 0,
            max_idle: 0,
            record: false,
            record_back: 0,
            blind: false,
            past_cycles: false,
            wake_by_effects: false,
            expected_effects: Effects::default(),
            late_wake: false,
            ..plan
        };
        Key { plan, common: arena.common.len }
    }
}

/// What a worker knows of going back.
#[derive(Default)]
pub(super) struct GoingBack {
    pub stood: Option<Stood>,
    pub marks: Marks,
    /// An execution is under way that goes back, if it can.
    pub under_way: bool,
    /// The execution that is under way, or was last, was asked to.
    pub asked: bool,
    /// It was to begin where its process stood.
    pub resumed: bool,
    /// Pages that executions write.
    pub pages: BTreeSet<u64>,
    /// So often there were new ones.
    pub lessons: u32,
    /// What those have lost that did not come back, less what others have won.
    pub lost: u32,
    /// No execution is asked to.
    pub off: bool,
    /// Executions that came back.
    pub came_back: u64,
    /// The process of the last one has.
    pub did: bool,
    /// Why it has not.
    pub why: Option<Hinders>,
}

impl GoingBack {
    /// Makes up for what was lost.
    pub fn wins(&mut self, gain: u32) {
        self.lost = self.lost.saturating_sub(gain);
    }
}
