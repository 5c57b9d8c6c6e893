//! futex_waitv: a wait for several words at once, of which any may be woken.
//!
//! The kernel compares the words one after another, each as it joins the queue of that word, sleeps once it is in all of them, and leaves
//! them one after another again, whatever has woken it: a wake that still finds it in a queue is one that it has got. It gives the last
//! word that was woken (kernel/futex/waitwake.c, futex_wait_multiple_setup and futex_unqueue_multiple). Each of these is a step on one word
//! here. Between them no signal is taken, but while it sleeps.

use super::futex::Place;
use super::memory::touches_word;
use super::row::*;
use crate::state::{Awaited, AwaitedState, GAVE_UP, LEAVES_WORDS, MAX_AWAITED, SHARED, WOKEN};

kinds! {
    /// futex_waitv: compares the first word and joins its queue. `arg`: see [`Several`].
    FUTEX_WAITV = 129, "futex_waitv" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: |w, t, op, _| w.word_joins(t, op),
        records: Records::NOTHING, cells: joins, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Compares, unproven: PROVEN,
        shown: Shown { call: Call::Row, arguments: WORD_OF, outcome: Outcome::Queues, waits: None, identity: BY_OBJECTS },
    }
    /// The same with the next word. Whether one before has been woken is known from here on; the first of those is `obj2`.
    FUTEX_WAITV_NEXT = 130, "futex_waitv (next)" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: |w, t, op, _| w.word_joins(t, op),
        records: MOVED, cells: joins, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals::NEVER, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Compares, unproven: PROVEN,
        shown: Shown { call: Call::One("futex_waitv"), arguments: WORD_OF, outcome: Outcome::Queues, waits: None, identity: BY_OBJECTS },
    }
    /// It is in all queues, the first two of which are `obj` and `obj2`, and sleeps until one wakes it. Which of several that wake it was the
    /// first is nothing to the others, so that it depends on each of them, whether it is awake or not.
    FUTEX_WAITV_SLEEP = 131, "futex_waitv (asleep)" {
        operands: Operands::Objects,
        enabled: blocks(|w, t, op| u32::from(w.threads[t].woken || w.may_time_out(op)), |q| q.words_sleep()),
        perform: |w, t, op, _| w.words_sleep_perform(t, op),
        records: MOVED, cells: |act, _, cells| touch_several(act, Several::of(&act.op).n.saturating_sub(1), How::Woken { given: false }, cells), follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None,
        signals: Signals { taken: Taken::Sleeps(Leave::Words), fails: Fails::UnlessRestarted, ..Signals::NEVER }, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::WORKER, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::One("futex_waitv"), arguments: WORDS, outcome: Outcome::Nothing, waits: Some(|world, t, _, words| {
            list(words_of(&world.threads[t]).map(Thing::Object), " or ", usize::MAX, words);
            say![words, " to be woken", hopeless(world, t)];
        }), identity: |world, t, _, add| words_of(&world.threads[t]).for_each(|word| object_identity(world, word, add)) },
    }
    /// Leaves the queue of one word. It may have been woken before it stands here.
    FUTEX_WAITV_LEAVE = 132, "futex_waitv (leaves)" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: |w, t, op, _| w.word_leaves(t, op),
        records: MOVED, cells: |act, _, cells| touch_several(act, 0, How::Woken { given: false }, cells), follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals::NEVER, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::One("futex_waitv"), arguments: |op, _, words| say![words, Thing::Object(op.obj), ", left"],
            outcome: Outcome::Nothing, waits: None, identity: BY_OBJECTS },
    }
}

/// The argument of these operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Several {
    /// The word that it is about.
    pub at: u8,
    /// How many there are; where it leaves them, how many it has come to.
    pub n: u8,
    /// `Op::deadline` is one, for its sleep.
    pub timed: bool,
    /// The word after the last is none that can be read.
    pub lacks: bool,
    /// The error that it gives if none of its words was woken; 0: a deadline has passed.
    pub error: i64,
}

impl Several {
    /// As [`Op::arg`].
    pub fn pack(self) -> i64 {
        let flags = i64::from(self.timed) << 16 | i64::from(self.lacks) << 17;
        i64::from(self.at) | i64::from(self.n) << 8 | flags | -self.error << 24
    }

    fn of(op: &Op) -> Several {
        let arg = op.arg;
        let flag = |bit: u32| arg >> bit & 1 != 0;
        Several { at: arg as u8, n: (arg >> 8) as u8, timed: flag(16), lacks: flag(17), error: -(arg >> 24) }
    }
}

/// The objects of the words that a thread waits for.
fn words_of(thread: &Thread) -> impl Iterator<Item = ObjId> + '_ {
    thread.awaited[..(thread.n_awaited as usize).min(MAX_AWAITED)].iter().map(|word| word.obj)
}

/// A word, and which of how many it is.
const WORD_OF: Arguments = |op, _, words| {
    let Several { at, n, .. } = Several::of(op);
    say![words, Thing::Object(op.obj), ", word ", u32::from(at) + 1, " of ", n];
};

/// All words; the first ones where the others are not known any more.
const WORDS: Arguments = |op, thread, words| match thread {
    Some(thread) => list(words_of(thread).map(Thing::Object), ", ", usize::MAX, words),
    None => {
        let more = if Several::of(op).n > 2 { ", ..." } else { "" };
        let and = if op.obj2 == NONE { "" } else { ", " };
        say![words, Thing::Object(op.obj), and, Thing::Object(op.obj2), more];
    }
};

impl Question<'_> {
    /// Without the one that has woken it another may, which found it woken: that is not recorded.
    fn words_sleep(&self) -> Answer {
        match self.woken() {
            true => Answer::Yes,
            false if self.act.fate & WOKEN != 0 => Answer::Unknown,
            false => Answer::No,
        }
    }
}

/// A word is compared, and its queue joined.
fn joins(act: &Act, _: Effects, cells: &mut Footprint) {
    touches_word(act, cells);
    touch_several(act, Several::of(&act.op).at, How::Waits, cells);
}

/// The words that the operation names, where they are by now too; everything, where the `last` that it is about is not one of these.
fn touch_several(act: &Act, last: u8, how: How, cells: &mut Footprint) {
    if last > 1 {
        cells.touch(Cell::World, How::Writes);
    }
    cells.touch_all(act, how);
    for moved in unpacked(act.state).into_iter().filter(|&moved| moved != 0) {
        cells.touch_object(moved - 1, how);
    }
}

/// What is recorded: where the words are by now that it names, up to two: 1 + the futex to which one was moved, 0: it was not.
const MOVED: Records = Records {
    renamed: |act, to| {
        let name = |moved: u32| if moved == 0 { 0 } else { (to.object)(moved - 1) + 1 };
        act.state = packed(unpacked(act.state).map(name));
    },
    ..Records::number(|world, t, op| {
        let several = Several::of(op);
        let moved = |at: u8| {
            let word = world.threads[t].awaited[usize::from(at)];
            if word.obj == word.named {
                0
            } else {
                word.obj + 1
            }
        };
        packed(match op.kind {
            Kind::FUTEX_WAITV_LEAVE => [moved(several.at), 0],
            Kind::FUTEX_WAITV_SLEEP if several.n > 1 => [moved(0), moved(1)],
            _ => [moved(0), 0],
        })
    })
};

fn packed(moved: [u32; 2]) -> i64 {
    (u64::from(moved[0]) | u64::from(moved[1]) << 32) as i64
}

fn unpacked(state: i64) -> [u32; 2] {
    [state as u32, (state as u64 >> 32) as u32]
}

impl World {
    /// The words that `t` is about to wait for, by their objects.
    pub fn set_words(&mut self, t: Tid, words: &[ObjId]) {
        let thread = &mut self.threads[t];
        thread.n_awaited = words.len().min(MAX_AWAITED) as u32;
        for (word, &obj) in thread.awaited.iter_mut().zip(words) {
            *word = Awaited { named: obj, obj, state: AwaitedState::OUT };
        }
    }

    /// Which word `t` is about to compare.
    pub fn compares_word(&self, t: Tid) -> Option<usize> {
        let op = &self.threads[t].pending;
        let joins = matches!(op.kind, Kind::FUTEX_WAITV | Kind::FUTEX_WAITV_NEXT);
        joins.then(|| Several::of(op).at.into())
    }

    /// Compares a word and joins its queue; then comes the next, or the sleep. If it is not as expected, the ones before are left.
    fn word_joins(&mut self, t: Tid, op: &Op) -> Applied {
        let several = Several::of(op);
        let at = u32::from(several.at);
        if !self.threads[t].compare {
            return self.words_leave(t, op, several.at, errno::EAGAIN);
        }
        self.set_word(t, at, op.obj, AwaitedState::QUEUED);
        if at + 1 < several.n.into() {
            let next = self.threads[t].awaited[at as usize + 1].named;
            let arg = Several { at: several.at + 1, ..several }.pack();
            let first = self.threads[t].awaited[0].named;
            self.park(t, Op { kind: Kind::FUTEX_WAITV_NEXT, obj: next, obj2: first, arg, ..*op });
            return Applied::Parked;
        }
        if several.lacks {
            return self.words_leave(t, op, several.n, errno::EFAULT);
        }
        let words = &self.threads[t].awaited;
        let second = if several.n > 1 { words[1].named } else { NONE };
        let asleep = Op {
            kind: Kind::FUTEX_WAITV_SLEEP,
            obj: words[0].named,
            obj2: second,
            arg: Several { at: 0, ..several }.pack(),
            ..*op
        };
        self.park(t, if several.timed { asleep.until(op.deadline) } else { asleep });
        let thread = &mut self.threads[t];
        thread.woken = thread.awaited[..several.n.into()].iter().any(|word| word.state == AwaitedState::WOKEN);
        Applied::Parked
    }

    fn words_sleep_perform(&mut self, t: Tid, op: &Op) -> Applied {
        let n = Several::of(op).n;
        if self.threads[t].woken {
            self.threads[t].waits = 0;
        } else {
            self.time_passes(t, op);
            self.threads[t].waits = self.threads[t].waits.saturating_add(1);
            for at in 0..usize::from(n) {
                let obj = self.threads[t].awaited[at].obj;
                self.objects[obj].flags |= GAVE_UP;
            }
        }
        self.words_leave(t, op, n, 0)
    }

    /// Begins to leave the first `n` words.
    fn words_leave(&mut self, t: Tid, op: &Op, n: u8, error: i64) -> Applied {
        if n == 0 {
            self.threads[t].n_awaited = 0;
            return Applied::Done(error);
        }
        self.park_to_leave(t, op, Several { at: 0, n, error, ..Several::default() });
        Applied::Parked
    }

    fn park_to_leave(&mut self, t: Tid, op: &Op, several: Several) {
        let word = self.threads[t].awaited[usize::from(several.at)];
        let leave = Op {
            kind: Kind::FUTEX_WAITV_LEAVE,
            flags: 0,
            obj: word.named,
            obj2: NONE,
            arg: several.pack(),
            deadline: 0,
            ..*op
        };
        self.park(t, leave);
    }

    fn word_leaves(&mut self, t: Tid, op: &Op) -> Applied {
        let several = Several::of(op);
        let at = u32::from(several.at);
        let word = self.threads[t].awaited[at as usize];
        if word.state == AwaitedState::QUEUED {
            self.set_word(t, at, word.obj, AwaitedState::OUT);
        }
        if several.at + 1 < several.n {
            self.park_to_leave(t, op, Several { at: several.at + 1, ..several });
            return Applied::Parked;
        }
        let words = &self.threads[t].awaited[..several.n.into()];
        let last = words.iter().rposition(|word| word.state == AwaitedState::WOKEN);
        self.threads[t].n_awaited = 0;
        Applied::Done(match (last, several.error) {
            (Some(last), _) => last as i64,
            (None, 0) => errno::ETIMEDOUT,
            (None, error) => error,
        })
    }

    /// Awaited number `at` of `t` is one of `obj` from now on, and in that state.
    fn set_word(&mut self, t: Tid, at: u32, obj: ObjId, state: AwaitedState) {
        let word = &mut self.threads[t].awaited[at as usize];
        let before = core::mem::replace(word, Awaited { obj, state, ..*word });
        if before.state == AwaitedState::QUEUED {
            self.objects[before.obj].n_waiters -= 1;
            self.n_awaited -= 1;
        }
        if state == AwaitedState::QUEUED {
            self.objects[obj].n_waiters += 1;
            self.n_awaited += 1;
        }
    }

    /// The first word after `last` that is in the queue of `obj`, in the order of threads.
    pub(super) fn next_word(&self, obj: ObjId, last: Option<Place>) -> Option<Place> {
        if self.n_awaited == 0 {
            return None;
        }
        let name = |place: Place| (self.threads[place.t].uid, place.word);
        let of = |&t: &Tid| {
            let thread = &self.threads[t];
            let queued = move |&at: &u32| {
                let word = thread.awaited[at as usize];
                word.obj == obj && word.state == AwaitedState::QUEUED
            };
            (0..thread.n_awaited.min(MAX_AWAITED as u32)).filter(queued).map(move |word| Place { t, word })
        };
        let later = |&place: &Place| last.is_none_or(|last| name(place) > name(last));
        self.live.as_slice().iter().flat_map(of).filter(later).min_by_key(|&place| name(place))
    }

    /// A word of `t` gets a wake-up.
    pub(super) fn wake_word(&mut self, t: Tid, at: u32) {
        let obj = self.threads[t].awaited[at as usize].obj;
        self.set_word(t, at, obj, AwaitedState::WOKEN);
        self.threads[t].woken |= self.threads[t].pending.kind == Kind::FUTEX_WAITV_SLEEP;
    }

    /// A word of `t` waits for `obj` from now on.
    pub(super) fn move_word(&mut self, t: Tid, at: u32, obj: ObjId) {
        self.set_word(t, at, obj, AwaitedState::QUEUED);
    }

    /// `t` leaves all its words at once: a signal handler has interrupted it, or it is over.
    pub(crate) fn forget_words(&mut self, t: Tid, over: bool) {
        let mut seen = 0;
        for at in 0..self.threads[t].n_awaited.min(MAX_AWAITED as u32) {
            let word = self.threads[t].awaited[at as usize];
            if word.state == AwaitedState::QUEUED {
                // Others of a process that is over do not look.
                seen += u32::from(!over || self.objects[word.obj].key.space & SHARED != 0);
                self.set_word(t, at, word.obj, AwaitedState::OUT);
            }
        }
        self.threads[t].n_awaited = 0;
        if seen > 1 {
            self.never_comes(LEAVES_WORDS);
        }
    }
}
