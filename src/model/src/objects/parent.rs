//! What a process is told of its children with SIGCHLD.

use super::row::*;
use crate::state::{bit, Disposal, ProcState, SigInfo, READY_EARLY, STOPS_LATE};

pub(crate) const SIGCHLD: i32 = 17;
pub(crate) const CLD_STOPPED: i32 = 5;
pub(crate) const CLD_CONTINUED: i32 = 6;

impl World {
    /// What the parent of `p`, of which `signal` says how it fares, is told with SIGCHLD; the parent, if it is told.
    /// `code` is CLD_*, `status` an exit status or a signal.
    pub fn tell_parent(&mut self, p: Pid, code: i32, status: i32) -> Option<Pid> {
        let parent = self.procs[p].parent;
        // Where it is ignored none is sent at all, blocked or not (kernel/signal.c, do_notify_parent).
        if !self.procs.get(parent).is_some_and(|q| q.state == ProcState::LIVE && q.ignored & bit(SIGCHLD) == 0) {
            return None;
        }
        let asked = self.forker_of(p);
        if self.disposal_as(parent, NONE, asked, SIGCHLD) != Disposal::Pending {
            let born = self.threads[self.procs[p].main_thread].born;
            self.note_ignored(parent, asked, SIGCHLD, born.max(1));
            return None;
        }
        let already = self.procs[parent].sigpending & bit(SIGCHLD) != 0;
        self.note_receiver(parent, SIGCHLD, asked);
        let pid = self.procs[p].vpid;
        self.post(parent, NONE, SigInfo { signal: SIGCHLD, code, pid, uid: 0, value: status as u32 as u64 }, 0);
        if !already {
            self.procs[parent].child_signal_for = self.forker_of(p);
        }
        Some(parent)
    }

    /// The thread of its parent in whose name that is told of process `p`: the one that has made it, or, once that is over, the first
    /// (task_struct::real_parent).
    pub(crate) fn forker_of(&self, p: Pid) -> Tid {
        let parent = self.procs[p].parent;
        let forker = self.procs[p].forker;
        match self.threads.get(forker) {
            Some(t) if t.pid == parent && t.alive() => forker,
            _ => self.procs.get(parent).map_or(NONE, |q| q.main_thread),
        }
    }

    /// Process `p` is over: its parent is told. That is noted, also where the parent is over itself: it might not have
    /// been, and then it could tell.
    pub fn child_over(&mut self, p: Pid) {
        const CLD_EXITED: i32 = 1;
        const CLD_KILLED: i32 = 2;
        let status = self.procs[p].status;
        let (signal, exit) = (status & 0x7f, status >> 8 & 0xff);
        let (code, status) = if signal == 0 { (CLD_EXITED, exit) } else { (CLD_KILLED, signal) };
        let told = self.tell_parent(p, code, status).is_some();
        let could = |q: &crate::state::process::Process| {
            let blocks = |t: Tid| self.threads.get(t).is_some_and(|t| t.sigmask & bit(SIGCHLD) != 0);
            let blocks = blocks(q.main_thread) || blocks(self.forker_of(p));
            q.handled & bit(SIGCHLD) != 0 || blocks
        };
        if told || self.procs.get(self.procs[p].creator).is_some_and(could) {
            self.did = self.did.with(Effects::SIGNALS);
            if self.procs[p].has_pidfd {
                self.never_comes(READY_EARLY);
            }
        }
    }

    /// The parent of `p` gets SIGCHLD about a stop or its end, unless it does not want to know.
    pub(crate) fn tell_of_stop(&mut self, p: Pid, code: i32, status: i32) {
        let parent = self.procs.get(self.procs[p].parent);
        if parent.is_some_and(|q| !q.no_stop_news) && self.tell_parent(p, code, status).is_some() {
            self.did = self.did.with(Effects::SIGNALS);
            // The process itself tells, when it next runs, or not at all if something else comes first (kernel/signal.c, get_signal and
            // do_signal_stop); a wait may find the stop before.
            self.never_comes(STOPS_LATE);
        }
    }
}
