//! What a thread has of its own when it comes to an access: registers, the part of its stack that is in use, thread-local storage. Where
//! all of it is as it was when the thread came there before, and it has written nothing else meanwhile, the thread does again what it did,
//! as long as it reads the same.

use core::mem::offset_of;

use vsrun_model::watch::{Header, WATCH_ADDR};

use super::log;
use crate::sys::load;

/// Most of a stack that is looked at: what goes round in a loop is not deep in calls.
const MOST: u64 = 16 << 10;
/// How far below its stack pointer a thread has left what is nothing to it any more.
const LEFT: u64 = 2 << 10;
/// What XSAVE writes of the x87 and SSE registers, components 0 and 1, and where it says which components may not be as they are at first.
const LEGACY: u64 = 416;
const COMPONENTS: u64 = 512;

/// Where the stack of the running thread ends, if that is near: below its thread pointer, or at `first`, where that of the first thread of a
/// process begins.
fn top_of_stack(at: u64, fs: u64, first: u64) -> Option<u64> {
    [fs, first].into_iter().find(|&top| top > at && top - at <= MOST)
}

/// The state of the thread with thread pointer `fs` whose registers lie at `frame`, as `VS_PASSING` keeps them, as a hash; `None`: it
/// cannot be told, or there have been writes of other memory since the last object that was used.
pub fn of(frame: u64, fs: u64, first: u64) -> Option<u64> {
    let top = top_of_stack(frame, fs, first)?;
    let local: u64 = load(WATCH_ADDR + offset_of!(Header, thread_local) as u64);
    if local > MOST || log::has_written_outside(frame - LEFT, top, fs - local.min(fs), fs) {
        return None;
    }
    let saved = (frame - log::state_size_in_use()) & !63;
    let components: u64 = load(saved + COMPONENTS);
    let mut hash = Hash(0);
    hash.add(saved, saved + LEGACY);
    let mut further = components & !3;
    while further != 0 {
        let number = further.trailing_zeros();
        let [at, len] = log::component(number)?;
        hash.add_component(number, saved + at, saved + at + len);
        further &= further - 1;
    }
    hash.add(frame, top);
    if top != fs {
        hash.add(fs - local, fs);
    }
    Some(hash.0)
}

struct Hash(u64);

impl Hash {
    /// A further component of the processor's state. All of them are zeros at first, and whether one that is so again is told as being in its
    /// first state is up to the processor, and to whether the kernel has switched to others meanwhile (Intel SDM, volume 1, 13.6).
    fn add_component(&mut self, number: u32, from: u64, end: u64) {
        if (from..end).step_by(8).any(|at| load::<u64>(at) != 0) {
            self.0 ^= u64::from(number);
            self.add(from, end);
        }
    }

    /// Whole words. Where two states differ in one word their hashes do.
    fn add(&mut self, from: u64, end: u64) {
        for at in (from & !7..end).step_by(8) {
            self.0 = (self.0.rotate_left(23) ^ load::<u64>(at)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        }
    }
}
