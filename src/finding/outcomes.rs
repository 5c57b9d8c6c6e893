//! What executions that ran to their end came to: what the processes of the program printed, and how the first of them ended.

use std::path::PathBuf;

use super::status::ProgramStatus;

/// The outcomes of an exploration, the most frequent first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcomes {
    /// Executions that ran to their end.
    pub executions: u64,
    /// How many different outcomes they had.
    pub different: u64,
    /// There were more than are told apart: `different` is the least, and of none it is known how often it came.
    pub overflow: bool,
    /// Those that are shown: of more than there is room for, those to which the shortest executions lead.
    pub table: Vec<OutcomeView>,
}

/// One outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutcomeView {
    /// Executions with it. `None`: not known.
    pub times: Option<u64>,
    /// How the first process ended. `None`: it did not, others did.
    pub status: Option<ProgramStatus>,
    /// What was printed, beside what the first outcome prints.
    pub printed: Printed,
    /// Bytes printed.
    pub bytes: u64,
    /// A scenario of it, if one was asked for.
    pub scenario: Option<PathBuf>,
}

/// What is told of what an outcome prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Printed {
    /// Nothing, and neither does the first outcome.
    Nothing,
    /// The same as the first outcome.
    Same,
    /// Of the first outcome: the first line that is not the same in another. Of another: the first that is not the same in the first.
    Line {
        /// Its number, from 1.
        number: u64,
        /// What is in it, abbreviated around the first difference. `None`: the output ends before it.
        text: Option<String>,
        /// What the first outcome has there.
        first: Option<String>,
    },
    /// As far as outputs are kept, which is so many bytes, it is the same as the first outcome's; not behind that.
    Beyond(u64),
}
