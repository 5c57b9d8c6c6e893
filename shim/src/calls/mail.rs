//! Descriptors of real files in messages (SCM_RIGHTS): the messages are the model's, the open file descriptions the
//! kernel's, so the kernel has to keep and to hand them over.
//!
//! NOTE [Mail] All processes of a world share one hidden pair of local sockets, made before the first execution. A message of
//! the program that carries the descriptor of a file puts that into a message of its own on the pair, with the number of
//! the description that stands for it in the model. Whoever receives the program's message takes it from there, past those
//! that are not for it, which go to the end. Nobody needs to be allowed to look into another process. What is never
//! received is thrown away when somebody comes across it; that it is closed late is seen by nobody, since files that are
//! locked are not sent, and not locked while any are under way.

use vsrun_model::arena::{MAIL_IN_FD, MAIL_OUT_FD, PLACE_FD};
use vsrun_model::fd::{DescId, DescKind};

use super::fd::{self, is_open, is_ours};
use super::{files, locks};
use crate::gate::{end, model, world};
use crate::sys::errno::*;
use crate::sys::{load, raw, store};

/// Bytes of a control message with one descriptor, and with what fills it up.
const CONTROL_LEN: u64 = 20;
const CONTROL_ROOM: usize = 24;

/// Makes the pair where it is not there yet.
pub fn make_pair() {
    if is_open(MAIL_IN_FD as u64) {
        return;
    }
    let mut pair = [0i32; 2];
    if raw!(libc::SYS_socketpair, libc::AF_UNIX, libc::SOCK_SEQPACKET, 0, pair.as_mut_ptr()) < 0 {
        return;
    }
    for (fd, place) in [(pair[0], MAIL_IN_FD), (pair[1], MAIL_OUT_FD)] {
        raw!(libc::SYS_dup2, fd, place);
        raw!(libc::SYS_close, fd);
    }
    // As much as the system allows.
    let room = 1i32 << 24;
    raw!(libc::SYS_setsockopt, MAIL_IN_FD, libc::SOL_SOCKET, libc::SO_SNDBUF, &room as *const i32, 4);
}

/// Throws away what an execution before this one has left.
pub fn clear() {
    let mut number = 0u64;
    while raw!(libc::SYS_recvfrom, MAIL_OUT_FD, &mut number as *mut u64, 8, libc::MSG_DONTWAIT, 0, 0) >= 0 {}
}

/// A message of the hidden pair: header, data and control message for the kernel.
#[repr(C)]
struct Letter {
    header: [u64; 7],
    iov: [u64; 2],
    content: u64,
    control: [u8; CONTROL_ROOM],
}

impl Letter {
    fn new(content: u64) -> Letter {
        Letter { header: [0; 7], iov: [0; 2], content, control: [0; CONTROL_ROOM] }
    }

    /// Fills the header in, at the letter's last place.
    fn address(&mut self) -> u64 {
        self.iov = [&raw mut self.content as u64, 8];
        let control = &raw mut self.control as u64;
        self.header = [0, 0, &raw mut self.iov as u64, 1, control, CONTROL_ROOM as u64, 0];
        &raw mut self.header as u64
    }
}

/// What a letter says of its descriptor.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Content {
    /// What stands for it in the model.
    number: u32,
    /// The name of the open file description.
    description: u32,
}

impl Content {
    fn word(self) -> u64 {
        u64::from(self.description) << 32 | u64::from(self.number)
    }
}

/// Sends descriptor `fd` as a letter; 0 or a negative error number.
fn send(fd: i32, content: Content) -> i64 {
    let mut letter = Letter::new(content.word());
    let header = letter.address();
    let control = &raw mut letter.control as u64;
    store(control, CONTROL_LEN);
    store(control + 8, libc::SOL_SOCKET);
    store(control + 12, libc::SCM_RIGHTS);
    store(control + 16, fd);
    raw!(libc::SYS_sendmsg, MAIL_IN_FD, header, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL).min(0)
}

/// Receives a letter: what it says, and the descriptor.
fn receive(flags: i32) -> Option<(Content, i32)> {
    let mut letter = Letter::new(0);
    let header = letter.address();
    let control = &raw mut letter.control as u64;
    if raw!(libc::SYS_recvmsg, MAIL_OUT_FD, header, flags | libc::MSG_DONTWAIT) < 8 {
        return None;
    }
    if load::<u64>(header + 40) < CONTROL_LEN {
        end::bug(b"a message that carries a descriptor came without it");
    }
    let word: u64 = load(&raw const letter.content as u64);
    Some((Content { number: word as u32, description: (word >> 32) as u32 }, load(control + 16)))
}

/// True if nobody will ask for letter `number` any more.
fn is_stale(number: u32) -> bool {
    !world().descs.as_slice().iter().any(|d| d.kind == DescKind::FILE && d.extra == number)
}

/// Throws away what nobody will ask for.
fn tidy() {
    let mut first_kept = None;
    while let Some((content, fd)) = receive(libc::MSG_CMSG_CLOEXEC) {
        let number = content.number;
        if !is_stale(number) && send(fd, content) < 0 {
            end::bug(b"the descriptor of a file in a message could not be kept");
        }
        raw!(libc::SYS_close, fd);
        if first_kept == Some(number) {
            return;
        }
        if !is_stale(number) {
            first_kept = first_kept.or(Some(number));
        }
    }
}

/// What stands for the file behind descriptor `fd` while a message carries it; a negative error number where there is none.
pub fn put(fd: i32) -> Result<DescId, i64> {
    if is_ours(fd as u64) || !is_open(fd as u64) {
        return Err(EBADF);
    }
    if locks::is_locked(fd) {
        end::unsupported(&[b"the descriptor of a file that is locked (flock, F_OFD_SETLK) in a message"]);
    }
    let Some(desc) = model().desc_of_file() else {
        end::no_room(&[b"the program has more descriptors than vsrun can hold"])
    };
    let content = Content { number: world().descs[desc].extra, description: files::description(fd) };
    let mut error = send(fd, content);
    if error < 0 {
        tidy();
        error = send(fd, content);
    }
    if error < 0 {
        end::unsupported(&[b"more descriptors of files under way in messages than the kernel takes"]);
    }
    Ok(desc)
}

/// Gives this process a descriptor of the file that `desc` stands for: its number, or a negative error number.
pub fn take(desc: DescId, cloexec: bool) -> i64 {
    // Letters for others need a number for a moment.
    let free = raw!(libc::SYS_fcntl, PLACE_FD, libc::F_DUPFD, 0);
    if free < 0 {
        return fd::refused(free);
    }
    raw!(libc::SYS_close, free);
    let wanted = world().descs[desc].extra;
    let flags = if cloexec { libc::MSG_CMSG_CLOEXEC } else { 0 };
    while let Some((content, fd)) = receive(flags) {
        let number = content.number;
        // It was only looked at (MSG_PEEK), or it is for somebody else.
        let stays = number != wanted && !is_stale(number) || number == wanted && world().descs[desc].refs > 1;
        if stays && send(fd, content) < 0 {
            end::bug(b"the descriptor of a file in a message could not be kept");
        }
        if number == wanted {
            files::received(fd, content.description);
            return fd.into();
        }
        raw!(libc::SYS_close, fd);
    }
    end::bug(b"the descriptor of a file in a message is gone")
}
