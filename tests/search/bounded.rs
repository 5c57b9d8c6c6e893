//! The reduced search for at most K preemptions against the enumeration of all schedules with at most K, over random
//! model programs.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::interp::digest::Outcomes;
use crate::interp::generate::{program, runner, Family};
use crate::interp::{How, Ins, Machine, Program};
use proptest::test_runner::{Config, TestCaseError};
use vsrun::incomplete::Reason;
use vsrun::search::{Bound, Bounded, BoundedReduction, Search};
use vsrun::trace::Trace;
use vsrun_model::depend::{EXPIRED, GIVES_WAY};
use vsrun_model::signal::DIES;
use vsrun_model::{dependent_after, imprint, Kind};

/// Programs with more executions are left out.
const LIMIT: u64 = if cfg!(debug_assertions) { 200 } else { 3000 };
/// Programs per family.
const CASES: u32 = if cfg!(debug_assertions) { 100 } else { 800 };

thread_local! {
    static MACHINE: RefCell<Machine> = RefCell::new(Machine::new());
}

fn cases() -> u32 {
    std::env::var("VSRUN_ORACLE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(CASES)
}

/// Checks `property`, which counts what it wants to, on random programs of a family.
fn check(family: Family, property: impl Fn(&mut Machine, &Program, &mut Counts) -> Result<(), String>) {
    let config = Config { cases: cases(), failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() };
    let counts = RefCell::new(Counts::default());
    let result = runner(config).run(&program(family), |program| {
        let held = MACHINE.with(|machine| property(&mut machine.borrow_mut(), &program, &mut counts.borrow_mut()));
        held.map_err(TestCaseError::fail)
    });
    if let Err(e) = result {
        panic!("{e}");
    }
    let counts = counts.into_inner();
    println!("{family:?}: bound: (programs, all schedules, schedules executed): {counts:?}");
    assert!(counts.values().all(|c| c.0 > cases() / 10), "most programs are too large");
}

/// By bound: programs, executions of the enumeration, executions of the reduced search.
type Counts = BTreeMap<u32, (u32, u64, u64)>;

/// Preemptions of an execution all of whose states are recorded: the thread that moved before could have gone on, and
/// another did.
fn preemptions(trace: &Trace) -> u32 {
    let preempts = |n: usize| {
        let (before, now) = (trace.steps[n - 1].act.uid, trace.steps[n].act.uid);
        let stood = trace.seen[n].iter().find(|s| s.act.uid == before);
        let could = stood
            .is_some_and(|s| s.choices > 0 && s.act.op.kind != Kind::SLEEP && s.act.fate & (GIVES_WAY | EXPIRED) == 0);
        u32::from(could && now != before && trace.steps[n].act.op.signals & DIES == 0)
    };
    (1..trace.steps.len()).map(preempts).sum()
}

/// Explores with the reduced search, and checks that each schedule is executed once and is within the bound.
fn explore(
    machine: &mut Machine,
    program: &Program,
    search: &mut dyn Search,
    k: u32,
) -> Result<(Outcomes, u64), String> {
    let (mut outcomes, mut executed) = (Outcomes::new(), std::collections::BTreeSet::new());
    while let Some(schedule) = search.next() {
        let (trace, outcome) = machine.run(program, &schedule, u64::MAX);
        let choices: Vec<(u64, u32)> = trace.steps.iter().map(|s| (s.act.uid.0, s.value)).collect();
        if trace.steps.len() < schedule.prefix.len() {
            return Err(format!("a schedule that does not match: {schedule:?}"));
        }
        let cost = preemptions(&trace);
        if cost > k && !trace.was_timed() || !executed.insert(choices) {
            return Err(format!("{cost} preemptions for {k}, or the second time: {schedule:?}"));
        }
        outcomes.insert(outcome.text);
        search.done(schedule.ticket, &trace);
    }
    Ok((outcomes, executed.len() as u64))
}

/// With each bound the reduced search finds every outcome that a schedule within the bound has, and no other.
fn same_outcomes(machine: &mut Machine, program: &Program, counts: &mut Counts) -> Result<(), String> {
    let mut exactly = Vec::new();
    for k in [0, 1, 2, 3, 64] {
        let mut exact = Bounded::new(Bound::Preemptions(k));
        let Some((all, schedules)) = machine.explore(program, &mut exact, LIMIT) else { break };
        if k < 64 {
            exactly.push(all.clone());
        }
        let mut search = BoundedReduction::new(k);
        let (found, executions) = explore(machine, program, &mut search, k)?;
        let missed: Vec<_> = all.difference(&found).collect();
        // It does not claim to have found all, nor to have kept to the bound; without one it has.
        if search.limit() == Some(Reason::TimedBound) && !search.exhaustive() && k < 64 {
            let sum = counts.entry(k).or_default();
            *sum = (sum.0 + 1, sum.1 + all.len() as u64, sum.2 + (all.len() - missed.len()) as u64);
            continue;
        }
        if !missed.is_empty() || found.len() != all.len() {
            return Err(format!("bound {k}: {} of {} missed, the first: {}", missed.len(), all.len(), missed[0]));
        }
        if executions > schedules || search.exhaustive() && !exact.exhaustive() && k == 64 {
            return Err(format!("bound {k}: {executions} executions of {schedules}"));
        }
        let sum = counts.entry(k).or_default();
        *sum = (sum.0 + 1, sum.1 + schedules, sum.2 + executions);
    }
    covers_what_it_says(machine, program, &exactly)
}

/// What a search for many preemptions says to have covered is all that so few can bring about, also with several executions under way at a time.
fn covers_what_it_says(machine: &mut Machine, program: &Program, all: &[Outcomes]) -> Result<(), String> {
    let mut search = BoundedReduction::new(8);
    let (mut found, mut waiting, mut said) = (Outcomes::new(), Vec::new(), 0);
    for n in 0..4 * LIMIT {
        waiting.extend(search.next());
        // Every third time two are handed out, and the one that came last ends first.
        if n % 3 == 0 {
            waiting.extend(search.next());
        }
        let Some(schedule) = waiting.pop() else { break };
        let (trace, outcome) = machine.run(program, &schedule, u64::MAX);
        found.insert(outcome.text);
        search.done(schedule.ticket, &trace);
        while let Some(all) = search.covered().and_then(|k| all.get(said).filter(|_| said <= k as usize)) {
            if let Some(missed) = all.difference(&found).next() {
                return Err(format!("{said} preemptions are said to be covered, but for {missed}"));
            }
            said += 1;
        }
        if said == all.len() {
            break;
        }
    }
    Ok(())
}

/// With epoll instances and timeouts, a schedule was counted as beyond the bound, rarely.
#[test]
#[ignore = "known gap: one preemption too many in a few programs in a thousand"]
fn bounds_hold_on_events() {
    check(Family::Event, same_outcomes);
}

/// Does `what` with timeouts that fire at any moment, or only where nothing else can go on.
fn at_any_moment(any: bool, what: impl FnOnce()) {
    let set = |any| MACHINE.with(|machine| machine.borrow_mut().timeouts_any = any);
    set(any);
    what();
    set(false);
}

macro_rules! agree {
    ($($name:ident: $family:ident, $any:literal;)*) => {$(
        #[test]
        fn $name() {
            at_any_moment($any, || check(Family::$family, same_outcomes));
        }
    )*};
}

agree! {
    bounds_hold_on_mutexes: Mutex, false;
    bounds_hold_on_conditions: Cond, false;
    bounds_hold_on_semaphores: Sem, false;
    bounds_hold_on_sysv_semaphores: Sysv, false;
    bounds_hold_on_message_queues: Msg, false;
    bounds_hold_on_locks_of_files: Files, false;
    bounds_hold_on_rwlocks: Rw, false;
    bounds_hold_on_barriers_spinlocks_once: Barrier, false;
    bounds_hold_on_streams: Stream, false;
    bounds_hold_on_futexes: Futex, false;
    bounds_hold_on_thread_life: Life, false;
    bounds_hold_on_processes: Process, false;
    bounds_hold_on_timeouts: Timed, false;
    bounds_hold_on_sockets: Socket, false;
    bounds_hold_on_signals: Signal, false;
    bounds_hold_on_memory: Memory, false;
    bounds_hold_on_all: All, false;
    bounds_hold_on_timeouts_at_any_moment: Timed, true;
    bounds_hold_on_posix_queues_at_any_moment: Mqueue, true;
    bounds_hold_on_all_at_any_moment: All, true;
}

/// What has no common bit is independent.
fn imprints_tell(machine: &mut Machine, program: &Program, counts: &mut Counts) -> Result<(), String> {
    let mut search = BoundedReduction::new(1);
    let sum = counts.entry(1).or_default();
    sum.0 += 1;
    for _ in 0..10 {
        let Some(schedule) = search.next() else { break };
        let (trace, _) = machine.run(program, &schedule, u64::MAX);
        for (n, a) in trace.steps.iter().enumerate() {
            for b in trace.steps[..n].iter().filter(|b| b.act.uid != a.act.uid) {
                let common = imprint(&a.act, a.did) & imprint(&b.act, b.did);
                sum.1 += 1;
                sum.2 += u64::from(common == 0);
                if common == 0 && dependent_after(&a.act, a.did, &b.act, b.did, false) {
                    return Err(format!("{a:?} {b:?}"));
                }
            }
        }
        search.done(schedule.ticket, &trace);
    }
    Ok(())
}

#[test]
fn what_shares_no_imprint_is_independent() {
    for family in Family::ALL {
        check(family, imprints_tell);
    }
}

/// Threads with objects of their own: one schedule is enough, whatever the bound.
#[test]
fn independent_threads_take_one_execution() {
    let own = |n: u32| (0..20).flat_map(|_| [Ins::Lock(n, How::Block), Ins::Unlock(n)]).collect();
    let program: Program = [vec![(1..5).map(Ins::Create).collect()], (0..4).map(own).collect()].concat();
    for k in 0..3 {
        let mut search = BoundedReduction::new(k);
        let found = MACHINE.with(|machine| explore(&mut machine.borrow_mut(), &program, &mut search, k));
        assert_eq!(found.map(|(outcomes, executions)| (outcomes.len(), executions)), Ok((1, 1)));
        assert!(search.exhaustive());
    }
}
