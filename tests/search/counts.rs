//! Executions and transitions of `naive` and `dpor` on programs of the papers, and on threads that take one lock.

use crate::interp::{How, Ins, Machine, Program};
use vsrun::search::{InOrder, Naive, Search};

/// The first paper's dining philosophers: processes, SysV semaphores, the first process is the last philosopher.
pub(crate) fn philosophers(n: usize) -> Program {
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
pub(crate) fn lock_count(n: usize) -> Program {
    let mut program = vec![(1..=n).map(Ins::Create).collect::<Vec<_>>()];
    program.extend(vec![vec![Ins::Lock(0, How::Block), Ins::Count(0), Ins::Unlock(0)]; n]);
    program
}

/// (executions, transitions, sleep-blocked, outcomes)
fn counts(program: &Program, search: &mut dyn Search) -> (u64, u64, u64, usize) {
    let (outcomes, executions) = Machine::new().explore(program, search, u64::MAX).expect("no limit");
    assert!(search.exhaustive());
    (executions, search.transitions(), search.sleep_blocked(), outcomes.len())
}

#[test]
fn naive_counts_the_papers_philosophers() {
    let naive = |n| counts(&philosophers(n), &mut Naive::new());
    assert_eq!(naive(2), (4, 18, 0, 2));
    assert_eq!(naive(3), (396, 1680, 0, 2));
}

#[test]
#[cfg_attr(debug_assertions, ignore = "slow without optimization")]
fn naive_counts_four_philosophers() {
    assert_eq!(counts(&philosophers(4), &mut Naive::new()), (104_704, 386_816, 0, 2));
}

#[test]
fn dpor_counts_philosophers() {
    // Without the sleep-blocked ones these are the optimum: 3, 7, 15, 31.
    let dpor = |n| counts(&philosophers(n), &mut InOrder::dpor());
    assert_eq!(dpor(2), (3, 17, 0, 2));
    assert_eq!(dpor(3), (13, 76, 6, 2));
    assert_eq!(dpor(4), (40, 268, 25, 2));
    assert_eq!(dpor(5), (122, 854, 91, 2));
}

#[test]
fn dpor_counts_lock_orders() {
    let dpor = |n| counts(&lock_count(n), &mut InOrder::dpor());
    assert_eq!(dpor(2), (2, 8, 0, 2));
    assert_eq!(dpor(3), (6, 30, 0, 6));
    assert_eq!(dpor(4), (24, 128, 0, 24));
    assert_eq!(dpor(5), (120, 650, 0, 120));
}
