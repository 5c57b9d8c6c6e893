//! Bugs that an exploration found. Executions that show the same bug compete for it: of those since the search last
//! started over, the shortest stands for it, of equally long ones the first in the order of their choices. So what a complete search reports does not depend on the
//! order in which its executions were run, nor on the number of workers.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use vsrun_model::arena::Choice;
use vsrun_model::End;

use super::differs::LeftOut;
use super::executions::{replayable, Task};
use super::failure::Failure;
use super::judge::OVERWRITTEN;
use super::setting::Setting;
use crate::finding::{Bug, BugKind, Ending, Finding, People, Shortened, ThreadView};
use crate::objects::Objects;
use crate::report::mismatch::mismatch;
use crate::runtime::{Inspector, Outcome, Worker};
use crate::scenario::{self, Scenario, ScenarioStep, Then};
use crate::schedule::Schedule;

/// An execution that shows a bug.
#[derive(Clone, Debug, Default)]
pub(super) struct Candidate {
    /// What repeats it.
    pub schedule: Schedule,
    /// Transitions up to the bug.
    pub transitions: u64,
    /// Its number, from 1, in the order in which executions were started.
    pub execution: u64,
    /// What was known of the sharing of objects.
    pub objects: Arc<Objects>,
    /// How often the search had started over.
    pub restarts: u64,
    /// What repeats it if `schedule`, which leaves steps out, does not.
    pub whole: Option<Schedule>,
}

impl Candidate {
    pub fn new(task: &Task, outcome: &Outcome) -> Candidate {
        Candidate {
            schedule: match outcome.is_untold() {
                true => task.schedule.clone(),
                false => replayable(&task.schedule, &outcome.trace),
            },
            transitions: outcome.trace.steps.len() as u64 + outcome.trace.unrecorded,
            execution: task.number,
            objects: Arc::clone(&task.objects),
            restarts: task.restarts,
            whole: None,
        }
    }

    /// An execution that is over where both of two uses of memory have just been made or are next: after these steps of the trace.
    pub fn of_race(task: &Task, outcome: &Outcome, steps: &[usize]) -> Candidate {
        let all = outcome.trace.choices(outcome.trace.steps.len());
        let made = steps.last().map_or(0, |last| last + 1);
        let ends = |prefix| Schedule { prefix, ends: true, ..Schedule::default() };
        let whole = (steps.len() < made).then(|| ends(all[..made].to_vec()));
        let schedule = ends(steps.iter().map(|&n| all[n]).collect());
        Candidate { schedule, transitions: steps.len() as u64, whole, ..Candidate::new(task, outcome) }
    }

    /// Which of two stands for a bug, and which bug comes first in the report: the lesser one.
    pub fn compare(&self, other: &Candidate) -> Ordering {
        let key = |c: &Choice| (c.uid, c.value);
        let choices = |c: &Candidate| c.schedule.prefix.iter().map(key).collect::<Vec<_>>();
        // Which executions there were before the last beginning depends on the order in which they ended, and they have
        // fewer transitions.
        let beginnings = other.restarts.cmp(&self.restarts);
        let lengths = beginnings.then(self.transitions.cmp(&other.transitions));
        lengths.then_with(|| choices(self).cmp(&choices(other))).then_with(|| self.execution.cmp(&other.execution))
    }
}

/// What one execution showed: all that is said of a bug is from one of them.
pub(super) struct Shown {
    /// What repeats it.
    candidate: Candidate,
    bug: Bug,
    scenario: Scenario,
}

impl Shown {
    /// It was shortened before.
    pub fn after(mut self: Box<Shown>, how: Shortened) -> Box<Shown> {
        self.bug.shortened = Some(how);
        self.scenario.found.shortened = Some(how);
        self
    }
}

/// A bug.
pub(super) struct Found {
    /// Equal for equal bugs.
    pub identity: u64,
    /// Its kind.
    pub kind: BugKind,
    /// The execution that stands for it.
    pub best: Candidate,
    /// The file of its scenario.
    pub path: Option<PathBuf>,
    /// The line about it.
    pub summary: String,
    /// The execution whose schedule was to be shortened last.
    tried: Option<u64>,
    /// What was seen. `None`: it has not been looked at (again, after a resumption).
    shown: Option<Box<Shown>>,
    /// The last look at an execution that should have shown it and did not.
    doubt: Option<Box<Bug>>,
}

impl Found {
    /// A bug that nobody has looked at.
    pub fn new(identity: u64, kind: BugKind, best: Candidate) -> Found {
        Found { identity, kind, best, path: None, summary: String::new(), tried: None, shown: None, doubt: None }
    }

    /// Another execution that shows it.
    pub fn offer(&mut self, candidate: Candidate) {
        if candidate.compare(&self.best) == Ordering::Less {
            self.best = candidate;
        }
    }

    /// True if what was seen is not what the execution that stands for it shows.
    pub fn is_stale(&self) -> bool {
        self.shown.as_ref().map(|s| s.candidate.execution) != Some(self.best.execution)
    }

    /// The schedule that stands for it is to be shortened now: whether that was not done before.
    pub fn try_shortening(&mut self) -> bool {
        self.tried.replace(self.best.execution) != Some(self.best.execution)
    }

    /// True if the execution that is shown is one that was shortened.
    pub fn is_shortened(&self) -> bool {
        self.shown.as_ref().is_some_and(|shown| shown.bug.shortened.is_some())
    }

    /// How far `candidate` was shortened, if it is what repeats the execution that is shown, and was.
    pub fn how(&self, candidate: &Candidate) -> Option<Shortened> {
        let shown = self.shown.as_ref().filter(|shown| shown.candidate.schedule == candidate.schedule);
        shown.and_then(|shown| shown.bug.shortened)
    }

    /// What repeats the execution that is shown, or, if there is none, the one that stands for it.
    pub fn repeated(&self) -> Candidate {
        self.shown.as_ref().map_or(&self.best, |shown| &shown.candidate).clone()
    }

    /// True if the execution that stands for it did not show it again. That it may do so another time makes it no better.
    pub fn is_doubtful(&self) -> bool {
        self.doubt.as_ref().is_some_and(|doubt| doubt.execution == self.best.execution)
    }

    /// Takes what was seen.
    pub fn show(&mut self, shown: Box<Shown>) {
        self.summary.clone_from(&shown.bug.summary);
        self.kind = shown.bug.kind;
        self.shown = Some(shown);
    }

    /// There was no time to look at it: what the model knew of it, `first`, has to do. That it was not confirmed is said.
    pub fn show_once(&mut self, setting: &Setting, first: Finding, candidate: &Candidate) {
        let told = first.kind == Some(self.kind);
        let mut bug = Bug::new(first, candidate.execution);
        (bug.kind, bug.transitions) = (self.kind, candidate.transitions);
        if !told {
            // What it knew is how the execution ended, not this.
            (bug.summary, bug.finding) = (self.kind.name().to_string(), None);
        }
        bug.summary.push_str(SEEN_ONCE);
        match told {
            true => {
                let scenario = scenario_of(setting, candidate, &bug);
                self.show(Box::new(Shown { candidate: candidate.clone(), bug, scenario }));
            }
            false => self.summary = bug.summary,
        }
    }

    /// It has been shown, but not been run again. The summary says so, which is saved: a search that goes on knows it too.
    pub fn is_seen_once(&self) -> bool {
        self.summary.ends_with(SEEN_ONCE)
    }

    /// Takes what was seen of an execution that should have shown it and did not.
    pub fn doubt(&mut self, doubt: Box<Bug>) {
        if self.summary.is_empty() {
            self.summary.clone_from(&doubt.summary);
        }
        self.doubt = Some(doubt);
    }

    /// Writes what was seen to a new file, if there is none; to `path` otherwise.
    pub fn write(&mut self, setting: &Setting) -> Result<(), scenario::WriteError> {
        let Some(shown) = &self.shown else { return Ok(()) };
        match &self.path {
            Some(path) => shown.scenario.replace(path),
            None => {
                self.path = Some(shown.scenario.write(&setting.config.scenario_dir)?);
                Ok(())
            }
        }
    }

    /// Its file is not needed if an earlier run has written the same; not one of `own`, which are of this run.
    pub fn forget_file(&mut self, own: &BTreeSet<PathBuf>) {
        let (Some(shown), Some(path)) = (&self.shown, &self.path) else { return };
        if let Some(known) = shown.scenario.unless_known(path, own) {
            self.path = Some(known);
        }
    }

    /// The reports on it: what was seen, and what was seen and did not come again. A bug of which there is only that is none.
    pub fn into_bugs(mut self) -> impl Iterator<Item = Bug> {
        let doubt = self.doubt.take();
        let bug = (self.shown.is_some() || self.path.is_some() || doubt.is_none()).then(|| self.into_bug());
        bug.into_iter().chain(doubt.map(|doubt| *doubt))
    }

    fn into_bug(self) -> Bug {
        match self.shown {
            Some(shown) => Bug { scenario: self.path, ..shown.bug },
            None => Bug {
                kind: self.kind,
                summary: if self.summary.is_empty() { self.kind.name().to_string() } else { self.summary },
                scenario: self.path,
                execution: self.best.execution,
                transitions: self.best.transitions,
                finding: None,
                shortened: None,
            },
        }
    }
}

/// What is said where the program overwrote vsrun's memory, and it was not seen where.
const NOT_AGAIN: &str = "the program overwrote vsrun's memory, so that nothing of that execution can be relied on; where from was not seen \
                         when it ran again (a system call may have written there). --guard-arena looks at every execution for that";

/// What is said of a bug that there was no time to run again.
const SEEN_ONCE: &str =
    " (seen once, not confirmed: the time was over, or vsrun was asked to end, before it was run again)";

/// What came of a look at a bug.
pub(super) enum Look {
    /// vsrun was asked to end.
    Interrupted,
    /// Somebody outside interfered.
    Disturbed(Box<Bug>),
    /// The same bug: what was seen of it.
    Same(Box<Shown>),
    /// Another bug, or none: what is to be said of that.
    Otherwise(Box<Bug>),
}

/// Runs an execution once more under the tracer and looks around. It is to come to the bug of that kind and identity;
/// `first` is what the model knew of it the first time.
///
/// Executions depend on their schedules alone, so that it comes to something else means that vsrun is wrong, or that the program
/// depends on something that vsrun does not control. Then there is nothing that a scenario could repeat, and none is written.
pub(super) fn look(
    worker: &mut Worker,
    inspector: &mut Inspector,
    setting: &Setting,
    (kind, identity): (BugKind, u64),
    first: Option<&Finding>,
    candidate: &Candidate,
) -> Result<Look, Failure> {
    worker.use_objects(&candidate.objects)?;
    let race = (kind == BugKind::Race).then_some(identity);
    let began = Instant::now();
    let mut again = worker.examine(inspector, &candidate.schedule, race)?;
    if again.ending != Ending::Interrupted {
        inspector.slowest = inspector.slowest.max(began.elapsed());
    }
    if let Some(whole) = candidate.whole.as_ref().filter(|_| again.kind != Some(kind)) {
        again = worker.examine(inspector, whole, race)?;
    }
    let execution = candidate.execution;
    Ok(match again.ending {
        Ending::Interrupted => Look::Interrupted,
        ref ending if ending.is_environments() => {
            Look::Disturbed(Box::new(Bug::environment(&again.line(), execution, again.transitions())))
        }
        _ if again.kind == Some(kind) && again.identity == identity || again.overwrites_vsrun() => {
            let bug = Bug::new(again, execution);
            let scenario = scenario_of(setting, candidate, &bug);
            Look::Same(Box::new(Shown { candidate: candidate.clone(), bug, scenario }))
        }
        _ if identity == OVERWRITTEN => {
            Look::Otherwise(Box::new(Bug::error(NOT_AGAIN, execution, again.transitions())))
        }
        _ => Look::Otherwise(Box::new(unconfirmed(kind, first, &again, candidate, LeftOut::by(worker)))),
    })
}

/// What is said of a bug that did not come again: `again` came instead.
fn unconfirmed(
    kind: BugKind,
    first: Option<&Finding>,
    again: &Finding,
    candidate: &Candidate,
    left_out: LeftOut,
) -> Bug {
    let was = first.map_or_else(|| kind.name().to_string(), |found| format!("{}: {}", kind.name(), found.line()));
    let steps: Vec<ScenarioStep> =
        first.into_iter().flat_map(|f| f.steps.iter().map(|s| ScenarioStep::new(s, f))).collect();
    let line = format!(
        "execution {} ended with a bug ({was}) that is not confirmed: the same schedule, run again under the tracer, came to \
         something else ({})",
        candidate.execution,
        came_instead(&steps, again)
    );
    let summary = match left_out.cause() {
        Some(cause) => format!("{line}; {cause}; there is no scenario"),
        None => format!(
            "vsrun bug: {line}; either vsrun is wrong, or the program depends on something that vsrun does not control \
             (processes outside, the machine); there is no scenario"
        ),
    };
    let line = Bug::error(summary, candidate.execution, candidate.transitions);
    Bug { kind: BugKind::Unconfirmed, finding: first.cloned().map(Box::new), ..line }
}

/// What an execution came to that was to come to something else.
pub(super) fn came_instead(steps: &[ScenarioStep], found: &Finding) -> String {
    if let Some(line) = mismatch(steps, found).filter(|_| found.end == End::MISMATCH) {
        return line;
    }
    match found.kind {
        Some(kind) => format!("{}: {}", kind.name(), found.line()),
        None => found.line(),
    }
}

/// The scenario of what `bug` was seen of, which `candidate` repeats.
pub(super) fn scenario_of(setting: &Setting, candidate: &Candidate, bug: &Bug) -> Scenario {
    let finding = bug.finding.as_deref();
    let rest = finding.is_some_and(|found| !found.is_repeated_by_its_steps());
    // Steps that were too many are repeated by the schedule that made them.
    let steps = finding.filter(|_| !rest).map_or(Vec::new(), |found| {
        let step = |step| ScenarioStep::new(step, found);
        found.steps.iter().map(step).collect()
    });
    let identity = finding.map_or(0, |found| found.identity);
    let watches = finding.is_some_and(|found| found.end == End::FREED || found.race.is_some());
    // What shows a race is over where both uses have been made or are next.
    let depth = finding.filter(|found| found.race.is_some() && !rest).map(|found| found.steps.len() as u64);
    let max_depth = depth.or(setting.spec.options.max_depth);
    Scenario {
        program: setting.spec.program.clone(),
        fingerprint: setting.identity.clone(),
        options: scenario::Options {
            watches,
            watched: setting.spec.watch.is_some(),
            max_depth,
            loops: candidate.schedule.loops,
            ..setting.spec.options.clone()
        },
        bug: scenario::Shown { kind: bug.kind, summary: bug.summary.clone(), identity },
        found: scenario::Found {
            search: setting.config.search.name().to_string(),
            execution: candidate.execution,
            shortened: None,
        },
        people: finding.map_or_else(BTreeMap::new, people_of),
        steps,
        then: rest.then(|| Then::new(&candidate.schedule)),
        objects: (*candidate.objects).clone(),
    }
}

/// What the threads are called, by their paths of creation.
pub(super) fn people_of(found: &Finding) -> BTreeMap<String, String> {
    let people = People::of(found);
    let one = |(t, thread): (u32, &ThreadView)| (thread.uid.to_string(), people.name(t).to_string());
    (0..).zip(&found.threads).map(one).collect()
}

/// Kinds in the order of the report: the first decides the verdict. What the program itself says or the kernel says of it
/// comes before what is only seen from outside.
fn rank(kind: BugKind) -> u8 {
    match kind {
        BugKind::Crash => 0,
        BugKind::Assert => 1,
        BugKind::Race => 2,
        BugKind::Deadlock => 3,
        BugKind::Livelock => 4,
        BugKind::Divergence => 5,
        BugKind::Unconfirmed => 6,
        BugKind::Fault => 7,
        BugKind::Environment => 8,
        BugKind::Error => 9,
        BugKind::Cut => 10,
        BugKind::Outcome => 11,
    }
}

/// Puts bugs in the order of the report, by kind and then the shortest first, and gives each kind's files to its bugs in
/// that order. Returns those whose file has to be written again.
pub(super) fn put_in_order(found: &mut [Found]) -> Vec<usize> {
    found.sort_by(|a, b| {
        let kinds = rank(a.kind).cmp(&rank(b.kind));
        kinds.then_with(|| a.best.compare(&b.best)).then(a.identity.cmp(&b.identity))
    });
    let mut changed = Vec::new();
    let mut kinds: Vec<BugKind> = found.iter().map(|f| f.kind).collect();
    kinds.sort();
    kinds.dedup();
    for kind in kinds {
        let members: Vec<usize> =
            (0..found.len()).filter(|&i| found[i].kind == kind && found[i].path.is_some()).collect();
        let mut paths: Vec<PathBuf> = members.iter().filter_map(|&i| found[i].path.clone()).collect();
        // The numbers in the names have no leading zeros.
        paths.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
        for (&i, path) in members.iter().zip(paths) {
            if found[i].path.as_ref() != Some(&path) {
                found[i].path = Some(path);
                changed.push(i);
            }
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use vsrun_model::{Kind, Uid};

    fn found(identity: u64, kind: BugKind, values: &[u32], execution: u64, path: &str) -> Found {
        let prefix: Vec<Choice> = values.iter().map(|&v| Choice::new(Uid::MAIN, v, Kind::TOSS)).collect();
        let transitions = prefix.len() as u64;
        let schedule = Schedule { prefix, ..Schedule::default() };
        let mut found =
            Found::new(identity, kind, Candidate { schedule, transitions, execution, ..Candidate::default() });
        found.path = Some(path.into());
        found
    }

    #[test]
    fn one_of_the_last_beginning_stands_for_a_bug_then_the_shortest_then_the_first_in_order() {
        let mut bug = found(1, BugKind::Deadlock, &[1, 1, 1], 4, "d");
        let candidate = |values: &[u32], execution| found(1, BugKind::Deadlock, values, execution, "d").best;
        bug.offer(candidate(&[0, 0, 0, 0], 1));
        assert_eq!(bug.best.execution, 4);
        bug.offer(candidate(&[1, 0, 1], 7));
        assert_eq!(bug.best.execution, 7);
        bug.offer(candidate(&[1, 1, 0], 2));
        assert_eq!(bug.best.execution, 7);
        bug.offer(candidate(&[1], 9));
        assert_eq!(bug.best.execution, 9);
        bug.offer(Candidate { restarts: 1, ..candidate(&[1, 1, 1], 10) });
        assert_eq!(bug.best.execution, 10);
        bug.offer(candidate(&[1], 11));
        assert_eq!(bug.best.execution, 10);
    }

    #[test]
    fn the_order_of_finding_does_not_show() {
        let first = |path| found(1, BugKind::Deadlock, &[0, 1], 1, path);
        let second = |path| found(2, BugKind::Deadlock, &[1, 1], 2, path);
        let other = |path| found(3, BugKind::Crash, &[0], 3, path);
        let mut one = vec![first("p-deadlock-9"), second("p-deadlock-10"), other("p-crash-1")];
        let mut two = vec![second("p-deadlock-9"), other("p-crash-1"), first("p-deadlock-10")];
        assert_eq!(put_in_order(&mut one), Vec::<usize>::new());
        assert_eq!(put_in_order(&mut two), [1, 2]);
        let names = |all: &[Found]| all.iter().map(|f| (f.identity, f.path.clone())).collect::<Vec<_>>();
        assert_eq!(names(&one), names(&two));
        assert_eq!(one[0].identity, 3);
    }
}
