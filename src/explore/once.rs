//! One execution with the default policy (`--once`).

use vsrun_model::End;

use crate::incomplete::Reason;
use crate::schedule::Schedule;
use crate::search::Search;
use crate::trace::Trace;

/// The search that is over after one execution.
#[derive(Default)]
pub(super) struct Once {
    given: bool,
    transitions: u64,
    choices: bool,
}

impl Search for Once {
    fn next(&mut self) -> Option<Schedule> {
        (!std::mem::replace(&mut self.given, true)).then(|| Schedule { blind: true, ..Schedule::default() })
    }
    fn done(&mut self, _ticket: u64, trace: &Trace) {
        self.transitions = trace.steps.len() as u64 + trace.unrecorded;
        self.choices = self.transitions > 0 || trace.end == End::DEPTH;
    }
    fn exhaustive(&self) -> bool {
        !self.choices
    }
    fn limit(&self) -> Option<Reason> {
        Some(Reason::Once)
    }
    fn transitions(&self) -> u64 {
        self.transitions
    }
}
