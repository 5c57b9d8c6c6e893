//! Random walks: at every state any enabled alternative, drawn from a seed that is the execution's own.

use vsrun_model::arena::Policy;

use super::Search;
use crate::schedule::Schedule;
use crate::trace::Trace;

/// An endless sequence of random walks.
#[derive(Debug)]
pub struct Random {
    state: u64,
    /// Executions handed out.
    ticket: u64,
    transitions: u64,
}

impl Random {
    /// The walks of `seed`.
    pub fn new(seed: u64) -> Random {
        Random { state: seed, ticket: 0, transitions: 0 }
    }

    /// splitmix64 (Steele, Lea, Flood 2014).
    fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl Search for Random {
    fn next(&mut self) -> Option<Schedule> {
        let seed = self.draw();
        self.ticket += 1;
        Some(Schedule { ticket: self.ticket, policy: Policy::RANDOM, seed, blind: true, ..Schedule::default() })
    }

    fn done(&mut self, _ticket: u64, trace: &Trace) {
        self.transitions += trace.steps.len() as u64 + trace.unrecorded;
    }

    fn parallel(&self) -> bool {
        true
    }

    fn exhaustive(&self) -> bool {
        false
    }

    fn transitions(&self) -> u64 {
        self.transitions
    }

    fn sleep_blocked(&self) -> u64 {
        0
    }
}
