//! The table of kinds: the rows of all families. A number that is no kind has the row "unknown".

use super::row::*;
use super::{
    channel, cond, connect, contents, control, descriptor, epoll, fd, fifo, futex, lock, memory, mqueue, msg, mutex,
    pifutex, process, rwlock, sem, signal, simple, start, stream, sysv, thread, timer, waitv,
};
use crate::base::Kind;

const FAMILIES: &[&[Row]] = &[
    control::ROWS,
    thread::ROWS,
    process::ROWS,
    mutex::ROWS,
    cond::ROWS,
    simple::ROWS,
    stream::ROWS,
    rwlock::ROWS,
    sem::ROWS,
    sysv::ROWS,
    futex::ROWS,
    waitv::ROWS,
    pifutex::ROWS,
    lock::ROWS,
    msg::ROWS,
    mqueue::ROWS,
    contents::ROWS,
    memory::ROWS,
    descriptor::ROWS,
    fd::ROWS,
    channel::ROWS,
    connect::ROWS,
    epoll::ROWS,
    fifo::ROWS,
    signal::ROWS,
    timer::ROWS,
    start::ROWS,
];

/// The row of a number that is no kind: nothing that can go on.
const INVALID: Row = Row {
    kind: Kind(u8::MAX),
    name: "unknown",
    operands: Operands::Nothing,
    enabled: Enabled::Ways(|_, _, _| 0),
    perform: DONE,
    records: Records::NOTHING,
    cells: WIDE,
    follows: NOBODY,
    blocks: MAY_BLOCK,
    role: Role::None,
    channels: Channels::None,
    signals: Signals::NEVER,
    polls: Polls::Errors,
    alone: Alone::Visible,
    idle: Idle::BUSY,
    tells: YES,
    memory: Memory::Nothing,
    unproven: PROVEN,
    shown: Shown::passes(Call::Row, OBJECT),
};

/// By number. Two kinds of one number do not compile.
static TABLE: [&Row; 256] = {
    let mut table = [&INVALID; 256];
    let mut family = 0;
    while family < FAMILIES.len() {
        let mut i = 0;
        while i < FAMILIES[family].len() {
            let row = &FAMILIES[family][i];
            assert!(table[row.kind.0 as usize].kind.0 == INVALID.kind.0, "two kinds have one number");
            let blocks = matches!(row.enabled, Enabled::Blocks { .. });
            assert!(!blocks || row.shown.waits.is_some(), "it blocks, and does not say what it waits for");
            table[row.kind.0 as usize] = row;
            i += 1;
        }
        family += 1;
    }
    table
};

impl Kind {
    /// It is a use of memory that threads share, by an instruction or for a call.
    #[inline]
    pub fn uses_memory(self) -> bool {
        matches!(self, Kind::MEM_READ | Kind::MEM_WRITE | Kind::MEM_WAIT)
    }

    /// All that is to be known of it.
    #[inline]
    pub fn row(self) -> &'static Row {
        TABLE[self.0 as usize]
    }

    /// The name used in reports and scenario files.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The kind of that name, as [`Kind::name`] gives it.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::all().find(|kind| kind.name() == name)
    }

    /// All kinds.
    pub fn all() -> impl Iterator<Item = Kind> {
        FAMILIES.iter().copied().flatten().map(|row| row.kind)
    }
}
