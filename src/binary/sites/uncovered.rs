//! Code of which nothing says which functions it belongs to: no symbol with a size, and no call frame information. It is not watched.
//!
//! What the compiler adds for the start and the end of a program or library (crti.o, crtbegin.o) is mostly such code, and is told by its
//! instructions. It runs before there are threads or after all has been done, and uses nothing of the program's own.

use iced_x86::{Decoder, DecoderOptions, Mnemonic};

use super::super::allowed::image::Image;
use super::{Reason, Unwatched};

/// Most bytes of the four functions of crtbegin.o, which are 185 long.
const CRTBEGIN: usize = 0xc0;
/// Most bytes of what is called at the start, and at the end.
const INIT: usize = 28;
const ENDBR: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];

/// Code that lies in none of the `functions`, which ascend, and in one of the `sections`, if there are any.
pub fn uncovered(image: &Image, functions: &[(u64, u64)], sections: &[(u64, u64)]) -> Vec<Unwatched> {
    let mut found = Vec::new();
    for (start, bytes) in image.code() {
        let whole = (start, start.saturating_add(bytes.len() as u64));
        let parts = if sections.is_empty() { &[whole] } else { sections };
        for part in parts {
            let (first, end) = (part.0.max(whole.0), part.1.min(whole.1));
            let mut at = first;
            for &(next, last) in functions.iter().filter(|f| f.1 > first && f.0 < end).chain([&(end, end)]) {
                if next > at && at < end {
                    stretch(at, &bytes[(at - start) as usize..(next.min(end) - start) as usize], &mut found);
                }
                at = at.max(last);
            }
        }
    }
    found
}

/// What is in a stretch beside padding.
fn stretch(start: u64, bytes: &[u8], found: &mut Vec<Unwatched>) {
    let mut at = 0;
    while let Some(&first) = bytes.get(at) {
        let rest = &bytes[at..];
        if matches!(first, 0 | 0xcc) {
            at += 1;
        } else if let Some(length) = no_operation(rest).or_else(|| linkage(rest)) {
            at += length;
        } else {
            let (length, reason) = match startup(rest) {
                Some(length) => (length.min(rest.len()), Reason::Startup),
                None => (rest.len(), Reason::Unbounded),
            };
            found.push(Unwatched { at: start + at as u64, length: length as u64, reason });
            at += length;
        }
    }
}

fn no_operation(bytes: &[u8]) -> Option<usize> {
    let instruction = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
    (instruction.mnemonic() == Mnemonic::Nop).then(|| instruction.len())
}

/// An entry of a procedure linkage table, of which not all linkers say what it is: it jumps to where a word says that the loader fills.
fn linkage(bytes: &[u8]) -> Option<usize> {
    let after = |bytes: &[u8], prefix: &[u8]| bytes.starts_with(prefix).then_some(prefix.len());
    let mut at = after(bytes, ENDBR).unwrap_or(0);
    // The first one pushes a word of the loader's before.
    if after(&bytes[at..], &[0xff, 0x35]).is_some() {
        at += 6;
    }
    at += bytes.get(at..).and_then(|rest| after(rest, &[0xf2])).unwrap_or(0);
    after(bytes.get(at..)?, &[0xff, 0x25])?;
    at += 6;
    // Its number is pushed, and the first one jumped to.
    if bytes.get(at) == Some(&0x68) && bytes.get(at + 5) == Some(&0xe9) {
        at += 10;
    }
    (at <= bytes.len()).then_some(at)
}

/// How long the compiler's own code is that these bytes begin with, at most.
fn startup(bytes: &[u8]) -> Option<usize> {
    let begins = |pattern: &[Option<u8>]| {
        pattern.len() <= bytes.len()
            && pattern.iter().zip(bytes).all(|(wanted, byte)| wanted.is_none_or(|w| w == *byte))
    };
    let all = |bytes: &[u8]| bytes.iter().map(|byte| Some(*byte)).collect::<Vec<_>>();
    let any = |n: usize| vec![None; n];
    // deregister_tm_clones: the distance of two addresses, relative to the instruction or not.
    let relative =
        [all(&[0x48, 0x8d, 0x3d]), any(4), all(&[0x48, 0x8d, 0x05]), any(4), all(&[0x48, 0x39, 0xf8, 0x74])].concat();
    let absolute = [all(&[0xb8]), any(4), all(&[0x48, 0x3d]), any(4), all(&[0x74])].concat();
    if begins(&relative) || begins(&absolute) {
        return Some(CRTBEGIN);
    }
    // _init calls __gmon_start__ if it is there, _fini nothing.
    for endbr in [&[][..], ENDBR] {
        let init =
            [all(endbr), all(&[0x48, 0x83, 0xec, 0x08, 0x48, 0x8b, 0x05]), any(4), all(&[0x48, 0x85, 0xc0, 0x74])]
                .concat();
        let fini = [all(endbr), all(&[0x48, 0x83, 0xec, 0x08, 0x48, 0x83, 0xc4, 0x08, 0xc3])].concat();
        if begins(&init) {
            return Some(INIT);
        }
        if begins(&fini) {
            return Some(fini.len());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(bytes: &[u8]) -> Vec<(u64, u64, Reason)> {
        let mut found = Vec::new();
        stretch(0x1000, bytes, &mut found);
        found.into_iter().map(|u| (u.at, u.length, u.reason)).collect()
    }

    #[test]
    fn padding_and_what_the_compiler_adds() {
        let padding = [0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, 0x90, 0xcc, 0];
        assert_eq!(parts(&padding), []);
        let mut bytes = padding.to_vec();
        bytes.extend([0x48, 0x83, 0xec, 0x08, 0x48, 0x83, 0xc4, 0x08, 0xc3]);
        assert_eq!(parts(&bytes), [(0x100d, 9, Reason::Startup)]);
        // What comes behind it is the program's.
        bytes.extend([0x90, 0xff, 0x07, 0xc3]);
        assert_eq!(parts(&bytes), [(0x100d, 9, Reason::Startup), (0x1017, 3, Reason::Unbounded)]);
        // Entries of a linkage table, the first one and others.
        let first = [0xff, 0x35, 1, 2, 3, 4, 0xff, 0x25, 1, 2, 3, 4, 0x0f, 0x1f, 0x40, 0];
        let entry = [0xff, 0x25, 1, 2, 3, 4, 0x68, 1, 0, 0, 0, 0xe9, 1, 2, 3, 4];
        let other = [0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 1, 2, 3, 4, 0x0f, 0x1f, 0x44, 0, 0];
        assert_eq!(parts(&[&first[..], &entry, &other].concat()), []);
        let mut begin = vec![0x48, 0x8d, 0x3d, 1, 2, 3, 4, 0x48, 0x8d, 0x05, 1, 2, 3, 4, 0x48, 0x39, 0xf8, 0x74];
        begin.resize(CRTBEGIN, 0xc3);
        assert_eq!(parts(&begin), [(0x1000, CRTBEGIN as u64, Reason::Startup)]);
        begin.extend([0xff, 0x07, 0xc3]);
        assert_eq!(parts(&begin)[1..], [(0x1000 + CRTBEGIN as u64, 3, Reason::Unbounded)]);
    }
}
