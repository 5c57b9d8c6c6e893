//! Timers that send signals: alarm, setitimer and POSIX timers, on the virtual clock. A timer fires when the clock jumps to
//! its deadline, because nothing else can run; with `timeouts_any` at any time, when its signal is taken.

use super::row::*;
use crate::state::{bit, Disposal, ProcState, SigInfo, Timer, World, CPU_TIMER, ITIMER, ITIMER_VIRTUAL, TICKS};

kinds! {
    /// Arm, disarm or delete a timer of a process that has had several threads.
    TIMER = 99, "timer" {
        operands: Operands::Process, enabled: Enabled::Always, perform: DONE,
        records: Records::NOTHING, cells: WIDE, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::ExposesProcess, idle: Idle::BUSY, tells: YES, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(Call::Row, NO_ARGUMENTS),
    }
}

const SI_TIMER: i32 = -2;
const SI_KERNEL: i32 = 128;
const SIGALRM: i32 = 14;
const SIGVTALRM: i32 = 26;
const SIGPROF: i32 = 27;

/// When a timer fires: its deadline, and of those with one deadline who was set first.
pub(super) type Moment = (u64, u32);

/// Before all timers.
pub(super) const FIRST: Moment = (0, 0);
/// After all timers.
pub(super) const LAST: Moment = (u64::MAX, u32::MAX);

fn moment(timer: &Timer) -> Moment {
    (timer.deadline, timer.order)
}

impl World {
    /// The timer `id` of process `p`.
    pub fn timer(&self, p: Pid, id: i32) -> Option<u32> {
        self.timers.as_slice().iter().position(|t| t.pid == p && t.id == id).map(|at| at as u32)
    }

    /// A new timer. `None`: the table is full.
    pub fn timer_make(&mut self, p: Pid, tid: Tid, id: i32, signal: i32, value: u64) -> Option<u32> {
        let new = Timer { pid: p, tid, id, signal, value, ..Timer::default() };
        match self.timers.as_slice().iter().position(|t| t.pid == NONE) {
            Some(free) => {
                self.timers[free as u32] = new;
                Some(free as u32)
            }
            None => self.timers.push(new),
        }
    }

    /// The interval timer `id` of process `p`, made if need be. `None`: the table is full.
    pub fn itimer(&mut self, p: Pid, id: i32) -> Option<u32> {
        let signal = match id {
            ITIMER => SIGALRM,
            ITIMER_VIRTUAL => SIGVTALRM,
            _ => SIGPROF,
        };
        if let Some(at) = self.timer(p, id) {
            return Some(at);
        }
        let at = self.timer_make(p, NONE, id, signal, 0)?;
        self.timers[at].processor = id != ITIMER;
        Some(at)
    }

    /// Deletes a timer. A signal of it that is pending stays so.
    pub fn timer_delete(&mut self, at: u32) {
        self.changes_armed(at);
        self.timers[at] = Timer { pid: NONE, ..Timer::default() };
        for queued in self.signals.as_mut_slice().iter_mut().filter(|q| q.timer == at + 1) {
            queued.timer = 0;
        }
    }

    /// Deletes timers of process `p`.
    pub(crate) fn drop_timers(&mut self, p: Pid, which: impl Fn(&Timer) -> bool) {
        for timer in self.timers.as_mut_slice().iter_mut().filter(|t| t.pid == p && which(t)) {
            *timer = Timer { pid: NONE, ..Timer::default() };
        }
    }

    /// A timer whose expiry somebody may notice: it is armed, and what it sends would not be dropped, nor is it pending
    /// already.
    fn may_fire(&self, at: u32) -> bool {
        let timer = &self.timers[at];
        if timer.pid == NONE || timer.deadline == 0 || timer.signal == 0 {
            return false;
        }
        let live = self.procs[timer.pid].state == ProcState::LIVE;
        live && !self.signals.as_slice().iter().any(|q| q.timer == at + 1)
            && self.disposal(timer.pid, timer.tid, timer.signal) != Disposal::Ignored
    }

    /// The earliest deadline of a timer that may fire.
    pub(crate) fn next_timer(&self) -> Option<u64> {
        (0..self.timers.len).filter(|&at| self.may_fire(at)).map(|at| self.timers[at].deadline).min()
    }

    /// Process `p` has timers that send it signals, armed or not.
    #[inline]
    pub(crate) fn has_signal_timers(&self, p: Pid) -> bool {
        self.timers.len > 0 && self.timers.as_slice().iter().any(|timer| timer.pid == p && timer.signal != 0)
    }

    /// Signals that timers of the process of `t` may send at any moment: to that process, or with `own` to `t` alone.
    pub(crate) fn armed_signals(&self, t: Tid, own: bool) -> u64 {
        self.armed_until(t, own, LAST)
    }

    /// The same of timers that fire until then.
    pub(super) fn armed_until(&self, t: Tid, own: bool, until: Moment) -> u64 {
        if self.timers.len == 0 || !self.ticks_freely(t) {
            return 0;
        }
        let p = self.threads[t].pid;
        let to = |timer: &Timer| match self.threads.get(timer.tid).is_some_and(|target| target.alive()) {
            true => own && timer.tid == t,
            false => !own,
        };
        let mine = |timer: &Timer| timer.pid == p && moment(timer) <= until && to(timer);
        let armed = (0..self.timers.len).filter(|&at| mine(&self.timers[at]) && self.may_fire(at));
        armed.fold(0, |all, at| all | bit(self.timers[at].signal))
    }

    /// The first timer after `after` that may send `t`, or its process, a signal of the set `set` at a moment of its own: when, and which signal.
    pub(super) fn next_to_fire(&self, t: Tid, set: u64, after: Moment) -> Option<(Moment, i32)> {
        if self.timers.len == 0 || !self.ticks_freely(t) {
            return None;
        }
        let p = self.threads[t].pid;
        let others = |timer: &Timer| timer.tid != t && self.threads.get(timer.tid).is_some_and(|target| target.alive());
        let mine =
            |timer: &Timer| timer.pid == p && timer.signal != 0 && bit(timer.signal) & set != 0 && !others(timer);
        let armed = (0..self.timers.len).filter(|&at| mine(&self.timers[at]) && self.may_fire(at));
        armed.map(|at| (moment(&self.timers[at]), self.timers[at].signal)).filter(|(at, _)| *at > after).min()
    }

    /// The timers of the process of `t` that fire until then have fired for `t`, in their order.
    pub(super) fn fire_until(&mut self, t: Tid, until: Moment) {
        let p = self.threads[t].pid;
        if self.timers.len == 0 || !self.ticks_freely(t) {
            return;
        }
        let due = |w: &World| {
            let fires = |&at: &u32| w.timers[at].pid == p && moment(&w.timers[at]) <= until && w.may_fire(at);
            (0..w.timers.len).filter(fires).min_by_key(|&at| moment(&w.timers[at]))
        };
        let mut last = None;
        while let Some(at) = due(self) {
            last = Some(self.timers[at].deadline);
            self.fire(at);
        }
        if let Some(deadline) = last {
            self.ticks(t, deadline);
        }
    }

    /// There are timers, of whatever kind.
    #[inline]
    pub(crate) fn has_timers(&self) -> bool {
        self.n_timers > 0 || self.timers.len > 0
    }

    /// Calls `each` with the deadlines of timers that send the process of `t`, or `t`, signals of the set `set`.
    pub(crate) fn signal_timers(&self, t: Tid, set: u64, each: &mut dyn FnMut(u64)) {
        (0..self.timers.len).filter(|&at| self.sends(at, t, set)).for_each(|at| each(self.timers[at].deadline));
    }

    /// The timer sends the process of `t`, or `t`, a signal of the set `set` once it fires, and may fire.
    pub(crate) fn sends(&self, at: u32, t: Tid, set: u64) -> bool {
        let timer = &self.timers[at];
        let others = timer.tid != t && self.threads.get(timer.tid).is_some_and(|target| target.alive());
        timer.pid == self.threads[t].pid
            && timer.signal != 0
            && bit(timer.signal) & set & !self.fatal_to(t) != 0
            && !others
            && self.may_fire(at)
    }

    /// Fires the timer that sends the process of `t`, or `t`, a signal at `deadline`; false if there is none.
    pub(crate) fn fire_at(&mut self, t: Tid, deadline: u64) -> bool {
        let mut all = 0..self.timers.len;
        let due = all.find(|&at| self.timers[at].deadline == deadline && self.sends(at, t, !0));
        due.is_some_and(|at| {
            self.fire(at);
            true
        })
    }

    /// A timer that `op` of `t` waits for, or whose signal `t` would take while it waits, fires before the deadline of `op`: of two
    /// deadlines the earlier is not passed over.
    pub(crate) fn timer_comes_first(&self, t: Tid, op: &Op) -> bool {
        if !self.timeouts_any || !op.has(TIMED) {
            return false;
        }
        if self.has_timers() && self.next_awaited_timer(t, op).is_some_and(|at| at <= op.deadline) {
            return true;
        }
        let (p, takes) = (self.threads[t].pid, self.deliverable(t, self.mask_within(t, op)));
        (0..self.timers.len).any(|at| {
            let timer = &self.timers[at];
            timer.pid == p && timer.deadline <= op.deadline && takes & bit(timer.signal) != 0 && self.may_fire(at)
        })
    }

    /// Fires the timer of process `p` that sends `signal`, for thread `t`; those with earlier deadlines have fired before.
    pub(crate) fn fire_for(&mut self, t: Tid, signal: i32) {
        let p = self.threads[t].pid;
        let sends = |&at: &u32| self.timers[at].pid == p && self.timers[at].signal == signal && self.may_fire(at);
        let Some(first) = (0..self.timers.len).filter(sends).map(|at| moment(&self.timers[at])).min() else { return };
        self.fire_until(t, first);
    }

    /// A timer with this deadline has fired for `t` at a moment of its own.
    pub(crate) fn ticks(&mut self, t: Tid, deadline: u64) {
        let thread = &mut self.threads[t];
        thread.time = thread.time.max(deadline);
        thread.ticks = thread.ticks.saturating_add(1);
    }

    /// Timers fire at any moment for `t`.
    pub(crate) fn ticks_freely(&self, t: Tid) -> bool {
        self.timeouts_any && self.threads[t].ticks < TICKS
    }

    /// Fires all timers whose deadlines have passed.
    pub fn fire_timers(&mut self) {
        for at in 0..self.timers.len {
            while self.timers[at].deadline != 0 && self.timers[at].deadline <= self.fired && self.timers[at].pid != NONE
            {
                self.fire(at);
            }
        }
    }

    fn fire(&mut self, at: u32) {
        let timer = self.timers[at];
        let armed = &mut self.timers[at];
        (armed.deadline, armed.due) = match timer.interval {
            0 => (0, 0),
            interval => (timer.deadline + interval, timer.due + interval),
        };
        if self.timeouts_any {
            self.now = self.now.max(timer.due);
        }
        let p = timer.pid;
        if timer.signal == 0 || self.procs[p].state != ProcState::LIVE {
            return;
        }
        if self.signals.as_slice().iter().any(|q| q.timer == at + 1) {
            self.timers[at].overrun = timer.overrun.saturating_add(1);
            return;
        }
        self.timers[at].overrun = 0;
        let target = if self.threads.get(timer.tid).is_some_and(|t| t.alive()) { timer.tid } else { NONE };
        let code = if timer.id == ITIMER { SI_KERNEL } else { SI_TIMER };
        let pid = if timer.id == ITIMER { 0 } else { timer.id };
        let info = SigInfo { signal: timer.signal, code, pid, uid: 0, value: timer.value };
        match self.disposal(p, target, timer.signal) {
            Disposal::Ignored => {}
            // The one that takes it finds that it ends or stops the process.
            _ => {
                self.post(p, target, info, at + 1);
                self.procs[p].by_clock |= bit(timer.signal);
            }
        }
    }

    /// The signal at place `at` of the queue is taken: what it says about further expiries of its timer is settled now.
    pub(crate) fn settle_overrun(&mut self, at: u32, info: &mut SigInfo) {
        let timer = self.signals[at].timer;
        if timer == 0 || info.code != SI_TIMER {
            return;
        }
        if let Some(timer) = self.timers.as_mut_slice().get_mut(timer as usize - 1) {
            timer.last_overrun = core::mem::take(&mut timer.overrun);
            info.uid = timer.last_overrun;
        }
    }
}

impl World {
    /// What a new timer counts: processor time, dates (absolute times are), or neither.
    pub fn timer_counts(&mut self, at: u32, processor: bool, realtime: bool) {
        self.timers[at].processor = processor;
        self.timers[at].realtime = realtime;
    }

    /// The timer `at` is set anew, or deleted, while it may fire, by a thread that blocks its signal: that this is pending already is not
    /// explored. Who does not block it may have taken it before.
    fn changes_armed(&mut self, at: u32) {
        let t = self.current;
        self.ticks_held |= self.sends(at, t, self.threads[t].sigmask);
    }

    /// Arms a timer to expire in `ns` (0: disarms it), then every `interval` ns.
    pub fn timer_arm(&mut self, at: u32, ns: u64, interval: u64) {
        self.changes_armed(at);
        let processor = self.timers[at].processor;
        if processor && ns != 0 && self.timers[at].signal != 0 {
            self.never_comes(CPU_TIMER);
        }
        let deadline = if ns == 0 || processor { 0 } else { self.deadline_after(self.current, ns) };
        let due = if deadline == 0 { 0 } else { self.now + ns };
        let p = self.timers[at].pid;
        let others = self.timers.as_slice().iter().filter(|timer| timer.pid == p);
        let order = others.map(|timer| timer.order).max().map_or(1, |last| last + 1);
        let timer = &mut self.timers[at];
        timer.order = order;
        (timer.deadline, timer.due, timer.interval, timer.left) = (deadline, due, interval, ns);
        (timer.overrun, timer.last_overrun) = (0, 0);
    }

    /// The same until an absolute time: virtual time `deadline`, or so much processor time that `left` is left.
    pub fn timer_arm_until(&mut self, at: u32, deadline: u64, left: u64) {
        if self.timers[at].processor {
            self.timers[at].left = left;
        } else {
            let due = self.now + deadline.saturating_sub(self.time_of(self.current));
            (self.timers[at].deadline, self.timers[at].due) = (deadline.max(1), due);
            self.fire_timers();
        }
    }

    /// Time to the expiry of a timer, and its interval, ns.
    pub fn timer_left(&self, at: u32) -> (u64, u64) {
        let timer = &self.timers[at];
        let left = match timer.deadline {
            _ if timer.processor => timer.left,
            0 => 0,
            _ => timer.due.saturating_sub(self.now).max(1),
        };
        (left, timer.interval)
    }

    /// The number of a new timer of process `p`.
    pub fn timer_number(&self, p: Pid) -> i32 {
        let numbers = self.timers.as_slice().iter().filter(|t| t.pid == p && t.id >= 0).map(|t| t.id);
        numbers.max().map_or(0, |last| last + 1)
    }
}
