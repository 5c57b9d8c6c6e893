//! What one execution allows that it did not show: which of its steps must have come before which, and which may be left out.
//!
//! A *reordering* takes a beginning of each thread's steps, closed under what a step needs: the steps before it of its thread, the creation of its
//! thread, all that it rests on (see `needs`), but for critical sections, of which only those are needed that were begun:
//! where two for one lock are among them, the earlier one is over. Then they can be run in the order in which they were: critical sections
//! for one lock keep their order (*sync-preserving*), and reads keep their writers (Tunc, Mathur, Pavlogiannis, Viswanathan, Sound Dynamic Deadlock
//! Prediction in Linear Time, PLDI 2023, Sections 3 and 4). A semaphore that is used as a lock is one.

use std::collections::{BTreeMap, BTreeSet};

use vsrun_model::depend::needs;
use vsrun_model::kind::{Lock, Role};
use vsrun_model::observe::{counts_alone, Count};
use vsrun_model::op::{TIMED, TRY};
use vsrun_model::{dependent_after, Act, ObjId, Tid, Uid};

use super::needs::{semaphores, Follow, Needs, OfLock, Pair, Semaphore};
use crate::held::{Held, Hold};
use crate::search::clock::{contains, join, Clock};
use crate::trace::Trace;

/// Steps of an execution that are looked at, and those times its threads.
const MOST_STEPS: usize = 20_000;
const MOST_CELLS: usize = 1 << 22;
/// Steps of one other thread that are asked whether a step depends on them, to find the first.
const MOST_FIRST: usize = 8;
/// Threads in a circle.
const MOST_IN_CIRCLE: usize = 32;
/// Circles of one execution.
const MOST_CIRCLES: usize = 1 << 10;
/// Steps of the search for those of so many threads; where they do not suffice no longer ones are sought.
const MOST_EXTENSIONS: usize = 1 << 16;

/// Who created a thread: the creator, after so many of its steps.
pub(super) type Origins = BTreeMap<Uid, (Uid, u32)>;

/// A critical section.
#[derive(Clone, Copy, Debug)]
struct Section {
    /// Where its thread has said that it waits for it, which keeps others out (a writer that goes before readers); otherwise as `from`.
    announced: usize,
    from: usize,
    to: Option<usize>,
    shared: bool,
    /// The last one of its thread for this lock up to here that is not shared: where it begins, and one more; 0: there is none.
    alone: usize,
}

/// A lock: by thread its sections, in order.
type Sections = BTreeMap<Tid, Vec<Section>>;

/// A thread waits for a lock while it holds others.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Request {
    pub thread: Tid,
    pub wants: Hold,
    pub holds: Vec<Hold>,
}

/// An execution, looked at.
pub(super) struct Run<'a> {
    trace: &'a Trace,
    /// Steps that are looked at.
    len: usize,
    /// By step: what must have come before it, and itself.
    clocks: Vec<Clock>,
    /// By step: what its thread must have before it.
    before: Vec<Clock>,
    locks: BTreeMap<ObjId, Sections>,
    /// Each with the steps that make it.
    requests: BTreeMap<Request, Vec<usize>>,
    /// Steps that followed each other at once.
    pairs: Vec<Pair>,
    /// Steps of which the later depends on the earlier, and on none that came before and need not have.
    farthest: Vec<Pair>,
}

/// What threads hold, semaphores that are used as locks among it.
#[derive(Default)]
struct Locks {
    held: Held,
    semaphores: Vec<(Tid, ObjId)>,
}

impl Locks {
    fn of(&self, t: Tid) -> Vec<Hold> {
        let mut all = self.held.of(t);
        let taken = self.semaphores.iter().filter(|taken| taken.0 == t);
        all.extend(taken.map(|&(_, lock)| Hold { lock, shared: false }));
        all.sort_unstable();
        all
    }

    fn step(&mut self, trace: &Trace, n: usize, semaphores: &BTreeMap<ObjId, Semaphore>) {
        self.held.step(trace, n);
        let act = &trace.steps[n].act;
        match counts_alone(act) {
            Some((id, _)) if semaphores.get(&id) != Some(&Semaphore::Lock) => {}
            Some((id, Count::Takes(_))) => self.semaphores.push((act.tid, id)),
            Some((id, Count::Adds(_))) => self.semaphores.retain(|taken| taken.1 != id),
            None => {}
        }
    }
}

impl<'a> Run<'a> {
    /// Looks at an execution whose steps and threads are known. `origins`: what is known of threads from others, and from this one.
    pub fn of(trace: &'a Trace, origins: &mut Origins) -> Run<'a> {
        let threads = trace.threads.len().max(1);
        let len = trace.steps.len().min(MOST_STEPS).min(MOST_CELLS / threads);
        let mut run = Run {
            trace,
            len,
            clocks: Vec::new(),
            before: Vec::new(),
            locks: BTreeMap::new(),
            requests: BTreeMap::new(),
            pairs: Vec::new(),
            farthest: Vec::new(),
        };
        let semaphores = semaphores(run.steps());
        let of_locks = run.note_sections(&semaphores);
        let creations = run.creations(origins);
        let Needs { clocks, before, pairs } = Follow::all(run.steps(), threads, &of_locks, &semaphores, &creations);
        (run.clocks, run.before, run.pairs) = (clocks, before, pairs);
        run.note_turns();
        run.note_farthest(&of_locks);
        run
    }

    /// The choices that were made, as far as they were looked at.
    pub fn steps(&self) -> &'a [vsrun_model::arena::Step] {
        &self.trace.steps[..self.len]
    }

    /// By thread: the step that made it, and one more; 0: nobody. What no execution has shown is taken for the last step of its creator's, or
    /// of anybody's, before its first one.
    fn creations(&self, origins: &mut Origins) -> Vec<usize> {
        let (steps, threads) = (self.steps(), &self.trace.threads);
        let mut counts = vec![0u32; threads.len()];
        let mut of_thread: Vec<Vec<usize>> = vec![Vec::new(); threads.len()];
        let mut known = vec![None; threads.len()];
        for (n, step) in steps.iter().enumerate() {
            let seen = &self.trace.seen[n];
            for s in seen {
                let slot = known.get_mut(s.act.tid as usize).filter(|slot| slot.is_none());
                let Some(slot) = slot else { continue };
                *slot = Some(n);
                // What is there in the first state was created before any step.
                let creator = if n == 0 { 0 } else { steps[n - 1].act.tid as usize };
                if let (Some(&uid), true) = (threads.get(s.act.tid as usize), self.is_shown(n)) {
                    origins.insert(uid, (threads[creator], counts[creator]));
                }
            }
            let t = step.act.tid as usize;
            if let (Some(count), Some(list)) = (counts.get_mut(t), of_thread.get_mut(t)) {
                *count += 1;
                list.push(n);
            }
        }
        let told = |t: usize| {
            let (creator, count) = origins.get(&threads[t])?;
            let c = threads.iter().position(|uid| uid == creator)?;
            Some(match count {
                0 => 0,
                _ => of_thread[c].get(*count as usize - 1).map_or(0, |n| n + 1),
            })
        };
        let first = |t: usize| of_thread[t].first().copied().unwrap_or(0);
        // In a prefix that was not recorded all that is pending behind it seems to be new there.
        let shown = |t: usize| known[t].filter(|&n| n <= first(t) && self.is_shown(n));
        (0..threads.len()).map(|t| shown(t).or_else(|| told(t)).unwrap_or(if t == 0 { 0 } else { first(t) })).collect()
    }

    /// What was not there in the state before step `n` - 1 is known, so what is new before step `n` is.
    fn is_shown(&self, n: usize) -> bool {
        n == 0 || !self.trace.seen[n - 1].is_empty()
    }

    /// Notes sections and requests; what each step does to locks.
    fn note_sections(&mut self, semaphores: &BTreeMap<ObjId, Semaphore>) -> Vec<OfLock> {
        let trace = self.trace;
        let mut held = Locks::default();
        let mut of_locks = Vec::with_capacity(self.len);
        // Since when threads wait to write.
        let mut waiting: BTreeMap<Tid, usize> = BTreeMap::new();
        for (n, step) in self.steps().iter().enumerate() {
            let (act, t) = (&step.act, step.act.tid);
            let before = held.of(t);
            held.step(trace, n, semaphores);
            let after = held.of(t);
            let mut of_lock = None;
            for hold in before.iter().filter(|h| !after.contains(h)) {
                of_lock = Some(hold.lock);
                let sections = self.locks.entry(hold.lock).or_default().entry(t).or_default();
                if let Some(last) = sections.last_mut().filter(|s| s.to.is_none()) {
                    last.to = Some(n);
                }
            }
            for &hold in after.iter().filter(|h| !before.contains(h)) {
                of_lock = Some(hold.lock);
                let sections = self.locks.entry(hold.lock).or_default().entry(t).or_default();
                let alone = if hold.shared { sections.last().map_or(0, |s| s.alone) } else { n + 1 };
                let waited = act.op.kind.row().role == Role::Acquires(Lock::Announced);
                let announced = waiting.remove(&t).filter(|_| waited).unwrap_or(n);
                sections.push(Section { announced, from: n, to: None, shared: hold.shared, alone });
                let held_before = before.iter().any(|h| h.lock == hold.lock);
                if waits_for_good(act) && !before.is_empty() && !held_before {
                    let request = Request { thread: t, wants: hold, holds: before.clone() };
                    self.requests.entry(request).or_default().push(n);
                }
            }
            let role = act.op.kind.row().role;
            if role == Role::Acquires(Lock::Write) && of_lock.is_none() {
                waiting.insert(t, n);
            }
            let pure = matches!(role, Role::Acquires(_) | Role::Releases(_) | Role::Takes | Role::Adds);
            of_locks.push(of_lock.map(|lock| (lock, pure)));
        }
        of_locks
    }

    /// Critical sections for one lock that came one behind the other could be the other way round.
    fn note_turns(&mut self) {
        for sections in self.locks.values().filter(|by| by.len() > 1) {
            let mut all: Vec<(usize, Tid, bool)> =
                sections.iter().flat_map(|(&t, list)| list.iter().map(move |s| (s.from, t, s.shared))).collect();
            all.sort_unstable();
            // The last section of each kind that another thread's may be turned with.
            let mut before: Vec<(usize, Tid, bool)> = Vec::new();
            for (n, t, shared) in all {
                let turned = before.iter().rev().find(|b| b.1 != t && !(b.2 && shared));
                self.pairs.extend(turned.map(|b| (b.0, n)));
                before.retain(|b| b.1 != t);
                before.push((n, t, shared));
            }
        }
    }

    /// The first that each operation could come before: so that it comes as early as it can.
    fn note_farthest(&mut self, of_locks: &[OfLock]) {
        let mut found = self.farthest_steps(of_locks);
        for sections in self.locks.values().filter(|by| by.len() > 1) {
            for (&t, list) in sections {
                for section in list {
                    let first = |(&other, all): (&Tid, &Vec<Section>)| {
                        let mut left = all[all.partition_point(|s| s.from < self.known(section.from, other))..].iter();
                        left.find(|s| !(s.shared && section.shared)).map(|s| s.from).filter(|&k| k < section.from)
                    };
                    let earlier = sections.iter().filter(|&(&other, _)| other != t).filter_map(first).min();
                    found.extend(earlier.map(|k| (k, section.from)));
                }
            }
        }
        found.sort_unstable_by_key(|&(k, n)| (n, k));
        self.farthest = found;
    }

    /// That of steps which neither take nor give back a lock.
    fn farthest_steps(&self, of_locks: &[OfLock]) -> Vec<Pair> {
        // By object and thread.
        let mut on: BTreeMap<ObjId, BTreeMap<Tid, Vec<usize>>> = BTreeMap::new();
        for (n, step) in self.steps().iter().enumerate().filter(|&(n, _)| of_locks[n].is_none()) {
            for object in step.act.op.operands() {
                on.entry(object).or_default().entry(step.act.tid).or_default().push(n);
            }
        }
        let steps = self.steps();
        let mut found = Vec::new();
        for by in on.values().filter(|by| by.len() > 1) {
            for (&t, list) in by {
                for &n in list {
                    let depends = |&&k: &&usize| {
                        k < n && dependent_after(&steps[k].act, steps[k].did, &steps[n].act, steps[n].did, false)
                    };
                    let first = |(&other, all): (&Tid, &Vec<usize>)| {
                        let from = all.partition_point(|&k| k < self.known(n, other));
                        all[from..].iter().take(MOST_FIRST).find(depends).copied()
                    };
                    let earlier = by.iter().filter(|&(&other, _)| other != t).filter_map(first).min();
                    found.extend(earlier.filter(|&k| !needs(&steps[k].act, &steps[n].act)).map(|k| (k, n)));
                }
            }
        }
        found
    }

    /// One past the last step of thread `t` that what comes before step `n` in its thread needs; 0: it needs none.
    fn known(&self, n: usize, t: Tid) -> usize {
        self.before[n].get(t as usize).copied().unwrap_or(0) as usize
    }

    /// What the steps before step `n` of its thread need.
    pub fn before(&self, n: usize) -> &Clock {
        &self.before[n]
    }

    /// Closes a set of steps. False: critical sections would have to be over that never were.
    pub fn close(&self, set: &mut Clock) -> bool {
        loop {
            let mut changed = false;
            for sections in self.locks.values().filter(|by| by.len() > 1) {
                // By thread the last section that was begun.
                let begun: Vec<&Section> = sections.iter().filter_map(|(&t, list)| last_in(set, t, list)).collect();
                let any = begun.iter().map(|s| s.from + 1).max().unwrap_or(0);
                let alone = begun.iter().map(|s| s.alone).max().unwrap_or(0);
                for section in begun {
                    let met = if section.shared { alone } else { any };
                    // Another one was begun behind it.
                    if met <= section.from + 1 {
                        continue;
                    }
                    let Some(to) = section.to else { return false };
                    let t = self.trace.steps[to].act.tid;
                    if !contains(set, t, to) {
                        join(set, &self.clocks[to]);
                        changed = true;
                    }
                }
            }
            if !changed {
                return true;
            }
        }
    }

    /// Whether step `n` is in a set.
    pub fn is_in(&self, set: &Clock, n: usize) -> bool {
        contains(set, self.trace.steps[n].act.tid, n)
    }

    /// A reordering at whose end each of the requests of a circle is made: the first there is.
    pub fn meet(&self, circle: &[&Request]) -> Option<Clock> {
        let mut set = Clock::new();
        let mut at = vec![0; circle.len()];
        loop {
            for (request, &at) in circle.iter().zip(&at) {
                join(&mut set, self.before(*self.requests[*request].get(at)?));
            }
            if !self.close(&mut set) {
                return None;
            }
            let mut moved = false;
            for (request, at) in circle.iter().zip(&mut at) {
                let steps = &self.requests[*request];
                while self.is_in(&set, *steps.get(*at)?) {
                    *at += 1;
                    moved = true;
                }
            }
            if !moved {
                return Some(set);
            }
        }
    }

    /// Circles of requests: each wants what the next one holds, no lock keeps two of them apart.
    pub fn circles(&self) -> Vec<Vec<&Request>> {
        let all: Vec<&Request> = self.requests.keys().collect();
        let mut by_wanted: BTreeMap<ObjId, Vec<usize>> = BTreeMap::new();
        // Who holds a lock while it waits.
        for (n, request) in all.iter().enumerate() {
            request.holds.iter().for_each(|hold| by_wanted.entry(hold.lock).or_default().push(n));
        }
        let mut found = Vec::new();
        let threads = all.iter().map(|request| request.thread).collect::<BTreeSet<_>>().len();
        // Short ones first: they are likelier, and long chains are many.
        for most in 2..=threads.min(MOST_IN_CIRCLE) {
            let mut extensions = 0;
            for n in 0..all.len() {
                extend(&all, &by_wanted, most, &mut vec![n], &mut found, &mut extensions);
            }
            if extensions > MOST_EXTENSIONS || found.len() >= MOST_CIRCLES {
                break;
            }
        }
        found
    }

    /// Pairs of steps that followed each other, of which the later could come first.
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// Steps of which the later could come before all that it depends on and does not need, and the first of those.
    pub fn farthest(&self) -> &[Pair] {
        &self.farthest
    }

    /// A reordering in which neither of two steps has been made and the later one is next, if possible both.
    pub fn turned(&self, (earlier, later): Pair) -> Option<Clock> {
        let mut both = self.before(later).clone();
        join(&mut both, self.before(earlier));
        let free = |set: &Clock| !self.is_in(set, earlier) && !self.is_in(set, later);
        if free(&both) && self.close(&mut both) && free(&both) {
            return Some(both);
        }
        let mut one = self.before(later).clone();
        (self.close(&mut one) && free(&one)).then_some(one)
    }
}

/// The last of the sections of thread `t` that was begun in a set.
fn last_in<'s>(set: &Clock, t: Tid, sections: &'s [Section]) -> Option<&'s Section> {
    let made = set.get(t as usize).copied().unwrap_or(0) as usize;
    sections[..sections.partition_point(|s| s.announced < made)].last()
}

/// It waits until it gets the lock: it does not only try, nor for some time.
fn waits_for_good(act: &Act) -> bool {
    match act.op.kind.row().role {
        Role::Acquires(Lock::Either) => false,
        Role::Acquires(_) | Role::Takes => !act.op.has(TRY) && !act.op.has(TIMED),
        // The time of a wait for a condition is not for the mutex.
        Role::Reacquires => true,
        _ => false,
    }
}

fn conflict(a: &Hold, b: &Hold) -> bool {
    a.lock == b.lock && !(a.shared && b.shared)
}

/// Extends a chain of requests, of which the first has the thread of the least number, to circles of `most`.
fn extend<'r>(
    all: &[&'r Request],
    holders: &BTreeMap<ObjId, Vec<usize>>,
    most: usize,
    path: &mut Vec<usize>,
    found: &mut Vec<Vec<&'r Request>>,
    extensions: &mut usize,
) {
    let (first, last) = (all[path[0]], all[path[path.len() - 1]]);
    if path.len() > 1 && first.holds.iter().any(|hold| conflict(hold, &last.wants)) {
        if path.len() == most {
            found.push(path.iter().map(|&n| all[n]).collect());
        }
        return;
    }
    if path.len() == most {
        return;
    }
    for &n in holders.get(&last.wants.lock).into_iter().flatten() {
        *extensions += 1;
        if found.len() >= MOST_CIRCLES || *extensions > MOST_EXTENSIONS {
            return;
        }
        let next = all[n];
        let waits = next.holds.iter().any(|hold| conflict(hold, &last.wants));
        let apart = |&m: &usize| {
            let other = all[m];
            let common = next.holds.iter().any(|h| other.holds.iter().any(|g| conflict(h, g)));
            next.thread != other.thread && !common
        };
        if waits && next.thread > first.thread && path.iter().all(apart) {
            path.push(n);
            extend(all, holders, most, path, found, extensions);
            path.pop();
        }
    }
}
