//! Every run of vsrun has an end, and says what it came to: budgets of time hold inside an execution, executions that were cut are
//! counted and can be seen again. With the vsrun binary.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A directory with the programs, removed at the end.
struct Place {
    dir: PathBuf,
}

/// How a run of vsrun ended.
#[derive(Debug)]
struct End {
    code: i32,
    out: String,
    err: String,
    took: Duration,
}

impl End {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
}

impl Place {
    fn new(test: &str) -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-endings-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary directory");
        let place = Place { dir };
        place.compile("loops", &[]);
        place
    }

    /// Compiles a program of tests/endings.
    fn compile(&self, name: &str, options: &[&str]) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/endings").join(format!("{name}.c"));
        let mut gcc = Command::new("gcc");
        gcc.args(["-O1", "-g", "-pthread"]).args(options).arg("-o").arg(self.dir.join(name)).arg(source);
        assert!(gcc.status().expect("gcc").success());
    }

    fn run(&self, line: &str) -> End {
        self.run_with(&[], line)
    }

    fn run_with(&self, environment: &[(&str, &str)], line: &str) -> End {
        let since = Instant::now();
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", "100", env!("CARGO_BIN_EXE_vsrun")]).args(line.split_whitespace());
        let output = command
            .envs(environment.iter().copied())
            .current_dir(&self.dir)
            .stdin(Stdio::null())
            .output()
            .expect("vsrun");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code().unwrap_or(-1);
        End { code, out: text(&output.stdout), err: text(&output.stderr), took: since.elapsed() }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Whatever the program does, and however it is explored. Without a bound inside of executions and of what looks at them each of these goes
/// on for tens of seconds, or for ever.
#[test]
fn time_holds_inside_an_execution() {
    // Beside other work what is killed takes a moment to die, and a debug build is slow to look at what was cut (3.6 s were seen; a release build
    // takes up to 2.1 s when nothing runs beside it).
    const AT_MOST: Duration = Duration::from_millis(if cfg!(debug_assertions) { 8000 } else { 3500 });
    let place = Place::new("time");
    let searches = [
        "",
        "--search random",
        "--search walk",
        "--search pct",
        "--search dpor",
        "--bound preemptions=2",
        "--once",
        "--race off",
    ];
    for how in ["yields", "cpu", "locks"] {
        for search in searches {
            // One worker or two, in turns.
            let workers = 1 + (how.len() + search.len()) % 2;
            // Longer than the time, or it ends with a divergence.
            let line = format!("{search} -j {workers} --time 800ms --divergence-timeout 1m ./loops {how}");
            let end = place.run(&line);
            assert!(end.code == 3 && end.took < AT_MOST, "{line}: {end:?}");
            assert!(!end.out.contains("explored completely."), "{line}: {end:?}");
        }
    }
    let end = place.run_with(&[("STUCK", "1")], "--time 800ms ./loops yields");
    assert!(end.code == 3 && end.took < AT_MOST && end.err.contains("before the program reached main"), "{end:?}");
}

/// A process that is looked at stops at each of its calls: then waiting finds it, and never a tick of the clock.
#[test]
fn time_holds_while_an_execution_that_was_cut_is_looked_at() {
    let place = Place::new("looks");
    let most = Duration::from_millis(if cfg!(debug_assertions) { 6000 } else { 2500 });
    // It takes half a second as it is, and seconds to be looked at. Whether a tick was found was luck.
    for _ in 0..4 {
        let end = place.run("--search random -j 1 --race off --max-depth 4000 --time 1 ./loops calls");
        assert!(end.code == 3 && end.took < most, "{end:?}");
        assert!(end.out.contains("was cut off after"), "{end:?}");
    }
}

/// The last line of what was printed: where the scenario is.
fn scenario_of(end: &End) -> String {
    let last = end.out.lines().last().unwrap_or_default();
    last.strip_prefix("scenario: ").unwrap_or_else(|| panic!("no scenario: {end:?}")).to_string()
}

#[test]
fn executions_that_were_cut_are_counted_and_seen_again() {
    let place = Place::new("cut");
    for search in ["random", "pct", "walk", "optimal"] {
        let line = format!("--search {search} --all-objects -j 1 --max-depth 2000 --max-executions 5 ./loops locks");
        let end = place.run(&line);
        assert_eq!(end.code, 3, "{line}: {end:?}");
        for said in [
            "Verdict: no bug found, but no execution reached its end in ./loops locks",
            "5 of 5 executions cut off: none reached its end, so what comes behind the cut was not checked",
            "CUT OFF: an execution was cut off after 2000 transitions, before its end (--max-depth)",
        ] {
            assert!(end.out.contains(said), "{line}: {said}: {end:?}");
        }
        let file = scenario_of(&end);
        let again = place.run(&format!("replay {file}"));
        assert!(again.code == 3 && again.out.contains("came to where the execution was cut off"), "{line}: {again:?}");
        assert_eq!(place.run(&format!("show {file}")).code, 0);
    }
    let report = place
        .run("--all-objects --search random -j 1 --max-depth 2000 --max-executions 5 --format json ./loops locks")
        .json();
    assert_eq!((&report["reached_end"], &report["cut_off"]), (&0.into(), &5.into()), "{report}");
    assert_eq!(report["verdict"], "ok");
    assert!(report["unfinished"]["kind"] == "cut" && report["unfinished"]["scenario"].is_string(), "{report}");
}

/// Both executions were cut, by that bound and no other.
fn is_cut_by(report: &Value, bound: &str) -> bool {
    let reasons = report["incomplete_reasons"].as_array().into_iter().flatten();
    let bounds: Vec<_> = reasons.filter(|reason| *reason == "idle" || *reason == "depth").collect();
    report["cut_off"] == 2 && bounds == [bound]
}

/// Whatever counts as progress lets an execution go on; one without is cut, and it is said since when.
#[test]
fn executions_are_cut_for_want_of_progress() {
    let place = Place::new("progress");
    place.compile("lasting", &[]);
    // Of `STEPS` locks of two threads each.
    let options = "--search random -j 1 --race off --all-objects --max-executions 2 --format json";
    for how in ["prints", "declares", "accepts", "threads"] {
        let ends = place.run(&format!("{options} --max-idle 2000 ./lasting {how} 100")).json();
        assert_eq!((&ends["reached_end"], &ends["cut_off"]), (&2.into(), &0.into()), "{how}: {ends}");
        assert!(ends["max_depth"].as_u64().is_some_and(|n| n > 4000), "{how}: {ends}");
        // The same by the number of steps.
        let cut = place.run(&format!("{options} --max-depth 2000 ./lasting {how} 100")).json();
        assert_eq!((&cut["reached_end"], &cut["cut_off"]), (&0.into(), &2.into()), "{how}: {cut}");
        assert!(is_cut_by(&cut, "depth") && cut["max_depth"] == 2000, "{how}: {cut}");
    }
    let quiet = place.run(&format!("{options} --max-idle 2000 ./lasting quiet 100")).json();
    assert!(is_cut_by(&quiet, "idle"), "{quiet}");
    // Both bounds hold where both are given.
    for (idle, depth, by) in [(2000, 3000, "depth"), (3000, 2000, "depth"), (500, 3000, "depth"), (30, 3000, "idle")] {
        let both = place.run(&format!("{options} --max-idle {idle} --max-depth {depth} ./lasting prints")).json();
        assert!(is_cut_by(&both, by), "{both}");
    }
}

#[test]
fn the_report_says_since_when_there_was_no_progress() {
    let place = Place::new("since");
    place.compile("lasting", &[]);
    let options = "-j 1 --race off --all-objects --max-executions 2 --max-idle 2000";
    for search in ["random", "optimal", "naive"] {
        let end = place.run(&format!("--search {search} {options} ./lasting quiet"));
        assert_eq!(end.code, 3, "{end:?}");
        for said in [
            "CUT OFF: an execution was cut off after 2000 transitions, before its end: no progress for 2000 transitions; the \
             last: main wrote to standard output, after step 0 (--max-idle)",
            "2 of 2 executions cut off: none reached its end",
        ] {
            assert!(end.out.contains(said), "{search}: {said}: {end:?}");
        }
        let again = place.run(&format!("replay {}", scenario_of(&end)));
        assert!(again.code == 3 && again.out.contains("came to where the execution was cut off"), "{again:?}");
    }
    // What is explored without a bound of this kind is not complete with one that cut something.
    let whole = place.run("-j 1 --race off --search optimal --max-idle 20 ./lasting quiet 1");
    assert!(whole.code == 3 && whole.out.contains("that made no progress for long (--max-idle)"), "{whole:?}");
}

/// The time is over when an execution has just come to its bug: it is run once more all the same, for a while, and what was seen of it is told.
#[test]
fn a_bug_that_is_found_as_the_time_is_over_has_its_story() {
    let place = Place::new("late");
    place.compile("late", &[]);
    let mut found = 0;
    for (steps, time) in [(10, 200), (10, 400), (10_000, 200), (10_000, 400), (10_000, 800), (10_000, 1600)] {
        let options = "--search random -j 1 --race off --shrink 0 --max-depth 10000000";
        let end = place.run(&format!("{options} --time {time}ms ./late {steps}"));
        assert!(end.took < Duration::from_millis(time + 6000), "{end:?}");
        if end.code == 3 {
            // It was over before.
            continue;
        }
        found += 1;
        assert_eq!(end.code, 1, "{end:?}");
        // Of a search that draws lots the steps are known when it has been run again.
        let once = end.out.contains("(seen once, not confirmed: the time was over");
        let how = if once { "What happened" } else { "How it came about" };
        for said in ["DEADLOCK: 2 threads wait for each other", "Who waits for whom", how] {
            assert!(end.out.contains(said), "{said}: {end:?}");
        }
        assert!(
            !once || end.out.contains("note: the time was over (--time) while a bug that had been found"),
            "{end:?}"
        );
        let again = place.run(&format!("replay {}", scenario_of(&end)));
        assert!(again.code == 1 && again.out.contains("the same bug, by the same steps"), "{again:?}");
    }
    assert!(found > 1);
}

/// What turns out to be an object in a random execution is one in that execution: in its first ten thousand transitions that is looked at before. One
/// in which the lock was none would not switch there, and go on to its greatest depth (a million transitions) without a bug.
#[test]
fn the_first_execution_knows_its_objects() {
    let place = Place::new("endless");
    place.compile("endless", &[]);
    for search in ["random", "pos"] {
        let line = format!("--search {search} -j 1 --max-executions 1 --format json ./endless");
        let end = place.run(&line);
        let report = end.json();
        assert_eq!((&report["verdict"], end.code), (&"assert".into(), 1), "{line}: {end:?}");
        assert!(report["bugs"][0]["transitions"].as_u64().is_some_and(|n| n < 10_000), "{line}: {end:?}");
        let again = place.run(&format!("replay {}", report["bugs"][0]["scenario"].as_str().unwrap_or_default()));
        assert_eq!(again.code, 1, "{line}: {again:?}");
    }
}

/// Where others reached their end no scenario is written unasked.
#[test]
fn a_loop_that_polls_under_a_lock_is_told_as_one() {
    let place = Place::new("polls");
    let first = place.run("--all-objects -j 1 --max-executions 1 ./loops polls");
    for said in [
        "1 of 1 execution cut off: none reached its end",
        "transitions or more are a loop:\n  0 pthread_mutex_lock(m)\n  0 pthread_mutex_unlock(m)\n",
        "0.1 at pthread_mutex_lock(m) could go on and did not get a turn (not a fair schedule)",
    ] {
        assert!(first.out.contains(said), "{said}: {first:?}");
    }
    // It is told at once, and where others reach their end.
    let told =
        "was cut off after 100000 transitions: the last 10000 transitions or more are a loop: 0 pthread_mutex_lock(m);";
    let some = place.run("--all-objects -j 1 --max-executions 3 --progress always ./loops polls");
    assert!(some.err.contains(told) && some.out.contains(told), "{some:?}");
    let pct = "--search pct -j 1 --max-executions 20 --max-depth 30000 --format json";
    let fair = place.run(&format!("{pct} ./loops polls")).json();
    assert_eq!((&fair["reached_end"], &fair["cut_off"]), (&20.into(), &0.into()), "{fair}");
    let unfair = place.run(&format!("{pct} --pct-fair 1000000 ./loops polls")).json();
    let cut = unfair["cut_off"].as_u64().unwrap_or_default();
    assert!(cut > 0 && cut < 20 && unfair["unfinished"].is_null(), "{unfair}");
    let asked = place.run(&format!("{pct} --pct-fair 1000000 --save-cut ./loops polls")).json();
    assert!(asked["unfinished"]["scenario"].is_string(), "{asked}");
}

#[test]
fn what_is_broken_off_has_a_scenario() {
    let place = Place::new("broken");
    for options in ["--once", "--search random -j 1 --max-depth 999999999"] {
        let end = place.run(&format!("{options} --time 300ms --race off ./loops locks"));
        assert!(end.code == 3 && end.out.contains("none reached its end"), "{options}: {end:?}");
        assert!(end.out.contains("transitions, when the time was over (--time)"), "{options}: {end:?}");
        let again = place.run(&format!("replay {}", scenario_of(&end)));
        assert!(again.code == 3 && again.out.contains("where the execution was cut off"), "{options}: {again:?}");
    }
    // No execution has begun.
    let early = place.run("--time 1ms ./loops locks");
    assert!(early.code == 3, "{early:?}");
}

/// The same source, changed and compiled again: a lock more between the steps, all variables elsewhere; and mended.
#[test]
fn a_changed_program_follows_a_scenario_as_far_as_it_goes() {
    let place = Place::new("relaxed");
    place.compile("orders", &[]);
    let found = place.run("./orders");
    assert!(found.code == 1 && found.out.contains("DEADLOCK"), "{found:?}");
    let file = scenario_of(&found);
    // The program is as it was: an ordinary replay.
    let same = place.run(&format!("replay --relaxed {file}"));
    assert!(same.code == 1 && same.out.contains("by the same steps"), "{same:?}");
    place.compile("orders", &["-DMORE"]);
    let refused = place.run(&format!("replay {file}"));
    assert!(refused.code == 4 && refused.err.contains("--relaxed follows it"), "{refused:?}");
    let more = place.run(&format!("replay --relaxed {file}"));
    assert!(more.code == 1 && more.out.contains("DEADLOCK"), "{more:?}");
    assert!(
        more.out.contains("Replay: the bug is still there: deadlock: ") && more.out.contains("other operations"),
        "{more:?}"
    );
    let report = place.run(&format!("replay --relaxed --format json {file}")).json();
    assert!(report["still_there"] == true && report["came"]["kind"] == "deadlock", "{report}");
    for options in [&["-DFIXED"][..], &["-DFIXED", "-DMORE"]] {
        place.compile("orders", options);
        let gone = place.run(&format!("replay --relaxed {file}"));
        assert!(gone.code == 3 && gone.out.contains("Replay: it is gone: at step "), "{options:?}: {gone:?}");
        assert!(gone.out.contains("everything finished") && !gone.out.contains("DEADLOCK"), "{options:?}: {gone:?}");
        let report = place.run(&format!("replay --relaxed --format json {file}")).json();
        assert!(report["still_there"] == false && report["came"].is_null(), "{report}");
    }
}

/// A terminal of so many columns, by `script`: what is written there, without what the shell says.
fn in_terminal(place: &Place, columns: u32, line: &str) -> String {
    let vsrun = env!("CARGO_BIN_EXE_vsrun");
    let command = format!("stty cols {columns} rows 24; exec {vsrun} {line} >report");
    let mut script = Command::new("script");
    script.args(["-q", "-e", "-c", &command, "/dev/null"]).current_dir(&place.dir).stdin(Stdio::null());
    let output = script.env("TERM", "xterm").env("NO_COLOR", "1").output().expect("script");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_line_about_progress_fits_the_terminal() {
    let place = Place::new("line");
    for columns in [60, 80, 200] {
        let written = in_terminal(&place, columns, "-j 1 --search random --max-depth 5000 --time 2s ./loops locks");
        // One line in one place: nothing goes to the next one, and none is as long as the terminal is wide.
        assert!(!written.contains('\n'), "{columns}: {written:?}");
        let lines: Vec<&str> = written.split('\r').filter(|line| line.contains("execution")).collect();
        assert!(lines.len() >= 2, "{columns}: {written:?}");
        for line in lines {
            let text = line.strip_prefix("\x1b[J").unwrap_or_else(|| panic!("{columns}: {line:?}"));
            assert!(!text.contains('\x1b') && text.chars().count() < columns as usize, "{columns}: {line:?}");
        }
        assert!(written.ends_with("\r\x1b[J"), "{columns}: {written:?}");
    }
    // Where it is no terminal nothing of that kind is written.
    let piped = place.run("--search random -j 1 --max-depth 5000 --time 700ms --progress always ./loops locks");
    let control = |text: &str| text.chars().any(|c| c.is_control() && c != '\n');
    assert!(!control(&piped.out) && !control(&piped.err), "{piped:?}");
}

/// A terminal wraps what stands there when it becomes narrower: the next line takes the place of all of its rows.
#[test]
fn the_line_about_progress_stays_in_one_row_when_the_terminal_is_resized() {
    let place = Place::new("resize");
    let socket = format!("vsrun-endings-{}", std::process::id());
    let tmux = |arguments: &[&str]| {
        let mut tmux = Command::new("tmux");
        tmux.args(["-f", "/dev/null", "-L", &socket]).args(arguments).current_dir(&place.dir).stdin(Stdio::null());
        tmux.output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let vsrun = env!("CARGO_BIN_EXE_vsrun");
    let line = format!("{vsrun} -j 1 --all-objects --search random --max-depth 5000 --time 30s ./loops locks >report");
    if tmux(&["new-session", "-d", "-x", "120", "-y", "20", &line]).is_err() {
        println!("left out: there is no tmux");
        return;
    }
    let mut seen = Vec::new();
    for columns in ["120", "40", "90", "25"] {
        let _ = tmux(&["resize-window", "-x", columns, "-y", "20"]);
        // Beside other work a line may take a while to be written.
        std::thread::sleep(Duration::from_millis(2500));
        let shown = tmux(&["capture-pane", "-p"]).unwrap_or_default();
        seen.push((columns, shown));
    }
    let _ = tmux(&["kill-server"]);
    for (columns, shown) in &seen {
        let rows: Vec<&str> = shown.lines().filter(|row| !row.trim().is_empty()).collect();
        assert!(rows.len() == 1 && rows[0].contains("execution"), "{columns}: {seen:?}");
    }
}
