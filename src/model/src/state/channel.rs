//! What is kept of a channel: pipes, FIFOs, sockets, counters, timers, signals, epoll instances, message queues.

use crate::base::{numbers, ObjId, Tid, Uid, VARIANT};
use crate::state::SHARED;

/// Index of a channel in [`World::channels`](crate::World).
pub type ChanId = u32;

/// Bytes that a pipe always takes whole.
pub const PIPE_BUF: u64 = 4096;
/// Buffers of a new pipe, a page each.
pub const PIPE_SLOTS: usize = 16;
/// Buffers that a pipe may be given: Linux's limit of a MiB for who may not pass limits (/proc/sys/fs/pipe-max-size).
pub const MAX_PIPE_SLOTS: usize = 256;
/// Flag of a write to a pipe, of up to a page: it gets a buffer of its own, to which nothing is added (a page of a file, see
/// fs/splice.c).
pub const OWN_BUFFER: u8 = VARIANT;
/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;
/// Bytes of a new pipe's ring.
pub const PIPE_RING: u64 = PIPE_BUF * PIPE_SLOTS as u64;
/// Space of the keys of FIFOs.
pub(crate) const FIFO_SPACE: u32 = SHARED | 0x3fff_fffd;

numbers! {
    /// How a channel keeps what is written to it.
    ChanKind(u8):
    /// Bytes in pages, as a pipe does.
    PIPE = 1,
    /// Bytes in pages, of a pipe with a name.
    FIFO = 7,
    /// A number (eventfd).
    COUNTER = 8,
    /// When to fire (timerfd).
    TIMER = 9,
    /// Nothing: what there is to be read are pending signals (signalfd).
    SIGNALS = 10,
    /// Nothing: what there is are events of what is watched (epoll).
    EPOLL = 11,
    /// Nothing: it tells whether a process is over (pidfd).
    PROCESS = 13,
    /// Bytes, as TCP does.
    STREAM = 2,
    /// Bytes in pieces, as local stream sockets do.
    LOCAL = 3,
    /// Messages.
    PACKET = 4,
    /// Messages by priority (POSIX message queues).
    QUEUE = 12,
}

/// Bit of [`Channel::fullness`]: all slots have been in use.
pub const FULL_ONCE: u16 = 1;
/// They had been before the last slot was begun.
pub const FULL_BEFORE: u16 = 2;

/// A channel.
#[derive(Clone, Copy, Hash, Debug)]
#[repr(C)]
pub struct Channel {
    /// Its object, or [`NONE`](crate::NONE) if the record is not in use (then `extra` is the next free one).
    pub obj: ObjId,
    /// How it keeps things.
    pub kind: ChanKind,
    pub(crate) pad: u8,
    /// Pipes: the first slot in use.
    pub first: u16,
    /// Pipes: slots in use.
    pub used: u16,
    /// Pipes: slots that there are.
    pub slots: u16,
    /// Pipes: whether it has been full, see [`FULL_ONCE`].
    pub fullness: u16,
    /// Open file descriptions that read from it.
    pub readers: u32,
    /// Open file descriptions that write to it.
    pub writers: u32,
    /// Bytes read so far, since it was last empty.
    pub head: u64,
    /// Bytes written so far, since it was last empty.
    pub tail: u64,
    /// Where its ring lies in the pool, or [`NO_RING`].
    pub ring: u64,
    /// Size of its ring, bytes.
    pub room: u64,
    /// Pipes: bytes in each slot.
    pub lengths: [u16; MAX_PIPE_SLOTS],
    /// Counters: the number. Timers: when it fires next, or has fired and was not read since, virtual ns; 0: disarmed.
    /// Signal descriptors: the signals. Descriptors of processes: the process. FIFOs: how often it has been opened for writing. Message queues: index of its record.
    pub value: u64,
    /// Counters: [`SEMAPHORE`](crate::objects::event::SEMAPHORE) or 0. Timers: ns from one time to the next, 0: once. FIFOs: how
    /// often it has been opened for reading.
    pub period: u64,
    /// How often its descriptions are watched by epoll instances.
    pub watched: u32,
    /// Timers: the thread that set it last.
    pub setter: Tid,
    /// The thread that made it, and how many it had made before.
    pub maker: Uid,
    /// See `maker`.
    pub number: u32,
    /// Sockets: the one that reads from it, or [`NONE`](crate::NONE); next free record.
    pub extra: u32,
    /// Sockets with connections: the one that writes to it, or [`NONE`](crate::NONE).
    pub source: u32,
    /// Sockets: messages in it, the first and the last.
    pub queue: [u32; 2],
    /// Sockets and message queues: how many there are.
    pub messages: u32,
    /// Sockets: nothing will be written any more. Timers: it has fired and was not read since, by the clock of the thread that found it so.
    pub finished: bool,
    pub(crate) pad2: u8,
    /// Pipes: where the bytes of the last slot end in its page, of which the first may have been read.
    pub end: u16,
    /// Sockets: memory charged for what is in it. Timers: the last place in a list of an epoll instance that had been given when it was
    /// set, or when it was read.
    pub charge: u64,
    /// Streams: how full it was when the last read found less than it asked for, with what has been written since; 0: that found enough.
    pub found: u64,
    /// The thread that read so.
    pub found_by: Tid,
    /// Pipes: the thread that wrote last.
    pub written_by: Tid,
}

impl Default for Channel {
    fn default() -> Channel {
        Channel {
            obj: 0,
            kind: ChanKind::default(),
            pad: 0,
            first: 0,
            used: 0,
            slots: 0,
            fullness: 0,
            readers: 0,
            writers: 0,
            head: 0,
            tail: 0,
            ring: 0,
            room: 0,
            lengths: [0; MAX_PIPE_SLOTS],
            value: 0,
            period: 0,
            watched: 0,
            setter: 0,
            maker: Uid::default(),
            number: 0,
            extra: 0,
            source: 0,
            queue: [0; 2],
            messages: 0,
            finished: false,
            pad2: 0,
            end: 0,
            charge: 0,
            found: 0,
            found_by: 0,
            written_by: crate::base::NONE,
        }
    }
}

/// No ring yet.
pub const NO_RING: u64 = u64::MAX;

/// A ring of the pool that nobody uses.
#[derive(Clone, Copy, Hash, Debug, Default)]
#[repr(C)]
pub struct FreeRing {
    /// Offset in the pool; [`NO_RING`]: the record is not in use.
    pub at: u64,
    /// Size, bytes.
    pub size: u64,
}

/// FIFOs that one execution may open.
pub const MAX_FIFOS: usize = 1024;

/// A FIFO that has been opened.
#[derive(Clone, Copy, Hash, Debug, Default)]
#[repr(C)]
pub struct Fifo {
    /// Device of the inode.
    pub dev: u64,
    /// Number of the inode.
    pub ino: u64,
    /// Its channel's object, which stays when nobody has it open.
    pub obj: ObjId,
    /// 1: its name is gone, and the number of its inode has been given to another file.
    pub(crate) gone: u32,
}
