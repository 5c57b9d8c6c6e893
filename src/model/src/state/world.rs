//! The state of one world: its processes, threads and objects, and how an execution ends.

use crate::base::ids::{ObjId, Tid, NONE};
use crate::base::table::Table;
use crate::state::act::Effects;
use crate::state::channel::{Channel, Fifo, FreeRing, MAX_FIFOS};
use crate::state::epoll::{Delivered, Watch, MAX_EVENTS};
use crate::state::fd::{Desc, FdPage};
use crate::state::lock::{FileLock, KnownFile, Tagged};
use crate::state::object::Object;
use crate::state::process::Process;
use crate::state::queue::{Chunk, Queue, Queued};
use crate::state::rwlock::Hold;
use crate::state::sem::{Name, SemVal, Undo};
use crate::state::signal::{QueuedSignal, Timer, MAX_SIGNALS, MAX_TIMERS};
use crate::state::socket::{Message, Right, Socket};
use crate::state::thread::Thread;

/// Threads that one execution may create.
pub const MAX_THREADS: usize = 16384;

/// Processes that one execution may create.
pub const MAX_PROCS: usize = 4096;

/// Objects that one execution may use.
pub const MAX_OBJECTS: usize = 1 << 17;

/// Open file descriptions, and channels, that may exist at one time.
pub const MAX_DESCS: usize = 32768;

/// Buckets of the object hash.
pub const BUCKETS: usize = 4096;

/// Longest message kept.
pub const MAX_MESSAGE: usize = 1024;

/// Threads of a lock cycle that are kept for the report.
pub const MAX_CYCLE: usize = 64;

/// Bit of [`World::never_come`]: SIGIO, which input sends where FIOASYNC asks for it.
pub const SIGIO: u8 = 1;

/// Bit of [`World::never_come`]: the signal of a timer of processor time.
pub const CPU_TIMER: u8 = 2;

/// Bit of [`World::beyond`]: flock has given a lock up to wait for one of the other kind.
pub const GAVE_UP_FLOCK: u8 = 1;

/// Bit of [`World::beyond`]: F_GETLK has found locks of several owners; which is told depends on who was first.
pub const SEVERAL_OWNERS: u8 = 2;

/// Virtual time that passes at every visible operation, ns.
pub const TICK: u64 = 1_000;

/// Virtual monotonic time at the start of a world, ns.
pub const START: u64 = 1_000_000_000;

/// How an execution ended. A transparent integer; 0 while it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct End(pub u8);

#[allow(missing_docs)]
impl End {
    pub const RUNNING: End = End(0);
    /// Every thread is over.
    pub const FINISHED: End = End(1);
    /// Nothing is enabled and something is not finished.
    pub const DEADLOCK: End = End(2);
    /// Threads wait for each other in a circle of locks; `World::cycle` names them.
    pub const CYCLE: End = End(3);
    /// An assertion failed or abort was called; `World::message` says which.
    pub const ASSERT: End = End(4);
    /// An object was misused; `end_code` is a [`Misuse`].
    pub const MISUSE: End = End(5);
    /// The schedule's next choice does not exist or is not enabled; `end_code` is the step.
    pub const MISMATCH: End = End(6);
    /// Everything that is enabled is asleep.
    pub const SLEEP_BLOCKED: End = End(7);
    /// The depth bound was reached.
    pub const DEPTH: End = End(8);
    /// A process had nothing enabled for too many states in a row; `end_obj` is the process.
    pub const LIVELOCK: End = End(9);
    /// Something that vsrun does not support; `World::message` says what.
    pub const UNSUPPORTED: End = End(10);
    /// vsrun itself is at fault; `World::message` says where.
    pub const BUG: End = End(11);
    /// What is left only waits for input from outside.
    pub const WAITS_OUTSIDE: End = End(12);
    /// A process of the program ended in a way that the caller asked to report (exit status not 0).
    pub const STATUS: End = End(13);
    /// The first process was killed by a signal that was sent to it; `end_code` is its number.
    pub const KILLED: End = End(14);
}

/// Ways to misuse an object that are undefined behaviour by POSIX.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct Misuse(pub u32);

#[allow(missing_docs)]
impl Misuse {
    pub const UNLOCK_FREE: Misuse = Misuse(1);
    pub const UNLOCK_FOREIGN: Misuse = Misuse(2);
    pub const USE_DESTROYED: Misuse = Misuse(3);
    pub const DESTROY_BUSY: Misuse = Misuse(4);
    pub const WAIT_UNOWNED: Misuse = Misuse(5);

    /// What the report says.
    pub fn text(self) -> &'static str {
        match self {
            Misuse::UNLOCK_FREE => "unlock of a lock that is not locked",
            Misuse::UNLOCK_FOREIGN => "unlock by a thread that does not own the lock",
            Misuse::USE_DESTROYED => "use of a destroyed or uninitialized object",
            Misuse::DESTROY_BUSY => "destruction of an object that is in use",
            Misuse::WAIT_UNOWNED => "wait on a condition variable with a mutex that the thread does not own",
            _ => "misuse",
        }
    }
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

/// The state of one world. Written only by the holder of the turn.
#[repr(C)]
pub struct World {
    /// Timeouts may fire whenever they could (default: when nothing else can run).
    pub timeouts_any: bool,
    /// Faults that may strike, bits of [`crate::inject`].
    pub inject: u32,
    /// Misuse does what glibc does instead of ending the execution.
    pub allow_misuse: bool,
    /// A second thread has existed: operations are transitions from then on.
    pub concurrent: bool,
    /// Some open file description has had a lock, which goes with its last descriptor.
    pub flocks_used: bool,
    /// Some mutex is robust.
    pub any_robust: bool,
    /// A yield was made to wait for another thread to move: unfair schedules are left out.
    pub held_back: bool,
    /// Signals that were asked for and are not modelled, so that they never come: [`SIGIO`], [`CPU_TIMER`]. Written by the shim.
    pub never_come: u8,
    /// What has been done for which reductions are not proven: [`GAVE_UP_FLOCK`], [`SEVERAL_OWNERS`].
    pub beyond: u8,
    /// A circle of locks is noted, and the execution goes on while something is enabled. Set by the plan.
    pub past_cycles: bool,
    /// States in a row without anything enabled that make a process livelocked; 0 = off.
    pub livelock: u32,
    /// Virtual monotonic time, ns.
    pub now: u64,
    /// Deadlines up to here have been allowed to fire, ns.
    pub fired: u64,
    /// Last virtual process or thread id given out.
    pub ids: i32,
    /// First free record of `holds`.
    pub free_hold: u32,
    /// First free record of `queued`.
    pub free_queued: u32,
    /// First free record of `chunks`.
    pub free_chunk: u32,
    /// First free record of `descs`.
    pub free_desc: u32,
    /// First free record of `channels`.
    pub free_channel: u32,
    /// First free record of `fd_pages`.
    pub free_fd_page: u32,
    /// First free record of `watches`, linked by `desc`.
    pub free_watch: u32,
    /// Watches in use.
    pub n_watches: u32,
    /// Timers (timerfd) that there are.
    pub n_timers: u32,
    /// The last place given out in a ready list.
    pub last_place: u64,
    /// Deadlines that have fired while the world was idle; see `closing`.
    pub idle_jumps: u32,
    /// Transitions so far.
    pub moves: u64,
    /// Visible operations so far, those of the initialization included: the sign of life for the divergence check.
    pub ops: u64,
    /// What the present transition has done beyond its operation.
    pub did: Effects,
    /// Of these, the ones that passed without a transition; see `sharing`.
    pub passed: u64,
    /// The object of the last of them in the transition under way, or [`NONE`].
    pub passed_last: ObjId,
    /// How many have passed in the transition under way.
    pub passed_run: u32,
    /// Operations that were published because the run of those that passed was long.
    pub long_runs: u64,
    /// The thread that has the turn.
    pub current: Tid,
    /// The alternative chosen for its pending operation.
    pub value: u32,
    /// How the execution ended.
    pub end: End,
    pub(crate) pad: [u8; 3],
    /// The thread that the end concerns.
    pub end_thread: Tid,
    /// The object that the end concerns, or [`NONE`].
    pub end_obj: ObjId,
    /// More about the end; depends on it.
    pub end_code: u32,
    /// Bytes of `message` in use.
    pub message_len: u32,
    /// Threads of the lock cycle in use.
    pub n_cycle: u32,
    /// Transitions that had begun when the circle closed.
    pub cycle_at: u64,
    /// The same of further circles, where the execution goes on; 0: none.
    pub later_cycles: [u64; 8],
    /// The threads that wait for each other in a circle: each waits for the next.
    pub cycle: [Tid; MAX_CYCLE],
    /// Text about the end.
    pub message: [u8; MAX_MESSAGE],
    /// Heads of the object hash chains.
    pub buckets: [ObjId; BUCKETS],
    /// Threads that are not over, ascending.
    pub live: Table<Tid, MAX_THREADS>,
    /// All threads of the execution.
    pub threads: Table<Thread, MAX_THREADS>,
    /// All processes of the execution.
    pub procs: Table<Process, MAX_PROCS>,
    /// All objects.
    pub objects: Table<Object, MAX_OBJECTS>,
    /// Pending signals, in the order in which they were sent.
    pub signals: Table<QueuedSignal, MAX_SIGNALS>,
    /// Timers that send signals.
    pub timers: Table<Timer, MAX_TIMERS>,
    /// Read holds of rwlocks.
    pub holds: Table<Hold, 16384>,
    /// Values of SysV semaphores.
    pub semvals: Table<SemVal, 65536>,
    /// SysV undo records.
    pub undos: Table<Undo, 8192>,
    /// Names of semaphores, SysV keys.
    pub names: Table<Name, 1024>,
    /// Locks of files, see `lock`.
    pub file_locks: Table<FileLock, 8192>,
    /// Files that have been locked; written by the shim.
    pub locked_files: Table<KnownFile, 1024>,
    /// Open file descriptions that have had locks; written by the shim.
    pub descriptions: Table<Tagged, 1024>,
    /// Message queues.
    pub queues: Table<Queue, 4096>,
    /// Messages in queues.
    pub queued: Table<Queued, 131072>,
    /// Contents of messages.
    pub chunks: Table<Chunk, 131072>,
    /// Descriptors of the processes.
    pub fd_pages: Table<FdPage, 8192>,
    /// Open file descriptions.
    pub descs: Table<Desc, MAX_DESCS>,
    /// Channels.
    pub channels: Table<Channel, MAX_DESCS>,
    /// Rings of the pool that can be used again.
    pub free_rings: Table<FreeRing, 4096>,
    /// FIFOs that have been opened.
    pub fifos: Table<Fifo, MAX_FIFOS>,
    /// What epoll instances watch.
    pub watches: Table<Watch, 16384>,
    /// What the wait performed last returns.
    pub delivered: Table<Delivered, MAX_EVENTS>,
    /// Sockets.
    pub sockets: Table<Socket, MAX_DESCS>,
    /// Messages in the channels of sockets.
    pub messages: Table<Message, 65536>,
    /// Descriptions that messages carry.
    pub rights: Table<Right, 8192>,
    /// First free record of each of the three, or [`NONE`].
    pub free_socket: u32,
    /// See `free_socket`.
    pub free_message: u32,
    /// See `free_socket`.
    pub free_right: u32,
    /// Descriptors of files that messages have carried so far; see [`crate::state::fd::DescKind::FILE`].
    pub mails: u32,
    /// Sockets made so far.
    pub socket_serial: u64,
    /// What came with what was received last: valid until the next operation.
    pub received: Message,
}

impl World {
    /// Makes this an empty world at its start. Options are kept.
    pub fn reset(&mut self) {
        self.concurrent = false;
        self.any_robust = false;
        self.held_back = false;
        self.never_come = 0;
        self.beyond = 0;
        self.now = START;
        self.fired = START;
        self.ids = 1000;
        self.free_hold = NONE;
        self.free_queued = NONE;
        self.free_chunk = NONE;
        self.free_desc = NONE;
        self.free_channel = NONE;
        self.free_fd_page = NONE;
        self.idle_jumps = 0;
        self.moves = 0;
        self.ops = 0;
        self.did = Effects::NONE;
        self.passed = 0;
        self.passed_last = NONE;
        self.passed_run = 0;
        self.long_runs = 0;
        self.current = NONE;
        self.value = 0;
        self.end = End::RUNNING;
        self.end_thread = NONE;
        self.end_obj = NONE;
        self.end_code = 0;
        self.message_len = 0;
        self.n_cycle = 0;
        self.cycle_at = 0;
        self.later_cycles = [0; 8];
        self.buckets = [NONE; BUCKETS];
        self.live.clear();
        self.threads.clear();
        self.procs.clear();
        self.objects.clear();
        self.signals.clear();
        self.timers.clear();
        self.holds.clear();
        self.semvals.clear();
        self.undos.clear();
        self.names.clear();
        self.flocks_used = false;
        self.file_locks.clear();
        self.locked_files.clear();
        self.descriptions.clear();
        self.queues.clear();
        self.queued.clear();
        self.chunks.clear();
        self.fd_pages.clear();
        self.descs.clear();
        self.channels.clear();
        self.free_rings.clear();
        self.fifos.clear();
        self.watches.clear();
        self.delivered.clear();
        self.free_watch = NONE;
        self.n_watches = 0;
        self.n_timers = 0;
        self.last_place = 0;
        self.sockets.clear();
        self.messages.clear();
        self.rights.clear();
        (self.free_socket, self.free_message, self.free_right) = (NONE, NONE, NONE);
        self.socket_serial = 0;
        self.mails = 0;
        self.received = Message::default();
    }

    /// Makes this world equal to `other`; costs what `other` uses.
    pub fn copy_from(&mut self, other: &World) {
        self.timeouts_any = other.timeouts_any;
        self.inject = other.inject;
        self.allow_misuse = other.allow_misuse;
        self.concurrent = other.concurrent;
        self.any_robust = other.any_robust;
        self.held_back = other.held_back;
        self.never_come = other.never_come;
        self.beyond = other.beyond;
        self.livelock = other.livelock;
        self.now = other.now;
        self.fired = other.fired;
        self.ids = other.ids;
        self.free_hold = other.free_hold;
        self.free_queued = other.free_queued;
        self.free_chunk = other.free_chunk;
        self.free_desc = other.free_desc;
        self.free_channel = other.free_channel;
        self.free_fd_page = other.free_fd_page;
        self.idle_jumps = other.idle_jumps;
        self.moves = other.moves;
        self.ops = other.ops;
        self.did = other.did;
        self.passed = other.passed;
        self.passed_last = other.passed_last;
        self.passed_run = other.passed_run;
        self.long_runs = other.long_runs;
        self.current = other.current;
        self.value = other.value;
        self.end = other.end;
        self.end_thread = other.end_thread;
        self.end_obj = other.end_obj;
        self.end_code = other.end_code;
        self.message_len = other.message_len;
        self.n_cycle = other.n_cycle;
        self.cycle_at = other.cycle_at;
        self.later_cycles = other.later_cycles;
        self.cycle = other.cycle;
        self.buckets = other.buckets;
        self.live.copy_from(&other.live);
        self.threads.copy_from(&other.threads);
        self.procs.copy_from(&other.procs);
        self.objects.copy_from(&other.objects);
        self.signals.copy_from(&other.signals);
        self.timers.copy_from(&other.timers);
        self.holds.copy_from(&other.holds);
        self.semvals.copy_from(&other.semvals);
        self.undos.copy_from(&other.undos);
        self.names.copy_from(&other.names);
        self.flocks_used = other.flocks_used;
        self.file_locks.copy_from(&other.file_locks);
        self.locked_files.copy_from(&other.locked_files);
        self.descriptions.copy_from(&other.descriptions);
        self.queues.copy_from(&other.queues);
        self.queued.copy_from(&other.queued);
        self.chunks.copy_from(&other.chunks);
        self.fd_pages.copy_from(&other.fd_pages);
        self.descs.copy_from(&other.descs);
        self.channels.copy_from(&other.channels);
        self.free_rings.copy_from(&other.free_rings);
        self.fifos.copy_from(&other.fifos);
        self.watches.copy_from(&other.watches);
        self.delivered.copy_from(&other.delivered);
        self.free_watch = other.free_watch;
        self.n_watches = other.n_watches;
        self.n_timers = other.n_timers;
        self.last_place = other.last_place;
        self.sockets.copy_from(&other.sockets);
        self.messages.copy_from(&other.messages);
        self.rights.copy_from(&other.rights);
        self.free_socket = other.free_socket;
        self.free_message = other.free_message;
        self.free_right = other.free_right;
        self.socket_serial = other.socket_serial;
        self.mails = other.mails;
        self.received = other.received;
    }
}
