//! Probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi, Nagarakatte, ASPLOS 2010): priorities drawn by
//! lot, lowered at d - 1 steps drawn by lot, find a bug of depth d among n threads and k steps with probability at
//! least 1 / (n k^(d-1)) in each execution.

use std::collections::BTreeMap;

use vsrun_model::arena::Policy;

use super::api::Search;
use crate::codec;
use crate::incomplete::Reason;
use crate::schedule::Schedule;
use crate::trace::Trace;

/// An endless sequence of PCT executions.
#[derive(Debug)]
pub struct Pct {
    seed: u64,
    depth: u32,
    /// Longest execution so far: the estimate of k.
    length: u32,
    /// Executions handed out.
    ticket: u64,
    /// (seed, length) of executions that were under way when the search was saved; they are begun again.
    again: Vec<(u64, u32)>,
    /// The same of executions under way, by ticket.
    running: BTreeMap<u64, (u64, u32)>,
    transitions: u64,
}

impl Pct {
    /// Executions of `seed` that look for bugs of depth `depth`.
    pub fn new(seed: u64, depth: u32) -> Pct {
        let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Pct { seed, depth, length: 1, ticket: 0, again: Vec::new(), running: BTreeMap::new(), transitions: 0 }
    }

    fn draw(&mut self) -> (u64, u32) {
        self.seed = self.seed.wrapping_add(0x2545_f491_4f6c_dd1d);
        (self.seed, self.length)
    }
}

impl Search for Pct {
    fn next(&mut self) -> Option<Schedule> {
        let (seed, pct_length) = self.again.pop().unwrap_or_else(|| self.draw());
        self.ticket += 1;
        self.running.insert(self.ticket, (seed, pct_length));
        let (ticket, pct_depth) = (self.ticket, self.depth);
        let policy = Policy::PCT;
        Some(Schedule { ticket, policy, seed, pct_depth, pct_length, blind: true, ..Schedule::default() })
    }

    fn done(&mut self, ticket: u64, trace: &Trace) {
        self.running.remove(&ticket);
        let length = trace.steps.len() as u64 + trace.unrecorded;
        self.transitions += length;
        self.length = self.length.max(u32::try_from(length).unwrap_or(u32::MAX));
    }

    fn parallel(&self) -> bool {
        true
    }

    fn save(&self) -> Option<Vec<u8>> {
        let again: Vec<(u64, u32)> = self.again.iter().chain(self.running.values()).copied().collect();
        Some(codec::encode(&(self.seed, self.length, self.ticket, again, self.transitions)))
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        let (seed, length, ticket, again, transitions) = codec::decode(bytes)?;
        codec::counted([ticket, transitions])?;
        *self = Pct { seed, depth: self.depth, length, ticket, again, running: BTreeMap::new(), transitions };
        Ok(())
    }

    fn limit(&self) -> Option<Reason> {
        Some(Reason::Random)
    }

    fn transitions(&self) -> u64 {
        self.transitions
    }
}
