//! What is run and how, and why it did not start.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::objects::Objects;
use crate::scenario::Client;

/// What is run and how.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The file to execute.
    pub exe: PathBuf,
    /// Its arguments, the name first.
    pub argv: Vec<OsString>,
    /// Its environment.
    pub env: Vec<OsString>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Timeouts fire whenever they could.
    pub timeouts_any: bool,
    /// Faults that may strike, bits of [`vsrun_model::inject`].
    pub inject: u32,
    /// Misuse does what glibc does.
    pub allow_misuse: bool,
    /// States in a row without anything enabled; 0 = off.
    pub livelock: u32,
    /// An exit status other than 0 is a bug.
    pub fail_on_exit: bool,
    /// What the program writes to files goes to a private layer that each execution starts without.
    pub private_files: bool,
    /// Further root processes.
    pub with: Vec<Client>,
    /// Signal for what is left over when nothing but peers that do not come is waited for; 0: none.
    pub stop_signal: i32,
    /// CPU time without a visible operation that is a divergence.
    pub divergence_timeout: Duration,
    /// Transitions after which executions are cut.
    pub max_depth: u64,
    /// What is known of the sharing of objects.
    pub objects: Arc<Objects>,
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
