//! The search core: pure functions from traces to schedules, one algorithm a file.
//!
//! A search hands out schedules ([`Search::next`]) and is told what became of each ([`Search::done`]). It imports the
//! model, schedules and traces only, so that it is tested with no process at all.

pub mod allowed;
mod bounded;
mod dpor;
mod exitblock;
mod if_sss;
mod naive;
mod pct;
mod persistent;
mod random;
mod sss;

use vsrun_model::End;

pub use bounded::{Bound, Bounded};
pub use dpor::Dpor;
pub use exitblock::ExitBlock;
pub use if_sss::IfSss;
pub use naive::Naive;
pub use pct::Pct;
pub use random::Random;
pub use sss::Sss;

use self::allowed::{Allowed, Unknown};
use crate::schedule::Schedule;
use crate::trace::Trace;

/// Names that [`by_name`] knows.
pub const NAMES: [&str; 7] = ["naive", "dpor", "random", "sss", "if-sss", "exitblock", "exitblock-rw"];

/// The search algorithm of that name; `seed` is for those that draw lots.
pub fn by_name(name: &str, seed: u64) -> Option<Box<dyn Search>> {
    match name {
        "naive" => Some(Box::new(Naive::new())),
        "dpor" => Some(Box::new(Dpor::new())),
        "random" => Some(Box::new(Random::new(seed))),
        _ => classic(name, Box::new(Unknown)),
    }
}

/// The search of that name among those of the papers that compute persistent sets, from `bounds`.
pub fn classic(name: &str, bounds: Box<dyn Allowed>) -> Option<Box<dyn Search>> {
    match name {
        "sss" => Some(Box::new(Sss::new(bounds))),
        "if-sss" => Some(Box::new(IfSss::new(bounds))),
        "exitblock" => Some(Box::new(ExitBlock::plain())),
        "exitblock-rw" => Some(Box::new(ExitBlock::reads_and_writes())),
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

    /// What the user should know about how the search went.
    fn notes(&self) -> &[String] {
        &[]
    }
}
