//! The lines that reports print for gdb, run with it. It has to be there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A directory with vsrun and the program, removed at the end.
struct Place(PathBuf);

impl Place {
    fn new(test: &str, options: &[&str]) -> Place {
        Place::of("program", test, options)
    }

    /// The program is `source`, without `.c`, of tests/debugger.
    fn of(source: &str, test: &str, options: &[&str]) -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-debugger-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary directory");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/debugger/{source}.c"));
        let mut compiler = Command::new("gcc");
        compiler.args(["-O1", "-g", "-pthread"]).args(options).arg("-o").arg(dir.join("program")).arg(source);
        assert!(compiler.status().expect("gcc").success());
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_vsrun"), dir.join("vsrun")).expect("a link");
        Place(dir)
    }

    /// Exit status and what is said, with vsrun in the path.
    fn shell(&self, line: &str) -> (Option<i32>, String) {
        let path = format!("{}:{}", self.0.display(), std::env::var("PATH").unwrap_or_default());
        let mut shell = Command::new("timeout");
        shell.args(["120", "sh", "-c"]).arg(format!("{{ {line}; }} 2>&1")).env("PATH", path).current_dir(&self.0);
        let done = shell.output().expect("sh");
        (done.status.code(), String::from_utf8_lossy(&done.stdout).into_owned())
    }

    /// Explores; the scenario that is written.
    fn scenario(&self, arguments: &str) -> String {
        let (code, report) = self.shell(&format!("vsrun {arguments}"));
        assert_eq!(code, Some(1), "{report}");
        let file = report.lines().find_map(|line| line.strip_prefix("scenario: "));
        file.unwrap_or_else(|| panic!("no scenario: {report}")).to_string()
    }

    /// What `vsrun debug` says to these commands, after it has run to the end of the scenario.
    fn commands(&self, file: &str, commands: &[&str]) -> String {
        let commands: String = commands.iter().map(|command| format!(" -ex '{command}'")).collect();
        let (code, said) = self.shell(&format!("vsrun debug {file} -- -nx -batch{commands} </dev/null"));
        assert_eq!(code, Some(0), "{said}");
        said
    }

    /// What gdb says after the line that the report on this bug prints; then come stacks and threads.
    fn debugged(&self, arguments: &str) -> String {
        let (code, report) = self.shell(&format!("vsrun {arguments}"));
        assert_eq!(code, Some(1), "{report}");
        let line = report.lines().find_map(|line| line.strip_prefix("  gdb "));
        let line = line.unwrap_or_else(|| panic!("no line for gdb: {report}"));
        let (first, rest) = line.split_once("-ex run ").expect("it runs the program");
        let looks = "-ex run -ex 'thread apply all bt' -ex 'info threads'";
        let (_, said) = self.shell(&format!("gdb -nx -batch {first} {looks} {rest}"));
        assert!(!said.contains("SIGSEGV") && !said.contains("SIGILL,"), "{said}");
        said
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn is_said(said: &str, all: &[&str]) {
    for one in all {
        assert!(said.contains(one), "{one:?} is missing: {said}");
    }
}

#[test]
fn a_lost_update_is_looked_at_with_all_its_threads() {
    for options in [&[][..], &["-no-pie"]] {
        let place = Place::new(if options.is_empty() { "pie" } else { "fixed" }, options);
        if !options.is_empty() {
            let (_, sites) = place.shell("vsrun doctor ./program");
            assert!(sites.contains(" trap 1 "), "the patch is no trap: {sites}");
        }
        let said = place.debugged("./program lost");
        let end = "reached the end of the scenario: ";
        is_said(
            &said,
            &[end, "assertion `counter == 2' failed", "vsrun_end_of_scenario", "adds (", "pthread_join", "main ("],
        );
        let threads = said
            .lines()
            .filter(|line| line.contains("Thread 0x") && line.contains("(LWP") && line.contains("\"program\""));
        assert!(threads.count() >= 4, "two threads, in both lists: {said}");
        // Without a debugger it ends, with the same.
        let scenario = "program-assert-1.vsrun.json";
        let (code, said) = place.shell(&format!("vsrun replay --no-supervisor {scenario}"));
        assert!(code == Some(1) && said.contains("assertion `counter == 2' failed"), "{code:?} {said}");
        let (_, shown) = place.shell(&format!("vsrun show {scenario}"));
        assert!(shown.contains("'handle all nostop noprint pass'"), "{shown}");
    }
}

#[test]
fn so_are_freed_memory_and_store_buffers() {
    let place = Place::new("others", &[]);
    is_said(&place.debugged("./program freed"), &["use after free: bytes 0 to 3 of a block", "vsrun_end_of_scenario"]);
    let (_, report) = place.shell("vsrun --format json ./program freed");
    is_said(
        &report,
        &[
            "\"freed_memory\":{\"use\":\"read of 4 bytes\"",
            "\"allocated\":{\"thread\":\"0\",",
            "\"function\":\"main\"",
            "\"function\":\"frees\"",
        ],
    );
    let (_, again) = place.shell("vsrun replay program-assert-1.vsrun.json");
    let line = again.lines().next().unwrap_or_default();
    is_said(
        line,
        &[
            "use after free: bytes 0 to 3 of a block of 104 bytes",
            "freed by thread frees (0.1) in frees ",
            "program.c:41; allocated by thread main (0) in main ",
            "program.c:56",
        ],
    );
    let (_, shown) = place.shell("vsrun show program-assert-1.vsrun.json");
    is_said(&shown, &["freed by thread frees (0.1) in frees ", "allocated by thread main (0) in main "]);
    is_said(&place.debugged("--memory tso ./program stored"), &["assertion `!not_x || !not_y' failed", "main ("]);
}

/// The stacks of all threads, by what gdb heads them with.
fn stacks(said: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for line in said.lines() {
        match all.last_mut() {
            _ if line.starts_with("Thread ") && line.ends_with("):") => all.push(String::new()),
            Some(stack) if line.starts_with('#') => *stack += &format!("{line}\n"),
            _ => {}
        }
    }
    all
}

/// There is one stack with all of these words.
fn has_stack(said: &str, words: &[&str]) {
    let all = stacks(said);
    let found = all.iter().any(|stack| words.iter().all(|word| stack.contains(word)));
    assert!(found, "no stack with {words:?}: {said}");
    assert!(!all.iter().any(|stack| stack.contains("libvsrun")), "{said}");
}

const ALL_STACKS: &str = "thread apply all bt";
/// A stack that is used up has thousands of frames.
const SOME_OF_ALL_STACKS: &str = "thread apply all bt 12";

#[test]
fn every_thread_is_seen_at_any_step_of_a_scenario() {
    let place = Place::of("daemons", "locks", &[]);
    let file = place.scenario("./program locks");
    let at_end = ["info threads", "vs threads", ALL_STACKS];
    // Before the first step nobody holds a lock, and all threads are there.
    let at_start = ["vs goto 1", "echo HERE", "vs threads", "vs who", ALL_STACKS];
    let said = place.commands(&file, &[&at_end[..], &at_start[..]].concat());
    let (said, first) = said.split_once("HERE").expect("it gets there");
    is_said(
        said,
        &[
            "The end, after step 2 of 2: deadlock: 2 threads wait for each other",
            "forward (0.1) waits for second, held by thread backward (0.2)",
            "backward (0.2) waits for first, held by thread forward (0.1)",
            "--waits for--> second --held by--> backward (0.2)",
            "\"forward (0.1)\"",
            "\"main (0)\"",
            "holds first",
        ],
    );
    has_stack(said, &["in forward ", "daemons.c:"]);
    has_stack(said, &["in backward ", "daemons.c:"]);
    has_stack(said, &["in both ", "in main ", "daemons.c:"]);
    is_said(first, &["forward (0.1)", "backward (0.2)", "main (0)", "pthread_join"]);
    assert!(!first.contains("holds ") && !first.contains("--held by--"), "{first}");
    has_stack(first, &["in forward ", "daemons.c:"]);
    has_stack(first, &["in backward ", "daemons.c:"]);
}

#[test]
fn so_is_every_thread_of_every_process() {
    let place = Place::of("daemons", "processes", &[]);
    let file = place.scenario("./program fork");
    let said = place.commands(&file, &["vs threads", ALL_STACKS, "info inferiors"]);
    is_said(&said, &["--held by-->", "  process 1001, pid ", "  process 1002, pid "]);
    for function in ["in forward ", "in backward ", "in waits ", "in reaps "] {
        has_stack(&said, &[function, "daemons.c:"]);
    }
    let file = place.scenario("--with './program client' ./program clients");
    let said = place.commands(&file, &["vs threads", ALL_STACKS]);
    is_said(&said, &["The end, after step", "deadlock"]);
    assert!(stacks(&said).iter().filter(|stack| stack.contains("in speaks ")).count() == 2, "{said}");
    has_stack(&said, &["in speaks (serves=1)", "daemons.c:"]);
    has_stack(&said, &["in speaks (serves=0)", "daemons.c:"]);
}

#[test]
fn so_they_are_after_an_exec_at_a_crash_and_in_a_loop_without_end() {
    let place = Place::of("daemons", "ends", &[]);
    let file = place.scenario("./program exec");
    let said = place.commands(&file, &["vs goto 1", "vs end", ALL_STACKS]);
    for function in ["in forward ", "in backward ", "in both "] {
        has_stack(&said, &[function, "daemons.c:"]);
    }
    for (what, function) in [("crash", "crashes ("), ("overflow", "deeper ("), ("spins", "spins (")] {
        let file = place.scenario(&format!("--divergence-timeout 0.3 ./program {what}"));
        // And again, from the beginning.
        let commands = ["vs who", SOME_OF_ALL_STACKS, "echo HERE", "kill", "vs end", SOME_OF_ALL_STACKS];
        let said = place.commands(&file, &commands);
        is_said(&said, &["(0.1) waits for first, held by thread main (0)"]);
        let (first, again) = said.split_once("HERE").expect("it gets there");
        for said in [first, again] {
            has_stack(said, &[function, "daemons.c:"]);
            has_stack(said, &["in waits ", "daemons.c:"]);
            has_stack(said, &["in both ", "in main "]);
        }
    }
}

#[test]
fn the_line_of_the_report_stops_at_a_crash_and_with_several_processes() {
    let place = Place::of("daemons", "lines", &[]);
    let said = place.debugged("./program crash");
    is_said(&said, &["signal 11 is about to end process", "crashes (", "waits (", "vsrun_end_of_scenario"]);
    let said = place.debugged("./program fork");
    is_said(&said, &["reached the end of the scenario", "reaps (", "waits (", "can be looked at with: gdb -p "]);
}

/// What stands between two words that the commands have printed.
fn between<'a>(said: &'a str, from: &str, to: &str) -> &'a str {
    let rest = said.split_once(from).unwrap_or_else(|| panic!("{from} is missing: {said}")).1;
    rest.split_once(to).unwrap_or_else(|| panic!("{to} is missing: {said}")).0
}

#[test]
fn going_back_ends_where_going_forward_does() {
    let place = Place::of("daemons", "back", &[]);
    let file = place.scenario("./program counts");
    let state = "info registers rip rsp rbp rbx r12 r13 r14 r15";
    let memory = "output tens";
    let said = place.commands(
        &file,
        &[
            "vs goto 200",
            "echo <A>",
            state,
            memory,
            "echo <B>",
            "vs step 101",
            "echo <C>",
            state,
            memory,
            "echo <D>",
            "vs end",
            "vs goto 200",
            "echo <E>",
            state,
            memory,
            "echo <F>",
            "vs step",
            "vs step",
            "vs back 2",
            "echo <G>",
            state,
            memory,
            "echo <H>",
            "vs next 0.1",
            "vs next backward",
            "vs watch tens",
        ],
    );
    let first = between(&said, "<A>", "<B>");
    assert!(first.contains("rip ") && first.ends_with(|c: char| c.is_ascii_digit()), "{said}");
    assert_eq!(first, between(&said, "<E>", "<F>"), "{said}");
    assert_eq!(first, between(&said, "<G>", "<H>"), "{said}");
    assert_ne!(first, between(&said, "<C>", "<D>"), "{said}");
    assert!(said.contains("tens: 0 -> 1 in step 19 of 402: counts (0.1)"), "{said}");
}

#[test]
fn a_replay_ends_after_a_step_that_is_asked_for() {
    let place = Place::of("daemons", "until", &[]);
    let file = place.scenario("./program counts");
    let (code, said) = place.shell(&format!("vsrun replay --until 21 {file}"));
    assert_eq!(code, Some(0), "{said}");
    is_said(
        &said,
        &["State: after step 21 of 4", "counts (0.1)", "holds      second", "daemons.c:", "How it came there"],
    );
    let (code, said) = place.shell(&format!("vsrun replay --until 20 --format json {file}"));
    assert_eq!(code, Some(0), "{said}");
    is_said(&said, &["\"step\":20", "\"waits_for\":[]", "\"holds\":[]", "\"file\":"]);
    assert!(!said.contains("\"holds\":[\"second\"]"), "{said}");
    // The whole of it is the replay itself.
    let (code, said) = place.shell(&format!("vsrun replay --until 100000 {file}"));
    assert!(code == Some(1) && said.contains("the same bug, by the same steps"), "{said}");
    let (code, said) = place.shell(&format!("vsrun replay --until 3 --no-supervisor {file}"));
    assert!(code == Some(3) && said.contains("there is no debugger to stop in"), "{code:?} {said}");
}

#[test]
fn where_memory_is_watched_no_stack_is_wrong() {
    let place = Place::new("watched", &[]);
    let file = place.scenario("./program lost");
    let at_start = ["vs goto 2", "vs threads", ALL_STACKS, "vs watch counter"];
    let said = place.commands(&file, &[&["vs watch counter", "echo HERE"][..], &at_start[..]].concat());
    let (at_end, said) = said.split_once("HERE").expect("it gets there");
    is_said(
        said,
        &[
            "Next is step 2 of 9: ",
            "whose callers gdb cannot see",
            "counter is 0 before step 1",
            "counter does not change up to here",
        ],
    );
    assert!(!said.contains("in ?? ()"), "{said}");
    has_stack(said, &["in main ", "program.c:"]);
    is_said(at_end, &["The end, after step 9 of 9: assert: "]);
    let changes: Vec<&str> = at_end.lines().filter(|line| line.starts_with("counter: ")).collect();
    assert!(changes.len() == 1 && changes[0].starts_with("counter: 0 -> 1 in step 3 of 9: "), "{at_end}");
}

/// Seconds that a command takes in gdb, the median of five, each after `before`.
fn seconds(place: &Place, file: &str, before: &str, command: &str) -> f64 {
    let mut commands = vec!["python import time"];
    for _ in 0..5 {
        commands.extend([before, "python began = time.time()", command, "python print(\"TOOK\", time.time() - began)"]);
    }
    let said = place.commands(file, &commands);
    let mut all: Vec<f64> = said.lines().filter_map(|line| line.strip_prefix("TOOK ")?.parse().ok()).collect();
    assert_eq!(all.len(), 5, "{said}");
    all.sort_by(f64::total_cmp);
    all[2]
}

/// Of a machine that does nothing else.
#[test]
#[ignore = "measures time: cargo test --release --test tool debugger -- --ignored --nocapture"]
fn at_depth_ten_thousand_going_anywhere_takes_less_than_a_second() {
    let place = Place::of("daemons", "deep", &[]);
    let file = place.scenario("-j 1 --shrink 0 ./program deep");
    let deepest = 10_000;
    for (before, command) in [
        ("vs end", "vs back"),
        ("vs goto 10000", "vs back"),
        ("vs goto 10000", "vs back 5000"),
        ("vs goto 10", "vs goto 10000"),
        ("vs end", "vs goto 10"),
    ] {
        let took = seconds(&place, &file, before, command);
        println!("{command} after {before}: {took:.2} s, of {deepest} steps");
        assert!(took < 1.0, "{command} after {before}: {took}");
    }
}
