//! The algorithms by name.

use super::ahead::InOrder;
use super::allowed::Unknown;
use super::api::Search;
use super::exitblock::ExitBlock;
use super::if_sss::IfSss;
use super::naive::Naive;
use super::random::Random;
use super::sss::Sss;
use super::traces::Traces;
use super::walk::Walk;

/// The search algorithm of that name; `seed` is for those that draw lots.
pub fn by_name(name: &str, seed: u64) -> Option<Box<dyn Search>> {
    match name {
        "optimal" => Some(Box::new(InOrder::optimal())),
        "naive" => Some(Box::new(Naive::new())),
        "dpor" => Some(Box::new(InOrder::dpor())),
        "traces" => Some(Box::new(Traces::new())),
        "random" => Some(Box::new(Random::new(seed))),
        "sss" => Some(Box::new(Sss::new(Box::new(Unknown)))),
        "if-sss" => Some(Box::new(IfSss::new(Box::new(Unknown)))),
        "exitblock" => Some(Box::new(ExitBlock::plain())),
        "exitblock-rw" => Some(Box::new(ExitBlock::reads_and_writes())),
        "walk" => Some(Box::new(Walk::new(seed))),
        _ => None,
    }
}
