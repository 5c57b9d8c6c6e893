//! Scenario files: a schedule that shows a bug, with everything that is needed to run it again. JSON, versioned, with
//! a checksum, so that a damaged file is told apart from a program that behaves differently.

mod file;
mod mark;
mod predicate;
mod types;

#[doc(hidden)]
pub use file::sealed;
pub use file::{LoadCause, LoadError, ScenarioFile, WriteError, VERSION};
pub use predicate::{Length, Place, Predicate, Says};
pub use types::{Awaited, Client, Cpu, Found, Options, Program, Scenario, ScenarioStep, Shown, Then, Toss};
