//! Pieces: subtrees that are explored each by itself, in the model interpreter. Together they run the traces that `optimal` runs, each once, whatever is split,
//! in whatever order.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::optimal::{cases, each_trace_in_one_piece, is_counted, Again};
use crate::interp::generate::{program, runner, Family};
use crate::interp::{File, How, Ins, Machine, Program};
use proptest::test_runner::{Config, TestCaseError};
use vsrun::incomplete::Reasons;
use vsrun::search::{InOrder, Search, Split};
use vsrun::trace::Trace;
use vsrun_model::{End, Uid};

/// The steps of an execution by thread and number, in the order that stands for its trace: each thread's own, and what it found.
type Run = Vec<(Uid, u32, u8, u32)>;

/// What a search explores: executions that were not cut off, with what the world looked like; how many were.
#[derive(Debug, Default, PartialEq)]
struct Explored {
    executions: u64,
    blocked: u64,
    outcomes: BTreeSet<String>,
    complete: bool,
}

fn steps(trace: &Trace) -> Run {
    trace.steps.iter().map(|s| (s.act.uid, s.value, s.act.op.kind.0, s.act.op.obj)).collect()
}

fn explore(machine: &mut Machine, program: &Program, mut search: InOrder, most: u64) -> Result<Explored, String> {
    let (mut all, mut seen) = (Explored::default(), BTreeSet::new());
    while let Some(schedule) = search.next() {
        if all.executions + all.blocked > most {
            return Err(format!("more than {most} executions"));
        }
        let (trace, outcome) = machine.run(program, &schedule, u64::MAX);
        if trace.end == End::MISMATCH && !schedule.unsure {
            return Err("a step is not enabled".into());
        }
        let before = search.sleep_blocked();
        search.done(schedule.ticket, &trace);
        if search.sleep_blocked() > before {
            all.blocked += 1;
            continue;
        }
        if !seen.insert(steps(&trace)) {
            return Err("an execution was run twice".into());
        }
        all.executions += 1;
        all.outcomes.insert(outcome.text);
    }
    all.complete = search.exhaustive();
    Ok(all)
}

/// Splits what there is to explore; the looks are counted.
pub(crate) fn split(machine: &mut Machine, program: &Program, mut split: Split) -> (Vec<Vec<u8>>, u64) {
    let mut looks = 0;
    while let Some(schedule) = split.next() {
        looks += 1;
        let depth = schedule.prefix.len() as u64;
        assert!(schedule.ends && looks < 100_000);
        let (trace, _) = machine.run(program, &schedule, depth);
        split.done(schedule.ticket, &trace);
    }
    (Split::pieces_of(&split.save().expect("it is over")).expect("pieces"), looks)
}

pub(crate) fn restored(bytes: &[u8]) -> InOrder {
    let mut search = InOrder::optimal();
    search.restore(bytes).expect("a piece");
    search
}

/// All pieces together, the last first.
fn explore_pieces(machine: &mut Machine, program: &Program, pieces: &[Vec<u8>], most: u64) -> Result<Explored, String> {
    let mut all = Explored { complete: true, ..Explored::default() };
    for bytes in pieces.iter().rev() {
        let one = explore(machine, program, restored(bytes), most)?;
        all.executions += one.executions;
        all.blocked += one.blocked;
        all.outcomes.extend(one.outcomes);
        all.complete &= one.complete;
    }
    Ok(all)
}

fn check(machine: &mut Machine, program: &Program, into: usize) -> Result<(Explored, Explored, usize, u64), String> {
    let whole = explore(machine, program, InOrder::optimal(), 400)?;
    let (pieces, looks) = split(machine, program, Split::whole(into));
    let parts = explore_pieces(machine, program, &pieces, 4000).map_err(|e| format!("a piece: {e}"))?;
    Ok((whole, parts, pieces.len(), looks))
}

fn philosophers(n: u32) -> Program {
    let one = |i: u32| {
        let (left, right) = (i, (i + 1) % n);
        vec![Ins::Lock(left, How::Block), Ins::Lock(right, How::Block), Ins::Unlock(right), Ins::Unlock(left)]
    };
    [vec![(1..=n as usize).map(Ins::Create).collect()], (0..n).map(one).collect()].concat()
}

fn lock_count_unlock(n: u32) -> Program {
    let one = vec![Ins::Lock(0, How::Block), Ins::Count(0), Ins::Unlock(0)];
    [vec![(1..=n as usize).map(Ins::Create).collect()], vec![one; n as usize]].concat()
}

#[test]
fn known_counts_in_pieces() {
    let mut machine = Machine::new();
    let programs =
        [(philosophers(3), 7), (philosophers(5), 31), (lock_count_unlock(4), 24), (lock_count_unlock(5), 120)];
    for (program, executions) in &programs {
        for into in [1, 2, 8, 64] {
            let (whole, parts, pieces, looks) = check(&mut machine, program, into).expect("explored");
            println!("{executions} executions in {pieces} pieces: {} cut off, {looks} looks", parts.blocked);
            assert_eq!((whole.executions, parts.executions), (*executions, *executions));
            assert_eq!(whole.outcomes, parts.outcomes);
            assert!(whole.complete && parts.complete);
            assert!(pieces >= into.min(4), "{pieces} of {into}");
        }
    }
}

/// A piece that is split again, before it is begun, is explored by its pieces.
#[test]
fn pieces_are_split_again() {
    let (mut machine, program) = (Machine::new(), lock_count_unlock(5));
    let (pieces, _) = split(&mut machine, &program, Split::whole(3));
    let all: Vec<Vec<u8>> = pieces
        .iter()
        .flat_map(|bytes| split(&mut machine, &program, Split::piece(bytes, 5).expect("not begun")).0)
        .collect();
    assert!(all.len() >= 2 * pieces.len(), "{} of {}", all.len(), pieces.len());
    let parts = explore_pieces(&mut machine, &program, &all, 4000).expect("explored");
    assert_eq!((parts.executions, parts.complete), (120, true));
}

/// A piece that is split when it has been begun, anywhere: the first part has what was explored, the others what is left.
#[test]
fn pieces_are_split_while_they_are_explored() {
    let mut machine = Machine::new();
    for (program, all) in [(lock_count_unlock(5), 120), (philosophers(5), 31), (philosophers(4), 15)] {
        let (pieces, _) = split(&mut machine, &program, Split::whole(1));
        let whole = explore(&mut machine, &program, restored(&pieces[0]), 4000).expect("explored");
        assert_eq!(whole.executions, all);
        for stop in 1..whole.executions + whole.blocked {
            let mut search = restored(&pieces[0]);
            let mut runs = 0;
            for _ in 0..stop {
                let schedule = search.next().expect("more to do");
                let (trace, _) = machine.run(&program, &schedule, u64::MAX);
                let before = search.sleep_blocked();
                search.done(schedule.ticket, &trace);
                runs += u64::from(search.sleep_blocked() == before);
            }
            let bytes = search.save().expect("it can be saved");
            let (parts, _) = split(&mut machine, &program, Split::piece(&bytes, 4).expect("something is left"));
            assert!(!parts.is_empty());
            assert_eq!(restored(&parts[0]).transitions(), search.transitions(), "what was explored is counted");
            let rest = explore_pieces(&mut machine, &program, &parts, 4000).expect("explored");
            assert_eq!((rest.executions + runs, rest.complete), (all, true), "{stop}: {} parts", parts.len());
        }
        let over = {
            let mut search = restored(&pieces[0]);
            while let Some(schedule) = search.next() {
                let (trace, _) = machine.run(&program, &schedule, u64::MAX);
                search.done(schedule.ticket, &trace);
            }
            search.save().expect("it can be saved")
        };
        assert!(Split::piece(&over, 5).is_err());
    }
}

/// A piece that is broken off anywhere and goes on elsewhere explores what is left of it; one that is run twice shows the same twice.
#[test]
fn pieces_go_on_where_they_were() {
    let (mut machine, program) = (Machine::new(), philosophers(5));
    let (pieces, _) = split(&mut machine, &program, Split::whole(4));
    for bytes in &pieces {
        let whole = explore(&mut machine, &program, restored(bytes), 4000).expect("explored");
        assert_eq!(explore(&mut machine, &program, restored(bytes), 4000).expect("explored"), whole);
        for stop in 0..whole.executions + whole.blocked {
            let mut search = restored(bytes);
            let mut runs = 0;
            for _ in 0..stop {
                let schedule = search.next().expect("more to do");
                let (trace, _) = machine.run(&program, &schedule, u64::MAX);
                let before = search.sleep_blocked();
                search.done(schedule.ticket, &trace);
                runs += u64::from(search.sleep_blocked() == before);
            }
            let rest = explore(&mut machine, &program, restored(&search.save().expect("it can be saved")), 4000);
            assert_eq!(rest.expect("explored").executions + runs, whole.executions);
        }
    }
}

/// Into how many pieces programs are split; and when these are split again, into how many.
const WAYS: [(usize, Option<Again>); 6] = [
    (2, None),
    (7, None),
    (40, None),
    (1, Some(Again { after: 1, into: 3 })),
    (2, Some(Again { after: 2, into: 2 })),
    (5, Some(Again { after: 4, into: 20 })),
];

/// Random programs: each trace is explored in one of the pieces, and in one only.
fn random(family: Family, timeouts_any: bool) {
    let cases = if family == Family::Signal { cases() / 40 } else { cases() / 4 };
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 5_000, ..Config::default() };
    let counted = RefCell::new(BTreeMap::new());
    let failed = RefCell::new(0);
    let result = runner(config).run(&program(family), |program| {
        let mut machine = Machine::new();
        machine.timeouts_any = timeouts_any;
        for how in WAYS {
            let mut reasons = Reasons::default();
            match each_trace_in_one_piece(&mut machine, &program, how, &mut counted.borrow_mut(), &mut reasons) {
                Ok(true) => {}
                Ok(false) => break,
                Err(e) if is_counted(&program, &e, &reasons) => {
                    println!("{program:?} into {how:?}: {e}");
                    *failed.borrow_mut() += 1;
                }
                Err(e) => return Err(TestCaseError::fail(format!("{program:?} into {how:?}: {e}"))),
            }
        }
        Ok(())
    });
    if let Err(e) = result {
        panic!("{e}");
    }
    let (counted, failed) = (counted.into_inner(), failed.into_inner());
    println!("{family:?}: {counted:?}, {failed} lost a trace or ran one twice");
    let used = counted["programs"];
    assert!(used > u64::from(cases) / 10, "most programs are too large: {used} of {cases}");
    assert!(failed <= 1 + used / 50, "{failed} of {used} programs");
}

/// Programs of which pieces once lost a trace: the order in which the last two threads of a process end is told by what comes behind.
#[test]
fn traces_that_pieces_once_lost() {
    let (b, file) = (How::Block, File { file: 0, first: 0, last: i64::MAX as u64, description: None });
    let programs = [
        vec![
            vec![Ins::Create(1), Ins::Fork(2), Ins::Flock(0, 2, Some(true), b)],
            vec![Ins::Record(file, false, b), Ins::RecordUnlock(file)],
            vec![Ins::Record(file, false, b), Ins::RecordUnlock(file), Ins::Flock(0, 1, Some(true), b)],
        ],
        vec![
            vec![Ins::Fork(1), Ins::FutexWaitv([0, 1], [true, true], b)],
            vec![Ins::Create(2), Ins::Kill(2, 10), Ins::Post(2)],
            vec![Ins::Lock(1, b), Ins::Count(1), Ins::Unlock(1)],
        ],
    ];
    for program in programs {
        for how in WAYS {
            let mut machine = Machine::new();
            let held =
                each_trace_in_one_piece(&mut machine, &program, how, &mut BTreeMap::new(), &mut Reasons::default());
            // That of some it is not known whether they are the same is no loss.
            assert!(!held.as_ref().is_err_and(|e| e.contains(" miss ")), "{program:?} into {how:?}: {held:?}");
        }
    }
}

macro_rules! families {
    ($($name:ident: $family:ident, $any:literal;)*) => {$(
        #[test]
        fn $name() {
            random(Family::$family, $any);
        }
    )*};
}

families! {
    pieces_of_mutexes: Mutex, false;
    pieces_of_conditions: Cond, false;
    pieces_of_semaphores: Sem, false;
    pieces_of_sysv_semaphores: Sysv, false;
    pieces_of_message_queues: Msg, false;
    pieces_of_locks_of_files: Files, false;
    pieces_of_contents_of_files: Contents, false;
    pieces_of_numbers_of_descriptors: Numbers, false;
    pieces_of_rwlocks: Rw, false;
    pieces_of_barriers: Barrier, false;
    pieces_of_streams: Stream, false;
    pieces_of_futexes: Futex, false;
    pieces_of_thread_life: Life, false;
    pieces_of_processes: Process, false;
    pieces_of_timeouts: Timed, false;
    pieces_of_events: Event, false;
    pieces_of_posix_queues: Mqueue, false;
    pieces_of_sockets: Socket, false;
    pieces_of_signals: Signal, false;
    pieces_of_memory: Memory, false;
    pieces_of_all: All, false;
    pieces_of_timeouts_at_any_moment: Timed, true;
}
