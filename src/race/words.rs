//! Who touched which bytes last, by words of eight bytes, and whether the next one who does comes after them in every order.

use std::collections::hash_map::Entry as MapEntry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use vsrun_model::object::SHARED;
use vsrun_model::Tid;

use super::access::Access;
use super::order::Order;

const WORD: u64 = 8;

/// An access, and where in the execution it was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Touch {
    /// By whom.
    pub thread: Tid,
    /// Index of the last step that the thread had made by then; `None`: it had made none.
    pub step: Option<u32>,
    /// What.
    pub access: Access,
}

/// Two accesses that conflict, with nothing that orders them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Race {
    /// The one that came first in this execution.
    pub first: Touch,
    #[allow(missing_docs)]
    pub second: Touch,
    /// The word that both touch: its space and address, as it is an object.
    pub word: (u32, u64),
}

/// What is known of some bytes of a word: the last access of its kind to them by a thread.
#[derive(Clone, Copy)]
struct Entry {
    segment: u32,
    /// A bit for each byte.
    bytes: u8,
    touch: Touch,
}

impl Entry {
    /// `self` comes later and conflicts with whatever `old` conflicts with; `old` is before it.
    fn covers(&self, old: &Entry) -> bool {
        let as_strong = self.touch.access.write || !old.touch.access.write;
        let same = self.touch.thread == old.touch.thread && self.touch.access.locked == old.touch.access.locked;
        old.bytes & !self.bytes == 0 && as_strong && (same || self.touch.access.write)
    }
}

/// Memory, as far as it was touched.
#[derive(Default)]
pub struct Words {
    words: HashMap<(u32, u64), Vec<Entry>>,
    /// By both instructions, and the word.
    races: BTreeMap<(u32, u32, u32, u64), Race>,
    /// What is not looked at.
    objects: BTreeSet<(u32, u64)>,
}

/// The word as an object: that of a process's own memory is one in all processes.
fn object(space: u32, word: u64) -> (u32, u64) {
    (if space & SHARED != 0 { space } else { 0 }, word * WORD)
}

impl Words {
    /// Memory of which nothing is known; `objects` is not looked at.
    pub fn without(objects: BTreeSet<(u32, u64)>) -> Words {
        Words { objects, ..Words::default() }
    }

    /// `thread` makes `access` where `order` stands.
    pub fn touch(&mut self, order: &Order, thread: Tid, access: Access) {
        let touch = Touch { thread, step: order.last_step(thread), access };
        let segment = order.segment(thread);
        let end = access.address.saturating_add(access.size);
        let mut word = access.address / WORD;
        while word * WORD < end {
            let bytes = bytes_of(word, access.address, end);
            self.touch_word(order, word, Entry { segment, bytes, touch });
            word += 1;
        }
    }

    fn touch_word(&mut self, order: &Order, word: u64, new: Entry) {
        let Touch { thread, access, .. } = new.touch;
        let named = object(access.space, word);
        if !self.objects.is_empty() && self.objects.contains(&named) {
            return;
        }
        let entries = match self.words.entry((access.space, word)) {
            MapEntry::Occupied(found) => found.into_mut(),
            MapEntry::Vacant(place) => {
                place.insert(vec![new]);
                return;
            }
        };
        let races = &mut self.races;
        entries.retain(|old| {
            let before = order.is_before(old.touch.thread, old.segment, thread);
            if !before && old.bytes & new.bytes != 0 && (old.touch.access.write || access.write) {
                let (first, second) = (&old.touch, &new.touch);
                let key = (first.access.site, second.access.site, access.space, word);
                races.entry(key).or_insert(Race { first: *first, second: *second, word: named });
            }
            !(before && new.covers(old))
        });
        entries.push(new);
    }

    /// These bytes have no past any more.
    pub fn anew(&mut self, space: u32, address: u64, size: u64) {
        let end = address.saturating_add(size);
        let (first, last) = (address / WORD, end.div_ceil(WORD));
        let forget = |word: u64, entries: &mut Vec<Entry>| {
            let bytes = bytes_of(word, address, end);
            entries.retain_mut(|entry| {
                entry.bytes &= !bytes;
                entry.bytes != 0
            });
        };
        if last - first < self.words.len() as u64 {
            for word in first..last {
                if let Some(entries) = self.words.get_mut(&(space, word)) {
                    forget(word, entries);
                }
            }
        } else {
            let concerned = self.words.iter_mut().filter(|((s, w), _)| *s == space && (first..last).contains(w));
            concerned.for_each(|((_, word), entries)| forget(*word, entries));
        }
    }

    /// What was found.
    pub fn into_races(self) -> Vec<Race> {
        self.races.into_values().collect()
    }
}

/// The bytes of `word` that are in `address..end`, a bit for each.
fn bytes_of(word: u64, address: u64, end: u64) -> u8 {
    let low = address.saturating_sub(word * WORD).min(WORD) as u32;
    let high = end.saturating_sub(word * WORD).min(WORD) as u32;
    let up_to = |n: u32| ((1u16 << n) - 1) as u8;
    up_to(high) & !up_to(low)
}
