//! Uses of ordinary files that are visible operations: their contents, and their names. When one is, `sched::file` says; what a file
//! holds and which names there are is in the file system.

use super::row::*;
use crate::base::calls;
use crate::state::{LOOKS_FOR, PLACED};

kinds! {
    /// Read or look at the contents of file `obj`: `arg` bytes; `mask`: through which open file description, see
    /// [`crate::file`].
    FILE_READ = 120, "file_read" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: DONE,
        records: READS, cells: |act, _, cells| cells.touch_all(act, How::File { through: Some(act.op.mask) }),
        follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Unknown,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(ON_FILE, file_words),
    }
    /// Change the contents of file `obj`.
    FILE_WRITE = 121, "file_write" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: DONE,
        records: USES, cells: |act, _, cells| cells.touch_all(act, CHANGES), follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Unknown,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(ON_FILE, file_words),
    }
    /// Change the contents of file `obj` to those of file `obj2`.
    FILE_COPY = 122, "file_copy" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: DONE,
        records: USES, cells: |act, _, cells| {
            cells.touch_object(act.op.obj, CHANGES);
            // Its place may be that of a description.
            cells.touch_object(act.op.obj2, if act.op.obj2 == act.op.obj { CHANGES } else { How::File { through: Some(0) } });
        }, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Unknown,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(ON_FILE, file_words),
    }
    /// Look names of files up: `obj` stands for all of them, `arg` is a set of them; `obj2` is a file that is looked at too.
    /// [`LOOKS_FOR`], here and below: it looks for a process or thread by its number.
    PATH_LOOK = 123, "path_look" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: DONE,
        records: USES, cells: |act, _, cells| names(act, true, How::File { through: Some(PLACED) }, cells),
        follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Unknown,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(BY_PATH, path_words),
    }
    /// Make, remove or exchange names of files; the contents of `obj2` change too.
    PATH_CHANGE = 124, "path_change" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: DONE,
        records: USES, cells: |act, _, cells| names(act, false, CHANGES, cells), follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Unknown,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(BY_PATH, path_words),
    }
    /// Look names up and change the contents of file `obj2` (truncate, open with O_TRUNC).
    PATH_TRUNCATE = 125, "path_truncate" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: DONE,
        records: USES, cells: |act, _, cells| names(act, true, CHANGES, cells), follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Unknown,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(BY_PATH, path_words),
    }
    /// Move a process to another group, while somebody waits for a group or sends it signals.
    GROUP_CHANGE = 126, "group_change" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: DONE,
        records: USES, cells: WIDE, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Unknown,
        alone: Alone::Visible, idle: Idle::BUSY, tells: YES, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(BY_PATH, path_words),
    }
}

/// The system call that the program made, if it is known: the shim leaves its number in the operation.
fn call_of(op: &Op, stat: &'static str) -> &'static str {
    match calls::name((op.deadline & 0xffff) as i64) {
        Some("pread64") => "pread",
        Some("pwrite64") => "pwrite",
        Some("newfstatat") => stat,
        Some(name) if op.deadline != 0 => name,
        _ => op.kind.name(),
    }
}

const ON_FILE: Call = Call::By(|op| call_of(op, "fstat"));
const BY_PATH: Call = Call::By(|op| call_of(op, "stat"));

fn file_words(op: &Op, _: Option<&Thread>, words: &mut dyn Words) {
    let from = if op.obj2 == NONE { "" } else { ", from " };
    say![words, op.deadline >> 16 & 0xffff, " = ", Thing::Object(op.obj), from, Thing::Object(op.obj2)];
    if !matches!(op.call(), "fstat" | "statx" | "lseek") {
        say![words, ", ", op.arg, " bytes"];
    }
}

fn path_words(op: &Op, _: Option<&Thread>, words: &mut dyn Words) {
    match op.mask {
        NONE if op.has(LOOKS_FOR) => say![words, "a process or thread by its number"],
        NONE => say![words, Thing::Object(op.obj)],
        file => say![words, Thing::Object(file)],
    }
}

/// Nothing; what is there for reports only is left out where an operation is named for all executions.
const USES: Records = Records { renamed: |act, _| (act.op.mask, act.op.deadline) = (0, 0), ..Records::NOTHING };
/// The same; through which description is more than a name.
const READS: Records = Records { renamed: |act, _| act.op.deadline = 0, ..Records::NOTHING };
const CHANGES: How = How::File { through: None };

fn names(act: &Act, looks: bool, file: How, cells: &mut Footprint) {
    cells.touch_object(act.op.obj, How::Names { set: act.op.arg, looks });
    cells.touch_object(act.op.obj2, file);
    if act.op.has(LOOKS_FOR) {
        cells.touch(Cell::Ids, How::Looks);
    }
}

impl World {
    /// Another thread stands at a use of a file by a place, or may do so, that `op`, which `t` performs, uses too.
    pub fn is_used_beside(&self, t: Tid, op: &Op) -> bool {
        let uses = |other: &Op| {
            let shares = |obj: ObjId| obj != NONE && (obj == op.obj || obj == op.obj2);
            let moves = match other.kind {
                Kind::FILE_READ => other.mask != PLACED,
                kind => [Kind::FILE_WRITE, Kind::FILE_COPY].contains(&kind),
            };
            moves && (shares(other.obj) || shares(other.obj2))
        };
        self.live.as_slice().iter().any(|&u| u != t && uses(&self.threads[u].pending))
    }

    /// Another thread stands at a use of a file that `op`, which `t` performs, uses too, and one of the two changes what it holds: if this is
    /// a long one, the other may see a part of it.
    pub fn is_seen_in_part(&self, t: Tid, op: &Op) -> bool {
        let changes = |kind: Kind| [Kind::FILE_WRITE, Kind::FILE_COPY, Kind::PATH_TRUNCATE].contains(&kind);
        let uses = |other: &Op| {
            let shares = |obj: ObjId| obj != NONE && (obj == op.obj || obj == op.obj2);
            (other.kind == Kind::FILE_READ || changes(other.kind)) && (shares(other.obj) || shares(other.obj2))
        };
        let beside = |u: Tid| u != t && (changes(op.kind) || changes(self.threads[u].pending.kind));
        self.live.as_slice().iter().any(|&u| beside(u) && uses(&self.threads[u].pending))
    }
}
