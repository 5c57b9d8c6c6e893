//! Two uses of memory that are reported: why they should not be, and how an execution gets to where both are next.

use std::collections::BTreeMap;

use vsrun_model::arena::Seen;
use vsrun_model::memory::ATOMIC;
use vsrun_model::watch::Entry;
use vsrun_model::{Act, Kind, ObjId, Tid, NONE};

use super::access::{Access, Note};
use super::order::Order;
use super::words::{object, Race, Touch};
use crate::touched::WORD;
use crate::trace::Trace;

/// What of uses of memory is a bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flaws {
    /// Two that conflict and that nothing orders.
    pub unordered: bool,
    /// Those of memory that several threads use, with no lock that all of them hold.
    pub undisciplined: bool,
}

impl Flaws {
    /// All.
    pub const ALL: Flaws = Flaws { unordered: true, undisciplined: true };

    /// Some are.
    pub fn any(self) -> bool {
        self.unordered || self.undisciplined
    }
}

/// What is wrong with two uses of the same memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Flaw {
    /// They conflict, and nothing orders them: in some execution both are next at once.
    Unordered,
    /// No lock is held at all uses of the memory.
    Undisciplined,
    /// The second is made by a thread that may not, or may not yet, by what the program says of who uses the memory.
    Trespass,
}

/// Two uses of the same memory that are reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conflict {
    /// Why.
    pub flaw: Flaw,
    /// The one that came first in this execution, and the other.
    pub both: [Touch; 2],
    /// The first byte that both use; its space as in [`Access`].
    pub place: (u32, u64),
    /// The memory is an object: each of the two is an operation, and both are pending in the state after [`Touch::made`] steps.
    pub pending: bool,
}

impl Conflict {
    /// Of these uses.
    pub fn new(flaw: Flaw, first: Touch, second: Touch) -> Conflict {
        let address = first.access.address.max(second.access.address);
        Conflict { flaw, both: [first, second], place: (second.access.space, address), pending: false }
    }

    /// The steps that lead to a state in which both uses have just been made or are next, by their indices in the trace. `notes` is as for
    /// [`races`](super::races).
    ///
    /// What the thread of the first one did after it, and what comes after that, is left out where nothing orders the two: what is left
    /// is closed under happens-before, so it is the beginning of an execution, and neither thread moves on behind its use.
    pub fn steps<N: Iterator<Item = Note>>(&self, trace: &Trace, notes: N) -> Vec<usize> {
        let made = self.both.iter().map(|touch| touch.made).max().unwrap_or(0) as usize;
        if self.pending || self.flaw != Flaw::Unordered {
            return (0..made).collect();
        }
        let [first, second] = &self.both;
        let mut order = Order::new(trace);
        let mut kept = Vec::new();
        for note in notes {
            match note {
                Note::Step { index } if index as usize >= made => break,
                Note::Step { index } => {
                    order.step(index as usize);
                    let by = trace.steps.get(index as usize).map_or(NONE, |step| step.act.tid);
                    if !order.last_step_follows(by, first.thread, first.segment) {
                        kept.push(index as usize);
                    }
                }
                Note::Begins { thread, creator, process, parent } => order.begins(thread, creator, process, parent),
                Note::Ends { thread } => order.ends(thread),
                Note::Anew { .. } | Note::Touches { .. } | Note::Runs { .. } | Note::Claims { .. } => {}
            }
        }
        debug_assert!(
            second.step.is_none_or(|step| kept.contains(&(step as usize))),
            "it does not come after the first"
        );
        kept
    }
}

/// Of the races of an execution those that come first: the others may be ordered by what these decide.
///
/// Updates that are both atomic are none. Up to the second access of the first race the execution is free of races.
pub fn first_of(races: &[Race]) -> Vec<Conflict> {
    // What is left out since it is atomic comes first all the same.
    let races = || races.iter().filter(|race| !race.cut);
    let reported = races().filter(|race| !(is_atomic(&race.first.access) && is_atomic(&race.second.access)));
    let first = races().map(|race| race.second.number).min();
    let first = reported.filter(|race| Some(race.second.number) == first);
    let mut all: Vec<Conflict> = first.map(|race| Conflict::new(Flaw::Unordered, race.first, race.second)).collect();
    all.sort_by_key(|c| (c.both[0].number, c.place));
    all
}

/// It is one step for all others: a LOCK prefix, or the comparison of a futex wait.
pub fn is_atomic(access: &Access) -> bool {
    let call = Entry::FUNCTION | Entry::CALL;
    let is_futex = || i64::from(access.site & !call) == libc::SYS_futex;
    access.locked || access.site & call == call && is_futex()
}

/// An access that is an operation, of a thread that stands at it.
pub fn of_pending(act: &Act, made: u32, step: Option<u32>, trace: &Trace, second: bool) -> Option<Touch> {
    let used = act.op.kind.uses_memory();
    let word = if second { act.op.obj2 } else { act.op.obj };
    let bytes = act.op.bytes()[usize::from(second)];
    if !used || word == NONE || bytes == 0 {
        return None;
    }
    let key = trace.objects.get(word as usize)?;
    let (low, high) = (bytes.trailing_zeros(), 8 - bytes.leading_zeros());
    let access = Access {
        space: key.space,
        address: key.addr + u64::from(low),
        size: u64::from(high - low),
        write: !second && act.writes_memory(),
        locked: act.op.has(ATOMIC),
        site: act.op.arg as u32,
    };
    Some(Touch { thread: act.tid, step, access, made, segment: 0, number: 0 })
}

/// Uses of memory that is an object which are pending in the same state, conflict and are not both atomic: each pair of instructions once for
/// each place.
pub fn pending(trace: &Trace) -> Vec<Conflict> {
    let mut all: BTreeMap<(u32, u32, (u32, u64)), Conflict> = BTreeMap::new();
    let mut last_steps: BTreeMap<Tid, u32> = BTreeMap::new();
    for (made, state) in trace.seen.iter().chain([&trace.last]).enumerate() {
        if let Some(step) = made.checked_sub(1).and_then(|n| trace.steps.get(n)) {
            last_steps.insert(step.act.tid, made as u32 - 1);
        }
        let stands = |seen: &&Seen| seen.act.op.kind == Kind::MEM_WAIT || seen.choices > 0;
        let uses = state.iter().filter(stands).flat_map(|seen| {
            let step = last_steps.get(&seen.act.tid).copied();
            let of = |second| {
                let word = if second { seen.act.op.obj2 } else { seen.act.op.obj };
                of_pending(&seen.act, made as u32, step, trace, second).map(|touch| (word, touch))
            };
            [of(false), of(true)].into_iter().flatten()
        });
        let uses: Vec<(ObjId, Touch)> = uses.collect();
        for (n, (word, a)) in uses.iter().enumerate() {
            for (_, b) in uses[..n].iter().filter(|(other, b)| other == word && b.thread != a.thread) {
                let atomic = is_atomic(&a.access) && is_atomic(&b.access);
                if a.access.conflicts(&b.access) && !atomic {
                    let conflict = Conflict { pending: true, ..Conflict::new(Flaw::Unordered, *b, *a) };
                    let key = (a.access.site.min(b.access.site), a.access.site.max(b.access.site), conflict.place);
                    all.entry(key).or_insert(conflict);
                }
            }
        }
    }
    all.into_values().collect()
}

impl Conflict {
    /// The word that both use, named as an object is.
    pub fn word(&self) -> (u32, u64) {
        object(self.place.0, self.place.1 / WORD)
    }
}
