//! An exploration: a search, workers, bounds, and what is found on the way. And replays of what was found.

pub mod alone;
mod annotations;
mod bounds;
mod covered;
mod differs;
mod executions;
mod explain;
mod failure;
mod few;
mod first;
mod found;
#[doc(hidden)]
pub mod fuzz;
mod hunt;
mod judge;
mod lots;
mod names;
mod outcomes;
mod packs;
mod pieces;
mod progress;
mod recipes;
mod relaxed;
mod replay;
mod run;
mod save;
mod save_outcome;
mod setting;
mod sharing;
mod shorten;
mod single;
mod source;
mod stand;
mod standing;
mod state;
mod status;
mod stranger;
mod summary;
mod unfinished;
mod workers;

pub use covered::Covered;
pub use explain::explain;
pub use failure::Failure;
pub use hunt::hunt;
pub use lots::{draw, program_of, Drawn};
pub use names::{names_used, Used};
pub use packs::OfPack;
pub use pieces::{
    divide, end_without, has_pieces, merge, pack_of, progress, progress_of, progress_of_parts, split, words_of, work,
    Progress, Split,
};
pub use relaxed::Followed;
pub use replay::{replay, Otherwise, Replayed};
pub use run::explore;
pub use setting::{start_watched, Lot};
pub use single::{timeline, trace, Single};
pub use source::Source;
pub use stand::Stand;
pub use standing::{At, EndOfPath, Path, State, Step};
