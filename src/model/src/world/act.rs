//! Operations as they are recorded: each with the state that its dependencies are conditional on.

use crate::base::{Op, Tid, TIMED};
use crate::state::{
    Act, ObjKind, ThreadState, World, BORN_EXPIRED, CANCELLED, EXPIRED, GIVES_WAY, HELD, IN_ONCE, SOME_ONCE, TIMED_OUT,
    WOKEN,
};

impl World {
    /// The pending operation of `t` with the state it is conditional on.
    pub fn act(&self, t: Tid) -> Act {
        let thread = &self.threads[t];
        let op = Op { signals: self.signal_ways(t), ..self.as_it_reaches(t, &thread.pending) };
        Act {
            uid: thread.uid,
            tid: t,
            pid: thread.pid,
            parent: self.creator_of(thread.pid),
            obj_kind: self.objects.get(op.operands()[0]).map_or(ObjKind::default(), |o| o.key.kind),
            fate: self.fate(t, &op),
            once: self.once_of(t),
            op,
            state: (op.kind.row().records.state)(self, t, &op),
        }
    }

    fn fate(&self, t: Tid, op: &Op) -> u8 {
        let mut fate = 0;
        if self.may_time_out(op) {
            fate |= EXPIRED;
            // At any moment it is like one that does not wait; else it rests on what everybody else does.
            if !self.timeouts_any && self.choices_of(t, &Op { flags: op.flags & !TIMED, ..*op }) == 0 {
                fate |= TIMED_OUT;
            }
        }
        if op.kind.row().channels.awaits_timers() && self.goes_by_timer(t, op) {
            fate |= if self.timeouts_any { EXPIRED } else { EXPIRED | TIMED_OUT };
        }
        if self.cancelled(t, op) {
            fate |= CANCELLED;
        }
        let thread = &self.threads[t];
        if thread.woken && thread.state == ThreadState::PARKED {
            fate |= WOKEN;
        }
        if thread.in_once > 0 {
            fate |= IN_ONCE;
        }
        if thread.born_expired && op.has(TIMED) {
            fate |= BORN_EXPIRED;
        }
        if self.gives_way(t) {
            fate |= GIVES_WAY | if thread.yields[0] > 0 { HELD } else { 0 };
        }
        fate
    }

    fn once_of(&self, t: Tid) -> u16 {
        let thread = &self.threads[t];
        match thread.in_once {
            0 => 0,
            1 if thread.once < u32::from(SOME_ONCE) - 1 => thread.once as u16 + 1,
            _ => SOME_ONCE,
        }
    }
}
