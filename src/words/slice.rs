//! On which steps an end depends: the backward slice of happens-before from the last steps of the threads that it is about. A step happens
//! before another one if both are of one thread or depend on each other, or by way of a third; what does not happen before the end could
//! have been left out or come later.

use vsrun_model::arena::Step;
use vsrun_model::depend::dependent;
use vsrun_model::{End, Tid, World};

use crate::finding::Ending;

/// Steps that are looked at, the last ones: each is compared with those behind it. Earlier ones count as needed.
const MOST: usize = 1000;

/// The threads that the end of an execution is about; `cycle`: those of a circle of waiting.
pub fn concerned(world: &World, ending: &Ending, cycle: &[Tid]) -> Vec<Tid> {
    match (ending, world.end) {
        _ if !cycle.is_empty() => cycle.to_vec(),
        (Ending::Crash { .. } | Ending::Divergence, _) => vec![world.current],
        (Ending::Modelled, End::ASSERT | End::FREED | End::MISUSE) => vec![world.current, world.end_thread],
        _ => world.live.as_slice().to_vec(),
    }
}

/// For each step, whether the end of these threads depends on it.
pub fn slice(steps: &[Step], threads: &[Tid]) -> Vec<bool> {
    let mut needed = vec![true; steps.len()];
    let first = steps.len().saturating_sub(MOST);
    let mut later: Vec<&Step> = Vec::new();
    for (n, step) in steps.iter().enumerate().skip(first).rev() {
        let before = |other: &&Step| other.act.tid == step.act.tid || dependent(&step.act, &other.act, true);
        needed[n] = threads.contains(&step.act.tid) || later.iter().any(before);
        if needed[n] {
            later.push(step);
        }
    }
    needed
}

#[cfg(test)]
mod tests {
    use super::*;
    use vsrun_model::{Act, Kind, ObjKind, Op, Uid};

    #[test]
    fn what_a_lock_hands_on_is_needed_and_what_others_do_is_not() {
        let lock = |t: Tid, object: u32, kind: Kind| {
            let op = Op::on(kind, object);
            let act = Act { uid: Uid::MAIN.child(t), tid: t, pid: 0, obj_kind: ObjKind::MUTEX, op, ..Act::NOTHING };
            Step { act, choices: 1, ..Step::default() }
        };
        let steps = [
            lock(1, 7, Kind::MUTEX_LOCK),
            lock(3, 9, Kind::MUTEX_LOCK),
            lock(1, 7, Kind::MUTEX_UNLOCK),
            lock(2, 7, Kind::MUTEX_LOCK),
            lock(3, 9, Kind::MUTEX_UNLOCK),
        ];
        assert_eq!(slice(&steps, &[2]), [true, false, true, true, false]);
        assert_eq!(slice(&steps, &[3]), [false, true, false, false, true]);
        let many: Vec<Step> = (0..MOST + 2).map(|_| lock(3, 9, Kind::MUTEX_LOCK)).collect();
        let needed = slice(&many, &[2]);
        assert_eq!(needed.iter().filter(|needed| **needed).count(), 2);
    }
}
