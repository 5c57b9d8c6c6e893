//! Who holds what and who waits for what, read off a world that stands still.

use vsrun_model::{ObjId, ObjKind, Object, ThreadState, Tid, World};

use crate::finding::{words, Thing, Words};

/// The locks that `t` holds.
pub fn holds(world: &World, t: Tid) -> Vec<Words> {
    let objects = world.objects.as_slice().iter().zip(0..);
    objects.filter_map(|(object, id)| hold(world, t, object, id).map(|how| words![Thing::Object(id), how])).collect()
}

fn hold(world: &World, t: Tid, object: &Object, id: ObjId) -> Option<Words> {
    let owns = object.owner == t;
    match object.key.kind {
        ObjKind::MUTEX if owns && object.count > 1 => Some(words![" (", object.count, " times)"]),
        ObjKind::MUTEX | ObjKind::SPIN | ObjKind::STREAM if owns => Some(Words::default()),
        ObjKind::RWLOCK if owns => Some(" (for writing)".into()),
        ObjKind::RWLOCK => world.read_holds(id).find(|(reader, _)| *reader == t).map(|_| " (for reading)".into()),
        ObjKind::ONCE if owns => Some(" (runs its initializer)".into()),
        _ => None,
    }
}

/// What must happen before `t` can go on; empty if nothing must.
pub fn waits_for(world: &World, t: Tid) -> Vec<Words> {
    let thread = &world.threads[t];
    if thread.state != ThreadState::PARKED || world.choices(t) > 0 {
        return Vec::new();
    }
    let process = &world.procs[thread.pid];
    if process.stopped != 0 {
        let by: Words = match world.threads.contains(process.stopper) {
            true => Thing::Thread(process.stopper).into(),
            false => "?".into(),
        };
        let (signal, whose) = (Thing::Signal(process.stopped.into()), Thing::Process(thread.pid));
        return vec![words!["SIGCONT for process ", whose, ", which thread ", by, " has stopped by ", signal]];
    }
    let waits = thread.pending.kind.row().shown.waits;
    Words::sentences(|words| waits.into_iter().for_each(|waits| waits(world, t, &thread.pending, words)))
}

#[cfg(test)]
#[path = "waits_tests.rs"]
mod tests;
