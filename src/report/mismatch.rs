//! Where a replay left its scenario: at which step, what was expected, what came.

use vsrun_model::End;

use crate::finding::{Finding, ThreadStatus, ThreadView};
use crate::scenario::ScenarioStep;

/// One line about a replay of `steps` that left them and ended as `found`. `None`: it followed them all.
pub fn mismatch(steps: &[ScenarioStep], found: &Finding) -> Option<String> {
    let at = match found.end {
        End::MISMATCH => found.code as usize,
        _ => found.moves as usize,
    };
    let step = steps.get(at)?;
    let text = if step.text.is_empty() { step.op.name() } else { &step.text };
    let came = match found.end {
        End::MISMATCH => came(step, found),
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
pub fn came(step: &ScenarioStep, found: &Finding) -> String {
    let Some(thread) = found.threads.iter().rev().find(|thread| thread.uid == step.thread) else {
        return format!("there is no such thread; {}", others(found));
    };
    let Some(pending) = &thread.pending else {
        return match thread.status {
            ThreadStatus::Exited => format!("that thread is over; {}", others(found)),
            _ => format!("that thread is not at a visible operation; {}", others(found)),
        };
    };
    let (text, choices) = (pending.text.render(found), pending.alternatives);
    match thread.waits_for.first() {
        _ if pending.op.kind != step.op => format!("it came to {text}"),
        Some(reason) => format!("it cannot go on, it waits for {}", reason.render(found)),
        None if step.value >= choices => format!("alternative {} was wanted, and there are {choices}", step.value + 1),
        None => format!("it came to {text}, which was not enabled"),
    }
}

/// The threads that could have moved.
fn others(found: &Finding) -> String {
    let one = |thread: &ThreadView| {
        let pending = thread.pending.as_ref().filter(|pending| pending.alternatives > 0)?;
        Some(format!("{} {}", thread.uid, pending.text.render(found)))
    };
    let list: Vec<_> = found.threads.iter().filter_map(one).take(4).collect();
    match list.is_empty() {
        true => "nothing could move".to_string(),
        false => format!("could move: {}", list.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use vsrun_model::object::NONE;
    use vsrun_model::{Kind, ObjKind, Op, Uid};

    use super::*;
    use crate::finding::Ending;
    use crate::runtime::look::from_model;
    use crate::trace::Trace;
    use crate::words::testing::World;

    fn found(world: &World) -> Finding {
        from_model(world, &Trace::default(), &Ending::Modelled, &|_| Some("m".into()))
    }

    fn step(uid: Uid, op: Kind, value: u32) -> ScenarioStep {
        ScenarioStep { thread: uid, op, value, alternatives: 3, text: String::new(), note: None, at: None }
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
        mismatch(&[wanted.clone(), wanted], &found(&world))
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
        assert_eq!(mismatch(&[step(Uid::MAIN, Kind::TOSS, 0)], &found(&world)), None);
    }
}
