//! What happens before what in one execution, to the memory accesses between its operations.
//!
//! The code of a thread falls into segments: a new one begins with each of its steps, and with each thread that it creates. A clock says
//! of each thread up to which of its segments all is before.

use vsrun_model::arena::Seen;
use vsrun_model::depend::{dependent_by_effects, needs, WOKEN};
use vsrun_model::signal::DIES;
use vsrun_model::{dependent_after, imprint, Act, Effects, Kind, Op, Pid, Tid, NONE};

use super::sections::Apart;
use crate::search::index::{Index, Sought};
use crate::trace::{signal_taken, Trace};

/// By thread: up to this segment all that it did is before; 0: nothing.
type Clock = Vec<u32>;

fn join(clock: &mut Clock, other: &[u32]) {
    if clock.len() < other.len() {
        clock.resize(other.len(), 0);
    }
    for (c, &o) in clock.iter_mut().zip(other) {
        *c = (*c).max(o);
    }
}

fn at_least(clock: &mut Clock, thread: Tid, segment: u32) {
    let at = thread as usize;
    if clock.len() <= at {
        clock.resize(at + 1, 0);
    }
    clock[at] = clock[at].max(segment);
}

fn of(clock: &[u32], thread: Tid) -> u32 {
    clock.get(thread as usize).copied().unwrap_or(0)
}

/// A step, as far as later ones are concerned.
struct Made {
    /// Index in the trace.
    index: usize,
    imprint: u64,
    /// What is before it, the code of its own thread included.
    clock: Clock,
}

impl Made {
    /// All before it is in `clock`, if the code of its thread right before it is.
    fn is_in(&self, clock: &[u32], thread: Tid) -> bool {
        of(&self.clock, thread) <= of(clock, thread)
    }
}

/// A thread.
struct Line {
    /// The segment under way; the first is 1.
    segment: u32,
    clock: Clock,
    steps: Vec<Made>,
    /// Its end as an operation.
    end: Act,
    /// The imprint of its end, once it is over: 0 before.
    over: u64,
    /// Segments that another process may have cut short: it was killed at the step behind them.
    cut: Vec<u32>,
}

impl Line {
    const NEW: Line =
        Line { segment: 1, clock: Vec::new(), steps: Vec::new(), end: Act::NOTHING, over: 0, cut: Vec::new() };
}

/// Happens-before over the segments of an execution, as far as it has come.
pub struct Order<'a> {
    trace: &'a Trace,
    /// Operations on locks that the search keeps no order of.
    apart: Apart,
    lines: Vec<Line>,
    /// The steps by what may depend on them.
    index: Index,
    /// Steps made so far.
    made: u32,
}

impl<'a> Order<'a> {
    /// Nothing has happened yet. The first thread, which nobody begins, may be joined, too.
    pub fn new(trace: &'a Trace) -> Order<'a> {
        let end = Act { tid: 0, pid: 0, parent: NONE, op: Op::new(Kind::END), ..Act::NOTHING };
        Order {
            trace,
            apart: Apart::of(trace),
            lines: vec![Line { end, ..Line::NEW }],
            index: Index::default(),
            made: 0,
        }
    }

    fn line(&mut self, thread: Tid) -> &mut Line {
        let at = thread as usize;
        if self.lines.len() <= at {
            self.lines.resize_with(at + 1, || Line::NEW);
        }
        &mut self.lines[at]
    }

    /// `thread` of `process` begins, created by `creator`. Numbers of threads are not given twice in an execution.
    pub fn begins(&mut self, thread: Tid, creator: Tid, process: Pid, parent: Pid) {
        let before = self.line(creator);
        let (mut clock, segment) = (before.clock.clone(), before.segment);
        before.segment += 1;
        at_least(&mut clock, creator, segment);
        let line = self.line(thread);
        line.clock = clock;
        line.end = Act { tid: thread, pid: process, parent, op: Op::new(Kind::END), ..Act::NOTHING };
    }

    /// `thread` is over, and has come to its end by itself. How far one got that was ended by another, nothing orders.
    pub fn ends(&mut self, thread: Tid) {
        let line = self.line(thread);
        line.over = imprint(&line.end, Effects::ENDS);
    }

    /// The step at `index` is made.
    pub fn step(&mut self, index: usize) {
        let Some(step) = self.trace.steps.get(index) else { return };
        self.made = index as u32 + 1;
        let (act, thread) = (step.act, step.act.tid);
        let print = imprint(&act, step.did);
        // What it does beyond its operation, it does at its end: what comes before that need not come before its code.
        let looks = imprint(&act, Effects::NONE);
        self.line(thread);
        let mut clock = self.lines[thread as usize].clock.clone();
        self.join_ends(&mut clock, &act, looks);
        self.join_steps(&mut clock, (index, &act), looks);
        if let Some(waker) = self.woken_by(index) {
            self.join_step(waker, &mut clock);
        }
        let cuts = act.op.signals & DIES != 0 && signal_taken(step) != 0;
        let line = self.line(thread);
        if cuts {
            line.cut.push(line.segment);
        }
        line.clock.clone_from(&clock);
        at_least(&mut clock, thread, line.segment);
        line.segment += 1;
        line.end = Act { op: Op::new(Kind::END), ..act };
        if line.over != 0 {
            line.over = imprint(&line.end, Effects::ENDS);
        }
        line.steps.push(Made { index, imprint: print, clock });
        self.index.add(index, &act, step.did);
    }

    /// Adds to `clock` the threads that are over of which the step `act` can tell that they are.
    fn join_ends(&self, clock: &mut Clock, act: &Act, print: u64) {
        for (thread, line) in self.lines.iter().enumerate() {
            let tid = thread as Tid;
            // The last segment is known to nobody but those who are told of the end, with all before it.
            if line.over & print == 0 || tid == act.tid || of(clock, tid) >= line.segment {
                continue;
            }
            if dependent_by_effects(&line.end, Effects::ENDS, act, Effects::NONE) {
                join(clock, &line.clock);
                at_least(clock, tid, line.segment);
            }
        }
    }

    /// Adds to `clock` what the step `act`, the one at `index`, depends on, with all before that.
    fn join_steps(&self, clock: &mut Clock, (index, act): (usize, &Act), print: u64) {
        let mut sought = Sought::default();
        sought.add(act, Effects::NONE);
        let mut candidates = self.index.candidates(index, &sought);
        while let Some(earlier) = candidates.next_where(|thread, n| {
            thread == act.tid || self.made(thread, n).is_none_or(|made| made.is_in(clock, thread))
        }) {
            let step = &self.trace.steps[earlier];
            let Some(made) = self.made(step.act.tid, earlier) else { continue };
            let before = || dependent_after(&step.act, step.did, act, Effects::NONE, true) || needs(&step.act, act);
            if made.imprint & print != 0 && !self.apart.has(earlier, index) && before() {
                join(clock, &made.clock);
            }
        }
    }

    /// What is known of the step at `index`, which `thread` has made.
    fn made(&self, thread: Tid, index: usize) -> Option<&Made> {
        let steps = &self.lines.get(thread as usize)?.steps;
        steps.binary_search_by_key(&index, |made| made.index).ok().and_then(|at| steps.get(at))
    }

    /// The step that has given the one at `index` its wake-up, where it waited for one. The two commute from then on, but it could not have
    /// come before.
    fn woken_by(&self, index: usize) -> Option<usize> {
        let step = &self.trace.steps[index];
        if step.act.fate & WOKEN == 0 {
            return None;
        }
        let asleep = |state: &[Seen]| {
            let pending = state.iter().find(|seen| seen.act.tid == step.act.tid);
            pending.is_some_and(|seen| seen.act.fate & WOKEN == 0)
        };
        // It was pending, and woken, in all states between.
        (0..index).rev().find(|&earlier| asleep(&self.trace.seen[earlier]))
    }

    /// The step at `index`, of another thread, is before what has that clock.
    fn join_step(&self, index: usize, clock: &mut Clock) {
        if let Some(made) = self.made(self.trace.steps[index].act.tid, index) {
            join(clock, &made.clock);
        }
    }

    /// What `thread` did in `segment` is before all that `later` does from now on.
    pub fn is_before(&self, thread: Tid, segment: u32, later: Tid) -> bool {
        thread == later || self.lines.get(later as usize).is_some_and(|line| of(&line.clock, thread) >= segment)
    }

    /// How far `thread` came in `segment` was for another one to say, which ended it: what `later` finds may be what was there before.
    pub fn is_cut(&self, thread: Tid, segment: u32, later: Tid) -> bool {
        thread != later && self.lines.get(thread as usize).is_some_and(|line| line.cut.contains(&segment))
    }

    /// The segment of `thread` that is under way.
    pub fn segment(&self, thread: Tid) -> u32 {
        self.lines.get(thread as usize).map_or(1, |line| line.segment)
    }

    /// Steps that the execution has made so far.
    pub fn steps_made(&self) -> u32 {
        self.made
    }

    /// What `thread` did in `segment` is before the last step of thread `by`.
    pub fn last_step_follows(&self, by: Tid, thread: Tid, segment: u32) -> bool {
        let last = self.lines.get(by as usize).and_then(|line| line.steps.last());
        last.is_some_and(|made| of(&made.clock, thread) >= segment)
    }

    /// The last step that `thread` has made, if it has made one.
    pub fn last_step(&self, thread: Tid) -> Option<u32> {
        self.lines.get(thread as usize)?.steps.last().map(|made| made.index as u32)
    }
}
