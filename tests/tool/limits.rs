//! What vsrun does not control: calls that go to the kernel by the user's wish, executions that do not follow their schedules. What is
//! said of these, and that what was found beside them is kept. With the vsrun binary.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// A directory with the program, removed at the end.
struct Place(PathBuf);

/// How a run of vsrun ended.
#[derive(Debug)]
struct End {
    code: i32,
    out: String,
    err: String,
}

impl End {
    fn first_line(&self) -> &str {
        self.out.lines().next().unwrap_or_default()
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.out).expect("one JSON object")
    }
}

impl Place {
    fn new(test: &str) -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-limits-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary directory");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/limits/program.c");
        let mut gcc = Command::new("gcc");
        gcc.arg("-O1").arg("-o").arg(dir.join("program")).arg(source).arg("-lpthread");
        assert!(gcc.status().expect("gcc").success());
        fs::write(dir.join("watched"), "").expect("a file");
        Place(dir)
    }

    fn run(&self, arguments: &[&str]) -> End {
        let mut command = Command::new("timeout");
        command.arg("120").arg(env!("CARGO_BIN_EXE_vsrun")).args(arguments).current_dir(&self.0).stdin(Stdio::null());
        let output = command.output().expect("vsrun");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        End { code: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// With inotify let through, on the real files.
    fn let_through(&self, more: &[&str]) -> End {
        self.run(&[&["--uncontrolled", "inotify", "--files", "real"], more].concat())
    }

    /// The one scenario there.
    fn scenario(&self) -> String {
        let names = fs::read_dir(&self.0).expect("a directory").flatten().map(|e| e.file_name());
        let mut names = names.map(|name| name.to_string_lossy().into_owned()).filter(|name| name.ends_with(".json"));
        let name = names.next().expect("a scenario");
        assert_eq!(names.next(), None);
        name
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const LABEL: &str =
    "UNCONTROLLED: events of files (inotify) went to the kernel (--uncontrolled inotify): never complete, and \
                     replays are best effort";

#[test]
fn what_is_refused_names_the_option_and_runs_with_it() {
    let place = Place::new("kinds");
    for way in ["alone", "reader", "poll"] {
        let refused = place.run(&["--files", "real", "./program", way]);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.out.contains("system call inotify_init1; or --uncontrolled inotify"), "{refused:?}");
        let run = place.let_through(&["./program", way]);
        assert_eq!((run.code, run.first_line()), (3, LABEL), "{run:?}");
        assert!(run.out.contains("no bug found") && run.out.contains("NOT explored completely"), "{run:?}");
        assert!(run.out.contains("inotify_init1 ("), "{run:?}");
        let json = place.let_through(&["--format", "json", "./program", way]);
        let report = json.json();
        assert_eq!((json.code, report["complete"].as_bool()), (3, Some(false)), "{report}");
        assert_eq!(report["incomplete_reason"], "uncontrolled", "{report}");
        assert_eq!(report["uncontrolled"], LABEL, "{report}");
    }
    // Another kind does not let it through; nothing that was let through is complete, used or not.
    assert_eq!(place.run(&["--uncontrolled", "io_uring", "./program", "alone"]).code, 2);
    assert_eq!(place.run(&["./program", "ring"]).code, 0);
    let unused = place.let_through(&["./program", "ring"]);
    assert_eq!((unused.code, unused.first_line()), (3, LABEL));
    let wrong = place.run(&["--uncontrolled", "ptrace", "./program"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
    assert!(wrong.err.contains("kinds are inotify, fanotify, io_uring, remap"), "{wrong:?}");
}

#[test]
fn a_bug_beside_it_is_found_and_everything_says_so_first() {
    let place = Place::new("bug");
    let found = place.let_through(&["./program", "assert"]);
    assert_eq!((found.code, found.first_line()), (1, LABEL), "{found:?}");
    assert!(found.out.contains("ASSERTION"), "{found:?}");
    let scenario = place.scenario();
    let file = fs::read_to_string(place.0.join(&scenario)).expect("a scenario");
    assert!(file.lines().next().is_some_and(|line| line.contains(LABEL)), "{file}");
    let shown = place.run(&["show", &scenario]);
    assert_eq!((shown.code, shown.first_line()), (0, LABEL), "{shown:?}");
    assert!(shown.out.contains("--uncontrolled inotify"), "{shown:?}");
    let again = place.run(&["replay", &scenario]);
    // Best effort: it comes to the bug, or says first why it may not.
    match again.code {
        1 => assert_eq!(again.first_line(), LABEL, "{again:?}"),
        _ => assert!(again.code == 4 && again.err.contains(LABEL), "{again:?}"),
    }
    let json = place.run(&["replay", "--format", "json", &scenario]);
    assert!(json.code != 1 || json.json()["uncontrolled"] == LABEL, "{json:?}");
}

#[test]
fn what_was_found_before_a_failure_is_reported() {
    for (workers, search) in [("1", "naive"), ("2", "naive")] {
        let place = Place::new(&format!("strays-{workers}-{search}"));
        let options = ["-j", workers, "--search", search, "--files", "real", "--keep-going", "--format", "json"];
        let end = place.run(&[&options[..], &["./program", "strays"]].concat());
        let report = end.json();
        assert_eq!((end.code, report["verdict"].as_str()), (1, Some("assert")), "{report} {}", end.err);
        let kinds: Vec<_> = report["bugs"].as_array().into_iter().flatten().map(|bug| bug["kind"].as_str()).collect();
        assert_eq!(kinds, [Some("assert"), Some("unconfirmed")], "{report}");
        assert!(end.err.contains("vsrun: execution") && end.err.contains("did not follow its schedule"), "{end:?}");
        // It is not called a bug of vsrun: what is left in the files is likelier, and memory was watched.
        assert!(!end.err.contains("vsrun bug") && end.err.contains("with --files real an execution finds"), "{end:?}");
        assert!(!end.err.contains("--race off"), "{end:?}");
        assert_eq!(
            (report["complete"].as_bool(), report["incomplete_reason"].as_str()),
            (Some(false), Some("unconfirmed"))
        );
        assert!(place.0.join(place.scenario()).exists());
    }
}

#[test]
fn where_memory_is_not_watched_an_execution_that_strays_is_no_bug_of_vsruns() {
    let place = Place::new("unordered");
    let end = place.run(&["-j", "1", "--race", "off", "./program", "unordered"]);
    assert_eq!(end.code, 4, "{end:?}");
    assert!(end.first_line().starts_with("ERROR: execution "), "{end:?}");
    for said in [
        "did not follow its schedule at step",
        "memory is not watched (--race off)",
        "Run it without --race off",
        "Verdict: none, executions of the same schedule differ",
    ] {
        assert!(end.out.contains(said), "{said}: {end:?}");
    }
    assert!(!end.out.contains("vsrun bug") && !end.out.contains("--files real"), "{end:?}");
    // What is said to help does.
    let watched = place.run(&["-j", "1", "./program", "unordered"]);
    assert_eq!(watched.code, 0, "{watched:?}");
    assert!(watched.out.contains("race on written"), "{watched:?}");
}
