//! Signals: pending ones with their siginfo, which thread takes which, and how a parked thread goes on when one is to be
//! delivered to it.
//!
//! NOTE [Delivery] A thread that is parked at an operation while a signal is pending that it does not block has further
//! alternatives, after those of the operation itself: *before*: the handler runs, then the operation is published again;
//! and, where the operation would block and signal(7) says so, *interrupted*: the handler runs, then the call fails with
//! EINTR. An operation that restarts has no second one: it would be the same. Where the operation is performed first, the
//! handler runs right after it. So a signal that is sent while a thread is anywhere between two operations comes before
//! or after the next one. Second halves of waits (of a condition variable, at a barrier) go on waiting, and may be woken
//! while the handler runs; a futex wait is left and begun anew.
//!
//! A stop interrupts waits as well. Most calls are begun again by the kernel before the program notices; some fail with
//! EINTR once the process goes on, though no handler ran (`fails_by_stop`). A thread that is parked at one of these while its
//! process stops may have been about to call or have been waiting, so it has two further alternatives after that: *on*:
//! it had not called yet, and the operation is published again; and *by stop*: the call fails.
//!
//! A fatal signal that another process sends takes effect at some moment after that: kill(2) does not wait for it
//! (kernel/signal.c, complete_signal, marks the threads and kicks their processors). Until then they run on, and each gets to the end of
//! one call of the kernel at most, from which it does not return. One of the threads has the end as a further alternative, of its
//! own operation or of its wait, and performs it: descriptors are closed and the parent is told as in any other end. That the first process is
//! killed ends the execution at once. The status is settled when the signal is sent, unless it dumps core; for a process that is stopped it
//! waits until that goes on.
//!
//! A signal for a process is taken as Linux does it (complete_signal): by the first thread if it wants it, else by the
//! first other one in order of creation; waiting for it with sigwait is wanting it. Signals of a thread come before those
//! of the process, low numbers before high ones.

use super::answer::SIGCANCEL;
use super::parent::SIGCHLD;
use super::row::*;
use super::stop::{SIGSTOP, STOPS};
use super::timer::Moment;
use crate::base::{CANCEL_POINT, PARTIAL, RESUMED, TIMED};
use crate::state::{
    bit, Disposition, Handling, Kept, QueuedSignal, SigInfo, ThreadState, ALTERNATIVES, AWAITED, BEFORE, BETWEEN_CALLS,
    BY_CLOCK, DIES, DUMPS_LATE, ENDS, INTERRUPTS, MAX_HANDLERS, NUMBER, OTHER_RECEIVER, SHARED_PENDING, STANDS_STILL,
    STOP_BEFORE, STOP_INTERRUPTS,
};

kinds! {
    /// Signal number `arg` for process `obj`.
    KILL = 9, "kill" {
        operands: Operands::Process, enabled: Enabled::Always, perform: DONE,
        records: Records::NOTHING, cells: WIDE, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::Ends, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::ExposesProcess, idle: Idle::BUSY, tells: YES, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown::passes(Call::Row, |op, _, words| match op.arg {
            0 => say![words, Thing::Process(op.obj), ", 0"],
            signal => say![words, Thing::Process(op.obj), ", ", Thing::Signal(signal as u32)],
        }),
    }
    /// sigsuspend and pause (`VARIANT`): wait for a signal; `arg` is the mask that is in force meanwhile.
    SIGSUSPEND = 96, "sigsuspend" {
        operands: Operands::Nothing, enabled: blocks(|w, t, op| u32::from(w.cancelled(t, op)), |_| Answer::No),
        perform: |_, _, _, _| Applied::Done(errno::EINTR),
        records: Records::NOTHING, cells: ON_OBJECTS, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals { taken: Taken::Suspends, ..Signals::FAILS }, polls: Polls::Errors,
        alone: Alone::ExposesOwnProcess, idle: Idle { peer: |_, _, _| true, ..Idle::BUSY }, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::By(|op| if op.has(VARIANT) { "pause" } else { "sigsuspend" }), arguments: NO_ARGUMENTS,
            outcome: Outcome::Nothing, waits: Some(|world, t, _, words| say![words, "a signal that it does not block", hopeless(world, t)]), identity: BY_OBJECTS },
    }
    /// sigwait, sigwaitinfo, sigtimedwait: take a pending signal of the set `arg`.
    SIGWAIT = 97, "sigwait" {
        operands: Operands::Nothing, enabled: blocks(World::sigwait_choices, |_| Answer::No),
        perform: World::sigwait_perform,
        records: Records::NOTHING, cells: ON_OBJECTS, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None,
        signals: Signals { taken: Taken::Waits, fails_by_stop: FailsByStop::Always, ..Signals::FAILS }, polls: Polls::Errors,
        alone: Alone::ExposesOwnProcess, idle: Idle { peer: |_, _, _| true, ..Idle::BUSY }, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::Three("sigwait", "sigtimedwait", "sigtimedwait"), arguments: |op, _, words| signal_set(op.arg as u64, words),
            outcome: Outcome::Nothing, waits: Some(|world, t, op, words| {
            signal_set(op.arg as u64, words);
            say![words, hopeless(world, t)];
        }), identity: BY_OBJECTS },
    }
    /// Go on after a stop signal that the process sent itself.
    STOPPED = 98, "stopped" {
        operands: Operands::Nothing, enabled: blocks(|_, _, _| 1, |_| Answer::No), perform: DONE,
        records: Records::NOTHING, cells: ON_OBJECTS, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals { taken: Taken::Stopped, ..Signals::NEVER }, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::Row, arguments: NO_ARGUMENTS, outcome: Outcome::Nothing, waits: Some(|_, _, _, _| ()), identity: BY_OBJECTS },
    }
}

/// Says the signals of a set.
fn signal_set(set: u64, words: &mut dyn Words) {
    match set.count_ones() {
        0 => say![words, "no signal"],
        33.. => say![words, "any signal"],
        _ => list((1..=64).filter(|n| set >> (n - 1) & 1 == 1).map(Thing::Signal), " or ", usize::MAX, words),
    }
}

/// First real-time signal of the kernel: from there on several of the same number are queued.
pub(super) const RT_MIN: i32 = 32;
pub(super) const SIGKILL: i32 = 9;
/// SIGCHLD, SIGCONT, SIGURG, SIGWINCH.
pub(super) const IGNORED: u64 = bit(17) | bit(18) | bit(23) | bit(28);

/// SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS.
pub(super) const CORE: u64 =
    bit(3) | bit(4) | bit(5) | bit(6) | bit(7) | bit(8) | bit(11) | bit(24) | bit(25) | bit(31);

/// Whether a fatal signal dumps core: then it acts, and decides, only when a thread takes it (kernel/signal.c, complete_signal).
pub(super) const fn dumps_core(signal: i32) -> bool {
    CORE & bit(signal) != 0
}

impl World {
    /// The pending operation of `t` waits with another mask: signals that this lets through and that nothing is done about are gone, and the
    /// wait goes on (kernel/signal.c, get_signal).
    pub(crate) fn drop_ignored_within(&mut self, t: Tid) {
        let thread = &self.threads[t];
        let op = thread.pending;
        let changes = match op.kind.row().signals.taken {
            Taken::Suspends => true,
            Taken::WithMask => thread.masked,
            _ => false,
        };
        let p = thread.pid;
        let process = &self.procs[p];
        let nothing = (process.ignored | IGNORED & !process.handled) & !self.mask_within(t, &op);
        let gone = (thread.sigpending | process.sigpending) & nothing;
        if !changes || gone == 0 {
            return;
        }
        self.threads[t].sigpending &= !gone;
        self.procs[p].sigpending &= !gone;
        self.forget_signals(|q| (q.tid == t || q.tid == NONE && q.pid == p) && gone & bit(q.info.signal) != 0);
    }

    /// Process `p` ignores `signal`, or leaves it to a default action that is to do nothing.
    pub(super) fn nothing_done(&self, p: Pid, signal: i32) -> bool {
        let process = &self.procs[p];
        (process.ignored | IGNORED & !process.handled) & bit(signal) != 0
    }

    /// Signals pending for `t` that it does not block: they are due whenever it returns from the kernel.
    #[inline]
    pub fn due(&self, t: Tid) -> u64 {
        if !self.stirred || self.threads[t].sigpending | self.procs[self.threads[t].pid].sigpending == 0 {
            return 0;
        }
        let mask = self.threads[t].sigmask;
        // A timer that may fire has not done so.
        self.deliverable(t, mask) & (self.threads[t].sigpending | self.procs[self.threads[t].pid].sigpending)
    }

    /// Signals pending for the process of `t`, and those of timers that may fire.
    pub(super) fn shared_pending(&self, t: Tid) -> u64 {
        self.procs[self.threads[t].pid].sigpending | self.armed_signals(t, false)
    }

    /// `op` of `t` is the wait of ppoll, pselect or epoll_pwait with a mask. Where only time is waited for it is a sleep.
    pub fn has_own_mask(&self, t: Tid, op: &Op) -> bool {
        self.threads[t].masked && op.kind.row().signals.taken == Taken::WithMask
    }

    /// The mask that is in force while `op` waits.
    pub fn mask_within(&self, t: Tid, op: &Op) -> u64 {
        match op.kind.row().signals.taken {
            Taken::Suspends => op.arg as u64,
            Taken::WithMask if self.threads[t].masked => self.threads[t].within,
            Taken::Waits => self.threads[t].sigmask & !(op.arg as u64),
            _ => self.threads[t].sigmask,
        }
    }

    /// There has been a signal, or a stop or end by one, or a timer may send one.
    #[inline]
    pub(crate) fn may_signal(&self) -> bool {
        u32::from(self.stirred) | self.timers.len != 0
    }

    /// [`Op::signals`] of the pending operation of `t`.
    #[inline]
    pub(crate) fn signal_ways(&self, t: Tid) -> u16 {
        // Asked several times at every transition, and hardly ever is there one.
        let (thread, process) = (&self.threads[t], &self.procs[self.threads[t].pid]);
        if !self.may_signal() {
            debug_assert!(thread.sigpending | process.sigpending == 0 && process.stopped | process.dying == 0);
            return 0;
        }
        let timers = self.timeouts_any && self.timers.len > 0;
        let quiet = process.stopped == 0 && process.dying == 0 && !thread.stop_hit && !timers;
        if thread.sigpending | process.sigpending == 0 && quiet {
            return 0;
        }
        self.ways_of_signals(t)
    }

    /// Thread `t` is the one for which it is an alternative that its process, which has been killed, is over now.
    fn dies(&self, t: Tid) -> bool {
        let p = self.threads[t].pid;
        let of = |&&u: &&Tid| self.threads[u].pid == p && self.threads[u].state == ThreadState::PARKED;
        let dying = self.procs[p].dying;
        let sends = |&u: &Tid| self.threads[u].pid == p && self.is_within_send(u);
        dying != 0
            && !self.live.as_slice().iter().any(sends)
            && dying & ENDS == 0
            && self.live.as_slice().iter().find(of) == Some(&t)
    }

    #[inline(never)]
    fn ways_of_signals(&self, t: Tid) -> u16 {
        let thread = &self.threads[t];
        let process = &self.procs[thread.pid];
        if process.dying != 0 {
            // No other signal is delivered any more (kernel/signal.c, get_signal). Whoever moves in between may tell.
            return if self.dies(t) { BEFORE | DIES | u16::from(process.dying) } else { 0 };
        }
        if process.stopped != 0 {
            return STANDS_STILL;
        }
        let hit = if !thread.stop_hit {
            0
        } else if thread.pending.has(PARTIAL) {
            STOP_INTERRUPTS
        } else {
            STOP_BEFORE | STOP_INTERRUPTS
        };
        let timers = self.timeouts_any && self.timers.len > 0;
        if thread.sigpending | process.sigpending == 0 && !timers || thread.state != ThreadState::PARKED {
            return hit;
        }
        let op = &thread.pending;
        let shared = self.shared_pending(t) != 0 && process.live_threads > 1;
        let by_clock = process.by_clock & (thread.sigpending | process.sigpending) != 0;
        let mut ways = if shared { SHARED_PENDING } else { 0 } | if by_clock { BY_CLOCK } else { 0 };
        let row = op.kind.row();
        let taken = row.signals.taken;
        if matches!(taken, Taken::Never | Taken::Stopped) {
            return ways;
        }
        if taken == Taken::Returns {
            return ways | self.ways_at_return(t);
        }
        if taken == Taken::Waits && self.awaited_pending(t, op.arg as u64) != 0 {
            ways |= AWAITED;
        }
        let not_awaited = if taken == Taken::Waits { !op.arg as u64 } else { !0 };
        let before = self.takeable(t, thread.sigmask) & not_awaited;
        let within = self.takeable(t, self.mask_within(t, op)) & not_awaited;
        let blocks = || self.finds_nothing(t, op);
        // One that sleeps already is interrupted or goes on; one that has been woken returns first.
        let asleep = matches!(taken, Taken::Sleeps(_));
        let partial = op.has(PARTIAL);
        if before != 0 && !asleep && !partial {
            ways |= BEFORE | self.comes_first(t, before, false).0 as u16;
        }
        if within != 0 && blocks() {
            let waits = self.mask_within(t, op) != thread.sigmask;
            let signal = self.comes_first(t, within, waits).0;
            let restarts = process.restarts & bit(signal) != 0;
            // Of one that nothing is done about the kernel begins the call again, as after a stop.
            let fails = if self.nothing_done(thread.pid, signal) {
                row.signals.fail_by_stop(op)
            } else {
                row.signals.fail(op, restarts)
            };
            if fails {
                // The clock has jumped because the thread stood here; that a timer is faster than its thread is for
                // `timeouts_any`.
                let by_clock = !self.timeouts_any && process.by_clock & bit(signal) != 0;
                ways &= if by_clock { !BEFORE } else { !0 };
                ways = ways & !NUMBER | INTERRUPTS | signal as u16;
            } else if asleep {
                ways = ways & !NUMBER | BEFORE | signal as u16;
            }
        }
        // With a handler that runs as well these are the same.
        let same =
            if ways & BEFORE != 0 { STOP_BEFORE } else { 0 } | if ways & INTERRUPTS != 0 { STOP_INTERRUPTS } else { 0 };
        ways | hit & !same
    }

    /// Nothing of what `op` of `t` is about lets it go on: it asks for signals then. A timer that may fire has not done so yet.
    pub(super) fn finds_nothing(&self, t: Tid, op: &Op) -> bool {
        let looks = if op.kind.row().signals.asks { TRY } else { 0 };
        let waits = Op { flags: op.flags & !(TIMED | CANCEL_POINT | looks), ..*op };
        self.choices_of(t, &waits) == 0 || self.only_ticks(t, &waits)
    }

    /// True if the operation of `t` fails with EINTR, whatever else it could do: a signal is pending that its own mask lets in, and
    /// that was blocked before.
    pub(crate) fn must_fail(&self, t: Tid) -> bool {
        let thread = &self.threads[t];
        let op = &thread.pending;
        let sent = thread.sigpending | self.procs[thread.pid].sigpending;
        let within = sent & self.deliverable(t, self.mask_within(t, op)) & thread.sigmask;
        op.kind.row().signals.asks && within != 0 && self.finds_nothing(t, op)
    }

    /// What is due is handled where a call returns; a timer may fire there, or not.
    fn ways_at_return(&self, t: Tid) -> u16 {
        let (due, ready) = (self.due(t), self.takeable(t, self.threads[t].sigmask));
        match (due, ready) {
            (0, 0) => 0,
            (0, _) => BEFORE | self.comes_first(t, ready, false).0 as u16,
            _ => self.first_of(t, due) as u16,
        }
    }

    /// Signals pending for `t` and its process.
    pub(super) fn sent_to(&self, t: Tid) -> u64 {
        self.threads[t].sigpending | self.procs[self.threads[t].pid].sigpending
    }

    /// In which mask `t` takes a signal in the alternative `way` of `op`, and whether that is not its own.
    pub(super) fn mask_of_way(&self, t: Tid, op: &Op, way: u16) -> (u64, bool) {
        let asleep = matches!(op.kind.row().signals.taken, Taken::Sleeps(Leave::Queue | Leave::Words));
        let own = self.threads[t].sigmask;
        let mask = if way == BEFORE && !asleep { own } else { self.mask_within(t, op) };
        (mask, mask != own)
    }

    /// Signals that `t` takes in the alternative `way` of its pending operation.
    pub(super) fn ready_for_way(&self, t: Tid, op: &Op, way: u16) -> u64 {
        let barred = if op.kind.row().signals.taken == Taken::Waits { op.arg as u64 } else { 0 };
        self.takeable(t, self.mask_of_way(t, op, way).0) & !barred
    }

    /// The first of the signals `ready` that `t` takes: its own ones first.
    pub(super) fn first_of(&self, t: Tid, ready: u64) -> i32 {
        let own = self.threads[t].sigpending & ready;
        (if own != 0 { own } else { ready }).trailing_zeros() as i32 + 1
    }

    /// Further alternatives of the pending operation of `t`.
    pub(crate) fn signal_choices(&self, t: Tid) -> u32 {
        let ways = self.signal_ways(t);
        (ways & ALTERNATIVES).count_ones()
    }

    /// Performs the `n`-th of these alternatives: `t` takes the signal, which is in `Thread::taken` then; signal 0: it
    /// was a stop, and no handler runs.
    pub(crate) fn interrupt(&mut self, t: Tid, n: u32) -> Applied {
        let way = nth_bit(self.signal_ways(t) & ALTERNATIVES, n);
        self.interrupt_in(t, way, None)
    }

    /// Timers have fired until `until`, or as few as let a signal come.
    pub(super) fn interrupt_in(&mut self, t: Tid, way: u16, until: Option<Moment>) -> Applied {
        let op = self.threads[t].pending;
        if way & (STOP_BEFORE | STOP_INTERRUPTS) != 0 {
            let thread = &mut self.threads[t];
            thread.state = ThreadState::RUNNING;
            thread.stop_hit = false;
            thread.taken = SigInfo::default();
            return Applied::Signalled(way == STOP_INTERRUPTS);
        }
        let before = way == BEFORE;
        let taken = op.kind.row().signals.taken;
        let dying = self.procs[self.threads[t].pid].dying;
        let (ready, waits) = (self.ready_for_way(t, &op, way), self.mask_of_way(t, &op, way).1);
        let until = until.unwrap_or_else(|| self.comes_first(t, ready, waits).1);
        match dying {
            0 => self.leaves_for_handler(t),
            _ => self.all_leave(self.threads[t].pid),
        }
        self.threads[t].state = ThreadState::RUNNING;
        match dying {
            0 => {
                self.fire_until(t, until);
                let sent = self.sent_to(t) & ready;
                self.take(t, if sent != 0 { sent } else { ready });
            }
            signal => {
                self.threads[t].taken = SigInfo { signal: signal.into(), ..SigInfo::default() };
                let p = self.threads[t].pid;
                self.note_late_dump(p, signal.into());
                self.procs[p].dying |= ENDS;
                // Also one that is stopped goes through its end (kernel/signal.c, signal_wake_up with fatal).
                self.procs[p].stopped = 0;
                // While this one goes through the end of the process the others do not move.
                for u in self.threads.as_mut_slice().iter_mut().filter(|u| u.pid == p) {
                    u.spent = true;
                }
                self.threads[t].spent = false;
            }
        }
        match taken {
            Taken::Sleeps(Leave::Queue) => self.dequeue(t),
            Taken::Sleeps(Leave::Words) => self.forget_words(t, false),
            Taken::Sleeps(Leave::Inheritance) => self.pi_leave(t, op.obj),
            Taken::KeepsPlace => {
                let thread = &mut self.threads[t];
                thread.held = true;
                thread.held_woken = thread.woken;
            }
            _ => {}
        }
        Applied::Signalled(!before)
    }

    /// `signal` of another process takes effect on process `p`. Where it dumps core only the thread that takes it is kicked: until it does,
    /// the others go on, by more than one call (kernel/signal.c, complete_signal).
    fn note_late_dump(&mut self, p: Pid, signal: i32) {
        let taker = self.receiver(p, signal);
        let goes_on = |&&u: &&Tid| {
            let Thread { pid, state, pending: op, spent, .. } = &self.threads[u];
            let untimed = Op { flags: op.flags & !(TIMED | CANCEL_POINT), ..*op };
            *pid == p && u != taker && *spent && *state == ThreadState::PARKED && self.choices_of(u, &untimed) > 0
        };
        if dumps_core(signal) && self.live.as_slice().iter().find(goes_on).is_some() {
            self.never_comes(DUMPS_LATE);
        }
    }

    /// Takes the first of the signals `ready` of `t` out of what is pending. False: there is none.
    pub fn take(&mut self, t: Tid, ready: u64) -> bool {
        if ready == 0 {
            return false;
        }
        let (signal, p) = (self.first_of(t, ready), self.threads[t].pid);
        if (self.threads[t].sigpending | self.procs[p].sigpending) & bit(signal) == 0 {
            self.fire_for(t, signal);
        }
        let own = self.threads[t].sigpending & bit(signal) != 0;
        if !own {
            self.wakes_in_vain(t, signal);
        }
        let target = if own { t } else { NONE };
        let matches = |q: &QueuedSignal| q.pid == p && q.tid == target && q.info.signal == signal;
        let queue = self.signals.as_slice();
        let at = queue.iter().position(matches);
        let more = queue.iter().filter(|q| matches(q)).count() > 1;
        let mut info = SigInfo { signal, ..SigInfo::default() };
        if let Some(at) = at {
            info = self.signals[at as u32].info;
            self.settle_overrun(at as u32, &mut info);
            self.unqueue(at);
        }
        if !more {
            let pending = if own { &mut self.threads[t].sigpending } else { &mut self.procs[p].sigpending };
            *pending &= !bit(signal);
            self.procs[p].by_clock &= !bit(signal);
        }
        self.threads[t].taken = info;
        if signal == SIGCHLD {
            self.children_are_over(p);
        }
        if (self.procs[p].handled | self.threads[t].sigmask) & bit(signal) != 0 {
            self.procs[p].noticed |= bit(signal);
        }
        let by_itself = info.code <= 0 && info.pid == self.procs[p].vpid && !self.procs[p].threaded;
        if self.procs[p].handled & !self.threads[t].sigmask & bit(signal) != 0 && signal != SIGCANCEL && !by_itself {
            self.never_comes(BETWEEN_CALLS);
        }
        true
    }

    /// `t` takes a signal for its process, for which the kernel has woken another thread that waits: that one finds nothing, and calls
    /// that do not wait on by themselves fail with EINTR (kernel/signal.c, do_sigtimedwait), as after a stop.
    fn wakes_in_vain(&mut self, t: Tid, signal: i32) {
        let woken = self.receiver(self.threads[t].pid, signal);
        let Some(thread) = self.threads.get(woken).filter(|_| woken != t) else { return };
        let fails = |u: Tid| {
            let thread = &self.threads[u];
            thread.state == ThreadState::PARKED && thread.pending.kind.row().signals.fail_by_stop(&thread.pending)
        };
        // Who lets the signal in by its wait alone need not have begun that when the signal came: then another one was woken.
        let others = |&u: &Tid| {
            u != t && u != woken && self.threads[u].pid == self.threads[t].pid && !self.wants_not(u, signal) && fails(u)
        };
        let another = thread.sigmask & bit(signal) != 0 && self.live.as_slice().iter().copied().any(|u| others(&u));
        if fails(woken) {
            self.threads[woken].stop_hit = true;
            self.stirred = true;
        }
        if another {
            self.never_comes(OTHER_RECEIVER);
        }
    }

    pub(super) fn unqueue(&mut self, at: usize) {
        self.signals.as_mut_slice().copy_within(at + 1.., at);
        self.signals.len -= 1;
    }

    /// Forgets pending signals.
    pub(crate) fn forget_signals(&mut self, which: impl Fn(&QueuedSignal) -> bool) {
        let mut at = 0;
        while (at as usize) < self.signals.as_slice().len() {
            if which(&self.signals[at]) {
                self.unqueue(at as usize);
            } else {
                at += 1;
            }
        }
    }

    /// A signal becomes pending for process `p`, or for its thread `t`. One of the old signals is pending once only.
    /// False: there is no room.
    pub fn post(&mut self, p: Pid, t: Tid, info: SigInfo, timer: u32) -> bool {
        if timer == 0 {
            self.note_sent(p, t, info.signal);
        }
        self.note_woken(p, t, info.signal);
        if t == NONE && info.signal != SIGCHLD {
            self.note_receiver(p, info.signal, self.procs[p].main_thread);
        }
        self.stirred = true;
        let pending = if t == NONE { &mut self.procs[p].sigpending } else { &mut self.threads[t].sigpending };
        let already = *pending & bit(info.signal) != 0;
        *pending |= bit(info.signal);
        if self.n_watches > 0 && !(already && info.signal < RT_MIN) {
            self.signal_is_new(p, info.signal);
        }
        if t == NONE && info.signal == SIGCHLD && !already {
            self.procs[p].child_signal_for = NONE;
        }
        already && info.signal < RT_MIN
            || self.signals.push(QueuedSignal { pid: p, tid: t, info, timer, pad: 0 }).is_some()
    }

    /// `signal` comes to process `p`, in the name of its thread `asked`. That one takes it if it wants it, else the first that does of those
    /// from the one on that was chosen last; but one that is about to take another signal is passed over (kernel/signal.c, complete_signal
    /// and wants_signal). Here it is the first in order of creation, always.
    pub(crate) fn note_receiver(&mut self, p: Pid, signal: i32, asked: Tid) {
        let there = self.procs[p].sigpending & bit(signal) != 0;
        if self.procs[p].live_threads < 2 || there && signal < RT_MIN {
            return;
        }
        let last = self.procs[p].chosen;
        let wants = |t: Tid| self.threads[t].pid == p && self.threads[t].alive() && !self.wants_not(t, signal);
        let able = || self.live.as_slice().iter().copied().filter(|&t| wants(t));
        let asked_wants = self.threads.contains(asked) && wants(asked);
        let by_creation = if asked_wants { Some(asked) } else { able().next() };
        let in_turn = able().find(|&t| t >= last && !asked_wants).or(by_creation);
        let Some(first) = in_turn else { return };
        let sent = self.threads[first].sigpending | self.procs[p].sigpending;
        let busy = sent & self.deliverable(first, self.mask_within(first, &self.threads[first].pending)) != 0;
        if able().nth(1).is_some() && (busy || by_creation != Some(first)) {
            self.never_comes(OTHER_RECEIVER);
        }
        if !asked_wants {
            self.procs[p].chosen = first;
        }
    }

    /// Signals that sigwait would take now: also those for the process for which another thread was chosen, which has not taken them
    /// yet (kernel/signal.c, do_sigtimedwait and dequeue_signal).
    fn awaited_pending(&self, t: Tid, set: u64) -> u64 {
        let sent = self.threads[t].sigpending | self.armed_signals(t, true) | self.shared_pending(t);
        sent & set & !self.fatal_to(t)
    }

    pub(crate) fn sigwait_choices(&self, t: Tid, op: &Op) -> u32 {
        let ways = self.ways_to_find(t, op.arg as u64 & !self.fatal_to(t), self.has_passed(t));
        let goes_on = op.has(TRY) || self.may_time_out(op) || self.cancelled(t, op);
        ways.max(goes_on.into()) + u32::from(self.awaits_timers_in_vain(t, op))
    }

    /// `op` does not wait, and what it would take are signals of timers that may fire, and need not have in the time that `t` has waited.
    fn awaits_timers_in_vain(&self, t: Tid, op: &Op) -> bool {
        let set = op.arg as u64;
        let is_due = || self.signal_timer_at(t, set).is_some_and(|at| at <= self.time_of(t));
        let gives_up = op.has(TRY) || self.may_time_out(op);
        gives_up && self.sent_to(t) & set == 0 && self.awaited_pending(t, set) != 0 && !is_due()
    }

    /// Done(0): the signal is in `Thread::taken`. `value`: how many timers have fired; the last: none has yet.
    pub(crate) fn sigwait_perform(&mut self, t: Tid, op: &Op, value: u32) -> Applied {
        let set = op.arg as u64 & !self.fatal_to(t);
        let found = self.way_to_find(t, set, self.has_passed(t), value);
        if let Some((_, until)) = found {
            self.fire_until(t, until);
        }
        let ready = if found.is_some() { self.sent_to(t) & set } else { 0 };
        Applied::Done(if self.take(t, ready) {
            0
        } else if self.cancelled(t, op) {
            errno::EINTR
        } else {
            errno::EAGAIN
        })
    }

    /// `t` asks which signals are pending. Those of timers that may have fired are not told.
    pub fn looks_for_pending(&mut self, t: Tid) {
        let blocked = self.threads[t].sigmask;
        self.ticks_held |= (0..self.timers.len).any(|at| self.sends(at, t, blocked));
    }

    /// The handler of a signal that `t` has taken while parked at `op` begins; it is known to reports until
    /// [`World::handler_over`]. False: it cannot be kept what that operation has, since so many handlers are one in another.
    pub fn handler_begins(&mut self, t: Tid, signal: i32, sp: u64, op: Op) -> bool {
        let thread = &mut self.threads[t];
        let take = |of: &mut u32| core::mem::replace(of, NONE);
        let kept = [take(&mut thread.holding), take(&mut thread.sending), take(&mut thread.staged)];
        let woken = core::mem::take(&mut thread.left_woken);
        match thread.handlers.get_mut(thread.n_handlers as usize) {
            Some(place) => *place = Handling { signal: signal as u32, woken, pad: [0; 3], sp, op, kept, pad2: 0 },
            None if kept != [NONE; 3] || woken => return false,
            None => {}
        }
        thread.n_handlers = thread.n_handlers.saturating_add(1);
        true
    }

    /// It has returned.
    pub fn handler_over(&mut self, t: Tid) {
        let thread = &mut self.threads[t];
        // A process that was forked in a handler does not know of it.
        if thread.n_handlers == 0 {
            return;
        }
        thread.n_handlers -= 1;
        if let Some(over) = thread.handlers.get(thread.n_handlers as usize) {
            [thread.holding, thread.sending, thread.staged] = over.kept;
            let over = *over;
            if over.woken {
                self.returns_to(t, &over.op);
            }
        }
    }

    /// Only the first `left` handlers of `t` are left: what the operations have that the others interrupted is given back.
    pub(crate) fn leave_handlers(&mut self, t: Tid, left: usize) {
        let n = (self.threads[t].n_handlers as usize).min(MAX_HANDLERS);
        self.threads[t].n_handlers = left as u8;
        self.handlers_left(t, left, n);
        for at in left..n {
            let [holding, sending, staged] = self.threads[t].handlers[at].kept;
            self.desc_let_go(holding);
            self.rights_drop(sending);
            self.free_chunks(staged);
        }
    }

    /// A signal that its process handles would make `op` of `t` fail where it blocks. Those of glibc's own do not: their handlers restart.
    pub(crate) fn may_be_interrupted(&self, t: Tid, op: &Op) -> bool {
        let process = &self.procs[self.threads[t].pid];
        process.handled != 0 && op.kind.row().signals.fail(op, process.handled & !process.restarts == 0)
    }

    /// `t` goes on with `op`, at which a signal was delivered to it. A wait that kept its place may have been woken
    /// meanwhile.
    pub fn resume(&mut self, t: Tid, op: Op) {
        if op.kind.row().signals.taken != Taken::KeepsPlace {
            return self.publish(t, op);
        }
        self.ops += 1;
        self.park(t, op.with(RESUMED));
        let thread = &mut self.threads[t];
        thread.held = false;
        thread.woken = thread.held_woken;
        self.check_cycle(t);
    }

    /// Handlers of `t` that were left by a jump, as its stack pointer shows, are over, and what they interrupted.
    pub fn abandon(&mut self, t: Tid, sp: u64) {
        let n = self.threads[t].n_handlers as usize;
        let left = self.threads[t].handlers[..n.min(MAX_HANDLERS)].iter().position(|h| h.sp < sp);
        let Some(left) = left else { return };
        self.leave_calls(t, left);
    }

    /// The same, for a thread that lives on: nor does it go on with the wait of a call that it has left.
    pub(crate) fn leave_calls(&mut self, t: Tid, left: usize) {
        self.leave_handlers(t, left);
        if core::mem::replace(&mut self.threads[t].held, false) {
            self.dequeue(t);
        }
    }

    /// `t` is in a handler that interrupted a wait in a queue, and is about to wait in another one.
    pub(crate) fn waits_twice(&self, t: Tid, op: &Op) -> bool {
        self.threads[t].held && op.kind.row().signals.taken == Taken::Queues
    }
}

/// The `n`-th bit that is set, from the lowest; 0 if there are fewer.
fn nth_bit(mut bits: u16, n: u32) -> u16 {
    for _ in 0..n {
        bits &= bits.wrapping_sub(1);
    }
    bits & bits.wrapping_neg()
}

impl World {
    /// What process `p` does about `signal` from now on; its handler was installed with SA_RESTART or not.
    pub fn set_disposition(&mut self, p: Pid, signal: i32, what: Disposition, restarts: bool) {
        let process = &mut self.procs[p];
        let set = |mask: u64, on: bool| if on { mask | bit(signal) } else { mask & !bit(signal) };
        process.handled = set(process.handled, what == Disposition::Handled);
        process.ignored = set(process.ignored, what == Disposition::Ignored);
        process.restarts = set(process.restarts, restarts);
        if what == Disposition::Ignored || what == Disposition::Default && ignored_by_default(signal) {
            self.forget_signals(|q| q.pid == p && q.info.signal == signal);
            self.procs[p].sigpending &= !bit(signal);
            for t in 0..self.threads.len {
                if self.threads[t].pid == p {
                    self.threads[t].sigpending &= !bit(signal);
                }
            }
        }
    }

    /// Whether children of `p` that end leave a status, and whether it is told of those that stop (its SIGCHLD says so).
    pub fn set_child_news(&mut self, p: Pid, zombies: bool, stops: bool) {
        self.procs[p].no_zombies = !zombies;
        self.procs[p].no_stop_news = !stops;
    }

    /// Sets the mask of `t`; SIGKILL and SIGSTOP cannot be blocked.
    pub fn set_mask(&mut self, t: Tid, mask: u64) {
        let thread = &mut self.threads[t];
        thread.sigmask = mask & !(bit(SIGKILL) | bit(SIGSTOP));
        if blocks_all(thread.sigmask) {
            self.note_hushed(t);
        }
    }

    /// The next operation of `t` waits with that mask, until [`World::wait_with_own_mask`].
    pub fn wait_with_mask(&mut self, t: Tid, mask: u64) {
        self.threads[t].within = mask & !(bit(SIGKILL) | bit(SIGSTOP));
        self.threads[t].masked = true;
    }

    /// Operations of `t` wait with its own mask again.
    pub fn wait_with_own_mask(&mut self, t: Tid) {
        self.threads[t].masked = false;
    }

    /// A signal from outside is pending for `t`.
    pub fn pend(&mut self, t: Tid, signal: i32) {
        self.stirred = true;
        self.threads[t].sigpending |= bit(signal);
    }

    /// A handler of `t` begins: what its operations overwrite.
    pub fn keep(&mut self, t: Tid) -> Kept {
        let thread = &mut self.threads[t];
        let masked = core::mem::replace(&mut thread.masked, false);
        let Thread { out, taken, within, address, cred, .. } = *thread;
        Kept { out, taken, within, masked, address, cred }
    }

    /// It is over.
    pub fn restore(&mut self, t: Tid, kept: Kept) {
        let thread = &mut self.threads[t];
        (thread.out, thread.taken, thread.within, thread.masked) = (kept.out, kept.taken, kept.within, kept.masked);
        (thread.address, thread.cred) = (kept.address, kept.cred);
    }

    /// `t` was at `parked` when a handler ran, which its operation `op` had become; it goes on, or begins anew.
    pub fn resume_at(&mut self, t: Tid, parked: Op, op: Op) {
        let anew = matches!(parked.kind.row().signals.taken, Taken::Sleeps(_));
        self.resume(t, if anew { op } else { parked });
    }

    /// True if a handler interrupts a connect over TCP by `t`, which would go on in the kernel.
    pub fn loses_connect(&self, t: Tid, parked: &Op) -> bool {
        let socket = || self.socket_of(self.threads[t].holding).and_then(|s| self.sockets.get(s));
        parked.kind.row().channels == Channels::Connects && socket().is_some_and(|s| !s.is_local())
    }
}

/// All signals are blocked that can be, but for those of glibc's own.
pub(crate) const fn blocks_all(mask: u64) -> bool {
    mask | bit(32) | bit(33) == !(bit(SIGKILL) | bit(SIGSTOP))
}

/// True if the default action of a signal is to do nothing.
pub const fn ignored_by_default(signal: i32) -> bool {
    IGNORED & bit(signal) != 0
}

/// True if the default action of a signal is to stop the process.
pub const fn stops(signal: i32) -> bool {
    STOPS & bit(signal) != 0
}
