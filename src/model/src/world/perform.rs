//! The state of one world: its processes, threads and objects, and how pending operations are published and performed.

use crate::base::errno;
use crate::base::ids::{ObjId, Pid, Tid, NONE};
use crate::base::op::{Kind, Op, TIMED};
use crate::objects::fd::{is_fd, watches};
use crate::sched::file::is_file;
use crate::state::object::{Key, ObjKind};
use crate::state::thread::{ThreadState, POLLS};
use crate::state::world::{Applied, End, Misuse, World, MAX_MESSAGE};

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
        match op.kind {
            Kind::TOSS => op.arg.clamp(0, u32::MAX as i64 - 1) as u32 + 1,
            Kind::SLEEP => u32::from(self.may_time_out(op) || self.cancelled(t, op)),
            Kind::JOIN => self.join_choices(t, op),
            Kind::WAIT => self.wait_choices(t, op),
            Kind::MUTEX_LOCK => self.mutex_lock_choices(t, op),
            Kind::COND_WAKE => self.cond_wake_choices(t, op),
            Kind::COND_SIGNAL => self.cond_signal_choices(op),
            Kind::COND_DESTROY | Kind::BARRIER_DESTROY => self.unused_choices(op),
            Kind::RW_RDLOCK => self.rdlock_choices(t, op),
            Kind::RW_WRLOCK | Kind::RW_WRWAIT => self.wrlock_choices(t, op),
            Kind::SPIN_LOCK => self.spin_lock_choices(op),
            Kind::BARRIER_WAKE => self.woken_choices(t),
            Kind::ONCE => self.once_choices(op),
            Kind::SEM_WAIT => self.sem_wait_choices(t, op),
            Kind::SYSV_OP => self.sysv_op_choices(t, op),
            Kind::FUTEX_WAKE_OP => self.futex_wake_op_choices(op),
            Kind::FUTEX_PI_WAIT => self.futex_pi_wait_choices(t, op),
            Kind::RECORD_LOCK => self.record_lock_choices(t, op),
            Kind::FLOCK => self.flock_choices(t, op),
            Kind::MSG_SEND => self.msg_send_choices(t, op),
            Kind::MSG_RECEIVE => self.msg_receive_choices(t, op),
            Kind::MQ_SEND | Kind::MQ_RECEIVE => self.read_choices(t, op),
            Kind::FUTEX_SLEEP => self.futex_sleep_choices(t, op),
            Kind::FUTEX_WAKE | Kind::FUTEX_REQUEUE => self.futex_wake_choices(op),
            Kind::FD_READ => self.read_choices(t, op),
            Kind::FD_WRITE => self.write_choices(t, op),
            Kind::FD_POLL => self.poll_choices(t, op),
            Kind::FD_WAIT => self.epoll_wait_choices(t, op),
            Kind::FD_OPENED => u32::from(self.fifo_opened(op) || self.cancelled(t, op)),
            Kind::FD_ACCEPT => self.accept_choices(t, op),
            Kind::FD_CONNECT => self.connect_choices(t, op),
            Kind::FD_SEND => self.send_choices(t, op),
            Kind::SIGSUSPEND => u32::from(self.cancelled(t, op)),
            Kind::SIGWAIT => self.sigwait_choices(t, op),
            Kind::NONE => 0,
            _ => 1,
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
        let applied = self.apply(t, op, value);
        // Whether a use of a file was in vain is known later, and to the shim.
        if is_file(op.kind) {
            return applied;
        }
        if op.tries() || op.has(TIMED) {
            self.note_poll(t, op.kind, applied);
        }
        applied
    }

    /// Counts failed polls of `t` in a row.
    fn note_poll(&mut self, t: Tid, kind: Kind, applied: Applied) {
        let polls = &mut self.threads[t].polls;
        match applied {
            Applied::Done(result) if is_fd(kind) => {
                let timed_out = result == -errno::ETIMEDOUT && matches!(kind, Kind::MQ_SEND | Kind::MQ_RECEIVE);
                let failed = result == -errno::EAGAIN || timed_out || watches(kind) && result == 0;
                *polls = if failed { polls.saturating_add(1) } else { 0 };
            }
            Applied::Done(errno::EBUSY | errno::EAGAIN | errno::ENOMSG | errno::ETIMEDOUT) => {
                *polls = polls.saturating_add(1)
            }
            Applied::Done(_) => *polls = 0,
            Applied::Parked | Applied::Ended | Applied::Signalled(_) => {}
        }
    }

    /// True if the pending operation of `t` gives way to threads that have not moved for long: a yield, or a poll that
    /// has failed again and again (a timed one gives way by itself: its time comes when nothing else can move).
    pub fn gives_way(&self, t: Tid) -> bool {
        let thread = &self.threads[t];
        thread.pending.kind == Kind::YIELD || thread.polls >= POLLS && thread.pending.tries()
    }

    fn apply(&mut self, t: Tid, op: Op, value: u32) -> Applied {
        match op.kind {
            Kind::TOSS => Applied::Done(value as i64),
            Kind::SLEEP => Applied::Done(if self.may_time_out(&op) { 0 } else { crate::base::errno::EINTR }),
            Kind::SIGSUSPEND => Applied::Done(crate::base::errno::EINTR),
            Kind::SIGWAIT => self.sigwait_perform(t, &op),
            Kind::JOIN => self.join_perform(t, &op),
            Kind::WAIT => self.wait_perform(t, &op),
            Kind::EXIT => self.exit_perform(t, &op),
            Kind::THREAD_EXIT => {
                self.orphan_mutexes(t);
                Applied::Done(0)
            }
            Kind::CANCEL => self.cancel_perform(&op),
            Kind::MUTEX_LOCK => self.mutex_lock_perform(t, &op),
            Kind::MUTEX_UNLOCK => self.mutex_unlock_perform(t, &op),
            Kind::MUTEX_DESTROY => self.mutex_destroy_perform(t, &op),
            Kind::COND_WAIT => self.cond_wait_perform(t, &op),
            Kind::COND_WAKE => self.cond_wake_perform(t, &op),
            Kind::COND_SIGNAL | Kind::COND_BROADCAST => self.cond_signal_perform(t, &op, value),
            Kind::COND_DESTROY | Kind::BARRIER_DESTROY | Kind::SEM_DESTROY => self.destroy_perform(t, &op),
            Kind::RW_RDLOCK => self.rdlock_perform(t, &op),
            Kind::RW_WRLOCK | Kind::RW_WRWAIT => self.wrlock_perform(t, &op),
            Kind::RW_UNLOCK => self.rwunlock_perform(t, &op),
            Kind::RW_DESTROY => self.rwdestroy_perform(t, &op),
            Kind::SPIN_LOCK => self.spin_lock_perform(t, &op),
            Kind::SPIN_UNLOCK => self.spin_unlock_perform(t, &op),
            Kind::BARRIER_WAIT => self.barrier_wait_perform(t, &op),
            Kind::ONCE => self.once_perform(t, &op),
            Kind::SEM_WAIT => self.sem_wait_perform(t, &op),
            Kind::SEM_POST => self.sem_post_perform(&op),
            Kind::SEM_GET => self.sem_get_perform(t, &op),
            Kind::SYSV_OP => self.sysv_op_perform(t, &op),
            Kind::SYSV_CTL => self.sysv_ctl_perform(t, &op),
            Kind::FUTEX_WAKE_OP => self.futex_wake_op_perform(t, &op, value),
            Kind::FUTEX_LOCK_PI => self.futex_lock_pi_perform(t, &op),
            Kind::FUTEX_PI_WAIT => self.futex_pi_wait_perform(t, &op),
            Kind::FUTEX_UNLOCK_PI => self.futex_unlock_pi_perform(t, &op),
            Kind::RECORD_LOCK => self.record_lock_perform(t, &op),
            Kind::RECORD_UNLOCK => self.record_unlock_perform(t, &op),
            Kind::RECORD_TEST => self.record_test_perform(t, &op),
            Kind::FLOCK => self.flock_perform(t, &op),
            Kind::MSG_SEND => self.msg_send_perform(t, &op),
            Kind::MSG_RECEIVE => self.msg_receive_perform(t, &op),
            Kind::MQ_SEND => self.mq_send_perform(t, &op),
            Kind::MQ_RECEIVE => self.mq_receive_perform(t, &op),
            Kind::MSG_CTL => self.queue_ctl_perform(&op),
            Kind::FUTEX_WAIT => self.futex_wait_perform(t, &op),
            Kind::FUTEX_SLEEP => self.futex_sleep_perform(t, &op),
            Kind::FUTEX_WAKE => self.futex_wake_perform(t, &op, value),
            Kind::FUTEX_REQUEUE => self.futex_requeue_perform(t, &op, value),
            Kind::FD_READ => self.read_perform(t, &op),
            Kind::FD_WRITE => self.write_perform(t, &op),
            Kind::FD_POLL => self.poll_perform(t, &op),
            Kind::FD_WAIT => self.epoll_wait_perform(t, &op),
            Kind::FD_OPENED => Applied::Done(if self.fifo_opened(&op) { 0 } else { -errno::EINTR }),
            Kind::FD_ACCEPT => self.accept_perform(t, &op),
            Kind::FD_CONNECT => self.connect_perform(t, &op),
            Kind::FD_SEND => self.send_perform(t, &op),
            Kind::FD_CLOSE => self.close_perform(t, &op),
            Kind::FD_CLOSE_ALL => self.close_all_perform(t),
            // Yield, barrier wake, kill, exec, names: no more effect than having their turn; what the
            // caller then does belongs to the same transition.
            _ => Applied::Done(0),
        }
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

    /// The process that created `p`, or [`NONE`].
    pub fn creator_of(&self, p: Pid) -> Pid {
        self.procs.get(p).map_or(NONE, |p| p.creator)
    }
}
