//! Faults of the environment that the user asks to be explored (`--inject`): each place where one could strike is a toss. Another toss of the
//! environment's, which nobody asks for: whether the allocator gives freed blocks out again.

use crate::base::{Kind, Op, VARIANT};

/// Faults are bits. This one: a read or write of a pipe or stream socket moves half of what it was to move.
pub const SHORT_IO: u32 = 1;

/// A call that waits is interrupted, as by a handler that does nothing and was installed without SA_RESTART: those of signal(7) where an
/// operation of the model waits (reads, writes and their like on pipes, sockets, counters; accept, poll, select, epoll_wait, mq_send,
/// mq_receive, msgsnd, msgrcv, semop, wait and its like, F_SETLKW, flock, sem_wait, sigwaitinfo), and sleeps. Not what would not have to wait at
/// that moment. Not pause and sigsuspend, which do nothing but wait for a handler.
pub const EINTR: u32 = 2;

/// A read or write of a non-blocking descriptor would have to wait.
pub const EAGAIN: u32 = 4;

/// No memory, no process, no thread: malloc and its like, mmap, mremap, fork, pthread_create.
pub const ENOMEM: u32 = 8;

/// A wait on a condition variable or futex ends though nobody has woken it.
pub const SPURIOUS: u32 = 16;

/// A TCP connection is reset before it is used.
pub const RESET: u32 = 32;

/// Names of the faults on the command line, with their bits.
pub const NAMES: [(&str, u32); 6] = [
    ("short-io", SHORT_IO),
    ("eintr", EINTR),
    ("eagain", EAGAIN),
    ("enomem", ENOMEM),
    ("spurious", SPURIOUS),
    ("reset", RESET),
];

/// Faults that one thread meets at most in an execution: a loop that tries again comes to an end.
pub const MOST: u8 = 2;

/// The operation that decides whether a fault strikes: a toss whose alternative 1 is the fault.
pub fn toss(fault: u32) -> Op {
    let mut op = Op::new(Kind::TOSS).arg(1).with(VARIANT);
    op.mask = fault;
    op
}

/// Not a fault: whether blocks of the heap that are freed are given out again at once, in this execution.
const REUSES: u32 = 1 << 31;

/// The operation that decides that, as a toss.
pub fn toss_of_reuse() -> Op {
    let mut op = Op::new(Kind::TOSS).arg(1).with(VARIANT);
    op.mask = REUSES;
    op
}

/// The operation decides about that.
pub fn is_of_reuse(op: &Op) -> bool {
    op.kind == Kind::TOSS && op.has(VARIANT) && op.mask == REUSES
}

/// The name of the fault that a toss decides about, if it is one of these.
pub fn fault_of(op: &Op) -> Option<&'static str> {
    (op.kind == Kind::TOSS && op.has(VARIANT)).then_some(())?;
    NAMES.iter().find(|(_, bit)| *bit == op.mask).map(|(name, _)| *name)
}
