//! Schedules of bugs are shortened, and `vsrun explain` finds the step at which another choice leads away: with the vsrun binary.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::{json, Value};

/// A directory with the program, removed at the end.
struct Place(PathBuf);

impl Place {
    fn new(test: &str) -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-shorten-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary directory");
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let place = Place(dir);
        let status = Command::new("gcc")
            .args(["-O1", "-g", "-pthread", "-o", "program", "-I"])
            .args([root.join("shim/include"), root.join("tests/shorten/program.c")])
            .current_dir(&place.0)
            .status();
        assert!(status.expect("gcc").success());
        place
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vsrun"));
        command.args(arguments).current_dir(&self.0).output().expect("vsrun runs")
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let done = self.run(arguments);
        let text = String::from_utf8_lossy(&done.stdout);
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&done.stderr)))
    }

    /// Explores at random: the report, and the thread and alternative of each step of the first bug's scenario.
    fn explore(&self, options: &[&str]) -> (Value, Vec<(String, u64)>) {
        let fixed = ["--format", "json", "--search", "random", "--seed", "3", "--max-executions", "500"];
        let report = self.json(&[&fixed[..], options].concat());
        let steps = self.steps(&report["bugs"][0]);
        (report, steps)
    }

    fn scenario(&self, bug: &Value) -> Value {
        let path = bug["scenario"].as_str().expect("a scenario");
        serde_json::from_slice(&fs::read(self.0.join(path)).expect("the scenario")).expect("JSON")
    }

    fn steps(&self, bug: &Value) -> Vec<(String, u64)> {
        let scenario = self.scenario(bug);
        let steps = scenario["steps"].as_array().expect("steps").iter();
        steps.map(|s| (s["thread"].as_str().expect("a name").into(), s["value"].as_u64().expect("a number"))).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Switches, steps and tosses that are not 0.
fn length(steps: &[(String, u64)]) -> [u64; 3] {
    let switches = steps.windows(2).filter(|pair| pair[0].0 != pair[1].0).count();
    let tosses = steps.iter().filter(|step| step.1 != 0).count();
    [switches, steps.len(), tosses].map(|n| n as u64)
}

fn told(length: &Value) -> [u64; 3] {
    ["switches", "steps", "tosses"].map(|key| length[key].as_u64().expect(key))
}

/// The bug of one program, long and short.
fn is_shortened(what: &str, options: &[&str], most: [u64; 3]) {
    let place = Place::new(what);
    let all = [options, &["./program", what]].concat();
    let (long, before) = place.explore(&[&["--shrink", "0"], &all[..]].concat());
    assert!(long["bugs"][0].get("shortened").is_none(), "{long}");
    let (short, after) = place.explore(&all);
    for key in ["verdict", "executions", "transitions", "max_depth", "incomplete_reasons"] {
        assert_eq!(long[key], short[key], "{key}");
    }
    assert_eq!(long["bugs"][0]["summary"], short["bugs"][0]["summary"]);
    let how = &short["bugs"][0]["shortened"];
    assert_eq!((told(&how["from"]), told(&how["to"])), (length(&before), length(&after)), "{short}");
    assert!(length(&before) > length(&after), "{how}");
    assert!(length(&after).iter().zip(most).all(|(n, most)| *n <= most), "{how}");
    assert!(how["executions"].as_u64().is_some_and(|n| n > 0));
    assert_eq!(place.scenario(&short["bugs"][0])["found"]["shortened"], *how);
    let file = short["bugs"][0]["scenario"].as_str().expect("a scenario");
    for _ in 0..20 {
        let again = place.json(&["replay", "--format", "json", file]);
        assert_eq!((&again["replayed"], &again["transitions"]), (&Value::Bool(true), &how["to"]["steps"]));
    }
    let line = format!("{} switches to {}", length(&before)[0], length(&after)[0]);
    assert!(String::from_utf8_lossy(&place.run(&["show", file]).stdout).contains(&line));
}

#[test]
fn a_deadlock() {
    // Up to where it waits for the other, then that one.
    is_shortened("deadlock", &["--race", "off"], [1, 14, 0]);
}

#[test]
fn an_assertion() {
    is_shortened("assertion", &["--race", "off"], [1, 12, 1]);
}

#[test]
fn a_lost_update() {
    is_shortened("update", &["--race", "off"], [5, 43, 0]);
}

#[test]
fn a_lost_update_of_memory() {
    is_shortened("memory", &["--race", "explore"], [3, 8, 0]);
}

#[test]
fn each_bug_is_shortened_where_the_search_goes_on_whatever_the_number_of_workers() {
    let place = Place::new("all");
    let report = |workers: &str| {
        let all = ["--format", "json", "--keep-going", "--race", "off", "-j", workers, "./program", "crossed"];
        let report = place.json(&all);
        assert_eq!((&report["complete"], report["bugs"].as_array().map(Vec::len)), (&Value::Bool(true), Some(1)));
        let length = length(&place.steps(&report["bugs"][0]));
        assert_eq!(length[0], 1, "{report}");
        (["executions", "transitions", "max_depth"].map(|key| report[key].clone()), length)
    };
    assert_eq!(report("1"), report("2"));
}

#[test]
fn the_time_holds_and_a_single_execution_is_not_repeated() {
    let place = Place::new("time");
    let since = Instant::now();
    let all = [
        "--search",
        "random",
        "--race",
        "off",
        "--time",
        "0.5",
        "--shrink",
        "60",
        "--keep-going",
        "./program",
        "deadlock",
    ];
    let done = place.run(&all);
    assert_eq!(done.status.code(), Some(1));
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    let once = place.json(&["--once", "--format", "json", "./program", "update"]);
    assert_eq!(once["executions"], 1);
    assert!(once["bugs"].as_array().is_some_and(|bugs| bugs.iter().all(|bug| bug.get("shortened").is_none())));
}

/// What `explain` says of the shortened bug.
fn explained(what: &str, options: &[&str]) -> (Place, Value, String) {
    let place = Place::new(&format!("explain-{what}"));
    let (report, _) = place.explore(&[options, &["./program", what]].concat());
    let file = report["bugs"][0]["scenario"].as_str().expect("a scenario").to_string();
    let said = place.run(&["explain", "--time", "60", &file]);
    let value = place.json(&["explain", "--time", "60", "--format", "json", &file]);
    let exit = if value["turn"].is_null() { 3 } else { 0 };
    assert_eq!(said.status.code(), Some(exit), "{}", String::from_utf8_lossy(&said.stderr));
    (place, value, String::from_utf8_lossy(&said.stdout).into_owned())
}

/// Behind the step the bug cannot be avoided; with the other one first it does not come.
fn decides(turn: &Value) {
    assert_eq!((&turn["taken"]["bug"], &turn["taken"]["samples"]), (&Value::from(20), &Value::from(20)), "{turn}");
    assert_eq!((&turn["instead"]["bug"], &turn["instead"]["samples"]), (&Value::from(0), &Value::from(20)), "{turn}");
    assert_ne!(turn["taken"]["thread"], turn["instead"]["thread"], "{turn}");
}

#[test]
fn the_turning_point_of_a_deadlock() {
    let (_place, value, text) = explained("deadlock", &["--race", "off"]);
    let turn = &value["turn"];
    decides(turn);
    // The second lock is taken; the other thread would have taken it.
    for one in ["taken", "instead"] {
        let operation = turn[one]["operation"].as_str().expect("a call");
        assert!(["pthread_mutex_lock(a)", "pthread_mutex_lock(b)"].contains(&operation), "{turn}");
    }
    assert_eq!(turn["taken"]["operation"], turn["instead"]["operation"], "{turn}");
    assert!(
        text.contains("the bug is gone.\n") && text.contains("the bug shows in 0 of 20 random continuations\n"),
        "{text}"
    );
}

#[test]
fn a_bug_of_each_execution_has_no_turning_point() {
    let (_place, value, text) = explained("always", &[]);
    assert_eq!(value["turn"], Value::Null, "{value}");
    assert_eq!(value["beginning"], json!({"samples": 100, "bug": 100, "other_bug": 0, "no_bug": 0, "cut": 0}));
    assert!(
        text.contains(
            "It does not depend on the schedule, as far as these tell: it shows in 100 of 100 random executions"
        ),
        "{text}"
    );
}

#[test]
fn the_turning_point_of_an_assertion() {
    let (_place, value, text) = explained("assertion", &["--race", "off"]);
    let turn = &value["turn"];
    assert_eq!(turn["taken"]["bug"], 20, "{turn}");
    assert_eq!(turn["instead"]["bug"], 0, "{turn}");
    assert!(text.contains("VS_toss(2) = 1") || text.contains("pthread_mutex_lock(b)"), "{text}");
}

#[test]
fn the_turning_point_of_a_lost_update() {
    let (_place, value, text) = explained("update", &["--race", "off"]);
    decides(&value["turn"]);
    assert!(text.contains("pthread_mutex_lock(a)"), "{text}");
}

/// The scenario of the race that `--race hb` finds there.
fn race_of(place: &Place, what: &str) -> String {
    let report = place.json(&["--format", "json", "--race", "hb", "./program", what]);
    let race = report["bugs"].as_array().expect("bugs").iter().find(|bug| bug["kind"] == "race").expect("a race");
    race["scenario"].as_str().expect("a scenario").to_string()
}

#[test]
fn a_race_is_the_same_in_either_order_and_nothing_orders_it() {
    let place = Place::new("race");
    let file = race_of(&place, "memory");
    let value = place.json(&["explain", "--time", "60", "--format", "json", &file]);
    assert_eq!((value["kind"].as_str(), &value["turn"]), (Some("race"), &Value::Null), "{value}");
    let uses = value["uses"].as_array().expect("two uses");
    assert_eq!(uses.len(), 2, "{value}");
    assert_ne!(uses[0]["thread"], uses[1]["thread"], "{value}");
    assert!(uses.iter().all(|one| one["at"].as_str().is_some_and(|at| at.starts_with("count program.c:"))), "{value}");
    let text = String::from_utf8_lossy(&place.run(&["explain", "--time", "60", &file]).stdout).into_owned();
    assert!(
        text.contains("the other order is the same race.\n") && text.contains("nothing orders them in all random"),
        "{text}"
    );
}

#[test]
fn a_race_that_a_lock_orders_in_some_executions() {
    let place = Place::new("sometimes");
    let file = race_of(&place, "published");
    let value = place.json(&["explain", "--time", "60", "--format", "json", &file]);
    let turn = &value["turn"];
    assert_eq!(turn["taken"]["bug"], 20, "{value}");
    assert!(turn["instead"]["bug"].as_u64().is_some_and(|bug| bug < 20), "{value}");
    let text = String::from_utf8_lossy(&place.run(&["explain", "--time", "60", &file]).stdout).into_owned();
    assert!(text.contains("The latest step at which another choice puts them in an order:\n"), "{text}");
}
