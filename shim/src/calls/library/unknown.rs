//! Functions of libc that are in no row: those that the tool names, since modules call them, then all others, since dlsym, or another library, may
//! give their addresses. What stands for one says its name once it is called beside other threads, and goes on to it.
//!
//! NOTE [Versions] Of a name there may be several versions, which are functions of their own (`regexec` of GLIBC_2.2.5 and of 2.3.4): each has a
//! stand-in of its own.

use core::cell::UnsafeCell;
use core::mem::size_of;

use vsrun_model::library::{FUNCTIONS, NAME, OTHERS};
use vsrun_model::watch::{Header, Other, WATCH_ADDR};

use super::frame::{self, find_function, is_at, note_name, stand_in, COUNT};
use crate::sys::{cstr, elf::Image, load, names};

/// The first of them.
const FIRST: usize = FUNCTIONS.len();
/// Most symbols of libc of which it is kept that they are known; those behind are taken for unknown.
const SYMBOLS: usize = 8192;

#[repr(transparent)]
struct Names(UnsafeCell<[u64; OTHERS]>);
// SAFETY: written once, before the program's main; read by the stand-ins.
unsafe impl Sync for Names {}

/// Where their names are, which end with NUL.
static NAMES: Names = Names(UnsafeCell::new([0; OTHERS]));

/// Stand-in `number` is for the function at `at`.
fn stands_for(number: usize, at: u64, name: u64) {
    is_at(number, at);
    // SAFETY: see `Names`.
    unsafe { (*NAMES.0.get())[number - FIRST] = name }
}

fn name_of(number: usize) -> &'static [u8] {
    // SAFETY: see `Names`.
    let name = unsafe { (*NAMES.0.get()).get(number - FIRST).copied().unwrap_or(0) };
    if name == 0 {
        b""
    } else {
        cstr(name, NAME)
    }
}

/// Those of which the tool has the names: where each is.
fn told() -> impl Iterator<Item = u64> {
    let header: Header = load(WATCH_ADDR);
    let [at, count] = header.others;
    (0..count.min(OTHERS as u64)).map(move |n| WATCH_ADDR + at + size_of::<Other>() as u64 * n)
}

/// Finds those of which the tool has the names.
pub fn find() {
    for (n, name) in told().enumerate() {
        stands_for(FIRST + n, find_function(cstr(name, NAME)), name);
    }
}

/// Who asks `image` for one of these gets its stand-in.
pub fn lead_told(image: &Image) {
    for (number, name) in (FIRST..).zip(told()) {
        let function = frame::real(number);
        image.each_named(cstr(name, NAME), |symbol, _| {
            if function != 0 && image.chosen_at(symbol) == function {
                names::lead_symbol(image, symbol, stand_in(number));
            }
            true
        });
    }
}

/// So does who asks libc for one that is in no row, and that the tool has not named. Gives the number behind the last one.
pub fn lead_rest(libc: &Image) -> usize {
    let mut known = [0u64; SYMBOLS / 64];
    for function in FUNCTIONS {
        libc.each_named(function.name.as_bytes(), |symbol, _| {
            let index = libc.index_of(symbol);
            known.get_mut(index / 64).into_iter().for_each(|word| *word |= 1 << (index % 64));
            true
        });
    }
    let stand_ins = stand_in(0)..stand_in(COUNT);
    let mut number = FIRST + told().count();
    libc.each_symbol(|symbol| {
        let index = libc.index_of(symbol);
        let is_known = known.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 != 0);
        let function = if is_known { 0 } else { libc.chosen_at(symbol) };
        if function != 0 && !stand_ins.contains(&function) && number < COUNT {
            stands_for(number, function, libc.name_at(symbol));
            names::lead_symbol(libc, symbol, stand_in(number));
            number += 1;
        }
    });
    number
}

/// The same for who asks the shim, which comes before libc, for what it has in the place of one of those up to `end`.
pub fn lead_own(own: &Image, end: usize) {
    for number in FIRST + told().count()..end {
        let function = frame::real(number);
        own.each_named(name_of(number), |symbol, _| {
            if own.function_at(symbol) == function {
                names::lead_symbol(own, symbol, stand_in(number));
            }
            true
        });
    }
}

/// Function `number` is called beside other threads: what it does to memory is not known.
#[cold]
pub fn note(number: usize) {
    note_name(name_of(number));
}
