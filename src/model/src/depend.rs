//! Dependency between operations, conditional on recorded state (Stoller, TR 536, Section 7 and Figure 3).
//!
//! Two operations are independent in a state if neither enables or disables the other and their order does not
//! matter. `dependent` may say "dependent" too often, never too seldom.

use crate::object::{ObjKind, NONE, PREFER_WRITER};
use crate::op::{self, Kind, Op};
use crate::sysv::{Ctl, SEMVMX};
use crate::thread::Uid;
use crate::world::World;
use crate::{Pid, Tid};

/// An operation of a thread, with what its dependencies are conditional on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Act {
    /// The thread's name.
    pub uid: Uid,
    /// The thread.
    pub tid: Tid,
    /// Its process.
    pub pid: Pid,
    /// The parent of its process, or [`NONE`].
    pub parent: Pid,
    /// Kind of `op.obj`, where that is an object.
    pub obj_kind: ObjKind,
    /// [`TIMED_OUT`], [`EXPIRED`], [`CANCELLED`].
    pub fate: u8,
    pad: [u8; 2],
    /// The operation.
    pub op: Op,
    /// The object's recorded state: value of a semaphore, number of waiters, 1 if the thread owns the lock (of an acquire:
    /// if anybody owns it), 1 + the thread that runs a once control, 1 + the process that is waited for.
    pub state: i64,
}

/// Bit of [`Act::fate`]: the deadline may fire now and nothing else lets the operation go on.
pub const TIMED_OUT: u8 = 1;
/// Bit of [`Act::fate`]: the deadline has passed, so that the operation does not block, whatever becomes of its object.
pub const EXPIRED: u8 = 4;
/// Bit of [`Act::fate`]: the thread is asked to end and this is a point at which it does.
pub const CANCELLED: u8 = 2;

/// [`Act::state`] of a rwlock release by a thread that does not hold the lock.
const NO_HOLD: i64 = 2;

impl World {
    /// The pending operation of `t` with the state it is conditional on.
    pub fn act(&self, t: Tid) -> Act {
        let thread = &self.threads[t];
        let op = thread.pending;
        Act {
            uid: thread.uid,
            tid: t,
            pid: thread.pid,
            parent: self.parent_of(thread.pid),
            obj_kind: self.obj_kind(&op),
            fate: self.fate(t, &op),
            pad: [0; 2],
            op,
            state: self.recorded_state(t, &op),
        }
    }

    fn obj_kind(&self, op: &Op) -> ObjKind {
        match op.kind {
            Kind::JOIN | Kind::CANCEL | Kind::KILL | Kind::WAIT => ObjKind::default(),
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
        if self.cancelled(t, op) {
            fate |= CANCELLED;
        }
        fate
    }

    fn recorded_state(&self, t: Tid, op: &Op) -> i64 {
        match op.kind {
            Kind::SEM_WAIT | Kind::SEM_POST | Kind::SEM_GET => self.objects[op.obj].value as i64,
            Kind::SYSV_OP if self.threads[t].n_sembuf == 1 => {
                self.sysv_value(op.obj, self.threads[t].sembuf[0].num as u32).value as i64
            }
            Kind::COND_SIGNAL | Kind::COND_BROADCAST | Kind::FUTEX_WAKE => self.objects[op.obj].n_waiters as i64,
            Kind::COND_WAKE | Kind::FUTEX_SLEEP | Kind::BARRIER_WAKE => i64::from(self.threads[t].woken),
            Kind::MUTEX_UNLOCK | Kind::SPIN_UNLOCK => i64::from(self.objects[op.obj].owner == t),
            Kind::COND_WAIT => i64::from(self.objects[op.obj2].owner == t),
            Kind::MUTEX_LOCK | Kind::SPIN_LOCK => i64::from(self.objects[op.obj].owner != NONE),
            Kind::RW_UNLOCK if self.objects[op.obj].owner == t => 1,
            Kind::RW_UNLOCK if !self.read_holds(op.obj).any(|(reader, _)| reader == t) => NO_HOLD,
            Kind::RW_WRLOCK => i64::from(self.objects[op.obj].flags & PREFER_WRITER != 0),
            Kind::ONCE => self.objects[op.obj].owner.wrapping_add(1) as i64,
            Kind::WAIT if op.arg > 0 => self.process_by_vpid(op.arg as i32).map_or(0, |p| p as i64 + 1),
            _ => 0,
        }
    }
}

/// Operations whose effects reach beyond the objects they name, or whose enabledness depends on what everybody else
/// does (a timeout fires when nothing else can run, a yield waits for somebody to move). A timed operation that does
/// not need its timeout is like one without.
fn reaches_everything(a: &Act) -> bool {
    matches!(
        a.op.kind,
        Kind::YIELD | Kind::EXIT | Kind::THREAD_EXIT | Kind::CANCEL | Kind::KILL | Kind::EXEC | Kind::FORK
    ) || a.fate & TIMED_OUT != 0
}

/// Whether the order of `a` and `b`, operations of different threads, can matter, for the state recorded in them.
/// With `conditional` false, whether it can matter in any state. Operations of one thread are always dependent.
pub fn dependent(a: &Act, b: &Act, conditional: bool) -> bool {
    dependent_if(a, true, b, true, conditional)
}

/// [`dependent`] of transitions of which is known whether they end their threads (`a_ends`, `b_ends`): one that does
/// not is nothing to those who wait for the end.
pub fn dependent_if(a: &Act, a_ends: bool, b: &Act, b_ends: bool, conditional: bool) -> bool {
    a.uid == b.uid
        || reaches_everything(a)
        || reaches_everything(b)
        || b_ends && awaits(a, b)
        || a_ends && awaits(b, a)
        || waits_with(a, b)
        || waits_with(b, a)
        || shares_object(a, b, conditional)
}

/// Whether two composed transitions depend on each other in any state: the operations of `a`, by one thread, performed
/// without a switch in between, and those of `b`, by another (Stoller, TR 536, Section 7, (2) with the exception (4)): an
/// acquire and then the release of a lock, nothing else done to it in between, leave the lock as it was, so they make
/// nothing depend. In the paper's sense, which is that of sleep sets: while the lock is held elsewhere such a transition
/// cannot be taken, but where both orders can be, they lead to the same state.
pub fn dependent_composed(a: &[Act], b: &[Act]) -> bool {
    let excepted = |x: &Act, y: &Act| {
        let lock = x.op.obj == y.op.obj && x.uid != y.uid && only_locks(x) && only_locks(y);
        lock && (passes_through(a, x.op.obj) || passes_through(b, x.op.obj))
    };
    a.iter().any(|x| b.iter().any(|y| dependent(x, y, false) && !excepted(x, y)))
}

fn only_locks(act: &Act) -> bool {
    let lock = matches!(act.op.kind, Kind::MUTEX_LOCK | Kind::MUTEX_UNLOCK | Kind::SPIN_LOCK | Kind::SPIN_UNLOCK);
    lock && !act.op.has(op::TRY | op::TIMED)
}

/// All that `acts` do to lock `o` is to acquire and then to release it.
fn passes_through(acts: &[Act], o: u32) -> bool {
    let mut on = acts.iter().filter(|act| operands(&act.op).contains(&o));
    let (first, second) = (on.next(), on.next());
    let is = |act: Option<&Act>, kinds: [Kind; 2]| act.is_some_and(|a| only_locks(a) && kinds.contains(&a.op.kind));
    is(first, [Kind::MUTEX_LOCK, Kind::SPIN_LOCK])
        && is(second, [Kind::MUTEX_UNLOCK, Kind::SPIN_UNLOCK])
        && on.next().is_none()
}

/// `a` waits for the end of the thread or of the process of `b`: any transition of `b` may be the last.
fn awaits(a: &Act, b: &Act) -> bool {
    match a.op.kind {
        Kind::JOIN => a.op.obj == b.tid,
        Kind::WAIT => b.parent == a.pid && b.parent != NONE && (a.state == 0 || a.state == b.pid as i64 + 1),
        _ => false,
    }
}

/// `a` waits for something that `b` may do or take away whatever its transition is.
fn waits_with(a: &Act, b: &Act) -> bool {
    match a.op.kind {
        Kind::JOIN => b.op.kind == Kind::JOIN && (a.op.obj == b.op.obj || a.op.obj == b.tid),
        // Another thread of the process may create the child that is waited for, or wait for it too.
        Kind::WAIT => a.pid == b.pid,
        // The initializer may end with any transition of the thread that runs it.
        Kind::ONCE => a.state == b.tid as i64 + 1,
        // A removed set frees its key.
        Kind::NAME => b.op.kind == Kind::SYSV_CTL && Ctl(b.op.arg as u8) == Ctl::REMOVE,
        _ => false,
    }
}

/// The objects that an operation names, by index; [`NONE`] for no object.
pub fn operands(op: &Op) -> [u32; 2] {
    match op.kind {
        // Threads and processes, not objects; a toss names nothing.
        Kind::JOIN | Kind::WAIT | Kind::CANCEL | Kind::KILL | Kind::TOSS | Kind::SLEEP => [NONE, NONE],
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
        (Class::Wakes, Class::Wakes) => broadcasts(a, b) || conditional && a.state == 0 && b.state == 0,
        // Figure 3: while the lock is owned the owner may acquire it again and all others fail or wait.
        (Class::Acquire, Class::Acquire) => conditional && a.state == 1 && b.state == 1,
        // Woken is woken, in every state from then on.
        (Class::Woken, Class::Wakes | Class::Moves) => a.state == 1,
        (Class::Wakes | Class::Moves, Class::Woken) => b.state == 1,
        (Class::Read | Class::ReadUnlock, Class::Read | Class::ReadUnlock) => true,
        (Class::Up, Class::Up) => a.state.max(b.state) < i32::MAX as i64 / 2,
        (Class::Up, Class::Down) | (Class::Down, Class::Up) => conditional && a.state.min(b.state) >= 1,
        (Class::Down, Class::Down) => conditional && a.state.min(b.state) >= 2,
        (Class::Sysv, Class::Sysv) => a.op.mask & b.op.mask == 0 || sysv_commute(a, b, conditional),
        _ => false,
    }
}

/// What an operation does to one of its objects, as far as commuting goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
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
    Other,
}

fn class(o: u32, act: &Act) -> Class {
    let first = act.op.obj == o;
    match act.op.kind {
        Kind::COND_WAIT | Kind::FUTEX_WAIT if first => Class::CondWait,
        Kind::COND_WAKE | Kind::FUTEX_SLEEP | Kind::BARRIER_WAKE if first => Class::Woken,
        Kind::MUTEX_LOCK | Kind::SPIN_LOCK => Class::Acquire,
        Kind::COND_SIGNAL | Kind::COND_BROADCAST | Kind::FUTEX_WAKE => Class::Wakes,
        Kind::FUTEX_REQUEUE | Kind::BARRIER_WAIT => Class::Moves,
        Kind::RW_RDLOCK => Class::Read,
        Kind::RW_UNLOCK if act.state == 0 => Class::ReadUnlock,
        Kind::SEM_POST => Class::Up,
        Kind::SEM_WAIT => Class::Down,
        Kind::SYSV_OP => Class::Sysv,
        _ => Class::Other,
    }
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

/// False if there is no state in which both `a` and `b` are enabled and their order matters: so that a race between
/// them, one executed, the other pending then, cannot be reversed. When in doubt, true.
pub fn may_be_coenabled(a: &Act, b: &Act) -> bool {
    !(excludes(a, b) || excludes(b, a))
}

fn excludes(a: &Act, b: &Act) -> bool {
    if a.op.has(op::TRY) || a.fate != 0 {
        return false;
    }
    let same = a.op.obj == b.op.obj;
    match a.op.kind {
        Kind::JOIN => a.op.obj == b.tid && b.op.kind != Kind::JOIN && b.op.kind != Kind::CANCEL,
        Kind::WAIT => a.state == b.pid as i64 + 1 && b.parent == a.pid && b.op.kind != Kind::CANCEL,
        Kind::ONCE => a.state == b.tid as i64 + 1 && b.op.kind != Kind::CANCEL && !(b.op.kind == Kind::ONCE && same),
        Kind::MUTEX_LOCK => releases(b, a.op.obj),
        Kind::SPIN_LOCK => b.op.kind == Kind::SPIN_UNLOCK && same && b.state == 1,
        // Before the wake-up it is not enabled, after it the two commute.
        Kind::COND_WAKE => releases(b, a.op.obj2) || wakes(b, a.op.obj) && b.op.obj2 == NONE,
        Kind::FUTEX_SLEEP => wakes(b, a.op.obj),
        Kind::BARRIER_WAKE => b.op.kind == Kind::BARRIER_WAIT && same,
        Kind::RW_RDLOCK => b.op.kind == Kind::RW_UNLOCK && same && b.state == 1,
        Kind::RW_WRLOCK => b.op.kind == Kind::RW_UNLOCK && same && b.state != NO_HOLD && a.state == 0,
        Kind::RW_WRWAIT => b.op.kind == Kind::RW_UNLOCK && same && b.state != NO_HOLD,
        _ => false,
    }
}

/// `b` releases mutex `m`, which its thread owns.
fn releases(b: &Act, m: u32) -> bool {
    match b.op.kind {
        Kind::MUTEX_UNLOCK => b.op.obj == m && b.state == 1,
        Kind::COND_WAIT => b.op.obj2 == m && b.state == 1,
        _ => false,
    }
}

/// `b` gives wake-ups to those that wait on `obj`.
fn wakes(b: &Act, obj: u32) -> bool {
    match b.op.kind {
        Kind::COND_SIGNAL | Kind::COND_BROADCAST | Kind::FUTEX_WAKE => b.op.obj == obj,
        Kind::FUTEX_REQUEUE => b.op.obj == obj || b.op.obj2 == obj,
        _ => false,
    }
}
