//! The footprint of a transition: the cells that it touches, and how. Two transitions depend on each other if and only if they
//! touch a common cell in ways that do not commute; where to look for what one depends on, and the quick test, follow from the
//! same list (`relation`).

use crate::base::{ObjId, Pid, Tid};

/// What can be touched.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Cell {
    /// Everything there is.
    World,
    /// How far a thread is, its end, and who has joined it.
    Thread(Tid),
    /// What is pending for a process.
    Process(Pid),
    /// How far the children of a process are, and who has waited for them.
    Children(Pid),
    /// Which threads of a process are left.
    Left(Pid),
    /// Which numbers of processes and threads are in use.
    Ids,
    /// Which threads run initializers of once controls.
    Initializers,
    /// Keys that are freed by the removal of a semaphore set or queue.
    Removals,
    /// Circles of waits for record locks.
    LockCircles,
    /// Channels that are concerned beyond the objects that are named.
    Channels,
    /// A synchronization or communication object.
    Object(ObjId),
}

/// How a cell is touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum How {
    /// Commutes with its like only.
    Reads,
    /// Commutes with nothing.
    Writes,
    /// Commutes with its like, not with `Changes`.
    Looks,
    /// Commutes with its like, not with `Looks`.
    Changes,
    /// Is a transition of this thread; its last.
    Moves { ends: bool },
    /// Waits for the end of the thread, or sees whether it has come.
    Joins { sees: bool },
    /// Is a transition of this child; its last.
    ChildMoves { child: Pid, ends: bool },
    /// Waits for the end of a child (1 + its process; 0: any), or sees whether it has come.
    Awaits { child: u32, sees: bool },
    /// Concerns these channels.
    Channels { mask: u32, by: By },
    /// Joins the queue of those who wait.
    Waits,
    /// Leaves that queue; `given`: it has its wake-up.
    Woken { given: bool },
    /// Acquires a lock; `owned`: somebody has it.
    Acquires { owned: bool },
    /// Wakes; all who wait; nobody, and it can be told of other states whether that is so there too (of futexes it cannot: who comes to
    /// wait rests on the program's memory).
    Wakes { all: bool, nobody: bool, told: bool },
    /// Wakes, and does more.
    WakesAndMore,
    /// Takes or gives back what several may have.
    Shares,
    /// Adds one to a number.
    Adds { value: i64 },
    /// Takes one from a number, or waits for it.
    Takes { value: i64 },
    /// semop on the semaphores `on` (a set, number modulo 32): adds `amount` to one that has `value`; 0: does something else.
    Semop { on: u32, amount: i64, value: i64 },
    /// Uses these bytes of a word of memory, a bit for each.
    Bytes { bytes: u8, writes: bool },
    /// Arrives at a barrier for this round of it, where nobody can tell in which order.
    Arrives { round: i64 },
    /// Leaves it after this round.
    Leaves { round: i64 },
    /// Is about locks of these bytes of a file; only tests them.
    FileLock { first: u64, last: u64, tests: bool },
    /// Uses the contents of a file: reads them through this open file description; `None`: changes them.
    File { through: Option<u32> },
    /// Uses a set of names of files; only looks them up.
    Names { set: i64, looks: bool },
}

/// In which way an operation on descriptors concerns channels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// Only those that it names.
    Name,
    /// It wakes the epoll instances among them.
    NameAndWakes,
    /// All of the mask.
    Mask,
    /// It only looks at all of the mask.
    MaskLook,
}

/// Cells that one transition touches, at most.
const MAX_CELLS: usize = 16;

/// All cells that a transition touches, and how.
#[derive(Clone, Copy, Debug)]
pub struct Footprint {
    cells: [(Cell, How); MAX_CELLS],
    len: usize,
}

impl Footprint {
    /// Nothing.
    pub const NOTHING: Footprint = Footprint { cells: [(Cell::World, How::Reads); MAX_CELLS], len: 0 };

    /// `cell` is touched too.
    pub fn touch(&mut self, cell: Cell, how: How) {
        self.cells[self.len] = (cell, how);
        self.len += 1;
    }

    /// The cells.
    pub fn cells(&self) -> &[(Cell, How)] {
        &self.cells[..self.len]
    }
}
