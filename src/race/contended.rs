//! Which memory several threads use, and one of them writes.
//!
//! Only there can accesses conflict. Mostly that is a small part of what a program uses, so that is found out first, for the whole
//! execution and without any order, and nothing else is looked at closely. Page by page first: most pages one thread alone uses, and what is
//! known of a page is far less than what is known of all its words.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

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

/// Pages are looked up for each access: their numbers come in rows, so that two products spread them well enough.
#[derive(Default)]
pub struct PageHasher(u64);

impl PageHasher {
    fn add(&mut self, number: u64) {
        let all = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = all ^ all >> 32;
    }
}

impl Hasher for PageHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.add(byte.into()));
    }

    fn write_u32(&mut self, number: u32) {
        self.add(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.add(number);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Numbers for pages of memory, from 0, by space and number.
pub struct Pages {
    places: HashMap<(u32, u64), u32, BuildHasherDefault<PageHasher>>,
    /// Those that were looked up last, by some bits of theirs.
    last: [((u32, u64), u32); Pages::LAST],
}

impl Default for Pages {
    fn default() -> Pages {
        Pages { places: HashMap::default(), last: [((u32::MAX, u64::MAX), 0); Pages::LAST] }
    }
}

impl Pages {
    const LAST: usize = 256;

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

/// The state of a page or word that `thread` uses, too.
fn used(state: u32, thread: Tid, write: bool) -> u32 {
    let own = (thread + 1) * THREAD;
    let first = if state == 0 { own } else { state };
    let several = if first / THREAD == own / THREAD { 0 } else { SEVERAL };
    first | several | if write { WRITTEN } else { 0 }
}

/// What is known of the pages and words of an execution.
#[derive(Default)]
pub struct Contended {
    pages: Pages,
    /// By page, its state; and its place in `words`, from 1, if there can be such words in it.
    states: Vec<(u32, u32)>,
    words: Vec<[u32; PAGE]>,
    /// By page: it has such words.
    any: Vec<bool>,
    /// Some page has.
    some: bool,
}

impl Contended {
    /// `thread` makes `access` somewhere in the execution. Gives whether words of a page may be such by now: then [`touch`](Contended::touch) is to
    /// be told of all accesses, once this has been told of all.
    pub fn page_of(&mut self, thread: Tid, access: &Access) -> bool {
        let end = access.address.saturating_add(access.size).div_ceil(WORD).div_ceil(PAGE as u64);
        let mut any = false;
        for page in access.address / WORD / PAGE as u64..end {
            let place = self.pages.get_or_new((access.space, page)) as usize;
            if place == self.states.len() {
                self.states.push((0, 0));
                self.any.push(false);
            }
            let state = &mut self.states[place].0;
            *state = used(*state, thread, access.write);
            any |= *state & BOTH == BOTH;
        }
        any
    }

    /// The same for words.
    pub fn touch(&mut self, thread: Tid, access: &Access) {
        for Piece { page, words } in pieces(access) {
            let Some(place) = self.pages.get((access.space, page)).map(|place| place as usize) else { continue };
            let (state, at) = &mut self.states[place];
            if *state & BOTH != BOTH {
                continue;
            }
            if *at == 0 {
                self.words.push([0; PAGE]);
                *at = self.words.len() as u32;
            }
            let mut any = false;
            for state in &mut self.words[*at as usize - 1][words] {
                *state = used(*state, thread, access.write);
                any |= *state & BOTH == BOTH;
            }
            self.any[place] |= any;
            self.some |= any;
        }
    }

    /// There are such words.
    pub fn any(&self) -> bool {
        self.some
    }

    /// The number of a page, if there is a word in it on which accesses can conflict.
    pub fn page(&mut self, space: u32, page: u64) -> Option<usize> {
        let place = self.pages.get((space, page))? as usize;
        self.any[place].then_some(place)
    }

    /// Accesses to that word of the page with that number can conflict.
    pub fn is_contended(&self, page: usize, word: usize) -> bool {
        let at = self.states[page].1;
        at > 0 && self.words[at as usize - 1][word] & BOTH == BOTH
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

    /// Of accesses in their order.
    fn contended(all: &[(Tid, Access)]) -> Contended {
        let mut contended = Contended::default();
        let mut any = false;
        for (thread, access) in all {
            any |= contended.page_of(*thread, access);
        }
        assert!(any);
        all.iter().for_each(|(thread, access)| contended.touch(*thread, access));
        contended
    }

    #[test]
    fn what_several_use_and_one_writes() {
        // Read by all; written by one alone; written, then read; read, then written; of another process.
        let first = [(0, 0, false), (1, 0, false), (2, 8, true), (2, 8, false), (0, 16, true)];
        let then = [(1, 16, false), (1, 24, false), (0, 24, true), (1, 32, false)];
        let one = |(thread, at, write): (Tid, u64, bool)| (thread, access(0, at, 8, write));
        let mut accesses: Vec<_> = first.into_iter().chain(then).map(one).collect();
        accesses.push((0, access(1, 32, 8, true)));
        // Of pages that use the same slot, one where nothing meets.
        accesses.push((0, access(0, 64 * 4096, 4, true)));
        accesses.push((1, access(0, 64 * 4096 + 8, 4, true)));
        let mut all = contended(&accesses);
        let page = all.page(0, 0).unwrap();
        assert_eq!((0..6).filter(|&word| all.is_contended(page, word)).collect::<Vec<_>>(), [2, 3]);
        assert!(all.page(1, 0).is_none());
        assert!(all.page(0, 5).is_none());
        assert_eq!(all.page(0, 64), None);
        accesses.push((1, access(0, 64 * 4096, 4, false)));
        let mut all = contended(&accesses);
        let (other, first) = (all.page(0, 64).unwrap(), all.page(0, 0).unwrap());
        assert!(all.is_contended(other, 0) && !all.is_contended(other, 1) && !all.is_contended(first, 0));
    }

    #[test]
    fn pages_that_one_thread_uses() {
        let mut all = Contended::default();
        assert!(!all.page_of(0, &access(0, 4088, 16, true)) && !all.page_of(1, &access(0, 8192, 8, true)));
        assert!(!all.page_of(0, &access(0, 4096, 8, false)));
        // One access that reaches into two pages; readers alone meet on neither.
        assert!(all.page_of(1, &access(0, 4096, 8, false)));
        assert!(!all.page_of(0, &access(0, 1 << 20, 8, false)) && !all.page_of(1, &access(0, 1 << 20, 8, false)));
    }
}
