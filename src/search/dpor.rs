//! Dynamic partial-order reduction with source sets (Abdulla, Aronis, Jonsson, Sagonas, POPL 2014) and sleep sets, which go
//! on with conditional dependency while an execution runs (Stoller, TR 536, Section 7). It may start executions that turn
//! out to be redundant: everything enabled is asleep, and they are cut off. See [`super::reduction`].

use super::reduction::{Insertion, Reduction};
use super::Search;
use crate::schedule::Schedule;
use crate::trace::Trace;

/// The search.
#[derive(Debug)]
pub struct Dpor {
    reduction: Reduction,
    ticket: u64,
}

impl Dpor {
    /// A search that has not begun.
    pub fn new() -> Dpor {
        Dpor { reduction: Reduction::new(Insertion::FirstStep), ticket: 0 }
    }
}

impl Default for Dpor {
    fn default() -> Dpor {
        Dpor::new()
    }
}

impl Search for Dpor {
    fn next(&mut self) -> Option<Schedule> {
        let (ticket, schedule) = self.reduction.start()?;
        self.ticket = ticket;
        Some(schedule)
    }

    fn done(&mut self, trace: &Trace) {
        self.reduction.finish(self.ticket, trace);
    }

    fn exhaustive(&self) -> bool {
        self.reduction.exhaustive()
    }

    fn transitions(&self) -> u64 {
        self.reduction.transitions()
    }

    fn sleep_blocked(&self) -> u64 {
        self.reduction.sleep_blocked()
    }
}
