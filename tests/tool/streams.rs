//! Standard input and descriptors 0 to 2: each execution and each replay begins with what stood there when the program came to its main, and nothing
//! of it is left behind for the shell. With the vsrun binary.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A directory with the program and a file for it to read, removed at the end.
struct Place(PathBuf);

const TEXT: &str = "0123456789abcdef";

impl Place {
    fn new(test: &str) -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-streams-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary directory");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams/program.c");
        let mut gcc = Command::new("gcc");
        gcc.arg("-O1").arg("-o").arg(dir.join("program")).arg(source).arg("-lpthread");
        assert!(gcc.status().expect("gcc").success());
        fs::write(dir.join("text"), TEXT).expect("a file");
        Place(dir)
    }

    fn text(&self) -> File {
        File::open(self.0.join("text")).expect("the file")
    }

    /// Exit status, and all that vsrun said.
    fn run(&self, arguments: &[&str], input: impl Into<Stdio>) -> (i32, String) {
        let mut command = Command::new("timeout");
        command.arg("60").arg(env!("CARGO_BIN_EXE_vsrun")).args(arguments).current_dir(&self.0).stdin(input);
        let output = command.output().expect("vsrun");
        let said = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&said).into_owned())
    }

    /// The program finds what it is to find, in several executions.
    fn finds(&self, mode: &str, input: impl Into<Stdio>) {
        let (code, said) = self.run(&["-j", "1", "--search", "naive", "./program", mode], input);
        assert!(code == 0 && said.contains("explored completely"), "{mode}: {code}: {said}");
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn each_execution_begins_with_what_stood_there_at_main() {
    let place = Place::new("main");
    for mode in ["read before", "flags before", "another before", "seek", "flags", "only read"] {
        place.finds(mode, place.text());
    }
    for mode in ["flags before", "another before", "flags"] {
        place.finds(mode, Stdio::null());
    }
}

#[test]
fn what_is_printed_before_main_is_printed_in_each_execution() {
    let place = Place::new("print");
    let arguments = ["-j", "1", "--search", "naive", "--output", "out", "./program", "print before"];
    let (code, said) = place.run(&arguments, Stdio::null());
    assert_eq!(code, 0, "{said}");
    assert_eq!(fs::read_to_string(place.0.join("out")).expect("the output"), "before\nafter\n");
}

#[test]
fn replays_begin_with_the_same_input() {
    let place = Place::new("replay");
    let (code, said) = place.run(&["--scenario-dir", ".", "./program", "read before", "fails"], place.text());
    assert!(code == 1 && said.contains("the end"), "{code}: {said}");
    let scenario = fs::read_dir(&place.0).expect("a directory").flatten().map(|entry| entry.path());
    let scenario = scenario.filter(|path| path.extension().is_some_and(|e| e == "json")).last().expect("a scenario");
    let scenario = scenario.to_string_lossy();
    for _ in 0..2 {
        let (code, said) = place.run(&["replay", &scenario], place.text());
        assert!(code == 1 && said.contains("the end"), "{code}: {said}");
    }
    let (code, said) = place.run(&["replay", "--no-supervisor", &scenario], place.text());
    assert!(code == 1 && said.contains("the end"), "{code}: {said}");
}

#[test]
fn input_begins_where_it_stands() {
    let place = Place::new("stands");
    let mut text = place.text();
    text.seek(SeekFrom::Start(14)).expect("a place");
    let (code, said) = place.run(&["./program", "given", "ef"], text.try_clone().expect("a descriptor"));
    assert_eq!(code, 0, "{said}");
    assert_eq!(text.stream_position().expect("a place"), 14, "it is read under a description of its own");
}

#[test]
fn input_that_is_written_is_a_copy() {
    let place = Place::new("write");
    let both = || OpenOptions::new().read(true).write(true).open(place.0.join("text")).expect("the file");
    place.finds("write", both());
    let (code, said) = place.run(&["-j", "2", "--search", "naive", "./program", "write"], both());
    assert_eq!(code, 0, "{said}");
    assert_eq!(fs::read_to_string(place.0.join("text")).expect("the file"), TEXT);
}

#[test]
fn pipes_and_sockets_are_read_to_their_end() {
    let place = Place::new("pipes");
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    (&ours).write_all(b"by socket").expect("room");
    drop(ours);
    let (code, said) = place.run(&["./program", "given", "by socket"], std::os::fd::OwnedFd::from(theirs));
    assert_eq!(code, 0, "{said}");
    // A named one of which the writer is gone: to open it once more would wait for another one.
    let name = place.0.join("fifo");
    assert!(Command::new("mkfifo").arg(&name).status().expect("mkfifo").success());
    let mut writer = OpenOptions::new().read(true).write(true).open(&name).expect("the fifo");
    let reader = File::open(&name).expect("the fifo");
    writer.write_all(b"by fifo").expect("room");
    drop(writer);
    let (code, said) = place.run(&["./program", "given", "by fifo"], reader);
    assert_eq!(code, 0, "{said}");
    // One that somebody has set O_NONBLOCK on.
    let script = "import fcntl, os; fcntl.fcntl(0, fcntl.F_SETFL, os.O_NONBLOCK); os.execvp('sh', ['sh', '-c', '\"$0\" ./program given later', os.environ['V']])";
    let mut python = Command::new("python3");
    python.args(["-c", script]).env("V", env!("CARGO_BIN_EXE_vsrun")).current_dir(&place.0).stdin(Stdio::piped());
    let mut child = python.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("python3");
    std::thread::sleep(std::time::Duration::from_millis(300));
    child.stdin.take().expect("a pipe").write_all(b"later").expect("room");
    let mut said = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    assert!(child.wait().expect("its end").success(), "{said}");
}

#[test]
fn the_terminal_keeps_its_flags() {
    let place = Place::new("terminal");
    let (code, said) = place.run(&["--scenario-dir", ".", "./program", "flags", "fails"], Stdio::null());
    assert_eq!(code, 1, "{said}");
    let vsrun = env!("CARGO_BIN_EXE_vsrun");
    for command in ["--once ./program flags fails", "replay vsrun-*.json", "replay --no-supervisor vsrun-*.json"] {
        // `script` runs it on a terminal; what is there afterwards is told by somebody else.
        let flags = "grep ^flags: /proc/self/fdinfo/0";
        let line = format!("{flags}; {vsrun} {command} >out 2>err; {flags}; {vsrun} {command}; {flags}");
        let output = Command::new("script").args(["-qec", &line, "/dev/null"]).current_dir(&place.0).output();
        let said = String::from_utf8_lossy(&output.expect("script").stdout).into_owned();
        let flags: Vec<&str> = said.lines().filter(|line| line.starts_with("flags:")).collect();
        assert!(flags.len() == 3 && flags[0] == flags[1] && flags[0] == flags[2], "{command}: {said}");
    }
}
