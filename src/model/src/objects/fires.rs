//! Which timers have fired when a thread takes a signal. They fire one after another, each at a moment of its own, so how many have is an alternative
//! wherever that can be told: a wait lets in what is blocked otherwise, or the handler of a later one would run first.

use super::row::*;
use super::timer::{Moment, FIRST};
use crate::state::{bit, BEFORE, DIES, INTERRUPTS};

impl World {
    /// Until when timers have fired for `t` if it has blocked their signals all the while: as long as it has waited.
    pub(super) fn has_passed(&self, t: Tid) -> Moment {
        (self.time_of(t), u32::MAX)
    }

    /// The first of the signals `set` that `t` finds where timers have fired until then; 0: none.
    fn found_at(&self, t: Tid, set: u64, until: Moment) -> i32 {
        let own = (self.threads[t].sigpending | self.armed_until(t, true, until)) & set;
        let shared = (self.procs[self.threads[t].pid].sigpending | self.armed_until(t, false, until)) & set;
        match (own, shared) {
            (0, 0) => 0,
            (0, _) => shared.trailing_zeros() as i32 + 1,
            _ => own.trailing_zeros() as i32 + 1,
        }
    }

    /// Timers fire one after another, each at a moment of its own: which signal of `set` is the first that `t` finds, and until when timers have fired
    /// then, not before `from`. The `n`-th way.
    pub(super) fn way_to_find(&self, t: Tid, set: u64, from: Moment, n: u32) -> Option<(i32, Moment)> {
        let (mut until, mut found, mut left) = (from, self.found_at(t, set, from), n);
        loop {
            if found != 0 && left == 0 {
                return Some((found, until));
            }
            left -= u32::from(found != 0);
            let before = found;
            // One more of the same signal changes nothing.
            let others = if found == 0 { set } else { set & !bit(found) };
            while found == before {
                until = self.next_to_fire(t, others, until)?.0;
                found = self.found_at(t, set, until);
            }
        }
    }

    pub(super) fn ways_to_find(&self, t: Tid, set: u64, from: Moment) -> u32 {
        (0..).take_while(|&n| self.way_to_find(t, set, from, n).is_some()).count() as u32
    }

    /// The signal of `ready` that comes first to `t`, which waits with another mask if `waits`: one that is there, or that of the timer that fires
    /// first. And until when timers have fired then.
    pub(super) fn comes_first(&self, t: Tid, ready: u64, waits: bool) -> (i32, Moment) {
        let from = if waits { self.has_passed(t) } else { FIRST };
        self.way_to_find(t, ready, from, 0).unwrap_or((self.first_of(t, ready), from))
    }

    /// Further timers may have fired by the time that the first signal comes to `t` in the alternative `way`: until when, the `n`-th time. Only where
    /// that can be told from their coming later: the wait lets them in, or the handler of a later one would run first.
    fn further_timers(&self, t: Tid, op: &Op, way: u16, n: u32) -> Option<Moment> {
        let (ready, waits) = (self.ready_for_way(t, op, way), self.mask_of_way(t, op, way).1);
        let (first, mut until) = self.comes_first(t, ready, waits);
        if !waits && self.sent_to(t) & ready != 0 {
            return None;
        }
        let (mut lowest, mut left, mut others) = (first, n, ready & !bit(first));
        loop {
            let (at, signal) = self.next_to_fire(t, others, until)?;
            others &= !bit(signal);
            if waits || signal > lowest {
                if left == 0 {
                    return Some(at);
                }
                left -= 1;
            }
            (until, lowest) = (at, lowest.min(signal));
        }
    }

    /// The `n`-th alternative in which several timers have fired by the time that a signal comes: in which way, and until when they have.
    fn way_of_timers(&self, t: Tid, n: u32) -> Option<(u16, Moment)> {
        if self.timers.len == 0 || !self.ticks_freely(t) {
            return None;
        }
        let (ways, op) = (self.signal_ways(t), self.threads[t].pending);
        let mut left = n;
        for way in [BEFORE, INTERRUPTS].into_iter().filter(|way| ways & way != 0 && ways & DIES == 0) {
            let mut at = 0;
            while let Some(until) = self.further_timers(t, &op, way, at) {
                if left == 0 {
                    return Some((way, until));
                }
                (at, left) = (at + 1, left - 1);
            }
        }
        None
    }

    /// How many of these there are.
    pub(crate) fn ways_of_timers(&self, t: Tid) -> u32 {
        (0..).take_while(|&n| self.way_of_timers(t, n).is_some()).count() as u32
    }

    /// Performs the `n`-th of these alternatives, see [`World::interrupt`].
    pub(crate) fn interrupt_by_timers(&mut self, t: Tid, n: u32) -> Applied {
        match self.way_of_timers(t, n) {
            Some((way, until)) => self.interrupt_in(t, way, Some(until)),
            None => self.interrupt(t, 0),
        }
    }

    /// How many more timers may have fired, one after another, by the time that `t` finds a signal of `set`.
    pub(super) fn further_signals(&self, t: Tid, set: u64) -> u32 {
        (1..).take_while(|&n| self.further_signal(t, set, n).is_some()).count() as u32
    }

    fn further_signal(&self, t: Tid, set: u64, more: u32) -> Option<Moment> {
        let set = set & !self.fatal_to(t);
        let (first, mut until) = self.way_to_find(t, set, self.has_passed(t), 0)?;
        let mut others = set & !bit(first);
        for _ in 0..more {
            let (at, signal) = self.next_to_fire(t, others, until)?;
            (until, others) = (at, others & !bit(signal));
        }
        Some(until)
    }

    /// So many more have.
    pub(super) fn fire_further(&mut self, t: Tid, set: u64, more: u32) {
        if let Some(until) = self.further_signal(t, set, more) {
            self.fire_until(t, until);
        }
    }
}
