//! What is kept of locks of files, and how an operation on them is written down.

use crate::base::{ObjId, Pid, VARIANT};

/// Last byte of the largest file.
pub const LAST: u64 = i64::MAX as u64;
/// In [`Op::mask`](crate::Op): for writing (exclusive).
pub const WRITE: u32 = 1;
/// In [`Op::mask`](crate::Op) of a flock: gives the lock back.
pub const UNLOCK: u32 = 2;
/// In [`Op::mask`](crate::Op) of a flock that stands for the close of a descriptor: whether it was the last one is seen by the caller, who
/// then calls `World::drop_description_locks`.
pub const CLOSE: u32 = 8;
/// In [`Op::mask`](crate::Op): the owner is the open file description with the name in the bits above.
pub const DESCRIPTION: u32 = 4;
pub(crate) const NAME_SHIFT: u32 = 8;
/// Bits of the name of a description.
pub const NAME_BITS: u32 = 20;
/// Flag of a record lock operation by a process that has had several threads.
pub const THREADED: u8 = VARIANT;
/// Set in the number of an owner that is a description; else it is 1 + a process.
pub(crate) const IS_DESCRIPTION: u32 = 1 << NAME_BITS;

/// A lock.
#[derive(Clone, Copy, Hash, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct FileLock {
    /// The file.
    pub obj: ObjId,
    /// Number of the owner, see [`owner_process`].
    pub owner: u32,
    /// First byte.
    pub first: u64,
    /// Last byte.
    pub last: u64,
    /// For writing.
    pub write: bool,
    pub(crate) pad: [u8; 3],
    /// The process that took it.
    pub by: Pid,
}

/// A file that has been locked.
#[derive(Clone, Copy, Hash, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct KnownFile {
    /// Device.
    pub dev: u64,
    /// Inode.
    pub ino: u64,
    /// Address in the keys of its objects.
    pub number: u64,
}

/// An open file description that has had locks.
#[derive(Clone, Copy, Hash, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Tagged {
    /// Device of its file.
    pub dev: u64,
    /// Inode of its file.
    pub ino: u64,
    /// Its name.
    pub name: u32,
    /// Zero.
    pub pad: u32,
}

/// The mask of an operation of an open file description.
pub const fn by_description(name: u32) -> u32 {
    DESCRIPTION | (name & (IS_DESCRIPTION - 1)) << NAME_SHIFT
}

/// The process that is the owner with this number; `None`: it is an open file description.
pub fn owner_process(owner: u32) -> Option<Pid> {
    (owner & IS_DESCRIPTION == 0).then(|| owner - 1)
}
