//! Exhaustive exploration by recursive re-execution: every enabled alternative of every state, no search involved.

use vsrun::trace::Trace;
use vsrun_model::arena::{Choice, Seen};

use super::digest::Outcomes;
use super::{Machine, Program};
use vsrun::schedule::Schedule;

/// What there is to find.
#[derive(Debug, Default)]
pub struct Everything {
    pub outcomes: Outcomes,
    pub leaves: u64,
    pub edges: u64,
}

/// All executions of a program; `None` if there are more than `limit`.
pub fn explore(machine: &mut Machine, program: &Program, limit: u64) -> Option<Everything> {
    let mut all = Everything::default();
    below(machine, program, &[], limit, &mut all).then_some(all)
}

/// The choices that a state offers.
pub fn offers(seen: &[Seen]) -> impl Iterator<Item = Choice> + '_ {
    seen.iter().flat_map(|s| (0..s.choices).map(|v| Choice::new(s.act.uid, v, s.act.op.kind)))
}

fn below(machine: &mut Machine, program: &Program, prefix: &[Choice], limit: u64, all: &mut Everything) -> bool {
    let schedule = Schedule { prefix: prefix.to_vec(), record: true, ..Schedule::default() };
    let (trace, outcome) = machine.run(program, &schedule, u64::MAX);
    if all.leaves >= limit {
        return false;
    }
    all.leaves += 1;
    all.outcomes.insert(outcome.text);
    let from = prefix.len();
    all.edges += (trace.steps.len() - from) as u64;
    let taken = trace.choices(trace.steps.len());
    for n in from..trace.steps.len() {
        if !siblings(machine, program, &trace, &taken, n, limit, all) {
            return false;
        }
    }
    true
}

/// Everything that begins with the first `n` steps of a trace and goes on otherwise.
fn siblings(
    machine: &mut Machine,
    program: &Program,
    trace: &Trace,
    taken: &[Choice],
    n: usize,
    limit: u64,
    all: &mut Everything,
) -> bool {
    offers(&trace.seen[n]).filter(|&c| c != taken[n]).all(|choice| {
        let mut prefix = taken[..n].to_vec();
        prefix.push(choice);
        all.edges += 1;
        below(machine, program, &prefix, limit, all)
    })
}

/// The same where a circle of locks ends no execution that can go on, without the edges.
#[allow(dead_code)]
pub fn explore_past_circles(machine: &mut Machine, program: &Program, limit: u64) -> Option<Everything> {
    let leaves = leaves(machine, program, limit)?;
    let mut all = Everything { leaves: leaves.len() as u64, ..Everything::default() };
    for prefix in leaves {
        let schedule = Schedule { prefix, past_cycles: true, ..Schedule::default() };
        all.outcomes.insert(machine.run(program, &schedule, u64::MAX).1.text);
    }
    Some(all)
}

/// The choices of every execution, circles of locks not ending any that could go on; `None` if there are more than
/// `limit`.
#[allow(dead_code)]
pub fn leaves(machine: &mut Machine, program: &Program, limit: u64) -> Option<Vec<Vec<Choice>>> {
    let mut leaves = Vec::new();
    let mut todo: Vec<Vec<Choice>> = vec![Vec::new()];
    while let Some(prefix) = todo.pop() {
        if leaves.len() as u64 >= limit {
            return None;
        }
        let from = prefix.len();
        let schedule = Schedule { prefix, record: true, past_cycles: true, ..Schedule::default() };
        let (trace, _) = machine.run(program, &schedule, u64::MAX);
        let taken = trace.choices(trace.steps.len());
        for n in from..taken.len() {
            for choice in offers(&trace.seen[n]).filter(|&c| c != taken[n]) {
                todo.push(taken[..n].iter().copied().chain([choice]).collect());
            }
        }
        leaves.push(taken);
    }
    Some(leaves)
}
