//! What several families say.

use vsrun_model::{Pid, Thread, ThreadState, Tid, World};

use crate::finding::{words, Word, Words};

/// Said where a wake-up must come from somebody: whether anybody is left.
pub fn hopeless(world: &World, t: Tid) -> &'static str {
    let mut others = world.live.as_slice().iter().filter(|&&other| other != t);
    let stuck = |&other: &Tid| world.threads[other].state == ThreadState::PARKED && world.choices(other) == 0;
    if others.all(stuck) {
        " (nobody is left who could)"
    } else {
        ""
    }
}

/// Said of a thread that holds something.
pub fn if_over(world: &World, t: Tid) -> &'static str {
    if world.threads.get(t).is_some_and(Thread::alive) {
        ""
    } else {
        " (which is over)"
    }
}

/// The first four.
pub fn abridged(items: impl Iterator<Item = Words>) -> Words {
    let mut all: Vec<_> = items.take(5).collect();
    if all.len() == 5 {
        all[4] = "...".into();
    }
    Words::join(all, ", ")
}

/// All of them.
pub fn processes(all: &[Pid]) -> Words {
    let list = |all: &[Pid]| all.iter().map(|&p| Word::Process(p).into()).collect::<Vec<Words>>();
    match all {
        [] => "no process".into(),
        [one] => words!["process ", Word::Process(*one)],
        several => words!["processes ", Words::join(list(several), ", ")],
    }
}
