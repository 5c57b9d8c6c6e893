//! Shortens the schedule of a bug that was found: runs what [`crate::shrink`] proposes. These executions are no part of the search.

use std::time::{Duration, Instant};

use super::failure::Failure;
use super::found::{look, Candidate, Look, Shown};
use super::setting::Setting;
use crate::config::SearchKind;
use crate::finding::{BugKind, Ending, Shortened};
use crate::runtime::{Inspector, Outcome, Quiet, Sign, Worker};
use crate::schedule::{self, Schedule};
use crate::shrink::{self, Tried};

/// What was proposed is given up after this and [`SLOWER`] times what the execution took that is shortened: it may wait for what does
/// not come, or compute for ever.
const PATIENCE: Duration = Duration::from_millis(200);
const SLOWER: u32 = 20;
/// Executions that diverge take this many times the divergence timeout more.
const DIVERGENCES: u32 = 2;

/// Whether an execution has come to the bug of that kind and identity.
pub(super) fn is_same(worker: &Worker, outcome: &Outcome, (kind, identity): (BugKind, u64)) -> bool {
    match (&outcome.sign, kind) {
        (_, BugKind::Race) => {
            worker.reported_races(outcome, &Quiet::default(), true).iter().any(|(found, _)| *found == identity)
        }
        (Sign::Bug { kind: came, identity: found }, _) => *came == kind && *found == identity,
        _ => false,
    }
}

/// The schedule of such a bug is to be shortened.
///
/// One execution alone (`--once`) is the program's own, and with calls that go to the kernel none is like another. Nor is there one that is cut where files
/// are really changed: what it has left would be there for the next.
pub(super) fn is_wanted(setting: &Setting, kind: BugKind) -> bool {
    let config = setting.config;
    let repeats = config.search != SearchKind::Once && config.kinds_let_through() == 0 && config.private_files();
    repeats && kind.is_of_program() && !config.shrink.is_zero()
}

/// The same, and there is time for it.
pub(super) fn is_wanted_now(setting: &Setting, inspector: &Inspector, kind: BugKind) -> bool {
    until(setting, inspector, kind).is_some()
}

/// Until when the schedule of a bug may be shortened. `None`: it is not to be. What comes of it is looked at again, and that is to be over with the time
/// (`--time`) too.
fn until(setting: &Setting, inspector: &Inspector, kind: BugKind) -> Option<Instant> {
    let config = setting.config;
    let more =
        if kind == BugKind::Divergence { setting.spec.divergence_timeout() * DIVERGENCES } else { Duration::ZERO };
    let now = Instant::now();
    let own = now.checked_add(config.shrink.saturating_add(more));
    let last = setting.until.map(|until| until.checked_sub(inspector.slowest).unwrap_or(now));
    let until = own.into_iter().chain(last).min();
    until.filter(|&until| now < until && is_wanted(setting, kind))
}

/// What leads to the same bug as `candidate` and is shorter. `None`: nothing was found.
fn shorten(
    worker: &mut Worker,
    bug: (BugKind, u64),
    candidate: &Candidate,
    until: Instant,
) -> Result<Option<(Candidate, Shortened)>, Failure> {
    let given = &candidate.schedule;
    if given.loops.is_some() {
        // What leads back to a state leads there as it is.
        return Ok(None);
    }
    worker.use_objects(&candidate.objects)?;
    // Where memory is watched all states are recorded anyhow.
    let record = !worker.watches();
    let recorded = |schedule: Schedule| Schedule {
        ends: given.ends,
        most: Some(candidate.transitions),
        record,
        record_back: schedule.prefix.len() as u32,
        blind: false,
        ..schedule
    };
    let mut failed = None;
    let mut attempt = |schedule: Schedule, patience: Option<Duration>| -> Tried {
        let now = Instant::now();
        if now >= until || worker.is_halted() {
            return Tried::Over;
        }
        let own = patience.and_then(|patience| now.checked_add(patience));
        worker.break_off(Some(own.map_or(until, |own| own.min(until))));
        let outcome = worker.run(&recorded(schedule));
        worker.break_off(None);
        match outcome {
            Ok(outcome) if outcome.ending == Ending::Interrupted => Tried::Otherwise,
            Ok(outcome) if is_same(worker, &outcome, bug) => Tried::Same(Box::new(outcome.trace)),
            Ok(_) => Tried::Otherwise,
            Err(e) => {
                failed = Some(e);
                Tried::Over
            }
        }
    };
    let began = Instant::now();
    // One that does not come again is told by who looks at it.
    let Tried::Same(trace) = attempt(given.clone(), None) else { return failed.map_or(Ok(None), |e| Err(e.into())) };
    if !schedule::has_room_for(trace.steps.len(), trace.unrecorded) {
        // The seed alone repeats it.
        return Ok(None);
    }
    let patience = (bug.0 != BugKind::Divergence).then(|| PATIENCE.saturating_add(began.elapsed() * SLOWER));
    let short = shrink::shorten(*trace, &mut |choices| {
        attempt(Schedule { prefix: choices.to_vec(), ..Schedule::default() }, patience)
    });
    if let Some(e) = failed {
        return Err(e.into());
    }
    if short.how.to >= short.how.from {
        return Ok(None);
    }
    let n = short.trace.steps.len();
    let schedule = Schedule { prefix: short.trace.choices(n), ends: given.ends, ..Schedule::default() };
    let shorter = Candidate { schedule, transitions: n as u64, whole: None, ..candidate.clone() };
    Ok(Some((shorter, short.how)))
}

/// Shortens the schedule of a bug and looks at it again. `None`: nothing shorter was found that shows it.
pub(super) fn look_shorter(
    worker: &mut Worker,
    inspector: &mut Inspector,
    setting: &Setting,
    (kind, identity): (BugKind, u64),
    candidate: &Candidate,
) -> Result<Option<Box<Shown>>, Failure> {
    let Some(until) = until(setting, inspector, kind) else { return Ok(None) };
    let Some((shorter, how)) = shorten(worker, (kind, identity), candidate, until)? else { return Ok(None) };
    Ok(match look(worker, inspector, setting, (kind, identity), None, &shorter)? {
        Look::Same(shown) => Some(shown.after(how)),
        _ => None,
    })
}
