//! What is kept of semaphores: names, sets, adjustments at the end of a process.

use crate::base::{numbers, ObjId, Pid, SEVERAL, VARIANT};

/// Length of a name that is kept (NAME_MAX).
pub const MAX_NAME: usize = 256;

/// A name in the kernel's name spaces: a named semaphore or a SysV key.
#[derive(Clone, Copy, Hash)]
#[repr(C)]
pub struct Name {
    /// The object, or [`NONE`] once unlinked.
    pub obj: u32,
    /// Bytes in use.
    pub len: u32,
    /// The name; for SysV keys the four bytes of the key.
    pub bytes: [u8; MAX_NAME],
}

/// SEM_UNDO of `sem_flg`.
pub const SEM_UNDO: i16 = 0x1000;
/// IPC_NOWAIT of `sem_flg`.
pub const IPC_NOWAIT: i16 = 0x800;
/// Largest value of a semaphore.
pub(crate) const SEMVMX: i32 = 32767;

/// struct sembuf.
#[derive(Clone, Copy, Hash, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SemBuf {
    /// Number of the semaphore in the set.
    pub num: u16,
    /// What to add; 0 waits for zero.
    pub op: i16,
    /// [`SEM_UNDO`], [`IPC_NOWAIT`].
    pub flags: i16,
}

/// One semaphore of a set.
#[derive(Clone, Copy, Hash, Debug, Default)]
#[repr(C)]
pub struct SemVal {
    /// Its value.
    pub value: i32,
    /// Virtual pid of the last process that operated on it.
    pub vpid: i32,
}

/// What is told of a set of semaphores, beside their values.
#[derive(Clone, Copy, Hash, Debug, Default)]
#[repr(C)]
pub struct SemSet {
    /// Its key, or IPC_PRIVATE.
    pub key: i32,
    /// Permission bits.
    pub mode: u32,
    /// When a semop last succeeded, and when it was made or its values or attributes were last set, virtual ns; 0: never.
    pub dates: [u64; 2],
}

/// What the end of a process gives back.
#[derive(Clone, Copy, Hash, Debug, Default)]
#[repr(C)]
pub struct Undo {
    /// The process.
    pub pid: Pid,
    /// The set.
    pub obj: ObjId,
    /// Which semaphore.
    pub num: u32,
    /// What is added at exit.
    pub adjust: i32,
}

numbers! {
    /// What a semctl does; `Op::arg` carries it in its low byte, the value of a SETVAL in the rest, and `Op::obj2` the
    /// number of the semaphore.
    Ctl(u8):
    /// Reads, or sets several values, which the caller does itself with `World::sysv_value`, `World::sysv_set`.
    ACCESS = 0,
    SET_VALUE = 1, REMOVE = 2,
}

/// Flag of a semop: one of its operations has [`IPC_NOWAIT`].
pub const NOWAIT: u8 = VARIANT;
/// Flag of a semop of several operations, see [`pack_semops`](crate::op::pack_semops).
pub const SEVERAL_OPS: u8 = SEVERAL;
