//! Random walks over traces: like [`super::random`], but the next thread is drawn in proportion to the transitions that it
//! is expected to have left. Where threads do not depend on each other and their lengths are known, each interleaving is
//! then equally likely: of the interleavings that begin in a state, the part in which a thread moves first is what that
//! thread has left of all that is left (a multinomial coefficient over another). Plain random walks favour those in which
//! all threads advance at the same pace, and hardly ever run a long thread to its end before a short one.
//!
//! How long threads are is learnt from the executions so far, by their names, as a mean. The first execution knows nothing
//! and is a plain random walk over threads.

use std::collections::BTreeMap;

use vsrun_model::arena::{Policy, MAX_EXPECTED};
use vsrun_model::{End, Uid};

use super::api::Search;
use crate::codec;
use crate::incomplete::Reason;
use crate::schedule::Schedule;
use crate::trace::Trace;

/// What repeats a walk: its seed, and the expected transitions by thread.
type Start = (u64, Vec<(Uid, u32)>);

/// An endless sequence of walks.
#[derive(Debug)]
pub struct Walk {
    state: u64,
    /// Walks handed out.
    ticket: u64,
    /// Walks that were under way when the search was saved; they are begun again.
    again: Vec<Start>,
    /// Walks under way, by ticket.
    running: BTreeMap<u64, Start>,
    /// By thread: its transitions in all executions that it was in, and how many these are.
    known: BTreeMap<Uid, (u64, u64)>,
    transitions: u64,
}

impl Walk {
    /// The walks of `seed`.
    pub fn new(seed: u64) -> Walk {
        let (again, running, known) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        Walk { state: seed, ticket: 0, again, running, known, transitions: 0 }
    }

    /// The next of a sequence of seeds (Knuth's linear congruential generator MMIX); the scheduler step mixes their bits.
    fn draw(&mut self) -> Start {
        self.state = self.state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let mean =
            |(&uid, &(sum, n)): (&Uid, &(u64, u64))| (uid, u32::try_from((sum + n / 2) / n.max(1)).unwrap_or(u32::MAX));
        (self.state, self.known.iter().map(mean).collect())
    }

    fn learn(&mut self, trace: &Trace) {
        // An execution that was cut does not show how long its threads are.
        if !matches!(trace.end, End::FINISHED | End::DEADLOCK | End::WAITS_OUTSIDE) {
            return;
        }
        for &(uid, transitions) in &trace.moves {
            if self.known.len() < MAX_EXPECTED || self.known.contains_key(&uid) {
                let (sum, n) = self.known.entry(uid).or_default();
                *sum += u64::from(transitions);
                *n += 1;
            }
        }
    }
}

impl Search for Walk {
    fn next(&mut self) -> Option<Schedule> {
        let start = self.again.pop().unwrap_or_else(|| self.draw());
        self.ticket += 1;
        let (ticket, policy) = (self.ticket, Policy::WALK);
        self.running.insert(ticket, start.clone());
        let (seed, expected) = start;
        Some(Schedule { ticket, policy, seed, expected, blind: true, ..Schedule::default() })
    }

    fn done(&mut self, ticket: u64, trace: &Trace) {
        self.running.remove(&ticket);
        self.transitions += trace.steps.len() as u64 + trace.unrecorded;
        self.learn(trace);
    }

    fn parallel(&self) -> bool {
        true
    }

    fn save(&self) -> Option<Vec<u8>> {
        let again: Vec<&Start> = self.again.iter().chain(self.running.values()).collect();
        Some(codec::encode(&(self.state, self.ticket, again, &self.known, self.transitions)))
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        let (state, ticket, again, known, transitions) = codec::decode(bytes)?;
        let known: BTreeMap<Uid, (u64, u64)> = known;
        codec::counted([ticket, transitions].into_iter().chain(known.values().flat_map(|&(sum, n)| [sum, n])))?;
        *self = Walk { state, ticket, again, running: BTreeMap::new(), known, transitions };
        Ok(())
    }

    fn limit(&self) -> Option<Reason> {
        Some(Reason::Random)
    }

    fn transitions(&self) -> u64 {
        self.transitions
    }
}
