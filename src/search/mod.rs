//! The search core: pure functions from traces to schedules, one algorithm a file.
//!
//! A search hands out schedules ([`Search::next`]), each with a ticket, and is told what became of each
//! ([`Search::done`]). It imports the model, schedules and traces only, so that it is tested with no process at all.

mod ahead;
pub mod allowed;
mod alternatives;
mod answers;
mod api;
mod block;
mod bounded;
mod bounded_reduction;
mod canon;
pub(crate) mod clock;
mod composed;
mod cycles;
mod exitblock;
mod if_sss;
pub(crate) mod index;
mod insert;
mod kept;
mod lots;
mod naive;
mod node;
mod novel;
mod past;
mod pct;
mod persistent;
mod phase;
mod pieces;
mod predict;
mod protected;
mod races;
mod random;
mod reduction;
mod reduction_save;
mod refine;
mod reversal;
mod rff;
mod route;
mod sss;
mod stateful;
mod surw;
mod traces;
mod transactions;
mod tree;
mod walk;
mod ways;

pub use ahead::InOrder;
pub use answers::{answered, Answers};
pub use api::{Chance, Search, Watch};
pub use bounded::{Bound, Bounded};
pub use bounded_reduction::BoundedReduction;
pub use composed::Composed;
pub use exitblock::ExitBlock;
pub use if_sss::IfSss;
pub use naive::Naive;
pub use novel::Novel;
pub use past::number_of;
pub use pct::Pct;
pub use pieces::Split;
pub use predict::Predict;
pub use random::Random;
pub use rff::Rff;
pub use sss::Sss;
pub use stateful::Stateful;
pub use surw::Surw;
pub use traces::Traces;
pub use transactions::Transactions;
pub use walk::Walk;

/// The search algorithm of that name; `seed` is for those that draw lots.
pub fn by_name(name: &str, seed: u64) -> Option<Box<dyn Search>> {
    match name {
        "optimal" => Some(Box::new(InOrder::optimal())),
        "naive" => Some(Box::new(Naive::new())),
        "stateful" => Some(Box::new(Stateful::new())),
        "dpor" => Some(Box::new(InOrder::dpor())),
        "traces" => Some(Box::new(Traces::new())),
        "random" => Some(Box::new(Random::new(seed))),
        "sss" => Some(Box::new(Sss::new(Box::new(allowed::Unknown)))),
        "if-sss" => Some(Box::new(IfSss::new(Box::new(allowed::Unknown)))),
        "composed" => Some(Box::new(Composed::new(Box::new(allowed::Unknown)))),
        "transactions" => Some(Box::new(Transactions::new())),
        "exitblock" => Some(Box::new(ExitBlock::plain())),
        "exitblock-rw" => Some(Box::new(ExitBlock::reads_and_writes())),
        "pos" => Some(Box::new(Random::pos(seed))),
        "surw" => Some(Box::new(Surw::new(seed))),
        "rff" => Some(Box::new(Rff::new(seed))),
        "novel" => Some(Box::new(Novel::new(seed))),
        "predict" => Some(Box::new(Predict::new(seed))),
        "walk" => Some(Box::new(Walk::new(seed))),
        _ => None,
    }
}
