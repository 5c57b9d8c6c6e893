//! Signals that stop processes and let them go on.

use super::parent::CLD_STOPPED;
use super::row::*;
use crate::state::{bit, ThreadState, CONTINUED, STOPPED, STOPS_LATE};

pub(crate) const SIGCONT: i32 = 18;
pub(crate) const SIGSTOP: i32 = 19;
/// SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU.
pub(crate) const STOPS: u64 = bit(19) | bit(20) | bit(21) | bit(22);

impl World {
    /// What a stop or continue signal does besides being delivered: each takes the other kind out of what is pending, and
    /// SIGCONT makes a stopped process go on.
    pub fn prepare(&mut self, p: Pid, signal: i32, sender: Tid) {
        let gone = match () {
            () if signal == SIGCONT => STOPS,
            () if STOPS & bit(signal) != 0 => bit(SIGCONT),
            () => return,
        };
        self.procs[p].sigpending &= !gone;
        for t in self.threads.as_mut_slice().iter_mut().filter(|t| t.pid == p) {
            t.sigpending &= !gone;
        }
        self.forget_signals(|q| q.pid == p && gone & bit(q.info.signal) != 0);
        if signal == SIGCONT && self.procs[p].stopped != 0 {
            // Nobody has seen that it has stopped: it may not have got so far.
            if core::mem::take(&mut self.procs[p].struck) {
                self.never_comes(STOPS_LATE);
            }
            self.procs[p].stopped = 0;
            self.procs[p].stop_news = CONTINUED;
            self.wake_waiters(p);
            self.procs[p].stopper = sender;
            for t in self.threads.as_mut_slice().iter_mut().filter(|t| t.pid == p) {
                t.stops_late = false;
            }
        }
    }

    /// `op` of another process comes before what a stopped thread would have done, which natively it may still have done after the signal
    /// that stopped it was sent.
    pub(crate) fn note_late_stops(&mut self, t: Tid, op: &Op) {
        let pid = self.threads[t].pid;
        let same = |a: ObjId, b: &Op| a != NONE && (a == b.obj || a == b.obj2);
        let meets = |b: &Op| {
            let both_channels = op.kind.row().channels.any() && b.kind.row().channels.any();
            match op.kind {
                // Their operands are processes.
                Kind::KILL => false,
                Kind::WAIT => matches!(b.kind, Kind::EXIT | Kind::THREAD_EXIT),
                _ => same(op.obj, b) || same(op.obj2, b) || both_channels,
            }
        };
        let late = |&&u: &&Tid| {
            let thread = &self.threads[u];
            thread.stops_late && thread.pid != pid && self.procs[thread.pid].stopped != 0 && meets(&thread.pending)
        };
        if self.live.as_slice().iter().find(late).is_some() {
            self.never_comes(STOPS_LATE);
        }
    }

    /// Process `p` stops; its threads are not enabled until it continues.
    pub fn stop(&mut self, p: Pid, signal: i32, sender: Tid) {
        if self.procs[p].stopped == 0 {
            self.procs[p].stopped = signal as u8;
            self.stirred = true;
            self.procs[p].stop_news = STOPPED;
            self.wake_waiters(p);
            self.procs[p].stopper = sender;
            for at in 0..self.live.len {
                let t = self.live[at];
                let Thread { pid, state, pending: op, .. } = self.threads[t];
                let untimed = Op { flags: op.flags & !(TIMED | CANCEL_POINT), ..op };
                // A wait for children looks again then.
                self.threads[t].woken |= pid == p && op.kind == Kind::WAIT_SLEEP;
                if pid == p
                    && state == ThreadState::PARKED
                    && op.kind.row().signals.fail_by_stop(&op)
                    && self.choices_of(t, &untimed) == 0
                {
                    self.threads[t].stop_hit = true;
                }
            }
        }
    }

    /// Process `p` stops by `signal`, and its parent is told. False: it has stopped already.
    pub fn stop_and_tell(&mut self, p: Pid, signal: i32, sender: Tid) -> bool {
        if self.procs[p].stopped != 0 || self.stops_in_vain(p, signal) {
            return false;
        }
        if self.threads.get(sender).is_some_and(|s| s.pid != p) {
            for at in 0..self.live.len {
                let t = self.live[at];
                let Thread { pid, state, pending: op, .. } = self.threads[t];
                // One that waits could only give up meanwhile, as it could before.
                let untimed = Op { flags: op.flags & !(TIMED | CANCEL_POINT), ..op };
                let goes_on = pid == p && state == ThreadState::PARKED && self.choices_of(t, &untimed) > 0;
                self.threads[t].stops_late |= goes_on;
                self.stops_late |= goes_on;
            }
        }
        self.stop(p, signal, sender);
        self.procs[p].struck = self.threads.get(sender).is_some_and(|s| s.pid != p);
        self.tell_of_stop(p, CLD_STOPPED, signal);
        self.did = self.did.with(Effects::SIGNALS);
        true
    }
}
