//! The table of outcomes, with the vsrun binary: what is counted, that it does not depend on workers nor on interruptions, and scenarios of
//! outcomes (`--save-outcome`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{json, Value};

/// A directory with the program, removed at the end.
struct Place(PathBuf);

impl Place {
    fn new(test: &str) -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-outcomes-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary directory");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/outcomes/program.c");
        let mut gcc = Command::new("gcc");
        gcc.args(["-O1", "-g", "-pthread", "-o"]).arg(dir.join("program")).arg(source);
        assert!(gcc.status().expect("gcc").success());
        Place(dir)
    }

    /// Exit status, standard output, standard error.
    fn run(&self, line: &str) -> (i32, String, String) {
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", "100", env!("CARGO_BIN_EXE_vsrun")]).args(line.split_whitespace());
        let output = command.current_dir(&self.0).stdin(Stdio::null()).output().expect("vsrun");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
    }

    fn report(&self, line: &str) -> Value {
        let (_, out, err) = self.run(&format!("--race off --format json --output printed {line}"));
        serde_json::from_str(&out).unwrap_or_else(|e| panic!("{line}: {e}: {out}{err}"))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The table without the paths of scenarios.
fn table(report: &Value) -> Value {
    let mut outcomes = report["outcomes"].clone();
    for row in outcomes["table"].as_array_mut().expect("a table") {
        row["scenario"] = Value::Null;
    }
    outcomes
}

#[test]
fn every_execution_is_counted_and_the_table_does_not_depend_on_workers() {
    let place = Place::new("workers");
    for search in ["optimal", "naive", "dpor"] {
        let one = place.report(&format!("--search {search} -j 1 ./program fails"));
        let outcomes = table(&one);
        assert_eq!(
            (&one["complete"], &outcomes["different"], &outcomes["more"]),
            (&json!(true), &json!(3), &json!(false))
        );
        let rows = outcomes["table"].as_array().expect("rows");
        let all: u64 = rows.iter().filter_map(|row| row["times"].as_u64()).sum();
        assert_eq!(
            (Some(all), Some(all)),
            (one["reached_end"].as_u64(), outcomes["executions"].as_u64()),
            "{outcomes}"
        );
        let order: Vec<_> = rows.iter().filter_map(|row| row["times"].as_u64()).collect();
        assert!(order.is_sorted_by(|a, b| a >= b), "{order:?}");
        // All of them have the same first line, and so the second is shown.
        let texts: Vec<_> = rows.iter().map(|row| (&row["line"], row["text"].as_str().expect("a text"))).collect();
        assert!(texts.iter().all(|(line, _)| **line == json!(2)), "{outcomes}");
        for n in 1..=3 {
            let row = rows.iter().find(|row| row["text"] == json!(format!("total {n}"))).expect("a row");
            assert_eq!(row["program_status"], json!({"exit": if n == 1 { 3 } else { 0 }}), "{outcomes}");
        }
        for workers in [2, 3] {
            let several = place.report(&format!("--search {search} -j {workers} ./program fails"));
            assert_eq!(table(&several), outcomes, "{search}, {workers} workers");
        }
    }
}

#[test]
fn the_table_of_a_resumed_search_is_that_of_one() {
    let place = Place::new("resume");
    for workers in [1, 2] {
        let search = format!("--search optimal -j {workers}");
        let whole = place.report(&format!("{search} ./program"));
        let part = place.report(&format!("{search} --save state --max-executions 20 ./program"));
        assert_ne!(table(&part), table(&whole));
        let rest = place.report(&format!("{search} --resume state ./program"));
        assert_eq!((&rest["complete"], table(&rest)), (&json!(true), table(&whole)));
        // From a state of a search that is over.
        let saved = place.report(&format!("{search} --resume state --save-outcome 3 ./program"));
        assert_eq!(table(&saved), table(&whole));
        assert!(saved["outcomes"]["table"][2]["scenario"].is_string(), "{saved}");
    }
}

#[test]
fn a_scenario_of_an_outcome_replays_to_it() {
    let place = Place::new("saved");
    let line = "--race off --output printed --save-outcome 1,3 --save-outcome 9 ./program fails";
    let (code, text, err) = place.run(line);
    assert_eq!(code, 0, "{text}{err}");
    let has = |part: &str| assert!(text.contains(part), "{part}: {text}");
    has("note: --save-outcome 9: the table has 3 outcomes");
    has("executions that ran to their end differ in what they printed or exited with: 3 outcomes");
    has("Outcomes of 90 executions that ran to their end");
    let json: Value = place.report("--save-outcome 1,3 ./program fails");
    let rows = json["outcomes"]["table"].as_array().expect("rows");
    assert!(rows[1]["scenario"].is_null());
    for row in [&rows[0], &rows[2]] {
        let file = row["scenario"].as_str().expect("a scenario");
        // The second run had the same ones.
        has(&format!("scenario: {file}"));
        for _ in 0..2 {
            let (code, out, err) = place.run(&format!("replay --output again {file}"));
            assert_eq!(code, 3, "{out}{err}");
            assert!(
                out.contains(
                    "the replay came to the same end as the scenario records, by the same steps; it is no bug"
                ),
                "{out}"
            );
            let printed = fs::read_to_string(place.0.join("again")).expect("what it printed");
            assert_eq!(printed.lines().nth(1), row["text"].as_str());
        }
        let (code, _, err) = place.run(&format!("explain {file}"));
        assert!(code == 2 && err.contains("of no bug"), "{err}");
    }
    // A program that prints something else by the same steps has another outcome.
    fs::write(place.0.join("word"), "sum").expect("a file");
    let file = rows[0]["scenario"].as_str().expect("a scenario");
    let (code, out, err) = place.run(&format!("replay --output again {file}"));
    assert!(code == 4 && err.contains("the replay came to another outcome"), "{code} {out}{err}");
}

#[test]
fn one_outcome_is_no_table() {
    let place = Place::new("one");
    fs::write(place.0.join("word"), "").expect("a file");
    let (_, text, err) = place.run("--race off --output printed ./program");
    assert!(!text.contains("Outcomes of"), "{text}{err}");
    let report = place.report("./program");
    assert_eq!(report["outcomes"]["table"][0]["program_status"], json!({"exit": 9}), "{report}");
    assert_eq!(report["outcomes"]["different"], json!(1));
    let (_, text, _) = place.run("--race off --output printed --save-outcome 2 ./program");
    assert!(text.contains("--save-outcome 2: all executions that ran to their end had the same outcome"), "{text}");
}
