//! Why an exploration or a replay did not take place.

use std::io;

use crate::runtime::StartError;

const INTERRUPTED: i32 = 3;

/// A failure that is not a bug of the program: exit code and one line.
#[derive(Debug)]
pub struct Failure {
    /// 2: usage, environment or unsupported program; 3: interrupted; 4: vsrun's own.
    pub code: i32,
    /// The line.
    pub message: String,
}

impl Failure {
    /// Something around vsrun is not as it must be.
    pub fn environment(message: impl Into<String>) -> Failure {
        Failure { code: 2, message: message.into() }
    }

    /// vsrun was asked to end, or the time was over, before anything could be said.
    pub fn interrupted(message: impl Into<String>) -> Failure {
        Failure { code: INTERRUPTED, message: message.into() }
    }

    /// It is one of those.
    pub fn is_interrupted(&self) -> bool {
        self.code == INTERRUPTED
    }

    /// vsrun is at fault, or a replay diverged.
    pub fn own(message: impl Into<String>) -> Failure {
        Failure { code: 4, message: message.into() }
    }
}

impl From<StartError> for Failure {
    fn from(e: StartError) -> Failure {
        match e {
            StartError::Bug(_) => Failure::own(e.to_string()),
            StartError::Interrupted => Failure::interrupted(e.to_string()),
            _ => Failure::environment(e.to_string()),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Failure {
        Failure::environment(e.to_string())
    }
}
