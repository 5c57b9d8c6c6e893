//! What vsrun says must be what happened: replays that come to something else, bugs that do not come again, people who
//! interfere. With the vsrun binary.

use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::Value;
use vsrun::finding::BugKind;
use vsrun::scenario::Scenario;

/// One run of vsrun may take so long.
const LIMIT: Duration = Duration::from_secs(120);
/// CPU time, in clock ticks, by which the child that computes is known.
const BUSY: u64 = 20;

/// A directory with the program, removed at the end.
struct Place {
    dir: PathBuf,
}

/// How a run of vsrun ended.
#[derive(Debug)]
struct End {
    code: i32,
    /// What it printed, as JSON if it is that.
    out: String,
    report: Value,
    err: String,
}

impl Place {
    fn new(test: &str) -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-honest-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary directory");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/honest/program.c");
        let mut gcc = Command::new("gcc");
        gcc.arg("-O1").arg("-o").arg(dir.join("program")).arg(source).arg("-lpthread");
        assert!(gcc.status().expect("gcc").success());
        Place { dir }
    }

    fn start(&self, arguments: &[&str]) -> Child {
        // The tests may run where SIGINT is ignored (in the background of a shell), which vsrun inherits and respects.
        let mut command = Command::new("env");
        command.arg("--default-signal=INT").arg(env!("CARGO_BIN_EXE_vsrun"));
        command.args(arguments).current_dir(&self.dir).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("vsrun")
    }

    fn run(&self, arguments: &[&str]) -> End {
        end(self.start(arguments))
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.dir.join(name), text).expect("write");
    }

    fn scenarios(&self) -> Vec<PathBuf> {
        let names = fs::read_dir(&self.dir).into_iter().flatten().flatten().map(|e| e.path());
        names.filter(|path| path.to_string_lossy().ends_with(".vsrun.json")).collect()
    }

    /// The one scenario that an exploration of `variant` writes.
    fn explored(&self, variant: &str) -> PathBuf {
        let found = self.run(&["--output", "printed", "./program", variant]);
        assert_eq!(found.code, 1, "{found:?}");
        let scenarios = self.scenarios();
        assert_eq!(scenarios.len(), 1, "{scenarios:?}");
        scenarios.into_iter().next().expect("one")
    }

    /// The scenario in that file, changed, in another one.
    fn edited(&self, file: &Path, change: impl FnOnce(&mut Scenario)) -> String {
        let mut scenario = Scenario::load(file).expect("a scenario");
        change(&mut scenario);
        self.write("edited.json", &scenario.to_json());
        "edited.json".to_string()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn end(mut child: Child) -> End {
    let since = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("wait") {
            break status;
        }
        if since.elapsed() > LIMIT {
            let _ = child.kill();
            let _ = child.wait();
            panic!("vsrun does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let (mut out, mut err) = (String::new(), String::new());
    child.stdout.take().map(|mut pipe| pipe.read_to_string(&mut out));
    child.stderr.take().map(|mut pipe| pipe.read_to_string(&mut err));
    let report = serde_json::from_str(&out).unwrap_or(Value::Null);
    End { code: status.code().unwrap_or(-1), out, report, err }
}

/// The fields of /proc/PID/stat from the state on.
fn stat(pid: i32) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let rest = text.rsplit(") ").next().unwrap_or_default();
    rest.split(' ').map(String::from).collect()
}

/// The child of that run of vsrun that computes.
fn busy_child(vsrun: &Child) -> i32 {
    let since = Instant::now();
    let of = |field: Option<&String>| field.and_then(|f| f.parse::<u64>().ok()).unwrap_or(0);
    loop {
        let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let computes = |&pid: &i32| {
            let fields = stat(pid);
            of(fields.get(1)) == u64::from(vsrun.id()) && of(fields.get(11)) >= BUSY
        };
        let program = |&pid: &i32| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe.ends_with("program"));
        if let Some(pid) = pids.filter(computes).find(program) {
            return pid;
        }
        assert!(since.elapsed() < LIMIT, "no child computes");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn send(pid: i32, signal: Signal) {
    kill(Pid::from_raw(pid), signal).expect("kill");
}

/// Runs vsrun on a program that lasts, and sends its child a signal.
fn disturbed(place: &Place, options: &[&str], variant: &str, signal: Signal) -> End {
    let all = [&["--format", "json", "--output", "printed", "--divergence-timeout", "500"], options];
    let vsrun = place.start(&[&all.concat()[..], &["./program", variant]].concat());
    send(busy_child(&vsrun), signal);
    end(vsrun)
}

/// What is said of a run that somebody disturbed: nothing of the program.
fn is_the_environments(place: &Place, end: &End, signal: &str) {
    assert_eq!(end.code, 2, "{end:?}");
    assert_eq!(
        (end.report["verdict"].as_str(), end.report["complete"].as_bool()),
        (Some("error"), Some(false)),
        "{end:?}"
    );
    assert_eq!(end.report["incomplete_reason"], "environment", "{end:?}");
    let bugs = end.report["bugs"].as_array().cloned().unwrap_or_default();
    assert_eq!((bugs.len(), bugs[0]["kind"].as_str(), &bugs[0]["scenario"]), (1, Some("environment"), &Value::Null));
    assert!(end.err.contains(&format!("vsrun: environment: {signal} was sent to process")), "{end:?}");
    assert_eq!(place.scenarios(), Vec::<PathBuf>::new());
}

#[test]
fn a_signal_from_outside_in_one_execution() {
    let place = Place::new("once");
    for (signal, name) in [(Signal::SIGKILL, "SIGKILL"), (Signal::SIGTERM, "SIGTERM"), (Signal::SIGSEGV, "SIGSEGV")] {
        let end = disturbed(&place, &["--once"], "long", signal);
        is_the_environments(&place, &end, name);
    }
    let end = disturbed(&place, &["--once"], "handled", Signal::SIGTERM);
    is_the_environments(&place, &end, "SIGTERM");
}

#[test]
fn a_signal_from_outside_in_a_search() {
    let place = Place::new("search");
    for (signal, name) in [(Signal::SIGKILL, "SIGKILL"), (Signal::SIGTERM, "SIGTERM"), (Signal::SIGSEGV, "SIGSEGV")] {
        let end = disturbed(&place, &[], "long", signal);
        is_the_environments(&place, &end, name);
    }
    let end = disturbed(&place, &["--search", "naive", "--keep-going", "-j", "1"], "handled", Signal::SIGSEGV);
    is_the_environments(&place, &end, "SIGSEGV");
}

#[test]
fn a_process_that_is_stopped_from_outside() {
    let place = Place::new("stop");
    let end = disturbed(&place, &[], "long", Signal::SIGSTOP);
    is_the_environments(&place, &end, "SIGSTOP");
}

/// What the program ignores changes nothing.
#[test]
fn a_signal_that_is_ignored() {
    let place = Place::new("ignored");
    let vsrun = place.start(&["--divergence-timeout", "500", "--once", "./program", "ignored"]);
    let child = busy_child(&vsrun);
    send(child, Signal::SIGTERM);
    std::thread::sleep(Duration::from_millis(500));
    assert!(!stat(child).is_empty(), "it goes on");
    send(child, Signal::SIGKILL);
    let end = end(vsrun);
    assert!(end.code == 2 && end.out.contains("environment: SIGKILL"), "{end:?}");
}

/// The execution that is killed is not over for the search: who goes on later misses nothing.
#[test]
fn what_was_killed_is_run_again_after_a_resumption() {
    let place = Place::new("resumed");
    place.write("pace", "0");
    let whole = place.run(&["--format", "json", "--output", "printed", "--keep-going", "./program", "paced"]);
    assert_eq!(whole.code, 1, "{whole:?}");
    place.scenarios().iter().for_each(|path| fs::remove_file(path).expect("remove"));
    place.write("pace", "1000000");
    let options = ["--format", "json", "--output", "printed", "--keep-going", "--divergence-timeout", "500"];
    let vsrun = place.start(&[&options[..], &["--save", "state", "./program", "paced"]].concat());
    send(busy_child(&vsrun), Signal::SIGKILL);
    is_the_environments(&place, &end(vsrun), "SIGKILL");
    place.write("pace", "0");
    let rest = place.run(&[&options[..], &["--resume", "state", "./program", "paced"]].concat());
    for key in ["verdict", "executions", "transitions", "max_depth"] {
        assert_eq!(rest.report[key], whole.report[key], "{key}: {rest:?}");
    }
}

#[test]
fn a_replay_says_whether_it_came_to_the_same_end() {
    let place = Place::new("replay");
    place.write("pace", "0");
    let file = place.explored("paced");
    let path = file.to_str().expect("a path");
    let same = place.run(&["replay", path]);
    assert!(same.code == 1 && same.out.contains("the replay came to the same end"), "{same:?}");
    let same = place.run(&["replay", "--format", "json", path]);
    assert_eq!((same.code, &same.report["replayed"], &same.report["kind"]), (1, &true.into(), &"assert".into()));

    // The same kind of bug, but not the same bug.
    let other = place.edited(&file, |scenario| scenario.bug.identity ^= 1);
    let otherwise = place.run(&["replay", "--trust", &other]);
    assert_eq!((otherwise.code, otherwise.out.as_str()), (4, ""), "{otherwise:?}");
    assert!(otherwise.err.contains("the replay came to another end, after step "), "{otherwise:?}");

    let other = place.edited(&file, |scenario| scenario.bug.kind = BugKind::Deadlock);
    let otherwise = place.run(&["replay", "--trust", "--format", "json", &other]);
    assert_eq!(otherwise.code, 4, "{otherwise:?}");
    let said = ["replayed", "kind", "came"].map(|key| otherwise.report[key].clone());
    assert_eq!(said, [Value::from(false), "deadlock".into(), "assert".into()], "{otherwise:?}");
    assert!(
        otherwise.err.contains("expected deadlock: ") && otherwise.err.contains("; came: assert: "),
        "{otherwise:?}"
    );

    // Without its steps the default policy lets the first thread go first: the assertion fails, by another way.
    let other = place.edited(&file, |scenario| scenario.steps.clear());
    let otherwise = place.run(&["replay", "--trust", &other]);
    assert_eq!(otherwise.code, 4, "{otherwise:?}");

    // A step that is not possible there.
    let other = place.edited(&file, |scenario| {
        let last = scenario.steps.len() - 1;
        scenario.steps[last].thread = vsrun_model::Uid::MAIN.child(9);
    });
    let otherwise = place.run(&["replay", "--trust", &other]);
    assert_eq!(otherwise.code, 4, "{otherwise:?}");
    assert!(
        otherwise.err.contains("the replay left the scenario at step ") && otherwise.err.contains("no such thread"),
        "{otherwise:?}"
    );

    // Of files of older versions only the kind is known.
    let other = place.edited(&file, |scenario| scenario.bug.identity = 0);
    assert_eq!(place.run(&["replay", "--trust", &other]).code, 1);
}

#[test]
fn a_replay_that_is_interrupted_or_disturbed() {
    let place = Place::new("interrupted");
    place.write("pace", "0");
    let file = place.explored("paced");
    let path = file.to_str().expect("a path");
    fs::write(
        &file,
        Scenario::load(&file)
            .map(|mut s| {
                s.options.divergence_timeout_ms = 500_000;
                s.to_json()
            })
            .expect("a scenario"),
    )
    .expect("write");
    place.write("pace", "1000000");
    let vsrun = place.start(&["replay", "--trust", "--format", "json", path]);
    busy_child(&vsrun);
    send(vsrun.id() as i32, Signal::SIGINT);
    let stopped = end(vsrun);
    assert_eq!((stopped.code, &stopped.report["replayed"]), (3, &false.into()), "{stopped:?}");
    assert!(stopped.err.starts_with("vsrun: interrupted after ") && !stopped.err.contains("expected"), "{stopped:?}");

    for signal in [Signal::SIGKILL, Signal::SIGTERM, Signal::SIGSEGV] {
        let vsrun = place.start(&["replay", "--trust", path]);
        send(busy_child(&vsrun), signal);
        let stopped = end(vsrun);
        assert_eq!((stopped.code, stopped.out.as_str()), (2, ""), "{stopped:?}");
        let line = format!("vsrun: environment: {signal} was sent to process");
        assert!(stopped.err.starts_with(&line), "{stopped:?}");
    }
    place.write("pace", "0");
    assert_eq!(place.run(&["replay", "--trust", path]).code, 1);
}

/// What comes once and not again is no scenario, and not the program's bug.
#[test]
fn a_bug_that_does_not_come_again() {
    let place = Place::new("unconfirmed");
    for options in [&["--once"][..], &[], &["--search", "naive", "--keep-going"], &["-j", "2"]] {
        place.write("count", "0");
        let format = ["--format", "json", "--output", "printed", "--files", "real"];
        let end = place.run(&[&format[..], options, &["./program", "counted"]].concat());
        assert_eq!(end.code, 4, "{end:?}");
        assert_eq!(
            (end.report["verdict"].as_str(), &end.report["complete"]),
            (Some("error"), &false.into()),
            "{end:?}"
        );
        let reasons = end.report["incomplete_reasons"].to_string();
        assert!(reasons.contains("\"unconfirmed\""), "{end:?}");
        let bug = &end.report["bugs"][0];
        assert_eq!((bug["kind"].as_str(), &bug["scenario"]), (Some("unconfirmed"), &Value::Null), "{end:?}");
        let line = bug["summary"].as_str().unwrap_or("");
        assert!(line.starts_with("execution 1 ended with a bug (assert: "), "{line}");
        assert!(
            line.contains("came to something else (the execution ended without a bug (everything finished))"),
            "{line}"
        );
        assert!(line.contains("with --files real an execution finds"), "{line}");
        assert!(end.err.starts_with("vsrun: execution 1 "), "{end:?}");
        assert_eq!(place.scenarios(), Vec::<PathBuf>::new());
    }
}

/// A divergence that does not come again is a note.
#[test]
fn a_divergence_that_does_not_come_again() {
    let place = Place::new("slow");
    place.write("count", "0");
    let options = ["--format", "json", "--files", "real", "--divergence-timeout", "0.3"];
    let end = place.run(&[&options[..], &["-j", "1", "./program", "slow"]].concat());
    assert_eq!((end.code, end.report["verdict"].as_str()), (0, Some("ok")), "{end:?}");
    assert!(end.report["notes"].to_string().contains("and did not when it was run again, which counts"), "{end:?}");
    assert_eq!(place.scenarios(), Vec::<PathBuf>::new());
}

/// The second run comes to another bug of the same kind.
#[test]
fn an_execution_that_is_too_long_for_a_scenario_is_repeated_by_its_seed() {
    let place = Place::new("many");
    let found = place.run(&[
        "--search",
        "random",
        "--max-depth",
        "100000000",
        "--max-executions",
        "1",
        "--output",
        "printed",
        "./program",
        "many",
    ]);
    assert_eq!(found.code, 1, "{found:?}");
    assert!(found.out.contains("left out; too many for a scenario, which repeats them by the seed"), "{}", found.out);
    let [scenario] = &place.scenarios()[..] else { panic!("one scenario") };
    assert!(fs::metadata(scenario).expect("a file").len() < 100_000);
    let file = scenario.to_string_lossy();
    let replayed = place.run(&["replay", "--trust", "--output", "printed", &file]);
    assert_eq!(replayed.code, 1, "{replayed:?}");
    assert!(replayed.out.contains("the same bug, by the same steps"), "{}", replayed.out);
}

#[test]
fn another_bug_than_the_first_time() {
    let place = Place::new("swapped");
    place.write("count", "0");
    let end = place.run(&["--output", "printed", "--files", "real", "./program", "swapped"]);
    assert_eq!(end.code, 4, "{end:?}");
    assert!(end.out.contains("ERROR: execution 1 ended with a bug (assert: "), "{end:?}");
    assert!(end.out.contains("came to something else (assert: "), "{end:?}");
    assert!(end.out.contains("with --files real an execution finds the files as the ones before"), "{end:?}");
    assert!(!end.out.contains("vsrun bug"), "{end:?}");
    assert_eq!(place.scenarios(), Vec::<PathBuf>::new());
}
