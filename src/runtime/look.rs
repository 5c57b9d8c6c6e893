//! A world that stands still, looked at once: from here on it is plain data.

use vsrun_model::{Key, ProcState, ThreadState, Tid, World};

use crate::finding::{Ending, Finding, ObjectView, Pending, ProcessView, ThreadStatus, ThreadView};
use crate::trace::Trace;
use crate::words::ends::{cycle, line};
use crate::words::identity::identity;
use crate::words::names::{memory_names, object_name};
use crate::words::ops::pending_text;
use crate::words::slice::{concerned, slice};
use crate::words::steps::{mark_replaced, step_views};
use crate::words::waits::{holds, waits_for};

/// What the model knows of it; `symbol` knows what lies at the place of an object. Programs, start routines, call stacks
/// and signals are left to those who can look into the processes.
pub fn from_model(world: &World, trace: &Trace, ending: &Ending, symbol: &dyn Fn(&Key) -> Option<String>) -> Finding {
    let (kind, summary) = line(world, ending, None);
    let process = |p: &vsrun_model::Process| ProcessView {
        vpid: p.vpid,
        program: String::new(),
        execs: p.execs,
        over: matches!(p.state, ProcState::ZOMBIE | ProcState::REAPED).then_some(p.status),
    };
    let objects = world.objects.as_slice().iter().zip(0..);
    let holders =
        |id, write| world.channel_of(id).map_or(Vec::new(), |channel| world.holders(channel, write).collect());
    let circle: Vec<Tid> = cycle(world).iter().flatten().map(|link| link.thread).collect();
    let needed = slice(&trace.steps, &concerned(world, ending, &circle));
    let mut steps = step_views(&trace.steps);
    steps.iter_mut().zip(needed).for_each(|(step, needed)| step.matters = needed);
    mark_replaced(&mut steps, &|id| world.objects.contains(id).then(|| object_name(world, id, symbol)));
    Finding {
        kind,
        identity: identity(world, ending, trace.last_kind),
        summary,
        ending: ending.clone(),
        end: world.end,
        code: world.end_code,
        message: String::from_utf8_lossy(world.message()).into_owned(),
        signal: None,
        cycle: cycle(world),
        race: None,
        gone: None,
        threads: (0..world.threads.len).map(|t| thread(world, t)).collect(),
        processes: world.procs.as_slice().iter().map(process).collect(),
        objects: objects
            .map(|(object, id)| ObjectView {
                kind: object.key.kind,
                name: object_name(world, id, symbol),
                bytes: memory_names(world, id, symbol),
                made: None,
                readers: holders(id, false),
                writers: holders(id, true),
            })
            .collect(),
        steps,
        unrecorded: trace.unrecorded,
        moves: world.moves,
        tosses: false,
        touches: Vec::new(),
        touches_lost: 0,
        rounds: Vec::new(),
    }
}

fn thread(world: &World, t: Tid) -> ThreadView {
    let thread = &world.threads[t];
    let alternatives = world.choices(t);
    let status = match thread.state {
        ThreadState::PARKED if alternatives == 0 => ThreadStatus::Waiting,
        ThreadState::PARKED => ThreadStatus::Ready,
        ThreadState::EXITED | ThreadState::FREE => ThreadStatus::Exited,
        _ if thread.fiber.in_call[0] != 0 => ThreadStatus::InCall,
        _ => ThreadStatus::Running,
    };
    let pending = || Pending { op: thread.pending, alternatives, text: pending_text(world, t) };
    ThreadView {
        uid: thread.uid,
        process: thread.pid,
        start: String::new(),
        begins: None,
        given: given(world, t),
        creator: world.threads.contains(thread.creator).then_some(thread.creator),
        status,
        frames: Vec::new(),
        pending: (thread.state == ThreadState::PARKED).then(pending),
        holds: if status == ThreadStatus::Exited { Vec::new() } else { holds(world, t) },
        waits_for: waits_for(world, t),
    }
}

/// The name that the program has given a thread: a new one begins with that of its creator.
fn given(world: &World, t: Tid) -> String {
    let name = |t: Tid| {
        let bytes = world.threads.get(t).map_or([0; 16], |thread| thread.fiber.name);
        let len = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..len]).into_owned()
    };
    let own = name(t);
    if own == name(world.threads[t].creator) {
        return String::new();
    }
    own
}

#[cfg(test)]
mod tests {
    use vsrun_model::{End, Kind, ObjKind, Op};

    use super::*;
    use crate::finding::{BugKind, Names};
    use crate::words::testing::{crossed_locks, World};

    fn finding(world: &World) -> Finding {
        from_model(world, &Trace::default(), &Ending::Modelled, &|_| None)
    }

    #[test]
    fn a_circle_as_plain_data() {
        let found = finding(&crossed_locks(&[], (0x10, 0x20)));
        assert_eq!((found.kind, found.end), (Some(BugKind::Deadlock), End::CYCLE));
        assert_eq!(
            found.line(),
            "2 threads wait for each other: thread#1 (0.1) for mutex 0x20, thread#2 (0.2) for mutex 0x10"
        );
        assert_eq!((found.threads.len(), found.threads[2].status), (3, ThreadStatus::Waiting));
        let pending = found.threads[2].pending.as_ref().unwrap();
        assert_eq!((pending.text.render(&found), pending.alternatives), ("pthread_mutex_lock(mutex 0x10)".into(), 0));
        assert_eq!(found.threads[2].holds[0].render(&found), "mutex 0x20");
        assert_eq!((found.process(0), found.object(77)), ("1001".into(), "?".into()));
        let json = serde_json::to_string(&found).unwrap();
        assert_eq!(serde_json::from_str::<Finding>(&json).unwrap(), found);
    }

    #[test]
    fn threads_that_are_over() {
        let mut world = World::with_threads(1);
        let m = world.object(ObjKind::MUTEX, 1);
        world.run(1, Op::on(Kind::MUTEX_LOCK, m), 0);
        world.thread_exit(1);
        let found = finding(&world);
        assert_eq!((found.threads[1].status, found.threads[1].holds.len()), (ThreadStatus::Exited, 0));
        assert_eq!(found.kind, None);
    }
}
