//! Progress: what an execution does that somebody outside would call getting on. One that makes none for long is cut.

use crate::base::{numbers, Tid, NONE};

numbers! {
    /// What counts as progress.
    Advance(u32):
    /// None was made.
    NOTHING = 0,
    /// Something was written to a file, a terminal or whatever else the kernel has.
    OUTPUT = 1,
    /// A connection was accepted.
    ACCEPTED = 2,
    /// A thread, or a process with it, was made.
    BEGUN = 3,
    /// A thread, or a process with it, ended.
    ENDED = 4,
    /// The program has said so (`VS_progress`).
    DECLARED = 5,
}

/// The last progress of an execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Progress {
    /// After so many transitions.
    pub at: u64,
    /// Whose it was.
    pub by: Tid,
    /// What it was.
    pub what: Advance,
    /// The descriptor that was written to.
    pub fd: i32,
}

impl Progress {
    /// None so far.
    pub const NONE: Progress = Progress { at: 0, by: NONE, what: Advance::NOTHING, fd: -1 };
}

/// `World::end_code` of an execution that was cut, [`End::DEPTH`](crate::state::End::DEPTH), since it made no progress.
pub const NO_PROGRESS: u32 = 2;
