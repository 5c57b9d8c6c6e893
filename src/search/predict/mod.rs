//! What executions allow that they did not show is tried: circles of locks, and operations in the other order.
//!
//! From the steps of an execution follows which other orders of them there are (see [`run`]). Where threads of such an order stand
//! before locks that they hold against each other, that is a deadlock that the execution only happened not to come to (Tunc, Mathur,
//! Pavlogiannis, Viswanathan, PLDI 2023). Such an order becomes the guide of a schedule ([`Schedule::guide`]), and what comes of it is an
//! execution like any other: nothing is reported that did not happen. Beside them two operations that depend on each other are
//! turned round, where one could have come before the other.
//!
//! An execution by such a guide is looked at in its turn, so what needs two changes comes from one that has the first. Where nothing is left
//! to be tried, a sample of the partial orders is drawn, and looked at. The first execution is the one in which threads stay as long as they can.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};
use vsrun_model::arena::{Choice, Policy};
use vsrun_model::sharing::name_of;
use vsrun_model::{Kind, ObjId, Uid};

use super::api::Search;
use super::clock::{add, contains, Clock};
use super::lots::Lots;
use crate::base::hash::fnv1a;
use crate::codec;
use crate::held::Hold;
use crate::incomplete::Reason;
use crate::schedule::Schedule;
use crate::trace::Trace;

mod needs;
mod run;

use needs::Pair;
use run::{Origins, Request, Run};

/// Predictions that wait, of each kind.
const MOST_WAITING: usize = 1 << 12;
/// Most that are remembered not to be made again.
const MOST_TRIED: usize = 1 << 20;
/// Executions whose predictions wait.
const MOST_BASES: usize = 64;
/// Pairs of steps of one execution that are looked at.
const MOST_PAIRS: usize = 1 << 10;

/// Which of the pairs of an execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Whose {
    /// The later one comes before the one that it followed.
    Nearest,
    /// It comes as early as it can.
    Farthest,
}

/// Which of those that are alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Which {
    First,
    Last,
}

/// In which ways pairs are turned. The last word: all else comes in its order behind them; or the thread that now comes first goes on as long as it can.
const WAYS: [(Whose, Which, bool); 4] = [
    (Whose::Farthest, Which::Last, false),
    (Whose::Nearest, Which::First, false),
    (Whose::Nearest, Which::Last, true),
    (Whose::Nearest, Which::First, true),
];

/// Pairs that are alike.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Alike {
    times: usize,
    first: Pair,
    last: Pair,
    name: u64,
}

/// The steps of an execution: threads by their names, and thread, alternative and kind of each step.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Base {
    threads: Vec<u64>,
    steps: Vec<(u32, u32, u8)>,
    /// Predictions that wait.
    waiting: u64,
}

/// An order of the steps of an execution.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Prediction {
    /// Of which execution.
    base: u64,
    /// By thread: the steps before this one come first, in the order in which they were.
    first: Clock,
    /// Then these.
    then: Vec<u32>,
    /// Then all others, in their order.
    rest: bool,
}

/// What an execution begins with, as it is saved.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Start {
    /// A sample by that seed.
    Sample(u64),
    /// (thread, alternative, kind)
    Guide(Vec<(u64, u32, u8)>),
}

/// An endless sequence of predictions and samples.
#[derive(Debug)]
pub struct Predict {
    lots: Lots,
    /// Executions handed out.
    ticket: u64,
    /// Executions that were under way when the search was saved; they are begun again.
    again: Vec<Start>,
    /// Executions under way, by ticket.
    running: BTreeMap<u64, Start>,
    /// Names of what was predicted before.
    tried: BTreeSet<u64>,
    origins: Origins,
    bases: BTreeMap<u64, Base>,
    next_base: u64,
    /// Circles of locks.
    circles: VecDeque<Prediction>,
    /// Turned orders, by rank: in each way, for what is alike and for each.
    others: [VecDeque<Prediction>; 2 * WAYS.len()],
    transitions: u64,
}

impl Predict {
    /// With the samples of `seed`.
    pub fn new(seed: u64) -> Predict {
        Predict {
            lots: Lots { state: seed.wrapping_mul(0x9e6c_63d0_876a_68e3) },
            ticket: 0,
            again: Vec::new(),
            running: BTreeMap::new(),
            tried: BTreeSet::new(),
            origins: Origins::new(),
            bases: BTreeMap::new(),
            next_base: 0,
            circles: VecDeque::new(),
            others: Default::default(),
            transitions: 0,
        }
    }

    /// Deadlocks that are predicted and were not tried.
    pub fn deadlocks(&self) -> usize {
        self.circles.len()
    }

    /// Something is predicted and was not tried.
    pub fn predicts(&self) -> bool {
        !self.circles.is_empty() || self.others.iter().any(|queue| !queue.is_empty())
    }

    /// So many choices of the guide of the next prediction come about as they stand there, if what was told of the steps is right: the
    /// reordering, without what is tried behind it. `None`: nothing is predicted.
    pub fn foretold(&self) -> Option<usize> {
        let prediction = std::iter::once(&self.circles).chain(&self.others).find_map(VecDeque::front)?;
        let steps = &self.bases.get(&prediction.base)?.steps;
        Some((0..steps.len()).filter(|&n| contains(&prediction.first, steps[n].0, n)).count())
    }

    /// Predicts from an execution, which need not be one of its own. What is to be tried are its steps where they were recorded.
    pub fn learn(&mut self, trace: &Trace) {
        // Without these it is not known which step is whose, or what a lock is.
        if trace.threads.len() < 2 || trace.steps.is_empty() || self.bases.len() >= MOST_BASES {
            return;
        }
        let run = Run::of(trace, &mut self.origins);
        let id = self.next_base;
        let steps = run.steps().iter().map(|s| (s.act.tid, s.value, s.act.op.kind.0)).collect();
        let base = Base { threads: trace.threads.iter().map(|uid| uid.0).collect(), steps, waiting: 0 };
        self.next_base += 1;
        self.bases.insert(id, base);
        self.learn_circles(trace, &run, id);
        self.learn_turns(trace, &run, id);
        self.forget(id);
    }

    fn learn_circles(&mut self, trace: &Trace, run: &Run, base: u64) {
        for circle in run.circles() {
            if self.circles.len() >= MOST_WAITING {
                return;
            }
            let name = name_of_circle(trace, &circle);
            if self.tried.contains(&name) {
                continue;
            }
            if let Some(first) = run.meet(&circle) {
                self.is_new(name);
                self.waits(base);
                self.circles.push_back(Prediction { base, first, then: Vec::new(), rest: false });
            }
        }
    }

    /// Of the pairs that are alike, in this execution, the first and the last: those that happen seldom before others. First by where their
    /// threads begin, so that a hundred threads that do the same are two, then each by itself.
    fn learn_turns(&mut self, trace: &Trace, run: &Run, base: u64) {
        for each in [false, true] {
            let by = if each { WAYS.len() } else { 0 };
            let (near, far) = (alike(trace, run.pairs(), each), alike(trace, run.farthest(), each));
            for (rank, &(whose, which, rest)) in WAYS.iter().enumerate() {
                for of in if whose == Whose::Farthest { &far } else { &near } {
                    let pair = if which == Which::First { of.first } else { of.last };
                    self.learn_turn(run, (of.name, by + rank), (base, pair, rest));
                }
            }
        }
    }

    fn learn_turn(&mut self, run: &Run, (name, rank): (u64, usize), (base, pair, rest): (u64, Pair, bool)) {
        let name = name ^ (rank as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if self.tried.contains(&name) || self.others[rank].len() >= MOST_WAITING {
            return;
        }
        let Some(first) = run.turned(pair) else { return };
        self.is_new(name);
        self.waits(base);
        let then = if rest { vec![pair.1 as u32, pair.0 as u32] } else { vec![pair.1 as u32] };
        self.others[rank].push_back(Prediction { base, first, then, rest });
    }

    fn is_new(&mut self, name: u64) {
        if self.tried.len() >= MOST_TRIED {
            self.tried.clear();
        }
        self.tried.insert(name);
    }

    fn waits(&mut self, base: u64) {
        if let Some(base) = self.bases.get_mut(&base) {
            base.waiting += 1;
        }
    }

    /// Forgets an execution if nothing waits that it has predicted.
    fn forget(&mut self, base: u64) {
        if self.bases.get(&base).is_some_and(|base| base.waiting == 0) {
            self.bases.remove(&base);
        }
    }

    /// The next prediction, as the choices of a guide.
    fn predicted(&mut self) -> Option<Vec<(u64, u32, u8)>> {
        let mut queues = std::iter::once(&mut self.circles).chain(&mut self.others);
        let prediction = queues.find_map(VecDeque::pop_front)?;
        let base = self.bases.get_mut(&prediction.base)?;
        base.waiting = base.waiting.saturating_sub(1);
        let guide = base.guide(&prediction);
        self.forget(prediction.base);
        Some(guide)
    }
}

impl Base {
    fn guide(&self, prediction: &Prediction) -> Vec<(u64, u32, u8)> {
        let choice = |n: usize| {
            let &(thread, value, kind) = self.steps.get(n)?;
            Some((*self.threads.get(thread as usize)?, value, kind))
        };
        let mut made = prediction.first.clone();
        let is_first = |made: &Clock, n: usize| contains(made, self.steps[n].0, n);
        let first = (0..self.steps.len()).filter(|&n| is_first(&made, n));
        let mut guide: Vec<_> = first.filter_map(choice).collect();
        guide.extend(prediction.then.iter().filter_map(|&n| choice(n as usize)));
        if prediction.rest {
            for &n in prediction.then.iter().filter(|&&n| (n as usize) < self.steps.len()) {
                let thread = self.steps[n as usize].0;
                add(&mut made, thread, n as usize);
            }
            guide.extend((0..self.steps.len()).filter(|&n| !is_first(&made, n)).filter_map(choice));
        }
        guide
    }
}

/// The name of an object, the same in every execution; `None`: it is none, but a thread or a process.
fn object_named(trace: &Trace, object: ObjId) -> Option<u64> {
    trace.objects.get(object as usize).map(|&key| name_of(key))
}

/// The same circle has the same name in every execution.
fn name_of_circle(trace: &Trace, circle: &[&Request]) -> u64 {
    let lock = |hold: &Hold| object_named(trace, hold.lock).unwrap_or_default();
    let of = |request: &&Request| {
        let thread = trace.threads.get(request.thread as usize).map_or(0, |uid| uid.0);
        let words = [thread, lock(&request.wants)].into_iter().chain(request.holds.iter().map(lock));
        fnv1a(words.flat_map(u64::to_le_bytes))
    };
    circle.iter().map(of).fold(1, u64::wrapping_add)
}

/// Those that are alike, the rarest first; `each`: threads that begin at the same place are not alike.
fn alike(trace: &Trace, pairs: &[Pair], each: bool) -> Vec<Alike> {
    let mut by_name: BTreeMap<u64, Alike> = BTreeMap::new();
    for &pair in pairs {
        let name = name_of_pair(trace, pair, each);
        let of = by_name.entry(name).or_insert(Alike { times: 0, first: pair, last: pair, name });
        (of.times, of.last) = (of.times + 1, pair);
    }
    let mut all: Vec<Alike> = by_name.into_values().collect();
    all.sort_unstable();
    all.truncate(MOST_PAIRS);
    all
}

/// Two operations by their threads, kinds and objects: in every execution the same.
fn name_of_pair(trace: &Trace, pair: Pair, each: bool) -> u64 {
    let words = [pair.0, pair.1].into_iter().flat_map(|n| {
        let act = &trace.steps[n].act;
        let object = act.op.operands().into_iter().map(|o| object_named(trace, o).unwrap_or(o.into()));
        let born = trace.born.get(act.tid as usize).filter(|born| !each && born.start != 0);
        let thread = born.map_or(act.uid.0, |born| born.start);
        [thread, act.op.kind.0.into()].into_iter().chain(object)
    });
    fnv1a(words.flat_map(u64::to_le_bytes))
}

impl Search for Predict {
    fn next(&mut self) -> Option<Schedule> {
        let start = match self.again.pop() {
            Some(start) => start,
            None => match self.predicted() {
                Some(guide) => Start::Guide(guide),
                // The first one is what comes about by itself, where threads stay.
                None if self.ticket == 0 => Start::Guide(Vec::new()),
                None => Start::Sample(self.lots.draw()),
            },
        };
        self.ticket += 1;
        let schedule = match &start {
            Start::Sample(seed) => Schedule { policy: Policy::POS, seed: *seed, ..Schedule::default() },
            Start::Guide(guide) => {
                let choice = |&(uid, value, kind): &(u64, u32, u8)| Choice::new(Uid(uid), value, Kind(kind));
                Schedule { guide: guide.iter().map(choice).collect(), ..Schedule::default() }
            }
        };
        self.running.insert(self.ticket, start);
        Some(Schedule { ticket: self.ticket, record: true, ..schedule })
    }

    fn done(&mut self, ticket: u64, trace: &Trace) {
        self.running.remove(&ticket);
        self.transitions += trace.steps.len() as u64 + trace.unrecorded;
        self.learn(trace);
    }

    fn parallel(&self) -> bool {
        true
    }

    fn save(&self) -> Option<Vec<u8>> {
        let again: Vec<&Start> = self.again.iter().chain(self.running.values()).collect();
        let origins: Vec<(u64, u64, u32)> = self.origins.iter().map(|(uid, (by, n))| (uid.0, by.0, *n)).collect();
        let known = (&self.tried, origins, &self.bases, self.next_base);
        let waiting = (&self.circles, &self.others);
        Some(codec::encode(&(self.lots.state, self.ticket, again, known, waiting, self.transitions)))
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        type Known = (BTreeSet<u64>, Vec<(u64, u64, u32)>, BTreeMap<u64, Base>, u64);
        let (state, ticket, again, known, waiting, transitions) = codec::decode(bytes)?;
        let ((tried, origins, bases, next_base), (circles, others)): (Known, _) = (known, waiting);
        codec::counted([ticket, transitions, next_base].into_iter().chain(bases.values().map(|base| base.waiting)))?;
        let origins = origins.into_iter().map(|(uid, by, n)| (Uid(uid), (Uid(by), n))).collect();
        let (lots, running) = (Lots { state }, BTreeMap::new());
        *self =
            Predict { lots, ticket, again, running, tried, origins, bases, next_base, circles, others, transitions };
        Ok(())
    }

    fn limit(&self) -> Option<Reason> {
        Some(Reason::Random)
    }

    fn transitions(&self) -> u64 {
        self.transitions
    }
}
