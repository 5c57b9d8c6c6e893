//! Memory that threads use without an order, against brute force: programs of each family with accesses to variables that nothing
//! protects. The truth is a search of every interleaving with a switch before each access.

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::interp::digest::{refused, Outcomes};
use crate::interp::generate::{program, runner, Family};
use crate::interp::{brute, How, Ins, Machine, Program, VARIABLES};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError};
use vsrun::incomplete::Reasons;
use vsrun::race::{first_of, pending, races, Conflict, Note, Race};
use vsrun::schedule::Schedule;
use vsrun::search::allowed::Unknown;
use vsrun::search::{Composed, IfSss, InOrder, Search, Transactions};
use vsrun::trace::Trace;
use vsrun_model::arena::Seen;
use vsrun_model::{End, Kind};

/// Programs with more executions are left out.
const LIMIT: u64 = if cfg!(debug_assertions) { 300 } else { 3000 };
/// Programs per family.
const CASES: u32 = if cfg!(debug_assertions) { 80 } else { 500 };
const ALL: u32 = (1 << VARIABLES) - 1;

thread_local! {
    static MACHINE: RefCell<Machine> = RefCell::new(Machine::new());
}

fn cases() -> u32 {
    std::env::var("VSRUN_ORACLE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(CASES)
}

/// A program of the family with accesses in between.
fn touching(family: Family) -> impl Strategy<Value = Program> {
    let variable = || 0..VARIABLES as u32;
    let access = prop_oneof![
        3 => variable().prop_map(Ins::Load),
        3 => (variable(), 1i64..3).prop_map(|(v, value)| Ins::Store(v, value)),
        1 => variable().prop_map(Ins::Update),
    ];
    let places = proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), access), 2..6);
    (program(family), places).prop_map(|(mut program, places)| {
        for (thread, place, access) in places {
            let n = program.len();
            let code = &mut program[thread.index(n)];
            let at = place.index(code.len() + 1);
            // An initializer is one instruction, and what is skipped is one too.
            let held = at > 0 && matches!(code[at - 1], Ins::Once(_) | Ins::SkipIf(_));
            if !held {
                code.insert(at, access);
            }
        }
        program
    })
}

fn check(family: Family, property: fn(&mut Machine, &Program) -> Result<Option<bool>, String>) {
    let config = Config { cases: cases(), failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() };
    let (used, racy) = (RefCell::new(0), RefCell::new(0));
    let result = runner(config).run(&touching(family), |program| {
        let held = MACHINE.with(|machine| property(&mut machine.borrow_mut(), &program));
        if let Some(races) = held.map_err(TestCaseError::fail)? {
            *used.borrow_mut() += 1;
            *racy.borrow_mut() += u32::from(races);
        }
        Ok(())
    });
    if let Err(e) = result {
        panic!("{e}");
    }
    let (used, racy) = (used.into_inner(), racy.into_inner());
    println!("{family:?}: {used} programs, {racy} with races");
    assert!(used > cases() / 12, "most programs are too large: {used} of {}", cases());
    assert!(racy > used / 12 && racy < used, "{racy} of {used} programs have races");
}

/// The variables that two threads are about to access at once, one of them writing.
fn meetings(seen: &[Seen], found: &mut BTreeSet<u32>, trace: &Trace) {
    let on = |s: &&Seen| matches!(s.act.op.kind, Kind::MEM_READ | Kind::MEM_WRITE);
    let all: Vec<&Seen> = seen.iter().filter(on).collect();
    for (i, a) in all.iter().enumerate() {
        for b in &all[i + 1..] {
            let writes = a.act.op.kind == Kind::MEM_WRITE || b.act.op.kind == Kind::MEM_WRITE;
            if a.act.op.obj == b.act.op.obj && writes {
                let word = trace.objects[a.act.op.obj as usize].addr / 64;
                // Two variables share a word.
                if a.act.op.mask == b.act.op.mask {
                    found.insert(2 * word as u32 + u32::from(a.act.op.mask != 0xf));
                }
            }
        }
    }
}

/// The variable of which two uses are pending at once: two of them share a word.
fn variable_of(conflict: &Conflict) -> u32 {
    let (_, address) = conflict.place;
    2 * (address / 64) as u32 + u32::from(!address.is_multiple_of(64))
}

/// Everything there is: outcomes, the variables on which threads race, and those of these where not both uses are atomic; behind circles of
/// locks, too. `None`: too much.
fn truth(machine: &mut Machine, program: &Program) -> Option<(Outcomes, BTreeSet<u32>, BTreeSet<u32>)> {
    machine.watched = ALL;
    let leaves = brute::leaves(machine, program, LIMIT)?;
    let (mut outcomes, mut racy, mut reported) = (Outcomes::new(), BTreeSet::new(), BTreeSet::new());
    for prefix in leaves {
        let record_back = prefix.len() as u32;
        let schedule = Schedule { prefix, record: true, record_back, past_cycles: true, ..Schedule::default() };
        let (trace, outcome) = machine.run(program, &schedule, u64::MAX);
        outcomes.insert(outcome.text);
        for seen in trace.seen.iter().chain([&trace.last]) {
            meetings(seen, &mut racy, &trace);
        }
        reported.extend(pending(&trace).iter().map(variable_of));
    }
    Some((outcomes, racy, reported))
}

/// What a search finds: outcomes, and the variables on which its executions have races.
struct Found {
    outcomes: Outcomes,
    racy: BTreeSet<u32>,
    /// Those of which `--race hb` reports two uses.
    reported: BTreeSet<u32>,
    reasons: Reasons,
    executions: u64,
}

/// A search, and what may be asked of it.
#[derive(Clone, Copy)]
struct Make {
    /// Gives one that has not begun.
    new: fn() -> Box<dyn Search>,
    /// It is told what transitions do to memory.
    by_step: bool,
    /// It comes to a state in which both uses are next, for each pair that can be. One that keeps no order of blocks does not where a use is
    /// inside of one, so `--race hb` is refused with it.
    reports_all: bool,
}

const OPTIMAL: Make = Make { new: || Box::new(InOrder::optimal()), by_step: false, reports_all: true };
const TRANSACTIONS: Make = Make { new: || Box::new(Transactions::new()), by_step: false, reports_all: false };
const IF_SSS: Make = Make { new: || Box::new(IfSss::new(Box::new(Unknown))), by_step: false, reports_all: true };
const DPOR: Make = Make { new: || Box::new(InOrder::dpor()), by_step: false, reports_all: true };
const COMPOSED: Make = Make { new: || Box::new(Composed::new(Box::new(Unknown))), by_step: true, reports_all: false };

/// The races on variables that nothing protects.
fn races_of(trace: &Trace, notes: &[Note]) -> Vec<Race> {
    let unprotected = |note: &Note| !matches!(note, Note::Touches { access, .. } if access.space != 0);
    races(trace, notes.iter().copied().filter(unprotected), BTreeSet::new())
}

fn search(machine: &mut Machine, program: &Program, watched: u32, limit: u64, make: Make) -> Option<Found> {
    (machine.watched, machine.by_step) = (watched, make.by_step);
    let mut search = (make.new)();
    let (racy, reported) = (BTreeSet::new(), BTreeSet::new());
    let mut found = Found { outcomes: Outcomes::new(), racy, reported, reasons: Reasons::default(), executions: 0 };
    while let Some(mut schedule) = search.next() {
        schedule.record_back = schedule.prefix.len() as u32;
        found.executions += 1;
        if found.executions > limit {
            return None;
        }
        let (trace, outcome) = machine.run(program, &schedule, u64::MAX);
        // What a thread does after a race on a variable that is not watched is not the schedule's to decide.
        let follows = schedule.unsure || !found.racy.is_empty();
        assert!(trace.end != End::MISMATCH || follows, "a schedule that does not match: {schedule:?}");
        if !matches!(trace.end, End::SLEEP_BLOCKED | End::MISMATCH) {
            found.outcomes.insert(outcome.text);
        }
        found.reasons.extend(&trace.reasons(true));
        let all = races_of(&trace, &machine.notes);
        found.reported.extend(first_of(&all).iter().map(|conflict| (conflict.place.1 / 64) as u32));
        found.reported.extend(pending(&trace).iter().map(variable_of));
        found.racy.extend(all.iter().map(|race| (race.second.access.address / 64) as u32));
        search.done(schedule.ticket, &trace);
    }
    Some(found)
}

/// A search that switches at operations only, and starts over with each variable on which there is a race, finds what there is to find.
/// Some if the program was used: whether it has races.
fn nothing_is_lost(machine: &mut Machine, program: &Program) -> Result<Option<bool>, String> {
    nothing_is_lost_by(machine, program, OPTIMAL)
}

/// The same for a search that keeps no order of critical sections without memory in common.
fn nothing_is_lost_composed(machine: &mut Machine, program: &Program) -> Result<Option<bool>, String> {
    nothing_is_lost_by(machine, program, COMPOSED)
}

/// The same for a search by transactions.
fn nothing_is_lost_transactions(machine: &mut Machine, program: &Program) -> Result<Option<bool>, String> {
    nothing_is_lost_by(machine, program, TRANSACTIONS)
}

/// The same for the invisible-first search.
fn nothing_is_lost_if_sss(machine: &mut Machine, program: &Program) -> Result<Option<bool>, String> {
    nothing_is_lost_by(machine, program, IF_SSS)
}

/// The same for reduction with sleep sets.
fn nothing_is_lost_dpor(machine: &mut Machine, program: &Program) -> Result<Option<bool>, String> {
    nothing_is_lost_by(machine, program, DPOR)
}

fn nothing_is_lost_by(machine: &mut Machine, program: &Program, make: Make) -> Result<Option<bool>, String> {
    // How far a thread got that is ended with its process is told by its log here, and by nothing otherwise; after an assertion that fails
    // nothing is looked at any more. That a thread has ended is told here where it has no operation, and none of a process by a join.
    let forks = program.iter().flatten().any(|ins| matches!(ins, Ins::Fork(_)));
    let unlike = |ins: &Ins| match ins {
        Ins::Exit | Ins::AssertNot(..) | Ins::Join(_, How::Try) | Ins::Wait(_, How::Try) => true,
        Ins::Join(..) => forks,
        _ => false,
    };
    if program.iter().flatten().any(unlike) {
        return Ok(None);
    }
    // A deadline that fires when nothing else can go on orders accesses, as no deadline does in fact.
    (machine.timeouts_any, machine.by_step) = (true, false);
    let Some((outcomes, racy, reported)) = truth(machine, program) else { return Ok(None) };
    if refused(outcomes.iter()) {
        return Ok(None);
    }
    let (mut watched, mut first) = (0, true);
    let found = loop {
        let Some(found) = search(machine, program, watched, LIMIT, make) else { return Ok(None) };
        if found.reasons != Reasons::default() {
            return Ok(None);
        }
        let invented: Vec<_> = found.racy.difference(&racy).collect();
        // That an initializer is over is no step of its own, so what it did after its last one is not before those who find it done.
        let once = program.iter().flatten().any(|ins| matches!(ins, Ins::Once(_)));
        if !invented.is_empty() && !once {
            return Err(format!("races on {invented:?} are none"));
        }
        if first && !once && found.racy.is_empty() != racy.is_empty() {
            return Err(format!("races on {racy:?}, found {:?}", found.racy));
        }
        let false_reports: Vec<_> = found.reported.difference(&reported).collect();
        if !false_reports.is_empty() && !once {
            return Err(format!("reports on {false_reports:?} are none"));
        }
        let before = watched;
        watched |= found.racy.iter().map(|v| 1 << v).sum::<u32>();
        if watched == before {
            break found;
        }
        first = false;
    };
    // Each variable of `reported` is an object by now.
    let missed: Vec<_> = reported.difference(&found.reported).collect();
    if make.reports_all && !missed.is_empty() {
        return Err(format!("watched {watched:b}, no report on {missed:?}"));
    }
    if found.outcomes != outcomes {
        let missed: Vec<_> = outcomes.difference(&found.outcomes).collect();
        let wrong: Vec<_> = found.outcomes.difference(&outcomes).collect();
        return Err(format!(
            "watched {watched:b}, misses {} of {}: {missed:?}\ninvents {wrong:?}",
            missed.len(),
            outcomes.len()
        ));
    }
    Ok(Some(!racy.is_empty()))
}

macro_rules! lost {
    ($($name:ident: $family:ident, $property:ident;)*) => {$(
        #[test]
        fn $name() {
            check(Family::$family, $property);
        }
    )*};
}

lost! {
    nothing_is_lost_with_mutexes: Mutex, nothing_is_lost;
    nothing_is_lost_with_conditions: Cond, nothing_is_lost;
    nothing_is_lost_with_semaphores: Sem, nothing_is_lost;
    nothing_is_lost_with_sysv_semaphores: Sysv, nothing_is_lost;
    nothing_is_lost_with_message_queues: Msg, nothing_is_lost;
    nothing_is_lost_with_rwlocks: Rw, nothing_is_lost;
    nothing_is_lost_with_barriers_spinlocks_once: Barrier, nothing_is_lost;
    nothing_is_lost_with_futexes: Futex, nothing_is_lost;
    nothing_is_lost_with_threads: Life, nothing_is_lost;
    nothing_is_lost_with_processes: Process, nothing_is_lost;
    nothing_is_lost_with_events: Event, nothing_is_lost;
    nothing_is_lost_with_sockets: Socket, nothing_is_lost;
    nothing_is_lost_with_mutexes_if_sss: Mutex, nothing_is_lost_if_sss;
    nothing_is_lost_with_conditions_if_sss: Cond, nothing_is_lost_if_sss;
    nothing_is_lost_with_semaphores_if_sss: Sem, nothing_is_lost_if_sss;
    nothing_is_lost_with_barriers_spinlocks_once_if_sss: Barrier, nothing_is_lost_if_sss;
    nothing_is_lost_with_mutexes_dpor: Mutex, nothing_is_lost_dpor;
    nothing_is_lost_with_conditions_dpor: Cond, nothing_is_lost_dpor;
    nothing_is_lost_with_mutexes_composed: Mutex, nothing_is_lost_composed;
    nothing_is_lost_with_conditions_composed: Cond, nothing_is_lost_composed;
    nothing_is_lost_with_barriers_spinlocks_once_composed: Barrier, nothing_is_lost_composed;
    nothing_is_lost_with_threads_composed: Life, nothing_is_lost_composed;
    nothing_is_lost_with_mutexes_transactions: Mutex, nothing_is_lost_transactions;
    nothing_is_lost_with_conditions_transactions: Cond, nothing_is_lost_transactions;
    nothing_is_lost_with_barriers_spinlocks_once_transactions: Barrier, nothing_is_lost_transactions;
}

/// What comes before one critical section and after another one is in no order where the two have nothing in common: the
/// execution in which their order hides the race is the only one of a search with composed transitions.
#[test]
fn sections_with_nothing_in_common_order_nothing() {
    let lock = Ins::Lock(0, How::Block);
    let program = |uses: &[Ins]| {
        let section = [std::slice::from_ref(&lock), uses, &[Ins::Unlock(0)]].concat();
        let first = [vec![Ins::Store(0, 1)], section.clone()].concat();
        vec![vec![Ins::Create(1), Ins::Create(2)], first, [section, vec![Ins::Store(0, 2)]].concat()]
    };
    let found = |program: &Program, by_step: bool| {
        MACHINE.with(|machine| {
            let mut machine = machine.borrow_mut();
            (machine.watched, machine.by_step) = (0, by_step);
            let schedule = Schedule { record: true, ..Schedule::default() };
            let (trace, _) = machine.run(program, &schedule, u64::MAX);
            races_of(&trace, &machine.notes).len()
        })
    };
    let looks = program(&[Ins::AssertNot(0, -1)]);
    assert_eq!((found(&looks, true), found(&looks, false)), (1, 0));
    // The order of two that write is kept.
    assert_eq!(found(&program(&[Ins::Count(0)]), true), 0);
}
