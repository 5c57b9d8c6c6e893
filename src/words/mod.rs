//! The model in words: what operations, objects and threads are called, what threads hold and wait for, how executions
//! end. What is said differently for each kind of operation is here, file by file as the model has its families.

mod channels;
mod common;
pub mod ends;
mod files;
pub mod identity;
mod locks;
pub mod names;
pub mod ops;
mod sockets;
pub mod steps;
pub mod syscalls;
#[cfg(test)]
pub(crate) mod testing;
pub mod waits;
