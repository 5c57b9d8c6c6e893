//! Control messages: those that come along with what is received, as the kernel writes them, and those of a sender that concern where its
//! datagram comes from.

use vsrun_model::address::{Address, Host, INET6};
use vsrun_model::socket::{Message, Socket, PKTINFO, PKTINFO6};

use super::interfaces::INDEX;
use crate::sys::errno::{EINVAL, ENETUNREACH};
use crate::sys::{copy_out, load, store};

/// struct cmsghdr.
const HEADER: u64 = 16;

/// The room of a receiver for them.
pub struct Control {
    at: u64,
    room: u64,
    /// Bytes in use.
    pub used: u64,
    /// MSG_CTRUNC, if something had no room.
    pub told: i32,
}

impl Control {
    /// Nothing is there yet.
    pub fn new(at: u64, room: u64) -> Control {
        Control { at, room, used: 0, told: 0 }
    }

    /// One more; what has no room is cut off (net/core/scm.c, put_cmsg).
    pub fn put(&mut self, level: i32, typ: i32, data: &[u8]) {
        let (left, whole) = (self.room - self.used, HEADER + data.len() as u64);
        if left < whole {
            self.told |= libc::MSG_CTRUNC;
        }
        if left < HEADER {
            return;
        }
        let (at, len) = (self.at + self.used, whole.min(left));
        store(at, len);
        store(at + 8, level);
        store(at + 12, typ);
        copy_out(at + HEADER, &data[..(len - HEADER) as usize]);
        self.used += whole.div_ceil(8).saturating_mul(8).min(left);
    }

    /// Where a datagram was sent to and by which interface it came, for who asks for that: what was known when it came
    /// (net/ipv6/datagram.c, ip6_datagram_recv_common_ctl; net/ipv4/ip_sockglue.c, ip_cmsg_recv_pktinfo, ipv4_pktinfo_prepare).
    pub fn put_destination(&mut self, sock: &Socket, message: &Message) {
        let arrival = &message.arrival;
        let index = |known: bool| (if known { INDEX } else { 0 }).to_ne_bytes();
        let (v4, asked) = (arrival.v4(), arrival.asked != 0);
        if sock.domain == INET6 && sock.options & PKTINFO6 != 0 {
            let mut info = [0; 20];
            info[..16].copy_from_slice(&arrival.host);
            info[16..].copy_from_slice(&index(v4.is_none() || asked));
            self.put(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
        }
        let Some(host) = v4.filter(|_| sock.options & PKTINFO != 0) else { return };
        let mut info = [0; 12];
        info[..4].copy_from_slice(&index(asked));
        info[4..8].copy_from_slice(&if asked { host } else { [0; 4] });
        info[8..].copy_from_slice(&host);
        self.put(libc::IPPROTO_IP, libc::IP_PKTINFO, &info);
    }
}

/// What a sender says of where its datagram is to come from.
pub enum Source {
    /// What it would come from anyway, or nothing.
    Usual,
    /// It cannot: a negative error number.
    Wrong(i64),
    /// Something else, which is not modelled.
    Other,
}

/// IP_PKTINFO or IPV6_PKTINFO of a sender, `size` bytes from `at` on, of a datagram to `to`: the interface and the address that it is to come
/// from (net/ipv4/ip_sockglue.c, ip_cmsg_send).
pub fn source(sock: &Socket, level: i32, at: u64, size: u64, to: Option<&Address>) -> Source {
    let (index, own): (u32, Host) = match level {
        libc::IPPROTO_IP if size == 12 => (load(at), Host::V4(load(at + 4))),
        libc::IPPROTO_IPV6 if size >= 20 => (load(at + 16), Host::V6(load(at))),
        _ => return Source::Wrong(EINVAL),
    };
    if index > INDEX {
        return Source::Other;
    }
    if own.is_any() {
        return Source::Usual;
    }
    if !own.is_loopback() {
        // It is no address of the machine.
        return if level == libc::IPPROTO_IP { Source::Wrong(ENETUNREACH) } else { Source::Other };
    }
    let to = to.unwrap_or(&sock.remote).concrete().host();
    let usual = if sock.local.family == 0 || sock.local.host().is_any() { to } else { sock.local.host() };
    if usual == own {
        Source::Usual
    } else {
        Source::Other
    }
}
