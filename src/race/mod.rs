//! Do threads touch memory in an order that visible operations keep?
//!
//! Executions switch at visible operations only. If in every execution of a search that is complete at that granularity each two accesses
//! that conflict are ordered by what is visible, then no further switch could show anything new. If two are not, there is an execution
//! with a switch between accesses that this search does not know of.
//!
//! An edge of happens-before counts only where the reduction keeps the order of its two operations: an edge across a pair that commutes
//! (a `sem_wait` with enough there, a failing trylock) would hide the race behind it in every trace that is explored. So the edges are
//! the dependencies of the transitions, in the states recorded, and nothing else ([`Order`]). That more depends on each other than has to
//! hides no race: let two accesses of different threads be the next of both in some execution with switches anywhere, the first such
//! pair. Up to there it is equivalent to one with switches at operations only, a beginning of a trace that is explored; neither thread
//! has made a further operation, so there is nothing that either access could happen before.
//!
//! The accesses of an execution come as [`Note`]s, in its order; [`races`] is a function of these and of the trace.

mod order;
mod words;

pub use order::Order;
pub use words::{Race, Touch, Words};

use vsrun_model::{Pid, Tid};

use crate::trace::Trace;

/// One access to memory, of all bytes from `address` on that lie within one execution's log entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// Whose memory: that of a process, or one that processes share.
    pub space: u32,
    /// Where; for what processes share, the place in the mapping and not the address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// It writes.
    pub write: bool,
    /// Atomic: a LOCK prefix, or xchg.
    pub locked: bool,
    /// The instruction: its number among the access sites.
    pub site: u32,
}

impl Access {
    /// The order of both can be told, if nothing else orders them.
    pub fn conflicts(&self, other: &Access) -> bool {
        let apart = self.address + self.size <= other.address || other.address + other.size <= self.address;
        self.space == other.space && !apart && (self.write || other.write)
    }
}

/// What the log of an execution says, in the order in which it came about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Note {
    /// `thread` begins to run. What `creator` has done so far is before it; what it does from now on is not.
    Begins {
        /// The new thread, or the first one of a new process.
        thread: Tid,
        /// Who has created it.
        creator: Tid,
        /// Its process.
        process: Pid,
        /// The process that created its process, or [`NONE`](vsrun_model::NONE).
        parent: Pid,
    },
    /// The transition of that index in the trace is made, by its thread.
    Step {
        /// Index in [`Trace::steps`].
        index: u32,
    },
    /// `thread` has come to its end: whoever waits for that has all it did before it. Not said of one that another one has ended.
    Ends {
        /// The thread.
        thread: Tid,
    },
    /// `thread` touches memory, after its last step and before its next one.
    Touches {
        /// The thread.
        thread: Tid,
        /// What.
        access: Access,
    },
    /// Memory is given out anew (malloc, mmap): what was done to it before is nothing to who has it now.
    Anew {
        /// As in [`Access`].
        space: u32,
        #[allow(missing_docs)]
        address: u64,
        /// Bytes.
        size: u64,
    },
}

/// The pairs of accesses of an execution that conflict and that nothing orders: each pair of instructions once for each piece of memory.
/// What was pending has to be recorded in all states of the trace.
pub fn races(trace: &Trace, notes: impl IntoIterator<Item = Note>) -> Vec<Race> {
    let mut order = Order::new(trace);
    let mut words = Words::default();
    for note in notes {
        match note {
            Note::Begins { thread, creator, process, parent } => order.begins(thread, creator, process, parent),
            Note::Step { index } => order.step(index as usize),
            Note::Ends { thread } => order.ends(thread),
            Note::Anew { space, address, size } => words.anew(space, address, size),
            Note::Touches { thread, access } => words.touch(&order, thread, access),
        }
    }
    words.into_races()
}
