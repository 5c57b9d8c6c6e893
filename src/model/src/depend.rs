//! Dependency between operations, conditional on recorded state (Stoller, TR 536, Section 7 and Figure 3).
//!
//! Two operations are independent in a state if neither enables or disables the other and their order does not
//! matter. `dependent` may say "dependent" too often, never too seldom.

use crate::fd::{by_mask, is_fd, looks, moves};
use crate::file;
use crate::lock::{self, LockState};
use crate::msg::removes_queue;
use crate::object::{ObjKind, DESTROYED, NONE, NOT_RECOVERABLE, PREFER_WRITER};
use crate::op::{self, Kind, Op, REACHES};
use crate::reach::Reach;
use crate::signal::{BY_CLOCK, SHARED_PENDING};
use crate::sysv::{Ctl, SEMVMX};
use crate::thread::{ThreadState, Uid};
use crate::world::World;
use crate::{ObjId, Pid, Tid};

/// An operation of a thread, with what its dependencies are conditional on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(C)]
pub struct Act {
    /// The thread's name.
    pub uid: Uid,
    /// The thread.
    pub tid: Tid,
    /// Its process.
    pub pid: Pid,
    /// The process that created its process, or [`NONE`].
    pub parent: Pid,
    /// Kind of `op.obj`, where that is an object.
    pub obj_kind: ObjKind,
    /// [`TIMED_OUT`], [`EXPIRED`], [`CANCELLED`], [`WOKEN`], [`IN_ONCE`], [`GIVES_WAY`], [`HELD`],
    /// [`BORN_EXPIRED`].
    pub fate: u8,
    /// 1 + the once control whose initializer its thread runs, 0: none, [`SOME_ONCE`]: it is not known which.
    pub once: u16,
    /// The operation.
    pub op: Op,
    /// The object's recorded state. Locks and once controls: 1 + the owner, 0 if there is none (of the mutex, where a
    /// condition variable is waited on). Semaphores: the value. Wake-ups and destruction: the number of waiters. Sets of
    /// semaphores: the value, or up to four values of 16 bits for the operations of a semop in their order. Rwlocks: see
    /// [`RwState`]. join: 1 if it would return. wait: see [`WaitState`]. Message queues: see [`QueueState`](crate::msg::QueueState).
    /// Locks of files: see [`LockState`]. Operations on channels: see
    /// [`ChannelState`](crate::channel::ChannelState). poll: a bit for each description that has an event.
    pub state: i64,
}

/// Bit of [`Act::fate`]: the deadline may fire now and nothing else lets the operation go on.
pub const TIMED_OUT: u8 = 1;
/// Bit of [`Act::fate`]: the deadline has passed, so that the operation does not block, whatever becomes of its object.
pub const EXPIRED: u8 = 4;
/// Bit of [`Act::fate`]: the thread is asked to end and this is a point at which it does.
pub const CANCELLED: u8 = 2;

/// Bit of [`Act::fate`]: the operation has been given its wake-up.
pub const WOKEN: u8 = 8;
/// Bit of [`Act::fate`]: the thread runs the initializer of a once control, which may end with any of its transitions.
pub const IN_ONCE: u8 = 16;
/// Bit of [`Act::fate`]: its deadline had passed before it became pending.
pub const BORN_EXPIRED: u8 = 128;
/// [`Act::once`] where several are nested, or there are very many objects.
pub const SOME_ONCE: u16 = u16::MAX;
/// Bit of [`Act::fate`]: it waits for others to move, as a yield does.
pub const GIVES_WAY: u8 = 32;
/// Bit of [`Act::fate`]: it may have to wait for others to move: its thread has given way often enough.
pub const HELD: u8 = 64;
/// Bits of [`Act::fate`] that let an operation go on whatever becomes of its object.
pub const LETS_GO: u8 = TIMED_OUT | EXPIRED | CANCELLED;

impl Act {
    /// No operation.
    pub const NOTHING: Act = Act {
        uid: Uid(0),
        tid: NONE,
        pid: NONE,
        parent: NONE,
        obj_kind: ObjKind(0),
        fate: 0,
        once: 0,
        op: Op::new(Kind::NONE),
        state: 0,
    };

    /// The same with other numbers for threads, processes and objects: those that mean the same in every execution.
    pub fn renamed(
        &self,
        thread: impl Fn(Tid) -> Tid,
        process: impl Fn(Pid) -> Pid,
        object: impl Fn(ObjId) -> ObjId,
    ) -> Act {
        let mut act = *self;
        act.tid = thread(self.tid);
        act.pid = process(self.pid);
        if self.once != 0 && self.once != SOME_ONCE {
            act.once = u16::try_from(object(u32::from(self.once) - 1) + 1).unwrap_or(SOME_ONCE);
        }
        act.parent = if self.parent == NONE { NONE } else { process(self.parent) };
        let owner = |o: u32| if o == 0 { 0 } else { thread(o - 1) + 1 };
        match self.op.kind {
            Kind::JOIN | Kind::CANCEL => act.op.obj = thread(self.op.obj),
            Kind::KILL | Kind::TIMER => act.op.obj = if self.op.obj == NONE { NONE } else { process(self.op.obj) },
            _ => {
                let [first, second] = operands(&self.op);
                act.op.obj = if first == NONE { self.op.obj } else { object(first) };
                act.op.obj2 = if second == NONE { self.op.obj2 } else { object(second) };
            }
        }
        match self.op.kind {
            Kind::MUTEX_LOCK
            | Kind::MUTEX_UNLOCK
            | Kind::MUTEX_DESTROY
            | Kind::COND_WAIT
            | Kind::COND_WAKE
            | Kind::SPIN_LOCK
            | Kind::SPIN_UNLOCK
            | Kind::ONCE => act.state = i64::from(owner(self.state as u32)),
            Kind::RW_RDLOCK | Kind::RW_WRLOCK | Kind::RW_WRWAIT | Kind::RW_UNLOCK | Kind::RW_DESTROY => {
                let state = RwState::of(self.state);
                act.state = RwState { owner: owner(state.owner), ..state }.pack();
            }
            // Which number a descriptor has depends on what others had at the time; it is the same description.
            Kind::FD_CLOSE | Kind::FD_CONTROL => act.op.arg = 0,
            kind if file::is_file(kind) => act.op = file::renamed(&act.op),
            kind if lock::is_lock(kind) => act.state = LockState::of(self.state, 0).renamed(process).pack(),
            Kind::WAIT => {
                let state = WaitState::of(self.state);
                let target = if state.target == 0 { 0 } else { process(state.target - 1) + 1 };
                act.state = WaitState { target, ..state }.pack();
            }
            _ => {}
        }
        act
    }
}

/// What an executed transition did beyond its operation: known only once it has been executed. Bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(transparent)]
pub struct Effects(pub u8);

#[allow(missing_docs)]
impl Effects {
    pub const NONE: Effects = Effects(0);
    /// Its thread is over.
    pub const ENDS: Effects = Effects(1);
    /// Its thread has called for the end of its process, or has come to its visible end: which depends on the other threads
    /// that are left.
    pub const EXITS: Effects = Effects(2);
    /// The execution ended early with it (assertion, crash): nothing comes after it.
    pub const LAST: Effects = Effects(4);
    /// It has sent a signal to a process, which may notice it at any operation.
    pub const SIGNALS: Effects = Effects(8);
    /// It has changed what operations see that name neither its objects nor its channels.
    pub const FAR: Effects = Effects(16);
    /// It has ended a thread and left one in the process.
    pub const LEAVES_ONE: Effects = Effects(32);
    /// It has ended a thread, and would have come to the visible end of the process had that thread been the last.
    pub const NEARLY_EXITS: Effects = Effects(64);
    /// What an operation that has not been performed may come to do. That it calls for the end of its process is left out:
    /// then everything would depend on everything. Sleep sets see it once it has been done.
    pub const ANY: Effects = Effects(1);
    /// What nothing is independent of.
    const WIDE: Effects = Effects(4 | 8 | 16);

    pub fn has(self, other: Effects) -> bool {
        self.0 & other.0 != 0
    }

    /// It concerns threads of other processes too.
    pub fn wakes_others(self) -> bool {
        self.has(Effects::WIDE)
    }

    pub fn with(self, other: Effects) -> Effects {
        Effects(self.0 | other.0)
    }
}

/// [`Act::state`] of an operation on a rwlock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RwState {
    /// 1 + the writer, 0 if there is none.
    pub owner: u32,
    /// Read holds.
    pub readers: u32,
    /// Writers that have announced themselves.
    pub announced: u32,
    /// Writers are preferred.
    pub prefers: bool,
    /// The thread of the operation holds it for reading.
    pub holds: bool,
}

impl RwState {
    /// As a number.
    pub fn pack(self) -> i64 {
        let bits = u64::from(self.owner & 0xff_ffff)
            | u64::from(self.readers & 0xf_ffff) << 24
            | u64::from(self.announced & 0xffff) << 44
            | u64::from(self.prefers) << 60
            | u64::from(self.holds) << 61;
        bits as i64
    }

    /// From [`Act::state`].
    pub fn of(state: i64) -> RwState {
        let bits = state as u64;
        RwState {
            owner: (bits & 0xff_ffff) as u32,
            readers: (bits >> 24 & 0xf_ffff) as u32,
            announced: (bits >> 44 & 0xffff) as u32,
            prefers: bits >> 60 & 1 != 0,
            holds: bits >> 61 & 1 != 0,
        }
    }
}

/// [`Act::state`] of a wait for processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitState {
    /// 1 + the process that is waited for, 0 if any of several.
    pub target: u32,
    /// Matching children that are over, and that are not.
    pub over: u32,
    /// See `over`.
    pub alive: u32,
}

impl WaitState {
    /// As a number.
    pub fn pack(self) -> i64 {
        i64::from(self.target) | i64::from(self.over.min(0x7fff)) << 32 | i64::from(self.alive.min(0x7fff)) << 47
    }

    /// From [`Act::state`].
    pub fn of(state: i64) -> WaitState {
        WaitState { target: state as u32, over: (state >> 32 & 0x7fff) as u32, alive: (state >> 47 & 0x7fff) as u32 }
    }
}

impl World {
    /// The pending operation of `t` with the state it is conditional on.
    pub fn act(&self, t: Tid) -> Act {
        let thread = &self.threads[t];
        let op = Op { signals: self.signal_ways(t), ..self.as_it_reaches(t, &thread.pending) };
        Act {
            uid: thread.uid,
            tid: t,
            pid: thread.pid,
            parent: self.creator_of(thread.pid),
            obj_kind: self.obj_kind(&op),
            fate: self.fate(t, &op),
            once: self.once_of(t),
            op,
            state: self.recorded_state(t, &op),
        }
    }

    fn obj_kind(&self, op: &Op) -> ObjKind {
        match op.kind {
            Kind::JOIN | Kind::CANCEL | Kind::KILL | Kind::WAIT | Kind::TIMER => ObjKind::default(),
            _ => self.objects.get(op.obj).map_or(ObjKind::default(), |o| o.key.kind),
        }
    }

    fn fate(&self, t: Tid, op: &Op) -> u8 {
        let mut fate = 0;
        if self.may_time_out(op) {
            fate |= EXPIRED;
            if self.choices_of(t, &Op { flags: op.flags & !op::TIMED, ..*op }) == 0 {
                fate |= TIMED_OUT;
            }
        }
        if is_fd(op.kind) && self.goes_by_timer(t, op) {
            fate |= EXPIRED | TIMED_OUT;
        }
        if self.cancelled(t, op) {
            fate |= CANCELLED;
        }
        let thread = &self.threads[t];
        if thread.woken && thread.state == ThreadState::PARKED {
            fate |= WOKEN;
        }
        if thread.in_once > 0 {
            fate |= IN_ONCE;
        }
        if thread.born_expired && op.has(op::TIMED) {
            fate |= BORN_EXPIRED;
        }
        if self.gives_way(t) {
            fate |= GIVES_WAY | if thread.yields[0] > 0 { HELD } else { 0 };
        }
        fate
    }

    fn once_of(&self, t: Tid) -> u16 {
        let thread = &self.threads[t];
        match thread.in_once {
            0 => 0,
            1 if thread.once < u32::from(SOME_ONCE) - 1 => thread.once as u16 + 1,
            _ => SOME_ONCE,
        }
    }

    fn recorded_state(&self, t: Tid, op: &Op) -> i64 {
        match op.kind {
            Kind::SEM_WAIT | Kind::SEM_POST | Kind::SEM_GET | Kind::SEM_DESTROY => self.objects[op.obj].value as i64,
            Kind::SYSV_OP => self.sysv_state(t, op),
            Kind::SYSV_CTL => self.sysv_value(op.obj, op.obj2).value as i64,
            Kind::MSG_SEND | Kind::MSG_RECEIVE | Kind::MSG_CTL => self.queue_state(op.obj).pack(),
            kind if lock::is_lock(kind) => self.lock_state(t, op).pack(),
            Kind::COND_SIGNAL
            | Kind::COND_BROADCAST
            | Kind::COND_DESTROY
            | Kind::BARRIER_DESTROY
            | Kind::FUTEX_WAKE
            | Kind::FUTEX_WAKE_OP
            | Kind::FUTEX_REQUEUE => self.objects[op.obj].n_waiters as i64,
            Kind::MUTEX_LOCK | Kind::MUTEX_UNLOCK | Kind::MUTEX_DESTROY => self.mutex_state(op.obj),
            Kind::COND_WAIT | Kind::COND_WAKE => self.mutex_state(op.obj2),
            Kind::SPIN_LOCK | Kind::SPIN_UNLOCK | Kind::ONCE => self.objects[op.obj].owner.wrapping_add(1) as i64,
            Kind::RW_RDLOCK | Kind::RW_WRLOCK | Kind::RW_WRWAIT | Kind::RW_UNLOCK | Kind::RW_DESTROY => {
                self.rw_state(t, op.obj).pack()
            }
            Kind::JOIN => i64::from(self.join_ready(t, op)),
            Kind::WAIT => self.wait_state(t, op).pack(),
            Kind::FD_POLL => self.polled_state(t),
            Kind::FD_WAIT => i64::from(self.channel_of(op.obj).is_some_and(|epoll| self.epoll_ready(t, epoll))),
            Kind::FD_OPENED => i64::from(self.fifo_opened(op)),
            Kind::FD_EPOLL_CTL | Kind::FD_CLOSE_ALL => self.taken_out_of_reach(t, op),
            Kind::FD_CLOSE if op.has(op::SEVERAL) => self.taken_out_of_reach(t, op),
            Kind::FD_ACCEPT => self.channel_states(t, op) | self.taken_out_of_reach(t, op),
            kind if is_fd(kind) => self.channel_states(t, op),
            _ => 0,
        }
    }

    /// 1 + the owner of a mutex; 0 if anybody would get through.
    fn mutex_state(&self, m: ObjId) -> i64 {
        let mutex = &self.objects[m];
        if mutex.flags & (DESTROYED | NOT_RECOVERABLE) != 0 {
            return 0;
        }
        mutex.owner.wrapping_add(1) as i64
    }

    fn rw_state(&self, t: Tid, l: ObjId) -> RwState {
        let lock = &self.objects[l];
        RwState {
            owner: lock.owner.wrapping_add(1),
            readers: lock.count,
            announced: lock.value.max(0) as u32,
            prefers: lock.flags & PREFER_WRITER != 0,
            holds: self.read_holds(l).any(|(reader, _)| reader == t),
        }
    }

    fn sysv_state(&self, t: Tid, op: &Op) -> i64 {
        let thread = &self.threads[t];
        let ops = &thread.sembuf[..(thread.n_sembuf as usize).min(4)];
        if let [one] = ops {
            return self.sysv_value(op.obj, one.num as u32).value as i64;
        }
        let value = |num: u16| self.sysv_value(op.obj, num as u32).value as u64 & 0xffff;
        ops.iter().rev().fold(0u64, |packed, o| packed << 16 | value(o.num)) as i64
    }
}

/// Operations whose effects reach beyond the objects they name, or whose enabledness depends on what everybody else
/// does (a timeout fires when nothing else can run, a yield waits for somebody to move). A timed operation that does
/// not need its timeout is like one without.
pub fn reaches_everything(a: &Act) -> bool {
    matches!(
        a.op.kind,
        Kind::YIELD
            | Kind::EXIT
            | Kind::THREAD_EXIT
            | Kind::CANCEL
            | Kind::KILL
            | Kind::EXEC
            | Kind::FORK
            | Kind::TIMER
            // The word of the lock changes in the program's own code too, between operations of whatever kind.
            | Kind::FUTEX_LOCK_PI
            | Kind::FUTEX_PI_WAIT
            | Kind::FUTEX_UNLOCK_PI
    ) || a.op.kind == Kind::MQ_SEND && a.op.has(op::VARIANT)
        || a.op.signals & BY_CLOCK != 0
        || a.fate & (TIMED_OUT | GIVES_WAY) != 0
        || lock::fails_in_circle(a)
}

/// Whether the order of `a` and `b`, operations of different threads, can matter, for the state recorded in them.
/// With `conditional` false, whether it can matter in any state. Operations of one thread are always dependent.
pub fn dependent(a: &Act, b: &Act, conditional: bool) -> bool {
    dependent_after(a, Effects::ANY, b, Effects::ANY, conditional)
}

/// [`dependent`] of transitions of which is known what they did beyond their operations: one that does not end its thread
/// is nothing to those who wait for the end.
pub fn dependent_after(a: &Act, a_did: Effects, b: &Act, b_did: Effects, conditional: bool) -> bool {
    a.uid == b.uid
        || reaches_everything(a)
        || reaches_everything(b)
        || a_did.has(Effects::WIDE)
        || b_did.has(Effects::WIDE)
        || awaits(a, b, b_did)
        || awaits(b, a, a_did)
        || waits_with(a, b)
        || waits_with(b, a)
        || share_signals(a, b)
        || lock::moves_circles(&a.op, &b.op)
        || lock::moves_circles(&b.op, &a.op)
        || a.pid == b.pid && exit_meets_end(a_did, b_did)
        || meet_by_mask(a, b)
        || shares_object(a, b, conditional)
}

/// The operation of `performed` as it was in an earlier state, where it was recorded as `stood`, as far as that matters to
/// transitions made there. A deadline that could have fired then and did not is nothing to others; nor are channels that
/// an operation on descriptors reached then and did not when it was performed, nor the circle that a lock would have closed: what
/// changed that is on one of its objects itself, or moves circles.
pub fn as_it_stood(stood: &Act, performed: &Act) -> Act {
    let fate = stood.fate & !TIMED_OUT | performed.fate & TIMED_OUT;
    let mut op = stood.op;
    if is_fd(op.kind) && op.kind == performed.op.kind {
        (op.mask, op.flags) = (performed.op.mask, performed.op.flags);
    }
    let state =
        if op.kind == Kind::RECORD_LOCK && op.kind == performed.op.kind { performed.state } else { stood.state };
    Act { fate, op, state, ..*stood }
}

/// An operation that was expected in one form and came in another one: as it depends on all that either depends on.
pub fn either(came: &Act, expected: &Act) -> Act {
    if came.op.kind != expected.op.kind {
        return *came;
    }
    let fate = (came.fate | expected.fate) & !WOKEN | came.fate & expected.fate & WOKEN;
    let op = Op { signals: came.op.signals | expected.op.signals, ..came.op };
    let act = Act { fate, op, ..*came };
    Reach::of(came).zip(Reach::of(expected)).map_or(act, |(a, b)| a.with(b).put(&act))
}

/// Operations on descriptors, one of which concerns more channels than it names, or that wake the same epoll instance.
/// Two that only look commute.
fn meet_by_mask(a: &Act, b: &Act) -> bool {
    let wake = |x: &Op, y: &Op| moves(x.kind) && moves(y.kind) && x.has(REACHES) && y.has(REACHES);
    (by_mask(&a.op) && is_fd(b.op.kind) || by_mask(&b.op) && is_fd(a.op.kind) || wake(&a.op, &b.op))
        && a.op.mask & b.op.mask != 0
        && !(looks(&a.op) && looks(&b.op))
}

/// Whether `q`, which did `q_did` in a state before `s`, would do something else after it: its thread would be the last of
/// its process then, whose end is visible. Of two that end their threads the one that is the last depends on the other
/// by [`Effects::EXITS`]; what has been performed as the first only does not tell.
pub fn ends_otherwise(s: &Act, s_did: Effects, q: &Act, q_did: Effects) -> bool {
    // What makes the end visible may come from either.
    let visible = s_did.with(q_did).has(Effects::NEARLY_EXITS);
    s.pid == q.pid && s_did.has(Effects::LEAVES_ONE) && q_did.has(Effects::ENDS) && visible
}

/// The part of [`dependent_after`] that is about what `a` did beyond its operation.
pub fn dependent_by_effects(a: &Act, a_did: Effects, b: &Act, b_did: Effects) -> bool {
    a_did.has(Effects::WIDE) || awaits(b, a, a_did) || a.pid == b.pid && exit_meets_end(a_did, b_did)
}

/// Whether two composed transitions depend on each other in any state: the operations of `a`, by one thread, performed
/// without a switch in between, and those of `b`, by another (Stoller, TR 536, Section 7, (2) with the exception (4)): an
/// acquire and then the release of a lock, nothing else done to it in between, leave the lock as it was, so they make
/// nothing depend. In the paper's sense, which is that of sleep sets: while the lock is held elsewhere such a transition
/// cannot be taken, but where both orders can be, they lead to the same state. Each operation comes with what its
/// transition did beyond it.
pub fn dependent_composed(a: &[(Act, Effects)], b: &[(Act, Effects)]) -> bool {
    let excepted = |x: &Act, y: &Act| {
        let lock = x.op.obj == y.op.obj && x.uid != y.uid && only_locks(x) && only_locks(y);
        lock && (passes_through(a, x.op.obj) || passes_through(b, x.op.obj))
    };
    let depend = |(x, x_did): &(Act, Effects), (y, y_did): &(Act, Effects)| {
        dependent_by_effects(x, *x_did, y, *y_did)
            || dependent_by_effects(y, *y_did, x, *x_did)
            || dependent_after(x, Effects::NONE, y, Effects::NONE, false) && !excepted(x, y)
    };
    a.iter().any(|x| b.iter().any(|y| depend(x, y)))
}

fn only_locks(act: &Act) -> bool {
    let lock = matches!(act.op.kind, Kind::MUTEX_LOCK | Kind::MUTEX_UNLOCK | Kind::SPIN_LOCK | Kind::SPIN_UNLOCK);
    lock && !act.op.has(op::TRY | op::TIMED) && act.op.signals == 0
}

/// All that `acts` do to lock `o` is to acquire and then to release it.
fn passes_through(acts: &[(Act, Effects)], o: u32) -> bool {
    let mut on = acts.iter().map(|(act, _)| act).filter(|act| operands(&act.op).contains(&o));
    let (first, second) = (on.next(), on.next());
    let is = |act: Option<&Act>, kinds: [Kind; 2]| act.is_some_and(|a| only_locks(a) && kinds.contains(&a.op.kind));
    is(first, [Kind::MUTEX_LOCK, Kind::SPIN_LOCK])
        && is(second, [Kind::MUTEX_UNLOCK, Kind::SPIN_UNLOCK])
        && on.next().is_none()
}

/// `a` waits for the end of the thread or of the process of `b`: any transition of `b` may be the last. One that does not
/// block also sees that the end has not come yet.
fn awaits(a: &Act, b: &Act, b_did: Effects) -> bool {
    let concerns = match a.op.kind {
        Kind::JOIN => a.op.obj == b.tid,
        Kind::WAIT => {
            let target = WaitState::of(a.state).target;
            b.parent == a.pid && b.parent != NONE && (target == 0 || target == b.pid + 1)
        }
        _ => false,
    };
    concerns && (b_did.has(Effects::ENDS) || a.op.has(op::TRY) || a.fate & EXPIRED != 0)
}

/// Whether the end of a process is visible depends on which other threads it still has.
fn exit_meets_end(a: Effects, b: Effects) -> bool {
    a.has(Effects::EXITS) && b.has(Effects::ENDS) || b.has(Effects::EXITS) && a.has(Effects::ENDS)
}

/// Signals are pending for the process: who takes one rests on which threads there are, and on what they block, which is no
/// operation. That a signal is pending for one thread alone changes nothing for others.
pub(crate) fn share_signals(a: &Act, b: &Act) -> bool {
    a.pid == b.pid && (a.op.signals | b.op.signals) & SHARED_PENDING != 0
}

/// `a` waits for something that `b` may do or take away whatever its transition is.
fn waits_with(a: &Act, b: &Act) -> bool {
    match a.op.kind {
        Kind::JOIN => b.op.kind == Kind::JOIN && a.op.obj == b.op.obj,
        // Both wait for children of the same process. One that another thread creates is created visibly.
        Kind::WAIT => b.op.kind == Kind::WAIT && a.pid == b.pid,
        // The initializer may end with any transition of the thread that runs it.
        Kind::ONCE => b.fate & IN_ONCE != 0,
        // A removed set or queue frees its key.
        Kind::NAME => b.op.kind == Kind::SYSV_CTL && Ctl(b.op.arg as u8) == Ctl::REMOVE || removes_queue(&b.op),
        _ => false,
    }
}

/// The objects that an operation names, by index; [`NONE`] for no object.
pub fn operands(op: &Op) -> [u32; 2] {
    match op.kind {
        // Threads and processes, not objects; a toss names nothing.
        Kind::JOIN | Kind::WAIT | Kind::CANCEL | Kind::KILL | Kind::TOSS | Kind::SLEEP | Kind::TIMER => [NONE, NONE],
        Kind::SYSV_CTL => [op.obj, NONE],
        _ => [op.obj, op.obj2],
    }
}

fn shares_object(a: &Act, b: &Act, conditional: bool) -> bool {
    let theirs = operands(&b.op);
    operands(&a.op).into_iter().any(|o| o != NONE && theirs.contains(&o) && !commute_on(o, a, b, conditional))
}

/// Whether `a` and `b` commute as far as object `o`, which both name, is concerned.
fn commute_on(o: u32, a: &Act, b: &Act, conditional: bool) -> bool {
    match (class(o, a), class(o, b)) {
        (Class::CondWait | Class::Woken, Class::CondWait | Class::Woken) => true,
        // Two that wake everybody wake nobody twice.
        (Class::Wakes, Class::Wakes) => conditional && (broadcasts(a, b) || a.state == 0 && b.state == 0),
        // Figure 3: while the lock is owned the owner may acquire it again and all others fail or wait.
        (Class::Acquire, Class::Acquire) => conditional && a.state != 0 && b.state != 0,
        // Woken is woken, in every state from then on.
        (Class::Woken, Class::Wakes | Class::Moves) => a.fate & WOKEN != 0,
        (Class::Wakes | Class::Moves, Class::Woken) => b.fate & WOKEN != 0,
        (Class::Read | Class::ReadUnlock, Class::Read | Class::ReadUnlock) => true,
        (Class::Up, Class::Up) => a.state.max(b.state) < i32::MAX as i64 / 2,
        (Class::Up, Class::Down) | (Class::Down, Class::Up) => conditional && a.state.min(b.state) >= 1,
        (Class::Down, Class::Down) => conditional && a.state.min(b.state) >= 2,
        (Class::FileLock, Class::FileLock) => !lock::overlap(&a.op, &b.op) || both_test(a, b),
        (Class::File, Class::File) => file::commute(o, &a.op, &b.op),
        (Class::Sysv, Class::Sysv) => a.op.mask & b.op.mask == 0 || sysv_commute(a, b, conditional),
        _ => false,
    }
}

/// What an operation does to one of its objects, as far as commuting goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    CondWait,
    Woken,
    Acquire,
    Wakes,
    /// May wake, and does more.
    Moves,
    Read,
    ReadUnlock,
    Up,
    Down,
    Sysv,
    FileLock,
    File,
    Other,
}

pub(crate) fn class(o: u32, act: &Act) -> Class {
    let first = act.op.obj == o;
    match act.op.kind {
        Kind::COND_WAIT | Kind::FUTEX_WAIT if first => Class::CondWait,
        Kind::COND_WAKE | Kind::BARRIER_WAKE if act.op.has(op::RESUMED) => Class::Other,
        Kind::COND_WAKE | Kind::FUTEX_SLEEP | Kind::BARRIER_WAKE if first => Class::Woken,
        Kind::MUTEX_LOCK | Kind::SPIN_LOCK => Class::Acquire,
        Kind::COND_SIGNAL | Kind::COND_BROADCAST | Kind::FUTEX_WAKE => Class::Wakes,
        Kind::FUTEX_REQUEUE | Kind::FUTEX_WAKE_OP | Kind::BARRIER_WAIT => Class::Moves,
        Kind::RW_RDLOCK => Class::Read,
        Kind::RW_UNLOCK if releases_read(act) => Class::ReadUnlock,
        Kind::SEM_POST => Class::Up,
        Kind::SEM_WAIT => Class::Down,
        Kind::SYSV_OP => Class::Sysv,
        kind if lock::is_lock(kind) => Class::FileLock,
        kind if file::is_file(kind) => Class::File,
        Kind::MSG_CTL if Ctl(act.op.arg as u8) == Ctl::ACCESS => Class::Read,
        _ => Class::Other,
    }
}

fn both_test(a: &Act, b: &Act) -> bool {
    a.op.kind == Kind::RECORD_TEST && b.op.kind == Kind::RECORD_TEST
}

fn broadcasts(a: &Act, b: &Act) -> bool {
    a.op.kind == Kind::COND_BROADCAST && b.op.kind == Kind::COND_BROADCAST
}

/// Two semops on overlapping semaphores: single increments and decrements by value, as for POSIX semaphores; `arg`
/// is the amount of a single operation, 0 for a wait for zero or several operations.
fn sysv_commute(a: &Act, b: &Act, conditional: bool) -> bool {
    let (x, y) = (a.op.arg, b.op.arg);
    if x == 0 || y == 0 || (a.op.flags | b.op.flags) & (op::VARIANT | op::SEVERAL) != 0 {
        return false;
    }
    let value = a.state.min(b.state);
    match (x > 0, y > 0) {
        (true, true) => a.state.max(b.state) + x + y < SEMVMX as i64 / 2,
        (false, false) => conditional && value >= -x - y,
        (true, false) => conditional && value >= -y && value + x <= SEMVMX as i64,
        (false, true) => conditional && value >= -x && value + y <= SEMVMX as i64,
    }
}

/// A semop that commutes with others that add a little, whatever comes between.
pub(crate) fn adds_little(a: &Act) -> bool {
    let little = SEMVMX as i64 / 8;
    a.op.arg > 0 && a.op.arg < little && a.state < little && a.op.flags & (op::VARIANT | op::SEVERAL) == 0
}

/// False if there is no state in which both `a` and `b` are enabled and their order matters: so that a race between
/// them, one executed, the other pending then, cannot be reversed. When in doubt, true.
pub fn may_be_coenabled(a: &Act, b: &Act) -> bool {
    !(excludes(a, b) || excludes(b, a))
}

fn excludes(a: &Act, b: &Act) -> bool {
    if a.op.has(op::TRY) || a.fate & LETS_GO != 0 || a.op.signals != 0 {
        return false;
    }
    let same = a.op.obj == b.op.obj;
    match a.op.kind {
        Kind::COND_WAKE | Kind::BARRIER_WAKE if a.op.has(op::RESUMED) => false,
        Kind::JOIN => a.op.obj == b.tid && b.op.kind != Kind::JOIN && b.op.kind != Kind::CANCEL,
        Kind::WAIT => WaitState::of(a.state).target == b.pid + 1 && b.parent == a.pid && b.op.kind != Kind::CANCEL,
        Kind::ONCE => a.state == b.tid as i64 + 1 && b.op.kind != Kind::CANCEL && !(b.op.kind == Kind::ONCE && same),
        Kind::MUTEX_LOCK => releases(b, a.op.obj),
        Kind::SPIN_LOCK => b.op.kind == Kind::SPIN_UNLOCK && same && owns(b),
        // Before the wake-up it is not enabled, after it the two commute.
        Kind::COND_WAKE => releases(b, a.op.obj2) || wakes(b, a.op.obj) && b.op.obj2 == NONE,
        Kind::FUTEX_SLEEP => wakes(b, a.op.obj),
        Kind::BARRIER_WAKE => b.op.kind == Kind::BARRIER_WAIT && same,
        Kind::RW_RDLOCK => b.op.kind == Kind::RW_UNLOCK && same && owns(b),
        Kind::RW_WRLOCK => releases_rw(b) && same && !RwState::of(a.state).prefers,
        Kind::RW_WRWAIT => releases_rw(b) && same,
        _ => false,
    }
}

/// The thread owns the lock that the operation is on.
fn owns(a: &Act) -> bool {
    let owner = match a.op.kind {
        Kind::RW_UNLOCK => i64::from(RwState::of(a.state).owner),
        _ => a.state,
    };
    owner == a.tid as i64 + 1
}

/// `a` gives back a read hold.
pub(crate) fn releases_read(a: &Act) -> bool {
    a.op.kind == Kind::RW_UNLOCK && !owns(a) && RwState::of(a.state).holds
}

/// `a` releases a lock, by its operation or as the first part of a wait, and its thread holds it.
pub fn releases_held(a: &Act) -> bool {
    match a.op.kind {
        Kind::MUTEX_UNLOCK | Kind::SPIN_UNLOCK | Kind::COND_WAIT => owns(a),
        _ => releases_rw(a),
    }
}

/// `a` gives back a hold of a rwlock.
fn releases_rw(a: &Act) -> bool {
    a.op.kind == Kind::RW_UNLOCK && (owns(a) || RwState::of(a.state).holds)
}

/// `b` releases mutex `m`, which its thread owns.
fn releases(b: &Act, m: u32) -> bool {
    match b.op.kind {
        Kind::MUTEX_UNLOCK => b.op.obj == m && owns(b),
        Kind::COND_WAIT => b.op.obj2 == m && owns(b),
        _ => false,
    }
}

/// `b` gives wake-ups to those that wait on `obj`.
fn wakes(b: &Act, obj: u32) -> bool {
    match b.op.kind {
        Kind::COND_SIGNAL | Kind::COND_BROADCAST | Kind::FUTEX_WAKE => b.op.obj == obj,
        Kind::FUTEX_REQUEUE | Kind::FUTEX_WAKE_OP => b.op.obj == obj || b.op.obj2 == obj,
        _ => false,
    }
}
