//! Synchronization and communication objects: where they live, what is kept of each.

use crate::base::{numbers, ObjId, Tid, VARIANT};
use crate::state::{Order, Sharing};

/// Set in [`Key::space`] when the rest is the number of a shared region, not of a process.
pub const SHARED: u32 = 1 << 31;

numbers! {
    /// What an object is.
    #[derive(PartialOrd, Ord)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    ObjKind(u8), or "object":
    MUTEX = 1, "mutex";
    COND = 2, "condition variable";
    RWLOCK = 3, "rwlock";
    SPIN = 4, "spinlock";
    BARRIER = 5, "barrier";
    ONCE = 6, "once control";
    SEM = 7, "semaphore";
    SYSV = 8, "semaphore set";
    FUTEX = 9, "futex";
    NAMES = 10, "name space";
    MSGQ = 20, "message queue";
    RECORDS = 22, "file";
    FLOCK = 23, "file (flock)";
    FILE = 25, "file";
    PATHS = 26, "names of files";
    DESCRIPTOR = 27, "descriptor";
    CHANNEL = 11, "channel";
    STREAM = 12, "stream";
    LIBC = 13, "libc's own";
    MEMORY = 14, "memory";
}

/// Where an object lives: in a process's private memory or in a region that processes share.
#[derive(Clone, Copy, Hash, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(C)]
pub struct Key {
    /// A process index, or [`SHARED`] plus the number of a shared region.
    pub space: u32,
    /// What it is.
    pub kind: ObjKind,
    pub(crate) pad: [u8; 3],
    /// Address in the process, or offset in the region.
    pub addr: u64,
}

impl Key {
    /// A key.
    pub const fn new(space: u32, kind: ObjKind, addr: u64) -> Key {
        Key { space, kind, pad: [0; 3], addr }
    }

    /// It is the same; the padding is always zero.
    #[inline]
    pub(crate) fn is(&self, other: &Key) -> bool {
        self.addr == other.addr && self.space == other.space && self.kind == other.kind
    }

    #[inline]
    pub(crate) fn bucket(&self) -> usize {
        let mixed = (self.addr ^ ((self.space as u64) << 40) ^ self.kind.0 as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 52) as usize
    }
}

/// Mutex flavours (`flags` of a mutex object).
pub const MUTEX_TYPE: u32 = 3;
/// A second lock by the owner blocks for ever.
pub const MUTEX_NORMAL: u32 = 0;
/// A second lock by the owner counts.
pub const MUTEX_RECURSIVE: u32 = 1;
/// A second lock by the owner fails.
pub const MUTEX_ERRORCHECK: u32 = 2;
/// The death of the owner is handed to the next one.
pub const ROBUST: u32 = 1 << 4;
/// Shared between processes.
pub const PSHARED: u32 = 1 << 5;
/// A read-write lock that makes new readers wait while a writer waits.
pub const PREFER_WRITER: u32 = 1 << 6;
/// Spin lock: its memory said that it is locked when it was first seen, as zeros do on x86; nobody has locked it.
pub const NEVER_FREE: u32 = 1 << 3;
/// Mutex: who waits lends its owner a priority, so that the kernel follows chains of waits.
pub const INHERITS: u32 = 1 << 7;
/// The owner died and the state has not been declared consistent.
pub const OWNER_DEAD: u32 = 1 << 8;
/// Unlocked without being made consistent: of no use any more.
pub const NOT_RECOVERABLE: u32 = 1 << 9;
/// Destroyed.
pub const DESTROYED: u32 = 1 << 10;
/// First met without an init call.
pub const STATIC_INIT: u32 = 1 << 11;

/// Somebody waits for it who is not there: a thread of the parent of a fork, or one of a process that was killed.
pub const GHOSTS: u32 = 1 << 17;
/// Futex: a wait for it has given up.
pub const GAVE_UP: u32 = 1 << 18;
/// One that may have been woken for it has left for good; see `objects::lost`.
pub const WAKE_GONE: u32 = 1 << 19;
/// One that may have been woken for it is in a handler.
pub const WAKE_HELD: u32 = 1 << 20;
/// The same, and another one has taken it meanwhile.
pub const WAKE_MISSED: u32 = 1 << 21;

/// A stream whose lock somebody has held at a place to switch, see `sched::stream`.
pub const STREAM_HELD: u32 = 1 << 12;
/// A stream that several threads have used in an order that nothing decides.
pub const STREAM_MIXED: u32 = 1 << 13;
/// A stream that has been asked what others do to it.
pub const STREAM_TOLD: u32 = 1 << 14;
/// A stream of which the child of a fork got a copy, with what was in it, while its process had other threads.
pub const STREAM_COPIED: u32 = 1 << 25;
/// The list of all streams of a process.
pub const STREAM_LIST: u32 = 1 << 15;
/// What the dynamic loader has loaded into a process.
pub const LOADER: u32 = 1 << 16;
/// Whether libc has loaded what unwinds.
pub const UNWINDER: u32 = 1 << 22;
/// A stream of what is in a directory (`DIR`).
pub const DIRECTORY: u32 = 1 << 23;
/// What libc keeps of a thread, under a lock of that thread's: its policy, and who joins or detaches it.
pub const THREAD_DATA: u32 = 1 << 24;

/// Flag of an arrival at a barrier: nobody looks at whether it was the last.
pub const LAST_IGNORED: u8 = VARIANT;

/// One object. The meaning of `owner`, `count`, `value`, `extra` depends on the kind.
#[derive(Clone, Copy, Hash, Debug, Default)]
#[repr(C)]
pub struct Object {
    /// Where it lives.
    pub key: Key,
    /// How many objects were at this place before it.
    pub generation: u32,
    /// Flavour and condition bits.
    pub flags: u32,
    /// Owning thread (mutex, spinlock, stream, writer of a rwlock, runner of a once, futex with priority inheritance that is waited
    /// for), or [`NONE`](crate::NONE).
    pub owner: Tid,
    /// Recursion count (mutex), readers (rwlock), threads expected (barrier), semaphores (SysV set), messages (queue).
    pub count: u32,
    /// Value (semaphore), rounds that are over (barrier), done (once), announced writers (rwlock), bytes
    /// (message queue), record (SysV set).
    pub value: i32,
    /// First of the semaphore values (SysV set); first read hold (rwlock).
    pub extra: u32,
    /// First thread of the queue of waiters, linked by `Thread::queue_next`, ordered by thread index.
    pub waiters: Tid,
    /// Number of waiters in the queue.
    pub n_waiters: u32,
    /// Next object in the hash bucket.
    pub hash_next: ObjId,
    /// Next object of the same private space.
    pub space_next: ObjId,
    /// The thread that used it last while it was its own, or [`NONE`](crate::NONE); see `sharing`.
    pub user: Tid,
    /// What is taken for granted of it.
    pub sharing: Sharing,
    /// Of a semaphore or barrier: whether its order can be told, see `sched::order`.
    pub order: Order,
    pub(crate) pad: [u8; 2],
    /// 1 + the thread that has made it free for those who sleep for it, 0: none; see `objects::lost`.
    pub waker: u32,
    /// 1 + the process that has used it first, though it is not made for several; 0: none has.
    pub used_in: u32,
    /// `World::ops` when one left last that may have been woken for it.
    pub left_at: u64,
    /// `World::ops` at its last use by `user`.
    pub used_at: u64,
    /// While its order is free: the threads that have ever taken from a semaphore, or arrived at a barrier, a bit each. Of what has been
    /// removed (System V): those that have found it gone. Of a read-write lock that is nobody's own and only read: those that have since its last change.
    pub users: u64,
    /// Those that have taken from a semaphore and not added since. Of a read-write lock that is not shared: 1 + the thread that changed it last, by
    /// more than to read; 0: nobody did.
    pub takes: u64,
    /// What is left of the semaphore's first value for threads that have not been counted. Of such a read-write lock: `World::ops` at its
    /// last change.
    pub left: u64,
}

/// What a thread has found in memory that is an object, for [`Kind::MEM_WAIT`](crate::Kind::MEM_WAIT).
#[derive(Clone, Copy, Hash, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Found {
    /// Address of the word in the process of the thread.
    pub address: u64,
    /// Which of the bits of the word it has looked at.
    pub mask: u64,
    /// What they were.
    pub value: u64,
}

impl Object {
    /// The thread that last changed a read-write lock, while that is not shared: by more than to read. [`NONE`]: nobody did.
    pub(crate) fn changer(&self) -> Tid {
        (self.takes as Tid).wrapping_sub(1)
    }

    /// `World::ops` then.
    pub(crate) fn changed_at(&self) -> u64 {
        self.left
    }

    /// `t` changes a read-write lock after all who have read it.
    pub(crate) fn note_change(&mut self, t: Tid, at: u64) {
        (self.users, self.takes, self.left) = (0, u64::from(t) + 1, at);
    }

    /// What is in memory that is an object, as far as somebody has used it: its carrier says so before the next transition.
    pub fn content(&self) -> u64 {
        u64::from(self.extra) << 32 | u64::from(self.count)
    }

    /// See [`Object::content`].
    pub fn set_content(&mut self, content: u64) {
        (self.count, self.extra) = (content as u32, (content >> 32) as u32);
    }
}

/// One thread's read holds of one lock; a list per lock.
#[derive(Clone, Copy, Hash, Debug, Default)]
#[repr(C)]
pub struct Hold {
    /// The reader.
    pub tid: Tid,
    /// How often it holds it; 0 marks a free record.
    pub count: u32,
    /// Next hold of the same lock, or of the free list.
    pub next: u32,
}
