//! Who moves next where lots decide it: the policies of searches that sample schedules.

use crate::arena::{Arena, Policy};
use crate::base::aims::{paired, Event, Pair};
use crate::base::{ObjId, Op, Tid, NONE};
use crate::relation::depend::dependent_after;
use crate::sched::sharing::name_of;
use crate::sched::step::mixed;
use crate::state::{Effects, Thread};

impl Arena {
    /// By the policy, which is one of these; some turn fair after a while.
    #[inline(never)]
    pub(super) fn draw(&mut self) -> Option<(Tid, u32)> {
        let turns_fair = matches!(self.plan.policy, Policy::PCT | Policy::SURW | Policy::RFF | Policy::NOVEL);
        if turns_fair && self.taken >= self.plan.pct_fair {
            return self.pick_random();
        }
        match self.plan.policy {
            Policy::SURW => self.pick_surw(),
            Policy::RFF => self.pick_rff(),
            Policy::PCT => self.pick_pct(),
            Policy::WALK => self.pick_by_rest(),
            Policy::POS | Policy::NOVEL => self.pick_pos(),
            _ => self.pick_random(),
        }
    }

    fn pick_random(&mut self) -> Option<(Tid, u32)> {
        let drawn = self.next_random();
        let enabled = self.enabled.as_slice();
        let long_run = |e: &(Tid, u32)| self.world.threads[e.0].long_run;
        let all = enabled.iter().all(|e| long_run(e) || self.world.gives_up_at(e.0) > 0);
        let ways = |e: &(Tid, u32)| if all || !long_run(e) { u64::from(e.1) } else { 0 };
        let mut n = drawn % enabled.iter().map(ways).sum::<u64>().max(1);
        for e in enabled {
            if n < ways(e) {
                return Some((e.0, n as u32));
            }
            n -= ways(e);
        }
        None
    }

    /// Any thread, in proportion to what it has left; any of its alternatives.
    fn pick_by_rest(&mut self) -> Option<(Tid, u32)> {
        let known = self.expected.as_slice();
        let sum: u64 = known.iter().map(|e| u64::from(e.1)).sum();
        let average = sum.div_ceil(known.len().max(1) as u64);
        let total: u64 = self.enabled.as_slice().iter().map(|e| self.rest(e.0, average)).sum();
        let mut n = self.next_random() % total.max(1);
        for i in 0..self.enabled.len {
            let (t, choices) = self.enabled[i];
            let rest = self.rest(t, average);
            if n < rest {
                let value = if choices > 1 { self.next_random() % u64::from(choices) } else { 0 };
                return Some((t, value as u32));
            }
            n -= rest;
        }
        None
    }

    /// Transitions that a thread is expected to have left, at least this one.
    fn rest(&self, t: Tid, average: u64) -> u64 {
        let (thread, known) = (&self.world.threads[t], self.expected.as_slice());
        let all = known.binary_search_by_key(&thread.uid, |e| e.0).map_or(average, |i| u64::from(known[i].1));
        all.saturating_sub(u64::from(thread.transitions)).max(1)
    }

    /// The enabled thread of highest priority, after lowering it if this step is one of the changes.
    fn pick_pct(&mut self) -> Option<(Tid, u32)> {
        let mut best = self.highest()?;
        for i in 1..self.plan.pct_depth {
            let at = mixed(self.plan.seed.wrapping_add(u64::from(i))) % u64::from(self.plan.pct_length.max(1));
            if at == self.taken {
                self.world.threads[best.0].priority = i;
                best = self.highest()?;
            }
        }
        let value = self.next_random() % u64::from(best.1.max(1));
        Some((best.0, value as u32))
    }

    /// The enabled operation of highest priority. Those that depend on it are drawn again, as is what its thread does next.
    fn pick_pos(&mut self) -> Option<(Tid, u32)> {
        self.pick_pos_of(|_, _| false)
    }

    /// The same of those operations that are not held back, if there are any.
    fn pick_pos_of(&mut self, held_back: impl Fn(&Arena, Tid) -> bool) -> Option<(Tid, u32)> {
        for i in 0..self.enabled.len {
            let t = self.enabled[i].0;
            if self.world.threads[t].priority == 0 {
                self.world.threads[t].priority = (self.next_random() >> 32) as u32 | 1;
            }
        }
        let threads = &self.world.threads;
        let key = |t: Tid| (!held_back(self, t), !threads[t].long_run, threads[t].priority, core::cmp::Reverse(t));
        let (best, choices) = self.enabled.as_slice().iter().copied().max_by_key(|e| key(e.0))?;
        let moving = self.world.act(best);
        for i in 0..self.world.live.len {
            let t = self.world.live[i];
            let waits = t != best && self.world.threads[t].priority != 0;
            if waits && dependent_after(&self.world.act(t), Effects::NONE, &moving, Effects::NONE, true) {
                self.world.threads[t].priority = 0;
            }
        }
        self.world.threads[best].priority = 0;
        let value = self.next_random() % u64::from(choices.max(1));
        Some((best, value as u32))
    }

    /// Selectively uniform random walk: operations of interest come in an order in which each interleaving of them is about equally likely, by the
    /// numbers of them that threads have left; all others are drawn.
    fn pick_surw(&mut self) -> Option<(Tid, u32)> {
        if self.aims.intended == NONE {
            self.intend();
        }
        let picked = match self.pick_unless_held(true) {
            // Whoever is to come first cannot.
            None => self.pick_unless_held(false),
            picked => picked,
        };
        let (t, _) = picked?;
        let op = self.world.threads[t].pending;
        if self.is_of_interest(&op) {
            self.made_one(t);
            self.aims.intended = NONE;
        }
        self.note_uses(t, &op);
        picked
    }

    /// Any enabled alternative; `holds`: but of operations of interest those of others than the one that is to come first.
    fn pick_unless_held(&mut self, holds: bool) -> Option<(Tid, u32)> {
        let drawn = self.next_random();
        let ways = |&(t, n): &(Tid, u32)| {
            let held = holds && t != self.aims.intended && self.is_of_interest(&self.world.threads[t].pending);
            if held {
                0
            } else {
                u64::from(n)
            }
        };
        let enabled = self.enabled.as_slice();
        let others = enabled.iter().any(|e| !self.world.threads[e.0].long_run && ways(e) > 0);
        let ways = |e: &(Tid, u32)| if others && self.world.threads[e.0].long_run { 0 } else { ways(e) };
        let mut n = drawn % enabled.iter().map(ways).sum::<u64>().max(1);
        for e in enabled {
            if n < ways(e) {
                return Some((e.0, n as u32 % e.1));
            }
            n -= ways(e);
        }
        None
    }

    fn is_of_interest(&self, op: &Op) -> bool {
        let interest = self.aims.interest.as_slice();
        let of = |&o: &ObjId| {
            let object = self.world.objects.get(o);
            object.is_some_and(|object| interest.binary_search(&name_of(object.key)).is_ok())
        };
        !interest.is_empty() && op.operands().iter().any(of)
    }

    /// Draws who is to make the next operation of interest, in proportion to what each has left of them; what threads have to make that are not
    /// there yet counts for those by which they come.
    fn intend(&mut self) {
        self.find_expected();
        let all: u64 = self.expected.as_slice().iter().map(|e| u64::from(e.1)).sum();
        if all == 0 {
            return;
        }
        let mut n = self.next_random() % all;
        for i in 0..self.expected.len {
            let left = u64::from(self.expected[i].1);
            if n < left {
                self.aims.intended = self.by_whom(i);
                return;
            }
            n -= left;
        }
    }

    /// Notes which of the threads that are expected are there by now.
    fn find_expected(&mut self) {
        for t in self.aims.met..self.world.threads.len {
            let uid = self.world.threads[t].uid;
            if let Ok(i) = self.expected.as_slice().binary_search_by_key(&uid, |e| e.0) {
                self.aims.there[i] = t + 1;
            }
        }
        self.aims.met = self.world.threads.len;
    }

    /// The thread by which the operations of entry `i` of those expected come.
    fn by_whom(&self, i: u32) -> Tid {
        let expected = self.expected.as_slice();
        let mut uid = expected[i as usize].0;
        loop {
            match expected.binary_search_by_key(&uid, |e| e.0) {
                Ok(at) if self.aims.there[at] != 0 => return self.aims.there[at] - 1,
                _ => {}
            }
            match uid.parent() {
                Some(parent) => uid = parent,
                None => return NONE,
            }
        }
    }

    /// Thread `t` makes an operation of interest.
    fn made_one(&mut self, t: Tid) {
        let uid = self.world.threads[t].uid;
        if let Ok(i) = self.expected.as_slice().binary_search_by_key(&uid, |e| e.0) {
            let left = &mut self.expected.as_mut_slice()[i].1;
            *left = left.saturating_sub(1);
        }
    }

    fn note_uses(&mut self, t: Tid, op: &Op) {
        let uid = self.world.threads[t].uid;
        for o in op.operands() {
            if let Some(object) = self.world.objects.get(o) {
                self.aims.note_use(uid, name_of(object.key));
            }
        }
    }

    /// Partial order sampling among the operations that the wishes do not hold back.
    fn pick_rff(&mut self) -> Option<(Tid, u32)> {
        let picked = self.pick_pos_of(|arena, t| arena.is_held_back(t))?;
        self.note_events(picked.0);
        Some(picked)
    }

    fn is_held_back(&self, t: Tid) -> bool {
        if self.aims.wishes.len == 0 {
            return false;
        }
        let op = &self.world.threads[t].pending;
        op.operands().iter().any(|&o| {
            let Some(event) = self.event(t, op, o) else { return false };
            self.aims.wishes.as_slice().iter().any(|wish| wish.holds_back(&event))
        })
    }

    /// What thread `t` does to object `o` with `op`.
    fn event(&self, t: Tid, op: &Op, o: ObjId) -> Option<Event> {
        let object = self.world.objects.get(o)?;
        let fiber = &self.world.threads[t].fiber;
        let place = if op.kind.uses_memory() { fiber.place } else { 0 };
        let writes = !op.kind.uses_memory() || op.writes_memory();
        Some(Event::new(name_of(object.key), (op.kind.0, writes), place, fiber.start))
    }

    fn note_events(&mut self, t: Tid) {
        let op = self.world.threads[t].pending;
        for o in op.operands() {
            let Some(event) = self.event(t, &op, o) else { continue };
            for i in 0..self.aims.wishes.len {
                self.aims.wishes[i].follow(&event);
            }
            let writer = self.aims.last_write(event.object);
            self.aims.note_pair(Pair {
                object: event.object,
                writer,
                event: event.id,
                writes: event.writes.into(),
                at: 0,
            });
            if event.writes {
                self.aims.set_last_write(event.object, event.id);
            }
        }
    }

    /// Thread `t` makes a transition: what it comes after.
    #[cold]
    #[inline(never)]
    pub(super) fn note_what_is_novel(&mut self, t: Tid) {
        let Thread { pending: op, uid, .. } = self.world.threads[t];
        for (nth, o) in op.operands().into_iter().enumerate() {
            let Some(event) = self.event(t, &op, o) else { continue };
            let Event { object, id, writes, .. } = self.aims.once_more(event.of(uid));
            // Variables that share a word are apart.
            let object = if op.kind.uses_memory() { paired(object, u64::from(op.bytes()[nth.min(1)])) } else { object };
            let writer = self.aims.last_write(object);
            let at = self.taken.min(u64::from(u32::MAX)) as u32;
            self.aims.note_pair(Pair { object, writer, event: id, writes: writes.into(), at });
            if writes {
                self.aims.set_last_write(object, id);
            }
        }
    }

    fn highest(&self) -> Option<(Tid, u32)> {
        let born = |t: Tid| mixed(self.plan.seed ^ self.world.threads[t].uid.0) | 1 << 63;
        let priority = |t: Tid| match self.world.threads[t].priority {
            0 => born(t),
            lowered => u64::from(lowered),
        };
        let key = |t: Tid| (!self.world.threads[t].long_run, priority(t), core::cmp::Reverse(t));
        self.enabled.as_slice().iter().copied().max_by_key(|e| key(e.0))
    }

    /// splitmix64.
    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.random)
    }
}
