//! The programs of c-tests, from end to end: vsrun must judge each as its NAME.expect says (format: c-tests/README.md),
//! with and without reduction; each scenario must replay; nothing may stay behind.
//!
//! `VSRUN_CT=WORD` runs only the programs whose name has WORD in it, `VSRUN_SLOW=1` also the slow cases.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::Value;

/// One run of vsrun, of the compiler, or of the program itself may take so long.
const LIMIT: Duration = Duration::from_secs(60);
/// The same for slow cases.
const SLOW_LIMIT: Duration = Duration::from_secs(900);
/// What a run leaves behind must be gone after so long.
const GRACE: Duration = Duration::from_secs(5);
/// Programs tested at the same time; vsrun itself keeps one CPU busy.
const WORKERS: usize = 2;
/// Processes of a run are known by this variable, if they keep their environment.
const MARK: &str = "VSRUN_CT_RUN";

/// How a case is run.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// `None`: as the options say.
    search: Option<&'static str>,
    /// Workers; with several of them the program and its scenarios are to come out the same.
    workers: u32,
    /// With memory watched. Counts are those of what is visible only.
    watched: bool,
}

impl Way {
    fn words(self) -> String {
        let watched = if self.watched { " watched" } else { "" };
        format!("{} -j {}{watched}", self.search.unwrap_or("as given"), self.workers)
    }

    /// Whether the schedules of bugs are shortened: what others write is as the search found it.
    fn shortens(self) -> bool {
        self.workers == 1 && matches!(self.search, None | Some("optimal"))
    }

    /// Whether the report as text is looked at, too, and each scenario replayed a second time. Not with every search: a run of vsrun
    /// takes some 40 ms whatever it does, and there are thousands of these.
    fn closely(self) -> bool {
        let naive = self.search == Some("naive") && slow_runs();
        self.workers == 1 && (naive || matches!(self.search, None | Some("optimal")))
    }
}

/// A case of an .expect file.
#[derive(Clone, Debug, Default)]
struct Case {
    name: String,
    args: Vec<String>,
    cflags: Vec<String>,
    /// The source makes a library, too: PROGRAM.so.
    library: bool,
    verdict: String,
    exit: Option<i32>,
    options: Option<Vec<String>>,
    transitions: Option<u64>,
    executions: Option<u64>,
    /// The same for the search that the options name.
    own_transitions: Option<u64>,
    own_executions: Option<u64>,
    summary: Option<String>,
    /// Lines of an annotation file.
    annotations: Option<String>,
    /// Verdict and exit status where memory is watched, if they differ then.
    watched: Option<(String, i32)>,
    /// It takes long then.
    watched_is_slow: bool,
    slow: bool,
    /// With `naive` it takes long: that is for slow runs.
    naive_is_slow: bool,
    /// Ways that are much alike take long: those are for slow runs.
    alike_are_slow: bool,
}

impl Case {
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let words = || value.split_whitespace().map(String::from).collect();
        let number = || value.parse().map_err(|_| format!("{key} = {value}: not a number"));
        match key {
            "args" => self.args = words(),
            "cflags" => self.cflags = words(),
            "library" => self.library = value == "yes",
            "verdict" => self.verdict = value.into(),
            "exit" => self.exit = Some(number()? as i32),
            "options" => self.options = Some(words()),
            "naive.transitions" => self.transitions = Some(number()?),
            "naive.executions" => self.executions = Some(number()?),
            "transitions" => self.own_transitions = Some(number()?),
            "executions" => self.own_executions = Some(number()?),
            "annotations" => self.annotations = Some(value.replace("; ", "\n")),
            "summary" => self.summary = Some(value.into()),
            "watched" if value == "slow" => self.watched_is_slow = true,
            "watched" => {
                let (verdict, exit) = value.split_once(' ').ok_or("watched: not a verdict and an exit status")?;
                self.watched = Some((verdict.into(), exit.parse().map_err(|_| format!("watched = {value}"))?));
            }
            "slow" => self.slow = value == "yes",
            "naive" if value == "slow" => self.naive_is_slow = true,
            "alike" if value == "slow" => self.alike_are_slow = true,
            _ => return Err(format!("unknown key {key}")),
        }
        Ok(())
    }

    fn options(&self) -> Vec<String> {
        self.options.clone().unwrap_or_else(|| vec!["--keep-going".into()])
    }

    fn once(&self) -> bool {
        self.options().iter().any(|o| o == "--once")
    }

    /// The ways to try.
    fn ways(&self) -> Vec<Way> {
        let given = self.once() || self.options().iter().any(|o| o.starts_with("--search") || o == "--bound");
        match given {
            true => vec![Way { search: None, workers: 1, watched: false }],
            false => [("naive", 1), ("naive", 2), ("dpor", 1), ("sss", 1), ("if-sss", 1)]
                .into_iter()
                .chain([("optimal", 1), ("optimal", 2), ("optimal", 3)])
                .filter(|(search, _)| !self.naive_is_slow || *search != "naive" || slow_runs())
                .filter(|way| slow_runs() || self.takes_turn(*way))
                .map(|(search, workers)| Way {
                    search: Some(search),
                    workers,
                    watched: workers == 3 && self.is_watched(),
                })
                .collect(),
        }
    }

    /// Ways that are much alike take turns: each is for a sixth of the cases, three workers where memory is watched, too; in slow runs all are for all.
    fn takes_turn(&self, way: (&str, u32)) -> bool {
        let letters = self.letters();
        match way {
            ("naive" | "optimal", 1) => true,
            _ if self.alike_are_slow => false,
            ("dpor", _) => letters.is_multiple_of(6),
            ("sss", _) => letters % 6 == 1,
            ("if-sss", _) => letters % 6 == 2,
            ("naive", 2) => letters % 6 == 3,
            ("optimal", 2) => letters % 6 == 4,
            _ => letters % 6 == 5 || self.is_watched(),
        }
    }

    /// Whether it is explored once more, for the report as text, where JSON has said what is to stand there: that is for a sixth of the cases.
    fn takes_text(&self) -> bool {
        slow_runs() || self.letters() % 6 == 5
    }

    /// Tells cases apart, the same in each run.
    fn letters(&self) -> u32 {
        self.args.iter().chain([&self.name]).flat_map(|word| word.bytes()).map(u32::from).sum()
    }

    /// One of five cases is run with memory watched, whichever; in slow runs all of them.
    fn is_watched(&self) -> bool {
        slow_runs() || self.letters().is_multiple_of(5) && !self.watched_is_slow
    }

    /// The verdict that is to be.
    fn verdict(&self, way: Way) -> &str {
        match &self.watched {
            Some((verdict, _)) if way.watched => verdict,
            _ => &self.verdict,
        }
    }

    fn exit_is_right(&self, way: Way, code: i32) -> bool {
        let exit = self.watched.as_ref().filter(|_| way.watched).map_or(self.exit, |(_, exit)| Some(*exit));
        match (exit, self.verdict(way)) {
            (Some(exit), _) => code == exit,
            (None, "ok") => code == 0 || code == 3,
            (None, _) => code == 1,
        }
    }
}

fn parse(text: &str) -> Result<Vec<Case>, String> {
    let mut cases = vec![Case::default()];
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            cases.push(Case { name: name.into(), ..Case::default() });
        } else {
            let (key, value) = line.split_once('=').ok_or_else(|| format!("not understood: {line}"))?;
            cases.last_mut().expect("begins with one").set(key.trim(), value.trim())?;
        }
    }
    cases.retain(|c| !c.name.is_empty() || !c.verdict.is_empty());
    match cases.iter().find(|c| c.verdict.is_empty()) {
        Some(c) => Err(format!("case [{}] has no verdict", c.name)),
        None if cases.is_empty() => Err("no case".into()),
        None => Ok(cases),
    }
}

/// A directory that goes away with this value.
struct TempDir(PathBuf);

impl TempDir {
    fn create() -> TempDir {
        let path = std::env::temp_dir().join(format!("vsrun-ct-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary directory");
        TempDir(path)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a command did.
struct Done {
    status: ExitStatus,
    stdout: String,
    stderr: String,
}

/// Runs a command to its end, in its own process group, with its output in files of `dir`.
fn run(command: &mut Command, dir: &Path, limit: Duration) -> Result<Done, String> {
    let text = |name: &str| String::from_utf8_lossy(&fs::read(dir.join(name)).unwrap_or_default()).into_owned();
    let file = |name: &str| File::create(dir.join(name)).map_err(|e| format!("{name}: {e}"));
    command.stdin(Stdio::null()).stdout(file("stdout")?).stderr(file("stderr")?).process_group(0);
    let mut child = command.spawn().map_err(|e| format!("{:?}: {e}", command.get_program()))?;
    let since = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            return Ok(Done { status, stdout: text("stdout"), stderr: text("stderr") });
        }
        if since.elapsed() > limit {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("no end within {} s; stderr: {}", limit.as_secs(), last_lines(&text("stderr"))));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(2));
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().collect();
    lines[lines.len().saturating_sub(3)..].join(" | ")
}

/// Processes of a run: those that have its mark or whose program lies in its directory.
fn processes(mark: &str, dir: &Path) -> Vec<String> {
    let wanted = format!("{MARK}={mark}");
    let ours = |pid: &str| {
        let proc = Path::new("/proc").join(pid);
        let marked = || {
            let environment = fs::read(proc.join("environ")).unwrap_or_default();
            environment.split(|&b| b == 0).any(|word| word == wanted.as_bytes())
        };
        fs::read_link(proc.join("exe")).is_ok_and(|exe| exe.starts_with(dir)) || marked()
    };
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = names.filter_map(|entry| entry.file_name().into_string().ok());
    pids.filter(|pid| pid.parse::<i32>().is_ok() && ours(pid)).collect()
}

/// Waits until `left` finds nothing; what it still finds after a while otherwise.
fn settles(left: impl Fn() -> Vec<String>) -> Vec<String> {
    let since = Instant::now();
    loop {
        let found = left();
        if found.is_empty() || since.elapsed() > GRACE {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What lies in /dev/shm and which SysV sets there are, but for what other runs of vsrun that are alive have there.
fn shared_things() -> BTreeSet<String> {
    let commands: Vec<Vec<u8>> = (fs::read_dir("/proc").into_iter().flatten().flatten())
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .collect();
    let used = |name: &str| {
        let name = name.as_bytes();
        name.starts_with(b"vsrun-") && commands.iter().any(|c| c.windows(name.len()).any(|w| w == name))
    };
    let names = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let sets = fs::read_to_string("/proc/sysvipc/sem").unwrap_or_default();
    let set = |line: &str| line.split_whitespace().nth(1).map(|id| format!("semaphore set {id}"));
    names.filter(|name| !used(name)).chain(sets.lines().skip(1).filter_map(set)).collect()
}

/// One program and its cases, with a directory of its own.
struct Program {
    name: String,
    source: PathBuf,
    dir: PathBuf,
}

/// What a run found.
#[derive(Clone, Debug, PartialEq)]
struct Found {
    verdict: String,
    /// Of a complete search: its bugs.
    bugs: Option<BTreeSet<String>>,
    /// Of a complete search: what does not depend on the number of workers.
    exact: Option<Exact>,
}

/// Bugs in order, with their transitions; executions, transitions, longest execution.
type Exact = (Vec<(String, u64)>, [u64; 3]);

/// What was wrong in a run.
type Failures = Vec<String>;

impl Program {
    fn compile(&self, case: &Case, known: &mut BTreeMap<Vec<String>, PathBuf>) -> Result<PathBuf, String> {
        if let Some(binary) = known.get(&case.cflags) {
            return Ok(binary.clone());
        }
        let cxx = self.source.extension().is_some_and(|e| e == "cc");
        // The name of the file is in messages and traces, so it stays; each variant has its directory.
        let dir = self.dir.join(format!("build{}", known.len()));
        fs::create_dir_all(&dir).map_err(|e| e.to_string())?;
        let binary = dir.join(&self.name);
        let mut command = Command::new(if cxx { "g++" } else { "gcc" });
        command.args(cxx.then_some("-std=c++20")).args(&case.cflags).arg("-O1").arg("-o").arg(&binary);
        command.arg(&self.source).arg("-lpthread");
        let done = run(&mut command, &dir, LIMIT)?;
        if !done.status.success() {
            return Err(format!("does not compile: {}", last_lines(&done.stderr)));
        }
        if case.library {
            let mut command = Command::new("gcc");
            command
                .args(&case.cflags)
                .args(["-O1", "-shared", "-fPIC", "-DLIBRARY", "-o"])
                .arg(dir.join(format!("{}.so", self.name)));
            let done = run(command.arg(&self.source), &dir, LIMIT)?;
            if !done.status.success() {
                return Err(format!("the library does not compile: {}", last_lines(&done.stderr)));
            }
        }
        known.insert(case.cflags.clone(), binary.clone());
        Ok(binary)
    }

    fn vsrun(&self, dir: &Path, arguments: &[OsString], limit: Duration) -> Result<Done, String> {
        let mark = dir.to_string_lossy().into_owned();
        let mut command = Command::new(env!("CARGO_BIN_EXE_vsrun"));
        let done = run(command.args(arguments).env(MARK, &mark).current_dir(dir), dir, limit);
        let left = settles(|| processes(&mark, &self.dir));
        match done {
            Ok(_) if !left.is_empty() => Err(format!("processes left: {}", left.join(" "))),
            done => done,
        }
    }

    /// Explores one case; gives what was found.
    fn explore(&self, case: &Case, binary: &Path, way: Way, dir: &Path) -> Result<Found, Failures> {
        let search = way.search;
        let scenarios = dir.join("scenarios");
        fs::create_dir_all(&scenarios).map_err(|e| vec![e.to_string()])?;
        let output = dir.join("output");
        let mut arguments: Vec<OsString> = case.options().into_iter().map(Into::into).collect();
        if let Some(search) = search {
            arguments.extend(["--search".into(), search.into()]);
        }
        if let Some(text) = &case.annotations {
            let path = dir.join("annotations");
            fs::write(&path, text).map_err(|e| vec![e.to_string()])?;
            arguments.extend(["--annotations".into(), path.into()]);
        }
        if !arguments.iter().any(|a| a == "--race") {
            arguments.extend(["--race".into(), if way.watched { "explore" } else { "off" }.into()]);
        }
        arguments.extend(["-j".into(), way.workers.to_string().into()]);
        if !way.shortens() {
            arguments.extend(["--shrink".into(), "0".into()]);
        }
        arguments.extend(["--scenario-dir".into(), scenarios.clone().into(), "--output".into(), output.clone().into()]);
        let report = |form: &str| {
            let format = ["--format".into(), form.into(), binary.into()];
            let all: Vec<OsString> = arguments.iter().cloned().chain(format).chain(case_args(case)).collect();
            self.vsrun(dir, &all, if case.slow { SLOW_LIMIT } else { LIMIT })
        };
        let done = report("json").map_err(|e| vec![e])?;
        let value: Value = serde_json::from_str(&done.stdout).map_err(|e| {
            vec![format!("no JSON object on stdout ({e}), {}; stderr: {}", done.status, last_lines(&done.stderr))]
        })?;
        let mut wrong = check(case, way, &value, &done);
        if case.once() && case.verdict == "ok" {
            wrong.extend(compare_with_native(case, binary, dir, &output, &value).err());
        }
        wrong.extend(self.replay_all(&value, &scenarios, dir, way.closely()));
        let wanted = |summary: &&String| way.closely() && (case.takes_text() || !is_said(&value, summary));
        if let Some(summary) = case.summary.as_ref().filter(wanted) {
            match report("text") {
                Ok(done) if done.stdout.contains(summary.as_str()) || is_told(&value, summary) => {}
                Ok(done) => wrong.push(format!("no {summary:?} in the report: {}", first_line(&done.stdout))),
                Err(e) => wrong.push(format!("text report: {e}")),
            }
        }
        match wrong.is_empty() {
            true => Ok(found(&value)),
            false => Err(wrong),
        }
    }

    /// Replays each scenario, `twice` if so; then both must show the same.
    fn replay_all(&self, value: &Value, scenarios: &Path, dir: &Path, twice: bool) -> Failures {
        let mut wrong = Vec::new();
        let files: BTreeSet<_> = fs::read_dir(scenarios).into_iter().flatten().flatten().map(|e| e.path()).collect();
        let unfinished = value["unfinished"]["scenario"].as_str().map(PathBuf::from);
        let named: BTreeSet<_> = (value["bugs"].as_array().into_iter().flatten())
            .filter_map(|bug| bug["scenario"].as_str().map(PathBuf::from))
            .chain(unfinished.clone())
            .collect();
        if files != named {
            wrong.push(format!("scenarios written {files:?}, reported {named:?}"));
        }
        wrong.extend((value["bugs"].as_array().into_iter().flatten()).filter_map(other_run));
        for file in &files {
            let status = if unfinished.as_ref() == Some(file) { 3 } else { 1 };
            let replay = || {
                let output = dir.join("output");
                let arguments: Vec<OsString> =
                    vec!["replay".into(), "--output".into(), output.clone().into(), file.into()];
                let done = self.vsrun(dir, &arguments, LIMIT)?;
                match done.status.code() {
                    Some(code) if code == status => {
                        Ok((comparable(&done.stdout).to_string(), fs::read(output).unwrap_or_default()))
                    }
                    _ => Err(format!("{}; stderr: {}", done.status, last_lines(&done.stderr))),
                }
            };
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let both = replay().and_then(|first| Ok((if twice { replay()? } else { first.clone() }, first)));
            match both {
                Ok((second, first)) if first != second => {
                    let differ = first.0.lines().zip(second.0.lines()).find(|(a, b)| a != b);
                    wrong.push(format!("two replays of {name} differ: {differ:?}"));
                }
                Ok(_) => {}
                Err(e) => wrong.push(format!("replay of {name}: {e}")),
            }
        }
        wrong
    }

    fn test(&self, case: &Case, binary: &Path) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut all: Vec<Found> = Vec::new();
        let mut optimal: Option<([u64; 2], BTreeSet<String>)> = None;
        for way in case.ways() {
            let since = Instant::now();
            let words = way.words();
            let dir = self.dir.join(format!("{}-{words}", case.name).replace(' ', "_"));
            let result = self.explore(case, binary, way, &dir);
            let _ = fs::remove_dir_all(&dir);
            let failures = match result {
                // What it finds beyond the others is its own.
                Ok(_) if way.watched => Vec::new(),
                Ok(found) => {
                    let differs = differs_from(&mut optimal, way, &found);
                    all.push(found);
                    differs.into_iter().collect()
                }
                Err(failures) => failures,
            };
            lines.push(Line::new(&self.name, &case.name, &words, since, failures));
        }
        if let [one, others @ ..] = all.as_slice() {
            let twice = matches!(case.ways()[..], [first, second, ..] if first.search == second.search);
            for (other, line) in others.iter().zip(&mut lines[1..]).take(twice.into()) {
                if one.exact != other.exact {
                    line.failures.push(format!("it depends on the number of workers: {one:?} {other:?}"));
                }
            }
            for (other, line) in others.iter().zip(&mut lines[1..]) {
                let differ = one.bugs.is_some() && other.bugs.is_some() && one.bugs != other.bugs;
                if one.verdict != other.verdict || differ {
                    line.failures.push(format!("the searches disagree: {one:?} {other:?}"));
                }
            }
        }
        lines
    }
}

/// A schedule that was shortened has fewer switches, or as many and fewer steps, or as many of both and fewer tosses; never more steps.
fn is_shorter(how: &Value) -> bool {
    let [from, to] = ["from", "to"].map(|which| ["switches", "steps", "tosses"].map(|key| how[which][key].as_u64()));
    to < from && to[1] <= from[1]
}

/// What is reported of a bug is what its scenario shows: where they are of different runs.
fn other_run(bug: &Value) -> Option<String> {
    let text = fs::read(bug["scenario"].as_str()?).unwrap_or_default();
    let scenario: Value = serde_json::from_slice(&text).unwrap_or_default();
    let whole = scenario.get("then").is_none();
    let steps = scenario["steps"].as_array().map(Vec::len);
    let same = ["kind", "summary"].iter().all(|key| scenario["bug"][key] == bug[key])
        && (!whole || steps.map(|n| n as u64) == bug["transitions"].as_u64())
        && bug.get("shortened").is_none_or(|how| is_shorter(how) && scenario["found"]["shortened"] == *how);
    (!same).then(|| format!("{bug}, and the scenario has {steps:?} steps and {}", scenario["bug"]))
}

/// With `optimal` complete searches have the same executions, transitions and bugs whatever the number of workers. An
/// execution that was run ahead for nothing may be the longest, or stand for a bug.
fn differs_from(first: &mut Option<([u64; 2], BTreeSet<String>)>, way: Way, found: &Found) -> Option<String> {
    let ((_, [executions, transitions, _]), bugs) = found.exact.as_ref().zip(found.bugs.clone())?;
    if way.search != Some("optimal") {
        return None;
    }
    let now = ([*executions, *transitions], bugs);
    let one = first.get_or_insert_with(|| now.clone());
    (*one != now).then(|| format!("it depends on the number of workers: {one:?} {now:?}"))
}

fn case_args(case: &Case) -> impl Iterator<Item = OsString> + '_ {
    case.args.iter().map(Into::into)
}

fn found(value: &Value) -> Found {
    // Where a crash or a divergence is depends on which of several equal ones came first.
    let name = |bug: &Value| match text_of(&bug["kind"]).as_str() {
        kind @ ("crash" | "divergence") => kind.to_string(),
        _ => text_of(&bug["summary"]),
    };
    let bugs = || value["bugs"].as_array().into_iter().flatten();
    let complete = value["complete"] == true;
    let length = |bug: &Value| bug["transitions"].as_u64().unwrap_or(0);
    let counts = ["executions", "transitions", "max_depth"].map(|key| value[key].as_u64().unwrap_or(0));
    Found {
        verdict: text_of(&value["verdict"]),
        bugs: complete.then(|| bugs().map(name).collect()),
        exact: complete.then(|| (bugs().map(|b| (name(b), length(b))).collect(), counts)),
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), String::from)
}

/// A bug's line in JSON has these words.
fn is_told(value: &Value, words: &str) -> bool {
    value["bugs"].as_array().into_iter().flatten().any(|bug| text_of(&bug["summary"]).contains(words))
}

/// What these words of the report as text say is said, in these words or by a field.
fn is_said(value: &Value, words: &str) -> bool {
    let complete = value["complete"] == true;
    match words {
        "explored completely." => complete,
        "explored completely. Memory was watched" => complete && value["watched"] == true,
        _ => {
            let mut notes = value["notes"].as_array().into_iter().flatten();
            is_told(value, words) || notes.any(|note| text_of(note).contains(words))
        }
    }
}

fn first_line(text: &str) -> &str {
    text.lines().find(|l| !l.trim().is_empty()).unwrap_or("")
}

/// What one execution printed and how it ended, against a run without vsrun.
fn compare_with_native(case: &Case, binary: &Path, dir: &Path, output: &Path, value: &Value) -> Result<(), String> {
    let native = dir.join("native");
    fs::create_dir_all(&native).map_err(|e| e.to_string())?;
    let done = run(Command::new(binary).args(&case.args).current_dir(&native), &native, LIMIT)?;
    let ours = fs::read_to_string(output).unwrap_or_default();
    let theirs = format!("{}{}", done.stderr, done.stdout);
    if ours != theirs {
        return Err(format!("its output is {ours:?}, natively {theirs:?}"));
    }
    let status = match (done.status.code(), done.status.signal()) {
        (Some(code), _) => serde_json::json!({ "exit": code }),
        (_, signal) => serde_json::json!({ "signal": signal }),
    };
    match &value["program_status"] {
        ours if *ours == status => Ok(()),
        ours => Err(format!("its status is {ours}, natively {status}")),
    }
}

/// What of the report of a replay must be the same each time. Where in its loop a divergence is when its time is up is
/// left to chance; what led there is not.
fn comparable(report: &str) -> &str {
    let steps = report.find("\nHow it came about").filter(|_| report.starts_with("DIVERGENCE"));
    &report[steps.unwrap_or(0)..]
}

/// What the report says, against what is expected.
fn check(case: &Case, way: Way, value: &Value, done: &Done) -> Failures {
    let search = way.search;
    let mut wrong = Vec::new();
    let verdict = text_of(&value["verdict"]);
    if verdict != case.verdict(way) {
        let summary = value["bugs"][0]["summary"].as_str().unwrap_or("");
        let expected = case.verdict(way);
        wrong.push(format!("verdict {verdict} instead of {expected}: {summary} {}", last_lines(&done.stderr)));
    }
    match done.status.code() {
        Some(code) if case.exit_is_right(way, code) => {}
        _ => wrong.push(format!("{}; stderr: {}", done.status, last_lines(&done.stderr))),
    }
    // The counts of a search that is cut short depend on what else is under way.
    let counted = way.workers == 1 || value["complete"] == true;
    let counts = match search.filter(|_| counted) {
        Some("naive") => [("transitions", case.transitions), ("executions", case.executions)],
        None if search.is_none() => [("transitions", case.own_transitions), ("executions", case.own_executions)],
        _ => [("transitions", None), ("executions", None)],
    };
    for (key, expected) in counts {
        if expected.is_some_and(|n| value[key].as_u64() != Some(n)) {
            wrong.push(format!("{} {key} instead of {}", value[key], expected.unwrap_or(0)));
        }
    }
    wrong
}

/// A line of the table.
struct Line {
    what: String,
    seconds: f64,
    failures: Failures,
}

impl Line {
    fn new(program: &str, case: &str, search: &str, since: Instant, failures: Failures) -> Line {
        Line { what: format!("{program} [{case}] {search}"), seconds: since.elapsed().as_secs_f64(), failures }
    }
}

fn slow_runs() -> bool {
    std::env::var_os("VSRUN_SLOW").is_some_and(|v| v == "1")
}

fn test_program(source: &Path, expect: &Path, temp: &Path) -> Vec<Line> {
    let since = Instant::now();
    let name = expect.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let program = Program { dir: temp.join(&name), source: source.into(), name };
    let failed = |case: &str, e: String| vec![Line::new(&program.name, case, "", since, vec![e])];
    let cases = match fs::read_to_string(expect).map_err(|e| e.to_string()).and_then(|text| parse(&text)) {
        Ok(cases) => cases,
        Err(e) => return failed("", e),
    };
    let slow = slow_runs();
    let mut binaries = BTreeMap::new();
    let mut lines = Vec::new();
    for case in cases.iter().filter(|c| slow || !c.slow) {
        match program.compile(case, &mut binaries) {
            Ok(binary) => lines.extend(program.test(case, &binary)),
            Err(e) => lines.extend(failed(&case.name, e)),
        }
    }
    let _ = fs::remove_dir_all(&program.dir);
    lines
}

/// The calling thread, and what it starts, stays on the `n`th allowed CPU: vsrun takes the first that it may use.
fn stay_on_cpu(n: usize) {
    use nix::sched::{sched_getaffinity, sched_setaffinity, CpuSet};
    let me = nix::unistd::Pid::from_raw(0);
    let Ok(allowed) = sched_getaffinity(me) else { return };
    let cpus: Vec<usize> = (0..CpuSet::count()).filter(|&c| allowed.is_set(c).unwrap_or(false)).collect();
    let mut only = CpuSet::new();
    if cpus.get(n % cpus.len().max(1)).is_some_and(|&cpu| only.set(cpu).is_ok()) {
        let _ = sched_setaffinity(me, &only);
    }
}

fn all_programs() -> VecDeque<(PathBuf, PathBuf)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("c-tests");
    let word = std::env::var("VSRUN_CT").unwrap_or_default();
    let files = fs::read_dir(&dir).expect("c-tests").flatten().map(|e| e.path());
    let mut expects: Vec<_> =
        files.filter(|p| p.extension().is_some_and(|e| e == "expect") && p.to_string_lossy().contains(&word)).collect();
    expects.sort();
    let source = |expect: &PathBuf| if expect.with_extension("cc").exists() { "cc" } else { "c" };
    expects.into_iter().map(|e| (e.with_extension(source(&e)), e)).collect()
}

#[test]
fn every_program_is_judged_as_expected() {
    let before = shared_things();
    let temp = TempDir::create();
    let queue = Mutex::new(all_programs());
    let lines = Mutex::new(Vec::new());
    let next = || queue.lock().unwrap().pop_front();
    std::thread::scope(|scope| {
        for n in 0..WORKERS {
            let (next, lines, temp) = (&next, &lines, &temp);
            scope.spawn(move || {
                stay_on_cpu(n);
                while let Some((source, expect)) = next() {
                    // Not in the arguments of `extend`: the lock would be held meanwhile.
                    let told = test_program(&source, &expect, &temp.0);
                    lines.lock().unwrap().extend(told);
                }
            });
        }
    });
    drop(temp);
    let mut lines = lines.into_inner().unwrap();
    let left = settles(|| shared_things().difference(&before).cloned().collect());
    if !left.is_empty() {
        lines.push(Line::new("all", "", "", Instant::now(), vec![format!("left behind: {}", left.join(" "))]));
    }
    lines.sort_by(|a, b| a.what.cmp(&b.what));
    let mut table = String::new();
    for line in &lines {
        let verdict = if line.failures.is_empty() { "ok" } else { "FAILED" };
        let _ = writeln!(table, "{verdict:6} {:6.2} s  {}", line.seconds, line.what);
        for failure in &line.failures {
            let _ = writeln!(table, "                 {failure}");
        }
    }
    let failed = lines.iter().filter(|l| !l.failures.is_empty()).count();
    assert!(!lines.is_empty(), "no program was selected");
    assert_eq!(failed, 0, "{failed} of {} runs failed:\n{table}", lines.len());
    println!("{table}");
}
