//! What is run and how, and why it did not start.

use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use crate::objects::Objects;
use crate::scenario::{Options, Program};

/// What is run and how.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The program.
    pub program: Program,
    /// What executions depend on.
    pub options: Options,
    /// Transitions after which executions are cut.
    pub max_depth: u64,
    /// What is known of the sharing of objects.
    pub objects: Arc<Objects>,
}

impl Spec {
    /// CPU time without a visible operation that is a divergence.
    pub fn divergence_timeout(&self) -> Duration {
        Duration::from_millis(self.options.divergence_timeout_ms)
    }
}

/// Why the program did not get to its root.
#[derive(Debug)]
pub enum StartError {
    /// Something around the program could not be set up.
    Environment(String),
    /// The program, or vsrun's library in it, said why.
    Refused(String),
    /// vsrun is at fault.
    Bug(String),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Environment(text) | StartError::Refused(text) => f.write_str(text),
            StartError::Bug(text) => write!(f, "vsrun bug: {text}"),
        }
    }
}

impl From<io::Error> for StartError {
    fn from(e: io::Error) -> StartError {
        StartError::Environment(e.to_string())
    }
}
