//! From addresses to objects: how the program's memory names a mutex, condition variable and so on.
//!
//! NOTE [Static initialization] The modelled object is the object: the real one in the program's memory is never
//! locked. Its memory still says what it was initialized as, and whether it is held is mirrored into its first word
//! as glibc would. So an object that is first met late is known from its memory, and memory that was re-used for a new
//! object (its word is zero again although the model has an owner) is recognized on every path.

use vsrun_model::object::*;
use vsrun_model::{Key, Kind, Misuse, ObjId, Op};

use super::used::{set_up, site};
use crate::gate::{end, local, model, pass, space_of, world, Phase};
use crate::sys::{load, store, zero};

/// Offset of `__kind` in pthread_mutex_t (glibc, x86-64).
const MUTEX_KIND: u64 = 16;
/// Offset of `__wrefs` in pthread_cond_t: bit 1 = waits measure CLOCK_MONOTONIC.
const COND_WREFS: u64 = 36;
/// Offset of `__flags` in pthread_rwlock_t.
const RWLOCK_FLAGS: u64 = 48;
/// What a destroyed condition variable or rwlock is marked with in the word above.
const GONE: i32 = i32::MIN;

const ROBUST_BIT: i32 = 16;
const INHERIT_BIT: i32 = 32;
const PSHARED_BIT: i32 = 128;
/// Where other objects say that they are for several processes.
const RWLOCK_SHARED: u64 = 28;
const BARRIER_SHARED: u64 = 12;
const SEM_SHARED: u64 = 8;

#[inline]
fn made(id: Option<ObjId>) -> ObjId {
    id.unwrap_or_else(|| end::no_room(&[b"the program uses more synchronization objects than vsrun can hold"]))
}

fn key(kind: ObjKind, addr: u64) -> Key {
    let (space, at) = space_of(addr);
    Key::new(space, kind, at)
}

/// `size` bytes at `addr` are about to become an object of that kind, by the function of that number.
fn becomes(kind: ObjKind, addr: u64, size: u64, site: u32) {
    set_up(addr, size, site);
    if !world().concurrent || local().phase != Phase::Running || local().borrowed {
        return;
    }
    if let Some(id) = world().find(key(kind, addr)) {
        pass(Op::on(Kind::SET_UP, id));
        if world().slept_for(id) {
            end::misuse(id, Misuse::SET_UP_BUSY);
        }
    }
}

/// A new object at `addr`, whatever was there.
pub fn create(kind: ObjKind, addr: u64, flags: u32) -> ObjId {
    made(model().object_new(key(kind, addr), flags))
}

/// The System V set or queue `id`, or what is left of it: what is done with that fails, but it is an operation on what others have
/// removed.
pub fn by_id(kind: ObjKind, id: u64) -> Option<ObjId> {
    world().find(Key::new(SHARED, kind, id))
}

#[inline(always)]
fn known(kind: ObjKind, addr: u64, flags: u32) -> ObjId {
    let (space, at) = space_of(addr);
    let id = made(model().object_at(space, kind, at, flags | STATIC_INIT));
    if space & SHARED != 0 {
        note_use(id, kind, addr);
    }
    id
}

/// An object in memory that processes share is used: whether it is made for several is told by what glibc keeps in it.
#[cold]
fn note_use(id: ObjId, kind: ObjKind, addr: u64) {
    let shared = match kind {
        ObjKind::MUTEX => load::<i32>(addr + MUTEX_KIND) & PSHARED_BIT != 0,
        ObjKind::COND => load::<i32>(addr + COND_WREFS) & 1 != 0,
        ObjKind::RWLOCK => load::<i32>(addr + RWLOCK_SHARED) != 0,
        ObjKind::BARRIER => load::<i32>(addr + BARRIER_SHARED) != 0,
        ObjKind::SEM => load::<i32>(addr + SEM_SHARED) != 0,
        _ => true,
    };
    if !shared {
        model().uses_unshared(id, local().pid);
    }
}

/// Model flags for the `__kind` word of a mutex.
#[inline]
fn mutex_flags(word: i32) -> u32 {
    match word {
        // What most are.
        0 => MUTEX_NORMAL,
        word if word < 0 => DESTROYED,
        word => unusual_flags(word),
    }
}

fn unusual_flags(word: i32) -> u32 {
    let kind = match word & 3 {
        1 => MUTEX_RECURSIVE,
        2 => MUTEX_ERRORCHECK,
        _ => MUTEX_NORMAL,
    };
    let robust = if word & ROBUST_BIT != 0 { ROBUST } else { 0 };
    let inherits = if word & INHERIT_BIT != 0 { INHERITS } else { 0 };
    kind | robust | inherits | if word & PSHARED_BIT != 0 { PSHARED } else { 0 }
}

/// The mutex at `addr`.
pub fn mutex(addr: u64) -> ObjId {
    let flags = mutex_flags(load(addr + MUTEX_KIND));
    let id = known(ObjKind::MUTEX, addr, flags);
    let object = &world().objects[id];
    const INIT: u32 = MUTEX_TYPE | ROBUST | INHERITS | PSHARED | DESTROYED;
    let held = object.owner != NONE;
    let reused =
        held && load::<u32>(addr) == 0 || !held && object.flags & OWNER_DEAD == 0 && object.flags & INIT != flags;
    model().note_mutex(flags);
    if reused {
        return create(ObjKind::MUTEX, addr, flags | STATIC_INIT);
    }
    id
}

/// pthread_mutex_init: the memory becomes what glibc would make it.
pub fn mutex_init(addr: u64, attr: u64) {
    let attr: u32 = if attr == 0 { 0 } else { load(attr) };
    let mut kind = (attr & 3) as i32;
    if attr & 0x4000_0000 != 0 {
        kind |= ROBUST_BIT;
    }
    if attr & 0x8000_0000 != 0 {
        kind |= PSHARED_BIT;
    }
    kind |= match attr >> 28 & 3 {
        1 => INHERIT_BIT,
        2 => 64,
        _ => 0,
    };
    if attr >> 28 & 3 == 2 {
        end::unsupported(&[b"a mutex with a priority ceiling (PTHREAD_PRIO_PROTECT)"]);
    }
    becomes(ObjKind::MUTEX, addr, 40, const { site("pthread_mutex_init") });
    zero(addr, 40);
    store(addr + MUTEX_KIND, kind);
    let flags = mutex_flags(kind);
    model().note_mutex(flags);
    create(ObjKind::MUTEX, addr, flags);
}

/// After a successful destroy.
pub fn mutex_gone(addr: u64) {
    store(addr + MUTEX_KIND, -1i32);
}

/// The condition variable at `addr`.
pub fn cond(addr: u64) -> ObjId {
    let word: i32 = load(addr + COND_WREFS);
    let id = known(ObjKind::COND, addr, if word == GONE { DESTROYED } else { 0 });
    if world().objects[id].flags & DESTROYED != 0 && word != GONE {
        return create(ObjKind::COND, addr, STATIC_INIT);
    }
    id
}

/// True if timed waits on the condition variable at `addr` measure CLOCK_MONOTONIC.
pub fn cond_is_monotonic(addr: u64) -> bool {
    load::<i32>(addr + COND_WREFS) & 2 != 0
}

/// pthread_cond_init.
pub fn cond_init(addr: u64, attr: u64) {
    let attr: i32 = if attr == 0 { 0 } else { load(attr) };
    becomes(ObjKind::COND, addr, 48, const { site("pthread_cond_init") });
    zero(addr, 48);
    store(addr + COND_WREFS, attr & 1 | attr & 2);
    create(ObjKind::COND, addr, if attr & 1 != 0 { PSHARED } else { 0 });
}

/// After pthread_cond_destroy.
pub fn cond_gone(addr: u64) {
    store(addr + COND_WREFS, GONE);
}

fn rwlock_flags(word: i32) -> u32 {
    match word {
        GONE => DESTROYED,
        2 => PREFER_WRITER,
        _ => 0,
    }
}

/// The read-write lock at `addr`.
pub fn rwlock(addr: u64) -> ObjId {
    let flags = rwlock_flags(load(addr + RWLOCK_FLAGS));
    let id = known(ObjKind::RWLOCK, addr, flags);
    let object = &world().objects[id];
    let held = object.owner != NONE || object.count > 0;
    let reused = held && load::<u32>(addr) == 0 || !held && object.flags & (PREFER_WRITER | DESTROYED) != flags;
    if reused {
        return create(ObjKind::RWLOCK, addr, flags | STATIC_INIT);
    }
    id
}

/// pthread_rwlock_init; `attr` is { int kind; int pshared }.
pub fn rwlock_init(addr: u64, attr: u64) {
    let (kind, shared): (i32, i32) = if attr == 0 { (0, 0) } else { (load(attr), load(attr + 4)) };
    becomes(ObjKind::RWLOCK, addr, 56, const { site("pthread_rwlock_init") });
    zero(addr, 56);
    store(addr + RWLOCK_SHARED, i32::from(shared != 0));
    store(addr + RWLOCK_FLAGS, kind);
    create(ObjKind::RWLOCK, addr, rwlock_flags(kind));
}

/// After a successful destroy.
pub fn rwlock_gone(addr: u64) {
    store(addr + RWLOCK_FLAGS, GONE);
}

/// The word of a spin lock that is free (x86).
const SPIN_FREE: i32 = 1;

/// pthread_spin_init.
pub fn spin_init(addr: u64) {
    becomes(ObjKind::SPIN, addr, 4, const { site("pthread_spin_init") });
    store(addr, SPIN_FREE);
    create(ObjKind::SPIN, addr, 0);
}

/// The spin lock at `addr`. Zeros are no free one: who uses memory that was not initialized finds it locked.
pub fn spin(addr: u64) -> ObjId {
    let free = load::<i32>(addr) == SPIN_FREE;
    let flags = if free { 0 } else { NEVER_FREE };
    let id = known(ObjKind::SPIN, addr, flags);
    let object = &world().objects[id];
    if (object.owner == NONE && object.flags & NEVER_FREE == 0) != free {
        return create(ObjKind::SPIN, addr, flags | STATIC_INIT);
    }
    id
}

/// The barrier at `addr`; one that was never initialized has no room for anybody.
pub fn barrier(addr: u64) -> ObjId {
    // Memory that is not there is a fault.
    load::<u32>(addr);
    known(ObjKind::BARRIER, addr, 0)
}

/// pthread_barrier_init; `attr` is { int pshared }.
pub fn barrier_init(addr: u64, attr: u64, count: u32) {
    becomes(ObjKind::BARRIER, addr, 32, const { site("pthread_barrier_init") });
    zero(addr, 32);
    let shared = attr != 0 && load::<i32>(attr) != 0;
    store(addr + BARRIER_SHARED, if shared { PSHARED_BIT } else { 0 });
    made(model().barrier_new(key(ObjKind::BARRIER, addr), count));
}

/// The once control at `addr`; glibc's word is 2 once it has run.
pub fn once(addr: u64) -> ObjId {
    let id = known(ObjKind::ONCE, addr, 0);
    let word: i32 = load(addr);
    model().once_seen(id, word == 2);
    id
}

/// Whether libc has loaded what unwinds, of which the word at `addr` tells like that of a once control.
pub fn unwinder(addr: u64) -> ObjId {
    let id = known(ObjKind::ONCE, addr, UNWINDER);
    let word: i32 = load(addr);
    model().once_seen(id, word == 2);
    id
}

/// The guard at `addr` of a variable inside of a function, whose first byte is 1 once that is initialized.
pub fn guard(addr: u64) -> ObjId {
    let id = known(ObjKind::ONCE, addr, 0);
    let done: u8 = load(addr);
    model().once_seen(id, done != 0);
    id
}

/// The POSIX semaphore at `addr`; one not seen before has the value that its memory says.
pub fn sem(addr: u64) -> ObjId {
    let value: i32 = load(addr);
    let key = key(ObjKind::SEM, addr);
    let id = made(model().sem_at(key, value));
    if key.space & SHARED != 0 {
        note_use(id, ObjKind::SEM, addr);
    }
    id
}

/// One with a name, which has just been made, is for all processes.
pub fn sem_named(addr: u64) {
    zero(addr, 32);
    store(addr + SEM_SHARED, PSHARED_BIT);
}

/// sem_init.
pub fn sem_init(addr: u64, shared: bool, value: u32) {
    becomes(ObjKind::SEM, addr, 32, const { site("sem_init") });
    zero(addr, 32);
    store(addr, value);
    store(addr + SEM_SHARED, if shared { PSHARED_BIT } else { 0 });
    made(model().sem_new(key(ObjKind::SEM, addr), value as i32));
}

/// The futex at `addr`; a private one is the process's own, even in memory that it shares.
pub fn futex(addr: u64, private: bool) -> ObjId {
    if private {
        return made(model().object_at(local().pid, ObjKind::FUTEX, addr, STATIC_INIT));
    }
    known(ObjKind::FUTEX, addr, 0)
}

/// The one object that stands for all names.
pub fn names() -> ObjId {
    made(model().object_at(SHARED, ObjKind::NAMES, 0, 0))
}
