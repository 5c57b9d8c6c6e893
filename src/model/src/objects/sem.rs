//! POSIX semaphores: unnamed, process-shared, named.

use super::question::Did;
use super::row::*;
use crate::base::{errno, Kind, ObjId, Op, Tid, NONE, TRY};
use crate::state::{Cell, How, Key, Name, ObjKind, Order, MAX_NAME};

kinds! {
    /// Decrement a POSIX semaphore.
    SEM_WAIT = 48, "sem_wait" {
        operands: Operands::Objects,
        enabled: blocks(
            |w, t, op| u32::from(w.objects[op.obj].value > 0 || op.has(TRY) || w.may_time_out(op) || w.cancelled(t, op)),
            |q| Answer::from(q.semaphore() > 0),
        ),
        perform: |w, t, op, _| w.sem_wait_perform(t, op),
        records: SUPPLY, cells: |act, _, cells| {
            let fails = act.state == 0 && act.gives_up();
            cells.touch_all(act, match act.state {
                ENOUGH => How::Shares,
                0 if fails => How::Looks,
                value => How::Takes { value },
            });
        }, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::Takes, channels: Channels::None, signals: Signals { fails: Fails::UnlessRestartedOrTimed, ..Signals::WAITS_ON },
        polls: Polls::Errors, alone: Alone::Passes(goes_through), idle: Idle { peer: World::waits_by_name, ..Idle::WORKER }, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::Three("sem_wait", "sem_trywait", "sem_timedwait"), arguments: OBJECT, outcome: Outcome::Nothing, waits: Some(|world, t, op, words| {
            say![words, Thing::Object(op.obj), " to be posted (its value is 0)", hopeless(world, t)];
        }), identity: BY_OBJECTS },
    }
    /// Increment a POSIX semaphore.
    SEM_POST = 49, "sem_post" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: |w, t, op, _| w.sem_post_perform(t, op),
        records: SUPPLY, cells: |act, _, cells| cells.touch_all(act, match act.state {
            ENOUGH => How::Shares,
            value => How::Adds { value },
        }), follows: NOBODY, blocks: GIVES,
        role: Role::Adds, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Passes(goes_through), idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(Call::Row, OBJECT),
    }
    /// Read the value of a POSIX semaphore.
    SEM_GET = 50, "sem_getvalue" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: |w, t, op, _| w.sem_get_perform(t, op),
        records: VALUE, cells: |act, _, cells| cells.touch_all(act, How::Looks), follows: NOBODY, blocks: GIVES,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Passes(goes_through), idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(Call::Row, OBJECT),
    }
    /// Destroy a POSIX semaphore.
    SEM_DESTROY = 51, "sem_destroy" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: |w, t, op, _| w.destroy_perform(t, op),
        records: VALUE, cells: ON_OBJECTS, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Passes(goes_through), idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(Call::Row, OBJECT),
    }
    /// Look up, create or remove a name (named semaphores, SysV keys).
    NAME = 52, "name" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: DONE,
        records: Records::NOTHING, cells: |act, _, cells| {
            // A removed set or queue frees its key.
            cells.touch(Cell::Removals, How::Looks);
            cells.touch_all(act, How::Writes);
        }, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(Call::One("name_lookup"), OBJECT),
    }
}

/// The value of the semaphore.
const VALUE: Records = Records::number(|w, _, op| w.objects[op.obj].value as i64).looking(|q| q.semaphore().max(0), 1);

/// The same, or [`ENOUGH`].
const SUPPLY: Records = Records::number(|w, _, op| w.semaphore_supply(op.obj)).looking(|q| q.semaphore().max(0), 1);

/// There is enough for all who take from it, whatever the order (`sched::order`): nobody has to wait, so that to take and to add are but
/// changes of a number.
const ENOUGH: i64 = 1 << 32;

impl Question<'_> {
    /// The value of the semaphore without what the dropped ones added.
    fn semaphore(&self) -> i64 {
        if self.act.state == ENOUGH {
            return ENOUGH;
        }
        let on = |d: &Did, kind: Kind| d.act.op.kind == kind && d.act.op.names(self.act.op.obj);
        let added = |d: &Did| match d.found {
            Some((before, after)) => after - before,
            None if on(d, Kind::SEM_POST) => 1,
            None if on(d, Kind::SEM_WAIT) && d.act.state > 0 => -1,
            None => 0,
        };
        self.act.state - self.dropped.iter().map(added).sum::<i64>()
    }
}

/// SEM_VALUE_MAX.
const MAX: i32 = i32::MAX;

impl World {
    /// `t` waits for what others find by its name. A group of processes that has come to its end in that by itself is in a deadlock; a
    /// server whose clients are all gone is not. A server that was started again may wait for what the start before has left taken.
    pub(crate) fn waits_by_name(&self, t: Tid, clients: bool) -> bool {
        clients && !self.is_of_restart(t) && self.names.as_slice().iter().any(|n| n.obj == self.threads[t].pending.obj)
    }

    pub(crate) fn sem_wait_perform(&mut self, t: Tid, op: &Op) -> Applied {
        let sem = &mut self.objects[op.obj];
        if sem.value > 0 {
            sem.value -= 1;
            if sem.value == 0 {
                self.all_taken(op.obj);
            }
            return Applied::Done(0);
        }
        Applied::Done(if op.has(TRY) {
            errno::EAGAIN
        } else if self.cancelled(t, op) {
            errno::EINTR
        } else {
            errno::ETIMEDOUT
        })
    }

    /// `t` adds to the semaphore; see `sched::order`.
    fn gives_back(&mut self, t: Tid, id: ObjId) {
        self.objects[id].takes &= !1u64.checked_shl(t).unwrap_or(0);
    }

    /// See [`ENOUGH`].
    fn semaphore_supply(&self, id: ObjId) -> i64 {
        let sem = &self.objects[id];
        if sem.order == Order::FREE {
            ENOUGH
        } else {
            i64::from(sem.value)
        }
    }

    pub(crate) fn sem_post_perform(&mut self, t: Tid, op: &Op) -> Applied {
        self.gives_back(t, op.obj);
        let sem = &mut self.objects[op.obj];
        if sem.value == MAX {
            return Applied::Done(errno::EOVERFLOW);
        }
        sem.value += 1;
        self.lets_one_go(t, op.obj);
        Applied::Done(0)
    }

    pub(crate) fn sem_get_perform(&mut self, t: Tid, op: &Op) -> Applied {
        self.threads[t].out[0] = self.objects[op.obj].value as i64;
        Applied::Done(0)
    }

    /// The object of name `bytes` of that kind, if there is one.
    pub fn name_find(&self, kind: ObjKind, bytes: &[u8]) -> Option<u32> {
        let named =
            |n: &&Name| n.obj != NONE && &n.bytes[..n.len as usize] == bytes && self.objects[n.obj].key.kind == kind;
        self.names.as_slice().iter().find(named).map(|n| n.obj)
    }

    /// Gives `obj` the name `bytes`. False: no room, or the name is too long.
    pub fn name_add(&mut self, bytes: &[u8], obj: u32) -> bool {
        if bytes.len() > MAX_NAME {
            return false;
        }
        let mut name = Name { obj, len: bytes.len() as u32, bytes: [0; MAX_NAME] };
        name.bytes[..bytes.len()].copy_from_slice(bytes);
        match self.names.as_slice().iter().position(|n| n.obj == NONE) {
            Some(free) => self.names[free as u32] = name,
            None => return self.names.push(name).is_some(),
        }
        true
    }

    /// Takes the name away from the object of that kind; the object lives on. False: no such name.
    pub fn name_remove(&mut self, kind: ObjKind, bytes: &[u8]) -> bool {
        let Some(obj) = self.name_find(kind, bytes) else { return false };
        for name in self.names.as_mut_slice() {
            if name.obj == obj {
                name.obj = NONE;
            }
        }
        true
    }
}

impl World {
    /// A new semaphore at `key`, whatever was there. `None`: no room.
    pub fn sem_new(&mut self, key: Key, value: i32) -> Option<u32> {
        self.make(key, |new| new.value = value)
    }

    /// The semaphore at `key`, made with `value` if it is new. `None`: no room.
    pub fn sem_at(&mut self, key: Key, value: i32) -> Option<u32> {
        self.find_or_make(key, |new| new.value = value)
    }
}
