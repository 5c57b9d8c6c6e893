//! The command line: raw arguments in, a resolved [`Command`](crate::config::Command) out, so that main reads as a table of modes.
//!
//! What the contract names but a later stage brings is parsed and refused here, so that nothing is ignored silently.

mod packed;
mod pages;
mod resolve;

pub use pages::{completions, man_pages};
pub use resolve::{drawn, parse, parse_in, search_words, searched, taken_apart, UsageError};
