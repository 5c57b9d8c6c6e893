//! Signals that come to who has been let go, and has not gone on yet.
//!
//! For some calls the kernel asks for signals right behind a sleep, so that they may fail with EINTR though what they wait for is there (`AsksFirst`). Whether one has slept
//! by then is not told by the order of steps: who finds something when its call begins does not sleep. So that end is left out, and said wherever it could come.

use super::row::*;
use crate::state::{bit, ThreadState, WOKEN_FAILS};

impl World {
    /// `signal` comes to process `p`, or to its thread `t`.
    pub(super) fn note_woken(&mut self, p: Pid, t: Tid, signal: i32) {
        if self.handled_by_program(p) & bit(signal) == 0 {
            return;
        }
        let may_fail =
            |&&u: &&Tid| self.threads[u].pid == p && (t == NONE || t == u) && self.may_fail_though_ready(u, signal);
        if self.live.as_slice().iter().find(may_fail).is_some() {
            self.never_comes(WOKEN_FAILS);
        }
    }

    /// Thread `t` could go on, and may have slept: a handler of `signal` would make its call fail.
    fn may_fail_though_ready(&self, t: Tid, signal: i32) -> bool {
        let op = &self.threads[t].pending;
        let signals = &op.kind.row().signals;
        let asks_first = match signals.asks_first {
            AsksFirst::Never => false,
            AsksFirst::Always => true,
            AsksFirst::Over(kind) => self.channel_of(op.obj).is_some_and(|id| self.channels[id].kind == kind),
        };
        let restarts = self.procs[self.threads[t].pid].restarts & bit(signal) != 0;
        let comes = self.threads[t].state == ThreadState::PARKED && self.mask_within(t, op) & bit(signal) == 0;
        asks_first && comes && !op.has(TRY) && signals.fail(op, restarts) && !self.finds_nothing(t, op)
    }
}
