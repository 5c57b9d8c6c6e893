//! What the end of an execution means, and what is to be seen there when it is run again under the tracer.

use vsrun_model::{dependent, End, World};

use super::Failure;
use crate::report::identity::{fingerprint, text_fingerprint};
use crate::report::waits::headline;
use crate::report::{self, BugKind, Details};
use crate::runtime::inspect::{self, with_names, Inspector, Seen};
use crate::runtime::worker::{Ending, Outcome, Worker};
use crate::schedule::Schedule;
use crate::syscalls;
use crate::trace::Trace;

const IDLE: &str = "an execution ended with processes that wait for peers that do not come, which is no deadlock; \
                    --stop-signal TERM explores their end";

/// What an execution showed.
pub(super) enum Judged {
    /// Nothing.
    Clean,
    /// Nothing, but the reader should know this.
    Note(&'static str),
    /// A bug.
    Bug {
        /// Its kind.
        kind: BugKind,
        /// Equal for equal bugs.
        identity: u64,
    },
    /// Something that vsrun does not support: the exploration is over.
    Unsupported {
        /// The line about it.
        summary: String,
        /// What was seen.
        details: Details,
    },
}

/// Judges execution number `number`, which the worker has just run.
pub(super) fn judge(
    worker: &mut Worker,
    inspector: &mut Inspector,
    (number, schedule): (u64, &Schedule),
    outcome: &Outcome,
) -> Result<Judged, Failure> {
    let world = &worker.arena.world;
    match &outcome.ending {
        Ending::Modelled if schedule.unsure && outcome.trace.end == End::MISMATCH => Ok(Judged::Clean),
        Ending::Modelled => modelled(world, number, outcome),
        Ending::Crash { signal, .. } => {
            Ok(Judged::Bug { kind: BugKind::Crash, identity: place(world, outcome, BugKind::Crash, *signal) })
        }
        Ending::Divergence => {
            Ok(Judged::Bug { kind: BugKind::Divergence, identity: place(world, outcome, BugKind::Divergence, 0) })
        }
        Ending::Sits { call, .. } if waits_outside(world, call[0]) => {
            Ok(Judged::Note("an execution ended with a process that waits for input from outside"))
        }
        Ending::Sits { thread, call } => {
            let summary = sits(world, *thread, call);
            let view = examine(worker, inspector, &replayable(schedule, &outcome.trace))?;
            let mut details = view.seen.details;
            details.steps = view.steps;
            Ok(Judged::Unsupported { summary, details })
        }
        Ending::Died(status) => {
            let mut said = Vec::new();
            let _ = worker.output.copy_to(&mut said);
            let said = String::from_utf8_lossy(&said).lines().last().unwrap_or("").to_string();
            Err(Failure::own(format!("vsrun bug: a process ended behind the model's back (status {status}) {said}")))
        }
        Ending::Interrupted => Ok(Judged::Clean),
    }
}

fn modelled(world: &World, number: u64, outcome: &Outcome) -> Result<Judged, Failure> {
    match outcome.trace.end {
        End::FINISHED | End::SLEEP_BLOCKED | End::DEPTH => return Ok(Judged::Clean),
        End::WAITS_OUTSIDE => return Ok(Judged::Note(IDLE)),
        End::MISMATCH | End::BUG => return Err(own_fault(world, number, outcome)),
        _ => {}
    }
    match with_names(world, &Default::default(), |names| headline(world, names)) {
        Some((BugKind::Error, summary)) => Ok(Judged::Unsupported { summary, details: Details::default() }),
        Some((kind, _)) => Ok(Judged::Bug { kind, identity: fingerprint(world) }),
        None => Err(own_fault(world, number, outcome)),
    }
}

fn own_fault(world: &World, number: u64, outcome: &Outcome) -> Failure {
    Failure::own(match outcome.trace.end {
        End::MISMATCH => format!(
            "vsrun bug: execution {number} did not follow its schedule at step {}: {}; the program may depend on \
             something that vsrun does not control",
            world.end_code + 1,
            mismatch(&outcome.trace)
        ),
        _ => format!("vsrun bug: {}", String::from_utf8_lossy(world.message())),
    })
}

/// What tells one crash or divergence from another before it has been looked at: signal, thread, last operation.
fn place(world: &World, outcome: &Outcome, kind: BugKind, signal: i32) -> u64 {
    let uid = world.threads.get(world.current).map_or(String::new(), |t| t.uid.to_string());
    let last = outcome.trace.steps.last();
    let op = last.map_or("start", |s| s.act.op.kind.name());
    text_fingerprint(kind, &[&signal.to_string(), &uid, op])
}

/// An execution went on after threads had come to wait for each other in a circle, and ended with something else or with
/// another circle as well: the schedules that end where those close that its end does not show.
pub(super) fn other_circles(world: &World, outcome: &Outcome) -> Vec<Schedule> {
    let steps = &outcome.trace.steps;
    let first = usize::try_from(world.cycle_at).unwrap_or(0);
    if world.n_cycle == 0 || first == 0 || first > steps.len() || outcome.trace.unrecorded > 0 {
        return Vec::new();
    }
    let schedule = |prefix, unsure| Schedule { prefix, unsure, ..Schedule::default() };
    let mut all = Vec::new();
    if outcome.trace.end != End::CYCLE {
        all.push(schedule(outcome.trace.choices(first), false));
    }
    // Without the step that closed the first circle, and what depends on it, a later one is the first.
    let later = world.later_cycles.iter().filter_map(|&at| usize::try_from(at).ok()).filter(|&at| at > first);
    for at in later.filter(|&at| at <= steps.len()) {
        let mut dropped = vec![first - 1];
        for n in first..at {
            if dropped.iter().any(|&d| dependent(&steps[d].act, &steps[n].act, false)) {
                dropped.push(n);
            }
        }
        let kept = outcome.trace.choices(at).into_iter().enumerate().filter(|(n, _)| !dropped.contains(n));
        all.push(schedule(kept.map(|(_, choice)| choice).collect(), true));
    }
    all
}

/// A schedule that leads through all recorded steps of a trace; one whose steps were too many to record is its own.
pub(super) fn replayable(schedule: &Schedule, trace: &Trace) -> Schedule {
    if trace.unrecorded > 0 {
        return Schedule { record: false, blind: false, ..schedule.clone() };
    }
    Schedule { prefix: trace.choices(trace.steps.len()), ..Schedule::default() }
}

/// What a run under the tracer showed.
pub struct View {
    /// How it ended.
    pub ending: Ending,
    /// What was done.
    pub trace: Trace,
    /// What was seen.
    pub seen: Seen,
    /// The transitions for people.
    pub steps: Vec<report::StepView>,
    /// The line about it.
    pub summary: String,
    /// Its kind, if it is a bug.
    pub kind: Option<BugKind>,
}

/// Runs a schedule under the tracer and looks at the world where it ends.
pub fn examine(worker: &mut Worker, inspector: &mut Inspector, schedule: &Schedule) -> Result<View, Failure> {
    let first = worker.start_traced(schedule)?;
    let (ending, stopped) = worker.run_to_end(first)?;
    let trace = Trace::read(&worker.arena);
    let world = &worker.arena.world;
    let mut seen = inspector.look(world, stopped.as_ref());
    if let (Ending::Crash { signal, .. }, Some(stopped)) = (&ending, &stopped) {
        seen.details.signal = Some(inspect::signal_view(world, stopped, *signal));
    }
    let steps = inspect::steps(world, &trace, &seen);
    let (kind, summary) = describe(world, &ending, &seen);
    worker.finish_traced(&ending)?;
    Ok(View { ending, trace, seen, steps, summary, kind })
}

/// The line about an end.
fn describe(world: &World, ending: &Ending, seen: &Seen) -> (Option<BugKind>, String) {
    let thread = with_names(world, &seen.objects, |names| (names.thread)(world.current));
    let at = seen.at.as_ref().map_or(String::new(), |at| format!(" at {at}"));
    match ending {
        Ending::Modelled => match with_names(world, &seen.objects, |names| headline(world, names)) {
            Some((kind, line)) => (Some(kind), line),
            None => (None, format!("the execution ended without a bug ({})", end_name(world.end))),
        },
        Ending::Crash { signal, .. } => {
            let name =
                crate::runtime::tracee::Signal::from_number(*signal).map_or("a signal".into(), |s| s.to_string());
            (Some(BugKind::Crash), format!("{name} in thread {thread}{at}"))
        }
        Ending::Divergence => {
            (Some(BugKind::Divergence), format!("thread {thread} runs without ever reaching a visible operation{at}"))
        }
        Ending::Sits { thread, call } => (None, sits(world, *thread, call)),
        Ending::Died(status) => (None, format!("a process ended behind the model's back (status {status})")),
        Ending::Interrupted => (None, "interrupted".into()),
    }
}

fn end_name(end: End) -> &'static str {
    match end {
        End::FINISHED => "everything finished",
        End::DEPTH => "depth bound",
        End::WAITS_OUTSIDE => "what is left waits for peers that do not come",
        End::SLEEP_BLOCKED => "everything enabled is asleep",
        End::MISMATCH => "the schedule could not be followed",
        _ => "no end",
    }
}

/// The process that has the turn only waits for input from outside, and everything else is over.
fn waits_outside(world: &World, call: u64) -> bool {
    world.live.len == 1 && call > 0 && syscalls::waits_for_input(call as i64 - 1)
}

fn sits(world: &World, thread: u32, call: &[u64; 7]) -> String {
    let uid = world.threads.get(thread).map_or(String::new(), |t| t.uid.to_string());
    if call[0] == 0 {
        return format!("thread {uid} neither runs nor waits in a system call");
    }
    let name = syscalls::name(call[0] as i64 - 1);
    format!(
        "thread {uid} sits in {name}({:#x}, {:#x}, {:#x}), which vsrun does not model: what it waits for may be another \
         thread of the program, which cannot run meanwhile",
        call[1], call[2], call[3]
    )
}

/// What was expected and what came, where a schedule could not be followed.
fn mismatch(trace: &Trace) -> String {
    let pending: Vec<_> = trace
        .last
        .iter()
        .map(|s| format!("{} at {}{}", s.act.uid, s.act.op.kind.name(), if s.choices == 0 { " (blocked)" } else { "" }))
        .collect();
    if pending.is_empty() {
        "no thread was left".to_string()
    } else {
        format!("threads were: {}", pending.join(", "))
    }
}
