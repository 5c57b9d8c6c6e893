//! Uses of a variable that debug registers have seen (`--watch`).

use serde::{Deserialize, Serialize};
use vsrun_model::{Pid, Uid};

use super::place::PlaceView;
use crate::base::serial;

/// What a use does. x86 stops at reads and writes, or at writes, not at reads alone: the instruction tells them apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Use {
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// One instruction does both.
    Update,
    /// The instruction is not known, and what was there has not changed: a read, or a write of the same value.
    Use,
    /// It changed between two uses, by no instruction of the program's: a system call, a device, or vsrun for a call of the program's.
    Change,
}

impl Use {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Use::Read => "read",
            Use::Write => "write",
            Use::Update => "update",
            Use::Use => "read or write",
            Use::Change => "changed by a call",
        }
    }
}

/// One use.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Touched {
    /// The variable, or the part of it that one debug register has: `total`, `table+0x8`.
    pub variable: String,
    /// Bytes of that.
    pub size: u8,
    /// Who.
    #[serde(with = "serial::uid")]
    pub thread: Uid,
    /// In which process.
    pub process: Pid,
    /// After how many transitions of the execution.
    pub step: u64,
    /// What it does.
    pub does: Use,
    /// What was there before,
    pub old: u64,
    /// and after it.
    pub new: u64,
    /// The instruction; for libc's own code its caller.
    pub place: PlaceView,
}

/// Uses that are the same but for values and moments, in all executions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Uses {
    /// The first of them.
    pub first: Touched,
    /// Its execution, from 1,
    pub execution: u64,
    /// and its place among the uses there.
    pub order: u64,
    /// How many there were.
    pub times: u64,
}
