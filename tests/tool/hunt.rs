//! `vsrun daemon`, with the vsrun binary: clients that begin once a socket listens, a file exists or a text is printed, further starts of the program, signals at any moment, several searches with one verdict.

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
fn a_daemon_that_a_client_has_told_to_end_is_not_left_over() {
    let place = Place::new("forgets", "forgets.c", &[]);
    let run = |how: &str, kill: &str| {
        place.report(&["--format", "json", "--clients", "listening", "--with", kill, "./program", how])
    };
    let (code, report) = run("forgets", "kill 1001");
    assert_eq!((code, &report["verdict"]), (1, &json!("deadlock")), "{report}");
    let (code, out, err) = place.run(&["replay", report["bugs"][0]["scenario"].as_str().expect("a scenario")]);
    assert!(code == 1 && out.contains("SIGTERM, sent by process (0.1) at step 5, was handled at step 6"), "{out}{err}");
    assert!(out.contains("before the wait had begun"), "{out}");
    // It looks and waits in one call; it is told something else; it does not listen to that.
    for (how, kill) in [("looks", "kill 1001"), ("forgets", "kill -HUP 1001"), ("ignores", "kill 1001")] {
        let (_, report) = run(how, kill);
        assert_eq!((&report["verdict"], &report["complete"]), (&json!("ok"), &json!(true)), "{how} {kill}: {report}");
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
    assert_eq!(names, ["optimal", "optimal", "pct", "predict", "preemptions=2", "random"]);
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

/// However it comes there: names that are made, that are given to something else, that come with their directory; and also where they are gone
/// again when the client begins. `client` aborts where it begins before.
#[test]
fn clients_begin_once_a_file_exists() {
    let place = Place::new("file", "ready.c", &[]);
    let explore = |when: &str, how: &str| {
        let options = ["--format", "json", "--output", "printed", "--max-executions", "300", "--clients", when];
        place.report(&[&options[..], &CLIENT, &["./program", how]].concat())
    };
    for how in ["create", "rename", "link", "symlink", "mkdir", "mknod", "bind", "gone"] {
        let (code, report) = explore("file:ready", how);
        assert_eq!((code, &report["verdict"], &report["complete"]), (0, &json!("ok"), &json!(true)), "{how}: {report}");
        let (code, report) = explore("at-once", how);
        assert_eq!((code, &report["verdict"]), (1, &json!("assert")), "{how}: {report}");
    }
    let (_, report) = explore("file:now/ready", "dir");
    assert_eq!(report["verdict"], json!("ok"), "{report}");
    let (code, report) = explore("file:ready", "never");
    assert_eq!((code, &report["verdict"]), (1, &json!("deadlock")), "{report}");
    let scenario = report["bugs"][0]["scenario"].as_str().expect("a scenario");
    for _ in 0..2 {
        let (code, out, err) = place.run(&["replay", scenario]);
        let said = out.contains("waits for the file ") && out.contains("/ready, as --clients file: asks for");
        assert!(code == 1 && said, "{out}{err}");
    }
    // What is there before begins them at once, by whatever way.
    fs::write(place.0.join("ready"), "").expect("a file");
    std::os::unix::fs::symlink(".", place.0.join("way")).expect("a link");
    for path in ["file:ready", "file:./way/ready", "file:none/../ready"] {
        let (code, report) = explore(path, "never");
        assert_eq!((code, &report["verdict"]), (1, &json!("assert")), "{path}: {report}");
    }
}

/// In pieces, by several processes, to both streams, from the buffer of a stream that two threads write; where it depends on the order of two
/// threads whether the text comes, both orders are explored by each search, in pieces and in one go.
#[test]
fn clients_begin_once_a_text_is_printed() {
    let place = Place::new("text", "ready.c", &[]);
    let waits = ["--clients", "output:ready", "--output", "printed", "--keep-going", "--shrink", "0"];
    let explore = |more: &[&str], how: &str| {
        place.report(&[&waits[..], &["--format", "json"], more, &CLIENT, &["./program", how]].concat())
    };
    let (code, report) = explore(&[], "print");
    assert_eq!((code, &report["verdict"], &report["complete"]), (0, &json!("ok"), &json!(true)), "{report}");
    let (code, report) = explore(&[], "never");
    assert_eq!((code, &report["verdict"]), (1, &json!("deadlock")), "{report}");
    for search in ["optimal", "naive", "dpor", "sss", "composed", "transactions", "exitblock"] {
        for how in ["order", "buffered"] {
            let (code, report) = explore(&["--search", search, "-j", "2"], how);
            let bugs = report["bugs"].as_array().expect("bugs");
            // Which says of itself that it is never complete.
            let complete = search != "exitblock";
            assert_eq!((code, bugs.len(), &report["complete"]), (1, 1, &json!(complete)), "{search} {how}: {report}");
            assert_eq!(report["verdict"], json!("deadlock"), "{search} {how}: {report}");
            // In the other order the client runs.
            assert!(report["executions"].as_u64() > Some(1), "{search} {how}: {report}");
        }
    }
    let (_, whole) = explore(&["-j", "1"], "order");
    let scenario = whole["bugs"][0]["scenario"].as_str().expect("a scenario");
    for _ in 0..2 {
        let (code, out, err) = place.run(&["replay", "--output", "printed", scenario]);
        assert!(
            code == 1 && out.contains("the program to print \"ready\", as --clients output: asks for"),
            "{out}{err}"
        );
    }
    explore(&["-j", "1", "--max-executions", "4", "--save", "saved"], "order");
    let (code, resumed) = explore(&["-j", "1", "--resume", "saved"], "order");
    assert_eq!((code, &resumed["executions"]), (1, &whole["executions"]), "{resumed}");
    for other in [&["--clients", "output:read"][..], &["--clients", "output:ready", "--restart", "always"]] {
        let options = [&["--resume", "saved", "--keep-going", "--shrink", "0", "-j", "1"][..], other].concat();
        let (code, _, err) = place.run(&[&options[..], &CLIENT, &["./program", "order"]].concat());
        assert!(code == 2 && err.contains("saved with another"), "{other:?}: {err}");
    }
    let split = ["pieces", "split", "-o", "pieces", "--into", "3", "--look", "0"];
    let (code, out, err) = place.run(&[&split[..], &waits, &CLIENT, &["./program", "order"]].concat());
    assert_eq!(code, 0, "{out}{err}");
    let mut came = (0, Value::Null);
    // What turns out to be shared is split again.
    for round in 0..4 {
        if round > 0 {
            let (code, out, err) = place.run(&[&split[..], &["--again"]].concat());
            assert_eq!(code, 0, "{out}{err}");
        }
        let files = fs::read_dir(place.0.join("pieces")).expect("pieces").flatten();
        let pieces: Vec<String> = files.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        assert_eq!(pieces.iter().filter(|name| name.ends_with(".vsrun")).count(), 3, "{pieces:?}");
        for piece in pieces.iter().filter(|name| name.ends_with(".vsrun")) {
            place.run(&["pieces", "work", &format!("pieces/{piece}")]);
        }
        came = place.report(&["pieces", "merge", "--format", "json", "pieces"]);
        if came.1["complete"] == json!(true) {
            break;
        }
    }
    let (code, merged) = came;
    assert_eq!((code, &merged["executions"], &merged["complete"]), (1, &whole["executions"], &json!(true)), "{merged}");
}

/// A daemon that is killed at any moment and started again: what the first start has left is in the way of the second.
#[test]
fn a_daemon_that_is_killed_has_to_come_up_again() {
    let place = Place::new("again", "again.c", &[]);
    let kills = ["daemon", "-j", "1", "--clients", "at-once", "--signal", "KILL", "--format", "json"];
    let again = ["--restart", "on-failure", "--first", "--for", "60"];
    for (how, verdict, line, what) in [
        ("pid", "assert", "exit status 7, by thread", "at the last start of the program (--restart)"),
        ("sem", "deadlock", "semop(set 0, [0] -1)", "nothing can move"),
        ("child", "assert", "exit status 9, by thread", "(--restart)"),
    ] {
        let (code, report) = place.report(&[&kills[..], &again, &["./program", how]].concat());
        let summary = report["bugs"][0]["summary"].as_str().expect("a line");
        assert_eq!((code, &report["verdict"]), (1, &json!(verdict)), "{how}: {report}");
        assert!(summary.contains(line) && summary.contains(what), "{how}: {summary}");
        let scenario = report["bugs"][0]["scenario"].as_str().expect("a scenario");
        for _ in 0..2 {
            let (code, out, err) = place.run(&["replay", scenario]);
            let shown = ["the program, started again", "restart(after 1001", "killed by SIGKILL"];
            assert!(code == 1 && shown.iter().all(|part| out.contains(part)), "{how}: {out}{err}");
        }
    }
    // What goes with the process is in nobody's way; and to be killed is no crash there, while it is one without.
    for how in ["flock", "port"] {
        let hunt = ["--restart", "on-failure", "--for", "4", "./program", how];
        let (_, report) = place.report(&[&kills[..], &hunt].concat());
        assert_eq!((&report["verdict"], &report["bugs"]), (&json!("ok"), &json!([])), "{how}: {report}");
    }
    let (code, report) = place.report(&[&kills[..], &["--first", "--for", "20", "./program", "flock"]].concat());
    assert_eq!((code, &report["verdict"]), (1, &json!("crash")), "{report}");
}

#[test]
fn a_program_is_started_again_as_often_as_asked_for_and_after_the_ends_asked_for() {
    let place = Place::new("restarts", "again.c", &[]);
    let explore = |options: &[&str], program: &[&str]| {
        let json = ["--format", "json", "--output", "printed"];
        let (code, report) = place.report(&[&json, options, &["./program"], program].concat());
        (code, report["verdict"].as_str().expect("a verdict").to_string(), report)
    };
    let failure = ["--restart", "on-failure"];
    let always = ["--restart", "always"];
    for (options, program, verdict) in [
        (&failure[..], &["once"][..], "ok"),
        (&[], &["second"], "ok"),
        (&failure, &["second"], "ok"),
        (&always, &["second"], "assert"),
        (&failure, &["fails", "0"], "ok"),
        (&failure, &["fails", "4"], "assert"),
    ] {
        let (code, came, report) = explore(options, program);
        assert_eq!(came, verdict, "{options:?} {program:?}: {report}");
        assert_eq!((code, report["complete"] == json!(true)), (i32::from(came != "ok"), came == "ok"), "{report}");
    }
    // The number of the process that fails says how many there were.
    for (restarts, vpid) in [("1", "1002"), ("3", "1004")] {
        let (_, _, report) = explore(&["--restart", "always", "--restarts", restarts], &["fails", "4"]);
        let scenario = report["bugs"][0]["scenario"].as_str().expect("a scenario");
        let (code, out, err) = place.run(&["replay", scenario]);
        let line = out.lines().find(|line| line.trim_start().starts_with(vpid));
        assert!(
            code == 1 && line.is_some_and(|line| line.contains("started again; over: exited with status 4")),
            "{out}{err}"
        );
    }
    // Who is told to end may say so by his status; and SIGTERM is no failure.
    for when in ["on-failure", "always"] {
        let hunt = ["daemon", "-j", "1", "--format", "json", "--clients", "at-once", "--signal", "TERM", "--for", "5"];
        let (_, report) = place.report(&[&hunt[..], &["--restart", when, "./program", "handles"]].concat());
        assert_eq!((&report["verdict"], &report["bugs"]), (&json!("ok"), &json!([])), "{when}: {report}");
    }
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
        (
            &["daemon", "--clients", "file:", "./program"],
            "for '--clients <WHEN>': the path of the file is missing behind the colon",
        ),
        (&["--clients", "output:", "./program"], "for '--clients <WHEN>': the text is missing behind the colon"),
        (&["--clients", "soon", "./program"], "listening, at-once, file:PATH or output:TEXT is needed"),
        (&["--clients", "file:a/..", "./program"], "--clients file:a/..: it names no file in a directory"),
        (&["daemon", "--restarts", "2", "./program"], "--restart <WHEN>"),
        (&["daemon", "--restart", "always", "--restarts", "0", "./program"], "1..=16"),
        (&["--restart", "soon", "./program"], "on-failure, always"),
    ] {
        let (code, _, err) = place.run(arguments);
        assert!(code == 2 && err.contains(what), "{arguments:?}: {err}");
    }
}
