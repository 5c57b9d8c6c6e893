//! Optimal dynamic partial-order reduction with wakeup trees (Abdulla, Aronis, Jonsson, Sagonas, JACM 2017): every
//! Mazurkiewicz trace is executed exactly once, and no execution is started that is not a new trace.

use super::ahead::InOrder;
use super::api::{Search, Watch};
use super::reduction::Insertion;
use crate::schedule::Schedule;
use crate::trace::Trace;

/// The search.
#[derive(Debug)]
pub struct Optimal {
    search: InOrder,
}

impl Optimal {
    /// A search that has not begun.
    pub fn new() -> Optimal {
        Optimal { search: InOrder::new(Insertion::Sequence) }
    }
}

impl Default for Optimal {
    fn default() -> Optimal {
        Optimal::new()
    }
}

impl Search for Optimal {
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
        true
    }

    fn discarded(&self) -> u64 {
        self.search.discarded()
    }

    fn ahead(&self) -> u64 {
        self.search.ahead()
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
