//! How an execution ended, as the supervisor saw it.

use serde::{Deserialize, Serialize};
use vsrun_model::Tid;

/// How an execution came to its end, as far as the supervisor saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// The model says how.
    Modelled,
    /// A fatal signal (number) in the process with that index.
    Crash {
        /// Signal number.
        signal: i32,
        /// Index of the process.
        process: u32,
    },
    /// CPU time without a visible operation.
    Divergence,
    /// The world sits in a system call that went to the kernel: number and arguments.
    Sits {
        /// Thread index.
        thread: Tid,
        /// 1 + the number, 0 if it is in none, and the arguments.
        call: [u64; 7],
    },
    /// A process ended without the model knowing, with this exit status.
    Died(i32),
    /// vsrun was asked to end.
    Interrupted,
}

/// A fatal signal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalView {
    /// Its name.
    pub name: String,
    /// What the kernel says about the cause (`SEGV_MAPERR`).
    pub code: Option<String>,
    /// The address of the fault.
    pub address: Option<u64>,
    /// The thread.
    pub thread: Tid,
    /// Registers by name; none of a signal that was sent.
    pub registers: Vec<(String, u64)>,
}
