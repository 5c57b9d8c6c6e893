use super::*;
use crate::schedule::Schedule;
use vsrun_model::arena::Choice;
use vsrun_model::{Kind, Uid};

fn ended(output: &str, status: i32) -> Ended {
    let text = fnv1a(output.bytes());
    Ended { text, status, bytes: output.len() as u64, output: output.as_bytes().to_vec() }
}

fn one(output: &str, values: &[u32], execution: u64) -> Kept {
    let prefix: Vec<Choice> = values.iter().map(|&v| Choice::new(Uid::MAIN, v, Kind::TOSS)).collect();
    let transitions = prefix.len() as u64;
    let schedule = Schedule { prefix, ..Schedule::default() };
    Kept { ended: ended(output, 0), best: Candidate { schedule, transitions, execution, ..Candidate::default() } }
}

fn with(most: (usize, usize), all: &[Kept]) -> Outcomes {
    let mut outcomes = Outcomes { most, ..Outcomes::default() };
    for (ticket, kept) in (0..).zip(all) {
        outcomes.note(ticket, kept.ended.clone(), kept.best.clone());
        outcomes.settle(None);
    }
    outcomes
}

/// The table but for what numbers of executions depend on.
fn told(outcomes: &Outcomes) -> (finding::Outcomes, Vec<Vec<u32>>) {
    let choices = |kept: &Kept| kept.best.schedule.prefix.iter().map(|c| c.value).collect();
    (outcomes.table(), outcomes.in_order().iter().map(|(_, kept)| choices(kept)).collect())
}

#[test]
fn the_table_does_not_depend_on_the_order_of_executions() {
    let all: Vec<Kept> = (0..60u32)
        .map(|n| one(&format!("total {}\n", n * n % 7), &[n % 3, n % 5, n % 4][..1 + n as usize % 3], n.into()))
        .collect();
    for most in [(2, 100), (3, 100), (20, 100), (2, 3)] {
        let expected = told(&with(most, &all));
        for step in [7, 11, 13, 59] {
            let other: Vec<Kept> = (0..60).map(|n| all[n * step % 60].clone()).collect();
            assert_eq!(told(&with(most, &other)), expected, "{most:?} {step}");
        }
    }
}

#[test]
fn what_does_not_fit_is_said() {
    let all: Vec<Kept> = (0..5).map(|n| one(&format!("{n}\n"), &vec![0; n + 1], n as u64)).collect();
    let table = with((2, 100), &all).table();
    assert_eq!((table.executions, table.different, table.overflow, table.table.len()), (5, 5, false, 2));
    assert_eq!(table.table[1].times, Some(1));
    let table = with((2, 3), &all).table();
    assert_eq!((table.executions, table.different, table.overflow), (5, 3, true));
    assert!(table.table.iter().all(|row| row.times.is_none()));
}

#[test]
fn executions_run_ahead_count_once_they_are_part_of_the_search() {
    let mut outcomes = Outcomes::default();
    for (ticket, text) in [(1, "a"), (2, "b"), (3, "c")] {
        let Kept { ended, best } = one(text, &[0], ticket);
        outcomes.note(ticket, ended, best);
        outcomes.settle(Some(Vec::new()));
    }
    assert_eq!((outcomes.executions, outcomes.different()), (0, 0));
    outcomes.settle(Some(vec![(3, true), (2, false), (9, true)]));
    assert_eq!((outcomes.executions, outcomes.different()), (1, 1));
    outcomes.settle(Some(vec![(1, true), (2, true)]));
    assert_eq!((outcomes.executions, outcomes.different()), (2, 2));
}

#[test]
fn the_first_place_that_differs_is_shown() {
    let line = |number, text: &str, first: Option<&str>| Printed::Line {
        number,
        text: Some(text.into()),
        first: first.map(Into::into),
    };
    let first = ended("one\ntwo\nthree\n", 0);
    assert_eq!(beside(&first, &ended("one\n2\nthree\n", 0)), line(2, "2", Some("two")));
    let shorter = ended("one\ntwo\n", 0);
    assert_eq!(beside(&first, &shorter), Printed::Line { number: 3, text: None, first: Some("three".into()) });
    assert_eq!(beside(&first, &ended("one\ntwo\nthree\n", 256)), Printed::Same);
    assert_eq!(beside(&ended("", 0), &ended("", 256)), Printed::Nothing);
    assert_eq!(alone(&ended("", 0), [ended("", 256)].iter()), Printed::Nothing);
    assert_eq!(alone(&first, [ended("one\n2\n", 0), shorter].iter()), line(2, "two", None));
    let long = |c: &str| ended(&format!("{}{c}{}", "x".repeat(100), "y".repeat(100)), 0);
    let shown = |c: &str| format!("..{}{c}{}..", "x".repeat(20), "y".repeat(39));
    assert_eq!(beside(&long("1"), &long("2")), line(1, &shown("2"), Some(&shown("1"))));
    let kept = |text, bytes| Ended { text, bytes, ..ended("same", 0) };
    assert_eq!(beside(&kept(1, 1 << 20), &kept(2, 1 << 20)), Printed::Beyond(KEPT_BYTES as u64));
    // Bytes that are no characters, and characters of several bytes.
    assert_eq!(line_at(b"a\xff\n", 1), Some("a\\xff".into()));
    assert_eq!(
        line_at(format!("{}é{}", "ä".repeat(50), "z".repeat(9)).as_bytes(), 101),
        Some(format!("..{}é{}", "ä".repeat(9), "z".repeat(9)))
    );
}
