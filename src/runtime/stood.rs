//! What a worker knows of going back to the first choice: see `runtime::back`.

use std::collections::BTreeSet;
use std::io;
use std::time::Instant;

use nix::unistd::Pid;
use vsrun_model::arena::{Arena, Choice, Plan, Policy};
use vsrun_model::back::{Back, Hinders, Reached, MAX_MARKS, MAX_WANTED};
use vsrun_model::Effects;

use super::checkpoint::{ArenaMap, RootState};
use super::kept::{Bytes, Kept, Known, Later};
use super::tracee::Waited;
use super::trial::Trial;

/// Processes that stand before their first choice, or have an execution under way from there.
pub(super) struct Stood {
    /// In the order in which they have joined, those of the first choice first.
    pub members: Vec<Member>,
    /// The state at the first choice.
    pub first: Together,
    pub key: Key,
    /// What stood in the arena.
    pub state: Box<RootState>,
    pub recorded: ArenaMap,
    /// Bytes that had been printed.
    pub printed: u64,
    /// Calls that had gone to the kernel by then, since the root, by number: they are not made again, and count for each execution.
    pub passed: Vec<u32>,
}

/// A process that goes back.
pub(super) struct Member {
    pub pid: Pid,
    /// What it shares with others, as that was where it joined.
    pub kept: Kept,
    /// The name of the state that it was in last, of those that one can go back to; it has moved on since where it has had the turn. See `all_go_back`.
    pub state: Option<u64>,
}

/// Who is in a state that one can go back to. Processes are numbered as in the model.
#[derive(Clone, Default, PartialEq, Debug)]
pub(super) struct Together {
    /// The process that had the turn.
    pub leader: u32,
    /// The others, which waited for it.
    pub others: Vec<u32>,
    /// So many had joined by then; some of them may have been over.
    pub members: usize,
    /// Where their originals stand still, by process, as numbers of members: see NOTE \[Copies\] of `vsrun_model::back`.
    pub at: Vec<(u32, usize)>,
}

impl Stood {
    /// Bytes that are shared, and are looked at for each mark.
    pub fn content(&self) -> u64 {
        self.members.iter().map(|member| member.kept.content()).sum()
    }

    /// What is shared as it is now, of each member.
    ///
    /// # Errors
    /// It cannot be told any more.
    pub fn later(&mut self) -> io::Result<Vec<Later>> {
        self.members.iter_mut().map(|member| member.kept.later()).collect()
    }

    /// Puts back what the first `n` members share as it was at the first choice, or `later`.
    ///
    /// # Errors
    /// It cannot be reached any more.
    pub fn restore(&mut self, n: usize, later: Option<&[Later]>) -> io::Result<()> {
        let mut all = self.members.iter_mut().take(n).enumerate();
        all.try_for_each(|(i, member)| member.kept.restore_with(later.and_then(|later| later.get(i))))
    }
}

/// What these have kept.
pub(super) fn known(members: &[Member]) -> Known {
    Known::of(members.iter().map(|member| &member.kept))
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
    /// So much of the pool was used, and what stood there.
    pub pool: (u64, Bytes),
    /// Bytes that had been printed, and what was shared, of each member.
    pub printed: u64,
    pub later: Vec<Later>,
    pub together: Together,
    /// Another one than that of any other mark.
    pub name: u64,
    /// See [`Stood::passed`].
    pub passed: Vec<u32>,
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
    /// Bytes of memory that vsrun keeps of one, at most; 0: that is not known.
    pub state_size: u64,
    /// So many have been made so far, and before the execution.
    pub made: u64,
    made_before: u64,
}

/// Bytes that vsrun keeps of a mark, as long as that is not known, and pages that its process keeps beside those of the first choice.
const STATE: u64 = 1 << 20;
const MORE_PAGES: u64 = 64;

const PAGE: u64 = 4096;
/// So many times what a mark takes an execution runs before the next one is made, behind where it leaves the one before.
const APART: f64 = 8.0;
/// What a mark is taken to take becomes so much of that with each execution without one.
const FADES: f64 = 0.8;
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

    /// So many can be kept in `memory` bytes by so many processes, where so much of the pool is used.
    pub fn most(&self, memory: u64, back: &Back, pool: u64, processes: usize) -> usize {
        let pages = if back.largest == 0 { u64::from(back.n_pages) + MORE_PAGES } else { back.largest };
        let each = self.of_vsrun(pool) + pages * PAGE * processes.max(1) as u64;
        ((memory / each) as usize).min(MAX_MARKS)
    }

    /// Pages that each of the processes may take for so many.
    pub fn room(&self, memory: u64, most: usize, pool: u64, processes: usize) -> u64 {
        memory.saturating_sub(most as u64 * self.of_vsrun(pool)) / PAGE / processes.max(1) as u64
    }

    fn of_vsrun(&self, pool: u64) -> u64 {
        pool + if self.state_size == 0 { STATE } else { self.state_size }
    }

    /// A place for one more, if there may be so many. Where there is none, one is given up so that those left lie the closer the nearer they are to the last.
    pub fn free_slot(&mut self, most: usize) -> u32 {
        let mut is_there = most > 0;
        while is_there && self.all.len() >= most {
            let last = self.all.last().map_or(0, |mark| mark.step);
            let gap = |n: usize| {
                let before = if n == 0 { 0 } else { self.all[n - 1].step };
                let after = self.all.get(n + 1).map_or(last, |mark| mark.step);
                (after - before) as f64 / (last - self.all[n].step + 1) as f64
            };
            match (0..self.all.len() - 1).min_by(|&a, &b| gap(a).total_cmp(&gap(b))) {
                Some(n) => self.spare.push(self.all.remove(n).state),
                // The only one is not given up for the next, which may not come.
                None => is_there = false,
            }
        }
        // Fewer than before may be kept.
        self.spare.truncate(most.saturating_sub(self.all.len()));
        if !is_there {
            return u32::MAX;
        }
        (0..MAX_MARKS as u32).find(|slot| self.all.iter().all(|mark| mark.slot != *slot)).unwrap_or(u32::MAX)
    }

    /// An execution is over after so many transitions.
    pub fn over(&mut self, taken: u64) {
        if std::mem::replace(&mut self.made_before, self.made) == self.made {
            // One that was held up would be the last otherwise.
            self.mark *= FADES;
        }
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
    /// Whether they pay.
    pub trial: Trial,
    /// The CPU time that had been taken when the execution that is under way was ordered, in ns, as long as it is tried whether marks pay.
    pub spent: Option<f64>,
    /// An execution is under way that goes back, if it can.
    pub under_way: bool,
    /// The execution that is under way, or was last, was asked to.
    pub asked: bool,
    /// It was to begin where its process stood.
    pub resumed: bool,
    /// The process that the execution before has ended in, which speaks for all.
    pub speaker: Option<u32>,
    /// Calls that had gone to the kernel before the execution, by number.
    pub passed_before: Vec<u32>,
    /// One that goes back has ended.
    pub gone: bool,
    /// One has that was told to do something, and nobody knows of that yet.
    pub ended: Option<Waited>,
    /// Why they cannot stand together, in the execution that is under way.
    pub cause: Option<Hinders>,
    /// Pages that executions write.
    pub pages: BTreeSet<u64>,
    /// They use memory far from what there is at the first choice: see `runtime::spans`.
    pub far: bool,
    /// Originals stand still, and their copies go on, where processes would go back otherwise: see `runtime::copies`.
    pub copies: bool,
    /// The original of each process as it has been since the last mark, if it has not had the turn since.
    pub copied: Vec<Option<usize>>,
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
    /// That process goes back.
    pub fn is_member(&self, pid: Pid) -> bool {
        self.stood.iter().flat_map(|stood| &stood.members).any(|member| member.pid == pid)
    }

    /// Of so many calls, those that the execution has made.
    pub fn passed(&self, all: &[u32]) -> Vec<u32> {
        all.iter().zip(&self.passed_before).map(|(now, before)| now.saturating_sub(*before)).collect()
    }

    /// So many do.
    pub fn processes(&self) -> usize {
        self.stood.as_ref().map_or(1, |stood| stood.members.len())
    }

    /// So many take memory for each mark; copies share what they have not written to.
    pub fn sharers(&self) -> usize {
        if self.copies {
            1
        } else {
            self.processes()
        }
    }

    /// Makes up for what was lost.
    pub fn wins(&mut self, gain: u32) {
        self.lost = self.lost.saturating_sub(gain);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn back(n_pages: u32, largest: u64) -> ArenaMap {
        let mut arena = ArenaMap::private().unwrap();
        (arena.back.n_pages, arena.back.largest) = (n_pages, largest);
        arena
    }

    #[test]
    fn as_many_marks_as_there_is_room_for() {
        let unknown = Marks::default();
        let known = Marks { state_size: 1 << 19, ..Marks::default() };
        let small = back(10, 0);
        assert_eq!((unknown.most(0, &small.back, 0, 1), unknown.most(1 << 20, &small.back, 0, 1)), (0, 0));
        assert_eq!(
            (unknown.most(8 << 20, &small.back, 0, 1), unknown.most(1 << 40, &small.back, 0, 1)),
            (6, MAX_MARKS)
        );
        // What is in the pool is kept by each of them.
        assert_eq!(unknown.most(8 << 20, &small.back, 1 << 20, 1), 3);
        // What the largest takes is known.
        let large = back(10, 384);
        assert_eq!((known.most(8 << 20, &large.back, 0, 1), known.most((2 << 20) - 1, &large.back, 0, 1)), (4, 0));
        // And all that vsrun keeps, with what the process may, is no more than that.
        for memory in [0, 1, 1 << 20, (9 << 20) + 17] {
            let most = known.most(memory, &large.back, 5000, 1);
            let of_process = known.room(memory, most, 5000, 1) * PAGE;
            assert!(most as u64 * known.of_vsrun(5000) + of_process <= memory);
            assert!(of_process >= most as u64 * 384 * PAGE, "{memory}");
            // Five processes take five times that.
            let most = known.most(memory, &large.back, 5000, 5);
            let of_each = known.room(memory, most, 5000, 5) * PAGE;
            assert!(most as u64 * known.of_vsrun(5000) + 5 * of_each <= memory);
            assert!(of_each >= most as u64 * 384 * PAGE, "{memory}");
        }
    }

    #[test]
    fn a_mark_that_was_held_up_is_not_the_last() {
        let mut marks = Marks { transition: 1e6, mark: 1e9, made: 1, ..Marks::default() };
        assert!(marks.wanted(0, 21, 0).0.is_empty());
        // Of the execution that has made it nothing is taken off.
        marks.over(20);
        assert_eq!(marks.mark, 1e9);
        let n = (1..).find(|_| {
            marks.over(20);
            !marks.wanted(0, 21, 0).0.is_empty()
        });
        assert!(n.is_some_and(|n| (2..25).contains(&n)), "{n:?}");
    }

    #[test]
    fn a_place_is_given_up_only_for_one_that_is_better() {
        let arena = ArenaMap::private().unwrap();
        let mut marks = Marks::default();
        let add = |marks: &mut Marks, slot, step| {
            let (state, reached) = (RootState::take(&arena).unwrap(), arena.reached().unwrap());
            let (plan, seen_from) = (Plan::default(), 0);
            marks.all.push(Mark {
                slot,
                step,
                plan,
                seen_from,
                state,
                reached,
                pool: (0, Bytes::default()),
                printed: 0,
                later: Vec::new(),
                together: Together::default(),
                name: 1,
                passed: Vec::new(),
            });
        };
        assert_eq!((marks.free_slot(0), marks.free_slot(1)), (u32::MAX, 0));
        add(&mut marks, 0, 10);
        // The only one there may be stays.
        assert_eq!((marks.free_slot(0), marks.free_slot(1), marks.free_slot(2)), (u32::MAX, u32::MAX, 1));
        add(&mut marks, 1, 20);
        assert_eq!((marks.free_slot(2), marks.all[0].step, marks.spare.len()), (0, 20, 1));
        // Memory for no more of them than there may be.
        assert_eq!((marks.free_slot(1), marks.spare.len()), (u32::MAX, 0));
    }
}
