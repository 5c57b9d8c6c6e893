//! Sockets: made, named, connected, accepted, shut down. What they send and receive is in `message`.

use vsrun_model::address::{Address, Host, INET, INET6, NETLINK, UNIX};
use vsrun_model::fd::{DescId, NONBLOCK};
use vsrun_model::socket::{Credentials, SockId, SockState, DGRAM, LISTENS, NO_RECEIVE, NO_SEND, SEQPACKET, STREAM};
use vsrun_model::{op, Kind, Op, NONE};

use super::{address, fd, files, time};
use crate::gate::{self, end, fiber, inject, local, me, model, note_passed, world};
use crate::sys::errno::*;
use crate::sys::{decimal, guard, raw, store, writable};

/// What may be asked for together with the type.
pub const FLAGS: i32 = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;

/// socket.
pub fn make(domain: i32, typ: i32, protocol: i32) -> i64 {
    let fresh = match checked(domain, typ & !FLAGS, protocol) {
        Ok(fresh) => fresh,
        Err(error) => return error,
    };
    let desc = new(fresh, typ);
    if fresh.0 == NETLINK {
        keep(of(desc), libc::SOL_SOCKET, libc::SO_TYPE, typ & !FLAGS);
    }
    fd::install(desc, typ & libc::SOCK_CLOEXEC != 0)
}

/// Domain, type and protocol of a socket that can be had; else a negative error number.
fn checked(domain: i32, typ: i32, protocol: i32) -> Result<(u16, u8, i32), i64> {
    if !(0..=10).contains(&typ) {
        return Err(EINVAL);
    }
    match (domain, typ) {
        (libc::AF_UNIX, _) if !matches!(protocol, 0 | libc::AF_UNIX) => Err(EPROTONOSUPPORT),
        (libc::AF_UNIX, libc::SOCK_STREAM) => Ok((UNIX, STREAM, 0)),
        (libc::AF_UNIX, libc::SOCK_DGRAM | libc::SOCK_RAW) => Ok((UNIX, DGRAM, 0)),
        (libc::AF_UNIX, libc::SOCK_SEQPACKET) => Ok((UNIX, SEQPACKET, 0)),
        (libc::AF_UNIX, _) => Err(ESOCKTNOSUPPORT),
        (libc::AF_INET | libc::AF_INET6, libc::SOCK_STREAM) if matches!(protocol, 0 | libc::IPPROTO_TCP) => {
            Ok((domain as u16, STREAM, libc::IPPROTO_TCP))
        }
        (libc::AF_INET | libc::AF_INET6, libc::SOCK_DGRAM) if matches!(protocol, 0 | libc::IPPROTO_UDP) => {
            Ok((domain as u16, DGRAM, libc::IPPROTO_UDP))
        }
        (libc::AF_INET | libc::AF_INET6, libc::SOCK_STREAM | libc::SOCK_DGRAM) => Err(EPROTONOSUPPORT),
        (libc::AF_INET | libc::AF_INET6 | libc::AF_PACKET, libc::SOCK_RAW) => Err(EPERM),
        (libc::AF_INET | libc::AF_INET6, _) => Err(ESOCKTNOSUPPORT),
        // What the kernel tells of devices, audits and the like is none of the program's world.
        (libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_DGRAM) if protocol == libc::NETLINK_ROUTE => {
            Ok((NETLINK, DGRAM, 0))
        }
        (libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_DGRAM) => Err(EPROTONOSUPPORT),
        (libc::AF_NETLINK, _) => Err(ESOCKTNOSUPPORT),
        _ => Err(EAFNOSUPPORT),
    }
}

fn new((domain, typ, protocol): (u16, u8, i32), flags: i32) -> DescId {
    let nonblock = if flags & libc::SOCK_NONBLOCK != 0 { NONBLOCK } else { 0 };
    model()
        .socket_new(local().cur, domain, typ, protocol, nonblock)
        .unwrap_or_else(|| end::no_room(&[b"the program has more sockets than vsrun can hold"]))
}

/// The socket of a description that is known to be one.
pub fn of(desc: DescId) -> SockId {
    world().socket_of(desc).unwrap_or_else(|| end::bug(b"a socket's description without a socket"))
}

/// Who calls, for those at the other end.
pub fn own_credentials() -> Credentials {
    let (uid, gid) = (raw!(libc::SYS_geteuid) as u32, raw!(libc::SYS_getegid) as u32);
    world().credentials(local().pid, uid, gid)
}

/// socketpair.
pub fn pair(domain: i32, typ: i32, protocol: i32, at: u64) -> i64 {
    let fresh = match checked(domain, typ & !FLAGS, protocol) {
        Ok(fresh) if fresh.0 == UNIX => fresh,
        Ok(_) => return EOPNOTSUPP,
        Err(error) => return error,
    };
    if writable(at, 8) < 8 {
        return EFAULT;
    }
    let (one, other) = (new(fresh, typ), new(fresh, typ));
    model().socket_pair(of(one), of(other), own_credentials());
    let cloexec = typ & libc::SOCK_CLOEXEC != 0;
    let first = fd::install(one, cloexec);
    if first < 0 {
        model().desc_drop(other);
        return first;
    }
    let second = fd::install(other, cloexec);
    if second < 0 {
        fd::take_back(first);
        return second;
    }
    store(at, first as i32);
    store(at + 4, second as i32);
    0
}

/// getpeername.
pub fn peer_name(desc: DescId, a: [u64; 6]) -> i64 {
    look(desc);
    let socket = world().sockets[of(desc)];
    if socket.domain == NETLINK {
        address::write(&Address::netlink(0, 0), NETLINK, a[1], a[2]);
        return 0;
    }
    if socket.state != SockState::CONNECTED {
        // A local one knows it as long as it is there.
        let kept = socket.is_local() && socket.peer != NONE && socket.state == SockState::CLOSED;
        if !kept {
            return ENOTCONN;
        }
    }
    address::write(&socket.remote, socket.domain, a[1], a[2]);
    0
}

/// An operation on a socket under the names of `address`; the address is where the model looks for it.
fn naming(kind: Kind, s: SockId, address: Address, through_link: bool) -> Op {
    model().set_address(local().cur, address);
    model().set_credentials(local().cur, own_credentials(), false);
    let input = world().sockets[s].input;
    let mut op = world().channel_op(kind, input, 0);
    op.mask |= world().names_bits(s, &address);
    if through_link {
        op.mask = u32::MAX;
    }
    op
}

/// True if what is sent to an address would leave the machine.
pub fn is_outside(address: &Address) -> bool {
    matches!(address.family, INET | INET6) && !address.concrete().host().is_loopback()
}

/// bind.
pub fn bind(desc: DescId, address: Address) -> i64 {
    let s = of(desc);
    let domain = world().sockets[s].domain;
    if domain == NETLINK {
        return bind_netlink(s, address);
    }
    if address.family == 0 && domain != INET {
        return EAFNOSUPPORT;
    }
    let address = if address.family == 0 { Address::internet(Host::V4([0; 4]), 0) } else { address };
    if domain != UNIX {
        if !address.host().is_any() && !address.host().is_loopback() {
            return EADDRNOTAVAIL;
        }
        if (1..1024).contains(&address.port) && raw!(libc::SYS_geteuid) != 0 {
            return EACCES;
        }
    }
    let mut address = address;
    let made = address::make_before(&mut address);
    fiber().settled = made.is_some();
    if let Some(error) = made.filter(|&error| error < 0) {
        return error;
    }
    let op = naming(Kind::FD_BIND, s, address, false);
    let mut result = 0;
    gate::pass_then(op, |_| {
        result = bound(s, address, made.is_some());
        files::names_made(libc::SYS_mknod);
    });
    result
}

/// Gives a netlink socket a number, 0 for one of the system's choice, and the groups that it hears of.
pub fn bind_netlink(s: SockId, address: Address) -> i64 {
    let op = naming(Kind::FD_BIND, s, address, false);
    let groups = address.netlink_groups();
    let mut result = 0;
    gate::pass_then(op, |_| {
        result = model().netlink_bind(local().cur, s, address.netlink_number().unwrap_or(0), groups);
    });
    result
}

/// `made`: its file is there already.
fn bound(s: SockId, mut address: Address, made: bool) -> i64 {
    if address.is_path() && !made {
        let error = address::make_file(&mut address);
        if error < 0 {
            return error;
        }
    }
    match model().socket_bind(local().cur, s, address) {
        Some(error) if error < 0 && address.is_path() => {
            address::remove_file(&address);
            error
        }
        Some(result) => result,
        None => end::unsupported(&[
            b"several sockets that share port ",
            &decimal(address.port),
            b" (SO_REUSEPORT, or SO_REUSEADDR of datagram sockets)",
        ]),
    }
}

/// listen.
pub fn listen(desc: DescId, backlog: i32) -> i64 {
    let s = of(desc);
    let socket = world().sockets[s];
    if socket.is_dgram() {
        return EOPNOTSUPP;
    }
    let op = naming(Kind::FD_BIND, s, socket.local, false).with(LISTENS);
    let mut result = 0;
    gate::pass_then(op, |_| result = model().socket_listen(local().cur, s, backlog as u32, own_credentials()));
    result
}

/// The operation as the socket's flags and timeouts want it.
pub fn timed(op: Op, desc: DescId, timeout: u64, dont_wait: bool) -> Op {
    if world().descs[desc].flags & NONBLOCK != 0 || dont_wait {
        op.with(op::TRY)
    } else if timeout != 0 {
        op.until(time::relative(timeout))
    } else {
        op
    }
}

/// Keeps a value that getsockopt gives back.
pub fn keep(s: SockId, level: i32, name: i32, value: i32) {
    if !model().socket_keep(s, level as u16, name as u16, value) {
        end::unsupported(&[b"a socket with more than sixteen options"]);
    }
}

/// connect.
pub fn connect(desc: DescId, mut address: Address) -> i64 {
    let s = of(desc);
    let socket = world().sockets[s];
    if address.family == 0 && (!socket.is_dgram() && socket.state != SockState::FRESH) {
        end::unsupported(&[b"connect with AF_UNSPEC on a stream socket, to take its connection away"]);
    }
    if address.family == 0 && !socket.is_dgram() {
        return if socket.is_local() { EINVAL } else { 0 };
    }
    if socket.is_local() && address.family != 0 && address.len == 0 {
        return EINVAL;
    }
    if is_outside(&address) {
        if !socket.is_dgram() {
            note_passed(libc::SYS_connect);
        }
        return ENETUNREACH;
    }
    loop {
        address::seek(&address);
        let link = match address::look_up(&mut address) {
            Ok(link) => link,
            Err(error) => return error,
        };
        if address::is_absent_service(&address) {
            return ENOENT;
        }
        if socket.is_dgram() {
            let op = naming(Kind::FD_BIND, s, address, link);
            let mut result = 0;
            gate::pass_then(op, |_| result = model().connect_dgram(local().cur, s));
            return result;
        }
        let op = timed(naming(Kind::FD_CONNECT, s, address, link), desc, socket.send_timeout, false);
        let result = fd::pass_after(desc, op, Some(look_again), |_| {});
        // The file came to be there while it waited for its turn, and is crowded.
        if result != EAGAIN || op.has(op::TRY) || op.has(op::TIMED) {
            return result;
        }
    }
}

/// The file that the pending operation names may have changed since it was published: called when it has the turn.
pub fn look_again() {
    if me().address.is_path() && !fiber().settled {
        let mut address = me().address;
        if address::look_up(&mut address).is_ok() {
            model().set_address(local().cur, address);
        }
    }
}

/// accept.
pub fn accept(desc: DescId, at: u64, len_at: u64, flags: i32) -> i64 {
    let socket = world().sockets[of(desc)];
    if let Err(error) = fd::needs_number() {
        return error;
    }
    if socket.is_dgram() {
        return EOPNOTSUPP;
    }
    let mut op = world().channel_op(Kind::FD_ACCEPT, socket.input, 0);
    op.mask = world().desc_bits(desc);
    if world().descs[desc].flags & NONBLOCK == 0 {
        inject::interrupts();
    }
    let mut result = 0;
    // A handler that comes after it may not return.
    fd::pass(desc, timed(op, desc, socket.receive_timeout, false), |accepted| {
        result = if accepted < 0 { accepted } else { take_over(accepted as DescId, at, len_at, flags) };
    });
    result
}

/// Gives the connection `new`, which was waiting, a descriptor: its number, or a negative error number.
fn take_over(new: DescId, at: u64, len_at: u64, flags: i32) -> i64 {
    if flags & libc::SOCK_NONBLOCK != 0 {
        model().desc_set_flags(new, world().descs[new].flags | NONBLOCK);
    }
    let connection = world().sockets[of(new)];
    let fd = fd::install(new, flags & libc::SOCK_CLOEXEC != 0);
    if fd < 0 {
        return fd;
    }
    // The queue's reference is now that of the descriptor.
    model().desc_unrefer(new);
    if at != 0 {
        address::write(&connection.remote, connection.domain, at, len_at);
    }
    if guard::failed() {
        fd::take_back(fd);
    }
    fd
}

/// shutdown.
pub fn shutdown(desc: DescId, how: i32) -> i64 {
    let bits = match how {
        libc::SHUT_RD => NO_RECEIVE,
        libc::SHUT_WR => NO_SEND,
        libc::SHUT_RDWR => NO_RECEIVE | NO_SEND,
        _ => return EINVAL,
    };
    let s = of(desc);
    if world().sockets[s].domain == NETLINK {
        return EOPNOTSUPP;
    }
    let op = world().desc_op(Kind::FD_CONTROL, desc);
    let mut result = 0;
    gate::pass_then(op, |_| result = model().socket_shutdown(s, bits));
    result
}

/// What the other end may change is looked at: a visible operation if there is one.
fn look(desc: DescId) {
    if world().sockets[of(desc)].state == SockState::FRESH {
        fd::settle(desc);
    } else {
        fd::control(desc);
    }
}

/// FIONREAD.
pub fn pending_bytes(desc: DescId) -> i64 {
    let socket = world().sockets[of(desc)];
    let input = &world().channels[socket.input];
    match (socket.typ, input.queue[0]) {
        (STREAM, _) if socket.state == SockState::LISTEN => EINVAL,
        (DGRAM, NONE) => 0,
        (DGRAM, first) => i64::from(world().messages[first].len),
        _ => input.len() as i64,
    }
}
