//! `vsrun debug FILE`: a scenario in gdb. vsrun becomes gdb, with a script (`script.py`) that knows steps. gdb starts the program by way of
//! vsrun, without a supervisor, each time that somebody goes back; what the script cannot read off a process itself, it asks a vsrun that
//! it keeps beside it.

mod names;
mod program;
mod start;
mod state;

pub use program::of_debugger;
pub use start::debug;
