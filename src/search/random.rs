//! Random executions, each drawn from a seed of its own: walks that take any enabled alternative in every state, or partial order sampling
//! (POS: Yuan, Yang, Gu, Partial Order Aware Concurrency Sampling, CAV 2018), which draws a priority for each operation and another one where an
//! operation that it depends on came first. The policies are those of [`vsrun_model::arena::Policy`].

use std::collections::BTreeMap;

use vsrun_model::arena::Policy;

use super::api::Search;
use super::lots::Lots;
use crate::codec;
use crate::incomplete::Reason;
use crate::schedule::Schedule;
use crate::trace::Trace;

/// An endless sequence of random executions.
#[derive(Debug)]
pub struct Random {
    policy: Policy,
    lots: Lots,
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
        Random {
            policy,
            lots: Lots { state: seed },
            ticket: 0,
            again: Vec::new(),
            running: BTreeMap::new(),
            transitions: 0,
        }
    }
}

impl Search for Random {
    fn next(&mut self) -> Option<Schedule> {
        let seed = self.again.pop().unwrap_or_else(|| self.lots.draw());
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
        Some(codec::encode(&(self.lots.state, self.ticket, again, self.transitions)))
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        let (state, ticket, again, transitions) = codec::decode(bytes)?;
        codec::counted([ticket, transitions])?;
        *self =
            Random { policy: self.policy, lots: Lots { state }, ticket, again, running: BTreeMap::new(), transitions };
        Ok(())
    }

    fn limit(&self) -> Option<Reason> {
        Some(Reason::Random)
    }

    fn transitions(&self) -> u64 {
        self.transitions
    }
}
