//! A path and its states for tests: two workers that take two locks in different order.

use crate::explore::{At, EndOfPath, Path, State, Step};
use crate::finding::{LineView, PlaceView};
use crate::report::timeline::{Edge, Graph, Lane, Node};

/// In `accounts.c`, at that line.
pub fn place(line: u32) -> PlaceView {
    let at = LineView {
        function: "worker".into(),
        file: "/src/accounts.c".into(),
        name: "accounts.c".into(),
        line,
        text: Some(format!("line {line};")),
    };
    PlaceView { lines: vec![at], ..format!("worker+{line:#x} (prog)").into() }
}

pub fn path() -> Path {
    let step = |n: usize, thread: u32, text: &str| Step {
        n,
        thread: format!("0.{thread}"),
        name: format!("worker#{thread} (0.{thread})"),
        text: text.into(),
        kind: "mutex_lock",
        note: String::new(),
        value: 0,
        alternatives: 1,
        place: Some(place(10 + n as u32)),
        matters: true,
    };
    let names = [("0", "main (0)"), ("0.1", "worker#1 (0.1)"), ("0.2", "worker#2 (0.2)")];
    Path {
        program: "./accounts 2".into(),
        steps: vec![
            step(1, 1, "pthread_mutex_lock(lock_a)"),
            step(2, 2, "pthread_mutex_lock(lock_b)"),
            step(3, 2, "pthread_mutex_lock(lock_a)"),
        ],
        threads: names.iter().map(|(id, name)| (id.to_string(), name.to_string())).collect(),
        processes: vec![(1001, "accounts".into())],
        end: EndOfPath { name: "deadlock", is_bug: true, line: "two wait for each other".into() },
        left: None,
        notes: Vec::new(),
    }
}

/// Worker 1 waits for lock_b, which worker 2 holds and which could take lock_a next.
pub fn state(at: usize) -> State {
    let lane = |id: &str, name: &str, text: &str| Lane {
        id: id.into(),
        name: name.into(),
        process: 0,
        status: "waiting",
        at: text.into(),
        frames: vec![place(20)],
        waits_for: Vec::new(),
        holds: Vec::new(),
    };
    let mut lanes = vec![
        lane("0", "main (0)", "pthread_join(0.1)"),
        lane("0.1", "worker#1 (0.1)", "pthread_mutex_lock(lock_b)"),
        lane("0.2", "worker#2 (0.2)", "pthread_mutex_lock(lock_a)"),
    ];
    lanes[1].waits_for = vec!["lock_b, held by worker#2 (0.2)".into()];
    (lanes[1].holds, lanes[2].holds) = (vec!["lock_a".into()], vec!["lock_b".into()]);
    lanes[2].status = "could go on";
    let ways = |n: usize| if n == 2 { vec![String::new()] } else { Vec::new() };
    let node = |label: &str, lane| Node { label: label.into(), lane, in_circle: false };
    let edge = |from, to, label| Edge { from, to, label };
    let graph = Graph {
        nodes: vec![node("worker#1 (0.1)", Some(1)), node("lock_b", None), node("worker#2 (0.2)", Some(2))],
        edges: vec![edge(0, 1, "waits for"), edge(1, 2, "held by")],
    };
    let threads = lanes.into_iter().enumerate().map(|(n, lane)| At::of(lane, Some(place(20)), ways(n))).collect();
    State { at, threads, graph, printed: "hello\n".into() }
}
