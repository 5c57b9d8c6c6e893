//! Random executions, each drawn from a seed of its own: walks that take any enabled alternative in every state, or partial order sampling
//! (POS: Yuan, Yang, Gu, Partial Order Aware Concurrency Sampling, CAV 2018), which draws a priority for each operation and another one where an
//! operation that it depends on came first. The policies are those of [`vsrun_model::arena::Policy`].

use std::collections::BTreeMap;

use vsrun_model::arena::Policy;

use super::api::Search;
use crate::codec;
use crate::incomplete::Reason;
use crate::schedule::Schedule;
use crate::trace::Trace;

/// An endless sequence of random executions.
#[derive(Debug)]
pub struct Random {
    policy: Policy,
    state: u64,
    /// Executions handed out.
    ticket: u64,
    /// Seeds of executions that were under way when the search was saved; they are begun again.
    again: Vec<u64>,
    /// Seeds of executions under way, by ticket.
    running: BTreeMap<u64, u64>,
    transitions: u64,
}

impl Random {
    /// The walks of `seed`.
    pub fn new(seed: u64) -> Random {
        Random::by(Policy::RANDOM, seed)
    }

    /// The samples of partial orders of `seed`.
    pub fn pos(seed: u64) -> Random {
        Random::by(Policy::POS, seed)
    }

    fn by(policy: Policy, seed: u64) -> Random {
        Random { policy, state: seed, ticket: 0, again: Vec::new(), running: BTreeMap::new(), transitions: 0 }
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
        let seed = self.again.pop().unwrap_or_else(|| self.draw());
        self.ticket += 1;
        self.running.insert(self.ticket, seed);
        Some(Schedule { ticket: self.ticket, policy: self.policy, seed, blind: true, ..Schedule::default() })
    }

    fn done(&mut self, ticket: u64, trace: &Trace) {
        self.running.remove(&ticket);
        self.transitions += trace.steps.len() as u64 + trace.unrecorded;
    }

    fn parallel(&self) -> bool {
        true
    }

    fn save(&self) -> Option<Vec<u8>> {
        let again: Vec<u64> = self.again.iter().chain(self.running.values()).copied().collect();
        Some(codec::encode(&(self.state, self.ticket, again, self.transitions)))
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        let (state, ticket, again, transitions) = codec::decode(bytes)?;
        codec::counted([ticket, transitions])?;
        *self = Random { policy: self.policy, state, ticket, again, running: BTreeMap::new(), transitions };
        Ok(())
    }

    fn limit(&self) -> Option<Reason> {
        Some(Reason::Random)
    }

    fn transitions(&self) -> u64 {
        self.transitions
    }
}
