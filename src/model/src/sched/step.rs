//! The scheduler step: which thread moves next. First the prefix of the schedule, then its guide, as far as it can be followed, then its policy.

use crate::arena::{Arena, Policy, Seen, Step};
use crate::base::watch::Record;
use crate::base::{Kind, Tid, NONE, TIMED};
use crate::relation::depend::{dependent_after, dependent_by_effects};
use crate::sched::sharing::LONG_RUNS;
use crate::state::{
    Effects, End, ProcState, ThreadState, World, ALTERNATIVES, BEFORE, INTERRUPTS, NO_PROGRESS, YIELD_WINDOW,
};

/// What the scheduler step decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// This thread performs its pending operation in alternative `World::value`.
    Run(Tid),
    /// The execution is over; `World::end` says how.
    Ended,
}

impl Arena {
    /// Decides who moves next and records it. Every live thread must be parked at its pending operation.
    pub fn step(&mut self) -> Decision {
        if self.world.end != End::RUNNING {
            return Decision::Ended;
        }
        self.note_effects();
        self.note_untold();
        self.world.passed_last = NONE;
        self.world.passed_run = 0;
        self.collect_enabled();
        if self.enabled.len == 0 {
            if self.world.n_cycle == 0 {
                self.world.note_cycle_left();
            }
            if self.world.n_cycle > 0 && self.world.live.len > 0 {
                self.world.end_in_cycle();
            }
            self.world.note_waits_left();
            let end = match self.world.live.len {
                0 => End::FINISHED,
                _ if self.is_idle() => End::WAITS_OUTSIDE,
                _ => End::DEADLOCK,
            };
            self.world.finish(end, self.world.current, NONE, 0);
            return Decision::Ended;
        }
        if self.taken >= self.plan.max_depth {
            self.world.finish(End::DEPTH, self.world.current, NONE, 0);
            return Decision::Ended;
        }
        if self.plan.loops > 0 && self.taken == u64::from(self.plan.prefix_len) {
            self.world.finish(End::LOOP, self.world.current, NONE, self.plan.loops - 1);
            return Decision::Ended;
        }
        if self.is_without_progress() {
            self.world.finish(End::DEPTH, self.world.current, NONE, NO_PROGRESS);
            return Decision::Ended;
        }
        if self.world.livelock > 0 && self.livelocked() {
            return Decision::Ended;
        }
        let chosen = if self.taken < self.plan.prefix_len as u64 {
            self.next_of_prefix()
        } else {
            self.next_of_guide().or_else(|| self.next_by_policy())
        };
        let Some((t, value)) = chosen else { return Decision::Ended };
        self.record(t, value);
        if self.taken >= self.plan.prefix_len as u64 {
            self.wake_dependent(t);
        }
        self.world.current = t;
        self.world.value = value;
        self.world.moves += 1;
        self.note_move(t);
        self.taken += 1;
        self.world.ops += 1;
        self.world.takes_time();
        Decision::Run(t)
    }

    /// For as long as the plan allows. A prefix is followed to its end in any case.
    fn is_without_progress(&self) -> bool {
        let most = self.plan.max_idle;
        most > 0 && self.world.moves - self.world.progress.at >= most && self.taken >= u64::from(self.plan.prefix_len)
    }

    /// The transition before is over: what it did is recorded with it.
    fn note_effects(&mut self) {
        self.keep_what_libc_made();
        let did = core::mem::replace(&mut self.world.did, Effects::NONE);
        let Some(last) = self.steps.as_mut_slice().last_mut() else { return };
        last.did = did;
        let moved = last.act;
        if self.plan.late_wake && self.taken >= u64::from(self.plan.prefix_len) {
            self.keep_asleep(|world, t| !dependent_by_effects(&moved, did, &world.act(t), Effects::ENDS));
        }
        let expected = self.plan.expected_effects;
        let ends_prefix = self.plan.wake_by_effects && self.taken == u64::from(self.plan.prefix_len);
        if ends_prefix && expected.with(did) != expected {
            self.sleep.clear();
        }
        // Effects are known only now; those of the sleeping operations are not known here.
        if did != Effects::NONE && self.sleep.len > 0 && self.taken > self.plan.prefix_len as u64 {
            let pid = self.pid_of(self.world.current);
            let mut kept = 0;
            for i in 0..self.sleep.len {
                let entry = self.sleep[i];
                let concerned = self.plan.wake_by_effects && self.pid_of(entry.0) == pid;
                if !did.wakes_others() && !concerned {
                    self.sleep[kept] = entry;
                    kept += 1;
                }
            }
            self.sleep.len = kept;
        }
    }

    fn note_move(&mut self, t: Tid) {
        let moves = self.world.moves;
        let gives_way = self.world.gives_way(t);
        let thread = &mut self.world.threads[t];
        thread.moved = moves;
        if !thread.pending.kind.only_looks() {
            thread.last = thread.pending.kind;
        }
        thread.creates = false;
        thread.transitions = thread.transitions.saturating_add(1);
        if gives_way {
            thread.yields.rotate_left(1);
            thread.yields[YIELD_WINDOW - 1] = moves;
        }
    }

    /// Fills `enabled`. When only yields are left, the earliest deadline may fire.
    fn collect_enabled(&mut self) {
        self.enabled.clear();
        let (mut giving_way, mut waits_for_time) = (0, self.world.timers.len > 0);
        if self.world.has_timers() {
            self.note_held_ticks();
        }
        let (world, enabled) = (&self.world, &mut self.enabled);
        for &t in world.live.as_slice() {
            if world.gives_way(t) {
                giving_way += 1;
                continue;
            }
            let choices = world.choices(t);
            if choices > 0 {
                enabled.push((t, choices));
            } else if world.n_timers > 0 || world.threads[t].pending.has(TIMED) {
                waits_for_time = true;
            }
        }
        if waits_for_time && self.enabled.len > 0 && !self.world.timeouts_any && self.world.next_deadline().is_some() {
            self.world.urgent = true;
        }
        // A deadline that fires may let nobody run: a condition wait whose mutex is taken.
        while self.enabled.len == 0 && !self.is_settled() && self.jump_to_deadline() {
            // One that looks in vain might have gone on looking.
            self.world.held_back |= giving_way > 0;
            for i in 0..self.world.live.len {
                let t = self.world.live[i];
                if !self.world.gives_way(t) && self.world.choices(t) > 0 {
                    self.enabled.push((t, self.world.choices(t)));
                }
            }
        }
        if giving_way > 0 && self.enabled.len == 0 && self.is_settled() {
            // What is left only lets time pass, again and again, and nobody will come.
            self.world.held_back = true;
        } else if giving_way > 0 {
            self.add_yields();
        }
    }

    /// Nobody but thread `t` can make a step before it does: all others have come to an operation, none could go on, neither time nor a
    /// timer lets one, and no signal is on its way.
    pub fn moves_alone(&self, t: Tid) -> bool {
        let world = &self.world;
        let waits = |u: Tid| world.threads[u].state == ThreadState::PARKED && !world.threads[u].pending.has(TIMED);
        let moves = |u: Tid| !waits(u) || world.choices(u) > 0;
        let others = world.live.as_slice().iter().any(|&u| u != t && moves(u));
        !others && world.n_timers == 0 && world.timers.len == 0 && world.signals.len == 0
    }

    #[cold]
    #[inline(never)]
    fn note_held_ticks(&mut self) {
        let world = &self.world;
        let held = world.live.as_slice().iter().any(|&t| world.holds_ticks(t));
        self.world.ticks_held |= held;
    }

    /// Adds the threads that give way but need not wait: those for which every other thread that could move has moved
    /// during their last [`YIELD_WINDOW`] yields. The one that has not moved for longest never waits, so that something
    /// is always enabled, and no thread that could move is passed over for ever: the fair schedules of Musuvathi and
    /// Qadeer (PLDI 2008), with a window instead of priorities. Yields depend on everything, so what this rests on does
    /// not depend on the order of independent steps.
    fn add_yields(&mut self) {
        let others = self.enabled.len;
        for i in 0..self.world.live.len {
            let t = self.world.live[i];
            let choices = if self.world.gives_way(t) { self.world.choices(t) } else { 0 };
            if choices == 0 {
                continue;
            }
            let since = self.world.threads[t].yields[0];
            let world = &self.world;
            let passed_over = |u: Tid| u != t && world.threads[u].moved < since;
            let waits = self.enabled.as_slice()[..others as usize].iter().any(|e| passed_over(e.0))
                || world.live.as_slice().iter().any(|&u| passed_over(u) && world.gives_way(u) && world.choices(u) > 0);
            if waits {
                self.world.held_back = true;
            } else {
                self.enabled.push((t, choices));
            }
        }
        if others > 0 {
            self.enabled.as_mut_slice().sort_unstable_by_key(|e| e.0);
        }
    }

    /// Moves virtual time to the earliest deadline of a blocked operation. False: there is none.
    fn jump_to_deadline(&mut self) -> bool {
        let world = &mut self.world;
        let Some(deadline) = world.next_deadline() else { return false };
        world.jump_to(deadline);
        world.fire_timers();
        true
    }

    /// Counts states in a row in which a live process has nothing enabled.
    fn livelocked(&mut self) -> bool {
        let limit = self.world.livelock;
        for p in 0..self.world.procs.len {
            if self.world.procs[p].state != ProcState::LIVE {
                continue;
            }
            let active = self.enabled.as_slice().iter().any(|&(t, _)| self.world.threads[t].pid == p);
            let starved = &mut self.world.procs[p].starved;
            *starved = if active { 0 } else { *starved + 1 };
            if *starved > limit {
                let main = self.world.procs[p].main_thread;
                self.world.finish(End::LIVELOCK, main, p, limit);
                return true;
            }
        }
        false
    }

    fn next_of_prefix(&mut self) -> Option<(Tid, u32)> {
        let at = self.taken as usize;
        let choice = self.prefix[at];
        let threads = &self.world.threads;
        let found = self.enabled.as_slice().iter().find(|&&(t, choices)| {
            let thread = &threads[t];
            let expected = choice.kind == Kind::NONE || choice.kind == thread.pending.kind;
            thread.uid == choice.uid && expected && choice.value < choices
        });
        match found {
            Some(&(t, _)) => Some((t, choice.value)),
            None => {
                self.world.finish(End::MISMATCH, NONE, NONE, at as u32);
                None
            }
        }
    }

    fn next_by_policy(&mut self) -> Option<(Tid, u32)> {
        let chosen = match self.plan.policy {
            Policy::RANDOM | Policy::PCT | Policy::WALK | Policy::POS => self.draw(),
            Policy::SURW | Policy::RFF | Policy::NOVEL => self.draw(),
            policy => self.pick_stay().map(|pick| if policy == Policy::LIKELY { self.likely(pick) } else { pick }),
        };
        if chosen.is_none() {
            self.world.finish(End::SLEEP_BLOCKED, self.world.current, NONE, 0);
        }
        chosen
    }

    fn asleep(&self, t: Tid, value: u32) -> bool {
        self.sleep.len > 0 && self.sleep.as_slice().contains(&(t, value))
    }

    #[inline]
    fn first_awake(&self, t: Tid, choices: u32) -> Option<(Tid, u32)> {
        if self.sleep.len == 0 {
            return (choices > 0).then_some((t, 0));
        }
        (0..choices).find(|&v| !self.asleep(t, v)).map(|v| (t, v))
    }

    /// The thread that moved last, if it can; a thread that yields or sleeps lets others go first, in a circle, and those
    /// that have passed many operations (see `sharing`) come after all others.
    #[inline]
    fn pick_stay(&self) -> Option<(Tid, u32)> {
        if self.world.kills {
            if let Some(pick) = self.pick_killed() {
                return Some(pick);
            }
        }
        let last = self.world.current;
        let stay = self.enabled.as_slice().iter().find(|e| e.0 == last).filter(|_| !self.lets_others_go(last));
        match stay.and_then(|&(t, n)| self.first_awake(t, n)) {
            None => self.pick_other(last),
            pick => pick,
        }
    }

    /// Whom another has killed is over at once, as far as the policy is to decide.
    #[cold]
    #[inline(never)]
    fn pick_killed(&self) -> Option<(Tid, u32)> {
        let dies = |e: &&(Tid, u32)| {
            self.world.procs[self.world.threads[e.0].pid].dying != 0 && self.world.signal_ways(e.0) != 0
        };
        let first = self.enabled.as_slice().iter().find(dies).filter(|e| !self.asleep(e.0, e.1 - 1));
        first.map(|&(t, choices)| (t, choices - 1))
    }

    /// Time passes when nothing else goes on, as far as the policy is to decide.
    #[inline]
    fn lets_others_go(&self, t: Tid) -> bool {
        let thread = &self.world.threads[t];
        // A wait for events whose time has come is a loop's, which would go round for ever while others give way.
        let timed = || self.world.may_time_out(&thread.pending) && thread.pending.kind.row().channels.any();
        thread.long_run
            || self.world.gives_way(t)
            || thread.pending.kind == Kind::SLEEP
            || timed()
            || self.world.gives_up_at(t) > 0
    }

    /// The next thread, where the one that moved last does not go on.
    #[inline(never)]
    fn pick_other(&self, last: Tid) -> Option<(Tid, u32)> {
        let enabled = self.enabled.as_slice();
        let lets_go = self.world.threads.get(last).is_some_and(|thread| thread.alive()) && self.lets_others_go(last);
        let first = if lets_go { last + 1 } else { 0 };
        let (before, behind) = enabled.split_at(enabled.partition_point(|e| e.0 < first));
        let awake = behind.iter().chain(before).filter_map(|&(t, n)| self.first_awake(t, n));
        let rank = |t: Tid| {
            let thread = &self.world.threads[t];
            // What goes on for long is not left standing while time passes, but for one that may wait for that.
            (thread.long_run && thread.long_runs == LONG_RUNS, self.world.gives_up_at(t), thread.long_run)
        };
        let mut best = None;
        for pick in awake {
            let rank = rank(pick.0);
            if rank == (false, 0, false) {
                // Nothing comes before it.
                return Some(pick);
            }
            if best.is_none_or(|(least, _)| rank < least) {
                best = Some((rank, pick));
            }
        }
        best.map(|(_, pick)| pick)
    }

    /// [`Policy::LIKELY`]: the other way for a signal to come, where there are these two only.
    fn likely(&self, (t, value): (Tid, u32)) -> (Tid, u32) {
        if !self.world.may_signal() {
            return (t, value);
        }
        let both = BEFORE | INTERRUPTS;
        let choices = self.enabled.as_slice().iter().find(|e| e.0 == t).map_or(0, |e| e.1);
        // With no more alternatives the call itself cannot go on.
        let waits = choices == 2 && self.world.signal_ways(t) & ALTERNATIVES == both;
        (t, if waits { 1 } else { value })
    }

    /// Within the step: both have room for records on the stack, and that of the program may be small.
    #[inline(always)]
    fn record(&mut self, t: Tid, value: u32) {
        self.follow(t, value);
        if self.plan.orders {
            self.note_orders(t);
        }
        if self.plan.policy == Policy::NOVEL {
            self.note_what_is_novel(t);
        }
        if self.plan.blind {
            self.unrecorded += 1;
            return;
        }
        let choices = self.enabled.as_slice().iter().find(|e| e.0 == t).map_or(1, |e| e.1);
        let seen_at = self.seen.len;
        if self.plan.record && self.taken >= self.plan.prefix_len.saturating_sub(self.plan.record_back) as u64 {
            self.record_pending();
        }
        let step = Step {
            act: self.world.act(t),
            value,
            choices,
            seen_at,
            n_seen: self.seen.len - seen_at,
            ..Step::default()
        };
        if self.steps.push(step).is_none() {
            self.unrecorded += 1;
        } else if self.plan.watches {
            let index = self.steps.len - 1;
            self.note_memory(Record { address: index.into(), thread: t, what: Record::STEP, ..Record::default() });
        }
    }

    /// Adds a step to the hash of the trace. Objects count by their numbers, which go by the order of creation.
    fn follow(&mut self, t: Tid, value: u32) {
        let thread = &self.world.threads[t];
        let op = &thread.pending;
        self.last = op.kind;
        let what = u64::from(op.obj) << 32 | u64::from(op.flags) << 8 | u64::from(op.kind.0);
        let how = u64::from(op.mask) << 32 | u64::from(value);
        // Each word with an odd factor of its own: this is done at every transition, so only the last product may depend
        // on the one before.
        let step = thread.uid.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ what.wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(13)
            ^ (op.arg as u64).wrapping_mul(0x94d0_49bb_1331_11eb).rotate_left(29)
            ^ how.wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(43);
        self.trail = (self.trail.rotate_left(23) ^ step).wrapping_add(1).wrapping_mul(0xff51_afd7_ed55_8ccd);
    }

    fn record_pending(&mut self) {
        let mut next = 0;
        for i in 0..self.world.live.len {
            let t = self.world.live[i];
            let mut choices = 0;
            if let Some(&(e, n)) = self.enabled.get(next) {
                if e == t {
                    choices = n;
                    next += 1;
                }
            }
            let asleep = u32::from(self.sleep.as_slice().iter().any(|s| s.0 == t));
            let seen = Seen { act: self.world.act(t), choices, asleep };
            if self.seen.push(seen).is_none() {
                self.world.finish(End::DEPTH, t, NONE, 1);
            }
        }
    }

    /// Takes out of the sleep set what depends on the move of `t` that is about to be made.
    fn wake_dependent(&mut self, t: Tid) {
        if self.sleep.len == 0 {
            return;
        }
        let moving = self.world.act(t);
        let (did, sleepers) =
            if self.plan.late_wake { (Effects::NONE, Effects::ENDS) } else { (Effects::ANY, Effects::ANY) };
        self.keep_asleep(|world, u| u != t && !dependent_after(&world.act(u), sleepers, &moving, did, true));
    }

    fn keep_asleep(&mut self, stays: impl Fn(&World, Tid) -> bool) {
        let mut kept = 0;
        for i in 0..self.sleep.len {
            let entry = self.sleep[i];
            // Of a saved search that was damaged a thread may not be there.
            if self.world.threads.contains(entry.0) && stays(&self.world, entry.0) {
                self.sleep[kept] = entry;
                kept += 1;
            }
        }
        self.sleep.len = kept;
    }
}

/// The output function of splitmix64.
pub(super) fn mixed(state: u64) -> u64 {
    let mut z = state.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
