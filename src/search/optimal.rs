//! Optimal dynamic partial-order reduction with wakeup trees (Abdulla, Aronis, Jonsson, Sagonas, JACM 2017): every
//! Mazurkiewicz trace is executed exactly once, and no execution is started that is not a new trace.

use super::reduction::{Insertion, Reduction};
use super::Search;
use crate::schedule::Schedule;
use crate::trace::Trace;

/// The search.
#[derive(Debug)]
pub struct Optimal {
    reduction: Reduction,
    ticket: u64,
}

impl Optimal {
    /// A search that has not begun.
    pub fn new() -> Optimal {
        Optimal { reduction: Reduction::new(Insertion::Sequence), ticket: 0 }
    }
}

impl Default for Optimal {
    fn default() -> Optimal {
        Optimal::new()
    }
}

impl Search for Optimal {
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
