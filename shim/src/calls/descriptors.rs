//! Calls on descriptors: which of them concern those of the model, and what works on any of them.

use vsrun_model::address::NETLINK;
use vsrun_model::arena::PLACE_FD;
use vsrun_model::fd::{DescId, DescKind, ACCESS, NONBLOCK, READ_ONLY, WRITE_ONLY};
use vsrun_model::world::SIGIO;
use vsrun_model::NONE;

use super::fd::{self, find, refuse};
use super::memory::{vector, Memory};
use super::{
    address, epoll, event, files, interfaces, locks, message, mqueue, netlink, numbers, owner, pidfd, pipe, poll,
    socket, sockopt, splice,
};
use crate::gate::{end, local, model, world};
use crate::sys::errno::*;
use crate::sys::{any_of, cstr, decimal, load, raw, store, zero};

/// Calls whose first argument is a descriptor, and that nothing else is to be done about.
fn takes_fd(nr: i64) -> bool {
    matches!(
        nr,
        any_of!(
            SYS_read SYS_write SYS_close SYS_fstat SYS_lseek SYS_ioctl SYS_pread64 SYS_pwrite64 SYS_readv SYS_writev
            SYS_preadv SYS_pwritev SYS_preadv2 SYS_pwritev2 SYS_dup SYS_dup2 SYS_dup3 SYS_fcntl SYS_flock SYS_fsync
            SYS_fdatasync SYS_ftruncate SYS_getdents SYS_getdents64 SYS_fchdir SYS_fchmod SYS_fchown SYS_fstatfs
            SYS_readahead SYS_fadvise64 SYS_fallocate SYS_sync_file_range SYS_syncfs SYS_fgetxattr SYS_fsetxattr
            SYS_flistxattr SYS_fremovexattr SYS_vmsplice
        )
    ) || of_sockets(nr)
}

/// Calls that only sockets have.
fn of_sockets(nr: i64) -> bool {
    matches!(
        nr,
        any_of!(
            SYS_connect SYS_accept SYS_accept4 SYS_bind SYS_listen SYS_shutdown SYS_sendto SYS_recvfrom SYS_sendmsg
            SYS_recvmsg SYS_sendmmsg SYS_recvmmsg SYS_getsockname SYS_getpeername SYS_setsockopt SYS_getsockopt
        )
    )
}

/// What a call that only sockets have gives for a descriptor that is not of the model. `None`: it is a socket, which the
/// program was started with.
fn not_a_socket(nr: i64, a: [u64; 6]) -> Option<i64> {
    let mut stat = [0u64; 18];
    if raw!(libc::SYS_fstat, a[0], stat.as_mut_ptr()) < 0 {
        return Some(EBADF);
    }
    let socket = stat[3] as u32 & libc::S_IFMT == libc::S_IFSOCK;
    if nr == libc::SYS_accept4 && a[3] as i32 & !socket::FLAGS != 0 {
        return Some(EINVAL);
    }
    (!socket).then_some(ENOTSOCK)
}

/// Performs call `nr` if it concerns descriptors of the model.
pub fn call(nr: i64, a: [u64; 6]) -> Option<i64> {
    match nr {
        libc::SYS_pipe => return Some(pipe::make(a[0], 0)),
        libc::SYS_pipe2 => return Some(pipe::make(a[0], a[1] as i32)),
        libc::SYS_socket => return Some(socket::make(a[0] as i32, a[1] as i32, a[2] as i32)),
        libc::SYS_socketpair => return Some(socket::pair(a[0] as i32, a[1] as i32, a[2] as i32, a[3])),
        libc::SYS_poll | libc::SYS_ppoll | libc::SYS_select | libc::SYS_pselect6 => return poll::call(nr, a),
        libc::SYS_open | libc::SYS_creat | libc::SYS_openat => {
            return opened(nr, a).and_then(|(dir, path, flags)| open(dir, path, flags));
        }
        libc::SYS_readlink => return read_link(a[0], a[1], a[2]),
        libc::SYS_readlinkat => return read_link(a[1], a[2], a[3]),
        _ => {}
    }
    if let Some(result) = event::call(nr, a).or_else(|| epoll::call(nr, a)).or_else(|| pidfd::call(nr, a)) {
        return Some(result);
    }
    if !world().has_fds(local().pid) {
        return if of_sockets(nr) { not_a_socket(nr, a) } else { None };
    }
    match nr {
        libc::SYS_close_range => {
            close_range(a[0] as u32, a[1] as u32, a[2]);
            return None;
        }
        libc::SYS_dup2 | libc::SYS_dup3 if a[0] as i32 != a[1] as i32 => return duplicate_to(nr, a),
        libc::SYS_newfstatat if a[3] as i32 & libc::AT_EMPTY_PATH != 0 && load::<u8>(a[1]) == 0 => {
            return find(a[0]).map(|desc| stat(desc, a[2]));
        }
        libc::SYS_statx if a[2] as i32 & libc::AT_EMPTY_PATH != 0 && load::<u8>(a[1]) == 0 => {
            return find(a[0]).map(|desc| statx(desc, a[4]));
        }
        libc::SYS_mmap if a[3] as i32 & libc::MAP_ANONYMOUS == 0 => {
            return find(a[4])
                .map(|desc| if world().descs[desc].flags & ACCESS == WRITE_ONLY { EACCES } else { ENODEV });
        }
        libc::SYS_tee => return splice::tee(a),
        libc::SYS_utimensat if a[1] == 0 => {
            let anonymous = |kind| !matches!(kind, DescKind::PIPE | DescKind::SOCKET | DescKind::QUEUE);
            return find(a[0]).map(|desc| if anonymous(world().descs[desc].kind) { EOPNOTSUPP } else { 0 });
        }
        libc::SYS_sendfile => return splice::send_file(a),
        libc::SYS_splice => return splice::splice(a),
        libc::SYS_copy_file_range if find(a[0]).is_some() || find(a[2]).is_some() => return Some(EINVAL),
        _ => {}
    }
    if !takes_fd(nr) {
        return None;
    }
    let Some(desc) = find(a[0]) else {
        return if of_sockets(nr) { not_a_socket(nr, a) } else { None };
    };
    Some(on(nr, desc, a))
}

/// Call `nr` with a descriptor of the model as its first argument.
fn on(nr: i64, desc: DescId, a: [u64; 6]) -> i64 {
    if let Some(error) = denied(nr, desc, a) {
        return error;
    }
    if let Some(result) = event::on(nr, desc, a) {
        return result;
    }
    let kind = world().descs[desc].kind;
    if kind == DescKind::SOCKET {
        if let Some(result) = socket_call(nr, desc, a) {
            return result;
        }
    }
    if kind == DescKind::QUEUE {
        if let Some(result) = mqueue::on(nr, desc, a) {
            return result;
        }
    }
    match nr {
        libc::SYS_close => fd::close(a[0] as i32),
        libc::SYS_dup | libc::SYS_dup2 | libc::SYS_dup3 => duplicate(nr, desc, a),
        libc::SYS_fcntl => control(desc, a),
        libc::SYS_fstat => stat(desc, a[1]),
        libc::SYS_read if kind == DescKind::PIPE => pipe::read(desc, Memory::one(a[1], a[2])),
        libc::SYS_write if kind == DescKind::PIPE => pipe::write(desc, Memory::one(a[1], a[2])),
        libc::SYS_readv if kind == DescKind::PIPE => vector(a[1], a[2], |memory| pipe::read(desc, memory)),
        libc::SYS_writev if kind == DescKind::PIPE => vector(a[1], a[2], |memory| pipe::write(desc, memory)),
        libc::SYS_lseek => ESPIPE,
        libc::SYS_preadv2 | libc::SYS_pwritev2 if a[3] as i64 == -1 && a[5] == 0 && kind == DescKind::PIPE => {
            let transfer = if nr == libc::SYS_preadv2 { pipe::read } else { pipe::write };
            vector(a[1], a[2], |memory| transfer(desc, memory))
        }
        libc::SYS_ioctl => ioctl(desc, a),
        libc::SYS_accept4 if kind != DescKind::SOCKET && a[3] as i32 & !socket::FLAGS != 0 => EINVAL,
        _ if of_sockets(nr) && kind != DescKind::SOCKET => ENOTSOCK,
        _ => without_file(nr, desc, a).unwrap_or_else(|| refuse(nr, desc, a)),
    }
}

/// Calls that read or write through a descriptor that was not opened for it, and arguments that no descriptor takes.
fn denied(nr: i64, desc: DescId, a: [u64; 6]) -> Option<i64> {
    const SEEK_HOLE: u64 = 4;
    let access = world().descs[desc].flags & ACCESS;
    match nr {
        libc::SYS_read | libc::SYS_readv | libc::SYS_preadv2 if access == WRITE_ONLY => Some(EBADF),
        libc::SYS_write | libc::SYS_writev | libc::SYS_pwritev2 if access == READ_ONLY => Some(EBADF),
        libc::SYS_lseek if a[2] as u32 as u64 > SEEK_HOLE => Some(EINVAL),
        _ => None,
    }
}

/// What calls that are about files give for a descriptor that has none behind it.
fn without_file(nr: i64, desc: DescId, a: [u64; 6]) -> Option<i64> {
    let d = world().descs[desc];
    let (pipe, access) = (d.kind == DescKind::PIPE, d.flags & ACCESS);
    Some(match nr {
        libc::SYS_pread64 | libc::SYS_pwrite64 | libc::SYS_preadv | libc::SYS_pwritev => ESPIPE,
        libc::SYS_preadv2 | libc::SYS_pwritev2 if a[3] as i64 != -1 => ESPIPE,
        libc::SYS_preadv2 | libc::SYS_pwritev2 if a[5] & !0xff != 0 => EOPNOTSUPP,
        libc::SYS_fallocate if (a[2] as i64) < 0 || a[3] as i64 <= 0 => EINVAL,
        libc::SYS_fallocate if access == READ_ONLY => EBADF,
        libc::SYS_fallocate if pipe => ESPIPE,
        libc::SYS_fallocate => ENODEV,
        libc::SYS_readahead if access == WRITE_ONLY => EBADF,
        libc::SYS_readahead => EINVAL,
        libc::SYS_fadvise64 if pipe => ESPIPE,
        libc::SYS_fadvise64 if a[3] > 5 => EINVAL,
        libc::SYS_fadvise64 => 0,
        libc::SYS_sync_file_range => ESPIPE,
        libc::SYS_fsync | libc::SYS_fdatasync | libc::SYS_ftruncate => EINVAL,
        libc::SYS_getdents | libc::SYS_getdents64 | libc::SYS_fchdir => ENOTDIR,
        libc::SYS_fchmod | libc::SYS_fchown => 0,
        // Only files and directories have those of users.
        libc::SYS_fgetxattr => ENODATA,
        libc::SYS_fsetxattr | libc::SYS_flistxattr | libc::SYS_fremovexattr => EOPNOTSUPP,
        libc::SYS_fstatfs => file_system(d.kind, a[1]),
        libc::SYS_vmsplice => splice::vmsplice(desc, a),
        libc::SYS_flock if !matches!(a[1] as i32 & !libc::LOCK_NB, libc::LOCK_SH | libc::LOCK_EX | libc::LOCK_UN) => {
            EINVAL
        }
        _ => return None,
    })
}

/// fstatfs: where the kernel keeps what has no name.
fn file_system(kind: DescKind, at: u64) -> i64 {
    let magic: u64 = match kind {
        DescKind::PIPE => 0x5049_5045,
        DescKind::SOCKET => 0x534f_434b,
        DescKind::QUEUE => 0x1980_0202,
        _ => 0x0904_1934,
    };
    zero(at, 120);
    store(at, [magic, 4096]);
    store(at + 64, [255u64, 4096, 0x20]);
    0
}

fn close_range(first: u32, last: u32, flags: u64) {
    const CLOSE_RANGE_CLOEXEC: u64 = 4;
    if flags & CLOSE_RANGE_CLOEXEC != 0 || first > last {
        return;
    }
    let number = |n: u32| n.min(i32::MAX as u32) as i32;
    // Record locks go first.
    locks::close_locked(number(first), number(last), false);
    fd::forget_all(number(first), number(last), |_| true);
}

/// dup, and dup2 of a descriptor to itself.
fn duplicate(nr: i64, desc: DescId, a: [u64; 6]) -> i64 {
    if nr != libc::SYS_dup {
        return if nr == libc::SYS_dup3 { EINVAL } else { a[1] as i64 };
    }
    fd::again(nr, a, desc)
}

/// dup2 and dup3 with two numbers. `None`: neither is of the model.
fn duplicate_to(nr: i64, a: [u64; 6]) -> Option<i64> {
    let (from, to) = (find(a[0]), find(a[1]));
    if from.is_none() && to.is_none() || fd::is_ours(a[1]) {
        return None;
    }
    if from.is_none() && !fd::is_open(a[0]) {
        return Some(EBADF);
    }
    if to.is_some() {
        fd::forget(a[1] as i32);
    }
    if from.is_some() {
        files::forget_descriptor(a[1] as i32);
    }
    let closing = locks::before_close(a[1] as i32);
    let fd = raw!(nr, a[0], a[1], a[2]);
    locks::after_close(closing);
    Some(match find(a[0]) {
        Some(desc) => fd::named(fd, desc),
        None => fd,
    })
}

fn control(desc: DescId, a: [u64; 6]) -> i64 {
    match a[1] as i32 {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => fd::again(libc::SYS_fcntl, a, desc),
        libc::F_GETFD | libc::F_SETFD => raw!(libc::SYS_fcntl, a[0], a[1], a[2]),
        libc::F_GETFL => i64::from(world().descs[desc].flags),
        libc::F_SETFL => {
            let flags = a[2] as u32;
            if flags & (libc::O_ASYNC as u32) != 0 {
                end::unsupported(&[b"O_ASYNC: signals for input on a descriptor"]);
            }
            if flags & (libc::O_DIRECT as u32) != 0 && world().descs[desc].kind == DescKind::PIPE {
                end::unsupported(&[b"a pipe in packet mode (O_DIRECT)"]);
            }
            fd::set_flags(desc, world().with_settable(desc, flags));
            0
        }
        libc::F_GETPIPE_SZ => pipe::size(desc),
        libc::F_SETPIPE_SZ => pipe::resize(desc, a[2]),
        libc::F_ADD_SEALS | libc::F_GET_SEALS => EINVAL,
        8..=11 | 15 | 16 => owner::control(desc, a).unwrap_or(EINVAL),
        12 | 13 | 14 | 18..=35 | 39..=1023 | 1041.. => EINVAL,
        ..=-1 => EINVAL,
        _ => refuse(libc::SYS_fcntl, desc, a),
    }
}

fn ioctl(desc: DescId, a: [u64; 6]) -> i64 {
    match a[1] & 0xffff_ffff {
        libc::FIONREAD => {
            let d = world().descs[desc];
            // Both ends of a pipe tell.
            let input = if d.kind == DescKind::PIPE && d.input == NONE { d.output } else { d.input };
            if input == NONE {
                return EINVAL;
            }
            fd::control(desc);
            let held = match world().descs[desc].kind {
                DescKind::SOCKET => socket::pending_bytes(desc),
                _ => world().channels[input].len() as i64,
            };
            if held < 0 {
                return held;
            }
            store(a[2], held as i32);
            0
        }
        libc::FIONBIO => {
            let on = load::<i32>(a[2]) != 0;
            let flags = world().descs[desc].flags;
            fd::set_flags(desc, if on { flags | NONBLOCK } else { flags & !NONBLOCK });
            0
        }
        // Input does not send SIGIO, and the report says that something was not modelled.
        libc::FIOASYNC => {
            if load::<i32>(a[2]) != 0 {
                model().never_comes(SIGIO);
            }
            0
        }
        libc::FIOCLEX => raw!(libc::SYS_fcntl, a[0], libc::F_SETFD, libc::FD_CLOEXEC),
        libc::FIONCLEX => raw!(libc::SYS_fcntl, a[0], libc::F_SETFD, 0),
        0x8901..=0x8904 if world().descs[desc].kind == DescKind::SOCKET => owner::ioctl(desc, a).unwrap_or(ENOTTY),
        // SIOCATMARK: nothing is urgent.
        0x8905 if world().descs[desc].kind == DescKind::SOCKET => {
            store(a[2], 0i32);
            0
        }
        0x8910..=0x8970 if world().descs[desc].kind == DescKind::SOCKET => {
            let domain = world().sockets[socket::of(desc)].domain;
            interfaces::ioctl(domain, a[1] as u32, a[2]).unwrap_or_else(|| refuse(libc::SYS_ioctl, desc, a))
        }
        // SIOCOUTQ, FIBMAP, FIGETBSZ: these are answered.
        0x5411 if world().descs[desc].kind == DescKind::SOCKET => refuse(libc::SYS_ioctl, desc, a),
        1 | 2 => refuse(libc::SYS_ioctl, desc, a),
        0x8900..=0x89ff if world().descs[desc].kind == DescKind::SOCKET => refuse(libc::SYS_ioctl, desc, a),
        // Whether it is a terminal, and what nobody knows.
        _ => ENOTTY,
    }
}

/// Device of what has no name in a file system.
const NO_DEVICE: u64 = 14;

/// (device, inode) of a FIFO.
fn inode_of_fifo(desc: DescId) -> Option<(u64, u64)> {
    let d = world().descs[desc];
    let channel = if d.input != NONE { d.input } else { d.output };
    world().fifo_of(channel).map(|fifo| (fifo.dev, fifo.ino))
}

/// (mode, inode) that stat gives.
fn identity(desc: DescId) -> (u32, u64) {
    let d = world().descs[desc];
    let channel = if d.input != NONE { d.input } else { d.output };
    if let Some((_, ino)) = inode_of_fifo(desc) {
        return (libc::S_IFIFO | 0o600, ino);
    }
    let name = world().channels.as_slice().get(channel as usize).map_or(0, |c| c.maker.0 << 8 ^ u64::from(c.number));
    let mode = match d.kind {
        DescKind::PIPE => libc::S_IFIFO | 0o600,
        DescKind::SOCKET => libc::S_IFSOCK | 0o777,
        DescKind::QUEUE => mqueue::mode(desc),
        DescKind::PROCESS => 0o700,
        _ => 0o600,
    };
    (mode, 10_000 + (name & 0xffff_ffff))
}

/// Bytes that stat gives: those of the file of a message queue.
fn size_of(desc: DescId) -> u64 {
    if world().descs[desc].kind == DescKind::QUEUE {
        mqueue::size(desc)
    } else {
        0
    }
}

/// Names that stat gives.
fn links_of(desc: DescId) -> u32 {
    let d = world().descs[desc];
    u32::from(d.kind != DescKind::QUEUE || world().mqueue_called(world().channel_obj(d.input)).is_some())
}

fn stat(desc: DescId, at: u64) -> i64 {
    let (mode, inode) = identity(desc);
    zero(at, 144);
    store(at, inode_of_fifo(desc).map_or(NO_DEVICE, |(dev, _)| dev));
    store(at + 8, inode);
    store(at + 16, u64::from(links_of(desc)));
    store(at + 24, mode);
    store(at + 28, raw!(libc::SYS_getuid) as u32);
    store(at + 32, raw!(libc::SYS_getgid) as u32);
    store(at + 48, size_of(desc));
    store(at + 56, 4096u64);
    0
}

fn statx(desc: DescId, at: u64) -> i64 {
    let (mode, inode) = identity(desc);
    zero(at, 256);
    store(at, 0x7ffu32);
    store(at + 4, 4096u32);
    store(at + 16, links_of(desc));
    store(at + 20, raw!(libc::SYS_getuid) as u32);
    store(at + 24, raw!(libc::SYS_getgid) as u32);
    store(at + 28, mode as u16);
    store(at + 32, inode);
    store(at + 40, size_of(desc));
    0
}

/// The descriptor that a path like /dev/fd/5 or /proc/self/fd/5 names, if it is of the model.
fn by_path(path: u64) -> Option<(i32, DescId)> {
    if path == 0 || load::<u8>(path) != b'/' {
        return None;
    }
    let path = cstr(path, 64);
    let number = match path {
        b"/dev/stdin" => b"0",
        b"/dev/stdout" => b"1",
        b"/dev/stderr" => b"2",
        _ => path.strip_prefix(b"/dev/fd/").or_else(|| path.strip_prefix(b"/proc/self/fd/"))?,
    };
    if number.is_empty() || number.len() > 5 || !number.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let fd = number.iter().fold(0, |n, &digit| n * 10 + i32::from(digit - b'0'));
    if !numbers::look(fd).stands {
        return None;
    }
    find(fd as u64).map(|desc| (fd, desc))
}

/// Opens what is of the model by its path.
fn open(dir: i32, path: u64, flags: i32) -> Option<i64> {
    open_again(path, flags).or_else(|| pipe::open_fifo(dir, path, flags))
}

/// The directory, path and flags of call `nr`, if it opens something.
fn opened(nr: i64, a: [u64; 6]) -> Option<(i32, u64, i32)> {
    match nr {
        libc::SYS_open => Some((libc::AT_FDCWD, a[0], a[1] as i32)),
        libc::SYS_creat => Some((libc::AT_FDCWD, a[0], libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC)),
        libc::SYS_openat => Some((a[0] as i32, a[1], a[2] as i32)),
        _ => None,
    }
}

/// Call `nr` opens what is a FIFO now.
pub fn opens_fifo(nr: i64, a: [u64; 6]) -> bool {
    opened(nr, a).is_some_and(|(dir, path, flags)| pipe::is_fifo(dir, path, flags))
}

/// open of /dev/fd/N: a pipe is opened once more.
fn open_again(path: u64, flags: i32) -> Option<i64> {
    let (_, desc) = by_path(path)?;
    let d = world().descs[desc];
    if d.kind != DescKind::PIPE {
        return Some(ENXIO);
    }
    let channel = if d.input != NONE { d.input } else { d.output };
    let access = flags as u32 & ACCESS;
    let input = if access == WRITE_ONLY { NONE } else { channel };
    let output = if access == READ_ONLY { NONE } else { channel };
    fd::settle(desc);
    let kept = flags as u32 & (ACCESS | NONBLOCK | libc::O_APPEND as u32);
    let new = fd::new_desc(DescKind::PIPE, kept, input, output);
    Some(fd::install(new, flags & libc::O_CLOEXEC != 0))
}

fn read_link(path: u64, buffer: u64, size: u64) -> Option<i64> {
    let (_, desc) = by_path(path)?;
    let (_, inode) = identity(desc);
    let kind: &[u8] = match world().descs[desc].kind {
        DescKind::PIPE => b"pipe:[",
        DescKind::SOCKET => b"socket:[",
        // What it was called is not kept.
        DescKind::QUEUE if links_of(desc) == 0 => end::unsupported(&[b"readlink on an unlinked message queue"]),
        DescKind::QUEUE => b"",
        _ => b"anon_inode:[",
    };
    let number = decimal(inode as i64);
    let rest = match world().descs[desc].kind {
        DescKind::QUEUE => [world().mqueue_called(world().channel_obj(world().descs[desc].input)).unwrap_or(b""), b""],
        _ => [&*number, b"]"],
    };
    let mut n = 0;
    for part in [kind, rest[0], rest[1]] {
        for &byte in part {
            if n < size {
                store(buffer + n, byte);
                n += 1;
            }
        }
    }
    Some(n as i64)
}

/// The program has been replaced: what was marked so is closed.
pub fn after_exec() {
    fd::forget_all(0, i32::MAX, |fd| !fd::is_open(fd as u64));
}

/// Puts what stands for descriptors of the model in its place.
pub fn make_place() {
    if fd::is_open(PLACE_FD as u64) {
        return;
    }
    // No directory: names are not found below it.
    let fd = raw!(libc::SYS_open, c"/dev/null".as_ptr(), libc::O_PATH);
    if fd >= 0 {
        raw!(libc::SYS_dup2, fd, PLACE_FD);
        raw!(libc::SYS_close, fd);
    }
}

/// Call `nr` with a socket as its first argument. `None`: it is none of those that only sockets have.
fn socket_call(nr: i64, desc: DescId, a: [u64; 6]) -> Option<i64> {
    let domain = world().sockets[socket::of(desc)].domain;
    Some(match nr {
        libc::SYS_read if a[2] == 0 => 0,
        libc::SYS_read => message::receive(desc, Memory::one(a[1], a[2]), 0),
        libc::SYS_write => message::send(desc, Memory::one(a[1], a[2]), 0),
        libc::SYS_readv => vector(a[1], a[2], |memory| message::receive(desc, memory, 0)),
        libc::SYS_writev => vector(a[1], a[2], |memory| message::send(desc, memory, 0)),
        libc::SYS_preadv2 if a[3] as i64 == -1 && a[5] == 0 => {
            vector(a[1], a[2], |memory| message::receive(desc, memory, 0))
        }
        libc::SYS_pwritev2 if a[3] as i64 == -1 && a[5] == 0 => {
            vector(a[1], a[2], |memory| message::send(desc, memory, 0))
        }
        libc::SYS_recvfrom => message::recvfrom(desc, a),
        libc::SYS_sendto => message::sendto(desc, a),
        libc::SYS_recvmsg => message::recvmsg(desc, a[1], a[2] as i32).0,
        libc::SYS_sendmsg => message::sendmsg(desc, a[1], a[2] as i32),
        libc::SYS_recvmmsg => message::recvmmsg(desc, a),
        libc::SYS_sendmmsg => message::sendmmsg(desc, a),
        libc::SYS_bind => match address::read(a[1], a[2], domain) {
            Ok(address) => socket::bind(desc, address),
            Err(error) => error,
        },
        libc::SYS_listen => socket::listen(desc, a[1] as i32),
        libc::SYS_connect => match address::read(a[1], a[2], domain) {
            Ok(address) => match world().sockets[socket::of(desc)].domain {
                NETLINK => netlink::connect(desc, &address),
                _ => socket::connect(desc, address),
            },
            Err(error) => error,
        },
        libc::SYS_accept => socket::accept(desc, a[1], a[2], 0),
        libc::SYS_accept4 if a[3] as i32 & !socket::FLAGS != 0 => EINVAL,
        libc::SYS_accept4 => socket::accept(desc, a[1], a[2], a[3] as i32),
        libc::SYS_shutdown => socket::shutdown(desc, a[1] as i32),
        libc::SYS_getsockname => fd::throughout(desc, || {
            fd::settle(desc);
            let address = world().sockets[socket::of(desc)].local;
            address::write(&address, domain, a[1], a[2]);
            0
        }),
        libc::SYS_getpeername => fd::throughout(desc, || socket::peer_name(desc, a)),
        libc::SYS_setsockopt => fd::throughout(desc, || sockopt::set(desc, a)),
        libc::SYS_getsockopt => fd::throughout(desc, || sockopt::get(desc, a)),
        _ => return None,
    })
}
