//! What an exploration came to.

use super::first::First;
use super::outcomes::Outcomes;
use super::sharing::Sharing;
use super::state::{State, Stop};
use crate::config::{Config, SearchKind};
use crate::finding::{Bug, BugKind, ProgramStatus, RaceView, Summary, Verdict};
use crate::incomplete::{undoing, Reason, Reasons};
use crate::runtime::Worker;
use crate::words::syscalls::{communicating, FILES, NUMBERS};

/// How the note about outcomes begins.
const DIFFER: &str = "executions that ran to their end differ in what they printed or exited with";

/// The summary of an exploration that is over; `worker` has run its last execution.
pub(super) fn summary(
    config: &Config,
    worker: &mut Worker,
    mut state: State,
    outcomes: &Outcomes,
    bugs: Vec<Bug>,
) -> Summary {
    let stop = state.stop.unwrap_or(Stop::Over);
    let last_words = match stop {
        Stop::Bound(_) | Stop::Interrupted => state.progress.last_words(config, &state.figures()),
        _ => None,
    };
    let passed_calls = communicating(&state.passed_calls());
    let mut reasons = reasons(&state, stop);
    reasons.extend(bugs.iter().filter_map(|bug| match bug.kind {
        BugKind::Error => Some(Reason::Unsupported),
        BugKind::Environment => Some(Reason::Disturbed),
        BugKind::Fault => Some(Reason::Fault),
        BugKind::Unconfirmed => Some(Reason::Unconfirmed),
        _ => None,
    }));
    // A search that ends at something unsupported would not have gone on with --keep-going.
    if !bugs.is_empty() && !bugs.iter().any(|bug| bug.kind.is_of_program()) {
        reasons.remove(&Reason::FirstBug);
    }
    // What went to the kernel and could have mattered to others was not explored.
    let passed = |(name, _): &(String, u64)| match name.as_str() {
        FILES => Reason::SharedFiles,
        NUMBERS => Reason::LibcDescriptors,
        _ => Reason::PassedThrough,
    };
    reasons.extend(passed_calls.iter().map(passed));
    reasons.extend((config.kinds_let_through() != 0).then_some(Reason::Uncontrolled));
    let counts = &mut state.counts;
    if stop == Stop::Interrupted {
        counts.note("interrupted: what follows is what was found until then");
    }
    discipline(&bugs, &state.sharing).iter().for_each(|text| counts.note(text));
    if worker.watches() && config.quarantine() == Some(0) {
        counts.note(
            "freed memory was given back at once (--heap off, --quarantine 0): who used it after that was not told",
        );
    }
    let called = counts.tosses;
    for (_, tossed) in worker.tossed().iter().enumerate().filter(|(n, _)| called & 1 << n == 0) {
        counts.note(&format!(
            "--toss: no execution has called {} from main on (a compiler may have put it into its callers)",
            tossed.place
        ));
    }
    state.sharing.notes().iter().for_each(|text| counts.note(text));
    last_words.into_iter().for_each(|text| counts.note(&text));
    state.search.notes().iter().for_each(|text| counts.note(text));
    let threads = worker.threads();
    let all = counts.executions == 1 && stop == Stop::Over && config.search != SearchKind::Once && bugs.is_empty();
    if all && threads > 1 && undoing(&reasons).next().is_none() {
        let watched = if worker.watches() { "" } else { ", as far as memory is not watched (--race explore)" };
        counts.note(&format!(
            "{threads} threads ran, but nothing could be interleaved: they use nothing together that is visible{watched}, so there is one execution only"
        ));
    }
    // Only where nothing but an end before its time keeps the search from being complete: all else may concern these executions as well.
    let early = |reason: &Reason| {
        matches!(reason, Reason::Interrupted | Reason::Time | Reason::FirstBug | Reason::Depth | Reason::Idle)
    };
    let short = undoing(&reasons).next().is_some() && undoing(&reasons).all(|reason| early(&reason));
    let covered = state.first.as_ref().filter(|_| short).and_then(First::covered);
    let (back, no_room) = (state.back.executions, state.back.no_room);
    // Now and then it does not matter.
    if no_room * 10 > back {
        counts.note(&format!(
            "in {no_room} of {back} executions there was no room for a state within them that the next one could have gone on from \
             (--checkpoint-memory): that costs time, and nothing else"
        ));
    }
    let outcomes = outcomes.table();
    if outcomes.different > 1 {
        let n = outcomes.different;
        let more = if outcomes.overflow { "more than " } else { "" };
        counts.note(&format!("{DIFFER}: {more}{n} outcomes"));
    }
    let tells = outcomes.different > 0 || !config.save_outcome.is_empty();
    let executions = counts.executions - state.search.discarded();
    Summary {
        program: config.program.clone(),
        verdict: Verdict::of(bugs.iter().map(|bug| bug.kind)),
        reasons,
        watched: config.race().watches(),
        search: config.search.name().to_string(),
        executions,
        earlier: state.sharing.earlier(),
        drawn: state.first.as_ref().map_or(0, First::drawn),
        covered,
        transitions: state.search.transitions(),
        sleep_blocked: state.search.sleep_blocked(),
        traces: state.search.traces(),
        trace: (config.search == SearchKind::Once).then_some(worker.trail()),
        max_depth: counts.max_depth,
        unfinished: None,
        outcomes: tells.then_some(outcomes),
        cut: if counts.cut == counts.executions { executions } else { counts.cut.min(executions) },
        ended: counts.ended.min(executions),
        broken_off: counts.broken_off.filter(|_| matches!(stop, Stop::Bound(Reason::Time) | Stop::Interrupted)),
        workers: state.passed.iter().filter(|p| !p.is_empty()).count().max(1) as u32,
        rolled_back: state.back.executions,
        copied: state.back.copied,
        from_marks: state.back.from_marks,
        marks_without_room: state.back.no_room,
        not_rolled_back: state.back.hindered.clone(),
        apart: worker.apart(),
        seconds: state.seconds_earlier + state.started_at.elapsed().as_secs_f64(),
        program_status: worker.status().map(ProgramStatus::from_wait),
        notes: std::mem::take(&mut counts.notes),
        passed_calls,
        uncontrolled: config.kinds_let_through(),
        uses: counts.all_uses(),
        with: config.with.iter().map(|words| words.0.clone()).collect(),
        bugs,
    }
}

/// What else is known of memory for which the locking discipline is violated: whether some of its uses are in no order.
fn discipline(bugs: &[Bug], sharing: &Sharing) -> Vec<String> {
    let views = bugs.iter().filter_map(|bug| Some((bug, bug.finding.as_ref()?.race.as_ref()?)));
    let told = |(bug, view): (&Bug, &RaceView)| match sharing.objects().words.contains(&view.word) {
        true => format!("{}; and some of its uses are in no order", bug.summary),
        false => format!(
            "{}; but its uses came in an order that visible operations keep in every execution explored",
            bug.summary
        ),
    };
    views.filter(|(_, view)| !view.unordered && !view.trespass).map(told).collect()
}

/// Why it is not complete: what executions saw, what ended it, what the search leaves out.
fn reasons(state: &State, stop: Stop) -> Reasons {
    let mut all: Reasons = state.counts.reasons.keys().copied().collect();
    all.extend(stop.reason());
    if !state.search.exhaustive() {
        let cut = all.contains(&Reason::Depth) || all.contains(&Reason::Idle);
        let unseen = (stop == Stop::Over && !cut).then_some(Reason::Unseen);
        all.extend(state.search.limit().or(unseen));
    }
    all
}
