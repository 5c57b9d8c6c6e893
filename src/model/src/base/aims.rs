//! What a search that draws lots aims at, and what an execution of it has met: of no matter to what operations do.

use crate::base::{Table, Tid, Uid, NONE};

/// Most objects whose operations are of interest in one execution.
pub const MAX_INTEREST: usize = 64;
/// Most wishes in one execution.
pub const MAX_WISHES: usize = 32;
/// Most threads of which it is known whether they are there.
pub const MAX_THERE: usize = 1024;
/// Most uses and pairs that are kept of one execution.
pub const MAX_NOTED_AIMS: usize = 4096;
/// Places to look these up by: a power of two, twice as many.
const PLACES: usize = 2 * MAX_NOTED_AIMS;
/// Objects of which it is known who wrote them last: a power of two.
const WRITTEN: usize = 1024;
/// Events of which it is known how often they have happened: a power of two.
const HAPPENED: usize = 1024;
/// Of what happens more often, and of threads beyond it that have one creator, it is the same.
const TOLD_APART: u32 = 4;

/// A number of its own for each two that are put in, with overwhelming probability.
pub const fn paired(a: u64, b: u64) -> u64 {
    let mut z = a.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31) ^ b.wrapping_mul(0xd6e8_feb8_6659_fd93);
    z = (z ^ (z >> 32)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 29)
}

/// What an operation is to others of its object, the same for all threads that run the same code: an abstract event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Event {
    /// The name of the object.
    pub object: u64,
    /// What is done, where, by which start routine; not 0.
    pub id: u64,
    /// It may change what others find there.
    pub writes: bool,
    pad: [u8; 7],
}

impl Event {
    /// An operation of that kind on an object, at a site (0: unknown), by a thread that began at `start`.
    pub fn new(object: u64, (kind, writes): (u8, bool), place: u32, start: u64) -> Event {
        let what = u64::from(place) << 8 | u64::from(kind);
        Event { object, id: paired(paired(object, what), start) | 1, writes, pad: [0; 7] }
    }

    /// The same by that thread, told apart from others that do the same.
    pub fn of(self, uid: Uid) -> Event {
        Event { id: paired(self.id, uid.number().min(TOLD_APART).into()) | 1, ..self }
    }
}

/// That an operation reads from a certain one, or does not: what was written last to its object when it comes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(C)]
pub struct Wish {
    /// The name of the object.
    pub object: u64,
    /// The event that wrote, [`Event::id`]; 0: nobody did.
    pub writer: u64,
    /// The event that reads.
    pub reader: u64,
    /// 1: it is to be so; 0: it is not to be.
    pub wanted: u32,
    /// 1: it has been so.
    pub fulfilled: u32,
    /// What has written last in the execution.
    pub last: u64,
}

impl Wish {
    /// A wish that has not been looked at.
    pub const fn new(object: u64, writer: u64, reader: u64, wanted: bool) -> Wish {
        Wish { object, writer, reader, wanted: wanted as u32, fulfilled: 0, last: 0 }
    }

    /// The event is to come later.
    pub fn holds_back(&self, event: &Event) -> bool {
        if self.object != event.object || self.fulfilled != 0 {
            return false;
        }
        match (self.wanted != 0, self.last == self.writer) {
            // The reader waits for its writer, and then others that write wait for the reader.
            (true, false) => event.id == self.reader,
            (true, true) => event.writes && event.id != self.reader,
            (false, same) => same && event.id == self.reader,
        }
    }

    /// The event happens.
    pub fn follow(&mut self, event: &Event) {
        if self.object != event.object {
            return;
        }
        if self.wanted != 0 && event.id == self.reader && self.last == self.writer {
            self.fulfilled = 1;
        }
        if event.writes {
            self.last = event.id;
        }
    }
}

/// That a thread used an object, so many times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct TimesUsed {
    /// The thread.
    pub uid: Uid,
    /// The name of the object.
    pub object: u64,
    /// How often.
    pub times: u64,
}

/// That an event came after another one had written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(C)]
pub struct Pair {
    /// The name of the object.
    pub object: u64,
    /// The event that wrote last; 0: none.
    pub writer: u64,
    /// The event.
    pub event: u64,
    /// 1: it writes itself.
    pub writes: u32,
    /// With [`Policy::NOVEL`](crate::arena::Policy::NOVEL): after how many transitions that was so for the first time.
    pub at: u32,
}

/// What an execution is aimed at, and what it has met.
#[repr(C)]
pub struct Aims {
    /// Names of the objects whose operations are of interest, ascending. Written by vsrun.
    pub interest: Table<u64, MAX_INTEREST>,
    /// What is wished for. Written by vsrun.
    pub wishes: Table<Wish, MAX_WISHES>,
    /// The thread whose operation of interest is to come first; [`NONE`]: that is still to be drawn.
    pub intended: Tid,
    /// Threads that were looked at for `there`.
    pub met: u32,
    /// One more than the thread that an entry of those expected is, if it is there.
    pub there: [u32; MAX_THERE],
    /// What threads used.
    pub uses: Table<TimesUsed, MAX_NOTED_AIMS>,
    /// What came after what.
    pub pairs: Table<Pair, MAX_NOTED_AIMS>,
    /// One more than the index in `uses` or `pairs`, by hash.
    places: [u32; PLACES],
    /// (object, event that wrote it last), by hash.
    written: [(u64, u64); WRITTEN],
    /// (event, how often it has happened), by hash.
    happened: [(u64, u64); HAPPENED],
}

impl Aims {
    /// For an execution that has not begun, and is not aimed at anything.
    pub fn begin(&mut self) {
        self.interest.clear();
        self.wishes.clear();
        self.intended = NONE;
        self.met = 0;
        self.there.fill(0);
        self.uses.clear();
        self.pairs.clear();
        self.places.fill(0);
        self.written.fill((0, 0));
        self.happened.fill((0, 0));
    }

    /// False: somebody who is not to has written there.
    pub fn is_sealed(&self) -> bool {
        self.interest.is_sealed() && self.wishes.is_sealed() && self.uses.is_sealed() && self.pairs.is_sealed()
    }

    /// A thread uses an object. What there is no room for is not kept.
    pub fn note_use(&mut self, uid: Uid, object: u64) {
        let mut at = paired(uid.0, object) as usize % PLACES;
        while let Some(index) = self.places[at].checked_sub(1) {
            let known = &mut self.uses[index];
            if (known.uid, known.object) == (uid, object) {
                known.times += 1;
                return;
            }
            at = (at + 1) % PLACES;
        }
        if let Some(index) = self.uses.push(TimesUsed { uid, object, times: 1 }) {
            self.places[at] = index + 1;
        }
    }

    /// An event comes after another one has written.
    pub fn note_pair(&mut self, pair: Pair) {
        let mut at = paired(pair.writer, pair.event) as usize % PLACES;
        while let Some(index) = self.places[at].checked_sub(1) {
            let known = &self.pairs[index];
            if (known.object, known.writer, known.event, known.writes)
                == (pair.object, pair.writer, pair.event, pair.writes)
            {
                return;
            }
            at = (at + 1) % PLACES;
        }
        if let Some(index) = self.pairs.push(pair) {
            self.places[at] = index + 1;
        }
    }

    /// The event that wrote an object last; 0: none, or it is not known.
    pub fn last_write(&self, object: u64) -> u64 {
        match self.written[object as usize % WRITTEN] {
            (known, event) if known == object => event,
            _ => 0,
        }
    }

    /// The event happens once more: told apart from its first times, as far as these are known. Of two in one place the later one is known.
    pub fn once_more(&mut self, event: Event) -> Event {
        let place = &mut self.happened[event.id as usize / 2 % HAPPENED];
        let before = if place.0 == event.id { place.1 } else { 0 };
        *place = (event.id, before + 1);
        Event { id: paired(event.id, before.min(u64::from(TOLD_APART) - 1)) | 1, ..event }
    }

    /// Of two objects in one place the later one is known.
    pub fn set_last_write(&mut self, object: u64, event: u64) {
        self.written[object as usize % WRITTEN] = (object, event);
    }
}
