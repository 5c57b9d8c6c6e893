//! Read-write locks that threads use in an order that nothing decides, and only to read.
//!
//! What readers do to a lock commutes with what other readers do, and no reader waits for another one. So where nobody writes, to lock for reading and to
//! give that back are no place to switch, as if the lock were each reader's own (`sched::sharing`). A lock is taken to be so as long as each *change* of it
//! (to lock it for writing, to give that back, to destroy it, also where it only tries) is ordered by the lives of threads with all other uses, before and
//! after.
//!
//! Why nothing is lost. Think of a system in which such locks let readers through whatever others do. If some execution of the real one comes to a change that is
//! not in order with a use, take the first such. Up to there no reader had to wait, and all that readers did may be moved to the end of their thread's
//! transition before: then it is an execution of the other system, a trace of which comes to that change too, and so does one of those explored. The
//! lock is noted there, and the search starts over with each use of it a transition.

use crate::arena::Arena;
use crate::base::{Op, Tid, NONE};
use crate::objects::object::of_thread;
use crate::objects::row::{Lock, Role};
use crate::state::World;

impl World {
    /// `op` of `t` leaves the lock it is on as it is for others who read.
    pub(super) fn only_reads(&self, t: Tid, op: &Op) -> bool {
        match op.kind.row().role {
            Role::Acquires(Lock::Read) => true,
            Role::Releases(Lock::Either) => {
                self.objects[op.obj].owner != t && self.read_holds(op.obj).any(|(reader, _)| reader == t)
            }
            _ => false,
        }
    }
}

impl Arena {
    /// `t` uses the lock, which it does not own, out of order with its last use. True: only to read, and all changes are in order with that.
    pub(super) fn reads_beside(&mut self, t: Tid, op: &Op) -> bool {
        if !self.world.only_reads(t, op) {
            return false;
        }
        let lock = &self.world.objects[op.obj];
        let by = lock.changer();
        let after_change = by == NONE || self.world.ordered(by, lock.changed_at(), t);
        let (this, other) = (of_thread(t), of_thread(lock.user));
        if !after_change || this == 0 || other == 0 {
            return false;
        }
        self.world.objects[op.obj].users |= this | other;
        true
    }

    /// `t` uses the lock in order with its last use. False: it changes it, and not all that others have read comes before that.
    pub(super) fn comes_after_readers(&mut self, t: Tid, op: &Op) -> bool {
        let (readers, at) = (self.world.objects[op.obj].users, self.world.objects[op.obj].used_at);
        if self.world.only_reads(t, op) {
            if readers != 0 {
                self.world.objects[op.obj].users |= of_thread(t);
            }
            return readers == 0 || of_thread(t) != 0;
        }
        // None of them has used it later than `at`.
        let before = |reader: Tid| readers >> reader & 1 == 0 || self.world.ordered(reader, at, t);
        if !(0..u64::BITS).all(before) {
            return false;
        }
        let now = self.world.ops + 1;
        self.world.objects[op.obj].note_change(t, now);
        true
    }
}
