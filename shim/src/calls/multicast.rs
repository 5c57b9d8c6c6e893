//! Groups that a socket has joined (IP_ADD_MEMBERSHIP), and the interface of what it sends to groups. The one interface of the program's
//! world is loopback, and what has no interface named gets that one. What is sent to a group leaves the system, as all that goes
//! elsewhere than to loopback: it is never received, which is noted where it is sent.

use vsrun_model::socket::{SockId, Socket};

use super::interfaces::{ADDRESS, INDEX};
use super::socket;
use crate::gate::world;
use crate::sys::errno::*;
use crate::sys::load;

/// Most of one socket: fewer than the kernel has room for (net.ipv4.igmp_max_memberships).
const MOST: u16 = 8;
/// The level by which a socket keeps them, beyond those of options: at each name the address of a group, 0 for none.
const KEPT: i32 = 0x4000;

fn group_at(socket: &Socket, name: u16) -> i32 {
    socket.kept((KEPT as u16, name)).unwrap_or(0)
}

fn place_of(socket: &Socket, group: i32) -> Option<u16> {
    (0..MOST).find(|&name| group_at(socket, name) == group)
}

/// struct ip_mreq or ip_mreqn: the group, the address and the index of an interface.
fn request(at: u64, len: u32) -> Option<([u8; 4], [u8; 4], u32)> {
    let index = if len >= 12 { load(at + 8) } else { 0 };
    (len >= 8).then(|| (load(at), load(at + 4), index))
}

/// There is such an interface.
fn is_interface(address: [u8; 4], index: u32) -> bool {
    match index {
        0 => address == [0; 4] || address[0] == ADDRESS[0],
        index => index == INDEX,
    }
}

/// IP_ADD_MEMBERSHIP (net/ipv4/igmp.c, ip_mc_join_group). `None`: there is no room for more.
pub fn join(s: SockId, at: u64, len: u32) -> Option<i64> {
    let socket = world().sockets[s];
    let Some((group, address, index)) = request(at, len) else { return Some(EINVAL) };
    if group[0] & 0xf0 != 0xe0 {
        return Some(EINVAL);
    }
    if !is_interface(address, index) {
        return Some(ENODEV);
    }
    let value = i32::from_ne_bytes(group);
    if place_of(&socket, value).is_some() {
        return Some(EADDRINUSE);
    }
    socket::keep(s, KEPT, i32::from(place_of(&socket, 0)?), value);
    Some(0)
}

/// IP_DROP_MEMBERSHIP (ip_mc_leave_group): all of them are of one interface.
pub fn leave(s: SockId, at: u64, len: u32) -> i64 {
    let socket = world().sockets[s];
    let Some((group, address, index)) = request(at, len) else { return EINVAL };
    let value = i32::from_ne_bytes(group);
    match place_of(&socket, value).filter(|_| value != 0 && is_interface(address, index)) {
        Some(name) => {
            socket::keep(s, KEPT, i32::from(name), 0);
            0
        }
        None => EADDRNOTAVAIL,
    }
}

/// IP_MULTICAST_IF (net/ipv4/ip_sockglue.c): an address, struct ip_mreq or ip_mreqn.
pub fn send_by(s: SockId, at: u64, len: u32) -> i64 {
    let (address, index): ([u8; 4], u32) = match len {
        0..4 => return EINVAL,
        4..8 => (load(at), 0),
        8..12 => (load(at + 4), 0),
        _ => (load(at + 4), load(at + 8)),
    };
    if !is_interface(address, index) {
        return EADDRNOTAVAIL;
    }
    socket::keep(s, libc::IPPROTO_IP, libc::IP_MULTICAST_IF, i32::from_ne_bytes(address));
    0
}
