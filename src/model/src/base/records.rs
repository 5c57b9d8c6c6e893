//! What an execution did to watched memory, kept in 16 bytes each: there are many, and what is written and read of them is most of what they cost.

use crate::base::ids::Tid;
use crate::base::table::Table;
use crate::base::watch::Record;

/// A record as it is kept: address and kind, site, bytes. Whose it is, is that of the last [`BY`] before.
#[derive(Clone, Copy)]
#[repr(C)]
struct Packed {
    /// [`Record::address`], and from [`WHAT`] on [`Record::what`].
    place: u64,
    site: u32,
    size: u32,
}

const WHAT: u32 = 56;
/// In the place of a kind, of what is no record: those behind it are of thread `site` and space `size`. No step writes.
const BY: u32 = Record::STEP | Record::WRITES;

/// At most `N` records, or less where threads take turns often.
#[repr(C)]
pub struct Records<const N: usize> {
    table: Table<Packed, N>,
    /// Of the last one.
    thread: Tid,
    space: u32,
}

impl<const N: usize> Records<N> {
    /// Appends a record. False: there is no room.
    #[inline]
    pub fn push(&mut self, record: Record) -> bool {
        let kind = record.what & Record::KIND;
        // Of a step the trace says whose it is, and the end of a thread is in no memory.
        let space = if kind == Record::ENDS { self.space } else { record.space };
        if kind != Record::STEP && (record.thread, space) != (self.thread, self.space) {
            if !self.keep(0, BY, (record.thread, space)) {
                return false;
            }
            (self.thread, self.space) = (record.thread, space);
        }
        if record.address >> WHAT != 0 {
            // No memory is there: whatever uses it does not come back from that.
            return true;
        }
        let (mut address, mut left) = (record.address, record.size);
        while left > u64::from(u32::MAX) {
            if !self.keep(address, record.what, (record.site, u32::MAX)) {
                return false;
            }
            (address, left) = (address + u64::from(u32::MAX), left - u64::from(u32::MAX));
        }
        self.keep(address, record.what, (record.site, left as u32))
    }

    #[inline]
    fn keep(&mut self, address: u64, what: u32, (site, size): (u32, u32)) -> bool {
        debug_assert!(what >> (64 - WHAT) == 0);
        self.table.push(Packed { place: u64::from(what) << WHAT | address & ((1 << WHAT) - 1), site, size }).is_some()
    }

    /// The records, in their order. Of a step, no thread or space is told, of the end of a thread no space.
    pub fn iter(&self) -> impl Iterator<Item = Record> + Clone + '_ {
        let (mut thread, mut space) = (0, 0);
        self.table.as_slice().iter().filter_map(move |packed| {
            let Packed { place, site, size } = *packed;
            let (address, what) = (place & ((1 << WHAT) - 1), (place >> WHAT) as u32);
            if what == BY {
                (thread, space) = (site, size);
                return None;
            }
            Some(Record { address, size: size.into(), site, thread, space, what })
        })
    }

    /// So many are kept, with what says whose they are.
    pub fn kept(&self) -> u32 {
        self.table.len
    }

    /// Where the next `n` of them will be: address and bytes.
    pub fn room(&self, n: u32) -> (u64, u64) {
        let size = size_of::<Packed>() as u64;
        let start = self.table.as_slice().as_ptr() as u64;
        let left = (N as u32).saturating_sub(self.table.len);
        (start + u64::from(self.table.len) * size, u64::from(left.min(n)) * size)
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.table.clear();
        (self.thread, self.space) = (0, 0);
    }

    /// As [`Table::is_sealed`].
    pub fn is_sealed(&self) -> bool {
        self.table.is_sealed()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::boxed::Box;
    use std::vec::Vec;

    use super::*;
    use crate::base::ids::NONE;

    fn empty<const N: usize>() -> Box<Records<N>> {
        let nothing = Packed { place: 0, site: 0, size: 0 };
        let mut all = Box::new(Records { table: Table::of([nothing; N]), thread: 7, space: 7 });
        all.clear();
        all
    }

    fn touch(thread: Tid, space: u32, address: u64, size: u64) -> Record {
        Record { address, size, site: 1 << 31 | 5, thread, space, what: Record::WRITES | 3 << Record::UNIT }
    }

    #[test]
    fn what_is_kept_comes_back() {
        let mut all = empty::<16>();
        let begins = Record { address: NONE.into(), size: 0, site: 4, thread: 5, space: 2, what: Record::BEGINS };
        let step = Record { address: 9, what: Record::STEP, ..Record::default() };
        let ends = Record { thread: 5, what: Record::ENDS, space: 2, ..Record::default() };
        let records = [touch(0, 0, 0x7fff_ffff_f000, 8), touch(3, 0, 8, 1 << 26), begins, touch(5, 1 << 31, 0, 64)];
        for record in records {
            assert!(all.push(record));
        }
        assert!(all.push(touch(5, 2, 16, 2)) && all.push(Record { address: 9, thread: 3, what: Record::STEP, ..step }));
        assert!(all.push(Record { space: 0, ..ends }));
        let back: Vec<Record> = all.iter().collect();
        assert_eq!(back[..4], records);
        assert_eq!(back[4], touch(5, 2, 16, 2));
        assert_eq!((back[5].what, back[5].address), (Record::STEP, 9));
        assert_eq!(back[6], ends);
        assert_eq!(back.len(), 7);
        all.clear();
        assert_eq!(all.iter().count(), 0);
        // Those of thread 0 need no word about it.
        assert!(all.push(touch(0, 0, 8, 8)) && all.kept() == 1);
    }

    #[test]
    fn large_pieces_and_no_memory() {
        let mut all = empty::<4>();
        let anew = Record { address: 4096, size: 10 << 30, what: Record::ANEW, ..Record::default() };
        assert!(all.push(anew) && all.push(touch(0, 0, u64::MAX - 8, 8)));
        let back: Vec<Record> = all.iter().collect();
        assert_eq!(back.iter().map(|r| r.size).sum::<u64>(), 10 << 30);
        assert!(back.windows(2).all(|w| w[0].address + w[0].size == w[1].address) && back.len() == 3);
        // The next one needs two places.
        assert!(!all.push(touch(1, 0, 8, 8)));
        assert_eq!(all.iter().count(), 3);
    }
}
