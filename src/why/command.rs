//! The command by which vsrun explores the program that hangs.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::proc;
use crate::base::text::escape_bytes;
use crate::report::shell_word;

/// How a program was started.
struct Command {
    words: Vec<Vec<u8>>,
    /// What it calls itself, if that is not how it was started: its arguments are not known.
    title: Option<String>,
}

impl Command {
    fn line(&self) -> String {
        self.words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
    }
}

/// Of the process `pid`, or the one of the same program that has started it; `clients` are processes that talk to it.
pub(super) fn explore(pid: i32, clients: &[i32]) -> Option<String> {
    let root = first_of_program(pid);
    let program = command(root)?;
    let mut parts = Vec::new();
    if let Some(cwd) = proc::link(root, "cwd") {
        parts.push(format!("cd {} &&", shell_word(cwd.as_os_str().as_bytes())));
    }
    let variables = proc::words(root, "environ").into_iter().filter(|variable| variable.starts_with(b"LD_"));
    let variables: Vec<String> = variables.map(|variable| shell_word(&variable)).collect();
    if !variables.is_empty() {
        parts.push(format!("env {}", variables.join(" ")));
    }
    parts.push("vsrun".into());
    for &client in clients {
        // One word, in which quotes are as for a shell.
        parts.push(format!("--with {}", shell_word(command(client)?.line().as_bytes())));
    }
    // A program that is called as a command of vsrun, or as an option.
    if !program.words[0].contains(&b'/') {
        parts.push("--".into());
    }
    parts.push(program.line());
    if let Some(title) = program.title {
        parts.push(format!("  # its arguments are not known: it calls itself '{title}'"));
    }
    Some(parts.join(" "))
}

/// The words of its command line. A program may have overwritten them by what it calls itself; then only the path of its file is known.
fn command(pid: i32) -> Option<Command> {
    let mut words = proc::words(pid, "cmdline");
    while words.last().is_some_and(Vec::is_empty) {
        words.pop();
    }
    let exe = proc::link(pid, "exe")?;
    let (path, _) = proc::without_deleted(&exe);
    match words.first().filter(|name| is_program(pid, name, &exe)) {
        Some(_) => Some(Command { words, title: None }),
        None => {
            let title = words.into_iter().next().unwrap_or_default();
            let first = title.split(|b| *b == b' ').next().unwrap_or_default();
            let program = if is_program(pid, first, &exe) { first } else { path };
            Some(Command { words: vec![program.to_vec()], title: Some(escape_bytes(&title)) })
        }
    }
}

/// Whether a name leads to the program that process `pid` runs: a path from its directory, or a name in its PATH.
fn is_program(pid: i32, name: &[u8], exe: &Path) -> bool {
    let (name, exe) = (OsStr::from_bytes(name), exe.canonicalize().ok());
    let is = |path: PathBuf| exe.is_some() && path.canonicalize().ok() == exe;
    if name.as_bytes().contains(&b'/') {
        return is(proc::link(pid, "cwd").unwrap_or_default().join(name));
    }
    let environment = proc::words(pid, "environ");
    let paths = environment.iter().find_map(|variable| variable.strip_prefix(b"PATH="));
    std::env::split_paths(OsStr::from_bytes(paths.unwrap_or(b"/usr/bin:/bin"))).any(|dir| is(dir.join(name)))
}

/// The ancestor that has forked, and not executed anything, down to `pid`: it has the same command line, or has overwritten it.
fn first_of_program(pid: i32) -> i32 {
    let exe = proc::link(pid, "exe");
    let is_same = |parent: i32, child: i32| {
        let lines = [parent, child].map(|pid| proc::words(pid, "cmdline"));
        let titled = command(child).is_some_and(|command| command.title.is_some());
        exe.is_some() && proc::link(parent, "exe") == exe && (lines[0] == lines[1] || titled)
    };
    let mut at = pid;
    while let Some(parent) = proc::stat(&at.to_string()).map(|stat| stat.parent).filter(|&parent| parent > 1) {
        if !is_same(parent, at) {
            break;
        }
        at = parent;
    }
    at
}
