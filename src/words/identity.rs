//! Which bugs are the same bug. Equal deadlocks are one bug: the same threads at the same operations on the same
//! objects, whatever led to it. Names do not depend on the schedule; indices of tables do, and are kept out.

use vsrun_model::kind::{object_identity, process_identity, thread_identity};
use vsrun_model::{End, Kind, ThreadState, Tid, World};

use super::ends::who_goes_round;
use crate::base::hash::Hash;
use crate::finding::{BugKind, Ending};

/// A bug that the model does not know (crash, divergence), by what the caller has of it: signal name, functions, thread.
/// Parts that depend on the schedule (times, process ids) must not be among them.
fn text_fingerprint(kind: BugKind, parts: &[&str]) -> u64 {
    let mut hash = Hash::new(kind.name());
    parts.iter().for_each(|part| hash.bytes(part.as_bytes()));
    hash.value()
}

/// What tells one bug from another: equal for equal bugs. `last`: the kind of the last step.
pub fn identity(world: &World, ending: &Ending, last: Option<Kind>) -> u64 {
    match ending {
        Ending::Crash { signal, .. } => place(world, last, BugKind::Crash, *signal),
        Ending::Divergence => place(world, last, BugKind::Divergence, 0),
        _ => fingerprint(world),
    }
}

/// What tells one crash or divergence from another before it has been looked at: signal, thread, last operation.
fn place(world: &World, last: Option<Kind>, kind: BugKind, signal: i32) -> u64 {
    let uid = world.threads.get(world.current).map_or(String::new(), |t| t.uid.to_string());
    text_fingerprint(kind, &[&signal.to_string(), &uid, last.map_or("start", Kind::name)])
}

/// How a world ended, in a number: equal for equal bugs.
fn fingerprint(world: &World) -> u64 {
    let mut hash = Hash::new("end");
    hash.number(world.end.0.into());
    match world.end {
        End::DEADLOCK => {
            let parked = world.live.as_slice().iter().copied();
            waits(world, parked.filter(|&t| world.threads[t].state == ThreadState::PARKED), &mut hash);
        }
        End::CYCLE => {
            waits(world, world.cycle[..(world.n_cycle as usize).min(world.cycle.len())].iter().copied(), &mut hash)
        }
        End::MISUSE => {
            hash.number(world.end_code.into());
            hash.number(thread_identity(world, world.end_thread));
            object_identity(world, world.end_obj, &mut |n| hash.number(n));
        }
        End::LOOP => waits(world, who_goes_round(world), &mut hash),
        End::LIVELOCK => hash.number(process_identity(world, world.end_obj)),
        End::STATUS | End::KILLED => {
            hash.number(world.end_code.into());
            hash.number(thread_identity(world, world.end_thread));
        }
        _ => hash.bytes(world.message()),
    }
    hash.value()
}

/// The sorted set of (thread, operation, objects).
fn waits(world: &World, threads: impl Iterator<Item = Tid>, hash: &mut Hash) {
    let mut all: Vec<Vec<u64>> = threads.filter(|&t| world.threads.contains(t)).map(|t| wait(world, t)).collect();
    all.sort();
    all.into_iter().flatten().for_each(|n| hash.number(n));
}

fn wait(world: &World, t: Tid) -> Vec<u64> {
    let op = &world.threads[t].pending;
    let mut parts = vec![thread_identity(world, t), op.kind.0.into()];
    (op.kind.row().shown.identity)(world, t, op, &mut |n| parts.push(n));
    parts
}

#[cfg(test)]
mod tests {
    use super::super::testing::{crossed_locks, World};
    use super::*;

    #[test]
    fn texts() {
        let of = |parts: &[&str]| text_fingerprint(BugKind::Crash, parts);
        assert_eq!(of(&["SIGSEGV", "f"]), of(&["SIGSEGV", "f"]));
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["a"]), text_fingerprint(BugKind::Divergence, &["a"]));
    }

    /// The objects are met in the other order, so that they have other indices.
    #[test]
    fn equal_deadlocks_are_equal() {
        let one = crossed_locks(&[0x10, 0x20], (0x10, 0x20));
        let same = crossed_locks(&[0x20, 0x30, 0x10], (0x10, 0x20));
        let other = crossed_locks(&[0x10, 0x20], (0x20, 0x10));
        assert_eq!((one.end, same.end, other.end), (End::CYCLE, End::CYCLE, End::CYCLE));
        assert_eq!(fingerprint(&one), fingerprint(&same));
        assert_ne!(fingerprint(&one), fingerprint(&other));
    }

    #[test]
    fn messages_tell_assertions_apart() {
        let of = |text: &str| {
            let mut world = World::new();
            world.finish_with(End::ASSERT, 0, &[text.as_bytes()]);
            fingerprint(&world)
        };
        assert_eq!(of("x > 0"), of("x > 0"));
        assert_ne!(of("x > 0"), of("x > 1"));
    }
}
