//! Searches that take objects to be unshared until two threads use them, with new starts, as `vsrun::sharing` does it.

use std::collections::BTreeSet;

use vsrun::search::Search;
use vsrun_model::End;

use super::digest::Outcomes;
use super::{Machine, Program};

/// What a search found in its last start.
#[derive(Debug, Default)]
pub struct Reduced {
    pub outcomes: Outcomes,
    pub executions: u64,
    pub transitions: u64,
    /// How often it started over.
    pub restarts: u32,
    /// Operations that passed without a transition.
    pub passed: u64,
    /// Outcomes of earlier starts.
    pub before: Outcomes,
    pub exhaustive: bool,
}

/// Explores until a start finds nothing new to be shared. `None`: more than `limit` executions. Schedules that were tried
/// although the recorded states could not vouch for them, and do not exist, are no executions.
pub fn explore(
    machine: &mut Machine,
    program: &Program,
    mut make: impl FnMut() -> Box<dyn Search>,
    limit: u64,
) -> Option<Reduced> {
    let mut known = BTreeSet::new();
    let mut found = Reduced::default();
    machine.unshared = true;
    let done = 'starts: loop {
        let mut search = make();
        found.before.append(&mut found.outcomes);
        (found.executions, found.passed) = (0, 0);
        let mut schedules = 0;
        write_known(machine, &known);
        while let Some(schedule) = search.next() {
            schedules += 1;
            if found.executions >= limit || schedules > 100 * limit {
                break 'starts false;
            }
            let (trace, outcome) = machine.run(program, &schedule, u64::MAX);
            // One that the recorded states could not vouch for may turn out not to exist.
            let matches = trace.end != End::MISMATCH;
            assert!(matches || schedule.unsure, "a schedule that does not match: {schedule:?}");
            found.executions += u64::from(matches);
            if matches && trace.end != End::SLEEP_BLOCKED {
                found.outcomes.insert(outcome.text);
            }
            found.passed += machine.arena().world.passed;
            if learn(machine, trace.end, &mut known) {
                found.restarts += 1;
                continue 'starts;
            }
            search.done(schedule.ticket, &trace);
        }
        (found.transitions, found.exhaustive) = (search.transitions(), search.exhaustive());
        break true;
    };
    machine.unshared = false;
    write_known(machine, &BTreeSet::new());
    done.then_some(found)
}

fn write_known(machine: &mut Machine, known: &BTreeSet<u64>) {
    let table = &mut machine.arena().known_shared;
    table.clear();
    for &name in known {
        table.push(name).expect("room");
    }
}

/// Takes what the execution noted; one that ended early ended the others where they stood.
fn learn(machine: &mut Machine, end: End, known: &mut BTreeSet<u64>) -> bool {
    let arena = machine.arena();
    let early = !matches!(end, End::FINISHED | End::DEADLOCK | End::SLEEP_BLOCKED | End::DEPTH);
    let last = arena.passed_last().filter(|_| early);
    let mut new = false;
    for name in arena.noted.as_slice().iter().map(|n| n.name).chain(last) {
        new |= known.insert(name);
    }
    if !new {
        for name in vsrun::search::answered(arena) {
            new |= known.insert(name);
        }
    }
    new
}
