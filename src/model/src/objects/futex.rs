//! Futexes: wait, wake, bitset, requeue. A wait compares when it is performed (the shim reads the word and sets
//! `Thread::compare`), then sleeps as a second operation. Where the memory of the word is an object of its own, to compare it is a use of that.

use super::cond::{wakes, WAITERS};
use super::memory::touches_word;
use super::row::*;
use crate::state::{FUTEX_TIMED, GAVE_UP, WOKEN};

kinds! {
    /// FUTEX_WAIT: compare and go to sleep. `obj2`: the memory of its word, where that is an object, with its bytes as `arg`.
    FUTEX_WAIT = 60, "futex_wait" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: |w, t, op, _| w.futex_wait_perform(t, op),
        records: Records::NOTHING, cells: compares_word, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals { taken: Taken::Queues, ..Signals::NEVER }, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Compares, unproven: PROVEN,
        shown: Shown { call: Call::Row, arguments: OBJECT, outcome: Outcome::Queues, waits: None, identity: BY_OBJECTS },
    }
    /// Second half of [`Kind::FUTEX_WAIT`].
    FUTEX_SLEEP = 61, "futex_sleep" {
        operands: Operands::Objects,
        enabled: blocks(|w, t, op| u32::from(w.threads[t].woken || w.may_time_out(op)), |q| Answer::from(q.woken())),
        perform: |w, t, _, _| w.futex_sleep_perform(t),
        records: Records::NOTHING, cells: |act, _, cells| cells.touch_all(act, How::Woken { given: act.fate & WOKEN != 0 }),
        follows: |a, b| wakes(b, a.op.obj), blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None,
        signals: Signals { taken: Taken::Sleeps(Leave::Queue), fails: Fails::UnlessRestartedOrTimed, ..Signals::NEVER }, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::WORKER, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::One("futex_wait"), arguments: OBJECT, outcome: Outcome::Returns, waits: Some(|world, t, op, words| {
            say![words, Thing::Object(op.obj), " to be woken", hopeless(world, t)];
        }), identity: BY_OBJECTS },
    }
    /// FUTEX_WAKE of `arg` waiters.
    FUTEX_WAKE = 62, "futex_wake" {
        operands: Operands::Objects, enabled: Enabled::Ways(|w, _, op| w.futex_wake_choices(op)), perform: World::futex_wake_perform,
        records: WAITERS, cells: |act, _, cells| cells.touch_all(act, How::Wakes { all: false, nobody: act.state == 0, told: false }),
        follows: NOBODY, blocks: GIVES,
        role: Role::Wakes, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::Row, arguments: |op, _, words| say![words, Thing::Object(op.obj), ", ", Many(op.arg & 0xffff_ffff)],
            outcome: Outcome::Wakes(|op| (op.arg & 0xffff_ffff) as usize), waits: None, identity: BY_OBJECTS },
    }
    /// FUTEX_REQUEUE: wake `arg & 0xffffffff` waiters of `obj`, move `arg >> 32` to `obj2`.
    FUTEX_REQUEUE = 63, "futex_requeue" {
        operands: Operands::Objects, enabled: Enabled::Ways(|w, _, op| w.futex_wake_choices(op)), perform: World::futex_requeue_perform,
        records: WAITERS, cells: wakes_and_more, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::WakesBoth, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Compares, unproven: PROVEN,
        shown: Shown::passes(Call::Row, |op, _, words| two_words(op, [" -> ", ", move "], words)),
    }
    /// FUTEX_WAKE_OP: change the word of `obj2`, wake `arg & 0xffffffff` waiters of `obj` and, if the old word was as asked
    /// (`Thread::compare`), `arg >> 32` of `obj2`.
    FUTEX_WAKE_OP = 114, "futex_wake_op" {
        operands: Operands::Objects,
        enabled: Enabled::Ways(|w, _, op| w.futex_wake_choices(op) * w.futex_wake_choices(&World::second_wake(op))),
        perform: World::futex_wake_op_perform,
        records: WAITERS, cells: wakes_and_more, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::WakesBoth, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Changes, unproven: PROVEN, shown: Shown::passes(Call::Row, |op, _, words| two_words(op, [", ", ", "], words)),
    }
}

fn compares_word(act: &Act, _: Effects, cells: &mut Footprint) {
    cells.touch_object(act.op.obj, How::Waits);
    cells.touch_object(act.op.obj2, How::Bytes { bytes: act.op.arg as u8, writes: false });
}

fn wakes_and_more(act: &Act, _: Effects, cells: &mut Footprint) {
    touches_word(act, cells);
    cells.touch_all(act, How::WakesAndMore);
}

/// Where somebody waits: a thread, and which word of several; [`NONE`]: it waits for one only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) t: Tid,
    pub(super) word: u32,
}

/// A number of waiters; programs say INT_MAX for all.
struct Many(i64);

impl Part for Many {
    fn say(&self, words: &mut dyn Words) {
        match self.0 >= i64::from(i32::MAX) {
            true => say![words, "all"],
            false => say![words, self.0],
        }
    }
}

/// Two futexes, and how many waiters of each it is about.
fn two_words(op: &Op, [to, and]: [&str; 2], words: &mut dyn Words) {
    say![words, Thing::Object(op.obj)];
    if op.obj2 != NONE {
        let (first, second) = (Many(op.arg & 0xffff_ffff), Many(op.arg >> 32));
        say![words, to, Thing::Object(op.obj2), ", wake ", first, and, second];
    }
}

impl World {
    pub(crate) fn futex_wait_perform(&mut self, t: Tid, op: &Op) -> Applied {
        if !self.threads[t].compare {
            return Applied::Done(errno::EAGAIN);
        }
        self.enqueue(op.obj, t);
        self.park(t, Op { kind: Kind::FUTEX_SLEEP, obj2: NONE, arg: 0, ..*op });
        Applied::Parked
    }

    pub(crate) fn futex_sleep_perform(&mut self, t: Tid) -> Applied {
        let woken = self.threads[t].woken;
        if !woken {
            let id = self.threads[t].pending.obj;
            self.objects[id].flags |= GAVE_UP;
        }
        self.dequeue(t);
        Applied::Done(if woken { 0 } else { errno::ETIMEDOUT })
    }

    /// The first of those that wait for `obj` after `last`, in the order of threads.
    fn next_place(&self, obj: ObjId, last: Option<Place>) -> Option<Place> {
        let name = |place: Place| (self.threads[place.t].uid, place.word);
        let mut at = match last {
            Some(Place { t, word: NONE }) => self.threads[t].queue_next,
            _ => self.objects[obj].waiters,
        };
        while at != NONE && last.is_some_and(|last| self.threads[at].uid <= self.threads[last.t].uid) {
            at = self.threads[at].queue_next;
        }
        let plain = (at != NONE).then_some(Place { t: at, word: NONE });
        plain.into_iter().chain(self.next_word(obj, last)).min_by_key(|&place| name(place))
    }

    /// All that wait for `obj`, in the order of threads.
    fn places(&self, obj: ObjId) -> impl Iterator<Item = Place> + '_ {
        core::iter::successors(self.next_place(obj, None), move |&last| self.next_place(obj, Some(last)))
    }

    /// Those of them that the bits `mask` concern.
    fn futex_matching(&self, obj: ObjId, mask: u32) -> impl Iterator<Item = Place> + '_ {
        self.places(obj).filter(move |place| place.word != NONE || self.threads[place.t].pending.mask & mask != 0)
    }

    /// Which of several waiters wakes is not specified (futex(2)): a wake of fewer than all is a choice.
    pub(crate) fn futex_wake_choices(&self, op: &Op) -> u32 {
        let waiting = self.futex_matching(op.obj, op.mask).count() as u32;
        if (op.arg & 0xffff_ffff) < waiting as i64 && op.arg & 0xffff_ffff > 0 {
            waiting
        } else {
            1
        }
    }

    /// Wakes `n` of the waiters that match, from the `first`-th in thread order on, wrapping; returns how many.
    fn futex_wake(&mut self, op: &Op, n: i64, first: u32) -> i64 {
        let mut woken = 0;
        let mut at = first as usize;
        while woken < n {
            let place = self.futex_matching(op.obj, op.mask).nth(at);
            if place.is_none() && at == 0 {
                break;
            }
            match place {
                Some(place) => self.wake_place(place),
                None => {
                    at = 0;
                    continue;
                }
            }
            woken += 1;
        }
        woken
    }

    fn wake_place(&mut self, place: Place) {
        match place.word {
            NONE => self.wake(place.t),
            word => self.wake_word(place.t, word),
        }
    }

    /// A wait has given up before this wake. What was written to the word for it, before, may have come first all the same: that is memory,
    /// on which giving up does not depend.
    fn note_late_wake(&mut self, op: &Op) {
        let gave_up = |id: ObjId| self.objects.get(id).is_some_and(|o| o.flags & GAVE_UP != 0);
        if gave_up(op.obj) || gave_up(op.obj2) {
            self.never_comes(FUTEX_TIMED);
        }
    }

    pub(crate) fn futex_wake_perform(&mut self, t: Tid, op: &Op, value: u32) -> Applied {
        self.note_late_wake(op);
        let n = self.futex_wake(op, op.arg & 0xffff_ffff, value);
        self.threads[t].out[0] = n;
        Applied::Done(0)
    }

    /// The second futex of a wake-op as a wake of its own.
    fn second_wake(op: &Op) -> Op {
        Op { kind: Kind::FUTEX_WAKE, obj: op.obj2, obj2: NONE, arg: op.arg >> 32, ..*op }
    }

    pub(crate) fn futex_wake_op_perform(&mut self, t: Tid, op: &Op, value: u32) -> Applied {
        self.note_late_wake(op);
        let firsts = self.futex_wake_choices(op);
        let mut n = self.futex_wake(op, op.arg & 0xffff_ffff, value % firsts);
        if self.threads[t].compare {
            let second = Self::second_wake(op);
            n += self.futex_wake(&second, second.arg, value / firsts);
        }
        self.threads[t].out[0] = n;
        Applied::Done(0)
    }

    pub(crate) fn futex_requeue_perform(&mut self, t: Tid, op: &Op, value: u32) -> Applied {
        if !self.threads[t].compare {
            return Applied::Done(errno::EAGAIN);
        }
        self.note_late_wake(op);
        let mut n = self.futex_wake(op, op.arg & 0xffff_ffff, value);
        let mut left = (op.arg >> 32).min(self.objects[op.obj].n_waiters as i64);
        while let Some(Place { t: moved, word }) = self.next_place(op.obj, None).filter(|_| left > 0) {
            if word == NONE {
                self.dequeue(moved);
                self.threads[moved].pending.obj = op.obj2;
                self.enqueue(op.obj2, moved);
            } else {
                self.move_word(moved, word, op.obj2);
            }
            left -= 1;
            n += 1;
        }
        self.threads[t].out[0] = n;
        Applied::Done(0)
    }
}

impl World {
    /// Wakes all waiters of `obj`: what the kernel does with the id word of a thread that ends.
    pub fn futex_wake_all(&mut self, obj: ObjId) {
        while let Some(place) = self.next_place(obj, None) {
            self.wake_place(place);
        }
    }
}
