//! Dynamic partial-order reduction (Flanagan and Godefroid, POPL 2005) with sleep sets (Godefroid) that use
//! conditional dependency (Stoller, TR 536, Section 7).
//!
//! Depth-first search. For every transition, and for what is pending in the last state, the earlier transitions are
//! sought that it races with: dependent, not ordered by happens-before, and possibly enabled together. In the state
//! before such a transition a thread must be tried that leads to the opposite order: one that can begin what follows
//! it independently of it and ends with the later one (the initials of source sets: Abdulla, Aronis, Jonsson, Sagonas,
//! POPL 2014). The condition of Flanagan and Godefroid is weaker and not enough beside sleep sets: the thread that
//! it asks for may be asleep where another should be tried.
//!
//! Two relations are in use. Races and happens-before use dependency in any state (`conditional` = false), sharpened
//! by what is known of an executed transition: whether it ended its thread. Sleep sets use dependency in the recorded
//! state. What the theory does not cover and this file adds:
//! * An execution that ends early (assertion, crash, circle of locks) leaves threads enabled. Its last transition
//!   disables everything, so everything enabled before it is tried instead of it.
//! * A yield is enabled once another thread has moved since it was reached: a transition that leads to one depends on
//!   everything. As that is known only once it has been performed, it is not put to sleep.
//! * A transition that ends other threads races with what they had pending.
//! * A process that ends while no thread of it is left does so invisibly, with other threads left it kills them: the
//!   transitions that end threads of a process race with the one that ends the process.

use std::collections::BTreeMap;

use vsrun_model::arena::{Choice, Policy, Seen};
use vsrun_model::{dependent, dependent_if, may_be_coenabled, Act, End, Kind, Tid, Uid};

use super::{is_partial, Search};
use crate::schedule::Schedule;
use crate::trace::Trace;

/// A vector clock: by thread number, 1 + the index of the last step of that thread that happened before.
type Clock = Vec<u32>;

/// The pending operation of a thread in a state.
#[derive(Clone, Copy, Debug)]
struct Pending {
    seen: Seen,
    /// Number of the thread, see [`Dpor::numbers`].
    thread: usize,
    /// 1 + the index of the step that left the thread here: its own last one, or the one that created it; 0: none.
    origin: usize,
}

/// A state of the present path and the step that is taken from it.
#[derive(Debug)]
struct Node {
    pending: Vec<Pending>,
    /// Asleep on arrival, and what has been explored from here and sleeps while the rest is.
    sleep: Vec<(Tid, u32)>,
    /// What has been explored from here.
    done: Vec<(Tid, u32)>,
    /// The backtrack set, by index of `pending`.
    todo: Vec<bool>,
    /// Which of `pending` moves.
    chosen: usize,
    /// In which alternative.
    value: u32,
    /// The step ended its thread.
    ended: bool,
    /// The step led a thread to a yield.
    yields: bool,
    /// What happened before the step, and itself.
    clock: Clock,
}

impl Node {
    fn mover(&self) -> &Pending {
        &self.pending[self.chosen]
    }

    fn act(&self) -> &Act {
        &self.mover().seen.act
    }

    fn choice(&self) -> Choice {
        Choice::new(self.act().uid, self.value, self.act().op.kind)
    }

    fn try_all(&mut self) {
        for (todo, p) in self.todo.iter_mut().zip(&self.pending) {
            *todo |= p.seen.choices > 0;
        }
    }

    /// What is still asleep after the step. A step that leads to a yield wakes everything, which the scheduler step
    /// sees for itself once it has been performed.
    fn sleep_after(&self) -> Vec<(Tid, u32)> {
        if self.yields {
            return Vec::new();
        }
        let moving = self.act();
        let stays = |&&(t, _): &&(Tid, u32)| {
            let sleeper = self.pending.iter().find(|p| p.seen.act.tid == t);
            sleeper.is_some_and(|p| !dependent(&p.seen.act, moving, true))
        };
        self.sleep.iter().filter(stays).copied().collect()
    }

    /// Puts the step that has been explored to sleep and turns to the next of the backtrack set. False: there is none.
    fn advance(&mut self) -> bool {
        let explored = (self.act().tid, self.value);
        self.done.push(explored);
        if !self.yields {
            self.sleep.push(explored);
        }
        let awake = |(i, p): (usize, &Pending)| {
            let tid = p.seen.act.tid;
            let new = |&v: &u32| !self.sleep.contains(&(tid, v)) && !self.done.contains(&(tid, v));
            let value = (0..p.seen.choices).find(|v| self.todo[i] && new(v));
            value.map(|v| (i, v))
        };
        let Some((chosen, value)) = self.pending.iter().enumerate().find_map(awake) else { return false };
        self.chosen = chosen;
        self.value = value;
        self.yields = false;
        true
    }
}

/// True if the step at `index` by thread number `thread` is in `clock`.
fn contains(clock: &[u32], thread: usize, index: usize) -> bool {
    clock.get(thread).is_some_and(|&c| c as usize > index)
}

fn join(clock: &mut Clock, other: &[u32]) {
    if clock.len() < other.len() {
        clock.resize(other.len(), 0);
    }
    for (c, &o) in clock.iter_mut().zip(other) {
        *c = (*c).max(o);
    }
}

/// The search.
#[derive(Debug, Default)]
pub struct Dpor {
    /// The present path.
    nodes: Vec<Node>,
    /// Numbers of threads, in order of appearance.
    numbers: BTreeMap<Uid, usize>,
    started: bool,
    over: bool,
    partial: bool,
    transitions: u64,
    sleep_blocked: u64,
}

impl Dpor {
    /// A search that has not begun.
    pub fn new() -> Dpor {
        Dpor::default()
    }

    fn clock_of(&self, p: &Pending) -> &[u32] {
        p.origin.checked_sub(1).map_or(&[], |step| &self.nodes[step].clock)
    }

    /// The pending operations of the state after the first `n` steps.
    fn pending(&mut self, n: usize, seen: &[Seen]) -> Vec<Pending> {
        let before = n.checked_sub(1).map(|b| &self.nodes[b]);
        let numbers = &mut self.numbers;
        let place = |s: &Seen| {
            let next = numbers.len();
            let thread = *numbers.entry(s.act.uid).or_insert(next);
            let stood =
                before.and_then(|b| b.pending.iter().find(|p| p.thread == thread && b.mover().thread != thread));
            Pending { seen: *s, thread, origin: stood.map_or(n, |p| p.origin) }
        };
        seen.iter().map(place).collect()
    }

    /// What step `j` recorded of the operation of `p`, if it was pending then: that tells whether `j` concerned it.
    fn as_seen_by<'a>(&'a self, j: usize, p: &'a Pending) -> &'a Act {
        let stood = if p.origin <= j { self.nodes[j].pending.iter().find(|q| q.thread == p.thread) } else { None };
        &stood.unwrap_or(p).seen.act
    }

    /// Seeks the transitions among the first `n` that `p`, which is performed or pending after them, races with.
    /// `yields`: it leads a thread to a yield.
    fn find_races(&mut self, n: usize, p: &Pending, clock: &[u32], yields: bool) {
        for j in (0..n).rev() {
            let node = &self.nodes[j];
            let act = self.as_seen_by(j, p);
            if !contains(self.clock_of(p), node.mover().thread, j)
                && (yields || node.yields || dependent_if(node.act(), node.ended, act, true, false))
                && may_be_coenabled(node.act(), act)
            {
                self.backtrack(j, n, p, clock);
            }
        }
    }

    /// `p`, with `clock` performed or pending after the first `n` steps, is to move before step `at`. What follows
    /// step `at` without depending on it, and then `p`, could have come before it: adds to the backtrack set one of
    /// the threads that can begin this, or all if none can.
    fn backtrack(&mut self, at: usize, n: usize, p: &Pending, clock: &[u32]) {
        let node = &self.nodes[at];
        let mover = node.mover().thread;
        let mut before: Vec<(usize, usize)> = Vec::new();
        let mut able: Vec<usize> = Vec::new();
        let mut first = |thread: usize, clock: &[u32], step: usize| {
            if !before.iter().any(|&(t, j)| t == thread || contains(clock, t, j)) {
                able.extend(node.pending.iter().position(|q| q.thread == thread && q.seen.choices > 0));
            }
            before.push((thread, step));
        };
        for k in at + 1..n {
            let (thread, clock) = (self.nodes[k].mover().thread, &self.nodes[k].clock);
            if !contains(clock, mover, at) {
                first(thread, clock, k);
            }
        }
        first(p.thread, clock, n);
        let node = &mut self.nodes[at];
        match able.last() {
            None => node.try_all(),
            Some(_) if able.iter().any(|&i| node.todo[i]) => {}
            Some(&i) => node.todo[i] = true,
        }
    }

    /// What happens before `p` if it is performed after the first `n` steps; `ends`: and ends its thread; `yields`:
    /// and leads a thread to a yield.
    fn clock_after(&self, n: usize, p: &Pending, ends: bool, yields: bool) -> Clock {
        let mut clock = self.clock_of(p).to_vec();
        for j in (0..n).rev() {
            let node = &self.nodes[j];
            let ordered = || dependent_if(node.act(), node.ended, self.as_seen_by(j, p), ends, false);
            if !contains(&clock, node.mover().thread, j) && (yields || node.yields || ordered()) {
                join(&mut clock, &node.clock);
            }
        }
        clock
    }

    /// Adds the state before step `n` of a trace.
    fn enter(&mut self, pending: Vec<Pending>, mover: Uid, value: u32) -> bool {
        let Some(chosen) = pending.iter().position(|p| p.seen.act.uid == mover) else { return false };
        let sleep = self.nodes.last().map_or(Vec::new(), Node::sleep_after);
        let mut todo = vec![false; pending.len()];
        todo[chosen] = true;
        let (done, clock) = (Vec::new(), Clock::new());
        self.nodes.push(Node { pending, sleep, done, todo, chosen, value, ended: false, yields: false, clock });
        true
    }

    /// Works out what step `n` did, given what is pending after it.
    fn execute(&mut self, n: usize, after: &[Seen]) {
        let mover = *self.nodes[n].mover();
        let Act { uid, pid, .. } = mover.seen.act;
        let gone = |p: &Pending| !after.iter().any(|s| s.act.uid == p.seen.act.uid);
        let ended = gone(&mover);
        let ended_process = !after.iter().any(|s| s.act.pid == pid);
        let killed: Vec<Pending> =
            self.nodes[n].pending.iter().filter(|p| p.seen.act.uid != uid && gone(p)).copied().collect();
        let stood = |s: &Seen| s.act.uid != uid && self.nodes[n].pending.iter().any(|p| p.seen.act.uid == s.act.uid);
        let yields = after.iter().any(|s| s.act.op.kind == Kind::YIELD && !stood(s));
        let mut clock = self.clock_after(n, &mover, ended, yields);
        let mut siblings: Vec<usize> = Vec::new();
        if ended_process {
            let before = self.clock_of(&mover);
            let late = |j: &usize| {
                let node = &self.nodes[*j];
                node.ended && node.act().pid == pid && !contains(before, node.mover().thread, *j)
            };
            siblings.extend((0..n).filter(late));
        }
        for &j in &siblings {
            join(&mut clock, &self.nodes[j].clock);
        }
        if clock.len() <= mover.thread {
            clock.resize(mover.thread + 1, 0);
        }
        clock[mover.thread] = n as u32 + 1;
        self.find_races(n, &mover, &clock, yields);
        for j in siblings {
            self.backtrack(j, n, &mover, &clock);
        }
        self.nodes[n].ended = ended;
        self.nodes[n].yields = yields;
        self.nodes[n].clock = clock;
        for p in killed {
            self.find_races(n, &p, &self.clock_after(n, &p, true, false), false);
            self.backtrack(n, n + 1, &p, &[]);
        }
    }

    /// Follows the new part of a trace. False: something in it is missing.
    fn follow(&mut self, trace: &Trace) -> bool {
        let known = self.nodes.len();
        let total = trace.steps.len();
        if total < known {
            return false;
        }
        for n in known.saturating_sub(1)..total {
            let step = &trace.steps[n];
            if n >= known {
                let pending = self.pending(n, &trace.seen[n]);
                if !self.enter(pending, step.act.uid, step.value) {
                    return false;
                }
            }
            self.execute(n, trace.seen.get(n + 1).unwrap_or(&trace.last));
        }
        for p in self.pending(total, &trace.last) {
            self.find_races(total, &p, &self.clock_after(total, &p, true, false), false);
        }
        true
    }
}

/// True if threads may have been enabled in the last state all the same.
fn ended_early(end: End) -> bool {
    !matches!(end, End::FINISHED | End::DEADLOCK | End::SLEEP_BLOCKED | End::DEPTH | End::MISMATCH)
}

impl Search for Dpor {
    fn next(&mut self) -> Option<Schedule> {
        if self.started {
            while !self.nodes.last_mut()?.advance() {
                self.nodes.pop();
                self.over = self.nodes.is_empty();
            }
        }
        self.started = true;
        Some(Schedule {
            prefix: self.nodes.iter().map(Node::choice).collect(),
            sleep: self.nodes.last().map_or(Vec::new(), Node::sleep_after),
            policy: Policy::STAY,
            record: true,
            ..Schedule::default()
        })
    }

    fn done(&mut self, _ticket: u64, trace: &Trace) {
        let known = self.nodes.len().saturating_sub(1) as u64;
        self.transitions += (trace.steps.len() as u64 + trace.unrecorded).saturating_sub(known);
        self.sleep_blocked += u64::from(trace.end == End::SLEEP_BLOCKED);
        self.partial |= is_partial(trace);
        self.partial |= !self.follow(trace);
        if ended_early(trace.end) {
            if let Some(node) = self.nodes.last_mut() {
                node.try_all();
            }
        }
    }

    fn exhaustive(&self) -> bool {
        (self.over || self.started && self.nodes.is_empty()) && !self.partial
    }

    fn transitions(&self) -> u64 {
        self.transitions
    }

    fn sleep_blocked(&self) -> u64 {
        self.sleep_blocked
    }
}
