//! Allocations that may fail, in the library that is used with `--inject enomem` (feature `enomem`); the usual one does
//! not interpose these functions at all.
//!
//! The function that is called is the one that the program would have without vsrun: the first one behind this library in
//! the loader's list of objects, so that a program keeps an allocator of its own. It is looked up with the loader's
//! structures alone, since the loader itself calls these functions before any constructor has run. Until `main` begins
//! nothing fails. A function that calls another of these fails, or does not, as a whole.

use core::cell::UnsafeCell;

use vsrun_model::inject as fault;

use crate::gate::{end, inject, me};
use crate::sys::{elf, errno, load, ret};

const MALLOC: usize = 0;
const CALLOC: usize = 1;
const REALLOC: usize = 2;
const REALLOCARRAY: usize = 3;
const ALIGNED_ALLOC: usize = 4;
const POSIX_MEMALIGN: usize = 5;
const MEMALIGN: usize = 6;
const VALLOC: usize = 7;
const PVALLOC: usize = 8;
const NAMES: [&[u8]; 9] = [
    b"malloc",
    b"calloc",
    b"realloc",
    b"reallocarray",
    b"aligned_alloc",
    b"posix_memalign",
    b"memalign",
    b"valloc",
    b"pvalloc",
];

struct State {
    /// The program's functions, or 0.
    real: [u64; NAMES.len()],
    /// `main` has begun.
    in_main: bool,
}

struct Cell(UnsafeCell<State>);
// SAFETY: a process of a world has one kernel thread, and no borrow is kept across a switch of fibers.
unsafe impl Sync for Cell {}

static STATE: Cell = Cell(UnsafeCell::new(State { real: [0; NAMES.len()], in_main: false }));

fn state() -> &'static mut State {
    // SAFETY: see `Cell`; callers use the borrow for one statement.
    unsafe { &mut *STATE.0.get() }
}

/// From now on allocations may fail.
pub fn main_begins() {
    state().in_main = true;
}

/// The program's function of that index.
fn real(which: usize) -> u64 {
    let found = state().real[which];
    if found != 0 {
        return found;
    }
    let own = elf::own_base();
    let mut behind = false;
    let mut function = None;
    elf::find_map(|map| {
        if behind {
            function = elf::Image::of_map(map).find(NAMES[which]);
        }
        behind |= load::<u64>(map) == own;
        function.is_some()
    });
    let Some(function) = function else { end::bug(b"no function of libc for an allocation") };
    state().real[which] = function;
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
    Some(inject::sparing(call))
}

fn pointer(result: Option<u64>) -> u64 {
    result.unwrap_or_else(|| {
        ret(errno::ENOMEM);
        0
    })
}

symbols! {
    fn malloc(size: u64) -> u64 = pointer(allocate(size, || call1(MALLOC, size)));
    fn calloc(n: u64, size: u64) -> u64 = pointer(allocate(n.saturating_mul(size), || call2(CALLOC, n, size)));
    fn realloc(old: u64, size: u64) -> u64 = pointer(allocate(size, || call2(REALLOC, old, size)));
    fn reallocarray(old: u64, n: u64, size: u64) -> u64 =
        pointer(allocate(n.saturating_mul(size), || call3(REALLOCARRAY, old, n, size)));
    fn aligned_alloc(alignment: u64, size: u64) -> u64 =
        pointer(allocate(size, || call2(ALIGNED_ALLOC, alignment, size)));
    fn posix_memalign(at: u64, alignment: u64, size: u64) -> i32 =
        allocate(size, || call3(POSIX_MEMALIGN, at, alignment, size)).map_or(libc::ENOMEM, |result| result as i32);
    fn memalign(alignment: u64, size: u64) -> u64 = pointer(allocate(size, || call2(MEMALIGN, alignment, size)));
    fn valloc(size: u64) -> u64 = pointer(allocate(size, || call1(VALLOC, size)));
    fn pvalloc(size: u64) -> u64 = pointer(allocate(size, || call1(PVALLOC, size)));
}
