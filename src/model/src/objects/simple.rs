//! Spin locks, barriers, once controls; initialization of what is an object already.

use super::cond::{others_wait, woken, WAITERS};
use super::mutex::{acquires, owns};
use super::question::Did;
use super::row::*;
use crate::base::RESUMED;
use crate::state::{Misuse, Order, DESTROYED, NEVER_FREE, SOME_ONCE};

kinds! {
    /// An object is initialized where there is one: what it was is over, for whoever uses it meanwhile, too.
    SET_UP = 135, "set_up" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: DONE,
        records: Records::NOTHING, cells: ON_OBJECTS, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Passes(goes_through), idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(Call::One("init"), OBJECT),
    }
    /// Acquire a spin lock.
    SPIN_LOCK = 36, "spin_lock" {
        operands: Operands::Objects,
        enabled: blocks(|w, _, op| u32::from(w.spin_state(op.obj) == 0 || op.has(TRY)), |q| q.lock_is_free(q.act.op.obj)),
        perform: |w, t, op, _| w.spin_lock_perform(t, op),
        records: OF_SPIN, cells: acquires, follows: |a, b| {
            b.op.kind.row().role == Role::Releases(Lock::Spin) && b.op.obj == a.op.obj && owns(b)
        }, blocks: MAY_BLOCK,
        role: Role::Acquires(Lock::Spin), channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Passes(goes_through), idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::Three("pthread_spin_lock", "pthread_spin_trylock", "pthread_spin_lock"), arguments: OBJECT,
            outcome: Outcome::Nothing, waits: FOR_OWNER, identity: BY_OBJECTS },
    }
    /// Release a spin lock.
    SPIN_UNLOCK = 37, "spin_unlock" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: |w, t, op, _| w.spin_unlock_perform(t, op),
        records: OF_SPIN, cells: ON_OBJECTS, follows: NOBODY, blocks: GIVES,
        role: Role::Releases(Lock::Spin), channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Passes(goes_through), idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(Call::One("pthread_spin_unlock"), OBJECT),
    }
    /// Arrive at a barrier; a variant if nobody looks at which of the threads is told that it is the last.
    BARRIER_WAIT = 40, "barrier_wait" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: |w, t, op, _| w.barrier_wait_perform(t, op),
        records: Records::number(|w, _, op| w.round_of(op.obj)), cells: |act, _, cells| {
            cells.touch_all(act, if act.state > 0 { How::Arrives { round: act.state } } else { How::WakesAndMore });
        }, follows: NOBODY, blocks: GIVES,
        role: Role::Arrives, channels: Channels::None, signals: Signals { taken: Taken::Queues, ..Signals::NEVER }, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(Call::One("pthread_barrier_wait"), OBJECT),
    }
    /// Second half of [`Kind::BARRIER_WAIT`] for all but the last to arrive; for all, where their order is free: then `arg` is the round.
    BARRIER_WAKE = 41, "barrier_wake" {
        operands: Operands::Objects,
        enabled: blocks(|w, t, _| u32::from(w.threads[t].woken), |q| q.all_arrive()), perform: DONE,
        records: Records::NOTHING, cells: |act, _, cells| {
            cells.touch_all(act, if act.op.arg > 0 { How::Leaves { round: act.op.arg } } else { woken(act) });
        }, follows: |a, b| {
            !a.op.has(RESUMED) && b.op.kind == Kind::BARRIER_WAIT && b.op.obj == a.op.obj
        }, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals { taken: Taken::KeepsPlace, ..Signals::NEVER }, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::One("pthread_barrier_wait"), arguments: OBJECT, outcome: Outcome::Returns, waits: Some(|world, _, op, words| {
            let Some(barrier) = world.objects.get(op.obj) else { return };
            say![words, Thing::Object(op.obj), ", where ", barrier.n_waiters, " of ", barrier.count, " have arrived"];
        }), identity: BY_OBJECTS },
    }
    /// Destroy a barrier.
    BARRIER_DESTROY = 42, "barrier_destroy" {
        operands: Operands::Objects, enabled: blocks(|w, _, op| w.unused_choices(op), |_| Answer::Unknown),
        perform: |w, t, op, _| w.destroy_perform(t, op),
        records: WAITERS, cells: ON_OBJECTS, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::One("pthread_barrier_destroy"), arguments: OBJECT, outcome: Outcome::Nothing, waits: Some(others_wait), identity: BY_OBJECTS },
    }
    /// Enter a once control: run the initializer or wait for the one that does.
    ONCE = 44, "once" {
        operands: Operands::Objects,
        enabled: blocks(|w, _, op| u32::from(w.objects[op.obj].owner == NONE), |q| q.once_is_free()),
        perform: |w, t, op, _| w.once_perform(t, op),
        records: RUNNER, cells: |act, _, cells| {
            // The initializer may end with any transition of the thread that runs it.
            cells.touch(Cell::Initializers, How::Looks);
            cells.touch_all(act, if act.state == HAS_BEEN { How::Looks } else { How::Writes });
        }, follows: |a, b| {
            let next = b.op.kind == Kind::ONCE && b.op.obj == a.op.obj;
            a.state == b.tid as i64 + 1 && b.op.kind != Kind::CANCEL && !next
        }, blocks: MAY_BLOCK,
        role: Role::AwaitsOwner, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Passes(goes_through), idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::One("pthread_once"), arguments: OBJECT, outcome: Outcome::Nothing, waits: FOR_OWNER, identity: BY_OBJECTS },
    }
}

/// 1 + the owner, 0 if anybody would get through, [`BY_NOBODY`].
const OF_SPIN: Records = Records {
    renamed: |act, to| {
        if act.state != BY_NOBODY {
            act.state = i64::from(to.owner(act.state as u32));
        }
    },
    ..Records::number(|w, _, op| w.spin_state(op.obj)).looking(|q| q.lock_state(q.act.op.obj), 0)
};

/// It is locked, and nobody has locked it.
const BY_NOBODY: i64 = 1 << 32;

/// 1 + the thread that runs the initializer, 0 if none does yet; [`HAS_BEEN`].
const RUNNER: Records = Records {
    renamed: |act, to| {
        if act.state != HAS_BEEN {
            act.state = i64::from(to.owner(act.state as u32));
        }
    },
    ..Records::number(|w, _, op| w.once_state(op.obj)).looking(|q| q.once_state().unwrap_or(0), 0)
};

/// The initializer has been run.
const HAS_BEEN: i64 = 1 << 32;
/// A thread that is not known runs it.
const SOMEBODY: i64 = u32::MAX as i64;

impl Question<'_> {
    fn once_is_free(&self) -> Answer {
        match self.once_state() {
            None => Answer::Unknown,
            Some(state) => Answer::from(state == 0 || state == HAS_BEEN),
        }
    }

    /// A thread leaves a barrier once it has its wake-up; where the order of arrivals is free, all of its round have arrived.
    fn all_arrive(&self) -> Answer {
        let (obj, round) = (self.act.op.obj, self.act.op.arg);
        let arrives = |d: &Did| d.act.op.kind == Kind::BARRIER_WAIT && d.act.op.obj == obj && d.act.state == round;
        Answer::from(self.woken() && !(round > 0 && self.dropped.iter().any(arrives)))
    }

    /// See [`RUNNER`]; `None`: it is not told. The initializer may end with any transition of the thread that runs it.
    fn once_state(&self) -> Option<i64> {
        let obj = self.act.op.obj;
        let tells = |d: &Did| match d.act.once {
            _ if d.act.op.names(obj) => Some(Some(d.act.state)),
            SOME_ONCE if d.before => Some(None),
            once if d.before && u32::from(once) == obj + 1 => Some(Some(SOMEBODY)),
            _ => None,
        };
        self.dropped.iter().find_map(tells).unwrap_or(Some(self.act.state))
    }
}

/// What one of the threads that meet at a barrier is told; the others get 0.
const SERIAL_THREAD: i64 = 1;

/// `value` of a once control whose initializer has run.
const HAS_RUN: i32 = 2;

impl World {
    pub(crate) fn spin_lock_perform(&mut self, t: Tid, op: &Op) -> Applied {
        if self.objects[op.obj].flags & NEVER_FREE != 0 && self.misuse(t, op.obj, Misuse::USE_DESTROYED) {
            return Applied::Ended;
        }
        if self.spin_state(op.obj) != 0 {
            return Applied::Done(errno::EBUSY);
        }
        self.objects[op.obj].owner = t;
        Applied::Done(0)
    }

    /// See [`OF_SPIN`].
    fn spin_state(&self, id: ObjId) -> i64 {
        let lock = &self.objects[id];
        match lock.flags & NEVER_FREE {
            // Who locks it is told that this is misuse.
            0 => lock.owner.wrapping_add(1) as i64,
            _ if self.allow_misuse => BY_NOBODY,
            _ => 0,
        }
    }

    pub(crate) fn spin_unlock_perform(&mut self, t: Tid, op: &Op) -> Applied {
        let owner = self.objects[op.obj].owner;
        if owner != t {
            let what = match owner {
                NONE if self.objects[op.obj].flags & NEVER_FREE != 0 => Misuse::USE_DESTROYED,
                NONE => Misuse::UNLOCK_FREE,
                _ => Misuse::UNLOCK_FOREIGN,
            };
            if self.misuse(t, op.obj, what) {
                return Applied::Ended;
            }
        }
        self.objects[op.obj].owner = NONE;
        self.objects[op.obj].flags &= !NEVER_FREE;
        Applied::Done(0)
    }

    pub(crate) fn barrier_wait_perform(&mut self, t: Tid, op: &Op) -> Applied {
        let barrier = self.objects[op.obj];
        let unusable = barrier.flags & DESTROYED != 0 || barrier.count == 0;
        if unusable && self.misuse(t, op.obj, Misuse::USE_DESTROYED) {
            return Applied::Ended;
        }
        let (round, last) = (self.round_of(op.obj), barrier.n_waiters + 1 >= barrier.count);
        if last && round == 0 {
            self.end_round(op.obj);
            return Applied::Done(SERIAL_THREAD);
        }
        // Where nobody can tell who was the last, that one does as the others do.
        self.enqueue(op.obj, t);
        self.park(t, Op { kind: Kind::BARRIER_WAKE, arg: round, ..*op });
        if last {
            self.end_round(op.obj);
        }
        Applied::Parked
    }

    fn end_round(&mut self, id: ObjId) {
        self.objects[id].value = self.objects[id].value.wrapping_add(1);
        while self.objects[id].waiters != NONE {
            self.wake(self.objects[id].waiters);
        }
    }

    /// The round of a barrier for which threads arrive now, from 1; 0: the order in which they arrive can be told.
    fn round_of(&self, id: ObjId) -> i64 {
        let barrier = &self.objects[id];
        if barrier.order == Order::FREE {
            i64::from(barrier.value) + 1
        } else {
            0
        }
    }

    /// See [`RUNNER`].
    fn once_state(&self, id: ObjId) -> i64 {
        match self.objects[id].value {
            HAS_RUN => HAS_BEEN,
            _ => self.objects[id].owner.wrapping_add(1) as i64,
        }
    }

    /// Done(0): the caller runs the initializer and then calls [`World::once_over`]. Done(1): it has been run.
    pub(crate) fn once_perform(&mut self, t: Tid, op: &Op) -> Applied {
        if self.objects[op.obj].value == HAS_RUN {
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
        self.objects[id].value = if done { HAS_RUN } else { 0 };
    }
}
