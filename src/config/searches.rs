//! The searches, and their names on the command line.

use clap::ValueEnum;

use crate::search::Bound;

/// How the interleavings are explored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SearchKind {
    /// Dynamic partial-order reduction with wakeup trees: every trace once.
    Optimal,
    /// Every enabled transition in every state.
    Naive,
    /// Every enabled transition in every state, each state once.
    Stateful,
    /// Every enabled transition in every state, and traces counted.
    Traces,
    /// Dynamic partial-order reduction with sleep sets.
    Dpor,
    /// Persistent sets and sleep sets.
    Sss,
    /// The same with invisible transitions first.
    IfSss,
    /// The same with transitions composed of a visible one and the invisible ones after it.
    Composed,
    /// Transactions of right movers, a commit and left movers.
    Transactions,
    /// Switches only at releases of locks.
    ExitBlock,
    /// The same, with what reads and writes different objects put to sleep.
    ExitBlockRw,
    /// Random executions, without an end of their own.
    Random,
    /// Random executions in which threads are drawn by what they have left.
    Walk,
    /// Random executions by priorities of operations, drawn again where operations depend on each other.
    Pos,
    /// Random executions in which the operations on one object come in an order drawn uniformly.
    Surw,
    /// Random executions that are varied by which operation found what which other one had left.
    Rff,
    /// Random executions that begin like one that showed something new.
    Novel,
    /// What executions allow that they did not show (`--search predict`).
    Predict,
    /// One execution with the default policy (`--once`).
    Once,
    /// Random priorities with a few changes (`--search pct`).
    Pct,
    /// What schedules within a bound do (`--bound`).
    Bounded(Bound),
}

impl SearchKind {
    /// The name in reports and scenarios.
    pub fn name(self) -> &'static str {
        match self {
            SearchKind::Optimal => "optimal",
            SearchKind::Naive => "naive",
            SearchKind::Stateful => "stateful",
            SearchKind::Traces => "traces",
            SearchKind::Dpor => "dpor",
            SearchKind::Sss => "sss",
            SearchKind::IfSss => "if-sss",
            SearchKind::Composed => "composed",
            SearchKind::Transactions => "transactions",
            SearchKind::ExitBlock => "exitblock",
            SearchKind::ExitBlockRw => "exitblock-rw",
            SearchKind::Random => "random",
            SearchKind::Walk => "walk",
            SearchKind::Pos => "pos",
            SearchKind::Surw => "surw",
            SearchKind::Rff => "rff",
            SearchKind::Novel => "novel",
            SearchKind::Predict => "predict",
            SearchKind::Pct => "pct",
            SearchKind::Once => "once",
            SearchKind::Bounded(Bound::Preemptions(_)) => "preemptions",
            SearchKind::Bounded(Bound::Delays(_)) => "delays",
        }
    }

    /// Whether it samples executions by lot, without an end of its own.
    pub fn draws_lots(self) -> bool {
        use SearchKind::{Novel, Pct, Pos, Predict, Random, Rff, Surw, Walk};
        matches!(self, Random | Walk | Pos | Surw | Rff | Novel | Predict | Pct)
    }

    /// Whether another one of its kind can go on from what it has kept of executions.
    pub fn keeps(self) -> bool {
        matches!(self, SearchKind::Rff | SearchKind::Novel)
    }

    /// Whether it leaves orders out by what depends on what, which is not proven for all that programs do.
    pub fn reduces(self) -> bool {
        match self {
            SearchKind::Optimal | SearchKind::Dpor | SearchKind::Sss | SearchKind::IfSss => true,
            SearchKind::Composed | SearchKind::Transactions => true,
            SearchKind::ExitBlock | SearchKind::ExitBlockRw | SearchKind::Bounded(Bound::Preemptions(_)) => true,
            SearchKind::Naive | SearchKind::Stateful | SearchKind::Traces => false,
            SearchKind::Bounded(Bound::Delays(_)) => false,
            SearchKind::Random | SearchKind::Walk | SearchKind::Pos | SearchKind::Surw => false,
            SearchKind::Rff | SearchKind::Novel | SearchKind::Predict | SearchKind::Pct | SearchKind::Once => false,
        }
    }
}

/// The name of a search on the command line. What the contract names but a later stage brings is refused by name.
#[allow(missing_docs)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum SearchName {
    Optimal,
    Dpor,
    Naive,
    Stateful,
    // `naive`, with the traces counted.
    #[value(hide = true)]
    Traces,
    Random,
    Walk,
    Pos,
    Surw,
    Rff,
    Novel,
    Predict,
    Pct,
    Sss,
    IfSss,
    Composed,
    Transactions,
    Exitblock,
    ExitblockRw,
}
