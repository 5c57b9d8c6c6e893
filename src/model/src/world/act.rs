//! Operations as they are recorded: each with the state that its dependencies are conditional on.

use crate::base::ids::{ObjId, Tid};
use crate::base::op::{Kind, Op, SEVERAL, TIMED};
use crate::objects::fd::is_fd;
use crate::objects::lock::is_lock;
use crate::state::act::{Act, BORN_EXPIRED, CANCELLED, EXPIRED, GIVES_WAY, HELD, IN_ONCE, SOME_ONCE, TIMED_OUT, WOKEN};
use crate::state::object::{ObjKind, DESTROYED, NOT_RECOVERABLE, PREFER_WRITER};
use crate::state::recorded::RwState;
use crate::state::thread::ThreadState;
use crate::state::world::World;

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
            obj_kind: self.obj_kind(&op),
            fate: self.fate(t, &op),
            once: self.once_of(t),
            op,
            state: self.recorded_state(t, &op),
        }
    }

    fn obj_kind(&self, op: &Op) -> ObjKind {
        match op.kind {
            Kind::JOIN | Kind::CANCEL | Kind::KILL | Kind::WAIT | Kind::TIMER => ObjKind::default(),
            _ => self.objects.get(op.obj).map_or(ObjKind::default(), |o| o.key.kind),
        }
    }

    fn fate(&self, t: Tid, op: &Op) -> u8 {
        let mut fate = 0;
        if self.may_time_out(op) {
            fate |= EXPIRED;
            if self.choices_of(t, &Op { flags: op.flags & !TIMED, ..*op }) == 0 {
                fate |= TIMED_OUT;
            }
        }
        if is_fd(op.kind) && self.goes_by_timer(t, op) {
            fate |= EXPIRED | TIMED_OUT;
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

    fn recorded_state(&self, t: Tid, op: &Op) -> i64 {
        match op.kind {
            Kind::SEM_WAIT | Kind::SEM_POST | Kind::SEM_GET | Kind::SEM_DESTROY => self.objects[op.obj].value as i64,
            Kind::SYSV_OP => self.sysv_state(t, op),
            Kind::SYSV_CTL => self.sysv_value(op.obj, op.obj2).value as i64,
            Kind::MSG_SEND | Kind::MSG_RECEIVE | Kind::MSG_CTL => self.queue_state(op.obj).pack(),
            kind if is_lock(kind) => self.lock_state(t, op).pack(),
            Kind::COND_SIGNAL
            | Kind::COND_BROADCAST
            | Kind::COND_DESTROY
            | Kind::BARRIER_DESTROY
            | Kind::FUTEX_WAKE
            | Kind::FUTEX_WAKE_OP
            | Kind::FUTEX_REQUEUE => self.objects[op.obj].n_waiters as i64,
            Kind::MUTEX_LOCK | Kind::MUTEX_UNLOCK | Kind::MUTEX_DESTROY => self.mutex_state(op.obj),
            Kind::COND_WAIT | Kind::COND_WAKE => self.mutex_state(op.obj2),
            Kind::SPIN_LOCK | Kind::SPIN_UNLOCK | Kind::ONCE => self.objects[op.obj].owner.wrapping_add(1) as i64,
            Kind::RW_RDLOCK | Kind::RW_WRLOCK | Kind::RW_WRWAIT | Kind::RW_UNLOCK | Kind::RW_DESTROY => {
                self.rw_state(t, op.obj).pack()
            }
            Kind::JOIN => i64::from(self.join_ready(t, op)),
            Kind::WAIT => self.wait_state(t, op).pack(),
            Kind::FD_POLL => self.polled_state(t),
            Kind::FD_WAIT => i64::from(self.channel_of(op.obj).is_some_and(|epoll| self.epoll_ready(t, epoll))),
            Kind::FD_OPENED => i64::from(self.fifo_opened(op)),
            Kind::FD_EPOLL_CTL | Kind::FD_CLOSE_ALL => self.taken_out_of_reach(t, op),
            Kind::FD_CLOSE if op.has(SEVERAL) => self.taken_out_of_reach(t, op),
            Kind::FD_ACCEPT => self.channel_states(t, op) | self.taken_out_of_reach(t, op),
            kind if is_fd(kind) => self.channel_states(t, op),
            _ => 0,
        }
    }

    /// 1 + the owner of a mutex; 0 if anybody would get through.
    fn mutex_state(&self, m: ObjId) -> i64 {
        let mutex = &self.objects[m];
        if mutex.flags & (DESTROYED | NOT_RECOVERABLE) != 0 {
            return 0;
        }
        mutex.owner.wrapping_add(1) as i64
    }

    fn rw_state(&self, t: Tid, l: ObjId) -> RwState {
        let lock = &self.objects[l];
        RwState {
            owner: lock.owner.wrapping_add(1),
            readers: lock.count,
            announced: lock.value.max(0) as u32,
            prefers: lock.flags & PREFER_WRITER != 0,
            holds: self.read_holds(l).any(|(reader, _)| reader == t),
        }
    }

    fn sysv_state(&self, t: Tid, op: &Op) -> i64 {
        let thread = &self.threads[t];
        let ops = &thread.sembuf[..(thread.n_sembuf as usize).min(4)];
        if let [one] = ops {
            return self.sysv_value(op.obj, one.num as u32).value as i64;
        }
        let value = |num: u16| self.sysv_value(op.obj, num as u32).value as u64 & 0xffff;
        ops.iter().rev().fold(0u64, |packed, o| packed << 16 | value(o.num)) as i64
    }
}
