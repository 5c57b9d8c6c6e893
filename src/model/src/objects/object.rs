//! The table of synchronization and communication objects and how an address finds its object.

use crate::base::{errno, ObjId, Op, Tid, NONE, PARTIAL};
use crate::state::{
    Applied, Key, ObjKind, Object, ThreadState, World, DESTROYED, GHOSTS, GONE_WAITERS, INHERITS, MUTEX_NORMAL,
    MUTEX_TYPE, OWNER_DEAD, ROBUST, SHARED,
};

/// Longest chain of joins or creations that is followed; beyond it, uses count as out of order.
const MAX_CHAIN: usize = 64;

/// The bit of thread `t` in [`Object::users`], if there is one.
pub(crate) fn of_thread(t: Tid) -> u64 {
    1u64.checked_shl(t).unwrap_or(0)
}

/// glibc counts in the memory of such objects who waits for them.
fn remembers(kind: ObjKind) -> bool {
    matches!(kind, ObjKind::COND | ObjKind::RWLOCK | ObjKind::BARRIER)
}

impl World {
    /// What a call of `t` on a System V set or queue gives that has been removed since the call was next, in each of its ways: it has not
    /// looked it up yet, or it has (ipc_obtain_object_check and ipc_valid_object in the kernel's ipc/util.c). One that sleeps has.
    pub(crate) fn finds_removed(&mut self, t: Tid, op: &Op, value: u32) -> Applied {
        let value = if op.has(PARTIAL) { 1 } else { value };
        self.objects[op.obj].users |= of_thread(t);
        Applied::Done([errno::EINVAL, errno::EIDRM][value as usize % 2])
    }

    /// In how many ways an operation of `t` on `obj` can go on that waits for nothing more, see [`World::finds_removed`]. It cannot have
    /// looked it up before where the lives of threads and processes say that the removal came first, or where it has found that out.
    pub(crate) fn ways_of_removed(&self, t: Tid, obj: ObjId) -> u32 {
        let object = &self.objects[obj];
        let remover = self.threads.get(object.user).and_then(|u| self.procs.get(u.pid));
        let waited = remover.is_some_and(|p| p.waited > 0 && p.waiter == t);
        let knows = waited || object.users & of_thread(t) != 0 || self.in_order(t, obj);
        1 + u32::from(object.flags & DESTROYED != 0 && !knows)
    }

    /// `t` has removed `obj`.
    pub(crate) fn note_removal(&mut self, t: Tid, obj: ObjId) {
        let at = self.ops + 1;
        let object = &mut self.objects[obj];
        object.flags |= DESTROYED;
        (object.user, object.used_at, object.users) = (t, at, 0);
    }

    /// True if creation orders everything that `earlier` did up to `at` before everything that `t` does.
    fn created_after(&self, earlier: Tid, at: u64, t: Tid) -> bool {
        let mut child = t;
        for _ in 0..MAX_CHAIN {
            let Some(creator) = self.threads.get(child).map(|c| c.creator) else { return false };
            if creator == earlier {
                return at <= self.threads[child].born;
            }
            child = creator;
        }
        false
    }

    /// True if joins, and creations after them, order everything that `earlier` did before what `t` does now.
    pub(crate) fn joined_before(&self, earlier: Tid, t: Tid) -> bool {
        let mut ended = earlier;
        for _ in 0..MAX_CHAIN {
            let Some(thread) = self.threads.get(ended).filter(|thread| thread.joined && !thread.alive()) else {
                return false;
            };
            if thread.heir == t || self.created_after(thread.heir, thread.joined_at, t) {
                return true;
            }
            ended = thread.heir;
        }
        false
    }

    /// True if the last use of object `id` is ordered before what `t` does now, by the lives of threads.
    #[inline(never)]
    pub(crate) fn in_order(&self, t: Tid, id: ObjId) -> bool {
        self.ordered(self.objects[id].user, self.objects[id].used_at, t)
    }

    /// The same of what `user` did up to `at`, as [`World::ops`](crate::World); nobody: it is.
    pub(crate) fn ordered(&self, user: Tid, at: u64, t: Tid) -> bool {
        let (mut user, mut at) = (user, at);
        for _ in 0..MAX_CHAIN {
            if user == NONE || user == t || self.created_after(user, at, t) {
                return true;
            }
            let Some(thread) = self.threads.get(user) else { return false };
            if thread.alive() || !thread.joined {
                return false;
            }
            (user, at) = (thread.heir, thread.joined_at);
            if user == NONE {
                return false;
            }
        }
        false
    }

    /// The object at `key`, if known.
    #[inline]
    pub fn find(&self, key: Key) -> Option<ObjId> {
        let mut at = self.buckets[key.bucket()];
        while self.objects.contains(at) {
            let object = &self.objects[at];
            if object.key.is(&key) {
                return Some(at);
            }
            at = object.hash_next;
        }
        None
    }

    /// The object at `key`, made with `init` if it is new. `None`: the table is full.
    #[inline]
    pub fn find_or_make(&mut self, key: Key, init: impl FnOnce(&mut Object)) -> Option<ObjId> {
        match self.find(key) {
            Some(id) => Some(id),
            None => self.make(key, init),
        }
    }

    /// A new object at `key`; one that is there already is replaced by its next generation (same index).
    #[inline(never)]
    pub fn make(&mut self, key: Key, init: impl FnOnce(&mut Object)) -> Option<ObjId> {
        let fresh = Object {
            key,
            owner: NONE,
            extra: NONE,
            waiters: NONE,
            hash_next: NONE,
            space_next: NONE,
            user: NONE,
            ..Object::default()
        };
        let id = match self.find(key) {
            Some(id) => {
                let old = self.objects[id];
                self.drop_holds(id);
                self.objects[id] = Object {
                    generation: old.generation.wrapping_add(1),
                    hash_next: old.hash_next,
                    space_next: old.space_next,
                    ..fresh
                };
                id
            }
            None => {
                let id = self.objects.push(fresh)?;
                let bucket = key.bucket();
                self.objects[id].hash_next = core::mem::replace(&mut self.buckets[bucket], id);
                if key.space & SHARED == 0 && self.procs.contains(key.space) {
                    self.objects[id].space_next = core::mem::replace(&mut self.procs[key.space].objects, id);
                }
                id
            }
        };
        init(&mut self.objects[id]);
        Some(id)
    }

    /// Puts `t` into the queue of waiters of `id`, ordered by the threads' names so that waits commute and the n-th waiter
    /// is the same in every execution.
    pub(crate) fn enqueue(&mut self, id: ObjId, t: Tid) {
        self.threads[t].queued_on = id;
        self.objects[id].n_waiters += 1;
        let mut before = NONE;
        let mut at = self.objects[id].waiters;
        while at != NONE && self.threads[at].uid < self.threads[t].uid {
            before = at;
            at = self.threads[at].queue_next;
        }
        self.threads[t].queue_next = at;
        match before {
            NONE => self.objects[id].waiters = t,
            b => self.threads[b].queue_next = t,
        }
    }

    /// Takes `t` out of the queue it is in, if any.
    pub(crate) fn dequeue(&mut self, t: Tid) {
        let id = core::mem::replace(&mut self.threads[t].queued_on, NONE);
        if !self.objects.contains(id) {
            return;
        }
        let next = core::mem::replace(&mut self.threads[t].queue_next, NONE);
        if self.objects[id].waiters == t {
            self.objects[id].waiters = next;
            self.objects[id].n_waiters -= 1;
            return;
        }
        let mut at = self.objects[id].waiters;
        while at != NONE {
            let follower = self.threads[at].queue_next;
            if follower == t {
                self.threads[at].queue_next = next;
                self.objects[id].n_waiters -= 1;
                return;
            }
            at = follower;
        }
    }

    /// `t` is over where it waits: an object that processes share still counts it.
    pub(crate) fn leave_queue(&mut self, t: Tid) {
        let id = self.threads[t].queued_on;
        if self.objects.get(id).is_some_and(|o| remembers(o.key.kind) && o.key.space & SHARED != 0) {
            self.objects[id].flags |= GHOSTS;
            self.any_ghosts = true;
        }
        self.dequeue(t);
        self.forget_words(t, true);
    }

    /// `t` is about to perform `op`. What an object does for which somebody waits who is not there is not modelled, nor are wake-ups that are lost
    /// with one who has left. False: nothing that is true can be said of it.
    pub(crate) fn note_ghosts(&mut self, t: Tid, op: &Op) -> bool {
        self.may_sleep_on(t, op);
        let haunted = |id: ObjId| self.objects.get(id).filter(|o| o.flags & GHOSTS != 0).map(|o| o.key.kind);
        match haunted(op.obj).or_else(|| haunted(op.obj2)) {
            Some(ObjKind::BARRIER) => false,
            Some(_) => {
                self.never_comes(GONE_WAITERS);
                true
            }
            None => true,
        }
    }

    /// The `n`-th waiter of `id` in thread order.
    pub(crate) fn waiter(&self, id: ObjId, n: u32) -> Tid {
        let mut at = self.objects[id].waiters;
        for _ in 0..n {
            if at == NONE {
                break;
            }
            at = self.threads[at].queue_next;
        }
        at
    }

    /// Gives the child of a fork its copies of the parent's private objects: same state, no waiters, and what the
    /// forking thread owned is owned by its copy. What other threads owned stays owned by threads the child lacks.
    pub(crate) fn copy_private_objects(&mut self, parent: u32, child: u32, forker: Tid, copy: Tid) -> bool {
        let mut at = self.procs[parent].objects;
        while self.objects.contains(at) {
            let old = self.objects[at];
            at = old.space_next;
            let key = Key { space: child, ..old.key };
            let Some(id) = self.make(key, |new| {
                new.flags = old.flags | if old.n_waiters > 0 && remembers(old.key.kind) { GHOSTS } else { 0 };
                new.generation = old.generation;
                new.count = old.count;
                new.value = old.value;
                // Locks that know their owner by its id do not know the copy (glibc 2.36).
                let by_id = old.key.kind == ObjKind::MUTEX && old.flags & (MUTEX_TYPE | ROBUST) != MUTEX_NORMAL;
                new.owner = if old.owner == forker && !by_id { copy } else { old.owner };
                // The state of what the forker used is settled; of the rest, it depends on how far the user is.
                new.user = if old.user == forker { NONE } else { old.user };
                new.used_at = old.used_at;
            }) else {
                return false;
            };
            if old.key.kind == ObjKind::RWLOCK && !self.copy_holds(old.extra, id, forker, copy) {
                return false;
            }
            self.any_ghosts |= self.objects[id].flags & GHOSTS != 0;
            // Nobody in the child waits for it.
            if old.key.kind == ObjKind::FUTEX {
                (self.objects[id].owner, self.objects[id].flags) = (NONE, old.flags & !OWNER_DEAD);
            }
            // An initializer that was running is not: it is begun again, also by its own copy's threads (glibc's fork generation).
            if old.key.kind == ObjKind::ONCE {
                self.objects[id].owner = NONE;
            }
            if old.key.kind == ObjKind::BARRIER {
                self.objects[id].value = 0;
            }
        }
        true
    }

    /// Forgets the objects in the private memory of a process that is replaced by exec: they are no longer reachable.
    pub(crate) fn forget_private_objects(&mut self, space: u32) {
        let mut at = core::mem::replace(&mut self.procs[space].objects, NONE);
        while self.objects.contains(at) {
            let next = self.objects[at].space_next;
            self.unlink(at);
            at = next;
        }
    }

    fn unlink(&mut self, id: ObjId) {
        let bucket = self.objects[id].key.bucket();
        let next = self.objects[id].hash_next;
        let mut at = self.buckets[bucket];
        if at == id {
            self.buckets[bucket] = next;
            return;
        }
        while self.objects.contains(at) {
            if self.objects[at].hash_next == id {
                self.objects[at].hash_next = next;
                return;
            }
            at = self.objects[at].hash_next;
        }
    }
}

impl World {
    /// A new object at `key` with flags, whatever was there; with [`World::object_at`], one that may be there. `None`: no room.
    pub fn object_new(&mut self, key: Key, flags: u32) -> Option<ObjId> {
        self.make(key, |new| new.flags = flags)
    }

    /// A thread waits for that object. If it becomes another one, nobody wakes that thread. (Who has been let go by a condition variable waits for the mutex.)
    pub fn slept_for(&self, id: ObjId) -> bool {
        let object = &self.objects[id];
        if object.key.kind == ObjKind::COND {
            return object.n_waiters > 0;
        }
        let waits = |t: Tid| {
            let thread = &self.threads[t];
            thread.state == ThreadState::PARKED && thread.pending.names(id) && self.choices(t) == 0
        };
        (0..self.threads.len).any(waits)
    }

    /// A new barrier for `count` threads.
    pub fn barrier_new(&mut self, key: Key, count: u32) -> Option<ObjId> {
        self.make(key, |new| new.count = count)
    }

    /// Whether the initializer of a once control has run, as its memory says: it may have been before anybody looked.
    pub fn once_seen(&mut self, id: ObjId, done: bool) {
        if self.objects[id].owner == NONE {
            self.objects[id].value = if done { 2 } else { 0 };
        }
    }

    /// There is a mutex with these flags.
    #[inline]
    pub fn note_mutex(&mut self, flags: u32) {
        if flags & (ROBUST | INHERITS) != 0 {
            self.any_robust |= flags & ROBUST != 0;
            self.any_inherits |= flags & INHERITS != 0;
        }
    }
}
