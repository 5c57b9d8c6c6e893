//! `--watch`: who uses a variable, as debug registers see it. With the vsrun binary.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A directory with the program, removed at the end.
struct Place(PathBuf);

impl Place {
    fn new(test: &str) -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-watchlist-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary directory");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/watchlist/program.c");
        let mut compiler = Command::new("gcc");
        compiler.args(["-O2", "-pthread", "-o"]).arg(dir.join("program")).arg(source);
        assert!(compiler.status().expect("gcc").success());
        Place(dir)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vsrun"));
        command.args(arguments).current_dir(&self.0).output().expect("vsrun runs")
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let done = self.run(&[arguments, &[]].concat());
        serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{}", said(&done)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn said(done: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr))
}

/// Each use as `thread variable does old new function`.
fn uses(report: &Value) -> Vec<String> {
    let all = report["uses"].as_array().into_iter().flatten();
    let line = |one: &Value| {
        let text = |key: &str| one[key].as_str().unwrap_or("?").to_string();
        let place = text("place");
        let function = place.split('+').next().unwrap_or_default().to_string();
        format!("{} {} {} {} {} {function}", text("thread"), text("variable"), text("does"), one["old"], one["new"])
    };
    all.map(line).collect()
}

const ONCE: [&str; 3] = ["--format", "json", "--once"];

#[test]
fn each_use_is_told_with_thread_function_and_values() {
    let place = Place::new("threads");
    let expected = [
        "0.1 total read 0 0 look",
        "0.1 total write 0 1 set",
        "0.2 total read 1 1 look",
        "0.2 total write 1 2 set",
        "0 total update 2 7 add",
        "0 total read 7 7 main",
    ];
    for race in ["off", "explore"] {
        let report = place.json(&[&ONCE[..], &["--race", race, "--watch", "total", "./program", "threads"]].concat());
        assert_eq!(uses(&report), expected, "{race}");
        // The second thread comes to it when the first one has let go of the lock.
        let steps: Vec<u64> = report["uses"].as_array().unwrap().iter().map(|u| u["step"].as_u64().unwrap()).collect();
        assert!(steps.is_sorted() && steps[1] < steps[2], "{steps:?}");
    }
}

#[test]
fn a_scenario_tells_the_same_and_a_search_where_it_was_first() {
    let place = Place::new("scenario");
    let found = place.json(&["--format", "json", "--keep-going", "--watch", "total", "./program", "threads"]);
    assert_eq!((found["verdict"].as_str(), found["complete"].as_bool()), (Some("assert"), Some(true)));
    assert_eq!(found["executions"].as_u64(), Some(2));
    let of = |thread: &str, does: &str| {
        let all = found["uses"].as_array().unwrap();
        let of = all.iter().filter(|u| u["thread"] == thread && u["does"] == does);
        of.map(|u| (u["old"].as_u64().unwrap(), u["times"].as_u64().unwrap())).collect::<Vec<_>>()
    };
    // Each thread writes once in each of the two executions; the values are those of the first.
    assert_eq!(of("0.1", "write"), [(0, 2)]);
    assert_eq!(of("0.2", "write"), [(1, 2)]);
    let file = "program-assert-1.vsrun.json";
    let replayed = place.json(&["replay", "--format", "json", "--watch", "total", file]);
    let lines = uses(&replayed);
    assert_eq!(lines.len(), 6, "{lines:?}");
    assert_eq!(lines[4], "0 total update 2 7 add");
    let text = said(&place.run(&["replay", "--watch", "total", file]));
    assert!(text.contains("update of total (4 bytes): 2 -> 7  at add+0x"), "{text}");
    // Without it nothing is said, and nothing costs anything.
    assert!(!said(&place.run(&["replay", file])).contains("Uses of"));
}

#[test]
fn what_the_kernel_does_a_child_and_libc() {
    let place = Place::new("others");
    let once =
        |watch: &str, what: &str| uses(&place.json(&[&ONCE[..], &["--watch", watch, "./program", what]].concat()));
    let kernel = once("total", "kernel");
    // 0x04030201, as it was read from the pipe.
    assert_eq!(kernel.last().map(String::as_str), Some("0 total write 67305985 67305985 set"), "{kernel:?}");
    assert_eq!(kernel.len(), 3, "{kernel:?}");
    assert!(kernel[0].starts_with("0 total changed by a call 0 67305985 "), "{kernel:?}");
    let fork = once("total", "fork");
    // The child has a copy: what it writes there is nothing to its parent.
    let mut sorted = fork.clone();
    sorted.sort();
    assert_eq!(sorted, ["0 total write 0 4 set", "0.1 total read 3 3 look", "0.1 total write 0 3 set"], "{fork:?}");
    let parts = once("pair+12:4", "parts");
    assert_eq!(parts, ["0 pair+0xc write 0 0 main"]);
    assert_eq!(once("pair+7:2", "parts"), ["0 pair+0x8 write 0 9 main"]);
    let text = once("text+8:8", "text");
    assert_eq!(text.len(), 1, "{text:?}");
    assert!(text[0].starts_with("0 text+0x8 write 0 7378413942531504440 "), "{text:?}");
}

#[test]
fn what_cannot_be_watched_is_refused() {
    let place = Place::new("refused");
    for (value, why) in [
        ("nothing", "--watch nothing: the program and its libraries have no variable of that name"),
        ("total+4", "the variable has 4 bytes"),
        ("total+2:3", "the variable has 2 bytes from there on"),
        ("total+0:0", "SYMBOL[+OFFSET[:LEN]] is needed"),
        ("text", ""),
        ("text+1:23", "there are 4 debug registers"),
    ] {
        let done = place.run(&["--once", "--watch", value, "./program"]);
        let wanted = if why.is_empty() { 0 } else { 2 };
        assert!(
            said(&done).contains(why) && (done.status.code() == Some(2)) == (wanted == 2),
            "{value}: {}",
            said(&done)
        );
    }
    let both = place.run(&["--once", "--watch", "text", "--watch", "pair", "./program"]);
    assert!(said(&both).contains("there are 4 debug registers"), "{}", said(&both));
}
