//! The state of one world: its processes, threads and objects, and how pending operations are published and performed.

use crate::base::{errno, Kind, ObjId, Op, Pid, Tid, CANCEL_POINT, NONE, PARTIAL, TIMED, TRY, VARIANT};
use crate::objects::row::{Enabled, Polls, Unproven};
use crate::state::{
    Advance, Applied, End, Key, Misuse, ObjKind, Progress, Thread, ThreadState, World, CANCEL_REQUESTED, ENDS,
    GAVE_UP_FLOCK, LOOKS, MAX_MESSAGE, POLLS, SEVERAL_OWNERS,
};
use crate::world::cycle::may_close;

/// What is done by a call of the kernel in which requests to end the thread are heeded at any moment. A wait of libc's own in which they are,
/// or one that changes nothing, is over as if the request had come later.
fn moves(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::JOIN
            | Kind::COND_WAIT
            | Kind::COND_WAKE
            | Kind::SEM_WAIT
            | Kind::SLEEP
            | Kind::SIGSUSPEND
            | Kind::FD_POLL
            | Kind::PLACE
    )
}

fn is_done(applied: Applied) -> bool {
    matches!(applied, Applied::Done(result) if result >= 0)
}

impl World {
    /// Thread `t` has reached visible operation `op`.
    pub fn publish(&mut self, t: Tid, op: Op) {
        self.ops += 1;
        if self.waits_twice(t, &op) {
            let what = b"a signal handler that interrupted a wait in a queue waits in another one: ";
            return self.finish_with(End::UNSUPPORTED, t, &[what, op.kind.name().as_bytes()]);
        }
        self.park(t, op);
        if self.threads[t].n_handlers > 0 {
            self.waits_in_handler(t);
        }
        if self.stirred && self.threads[t].sigpending | self.procs[self.threads[t].pid].sigpending != 0 {
            self.drop_ignored_within(t);
        }
        if op.kind == Kind::SYSV_OP && op.has(PARTIAL) {
            self.sysv_sleeps(t, op.obj);
        }
        self.check_inherited(t);
        if may_close(op.kind) {
            self.check_cycle(t);
        }
        self.check_record_waits(t);
    }

    /// Parks `t` at `op`, not woken.
    pub(crate) fn park(&mut self, t: Tid, op: Op) {
        let expired = self.may_time_out(&op);
        let (now, fired) = (self.now, self.fired);
        let thread = &mut self.threads[t];
        thread.left_woken = false;
        thread.due = now.saturating_add(op.deadline.saturating_sub(fired.max(thread.time)));
        thread.pending = op;
        thread.born_expired = expired;
        thread.woken = false;
        thread.stop_hit = false;
        thread.state = ThreadState::PARKED;
    }

    /// From when deadlines of `t` count: the last jump of the clock, or what it has come to by its own waits.
    pub(crate) fn time_of(&self, t: Tid) -> u64 {
        self.fired.max(self.threads.get(t).map_or(0, |thread| thread.time))
    }

    /// What the deadlines of timers that `t` has armed are compared with to tell what is left.
    pub fn timer_now(&self, t: Tid) -> u64 {
        if self.timeouts_any {
            self.time_of(t)
        } else {
            self.now.max(self.fired)
        }
    }

    /// The deadline to use for one of thread `t` at virtual time `deadline`: counted from `World::time_of` in whole
    /// milliseconds, so that it does not depend on how many independent steps others have made since, each of which
    /// moves the clock a little.
    pub fn settled_deadline(&self, t: Tid, deadline: u64) -> u64 {
        const MS: u64 = 1_000_000;
        let from = self.time_of(t);
        if deadline <= self.now {
            return deadline.min(from);
        }
        if self.timeouts_any {
            let ahead = deadline - self.now;
            return from.saturating_add(if ahead >= MS { ahead.div_ceil(MS) * MS } else { ahead });
        }
        let ahead = deadline.saturating_sub(from);
        from.saturating_add(if ahead >= MS { ahead - ahead % MS } else { ahead.max(1) })
    }

    /// The deadline of a wait by `t` of `ns` from now; see [`World::settled_deadline`].
    pub fn deadline_after(&self, t: Tid, ns: u64) -> u64 {
        self.time_of(t).saturating_add(ns.max(1))
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
        if self.is_left_alone(thread) {
            let ways = self.choices_of(t, &thread.pending);
            debug_assert_eq!(ways, self.choices_among_all(t));
            return ways;
        }
        self.choices_among_all(t)
    }

    /// There is no signal, stop, end, timer or request that could come in the way of what `thread` does.
    #[inline]
    fn is_left_alone(&self, thread: &Thread) -> bool {
        // Asked several times at every transition, and hardly ever not so.
        u32::from(self.stirred) | self.timers.len | self.n_timers | u32::from(thread.cancel & CANCEL_REQUESTED) == 0
    }

    /// [`World::choices`] of `t`, which is parked.
    #[inline(never)]
    fn choices_among_all(&self, t: Tid) -> u32 {
        let thread = &self.threads[t];
        if self.stirred && self.procs[thread.pid].stopped != 0 && self.procs[thread.pid].dying == 0 {
            return 0;
        }
        self.own_choices(t) + self.ways_of_timers(t) + self.signal_choices(t)
    }

    /// The ways of the pending operation of `t` itself, without those in which a signal comes. What is under way when its
    /// process is stopped is over with what has been transferred.
    fn own_choices(&self, t: Tid) -> u32 {
        let thread = &self.threads[t];
        if self.stirred && (self.stands_still(t) || self.must_fail(t)) {
            return 0;
        }
        let ways = if self.timers.len + self.n_timers > 0 && self.timer_comes_first(t, &thread.pending) {
            self.choices_of(t, &Op { flags: thread.pending.flags & !TIMED, ..thread.pending })
        } else {
            self.choices_of(t, &thread.pending)
        };
        ways + u32::from(self.cancelled_though_ready(t))
    }

    /// Its process has been stopped, or killed and it has made its last call.
    fn stands_still(&self, t: Tid) -> bool {
        let thread = &self.threads[t];
        let hit = thread.stop_hit && thread.pending.has(crate::base::op::PARTIAL);
        self.procs[thread.pid].stopped != 0 || thread.spent && !self.is_within_send(t) || hit
    }

    /// The same for `op` in the place of the pending operation.
    #[inline]
    pub(crate) fn choices_of(&self, t: Tid, op: &Op) -> u32 {
        match op.kind.row().enabled {
            Enabled::Always => 1,
            Enabled::Ways(ways) | Enabled::Blocks { now: ways, .. } => ways(self, t, op),
        }
    }

    /// Performs the pending operation of `t` in its alternative `value`. `t` must be enabled.
    pub fn perform(&mut self, t: Tid, value: u32) -> Applied {
        if !self.is_left_alone(&self.threads[t]) {
            if let Some(applied) = self.comes_between(t, value) {
                return applied;
            }
        }
        let thread = &mut self.threads[t];
        let op = thread.pending;
        let row = op.kind.row();
        thread.state = ThreadState::RUNNING;
        thread.long_run = false;
        thread.looks = match row.polls {
            Polls::Events => thread.looks.saturating_add(1),
            _ if op.kind == Kind::FD_LOOK => thread.looks,
            _ => 0,
        };
        if self.stops_late {
            self.note_late_stops(t, &op);
        }
        if row.signals.fail_by_stop(&op) && !op.tries() {
            self.note_failing_wait(t, &op);
        }
        if self.any_ghosts && !self.note_ghosts(t, &op) {
            let what = b"a barrier at which somebody waits who is not there: in the child of a fork, or killed";
            self.finish_with(End::UNSUPPORTED, t, &[what]);
            return Applied::Ended;
        }
        let asked = self.cancelled(t, &op);
        let applied = (row.perform)(self, t, &op, value);
        // What the kernel has done it returns from with the request.
        if asked && (matches!(applied, Applied::Done(errno::EINTR)) || moves(op.kind)) {
            self.lose_handlers(t);
        }
        self.threads[t].moved_late = op.flags & CANCEL_POINT != 0 && moves(op.kind) && is_done(applied);
        // Most operations have none of these flags.
        if op.flags & (TRY | TIMED | VARIANT) != 0 && (op.tries() || op.has(TIMED)) {
            self.note_poll(t, &op, applied);
        }
        applied
    }

    /// `t` takes a signal, or heeds a request to end, in the place of its pending operation. `None`: it does not.
    #[inline(never)]
    fn comes_between(&mut self, t: Tid, value: u32) -> Option<Applied> {
        let (signals, cancels) = (self.signal_ways(t) != 0, self.cancelled_though_ready(t));
        if signals || cancels {
            let own = self.own_choices(t);
            if value >= own {
                let by_timers = self.ways_of_timers(t);
                return Some(match value - own {
                    n if n < by_timers => self.interrupt_by_timers(t, n),
                    n => self.interrupt(t, n - by_timers),
                });
            }
            if cancels && value + 1 == own {
                return Some(self.cancel_ready(t));
            }
        }
        if self.kills && matches!(self.procs[self.threads[t].pid].dying, 1..ENDS) {
            let op = self.threads[t].pending;
            let calls = !self.is_of_user_space(&op);
            self.threads[t].spent |= calls;
        }
        None
    }

    /// Operations on such objects that need not wait make no call of the kernel.
    fn is_of_user_space(&self, op: &Op) -> bool {
        const OBJECTS: [ObjKind; 9] = [
            ObjKind::MUTEX,
            ObjKind::COND,
            ObjKind::RWLOCK,
            ObjKind::SPIN,
            ObjKind::BARRIER,
            ObjKind::ONCE,
            ObjKind::SEM,
            ObjKind::STREAM,
            ObjKind::LIBC,
        ];
        self.objects.get(op.obj).is_some_and(|object| OBJECTS.contains(&object.key.kind))
    }

    /// Counts polls and waits in vain of `t` in a row. A wait that gave up takes its time.
    fn note_poll(&mut self, t: Tid, op: &Op, applied: Applied) {
        let Applied::Done(result) = applied else { return };
        let waits = matches!(result, errno::EBUSY | errno::EAGAIN | errno::ENOMSG | errno::ETIMEDOUT);
        let in_vain = match op.kind.row().polls {
            // Whether a use of a file was in vain is known later, and to the shim.
            Polls::Unknown => return,
            Polls::Errors => waits || self.timeouts_any && op.kind == Kind::SLEEP && result == 0,
            Polls::Events => waits || result == 0,
        };
        let thread = &mut self.threads[t];
        let row = if op.tries() { &mut thread.polls } else { &mut thread.waits };
        *row = if in_vain { row.saturating_add(1) } else { 0 };
        if in_vain && !op.tries() {
            self.time_passes(t, op);
        }
    }

    /// `t` has noticed the deadline of `op`: the clock shows it now, and its further ones are later. Where timeouts fire only when
    /// nothing else can run, the clock has jumped there already.
    pub(crate) fn time_passes(&mut self, t: Tid, op: &Op) {
        if self.timeouts_any {
            let thread = &mut self.threads[t];
            thread.time = thread.time.max(op.deadline);
            thread.waited = thread.waited.max(op.deadline);
            self.now = self.now.max(thread.due);
        }
    }

    /// True if the pending operation of `t` gives way to threads that have not moved for long: a yield, or a poll that
    /// has failed again and again, or has found events again and again and left them; where timeouts fire at any moment, a wait that would give up once more. (Where they are urgent
    /// that gives way by itself: its time comes when nothing else can move.)
    #[inline]
    pub fn gives_way(&self, t: Tid) -> bool {
        let thread = &self.threads[t];
        // Asked several times at every transition, and hardly ever so.
        let counts = thread.polls | thread.looks | thread.waits;
        (thread.pending.kind == Kind::YIELD || counts != 0 && self.goes_round(t)) && !self.tells_states()
    }

    #[inline(never)]
    fn goes_round(&self, t: Tid) -> bool {
        let thread = &self.threads[t];
        let op = &thread.pending;
        thread.polls >= POLLS && op.tries()
            || thread.looks >= LOOKS && op.kind.row().polls == Polls::Events
            || thread.waits >= POLLS && self.timeouts_any && self.only_gives_up(t, op)
    }

    /// All that `t` could do now is to notice a deadline, or a timer, at a moment of its own: at which time. 0: it is not.
    #[inline]
    pub(crate) fn gives_up_at(&self, t: Tid) -> u64 {
        let timers = self.timers.len > 0 || self.n_timers > 0;
        match self.timeouts_any && (timers || self.threads[t].pending.has(TIMED)) {
            true => self.noticed_at(t),
            false => 0,
        }
    }

    #[inline(never)]
    fn noticed_at(&self, t: Tid) -> u64 {
        let thread = &self.threads[t];
        let op = &thread.pending;
        if op.has(TIMED) && self.only_gives_up(t, op) {
            return op.deadline;
        }
        let by_timer = self.has_timers() && self.only_ticks(t, op);
        let by_signal = self.timers.len > 0 && thread.sigpending | self.procs[thread.pid].sigpending == 0;
        let waits = by_timer || by_signal && self.own_choices(t) == 0 && self.signal_choices(t) > 0;
        if waits {
            self.deadline_of(t).into_iter().chain(self.next_timer()).min().unwrap_or(1)
        } else {
            0
        }
    }

    /// All that `op` could do now is to give up at its deadline.
    fn only_gives_up(&self, t: Tid, op: &Op) -> bool {
        op.has(TIMED) && self.choices_of(t, &Op { flags: op.flags & !TIMED, ..*op }) == 0
    }

    /// The object an address names, made with flags `flags` if it is new. `None`: the table is full.
    #[inline]
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

    /// Thread `t` has made progress.
    pub fn advances(&mut self, t: Tid, what: Advance, fd: i32) {
        self.progress = Progress { at: self.moves, by: t, what, fd };
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
        self.finish_with(End::ROOM, NONE, &[b"the program uses more ", what.as_bytes(), b" than vsrun can hold"]);
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
