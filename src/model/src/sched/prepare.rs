//! What vsrun writes into the arena for an execution: its schedule, and what the policy is to know.

use crate::arena::{guide_that_fits, Arena, Choice, Plan, MAX_EXPECTED, MAX_PREFIX, MAX_SLEEP};
use crate::base::aims::{Wish, MAX_INTEREST, MAX_WISHES};
use crate::base::toss::Tossing;
use crate::base::watch::Watching;
use crate::base::{Kind, Tid, Uid};
use crate::state::world::MAX_THREADS;

/// How far an execution has recorded what it does. What is recorded below that stands in the arena as long as every execution since has begun there or at a
/// mark behind it.
#[derive(Clone, Copy, Debug)]
pub struct Reached {
    taken: u64,
    unrecorded: u64,
    trail: u64,
    last: Kind,
    steps: u32,
    seen: u32,
    records: (Tid, u32, u32),
    records_lost: u64,
    noted: u32,
    late: u32,
    met: u32,
    watching: Watching,
    tossing: Tossing,
    /// How the first process has ended, if it has.
    status: (i32, u32),
    stopped: u32,
}

impl Arena {
    /// How far the execution is. `None`: it has changed what it had recorded, or draws lots by what it has seen.
    pub fn reached(&self) -> Option<Reached> {
        let plain = self.plan.goes_through_tree() && self.owned.len == 0 && self.owned_lost == 0;
        plain.then_some(Reached {
            taken: self.taken,
            unrecorded: self.unrecorded,
            trail: self.trail,
            last: self.last,
            steps: self.steps.len,
            seen: self.seen.len,
            records: self.records.reach(),
            records_lost: self.records_lost,
            noted: self.noted.len,
            late: self.late.len,
            met: self.met.len,
            watching: self.control.watching,
            tossing: self.control.tossing,
            status: (self.control.status, self.control.status_known),
            stopped: self.closing.stopped,
        })
    }

    /// The execution that was prepared goes on from there, with the world as it was then.
    pub fn goes_on_from(&mut self, reached: &Reached) {
        (self.taken, self.unrecorded) = (reached.taken, reached.unrecorded);
        (self.trail, self.last) = (reached.trail, reached.last);
        self.steps.has_again(reached.steps);
        self.seen.has_again(reached.seen);
        self.records.has_again(reached.records);
        self.records_lost = reached.records_lost;
        self.noted.has_again(reached.noted);
        self.late.has_again(reached.late);
        self.met.has_again(reached.met);
        (self.control.watching, self.control.tossing) = (reached.watching, reached.tossing);
        (self.control.status, self.control.status_known) = reached.status;
        self.closing.stopped = reached.stopped;
    }

    /// Sets up the plan for one execution; traces of the last one are forgotten, the world is left as it is.
    pub fn prepare(&mut self, plan: Plan, prefix: &[Choice], sleep: &[(Tid, u32)]) -> Result<(), &'static str> {
        if prefix.len() > MAX_PREFIX || sleep.len() > MAX_SLEEP {
            return Err("the schedule is too long");
        }
        if sleep.iter().any(|&(t, _)| t as usize >= MAX_THREADS) {
            return Err("the schedule has a thread that there cannot be");
        }
        self.plan = plan;
        self.plan.prefix_len = prefix.len() as u32;
        self.prefix[..prefix.len()].copy_from_slice(prefix);
        self.sleep.clear();
        for &entry in sleep {
            self.sleep.push(entry);
        }
        self.plan.guide_len = 0;
        self.guided = 0;
        self.expected.clear();
        if plan.policy.aims() {
            self.aims.begin();
        }
        if plan.orders {
            self.orders.begin();
        }
        if plan.pieces {
            self.pieces.clear();
        }
        (self.world.past_cycles, self.world.timeless) = (plan.past_cycles, plan.timeless);
        self.world.told_time |= plan.timed;
        self.steps.clear();
        self.seen.clear();
        self.records.clear();
        self.records_lost = 0;
        self.owned.clear();
        self.owned_lost = 0;
        self.noted.clear();
        self.late.clear();
        self.met.clear();
        self.unrecorded = 0;
        self.trail = 0;
        self.last = Kind::default();
        self.taken = 0;
        self.random = plan.seed ^ 0x9e37_79b9_7f4a_7c15;
        self.control.status = 0;
        self.control.status_known = 0;
        self.closing.stopped = 0;
        self.control.watching.later = 0;
        self.control.watching.wide = 0;
        self.control.tossing.called = 0;
        self.control.tossing.later = 0;
        Ok(())
    }

    /// What stands in `from` of what an execution has recorded before its first step, and [`Arena::prepare`] forgets: what the two name has to be the same.
    pub fn take_recorded(&mut self, from: &Arena) {
        self.records.copy_from(&from.records);
        self.records_lost = from.records_lost;
        self.owned.copy_from(&from.owned);
        self.owned_lost = from.owned_lost;
        self.noted.copy_from(&from.noted);
        self.late.copy_from(&from.late);
        self.met.copy_from(&from.met);
        self.control.watching = from.control.watching;
        self.control.tossing = from.control.tossing;
    }

    /// Says how many transitions threads are expected to make, ascending by name, after [`Arena::prepare`]. What does not fit
    /// is taken for average.
    pub fn expect(&mut self, transitions: &[(Uid, u32)]) {
        self.expected.clear();
        for &entry in transitions.iter().take(MAX_EXPECTED) {
            self.expected.push(entry);
        }
    }

    /// Says which choices are to be made as far as that is possible, behind the prefix, after [`Arena::prepare`]. What does not fit is left out.
    pub fn guide(&mut self, choices: &[Choice]) {
        let at = self.plan.prefix_len as usize;
        let n = guide_that_fits(at, choices.len());
        self.prefix[at..at + n].copy_from_slice(&choices[..n]);
        self.plan.guide_len = n as u32;
    }

    /// Says what the policy aims at, after [`Arena::prepare`]: the names of the objects of interest, ascending, and wishes. What does not fit is
    /// left out.
    pub fn aim(&mut self, interest: &[u64], wishes: &[Wish]) {
        if !self.plan.policy.aims() {
            return;
        }
        for &name in interest.iter().take(MAX_INTEREST) {
            self.aims.interest.push(name);
        }
        for &wish in wishes.iter().take(MAX_WISHES) {
            self.aims.wishes.push(wish);
        }
    }
}
