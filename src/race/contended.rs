//! Which memory several threads use, and one of them writes.
//!
//! Only there can accesses conflict. Mostly that is a small part of what a program uses, so that is found out first, for the whole
//! execution and without any order, and nothing else is looked at closely.

use std::collections::HashMap;

use vsrun_model::Tid;

use super::access::Access;
use crate::touched::WORD;

/// Words of a page.
pub const PAGE: usize = 512;

/// Bits of the state of a word: somebody writes it,
const WRITTEN: u32 = 1;
/// several threads use it;
const SEVERAL: u32 = 2;
const BOTH: u32 = WRITTEN | SEVERAL;
/// above them, one more than the thread that used it first; 0: nobody has.
const THREAD: u32 = 4;

/// Numbers for pages of memory, from 0, by space and number.
pub struct Pages {
    places: HashMap<(u32, u64), u32>,
    /// Those that were looked up last, by some bits of theirs.
    last: [((u32, u64), u32); Pages::LAST],
}

impl Default for Pages {
    fn default() -> Pages {
        Pages { places: HashMap::new(), last: [((u32::MAX, u64::MAX), 0); Pages::LAST] }
    }
}

impl Pages {
    const LAST: usize = 64;

    /// The number of a page, if it has one.
    pub fn get(&mut self, page: (u32, u64)) -> Option<u32> {
        let slot = &mut self.last[page.1 as usize % Pages::LAST];
        if slot.0 != page {
            *slot = (page, *self.places.get(&page)?);
        }
        Some(slot.1)
    }

    /// The number of a page; a new one gets the next.
    pub fn get_or_new(&mut self, page: (u32, u64)) -> u32 {
        self.get(page).unwrap_or_else(|| {
            let new = self.places.len() as u32;
            self.places.insert(page, new);
            new
        })
    }

    /// The pages of `space` among these, with their numbers.
    pub fn of(&self, space: u32, pages: std::ops::Range<u64>) -> Vec<(u64, u32)> {
        if pages.end - pages.start < self.places.len() as u64 {
            return pages.filter_map(|page| Some((page, *self.places.get(&(space, page))?))).collect();
        }
        let concerned =
            |((s, page), place): (&(u32, u64), &u32)| (*s == space && pages.contains(page)).then_some((*page, *place));
        self.places.iter().filter_map(concerned).collect()
    }
}

/// A part of an access that lies in one page of words.
pub struct Piece {
    /// Number of the page.
    pub page: u64,
    /// Words in it.
    pub words: std::ops::Range<usize>,
}

/// The parts of an access, page by page.
pub fn pieces(access: &Access) -> impl Iterator<Item = Piece> {
    let end = access.address.saturating_add(access.size).div_ceil(WORD);
    let mut next = access.address / WORD;
    std::iter::from_fn(move || {
        let page = next / PAGE as u64;
        let start = (next % PAGE as u64) as usize;
        let words = start..(start as u64 + end.saturating_sub(next)).min(PAGE as u64) as usize;
        next += words.len() as u64;
        (!words.is_empty()).then_some(Piece { page, words })
    })
}

/// What is known of the words of an execution.
#[derive(Default)]
pub struct Contended {
    pages: Pages,
    states: Vec<[u32; PAGE]>,
    /// By page: it has such words.
    any: Vec<bool>,
}

impl Contended {
    /// `thread` makes `access` somewhere in the execution.
    pub fn touch(&mut self, thread: Tid, access: &Access) {
        for Piece { page, words } in pieces(access) {
            let place = self.pages.get_or_new((access.space, page)) as usize;
            if place == self.states.len() {
                self.states.push([0; PAGE]);
                self.any.push(false);
            }
            let (own, written) = ((thread + 1) * THREAD, if access.write { WRITTEN } else { 0 });
            let mut any = false;
            for state in &mut self.states[place][words] {
                let first = if *state == 0 { own } else { *state };
                let several = if first / THREAD == own / THREAD { 0 } else { SEVERAL };
                *state = first | several | written;
                any |= *state & BOTH == BOTH;
            }
            self.any[place] |= any;
        }
    }

    /// The number of a page, if there is a word in it on which accesses can conflict.
    pub fn page(&mut self, space: u32, page: u64) -> Option<usize> {
        let place = self.pages.get((space, page))? as usize;
        self.any[place].then_some(place)
    }

    /// Accesses to that word of the page with that number can conflict.
    pub fn is_contended(&self, page: usize, word: usize) -> bool {
        self.states[page][word] & BOTH == BOTH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(space: u32, address: u64, size: u64, write: bool) -> Access {
        Access { space, address, size, write, locked: false, site: 1 }
    }

    #[test]
    fn pieces_of_accesses() {
        let of = |address, size| -> Vec<(u64, usize, usize)> {
            pieces(&access(0, address, size, false)).map(|p| (p.page, p.words.start, p.words.end)).collect()
        };
        assert_eq!(of(4096, 1), [(1, 0, 1)]);
        assert_eq!(of(4095, 2), [(0, 511, 512), (1, 0, 1)]);
        assert_eq!(of(8, 4096 * 2), [(0, 1, 512), (1, 0, 512), (2, 0, 1)]);
        assert_eq!(of(12, 8), [(0, 1, 3)]);
        assert_eq!(of(12, 0), [(0, 1, 2)]);
        assert_eq!(of(16, 0), []);
    }

    #[test]
    fn what_several_use_and_one_writes() {
        let mut all = Contended::default();
        // Read by all; written by one alone; written, then read; read, then written; of another process.
        for (thread, at, write) in [(0, 0, false), (1, 0, false), (2, 8, true), (2, 8, false), (0, 16, true)] {
            all.touch(thread, &access(0, at, 8, write));
        }
        for (thread, at, write) in [(1, 16, false), (1, 24, false), (0, 24, true), (1, 32, false)] {
            all.touch(thread, &access(0, at, 8, write));
        }
        all.touch(0, &access(1, 32, 8, true));
        let page = all.page(0, 0).unwrap();
        assert_eq!((0..6).filter(|&word| all.is_contended(page, word)).collect::<Vec<_>>(), [2, 3]);
        assert!(all.page(1, 0).is_none());
        // A page that was asked for before it was there; and one whose slot another one has.
        assert!(all.page(0, 64).is_none());
        all.touch(0, &access(0, 64 * 4096, 4, true));
        all.touch(1, &access(0, 64 * 4096 + 8, 4, true));
        assert_eq!(all.page(0, 64), None);
        all.touch(1, &access(0, 64 * 4096, 4, false));
        let (other, first) = (all.page(0, 64).unwrap(), all.page(0, 0).unwrap());
        assert!(all.is_contended(other, 0) && !all.is_contended(other, 1) && !all.is_contended(first, 0));
    }
}
