//! The table of synchronization and communication objects and how an address finds its object.

use crate::sharing::Sharing;
use crate::world::World;
use crate::{ObjId, Tid};

/// No index.
pub const NONE: u32 = u32::MAX;

/// Set in [`Key::space`] when the rest is the number of a shared region, not of a process.
pub const SHARED: u32 = 1 << 31;

/// What an object is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(transparent)]
pub struct ObjKind(pub u8);

macro_rules! obj_kinds {
    ($($name:ident = $value:literal, $text:literal;)*) => {
        #[allow(missing_docs)]
        impl ObjKind {
            $(pub const $name: ObjKind = ObjKind($value);)*

            /// The word for it in reports.
            pub fn name(self) -> &'static str {
                match self { $(ObjKind::$name => $text,)* _ => "object" }
            }
        }
    };
}

obj_kinds! {
    MUTEX = 1, "mutex";
    COND = 2, "condition variable";
    RWLOCK = 3, "rwlock";
    SPIN = 4, "spinlock";
    BARRIER = 5, "barrier";
    ONCE = 6, "once control";
    SEM = 7, "semaphore";
    SYSV = 8, "semaphore set";
    FUTEX = 9, "futex";
    NAMES = 10, "name space";
    MSGQ = 20, "message queue";
    RECORDS = 22, "file";
    FLOCK = 23, "file (flock)";
    FILE = 25, "file";
    PATHS = 26, "names of files";
    CHANNEL = 11, "channel";
}

/// Where an object lives: in a process's private memory or in a region that processes share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(C)]
pub struct Key {
    /// A process index, or [`SHARED`] plus the number of a shared region.
    pub space: u32,
    /// What it is.
    pub kind: ObjKind,
    pad: [u8; 3],
    /// Address in the process, or offset in the region.
    pub addr: u64,
}

impl Key {
    /// A key.
    pub const fn new(space: u32, kind: ObjKind, addr: u64) -> Key {
        Key { space, kind, pad: [0; 3], addr }
    }

    fn bucket(&self) -> usize {
        let mixed = (self.addr ^ ((self.space as u64) << 40) ^ self.kind.0 as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 52) as usize
    }
}

/// Mutex flavours (`flags` of a mutex object).
pub const MUTEX_TYPE: u32 = 3;
/// A second lock by the owner blocks for ever.
pub const MUTEX_NORMAL: u32 = 0;
/// A second lock by the owner counts.
pub const MUTEX_RECURSIVE: u32 = 1;
/// A second lock by the owner fails.
pub const MUTEX_ERRORCHECK: u32 = 2;
/// The death of the owner is handed to the next one.
pub const ROBUST: u32 = 1 << 4;
/// Shared between processes.
pub const PSHARED: u32 = 1 << 5;
/// A read-write lock that makes new readers wait while a writer waits.
pub const PREFER_WRITER: u32 = 1 << 6;
/// The owner died and the state has not been declared consistent.
pub const OWNER_DEAD: u32 = 1 << 8;
/// Unlocked without being made consistent: of no use any more.
pub const NOT_RECOVERABLE: u32 = 1 << 9;
/// Destroyed.
pub const DESTROYED: u32 = 1 << 10;
/// First met without an init call.
pub const STATIC_INIT: u32 = 1 << 11;

/// One object. The meaning of `owner`, `count`, `value`, `extra` depends on the kind.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Object {
    /// Where it lives.
    pub key: Key,
    /// How many objects were at this place before it.
    pub generation: u32,
    /// Flavour and condition bits.
    pub flags: u32,
    /// Owning thread (mutex, spinlock, writer of a rwlock, runner of a once, futex with priority inheritance that is waited
    /// for), or [`NONE`].
    pub owner: Tid,
    /// Recursion count (mutex), readers (rwlock), threads expected (barrier), semaphores (SysV set), messages (queue).
    pub count: u32,
    /// Value (semaphore), arrived (barrier), done (once), announced writers (rwlock), bytes
    /// (message queue).
    pub value: i32,
    /// First of the semaphore values (SysV set); first read hold (rwlock).
    pub extra: u32,
    /// First thread of the queue of waiters, linked by `Thread::queue_next`, ordered by thread index.
    pub waiters: Tid,
    /// Number of waiters in the queue.
    pub n_waiters: u32,
    /// Next object in the hash bucket.
    pub hash_next: ObjId,
    /// Next object of the same private space.
    pub space_next: ObjId,
    /// The thread that used it last while it was its own, or [`NONE`]; see `sharing`.
    pub user: Tid,
    /// What is taken for granted of it.
    pub sharing: Sharing,
    pad: [u8; 3],
    /// `World::ops` at its last use by `user`.
    pub used_at: u64,
}

impl World {
    /// The object at `key`, if known.
    pub fn find(&self, key: Key) -> Option<ObjId> {
        let mut at = self.buckets[key.bucket()];
        while self.objects.contains(at) {
            let object = &self.objects[at];
            if object.key == key {
                return Some(at);
            }
            at = object.hash_next;
        }
        None
    }

    /// The object at `key`, made with `init` if it is new. `None`: the table is full.
    pub fn find_or_make(&mut self, key: Key, init: impl FnOnce(&mut Object)) -> Option<ObjId> {
        match self.find(key) {
            Some(id) => Some(id),
            None => self.make(key, init),
        }
    }

    /// A new object at `key`; one that is there already is replaced by its next generation (same index).
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
                new.flags = old.flags;
                new.generation = old.generation;
                new.count = old.count;
                new.value = old.value;
                new.owner = if old.owner == forker { copy } else { old.owner };
                // The state of what the forker used is settled; of the rest, it depends on how far the user is.
                new.user = if old.user == forker { NONE } else { old.user };
                new.used_at = old.used_at;
            }) else {
                return false;
            };
            if old.key.kind == ObjKind::RWLOCK && !self.copy_holds(old.extra, id, forker, copy) {
                return false;
            }
            // Nobody in the child waits for it.
            if old.key.kind == ObjKind::FUTEX {
                (self.objects[id].owner, self.objects[id].flags) = (NONE, old.flags & !OWNER_DEAD);
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

    /// There are robust mutexes.
    #[inline]
    pub fn note_robust(&mut self) {
        self.any_robust = true;
    }
}
