//! The state of one world, and how pending operations are published and performed.

pub(crate) mod act;
mod cycle;
mod digest;
mod perform;
mod turn;

pub use crate::state::world::*;
