//! Spin locks, barriers, once controls.

use crate::base::errno;
use crate::base::ids::{ObjId, Tid, NONE};
use crate::base::op::{Kind, Op, TRY};
use crate::state::object::DESTROYED;
use crate::state::world::{Applied, Misuse, World};

/// What pthread_barrier_wait returns to one of the threads.
const SERIAL_THREAD: i64 = -1;

/// `value` of a once control whose initializer has run.
const DONE: i32 = 2;

impl World {
    pub(crate) fn spin_lock_choices(&self, op: &Op) -> u32 {
        u32::from(self.objects[op.obj].owner == NONE || op.has(TRY))
    }

    pub(crate) fn spin_lock_perform(&mut self, t: Tid, op: &Op) -> Applied {
        if self.objects[op.obj].owner != NONE {
            return Applied::Done(errno::EBUSY);
        }
        self.objects[op.obj].owner = t;
        Applied::Done(0)
    }

    pub(crate) fn spin_unlock_perform(&mut self, t: Tid, op: &Op) -> Applied {
        let owner = self.objects[op.obj].owner;
        if owner != t {
            let what = if owner == NONE { Misuse::UNLOCK_FREE } else { Misuse::UNLOCK_FOREIGN };
            if self.misuse(t, op.obj, what) {
                return Applied::Ended;
            }
        }
        self.objects[op.obj].owner = NONE;
        Applied::Done(0)
    }

    pub(crate) fn barrier_wait_perform(&mut self, t: Tid, op: &Op) -> Applied {
        let barrier = self.objects[op.obj];
        let unusable = barrier.flags & DESTROYED != 0 || barrier.count == 0;
        if unusable && self.misuse(t, op.obj, Misuse::USE_DESTROYED) {
            return Applied::Ended;
        }
        if barrier.n_waiters + 1 >= barrier.count {
            while self.objects[op.obj].waiters != NONE {
                self.wake(self.objects[op.obj].waiters);
            }
            return Applied::Done(SERIAL_THREAD);
        }
        self.enqueue(op.obj, t);
        self.park(t, Op { kind: Kind::BARRIER_WAKE, ..*op });
        Applied::Parked
    }

    pub(crate) fn woken_choices(&self, t: Tid) -> u32 {
        u32::from(self.threads[t].woken)
    }

    pub(crate) fn once_choices(&self, op: &Op) -> u32 {
        u32::from(self.objects[op.obj].owner == NONE)
    }

    /// Done(0): the caller runs the initializer and then calls [`World::once_over`]. Done(1): it has been run.
    pub(crate) fn once_perform(&mut self, t: Tid, op: &Op) -> Applied {
        if self.objects[op.obj].value == DONE {
            return Applied::Done(1);
        }
        self.objects[op.obj].owner = t;
        self.threads[t].in_once = self.threads[t].in_once.saturating_add(1);
        self.threads[t].once = op.obj;
        Applied::Done(0)
    }

    /// The initializer returned (`done`), or was left by an exception or cancellation.
    pub fn once_over(&mut self, id: ObjId, done: bool) {
        let runner = core::mem::replace(&mut self.objects[id].owner, NONE);
        if self.threads.contains(runner) {
            self.threads[runner].in_once = self.threads[runner].in_once.saturating_sub(1);
        }
        self.objects[id].value = if done { DONE } else { 0 };
    }
}
