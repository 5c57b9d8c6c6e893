//! What model programs are made of.

use super::{contents, events, numbers, sockets};

/// How an operation waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Block,
    Try,
    /// Gives up at the n-th millisecond of the run.
    Timed(u8),
    /// A cancellation point.
    Cancel,
}

/// One instruction of a thread. Objects are numbers; see [`Machine::make_objects`] for their kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ins {
    Lock(u32, How),
    /// Unlocks if the thread owns the mutex.
    Unlock(u32),
    /// Unlocks in any case.
    RawUnlock(u32),
    /// Logs and increments the variable that mutex n protects, if the thread owns it.
    Count(u32),
    /// Fails if the variable that mutex n protects has this value, if the thread owns the mutex.
    AssertNot(u32, i64),
    CondWait(u32, u32, How),
    /// Waits on the condition variable, again and again while the variable that the mutex protects has this value.
    WaitWhile(u32, u32, i64),
    /// Adds to the variable that mutex n protects, and logs what it is then.
    Add(u32, i64),
    Signal(u32),
    Broadcast(u32),
    SemWait(u32, How),
    Post(u32),
    SemGet(u32),
    Read(u32, How),
    Write(u32, How),
    /// Unlocks if the thread holds the lock.
    RwUnlock(u32),
    Spin(u32, How),
    SpinUnlock(u32),
    Barrier(u32),
    /// Takes the lock of a stream, by name (flockfile) or as printf does, whose order nobody can tell.
    Stream(u32, bool, How),
    /// Gives it back if the thread has it; by name.
    StreamUnlock(u32, bool),
    /// Logs and increments the variable that stream n protects, if the thread holds the stream.
    CountStream(u32),
    /// Draws the next number of a sequence that libc keeps for all threads.
    Draw,
    /// (number, amount), undo, how: Try is IPC_NOWAIT.
    Sysv(Vec<(u16, i16)>, bool, How),
    /// Queue, type, bytes.
    MsgSend(u32, i64, u32, How),
    /// Queue, type asked for, bytes of the buffer, but not that type.
    MsgReceive(u32, i64, u32, bool, How),
    /// Bytes of a file by the process, or by an open file description: for writing, waits for it.
    Record(File, bool, How),
    RecordUnlock(File),
    RecordTest(File, bool),
    /// File, description, for writing; None: unlock.
    Flock(u32, u32, Option<bool>, How),
    /// Queue; 0: look, 2: remove, more: the size that it gets.
    MsgControl(u32, i64),
    SysvSet(u32, i32),
    /// Futex, whether memory holds the expected value.
    FutexWait(u32, bool, How),
    /// The same of two at once.
    FutexWaitv([u32; 2], [bool; 2], How),
    FutexWake(u32, u32),
    /// From, to, how many to wake, how many to move.
    FutexRequeue(u32, u32, u32, u32),
    /// This many alternatives more than one.
    Toss(u32),
    /// Skips the next instruction if the last logged result has this value.
    SkipIf(i64),
    /// Enters a once control; the next instruction is its initializer, skipped by those who need not run it.
    Once(u32),
    OnceEnd(u32),
    Create(usize),
    Join(usize, How),
    Fork(usize),
    /// Waits for any child, or the process of that thread.
    Wait(Option<usize>, How),
    Yield,
    Sleep(u8),
    Cancel(usize),
    /// Ends the process, other threads included.
    Exit,
    /// An operation on a descriptor.
    Fd(events::Fd, events::On, How),
    /// Something with a socket.
    Sock(sockets::Sock, sockets::Does, How),
    /// Uses the contents or the name of a file.
    Use(contents::Uses),
    /// Uses numbers of descriptors.
    Num(numbers::Num),
    /// A signal for the process of that thread.
    Kill(usize, i32),
    /// A signal for that thread, which its creator's process knows.
    Tkill(usize, i32),
    /// Blocks a signal (true) or unblocks it.
    Mask(i32, bool),
    /// Waits for a signal with this mask; `None`: with the one in force.
    Suspend(Option<u64>),
    /// Takes a signal of the set.
    Sigwait(u64, How),
    /// Sends SIGALRM to the own process at the n-th millisecond of the run.
    Alarm(u8),
    /// Logs this number.
    Log(i64),
    /// Reads a variable that nothing protects, and logs it.
    Load(u32),
    /// Writes it.
    Store(u32, i64),
    /// Adds one to it in one step, and logs what it was.
    Update(u32),
    /// Write it if it is the second, and tell what was there, in one step.
    Swap(u32, i64, i64),
    /// Wait until one of these variables is not what this thread saw there last; with `true`, then also an update of the first.
    Await(u32, Option<u32>, bool),
}

/// A part of a file, seen by an owner of locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File {
    pub file: u32,
    pub first: i64,
    pub last: u64,
    /// `None`: the process.
    pub description: Option<u32>,
}

/// A program: thread 0 is the first, the others are started by `Create` or `Fork`, each at most once.
pub type Program = Vec<Vec<Ins>>;
