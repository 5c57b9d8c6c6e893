//! Hand-made traces: threads 1 and 2, created by thread 0, and what they say and do of the bytes 64 to 72.

use vsrun_model::arena::Step;
use vsrun_model::{Act, Kind, ObjId, ObjKind, Op, NONE};

use super::*;

#[derive(Clone, Copy)]
enum Do {
    /// Thread locks mutex.
    Lock(Tid, ObjId),
    Unlock(Tid, ObjId),
    Creates(Tid, Tid),
    Own(Tid),
    Disown(Tid),
    Give(Tid, Tid),
    Put(Tid),
    /// Thread writes, or reads, four bytes there.
    Sets(Tid, u64),
    Gets(Tid, u64),
    Makes(Tid),
    /// The first thread forks a process, whose only thread, the second, reads its copy.
    Forks(Tid, Tid),
}
use Do::*;

/// The violations of an execution: place, and the threads of both events.
fn found(all: &[Do]) -> Vec<(u64, Tid, Tid)> {
    let begins = |creator, thread| Note::Begins { thread, creator, process: 0, parent: NONE };
    let claims = |thread, claim| Note::Claims { thread, space: 0, address: 64, size: 8, claim, at: None };
    let touches = |thread, address, write| {
        let access = Access { space: 0, address, size: 4, write, locked: false, site: 1 };
        Note::Touches { thread, access }
    };
    let (mut trace, mut notes) = (Trace::default(), vec![begins(0, 1), begins(0, 2)]);
    for what in all {
        let (t, kind, m, state) = match *what {
            Lock(t, m) => (t, Kind::MUTEX_LOCK, m, 0),
            Unlock(t, m) => (t, Kind::MUTEX_UNLOCK, m, i64::from(t) + 1),
            other => {
                let note = match other {
                    Creates(t, new) => begins(t, new),
                    Own(t) => claims(t, Claim::Owns),
                    Disown(t) => claims(t, Claim::Disowns),
                    Give(t, to) => claims(t, Claim::HandsOver(Some(to))),
                    Put(t) => claims(t, Claim::HandsOver(None)),
                    Sets(t, at) => touches(t, at, true),
                    Gets(t, at) => touches(t, at, false),
                    Forks(creator, thread) => {
                        notes.push(Note::Begins { thread, creator, process: 1, parent: 0 });
                        let access = Access { space: 1, address: 64, size: 4, write: false, locked: false, site: 1 };
                        Note::Touches { thread, access }
                    }
                    Makes(thread) => Note::Anew { thread, space: 0, address: 64, size: 8 },
                    _ => unreachable!(),
                };
                notes.push(note);
                continue;
            }
        };
        notes.push(Note::Step { index: trace.steps.len() as u32 });
        let act = Act { tid: t, op: Op::on(kind, m), obj_kind: ObjKind::MUTEX, state, ..Act::NOTHING };
        trace.steps.push(Step { act, ..Step::default() });
        trace.seen.push(Vec::new());
    }
    trespasses(&trace, notes).iter().map(|c| (c.place.1, c.both[0].thread, c.both[1].thread)).collect()
}

const NOTHING: [(u64, Tid, Tid); 0] = [];

/// `what` in a critical section of thread `t`.
fn under(t: Tid, what: &[Do]) -> Vec<Do> {
    [&[Lock(t, 5)], what, &[Unlock(t, 5)]].concat()
}

#[test]
fn one_owner_at_a_time() {
    let section = |t| under(t, &[Own(t), Sets(t, 64), Gets(t, 68), Disown(t)]);
    assert_eq!(found(&[section(1), section(2), section(1)].concat()), NOTHING);
    // Another thread uses what somebody owns, or owns it too, whatever orders the two.
    assert_eq!(found(&[under(1, &[Own(1)]), under(2, &[Gets(2, 64)])].concat()), [(64, 1, 2)]);
    assert_eq!(found(&[under(1, &[Own(1)]), under(2, &[Own(2)])].concat()), [(64, 1, 2)]);
    // Bytes that nobody has claimed are free.
    assert_eq!(found(&[Own(1), Sets(2, 72), Sets(1, 72)]), NOTHING);
    // Of one violation it is said once for the same bytes.
    assert_eq!(found(&[Own(1), Gets(2, 64), Gets(2, 64)]).len(), 1);
    assert_eq!(found(&[Own(1), Gets(2, 64), Gets(2, 68)]).len(), 2);
}

/// Each in one transition, so that no search sees both own it.
#[test]
fn claims_come_in_an_order() {
    let once = |t| [Own(t), Sets(t, 64), Disown(t)];
    assert_eq!(found(&[once(1), once(2)].concat()), [(64, 1, 2)]);
    // A use before the claim that could come behind it.
    assert_eq!(found(&[Gets(2, 64), Own(1)]), [(64, 2, 1)]);
    assert_eq!(found(&[under(2, &[Gets(2, 64)]), under(1, &[Own(1)])].concat()), NOTHING);
    // The creation of a thread is an order.
    assert_eq!(found(&[Own(1), Sets(1, 64), Disown(1), Creates(1, 3), Own(3), Sets(3, 64)]), NOTHING);
    assert_eq!(found(&[Creates(1, 3), Own(1), Sets(1, 64), Disown(1), Own(3), Sets(3, 64)]), [(64, 1, 3)]);
}

#[test]
fn what_is_given_up_is_nobodys() {
    assert_eq!(found(&[Own(1), Disown(1), Sets(1, 64)]), [(64, 1, 1)]);
    assert_eq!(found(&[under(1, &[Own(1), Disown(1)]), under(2, &[Gets(2, 64)])].concat()), [(64, 1, 2)]);
    // Only the owner gives it up. What nobody has claimed was one's own until then.
    assert_eq!(found(&[under(1, &[Own(1)]), under(2, &[Disown(2)])].concat()), [(64, 1, 2)]);
    assert_eq!(found(&[under(1, &[Disown(1)]), under(2, &[Own(2), Sets(2, 64)])].concat()), NOTHING);
    assert_eq!(found(&[Own(1), Disown(1), Disown(1)]), [(64, 1, 1)]);
    // Memory that is allocated anew has no owner.
    assert_eq!(found(&[Own(1), Disown(1), Makes(2), Sets(2, 64)]), NOTHING);
}

#[test]
fn hand_over() {
    let gives = [Sets(1, 64), Give(1, 2)];
    assert_eq!(found(&[under(1, &gives), under(2, &[Sets(2, 64)])].concat()), NOTHING);
    assert_eq!(found(&[&gives[..], &[Sets(2, 64)]].concat()), [(64, 1, 2)]);
    assert_eq!(found(&[under(1, &gives), under(1, &[Gets(1, 64)])].concat()), [(64, 1, 1)]);
    // To another thread than the one that uses it.
    assert_eq!(found(&[under(1, &[Give(1, 3)]), under(2, &[Sets(2, 64)])].concat()), [(64, 1, 2)]);
    // To whoever comes next, and then to nobody else.
    let puts = under(1, &[Sets(1, 64), Put(1)]);
    assert_eq!(found(&[puts.clone(), under(2, &[Sets(2, 64)]), vec![Gets(2, 64)]].concat()), NOTHING);
    assert_eq!(found(&[puts.clone(), under(2, &[Own(2), Sets(2, 64)])].concat()), NOTHING);
    assert_eq!(found(&[puts.clone(), under(2, &[Sets(2, 64)]), under(1, &[Gets(1, 64)])].concat()), [(64, 2, 1)]);
    assert_eq!(found(&[puts, vec![Sets(2, 64)]].concat()), [(64, 1, 2)]);
}

#[test]
fn a_fork_reads_what_its_child_reads() {
    assert_eq!(found(&[under(1, &[Own(1)]), under(2, &[Forks(2, 3)])].concat()), [(64, 1, 2)]);
    assert_eq!(found(&[under(1, &[Own(1), Disown(1)]), under(2, &[Own(2), Forks(2, 3)])].concat()), NOTHING);
}
