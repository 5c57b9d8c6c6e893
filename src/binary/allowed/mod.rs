//! An upper bound of the visible operations that a thread may perform, read from the code it may run.
//!
//! Persistent sets (Godefroid, "Partial-Order Methods", Section 4; the papers' `allowedOps`) need to know what a thread
//! will certainly never do. Here that is found in the files that a process maps: from the function a thread starts
//! with ([`Program::of_function`]) follow direct calls and jumps; calls of imported functions by the relocations of
//! the slots they go through; a call through a pointer reaches every function whose address is taken anywhere in the
//! program. Imported functions of libc and libstdc++ are not analysed but looked up by name (`names`); a name that is
//! not known may do anything.
//!
//! NOTE [What is trusted] The bound holds for code as compilers write it. Not seen are: code that is made or changed at
//! run time, functions found only by distances between them that the linker has already resolved (relative vtables
//! of some clang targets, `-mcmodel=large`), stacks that are switched by hand, and a pointer into an array that is
//! computed from a place more than `image::NEIGHBOURHOOD` bytes outside of it.

mod bound;
pub(in crate::binary) mod code;
pub(in crate::binary) mod dynamic;
pub(in crate::binary) mod extents;
mod flow;
pub(in crate::binary) mod function;
mod harmless;
pub(in crate::binary) mod image;
pub(in crate::binary) mod images;
pub(in crate::binary) mod memory;
mod names;
mod program;
mod reach;
mod tables;
#[cfg(test)]
mod tests;
pub(in crate::binary) mod unwind;
mod value;
#[cfg(test)]
mod whole_tests;

pub use bound::{AllowedOps, AnalysisError, ThreadBound};
pub use program::Program;
