//! An exploration from its beginning to its summary.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::covered::Covering;
use super::executions::Counts;
use super::failure::Failure;
use super::first::First;
use super::found::{look, put_in_order, Candidate, Found, Look};
use super::progress::Progress;
use super::save::{Header, Saved, Saver};
use super::save_outcome::save_outcomes;
use super::setting::{divide_memory, identity_of, output_file, spec_of, watch, Of, Setting};
use super::sharing::Sharing;
use super::shorten::{is_wanted_now, look_shorter};
use super::state::{State, Stop};
use super::summary::summary;
use super::workers::Shared;
use crate::base::text::escape;
use crate::config::{Config, SearchKind};
use crate::finding::{Bug, BugKind, Summary};
use crate::incomplete::Reason;
use crate::runtime::streams::Input;
use crate::runtime::{cpus, cpus_for, tracee, Inspector, Worker};
use crate::search::{Chance, Search};

/// The CPUs of the workers. A search that runs one execution at a time has one worker.
fn places(config: &Config, search: &dyn Search, counts: &mut Counts) -> Vec<Option<usize>> {
    let wanted = match config.workers {
        _ if config.search == SearchKind::Once => 1,
        None => cpus().len().max(1),
        Some(n) => n as usize,
    };
    let cpus = cpus_for(if search.parallel() { wanted } else { 1 });
    if wanted > 1 && !search.parallel() {
        if config.workers.is_some() {
            let name = config.search.name();
            counts.note(&format!("search {name} runs one execution at a time: 1 worker of {wanted}"));
        }
        return vec![cpus.first().copied()];
    }
    (0..wanted).map(|n| cpus.get(n % cpus.len().max(1)).copied()).collect()
}

/// What a saved exploration goes on from: nothing, if none was asked for.
fn resume(
    setting: &mut Setting,
    (search, sharing): (&mut dyn Search, &mut Sharing),
) -> Result<Option<(Header, Counts)>, Failure> {
    let Some(path) = &setting.config.resume else { return Ok(None) };
    let (saved, note) = Saved::load(path).map_err(Failure::environment)?;
    let refused = |why: String| Failure::environment(format!("{} cannot be resumed: {why}", escape(path)));
    if let Some(why) = saved.header.mismatch(setting) {
        return Err(refused(why));
    }
    sharing.resume(&saved.header.sharing).map_err(|name| refused(format!("it was saved with another {name}")))?;
    search.restore(&saved.search).map_err(|why| refused(format!("it is damaged: {why}")))?;
    // Addresses depend on the environment, and what is known of bugs on addresses.
    setting.spec.program.env.clone_from(&saved.header.program.env);
    let mut counts = saved.header.counts();
    let processor = saved.header.processor(setting).ok().flatten();
    note.into_iter().chain(processor).for_each(|text| counts.note(&text));
    Ok(Some((saved.header, counts)))
}

/// An exploration ready to begin.
pub(super) fn prepare(setting: &mut Setting) -> Result<State, Failure> {
    let config = setting.config;
    setting.take_lot()?;
    let mut search = setting.search()?;
    let mut sharing = Sharing::new(config)?;
    let (header, counts) = match resume(setting, (&mut *search, &mut sharing))? {
        Some((header, counts)) => (Some(header), counts),
        None => (None, Counts::default()),
    };
    search.watch(watch(setting.until));
    let before = (search.progress().unwrap_or(0.0), counts.executions);
    let mut state = State::new((search, sharing), counts, Progress::new(config, before));
    state.first = First::new(config);
    state.covering = setting.spec.orders.then(Covering::default);
    if let Some(header) = header {
        state.seconds_earlier = header.seconds;
        state.found = header.found().map(|found| (found.identity, found)).collect();
        state.outcomes = header.outcomes.outcomes(&state.sharing);
        state.passed_earlier = header.passed;
    }
    if let Some(path) = config.save.as_ref().or(config.resume.as_ref()) {
        let mut saver = Saver::new(path, state.seconds_earlier);
        // What cannot be saved is said before the work is done.
        state.save(setting, &mut saver, state.found.values()).map_err(Failure::environment)?;
        state.saver = Some(saver);
    }
    Ok(state)
}

/// What is to be explored, ready to begin, and the standard input of the program.
pub(super) fn begin(config: &Config, of: Of) -> Result<(Setting<'_>, Input), Failure> {
    // What it takes to bring the program to main is part of the time.
    let until = config.bounds.time.and_then(|time| Instant::now().checked_add(time));
    let (mut spec, program) = spec_of(config)?;
    let once = config.search == SearchKind::Once;
    let input = Input::prepare(once)?;
    spec.options.stdin = input.name().to_string();
    let identity = identity_of(Path::new(&spec.program.exe), &program, &spec.options.with)?;
    Ok((Setting { config, spec, identity, until, of }, input))
}

/// Explores; prints nothing but progress.
pub fn explore(config: &Config) -> Result<Summary, Failure> {
    Ok(explore_part(config, Of::Whole)?.summary)
}

/// What came of a part.
pub(super) struct Explored {
    pub summary: Summary,
    /// What is known of objects then.
    pub sharing: Sharing,
    /// What its executions have covered, where that is asked for.
    pub covering: Option<Covering>,
    /// What its executions could have found by lot.
    pub chances: Vec<Chance>,
    /// What a search of samples has kept, for a task of a swarm.
    pub kept: Option<Vec<u8>>,
}

/// The same of a part.
pub(super) fn explore_part(config: &Config, of: Of) -> Result<Explored, Failure> {
    let once = config.search == SearchKind::Once;
    let (mut setting, input) = begin(config, of)?;
    let mut shown = output_file(config.output.as_deref())?;
    let direct = if once { Some(shown.try_clone()?) } else { None };
    let mut state = prepare(&mut setting)?;
    let places = places(config, &*state.search, &mut state.counts);
    divide_memory(&mut setting.spec, config, places.len());
    let shared = Shared::new(&setting, input, state);
    let (mut worker, mut inspector) = shared.run(&places, config.workers.is_some(), direct)?;
    let mut state = shared.into_state();
    state.progress.clear();
    state.settle();
    let mut found = finish_bugs(&setting, &mut worker, &mut inspector, &mut state);
    let unfinished = see_unfinished(&setting, (&mut worker, &mut inspector), &mut state, found.is_empty());
    if let Some(mut saver) = state.saver.take() {
        let saved = state.save(&setting, &mut saver, found.iter());
        let over = state.stop == Some(Stop::Over);
        let text = saved.err().or_else(|| (!over).then(|| saver.advice()));
        text.into_iter().for_each(|text| state.counts.note(&text));
    }
    if config.save.is_none() && config.resume.is_none() {
        let own: BTreeSet<PathBuf> = found.iter().filter_map(|bug| bug.path.clone()).collect();
        found.iter_mut().for_each(|bug| bug.forget_file(&own));
    }
    let bugs: Vec<Bug> = found.into_iter().flat_map(Found::into_bugs).chain(state.obstacle.take()).collect();
    // The execution shown is that of the last bug, or, where a file was asked for, the last one.
    if !once && (!bugs.is_empty() || config.output.is_some()) {
        worker.output.copy_to(&mut shown)?;
    }
    let (outcomes, sharing) = (std::mem::take(&mut state.outcomes), state.sharing.clone());
    let covering = state.covering.take();
    let chances = state.search.chances();
    let keeps = matches!(setting.of, Of::Lot(_)) && config.search.keeps();
    let kept = if keeps { state.search.save() } else { None };
    let mut summary = Summary { unfinished, ..summary(config, &mut worker, state, &outcomes, bugs) };
    save_outcomes(&setting, (&mut worker, &mut inspector), &outcomes, &mut summary);
    Ok(Explored { summary, sharing, covering, chances, kept })
}

/// At the end all bugs together may be shortened for so many times what one may.
const AT_THE_END: u32 = 5;

/// Looks at what repeats a bug; what was shortened stays known as such.
fn look_again(
    worker: &mut Worker,
    inspector: &mut Inspector,
    setting: &Setting,
    bug: &Found,
    candidate: &Candidate,
) -> Result<Look, Failure> {
    let seen = look(worker, inspector, setting, (bug.kind, bug.identity), None, candidate)?;
    Ok(match (seen, bug.how(candidate)) {
        (Look::Same(shown), Some(how)) => Look::Same(shown.after(how)),
        (seen, _) => seen,
    })
}

/// A thread that ran without end may have waited for memory of which it was not known that others use it. With that known the search has come to the same state
/// again: there the thread is part of a deadlock, or goes on.
fn drop_superseded(state: &mut State, found: &mut Vec<Found>) {
    if state.stop != Some(Stop::Over) {
        return;
    }
    let restarts = state.sharing.restarts();
    let superseded = |bug: &mut Found| bug.kind == BugKind::Divergence && bug.best.restarts < restarts;
    for path in found.extract_if(.., superseded).filter_map(|bug| bug.path) {
        if let Err(e) = std::fs::remove_file(&path) {
            state.counts.note(&format!("cannot remove {}: {e}", path.display()));
        }
    }
}

/// Looks at the bugs once more that another execution has come to stand for, and puts them in order. The first worker
/// is left with the execution of the last bug.
fn finish_bugs(setting: &Setting, worker: &mut Worker, inspector: &mut Inspector, state: &mut State) -> Vec<Found> {
    // What was found is reported all the same; who asks again is heard again.
    tracee::forget_requests();
    let mut found: Vec<Found> = std::mem::take(&mut state.found).into_values().collect();
    drop_superseded(state, &mut found);
    let moved = put_in_order(&mut found);
    // One worker alone that stops at a bug has just looked at it.
    let unseen = |bug: &Found| bug.is_stale() || bug.is_seen_once();
    let in_hand = state.passed.len() == 1 && state.stop == Some(Stop::FirstBug) && !found.iter().any(unseen);
    let last = found.len().checked_sub(1);
    // Who wants an end, or has had his time, has it without that.
    let hurried = matches!(state.stop, Some(Stop::Interrupted | Stop::Failed | Stop::Bound(Reason::Time)));
    let until = Instant::now().checked_add(setting.config.shrink.saturating_mul(AT_THE_END)).filter(|_| !hurried);
    for (i, bug) in found.iter_mut().enumerate() {
        let failed =
            |obstacle: &Bug| matches!(obstacle.kind, BugKind::Environment | BugKind::Unconfirmed | BugKind::Fault);
        let once = bug.is_seen_once();
        let no_time = once && setting.is_time_over();
        let looks = !no_time && !bug.is_doubtful() && !state.obstacle.as_ref().is_some_and(failed);
        let shortens = looks && until.is_some_and(|until| Instant::now() < until);
        let tries = shortens && is_wanted_now(setting, inspector, bug.kind) && bug.try_shortening();
        let shorter = match tries {
            true => look_shorter(worker, inspector, setting, (bug.kind, bug.identity), &bug.best),
            false => Ok(None),
        };
        // What was shortened is not given up for what is not.
        let stale = once || bug.is_stale() && (shortens || !bug.is_shortened());
        if let Some(shown) = shorter.unwrap_or_else(|failure| {
            state.counts.note(&failure.message);
            None
        }) {
            bug.show(shown);
        } else if looks && (stale || last == Some(i) && (tries || !in_hand)) {
            // What was seen of it before is reported all the same.
            let candidate = if stale { bug.best.clone() } else { bug.repeated() };
            match look_again(worker, inspector, setting, bug, &candidate).unwrap_or_else(|failure| {
                state.counts.note(&failure.message);
                Look::Interrupted
            }) {
                Look::Interrupted => break,
                Look::Disturbed(obstacle) => {
                    state.obstacle.get_or_insert(*obstacle);
                    break;
                }
                Look::Same(shown) => bug.show(shown),
                Look::Otherwise(doubt) => bug.doubt(doubt),
            }
        } else if !moved.contains(&i) {
            continue;
        }
        if let Err(e) = bug.write(setting) {
            state.counts.note(&e.to_string());
        }
    }
    found
}

/// The execution that is shown though it did not reach its end, if one is; `no_bug`: nothing else is.
fn see_unfinished(
    setting: &Setting,
    (worker, inspector): (&mut Worker, &mut Inspector),
    state: &mut State,
    no_bug: bool,
) -> Option<Bug> {
    let failed = state.obstacle.is_some() || state.stop == Some(Stop::Failed);
    let wanted = setting.config.save_cut || no_bug && state.counts.ended == 0;
    let mut unfinished = state.unfinished.take().filter(|_| wanted && !failed)?;
    // One alone prints, and changes files, once.
    if setting.config.search != SearchKind::Once && !unfinished.is_seen() {
        unfinished.look(worker, inspector);
    }
    let (bug, written) = unfinished.report(setting, state.stop == Some(Stop::Bound(Reason::Time)));
    written.err().into_iter().for_each(|e| state.counts.note(&e.to_string()));
    Some(bug)
}
