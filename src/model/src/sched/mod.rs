//! The scheduler step, and which operations are no place to switch.

pub mod cells;
pub mod closing;
mod covered;
pub mod descriptor;
mod draw;
pub mod file;
mod guide;
mod machine;
mod order;
mod owned;
pub(crate) mod prepare;
mod readers;
pub mod sharing;
pub mod states;
pub mod step;
pub mod stream;
