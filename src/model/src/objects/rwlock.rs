//! Read-write locks. Readers are recorded one by one, so that misuse and deadlocks can name them.

use crate::base::errno;
use crate::base::ids::{ObjId, Tid, NONE};
use crate::base::op::{Kind, Op, TRY};
use crate::state::object::{ObjKind, DESTROYED, PREFER_WRITER};
use crate::state::rwlock::Hold;
use crate::state::world::{Applied, Misuse, World};

impl World {
    /// The read holds of `l`, as (thread, count).
    pub fn read_holds(&self, l: ObjId) -> impl Iterator<Item = (Tid, u32)> + '_ {
        let mut at = if self.objects[l].key.kind == ObjKind::RWLOCK { self.objects[l].extra } else { NONE };
        core::iter::from_fn(move || {
            let hold = self.holds.get(at)?;
            at = hold.next;
            Some((hold.tid, hold.count))
        })
    }

    fn hold_of(&self, l: ObjId, t: Tid) -> Option<u32> {
        let mut at = self.objects[l].extra;
        while let Some(hold) = self.holds.get(at) {
            if hold.tid == t {
                return Some(at);
            }
            at = hold.next;
        }
        None
    }

    fn add_hold(&mut self, l: ObjId, t: Tid, count: u32) -> bool {
        if let Some(at) = self.hold_of(l, t) {
            self.holds[at].count += count;
            return true;
        }
        let next = self.objects[l].extra;
        let new = Hold { tid: t, count, next };
        let at = match self.holds.get(self.free_hold).copied() {
            Some(free) => {
                let at = core::mem::replace(&mut self.free_hold, free.next);
                self.holds[at] = new;
                at
            }
            None => match self.holds.push(new) {
                Some(at) => at,
                None => return false,
            },
        };
        self.objects[l].extra = at;
        true
    }

    fn remove_hold(&mut self, l: ObjId, at: u32) {
        let next = self.holds[at].next;
        if self.objects[l].extra == at {
            self.objects[l].extra = next;
        } else {
            let mut before = self.objects[l].extra;
            while self.holds.contains(before) && self.holds[before].next != at {
                before = self.holds[before].next;
            }
            if self.holds.contains(before) {
                self.holds[before].next = next;
            }
        }
        self.holds[at] = Hold { tid: NONE, count: 0, next: self.free_hold };
        self.free_hold = at;
    }

    pub(crate) fn drop_holds(&mut self, l: ObjId) {
        if self.objects[l].key.kind == ObjKind::RWLOCK {
            while self.holds.contains(self.objects[l].extra) {
                self.remove_hold(l, self.objects[l].extra);
            }
        }
    }

    pub(crate) fn copy_holds(&mut self, from: u32, to: ObjId, forker: Tid, copy: Tid) -> bool {
        let mut at = from;
        while let Some(hold) = self.holds.get(at).copied() {
            let tid = if hold.tid == forker { copy } else { hold.tid };
            if !self.add_hold(to, tid, hold.count) {
                return false;
            }
            at = hold.next;
        }
        true
    }

    /// A reader gets in unless a writer holds the lock or, where writers are preferred, waits for it.
    fn read_ready(&self, t: Tid, l: ObjId) -> bool {
        let lock = &self.objects[l];
        let writer_waits = lock.flags & PREFER_WRITER != 0 && lock.value > 0;
        lock.owner == t || lock.owner == NONE && !writer_waits
    }

    pub(crate) fn write_ready(&self, t: Tid, l: ObjId) -> bool {
        let lock = &self.objects[l];
        lock.owner == t || lock.owner == NONE && lock.count == 0
    }

    pub(crate) fn rdlock_choices(&self, t: Tid, op: &Op) -> u32 {
        u32::from(self.read_ready(t, op.obj) || op.has(TRY) || self.may_time_out(op))
    }

    pub(crate) fn wrlock_choices(&self, t: Tid, op: &Op) -> u32 {
        let announces = op.kind == Kind::RW_WRLOCK && self.objects[op.obj].flags & PREFER_WRITER != 0;
        u32::from(self.write_ready(t, op.obj) || op.has(TRY) || announces || self.may_time_out(op))
    }

    pub(crate) fn rdlock_perform(&mut self, t: Tid, op: &Op) -> Applied {
        let lock = self.objects[op.obj];
        if lock.flags & DESTROYED != 0 && self.misuse(t, op.obj, Misuse::USE_DESTROYED) {
            return Applied::Ended;
        }
        if lock.owner == t {
            return Applied::Done(if op.has(TRY) { errno::EBUSY } else { errno::EDEADLK });
        }
        if self.read_ready(t, op.obj) {
            self.objects[op.obj].count += 1;
            if !self.add_hold(op.obj, t, 1) {
                return self.full("read holds of rwlocks");
            }
            return Applied::Done(0);
        }
        Applied::Done(if op.has(TRY) { errno::EBUSY } else { errno::ETIMEDOUT })
    }

    pub(crate) fn wrlock_perform(&mut self, t: Tid, op: &Op) -> Applied {
        let lock = self.objects[op.obj];
        if lock.flags & DESTROYED != 0 && self.misuse(t, op.obj, Misuse::USE_DESTROYED) {
            return Applied::Ended;
        }
        if lock.owner == t {
            return Applied::Done(if op.has(TRY) { errno::EBUSY } else { errno::EDEADLK });
        }
        let announced = op.kind == Kind::RW_WRWAIT;
        if self.write_ready(t, op.obj) {
            self.objects[op.obj].owner = t;
            self.objects[op.obj].value -= i32::from(announced);
            return Applied::Done(0);
        }
        if op.has(TRY) {
            return Applied::Done(errno::EBUSY);
        }
        if !announced && lock.flags & PREFER_WRITER != 0 && !self.may_time_out(op) {
            self.objects[op.obj].value += 1;
            self.park(t, Op { kind: Kind::RW_WRWAIT, ..*op });
            return Applied::Parked;
        }
        self.objects[op.obj].value -= i32::from(announced);
        Applied::Done(errno::ETIMEDOUT)
    }

    pub(crate) fn rwunlock_perform(&mut self, t: Tid, op: &Op) -> Applied {
        if self.objects[op.obj].flags & DESTROYED != 0 && self.misuse(t, op.obj, Misuse::USE_DESTROYED) {
            return Applied::Ended;
        }
        if self.objects[op.obj].owner == t {
            self.objects[op.obj].owner = NONE;
            return Applied::Done(0);
        }
        let hold = self.hold_of(op.obj, t);
        if hold.is_none() {
            let free = self.objects[op.obj].owner == NONE && self.objects[op.obj].count == 0;
            if self.misuse(t, op.obj, if free { Misuse::UNLOCK_FREE } else { Misuse::UNLOCK_FOREIGN }) {
                return Applied::Ended;
            }
        }
        // Where misuse is allowed, somebody's hold goes, as in glibc, which only counts readers.
        match hold.or(Some(self.objects[op.obj].extra).filter(|&h| self.holds.contains(h))) {
            Some(at) => {
                self.objects[op.obj].count = self.objects[op.obj].count.saturating_sub(1);
                self.holds[at].count -= 1;
                if self.holds[at].count == 0 {
                    self.remove_hold(op.obj, at);
                }
            }
            None => self.objects[op.obj].owner = NONE,
        }
        Applied::Done(0)
    }

    pub(crate) fn rwdestroy_perform(&mut self, t: Tid, op: &Op) -> Applied {
        let lock = self.objects[op.obj];
        let misuse = if lock.flags & DESTROYED != 0 {
            Some(Misuse::USE_DESTROYED)
        } else if lock.owner != NONE || lock.count != 0 {
            Some(Misuse::DESTROY_BUSY)
        } else {
            None
        };
        if misuse.is_some_and(|what| self.misuse(t, op.obj, what)) {
            return Applied::Ended;
        }
        self.objects[op.obj].flags |= DESTROYED;
        Applied::Done(0)
    }
}
