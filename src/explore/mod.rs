//! An exploration: a search, workers, bounds, and what is found on the way.

mod bounds;
mod found;
mod judge;
mod once;
mod progress;
mod save;
mod workers;

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use crate::args::{Config, SearchKind, Timeouts};
use crate::binary::{self, text, BinaryId};
use crate::report::{Bug, BugKind, Incomplete, ProgramStatus, Summary, Verdict, NEVER_CAME, NOT_PROVEN};
use crate::runtime::inspect::Inspector;
use crate::runtime::session::{self, Input};
use crate::runtime::tracee;
use crate::runtime::worker::{cpus, Spec, StartError, Worker};
use crate::scenario;
use crate::search::{self, Bound, Bounded, BoundedReduction, Pct, Search, Watch};
use crate::sharing::Sharing;
use crate::syscalls;

use found::{look, Found};
pub use judge::{examine, View};
use once::Once;
use progress::Progress;
use save::{Header, Saved, Saver};
use workers::{Counts, Shared, State, Stop};

/// Transitions of one execution when no bound is given and the search looks at every state.
const DEFAULT_DEPTH: u64 = 100_000;
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
    let client = |words: &Vec<OsString>| {
        let (program, args) = words.split_first().ok_or_else(|| Failure::environment("--with without a program"))?;
        let found = binary::resolve(program, args, &cwd, path.as_deref())
            .map_err(|refusal| Failure::environment(format!("--with: {}", refusal.message())))?;
        Ok(scenario::Client { exe: found.exe.into_os_string(), argv: found.argv })
    };
    let with = config.with.iter().map(client).collect::<Result<Vec<_>, Failure>>()?;
    let systematic =
        !matches!(config.search, SearchKind::Once | SearchKind::Random | SearchKind::Walk | SearchKind::Pct);
    let depth = config.bounds.depth.unwrap_or(if systematic { DEFAULT_DEPTH } else { u64::MAX });
    let spec = Spec {
        exe: launch.exe,
        argv: launch.argv,
        env: session::environment(),
        cwd,
        timeouts_any: config.timeouts == Timeouts::Any,
        inject: config.inject,
        allow_misuse: config.allow_misuse,
        livelock: config.livelock.unwrap_or(0),
        fail_on_exit: config.fail_on_exit,
        private_files: config.private_files(),
        with,
        stop_signal: config.stop_signal,
        divergence_timeout: config.divergence_timeout,
        max_depth: depth,
        objects: Arc::default(),
    };
    Ok((spec, launch.program))
}

/// What does not change while an exploration runs.
pub(crate) struct Setting<'a> {
    config: &'a Config,
    spec: Spec,
    /// Tells a changed program.
    identity: serde_json::Value,
    /// The script that the program interprets; empty if none.
    script: OsString,
}

impl Setting<'_> {
    /// The program as scenarios name it.
    fn program(&self) -> scenario::Program {
        scenario::Program {
            script: self.script.clone(),
            exe: self.spec.exe.clone().into_os_string(),
            argv: self.spec.argv.clone(),
            cwd: self.spec.cwd.clone().into_os_string(),
            env: self.spec.env.clone(),
        }
    }

    /// The options that executions depend on.
    fn options(&self, stdin: &str) -> scenario::Options {
        scenario::Options {
            timeouts_any: self.spec.timeouts_any,
            inject: self.spec.inject,
            allow_misuse: self.spec.allow_misuse,
            livelock: self.spec.livelock,
            fail_on_exit: self.spec.fail_on_exit,
            real_files: !self.spec.private_files,
            with: self.spec.with.clone(),
            stop_signal: self.spec.stop_signal,
            divergence_timeout_ms: self.spec.divergence_timeout.as_millis() as u64,
            max_depth: self.config.bounds.depth,
            seed: self.config.seed,
            stdin: stdin.to_string(),
        }
    }
}

fn search_of(config: &Config) -> Result<Box<dyn Search>, Failure> {
    match config.search {
        SearchKind::Once => Ok(Box::<Once>::default()),
        SearchKind::Pct => Ok(Box::new(Pct::new(config.seed, config.pct_depth))),
        SearchKind::Bounded(Bound::Preemptions(k)) => Ok(Box::new(BoundedReduction::new(k))),
        SearchKind::Bounded(bound) => Ok(Box::new(Bounded::new(bound))),
        kind => search::by_name(kind.name(), config.seed)
            .ok_or_else(|| Failure::own(format!("vsrun bug: no search {}", kind.name()))),
    }
}

/// What tells a search that its time is over, or that vsrun is asked to end.
fn watch(config: &Config, since: Instant) -> Watch {
    let until = config.bounds.time.map(|time| since + time);
    Watch::new(move || tracee::interrupted() || until.is_some_and(|until| Instant::now() >= until))
}

/// The CPUs of the workers. A search that runs one execution at a time has one worker.
fn places(config: &Config, search: &dyn Search, counts: &mut Counts) -> Vec<Option<usize>> {
    let cpus = cpus();
    let wanted = match config.workers {
        _ if config.search == SearchKind::Once => 1,
        None => cpus.len().max(1),
        Some(n) => n as usize,
    };
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
    stdin: &str,
) -> Result<Option<(Header, Counts)>, Failure> {
    let Some(path) = &setting.config.resume else { return Ok(None) };
    let (saved, note) = Saved::load(path).map_err(Failure::environment)?;
    let refused = |why: String| Failure::environment(format!("{} cannot be resumed: {why}", text::escape(path)));
    if let Some(why) = saved.header.mismatch(setting, stdin) {
        return Err(refused(why));
    }
    sharing.resume(&saved.header.sharing).map_err(|name| refused(format!("it was saved with another {name}")))?;
    search.restore(&saved.search).map_err(|why| refused(format!("it is damaged: {why}")))?;
    // Addresses depend on the environment, and what is known of bugs on addresses.
    setting.spec.env.clone_from(&saved.header.program.env);
    let mut counts = saved.header.counts();
    note.into_iter().for_each(|text| counts.note(&text));
    Ok(Some((saved.header, counts)))
}

/// An exploration ready to begin.
fn prepare(setting: &mut Setting, stdin: &str) -> Result<State, Failure> {
    let config = setting.config;
    let mut search = search_of(config)?;
    let mut sharing = Sharing::new(config)?;
    let (header, counts) = match resume(setting, (&mut *search, &mut sharing), stdin)? {
        Some((header, counts)) => (Some(header), counts),
        None => (None, Counts::default()),
    };
    search.watch(watch(config, Instant::now()));
    let before = (search.progress().unwrap_or(0.0), counts.executions);
    let mut state = State::new((search, sharing), counts, Progress::new(config, before));
    if let Some(header) = header {
        state.seconds_earlier = header.seconds;
        state.found = header.found().map(|found| (found.identity, found)).collect();
        state.passed_earlier = header.passed;
    }
    if let Some(path) = config.save.as_ref().or(config.resume.as_ref()) {
        let mut saver = Saver::new(path, stdin, state.seconds_earlier);
        // What cannot be saved is said before the work is done.
        save(setting, &state, &mut saver, state.found.values()).map_err(Failure::environment)?;
        state.saver = Some(saver);
    }
    Ok(state)
}

fn save<'f>(
    setting: &Setting,
    state: &State,
    saver: &mut Saver,
    found: impl Iterator<Item = &'f Found>,
) -> Result<(), String> {
    saver.save(setting, (&*state.search, &state.sharing), (&state.counts, &state.passed_calls()), found)
}

/// Explores; prints nothing but progress.
pub fn explore(config: &Config) -> Result<Summary, Failure> {
    let (spec, program) = spec_of(config)?;
    let once = config.search == SearchKind::Once;
    let input = Input::prepare(once)?;
    let mut shown = output_file(config.output.as_deref())?;
    let identity = identity_of(&spec.exe, &program, &spec.with)?;
    let direct = if once { Some(shown.try_clone()?) } else { None };
    let script = if program == spec.exe { OsString::new() } else { program.into_os_string() };
    let mut setting = Setting { config, spec, identity, script };
    let mut state = prepare(&mut setting, input.name())?;
    let places = places(config, &*state.search, &mut state.counts);
    let shared = Shared::new(&setting, input, state);
    let (mut worker, mut inspector) = shared.run(&places, config.workers.is_some(), direct)?;
    let mut state = shared.into_state();
    state.progress.clear();
    let found = finish_bugs(&setting, &mut worker, &mut inspector, &mut state)?;
    if let Some(mut saver) = state.saver.take() {
        let saved = save(&setting, &state, &mut saver, found.iter());
        let over = state.stop == Some(Stop::Over);
        let text = saved.err().or_else(|| (!over).then(|| saver.advice()));
        text.into_iter().for_each(|text| state.counts.note(&text));
    }
    let bugs: Vec<Bug> = found.into_iter().map(Found::into_bug).chain(state.unsupported.take()).collect();
    // The execution shown is that of the last bug, or, where a file was asked for, the last one.
    if !once && (!bugs.is_empty() || config.output.is_some()) {
        worker.output.copy_to(&mut shown)?;
    }
    Ok(summary(config, &worker, state, bugs))
}

/// Looks at the bugs once more that another execution has come to stand for, and puts them in order. The first worker
/// is left with the execution of the last bug.
fn finish_bugs(
    setting: &Setting,
    worker: &mut Worker,
    inspector: &mut Inspector,
    state: &mut State,
) -> Result<Vec<Found>, Failure> {
    // What was found is reported all the same; who asks again is heard again.
    tracee::forget_requests();
    let mut found: Vec<Found> = std::mem::take(&mut state.found).into_values().collect();
    let moved = found::put_in_order(&mut found);
    // One worker alone that stops at a bug has just looked at it.
    let in_hand = state.passed.len() == 1 && state.stop == Some(Stop::FirstBug) && !found.iter().any(Found::is_stale);
    let last = found.len().checked_sub(1).filter(|_| !in_hand);
    for (i, bug) in found.iter_mut().enumerate() {
        if bug.is_stale() || last == Some(i) {
            let key = (bug.kind, bug.identity);
            let Some((seen, note)) = look(worker, inspector, setting, key, &bug.best)? else { break };
            bug.show(seen);
            note.into_iter().for_each(|text| state.counts.note(&text));
        } else if !moved.contains(&i) {
            continue;
        }
        if let Err(e) = bug.write(setting) {
            state.counts.note(&e.to_string());
        }
    }
    Ok(found)
}

fn summary(config: &Config, worker: &Worker, mut state: State, bugs: Vec<Bug>) -> Summary {
    let stop = state.stop.unwrap_or(Stop::Over);
    let endless = matches!(config.search, SearchKind::Random | SearchKind::Walk | SearchKind::Pct);
    let cut = state.counts.cut;
    let exhaustive = stop == Stop::Over && state.search.exhaustive() && !cut;
    let last_words = match stop {
        Stop::Bound(_) | Stop::Interrupted => state.progress.last_words(config, &state.figures()),
        _ => None,
    };
    let passed_calls = syscalls::communicating(&state.passed_calls());
    let counts = &mut state.counts;
    let reason = match stop {
        Stop::Bound(reason) => Some(if endless { Incomplete::Random } else { reason }),
        Stop::Interrupted => {
            counts.note("interrupted: what follows is what was found until then");
            Some(Incomplete::Interrupted)
        }
        Stop::FirstBug | Stop::Failed => None,
        Stop::Over if exhaustive => None,
        Stop::Over if cut => Some(Incomplete::Depth),
        Stop::Over if config.search == SearchKind::Once => Some(Incomplete::Executions),
        Stop::Over => Some(Incomplete::Bound),
    };
    state.sharing.notes().iter().for_each(|text| counts.note(text));
    last_words.into_iter().for_each(|text| counts.note(&text));
    state.search.notes().iter().for_each(|text| counts.note(text));
    if counts.printed.len() > 1 {
        let n = counts.printed.len();
        counts.note(&format!(
            "executions that ran to their end differ in what they printed or exited with: {n} outcomes"
        ));
    }
    // What went to the kernel and could have mattered to others was not explored: then nothing is complete.
    let all_modelled = passed_calls.is_empty();
    let proven = !counts.notes.iter().any(|n| n.ends_with(NOT_PROVEN) || n.ends_with(NEVER_CAME));
    let reason = if exhaustive && !(all_modelled && proven) { Some(Incomplete::Bound) } else { reason };
    Summary {
        program: config.program.clone(),
        verdict: Verdict::of(&bugs),
        complete: exhaustive && all_modelled && proven && bugs.iter().all(|b| b.kind != BugKind::Error),
        incomplete_reason: reason,
        search: config.search.name().to_string(),
        executions: counts.executions - state.search.discarded(),
        transitions: state.search.transitions(),
        sleep_blocked: state.search.sleep_blocked(),
        traces: state.search.traces(),
        trace: (config.search == SearchKind::Once).then_some(worker.arena.trail),
        max_depth: counts.max_depth,
        workers: state.passed.iter().filter(|p| !p.is_empty()).count().max(1) as u32,
        seconds: state.seconds_earlier + state.started_at.elapsed().as_secs_f64(),
        program_status: worker.status().map(ProgramStatus::from_wait),
        notes: std::mem::take(&mut counts.notes),
        passed_calls,
        with: config.with.clone(),
        bugs,
    }
}

/// What tells a changed program: the file that is executed and, for a script, the script.
pub fn identity_of(exe: &Path, program: &Path, with: &[scenario::Client]) -> Result<serde_json::Value, Failure> {
    let of = |path: &Path| BinaryId::of(path).map_err(|e| Failure::environment(format!("{}: {e}", path.display())));
    let mut all = vec![of(exe)?];
    if exe != program {
        all.push(of(program)?);
    }
    for client in with {
        all.push(of(Path::new(&client.exe))?);
    }
    serde_json::to_value(all).map_err(|e| Failure::own(format!("vsrun bug: {e}")))
}

/// The arguments of a program for messages.
pub fn program_text(program: &[OsString]) -> String {
    program.iter().map(binary::text::escape).collect::<Vec<_>>().join(" ")
}
