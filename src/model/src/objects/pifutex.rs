//! Futexes with priority inheritance (FUTEX_LOCK_PI, FUTEX_TRYLOCK_PI, FUTEX_UNLOCK_PI): locks whose word the program and
//! the kernel change together (kernel/futex/pi.c).
//!
//! Who finds the word 0 takes the lock by itself, and nothing of that is seen here; who finds it taken asks the kernel, which
//! reads the owner from the word and from then on gives the lock from hand to hand, in the order of those who wait: no thread
//! here has a real-time priority. `Object::owner` is the owner as long as somebody waits. Whoever performs an operation puts
//! the word into `Thread::out[0]` before, and back into memory after it.
//!
//! The kernel refuses a wait that would close a circle of such locks. One that other locks take part in it does not see.

use super::row::*;
use crate::state::{ObjKind, ThreadState, OWNER_DEAD};

kinds! {
    /// FUTEX_LOCK_PI, FUTEX_TRYLOCK_PI: take the lock, or find out for whom to wait. Everything depends on it, as on the two below: the
    /// word of the lock changes in the program's own code too, between operations of whatever kind.
    FUTEX_LOCK_PI = 115, "futex_lock_pi" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: |w, t, op, _| w.futex_lock_pi_perform(t, op),
        records: Records::NOTHING, cells: WIDE, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Looks, unproven: |_| Some(Unproven::PiFutex),
        shown: Shown::passes(Call::Three("futex_lock_pi", "futex_trylock_pi", "futex_lock_pi"), OBJECT),
    }
    /// Second half of [`Kind::FUTEX_LOCK_PI`]; `arg` is the place among those who wait, who are given the lock in that order.
    FUTEX_PI_WAIT = 116, "futex_lock_pi (waiting)" {
        operands: Operands::Objects,
        enabled: blocks(|w, t, op| u32::from(w.objects[op.obj].owner == t || w.may_time_out(op)), |_| Answer::Unknown),
        perform: |w, t, op, _| w.futex_pi_wait_perform(t, op),
        records: Records::NOTHING, cells: WIDE, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::AwaitsOwner, channels: Channels::None, signals: Signals { taken: Taken::Sleeps(Leave::Inheritance), ..Signals::NEVER },
        polls: Polls::Errors, alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::Three("futex_lock_pi", "futex_trylock_pi", "futex_lock_pi"), arguments: OBJECT,
            outcome: Outcome::Returns, waits: FOR_OWNER, identity: BY_OBJECTS },
    }
    /// FUTEX_UNLOCK_PI.
    FUTEX_UNLOCK_PI = 117, "futex_unlock_pi" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: |w, t, op, _| w.futex_unlock_pi_perform(t, op),
        records: Records::NOTHING, cells: WIDE, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Looks, unproven: PROVEN, shown: Shown::passes(Call::Row, OBJECT),
    }
}

/// The owner in the word.
pub const OWNER: u32 = 0x3fff_ffff;
/// In the word: the kernel has to be told when the lock is released.
pub const WAITERS: u32 = 1 << 31;
/// In the word: an owner died.
pub const OWNER_DIED: u32 = 1 << 30;

impl World {
    fn pi_word(&self, t: Tid) -> u32 {
        self.threads[t].out[0] as u32
    }

    fn pi_set_word(&mut self, t: Tid, word: u32) {
        self.threads[t].out[0] = word.into();
    }

    fn pi_id(&self, t: Tid) -> u32 {
        self.threads[t].vtid as u32
    }

    /// Waits in the kernel for the lock `obj`.
    fn pi_waits(&self, t: Tid, obj: ObjId) -> bool {
        let thread = &self.threads[t];
        thread.state == ThreadState::PARKED && thread.pending.kind == Kind::FUTEX_PI_WAIT && thread.pending.obj == obj
    }

    /// Who gets the lock after `t`.
    fn pi_next(&self, t: Tid, obj: ObjId) -> Option<Tid> {
        let waiting = self.live.as_slice().iter().copied().filter(|&u| u != t && self.pi_waits(u, obj));
        waiting.min_by_key(|&u| self.threads[u].pending.arg)
    }

    /// True if `owner` waits, through such locks alone, for `t`.
    fn pi_circle(&self, owner: Tid, t: Tid) -> bool {
        let mut at = owner;
        for _ in 0..self.live.len {
            if at == t {
                return true;
            }
            let Some(thread) = self.threads.get(at) else { return false };
            if thread.pending.kind != Kind::FUTEX_PI_WAIT || thread.state != ThreadState::PARKED {
                return false;
            }
            let next = self.objects[thread.pending.obj].owner;
            if next == at {
                return false;
            }
            at = next;
        }
        false
    }

    /// Takes the lock if it is free, else finds its owner and waits for it. Gives 0 or minus an error number.
    pub(crate) fn futex_lock_pi_perform(&mut self, t: Tid, op: &Op) -> Applied {
        let (word, own, lock) = (self.pi_word(t), self.pi_id(t), self.objects[op.obj]);
        if word & OWNER == own {
            return Applied::Done(errno::EDEADLK);
        }
        if lock.owner == NONE && word & OWNER == 0 {
            self.pi_set_word(t, own | word & OWNER_DIED);
            return Applied::Done(0);
        }
        let owner = match lock.owner {
            NONE => self.live.as_slice().iter().copied().find(|&u| self.pi_id(u) == word & OWNER),
            // The program has changed the word of a lock that the kernel knows.
            known if lock.flags & OWNER_DEAD == 0 && self.pi_id(known) != word & OWNER => {
                return Applied::Done(errno::EINVAL);
            }
            known => Some(known),
        };
        self.pi_set_word(t, word | WAITERS);
        let Some(owner) = owner else { return Applied::Done(errno::ESRCH) };
        if op.has(TRY) {
            return Applied::Done(errno::EAGAIN);
        }
        if self.pi_circle(owner, t) {
            return Applied::Done(errno::EDEADLK);
        }
        self.any_robust = true;
        let lock = &mut self.objects[op.obj];
        lock.owner = owner;
        lock.count += 1;
        let place = i64::from(lock.count);
        self.park(t, Op { kind: Kind::FUTEX_PI_WAIT, arg: place, ..*op });
        self.check_cycle(t);
        Applied::Parked
    }

    /// It has been given the lock, or gives up.
    pub(crate) fn futex_pi_wait_perform(&mut self, t: Tid, op: &Op) -> Applied {
        let lock = &mut self.objects[op.obj];
        let mine = lock.owner == t;
        let died = if mine && lock.flags & OWNER_DEAD != 0 { OWNER_DIED } else { 0 };
        if mine {
            lock.flags &= !OWNER_DEAD;
        }
        self.pi_leave(t, op.obj);
        if !mine {
            return Applied::Done(errno::ETIMEDOUT);
        }
        self.pi_set_word(t, self.pi_id(t) | WAITERS | died);
        Applied::Done(0)
    }

    /// `t` waits no longer. Of a lock that nobody waits for nothing is known.
    pub(crate) fn pi_leave(&mut self, t: Tid, obj: ObjId) {
        if self.pi_next(t, obj).is_none() {
            self.objects[obj].owner = NONE;
        }
    }

    /// Gives the lock to who has waited longest, or frees it.
    pub(crate) fn futex_unlock_pi_perform(&mut self, t: Tid, op: &Op) -> Applied {
        if self.pi_word(t) & OWNER != self.pi_id(t) {
            return Applied::Done(errno::EPERM);
        }
        let next = self.pi_next(t, op.obj);
        self.objects[op.obj].owner = next.unwrap_or(NONE);
        self.pi_set_word(t, next.map_or(0, |next| self.pi_id(next) | WAITERS));
        Applied::Done(0)
    }

    /// `t` is over: what others wait for that it owns goes to the next of them.
    pub(crate) fn pi_owner_died(&mut self, t: Tid) {
        for obj in 0..self.objects.len {
            let lock = &self.objects[obj];
            if lock.owner != t || lock.key.kind != ObjKind::FUTEX {
                continue;
            }
            let next = self.pi_next(t, obj);
            let lock = &mut self.objects[obj];
            lock.owner = next.unwrap_or(NONE);
            lock.flags = if next.is_some() { lock.flags | OWNER_DEAD } else { lock.flags & !OWNER_DEAD };
        }
    }
}
