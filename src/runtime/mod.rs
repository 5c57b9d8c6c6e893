//! The runtime: starts a program under its supervisor, brings it to the root, runs schedules, and reports what they did as
//! plain data: traces and findings. It never decides what to explore.

mod alone;
pub mod checkpoint;
mod execute;
pub mod halt;
mod inspect;
mod late;
pub mod limits;
mod loaded;
pub(crate) mod look;
pub mod memory;
mod named;
mod origins;
mod outcome;
mod own_pages;
mod pages;
mod polled;
mod predicates;
mod processes;
mod racing;
pub mod room;
pub mod session;
mod setup;
mod stand_ins;
mod stands;
mod told;
mod tossed;
mod tossing;
mod traced;
pub mod tracee;
pub mod unwind;
mod watched;
mod watching;
mod watchpoints;
mod worker;

pub use alone::direct;
pub use inspect::Inspector;
pub use outcome::{Outcome, Sign};
pub use processes::{cpus, Claimed};
pub use racing::Quiet;
pub use setup::{Spec, StartError, LOOKED_AT_CALLS};
pub use tossed::Tossed;
pub use traced::LAST_STEPS;
pub use watched::{Watch, Watched, WatchedModule};
pub use watchpoints::Watchlist;
pub use worker::{Worker, ONLY_WRITTEN};
