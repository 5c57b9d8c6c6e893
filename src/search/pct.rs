//! Probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi, Nagarakatte, ASPLOS 2010): priorities drawn by
//! lot, lowered at d - 1 steps drawn by lot, find a bug of depth d among n threads and k steps with probability at
//! least 1 / (n k^(d-1)) in each execution.
//!
//! Priorities are not fair: a thread that waits in a loop (a server that polls, a lock that is tried) for one of lower priority does so for
//! ever, and the execution has no end. So after [`Pct::FAIR`] transitions what is left is a random walk, which is fair with probability 1;
//! the bound above is for the transitions before. This is the fair variant of Coyote (`fair-prioritization`: its strategy of priorities for
//! 10,000 steps, then a random one for up to 100,000).

use std::collections::BTreeMap;

use vsrun_model::arena::Policy;
use vsrun_model::End;

use super::api::{Chance, Search};
use crate::codec;
use crate::incomplete::Reason;
use crate::schedule::Schedule;
use crate::trace::Trace;

/// An endless sequence of PCT executions.
#[derive(Debug)]
pub struct Pct {
    seed: u64,
    depth: u32,
    /// Transitions after which executions become fair.
    fair: u64,
    /// Longest execution so far, but for what was fair: the estimate of k.
    length: u32,
    /// Executions handed out.
    ticket: u64,
    /// (seed, length) of executions that were under way when the search was saved; they are begun again.
    again: Vec<(u64, u32)>,
    /// The same of executions under way, by ticket.
    running: BTreeMap<u64, (u64, u32)>,
    transitions: u64,
    /// Executions for which the bound holds, by threads and transitions among which priorities were changed; not saved.
    bounded: BTreeMap<(u32, u32), u64>,
}

impl Pct {
    /// See `fair` of [`Pct::new`]: unless something else is asked for.
    pub const FAIR: u64 = 10_000;

    /// Executions of `seed` that look for bugs of depth `depth`, and become fair after `fair` transitions.
    pub fn new(seed: u64, depth: u32, fair: u64) -> Pct {
        let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Pct {
            seed,
            depth,
            fair,
            length: 1,
            ticket: 0,
            again: Vec::new(),
            running: BTreeMap::new(),
            transitions: 0,
            bounded: BTreeMap::new(),
        }
    }

    /// The bound holds for an execution that came to its end by priorities alone, all of it among the `k` transitions. Without changes k is of no
    /// matter.
    fn is_bounded(&self, trace: &Trace, length: u64, k: u32) -> bool {
        let ended = !matches!(
            trace.end,
            End::DEPTH | End::MISMATCH | End::BUG | End::UNSUPPORTED | End::ROOM | End::REFUSED | End::RUNNING
        );
        ended && !trace.gave_way && trace.made > 0 && length <= self.fair && (self.depth <= 1 || length <= u64::from(k))
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
        let (ticket, pct_depth, pct_fair) = (self.ticket, self.depth, self.fair);
        let policy = Policy::PCT;
        Some(Schedule { ticket, policy, seed, pct_depth, pct_length, pct_fair, blind: true, ..Schedule::default() })
    }

    fn done(&mut self, ticket: u64, trace: &Trace) {
        let length = trace.steps.len() as u64 + trace.unrecorded;
        if let Some((_, among)) = self.running.remove(&ticket).filter(|&(_, k)| self.is_bounded(trace, length, k)) {
            *self.bounded.entry((trace.made, among)).or_default() += 1;
        }
        self.transitions += length;
        self.length = self.length.max(u32::try_from(length.min(self.fair)).unwrap_or(u32::MAX));
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
        let (depth, fair) = (self.depth, self.fair);
        *self = Pct {
            seed,
            depth,
            fair,
            length,
            ticket,
            again,
            running: BTreeMap::new(),
            transitions,
            bounded: BTreeMap::new(),
        };
        Ok(())
    }

    fn chances(&self) -> Vec<Chance> {
        let depth = self.depth;
        let of = |(&(threads, length), &executions): (&(u32, u32), &u64)| Chance { depth, threads, length, executions };
        self.bounded.iter().map(of).collect()
    }

    fn limit(&self) -> Option<Reason> {
        Some(Reason::Random)
    }

    fn transitions(&self) -> u64 {
        self.transitions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(pct: &mut Pct, length: u64, end: End, gave_way: bool) {
        let ticket = pct.next().expect("there is always another one").ticket;
        pct.done(ticket, &Trace { unrecorded: length, made: 2, end, gave_way, ..Trace::default() });
    }

    #[test]
    fn the_bound_is_for_executions_that_priorities_brought_to_their_end() {
        let mut pct = Pct::new(1, 2, 100);
        // Of the first nothing is known, so priorities were changed at its first step only.
        run(&mut pct, 10, End::FINISHED, false);
        assert_eq!(pct.chances(), []);
        let of = |length, executions| Chance { depth: 2, threads: 2, length, executions };
        run(&mut pct, 8, End::FINISHED, false);
        run(&mut pct, 10, End::DEADLOCK, false);
        assert_eq!(pct.chances(), [of(10, 2)]);
        // Longer than those before, cut, held back, turned fair.
        run(&mut pct, 12, End::FINISHED, false);
        run(&mut pct, 5, End::DEPTH, false);
        run(&mut pct, 5, End::FINISHED, true);
        run(&mut pct, 200, End::FINISHED, false);
        run(&mut pct, 101, End::FINISHED, false);
        assert_eq!(pct.chances(), [of(10, 2)]);
        run(&mut pct, 5, End::FINISHED, false);
        assert_eq!(pct.chances(), [of(10, 2), of(100, 1)]);
        // Without changes it does not matter among how many they would come.
        let mut once = Pct::new(1, 1, 100);
        run(&mut once, 10, End::FINISHED, false);
        assert_eq!(once.chances(), [Chance { depth: 1, threads: 2, length: 1, executions: 1 }]);
    }
}
