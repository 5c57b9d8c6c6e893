//! Wake-ups that are lost. In libc who gives back a semaphore, mutex or read-write lock wakes one of those who sleep for it, and that one takes it
//! when it runs (nptl/sem_post.c, nptl/lowlevellock.h: a `futex_wake` of one). If it never comes to that, since its process is killed, its handler
//! does not return, or it is cancelled, then the others sleep on beside something that is free, until somebody gives it back once more. A wait
//! that has been woken fails neither at its deadline nor with EINTR: the kernel tells it that it was woken (kernel/futex/waitwake.c, `futex_wait`).
//! Locks that the kernel knows (robust, or with priority inheritance) it gives to the next.
//!
//! Here whoever waits takes what is free, and that one has begun to wait before another one gives back is no step. So it is named where one who may
//! have been woken leaves, and then another one takes the object that may have slept all the while. The two depend on each other, as they are on one object.

use super::row::*;
use crate::state::{
    ObjKind, ThreadState, DESTROYED, GHOSTS, INHERITS, ROBUST, WAKE_GONE, WAKE_HELD, WAKE_LOST, WAKE_MISSED,
};

/// In [`Object::waker`]: several threads.
const SEVERAL: u32 = u32::MAX;

impl World {
    /// `t` has made `id` free for one of those who sleep for it.
    pub(crate) fn lets_one_go(&mut self, t: Tid, id: ObjId) {
        let object = &mut self.objects[id];
        let name = t.wrapping_add(1);
        // Who gave a semaphore back last is no matter, as the two commute; so it is who has, since nothing was left of it.
        let several = object.key.kind == ObjKind::SEM && object.waker != 0 && object.waker != name;
        object.waker = if several { SEVERAL } else { name };
    }

    /// Nothing is left of semaphore `id`: who was woken sleeps again, or will.
    pub(crate) fn all_taken(&mut self, id: ObjId) {
        let object = &mut self.objects[id];
        object.flags &= !(WAKE_GONE | WAKE_HELD);
        object.waker = 0;
    }

    /// `t` has made it free itself. Where states are told apart nobody counts as that one: who was the last is no part of a state.
    fn made_free_by(&self, waker: u32, t: Tid) -> bool {
        waker == t + 1 && !self.timeless
    }

    /// What `op` of `t` sleeps for in libc, where one is woken at a time.
    fn sleeps_for(&self, t: Tid, op: &Op) -> Option<ObjId> {
        let id = match op.kind.row().role {
            Role::Takes => op.obj,
            Role::Acquires(Lock::Mutex | Lock::Again | Lock::Read | Lock::Write | Lock::Announced) => op.obj,
            Role::Reacquires if self.threads[t].woken => op.obj2,
            _ => return None,
        };
        let object = self.objects.get(id)?;
        let known = object.key.kind == ObjKind::MUTEX && object.flags & (ROBUST | INHERITS) != 0;
        (!op.has(TRY) && !known && object.flags & DESTROYED == 0).then_some(id)
    }

    /// What the pending operation of `t` sleeps for is free, and was made so by another thread: `t` may have been woken for it.
    fn may_be_woken_for(&self, t: Tid) -> Option<ObjId> {
        let op = &self.threads[t].pending;
        let made_free = |id: ObjId| {
            let object = &self.objects[id];
            object.waker != 0
                && !self.made_free_by(object.waker, t)
                && match object.key.kind {
                    ObjKind::SEM => object.value > 0,
                    ObjKind::MUTEX => object.owner == NONE,
                    _ => self.choices_of(t, &Op { flags: op.flags & !TIMED, ..*op }) > 0,
                }
        };
        self.sleeps_for(t, op).filter(|&id| made_free(id))
    }

    /// `t` goes away from its wait, for good (`WAKE_GONE`) or while a handler runs (`WAKE_HELD`). False: that is nothing to others.
    fn leaves(&mut self, t: Tid, how: u32) -> bool {
        let Some(id) = self.may_be_woken_for(t) else { return false };
        let at = self.ops + 1;
        let object = &mut self.objects[id];
        object.flags |= how;
        object.left_at = at;
        self.any_ghosts = true;
        true
    }

    /// `t` takes a signal in the place of its pending operation.
    pub(crate) fn leaves_for_handler(&mut self, t: Tid) {
        self.threads[t].left_woken = self.leaves(t, WAKE_HELD);
    }

    /// `t` heeds a request to end it in the place of its pending operation.
    pub(crate) fn leaves_for_good(&mut self, t: Tid) {
        self.leaves(t, WAKE_GONE);
    }

    /// A fatal signal is on its way to process `p`. Those of its threads that sleep already may still be woken until they notice; who comes to a
    /// wait later does not sleep any more.
    pub(crate) fn all_are_struck(&mut self, p: Pid) {
        for at in 0..self.live.len {
            let t = self.live[at];
            let thread = &self.threads[t];
            if thread.pid == p && thread.state == ThreadState::PARKED && self.sleeps_for(t, &thread.pending).is_some() {
                self.threads[t].left_woken = true;
                self.leaves(t, WAKE_GONE);
            }
        }
    }

    /// They notice.
    pub(crate) fn all_leave(&mut self, p: Pid) {
        for at in 0..self.live.len {
            let t = self.live[at];
            if self.threads[t].pid == p && self.threads[t].left_woken {
                self.leaves(t, WAKE_GONE);
            }
        }
    }

    /// `t` is over, by itself or with its process.
    pub(crate) fn leaves_at_end(&mut self, t: Tid) {
        let thread = &self.threads[t];
        let (op, left) = (thread.pending, thread.left_woken);
        let struck = self.procs[thread.pid].dying != 0;
        if left && !struck {
            self.does_not_return(t, &op);
        }
        if self.threads[t].state != ThreadState::PARKED {
            return;
        }
        if left || !struck {
            self.leaves(t, WAKE_GONE);
        }
        // glibc counts those who wait for a read-write lock.
        let Some(id) = self.sleeps_for(t, &op).filter(|&id| self.objects[id].key.kind == ObjKind::RWLOCK) else {
            return;
        };
        let waits = self.choices_of(t, &Op { flags: op.flags & !TIMED, ..op }) == 0;
        if waits || self.may_be_woken_for(t).is_some() {
            self.objects[id].flags |= GHOSTS;
            self.any_ghosts = true;
        }
    }

    /// `t` does not return from its handler to `op`, for which it may have been woken.
    fn does_not_return(&mut self, t: Tid, op: &Op) {
        let Some(id) = self.sleeps_for(t, op) else { return };
        if self.objects[id].flags & WAKE_MISSED != 0 {
            self.never_comes(WAKE_LOST);
        }
        if self.objects[id].flags & WAKE_HELD != 0 {
            self.objects[id].flags |= WAKE_GONE;
        }
    }

    /// `t` returns from its handler to `op`, for which it may have been woken.
    pub(crate) fn returns_to(&mut self, t: Tid, op: &Op) {
        if let Some(id) = self.sleeps_for(t, op) {
            self.objects[id].flags &= !(WAKE_HELD | WAKE_MISSED);
        }
    }

    /// The handlers of `t` from the `left`-th to the `n`-th are left and do not return to what they interrupted.
    pub(crate) fn handlers_left(&mut self, t: Tid, left: usize, n: usize) {
        for at in left..n {
            let over = self.threads[t].handlers[at];
            if over.woken {
                self.does_not_return(t, &over.op);
            }
        }
    }

    /// `t` is about to wait in a handler: meanwhile it does not take what it may have been woken for.
    pub(crate) fn waits_in_handler(&mut self, t: Tid) {
        let thread = &self.threads[t];
        let n = usize::from(thread.n_handlers).min(thread.handlers.len());
        if thread.handlers[..n].iter().any(|h| h.woken) && self.choices(t) == 0 {
            self.handlers_left(t, 0, n);
        }
    }

    /// `t` takes, or waits for, what `op` is on. It may have slept since before another one was woken who has left.
    pub(crate) fn may_sleep_on(&mut self, t: Tid, op: &Op) {
        let Some(id) = self.sleeps_for(t, op) else { return };
        let object = self.objects[id];
        let thread = &self.threads[t];
        if self.made_free_by(object.waker, t) || thread.born >= object.left_at || self.procs[thread.pid].dying != 0 {
            return;
        }
        if object.flags & WAKE_GONE != 0 {
            self.never_comes(WAKE_LOST);
        }
        if object.flags & WAKE_HELD != 0 {
            self.objects[id].flags |= WAKE_MISSED;
        }
    }
}
