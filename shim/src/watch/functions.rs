//! Functions of libc that use memory of their caller's: what the modules call instead. A stand-in records what the function is about
//! to use and goes on to it, with the registers and the stack that it was called with.

use core::cell::UnsafeCell;

use vsrun_model::watch::{Entry, FUNCTIONS};

use super::log;
use crate::sys::{elf, load};

const COUNT: usize = FUNCTIONS.len();
/// Longest text that is looked at.
const LONGEST: u64 = 1 << 32;

#[repr(transparent)]
struct Real(UnsafeCell<[u64; COUNT]>);
// SAFETY: written once, before the program's main; read by the stand-ins.
unsafe impl Sync for Real {}

/// libc's functions.
static REAL: Real = Real(UnsafeCell::new([0; COUNT]));

core::arch::global_asm!(
    ".macro VS_STAND_IN number",
    "vs_stand_in_\\number:",
    " push rdi",
    " push rsi",
    " push rdx",
    " push rcx",
    " push r8",
    " push r9",
    " sub rsp, 8",
    " mov rcx, rdx",
    " mov rdx, rsi",
    " mov rsi, rdi",
    " mov edi, \\number",
    " call {note}",
    " add rsp, 8",
    " pop r9",
    " pop r8",
    " pop rcx",
    " pop rdx",
    " pop rsi",
    " pop rdi",
    " jmp [rip + {real} + 8 * \\number]",
    ".pushsection .data.rel.ro, \"aw\"",
    ".quad vs_stand_in_\\number",
    ".popsection",
    ".endm",
    ".pushsection .data.rel.ro, \"aw\"",
    ".balign 8",
    ".hidden vs_stand_ins",
    ".globl vs_stand_ins",
    "vs_stand_ins:",
    ".popsection",
    ".text",
    ".irp number, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33",
    "VS_STAND_IN \\number",
    ".endr",
    note = sym note,
    real = sym REAL,
);

extern "C" {
    static vs_stand_ins: [u64; COUNT];
}

/// What is to be called instead of the functions; 0: libc has none of that name.
pub fn stand_ins() -> [u64; COUNT] {
    // SAFETY: the table above, with an entry for each number; `REAL` is only written by `find`.
    let (mut all, real) = unsafe { (vs_stand_ins, *REAL.0.get()) };
    for (stand_in, _) in all.iter_mut().zip(real).filter(|(_, real)| *real == 0) {
        *stand_in = 0;
    }
    all
}

/// Finds libc's functions.
pub fn find() {
    let mut real = [0; COUNT];
    elf::find_map(|map| {
        let is_libc = elf::is_named(map, b"/libc.so.6");
        if is_libc {
            let libc = elf::Image::of_map(map);
            for (place, name) in real.iter_mut().zip(FUNCTIONS) {
                *place = libc.function(name.as_bytes()).unwrap_or(0);
            }
        }
        is_libc
    });
    // SAFETY: see `Real`.
    unsafe { *REAL.0.get() = real }
}

/// A text: bytes up to and with the NUL, at most `most`.
fn text(at: u64, most: u64) -> u64 {
    let length = (0..most).find(|n| load::<u8>(at.wrapping_add(*n)) == 0);
    length.map_or(most, |n| n + 1)
}

/// How far two texts, or stretches of memory, are compared: up to and with the first difference.
fn compared(a: u64, b: u64, most: u64, is_text: bool, same: fn(u8, u8) -> bool) -> u64 {
    let differs = |n: &u64| {
        let (left, right): (u8, u8) = (load(a.wrapping_add(*n)), load(b.wrapping_add(*n)));
        !same(left, right) || is_text && left == 0
    };
    (0..most).find(differs).map_or(most, |n| n + 1)
}

/// How far a byte is looked for.
fn sought(at: u64, byte: u64, most: u64, is_text: bool) -> u64 {
    let found = |n: &u64| {
        let there: u8 = load(at.wrapping_add(*n));
        there == byte as u8 || is_text && there == 0
    };
    (0..most).find(found).map_or(most, |n| n + 1)
}

/// The function of number `number` is about to be called with these arguments.
extern "C" fn note(number: u32, a: u64, b: u64, n: u64) {
    if !log::is_recording() {
        return;
    }
    let site = Entry::FUNCTION | number;
    let reads = |at: u64, length: u64| log::range(at, length, site, false, false);
    let writes = |at: u64, length: u64| log::range(at, length, site, true, false);
    let copies = |to: u64, from: u64, length: u64| {
        reads(from, length);
        writes(to, length);
    };
    let compares = |most: u64, is_text: bool, same: fn(u8, u8) -> bool| {
        let length = compared(a, b, most, is_text, same);
        reads(a, length);
        reads(b, length);
    };
    let equal = |x: u8, y: u8| x == y;
    let alike = |x: u8, y: u8| x.eq_ignore_ascii_case(&y);
    match FUNCTIONS[number as usize] {
        "memcpy" | "memmove" | "mempcpy" | "__memcpy_chk" | "__memmove_chk" | "__mempcpy_chk" => copies(a, b, n),
        "memset" | "__memset_chk" => writes(a, n),
        "memcmp" | "bcmp" => compares(n, false, equal),
        "memchr" => reads(a, sought(a, b, n, false)),
        "memrchr" => reads(a, n),
        "rawmemchr" => reads(a, sought(a, b, LONGEST, false)),
        "strlen" | "strrchr" => reads(a, text(a, LONGEST)),
        "strnlen" => reads(a, text(a, b)),
        "strcpy" | "stpcpy" | "__strcpy_chk" | "__stpcpy_chk" => copies(a, b, text(b, LONGEST)),
        "strncpy" | "__strncpy_chk" | "stpncpy" => {
            reads(b, text(b, n));
            // The rest is filled up.
            writes(a, n);
        }
        "strcat" | "__strcat_chk" => {
            let end = text(a, LONGEST);
            reads(a, end);
            copies(a + end - 1, b, text(b, LONGEST));
        }
        "strncat" | "__strncat_chk" => {
            let (end, length) = (text(a, LONGEST), text(b, n));
            reads(a, end);
            reads(b, length);
            // With a NUL of its own where it was cut.
            let cut = n > 0 && length == n && load::<u8>(b.wrapping_add(n - 1)) != 0;
            writes(a + end - 1, if n == 0 { 1 } else { length + u64::from(cut) });
        }
        "strcmp" => compares(LONGEST, true, equal),
        "strncmp" => compares(n, true, equal),
        "strcasecmp" => compares(LONGEST, true, alike),
        "strncasecmp" => compares(n, true, alike),
        "strchr" | "strchrnul" => reads(a, sought(a, b, LONGEST, true)),
        "strstr" => {
            reads(b, text(b, LONGEST));
            reads(a, text(a, LONGEST));
        }
        _ => {}
    }
}
