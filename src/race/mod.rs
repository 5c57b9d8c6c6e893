//! Do threads touch memory in an order that visible operations keep?
//!
//! Executions switch at visible operations only. If in every execution of a search that is complete at that granularity each two accesses
//! that conflict are ordered by what is visible, then no further switch could show anything new. If two are not, there is an execution
//! with a switch between accesses that this search does not know of.
//!
//! An edge of happens-before counts only where the reduction keeps the order of its two operations: an edge across a pair that commutes
//! (a `sem_wait` with enough there, a failing trylock) would hide the race behind it in every trace that is explored. So the edges are
//! the dependencies of the transitions, in the states recorded, and nothing else ([`Order`]). That more depends on each other than has to
//! hides no race: let two accesses of different threads be the next of both in some execution with switches anywhere, the first such
//! pair. Up to there it is equivalent to one with switches at operations only, a beginning of a trace that is explored; neither thread
//! has made a further operation, so there is nothing that either access could happen before.
//!
//! The accesses of an execution come as [`Note`]s, in its order; [`races`] is a function of these and of the trace.

mod access;
mod by_step;
mod circles;
mod conflict;
mod contended;
mod copies;
mod direct;
mod lockset;
mod order;
mod owners;
mod sections;
mod tso;
mod words;

pub use crate::held::{Held, Hold};
pub use access::{Access, Claim, Note};
pub use by_step::by_step;
pub use circles::{Edge, LockOrder};
pub use conflict::{first_of, pending, Conflict, Flaw, Flaws};
pub use direct::{arrows, Arrow, Tie};
pub use lockset::violations;
pub use order::Order;
pub use owners::trespasses;
pub use tso::{loads_overtake, Overtaking};
pub use words::{Race, Touch, Words};

use std::collections::{BTreeSet, HashMap};

use contended::{Contended, PAGE};
use vsrun_model::{Pid, Tid, NONE};

use crate::touched::WORD;
use crate::trace::Trace;

/// The pairs of accesses of an execution that conflict and that nothing orders: each pair of instructions once for each piece of memory.
/// What was pending has to be recorded in all states of the trace.
///
/// `objects`: memory of which each use is an operation, by space and the address of its word; that is left out.
pub fn races<N>(trace: &Trace, notes: N, objects: BTreeSet<(u32, u64)>) -> Vec<Race>
where
    N: IntoIterator<Item = Note, IntoIter: Clone>,
{
    let notes = notes.into_iter();
    let (contended, mut copied) = contended(notes.clone());
    if !contended.any() {
        return Vec::new();
    }
    let mut order = Order::new(trace);
    let mut words = Words::without(objects, contended);
    for note in notes {
        match note {
            Note::Begins { thread, creator, process, parent } => {
                for access in copied.remove(&process).into_iter().flatten() {
                    words.touch(&order, creator, Access { space: parent, ..access });
                }
                order.begins(thread, creator, process, parent);
            }
            Note::Step { index } => order.step(index as usize),
            Note::Ends { thread } => order.ends(thread),
            Note::Anew { space, address, size, .. } => words.anew(space, address, size),
            Note::Touches { thread, access } => words.touch(&order, thread, access),
            Note::Runs { thread, access, times, stride } => words.touch_each(&order, thread, (access, times, stride)),
            Note::Claims { .. } => {}
        }
    }
    words.into_races()
}

/// Where accesses of these can conflict, and what forks read, as [`copies::read`] tells it.
fn contended(notes: impl Iterator<Item = Note> + Clone) -> (Contended, HashMap<Pid, Vec<Access>>) {
    let mut contended = Contended::default();
    let (mut forks, mut meet) = (Vec::new(), false);
    each(
        (notes.clone(), PAGE as u64 * WORD),
        |thread, access| meet |= contended.page_of(thread, access),
        |fork| forks.push(fork),
    );
    let copied = if forks.is_empty() { HashMap::new() } else { copies::read(notes.clone()) };
    let of_forks = || {
        let of = |&(creator, process, parent): &(Tid, Pid, Pid)| {
            let all = copied.get(&process).into_iter().flatten();
            all.map(move |access| (creator, Access { space: parent, ..*access }))
        };
        forks.iter().flat_map(of)
    };
    of_forks().for_each(|(thread, access)| meet |= contended.page_of(thread, &access));
    if meet {
        each((notes, WORD), |thread, access| contended.touch(thread, access), |_| {});
        of_forks().for_each(|(thread, access)| contended.touch(thread, &access));
    }
    (contended, copied)
}

/// Accesses with their threads, those of a run as [`Access::covering`] gives them, and processes that are forked: creator, process and parent.
fn each(
    (notes, granule): (impl Iterator<Item = Note>, u64),
    mut touch: impl FnMut(Tid, &Access),
    mut forks: impl FnMut((Tid, Pid, Pid)),
) {
    for note in notes {
        match note {
            Note::Begins { parent: NONE, .. } => {}
            Note::Begins { creator, process, parent, .. } => forks((creator, process, parent)),
            Note::Touches { thread, access } => touch(thread, &access),
            Note::Runs { thread, access, times, stride } => {
                access.covering(times, stride, granule).for_each(|access| touch(thread, &access));
            }
            Note::Step { .. } | Note::Ends { .. } | Note::Anew { .. } | Note::Claims { .. } => {}
        }
    }
}
