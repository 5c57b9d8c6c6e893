//! The recorded states of operations ([`Act::state`](crate::Act)) that are more than one number, packed into one.

use crate::base::Pid;
use crate::state::IS_DESCRIPTION;

pub(crate) const STATE_BITS: u32 = 26;
/// [`ChannelState::event`] of a counter or a socket.
pub(crate) const COUNTS: u8 = 1;
/// [`ChannelState::event`] of a timer, of signals, of an epoll instance.
pub(crate) const OTHERWISE: u8 = 2;
/// [`ChannelState::event`] of a message queue: `free` is 0 or 1.
pub(crate) const QUEUED: u8 = 3;

/// How a channel is found: half of [`Act::state`](crate::state::act::Act) of the operations on channels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChannelState {
    /// A read goes on.
    pub readable: bool,
    /// A write goes on, in vain.
    pub broken: bool,
    /// Bytes left in the buffer written last.
    pub last: u64,
    /// Buffers not in use; 1 for a counter that is far from its limit.
    pub free: u64,
    /// It is no pipe: then only `readable` is known of it, and of a message queue whether there is room.
    pub event: u8,
}

impl ChannelState {
    pub(crate) fn pack(self) -> i64 {
        let buffers = (self.last as i64) << 2 | (self.free as i64) << 15;
        i64::from(self.readable) | i64::from(self.broken) << 1 | buffers | i64::from(self.event) << 24
    }

    /// From [`Act::state`](crate::state::act::Act): that of the first channel.
    pub fn of(state: i64) -> ChannelState {
        ChannelState {
            readable: state & 1 != 0,
            broken: state & 2 != 0,
            last: (state >> 2 & 0x1fff) as u64,
            free: (state >> 15 & 0x1ff) as u64,
            event: (state >> 24 & 3) as u8,
        }
    }

    /// That of the second channel.
    pub fn second(state: i64) -> ChannelState {
        ChannelState::of(state >> STATE_BITS)
    }
}

/// `Act::state` of an operation on a rwlock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RwState {
    /// 1 + the writer, 0 if there is none.
    pub owner: u32,
    /// Read holds.
    pub readers: u32,
    /// Writers that have announced themselves.
    pub announced: u32,
    /// Writers are preferred.
    pub prefers: bool,
    /// The thread of the operation holds it for reading.
    pub holds: bool,
}

impl RwState {
    /// As a number.
    pub fn pack(self) -> i64 {
        let bits = u64::from(self.owner & 0xff_ffff)
            | u64::from(self.readers & 0xf_ffff) << 24
            | u64::from(self.announced & 0xffff) << 44
            | u64::from(self.prefers) << 60
            | u64::from(self.holds) << 61;
        bits as i64
    }

    /// From `Act::state`.
    pub fn of(state: i64) -> RwState {
        let bits = state as u64;
        RwState {
            owner: (bits & 0xff_ffff) as u32,
            readers: (bits >> 24 & 0xf_ffff) as u32,
            announced: (bits >> 44 & 0xffff) as u32,
            prefers: bits >> 60 & 1 != 0,
            holds: bits >> 61 & 1 != 0,
        }
    }
}

/// `Act::state` of a wait for processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitState {
    /// 1 + the process that is waited for, 0 if any of several.
    pub target: u32,
    /// Matching children that are over, and that are not.
    pub over: u32,
    /// See `over`.
    pub alive: u32,
    /// Children have ended of which nothing was left to wait for.
    pub lost: bool,
}

impl WaitState {
    /// As a number.
    pub fn pack(self) -> i64 {
        let (over, alive) = (i64::from(self.over.min(0x7fff)), i64::from(self.alive.min(0x7fff)));
        i64::from(self.target) | over << 32 | alive << 47 | i64::from(self.lost) << 62
    }

    /// From `Act::state`.
    pub fn of(state: i64) -> WaitState {
        let number = |shift: u32| (state >> shift & 0x7fff) as u32;
        WaitState { target: state as u32, over: number(32), alive: number(47), lost: state >> 62 & 1 == 1 }
    }
}

/// [`crate::state::act::Act::state`] of an operation on locks of a file: who holds something of its range.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LockState {
    /// The owner of a lock for writing, or 0.
    pub writer: u32,
    /// The first owner of a lock for reading, or 0.
    pub reader: u32,
    /// There are more owners than these.
    pub many: bool,
    /// To wait would close a circle.
    pub circle: bool,
    /// The owner that asks.
    pub me: u32,
}

impl LockState {
    /// As a number.
    pub fn pack(self) -> i64 {
        const OWNER: u64 = 0x1f_ffff;
        let bits = u64::from(self.writer) & OWNER
            | (u64::from(self.reader) & OWNER) << 21
            | u64::from(self.many) << 42
            | u64::from(self.circle) << 43;
        bits as i64
    }

    /// From [`crate::state::act::Act::state`] of an operation by owner `me`.
    pub fn of(state: i64, me: u32) -> LockState {
        const OWNER: i64 = 0x1f_ffff;
        LockState {
            writer: (state & OWNER) as u32,
            reader: (state >> 21 & OWNER) as u32,
            many: state >> 42 & 1 != 0,
            circle: state >> 43 & 1 != 0,
            me,
        }
    }

    /// The same with other numbers of processes.
    pub fn renamed(self, process: impl Fn(Pid) -> Pid) -> LockState {
        let owner = |o: u32| if o == 0 || o & IS_DESCRIPTION != 0 { o } else { process(o - 1) + 1 };
        LockState { writer: owner(self.writer), reader: owner(self.reader), ..self }
    }
}

/// [`crate::state::act::Act::state`] of an operation on a queue: what decides whether others wait for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueState {
    /// Bit n - 1: there is a message of type n; bit 31: one of type 32 or above.
    pub types: u32,
    /// Bytes that are free, up to 2^20 - 1.
    pub free: u32,
    /// Another message may come, as far as their number goes.
    pub room: bool,
    /// It has been removed.
    pub removed: bool,
}

impl QueueState {
    /// As a number.
    pub fn pack(self) -> i64 {
        i64::from(self.types)
            | i64::from(self.free & 0xf_ffff) << 32
            | i64::from(self.room) << 52
            | i64::from(self.removed) << 53
    }

    /// From [`crate::state::act::Act::state`].
    pub fn of(state: i64) -> QueueState {
        QueueState {
            types: state as u32,
            free: (state >> 32 & 0xf_ffff) as u32,
            room: state >> 52 & 1 != 0,
            removed: state >> 53 & 1 != 0,
        }
    }
}
