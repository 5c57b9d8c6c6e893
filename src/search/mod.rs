//! The search core: pure functions from traces to schedules, one algorithm a file.
//!
//! A search hands out schedules ([`Search::next`]) and is told what became of each ([`Search::done`]). It imports the
//! model, schedules and traces only, so that it is tested with no process at all.

mod bounded;
mod canon;
mod clock;
mod dpor;
mod naive;
mod optimal;
mod pct;
mod random;
mod reduction;
mod tree;

use vsrun_model::End;

pub use bounded::{Bound, Bounded};
pub use dpor::Dpor;
pub use naive::Naive;
pub use optimal::Optimal;
pub use pct::Pct;
pub use random::Random;

use crate::schedule::Schedule;
use crate::trace::Trace;

/// Names that [`by_name`] knows.
pub const NAMES: [&str; 4] = ["optimal", "naive", "dpor", "random"];

/// The search algorithm of that name; `seed` is for those that draw lots.
pub fn by_name(name: &str, seed: u64) -> Option<Box<dyn Search>> {
    match name {
        "optimal" => Some(Box::new(Optimal::new())),
        "naive" => Some(Box::new(Naive::new())),
        "dpor" => Some(Box::new(Dpor::new())),
        "random" => Some(Box::new(Random::new(seed))),
        _ => None,
    }
}

/// True if the trace cannot be continued or shows less than happened, so that a search that built on it may have
/// missed something.
fn is_partial(trace: &Trace) -> bool {
    matches!(trace.end, End::DEPTH | End::MISMATCH | End::BUG | End::UNSUPPORTED) || trace.unrecorded > 0
}

/// A search algorithm.
pub trait Search {
    /// The next execution to run, or `None` when the search is over.
    fn next(&mut self) -> Option<Schedule>;

    /// What the execution of the schedule last handed out did.
    fn done(&mut self, trace: &Trace);

    /// True if, once `next` gives `None`, everything has been explored (random searches never have).
    fn exhaustive(&self) -> bool;

    /// Transitions executed so far, edges of the search tree: re-executed prefixes are not counted again.
    fn transitions(&self) -> u64;

    /// Executions that were cut off because everything enabled was asleep.
    fn sleep_blocked(&self) -> u64;
}
