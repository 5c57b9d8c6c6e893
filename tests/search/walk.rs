//! Searches that draw lots: how likely each interleaving is, in the model interpreter.

use std::collections::BTreeMap;

use crate::interp::{How, Ins, Machine, Program, SEMS};
use vsrun::schedule::Schedule;
use vsrun::search::by_name;
use vsrun::trace::Trace;
use vsrun_model::Kind;

/// Two threads of `short` and `long` operations, each thread on a semaphore of its own, that a first one starts.
fn two_threads(short: usize, long: usize) -> Program {
    vec![vec![Ins::Create(1), Ins::Create(2)], vec![Ins::Post(0); short], vec![Ins::Post(1); long]]
}

/// Runs of each interleaving, without the first execution, of which nothing was known.
fn frequencies(search: &str, program: &Program, runs: u32) -> BTreeMap<Vec<u32>, u32> {
    let (mut machine, mut search) = (Machine::new(), by_name(search, 5).expect("known"));
    let mut counts = BTreeMap::new();
    for run in 0..=runs {
        let schedule = search.next().expect("endless");
        let (trace, _) = machine.run(program, &schedule, u64::MAX);
        search.done(schedule.ticket, &trace);
        if run > 0 {
            *counts.entry(trace.steps.iter().map(|s| s.act.tid).collect()).or_default() += 1;
        }
    }
    counts
}

/// Pearson's statistic against the uniform distribution over `cells` cells.
fn chi_squared(counts: &BTreeMap<Vec<u32>, u32>, cells: usize) -> f64 {
    let mean = f64::from(counts.values().sum::<u32>()) / cells as f64;
    let square = |&n: &u32| (f64::from(n) - mean).powi(2) / mean;
    counts.values().map(square).sum::<f64>() + mean * (cells - counts.len()) as f64
}

#[test]
fn every_interleaving_is_equally_likely() {
    const RUNS: u32 = 20_000;
    // 28 interleavings of 2 and 6 operations: 27 degrees of freedom, of which 55.5 is exceeded once in a thousand times;
    // 714 runs are to be expected of each, with a standard deviation of 26.
    let walk = frequencies("walk", &two_threads(2, 6), RUNS);
    let (least, most) = (walk.values().min().copied().unwrap_or(0), walk.values().max().copied().unwrap_or(0));
    println!("walk: {} interleavings, {least} to {most} runs, chi squared {:.1}", walk.len(), chi_squared(&walk, 28));
    assert_eq!(walk.len(), 28);
    assert!(least > 714 - 4 * 27 && most < 714 + 4 * 27, "{walk:?}");
    assert!(chi_squared(&walk, 28) < 55.5);
    let random = frequencies("random", &two_threads(2, 6), RUNS);
    println!("random: {} interleavings, chi squared {:.1}", random.len(), chi_squared(&random, 28));
    assert!(chi_squared(&random, 28) > 1000.0);
}

/// Runs in which the short thread waits until the long one is over.
#[test]
fn a_long_thread_comes_first_now_and_then() {
    let last = |search: &str| -> u32 {
        let counts = frequencies(search, &two_threads(1, 40), 4100);
        counts.iter().filter(|(order, _)| order.last() == Some(&1)).map(|(_, n)| n).sum()
    };
    // One of 41 interleavings: 100 runs; of plain random walks one in 2^40.
    let runs = last("walk");
    assert!((60..140).contains(&runs), "{runs}");
    assert_eq!(last("random"), 0);
}

/// Runs by how many critical sections the first thread has had when the second one has its own.
fn places(search: &str, program: &Program, runs: u32) -> BTreeMap<usize, u32> {
    let (mut machine, mut search) = (Machine::new(), by_name(search, 5).expect("known"));
    let mut counts = BTreeMap::new();
    for _ in 0..runs {
        let schedule = search.next().expect("endless");
        let (trace, _) = machine.run(program, &Schedule { blind: false, ..schedule.clone() }, u64::MAX);
        search.done(schedule.ticket, &trace);
        let mut locks = trace.steps.iter().filter(|s| s.act.op.kind == Kind::MUTEX_LOCK);
        *counts.entry(locks.position(|s| s.act.tid == 1).expect("it ends")).or_default() += 1;
    }
    counts
}

/// With partial order sampling the priority of a lock that waits is drawn again each time that another one is taken or given back: it comes
/// before the next with probability 1/2, whatever came before. With one priority for good those that have lost once would mostly lose again:
/// 1/3, 1/6, 1/10, 2/5 in the place of 1/2, 1/4, 1/8, 1/8.
#[test]
fn pos_draws_again_what_depends() {
    let sections = |n: usize| (0..n).flat_map(|_| [Ins::Lock(0, How::Block), Ins::Unlock(0)]).collect::<Vec<Ins>>();
    let places = places("pos", &vec![vec![Ins::Create(1), Ins::Create(2)], sections(1), sections(4)], 8000);
    println!("pos: {places:?}");
    let after: Vec<f64> = (1..=4).map(|n| places.get(&n).copied().unwrap_or(0).into()).collect();
    let all: f64 = after.iter().sum();
    assert!(all > 1000.0, "{places:?}");
    for (part, wanted) in after.iter().map(|n| n / all).zip([0.5, 0.25, 0.125, 0.125]) {
        // Four standard deviations.
        assert!((part - wanted).abs() < 4.0 * (wanted * (1.0 - wanted) / all).sqrt(), "{places:?}");
    }
}

/// What depends on nothing comes between two operations that depend on each other, and costs no more than its number: the last one of
/// 40 comes before a lock that waits if the lock has the lowest priority of 42.
#[test]
fn pos_comes_to_the_end_of_long_threads() {
    let far = [vec![Ins::Post(1); 40], vec![Ins::Lock(0, How::Block), Ins::Unlock(0)]].concat();
    let near = vec![Ins::Lock(0, How::Block), Ins::Unlock(0)];
    let program = vec![vec![Ins::Create(1), Ins::Create(2)], near, far];
    let late = |search: &str| places(search, &program, 8400).get(&1).copied().unwrap_or(0);
    // 42 operations that are pending one after the other, and main's second Create and end.
    let pos = late("pos");
    println!("pos: {pos} of 8400");
    assert!((100..300).contains(&pos), "{pos}");
    assert_eq!(late("random"), 0);
}

/// Two threads with three operations each on one object, of which the first thread comes to its own only after twenty others.
fn three_and_three() -> Program {
    let late = [vec![Ins::Post(1); 20], vec![Ins::Post(0); 3]].concat();
    let early = [vec![Ins::Post(0); 3], vec![Ins::Post(2); 20]].concat();
    vec![vec![Ins::Create(1), Ins::Create(2)], late, early]
}

/// Runs of each order of the operations on that object, by thread; the first ten runs do not count.
fn orders(search: &str, runs: u32) -> BTreeMap<Vec<u32>, u32> {
    let (mut machine, mut search) = (Machine::new(), by_name(search, 5).expect("known"));
    let mut counts = BTreeMap::new();
    for run in 0..runs + 10 {
        let schedule = search.next().expect("endless");
        let (trace, _) = machine.run(&three_and_three(), &Schedule { blind: false, ..schedule.clone() }, u64::MAX);
        search.done(schedule.ticket, &trace);
        let posts: Vec<_> = trace.steps.iter().filter(|s| s.act.op.kind == Kind::SEM_POST && s.act.tid > 0).collect();
        let of = |tid: u32| posts.iter().filter(move |s| s.act.tid == tid).map(|s| s.act.op.obj);
        // The object that both use.
        let both = of(1).find(|o| of(2).any(|p| p == *o)).expect("there is one");
        if run >= 10 {
            let order = posts.iter().filter(|s| s.act.op.obj == both).map(|s| s.act.tid).collect();
            *counts.entry(order).or_default() += 1;
        }
    }
    counts
}

/// The operations of interest come in each of their 20 orders equally often, whatever else threads do before and after: 19 degrees of freedom, of
/// which 43.8 is exceeded once in a thousand times.
#[test]
fn surw_is_uniform_over_what_is_of_interest() {
    let surw = orders("surw", 8000);
    println!("surw: {} orders, chi squared {:.1}", surw.len(), chi_squared(&surw, 20));
    assert_eq!(surw.len(), 20);
    assert!(chi_squared(&surw, 20) < 43.8, "{surw:?}");
    let random = orders("random", 8000);
    println!("random: {} orders, chi squared {:.1}", random.len(), chi_squared(&random, 20));
    assert!(chi_squared(&random, 20) > 1000.0);
}

/// In which run the search comes to this, of 40 threads that post one semaphore and then another: who looks at both finds that the first has been
/// posted and the second has not.
fn first_run_between(search: &str, seed: u64) -> u32 {
    const WRITERS: usize = 40;
    let (mut machine, mut search) = (Machine::new(), by_name(search, seed).expect("known"));
    let creates = (1..=WRITERS + 1).map(Ins::Create).collect();
    let looks = vec![Ins::SemGet(0), Ins::SemGet(1)];
    let writers = vec![vec![Ins::Post(0), Ins::Post(1)]; WRITERS];
    let program: Program = [vec![creates], writers, vec![looks]].concat();
    for run in 1..2000 {
        let schedule = search.next().expect("endless");
        let (trace, _) = machine.run(&program, &Schedule { blind: false, ..schedule.clone() }, u64::MAX);
        search.done(schedule.ticket, &trace);
        let at = |kind, nth: usize| {
            trace.steps.iter().enumerate().filter(move |(_, s)| s.act.op.kind == kind).map(|(n, _)| n).nth(nth)
        };
        let (looks, second) = ([at(Kind::SEM_GET, 0), at(Kind::SEM_GET, 1)].map(Option::unwrap), {
            let object = trace.steps[at(Kind::SEM_GET, 1).unwrap()].act.op.obj;
            trace.steps.iter().position(|s| s.act.op.kind == Kind::SEM_POST && s.act.op.obj == object).unwrap()
        });
        if at(Kind::SEM_POST, 0).unwrap() < looks[0] && looks[1] < second {
            return run;
        }
    }
    2000
}

/// What forty threads do alike is one event, so there are few pairs to try: walks need a hundred runs.
#[test]
fn rff_comes_between_what_many_threads_do() {
    let median = |search: &str| {
        let mut runs: Vec<u32> = (0..21).map(|seed| first_run_between(search, seed)).collect();
        runs.sort_unstable();
        runs[10]
    };
    let (rff, random, pos) = (median("rff"), median("random"), median("pos"));
    println!("rff {rff}, random {random}, pos {pos} runs (median of 21 seeds)");
    assert!(rff <= 30 && rff * 3 < random, "{rff} {random}");
}

/// In which run one thread looks at each of four semaphores, which another one posts four times, when that has done so once, and when it has done so three times. It
/// goes on only while it finds that.
fn first_run_to_the_end(search: &str, seed: u64, most: u32) -> u32 {
    const LOOKS: u32 = 8;
    let (mut machine, mut search) = (Machine::new(), by_name(search, seed).expect("known"));
    let posts = (0..4).flat_map(|n| vec![Ins::Post(n); 4]).collect();
    let finds = |n: u32| Ins::SkipIf(i64::from(SEMS[n as usize / 2]) + [1, 3][n as usize % 2]);
    let looks = (0..LOOKS).flat_map(|n| [Ins::SemGet(n / 2), finds(n), Ins::Exit]);
    let program: Program =
        vec![vec![Ins::Create(1), Ins::Create(2)], posts, looks.chain([Ins::Draw, Ins::Draw]).collect()];
    for run in 1..most {
        let schedule = search.next().expect("endless");
        let (trace, _) = machine.run(&program, &Schedule { blind: false, ..schedule.clone() }, u64::MAX);
        search.done(schedule.ticket, &trace);
        let looked = trace.steps.iter().filter(|s| s.act.op.kind == Kind::SEM_GET).count() as u32;
        if looked == LOOKS && !trace.steps.iter().any(|s| s.act.op.kind == Kind::EXIT) {
            return run;
        }
    }
    most
}

/// Samples would have to come to all eight at once.
#[test]
fn novel_goes_on_from_what_has_come_far() {
    let mut novel: Vec<u32> = (0..11).map(|seed| first_run_to_the_end("novel", seed, 10_000)).collect();
    novel.sort_unstable();
    let others = ["random", "pos"].map(|search| (0..3).map(|seed| first_run_to_the_end(search, seed, 3000)).min());
    println!("novel {} runs (median of 11 seeds), random and pos {others:?} (least of 3)", novel[5]);
    assert!(novel[5] < 1500 && others == [Some(3000); 2], "{novel:?} {others:?}");
}

/// What was learnt is saved.
#[test]
fn searches_that_learn_go_on_where_they_were() {
    for name in ["surw", "rff", "novel"] {
        let (mut machine, program) = (Machine::new(), three_and_three());
        let mut one = by_name(name, 3).expect("known");
        for _ in 0..20 {
            let schedule = one.next().expect("endless");
            let (trace, _) = machine.run(&program, &schedule, u64::MAX);
            one.done(schedule.ticket, &trace);
            // The schedule alone repeats it.
            let again = Schedule { record: true, blind: false, ..schedule };
            let (trace, other) =
                (acts(&machine.run(&program, &again, u64::MAX).0), machine.run(&program, &again, u64::MAX).0);
            assert_eq!(acts(&other), trace);
        }
        let lost = one.next().expect("endless");
        assert!(!lost.interest.is_empty() || !lost.wishes.is_empty() || name != "surw", "{lost:?}");
        let bytes = one.save().expect("it can be saved");
        let mut other = by_name(name, 99).expect("known");
        other.restore(&bytes).expect("whole");
        let key = |s: Schedule| (s.seed, s.expected, s.interest, s.wishes, s.guide);
        assert_eq!(key(other.next().expect("endless")), key(lost));
        for _ in 0..20 {
            assert_eq!(other.next().map(key), one.next().map(key));
        }
        for length in 0..bytes.len() {
            assert!(by_name(name, 1).expect("known").restore(&bytes[..length]).is_err(), "{length}");
        }
    }
}

fn acts(trace: &Trace) -> Vec<(u64, u32)> {
    trace.steps.iter().map(|s| (s.act.uid.0, s.value)).collect()
}

/// The schedule alone repeats the walk, whatever has been learnt since; so does its record.
#[test]
fn a_walk_can_be_repeated() {
    let (mut machine, mut walk) = (Machine::new(), by_name("walk", 1).expect("known"));
    let program = vec![
        vec![Ins::Create(1), Ins::Create(2), Ins::Toss(3), Ins::Lock(0, How::Block), Ins::Unlock(0)],
        vec![Ins::Lock(0, How::Block), Ins::Toss(2), Ins::SkipIf(1), Ins::Post(0), Ins::Unlock(0)],
        [vec![Ins::Post(1); 5], vec![Ins::Lock(0, How::Block), Ins::Unlock(0)]].concat(),
    ];
    let mut walks = Vec::new();
    for _ in 0..50 {
        let schedule = walk.next().expect("endless");
        let (trace, _) = machine.run(&program, &schedule, u64::MAX);
        walk.done(schedule.ticket, &trace);
        walks.push((schedule, trace));
    }
    assert!(walks[0].0.expected.is_empty() && walks[49].0.expected.len() == 3, "{:?}", walks[49].0);
    for (schedule, trace) in walks {
        let again = Schedule { record: true, blind: false, ..schedule };
        assert_eq!(acts(&machine.run(&program, &again, u64::MAX).0), acts(&trace));
        let recorded = Schedule { prefix: trace.choices(trace.steps.len()), ..Schedule::default() };
        assert_eq!(acts(&machine.run(&program, &recorded, u64::MAX).0), acts(&trace));
    }
}

#[test]
fn a_walk_goes_on_where_it_was() {
    let (mut machine, program) = (Machine::new(), two_threads(1, 5));
    let mut one = by_name("walk", 3).expect("known");
    for _ in 0..4 {
        let schedule = one.next().expect("endless");
        let (trace, _) = machine.run(&program, &schedule, u64::MAX);
        one.done(schedule.ticket, &trace);
    }
    let lost = one.next().expect("endless");
    let bytes = one.save().expect("it can be saved");
    let mut other = by_name("walk", 99).expect("known");
    other.restore(&bytes).expect("whole");
    let again = other.next().expect("endless");
    assert_eq!((again.seed, &again.expected), (lost.seed, &lost.expected));
    assert_eq!(other.next().map(|s| (s.seed, s.expected)), one.next().map(|s| (s.seed, s.expected)));
    for length in 0..bytes.len() {
        assert!(by_name("walk", 1).expect("known").restore(&bytes[..length]).is_err(), "{length}");
    }
}
