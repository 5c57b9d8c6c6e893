//! Could an operation have come earlier: is it enabled in a state from which some transitions have been taken away?
//!
//! A partial-order search reverses races: it wants to run `p`, which was performed or is blocked in some state, without
//! the transition that it races with and without what happened after that one (`dropped`), but with what was independent
//! of it (`kept`). That state has never been seen. What is known are the recorded states ([`Act::state`]) of all these
//! operations; from them the state of the objects of `p` follows: objects whose operations all depend on each other stand
//! as the first dropped one of them found them; for numbers that independent operations change (semaphores, readers), what
//! the dropped ones added is subtracted.

use crate::base::ids::NONE;
use crate::base::op::{Kind, Op, REACHES, RESUMED, SEVERAL, VARIANT};
use crate::objects::fd::{is_fd, moves};
use crate::objects::lock::{is_lock, overlap, owner_of, range_of};
use crate::objects::sysv::packed_semops;
use crate::relation::depend::{dependent_after, releases_read};
use crate::state::act::{Act, Effects, BORN_EXPIRED, CANCELLED, EXPIRED, GIVES_WAY, HELD, SOME_ONCE, TIMED_OUT, WOKEN};
use crate::state::lock::{DESCRIPTION, THREADED, UNLOCK, WRITE};
use crate::state::recorded::{ChannelState, LockState, QueueState, RwState, WaitState};
use crate::state::sem::{Ctl, SEMVMX};
use crate::state::signal::{BEFORE, INTERRUPTS, SHARED_PENDING};

/// Whether it is enabled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It is.
    Yes,
    /// It would block.
    No,
    /// The recorded states do not tell.
    Unknown,
}

impl From<bool> for Answer {
    fn from(yes: bool) -> Answer {
        if yes {
            Answer::Yes
        } else {
            Answer::No
        }
    }
}

/// A transition between the state asked about and the one in which `p` was seen.
#[derive(Clone, Copy, Debug)]
pub struct Did<'a> {
    /// Its operation, as it was performed.
    pub act: &'a Act,
    /// What it did beyond that.
    pub did: Effects,
    /// It happens before `p`.
    pub before: bool,
    /// The recorded state of `p` before and after it, if `p` was pending in both.
    pub found: Option<(i64, i64)>,
    /// It gave `p` its wake-up.
    pub woke: bool,
    /// The process of its thread was over when `p` was seen.
    pub over: bool,
}

/// The operation asked about.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// As it was performed, or as it stands blocked at the end.
    pub act: &'a Act,
    /// It was performed.
    pub performed: bool,
    /// When it became pending.
    pub first: &'a Act,
    /// In the state before the first dropped transition, with its number of alternatives, if it was pending then.
    pub seen: Option<(&'a Act, u32)>,
    /// The transitions that stay, in order.
    pub kept: &'a [Did<'a>],
    /// Those that are taken away, in order; the first is the one that `p` races with.
    pub dropped: &'a [Did<'a>],
    /// Another process may be waiting for a record lock.
    pub lock_waits: bool,
}

impl Question<'_> {
    /// The answer, and the operation as it is in the state asked about. No deadline fires there, since the transition that
    /// `p` races with is enabled.
    pub fn answer(&self) -> (Answer, Act) {
        let mut act = *self.act;
        if act.op.kind == Kind::YIELD || act.fate & GIVES_WAY != 0 {
            return (if act.fate & HELD == 0 { Answer::Yes } else { Answer::Unknown }, act);
        }
        if let Some((seen, choices)) = self.seen {
            let depends = |k: &Did| {
                dependent_after(k.act, k.did, self.act, Effects::ANY, false)
                    || dependent_after(k.act, k.did, seen, Effects::ANY, false)
            };
            if !self.kept.iter().any(depends) {
                return (Answer::from(choices > 0), *seen);
            }
        }
        // Who took a signal, and in which way an operation went on, is not recorded.
        let signals = |a: &Act| match a.op.kind {
            Kind::SIGSUSPEND | Kind::SIGWAIT | Kind::STOPPED => true,
            Kind::COND_WAKE | Kind::BARRIER_WAKE => a.op.signals != 0 || a.op.has(RESUMED),
            _ => a.op.signals != 0,
        };
        // A signal that is for its thread alone stays pending, and lets it go on in one way or another.
        let comes = |a: &Act| a.op.signals & (BEFORE | INTERRUPTS) != 0 && a.op.signals & SHARED_PENDING == 0;
        if self.seen.is_some_and(|s| comes(s.0)) && comes(self.act) {
            return (Answer::Yes, *self.seen.map_or(self.act, |s| s.0));
        }
        let bare = |a: &Act| Act { op: Op { signals: 0, ..a.op }, ..*a };
        let concerns = |a: &Act| dependent_after(&bare(a), Effects::NONE, &bare(self.act), Effects::NONE, false);
        let mut others = self.kept.iter().chain(self.dropped).map(|d| d.act);
        let own = [self.act, self.first].into_iter().chain(self.seen.map(|s| s.0)).any(signals);
        if own || others.any(|a| signals(a) && concerns(a)) {
            return (Answer::Unknown, act);
        }
        let seen = self.seen.map_or(0, |s| s.0.fate);
        let expired = self.first.fate & BORN_EXPIRED != 0 || seen & EXPIRED != 0;
        let cancelled = (self.first.fate | seen) & CANCELLED != 0;
        let by_itself = self.by_itself(false);
        let answer = if expired || cancelled { self.by_itself(true) } else { by_itself };
        act.fate &= !(TIMED_OUT | EXPIRED | WOKEN);
        act.fate |= if expired { EXPIRED } else { 0 };
        act.fate |= if expired && by_itself == Answer::No { TIMED_OUT } else { 0 };
        act.fate |= if self.woken() { WOKEN } else { 0 };
        (answer, act)
    }

    /// Whether it goes on; `let_go`: by a deadline or a cancellation.
    fn by_itself(&self, let_go: bool) -> Answer {
        let p = self.act;
        if p.op.tries() || never_blocks(&p.op) {
            return Answer::Yes;
        }
        if let_go && p.op.kind != Kind::COND_WAKE {
            // A timer (timerfd) may have been set again.
            let by_timer = matches!(p.op.kind, Kind::FD_READ | Kind::FD_POLL | Kind::FD_WAIT);
            return if by_timer { Answer::Unknown } else { Answer::Yes };
        }
        if matches!(p.op.kind, Kind::FD_READ | Kind::FD_POLL | Kind::FD_WAIT) && self.time_has_passed() {
            return Answer::Unknown;
        }
        match p.op.kind {
            Kind::MUTEX_LOCK | Kind::SPIN_LOCK => self.lock_is_free(p.op.obj),
            Kind::ONCE => self.once_is_free(),
            Kind::COND_WAKE if let_go || self.woken() => self.lock_is_free(p.op.obj2),
            Kind::FUTEX_SLEEP | Kind::BARRIER_WAKE => Answer::from(self.woken()),
            Kind::SEM_WAIT => Answer::from(self.semaphore() > 0),
            Kind::SYSV_OP => self.semop(),
            Kind::RECORD_LOCK | Kind::FLOCK => self.file_lock(),
            Kind::MSG_SEND | Kind::MSG_RECEIVE => self.queue(),
            Kind::RW_RDLOCK | Kind::RW_WRLOCK | Kind::RW_WRWAIT => Answer::from(self.rwlock()),
            Kind::JOIN => self.join(),
            Kind::WAIT => self.wait(),
            Kind::FD_READ | Kind::FD_WRITE | Kind::FD_ACCEPT | Kind::MQ_SEND | Kind::MQ_RECEIVE => self.channel(),
            Kind::FD_POLL if !p.op.has(VARIANT) => self.channels(),
            Kind::FD_POLL | Kind::FD_WAIT | Kind::FD_OPENED => self.as_found(),
            // Who is given the lock depends on the order of those who wait.
            Kind::FUTEX_PI_WAIT => Answer::Unknown,
            Kind::COND_DESTROY | Kind::BARRIER_DESTROY | Kind::FD_CONNECT | Kind::FD_SEND => Answer::Unknown,
            _ => Answer::No,
        }
    }

    /// What let `p` go on, or showed in it, may have been a timer (timerfd) that fired while nothing else could move, which is not
    /// so in the state asked about.
    fn time_has_passed(&self) -> bool {
        let p = self.act;
        let fired = |a: &Act| a.fate & TIMED_OUT != 0;
        let changed = |d: &Did| d.found.is_some_and(|(before, after)| before != after);
        fired(p) && (p.op.kind == Kind::FD_READ || p.state != 0)
            || self.dropped.iter().skip(1).any(|d| fired(d.act)) && self.kept.iter().chain(self.dropped).any(changed)
    }

    /// The first dropped operation on object `o`.
    fn first_on(&self, o: u32) -> Option<&Act> {
        self.dropped.iter().map(|d| d.act).find(|a| touches(&a.op, o))
    }

    /// Operations on a mutex all depend on each other: it stands as the first dropped one found it. Others that change it
    /// (the end of a thread that owns it) show in what `p` found.
    fn lock_is_free(&self, m: u32) -> Answer {
        let before = |d: &Did| match d.found {
            _ if touches(&d.act.op, m) => Some(d.act.state),
            Some((before, after)) if before != after => Some(before),
            _ => None,
        };
        let state = self.dropped.iter().find_map(before).unwrap_or(self.act.state);
        let mine = self.act.tid as i64 + 1;
        // A mutex that the thread owns lets it through or not, by its type.
        Answer::from(state == 0 || state == mine && self.act.state == mine && self.performed)
    }

    /// Operations that change a queue all depend on each other.
    fn queue(&self) -> Answer {
        let before = |d: &Did| match d.found {
            Some((before, after)) if before != after => Some(before),
            _ if touches(&d.act.op, self.act.op.obj) => Some(d.act.state),
            _ => None,
        };
        let state = self.dropped.iter().find_map(before).unwrap_or(self.act.state);
        QueueState::of(state).goes(&self.act.op).map_or(Answer::Unknown, Answer::from)
    }

    /// Operations on the same part of a file depend on each other; those that stay may all the same be about other parts of what
    /// `p` wants. What another one has found tells where it was about the same part; and one that is blocked may be in a
    /// circle, which lets it go on.
    fn file_lock(&self) -> Answer {
        let p = self.act;
        let me = owner_of(&p.op, p.pid);
        let mut state = Some(p.state);
        let meets = |a: &Act| touches(&a.op, p.op.obj) && overlap(&a.op, &p.op);
        for d in self.dropped {
            match d.found {
                Some((before, after)) if before != after => state = Some(before),
                _ if !meets(d.act) => continue,
                _ if range_of(&d.act.op) == range_of(&p.op) => state = Some(d.act.state),
                _ => state = None,
            }
            break;
        }
        // Others change locks without an operation on them: the end of a process, a close.
        let ends = self.dropped.iter().any(|d| d.did.has(Effects::ENDS));
        let granted = match (state, self.not_locked_by_kept(me)) {
            (_, Some(false)) => Some(false),
            (Some(state), kept) if !ends => match LockState::of(state, me).grants(&p.op) {
                Some(true) => kept,
                Some(false) if !self.kept.iter().any(|k| gives_locks_back(k, p)) => Some(false),
                _ => None,
            },
            _ => None,
        };
        let threads = self.dropped.iter().any(|d| d.act.op.has(THREADED) && is_lock(d.act.op.kind));
        let circles = self.lock_waits && p.op.kind == Kind::RECORD_LOCK && p.op.mask & DESCRIPTION == 0;
        let released = self.dropped.first().is_some_and(|d| d.act.op.kind == Kind::RECORD_UNLOCK && meets(d.act));
        match granted {
            Some(true) => Answer::Yes,
            Some(false) if !circles || released && !threads => Answer::No,
            _ => Answer::Unknown,
        }
    }

    /// Whether what `p` wants, if it is free before, is free after the transitions that stay, too.
    fn not_locked_by_kept(&self, me: u32) -> Option<bool> {
        let p = self.act;
        let against = |k: &&Did| {
            let takes =
                k.act.op.kind == Kind::RECORD_LOCK || k.act.op.kind == Kind::FLOCK && k.act.op.mask & UNLOCK == 0;
            let conflicts = (k.act.op.mask | p.op.mask) & WRITE != 0;
            let other = owner_of(&k.act.op, k.act.pid) != me;
            takes && conflicts && other && touches(&k.act.op, p.op.obj) && overlap(&k.act.op, &p.op)
        };
        let gives_back = p.op.kind == Kind::FLOCK && p.op.mask & UNLOCK != 0;
        let Some(last) = self.kept.iter().rposition(|k| !gives_back && against(&k)) else { return Some(true) };
        // It may have tried in vain, or have been told EDEADLK; or a later one gives the lock back.
        let taken = !self.kept[last].act.op.tries() && !self.lock_waits;
        let kept = self.kept[last + 1..].iter().all(|k| !gives_locks_back(k, p));
        (taken && kept).then_some(false)
    }

    /// Its initializer may end with any transition of the thread that runs it.
    fn once_is_free(&self) -> Answer {
        if let Some(first) = self.first_on(self.act.op.obj) {
            return Answer::from(first.state == 0);
        }
        let runs = |once: u16| self.dropped.iter().any(|d| d.before && d.act.once == once);
        if u16::try_from(self.act.op.obj + 1).is_ok_and(runs) {
            Answer::No
        } else if runs(SOME_ONCE) {
            Answer::Unknown
        } else {
            Answer::from(self.act.state == 0)
        }
    }

    /// It has its wake-up, or still gets it from one of the kept transitions.
    fn woken(&self) -> bool {
        let had = self.first.fate | self.seen.map_or(0, |s| s.0.fate);
        had & WOKEN != 0 || self.act.fate & WOKEN != 0 && !self.dropped.iter().any(|d| d.woke)
    }

    fn semaphore(&self) -> i64 {
        let added = |d: &Did| match (d.found, d.act.op.kind) {
            (Some((before, after)), _) => after - before,
            (None, Kind::SEM_POST) if touches(&d.act.op, self.act.op.obj) => 1,
            (None, Kind::SEM_WAIT) if touches(&d.act.op, self.act.op.obj) && d.act.state > 0 => -1,
            _ => 0,
        };
        self.act.state - self.dropped.iter().map(added).sum::<i64>()
    }

    /// What is performed on a channel after a dropped operation on it depends on that one and is dropped too: the channel
    /// is as the first dropped operation on it found it.
    fn channel(&self) -> Answer {
        let p = self.act;
        let Some(first) = self.dropped.iter().find(|d| may_change(d.act, p) || d.did.has(Effects::FAR)) else {
            return goes_on(ChannelState::of(p.state), &p.op);
        };
        // Which of the channels of its mask are those that it closes, the bits of watching instances do not tell.
        // Those that look for a socket by its name may meet it by their bits alone: others on it do not depend on them.
        if by_name(first.act) {
            return Answer::Unknown;
        }
        if first.did.has(Effects::FAR) || first.act.op.kind == Kind::FD_CLOSE_ALL && p.op.has(REACHES) {
            return Answer::Unknown;
        }
        let found = match first.found {
            Some((before, _)) => ChannelState::of(before),
            None if first.act.op.obj == p.op.obj => ChannelState::of(first.act.state),
            None if first.act.op.obj2 == p.op.obj => ChannelState::second(first.act.state),
            None => return Answer::Unknown,
        };
        goes_on(found, &p.op)
    }

    /// Where it depends on several things together: known if none of them has changed.
    fn as_found(&self) -> Answer {
        match self.dropped.iter().any(|d| may_change(d.act, self.act) || d.did.has(Effects::FAR)) {
            true => Answer::Unknown,
            false => Answer::from(self.act.state != 0),
        }
    }

    /// The same for several channels, of which only is known whether they have an event.
    fn channels(&self) -> Answer {
        let mut state = self.act.state;
        for d in self.dropped.iter().rev() {
            match d.found {
                Some((before, after)) => state = state & !(before ^ after) | before & (before ^ after),
                None if may_change(d.act, self.act) || d.did.has(Effects::FAR) => return Answer::Unknown,
                None => {}
            }
        }
        Answer::from(state != 0)
    }

    /// What the dropped ones added to its semaphores is undone, the last first.
    fn semop(&self) -> Answer {
        let p = self.act;
        let Some(mut values) = Values::of(p) else { return Answer::Unknown };
        for d in self.dropped.iter().rev() {
            let x = d.act;
            if let Some((before, after)) = d.found {
                values.subtract(before, after);
            } else if x.op.kind == Kind::EXIT {
                return Answer::Unknown;
            } else if touches(&x.op, p.op.obj) && x.op.kind == Kind::SYSV_CTL {
                if x.op.arg as u8 != Ctl::SET_VALUE.0 {
                    return Answer::Unknown;
                }
                values.set(x.op.obj2 % 32, x.state);
            } else if touches(&x.op, p.op.obj) && x.op.kind == Kind::SYSV_OP && x.op.mask & p.op.mask != 0 {
                let Some(theirs) = Values::of(x) else { return Answer::Unknown };
                if theirs.goes() {
                    theirs.ops().for_each(|(num, amount)| values.add(num, -amount));
                }
            }
        }
        Answer::from(values.goes())
    }

    fn rwlock(&self) -> bool {
        let p = self.act;
        let at_end = RwState::of(p.state);
        let start = self.first_on(p.op.obj).map_or(at_end, |first| RwState::of(first.state));
        let added = |a: &Act| match a.op.kind {
            Kind::RW_RDLOCK => {
                let found = RwState::of(a.state);
                i64::from(found.owner == 0 && !(found.prefers && found.announced > 0))
            }
            _ if releases_read(a) => -1,
            _ => 0,
        };
        let added = |d: &Did| match d.found {
            Some((before, after)) => i64::from(RwState::of(after).readers) - i64::from(RwState::of(before).readers),
            None if touches(&d.act.op, p.op.obj) => added(d.act),
            None => 0,
        };
        let readers = i64::from(at_end.readers) - self.dropped.iter().map(added).sum::<i64>();
        if start.owner == p.tid + 1 {
            return true;
        }
        match p.op.kind {
            Kind::RW_RDLOCK => start.owner == 0 && !(start.prefers && start.announced > 0),
            Kind::RW_WRLOCK if start.prefers => true,
            _ => start.owner == 0 && readers == 0,
        }
    }

    fn join(&self) -> Answer {
        let target = self.act.op.obj;
        if self.dropped.iter().any(|d| d.act.tid == target) {
            return Answer::from(false);
        }
        Answer::from(self.act.state != 0)
    }

    fn wait(&self) -> Answer {
        let p = self.act;
        let WaitState { target, over, alive } = WaitState::of(p.state);
        let (mut over, mut alive) = (i64::from(over), i64::from(alive));
        let child = |a: &Act| a.parent == p.pid && (target == 0 || target == a.pid + 1);
        for (i, d) in self.dropped.iter().enumerate() {
            let again = self.dropped[..i].iter().any(|x| x.act.pid == d.act.pid && x.did.has(Effects::ENDS));
            if child(d.act) && d.did.has(Effects::ENDS) {
                // Without the end of one of its threads a process is not over.
                if d.over && !again {
                    over -= 1;
                    alive += 1;
                }
            } else if let Some((before, after)) = d.found {
                let [before, after] = [before, after].map(WaitState::of);
                over -= i64::from(after.over) - i64::from(before.over);
                alive -= i64::from(after.alive) - i64::from(before.alive);
            } else if d.act.op.kind == Kind::WAIT && d.act.pid == p.pid {
                let theirs = WaitState::of(d.act.state);
                // Which child a wait for any has got is not recorded.
                if target != 0 && theirs.target != target && theirs.over > 0 {
                    return Answer::Unknown;
                }
                over += i64::from(theirs.over > 0);
            } else if d.act.op.kind == Kind::FORK && d.act.pid == p.pid {
                if target != 0 {
                    return Answer::Unknown;
                }
                alive -= 1;
            }
        }
        Answer::from(over > 0 || over + alive == 0)
    }
}

/// False if `p` is not blocked by `e` having been performed: `e` gives back or wakes, or has no object with it in common.
pub fn may_block(e: &Act, p: &Act) -> bool {
    match e.op.kind {
        Kind::MUTEX_UNLOCK | Kind::SPIN_UNLOCK | Kind::RW_UNLOCK | Kind::SEM_POST => false,
        Kind::COND_SIGNAL | Kind::COND_BROADCAST | Kind::FUTEX_WAKE | Kind::BARRIER_WAIT => false,
        Kind::RECORD_UNLOCK => e.op.has(THREADED),
        Kind::RECORD_TEST => false,
        Kind::FLOCK if e.op.mask & UNLOCK != 0 => false,
        Kind::MSG_SEND => p.op.kind != Kind::MSG_RECEIVE,
        Kind::MSG_RECEIVE => p.op.kind != Kind::MSG_SEND,
        Kind::MQ_SEND => p.op.kind != Kind::MQ_RECEIVE,
        Kind::MQ_RECEIVE => p.op.kind != Kind::MQ_SEND,
        Kind::SYSV_OP if !e.op.has(SEVERAL) && !p.op.has(SEVERAL) => (e.op.arg > 0) != (p.op.arg < 0),
        Kind::SYSV_OP if !e.op.has(SEVERAL) && e.op.arg > 0 => {
            let num = e.op.mask.trailing_zeros();
            packed_semops(p.op.arg).any(|(n, amount)| amount == 0 && u32::from(n) % 32 == num)
        }
        _ => true,
    }
}

/// True if `e` may have let a lock of a file go that stood against `p`.
fn gives_locks_back(e: &Did, p: &Act) -> bool {
    let on_file = touches(&e.act.op, p.op.obj) && is_lock(e.act.op.kind) && e.act.op.kind != Kind::RECORD_TEST;
    let changed = e.found.is_some_and(|(before, after)| before != after);
    on_file || changed || e.did.has(Effects::ENDS) || is_fd(e.act.op.kind)
}

/// True if `e` may change a channel that `p` concerns: everything may that closes descriptors.
fn may_change(e: &Act, p: &Act) -> bool {
    let looks = matches!(e.op.kind, Kind::FD_POLL | Kind::FD_WAIT | Kind::FD_EPOLL_CTL);
    // To move something takes one channel; the bits of the instances that watch it do not matter.
    let concerns = !moves(p.op.kind) || e.op.kind == Kind::FD_CLOSE_ALL || touches(&e.op, p.op.obj) && !looks;
    let concerns = concerns || by_name(e);
    is_fd(e.op.kind) && concerns && e.op.mask & p.op.mask != 0
        || matches!(e.op.kind, Kind::EXIT | Kind::KILL | Kind::EXEC)
}

/// Operations that look for a socket by its name, or on one that may come to be connected.
fn by_name(e: &Act) -> bool {
    match e.op.kind {
        Kind::FD_CONNECT | Kind::FD_SEND | Kind::FD_BIND => true,
        Kind::FD_CONTROL | Kind::FD_CLOSE => e.op.has(VARIANT),
        _ => false,
    }
}

fn goes_on(state: ChannelState, op: &Op) -> Answer {
    if state.tells(op) {
        Answer::from(state.lets(op))
    } else {
        Answer::Unknown
    }
}

/// Operations that go on in every state.
fn never_blocks(op: &Op) -> bool {
    !matches!(
        op.kind,
        Kind::SLEEP
            | Kind::JOIN
            | Kind::WAIT
            | Kind::MUTEX_LOCK
            | Kind::COND_WAKE
            | Kind::COND_DESTROY
            | Kind::RW_RDLOCK
            | Kind::RW_WRLOCK
            | Kind::RW_WRWAIT
            | Kind::SPIN_LOCK
            | Kind::BARRIER_WAKE
            | Kind::BARRIER_DESTROY
            | Kind::ONCE
            | Kind::SEM_WAIT
            | Kind::SYSV_OP
            | Kind::RECORD_LOCK
            | Kind::FLOCK
            | Kind::MSG_SEND
            | Kind::MSG_RECEIVE
            | Kind::MQ_SEND
            | Kind::MQ_RECEIVE
            | Kind::FUTEX_SLEEP
            | Kind::FUTEX_PI_WAIT
            | Kind::FD_READ
            | Kind::FD_WRITE
            | Kind::FD_POLL
            | Kind::FD_ACCEPT
            | Kind::FD_CONNECT
            | Kind::FD_SEND
            | Kind::FD_WAIT
            | Kind::FD_OPENED
            | Kind::SIGSUSPEND
            | Kind::SIGWAIT
            | Kind::STOPPED
    )
}

fn touches(op: &Op, o: u32) -> bool {
    let objects = op.kind != Kind::FD_CLOSE_ALL
        && !matches!(
            op.kind,
            Kind::JOIN | Kind::WAIT | Kind::CANCEL | Kind::KILL | Kind::TOSS | Kind::SLEEP | Kind::TIMER
        );
    objects && o != NONE && (op.obj == o || op.obj2 == o && op.kind != Kind::SYSV_CTL)
}

/// The operations of a semop and the values they found, at most four.
struct Values {
    op: Op,
    values: [i64; 4],
}

impl Values {
    /// `None`: they do not fit in a record.
    fn of(a: &Act) -> Option<Values> {
        let too_many = a.op.has(SEVERAL) && a.op.arg == 0;
        (!too_many).then(|| Values { op: a.op, values: Values::unpacked(&a.op, a.state) })
    }

    /// (semaphore, amount); a single operation is on the semaphore of its mask.
    fn ops(&self) -> impl Iterator<Item = (u32, i64)> + '_ {
        let single = (!self.op.has(SEVERAL)).then(|| (self.op.mask.trailing_zeros(), self.op.arg));
        let several = if self.op.has(SEVERAL) { self.op.arg } else { 0 };
        single.into_iter().chain(packed_semops(several).map(|(num, amount)| (u32::from(num) % 32, i64::from(amount))))
    }

    /// The values found of semaphore `num`, one for each operation on it.
    fn of_semaphore(&mut self, num: u32) -> impl Iterator<Item = &mut i64> {
        let mut nums = [NONE; 4];
        self.ops().zip(nums.iter_mut()).for_each(|((n, _), place)| *place = n);
        self.values.iter_mut().zip(nums).filter(move |(_, n)| *n == num).map(|(value, _)| value)
    }

    fn add(&mut self, num: u32, amount: i64) {
        self.of_semaphore(num).for_each(|value| *value += amount);
    }

    fn set(&mut self, num: u32, found: i64) {
        self.of_semaphore(num).for_each(|value| *value = found);
    }

    /// Takes away what was added between two recorded states of the same operation.
    fn subtract(&mut self, before: i64, after: i64) {
        let [before, after] = [before, after].map(|state| Values::unpacked(&self.op, state));
        for ((value, b), a) in self.values.iter_mut().zip(before).zip(after) {
            *value -= a - b;
        }
    }

    fn unpacked(op: &Op, state: i64) -> [i64; 4] {
        match op.has(SEVERAL) {
            true => [0, 16, 32, 48].map(|shift| state >> shift & 0xffff),
            false => [state, 0, 0, 0],
        }
    }

    /// The semop would be performed, or fail for another reason than that it would have to wait.
    fn goes(&self) -> bool {
        let mut before: [(u32, i64); 4] = [(NONE, 0); 4];
        for (i, (num, amount)) in self.ops().enumerate().take(4) {
            let so_far: i64 = before.iter().filter(|b| b.0 == num).map(|b| b.1).sum();
            let value = self.values[i] + so_far;
            if amount == 0 && value != 0 || value + amount < 0 {
                return false;
            }
            if value + amount > i64::from(SEMVMX) {
                return true;
            }
            before[i] = (num, amount);
        }
        true
    }
}
