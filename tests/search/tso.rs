//! Store buffers, against brute force: small random programs of loads, stores, atomic updates and fences, run on a machine that has sequential consistency and on
//! x86-TSO (Sewell, Sarkar, Owens, Nardelli, Myreen, CACM 2010), in all ways. Where no sequential execution has a load that may overtake a store,
//! both machines come to the same; and the moments at which `--memory tso` lets stores come out of their buffers give all that the machine does.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use vsrun::race::loads_overtake;
use vsrun::trace::Trace;
use vsrun_model::arena::Step;
use vsrun_model::memory::{ATOMIC, FENCED};
use vsrun_model::{Act, Kind, Op};

/// Programs.
const CASES: u32 = if cfg!(debug_assertions) { 300 } else { 3000 };
/// Words of memory, of two halves each.
const WORDS: usize = 2;

/// The halves of a word that an access uses, a bit for each.
type Halves = u8;

#[derive(Clone, Copy, Debug)]
enum Ins {
    Load(usize, Halves),
    Store(usize, Halves, i8),
    /// Adds to what is there, locked.
    Update(usize, Halves, i8),
    Fence,
}

type Program = Vec<Vec<Ins>>;

/// A store that is not visible yet.
type Late = (usize, Halves, i8);

#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Thread {
    at: usize,
    buffer: Vec<Late>,
    loaded: Vec<[i8; 2]>,
    fenced: bool,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    memory: [[i8; 2]; WORDS],
    threads: Vec<Thread>,
}

type Outcomes = BTreeSet<State>;

fn halves(of: Halves) -> impl Iterator<Item = usize> {
    (0..2).filter(move |n| of >> n & 1 == 1)
}

impl State {
    fn new(program: &Program) -> State {
        State { memory: [[0; 2]; WORDS], threads: vec![Thread::default(); program.len()] }
    }

    fn write(&mut self, (word, of, value): Late) {
        halves(of).for_each(|n| self.memory[word][n] = value);
    }

    /// The oldest store of a buffer becomes visible.
    fn drain(&mut self, t: usize) {
        let oldest = self.threads[t].buffer.remove(0);
        self.write(oldest);
    }

    /// A thread executes an instruction; with buffers, only if it can. What it does then, as an operation.
    fn execute(&mut self, t: usize, ins: Ins, buffers: bool) -> Option<Op> {
        let empty = self.threads[t].buffer.is_empty();
        let op = |kind, word: usize, of: Halves| Op {
            mask: halves(of).map(|n| 0xf << (4 * n)).sum(),
            ..Op::on(kind, word as u32).arg(self.threads[t].at as i64)
        };
        let done = match ins {
            Ins::Load(word, of) => {
                let done = op(Kind::MEM_READ, word, of);
                let mut found = self.memory[word];
                if let Some(late) = self.threads[t].buffer.iter().rev().find(|late| late.0 == word && late.1 & of != 0)
                {
                    if late.1 & of != of {
                        return None;
                    }
                    found = [late.2; 2];
                }
                let loaded = [0, 1].map(|n| if of >> n & 1 == 1 { found[n] } else { 0 });
                self.threads[t].loaded.push(loaded);
                done
            }
            Ins::Store(word, of, value) => {
                let done = op(Kind::MEM_WRITE, word, of);
                match buffers {
                    true => self.threads[t].buffer.push((word, of, value)),
                    false => self.write((word, of, value)),
                }
                done
            }
            Ins::Update(..) | Ins::Fence if !empty => return None,
            Ins::Update(word, of, value) => {
                let done = op(Kind::MEM_WRITE, word, of).with(ATOMIC);
                halves(of).for_each(|n| self.memory[word][n] += value);
                self.threads[t].loaded.push(self.memory[word]);
                done
            }
            Ins::Fence => Op::new(Kind::NONE),
        };
        self.threads[t].at += 1;
        Some(done)
    }

    fn is_over(&self, program: &Program) -> bool {
        self.threads.iter().zip(program).all(|(thread, code)| thread.at == code.len() && thread.buffer.is_empty())
    }
}

/// All final states of the machine with buffers.
fn buffered(program: &Program) -> Outcomes {
    let (mut seen, mut open, mut found) = (BTreeSet::new(), vec![State::new(program)], Outcomes::new());
    while let Some(state) = open.pop() {
        if !seen.insert(state.clone()) {
            continue;
        }
        if state.is_over(program) {
            found.insert(state.clone());
        }
        for (t, code) in program.iter().enumerate() {
            if !state.threads[t].buffer.is_empty() {
                let mut next = state.clone();
                next.drain(t);
                open.push(next);
            }
            if let Some(ins) = code.get(state.threads[t].at) {
                let mut next = state.clone();
                open.extend(next.execute(t, *ins, true).map(|_| next));
            }
        }
    }
    found
}

/// All final states where stores come out of their buffers at the moments that `--memory tso` explores (`shim/src/gate/late.rs`): right behind a load or a
/// store, before a fence, at the end.
fn scheduled(program: &Program) -> Outcomes {
    let start = (State::new(program), vec![0usize; program.len()]);
    let (mut seen, mut open, mut found) = (BTreeSet::new(), vec![start], Outcomes::new());
    while let Some((state, owed)) = open.pop() {
        if !seen.insert((state.clone(), owed.clone())) {
            continue;
        }
        if state.is_over(program) {
            found.insert(state.clone());
        }
        for (t, code) in program.iter().enumerate() {
            let buffer = &state.threads[t].buffer;
            let mut go = |next: State, owes: usize| {
                let mut owed = owed.clone();
                owed[t] = owes;
                open.push((next, owed));
            };
            let mut next = state.clone();
            if owed[t] > 0 {
                next.drain(t);
                go(next, owed[t] - 1);
                continue;
            }
            match code.get(state.threads[t].at) {
                Some(&Ins::Load(word, of)) => {
                    let known = buffer.iter().rposition(|late| late.0 == word && late.1 & of != 0);
                    match known {
                        Some(at) if buffer[at].1 & of != of => go(next, at + 1),
                        Some(_) => {
                            next.execute(t, Ins::Load(word, of), true);
                            go(next, 0);
                        }
                        None => {
                            next.execute(t, Ins::Load(word, of), true);
                            (0..=buffer.len()).for_each(|count| go(next.clone(), count));
                        }
                    }
                }
                Some(&ins @ Ins::Store(..)) => {
                    next.execute(t, ins, true);
                    go(next.clone(), 0);
                    go(next, buffer.len() + 1);
                }
                Some(_) | None if !buffer.is_empty() => go(next, buffer.len()),
                Some(&ins) => {
                    next.execute(t, ins, true);
                    go(next, 0);
                }
                None => {}
            }
        }
    }
    found
}

/// All final states without buffers, and whether some execution has a load that may overtake a store.
fn sequential(program: &Program) -> (Outcomes, bool) {
    let (mut found, mut overtakes) = (Outcomes::new(), false);
    walk(program, &State::new(program), &mut Trace::default(), &mut |state, trace| {
        overtakes |= !loads_overtake(trace).is_empty();
        let mut state = state.clone();
        state.threads.iter_mut().for_each(|thread| thread.fenced = false);
        found.insert(state);
    });
    (found, overtakes)
}

fn walk(program: &Program, state: &State, trace: &mut Trace, over: &mut impl FnMut(&State, &Trace)) {
    if state.is_over(program) {
        return over(state, trace);
    }
    for (t, code) in program.iter().enumerate() {
        let Some(&ins) = code.get(state.threads[t].at) else { continue };
        let mut next = state.clone();
        let Some(mut op) = next.execute(t, ins, false) else { continue };
        let fence = op.kind == Kind::NONE;
        if next.threads[t].fenced && !fence {
            op = op.with(FENCED);
        }
        next.threads[t].fenced = fence;
        let tid = t as u32;
        if !fence {
            trace.steps.push(Step { act: Act { tid, op, ..Act::NOTHING }, choices: 1, ..Step::default() });
        }
        walk(program, &next, trace, over);
        if !fence {
            trace.steps.pop();
        }
    }
}

fn programs() -> impl Strategy<Value = Program> {
    let place = || (0..WORDS, prop_oneof![8 => Just(3u8), 1 => Just(1), 1 => Just(2)]);
    let ins = prop_oneof![
        5 => place().prop_map(|(word, of)| Ins::Load(word, of)),
        5 => (place(), 1i8..4).prop_map(|((word, of), value)| Ins::Store(word, of, value)),
        1 => (place(), 1i8..4).prop_map(|((word, of), value)| Ins::Update(word, of, value)),
        1 => Just(Ins::Fence),
    ];
    let thread = |most| proptest::collection::vec(ins.clone(), 2..=most);
    prop_oneof![
        2 => (thread(5), thread(5)).prop_map(|(a, b)| vec![a, b]),
        1 => (thread(3), thread(3), thread(3)).prop_map(|(a, b, c)| vec![a, b, c]),
    ]
}

/// No load overtakes a store in any sequential execution: then store buffers change nothing. And they do in most of the others.
#[test]
fn without_triangular_races_buffers_cannot_be_told() {
    let cases = std::env::var("VSRUN_ORACLE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(CASES);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let counts = std::cell::RefCell::new([0u32; 3]);
    let result = TestRunner::new(config).run(&programs(), |program| {
        let (sequential, overtakes) = sequential(&program);
        let same = sequential == buffered(&program);
        let mut counts = counts.borrow_mut();
        counts[0] += u32::from(!overtakes);
        counts[1] += u32::from(overtakes && !same);
        counts[2] += u32::from(overtakes && same);
        match overtakes || same {
            true => Ok(()),
            false => Err(TestCaseError::fail("buffers show, and no load overtakes a store")),
        }
    });
    if let Err(e) = result {
        panic!("{e}");
    }
    let [none, shows, benign] = counts.into_inner();
    println!("no triangular race: {none}; one that shows: {shows}; one that does not: {benign}");
    assert!(none > cases / 5 && shows > cases / 20, "{none} without, {shows} with one that shows");
}

/// The moments at which stores come out of buffers under `--memory tso` are enough.
#[test]
fn the_moments_that_are_explored_are_enough() {
    let cases = std::env::var("VSRUN_ORACLE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(CASES);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let result = TestRunner::new(config).run(&programs(), |program| match scheduled(&program) == buffered(&program) {
        true => Ok(()),
        false => Err(TestCaseError::fail("another set of final states")),
    });
    if let Err(e) = result {
        panic!("{e}");
    }
}

fn outcome_of(program: Program) -> (bool, bool) {
    let (sequential, overtakes) = sequential(&program);
    (overtakes, sequential == buffered(&program))
}

/// Dekker's algorithm, with and without a fence; a message, of which x86 keeps the order.
#[test]
fn what_is_known_of_x86() {
    let dekker = |fence: Option<Ins>| {
        let side = |mine, other| {
            [Some(Ins::Store(mine, 3, 1)), fence, Some(Ins::Load(other, 3))].into_iter().flatten().collect()
        };
        vec![side(0, 1), side(1, 0)]
    };
    assert_eq!(outcome_of(dekker(None)), (true, false));
    assert_eq!(outcome_of(dekker(Some(Ins::Fence))), (false, true));
    // Of one side alone it is not enough.
    let mut half = dekker(Some(Ins::Fence));
    half[1].remove(1);
    assert_eq!(outcome_of(half), (true, false));
    let message = vec![vec![Ins::Store(0, 3, 1), Ins::Store(1, 3, 1)], vec![Ins::Load(1, 3), Ins::Load(0, 3)]];
    assert_eq!(outcome_of(message), (false, true));
    // What is found in the own buffer is no matter, but the store before it is to a load behind it.
    let own = |rest: Vec<Ins>| {
        let mut first = vec![Ins::Store(0, 3, 1), Ins::Load(0, 3)];
        first.extend(rest);
        vec![first, vec![Ins::Store(0, 3, 2), Ins::Store(1, 3, 1)]]
    };
    assert_eq!(outcome_of(own(vec![])), (false, true));
    assert!(outcome_of(own(vec![Ins::Load(1, 3)])).0);
}
