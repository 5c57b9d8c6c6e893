//! The turn, as far as it is decided without a process: who has it, when nobody else is to be asked, and what time it is.

use crate::base::{Kind, ObjId, Pid, Tid};
use crate::state::{End, World, NOT_SHARED, OVERRUNS, TICK};

/// Reading the clock takes this long, so that a loop that polls it ends, ns.
const READ_COST: u64 = 1_000;
/// Readings of the time-stamp counter by one instruction in a row that are taken for a program that waits.
const WAITING: u32 = 1_000;
/// Such a reading takes this part of the time waited so far, at most [`LONGEST_READ`] ns: each is a trap of a few
/// microseconds, and a wait of seconds should not take millions.
const WAIT_PART: u64 = 64;
const LONGEST_READ: u64 = 100_000;

impl World {
    /// `t` has the turn from now on.
    pub fn give_turn(&mut self, t: Tid) {
        self.current = t;
    }

    /// While the world has had one thread only, operations are initialization: performed, not counted. False: the scheduler
    /// has to decide, since there are others, or it is a toss (unless `tosses`), or it may go on in several ways (timers may have fired
    /// meanwhile), or the operation blocks for good.
    #[inline]
    pub fn goes_alone(&mut self, t: Tid, tosses: bool) -> bool {
        !self.concurrent && self.goes_on_alone(t, tosses)
    }

    #[inline(never)]
    fn goes_on_alone(&mut self, t: Tid, tosses: bool) -> bool {
        if self.timers.len > 0 || self.due(t) != 0 {
            return false;
        }
        if self.threads[t].pending.kind == Kind::TOSS {
            return tosses;
        }
        while self.choices(t) == 0 {
            let Some(deadline) = self.deadline_of(t) else { break };
            self.jump_to(deadline);
        }
        self.takes_time();
        self.choices(t) == 1
    }

    /// An operation takes its time, unless states are to come again: then time passes only where somebody looks at the clock, or waits.
    pub(crate) fn takes_time(&mut self) {
        if !self.timeless || self.knows_not() {
            self.now += TICK;
        }
    }

    /// Virtual monotonic time, ns, of which the program is told in another way than by reading the clock.
    pub fn told_clock(&mut self) -> u64 {
        self.told_time = true;
        if self.timeless {
            // Some has passed since the call began.
            self.now += READ_COST;
        }
        self.now
    }

    /// Virtual monotonic time, ns, as the program reads it.
    pub fn read_clock(&mut self) -> u64 {
        self.told_time = true;
        self.now += READ_COST;
        self.now
    }

    /// The same, for the `n`-th reading in a row by one instruction, of which the first was at virtual time `since`.
    pub fn read_counter(&mut self, n: u32, since: u64) -> u64 {
        self.told_time = true;
        self.now += match n {
            n if n < WAITING => READ_COST,
            _ => (READ_COST + (self.now - since) / WAIT_PART).min(LONGEST_READ),
        };
        self.now
    }

    /// What could come here will not: bits of [`World::never_come`].
    pub fn never_comes(&mut self, what: u64) {
        self.never_come |= what;
    }

    /// The program is told how many periods of a timer have passed unseen.
    pub fn overruns_are_told(&mut self) {
        self.never_comes(OVERRUNS);
    }

    /// Process `p` uses an object in memory that it shares, which is not made for several processes.
    pub fn uses_unshared(&mut self, id: ObjId, p: Pid) {
        let first = &mut self.objects[id].used_in;
        match *first {
            0 => *first = p + 1,
            by if by != p + 1 => self.never_comes(NOT_SHARED),
            _ => {}
        }
    }

    /// Blocks of the heap that are freed are given out again at once in this execution.
    pub fn reuses_freed(&mut self) {
        self.reuses = true;
    }

    /// A block of the heap was kept back that would have been given out again.
    pub fn keeps_apart(&mut self) {
        self.kept_apart = true;
    }

    /// A deadline could have been noticed here, and is not, since timeouts are urgent.
    pub fn left_timeouts_out(&mut self) {
        self.urgent = true;
    }

    /// vsrun itself is at fault, however the execution has ended.
    pub fn fail(&mut self, t: Tid, text: &[u8]) {
        self.end = End::RUNNING;
        self.finish_with(End::BUG, t, &[text]);
    }
}
