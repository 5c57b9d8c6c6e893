//! Whether an object is used by one thread alone: what is known, declared and noted.

use crate::base::numbers;

/// Names known to be shared that an arena has room for.
pub const MAX_KNOWN: usize = 1 << 16;
/// Names that one execution notes; more are found by the next one.
pub const MAX_NOTED: usize = 1 << 12;
/// Ranges of addresses that the user declares.
pub const MAX_DECLARED: usize = 1 << 10;

/// Words of memory that are objects.
pub const MAX_WORDS: usize = 1 << 10;

/// Eight bytes of memory, of which each use is an operation.
#[derive(Clone, Copy, Hash, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(C)]
pub struct Word {
    /// [`SHARED`](crate::object::SHARED) and the number of the region that processes share; 0: memory of a process, whichever.
    pub space: u32,
    pub(crate) pad: u32,
    /// Its address, or place in the region: a multiple of 8.
    pub address: u64,
}

impl Word {
    /// The word that has the byte at `address` of `space`, as in [`Key::space`](crate::object::Key::space).
    pub const fn at(space: u32, address: u64) -> Word {
        let shared = space & crate::state::object::SHARED != 0;
        Word { space: if shared { space } else { 0 }, pad: 0, address: address & !7 }
    }
}

/// Pieces of memory that threads own at a time.
pub const MAX_OWNED: usize = 1 << 10;

/// Memory of one process that a thread has for itself, by what the program says.
#[derive(Clone, Copy, Hash, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Owned {
    /// First address.
    pub start: u64,
    /// One past the last address.
    pub end: u64,
    /// The process.
    pub space: u32,
    /// Who.
    pub thread: crate::base::Tid,
}

numbers! {
    /// What is taken for granted of an object. A transparent integer.
    Sharing(u8):
    /// Not looked up yet.
    UNKNOWN = 0,
    /// Each operation is a transition.
    SHARED = 1,
    /// Its operations pass as long as their order is that of the lives of threads.
    OWN = 2,
    /// Its operations pass, whoever performs them, as long as nobody has to wait for it or holds it at another one.
    ATOMIC = 3,
}

numbers! {
    /// Whether anybody can tell in which order threads take from a semaphore, or arrive at a barrier. A transparent integer.
    Order(u8):
    /// Not looked up yet.
    UNKNOWN = 0,
    /// Nobody can, as far as has been seen.
    FREE = 1,
    /// Somebody may, or nothing is taken for granted.
    TOLD = 2,
}

/// Objects in the private memory of the first program about which the user has said something.
#[derive(Clone, Copy, Hash, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Declared {
    /// First address.
    pub start: u64,
    /// One past the last address.
    pub end: u64,
    /// [`Sharing::OWN`] or [`Sharing::ATOMIC`].
    pub what: Sharing,
    pub(crate) pad: [u8; 7],
}

impl Declared {
    /// What is declared of the objects in [start, end).
    pub const fn new(start: u64, end: u64, what: Sharing) -> Declared {
        Declared { start, end, what, pad: [0; 7] }
    }
}

/// A name that was noted.
#[derive(Clone, Copy, Hash, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Noted {
    /// The name.
    pub name: u64,
    /// 1 + the index of the declaration that does not hold, or 0.
    pub declared: u32,
    pub(crate) pad: u32,
}
