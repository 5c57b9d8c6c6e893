//! Executions of copies of processes that stand still (`--checkpoint copies`): the same is explored and found as by executions that are forked before main. With the
//! vsrun binary.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::back::{kilobytes, number, report, Place, WRITES};
use super::together::SEVERAL;

/// Private and shared memory, descriptors that are closed, children that are over, killed, or run another program, from the first choice and from each other one.
#[test]
fn each_process_is_as_it_was() {
    let place = Place::new("copies-each");
    place.write("several", SEVERAL);
    for line in [
        "--search optimal --max-executions 200 --race off ./several works 2",
        "--search optimal --max-executions 100 ./several works 2",
        "--search optimal --max-executions 200 --race off ./several exec 3",
        // Who is killed may hold the mutex.
        "--shrink 0 --search random --max-executions 60 --race off ./several kill 2",
    ] {
        for how in ["copies", "copies --marks 1"] {
            let run = place.both_as(how, line);
            let verdict = if line.contains("kill") { "deadlock" } else { "ok" };
            assert_eq!(run["verdict"].as_str(), Some(verdict), "{how} {line}: {run}");
            let all = number(&run, "executions");
            assert!(all > 20 && number(&run, "copied") * 10 >= all * 7, "{how} {line}: {run}");
            let marks = how != "copies" && line.contains("optimal");
            assert!(!marks || number(&run, "from_marks") * 2 > all, "{how} {line}: {run}");
        }
    }
}

/// Where bugs are looked at in between, and where there is more to a process than its memory.
#[test]
fn threads_are_as_they_were() {
    let place = Place::new("copies-threads");
    for name in ["back_marks", "back_memory", "philosophers_threads", "back"] {
        place.compile(name);
    }
    for line in [
        "--search naive --max-executions 200 --race off ./back_marks",
        "--search naive --max-executions 300 --race off --shrink 0 ./philosophers_threads 3",
        "--search random --max-executions 40 ./back",
    ] {
        for how in ["copies", "copies --marks 2"] {
            let run = place.both_as(how, line);
            assert!(number(&run, "copied") * 10 >= number(&run, "executions") * 8, "{how} {line}: {run}");
        }
    }
    // What no copy has (memory that is locked) is seen.
    for kind in ["hugetlb", "received", "collapse", "moved", "memfd", "locked"] {
        let run = place.both_as("copies --marks 1", &format!("--search optimal --race off ./back_memory {kind}"));
        assert_eq!((run["verdict"].as_str(), number(&run, "executions")), (Some("ok"), 24), "{run}");
        let marks = number(&run, "from_marks");
        assert!(if kind == "locked" { marks == 0 } else { marks > 10 }, "{kind}: {run}");
    }
}

/// What a process cannot undo its original has not done, so the default goes over to copies; what is outside of processes is done by each execution.
#[test]
fn what_cannot_be_undone_was_not_done() {
    let place = Place::new("copies-done");
    let threads = |does: &str| {
        format!(
            "#define _GNU_SOURCE\n#include <fcntl.h>\n#include <pthread.h>\n#include <sys/resource.h>\n#include <sys/stat.h>\n#include <sys/syscall.h>\n#include <unistd.h>\nstatic pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
             static int n;\nstatic void *t(void *a) {{ pthread_mutex_lock(&m); if (n++ == 0) {{ {does}; }} pthread_mutex_unlock(&m); return a; }}\n\
             int main(void) {{ pthread_t a[4]; for (int i = 0; i < 4; i++) pthread_create(&a[i], 0, t, 0); for (int i = 0; i < 4; i++) pthread_join(a[i], 0); return n - 4; }}\n"
        )
    };
    place.write("mask", &threads("umask(022)"));
    let limits = "struct rlimit l; getrlimit(RLIMIT_CORE, &l); if (l.rlim_cur == 7) _exit(9); l.rlim_cur = 7; setrlimit(RLIMIT_CORE, &l)";
    place.write("limits", &threads(limits));
    for (name, why) in [("mask", "system call umask"), ("limits", "system call prlimit64")] {
        let run = place.both_as("auto", &format!("--search naive --race off ./{name}"));
        assert_eq!((run["verdict"].as_str(), &run["not_rolled_back"]), (Some("ok"), &why.into()), "{run}");
        let all = number(&run, "executions");
        assert!(all > 100 && number(&run, "copied") * 2 > all && number(&run, "rolled_back") == 0, "{run}");
    }
    // Files are written to a layer that no execution leaves anything in.
    let file = "int fd = open(\"log\", O_CREAT | O_WRONLY | O_APPEND, 0644); if (write(fd, \"x\", 1) != 1 || lseek(fd, 0, SEEK_END) != 1) _exit(9); close(fd); \
         fd = open(\"/dev/null\", O_WRONLY); if (write(fd, \"x\", 1) != 1) _exit(9)";
    for (name, does, why) in
        [("file", file, None), ("other", "syscall(SYS_ioprio_set, 1, 0, 0)", Some("system call ioprio_set"))]
    {
        place.write(name, &threads(does));
        let run = place.both_as("copies", &format!("--search naive --race off --max-executions 200 ./{name}"));
        let many = number(&run, "copied") > 150;
        assert_eq!(
            (run["verdict"].as_str(), many, run["not_rolled_back"].as_str()),
            (Some("ok"), why.is_none(), why),
            "{run}"
        );
        assert!(!place.dir.join("log").exists(), "{run}");
    }
    // Real ones are outside.
    let run = place.run("copies", "--files real --search naive --race off --max-executions 20 ./mask");
    assert_eq!((number(&run, "executions"), number(&run, "copied")), (20, 0), "{run}");
}

/// One that stands still is killed by somebody else: what was to begin there begins before main.
#[test]
fn one_that_is_killed_from_outside() {
    let place = Place::new("copies-killed");
    place.write("several", SEVERAL);
    let line = "--search optimal --race off --max-executions 400 ./several works 4";
    let all = place.run("fork", line);
    for nth in [1, 2, 3] {
        let mut vsrun =
            place.command("copies", line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("vsrun");
        let (since, mut killed) = (Instant::now(), false);
        while vsrun.try_wait().expect("vsrun").is_none() {
            if since.elapsed() > Duration::from_millis(200) && !killed {
                killed = kill_nth(&place, nth);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let run = report(line, vsrun.wait_with_output().expect("vsrun"));
        // The oldest is the one before main.
        assert!(killed, "{run}");
        for key in ["verdict", "executions", "transitions", "complete"] {
            assert_eq!(run[key], all[key], "{nth}: {run}");
        }
    }
}

/// Kills the `nth` oldest process of that program.
fn kill_nth(place: &Place, nth: usize) -> bool {
    // Numbers begin again where they have come to their end: in clock ticks since the system was started (proc(5)).
    let began = |pid: i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit(") ").next()?.split(' ').nth(19)?.parse::<u64>().ok()
    };
    let pids = place.processes("several").into_iter();
    let mut pids: Vec<(u64, i32)> = pids.filter_map(|pid| Some((began(pid)?, pid))).collect();
    pids.sort_unstable();
    pids.get(nth).is_some_and(|(_, pid)| {
        Command::new("kill").args(["-9", &pid.to_string()]).status().is_ok_and(|done| done.success())
    })
}

/// What processes that stand still take stays within what marks may take, measured from outside, and nothing else depends on it.
#[test]
fn they_take_no_more_memory_than_they_may() {
    const MOST: u64 = 16 << 10;
    let place = Place::new("copies-bound");
    place.write("several", WRITES);
    let line = "--search optimal --race off --marks 1 ./several";
    let weighed = |memory: &str| weighed(&place, &format!("--checkpoint-memory {memory} {line}"));
    let ((none, least), (few, between), (all, most)) = (weighed("0"), weighed("16M"), weighed("1G"));
    for run in [&few, &all] {
        for key in ["verdict", "executions", "transitions", "complete"] {
            assert_eq!(run[key], none[key], "{run}");
        }
    }
    assert!(number(&none, "copied") > 50, "{none}");
    assert!(number(&few, "from_marks") > 10 && number(&all, "from_marks") > 50, "{few} {all}");
    assert_eq!((number(&none, "from_marks"), number(&all, "marks_without_room")), (0, 0), "{none} {all}");
    assert!(number(&none, "marks_without_room") > 50, "{none}");
    // Else nothing would be shown.
    assert!(most > least + MOST + 4096, "{least} {most} KiB");
    assert!(between > least + 2048 && between <= least + MOST, "{least} {between} KiB");
}

/// The same with copies, and the most memory, in KiB, that the program's processes had together; what they share counts once.
fn weighed(place: &Place, line: &str) -> (Value, u64) {
    let mut vsrun = place.command("copies", line).stdout(Stdio::piped()).spawn().expect("vsrun");
    let mut most = 0;
    while vsrun.try_wait().expect("vsrun").is_none() {
        let shares = place.processes("several").into_iter().filter_map(|pid| kilobytes(pid, "smaps_rollup", "Pss:"));
        most = most.max(shares.sum());
        std::thread::sleep(Duration::from_millis(2));
    }
    (report(line, vsrun.wait_with_output().expect("vsrun")), most)
}

/// The kernel refuses processes beyond those of an execution: the search goes on from before main, with the same counts, and says why.
#[test]
fn processes_that_the_kernel_refuses() {
    let place = Place::new("copies-refused");
    place.write("several", SEVERAL);
    let line = "--search optimal --race off --marks 1 --max-executions 60 ./several works 2";
    let all = place.run("fork", line);
    // Who is root has no such limit: as somebody who has no processes. Others have some already, so that for them it is only said that nothing wrong comes of it.
    super::copy_program(Path::new(env!("CARGO_BIN_EXE_vsrun")), &place.dir.join("vsrun"));
    let is_root = nix::unistd::Uid::effective().is_root();
    let user: &[&str] = if is_root { &["setpriv", "--reuid", "54321", "--clear-groups"] } else { &["env"] };
    let mut vsrun = Command::new("timeout");
    vsrun.args(["60"]).args(user).args([
        "prlimit",
        "--nproc=12",
        "./vsrun",
        "--format",
        "json",
        "-j",
        "1",
        "--keep-going",
    ]);
    vsrun.args(["--checkpoint", "copies"]).args(line.split_whitespace()).current_dir(&place.dir).stdin(Stdio::null());
    let run = report(line, vsrun.output().expect("vsrun"));
    if is_root || run["verdict"] != "error" {
        for key in ["verdict", "executions", "transitions", "complete"] {
            assert_eq!(run[key], all[key], "{run}");
        }
    }
    let why = run["not_rolled_back"].as_str().unwrap_or_default();
    assert!(!is_root || why.contains("refused a copy"), "{run}");
}
