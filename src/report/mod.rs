//! How it is said what vsrun found: functions from plain data to [`text`] for people and [`json`] for programs; [`show`]
//! is for scenarios, [`mod@mismatch`] for replays that went another way. Nothing here knows a world or a process.

mod apart;
pub mod debug;
pub mod explain;
pub mod hunt;
pub mod json;
pub mod junit;
mod legend;
pub mod listing;
pub mod mismatch;
mod outcomes;
pub mod pieces;
mod places;
pub mod rounds;
pub mod sarif;
pub mod show;
mod steps;
mod story;
pub mod swarm;
pub(crate) mod terminal;
pub mod text;
pub mod timeline;
mod uses;

#[cfg(test)]
mod testing;

pub(crate) use places::{brief, stack};
pub(crate) use terminal::{circle, shell_word, Paint};
pub use terminal::{colours_for, shell_line};
