//! The runtime: starts a program under its supervisor, brings it to the root, runs schedules and reports traces. It
//! never decides what to explore.

pub mod checkpoint;
mod counter;
pub mod inspect;
pub mod memory;
pub mod session;
pub mod tracee;
pub mod unwind;
pub mod worker;
