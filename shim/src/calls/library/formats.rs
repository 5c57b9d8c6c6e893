//! Functions that print and scan by a format: which of their arguments are addresses, and how much is used there.

use vsrun_model::library::{number, Does, Function, BY_LIST, MAY_END, OF_STREAMS, THAT_END};

use super::frame::{note_name, real, wrote, Aside, Frame, List, GENERAL};
use super::texts::{self, Until};
use crate::gate::{is_threaded, machine};
use crate::sys::load;
use crate::watch;

/// What tells how much will be printed.
const VSNPRINTF: usize = number("vsnprintf");

/// A format that is read byte by byte.
struct Format(u64);

impl Format {
    fn peek(&self) -> u8 {
        load(self.0)
    }

    /// The next byte, if `wanted` is true of it.
    fn take(&mut self, wanted: impl Fn(u8) -> bool) -> Option<u8> {
        let byte = self.peek();
        let taken = byte != 0 && wanted(byte);
        self.0 += u64::from(taken);
        taken.then_some(byte)
    }

    /// A number without a sign; `None`: there is none.
    fn number(&mut self) -> Option<u64> {
        let mut number = None;
        while let Some(digit) = self.take(|b| b.is_ascii_digit()) {
            number = Some(number.unwrap_or(0u64).saturating_mul(10).saturating_add((digit - b'0').into()));
        }
        number
    }

    /// Goes to the next conversion and behind its `%`. False: there is none.
    fn conversion(&mut self) -> bool {
        while self.take(|b| b != b'%').is_some() {}
        self.take(|b| b == b'%').is_some()
    }

    /// Bytes of an integer, by what stands before the conversion; and whether an `l` does, or an `L`.
    fn length(&mut self) -> (u64, bool, bool) {
        let (mut size, mut long, mut longest) = (4, false, false);
        while let Some(byte) = self.take(|b| b"hlqLjzZtw".contains(&b)) {
            match byte {
                b'h' => size = if size == 2 { 1 } else { 2 },
                b'L' => longest = true,
                _ => {
                    size = 8;
                    long |= byte == b'l';
                }
            }
        }
        (size, long, longest)
    }
}

/// The arguments of a format that prints are used; `reads` gets addresses and how far each is read, `writes` addresses and sizes. False: it is not known how.
fn printed(at: u64, mut list: List, reads: impl Fn(u64, Until, u64), writes: impl Fn(u64, u64)) -> bool {
    let mut format = Format(at);
    while format.conversion() {
        while format.take(|b| b" +-#0'I".contains(&b)).is_some() {}
        match format.take(|b| b == b'*') {
            Some(_) => _ = list.next(),
            None => _ = format.number(),
        }
        // Arguments by their places.
        if format.peek() == b'$' {
            return false;
        }
        let mut precision = None;
        if format.take(|b| b == b'.').is_some() {
            precision = match format.take(|b| b == b'*') {
                Some(_) => u64::try_from(list.next() as i32).ok(),
                None => Some(format.number().unwrap_or(0)),
            };
        }
        let (size, long, longest) = format.length();
        match format.take(|_| true) {
            Some(b'd' | b'i' | b'o' | b'u' | b'x' | b'X' | b'b' | b'B' | b'c' | b'C' | b'p') => _ = list.next(),
            Some(b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A') => list.skip_float(longest),
            Some(b's') if !long => {
                let text = list.next();
                if text != 0 {
                    reads(text, Until::Nul, precision.unwrap_or(texts::LONGEST));
                }
            }
            Some(b's' | b'S') => {
                let text = list.next();
                if text != 0 {
                    let most = precision.unwrap_or(texts::LONGEST).saturating_mul(4);
                    reads(text, Until::WideNul, most);
                }
            }
            Some(b'n') => writes(list.next(), size),
            Some(b'm' | b'%') => {}
            _ => return false,
        }
    }
    true
}

/// The same for a format that scans, of which `count` conversions were stored: `writes` gets addresses, sizes (`None`: a text), and widths.
fn scanned(at: u64, mut list: List, mut count: u32, writes: impl Fn(u64, Option<u64>, Option<u64>)) -> bool {
    let mut format = Format(at);
    while format.conversion() {
        let dropped = format.take(|b| b == b'*').is_some();
        while format.take(|b| b"'I".contains(&b)).is_some() {}
        let width = format.number();
        if format.peek() == b'$' {
            return false;
        }
        let new = format.take(|b| b == b'm').is_some();
        let (size, long, longest) = format.length();
        let Some(kind) = format.take(|_| true) else { return false };
        if kind == b'%' {
            continue;
        }
        if kind == b'[' {
            format.take(|b| b == b'^');
            format.take(|b| b == b']');
            while format.take(|b| b != b']').is_some() {}
            format.take(|b| b == b']');
        }
        if dropped {
            continue;
        }
        let at = list.next();
        if kind == b'n' {
            writes(at, Some(size), width);
            continue;
        }
        // What comes behind was not stored.
        if count == 0 {
            break;
        }
        count -= 1;
        match kind {
            _ if new => writes(at, Some(8), width),
            b'd' | b'i' | b'o' | b'u' | b'x' | b'X' => writes(at, Some(size), width),
            b'p' => writes(at, Some(8), width),
            b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A' => {
                writes(
                    at,
                    Some(if longest {
                        16
                    } else if long {
                        8
                    } else {
                        4
                    }),
                    width,
                );
            }
            b'c' if !long => writes(at, Some(width.unwrap_or(1)), width),
            b's' | b'[' if !long => writes(at, None, width),
            _ => return false,
        }
    }
    true
}

impl Frame {
    /// Records what a function uses that prints or scans, before it is called.
    pub(super) fn formats(&mut self, function: &Function) -> u64 {
        let site = self.site();
        let reads = |at: u64, until: Until, most: u64| _ = texts::read(&[at], site, &until, most);
        let (Does::Prints { format, list, .. } | Does::Scans { format, list, .. }) = function.does else { return 0 };
        // The arguments behind the last one that is always there, or what the caller has made of his.
        self.list.general = 8 * (u32::from(format) + 1);
        self.list.vector = GENERAL;
        self.call.list = match list {
            true => load(self.asked(format + 1)),
            false => self.list,
        };
        let number = self.number as usize;
        if OF_STREAMS.contains(&number) {
            watch::range(self.asked(0), 4, site, false, false);
        }
        let ends = THAT_END.contains(&number) || number == MAY_END && self.asked(0) as i32 != 0;
        if ends && is_threaded() {
            note_name(function.name.as_bytes());
        }
        let at = self.asked(format);
        reads(at, Until::Nul, texts::LONGEST);
        let (to, gives, by) = match function.does {
            Does::Prints { to, gives, by, .. } => {
                let writes = |at: u64, size: u64| watch::range(at, size, site, true, false);
                if !printed(at, self.call.list, reads, writes) {
                    note_name(function.name.as_bytes());
                }
                (to, gives, by)
            }
            Does::Scans { text, by, .. } => {
                if let Some(text) = text {
                    let from = self.asked(text);
                    reads(from, Until::Nul, texts::LONGEST);
                    self.scans_objects(at);
                }
                (None, None, by)
            }
            _ => return 0,
        };
        let scans = matches!(function.does, Does::Scans { .. });
        if to.is_none() && gives.is_none() && !scans {
            return 0;
        }
        if let Some((to, size)) = to {
            let most = size.map_or_else(|| self.printed_size(at), |n| self.asked(n));
            self.put_aside(0, to, most);
        }
        if let Some(gives) = gives {
            self.put_aside(0, gives, 8);
        }
        if by.is_empty() {
            return real(self.number as usize);
        }
        let by = real(usize::from(BY_LIST[self.number as usize]));
        if by == 0 {
            note_name(function.name.as_bytes());
            return 0;
        }
        self.arguments[usize::from(format) + 1] = &raw const self.list as u64;
        by
    }

    /// Bytes that are about to be printed, with the NUL; 0 where that is of no interest.
    fn printed_size(&self, format: u64) -> u64 {
        let (by, mut list) = (real(VSNPRINTF), self.call.list);
        if by == 0 || !watch::has_objects() {
            return 0;
        }
        // SAFETY: the function of libc's that has this name, with a copy of the list; it writes what `%n` asks for, as the call itself will.
        let by = unsafe { core::mem::transmute::<u64, extern "C" fn(u64, u64, u64, &mut List) -> i32>(by) };
        u64::try_from(by(0, 0, format, &mut list)).map_or(0, |n| n + 1)
    }

    /// What is scanned from a text is stored in the step that begins here: memory that is an object has its turn first, all that
    /// may be stored to.
    fn scans_objects(&self, format: u64) {
        let site = self.site();
        let has_turn = |at: u64, size: Option<u64>, width: Option<u64>| {
            let size = size.or(width.map(|n| n + 1)).unwrap_or(1);
            if watch::has_object(at, size) {
                watch::range(at, size, site, true, false);
            }
        };
        scanned(format, self.call.list, u32::MAX, has_turn);
    }

    /// Records what such a function has written.
    pub(super) fn formatted(&mut self, function: &Function, result: u64) -> u64 {
        let site = self.site();
        let count = result as i32;
        match function.does {
            Does::Prints { to: Some((to, size)), .. } => {
                let aside = self.call.writes[0];
                let written = u64::try_from(count).map_or(0, |n| n + 1);
                let most = size.map_or(u64::MAX, |n| self.asked(n));
                let (at, size) = (self.asked(to), written.min(most));
                // It is put there piece by piece.
                if size > 1 && watch::has_object(at, size) {
                    machine().note_wide_use();
                }
                wrote(at, aside, size, site);
            }
            Does::Prints { gives: Some(gives), .. } => {
                let at = self.asked(gives);
                wrote(at, self.call.writes[0], 8, site);
                if let Ok(n @ 0..) = u64::try_from(count) {
                    wrote(load(at), Aside::default(), n + 1, site);
                }
            }
            Does::Scans { format, text, .. } => {
                let writes = |at: u64, size: Option<u64>, width: Option<u64>| {
                    let stored = size.unwrap_or_else(|| texts::text(at, texts::LONGEST));
                    // What had its turn is no wide use: see `scans_objects`.
                    match size.or(width.map(|n| n + 1)) {
                        Some(most) if text.is_some() && stored <= most => watch::call_wrote(at, stored, site),
                        _ => wrote(at, Aside::default(), stored, site),
                    }
                };
                let stored = u32::try_from(count).unwrap_or(0);
                if !scanned(self.asked(format), self.call.list, stored, writes) {
                    note_name(function.name.as_bytes());
                }
            }
            _ => {}
        }
        result
    }
}
