//! Free addresses of a process.

use std::ops::Range;

const PAGE: u64 = 4096;
/// No mapping of ours lies below.
const LOWEST: u64 = 1 << 16;
/// No mapping of a program lies above.
const HIGHEST: u64 = 0x7fff_ffff_f000;

/// What is taken of a process's addresses, whole pages.
#[derive(Clone, Debug, Default)]
pub struct Space {
    /// Ascending, disjoint.
    taken: Vec<Range<u64>>,
}

impl Space {
    /// Nothing is free but what is not in `taken`.
    pub fn new(taken: impl IntoIterator<Item = Range<u64>>) -> Space {
        let mut space = Space::default();
        taken.into_iter().for_each(|range| space.take(range));
        space
    }

    /// Takes addresses, free or not.
    pub fn take(&mut self, range: Range<u64>) {
        let mut new = range.start / PAGE * PAGE..range.end.div_ceil(PAGE).saturating_mul(PAGE);
        let first = self.taken.partition_point(|r| r.end < new.start);
        let last = self.taken.partition_point(|r| r.start <= new.end);
        for old in self.taken.drain(first..last.max(first)) {
            new = new.start.min(old.start)..new.end.max(old.end);
        }
        self.taken.insert(first, new);
    }

    /// Whether all of it is free.
    pub fn is_free(&self, range: &Range<u64>) -> bool {
        let after = self.taken.partition_point(|r| r.end <= range.start);
        range.start >= LOWEST && range.end <= HIGHEST && self.taken.get(after).is_none_or(|r| r.start >= range.end)
    }

    /// The highest place for `length` bytes in `within`, whole pages.
    pub fn highest(&self, within: Range<u64>, length: u64) -> Option<u64> {
        let length = length.div_ceil(PAGE) * PAGE;
        let mut end = within.end.min(HIGHEST) / PAGE * PAGE;
        loop {
            let start = end.checked_sub(length).filter(|start| *start >= within.start.max(LOWEST))?;
            let after = self.taken.partition_point(|r| r.end <= start);
            match self.taken.get(after).filter(|r| r.start < end) {
                None => return Some(start),
                Some(blocking) => end = blocking.start,
            }
        }
    }

    /// The lowest.
    pub fn lowest(&self, within: Range<u64>, length: u64) -> Option<u64> {
        let length = length.div_ceil(PAGE) * PAGE;
        let mut start = within.start.max(LOWEST).div_ceil(PAGE) * PAGE;
        loop {
            let end = start.checked_add(length).filter(|end| *end <= within.end.min(HIGHEST))?;
            let after = self.taken.partition_point(|r| r.end <= start);
            match self.taken.get(after).filter(|r| r.start < end) {
                None => return Some(start),
                Some(blocking) => start = blocking.end,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_places_are_found() {
        let mut space = Space::new([0x40_0000..0x40_1000, 0x50_0000..0x60_0000]);
        assert_eq!(space.highest(0x10_0000..0x50_0000, 0x2000), Some(0x4f_e000));
        assert_eq!(space.highest(0x10_0000..0x58_0000, 0x2000), Some(0x4f_e000));
        assert_eq!(space.lowest(0x40_0000..0x100_0000, 0x10_0000), Some(0x60_0000));
        assert_eq!(space.lowest(0x40_0800..0x100_0000, 1), Some(0x40_1000));
        assert_eq!(space.lowest(0x50_0000..0x60_0000, 1), None);
        assert!(space.is_free(&(0x40_1000..0x50_0000)) && !space.is_free(&(0x40_1000..0x50_0001)));
        space.take(0x40_0800..0x50_0800);
        assert!(!space.is_free(&(0x45_0000..0x45_1000)));
        assert_eq!((space.taken.len(), &space.taken[0]), (1, &(0x40_0000..0x60_0000)));
        assert!(!space.is_free(&(0..0x1000)));
    }
}
