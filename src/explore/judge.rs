//! What the end of an execution means for the exploration.

use std::borrow::Cow;

use vsrun_model::{dependent, End};

use super::differs::LeftOut;
use super::executions::replayable;
use super::failure::Failure;
use crate::finding::{Bug, BugKind, Ending};
use crate::incomplete::Reason;
use crate::runtime::{Inspector, Outcome, Sign, Worker};
use crate::schedule::Schedule;
use crate::search::number_of;
use crate::trace::Trace;

const IDLE: &str = "an execution ended with processes that wait for peers that do not come, which is no deadlock; \
                    --stop-signal TERM explores their end";
const UNFOLLOWED: &str = "an execution did not follow its schedule and counts for nothing: what went to the kernel \
                          (--uncontrolled) was not the same each time";
const EXITING: &str =
    "an execution did not follow its schedule and counts for nothing: exit writes out a stream that another thread \
                       holds without its lock";
const EXITING_TWICE: &str =
    "an execution did not follow its schedule and counts for nothing: two threads are in exit, and which of them runs \
                             which handler is not told";
const LIBC_THREADS: &str =
    "an execution did not follow its schedule and counts for nothing: how far threads of the C library \
                            have come (POSIX aio, getaddrinfo_a) is told by memory";
const UNWATCHED: &str =
    "an execution did not follow its schedule and counts for nothing; what some threads do to memory is not seen (the notes \
                         name it), which is the likely cause";
const INPUT: &str = "an execution ended with a process that waits for input from outside";

/// Identity of the bug that the program overwrites vsrun's memory, before anybody has seen where.
pub(super) const OVERWRITTEN: u64 = 0x6f76_6572_7772_6974;

/// What an execution showed.
pub(super) enum Judged {
    /// Nothing.
    Clean,
    /// Nothing, but the reader should know this.
    Note(Cow<'static, str>),
    /// A bug.
    Bug {
        /// Its kind.
        kind: BugKind,
        /// Equal for equal bugs.
        identity: u64,
    },
    /// Something that vsrun does not support: the exploration is over.
    Unsupported(Box<Bug>),
    /// vsrun failed: the exploration is over, and the execution counts for nothing.
    Failed(Failure),
    /// Somebody outside interfered, or executions are not the same each time: the exploration is over, and the execution counts for nothing.
    Disturbed(Box<Bug>),
}

/// Judges execution number `number`, which the worker has just run.
pub(super) fn judge(
    worker: &mut Worker,
    inspector: &mut Inspector,
    (number, schedule): (u64, &Schedule),
    outcome: &Outcome,
) -> Result<Judged, Failure> {
    if log::log_enabled!(log::Level::Trace) {
        told(number, schedule, &outcome.trace);
    }
    if log::log_enabled!(log::Level::Debug) && !matches!(outcome.trace.end, End::SLEEP_BLOCKED | End::MISMATCH) {
        log::debug!("execution {number}, trace {:016x}", number_of(&outcome.trace));
    }
    let unsure = (schedule.unsure || worker.is_uncontrolled()) && matches!(outcome.sign, Sign::Unfollowed(_));
    if outcome.is_untold() && !unsure && (outcome.sign == Sign::Overwritten || overwrites(worker, inspector, schedule))
    {
        return Ok(Judged::Bug { kind: BugKind::Crash, identity: OVERWRITTEN });
    }
    match &outcome.sign {
        // Judged already.
        Sign::Overwritten | Sign::Clean => Ok(Judged::Clean),
        Sign::Idle => Ok(Judged::Note(IDLE.into())),
        Sign::Input => Ok(Judged::Note(INPUT.into())),
        Sign::NoRoom(line) => Ok(Judged::Note(format!("an execution was cut: {line}").into())),
        Sign::Bug { kind, identity } => Ok(Judged::Bug { kind: *kind, identity: *identity }),
        Sign::Unsupported(line) => {
            let transitions = outcome.trace.steps.len() as u64;
            Ok(unsupported(Bug::error(line, number, transitions)))
        }
        Sign::Sits => {
            let first = worker.finding(outcome);
            let again = worker.examine(inspector, &replayable(schedule, &outcome.trace), None)?;
            if again.ending.is_environments() {
                let transitions = again.transitions();
                return Ok(Judged::Disturbed(Box::new(Bug::environment(&again.line(), number, transitions))));
            }
            let sits = matches!(again.ending, Ending::Sits { .. });
            Ok(unsupported(Bug::new(if sits { again } else { first }, number)))
        }
        Sign::Died(status) => {
            let mut said = Vec::new();
            let _ = worker.output.copy_to(&mut said);
            let said = String::from_utf8_lossy(&said).lines().last().unwrap_or("").to_string();
            failed(format!("a process ended behind the model's back (status {status}) {said}"))
        }
        Sign::Outside(line) => {
            let transitions = outcome.trace.steps.len() as u64 + outcome.trace.unrecorded;
            Ok(Judged::Disturbed(Box::new(Bug::environment(line, number, transitions))))
        }
        Sign::Unfollowed(_) if schedule.unsure => Ok(Judged::Clean),
        Sign::Unfollowed(_) if worker.is_uncontrolled() => Ok(Judged::Note(UNFOLLOWED.into())),
        Sign::Unfollowed(_) if outcome.trace.saw.contains(&Reason::ExitStreams) => Ok(Judged::Note(EXITING.into())),
        Sign::Unfollowed(_) if outcome.trace.saw.contains(&Reason::ExitsTwice) => {
            Ok(Judged::Note(EXITING_TWICE.into()))
        }
        Sign::Unfollowed(_) if outcome.trace.saw.contains(&Reason::LibcThreads) => {
            Ok(Judged::Note(LIBC_THREADS.into()))
        }
        Sign::Unfollowed(_) if worker.unseen_memory().is_some() => Ok(Judged::Note(UNWATCHED.into())),
        Sign::Unfollowed(step) => {
            let line = format!(
                "execution {number} did not follow its schedule at step {}{}: {}",
                step + 1,
                wanted(schedule, u64::from(*step)),
                mismatch(&outcome.trace)
            );
            let transitions = outcome.trace.steps.len() as u64;
            match LeftOut::by(worker).cause() {
                Some(cause) => Ok(strayed(&format!("{line}; {cause}"), number, transitions)),
                None => failed(format!("{line}; the program may depend on something that vsrun does not control")),
            }
        }
        Sign::Fault(message) => failed(message.clone()),
    }
}

/// Whether it is the program that is to blame for what vsrun cannot explain: under guard it faults where it writes to vsrun's memory.
fn overwrites(worker: &mut Worker, inspector: &mut Inspector, schedule: &Schedule) -> bool {
    worker.examine(inspector, schedule, None).is_ok_and(|again| again.overwrites_vsrun())
}

/// Who was to make that step, counted from 0.
fn wanted(schedule: &Schedule, step: u64) -> String {
    let choice = usize::try_from(step).ok().and_then(|step| schedule.prefix.get(step));
    choice.map_or_else(String::new, |choice| format!(", {} of {}", choice.kind.name(), choice.uid))
}

fn failed(line: String) -> Result<Judged, Failure> {
    Ok(Judged::Failed(Failure::own(format!("vsrun bug: {line}"))))
}

/// The same schedule does not come to the same each time, and that is not known to be vsrun's fault.
fn strayed(line: &str, number: u64, transitions: u64) -> Judged {
    Judged::Disturbed(Box::new(Bug { kind: BugKind::Unconfirmed, ..Bug::error(line, number, transitions) }))
}

fn unsupported(bug: Bug) -> Judged {
    Judged::Unsupported(Box::new(Bug { summary: format!("unsupported: {}", bug.summary), ..bug }))
}

/// An execution went on after threads had come to wait for each other in a circle, and ended with something else or with
/// another circle as well: the schedules that end where those close that its end does not show, and the one that ends with the
/// same bug without the circle. A bug that rests on what came after the circle is none: the execution was over.
pub(super) fn other_circles(outcome: &Outcome) -> Vec<Schedule> {
    let steps = &outcome.trace.steps;
    let Some(first) = first_circle(&outcome.trace) else { return Vec::new() };
    let schedule = |prefix, unsure| Schedule { prefix, unsure, ..Schedule::default() };
    // Without the step that closed the first circle, and what depends on it; and whether the last step is left.
    let without_first = |at: usize| {
        let mut dropped = vec![first - 1];
        for n in first..at {
            if dropped.iter().any(|&d| dependent(&steps[d].act, &steps[n].act, false)) {
                dropped.push(n);
            }
        }
        let kept = outcome.trace.choices(at).into_iter().enumerate().filter(|(n, _)| !dropped.contains(n));
        (schedule(kept.map(|(_, choice)| choice).collect(), true), dropped.last() != Some(&(at - 1)))
    };
    let mut all = Vec::new();
    if outcome.trace.end != End::CYCLE {
        all.push(schedule(outcome.trace.choices(first), false));
        let (schedule, independent) = without_first(steps.len());
        if is_past_circle(outcome) && independent {
            all.push(schedule);
        }
    }
    // Without it a later one is the first.
    let later = outcome.trace.circles.iter().filter_map(|&at| usize::try_from(at).ok()).skip(1);
    all.extend(later.filter(|&at| at > first && at <= steps.len()).map(|at| without_first(at).0));
    all
}

/// After how many steps the first circle closed, where all of them are known.
fn first_circle(trace: &Trace) -> Option<usize> {
    let first = trace.circles.first().and_then(|&at| usize::try_from(at).ok())?;
    (first <= trace.steps.len() && trace.unrecorded == 0).then_some(first)
}

/// An execution went on after a circle and ended with another bug: it is not what it shows, see [`other_circles`].
pub(super) fn is_past_circle(outcome: &Outcome) -> bool {
    let bug = matches!(outcome.sign, Sign::Bug { .. }) && outcome.trace.end != End::CYCLE;
    bug && first_circle(&outcome.trace).is_some_and(|first| first < outcome.trace.steps.len())
}

/// For who looks for a fault in vsrun: what was to come and what came, step by step.
#[cold]
fn told(number: u64, schedule: &Schedule, trace: &Trace) {
    let prefix: Vec<_> = schedule.prefix.iter().map(|c| format!("{}:{}.{}", c.uid, c.kind.name(), c.value)).collect();
    log::trace!("execution {number}, schedule {}", prefix.join(" "));
    for (i, step) in trace.steps.iter().enumerate() {
        let act = &step.act;
        log::trace!(
            "{i:4} {} {}.{} on {} {} arg {:x} flags {:x} fate {:x} signals {:x} state {:x} did {:?}",
            act.uid,
            act.op.kind.name(),
            step.value,
            act.op.obj as i32,
            act.op.obj2 as i32,
            act.op.arg,
            act.op.flags,
            act.fate,
            act.op.signals,
            act.state,
            step.did
        );
    }
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
