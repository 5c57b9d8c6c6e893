//! What tells the states of a process apart, where that is asked for ([`vsrun_model::states`]): a hash of all that its threads have in memory and registers,
//! and of what the kernel keeps for them.
//!
//! NOTE \[Memory\] What is in memory is told by what differs from the first choice, to which the process goes back (`back`): pages that are kept are compared
//! with their copies, others that were written count as they are, as do those of memory that was mapped since. Of these zeros are nothing.
//!
//! NOTE \[Dead\] What lies below a stack pointer is dead and counts as zeros: of who runs, of who waits, and all of the stack of a thread that is over, as long
//! as nobody else has it. Once the program has made contexts (makecontext) only the last of these is: a thread may stand on a piece of its own stack, above what
//! it comes back to. Stack pointers, and registers that a call keeps, are those at one place in the gate (`stacks`): what the gate does further down is the same
//! for all. The state of this library is told field by field, where it does not lie in the arena; stacks of its own are dead.
//!
//! NOTE \[Unknown\] A process that does not go back, or has done what cannot be undone, tells nothing: then no state is taken for one that was met.

use vsrun_model::arena::POOL_ADDR;
use vsrun_model::states::{kind, together, Mixer, Purpose};
use vsrun_model::ThreadState;

use super::local::{arena, fiber_of, local, machine, process_of, world};
use super::since;
use crate::sys::bare::bare;
use crate::sys::track::track;
use crate::sys::{guard, load};

const PAGE: u64 = 4096;
/// Words of eight bytes in a page.
const WORDS: usize = PAGE as usize / 8;
/// Most bytes of the pool that are looked at.
const MOST_POOL: u64 = 1 << 20;
/// Most pieces of memory that do not count.
const MOST_DEAD: usize = 96;

/// Pieces of memory that do not count.
struct Dead {
    n: usize,
    pieces: [(u64, u64); MOST_DEAD],
}

impl Dead {
    fn add(&mut self, piece: (u64, u64)) {
        // One more that counts makes states differ for nothing.
        if piece.0 < piece.1 {
            if let Some(place) = self.pieces.get_mut(self.n) {
                *place = piece;
                self.n += 1;
            }
        }
    }

    /// All of them, now.
    fn now() -> Dead {
        let mut dead = Dead { n: 0, pieces: [(0, 0); MOST_DEAD] };
        dead.add(track().place());
        dead.add(local_place());
        dead.add(guard::place());
        for t in 0..world().threads.len {
            let ([low, high], [sp, ..]) = (fiber_of(t).stack, fiber_of(t).stand);
            let is_over = world().threads[t].state == ThreadState::EXITED;
            if is_over {
                // What the program has for a stack of its own it may use for something else.
                if low != 0 && fiber_of(t).of_libc {
                    dead.add((low, high));
                }
            } else if local().contexts {
                // See NOTE [Dead].
            } else if (low..high).contains(&sp) {
                dead.add((low, sp));
            } else if world().procs[local().pid].main_thread == t {
                // The first thread's grows down from where the kernel has put it.
                if let Some(low) = since::first_stack(sp) {
                    dead.add((low, sp));
                }
            }
        }
        dead
    }

    /// A bit for each word of a page that does not count.
    fn words_of(&self, page: u64) -> [u64; WORDS / 64] {
        let mut bits = [0; WORDS / 64];
        for &(start, end) in self.pieces[..self.n].iter().filter(|piece| piece.0 < page + PAGE && page < piece.1) {
            let first = start.saturating_sub(page).div_ceil(8);
            let last = (end.min(page + PAGE) - page) / 8;
            (first..last).for_each(|word| bits[word as usize / 64] |= 1 << (word % 64));
        }
        bits
    }

    /// Shows what counts of a page, and is not as in `copy`, or no zero.
    fn each_word(&self, page: u64, copy: Option<u64>, each: &mut dyn FnMut(u64, u64)) {
        let dead = self.words_of(page);
        for word in (0..WORDS).filter(|word| dead[word / 64] >> (word % 64) & 1 == 0) {
            let at = 8 * word as u64;
            let (is, was) = (load(page + at), copy.map_or(0, |copy| load(copy + at)));
            if is != was {
                each(page + at, is);
            }
        }
    }

    /// The hash of what counts of a page; zeros: it is as in `copy`, or has zeros only.
    fn page(&self, page: u64, copy: Option<u64>) -> [u64; 2] {
        let dead = self.words_of(page);
        let counts = |word: usize| dead[word / 64] >> (word % 64) & 1 == 0;
        let found = |word: usize| -> u64 { load(page + 8 * word as u64) };
        let was = |word: usize| -> u64 { copy.map_or(0, |copy| load(copy + 8 * word as u64)) };
        if (0..WORDS).all(|word| found(word) == was(word) || !counts(word)) {
            return [0; 2];
        }
        let mut mixer = Mixer::new(Purpose::PAGE);
        mixer.word(page);
        (0..WORDS).for_each(|word| mixer.word(if counts(word) { found(word) } else { 0 }));
        mixer.digest()
    }
}

fn local_place() -> (u64, u64) {
    let at = &raw const *local() as u64;
    (at, at + size_of_val(local()) as u64)
}

core::arch::global_asm!(
    // vs_tell_on(top): comes_to_state() on the stack that ends at `top`.
    ".hidden vs_tell_on",
    ".globl vs_tell_on",
    ".type vs_tell_on,@function",
    "vs_tell_on:",
    ".cfi_startproc",
    " push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    " mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    " mov rsp, rdi",
    " call {comes_to_state}",
    " leave",
    ".cfi_def_cfa rsp, 8",
    " ret",
    ".cfi_endproc",
    ".size vs_tell_on, .-vs_tell_on",
    comes_to_state = sym comes_to_state,
);

extern "C" {
    fn vs_tell_on(top: u64);
}

/// The execution has come to a state.
#[cold]
#[inline(never)]
pub fn tell() {
    match since::spare_stack() {
        // The program's stack may be small.
        // SAFETY: nobody else is on that stack, which is mapped, and this returns to this one.
        Some(top) => unsafe { vs_tell_on(top) },
        None => machine().comes_to_state(None),
    }
}

extern "C" fn comes_to_state() {
    let memory = digest();
    machine().comes_to_state(memory);
}

fn digest() -> Option<[u64; 2]> {
    let used = arena().control.pool_used;
    // What is in files that were changed is not looked at.
    let files = arena().files.used != 0 || arena().control.shm_used != 0;
    if files || world().procs.len != 1 || arena().segments.len > 0 || used > MOST_POOL || arena().plan.watches {
        return None;
    }
    let tells = machine().tells_pieces();
    if tells {
        machine().begins_pieces();
    }
    let mut mixer = Mixer::new(Purpose::PROCESS);
    let comes = |mixer: &mut Mixer, piece: u64, pair: [u64; 2]| {
        mixer.pair(pair);
        if tells {
            machine().adds_piece([piece, pair[0]]);
        }
    };
    comes(&mut mixer, kind::KERNEL, track().digest()?);
    comes(&mut mixer, kind::KERNEL | 1, local().digest());
    comes(&mut mixer, kind::KERNEL | 2, process_of(local().pid).digest());
    for t in 0..world().threads.len {
        if !matches!(world().threads[t].state, ThreadState::FREE | ThreadState::EXITED) {
            comes(&mut mixer, kind::REGISTERS | u64::from(t), fiber_of(t).digest());
        }
    }
    if used > 0 {
        let mut pool = Mixer::new(Purpose::POOL);
        (POOL_ADDR..POOL_ADDR + used).step_by(8).for_each(|at| pool.word(load(at)));
        comes(&mut mixer, kind::POOL, pool.digest());
    }
    for fd in track().opened_since().chain(since::places()) {
        let place = bare(libc::SYS_lseek, [fd, 0, libc::SEEK_CUR as u64, 0, 0, 0]);
        let flags = [libc::F_GETFD, libc::F_GETFL].map(|asked| bare(libc::SYS_fcntl, [fd, asked as u64, 0, 0, 0, 0]));
        comes(&mut mixer, kind::DESCRIPTOR | fd, Mixer::of(Purpose::ANY, &(fd, place, flags, which_file(fd))));
    }
    let dead = Dead::now();
    let mut memory = [0; 2];
    since::each_page(&mut |page, copy| {
        memory = together(memory, dead.page(page, copy));
        if tells {
            dead.each_word(page, copy, &mut |at, is| machine().adds_piece([at, is]));
        }
    })
    .then_some(())?;
    mixer.pair(memory);
    Some(mixer.digest())
}

/// Device and inode of what is open as `fd`; zeros: nothing is.
fn which_file(fd: u64) -> [u64; 2] {
    // SAFETY: a struct of numbers, of which all zeros is a value.
    let mut stat: libc::stat = unsafe { core::mem::zeroed() };
    bare(libc::SYS_fstat, [fd, &raw mut stat as u64, 0, 0, 0, 0]);
    [stat.st_dev, stat.st_ino]
}
