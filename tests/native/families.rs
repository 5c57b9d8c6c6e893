//! The table of families.

use super::Family;

mod channels;
mod files;
mod lasting;
mod processes;
mod sync;

/// All families. A family's place is in the seeds of its programs: new ones go before the last.
pub const FAMILIES: &[Family<'static>] = &[
    sync::LOCKS,
    sync::ONCE,
    sync::TIMED,
    sync::THREADS,
    processes::PIDFDS,
    processes::PROCESSES,
    processes::SIGNALS,
    processes::CHILDREN,
    channels::PIPES,
    channels::TEES,
    channels::DESCRIPTORS,
    channels::EVENTS,
    channels::SOCKETS,
    channels::EPOLL,
    files::FILES,
    channels::SYSV,
    channels::MESSAGES,
    channels::NOTICES,
    sync::STREAMS,
    files::STATE,
    files::KEPT,
    processes::GROUPS,
    processes::INTERRUPTS,
    processes::EXEC,
    channels::PASSING,
    sync::CANCEL,
    processes::CLOCK,
    files::NAMELESS,
    sync::UNORDERED,
    lasting::LEAVING,
    lasting::COPYING,
    lasting::STOPPING,
    lasting::SHARED_MEMORY,
    lasting::FIFOS,
    sync::CELLS,
    Family { name: "mixed", strands: "", most: 2, before: &[], items: &[] },
];
