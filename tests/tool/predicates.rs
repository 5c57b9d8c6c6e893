//! Exclusive access predicates in annotation files, at functions of all kinds. With the vsrun binary; what is explored and found is in
//! `c-tests/predicates_file.expect`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A directory with the program, removed at the end.
struct Place(PathBuf);

impl Place {
    fn new(test: &str, flags: &[&str]) -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-predicates-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary directory");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/predicates/program.c");
        let mut compiler = Command::new("gcc");
        compiler.args(["-g", "-pthread"]).args(flags).arg("-o").arg(dir.join("program")).arg(source);
        assert!(compiler.status().expect("gcc").success());
        Place(dir)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vsrun"));
        command.args(arguments).current_dir(&self.0).output().expect("vsrun runs")
    }

    fn explore(&self, lines: &str, options: &[&str], what: &str) -> Output {
        fs::write(self.0.join("lines"), lines).expect("a file");
        let all = ["--annotations", "lines", "--time", "60", "--progress", "never"];
        self.run(&[&all, options, &["./program", what]].concat())
    }

    /// Transitions of a complete exploration in which the counter is there for communication: each use that is not its owner's is one.
    fn transitions(&self, lines: &str, what: &str) -> u64 {
        let lines = format!("communication counter\n{lines}");
        let done = self.explore(&lines, &["--keep-going", "--format", "json"], what);
        let report: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{}", said(&done)));
        assert_eq!(report["complete"].as_bool(), Some(true), "{report}");
        report["transitions"].as_u64().expect("a number")
    }

    /// What it says where it does not begin.
    fn refused(&self, lines: &str, options: &[&str]) -> String {
        let done = self.explore(lines, options, "");
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

const HOLDS: &str = "own after enter counter\ndisown leave $arg1:$arg2\n";

/// However it is compiled, what a thread owns it uses without a place to switch: in each of two executions, five uses by each of two
/// threads.
#[test]
fn functions_of_all_kinds() {
    let ways: [&[&str]; 4] = [
        &["-O0"],
        &["-O2"],
        &["-O2", "-fcf-protection=full", "-fno-plt"],
        &["-O2", "-no-pie", "-fno-optimize-sibling-calls"],
    ];
    for (n, flags) in ways.iter().enumerate() {
        let place = Place::new(&format!("kinds-{n}"), flags);
        assert_eq!((place.transitions("", ""), place.transitions(HOLDS, "")), (36, 16), "{flags:?}");
        // By traps: there is no room for anything else.
        let bare = "own after bare_enter counter\ndisown bare_leave counter\n";
        assert_eq!(place.transitions(bare, ""), 16, "{flags:?}");
        // Two of the five, in a function whose first instruction uses the counter itself.
        let late = "own read_first $arg1+4:4\ndisown bare_leave counter+4\n";
        assert_eq!(place.transitions(late, ""), 28, "{flags:?}");
        // In a process that was created later, too.
        assert_eq!(place.transitions("", "child") - place.transitions(HOLDS, "child"), 20, "{flags:?}");
    }
}

#[test]
fn a_violation_is_found_again_by_its_scenario() {
    let place = Place::new("replay", &["-O2"]);
    let done = place.explore(HOLDS, &["--race", "lockset"], "broken");
    assert_eq!(done.status.code(), Some(1), "{}", said(&done));
    let text = said(&done);
    assert!(text.contains("exclusive access violated on counter"), "{text}");
    assert!(
        text.contains("VS_disown by --annotations") && text.contains("leave tests/predicates/program.c:"),
        "{text}"
    );
    let names =
        fs::read_dir(&place.0).expect("a directory").filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let scenario = names.into_iter().find(|name| name.ends_with(".vsrun.json")).expect("a scenario");
    // The lines are in it.
    fs::remove_file(place.0.join("lines")).expect("the file");
    for _ in 0..2 {
        let again = place.run(&["replay", &scenario]);
        assert_eq!(again.status.code(), Some(1), "{}", said(&again));
        assert!(said(&again).contains("exclusive access violated on counter"), "{}", said(&again));
    }
    // One execution alone, too.
    let once = place.explore(HOLDS, &["--race", "lockset", "--once"], "");
    assert!(!said(&once).contains("exclusive access violated"), "{}", said(&once));
}

#[test]
fn what_means_nothing_is_refused() {
    let place = Place::new("refused", &["-O2"]);
    let wrong = |lines: &str, why: &str| {
        let text = place.refused(lines, &[]);
        assert!(text.contains(why), "'{why}' is not in: {text}");
    };
    wrong("own enter", "lines:1: 'own': a function and memory are needed behind it");
    wrong("\nown nowhere counter", "own nowhere counter: the program and its libraries have no function of that name");
    wrong(
        "own enter nothing",
        "own enter nothing: neither the program nor a library loaded with it has a global variable nothing",
    );
    wrong("own enter counter+8", "own enter counter+8: the variable has 8 bytes");
    wrong("own enter counter+4:8", "own enter counter+4:8: the variable has 8 bytes");
    wrong("own malloc counter", "own malloc counter: it is a function of libc.so.6, which stays as it is");
    wrong("own after jumps counter", "own after jumps counter: it returns by a jump to another function");
    wrong("own after _exit counter", "which stays as it is");
    let text = place.refused("own enter counter", &["--race", "off"]);
    assert!(text.contains("own enter counter: memory is watched with --race only"), "{text}");
    let text = place.refused("own enter counter", &["--toss", "enter:1"]);
    assert!(text.contains("own enter counter: --toss has replaced it"), "{text}");
}
