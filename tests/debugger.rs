//! The lines that reports print for gdb, run with it. It has to be there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A directory with vsrun and the program, removed at the end.
struct Place(PathBuf);

impl Place {
    fn new(test: &str, options: &[&str]) -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-debugger-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary directory");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/debugger/program.c");
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
        assert!(shown.contains("'handle SIGSYS SIGILL nostop noprint pass'"), "{shown}");
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
    is_said(&shown, &["freed by thread 0.1 in frees ", "allocated by thread 0 in main "]);
    is_said(&place.debugged("--memory tso ./program stored"), &["assertion `!not_x || !not_y' failed", "main ("]);
}
