//! The search core: pure functions from traces to schedules, one algorithm a file.
//!
//! A search hands out schedules ([`Search::next`]) and is told what became of each ([`Search::done`]). It imports the
//! model, schedules and traces only, so that it is tested with no process at all.

mod bounded;
mod dpor;
mod naive;
mod pct;
mod random;

use vsrun_model::arena::Seen;
use vsrun_model::{Act, Effects, End, Kind};

pub use bounded::{Bound, Bounded};
pub use dpor::Dpor;
pub use naive::Naive;
pub use pct::Pct;
pub use random::Random;

use crate::schedule::Schedule;
use crate::trace::Trace;

/// Names that [`by_name`] knows.
pub const NAMES: [&str; 3] = ["naive", "dpor", "random"];

/// The search algorithm of that name; `seed` is for those that draw lots.
pub fn by_name(name: &str, seed: u64) -> Option<Box<dyn Search>> {
    match name {
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

/// What the transition of `act` did beyond its operation, given what is pending after it.
fn effects(act: &Act, after: &[Seen]) -> Effects {
    let mine = after.iter().find(|s| s.act.uid == act.uid);
    let mut did = if mine.is_none() { Effects::ENDS } else { Effects::NONE };
    let process_is_over = !after.iter().any(|s| s.act.pid == act.pid);
    if process_is_over || mine.is_some_and(|s| s.act.op.kind == Kind::EXIT) {
        did = did.with(Effects::EXITS);
    }
    did
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
