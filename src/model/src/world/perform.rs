//! The state of one world: its processes, threads and objects, and how pending operations are published and performed.

use crate::base::{errno, Kind, ObjId, Op, Pid, Tid, NONE, TIMED};
use crate::objects::row::{Enabled, Polls, Unproven};
use crate::state::{
    Applied, End, Key, Misuse, ObjKind, ThreadState, World, GAVE_UP_FLOCK, MAX_MESSAGE, POLLS, SEVERAL_OWNERS,
};

impl World {
    /// Thread `t` has reached visible operation `op`.
    pub fn publish(&mut self, t: Tid, op: Op) {
        self.ops += 1;
        if self.waits_twice(t, &op) {
            let what = b"a signal handler that interrupted a wait in a queue waits in another one: ";
            return self.finish_with(End::UNSUPPORTED, t, &[what, op.kind.name().as_bytes()]);
        }
        self.park(t, op);
        self.check_cycle(t);
        self.check_record_waits(t);
    }

    /// Parks `t` at `op`, not woken.
    pub(crate) fn park(&mut self, t: Tid, op: Op) {
        let expired = self.may_time_out(&op);
        let thread = &mut self.threads[t];
        thread.pending = op;
        thread.born_expired = expired;
        thread.woken = false;
        thread.stop_hit = false;
        thread.state = ThreadState::PARKED;
    }

    /// The deadline to use for one at virtual time `deadline`: counted from the last jump of the clock in whole
    /// milliseconds, so that it does not depend on how many independent steps others have made since, each of which
    /// moves the clock a little.
    pub fn settled_deadline(&self, deadline: u64) -> u64 {
        const MS: u64 = 1_000_000;
        if deadline <= self.now {
            return deadline.min(self.fired);
        }
        let ahead = deadline.saturating_sub(self.fired);
        self.fired.saturating_add(if ahead >= MS { ahead - ahead % MS } else { ahead.max(1) })
    }

    /// The deadline of a wait of `ns` from now; see [`World::settled_deadline`].
    pub fn deadline_after(&self, ns: u64) -> u64 {
        self.fired.saturating_add(ns.max(1))
    }

    /// True if `op` gives up at a deadline that may fire now.
    pub(crate) fn may_time_out(&self, op: &Op) -> bool {
        op.has(TIMED) && (self.timeouts_any || op.deadline <= self.fired)
    }

    /// In how many ways the pending operation of `t` can go on now; 0: it would block.
    pub fn choices(&self, t: Tid) -> u32 {
        let thread = &self.threads[t];
        if thread.state != ThreadState::PARKED {
            return 0;
        }
        if self.procs[thread.pid].stopped != 0 {
            return 0;
        }
        self.own_choices(t) + self.signal_choices(t)
    }

    /// The ways of the pending operation of `t` itself, without those in which a signal comes. What is under way when its
    /// process is stopped is over with what has been transferred.
    fn own_choices(&self, t: Tid) -> u32 {
        let thread = &self.threads[t];
        if thread.stop_hit && thread.pending.has(crate::base::op::PARTIAL) {
            return 0;
        }
        self.choices_of(t, &thread.pending)
    }

    /// The same for `op` in the place of the pending operation.
    pub(crate) fn choices_of(&self, t: Tid, op: &Op) -> u32 {
        match op.kind.row().enabled {
            Enabled::Always => 1,
            Enabled::Ways(ways) | Enabled::Blocks { now: ways, .. } => ways(self, t, op),
        }
    }

    /// Performs the pending operation of `t` in its alternative `value`. `t` must be enabled.
    pub fn perform(&mut self, t: Tid, value: u32) -> Applied {
        let op = self.threads[t].pending;
        if self.signal_ways(t) != 0 {
            let own = self.own_choices(t);
            if value >= own {
                return self.interrupt(t, value - own);
            }
        }
        self.threads[t].state = ThreadState::RUNNING;
        self.threads[t].long_run = false;
        let row = op.kind.row();
        let applied = (row.perform)(self, t, &op, value);
        if op.tries() || op.has(TIMED) {
            self.note_poll(t, row.polls, applied);
        }
        applied
    }

    /// Counts failed polls of `t` in a row.
    fn note_poll(&mut self, t: Tid, counts: Polls, applied: Applied) {
        let Applied::Done(result) = applied else { return };
        let waits = matches!(result, errno::EBUSY | errno::EAGAIN | errno::ENOMSG | errno::ETIMEDOUT);
        let in_vain = match counts {
            // Whether a use of a file was in vain is known later, and to the shim.
            Polls::Unknown => return,
            Polls::Errors => waits,
            Polls::Events => waits || result == 0,
        };
        let polls = &mut self.threads[t].polls;
        *polls = if in_vain { polls.saturating_add(1) } else { 0 };
    }

    /// True if the pending operation of `t` gives way to threads that have not moved for long: a yield, or a poll that
    /// has failed again and again (a timed one gives way by itself: its time comes when nothing else can move).
    pub fn gives_way(&self, t: Tid) -> bool {
        let thread = &self.threads[t];
        thread.pending.kind == Kind::YIELD || thread.polls >= POLLS && thread.pending.tries()
    }

    /// The object an address names, made with flags `flags` if it is new. `None`: the table is full.
    pub fn object_at(&mut self, space: u32, kind: ObjKind, addr: u64, flags: u32) -> Option<ObjId> {
        self.find_or_make(Key::new(space, kind, addr), |new| new.flags = flags)
    }

    /// Ends the execution, unless it has ended already.
    pub fn finish(&mut self, end: End, t: Tid, obj: ObjId, code: u32) {
        if self.end == End::RUNNING {
            self.end = end;
            self.end_thread = t;
            self.end_obj = obj;
            self.end_code = code;
        }
    }

    /// Ends the execution with a text.
    pub fn finish_with(&mut self, end: End, t: Tid, parts: &[&[u8]]) {
        if self.end != End::RUNNING {
            return;
        }
        self.message_len = 0;
        for part in parts {
            self.say(part);
        }
        self.finish(end, t, NONE, 0);
    }

    fn say(&mut self, text: &[u8]) {
        let at = self.message_len as usize;
        let n = text.len().min(MAX_MESSAGE - at);
        self.message[at..at + n].copy_from_slice(&text[..n]);
        self.message_len += n as u32;
    }

    /// The text about the end.
    pub fn message(&self) -> &[u8] {
        &self.message[..(self.message_len as usize).min(MAX_MESSAGE)]
    }

    /// Reports misuse. True: the execution is over. False: the caller asked to go on as glibc does.
    pub(crate) fn misuse(&mut self, t: Tid, obj: ObjId, what: Misuse) -> bool {
        if self.allow_misuse {
            return false;
        }
        self.finish(End::MISUSE, t, obj, what.0);
        true
    }

    /// A table of the model is full.
    pub(crate) fn full(&mut self, what: &str) -> Applied {
        self.finish_with(
            End::UNSUPPORTED,
            NONE,
            &[b"the program uses more ", what.as_bytes(), b" than vsrun can hold"],
        );
        Applied::Ended
    }

    /// What has come of operations for which the reductions are not proven; what operations are by themselves, their rows say.
    pub fn unproven(&self) -> impl Iterator<Item = Unproven> {
        let beyond = self.beyond;
        let all = [(GAVE_UP_FLOCK, Unproven::FlockGaveUp), (SEVERAL_OWNERS, Unproven::SeveralOwners)];
        all.into_iter().filter(move |(bit, _)| beyond & bit != 0).map(|(_, what)| what)
    }

    /// The process that created `p`, or [`NONE`].
    pub fn creator_of(&self, p: Pid) -> Pid {
        self.procs.get(p).map_or(NONE, |p| p.creator)
    }
}
