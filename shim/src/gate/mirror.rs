//! What the program's memory says of objects: words that mirror whether a lock is held, words that futexes compare, once
//! controls whose initializers run.

use vsrun_model::kind::Memory;
use vsrun_model::object::NEVER_FREE;
use vsrun_model::{ObjId, ObjKind, Op, NONE};

use super::{end, local, me, model, world};
use crate::sys::{load, store, store_if};

/// Offset of `__owner` in pthread_mutex_t (glibc, x86-64).
const MUTEX_OWNER: u64 = 8;

/// Address and object of a mutex or rwlock whose memory mirrors whether it is held, or of a futex with priority
/// inheritance.
pub type Mirror = Option<(u64, ObjId)>;

/// Just before an operation is performed: futexes compare the word now, those with priority inheritance look at it.
#[inline]
pub fn before(op: &Op, mirror: Mirror) {
    if op.kind.row().memory != Memory::Nothing {
        look(op, mirror);
    }
}

#[inline(never)]
fn look(op: &Op, mirror: Mirror) {
    let cur = local().cur;
    match op.kind.row().memory {
        Memory::Changes => {
            let [_, addr, what] = me().out;
            model().set_compare(cur, change(addr as u64, what as u32));
        }
        Memory::Compares => {
            let [_, addr, expected] = me().out;
            model().set_compare(cur, addr == 0 || load::<u32>(addr as u64) == expected as u32);
        }
        Memory::Looks => {
            let Some((addr, _)) = mirror else { return };
            let [_, second, third] = me().out;
            model().set_out(cur, [i64::from(load::<u32>(addr)), second, third]);
        }
        Memory::Nothing => {}
    }
}

/// The first half of FUTEX_WAKE_OP: changes the word at `addr` and says whether its old value was as asked.
fn change(addr: u64, what: u32) -> bool {
    const SHIFT: u32 = 1 << 31;
    let signed = |shift: u32| (what << shift) as i32 >> 20;
    let (argument, wanted) = (signed(8), signed(20));
    let argument = if what & SHIFT != 0 { 1i32.wrapping_shl(argument as u32 & 31) } else { argument };
    let old: i32 = load(addr);
    store(
        addr,
        match what >> 28 & 7 {
            0 => argument,
            1 => old.wrapping_add(argument),
            2 => old | argument,
            3 => old & !argument,
            _ => old ^ argument,
        },
    );
    match what >> 24 & 15 {
        0 => old == wanted,
        1 => old != wanted,
        2 => old < wanted,
        3 => old <= wanted,
        4 => old > wanted,
        _ => old >= wanted,
    }
}

/// When an operation has been performed: keeps the first word of the object in step with the model.
#[inline]
pub fn after(mirror: Mirror) {
    let Some((addr, id)) = mirror else { return };
    let object = &world().objects[id];
    if object.key.kind == ObjKind::MUTEX {
        let owner = object.owner;
        let vtid = if owner == NONE { 0 } else { world().threads[owner].vtid };
        store(addr, u32::from(owner != NONE));
        store(addr + MUTEX_OWNER, vtid);
    } else if object.key.kind == ObjKind::FUTEX {
        let word = me().out[0] as u32;
        if load::<u32>(addr) != word {
            store(addr, word);
        }
    } else if object.key.kind == ObjKind::SPIN {
        store(addr, u32::from(object.owner == NONE && object.flags & NEVER_FREE == 0));
    } else {
        let held = object.owner != NONE || object.count > 0;
        store(addr, u32::from(held));
    }
}

/// Keeps a semaphore's memory in step with the model.
pub fn sem(addr: u64, id: ObjId) {
    store_if(addr, world().objects[id].value);
}

/// glibc's word of a once control whose initializer has been run.
pub const ONCE_DONE: i32 = 2;

/// Runs the initializer of a once control that no other fiber can tell of.
pub fn while_alone(addr: u64, run: impl FnOnce() -> i32) -> i32 {
    once_entered(NONE, addr, ONCE_DONE);
    let result = run();
    settle_onces();
    result
}

/// Whether libc gives its word at `addr` free with this call of the running fiber: a once control whose initializer was run. Those who
/// wait for that do so in the model.
pub fn is_once(addr: u64) -> bool {
    local().onces[..local().n_onces].iter().any(|once| once.0 == local().cur && once.2 == addr)
}

/// The fiber enters the initializer of a once control, whose word is `done` after that.
pub fn once_entered(id: ObjId, addr: u64, done: i32) {
    let l = local();
    if l.n_onces == l.onces.len() {
        end::no_room(&[b"more nested pthread_once initializers than vsrun can hold"]);
    }
    l.onces[l.n_onces] = (l.cur, id, addr, done);
    l.n_onces += 1;
}

/// Once controls of the running fiber whose initializer is over, also by an exception, are given free. The word
/// tells: 0 = given up.
#[inline]
pub fn settle_onces() {
    if local().n_onces > 0 {
        settle_all_onces();
    }
}

#[cold]
#[inline(never)]
fn settle_all_onces() {
    let mut i = 0;
    while i < local().n_onces {
        let (t, id, addr, done) = local().onces[i];
        let word: i32 = load(addr);
        if t == local().cur && (word == done || word == 0) {
            if id != NONE {
                model().once_over(id, word == done);
            }
            let l = local();
            l.n_onces -= 1;
            l.onces[i] = l.onces[l.n_onces];
        } else {
            i += 1;
        }
    }
}
