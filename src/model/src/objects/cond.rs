//! Condition variables. A wait is two operations: it releases the mutex and joins the waiters; once woken (timed
//! out, cancelled) it acquires the mutex again. A signal may wake any waiter: each is an alternative.

use crate::base::errno;
use crate::base::ids::{Tid, NONE};
use crate::base::op::{Kind, Op};
use crate::state::object::{DESTROYED, MUTEX_NORMAL, MUTEX_TYPE, ROBUST};
use crate::state::world::{Applied, Misuse, World};

impl World {
    pub(crate) fn cond_wait_perform(&mut self, t: Tid, op: &Op) -> Applied {
        if self.objects[op.obj].flags & DESTROYED != 0 && self.misuse(t, op.obj, Misuse::USE_DESTROYED) {
            return Applied::Ended;
        }
        let mutex = self.objects[op.obj2];
        if mutex.owner != t {
            if mutex.flags & MUTEX_TYPE != MUTEX_NORMAL || mutex.flags & ROBUST != 0 {
                return Applied::Done(errno::EPERM);
            }
            if self.misuse(t, op.obj2, Misuse::WAIT_UNOWNED) {
                return Applied::Ended;
            }
        }
        self.mutex_release(op.obj2);
        self.enqueue(op.obj, t);
        self.park(t, Op { kind: Kind::COND_WAKE, ..*op });
        Applied::Parked
    }

    pub(crate) fn cond_wake_choices(&self, t: Tid, op: &Op) -> u32 {
        let up = self.threads[t].woken || self.may_time_out(op) || self.cancelled(t, op);
        u32::from(up && self.mutex_ready(t, op.obj2))
    }

    pub(crate) fn cond_wake_perform(&mut self, t: Tid, op: &Op) -> Applied {
        let woken = self.threads[t].woken;
        let result = if woken {
            0
        } else if self.cancelled(t, op) {
            errno::EINTR
        } else {
            errno::ETIMEDOUT
        };
        self.dequeue(t);
        let lock = self.mutex_acquire(t, op.obj2, false);
        Applied::Done(if lock != 0 { lock } else { result })
    }

    pub(crate) fn cond_signal_choices(&self, op: &Op) -> u32 {
        self.objects[op.obj].n_waiters.max(1)
    }

    pub(crate) fn cond_signal_perform(&mut self, t: Tid, op: &Op, value: u32) -> Applied {
        if self.objects[op.obj].flags & DESTROYED != 0 && self.misuse(t, op.obj, Misuse::USE_DESTROYED) {
            return Applied::Ended;
        }
        if op.kind == Kind::COND_SIGNAL {
            let waiter = self.waiter(op.obj, value);
            self.wake(waiter);
        } else {
            while self.objects[op.obj].waiters != NONE {
                self.wake(self.objects[op.obj].waiters);
            }
        }
        Applied::Done(0)
    }

    /// Gives `t` its wake-up and takes it out of its queue.
    pub(crate) fn wake(&mut self, t: Tid) {
        if t != NONE {
            self.dequeue(t);
            if self.threads[t].held {
                self.threads[t].held_woken = true;
                return;
            }
            self.threads[t].woken = true;
            self.check_cycle(t);
        }
    }

    /// glibc's pthread_cond_destroy waits until nobody waits; so does the one of barriers.
    pub(crate) fn unused_choices(&self, op: &Op) -> u32 {
        u32::from(self.objects[op.obj].n_waiters == 0)
    }

    pub(crate) fn destroy_perform(&mut self, t: Tid, op: &Op) -> Applied {
        if self.objects[op.obj].flags & DESTROYED != 0 && self.misuse(t, op.obj, Misuse::USE_DESTROYED) {
            return Applied::Ended;
        }
        self.objects[op.obj].flags |= DESTROYED;
        Applied::Done(0)
    }
}
