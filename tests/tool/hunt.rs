//! `vsrun daemon`, with the vsrun binary: clients that begin once a socket listens, signals at any moment, several searches with one verdict.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{json, Value};

/// A directory with the program, removed at the end.
struct Place(PathBuf);

impl Place {
    fn new(test: &str, source: &str, options: &[&str]) -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-hunt-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary directory");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hunt").join(source);
        let mut gcc = Command::new("gcc");
        gcc.args(["-O1", "-g", "-pthread"]).args(options).arg("-o").arg(dir.join("program")).arg(source);
        assert!(gcc.status().expect("gcc").success());
        Place(dir)
    }

    /// Exit status, standard output, standard error.
    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", "100", env!("CARGO_BIN_EXE_vsrun")]).args(arguments);
        let output = command.current_dir(&self.0).stdin(Stdio::null()).output().expect("vsrun");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
    }

    fn report(&self, arguments: &[&str]) -> (i32, Value) {
        let (code, out, err) = self.run(arguments);
        (code, serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}")))
    }

    fn scenarios(&self) -> usize {
        let names = fs::read_dir(&self.0).into_iter().flatten().flatten().map(|entry| entry.file_name());
        names.filter(|name| name.to_string_lossy().ends_with(".vsrun.json")).count()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const CLIENT: [&str; 2] = ["--with", "./program client"];

#[test]
fn a_signal_at_the_wrong_moment_is_found() {
    let place = Place::new("signal", "daemon.c", &[]);
    let (code, text, err) =
        place.run(&[&["daemon", "--signal", "HUP", "--first", "--for", "60"], &CLIENT[..], &["./program"]].concat());
    assert_eq!(code, 1, "{text}{err}");
    let has = |part: &str| assert!(text.contains(part), "{part}: {text}");
    let parts = [
        "DEADLOCK: ",
        "\nVerdict: deadlock (1 bug) in ./program\n",
        "\nSearches\n  optimal ",
        "NOT explored completely",
    ];
    parts.iter().for_each(|part| has(part));
    // One bug, one scenario; it replays.
    assert_eq!(place.scenarios(), 1, "{text}");
    let file = text.trim_end().lines().last().and_then(|line| line.strip_prefix("scenario: ")).expect("a scenario");
    for _ in 0..2 {
        let (code, out, err) = place.run(&["replay", file]);
        assert!(code == 1 && out.starts_with("DEADLOCK"), "{out}{err}");
    }
}

#[test]
fn without_the_bug_nothing_is_found_and_not_more_is_claimed_than_was_explored() {
    let place = Place::new("quick", "daemon.c", &[]);
    let json = ["daemon", "-j", "1", "--format", "json", "--signal", "HUP", "--for", "3"];
    let (code, report) = place.report(&[&json[..], &CLIENT, &["./program", "quick"]].concat());
    assert_eq!((&report["verdict"], &report["bugs"]), (&json!("ok"), &json!([])), "{report}");
    let searches = report["searches"].as_array().expect("searches");
    let whole = |search: &Value| search["search"] == json!("optimal") && search["complete"] == json!(true);
    let complete = searches.iter().any(whole);
    assert_eq!((code, &report["complete"]), (if complete { 0 } else { 3 }, &json!(complete)), "{report}");
    // On a busy machine there may be no time for one of them.
    let names = searches.iter().map(|search| &search["search"]).chain(report["not_run"].as_array().expect("names"));
    let mut names: Vec<_> = names.filter_map(Value::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["optimal", "optimal", "pct", "preemptions=2", "random"]);
    assert!(searches.iter().any(|search| search["reached_end"].as_u64() > Some(0)), "{report}");
}

#[test]
fn what_is_small_is_explored_completely() {
    let place = Place::new("small", "daemon.c", &[]);
    let json = ["daemon", "--format", "json", "--for", "60"];
    let (code, report) = place.report(&[&json[..], &CLIENT, &["./program", "once"]].concat());
    let last = report["searches"].as_array().and_then(|all| all.last()).cloned().expect("a search");
    assert_eq!((code, &report["complete"], &last["search"]), (0, &json!(true), &json!("optimal")), "{report}");
    assert_eq!(last["complete"], json!(true));
}

#[test]
fn a_daemon_in_the_background_gets_the_signal_by_its_pid_file() {
    let place = Place::new("pid", "daemon.c", &[]);
    let options =
        ["daemon", "--format", "json", "--signal", "HUP", "--pid-file", "daemon.pid", "--for", "60", "--first"];
    let (code, report) = place.report(&[&options[..], &CLIENT, &["./program", "forks"]].concat());
    assert_eq!((code, &report["verdict"]), (1, &json!("deadlock")), "{report}");
    // The file was private to each execution.
    assert!(!place.0.join("daemon.pid").exists());
}

/// A client that does not wait is refused in some execution; one that waits for ever is told.
#[test]
fn clients_begin_once_a_socket_listens() {
    let place = Place::new("clients", "daemon.c", &[]);
    let explore = |when: &str, program: &[&str]| {
        let options = ["--format", "json", "--output", "printed", "--max-executions", "300", "--clients", when];
        place.report(&[&options[..], &CLIENT, program].concat())
    };
    let (code, report) = explore("at-once", &["./program", "once"]);
    assert_eq!((code, &report["verdict"]), (1, &json!("assert")), "{report}");
    let (code, report) = explore("listening", &["./program", "once"]);
    assert_eq!((code, &report["verdict"]), (0, &json!("ok")), "{report}");
    let (code, report) = explore("listening", &["sleep", "1"]);
    assert_eq!((code, &report["verdict"]), (1, &json!("deadlock")), "{report}");
    let scenario = report["bugs"][0]["scenario"].as_str().expect("a scenario");
    let (code, out, err) = place.run(&["replay", scenario]);
    assert!(code == 1 && out.contains("a socket that listens"), "{out}{err}");
}

/// A server of datagrams does not listen: its clients begin once it is bound. A port that the system gives is no sign of a server.
#[test]
fn clients_begin_once_a_datagram_socket_has_its_name() {
    let place = Place::new("datagrams", "datagrams.c", &[]);
    let explore = |when: &str, clients: &[&str], program: &[&str]| {
        let options = ["--format", "json", "--output", "printed", "--max-executions", "300", "--clients", when];
        place.report(&[&options[..], clients, program].concat())
    };
    let client = ["--with", "./program client"];
    let (code, report) = explore("at-once", &client, &["./program"]);
    assert_eq!((code, &report["verdict"]), (1, &json!("assert")), "{report}");
    let (code, report) = explore("listening", &client, &["./program"]);
    assert_eq!((code, &report["verdict"]), (0, &json!("ok")), "{report}");
    let (code, report) = explore("listening", &client, &["./program", "only", "bind"]);
    assert_eq!((code, &report["verdict"]), (1, &json!("deadlock")), "{report}");
}

/// The signal that is said to end it does, and that is no crash, whenever it comes. Another one is.
#[test]
fn a_daemon_without_handlers_may_be_told_to_end() {
    let place = Place::new("ends", "plain.c", &[]);
    let json = ["--format", "json", "--output", "printed"];
    for program in [&["./program"][..], &["./program", "late"]] {
        let hunt = ["daemon", "-j", "1", "--format", "json", "--for", "4", "--signal", "TERM"];
        let (code, report) = place.report(&[&hunt[..], &CLIENT, program].concat());
        assert_eq!((&report["verdict"], &report["bugs"]), (&json!("ok"), &json!([])), "{report}");
        assert!(code == if report["complete"] == json!(true) { 0 } else { 3 }, "{report}");
        let searches = report["searches"].as_array().expect("searches");
        assert!(searches.iter().any(|search| search["reached_end"].as_u64() > Some(0)), "{report}");
    }
    let (code, report) = place.report(&[&json[..], &CLIENT, &["--stop-signal", "TERM", "./program"]].concat());
    assert_eq!((code, &report["verdict"]), (0, &json!("ok")), "{report}");
    // So it is where the signal is sent by hand.
    let by_hand = ["--clients", "listening", "--with", "sh -c 'kill -TERM 1001'"];
    let (code, report) =
        place.report(&[&json[..], &CLIENT, &by_hand, &["--stop-signal", "TERM", "./program"]].concat());
    assert_eq!((code, &report["verdict"]), (0, &json!("ok")), "{report}");
    for (options, program) in
        [(&by_hand[..], ""), (&["--stop-signal", "TERM"], "child"), (&["--stop-signal", "INT"], "child")]
    {
        let (code, report) = place.report(&[&json[..], &CLIENT, options, &["./program", program]].concat());
        assert_eq!((code, &report["verdict"]), (1, &json!("crash")), "{options:?} {program}: {report}");
    }
    let hunt = ["daemon", "-j", "1", "--format", "json", "--for", "20", "--first", "--signal", "HUP"];
    let (code, report) = place.report(&[&hunt[..], &CLIENT, &["./program"]].concat());
    assert_eq!((code, &report["verdict"]), (1, &json!("crash")), "{report}");
}

#[test]
fn what_a_sanitizer_says_is_the_line_about_the_bug() {
    let place = Place::new("asan", "freed.c", &["-fsanitize=address"]);
    let (code, report) = place.report(&["daemon", "--format", "json", "--for", "60", "--first", "./program"]);
    assert_eq!(code, 1, "{report}");
    let summary = report["bugs"][0]["summary"].as_str().expect("a line");
    assert!(summary.starts_with("AddressSanitizer: heap-use-after-free"), "{report}");
    assert!(report["notes"].to_string().contains("verify_asan_link_order=0"), "{report}");
}

#[test]
fn wrong_usage_is_refused() {
    let place = Place::new("usage", "daemon.c", &[]);
    for (arguments, what) in [
        (&["daemon"][..], "PROGRAM"),
        (&["daemon", "--pid-file", "p", "./program"], "--signal"),
        (&["daemon", "--signal", "NONE", "./program"], "no such signal"),
        (&["daemon", "./no-such-program"], "no-such-program"),
    ] {
        let (code, _, err) = place.run(arguments);
        assert!(code == 2 && err.contains(what), "{arguments:?}: {err}");
    }
}
