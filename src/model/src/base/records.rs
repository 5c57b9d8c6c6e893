//! What an execution did to watched memory, kept in 16 bytes each: there are many, and what is written and read of them is most of what they cost.

use crate::base::ids::Tid;
use crate::base::table::Table;
use crate::base::watch::{Entry, Record};

/// A record as it is kept: address and kind, site, bytes. Whose it is, is that of the last [`BY`] before.
#[derive(Clone, Copy)]
#[repr(C)]
struct Packed {
    /// [`Record::address`], and from [`WHAT`] on [`Record::what`].
    place: u64,
    /// [`Record::site`], with [`Entry::STRIDED`] where there is a stride.
    site: u32,
    /// Bytes; where there is a stride, how many accesses there are, and from [`STRIDE`] on the stride, both in accesses.
    size: u32,
}

/// See [`Packed::size`].
const STRIDE: u32 = 8;
const _: () = assert!(Entry::STRIDE == STRIDE + 2);

const WHAT: u32 = 56;
/// In the place of a kind, of what is no record: those behind it are of thread `site` and space `size`. No step writes.
const BY: u32 = Record::STEP | Record::WRITES;
/// The same: what the record behind it says of who may use memory is said by the instruction of number `site` less 1.
const AT: u32 = Record::STEP | Record::LOCKED;

/// At most `N` records, or less where threads take turns often.
#[repr(C)]
pub struct Records<const N: usize> {
    /// Of the last one. It lies before the table, so on a page with the first of them.
    thread: Tid,
    space: u32,
    table: Table<Packed, N>,
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
        if record.is_claim() && record.stride != 0 && !self.keep(0, AT, (record.stride as u32, 0)) {
            return false;
        }
        if let Some(unit) = record.unit().filter(|_| record.stride != 0) {
            let size = (record.size / unit) as u32 | ((record.stride / unit as i64) as u32) << STRIDE;
            return self.keep(record.address, record.what, (record.site | Entry::STRIDED, size));
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

    /// Appends the accesses of an entry, by `thread` at `address` of `space`. False: there is no room.
    #[inline]
    pub fn push_access(&mut self, entry: &Entry, thread: Tid, space: u32, address: u64) -> bool {
        if (thread, space) != (self.thread, self.space) {
            if !self.keep(0, BY, (thread, space)) {
                return false;
            }
            (self.thread, self.space) = (thread, space);
        }
        if address >> WHAT != 0 {
            // As in `push`.
            return true;
        }
        let flags =
            if entry.writes() { Record::WRITES } else { 0 } | if entry.is_locked() { Record::LOCKED } else { 0 };
        let unit = entry.what >> Entry::UNIT;
        if entry.is_strided() {
            // The same fields, at other places: all below the unit and above the flags.
            let above = u32::BITS - Entry::UNIT;
            let size = ((entry.what << above) as i32 >> (above + 2)) as u32;
            return self.keep(address, Record::TOUCHES | flags | unit << Record::UNIT, (entry.site, size));
        }
        let unit = if entry.unit() == entry.size() { 0 } else { unit };
        self.keep(address, Record::TOUCHES | flags | unit << Record::UNIT, (entry.site, entry.size() as u32))
    }

    #[inline]
    fn keep(&mut self, address: u64, what: u32, (site, size): (u32, u32)) -> bool {
        debug_assert!(what >> (64 - WHAT) == 0);
        self.table.push(Packed { place: u64::from(what) << WHAT | address & ((1 << WHAT) - 1), site, size }).is_some()
    }

    /// The records, in their order. Of a step, no thread or space is told, of the end of a thread no space.
    pub fn iter(&self) -> impl Iterator<Item = Record> + Clone + '_ {
        let (mut thread, mut space, mut at) = (0, 0, 0);
        self.table.as_slice().iter().filter_map(move |packed| {
            let Packed { place, site, size } = *packed;
            let (address, what) = (place & ((1 << WHAT) - 1), (place >> WHAT) as u32);
            if what == BY {
                (thread, space) = (site, size);
                return None;
            }
            if what == AT {
                at = i64::from(site);
                return None;
            }
            let record = Record { address, size: size.into(), stride: 0, site, thread, space, what };
            if record.is_claim() {
                return Some(Record { stride: core::mem::take(&mut at), ..record });
            }
            match record.unit() {
                Some(unit) if site & (Entry::FUNCTION | Entry::STRIDED) == Entry::STRIDED => Some(Record {
                    size: u64::from(size & ((1 << STRIDE) - 1)) * unit,
                    stride: i64::from(size as i32 >> STRIDE) * unit as i64,
                    site: site & !Entry::STRIDED,
                    ..record
                }),
                _ => Some(record),
            }
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

    /// Makes these equal to `other`.
    pub fn copy_from(&mut self, other: &Self) {
        (self.thread, self.space) = (other.thread, other.space);
        self.table.copy_from(&other.table);
    }

    /// How far they are: to come back there with [`Records::has_again`].
    pub(crate) fn reach(&self) -> (Tid, u32, u32) {
        (self.thread, self.space, self.table.len)
    }

    /// As [`Table::has_again`].
    pub(crate) fn has_again(&mut self, (thread, space, len): (Tid, u32, u32)) {
        (self.thread, self.space) = (thread, space);
        self.table.has_again(len);
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
        let what = Record::WRITES | 3 << Record::UNIT;
        Record { address, size, stride: 0, site: 1 << 31 | 5, thread, space, what }
    }

    #[test]
    fn what_is_kept_comes_back() {
        let mut all = empty::<16>();
        let begins =
            Record { address: NONE.into(), site: 4, thread: 5, space: 2, what: Record::BEGINS, ..Record::default() };
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
    fn where_claims_are_made_comes_back() {
        let mut all = empty::<8>();
        let claim = |what, stride| Record { what, stride, site: NONE, ..touch(3, 2, 8, 4) };
        let records =
            [claim(Record::OWNS, 7), claim(Record::DISOWNS, 0), touch(3, 2, 8, 4), claim(Record::HANDS_OVER, 1 << 31)];
        for record in records {
            assert!(all.push(record));
        }
        assert_eq!(all.iter().collect::<Vec<_>>(), records);
        assert_eq!(all.kept(), 7);
    }

    #[test]
    fn strides_come_back() {
        let mut all = empty::<8>();
        let strided = |unit: u64, stride: i64, times: u64| Record {
            stride,
            size: unit * times,
            site: 5,
            what: (unit.ilog2() + 1) << Record::UNIT,
            ..touch(0, 0, 1 << 40, 0)
        };
        let most = u64::from(Entry::MOST);
        let records =
            [strided(8, 960, 120), strided(4, -4 << 18, 2), strided(1, (1 << 18) - 1, most), strided(64, -64, 3)];
        for record in records {
            assert!(all.push(record));
        }
        let back: Vec<Record> = all.iter().collect();
        assert_eq!(back, records);
        assert_eq!(all.kept(), 4);
    }

    #[test]
    fn entries_are_the_records_of_their_accesses() {
        let mut all = empty::<64>();
        let what = |unit: u32, times: u32, stride: i32| {
            (unit.ilog2() + 1) << Entry::UNIT | (stride as u32) << Entry::STRIDE & ((1 << Entry::UNIT) - 1) | times << 2
        };
        let run = |unit: u32, times: u32| (unit.ilog2() + 1) << Entry::UNIT | (unit * times) << 2;
        let of = |site: u32, what: u32| Entry { address: 1 << 40, site, what };
        let entries = [
            of(5, 8 << 2 | 1),
            of(1 << 31 | 7, (1 << 26) << 2 | 3),
            of(5, run(4, 1) | 1),
            of(5, run(4, 100)),
            of(5 | Entry::STRIDED, what(8, 120, 120) | 1),
            of(5 | Entry::STRIDED, what(4, 2, -1 << 18)),
            of(5 | Entry::STRIDED, what(64, Entry::MOST, (1 << 18) - 1) | 3),
        ];
        for entry in &entries {
            assert!(all.push_access(entry, 3, 9, entry.address + 8));
        }
        let back: Vec<Record> = all.iter().collect();
        assert_eq!(back.len(), entries.len());
        for (record, entry) in back.iter().zip(&entries) {
            let parts: Vec<(u64, u64, u32)> = entry.parts().map(|p| (p.address + 8, p.size(), p.site)).collect();
            let unit = record.unit().unwrap_or(record.size);
            let stride = if record.stride == 0 { unit as i64 } else { record.stride };
            let of = |n: u64| (record.address.wrapping_add_signed(n as i64 * stride), unit, record.site);
            assert_eq!((0..record.size / unit).map(of).collect::<Vec<_>>(), parts, "{entry:?}");
            let flags = (record.what & Record::WRITES != 0, record.what & Record::LOCKED != 0);
            assert_eq!((flags, record.what & Record::KIND), ((entry.writes(), entry.is_locked()), Record::TOUCHES));
            assert_eq!((record.thread, record.space), (3, 9));
        }
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
