//! Functions of the program that return a choice (`--toss`): the contract between the tool, which puts a jump at the entry of each, and
//! the shim, to which these jumps lead.

use crate::base::watch::Place;

/// Most functions that are replaced.
pub const MAX_TOSSES: usize = 64;

/// The part of the arena that is about them.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Tossing {
    /// Where the jumps lead, with the number of the function on the stack; the root says it.
    pub entry: u64,
    /// The page that the root is to map for code, see `Command::ROOM`; once that is done 1, or an error number.
    pub page: i64,
    /// How many functions there are; written by vsrun.
    pub count: u32,
    /// What each gives at most; written by vsrun.
    pub most: [u32; MAX_TOSSES],
    /// Where the entry of each has no room for a jump and is a trap, what follows; 0: it has room. Written by vsrun.
    pub traps: [Place; MAX_TOSSES],
    /// A bit for each that this execution has called; written by the holder of the turn.
    pub called: u64,
    /// Programs and libraries that came later, and have their own functions: how many; written by the holder of the turn.
    pub later: u32,
    /// The name of the first of these, and NULs behind it.
    pub name: [u8; 128],
}
