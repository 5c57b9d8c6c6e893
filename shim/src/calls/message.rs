//! What sockets send and receive: bytes, addresses, and descriptors that go along with them.

use vsrun_model::address::{INET, INET6, NETLINK};
use vsrun_model::fd::{DescId, DescKind, NONBLOCK};
use vsrun_model::socket::{
    Credentials, Message, SockState, Socket, CONNECTED_BY_ADDRESS, HURRIES, PASS_CRED, PEEK, SEQPACKET, STAMPED,
    STAMPED_NEW, STAMPED_NS, STREAM, TO_ADDRESS,
};
use vsrun_model::{inject as fault, op, Address, Kind, Op, NONE};

use super::control::{Control, Source};
use super::memory::{copy, lacking, refuse_part, Memory};
use super::{address, control, fd, mail, netlink, numbers, pipe, socket, sockopt, time};
use crate::gate::{self, end, inject, local, me, model, note_passed, world};
use crate::sys::errno::*;
use crate::sys::{decimal, guard, load, store, touch, writable};

/// Bytes of struct msghdr.
const HEADER: u64 = 56;
/// Most descriptors in one message.
const MAX_RIGHTS: u64 = 253;

/// What a receive gives.
struct Received {
    /// Bytes put into memory, or a negative error number.
    n: i64,
    /// Bytes that the message had.
    whole: u64,
    /// There was something, if only an empty message.
    got: bool,
    /// What came along; its list of descriptions is the receiver's.
    message: Message,
    /// What has been written of that already has these flags.
    told: Option<i32>,
}

impl Received {
    fn nothing(n: i64) -> Received {
        Received { n, whole: 0, got: false, message: Message::default(), told: None }
    }

    /// Descriptions that come along, which nobody asks for, are gone.
    fn drop_rights(&mut self) {
        model().rights_drop(core::mem::replace(&mut self.message.rights, NONE));
    }
}

fn check_flags(flags: i32, call: &[u8]) {
    let odd = [(libc::MSG_OOB, &b"MSG_OOB"[..]), (libc::MSG_FASTOPEN, b"MSG_FASTOPEN"), (0x400_0000, b"MSG_ZEROCOPY")];
    if let Some((_, name)) = odd.iter().find(|(bit, _)| flags & bit != 0) {
        end::unsupported(&[call, b" with ", name]);
    }
}

/// `along` is called with what has come, before a handler runs, which may not return.
fn take(
    desc: DescId,
    memory: &Memory,
    skip: u64,
    wanted: u64,
    flags: i32,
    along: &mut dyn FnMut(&mut Received),
) -> Received {
    let s = socket::of(desc);
    let sock = world().sockets[s];
    let mut op = world().channel_op(Kind::FD_READ, sock.input, wanted as i64);
    op.mask = world().desc_bits(desc);
    let peek = flags & libc::MSG_PEEK != 0;
    if peek {
        op = op.with(PEEK);
    }
    if skip > 0 {
        op = op.with(op::PARTIAL);
    }
    // TCP throws away what is to be cut off.
    let thrown_away = sock.is_tcp() && flags & libc::MSG_TRUNC != 0;
    // What a message holds is lost then; a stream keeps it.
    if sock.typ == STREAM && wanted > 0 && !thrown_away {
        op = lacking(op, memory.writable(skip, wanted), wanted);
    }
    let op = socket::timed(op, desc, sock.receive_timeout, flags & libc::MSG_DONTWAIT != 0);
    let mut received = Received::nothing(0);
    received.n = fd::pass(desc, op, |n| {
        let [from, whole, got] = me().out;
        (received.whole, received.got) = (whole as u64, got != 0);
        if n < 0 || got == 0 {
            return;
        }
        received.message = world().received;
        if peek {
            received.message.rights = again(received.message.rights);
        }
        if let Some(notice) = received.message.from.said() {
            memory.put_at(skip, &notice[..n as usize]);
        } else if n > 0 && !thrown_away {
            copy(sock.input, from as u64, memory, skip, n as u64, false);
            if guard::failed() && sock.typ == STREAM {
                refuse_part();
            }
        }
        received.n = n;
        along(&mut received);
    });
    received
}

/// A list of the same descriptions.
fn again(rights: u32) -> u32 {
    let (mut at, mut list) = (rights, NONE);
    while at != NONE {
        let right = world().rights[at];
        list = add_right(list, right.desc);
        at = right.next;
    }
    list
}

fn add_right(list: u32, desc: DescId) -> u32 {
    model()
        .rights_push(list, desc)
        .unwrap_or_else(|| end::no_room(&[b"more descriptors under way in messages than vsrun can hold"]))
}

/// Where that fault is asked for, the connection of a TCP socket may be reset before it is used.
fn may_be_reset(desc: DescId) {
    let s = socket::of(desc);
    let sock = world().sockets[s];
    if sock.is_tcp() && sock.state == SockState::CONNECTED && inject::strikes(fault::RESET) {
        model().break_connection(s);
    }
}

/// Receives into memory; a stream goes on until it is full where all is wanted. `along`: see [`take`].
fn receive_all(desc: DescId, memory: &Memory, flags: i32, along: &mut dyn FnMut(&mut Received)) -> Received {
    let sock = world().sockets[socket::of(desc)];
    if !memory.is_possible() {
        return Received::nothing(EFAULT);
    }
    // A stream waits for what none is wanted of.
    let wanted = memory.len();
    may_be_reset(desc);
    let wanted = match pipe::faults(world().descs[desc], wanted) {
        Ok(n) if sock.typ == STREAM => n,
        Ok(_) => wanted,
        Err(n) => return Received::nothing(n),
    };
    let mut all = take(desc, memory, 0, wanted, flags, along);
    let on = sock.typ == STREAM && flags & libc::MSG_WAITALL != 0 && flags & (libc::MSG_DONTWAIT | libc::MSG_PEEK) == 0;
    let mut last = all.n;
    while on && all.n > 0 && (all.n as u64) < wanted && all.message.rights == NONE {
        memory.came((all.n - last) as u64, last as u64);
        let more = take(desc, memory, all.n as u64, wanted - all.n as u64, flags, along);
        if more.n <= 0 {
            break;
        }
        all.n += more.n;
        last = more.n;
        (all.message.rights, all.told) = (more.message.rights, more.told);
    }
    all
}

/// Receives without asking for what comes along.
pub fn receive(desc: DescId, memory: Memory, flags: i32) -> i64 {
    check_flags(flags, b"recv");
    if flags & libc::MSG_ERRQUEUE != 0 {
        return EAGAIN;
    }
    let received = fd::throughout(desc, || receive_all(desc, &memory, flags, &mut Received::drop_rights));
    result_of(&received, flags)
}

fn result_of(received: &Received, flags: i32) -> i64 {
    if flags & libc::MSG_TRUNC != 0 && received.n >= 0 {
        received.n.max(received.whole as i64)
    } else {
        received.n
    }
}

/// True if receivers are told where it came from.
fn tells_sender(sock: &Socket) -> bool {
    !sock.is_tcp()
}

/// recvfrom and recv.
pub fn recvfrom(desc: DescId, a: [u64; 6]) -> i64 {
    let flags = a[3] as i32;
    check_flags(flags, b"recvfrom");
    if flags & libc::MSG_ERRQUEUE != 0 {
        return EAGAIN;
    }
    let sock = world().sockets[socket::of(desc)];
    let memory = Memory::one(a[1], a[2]);
    let received = fd::throughout(desc, || receive_all(desc, &memory, flags, &mut Received::drop_rights));
    if received.n >= 0 && a[4] != 0 {
        sender_to(&sock, &received, a[4], a[5]);
    }
    result_of(&received, flags)
}

fn sender_to(sock: &Socket, received: &Received, at: u64, len_at: u64) {
    let from = &received.message.from;
    let known = received.got && tells_sender(sock) && (!sock.is_local() || from.len > 0);
    if known {
        address::write(from, sock.domain, at, len_at);
    } else {
        store(len_at, 0u32);
    }
}

/// recvmsg: what it gives, and the flags of the message.
pub fn recvmsg(desc: DescId, header: u64, flags: i32) -> (i64, i32) {
    check_flags(flags, b"recvmsg");
    if flags & libc::MSG_ERRQUEUE != 0 {
        return (EAGAIN, 0);
    }
    let sock = world().sockets[socket::of(desc)];
    touch(header, HEADER);
    if sock.is_tcp() && sock.options & STAMPED != 0 {
        end::unsupported(&[b"recvmsg on a TCP socket with SO_TIMESTAMP"]);
    }
    let (iov, n): (u64, u64) = (load(header + 16), load(header + 24));
    if n > 1024 {
        return (EMSGSIZE, 0);
    }
    let memory = Memory::many(iov, n);
    let mut along = |received: &mut Received| {
        if received.message.rights == NONE {
            return;
        }
        // Beside other threads it is seen which numbers it gets.
        if gate::is_threaded() {
            model().send_along(local().cur, received.message.rights);
        } else {
            received.told = Some(control_to(&sock, received, header, flags));
        }
    };
    let received = fd::throughout(desc, || receive_all(desc, &memory, flags, &mut along));
    if received.message.rights != NONE && received.told.is_none() {
        model().send_along(local().cur, NONE);
    }
    if received.n < 0 {
        return (received.n, 0);
    }
    let mut told = if received.whole > received.n as u64 { libc::MSG_TRUNC } else { 0 };
    if sock.typ == SEQPACKET && received.got {
        told |= libc::MSG_EOR;
    }
    let name: u64 = load(header);
    if name != 0 {
        sender_to(&sock, &received, name, header + 8);
    }
    told |= received.told.unwrap_or_else(|| control_to(&sock, &received, header, flags));
    store(header + 48, told);
    (result_of(&received, flags), told)
}

/// Writes what comes along with a message; gives MSG_CTRUNC if there was no room for it.
fn control_to(sock: &Socket, received: &Received, header: u64, flags: i32) -> i32 {
    let (at, room): (u64, u64) = (load(header + 32), load(header + 40));
    // As if there were none.
    let room = if room > 0 && writable(at, room) < room { 0 } else { room };
    let mut control = Control::new(at, room);
    if sock.options & STAMPED != 0 && sock.typ != STREAM && received.got {
        let (typ, part) = match (sock.options & STAMPED_NS != 0, sock.options & STAMPED_NEW != 0) {
            (true, true) => (sockopt::SO_TIMESTAMPNS_NEW, 1),
            (true, false) => (libc::SCM_TIMESTAMPNS, 1),
            (false, true) => (sockopt::SO_TIMESTAMP_NEW, 1000),
            (false, false) => (libc::SCM_TIMESTAMP, 1000),
        };
        let ns = time::real(received.message.sent);
        let mut stamp = [0; 16];
        stamp[..8].copy_from_slice(&(ns / 1_000_000_000).to_ne_bytes());
        stamp[8..].copy_from_slice(&(ns % 1_000_000_000 / part).to_ne_bytes());
        control.put(libc::SOL_SOCKET, typ, &stamp);
    }
    if sock.is_dgram() && !sock.is_local() && received.got {
        control.put_destination(sock, &received.message);
    }
    if sock.is_local() && sock.options & PASS_CRED != 0 && received.got {
        let Credentials { pid, uid, gid } = received.message.cred;
        let mut cred = [0; 12];
        cred[..4].copy_from_slice(&pid.to_ne_bytes());
        cred[4..8].copy_from_slice(&uid.to_ne_bytes());
        cred[8..].copy_from_slice(&gid.to_ne_bytes());
        control.put(libc::SOL_SOCKET, libc::SCM_CREDENTIALS, &cred);
    }
    let Control { mut used, mut told, .. } = control;
    let mut right = received.message.rights;
    let mut count = 0;
    while right != NONE {
        let desc = world().rights[right].desc;
        if used + 16 + 4 * (count + 1) > room {
            told |= libc::MSG_CTRUNC;
            break;
        }
        let fd = receive_descriptor(desc, flags & libc::MSG_CMSG_CLOEXEC != 0);
        if fd < 0 {
            told |= libc::MSG_CTRUNC;
            break;
        }
        store(at + used + 16 + 4 * count, fd as i32);
        count += 1;
        right = world().rights[right].next;
    }
    if count > 0 {
        begin(at + used, 16 + 4 * count, libc::SCM_RIGHTS);
        used = (used + (16 + 4 * count).div_ceil(8) * 8).min(room);
    }
    model().rights_drop(received.message.rights);
    store(header + 40, used);
    told | flags & libc::MSG_CMSG_CLOEXEC
}

/// Gives the receiver a descriptor of what a message carries: its number, or a negative error number. The message keeps
/// its reference.
fn receive_descriptor(desc: DescId, cloexec: bool) -> i64 {
    numbers::before_received();
    if world().descs[desc].kind == DescKind::FILE {
        let fd = mail::take(desc, cloexec);
        numbers::received(fd);
        return fd;
    }
    // Where there is no number left, this reference is dropped.
    model().desc_refer(desc);
    let fd = fd::install(desc, cloexec);
    if fd >= 0 {
        model().desc_unrefer(desc);
    }
    numbers::received(fd);
    fd
}

fn begin(at: u64, len: u64, typ: i32) {
    store(at, len);
    store(at + 8, libc::SOL_SOCKET);
    store(at + 12, typ);
}

/// recvmmsg.
pub fn recvmmsg(desc: DescId, a: [u64; 6]) -> i64 {
    let until = match a[4] {
        0 => None,
        at => match time::timespec(at) {
            Some(ns) => Some(time::relative(ns)),
            None => return EINVAL,
        },
    };
    let mut flags = a[3] as i32;
    let mut done = 0;
    while done < a[2].min(1024) && !is_missing(a[1], done) {
        let (n, _) = recvmsg(desc, a[1] + 64 * done, flags & !libc::MSG_WAITFORONE);
        if n < 0 {
            return if done > 0 { done as i64 } else { n };
        }
        store(a[1] + 64 * done + 56, n as u32);
        done += 1;
        if flags & libc::MSG_WAITFORONE != 0 {
            flags |= libc::MSG_DONTWAIT;
        }
        if let Some(until) = until {
            let over = done < a[2].min(1024) && is_over(until);
            time::put_timespec(a[4], if over { 0 } else { until.saturating_sub(model().told_clock()) });
            if over {
                break;
            }
        }
    }
    done as i64
}

/// Whether the kernel, which looks at the time after each message only (net/socket.c, do_recvmmsg), finds it over: at any moment it may
/// have passed.
fn is_over(until: u64) -> bool {
    if model().told_clock() >= until {
        return true;
    }
    if !world().timeouts_any {
        model().left_timeouts_out();
        return false;
    }
    gate::pass(Op::new(Kind::TOSS).arg(1)) == 1
}

/// The headers from `at` on of several messages end before that one, which is not the first.
fn is_missing(at: u64, one: u64) -> bool {
    one > 0 && writable(at + 64 * one, 64) < 64
}

/// Sends without an address.
pub fn send(desc: DescId, memory: Memory, flags: i32) -> i64 {
    send_to(desc, memory, flags, None, NONE, None)
}

/// sendto and send.
pub fn sendto(desc: DescId, a: [u64; 6]) -> i64 {
    let sock = world().sockets[socket::of(desc)];
    let domain = sock.domain;
    let to = match a[4] {
        0 => None,
        _ if a[5] as i32 > 128 || (a[5] as i32) < 0 => return EINVAL,
        // Connections do not look at it.
        at if sock.is_tcp() => {
            touch(at, u64::from(a[5] as u32));
            None
        }
        at => match address::read(at, a[5], domain) {
            Ok(address) if address.family != 0 => Some(address),
            Ok(_) => None,
            Err(error) => return error,
        },
    };
    send_to(desc, Memory::one(a[1], a[2]), a[3] as i32, to, NONE, None)
}

/// sendmsg.
pub fn sendmsg(desc: DescId, header: u64, flags: i32) -> i64 {
    let sock = world().sockets[socket::of(desc)];
    touch(header, HEADER);
    let (name, name_len): (u64, u32) = (load(header), load(header + 8));
    let (iov, n): (u64, u64) = (load(header + 16), load(header + 24));
    if n > 1024 {
        return EMSGSIZE;
    }
    let to = match (name, name_len) {
        (0, _) | (_, 0) => None,
        _ if sock.is_tcp() => {
            touch(name, u64::from(name_len).min(128));
            None
        }
        _ => match address::read(name, name_len.into(), sock.domain) {
            Ok(address) if address.family != 0 => Some(address),
            Ok(_) => None,
            Err(error) => return error,
        },
    };
    let (rights, cred) = match control_from(&sock, load(header + 32), load(header + 40), to.as_ref()) {
        Ok(control) => control,
        Err(error) => return error,
    };
    send_to(desc, Memory::many(iov, n), flags, to, rights, cred)
}

/// A sender may say where its datagram is to come from, in the way of that level.
fn takes_source(sock: &Socket, level: i32) -> bool {
    let domain = if level == libc::IPPROTO_IP { INET } else { INET6 };
    sock.is_dgram() && sock.domain == domain
}

/// What is to go along with a message: descriptions and credentials.
fn control_from(sock: &Socket, at: u64, len: u64, to: Option<&Address>) -> Result<(u32, Option<Credentials>), i64> {
    if len > i32::MAX as u64 {
        return Err(ENOBUFS);
    }
    if at != 0 {
        touch(at, len);
    }
    let (mut rights, mut cred) = (NONE, None);
    let mut place = 0;
    while at != 0 && place + 16 <= len {
        let (size, level, typ): (u64, i32, i32) = (load(at + place), load(at + place + 8), load(at + place + 12));
        if size < 16 || place + size > len {
            model().rights_drop(rights);
            return Err(EINVAL);
        }
        let data = at + place + 16;
        match (level, typ) {
            (libc::SOL_SOCKET, libc::SCM_RIGHTS) if sock.is_local() => {
                let count = (size - 16) / 4;
                if count > MAX_RIGHTS {
                    model().rights_drop(rights);
                    return Err(EINVAL);
                }
                for i in 0..count {
                    let fd: i32 = load(data + 4 * i);
                    if !numbers::look(fd).stands {
                        model().rights_drop(rights);
                        return Err(EBADF);
                    }
                    match fd::find(fd as u64) {
                        Some(desc) => rights = add_right(rights, desc),
                        None => match mail::put(fd) {
                            Ok(desc) => rights = add_right(rights, desc),
                            Err(error) => {
                                model().rights_drop(rights);
                                return Err(error);
                            }
                        },
                    }
                }
            }
            (libc::SOL_SOCKET, libc::SCM_CREDENTIALS) if sock.is_local() => {
                let own = socket::own_credentials();
                let said = Credentials { pid: load(data), uid: load(data + 4), gid: load(data + 8) };
                if said != own && own.uid != 0 {
                    model().rights_drop(rights);
                    return Err(EPERM);
                }
                cred = Some(said);
            }
            (libc::IPPROTO_IP, libc::IP_PKTINFO) | (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) if takes_source(sock, level) => {
                match control::source(sock, level, data, size - 16, to) {
                    Source::Usual => {}
                    Source::Wrong(error) => return Err(error),
                    Source::Other => end::unsupported(&[
                        b"sendmsg with IP_PKTINFO or IPV6_PKTINFO, to come from another address or interface than it would",
                    ]),
                }
            }
            _ => end::unsupported(&[
                b"sendmsg with a control message of level ",
                &decimal(level),
                b", type ",
                &decimal(typ),
            ]),
        }
        place += size.div_ceil(8) * 8;
    }
    Ok((rights, cred))
}

/// sendmmsg.
pub fn sendmmsg(desc: DescId, a: [u64; 6]) -> i64 {
    let mut done = 0;
    while done < a[2].min(1024) && !is_missing(a[1], done) {
        let n = sendmsg(desc, a[1] + 64 * done, a[3] as i32);
        if n < 0 {
            return if done > 0 { done as i64 } else { n };
        }
        store(a[1] + 64 * done + 56, n as u32);
        done += 1;
    }
    done as i64
}

/// Sends memory; `rights` is the caller's list, which is used up.
fn send_to(
    desc: DescId,
    memory: Memory,
    flags: i32,
    to: Option<Address>,
    rights: u32,
    cred: Option<Credentials>,
) -> i64 {
    check_flags(flags, b"send");
    if !memory.is_possible() {
        model().rights_drop(rights);
        return EFAULT;
    }
    let sock = world().sockets[socket::of(desc)];
    let says = cred.is_some();
    let cred = cred.unwrap_or_else(|| if sock.is_local() { socket::own_credentials() } else { Credentials::default() });
    model().set_credentials(local().cur, cred, says);
    model().send_along(local().cur, rights);
    let result = fd::throughout(desc, || match sock.is_dgram() {
        true => datagram(desc, &memory, flags, to),
        false => connected(desc, &memory, flags, to),
    });
    let left = model().send_along(local().cur, NONE);
    model().rights_drop(left);
    if result == EPIPE && sock.typ == STREAM && flags & libc::MSG_NOSIGNAL == 0 {
        return pipe::broken();
    }
    result
}

fn connected(desc: DescId, memory: &Memory, flags: i32, to: Option<Address>) -> i64 {
    let s = socket::of(desc);
    if matches!(world().sockets[s].state, SockState::FRESH | SockState::CONNECTING) {
        // Another thread may connect it: which operation this is would depend on that, and not all orders may be tried.
        if !fd::is_private(desc) {
            note_passed(libc::SYS_sendto);
        }
        fd::settle(desc);
    }
    let sock = world().sockets[s];
    if to.is_some() && sock.is_local() && sock.typ == STREAM {
        let there = sock.state == SockState::CONNECTED;
        return if there { EISCONN } else { EOPNOTSUPP };
    }
    let dont_wait = flags & libc::MSG_DONTWAIT != 0;
    match sock.state {
        SockState::FRESH | SockState::LISTEN if sock.is_tcp() => return EPIPE,
        SockState::FRESH | SockState::LISTEN => return ENOTCONN,
        SockState::FAILED => {
            let mut error = 0;
            let op = world().desc_op(Kind::FD_CONTROL, desc);
            fd::pass(desc, op, |_| error = model().socket_error(s));
            return if error == 0 { EPIPE } else { -error };
        }
        SockState::CONNECTING if dont_wait || world().descs[desc].flags & NONBLOCK != 0 => return EAGAIN,
        SockState::CONNECTING => end::unsupported(&[b"a write to a socket that is still being connected"]),
        _ => {}
    }
    let output = world().descs[desc].output;
    let n = memory.len();
    if n == 0 && sock.typ == STREAM {
        return 0;
    }
    may_be_reset(desc);
    let n = match pipe::faults(world().descs[desc], n) {
        Ok(fewer) if sock.typ == STREAM => fewer,
        Ok(_) => n,
        Err(error) => return error,
    };
    let there = memory.readable(0, n);
    if sock.is_tcp() && there > 0 && there < n && n > 4096 {
        end::unsupported(&[
            b"a write of more than 4096 bytes to a connection, of memory of which only a part is there",
        ]);
    }
    let (mut done, mut pieces, mut room) = (0, 0, false);
    loop {
        let mut op = world().channel_op(Kind::FD_WRITE, output, (n - done) as i64);
        // It depends on the connect.
        op.mask |= world().channel_bit(sock.input);
        if done > 0 {
            memory.goes_on(done, n - done);
            op = op.with(op::PARTIAL);
        }
        // TCP looks at what has come meanwhile after so many pieces (net/ipv4/tcp.c, sk_flush_backlog).
        if room && !(sock.is_tcp() && pieces % 16 == 0) {
            op = op.with(HURRIES);
        }
        let op = socket::timed(op, desc, sock.send_timeout, dont_wait);
        let mut forgotten = false;
        let put = fd::pass(desc, lacking(op, there - done, n - done), |put| {
            let [at, kept, more] = me().out;
            (room, forgotten) = (more != 0, kept == 0);
            if put > 0 && kept != 0 {
                copy(output, at as u64, memory, done, put as u64, true);
            }
        });
        if put < 0 {
            return if done > 0 { done as i64 } else { put };
        }
        done += put as u64;
        pieces += 1;
        if done >= n || forgotten || sock.typ != STREAM {
            return done as i64;
        }
    }
}

fn datagram(desc: DescId, memory: &Memory, flags: i32, to: Option<Address>) -> i64 {
    let s = socket::of(desc);
    if world().sockets[s].domain == NETLINK {
        return netlink::send(desc, memory, to);
    }
    if to.is_none() && world().sockets[s].state != SockState::CONNECTED {
        // Another thread may connect it.
        fd::settle(desc);
    }
    let sock = world().sockets[s];
    let unconnected = sock.peer == NONE && sock.peer_serial != CONNECTED_BY_ADDRESS;
    let Some(mut target) = to.or_else(|| (!unconnected).then_some(sock.remote)) else {
        return if sock.is_local() { ENOTCONN } else { EDESTADDRREQ };
    };
    if to.is_some() {
        if sock.is_local() && target.len == 0 || !sock.is_local() && target.port == 0 {
            return EINVAL;
        }
        if socket::is_outside(&target) {
            note_passed(libc::SYS_sendto);
            return ENETUNREACH;
        }
    }
    let n = memory.len();
    let limit = if sock.is_local() { u64::from(sock.send_buffer) - 32 } else { 65_507 };
    if n <= limit && memory.readable(0, n) < n {
        return EFAULT;
    }
    loop {
        let mut op = world().channel_op(Kind::FD_SEND, sock.input, n as i64);
        if to.is_some() {
            address::seek(&target);
            let link = match address::look_up(&mut target) {
                Ok(link) => link,
                Err(error) => return error,
            };
            if address::is_absent_service(&target) {
                return ENOENT;
            }
            model().set_address(local().cur, target);
            op = op.with(TO_ADDRESS);
            op.mask = if link { u32::MAX } else { op.mask | world().names_bits(s, &target) };
        } else {
            let peer = world().peer(s).map_or(0, |p| world().channel_bit(world().sockets[p].input));
            op.mask |= sock.remote.bit() | peer;
        }
        let op = socket::timed(op, desc, sock.send_timeout, flags & libc::MSG_DONTWAIT != 0);
        let result = fd::pass_after(desc, op, Some(socket::look_again), |n| {
            let [at, channel, _] = me().out;
            if n > 0 && channel >= 0 {
                copy(channel as u32, at as u64, memory, 0, n as u64, true);
            }
        });
        // The file came to be there while it waited for its turn, and is crowded.
        if result != EAGAIN || op.has(op::TRY) || op.has(op::TIMED) {
            return result;
        }
    }
}
