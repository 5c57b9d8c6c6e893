//! The heap: in the library that is used with `--inject enomem`, where allocations may fail, and where memory is watched, so that what is
//! given out again is told from what it was (feature `heap`). The usual library does not interpose these functions at all.
//!
//! The function that is called is the one that the program would have without vsrun: the first one behind this library in
//! the loader's list of objects, so that a program keeps an allocator of its own. It is looked up with the loader's
//! structures alone, since the loader itself calls these functions before any constructor has run. Until `main` begins
//! nothing fails. A function that calls another of these fails, or does not, as a whole.
//!
//! NOTE [Watched] To free a block is to write all of it: who uses it without an order with that uses it when it is gone. To give out a block is to
//! forget what was done to it. What was freed last is kept for a while (`gate::freed`): to use it, or to free it again, is a bug. Of allocators that do not tell how large a block is, nothing is recorded.

use core::cell::UnsafeCell;

use vsrun_model::inject as fault;

use vsrun_model::library::number;
use vsrun_model::watch::Entry;

use crate::gate::{end, freed, inject, local, me, model, origins, watched, world, Phase};
use crate::sys::{elf, errno, load, ret};
use crate::watch;

const MALLOC: usize = 0;
const CALLOC: usize = 1;
const REALLOC: usize = 2;
const REALLOCARRAY: usize = 3;
const ALIGNED_ALLOC: usize = 4;
const POSIX_MEMALIGN: usize = 5;
const MEMALIGN: usize = 6;
const VALLOC: usize = 7;
const PVALLOC: usize = 8;
const FREE: usize = 9;
const USABLE: usize = 10;
const NAMES: [&[u8]; 11] = [
    b"malloc",
    b"calloc",
    b"realloc",
    b"reallocarray",
    b"aligned_alloc",
    b"posix_memalign",
    b"memalign",
    b"valloc",
    b"pvalloc",
    b"free",
    b"malloc_usable_size",
];

/// What frees a block is called so in reports.
const FREES: u32 = Entry::FUNCTION | number("free") as u32;
const REALLOCATES: u32 = Entry::FUNCTION | number("realloc") as u32;

struct State {
    /// The program's functions, or 0.
    real: [u64; NAMES.len()],
    /// `main` has begun.
    in_main: bool,
    /// How large a block is, the allocator that gives them out tells.
    tells_size: bool,
}

struct Cell(UnsafeCell<State>);
// SAFETY: a process of a world has one kernel thread, and no borrow is kept across a switch of fibers.
unsafe impl Sync for Cell {}

static STATE: Cell = Cell(UnsafeCell::new(State { real: [0; NAMES.len()], in_main: false, tells_size: false }));

fn state() -> &'static mut State {
    // SAFETY: see `Cell`; callers use the borrow for one statement.
    unsafe { &mut *STATE.0.get() }
}

/// From now on allocations may fail, and what is freed and given out again is recorded. Where that is so already it writes nothing.
pub fn main_begins() {
    if state().in_main {
        return;
    }
    state().in_main = true;
    let object = |which| find(which).map(|(object, _)| object);
    state().tells_size = object(USABLE).is_some() && object(USABLE) == object(FREE);
}

/// Finds them while libc's names lead there (`sys::names`). What is not found now is not there.
pub fn find_functions() {
    for which in 0..NAMES.len() {
        if let Some((_, function)) = find(which) {
            state().real[which] = function;
        }
    }
}

/// The program's function of that index.
fn real(which: usize) -> u64 {
    let found = state().real[which];
    if found != 0 {
        return found;
    }
    let Some((_, function)) = find(which) else { end::bug(b"no function of libc for an allocation") };
    state().real[which] = function;
    function
}

/// In which object it is, by the loader's record, and where.
fn find(which: usize) -> Option<(u64, u64)> {
    let own = elf::own_base();
    let mut behind = false;
    let mut function = None;
    elf::find_map(|map| {
        if behind {
            function = elf::Image::of_map(map).find(NAMES[which]).map(|at| (map, at));
        }
        behind |= load::<u64>(map) == own;
        function.is_some()
    });
    function
}

type Fn1 = extern "C" fn(u64) -> u64;
type Fn2 = extern "C" fn(u64, u64) -> u64;
type Fn3 = extern "C" fn(u64, u64, u64) -> u64;

fn call1(which: usize, a: u64) -> u64 {
    // SAFETY: the address is that of the program's function of this name, which has this type.
    unsafe { core::mem::transmute::<u64, Fn1>(real(which))(a) }
}

fn call2(which: usize, a: u64, b: u64) -> u64 {
    // SAFETY: as for `call1`.
    unsafe { core::mem::transmute::<u64, Fn2>(real(which))(a, b) }
}

fn call3(which: usize, a: u64, b: u64, c: u64) -> u64 {
    // SAFETY: as for `call1`.
    unsafe { core::mem::transmute::<u64, Fn3>(real(which))(a, b, c) }
}

/// An allocation of `size` bytes by `call`; `None`: it fails.
fn allocate(size: u64, call: impl FnOnce() -> u64) -> Option<u64> {
    if !state().in_main || me().fiber.spared {
        return Some(call());
    }
    if size > 0 && inject::strikes(fault::ENOMEM) {
        return None;
    }
    if !world().kept_apart && is_recorded() && freed::would_serve(size) {
        model().keeps_apart();
    }
    Some(inject::sparing(call))
}

fn pointer(result: Option<u64>) -> u64 {
    result.unwrap_or_else(|| {
        ret(errno::ENOMEM);
        0
    })
}

/// What is done to blocks is recorded; not what an allocator does by itself.
fn is_recorded() -> bool {
    watch::is_recording() && is_the_programs()
}

/// The same, also while nobody else could use them: who has given them out is known when there is somebody.
fn is_told() -> bool {
    watch::is_mapped() && is_the_programs()
}

/// What is done to blocks is done by the program, and known.
fn is_the_programs() -> bool {
    state().tells_size && !me().fiber.spared && local().phase == Phase::Running && !local().borrowed
}

/// Bytes of a block that its owner may use.
fn usable(block: u64) -> u64 {
    call1(USABLE, block)
}

/// The same for a block that is new.
fn fresh(block: u64) -> u64 {
    if block != 0 && is_told() {
        let size = usable(block);
        origins::note(block, size, false);
        if watch::is_recording() || local().claims {
            watched::anew(block, size);
        }
    }
    block
}

/// A block is freed. The last ones are given back to the allocator later, so that who uses one is told.
fn free_block(block: u64) {
    if block == 0 || !is_recorded() {
        call1(FREE, block);
        return;
    }
    freed::is_first(block, FREES);
    let size = usable(block);
    watch::renews(block, size, FREES);
    // Another thread may have freed it meanwhile.
    freed::is_first(block, FREES);
    if !freed::keeps(size) {
        call1(FREE, block);
        return;
    }
    keep(block, size);
}

/// A block is kept for a while before it is given back.
fn keep(block: u64, size: u64) {
    while let Some((old, its_size)) = freed::oldest(size) {
        watch::forget(old, its_size);
        watched::mark_objects();
        call1(FREE, old);
    }
    watched::transition_ends();
    origins::note(block, size, true);
    freed::keep(block, size);
}

/// The same by a new block, so that the old one is kept like others that are freed.
fn moved(old: u64, before: u64, size: u64) -> u64 {
    // The allocator might have left it where it is.
    model().keeps_apart();
    let new = fresh(pointer(allocate(size, || call1(MALLOC, size))));
    if new == 0 {
        return 0;
    }
    let same = before.min(usable(new));
    // SAFETY: both are blocks of the allocator's, of at least that size, and different ones.
    unsafe { core::ptr::copy_nonoverlapping(old as *const u8, new as *mut u8, same as usize) };
    watch::call_wrote(new, same, REALLOCATES);
    keep(old, before);
    new
}

/// A block gets another size, and maybe another place.
fn resized(old: u64, size: u64, call: impl FnOnce() -> u64) -> u64 {
    if old == 0 || !is_recorded() {
        return fresh(pointer(allocate(size, call)));
    }
    freed::is_first(old, REALLOCATES);
    let before = usable(old);
    watch::renews(old, before, REALLOCATES);
    freed::is_first(old, REALLOCATES);
    if size > 0 && freed::keeps(before) {
        return moved(old, before, size);
    }
    let new = pointer(allocate(size, call));
    if new != 0 {
        fresh(new);
        watch::call_wrote(new, before.min(usable(new)), REALLOCATES);
    }
    new
}

/// What posix_memalign gives, which it puts where `at` points.
fn aligned(at: u64, alignment: u64, size: u64) -> i32 {
    let result =
        allocate(size, || call3(POSIX_MEMALIGN, at, alignment, size)).map_or(libc::ENOMEM, |result| result as i32);
    if result == 0 {
        fresh(load(at));
    }
    result
}

symbols! {
    fn malloc(size: u64) -> u64 = fresh(pointer(allocate(size, || call1(MALLOC, size))));
    fn calloc(n: u64, size: u64) -> u64 = fresh(pointer(allocate(n.saturating_mul(size), || call2(CALLOC, n, size))));
    fn realloc(old: u64, size: u64) -> u64 = resized(old, size, || call2(REALLOC, old, size));
    fn reallocarray(old: u64, n: u64, size: u64) -> u64 =
        resized(old, n.saturating_mul(size), || call3(REALLOCARRAY, old, n, size));
    fn aligned_alloc(alignment: u64, size: u64) -> u64 =
        fresh(pointer(allocate(size, || call2(ALIGNED_ALLOC, alignment, size))));
    fn posix_memalign(at: u64, alignment: u64, size: u64) -> i32 = aligned(at, alignment, size);
    fn memalign(alignment: u64, size: u64) -> u64 = fresh(pointer(allocate(size, || call2(MEMALIGN, alignment, size))));
    fn valloc(size: u64) -> u64 = fresh(pointer(allocate(size, || call1(VALLOC, size))));
    fn pvalloc(size: u64) -> u64 = fresh(pointer(allocate(size, || call1(PVALLOC, size))));
    fn free(block: u64) = free_block(block);
}
