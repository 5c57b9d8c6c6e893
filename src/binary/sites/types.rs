//! What an analysis finds.

use std::fmt;

use serde::{Deserialize, Serialize};
use vsrun_model::watch::Operand;

/// What counts as a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// Operands on the function's own stack frame are sites too.
    pub stack: bool,
    /// An access that an equal one precedes in a straight line of code is not checked again.
    pub skip_repeated: bool,
}

impl Default for Choice {
    fn default() -> Choice {
        Choice { stack: false, skip_repeated: true }
    }
}

/// General registers by their numbers, in the low 16 bits; above them whether arithmetic flags are alive.
pub const FLAGS: u32 = 1 << 16;
/// Everything is alive.
pub const ALL_ALIVE: u32 = 0x1_ffff;

/// An instruction that is watched. Addresses are those of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// Where it is.
    pub at: u64,
    /// What is alive before it: [`FLAGS`], and a bit for each register.
    pub alive: u32,
    /// What it accesses; never empty.
    pub operands: Vec<Operand>,
    /// An access before it is the same, so it needs no check.
    pub repeated: bool,
}

/// Instructions that are moved together to make room for a jump to where they go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// Where the first of them is.
    pub at: u64,
    /// How many there are.
    pub count: u8,
    /// Bytes that they have, with padding behind them.
    pub room: u8,
}

/// Bytes of a jump with a distance of 32 bits.
pub const JUMP: usize = 5;

/// Why code, or an instruction, is not watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Reason {
    /// Nothing says where its function ends.
    Unbounded,
    /// The compiler has added it, for before there are threads and after the end.
    Startup,
    /// It cannot be decoded.
    Undecodable,
    /// Data lies in it.
    Data,
    /// Which elements are accessed depends on a mask.
    Masked,
    /// It gathers or scatters.
    Gather,
    /// It saves or restores the processor's state.
    State,
    /// An operand that is not computed (xlat, a segment other than the usual).
    Operand,
    /// It cannot be moved.
    Fixed,
    /// The process has other bytes there than the file.
    Changed,
    /// There was no room for where it would go.
    NoRoom,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Reason::Unbounded => "nothing says where it ends",
            Reason::Startup => "the compiler has added it for the start and the end",
            Reason::Undecodable => "it cannot be decoded",
            Reason::Data => "there is data in it",
            Reason::Masked => "a mask says what it accesses",
            Reason::Gather => "it gathers or scatters",
            Reason::State => "it saves or restores the processor's state",
            Reason::Operand => "its operand is not computed",
            Reason::Fixed => "it cannot be moved",
            Reason::Changed => "the process has other code there than the file",
            Reason::NoRoom => "there is no room for where it would go",
        })
    }
}

/// Code that is not watched: one instruction, or a stretch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Unwatched {
    /// Where it is.
    pub at: u64,
    /// Bytes.
    pub length: u64,
    /// Why.
    pub reason: Reason,
}

/// What there is besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Functions, and parts of them.
    pub functions: u32,
    /// Of these, those with jumps that are not understood.
    pub opaque: u32,
    /// Instructions.
    pub instructions: u32,
    /// Accesses to the function's own frame,
    pub stack: u32,
    /// to constants,
    pub constant: u32,
    /// and to thread-local storage.
    pub local: u32,
}

/// The sites of a module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sites {
    /// Ascending.
    pub sites: Vec<Site>,
    /// What is to be moved so that each site that is not repeated is checked, ascending; they do not overlap.
    pub units: Vec<Unit>,
    /// What is not watched, ascending.
    pub unwatched: Vec<Unwatched>,
    /// Words in which the loader puts the addresses of what other modules define: where, and its name; no names of C++.
    pub imports: Vec<(u64, String)>,
    /// Names that the module defines, but for those of C++.
    pub defines: Vec<String>,
    /// Instructions by which the processor gives random numbers (rdrand, rdseed), ascending.
    pub random: Vec<u64>,
    /// How much of what there is.
    pub counts: Counts,
}

impl Sites {
    /// The site at `at`.
    pub fn at(&self, at: u64) -> Option<(usize, &Site)> {
        let index = self.sites.binary_search_by_key(&at, |site| site.at).ok()?;
        Some((index, &self.sites[index]))
    }

    /// Everything is ascending, and nothing overlaps.
    pub(super) fn is_ordered(&self) -> bool {
        let sites = self.sites.is_sorted_by(|a, b| a.at < b.at) && self.sites.iter().all(|s| !s.operands.is_empty());
        let apart = |a: &Unit, b: &Unit| a.at.checked_add(a.room.into()).is_some_and(|end| end <= b.at);
        sites && self.units.is_sorted_by(apart) && self.units.iter().all(|u| u.count > 0 && u.room >= u.count)
    }

    /// How many sites need a check.
    pub fn checked(&self) -> usize {
        self.sites.iter().filter(|site| !site.repeated).count()
    }
}
