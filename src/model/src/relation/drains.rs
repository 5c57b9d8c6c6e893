//! What an operation is natively, in glibc and the kernel, to stores of its thread that others may not see yet: x86 lets a plain load come
//! before them (Sewell, Sarkar, Owens, Nardelli, Myreen: x86-TSO, CACM 2010). A locked instruction lets none, and each lock of the kernel's is
//! taken by one. What is not known here counts as a load. docs/TSO.md says what follows from it.

use crate::base::{Kind, NONE, TIMED, TRY};
use crate::objects::mutex::owns;
use crate::objects::rwlock::holds;
use crate::state::Act;

/// What an operation is to stores of its thread that are under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Drains {
    /// All of them are visible before it looks at anything: it executes a locked instruction, here or in the kernel, whatever its outcome.
    First,
    /// It may load what others write before these stores are visible.
    Looks,
    /// It is a plain store itself, which becomes visible after them.
    Stores,
    /// It acquires its object for the first time, by a locked instruction: until it is acquired once more, releasing it is `First`.
    Acquires,
    /// It is owned already, and acquired again, or not: plain accesses to what is the owner's alone. It cannot be told from then on
    /// which release is the last.
    Again,
    /// It gives its object back, by a locked instruction if it is the last of its releases.
    Releases,
    /// Nothing: it neither looks at what others write nor waits for the stores.
    Nothing,
}

impl Drains {
    /// Of an operation that is no use of memory which is an object.
    pub fn of(act: &Act) -> Drains {
        let op = &act.op;
        let tries = op.has(TRY | TIMED);
        match op.kind {
            Kind::MUTEX_LOCK | Kind::STREAM_LOCK if owns(act) => Drains::Again,
            Kind::MUTEX_LOCK | Kind::STREAM_LOCK => Drains::Acquires,
            Kind::MUTEX_UNLOCK | Kind::STREAM_UNLOCK if owns(act) => Drains::Releases,
            // One who may not is told so.
            Kind::MUTEX_UNLOCK | Kind::STREAM_UNLOCK => Drains::Nothing,
            // xchg, also where it fails.
            Kind::SPIN_LOCK => Drains::First,
            // mov.
            Kind::SPIN_UNLOCK | Kind::SET_UP => Drains::Stores,
            // An attempt looks first; one who holds it is told so.
            Kind::RW_RDLOCK | Kind::RW_WRLOCK if !tries && !holds(act) => Drains::First,
            Kind::RW_UNLOCK if holds(act) => Drains::First,
            Kind::SEM_WAIT if !tries => Drains::First,
            Kind::SEM_POST | Kind::BARRIER_WAIT => Drains::First,
            Kind::COND_WAIT | Kind::COND_WAKE | Kind::COND_LATE => Drains::First,
            Kind::BARRIER_WAKE => Drains::Nothing,
            // It looks until the thread is over; what it finds then changes no more, so it may as well have looked later.
            Kind::JOIN if !tries => Drains::Nothing,
            // The lock of a run queue, of a timer, of the children, of the signals, of a bucket: before anything is looked at.
            Kind::YIELD | Kind::SLEEP | Kind::WAIT | Kind::WAIT_SLEEP | Kind::SIGSUSPEND | Kind::SIGWAIT => {
                Drains::First
            }
            Kind::FORK | Kind::EXEC => Drains::First,
            Kind::FUTEX_WAIT | Kind::FUTEX_SLEEP | Kind::FUTEX_WAKE | Kind::FUTEX_REQUEUE | Kind::FUTEX_WAKE_OP => {
                Drains::First
            }
            Kind::FUTEX_LOCK_PI | Kind::FUTEX_UNLOCK_PI | Kind::FUTEX_WAITV => Drains::First,
            // The lock of a pipe, a socket, a queue, a set: where there is one.
            Kind::FD_READ
            | Kind::FD_WRITE
            | Kind::FD_ACCEPT
            | Kind::FD_SEND
            | Kind::SYSV_OP
            | Kind::MSG_SEND
            | Kind::MSG_RECEIVE
            | Kind::MQ_SEND
            | Kind::MQ_RECEIVE
                if op.obj != NONE =>
            {
                Drains::First
            }
            Kind::NONE
            | Kind::TOSS
            | Kind::PLACE
            | Kind::RETURN
            | Kind::END
            | Kind::EXIT
            | Kind::THREAD_EXIT
            | Kind::STOPPED
            | Kind::TIMER => Drains::Nothing,
            _ => Drains::Looks,
        }
    }
}
