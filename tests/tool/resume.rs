//! Searches that are broken off and resumed, with the vsrun binary: they find and count what an uninterrupted one does.

use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::Value;

/// One run of vsrun may take so long.
const LIMIT: Duration = Duration::from_secs(300);
/// Processes of a run are known by this variable.
const MARK: &str = "VSRUN_RESUME_RUN";

/// A directory with a program of c-tests, removed at the end.
struct Place {
    dir: PathBuf,
}

impl Place {
    fn new(test: &str, source: &str) -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-resume-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary directory");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("c-tests").join(source);
        let mut gcc = Command::new("gcc");
        gcc.arg("-O1").arg("-o").arg(dir.join("program")).arg(source).arg("-lpthread");
        assert!(gcc.status().expect("gcc").success());
        Place { dir }
    }

    fn vsrun(&self, arguments: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vsrun"));
        command.args(["--format", "json", "--output", "output"]).args(arguments);
        command.current_dir(&self.dir).env(MARK, &self.dir).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("vsrun")
    }

    /// Runs to the end: exit status, the report (null if there is none), standard error.
    fn run(&self, arguments: &[&str]) -> (i32, Value, String) {
        end(self.vsrun(arguments))
    }

    fn save_time(&self) -> Option<std::time::SystemTime> {
        fs::metadata(self.dir.join("state")).and_then(|m| m.modified()).ok()
    }

    /// Processes of runs here that are alive.
    fn processes(&self) -> Vec<String> {
        let wanted = format!("{MARK}={}", self.dir.display());
        let ours = |pid: &str| {
            let environment = fs::read(Path::new("/proc").join(pid).join("environ")).unwrap_or_default();
            environment.split(|&b| b == 0).any(|word| word == wanted.as_bytes())
        };
        let names = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = names.filter_map(|entry| entry.file_name().into_string().ok());
        pids.filter(|pid| pid.parse::<i32>().is_ok() && ours(pid)).collect()
    }

    fn nothing_is_left(&self) {
        let since = Instant::now();
        while !self.processes().is_empty() {
            assert!(since.elapsed() < Duration::from_secs(10), "processes left: {:?}", self.processes());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn end(mut child: Child) -> (i32, Value, String) {
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
    (status.code().unwrap_or(-1), serde_json::from_str(&out).unwrap_or(Value::Null), err)
}

/// What must not depend on interruptions.
fn figures(report: &Value) -> Vec<Value> {
    let bugs = report["bugs"].as_array().cloned().unwrap_or_default();
    let bugs = bugs.iter().map(|bug| serde_json::json!([bug["summary"], bug["transitions"], bug["scenario"]]));
    let keys = ["verdict", "complete", "executions", "transitions", "max_depth"];
    keys.iter().map(|key| report[key].clone()).chain(bugs).collect()
}

/// The scenarios that there are.
fn scenarios(dir: &Path) -> usize {
    let names = fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.file_name());
    names.filter(|name| name.to_string_lossy().ends_with(".vsrun.json")).count()
}

#[test]
fn kill_9_in_the_middle() {
    let place = Place::new("kill", "lockcount.c");
    let search = ["--search", "naive", "--keep-going"];
    let (code, whole, err) = place.run(&[&search[..], &["./program", "5"]].concat());
    assert_eq!((code, whole["executions"].as_u64()), (0, Some(3640)), "{err}");
    // Short runs, so that there is something to go on from however slow the machine is; then one is killed.
    let first = [&search[..], &["--save", "state", "--max-executions", "300", "./program", "5"]].concat();
    let (code, part, err) = place.run(&first);
    assert_eq!((code, part["executions"].as_u64()), (3, Some(300)), "{err}");
    let go_on = [&search[..], &["--resume", "state", "./program", "5"]].concat();
    let before = place.save_time();
    let mut child = place.vsrun(&[&["-j", "3"], &go_on[..]].concat());
    while place.save_time() == before {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(100));
    kill(Pid::from_raw(child.id() as i32), Signal::SIGKILL).expect("kill");
    child.wait().expect("wait");
    place.nothing_is_left();
    let (code, rest, err) = place.run(&go_on);
    assert_eq!(code, 0, "{err}");
    assert_eq!(figures(&rest), figures(&whole));
    // A search that is over stays so.
    let (code, over, err) = place.run(&go_on);
    assert_eq!(code, 0, "{err}");
    assert_eq!(figures(&over), figures(&whole));
}

/// A search with a tree of its own: what is under way when it is killed is run again.
#[test]
fn kill_9_in_the_middle_of_optimal() {
    let place = Place::new("optimal", "lockcount.c");
    let search = ["--search", "optimal", "--keep-going", "--all-objects"];
    let (code, whole, err) = place.run(&[&search[..], &["-j", "1", "./program", "6"]].concat());
    assert_eq!((code, whole["executions"].as_u64(), whole["complete"].as_bool()), (0, Some(720), Some(true)), "{err}");
    let first = [&search[..], &["-j", "1", "--save", "state", "--max-executions", "50", "./program", "6"]].concat();
    let (code, part, err) = place.run(&first);
    assert_eq!((code, part["executions"].as_u64()), (3, Some(50)), "{err}");
    let go_on = [&search[..], &["--resume", "state", "./program", "6"]].concat();
    for workers in ["1", "3"] {
        let mut child = place.vsrun(&[&["-j", workers, "--max-executions", "200"], &go_on[..]].concat());
        std::thread::sleep(Duration::from_millis(60));
        kill(Pid::from_raw(child.id() as i32), Signal::SIGKILL).expect("kill");
        child.wait().expect("wait");
        place.nothing_is_left();
    }
    let (_, part, err) = place.run(&[&["-j", "3", "--max-executions", "400"], &go_on[..]].concat());
    assert!(part["executions"].as_u64().is_some_and(|n| n >= 400), "{err}");
    let (code, rest, err) = place.run(&[&["-j", "2"], &go_on[..]].concat());
    assert_eq!(code, 0, "{err}");
    for key in ["verdict", "complete", "executions", "transitions", "max_depth", "bugs"] {
        assert_eq!(rest[key], whole[key], "{key}");
    }
}

#[test]
fn sigterm_ends_all_workers() {
    let place = Place::new("workers", "philosophers_threads.c");
    let child = place.vsrun(&["-j", "3", "--search", "naive", "--keep-going", "./program", "6"]);
    std::thread::sleep(Duration::from_millis(700));
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).expect("kill");
    let since = Instant::now();
    let (code, report, err) = end(child);
    assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
    // One that is asked to end before the program has begun has nothing to report.
    assert!(code == 3 && report["complete"] == false || code == 2, "{code} {report} {err}");
    place.nothing_is_left();
}

#[test]
fn the_first_bug_ends_all_workers() {
    let place = Place::new("first", "philosophers_sysv.c");
    for workers in ["1", "1", "3"] {
        let (code, report, err) = place.run(&["-j", workers, "--search", "naive", "./program", "3"]);
        let bugs = report["bugs"].as_array().map_or(0, Vec::len);
        assert_eq!((code, bugs, report["complete"].as_bool()), (1, 1, Some(false)), "{err}");
        assert!(report["executions"].as_u64().is_some_and(|n| n < 396), "{report}");
        place.nothing_is_left();
        // One worker comes to the same execution each time, which is written once; several stop where they happen to be, and beside other work that
        // is another one.
        assert!(scenarios(&place.dir) == 1 || workers == "3", "{workers}");
    }
}

#[test]
fn a_worker_that_fails_ends_all() {
    let place = Place::new("fails", "lockcount.c");
    // Its executions depend on each other by a file, which vsrun does not control.
    let source = r#"
        #include <pthread.h>
        #include <sched.h>
        #include <stdio.h>
        static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
        static void *f(void *x)
        {
            FILE *file = fopen("count", "a+");
            fputc('x', file);
            if (ftell(file) > 20)
                sched_yield();
            fclose(file);
            pthread_mutex_lock(&m);
            pthread_mutex_unlock(&m);
            return x;
        }
        int main(void)
        {
            pthread_t t[3];
            for (int i = 0; i < 3; i++)
                pthread_create(t + i, 0, f, 0);
            for (int i = 0; i < 3; i++)
                pthread_join(t[i], 0);
            return 0;
        }"#;
    fs::write(place.dir.join("fails.c"), source).expect("a source");
    let mut gcc = Command::new("gcc");
    gcc.current_dir(&place.dir).args(["-o", "fails", "fails.c", "-lpthread"]);
    assert!(gcc.status().expect("gcc").success());
    for workers in ["1", "3"] {
        let _ = fs::remove_file(place.dir.join("count"));
        let (code, report, err) =
            place.run(&["-j", workers, "--files", "real", "--search", "naive", "--keep-going", "./fails"]);
        assert_eq!((code, report["verdict"].as_str()), (4, Some("error")), "{report}");
        assert!(err.contains("did not follow its schedule"), "{err}");
        place.nothing_is_left();
    }
}

#[test]
fn sigterm_saves_and_bugs_are_kept() {
    let place = Place::new("term", "philosophers_sysv.c");
    let search = ["--search", "naive", "--keep-going"];
    fs::create_dir(place.dir.join("whole")).expect("a directory");
    let whole = place.run(&[&search[..], &["--scenario-dir", "whole", "./program", "3"]].concat()).1;
    assert_eq!(whole["executions"], 396);
    let mut parts = 0;
    let mut arguments = [&search[..], &["--save", "state", "./program", "3"]].concat();
    let rest = loop {
        let child = place.vsrun(&arguments);
        std::thread::sleep(Duration::from_millis(150));
        let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
        let (code, report, err) = end(child);
        parts += 1;
        if code == 1 && report["complete"] == true {
            break report;
        }
        // One that is asked to end before the program has begun has nothing to report.
        assert!(matches!(code, 1..=3), "{code} {err}");
        if place.dir.join("state").exists() {
            arguments = [&search[..], &["--resume", "state", "./program", "3"]].concat();
        }
        if parts > 40 {
            let (_, report, _) = place.run(&arguments);
            break report;
        }
    };
    place.nothing_is_left();
    let plain = |report: &Value| {
        let mut values = figures(report);
        values.iter_mut().filter_map(Value::as_array_mut).for_each(|bug| bug.truncate(2));
        values
    };
    assert_eq!(plain(&rest), plain(&whole), "after {parts} parts");
    let bugs = whole["bugs"].as_array().map_or(0, Vec::len);
    assert_eq!((scenarios(&place.dir), scenarios(&place.dir.join("whole"))), (bugs, bugs));
    let scenario = rest["bugs"][0]["scenario"].as_str().expect("a scenario");
    let replay = Command::new(env!("CARGO_BIN_EXE_vsrun")).args(["replay", scenario]).current_dir(&place.dir).output();
    assert_eq!(replay.expect("vsrun").status.code(), Some(1));
}

#[test]
fn a_state_of_something_else_is_refused() {
    let place = Place::new("refuse", "lockcount.c");
    let (code, _, err) = place.run(&[
        "--bound",
        "preemptions=1",
        "--all-objects",
        "--save",
        "state",
        "--max-executions",
        "3",
        "./program",
        "3",
    ]);
    assert_eq!(code, 3, "{err}");
    let refused = |arguments: &[&str], why: &str| {
        let (code, report, err) = place.run(arguments);
        assert_eq!((code, report["verdict"].as_str()), (2, Some("error")), "{arguments:?}");
        assert!(err.contains(why) && err.trim().lines().count() == 1, "{err}");
    };
    let bound = ["--bound", "preemptions=1", "--all-objects", "--resume", "state"];
    refused(&[&bound[..], &["./program", "4"]].concat(), "another program");
    refused(&[&bound[..], &["--allow-misuse", "./program", "3"]].concat(), "--allow-misuse");
    // What ran without being watched says nothing of memory.
    refused(&[&bound[..], &["--race", "off", "./program", "3"]].concat(), "another search");
    refused(&["--bound", "preemptions=3", "--resume", "state", "./program", "3"], "another search");
    refused(&["--search", "naive", "--resume", "state", "./program", "3"], "another search");
    refused(&["--search", "naive", "--resume", "program", "./program", "3"], "not a saved search");
    refused(&["--search", "naive", "--resume", "nothing", "./program", "3"], "No such file");
    let (code, report, err) = place.run(&[&bound[..], &["./program", "3"]].concat());
    assert_eq!(code, 0, "{err}");
    let whole = place.run(&["--bound", "preemptions=1", "--all-objects", "./program", "3"]).1;
    assert_eq!(figures(&report), figures(&whole));
    // What stands in a file that was cut off is not resumed; the state before it is.
    let bytes = fs::read(place.dir.join("state")).expect("a state");
    fs::write(place.dir.join("state"), &bytes[..bytes.len() / 2]).expect("a state");
    let (code, report, err) = place.run(&[&bound[..], &["./program", "3"]].concat());
    assert_eq!(code, 0, "{err}");
    assert_eq!(figures(&report), figures(&whole));
    assert!(report["notes"].to_string().contains("state before it"), "{report}");
}
