//! Standing at the steps of a scenario ([`crate::explore::Stand`]): for programs, with commands and answers as lines of JSON ([`lines`]); for
//! people, in the terminal ([`screen`]).

mod answers;
mod draw;
pub mod lines;
mod panes;
mod request;
pub mod screen;
#[cfg(test)]
mod testing;
mod view;
