//! What is kept of signals, their handlers, and of timers that send them.

use crate::base::{Address, Op, Pid, Tid, VARIANT};
use crate::state::Credentials;

/// Signals with a siginfo that are pending in a world at a time.
pub const MAX_SIGNALS: usize = 4096;
/// Handlers that are noted for reports, one inside the other.
pub const MAX_HANDLERS: usize = 4;
/// Bits of [`Op::signals`]: the number of the signal that would be delivered.
pub const NUMBER: u16 = 0x7f;
/// Bit of [`Op::signals`]: the thread may run the handler before the operation.
pub const BEFORE: u16 = 0x80;
/// Bit of [`Op::signals`]: a signal may interrupt the operation, which then fails with EINTR.
pub const INTERRUPTS: u16 = 0x100;
/// Bits of [`Op::signals`] that are alternatives each, in this order.
pub const ALTERNATIVES: u16 = BEFORE | INTERRUPTS | STOP_BEFORE | STOP_INTERRUPTS;
/// Bit of [`Op::signals`]: signals are pending for the process, which has other threads.
pub const SHARED_PENDING: u16 = 0x200;
/// Bit of [`Op::signals`]: a signal that the operation waits for is pending.
pub const AWAITED: u16 = 0x400;
/// Bit of [`Op::signals`]: the process is stopped, whatever the operation would do.
pub const STANDS_STILL: u16 = 0x800;
/// Bit of [`Op::signals`]: a stop has come while the thread was here, but before its call.
pub const STOP_BEFORE: u16 = 0x1000;
/// Bit of [`Op::signals`]: a stop has interrupted the operation, which then fails with EINTR.
pub const STOP_INTERRUPTS: u16 = 0x2000;
/// Bit of [`Op::signals`]: a signal is pending that came because nothing else could move.
pub const BY_CLOCK: u16 = 0x4000;

/// Bit of [`Op::signals`], with [`BEFORE`]: the process has been killed, and is over now.
pub const DIES: u16 = 0x8000;

/// The bit of a signal in a mask.
pub const fn bit(signal: i32) -> u64 {
    1 << ((signal - 1) & 63)
}

/// What a handler or a waiting thread is told about a signal.
#[derive(Clone, Copy, Hash, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct SigInfo {
    /// Number.
    pub signal: i32,
    /// si_code.
    pub code: i32,
    /// si_pid, or si_timerid.
    pub pid: i32,
    /// si_uid, or si_overrun.
    pub uid: u32,
    /// si_value, or si_status.
    pub value: u64,
}

/// A pending signal.
#[derive(Clone, Copy, Hash, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct QueuedSignal {
    /// The process it is for.
    pub pid: Pid,
    /// The thread it is for, or [`NONE`](crate::NONE): any of the process.
    pub tid: Tid,
    /// What it says.
    pub info: SigInfo,
    /// 1 + the timer that it comes from, 0: none.
    pub timer: u32,
    pub(crate) pad: u32,
}

/// Signals of one execution that may answer something.
pub const MAX_SENT: usize = 1024;

/// A signal that was sent to who has a handler for it.
#[derive(Clone, Copy, Hash, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct SignalSent {
    /// The transition that sent it: so many had been made, with it.
    pub at: u64,
    /// The process that it is for.
    pub pid: Pid,
    /// The thread that it is for, or [`NONE`](crate::NONE): any of the process.
    pub tid: Tid,
    /// A thread that had done nothing yet, and would have taken it rather than another one; or [`NONE`](crate::NONE).
    pub starting: Tid,
    pub(crate) pad: u32,
}

/// A handler that a thread is in, for reports.
#[derive(Clone, Copy, Hash, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Handling {
    /// The signal.
    pub signal: u32,
    /// The thread may have been woken already in the operation that was interrupted: see `objects::lost`.
    pub(crate) woken: bool,
    pub(crate) pad: [u8; 3],
    /// Stack pointer where it was delivered: above it, the handler has been left by a jump.
    pub sp: u64,
    /// The operation that it interrupted; of kind `Kind::NONE`: the code after one.
    pub op: Op,
    /// What that operation has in `Thread::holding`, `Thread::sending`, `Thread::staged`: those of the thread are for the
    /// operations of the handler.
    pub kept: [u32; 3],
    pub(crate) pad2: u32,
}

/// What becomes of a signal that is sent.
#[derive(Clone, Copy, Hash, PartialEq, Eq, Debug)]
pub enum Disposal {
    /// Nothing.
    Ignored,
    /// It is pending.
    Pending,
    /// The process ends.
    Kills,
    /// The process stops.
    Stops,
}

/// `Process::stop_news`: it has stopped, which its parent has not been told.
pub const STOPPED: u8 = 1;
/// `Process::stop_news`: it has continued, which its parent has not been told.
pub const CONTINUED: u8 = 2;
/// Timers of all processes of a world.
pub const MAX_TIMERS: usize = 1024;
/// Number of the interval timer (alarm, setitimer) of a process.
pub const ITIMER: i32 = -1;
/// Numbers of its interval timers of processor time.
pub const ITIMER_VIRTUAL: i32 = -2;
#[allow(missing_docs)]
pub const ITIMER_PROF: i32 = -3;

/// A timer.
#[derive(Clone, Copy, Hash, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Timer {
    /// The process it belongs to, or [`NONE`](crate::NONE): the place is free.
    pub pid: Pid,
    /// The thread that gets its signal, or [`NONE`](crate::NONE): the process.
    pub tid: Tid,
    /// Number in its process, or [`ITIMER`].
    pub id: i32,
    /// The signal, 0 for none.
    pub signal: i32,
    /// sigev_value.
    pub value: u64,
    /// Virtual time of expiry, ns; 0: not armed.
    pub deadline: u64,
    /// What the clock shows at least once it has expired.
    pub due: u64,
    /// Time to the next expiry, ns; 0: none.
    pub interval: u64,
    /// Expiries since the signal that is pending was sent.
    pub overrun: u32,
    /// Those of the signal that was taken last.
    pub last_overrun: u32,
    /// What is left of processor time, ns: of a timer that counts it. None is used up on the virtual clock, so it does not expire.
    pub left: u64,
    /// Absolute times are dates.
    pub realtime: bool,
    /// It counts processor time: its deadline is never set.
    pub processor: bool,
    pub(crate) pad: [u8; 2],
    /// Of those of its process: the later it was set, the higher.
    pub order: u32,
}

/// What is left to do about a signal that was sent, for whoever carries the processes.
#[derive(Clone, Copy, Hash, PartialEq, Eq, Debug)]
pub enum Sent {
    /// Nothing: it is pending, or was ignored.
    Done,
    /// There was no room for it.
    NoRoom,
    /// As many are pending as may be: it is not sent.
    Refused,
    /// The same: it does not say who has sent it.
    LosesData,
    /// The process is to stop, see `World::stop_and_tell`.
    Stops,
    /// The process is to end by it.
    Kills,
}

/// What a process does about a signal.
#[derive(Clone, Copy, Hash, PartialEq, Eq, Debug)]
pub enum Disposition {
    /// SIG_DFL.
    Default,
    /// SIG_IGN.
    Ignored,
    /// A handler runs.
    Handled,
}

/// What the operations of a handler overwrite and what it has interrupted still needs.
pub struct Kept {
    pub(crate) out: [i64; 3],
    pub(crate) taken: SigInfo,
    pub(crate) within: u64,
    pub(crate) masked: bool,
    pub(crate) address: Address,
    pub(crate) cred: Credentials,
}

/// Flag of [`Kind::SIGSUSPEND`](crate::Kind::SIGSUSPEND): pause, which sets no mask.
pub const PAUSE: u8 = VARIANT;
