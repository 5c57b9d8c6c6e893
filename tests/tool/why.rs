//! `vsrun why`: programs that hang natively are looked at from outside: the circle is named, and they go on as if nothing had been:
//! a thread of theirs counts on, no call is disturbed, and they end normally once they are released. With the vsrun binary.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::copy_program;

/// A directory, removed at the end.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let dir = std::env::temp_dir().join(format!("vsrun-why-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary directory");
        Dir(dir)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Compiles a file of `tests/why`.
fn compile(to: &Path, flags: &[&str]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/why/hang.c");
    let done = Command::new("gcc").args(["-pthread", "-o"]).arg(to).arg(source).args(flags).status();
    assert!(done.expect("gcc").success());
}

/// `tests/why/hang.c`, compiled once for all tests.
fn hang() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let (new, path) = (dir.join(format!("hang-{}", std::process::id())), dir.join("hang"));
        compile(&new, &["-O2", "-g"]);
        fs::rename(&new, &path).expect("it is there");
        path
    })
}

/// A program that hangs, and what it is told by.
struct Hanging {
    child: Child,
    input: ChildStdin,
    lines: std::io::Lines<BufReader<ChildStdout>>,
    dir: Dir,
}

impl Hanging {
    fn start(program: &Path, test: &str, arguments: &[&str]) -> Hanging {
        let dir = Dir::new(test);
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&dir.0).stdin(Stdio::piped()).stdout(Stdio::piped());
        // Its children too can be killed at the end.
        let mut child = command.process_group(0).spawn().expect("the program");
        let input = child.stdin.take().expect("a pipe");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut hanging = Hanging { child, input, lines, dir };
        assert_eq!(hanging.line(), "ready");
        hanging.wait_until_quiet();
        hanging
    }

    fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    fn line(&mut self) -> String {
        self.lines.next().expect("a line").expect("UTF-8")
    }

    /// Until the first thread waits in the same call for a while, and so its children.
    fn wait_until_quiet(&self) {
        let me = self.pid();
        let call = |pid: i32| fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
        let all = || -> Vec<String> { family(me).into_iter().map(call).collect() };
        let since = Instant::now();
        let (mut before, mut same) = (all(), 0);
        while same < 5 && since.elapsed() < Duration::from_secs(10) {
            sleep(Duration::from_millis(20));
            let now = all();
            same = if now == before && !now.iter().any(|call| call.starts_with("running")) { same + 1 } else { 0 };
            before = now;
        }
    }

    /// How far it has counted.
    fn counted(&mut self) -> u64 {
        self.input.write_all(b"c").expect("it listens");
        self.line().parse().expect("a number")
    }

    /// It counts on, and when it is released, it ends with status 0: nothing has disturbed it.
    fn goes_on(mut self) {
        let before = self.counted();
        sleep(Duration::from_millis(30));
        assert!(self.counted() > before, "it does not count on");
        for pid in family(self.pid()) {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it is there");
            assert!(status.contains("TracerPid:\t0\n"), "{status}");
        }
        self.input.write_all(b"r").expect("it listens");
        assert_eq!(self.child.wait().expect("it ends").code(), Some(0));
    }
}

impl Drop for Hanging {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", self.pid())]).stderr(Stdio::null()).status();
        let _ = self.child.wait();
    }
}

/// A process and its children.
fn family(pid: i32) -> Vec<i32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    std::iter::once(pid).chain(children.split_whitespace().filter_map(|word| word.parse().ok())).collect()
}

fn why(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_vsrun")).arg("why").args(arguments).output().expect("vsrun runs")
}

/// The text and the exit status.
fn text(pid: i32) -> (String, Option<i32>) {
    let done = why(&[&pid.to_string()]);
    (String::from_utf8_lossy(&done.stdout).into_owned(), done.status.code())
}

fn json(pid: i32) -> Value {
    let done = why(&["--format", "json", &pid.to_string()]);
    let text = String::from_utf8_lossy(&done.stdout);
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"))
}

/// What is asked of a program in mode `mode`: it is looked at twice, as text and as JSON, and goes on.
fn looked_at(mode: &str, status: i32, parts: &[&str]) -> Value {
    let hanging = Hanging::start(hang(), mode, &[mode]);
    let (text, code) = text(hanging.pid());
    let object = json(hanging.pid());
    for part in parts {
        assert!(text.contains(part), "\n{part}\nis not in\n{text}");
    }
    assert_eq!(code, Some(status), "{text}");
    hanging.goes_on();
    object
}

/// The same with nobody left who could help; the program is killed.
fn looked_at_alone(mode: &str, status: i32, parts: &[&str]) -> Value {
    let hanging = Hanging::start(hang(), &format!("{mode}-alone"), &[mode, "quiet"]);
    let (text, code) = text(hanging.pid());
    for part in parts {
        assert!(text.contains(part), "\n{part}\nis not in\n{text}");
    }
    assert_eq!(code, Some(status), "{text}");
    json(hanging.pid())
}

/// The objects of the first circle.
fn circle(object: &Value) -> Vec<String> {
    let links = object["circles"][0]["links"].as_array().unwrap_or_else(|| panic!("{object}"));
    links.iter().map(|link| link["waits_for"].as_str().unwrap_or_default().to_string()).collect()
}

// ------------------------------------------------------------------------------------------------ threads of a process

#[test]
fn two_threads_that_transfer_money() {
    let object = looked_at(
        "mutex",
        1,
        &[
            "DEADLOCK: 2 threads wait for each other: ",
            " for mutex bank[1].lock, bob (",
            " --waits for--> mutex bank[0].lock --held by--> alice (",
            "    holds      mutex bank[1].lock\n",
            "alice tests/why/hang.c:",
            "main (",
            "Explore this program\n",
        ],
    );
    assert_eq!(circle(&object), ["mutex bank[1].lock", "mutex bank[0].lock"]);
    assert_eq!((object["verdict"].as_str(), object["certain"].as_bool()), (Some("deadlock"), Some(true)));
    let threads = object["threads"].as_array().expect("threads");
    let alice = threads.iter().find(|t| t["name"].as_str().is_some_and(|n| n.starts_with("alice (")));
    let alice = alice.unwrap_or_else(|| panic!("{object}"));
    assert_eq!((alice["stuck"].as_bool(), alice["exact_stack"].as_bool()), (Some(true), Some(true)));
    let moving = threads.iter().filter(|t| t["does"] == "moves").count();
    assert_eq!((threads.len(), moving), (4, 1));
}

#[test]
fn mutexes_of_other_kinds() {
    for (mode, kind) in [("robust", "robust mutex"), ("recursive", "recursive mutex")] {
        let object = looked_at_alone(mode, 1, &["DEADLOCK: 2 threads wait for each other: alice ("]);
        assert_eq!(circle(&object), [format!("{kind} bank[1].lock"), format!("{kind} bank[0].lock")]);
    }
    // Here the kernel finds the circle, and glibc does not go on.
    looked_at_alone(
        "inherits",
        1,
        &[
            "DEADLOCK: ",
            " waits for a mutex that would close a circle, and nobody is left who could end that (the kernel has refused it",
            "waits for  priority-inheriting mutex bank[",
        ],
    );
}

#[test]
fn a_thread_that_joins_who_waits_for_its_lock() {
    looked_at(
        "join",
        1,
        &[
            "main (",
            " --waits for the end of--> wants_first (",
            " --waits for--> mutex bank[0].lock --held by--> main (",
        ],
    );
}

#[test]
fn a_condition_variable_that_nobody_signals() {
    let parts =
        ["a signal on condition variable ready", "who is to signal it cannot be known", "pthread_cond_wait(ready)"];
    looked_at("cond", 3, &[&["NOT KNOWN: no circle of waits was found"][..], &parts].concat());
    // Nobody is left who could: main waits for the end of the one that waits.
    looked_at_alone("cond", 1, &[&["DEADLOCK: 2 threads wait for each other: main ("][..], &parts].concat());
}

#[test]
fn a_time_limit_ends_a_wait() {
    looked_at("limited", 0, &["NO DEADLOCK", "condition variable ready, with a time limit"]);
}

#[test]
fn rwlocks_by_their_writer() {
    looked_at(
        "rwlock",
        1,
        &[
            "--waits for--> rwlock table --held by--> writer (",
            "mutex bank[0].lock --held by--> reader (",
            "held for writing",
        ],
    );
    looked_at("rwlock_read", 3, &["rwlock table", "1 reader; who reads is not known"]);
}

#[test]
fn a_thread_that_waits_for_itself() {
    looked_at("again", 1, &["DEADLOCK: main (", " waits for itself: for mutex bank[0].lock"]);
}

#[test]
fn a_handler_that_locks() {
    let parts = [
        "waits for itself: for mutex bank[0].lock",
        "in a signal handler that has interrupted raise, which may hold it",
    ];
    looked_at("handler", 1, &parts);
}

#[test]
fn an_owner_that_is_over() {
    looked_at(
        "owner_over",
        1,
        &[
            "waits for mutex bank[0].lock, and nobody is left who could end that",
            "which is over: it ended without releasing it",
        ],
    );
}

#[test]
fn damaged_memory_is_not_believed() {
    looked_at("damaged", 3, &["as its owner it has 1856859887, which is no thread", "mutex bank[0].lock"]);
}

#[test]
fn semaphores_barriers_and_streams() {
    looked_at("sem", 3, &["sem_wait(jobs)", "value 0; who is to post it cannot be known"]);
    looked_at_alone("sem", 1, &["semaphore jobs, and nobody is left who could end that"]);
    looked_at("barrier", 3, &["barrier meeting", "2 of 3 threads are there"]);
    looked_at("stream", 1, &["the lock of a stream, ", ", held by flocks (", "mutex bank[0].lock --held by--> main ("]);
}

#[test]
fn a_thread_that_computes() {
    looked_at("busy", 0, &["NO DEADLOCK", "spins (", " computes without a pause", "spins tests/why/hang.c:"]);
}

// ------------------------------------------------------------------------------------------------------- processes

#[test]
fn two_processes_and_two_semaphores() {
    let parts = ["of semaphore set ", "--last changed by--> ", "value 0"];
    looked_at("semop", 3, &[&["POSSIBLE DEADLOCK: 2 threads wait for each other: hang ("][..], &parts].concat());
    let object = looked_at_alone("semop", 1, &[&["PROBABLE DEADLOCK: 2 threads wait"][..], &parts].concat());
    assert_eq!(object["certain"], false);
}

#[test]
fn two_processes_that_both_write() {
    let parts = ["room in the pipe (descriptor ", "--read by--> hang ("];
    looked_at("pipe", 3, &[&["POSSIBLE DEADLOCK: 2 threads wait for each other: hang ("][..], &parts].concat());
    looked_at_alone("pipe", 1, &parts);
}

#[test]
fn two_processes_that_both_ask() {
    let parts = ["data in the Unix socket (descriptor ", "--written by--> hang ("];
    looked_at("sockets", 3, &parts);
    looked_at_alone("sockets", 1, &parts);
}

#[test]
fn two_processes_and_two_files() {
    let parts = ["second.lock --held by--> hang (", "first.lock --held by--> "];
    looked_at("flock", 3, &parts);
    let object = looked_at_alone("flock", 1, &[&["DEADLOCK: 2 threads"][..], &parts].concat());
    assert_eq!(object["certain"], true);
    looked_at_alone("fcntl", 1, &parts);
}

#[test]
fn a_mutex_that_two_processes_share() {
    let object = looked_at("shared", 1, &["DEADLOCK: 2 threads wait for each other: hang (", "--held by--> hang ("]);
    assert_eq!(circle(&object).len(), 2);
}

#[test]
fn two_processes_and_two_message_queues() {
    let parts = ["a message in queue ", "--last sent by--> hang (", "messages in it: 0"];
    looked_at("messages", 3, &parts);
    looked_at_alone("messages", 1, &parts);
}

#[test]
fn a_server_and_a_client_that_both_read() {
    let server = Hanging::start(hang(), "server", &["serve"]);
    let dir = Dir::new("client-binary");
    let binary = dir.0.join("customer");
    copy_program(hang(), &binary);
    let port = server.dir.0.join("port").display().to_string();
    let mut client = Hanging::start(&binary, "client", &["client", &port]);
    server.wait_until_quiet();
    let (text, code) = text(server.pid());
    for part in [
        "POSSIBLE DEADLOCK: 2 threads wait for each other: hang (",
        "data in the TCP connection from 127.0.0.1:",
        "--written by--> customer (",
        &format!(" vsrun --with '{} client {port}' ", binary.display()),
        &format!(" {} serve\n", hang().display()),
    ] {
        assert!(text.contains(part), "\n{part}\nis not in\n{text}");
    }
    assert_eq!(code, Some(3), "{text}");
    server.goes_on();
    assert_eq!(client.child.wait().expect("it ends").code(), Some(0));
}

// --------------------------------------------------------------------------------------------------- what is no deadlock

#[test]
fn an_idle_pool_is_no_deadlock() {
    let object = looked_at("pool", 3, &["NOT KNOWN", "epoll_wait", "whoever connects", "condition variable ready"]);
    assert_eq!(object["circles"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_pipe_that_a_signal_handler_writes_to() {
    let parts = ["NO DEADLOCK", "data in the pipe (descriptor ", "which is up to a signal handler of its own"];
    looked_at("self_pipe", 3, &["NOT KNOWN", "another thread of it or a signal handler may do that"]);
    looked_at_alone("self_pipe", 0, &parts);
}

#[test]
fn a_named_pipe_that_anybody_may_open() {
    looked_at_alone("fifo", 0, &["NO DEADLOCK", "data in the named pipe ", "which is up to whoever opens it"]);
}

#[test]
fn threads_that_sleep() {
    looked_at("sleeping", 0, &["NO DEADLOCK: nothing hangs that could be seen"]);
}

// ------------------------------------------------------------------------------------------- what cannot be looked at

/// Refused with status 2 and a line that has all `parts`; as JSON, too.
fn refused(pid: i32, parts: &[&str]) {
    let done = why(&[&pid.to_string()]);
    let line = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!((done.status.code(), line.lines().count()), (Some(2), 1), "{line}");
    for part in parts {
        assert!(line.contains(part), "\n{part}\nis not in\n{line}");
    }
    assert_eq!(json(pid)["verdict"], "error");
}

#[test]
fn a_process_that_is_not_there() {
    refused(i32::MAX, &["vsrun: there is no process 2147483647"]);
    assert_eq!(why(&["x"]).status.code(), Some(2));
    assert_eq!(why(&["0"]).status.code(), Some(2));
}

#[test]
fn a_zombie() {
    let mut child = Command::new("true").spawn().expect("true");
    let pid = child.id() as i32;
    while !fs::read_to_string(format!("/proc/{pid}/stat")).expect("it is there").contains(") Z ") {
        sleep(Duration::from_millis(5));
    }
    refused(pid, &["is over, a zombie: its parent, process", &format!("'vsrun why {}'", std::process::id())]);
    child.wait().expect("its end");
}

#[test]
fn a_thread_of_the_kernel() {
    // Containers may show none.
    if fs::read_to_string("/proc/2/comm").is_ok_and(|name| name == "kthreadd\n") {
        refused(2, &["is a thread of the kernel"]);
    }
}

#[test]
fn vsrun_itself() {
    let script = format!("exec {} why $$", env!("CARGO_BIN_EXE_vsrun"));
    let done = Command::new("sh").args(["-c", &script]).output().expect("sh");
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&done.stderr).contains("is vsrun itself"));
}

#[test]
fn a_process_of_somebody_else() {
    let hanging = Hanging::start(hang(), "other", &["mutex"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_vsrun"));
    // Only root can be somebody else; nobody else may look at what is root's.
    let is_root = fs::metadata("/proc/self").is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0);
    if is_root {
        let dir = Dir::new("other-binary");
        let copy = dir.0.join("vsrun");
        copy_program(Path::new(env!("CARGO_BIN_EXE_vsrun")), &copy);
        command = Command::new(&copy);
        let done = command.args(["why", &hanging.pid().to_string()]).uid(65534).gid(65534).output().expect("vsrun");
        let line = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(2), "{line}");
        assert!(line.contains("must not be looked at") && line.contains("it belongs to user 0"), "{line}");
    }
    let _ = command;
    hanging.goes_on();
}

/// A program for 32 bits without libc: header, one segment, and `pause` for ever.
fn for_32_bits() -> Vec<u8> {
    let mut file = Vec::new();
    let words = |file: &mut Vec<u8>, all: &[u32]| all.iter().for_each(|word| file.extend(word.to_le_bytes()));
    file.extend(b"\x7fELF\x01\x01\x01");
    file.resize(16, 0);
    words(&mut file, &[3 << 16 | 2, 1, 0x0804_8054, 52, 0, 0, 32 << 16 | 52, 1, 0]);
    words(&mut file, &[1, 0, 0x0804_8000, 0x0804_8000, 0x60, 0x60, 5, 0x1000]);
    file.extend(b"\xb8\x1d\0\0\0\xcd\x80\xeb\xf7");
    file.resize(0x60, 0x90);
    file
}

#[test]
fn a_program_for_32_bits() {
    use std::os::unix::fs::PermissionsExt;
    let dir = Dir::new("bits");
    let (made, path) = (dir.0.join("made"), dir.0.join("old"));
    fs::write(&made, for_32_bits()).expect("a file");
    fs::set_permissions(&made, fs::Permissions::from_mode(0o755)).expect("its mode");
    copy_program(&made, &path);
    // The kernel may run none.
    let Ok(mut child) = Command::new(&path).spawn() else { return };
    refused(child.id() as i32, &["runs a 32-bit program: only x86-64 is supported"]);
    assert!(child.try_wait().expect("it is ours").is_none(), "it is over");
    child.kill().expect("it is there");
    child.wait().expect("its end");
}

#[test]
fn a_program_that_is_linked_statically() {
    let dir = Dir::new("static");
    let program = dir.0.join("hang");
    compile(&program, &["-O2", "-g", "-static"]);
    let hanging = Hanging::start(&program, "static-run", &["mutex"]);
    let (text, code) = text(hanging.pid());
    assert!(text.contains("--waits for--> mutex bank[0].lock --held by--> alice ("), "{text}");
    assert_eq!(code, Some(1));
    hanging.goes_on();
}

#[test]
fn a_process_that_is_traced_already() {
    let hanging = Hanging::start(hang(), "traced", &["mutex"]);
    let pid = hanging.pid().to_string();
    let Ok(mut tracer) = Command::new("strace").args(["-o", "/dev/null", "-p", &pid]).stderr(Stdio::null()).spawn()
    else {
        return hanging.goes_on();
    };
    let status = || fs::read_to_string(format!("/proc/{pid}/status")).expect("it is there");
    while status().contains("TracerPid:\t0\n") {
        sleep(Duration::from_millis(10));
    }
    let (text, _) = text(hanging.pid());
    assert!(text.contains(&format!("is traced by process {}", tracer.id())), "{text}");
    assert!(text.contains("--waits for--> mutex bank[0].lock --held by--> alice ("), "{text}");
    assert!(status().contains(&format!("TracerPid:\t{}\n", tracer.id())), "its tracer is gone");
    let _ = Command::new("kill").args(["-INT", &tracer.id().to_string()]).status();
    tracer.wait().expect("its end");
    hanging.goes_on();
}

#[test]
fn a_process_that_is_stopped() {
    let hanging = Hanging::start(hang(), "stopped", &["mutex"]);
    let pid = hanging.pid().to_string();
    let signal = |name: &str| assert!(Command::new("kill").args([name, &pid]).status().expect("kill").success());
    signal("-STOP");
    let (text, code) = text(hanging.pid());
    assert!(text.contains(&format!("'kill -CONT {pid}' lets it go on")), "{text}");
    assert_eq!(code, Some(3));
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it is there");
    assert!(status.contains("State:\tT"), "{status}");
    signal("-CONT");
    hanging.goes_on();
}

#[test]
fn looking_often_disturbs_nothing() {
    for mode in ["mutex", "semop", "pipe", "pool", "sleeping"] {
        let hanging = Hanging::start(hang(), &format!("{mode}-often"), &[mode]);
        for _ in 0..5 {
            assert!(why(&[&hanging.pid().to_string()]).status.code().is_some_and(|code| code != 2 && code != 4));
        }
        hanging.goes_on();
    }
}
