//! The model in words: what operations, objects and threads are called, what threads hold and wait for, how executions
//! end. What is said of a kind of operation its row says ([`vsrun_model::kind::Shown`]); here is what is the same for all.

pub mod ends;
pub mod identity;
pub mod names;
pub mod ops;
pub mod slice;
pub mod steps;
pub mod syscalls;
#[cfg(test)]
pub(crate) mod testing;
pub mod waits;
