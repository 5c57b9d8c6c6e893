//! What the kernel performs by the user's wish (`--uncontrolled`): calls that are not modelled, and reads of their descriptors.
//! What comes there and when is the kernel's to say, so nothing is explored of it.

use vsrun_model::{Kind, Op};

use super::{fd, files};
use crate::gate::{self, local, world};
use crate::sys::{decimal, raw};

/// Performs a call of a kind that was asked for. What it watches may lie in the private layer.
pub fn call(nr: i64, a: [u64; 6]) -> i64 {
    files::call(nr, a)
}

/// True if `fd` is a descriptor that such a call has made.
#[inline]
pub fn is(fd: u64) -> bool {
    world().uncontrolled != 0 && fd <= i32::MAX as u64 && fd::find(fd).is_none() && is_called_so(fd)
}

/// The program's stack may be small: what this takes of it is not taken by those who ask.
#[cold]
#[inline(never)]
fn is_called_so(fd: u64) -> bool {
    const PREFIX: &[u8] = b"/proc/self/fd/";
    let mut path = [0u8; 40];
    path[..PREFIX.len()].copy_from_slice(PREFIX);
    let number = decimal(fd as i64);
    path[PREFIX.len()..PREFIX.len() + number.len()].copy_from_slice(&number);
    let mut link = [0u8; 32];
    let n = raw!(libc::SYS_readlink, path.as_ptr(), link.as_mut_ptr(), link.len());
    let names: [&[u8]; 3] = [b"anon_inode:inotify", b"anon_inode:[fanotify]", b"anon_inode:[io_uring]"];
    names.contains(&&link[..n.clamp(0, link.len() as i64) as usize])
}

/// Before a read of such a descriptor, which waits in the kernel: lets the others go on for as long as there is nothing to read
/// and one of them can.
pub fn before_read(fd: u64) {
    const GETFL: u64 = libc::F_GETFL as u64;
    if !is(fd) || raw!(libc::SYS_fcntl, fd, GETFL) & i64::from(libc::O_NONBLOCK) != 0 {
        return;
    }
    let mut asked = [fd | (libc::POLLIN as u64) << 32];
    while raw!(libc::SYS_poll, asked.as_mut_ptr(), 1, 0) == 0 && give_way() {}
}

/// Lets others go on. False: nobody could.
pub fn give_way() -> bool {
    let me = local().cur;
    if !world().live.as_slice().iter().any(|&u| u != me && world().choices(u) > 0) {
        return false;
    }
    gate::pass(Op::new(Kind::YIELD));
    true
}
