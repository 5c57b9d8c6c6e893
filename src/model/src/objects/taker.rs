//! Whom a signal is for: what sending one does, and which thread takes it, see NOTE [Delivery] in `signal`.

use super::parent::SIGCHLD;
use super::row::*;
use super::signal::{CORE, IGNORED, SIGKILL};
use super::stop::{SIGSTOP, STOPS};
use crate::state::{bit, Disposal, ThreadState};

/// Thread at `op` waits for `signal` with sigwait.
fn waits_for(op: &Op, state: ThreadState, signal: i32) -> bool {
    op.kind.row().signals.taken == Taken::Waits && state == ThreadState::PARKED && op.arg as u64 & bit(signal) != 0
}

impl World {
    /// What sending `signal` to process `p` (or to its thread `t`) does, by the kernel's rules: what is ignored is dropped
    /// unless it is blocked, what is fatal acts at once if some thread does not block it.
    pub fn disposal(&self, p: Pid, t: Tid, signal: i32) -> Disposal {
        self.disposal_as(p, t, if t == NONE { self.procs[p].main_thread } else { t }, signal)
    }

    /// The same; for a process it is sent in the name of its thread `asked`.
    pub(crate) fn disposal_as(&self, p: Pid, t: Tid, asked: Tid, signal: i32) -> Disposal {
        let process = &self.procs[p];
        // What one waits for with sigwait counts as blocked here (kernel/signal.c, sig_ignored: real_blocked).
        let waits = |a: &Thread| a.pending.kind.row().signals.taken == Taken::Waits && a.sigmask & bit(signal) != 0;
        let blocked = self.threads.get(asked).is_some_and(|a| a.alive() && (self.wants_not(asked, signal) || waits(a)));
        let wanted = if t == NONE { self.receiver(p, signal) != NONE } else { !blocked };
        if signal == SIGKILL {
            return Disposal::Kills;
        }
        if signal == SIGSTOP {
            return Disposal::Stops;
        }
        let handled = process.handled & bit(signal) != 0;
        let ignored = process.ignored & bit(signal) != 0 || !handled && IGNORED & bit(signal) != 0;
        match () {
            () if ignored && !blocked => Disposal::Ignored,
            () if handled || ignored || !wanted || self.awaited(p, signal) => Disposal::Pending,
            // Nobody takes it before SIGCONT (wants_signal). Who need not have got as far as to stop may be ended by it.
            () if process.stopped != 0 && !process.struck => Disposal::Pending,
            () if STOPS & bit(signal) != 0 => Disposal::Stops,
            () => Disposal::Kills,
        }
    }

    /// The thread that would take it waits for it with sigwait: then it is not acted upon.
    fn awaited(&self, p: Pid, signal: i32) -> bool {
        let t = self.receiver(p, signal);
        // It counts as blocked for who waits only where it was before (kernel/signal.c, complete_signal: real_blocked). One with a core dump does
        // nothing before a thread takes it.
        let blocks = |thread: &Thread| (thread.sigmask | CORE) & bit(signal) != 0;
        self.threads.get(t).is_some_and(|thread| blocks(thread) && waits_for(&thread.pending, thread.state, signal))
    }

    pub(super) fn wants_not(&self, t: Tid, signal: i32) -> bool {
        let thread = &self.threads[t];
        let parked = thread.state == ThreadState::PARKED;
        let mask = if parked { self.mask_within(t, &thread.pending) } else { thread.sigmask };
        mask & bit(signal) != 0
    }

    /// The thread of `p` that takes a signal for the process now, or [`NONE`].
    pub fn receiver(&self, p: Pid, signal: i32) -> Tid {
        self.receiver_among(p, signal, |t| !self.wants_not(t, signal))
    }

    fn receiver_among(&self, p: Pid, signal: i32, wants: impl Fn(Tid) -> bool) -> Tid {
        let for_one = self.threads.get(self.procs[p].child_signal_for).is_some_and(|t| signal == SIGCHLD && t.alive());
        let main = if for_one { self.procs[p].child_signal_for } else { self.procs[p].main_thread };
        let of = |&&t: &&Tid| self.threads[t].pid == p && wants(t);
        let mut able = self.live.as_slice().iter().filter(of);
        able.clone().find(|&&t| t == main).or_else(|| able.next()).copied().unwrap_or(NONE)
    }

    /// Signals that `t` could be interrupted by, with `mask` blocked.
    pub(crate) fn deliverable(&self, t: Tid, mask: u64) -> u64 {
        let thread = &self.threads[t];
        let mut ready = (thread.sigpending | self.armed_signals(t, true)) & !mask;
        let mut shared = self.shared_pending(t) & !mask & !ready;
        while shared != 0 {
            let signal = shared.trailing_zeros() as i32 + 1;
            shared &= shared - 1;
            if self.receiver(thread.pid, signal) == t {
                ready |= bit(signal);
            }
        }
        ready
    }

    /// Another thread of the process of `t` takes one of `signals` where `t` blocks it, and handles it.
    pub fn others_take(&self, t: Tid, signals: u64) -> bool {
        let p = self.threads[t].pid;
        let signals = signals & self.procs[p].handled;
        let takes = |&u: &Tid| u != t && self.threads[u].pid == p && signals & !self.threads[u].sigmask != 0;
        signals != 0 && self.procs[p].live_threads > 1 && self.live.as_slice().iter().any(takes)
    }

    /// [`World::deliverable`] with those for the process that another thread gets because its pending operation lets them in, or that it does not get since
    /// that keeps them out: it need not have begun that operation when the signal came.
    pub(super) fn takeable(&self, t: Tid, mask: u64) -> u64 {
        let ready = self.deliverable(t, mask);
        let p = self.threads[t].pid;
        if self.procs[p].live_threads < 2 {
            return ready;
        }
        let mut others = self.shared_pending(t) & !mask & !ready;
        let mut all = ready;
        while others != 0 {
            let signal = others.trailing_zeros() as i32 + 1;
            others &= others - 1;
            let blocks_not = |u: Tid| self.threads[u].sigmask & bit(signal) == 0;
            if self.receiver_among(p, signal, blocks_not) == t {
                all |= bit(signal);
            }
        }
        all
    }

    /// Signals that end the process of `t` as soon as they are there for it: `t` does not block them, nobody handles or ignores them, no core is dumped. `t` finds
    /// none of them pending, however it looks, for they end it first (kernel/signal.c, complete_signal; one that `t` waits for with sigwait counts
    /// as blocked only if it was before: real_blocked).
    pub(super) fn fatal_to(&self, t: Tid) -> u64 {
        let process = &self.procs[self.threads[t].pid];
        !(self.threads[t].sigmask | process.handled | process.ignored | IGNORED | STOPS | CORE)
    }
}
