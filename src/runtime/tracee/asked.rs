//! What the kernel says of objects between processes when it is asked; nothing is changed by asking.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::FromRawFd;

use nix::errno::Errno;

/// A semaphore of a System V set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Semaphore {
    /// Its value.
    pub value: i32,
    /// The process that has changed it last, 0 if none has; by its id in the namespace of vsrun, 0 if it has none there.
    pub last: i32,
}

/// Semaphore `number` of set `id` (GETVAL and GETPID of semctl(2), which are for reading).
///
/// # Errors
/// There is no such semaphore, or it must not be read.
pub fn semaphore(id: i32, number: u16) -> io::Result<Semaphore> {
    let ask = |command: libc::c_int| {
        // SAFETY: GETVAL and GETPID take no fourth argument, return a number and touch no memory of this process.
        Errno::result(unsafe { libc::semctl(id, number.into(), command) }).map_err(io::Error::from)
    };
    Ok(Semaphore { value: ask(libc::GETVAL)?, last: ask(libc::GETPID)? })
}

const HEADER: usize = 16;

/// The inodes of all Unix sockets of this network namespace that are connected, each with that of the other side
/// (sock_diag(7), UDIAG_SHOW_PEER).
///
/// # Errors
/// The kernel cannot be asked.
pub fn unix_peers() -> io::Result<BTreeMap<u64, u64>> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: socket takes three numbers.
    let fd = Errno::result(unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_SOCK_DIAG) })?;
    // SAFETY: the descriptor was just made and nobody else has it.
    let mut socket = unsafe { File::from_raw_fd(fd) };
    socket.write_all(&request())?;
    let mut peers = BTreeMap::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let size = socket.read(&mut buffer)?;
        if size == 0 || !take(&buffer[..size], &mut peers)? {
            return Ok(peers);
        }
    }
}

/// `nlmsghdr` and `unix_diag_req`.
fn request() -> Vec<u8> {
    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    const REQUEST_DUMP: u16 = 0x301;
    const SHOW_PEER: u32 = 4;
    let mut bytes = Vec::new();
    bytes.extend(40u32.to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(REQUEST_DUMP.to_ne_bytes());
    bytes.extend([0; 8]); // sequence number, sender
    bytes.extend([libc::AF_UNIX as u8, 0, 0, 0]);
    bytes.extend(u32::MAX.to_ne_bytes()); // in all states
    bytes.extend(0u32.to_ne_bytes()); // all inodes
    bytes.extend(SHOW_PEER.to_ne_bytes());
    bytes.extend([0; 8]); // cookie
    bytes
}

/// Takes what `messages` say. Whether more are to come.
fn take(mut messages: &[u8], peers: &mut BTreeMap<u64, u64>) -> io::Result<bool> {
    const ERROR: u16 = 2;
    const DONE: u16 = 3;
    while messages.len() >= HEADER {
        let length = (u32_at(messages, 0) as usize).clamp(HEADER, messages.len());
        match u16_at(messages, 4) {
            DONE => return Ok(false),
            ERROR => return Err(io::Error::from_raw_os_error(-(u32_at(messages, HEADER) as i32))),
            _ => {
                if let Some((inode, peer)) = peer_of(&messages[HEADER..length]) {
                    peers.insert(inode, peer);
                }
            }
        }
        messages = messages.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(true)
}

/// From a `unix_diag_msg` and its attributes.
fn peer_of(message: &[u8]) -> Option<(u64, u64)> {
    const PEER: u16 = 2;
    let inode = u64::from(u32_at(message, 4));
    let mut attributes = message.get(16..)?;
    while attributes.len() >= 4 {
        let length = usize::from(u16_at(attributes, 0)).clamp(4, attributes.len());
        if u16_at(attributes, 2) == PEER && length >= 8 {
            return Some((inode, u32_at(attributes, 4).into()));
        }
        attributes = attributes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    None
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |b| u16::from_ne_bytes([b[0], b[1]]))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn two_ends_of_a_pair() {
        let inode = |stream: &UnixStream| {
            let link = std::fs::read_link(format!("/proc/self/fd/{}", stream.as_raw_fd())).unwrap();
            let text = link.to_string_lossy().into_owned();
            text.trim_start_matches("socket:[").trim_end_matches(']').parse::<u64>().unwrap()
        };
        let (a, b) = UnixStream::pair().unwrap();
        let peers = unix_peers().unwrap();
        assert_eq!((peers.get(&inode(&a)), peers.get(&inode(&b))), (Some(&inode(&b)), Some(&inode(&a))));
    }

    #[test]
    fn what_is_damaged_is_not_believed() {
        let mut peers = BTreeMap::new();
        for length in 0..48 {
            let mut bytes = vec![0xff; length];
            assert!(take(&bytes, &mut peers).is_ok());
            bytes.iter_mut().for_each(|b| *b = 0);
            assert!(take(&bytes, &mut peers).is_ok());
        }
    }

    #[test]
    fn a_set_that_is_not_there() {
        assert!(semaphore(-1, 0).is_err());
    }
}
