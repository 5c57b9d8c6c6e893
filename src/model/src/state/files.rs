//! Files: what an execution has changed of the file system, and who has used which file.
//!
//! The file system that a program sees is the real one with a private layer on top. A *shadow* is the part of that layer
//! that belongs to one real directory: a directory of its own with what was made, changed (a copy) or taken away (a
//! whiteout) there. The layer itself is kept by the shim; here is what all processes must know of it.
//!
//! Who uses which file, and when that is a visible operation: [`crate::file`].

use crate::base::mixer::{together, Mixer, Purpose};
use crate::base::{ObjId, Table, Tid, VARIANT};

/// Users of a file that are told apart. Any more that only read it are kept as one, which is in no order with anybody; one that
/// writes makes the file shared.
pub const MAX_USERS: usize = 8;
/// [`Used::dev`] of a name: `ino` is a hash of the path.
pub const NAME: u64 = u64::MAX;
/// [`Used::dev`] of what a directory lists: `ino` is a hash of its path.
pub const LISTING: u64 = u64::MAX - 1;
/// [`Used::dev`] of the place of an open file description: `ino` names it. Reads that move it write it.
pub const PLACE: u64 = u64::MAX - 3;
/// [`Used::dev`] of a socket that is found by its path: `ino` is a hash of that.
pub const SOCKET: u64 = u64::MAX - 2;
/// [`Used::dev`] of a number of a process's table of descriptors, of which of these numbers are free, and of the file status
/// flags of a description: `ino` names it. See `sched::descriptor`.
pub const FD_NUMBER: u64 = u64::MAX - 4;
/// [`Used::dev`] of other state that calls share (umask, groups, limits, ..): `ino` names it. See `sched::cells`.
pub const CELL: u64 = u64::MAX - 5;
/// [`Used::dev`] of a file that is no more, whose inode another one has.
pub(crate) const GONE: u64 = CELL - 1;
/// The least [`Used::dev`] that is none of a file's.
pub const NO_FILE: u64 = CELL;
/// In [`Op::mask`](crate::Op) of a read: its place in the file is given, so that it moves no description's.
pub const PLACED: u32 = u32::MAX;

/// Of a look at names of files and a change of them: it looks for a process or thread by its number.
pub const LOOKS_FOR: u8 = VARIANT;

/// Last uses of a file by one thread: numbers of threads created until then, 0 for never.
#[derive(Clone, Copy, Hash, Debug)]
#[repr(C)]
pub struct User {
    /// The thread; [`NONE`](crate::NONE): several that only read.
    pub thread: Tid,
    /// Its last read.
    pub read: u32,
    /// Its last write.
    pub wrote: u32,
    /// When it asked last for the size of a file that it does not read.
    pub sized: u32,
}

/// A file, a name or a directory's list of names, and who has used it since there are several threads.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Used {
    /// Device, [`NAME`] or [`LISTING`].
    pub dev: u64,
    /// Inode, or a hash.
    pub ino: u64,
    /// What names it in every execution.
    pub number: u64,
    /// The object, once it is shared.
    pub obj: ObjId,
    /// 1 + the next in its bucket.
    pub(crate) next: u32,
    /// [`Used::ASKED`], [`Used::SHARED`], ..
    pub(crate) state: u32,
    /// Entries of `users`.
    pub(crate) len: u32,
    pub(crate) users: [User; MAX_USERS],
}

impl Used {
    /// It is known whether it is known to be shared.
    pub(crate) const ASKED: u32 = 1;
    pub(crate) const SHARED: u32 = 2;
    /// Written in any order.
    pub(crate) const LOGGED: u32 = 4;
    /// It is noted that something about it is not explored.
    pub(crate) const NOTED: u32 = 8;
    /// A name that was changed.
    pub(crate) const CHANGED: u32 = 16;
    /// Its last name was taken away: a file of this inode that has a name is another one.
    pub(crate) const REMOVED: u32 = 32;

    /// Somebody has changed it beside other threads.
    pub fn is_changed(&self) -> bool {
        self.state & Used::CHANGED != 0
    }
}

/// What is done to a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// Reads it.
    Read,
    /// Asks how long it is, without reading it.
    Size,
    /// Changes it.
    Write,
}

/// What is to be made of a use of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Nothing.
    Passes,
    /// It is a visible operation on an object of this file.
    Visible,
    /// Nothing, but for the first time there is an order that matters and is not explored.
    Unexplored,
    /// Nothing; for the first time several write it in any order.
    Logged,
}

/// Longest path of a directory that has a shadow, bytes.
pub const MAX_DIR: usize = 1024;
/// Longest path of a file in a report, bytes; longer ones are cut.
pub const MAX_SHOWN: usize = 512;
/// Buckets of files that are used.
pub const FILE_BUCKETS: usize = 1024;

/// The private layer over one real directory.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Shadow {
    /// Device of the directory.
    pub dev: u64,
    /// Inode of the directory.
    pub ino: u64,
    /// Bytes of `path`.
    pub len: u32,
    pub(crate) pad: u32,
    /// The directory's real path, without symbolic links.
    pub path: [u8; MAX_DIR],
}

impl Shadow {
    /// The directory's real path.
    pub fn path(&self) -> &[u8] {
        &self.path[..(self.len as usize).min(MAX_DIR)]
    }
}

/// A file that was copied before it was changed: the program goes on to see the numbers of the original.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Copied {
    /// Inode of the copy.
    pub own: u64,
    /// Device of the original.
    pub dev: u64,
    /// Inode of the original.
    pub ino: u64,
}

/// What is known of files in one execution. Written by the holder of the turn.
#[repr(C)]
pub struct Files {
    /// 1: what is written goes to the private layer; written by vsrun.
    pub private: u32,
    /// 1 once a file has been written or the private layer has anything in it.
    pub used: u32,
    /// Device of the private layer; valid once there is a shadow.
    pub dev: u64,
    /// Number of the next listing of a directory.
    pub listings: u32,
    /// Bytes of `shown`; 0: all is explored.
    pub shown_len: u32,
    /// Path of the first file of which some order of uses is not explored, as the program knows it.
    pub shown: [u8; MAX_SHOWN],
    /// Bytes of `logged`; 0: there is none.
    pub logged_len: u32,
    /// Entries of `used_files` that stand for names and have been changed.
    pub names_changed: u32,
    /// How often a directory was about to be taken away, to get another name or other attributes.
    pub directories_changed: u32,
    /// Path of the first file that several threads write in any order, and nobody reads.
    pub logged: [u8; MAX_SHOWN],
    /// Shadows, by number.
    pub shadows: Table<Shadow, 1024>,
    /// Copies.
    pub copies: Table<Copied, 4096>,
    /// Heads of the chains of `used_files`, 1 + index; valid once there is one.
    pub buckets: [u32; FILE_BUCKETS],
    /// Files and names that were used beside other threads.
    pub used_files: Table<Used, 16384>,
}

impl Files {
    /// Forgets what an execution did.
    pub fn reset(&mut self) {
        self.used = 0;
        self.listings = 0;
        self.shown_len = 0;
        self.shadows.clear();
        self.copies.clear();
        self.logged_len = 0;
        self.names_changed = 0;
        self.directories_changed = 0;
        if self.used_files.len > 0 {
            self.buckets = [0; FILE_BUCKETS];
        }
        self.used_files.clear();
    }

    /// Who has used what is what stands in `other`. The private layer is no part of that.
    pub fn copy_uses(&mut self, other: &Files) {
        if self.used_files.len + other.used_files.len > 0 {
            self.buckets = other.buckets;
        }
        self.used_files.copy_from(&other.used_files);
        (self.names_changed, self.directories_changed) = (other.names_changed, other.directories_changed);
    }

    /// A hash of who has used what: what is used later is an operation or none by that. Rows count without their order.
    pub fn digest_of_uses(&self) -> [u64; 2] {
        let each = self.used_files.as_slice().iter().map(|used| {
            let Used { dev, ino: _, number, obj: _, next: _, state, len, users } = used;
            let users = users[..*len as usize].iter().map(|user| Mixer::of(Purpose::USER, user));
            Mixer::of(Purpose::USED, &(dev, number, state, users.fold([0; 2], together)))
        });
        let rows = each.fold([0; 2], together);
        Mixer::of(Purpose::USES, &(rows, self.names_changed, self.directories_changed))
    }

    /// The shadow of the directory with these numbers.
    pub fn shadow_of(&self, dev: u64, ino: u64) -> Option<u32> {
        self.shadows.as_slice().iter().position(|s| s.dev == dev && s.ino == ino).map(|i| i as u32)
    }

    /// A shadow for the directory at `path`. `None`: no room, or the path is too long.
    pub fn add_shadow(&mut self, dev: u64, ino: u64, path: &[u8]) -> Option<u32> {
        let mut shadow = Shadow { dev, ino, len: path.len() as u32, pad: 0, path: [0; MAX_DIR] };
        shadow.path.get_mut(..path.len())?.copy_from_slice(path);
        self.shadows.push(shadow)
    }
}
