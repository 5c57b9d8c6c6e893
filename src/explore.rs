//! An exploration: a search, a worker, bounds, and what is found on the way.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use vsrun_model::arena::Policy;
use vsrun_model::{End, World};

use crate::args::{Config, Format, SearchKind, Timeouts};
use crate::binary::{self, BinaryId};
use crate::report::identity::{fingerprint, fnv1a, text_fingerprint};
use crate::report::waits::headline;
use crate::report::{self, Bug, BugKind, Details, Incomplete, ProgramStatus, Summary, Verdict};
use crate::runtime::inspect::{self, with_names, Inspector, Seen};
use crate::runtime::session::{self, Input};
use crate::runtime::worker::{Ending, Outcome, Spec, StartError, Worker};
use crate::scenario::{self, Scenario, Then};
use crate::schedule::Schedule;
use crate::search::{self, Bounded, Pct, Search};
use crate::sharing::{Objects, Sharing};
use crate::syscalls;
use crate::trace::Trace;

/// Transitions of one execution when no bound is given and the search looks at every state.
const DEFAULT_DEPTH: u64 = 100_000;
/// How often a progress line is printed on a terminal, and otherwise.
const PROGRESS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// A failure that is not a bug of the program: exit code and one line.
#[derive(Debug)]
pub struct Failure {
    /// 2: usage, environment or unsupported program; 4: vsrun's own.
    pub code: i32,
    /// The line.
    pub message: String,
}

impl Failure {
    /// Something around vsrun is not as it must be.
    pub fn environment(message: impl Into<String>) -> Failure {
        Failure { code: 2, message: message.into() }
    }

    /// vsrun is at fault, or a replay diverged.
    pub fn own(message: impl Into<String>) -> Failure {
        Failure { code: 4, message: message.into() }
    }
}

impl From<StartError> for Failure {
    fn from(e: StartError) -> Failure {
        match e {
            StartError::Bug(_) => Failure::own(e.to_string()),
            _ => Failure::environment(e.to_string()),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Failure {
        Failure::environment(e.to_string())
    }
}

/// One execution with the default policy.
#[derive(Default)]
struct Once {
    given: bool,
    transitions: u64,
    choices: bool,
}

impl Search for Once {
    fn next(&mut self) -> Option<Schedule> {
        (!std::mem::replace(&mut self.given, true)).then(|| Schedule { blind: true, ..Schedule::default() })
    }
    fn done(&mut self, trace: &Trace) {
        self.transitions = trace.steps.len() as u64 + trace.unrecorded;
        self.choices = self.transitions > 0 || trace.end == End::DEPTH;
    }
    fn exhaustive(&self) -> bool {
        !self.choices
    }
    fn transitions(&self) -> u64 {
        self.transitions
    }
    fn sleep_blocked(&self) -> u64 {
        0
    }
}

/// Where the program's own output goes.
pub fn output_file(path: Option<&Path>) -> io::Result<File> {
    match path {
        Some(path) => OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
            .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display()))),
        // A duplicate shares its offset with vsrun's own messages.
        None => io::stderr().as_fd().try_clone_to_owned().map(File::from),
    }
}

/// The resolved program of a configuration.
fn spec_of(config: &Config) -> Result<(Spec, PathBuf), Failure> {
    let cwd = std::env::current_dir().map_err(|e| Failure::environment(format!("the current directory: {e}")))?;
    let path = std::env::var_os("PATH");
    let (program, args) = config.program.split_first().ok_or_else(|| Failure::environment("no program given"))?;
    let launch = binary::resolve(program, args, &cwd, path.as_deref())
        .map_err(|refusal| Failure::environment(refusal.message()))?;
    let systematic = !matches!(config.search, SearchKind::Once | SearchKind::Random | SearchKind::Pct);
    let depth = config.bounds.depth.unwrap_or(if systematic { DEFAULT_DEPTH } else { u64::MAX });
    let spec = Spec {
        exe: launch.exe,
        argv: launch.argv,
        env: session::environment(),
        cwd,
        timeouts_any: config.timeouts == Timeouts::Any,
        allow_misuse: config.allow_misuse,
        livelock: config.livelock.unwrap_or(0),
        fail_on_exit: config.fail_on_exit,
        divergence_timeout: config.divergence_timeout,
        max_depth: depth,
        objects: Objects::default(),
    };
    Ok((spec, launch.program))
}

/// One exploration under way.
struct Exploration<'a> {
    config: &'a Config,
    spec: Spec,
    identity: serde_json::Value,
    script: OsString,
    worker: Worker,
    search: Box<dyn Search>,
    sharing: Sharing,
    inspector: Inspector,
    known: BTreeSet<u64>,
    /// What executions that ran to their end printed and exited with, by hash.
    printed: BTreeSet<u64>,
    bugs: Vec<Bug>,
    notes: Vec<String>,
    executions: u64,
    max_depth: u64,
    cut: bool,
    started: Instant,
    reported: Instant,
}

/// Why the loop ended.
enum Stop {
    Over,
    FirstBug,
    Bound(Incomplete),
    Interrupted,
}

/// Explores; prints nothing but progress.
pub fn explore(config: &Config) -> Result<Summary, Failure> {
    let (spec, program) = spec_of(config)?;
    let once = config.search == SearchKind::Once;
    let input = Input::prepare(once)?;
    let shown = output_file(config.output.as_deref())?;
    let identity = identity_of(&spec.exe, &program)?;
    let direct = if once { Some(shown.try_clone()?) } else { None };
    let mut worker = Worker::start(spec.clone(), input, direct)?;
    let sharing = Sharing::start(config, &mut worker)?;
    let search = new_search(config)?;
    let now = Instant::now();
    let mut exploration = Exploration {
        config,
        script: if program == spec.exe { OsString::new() } else { program.into_os_string() },
        spec,
        identity,
        worker,
        search,
        sharing,
        inspector: Inspector::default(),
        known: BTreeSet::new(),
        printed: BTreeSet::new(),
        bugs: Vec::new(),
        notes: Vec::new(),
        executions: 0,
        max_depth: 0,
        cut: false,
        started: now,
        reported: now,
    };
    let stop = exploration.run()?;
    // The execution shown is that of the last bug, or, where a file was asked for, the last one.
    if !once && (!exploration.bugs.is_empty() || config.output.is_some()) {
        let mut shown = shown;
        exploration.worker.output.copy_to(&mut shown)?;
    }
    Ok(exploration.summary(stop))
}

/// The search that was asked for, at its beginning.
fn new_search(config: &Config) -> Result<Box<dyn Search>, Failure> {
    Ok(match config.search {
        SearchKind::Once => Box::<Once>::default(),
        SearchKind::Pct => Box::new(Pct::new(config.seed, config.pct_depth)),
        SearchKind::Bounded(bound) => Box::new(Bounded::new(bound)),
        kind => search::by_name(kind.name(), config.seed)
            .ok_or_else(|| Failure::own(format!("vsrun bug: no search {}", kind.name())))?,
    })
}

/// What tells a changed program: the file that is executed and, for a script, the script.
pub fn identity_of(exe: &Path, program: &Path) -> Result<serde_json::Value, Failure> {
    let of = |path: &Path| BinaryId::of(path).map_err(|e| Failure::environment(format!("{}: {e}", path.display())));
    let mut all = vec![of(exe)?];
    if exe != program {
        all.push(of(program)?);
    }
    serde_json::to_value(all).map_err(|e| Failure::own(format!("vsrun bug: {e}")))
}

impl Exploration<'_> {
    fn run(&mut self) -> Result<Stop, Failure> {
        let mut over_again = false;
        loop {
            let bounds = &self.config.bounds;
            if bounds.executions.is_some_and(|n| self.executions + self.sharing.earlier() >= n) {
                return Ok(Stop::Bound(Incomplete::Executions));
            }
            if bounds.time.is_some_and(|t| self.started.elapsed() >= t) {
                return Ok(Stop::Bound(Incomplete::Time));
            }
            if over_again {
                self.sharing.start_over(self.executions);
                self.search = new_search(self.config)?;
                (self.executions, self.cut) = (0, false);
            }
            let Some(schedule) = self.search.next() else { return Ok(Stop::Over) };
            let outcome = self.worker.run(&schedule)?;
            if outcome.ending == Ending::Interrupted || self.worker.signals.interrupted {
                return Ok(Stop::Interrupted);
            }
            self.executions += 1;
            self.max_depth = self.max_depth.max(outcome.trace.steps.len() as u64 + outcome.trace.unrecorded);
            self.search.done(&outcome.trace);
            self.sharing.look(&self.worker.arena, &outcome);
            self.cut |= outcome.trace.end == End::DEPTH;
            self.note_output(&outcome)?;
            if self.worker.arena.world.held_back {
                self.note(
                    "fair schedules only: a thread that calls sched_yield again and again was made to wait until another \
                     had moved",
                );
            }
            if self.judge(&schedule, &outcome)? && !self.config.keep_going {
                return Ok(Stop::FirstBug);
            }
            if self.bugs.iter().any(|b| b.kind == BugKind::Error) {
                return Ok(Stop::FirstBug);
            }
            over_again = self.sharing.learn(&mut self.worker)?;
            self.progress();
        }
    }

    /// Looks at how an execution ended. True: it showed a new bug.
    fn judge(&mut self, schedule: &Schedule, outcome: &Outcome) -> Result<bool, Failure> {
        let world = &self.worker.arena.world;
        let (kind, identity) = match &outcome.ending {
            Ending::Modelled => match outcome.trace.end {
                End::FINISHED | End::SLEEP_BLOCKED | End::DEPTH | End::WAITS_OUTSIDE => return Ok(false),
                End::MISMATCH | End::BUG => return Err(self.own_fault(outcome)),
                _ => match with_names(world, &Default::default(), |names| headline(world, names)) {
                    Some((kind, _)) => (kind, fingerprint(world)),
                    None => return Err(self.own_fault(outcome)),
                },
            },
            Ending::Crash { signal, .. } => (BugKind::Crash, self.place(outcome, BugKind::Crash, *signal)),
            Ending::Divergence => (BugKind::Divergence, self.place(outcome, BugKind::Divergence, 0)),
            Ending::Sits { thread, call } => {
                if waits_outside(world, call[0]) {
                    self.note("an execution ended with a process that waits for input from outside");
                    return Ok(false);
                }
                let summary = sits(world, *thread, call);
                let again = replayable(schedule, &outcome.trace);
                let view = examine(&mut self.worker, &mut self.inspector, &again)?;
                self.refuse(outcome, summary)?;
                if let Some(bug) = self.bugs.last_mut() {
                    bug.details = view.seen.details;
                    bug.details.steps = view.steps;
                }
                return Ok(true);
            }
            Ending::Died(status) => {
                let mut said = Vec::new();
                let _ = self.worker.output.copy_to(&mut said);
                let said = String::from_utf8_lossy(&said).lines().last().unwrap_or("").to_string();
                return Err(Failure::own(format!(
                    "vsrun bug: a process ended behind the model's back (status {status}) {said}"
                )));
            }
            Ending::Interrupted => return Ok(false),
        };
        if kind == BugKind::Error {
            let summary =
                with_names(world, &Default::default(), |names| headline(world, names)).map_or(String::new(), |h| h.1);
            return self.refuse(outcome, summary);
        }
        if !self.known.insert(identity) {
            return Ok(false);
        }
        let bug = self.examine(schedule, outcome, kind, identity)?;
        self.bugs.push(bug);
        Ok(true)
    }

    /// Keeps count of different outputs: a program that prints something else under another schedule is worth a look.
    fn note_output(&mut self, outcome: &Outcome) -> Result<(), Failure> {
        if self.config.search != SearchKind::Once
            && outcome.ending == Ending::Modelled
            && outcome.trace.end == End::FINISHED
        {
            let status = self.worker.status().unwrap_or(-1);
            let hash = fnv1a(self.worker.output.start()?.into_iter().chain(status.to_le_bytes()));
            self.printed.insert(hash);
        }
        Ok(())
    }

    fn own_fault(&self, outcome: &Outcome) -> Failure {
        let world = &self.worker.arena.world;
        let text = String::from_utf8_lossy(world.message()).into_owned();
        Failure::own(match outcome.trace.end {
            End::MISMATCH => format!(
                "vsrun bug: execution {} did not follow its schedule at step {}: {}; the program may depend on something \
                 that vsrun does not control",
                self.executions,
                world.end_code + 1,
                mismatch(world, &outcome.trace)
            ),
            _ => format!("vsrun bug: {text}"),
        })
    }

    /// What tells one crash or divergence from another before it has been looked at: signal, thread, last operation.
    fn place(&self, outcome: &Outcome, kind: BugKind, signal: i32) -> u64 {
        let world = &self.worker.arena.world;
        let uid = world.threads.get(world.current).map_or(String::new(), |t| t.uid.to_string());
        let last = outcome.trace.steps.last();
        let op = last.map_or("start", |s| s.act.op.kind.name());
        text_fingerprint(kind, &[&signal.to_string(), &uid, op])
    }

    /// Something that vsrun does not support: the exploration is over.
    fn refuse(&mut self, outcome: &Outcome, summary: String) -> Result<bool, Failure> {
        self.bugs.push(Bug {
            kind: BugKind::Error,
            summary: format!("unsupported: {summary}"),
            scenario: None,
            execution: self.executions,
            transitions: outcome.trace.steps.len() as u64,
            details: Details::default(),
        });
        Ok(true)
    }

    /// Runs the execution once more under the tracer, looks around, and writes the scenario.
    fn examine(
        &mut self,
        schedule: &Schedule,
        outcome: &Outcome,
        kind: BugKind,
        identity: u64,
    ) -> Result<Bug, Failure> {
        let again = replayable(schedule, &outcome.trace);
        let view = examine(&mut self.worker, &mut self.inspector, &again)?;
        let transitions = outcome.trace.steps.len() as u64 + outcome.trace.unrecorded;
        if view.ending != outcome.ending || view.trace.end != outcome.trace.end {
            self.note(&format!(
                "execution {} ended otherwise when it was run again under the tracer: the program depends on something \
                 that vsrun does not control",
                self.executions
            ));
        }
        let scenario = self.scenario(&again, &view, kind, identity);
        let path = match scenario.write(&self.config.scenario_dir) {
            Ok(path) => Some(path),
            Err(e) => {
                self.note(&e.to_string());
                None
            }
        };
        let mut details = view.seen.details;
        details.steps = view.steps;
        Ok(Bug { kind, summary: view.summary, scenario: path, execution: self.executions, transitions, details })
    }

    fn scenario(&self, schedule: &Schedule, view: &View, kind: BugKind, identity: u64) -> Scenario {
        let config = self.config;
        let rest = view.trace.unrecorded > 0;
        let steps = with_names(&self.worker.arena.world, &view.seen.objects, |names| {
            // Steps that were too many to record are repeated by the schedule that made them.
            let all = if rest { &[] } else { view.trace.steps.as_slice() };
            report::views::scenario_steps(all, names)
        });
        Scenario {
            program: scenario::Program {
                script: self.script.clone(),
                exe: self.spec.exe.clone().into_os_string(),
                argv: self.spec.argv.clone(),
                cwd: self.spec.cwd.clone().into_os_string(),
                env: self.spec.env.clone(),
            },
            fingerprint: self.identity.clone(),
            options: scenario::Options {
                timeouts_any: self.spec.timeouts_any,
                allow_misuse: self.spec.allow_misuse,
                livelock: self.spec.livelock,
                fail_on_exit: self.spec.fail_on_exit,
                divergence_timeout_ms: self.spec.divergence_timeout.as_millis() as u64,
                max_depth: config.bounds.depth,
                seed: config.seed,
                stdin: self.worker.input_name().to_string(),
            },
            bug: scenario::Shown { kind, summary: view.summary.clone(), identity },
            found: scenario::Found { search: config.search.name().to_string(), execution: self.executions },
            steps,
            then: rest.then(|| Then::new(schedule.policy, schedule.seed)),
            objects: self.sharing.objects().clone(),
        }
    }

    fn note(&mut self, text: &str) {
        if !self.notes.iter().any(|n| n == text) {
            self.notes.push(text.to_string());
        }
    }

    fn progress(&mut self) {
        let terminal = io::stderr().is_terminal();
        let every = if terminal { PROGRESS.0 } else { PROGRESS.1 };
        if self.config.format == Format::Json
            || self.config.search == SearchKind::Once
            || self.reported.elapsed() < every
        {
            return;
        }
        self.reported = Instant::now();
        let seconds = self.started.elapsed().as_secs_f64();
        let line = format!(
            "{} executions, {:.0}/s, {} transitions, deepest {}, {} bugs",
            self.executions,
            self.executions as f64 / seconds,
            self.search.transitions(),
            self.max_depth,
            self.bugs.len()
        );
        let _ = if terminal { write!(io::stderr(), "\r\x1b[K{line}") } else { writeln!(io::stderr(), "vsrun: {line}") };
    }

    fn summary(mut self, stop: Stop) -> Summary {
        if io::stderr().is_terminal() && self.reported != self.started {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
        let endless = matches!(self.config.search, SearchKind::Random | SearchKind::Pct);
        let exhaustive = matches!(stop, Stop::Over) && self.search.exhaustive() && !self.cut;
        let reason = match stop {
            Stop::Bound(reason) => Some(if endless { Incomplete::Random } else { reason }),
            Stop::Interrupted => {
                self.note("interrupted: what follows is what was found until then");
                Some(Incomplete::Time)
            }
            Stop::FirstBug => None,
            Stop::Over if exhaustive => None,
            Stop::Over if self.cut => Some(Incomplete::Depth),
            Stop::Over if self.config.search == SearchKind::Once => Some(Incomplete::Executions),
            Stop::Over => Some(Incomplete::Bound),
        };
        for note in self.sharing.notes() {
            self.note(&note);
        }
        if self.printed.len() > 1 {
            let n = self.printed.len();
            self.note(&format!(
                "executions that ran to their end differ in what they printed or exited with: {n} outcomes"
            ));
        }
        let passed_calls = syscalls::communicating(&self.worker.arena.control.passed);
        // What went to the kernel and could have mattered to others was not explored: then nothing is complete.
        let all_modelled = passed_calls.is_empty();
        let reason = if exhaustive && !all_modelled { Some(Incomplete::Bound) } else { reason };
        Summary {
            program: self.config.program.clone(),
            verdict: Verdict::of(&self.bugs),
            complete: exhaustive && all_modelled && self.bugs.iter().all(|b| b.kind != BugKind::Error),
            incomplete_reason: reason,
            search: self.config.search.name().to_string(),
            executions: self.executions,
            transitions: self.search.transitions(),
            sleep_blocked: self.search.sleep_blocked(),
            max_depth: self.max_depth,
            workers: 1,
            seconds: self.started.elapsed().as_secs_f64(),
            program_status: self.worker.status().map(ProgramStatus::from_wait),
            notes: self.notes,
            passed_calls,
            bugs: self.bugs,
        }
    }
}

/// A schedule that leads through all recorded steps of a trace; one whose steps were too many to record is its own.
fn replayable(schedule: &Schedule, trace: &Trace) -> Schedule {
    if trace.unrecorded > 0 {
        return Schedule { record: false, blind: false, ..schedule.clone() };
    }
    let prefix = trace.choices(trace.steps.len());
    Schedule { prefix, policy: Policy::STAY, ..Schedule::default() }
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
pub fn mismatch(world: &World, trace: &Trace) -> String {
    let pending: Vec<_> = trace
        .last
        .iter()
        .map(|s| format!("{} at {}{}", s.act.uid, s.act.op.kind.name(), if s.choices == 0 { " (blocked)" } else { "" }))
        .collect();
    let _ = world;
    if pending.is_empty() {
        "no thread was left".to_string()
    } else {
        format!("threads were: {}", pending.join(", "))
    }
}

/// The arguments of a program for messages.
pub fn program_text(program: &[OsString]) -> String {
    program.iter().map(binary::text::escape).collect::<Vec<_>>().join(" ")
}
