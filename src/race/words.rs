//! Who touched which bytes last, by words of eight bytes, and whether the next one who does comes after them in every order.

use std::collections::{BTreeMap, BTreeSet};

use vsrun_model::object::SHARED;
use vsrun_model::Tid;

use super::access::Access;
use super::contended::{pieces, Contended, Pages, Piece, PAGE};
use super::order::Order;
use crate::touched::{bytes_of, WORD};

/// An access, and where in the execution it was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Touch {
    /// By whom.
    pub thread: Tid,
    /// Index of the last step that the thread had made by then; `None`: it had made none.
    pub step: Option<u32>,
    /// What.
    pub access: Access,
    /// Steps that the execution had made by then.
    pub made: u32,
    /// The segment of the thread, as [`Order`] counts them.
    pub segment: u32,
    /// Its place among the accesses of the execution.
    pub number: u32,
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
    /// They are ordered if both happen: whoever made the first one was then ended by another, which might have come before it. That is no data race.
    pub cut: bool,
}

/// What is known of some bytes of a word: the last access of its kind to them by a thread.
#[derive(Clone, Copy)]
struct Entry {
    segment: u32,
    thread: Tid,
    /// Index in [`Words::touches`].
    touch: u32,
    /// A bit for each byte; 0: there is none.
    bytes: u8,
    write: bool,
    locked: bool,
}

impl Entry {
    const NONE: Entry = Entry { segment: 0, thread: 0, touch: 0, bytes: 0, write: false, locked: false };

    /// `self` comes later and conflicts with whatever `old` conflicts with; `old` is before it.
    fn covers(&self, old: &Entry) -> bool {
        let as_strong = self.write || !old.write;
        let same = self.thread == old.thread && self.locked == old.locked;
        old.bytes & !self.bytes == 0 && as_strong && (same || self.write)
    }
}

/// What is known of a word: mostly there is one access at most.
#[derive(Clone)]
struct Known {
    first: Entry,
    /// The others.
    more: Vec<Entry>,
}

/// Memory, as far as it was touched.
#[derive(Default)]
pub struct Words {
    /// The place of each page in `pages`.
    places: Pages,
    pages: Vec<Box<[Known]>>,
    /// Where accesses can conflict: nothing else is looked at.
    contended: Contended,
    /// What entries stand for.
    touches: Vec<Touch>,
    /// By both instructions, and the word.
    races: BTreeMap<(u32, u32, u32, u64), Race>,
    /// What is not looked at.
    objects: BTreeSet<(u32, u64)>,
}

/// The word as an object: that of a process's own memory is one in all processes.
pub fn object(space: u32, word: u64) -> (u32, u64) {
    (if space & SHARED != 0 { space } else { 0 }, word * WORD)
}

impl Words {
    /// Memory of which nothing is known but where accesses can conflict; `objects` is not looked at.
    pub fn without(objects: BTreeSet<(u32, u64)>, contended: Contended) -> Words {
        Words { objects, contended, ..Words::default() }
    }

    /// `thread` makes `access` where `order` stands.
    pub fn touch(&mut self, order: &Order, thread: Tid, access: Access) {
        let (touch, segment) = (self.touches.len() as u32, order.segment(thread));
        let (write, locked) = (access.write, access.locked);
        let new = Entry { segment, thread, touch, bytes: 0, write, locked };
        let end = access.address.saturating_add(access.size);
        for piece in pieces(&access) {
            let Some(page) = self.contended.page(access.space, piece.page) else { continue };
            for at in piece.words {
                if !self.contended.is_contended(page, at) {
                    continue;
                }
                if touch == self.touches.len() as u32 {
                    let (step, made) = (order.last_step(thread), order.steps_made());
                    self.touches.push(Touch { thread, step, access, made, segment, number: touch });
                }
                let word = piece.page * PAGE as u64 + at as u64;
                let bytes = bytes_of(word, access.address, end);
                self.touch_word(order, access.space, word, Entry { bytes, ..new });
            }
        }
    }

    /// The same for each access of a run.
    pub fn touch_each(&mut self, order: &Order, thread: Tid, (first, times, stride): (Access, u32, i64)) {
        let mut whole = first.covering(times, stride, PAGE as u64 * WORD).flat_map(|access| pieces(&access));
        let contended = &mut self.contended;
        let concerns = |piece: Piece| contended.page(first.space, piece.page).is_some();
        if whole.any(concerns) {
            first.run(times, stride).for_each(|access| self.touch(order, thread, access));
        }
    }

    fn touch_word(&mut self, order: &Order, space: u32, word: u64, new: Entry) {
        let named = object(space, word);
        if !self.objects.is_empty() && self.objects.contains(&named) {
            return;
        }
        let place = self.places.get_or_new((space, word / PAGE as u64)) as usize;
        if place == self.pages.len() {
            self.pages.push(vec![Known { first: Entry::NONE, more: Vec::new() }; PAGE].into_boxed_slice());
        }
        let known = &mut self.pages[place][word as usize % PAGE];
        let (races, touches) = (&mut self.races, &self.touches);
        let mut stays = |old: &Entry| {
            let ordered = order.is_before(old.thread, old.segment, new.thread);
            let before = ordered && !order.is_cut(old.thread, old.segment, new.thread);
            if !before && old.bytes & new.bytes != 0 && (old.write || new.write) {
                let (first, second) = (&touches[old.touch as usize], &touches[new.touch as usize]);
                let key = (first.access.site, second.access.site, space, word);
                let race = Race { first: *first, second: *second, word: named, cut: ordered };
                races
                    .entry(key)
                    .and_modify(|known| {
                        if known.cut && !race.cut {
                            *known = race
                        }
                    })
                    .or_insert(race);
            }
            !(before && new.covers(old))
        };
        let first_stays = known.first.bytes != 0 && stays(&known.first);
        if !known.more.is_empty() {
            known.more.retain(stays);
        }
        if first_stays {
            known.more.push(new);
        } else {
            known.first = new;
        }
    }

    /// These bytes have no past any more.
    pub fn anew(&mut self, space: u32, address: u64, size: u64) {
        let end = address.saturating_add(size);
        let (first, last) = (address / WORD, end.div_ceil(WORD));
        let (first_page, end_page) = (first / PAGE as u64, last.div_ceil(PAGE as u64));
        for (page, place) in self.places.of(space, first_page..end_page) {
            let start = page * PAGE as u64;
            for word in first.max(start)..last.min(start + PAGE as u64) {
                let known = &mut self.pages[place as usize][(word - start) as usize];
                let bytes = bytes_of(word, address, end);
                known.first.bytes &= !bytes;
                known.more.retain_mut(|entry| {
                    entry.bytes &= !bytes;
                    entry.bytes != 0
                });
            }
        }
    }

    /// What was found.
    pub fn into_races(self) -> Vec<Race> {
        self.races.into_values().collect()
    }
}
