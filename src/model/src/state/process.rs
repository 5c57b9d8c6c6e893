//! What is kept of a process.

use crate::base::{numbers, Pid, Tid, SEVERAL, TRY, VARIANT};
use crate::state::{ProcessState, FD_PAGES};

numbers! {
    /// Where a process is in its life.
    ProcState(u8):
    FREE = 0, LIVE = 1,
    /// Over, its status not collected.
    ZOMBIE = 2,
    REAPED = 3,
}

/// One process. `own` is the shim's, the rest the model's.
#[derive(Clone, Copy, Hash, Debug)]
#[repr(C)]
pub struct Process {
    /// Parent, or [`NONE`](crate::NONE) when it has gone (the kernel's init would be the parent).
    pub parent: Pid,
    /// The thread of its parent whose child it is: the one that has made it, or, once that is over, the first that was left.
    pub forker: Tid,
    /// Its place among the children of that thread.
    pub place: u32,
    /// The thread that has made it is over.
    pub handed_on: bool,
    /// The process that created it, gone or not.
    pub creator: Pid,
    /// Where it is in its life.
    pub state: ProcState,
    /// SIGCHLD is ignored: its children leave no status.
    pub no_zombies: bool,
    /// In the name of which thread SIGCHLD is pending: the first to take it; [`NONE`](crate::NONE): the first thread.
    pub child_signal_for: Tid,
    /// The thread that was chosen last to take a signal which the first thread did not want.
    pub chosen: Tid,
    /// It, or one that it was forked from, has set its user ids beside other threads or processes.
    pub ids_set: bool,
    /// Its memory, natively, may be from after what another thread changed while it was forked, and the rest from before.
    pub copied_beside: bool,
    /// A process that need not have been allowed to has sent it a signal.
    pub signalled: bool,
    /// A child of it has ended so.
    pub lost_a_child: bool,
    /// A child created by vfork: its parent waits until it execs or ends.
    pub vfork_child: bool,
    /// It has had a second thread: fork and exec are visible from then on, whatever has become of the others, so that
    /// it does not depend on when those ended.
    pub threaded: bool,
    /// It has had record locks: its end may give some back.
    pub record_locks: bool,
    /// Somebody has had a descriptor of it (pidfd).
    pub has_pidfd: bool,
    /// It, or one that it was forked from before that, has locked open file descriptions: its end may close the last
    /// descriptor of one.
    pub description_locks: bool,
    /// Programs it has become by exec.
    pub execs: u8,
    /// Wait status once it is over.
    pub status: i32,
    /// The wait status with which it will be over, whatever comes now, or `UNDECIDED`.
    pub fate: i32,
    /// The process id that the program sees.
    pub vpid: i32,
    /// Process group, as the program sees it.
    pub pgid: i32,
    /// Session, as the program sees it.
    pub sid: i32,
    /// Threads that are not over.
    pub live_threads: u32,
    /// What the shim keeps of it.
    pub own: ProcessState,
    /// Its first thread.
    pub main_thread: Tid,
    /// First object in its private memory.
    pub objects: u32,
    /// Signals pending for the process.
    pub sigpending: u64,
    /// Signals that it handles; written by the process itself.
    pub handled: u64,
    /// Signals that it ignores; written by the process itself.
    pub ignored: u64,
    /// Signals that were sent to it and ignored, see [`World::note_ignored`](super::World).
    pub ignored_sent: u64,
    /// Those of them that its thread `hushed` may have blocked just then, had the steps come in another order.
    pub hushed_signals: u64,
    /// See `hushed_signals`; NONE: several.
    pub hushed: Tid,
    /// Signals that were not blocked in threads that waited in calls which fail when they are woken.
    pub failing_signals: u64,
    /// The only thread that did, or NONE.
    pub failing: Tid,
    /// Signals whose handlers were installed with SA_RESTART; written by the process itself.
    pub restarts: u64,
    /// Pending signals that were sent by a timer.
    pub by_clock: u64,
    /// Signals that it has noticed, by handlers or by waiting for them. One that it sends itself then is its way to say what ended
    /// it.
    pub noticed: u64,
    /// Of a start of the program: signals by which clients may end it, and that one has sent.
    pub told: u64,
    /// Signals that tell it to end, and have come from a client.
    pub asked: u64,
    /// It is to start the program again, and has not, or will not any more.
    pub unborn: bool,
    /// The signal that stopped it, 0: it is not stopped.
    pub stopped: u8,
    /// What its parent has not been told: [`crate::state::signal::STOPPED`], [`crate::state::signal::CONTINUED`] or 0.
    pub stop_news: u8,
    /// SA_NOCLDSTOP: it is not told when its children stop and continue.
    pub no_stop_news: bool,
    /// It becomes the parent of what its descendants leave behind.
    pub subreaper: bool,
    /// The thread that stopped it or made it continue.
    pub stopper: Tid,
    /// States in a row in which none of its threads was enabled (livelock).
    pub starved: u32,
    /// Descriptors of the model that it has.
    pub n_fds: u32,
    /// Where they are, in [`World::fd_pages`](crate::World).
    pub fds: [u32; FD_PAGES],
    /// Another process has stopped it by a signal, and nobody has seen yet that it has: it may not have (kill(2) does not wait for
    /// that). That it goes on is so at once (kernel/signal.c, prepare_signal).
    pub struck: bool,
    /// The fatal signal that another process has sent it, or 0; its highest bit is set once it takes effect.
    pub dying: u8,
    /// Threads that had been created when it was waited for; 0: it was not.
    pub waited: u32,
    /// The thread that waited for it, or [`NONE`](crate::NONE).
    pub waiter: Tid,
    /// The thread whose call ended it, and its other threads wherever they were, or [`NONE`](crate::NONE).
    pub ender: Tid,
}

/// [`Process::fate`]: nothing has ended the process so far.
pub const UNDECIDED: i32 = -1;
/// [`Process::dying`]: a thread of the process goes through its end.
pub const ENDS: u8 = 0x80;
/// WNOHANG of wait options.
pub const WNOHANG: u8 = TRY;
/// Leave the child waitable (WNOWAIT).
pub const WNOWAIT: u8 = VARIANT;
/// Children that have stopped, too (WUNTRACED, WSTOPPED).
pub const WUNTRACED: u8 = 32;
/// Children that have continued, too (WCONTINUED).
pub const WCONTINUED: u8 = 64;
/// Not those that are over (waitid without WEXITED).
pub const WEXITED_NOT: u8 = 128;
/// Only children of the thread itself (__WNOTHREAD).
pub const WNOTHREAD: u8 = SEVERAL;
/// Whom a wait is for, in the place of an id: children whose end is told by another signal than SIGCHLD (__WCLONE). None is modelled.
pub const CLONES: i64 = i64::MIN;
