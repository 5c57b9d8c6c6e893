//! Files as private layers, further root processes and what they leave over, with the vsrun binary.

use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{kill, Signal};
use nix::unistd::{geteuid, Pid};
use serde_json::Value;

/// Processes of a run are known by this variable.
const MARK: &str = "VSRUN_FILES_RUN";
/// One run of vsrun, and what it takes to clean up, may take so long.
const LIMIT: Duration = Duration::from_secs(120);

/// A directory with a program and a directory `w` that it works in; removed at the end.
struct Place {
    dir: PathBuf,
}

impl Place {
    fn new(test: &str, source: &str) -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-files-{test}-{}", std::process::id()));
        fs::create_dir_all(dir.join("w")).expect("a temporary directory");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(source);
        let mut gcc = Command::new("gcc");
        gcc.arg("-O1").arg("-o").arg(dir.join("program")).arg(source).arg("-lpthread");
        assert!(gcc.status().expect("gcc").success());
        Place { dir }
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.dir.join("w").join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(path, text).expect("a file");
    }

    /// Names, types and contents of what is in `w`.
    fn content(&self) -> Vec<(PathBuf, String)> {
        let mut found = Vec::new();
        let mut directories = vec![self.dir.join("w")];
        while let Some(dir) = directories.pop() {
            for entry in fs::read_dir(dir).expect("a directory").flatten() {
                let (path, kind) = (entry.path(), entry.file_type().expect("a type"));
                let what = match (kind.is_dir(), kind.is_symlink()) {
                    (true, _) => "directory".to_string(),
                    (_, true) => format!("link to {:?}", fs::read_link(&path).expect("a link")),
                    _ => format!("file {:?}", fs::read_to_string(&path).expect("a file")),
                };
                if kind.is_dir() {
                    directories.push(path.clone());
                }
                found.push((path, what));
            }
        }
        found.sort();
        found
    }

    fn vsrun(&self, arguments: &[&str]) -> Child {
        self.vsrun_in("", arguments)
    }

    /// In a directory below `w`.
    fn vsrun_in(&self, below: &str, arguments: &[&str]) -> Child {
        // The tests may run where SIGINT is ignored (in the background of a shell), which vsrun inherits and respects.
        let mut command = Command::new("env");
        command
            .args(["--default-signal=INT", env!("CARGO_BIN_EXE_vsrun")])
            .args(arguments)
            .current_dir(self.dir.join("w").join(below))
            .env(MARK, &self.dir)
            .process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("vsrun")
    }

    /// Explores to the end: exit status and report.
    fn explore(&self, arguments: &[&str]) -> (i32, Value) {
        let mut all = vec!["--format", "json", "--scenario-dir", "../scenarios", "--output", "../output"];
        all.extend_from_slice(arguments);
        let (code, out, err) = end(self.vsrun(&all));
        (code, serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}")))
    }

    fn output(&self) -> String {
        fs::read_to_string(self.dir.join("output")).expect("the program's output")
    }

    /// (pid, command line) of processes of runs here that are alive.
    fn processes(&self) -> Vec<(i32, String)> {
        let wanted = format!("{MARK}={}", self.dir.display());
        let read = |pid: &str, file: &str| fs::read(Path::new("/proc").join(pid).join(file)).unwrap_or_default();
        let ours = |pid: &str| read(pid, "environ").split(|&b| b == 0).any(|word| word == wanted.as_bytes());
        let names = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = names.filter_map(|entry| entry.file_name().into_string().ok());
        pids.filter(|pid| pid.parse::<i32>().is_ok() && ours(pid))
            .map(|pid| (pid.parse().expect("a number"), String::from_utf8_lossy(&read(&pid, "cmdline")).into_owned()))
            .collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn end(mut child: Child) -> (i32, String, String) {
    let (mut out, mut err) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = err.read_to_string(&mut text);
        text
    });
    let mut text = String::new();
    let _ = out.read_to_string(&mut text);
    let status = child.wait().expect("vsrun ends");
    (status.code().unwrap_or(-1), text, reader.join().expect("a text"))
}

/// Waits until something is there.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(since.elapsed() < LIMIT, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A message of the first bug.
fn summary(report: &Value) -> &str {
    report["bugs"][0]["summary"].as_str().unwrap_or("")
}

#[test]
fn what_is_changed_is_seen_by_the_program_alone() {
    let place = Place::new("view", "view.c");
    for (name, text) in [
        ("old", "old\n"),
        ("third", "third\n"),
        ("d/in", "in\n"),
        ("full/one", "1\n"),
        ("target", "t\n"),
        ("mapped", "mapped\n"),
        ("other", "other\n"),
    ] {
        place.put(name, text);
    }
    for (link, target) in [("toreal", "target"), ("dangling", "missing")] {
        std::os::unix::fs::symlink(target, place.dir.join("w").join(link)).expect("a link");
    }
    let before = place.content();
    let (code, report) = place.explore(&["--search", "optimal", "--keep-going", "../program"]);
    assert_eq!((code, &report["verdict"]), (0, &"ok".into()), "{report} {}", place.output());
    assert_eq!(report["complete"], true, "{report}");
    assert!(report["executions"].as_u64() > Some(1), "{report}");
    assert_eq!(place.content(), before);
    // The program agrees with the kernel.
    let natively = Command::new("../program").current_dir(place.dir.join("w")).status().expect("the program");
    assert!(natively.success());
    assert_ne!(place.content(), before);
}

#[test]
fn executions_do_not_see_what_others_wrote() {
    let place = Place::new("append", "small.c");
    place.put("db", "old\n");
    let before = place.content();
    for what in ["append", "journal", "race", "fifo"] {
        for workers in ["1", "2"] {
            let (code, report) = place.explore(&["--search", "naive", "-j", workers, "../program", what]);
            assert_eq!((code, &report["verdict"]), (0, &"ok".into()), "{what}: {report} {}", place.output());
            assert_eq!(report["complete"], true, "{what}: {report}");
            assert!(report["executions"].as_u64() > Some(1), "{what}: {report}");
        }
        assert_eq!(place.content(), before, "{what}");
    }
    let (_, report) = place.explore(&["--search", "random", "--max-executions", "1000", "../program", "append"]);
    assert_eq!((&report["verdict"], &report["executions"]), (&"ok".into(), &1000.into()), "{report}");
    assert_eq!(place.content(), before);
}

#[test]
fn real_files_are_changed_when_that_is_asked_for() {
    let place = Place::new("real", "small.c");
    let (_, report) = place.explore(&["--files", "real", "--search", "naive", "../program", "append"]);
    assert_eq!(report["verdict"], "assert", "the second execution finds the line of the first: {report}");
    fs::remove_file(place.dir.join("w/log")).expect("it was written");
    let (_, report) = place.explore(&["--once", "../program", "append"]);
    assert_eq!(report["verdict"], "ok", "{report}");
    assert_eq!(fs::read_to_string(place.dir.join("w/log")).expect("it was written"), "line\nline\n");
}

#[test]
fn files_over_which_processes_communicate_are_recognized() {
    let place = Place::new("shared", "small.c");
    let (code, report) = place.explore(&["--keep-going", "../program", "log"]);
    assert_eq!((code, &report["complete"]), (0, &true.into()), "what nobody reads has no order that matters: {report}");
    let notes = report["notes"].as_array().expect("notes");
    let told =
        |n: &Value| n.as_str().is_some_and(|n| n.contains("/w/log is written by several threads and read by none"));
    assert!(notes.iter().any(told), "{report}");
    // A wait puts them in order.
    let (code, report) = place.explore(&["--keep-going", "../program", "wait"]);
    assert_eq!((code, &report["complete"]), (0, &true.into()), "{report}");
}

/// An operation says which names it uses by a set of 64 bits. Two names may have the same one, by where the program was started.
#[test]
fn a_path_of_several_names_is_told_wherever_it_is() {
    let place = Place::new("names", "../../c-tests/one_step.c");
    let program = place.dir.join("program");
    for number in 0..200 {
        let below = number.to_string();
        fs::create_dir(place.dir.join("w").join(&below)).expect("a directory");
        let program = program.to_str().expect("a name");
        let (code, out, err) =
            end(place.vsrun_in(&below, &["--race", "off", "-j", "1", "--output", "/dev/null", program, "w"]));
        assert_eq!(code, 3, "in {below}: {out}{err}");
    }
}

#[test]
fn a_copy_that_others_would_not_see_is_refused() {
    let place = Place::new("reader", "small.c");
    place.put("db", "old\n");
    let before = place.content();
    let (code, report) = place.explore(&["../program", "reader"]);
    assert_eq!((code, &report["verdict"]), (2, &"error".into()), "{report}");
    assert!(summary(&report).contains("/w/db") && summary(&report).contains("--files real"), "{report}");
    assert_eq!(place.content(), before);
}

#[test]
fn the_layer_is_removed_however_vsrun_ends() {
    for signal in [Signal::SIGKILL, Signal::SIGINT] {
        let place = Place::new(signal.as_str(), "small.c");
        // Of an execution that is broken off before any other has ended there is a scenario.
        let options = ["--search", "random", "--scenario-dir", "..", "--output", "../output"];
        let mut child = place.vsrun(&[&options[..], &["../program", "append"]].concat());
        let guarded = until("vsrun has a directory", || {
            let guard = place.processes().into_iter().find(|(_, command)| command.contains("__guard"))?;
            let dir = PathBuf::from(guard.1.split('\0').nth(2)?);
            let places = fs::read_dir(&dir).ok()?.flatten();
            places.map(|place| place.path().join("files")).any(|layer| layer.exists()).then_some(dir)
        });
        kill(Pid::from_raw(child.id() as i32), signal).expect("it is there");
        child.wait().expect("vsrun ends");
        until("nothing is left", || (!guarded.exists() && place.processes().is_empty()).then_some(()));
        assert!(place.content().is_empty());
    }
}

#[test]
fn clients_run_with_a_server_that_may_be_left_over() {
    let place = Place::new("with", "semserver.c");
    let clients = ["--with", "../program client 'a b'", "--search", "optimal", "--keep-going"];
    let (code, report) = place.explore(&[&clients[..], &["../program"]].concat());
    assert_eq!((code, &report["verdict"], &report["complete"]), (0, &"ok".into(), &true.into()), "{report}");
    assert!(report["notes"].to_string().contains("peers that do not come"), "{report}");
    // Told the whole command; nobody's child; in a group of its own.
    assert_eq!(place.output(), "client 1002 of 1 in group 1002 done a b\n");

    let (code, report) = place.explore(&[&clients[..], &["--stop-signal", "TERM", "../program"]].concat());
    assert_eq!((code, &report["verdict"]), (0, &"ok".into()), "{report}");
    assert!(!report["notes"].to_string().contains("peers that do not come"), "{report}");

    // A client that waits for ever is no server.
    let (code, report) = place.explore(&[&clients[..], &["../program", "lazy"]].concat());
    assert_eq!((code, &report["verdict"]), (1, &"deadlock".into()), "{report}");
    let scenario = report["bugs"][0]["scenario"].as_str().expect("a scenario");
    for _ in 0..2 {
        let (code, out, err) = end(place.vsrun(&["replay", scenario]));
        assert_eq!(code, 1, "{out}{err}");
        assert!(out.starts_with("DEADLOCK"), "{out}");
    }
}

#[test]
fn a_local_socket_has_its_file_in_the_layer() {
    let place = Place::new("socket", "sockserver.c");
    // Left by somebody else: the server takes it away, for itself alone.
    place.put("socket", "");
    let before = place.content();
    let arguments = ["--with", "../program client", "--search", "optimal", "--keep-going", "../program"];
    let (code, report) = place.explore(&arguments);
    assert_eq!((code, &report["verdict"], &report["complete"]), (0, &"ok".into(), &true.into()), "{report}");
    assert!(report["notes"].to_string().contains("peers that do not come"), "{report}");
    assert!(report["executions"].as_u64() > Some(1), "{report}");
    assert_eq!(place.content(), before);
}

/// Of /dev the program has what it makes and takes away for itself; the devices in it are the real ones. A name of one of the machine's
/// services is a name like others where the program is that service itself.
#[test]
fn what_is_made_in_dev_is_private() {
    let place = Place::new("dev", "syslog.c");
    // Those that the program makes and takes away: whether they are there, and as which file.
    let names = || ["/dev/log", "/dev/vsrun-files-test"].map(|name| fs::metadata(name).ok().map(|file| file.ino()));
    let before = names();
    let arguments = ["--with", "../program client", "--search", "optimal", "--keep-going", "../program"];
    let (code, report) = place.explore(&arguments);
    assert_eq!((code, &report["verdict"], &report["complete"]), (0, &"ok".into(), &true.into()), "{report}");
    // Others than root may make nothing there; then the program says so in its only execution.
    if geteuid().is_root() {
        assert!(report["executions"].as_u64() > Some(1), "{report}");
        assert!(report["notes"].to_string().contains("2 outcomes"), "{report}");
    } else {
        assert_eq!(place.output(), "no permission\n");
    }
    assert_eq!(names(), before);
}

#[test]
fn output_of_all_processes_is_kept_in_its_order() {
    let place = Place::new("output", "semserver.c");
    let with = ["--with", "sh -c 'echo one; echo two >&2'", "--search", "optimal", "--keep-going"];
    let (code, _) = place.explore(&[&with[..], &["sh", "-c", "echo three"]].concat());
    assert!(code == 0 || code == 3, "{code}");
    let mut lines: Vec<_> = place.output().lines().map(String::from).collect();
    assert!(lines.iter().position(|l| l == "one") < lines.iter().position(|l| l == "two"), "{lines:?}");
    lines.sort();
    assert_eq!(lines, ["one", "three", "two"]);
}
