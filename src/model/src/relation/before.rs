//! Could an operation have come earlier: is it enabled in a state from which some transitions have been taken away?
//!
//! A partial-order search reverses races: it wants to run `p`, which was performed or is blocked in some state, without
//! the transition that it races with and without what happened after that one (`dropped`), but with what was independent
//! of it (`kept`). That state has never been seen. What is known are the recorded states ([`Act::state`]) of all these
//! operations; from them the state of the objects of `p` follows: objects whose operations all depend on each other stand
//! as the first dropped one of them found them; for numbers that independent operations change (semaphores, readers), what
//! the dropped ones added is subtracted.

use crate::base::{Kind, Op, RESUMED, TELLS_LAST};
use crate::objects::question::{Answer, Did, Question};
use crate::objects::row::{Channels, Enabled, Taken};
use crate::relation::depend::dependent_after;
use crate::state::{
    Act, Effects, BEFORE, BORN_EXPIRED, CANCELLED, DIES, EXPIRED, GIVES_WAY, HELD, INTERRUPTS, SHARED_PENDING,
    TIMED_OUT, WOKEN,
};

impl Question<'_> {
    /// The answer, and the operation as it is in the state asked about. No deadline fires there, since the transition that
    /// `p` races with is enabled.
    pub fn answer(&self) -> (Answer, Act) {
        let mut act = *self.act;
        if act.op.kind == Kind::YIELD || act.fate & GIVES_WAY != 0 {
            return (if act.fate & HELD == 0 { Answer::Yes } else { Answer::Unknown }, act);
        }
        if let Some(answer) = self.as_seen() {
            return answer;
        }
        // A signal that is for its thread alone stays pending, and lets it go on in one way or another.
        let comes = |a: &Act| a.op.signals & (BEFORE | INTERRUPTS) != 0 && a.op.signals & (SHARED_PENDING | DIES) == 0;
        if self.seen.is_some_and(|s| comes(s.0)) && comes(self.act) {
            return (Answer::Yes, self.seen.map_or(self.act, |s| s.0).at_most());
        }
        let bare = |a: &Act| Act { op: Op { signals: 0, ..a.op }, ..*a };
        let concerns = |a: &Act| dependent_after(&bare(a), Effects::NONE, &bare(self.act), Effects::NONE, false);
        // With a step at which it has been killed its process may be over, whatever the other threads stand at.
        let ends_all = |a: &Act| a.pid == self.act.pid && a.op.signals & DIES != 0;
        let mut others = self.kept.iter().chain(self.dropped).map(|d| d.act);
        let own = [self.act, self.first].into_iter().chain(self.seen.map(|s| s.0)).any(tells_by_signals);
        if own || others.any(|a| tells_by_signals(a) && concerns(a) || ends_all(a)) {
            return (Answer::Unknown, act.at_most());
        }
        let (expired, cancelled) = (self.has_expired(), self.is_cancelled());
        let by_itself = self.by_itself(false);
        let answer = if expired || cancelled { self.by_itself(true) } else { by_itself };
        act.fate &= !(TIMED_OUT | EXPIRED | WOKEN);
        act.fate |= if expired { EXPIRED } else { 0 };
        act.fate |= if expired && !self.any_moment && by_itself == Answer::No { TIMED_OUT } else { 0 };
        act.fate |= if self.woken() { WOKEN } else { 0 };
        act.state = (act.op.kind.row().records.there)(self);
        (answer, act)
    }

    /// The answer where it has been seen before the first dropped transition, and nothing that stays matters to it. What is dropped is not asked.
    pub fn as_seen(&self) -> Option<(Answer, Act)> {
        let gives_way = self.act.op.kind == Kind::YIELD || self.act.fate & GIVES_WAY != 0;
        let (seen, choices) = self.seen.filter(|_| !gives_way)?;
        let depends = |k: &Did| {
            dependent_after(k.act, k.did, self.act, Effects::ANY, false)
                || dependent_after(k.act, k.did, seen, Effects::ANY, false)
        };
        (!self.kept.iter().any(depends)).then(|| (Answer::from(choices > 0), *seen))
    }

    /// Its deadline has passed, or nobody asks for that.
    pub(crate) fn has_expired(&self) -> bool {
        self.first.fate & BORN_EXPIRED != 0 || self.seen.is_some_and(|s| s.0.fate & EXPIRED != 0)
    }

    /// Its thread was asked to end.
    pub(crate) fn is_cancelled(&self) -> bool {
        (self.first.fate | self.seen.map_or(0, |s| s.0.fate)) & CANCELLED != 0
    }

    /// Whether it goes on; `let_go`: by a deadline or a cancellation.
    fn by_itself(&self, let_go: bool) -> Answer {
        let p = self.act;
        let row = p.op.kind.row();
        let Enabled::Blocks { before, reacquires, .. } = row.enabled else { return Answer::Yes };
        // A timer (timerfd) may have been set again.
        let by_timer = row.channels.awaits_timers();
        match () {
            // Where it is told who sleeps, one that does may have to go first, also before one that only tries.
            () if p.op.tries() && (row.channels.any() || !p.op.has(TELLS_LAST)) => Answer::Yes,
            () if by_timer && (let_go || self.time_has_passed()) => Answer::Unknown,
            () if let_go && !reacquires => Answer::Yes,
            () if reacquires && !let_go && !self.woken() => Answer::No,
            () => before(self),
        }
    }

    /// What let `p` go on, or showed in it, may have been a timer (timerfd) that fired while nothing else could move, which is not
    /// so in the state asked about.
    fn time_has_passed(&self) -> bool {
        let p = self.act;
        let fired = |a: &Act| a.fate & TIMED_OUT != 0;
        let changed = |d: &Did| d.found.is_some_and(|(before, after)| before != after);
        fired(p) && (p.op.kind.row().channels == Channels::Reads || p.state != 0)
            || self.dropped.iter().skip(1).any(|d| fired(d.act)) && self.kept.iter().chain(self.dropped).any(changed)
    }
}

/// Who took a signal, and in which way an operation went on, is not recorded: true for an operation that this may matter to.
pub(super) fn tells_by_signals(a: &Act) -> bool {
    match a.op.kind.row().signals.taken {
        Taken::Suspends | Taken::Waits | Taken::Stopped => true,
        Taken::KeepsPlace => a.op.signals != 0 || a.op.has(RESUMED),
        _ => a.op.signals != 0,
    }
}

/// False if `p` is not blocked by `e` having been performed: `e` gives back or wakes, or has no object with it in common.
pub fn may_block(e: &Act, p: &Act) -> bool {
    (e.op.kind.row().blocks)(e, p)
}
