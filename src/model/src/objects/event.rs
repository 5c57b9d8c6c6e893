//! Descriptors whose channel is not a stream: counters (eventfd), timers (timerfd), pending signals (signalfd).
//!
//! NOTE [Timers] A timer fires at any moment for who waits for it or looks at it: how many have is an alternative of the look, see
//! `World::early_timers`. It has fired for a thread that has waited for so long by its own waits, and once it was found so for all. When
//! nothing else can move, virtual time jumps to it; with urgent timeouts it fires only then. Nothing is done at that moment but to
//! tell the epoll instances that watch it; that it has fired is read off the clock. An operation that goes on because of that has
//! [`TIMED_OUT`](crate::depend::TIMED_OUT) in its fate then, so that it depends on everything, like one that gives up at its deadline.

use super::row::Channels;
use crate::base::{Op, Pid, Tid, NONE};
use crate::state::{
    poll, Applied, ChanId, ChanKind, Channel, Desc, DescId, DescKind, ProcState, SigInfo, World, TICKS,
};

/// Largest value of a counter; one more is what a read would never see (fs/eventfd.c).
pub const COUNTER_MAX: u64 = u64::MAX - 1;
/// EFD_SEMAPHORE, in [`Channel::period`] of a counter: a read takes one.
pub const SEMAPHORE: u64 = 1;

impl Channel {
    /// True for what this file is about.
    pub(crate) fn is_event(&self) -> bool {
        matches!(
            self.kind,
            ChanKind::COUNTER | ChanKind::TIMER | ChanKind::SIGNALS | ChanKind::EPOLL | ChanKind::PROCESS
        )
    }

    /// Room for `n` more on a counter.
    pub(crate) fn counter_takes(&self, n: u64) -> bool {
        COUNTER_MAX - self.value >= n
    }
}

impl World {
    /// A timer that has fired and has not been read since.
    fn timer_due(&self, channel: &Channel) -> bool {
        channel.value != 0 && (channel.value <= self.fired || channel.finished)
    }

    /// True if a read of an event descriptor by `t` gets something. A timer that has not fired may do so for one who waits
    /// for it, where timeouts fire at any time.
    pub(crate) fn event_readable(&self, t: Tid, channel: &Channel, op: &Op) -> bool {
        match channel.kind {
            ChanKind::COUNTER => channel.value > 0,
            ChanKind::TIMER => {
                let early = channel.value <= self.time_of(t) || self.ticks_freely(t) && !op.tries();
                self.timer_due(channel) || channel.value != 0 && early
            }
            ChanKind::SIGNALS => {
                let early = |at| at <= self.time_of(t) || self.ticks_freely(t) && !op.tries();
                self.pending_of(t) & channel.value != 0 || self.signal_timer_at(t, channel.value).is_some_and(early)
            }
            ChanKind::PROCESS => self.is_over(channel),
            _ => true,
        }
    }

    /// Signals pending for `t` or its process.
    fn pending_of(&self, t: Tid) -> u64 {
        let thread = &self.threads[t];
        thread.sigpending | self.procs[thread.pid].sigpending
    }

    /// Gives 8, the number that is read in `Thread::out[0]`; a signal descriptor has only been found ready. `tries`: it would not have waited.
    ///
    /// `more`: so many times after the first at which a timer fires have passed as well.
    pub(crate) fn event_read(&mut self, t: Tid, id: ChanId, tries: bool, more: u32) -> Applied {
        let before = self.time_of(t);
        let Channel { kind, value, .. } = self.channels[id];
        if kind == ChanKind::TIMER && !self.timer_due(&self.channels[id]) {
            self.ticks_apart |= tries && self.is_passed(t, &self.channels[id]);
            self.passes_until(t, value);
            if self.channels[id].setter == t {
                // Others for the same time may have been set later.
                self.threads[t].waited = self.threads[t].waited.max(value.saturating_sub(1));
            }
        }
        if kind == ChanKind::SIGNALS && more > 0 {
            self.fire_further(t, value, more);
        } else if kind == ChanKind::SIGNALS && self.pending_of(t) & value == 0 {
            if let Some(at) = self.signal_timer_at(t, value) {
                self.passes_until(t, at);
                // Not the timer of a descriptor that fires at the same time.
                self.fire_at(t, at);
            }
        }
        // There might have been still more.
        let periodic = kind == ChanKind::TIMER && self.channels[id].period != 0;
        self.ticks_held |= periodic && self.timeouts_any && more >= self.most_expiries(t);
        let fired = match more {
            _ if kind != ChanKind::TIMER => before,
            0 => before,
            _ => self.periods_pass(t, id, before, more),
        };
        let channel = &mut self.channels[id];
        let got = match channel.kind {
            ChanKind::COUNTER => {
                let got = if channel.period & SEMAPHORE != 0 { 1 } else { channel.value };
                channel.value -= got;
                got
            }
            ChanKind::TIMER => {
                let late = fired.saturating_sub(channel.value);
                let got = late.checked_div(channel.period).map_or(1, |more| 1 + more);
                let next = channel.value.saturating_add(got.saturating_mul(channel.period));
                channel.value = if channel.period == 0 { 0 } else { next };
                channel.finished = false;
                got
            }
            _ => 0,
        };
        channel.charge = self.last_place;
        let counter = channel.kind == ChanKind::COUNTER;
        self.threads[t].out[0] = got as i64;
        if counter {
            self.woke(id, poll::OUT);
        }
        Applied::Done(8)
    }

    /// How often the timer that is read may have expired again by now, each at a moment of its own: as many alternatives of the read,
    /// whether the first has been noticed or not.
    pub(crate) fn further_expiries(&self, t: Tid, op: &Op) -> u32 {
        let channel = self.channel_of(op.obj).map(|id| &self.channels[id]);
        match channel {
            Some(c) if c.kind == ChanKind::TIMER && c.period != 0 && c.value != 0 => self.most_expiries(t),
            Some(c) if c.kind == ChanKind::SIGNALS => self.further_signals(t, c.value),
            _ => 0,
        }
    }

    /// So many more periods of a timer pass at most for `t`.
    fn most_expiries(&self, t: Tid) -> u32 {
        match self.ticks_freely(t) {
            true => u32::from(TICKS - self.threads[t].ticks) - 1,
            false => 0,
        }
    }

    /// `more` periods of timer `id` have passed after the last expiry that `t` can know of at `time`; gives when that is.
    fn periods_pass(&mut self, t: Tid, id: ChanId, time: u64, more: u32) -> u64 {
        let Channel { value, period, .. } = self.channels[id];
        let late = time.saturating_sub(value).checked_div(period).unwrap_or(0);
        let last = value.saturating_add((late + u64::from(more)).saturating_mul(period));
        for n in 1..=more {
            self.passes_until(t, last - u64::from(more - n) * period);
        }
        last
    }

    /// Adds `n` to a counter.
    pub(crate) fn counter_add(&mut self, id: ChanId, n: u64) -> Applied {
        self.channels[id].value += n;
        self.woke(id, poll::IN);
        Applied::Done(8)
    }

    /// The POLL* bits of a counter, a timer or a signal descriptor, for thread `t`.
    pub(crate) fn event_readiness(&self, t: Tid, desc: &Desc) -> u16 {
        let Some(channel) = self.channels.get(desc.input) else { return 0 };
        let input = |ready: bool| if ready { poll::IN } else { 0 };
        match channel.kind {
            ChanKind::COUNTER => input(channel.value > 0) | if channel.value < COUNTER_MAX { poll::OUT } else { 0 },
            ChanKind::TIMER => input(self.timer_due(channel)),
            ChanKind::SIGNALS => input(self.pending_of(t) & channel.value != 0),
            // POLLHUP of those that have been waited for is of kernels from 6.9 on.
            ChanKind::PROCESS if self.is_over(channel) => poll::IN | poll::RDNORM,
            _ => 0,
        }
    }

    /// A description of a timer (timerfd).
    pub(crate) fn is_timer(&self, desc: DescId) -> bool {
        self.descs.get(desc).is_some_and(|d| d.kind == DescKind::TIMER)
    }

    /// When an armed timer fires; one that has: no later than now.
    fn fires_at(&self, channel: &Channel) -> u64 {
        if channel.finished {
            channel.value.min(self.fired)
        } else {
            channel.value
        }
    }

    /// Calls `each` with the times at which the timers fire that description `desc` is about, or the descriptions that it
    /// watches, where `events` of it are of interest.
    fn timers_of(&self, t: Tid, desc: DescId, events: u32, each: &mut dyn FnMut(u64)) {
        let Some(d) = self.descs.get(desc).filter(|_| events & u32::from(poll::IN | poll::RDNORM) != 0) else { return };
        match (d.kind, self.channels.get(d.input)) {
            (DescKind::TIMER, Some(channel)) if channel.value != 0 => each(self.fires_at(channel)),
            (DescKind::SIGNAL, Some(channel)) => self.signal_times(t, channel.value, each),
            (DescKind::EPOLL, _) => self.timers_watched(t, d.input, each),
            _ => {}
        }
    }

    /// Pending signals that a timer has sent, which no operation did.
    fn come_by_clock(&self, t: Tid) -> u64 {
        self.procs[self.threads[t].pid].by_clock & self.pending_of(t)
    }

    /// Calls `each` with the times at which timers send `t` signals of the set `set`, which a descriptor shows, whether they are blocked or
    /// not: it is asked before a handler runs.
    fn signal_times(&self, t: Tid, set: u64, each: &mut dyn FnMut(u64)) {
        if self.come_by_clock(t) & set != 0 {
            each(self.fired);
        }
        self.signal_timers(t, set, each);
    }

    /// The first time at which a timer sends `t` one of the signals `set`.
    pub(crate) fn signal_timer_at(&self, t: Tid, set: u64) -> Option<u64> {
        let mut first = None;
        self.signal_timers(t, set, &mut |at| first = Some(first.map_or(at, |f: u64| f.min(at))));
        first
    }

    fn timers_watched(&self, t: Tid, epoll: ChanId, each: &mut dyn FnMut(u64)) {
        for watch in self.watches.as_slice().iter().filter(|w| w.epoll == epoll) {
            self.timers_of(t, watch.desc, watch.events, each);
        }
    }

    /// The same for the timers that the operation of `t` waits for.
    fn timers_awaited(&self, t: Tid, op: &Op, each: &mut dyn FnMut(u64)) {
        match op.kind.row().channels {
            _ if self.n_timers == 0 && self.timers.len == 0 => {}
            Channels::Polls => {
                self.polled(t).iter().for_each(|p| self.timers_of(t, p.desc, p.events.into(), each));
            }
            Channels::Reads | Channels::Waits => match self.channel_of(op.obj) {
                Some(id) if self.channels[id].kind == ChanKind::EPOLL => self.timers_watched(t, id, each),
                Some(id) if self.channels[id].kind == ChanKind::TIMER && self.channels[id].value != 0 => {
                    each(self.fires_at(&self.channels[id]));
                }
                Some(id) if self.channels[id].kind == ChanKind::SIGNALS => {
                    self.signal_times(t, self.channels[id].value, each);
                }
                _ => {}
            },
            _ => {}
        }
    }

    /// When the first timer fires after `time` of those that the operation of `t` waits for.
    fn awaited_timer_after(&self, t: Tid, op: &Op, time: u64) -> Option<u64> {
        let mut first = None;
        self.timers_awaited(t, op, &mut |at| {
            if at > time {
                first = Some(first.map_or(at, |f: u64| f.min(at)));
            }
        });
        first
    }

    /// When the first timer fires that the operation of `t` waits for.
    pub(crate) fn next_awaited_timer(&self, t: Tid, op: &Op) -> Option<u64> {
        self.awaited_timer_after(t, op, self.fired)
    }

    /// True if a timer that the operation of `t` waits for has fired, or may at any time.
    pub(crate) fn goes_by_timer(&self, t: Tid, op: &Op) -> bool {
        let mut goes = false;
        let (time, freely) = (self.time_of(t), self.ticks_freely(t) && !op.tries());
        self.timers_awaited(t, op, &mut |at| goes |= at <= time || freely);
        goes
    }

    /// A timer that the operation of `t` waits for has fired in the time that `t` has waited.
    pub(crate) fn timer_is_due(&self, t: Tid, op: &Op) -> bool {
        self.has_timers() && self.next_awaited_timer(t, op).is_some_and(|at| at <= self.time_of(t))
    }

    /// How many times there are at which timers fire that the operation of `t` waits for, each at a moment of its own before the
    /// operation gives up: so many may have fired when it looks.
    pub(crate) fn early_timers(&self, t: Tid, op: &Op) -> u32 {
        if !self.has_timers() || !self.ticks_freely(t) {
            return 0;
        }
        let (mut n, mut time) = (0, self.time_of(t));
        let limit = u32::from(TICKS - self.threads[t].ticks);
        while let Some(at) = self.awaited_timer_after(t, op, time).filter(|_| n < limit) {
            if op.has(crate::base::op::TIMED) && at > op.deadline {
                break;
            }
            (n, time) = (n + 1, at);
        }
        n
    }

    /// The timer that `op` of `t` reads has not fired, and may at any moment.
    pub(crate) fn timer_may_fire(&self, t: Tid, op: &Op) -> bool {
        let timer = |id: &ChanId| match self.channels[*id].kind {
            ChanKind::TIMER => !self.timer_due(&self.channels[*id]),
            ChanKind::SIGNALS => self.pending_of(t) & self.channels[*id].value == 0,
            _ => false,
        };
        self.has_timers() && self.channel_of(op.obj).is_some_and(|id| timer(&id)) && self.early_timers(t, op) > 0
    }

    /// All that the operation of `t` could do now is to see a timer that fires at a moment of its own.
    pub(crate) fn only_ticks(&self, t: Tid, op: &Op) -> bool {
        if self.early_timers(t, op) == 0 || self.timer_is_due(t, op) {
            return false;
        }
        match (op.kind.row().channels, self.channel_of(op.obj)) {
            (Channels::Polls, _) => !self.poll_goes_on(t, op),
            (Channels::Waits, Some(epoll)) => !self.epoll_goes_on(t, op, epoll),
            (Channels::Reads, Some(_)) => !op.tries() && self.timer_may_fire(t, op),
            _ => false,
        }
    }

    /// The time at which the pending operation of `t` stops waiting: its own deadline, or that of a timer it waits for.
    pub fn deadline_of(&self, t: Tid) -> Option<u64> {
        let thread = &self.threads[t];
        let op = &thread.pending;
        // A condition wait that may time out but whose mutex is taken waits for the mutex, not for the clock.
        let own = (op.has(crate::base::op::TIMED) && !thread.woken).then_some(op.deadline);
        let timer = self.next_awaited_timer(t, op);
        own.into_iter().chain(timer).filter(|&at| at > self.fired).min()
    }

    /// Virtual time goes on to `deadline`: timers that fire until then are noted by who watches them, in their order.
    pub fn jump_to(&mut self, deadline: u64) {
        let before = self.fired;
        self.fired = self.fired.max(deadline);
        self.now = self.now.max(deadline);
        let mut last = (before, NONE);
        while self.n_timers > 0 {
            let timers = self.channels.as_slice().iter().zip(0..).filter(|(c, _)| c.obj != NONE);
            let due =
                timers.filter(|(c, _)| c.kind == ChanKind::TIMER && !c.finished && c.value != 0 && c.value <= deadline);
            let key = |(c, id): (&Channel, ChanId)| (c.value, c.maker, c.number, id);
            // Timers that fire at the same time do so in the order of their names.
            let after = |k: &(u64, crate::base::ids::Uid, u32, ChanId)| match last.1 {
                NONE => k.0 > last.0,
                id => (k.0, k.1, k.2) > (last.0, self.channels[id].maker, self.channels[id].number),
            };
            let Some((at, _, _, id)) = due.map(key).filter(after).min() else { return };
            last = (at, id);
            self.woke(id, poll::IN);
        }
    }

    /// Where timeouts fire at any time: those of the first `n` times that `t` waits for.
    pub(crate) fn fire_early(&mut self, t: Tid, op: &Op, n: u32) {
        for _ in 0..n {
            let Some(first) = self.awaited_timer_after(t, op, self.time_of(t)) else { return };
            self.passes_until(t, first);
            self.fire_due(t, op);
        }
    }

    /// A timer that fires at `time` has fired for `t` at a moment of its own.
    fn passes_until(&mut self, t: Tid, time: u64) {
        let ahead = time.saturating_sub(self.time_of(t));
        self.now += ahead;
        if ahead > 0 {
            self.ticks(t, time);
        }
    }

    /// Timers fire that `op` of `t` waits for and that were to fire in the time that `t` has waited. How long others have waited is
    /// nothing to it: of waits whose order nobody can tell neither is the first.
    pub(crate) fn fire_due(&mut self, t: Tid, op: &Op) {
        while self.has_timers() {
            let due = self.next_awaited_timer(t, op).filter(|&at| at <= self.time_of(t));
            if !due.is_some_and(|at| self.fire_awaited(t, at)) {
                return;
            }
        }
    }

    /// The timer that was to fire at `first` has fired, for all to see: one of a descriptor, or one that sends the process of `t` a signal.
    fn fire_awaited(&mut self, t: Tid, first: u64) -> bool {
        let same = |c: &Channel| c.obj != NONE && c.kind == ChanKind::TIMER && !c.finished && c.value == first;
        let Some(id) = self.channels.as_slice().iter().position(same) else { return self.fire_at(t, first) };
        self.channels[id as u32].finished = true;
        self.woke(id as u32, poll::IN);
        true
    }

    /// A timer counts as expired since `t` has waited for as long, though another thread set it, which may have come later; or though what `t`
    /// has waited for is a timer that counts from an earlier moment.
    fn is_passed(&self, t: Tid, channel: &Channel) -> bool {
        let is_set = channel.obj != NONE && channel.kind == ChanKind::TIMER && channel.value != 0;
        let certain = channel.setter == t && channel.value <= self.fired.max(self.threads[t].waited);
        is_set && !self.timer_due(channel) && channel.value <= self.time_of(t) && !certain
    }

    /// Notes the same of what the operation of `t` waits for.
    pub(crate) fn compare_timers(&mut self, t: Tid, op: &Op) {
        if self.n_timers == 0 {
            return;
        }
        let passed = |at: u64| self.channels.as_slice().iter().any(|c| c.value == at && self.is_passed(t, c));
        let mut apart = false;
        self.timers_awaited(t, op, &mut |at| apart |= passed(at));
        self.ticks_apart |= apart;
    }

    /// A timer that `t` waits for, or whose signal it could take, may fire only when nothing else can run any more.
    pub(crate) fn holds_ticks(&self, t: Tid) -> bool {
        if !self.timeouts_any || self.ticks_freely(t) {
            return false;
        }
        let op = &self.threads[t].pending;
        self.timers.len > 0 && self.next_timer().is_some() || self.next_awaited_timer(t, op).is_some()
    }

    /// The earliest time that somebody waits for.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        let live = self.live.as_slice();
        // Asked at each transition of programs that yield.
        if !self.has_timers() && !live.iter().any(|&t| self.threads[t].pending.has(crate::base::op::TIMED)) {
            return None;
        }
        let waits = live.iter().filter_map(|&t| self.deadline_of(t));
        waits.chain(self.next_timer()).min()
    }

    /// Arms timer `id` to fire at virtual time `at` (0: disarms it), then every `period` ns; gives when it would have fired
    /// and its period before.
    pub fn timer_set(&mut self, id: ChanId, at: u64, period: u64) -> (u64, u64) {
        let channel = &mut self.channels[id];
        let before = (channel.value, channel.period);
        (channel.value, channel.period, channel.finished) = (at, period, false);
        (channel.charge, channel.setter) = (self.last_place, self.current);
        if at != 0 && at <= self.fired {
            self.woke(id, poll::IN);
        }
        before
    }

    /// Takes the signal that a read by `t` of a descriptor for the signals `mask` gets: those of the thread come first, low
    /// numbers before high ones.
    pub fn signal_taken(&mut self, t: Tid, mask: u64) -> Option<SigInfo> {
        let ready = self.pending_of(t) & mask;
        self.take(t, ready).then(|| self.threads[t].taken)
    }
}

impl World {
    /// A new counter (eventfd) begins with `first`; `semaphore`: a read takes one.
    pub fn counter_begin(&mut self, id: ChanId, first: u64, semaphore: bool) {
        self.channels[id].value = first;
        self.channels[id].period = if semaphore { SEMAPHORE } else { 0 };
    }

    /// The signals that a signal descriptor is for.
    pub fn process_watched(&mut self, id: ChanId, p: Pid) {
        self.channels[id].value = p.into();
        self.procs[p].has_pidfd = true;
    }

    /// Process `p` has a descriptor, or is to have one: when it ends can be told.
    pub fn tells_its_end(&mut self, p: Pid) {
        self.procs[p].has_pidfd = true;
    }

    /// The process of a descriptor's channel is over.
    fn is_over(&self, channel: &Channel) -> bool {
        self.procs.get(channel.value as Pid).is_none_or(|p| p.state != ProcState::LIVE)
    }

    /// Process `p` is over: those who watch it by descriptors are told.
    pub(crate) fn process_over(&mut self, p: Pid) {
        for id in 0..self.channels.len {
            let channel = &self.channels[id];
            if channel.obj != NONE && channel.kind == ChanKind::PROCESS && channel.value == u64::from(p) {
                self.woke(id, poll::IN | poll::RDNORM);
            }
        }
    }

    /// Sets the signals of a signal descriptor.
    pub fn signals_set(&mut self, id: ChanId, mask: u64) {
        self.channels[id].value = mask;
    }
}
