//! Dependency between operations, conditional on recorded state (Stoller, TR 536, Section 7 and Figure 3).
//!
//! Two operations are independent in a state if neither enables or disables the other and their order does not
//! matter. `dependent` may say "dependent" too often, never too seldom. It is derived from what transitions touch
//! ([`Footprint`]): here is what each of them touches whatever its kind, and which ways to touch a cell commute.

use crate::base::{ObjId, Op, NONE, TRY};
use crate::objects::mutex::owns;
use crate::objects::reach::Reach;
use crate::objects::row::{Lock, Operands, Renaming, Role};
use crate::objects::rwlock::holds;
use crate::state::{
    Act, By, Cell, Effects, Footprint, How, BY_CLOCK, DIES, GIVES_WAY, IN_ONCE, LETS_GO, SEMVMX, SHARED_PENDING,
    TIMED_OUT, WOKEN,
};

impl Footprint {
    /// What the transition `act` touches, which did `did` beyond its operation.
    pub fn of(act: &Act, did: Effects) -> Footprint {
        let mut cells = Footprint::NOTHING;
        let wide = did.wakes_others() || act.op.signals & BY_CLOCK != 0 || act.fate & (TIMED_OUT | GIVES_WAY) != 0;
        cells.touch(Cell::World, if wide { How::Writes } else { How::Reads });
        // Who takes a signal that is pending for the process rests on which threads there are, and on what they block, which is no
        // operation. That a signal is pending for one thread alone changes nothing for others.
        // When a process that has been killed is over: its other threads go no further. What others can tell of that are the operations at
        // its end.
        let shared = act.op.signals & (SHARED_PENDING | DIES) != 0;
        cells.touch(Cell::Process(act.pid), if shared { How::Writes } else { How::Reads });
        cells.touch_end(act, did);
        // The initializer may end with any transition.
        if act.fate & IN_ONCE != 0 {
            cells.touch(Cell::Initializers, How::Changes);
        }
        (act.op.kind.row().cells)(act, did, &mut cells);
        cells
    }

    /// Any transition of a thread may be its last, or that of its process. Whether the end of a process is visible depends on which
    /// other threads it still has.
    fn touch_end(&mut self, act: &Act, did: Effects) {
        let ends = did.has(Effects::ENDS);
        self.touch(Cell::Thread(act.tid), How::Moves { ends });
        if act.parent != NONE {
            self.touch(Cell::Children(act.parent), How::ChildMoves { child: act.pid, ends });
        }
        if ends {
            self.touch(Cell::Left(act.pid), How::Changes);
            self.touch(Cell::Ids, How::Changes);
        }
        if did.has(Effects::EXITS) {
            self.touch(Cell::Left(act.pid), How::Looks);
        }
    }

    /// Whether two transitions touch a cell in ways that do not commute; `conditional`: in the states recorded.
    pub fn meets(&self, other: &Footprint, conditional: bool) -> bool {
        let met =
            |(cell, how): &(Cell, How)| other.cells().iter().any(|(c, h)| c == cell && !how.commutes(h, conditional));
        self.cells().iter().any(met)
    }

    /// True if every operation depends on it.
    pub fn is_wide(&self) -> bool {
        self.cells().contains(&(Cell::World, How::Writes))
    }
}

impl How {
    /// Whether two ways to touch a cell commute: in the states recorded if `conditional`, else in every state.
    pub fn commutes(&self, other: &How, conditional: bool) -> bool {
        use How::*;
        match (*self, *other) {
            (Reads, Reads) | (Looks, Looks) | (Changes, Changes) | (Shares, Shares) => true,
            (ChildMoves { .. }, ChildMoves { .. }) => true,
            // One that does not block also sees that the end has not come yet.
            (Moves { ends }, Joins { sees }) | (Joins { sees }, Moves { ends }) => !ends && !sees,
            (Awaits { child: target, sees }, ChildMoves { child, ends })
            | (ChildMoves { child, ends }, Awaits { child: target, sees }) => {
                !ends && !sees || target != 0 && target != child + 1
            }
            (Channels { mask, by }, Channels { mask: other, by: also }) => mask & other == 0 || by.commutes(also),
            (Waits | Woken { .. }, Waits | Woken { .. }) => true,
            // Woken is woken, in every state from then on.
            (Woken { given }, Wakes { .. } | WakesAndMore) | (Wakes { .. } | WakesAndMore, Woken { given }) => given,
            // Two that wake everybody wake nobody twice. What has woken nobody has looked.
            (Wakes { all: a, nobody: m, told }, Wakes { all: b, nobody: n, told: also }) => {
                m && n && told && also || conditional && (a && b || m && n)
            }
            // Figure 3: while the lock is owned the owner may acquire it again and all others fail or wait.
            (Acquires { owned: a }, Acquires { owned: b }) => conditional && a && b,
            (Acquires { owned }, Looks) | (Looks, Acquires { owned }) => conditional && owned,
            (Adds { value: a }, Adds { value: b }) => is_far_from_limit(a.max(b)),
            (Adds { value: a }, Takes { value: b }) | (Takes { value: b }, Adds { value: a }) => {
                conditional && a.min(b) >= 1
            }
            (Takes { value: a }, Takes { value: b }) => conditional && a.min(b) >= 2,
            (Semop { on: a, .. }, Semop { on: b, .. }) => a & b == 0 || semops_commute(*self, *other, conditional),
            (Bytes { bytes: a, writes: m }, Bytes { bytes: b, writes: n }) => a & b == 0 || !m && !n,
            (Arrives { .. }, Arrives { .. }) | (Leaves { .. }, Leaves { .. }) => true,
            // Whoever leaves has met all those who arrived for that round.
            (Arrives { round }, Leaves { round: other }) | (Leaves { round }, Arrives { round: other }) => {
                round != other
            }
            (FileLock { first, last, tests }, FileLock { first: from, last: to, tests: also }) => {
                // F_GETLK tells how far the lock reaches that it finds, which those next to it change.
                let apart = !(tests || also) && (last < from || to < first);
                apart || tests && also
            }
            // Both would move the place of one description.
            (File { through: Some(a) }, File { through: Some(b) }) => {
                a == crate::state::files::PLACED || b == crate::state::files::PLACED || a != b && a != 0 && b != 0
            }
            (Names { set: a, looks: m }, Names { set: b, looks: n }) => a & b == 0 || m && n,
            _ => false,
        }
    }
}

impl By {
    /// For operations with a common channel in their masks.
    fn commutes(self, other: By) -> bool {
        match (self, other) {
            (By::MaskLook, By::MaskLook) => true,
            (By::Mask | By::MaskLook, _) | (_, By::Mask | By::MaskLook) => false,
            (By::NameAndWakes, By::NameAndWakes) => false,
            (By::Name | By::NameAndWakes, By::Name | By::NameAndWakes) => true,
        }
    }
}

/// A semaphore that so many more may be posted to.
pub(crate) fn is_far_from_limit(value: i64) -> bool {
    value < i64::from(i32::MAX) / 2
}

/// Two semops on overlapping semaphores: single increments and decrements by value, as for POSIX semaphores.
fn semops_commute(a: How, b: How, conditional: bool) -> bool {
    let (How::Semop { amount: x, value: v, .. }, How::Semop { amount: y, value: w, .. }) = (a, b) else { return false };
    let value = v.min(w);
    match () {
        () if x == 0 || y == 0 => false,
        () if x > 0 && y > 0 => v.max(w) + x + y < SEMVMX as i64 / 2,
        () if x < 0 && y < 0 => conditional && value >= -x - y,
        () if x > 0 => conditional && value >= -y && value + x <= SEMVMX as i64,
        () => conditional && value >= -x && value + y <= SEMVMX as i64,
    }
}

/// Operations whose effects reach beyond the objects they name, or whose enabledness depends on what everybody else
/// does (a timeout fires when nothing else can run, a yield waits for somebody to move). A timed operation that does
/// not need its timeout is like one without.
pub fn reaches_everything(a: &Act) -> bool {
    Footprint::of(a, Effects::NONE).is_wide()
}

/// Whether the order of `a` and `b`, operations of different threads, can matter, for the state recorded in them.
/// With `conditional` false, whether it can matter in any state. Operations of one thread are always dependent.
pub fn dependent(a: &Act, b: &Act, conditional: bool) -> bool {
    dependent_after(a, Effects::ANY, b, Effects::ANY, conditional)
}

/// [`dependent`] of transitions of which is known what they did beyond their operations: one that does not end its thread
/// is nothing to those who wait for the end.
pub fn dependent_after(a: &Act, a_did: Effects, b: &Act, b_did: Effects, conditional: bool) -> bool {
    Footprint::of(a, a_did).meets(&Footprint::of(b, b_did), conditional)
}

/// True if `later` could not have been performed without what `earlier`, of another thread, had added to a semaphore: there was just enough when it
/// was performed. Two such may each commute with what came between them, as pairs; all that took from the semaphore before does not commute
/// with `later` then, so without `earlier` there would not have been enough.
pub fn needs(earlier: &Act, later: &Act) -> bool {
    let added = Footprint::of(earlier, Effects::NONE);
    let gives = |how: &How, taken: &How| match (*how, *taken) {
        (How::Adds { .. }, How::Takes { value }) => value == 1,
        (How::Semop { on, amount, .. }, How::Semop { on: from, amount: takes, value }) => {
            on & from != 0 && amount > 0 && takes < 0 && value == -takes
        }
        _ => false,
    };
    let taken = Footprint::of(later, Effects::NONE);
    let same = |(cell, how): &(Cell, How)| taken.cells().iter().any(|(c, h)| c == cell && gives(how, h));
    added.cells().iter().any(same)
}

/// The part of [`dependent_after`] that is about what `a` did beyond its operation; `b` is of another thread.
pub fn dependent_by_effects(a: &Act, a_did: Effects, b: &Act, b_did: Effects) -> bool {
    let mut effects = Footprint::NOTHING;
    effects.touch_end(a, a_did);
    a_did.wakes_others() || effects.meets(&Footprint::of(b, b_did), false)
}

/// The operation of `performed` as it was in an earlier state, where it was recorded as `stood`, as far as that matters to
/// transitions made there. A deadline that could have fired then and did not is nothing to others; nor are channels that
/// an operation on descriptors reached then and did not when it was performed, nor the circle that a lock would have closed: what
/// changed that is on one of its objects itself, or moves circles.
pub fn as_it_stood(stood: &Act, performed: &Act) -> Act {
    let fate = stood.fate & !TIMED_OUT | performed.fate & TIMED_OUT;
    let (mut op, mut state) = (stood.op, stood.state);
    if op.kind == performed.op.kind {
        let row = op.kind.row();
        if row.channels.any() {
            (op.mask, op.flags) = (performed.op.mask, performed.op.flags);
        }
        if row.records.settles {
            state = performed.state;
        }
    }
    Act { fate, op, state, ..*stood }
}

/// An operation that was expected in one form and came in another one: as it depends on all that either depends on.
pub fn either(came: &Act, expected: &Act) -> Act {
    if came.op.kind != expected.op.kind {
        return *came;
    }
    let fate = (came.fate | expected.fate) & !WOKEN | came.fate & expected.fate & WOKEN;
    let op = Op { signals: came.op.signals | expected.op.signals, ..came.op };
    let state = if came.only_looks() { expected.state } else { came.state };
    let act = Act { fate, op, state, ..*came };
    Reach::of(came).zip(Reach::of(expected)).map_or(act, |(a, b)| a.with(b).put(&act))
}

/// Whether `q`, which did `q_did` in a state before `s`, would do something else after it: its thread would be the last of
/// its process then, whose end is visible. Of two that end their threads the one that is the last depends on the other
/// by [`Effects::EXITS`]; what has been performed as the first only does not tell.
pub fn ends_otherwise(s: &Act, s_did: Effects, q: &Act, q_did: Effects) -> bool {
    // What makes the end visible may come from either.
    let visible = s_did.with(q_did).has(Effects::NEARLY_EXITS);
    s.pid == q.pid && s_did.has(Effects::LEAVES_ONE) && q_did.has(Effects::ENDS) && visible
}

/// Whether the composed transition `sleeper` has to be looked at again after `moving`: the operations of one thread each,
/// performed without a switch in between (Stoller, TR 536, Section 7, (2)), each with what its transition did beyond it.
/// The first operations of both are recorded in the state in which both are pending, the others in some state.
///
/// `excepts`: with the exception (4), that an acquire and then the release of a lock, nothing else done to it in between,
/// leave the lock as it was. It holds for the one that sleeps only: whatever others do to the lock meanwhile, `sleeper`
/// could have come before all that. (4) has it on either side; but where it is `moving` that passes through a lock which
/// `sleeper` keeps, it can come before `sleeper` and not after it, and what is reached by that order would be lost. And both must have no
/// memory in common that one of them writes, which is not looked at here.
pub fn dependent_composed(sleeper: &[(Act, Effects)], moving: &[(Act, Effects)], excepts: bool) -> bool {
    let excepted = |x: &Act, y: &Act| {
        let lock = x.op.obj == y.op.obj && x.uid != y.uid && only_locks(x).is_some() && only_locks(y).is_some();
        excepts && lock && passes_through(sleeper, x.op.obj)
    };
    let depend = |(i, (x, x_did)): (usize, &(Act, Effects)), (j, (y, y_did)): (usize, &(Act, Effects))| {
        let conditional = i == 0 && j == 0;
        dependent_by_effects(x, *x_did, y, *y_did)
            || dependent_by_effects(y, *y_did, x, *x_did)
            || dependent_after(x, Effects::NONE, y, Effects::NONE, conditional) && !excepted(x, y)
    };
    sleeper.iter().enumerate().any(|x| moving.iter().enumerate().any(|y| depend(x, y)))
}

/// For an operation that does nothing but acquire (`true`) or release a mutex or spin lock, which of the two.
pub fn only_locks(act: &Act) -> Option<bool> {
    let plain = !act.op.looks() && act.op.signals == 0;
    match act.op.kind.row().role {
        Role::Acquires(Lock::Mutex | Lock::Again | Lock::Spin) if plain => Some(true),
        Role::Releases(Lock::Mutex | Lock::Spin) if plain => Some(false),
        _ => None,
    }
}

/// All that `acts` do to lock `o` is to acquire and then to release it.
fn passes_through(acts: &[(Act, Effects)], o: ObjId) -> bool {
    let on = || acts.iter().map(|(act, _)| act).filter(|act| act.op.operands().contains(&o));
    on().map(only_locks).eq([Some(true), Some(false)])
}

/// False if there is no state in which both `a` and `b` are enabled and their order matters: so that a race between
/// them, one executed, the other pending then, cannot be reversed. When in doubt, true.
pub fn may_be_coenabled(a: &Act, b: &Act) -> bool {
    let follows = |a: &Act, b: &Act| {
        let lasting = !a.op.has(TRY) && a.fate & LETS_GO == 0 && a.op.signals == 0;
        lasting && (a.op.kind.row().follows)(a, b)
    };
    !(follows(a, b) || follows(b, a))
}

/// `a` releases a lock, by its operation or as the first part of a wait, and its thread holds it.
pub fn releases_held(a: &Act) -> bool {
    match a.op.kind.row().role {
        Role::Releases(Lock::Either) => holds(a),
        Role::Releases(_) | Role::WaitsOn => owns(a),
        _ => false,
    }
}

impl Act {
    /// In the state recorded it changes nothing of the object that it names, and commutes with others that do not: a lock that is tried
    /// in vain, an initializer that has run, a wake-up for nobody, a comparison that fails. Put before what it found, it may do more.
    pub fn only_looks(&self) -> bool {
        let looks = |&(cell, how): &(Cell, How)| match how {
            How::Looks | How::Wakes { nobody: true, told: true, .. } => matches!(cell, Cell::Object(_)),
            How::Bytes { writes, .. } => !writes && self.op.writes_memory(),
            _ => false,
        };
        Footprint::of(self, Effects::NONE).cells().iter().any(looks)
    }

    /// In a state that is not known: as it does most.
    pub fn at_most(&self) -> Act {
        let most = self.op.kind.row().records.most.filter(|_| self.only_looks());
        Act { state: most.unwrap_or(self.state), ..*self }
    }

    /// The same with other numbers for threads, processes and objects.
    pub fn renamed(&self, to: &Renaming) -> Act {
        let mut act = *self;
        act.tid = (to.thread)(self.tid);
        act.pid = (to.process)(self.pid);
        if self.once != 0 && self.once != crate::state::act::SOME_ONCE {
            let once = (to.object)(u32::from(self.once) - 1) + 1;
            act.once = u16::try_from(once).unwrap_or(crate::state::act::SOME_ONCE);
        }
        let process = |p| if p == NONE { NONE } else { (to.process)(p) };
        act.parent = process(self.parent);
        match self.op.kind.row().operands {
            Operands::Nothing => {}
            Operands::Thread => act.op.obj = (to.thread)(self.op.obj),
            Operands::Process => act.op.obj = process(self.op.obj),
            Operands::One | Operands::Objects => {
                for (operand, place) in self.op.operands().into_iter().zip([&mut act.op.obj, &mut act.op.obj2]) {
                    *place = if operand == NONE { *place } else { (to.object)(operand) };
                }
            }
        }
        (self.op.kind.row().records.renamed)(&mut act, to);
        act
    }
}
