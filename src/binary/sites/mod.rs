//! Access sites: the instructions of a module that read or write memory which another thread may reach, and what of the code around
//! them may be moved elsewhere, so that they can be patched (`binary::patch`).
//!
//! NOTE [What is trusted] Functions are what symbols with a size and the call frame information bound; other code is not watched, and
//! named. A patch over one instruction needs nothing but that the instruction is one. A patch over several needs that nothing jumps
//! to those behind the first: that is only done where all jumps of the function are understood, and to no place that a direct
//! jump, a jump table, a landing pad, a relocated word, or an address taken in code leads to. Bytes that are read as data, or
//! whose address is taken and to which nothing leads, are not taken for code.

mod access;
mod added;
mod body;
mod cache;
mod find;
mod groups;
mod live;
mod rounds;
mod same;
#[cfg(test)]
mod tests;
mod types;
mod uncovered;

pub use added::Instruction;
pub(crate) use body::Body;
pub use cache::{directory, find_cached};
pub use find::{find, FindError};
pub use types::{Choice, Counts, Reason, Site, Sites, Unit, Unwatched, ALL_ALIVE, FLAGS, JUMP};
