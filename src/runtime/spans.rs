//! Which memory a process that goes back puts back: its own, as `/proc/PID/maps` tells it.

use vsrun_model::arena::BACK_ADDR;
use vsrun_model::back::Span;
use vsrun_model::watch::{MEMORY, READ_BIT, WRITE_BIT};

use crate::binary::modules::Mapping;

/// The main stack may grow so far below where it is.
const STACK: u64 = 8 << 20;
/// And not so near to what is below it.
const GAP: u64 = 1 << 20;
/// A large shadow is looked at only where it is of memory that is there, and of what lies so far around: at first, and where an execution has shown that this
/// does not suffice. The kernel takes a step for each 2 MiB of it that are not there, where a GiB has something, and for each GiB else.
pub(super) const NEAR: u64 = 64 << 20;
pub(super) const FAR: u64 = 64 << 30;

/// A piece of memory, from an address to another one.
type Piece = (u64, u64);

/// The shadows of the areas of memory: where each is, its area, and the bit that leads from one to the other.
fn shadows() -> impl Iterator<Item = (Piece, Piece, u64)> {
    let of = |[start, end]: [u64; 2], bit: u64| ((start ^ bit, ((end - 1) ^ bit) + 1), (start, end), bit);
    MEMORY.into_iter().flat_map(move |area| [READ_BIT, WRITE_BIT].map(|bit| of(area, 1 << bit)))
}

/// Of that area what is near to something that is mapped, ascending.
fn near(maps: &[Mapping], around: u64, (start, end): Piece) -> Vec<Piece> {
    let mut all: Vec<Piece> = Vec::new();
    // They ascend.
    for mapping in maps.iter().filter(|mapping| mapping.start < end && start < mapping.end) {
        let (from, to) = (mapping.start.saturating_sub(around).max(start), mapping.end.saturating_add(around).min(end));
        match all.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => all.push((from, to)),
        }
    }
    all
}

/// The parts of a mapping that are to be looked at: all of it, where it is no large shadow.
fn parts(maps: &[Mapping], around: u64, (start, end): Piece) -> Vec<Piece> {
    let of = shadows().find(|(at, area, _)| at.0 <= start && end <= at.1 && area.1 - area.0 > FAR);
    let Some((_, area, bit)) = of else { return vec![(start, end)] };
    let shadow = |(from, to): Piece| ((from ^ bit).max(start), (((to - 1) ^ bit) + 1).min(end));
    near(maps, around, area).into_iter().map(shadow).filter(|(from, to)| from < to).collect()
}

/// The process's own memory that can be written, or could be made so; of the large shadows of memory that is watched only what `sys::cover` in the shim
/// relies on.
pub(super) fn spans(maps: &[Mapping], around: u64) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    let mut before = 0;
    for mapping in maps {
        let name = mapping.path.as_deref().map(|path| path.to_string_lossy());
        let ours = (BACK_ADDR..BACK_ADDR + (1 << 40)).contains(&mapping.start);
        let bits = [('r', libc::PROT_READ), ('w', libc::PROT_WRITE), ('x', libc::PROT_EXEC)];
        let prot: i32 = bits.iter().filter(|bit| mapping.perms.contains(bit.0)).map(|bit| bit.1).sum();
        let kind = if name.is_none() { Span::PLAIN } else { 0 };
        let watched = prot & libc::PROT_WRITE != 0 || kind == Span::PLAIN;
        if watched && mapping.perms.ends_with('p') && !ours {
            let mut start = mapping.start;
            if name.as_deref() == Some("[stack]") {
                start = (before + GAP).max(mapping.end.saturating_sub(STACK)).min(start);
            }
            for (start, end) in parts(maps, around, (start, mapping.end)) {
                match spans.last_mut() {
                    Some(last) if (last.end, last.kind, last.prot) == (start, kind, prot as u32) => last.end = end,
                    _ => spans.push(Span { start, end, prot: prot as u32, kind }),
                }
            }
        }
        before = mapping.end;
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans_of(maps: &str) -> Vec<(u64, u64)> {
        spans(&Mapping::parse_all(maps.as_bytes()), FAR).iter().map(|span| (span.start, span.end)).collect()
    }

    #[test]
    fn of_large_shadows_what_is_near_to_memory() {
        let maps = "80000000000-90000000000 rw-p 00000000 00:00 0
100000000000-110000000000 rw-p 00000000 00:00 0
450000000000-470000000000 rw-p 00000000 00:00 0
555555554000-555555555000 r-xp 00000000 00:01 7 /a
555555555000-555555556000 rw-p 00001000 00:01 7 /a
5d0000000000-5f0000000000 rw-p 00000000 00:00 0
6e0000000000-6ffffffff000 rw-p 00000000 00:00 0
760000000000-77fffffff000 rw-p 00000000 00:00 0
7ffff7fc2000-7ffff7fc3000 rw-p 00000000 00:00 0
7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0 [stack]
";
        let (low, high) = (0x5555_5555_4000 - FAR, 0x5555_5555_6000 + FAR);
        let top = 0x7fff_f7fc_2000 - FAR;
        let expected = vec![
            // Nothing is in the lowest area.
            (low ^ 1 << 44, high ^ 1 << 44),
            (0x5555_5555_5000, 0x5555_5555_6000),
            (low ^ 1 << 43, high ^ 1 << 43),
            (top ^ 1 << 44, 0x6fff_ffff_f000),
            (top ^ 1 << 43, 0x77ff_ffff_f000),
            (0x7fff_f7fc_2000, 0x7fff_f7fc_3000),
            (0x7fff_ff7f_f000, 0x7fff_ffff_f000),
        ];
        assert_eq!(spans_of(maps), expected);
    }

    #[test]
    fn small_shadows_whole() {
        let maps = "290000000000-290400000000 rw-p 00000000 00:00 0\n310000000000-310400000000 rw-p 00000000 00:00 0\n";
        assert_eq!(spans_of(maps), [(0x2900_0000_0000, 0x2904_0000_0000), (0x3100_0000_0000, 0x3104_0000_0000)]);
    }
}
