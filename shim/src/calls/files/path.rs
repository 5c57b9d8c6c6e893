//! Paths as bytes in fixed buffers, hashes of them, and what the kernel says of them.

use crate::sys::errno::*;
use crate::sys::{bytes, decimal, load, raw, FIRST_ADDRESS};

/// Longest path that is followed, bytes.
pub const MAX: usize = 4096;

/// A path, always followed by a NUL.
pub struct Path {
    len: usize,
    bytes: [u8; MAX + 1],
}

impl Path {
    /// The empty path.
    pub const fn new() -> Path {
        Path { len: 0, bytes: [0; MAX + 1] }
    }

    /// Another one.
    pub fn copy(&self) -> Path {
        Path { len: self.len, bytes: self.bytes }
    }

    /// The bytes.
    pub fn get(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// For the kernel.
    pub fn ptr(&self) -> u64 {
        self.bytes.as_ptr() as u64
    }

    /// Becomes the parts in a row.
    pub fn set(&mut self, parts: &[&[u8]]) -> Result<(), i64> {
        self.len = 0;
        parts.iter().try_for_each(|part| self.add(part))
    }

    /// Appends.
    pub fn add(&mut self, part: &[u8]) -> Result<(), i64> {
        let end = self.len + part.len();
        if end >= MAX {
            return Err(ENAMETOOLONG);
        }
        self.bytes[self.len..end].copy_from_slice(part);
        self.cut(end);
        Ok(())
    }

    /// Appends a component.
    pub fn join(&mut self, name: &[u8]) -> Result<(), i64> {
        if self.get() != b"/" {
            self.add(b"/")?;
        }
        self.add(name)
    }

    /// Keeps the first `len` bytes.
    pub fn cut(&mut self, len: usize) {
        self.len = len;
        self.bytes[len] = 0;
    }

    /// Puts `part` in the place of the first `n` bytes.
    pub fn replace_front(&mut self, n: usize, part: &[u8]) -> Result<(), i64> {
        let rest = self.len - n;
        let len = rest + part.len();
        if len >= MAX {
            return Err(ENAMETOOLONG);
        }
        self.bytes.copy_within(n..n + rest, part.len());
        self.bytes[..part.len()].copy_from_slice(part);
        self.cut(len);
        Ok(())
    }

    /// Where the last component begins, and the length of what is before it without the slash.
    pub fn split(&self) -> (usize, usize) {
        let at = self.get().iter().rposition(|&b| b == b'/').unwrap_or(0);
        (at + 1, at.max(1))
    }

    /// Becomes the path of what descriptor `fd` refers to, as the kernel tells it.
    pub fn of_descriptor(&mut self, fd: i32) -> Result<(), i64> {
        let mut link = Link::of(fd);
        self.of_link(link.ptr())
    }

    /// Becomes the target of the symbolic link with that name.
    pub fn of_link(&mut self, link: u64) -> Result<(), i64> {
        let n = raw!(libc::SYS_readlink, link, self.bytes.as_mut_ptr(), MAX);
        if n < 0 {
            return Err(n);
        }
        if n as usize == MAX {
            return Err(ENAMETOOLONG);
        }
        self.cut(n as usize);
        Ok(())
    }

    /// Becomes the working directory.
    pub fn of_cwd(&mut self) -> Result<(), i64> {
        let n = raw!(libc::SYS_getcwd, self.bytes.as_mut_ptr(), MAX);
        if n < 0 {
            return Err(n);
        }
        self.cut(n as usize - 1);
        Ok(())
    }
}

/// "/proc/self/fd/N".
pub struct Link {
    bytes: [u8; 40],
}

impl Link {
    /// That of descriptor `fd`.
    pub fn of(fd: i32) -> Link {
        let mut bytes = [0; 40];
        let mut at = 0;
        for part in [b"/proc/self/fd/".as_slice(), &decimal(fd as i64)] {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        Link { bytes }
    }

    /// For the kernel.
    pub fn ptr(&mut self) -> u64 {
        self.bytes.as_ptr() as u64
    }
}

/// What stat tells, as the kernel lays it out.
#[derive(Clone, Copy, Default)]
pub struct Stat(pub [u64; 18]);

impl Stat {
    /// Of the file with that name; links are not followed.
    pub fn of(path: u64) -> Result<Stat, i64> {
        let mut stat = Stat::default();
        match raw!(libc::SYS_lstat, path, stat.0.as_mut_ptr()) {
            0 => Ok(stat),
            error => Err(error),
        }
    }

    /// Of what a descriptor refers to.
    pub fn of_fd(fd: i32) -> Result<Stat, i64> {
        let mut stat = Stat::default();
        match raw!(libc::SYS_fstat, fd, stat.0.as_mut_ptr()) {
            0 => Ok(stat),
            error => Err(error),
        }
    }

    /// Device and inode.
    pub fn id(&self) -> (u64, u64) {
        (self.0[0], self.0[1])
    }

    /// Links.
    pub fn links(&self) -> u64 {
        self.0[2]
    }

    /// Type and permissions.
    pub fn mode(&self) -> u32 {
        self.0[3] as u32
    }

    /// The type alone.
    pub fn kind(&self) -> u32 {
        self.mode() & libc::S_IFMT
    }

    /// It is a directory.
    pub fn is_dir(&self) -> bool {
        self.kind() == libc::S_IFDIR
    }

    /// Owner.
    pub fn uid(&self) -> u32 {
        (self.0[3] >> 32) as u32
    }

    /// Group.
    pub fn gid(&self) -> u32 {
        self.0[4] as u32
    }

    /// Size, bytes.
    pub fn size(&self) -> u64 {
        self.0[6]
    }

    /// Times of last access and modification, as utimensat wants them.
    pub fn times(&self) -> [u64; 4] {
        [self.0[9], self.0[10], self.0[11], self.0[12]]
    }
}

/// Bytes of a path that the program gave.
pub fn given(path: u64) -> &'static [u8] {
    let mut len = 0;
    while len < MAX && load::<u8>(path + len as u64) != 0 {
        len += 1;
    }
    bytes(path, len)
}

/// No path, or an empty one.
pub(super) fn is_empty(path: u64) -> bool {
    path < FIRST_ADDRESS || load::<u8>(path) == 0
}

pub fn mix(a: u64, b: u64) -> u64 {
    let z = (a ^ b.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (z ^ z >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

pub(super) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(FNV, step)
}

pub(super) const FNV: u64 = 0xcbf2_9ce4_8422_2325;

pub(super) fn step(hash: u64, byte: &u8) -> u64 {
    (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
}
