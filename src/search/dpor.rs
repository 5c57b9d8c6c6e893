//! Dynamic partial-order reduction with source sets (Abdulla, Aronis, Jonsson, Sagonas, POPL 2014) and sleep sets, which go
//! on with conditional dependency while an execution runs (Stoller, TR 536, Section 7). It may start executions that turn
//! out to be redundant: everything enabled is asleep, and they are cut off. See [`super::reduction`].

use super::ahead::InOrder;
use super::api::{Search, Watch};
use super::reduction::Insertion;
use crate::schedule::Schedule;
use crate::trace::Trace;

/// The search.
#[derive(Debug)]
pub struct Dpor {
    search: InOrder,
}

impl Dpor {
    /// A search that has not begun.
    pub fn new() -> Dpor {
        Dpor { search: InOrder::new(Insertion::FirstStep) }
    }
}

impl Default for Dpor {
    fn default() -> Dpor {
        Dpor::new()
    }
}

impl Search for Dpor {
    fn watch(&mut self, watch: Watch) {
        self.search.watch(watch);
    }

    fn next(&mut self) -> Option<Schedule> {
        self.search.start()
    }

    fn done(&mut self, ticket: u64, trace: &Trace) {
        self.search.finish(ticket, trace);
    }

    fn exhaustive(&self) -> bool {
        self.search.exhaustive()
    }

    fn transitions(&self) -> u64 {
        self.search.transitions()
    }

    fn sleep_blocked(&self) -> u64 {
        self.search.sleep_blocked()
    }

    fn parallel(&self) -> bool {
        // Which executions turn out to be redundant would depend on the order in which they end.
        false
    }

    fn save(&self) -> Option<Vec<u8>> {
        Some(self.search.save())
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        Ok(self.search.restore(bytes)?)
    }

    fn frontier(&self) -> u64 {
        self.search.frontier()
    }

    fn progress(&self) -> Option<f64> {
        self.search.progress()
    }
}
