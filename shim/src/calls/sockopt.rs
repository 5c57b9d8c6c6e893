//! Options of sockets.

use vsrun_model::address::{INET, INET6, NETLINK};
use vsrun_model::fd::DescId;
use vsrun_model::socket::{
    Credentials, SockState, Socket, NETLINK_LEVEL, PASS_CRED, PKTINFO, PKTINFO6, RECEIVE_SET, RESETS, REUSE_ADDRESS,
    REUSE_PORT, SEND_SET, STAMPED, STAMPED_NEW, STAMPED_NS, V6_ONLY,
};
use vsrun_model::{Kind, NONE};

use super::{fd, multicast, socket};
use crate::gate::{self, end, model, world};
use crate::sys::errno::*;
use crate::sys::{copy_in, copy_out, decimal, load, store};

macro_rules! options {
    ($($level:ident: $($name:ident = $value:expr),+;)+) => { &[$($((libc::$level, libc::$name, $value)),+),+] };
}

/// Options that nothing depends on: what is set is given back. (level, name, value at first)
const KEPT: &[(i32, i32, i32)] = options! {
    SOL_SOCKET:
        SO_DEBUG = 0, SO_DONTROUTE = 0, SO_BROADCAST = 0, SO_KEEPALIVE = 0, SO_OOBINLINE = 0, SO_NO_CHECK = 0,
        SO_PRIORITY = 0, SO_RCVLOWAT = 1, SO_MARK = 0, SO_BUSY_POLL = 0, SO_INCOMING_CPU = -1, SO_RXQ_OVFL = 0;
    IPPROTO_TCP:
        TCP_NODELAY = 0, TCP_CORK = 0, TCP_KEEPIDLE = 7200, TCP_KEEPINTVL = 75, TCP_KEEPCNT = 9, TCP_SYNCNT = 6,
        TCP_LINGER2 = 60, TCP_QUICKACK = 1, TCP_USER_TIMEOUT = 0, TCP_FASTOPEN = 0, TCP_MAXSEG = 32_741,
        TCP_WINDOW_CLAMP = 0, TCP_NOTSENT_LOWAT = 0, TCP_THIN_LINEAR_TIMEOUTS = 0, TCP_THIN_DUPACK = 0;
    IPPROTO_IP:
        IP_TOS = 0, IP_TTL = 64, IP_MTU_DISCOVER = 1, IP_RECVERR = 0, IP_FREEBIND = 0,
        IP_BIND_ADDRESS_NO_PORT = 0, IP_MULTICAST_TTL = 1, IP_MULTICAST_LOOP = 1, IP_RECVTOS = 0,
        IP_RECVTTL = 0;
    IPPROTO_IPV6:
        IPV6_UNICAST_HOPS = 64, IPV6_TCLASS = 0, IPV6_MTU_DISCOVER = 1, IPV6_RECVERR = 0,
        IPV6_MULTICAST_HOPS = 1, IPV6_MULTICAST_LOOP = 1, IPV6_FREEBIND = 0, IPV6_RECVTCLASS = 0,
        IPV6_RECVHOPLIMIT = 0;
    SOL_NETLINK:
        NETLINK_BROADCAST_ERROR = 0, NETLINK_NO_ENOBUFS = 0, NETLINK_LISTEN_ALL_NSID = 0, NETLINK_CAP_ACK = 0,
        NETLINK_EXT_ACK = 0, NETLINK_GET_STRICT_CHK = 0;
};

/// TCP_CONGESTION: what any kernel has, the first at first. The number is what is kept.
const CONGESTION: [&[u8]; 2] = [b"cubic", b"reno"];
/// With 64 bits of seconds on all machines; here they are as the others.
pub const SO_TIMESTAMP_NEW: i32 = 63;
/// See [`SO_TIMESTAMP_NEW`].
pub const SO_TIMESTAMPNS_NEW: i32 = 64;
/// TCP_CA_NAME_MAX.
const MAX_CONGESTION: usize = 16;

fn refuse(call: &[u8], level: i32, name: i32) -> ! {
    end::unsupported(&[call, b" with level ", &decimal(level), b", option ", &decimal(name)])
}

/// True if a socket can have the options of a level.
fn has_level(socket: &Socket, level: i32) -> bool {
    match level {
        libc::SOL_SOCKET => true,
        libc::IPPROTO_TCP => socket.is_tcp(),
        libc::IPPROTO_IP => !socket.is_local() && socket.domain != NETLINK,
        NETLINK_LEVEL => socket.domain == NETLINK,
        libc::IPPROTO_IPV6 => socket.domain == INET6,
        _ => false,
    }
}

fn without_level(socket: &Socket) -> i64 {
    if socket.is_local() {
        EOPNOTSUPP
    } else {
        ENOPROTOOPT
    }
}

/// Retransmissions within so many seconds, of which the first comes after one (net/core/request_sock.c, secs_to_retrans).
fn retransmissions(seconds: i32) -> i32 {
    (1..=255).find(|&n| seconds_of(n) >= seconds).unwrap_or(255)
}

/// Seconds until the last of so many retransmissions.
fn seconds_of(retransmissions: i32) -> i32 {
    const LONGEST: i32 = 120;
    (0..retransmissions).map(|n| if n < 7 { LONGEST.min(1 << n) } else { LONGEST }).sum()
}

/// TCP_CONGESTION: the algorithm of a name; minus an error number if there is none.
fn set_congestion(s: u32, at: u64, len: u32) -> i64 {
    if len == 0 {
        return EINVAL;
    }
    let mut name = [0u8; MAX_CONGESTION];
    let n = (len as usize).min(MAX_CONGESTION - 1);
    if !copy_in(&mut name[..n], at) {
        return EFAULT;
    }
    let used = name.iter().position(|&b| b == 0).unwrap_or(n);
    match CONGESTION.iter().position(|known| *known == &name[..used]) {
        Some(number) => {
            socket::keep(s, libc::IPPROTO_TCP, libc::TCP_CONGESTION, number as i32);
            0
        }
        None => ENOENT,
    }
}

fn nanoseconds(at: u64) -> Result<u64, i64> {
    let (seconds, micro): (i64, i64) = (load(at), load(at + 8));
    if !(0..1_000_000).contains(&micro) {
        return Err(EDOM);
    }
    Ok((seconds.max(0) as u64).saturating_mul(1_000_000_000).saturating_add(micro as u64 * 1000))
}

/// setsockopt.
pub fn set(desc: DescId, a: [u64; 6]) -> i64 {
    let (level, name, at, len) = (a[1] as i32, a[2] as i32, a[3], a[4] as u32);
    let s = socket::of(desc);
    let socket = world().sockets[s];
    if !has_level(&socket, level) {
        return without_level(&socket);
    }
    if (level, name) == (libc::IPPROTO_TCP, libc::TCP_CONGESTION) {
        return set_congestion(s, at, len);
    }
    if (level, name) == (libc::SOL_SOCKET, libc::SO_LINGER) || is_timeout(level, name) {
        let size = if name == libc::SO_LINGER { 8 } else { 16 };
        if len < size {
            return EINVAL;
        }
    } else if len < 4 && !(level == libc::IPPROTO_IP && len > 0) {
        return EINVAL;
    }
    let value = if len >= 4 { load::<i32>(at) } else { load::<u8>(at).into() };
    let switch = |option: u32| model().socket_switch(s, option, value != 0);
    match (level, name) {
        (libc::SOL_SOCKET, libc::SO_REUSEADDR) => switch(REUSE_ADDRESS),
        (libc::SOL_SOCKET, libc::SO_REUSEPORT) => switch(REUSE_PORT),
        (libc::SOL_SOCKET, libc::SO_PASSCRED) if socket.domain == NETLINK && value != 0 => {
            refuse(b"setsockopt", level, name)
        }
        (libc::SOL_SOCKET, libc::SO_PASSCRED) if !socket.is_local() => return EOPNOTSUPP,
        // It decides what senders add to their messages.
        (libc::SOL_SOCKET, libc::SO_PASSCRED) => {
            gate::pass_then(world().desc_op(Kind::FD_CONTROL, desc), |_| switch(PASS_CRED));
        }
        (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY) if socket.local.port != 0 => return EINVAL,
        (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY) => switch(V6_ONLY),
        (libc::SOL_SOCKET, libc::SO_LINGER) => {
            let (on, seconds): (i32, i32) = (load(at), load(at + 4));
            let resets = on != 0 && seconds == 0 && !socket.is_local();
            model().socket_switch(s, RESETS, resets);
            socket::keep(s, level, name, if on != 0 { seconds.max(0) | i32::MIN } else { 0 });
        }
        (libc::SOL_SOCKET, libc::SO_SNDBUF | libc::SO_SNDBUFFORCE) => model().socket_send_buffer(s, value as u32),
        (libc::SOL_SOCKET, libc::SO_RCVBUF | libc::SO_RCVBUFFORCE) => model().socket_receive_buffer(s, value as u32),
        _ if is_timeout(level, name) => {
            let ns = match nanoseconds(at) {
                Ok(ns) => ns,
                Err(error) => return error,
            };
            model().socket_timeout(s, name == libc::SO_RCVTIMEO, ns);
        }
        (libc::SOL_SOCKET, libc::SO_RCVLOWAT) if value > 1 && !socket.is_dgram() => refuse(b"setsockopt", level, name),
        // Connections are there at once, as after the time that is given here; `World::join_queue` notes it.
        (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT) => {
            socket::keep(s, level, name, if value > 0 { retransmissions(value) } else { 0 })
        }
        _ if is_stamp(level, name) => {
            model().socket_switch(s, STAMPED, value != 0);
            let ns = matches!(name, libc::SO_TIMESTAMPNS | SO_TIMESTAMPNS_NEW);
            model().socket_switch(s, STAMPED_NS, value != 0 && ns);
            model().socket_switch(s, STAMPED_NEW, value != 0 && name >= SO_TIMESTAMP_NEW);
        }
        (libc::IPPROTO_IP, libc::IP_PKTINFO) | (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO) => {
            let option = if level == libc::IPPROTO_IP { PKTINFO } else { PKTINFO6 };
            // It decides what is noted of datagrams that come.
            gate::pass_then(world().desc_op(Kind::FD_CONTROL, desc), |_| switch(option));
        }
        (libc::IPPROTO_IP, libc::IP_ADD_MEMBERSHIP | libc::IP_DROP_MEMBERSHIP) if socket.is_tcp() => return EPROTO,
        (libc::IPPROTO_IP, libc::IP_ADD_MEMBERSHIP) => {
            return multicast::join(s, at, len)
                .unwrap_or_else(|| end::unsupported(&[b"a socket that has joined more than eight groups"]));
        }
        (libc::IPPROTO_IP, libc::IP_DROP_MEMBERSHIP) => return multicast::leave(s, at, len),
        (libc::IPPROTO_IP, libc::IP_MULTICAST_IF) if !socket.is_dgram() => return EINVAL,
        (libc::IPPROTO_IP, libc::IP_MULTICAST_IF) => return multicast::send_by(s, at, len),
        // Interfaces do not change: nothing is ever told to a group.
        (NETLINK_LEVEL, libc::NETLINK_ADD_MEMBERSHIP | libc::NETLINK_DROP_MEMBERSHIP) if value <= 0 => return EINVAL,
        (NETLINK_LEVEL, libc::NETLINK_ADD_MEMBERSHIP | libc::NETLINK_DROP_MEMBERSHIP) => {}
        (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER | libc::SO_ATTACH_BPF) => refuse(b"setsockopt", level, name),
        (libc::SOL_SOCKET, libc::SO_DETACH_FILTER) => return ENOENT,
        (libc::IPPROTO_TCP, libc::TCP_ULP) => return ENOENT,
        (
            libc::SOL_SOCKET,
            libc::SO_TYPE | libc::SO_ERROR | libc::SO_ACCEPTCONN | libc::SO_PROTOCOL | libc::SO_DOMAIN,
        ) => {
            return ENOPROTOOPT;
        }
        _ if is_unknown(level, name) => return ENOPROTOOPT,
        _ if KEPT.iter().any(|k| (k.0, k.1) == (level, name)) => socket::keep(s, level, name, value),
        // What asks for more to come with messages, off as it is at first.
        _ if value == 0 => {}
        _ => refuse(b"setsockopt", level, name),
    }
    0
}

/// Beyond all options that Linux has at a level.
fn is_unknown(level: i32, name: i32) -> bool {
    let last = match level {
        libc::SOL_SOCKET => 99,
        libc::IPPROTO_TCP => 60,
        libc::IPPROTO_IP | libc::IPPROTO_IPV6 => 255,
        NETLINK_LEVEL => 12,
        _ => return false,
    };
    !(0..=last).contains(&name)
}

/// It asks for the times at which messages have come.
fn is_stamp(level: i32, name: i32) -> bool {
    level == libc::SOL_SOCKET
        && matches!(name, libc::SO_TIMESTAMP | libc::SO_TIMESTAMPNS | SO_TIMESTAMP_NEW | SO_TIMESTAMPNS_NEW)
}

fn is_timeout(level: i32, name: i32) -> bool {
    level == libc::SOL_SOCKET && matches!(name, libc::SO_RCVTIMEO | libc::SO_SNDTIMEO)
}

fn kept(socket: &Socket, level: i32, name: i32) -> Option<i32> {
    socket.kept((level as u16, name as u16))
}

/// getsockopt.
pub fn get(desc: DescId, a: [u64; 6]) -> i64 {
    let (level, name, at, len_at) = (a[1] as i32, a[2] as i32, a[3], a[4]);
    let s = socket::of(desc);
    let socket = world().sockets[s];
    let room = load::<i32>(len_at);
    if room < 0 {
        return EINVAL;
    }
    if !has_level(&socket, level) {
        let by_protocol = socket.domain == INET;
        return if by_protocol { EOPNOTSUPP } else { without_level(&socket) };
    }
    let bit = |bit: u32| i32::from(socket.options & bit != 0);
    let tcp_buffer = |set: u32, chosen: u32, own: i32| {
        if socket.is_tcp() && socket.options & set == 0 {
            own
        } else {
            chosen as i32
        }
    };
    let value = match (level, name) {
        (libc::SOL_SOCKET, libc::SO_ERROR) => {
            let mut error = 0;
            let op = world().desc_op(Kind::FD_CONTROL, desc);
            fd::pass(desc, op, |_| error = model().socket_error(s) as i32);
            error
        }
        // Netlink has one kind of socket by two names.
        (libc::SOL_SOCKET, libc::SO_TYPE) => kept(&socket, level, name).unwrap_or(socket.typ.into()),
        (libc::SOL_SOCKET, libc::SO_TIMESTAMP) => bit(STAMPED) & !bit(STAMPED_NS) & !bit(STAMPED_NEW),
        (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS) => bit(STAMPED_NS) & !bit(STAMPED_NEW),
        // Of those in nanoseconds as well (net/core/sock.c, sk_getsockopt).
        (libc::SOL_SOCKET, SO_TIMESTAMP_NEW) => bit(STAMPED_NEW),
        (libc::SOL_SOCKET, SO_TIMESTAMPNS_NEW) => bit(STAMPED_NS) & bit(STAMPED_NEW),
        (libc::SOL_SOCKET, libc::SO_DOMAIN) => socket.domain.into(),
        (libc::SOL_SOCKET, libc::SO_PROTOCOL) => socket.protocol,
        (libc::SOL_SOCKET, libc::SO_ACCEPTCONN) => i32::from(socket.state == SockState::LISTEN),
        (libc::SOL_SOCKET, libc::SO_REUSEADDR) => bit(REUSE_ADDRESS),
        (libc::SOL_SOCKET, libc::SO_REUSEPORT) => bit(REUSE_PORT),
        (libc::SOL_SOCKET, libc::SO_PASSCRED) if !socket.is_local() => return EOPNOTSUPP,
        (libc::SOL_SOCKET, libc::SO_PASSCRED) => bit(PASS_CRED),
        (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY) => bit(V6_ONLY),
        (libc::IPPROTO_IP, libc::IP_PKTINFO) => bit(PKTINFO),
        (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO) => bit(PKTINFO6),
        (libc::IPPROTO_IP, libc::IP_ADD_MEMBERSHIP | libc::IP_DROP_MEMBERSHIP) => return ENOPROTOOPT,
        (libc::IPPROTO_IP, libc::IP_MULTICAST_IF) => kept(&socket, level, name).unwrap_or(0),
        (libc::SOL_SOCKET, libc::SO_SNDBUF) => {
            let connected = socket.state == SockState::CONNECTED;
            tcp_buffer(SEND_SET, socket.send_buffer, if connected { 2_626_560 } else { 16_384 })
        }
        (libc::SOL_SOCKET, libc::SO_RCVBUF) => tcp_buffer(RECEIVE_SET, socket.receive_buffer, 131_072),
        (libc::SOL_SOCKET, libc::SO_PEERCRED) => {
            let nobody = Credentials { pid: 0, uid: u32::MAX, gid: u32::MAX };
            let known = socket.is_local() && socket.peer != NONE;
            let cred = if known { socket.peer_cred } else { nobody };
            return put(at, len_at, room, &[cred.pid, cred.uid as i32, cred.gid as i32]);
        }
        (libc::SOL_SOCKET, libc::SO_LINGER) => {
            let linger = kept(&socket, level, name).unwrap_or(0);
            return put(at, len_at, room, &[i32::from(linger != 0), linger & i32::MAX]);
        }
        _ if is_timeout(level, name) => {
            let ns = if name == libc::SO_RCVTIMEO { socket.receive_timeout } else { socket.send_timeout };
            let (seconds, micro) = ((ns / 1_000_000_000) as i32, (ns % 1_000_000_000 / 1000) as i32);
            return put(at, len_at, room, &[seconds, 0, micro, 0]);
        }
        (libc::SOL_SOCKET, libc::SO_PEERSEC | libc::SO_PEERGROUPS) => return ENOPROTOOPT,
        (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT) => seconds_of(kept(&socket, level, name).unwrap_or(0)),
        (libc::IPPROTO_TCP, libc::TCP_CONGESTION) => {
            let mut image = [0u8; MAX_CONGESTION];
            let known = CONGESTION[kept(&socket, level, name).unwrap_or(0) as usize];
            image[..known.len()].copy_from_slice(known);
            return put_bytes(at, len_at, room, &image);
        }
        (libc::IPPROTO_TCP, libc::TCP_INFO) => {
            let state = match socket.state {
                SockState::CONNECTED => 1,
                SockState::LISTEN => 10,
                SockState::CONNECTING => 2,
                _ => 7,
            };
            let mut info = [0; 62];
            // Over loopback, before anything has gone the wrong way.
            (info[0], info[4], info[15], info[20], info[21], info[22]) = (state, 32_741, 65_535, 10, 65_483, 3);
            return put(at, len_at, room, &info);
        }
        _ => match KEPT.iter().find(|k| (k.0, k.1) == (level, name)) {
            Some(k) => kept(&socket, level, name).unwrap_or(k.2),
            None if is_unknown(level, name) => return ENOPROTOOPT,
            None => refuse(b"getsockopt", level, name),
        },
    };
    put(at, len_at, room, &[value])
}

fn put(at: u64, len_at: u64, room: i32, words: &[i32]) -> i64 {
    let len = (4 * words.len()).min(room as usize);
    for i in 0..len {
        store(at + i as u64, words[i / 4].to_ne_bytes()[i % 4]);
    }
    store(len_at, len as i32);
    0
}

fn put_bytes(at: u64, len_at: u64, room: i32, bytes: &[u8]) -> i64 {
    let len = bytes.len().min(room as usize);
    if !copy_out(at, &bytes[..len]) {
        return EFAULT;
    }
    store(len_at, len as i32);
    0
}
