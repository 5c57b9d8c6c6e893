//! Memory that is an object: each use of it is an operation, which comes before the instruction.
//!
//! A loop that waits for another thread to write is told by what its instructions find: the same as before, with nothing done in between
//! ([`found_again`]). Such an operation counts as a poll in vain, see `MEM_READ` in the model.

use vsrun_model::carrier::{FiberState, ReadWord, MAX_READS};
use vsrun_model::memory::ATOMIC;
use vsrun_model::op::TRY;
use vsrun_model::sharing::Word;
use vsrun_model::{Kind, ObjId, ObjKind, Op};

use super::local::{arena, fiber, local, machine, model, space_of, Phase};
use super::{end, turn};
use crate::sys::{load, store};
use crate::watch::{self, Touch};

/// Memory that is an object is about to be used: that is an operation, or two where an instruction reads and writes and is not atomic
/// (then it does so with what it has read, whatever others have written meanwhile). False: it is no object any more. What the child of a
/// vfork does is no operation, and is not recorded either.
pub fn touch(touch: Touch) -> bool {
    if !watch::is_recording() || local().phase != Phase::Running || local().borrowed {
        return true;
    }
    let (space, at) = space_of(touch.address & !7);
    if !arena().words.as_slice().contains(&Word::at(space, at)) {
        // What was mapped there is gone.
        return false;
    }
    turn::returning(|| {
        let Some(id) = model().object_at(space, ObjKind::MEMORY, at, (touch.address & 7) as u32) else {
            end::no_room(&[b"more memory is used without an order than vsrun can hold"])
        };
        use_object(id, &touch);
    });
    true
}

fn use_object(id: ObjId, touch: &Touch) {
    if touch.wide {
        machine().note_wide_use();
    }
    let atomic = if touch.locked { ATOMIC } else { 0 };
    let pass = |kind: Kind, flags: u8| {
        // Any other operation than these makes it forget them.
        let FiberState { reads, n_reads, .. } = *fiber();
        turn::pass(Op::on(kind, id).arg(touch.site.into()).with(flags));
        (fiber().reads, fiber().n_reads) = (reads, n_reads);
    };
    settle_update();
    if touch.writes && !touch.locked {
        if touch.reads {
            pass(Kind::MEM_READ, 0);
        }
        let read = value_at(touch);
        pass(Kind::MEM_WRITE, 0);
        if touch.reads && value_at(touch) != read {
            put(touch, read);
        }
        fiber().n_reads = 0;
        return;
    }
    let kind = if touch.writes { Kind::MEM_WRITE } else { Kind::MEM_READ };
    let again = found_again(touch.site, touch.address, value_at(touch));
    pass(kind, atomic | if again { TRY } else { 0 });
    let value = value_at(touch);
    let found = ReadWord { site: touch.site, size: touch.size as u32, address: touch.address, value, times: 0 };
    if touch.writes {
        fiber().update = found;
    } else {
        note_read(found);
    }
}

/// Whether the last instruction that was to change memory in one step has done so.
fn settle_update() {
    let update = core::mem::take(&mut fiber().update);
    if update.size == 0 {
        return;
    }
    if value(update.address, update.size.into()) == update.value {
        note_read(update);
    } else {
        fiber().n_reads = 0;
    }
}

/// The instruction has found that there when it was executed before, twice, with nothing done in between.
fn found_again(site: u32, address: u64, value: u64) -> bool {
    let f = fiber();
    let known = f.reads[..usize::from(f.n_reads)].iter().find(|r| r.site == site && r.address == address);
    known.is_some_and(|r| r.times > 0 && r.value == value)
}

fn note_read(found: ReadWord) {
    let f = fiber();
    let known =
        f.reads[..usize::from(f.n_reads)].iter_mut().find(|r| r.site == found.site && r.address == found.address);
    match known {
        Some(same) if same.value == found.value => same.times += 1,
        // Something has changed: that is no waiting in vain.
        _ => {
            let n = if known.is_some() || usize::from(f.n_reads) == MAX_READS { 0 } else { f.n_reads };
            f.reads[usize::from(n)] = found;
            f.n_reads = n + 1;
        }
    }
}

fn value_at(touch: &Touch) -> u64 {
    value(touch.address, touch.size)
}

/// The bytes there, at most eight of one word.
fn value(address: u64, size: u64) -> u64 {
    (0..size).fold(0, |all, n| all | u64::from(load::<u8>(address + n)) << (8 * n))
}

fn put(touch: &Touch, value: u64) {
    for n in 0..touch.size {
        store(touch.address + n, (value >> (8 * n)) as u8);
    }
}
