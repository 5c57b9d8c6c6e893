//! An exploration: a search, workers, bounds, and what is found on the way. And replays of what was found.

mod bounds;
mod executions;
mod failure;
mod found;
#[doc(hidden)]
pub mod fuzz;
mod judge;
mod progress;
mod replay;
mod run;
mod save;
mod setting;
mod sharing;
mod single;
mod state;
mod stranger;
mod summary;
mod workers;

pub use failure::Failure;
pub use replay::{replay, Otherwise, Replayed};
pub use run::explore;
pub use setting::start_watched;
pub use single::{timeline, trace, Single};
