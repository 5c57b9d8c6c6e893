//! `optimal` against an independent count of Mazurkiewicz traces: brute force runs every execution of a random model
//! program, each is reduced to its partial order, and the search must run each partial order exactly once.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::interp::digest::refused;
use crate::interp::generate::{program, runner, Family};
use crate::interp::signals::about_signals;
use crate::interp::{self, brute, Ins, Machine, Program};
use proptest::test_runner::{Config, TestCaseError};
use vsrun::incomplete::{undoing, Reasons};
use vsrun::schedule::Schedule;
use vsrun::search::{InOrder, Search, Split};
use vsrun::trace::Trace;
use vsrun_model::arena::{Choice, Seen};
use vsrun_model::depend::as_it_stood;
use vsrun_model::{dependent_after, Effects, End, Uid};

/// Programs with more executions are left out.
const LIMIT: u64 = if cfg!(debug_assertions) { 150 } else { 1500 };
/// Programs per family.
const CASES: u32 = if cfg!(debug_assertions) { 120 } else { 1000 };

thread_local! {
    static MACHINE: RefCell<Machine> = RefCell::new(Machine::new());
}

pub(crate) fn cases() -> u32 {
    std::env::var("VSRUN_ORACLE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(CASES)
}

/// What happened and in which partial order: (thread, number among its steps, alternative) and, by thread, how many steps
/// happened before.
type Order = BTreeSet<(Uid, usize, u32, Vec<(Uid, usize)>)>;

/// What a step did beyond its operation.
fn effects(trace: &Trace, n: usize) -> Effects {
    let mut did = trace.steps[n].did;
    let open = matches!(trace.end, End::FINISHED | End::DEADLOCK | End::CYCLE | End::WAITS_OUTSIDE);
    if n + 1 == trace.steps.len() && !open {
        did = did.with(Effects::LAST);
    }
    did
}

/// The partial order of an execution of which all pending operations were recorded.
fn order(trace: &Trace) -> Order {
    let n = trace.steps.len();
    let mut before: Vec<Vec<bool>> = Vec::new();
    for i in 0..n {
        let uid = trace.steps[i].act.uid;
        let pending = |s: &[Seen]| s.iter().find(|s| s.act.uid == uid).map(|s| s.act);
        let mut mine = vec![false; n];
        for j in 0..i {
            let created = pending(&trace.seen[j]).is_none() && pending(&trace.seen[j + 1]).is_some();
            let (a, b) = (effects(trace, j), effects(trace, i));
            let e = &trace.steps[j].act;
            let as_performed = dependent_after(e, a, &trace.steps[i].act, b, false);
            let own = trace.steps[j + 1..i].iter().any(|s| s.act.uid == uid);
            let stood = if own { None } else { pending(&trace.seen[j]) };
            let stands = stood.is_some_and(|p| dependent_after(e, a, &as_it_stood(&p, &trace.steps[i].act), b, false));
            if created || as_performed || stands {
                mine[j] = true;
                for k in 0..j {
                    mine[k] |= before[j][k];
                }
            }
        }
        before.push(mine);
    }
    let number = |i: usize| trace.steps[..i].iter().filter(|s| s.act.uid == trace.steps[i].act.uid).count();
    let past = |i: usize| {
        let mut counts: BTreeMap<Uid, usize> = BTreeMap::new();
        for j in (0..i).filter(|&j| before[i][j]) {
            *counts.entry(trace.steps[j].act.uid).or_default() += 1;
        }
        counts.into_iter().collect()
    };
    (0..n).map(|i| (trace.steps[i].act.uid, number(i), trace.steps[i].value, past(i))).collect()
}

fn run_all(machine: &mut Machine, program: &Program, choices: Vec<Choice>) -> (Trace, String) {
    let record_back = choices.len() as u32;
    let schedule = Schedule { prefix: choices, record: true, record_back, past_cycles: true, ..Schedule::default() };
    let (trace, outcome) = machine.run(program, &schedule, u64::MAX);
    (trace, outcome.text)
}

/// Every partial order with its outcome. `None`: there are more executions than `limit`. With an error, `reasons` has what
/// the executions saw that is not proven.
fn every_order(
    machine: &mut Machine,
    program: &Program,
    limit: u64,
    reasons: &mut Reasons,
) -> Result<Option<BTreeMap<Order, String>>, String> {
    let Some(leaves) = brute::leaves(machine, program, limit) else { return Ok(None) };
    let mut orders = BTreeMap::new();
    for leaf in leaves {
        let (trace, outcome) = run_all(machine, program, leaf);
        reasons.extend(trace.reasons(true));
        let before = orders.insert(order(&trace), outcome.clone());
        if before.as_ref().is_some_and(|b| *b != outcome) {
            return Err(format!("equivalent executions end otherwise:\n{}\n{outcome}", before.unwrap_or_default()));
        }
    }
    *reasons = Reasons::default();
    Ok(Some(orders))
}

/// What searches ran together.
#[derive(Default)]
struct Ran {
    /// Executions; those that were cut off are not among them.
    executions: usize,
    blocked: u64,
    /// Of some it was not known whether they could be run.
    unsure: bool,
    /// Each of them says that it has explored all of its part.
    exhaustive: bool,
    /// Searches that were split when they had been begun.
    split_again: u64,
    seen: BTreeSet<Order>,
}

/// A search that has run so many executions is split, as a piece, into that many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Again {
    pub after: u64,
    pub into: usize,
}

/// Runs each of the searches to its end, of a program that has so many `traces`. `again`: each is split once it has been begun, and what comes of that too.
fn run_searches(
    machine: &mut Machine,
    program: &Program,
    traces: usize,
    searches: Vec<InOrder>,
    again: Option<Again>,
    reasons: &mut Reasons,
) -> Result<Ran, String> {
    let mut ran = Ran { exhaustive: true, ..Ran::default() };
    // How often a search may be split, and what came of it is again.
    const TURNS: u32 = 3;
    // Sleep sets cut off what they let begin.
    let most = if searches.len() > 1 || again.is_some() { 40 * traces + 100 * searches.len() } else { 4 * traces + 10 };
    let mut todo: Vec<(InOrder, u32)> = searches.into_iter().rev().map(|search| (search, 0)).collect();
    while let Some((mut search, turn)) = todo.pop() {
        let (blocked_before, mut runs) = (search.sleep_blocked(), 0);
        while let Some(schedule) = search.next() {
            // Those of which is not known whether they can be run may be many.
            ran.unsure |= schedule.unsure;
            let begun = ran.executions + (search.sleep_blocked() - blocked_before) as usize + ran.blocked as usize;
            if begun > if ran.unsure { 100 * traces.max(most / 4) } else { most } {
                return Err(format!("the search runs on: {begun} executions for {traces} traces"));
            }
            let (trace, _) = machine.run(program, &schedule, u64::MAX);
            if trace.end == End::MISMATCH && !schedule.unsure {
                let step = trace.steps.len();
                let what = schedule.prefix.get(step);
                return Err(format!("step {step} of {}: {what:?} is not enabled", schedule.prefix.len()));
            }
            reasons.extend(trace.reasons(true));
            let before = search.sleep_blocked();
            search.done(schedule.ticket, &trace);
            if search.sleep_blocked() == before {
                ran.executions += 1;
                let (full, _) = run_all(machine, program, trace.choices(trace.steps.len()));
                ran.seen.insert(order(&full));
            }
            runs += 1;
            let Some(Again { into, .. }) = again.filter(|a| a.after == runs && turn < TURNS) else { continue };
            if search.frontier() > 0 {
                let bytes = search.save().ok_or("a search that cannot be saved")?;
                let (pieces, _) = super::pieces::split(machine, program, Split::piece(&bytes, into)?);
                ran.split_again += u64::from(pieces.len() > 1);
                todo.extend(pieces.iter().map(|bytes| (super::pieces::restored(bytes), turn + 1)));
                break;
            }
        }
        ran.blocked += search.sleep_blocked() - blocked_before;
        // Of one that has been split its pieces say it.
        ran.exhaustive &= search.frontier() > 0 || search.exhaustive();
    }
    Ok(ran)
}

/// Each partial order is run exactly once, and nothing else. `reasons`: why the search would not be complete.
fn each_trace_once(
    machine: &mut Machine,
    program: &Program,
    limit: u64,
    reasons: &mut Reasons,
) -> Result<bool, String> {
    let Some(all) = every_order(machine, program, limit, reasons)? else { return Ok(false) };
    let ran = run_searches(machine, program, all.len(), vec![InOrder::optimal()], None, reasons)?;
    let held = has_each_once(program, &all, &ran)?;
    let (blocked, executions) = (ran.blocked, ran.executions);
    match blocked != 0 && held {
        true => Err(format!("{executions} executions for {} traces, {blocked} blocked", all.len())),
        false => Ok(true),
    }
}

/// The same of all pieces that a program's tree is split into, but for what sleep sets cut off.
pub(crate) fn each_trace_in_one_piece(
    machine: &mut Machine,
    program: &Program,
    (into, again): (usize, Option<Again>),
    counts: &mut BTreeMap<&'static str, u64>,
    reasons: &mut Reasons,
) -> Result<bool, String> {
    let Some(all) = every_order(machine, program, LIMIT, reasons)? else { return Ok(false) };
    let (pieces, looks) = super::pieces::split(machine, program, Split::whole(into));
    let searches = pieces.iter().rev().map(|bytes| super::pieces::restored(bytes)).collect();
    let ran = run_searches(machine, program, all.len(), searches, again, reasons)?;
    for (what, n) in [
        ("programs", 1),
        ("pieces", pieces.len() as u64),
        ("looks", looks),
        ("cut off", ran.blocked),
        ("split again", ran.split_again),
        ("traces", all.len() as u64),
    ] {
        *counts.entry(what).or_default() += n;
    }
    // Pieces explore both orders in which the last two threads of a process end that has a parent, also where that is not told.
    let has = |is: fn(&Ins) -> bool| program.iter().flatten().any(is);
    let ends_twice = has(|ins| matches!(ins, Ins::Fork(..))) && has(|ins| matches!(ins, Ins::Create(..)));
    match has_each_once(program, &all, &ran) {
        Err(e) if ends_twice && e.contains("executions for") => Ok(true),
        held => held.map(|_| true),
    }
}

/// True if it is known that none needs to be run twice.
fn has_each_once(program: &Program, all: &BTreeMap<Order, String>, ran: &Ran) -> Result<bool, String> {
    let executions = ran.executions;
    let missed = all.iter().find(|(order, _)| !ran.seen.contains(*order));
    if let Some((order, outcome)) = missed {
        let n = all.keys().filter(|o| !ran.seen.contains(*o)).count();
        return Err(format!(
            "{executions} executions miss {n} of {} traces, among them {order:?}\nwith {outcome}",
            all.len()
        ));
    }
    let once = !ran.unsure && stable(program, all.values());
    if executions != all.len() && once {
        return Err(format!("{executions} executions for {} traces, {} blocked", all.len(), ran.blocked));
    }
    if ran.exhaustive == refused(all.values()) {
        return Err(format!("exhaustive: {}", ran.exhaustive));
    }
    Ok(once)
}

/// Whether what is dependent is the same in all orders. An assertion that fails in some order only makes the last step of
/// that one depend on everything; what the end of a thread does besides (it ends its process, undoes semops, leaves robust
/// mutexes) depends on which other threads are left. There an order may be run twice.
fn stable<'a>(program: &Program, outcomes: impl Iterator<Item = &'a String>) -> bool {
    let ended = format!("{:?}", End::FINISHED);
    let stuck = format!("{:?}", End::DEADLOCK);
    let ends = |ins: &Ins| matches!(ins, Ins::Sysv(_, true, _) | Ins::Exit | Ins::Lock(4, _));
    // Whichever thread of a process is the last closes its descriptors and gives back its locks.
    let all = || program.iter().flatten();
    let settles = |ins: &Ins| matches!(ins, Ins::Fd(..) | Ins::Record(..) | Ins::Flock(..));
    let last_closes = all().any(settles) && all().any(|ins| matches!(ins, Ins::Create(_)));
    // A lock that is told EDEADLK in some order depends on everything in that one only.
    let circles = |o: &String| o.contains(" 35]") || o.contains("[35") || o.contains(" 35,");
    let idle = format!("{:?}", End::WAITS_OUTSIDE);
    let whole = |o: &String| [&ended, &stuck, &idle].iter().any(|&end| o.starts_with(end));
    // Whom the end of a socket concerns depends on who has connected by then.
    let sockets = all().any(|ins| matches!(ins, Ins::Sock(..)));
    !sockets && !last_closes && !all().any(ends) && outcomes.into_iter().all(|o| whole(o) && !circles(o))
}

fn check(family: Family, timeouts_any: bool) {
    let cases = if family == Family::Signal { cases() / 20 } else { cases() };
    // With it the first of these ends the test too, and is shown as small as it gets.
    let strict = std::env::var_os("VSRUN_ORACLE_STRICT").is_some();
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() };
    let (used, failed) = (RefCell::new(0), RefCell::new(0));
    let result = runner(config).run(&program(family), |program| {
        let mut reasons = Reasons::default();
        let held = MACHINE.with(|machine| {
            let mut machine = machine.borrow_mut();
            machine.timeouts_any = timeouts_any;
            let held = each_trace_once(&mut machine, &program, LIMIT, &mut reasons);
            machine.timeouts_any = false;
            held
        });
        let held = match held {
            Err(e) if is_counted(&program, &e, &reasons) && !strict => {
                println!("{program:?}: {e}");
                *failed.borrow_mut() += 1;
                true
            }
            held => held.map_err(|e| TestCaseError::fail(format!("{program:?}: {e}")))?,
        };
        *used.borrow_mut() += u32::from(held);
        Ok(())
    });
    if let Err(e) = result {
        panic!("{e}");
    }
    let (used, failed) = (used.into_inner(), failed.into_inner());
    println!("{family:?}: {used} programs, {failed} of them lost a trace or ran one twice");
    assert!(used > cases / 10, "most programs are too large: {used} of {cases}");
    assert!(failed <= 1 + used / 50, "{failed} of {used} programs");
}

/// Failures that are counted instead: where vsrun says that its searches are not proven for what these executions did, and
/// what does not let it claim that everything was explored, or makes it explore something twice.
pub(crate) fn is_counted(program: &Program, error: &str, reasons: &Reasons) -> bool {
    // What an operation on descriptors reaches depends on what has been done to others, and in which way an operation
    // goes on on the signals that are pending.
    let ways = |ins: &Ins| {
        about_signals(ins)
            || matches!(ins, Ins::Fd(..) | Ins::Sock(..) | Ins::Record(..) | Ins::RecordUnlock(..) | Ins::Flock(..))
    };
    let silent = !error.contains("executions for") && !error.contains("is not enabled");
    undoing(reasons).next().is_some() || !silent && program.iter().flatten().any(ways)
}

macro_rules! optimal {
    ($($name:ident: $family:ident, $any:literal;)*) => {$(
        #[test]
        fn $name() {
            check(Family::$family, $any);
        }
    )*};
}

optimal! {
    optimal_on_mutexes: Mutex, false;
    optimal_on_conditions: Cond, false;
    optimal_on_semaphores: Sem, false;
    optimal_on_sysv_semaphores: Sysv, false;
    optimal_on_message_queues: Msg, false;
    optimal_on_locks_of_files: Files, false;
    optimal_on_contents_of_files: Contents, false;
    optimal_on_numbers_of_descriptors: Numbers, false;
    optimal_on_rwlocks: Rw, false;
    optimal_on_barriers_spinlocks_once: Barrier, false;
    optimal_on_streams: Stream, false;
    optimal_on_futexes: Futex, false;
    optimal_on_thread_life: Life, false;
    optimal_on_processes: Process, false;
    optimal_on_timeouts: Timed, false;
    optimal_on_events: Event, false;
    optimal_on_posix_queues: Mqueue, false;
    optimal_on_sockets: Socket, false;
    optimal_on_signals: Signal, false;
    optimal_on_memory: Memory, false;
    optimal_on_all: All, false;
    optimal_on_timeouts_at_any_moment: Timed, true;
    optimal_on_events_at_any_moment: Event, true;
    optimal_on_posix_queues_at_any_moment: Mqueue, true;
    optimal_on_sockets_at_any_moment: Socket, true;
    optimal_on_signals_at_any_moment: Signal, true;
    optimal_on_all_at_any_moment: All, true;
}

/// The first paper's dining philosophers; with `reversed` the last one takes the forks the other way round.
fn philosophers(n: usize, reversed: bool) -> Program {
    // Semaphore 5 of the model programs begins with 0.
    let fork = |i: usize| (if i < 5 { i } else { i + 1 }) as u16;
    let meal = |i: usize| {
        let (mut left, mut right) = (fork(i), fork((i + 1) % n));
        if reversed && i == n - 1 {
            (left, right) = (right, left);
        }
        [(left, -1), (right, -1), (left, 1), (right, 1)]
            .map(|op| Ins::Sysv(vec![op], false, interp::How::Block))
            .to_vec()
    };
    let mut program = vec![(1..n).map(Ins::Fork).collect::<Vec<_>>()];
    program[0].extend(meal(n - 1));
    program.extend((0..n - 1).map(meal));
    program
}

fn executions(program: &Program) -> u64 {
    MACHINE.with(|machine| {
        let mut search = InOrder::optimal();
        let (_, executions) = machine.borrow_mut().explore(program, &mut search, u64::MAX).expect("no limit");
        assert!(search.exhaustive());
        assert_eq!(search.sleep_blocked(), 0);
        executions
    })
}

#[test]
fn optimal_counts_philosophers() {
    let counts: Vec<u64> = (2..=8).map(|n| executions(&philosophers(n, false))).collect();
    assert_eq!(counts, [3, 7, 15, 31, 63, 127, 255]);
    let counts: Vec<u64> = (2..=6).map(|n| executions(&philosophers(n, true))).collect();
    assert_eq!(counts, [2, 6, 14, 30, 62]);
}

#[test]
fn optimal_counts_lock_orders() {
    let lock_count = |n: usize| {
        let mut program = vec![(1..=n).map(Ins::Create).collect::<Vec<_>>()];
        program.extend(vec![vec![Ins::Lock(0, interp::How::Block), Ins::Count(0), Ins::Unlock(0)]; n]);
        program
    };
    let counts: Vec<u64> = (1..=6).map(|n| executions(&lock_count(n))).collect();
    assert_eq!(counts, [1, 2, 6, 24, 120, 720]);
}

/// Producers and consumers of one item each over a buffer of one place, a mutex and two condition variables
/// (c-tests/producers_consumers.c is the same in C).
fn producers_consumers(producers: usize, consumers: usize) -> Program {
    use Ins::*;
    let lock = || Lock(0, interp::How::Block);
    let produce = || vec![lock(), WaitWhile(0, 0, 1), Add(0, 1), Signal(1), Unlock(0)];
    let consume = || vec![lock(), WaitWhile(1, 0, 0), Add(0, -1), Signal(0), Unlock(0)];
    let threads = producers + consumers;
    let mut program = vec![(1..=threads).map(Create).collect::<Vec<_>>()];
    program[0].extend((1..=threads).map(|t| Join(t, interp::How::Block)));
    program.extend((0..producers).map(|_| produce()));
    program.extend((0..consumers).map(|_| consume()));
    program
}

#[test]
fn optimal_counts_producers_and_consumers() {
    for (producers, consumers, traces, outcomes) in [(1, 1, 2, 2), (2, 1, 8, 6), (1, 2, 10, 6), (2, 2, 64, 18)] {
        let program = producers_consumers(producers, consumers);
        let (all, ends) = MACHINE.with(|machine| {
            let machine = &mut *machine.borrow_mut();
            let all = every_order(machine, &program, u64::MAX, &mut Reasons::default())
                .expect("consistent")
                .expect("no limit");
            let ends: BTreeSet<String> = all.values().cloned().collect();
            let (found, executions) = machine.explore(&program, &mut InOrder::optimal(), u64::MAX).expect("no limit");
            println!(
                "{producers} {consumers}: {} traces {} outcomes, {executions} executions {}",
                all.len(),
                ends.len(),
                found.len()
            );
            assert_eq!(executions, all.len() as u64);
            (all.len(), ends.len())
        });
        assert_eq!((all, ends), (traces, outcomes), "{producers} producers, {consumers} consumers");
    }
}

#[test]
fn blocked_by_several() {
    use interp::How::Block;
    use Ins::*;
    let one = |num, amount| Sysv(vec![(num, amount)], false, Block);
    let program: Program = vec![
        vec![Create(1), Create(2), Create(3), one(5, 1)],
        vec![one(4, -1)],
        vec![Sysv(vec![(5, 0), (4, -1)], false, Block)],
        vec![one(4, 1), one(4, -1)],
    ];
    assert_each_trace_once(&[program]);
}

fn assert_each_trace_once(programs: &[Program]) {
    let mut reasons = Reasons::default();
    let mut once =
        |program| MACHINE.with(|machine| each_trace_once(&mut machine.borrow_mut(), program, u64::MAX, &mut reasons));
    let lost: Vec<_> = programs.iter().map(|p| (p, once(p))).filter(|(_, held)| *held != Ok(true)).collect();
    assert!(lost.is_empty(), "{lost:#?}");
}

/// Programs of random tests in which a trace was once lost, or run twice.
#[test]
fn traces_that_were_once_lost() {
    use interp::events::{
        Fd::{Counter, Inner, Outer, PipeOut},
        On::{Change, Events, Put},
        Watching::Level,
    };
    use interp::How::Block;
    use Ins::*;
    let one = |num, amount, how| Sysv(vec![(num, amount)], how, Block);
    let programs: Vec<Program> = vec![
        vec![
            vec![Create(1), Create(2), Create(3), FutexWake(1, 0)],
            vec![FutexWait(0, true, Block), FutexWait(1, false, Block)],
            vec![FutexWait(1, false, Block)],
            vec![FutexWake(0, 0), FutexWake(0, 1)],
        ],
        vec![vec![Create(1), Fork(2), one(2, -1, false)], vec![Wait(None, Block)], vec![one(3, -1, true), Post(0)]],
        vec![vec![Create(1), Fork(2), Fork(3), Wait(None, Block)], vec![one(2, 2, true)], vec![Exit], vec![Post(0)]],
        vec![
            vec![Create(1), Flock(0, 1, Some(true), Block), Read(0, Block), RwUnlock(0)],
            vec![Fork(2), Toss(1), SkipIf(1), Post(0)],
            vec![SemWait(0, interp::How::Try)],
        ],
        vec![
            vec![Create(1), Create(2), Fd(Outer, Change(Counter, Level), Block), Fd(Outer, Events(1), Block)],
            vec![Fd(PipeOut, Put(1), Block), Fd(Inner, Events(1), Block)],
            vec![Fd(Outer, Events(1), Block)],
        ],
        vec![
            vec![Create(1), Create(2), Fork(3), MsgSend(0, 1, 1, Block), MsgReceive(0, 0, 1, false, Block)],
            vec![MsgSend(0, 1, 1, Block), Fd(PipeOut, Put(4096), interp::How::Try)],
            vec![MsgReceive(0, 0, 1, false, Block)],
            vec![Fd(PipeOut, Put(4096), Block), Fd(PipeOut, Put(4096), Block)],
        ],
        vec![
            vec![Create(1), Sleep(1), Create(2), Lock(0, Block), Count(0), Unlock(0)],
            vec![Lock(0, Block), Count(0), CondWait(1, 0, interp::How::Timed(1)), Count(0), Unlock(0)],
            vec![Signal(1)],
        ],
    ];
    assert_each_trace_once(&programs);
}

/// The same where timeouts fire at any moment.
#[test]
fn traces_that_were_once_lost_at_any_moment() {
    use interp::events::{Fd as F, On, Watching};
    use interp::How::Block;
    use Ins::*;
    let programs: Vec<Program> = vec![vec![
        vec![Create(1), Create(2), Create(3), Fd(F::Counter, On::Take(1), Block)],
        vec![Fd(F::Outer, On::Watch(F::Timer, Watching::Level), Block), Fd(F::Outer, On::Poll(F::Semaphore), Block)],
        vec![Fd(F::Counter, On::Put(1), Block), Fd(F::Timer, On::Set(1, 0), Block)],
        vec![Fd(F::Counter, On::Close, Block)],
    ]];
    MACHINE.with(|machine| machine.borrow_mut().timeouts_any = true);
    assert_each_trace_once(&programs);
}

/// The same with descriptors and locks of files, where what a step depends on rests on what came before.
#[test]
fn traces_that_were_once_lost_with_descriptors() {
    use interp::events::{Fd as F, On, Watching};
    use interp::sockets::{Does, Sock as S};
    use interp::File;
    use interp::How::{Block, Timed, Try};
    use Ins::*;
    let programs: Vec<Program> = vec![
        // What the write reaches depends on whether the watch is there yet.
        vec![
            vec![Create(1), Create(2), Create(3), Fd(F::Outer, On::Watch(F::Counter, Watching::Level), Block)],
            vec![Fd(F::Semaphore, On::Put(2), Block), Fd(F::Counter, On::Put(1), Block)],
            vec![Fd(F::PipeIn, On::Take(1), Try), Fd(F::Counter, On::Put(1), Block)],
            vec![Fd(F::Semaphore, On::Put(1), Block), Fd(F::Inner, On::Events(2), Block)],
        ],
        // The end of an instance takes away what the write reached.
        vec![
            vec![Fork(1), Fork(2), Fd(F::Counter, On::Put(2), Block), Fd(F::Inner, On::Close, Block)],
            vec![Fd(F::Inner, On::Change(F::Timer, Watching::Level), Block)],
            vec![Fd(F::Inner, On::Close, Block), Fd(F::Semaphore, On::Put(1), Block)],
        ],
        // A wait that is tried in vain is behind others that are on trial.
        vec![
            vec![
                Create(1),
                Create(2),
                Create(3),
                Fd(F::PipeIn, On::Poll(F::Semaphore), Block),
                Fd(F::Inner, On::Watch(F::Semaphore, Watching::Edge), Block),
            ],
            vec![Fd(F::PipeIn, On::Take(1), Try)],
            vec![Fd(F::Outer, On::Events(2), Block), Fd(F::Inner, On::Events(1), Block)],
            vec![Fd(F::PipeIn, On::Take(2), Try)],
        ],
        // Two that are tried in vain cover each other.
        vec![
            vec![Fork(1), Create(2), Create(3), Fd(F::Inner, On::Events(1), Timed(1))],
            vec![Fd(F::Semaphore, On::Put(1), Block), Fd(F::Inner, On::Watch(F::PipeOut, Watching::Edge), Block)],
            vec![Fd(F::Outer, On::Events(2), Timed(2)), Fd(F::Timer, On::Set(2, 1), Block)],
            vec![
                Fd(F::Outer, On::Watch(F::Semaphore, Watching::Level), Block),
                Fd(F::Semaphore, On::Poll(F::Timer), Block),
            ],
        ],
        // An accept takes a connection away from the end of its listener.
        vec![
            vec![
                Create(1),
                Fork(2),
                Create(3),
                Sock(S::Listener, Does::Accept, Block),
                Sock(S::First, Does::Receive(2), Block),
                Sock(S::First, Does::ShutSend, Block),
                Sock(S::Second, Does::Receive(1), Block),
            ],
            vec![Sock(S::One, Does::Connect, Block), Sock(S::One, Does::Send(1), Block)],
            vec![
                Sock(S::One, Does::Connect, Block),
                Sock(S::One, Does::Send(1), Block),
                Sock(S::Listener, Does::Close, Block),
            ],
            vec![Sock(S::Listener, Does::Accept, Block)],
        ],
        // What the close meets, where it comes before the accept, follows it here.
        vec![
            vec![
                Fork(1),
                Fork(2),
                Create(3),
                Sock(S::Left, Does::Receive(1), Block),
                Sock(S::Vdp, Does::Receive(3), Block),
            ],
            vec![Sock(S::Two, Does::Connect, Block), Sock(S::Listener, Does::Accept, Block)],
            vec![Sock(S::Listener, Does::Close, Block)],
            vec![Sock(S::Vdp, Does::Send(700), Block), Sock(S::Left, Does::ShutSend, Block)],
        ],
        // Two hold parts of what is to be locked for reading.
        vec![
            vec![
                Fork(1),
                Record(File { file: 1, first: 0, last: 3, description: None }, true, Block),
                Create(2),
                RecordUnlock(File { file: 1, first: 0, last: 3, description: None }),
            ],
            vec![
                Record(File { file: 1, first: 4, last: 7, description: None }, true, Block),
                RecordUnlock(File { file: 1, first: 4, last: 7, description: None }),
            ],
            vec![Record(File { file: 1, first: 2, last: 5, description: None }, false, Block)],
        ],
    ];
    assert_each_trace_once(&programs);
}
