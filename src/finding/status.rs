//! How a process ended.

use serde::Serialize;

/// How the first process of the program ended, in an execution that was shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProgramStatus {
    /// It exited with this status.
    Exit(i32),
    /// A signal of this number ended it.
    Signal(i32),
}

impl ProgramStatus {
    /// From what `wait` gives for a process that is over.
    pub fn from_wait(status: i32) -> ProgramStatus {
        match status & 0x7f {
            0 => ProgramStatus::Exit(status >> 8 & 0xff),
            signal => ProgramStatus::Signal(signal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_status() {
        assert_eq!(ProgramStatus::from_wait(3 << 8), ProgramStatus::Exit(3));
        assert_eq!(ProgramStatus::from_wait(0x80 | 11), ProgramStatus::Signal(11));
    }
}
