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

/// Records that memory at `places` is read, each as far as `extent` says, which depends on what is there. Of memory that is an object each byte has its turn by
/// itself: whether there is a next one is known then, and is the same whatever others did before the thread came here. What the function finds is what is there
/// when it is called: so, once it is known how far it reads, all of that has its turn. Gives the extent.
pub fn read(places: &[u64], site: u32, extent: impl Fn() -> u64) -> u64 {
    let is_object = |done: u64, size: u64| places.iter().any(|at| watch::has_object(at.wrapping_add(done), size));
    let reads = |done: u64, size: u64| {
        places.iter().for_each(|at| watch::range(at.wrapping_add(done), size, site, false, false));
    };
    let (mut done, mut turns, mut whole) = (0, 0, true);
    loop {
        let length = extent();
        let left = length.saturating_sub(done);
        if is_object(done, left) {
            let plain = (0..left).find(|n| is_object(done + n, 1)).unwrap_or(0);
            reads(done, plain);
            reads(done + plain, 1);
            done += plain + 1;
            turns += 1;
            whole = turns == 1;
            continue;
        }
        if whole {
            reads(done, left);
            return length;
        }
        reads(0, done);
        whole = true;
    }
}

/// The function of number `number` is about to be called with these arguments.
pub extern "C" fn note(number: u32, a: u64, b: u64, n: u64) {
    watch::begins();
    let site = Entry::FUNCTION | number;
    let reads = |at: u64, length: u64| watch::range(at, length, site, false, false);
    let writes = |at: u64, length: u64| watch::range(at, length, site, true, false);
    let reads_text = |at: u64, most: u64| read(&[at], site, || text(at, most));
    let compares = |most: u64, is_text: bool, same: fn(u8, u8) -> bool| {
        read(&[a, b], site, || compared(a, b, most, is_text, same));
    };
    let seeks = |most: u64, is_text: bool| {
        read(&[a], site, || sought(a, b, most, is_text));
    };
    let spans = |is_in: bool| {
        reads_text(b, LONGEST);
        read(&[a], site, || spanned(a, b, is_in));
    };
    let equal = |x: u8, y: u8| x == y;
    let alike = |x: u8, y: u8| x.eq_ignore_ascii_case(&y);
    match FUNCTIONS[number as usize].name {
        "memcpy" | "memmove" | "mempcpy" | "__mempcpy" | "__memcpy_chk" | "__memmove_chk" | "__mempcpy_chk" => {
            reads(b, n);
            writes(a, n);
        }
        "memset" | "__memset_chk" => writes(a, n),
        "memcmp" | "bcmp" => compares(n, false, equal),
        "memchr" => seeks(n, false),
        "memrchr" => reads(a, n),
        "rawmemchr" | "__rawmemchr" => seeks(LONGEST, false),
        "strlen" | "strrchr" | "rindex" => _ = reads_text(a, LONGEST),
        "strnlen" => _ = reads_text(a, b),
        "strcpy" | "stpcpy" | "__stpcpy" | "__strcpy_chk" | "__stpcpy_chk" => writes(a, reads_text(b, LONGEST)),
        "strncpy" | "__strncpy_chk" | "stpncpy" => {
            reads_text(b, n);
            // The rest is filled up.
            writes(a, n);
        }
        "strcat" | "__strcat_chk" => {
            let end = reads_text(a, LONGEST);
            writes(a + end - 1, reads_text(b, LONGEST));
        }
        "strncat" | "__strncat_chk" => {
            let (end, length) = (reads_text(a, LONGEST), reads_text(b, n));
            // With a NUL of its own where it was cut.
            let cut = n > 0 && length == n && load::<u8>(b.wrapping_add(n - 1)) != 0;
            writes(a + end - 1, if n == 0 { 1 } else { length + u64::from(cut) });
        }
        "strcmp" => compares(LONGEST, true, equal),
        "strncmp" => compares(n, true, equal),
        "strcasecmp" => compares(LONGEST, true, alike),
        "strncasecmp" => compares(n, true, alike),
        "strchr" | "strchrnul" | "index" => seeks(LONGEST, true),
        "strcspn" | "strpbrk" => spans(true),
        "strspn" => spans(false),
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
            reads_text(b, LONGEST);
            reads_text(a, LONGEST);
        }
        _ => {}
    }
}

/// A text is looked through for the end of its first part, which becomes a NUL.
fn token(at: u64, ends: u64, site: u32) {
    read(&[ends], site, || text(ends, LONGEST));
    if at != 0 {
        let size = read(&[at], site, || spanned(at, ends, true));
        if load::<u8>(at + size - 1) != 0 {
            watch::range(at + size - 1, 1, site, true, false);
        }
    }
}
