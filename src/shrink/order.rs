//! What happens before what among the steps of one trace: what of it the end depends on, and its order with the fewest switches.

use std::collections::btree_map::{BTreeMap, Entry};

use vsrun_model::arena::Seen;
use vsrun_model::depend::{needs, WOKEN};
use vsrun_model::{dependent_after, Act, Effects, End, Tid};

use crate::search::clock::{add, contains, join, Clock};
use crate::search::index::{Index, Sought};
use crate::trace::Trace;

/// States that are kept while an order is looked for, after each number of switches: at most so many, and all together for a trace
/// about [`ALL`].
const WIDTH: usize = 256;
const ALL: usize = 200_000;

/// Happens-before over the steps of a trace.
pub struct Order {
    /// Of each step, with itself.
    clocks: Vec<Clock>,
    /// The thread of each step.
    threads: Vec<Tid>,
    /// What happens before the operations that are pending in the end.
    last: Vec<Clock>,
}

/// By thread number, the first state in which its operation was pending.
struct Standing(Vec<Option<usize>>);

impl Standing {
    fn see(&mut self, n: usize, seen: &[Seen]) {
        for pending in seen {
            let at = pending.act.tid as usize;
            if self.0.len() <= at {
                self.0.resize(at + 1, None);
            }
            self.0[at].get_or_insert(n);
        }
    }

    /// The first state in which the operation was pending that `thread` has in state `n`.
    fn since(&self, thread: Tid, n: usize) -> usize {
        self.0.get(thread as usize).copied().flatten().unwrap_or(n)
    }

    fn moves(&mut self, thread: Tid) {
        if let Some(since) = self.0.get_mut(thread as usize) {
            *since = None;
        }
    }
}

impl Order {
    /// Of a trace whose states are all recorded; `None`: they are not. `conditional`: what commutes in the states recorded is in no order.
    pub fn of(trace: &Trace, conditional: bool) -> Option<Order> {
        let recorded = trace.unrecorded == 0 && trace.seen.len() == trace.steps.len();
        if !recorded || trace.seen.iter().any(Vec::is_empty) {
            return None;
        }
        let mut order = Order {
            clocks: Vec::new(),
            threads: trace.steps.iter().map(|step| step.act.tid).collect(),
            last: Vec::new(),
        };
        let (mut index, mut standing) = (Index::default(), Standing(Vec::new()));
        for (n, step) in trace.steps.iter().enumerate() {
            standing.see(n, &trace.seen[n]);
            let since = standing.since(step.act.tid, n);
            let mut clock = order.before(trace, &index, (&step.act, step.did), (since, n), conditional);
            if let Some(waker) = woken_by(trace, n) {
                join(&mut clock, &order.clocks[waker]);
            }
            add(&mut clock, step.act.tid, n);
            order.clocks.push(clock);
            index.add(n, &step.act, step.did);
            standing.moves(step.act.tid);
        }
        let end = trace.steps.len();
        standing.see(end, &trace.last);
        for pending in &trace.last {
            let since = standing.since(pending.act.tid, end);
            order.last.push(order.before(trace, &index, (&pending.act, Effects::NONE), (since, end), conditional));
        }
        Some(order)
    }

    /// What happens before an operation that is pending from state `since` on, and performed in state `n`.
    fn before(
        &self,
        trace: &Trace,
        index: &Index,
        (act, did): (&Act, Effects),
        (since, n): (usize, usize),
        conditional: bool,
    ) -> Clock {
        // The step behind which it became pending: its thread's last one, or the one that made the thread.
        let mut clock = since.checked_sub(1).map_or(Clock::new(), |made| self.clocks[made].clone());
        let mut sought = Sought::default();
        sought.add(act, did);
        let mut candidates = index.candidates(n, &sought);
        while let Some(earlier) = candidates.next(&clock) {
            let step = &trace.steps[earlier];
            let other = step.act.tid != act.tid;
            if other && (dependent_after(&step.act, step.did, act, did, conditional) || needs(&step.act, act)) {
                join(&mut clock, &self.clocks[earlier]);
            }
        }
        clock
    }

    /// Step `earlier` happens before step `later`.
    pub fn is_before(&self, earlier: usize, later: usize) -> bool {
        earlier < later && contains(&self.clocks[later], self.threads[earlier], earlier)
    }

    /// For each step, whether the end depends on it.
    ///
    /// What is said by the last step (an assertion, a crash) depends on what happened before that. A circle depends on what happened
    /// before the operations that wait, too. That nothing can move depends on all steps.
    pub fn past(&self, trace: &Trace) -> Vec<bool> {
        let mut clock = self.clocks.last().cloned().unwrap_or_default();
        match trace.end {
            End::DEADLOCK => return vec![true; self.clocks.len()],
            End::CYCLE | End::LIVELOCK => {
                let waits = trace.last.iter().zip(&self.last).filter(|(pending, _)| pending.choices == 0);
                waits.for_each(|(_, before)| join(&mut clock, before));
            }
            _ => {}
        }
        self.threads.iter().enumerate().map(|(n, &thread)| contains(&clock, thread, n)).collect()
    }

    /// Those of the steps that are `kept`, of each thread the first ones, with all that happens before them, in an order with few switches
    /// that keeps what happens before what.
    ///
    /// A thread goes on as long as it can: what it does now it need not do later, and to others that is only good. So the states are those
    /// in which a thread cannot go on, and after each number of switches those of them that have come farthest are kept.
    pub fn packed(&self, kept: &[bool]) -> Vec<usize> {
        let queues = Queues::new(self, kept);
        let mut runs: Vec<Run> = Vec::new();
        let mut level: Vec<(Vec<usize>, Option<usize>)> = vec![(vec![0; queues.steps.len()], None)];
        loop {
            let mut next: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
            for (made, before) in &level {
                for thread in 0..queues.steps.len() {
                    let mut then = made.clone();
                    queues.go_on(thread, &mut then);
                    if then[thread] == made[thread] {
                        continue;
                    }
                    let (from, to) = (made[thread], then[thread]);
                    if let Entry::Vacant(place) = next.entry(then) {
                        place.insert(runs.len());
                        runs.push(Run { before: *before, thread, from, to });
                    }
                }
            }
            let mut all: Vec<(Vec<usize>, Option<usize>)> =
                next.into_iter().map(|(made, run)| (made, Some(run))).collect();
            if let Some((_, run)) = all.iter().find(|(made, _)| queues.is_end(made)) {
                return queues.told(&runs, *run);
            }
            if all.is_empty() {
                // Nothing was kept.
                return Vec::new();
            }
            all.sort_by_key(|(made, _)| std::cmp::Reverse(made.iter().sum::<usize>()));
            all.truncate((ALL / kept.len().max(1)).clamp(4, WIDTH));
            level = all;
        }
    }
}

/// A thread goes on from one of its steps to another.
struct Run {
    /// The run before.
    before: Option<usize>,
    /// By number of the queue.
    thread: usize,
    from: usize,
    to: usize,
}

/// The steps that are kept, by thread.
struct Queues {
    steps: Vec<Vec<usize>>,
    /// For each of them, how many steps of each queue come before it.
    needs: Vec<Vec<Vec<u32>>>,
}

impl Queues {
    fn new(order: &Order, kept: &[bool]) -> Queues {
        let mut threads: Vec<Tid> = order.threads.iter().zip(kept).filter(|(_, &kept)| kept).map(|(&t, _)| t).collect();
        threads.sort_unstable();
        threads.dedup();
        let of = |t: Tid| (0..kept.len()).filter(|&n| kept[n] && order.threads[n] == t).collect::<Vec<_>>();
        let steps: Vec<Vec<usize>> = threads.iter().map(|&t| of(t)).collect();
        let count = |step: usize, queue: usize| {
            let until = order.clocks[step].get(threads[queue] as usize).copied().unwrap_or(0);
            steps[queue].partition_point(|&n| n < until as usize) as u32
        };
        let all = |step: &usize| (0..steps.len()).map(|queue| count(*step, queue)).collect::<Vec<_>>();
        let needs = steps.iter().map(|queue| queue.iter().map(all).collect()).collect();
        Queues { steps, needs }
    }

    /// The thread makes all the steps that it can.
    fn go_on(&self, thread: usize, made: &mut [usize]) {
        let queue = &self.needs[thread];
        while queue.get(made[thread]).is_some_and(|needs| {
            needs.iter().enumerate().all(|(other, &n)| other == thread || made[other] >= n as usize)
        }) {
            made[thread] += 1;
        }
    }

    fn is_end(&self, made: &[usize]) -> bool {
        made.iter().zip(&self.steps).all(|(&made, queue)| made == queue.len())
    }

    /// The steps of the runs up to that one.
    fn told(&self, runs: &[Run], last: Option<usize>) -> Vec<usize> {
        let mut order: Vec<&Run> =
            std::iter::successors(last.map(|n| &runs[n]), |run| run.before.map(|n| &runs[n])).collect();
        order.reverse();
        order.into_iter().flat_map(|run| &self.steps[run.thread][run.from..run.to]).copied().collect()
    }
}

/// The step that has given the one at `index` its wake-up, where it waited for one. The two commute from then on, but it could not have
/// come before.
fn woken_by(trace: &Trace, index: usize) -> Option<usize> {
    let step = &trace.steps[index];
    if step.act.fate & WOKEN == 0 {
        return None;
    }
    let asleep = |state: &[Seen]| state.iter().any(|seen| seen.act.tid == step.act.tid && seen.act.fate & WOKEN == 0);
    (0..index).rev().find(|&earlier| asleep(&trace.seen[earlier]))
}
