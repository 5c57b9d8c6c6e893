//! States that are met once, against brute force.

use std::cell::RefCell;

use proptest::test_runner::{Config, TestCaseError};
use vsrun::search::{Naive, Search, Stateful};

use crate::interp::digest::refused;
use crate::interp::generate::{program, runner, Family};
use crate::interp::{brute, How, Ins, Machine, Program};

/// Programs with more executions are left out.
const LIMIT: u64 = if cfg!(debug_assertions) { 150 } else { 1200 };
/// Programs per family.
const CASES: u32 = if cfg!(debug_assertions) { 60 } else { 1000 };

thread_local! {
    static MACHINE: RefCell<Machine> = RefCell::new(Machine::new());
}

/// How it ends, and how its states look then, are those of brute force; it never needs more executions than there are edges to states that were met before.
fn finds_all(machine: &mut Machine, program: &Program) -> Result<Option<(u64, u64)>, String> {
    let Some(all) = brute::explore(machine, program, LIMIT) else { return Ok(None) };
    let mut search = Stateful::new();
    let (outcomes, executions) = machine.explore(program, &mut search, LIMIT).ok_or("it runs on")?;
    if outcomes != all.outcomes {
        let missed: Vec<_> = all.outcomes.difference(&outcomes).collect();
        let wrong: Vec<_> = outcomes.difference(&all.outcomes).collect();
        return Err(format!("misses {} of {}: {missed:?}\ninvents {wrong:?}", missed.len(), all.outcomes.len()));
    }
    if executions > all.leaves || search.transitions() > all.edges {
        return Err(format!("{executions} executions of {}", all.leaves));
    }
    if search.exhaustive() == refused(all.outcomes.iter()) {
        return Err("it is not exhaustive".into());
    }
    Ok(Some((executions, all.leaves)))
}

fn check(family: Family, any_moment: bool) {
    let cases = std::env::var("VSRUN_ORACLE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(CASES);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() };
    let used = RefCell::new((0, 0, 0));
    let result = runner(config).run(&program(family), |program| {
        MACHINE.with(|machine| {
            let machine = &mut machine.borrow_mut();
            (machine.timeouts_any, machine.timeless) = (any_moment, true);
            if let Some((executions, leaves)) = finds_all(machine, &program).map_err(TestCaseError::fail)? {
                let (n, run, all) = *used.borrow();
                *used.borrow_mut() = (n + 1, run + executions, all + leaves);
            }
            Ok(())
        })
    });
    if let Err(e) = result {
        panic!("{e}");
    }
    let (used, run, all) = used.into_inner();
    println!("{family:?}: {used} programs, {run} executions for {all}");
    assert!(used > cases / 10, "most programs are too large: {used} of {cases}");
}

#[test]
fn nothing_is_lost_in_any_family() {
    for family in Family::ALL {
        check(family, false);
    }
}

#[test]
fn nothing_is_lost_where_timeouts_fire_at_any_moment() {
    for family in [Family::Timed, Family::Event, Family::Mqueue, Family::All] {
        check(family, true);
    }
}

/// The first paper's philosophers as threads of one process.
fn philosophers(n: usize) -> Program {
    let meal = |i: usize| {
        let (left, right) = (i as u16, ((i + 1) % n) as u16);
        [(left, -1), (right, -1), (left, 1), (right, 1)].map(|op| Ins::Sysv(vec![op], false, How::Block)).to_vec()
    };
    let mut program = vec![(1..=n).map(Ins::Create).collect::<Vec<_>>()];
    program.extend((0..n).map(meal));
    program
}

/// Executions, transitions and outcomes.
fn counts(program: &Program, search: &mut dyn Search) -> (u64, u64, usize) {
    let mut machine = Machine::new();
    machine.timeless = true;
    let (outcomes, executions) = machine.explore(program, search, u64::MAX).expect("it ends");
    assert!(search.exhaustive());
    (executions, search.transitions(), outcomes.len())
}

#[test]
fn philosophers_cost_what_their_states_are_and_not_their_schedules() {
    let states = |n| counts(&philosophers(n), &mut Stateful::new());
    let schedules = |n| counts(&philosophers(n), &mut Naive::new());
    // Of the graph of states these are the edges, counted by hand.
    let edges: Vec<u64> = (2..=5).map(|n| states(n).1).collect();
    assert_eq!(edges, [18, 123, 708, 3765]);
    // There is a deadlock and a good end, which all schedules show no more of.
    let (one, all) = (states(3), schedules(3));
    assert!(one.2 == 2 && all.2 == 2 && all.1 > 10 * one.1, "{one:?} {all:?}");
}
