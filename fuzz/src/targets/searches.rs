//! Searches that go on from what the input says, and schedules that it gives, on programs of the model.

use std::cell::RefCell;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use vsrun::scenario::Scenario;
use vsrun::schedule::Schedule;
use vsrun::search::{Bound, Bounded, BoundedReduction, InOrder, Naive, Novel, Pct, Random, Rff, Search, Surw, Walk};
use vsrun::trace::Trace;
use vsrun_model::arena::Policy;
use vsrun_model::End;

use crate::interp::generate::{program, Family};
use crate::interp::{Machine, Program};

/// Executions that a search runs after it was restored, at most, and their transitions.
const EXECUTIONS: usize = 12;
const DEPTH: u64 = 300;

thread_local! {
    static WORLD: RefCell<(Machine, Vec<Program>)> = RefCell::new((Machine::new(), programs()));
}

/// A program of each family, the same ones each time.
fn programs() -> Vec<Program> {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Default::default(), rng);
    let mut one = |family: &Family| program(*family).new_tree(&mut runner).expect("a program").current();
    Family::ALL.iter().map(&mut one).collect()
}

/// The searches that can be saved.
pub const KINDS: usize = 12;

/// The search of that number, not begun.
pub fn of_kind(kind: u8) -> Box<dyn Search> {
    match kind as usize % KINDS {
        0 => Box::new(InOrder::optimal()),
        1 => Box::new(InOrder::dpor()),
        2 => Box::new(Naive::new()),
        3 => Box::new(Random::new(1)),
        4 => Box::new(Walk::new(1)),
        5 => Box::new(Pct::new(1, 3, Pct::FAIR)),
        8 => Box::new(Random::pos(1)),
        9 => Box::new(Surw::new(1)),
        10 => Box::new(Rff::new(1)),
        11 => Box::new(Novel::new(1)),
        6 => Box::new(Bounded::new(Bound::Delays(2))),
        _ => Box::new(BoundedReduction::new(2)),
    }
}

/// Two bytes say which search on which program, the rest is what it saved. If that is accepted, it goes on: it ends or does not, but
/// every step of it does, and it can be saved again.
pub fn search(data: &[u8]) -> bool {
    let [kind, number, saved @ ..] = data else { return false };
    let mut search = of_kind(*kind);
    if search.restore(saved).is_err() {
        return false;
    }
    asked(&*search);
    WORLD.with(|world| {
        let (machine, programs) = &mut *world.borrow_mut();
        go_on(&mut *search, machine, &programs[*number as usize % programs.len()], EXECUTIONS);
    });
    let again = search.save().expect("what was saved can be saved");
    let _ = of_kind(*kind).restore(&again);
    true
}

/// Runs executions, up to two at a time where the search allows it.
pub fn go_on(search: &mut dyn Search, machine: &mut Machine, program: &Program, executions: usize) {
    let mut under_way: Vec<Schedule> = Vec::new();
    for n in 0..executions {
        if under_way.is_empty() || search.parallel() {
            under_way.extend(search.next());
        }
        if under_way.is_empty() {
            break;
        }
        if n % 3 != 0 || !search.parallel() {
            let schedule = under_way.remove(n % under_way.len());
            search.done(schedule.ticket, &run(machine, program, &schedule));
            asked(search);
        }
    }
}

/// The execution; one whose schedule the runtime would refuse ends at once.
fn run(machine: &mut Machine, program: &Program, schedule: &Schedule) -> Trace {
    let nothing = |_| Trace { end: End::MISMATCH, ..Trace::default() };
    machine.try_run(program, schedule, DEPTH).map_or_else(nothing, |(trace, _)| trace)
}

/// What the progress line and the summary ask of a search.
fn asked(search: &dyn Search) {
    let _ = (search.frontier(), search.progress(), search.exhaustive(), search.limit(), search.transitions());
    let _ = (search.sleep_blocked(), search.discarded(), search.ahead());
}

/// The schedule of a scenario, up to its end.
pub fn replay(scenario: &Scenario) {
    let prefix = scenario.prefix();
    let schedule = match &scenario.then {
        Some(then) => then.schedule(prefix),
        None => Schedule { prefix, policy: Policy::STAY, ..Schedule::default() },
    };
    WORLD.with(|world| {
        let (machine, programs) = &mut *world.borrow_mut();
        let _ = scenario.objects.write(machine.arena());
        let number = scenario.found.execution as usize % programs.len();
        let _ = machine.try_run(&programs[number], &schedule, DEPTH);
        let _ = vsrun::objects::Objects::default().write(machine.arena());
    });
}

/// What such a search has saved after so many executions, as an input of [`search`].
pub fn seed(kind: u8, number: u8, executions: usize) -> Vec<u8> {
    let mut search = of_kind(kind);
    WORLD.with(|world| {
        let (machine, programs) = &mut *world.borrow_mut();
        go_on(&mut *search, machine, &programs[number as usize % programs.len()], executions);
    });
    [vec![kind, number], search.save().expect("it can be saved")].concat()
}
