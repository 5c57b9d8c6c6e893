//! Which operations of different threads came one after the other on an object: what executions by lot have covered.

use super::act::Act;
use super::object::Key;
use crate::base::{Kind, ObjId, Table};

/// Most pairs that are kept of one execution.
pub const MAX_ORDERS: usize = 4096;
/// Places to look these up by: a power of two, twice as many.
const PLACES: usize = 2 * MAX_ORDERS;
/// Objects of which the last operations are known.
const OBJECTS: usize = 512;
/// Operations that are known of each.
const KNOWN: usize = 3;

/// What an operation is to others of its object, whichever thread performs it that runs the same code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(C)]
pub struct Side {
    /// Address of the start routine of its thread; 0: there is none.
    pub start: u64,
    /// A use of memory: one more than the number of its instruction; 0: not known, or something else.
    pub place: u32,
    /// What it does.
    pub kind: Kind,
    pad: [u8; 3],
}

impl Side {
    /// An operation of that kind, at a place, by a thread that began at `start`.
    pub const fn new(kind: Kind, place: u32, start: u64) -> Side {
        Side { start, place, kind, pad: [0; 3] }
    }
}

/// That an operation of a thread came right after one of another thread on an object, where their order matters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(C)]
pub struct Succession {
    /// The object.
    pub object: Key,
    /// What came first.
    pub first: Side,
    /// What came then.
    pub second: Side,
}

/// The last operations on an object.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Latest {
    /// One more than the object; 0: none.
    object: u32,
    len: u32,
    /// The last one first.
    known: [(Act, Side); KNOWN],
}

impl Latest {
    /// The last first.
    pub fn known(&self) -> &[(Act, Side)] {
        &self.known[..(self.len as usize).min(KNOWN)]
    }
}

/// The pairs of an execution.
#[repr(C)]
pub struct Orders {
    /// Each once.
    pub seen: Table<Succession, MAX_ORDERS>,
    /// One more than the index in `seen`, by hash.
    places: [u32; PLACES],
    latest: [Latest; OBJECTS],
}

impl Orders {
    /// For an execution that has not begun.
    pub fn begin(&mut self) {
        self.seen.clear();
        self.places.fill(0);
        self.latest.iter_mut().for_each(|latest| latest.object = 0);
    }

    /// What is known of an object. Of two in one place the later one is known.
    pub fn latest(&mut self, object: ObjId) -> &mut Latest {
        let latest = &mut self.latest[object as usize % OBJECTS];
        if latest.object != object + 1 {
            (latest.object, latest.len) = (object + 1, 0);
        }
        latest
    }

    /// One came after the other. What there is no room for is not kept.
    pub fn note(&mut self, order: Succession) {
        let mut at = order.hash() as usize % PLACES;
        while let Some(index) = self.places[at].checked_sub(1) {
            if self.seen.get(index) == Some(&order) {
                return;
            }
            at = (at + 1) % PLACES;
        }
        if let Some(index) = self.seen.push(order) {
            self.places[at] = index + 1;
        }
    }
}

impl Latest {
    /// The operation is performed.
    pub fn push(&mut self, act: Act, side: Side) {
        self.known.rotate_right(1);
        self.known[0] = (act, side);
        self.len = (self.len + 1).min(KNOWN as u32);
    }
}

impl Succession {
    fn hash(&self) -> u64 {
        let side = |side: &Side| side.start ^ u64::from(side.place) << 40 ^ u64::from(side.kind.0) << 32;
        let both = side(&self.first).rotate_left(21).wrapping_add(side(&self.second));
        let z = (both ^ self.object.addr.rotate_left(43)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z ^ z >> 31
    }
}
