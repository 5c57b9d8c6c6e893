//! Replays of scenarios: under the supervisor, compared step by step; or without, for debuggers.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use vsrun_model::End;

use super::failure::Failure;
use super::found::came_instead;
use super::outcomes::Ended;
use super::relaxed::{follow, Followed};
use super::setting::{identity_of, memory_of_each, output_file, watch_for};
use super::stranger;
use super::unfinished;
use crate::base::print::complain;
use crate::config::{Checkpoint, Point, Replay};
use crate::finding::{Bug, BugKind, Ending, Finding};
use crate::incomplete::uncontrolled;
use crate::race::Flaws;
use crate::report::mismatch::mismatch;
use crate::runtime::streams::Input;
use crate::runtime::{cpu, Inspector, Spec, Worker};
use crate::scenario::{Scenario, ScenarioFile};
use crate::schedule::Schedule;

/// Transitions after which an execution of a changed program is cut that has left its scenario: so that it has an end.
const FOLLOWED_DEPTH: u64 = 1_000_000;

/// Reads a scenario and checks that the program is still the one it was written for: if it is not, that is told where `relaxed`.
pub(super) fn load(path: &Path, trusted: bool, relaxed: bool) -> Result<(Scenario, bool), Failure> {
    let ScenarioFile { scenario, own, .. } =
        Scenario::load_file(path).map_err(|e| Failure::environment(e.to_string()))?;
    if !own && !trusted {
        stranger::ask(&scenario, path)?;
    }
    let exe = PathBuf::from(&scenario.program.exe);
    let script = Some(PathBuf::from(&scenario.program.script)).filter(|s| !s.as_os_str().is_empty());
    let now = identity_of(&exe, script.as_deref().unwrap_or(&exe), &scenario.options.with)
        .map_err(|f| Failure::environment(format!("the scenario's program cannot be read: {}", f.message)))?;
    if let Some(recorded) = &scenario.options.cpu {
        let here = cpu::here(recorded.baseline);
        match here.and_then(|here| cpu::compare(recorded, &here)) {
            Ok(said) => said.iter().for_each(|said| complain(&format!("vsrun: note: the scenario was {said}"))),
            Err(why) => return Err(Failure::environment(format!("the scenario cannot be replayed here: {why}"))),
        }
    }
    let changed = now != scenario.fingerprint;
    if changed && !relaxed {
        let same_exe = now.get(0) == scenario.fingerprint.get(0);
        let changed = script.filter(|_| same_exe).unwrap_or(exe);
        return Err(Failure::own(format!(
            "{} has changed since the scenario was written, so it cannot be replayed; --relaxed follows it as far as its steps are still \
             there, or explore it again",
            changed.display()
        )));
    }
    Ok((scenario, changed))
}

pub(super) fn spec_of(scenario: &Scenario, points: &[Point]) -> Spec {
    Spec {
        points: points.to_vec(),
        program: scenario.program.clone(),
        options: scenario.options.clone(),
        max_depth: scenario.options.max_depth.unwrap_or(u64::MAX),
        max_idle: 0,
        memory: memory_of_each(None, 1),
        guards: false,
        objects: Arc::new(scenario.objects.clone()),
        watch: watch_for(scenario),
        flaws: Flaws::default(),
        merges: false,
        own_pages: false,
        tells_names: false,
        checkpoint: Checkpoint::Fork,
        marks: 0,
        marks_memory: 0,
        hasty: false,
        orders: false,
        pieces: false,
    }
}

pub(super) fn schedule_of(scenario: &Scenario) -> Schedule {
    let prefix = scenario.prefix();
    let depth = scenario.options.max_depth.filter(|_| scenario.bug.kind == BugKind::Cut);
    match &scenario.then {
        Some(then) => Schedule { depth, ..then.schedule(prefix) },
        None => Schedule { prefix, loops: scenario.options.loops, ..Schedule::default() },
    }
}

pub(super) fn input_of(scenario: &Scenario) -> Result<Input, Failure> {
    match scenario.options.stdin.as_str() {
        "null" => Ok(Input::null()?),
        _ => Ok(Input::prepare(true)?),
    }
}

/// What came of a replay.
pub enum Replayed {
    /// What the scenario records, with calls of these kinds let through to the kernel.
    Same(Bug, u32),
    /// Something else.
    Otherwise(Otherwise),
    /// The state in the middle of it, and how many steps the scenario has, if that is known.
    Until(Box<Finding>, Option<usize>),
    /// The program has changed: what following the scenario came to.
    Followed(Box<Followed>),
}

/// A replay that came to something else than its scenario records.
pub struct Otherwise {
    /// The bug that the scenario records: its kind and its line.
    pub expected: (BugKind, String),
    /// What came, if it was a bug.
    pub came: Option<BugKind>,
    /// One line: where it left the scenario, what was expected and what came.
    pub line: String,
}

/// `vsrun replay FILE`: the bug, seen again; without a supervisor see [`super::alone::replay`].
///
/// # Errors
/// The scenario cannot be read or run, vsrun was asked to end, or somebody outside interfered.
pub fn replay(args: &Replay) -> Result<Replayed, Failure> {
    let (scenario, changed) = load(&args.file, args.trust, args.relaxed)?;
    if changed && scenario.bug.kind == BugKind::Outcome {
        return Err(Failure::environment("--relaxed looks for a bug again, and the scenario is of none"));
    }
    let mut shown = output_file(args.output.as_deref())?;
    if changed {
        // Names of what is shared are addresses of the old program.
        let spec = Spec { objects: Arc::default(), max_depth: FOLLOWED_DEPTH, ..spec_of(&scenario, &args.watch) };
        let mut worker = Worker::start(spec, input_of(&scenario)?, None)?;
        let followed = follow(&scenario, &mut worker)?;
        worker.output.copy_to(&mut shown)?;
        shown.flush()?;
        return Ok(Replayed::Followed(Box::new(followed)));
    }
    let mut worker = Worker::start(spec_of(&scenario, &args.watch), input_of(&scenario)?, None)?;
    let finding = {
        let race = (scenario.bug.kind == BugKind::Race).then_some(scenario.bug.identity);
        let mut inspector = Inspector::default();
        if scenario.bug.kind == BugKind::Outcome {
            // All processes are over.
            inspector.know_root(worker.root_pid());
        }
        worker.examine(&mut inspector, &up_to(args.until, schedule_of(&scenario)), race)?
    };
    worker.output.copy_to(&mut shown)?;
    shown.flush()?;
    undisturbed(&finding)?;
    if args.until == Some(finding.transitions()) && finding.end == End::DEPTH && scenario.bug.kind != BugKind::Cut {
        return Ok(Replayed::Until(Box::new(finding), scenario.then.is_none().then_some(scenario.steps.len())));
    }
    if let Some(line) =
        difference(&scenario, &finding).map_or_else(|| other_outcome(&scenario, &worker), |line| Ok(Some(line)))?
    {
        let line = match uncontrolled(scenario.options.uncontrolled) {
            Some(said) => format!("{said}: {line}"),
            None => line,
        };
        let expected = (scenario.bug.kind, scenario.bug.summary);
        return Ok(Replayed::Otherwise(Otherwise { expected, came: finding.kind, line }));
    }
    let bug = match scenario.bug.kind {
        BugKind::Cut => {
            let line = Bug::error(scenario.bug.summary, scenario.found.execution, finding.transitions());
            Bug { kind: BugKind::Cut, finding: Some(unfinished::shown(finding)), ..line }
        }
        BugKind::Outcome => {
            let line = Bug::error(scenario.bug.summary, scenario.found.execution, finding.transitions());
            Bug { kind: BugKind::Outcome, finding: Some(Box::new(finding)), ..line }
        }
        _ => Bug::new(finding, scenario.found.execution),
    };
    Ok(Replayed::Same(Bug { scenario: Some(args.file.clone()), ..bug }, scenario.options.uncontrolled))
}

/// The schedule up to where so many transitions have been made. The execution ends there, if it has not before.
fn up_to(steps: Option<u64>, schedule: Schedule) -> Schedule {
    let Some(steps) = steps else { return schedule };
    let mut prefix = schedule.prefix;
    prefix.truncate(usize::try_from(steps).unwrap_or(usize::MAX));
    Schedule { prefix, most: Some(steps), ..schedule }
}

/// An error if a replay was broken off, or somebody outside interfered: then it says nothing of its scenario.
pub(super) fn undisturbed(finding: &Finding) -> Result<(), Failure> {
    match finding.ending {
        Ending::Interrupted => Err(Failure::interrupted(format!(
            "interrupted after {} steps, before the replay came to its end: it says nothing of the scenario",
            finding.transitions()
        ))),
        ref ending if ending.is_environments() => Err(Failure::environment(format!("environment: {}", finding.line()))),
        _ => Ok(()),
    }
}

/// At which step a replay went another way, what was expected and what came. `None`: it came to the bug that the scenario
/// records, by its steps.
pub(super) fn difference(scenario: &Scenario, found: &Finding) -> Option<String> {
    if found.end == End::MISMATCH {
        let line = mismatch(&scenario.steps, found);
        return Some(line.unwrap_or_else(|| "the replay left the scenario".into()));
    }
    let (bug, steps) = (&scenario.bug, found.steps.len());
    let same_identity = bug.identity == 0 || found.identity == bug.identity;
    // Where there is no room for more, that is an error unless it is what was expected.
    let is_cut = found.kind.is_none() && found.end == End::DEPTH || found.end == End::ROOM;
    if bug.kind == BugKind::Cut && is_cut {
        return None;
    }
    let is_over = found.ending == Ending::Modelled && matches!(found.end, End::FINISHED | End::WAITS_OUTSIDE);
    let is_same = match bug.kind {
        // What it printed is looked at by who has run it.
        BugKind::Outcome => is_over && found.kind.is_none(),
        kind => found.kind == Some(kind) && same_identity,
    };
    if !is_same {
        return Some(format!(
            "the replay came to another end, after step {steps}: expected {}: {}; came: {}",
            bug.kind.name(),
            bug.summary,
            came_instead(&scenario.steps, found)
        ));
    }
    if scenario.then.is_none() && steps != scenario.steps.len() {
        let expected = scenario.steps.len();
        return Some(format!(
            "the replay came to its end by another way: {expected} steps were expected, {steps} came"
        ));
    }
    None
}

/// How the outcome of a replay that went by the steps of its scenario is another one.
fn other_outcome(scenario: &Scenario, worker: &Worker) -> Result<Option<String>, Failure> {
    // What was made by hand (`vsrun step`) says nothing of what is printed.
    if scenario.bug.kind != BugKind::Outcome || scenario.bug.identity == 0 {
        return Ok(None);
    }
    let ended = Ended::of(worker)?;
    let line = || {
        format!(
            "the replay came to another outcome by the same steps: expected: {}; came: {}",
            scenario.bug.summary,
            ended.line()
        )
    };
    Ok((ended.identity() != scenario.bug.identity).then(line))
}
