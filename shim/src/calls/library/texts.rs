//! Functions of texts, and of stretches of memory: how far they look depends on what they find. What they use is recorded before they
//! are called.

use vsrun_model::library::FUNCTIONS;
use vsrun_model::watch::Entry;

use crate::sys::load;
use crate::watch;

/// Longest text that is looked at.
pub const LONGEST: u64 = 1 << 32;
/// Most bytes of a number, with white space before it.
pub const NUMBER: u64 = 8192;

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

/// Bytes, a bit for each.
pub type Set = [u64; 4];

/// Those of a text.
fn set_of(at: u64) -> Set {
    let mut set = [0; 4];
    for byte in (0..text(at, LONGEST) - 1).map(|n| load::<u8>(at.wrapping_add(n))) {
        set[usize::from(byte / 64)] |= 1 << (byte % 64);
    }
    set
}

/// Where reading ends.
pub enum Until {
    /// With the NUL.
    Nul,
    /// With the NUL of a text of wide characters.
    WideNul,
    /// With the first byte that is no part of a number.
    NoNumber,
    /// With the first difference of two texts, or stretches of memory.
    Differ { is_text: bool, same: fn(u8, u8) -> bool },
    /// With that byte.
    Byte { byte: u8, is_text: bool },
    /// With a byte of a text that is in that set, or is not.
    Member { set: Set, is_in: bool },
}

impl Until {
    fn unit(&self) -> u64 {
        if matches!(self, Until::WideNul) {
            4
        } else {
            1
        }
    }

    fn value(&self, at: u64) -> u32 {
        match self.unit() {
            4 => load(at),
            _ => load::<u8>(at).into(),
        }
    }

    /// Whether there is more to read behind this, in one place or two. `blank`: there was nothing but white space so far.
    fn goes_on(&self, blank: &mut bool, [left, right]: [u32; 2]) -> bool {
        let byte = left as u8;
        match *self {
            Until::Nul | Until::WideNul => left != 0,
            Until::NoNumber => {
                *blank = *blank && is_blank(byte);
                *blank || is_part(byte)
            }
            Until::Differ { is_text, same } => same(byte, right as u8) && !(is_text && byte == 0),
            Until::Byte { byte: sought, is_text } => byte != sought && !(is_text && byte == 0),
            Until::Member { set, is_in } => byte != 0 && (set[usize::from(byte / 64)] >> (byte % 64) & 1 == 1) != is_in,
        }
    }

    /// How far that is by what is there now, at most `most` bytes.
    fn extent(&self, places: &[u64], most: u64) -> u64 {
        // Most calls are about these.
        if let Until::Nul = self {
            return text(places[0], most);
        }
        let (mut n, mut blank) = (0, true);
        while n < most {
            let values = [places[0], places[places.len() - 1]].map(|at| self.value(at.wrapping_add(n)));
            n += self.unit();
            if !self.goes_on(&mut blank, values) {
                break;
            }
        }
        n
    }
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || (9..=13).contains(&byte)
}

fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.' | b'(' | b')' | b'_')
}

/// Records that memory at `places`, one or two, is read up to `until`, at most `most` bytes. Of memory that is an object each byte has its turn by itself: what is
/// there then says whether there is a next one, so that what comes is the same whatever others did before the thread came here, or do to what has had its turn. The
/// function finds what is there when it is called: so, once it is known how far it reads, all of that has its turn at once, and what lies behind that if it reads
/// further now. Gives how far.
pub fn read(places: &[u64], site: u32, until: &Until, most: u64) -> u64 {
    let reads = |size: u64| places.iter().for_each(|&at| watch::range(at, size, site, false, false));
    let length = until.extent(places, most);
    if !places.iter().any(|&at| watch::has_object(at, length)) {
        reads(length);
        return length;
    }
    let unit = until.unit();
    let mut at_once = 0;
    loop {
        let (mut n, mut blank, mut turns) = (0, true, 0);
        loop {
            let mut values = [0; 2];
            for (place, value) in places.iter().zip(&mut values) {
                let at = place.wrapping_add(n);
                if n >= at_once {
                    turns += u32::from(watch::has_object(at, unit));
                    watch::range(at, unit, site, false, false);
                }
                *value = until.value(at);
            }
            n += unit;
            if n >= most || !until.goes_on(&mut blank, values) {
                break;
            }
        }
        if turns == 0 || turns == 1 && n == unit {
            return n;
        }
        reads(n);
        at_once = n;
    }
}

/// The function of number `number` is about to be called with these arguments.
pub extern "C" fn note(number: u32, a: u64, b: u64, n: u64) {
    watch::begins();
    let site = Entry::FUNCTION | number;
    let reads = |at: u64, length: u64| watch::range(at, length, site, false, false);
    let writes = |at: u64, length: u64| watch::range(at, length, site, true, false);
    let reads_text = |at: u64, most: u64| read(&[at], site, &Until::Nul, most);
    let compares = |most: u64, is_text: bool, same: fn(u8, u8) -> bool| {
        read(&[a, b], site, &Until::Differ { is_text, same }, most);
    };
    let seeks = |most: u64, is_text: bool| {
        read(&[a], site, &Until::Byte { byte: b as u8, is_text }, most);
    };
    let spans = |is_in: bool| {
        reads_text(b, LONGEST);
        read(&[a], site, &Until::Member { set: set_of(b), is_in }, LONGEST);
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
            reads_text(b, LONGEST);
            let at: u64 = load(a);
            if at != 0 {
                token(at, set_of(b), site);
            }
        }
        "strtok_r" | "__strtok_r" => {
            watch::range(n, 8, site, true, false);
            let from = if a != 0 { a } else { load(n) };
            reads_text(b, LONGEST);
            if from != 0 {
                let set = set_of(b);
                let skipped = read(&[from], site, &Until::Member { set, is_in: false }, LONGEST) - 1;
                token(from + skipped, set, site);
            }
        }
        "strstr" | "strcasestr" => {
            reads_text(b, LONGEST);
            reads_text(a, LONGEST);
        }
        _ => {}
    }
}

/// A text is looked through for the end of its first part, which becomes a NUL: for one of these bytes.
fn token(at: u64, set: Set, site: u32) {
    let size = read(&[at], site, &Until::Member { set, is_in: true }, LONGEST);
    if load::<u8>(at + size - 1) != 0 {
        watch::range(at + size - 1, 1, site, true, false);
    }
}
