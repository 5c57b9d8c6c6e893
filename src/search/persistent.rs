//! Persistent sets by Overman's closure: Algorithm 2 of Godefroid's thesis as Stoller states it (TR 536, Section 8,
//! Algorithm 2-MLD), over the bounds of [`super::allowed`].
//!
//! A set of threads T is closed if no thread outside may, before one of T has moved, perform an operation that depends
//! on what a thread of T has pending. Then none outside can enable what is disabled in T either, and the enabled
//! transitions of T are persistent. The pending operations of T are known with their recorded state, of those outside
//! only their bounds. What the papers' model lacks and this file adds:
//! * The end of a thread belongs to its last transition, which is not known as such beforehand. Who waits for it
//!   without an alternative cannot move before it, so need not be in T; who only looks (try, timed, any child) must be.
//! * Operations that reach everything (the end of a process, signals, cancellation, fork beside other threads) depend on
//!   whatever is pending. A yield, or a poll that gives way like one, makes the order of everything matter, already when it
//!   is reached: where one may come, or a cancellation, which lets waits go on that nothing else could end, all enabled transitions are taken.
//! * A timeout that waits for everything else to stand still cannot fire while a transition of T is enabled.

use vsrun_model::arena::Seen;
use vsrun_model::depend::{reaches_everything, GIVES_WAY, IN_ONCE, LETS_GO};
use vsrun_model::footprint::{By, Cell, Footprint, How};
use vsrun_model::{Act, Effects, Key, Kind, ObjKind};

use super::allowed::{named, AllowedOps, KindClass, Named};

/// A live thread: what it has pending and what it may still do, the pending operation included.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// The pending operation.
    pub seen: &'a Seen,
    /// The bound.
    pub bound: &'a AllowedOps,
}

/// The threads, as a mask over `members`, whose enabled transitions are a persistent set that contains those of
/// `members[seed]`. `objects` says what object numbers stand for.
pub fn persistent_set(seed: usize, members: &[Member], objects: &[Key]) -> Vec<bool> {
    let classes = [KindClass::Does(Kind::YIELD), KindClass::Poll, KindClass::Does(Kind::CANCEL)];
    let unruly = |m: &Member| m.seen.act.fate & GIVES_WAY != 0 || classes.iter().any(|&c| m.bound.has(c));
    if members.iter().any(unruly) {
        return vec![true; members.len()];
    }
    let mut inside = vec![false; members.len()];
    inside[seed] = true;
    let mut work = vec![seed];
    while let Some(mine) = work.pop() {
        for other in 0..members.len() {
            if !inside[other] && may_disturb(mine, other, members, objects) && !stuck(other, &inside, members) {
                inside[other] = true;
                work.push(other);
            }
        }
    }
    inside
}

/// True if `other` waits for the end of a thread of T, or for what it does next, and nothing else can let it go on.
fn stuck(other: usize, inside: &[bool], members: &[Member]) -> bool {
    let Seen { act, choices, .. } = members[other].seen;
    if *choices > 0 || act.fate & LETS_GO != 0 || act.op.looks() || act.op.signals != 0 {
        return false;
    }
    let inner = members.iter().zip(inside).filter(|(_, &i)| i).map(|(m, _)| &m.seen.act);
    let awaits = |&(cell, how): &(Cell, How), a: &Act| match (cell, how) {
        (Cell::Thread(target), How::Joins { .. }) => a.tid == target,
        (Cell::Children(_), How::Awaits { child, .. }) => child == a.pid + 1,
        (Cell::Initializers, How::Looks) => act.state == i64::from(a.tid) + 1,
        _ => false,
    };
    let footprint = Footprint::of(act, Effects::NONE);
    inner.into_iter().any(|a| footprint.cells().iter().any(|cell| awaits(cell, a)))
}

/// True if `other` may, while `mine` has not moved, perform an operation that depends on the pending one of `mine`.
fn may_disturb(mine: usize, other: usize, members: &[Member], objects: &[Key]) -> bool {
    let (act, bound) = (&members[mine].seen.act, members[other].bound);
    bound.anything
        || reaches_everything(act)
        || act.op.signals != 0
        || [
            KindClass::Does(Kind::EXIT),
            KindClass::Does(Kind::THREAD_EXIT),
            KindClass::Does(Kind::KILL),
            KindClass::Does(Kind::EXEC),
        ]
        .iter()
        .any(|&c| bound.has(c))
        || (bound.has(KindClass::Does(Kind::FORK)) || bound.has(KindClass::ProcessEnd)) && has_siblings(other, members)
        || waits_for(act, &members[other])
        || may_see_the_end_of(act, &members[other])
        || may_see_the_child_of(&members[mine], &members[other])
        || may_share(act, &members[other], objects)
}

/// Other threads live in the process of `m`, or may by the time it forks or ends it.
fn has_siblings(m: usize, members: &[Member]) -> bool {
    let pid = members[m].seen.act.pid;
    members[m].bound.has(KindClass::Create) || members.iter().filter(|o| o.seen.act.pid == pid).count() > 1
}

/// `act` waits for something that `other` may do: end, join or wait in its place, create the child that is waited for.
fn waits_for(act: &Act, other: &Member) -> bool {
    let theirs = &other.seen.act;
    let awaits = |&(cell, how): &(Cell, How)| match (cell, how) {
        (Cell::Thread(target), How::Joins { .. }) => {
            let joins = other.bound.has(KindClass::Does(Kind::JOIN)) || other.bound.has(KindClass::TryJoin);
            target == theirs.tid || joins
        }
        (Cell::Children(parent), How::Awaits { child, .. }) => {
            let is_child = theirs.parent == parent && (child == 0 || child == theirs.pid + 1);
            is_child || theirs.pid == parent
        }
        (Cell::Initializers, How::Looks) => theirs.fate & IN_ONCE != 0,
        _ => false,
    };
    Footprint::of(act, Effects::NONE).cells().iter().any(awaits)
}

/// The transition of `act` may end its thread or process, and `other` can tell before and after apart without having to
/// wait for it.
fn may_see_the_end_of(act: &Act, other: &Member) -> bool {
    let theirs = &other.seen.act;
    let joins = |&(cell, how): &(Cell, How)| cell == Cell::Thread(act.tid) && matches!(how, How::Joins { .. });
    Footprint::of(theirs, Effects::NONE).cells().iter().any(joins)
        || other.bound.has(KindClass::TryJoin)
        || theirs.pid == act.parent && other.bound.has(KindClass::Does(Kind::WAIT))
}

/// The transition of `mine` may create a process, and `other`, in the same process, may wait for whichever child there
/// is, or is none.
fn may_see_the_child_of(mine: &Member, other: &Member) -> bool {
    let same = mine.seen.act.pid == other.seen.act.pid;
    same && mine.bound.has(KindClass::Does(Kind::FORK)) && other.bound.has(KindClass::Does(Kind::WAIT))
}

/// `other` may operate on an object that `act` names.
fn may_share(act: &Act, other: &Member, objects: &[Key]) -> bool {
    let (Some(mine), Some(theirs)) = (named(act, objects), named(&other.seen.act, objects)) else { return true };
    let kind = |k: ObjKind| other.bound.has(KindClass::On(k));
    let elsewhere = |&(cell, how): &(Cell, How)| match (cell, how) {
        // A name goes with its semaphore set or queue.
        (Cell::Removals, How::Looks) => kind(ObjKind::NAMES) || kind(ObjKind::SYSV) || kind(ObjKind::MSGQ),
        (Cell::Removals, How::Changes) => kind(ObjKind::NAMES),
        // What concerns more channels than it names: others may have any of them.
        (Cell::Channels, How::Channels { by, .. }) if by != By::Name => {
            kind(ObjKind::CHANNEL) || other.seen.act.op.kind.row().channels.any()
        }
        _ => false,
    };
    let names = Footprint::of(act, Effects::NONE).cells().iter().any(elsewhere);
    let pending = |o: &Named| theirs.iter().any(|t| t.key == o.key && t.sems & o.sems != 0);
    names || mine.iter().any(|o| pending(o) || other.bound.touches(other.seen.act.pid, o))
}
