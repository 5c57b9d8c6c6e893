//! The differential oracle: random programs run natively many times and under vsrun; what native runs show must be among what vsrun
//! explores, wherever it says that it explored everything.
//!
//! `VSRUN_NATIVE_CASES=N` programs a family (default: a few), `VSRUN_NATIVE_RUNS=N` native runs each, `VSRUN_NATIVE_SEED=N` other
//! programs, `VSRUN_NATIVE_EXECUTIONS=N` at most of each under vsrun, `VSRUN_NATIVE_RACE=explore` with memory watched, `VSRUN_NATIVE_MEMORY=tso` with store buffers, `VSRUN_NATIVE_FAMILY=NAME` only these, `VSRUN_NATIVE_PROGRAM='..'` one program, told in full,
//! `VSRUN_NATIVE_SEARCH=naive` another search.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use serde_json::Value;

#[path = "native/program.rs"]
mod program;

use program::{Rng, FAMILIES};

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect(name))
}

/// A directory of this run, with the driver in it.
struct Place {
    dir: PathBuf,
}

impl Place {
    fn new(name: &str) -> Place {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("native-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/native/driver.c");
        let status =
            Command::new("gcc").args(["-O1", "-g", "-pthread", "-o"]).arg(dir.join("driver")).arg(source).status();
        assert!(status.expect("gcc").success(), "the driver does not compile");
        Place { dir }
    }

    fn driver(&self) -> PathBuf {
        self.dir.join("driver")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
        // Memory that has its name after the directory, of an execution that was cut.
        for i in 0..2 {
            let name = self.dir.file_name().unwrap_or_default().to_string_lossy();
            let _ = fs::remove_file(format!("/dev/shm/{name}.{i}"));
        }
    }
}

/// How one side came out: outcomes with how often each came, hangs and fatal signals among them.
type Outcomes = BTreeMap<String, u64>;

const HANG: &str = "HANG";

fn natively(place: &Place, runs: u64, seed: u64, program: &str) -> Outcomes {
    let output = Command::new(place.driver())
        .args(["--native", &runs.to_string(), &seed.to_string(), program])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let line = |line: &str| line.split_once(' ').map(|(n, outcome)| (outcome.to_owned(), n.parse().unwrap()));
    let all: Outcomes = text.lines().filter_map(line).collect();
    assert!(!all.is_empty(), "{program}: no native outcome: {}", String::from_utf8_lossy(&output.stderr));
    all
}

/// What vsrun says.
struct Explored {
    outcomes: Outcomes,
    complete: bool,
    /// Why not.
    why: String,
    /// vsrun says that it is at fault itself.
    bug: bool,
    executions: u64,
}

/// Operations on memory that nothing orders begin with this.
const CELLS: &str = "cell";

/// How memory is watched: unless asked for only where the program uses some without an order. What others use in common beside their calls are the
/// places of their results, each thread's own.
fn race(program: &str) -> String {
    let needed = if program.contains(CELLS) { "explore" } else { "off" };
    std::env::var("VSRUN_NATIVE_RACE").unwrap_or_else(|_| needed.into())
}

/// What makes a brute force of `naive` that does not depend on which races are found: each use of the global cells is a place to switch.
fn brute(place: &Place, search: &str, program: &str) -> Vec<OsString> {
    if search != "naive" || race(program) != "explore" {
        return Vec::new();
    }
    let file = place.dir.join("annotations");
    fs::write(&file, "communication own_cell\n").expect("a file");
    vec!["--annotations".into(), file.into()]
}

fn explored(place: &Place, search: &str, program: &str) -> Explored {
    let file = place.dir.join("outcomes");
    let _ = fs::remove_file(&file);
    let output = Command::new(env!("CARGO_BIN_EXE_vsrun"))
        .args([
            "--keep-going",
            "--files",
            "real",
            "--format",
            "json",
            "--timeouts",
            "any",
            "--race",
            &race(program),
            "--search",
            search,
        ])
        .args(
            std::env::var("VSRUN_NATIVE_MEMORY")
                .ok()
                .filter(|_| race(program) == "explore")
                .map(|model| format!("--memory={model}")),
        )
        .args(brute(place, search, program))
        // Two executions at a time would meet in the real directory.
        .args(["-j", "1"])
        .args(["--max-executions", &setting("VSRUN_NATIVE_EXECUTIONS", 20_000).to_string(), "--time", "20"])
        .args(["--output", "/dev/null", "--scenario-dir"])
        .arg(&place.dir)
        .arg("--")
        .arg(place.driver())
        .arg("--outcome")
        .arg(&file)
        .arg(program)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let mut outcomes = Outcomes::new();
    for line in fs::read_to_string(&file).unwrap_or_default().lines() {
        *outcomes.entry(line.to_owned()).or_default() += 1;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let Ok(report) = serde_json::from_str::<Value>(&text) else {
        let why = format!("exit {:?}: {}", output.status.code(), String::from_utf8_lossy(&output.stderr));
        return Explored { outcomes, complete: false, bug: why.contains("vsrun bug"), why, executions: 0 };
    };
    for bug in report["bugs"].as_array().into_iter().flatten() {
        let outcome = match bug["kind"].as_str() {
            Some("deadlock" | "livelock") => HANG.to_owned(),
            Some("crash") => format!("SIGNAL {}", bug["summary"].as_str().unwrap_or_default()),
            _ => format!("BUG {}", bug["summary"]),
        };
        *outcomes.entry(outcome).or_default() += 1;
    }
    // That the first process ends itself by a signal that it has noticed before is no bug.
    if let Some(signal) = report["program_status"]["signal"].as_i64() {
        *outcomes.entry(format!("SIGNAL {signal}")).or_default() += 1;
    }
    let error = report["verdict"] == "error";
    Explored {
        outcomes,
        complete: report["complete"] == true && !error,
        bug: error && report["notes"].to_string().contains("vsrun bug")
            || ["vsrun-bug", "unconfirmed"].iter().any(|why| report["incomplete_reasons"].to_string().contains(why)),
        why: format!(
            "{} {}",
            report["incomplete_reasons"],
            if error { report["notes"].to_string() } else { String::new() }
        ),
        executions: report["executions"].as_u64().unwrap_or(0),
    }
}

/// `outcome` came natively; is it among those that were explored?
fn is_among(outcome: &str, explored: &Outcomes) -> bool {
    match outcome.strip_prefix("SIGNAL ") {
        Some(_) => explored.keys().any(|e| e.starts_with("SIGNAL ")),
        None => explored.contains_key(outcome),
    }
}

fn shown(outcomes: &Outcomes) -> String {
    outcomes.iter().map(|(outcome, n)| format!("    {n:5} {outcome}\n")).collect()
}

/// What a family came to.
#[derive(Default)]
struct Tally {
    programs: u64,
    complete: u64,
    missing: u64,
    /// Programs that misuse a lock.
    misuse: u64,
    /// Programs of which vsrun explores outcomes that no native run has shown.
    beyond: u64,
    refused: BTreeMap<String, u64>,
}

/// Tries one program; says what is wrong with it.
fn try_one(
    place: &Place,
    search: &str,
    runs: u64,
    seed: u64,
    program: &str,
    tally: &mut Tally,
    told: bool,
) -> Option<String> {
    // What `random` or `naive` comes to, in the place of native runs: not what the kernel does, but what reductions may not leave out.
    let native = match std::env::var("VSRUN_NATIVE_BESIDE") {
        Ok(other) => explored(place, &other, program).outcomes,
        Err(_) => natively(place, runs, seed, program),
    };
    let model = explored(place, search, program);
    tally.programs += 1;
    tally.complete += u64::from(model.complete);
    let beyond = model.outcomes.keys().filter(|o| !is_among(o, &native)).count();
    tally.beyond += u64::from(beyond > 0);
    if told {
        println!(
            "{program}\n  natively:\n{}  explored, {} executions, complete: {} {}\n{}",
            shown(&native),
            model.executions,
            model.complete,
            model.why,
            shown(&model.outcomes)
        );
    }
    if model.bug {
        tally.missing += 1;
        return Some(format!("'{program}' (seed {seed}): {}", model.why));
    }
    // What the program does then is undefined; vsrun ends there.
    if model.outcomes.keys().any(|outcome| outcome.starts_with("BUG \"misuse")) {
        tally.misuse += 1;
        return None;
    }
    if !model.complete {
        *tally.refused.entry(model.why.lines().next().unwrap_or_default().chars().take(150).collect()).or_default() +=
            1;
        return None;
    }
    let missing: Outcomes =
        native.iter().filter(|(o, _)| !is_among(o, &model.outcomes)).map(|(o, n)| (o.clone(), *n)).collect();
    let (what, missing) = match missing.is_empty() && program.contains(CELLS) {
        // Native runs show few orders of instructions; a search that switches before every one shows all.
        true => beside_naive(&explored(place, "naive", program), &model),
        false => ("natively, but not explored", missing),
    };
    if missing.is_empty() {
        return None;
    }
    tally.missing += 1;
    Some(format!(
        "'{program}' (seed {seed}): {what}:\n{}  explored, {} executions:\n{}",
        shown(&missing),
        model.executions,
        shown(&model.outcomes)
    ))
}

/// Outcomes of `naive` that the search which reduces has not; or, if there are none and `naive` came to its end, the other way round.
fn beside_naive(naive: &Explored, model: &Explored) -> (&'static str, Outcomes) {
    let only = |of: &Outcomes, beside: &Outcomes| -> Outcomes {
        of.iter().filter(|(o, _)| !beside.contains_key(*o)).map(|(o, n)| (o.clone(), *n)).collect()
    };
    if naive.outcomes.is_empty() {
        return ("explored, but naive did not run", model.outcomes.clone());
    }
    let lost = only(&naive.outcomes, &model.outcomes);
    if lost.is_empty() && naive.complete {
        return ("explored, but not by naive, which is complete", only(&model.outcomes, &naive.outcomes));
    }
    ("by naive, but not explored", lost)
}

/// Tries `cases` programs of each of the families that are `wanted`, as many families at a time as there are places; says what is wrong with them.
fn hunt(places: &[Place], wanted: impl Fn(&str) -> bool, cases: u64) -> Vec<String> {
    let mut left: Vec<usize> = (0..FAMILIES.len()).rev().filter(|&f| wanted(FAMILIES[f].name)).collect();
    let (left, wrong) = (Mutex::new(&mut left), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for place in places {
            let (left, wrong) = (&left, &wrong);
            scope.spawn(move || loop {
                // Not in the condition of a `while let`: the lock would be held meanwhile.
                let next = left.lock().unwrap().pop();
                let Some(f) = next else { return };
                let found = hunt_in_family(place, f, cases);
                wrong.lock().unwrap().extend(found);
            });
        }
    });
    wrong.into_inner().unwrap()
}

fn hunt_in_family(place: &Place, f: usize, cases: u64) -> Vec<String> {
    let (runs, seed) = (setting("VSRUN_NATIVE_RUNS", 60), setting("VSRUN_NATIVE_SEED", 1));
    let search = std::env::var("VSRUN_NATIVE_SEARCH").unwrap_or_else(|_| "optimal".into());
    let (mut wrong, mut tally, family) = (Vec::new(), Tally::default(), &FAMILIES[f]);
    for case in 0..cases {
        let seed = seed * 1_000_003 + f as u64 * 7919 + case;
        let program = family.draw(&mut Rng(seed));
        if let Some(text) = try_one(place, &search, runs, seed, &program, &mut tally, false) {
            println!("{}: {text}", family.name);
            wrong.push(text);
        }
    }
    println!(
        "{:10} {} programs, {} complete, {} that misuse a lock, {} wrong, {} with outcomes beyond native ones; not complete: {:?}",
        family.name, tally.programs, tally.complete, tally.misuse, tally.missing, tally.beyond, tally.refused
    );
    wrong
}

/// The short form: a program of each family. It also keeps the driver and the hunt below in order.
#[test]
fn a_program_of_each_family_does_what_it_does_natively() {
    let wrong = hunt(&["short-0", "short-1"].map(Place::new), |_| true, 1);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Programs that hunts have found, each by something that was not explored, or not followed, until a rule was mended.
const FOUND: &[&str] = &[
    "ownopen0 fork1 fork2 ownflock0.3|rlock _exit3|semctl0.0 ownclose0",
    "handle3.1 alarm pollnone0 thread1|sfdpoll3.1",
    "shmat fork1 fork2 pipesz0.1|pipesz0.0|nattch getpipesz0",
    "fork1 thread2 getopt0 opt0.3|shmat nattch shmat|opt0.3 shmrm shmdt",
    "handle0 fork1 waitany|send0.0",
    "umask18 thread1 thread2 policy2.1 ln|there|nice0.4",
    "write0.4096 thread1 closer0 polls0.0.0 write0|polls0.1.2 polls0.0.1",
    "thread1 thread2 post0 fflush1 flushall|ftrylockfile0 ?funlockfile0 reopen fflush1|getc2 fflush1 putc3",
    "handle3.1 alarm fork1 sfdread3.1 sfdpoll3.0|unalarm pending3 pending3",
    "fork1 waitnohang kill1.9 peek|peek",
    "block3 alarm fork1 thread2 sigtimed3|polls0.0.0 alarm|sfdread3.1",
    "fork1 fork2 nonblock0.0 nonblock0.1|pollw0.2 write1|tee1.0 write1 write0.9000",
    "nonblock0.1 thread1 closew0 thread2|tee1.0|tee0.1 nonblock0.1 write0.4000",
    "handle3.1 alarm sigtimed3 thread1|sfdpoll3.1 unalarm",
    "handle3.1 alarm alarm fork1|unblock3 tread1",
    "thread1 thread2|child3|umask63",
    "thread1 wait0 thread2|post0 child3|umask63",
    "fork1 ffmake0|ffopen0.1",
    "alarm sigtimed3",
    "fork1 semrm|semctl0.0 semctl0.0",
    "block3 alarm thread1 sigtimed3 tread1 sfdpoll3.0|write0 unblock3",
    "ffmake0 ffopen0.4 ffunlink0 ffmake0 thread1|ffopen0.3 ffopen0.2 ffread0.8",
    "ffmake0 ffopen0.2 fork1 ffopen0.3|ffunlink0 ffmake0 ffopen0.4 ffwrite0.3",
    "thread1 thread2|trywait0 mqask0 mqunask getvalue1|getvalue0 getvalue0 mqask0 mqunask",
];

#[test]
fn what_was_found_is_explored() {
    let place = Place::new("found");
    for program in FOUND {
        let mut tally = Tally::default();
        let wrong = try_one(&place, "optimal", 20, 1, program, &mut tally, false);
        assert!(wrong.is_none(), "{}", wrong.unwrap());
        assert!(tally.complete == 1, "'{program}': {:?}", tally.refused);
    }
}

/// What vsrun prints of a program, of which it runs so many executions at the most that begin as the options say, without what depends on that; how many
/// began at marks.
fn begun(place: &Place, options: &str, executions: u64, program: &str) -> (Value, u64) {
    // Scenarios have other names where there are some already.
    let scenarios = place.dir.join("scenarios");
    let _ = fs::remove_dir_all(&scenarios);
    let output = Command::new(env!("CARGO_BIN_EXE_vsrun"))
        .args("--keep-going --format json --timeouts any --race off --search optimal -j 1 --shrink 0".split(' '))
        .args(["--max-executions", &executions.to_string(), "--output", "/dev/null", "--scenario-dir"])
        .arg(&scenarios)
        .arg("--checkpoint")
        .args(options.split(' '))
        .arg("--")
        .arg(place.driver())
        .args(["--own", program])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let mut report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{program} {options}: {e}: {}", String::from_utf8_lossy(&output.stderr)));
    let marks = report["from_marks"].as_u64().unwrap_or(0);
    for key in ["seconds", "rolled_back", "copied", "from_marks", "marks_without_room", "not_rolled_back", "notes"] {
        report[key] = Value::Null;
    }
    (report, marks)
}

/// Ways to begin executions: options, how many executions.
type Ways<'a> = &'a [(&'a str, u64)];

/// Draws programs, `cases` of threads and as many of all kinds of every `nth` family, and explores each from forks and in other ways; says what differs, and how
/// many executions began at marks.
fn begins_alike(cases: u64, nth: usize, ways: Ways<'_>) -> (Vec<String>, u64) {
    let (place, seed) = (Place::new("begins"), setting("VSRUN_NATIVE_SEED", 1));
    let (mut wrong, mut marks) = (Vec::new(), 0);
    for (f, family) in FAMILIES.iter().enumerate().step_by(nth) {
        // Threads alone, and what else the family has: processes, and both.
        let threads = program::Family { strands: "tti", ..*family };
        for case in 0..2 * cases {
            let drawn = if case % 2 == 0 { &threads } else { family };
            let program = drawn.draw(&mut Rng(seed * 1_000_003 + f as u64 * 7919 + case / 2));
            let mut forked: BTreeMap<u64, Value> = BTreeMap::new();
            for &(way, executions) in ways {
                let forked = forked.entry(executions).or_insert_with(|| begun(&place, "fork", executions, &program).0);
                let (other, n) = begun(&place, way, executions, &program);
                marks += n;
                if other != *forked {
                    wrong.push(format!("{}: '{program}' {way}:\n  {forked}\n  {other}", family.name));
                    eprintln!("{}", wrong.last().unwrap());
                }
            }
        }
        eprintln!("{}: {} programs, {} differ so far", family.name, 2 * cases, wrong.len());
    }
    (wrong, marks)
}

#[test]
fn what_is_explored_does_not_depend_on_how_executions_begin() {
    let (wrong, marks) =
        begins_alike(1, 3, &[("rollback --marks 1", 300), ("rollback --marks 2", 300), ("copies --marks 1", 60)]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(marks > 100, "{marks}");
}

#[test]
#[ignore = "a hunt: VSRUN_NATIVE_CASES programs of each family"]
fn what_is_explored_does_not_depend_on_how_executions_begin_in_many_programs() {
    // To start a program takes 25 ms.
    let ways = [
        ("rollback --marks 1", 300),
        ("rollback --marks 2", 300),
        ("rollback", 300),
        ("rollback --checkpoint-memory 0", 300),
        ("copies", 300),
        ("copies --marks 1", 100),
        ("replay", 20),
    ];
    let (wrong, marks) = begins_alike(setting("VSRUN_NATIVE_CASES", 4), 1, &ways);
    println!("{marks} executions began at marks");
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
#[ignore = "a hunt: what it finds today is in docs/STATUS.md"]
fn what_comes_natively_is_explored() {
    let place = Place::new("oracle");
    if let Ok(program) = std::env::var("VSRUN_NATIVE_PROGRAM") {
        let search = std::env::var("VSRUN_NATIVE_SEARCH").unwrap_or_else(|_| "optimal".into());
        let (runs, seed) = (setting("VSRUN_NATIVE_RUNS", 60), setting("VSRUN_NATIVE_SEED", 1));
        let wrong = try_one(&place, &search, runs, seed, &program, &mut Tally::default(), true);
        assert!(wrong.is_none(), "{}", wrong.unwrap());
        return;
    }
    let only = std::env::var("VSRUN_NATIVE_FAMILY").ok();
    let wanted = |name: &str| only.as_ref().is_none_or(|only| only.split(',').any(|one| one == name));
    let wrong = hunt(&[place], wanted, setting("VSRUN_NATIVE_CASES", 4));
    assert!(wrong.is_empty(), "{} programs have native outcomes that were not explored", wrong.len());
}
