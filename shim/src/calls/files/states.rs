//! Kinds of state that threads and processes share beside files, and what a call uses of it. Which call uses what is in `cells`.

use vsrun_model::fd::DescId;
use vsrun_model::file::{path_bit, Use};
use vsrun_model::object::{NONE, SHARED};
use vsrun_model::{Key, ObjId, ObjKind, Pid, Tid};

use super::descriptors::description;
use super::path::Path;
use super::room::with_stack;
use super::uses::{call_it, first_use, unexplored};
use crate::gate::{self, arena, is_threaded, local, machine, model, world};
use crate::sys::{decimal, raw};

/// A kind of state.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Cell {
    Directory = 1,
    Umask,
    /// The same, as far as names of message queues are made with it.
    QueueMask,
    Actions,
    Ids,
    Dumpable,
    Subreaper,
    /// For which barriers of memory it has registered.
    Barriers,
    Group,
    /// Which processes are in a group.
    Members,
    /// Whether it has replaced its program.
    Program,
    Nice,
    Policy,
    Affinity,
    DiskPriority,
    Name,
    Limit,
    PipeSize,
    Options,
    Flags,
    Owner,
    Seals,
    /// How many names a file has.
    Links,
    /// Whether a file is executed, or open for writing: the one bars the other (ETXTBSY).
    Busy,
    Segment,
    SegmentKeys,
    SetIds,
}

impl Cell {
    fn words(self) -> &'static [u8] {
        match self {
            Cell::Directory => b"directory of",
            Cell::Umask | Cell::QueueMask => b"umask of",
            Cell::Actions => b"signal action of",
            Cell::Ids => b"user and group ids of",
            Cell::Dumpable => b"dumpable flag of",
            Cell::Subreaper => b"subreaper flag of",
            Cell::Barriers => b"memory barriers of",
            Cell::Group => b"group of",
            Cell::Members => b"members of groups",
            Cell::Program => b"program of",
            Cell::Nice => b"nice value of",
            Cell::Policy => b"policy of",
            Cell::Affinity => b"processors of",
            Cell::DiskPriority => b"disk priority of",
            Cell::Name => b"name of",
            Cell::Limit => b"limits of",
            Cell::PipeSize => b"size of pipe",
            Cell::Options => b"options of socket",
            Cell::Flags => b"flags of description",
            Cell::Owner => b"owner of description",
            Cell::Seals => b"seals",
            Cell::Links => b"links of file",
            Cell::Busy => b"use as a program",
            Cell::Segment => b"segment",
            Cell::SegmentKeys => b"ids of segments",
            Cell::SetIds => b"ids of sets",
        }
    }
}

/// The visible cells that a call uses, as a set of names.
#[derive(Clone, Copy)]
pub struct Uses {
    /// Their bits.
    pub set: i64,
    /// It writes one of them.
    pub changes: bool,
    /// The object that it is shown by.
    pub shown: ObjId,
    /// It concerns the names of message queues, sets and the like too.
    pub names: bool,
    /// It moves a process to another group while somebody waits for one, or sends signals to one.
    pub moves: bool,
    /// It asks for one of them, and for nothing else.
    pub asks: bool,
    /// It is about a process or thread that may be gone: whether it is there is asked too.
    pub looks_for: bool,
}

impl Uses {
    pub const NOTHING: Uses =
        Uses { set: 0, changes: false, shown: NONE, names: false, moves: false, asks: false, looks_for: false };

    /// `id` is what the program knows it by.
    pub fn named(&mut self, cell: Cell, name: u64, id: i64, what: Use) {
        self.shares(cell, name, id, what);
    }

    /// Like [`Uses::named`]; true if that is an operation. The set of names does not tell: another one may have the same bit.
    fn shares(&mut self, cell: Cell, name: u64, id: i64, what: Use) -> bool {
        if !machine().use_state(local().cur, name, what) {
            return false;
        }
        self.asks = true;
        self.set |= path_bit(name);
        self.changes |= what == Use::Write;
        self.names |= cell == Cell::QueueMask && what == Use::Write;
        self.moves |= cell == Cell::Members && what == Use::Write;
        if self.shown == NONE {
            self.shown = shown(cell, name, id);
        }
        true
    }

    /// Reads it, and writes it.
    pub fn replaces(&mut self, cell: Cell, name: u64, id: i64) {
        self.named(cell, name, id, Use::Read);
        self.named(cell, name, id, Use::Write);
    }

    /// The process or thread with that number, of which something is set or asked; 0 is the own one.
    pub fn look_for(&mut self, id: i32, sets: bool) {
        let (w, cur, own) = (world(), local().cur, local().pid);
        // Numbers are not given twice.
        let Some(t) = w.thread_named(id).filter(|_| id > 0) else { return };
        let p = w.threads[t].pid;
        let is_first = w.procs[p].main_thread == t;
        // A child that is left to be waited for is there until its parent waits.
        let waits = w.procs[p].creator == own && !w.procs[own].no_zombies && is_first && !is_threaded();
        if t == cur || is_first && p == own || waits {
            return;
        }
        machine().expose_by_id(t);
        self.looks_for = true;
        // Also where it is not there any more: what kind of operation it is does not rest on that.
        self.changes |= sets;
    }

    /// Whether there is a group with that number, which is there as long as one of its processes is: those of this process, and of `moved`,
    /// are for certain.
    pub fn look_for_group(&mut self, pgid: i32, moved: Pid) {
        let procs = &world().procs;
        if procs[local().pid].pgid == pgid || procs[moved].pgid == pgid {
            return;
        }
        for process in procs.as_slice().iter().filter(|process| process.pgid == pgid) {
            self.look_for(process.vpid, false);
        }
    }

    /// Of the kernel's description that number `fd` stands for. One that stands for nothing has no state: it is not what several share.
    pub fn description(&mut self, cell: Cell, fd: u64, what: Use) {
        let name = description(fd as i32);
        if name != 0 || raw!(libc::SYS_fcntl, fd, libc::F_GETFD) >= 0 {
            self.global(cell, name.into(), what);
        }
    }

    /// Of process `p`.
    pub fn process(&mut self, cell: Cell, p: Pid, what: Use) {
        let id = world().procs.get(p).map_or(0, |process| process.vpid);
        self.named(cell, machine().cell_of_process(cell as u64, p), id.into(), what);
    }

    /// Of this process, which has several threads: nobody else can change it.
    pub fn own(&mut self, cell: Cell, what: Use) {
        if is_threaded() {
            self.process(cell, local().pid, what);
        }
    }

    /// What is done is permitted to some users only.
    pub fn permitted(&mut self) {
        if is_threaded() {
            goes_by(Cell::Ids, self, |uses| uses.own(Cell::Ids, Use::Read));
        }
    }

    /// Of thread `t`.
    pub fn thread(&mut self, cell: Cell, t: Tid, what: Use) {
        if what == Use::Write && t != local().cur {
            machine().note_others_change();
        }
        self.named(cell, machine().cell_of_thread(cell as u64, t), world().threads[t].vtid.into(), what);
    }

    pub fn channel(&mut self, cell: Cell, desc: DescId, fd: u64, what: Use) {
        self.named(cell, machine().cell_of_channel(cell as u64, desc), gate::shown(fd as i32).into(), what);
    }

    /// Of which there is one for all, or that has a number of its own.
    pub fn global(&mut self, cell: Cell, which: u64, what: Use) {
        self.named(cell, machine().cell_of(cell as u64, which), which as i64, what);
    }

    /// How many names a file has.
    pub fn links(&mut self, id: (u64, u64), path: impl Fn() -> Result<Path, i64>, what: Use) -> bool {
        // By its path at first, which is the same in every execution.
        let row = arena().used_file(id).or_else(|| with_stack(|| first_use(id, path)));
        let number = row.map_or(id.1, |row| arena().files.used_files[row].number);
        self.shares(Cell::Links, machine().cell_of(Cell::Links as u64, number), 0, what)
    }
}

/// A file is executed (`Use::Read`), or opened for writing, or closed then. It is executed until its process ends, and what a process that
/// is made has open for writing it has until it ends: that is no operation, so not all orders are explored where others can tell.
pub fn uses_program(id: (u64, u64), path: impl Fn() -> Result<Path, i64>, what: Use, lasts: bool, uses: &mut Uses) {
    let row = arena().used_file(id).or_else(|| with_stack(|| first_use(id, &path)));
    let number = row.map_or(id.1, |row| arena().files.used_files[row].number);
    let name = machine().cell_of(Cell::Busy as u64, number);
    let mut own = Uses::NOTHING;
    own.named(Cell::Busy, name, 0, what);
    if lasts {
        machine().keep_state(local().cur, name, what);
    }
    if own.set != 0 {
        unexplored(path);
        uses.named(Cell::Busy, name, 0, what);
    }
}

/// The object by which a cell is shown in reports.
fn shown(cell: Cell, name: u64, id: i64) -> ObjId {
    let key = Key::new(SHARED, ObjKind::PATHS, name | 1);
    if let Some(known) = world().find(key) {
        return known;
    }
    let Some(obj) = model().object_new(key, 0) else { return NONE };
    let mut words = [0u8; 48];
    let mut len = 0;
    let digits = decimal(id);
    let alone =
        matches!(cell, Cell::Members | Cell::Seals | Cell::SegmentKeys | Cell::SetIds | Cell::Links | Cell::Busy);
    let parts: [&[u8]; 3] = [cell.words(), if alone { b"" } else { b" " }, if alone { b"" } else { &digits }];
    for part in parts {
        words[len..len + part.len()].copy_from_slice(part);
        len += part.len();
    }
    call_it(obj, &words[..len]);
    obj
}

/// The call goes by state of that kind: what it does depends on who changed it before.
pub fn goes_by(cell: Cell, uses: &mut Uses, name: impl FnOnce(&mut Uses)) {
    if machine().decides(cell as u64) {
        let asks = uses.asks;
        name(uses);
        uses.asks = asks;
    }
}

/// State of that kind is changed: from the next execution on it is known whose calls go by it.
pub fn decides(cell: Cell) {
    if !machine().decides(cell as u64) {
        machine().note_decides(cell as u64);
    }
}
