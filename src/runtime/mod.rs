//! The runtime: starts a program under its supervisor, brings it to the root, runs schedules, and reports what they did as
//! plain data: traces and findings. It never decides what to explore.

pub mod checkpoint;
mod counter;
mod cpus;
mod execute;
mod inspect;
pub(crate) mod look;
pub mod memory;
mod outcome;
mod reap;
pub mod session;
mod setup;
mod spec;
mod traced;
pub mod tracee;
pub mod unwind;
mod watch;
mod worker;

pub use cpus::cpus;
pub use inspect::Inspector;
pub use outcome::{Outcome, Sign};
pub use setup::direct;
pub use spec::{Spec, StartError};
pub use worker::Worker;
