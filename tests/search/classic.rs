//! The searches of the papers against brute force over random model programs, with bounds from the text of the program.

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::counts::{lock_count, philosophers};
use crate::interp::bounds::Text;
use crate::interp::digest::{refused, Outcomes};
use crate::interp::generate::{program, runner, Family};
use crate::interp::{brute, How, Ins, Machine, Program};
use proptest::test_runner::{Config, TestCaseError};
use vsrun::search::allowed::{Allowed, AllowedOps, KindClass, ThreadOrigin, Unknown};
use vsrun::search::{Composed, ExitBlock, IfSss, Search, Sss, Transactions};
use vsrun_model::arena::Choice;
use vsrun_model::{dependent_composed, End, ObjKind};

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
    let result = runner(config).run(&program(family), |program| {
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
    let Some(all) = brute::explore_past_circles(machine, program, LIMIT) else { return Ok(false) };
    let text = || Box::new(Text::new(program));
    let refused = refused(all.outcomes.iter());
    let searches: [(&str, bool, Box<dyn Search>); 11] = [
        ("sss without bounds", false, Box::new(Sss::new(Box::new(Unknown)))),
        ("sss", false, Box::new(Sss::new(text()))),
        ("if-sss without bounds", false, Box::new(IfSss::new(Box::new(Unknown)))),
        ("if-sss", false, Box::new(IfSss::new(text()))),
        ("composed without bounds or memory", false, Box::new(Composed::new(Box::new(Unknown)))),
        ("composed without memory", false, Box::new(Composed::new(text()))),
        ("composed without bounds", true, Box::new(Composed::new(Box::new(Unknown)))),
        ("composed", true, Box::new(Composed::new(text()))),
        ("transactions", false, Box::new(Transactions::new())),
        ("transactions, refined", false, Box::new(Transactions::new().incremental())),
        ("transactions of left movers", false, Box::new(Transactions::left_movers())),
    ];
    for (name, memory, mut search) in searches {
        machine.by_step = memory;
        let (outcomes, executions) =
            machine.explore(program, search.as_mut(), 10 * LIMIT).ok_or(format!("{name} runs on"))?;
        if outcomes != all.outcomes {
            let missed: Vec<_> = all.outcomes.difference(&outcomes).collect();
            let wrong: Vec<_> = outcomes.difference(&all.outcomes).collect();
            return Err(format!("{name} misses {}: {missed:?}\ninvents {wrong:?}", missed.len()));
        }
        if search.exhaustive() == refused || !search.notes().is_empty() {
            return Err(format!("{name}: {executions} executions of {}, {:?}", all.leaves, search.notes()));
        }
    }
    Ok(true)
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
            at_any_moment($any, || check(Family::$family, searches_agree));
        }
    )*};
}

agree! {
    agree_on_mutexes: Mutex, false;
    agree_on_conditions: Cond, false;
    agree_on_semaphores: Sem, false;
    agree_on_sysv_semaphores: Sysv, false;
    agree_on_message_queues: Msg, false;
    agree_on_locks_of_files: Files, false;
    agree_on_contents_of_files: Contents, false;
    agree_on_numbers_of_descriptors: Numbers, false;
    agree_on_rwlocks: Rw, false;
    agree_on_barriers_spinlocks_once: Barrier, false;
    agree_on_streams: Stream, false;
    agree_on_futexes: Futex, false;
    agree_on_thread_life: Life, false;
    agree_on_processes: Process, false;
    agree_on_timeouts: Timed, false;
    agree_on_events: Event, false;
    agree_on_posix_queues: Mqueue, false;
    agree_on_sockets: Socket, false;
    agree_on_signals: Signal, false;
    agree_on_memory: Memory, false;
    agree_on_all: All, false;
    agree_on_timeouts_at_any_moment: Timed, true;
    agree_on_events_at_any_moment: Event, true;
    agree_on_posix_queues_at_any_moment: Mqueue, true;
    agree_on_all_at_any_moment: All, true;
}

/// (executions, transitions, sleep-blocked, outcomes), by the machine of this thread as it is set.
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
    // The classical search, which visits each state once, takes 18, 123, 708, 3765 transitions (first paper, Figure 4).
    let sss = |n| with_text(&philosophers(n), |bounds| Box::new(Sss::new(bounds)));
    assert_eq!(sss(2), (3, 17, 0, 2));
    assert_eq!(sss(3), (9, 68, 2, 2));
    assert_eq!(sss(4), (24, 209, 9, 2));
    assert_eq!(sss(5), (60, 572, 29, 2));
    // Sleep sets alone.
    let unknown = |n| counts(&philosophers(n), &mut Sss::new(Box::new(Unknown)));
    assert_eq!(unknown(2), (3, 17, 0, 2));
    assert_eq!(unknown(3), (19, 97, 12, 2));
    assert_eq!(unknown(4), (97, 489, 82, 2));
    assert_eq!(unknown(5), (471, 2371, 440, 2));
}

#[test]
fn counts_of_lock_orders() {
    for (n, expected) in [(2, (2, 8, 0, 2)), (3, (6, 30, 0, 6)), (4, (24, 128, 0, 24))] {
        assert_eq!(with_text(&lock_count(n), |bounds| Box::new(Sss::new(bounds))), expected);
        assert_eq!(with_text(&lock_count(n), |bounds| Box::new(IfSss::new(bounds))), expected);
    }
}

/// Threads that lock one mutex of their own after the other; nothing that one does matters to another.
fn own_locks() -> Program {
    let section = |m| vec![Ins::Lock(m, How::Block), Ins::Count(m), Ins::Unlock(m)];
    let twice = |m| [section(m), section(m)].concat();
    vec![vec![Ins::Create(1), Ins::Create(2)], twice(0), twice(1)]
}

#[test]
fn persistent_sets_leave_out_who_shares_nothing() {
    assert_eq!(with_text(&own_locks(), |bounds| Box::new(Sss::new(bounds))), (1, 8, 0, 1));
    let (executions, ..) = counts(&own_locks(), &mut Sss::new(Box::new(Unknown)));
    assert!(executions > 1, "sleep sets alone need {executions} executions");
}

#[test]
fn releases_that_nobody_can_see_are_no_branching_points() {
    // While one thread holds mutex 0, others are busy with a semaphore and could go on where it is released.
    let section = vec![Ins::Lock(0, How::Block), Ins::Count(0), Ins::Unlock(0), Ins::Post(1), Ins::Post(1)];
    let posts = vec![Ins::SemWait(2, How::Block), Ins::Post(1), Ins::Post(1)];
    let mut program = vec![vec![Ins::Create(1), Ins::Create(2)], section, posts];
    let all = |program: &Program| {
        let none = || Box::new(Unknown);
        (counts(program, &mut Sss::new(none())), counts(program, &mut IfSss::new(none())))
    };
    let (sss, invisible_first) = all(&program);
    assert_eq!((sss, invisible_first), ((5, 19, 4, 1), (4, 16, 3, 1)));
    // One that looks makes the release visible: then the two are the same but for the beginning again.
    program.push(vec![Ins::Lock(0, How::Try), Ins::Unlock(0)]);
    program[0].push(Ins::Create(3));
    let (sss, invisible_first) = all(&program);
    assert_eq!((sss, invisible_first), ((20, 83, 17, 2), (21, 92, 17, 2)));
}

#[test]
fn exitblock_misses_a_deadlock() {
    let both = |a, b| vec![Ins::Lock(a, How::Block), Ins::Lock(b, How::Block), Ins::Unlock(b), Ins::Unlock(a)];
    let program = vec![vec![Ins::Create(1), Ins::Create(2)], both(0, 1), both(1, 0)];
    let deadlocks = |search: &mut dyn Search| {
        MACHINE.with(|machine| {
            let (outcomes, _) = machine.borrow_mut().explore(&program, search, u64::MAX).expect("no limit");
            outcomes.iter().filter(|o| !o.starts_with(&format!("{:?}", End::FINISHED))).count()
        })
    };
    assert_eq!(deadlocks(&mut IfSss::new(Box::new(Unknown))), 1);
    for mut search in [ExitBlock::plain(), ExitBlock::reads_and_writes()] {
        assert_eq!(deadlocks(&mut search), 0);
        assert!(!search.exhaustive() && search.notes().len() == 1);
    }
}

/// (executions, transitions, outcomes) of a search that does not claim to be complete.
fn tally(program: &Program, mut search: impl Search) -> (u64, u64, usize) {
    MACHINE.with(|machine| {
        let (outcomes, executions) = machine.borrow_mut().explore(program, &mut search, u64::MAX).expect("no limit");
        (executions, search.transitions(), outcomes.len())
    })
}

#[test]
fn exitblock_runs_every_order_of_blocks() {
    assert_eq!(tally(&lock_count(3), ExitBlock::plain()), (6, 30, 6));
    assert_eq!(tally(&lock_count(3), ExitBlock::reads_and_writes()), (6, 30, 6));
    // Two threads with two blocks each: 6 orders of blocks, all the same to one that knows what they read and write. What
    // is asleep only the search knows: executions that run into it are counted, and thrown away.
    assert_eq!(tally(&own_locks(), ExitBlock::plain()).0, 6);
    assert_eq!(tally(&own_locks(), ExitBlock::reads_and_writes()), (3, 22, 1));
    let reads = |n: usize| {
        let read = vec![Ins::Read(0, How::Block), Ins::RwUnlock(0)];
        let mut program = vec![(1..=n).map(Ins::Create).collect::<Vec<_>>()];
        program.extend(vec![read; n]);
        program
    };
    assert_eq!(tally(&reads(3), ExitBlock::plain()).0, 6);
    assert_eq!(tally(&reads(3), ExitBlock::reads_and_writes()), (5, 26, 1));
}

#[test]
fn notifies_under_their_mutex_are_no_branching_points() {
    let section = |ins| vec![Ins::Lock(0, How::Block), ins, Ins::Unlock(0)];
    let posts = vec![Ins::SemWait(2, How::Block), Ins::Post(1)];
    let start = vec![Ins::Create(1), Ins::Create(2), Ins::Create(3)];
    let mut program = vec![start, section(Ins::CondWait(0, 0, How::Block)), section(Ins::Broadcast(0)), posts];
    let all = |program: &Program| {
        let none = || Box::new(Unknown);
        (counts(program, &mut Sss::new(none())), counts(program, &mut IfSss::new(none())))
    };
    assert_eq!(all(&program), ((13, 38, 11, 2), (11, 34, 9, 2)));
    // Without the mutex a waiter may miss it, and the order matters.
    program[2] = vec![Ins::Broadcast(0)];
    assert_eq!(all(&program), ((9, 26, 7, 2), (10, 33, 7, 2)));
}

/// The transitions of thread `t` from the state after `path` on, `n` of them without a switch; `None` if it cannot.
fn together(machine: &mut Machine, program: &Program, path: &[Choice], t: usize, n: usize) -> Option<Vec<Choice>> {
    let mut path = path.to_vec();
    for _ in 0..n {
        let (trace, _) = machine.run_prefix(program, &path);
        let seen = trace.last.iter().find(|s| s.act.tid == t as u32 && s.choices == 1)?;
        path.push(Choice::new(seen.act.uid, 0, seen.act.op.kind));
    }
    Some(path)
}

/// Sections as composed transitions: where both orders are possible and `dependent_composed` says no, they commute.
#[test]
fn independent_composed_transitions_commute() {
    let lock = |m| Ins::Lock(m, How::Block);
    let pieces: [Vec<Ins>; 6] = [
        vec![lock(0), Ins::Unlock(0)],
        vec![lock(0), lock(1), Ins::Unlock(1), Ins::Unlock(0)],
        vec![lock(0)],
        vec![lock(1), Ins::Post(0), Ins::Unlock(1)],
        vec![Ins::Spin(0, How::Block), Ins::SpinUnlock(0)],
        vec![Ins::Lock(0, How::Try), Ins::Unlock(0)],
    ];
    let independent = |machine: &mut Machine, a: &Vec<Ins>, b: &Vec<Ins>| {
        // The last operation keeps the threads alive, and with them what their transitions leave behind.
        let body = |piece: &Vec<Ins>| [piece.clone(), vec![Ins::SemWait(3, How::Block)]].concat();
        let program = vec![vec![Ins::Create(1), Ins::Create(2), Ins::SemWait(3, How::Block)], body(a), body(b)];
        let mut order = |first: (usize, usize), second: (usize, usize)| {
            let path = together(machine, &program, &[], first.0, first.1)?;
            let path = together(machine, &program, &path, second.0, second.1)?;
            let (trace, outcome) = machine.run_prefix(&program, &path);
            let acts = trace.steps.iter().map(|s| (s.act, s.did));
            Some((acts.collect::<Vec<_>>().split_off(first.1), outcome.state))
        };
        let (one, two) = (order((1, a.len()), (2, b.len())), order((2, b.len()), (1, a.len())));
        let (Some((of_b, state)), Some((of_a, other))) = (one, two) else { return None };
        let depends = dependent_composed(&of_a, &of_b, true);
        assert!(depends || state == other, "{a:?} {b:?} do not commute:\n{state}\n{other}");
        Some(!depends)
    };
    let found: Vec<Vec<Option<bool>>> = MACHINE.with(|machine| {
        let mut with = |a| pieces.iter().map(|b| independent(&mut machine.borrow_mut(), a, b)).collect();
        pieces.iter().map(&mut with).collect()
    });
    let is = |row: usize, column: usize| (found[row][column], found[column][row]);
    assert_eq!(is(0, 0), (Some(true), Some(true)));
    assert_eq!(is(0, 1), (Some(true), Some(true)));
    assert_eq!(is(1, 1), (Some(true), Some(true)));
    assert_eq!(is(1, 3), (Some(true), Some(true)));
    assert_eq!(is(3, 3), (Some(true), Some(true)));
    assert_eq!(is(4, 4), (Some(true), Some(true)));
    // Who tries may find the lock held, and who keeps it keeps others out.
    assert_eq!(is(0, 5), (Some(false), Some(false)));
    assert_eq!(is(0, 2), (None, None));
}

/// What a search does on a program of which traces tell what transitions did to protected variables.
fn counts_by_step(program: &Program, search: &mut dyn Search) -> (u64, u64, u64, usize) {
    MACHINE.with(|machine| machine.borrow_mut().by_step = true);
    let counted = counts(program, search);
    MACHINE.with(|machine| machine.borrow_mut().by_step = false);
    counted
}

fn composed(program: &Program) -> (u64, u64, u64, usize) {
    counts_by_step(program, &mut Composed::new(Box::new(Text::new(program))))
}

#[test]
fn composed_transitions_that_pass_through_a_lock_commute() {
    // Section 6 of TR 536: a lock of each thread's own, and under it a section that reads what a common lock protects.
    let looks = |own: u32, n: usize| {
        let common = vec![Ins::Lock(4, How::Block), Ins::AssertNot(4, -1), Ins::Unlock(4)];
        [vec![Ins::Lock(own, How::Block)], vec![common; n].concat(), vec![Ins::Count(own), Ins::Unlock(own)]].concat()
    };
    let program = |n| vec![vec![Ins::Create(1), Ins::Create(2)], looks(0, n), looks(1, n)];
    let if_sss = |n| with_text(&program(n), |bounds| Box::new(IfSss::new(bounds)));
    let by_hand = |n: u64| (1..=n).fold(1, |all, k| all * (n + k) / k);
    for n in 1..=3 {
        assert_eq!(if_sss(n).0 - if_sss(n).2, by_hand(n as u64), "every order of {n} sections each");
    }
    // One of these goes to its end. The paper's single path has persistent sets of the smallest size; here they begin with what was taken.
    assert_eq!((composed(&program(1)).0, composed(&program(2)).0, composed(&program(3)).0), (4, 5, 6));
    // Sections that write what the others read or write do not, nor do those of which nothing is known.
    assert_eq!(composed(&lock_count(3)).0, 6);
    let unknown = with_text(&program(2), |bounds| Box::new(Composed::new(bounds)));
    assert_eq!(unknown.0 - unknown.2, by_hand(2));
}

/// Of two threads, whichever of them is the first.
fn composed_finds_two_outcomes([a, b]: [Vec<Ins>; 2]) {
    for bodies in [[a.clone(), b.clone()], [b, a]] {
        let mut program = vec![vec![Ins::Create(1), Ins::Create(2)]];
        program.extend(bodies);
        let all =
            MACHINE.with(|machine| brute::explore(&mut machine.borrow_mut(), &program, u64::MAX).expect("no limit"));
        assert_eq!((all.outcomes.len(), composed(&program).3), (2, 2));
    }
}

/// (4) of TR 536 on either side would lose a deadlock, whichever of the two threads is explored first.
#[test]
fn who_keeps_a_lock_is_woken_by_who_passes_through_it() {
    let passes = vec![Ins::Lock(0, How::Block), Ins::Unlock(0), Ins::SemWait(0, How::Block)];
    let keeps = vec![Ins::Lock(0, How::Block), Ins::SemWait(3, How::Block)];
    composed_finds_two_outcomes([passes, keeps]);
}

/// What one thread does while it holds a lock wakes who passes through that lock and uses the same memory, though that
/// transition is not on the lock itself.
#[test]
fn memory_wakes_who_passes_through_a_lock() {
    let (lock, unlock) = (|m| Ins::Lock(m, How::Block), Ins::Unlock);
    let inside = vec![Ins::Create(1), lock(1), Ins::Count(1), lock(0), Ins::Count(0), unlock(0), unlock(1)];
    let looks = vec![lock(0), Ins::Count(0), Ins::AssertNot(0, 2), unlock(0)];
    let program = vec![inside, looks];
    let all = MACHINE.with(|machine| brute::explore(&mut machine.borrow_mut(), &program, u64::MAX).expect("no limit"));
    assert_eq!((all.outcomes.len(), composed(&program).3), (2, 2));
}

/// The counter of Flanagan and Qadeer, Section 2: `x` and `y` are protected by a lock each, `count` by none.
#[test]
fn transactions_of_the_counter() {
    let (x, y, count) = (0, 1, 2);
    let (lock, unlock) = (|m| Ins::Lock(m, How::Block), Ins::Unlock);
    let incr = vec![lock(0), Ins::Load(x), Ins::Update(count), Ins::Store(x, 1), unlock(0)];
    let decr = vec![lock(1), Ins::Load(y), Ins::Update(count), Ins::Store(y, 1), unlock(1)];
    let read = vec![lock(0), Ins::Load(x), lock(1), Ins::Load(y), Ins::Load(count), unlock(1), unlock(0)];
    // That a thread ends others may see, so its last transition is a transaction of its own: these do not end.
    let stays = |method: Vec<Ins>| [method, vec![Ins::SemWait(3, How::Block)]].concat();
    let program = vec![vec![Ins::Create(1), Ins::Create(2), Ins::Create(3)], stays(incr), stays(decr), stays(read)];
    let all = MACHINE.with(|machine| brute::explore(&mut machine.borrow_mut(), &program, u64::MAX).expect("no limit"));
    for (mut search, expected) in [(Transactions::new(), [1, 1, 1]), (Transactions::left_movers(), [2, 2, 3])] {
        MACHINE.with(|machine| {
            let machine = &mut machine.borrow_mut();
            let (mut outcomes, mut executions, mut seen) = (Outcomes::new(), 0, BTreeSet::new());
            while let Some(schedule) = search.next() {
                let (trace, outcome) = machine.run(&program, &schedule, u64::MAX);
                let blocked = search.sleep_blocked();
                search.done(schedule.ticket, &trace);
                executions += 1;
                if search.sleep_blocked() == blocked {
                    outcomes.insert(outcome.text);
                    let of = search.transactions_on_path();
                    seen.insert([1, 2, 3].map(|t| of.get(&trace.threads[t]).copied().unwrap_or(0)));
                }
            }
            assert!(search.exhaustive());
            assert_eq!(outcomes, all.outcomes);
            // While the search did not know yet of what is not protected, transactions were larger; it began again then.
            println!("{executions} executions of {}, transactions {seen:?}", all.leaves);
            assert_eq!(seen.last(), Some(&expected));
        });
    }
}

/// Transactions alone would lose the deadlock: the order of the locks tells.
#[test]
fn transactions_lose_no_deadlock() {
    let both = |a, b| vec![Ins::Lock(a, How::Block), Ins::Lock(b, How::Block), Ins::Unlock(b), Ins::Unlock(a)];
    let ring = |n: u32| {
        let mut program = vec![(1..=n as usize).map(Ins::Create).collect::<Vec<_>>()];
        program.extend((0..n).map(|i| both(i, (i + 1) % n)));
        program
    };
    // Where no two threads take locks in opposite order, each section is one transaction.
    let apart = vec![vec![Ins::Create(1), Ins::Create(2)], both(0, 1), both(0, 1)];
    let found = |program: &Program| counts(program, &mut Transactions::new());
    for n in 2..4 {
        let program = ring(n);
        let all =
            MACHINE.with(|machine| brute::explore(&mut machine.borrow_mut(), &program, u64::MAX).expect("no limit"));
        assert_eq!(found(&program).3, all.outcomes.len());
        let mut refined = Transactions::new().incremental();
        assert_eq!(counts(&program, &mut refined).3, all.outcomes.len());
        assert!(refined.put_right() > 0, "the circle is known too late for what was explored before");
    }
    assert_eq!(found(&apart), (2, 16, 0, 1));
    let mut refined = Transactions::new().incremental();
    assert_eq!((counts(&apart, &mut refined), refined.put_right()), ((2, 16, 0, 1), 0));
}

/// Claims that nobody touches a mutex.
struct Wrong(Text);

impl Allowed for Wrong {
    fn of(&self, thread: &ThreadOrigin) -> AllowedOps {
        let mut bound = self.0.of(thread);
        bound.ops.retain(|(class, _)| *class != KindClass::On(ObjKind::MUTEX));
        bound
    }
}

#[test]
fn what_is_outside_its_bound_is_noted_and_the_search_begins_again() {
    let program = lock_count(3);
    let mut search = Sss::new(Box::new(Wrong(Text::new(&program))));
    let (_, _, _, outcomes) = counts(&program, &mut search);
    assert_eq!(outcomes, 6);
    assert_eq!(search.notes().len(), 1);
    assert!(search.notes()[0].contains("mutex_lock"), "{:?}", search.notes());
}

/// An execution that runs into what sleeps goes on with what is awake, though what sleeps would be a persistent set: it ends the
/// execution, so nothing of the others would be seen.
#[test]
fn what_sleeps_and_ends_executions_hides_nothing() {
    let body = vec![Ins::Lock(0, How::Block), Ins::Count(0), Ins::AssertNot(0, 2), Ins::Unlock(0)];
    let program = vec![vec![Ins::Create(1), Ins::Create(2), Ins::RawUnlock(1)], body.clone(), body];
    let all = MACHINE.with(|machine| brute::explore(&mut machine.borrow_mut(), &program, u64::MAX).expect("no limit"));
    assert_eq!((all.outcomes.len(), composed(&program).3), (3, 3));
}
