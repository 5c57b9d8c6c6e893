//! Signals that answer what their receivers have done.
//!
//! NOTE [Return] A signal that another thread sends reaches its receiver between any two instructions, so also after a call of the kernel
//! has done what it does and before the code that comes after it runs. Whether it comes there or with the next operation only that code
//! can tell, and what of it comes before the next operation is no transition. Where the sender could have sent it before the call as well,
//! the handler runs with the end of the call already, since a signal that is pending then is delivered there. What is left is a signal
//! that is sent because of the call, or after something that happened because of it: it answers the call. What happened because of what is told
//! when an execution is over, by what its steps depend on (`vsrun::search::answered`), so that it is the same for all executions of a trace. Where such a signal has been seen,
//! the end of calls of that kind by that thread is an operation of its own from the next execution on ([`Kind::RETURN`]): the search starts
//! over, as it does for objects that are found to be shared (see `sched::sharing`). So is a change of the mask after it: what has come meanwhile
//! is handled there, and a thread that changes its mask takes what is pending for the process, whoever was chosen for it
//! (kernel/signal.c, recalc_sigpending).

use super::row::*;
use crate::state::{bit, SignalSent, CANCEL_ANYWHERE, CANCEL_DISABLED};

/// By which glibc ends a thread that heeds requests anywhere (nptl/pthread_cancel.c).
pub(super) const SIGCANCEL: i32 = 32;
/// Signals that glibc keeps to itself: SIGCANCEL, SIGSETXID. They are part of the calls that send them.
const OF_GLIBC: u64 = bit(SIGCANCEL) | bit(33);

impl Kind {
    /// It enables nobody to do anything, so that nothing answers it.
    pub fn only_looks(self) -> bool {
        matches!(
            self,
            Kind::NONE
                | Kind::PLACE
                | Kind::RETURN
                | Kind::GETPPID
                | Kind::YIELD
                | Kind::SLEEP
                | Kind::JOIN
                | Kind::FD_LOOK
                | Kind::TOSS
        )
    }
}

/// That a thread begins, which signals may answer as what it does: no operation.
pub const STARTS: Kind = Kind(255);

/// Number of the call rt_sigprocmask.
const MASK_CALL: i64 = 14;

impl Op {
    /// It may tell its thread what others have done, or waits for that.
    pub fn hears(&self) -> bool {
        let masks = self.kind == Kind::PLACE && self.arg == MASK_CALL;
        !masks && !matches!(self.kind, Kind::RETURN | Kind::TOSS | Kind::END)
    }
}

impl World {
    /// A signal is sent to process `p`, or to its thread `t`, by the thread that moves: it is noted, since it may answer what these have done.
    pub(crate) fn note_sent(&mut self, p: Pid, t: Tid, signal: i32) {
        if !self.concurrent || !self.would_handle(p, t, signal) {
            return;
        }
        let starting = if t == NONE { self.starting_receiver(p, signal) } else { NONE };
        let sent = SignalSent { at: self.moves, pid: p, tid: t, starting, pad: 0 };
        let mut of_this = self.sent.as_slice().iter().rev().take_while(|before| before.at == sent.at);
        if !of_this.any(|before| *before == sent) && self.sent.push(sent).is_none() {
            self.sent_lost = true;
        }
    }

    /// The thread of `p` that takes `signal`, if it has done nothing yet and another one would take it otherwise: who just begins has all
    /// signals blocked (glibc's pthread_create), and whether it still has is to be told.
    fn starting_receiver(&self, p: Pid, signal: i32) -> Tid {
        let u = self.receiver(p, signal);
        let begins = |thread: &Thread| thread.transitions == 0 && u != self.procs[p].main_thread;
        let other = |&&v: &&Tid| v != u && self.threads[v].pid == p && self.threads[v].sigmask & bit(signal) == 0;
        let decides = self.threads.get(u).is_some_and(begins) && self.live.as_slice().iter().find(other).is_some();
        if decides {
            u
        } else {
            NONE
        }
    }

    /// Process `p` has a handler for `signal`, which is the program's, or it is a request to end that its thread `t` heeds anywhere.
    fn would_handle(&self, p: Pid, t: Tid, signal: i32) -> bool {
        let anywhere = |t: &Thread| t.cancel & (CANCEL_ANYWHERE | CANCEL_DISABLED) == CANCEL_ANYWHERE;
        let ends = signal == SIGCANCEL && self.threads.get(t).is_some_and(anywhere);
        self.handled_by_program(p) & bit(signal) != 0 || ends
    }

    /// Signals that `t` takes when it has changed its mask, or has come to the end of a handler: also those for its process for which
    /// another thread was chosen (kernel/signal.c, recalc_sigpending and dequeue_signal).
    pub fn due_to_who_looks(&self, t: Tid) -> u64 {
        let Thread { sigpending, sigmask, pid, .. } = self.threads[t];
        (sigpending | self.procs[pid].sigpending) & !sigmask
    }

    /// The signals for which process `p` has handlers of the program's.
    #[inline]
    pub fn handled_by_program(&self, p: Pid) -> u64 {
        self.procs[p].handled & !OF_GLIBC
    }

    /// Of the signals that timers may send `t` or its process now, those that `t` does not block, nor libc handles: a handler of the program runs then, or
    /// they end or stop it.
    #[inline]
    pub fn timers_act_on(&self, t: Tid) -> u64 {
        self.timer_signals(t) & !(self.threads[t].sigmask | OF_GLIBC)
    }

    /// The signals that timers may send `t` or its process now.
    #[inline]
    pub fn timer_signals(&self, t: Tid) -> u64 {
        if self.timers.len == 0 {
            return 0;
        }
        self.armed_signals(t, true) | self.armed_signals(t, false)
    }
}
