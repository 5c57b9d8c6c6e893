//! Bytes that a swarm reads from files, for fuzzing: what is done with them before anything is run.

use std::ffi::OsString;
use std::path::Path;

use super::plan::Plan;
use super::store::{Bug, Clock, Description, Done, Lot};
use super::sum::Sum;
use super::work::config_of;
use crate::codec;
use crate::explore::Covered;
use crate::finding::BugKind;
use crate::scenario::Program;
use crate::search::Chance;

/// The content of one of the files: the first byte says of which, the rest is what a checksum is for. Whether it is accepted.
pub fn file(data: &[u8]) -> bool {
    let [which, bytes @ ..] = data else { return false };
    match which % 4 {
        0 => Description::parse(bytes).is_ok_and(|description| {
            let again = Description::parse(&serde_json::to_vec(&description).unwrap_or_default());
            // Numbers that are no integers may come back a little different.
            assert!(
                again.is_ok_and(|again| again.words() == description.words()),
                "what was read is written otherwise"
            );
            config_of(&description.words()).is_ok()
        }),
        1 => Clock::parse(bytes).is_ok_and(|clock| {
            let _ = clock.rest(clock.newest);
            true
        }),
        2 => codec::decode::<Lot>(bytes).is_ok(),
        _ => codec::decode::<Done>(bytes).is_ok_and(|done| done.can_be() && joined(&done)),
    }
}

/// It is taken twice, with what comes of it in the plan and in the report.
fn joined(done: &Done) -> bool {
    let (mut sum, mut plan, mut covered) = (Sum::default(), Plan::new(done.lot.faults), Covered::default());
    let news = covered.join(&done.covered);
    for _ in 0..2 {
        plan.begun(done.lot.kind as usize, done.lot.faults);
        plan.take((done.lot.kind as usize, done.lot.faults), news, done.seconds);
        sum.add(done, Path::new("/nowhere"));
    }
    assert_eq!(covered.join(&done.covered), 0);
    let report = sum.report();
    assert!(report.missed.iter().all(|missed| (0.0..=1.0).contains(&missed.chance)));
    plan.next(3);
    true
}

/// What a task may have come to.
pub(super) fn done() -> Done {
    let lot = Lot { swarm: 1, number: 2, kind: 3, seed: 4, faults: 5, executions: Some(6), from: None };
    let bug = Bug {
        kind: BugKind::Deadlock,
        identity: 7,
        summary: "two threads wait".into(),
        scenario: Some("program-deadlock-1.vsrun.json".into()),
        execution: 8,
        transitions: 9,
    };
    Done {
        lot,
        executions: 10,
        transitions: 11,
        cut: 0,
        ended: 10,
        max_depth: 12,
        seconds: 0.5,
        newest: 0.25,
        covered: Covered::default(),
        chances: vec![Chance { depth: 2, threads: 3, length: 13, executions: 10 }],
        kept: Some(vec![1, 2, 3]),
        bugs: vec![bug],
        reasons: Vec::new(),
        notes: vec!["a note".into()],
        watched: true,
    }
}

/// Some that are accepted, as files are today.
pub fn seeds() -> [Vec<u8>; 4] {
    let done = done();
    let words = ["--keep-going", "./program"].map(OsString::from);
    let [exe, script, cwd] = ["/program", "", "/"].map(OsString::from);
    let program = Program { argv: vec![exe.clone()], exe, script, cwd, env: vec!["A=b".into()] };
    let description = Description::new(&words, (program, serde_json::Value::Null));
    let description = serde_json::to_vec(&description).unwrap_or_default();
    let clock = serde_json::to_vec(&Clock { seconds: 1.5, newest: 0.5 }).unwrap_or_default();
    [
        [vec![0], description].concat(),
        [vec![1], clock].concat(),
        [vec![2], codec::encode(&done.lot)].concat(),
        [vec![3], codec::encode(&done)].concat(),
    ]
}
