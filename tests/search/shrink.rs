//! Shortened schedules against brute force: random model programs, random executions of them. What a schedule is shortened to comes to
//! the same end and is no longer in any way; how often it is as short as the shortest of all is counted. An execution put into the order
//! with the fewest switches comes to the same end.

use std::cell::RefCell;

use crate::interp::generate::{program, runner, Family};
use crate::interp::{brute, Machine, Program};
use proptest::test_runner::{Config, TestCaseError};
use vsrun::finding::Length;
use vsrun::schedule::Schedule;
use vsrun::search::{Random, Search};
use vsrun::shrink::{length, shorten, Order, Tried};
use vsrun::trace::Trace;
use vsrun_model::arena::Choice;
use vsrun_model::End;

/// Programs with more executions are left out.
const LIMIT: u64 = if cfg!(debug_assertions) { 300 } else { 2000 };
/// Programs per family.
const CASES: u32 = if cfg!(debug_assertions) { 40 } else { 150 };
/// Random executions of a program.
const WALKS: usize = 8;

thread_local! {
    static MACHINE: RefCell<Machine> = RefCell::new(Machine::new());
}

fn schedule(choices: &[Choice], most: u64) -> Schedule {
    let record_back = choices.len() as u32;
    Schedule { prefix: choices.to_vec(), most: Some(most), record: true, record_back, ..Schedule::default() }
}

/// What came of choices, and how it ended.
fn run(machine: &mut Machine, program: &Program, choices: &[Choice], most: u64) -> (Trace, String) {
    let (trace, outcome) = machine.run(program, &schedule(choices, most), most);
    (trace, outcome.text)
}

/// Random executions of a program that end by themselves, each with the text of its end.
fn walks(machine: &mut Machine, program: &Program) -> Vec<(Trace, String)> {
    let mut search = Random::new(7);
    let mut all = Vec::new();
    for _ in 0..WALKS {
        let walk = Schedule { blind: false, ..search.next().expect("endless") };
        let (trace, _) = machine.run(program, &walk, 200);
        if matches!(trace.end, End::FINISHED | End::DEADLOCK | End::CYCLE | End::ASSERT | End::MISUSE) {
            let choices = trace.choices(trace.steps.len());
            all.push(run(machine, program, &choices, 200));
        }
    }
    all
}

/// What was seen of all programs of a family.
#[derive(Default)]
struct Seen {
    shortened: u64,
    shortest: u64,
    walks: u64,
    /// In an order by what commutes in every state, and in the states recorded.
    packed: [u64; 2],
    before: u64,
    after: u64,
}

/// An execution in an order with fewer switches that keeps what happens before what.
fn packs(
    machine: &mut Machine,
    program: &Program,
    (trace, end): &(Trace, String),
    seen: &mut Seen,
) -> Result<(), String> {
    for conditional in [true, false] {
        let Some(order) = Order::of(trace, conditional) else { return Err("not recorded".into()) };
        let choices = trace.choices(trace.steps.len());
        let packed = order.packed(&vec![true; choices.len()]);
        let packed: Vec<Choice> = packed.into_iter().map(|n| choices[n]).collect();
        let (came, text) = run(machine, program, &packed, 200);
        let same = text == *end && length(&came).switches <= length(trace).switches;
        seen.packed[usize::from(conditional)] += u64::from(same);
        // What commutes in the states recorded need not where it comes elsewhere: that is what candidates are run for.
        if !same && !conditional {
            return Err(format!("conditional {conditional}: {choices:?} came to {end}, {packed:?} to {text}"));
        }
    }
    seen.walks += 1;
    Ok(())
}

fn shortens(
    machine: &mut Machine,
    program: &Program,
    (trace, end): (Trace, String),
    least: Length,
    seen: &mut Seen,
) -> Result<(), String> {
    let (from, most) = (length(&trace), trace.steps.len() as u64);
    let mut attempt = |choices: &[Choice]| match run(machine, program, choices, most) {
        (trace, text) if text == end => Tried::Same(Box::new(trace)),
        _ => Tried::Otherwise,
    };
    let short = shorten(trace, &mut attempt);
    let choices = short.trace.choices(short.trace.steps.len());
    let (again, text) = run(machine, program, &choices, 200);
    let to = short.how.to;
    if text != end || length(&again) != to || length(&short.trace) != to || short.how.from != from {
        return Err(format!("came to {text}, not {end}: {choices:?}"));
    }
    if to > from || to.steps > from.steps {
        return Err(format!("{from:?} has grown to {to:?}"));
    }
    if to < least {
        return Err(format!("{to:?} is less than the least {least:?}"));
    }
    seen.shortened += 1;
    seen.shortest += u64::from(to.switches == least.switches);
    (seen.before, seen.after) = (seen.before + from.switches, seen.after + to.switches);
    Ok(())
}

/// Checks the executions of a program. False: it has too many.
fn check(machine: &mut Machine, program: &Program, seen: &mut Seen) -> Result<bool, String> {
    let Some(leaves) = brute::leaves(machine, program, LIMIT) else { return Ok(false) };
    let all: Vec<(Length, String)> = leaves
        .iter()
        .map(|choices| {
            let (trace, text) = run(machine, program, choices, 1000);
            (length(&trace), text)
        })
        .collect();
    for (trace, end) in walks(machine, program) {
        packs(machine, program, &(trace.clone(), end.clone()), seen)?;
        let least = all.iter().filter(|(_, text)| *text == end).map(|(length, _)| *length).min();
        // What is cut, or waits for time, is not among them.
        if let Some(least) = least.filter(|_| trace.end != End::FINISHED) {
            shortens(machine, program, (trace, end), least, seen)?;
        }
    }
    Ok(true)
}

fn of_family(family: Family) -> Seen {
    let config = Config { cases: CASES, failure_persistence: None, max_shrink_iters: 5_000, ..Config::default() };
    let seen = RefCell::new(Seen::default());
    let result = runner(config).run(&program(family), |program| {
        let checked = MACHINE.with(|machine| check(&mut machine.borrow_mut(), &program, &mut seen.borrow_mut()));
        checked.map(drop).map_err(TestCaseError::fail)
    });
    if let Err(e) = result {
        panic!("{family:?}: {e}");
    }
    let seen = seen.into_inner();
    println!(
        "{family:?}: {} and {} of {} executions in another order; {} shortened, from {} to {} switches, {} of them to the fewest there are",
        seen.packed[0], seen.packed[1], seen.walks, seen.shortened, seen.before, seen.after, seen.shortest
    );
    seen
}

#[test]
fn shortened_as_far_as_brute_force_says_and_never_grown() {
    let mut all = Seen::default();
    for kind in [Family::Mutex, Family::Cond, Family::Sem, Family::Sysv, Family::Rw, Family::Life, Family::Futex] {
        let seen = of_family(kind);
        all.shortened += seen.shortened;
        all.shortest += seen.shortest;
    }
    assert!(all.shortened > 100, "{} executions come to a bug", all.shortened);
    assert!(all.shortest * 100 >= all.shortened * 99, "{} of {} are as short as possible", all.shortest, all.shortened);
}
