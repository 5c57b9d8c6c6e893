//! Algorithm 2-MLD' as printed (Stoller, TR 536, Sections 8 and 9), beside what the searches here do: pendInvisOps from candidate sets
//! that are undone when the search goes back, or are not (the stricter MLD-L), and no pendInvisOps at all, which is what `src/search/protected.rs`
//! says is enough. Over random programs of locks, semaphores and variables, most of which locks protect, with switches at visible operations
//! only; the truth has a switch before each access.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::interp::digest::Outcomes;
use crate::interp::generate::runner;
use crate::interp::{self, brute, How, Ins, Machine, Program, VARIABLES};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError};
use vsrun::race::{violations, Note};
use vsrun::schedule::Schedule;
use vsrun::search::allowed::Unknown;
use vsrun::search::{IfSss, Search, Sss, Transactions};
use vsrun::trace::Trace;
use vsrun_model::arena::{Choice, Seen};
use vsrun_model::{End, Kind, Tid, Uid};

/// Programs with more executions are left out.
const LIMIT: u64 = if cfg!(debug_assertions) { 300 } else { 3000 };
const CASES: u32 = if cfg!(debug_assertions) { 240 } else { 400 };
const ALL: u32 = (1 << VARIABLES) - 1;

thread_local! {
    static MACHINE: RefCell<Machine> = RefCell::new(Machine::new());
}

/// What an operation is on; of a variable, whether it is written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Use {
    Lock(u32),
    Sem(u32),
    Variable(u32, bool),
}

impl Use {
    fn of(ins: &Ins) -> Option<Use> {
        match *ins {
            Ins::Lock(m, _) | Ins::Unlock(m) => Some(Use::Lock(m)),
            Ins::SemWait(s, _) | Ins::Post(s) => Some(Use::Sem(s)),
            Ins::Load(v) => Some(Use::Variable(v, false)),
            Ins::Store(v, _) => Some(Use::Variable(v, true)),
            _ => None,
        }
    }

    fn is_visible(self) -> bool {
        !matches!(self, Use::Variable(..))
    }

    fn depends(self, other: Use) -> bool {
        match (self, other) {
            (Use::Variable(v, writes), Use::Variable(w, also)) => v == w && (writes || also),
            _ => self == other,
        }
    }
}

/// What the persistent sets are computed from beside visible operations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Variant {
    /// pendInvisOps', with candidate sets as the path has left them.
    Undone,
    /// The same with those that all executions so far have left.
    NotUndone,
    /// Nothing.
    Without,
}

/// The lockset machine of Section 8, as Section 9 has it: no variable has an initThread.
#[derive(Clone, Debug, Default)]
struct Locksets {
    /// By variable; none: all locks.
    candidates: BTreeMap<u32, BTreeSet<u32>>,
    /// Variables that are shared-modified; the others are shared.
    written: BTreeSet<u32>,
}

impl Locksets {
    fn access(&mut self, (v, writes): (u32, bool), held: &BTreeSet<u32>) {
        let candidates = self.candidates.entry(v).or_insert_with(|| held.clone());
        candidates.retain(|lock| held.contains(lock));
        if writes {
            self.written.insert(v);
        }
    }

    /// Formula (7).
    fn allows(&self, (v, writes): (u32, bool), lock: u32) -> bool {
        let candidate = self.candidates.get(&v).is_none_or(|locks| locks.contains(&lock));
        candidate || !writes && !self.written.contains(&v)
    }
}

/// A state at the end of a path.
struct Reached {
    trace: Trace,
    /// Locks by thread.
    held: BTreeMap<Tid, BTreeSet<u32>>,
    /// Visible operations made, by thread.
    made: BTreeMap<Tid, usize>,
    locksets: Locksets,
    outcome: String,
    violated: bool,
}

/// The mutex or variable of an address in the model's memory.
fn number(address: u64) -> u32 {
    (address / 64) as u32
}

/// Goes to the end of `path`, or, from there, to the end of the execution.
fn reach(machine: &mut Machine, program: &Program, path: &[Choice], depth: u64) -> Reached {
    let schedule = Schedule { prefix: path.to_vec(), record: true, past_cycles: true, ..Schedule::default() };
    let (trace, outcome) = machine.run(program, &schedule, depth);
    let (mut held, mut made) = (BTreeMap::<Tid, BTreeSet<u32>>::new(), BTreeMap::<Tid, usize>::new());
    let mut locksets = Locksets::default();
    for note in &machine.notes {
        match *note {
            Note::Step { index } => {
                let act = &trace.steps[index as usize].act;
                *made.entry(act.tid).or_default() += 1;
                let lock = || number(trace.objects[act.op.obj as usize].addr);
                match act.op.kind {
                    Kind::MUTEX_LOCK => {
                        held.entry(act.tid).or_default().insert(lock());
                    }
                    Kind::MUTEX_UNLOCK => {
                        held.entry(act.tid).or_default().remove(&lock());
                    }
                    _ => {}
                }
            }
            Note::Touches { thread, access } => {
                let under = held.entry(thread).or_default();
                locksets.access((number(access.address), access.write), under);
            }
            _ => {}
        }
    }
    let violated = !violations(&trace, machine.notes.iter().copied()).is_empty();
    Reached { trace, held, made, locksets, outcome: outcome.text, violated }
}

/// A search by persistent sets alone.
struct Figure<'a> {
    program: &'a Program,
    variant: Variant,
    /// Of all executions.
    candidates: BTreeMap<u32, BTreeSet<u32>>,
    outcomes: Outcomes,
    violated: bool,
    leaves: Vec<Vec<Choice>>,
}

impl<'a> Figure<'a> {
    fn explore(machine: &mut Machine, program: &'a Program, variant: Variant) -> Option<Figure<'a>> {
        let (candidates, outcomes, leaves) = (BTreeMap::new(), Outcomes::new(), Vec::new());
        let mut figure = Figure { program, variant, candidates, outcomes, violated: false, leaves };
        figure.below(machine, &[]).then_some(figure)
    }

    fn below(&mut self, machine: &mut Machine, path: &[Choice]) -> bool {
        let state = reach(machine, self.program, path, path.len() as u64);
        self.violated |= state.violated;
        for (&v, locks) in &state.locksets.candidates {
            let all = self.candidates.entry(v).or_insert_with(|| locks.clone());
            all.retain(|lock| locks.contains(lock));
        }
        let enabled: Vec<&Seen> = state.trace.last.iter().filter(|seen| seen.choices > 0).collect();
        let Some(first) = enabled.first().filter(|_| state.trace.end == End::DEPTH) else {
            self.outcomes.insert(state.outcome);
            self.leaves.push(path.to_vec());
            return (self.leaves.len() as u64) < LIMIT;
        };
        let inside = self.persistent(&state, first.act.tid);
        enabled.iter().filter(|seen| inside.contains(&seen.act.tid)).all(|seen| {
            let next = Choice::new(seen.act.uid, 0, seen.act.op.kind);
            self.below(machine, &[path, &[next]].concat())
        })
    }

    /// What a thread may still do, its pending operation first: allowedOps.
    fn allowed(&self, state: &Reached, thread: Tid) -> Vec<Use> {
        // Thread 0 creates the others, in their order, and does nothing else.
        let uses: Vec<Use> = self.program[thread as usize].iter().filter_map(Use::of).collect();
        let made = state.made.get(&thread).copied().unwrap_or(0);
        let pending = (0..uses.len()).filter(|&n| uses[n].is_visible()).nth(made);
        uses[pending.unwrap_or(uses.len())..].to_vec()
    }

    /// pendVisOps and pendInvisOps' of a thread.
    fn pending(&self, state: &Reached, thread: Tid) -> Vec<Use> {
        let allowed = self.allowed(state, thread);
        let visible = allowed.first().copied();
        let acquiring = visible.and_then(|op| match op {
            Use::Lock(m) => Some(m),
            _ => None,
        });
        let locks: Vec<u32> = state.held.get(&thread).into_iter().flatten().copied().chain(acquiring).collect();
        let candidates = match self.variant {
            Variant::Undone => &state.locksets.candidates,
            Variant::NotUndone => &self.candidates,
            Variant::Without => return visible.into_iter().collect(),
        };
        let locksets = Locksets { candidates: candidates.clone(), written: state.locksets.written.clone() };
        let invisible = allowed.iter().copied().filter(|op| match *op {
            Use::Variable(v, writes) => locks.iter().any(|&lock| locksets.allows((v, writes), lock)),
            _ => false,
        });
        visible.into_iter().chain(invisible).collect()
    }

    /// Algorithm 2-MLD', from the transition of `seed`.
    fn persistent(&self, state: &Reached, seed: Tid) -> BTreeSet<Tid> {
        let all: Vec<Tid> = state.trace.last.iter().map(|seen| seen.act.tid).collect();
        let (mut inside, mut work) = (BTreeSet::from([seed]), vec![seed]);
        while let Some(thread) = work.pop() {
            for op in self.pending(state, thread) {
                for &other in &all {
                    if !inside.contains(&other) && self.allowed(state, other).iter().any(|o| o.depends(op)) {
                        inside.insert(other);
                        work.push(other);
                    }
                }
            }
        }
        inside
    }
}

/// Everything there is: outcomes, and whether some execution violates the discipline.
fn truth(machine: &mut Machine, program: &Program) -> Option<(Outcomes, bool)> {
    machine.watched = ALL;
    let leaves = brute::leaves(machine, program, LIMIT)?;
    let (mut outcomes, mut violated) = (Outcomes::new(), false);
    for path in leaves {
        let end = reach(machine, program, &path, u64::MAX);
        outcomes.insert(end.outcome);
        violated |= end.violated;
    }
    Some((outcomes, violated))
}

/// What a search of the tool finds: outcomes, whether some execution violates the discipline, and executions.
fn search(machine: &mut Machine, program: &Program, search: &mut dyn Search) -> Result<(Outcomes, bool, u64), String> {
    let (mut outcomes, mut violated, mut executions) = (Outcomes::new(), false, 0);
    while let Some(schedule) = search.next() {
        executions += 1;
        if executions > 4 * LIMIT {
            return Err("it runs on".into());
        }
        let (trace, outcome) = machine.run(program, &schedule, u64::MAX);
        let blocked = search.sleep_blocked();
        search.done(schedule.ticket, &trace);
        violated |= !violations(&trace, machine.notes.iter().copied()).is_empty();
        if trace.end != End::SLEEP_BLOCKED && search.sleep_blocked() == blocked {
            outcomes.insert(outcome.text);
        }
    }
    match search.exhaustive() {
        true => Ok((outcomes, violated, executions)),
        false => Err("it is not exhaustive".into()),
    }
}

/// Programs of two or three threads. Variable 0 goes with mutex 0, variable 1 with mutex 1, variable 2 is read more often than written.
fn programs() -> impl Strategy<Value = Program> {
    let of = |v: u32| prop_oneof![Just(Ins::Load(v)), (1i64..3).prop_map(move |value| Ins::Store(v, value))];
    let section = move |m: u32| {
        (proptest::collection::vec(of(m), 1..3)).prop_map(move |mut uses| {
            uses.insert(0, Ins::Lock(m, How::Block));
            uses.push(Ins::Unlock(m));
            uses
        })
    };
    let both = move |m: u32| {
        section(1 - m).prop_map(move |inner| [vec![Ins::Lock(m, How::Block)], inner, vec![Ins::Unlock(m)]].concat())
    };
    // Under the lock of the other one.
    let wrong = move |m: u32| of(1 - m).prop_map(move |access| vec![Ins::Lock(m, How::Block), access, Ins::Unlock(m)]);
    let block = prop_oneof![
        8 => (0u32..2).prop_flat_map(section),
        2 => (0u32..2).prop_flat_map(both),
        3 => Just(vec![Ins::Load(2)]),
        1 => (0u32..3).prop_flat_map(of).prop_map(|access| vec![access]),
        1 => (0u32..2).prop_flat_map(wrong),
        1 => Just(vec![Ins::Post(0)]),
        1 => Just(vec![Ins::SemWait(1, How::Block)]),
    ];
    let thread = proptest::collection::vec(block, 1..4).prop_map(|blocks| blocks.concat());
    proptest::collection::vec(thread, 2..4).prop_map(|threads| {
        let mut program = vec![(1..=threads.len()).map(Ins::Create).collect::<Vec<_>>()];
        program.extend(threads);
        program
    })
}

/// Executions of each variant that were compared, and programs that obey the discipline and violate it.
#[derive(Default)]
struct Tally {
    leaves: [usize; 3],
    obey: u32,
    violate: u32,
}

fn compare(machine: &mut Machine, program: &Program, tally: &mut Tally) -> Result<(), String> {
    let Some((outcomes, violated)) = truth(machine, program) else { return Ok(()) };
    machine.watched = 0;
    let mut before: Option<BTreeSet<Vec<(Uid, u32)>>> = None;
    let mut leaves = [0; 3];
    for (n, variant) in [Variant::Undone, Variant::NotUndone, Variant::Without].into_iter().enumerate() {
        let Some(figure) = Figure::explore(machine, program, variant) else { return Ok(()) };
        if figure.violated != violated {
            return Err(format!("{variant:?}: violated {}, in fact {violated}", figure.violated));
        }
        if !violated && figure.outcomes != outcomes {
            return Err(format!("{variant:?}: {} outcomes of {}", figure.outcomes.len(), outcomes.len()));
        }
        // Smaller sets in each state: what one explores the one before it does, too.
        let name = |choice: &Choice| (choice.uid, choice.value);
        let paths: BTreeSet<Vec<_>> = figure.leaves.iter().map(|path| path.iter().map(name).collect()).collect();
        if before.is_some_and(|before| !paths.is_subset(&before)) {
            return Err(format!("{variant:?} explores what the larger sets do not"));
        }
        leaves[n] = figure.leaves.len();
        before = Some(paths);
    }
    let none = || Box::new(Unknown);
    let ours: [(&str, Box<dyn Search>); 3] = [
        ("sss", Box::new(Sss::new(none()))),
        ("if-sss", Box::new(IfSss::new(none()))),
        ("transactions", Box::new(Transactions::new())),
    ];
    for (name, mut by) in ours {
        let (found, seen, _) = search(machine, program, by.as_mut()).map_err(|e| format!("{name}: {e}"))?;
        if seen != violated {
            return Err(format!("{name}: violated {seen}, in fact {violated}"));
        }
        if !violated && found != outcomes {
            return Err(format!("{name}: {} outcomes of {}", found.len(), outcomes.len()));
        }
    }
    tally.obey += u32::from(!violated);
    tally.violate += u32::from(violated);
    tally.leaves.iter_mut().zip(leaves).for_each(|(sum, leaves)| *sum += leaves);
    Ok(())
}

fn cases() -> u32 {
    std::env::var("VSRUN_ORACLE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(CASES)
}

fn check(property: impl Fn(&mut Machine, &Program) -> Result<(), String>) {
    let config = Config { cases: cases(), failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() };
    let result = runner(config).run(&programs(), |program| {
        MACHINE.with(|machine| property(&mut machine.borrow_mut(), &program)).map_err(TestCaseError::fail)
    });
    if let Err(e) = result {
        panic!("{e}");
    }
}

/// All find the violations that there are, and where there is none the outcomes; pendInvisOps' only adds executions.
#[test]
fn pend_invis_ops_add_nothing_that_is_needed() {
    let tally = RefCell::new(Tally::default());
    check(|machine, program| compare(machine, program, &mut tally.borrow_mut()));
    let Tally { leaves, obey, violate } = tally.into_inner();
    println!("executions {leaves:?} (undone, not undone, without); {obey} programs obey, {violate} do not");
    assert!(obey > cases() / 20 && violate > cases() / 20);
    assert!(leaves[0] > leaves[1] && leaves[1] > leaves[2], "{leaves:?}");
}

/// The same programs where each access is an operation: those to protected variables are invisible, and nothing is lost.
#[test]
fn protected_operations_are_invisible_and_lose_nothing() {
    let counted = RefCell::new([0; 2]);
    check(|machine, program| {
        let Some((outcomes, _)) = truth(machine, program) else { return Ok(()) };
        let mut executions = [0; 2];
        let searches: [(&str, Box<dyn Search>); 2] = [
            ("sss", Box::new(Sss::new(Box::new(interp::bounds::Text::new(program))))),
            ("if-sss", Box::new(IfSss::new(Box::new(interp::bounds::Text::new(program))))),
        ];
        for (n, (name, mut by)) in searches.into_iter().enumerate() {
            let (found, _, all) = search(machine, program, by.as_mut()).map_err(|e| format!("{name}: {e}"))?;
            if found != outcomes {
                return Err(format!("{name}: {} outcomes of {}", found.len(), outcomes.len()));
            }
            executions[n] = all;
        }
        counted.borrow_mut().iter_mut().zip(executions).for_each(|(sum, n)| *sum += n);
        Ok(())
    });
    let [sss, if_sss] = counted.into_inner();
    println!("executions: sss {sss}, if-sss {if_sss}");
    assert!(if_sss < sss);
}

/// Two threads that use a variable each under a lock of their own: the uses are no branching points. The locks are kept, and the threads stay,
/// so that nothing else is invisible. By hand: in each state in which both could go on `sss` tries the second thread too, until the first, which sleeps, is all that
/// is left: 6 transitions and three times 3. `if-sss` does where both are at their locks: 6 and 3.
#[test]
fn counts_of_protected_operations() {
    let keeps =
        |m: u32, v: u32| vec![Ins::Lock(m, How::Block), Ins::Load(v), Ins::Store(v, 1), Ins::SemWait(3, How::Block)];
    let apart = vec![vec![Ins::Create(1), Ins::Create(2)], keeps(0, 0), keeps(1, 2)];
    let counts = |program: &Program, mut by: Box<dyn Search>| {
        MACHINE.with(|machine| {
            let machine = &mut machine.borrow_mut();
            machine.watched = ALL;
            let (_, _, executions) = search(machine, program, by.as_mut()).expect("it ends");
            (executions, by.transitions())
        })
    };
    let none = || Box::new(Unknown);
    assert_eq!(counts(&apart, Box::new(Sss::new(none()))), (4, 15));
    assert_eq!(counts(&apart, Box::new(IfSss::new(none()))), (2, 9));
}
