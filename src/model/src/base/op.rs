//! Visible operations.

use crate::base::NONE;

/// What a visible operation does. A transparent integer: see the crate's head for why it is not an enum.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(transparent)]
pub struct Kind(pub u8);

/// Does not block: fails instead.
pub const TRY: u8 = 1;
/// Gives up at `deadline`.
pub const TIMED: u8 = 2;
/// A cancellation point: enabled too when the thread is asked to end.
pub const CANCEL_POINT: u8 = 4;
/// A variant of the operation; what it means depends on the kind.
pub const VARIANT: u8 = 8;
/// A semop of several operations; `Op::arg` holds them for reports (see `pack_semops`), not an amount. Of a close: it is of an
/// epoll instance; filled in where it is recorded.
pub const SEVERAL: u8 = 16;
/// An operation on a descriptor that concerns epoll instances too; filled in where it is recorded, see `epoll`.
pub const REACHES: u8 = 32;
/// A read or write that goes on after a part has been moved: a signal ends it where it blocks, whatever SA_RESTART says, and
/// no handler runs before it. Of semop and msgrcv, where somebody asks who waits: it has begun to.
pub const PARTIAL: u8 = 64;
/// Of semop: somebody asks who was the last (see [`Arena::ask`](crate::arena::Arena::ask)). Of semctl and of operations on queues of
/// messages: somebody asks who waits.
pub const TELLS_LAST: u8 = 128;
/// A wait that goes on after a signal handler: what woke it meanwhile is not seen in it. Of waits of a condition variable and
/// at a barrier.
pub const RESUMED: u8 = 32;
/// Of semop: somebody asks who waits.
pub const TELLS_WAITS: u8 = 32;
/// Of a read or write of bytes and of a wait for events: of its memory only the first `Thread::out[0]` bytes are there. It waits
/// and fails as always, but moves no piece that does not fit there, and gives EFAULT if that is the first.
pub const LACKS: u8 = 128;

/// One visible operation: 32 bytes of plain data.
#[derive(Clone, Copy, Hash, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(C)]
pub struct Op {
    /// What it does.
    pub kind: Kind,
    /// [`TRY`], [`TIMED`], [`CANCEL_POINT`], [`VARIANT`], [`SEVERAL`], [`REACHES`], [`RESUMED`], [`PARTIAL`],
    /// [`LACKS`].
    pub flags: u8,
    /// What signals could be delivered in its place; filled in where it is recorded, see [`crate::signal`].
    pub signals: u16,
    /// The object, an index of [`crate::World::objects`] (of threads or processes for some kinds), or [`NONE`].
    pub obj: u32,
    /// A second object, or [`NONE`].
    pub obj2: u32,
    /// A bit set of the semaphores of a set that a semop touches, number modulo 32; bitset of a futex operation; channels
    /// that an operation on descriptors concerns.
    pub mask: u32,
    /// Kind-specific argument.
    pub arg: i64,
    /// Virtual monotonic time in ns at which a timed operation ([`TIMED`]) gives up. Kinds that are never timed keep another number here.
    pub deadline: u64,
}

impl Default for Op {
    fn default() -> Op {
        Op::new(Kind::NONE)
    }
}

impl Op {
    /// An operation without operands.
    pub const fn new(kind: Kind) -> Op {
        Op { kind, flags: 0, signals: 0, obj: NONE, obj2: NONE, mask: 0, arg: 0, deadline: 0 }
    }

    /// An operation on one object.
    pub const fn on(kind: Kind, obj: u32) -> Op {
        let mut op = Op::new(kind);
        op.obj = obj;
        op
    }

    /// The same with flags added.
    pub const fn with(mut self, flags: u8) -> Op {
        self.flags |= flags;
        self
    }

    /// The same with a kind-specific argument.
    pub const fn arg(mut self, arg: i64) -> Op {
        self.arg = arg;
        self
    }

    /// The same, giving up at `deadline` (virtual ns).
    pub const fn until(mut self, deadline: u64) -> Op {
        self.flags |= TIMED;
        self.deadline = deadline;
        self
    }

    /// True if it fails where it would block.
    pub const fn tries(&self) -> bool {
        self.has(TRY) || self.kind.0 == Kind::SYSV_OP.0 && self.has(VARIANT)
    }

    /// True if `flag` is set.
    pub const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}
