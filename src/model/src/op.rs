//! Visible operations.

use crate::object::NONE;

/// What a visible operation does. A transparent integer: see the crate's head for why it is not an enum.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(transparent)]
pub struct Kind(pub u8);

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $value:literal, $text:literal;)*) => {
        impl Kind {
            $($(#[$doc])* pub const $name: Kind = Kind($value);)*

            /// The name used in reports and scenario files.
            pub fn name(self) -> &'static str {
                match self { $(Kind::$name => $text,)* _ => "unknown" }
            }

            /// The kind of that name, as [`Kind::name`] gives it.
            pub fn from_name(name: &str) -> Option<Kind> {
                match name { $($text => Some(Kind::$name),)* _ => None }
            }
        }
    };
}

kinds! {
    /// Nothing is pending.
    NONE = 0, "none";
    /// sched_yield: enabled once another thread has moved, a few times in a row before that, or when nothing else can.
    YIELD = 1, "yield";
    /// Sleep until `deadline`.
    SLEEP = 2, "sleep";
    /// VS_toss: `arg` + 1 alternatives.
    TOSS = 3, "toss";
    /// Wait for the end of thread `obj` (an index of threads).
    JOIN = 4, "join";
    /// Wait for a child process; `arg` is the pid argument of waitpid.
    WAIT = 5, "wait";
    /// End of a process that others can notice: `arg` is the wait status.
    EXIT = 6, "exit_group";
    /// End of a thread that leaves robust mutexes behind.
    THREAD_EXIT = 7, "thread_exit";
    /// Cancellation request for thread `obj`.
    CANCEL = 8, "cancel";
    /// Signal number `arg` for process `obj`.
    KILL = 9, "kill";
    /// Replace the program of a process that has had other threads.
    EXEC = 10, "exec";
    /// fork in a process that has had other threads, whose locks the child gets as they are.
    FORK = 11, "fork";
    /// Acquire a mutex.
    MUTEX_LOCK = 16, "mutex_lock";
    /// Release a mutex.
    MUTEX_UNLOCK = 17, "mutex_unlock";
    /// Destroy a mutex.
    MUTEX_DESTROY = 18, "mutex_destroy";
    /// Release mutex `obj2` and wait on condition variable `obj`.
    COND_WAIT = 20, "cond_wait";
    /// Second half of [`Kind::COND_WAIT`]: woken, timed out or cancelled; acquires the mutex again.
    COND_WAKE = 21, "cond_wake";
    /// Wake one waiter; each waiter is an alternative.
    COND_SIGNAL = 22, "cond_signal";
    /// Wake all waiters.
    COND_BROADCAST = 23, "cond_broadcast";
    /// Destroy a condition variable; waits until nobody waits on it.
    COND_DESTROY = 24, "cond_destroy";
    /// Acquire a read-write lock for reading.
    RW_RDLOCK = 28, "rwlock_rdlock";
    /// Acquire a read-write lock for writing.
    RW_WRLOCK = 29, "rwlock_wrlock";
    /// A writer that has announced itself on a lock that prefers writers.
    RW_WRWAIT = 30, "rwlock_wrlock (waiting)";
    /// Release a read-write lock.
    RW_UNLOCK = 31, "rwlock_unlock";
    /// Destroy a read-write lock.
    RW_DESTROY = 32, "rwlock_destroy";
    /// Acquire a spin lock.
    SPIN_LOCK = 36, "spin_lock";
    /// Release a spin lock.
    SPIN_UNLOCK = 37, "spin_unlock";
    /// Arrive at a barrier.
    BARRIER_WAIT = 40, "barrier_wait";
    /// Second half of [`Kind::BARRIER_WAIT`] for all but the last to arrive.
    BARRIER_WAKE = 41, "barrier_wake";
    /// Destroy a barrier.
    BARRIER_DESTROY = 42, "barrier_destroy";
    /// Enter a once control: run the initializer or wait for the one that does.
    ONCE = 44, "once";
    /// Decrement a POSIX semaphore.
    SEM_WAIT = 48, "sem_wait";
    /// Increment a POSIX semaphore.
    SEM_POST = 49, "sem_post";
    /// Read the value of a POSIX semaphore.
    SEM_GET = 50, "sem_getvalue";
    /// Destroy a POSIX semaphore.
    SEM_DESTROY = 51, "sem_destroy";
    /// Look up, create or remove a name (named semaphores, SysV keys).
    NAME = 52, "name";
    /// semop/semtimedop on a SysV semaphore set.
    SYSV_OP = 56, "semop";
    /// semctl on a SysV semaphore set.
    SYSV_CTL = 57, "semctl";
    /// FUTEX_WAIT: compare and go to sleep.
    FUTEX_WAIT = 60, "futex_wait";
    /// Second half of [`Kind::FUTEX_WAIT`].
    FUTEX_SLEEP = 61, "futex_sleep";
    /// FUTEX_WAKE of `arg` waiters.
    FUTEX_WAKE = 62, "futex_wake";
    /// FUTEX_REQUEUE: wake `arg & 0xffffffff` waiters of `obj`, move `arg >> 32` to `obj2`.
    FUTEX_REQUEUE = 63, "futex_requeue";
    /// msgsnd: `arg` is the type, `mask` the number of bytes; the contents are staged, see [`crate::msg`].
    MSG_SEND = 104, "msgsnd";
    /// msgrcv: `arg` is the type asked for, `mask` the size of the buffer and [`crate::msg::NOERROR`].
    MSG_RECEIVE = 105, "msgrcv";
    /// msgctl on a System V queue; `arg` as for [`Kind::SYSV_CTL`].
    MSG_CTL = 106, "msgctl";
    /// mq_send: an operation on the queue's channel, `arg & 0xffff` is the priority, `arg >> 16` the number of bytes; the
    /// contents are staged, see [`crate::mqueue`].
    /// [`VARIANT`], filled in where it is recorded: it may send a signal (mq_notify).
    MQ_SEND = 107, "mq_send";
    /// mq_receive: the same; the buffer has room for the longest message.
    MQ_RECEIVE = 108, "mq_receive";
    /// FUTEX_WAKE_OP: change the word of `obj2`, wake `arg & 0xffffffff` waiters of `obj` and, if the old word was as asked
    /// (`Thread::compare`), `arg >> 32` of `obj2`.
    FUTEX_WAKE_OP = 114, "futex_wake_op";
    /// FUTEX_LOCK_PI, FUTEX_TRYLOCK_PI: take the lock, or find out for whom to wait; see [`crate::pifutex`].
    FUTEX_LOCK_PI = 115, "futex_lock_pi";
    /// Second half of [`Kind::FUTEX_LOCK_PI`]; `arg` is the place among those who wait.
    FUTEX_PI_WAIT = 116, "futex_lock_pi (waiting)";
    /// FUTEX_UNLOCK_PI.
    FUTEX_UNLOCK_PI = 117, "futex_unlock_pi";
    /// Lock the bytes from `arg` to `deadline` of a file (fcntl F_SETLK, F_SETLKW, F_OFD_SETLK); `mask`: see [`crate::lock`].
    RECORD_LOCK = 110, "fcntl_lock";
    /// Give back such locks; also what the close of a descriptor does.
    RECORD_UNLOCK = 111, "fcntl_unlock";
    /// F_GETLK.
    RECORD_TEST = 112, "fcntl_getlk";
    /// flock; a close that may give a lock back too.
    FLOCK = 113, "flock";
    /// Read or look at the contents of file `obj`: `arg` bytes; `mask`: through which open file description, see
    /// [`crate::file`].
    FILE_READ = 120, "file_read";
    /// Change the contents of file `obj`.
    FILE_WRITE = 121, "file_write";
    /// Change the contents of file `obj` to those of file `obj2`.
    FILE_COPY = 122, "file_copy";
    /// Look names of files up: `obj` stands for all of them, `arg` is a set of them; `obj2` is a file that is looked at too.
    PATH_LOOK = 123, "path_look";
    /// Make, remove or exchange names of files; the contents of `obj2` change too.
    PATH_CHANGE = 124, "path_change";
    /// Look names up and change the contents of file `obj2` (truncate, open with O_TRUNC).
    PATH_TRUNCATE = 125, "path_truncate";
    /// Take up to `arg` bytes from channel `obj`; like all operations on descriptors it has a bit in `mask` for each
    /// channel that it concerns.
    FD_READ = 64, "read";
    /// Put up to `arg` bytes into channel `obj`.
    FD_WRITE = 65, "write";
    /// Close descriptor `arg`, whose description has channels `obj` and `obj2`.
    FD_CLOSE = 66, "close";
    /// Change the state of a description with channels `obj` and `obj2` (fcntl, shutdown, socket options).
    FD_CONTROL = 67, "fcntl";
    /// Wait for events of the descriptions in `Thread::polled`.
    FD_POLL = 68, "poll";
    /// Take a connection from the queue `obj`.
    FD_ACCEPT = 69, "accept";
    /// Connect the socket whose channel is `obj` to `Thread::address`; a bit in `mask` for what is found there.
    FD_CONNECT = 70, "connect";
    /// Wait for events of what is watched by the epoll instance `obj`.
    FD_WAIT = 71, "epoll_wait";
    /// Close all descriptors: the end of a process.
    FD_CLOSE_ALL = 72, "close (all, at the end of the process)";
    /// Add, change or remove a watch: by the epoll instance with descriptor `arg & 0xffffffff`, of descriptor `arg >> 32`.
    FD_EPOLL_CTL = 73, "epoll_ctl";
    /// Open one end of a FIFO.
    FD_OPEN = 74, "open";
    /// Second half of [`Kind::FD_OPEN`]: until the other end has been opened since.
    FD_OPENED = 75, "open (waiting)";
    /// Send a datagram of `arg` bytes from the socket whose channel is `obj`, [`VARIANT`]: to `Thread::address`.
    FD_SEND = 76, "send";
    /// Give the socket whose channel is `obj` an address, or take its name for connections (bind, listen).
    FD_BIND = 77, "bind";
    /// Last of the kinds that are operations on descriptors.
    FD_LAST = 95, "";
    /// sigsuspend and pause (`VARIANT`): wait for a signal; `arg` is the mask that is in force meanwhile.
    SIGSUSPEND = 96, "sigsuspend";
    /// sigwait, sigwaitinfo, sigtimedwait: take a pending signal of the set `arg`.
    SIGWAIT = 97, "sigwait";
    /// Go on after a stop signal that the process sent itself.
    STOPPED = 98, "stopped";
    /// Arm, disarm or delete a timer of a process that has had several threads.
    TIMER = 99, "timer";
}

/// Does not block: fails instead.
pub const TRY: u8 = 1;
/// Gives up at `deadline`.
pub const TIMED: u8 = 2;
/// A cancellation point: enabled too when the thread is asked to end.
pub const CANCEL_POINT: u8 = 4;
/// A variant of the operation; what it means depends on the kind.
pub const VARIANT: u8 = 8;

/// A semop of several operations; `Op::arg` holds them for reports (see [`pack_semops`]), not an amount. Of a close: it is of an
/// epoll instance; filled in where it is recorded.
pub const SEVERAL: u8 = 16;

/// An operation on a descriptor that concerns epoll instances too; filled in where it is recorded, see `epoll`.
pub const REACHES: u8 = 32;
/// A read or write that goes on after a part has been moved: a signal ends it where it blocks, whatever SA_RESTART says, and
/// no handler runs before it.
pub const PARTIAL: u8 = 64;

/// A wait that goes on after a signal handler: what woke it meanwhile is not seen in it. Of waits of a condition variable and
/// at a barrier.
pub const RESUMED: u8 = 32;

/// Up to three operations of a semop in one number: 16 bits each (semaphore, amount), their count on top. `None` where
/// they do not fit.
pub fn pack_semops(ops: &[crate::SemBuf]) -> Option<i64> {
    let mut packed = (ops.len() as u64) << 48;
    for (i, op) in ops.iter().enumerate() {
        let (num, amount) = (u8::try_from(op.num).ok()?, i8::try_from(op.op).ok()?);
        packed |= u64::from(u16::from_le_bytes([num, amount as u8])) << (16 * i as u32).min(48);
    }
    (ops.len() <= 3).then_some(packed as i64)
}

/// The (semaphore, amount) pairs of [`pack_semops`].
pub fn packed_semops(packed: i64) -> impl Iterator<Item = (u8, i8)> {
    let n = (packed as u64 >> 48).min(3);
    (0..n).map(move |i| {
        let [num, amount] = ((packed as u64 >> (16 * i)) as u16).to_le_bytes();
        (num, amount as i8)
    })
}

/// One visible operation: 32 bytes of plain data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(C)]
pub struct Op {
    /// What it does.
    pub kind: Kind,
    /// [`TRY`], [`TIMED`], [`CANCEL_POINT`], [`VARIANT`], [`SEVERAL`], [`REACHES`], [`RESUMED`], [`PARTIAL`].
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
    /// Virtual monotonic time in ns at which a timed operation gives up.
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
