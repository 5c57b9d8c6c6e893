//! What is kept of message queues, System V and POSIX, and of the messages in them.

use crate::base::{Pid, NOTICE, VARIANT};
use crate::state::Ctl;

/// The signal of who is told without one (SIGEV_NONE).
pub const NO_SIGNAL: i32 = -1;
/// The signal of who is told by a netlink socket (SIGEV_THREAD).
pub const BY_SOCKET: i32 = -2;
/// Last byte of what it is told: there is a message; the request is gone (include/uapi/linux/mqueue.h).
pub const WOKEN_UP: u8 = 1;
/// See [`WOKEN_UP`].
pub const REMOVED: u8 = 2;
/// Priorities are below this (MQ_PRIO_MAX).
pub const PRIORITIES: u32 = 32768;

/// A process that has asked to be told of a message, and how.
#[derive(Clone, Copy, Hash, PartialEq, Eq, Debug)]
pub struct Notice {
    /// The process.
    pub process: Pid,
    /// The signal that it gets, if above 0.
    pub signal: i32,
    /// What goes with the signal.
    pub value: u64,
}

/// Bytes of a chunk.
pub const CHUNK: usize = 124;
/// MSGMAX: longest message of a System V queue, bytes.
pub const MSGMAX: u32 = 8192;
/// MSGMNB: bytes that a System V queue holds at first; also the number of messages.
pub const MSGMNB: u64 = 16384;
/// In [`Op::mask`](crate::Op) of a receive: what does not fit is cut off (MSG_NOERROR). The rest is the size of the buffer.
pub const NOERROR: u32 = 1 << 31;
/// MSG_EXCEPT of a receive: any type but this one.
pub const EXCEPT: u8 = VARIANT;
/// [`Ctl`] of a queue whose size is set; the size is in the rest of `Op::arg`.
pub const SET_SIZE: Ctl = Ctl(3);
/// [`Ctl`] of a message that is copied and stays (msgrcv with MSG_COPY); which one, from the first, is in the rest of `Op::arg`.
pub const COPY: Ctl = Ctl(4);

/// A message in a queue.
#[derive(Clone, Copy, Hash, Debug, Default)]
#[repr(C)]
pub struct Queued {
    /// Type (System V) or priority (POSIX).
    pub mtype: i64,
    /// Bytes.
    pub len: u32,
    /// First chunk, or [`NONE`](crate::NONE).
    pub chunk: u32,
    /// Next message of the queue, or of the free ones.
    pub next: u32,
    pub(crate) pad: u32,
}

/// A piece of a message.
#[derive(Clone, Copy, Hash)]
#[repr(C)]
pub struct Chunk {
    /// The next piece, or free chunk.
    pub next: u32,
    /// Contents.
    pub bytes: [u8; CHUNK],
}

/// What a queue has beside its object, of which `count` is the number of messages, `value` that of bytes, `extra` the
/// index of this record. Those of a POSIX queue are in its channel.
#[derive(Clone, Copy, Hash, Debug, Default)]
#[repr(C)]
pub struct Queue {
    /// First message, or [`NONE`](crate::NONE).
    pub first: u32,
    /// Last message, or [`NONE`](crate::NONE).
    pub last: u32,
    /// IPC key, 0 for IPC_PRIVATE.
    pub key: i32,
    /// Most bytes, and most messages, of a System V queue; most messages of a POSIX queue.
    pub limit: u64,
    /// Longest message, bytes.
    pub longest: u32,
    /// Permission bits.
    pub mode: u32,
    /// Virtual pid of the last sender.
    pub sender: i32,
    /// Virtual pid of the last receiver.
    pub receiver: i32,
    /// Dates of the last send, receive and change, seconds; written by the shim.
    pub dates: [i64; 3],
    /// POSIX: bytes that its file is said to have.
    pub size: u64,
    /// POSIX: 1 + the process that is told of the next message in an empty queue (mq_notify), 0: none.
    pub notified: u32,
    /// POSIX: the signal by which it is told, 0: none, [`NO_SIGNAL`](crate::state::queue::NO_SIGNAL): it has asked for none,
    /// [`BY_SOCKET`].
    pub signal: i32,
    /// POSIX: what goes with the signal. [`BY_SOCKET`]: `serial` of the socket.
    pub value: u64,
    /// POSIX: what that socket is told, but for the last byte.
    pub cookie: [u8; NOTICE],
    /// 1: the record is in use.
    pub used: u64,
}
