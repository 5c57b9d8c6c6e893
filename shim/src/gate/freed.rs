//! Blocks of the heap that the program has freed and that are not given back to its allocator yet: whoever uses one is told. The last ones of each process,
//! as many as there is room for; so a block is not given out again at once either.

// The library that does not see the heap has none of them.
#![cfg_attr(not(feature = "heap"), allow(dead_code))]

use core::cell::UnsafeCell;

use vsrun_model::arena::QUARANTINE;
use vsrun_model::watch::Gone;
use vsrun_model::{Tid, NONE};

use super::local::{arena, local, machine, world};
use super::{end, stale};
use crate::sys::decimal;
use crate::watch;

/// Blocks, at most; and the usual number, for each [`QUARANTINE`] bytes of them.
const MOST: usize = 4096;
const USUAL: u64 = 256;

/// Bytes of all of them: what was asked for.
fn most_bytes() -> u64 {
    arena().control.quarantine
}

/// Blocks, in proportion.
fn most_blocks() -> usize {
    (most_bytes().div_ceil(QUARANTINE).saturating_mul(USUAL)).min(MOST as u64) as usize
}

#[derive(Clone, Copy)]
struct Block {
    at: u64,
    size: u64,
    by: Tid,
}

struct Blocks {
    /// The oldest, and how many there are; they go round.
    first: usize,
    n: usize,
    bytes: u64,
    all: [Block; MOST],
}

struct Cell(UnsafeCell<Blocks>);
// SAFETY: a process of a world has one kernel thread, and no borrow is kept across a switch of fibers.
unsafe impl Sync for Cell {}

static BLOCKS: Cell =
    Cell(UnsafeCell::new(Blocks { first: 0, n: 0, bytes: 0, all: [Block { at: 0, size: 0, by: NONE }; MOST] }));

fn blocks() -> &'static mut Blocks {
    // SAFETY: see `Cell`; callers use the borrow for one statement.
    unsafe { &mut *BLOCKS.0.get() }
}

impl Blocks {
    fn known(&self) -> impl Iterator<Item = &Block> {
        (0..self.n).map(|n| &self.all[(self.first + n) % MOST])
    }
}

/// A block of this size is kept at all.
pub fn keeps(size: u64) -> bool {
    size <= most_bytes() / 4 && most_bytes() > 0 && !world().reuses
}

/// Of one that is kept, so large: the allocator may give it out again to whichever thread, and a part of it, too.
const LARGE: u64 = 1032;
/// A block has at most so much room beyond what was asked for.
const BEYOND: u64 = 24;

/// Who asks for a block of `size` bytes would get one that is kept: one that the same thread has freed, as large, or that nobody keeps for himself. (glibc has a list of
/// blocks for each thread and size up to [`LARGE`] bytes: malloc(3), mallopt; other allocators are much alike.) Larger ones may be neighbours, and one block then.
pub fn would_serve(size: u64) -> bool {
    let (mut serves, mut large) = (false, 0);
    for block in blocks().known() {
        let by = &world().threads[block.by];
        // What its parent has freed before a fork the child has in its own list.
        let gets = || block.by == local().cur || by.pid != local().pid || !by.alive();
        serves |= block.size >= size && block.size <= size + BEYOND && gets();
        large += if block.size > LARGE { block.size } else { 0 };
    }
    serves || large >= size
}

/// The oldest block, which is to be given back before one of `size` bytes can be kept, and its size; `None`: there is room.
pub fn oldest(size: u64) -> Option<(u64, u64)> {
    let b = blocks();
    if b.n < most_blocks() && b.bytes + size <= most_bytes() {
        return None;
    }
    let old = b.all[b.first];
    b.first = (b.first + 1) % MOST;
    b.n -= 1;
    b.bytes -= old.size;
    Some((old.at, old.size))
}

/// The running thread has freed a block. What it has done to it until now has been handed over.
pub fn keep(at: u64, size: u64) {
    let b = blocks();
    b.all[(b.first + b.n) % MOST] = Block { at, size, by: local().cur };
    b.n += 1;
    b.bytes += size;
    watch::is_special(at, size);
}

/// All of them are to be found by their shadow again.
pub fn mark() {
    blocks().known().for_each(|block| watch::is_special(block.at, block.size));
}

fn number(n: u64) -> impl core::ops::Deref<Target = [u8]> {
    decimal(i64::try_from(n).unwrap_or(i64::MAX))
}

/// Where memory at `address` is to be used by the running thread, it has not been freed, nor did it belong to a thread that is over. `site`: as in
/// [`Entry`](vsrun_model::watch::Entry).
pub fn look(address: u64, size: u64, site: u32, writes: bool) {
    stale::look(address, size, site, writes);
    let within = |block: &&Block| address < block.at + block.size && address + size > block.at;
    let Some(block) = blocks().known().find(within).copied() else { return };
    is_gone(&block, address, size, site, writes);
    let first = address.saturating_sub(block.at);
    let (first_text, last, whole) = (number(first), number(first + size - 1), number(block.size));
    end::freed(&[
        b"use after free: ",
        if size == 1 { b"byte " } else { b"bytes " },
        &first_text,
        if size == 1 { b"" } else { b" to " },
        if size == 1 { b"" } else { &last },
        b" of a block of ",
        &whole,
        b" bytes that ",
        if block.by == local().cur { b"this thread" } else { b"another thread" },
        b" has freed",
    ]);
}

/// The tool is told of a use of a freed block.
fn is_gone(block: &Block, address: u64, size: u64, site: u32, writes: bool) {
    let entry = [site, (size as u32) << 2 | u32::from(writes)];
    machine().note_gone(Gone { block: block.at, size: block.size, address, entry });
}

/// A block that is to be freed has not been freed before. `site`: what frees it.
pub fn is_first(at: u64, site: u32) {
    if let Some(block) = blocks().known().find(|block| block.at == at).copied() {
        is_gone(&block, at, block.size, site, true);
        let by: &[u8] = if block.by == local().cur { b"this thread" } else { b"another thread" };
        end::freed(&[b"double free: of a block of ", &number(block.size), b" bytes that ", by, b" has freed"]);
    }
}
