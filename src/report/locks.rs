//! Locks of files in words.

use vsrun_model::lock::{owner_process, CLOSE, DESCRIPTION, LAST, UNLOCK, WRITE};
use vsrun_model::{Kind, Op, Tid, World};

use super::views::Names;

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

/// Its arguments; `file` is the name of the file.
pub fn arguments(op: &Op, file: &str) -> String {
    let what = match op.kind {
        _ if op.mask & CLOSE != 0 => return file.to_string(),
        Kind::FLOCK if op.mask & UNLOCK != 0 => "LOCK_UN",
        Kind::FLOCK if op.mask & WRITE != 0 => "LOCK_EX",
        Kind::FLOCK => "LOCK_SH",
        Kind::RECORD_UNLOCK => "F_UNLCK",
        _ if op.mask & WRITE != 0 => "F_WRLCK",
        _ => "F_RDLCK",
    };
    let command = match op.kind {
        Kind::FLOCK => return format!("{file}, {what}{}", if op.tries() { "|LOCK_NB" } else { "" }),
        Kind::RECORD_TEST => "GETLK",
        Kind::RECORD_LOCK if !op.tries() => "SETLKW",
        _ => "SETLK",
    };
    let prefix = if op.mask & DESCRIPTION != 0 { "F_OFD_" } else { "F_" };
    format!("{file}{}, {prefix}{command}, {what}", bytes(op.arg as u64, op.deadline))
}

/// What keeps `t` waiting: a line for each lock that is in the way.
pub fn in_the_way(world: &World, t: Tid, names: &Names) -> Vec<String> {
    let op = &world.threads[t].pending;
    let file = (names.object)(op.obj);
    let taker = |p| format!("an open file description (locked by process {})", (names.process)(p));
    let line = |l: vsrun_model::lock::FileLock| {
        let how = if l.write { "writing" } else { "reading" };
        let owner = owner_process(l.owner).map_or_else(|| taker(l.by), |p| format!("process {}", (names.process)(p)));
        match op.kind {
            Kind::FLOCK => format!("{file}, held by {owner} for {how}"),
            _ => format!("{file}{}, held by {owner} for {how}", bytes(l.first, l.last)),
        }
    };
    world.locks_against(t, op).map(line).collect()
}
