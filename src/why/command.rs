//! The command by which vsrun explores the program that hangs.

use std::os::unix::ffi::OsStrExt;

use super::proc;
use crate::report::shell_word;

/// Of the process `pid`, or the one of the same program that has started it; `clients` are processes that talk to it.
pub(super) fn explore(pid: i32, clients: &[i32]) -> Option<String> {
    let root = first_of_program(pid);
    let words = command(root)?;
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
        let words: Vec<String> = command(client)?.iter().map(|word| shell_word(word)).collect();
        parts.push(format!("--with {}", shell_word(words.join(" ").as_bytes())));
    }
    let words: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
    // A program that is called as a command of vsrun, or as an option.
    if !words[0].contains('/') {
        parts.push("--".into());
    }
    Some(parts.join(" ") + " " + &words.join(" "))
}

/// The words of its command line; the program by its path, unless it is there by its name.
fn command(pid: i32) -> Option<Vec<Vec<u8>>> {
    let mut words = proc::words(pid, "cmdline");
    let exe = proc::link(pid, "exe")?;
    let (path, _) = proc::without_deleted(&exe);
    let cwd = proc::link(pid, "cwd").unwrap_or_default();
    let named = words.first().map(|word| cwd.join(std::ffi::OsStr::from_bytes(word)));
    let is_there = words.first().is_some_and(|word| word.contains(&b'/'))
        && named.is_some_and(|named| named.canonicalize().ok() == exe.canonicalize().ok());
    if !is_there {
        // What it calls itself may be anything.
        words.truncate(words.len().max(1));
        match words.first_mut() {
            Some(first) => *first = path.to_vec(),
            None => words.push(path.to_vec()),
        }
    }
    Some(words)
}

/// The ancestor that has forked, and not executed anything, down to `pid`.
fn first_of_program(pid: i32) -> i32 {
    let exe = proc::link(pid, "exe");
    let mut at = pid;
    while let Some(stat) = proc::stat(&at.to_string()) {
        if stat.parent <= 1 || exe.is_none() || proc::link(stat.parent, "exe") != exe {
            break;
        }
        at = stat.parent;
    }
    at
}
