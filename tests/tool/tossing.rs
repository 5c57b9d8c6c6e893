//! `--toss`: functions of the program that return a choice. With the vsrun binary; what is explored is in `c-tests/toss_function.expect`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A directory with the program, removed at the end.
struct Place(PathBuf);

impl Place {
    fn new(test: &str) -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-tossing-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary directory");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tossing/program.cc");
        let mut compiler = Command::new("g++");
        compiler.args(["-O2", "-pthread", "-o"]).arg(dir.join("program")).arg(source);
        assert!(compiler.status().expect("g++").success());
        Place(dir)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vsrun"));
        command.args(arguments).current_dir(&self.0).output().expect("vsrun runs")
    }

    /// The report of an exploration, and its exit status.
    fn explore(&self, options: &[&str], what: &str) -> (Value, Option<i32>) {
        let all = [&["--format", "json", "--keep-going", "--time", "60"], options, &["./program", what]].concat();
        let done = self.run(&all);
        let report = serde_json::from_slice(&done.stdout);
        (report.unwrap_or_else(|_| panic!("{}", said(&done))), done.status.code())
    }

    /// What it says where it does not begin.
    fn refused(&self, options: &[&str]) -> String {
        let done = self.run(&[options, &["./program"]].concat());
        assert_eq!(done.status.code(), Some(2), "{}", said(&done));
        said(&done)
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

fn notes(report: &Value) -> Vec<String> {
    let notes = report["notes"].as_array().into_iter().flatten();
    notes.filter_map(Value::as_str).filter(|note| note.starts_with("--toss")).map(String::from).collect()
}

#[test]
fn a_name_of_cpp_stands_for_all_functions_that_have_it() {
    let place = Place::new("names");
    let (report, code) = place.explore(&["--toss", "robot::Arm::grips:1", "--toss", "robot::Arm::reach:2"], "names");
    assert_eq!((report["executions"].as_u64(), report["complete"].as_bool(), code), (Some(18), Some(true), Some(1)));
    assert_eq!(
        notes(&report),
        [
            "--toss: robot::Arm::grips() const (program) returns each of 0 to 1",
            "--toss: robot::Arm::reach(double) (program) returns each of 0 to 2",
            "--toss: robot::Arm::reach(int) (program) returns each of 0 to 2",
        ]
    );
    // With its parameters it is one of them; the other gives 4.
    let (report, code) = place.explore(&["--toss", "robot::Arm::reach(double):2"], "names");
    assert_eq!((report["executions"].as_u64(), report["complete"].as_bool(), code), (Some(3), Some(true), Some(0)));
}

#[test]
fn the_room_of_a_short_function_is_nobody_elses() {
    let place = Place::new("short");
    let watched = &["--race", "explore", "--toss", "tiny:1"];
    let (report, code) = place.explore(watched, "race");
    // 2 is seen if tiny gives 1 and the read, in the function beside it, comes after the write: so that read is watched.
    assert_eq!((report["verdict"].as_str(), report["complete"].as_bool(), code), (Some("assert"), Some(true), Some(1)));
    assert_eq!(report["executions"].as_u64(), Some(4));
    let (report, code) = place.explore(&["--race", "explore"], "race");
    assert_eq!((report["executions"].as_u64(), code), (Some(2), Some(0)));
}

#[test]
fn a_function_without_any_room_is_replaced_by_a_trap() {
    let place = Place::new("trap");
    for race in ["off", "explore"] {
        let (report, code) = place.explore(&["--race", race, "--toss", "crowded:2", "--fail-on-exit"], "");
        assert_eq!((report["executions"].as_u64(), report["complete"].as_bool(), code), (Some(3), Some(true), Some(1)));
        assert_eq!(report["bugs"].as_array().map(Vec::len), Some(2), "{report}");
    }
    let (report, _) = place.explore(&["--toss", "crowded:1"], "trap");
    assert_eq!((report["verdict"].as_str(), report["executions"].as_u64()), (Some("assert"), Some(2)), "{report}");
}

#[test]
fn what_cannot_be_replaced_is_refused() {
    let place = Place::new("refused");
    for (value, why) in [
        ("nothing:1", "--toss nothing:1: the program and its libraries have no function of that name"),
        ("printf:1", "--toss printf:1: it is a function of libc.so"),
        ("sem_wait:1", "--toss sem_wait:1: it is a function of libc.so"),
        ("tiny:0", "N is a number from 1 to 65535"),
        ("tiny:65536", "N is a number from 1 to 65535"),
        ("tiny", "FUNC:N is needed"),
        (":1", "the name of the function is missing"),
    ] {
        let said = place.refused(&["--toss", value]);
        assert!(said.contains(why), "{value}: {said}");
    }
    assert!(place.refused(&["--toss", "tiny:1", "--toss", "tiny:2"]).contains("--toss names 'tiny' twice"));
    let same = place.refused(&["--toss", "robot::Arm::reach:1", "--toss", "_ZN5robot3Arm5reachEi:2"]);
    assert!(same.contains("'robot::Arm::reach' is the same function"), "{same}");
}

#[test]
fn scenarios_and_saved_searches_know_it() {
    let place = Place::new("scenario");
    let toss = ["--toss", "robot::Arm::grips:1", "--toss", "robot::Arm::reach:2"];
    let first = place.run(&[&toss[..], &["--save", "state", "./program", "names"]].concat());
    assert_eq!(first.status.code(), Some(1), "{}", said(&first));
    assert!(!said(&first).contains("--no-supervisor"), "it cannot be replayed so: {}", said(&first));
    let file = "program-assert-1.vsrun.json";
    let again = place.run(&["replay", file]);
    assert_eq!(again.status.code(), Some(1), "{}", said(&again));
    assert!(said(&again).contains("the same bug, by the same steps"), "{}", said(&again));
    let shown = said(&place.run(&["show", file]));
    assert!(shown.contains("--toss robot::Arm::grips:1 --toss robot::Arm::reach:2"), "{shown}");
    let alone = place.run(&["replay", "--no-supervisor", file]);
    assert_eq!(alone.status.code(), Some(2), "{}", said(&alone));
    let other = place.run(&["--resume", "state", "--toss", "robot::Arm::grips:1", "./program", "names"]);
    assert_eq!(other.status.code(), Some(2), "{}", said(&other));
    assert!(said(&other).contains("it was saved with another --toss"), "{}", said(&other));
    let same = place.run(&[&toss[..], &["--keep-going", "--resume", "state", "./program", "names"]].concat());
    assert!(said(&same).contains("18 executions"), "{}", said(&same));
}
