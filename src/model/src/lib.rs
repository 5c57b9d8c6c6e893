//! The modelled objects of vsrun: one semantics for shim, supervisor, search and tests.
//!
//! The crate is a house of floors; a file imports floors below its own only (`FLOORS`, checked by `tests/house/imports.rs`):
//! `base` (numbers, tables, operations), `state` (plain data of everything that is modelled), `objects` (what operations do, a file
//! for each family), `relation` (which operations depend on each other), `world` (publish and perform), `arena` (the memory that the
//! processes of a world share), `sched` (the scheduler step). Outside it is known by subjects: [`fd`] has the data of descriptors and
//! what is done with them.
//!
//! All state is plain data in index-linked tables: it lives in the [`arena::Arena`], and is copied by copying bytes. No
//! allocation, no I/O. Zero bytes are a valid initial value of every type here; kinds and states are transparent integers, so
//! that a program that scribbles over the arena can produce nonsense but never undefined behaviour in the reader.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

/// The panic handler of a program without std. Where a build of the whole workspace makes the shim share this crate with the
/// tool, whose serde brings std with it, the handler is std's, and a second one would be an error.
#[macro_export]
#[cfg(not(feature = "serde"))]
macro_rules! panic_handler {
    ($handler:path) => {
        #[panic_handler]
        fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
            $handler(info)
        }
    };
}

/// Nothing: see the other one.
#[macro_export]
#[cfg(feature = "serde")]
macro_rules! panic_handler {
    ($handler:path) => {
        const _: fn(&core::panic::PanicInfo<'_>) -> ! = $handler;
    };
}

pub mod arena;
mod base;
mod objects;
mod relation;
mod sched;
mod state;
pub mod world;

/// A module for each subject, with its data and what is done with it.
macro_rules! subjects {
    ($($(#[$doc:meta])* $name:ident: $($from:path),+;)*) => { $($(#[$doc])* pub mod $name { $(pub use $from::*;)+ })* };
}

subjects! {
    /// What searches that draw lots aim at.
    aims: crate::base::aims;
    /// What executions by lot have covered.
    orders: crate::state::orders;
    /// Watched memory.
    watch: crate::base::watch;
    /// Functions that return a choice.
    toss: crate::base::toss;
    /// Going back to the first choice: what vsrun and the process say to each other.
    back: crate::base::back, crate::sched::prepare;
    /// Addresses of sockets.
    address: crate::base::address;
    /// Could an operation have come earlier?
    before: crate::relation::before, crate::objects::question;
    /// The table of system calls.
    calls: crate::base::calls;
    /// What memory they use.
    buffers: crate::base::buffers;
    /// What memory functions of libc use.
    library: crate::base::library;
    /// What the shim keeps of threads and processes.
    carrier: crate::state::carrier;
    /// What is written at one end and read at the other.
    channel: crate::state::channel, crate::state::recorded;
    /// Signals that answer what their receivers have done.
    answer: crate::objects::answer;
    /// Further root processes, and what is left when they are done.
    closing: crate::state::closing, crate::sched::closing;
    /// The instructions that read the time-stamp counter.
    counter: crate::base::counter;
    /// The processor that programs see.
    cpu: crate::base::cpu;
    /// Operations as they are recorded, and which of them depend on each other.
    depend: crate::state::act, crate::state::recorded, crate::relation::depend;
    /// What operations are to stores that are under way.
    drains: crate::relation::drains;
    /// epoll.
    epoll: crate::state::epoll;
    /// Error numbers.
    errno: crate::base::errno;
    /// Counters, timers, signals as descriptors.
    event: crate::objects::event;
    /// Descriptors.
    fd: crate::state::fd, crate::sched::descriptor;
    /// Ordinary files as communication objects.
    file: crate::state::files, crate::sched::file;
    /// What an execution has changed of the file system.
    files: crate::state::files;
    /// Where to look for what an operation depends on.
    footprint: crate::relation::index, crate::state::footprint;
    /// Faults of the environment.
    inject: crate::base::inject;
    /// The row of each kind of operation.
    kind: crate::objects::row;
    /// Locks of files.
    lock: crate::state::lock, crate::state::recorded;
    /// Waits for several futexes at once.
    futex: crate::objects::waitv;
    /// Memory that threads use without an order.
    memory: crate::objects::memory;
    /// POSIX message queues.
    mqueue: crate::state::queue;
    /// Messages and System V message queues.
    msg: crate::state::queue, crate::state::recorded;
    /// Synchronization and communication objects.
    object: crate::base::ids, crate::state::object;
    /// Visible operations.
    op: crate::base::op, crate::objects::sysv;
    /// What operations on descriptors concern beyond the objects that they name.
    reach: crate::objects::reach;
    /// What a step rests on of those before it.
    observe: crate::relation::observe;
    /// What counts as progress.
    progress: crate::state::progress;
    /// Objects that one thread alone uses.
    sharing: crate::state::sharing, crate::sched::sharing;
    /// Signals.
    signal: crate::state::signal, crate::objects::signal;
    /// Sockets.
    socket: crate::state::socket, crate::objects::socket;
    /// Stdio streams, and what else libc keeps for all threads.
    stream: crate::objects::stream;
    /// Tables of plain records.
    table: crate::base::table;
    /// Timers that send signals.
    timer: crate::state::signal;
    /// States that are told apart.
    states: crate::state::visited, crate::state::pieces, crate::base::mixer;
    /// What is said of things.
    words: crate::base::words;
}

pub use arena::Arena;
pub use base::address::Address;
pub use base::ids::{ObjId, Pid, Tid, Uid, NONE};
pub use base::op::{Kind, Op};
pub use relation::depend::{dependent, dependent_after, dependent_composed, may_be_coenabled};
pub use relation::index::imprint;
pub use sched::step::Decision;
pub use state::act::{Act, Effects};
pub use state::object::{Key, ObjKind, Object};
pub use state::process::{ProcState, Process, CLONES, WCONTINUED, WEXITED_NOT, WNOHANG, WNOTHREAD, WNOWAIT, WUNTRACED};
pub use state::sem::{Ctl, SemBuf, IPC_NOWAIT, MAX_NAME, NOWAIT, SEM_UNDO, SEVERAL_OPS};
pub use state::signal::{Disposal, SigInfo};
pub use state::thread::{
    AwaitedState, Thread, ThreadState, CANCEL_ANYWHERE, CANCEL_DISABLED, CANCEL_REQUESTED, MAX_SEMBUF, POLLS,
};
pub use state::world::{Applied, End, Misuse, World, MAX_THREADS};
