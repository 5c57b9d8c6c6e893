//! Dynamic partial-order reduction: the machinery that the two searches of [`super::ahead`] share.
//!
//! Every execution is looked at for races: pairs of steps, dependent, not ordered by what happens between them, and such
//! that the later one could have come first. For each race a sequence is put below the state before the earlier one: what
//! followed that one independently of it, then the later one. `optimal` inserts the whole sequence into a wakeup tree, so
//! that no execution is started that turns out to be redundant; `dpor` only one of its initial steps.
//!
//! One relation is used throughout: dependency in any state, sharpened by what an executed step did beyond its operation
//! ([`Effects`]), which is the same in all equivalent executions. Sharper, conditional ones do not define traces: with a
//! semaphore of value 1, a post and two waits have orders that are equivalent pair by pair and not on the whole.
//!
//! What the theory does not cover and this file adds:
//! * Operations that block. A step that was enabled, or is blocked in the end, may be disabled in the state that its race
//!   leads to: [`vsrun_model::before`] tells. Then the race is not reversible, and earlier steps are looked at that it
//!   would otherwise be ordered with through that race (a lock with the lock before, not only with its release). If several
//!   steps block it together (readers a writer, takers a semop), all of them are taken away.
//! * Alternatives (toss, choice of the woken thread) are steps of their own, each inserted where another was taken.
//! * An execution that ends early (assertion, crash) leaves threads enabled: its last step depends on everything.
//! * A step that ends other threads races with what they had pending.
//! * A circle of locks does not end an execution while something is enabled: the steps after it are explored with it.

use std::collections::BTreeSet;
use std::sync::Arc;

use vsrun_model::arena::{Policy, Seen};
use vsrun_model::before::{may_block, Answer, Did, Question};
use vsrun_model::depend::{as_it_stood, CANCELLED, TIMED_OUT, WOKEN};
use vsrun_model::kind::{FileLockUse, Role};
use vsrun_model::reach::Reach;
use vsrun_model::{dependent_after, signal, Act, Effects, End, Kind, Tid, NONE};

use super::api::{is_partial, Watch};
use super::canon::Canon;
use super::clock::{add, contains, join, Clock};
use super::index::{ByThread, Followed, Sought, Telling};
use super::route::{Route, Unsettled};
use super::tree::{Covered, Pending, Race, Step, Tree};
use super::ways::ways_to_take;
use crate::schedule::Schedule;
use crate::trace::Trace;

/// What is done with the sequence that reverses a race.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Insertion {
    /// All of it is put into a wakeup tree.
    Sequence,
    /// One of its initial steps is put into the source set.
    FirstStep,
}

/// A search by partial-order reduction that runs one execution after the other.
#[derive(Debug)]
pub struct Reduction {
    pub(super) insertion: Insertion,
    pub(super) tree: Tree,
    /// Steps from the root to where it begins: what is found for states before is left to others.
    pub(super) base: usize,
    /// It begins where others have expanded all that is awake, so sleep sets are all that keeps it from what they explore: see [`super::pieces`].
    pub(super) piece: bool,
    /// Something was cut, or an execution did other things than another with the same steps.
    pub(super) partial: bool,
    pub(super) transitions: u64,
    pub(super) sleep_blocked: u64,
    pub(super) watch: Watch,
    /// Steps that were looked at for races, of this execution.
    looked_at: usize,
    /// This execution has been given up.
    given_up: bool,
    /// The execution that was looked at last.
    followed: Box<Followed>,
    /// The way to the leaf that was taken last, or learnt of.
    pub(super) route: Route,
    pub(super) unsettled: Unsettled,
}

/// After so many steps that were looked at the watch is asked: some tenths of a second.
const LONG: usize = 1 << 21;

/// Of so many steps of an execution it is kept where those are that they meet.
const MOST_SOUGHT: usize = 1 << 12;

/// Debug builds ask all steps as well where they are no more.
const CHECKED: usize = 1 << 8;

/// The execution that is being looked at.
pub(super) struct Run {
    /// Node before step `i`; one more than there are steps.
    pub(super) path: Vec<usize>,
    /// The first step whose races have not been looked for.
    fresh: usize,
    /// The steps that are known.
    followed: Box<Followed>,
    /// Where those are that the steps from `fresh` on meet, so that it is found out once; of the first ones only.
    sought: Vec<Sought>,
    /// Timeouts could fire at any moment.
    any_moment: bool,
    /// Its next step slept in the last state of `path`: what it did from there others do.
    slept: bool,
}

/// True if threads may have been enabled in the last state all the same.
fn ended_early(end: End) -> bool {
    let nothing_left = matches!(end, End::FINISHED | End::DEADLOCK | End::CYCLE | End::WAITS_OUTSIDE);
    !nothing_left && !matches!(end, End::SLEEP_BLOCKED | End::DEPTH | End::MISMATCH)
}

impl Reduction {
    /// A search that has not begun.
    pub fn new(insertion: Insertion) -> Reduction {
        Reduction {
            insertion,
            tree: Tree::new(),
            base: 0,
            piece: false,
            partial: false,
            transitions: 0,
            sleep_blocked: 0,
            watch: Watch::default(),
            looked_at: 0,
            given_up: false,
            followed: Box::default(),
            route: Route::default(),
            unsettled: Unsettled::default(),
        }
    }

    /// An execution along `path`, whose first `fresh` steps have been looked at; [`Reduction::keeps_index_of`] ends it.
    pub(super) fn run_along(&mut self, path: Vec<usize>, fresh: usize, trace: &Trace) -> Run {
        let followed = std::mem::take(&mut self.followed);
        Run { path, fresh, followed, sought: Vec::new(), any_moment: trace.any_moment, slept: false }
    }

    /// No more is asked of this execution: its index is kept for the next one.
    pub(super) fn keeps_index_of(&mut self, run: Run) {
        self.followed = run.followed;
    }

    /// A search of what is below a leaf that waits.
    pub fn branch(&self, leaf: usize) -> Reduction {
        let base = self.tree.node(leaf).depth;
        let watch = self.watch.clone();
        let (tree, piece) = (self.tree.branch(leaf), self.piece);
        let unsettled = Unsettled::of(&tree);
        Reduction { tree, base, piece, watch, unsettled, ..Reduction::new(self.insertion) }
    }

    /// The next execution to run, with its leaf; its ticket is to be given. `None`: nothing waits.
    pub fn take(&mut self) -> Option<(usize, Schedule)> {
        let leaf = self.tree.take()?;
        self.route.turn_to(&self.tree, leaf);
        let path = self.route.nodes().to_vec();
        let known = self.route.visited(&self.tree);
        let schedule = Schedule {
            prefix: self.route.choices().to_vec(),
            sleep: self.sleep_of(&path),
            policy: Policy::STAY,
            record: true,
            record_back: (path.len() - 1 - known.min(path.len() - 1)) as u32,
            unsure: self.tree.node(leaf).unsure,
            past_cycles: true,
            wake_by_effects: self.insertion == Insertion::FirstStep || self.piece,
            expected_effects: self.tree.node(leaf).step.map_or(Effects::NONE, |s| s.did),
            ..Schedule::default()
        };
        Some((leaf, schedule))
    }

    /// What sleeps at the end of a path, by the numbers that threads will have in the execution. With wakeup trees
    /// that is nothing, but where an operation did more than was known when its sequence was inserted.
    fn sleep_of(&mut self, path: &[usize]) -> Vec<(Tid, u32)> {
        let visited = path.iter().rposition(|&n| self.tree.node(n).visited);
        let Some(visited) = visited else { return Vec::new() };
        for &n in &path[visited + 1..] {
            let sleep = self.tree.sleep_at(n);
            self.tree.node_mut(n).sleep = sleep;
        }
        let known = &self.tree.node(path[visited]).pending;
        let raw = |s: &Step| known.iter().find(|p| p.act.tid == s.thread()).map(|p| (p.raw, s.value));
        let leaf = path.last().copied().unwrap_or(0);
        // What depends on everything is awake after any step; the execution does not know what did.
        self.tree.node(leaf).sleep.iter().filter(|s| !s.did.wakes_others()).filter_map(raw).collect()
    }

    /// What the execution did that was taken with `leaf`; `canon`: what its numbers mean. Gives nodes that are gone because it
    /// ended before them; others are gone because all below them is complete.
    pub fn learn(&mut self, leaf: usize, trace: &Trace, canon: &Canon) -> BTreeSet<usize> {
        let mut gone = BTreeSet::new();
        self.route.turn_to(&self.tree, leaf);
        let mut path = self.route.nodes().to_vec();
        let visited = self.route.visited(&self.tree);
        let length = trace.steps.len() as u64 + trace.unrecorded;
        self.transitions += length.saturating_sub(visited.saturating_sub(1) as u64);
        self.sleep_blocked += u64::from(trace.end == End::SLEEP_BLOCKED);
        let unsure = self.tree.node(leaf).unsure;
        if unsure && trace.end == End::MISMATCH {
            // The race cannot be reversed after all: an execution for nothing.
            self.sleep_blocked += 1;
            let last = path.iter().rev().copied().find(|&n| self.tree.node(n).visited).unwrap_or(0);
            let blocked = path.get(trace.steps.len() + 1).copied().filter(|&n| !self.tree.node(n).visited);
            let (gone, covers) = self.tree.withdraw(blocked.unwrap_or(leaf));
            for Covered { depth, v, unsure, .. } in covers {
                self.insert(path[depth], v, unsure);
            }
            self.tree.complete(last);
            return gone;
        }
        // It was not blocked, and covers what it was to cover.
        let node = self.tree.node_mut(leaf);
        (node.unsure, node.covers) = (false, Vec::new());
        self.partial |= is_partial(trace);
        if trace.steps.len() + 1 < path.len() {
            path.truncate(trace.steps.len() + 1);
            let last = path.last().copied().unwrap_or(0);
            gone = self.tree.cut(last);
            // It ended where another one, which went the same way, went on: something in it is not controlled.
            if !ended_early(trace.end) || path.len() < visited {
                self.partial = true;
                self.tree.complete(last);
                return gone;
            }
        }
        let fresh = visited.saturating_sub(1);
        let mut run = self.run_along(path, fresh, trace);
        match self.extend(trace, canon, &mut run) {
            true if run.slept => self.look_at_beginning(trace, &run),
            true => self.look_at(trace, &run),
            false => self.partial = true,
        }
        let last = run.path.last().copied().unwrap_or(leaf);
        self.tree.complete(last);
        self.keeps_index_of(run);
        gone
    }

    /// Fills in the states that the execution has reached, from the first that had not been. False: the trace is not what
    /// its schedule said, or something in it is missing.
    pub(super) fn extend(&mut self, trace: &Trace, canon: &Canon, run: &mut Run) -> bool {
        if !self.tree.node(run.path[0]).visited {
            let Some(seen) = trace.seen.first().or(Some(&trace.last)) else { return false };
            self.visit(run.path[0], None, seen, canon);
        }
        debug_assert_eq!(&run.path[..=run.fresh], &self.route.nodes()[..=run.fresh]);
        let known = run.followed.turn_to(&self.route.serials()[1..=run.fresh]);
        for n in known..run.fresh {
            let step = *self.step(run, n);
            run.followed.add(self.tree.node(run.path[n + 1]).serial, &step.act, step.did);
        }
        for n in run.fresh..trace.steps.len() {
            let step = &trace.steps[n];
            let after = trace.seen.get(n + 1).unwrap_or(&trace.last);
            if after.is_empty() && n + 1 < trace.steps.len() {
                return false;
            }
            let mut did = step.did;
            if n + 1 == trace.steps.len() && ended_early(trace.end) {
                did = did.with(Effects::LAST);
            }
            let new = Step { act: canon.act(&step.act), value: step.value, did };
            if self.piece && n >= self.base && run.path.len() == n + 1 && self.sleeps(run.path[n], &new) {
                run.slept = true;
                return true;
            }
            match run.path.get(n + 1).copied() {
                Some(at) => {
                    if !self.tree.node(at).step.is_some_and(|old| same(&old, &new)) {
                        return false;
                    }
                    // What was to be awake after the step as it was expected stays awake after the step as it came.
                    let expected = self.tree.sleep_at(at);
                    self.tree.node_mut(at).step = Some(new);
                    let sleep = self.tree.sleep_at(at);
                    let both = |s: &Step| expected.iter().any(|e| e.thread() == s.thread() && e.value == s.value);
                    self.tree.node_mut(at).sleep = sleep.into_iter().filter(both).collect();
                }
                None => {
                    let at = self.tree.add_started(run.path[n], new);
                    run.path.push(at);
                    let mut sleep = self.tree.sleep_at(at);
                    // What the execution woke is awake.
                    let asleep = |s: &Step| after.iter().any(|q| q.act.uid == s.act.uid && q.asleep != 0);
                    let all = self.insertion == Insertion::Sequence || n + 1 == trace.steps.len();
                    sleep.retain(|s| all || asleep(s));
                    self.tree.node_mut(at).sleep = sleep;
                }
            }
            let (clock, sought) = self.clock_of_step(run, n);
            self.tree.node_mut(run.path[n + 1]).clock = clock;
            if run.sought.len() == n - run.fresh && run.sought.len() < MOST_SOUGHT {
                run.sought.push(sought);
            }
            run.followed.add(self.tree.node(run.path[n + 1]).serial, &new.act, new.did);
            self.visit(run.path[n + 1], Some(run.path[n]), after, canon);
        }
        true
    }

    /// Fills in what is pending in a state.
    fn visit(&mut self, at: usize, before: Option<usize>, seen: &[Seen], canon: &Canon) {
        let (depth, step) = (self.tree.node(at).depth, self.tree.node(at).step);
        let mover = step.map(|s| s.thread());
        let place = |s: &Seen| {
            let act = canon.act(&s.act);
            let stood = before.filter(|_| mover != Some(act.tid)).and_then(|b| self.pending_of(b, act.tid));
            let since = stood.filter(|p| p.act == act).map_or(depth, |p| p.since);
            Pending { act, choices: s.choices, origin: stood.map_or(depth, |p| p.origin), since, raw: s.act.tid }
        };
        let pending: Arc<[Pending]> = seen.iter().map(place).collect();
        let node = self.tree.node_mut(at);
        node.pending = pending;
        node.visited = true;
    }

    pub(super) fn pending_of(&self, at: usize, thread: u32) -> Option<&Pending> {
        self.tree.node(at).pending.iter().find(|p| p.act.tid == thread)
    }

    pub(super) fn step(&self, run: &Run, n: usize) -> &Step {
        // invariant: nodes after the root have steps.
        self.tree.node(run.path[n + 1]).step.as_ref().unwrap_or(&NO_STEP)
    }

    pub(super) fn clock(&self, run: &Run, n: usize) -> &Clock {
        &self.tree.node(run.path[n + 1]).clock
    }

    /// What happened before the operation became pending.
    pub(super) fn clock_of_origin(&self, run: &Run, origin: usize) -> Clock {
        origin.checked_sub(1).map_or(Clock::new(), |step| self.clock(run, step).clone())
    }

    /// Whether step `j` and a later one, performed with `did` or pending, are dependent: as it was performed, and as it
    /// stood when step `j` was made.
    pub(super) fn meets(&self, run: &Run, j: usize, p: &Pending, did: Effects) -> bool {
        let e = self.step(run, j);
        if dependent_after(&e.act, e.did, &p.act, did, false) {
            return true;
        }
        let stood = if p.origin <= j { self.pending_of(run.path[j], p.act.tid) } else { None };
        stood.is_some_and(|q| dependent_after(&e.act, e.did, &as_it_stood(&q.act, &p.act), did, false))
    }

    /// Where those of the first `n` steps are that meet `p`, as it is or as it stood since it became pending.
    fn sought(&self, run: &Run, n: usize, p: &Pending, did: Effects) -> Sought {
        let mut sought = Sought::new();
        sought.add(&p.act, did);
        let mut end = n;
        while end > p.origin {
            let Some(stood) = self.pending_of(run.path[end - 1], p.act.tid) else {
                end -= 1;
                continue;
            };
            let since = stood.since.min(end - 1);
            let act = as_it_stood(&stood.act, &p.act);
            if act != p.act {
                sought.add_as_it_stood(&act, did, (since, end));
            }
            end = since;
        }
        sought
    }

    /// What happens before `p` if it is performed after the first `n` steps; `sought`: where those are that it meets.
    fn clock_before(&self, run: &Run, n: usize, (p, did): (&Pending, Effects), sought: &Sought) -> Clock {
        let mut clock = self.clock_of_origin(run, p.origin);
        let mut candidates = run.followed.index.candidates(n, sought);
        while let Some(j) = candidates.next(&clock) {
            if self.meets(run, j, p, did) {
                join(&mut clock, self.clock(run, j));
            }
        }
        clock
    }

    /// What happens before step `n`, with itself, and where those are that it meets.
    fn clock_of_step(&self, run: &Run, n: usize) -> (Clock, Sought) {
        let step = *self.step(run, n);
        let (mut clock, sought) = match self.performed(run, n) {
            Some(p) => {
                let sought = self.sought(run, n, &p, step.did);
                (self.clock_before(run, n, (&p, step.did), &sought), sought)
            }
            None => (Clock::new(), Sought::default()),
        };
        add(&mut clock, step.thread(), n);
        (clock, sought)
    }

    /// Step `n` as a pending operation: as it was performed.
    fn performed(&self, run: &Run, n: usize) -> Option<Pending> {
        let step = self.step(run, n);
        let stood = self.pending_of(run.path[n], step.thread())?;
        Some(Pending { act: step.act, ..*stood })
    }

    /// Seeks the races of an execution and inserts what reverses them.
    pub(super) fn look_at(&mut self, trace: &Trace, run: &Run) {
        let total = trace.steps.len();
        (self.looked_at, self.given_up) = (0, false);
        for depth in self.unsettled.on(&self.tree, &run.path, run.fresh) {
            self.settle(run, depth - 1);
        }
        for n in run.fresh..total {
            if self.gives_up(1) {
                return;
            }
            let Some(p) = self.performed(run, n) else { continue };
            let did = self.step(run, n).did;
            self.alternatives(run, n, trace.steps[n].choices);
            // Both are as when the step was filled in.
            match run.sought.get(n - run.fresh) {
                Some(sought) => self.races_of(run, n, (&p, did), sought, self.clock(run, n).clone()),
                None => self.races(run, n, &p, did),
            }
            if did.has(Effects::LAST) {
                self.instead(run, n, |_| true);
            } else {
                let after = run.path[n + 1];
                let left: Vec<u32> = self.tree.node(after).pending.iter().map(|p| p.act.tid).collect();
                self.instead(run, n, |thread| !left.contains(&thread));
                if self.insertion == Insertion::FirstStep {
                    self.blocked_by(run, n);
                }
            }
        }
        if !ended_early(trace.end) {
            for p in Arc::clone(&self.tree.node(run.path[total]).pending).iter() {
                if trace.end == End::SLEEP_BLOCKED && self.insertion == Insertion::Sequence {
                    // What slept for the execution need not sleep here: effects were not known to it.
                    for value in 0..p.choices {
                        self.insert(run.path[total], vec![Step { act: p.act, value, did: Effects::NONE }], false);
                    }
                }
                self.races(run, total, p, Effects::NONE);
            }
        }
    }

    /// Another so many steps are looked at. True: the execution is given up, and what its races lead to is not explored.
    pub(super) fn gives_up(&mut self, steps: usize) -> bool {
        self.looked_at += steps;
        if self.looked_at >= LONG {
            self.looked_at = 0;
            self.given_up |= self.watch.ends();
            self.partial |= self.given_up;
        }
        self.given_up
    }

    /// Inserts the other alternatives of step `n`.
    fn alternatives(&mut self, run: &Run, n: usize, choices: u32) {
        let step = *self.step(run, n);
        for value in (0..choices).filter(|&v| v != step.value) {
            self.insert(run.path[n], vec![Step { value, did: Effects::NONE, ..step }], false);
        }
    }

    /// Step `n` has ended threads that `ended` tells, or everything: what they had pending comes before it instead.
    fn instead(&mut self, run: &Run, n: usize, ended: impl Fn(u32) -> bool) {
        let mover = self.step(run, n).thread();
        let pending = Arc::clone(&self.tree.node(run.path[n]).pending);
        for p in pending.iter().filter(|p| p.act.tid != mover && ended(p.act.tid)) {
            if p.choices > 0 {
                for value in 0..p.choices {
                    let mut v = vec![Step { act: p.act, value, did: Effects::NONE }];
                    v.extend(comes_after(self.step(run, n), &p.act));
                    self.insert(run.path[n], v, false);
                }
            } else {
                self.races(run, n, p, Effects::NONE);
            }
        }
    }

    /// Step `n` has blocked threads: what they had pending races with what came before, although they may go on later. What lets
    /// them go on is then before them, and may sleep where they were to come first; and a source set need not keep to the
    /// sequence from which it has its first step.
    fn blocked_by(&mut self, run: &Run, n: usize) {
        let blocked = Arc::clone(&self.tree.node(run.path[n + 1]).pending);
        for p in blocked.iter().filter(|p| p.choices == 0) {
            if self.pending_of(run.path[n], p.act.tid).is_some_and(|before| before.choices > 0) {
                self.races(run, n + 1, p, Effects::NONE);
            }
        }
    }

    /// Seeks the steps among the first `n` that `p`, performed or blocked after them, races with.
    fn races(&mut self, run: &Run, n: usize, p: &Pending, did: Effects) {
        let sought = self.sought(run, n, p, did);
        let before = self.clock_before(run, n, (p, did), &sought);
        self.races_of(run, n, (p, did), &sought, before);
    }

    /// The same; `sought`: where those are that `p` meets, `before`: what happens before it, and itself or not.
    fn races_of(&mut self, run: &Run, n: usize, (p, did): (&Pending, Effects), sought: &Sought, before: Clock) {
        let mut covered = self.clock_of_origin(run, p.origin);
        let mut blockers = ByThread::default();
        let mut candidates = run.followed.index.candidates(n, sought);
        let mut late = Late { n, p, did, before, telling: None };
        while let Some(j) = candidates.next(&covered) {
            if !self.meets(run, j, p, did) {
                continue;
            }
            if self.gives_up(n - j) {
                return;
            }
            let mut answer = self.reverse(run, &mut late, &[j]);
            // Each way to take away enough leads to other executions.
            let several = answer == Answer::No
                || answer == Answer::Unknown && matches!(p.act.op.kind.row().role, Role::FileLock(_));
            if several {
                // What follows it is taken away with it.
                for taken in ways_to_take(j, &blockers.apart(|b| self.follows(run, b, &[j]))) {
                    if self.gives_up(n - j + taken.len()) {
                        return;
                    }
                    if self.reverse(run, &mut late, &taken) == Answer::Yes {
                        answer = Answer::Yes;
                    }
                }
            }
            match answer {
                // Races further back are found in the execution that this one leads to. One that a source set leads to may
                // be cut off before.
                Answer::Yes if self.insertion == Insertion::Sequence => join(&mut covered, self.clock(run, j)),
                _ if several && may_block(&self.step(run, j).act, &p.act) => {
                    blockers.add(self.step(run, j).thread(), j);
                }
                _ => {}
            }
        }
    }

    /// Puts `p` before the steps `taken`, the first of which is the earliest, if it is enabled there.
    fn reverse<'r>(&mut self, run: &'r Run, late: &mut Late<'_, 'r>, taken: &[usize]) -> Answer {
        let at = taken[0];
        let mut telling = late.telling.take().unwrap_or_else(|| self.telling(run, late.n, late.p));
        let steps = telling.from(at, |k| self.step(run, k).thread());
        let (answer, act) = self.answer(run, late, taken, steps);
        debug_assert!(
            late.n - at > CHECKED || (answer, act) == self.answer(run, late, taken, &self.all(run, at..late.n)),
            "a step that tells is left out"
        );
        late.telling = Some(telling);
        let (n, p, did) = (late.n, late.p, late.did);
        let free = match self.insertion {
            Insertion::Sequence => Vec::new(),
            Insertion::FirstStep => (at..n).filter(|&k| !self.follows(run, k, taken)).collect(),
        };
        if answer == Answer::No {
            if self.insertion == Insertion::FirstStep && taken.len() == 1 {
                self.insert_first_of(run, at, &free, p, &[Step { act: p.act, value: 0, did }], did);
            }
            return answer;
        }
        let act = self.as_reaching(run, n, p, act, taken);
        let otherwise = Reach::of(&act) != Reach::of(&p.act);
        // Others are found once the first of them has been run there.
        let same = |&value: &u32| self.means_the_same(run, n, p, value, taken);
        let value = self.alternative_of(run, n, p).filter(same).unwrap_or(0);
        let did_there = if did.has(Effects::LEAVES_ONE) { self.did_without(run, n, taken) } else { did };
        let mut last = vec![Step { act, value, did: did_there }];
        last.extend(comes_after(self.step(run, at), &act));
        match self.insertion {
            Insertion::Sequence => {
                let race = Race { taken: taken.to_vec(), last, unsure: answer == Answer::Unknown, otherwise };
                self.put(run, n, race);
            }
            Insertion::FirstStep => self.insert_first_of(run, at, &free, p, &last, did),
        }
        answer
    }

    /// The steps among the first `n` by which is told whether `p` could have come earlier.
    fn telling<'r>(&self, run: &'r Run, n: usize, p: &Pending) -> Telling<'r> {
        let mut asked = Sought::new();
        asked.ask(&p.act, 0);
        // Steps that changed it while it stood.
        let (mut changes, mut end) = (Vec::new(), n);
        while let Some(stood) = self.pending_of(run.path[end], p.act.tid).filter(|_| end >= p.origin) {
            let since = stood.since.min(end);
            // What matters to it as it stood may come at any time after that.
            asked.ask(&stood.act, since);
            match since {
                since if since > p.origin => {
                    changes.push(since - 1);
                    end = since - 1;
                }
                _ => break,
            }
        }
        Telling::new(run.followed.index.candidates(n, &asked), changes)
    }

    /// All of these steps.
    fn all(&self, run: &Run, steps: std::ops::Range<usize>) -> ByThread {
        let mut all = ByThread::default();
        steps.rev().for_each(|k| all.add(self.step(run, k).thread(), k));
        all
    }

    /// Whether `p` is enabled without the steps `taken` and what follows them, and as what; asked are the steps `among`.
    fn answer(&self, run: &Run, late: &Late, taken: &[usize], among: &ByThread) -> (Answer, Act) {
        let (n, p, before) = (late.n, late.p, &late.before);
        let at = taken[0];
        let did = |k: usize| {
            let step = self.step(run, k);
            let (found, woke) = self.found(run, k, p);
            let lives = || self.tree.node(run.path[n]).pending.iter().any(|q| q.act.pid == step.act.pid);
            let over = step.did.has(Effects::ENDS) && !lives();
            let before = contains(before, step.thread(), k);
            Did { act: &step.act, did: step.did, before, found, woke, over }
        };
        let steps = among.apart(|k| self.follows(run, k, taken));
        let kept: Vec<Did> = steps.iter().map(|&k| did(k)).collect();
        let seen = if p.origin <= at { self.pending_of(run.path[at], p.act.tid) } else { None };
        let first = self.pending_of(run.path[p.origin], p.act.tid).map_or(&p.act, |f| &f.act);
        let seen = seen.map(|s| (&s.act, s.choices));
        let any_moment = run.any_moment;
        let (performed, lock_waits) = (p.choices > 0, self.others_lock_records(run, at, n, p));
        let question =
            Question { act: &p.act, performed, first, seen, kept: &kept, dropped: &[], lock_waits, any_moment };
        // Mostly nothing that stays matters to it.
        if let Some(answer) = question.as_seen() {
            return answer;
        }
        let all = among.all();
        let dropped: Vec<Did> = all.iter().filter(|k| steps.binary_search(k).is_err()).map(|&k| did(k)).collect();
        let question = Question { dropped: &dropped, ..question };
        let answer = question.answer();
        // Where by its objects it would be enabled and was not, its process is over, or stopped.
        let as_it_was = || {
            let all: Vec<Did> = all.iter().map(|&k| did(k)).collect();
            Question { seen: None, kept: &[], dropped: &all, ..question }.answer().0
        };
        let was_blocked = seen.is_some_and(|(_, choices)| choices == 0) && !kept.is_empty();
        match answer {
            (Answer::Yes, act) if was_blocked && as_it_was() == Answer::Yes => (Answer::Unknown, act.at_most()),
            answer => answer,
        }
    }

    /// `act`, the operation `p` in the state that comes without the steps `taken` and what follows them: on descriptors, with the
    /// channels that it reaches there. Rather more than less, where steps that are taken away changed them.
    fn as_reaching(&self, run: &Run, n: usize, p: &Pending, act: Act, taken: &[usize]) -> Act {
        let at = taken[0];
        let stands =
            |k: usize| if k == n { Some(&p.act) } else { self.pending_of(run.path[k], p.act.tid).map(|q| &q.act) };
        let reach = |k: usize| stands(k).and_then(Reach::of);
        let Some(mut here) = reach(at.max(p.origin)) else { return act };
        let mut changed = false;
        for k in at..n {
            let away = self.follows(run, k, taken);
            if k < p.origin {
                // What it would reach beyond that is not recorded for an operation that comes later.
                let taken = away.then(|| here.with(here.taken_by(&self.step(run, k).act)));
                (changed, here) = (changed || taken.is_some_and(|with| with != here), taken.unwrap_or(here));
                continue;
            }
            let (Some(before), Some(after)) = (reach(k), reach(k + 1)) else { return act };
            match away {
                true => changed |= before != after,
                false => here = here.with(after.beyond(before)),
            }
        }
        match changed {
            true => here.put(&act),
            false => act,
        }
    }

    /// The alternative in which `p` is performed as step `n`, if it is.
    fn alternative_of(&self, run: &Run, n: usize, p: &Pending) -> Option<u32> {
        let step = self.tree.node(*run.path.get(n + 1)?).step?;
        (step.thread() == p.act.tid).then_some(step.value)
    }

    /// Whether an alternative of `p`, as it is performed as step `n`, means the same without the steps `taken`: one of a toss does
    /// everywhere, one in which a signal comes where the same ones are pending, and who is woken where nothing is taken away
    /// that is about the same object.
    fn means_the_same(&self, run: &Run, n: usize, p: &Pending, value: u32, taken: &[usize]) -> bool {
        let at = taken[0];
        if p.act.op.kind == Kind::TOSS && i64::from(value) <= p.act.op.arg {
            return true;
        }
        // The last one of those is that a request to end the thread is heeded. Whether it is the only one is seen in a state in which it is pending.
        if p.act.fate & CANCELLED != 0 {
            let stood = self.pending_of(run.path[at], p.act.tid).filter(|_| p.origin <= at);
            let as_there = stood.is_some_and(|s| s.act.fate & CANCELLED != 0 && s.choices == p.choices);
            return value > 0 && as_there && p.act.op.signals == 0;
        }
        if p.act.op.signals != 0 {
            let ways = |act: &Act| act.op.signals & (signal::ALTERNATIVES | signal::NUMBER);
            let stood = self.pending_of(run.path[at.max(p.origin)], p.act.tid);
            return stood.is_some_and(|s| ways(&s.act) == ways(&p.act) && s.choices == p.choices);
        }
        // How many timers have fired meanwhile, where there is something else or not; whether a child that was killed is over.
        if p.act.op.kind.row().channels.watches() || p.act.op.kind == Kind::WAIT {
            let stood = self.pending_of(run.path[at], p.act.tid).filter(|_| p.origin <= at);
            let as_there = stood.is_some_and(|s| s.choices == p.choices && s.act.state == p.act.state);
            let about = |k: usize| {
                let step = &self.step(run, k).act.op;
                step.mask & p.act.op.mask != 0 || p.act.op.kind == Kind::WAIT
            };
            return value > 0 && (as_there || !(at..n).any(|k| self.follows(run, k, taken) && about(k)));
        }
        // What closes all that a process has names no object.
        let channels = p.act.op.kind.row().channels.any();
        let about = |k: usize| {
            let step = &self.step(run, k).act.op;
            let theirs = step.operands();
            p.act.op.operands().iter().any(|&o| o != NONE && theirs.contains(&o))
                || channels && step.mask & p.act.op.mask != 0
        };
        value > 0 && !(at..n).any(|k| self.follows(run, k, taken) && about(k))
    }

    /// Whether threads of other processes than that of `p`, a record lock, may wait for record locks between steps `at` and `n`.
    fn others_lock_records(&self, run: &Run, at: usize, n: usize, p: &Pending) -> bool {
        let locks = |a: &Act| a.op.kind.row().role == Role::FileLock(FileLockUse::Takes);
        if !locks(&p.act) {
            return false;
        }
        let waits = |a: &Act| locks(a) && a.pid != p.act.pid && !a.op.tries();
        let pending = |k: usize| self.tree.node(run.path[k]).pending.iter().any(|q| waits(&q.act));
        (at..n).any(|k| waits(&self.step(run, k).act)) || pending(at) || pending(n)
    }

    /// What step `k` does beyond its operation without the steps `taken` and what follows them: it does not leave one thread alone in its process
    /// where another one has come to its end with a step that is taken away. The ends of threads commute, so such a step
    /// is kept; taken for one that leaves one, it would wake what sleeps, and a trace would be run again.
    pub(super) fn did_without(&self, run: &Run, k: usize, taken: &[usize]) -> Effects {
        let (step, at) = (self.step(run, k), taken[0]);
        let pid = step.act.pid;
        let there = |thread: u32| self.pending_of(run.path[at], thread).is_some();
        let ended = |d: usize| {
            let other = self.step(run, d);
            let ends = other.act.pid == pid && other.did.has(Effects::ENDS) && there(other.thread());
            ends && self.follows(run, d, taken)
        };
        // Threads that only begin after what is taken away do not count.
        let left = || self.tree.node(run.path[k + 1]).pending.iter().filter(|p| p.act.pid == pid);
        let stale = step.did.has(Effects::LEAVES_ONE) && (at..k).any(ended) && left().all(|p| there(p.act.tid));
        if stale {
            step.did.without(Effects::LEAVES_ONE)
        } else {
            step.did
        }
    }

    /// Step `k` happens after one of the steps `taken`, or is one.
    pub(super) fn follows(&self, run: &Run, k: usize, taken: &[usize]) -> bool {
        let clock = self.clock(run, k);
        taken.iter().any(|&t| contains(clock, self.step(run, t).thread(), t))
    }

    /// The recorded state of `p` before and after step `k`, if it was pending in both; and whether that woke it.
    fn found(&self, run: &Run, k: usize, p: &Pending) -> (Option<(i64, i64)>, bool) {
        if p.origin > k {
            return (None, false);
        }
        let before = self.pending_of(run.path[k], p.act.tid).map(|q| &q.act);
        let after = self.pending_of(run.path[k + 1], p.act.tid).map_or(&p.act, |q| &q.act);
        let Some(before) = before else { return (None, false) };
        (Some((before.state, after.state)), before.fate & WOKEN == 0 && after.fate & WOKEN != 0)
    }
}

/// An operation that is to come earlier.
struct Late<'p, 'r> {
    /// It is performed, or blocked, after so many steps.
    n: usize,
    p: &'p Pending,
    did: Effects,
    /// What happens before it.
    before: Clock,
    /// Found out when it is asked for.
    telling: Option<Telling<'r>>,
}

const NO_STEP: Step = Step { act: NO_ACT, value: 0, did: Effects::NONE };
const NO_ACT: Act = Act::NOTHING;

/// Step `e` if it is to follow the operation that it raced with. Where their operations depend on each other, they do so
/// whatever comes before, and the order of the two follows by itself. Where only their effects do (an assertion that fails,
/// the end of a thread, a deadline that fires, an alternative of a toss), that may be so after some steps and not after others: then what sleeps
/// may cover the first of the two and not both.
fn comes_after(e: &Step, p: &Act) -> Option<Step> {
    let plain = |act: &Act| Act { fate: act.fate & !TIMED_OUT, ..*act };
    (!dependent_after(&plain(&e.act), Effects::NONE, &plain(p), Effects::NONE, false)).then_some(*e)
}

/// The same thread does the same in the same alternative.
fn same(a: &Step, b: &Step) -> bool {
    let op = |s: &Step| (s.act.uid, s.value, s.act.op.kind, s.act.op.obj, s.act.op.obj2, s.act.op.arg);
    op(a) == op(b)
}
