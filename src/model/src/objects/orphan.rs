//! Orphaned groups of processes: those of which no member has a parent in another group of the same session, who could make it go on after
//! a stop (kernel/exit.c, will_become_orphaned_pgrp). The first process counts as started by a shell with job control.

use super::row::*;
use super::stop::{SIGCONT, SIGSTOP};
use crate::state::{ProcState, SigInfo};

const SIGHUP: i32 = 1;
const SI_KERNEL: i32 = 0x80;

impl World {
    /// The parent `parent` of process `p`, as it is or was, connects the group of `p` with another one of its session.
    fn connects(&self, p: Pid, parent: Pid) -> bool {
        let child = &self.procs[p];
        match self.procs.get(parent) {
            Some(q) => q.pgid != child.pgid && q.sid == child.sid,
            // A process that began the world has its parent outside, and one that is left behind has none that counts.
            None => {
                let began = self.procs.get(child.creator).is_none_or(|q| q.state == ProcState::LIVE);
                began && self.procs.get(0).is_some_and(|first| first.sid == child.sid)
            }
        }
    }

    /// No member of the group `pgid` is connected with another group.
    fn is_orphaned(&self, pgid: i32) -> bool {
        let connected = |p: Pid| {
            let process = &self.procs[p];
            process.pgid == pgid && process.state == ProcState::LIVE && self.connects(p, process.parent)
        };
        !(0..self.procs.len).any(connected)
    }

    /// The default action of `signal` does not stop process `p`: who stops by a terminal's signal must have somebody to make it go on
    /// (kernel/signal.c, get_signal).
    pub(crate) fn stops_in_vain(&self, p: Pid, signal: i32) -> bool {
        signal != SIGSTOP && self.is_orphaned(self.procs[p].pgid)
    }

    /// Process `p`, a child of `parent`, is over, and its children are left behind: each group that is orphaned by that and has
    /// members that are stopped gets SIGHUP and SIGCONT (kernel/exit.c, kill_orphaned_pgrp).
    pub(crate) fn orphan_groups(&mut self, p: Pid, parent: Pid) {
        for c in 0..self.procs.len {
            let child = &self.procs[c];
            // That of whoever was its child before, and is not now, does not change.
            if child.creator == p && child.parent == NONE && child.state == ProcState::LIVE && self.connects(c, p) {
                self.hang_up(self.procs[c].pgid);
            }
        }
        if self.connects(p, parent) {
            self.hang_up(self.procs[p].pgid);
        }
    }

    fn hang_up(&mut self, pgid: i32) {
        let members = |p: &crate::state::Process| p.pgid == pgid && p.state == ProcState::LIVE;
        if !self.procs.as_slice().iter().any(|p| members(p) && p.stopped != 0) || !self.is_orphaned(pgid) {
            return;
        }
        for signal in [SIGHUP, SIGCONT] {
            for p in 0..self.procs.len {
                if members(&self.procs[p]) {
                    self.send(self.current, p, NONE, SigInfo { signal, code: SI_KERNEL, ..SigInfo::default() });
                }
            }
        }
        self.did = self.did.with(Effects::SIGNALS);
    }
}
