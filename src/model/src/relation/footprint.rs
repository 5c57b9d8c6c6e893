//! Where to look for the operations that one depends on, so that not all have to be asked.
//!
//! A step is kept under [`Place`]s ([`found_at`]); what depends on an operation is among the steps kept under the places
//! that it looks at ([`looks_at`]). If [`dependent_after`](crate::dependent_after) says so in any state, there is such a
//! place. The reverse does not hold: who finds a step asks `dependent_after` as well.

use crate::base::ids::{ObjId, Pid, Tid, NONE};
use crate::base::op::{Kind, REACHES, TRY};
use crate::objects::fd::{by_mask, is_fd};
use crate::objects::lock::moves_or_waits;
use crate::objects::msg::removes_queue;
use crate::relation::depend::{adds_little, class, operands, reaches_everything};
use crate::state::act::{Act, Class, Effects, EXPIRED, IN_ONCE};
use crate::state::sem::Ctl;
use crate::state::signal::SHARED_PENDING;

/// What steps are kept under.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Place {
    /// Steps of a thread.
    Thread(Tid),
    /// Steps that everything depends on.
    Wide,
    /// The last step of a thread.
    EndOf(Tid),
    /// Steps that end a thread of a process, or call for its end.
    Ends(Pid),
    /// Steps of processes that this one has created.
    Children(Pid),
    /// Those that end one of their threads.
    EndsOfChildren(Pid),
    /// Joins with a thread.
    Joins(Tid),
    /// Waits for processes by threads of one.
    Waits(Pid),
    /// Operations on once controls.
    Onces,
    /// Steps of threads that run an initializer.
    InOnce,
    /// Look-ups of names.
    Names,
    /// Removals of semaphore sets and message queues.
    Removes,
    /// Waits for record locks that may be in a circle.
    LockWaits,
    /// Lock operations of processes with several threads, which may make or break circles.
    LockMoves,
    /// Operations on descriptors that name their channels.
    Channels,
    /// Those that concern more channels than they name.
    ManyChannels,
    /// Operations on an object, by what they do to it.
    Object(ObjId, Role),
}

/// What an operation does to its object, as far as it tells which others it commutes with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Role {
    /// Waits in a queue, or leaves it.
    Waits,
    /// Takes a hold for reading, or gives it back.
    Reads,
    /// Adds to a number that is far from its limit.
    Posts,
    /// Changes semaphores of a set.
    Semop,
    /// The same, for each of them.
    SemopOn(u8),
    /// Adds a little to this semaphore of a set.
    AddsTo(u8),
    /// Anything else.
    Other,
}

/// Calls `keep` with each place that a step is kept under.
pub fn found_at(act: &Act, did: Effects, mut keep: impl FnMut(Place)) {
    keep(Place::Thread(act.tid));
    if is_wide(act, did) {
        return keep(Place::Wide);
    }
    if act.parent != NONE {
        keep(Place::Children(act.parent));
    }
    if did.has(Effects::ENDS) {
        keep(Place::EndOf(act.tid));
        if act.parent != NONE {
            keep(Place::EndsOfChildren(act.parent));
        }
    }
    if did.has(Effects::ENDS.with(Effects::EXITS)) {
        keep(Place::Ends(act.pid));
    }
    match act.op.kind {
        Kind::JOIN => keep(Place::Joins(act.op.obj)),
        Kind::WAIT => keep(Place::Waits(act.pid)),
        Kind::ONCE => keep(Place::Onces),
        Kind::NAME => keep(Place::Names),
        Kind::SYSV_CTL | Kind::MSG_CTL if removes(act) => keep(Place::Removes),
        _ => {}
    }
    let [moves, waits] = moves_or_waits(&act.op);
    if moves {
        keep(Place::LockMoves);
    }
    if waits {
        keep(Place::LockWaits);
    }
    if is_fd(act.op.kind) {
        let many = by_mask(&act.op) || act.op.has(REACHES);
        keep(if many { Place::ManyChannels } else { Place::Channels });
    }
    if act.fate & IN_ONCE != 0 {
        keep(Place::InOnce);
    }
    for o in operands(&act.op).into_iter().filter(|&o| o != NONE) {
        keep(Place::Object(o, role(o, act)));
        if role(o, act) == Role::Semop {
            on_semaphores(act, |num| {
                keep(Place::Object(o, if adds_little(act) { Role::AddsTo(num) } else { Role::SemopOn(num) }));
            });
        }
    }
}

/// True if every operation may depend on one that did this.
pub fn is_wide(act: &Act, did: Effects) -> bool {
    reaches_everything(act) || act.op.signals & SHARED_PENDING != 0 || did.wakes_others()
}

/// Calls `look` with each place where there may be steps that an operation depends on. One that [`is_wide`] depends on all
/// steps, wherever they are kept.
pub fn looks_at(act: &Act, did: Effects, mut look: impl FnMut(Place)) {
    look(Place::Wide);
    look(Place::Thread(act.tid));
    look(Place::Joins(act.tid));
    if act.parent != NONE {
        look(Place::Waits(act.parent));
    }
    if did.has(Effects::ENDS.with(Effects::EXITS)) {
        look(Place::Ends(act.pid));
    }
    // One that does not block sees that the end has not come yet.
    let sees = act.op.has(TRY) || act.fate & EXPIRED != 0;
    match act.op.kind {
        Kind::JOIN => {
            look(Place::Joins(act.op.obj));
            look(if sees { Place::Thread(act.op.obj) } else { Place::EndOf(act.op.obj) });
        }
        Kind::WAIT => {
            look(Place::Waits(act.pid));
            look(if sees { Place::Children(act.pid) } else { Place::EndsOfChildren(act.pid) });
        }
        Kind::ONCE => look(Place::InOnce),
        Kind::NAME => look(Place::Removes),
        Kind::SYSV_CTL | Kind::MSG_CTL if removes(act) => look(Place::Names),
        _ => {}
    }
    let [moves, waits] = moves_or_waits(&act.op);
    if moves {
        look(Place::LockWaits);
    }
    if waits {
        look(Place::LockMoves);
    }
    if is_fd(act.op.kind) {
        look(Place::ManyChannels);
        if by_mask(&act.op) {
            look(Place::Channels);
        }
    }
    if act.fate & IN_ONCE != 0 {
        look(Place::Onces);
    }
    for o in operands(&act.op).into_iter().filter(|&o| o != NONE) {
        looks_at_object(o, act, &mut look);
    }
}

fn looks_at_object(o: ObjId, act: &Act, look: &mut impl FnMut(Place)) {
    let mine = role(o, act);
    for theirs in [Role::Waits, Role::Reads, Role::Posts, Role::Semop, Role::Other] {
        if mine != theirs || mine == Role::Other {
            look(Place::Object(o, theirs));
        }
    }
    if mine == Role::Semop {
        on_semaphores(act, |num| {
            look(Place::Object(o, Role::SemopOn(num)));
            if !adds_little(act) {
                look(Place::Object(o, Role::AddsTo(num)));
            }
        });
    }
}

/// Operations of the same role commute, but for [`Role::Other`], and [`Role::Semop`] on the same semaphores.
fn role(o: ObjId, act: &Act) -> Role {
    match class(o, act) {
        Class::CondWait | Class::Woken => Role::Waits,
        Class::Read | Class::ReadUnlock => Role::Reads,
        Class::Up if act.state < i64::from(i32::MAX) / 2 => Role::Posts,
        Class::Sysv => Role::Semop,
        _ => Role::Other,
    }
}

fn removes(act: &Act) -> bool {
    removes_queue(&act.op) || act.op.kind == Kind::SYSV_CTL && Ctl(act.op.arg as u8) == Ctl::REMOVE
}

fn on_semaphores(act: &Act, mut each: impl FnMut(u8)) {
    (0..32u8).filter(|num| act.op.mask >> num & 1 != 0).for_each(&mut each);
}
