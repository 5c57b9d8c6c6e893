//! What the tests of this directory share.

use nix::unistd::Pid;

use super::*;
pub use crate::base::testing::TempDir;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A launch with nothing special about it.
pub fn plain(exe: PathBuf) -> LaunchSpec {
    let argv = vec![OsString::from("program")];
    let (cwd, cpu) = (PathBuf::from("/"), None);
    LaunchSpec { exe, argv, envp: Vec::new(), cwd, stdio: [0, 1, 2], inherit: Vec::new(), cpu }
}

/// Kills that process when the test ends, also if it fails. A test ends by waiting for it, so that the id cannot
/// be another's by then: the test takes the killer apart.
pub struct Killer(Option<Pid>);

impl Killer {
    pub fn of(stopped: &Stopped) -> Killer {
        Killer(Some(stopped.pid()))
    }

    pub fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for Killer {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::SIGKILL);
            let _ = Running::traced(pid).reap();
        }
    }
}

pub fn stopped(event: Event) -> Stopped {
    match event {
        Event::Stopped(stopped) => stopped,
        other => panic!("not stopped: {other:?}"),
    }
}

pub fn signal(number: i32) -> Signal {
    Signal::from_number(number).unwrap()
}

pub fn exit_code(event: Event) -> i32 {
    match event {
        Event::Exited { code, .. } => code,
        other => panic!("not exited: {other:?}"),
    }
}

/// Launches a C program and gives it to `drive`, which must see its end.
pub fn with_program<T>(source: &str, drive: impl FnOnce(Stopped) -> T) -> T {
    let dir = TempDir::new();
    let stopped = launch(&plain(dir.compile("program", "c", source, &["-O1", "-pthread"]))).unwrap();
    let killer = Killer::of(&stopped);
    let result = drive(stopped);
    killer.disarm();
    result
}

/// Runs an ignored test, alone in a process of its own. `module` is its `module_path!()`.
pub fn in_own_process(module: &str, test: &str, variables: &[(&str, &Path)]) -> Output {
    let path = format!("{}::{test}", module.split_once("::").unwrap().1);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &path, "--ignored", "--nocapture"]).envs(variables.iter().copied());
    command.output().unwrap()
}

/// What [`in_own_process`] was given; None if an inner test is run by hand.
pub fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
}
