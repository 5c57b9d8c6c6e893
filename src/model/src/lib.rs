//! The modelled objects of vsrun: one semantics for shim, supervisor, search and tests.
//!
//! For each kind of object there is `choices` (in how many ways may a pending operation go on now; 0 = it would
//! block), `perform` (what it does) and `dependent` (do two operations commute, conditional on recorded state, as in
//! Section 7 and Figure 3 of Stoller's paper). All state is plain data in index-linked tables: it lives in the
//! [`arena::Arena`] that the processes of a world share, and is copied by copying bytes. No allocation, no I/O.
//!
//! Zero bytes are a valid initial value of every type here; kinds and states are transparent integers, so that a
//! program that scribbles over the arena can produce nonsense but never undefined behaviour in the reader.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod address;
pub mod arena;
pub mod before;
pub mod calls;
pub mod carrier;
pub mod channel;
pub mod closing;
mod cond;
mod connect;
pub mod counter;
mod cycle;
pub mod depend;
pub mod epoll;
pub mod errno;
pub mod event;
pub mod fd;
pub mod fifo;
pub mod file;
pub mod files;
pub mod footprint;
mod futex;
mod imprint;
pub mod inject;
pub mod lock;
mod machine;
pub mod mqueue;
pub mod msg;
mod mutex;
pub mod object;
pub mod op;
mod pifutex;
mod process;
pub mod reach;
mod rwlock;
pub mod sched;
mod sem;
pub mod sharing;
pub mod signal;
mod simple;
pub mod socket;
mod sysv;
pub mod table;
mod thread;
pub mod timer;
mod transfer;
mod turn;
pub mod world;

pub use address::Address;
pub use arena::Arena;
pub use depend::{dependent, dependent_after, dependent_composed, may_be_coenabled, Act, Effects};
pub use imprint::imprint;
pub use object::{Key, ObjKind, Object, NONE};
pub use op::{Kind, Op};
pub use process::{ProcState, Process, WCONTINUED, WEXITED_NOT, WNOHANG, WNOWAIT, WUNTRACED};
pub use sched::Decision;
pub use sem::MAX_NAME;
pub use signal::{Disposal, SigInfo};
pub use sysv::{Ctl, SemBuf, IPC_NOWAIT, NOWAIT, SEM_UNDO, SEVERAL};
pub use thread::{Thread, ThreadState, Uid, CANCEL_DISABLED, CANCEL_REQUESTED, MAX_SEMBUF, POLLS};
pub use world::{Applied, End, Misuse, World};

/// Index of a thread in [`World::threads`].
pub type Tid = u32;
/// Index of a process in [`World::procs`].
pub type Pid = u32;
/// Index of an object in [`World::objects`].
pub type ObjId = u32;
