//! What is kept of an epoll instance.

use crate::base::Pid;
use crate::state::{ChanId, DescId};

/// Events that one wait returns at most.
pub const MAX_EVENTS: usize = 1024;

#[allow(missing_docs)]
pub mod flag {
    pub const EXCLUSIVE: u32 = 1 << 28;
    pub const WAKEUP: u32 = 1 << 29;
    pub const ONESHOT: u32 = 1 << 30;
    pub const EDGE: u32 = 1 << 31;
    /// Those that are not events.
    pub const PRIVATE: u32 = EXCLUSIVE | WAKEUP | ONESHOT | EDGE;
}

/// What an instance watches.
#[derive(Clone, Copy, Hash, Debug, Default)]
#[repr(C)]
pub struct Watch {
    /// The channel of the instance; [`NONE`](crate::NONE): the record is not in use.
    pub epoll: ChanId,
    /// What is watched; next free record.
    pub desc: DescId,
    /// The number that it was added by.
    pub fd: i32,
    /// EPOLL* bits; none of them events: a one-shot watch that has been reported.
    pub events: u32,
    /// What is returned with the events.
    pub data: u64,
    /// Place in the ready list: larger ones come later; 0: it is not in it.
    pub place: u64,
    /// Signal descriptors: the signals of `owner` that were pending when somebody last looked, and have not been sent again since.
    pub seen: u64,
    /// The process that added it, whose signals alone put the watch of a signal descriptor into the list (fs/signalfd.c, signalfd_poll).
    pub owner: Pid,
    pub(crate) pad: u32,
}

impl Watch {
    /// False if it is switched off.
    pub fn enabled(&self) -> bool {
        self.events & !flag::PRIVATE != 0
    }
}

/// An event that a wait returns.
#[derive(Clone, Copy, Hash, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Delivered {
    /// EPOLL* bits.
    pub events: u32,
    pub(crate) pad: u32,
    /// What the program gave with the watch.
    pub data: u64,
}

/// What epoll_ctl does.
#[derive(Clone, Copy, Hash, PartialEq, Eq, Debug)]
pub enum Control {
    /// EPOLL_CTL_ADD, with events and data.
    Add(u32, u64),
    /// EPOLL_CTL_MOD.
    Change(u32, u64),
    /// EPOLL_CTL_DEL.
    Remove,
}
