//! Places in reports and JSON by source line, where there is debug information, and by symbol where there is none. With the vsrun binary.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{json, Value};

/// A directory with a program and its source, removed at the end.
struct Place(PathBuf);

impl Place {
    /// `source` of `tests/places`, compiled there to `program`.
    fn new(test: &str, source: &str, flags: &[&str]) -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-places-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary directory");
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/places").join(source);
        fs::copy(from, dir.join(source)).expect("the source");
        let place = Place(dir);
        let compiler = if source.ends_with(".cc") { "g++" } else { "gcc" };
        place.call(compiler, &[&["-O2", "-pthread", "-o", "program", source], flags].concat());
        place
    }

    fn call(&self, command: &str, arguments: &[&str]) {
        let status = Command::new(command).args(arguments).current_dir(&self.0).status();
        assert!(status.expect(command).success(), "{command} {arguments:?}");
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vsrun"));
        command.args(arguments).current_dir(&self.0).output().expect("vsrun runs")
    }

    fn text(&self, arguments: &[&str]) -> String {
        let done = self.run(arguments);
        assert_eq!(done.status.code(), Some(1), "{}", String::from_utf8_lossy(&done.stdout));
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let done = self.run(arguments);
        let text = String::from_utf8_lossy(&done.stdout);
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"))
    }

    fn file(&self, name: &str) -> String {
        self.0.canonicalize().expect("the directory").join(name).display().to_string()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// `lines` occur in `text`, one behind the other.
fn has(text: &str, lines: &str) {
    assert!(text.contains(lines), "\n{lines}\nis not in\n{text}");
}

const STEP: &str = " 1  pthread_mutex_lock(bank[0].lock)                                    transfer accounts.c:10\n";

const CIRCLE: &str = "    at         pthread_mutex_lock(bank[1].lock)
    waits for  bank[1].lock, held by thread worker#2 (0.2)
    holds      bank[0].lock
    stack      transfer accounts.c:11, inlined in worker accounts.c:21
                 pthread_mutex_lock(&to->lock);
";

#[test]
fn a_deadlock_in_a_function_that_is_inlined() {
    for (test, flags) in [("five", "-gdwarf-5"), ("four", "-gdwarf-4"), ("split", "-gsplit-dwarf")] {
        let place = Place::new(test, "accounts.c", &["-g", flags]);
        let text = place.text(&["./program"]);
        has(&text, "DEADLOCK: 2 threads wait for each other: worker#1 (0.1) for bank[1].lock, worker#2 (0.2) for bank[0].lock\n");
        has(&text, CIRCLE);
        has(&text, "    stack      main accounts.c:37\n                 pthread_join(t[i], 0);\n");
        has(&text, ", started in worker accounts.c:");
        has(&text, STEP);
        has(&text, "  worker#1 (0.1) took bank[0].lock at step 1 (transfer accounts.c:10), and now waits for bank[1].lock (transfer accounts.c:11).\n");
        let scenario = "program-deadlock-1.vsrun.json";
        has(&place.text(&["replay", scenario]), CIRCLE);
        let shown = String::from_utf8_lossy(&place.run(&["show", scenario]).stdout).into_owned();
        has(&shown, STEP);
    }
}

#[test]
fn a_program_whose_debug_information_is_elsewhere() {
    let place = Place::new("link", "accounts.c", &["-g"]);
    place.call("objcopy", &["--only-keep-debug", "--compress-debug-sections", "program", "program.debug"]);
    place.call("strip", &["program"]);
    place.call("objcopy", &["--add-gnu-debuglink=program.debug", "program"]);
    has(&place.text(&["./program"]), CIRCLE);
    fs::remove_file(place.0.join("program.debug")).expect("the debug information");
    let text = place.text(&["./program"]);
    assert!(!text.contains("accounts.c"), "{text}");
    has(&text, "    stack      program+0x");
}

#[test]
fn without_debug_information_all_is_by_symbol() {
    let place = Place::new("none", "accounts.c", &[]);
    let text = place.text(&["./program"]);
    has(&text, "worker#1 (0.1) for bank+0x30, worker#2 (0.2) for bank\n");
    has(&text, "    stack      worker+0x");
    assert!(!text.contains("accounts.c"), "{text}");
    let report = place.json(&["--format", "json", "./program"]);
    let keys: Vec<_> = report["bugs"][0].as_object().expect("a bug").keys().cloned().collect();
    assert_eq!(keys, ["kind", "summary", "scenario", "execution", "transitions", "threads", "processes"]);
}

#[test]
fn places_in_json() {
    let place = Place::new("json", "accounts.c", &["-g"]);
    let file = place.file("accounts.c");
    let report = place.json(&["--format", "json", "./program"]);
    let places = report["bugs"][0]["places"].as_array().expect("places").clone();
    assert_eq!(places.len(), 2, "{report}");
    for (i, (thread, lock)) in [("0.1", 1), ("0.2", 0)].into_iter().enumerate() {
        let symbol = places[i]["place"].as_str().expect("a symbol");
        assert!(symbol.starts_with("worker+0x") && symbol.ends_with(" (program)"), "{symbol}");
        let expected = json!({
            "place": symbol, "function": "transfer", "file": file, "line": 11,
            "inlined": [{"function": "worker", "file": file, "line": 21}],
            "thread": thread, "does": format!("pthread_mutex_lock(bank[{lock}].lock)"),
        });
        assert_eq!(places[i], expected);
    }
    let replayed = place.json(&["replay", "--format", "json", "program-deadlock-1.vsrun.json"]);
    assert_eq!(replayed["places"], Value::from(places));
}

#[test]
fn both_uses_of_a_race() {
    let place = Place::new("race", "accounts.c", &["-g"]);
    let text = place.text(&["--race", "hb", "./program", "x"]);
    has(&text, "RACE: race on audits: auditor accounts.c:27 and auditor accounts.c:27\n");
    has(&text, "    at         auditor accounts.c:27\n                 audits++;\n");
    let report = place.json(&["--format", "json", "--race", "hb", "./program", "x"]);
    let places = report["bugs"][0]["places"].as_array().expect("places");
    assert_eq!(places.len(), 2, "{report}");
    assert!(places.iter().all(|at| at["line"] == 27 && at["inlined"] == json!([])), "{report}");
    let notes = place.json(&["--format", "json", "--race", "explore", "./program", "x"]);
    has(&notes["notes"].to_string(), "at auditor accounts.c:27 and");
}

#[test]
fn a_use_of_freed_memory() {
    let place = Place::new("freed", "freed.c", &["-g"]);
    let text = place.text(&["./program"]);
    has(&text, "read of 4 bytes at reader freed.c:27 by thread reader (0.2); freed by thread finisher (0.1) in finisher freed.c:19; allocated by thread main (0) in main freed.c:35\n");
    has(&text, "    at         reader freed.c:27\n                 int n = job->n;\n");
    has(&text, "    stack      make freed.c:11, inlined in main freed.c:35\n                 struct job *j = malloc(sizeof *j);\n");
    let report = place.json(&["--format", "json", "./program"]);
    let gone = &report["bugs"][0]["freed_memory"];
    let at = gone["at"].as_str().expect("an instruction");
    assert!(at.starts_with("reader+0x"), "{at}");
    assert_eq!((&gone["file"], &gone["line"]), (&json!(place.file("freed.c")), &json!(27)));
    let made = &gone["allocated"];
    let stack = made["stack"][0].as_str().expect("a frame");
    assert!(stack.starts_with("main+0x"), "{stack}");
    assert_eq!((&made["function"], &made["places"][0]["line"]), (&json!("main"), &json!(11)));
    assert_eq!(made["places"][0]["inlined"][0]["line"], 35);
}

#[test]
fn a_crash_in_a_template() {
    let place = Place::new("crash", "queue.cc", &["-g"]);
    let text = place.text(&["./program"]);
    has(&text, "CRASH: SIGSEGV in thread main (0) at Queue<int>::pop() queue.cc:8, inlined in main queue.cc:18\n");
    has(&text, "    holds      queue.lock\n    stack      Queue<int>::pop() queue.cc:8, inlined in main queue.cc:18\n");
    // Headers of the library are not told, what is called from them is.
    has(&text, "    stack      Queue<int>::push(int*) queue.cc:9, inlined in operator() queue.cc:17\n");
}

#[test]
fn uses_of_a_watched_variable() {
    let place = Place::new("watch", "accounts.c", &["-g"]);
    let once = ["--once", "--watch", "audits", "./program", "x"];
    let done = place.run(&once);
    has(&String::from_utf8_lossy(&done.stdout), "of audits (4 bytes): 0 -> 1  at auditor accounts.c:27\n");
    let report = place.json(&[&["--format", "json"][..], &once].concat());
    let one = &report["uses"][0];
    assert!(one["place"].as_str().expect("a place").starts_with("auditor+0x"), "{report}");
    assert_eq!((&one["file"], &one["line"]), (&json!(place.file("accounts.c")), &json!(27)));
}

#[test]
fn objects_of_the_heap_by_where_they_were_allocated() {
    let place = Place::new("heap", "heap.c", &["-g"]);
    let text = place.text(&["./program"]);
    for line in [29, 30] {
        has(&text, &format!(" (allocated in main heap.c:{line}), held by thread "));
    }
}
