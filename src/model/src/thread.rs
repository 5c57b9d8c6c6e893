//! Threads: created, parked, running, exited, joined, detached.

use core::fmt;

use crate::address::Address;
use crate::carrier::FiberState;
use crate::depend::Effects;
use crate::fd::{Polled, MAX_POLLED};
use crate::object::NONE;
use crate::op::{self, Op};
use crate::signal::{Handling, SigInfo, MAX_HANDLERS};
use crate::socket::Credentials;
use crate::sysv::SemBuf;
use crate::world::{Applied, World};
use crate::{errno, ObjId, Pid, Tid};

/// Semaphore operations in one semop that are modelled (SEMOPM is 500; programs use a handful).
pub const MAX_SEMBUF: usize = 64;

/// Where a thread is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct ThreadState(pub u8);

#[allow(missing_docs)]
impl ThreadState {
    pub const FREE: ThreadState = ThreadState(0);
    /// Created; runs up to its first visible operation before its creator goes on.
    pub const STARTING: ThreadState = ThreadState(1);
    /// Has the turn, or waits inside the creation of another thread.
    pub const RUNNING: ThreadState = ThreadState(2);
    /// At a visible operation.
    pub const PARKED: ThreadState = ThreadState(3);
    pub const EXITED: ThreadState = ThreadState(4);
}

/// The name of a thread: its path of creation. Twelve bits a level below a leading 1; the top bit marks a hash, for
/// paths that are too deep or too wide. It does not depend on the schedule.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct Uid(pub u64);

impl Uid {
    /// The first thread of the first process.
    pub const MAIN: Uid = Uid(1);
    const HASHED: u64 = 1 << 63;

    /// The `n`-th (from 1) thread or process created by this one.
    pub fn child(self, n: u32) -> Uid {
        if self.0 < 1 << 51 && n < 1 << 12 {
            return Uid(self.0 << 12 | n as u64);
        }
        let mixed = (self.0 ^ (n as u64).rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Uid((mixed ^ mixed >> 29) | Uid::HASHED)
    }

    /// The name that [`fmt::Display`] printed.
    pub fn parse(text: &str) -> Option<Uid> {
        if let Some(hash) = text.strip_prefix('h') {
            return u64::from_str_radix(hash, 16).ok().map(|h| Uid(h | Uid::HASHED));
        }
        let mut parts = text.split('.');
        if parts.next()? != "0" {
            return None;
        }
        let mut uid = Uid::MAIN;
        for part in parts {
            let n: u32 = part.parse().ok()?;
            if n == 0 || n >= 1 << 12 || uid.0 >= 1 << 51 {
                return None;
            }
            uid = uid.child(n);
        }
        Some(uid)
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 & Uid::HASHED != 0 {
            return write!(f, "h{:x}", self.0 & !Uid::HASHED);
        }
        let levels = (63 - self.0.max(1).leading_zeros()) / 12;
        write!(f, "0")?;
        for level in (0..levels).rev() {
            write!(f, ".{}", self.0 >> (12 * level) & 0xfff)?;
        }
        Ok(())
    }
}

/// Ends by request: `Thread::cancel` bits.
pub const CANCEL_REQUESTED: u8 = 1;
/// The request was looked at and cancellation is switched off.
pub const CANCEL_DISABLED: u8 = 2;

/// So often a thread may yield while another that could move does not: what spins a few times before it waits (the
/// atomic waits of libstdc++ yield four times) gets to its wait on some path. Without a limit, loops that poll would
/// have paths without end.
pub const YIELD_WINDOW: usize = 4;
/// After so many failed polls in a row a thread is taken to poll in a loop: its next ones are treated like yields.
pub const POLLS: u8 = 3;

/// One thread. `fiber` is the shim's, the rest the model's. Written only by the holder of the turn; readable at any time
/// by the supervisor for reports.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Thread {
    /// Path of creation.
    pub uid: Uid,
    /// Its process.
    pub pid: Pid,
    /// The thread that created it.
    pub creator: Tid,
    /// Threads and processes it has created.
    pub children: u32,
    /// Where it is in its life.
    pub state: ThreadState,
    /// Detached: nobody will join it.
    pub detached: bool,
    /// Joined already.
    pub joined: bool,
    /// Cancellation bits.
    pub cancel: u8,
    /// The operation it is parked at.
    pub pending: Op,
    /// A wake-up has been given to the pending operation.
    pub woken: bool,
    /// Set by the shim before a futex operation is performed: memory holds the expected value.
    pub compare: bool,
    /// Failed polls (try and timed operations) in a row, see [`POLLS`].
    pub polls: u8,
    /// Once controls whose initializers it is in.
    pub in_once: u8,
    /// The deadline of the pending operation had passed when it was published.
    pub born_expired: bool,
    /// The once control entered last.
    pub once: ObjId,
    /// `World::moves` at its last transition, or at its creation.
    pub moved: u64,
    /// Transitions it has made.
    pub transitions: u32,
    /// `World::moves` at its last yields, the oldest first; 0: it has not yielded so often.
    pub yields: [u64; YIELD_WINDOW],
    /// Whether all its operations are visible; see `sharing`.
    pub exposed: u8,
    /// It has passed so many operations that others are to run first.
    pub long_run: bool,
    /// How often that was so since its last other visible operation.
    pub long_runs: u8,
    /// Locks declared atomic that it holds.
    pub atomic_held: u32,
    /// The thread that joined it, or [`NONE`].
    pub heir: Tid,
    /// `World::ops` when it was joined.
    pub joined_at: u64,
    /// `World::ops` when it was created.
    pub born: u64,
    /// Queue it is in: object and next thread.
    pub queued_on: u32,
    /// Next thread in that queue.
    pub queue_next: Tid,
    /// Extra results of the last operation (wait status, pid, value).
    pub out: [i64; 3],
    /// Virtual signal mask.
    pub sigmask: u64,
    /// The mask in force while it waits in ppoll, pselect or epoll_pwait; see `masked`.
    pub within: u64,
    /// Its pending operation has a mask of its own, `within`.
    pub masked: bool,
    /// Its process has been stopped while it was parked at an operation that this can interrupt; see `signal`.
    pub stop_hit: bool,
    /// Signals pending for this thread.
    pub sigpending: u64,
    /// The signal taken last.
    pub taken: SigInfo,
    /// Its handlers that run, the outermost first; see `n_handlers`.
    pub handlers: [Handling; MAX_HANDLERS],
    /// How many; more than [`MAX_HANDLERS`] are counted only.
    pub n_handlers: u8,
    /// A handler has interrupted its wait in a queue, in which it keeps its place.
    pub held: bool,
    /// That wait has its wake-up.
    pub held_woken: bool,
    /// Virtual thread id.
    pub vtid: i32,
    /// Lowered priority of a PCT schedule; 0: the one it was born with.
    pub priority: u32,
    /// First chunk of the message that it sends or has received, or [`NONE`].
    pub staged: u32,
    /// Operations of the pending semop.
    pub n_sembuf: u32,
    /// The operations.
    pub sembuf: [SemBuf; MAX_SEMBUF],
    /// Channels that it has made.
    pub made: u32,
    /// Descriptions that the pending poll asks about.
    pub n_polled: u32,
    /// The descriptions.
    pub polled: [Polled; MAX_POLLED],
    /// The description that the pending operation is on, which stays while it lasts, or [`NONE`].
    pub holding: u32,
    /// The address that the pending operation names.
    pub address: Address,
    /// Descriptions that the pending operation sends along: the first of `World::rights`, or [`NONE`].
    pub sending: u32,
    /// Who it says it is, for those at the other end of a socket.
    pub cred: Credentials,
    /// What the shim keeps of it.
    pub fiber: FiberState,
}

impl Thread {
    /// True if it may still run.
    pub fn alive(&self) -> bool {
        self.state != ThreadState::FREE && self.state != ThreadState::EXITED
    }
}

impl World {
    /// Creates a thread in process `pid`; `creator` is [`NONE`] for the first thread of the world.
    /// `None`: the table is full.
    pub fn create_thread(&mut self, pid: Pid, creator: Tid) -> Option<Tid> {
        let uid = if creator == NONE {
            Uid::MAIN
        } else {
            self.threads[creator].children += 1;
            self.threads[creator].uid.child(self.threads[creator].children)
        };
        let t = self.threads.push(Thread {
            uid,
            pid,
            creator,
            children: 0,
            state: ThreadState::STARTING,
            detached: false,
            joined: false,
            cancel: 0,
            pending: Op::default(),
            woken: false,
            compare: false,
            polls: 0,
            in_once: 0,
            born_expired: false,
            once: NONE,
            moved: self.moves,
            transitions: 0,
            yields: [0; YIELD_WINDOW],
            exposed: 0,
            long_run: false,
            long_runs: 0,
            atomic_held: 0,
            heir: NONE,
            joined_at: 0,
            born: self.ops,
            queued_on: NONE,
            queue_next: NONE,
            out: [0; 3],
            sigmask: 0,
            within: 0,
            masked: false,
            stop_hit: false,
            sigpending: 0,
            taken: SigInfo::default(),
            handlers: [Handling::default(); MAX_HANDLERS],
            n_handlers: 0,
            held: false,
            held_woken: false,
            vtid: 0,
            priority: 0,
            staged: NONE,
            n_sembuf: 0,
            made: 0,
            n_polled: 0,
            polled: [Polled::default(); MAX_POLLED],
            holding: NONE,
            address: Address::NONE,
            sending: NONE,
            cred: Credentials::default(),
            sembuf: [SemBuf::default(); MAX_SEMBUF],
            fiber: FiberState::default(),
        })?;
        self.threads[t].vtid = self.next_id();
        self.live.push(t);
        self.procs[pid].threaded |= creator != NONE && self.threads[creator].pid == pid;
        self.procs[pid].live_threads += 1;
        if creator == NONE {
            self.threads[t].state = ThreadState::RUNNING;
        } else {
            self.concurrent = true;
        }
        Some(t)
    }

    /// The thread of process `pid` whose pthread_t is `fs`, the latest if it was used before.
    pub fn thread_by_fs(&self, pid: Pid, fs: u64) -> Option<Tid> {
        let threads = self.threads.as_slice();
        (0..threads.len()).rev().find(|&i| threads[i].pid == pid && threads[i].fiber.fs == fs).map(|i| i as Tid)
    }

    /// Ends thread `t`: robust mutexes it holds become orphans. Call only when it is not queued anywhere.
    pub fn thread_exit(&mut self, t: Tid) {
        let pid = self.threads[t].pid;
        self.dequeue(t);
        if t == self.current {
            let nearly = if self.end_changes_more(pid) { Effects::NEARLY_EXITS } else { Effects::NONE };
            let leaves = if self.procs[pid].live_threads == 2 { Effects::LEAVES_ONE } else { Effects::NONE };
            self.did = self.did.with(Effects::ENDS).with(nearly).with(leaves);
        }
        self.orphan_mutexes(t);
        self.threads[t].state = ThreadState::EXITED;
        self.threads[t].pending = Op::default();
        self.leave_handlers(t, 0);
        self.threads[t].sigpending = 0;
        self.forget_signals(|q| q.tid == t);
        self.procs[pid].live_threads = self.procs[pid].live_threads.saturating_sub(1);
        if let Some(at) = self.live.as_slice().iter().position(|&x| x == t) {
            let live = self.live.as_mut_slice();
            live.copy_within(at + 1.., at);
            self.live.len -= 1;
        }
    }

    /// True if a join returns at once, with success or not.
    pub(crate) fn join_ready(&self, t: Tid, op: &Op) -> bool {
        self.join_deadlocks(t, op)
            || self.threads.get(op.obj).is_none_or(|target| !target.alive() || target.detached || target.joined)
    }

    pub(crate) fn join_choices(&self, t: Tid, op: &Op) -> u32 {
        u32::from(self.join_ready(t, op) || op.has(op::TRY) || self.may_time_out(op) || self.cancelled(t, op))
    }

    /// A thread that joins itself gets EDEADLK; two that join each other wait for ever (glibc 2.36, measured).
    fn join_deadlocks(&self, t: Tid, op: &Op) -> bool {
        op.obj == t
    }

    pub(crate) fn join_perform(&mut self, t: Tid, op: &Op) -> Applied {
        if !self.threads.contains(op.obj) {
            return Applied::Done(errno::ESRCH);
        }
        let target = self.threads[op.obj];
        Applied::Done(if target.detached || target.joined {
            errno::EINVAL
        } else if self.join_deadlocks(t, op) {
            errno::EDEADLK
        } else if !target.alive() {
            self.threads[op.obj].joined = true;
            self.threads[op.obj].heir = t;
            self.threads[op.obj].joined_at = self.ops;
            0
        } else if op.has(op::TRY) {
            errno::EBUSY
        } else if self.cancelled(t, op) {
            errno::EINTR
        } else {
            errno::ETIMEDOUT
        })
    }

    /// True if `t` is asked to end and its pending operation is a point at which it does.
    pub(crate) fn cancelled(&self, t: Tid, op: &Op) -> bool {
        op.has(op::CANCEL_POINT) && self.threads[t].cancel & (CANCEL_REQUESTED | CANCEL_DISABLED) == CANCEL_REQUESTED
    }

    pub(crate) fn cancel_perform(&mut self, op: &Op) -> Applied {
        if self.threads.contains(op.obj) {
            self.threads[op.obj].cancel |= CANCEL_REQUESTED;
        }
        Applied::Done(0)
    }
}

impl World {
    /// The new thread `t` has the mask of its creator.
    pub fn inherit_mask(&mut self, t: Tid) {
        self.threads[t].sigmask = self.threads[self.threads[t].creator].sigmask;
    }

    /// Nobody will join `t`.
    pub fn detach(&mut self, t: Tid) {
        self.threads[t].detached = true;
    }

    /// Requests to end `t` are heeded or not.
    pub fn allow_cancel(&mut self, t: Tid, allowed: bool) {
        let thread = &mut self.threads[t];
        thread.cancel = if allowed { thread.cancel & !CANCEL_DISABLED } else { thread.cancel | CANCEL_DISABLED };
    }

    /// A use of a file by `t` was in vain, or not: one in a row of failed polls, if `tries`.
    pub fn note_use(&mut self, t: Tid, tries: bool, vain: bool) {
        let thread = &mut self.threads[t];
        thread.polls = if vain && tries { thread.polls.saturating_add(1) } else { 0 };
    }

    /// What is published next by `t` carries these numbers, see [`Thread::out`].
    #[inline]
    pub fn set_out(&mut self, t: Tid, out: [i64; 3]) {
        self.threads[t].out = out;
    }

    /// The word of the futex that `t` is about to operate on is as it expects it.
    pub fn set_compare(&mut self, t: Tid, equal: bool) {
        self.threads[t].compare = equal;
    }

    /// The operations of the semop that `t` publishes next.
    pub fn set_semops(&mut self, t: Tid, ops: &[SemBuf]) {
        self.threads[t].n_sembuf = ops.len() as u32;
        self.threads[t].sembuf[..ops.len()].copy_from_slice(ops);
    }

    /// The `i`-th of the descriptions that the poll of `t` asks about, the last so far.
    pub fn add_polled(&mut self, t: Tid, i: usize, polled: Polled) {
        self.threads[t].polled[i] = polled;
        self.threads[t].n_polled = i as u32 + 1;
    }

    /// What the poll that `t` publishes next asks about.
    pub fn set_polled(&mut self, t: Tid, polled: &[Polled]) {
        self.threads[t].n_polled = polled.len() as u32;
        self.threads[t].polled[..polled.len()].copy_from_slice(polled);
    }

    /// Whom the operation on a socket that `t` publishes next names, and who it says it is.
    pub fn set_address(&mut self, t: Tid, address: Address) {
        self.threads[t].address = address;
    }

    /// See [`World::set_address`].
    pub fn set_credentials(&mut self, t: Tid, cred: Credentials) {
        self.threads[t].cred = cred;
    }

    /// The descriptions that go along with what `t` sends next: a list of `World::rights`. Gives those of before.
    pub fn send_along(&mut self, t: Tid, rights: u32) -> u32 {
        core::mem::replace(&mut self.threads[t].sending, rights)
    }

    /// The message that `t` is about to send is this one, of [`World::stage`]. Gives the one of before.
    pub fn exchange_staged(&mut self, t: Tid, staged: u32) -> u32 {
        core::mem::replace(&mut self.threads[t].staged, staged)
    }

    /// What the shim keeps of thread `t`.
    #[inline]
    pub fn fiber_state(&mut self, t: Tid) -> &mut FiberState {
        &mut self.threads[t].fiber
    }
}

#[cfg(test)]
mod tests {
    use super::Uid;
    use std::string::ToString;

    #[test]
    fn uid_round_trips() {
        let a = Uid::MAIN.child(1).child(4095).child(7);
        assert_eq!(a.to_string(), "0.1.4095.7");
        assert_eq!(Uid::parse("0.1.4095.7"), Some(a));
        let wide = Uid::MAIN.child(5000);
        assert!(wide.to_string().starts_with('h'));
        assert_eq!(Uid::parse(&wide.to_string()), Some(wide));
        assert_eq!(Uid::parse("0"), Some(Uid::MAIN));
        for bad in ["", "1", "0.", "0.0", "0.4096", "0.x", "hxyz"] {
            assert_eq!(Uid::parse(bad), None, "{bad}");
        }
    }
}
