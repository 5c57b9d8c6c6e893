//! What executions allow that they did not show, against all there is: random programs of locks; and guides, which are followed where they can be.

use std::cell::{Cell, RefCell};

use crate::interp::generate::{program, runner, Family};
use crate::interp::{How, Ins, Machine, Program};
use proptest::test_runner::{Config, TestCaseError};
use vsrun::schedule::Schedule;
use vsrun::search::{by_name, InOrder, Predict, Random, Search};
use vsrun::trace::Trace;
use vsrun_model::arena::Choice;
use vsrun_model::{End, Kind, Uid};

/// Random programs of locks.
const PROGRAMS: u64 = if cfg!(debug_assertions) { 150 } else { 2000 };
/// Executions of the search for each.
const EXECUTIONS: u64 = 60;

thread_local! {
    static MACHINE: RefCell<Machine> = RefCell::new(Machine::new());
}

/// splitmix64.
struct Lots(u64);

impl Lots {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

/// Critical sections in each other: of mutexes, of a semaphore, and of read-write locks in either mode.
fn sections(lots: &mut Lots, depth: u64) -> Vec<Ins> {
    if depth == 0 || lots.below(4) == 0 {
        return Vec::new();
    }
    let inner = sections(lots, depth - 1);
    let (from, to) = match lots.below(8) {
        0 => (Ins::Read(0, How::Block), Ins::RwUnlock(0)),
        1 => (Ins::Write(0, How::Block), Ins::RwUnlock(0)),
        2 | 3 => (Ins::SemWait(1, How::Block), Ins::Post(1)),
        n => (Ins::Lock(n as u32 % 3, How::Block), Ins::Unlock(n as u32 % 3)),
    };
    // A lock that is taken twice is a bug of another kind.
    if inner.contains(&from) || inner.contains(&to) {
        return inner;
    }
    [vec![from], inner, vec![to]].concat()
}

fn of_locks(lots: &mut Lots) -> Program {
    let threads = 2 + lots.below(2);
    let bodies = (0..threads).map(|_| (0..1 + lots.below(2)).flat_map(|_| sections(lots, 3)).collect());
    let bodies: Vec<Vec<Ins>> = bodies.collect();
    let main = (1..=threads).map(|t| Ins::Create(t as usize)).collect();
    [vec![main], bodies].concat()
}

fn is_stuck(trace: &Trace) -> bool {
    matches!(trace.end, End::DEADLOCK | End::CYCLE)
}

/// Whether a search that is complete comes to an execution that is stuck.
fn gets_stuck(machine: &mut Machine, program: &Program) -> bool {
    let mut search = InOrder::optimal();
    while let Some(schedule) = search.next() {
        let (trace, _) = machine.run(program, &schedule, u64::MAX);
        if is_stuck(&trace) {
            return true;
        }
        search.done(schedule.ticket, &trace);
    }
    false
}

#[test]
fn deadlocks_that_are_predicted_come_about_and_hardly_one_is_missed() {
    let (mut lots, mut machine) = (Lots(1), Machine::new());
    let (mut predicted, mut stuck, mut missed) = (0, 0, 0);
    for _ in 0..PROGRAMS {
        let program = of_locks(&mut lots);
        let mut search = Predict::new(3);
        let mut found = false;
        for _ in 0..EXECUTIONS {
            let is_circle = search.deadlocks() > 0;
            let schedule = search.next().expect("endless");
            let (trace, _) = machine.run(&program, &schedule, u64::MAX);
            if is_circle {
                assert!(is_stuck(&trace), "{program:?} does not get stuck by {schedule:?}, but {:?}", trace.end);
                predicted += 1;
            }
            found |= is_stuck(&trace);
            search.done(schedule.ticket, &trace);
        }
        let is_there = gets_stuck(&mut machine, &program);
        assert!(is_there || !found, "{program:?}");
        stuck += u32::from(is_there);
        missed += u32::from(is_there && !found);
    }
    println!("{predicted} deadlocks were predicted and came about; {stuck} programs get stuck, {missed} were missed");
    assert!(predicted > 20 && stuck > 20 && missed * 100 <= stuck, "{predicted} {stuck} {missed}");
}

/// The first execution, counted from 1, that ends like this.
fn first(search: &mut dyn Search, program: &Program, most: u64, is_it: impl Fn(&Trace) -> bool) -> Option<u64> {
    MACHINE.with(|machine| {
        for n in 1..=most {
            let schedule = search.next().expect("endless");
            let (trace, _) = machine.borrow_mut().run(program, &schedule, u64::MAX);
            if is_it(&trace) {
                return Some(n);
            }
            search.done(schedule.ticket, &trace);
        }
        None
    })
}

/// Critical sections of a lock that nobody else takes.
fn own_work(lock: u32) -> Vec<Ins> {
    (0..300).flat_map(|_| [Ins::Lock(lock, How::Block), Ins::Unlock(lock)]).collect()
}

#[test]
fn an_inversion_far_apart_is_found_in_the_second_execution() {
    let nested = |a, b| vec![Ins::Lock(a, How::Block), Ins::Lock(b, How::Block), Ins::Unlock(b), Ins::Unlock(a)];
    let program: Program = vec![
        vec![Ins::Create(1), Ins::Create(2)],
        [own_work(2), nested(0, 1)].concat(),
        [nested(1, 0), own_work(3)].concat(),
    ];
    assert_eq!(first(&mut Predict::new(1), &program, 10, is_stuck), Some(2));
    assert_eq!(first(&mut Random::new(1), &program, 1000, is_stuck), None);
}

#[test]
fn writes_and_reads_that_nothing_rests_on_are_no_order() {
    let [to_x, y] = [0, 2].map(|v| Ins::Store(v, 1));
    let nested = |a, b| [Ins::Lock(a, How::Block), Ins::Lock(b, How::Block), Ins::Unlock(b), Ins::Unlock(a)];
    // In the first execution all of the first thread comes first. What the second one then writes was written by the first, too, behind its locks.
    for last in [to_x.clone(), Ins::Load(0)] {
        let program: Program = vec![
            vec![Ins::Create(1), Ins::Create(2)],
            [&nested(0, 1)[..], &[last.clone(), y.clone()]].concat(),
            [&[to_x.clone()][..], &nested(1, 0)].concat(),
        ];
        assert_eq!(first(&mut Predict::new(1), &program, 10, is_stuck), Some(2), "{last:?}");
    }
    // Who reads what was written has to come behind that.
    let reads: Program = vec![
        vec![Ins::Create(1), Ins::Create(2)],
        [&nested(0, 1)[..], &[to_x.clone(), y]].concat(),
        [&[Ins::Load(0)][..], &nested(1, 0)].concat(),
    ];
    let mut search = Predict::new(1);
    assert_ne!(first(&mut search, &reads, 2, is_stuck), Some(2));
}

#[test]
fn a_semaphore_that_is_used_as_a_lock_is_one() {
    let inverted = |semaphore: [Ins; 2]| -> Program {
        let [takes, gives] = semaphore;
        vec![
            vec![Ins::Create(1), Ins::Create(2)],
            [own_work(2), vec![Ins::Lock(0, How::Block), takes.clone(), gives.clone(), Ins::Unlock(0)]].concat(),
            [vec![takes, Ins::Lock(0, How::Block), Ins::Unlock(0), gives], own_work(3)].concat(),
        ]
    };
    let of = |number| inverted([Ins::SemWait(number, How::Block), Ins::Post(number)]);
    let predicted = |program: &Program| {
        let mut search = Predict::new(1);
        assert_eq!(first(&mut search, program, 1, is_stuck), None);
        search.deadlocks()
    };
    assert_eq!(predicted(&of(1)), 1);
    assert_eq!(first(&mut Predict::new(1), &of(1), 10, is_stuck), Some(2));
    // There are two of these, one for each.
    assert_eq!(predicted(&of(2)), 0);
    assert_eq!(first(&mut Predict::new(1), &of(2), 100, is_stuck), None);
}

#[test]
fn circles_may_be_long() {
    // The locks are the mutexes and the semaphores that there is one of.
    let section = |own: [Ins; 2], next: [Ins; 2]| {
        let ([take, give], [take_next, give_next]) = (own, next);
        vec![take, take_next, give_next, give]
    };
    let mutex = |n| [Ins::Lock(n, How::Block), Ins::Unlock(n)];
    let all = [mutex(0), mutex(1), [Ins::SemWait(1, How::Block), Ins::Post(1)], mutex(2), mutex(3)];
    let seats = (0..all.len()).map(|i| section(all[i].clone(), all[(i + 1) % all.len()].clone()));
    let main = (1..=all.len()).map(Ins::Create).collect();
    let program: Program = std::iter::once(main).chain(seats).collect();
    assert_eq!(first(&mut Predict::new(1), &program, 10, is_stuck), Some(2));
}

#[test]
fn what_is_taken_needs_as_many_as_were_added_and_no_more() {
    // The second post is far behind; the first is enough for the thread that takes one.
    let nested = |a, b| vec![Ins::Lock(a, How::Block), Ins::Lock(b, How::Block), Ins::Unlock(b), Ins::Unlock(a)];
    let of = |posts: [Vec<Ins>; 2]| -> Program {
        let [before, behind] = posts;
        vec![
            vec![Ins::Create(1), Ins::Create(2)],
            [before, nested(0, 1), behind].concat(),
            [vec![Ins::SemWait(0, How::Block)], nested(1, 0)].concat(),
        ]
    };
    let post = || vec![Ins::Post(0)];
    assert_eq!(first(&mut Predict::new(1), &of([post(), post()]), 10, is_stuck), Some(2));
    assert_eq!(first(&mut Predict::new(1), &of([vec![], post()]), 100, is_stuck), None);
}

#[test]
fn an_order_that_is_far_from_those_seen_is_found_soon() {
    // Wrong only where all that the first thread does comes before the first operation of the second one.
    let program: Program = vec![
        vec![Ins::Create(1), Ins::Create(2)],
        [own_work(2), vec![Ins::Lock(0, How::Block), Ins::Count(0), Ins::Unlock(0)]].concat(),
        [vec![Ins::Lock(0, How::Block), Ins::AssertNot(0, 1), Ins::Unlock(0)], own_work(3)].concat(),
    ];
    let fails = |trace: &Trace| trace.end == End::ASSERT;
    let found = first(&mut Predict::new(1), &program, 10, fails);
    assert!(found.is_some_and(|n| n <= 3), "{found:?}");
    assert_eq!(first(&mut Random::new(1), &program, 1000, fails), None);
}

#[test]
fn the_steps_of_an_execution_as_a_guide_are_that_execution() {
    let machine = RefCell::new(Machine::new());
    for family in Family::ALL {
        let cases = if cfg!(debug_assertions) { 30 } else { 200 };
        let mut runner = runner(Config { cases, failure_persistence: None, ..Config::default() });
        let result = runner.run(&program(family), |program| {
            let (machine, mut search) = (&mut machine.borrow_mut(), Random::pos(7));
            for _ in 0..3 {
                let schedule = Schedule { blind: false, ..search.next().expect("endless") };
                let (trace, outcome) = machine.run(&program, &schedule, 300);
                let choices = trace.choices(trace.steps.len());
                let guided = Schedule { guide: choices.clone(), ..Schedule::default() };
                let (again, same) = machine.run(&program, &guided, 300);
                let made = again.choices(again.steps.len().min(choices.len()));
                if made != choices || trace.end != End::DEPTH && outcome.text != same.text {
                    return Err(TestCaseError::fail(format!("{choices:?}, then {made:?}")));
                }
            }
            Ok(())
        });
        result.unwrap_or_else(|e| panic!("{family:?}: {e}"));
    }
}

#[test]
fn what_is_foretold_comes_about() {
    let machine = RefCell::new(Machine::new());
    for family in Family::ALL {
        let cases = if cfg!(debug_assertions) { 30 } else { 300 };
        let mut runner = runner(Config { cases, failure_persistence: None, ..Config::default() });
        let told = Cell::new(0);
        let result = runner.run(&program(family), |program| {
            let (machine, mut search) = (&mut machine.borrow_mut(), Predict::new(5));
            for _ in 0..40 {
                let foretold = search.foretold().unwrap_or(0);
                let schedule = search.next().expect("endless");
                let (trace, _) = machine.run(&program, &schedule, 300);
                let made = trace.choices(foretold.min(trace.steps.len()));
                // What is read within critical sections is not told, and a circle is told once it is closed.
                let ends = matches!(trace.end, End::ASSERT | End::CYCLE) && schedule.guide.starts_with(&made);
                if !ends && made != schedule.guide[..foretold] {
                    return Err(TestCaseError::fail(format!("{:?} of {:?}, {made:?}", foretold, schedule.guide)));
                }
                told.set(told.get() + foretold);
                search.done(schedule.ticket, &trace);
            }
            Ok(())
        });
        println!("{family:?}: {} choices came about", told.get());
        result.unwrap_or_else(|e| panic!("{family:?}: {e}"));
        assert!(told.get() > 100, "{family:?}");
    }
}

#[test]
fn a_guide_is_followed_as_far_as_it_can_be() {
    let program: Program = vec![
        vec![Ins::Create(1), Ins::Create(2)],
        vec![Ins::Lock(0, How::Block), Ins::Post(1), Ins::Unlock(0)],
        vec![Ins::Lock(0, How::Block), Ins::Post(2), Ins::Unlock(0)],
    ];
    let mut machine = Machine::new();
    let (plain, _) = machine.run(&program, &Schedule { record: true, ..Schedule::default() }, u64::MAX);
    let (one, two) = (plain.threads[1], plain.threads[2]);
    let by = |guide: Vec<Choice>, machine: &mut Machine| {
        let (trace, _) = machine.run(&program, &Schedule { guide, ..Schedule::default() }, u64::MAX);
        assert_eq!(trace.end, End::FINISHED);
        let steps = trace.steps.iter().filter(|s| s.act.tid > 0);
        steps.map(|s| (s.act.tid, s.act.op.kind)).collect::<Vec<_>>()
    };
    let (lock, post, unlock) = (Kind::MUTEX_LOCK, Kind::SEM_POST, Kind::MUTEX_UNLOCK);
    let choice = |uid, kind| Choice::new(uid, 0, kind);
    // The first thread waits from its first step on; its choices are made when it can go on.
    let waits = vec![choice(two, lock), choice(one, lock), choice(one, post), choice(two, post), choice(two, unlock)];
    let made = by(waits, &mut machine);
    assert_eq!(made, [(2, lock), (2, post), (2, unlock), (1, lock), (1, post), (1, unlock)]);
    // Nobody, another operation, and an alternative that there is not, are left out.
    let wrong =
        vec![choice(Uid(77), lock), choice(two, post), Choice::new(two, 5, lock), choice(two, lock), choice(two, post)];
    assert_eq!(by(wrong, &mut machine)[..2], [(2, lock), (2, post)]);
}

#[test]
fn what_is_saved_goes_on_as_it_was() {
    let nested = |a, b| vec![Ins::Lock(a, How::Block), Ins::Lock(b, How::Block), Ins::Unlock(b), Ins::Unlock(a)];
    let program: Program =
        vec![vec![Ins::Create(1), Ins::Create(2)], nested(0, 1), [nested(1, 0), nested(2, 0)].concat()];
    let (mut machine, mut one) = (Machine::new(), by_name("predict", 5).expect("known"));
    for _ in 0..4 {
        let schedule = one.next().expect("endless");
        one.done(schedule.ticket, &machine.run(&program, &schedule, u64::MAX).0);
    }
    let mut other = by_name("predict", 0).expect("known");
    other.restore(&one.save().expect("it can be saved")).expect("it is as it was");
    for _ in 0..40 {
        let (a, b) = (one.next().expect("endless"), other.next().expect("endless"));
        assert_eq!(a, b);
        let trace = machine.run(&program, &a, u64::MAX).0;
        one.done(a.ticket, &trace);
        other.done(b.ticket, &trace);
    }
}
