//! What is kept of descriptors: tables of the processes, open file descriptions, what a poll asks about.

use crate::base::{numbers, VARIANT};
use crate::state::ChanId;

/// Index of an open file description in [`World::descs`](crate::World).
pub type DescId = u32;

/// Places in [`World::looked_up`](crate::World).
pub const LOOKED_UP: usize = 64;
/// Descriptors in one record of [`World::fd_pages`](crate::World).
pub const FDS_PER_PAGE: usize = 64;
/// Descriptors that a process may have.
pub const MAX_FDS: usize = FDS_PER_PAGE * FD_PAGES;
/// Records that the table of one process may have.
pub const FD_PAGES: usize = 64;

/// A stretch of a process's descriptors: the description of each, or [`NONE`](crate::NONE).
pub type FdPage = [DescId; FDS_PER_PAGE];

numbers! {
    /// What an open file description is.
    DescKind(u8), or "descriptor":
    FREE = 0, "descriptor";
    PIPE = 1, "pipe";
    SOCKET = 2, "socket";
    EVENT = 3, "eventfd";
    TIMER = 4, "timerfd";
    SIGNAL = 5, "signalfd";
    EPOLL = 6, "epoll";
    QUEUE = 7, "message queue";
    /// A file of the kernel's while a message carries its descriptor; `Desc::extra` is its number there. The shim's.
    FILE = 8, "file";
    PROCESS = 9, "pidfd";
}

/// An open file description.
#[derive(Clone, Copy, Hash, Debug, Default)]
#[repr(C)]
pub struct Desc {
    /// What it is; [`DescKind::FREE`]: the record is not in use.
    pub kind: DescKind,
    /// See [`Owner`].
    pub owner_kind: u8,
    /// See [`Owner`].
    pub signal: u8,
    pub(crate) pad: u8,
    /// File status flags: access mode, O_NONBLOCK, O_APPEND, ...
    pub flags: u32,
    /// Descriptors that name it, and messages under way that carry it.
    pub refs: u32,
    /// Where it reads from, or [`NONE`](crate::NONE).
    pub input: ChanId,
    /// Where it writes to, or [`NONE`](crate::NONE).
    pub output: ChanId,
    /// More about it, an index of a table that its kind tells; next free record.
    pub extra: u32,
    /// See [`Owner`].
    pub owner: i32,
    /// Another process has had it too, by a fork or in a message; it may have it no longer.
    pub passed_on: bool,
    /// How many others there have been in this place of the table, from 0 again after 255.
    pub earlier: u8,
    pub(crate) pad2: [u8; 2],
}

/// Who is told of input on a description: F_SETOWN_EX, F_SETSIG.
#[derive(Clone, Copy, Hash, PartialEq, Eq, Debug, Default)]
pub struct Owner {
    /// [`THREAD`](Owner::THREAD) and its like.
    pub kind: u8,
    /// Virtual id; 0: nobody.
    pub id: i32,
    /// The signal; 0: SIGIO.
    pub signal: u8,
}

impl Owner {
    /// F_OWNER_TID.
    pub const THREAD: u8 = 0;
    /// F_OWNER_PID.
    pub const PROCESS: u8 = 1;
    /// F_OWNER_PGRP.
    pub const GROUP: u8 = 2;
}

/// One of the descriptions that a poll asks about.
#[derive(Clone, Copy, Hash, Debug, Default)]
#[repr(C)]
pub struct Polled {
    /// The description.
    pub desc: DescId,
    /// The events asked for, POLL* bits.
    pub events: u16,
    /// Those that are there; set when the poll is performed.
    pub ready: u16,
}

/// Descriptions that one poll may ask about.
pub const MAX_POLLED: usize = 256;
/// Those of which it is recorded, one by one, whether they have an event.
pub const MAX_TOLD: usize = 64;

#[allow(missing_docs)]
pub mod poll {
    pub const IN: u16 = 1;
    pub const PRI: u16 = 2;
    pub const OUT: u16 = 4;
    pub const ERR: u16 = 8;
    pub const HUP: u16 = 0x10;
    pub const NVAL: u16 = 0x20;
    pub const RDNORM: u16 = 0x40;
    pub const RDBAND: u16 = 0x80;
    pub const WRNORM: u16 = 0x100;
    pub const WRBAND: u16 = 0x200;
    pub const RDHUP: u16 = 0x2000;
    /// Reported whether asked for or not.
    pub const ALWAYS: u16 = ERR | HUP;
}

/// O_ACCMODE, O_RDONLY, O_WRONLY, O_RDWR, O_NONBLOCK of file status flags.
pub const ACCESS: u32 = 3;
#[allow(missing_docs)]
pub const READ_ONLY: u32 = 0;
#[allow(missing_docs)]
pub const WRITE_ONLY: u32 = 1;
#[allow(missing_docs)]
pub const READ_WRITE: u32 = 2;
#[allow(missing_docs)]
pub const NONBLOCK: u32 = 0o4000;
/// Flag of a poll that asks about more than [`MAX_TOLD`] descriptions: it depends on more than is recorded of it.
pub const ASKS_MANY: u8 = VARIANT;
