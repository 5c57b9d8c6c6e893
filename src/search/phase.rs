//! How far a thread has come in a transaction (Flanagan and Qadeer, Transactions for Software Model Checking, Section 4).

/// What the thread that moved last is in the middle of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stage {
    /// Nothing: the next operation begins a transaction.
    #[default]
    Outside,
    /// Before the commit: only right movers so far.
    Before,
    /// Behind the commit: only left movers may follow.
    Behind,
}

/// A stage, and what has been acquired on the way.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Phase {
    /// The stage.
    pub stage: Stage,
    /// Locks acquired in this transaction, by object; only before the commit.
    pub taken: Vec<u32>,
}
