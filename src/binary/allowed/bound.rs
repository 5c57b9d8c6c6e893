//! Bounds of what threads may do, as plain data.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use vsrun_model::ObjKind;

use crate::base::text::escape;

/// What a visible operation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindClass {
    /// An operation on an object of this kind.
    On(ObjKind),
    /// Creates a thread.
    Create,
    /// Creates a process.
    Fork,
    /// Waits for the end of a thread, however long it takes.
    Join,
    /// Looks whether a thread has ended, or waits for it for a while.
    TryJoin,
    /// Tries what would have to wait; goes with what is tried.
    Poll,
    /// Waits for the end of a process.
    Wait,
    /// Ends its process.
    Exit,
    /// Ends a thread that leaves robust mutexes behind.
    ThreadExit,
    /// Sends a signal.
    Kill,
    /// Asks a thread to end.
    Cancel,
    /// Replaces the program.
    Exec,
    /// VS_toss.
    Toss,
    /// Lets others run.
    Yield,
    /// Waits for a time.
    Sleep,
}

impl KindClass {
    /// Where it comes in the order of kinds: a number for the variant, one for the kind of object.
    fn rank(self) -> (u8, u8) {
        let variant = match self {
            KindClass::On(kind) => return (0, kind.0),
            KindClass::Create => 1,
            KindClass::Fork => 2,
            KindClass::Join => 3,
            KindClass::Wait => 4,
            KindClass::Exit => 5,
            KindClass::ThreadExit => 6,
            KindClass::Kill => 7,
            KindClass::Cancel => 8,
            KindClass::Exec => 9,
            KindClass::Toss => 10,
            KindClass::Yield => 11,
            KindClass::Sleep => 12,
            KindClass::TryJoin => 13,
            KindClass::Poll => 14,
        };
        (variant, 0)
    }
}

impl Ord for KindClass {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl PartialOrd for KindClass {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for KindClass {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            KindClass::On(kind) => kind.name(),
            KindClass::Create => "create",
            KindClass::Fork => "fork",
            KindClass::Join => "join",
            KindClass::Wait => "wait",
            KindClass::Exit => "exit",
            KindClass::ThreadExit => "thread exit",
            KindClass::Kill => "kill",
            KindClass::Cancel => "cancel",
            KindClass::Exec => "exec",
            KindClass::Toss => "toss",
            KindClass::Yield => "yield",
            KindClass::Sleep => "sleep",
            KindClass::TryJoin => "try join",
            KindClass::Poll => "poll",
        })
    }
}

/// Which object an operation is about. Addresses are those of the running process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operand {
    /// Any object of the kind, or the kind has none.
    Any,
    /// The object at this address.
    Addr(u64),
    /// An object at an address from the first up to, not including, the second.
    Range(u64, u64),
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Operand::Any => f.write_str("any"),
            Operand::Addr(at) => write!(f, "{at:#x}"),
            Operand::Range(start, end) => write!(f, "{start:#x}..{end:#x}"),
        }
    }
}

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

/// How much was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Functions decoded.
    pub functions: usize,
    /// Bytes of code decoded.
    pub bytes: u64,
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
