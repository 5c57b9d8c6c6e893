//! Search of what at most K preemptions can bring about, without all the schedules that do no more than others: bounded
//! partial-order reduction (Coons, Musuvathi, McKinley, OOPSLA 2013).
//!
//! An execution follows the default policy after its prefix, which costs nothing. [`super::races`] tells what else is to
//! be tried in its states; each such branch whose cost is within the bound is started, those of cost 0 first, then 1, 2,
//! .. Of equal cost those come first that deviate from the default policy less often, then those that reverse a race for
//! an object. There are no sleep sets: what sleeps because another schedule has the same effect may be the only one of the
//! two that is within the bound.
//!
//! What is to be tried is a function of the execution alone, and is only ever added to what is known of a state. So the
//! same executions are run in whatever order they end.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use vsrun_model::arena::{Choice, Policy};

use super::api::{is_partial, Search, Watch};
use super::bounded::preempts;
use super::races::{self, Point};
use crate::codec::{self, DecodeError};
use crate::incomplete::Reason;
use crate::schedule::Schedule;
use crate::trace::Trace;

/// An execution, as far as others still branch off it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Path {
    /// The one that it branched off.
    parent: Option<u64>,
    /// Choices that it has from its parent.
    begins: u32,
    /// The choices that follow these.
    choices: Vec<Choice>,
    /// Deviations from the default policy.
    deviations: u32,
    /// Branches that start in its own states: those behind its first own choice.
    tried: BTreeMap<u32, Vec<Choice>>,
    /// Of those branches, the ones that wait, run or are kept.
    live: u64,
}

/// A branch that waits or runs. In the order in which they are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Rank {
    cost: u32,
    deviations: u32,
    /// It does not come from a race for an object.
    wide: bool,
    number: u64,
}

/// Where a branch begins.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Start {
    /// The execution that it branches off; `None`: it is the first one.
    from: Option<u64>,
    /// How many choices it has in common with that.
    at: u32,
    /// What it chooses then.
    choice: Choice,
}

/// No execution deviates as often as this from the default policy.
const MOST_DEVIATIONS: u32 = 1 << 30;

/// The search.
#[derive(Debug)]
pub struct BoundedReduction {
    limit: u32,
    paths: BTreeMap<u64, Path>,
    waiting: BTreeMap<Rank, Start>,
    /// By ticket.
    running: BTreeMap<u64, (Rank, Start)>,
    /// The next ticket, number of a path, number of a branch.
    next: u64,
    /// Something was left out because it costs too much, or an execution was cut.
    partial: bool,
    /// An execution was cut, or not looked at to its end. Not saved: what was saved as partial counts as that.
    cut: bool,
    /// Choices that are kept, of all paths.
    choices: usize,
    /// Waits could give up at a moment of their own: what that costs depends on what others did before, and schedules that come to the same
    /// may cost more or less.
    timed: bool,
    transitions: u64,
    watch: Watch,
}

impl BoundedReduction {
    /// A search that has not begun, for at most `limit` preemptions.
    pub fn new(limit: u32) -> BoundedReduction {
        let first = Rank { cost: 0, deviations: 0, wide: false, number: 0 };
        let root = Start { from: None, at: 0, choice: Choice::default() };
        BoundedReduction {
            limit,
            paths: BTreeMap::new(),
            waiting: BTreeMap::from([(first, root)]),
            running: BTreeMap::new(),
            next: 1,
            partial: false,
            cut: false,
            choices: 0,
            timed: false,
            transitions: 0,
            watch: Watch::default(),
        }
    }

    /// What so many preemptions can bring about has been run. `None`: not even what none can, or that cannot be said.
    pub fn covered(&self) -> Option<u32> {
        if !self.can_tell() {
            return None;
        }
        let open = self.running.values().map(|(rank, _)| rank).chain(self.waiting.keys().next());
        open.map(|rank| rank.cost).min().unwrap_or(self.limit + 1).checked_sub(1)
    }

    /// What it has run is all that so many preemptions can bring about: no execution was cut, nor could wait until a moment of its own.
    pub fn can_tell(&self) -> bool {
        !self.cut && !self.timed
    }

    /// Choices that are kept.
    pub fn kept(&self) -> usize {
        self.choices
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// The choices that lead to a start, its own included.
    fn prefix(&self, start: &Start) -> Vec<Choice> {
        let Some(mut from) = start.from else { return Vec::new() };
        let mut prefix = vec![start.choice; start.at as usize + 1];
        let mut end = start.at as usize;
        while let Some(path) = self.paths.get(&from) {
            let begins = path.begins as usize;
            if begins < end {
                prefix[begins..end].copy_from_slice(&path.choices[..end - begins]);
                end = begins;
            }
            let Some(parent) = path.parent else { break };
            from = parent;
        }
        prefix
    }

    /// The execution among `path` and those that it branched off whose state it is that is reached after `at` choices.
    fn owner(&self, mut path: u64, at: u32) -> u64 {
        while let Some(Path { parent: Some(parent), begins, .. }) = self.paths.get(&path) {
            if at > *begins {
                break;
            }
            path = *parent;
        }
        path
    }

    /// A branch of `path` or of what that branched off.
    fn branch(&mut self, path: u64, at: u32, choice: Choice, (cost, wide): (u32, bool)) {
        if cost > self.limit {
            self.partial = true;
            return;
        }
        let owner = self.owner(path, at);
        let number = self.next;
        let Some(path) = self.paths.get_mut(&owner) else { return };
        let same = |c: &Choice| (c.uid, c.value) == (choice.uid, choice.value);
        let taken = path.choices.get((at - path.begins) as usize);
        let tried = path.tried.entry(at).or_default();
        if taken.is_some_and(same) || tried.iter().any(same) {
            return;
        }
        tried.push(choice);
        path.live += 1;
        let deviations = path.deviations + 1;
        self.next += 1;
        self.waiting.insert(Rank { cost, deviations, wide, number }, Start { from: Some(owner), at, choice });
    }

    /// A branch of `path` is over and nothing branches off it any more.
    fn release(&mut self, path: Option<u64>) {
        let mut at = path;
        while let Some(number) = at {
            let Some(path) = self.paths.get_mut(&number) else { return };
            path.live -= 1;
            if path.live > 0 {
                return;
            }
            at = path.parent;
            self.choices -= path.choices.len();
            self.paths.remove(&number);
        }
    }

    /// Everything that the execution shows is to be tried.
    fn look_at(&mut self, number: u64, rank: &Rank, start: &Start, trace: &Trace) {
        let fresh = start.at as usize;
        let costs = costs(trace);
        for n in fresh..trace.steps.len() {
            let step = &trace.steps[n];
            for value in (0..step.choices).filter(|&v| v != step.value) {
                let choice = Choice::new(step.act.uid, value, step.act.op.kind);
                self.branch(number, n as u32, choice, (costs[n + 1], rank.wide));
            }
        }
        let Some(points) = races::points(trace, fresh, &self.watch) else {
            (self.partial, self.cut) = (true, true);
            return;
        };
        for Point { at, thread, wide } in points {
            let last = at.checked_sub(1).map(|before| trace.steps[before].act.uid);
            if let Some(s) = trace.seen[at].iter().find(|s| s.act.tid == thread) {
                let cost = costs[at] + u32::from(preempts(&trace.seen[at], last, s));
                self.branch(number, at as u32, Choice::new(s.act.uid, 0, s.act.op.kind), (cost, wide));
            }
        }
    }

    /// What [`Search::save`] wrote.
    fn read(limit: u32, bytes: &[u8]) -> Result<BoundedReduction, DecodeError> {
        let (paths, waiting, next, partial, timed, transitions) = codec::decode(bytes)?;
        let running = BTreeMap::new();
        let watch = Watch::default();
        let paths: BTreeMap<u64, Path> = paths;
        let (cut, choices) = (partial, paths.values().map(|path| path.choices.len()).sum());
        let search =
            BoundedReduction { limit, paths, waiting, running, next, partial, cut, choices, timed, transitions, watch };
        codec::counted([next, transitions])?;
        search.is_whole().then_some(search).ok_or(DecodeError::Wrong("path"))
    }

    /// What branches off an execution finds it, and the choices that it has from there. All have different numbers.
    fn is_whole(&self) -> bool {
        let numbers = self.paths.keys().copied().chain(self.waiting.keys().map(|rank| rank.number));
        let deviations =
            self.paths.values().map(|p| p.deviations).chain(self.waiting.keys().map(|rank| rank.deviations));
        if numbers.into_iter().any(|n| n >= self.next) || deviations.into_iter().any(|n| n >= MOST_DEVIATIONS) {
            return false;
        }
        let reaches = |(from, at): (u64, u32)| {
            let path = self.paths.get(&from);
            path.is_some_and(|p| p.begins <= at && (at - p.begins) as usize <= p.choices.len())
        };
        let parents = self
            .paths
            .iter()
            .all(|(&number, p)| p.parent.map_or(p.begins == 0, |q| q < number && reaches((q, p.begins))));
        let starts = self.waiting.values().all(|s| s.from.map_or(s.at == 0, |from| reaches((from, s.at))));
        let mut live: BTreeMap<u64, u64> = self.paths.keys().map(|&number| (number, 0)).collect();
        let branches = self.paths.values().map(|p| p.parent).chain(self.waiting.values().map(|s| s.from));
        for number in branches.flatten() {
            live.entry(number).and_modify(|n| *n += 1);
        }
        parents
            && starts
            && live.iter().all(|(number, &n)| self.paths.get(number).is_some_and(|p| p.live == n && n > 0))
    }
}

/// By state, the preemptions on the way there: one more than there are steps.
fn costs(trace: &Trace) -> Vec<u32> {
    let mut costs = vec![0];
    for (n, (step, seen)) in trace.steps.iter().zip(&trace.seen).enumerate() {
        let last = n.checked_sub(1).map(|before| trace.steps[before].act.uid);
        let moved = seen.iter().find(|s| s.act.tid == step.act.tid);
        let more = moved.is_some_and(|s| preempts(seen, last, s));
        costs.push(costs[n] + u32::from(more));
    }
    costs
}

impl Search for BoundedReduction {
    fn watch(&mut self, watch: Watch) {
        self.watch = watch;
    }

    fn next(&mut self) -> Option<Schedule> {
        let (rank, start) = self.waiting.pop_first()?;
        let prefix = self.prefix(&start);
        let ticket = self.number();
        self.running.insert(ticket, (rank, start));
        let record_back = prefix.len() as u32;
        Some(Schedule { ticket, prefix, policy: Policy::STAY, record: true, record_back, ..Schedule::default() })
    }

    fn done(&mut self, ticket: u64, trace: &Trace) {
        let Some((rank, start)) = self.running.remove(&ticket) else { return };
        self.transitions += (trace.steps.len() as u64 + trace.unrecorded).saturating_sub(u64::from(start.at));
        let partial = is_partial(trace);
        (self.partial, self.cut) = (self.partial || partial, self.cut || partial);
        self.timed |= trace.was_timed();
        let recorded = trace.seen.iter().all(|seen| !seen.is_empty());
        if trace.steps.len() < start.at as usize || !recorded {
            (self.partial, self.cut) = (true, true);
            return self.release(start.from);
        }
        let number = self.number();
        let path = Path {
            parent: start.from,
            begins: start.at,
            choices: trace.choices(trace.steps.len()).split_off(start.at as usize),
            deviations: rank.deviations,
            tried: BTreeMap::new(),
            live: 1,
        };
        self.choices += path.choices.len();
        self.paths.insert(number, path);
        self.look_at(number, &rank, &start, trace);
        self.release(Some(number));
    }

    fn parallel(&self) -> bool {
        true
    }

    fn save(&self) -> Option<Vec<u8>> {
        let mut waiting = self.waiting.clone();
        waiting.extend(self.running.values().copied());
        Some(codec::encode(&(&self.paths, waiting, self.next, self.partial, self.timed, self.transitions)))
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        let watch = self.watch.clone();
        *self = BoundedReduction { watch, ..BoundedReduction::read(self.limit, bytes)? };
        Ok(())
    }

    fn frontier(&self) -> u64 {
        self.waiting.len() as u64
    }

    fn exhaustive(&self) -> bool {
        self.waiting.is_empty() && self.running.is_empty() && !self.partial && !self.timed
    }

    fn limit(&self) -> Option<Reason> {
        Some(if self.timed { Reason::TimedBound } else { Reason::Bound })
    }

    fn transitions(&self) -> u64 {
        self.transitions
    }
}
