//! Several executions at a time for a search whose order matters.
//!
//! A search by partial-order reduction knows what to run only when everything before it has been run: what is below a leaf
//! of its tree may cover what is inserted beside it. So [`InOrder`] is told of executions in their order, one by one,
//! whoever runs them, and what it explores and counts is what a single worker explores and counts. What can be done at the
//! same time is to run *ahead* what it will ask for. What is below a leaf that waits follows from the path to the leaf alone
//! ([`Reduction::branch`]), so a [`Part`] explores it as a search of its own. It is given the executions it asks for, and
//! keeps what they did. When the leaf's turn comes, the search asks for executions one by one; as long as it asks for what
//! the part has run, to the last choice and sleeping step, nothing is run and it is told what the part was told. Once all of
//! that is used up the two have the same tree below the leaf, and the search goes on with what the part has under way. If
//! it asks for something else, what the part has was run for nothing, and nothing else has happened: an execution does
//! what its schedule says whoever asks for it and when.
//!
//! Parts have parts of their own. What comes soonest is run first, so that what is kept is used soon; it is bounded, and
//! gives way to what comes sooner. A leaf is predicted as it stands: that it is cut away, or that what sleeps there turns
//! out to do more than was known, is rare.

use std::collections::{BTreeMap, VecDeque};
use std::mem::size_of;

use vsrun_model::arena::{Seen, Step};

use super::api::{Search, Watch};
use super::canon::{Canon, Names};
use super::reduction::{Insertion, Reduction};
use super::tree::Node;
use crate::schedule::Schedule;
use crate::trace::Trace;

/// Executions that are kept until their turn comes, at most.
const MOST_RUNS: usize = 512;
/// Parts at most.
const MOST_PARTS: usize = 64;
/// Bytes that all this takes, roughly, at most.
const MOST_BYTES: usize = 128 << 20;

/// A search in its order, and what is run ahead for it.
#[derive(Debug)]
pub struct InOrder {
    whole: Part,
    pub(super) names: Names,
    pub(super) next_ticket: u64,
    discarded: u64,
    settled: Vec<(u64, bool)>,
}

/// A search and its parts.
#[derive(Debug)]
struct Part {
    search: Reduction,
    /// The execution under way whose turn it is.
    turn: Option<Turn>,
    /// What is explored ahead, by leaf that waits.
    parts: BTreeMap<usize, Part>,
    /// Of a part: what it was told of and what it is a part of has not been, in order.
    runs: Option<VecDeque<Run>>,
    /// Bytes that `runs` take.
    bytes: usize,
}

/// What a search asks for.
#[derive(Clone, Debug)]
struct Order {
    /// With no ticket and no `record_back`.
    schedule: Schedule,
    record_back: u32,
}

/// An execution under way.
#[derive(Debug)]
struct Turn {
    leaf: usize,
    ticket: u64,
    order: Order,
}

/// An execution that is over.
#[derive(Debug)]
struct Run {
    ticket: u64,
    order: Order,
    trace: Trace,
    canon: Canon,
}

/// What a search has for its next execution.
enum Next {
    /// It is to be run.
    Run(Box<Schedule>),
    /// It is under way.
    UnderWay,
    /// There is none.
    Over,
}

/// What is kept for later.
#[derive(Clone, Copy, Default)]
struct Stock {
    runs: usize,
    parts: usize,
    bytes: usize,
}

impl Order {
    fn new(mut schedule: Schedule) -> Order {
        let record_back = std::mem::take(&mut schedule.record_back);
        Order { schedule, record_back }
    }

    /// The schedule to be run.
    fn with_ticket(&self, ticket: u64) -> Schedule {
        Schedule { ticket, record_back: self.record_back, ..self.schedule.clone() }
    }

    /// Whether the execution of this is the one that `other` asks for. It may record more: of the states on the way to a leaf
    /// fewer are known if it is explored ahead.
    fn serves(&self, other: &Order) -> bool {
        self.record_back >= other.record_back && self.schedule == other.schedule
    }
}

impl Stock {
    fn plus(self, other: Stock) -> Stock {
        let Stock { runs, parts, bytes } = other;
        Stock { runs: self.runs + runs, parts: self.parts + parts, bytes: self.bytes + bytes }
    }

    fn is_full(self) -> bool {
        self.runs >= MOST_RUNS || self.parts >= MOST_PARTS || self.bytes >= MOST_BYTES
    }
}

/// Gives out tickets and counts what was run for nothing.
struct Desk<'a> {
    next_ticket: &'a mut u64,
    discarded: &'a mut u64,
    settled: &'a mut Vec<(u64, bool)>,
}

impl Desk<'_> {
    fn ticket(&mut self) -> u64 {
        *self.next_ticket += 1;
        *self.next_ticket - 1
    }

    /// A part is not needed any more.
    fn drop(&mut self, part: Option<Part>) {
        let Some(part) = part else { return };
        for run in part.runs.into_iter().flatten() {
            self.was_for_nothing(run.ticket);
        }
        part.parts.into_values().for_each(|below| self.drop(Some(below)));
    }

    fn was_for_nothing(&mut self, ticket: u64) {
        *self.discarded += 1;
        self.settled.push((ticket, false));
    }
}

impl InOrder {
    /// Optimal dynamic partial-order reduction with wakeup trees (Abdulla, Aronis, Jonsson, Sagonas, JACM 2017): every
    /// Mazurkiewicz trace is executed exactly once, and no execution is started that is not a new trace.
    pub fn optimal() -> InOrder {
        InOrder::going_on(Reduction::new(Insertion::Sequence), Names::default(), 0)
    }

    /// Dynamic partial-order reduction with source sets (Abdulla, Aronis, Jonsson, Sagonas, POPL 2014) and sleep sets, which go
    /// on with conditional dependency while an execution runs (Stoller, TR 536, Section 7). It may start executions that turn
    /// out to be redundant: everything enabled is asleep, and they are cut off.
    pub fn dpor() -> InOrder {
        InOrder::going_on(Reduction::new(Insertion::FirstStep), Names::default(), 0)
    }

    /// A search that has been restored.
    pub(super) fn going_on(search: Reduction, names: Names, next_ticket: u64) -> InOrder {
        InOrder { whole: Part::new(search, None), names, next_ticket, discarded: 0, settled: Vec::new() }
    }

    pub(super) fn reduction(&self) -> &Reduction {
        &self.whole.search
    }

    pub(super) fn into_reduction(self) -> Reduction {
        self.whole.search
    }

    /// The leaf whose execution is under way at its turn.
    pub(super) fn under_way(&self) -> Option<usize> {
        self.whole.turn.as_ref().map(|t| t.leaf)
    }
}

impl Search for InOrder {
    fn watch(&mut self, watch: Watch) {
        self.whole.search.watch = watch;
    }

    fn next(&mut self) -> Option<Schedule> {
        let parallel = self.parallel();
        let InOrder { whole, next_ticket, discarded, settled, .. } = self;
        let mut desk = Desk { next_ticket, discarded, settled };
        match whole.next(&mut desk) {
            Next::Run(schedule) => return Some(*schedule),
            Next::Over => return None,
            Next::UnderWay if !parallel => return None,
            Next::UnderWay => {}
        }
        if !whole.stock().is_full() {
            return whole.run_ahead(None, &mut desk);
        }
        let has_part = |leaf: &usize| whole.parts.contains_key(leaf);
        let latest = whole.search.tree.leaves().filter(has_part).last()?;
        let sooner = whole.run_ahead(Some(latest), &mut desk)?;
        desk.drop(whole.parts.remove(&latest));
        Some(sooner)
    }

    fn done(&mut self, ticket: u64, trace: &Trace) {
        let InOrder { whole, next_ticket, discarded, settled, names } = self;
        let mut desk = Desk { next_ticket, discarded, settled };
        if !whole.finish(ticket, trace, names, &mut desk) {
            desk.was_for_nothing(ticket);
        }
    }

    fn exhaustive(&self) -> bool {
        self.whole.turn.is_none() && self.reduction().tree.waiting() == 0 && !self.reduction().partial
    }

    fn transitions(&self) -> u64 {
        self.reduction().transitions
    }

    fn sleep_blocked(&self) -> u64 {
        self.reduction().sleep_blocked
    }

    fn parallel(&self) -> bool {
        // Which of the executions of the others turn out to be redundant is known only when they are run, in order.
        self.reduction().insertion == Insertion::Sequence
    }

    fn discarded(&self) -> u64 {
        self.discarded
    }

    fn ahead(&self) -> u64 {
        self.whole.stock().runs as u64
    }

    fn settled(&mut self) -> Option<Vec<(u64, bool)>> {
        Some(std::mem::take(&mut self.settled))
    }

    fn save(&self) -> Option<Vec<u8>> {
        Some(self.encoded())
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        Ok(self.decode(bytes)?)
    }

    fn frontier(&self) -> u64 {
        self.reduction().tree.waiting()
    }

    fn progress(&self) -> Option<f64> {
        Some(self.reduction().tree.done()).filter(|&done| done > 0.0)
    }
}

impl Part {
    fn new(search: Reduction, runs: Option<VecDeque<Run>>) -> Part {
        Part { search, turn: None, parts: BTreeMap::new(), runs, bytes: 0 }
    }

    /// What is kept here, the search itself left out.
    fn stock(&self) -> Stock {
        let own = Stock { runs: self.runs.as_ref().map_or(0, VecDeque::len), parts: 0, bytes: self.bytes };
        let of = |part: &Part| {
            let tree = part.search.tree.size() * size_of::<Node>();
            part.stock().plus(Stock { parts: 1, bytes: tree, runs: 0 })
        };
        self.parts.values().map(of).fold(own, Stock::plus)
    }

    /// The next execution at its turn, after those that parts have run.
    fn next(&mut self, desk: &mut Desk) -> Next {
        if self.turn.is_some() {
            return Next::UnderWay;
        }
        // The part whose leaf the search is at or below.
        let mut current: Option<Part> = None;
        let (leaf, order) = loop {
            let mut under_way = current.take_if(|part| part.is_used_up()).and_then(|part| self.take_over(part, desk));
            let Some((leaf, schedule)) = self.search.take() else {
                desk.drop(current);
                return Next::Over;
            };
            let order = Order::new(schedule);
            if let Some(part) = self.parts.remove(&leaf) {
                desk.drop(current.replace(part));
                if let Some(part) = current.take_if(|part| part.is_used_up()) {
                    under_way = self.take_over(part, desk);
                }
            }
            // What is under way and not asked for is for nobody from now on.
            if let Some(turn) = under_way.filter(|turn| turn.order.serves(&order)) {
                desk.drop(current);
                self.turn = Some(Turn { leaf, ..turn });
                return Next::UnderWay;
            }
            match current.as_mut().and_then(|part| part.take_run(&order)) {
                Some(run) => self.learn(leaf, run, desk),
                None => break (leaf, order),
            }
        };
        desk.drop(current);
        let ticket = desk.ticket();
        let schedule = order.with_ticket(ticket);
        self.turn = Some(Turn { leaf, ticket, order });
        Next::Run(Box::new(schedule))
    }

    /// The first of what it was told of, if that is what is asked for.
    fn take_run(&mut self, order: &Order) -> Option<Run> {
        let runs = self.runs.as_mut()?;
        let run = runs.pop_front()?;
        if !run.order.serves(order) {
            runs.push_front(run);
            return None;
        }
        self.bytes -= run.bytes();
        Some(run)
    }

    /// True if the search it is a part of has been told all that it was told.
    fn is_used_up(&self) -> bool {
        self.runs.as_ref().is_none_or(VecDeque::is_empty)
    }

    /// Takes over the parts of a part that is used up, so that its tree and this one are the same below its leaf, and gives
    /// what it has under way.
    fn take_over(&mut self, part: Part, desk: &mut Desk) -> Option<Turn> {
        for (leaf, below) in part.parts {
            match self.search.tree.leaf_at(&part.search.tree.ranks(leaf)) {
                Some(leaf) => desk.drop(self.parts.insert(leaf, below)),
                None => desk.drop(Some(below)),
            }
        }
        part.turn
    }

    /// An execution for one of the parts, the soonest first, up to that at the leaf `until`; it may be a new one.
    fn run_ahead(&mut self, until: Option<usize>, desk: &mut Desk) -> Option<Schedule> {
        let leaves = self.search.tree.leaves().take_while(|&leaf| Some(leaf) != until);
        for leaf in leaves {
            let Some(part) = self.parts.get_mut(&leaf) else {
                let mut part = Part::new(self.search.branch(leaf), Some(VecDeque::new()));
                let schedule = part.start(desk);
                self.parts.insert(leaf, part);
                return schedule;
            };
            if let Some(schedule) = part.start(desk) {
                return Some(schedule);
            }
        }
        None
    }

    /// An execution for this part or one of its own.
    fn start(&mut self, desk: &mut Desk) -> Option<Schedule> {
        match self.next(desk) {
            Next::Run(schedule) => Some(*schedule),
            Next::UnderWay => self.run_ahead(None, desk),
            Next::Over => None,
        }
    }

    /// What the execution with that ticket did. False: it was under way for nobody.
    fn finish(&mut self, ticket: u64, trace: &Trace, names: &mut Names, desk: &mut Desk) -> bool {
        match self.turn.take_if(|turn| turn.ticket == ticket) {
            Some(Turn { leaf, order, ticket }) => {
                let canon = names.of(trace);
                match self.runs {
                    Some(_) => self.learn(leaf, Run { ticket, order, trace: trace.clone(), canon }, desk),
                    None => {
                        desk.settled.push((ticket, true));
                        self.tell(leaf, trace, &canon, desk);
                    }
                }
                true
            }
            None => self.parts.values_mut().any(|part| part.finish(ticket, trace, names, desk)),
        }
    }

    /// The search is told of an execution, which is kept if this is a part.
    fn learn(&mut self, leaf: usize, run: Run, desk: &mut Desk) {
        self.tell(leaf, &run.trace, &run.canon, desk);
        match &mut self.runs {
            Some(runs) => {
                self.bytes += run.bytes();
                runs.push_back(run);
            }
            None => desk.settled.push((run.ticket, true)),
        }
    }

    fn tell(&mut self, leaf: usize, trace: &Trace, canon: &Canon, desk: &mut Desk) {
        for gone in self.search.learn(leaf, trace, canon) {
            desk.drop(self.parts.remove(&gone));
        }
    }
}

impl Run {
    /// Bytes that it takes, roughly.
    fn bytes(&self) -> usize {
        let Trace { steps, seen, last, .. } = &self.trace;
        let states = seen.iter().chain([last]).map(|s| s.len() * size_of::<Seen>()).sum::<usize>();
        states + steps.len() * (size_of::<Step>() + size_of::<Vec<Seen>>())
    }
}
