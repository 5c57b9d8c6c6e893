//! Read-write locks. Readers are recorded one by one, so that misuse and deadlocks can name them.

use super::question::Did;
use super::row::*;
use crate::state::{Hold, Misuse, ObjKind, RwState, DESTROYED, PREFER_WRITER};

kinds! {
    /// Acquire a read-write lock for reading.
    RW_RDLOCK = 28, "rwlock_rdlock" {
        operands: Operands::Objects,
        enabled: blocks(|w, t, op| u32::from(w.read_ready(t, op.obj) || op.has(TRY) || w.may_time_out(op)), |q| q.rwlock()),
        perform: |w, t, op, _| w.rdlock_perform(t, op),
        records: RECORDS, cells: |act, _, cells| cells.touch_all(act, How::Shares),
        follows: |a, b| same(a, b) && owns(b), blocks: MAY_BLOCK,
        role: Role::Acquires(Lock::Read), channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Passes(goes_through), idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::Three("pthread_rwlock_rdlock", "pthread_rwlock_tryrdlock", "pthread_rwlock_timedrdlock"), arguments: OBJECT,
            outcome: Outcome::Nothing, waits: Some(waits), identity: BY_OBJECTS },
    }
    /// Acquire a read-write lock for writing.
    RW_WRLOCK = 29, "rwlock_wrlock" {
        operands: Operands::Objects, enabled: blocks(World::wrlock_choices, |q| q.rwlock()),
        perform: |w, t, op, _| w.wrlock_perform(t, op),
        records: RECORDS, cells: |act, _, cells| {
            let found = RwState::of(act.state);
            let fails = act.op.has(TRY) && (found.owner != 0 || found.readers > 0);
            cells.touch_all(act, if fails { How::Looks } else { How::Writes });
        },
        follows: |a, b| same(a, b) && holds(b) && !RwState::of(a.state).prefers, blocks: MAY_BLOCK,
        role: Role::Acquires(Lock::Write), channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        // One that would have to announce itself parks.
        alone: Alone::Passes(|w, t, op| op.has(TRY) || w.write_ready(t, op.obj)), idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: WRLOCK, arguments: OBJECT, outcome: Outcome::Nothing, waits: Some(waits), identity: BY_OBJECTS },
    }
    /// A writer that has announced itself on a lock that prefers writers.
    RW_WRWAIT = 30, "rwlock_wrlock (waiting)" {
        operands: Operands::Objects, enabled: blocks(World::wrlock_choices, |q| q.rwlock()),
        perform: |w, t, op, _| w.wrlock_perform(t, op),
        records: RECORDS, cells: ON_OBJECTS, follows: |a, b| same(a, b) && holds(b), blocks: MAY_BLOCK,
        role: Role::Acquires(Lock::Announced), channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: WRLOCK, arguments: OBJECT, outcome: Outcome::GetsIt, waits: Some(waits), identity: BY_OBJECTS },
    }
    /// Release a read-write lock.
    RW_UNLOCK = 31, "rwlock_unlock" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: |w, t, op, _| w.rwunlock_perform(t, op),
        records: RECORDS, cells: |act, _, cells| {
            cells.touch_all(act, if releases_read(act) { How::Shares } else { How::Writes });
        }, follows: NOBODY, blocks: GIVES,
        role: Role::Releases(Lock::Either), channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Passes(goes_through), idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(Call::One("pthread_rwlock_unlock"), OBJECT),
    }
    /// Destroy a read-write lock.
    RW_DESTROY = 32, "rwlock_destroy" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: |w, t, op, _| w.rwdestroy_perform(t, op),
        records: RECORDS, cells: ON_OBJECTS, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::Destroys, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Passes(goes_through), idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(Call::One("pthread_rwlock_destroy"), OBJECT),
    }
}

const WRLOCK: Call = Call::Three("pthread_rwlock_wrlock", "pthread_rwlock_trywrlock", "pthread_rwlock_timedwrlock");

/// Says who holds the lock, or which writers come first.
fn waits(world: &World, t: Tid, op: &Op, words: &mut dyn Words) {
    let Some(lock) = world.objects.get(op.obj) else { return };
    let name = Thing::Object(op.obj);
    if lock.owner != NONE {
        held(world, t, op.obj, words);
        return say![words, " for writing"];
    }
    if op.kind == Kind::RW_RDLOCK && lock.flags & PREFER_WRITER != 0 {
        let waits = |w: Tid| world.threads[w].pending.kind == Kind::RW_WRWAIT && world.threads[w].pending.obj == op.obj;
        for &writer in world.live.as_slice().iter().filter(|&&w| waits(w)) {
            say![words, name, ", where the writer ", Thing::Thread(writer), " waits first"];
            words.next();
        }
        return;
    }
    for (reader, _) in world.read_holds(op.obj) {
        match reader == t {
            true => say![words, name, ", which it holds itself for reading"],
            false => {
                say![words, name, ", held by thread ", Thing::Thread(reader), " for reading", if_over(world, reader)];
            }
        }
        words.next();
    }
}

/// See [`RwState`].
const RECORDS: Records = Records {
    renamed: |act, to| {
        let state = RwState::of(act.state);
        act.state = RwState { owner: to.owner(state.owner), ..state }.pack();
    },
    ..Records::number(|w, t, op| w.rw_state(t, op.obj).pack()).looking(|q| q.rw_state().pack(), 0)
};

/// `b` releases the lock that `a` is on.
fn same(a: &Act, b: &Act) -> bool {
    b.op.kind == Kind::RW_UNLOCK && b.op.obj == a.op.obj
}

/// The thread of a release has the lock for writing.
fn owns(a: &Act) -> bool {
    i64::from(RwState::of(a.state).owner) == a.tid as i64 + 1
}

/// The thread of a release has the lock.
pub(crate) fn holds(a: &Act) -> bool {
    owns(a) || RwState::of(a.state).holds
}

/// `a` gives back a read hold.
fn releases_read(a: &Act) -> bool {
    a.op.kind == Kind::RW_UNLOCK && !owns(a) && RwState::of(a.state).holds
}

impl Question<'_> {
    fn rwlock(&self) -> Answer {
        let (p, found) = (self.act, self.rw_state());
        Answer::from(match p.op.kind {
            _ if found.owner == p.tid + 1 => true,
            Kind::RW_RDLOCK => found.owner == 0 && !(found.prefers && found.announced > 0),
            Kind::RW_WRLOCK if found.prefers => true,
            _ => found.owner == 0 && found.readers == 0,
        })
    }

    fn rw_state(&self) -> RwState {
        let p = self.act;
        let at_end = RwState::of(p.state);
        let start = self.first_on(p.op.obj).map_or(at_end, |first| RwState::of(first.state));
        let added = |a: &Act| match RwState::of(a.state) {
            _ if releases_read(a) => -1,
            found if a.op.kind == Kind::RW_RDLOCK => {
                i64::from(found.owner == 0 && !(found.prefers && found.announced > 0))
            }
            _ => 0,
        };
        let added = |d: &Did| match d.found {
            Some((before, after)) => i64::from(RwState::of(after).readers) - i64::from(RwState::of(before).readers),
            None if d.act.op.names(p.op.obj) => added(d.act),
            None => 0,
        };
        let readers = i64::from(at_end.readers) - self.dropped.iter().map(added).sum::<i64>();
        RwState { readers: readers.max(0) as u32, holds: at_end.holds, ..start }
    }
}

impl World {
    pub(crate) fn rw_state(&self, t: Tid, l: ObjId) -> RwState {
        let lock = &self.objects[l];
        RwState {
            owner: lock.owner.wrapping_add(1),
            readers: lock.count,
            announced: lock.value.max(0) as u32,
            prefers: lock.flags & PREFER_WRITER != 0,
            holds: self.read_holds(l).any(|(reader, _)| reader == t),
        }
    }

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
        // One with a deadline too: readers are refused until it gives up (glibc, __pthread_rwlock_wrlock_full64).
        if !announced && lock.flags & PREFER_WRITER != 0 {
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
            self.lets_one_go(t, op.obj);
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
        if self.objects[op.obj].count == 0 {
            self.lets_one_go(t, op.obj);
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
