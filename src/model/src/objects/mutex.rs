//! Mutexes: normal, recursive, errorcheck, robust; and what owning one means to condition variables.

use super::row::*;
use crate::state::{
    Misuse, ObjKind, Object, DESTROYED, LEAVES_SEVERAL, MUTEX_ERRORCHECK, MUTEX_NORMAL, MUTEX_RECURSIVE, MUTEX_TYPE,
    NOT_RECOVERABLE, OWNER_DEAD, ROBUST,
};

kinds! {
    /// Acquire a mutex.
    MUTEX_LOCK = 16, "mutex_lock" {
        operands: Operands::Objects,
        enabled: blocks(
            |w, t, op| u32::from(w.mutex_ready(t, op.obj) || op.has(TRY) || w.may_time_out(op)), |q| q.lock_is_free(q.act.op.obj),
        ),
        perform: |w, t, op, _| w.mutex_lock_perform(t, op),
        records: OF_MUTEX, cells: acquires, follows: |a, b| releases(b, a.op.obj), blocks: MAY_BLOCK,
        role: Role::Acquires(Lock::Mutex), channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Passes(goes_through), idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::Three("pthread_mutex_lock", "pthread_mutex_trylock", "pthread_mutex_timedlock"), arguments: OBJECT,
            outcome: Outcome::Nothing, waits: FOR_OWNER, identity: BY_OBJECTS },
    }
    /// Release a mutex.
    MUTEX_UNLOCK = 17, "mutex_unlock" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: |w, t, op, _| w.mutex_unlock_perform(t, op),
        records: OF_MUTEX, cells: ON_OBJECTS, follows: NOBODY, blocks: GIVES,
        role: Role::Releases(Lock::Mutex), channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Passes(goes_through), idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(Call::One("pthread_mutex_unlock"), OBJECT),
    }
    /// Destroy a mutex.
    MUTEX_DESTROY = 18, "mutex_destroy" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: |w, t, op, _| w.mutex_destroy_perform(t, op),
        records: OF_MUTEX, cells: ON_OBJECTS, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::Destroys, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Passes(goes_through), idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(Call::One("pthread_mutex_destroy"), OBJECT),
    }
}

/// 1 + the owner of the mutex.
const OF_MUTEX: Records = Records::owner(|w, _, op| w.mutex_state(op.obj)).looking(|q| q.lock_state(q.act.op.obj), 0);

/// [`Row::cells`] of an acquire (Figure 3): while the lock is owned the owner may acquire it again, and all others fail or wait.
pub(crate) fn acquires(act: &Act, _: Effects, cells: &mut Footprint) {
    let fails = act.state != 0 && !owns(act) && act.gives_up();
    cells.touch_all(act, if fails { How::Looks } else { How::Acquires { owned: act.state != 0 } });
}

/// `b` releases the mutex or spin lock `m`, which its thread owns.
pub(crate) fn releases(b: &Act, m: ObjId) -> bool {
    match b.op.kind.row().role {
        Role::Releases(Lock::Mutex) => b.op.obj == m && owns(b),
        Role::WaitsOn => b.op.obj2 == m && owns(b),
        _ => false,
    }
}

/// The thread owns the lock that is recorded with the operation, which is none for reading and writing.
pub(crate) fn owns(a: &Act) -> bool {
    a.state == a.tid as i64 + 1
}

impl World {
    /// 1 + the owner of a mutex; 0 if anybody would get through.
    pub(crate) fn mutex_state(&self, m: ObjId) -> i64 {
        let mutex = &self.objects[m];
        if mutex.flags & DESTROYED != 0 {
            return 0;
        }
        mutex.owner.wrapping_add(1) as i64
    }

    /// True if a lock operation of `t` on mutex `m` would return at once, with or without the mutex.
    pub(crate) fn mutex_ready(&self, t: Tid, m: ObjId) -> bool {
        let mutex = &self.objects[m];
        mutex.owner == NONE
            || mutex.flags & DESTROYED != 0
            || mutex.owner == t && matches!(mutex.flags & MUTEX_TYPE, MUTEX_RECURSIVE | MUTEX_ERRORCHECK)
    }

    pub(crate) fn mutex_lock_perform(&mut self, t: Tid, op: &Op) -> Applied {
        if self.objects[op.obj].flags & DESTROYED != 0 && self.misuse(t, op.obj, Misuse::USE_DESTROYED) {
            return Applied::Ended;
        }
        if self.mutex_ready(t, op.obj) {
            return Applied::Done(self.mutex_acquire(t, op.obj, op.has(TRY)));
        }
        Applied::Done(if op.has(TRY) { errno::EBUSY } else { errno::ETIMEDOUT })
    }

    /// Acquires a mutex that is ready for `t`; gives 0 or minus an error number.
    pub(crate) fn mutex_acquire(&mut self, t: Tid, m: ObjId, try_only: bool) -> i64 {
        let mutex = &mut self.objects[m];
        if mutex.flags & DESTROYED != 0 {
            return errno::EINVAL;
        }
        if mutex.flags & NOT_RECOVERABLE != 0 && mutex.owner == NONE {
            // glibc's pthread_mutex_trylock keeps what it has just taken, and nobody can give it back.
            if try_only {
                mutex.owner = t;
            }
            return errno::ENOTRECOVERABLE;
        }
        if mutex.owner == t {
            return match mutex.flags & MUTEX_TYPE {
                MUTEX_RECURSIVE => {
                    mutex.count += 1;
                    0
                }
                MUTEX_ERRORCHECK if mutex.flags & ROBUST != 0 => errno::EDEADLK,
                _ if try_only => errno::EBUSY,
                _ => errno::EDEADLK,
            };
        }
        mutex.owner = t;
        mutex.count = 1;
        if mutex.flags & OWNER_DEAD != 0 {
            errno::EOWNERDEAD
        } else {
            0
        }
    }

    pub(crate) fn mutex_unlock_perform(&mut self, t: Tid, op: &Op) -> Applied {
        let mutex = self.objects[op.obj];
        if mutex.flags & DESTROYED != 0 && self.misuse(t, op.obj, Misuse::USE_DESTROYED) {
            return Applied::Ended;
        }
        if mutex.owner != t || mutex.flags & NOT_RECOVERABLE != 0 {
            let checked = mutex.flags & ROBUST != 0 || mutex.flags & MUTEX_TYPE != MUTEX_NORMAL;
            if checked {
                return Applied::Done(errno::EPERM);
            }
            let what = if mutex.owner == NONE { Misuse::UNLOCK_FREE } else { Misuse::UNLOCK_FOREIGN };
            if self.misuse(t, op.obj, what) {
                return Applied::Ended;
            }
        }
        self.mutex_release(op.obj);
        Applied::Done(0)
    }

    /// Takes back one level of ownership.
    pub(crate) fn mutex_release(&mut self, m: ObjId) {
        let mutex = &mut self.objects[m];
        mutex.count = mutex.count.saturating_sub(1);
        if mutex.count == 0 {
            let owner = core::mem::replace(&mut mutex.owner, NONE);
            if mutex.flags & OWNER_DEAD != 0 {
                mutex.flags = mutex.flags & !OWNER_DEAD | NOT_RECOVERABLE;
            }
            self.lets_one_go(owner, m);
        }
    }

    pub(crate) fn mutex_destroy_perform(&mut self, t: Tid, op: &Op) -> Applied {
        let mutex = self.objects[op.obj];
        if mutex.flags & DESTROYED != 0 && self.misuse(t, op.obj, Misuse::USE_DESTROYED) {
            return Applied::Ended;
        }
        if mutex.owner != NONE && mutex.flags & NOT_RECOVERABLE == 0 {
            if self.misuse(t, op.obj, Misuse::DESTROY_BUSY) {
                return Applied::Ended;
            }
            return Applied::Done(errno::EBUSY);
        }
        self.objects[op.obj].flags |= DESTROYED;
        Applied::Done(0)
    }

    /// pthread_mutex_consistent by `t`: not a visible operation, only the owner may do it. Gives 0 or minus an error number.
    pub fn mutex_consistent(&mut self, t: Tid, m: ObjId) -> i64 {
        let mutex = &mut self.objects[m];
        if mutex.flags & ROBUST == 0 || mutex.flags & OWNER_DEAD == 0 || mutex.owner != t {
            return errno::EINVAL;
        }
        mutex.flags &= !OWNER_DEAD;
        0
    }

    /// True if `t` owns a robust mutex, or a futex with priority inheritance that others wait for.
    pub fn holds_robust(&self, t: Tid) -> bool {
        let owned = |o: &Object| {
            let robust = o.key.kind == ObjKind::MUTEX && o.flags & ROBUST != 0 && o.flags & NOT_RECOVERABLE == 0;
            o.owner == t && (robust || o.key.kind == ObjKind::FUTEX)
        };
        self.any_robust && self.objects.as_slice().iter().any(owned)
    }

    /// The owner of robust mutexes is gone: the next to lock them is told so.
    pub(crate) fn orphan_mutexes(&mut self, t: Tid) {
        if !self.any_robust {
            return;
        }
        self.pi_owner_died(t);
        let mut left = 0;
        for mutex in self.objects.as_mut_slice() {
            let held = mutex.owner == t && mutex.flags & NOT_RECOVERABLE == 0;
            if held && mutex.key.kind == ObjKind::MUTEX && mutex.flags & ROBUST != 0 {
                mutex.owner = NONE;
                mutex.count = 0;
                mutex.flags |= OWNER_DEAD;
                left += 1;
            }
        }
        if left > 1 && self.live.len > 1 {
            self.never_comes(LEAVES_SEVERAL);
        }
    }
}
