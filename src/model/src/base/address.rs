//! Addresses of sockets: of the loopback interface, and names of local ones.

use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};

/// AF_UNIX.
pub const UNIX: u16 = 1;
/// AF_INET.
pub const INET: u16 = 2;
/// AF_INET6.
pub const INET6: u16 = 10;
/// AF_NETLINK.
pub const NETLINK: u16 = 16;

/// Bytes of a notice (NOTIFY_COOKIE_LEN).
pub const NOTICE: usize = 32;

/// The address of a socket.
#[derive(Clone, Copy, Hash, Debug)]
#[repr(C)]
pub struct Address {
    /// AF_UNIX, AF_INET, AF_INET6; 0: none.
    pub family: u16,
    /// Port of the last two, in the processor's order.
    pub port: u16,
    /// Bytes in use of a local name; 0: it has no name. An abstract one begins with a NUL.
    pub len: u16,
    pad: u16,
    /// Device and inode of the file that a path names; 0: there is none.
    pub dev: u64,
    /// See `dev`.
    pub ino: u64,
    /// The name, or the host in 4 or 16 bytes in the network's order.
    pub bytes: [u8; 112],
}

impl Default for Address {
    fn default() -> Address {
        Address::NONE
    }
}

/// As addresses are usually written; an abstract name begins with `@`.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(number) = self.netlink_number() {
            return write!(f, "netlink {number}");
        }
        if self.family != UNIX {
            return match self.any_host() {
                Host::V4(host) => write!(f, "{}:{}", Ipv4Addr::from(host), self.port),
                Host::V6(host) => write!(f, "[{}]:{}", Ipv6Addr::from(host), self.port),
            };
        }
        let (sign, name) = match self.name() {
            [0, name @ ..] => ("@", name),
            name => ("", name),
        };
        f.write_str(sign)?;
        name.utf8_chunks().try_for_each(|chunk| {
            f.write_str(chunk.valid())?;
            f.write_str(if chunk.invalid().is_empty() { "" } else { "\u{fffd}" })
        })
    }
}

/// A host of the loopback network, with IPv4 addresses mapped into IPv6 in the form of IPv4.
#[derive(Clone, Copy, Hash, PartialEq, Eq, Debug)]
pub enum Host {
    /// IPv4.
    V4([u8; 4]),
    /// IPv6.
    V6([u8; 16]),
}

const LOOPBACK6: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

/// How addresses of IPv4 begin as those of IPv6.
pub const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

impl Host {
    /// Any address of the machine.
    pub fn is_any(self) -> bool {
        self == Host::V4([0; 4]) || self == Host::V6([0; 16])
    }

    /// As an address of IPv6.
    pub fn mapped(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        match self {
            Host::V6(host) => bytes = host,
            Host::V4(host) => {
                bytes[..12].copy_from_slice(&MAPPED);
                bytes[12..].copy_from_slice(&host);
            }
        }
        bytes
    }

    /// An address of the loopback interface.
    pub fn is_loopback(self) -> bool {
        matches!(self, Host::V4([127, ..]) | Host::V6(LOOPBACK6))
    }
}

impl Address {
    /// No address.
    pub const NONE: Address = Address { family: 0, port: 0, len: 0, pad: 0, dev: 0, ino: 0, bytes: [0; 112] };

    /// No address yet, but of a family.
    pub fn of_family(family: u16) -> Address {
        Address { family, ..Address::NONE }
    }

    /// A local name.
    pub fn local(name: &[u8]) -> Address {
        let mut address = Address { family: UNIX, len: name.len().min(108) as u16, ..Address::NONE };
        address.bytes[..address.len as usize].copy_from_slice(&name[..address.len as usize]);
        address
    }

    /// A netlink socket: its number, the groups that it hears of.
    pub fn netlink(number: u32, groups: u32) -> Address {
        let mut address = Address { family: NETLINK, len: 8, ..Address::NONE };
        address.bytes[..4].copy_from_slice(&number.to_ne_bytes());
        address.bytes[4..8].copy_from_slice(&groups.to_ne_bytes());
        address
    }

    /// The kernel as the sender of a notice (mq_notify) to a netlink socket, and what the notice says.
    pub(crate) fn notice(says: [u8; NOTICE]) -> Address {
        let mut address = Address { len: NOTICE as u16, ..Address::netlink(0, 0) };
        address.bytes[8..8 + NOTICE].copy_from_slice(&says);
        address
    }

    /// What the notice says that came from there, if it is one.
    pub fn said(&self) -> Option<&[u8]> {
        (self.family == NETLINK && usize::from(self.len) == NOTICE).then_some(&self.bytes[8..8 + NOTICE])
    }

    /// The number of a netlink socket that has one.
    pub fn netlink_number(&self) -> Option<u32> {
        let [a, b, c, d, ..] = self.bytes;
        (self.family == NETLINK && self.len > 0).then_some(u32::from_ne_bytes([a, b, c, d]))
    }

    /// The groups that a netlink socket hears of.
    pub fn netlink_groups(&self) -> u32 {
        let [_, _, _, _, a, b, c, d, ..] = self.bytes;
        u32::from_ne_bytes([a, b, c, d])
    }

    /// A host and a port.
    pub fn internet(host: Host, port: u16) -> Address {
        let mut address = Address { port, ..Address::NONE };
        match host {
            Host::V4(bytes) => {
                address.family = INET;
                address.bytes[..4].copy_from_slice(&bytes);
            }
            Host::V6(bytes) => {
                address.family = INET6;
                address.bytes[..16].copy_from_slice(&bytes);
            }
        }
        address
    }

    /// The host of an internet address.
    pub fn host(&self) -> Host {
        let (mut four, mut sixteen) = ([0; 4], [0; 16]);
        sixteen.copy_from_slice(&self.bytes[..16]);
        if self.family == INET {
            four.copy_from_slice(&self.bytes[..4]);
        } else if sixteen[..12] == MAPPED {
            four.copy_from_slice(&sixteen[12..]);
        } else {
            return Host::V6(sixteen);
        }
        Host::V4(four)
    }

    /// The same with the machine's own address in the place of "any".
    pub fn concrete(self) -> Address {
        match self.host() {
            Host::V4([0, 0, 0, 0]) => Address::internet(Host::V4([127, 0, 0, 1]), self.port),
            host if host.is_any() => Address::internet(Host::V6(LOOPBACK6), self.port),
            host => Address::internet(host, self.port),
        }
    }

    /// Its host, where none has been chosen any of its family.
    pub fn any_host(&self) -> Host {
        match self.family {
            INET6 => self.host(),
            _ => Address { family: INET, ..*self }.host(),
        }
    }

    /// The bytes of a local name.
    pub fn name(&self) -> &[u8] {
        &self.bytes[..(self.len as usize).min(108)]
    }

    /// A local name that is a path.
    pub fn is_path(&self) -> bool {
        self.family == UNIX && self.len > 0 && self.bytes[0] != 0
    }

    /// True if something can be found under it.
    pub fn is_name(&self) -> bool {
        if matches!(self.family, UNIX | NETLINK) {
            self.len > 0
        } else {
            self.port != 0
        }
    }

    /// Whether two local names are the same.
    pub fn same_name(&self, other: &Address) -> bool {
        match (self.is_path(), other.is_path()) {
            (true, true) => self.ino != 0 && (self.dev, self.ino) == (other.dev, other.ino),
            (false, false) => self.len > 0 && self.name() == other.name(),
            _ => false,
        }
    }

    /// The bit of [`Op::mask`](crate::base::op::Op) for what is found under it: of the port, the abstract name, or the last part of the
    /// path; one for all of netlink. 0 if nothing can be.
    pub fn bit(&self) -> u32 {
        if !self.is_name() {
            return 0;
        }
        let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ u64::from(self.port);
        if self.family == UNIX {
            let name = self.name();
            let from = if self.is_path() { name.iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1) } else { 0 };
            for &byte in &name[from..] {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        1 << (hash >> 59)
    }
}
