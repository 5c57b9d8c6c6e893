//! The search core: pure functions from traces to schedules, one algorithm a file.
//!
//! A search hands out schedules ([`Search::next`]), each with a ticket, and is told what became of each
//! ([`Search::done`]). It imports the model, schedules and traces only, so that it is tested with no process at all.

mod ahead;
pub mod allowed;
mod alternatives;
mod api;
mod bounded;
mod bounded_reduction;
mod by_name;
mod canon;
mod clock;
mod exitblock;
mod if_sss;
mod index;
mod naive;
mod pct;
mod persistent;
mod races;
mod random;
mod reduction;
mod reduction_save;
mod sss;
mod traces;
mod tree;
mod walk;

pub use ahead::InOrder;
pub use api::{Search, Watch};
pub use bounded::{Bound, Bounded};
pub use bounded_reduction::BoundedReduction;
pub use by_name::by_name;
pub use exitblock::ExitBlock;
pub use if_sss::IfSss;
pub use naive::Naive;
pub use pct::Pct;
pub use random::Random;
pub use sss::Sss;
pub use traces::Traces;
pub use walk::Walk;
