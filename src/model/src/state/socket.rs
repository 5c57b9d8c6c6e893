//! What is kept of a socket, and of messages in channels.

use crate::base::address::MAPPED;
use crate::base::{numbers, Address, Tid, NONE, UNIX, VARIANT};
use crate::state::{ChanId, DescId};

/// Index of a socket in [`World::sockets`](crate::World).
pub type SockId = u32;

/// SOCK_STREAM.
pub const STREAM: u8 = 1;
/// SOCK_DGRAM.
pub const DGRAM: u8 = 2;
/// SOCK_SEQPACKET.
pub const SEQPACKET: u8 = 5;

numbers! {
    /// How far a socket is.
    SockState(u8):
    /// Not connected; may have an address.
    FRESH = 0,
    LISTEN = 1, CONNECTED = 2,
    /// Waits for room in a listener's queue while its thread goes on.
    CONNECTING = 3,
    /// A connect that its thread did not wait for was refused.
    FAILED = 4,
    /// Was connected; nothing goes either way any more.
    CLOSED = 5,
}

/// Flag of a bind that is a listen.
pub const LISTENS: u8 = VARIANT;

/// [`Socket::shut`]: nothing more is received.
pub const NO_RECEIVE: u8 = 1;
/// [`Socket::shut`]: nothing more is sent.
pub const NO_SEND: u8 = 2;
/// SO_REUSEADDR.
pub const REUSE_ADDRESS: u32 = 1;
/// SO_REUSEPORT.
pub const REUSE_PORT: u32 = 2;
/// SO_PASSCRED.
pub const PASS_CRED: u32 = 4;
/// IPV6_V6ONLY.
pub const V6_ONLY: u32 = 8;
/// SO_LINGER with no time: closing resets.
pub const RESETS: u32 = 16;
/// Connected while its thread did not wait; connect has not told it yet.
pub const UNTOLD: u32 = 32;
/// Has been given its port by the system.
pub const GIVEN_PORT: u32 = 64;
/// SO_SNDBUF was set.
pub const SEND_SET: u32 = 128;
/// SO_RCVBUF was set.
pub const RECEIVE_SET: u32 = 256;
/// Made connected: for a connection to a listener, whose address it shows, or as one of a pair.
pub const ACCEPTED: u32 = 512;
/// SO_TIMESTAMP or SO_TIMESTAMPNS: receivers are told when a message was sent.
pub const STAMPED: u32 = 1024;
/// SO_TIMESTAMPNS.
pub const STAMPED_NS: u32 = 2048;
/// Of [`STAMPED`]: they are told by SO_TIMESTAMP_NEW or SO_TIMESTAMPNS_NEW.
pub const STAMPED_NEW: u32 = 8192;
/// IP_PKTINFO: receivers are told where a datagram was sent to.
pub const PKTINFO: u32 = 16_384;
/// IPV6_RECVPKTINFO.
pub const PKTINFO6: u32 = 32_768;
/// Its port, which the system had given it, is not its own any more: it listened and was shut down. It still shows it.
pub const GAVE_UP_PORT: u32 = 4096;
/// SOL_NETLINK.
pub const NETLINK_LEVEL: i32 = 270;
/// IPPROTO_TCP and TCP_DEFER_ACCEPT, as [`OptionValue`] has them.
pub const DEFER_ACCEPT: (u16, u16) = (6, 9);
/// net.core.wmem_default, net.core.rmem_default of Linux.
pub const BUFFER: u32 = 212_992;
/// Bytes that a TCP connection over loopback takes before a writer waits: measured on Linux 6.18 (3.92 to 3.95 million).
pub const TCP_ROOM: u64 = 3_932_160;
/// net.unix.max_dgram_qlen.
pub const MAX_DGRAMS: u32 = 10;

/// Who is at the other end: process, user, group.
#[derive(Clone, Copy, Hash, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Credentials {
    /// Virtual process id.
    pub pid: i32,
    /// Effective user id.
    pub uid: u32,
    /// Effective group id.
    pub gid: u32,
}

impl Credentials {
    /// Those of a message that came without.
    pub const NOBODY: Credentials = Credentials { pid: 0, uid: 65_534, gid: 65_534 };
}

/// A value of setsockopt that getsockopt gives back.
#[derive(Clone, Copy, Hash, Debug, Default)]
#[repr(C)]
pub struct OptionValue {
    /// SOL_*, IPPROTO_*.
    pub level: u16,
    /// SO_*, TCP_*, ...
    pub name: u16,
    /// Its value.
    pub value: i32,
}

/// Values that one socket keeps.
pub const MAX_OPTIONS: usize = 16;

/// A socket.
#[derive(Clone, Copy, Hash, Debug)]
#[repr(C)]
pub struct Socket {
    /// AF_*; 0: the record is not in use (then `next` is the next free one).
    pub domain: u16,
    /// SOCK_*.
    pub typ: u8,
    /// How far it is.
    pub state: SockState,
    /// [`NO_RECEIVE`], [`NO_SEND`].
    pub shut: u8,
    /// TCP: a shutdown that comes when the send that is under way lets go of the socket.
    pub(crate) shut_later: u8,
    pub(crate) pad: [u8; 2],
    /// IPPROTO_*, 0 for local ones.
    pub protocol: i32,
    /// [`REUSE_ADDRESS`] and so on.
    pub options: u32,
    /// The error that the next operation reports, or 0.
    pub error: i32,
    /// Local: the thread beside others by whose close it was reset, or [`NONE`](crate::NONE).
    pub reset_by: Tid,
    /// Its description.
    pub desc: DescId,
    /// Its own channel.
    pub input: ChanId,
    /// The socket it is connected to, or [`NONE`].
    pub peer: SockId,
    /// `serial` of the peer when it was connected; another one by now: the peer is gone.
    pub peer_serial: u64,
    /// Tells the sockets that use the same record one after another apart.
    pub serial: u64,
    /// Connections that wait to be accepted, in order: the first and the last socket.
    pub queue: [SockId; 2],
    /// How many there are.
    pub queued: u32,
    /// Those beyond `backlog` + 1 are not established yet.
    pub backlog: u32,
    /// The next in the queue it is in; the next free record.
    pub next: SockId,
    /// SO_SNDBUF.
    pub send_buffer: u32,
    /// SO_RCVBUF.
    pub receive_buffer: u32,
    /// Options in use.
    pub n_values: u32,
    /// SO_RCVTIMEO, ns; 0: none.
    pub receive_timeout: u64,
    /// SO_SNDTIMEO, ns; 0: none.
    pub send_timeout: u64,
    /// Its own address.
    pub local: Address,
    /// The address it is connected to.
    pub remote: Address,
    /// SO_PEERCRED.
    pub peer_cred: Credentials,
    /// Whoever made it, or listens.
    pub own_cred: Credentials,
    /// Other options.
    pub values: [OptionValue; MAX_OPTIONS],
}

/// Where a datagram was sent to.
#[derive(Clone, Copy, Hash, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Arrival {
    /// The host, an address of loopback, as one of IPv6.
    pub host: [u8; 16],
    /// Not 0: its receiver had asked to be told that by then ([`PKTINFO`], [`PKTINFO6`]).
    pub asked: u32,
}

impl Arrival {
    /// Not of the internet.
    pub const NONE: Arrival = Arrival { host: [0; 16], asked: 0 };

    /// The address, if it is one of IPv4.
    pub fn v4(&self) -> Option<[u8; 4]> {
        let [start @ .., a, b, c, d] = self.host;
        (start == MAPPED).then_some([a, b, c, d])
    }
}

/// A message, or a piece of a stream between local sockets, in a channel.
#[derive(Clone, Copy, Hash, Debug)]
#[repr(C)]
pub struct Message {
    /// The next in the channel; the next free record.
    pub next: u32,
    /// Bytes left of it.
    pub len: u32,
    /// Memory that the kernel would charge for it.
    pub charge: u32,
    /// Descriptions that it carries: the first of [`World::rights`](crate::World), or [`NONE`].
    pub rights: u32,
    /// Who sent it.
    pub cred: Credentials,
    /// `serial` of the socket it came from.
    pub sender: u64,
    /// Virtual time at which it was sent, ns.
    pub sent: u64,
    /// The address it came from.
    pub from: Address,
    /// Where it was sent to.
    pub arrival: Arrival,
}

impl Default for Message {
    fn default() -> Message {
        Message {
            next: NONE,
            len: 0,
            charge: 0,
            rights: NONE,
            cred: Credentials::default(),
            sender: 0,
            sent: 0,
            from: Address::NONE,
            arrival: Arrival::NONE,
        }
    }
}

/// A description under way in a message.
#[derive(Clone, Copy, Hash, Debug, Default)]
#[repr(C)]
pub struct Right {
    /// The description, which is referred to from here.
    pub desc: DescId,
    /// The next of the message; the next free record.
    pub next: u32,
}

impl Socket {
    /// Between processes of one machine.
    pub fn is_local(&self) -> bool {
        self.domain == UNIX
    }

    /// It has been shut down both ways and hears of the other end all the same: data from there is answered with a reset.
    pub fn refuses_data(&self) -> bool {
        self.state == SockState::CONNECTED && self.shut == NO_RECEIVE | NO_SEND
    }

    /// Without connections.
    pub fn is_dgram(&self) -> bool {
        self.typ == DGRAM
    }

    /// TCP.
    pub fn is_tcp(&self) -> bool {
        !self.is_local() && self.typ == STREAM
    }

    /// It gets its peer by a connect, not by being made.
    pub fn may_connect(&self) -> bool {
        !self.is_dgram() && self.options & ACCEPTED == 0
    }

    /// The value of an option (level, name) that was set and is only given back.
    pub fn kept(&self, option: (u16, u16)) -> Option<i32> {
        let values = &self.values[..(self.n_values as usize).min(MAX_OPTIONS)];
        values.iter().find(|v| (v.level, v.name) == option).map(|v| v.value)
    }

    /// How many of the queue are established.
    pub fn established(&self) -> u32 {
        self.queued.min(self.backlog.saturating_add(1))
    }
}

/// `peer_serial` of a datagram socket that has an address to send to, whoever is there.
pub const CONNECTED_BY_ADDRESS: u64 = u64::MAX;
/// Flag of a send of a datagram: to `Thread::address`, not to whom the socket is connected.
pub const TO_ADDRESS: u8 = VARIANT;
/// Flag of a write to a stream socket that goes on: there was room for its next piece when it had put the last one, so it has not
/// waited. What notices errors and lets others in only where it waits does neither.
pub const HURRIES: u8 = VARIANT;
/// Flag of a receive: what is received stays where it is (MSG_PEEK).
pub const PEEK: u8 = VARIANT;
