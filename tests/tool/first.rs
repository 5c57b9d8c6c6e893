//! The default command finds bugs first: what is drawn by lot beside the search. With the vsrun binary.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// A directory with programs, removed at the end.
struct Place {
    dir: PathBuf,
}

impl Place {
    fn new(test: &str) -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-first-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary directory");
        Place { dir }
    }

    /// Compiles a program of the repository.
    fn compile(&self, source: &str, program: &str, options: &[&str]) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
        let mut gcc = Command::new("gcc");
        gcc.args(["-O1", "-g", "-pthread"]).args(options).arg("-o").arg(self.dir.join(program)).arg(source);
        assert!(gcc.status().expect("gcc").success());
    }

    fn run(&self, line: &str) -> Value {
        let output = Command::new("timeout")
            .args(["-s", "KILL", "100", env!("CARGO_BIN_EXE_vsrun"), "--format", "json", "--scenario-dir", "."])
            .args(line.split_whitespace())
            .current_dir(&self.dir)
            .stdin(Stdio::null())
            .output()
            .expect("vsrun");
        let text = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{line}: {e}: {output:?}"))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// The counts of the search, and whether it is complete, are those of the search alone, also where it starts over meanwhile.
#[test]
fn what_is_drawn_is_no_part_of_the_search() {
    let place = Place::new("counts");
    place.compile("tests/first/locks.c", "locks", &[]);
    let counts = |run: &Value| {
        ["verdict", "complete", "executions", "transitions", "max_depth", "sleep_blocked", "outcomes", "reached_end"]
            .map(|key| run[key].clone())
    };
    for threads in [2, 6] {
        let alone = place.run(&format!("-j 1 --search optimal ./locks {threads}"));
        assert_eq!(alone["drawn"], 0);
        for workers in [1, 2] {
            let both = place.run(&format!("-j {workers} ./locks {threads}"));
            assert_eq!(counts(&both), counts(&alone), "{both}");
            // A small search ends without any.
            assert_eq!(both["drawn"].as_u64() > Some(0), threads == 6, "{both}");
        }
    }
    let bounded = place.run("-j 1 --max-executions 300 ./locks 6");
    // One more was run before the lock turned out to be shared.
    assert_eq!((bounded["executions"].as_u64(), bounded["drawn"].as_u64()), (Some(299), Some(0)));
}

/// An execution without an end is no obstacle. The search alone is in its first executions all the while.
#[test]
fn a_shallow_bug_of_long_executions_is_found_at_once() {
    let place = Place::new("shallow");
    place.compile("scripts/first/machine.c", "machine", &[]);
    place.compile("scripts/first/machine.c", "mended", &["-DFIXED"]);
    for seed in 1..=5 {
        let run = place.run(&format!("-j 1 --seed {seed} --shrink 0 --time 60 ./machine"));
        assert_eq!(run["verdict"], "assert", "{run}");
        assert!(run["drawn"].as_u64() < Some(200), "{run}");
        let scenario = run["bugs"][0]["scenario"].as_str().expect("a scenario").to_string();
        let replayed =
            Command::new(env!("CARGO_BIN_EXE_vsrun")).args(["replay", &scenario]).current_dir(&place.dir).output();
        assert_eq!(replayed.expect("vsrun").status.code(), Some(1));
    }
    let alone = place.run("-j 1 --search optimal --max-executions 3 ./machine");
    assert_eq!(alone["verdict"], "ok", "{alone}");
    let mended = place.run("-j 1 --time 3 ./mended");
    assert_eq!((&mended["verdict"], &mended["complete"]), (&"ok".into(), &false.into()));
}

/// A loop that only looks at memory is not waited for until it counts as a divergence: what it looks at is explored.
#[test]
fn a_loop_that_looks_at_memory_is_looked_at_soon() {
    let place = Place::new("looks");
    place.compile("scripts/first/endless_readers.c", "readers", &[]);
    // A divergence is one after 30 s of CPU time where memory is watched, and is looked at twice.
    let run = place.run("-j 1 --shrink 0 --divergence-timeout 10 --time 30 ./readers");
    assert_eq!(run["verdict"], "assert", "{run}");
}
