//! Condition variables. A wait is two operations: it releases the mutex and joins the waiters; once woken (timed
//! out, cancelled) it acquires the mutex again. A signal may wake any waiter: each is an alternative.

use super::mutex::releases;
use super::question::Did;
use super::row::*;
use crate::base::RESUMED;
use crate::state::{Misuse, ObjKind, CANCELLED, DESTROYED, EXPIRED, GHOSTS, MUTEX_NORMAL, MUTEX_TYPE, ROBUST, WOKEN};

kinds! {
    /// Release mutex `obj2` and wait on condition variable `obj`.
    COND_WAIT = 20, "cond_wait" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: |w, t, op, _| w.cond_wait_perform(t, op),
        records: OF_MUTEX, cells: |act, _, cells| touch_both(act, How::Waits, cells), follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::WaitsOn, channels: Channels::None, signals: Signals { taken: Taken::Queues, ..Signals::NEVER }, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: WAIT, arguments: COND_AND_MUTEX, outcome: Outcome::Queues, waits: None, identity: BY_OBJECTS },
    }
    /// Second half of [`Kind::COND_WAIT`]: woken, timed out or cancelled; acquires the mutex again.
    COND_WAKE = 21, "cond_wake" {
        operands: Operands::Objects,
        enabled: Enabled::Blocks { now: World::cond_wake_choices, before: |q| q.cond_wake(), reacquires: true },
        perform: World::cond_wake_perform,
        records: OF_MUTEX, cells: |act, _, cells| match () {
            () if passes_on(act) => touch_both(act, How::Writes, cells),
            () if late(act) => cells.touch_object(act.op.obj, woken(act)),
            () => touch_both(act, woken(act), cells),
        }, follows: |a, b| {
            // Before the wake-up it is not enabled, after it the two commute.
            !a.op.has(RESUMED) && !passes_on(a) && !late(a) && (releases(b, a.op.obj2) || wakes(b, a.op.obj) && b.op.obj2 == NONE)
        }, blocks: MAY_BLOCK,
        role: Role::Reacquires, channels: Channels::None, signals: Signals { taken: Taken::KeepsPlace, ..Signals::NEVER }, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::WORKER, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: WAIT, arguments: COND_AND_MUTEX, outcome: Outcome::Returns, waits: Some(|world, t, op, words| match world.threads[t].woken {
            true => held(world, t, op.obj2, words),
            false => say![words, Thing::Object(op.obj), " to be signalled", hopeless(world, t)],
        }), identity: BY_OBJECTS },
    }
    /// A wait that has given up at its deadline, or ([`VARIANT`](crate::op::VARIANT)) because its thread is to end, acquires the mutex `obj`
    /// again; `obj2` is the condition variable.
    COND_LATE = 25, "cond_late" {
        operands: Operands::Objects,
        enabled: Enabled::Blocks { now: |w, t, op| u32::from(w.mutex_ready(t, op.obj)), before: |q| q.lock_is_free(q.act.op.obj), reacquires: false },
        perform: |w, t, op, _| {
            let lock = w.mutex_acquire(t, op.obj, false);
            let result = if op.has(VARIANT) { errno::EINTR } else { errno::ETIMEDOUT };
            Applied::Done(if lock != 0 { lock } else { result })
        },
        records: Records::owner(|w, _, op| w.mutex_state(op.obj)), cells: |act, _, cells| cells.touch_object(act.op.obj, How::Writes), follows: |a, b| releases(b, a.op.obj), blocks: MAY_BLOCK,
        role: Role::Acquires(Lock::Again), channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::WORKER, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::One("pthread_cond_timedwait"), arguments: |op, _, words| say![words, Thing::Object(op.obj2), ", ", Thing::Object(op.obj)], outcome: Outcome::Returns, waits: Some(|world, t, op, words| held(world, t, op.obj, words)), identity: BY_OBJECTS },
    }
    /// Wake one waiter; each waiter is an alternative.
    COND_SIGNAL = 22, "cond_signal" {
        operands: Operands::Objects, enabled: Enabled::Ways(|w, _, op| w.objects[op.obj].n_waiters.max(1)),
        perform: |w, t, op, value| w.cond_signal_perform(t, op, value),
        records: WAITERS, cells: |act, _, cells| cells.touch_all(act, How::Wakes { all: false, nobody: act.state == 0, told: true }),
        follows: NOBODY, blocks: GIVES,
        role: Role::Notifies, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::One("pthread_cond_signal"), arguments: OBJECT, outcome: Outcome::Wakes(|_| 1), waits: None, identity: BY_OBJECTS },
    }
    /// Wake all waiters.
    COND_BROADCAST = 23, "cond_broadcast" {
        operands: Operands::Objects, enabled: Enabled::Always,
        perform: |w, t, op, value| w.cond_signal_perform(t, op, value),
        records: WAITERS, cells: |act, _, cells| cells.touch_all(act, How::Wakes { all: true, nobody: act.state == 0, told: true }),
        follows: NOBODY, blocks: GIVES,
        role: Role::Notifies, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::One("pthread_cond_broadcast"), arguments: OBJECT, outcome: Outcome::Wakes(|_| usize::MAX), waits: None, identity: BY_OBJECTS },
    }
    /// Destroy a condition variable; waits until nobody waits on it.
    COND_DESTROY = 24, "cond_destroy" {
        operands: Operands::Objects, enabled: blocks(|w, _, op| w.unused_choices(op), |_| Answer::Unknown),
        perform: |w, t, op, _| w.destroy_perform(t, op),
        records: WAITERS, cells: ON_OBJECTS, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::Destroys, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::One("pthread_cond_destroy"), arguments: OBJECT, outcome: Outcome::Nothing, waits: Some(others_wait), identity: BY_OBJECTS },
    }
}

const WAIT: Call = Call::Three("pthread_cond_wait", "pthread_cond_wait", "pthread_cond_timedwait");

const COND_AND_MUTEX: Arguments = |op, _, words| {
    let and = if op.obj2 == NONE { "" } else { ", " };
    say![words, Thing::Object(op.obj), and, Thing::Object(op.obj2)];
};

/// [`Shown::waits`] of what destroys that on which others wait.
pub fn others_wait(world: &World, _: Tid, op: &Op, words: &mut dyn Words) {
    let Some(object) = world.objects.get(op.obj) else { return };
    say![words, "nobody to wait on ", Thing::Object(op.obj), " any more (", object.n_waiters, " do)"];
}

/// 1 + the owner of the mutex.
const OF_MUTEX: Records = Records::owner(|w, _, op| w.mutex_state(op.obj2));
/// The number of waiters.
pub(crate) const WAITERS: Records =
    Records::number(|w, _, op| w.objects[op.obj].n_waiters as i64).looking(|q| q.waiters(), 1);

/// The condition variable in this way, the mutex in any.
fn touch_both(act: &Act, how: How, cells: &mut Footprint) {
    cells.touch_object(act.op.obj, how);
    cells.touch_object(act.op.obj2, How::Writes);
}

/// The second half of a wait that nobody has woken, and that notices its deadline or that its thread is to end: it leaves the queue,
/// and acquires the mutex in a step of its own.
fn late(act: &Act) -> bool {
    act.op.kind == Kind::COND_WAKE && act.fate & WOKEN == 0 && act.fate & (EXPIRED | CANCELLED) != 0
}

/// The second half of a wait that has been woken, and whose thread is to end: it acquires the mutex, or the request strikes before it has
/// noticed that it was woken, and another waiter gets its wake-up (glibc 2.36, nptl/pthread_cond_wait.c, __condvar_cancel_waiting).
fn passes_on(act: &Act) -> bool {
    act.op.kind == Kind::COND_WAKE && act.fate & (WOKEN | CANCELLED) == WOKEN | CANCELLED
}

/// How the second half of a wait touches the queue that it leaves: woken is woken, in every state from then on. One that a signal
/// handler has interrupted does not tell.
pub(crate) fn woken(act: &Act) -> How {
    match act.op.has(RESUMED) {
        true => How::Writes,
        false => How::Woken { given: act.fate & WOKEN != 0 },
    }
}

/// `b` gives wake-ups to those that wait on `obj`.
pub(crate) fn wakes(b: &Act, obj: ObjId) -> bool {
    match b.op.kind.row().role {
        Role::Notifies | Role::Wakes => b.op.obj == obj,
        Role::WakesBoth => b.op.obj == obj || b.op.obj2 == obj,
        _ => false,
    }
}

impl Act {
    /// It is the second half of a wait for a condition that leaves at its deadline or by a request to end, or may do so, and does not acquire
    /// the mutex yet then.
    pub fn gives_up_waiting(&self) -> bool {
        late(self) || passes_on(self)
    }
}

impl Question<'_> {
    /// How many wait on its object: without those who came with what is dropped, with those who left. Not less.
    fn waiters(&self) -> i64 {
        let obj = self.act.op.obj;
        let came = |d: &Did| match (d.found, d.act.op.kind.row().role) {
            (Some((before, after)), _) => after - before,
            _ if !d.act.op.names(obj) => 0,
            (_, Role::WaitsOn) => 1,
            (_, Role::Notifies) if d.act.op.kind == Kind::COND_SIGNAL => -d.act.state.min(1),
            (_, Role::Notifies) => -d.act.state,
            _ => -i64::from(d.act.fate & WOKEN == 0 || passes_on(d.act)),
        };
        (self.act.state - self.dropped.iter().map(came).sum::<i64>()).max(0)
    }

    /// One that gives up needs no mutex.
    fn cond_wake(&self) -> Answer {
        match self.is_cancelled() || self.has_expired() && !self.woken() {
            true => Answer::Yes,
            false => self.lock_is_free(self.act.op.obj2),
        }
    }
}

impl World {
    pub(crate) fn cond_wait_perform(&mut self, t: Tid, op: &Op) -> Applied {
        if self.objects[op.obj].flags & DESTROYED != 0 && self.misuse(t, op.obj, Misuse::USE_DESTROYED) {
            return Applied::Ended;
        }
        let mutex = self.objects[op.obj2];
        if mutex.owner != t {
            if mutex.flags & MUTEX_TYPE != MUTEX_NORMAL || mutex.flags & ROBUST != 0 {
                return Applied::Done(errno::EPERM);
            }
            if self.misuse(t, op.obj2, Misuse::WAIT_UNOWNED) {
                return Applied::Ended;
            }
        }
        self.mutex_release(op.obj2);
        self.enqueue(op.obj, t);
        self.park(t, Op { kind: Kind::COND_WAKE, ..*op });
        Applied::Parked
    }

    /// See [`late`].
    fn leaves_late(&self, t: Tid, op: &Op) -> bool {
        op.kind == Kind::COND_WAKE && !self.threads[t].woken && (self.may_time_out(op) || self.cancelled(t, op))
    }

    /// It has been woken, and gets the mutex.
    fn gets_through(&self, t: Tid, op: &Op) -> bool {
        self.threads[t].woken && self.mutex_ready(t, op.obj2)
    }

    /// See [`passes_on`]: to how many it could pass its wake-up on, at least 1 if it does.
    fn ways_to_pass_on(&self, t: Tid, op: &Op) -> u32 {
        match self.threads[t].woken && self.cancelled(t, op) {
            true => self.objects[op.obj].n_waiters.max(1),
            false => 0,
        }
    }

    pub(crate) fn cond_wake_choices(&self, t: Tid, op: &Op) -> u32 {
        u32::from(self.leaves_late(t, op) || self.gets_through(t, op)) + self.ways_to_pass_on(t, op)
    }

    pub(crate) fn cond_wake_perform(&mut self, t: Tid, op: &Op, value: u32) -> Applied {
        let (late, cancelled) = (self.leaves_late(t, op), self.cancelled(t, op));
        let passes_on = self.ways_to_pass_on(t, op) > 0 && !(value == 0 && self.gets_through(t, op));
        let to = if passes_on { self.waiter(op.obj, value - u32::from(self.gets_through(t, op))) } else { NONE };
        self.dequeue(t);
        if !late && !passes_on {
            return Applied::Done(self.mutex_acquire(t, op.obj2, false));
        }
        if cancelled {
            self.lose_handlers(t);
        }
        self.wake(to);
        // Who signals from now on finds it gone, although it has not got the mutex yet (glibc 2.36, nptl/pthread_cond_wait.c).
        if !cancelled {
            self.time_passes(t, op);
            self.threads[t].waits = self.threads[t].waits.saturating_add(1);
        }
        let flags = if cancelled { VARIANT } else { 0 };
        self.park(t, Op { kind: Kind::COND_LATE, obj: op.obj2, obj2: op.obj, flags, ..*op });
        self.check_cycle(t);
        Applied::Parked
    }

    pub(crate) fn cond_signal_perform(&mut self, t: Tid, op: &Op, value: u32) -> Applied {
        if self.objects[op.obj].flags & DESTROYED != 0 && self.misuse(t, op.obj, Misuse::USE_DESTROYED) {
            return Applied::Ended;
        }
        if op.kind == Kind::COND_SIGNAL {
            let waiter = self.waiter(op.obj, value);
            self.wake(waiter);
        } else {
            while self.objects[op.obj].waiters != NONE {
                self.wake(self.objects[op.obj].waiters);
            }
        }
        Applied::Done(0)
    }

    /// Gives `t` its wake-up and takes it out of its queue.
    pub(crate) fn wake(&mut self, t: Tid) {
        if t != NONE {
            self.dequeue(t);
            if self.threads[t].held {
                self.threads[t].held_woken = true;
                return;
            }
            self.threads[t].woken = true;
            self.check_cycle(t);
        }
    }

    /// glibc's pthread_cond_destroy waits until nobody waits; so does the one of barriers.
    pub(crate) fn unused_choices(&self, op: &Op) -> u32 {
        let object = &self.objects[op.obj];
        let ghosts = object.key.kind == ObjKind::COND && object.flags & GHOSTS != 0;
        u32::from(object.n_waiters == 0 && !ghosts)
    }

    pub(crate) fn destroy_perform(&mut self, t: Tid, op: &Op) -> Applied {
        if self.objects[op.obj].flags & DESTROYED != 0 && self.misuse(t, op.obj, Misuse::USE_DESTROYED) {
            return Applied::Ended;
        }
        self.objects[op.obj].flags |= DESTROYED;
        Applied::Done(0)
    }
}
