//! Semaphores and barriers of which nobody can tell in which order threads take from them, or arrive.
//!
//! Two waits for a semaphore of value 2 commute, any two of three do, and all three together do not: one of them has to wait. A relation
//! between pairs cannot say that, so waits depend on each other, and N threads that each take one of N cost N! executions though nobody
//! can tell their order. It is the same with a barrier, of which any arrival but the last lets nobody go. Their order is *free* as long as
//! nobody can tell it, whatever it is:
//!
//! * *A semaphore has enough for all.* What threads can have taken at a time is never more than what was in it to begin with. A thread that takes
//!   and adds in turn has one at most. So it counts for one once it takes, and for one more each time that it takes while it has not added
//!   since. What it adds beyond what it took is not counted. Then nobody has to wait, and to take and to add are but changes of a number.
//! * *A barrier is that of the same threads each time*, as many as it is for, and none of them looks at which was the last
//!   (PTHREAD_BARRIER_SERIAL_THREAD), as the code behind the call tells. Then arrivals for one round commute, and all leave alike.
//!
//! Both rest on what each thread does by itself, so they are the same in all equivalent executions, and once they do not hold they never do
//! again. A wait counts when it is reached, so that one that would have to wait counts too.
//!
//! Why nothing is lost. It is as with objects that one thread alone uses (`sched::sharing`): the names of the others are known, and think of a
//! system in which nobody has to wait for a semaphore whose order is free, and such a barrier tells nobody who was the last. There the operations
//! do commute, and a search explores a representative of each trace. That system and the real one are the same up to where the above does not hold
//! any more. If some execution of the real one comes to that, so does one of those explored; the name is noted, and the search starts over with it.

use super::sharing::{mixed, name_of, TOLD};
use crate::arena::Arena;
use crate::base::{ObjId, Op, Tid};
use crate::objects::row::Role;
use crate::state::{ObjKind, Order, World, LAST_IGNORED};

/// Threads that are told apart.
const THREADS: u32 = 64;
/// A semaphore with more in it may come close to the largest value there is.
const MOST: i32 = 1 << 20;

impl Arena {
    /// `t` has reached `op`: whether the order of operations on its object is free still.
    pub(super) fn follow_order(&mut self, t: Tid, op: &Op) {
        let role = op.kind.row().role;
        if !matches!(role, Role::Takes | Role::Adds | Role::Arrives) || !self.world.objects.contains(op.obj) {
            return;
        }
        if self.world.objects[op.obj].order == Order::UNKNOWN {
            self.look_up_order(op.obj);
        }
        if self.world.objects[op.obj].order != Order::FREE {
            return;
        }
        let free = match role {
            Role::Takes => self.world.takes(t, op.obj),
            Role::Arrives => op.has(LAST_IGNORED) && self.world.meets(t, op.obj),
            _ => true,
        };
        if !free {
            self.world.objects[op.obj].order = Order::TOLD;
            self.note(self.told(op.obj), 0);
        }
    }

    fn look_up_order(&mut self, id: ObjId) {
        let object = &self.world.objects[id];
        let (value, barrier) = (object.value, object.key.kind == ObjKind::BARRIER);
        let free = self.plan.unshared && (barrier || (1..MOST).contains(&value)) && !self.is_known(self.told(id));
        let object = &mut self.world.objects[id];
        object.order = if free { Order::FREE } else { Order::TOLD };
        object.left = value.max(0) as u64;
    }

    fn told(&self, id: ObjId) -> u64 {
        mixed(TOLD, name_of(self.world.objects[id].key), 0)
    }
}

impl World {
    /// `t` is about to take from the semaphore. False: it may have to wait in some order.
    fn takes(&mut self, t: Tid, id: ObjId) -> bool {
        if t >= THREADS {
            return false;
        }
        let (sem, bit) = (&mut self.objects[id], 1 << t);
        if sem.users & bit == 0 || sem.takes & bit != 0 {
            if sem.left == 0 {
                return false;
            }
            sem.left -= 1;
        }
        sem.users |= bit;
        sem.takes |= bit;
        true
    }

    /// `t` is about to arrive at the barrier. False: it is one more than there are to be.
    fn meets(&mut self, t: Tid, id: ObjId) -> bool {
        if t >= THREADS {
            return false;
        }
        let barrier = &mut self.objects[id];
        barrier.users |= 1 << t;
        barrier.users.count_ones() <= barrier.count
    }
}
