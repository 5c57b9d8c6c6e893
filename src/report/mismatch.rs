//! Where a replay left its scenario: at which step, what was expected, what came.

use vsrun_model::{End, ThreadState, Tid, World};

use super::views::{pending_text, Names};
use super::waits::waits_for;
use crate::scenario::ScenarioStep;

/// One line about a replay of `steps` that left them; `world` stands where it did. `None`: it followed them all.
pub fn mismatch(steps: &[ScenarioStep], world: &World, names: &Names) -> Option<String> {
    let at = match world.end {
        End::MISMATCH => world.end_code as usize,
        _ => world.moves as usize,
    };
    let step = steps.get(at)?;
    let text = if step.text.is_empty() { step.op.name() } else { &step.text };
    let came = match world.end {
        End::MISMATCH => came(step, world, names),
        _ => "the execution was over before".to_string(),
    };
    Some(format!(
        "the replay left the scenario at step {} of {}: expected {} {text}; {came}",
        at + 1,
        steps.len(),
        step.thread
    ))
}

/// Why the expected choice could not be made.
fn came(step: &ScenarioStep, world: &World, names: &Names) -> String {
    let all = 0..world.threads.as_slice().len() as Tid;
    let Some(t) = all.rev().find(|&t| world.threads[t].uid == step.thread) else {
        return format!("there is no such thread; {}", others(world, names));
    };
    let thread = &world.threads[t];
    match thread.state {
        ThreadState::EXITED => return format!("that thread is over; {}", others(world, names)),
        ThreadState::PARKED => {}
        _ => return format!("that thread is not at a visible operation; {}", others(world, names)),
    }
    let pending = pending_text(world, t, names);
    let choices = world.choices(t);
    match waits_for(world, t, names).first() {
        _ if thread.pending.kind != step.op => format!("it came to {pending}"),
        Some(reason) => format!("it cannot go on, it waits for {reason}"),
        None if step.value >= choices => format!("alternative {} was wanted, and there are {choices}", step.value + 1),
        None => format!("it came to {pending}, which was not enabled"),
    }
}

/// The threads that could have moved.
fn others(world: &World, names: &Names) -> String {
    let enabled = world.live.as_slice().iter().filter(|&&t| world.choices(t) > 0);
    let list: Vec<_> =
        enabled.take(4).map(|&t| format!("{} {}", (names.thread)(t), pending_text(world, t, names))).collect();
    match list.is_empty() {
        true => "nothing could move".to_string(),
        false => format!("could move: {}", list.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use vsrun_model::object::NONE;
    use vsrun_model::{Kind, ObjKind, Op, Uid};

    use super::super::testing::World;
    use super::super::views::thread_name;
    use super::*;

    fn step(uid: Uid, op: Kind, value: u32) -> ScenarioStep {
        ScenarioStep { thread: uid, op, value, alternatives: 3, text: String::new() }
    }

    /// Threads 0.1 and 0.2 at the lock that 0.1 holds, 0 at a toss; the second step of two is `wanted`.
    fn line(wanted: ScenarioStep, end: End) -> Option<String> {
        let mut world = World::with_threads(2);
        let m = world.object(ObjKind::MUTEX, 1);
        world.run(1, Op::on(Kind::MUTEX_LOCK, m), 0);
        world.publish(1, Op::on(Kind::MUTEX_UNLOCK, m));
        world.publish(2, Op::on(Kind::MUTEX_LOCK, m));
        world.publish(0, Op::new(Kind::TOSS).arg(1));
        world.moves = 1;
        world.finish(end, NONE, NONE, 1);
        let names = Names { object: &|_| "m".into(), thread: &|t| thread_name(&world, t), process: &|_| String::new() };
        mismatch(&[wanted.clone(), wanted], &world, &names)
    }

    #[test]
    fn what_was_expected_and_what_came() {
        let first = Uid::MAIN.child(1);
        let second = Uid::MAIN.child(2);
        let cases = [
            (step(first, Kind::MUTEX_LOCK, 0), "0.1 mutex_lock; it came to pthread_mutex_unlock(m)"),
            (step(second, Kind::MUTEX_LOCK, 0), "0.2 mutex_lock; it cannot go on, it waits for m, held by thread 0.1"),
            (step(Uid::MAIN, Kind::TOSS, 2), "0 toss; alternative 3 was wanted, and there are 2"),
            (
                step(Uid::MAIN.child(9), Kind::TOSS, 0),
                "0.9 toss; there is no such thread; could move: 0 VS_toss(1), 0.1 pthread_mutex_unlock(m)",
            ),
        ];
        for (wanted, text) in cases {
            let expected = format!("the replay left the scenario at step 2 of 2: expected {text}");
            assert_eq!(line(wanted, End::MISMATCH).as_deref(), Some(expected.as_str()));
        }
        let early = line(step(first, Kind::TOSS, 0), End::FINISHED).unwrap();
        assert!(early.ends_with("step 2 of 2: expected 0.1 toss; the execution was over before"), "{early}");
    }

    #[test]
    fn nothing_to_say_when_all_steps_were_taken() {
        let mut world = World::new();
        world.moves = 1;
        world.finish(End::DEADLOCK, 0, NONE, 0);
        let names = Names { object: &|_| String::new(), thread: &|_| String::new(), process: &|_| String::new() };
        assert_eq!(mismatch(&[step(Uid::MAIN, Kind::TOSS, 0)], &world, &names), None);
    }
}
