//! Hand-made traces: threads 1 and 2, created by thread 0, and what they do.

use super::super::access::Access;
use vsrun_model::arena::Step;
use vsrun_model::depend::RwState;
use vsrun_model::library::FUNCTIONS;
use vsrun_model::watch::Entry;
use vsrun_model::{Act, ObjKind, Op};

use super::*;

/// What comes next in an execution.
#[derive(Clone, Copy)]
enum Do {
    /// Thread locks mutex.
    Lock(Tid, ObjId),
    Unlock(Tid, ObjId),
    /// Read-write lock, which nobody holds.
    Read(Tid, ObjId),
    ReadEnd(Tid, ObjId),
    Write(Tid, ObjId),
    WriteEnd(Tid, ObjId),
    /// Something that is no lock.
    Sem(Tid),
    Join(Tid, Tid),
    Creates(Tid, Tid),
    /// Thread writes the four bytes there.
    Sets(Tid, u64),
    Gets(Tid, u64),
    Adds(Tid, u64),
    Frees(Tid, u64),
    Makes(Tid, u64),
}
use Do::*;

fn step(tid: Tid, kind: Kind, obj: u32, obj_kind: ObjKind, state: i64) -> Step {
    Step { act: Act { tid, op: Op::on(kind, obj), obj_kind, state, ..Act::NOTHING }, ..Step::default() }
}

/// The violations of an execution: place, and the threads of both uses.
fn found(all: &[Do]) -> Vec<(u64, Tid, Tid)> {
    let (mut trace, mut notes) = (Trace::default(), Vec::new());
    let begins = |creator, thread| Note::Begins { thread, creator, process: 0, parent: NONE };
    notes.extend([begins(0, 1), begins(0, 2)]);
    let rw = |owner, readers, holds| RwState { owner, readers, announced: 0, prefers: false, holds }.pack();
    let free = FUNCTIONS.iter().position(|f| f.name == "free").unwrap() as u32 | Entry::FUNCTION;
    for what in all {
        let touches = |thread, address, write, locked, site| Note::Touches {
            thread,
            access: Access { space: 0, address, size: 4, write, locked, site },
        };
        let made = match *what {
            Lock(t, m) => step(t, Kind::MUTEX_LOCK, m, ObjKind::MUTEX, 0),
            Unlock(t, m) => step(t, Kind::MUTEX_UNLOCK, m, ObjKind::MUTEX, i64::from(t) + 1),
            Read(t, l) => step(t, Kind::RW_RDLOCK, l, ObjKind::RWLOCK, rw(0, 0, false)),
            ReadEnd(t, l) => step(t, Kind::RW_UNLOCK, l, ObjKind::RWLOCK, rw(0, 1, true)),
            Write(t, l) => step(t, Kind::RW_WRLOCK, l, ObjKind::RWLOCK, rw(0, 0, false)),
            WriteEnd(t, l) => step(t, Kind::RW_UNLOCK, l, ObjKind::RWLOCK, rw(t + 1, 0, false)),
            Sem(t) => step(t, Kind::SEM_POST, 9, ObjKind::SEM, 0),
            Join(t, of) => step(t, Kind::JOIN, of, ObjKind::MUTEX, 1),
            other => {
                notes.push(match other {
                    Creates(t, new) => begins(t, new),
                    Sets(t, at) => touches(t, at, true, false, 1),
                    Gets(t, at) => touches(t, at, false, false, 2),
                    Adds(t, at) => touches(t, at, true, true, 3),
                    Frees(t, at) => touches(t, at, true, false, free),
                    Makes(thread, address) => Note::Anew { thread, space: 0, address, size: 8 },
                    _ => unreachable!(),
                });
                continue;
            }
        };
        notes.push(Note::Step { index: trace.steps.len() as u32 });
        trace.steps.push(made);
    }
    let all = violations(&trace, notes);
    all.iter().map(|c| (c.place.1, c.both[0].thread, c.both[1].thread)).collect()
}

const NOTHING: [(u64, Tid, Tid); 0] = [];

#[test]
fn one_lock_for_all_uses() {
    let with = |t, m| [Lock(t, m), Sets(t, 64), Unlock(t, m)];
    assert_eq!(found(&[with(1, 5), with(2, 5), with(1, 5)].concat()), NOTHING);
    assert_eq!(found(&[with(1, 5), with(2, 6)].concat()), [(64, 1, 2)]);
    // One of them holds another lock as well.
    let both = [Lock(1, 6), Lock(1, 5), Sets(1, 64), Unlock(1, 5), Unlock(1, 6)];
    assert_eq!(found(&[both.to_vec(), with(2, 5).to_vec()].concat()), NOTHING);
    assert_eq!(found(&[both.to_vec(), with(2, 5).to_vec(), with(1, 6).to_vec()].concat()), [(64, 2, 1)]);
    // Of one violation it is said once.
    assert_eq!(found(&[with(1, 5), with(2, 6), with(1, 7)].concat()).len(), 1);
}

#[test]
fn section_9() {
    let second = [Sem(2), Lock(2, 5), Sets(2, 64), Unlock(2, 5)];
    let first = [Sem(1), Sets(1, 64)];
    assert_eq!(found(&[&first[..], &second[..]].concat()), [(64, 1, 2)]);
    assert_eq!(found(&[&first[..1], &second[..], &first[1..]].concat()), [(64, 2, 1)]);
    // By the thread that the program was loaded by.
    assert_eq!(found(&[&[Sem(0), Sets(0, 64)], &second[..]].concat()), [(64, 0, 2)]);
}

#[test]
fn read_write_locks_by_their_mode() {
    let reads = |t| [Read(t, 5), Gets(t, 64), ReadEnd(t, 5)];
    let writes = |t| [Write(t, 5), Sets(t, 64), WriteEnd(t, 5)];
    assert_eq!(found(&[reads(1), writes(2), reads(1)].concat()), NOTHING);
    assert_eq!(found(&[reads(1), [Read(2, 5), Sets(2, 64), ReadEnd(2, 5)]].concat()), [(64, 1, 2)]);
    assert_eq!(found(&[writes(1), [Write(2, 5), Sets(2, 64), WriteEnd(2, 5)]].concat()), NOTHING);
}

#[test]
fn read_only_after_initialization() {
    // The block is given to another thread, who reads it.
    assert_eq!(found(&[Makes(1, 64), Sets(1, 64), Sem(1), Gets(2, 64), Gets(1, 64)]), NOTHING);
    assert_eq!(found(&[Makes(1, 64), Sets(1, 64), Sem(1), Gets(2, 64), Sets(1, 64)]), [(64, 2, 1)]);
    // After its next visible operation it initializes no more, nor once it has created a thread.
    assert_eq!(found(&[Makes(1, 64), Sem(1), Sets(1, 64), Gets(2, 64)]), [(64, 1, 2)]);
    assert_eq!(found(&[Makes(1, 64), Creates(1, 3), Sets(1, 64), Gets(2, 64)]), [(64, 1, 2)]);
    // Another thread has nothing to initialize.
    assert_eq!(found(&[Makes(1, 64), Sets(2, 64), Gets(1, 64)]), [(64, 2, 1)]);
    // A hand-over is none to this discipline.
    assert_eq!(found(&[Makes(1, 64), Sets(1, 64), Sem(1), Sem(2), Sets(2, 64)]), [(64, 1, 2)]);
    // What is given out again is new.
    assert_eq!(found(&[Sets(1, 64), Makes(2, 64), Sets(2, 64)]), NOTHING);
    assert_eq!(
        found(&[Lock(1, 5), Sets(1, 64), Unlock(1, 5), Lock(2, 5), Sets(2, 64), Unlock(2, 5), Frees(2, 64)]),
        NOTHING
    );
}

#[test]
fn lives_of_threads_order() {
    // Before it is created, and after it is joined.
    assert_eq!(found(&[Sets(1, 64), Creates(1, 3), Sets(3, 64), Join(1, 3), Sets(1, 64)]), NOTHING);
    assert_eq!(found(&[Creates(1, 3), Sets(1, 64), Sets(3, 64)]), [(64, 1, 3)]);
    assert_eq!(found(&[Sets(2, 64), Creates(1, 3), Sets(3, 64)]), [(64, 2, 3)]);
    // Under a lock by several, then by the one that has joined them.
    let with = |t| [Lock(t, 5), Sets(t, 64), Unlock(t, 5)];
    assert_eq!(found(&[&with(1)[..], &with(2), &[Join(0, 1), Join(0, 2), Sets(0, 64)]].concat()), NOTHING);
    assert_eq!(found(&[&with(1)[..], &with(2), &[Join(0, 1), Sets(0, 64)]].concat()), [(64, 2, 0)]);
}

#[test]
fn atomic_updates_and_bytes() {
    assert_eq!(found(&[Adds(1, 64), Adds(2, 64)]), NOTHING);
    assert_eq!(found(&[Adds(1, 64), Gets(2, 64)]), [(64, 1, 2)]);
    // Two variables in a word.
    assert_eq!(found(&[Sets(1, 64), Sets(2, 68)]), NOTHING);
    assert_eq!(found(&[Sets(1, 64), Sets(2, 66)]), [(66, 1, 2)]);
    assert_eq!(found(&[Gets(1, 64), Gets(2, 64)]), NOTHING);
}

#[test]
fn blocks_that_overlap() {
    let mut blocks = Blocks::default();
    blocks.insert(0, 100, 200, (1, 1));
    blocks.insert(0, 120, 140, (2, 1));
    blocks.insert(0, 130, 150, (3, 1));
    let by = |at| blocks.made(0, at).map(|made| made.0);
    assert_eq!(
        [99, 100, 119, 120, 129, 130, 149, 150, 199, 200].map(by),
        [None, Some(1), Some(1), Some(2), Some(2), Some(3), Some(3), Some(1), Some(1), None]
    );
    assert_eq!(blocks.made(1, 100), None);
}
