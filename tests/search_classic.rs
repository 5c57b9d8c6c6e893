//! The searches of the papers against brute force over random model programs, with bounds from the text of the program.

mod interp;

use std::cell::RefCell;

use interp::bounds::Text;
use interp::generate::{program, Family};
use interp::{brute, How, Ins, Machine, Program};
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use vsrun::search::allowed::{Allowed, Unknown};
use vsrun::search::{ExitBlock, IfSss, Search, Sss};

/// Programs with more executions are left out.
const LIMIT: u64 = if cfg!(debug_assertions) { 150 } else { 1200 };
/// Programs per family.
const CASES: u32 = if cfg!(debug_assertions) { 120 } else { 1000 };

thread_local! {
    static MACHINE: RefCell<Machine> = RefCell::new(Machine::new());
}

fn cases() -> u32 {
    std::env::var("VSRUN_ORACLE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(CASES)
}

/// Checks `property` on random programs of a family.
fn check(family: Family, property: impl Fn(&mut Machine, &Program) -> Result<bool, String>) {
    let config = Config { cases: cases(), failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() };
    let used = RefCell::new(0);
    let result = TestRunner::new(config).run(&program(family), |program| {
        let held = MACHINE.with(|machine| property(&mut machine.borrow_mut(), &program));
        *used.borrow_mut() += u32::from(held.clone().map_err(TestCaseError::fail)?);
        Ok(())
    });
    if let Err(e) = result {
        panic!("{e}");
    }
    let used = used.into_inner();
    println!("{family:?}: {used} programs");
    assert!(used > cases() / 10, "most programs are too large: {used} of {}", cases());
}

/// Each search of the papers, with and without bounds, finds what brute force finds.
fn searches_agree(machine: &mut Machine, program: &Program) -> Result<bool, String> {
    let Some(all) = brute::explore(machine, program, LIMIT) else { return Ok(false) };
    let text = || Box::new(Text::new(program));
    let searches: [(&str, Box<dyn Search>); 4] = [
        ("sss without bounds", Box::new(Sss::new(Box::new(Unknown)))),
        ("sss", Box::new(Sss::new(text()))),
        ("if-sss without bounds", Box::new(IfSss::new(Box::new(Unknown)))),
        ("if-sss", Box::new(IfSss::new(text()))),
    ];
    for (name, mut search) in searches {
        let (outcomes, executions) =
            machine.explore(program, search.as_mut(), 10 * LIMIT).ok_or(format!("{name} runs on"))?;
        if outcomes != all.outcomes {
            let missed: Vec<_> = all.outcomes.difference(&outcomes).collect();
            let wrong: Vec<_> = outcomes.difference(&all.outcomes).collect();
            return Err(format!("{name} misses {}: {missed:?}\ninvents {wrong:?}", missed.len()));
        }
        if !search.exhaustive() || !search.notes().is_empty() {
            return Err(format!("{name}: {executions} executions of {}, {:?}", all.leaves, search.notes()));
        }
    }
    Ok(true)
}

macro_rules! agree {
    ($($name:ident: $family:ident;)*) => {$(
        #[test]
        fn $name() {
            check(Family::$family, searches_agree);
        }
    )*};
}

agree! {
    agree_on_mutexes: Mutex;
    agree_on_conditions: Cond;
    agree_on_semaphores: Sem;
    agree_on_sysv_semaphores: Sysv;
    agree_on_rwlocks: Rw;
    agree_on_barriers_spinlocks_once: Barrier;
    agree_on_futexes: Futex;
    agree_on_thread_life: Life;
    agree_on_processes: Process;
    agree_on_timeouts: Timed;
    agree_on_all: All;
}

/// The first paper's dining philosophers: processes, SysV semaphores, the first process is the last philosopher.
fn philosophers(n: usize) -> Program {
    let meal = |i: usize| {
        let (left, right) = (i as u16, ((i + 1) % n) as u16);
        [(left, -1), (right, -1), (left, 1), (right, 1)].map(|op| Ins::Sysv(vec![op], false, How::Block)).to_vec()
    };
    let mut program = vec![(1..n).map(Ins::Fork).collect::<Vec<_>>()];
    program[0].extend(meal(n - 1));
    program.extend((0..n - 1).map(meal));
    program
}

/// Threads that lock, count and unlock one mutex, all started by a first one that does nothing else.
fn lock_count(n: usize) -> Program {
    let mut program = vec![(1..=n).map(Ins::Create).collect::<Vec<_>>()];
    program.extend(vec![vec![Ins::Lock(0, How::Block), Ins::Count(0), Ins::Unlock(0)]; n]);
    program
}

/// (executions, transitions, sleep-blocked, outcomes)
fn counts(program: &Program, search: &mut dyn Search) -> (u64, u64, u64, usize) {
    MACHINE.with(|machine| {
        let (outcomes, executions) = machine.borrow_mut().explore(program, search, u64::MAX).expect("no limit");
        assert!(search.exhaustive());
        (executions, search.transitions(), search.sleep_blocked(), outcomes.len())
    })
}

fn with_text(program: &Program, make: impl Fn(Box<dyn Allowed>) -> Box<dyn Search>) -> (u64, u64, u64, usize) {
    counts(program, make(Box::new(Text::new(program))).as_mut())
}

#[test]
fn counts_of_philosophers() {
    for n in 2..=5 {
        let p = philosophers(n);
        println!("sss none {:?}", counts(&p, &mut Sss::new(Box::new(Unknown))));
        println!("sss text {:?}", with_text(&p, |b| Box::new(Sss::new(b))));
    }
    for n in 2..=4 {
        let p = lock_count(n);
        println!("lock sss none {:?}", counts(&p, &mut Sss::new(Box::new(Unknown))));
        println!("lock sss text {:?}", with_text(&p, |b| Box::new(Sss::new(b))));
        println!("lock if  none {:?}", counts(&p, &mut IfSss::new(Box::new(Unknown))));
        println!("lock if  text {:?}", with_text(&p, |b| Box::new(IfSss::new(b))));
    }
}
