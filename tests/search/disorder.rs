//! Searches by partial-order reduction, with several executions under way that end in any order, saved and restored at any
//! time: they explore what they explore in order and without interruptions.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use crate::interp::digest::Outcomes;
use crate::interp::generate::{program, runner, Family};
use crate::interp::{self, Ins, Machine, Program};
use proptest::test_runner::{Config, TestCaseError};
use vsrun::schedule::Schedule;
use vsrun::search::{by_name, Bound, Bounded, BoundedReduction, InOrder, Pct, Search};
use vsrun_model::End;

/// Programs with more executions are left out.
const LIMIT: u64 = if cfg!(debug_assertions) { 60 } else { 400 };
/// Programs per family.
const CASES: u32 = if cfg!(debug_assertions) { 60 } else { 600 };

thread_local! {
    /// Executions, and those that were run ahead for nothing.
    static WASTE: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
    static MACHINE: RefCell<Machine> = RefCell::new(Machine::new());
}

fn cases() -> u32 {
    std::env::var("VSRUN_ORACLE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(CASES)
}

/// Numbers that look random.
struct Draw(u64);

impl Draw {
    /// A number below `n`.
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) as usize % n
    }
}

/// What a search explored.
#[derive(PartialEq)]
struct Explored {
    outcomes: Outcomes,
    /// How often each came, in executions that are part of the search.
    counted: BTreeMap<String, u64>,
    /// Without those that were run ahead for nothing, or that a saved search did not know of.
    executions: u64,
    transitions: u64,
    sleep_blocked: u64,
    exhaustive: bool,
}

impl std::fmt::Debug for Explored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Explored { outcomes, counted, executions, transitions, sleep_blocked, exhaustive } = self;
        write!(f, "{executions} executions, {transitions} transitions, {sleep_blocked} blocked, {exhaustive}, ")?;
        write!(f, "{} outcomes, {counted:?}", outcomes.len())
    }
}

/// How the executions of a search go.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// So many at most are under way.
    most: usize,
    /// Now and then the search is saved, and another goes on from what was saved; what is under way then is lost.
    saves: bool,
    seed: u64,
}

const IN_ORDER: Way = Way { most: 1, saves: false, seed: 0 };

type Make<'a> = &'a dyn Fn() -> Box<dyn Search>;

/// Another search that goes on from what this one saves.
fn restored(search: &dyn Search, make: Make) -> Result<Box<dyn Search>, String> {
    let bytes = search.save().ok_or("it cannot be saved")?;
    let mut other = make();
    other.restore(&bytes).map_err(|e| format!("what was saved is refused: {e}"))?;
    match other.save() {
        Some(again) if again == bytes => Ok(other),
        _ => Err("what was restored is saved otherwise".into()),
    }
}

/// Counts what the search knows to be part of it; where it runs none ahead, all are.
fn settle(search: &mut dyn Search, waiting: &mut BTreeMap<u64, String>, counted: &mut BTreeMap<String, u64>) {
    let all = search.settled().unwrap_or_else(|| waiting.keys().map(|&ticket| (ticket, true)).collect());
    for (ticket, counts) in all {
        let outcome = waiting.remove(&ticket).filter(|_| counts);
        outcome.into_iter().for_each(|outcome| *counted.entry(outcome).or_default() += 1);
    }
}

/// `None`: more than [`LIMIT`] executions.
fn explore(machine: &mut Machine, program: &Program, make: Make, way: Way) -> Result<Option<Explored>, String> {
    let (mut search, mut draw) = (make(), Draw(way.seed));
    let (mut outcomes, mut executions, mut lost) = (Outcomes::new(), 0, 0);
    // What counts, as the search says by the tickets of executions.
    let (mut counted, mut waiting) = (BTreeMap::<String, u64>::new(), BTreeMap::new());
    let mut under_way: Vec<Schedule> = Vec::new();
    loop {
        let more = under_way.len() < way.most && (search.parallel() || under_way.is_empty());
        if under_way.is_empty() || more && draw.below(3) > 0 {
            match search.next() {
                Some(schedule) => under_way.push(schedule),
                None if under_way.is_empty() => break,
                None => {}
            }
        }
        if way.saves && draw.below(5) == 0 {
            settle(&mut *search, &mut waiting, &mut counted);
            lost += search.discarded() + search.ahead();
            search = restored(&*search, make)?;
            under_way.clear();
            waiting.clear();
        } else if !under_way.is_empty() && (under_way.len() >= way.most || draw.below(2) == 0) {
            let schedule = under_way.swap_remove(draw.below(under_way.len()));
            let (trace, outcome) = machine.run(program, &schedule, u64::MAX);
            executions += 1;
            waiting.insert(schedule.ticket, outcome.text.clone());
            if trace.end != End::SLEEP_BLOCKED && trace.end != End::MISMATCH {
                outcomes.insert(outcome.text);
            }
            search.done(schedule.ticket, &trace);
            settle(&mut *search, &mut waiting, &mut counted);
            if executions - lost - search.discarded() - search.ahead() > LIMIT {
                return Ok(None);
            }
        }
    }
    if search.frontier() != 0 || search.ahead() != 0 {
        return Err(format!("at its end {} to do", search.frontier()));
    }
    settle(&mut *search, &mut waiting, &mut counted);
    if !waiting.is_empty() {
        return Err(format!("of {} executions it is not told whether they count", waiting.len()));
    }
    WASTE.with(|waste| waste.set((waste.get().0 + executions, waste.get().1 + search.discarded())));
    Ok(Some(Explored {
        outcomes,
        counted,
        executions: executions - lost - search.discarded(),
        transitions: search.transitions(),
        sleep_blocked: search.sleep_blocked(),
        exhaustive: search.exhaustive(),
    }))
}

/// Checks `property` on random programs of a family; it gives false if a program is too large, and is given a number that
/// is another for each program.
fn check(family: Family, property: impl Fn(&mut Machine, &Program, u64) -> Result<bool, String>) {
    let config = Config { cases: cases(), failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() };
    let (used, number) = (Cell::new(0), Cell::new(0));
    let result = runner(config).run(&program(family), |program| {
        number.set(number.get() + 1);
        let held = MACHINE.with(|machine| property(&mut machine.borrow_mut(), &program, number.get()));
        let held = held.map_err(|e| TestCaseError::fail(format!("{program:?}: {e}")))?;
        used.set(used.get() + u32::from(held));
        Ok(())
    });
    if let Err(e) = result {
        panic!("{e}");
    }
    let (executions, waste) = WASTE.take();
    println!("{family:?}: {} programs, {executions} executions, {waste} of them for nothing", used.get());
    assert!(used.get() > cases() / 10, "most programs are too large: {} of {}", used.get(), cases());
}

/// What is explored, and what is counted, does not depend on how many executions are under way nor on what ends when.
fn optimal_in_disorder(machine: &mut Machine, program: &Program, number: u64) -> Result<bool, String> {
    let make = || -> Box<dyn Search> { Box::new(InOrder::optimal()) };
    let Some(expected) = explore(machine, program, &make, IN_ORDER)? else { return Ok(false) };
    for most in 1..=4 {
        for saves in [false, true] {
            let way = Way { most, saves, seed: number };
            let found = explore(machine, program, &make, way)?;
            if found.as_ref() != Some(&expected) {
                return Err(format!("{way:?}: {found:?}, in order {expected:?}"));
            }
        }
    }
    Ok(true)
}

/// With executions that were inserted wherever one had ended, in whatever order, this lost some.
#[test]
fn nested_readers() {
    let block = interp::How::Block;
    let read = |l| vec![Ins::Read(l, block), Ins::RwUnlock(l)];
    let write = |l| vec![Ins::Write(l, block), Ins::RwUnlock(l)];
    let nested = |l, k| vec![Ins::Read(l, block), Ins::Read(k, block), Ins::RwUnlock(l), Ins::RwUnlock(k)];
    let first = vec![Ins::Create(1), Ins::Create(2), Ins::Create(3)];
    let program = vec![
        [first, nested(1, 1), nested(1, 0)].concat(),
        [read(1), write(1)].concat(),
        vec![Ins::Read(0, interp::How::Try), Ins::RwUnlock(0)],
        [write(0), write(0)].concat(),
    ];
    MACHINE.with(|machine| {
        let mut small = true;
        for number in 0..50 {
            small &= optimal_in_disorder(&mut machine.borrow_mut(), &program, number).expect("the same");
        }
        assert!(small || cfg!(debug_assertions));
    });
}

/// Does `what` with timeouts that fire at any moment, or only where nothing else can go on.
fn at_any_moment(any: bool, what: impl FnOnce()) {
    let set = |any| MACHINE.with(|machine| machine.borrow_mut().timeouts_any = any);
    set(any);
    what();
    set(false);
}

macro_rules! disorder {
    ($($name:ident: $family:ident, $any:literal;)*) => {$(
        #[test]
        fn $name() {
            at_any_moment($any, || check(Family::$family, optimal_in_disorder));
        }
    )*};
}

disorder! {
    disorder_on_mutexes: Mutex, false;
    disorder_on_conditions: Cond, false;
    disorder_on_semaphores: Sem, false;
    disorder_on_sysv_semaphores: Sysv, false;
    disorder_on_message_queues: Msg, false;
    disorder_on_locks_of_files: Files, false;
    disorder_on_rwlocks: Rw, false;
    disorder_on_barriers_spinlocks_once: Barrier, false;
    disorder_on_streams: Stream, false;
    disorder_on_futexes: Futex, false;
    disorder_on_thread_life: Life, false;
    disorder_on_processes: Process, false;
    disorder_on_timeouts: Timed, false;
    disorder_on_events: Event, false;
    disorder_on_posix_queues: Mqueue, false;
    disorder_on_sockets: Socket, false;
    disorder_on_signals: Signal, false;
    disorder_on_memory: Memory, false;
    disorder_on_all: All, false;
    disorder_on_timeouts_at_any_moment: Timed, true;
    disorder_on_events_at_any_moment: Event, true;
    disorder_on_posix_queues_at_any_moment: Mqueue, true;
    disorder_on_all_at_any_moment: All, true;
}

#[test]
fn dpor_is_saved() {
    let make = || -> Box<dyn Search> { Box::new(InOrder::dpor()) };
    for family in Family::ALL {
        check(family, |machine, program, number| {
            let Some(expected) = explore(machine, program, &make, IN_ORDER)? else { return Ok(false) };
            let found = explore(machine, program, &make, Way { most: 1, saves: true, seed: number })?;
            match found.as_ref() == Some(&expected) {
                true => Ok(true),
                false => Err(format!("{found:?}\n{expected:?}")),
            }
        });
    }
}

/// Threads that lock, count and unlock, and one that creates them.
fn counters(threads: usize) -> Program {
    let section = || vec![Ins::Lock(0, interp::How::Block), Ins::Count(0), Ins::Unlock(0)];
    let mut program: Program = (0..threads).map(|_| section()).collect();
    program.insert(0, (1..=threads).map(Ins::Create).collect());
    program
}

/// Workers that all take the same time for an execution are hardly ever without one, nor with one for nothing.
#[test]
fn workers_are_busy() {
    let (program, orders) = (counters(6), 720);
    for workers in [1, 2, 4, 8] {
        let (mut search, mut rounds, mut executions) = (InOrder::optimal(), 0, 0);
        loop {
            let round: Vec<Schedule> = std::iter::from_fn(|| search.next()).take(workers).collect();
            if round.is_empty() {
                break;
            }
            rounds += 1;
            executions += round.len();
            for schedule in round {
                let (trace, _) = MACHINE.with(|machine| machine.borrow_mut().run(&program, &schedule, u64::MAX));
                search.done(schedule.ticket, &trace);
            }
        }
        let discarded = search.discarded() as usize;
        println!("{workers} workers: {rounds} rounds, {executions} executions, {discarded} of them for nothing");
        assert_eq!(executions - discarded, orders);
        assert!(rounds * workers * 10 <= orders * 11, "{rounds} rounds of {workers}");
        assert!(search.exhaustive());
    }
}

/// If the execution at its turn takes longer than all that can be run ahead, no more than so much is; and what has to give way
/// changes nothing.
#[test]
fn what_is_run_ahead_is_bounded() {
    let (program, orders) = (counters(7), 5040);
    let run = |schedule: &Schedule| MACHINE.with(|machine| machine.borrow_mut().run(&program, schedule, u64::MAX).0);
    let (mut search, mut executions, mut most) = (InOrder::optimal(), 0, 0);
    while let Some(slow) = search.next() {
        while let Some(schedule) = search.next() {
            search.done(schedule.ticket, &run(&schedule));
            executions += 1;
            most = most.max(search.ahead());
        }
        search.done(slow.ticket, &run(&slow));
        executions += 1;
    }
    println!("{executions} executions, {} of them for nothing, at most {most} ahead", search.discarded());
    assert!(search.exhaustive() && search.ahead() == 0);
    assert_eq!(executions - search.discarded(), orders);
    assert_eq!(most, 512);
}

/// A search with a tree, some of it done, and executions under way: two, if it can have them.
fn half_done(machine: &mut Machine, mut search: Box<dyn Search>) -> Box<dyn Search> {
    let block = interp::How::Block;
    let section = |m| vec![Ins::Lock(m, block), Ins::Count(m), Ins::Unlock(m)];
    let program = vec![
        [vec![Ins::Create(1), Ins::Create(2)], section(0), section(1)].concat(),
        [section(1), section(0), vec![Ins::Toss(1)]].concat(),
        [section(0), section(1)].concat(),
    ];
    for _ in 0..5 {
        let schedule = search.next().expect("more to do");
        let (trace, _) = machine.run(&program, &schedule, u64::MAX);
        search.done(schedule.ticket, &trace);
    }
    assert!(search.next().is_some());
    assert_eq!(search.next().is_some(), search.parallel());
    search
}

/// Every search that can be saved.
const SAVED: [fn() -> Box<dyn Search>; 13] = [
    || Box::new(InOrder::optimal()),
    || Box::new(InOrder::dpor()),
    || by_name("naive", 0).expect("known"),
    || by_name("random", 1).expect("known"),
    || by_name("walk", 1).expect("known"),
    || by_name("pos", 1).expect("known"),
    || by_name("surw", 1).expect("known"),
    || by_name("rff", 1).expect("known"),
    || by_name("novel", 1).expect("known"),
    || by_name("predict", 1).expect("known"),
    || Box::new(Pct::new(1, 3, Pct::FAIR)),
    || Box::new(Bounded::new(Bound::Delays(2))),
    || Box::new(BoundedReduction::new(2)),
];

#[test]
fn broken_bytes_are_refused() {
    MACHINE.with(|machine| {
        for make in SAVED {
            let bytes = half_done(&mut machine.borrow_mut(), make()).save().expect("it can be saved");
            assert_eq!(make().restore(&bytes), Ok(()));
            for length in 0..bytes.len() {
                assert!(make().restore(&bytes[..length]).is_err(), "{length}");
            }
            assert!(make().restore(&[bytes.as_slice(), &[0]].concat()).is_err());
        }
        for (one, other) in [(SAVED[0], SAVED[1]), (SAVED[1], SAVED[0])] {
            let bytes = half_done(&mut machine.borrow_mut(), one()).save().expect("it can be saved");
            assert!(other().restore(&bytes).is_err());
        }
    });
}

/// What is changed and not refused is a search all the same: it ends, or goes on, and nothing panics.
#[test]
fn changed_bytes_do_no_harm() {
    MACHINE.with(|machine| {
        let machine = &mut machine.borrow_mut();
        let program = vec![vec![Ins::Create(1), Ins::Post(0)], vec![Ins::SemWait(0, interp::How::Block)]];
        for make in SAVED {
            let bytes = half_done(machine, make()).save().expect("it can be saved");
            let mut refused = 0;
            for bit in (0..8 * bytes.len()).step_by(7) {
                let mut changed = bytes.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                let mut search = make();
                if search.restore(&changed).is_err() {
                    refused += 1;
                    continue;
                }
                for _ in 0..5 {
                    let Some(schedule) = search.next() else { break };
                    let ahead = if search.parallel() { search.next() } else { None };
                    for schedule in ahead.iter().chain([&schedule]) {
                        let (trace, _) = machine.run(&program, schedule, u64::MAX);
                        search.done(schedule.ticket, &trace);
                    }
                }
            }
            println!("{refused} changes are refused");
            assert!(refused > 0, "nothing was refused of {} bytes", bytes.len());
        }
    });
}

/// Two threads that share nothing but a mutex at their ends, and work on objects of their own `rounds` times before that.
fn long_program(rounds: usize) -> Program {
    let block = interp::How::Block;
    let section = |m| vec![Ins::Lock(m, block), Ins::Unlock(m)];
    let own = |m| (0..rounds).flat_map(|_| section(m)).collect::<Vec<Ins>>();
    vec![[vec![Ins::Create(1)], own(0), section(2)].concat(), [own(1), section(2)].concat()]
}

/// Seconds per execution with so many transitions in each; not part of the tests, for its result depends on the machine.
#[test]
#[ignore = "measures"]
fn time_of_long_executions() {
    for rounds in [500, 5000] {
        for name in ["optimal", "dpor"] {
            let program = long_program(rounds);
            let mut search = by_name(name, 0).expect("known");
            MACHINE.with(|machine| {
                let machine = &mut machine.borrow_mut();
                while let Some(schedule) = search.next() {
                    let (trace, _) = machine.run(&program, &schedule, u64::MAX);
                    let since = std::time::Instant::now();
                    search.done(schedule.ticket, &trace);
                    println!("{name}: {} transitions, {:.4} s", trace.steps.len(), since.elapsed().as_secs_f64());
                }
            });
        }
    }
}
