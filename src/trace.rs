//! What one execution did: a step per transition, with what was pending and enabled, and how it ended.

use vsrun_model::aims::{Pair, TimesUsed};
use vsrun_model::arena::{Arena, Choice, Policy, Seen, Step};
use vsrun_model::depend::EXPIRED;
use vsrun_model::progress::{Advance, Progress, NO_PROGRESS};
use vsrun_model::signal::{ALTERNATIVES, NUMBER};
use vsrun_model::states::State;
use vsrun_model::watch::Entry;
use vsrun_model::{End, Key, Kind, Tid, Uid, World};

use crate::incomplete::{not_proven_in, seen_in, Reason, Reasons};
use crate::touched::Touched;

/// Where a thread begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Born {
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
        let process = &world.procs[world.threads[t].pid];
        let mut routine = t;
        // A creator has a smaller index, so this ends.
        while world.threads[routine].creator < routine && first_of_process(world, routine) {
            routine = world.threads[routine].creator;
        }
        let is_main = first_of_process(world, routine);
        Born { start: world.threads[routine].fiber.start, is_main, exec: process.execs > 0 }
    }
}

fn first_of_process(world: &World, t: Tid) -> bool {
    world.procs[world.threads[t].pid].main_thread == t
}

/// See [`Trace::circles`].
fn circles(world: &World) -> Vec<u64> {
    if world.n_cycle == 0 || world.cycle_at == 0 {
        return Vec::new();
    }
    [world.cycle_at].into_iter().chain(world.later_cycles).filter(|&at| at > 0).collect()
}

/// An execution that was cut since it made no progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idle {
    /// For so many transitions.
    pub transitions: u64,
    /// The last progress: whose, after how many transitions, and what. `None`: there was none.
    pub last: Option<(Uid, u64, Progress)>,
}

impl Idle {
    fn read(arena: &Arena) -> Option<Idle> {
        let world = &arena.world;
        if world.end != End::DEPTH || world.end_code != NO_PROGRESS {
            return None;
        }
        let progress = world.progress;
        let whose = world.threads.get(progress.by).filter(|_| progress.what != Advance::NOTHING);
        let last = whose.map(|thread| (thread.uid, progress.at, progress));
        Some(Idle { transitions: world.moves - progress.at, last })
    }
}

/// The states that an execution was told to have come to.
fn states(arena: &Arena) -> Vec<State> {
    let (from, to) = (arena.plan.prefix_len as usize, arena.taken as usize);
    match arena.plan.states {
        true => (from..=to).map(|at| arena.states.get(at).copied().unwrap_or_default()).collect(),
        false => Vec::new(),
    }
}

/// The number of the signal that the thread of a step has taken: before its operation, in the place of it, or where a call returned; 0: none.
pub fn signal_taken(step: &Step) -> u16 {
    let ways = step.act.op.signals;
    let others = step.choices.saturating_sub((ways & ALTERNATIVES).count_ones());
    let taken = if ways & ALTERNATIVES == 0 { step.act.op.kind == Kind::RETURN } else { step.value >= others };
    if taken {
        ways & NUMBER
    } else {
        0
    }
}

/// A trace.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// One record a transition, the prefix included.
    pub steps: Vec<Step>,
    /// Pending operations of all live threads in the state before each step; empty for steps of the prefix
    /// before the first that was to be recorded.
    pub seen: Vec<Vec<Seen>>,
    /// Pending operations in the state after the last step (threads that are parked there).
    pub last: Vec<Seen>,
    /// The kind of the last step, recorded or not. `None`: there was no step.
    pub last_kind: Option<Kind>,
    /// How it ended.
    pub end: End,
    /// It was cut since it made no progress.
    pub idle: Option<Idle>,
    /// Names of the threads, by index.
    pub threads: Vec<Uid>,
    /// Where the threads begin, by index.
    pub born: Vec<Born>,
    /// The first thread of each process, by index of the process.
    pub processes: Vec<Tid>,
    /// Where the objects live, by index.
    pub objects: Vec<Key>,
    /// Flavour and condition bits of the objects, by index, at the end of the execution.
    pub flags: Vec<u32>,
    /// With [`Policy::WALK`]: the transitions that each thread has made.
    pub moves: Vec<(Uid, u32)>,
    /// With [`Policy::SURW`]: what threads used.
    pub uses: Vec<TimesUsed>,
    /// With [`Policy::RFF`] and [`Policy::NOVEL`]: what came after what.
    pub pairs: Vec<Pair>,
    /// How many threads there were.
    pub made: u32,
    /// A thread had to give way since it had run on for so long, whatever the policy says.
    pub gave_way: bool,
    /// Transitions that were taken but not recorded, because there were too many.
    pub unrecorded: u64,
    /// After how many transitions threads had come to wait for each other in a circle; the first, then others.
    pub circles: Vec<u64>,
    /// Timeouts could fire at any moment.
    pub any_moment: bool,
    /// Timers that send signals were made.
    pub timers: bool,
    /// Why a search that takes this for one of its executions is not complete, whatever the search.
    pub saw: Reasons,
    /// What has happened for which reductions are not proven.
    pub beyond: Reasons,
    /// What each transition did to memory, by step, for a search that leaves orders of critical sections out by it; empty:
    /// that is not known.
    pub touched: Vec<Touched>,
    /// Where states are told apart: those before the steps behind the prefix, and that after the last one.
    pub states: Vec<State>,
    /// The program has looked at the clock.
    pub told_time: bool,
}

impl Trace {
    /// The trace that stands in the arena of a world that stands still.
    pub fn read(arena: &Arena) -> Trace {
        let mut steps = arena.trace().to_vec();
        if let Some(last) = steps.last_mut() {
            last.did = last.did.with(arena.world.did);
        }
        // An execution that goes on from a mark may have more of what came before it than was asked for.
        let from = match arena.plan.record {
            true => arena.plan.prefix_len.saturating_sub(arena.plan.record_back) as usize,
            false => usize::MAX,
        };
        let seen = |i: usize| if i < from { Vec::new() } else { arena.seen_at(i).to_vec() };
        let seen = (0..steps.len()).map(seen).collect();
        let parked = |&t: &Tid| arena.world.threads[t].state == vsrun_model::ThreadState::PARKED;
        let last = arena.world.live.as_slice().iter().copied().filter(parked);
        // Of a state at which an execution was cut off it was asked who is enabled: who gives way to others is not.
        let asked = arena.world.end == End::DEPTH;
        let enabled = |t: Tid| arena.enabled.as_slice().iter().find(|e| e.0 == t).map_or(0, |e| e.1);
        let choices = |t: Tid| if asked { enabled(t) } else { arena.world.choices(t) };
        let last = last.map(|t| Seen { act: arena.world.act(t), choices: choices(t), asleep: 0 }).collect();
        let known = arena.plan.record;
        let walk = arena.plan.policy == Policy::WALK;
        let world = &arena.world;
        Trace {
            steps,
            seen,
            last,
            last_kind: (arena.taken > 0).then_some(arena.last),
            end: world.end,
            idle: Idle::read(arena),
            threads: world.threads.as_slice().iter().filter(|_| known).map(|t| t.uid).collect(),
            born: (0..world.threads.len).filter(|_| known).map(|t| Born::of(world, t)).collect(),
            processes: world.procs.as_slice().iter().filter(|_| known).map(|p| p.main_thread).collect(),
            objects: world.objects.as_slice().iter().filter(|_| known).map(|o| o.key).collect(),
            flags: world.objects.as_slice().iter().filter(|_| known).map(|o| o.flags).collect(),
            moves: world.threads.as_slice().iter().filter(|_| walk).map(|t| (t.uid, t.transitions)).collect(),
            uses: if arena.plan.policy == Policy::SURW { arena.aims.uses.as_slice().to_vec() } else { Vec::new() },
            pairs: if matches!(arena.plan.policy, Policy::RFF | Policy::NOVEL) {
                arena.aims.pairs.as_slice().to_vec()
            } else {
                Vec::new()
            },
            made: world.threads.len,
            gave_way: world.long_runs > 0,
            unrecorded: arena.unrecorded,
            circles: circles(world),
            any_moment: world.timeouts_any,
            timers: world.timers.len > 0,
            saw: seen_in(world),
            beyond: not_proven_in(world),
            touched: Vec::new(),
            states: states(arena),
            told_time: world.told_time,
        }
    }

    /// Why a search that has run this is not complete; `reduces`: it takes executions to be equivalent by what is dependent.
    pub fn reasons(&self, reduces: bool) -> Reasons {
        let mut all = self.saw.clone();
        let seen = || self.seen.iter().chain([&self.last]);
        // A thread that is alone has no orders to leave out.
        let one = || self.steps.iter().all(|s| s.act.uid == self.steps[0].act.uid);
        if reduces && !(one() && seen().all(|pending| pending.len() <= 1)) {
            // What was done, and what was pending and may have been left out.
            let acts = self.steps.iter().map(|s| &s.act).chain(seen().flatten().map(|s| &s.act));
            all.extend(&self.beyond);
            all.extend(acts.filter_map(|act| (act.op.kind.row().unproven)(&act.op)).map(Reason::from));
        }
        all
    }

    /// Something could give up, or be let go by a timer, at a moment of its own.
    pub fn was_timed(&self) -> bool {
        let gives_up = |s: &Seen| s.act.fate & EXPIRED != 0;
        self.any_moment && (self.timers || self.seen.iter().chain([&self.last]).flatten().any(gives_up))
    }

    /// What a function of stdio prints it takes from memory when it has the stream's lock. That its thread has come to read memory that others use is a step
    /// of its own before that. If another thread changes the memory between the two, the function finds what came later than that step says; then an
    /// execution is not the one that a reduction takes it for. Gives the step at which such a lock is taken.
    pub fn prints_what_came_later(&self) -> Option<usize> {
        let in_function = |arg: u32| arg & (Entry::FUNCTION | Entry::CALL) == Entry::FUNCTION;
        let by_function = |s: &Step| s.act.op.kind == Kind::MEM_READ && in_function(s.act.op.arg as u32);
        self.steps.iter().enumerate().filter(|(_, s)| by_function(s)).find_map(|(n, read)| {
            let behind = || self.steps.iter().enumerate().skip(n + 1);
            let (at, next) = behind().find(|(_, s)| s.act.uid == read.act.uid && !s.act.op.kind.uses_memory())?;
            let changes = |(_, s): (usize, &Step)| {
                let [one, other] = [read.act.op.obj, read.act.op.obj2].map(|word| s.act.op.names(word));
                s.act.uid != read.act.uid && s.act.writes_memory() && (one || other)
            };
            (next.act.op.kind == Kind::STREAM_LOCK && behind().take_while(|(k, _)| *k < at).any(changes)).then_some(at)
        })
    }

    /// Forgets all steps but the last `n`.
    pub fn keep_last(&mut self, n: usize) {
        let forgotten = self.steps.len().saturating_sub(n);
        self.steps.drain(..forgotten);
        self.seen.drain(..forgotten.min(self.seen.len()));
        self.unrecorded += forgotten as u64;
    }

    /// The choices that lead to the state before step `n`.
    pub fn choices(&self, n: usize) -> Vec<Choice> {
        self.steps[..n].iter().map(|s| Choice::new(s.act.uid, s.value, s.act.op.kind)).collect()
    }
}
