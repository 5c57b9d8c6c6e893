//! A recorded operation, and what a transition did beyond its operation.

use crate::base::{Kind, Op, Pid, Tid, Uid, NONE, TRY};
use crate::state::ObjKind;

/// An operation of a thread, with what its dependencies are conditional on.
#[derive(Clone, Copy, Hash, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(C)]
pub struct Act {
    /// The thread's name.
    pub uid: Uid,
    /// The thread.
    pub tid: Tid,
    /// Its process.
    pub pid: Pid,
    /// The process that created its process, or [`NONE`].
    pub parent: Pid,
    /// Kind of `op.obj`, where that is an object.
    pub obj_kind: ObjKind,
    /// [`TIMED_OUT`], [`EXPIRED`], [`CANCELLED`], [`WOKEN`], [`IN_ONCE`], [`GIVES_WAY`], [`HELD`],
    /// [`BORN_EXPIRED`].
    pub fate: u8,
    /// 1 + the once control whose initializer its thread runs, 0: none, [`SOME_ONCE`]: it is not known which.
    pub once: u16,
    /// The operation.
    pub op: Op,
    /// The object's recorded state. Locks and once controls: 1 + the owner, 0 if there is none (of the mutex, where a
    /// condition variable is waited on). Semaphores: the value. Wake-ups and destruction: the number of waiters. Sets of
    /// semaphores: the value, or up to four values of 16 bits for the operations of a semop in their order. Rwlocks: see
    /// `RwState`. join: 1 if it would return. wait: see `WaitState`. Message queues: see [`QueueState`](crate::state::recorded::QueueState).
    /// Locks of files: see `LockState`. Operations on channels: see
    /// [`ChannelState`](crate::state::recorded::ChannelState). poll: a bit for each description that has an event.
    pub state: i64,
}

/// Bit of [`Act::fate`]: the deadline may fire now and nothing else lets the operation go on.
pub const TIMED_OUT: u8 = 1;
/// Bit of [`Act::fate`]: the deadline has passed, so that the operation does not block, whatever becomes of its object.
pub const EXPIRED: u8 = 4;
/// Bit of [`Act::fate`]: the thread is asked to end and this is a point at which it does.
pub const CANCELLED: u8 = 2;
/// Bit of [`Act::fate`]: the operation has been given its wake-up.
pub const WOKEN: u8 = 8;
/// Bit of [`Act::fate`]: the thread runs the initializer of a once control, which may end with any of its transitions.
pub const IN_ONCE: u8 = 16;
/// Bit of [`Act::fate`]: its deadline had passed before it became pending.
pub const BORN_EXPIRED: u8 = 128;
/// [`Act::once`] where several are nested, or there are very many objects.
pub const SOME_ONCE: u16 = u16::MAX;
/// Bit of [`Act::fate`]: it waits for others to move, as a yield does.
pub const GIVES_WAY: u8 = 32;
/// Bit of [`Act::fate`]: it may have to wait for others to move: its thread has given way often enough.
pub const HELD: u8 = 64;
/// Bits of [`Act::fate`] that let an operation go on whatever becomes of its object.
pub const LETS_GO: u8 = TIMED_OUT | EXPIRED | CANCELLED;

impl Act {
    /// No operation.
    pub const NOTHING: Act = Act {
        uid: Uid(0),
        tid: NONE,
        pid: NONE,
        parent: NONE,
        obj_kind: ObjKind(0),
        fate: 0,
        once: 0,
        op: Op::new(Kind::NONE),
        state: 0,
    };

    /// It goes on without what it waits for.
    pub(crate) fn gives_up(&self) -> bool {
        self.op.has(TRY) || self.fate & (EXPIRED | CANCELLED) != 0
    }
}

/// What an executed transition did beyond its operation: known only once it has been executed. Bits.
#[derive(Clone, Copy, Hash, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(transparent)]
pub struct Effects(pub u8);

#[allow(missing_docs)]
impl Effects {
    pub const NONE: Effects = Effects(0);
    /// Its thread is over.
    pub const ENDS: Effects = Effects(1);
    /// Its thread has called for the end of its process, or has come to its visible end: which depends on the other threads
    /// that are left.
    pub const EXITS: Effects = Effects(2);
    /// The execution ended early with it (assertion, crash): nothing comes after it.
    pub const LAST: Effects = Effects(4);
    /// It has sent a signal to a process, which may notice it at any operation.
    pub const SIGNALS: Effects = Effects(8);
    /// It has changed what operations see that name neither its objects nor its channels.
    pub const FAR: Effects = Effects(16);
    /// It has ended a thread and left one in the process.
    pub const LEAVES_ONE: Effects = Effects(32);
    /// It has ended a thread, and would have come to the visible end of the process had that thread been the last.
    pub const NEARLY_EXITS: Effects = Effects(64);
    /// What an operation that has not been performed may come to do. That it calls for the end of its process is left out:
    /// then everything would depend on everything. Sleep sets see it once it has been done.
    pub const ANY: Effects = Effects(1);
    /// What nothing is independent of.
    pub(crate) const WIDE: Effects = Effects(4 | 8 | 16);

    pub fn has(self, other: Effects) -> bool {
        self.0 & other.0 != 0
    }

    /// It concerns threads of other processes too.
    pub fn wakes_others(self) -> bool {
        self.has(Effects::WIDE)
    }

    pub fn with(self, other: Effects) -> Effects {
        Effects(self.0 | other.0)
    }

    pub fn without(self, other: Effects) -> Effects {
        Effects(self.0 & !other.0)
    }
}
