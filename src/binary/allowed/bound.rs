//! Bounds of what threads may do, as plain data.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use crate::base::text::escape;
use crate::search::allowed::{KindClass, Operand};

/// What a thread may do, at most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedOps {
    /// Nothing is known: it may do everything.
    pub anything: bool,
    /// The operations; all there are unless `anything` is set. Operations of threads it creates are among them.
    pub ops: BTreeSet<(KindClass, Operand)>,
    /// For people: why anything, a sentence each.
    pub why: Vec<String>,
}

/// What one thread may do itself, and with which functions the threads start that it may create.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadBound {
    /// What it may do itself; operations of threads it creates are not among them.
    pub own: AllowedOps,
    /// Addresses of start routines.
    pub creates: BTreeSet<u64>,
}

/// Why a program could not be analysed.
#[derive(Debug)]
pub enum AnalysisError {
    /// A file could not be read, or is no ELF file that can be run here.
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Neither a symbol nor the start-up code says where `main` is.
    NoMain(PathBuf),
}

impl fmt::Display for AnalysisError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            AnalysisError::File { path, reason } => write!(f, "{}: {reason}", escape(path)),
            AnalysisError::NoMain(path) => write!(f, "{}: main was not found", escape(path)),
        }
    }
}

impl std::error::Error for AnalysisError {}
