//! Locks of files in words.

use vsrun_model::lock::{owner_process, CLOSE, DESCRIPTION, LAST, UNLOCK, WRITE};
use vsrun_model::{Kind, Op, Tid, World};

use crate::finding::{words, Word, Words};

fn bytes(first: u64, last: u64) -> String {
    match (first, last) {
        (0, LAST) => String::new(),
        (first, LAST) => format!("[{first}..]"),
        (first, last) => format!("[{first}..{last}]"),
    }
}

/// The function that a program calls for an operation on locks.
pub fn call_name(op: &Op) -> &'static str {
    match op.kind {
        Kind::FLOCK if op.mask & CLOSE != 0 => "close",
        Kind::FLOCK => "flock",
        _ => "fcntl",
    }
}

/// Its arguments; `file` is the file.
pub fn arguments(op: &Op, file: Words) -> Words {
    let what = match op.kind {
        _ if op.mask & CLOSE != 0 => return file,
        Kind::FLOCK if op.mask & UNLOCK != 0 => "LOCK_UN",
        Kind::FLOCK if op.mask & WRITE != 0 => "LOCK_EX",
        Kind::FLOCK => "LOCK_SH",
        Kind::RECORD_UNLOCK => "F_UNLCK",
        _ if op.mask & WRITE != 0 => "F_WRLCK",
        _ => "F_RDLCK",
    };
    let command = match op.kind {
        Kind::FLOCK => return words![file, ", ", what, if op.tries() { "|LOCK_NB" } else { "" }],
        Kind::RECORD_TEST => "GETLK",
        Kind::RECORD_LOCK if !op.tries() => "SETLKW",
        _ => "SETLK",
    };
    let prefix = if op.mask & DESCRIPTION != 0 { "F_OFD_" } else { "F_" };
    words![file, bytes(op.arg as u64, op.deadline), ", ", prefix, command, ", ", what]
}

/// What keeps `t` waiting: a line for each lock that is in the way.
pub fn in_the_way(world: &World, t: Tid) -> Vec<Words> {
    let op = &world.threads[t].pending;
    let file = Word::Object(op.obj);
    let line = |l: vsrun_model::lock::FileLock| {
        let how = if l.write { "writing" } else { "reading" };
        let owner = match owner_process(l.owner) {
            Some(p) => words!["process ", Word::Process(p)],
            None => words!["an open file description (locked by process ", Word::Process(l.by), ")"],
        };
        let place = if op.kind == Kind::FLOCK { String::new() } else { bytes(l.first, l.last) };
        words![file.clone(), place, ", held by ", owner, " for ", how]
    };
    world.locks_against(t, op).map(line).collect()
}
