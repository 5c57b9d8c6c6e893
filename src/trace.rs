//! What one execution did: a step per transition, with what was pending and enabled, and how it ended.

use vsrun_model::arena::{Arena, Choice, Seen, Step};
use vsrun_model::{End, Key, Tid, Uid, World};

/// Where a thread begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Born {
    /// The thread's name.
    pub uid: Uid,
    /// Address of its start routine; 0: unknown, or the first thread of a process. The first thread of a forked process
    /// goes on in the routine of the thread that forked, so it has the same one.
    pub start: u64,
    /// It runs the program's `main`.
    pub is_main: bool,
    /// Its process has become another program, to which nothing that is known of the first one applies.
    pub exec: bool,
}

impl Born {
    fn of(world: &World, t: Tid) -> Born {
        let thread = &world.threads[t];
        let process = &world.procs[thread.pid];
        let mut routine = t;
        // A creator has a smaller index, so this ends.
        while world.threads[routine].creator < routine && first_of_process(world, routine) {
            routine = world.threads[routine].creator;
        }
        let is_main = first_of_process(world, routine);
        Born { uid: thread.uid, start: world.threads[routine].start, is_main, exec: process.execs > 0 }
    }
}

fn first_of_process(world: &World, t: Tid) -> bool {
    world.procs[world.threads[t].pid].main_thread == t
}

/// A trace.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// One record a transition, the prefix included.
    pub steps: Vec<Step>,
    /// Pending operations of all live threads in the state before each step; empty for steps of the prefix.
    pub seen: Vec<Vec<Seen>>,
    /// Pending operations in the state after the last step (threads that are parked there).
    pub last: Vec<Seen>,
    /// How it ended.
    pub end: End,
    /// Transitions that were taken but not recorded, because there were too many.
    pub unrecorded: u64,
    /// What the object numbers in operations stand for; empty if the schedule did not ask for a record.
    pub objects: Vec<Key>,
    /// All threads of the execution, by index; empty if the schedule did not ask for a record.
    pub threads: Vec<Born>,
}

impl Trace {
    /// The trace that stands in the arena of a world that stands still.
    pub fn read(arena: &Arena) -> Trace {
        let steps = arena.trace().to_vec();
        let seen = (0..steps.len()).map(|i| arena.seen_at(i).to_vec()).collect();
        let parked = |&t: &Tid| arena.world.threads[t].state == vsrun_model::ThreadState::PARKED;
        let last = arena.world.live.as_slice().iter().copied().filter(parked);
        let last = last.map(|t| Seen { act: arena.world.act(t), choices: arena.world.choices(t), asleep: 0 }).collect();
        let mut trace = Trace { steps, seen, last, end: arena.world.end, ..Trace::default() };
        trace.unrecorded = arena.unrecorded;
        if arena.plan.record {
            trace.objects = arena.world.objects.as_slice().iter().map(|o| o.key).collect();
            trace.threads = (0..arena.world.threads.len).map(|t| Born::of(&arena.world, t)).collect();
        }
        trace
    }

    /// The choices that lead to the state before step `n`.
    pub fn choices(&self, n: usize) -> Vec<Choice> {
        self.steps[..n].iter().map(|s| Choice::new(s.act.uid, s.value, s.act.op.kind)).collect()
    }
}
