//! Slots: jumps at places that punned jumps can reach, each to a trampoline.

use std::collections::BTreeMap;
use std::ops::Range;

use super::emit::distance;
use super::space::Space;

const PAGE: u64 = 4096;
/// A jump.
const SLOT: u64 = 5;
/// Pages of slots that are mapped at most: each is a mapping of its own, which every fork copies.
const MOST_PAGES: usize = 8192;
/// How many places are tried where many would do.
const TRIES: u64 = 256;

/// The slots of a process.
#[derive(Default)]
pub struct Slots {
    /// By page: where slots begin (in the page), ascending, and where they lead.
    pages: BTreeMap<u64, Vec<(u64, u64)>>,
}

impl Slots {
    /// How many pages there are.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// A slot that begins in `within` and leads to `to`; its address.
    pub fn add(&mut self, space: &mut Space, within: Range<u64>, to: u64) -> Option<u64> {
        let reaches = |at: u64| distance(at.wrapping_add(SLOT), to).is_some();
        if within.start >= within.end || within.end > 1 << 47 || !reaches(within.start) || !reaches(within.end) {
            return None;
        }
        let first = within.start / PAGE * PAGE;
        let known =
            self.pages.range(first..within.end).find_map(|(&page, used)| Some((page, fits(used, page, &within)?)));
        let (page, at) = match known {
            Some(found) => found,
            None => self.new_page(space, &within)?,
        };
        let used = self.pages.entry(page).or_default();
        used.insert(used.partition_point(|(start, _)| *start < at - page), (at - page, to));
        Some(at)
    }

    fn new_page(&self, space: &mut Space, within: &Range<u64>) -> Option<(u64, u64)> {
        if self.pages.len() >= MOST_PAGES {
            return None;
        }
        let first = within.start / PAGE;
        let pages = within.end.div_ceil(PAGE) - first;
        let step = (pages / TRIES).max(1);
        let mut candidates = (0..pages).step_by(step as usize).map(|n| (first + n) * PAGE);
        let free = |page: &u64| space.is_free(&(*page..*page + PAGE)) && fits(&[], *page, within).is_some();
        let page = candidates.find(free)?;
        space.take(page..page + PAGE);
        Some((page, fits(&[], page, within)?))
    }

    /// The pages as they are to be mapped, neighbours together.
    pub fn into_mapped(self) -> Vec<(u64, Vec<u8>)> {
        let mut all: Vec<(u64, Vec<u8>)> = Vec::new();
        for (page, slots) in self.pages {
            let mut bytes = vec![0xcc; PAGE as usize];
            for (start, to) in slots {
                let jump = distance(page + start + SLOT, to).unwrap_or_default();
                let at = start as usize;
                bytes[at] = 0xe9;
                bytes[at + 1..at + 5].copy_from_slice(&jump.to_le_bytes());
            }
            match all.last_mut().filter(|(start, before)| start + before.len() as u64 == page) {
                Some((_, before)) => before.extend(bytes),
                None => all.push((page, bytes)),
            }
        }
        all
    }
}

/// Where in `page`, and in `within`, there is room for a slot beside those at `used`.
fn fits(used: &[(u64, u64)], page: u64, within: &Range<u64>) -> Option<u64> {
    let mut at = within.start.max(page) - page;
    for (start, _) in used {
        if at + SLOT <= *start {
            break;
        }
        at = at.max(start + SLOT);
    }
    (page + at < within.end && at + SLOT <= PAGE).then_some(page + at)
}
