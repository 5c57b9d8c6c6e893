//! Sending signals: what a signal that is sent comes to at once, see NOTE [Delivery] in `signal`.

use super::parent::{CLD_CONTINUED, SIGCHLD};
use super::row::*;
use super::signal::{dumps_core, RT_MIN, SIGKILL};
use super::stop::SIGCONT;
use crate::state::{
    bit, Disposal, ProcState, Process, Sent, SigInfo, ENDS, PERMISSION, STOPS_LATE, UNDECIDED, WAKES_IGNORED,
};

impl World {
    /// Thread `sender` sends a signal to process `p`, or to its thread `t`.
    pub fn send(&mut self, sender: Tid, p: Pid, t: Tid, info: SigInfo) -> Sent {
        self.send_within(u64::MAX, sender, p, t, info)
    }

    /// Signals that count for RLIMIT_SIGPENDING: a timer has the one that it will send from the start.
    pub fn queued_signals(&self) -> u64 {
        let timers = self.timers.as_slice().iter().filter(|timer| timer.pid != NONE && timer.id >= 0).count();
        let sent = self.signals.as_slice().iter().filter(|q| q.timer == 0).count();
        (timers + sent) as u64
    }

    /// The same where `limit` signals may be pending (RLIMIT_SIGPENDING). Beyond it those with data of their own are refused, others come
    /// without saying who sent them (kernel/signal.c, __send_signal_locked).
    pub fn send_within(&mut self, limit: u64, sender: Tid, p: Pid, t: Tid, info: SigInfo) -> Sent {
        let signal = info.signal;
        // For who ends already nothing is sent any more (kernel/signal.c, prepare_signal).
        if signal == 0 || self.procs[p].state != ProcState::LIVE || self.procs[p].fate != UNDECIDED {
            return Sent::Done;
        }
        self.note_told(sender, p, signal);
        let dying = self.procs[p].dying;
        if dying & ENDS != 0 || dying != 0 && (self.disposal(p, t, signal) != Disposal::Kills || dumps_core(signal)) {
            return Sent::Done;
        }
        let news = self.procs[p].stop_news;
        self.prepare(p, signal, sender);
        if self.procs[p].stop_news != news {
            self.tell_of_stop(p, CLD_CONTINUED, SIGCONT);
            let fatal = self.fatal_pending(p);
            if fatal != 0 && self.may_be_killed(p, fatal) {
                self.strike(p, fatal);
                return Sent::Done;
            }
        }
        if self.procs[p].stopped != 0 && signal != SIGKILL && self.disposal(p, t, signal) == Disposal::Kills {
            self.never_comes(STOPS_LATE);
        }
        match self.disposal(p, t, signal) {
            Disposal::Ignored => {
                if t == NONE {
                    self.note_ignored(p, self.procs[p].main_thread, signal, 0);
                }
                Sent::Done
            }
            Disposal::Pending => self.send_pending(limit, p, t, info),
            Disposal::Stops => Sent::Stops,
            Disposal::Kills
                if self.may_be_killed(p, signal) && self.threads.get(sender).is_some_and(|s| s.pid != p) =>
            {
                self.strike(p, signal);
                Sent::Done
            }
            Disposal::Kills => {
                if !dumps_core(signal) {
                    self.decide_end(p, signal);
                }
                Sent::Kills
            }
        }
    }

    /// Process `own` sets its user ids. Who has sent it a signal might have been refused then.
    pub fn sets_ids(&mut self, own: Pid) {
        self.procs[own].ids_set = true;
        if self.procs[own].signalled {
            self.never_comes(PERMISSION);
        }
    }

    /// Process `own`, which may not send signals to whomever it likes, sends one to `p`: user ids that one of the two has set decide whether it
    /// may (kernel/signal.c, check_kill_permission).
    pub fn signals_unprivileged(&mut self, own: Pid, p: Pid) {
        if own == p || !self.procs.contains(p) {
            return;
        }
        self.procs[p].signalled = true;
        if self.procs[own].ids_set || self.procs[p].ids_set {
            self.never_comes(PERMISSION);
        }
    }

    fn send_pending(&mut self, limit: u64, p: Pid, t: Tid, info: SigInfo) -> Sent {
        let there =
            if t == NONE { self.procs[p].sigpending } else { self.threads[t].sigpending } & bit(info.signal) != 0;
        let old = info.signal < RT_MIN;
        if old && (there || info.code >= 0) || limit == u64::MAX || self.queued_signals() < limit {
            return if self.post(p, t, info, 0) { Sent::Done } else { Sent::NoRoom };
        }
        if !old && info.code != 0 {
            return Sent::Refused;
        }
        if !there && !self.post(p, t, info, 0) {
            return Sent::NoRoom;
        }
        if !there {
            self.unqueue(self.signals.as_slice().len() - 1);
        }
        Sent::LosesData
    }

    /// A fatal signal that has come while process `p` was stopped: a thread takes it before it does anything else, handlers among it. 0: none.
    fn fatal_pending(&self, p: Pid) -> i32 {
        let fatal = |of: u64, t: Tid| (1..=64).find(|&s| of & bit(s) != 0 && self.disposal(p, t, s) == Disposal::Kills);
        let shared = fatal(self.procs[p].sigpending, NONE);
        let mut own = self.live.as_slice().iter().filter(|&&t| self.threads[t].pid == p);
        shared.or_else(|| own.find_map(|&t| fatal(self.threads[t].sigpending, t))).unwrap_or(0)
    }

    /// The fatal `signal` of another process is on its way to process `p`. One without a core dump decides how that ends.
    fn strike(&mut self, p: Pid, signal: i32) {
        self.procs[p].dying = signal as u8;
        self.all_are_struck(p);
        (self.kills, self.stirred) = (true, true);
        if !dumps_core(signal) {
            self.decide_end(p, signal);
        }
    }

    /// `signal` ends process `p`, and its parent is told.
    pub fn kill(&mut self, p: Pid, signal: i32) {
        self.process_exit(p, signal);
        self.child_over(p);
    }

    /// `signal` comes to process `p` in the name of its thread `asked` and is ignored. Had that thread blocked it just then, as libc does
    /// for a moment, it would be pending, and wake another thread to take it: for nothing, but some waits fail then (kernel/signal.c,
    /// sig_ignored, complete_signal). All three, the signal, the moment and the wait, are noted in whichever order they come: they are
    /// independent of each other for the search. `since`: before that the signal cannot have come.
    pub(crate) fn note_ignored(&mut self, p: Pid, asked: Tid, signal: i32, since: u64) {
        if since == 0 {
            self.procs[p].ignored_sent |= bit(signal);
        }
        if self.threads.get(asked).is_some_and(|a| a.alive() && a.hushed_at > since) {
            self.may_be_hushed(p, asked, bit(signal));
        }
    }

    /// Thread `t` blocks all signals for a moment.
    pub(crate) fn note_hushed(&mut self, t: Tid) {
        self.threads[t].hushed_at = self.ops.max(1);
        let p = self.threads[t].pid;
        if self.procs.get(p).is_some_and(|q| q.main_thread == t) {
            self.may_be_hushed(p, t, self.procs[p].ignored_sent);
        }
        let children = self.procs.as_slice().iter().enumerate().map(|(c, child)| (c as Pid, child));
        let is_over = |(c, child): &(Pid, &Process)| {
            let known = child.waited > 0 && child.waiter == t;
            child.parent == p && child.state != ProcState::LIVE && !known && self.forker_of(*c) == t
        };
        if self.procs.len > 1 && children.filter(is_over).count() > 0 && self.nothing_done(p, SIGCHLD) {
            self.may_be_hushed(p, t, bit(SIGCHLD));
        }
    }

    fn may_be_hushed(&mut self, p: Pid, t: Tid, signals: u64) {
        if signals == 0 {
            return;
        }
        let q = &mut self.procs[p];
        q.hushed = if q.hushed_signals == 0 || q.hushed == t { t } else { NONE };
        q.hushed_signals |= signals;
        self.weigh_ignored(p);
    }

    /// Thread `t` performs an operation that waits, or is left at one, and may fail when it is woken.
    pub(crate) fn note_failing_wait(&mut self, t: Tid, op: &Op) {
        let thread = &self.threads[t];
        let p = thread.pid;
        if !self.procs[p].threaded {
            return;
        }
        let open = !self.mask_within(t, op);
        let q = &mut self.procs[p];
        q.failing = if q.failing_signals == 0 || q.failing == t { t } else { NONE };
        q.failing_signals |= open;
        self.weigh_ignored(p);
    }

    /// Who waits for ever might have been woken by a signal that is ignored, too.
    pub(crate) fn note_waits_left(&mut self) {
        for n in 0..self.live.len {
            let t = self.live[n];
            let op = self.threads[t].pending;
            if op.kind.row().signals.fail_by_stop(&op) {
                self.note_failing_wait(t, &op);
            }
        }
    }

    fn weigh_ignored(&mut self, p: Pid) {
        let q = &self.procs[p];
        let same = q.hushed == q.failing && q.hushed != NONE;
        if q.hushed_signals & q.failing_signals != 0 && !same {
            self.never_comes(WAKES_IGNORED);
        }
    }
}
