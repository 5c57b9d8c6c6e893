//! `vsrun pieces`: a search is split into subtrees that need nobody ([`crate::search::Split`]), each is explored by whoever has time for it, on this machine
//! or another one, and what they come to is summed up. The files are all that travels: [`store`].
//!
//! What turns out to be an object while a piece is explored was none for the others: then the search is split again.

mod merge;
mod split;
mod store;
mod work;

pub use merge::merge;
pub use split::{divide, split, Split};
pub use store::{has_pieces, pack_of, progress, progress_of, progress_of_parts, words_of, Progress};
pub(super) use store::{words, Manifest};
pub use work::{end_without, work};
