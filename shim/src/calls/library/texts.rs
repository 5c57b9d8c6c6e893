//! Functions of texts, and of stretches of memory: how far they look depends on what they find. What they use is recorded before they
//! are called.

use vsrun_model::library::FUNCTIONS;
use vsrun_model::watch::Entry;

use crate::sys::load;
use crate::watch;

/// Longest text that is looked at.
pub const LONGEST: u64 = 1 << 32;
/// Most bytes of a number.
const DIGITS: u64 = 4096;

/// A text: bytes up to and with the NUL, at most `most`.
pub fn text(at: u64, most: u64) -> u64 {
    let length = (0..most).find(|n| load::<u8>(at.wrapping_add(*n)) == 0);
    length.map_or(most, |n| n + 1)
}

/// A text of wide characters, in bytes.
pub fn wide(at: u64) -> u64 {
    let length = (0..LONGEST).find(|n| load::<u32>(at.wrapping_add(4 * n)) == 0);
    4 * length.map_or(LONGEST, |n| n + 1)
}

/// A text as far as it can be a number, and the byte behind that.
pub fn number(at: u64) -> u64 {
    let byte = |n: u64| load::<u8>(at.wrapping_add(n));
    let blank = |b: u8| b == b' ' || (9..=13).contains(&b);
    let first = (0..DIGITS).find(|n| !blank(byte(*n))).unwrap_or(DIGITS);
    let part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.' | b'(' | b')' | b'_');
    let end = (first..first + DIGITS).find(|n| !part(byte(*n)));
    end.map_or(first + DIGITS, |n| n + 1)
}

/// How far a text is looked through for a byte that is in another text, or that is not in it.
fn spanned(at: u64, set: u64, is_in: bool) -> u64 {
    let size = text(set, LONGEST) - 1;
    let has = |byte: u8| (0..size).any(|n| load::<u8>(set.wrapping_add(n)) == byte);
    let ends = |n: &u64| {
        let byte = load::<u8>(at.wrapping_add(*n));
        byte == 0 || has(byte) == is_in
    };
    (0..LONGEST).find(ends).map_or(LONGEST, |n| n + 1)
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
pub extern "C" fn note(number: u32, a: u64, b: u64, n: u64) {
    watch::begins();
    let site = Entry::FUNCTION | number;
    let reads = |at: u64, length: u64| watch::range(at, length, site, false, false);
    let writes = |at: u64, length: u64| watch::range(at, length, site, true, false);
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
    match FUNCTIONS[number as usize].name {
        "memcpy" | "memmove" | "mempcpy" | "__mempcpy" | "__memcpy_chk" | "__memmove_chk" | "__mempcpy_chk" => {
            copies(a, b, n)
        }
        "memset" | "__memset_chk" => writes(a, n),
        "memcmp" | "bcmp" => compares(n, false, equal),
        "memchr" => reads(a, sought(a, b, n, false)),
        "memrchr" => reads(a, n),
        "rawmemchr" | "__rawmemchr" => reads(a, sought(a, b, LONGEST, false)),
        "strlen" | "strrchr" | "rindex" => reads(a, text(a, LONGEST)),
        "strnlen" => reads(a, text(a, b)),
        "strcpy" | "stpcpy" | "__stpcpy" | "__strcpy_chk" | "__stpcpy_chk" => copies(a, b, text(b, LONGEST)),
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
        "strchr" | "strchrnul" | "index" => reads(a, sought(a, b, LONGEST, true)),
        "strcspn" | "strpbrk" => {
            reads(b, text(b, LONGEST));
            reads(a, spanned(a, b, true));
        }
        "strspn" => {
            reads(b, text(b, LONGEST));
            reads(a, spanned(a, b, false));
        }
        "memmem" => reads(a, b),
        "strsep" => {
            watch::range(a, 8, site, true, false);
            token(load(a), b, site);
        }
        "strtok_r" | "__strtok_r" => {
            watch::range(n, 8, site, true, false);
            let from = if a != 0 { a } else { load(n) };
            let skipped = if from == 0 { 0 } else { spanned(from, b, false) - 1 };
            reads(from, skipped);
            token(if from == 0 { 0 } else { from + skipped }, b, site);
        }
        "strstr" | "strcasestr" => {
            reads(b, text(b, LONGEST));
            reads(a, text(a, LONGEST));
        }
        _ => {}
    }
}

/// A text is looked through for the end of its first part, which becomes a NUL.
fn token(at: u64, ends: u64, site: u32) {
    watch::range(ends, text(ends, LONGEST), site, false, false);
    if at != 0 {
        let size = spanned(at, ends, true);
        watch::range(at, size, site, false, false);
        if load::<u8>(at + size - 1) != 0 {
            watch::range(at + size - 1, 1, site, true, false);
        }
    }
}
