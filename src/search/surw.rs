//! Selectively uniform random walks (SURW: Zhao, Wolff, Mathur, Roychoudhury, Selectively uniform concurrency testing, ASPLOS 2025). A bug often
//! hangs on the order of few operations among many. So some are of interest, and those come in an order in which each interleaving of them is about
//! equally likely, however many others there are between them: the thread that is to make the next one is drawn in proportion to what each has left
//! of them, and others stop before theirs. How many threads make is taken from the executions before.
//!
//! Of interest are here, in each execution, the operations on one object that several threads use, drawn anew each time. The first execution knows
//! of none and is a random walk.

use std::collections::{BTreeMap, BTreeSet};

use vsrun_model::arena::{Policy, MAX_EXPECTED};
use vsrun_model::Uid;

use super::api::Search;
use super::lots::Lots;
use super::pct::Pct;
use crate::codec;
use crate::incomplete::Reason;
use crate::schedule::Schedule;
use crate::trace::Trace;

/// Objects that are known at most: the first.
const MOST_OBJECTS: usize = 4096;

/// What a walk begins with: its seed, the object of interest, and the operations on it that are expected of threads.
type Start = (u64, Vec<u64>, Vec<(Uid, u32)>);

/// Operations in all executions in which there were any, and how many executions these are.
type Sum = (u64, u64);

/// An endless sequence of walks.
#[derive(Debug)]
pub struct Surw {
    lots: Lots,
    /// Walks handed out.
    ticket: u64,
    /// Walks that were under way when the search was saved; they are begun again.
    again: Vec<Start>,
    /// Walks under way, by ticket.
    running: BTreeMap<u64, Start>,
    /// By object and thread.
    known: BTreeMap<u64, BTreeMap<Uid, Sum>>,
    /// All threads, each with those that it comes from.
    threads: BTreeSet<Uid>,
    transitions: u64,
}

impl Surw {
    /// The walks of `seed`.
    pub fn new(seed: u64) -> Surw {
        Surw {
            lots: Lots { state: seed.wrapping_mul(0x5851_f42d_4c95_7f2d) },
            ticket: 0,
            again: Vec::new(),
            running: BTreeMap::new(),
            known: BTreeMap::new(),
            threads: BTreeSet::new(),
            transitions: 0,
        }
    }

    fn draw(&mut self) -> Start {
        let seed = self.lots.draw();
        let shared: Vec<u64> = self.known.iter().filter(|(_, by)| by.len() > 1).map(|(&object, _)| object).collect();
        let Some(&object) = self.lots.one_of(&shared) else { return (seed, Vec::new(), Vec::new()) };
        let by = &self.known[&object];
        let mean = |&(sum, n): &Sum| u32::try_from((sum + n / 2) / n.max(1)).unwrap_or(u32::MAX);
        let expected = self.threads.iter().map(|uid| (*uid, by.get(uid).map_or(0, mean))).collect();
        (seed, vec![object], expected)
    }

    fn learn(&mut self, trace: &Trace) {
        for used in &trace.uses {
            let mut uid = Some(used.uid);
            // Those it comes from stand for it until it is there.
            while let Some(thread) = uid.filter(|_| self.threads.len() < MAX_EXPECTED) {
                self.threads.insert(thread);
                uid = thread.parent();
            }
            if self.known.len() < MOST_OBJECTS || self.known.contains_key(&used.object) {
                let (sum, n) = self.known.entry(used.object).or_default().entry(used.uid).or_default();
                *sum += used.times;
                *n += 1;
            }
        }
    }
}

impl Search for Surw {
    fn next(&mut self) -> Option<Schedule> {
        let start = self.again.pop().unwrap_or_else(|| self.draw());
        self.ticket += 1;
        let (ticket, policy, pct_fair) = (self.ticket, Policy::SURW, Pct::FAIR);
        self.running.insert(ticket, start.clone());
        let (seed, interest, expected) = start;
        Some(Schedule { ticket, policy, seed, pct_fair, interest, expected, blind: true, ..Schedule::default() })
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
        Some(codec::encode(&(self.lots.state, self.ticket, again, &self.known, &self.threads, self.transitions)))
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        let (state, ticket, again, known, threads, transitions) = codec::decode(bytes)?;
        let known: BTreeMap<u64, BTreeMap<Uid, Sum>> = known;
        let sums = known.values().flat_map(BTreeMap::values).flat_map(|&(sum, n)| [sum, n]);
        codec::counted([ticket, transitions].into_iter().chain(sums))?;
        *self = Surw { lots: Lots { state }, ticket, again, running: BTreeMap::new(), known, threads, transitions };
        Ok(())
    }

    fn limit(&self) -> Option<Reason> {
        Some(Reason::Random)
    }

    fn transitions(&self) -> u64 {
        self.transitions
    }
}
