//! The state of one world: its processes, threads and objects, and how pending operations are published and performed.

use crate::channel::{Channel, FreeRing};
use crate::depend::Effects;
use crate::epoll::{Delivered, Watch, MAX_EVENTS};
use crate::fd::{is_fd, watches, Desc, FdPage};
use crate::fifo::{Fifo, MAX_FIFOS};
use crate::file::is_file;
use crate::lock::{FileLock, KnownFile, Tagged};
use crate::msg::{Chunk, Queue, Queued};
use crate::object::{Key, ObjKind, Object, NONE};
use crate::op::{self, Kind, Op};
use crate::process::Process;
use crate::rwlock::Hold;
use crate::sem::Name;
use crate::signal::{QueuedSignal, MAX_SIGNALS};
use crate::socket::{Message, Right, Socket};
use crate::sysv::{SemVal, Undo};
use crate::table::Table;
use crate::thread::{Thread, ThreadState, POLLS};
use crate::timer::{Timer, MAX_TIMERS};
use crate::{errno, ObjId, Pid, Tid};

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
    /// The operation is complete; the value is what the call returns (an error number for most).
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
    pad: [u8; 3],
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
    /// Descriptors of files that messages have carried so far; see [`crate::fd::DescKind::FILE`].
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

    /// Thread `t` has reached visible operation `op`.
    pub fn publish(&mut self, t: Tid, op: Op) {
        self.ops += 1;
        if self.waits_twice(t, &op) {
            let what = b"a signal handler that interrupted a wait in a queue waits in another one: ";
            return self.finish_with(End::UNSUPPORTED, t, &[what, op.kind.name().as_bytes()]);
        }
        self.park(t, op);
        self.check_cycle(t);
        self.check_record_waits(t);
    }

    /// Parks `t` at `op`, not woken.
    pub(crate) fn park(&mut self, t: Tid, op: Op) {
        let expired = self.may_time_out(&op);
        let thread = &mut self.threads[t];
        thread.pending = op;
        thread.born_expired = expired;
        thread.woken = false;
        thread.stop_hit = false;
        thread.state = ThreadState::PARKED;
    }

    /// The deadline to use for one at virtual time `deadline`: counted from the last jump of the clock in whole
    /// milliseconds, so that it does not depend on how many independent steps others have made since, each of which
    /// moves the clock a little.
    pub fn settled_deadline(&self, deadline: u64) -> u64 {
        const MS: u64 = 1_000_000;
        if deadline <= self.now {
            return deadline.min(self.fired);
        }
        let ahead = deadline.saturating_sub(self.fired);
        self.fired.saturating_add(if ahead >= MS { ahead - ahead % MS } else { ahead.max(1) })
    }

    /// The deadline of a wait of `ns` from now; see [`World::settled_deadline`].
    pub fn deadline_after(&self, ns: u64) -> u64 {
        self.fired.saturating_add(ns.max(1))
    }

    /// True if `op` gives up at a deadline that may fire now.
    pub(crate) fn may_time_out(&self, op: &Op) -> bool {
        op.has(op::TIMED) && (self.timeouts_any || op.deadline <= self.fired)
    }

    /// In how many ways the pending operation of `t` can go on now; 0: it would block.
    pub fn choices(&self, t: Tid) -> u32 {
        let thread = &self.threads[t];
        if thread.state != ThreadState::PARKED {
            return 0;
        }
        if self.procs[thread.pid].stopped != 0 {
            return 0;
        }
        self.own_choices(t) + self.signal_choices(t)
    }

    /// The ways of the pending operation of `t` itself, without those in which a signal comes. What is under way when its
    /// process is stopped is over with what has been transferred.
    fn own_choices(&self, t: Tid) -> u32 {
        let thread = &self.threads[t];
        if thread.stop_hit && thread.pending.has(crate::op::PARTIAL) {
            return 0;
        }
        self.choices_of(t, &thread.pending)
    }

    /// The same for `op` in the place of the pending operation.
    pub(crate) fn choices_of(&self, t: Tid, op: &Op) -> u32 {
        match op.kind {
            Kind::TOSS => op.arg.clamp(0, u32::MAX as i64 - 1) as u32 + 1,
            Kind::SLEEP => u32::from(self.may_time_out(op) || self.cancelled(t, op)),
            Kind::JOIN => self.join_choices(t, op),
            Kind::WAIT => self.wait_choices(t, op),
            Kind::MUTEX_LOCK => self.mutex_lock_choices(t, op),
            Kind::COND_WAKE => self.cond_wake_choices(t, op),
            Kind::COND_SIGNAL => self.cond_signal_choices(op),
            Kind::COND_DESTROY | Kind::BARRIER_DESTROY => self.unused_choices(op),
            Kind::RW_RDLOCK => self.rdlock_choices(t, op),
            Kind::RW_WRLOCK | Kind::RW_WRWAIT => self.wrlock_choices(t, op),
            Kind::SPIN_LOCK => self.spin_lock_choices(op),
            Kind::BARRIER_WAKE => self.woken_choices(t),
            Kind::ONCE => self.once_choices(op),
            Kind::SEM_WAIT => self.sem_wait_choices(t, op),
            Kind::SYSV_OP => self.sysv_op_choices(t, op),
            Kind::FUTEX_WAKE_OP => self.futex_wake_op_choices(op),
            Kind::FUTEX_PI_WAIT => self.futex_pi_wait_choices(t, op),
            Kind::RECORD_LOCK => self.record_lock_choices(t, op),
            Kind::FLOCK => self.flock_choices(t, op),
            Kind::MSG_SEND => self.msg_send_choices(t, op),
            Kind::MSG_RECEIVE => self.msg_receive_choices(t, op),
            Kind::MQ_SEND | Kind::MQ_RECEIVE => self.read_choices(t, op),
            Kind::FUTEX_SLEEP => self.futex_sleep_choices(t, op),
            Kind::FUTEX_WAKE | Kind::FUTEX_REQUEUE => self.futex_wake_choices(op),
            Kind::FD_READ => self.read_choices(t, op),
            Kind::FD_WRITE => self.write_choices(t, op),
            Kind::FD_POLL => self.poll_choices(t, op),
            Kind::FD_WAIT => self.epoll_wait_choices(t, op),
            Kind::FD_OPENED => u32::from(self.fifo_opened(op) || self.cancelled(t, op)),
            Kind::FD_ACCEPT => self.accept_choices(t, op),
            Kind::FD_CONNECT => self.connect_choices(t, op),
            Kind::FD_SEND => self.send_choices(t, op),
            Kind::SIGSUSPEND => u32::from(self.cancelled(t, op)),
            Kind::SIGWAIT => self.sigwait_choices(t, op),
            Kind::NONE => 0,
            _ => 1,
        }
    }

    /// Performs the pending operation of `t` in its alternative `value`. `t` must be enabled.
    pub fn perform(&mut self, t: Tid, value: u32) -> Applied {
        let op = self.threads[t].pending;
        if self.signal_ways(t) != 0 {
            let own = self.own_choices(t);
            if value >= own {
                return self.interrupt(t, value - own);
            }
        }
        self.threads[t].state = ThreadState::RUNNING;
        self.threads[t].long_run = false;
        let applied = self.apply(t, op, value);
        // Whether a use of a file was in vain is known later, and to the shim.
        if is_file(op.kind) {
            return applied;
        }
        if op.tries() || op.has(op::TIMED) {
            self.note_poll(t, op.kind, applied);
        }
        applied
    }

    /// Counts failed polls of `t` in a row.
    fn note_poll(&mut self, t: Tid, kind: Kind, applied: Applied) {
        let polls = &mut self.threads[t].polls;
        match applied {
            Applied::Done(result) if is_fd(kind) => {
                let timed_out = result == -errno::ETIMEDOUT && matches!(kind, Kind::MQ_SEND | Kind::MQ_RECEIVE);
                let failed = result == -errno::EAGAIN || timed_out || watches(kind) && result == 0;
                *polls = if failed { polls.saturating_add(1) } else { 0 };
            }
            Applied::Done(errno::EBUSY | errno::EAGAIN | errno::ENOMSG | errno::ETIMEDOUT) => {
                *polls = polls.saturating_add(1)
            }
            Applied::Done(_) => *polls = 0,
            Applied::Parked | Applied::Ended | Applied::Signalled(_) => {}
        }
    }

    /// True if the pending operation of `t` gives way to threads that have not moved for long: a yield, or a poll that
    /// has failed again and again (a timed one gives way by itself: its time comes when nothing else can move).
    pub fn gives_way(&self, t: Tid) -> bool {
        let thread = &self.threads[t];
        thread.pending.kind == Kind::YIELD || thread.polls >= POLLS && thread.pending.tries()
    }

    fn apply(&mut self, t: Tid, op: Op, value: u32) -> Applied {
        match op.kind {
            Kind::TOSS => Applied::Done(value as i64),
            Kind::SLEEP => Applied::Done(if self.may_time_out(&op) { 0 } else { crate::errno::EINTR }),
            Kind::SIGSUSPEND => Applied::Done(crate::errno::EINTR),
            Kind::SIGWAIT => self.sigwait_perform(t, &op),
            Kind::JOIN => self.join_perform(t, &op),
            Kind::WAIT => self.wait_perform(t, &op),
            Kind::EXIT => self.exit_perform(t, &op),
            Kind::THREAD_EXIT => {
                self.orphan_mutexes(t);
                Applied::Done(0)
            }
            Kind::CANCEL => self.cancel_perform(&op),
            Kind::MUTEX_LOCK => self.mutex_lock_perform(t, &op),
            Kind::MUTEX_UNLOCK => self.mutex_unlock_perform(t, &op),
            Kind::MUTEX_DESTROY => self.mutex_destroy_perform(t, &op),
            Kind::COND_WAIT => self.cond_wait_perform(t, &op),
            Kind::COND_WAKE => self.cond_wake_perform(t, &op),
            Kind::COND_SIGNAL | Kind::COND_BROADCAST => self.cond_signal_perform(t, &op, value),
            Kind::COND_DESTROY | Kind::BARRIER_DESTROY | Kind::SEM_DESTROY => self.destroy_perform(t, &op),
            Kind::RW_RDLOCK => self.rdlock_perform(t, &op),
            Kind::RW_WRLOCK | Kind::RW_WRWAIT => self.wrlock_perform(t, &op),
            Kind::RW_UNLOCK => self.rwunlock_perform(t, &op),
            Kind::RW_DESTROY => self.rwdestroy_perform(t, &op),
            Kind::SPIN_LOCK => self.spin_lock_perform(t, &op),
            Kind::SPIN_UNLOCK => self.spin_unlock_perform(t, &op),
            Kind::BARRIER_WAIT => self.barrier_wait_perform(t, &op),
            Kind::ONCE => self.once_perform(t, &op),
            Kind::SEM_WAIT => self.sem_wait_perform(t, &op),
            Kind::SEM_POST => self.sem_post_perform(&op),
            Kind::SEM_GET => self.sem_get_perform(t, &op),
            Kind::SYSV_OP => self.sysv_op_perform(t, &op),
            Kind::SYSV_CTL => self.sysv_ctl_perform(t, &op),
            Kind::FUTEX_WAKE_OP => self.futex_wake_op_perform(t, &op, value),
            Kind::FUTEX_LOCK_PI => self.futex_lock_pi_perform(t, &op),
            Kind::FUTEX_PI_WAIT => self.futex_pi_wait_perform(t, &op),
            Kind::FUTEX_UNLOCK_PI => self.futex_unlock_pi_perform(t, &op),
            Kind::RECORD_LOCK => self.record_lock_perform(t, &op),
            Kind::RECORD_UNLOCK => self.record_unlock_perform(t, &op),
            Kind::RECORD_TEST => self.record_test_perform(t, &op),
            Kind::FLOCK => self.flock_perform(t, &op),
            Kind::MSG_SEND => self.msg_send_perform(t, &op),
            Kind::MSG_RECEIVE => self.msg_receive_perform(t, &op),
            Kind::MQ_SEND => self.mq_send_perform(t, &op),
            Kind::MQ_RECEIVE => self.mq_receive_perform(t, &op),
            Kind::MSG_CTL => self.queue_ctl_perform(&op),
            Kind::FUTEX_WAIT => self.futex_wait_perform(t, &op),
            Kind::FUTEX_SLEEP => self.futex_sleep_perform(t, &op),
            Kind::FUTEX_WAKE => self.futex_wake_perform(t, &op, value),
            Kind::FUTEX_REQUEUE => self.futex_requeue_perform(t, &op, value),
            Kind::FD_READ => self.read_perform(t, &op),
            Kind::FD_WRITE => self.write_perform(t, &op),
            Kind::FD_POLL => self.poll_perform(t, &op),
            Kind::FD_WAIT => self.epoll_wait_perform(t, &op),
            Kind::FD_OPENED => Applied::Done(if self.fifo_opened(&op) { 0 } else { -errno::EINTR }),
            Kind::FD_ACCEPT => self.accept_perform(t, &op),
            Kind::FD_CONNECT => self.connect_perform(t, &op),
            Kind::FD_SEND => self.send_perform(t, &op),
            Kind::FD_CLOSE => self.close_perform(t, &op),
            Kind::FD_CLOSE_ALL => self.close_all_perform(t),
            // Yield, barrier wake, kill, exec, names: no more effect than having their turn; what the
            // caller then does belongs to the same transition.
            _ => Applied::Done(0),
        }
    }

    /// The object an address names, made with flags `flags` if it is new. `None`: the table is full.
    pub fn object_at(&mut self, space: u32, kind: ObjKind, addr: u64, flags: u32) -> Option<ObjId> {
        self.find_or_make(Key::new(space, kind, addr), |new| new.flags = flags)
    }

    /// Ends the execution, unless it has ended already.
    pub fn finish(&mut self, end: End, t: Tid, obj: ObjId, code: u32) {
        if self.end == End::RUNNING {
            self.end = end;
            self.end_thread = t;
            self.end_obj = obj;
            self.end_code = code;
        }
    }

    /// Ends the execution with a text.
    pub fn finish_with(&mut self, end: End, t: Tid, parts: &[&[u8]]) {
        if self.end != End::RUNNING {
            return;
        }
        self.message_len = 0;
        for part in parts {
            self.say(part);
        }
        self.finish(end, t, NONE, 0);
    }

    fn say(&mut self, text: &[u8]) {
        let at = self.message_len as usize;
        let n = text.len().min(MAX_MESSAGE - at);
        self.message[at..at + n].copy_from_slice(&text[..n]);
        self.message_len += n as u32;
    }

    /// The text about the end.
    pub fn message(&self) -> &[u8] {
        &self.message[..(self.message_len as usize).min(MAX_MESSAGE)]
    }

    /// Reports misuse. True: the execution is over. False: the caller asked to go on as glibc does.
    pub(crate) fn misuse(&mut self, t: Tid, obj: ObjId, what: Misuse) -> bool {
        if self.allow_misuse {
            return false;
        }
        self.finish(End::MISUSE, t, obj, what.0);
        true
    }

    /// A table of the model is full.
    pub(crate) fn full(&mut self, what: &str) -> Applied {
        self.finish_with(
            End::UNSUPPORTED,
            NONE,
            &[b"the program uses more ", what.as_bytes(), b" than vsrun can hold"],
        );
        Applied::Ended
    }

    /// The process that created `p`, or [`NONE`].
    pub fn creator_of(&self, p: Pid) -> Pid {
        self.procs.get(p).map_or(NONE, |p| p.creator)
    }
}
