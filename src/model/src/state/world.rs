//! The state of one world: its processes, threads and objects, and how an execution ends.

use crate::base::{numbers, ObjId, Table, Tid, NONE};
use crate::state::{
    Channel, Chunk, Delivered, Desc, Effects, FdPage, Fifo, FileLock, FreeRing, Hold, KnownFile, Message, Name, Object,
    Process, Progress, Queue, Queued, QueuedSignal, Right, SemSet, SemVal, SignalSent, Socket, Tagged, Thread, Timer,
    Undo, Watch, LOOKED_UP, MAX_AWAITED_TEXT, MAX_EVENTS, MAX_FIFOS, MAX_SENT, MAX_SIGNALS, MAX_TIMERS,
};

/// Threads that one execution may create.
pub const MAX_THREADS: usize = 16384;
/// Processes that one execution may create.
pub const MAX_PROCS: usize = 4096;
/// Objects that one execution may use.
pub const MAX_OBJECTS: usize = 1 << 17;
/// Open file descriptions, and channels, that may exist at one time.
pub const MAX_DESCS: usize = 32768;
/// Pairs of streams of which one was taken while the other was held; where there are more, every such stream counts as in a circle.
pub const MAX_STREAM_PAIRS: usize = 1024;
/// Buckets of the object hash.
pub const BUCKETS: usize = 4096;
/// Longest message kept.
pub const MAX_MESSAGE: usize = 1024;
/// Threads of a lock cycle that are kept for the report.
pub const MAX_CYCLE: usize = 64;
/// Bit of [`World::never_come`]: SIGIO, which input sends where FIOASYNC asks for it.
pub const SIGIO: u64 = 1;
/// Bit of [`World::never_come`]: the signal of a timer of processor time.
pub const CPU_TIMER: u64 = 1 << 1;
/// Bit of [`World::never_come`]: the wait of connections for their data, which TCP_DEFER_ACCEPT asks for.
pub const DEFERRED: u64 = 1 << 2;
/// Bit of [`World::never_come`]: what a process does between the signal of another one that stops it and the stop.
pub const STOPS_LATE: u64 = 1 << 3;
/// See [`STOPS_LATE`]: a wait fails where a signal that is ignored comes while the thread that is told blocks all for a moment.
pub const WAKES_IGNORED: u64 = 1 << 4;
/// Bit of [`World::never_come`]: the moments later than the first at which a refused request for a TCP connection comes again.
pub const SYN_RETRIES: u64 = 1 << 5;
/// Bit of [`World::never_come`]: whether destructors run of a key of thread-specific data that is deleted beside the end of a thread.
pub const KEY_DELETED: u64 = 1 << 6;
/// Bit of [`World::never_come`]: a wait without end that glibc begins where the kernel refuses to close a circle of mutexes with priority
/// inheritance, though the circle is broken by a deadline.
pub const CIRCLE_INHERITED: u64 = 1 << 7;
/// Bit of [`World::never_come`]: ECONNRESET for a send on a local socket that had begun when the other end went with data unread.
pub const RESET_WITHIN: u64 = 1 << 8;
/// Bit of [`World::never_come`]: what a send adds to the very receive that makes room for it.
pub const REFILLED: u64 = 1 << 9;
/// Bit of [`World::never_come`]: the place among the children of a process of those whose thread ends, before or after a wait looks.
pub const HANDED_ON: u64 = 1 << 10;
/// Bit of [`World::never_come`]: what threads do that need not take a signal with a core dump, until another one has taken it.
pub const DUMPS_LATE: u64 = 1 << 11;
/// Bit of [`World::never_come`]: that the kernel chooses another thread for a signal than the first that wants it.
pub const OTHER_RECEIVER: u64 = 1 << 12;
/// Bit of [`World::never_come`]: handlers between two instructions, where no call begins or returns.
pub const BETWEEN_CALLS: u64 = 1 << 13;
/// Bit of [`World::never_come`]: that a signal is refused to who may not send it, as user ids say which processes have changed.
pub const PERMISSION: u64 = 1 << 14;
/// Bit of [`World::never_come`]: orders of what several do to a terminal.
pub const TERMINAL: u64 = 1 << 15;
/// Bit of [`World::never_come`]: what threads print between two steps of the exit of another one.
pub const EXIT_STREAMS: u64 = 1 << 16;
/// Bit of [`World::never_come`]: which exit handlers run in which of several threads that exit.
pub const EXITS_TWICE: u64 = 1 << 17;
/// Bit of [`World::never_come`]: changes of pages that vmsplice has put into a pipe, where it is read.
pub const PAGES_SHARED: u64 = 1 << 18;
/// Bit of [`World::never_come`]: that the place of a memfd, on which the kernel has no lock, is told or moved within a read or write.
pub const PLACE_UNLOCKED: u64 = 1 << 19;
/// Bit of [`World::never_come`]: an edge of what is watched that comes once more: what it tells was seen with the one before, or a read or write of a pipe
/// that has waited leaves something for others.
pub const EDGE_AGAIN: u64 = 1 << 20;
/// Bit of [`World::never_come`]: a request to end a thread that strikes in a call when that has done what it does.
pub const CANCELS_LATE: u64 = 1 << 21;
/// Bit of [`World::never_come`]: what comes between the ends of several robust mutexes that a thread leaves.
pub const LEAVES_SEVERAL: u64 = 1 << 22;
/// Bit of [`World::never_come`]: what becomes of objects for which somebody still waits who is not there: in the child of a fork, or killed.
pub const GONE_WAITERS: u64 = 1 << 23;
/// Bit of [`World::never_come`]: orders of the end of a timed futex wait and of what was written before a wake.
pub const FUTEX_TIMED: u64 = 1 << 24;
/// Bit of [`World::never_come`]: the memory that the child of a vfork shares with its parent, which waits for it.
pub const VFORKED: u64 = 1 << 25;
/// Bit of [`World::never_come`]: a signal wakes who waits at an epoll instance that is another process's or thread's, and finds nothing.
pub const OTHER_LOOKS: u64 = 1 << 26;
/// Bit of [`World::never_come`]: a descriptor of a process is ready before the parent is sent SIGCHLD (kernel/exit.c, exit_notify).
pub const READY_EARLY: u64 = 1 << 27;
/// Bit of [`World::never_come`]: what others do while a thread stands at a fork with libc's locks held.
pub const FORK_LOCKS: u64 = 1 << 28;
/// Bit of [`World::never_come`]: that one who waits for several futexes leaves them one after another where a signal interrupts it.
pub const LEAVES_WORDS: u64 = 1 << 29;
/// Bit of [`World::never_come`]: what a thread changes (descriptors, directory, umask, actions for signals, limits) after a fork beside it has copied that,
/// and before it copies the memory (kernel/fork.c, copy_process).
pub const FORK_COPIES: u64 = 1 << 30;
/// Bit of [`World::never_come`]: what others do and see between two steps of a call that is one step here.
pub const ONE_STEP: u64 = 1 << 31;
/// Bit of [`World::never_come`]: what libc's own threads (POSIX aio, getaddrinfo_a) have done, as those who ask are told.
pub const LIBC_THREADS: u64 = 1 << 32;
/// Bit of [`World::never_come`]: the sleep of those who wait beside one that was woken and does not go on.
pub const WAKE_LOST: u64 = 1 << 33;
/// Bit of [`World::never_come`]: that a write to a pipe waits on for a page of its own, where it could go behind what has come since it waits.
pub const WAITS_ON: u64 = 1 << 34;
/// Bit of [`World::never_come`]: what others do between two rounds of a loop that reads memory and has gone round many times.
pub const ROUNDS: u64 = 1 << 35;
/// Bit of [`World::never_come`]: the end of a thread between two calls, where it heeds requests to end anywhere.
pub const CANCELLED_WITHIN: u64 = 1 << 36;
/// Bit of [`World::never_come`]: waits that nobody ends, for an object that is not process-shared and that several processes use.
pub const NOT_SHARED: u64 = 1 << 37;
/// Bit of [`World::never_come`]: EINTR for who has been let go and has not looked yet, where the kernel looks for signals first.
pub const WOKEN_FAILS: u64 = 1 << 38;
/// Bit of [`World::never_come`]: the signal that a child asked for (PR_SET_PDEATHSIG), at the end of the thread that made it.
pub const DEATH_SIGNAL: u64 = 1 << 39;
/// Bit of [`World::never_come`]: other numbers of periods that have passed unseen (timer_getoverrun).
pub const OVERRUNS: u64 = 1 << 40;
/// Bit of [`World::beyond`]: flock has given a lock up to wait for one of the other kind.
pub const GAVE_UP_FLOCK: u8 = 1;
/// Bit of [`World::beyond`]: F_GETLK has found locks of several owners; which is told depends on who was first.
pub const SEVERAL_OWNERS: u8 = 2;
/// Virtual time that passes at every visible operation, ns.
pub const TICK: u64 = 1_000;
/// Virtual monotonic time at the start of a world, ns.
pub const START: u64 = 1_000_000_000;

numbers! {
    /// How an execution ended. A transparent integer; 0 while it runs.
    End(u8):
    RUNNING = 0,
    /// Every thread is over.
    FINISHED = 1,
    /// Nothing is enabled and something is not finished.
    DEADLOCK = 2,
    /// Threads wait for each other in a circle of locks; `World::cycle` names them.
    CYCLE = 3,
    /// An assertion failed or abort was called; `World::message` says which.
    ASSERT = 4,
    /// An object was misused; `end_code` is a [`Misuse`].
    MISUSE = 5,
    /// The schedule's next choice does not exist or is not enabled; `end_code` is the step.
    MISMATCH = 6,
    /// Everything that is enabled is asleep.
    SLEEP_BLOCKED = 7,
    /// The depth bound was reached.
    DEPTH = 8,
    /// A process had nothing enabled for too many states in a row; `end_obj` is the process.
    LIVELOCK = 9,
    /// Something that vsrun does not support; `World::message` says what.
    UNSUPPORTED = 10,
    /// vsrun itself is at fault; `World::message` says where.
    BUG = 11,
    /// What is left only waits for input from outside.
    WAITS_OUTSIDE = 12,
    /// A process of the program ended in a way that the caller asked to report (exit status not 0).
    STATUS = 13,
    /// The first process was killed by a signal that was sent to it; `end_code` is its number.
    KILLED = 14,
    /// The program has more of something than there is room for in this execution; `World::message` says of what.
    ROOM = 15,
    /// Memory that has been freed is used, or freed once more; `World::message` says which.
    FREED = 17,
    /// Threads have come back to a state, and go round for ever; `end_code` is the number of transitions before.
    LOOP = 19,
    /// The state was met before, see `sched::states`.
    MET = 18,
    /// The kernel refused what the program may do, for want of room around it; `World::message` says what, and which limit.
    REFUSED = 16,
}

numbers! {
    /// Ways to misuse an object that are undefined behaviour by POSIX.
    Misuse(u32), or "misuse":
    UNLOCK_FREE = 1, "unlock of a lock that is not locked";
    UNLOCK_FOREIGN = 2, "unlock by a thread that does not own the lock";
    USE_DESTROYED = 3, "use of a destroyed or uninitialized object";
    DESTROY_BUSY = 4, "destruction of an object that is in use";
    WAIT_UNOWNED = 5, "wait on a condition variable with a mutex that the thread does not own";
    JOIN_TWICE = 6, "join of a thread that another call joins, or has joined";
    SET_UP_BUSY = 7, "initialization of an object that a thread waits for, which sleeps on";
}

/// What [`World::perform`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Applied {
    /// The operation is complete; the value is what the kernel would give: a negative error number, or what the call is about.
    Done(i64),
    /// The thread stays parked, at another operation.
    Parked,
    /// The execution is over.
    Ended,
    /// Instead, the thread has taken the signal in `Thread::taken`, whose handler is to run; then the call fails with EINTR
    /// (true), or the operation goes on: see [`World::resume`].
    Signalled(bool),
}

/// What a field of the world is when an execution starts: `at` a value, an `empty` table, or as it was.
macro_rules! reset {
    ($field:expr, at, $start:expr) => {
        $field = $start
    };
    ($field:expr, empty) => {
        $field.clear()
    };
    ($field:expr, kept) => {};
    ($field:expr, apart) => {};
}

/// What becomes of a field when a world is copied: what stands `apart` is no part of its state.
macro_rules! copy {
    ($to:expr, $from:expr, empty) => {
        $to.copy_from(&$from)
    };
    ($to:expr, $from:expr, apart) => {};
    ($to:expr, $from:expr, $start:ident) => {
        $to = $from
    };
}

/// Whether a field is what only the holder of the turn makes of it, as far as that shows.
macro_rules! sealed {
    ($field:expr, empty) => {
        $field.is_sealed()
    };
    ($field:expr, $how:ident) => {
        true
    };
}

/// The struct, each field with what it is at the start.
macro_rules! world {
    ($(#[$about:meta])* pub struct World {
        $($(#[$doc:meta])* $vis:vis $name:ident: $type:ty = $how:ident $(($start:expr))?,)*
    }) => {
        $(#[$about])*
        pub struct World {
            $($(#[$doc])* $vis $name: $type,)*
        }

        impl World {
            /// Makes this an empty world at its start. Options are kept.
            pub fn reset(&mut self) {
                $(reset!(self.$name, $how $(, $start)?);)*
            }

            /// Makes this world equal to `other`; costs what `other` uses.
            pub fn copy_from(&mut self, other: &World) {
                $(copy!(self.$name, other.$name, $how);)*
            }

            /// False: somebody who is not to has written to a world that was reset or copied.
            pub fn is_sealed(&self) -> bool {
                $(sealed!(self.$name, $how))&&*
            }
        }
    };
}

world! {
/// The state of one world. Written only by the holder of the turn.
#[repr(C)]
pub struct World {
    /// Timeouts may fire whenever they could (default: when nothing else can run).
    pub timeouts_any: bool = kept,
    /// Faults that may strike, bits of [`crate::inject`].
    pub inject: u32 = kept,
    /// Kinds of calls that go to the kernel by the user's wish, bits of [`crate::calls::KINDS`].
    pub uncontrolled: u32 = kept,
    /// Misuse does what glibc does instead of ending the execution.
    pub allow_misuse: bool = kept,
    /// A second thread has existed: operations are transitions from then on.
    pub concurrent: bool = at(false),
    /// Some open file description has had a lock, which goes with its last descriptor.
    pub flocks_used: bool = at(false),
    /// Some mutex is robust.
    pub any_robust: bool = at(false),
    /// Some mutex has priority inheritance.
    pub any_inherits: bool = at(false),
    /// A deadline could have been noticed in a state in which something else went on: with urgent timeouts that is left out.
    pub urgent: bool = at(false),
    /// A timer could have fired at a moment that was left out, see `TICKS`.
    pub ticks_held: bool = at(false),
    /// A timer counted as expired for a thread that had waited for as long, though another one had set it.
    pub ticks_apart: bool = at(false),
    /// A yield was made to wait for another thread to move: unfair schedules are left out.
    pub held_back: bool = at(false),
    /// There were more than are in `sent`.
    pub sent_lost: bool = at(false),
    /// A process has been killed by another one.
    pub kills: bool = at(false),
    /// A signal has been pending, or a process stopped or killed by another one. Until then nothing needs to look for that, at any
    /// transition.
    pub stirred: bool = at(false),
    /// A process has been stopped by another one while it could have gone on.
    pub stops_late: bool = at(false),
    /// There are processes with [`Process::copied_beside`](crate::state::Process::copied_beside).
    pub any_copied_beside: bool = at(false),
    /// Blocks of the heap that are freed are given out again at once, as the allocator does, see [`Plan::reuses`](crate::arena::Plan::reuses).
    pub reuses: bool = at(false),
    /// Such a block was kept back where the allocator would have given it out again.
    pub kept_apart: bool = at(false),
    /// There are objects with [`GHOSTS`](crate::state::GHOSTS), or that one has left who may have been woken: see `objects::lost`.
    pub any_ghosts: bool = at(false),
    /// What could come and is not modelled, so that it never does: [`SIGIO`], [`CPU_TIMER`] and the other bits.
    pub never_come: u64 = at(0),
    /// What has been done for which reductions are not proven: [`GAVE_UP_FLOCK`], [`SEVERAL_OWNERS`].
    pub beyond: u8 = at(0),
    /// A circle of locks is noted, and the execution goes on while something is enabled. Set by the plan.
    pub past_cycles: bool = apart,
    /// Operations take no time, and nobody gives way as long as states are told apart. Set by the plan.
    pub timeless: bool = apart,
    /// States in a row without anything enabled that make a process livelocked; 0 = off.
    pub livelock: u32 = kept,
    /// An execution whose states are told apart has come to one that is not told from others.
    pub untold: bool = at(false),
    /// The program has looked at the clock, or is going to.
    pub told_time: bool = at(false),
    /// Virtual monotonic time, ns.
    pub now: u64 = at(START),
    /// Deadlines up to here have been allowed to fire, ns.
    pub fired: u64 = at(START),
    /// Last virtual process or thread id given out.
    pub ids: i32 = at(1000),
    /// First free record of `holds`.
    pub free_hold: u32 = at(NONE),
    /// First free record of `queued`.
    pub free_queued: u32 = at(NONE),
    /// First free record of `chunks`.
    pub free_chunk: u32 = at(NONE),
    /// First free record of `descs`.
    pub free_desc: u32 = at(NONE),
    /// First free record of `channels`.
    pub free_channel: u32 = at(NONE),
    /// First free record of `fd_pages`.
    pub free_fd_page: u32 = at(NONE),
    /// First free record of `watches`, linked by `desc`.
    pub free_watch: u32 = at(NONE),
    /// Words of futexes in whose queue somebody is who waits for several.
    pub n_awaited: u32 = at(0),
    /// Watches in use.
    pub n_watches: u32 = at(0),
    /// Timers (timerfd) that there are.
    pub n_timers: u32 = at(0),
    /// The last place given out in a ready list.
    pub last_place: u64 = at(0),
    /// Processes of `--with`, and the signal that is said to end what is there (`--stop-signal`), or 0.
    pub clients: u32 = at(0),
    /// See `clients`.
    pub stop_signal: i32 = at(0),
    /// Processes that start the program again (`--restart`): those behind the clients.
    pub restarts: u32 = at(0),
    /// Deadlines that have fired while the world was idle; see `closing`.
    pub idle_jumps: u32 = at(0),
    /// Transitions so far.
    pub moves: u64 = at(0),
    /// The last progress.
    pub progress: Progress = at(Progress::NONE),
    /// Visible operations so far, those of the initialization included: the sign of life for the divergence check.
    pub ops: u64 = at(0),
    /// What the present transition has done beyond its operation.
    pub did: Effects = at(Effects::NONE),
    /// Of these, the ones that passed without a transition; see `sharing`.
    pub passed: u64 = at(0),
    /// The object of the last of them in the transition under way, or [`NONE`].
    pub passed_last: ObjId = at(NONE),
    /// How many have passed in the transition under way.
    pub passed_run: u32 = at(0),
    /// Operations that were published because the run of those that passed was long.
    pub long_runs: u64 = at(0),
    /// The thread that has the turn.
    pub current: Tid = at(NONE),
    /// The alternative chosen for its pending operation.
    pub value: u32 = at(0),
    /// How the execution ended.
    pub end: End = at(End::RUNNING),
    pub(crate) pad: [u8; 3] = apart,
    /// The thread that the end concerns.
    pub end_thread: Tid = at(NONE),
    /// The object that the end concerns, or [`NONE`].
    pub end_obj: ObjId = at(NONE),
    /// More about the end; depends on it.
    pub end_code: u32 = at(0),
    /// Bytes of `message` in use.
    pub message_len: u32 = at(0),
    /// Threads of the lock cycle in use.
    pub n_cycle: u32 = at(0),
    /// Transitions that had begun when the circle closed.
    pub cycle_at: u64 = at(0),
    /// The same of further circles, where the execution goes on; 0: none.
    pub later_cycles: [u64; 8] = at([0; 8]),
    /// The threads that wait for each other in a circle: each waits for the next.
    pub cycle: [Tid; MAX_CYCLE] = kept,
    /// Text about the end.
    pub message: [u8; MAX_MESSAGE] = apart,
    /// Heads of the object hash chains.
    pub buckets: [ObjId; BUCKETS] = at([NONE; BUCKETS]),
    /// Threads that are not over, ascending.
    pub live: Table<Tid, MAX_THREADS> = empty,
    /// All threads of the execution.
    pub threads: Table<Thread, MAX_THREADS> = empty,
    /// All processes of the execution.
    pub procs: Table<Process, MAX_PROCS> = empty,
    /// All objects.
    pub objects: Table<Object, MAX_OBJECTS> = empty,
    /// Pending signals, in the order in which they were sent.
    pub signals: Table<QueuedSignal, MAX_SIGNALS> = empty,
    /// Signals that were sent, and by which step, to who has handlers for them, as far as there is room.
    pub sent: Table<SignalSent, MAX_SENT> = empty,
    /// Timers that send signals.
    pub timers: Table<Timer, MAX_TIMERS> = empty,
    /// Read holds of rwlocks.
    pub holds: Table<Hold, 16384> = empty,
    /// Pairs of streams: somebody has taken the lock of the second while it held that of the first; see `sched::stream`.
    pub stream_pairs: Table<[ObjId; 2], MAX_STREAM_PAIRS> = empty,
    /// Values of SysV semaphores.
    pub semvals: Table<SemVal, 65536> = empty,
    /// SysV undo records.
    pub undos: Table<Undo, 8192> = empty,
    /// Sets of semaphores; `Object::value` is the index.
    pub semsets: Table<SemSet, 4096> = empty,
    /// Names of semaphores, SysV keys.
    pub names: Table<Name, 1024> = empty,
    /// Locks of files, see `lock`.
    pub file_locks: Table<FileLock, 8192> = empty,
    /// Files that have been locked; written by the shim.
    pub locked_files: Table<KnownFile, 1024> = empty,
    /// Open file descriptions that have had locks; written by the shim.
    pub descriptions: Table<Tagged, 1024> = empty,
    /// Message queues.
    pub queues: Table<Queue, 4096> = empty,
    /// Messages in queues.
    pub queued: Table<Queued, 131072> = empty,
    /// Contents of messages.
    pub chunks: Table<Chunk, 131072> = empty,
    /// Descriptors of the processes.
    pub fd_pages: Table<FdPage, 8192> = empty,
    /// Whether flags of descriptions are changed while others may look at them; see `sched::descriptor`.
    pub flags_change: u8 = at(0),
    /// Whether what libc does to descriptors by itself is no operation; see `sched::descriptor`.
    pub libc_is_quiet: u8 = at(0),
    /// Whether a socket listens, or a datagram socket has a name that was chosen for it, or has had that.
    pub listened: u8 = at(0),
    /// Whether there is, or has been, the file or the text that clients wait for; see `objects::start`.
    pub met: u8 = at(0),
    /// Bytes of that text that are at the end of what was printed.
    pub matched: u32 = at(0),
    /// Bytes of `awaited`.
    pub awaited_len: u32 = kept,
    /// The path of the file, or the text, that clients wait for; a NUL behind it. Written by vsrun.
    pub awaited: [u8; MAX_AWAITED_TEXT] = kept,
    /// Descriptors that libc has made by itself in the transition under way; see `sched::descriptor`.
    pub libc_made: [u64; 4] = at([0; 4]),
    /// Who looked a descriptor up last, where nothing has to be made of it; see `sched::descriptor`.
    pub looked_up: [u64; LOOKED_UP] = at([0; LOOKED_UP]),
    /// Open file descriptions.
    pub descs: Table<Desc, MAX_DESCS> = empty,
    /// Channels.
    pub channels: Table<Channel, MAX_DESCS> = empty,
    /// Rings of the pool that can be used again.
    pub free_rings: Table<FreeRing, 4096> = empty,
    /// FIFOs that have been opened.
    pub fifos: Table<Fifo, MAX_FIFOS> = empty,
    /// What epoll instances watch.
    pub watches: Table<Watch, 16384> = empty,
    /// What the wait performed last returns.
    pub delivered: Table<Delivered, MAX_EVENTS> = empty,
    /// Sockets.
    pub sockets: Table<Socket, MAX_DESCS> = empty,
    /// Messages in the channels of sockets.
    pub messages: Table<Message, 65536> = empty,
    /// Descriptions that messages carry.
    pub rights: Table<Right, 8192> = empty,
    /// First free record of each of the three, or [`NONE`].
    pub free_socket: u32 = at(NONE),
    /// See `free_socket`.
    pub free_message: u32 = at(NONE),
    /// See `free_socket`.
    pub free_right: u32 = at(NONE),
    /// Descriptors of files that messages have carried so far; see [`crate::state::fd::DescKind::FILE`].
    pub mails: u32 = at(0),
    /// Sockets made so far.
    pub socket_serial: u64 = at(0),
    /// What came with what was received last: valid until the next operation.
    pub received: Message = at(Message::default()),
}
}
