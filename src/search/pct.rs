//! Probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi, Nagarakatte, ASPLOS 2010): priorities drawn by
//! lot, lowered at d - 1 steps drawn by lot, find a bug of depth d among n threads and k steps with probability at
//! least 1 / (n k^(d-1)) in each execution.

use vsrun_model::arena::Policy;

use super::Search;
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
    transitions: u64,
}

impl Pct {
    /// Executions of `seed` that look for bugs of depth `depth`.
    pub fn new(seed: u64, depth: u32) -> Pct {
        Pct { seed: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), depth, length: 1, ticket: 0, transitions: 0 }
    }
}

impl Search for Pct {
    fn next(&mut self) -> Option<Schedule> {
        self.seed = self.seed.wrapping_add(0x2545_f491_4f6c_dd1d);
        self.ticket += 1;
        Some(Schedule {
            ticket: self.ticket,
            policy: Policy::PCT,
            seed: self.seed,
            pct_depth: self.depth,
            pct_length: self.length,
            blind: true,
            ..Schedule::default()
        })
    }

    fn done(&mut self, _ticket: u64, trace: &Trace) {
        let length = trace.steps.len() as u64 + trace.unrecorded;
        self.transitions += length;
        self.length = self.length.max(u32::try_from(length).unwrap_or(u32::MAX));
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
