//! Files: what an execution has changed of the file system, and who has used which file.
//!
//! The file system that a program sees is the real one with a private layer on top. A *shadow* is the part of that layer
//! that belongs to one real directory: a directory of its own with what was made, changed (a copy) or taken away (a
//! whiteout) there. The layer itself is kept by the shim; here is what all processes must know of it.
//!
//! Reads and writes of files are no visible operations, so a file over which threads communicate is only recognized as
//! such: two accesses, one of them a write, that are not ordered by creation, join or wait.

use crate::object::NONE;
use crate::table::Table;
use crate::world::World;
use crate::{Pid, Tid};

/// Longest path of a directory that has a shadow, bytes.
pub const MAX_DIR: usize = 1024;
/// Longest path of a file in a report, bytes; longer ones are cut.
pub const MAX_SHOWN: usize = 512;
/// Users of a file that are told apart; any more count as unordered.
pub const MAX_USERS: usize = 8;

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
    pad: u32,
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

/// Last accesses of one thread to a file: numbers of threads created until then, 0 for never.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct User {
    /// The thread.
    pub thread: Tid,
    /// Its last read.
    pub read: u32,
    /// Its last write.
    pub wrote: u32,
}

/// A file that was written in this execution, and who has used it since.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Used {
    /// Device, as the kernel knows it.
    pub dev: u64,
    /// Inode, as the kernel knows it.
    pub ino: u64,
    /// Entries of `users`.
    pub len: u32,
    /// Unordered accesses have been seen.
    pub shared: u32,
    /// Who has used it.
    pub users: [User; MAX_USERS],
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
    /// Bytes of `shown`; 0: no file with unordered accesses was seen.
    pub shown_len: u32,
    /// Path of the first file with unordered accesses, as the program knows it.
    pub shown: [u8; MAX_SHOWN],
    /// Shadows, by number.
    pub shadows: Table<Shadow, 1024>,
    /// Copies.
    pub copies: Table<Copied, 4096>,
    /// Files that were written.
    pub written: Table<Used, 1024>,
}

impl Files {
    /// Forgets what an execution did.
    pub fn reset(&mut self) {
        self.used = 0;
        self.listings = 0;
        self.shown_len = 0;
        self.shadows.clear();
        self.copies.clear();
        self.written.clear();
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

    /// The file with these numbers, if it was written; with `add`, from now on.
    fn written(&mut self, dev: u64, ino: u64, add: bool) -> Option<u32> {
        let found = self.written.as_slice().iter().position(|f| f.dev == dev && f.ino == ino);
        match found {
            Some(at) => Some(at as u32),
            None if add => {
                let nobody = User { thread: NONE, read: 0, wrote: 0 };
                self.written.push(Used { dev, ino, len: 0, shared: 0, users: [nobody; MAX_USERS] })
            }
            None => None,
        }
    }

    /// Thread `t` reads or writes the file with these numbers. True: for the first time, an access to this file is not
    /// ordered with one before it.
    pub fn access(&mut self, world: &World, t: Tid, (dev, ino): (u64, u64), write: bool) -> bool {
        let Some(at) = self.written(dev, ino, write) else {
            // No room: then nothing is known of this file.
            return write;
        };
        let now = world.threads.len;
        let file = &mut self.written[at];
        let users = &file.users[..file.len as usize];
        let conflicts = |u: &&User| u.thread != t && (u.wrote > 0 || write && u.read > 0);
        let since = |u: &User| u.wrote.max(if write { u.read } else { 0 });
        let mut unordered = users.iter().filter(conflicts).any(|u| !ordered(world, u.thread, since(u), t));
        let known = users.iter().position(|u| u.thread == t);
        let place = known.or((file.len < MAX_USERS as u32).then_some(file.len as usize));
        match place {
            Some(place) => {
                file.len = file.len.max(place as u32 + 1);
                let user = &mut file.users[place];
                user.thread = t;
                if write {
                    user.wrote = now;
                } else {
                    user.read = now;
                }
            }
            None => unordered = true,
        }
        unordered && core::mem::replace(&mut file.shared, 1) == 0
    }
}

/// True if what thread `u` did when there were `at` threads comes before what thread `t` does now in every order of
/// independent steps: by the creation of `t` or of one that created it, by a join, or by a wait for `u`'s process.
fn ordered(world: &World, u: Tid, at: u32, t: Tid) -> bool {
    let created_after = |by: &dyn Fn(Tid) -> bool, since: u32| {
        let mut child = t;
        while let Some(thread) = world.threads.get(child).filter(|thread| thread.creator != NONE) {
            if child >= since && by(thread.creator) {
                return true;
            }
            child = thread.creator;
        }
        false
    };
    if u == t || created_after(&|creator| creator == u, at) {
        return true;
    }
    if world.threads[u].joined && world.threads[u].heir == t {
        return true;
    }
    // Waited for by the thread that goes on, or by one that then created it.
    let mut process: Pid = world.threads[u].pid;
    while let Some(ended) = world.procs.get(process).filter(|p| p.waited > 0) {
        if ended.waiter == t || created_after(&|creator| creator == ended.waiter, ended.waited) {
            return true;
        }
        process = world.threads[ended.waiter].pid;
    }
    false
}
