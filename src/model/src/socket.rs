//! Sockets: what they are, how they are found, how they come to their ends.
//!
//! Each has a channel of its own that it reads from, from the beginning; a listening one has its queue of connections
//! there. What it writes to is the channel of its peer. A connection that nobody has accepted yet has its description
//! already, which only the queue refers to. Behaviour: net/ipv4/tcp.c, net/ipv4/udp.c, net/unix/af_unix.c.

use crate::address::{Address, Host, INET6, UNIX};
use crate::channel::{ChanId, ChanKind, Channel, NO_RING};
use crate::depend::Effects;
use crate::errno;
use crate::fd::{poll, Desc, DescId, DescKind, READ_WRITE};
use crate::object::NONE;
use crate::world::World;
use crate::{Pid, Tid};

/// Index of a socket in [`World::sockets`].
pub type SockId = u32;

/// SOCK_STREAM.
pub const STREAM: u8 = 1;
/// SOCK_DGRAM.
pub const DGRAM: u8 = 2;
/// SOCK_SEQPACKET.
pub const SEQPACKET: u8 = 5;

/// How far a socket is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct SockState(pub u8);

#[allow(missing_docs)]
impl SockState {
    /// Not connected; may have an address.
    pub const FRESH: SockState = SockState(0);
    pub const LISTEN: SockState = SockState(1);
    pub const CONNECTED: SockState = SockState(2);
    /// Waits for room in a listener's queue while its thread goes on.
    pub const CONNECTING: SockState = SockState(3);
    /// A connect that its thread did not wait for was refused.
    pub const FAILED: SockState = SockState(4);
    /// Was connected; nothing goes either way any more.
    pub const CLOSED: SockState = SockState(5);
}

/// [`Socket::shut`]: nothing more is received.
pub const NO_RECEIVE: u8 = 1;
/// [`Socket::shut`]: nothing more is sent.
pub const NO_SEND: u8 = 2;
const BOTH: u8 = 3;

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

/// net.core.wmem_default, net.core.rmem_default of Linux.
pub const BUFFER: u32 = 212_992;
/// Bytes that a TCP connection over loopback takes before a writer waits: measured on Linux 6.18 (3.92 to 3.95 million).
pub const TCP_ROOM: u64 = 3_932_160;
/// A TCP socket that is full is writable again when so much is free (measured: 0.24 to 1.1 million).
const TCP_LOW: u64 = 262_144;
/// net.unix.max_dgram_qlen.
pub const MAX_DGRAMS: u32 = 10;
/// Size of a ring for messages.
const MESSAGE_RING: u64 = 4 << 20;
/// Size of a ring for a stream between local sockets.
const LOCAL_RING: u64 = 1 << 20;

/// Who is at the other end: process, user, group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Credentials {
    /// Virtual process id.
    pub pid: i32,
    /// Effective user id.
    pub uid: u32,
    /// Effective group id.
    pub gid: u32,
}

/// A value of setsockopt that getsockopt gives back.
#[derive(Clone, Copy, Debug, Default)]
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
#[derive(Clone, Copy, Debug)]
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
    pad: [u8; 3],
    /// IPPROTO_*, 0 for local ones.
    pub protocol: i32,
    /// [`REUSE_ADDRESS`] and so on.
    pub options: u32,
    /// The error that the next operation reports, or 0.
    pub error: i32,
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

/// A message, or a piece of a stream between local sockets, in a channel.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Message {
    /// The next in the channel; the next free record.
    pub next: u32,
    /// Bytes left of it.
    pub len: u32,
    /// Memory that the kernel would charge for it.
    pub charge: u32,
    /// Descriptions that it carries: the first of [`World::rights`], or [`NONE`].
    pub rights: u32,
    /// Who sent it.
    pub cred: Credentials,
    /// `serial` of the socket it came from.
    pub sender: u64,
    /// The address it came from.
    pub from: Address,
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
            from: Address::NONE,
        }
    }
}

/// A description under way in a message.
#[derive(Clone, Copy, Debug, Default)]
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

    /// How many of the queue are established.
    pub fn established(&self) -> u32 {
        self.queued.min(self.backlog.saturating_add(1))
    }
}

impl World {
    /// The socket of a description.
    pub fn socket_of(&self, desc: DescId) -> Option<SockId> {
        let d = self.descs.get(desc)?;
        (d.kind == DescKind::SOCKET && self.sockets.contains(d.extra)).then_some(d.extra)
    }

    /// The socket that reads from a channel.
    pub fn sink(&self, channel: ChanId) -> Option<SockId> {
        let sink = self.channels.get(channel)?.extra;
        self.sockets.contains(sink).then_some(sink)
    }

    /// True if `s` hears of peers that it does not know yet: it listens, or is sent datagrams by whom it may.
    pub fn takes_strangers(&self, s: SockId) -> bool {
        self.sockets
            .get(s)
            .is_some_and(|socket| socket.state == SockState::LISTEN || socket.is_dgram() && self.peer(s).is_none())
    }

    /// The socket that `s` is connected to, unless it is gone.
    pub fn peer(&self, s: SockId) -> Option<SockId> {
        let socket = self.sockets.get(s)?;
        let peer = self.sockets.get(socket.peer)?;
        (peer.domain != 0 && peer.serial == socket.peer_serial).then_some(socket.peer)
    }

    /// A new socket of thread `t` with its description, which has no names. `None`: no room.
    pub fn socket_new(&mut self, t: Tid, domain: u16, typ: u8, protocol: i32, flags: u32) -> Option<DescId> {
        let (kind, room) = match (domain, typ) {
            (UNIX, STREAM) => (ChanKind::LOCAL, LOCAL_RING),
            (_, STREAM) => (ChanKind::STREAM, 4 << 20),
            _ => (ChanKind::PACKET, MESSAGE_RING),
        };
        let input = self.channel_new(t, kind, room)?;
        let desc = self.desc_new(DescKind::SOCKET, READ_WRITE | flags, input, NONE)?;
        self.socket_serial += 1;
        let fresh = Socket {
            domain,
            typ,
            state: SockState::FRESH,
            shut: 0,
            pad: [0; 3],
            protocol,
            options: 0,
            error: 0,
            desc,
            input,
            peer: NONE,
            peer_serial: 0,
            serial: self.socket_serial,
            queue: [NONE; 2],
            queued: 0,
            backlog: 0,
            next: NONE,
            send_buffer: BUFFER,
            receive_buffer: BUFFER,
            n_values: 0,
            receive_timeout: 0,
            send_timeout: 0,
            local: Address::of_family(domain),
            remote: Address::NONE,
            peer_cred: Credentials::default(),
            own_cred: Credentials::default(),
            values: [OptionValue::default(); MAX_OPTIONS],
        };
        let s = match self.free_socket {
            NONE => self.sockets.push(fresh)?,
            free => {
                self.free_socket = self.sockets[free].next;
                self.sockets[free] = fresh;
                free
            }
        };
        self.descs[desc].extra = s;
        self.channels[input].extra = s;
        Some(desc)
    }

    /// Connects two sockets with each other.
    pub fn socket_join(&mut self, a: SockId, b: SockId) {
        for (from, to) in [(a, b), (b, a)] {
            let (serial, input) = (self.sockets[to].serial, self.sockets[to].input);
            let desc = self.sockets[from].desc;
            self.sockets[from].peer = to;
            self.sockets[from].peer_serial = serial;
            self.sockets[from].state = SockState::CONNECTED;
            if !self.sockets[from].is_dgram() {
                self.descs[desc].output = input;
                self.channels[input].writers += 1;
                self.channels[input].source = from;
            }
        }
    }

    /// Something has happened that other operations on channels see than those that name these.
    pub(crate) fn reaches_far(&mut self) {
        self.did = self.did.with(Effects::FAR);
    }

    /// TCP: a reset arrives at `s`.
    fn reset_tcp(&mut self, s: SockId) {
        let ended = self.channels[self.sockets[s].input].finished;
        let socket = &mut self.sockets[s];
        socket.error = if ended { errno::EPIPE } else { errno::ECONNRESET } as i32;
        socket.shut = BOTH;
        socket.state = SockState::CLOSED;
        let input = socket.input;
        self.woke(input, 0);
    }

    /// TCP: something on the way (a router that has forgotten the connection) resets it. Both ends are told; what has arrived
    /// can still be read.
    pub fn break_connection(&mut self, s: SockId) {
        for end in [self.peer(s), Some(s)].into_iter().flatten() {
            if self.sockets[end].state == SockState::CONNECTED {
                self.reset_tcp(end);
            }
        }
        self.reaches_far();
    }

    /// TCP: `s` is over if nothing goes either way.
    fn settle_tcp(&mut self, s: SockId) {
        let ended = self.channels[self.sockets[s].input].finished;
        let socket = &mut self.sockets[s];
        if socket.is_tcp() && socket.state == SockState::CONNECTED && ended && socket.shut & NO_SEND != 0 {
            socket.state = SockState::CLOSED;
            socket.shut = BOTH;
        }
    }

    /// The peer of `s` will send nothing more.
    fn finish_input(&mut self, s: SockId) {
        self.channels[self.sockets[s].input].finished = true;
        self.sockets[s].shut |= NO_RECEIVE;
        self.settle_tcp(s);
        self.woke(self.sockets[s].input, 0);
    }

    /// The last name of a socket's description is gone. The description still has its channels.
    pub(crate) fn socket_close(&mut self, s: SockId) {
        self.drop_queue(s);
        let socket = self.sockets[s];
        let unread = !self.channels[socket.input].is_empty() || self.channels[socket.input].messages > 0;
        // One that waits in a queue is taken out of it when it is accepted, and is at its end then.
        if let Some(peer) = self.peer(s).filter(|_| !socket.is_dgram()) {
            match (socket.is_local(), unread) {
                (true, _) => {
                    self.channels[self.sockets[peer].input].finished = true;
                    self.sockets[peer].shut = BOTH;
                    if unread {
                        self.sockets[peer].error = errno::ECONNRESET as i32;
                    }
                }
                (false, unread) if self.sockets[peer].state != SockState::CLOSED => {
                    if unread || socket.options & RESETS != 0 {
                        self.reset_tcp(peer);
                    } else {
                        self.finish_input(peer);
                    }
                }
                _ => {}
            }
        }
        self.drop_messages(socket.input);
        self.channels[socket.input].extra = NONE;
        self.sockets[s] = Socket { domain: 0, peer: NONE, next: self.free_socket, ..socket };
        self.free_socket = s;
    }

    /// Connections that nobody accepted are reset.
    fn drop_queue(&mut self, s: SockId) {
        let [mut at, _] = core::mem::replace(&mut self.sockets[s].queue, [NONE; 2]);
        self.sockets[s].queued = 0;
        while at != NONE {
            let next = self.sockets[at].next;
            if let Some(client) = self.peer(at) {
                if self.sockets[at].is_local() {
                    self.sockets[client].error = errno::ECONNRESET as i32;
                    self.woke(self.sockets[client].input, 0);
                } else {
                    self.reset_tcp(client);
                }
            }
            let desc = self.sockets[at].desc;
            self.desc_drop(desc);
            at = next;
        }
    }

    fn drop_messages(&mut self, channel: ChanId) {
        while let Some(message) = self.message_pop(channel) {
            self.rights_drop(message.rights);
        }
    }

    /// Appends a message of `n` bytes to a channel. False: no room in the model.
    pub(crate) fn message_push(&mut self, channel: ChanId, message: Message) -> bool {
        let fresh = Message { next: NONE, ..message };
        let id = match self.free_message {
            NONE => match self.messages.push(fresh) {
                Some(id) => id,
                None => return false,
            },
            free => {
                self.free_message = self.messages[free].next;
                self.messages[free] = fresh;
                free
            }
        };
        let [_, last] = self.channels[channel].queue;
        match last {
            NONE => self.channels[channel].queue = [id, id],
            last => {
                self.messages[last].next = id;
                self.channels[channel].queue[1] = id;
            }
        }
        let c = &mut self.channels[channel];
        c.messages += 1;
        c.charge += u64::from(message.charge);
        c.tail += u64::from(message.len);
        self.woke(channel, poll::IN | poll::RDNORM);
        true
    }

    /// Takes the first message, with what is left of it.
    pub(crate) fn message_pop(&mut self, channel: ChanId) -> Option<Message> {
        let [first, last] = self.channels[channel].queue;
        if first == NONE {
            return None;
        }
        let message = self.messages[first];
        let c = &mut self.channels[channel];
        c.queue = if first == last { [NONE; 2] } else { [message.next, last] };
        c.messages -= 1;
        c.charge -= u64::from(message.charge);
        c.head += u64::from(message.len);
        if c.is_empty() {
            (c.head, c.tail) = (0, 0);
        }
        self.messages[first] = Message { next: self.free_message, ..Message::default() };
        self.free_message = first;
        Some(message)
    }

    /// Adds `desc` to a list of descriptions under way. `None`: no room.
    pub fn rights_push(&mut self, list: u32, desc: DescId) -> Option<u32> {
        let fresh = Right { desc, next: NONE };
        let id = match self.free_right {
            NONE => self.rights.push(fresh)?,
            free => {
                self.free_right = self.rights[free].next;
                self.rights[free] = fresh;
                free
            }
        };
        self.descs[desc].refs += 1;
        let mut at = list;
        while at != NONE && self.rights[at].next != NONE {
            at = self.rights[at].next;
        }
        if at == NONE {
            return Some(id);
        }
        self.rights[at].next = id;
        Some(list)
    }

    /// Forgets a list of descriptions under way.
    pub fn rights_drop(&mut self, list: u32) {
        let mut at = list;
        while at != NONE {
            let Right { desc, next } = self.rights[at];
            self.rights[at] = Right { desc: NONE, next: core::mem::replace(&mut self.free_right, at) };
            // What becomes of a file is the kernel's.
            if self.descs[desc].refs == 1 && self.descs[desc].kind != DescKind::FILE {
                self.reaches_far();
            }
            self.desc_drop(desc);
            at = next;
        }
    }

    /// Shuts a socket down: `how` of [`NO_RECEIVE`], [`NO_SEND`]. Gives 0 or minus an error number.
    pub fn socket_shutdown(&mut self, s: SockId, how: u8) -> i64 {
        let socket = self.sockets[s];
        let stream = !socket.is_dgram();
        match socket.state {
            SockState::LISTEN if socket.is_tcp() => {
                if how & NO_RECEIVE != 0 {
                    self.drop_queue(s);
                    self.sockets[s].state = SockState::FRESH;
                }
                return 0;
            }
            SockState::CONNECTED => {}
            // A datagram socket wakes those who wait all the same.
            _ if socket.is_local() || socket.is_dgram() => {}
            _ => return -errno::ENOTCONN,
        }
        self.sockets[s].shut |= how;
        if let Some(peer) = self.peer(s).filter(|_| stream) {
            if how & NO_SEND != 0 {
                self.finish_input(peer);
                self.settle_tcp(s);
            }
            if how & NO_RECEIVE != 0 && socket.is_local() {
                self.sockets[peer].shut |= NO_SEND;
                self.woke(self.sockets[peer].input, 0);
            }
        }
        self.woke(socket.input, 0);
        if socket.state == SockState::CONNECTED || socket.is_local() {
            0
        } else {
            -errno::ENOTCONN
        }
    }

    /// Takes the pending error.
    pub fn socket_error(&mut self, s: SockId) -> i64 {
        let error = core::mem::replace(&mut self.sockets[s].error, 0);
        if error != 0 {
            self.reaches_far();
        }
        i64::from(error)
    }

    /// The socket that is found under an address by one of the type of `seeker`; what is connected to it comes first.
    pub fn socket_at(&self, seeker: SockId, address: &Address, listening: bool) -> Option<SockId> {
        let from = &self.sockets[seeker];
        let mut best = (0, NONE);
        for (socket, s) in self.sockets.as_slice().iter().zip(0..) {
            if socket.domain == 0 || listening && socket.state != SockState::LISTEN {
                continue;
            }
            let score = self.found_by(socket, from, address);
            if score > best.0 {
                best = (score, s);
            }
        }
        (best.0 > 0).then_some(best.1)
    }

    fn found_by(&self, socket: &Socket, from: &Socket, address: &Address) -> u32 {
        if address.family == UNIX {
            let named = socket.is_local() && socket.options & ACCEPTED == 0 && socket.local.same_name(address);
            return u32::from(named);
        }
        if socket.is_local() || socket.typ != from.typ || socket.local.port != address.port || address.port == 0 {
            return 0;
        }
        let (own, wanted) = (socket.local.host(), address.host());
        if !(own == wanted || covers(socket, wanted)) {
            return 0;
        }
        let connected = socket.is_dgram() && socket.peer_serial == CONNECTED_BY_ADDRESS;
        if connected && !(socket.remote.port == from.local.port && socket.remote.host() == from_host(from, wanted)) {
            return 0;
        }
        1 + u32::from(own == wanted) + 2 * u32::from(connected)
    }

    /// True if binding `s` to an internet address meets another socket.
    pub fn address_taken(&self, s: SockId, address: &Address) -> Taken {
        let own = &self.sockets[s];
        let mut taken = Taken::No;
        for (socket, other) in self.sockets.as_slice().iter().zip(0..) {
            let same = socket.domain != 0 && !socket.is_local() && other != s && socket.typ == own.typ;
            if !same || socket.local.port != address.port {
                continue;
            }
            let (a, b) = (socket.local.host(), address.host());
            let overlap = a == b || covers(socket, b) || covers_by(own, b, a);
            if !overlap {
                continue;
            }
            let both = socket.options & own.options;
            if both & REUSE_PORT != 0 || own.is_dgram() && both & REUSE_ADDRESS != 0 {
                taken = Taken::Shared;
            } else if both & REUSE_ADDRESS == 0 || socket.state == SockState::LISTEN {
                return Taken::Yes;
            }
        }
        taken
    }

    /// True if another local socket has a name.
    pub fn name_taken(&self, name: &Address) -> bool {
        let has = |s: &Socket| s.is_local() && s.options & ACCEPTED == 0 && s.local.same_name(name);
        self.sockets.as_slice().iter().any(has)
    }

    /// Gives a socket a port that nobody has, the same in every execution as long as there are few. The range is Linux's.
    pub fn give_port(&mut self, t: Tid, s: SockId, host: Host) {
        const FIRST: u64 = 32_768;
        const COUNT: u64 = 28_232;
        let number = self.threads[t].made;
        self.threads[t].made += 1;
        let mut z = self.threads[t].uid.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(number) << 17;
        z = (z ^ z >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        for probe in 0..COUNT {
            let port = FIRST + ((z >> 13) + probe) % COUNT;
            let address = Address::internet(host, port as u16);
            if self.address_taken(s, &address) == Taken::No {
                self.sockets[s].local = address;
                self.sockets[s].options |= GIVEN_PORT;
                return;
            }
            self.reaches_far();
        }
    }

    /// The POLL* bits that hold for a socket.
    pub(crate) fn socket_readiness(&self, desc: &Desc) -> u16 {
        let Some(socket) = self.sockets.get(desc.extra) else { return poll::NVAL };
        let input = &self.channels[socket.input];
        let mut ready = 0;
        if socket.state == SockState::LISTEN {
            ready |= if socket.established() > 0 { poll::IN | poll::RDNORM } else { 0 };
            ready |= if socket.shut & NO_RECEIVE != 0 { poll::IN | poll::RDNORM | poll::RDHUP } else { 0 };
            return ready | if socket.shut == BOTH { poll::HUP } else { 0 };
        }
        ready |= if socket.error != 0 { poll::ERR } else { 0 };
        ready |= if socket.shut & NO_RECEIVE != 0 { poll::IN | poll::RDNORM | poll::RDHUP } else { 0 };
        let disconnected = !socket.is_dgram() && matches!(socket.state, SockState::FRESH | SockState::CLOSED);
        ready |= if socket.shut == BOTH || disconnected { poll::HUP } else { 0 };
        if socket.state == SockState::CONNECTING {
            return ready;
        }
        ready |= if !input.is_empty() || input.messages > 0 { poll::IN | poll::RDNORM } else { 0 };
        if self.writable_soon(desc, socket) {
            ready |= poll::OUT | poll::WRNORM | if socket.is_tcp() { 0 } else { poll::WRBAND };
        }
        ready
    }

    fn writable_soon(&self, desc: &Desc, socket: &Socket) -> bool {
        let peer = self.sockets.get(socket.peer).filter(|p| p.domain != 0 && p.serial == socket.peer_serial);
        let Some(output) = self.channels.get(desc.output) else {
            let Some(peer) = peer.filter(|_| socket.is_local() && socket.is_dgram()) else { return true };
            let mutual = peer.peer_serial == socket.serial;
            return (mutual || self.channels[peer.input].messages <= MAX_DGRAMS)
                && self.charged(socket, peer.input) * 4 <= u64::from(socket.send_buffer);
        };
        self.writable_soon_to(socket, output)
    }

    /// True if what `socket` writes to counts as writable.
    pub(crate) fn writable_soon_to(&self, socket: &Socket, output: &Channel) -> bool {
        if socket.is_tcp() {
            socket.shut & NO_SEND != 0 || output.len() + TCP_LOW <= self.tcp_room(socket, output)
        } else {
            output.charge * 4 <= u64::from(socket.send_buffer)
        }
    }

    /// What the messages of a socket in a channel cost.
    pub(crate) fn charged(&self, socket: &Socket, channel: ChanId) -> u64 {
        let [mut at, _] = self.channels[channel].queue;
        let mut sum = 0;
        while at != NONE {
            let message = &self.messages[at];
            sum += if message.sender == socket.serial { u64::from(message.charge) } else { 0 };
            at = message.next;
        }
        sum
    }

    /// Who calls, for those at the other end.
    pub fn credentials(&self, p: Pid, uid: u32, gid: u32) -> Credentials {
        Credentials { pid: self.procs.get(p).map_or(0, |p| p.vpid), uid, gid }
    }
}

/// `peer_serial` of a datagram socket that has an address to send to, whoever is there.
pub const CONNECTED_BY_ADDRESS: u64 = u64::MAX;

/// Whether an address has another socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// It has none.
    No,
    /// It has one that does not share it.
    Yes,
    /// It has one that shares it (SO_REUSEPORT, or SO_REUSEADDR of datagram sockets).
    Shared,
}

fn covers(socket: &Socket, wanted: Host) -> bool {
    covers_by(socket, socket.local.host(), wanted)
}

/// True if `own`, the address of `socket`, is for any host of the kind of `wanted`.
fn covers_by(socket: &Socket, own: Host, wanted: Host) -> bool {
    let only6 = socket.options & V6_ONLY != 0;
    match (own, wanted) {
        (Host::V4(_), Host::V4(_)) | (Host::V6(_), Host::V6(_)) => own.is_any(),
        (Host::V6(_), Host::V4(_)) => own.is_any() && socket.domain == INET6 && !only6,
        (Host::V4(_), Host::V6(_)) => false,
    }
}

/// The host that what `from` sends to `wanted` comes from.
fn from_host(from: &Socket, wanted: Host) -> Host {
    let own = from.local.host();
    if own.is_any() {
        wanted
    } else {
        own
    }
}

/// net.core.wmem_max and rmem_max.
const MAX_BUFFER: u32 = 4_194_304;
/// SOCK_MIN_SNDBUF, SOCK_MIN_RCVBUF.
const MIN_SEND: u32 = 4608;
const MIN_RECEIVE: u32 = 2304;
/// net.core.somaxconn.
const MAX_BACKLOG: u32 = 4096;

impl World {
    /// Makes two new local sockets of a process a pair; `cred` is who made them.
    pub fn socket_pair(&mut self, a: SockId, b: SockId, cred: Credentials) {
        self.socket_join(a, b);
        for s in [a, b] {
            self.sockets[s].peer_cred = cred;
            self.sockets[s].options |= ACCEPTED;
            // Their names are empty, not missing.
            self.sockets[s].remote = Address::of_family(UNIX);
        }
    }

    /// Gives a socket of thread `t` an address (bind); where that is a path, the file is there. Gives 0 or minus an error
    /// number. `None`: sockets would share a port.
    pub fn socket_bind(&mut self, t: Tid, s: SockId, mut address: Address) -> Option<i64> {
        if self.sockets[s].local.is_name() {
            return Some(-errno::EINVAL);
        }
        if address.family != UNIX {
            if address.port == 0 {
                self.give_port(t, s, address.host());
                return Some(0);
            }
            match self.address_taken(s, &address) {
                Taken::Yes => return Some(-errno::EADDRINUSE),
                Taken::Shared => return None,
                Taken::No => {}
            }
        } else if address.len == 0 {
            address = self.give_name(t);
        } else if !address.is_path() && self.name_taken(&address) {
            return Some(-errno::EADDRINUSE);
        }
        self.sockets[s].local = address;
        Some(0)
    }

    /// A local name that nobody has chosen: five digits.
    fn give_name(&mut self, t: Tid) -> Address {
        loop {
            let thread = &mut self.threads[t];
            thread.made += 1;
            let mut z = thread.uid.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(thread.made) << 20;
            z = (z ^ z >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mut name = [0u8; 6];
            for (i, digit) in name[1..].iter_mut().enumerate() {
                *digit = b"0123456789abcdef"[(z >> (40 + 4 * i)) as usize & 15];
            }
            let address = Address::local(&name);
            if !self.name_taken(&address) {
                return address;
            }
        }
    }

    /// A socket of thread `t` listens from now on, in the name of `cred`. Gives 0 or minus an error number.
    pub fn socket_listen(&mut self, t: Tid, s: SockId, backlog: u32, cred: Credentials) -> i64 {
        let socket = self.sockets[s];
        if !matches!(socket.state, SockState::FRESH | SockState::LISTEN) || socket.is_local() && socket.shut != 0 {
            return -errno::EINVAL;
        }
        if !socket.local.is_name() {
            if socket.is_local() {
                return -errno::EINVAL;
            }
            self.give_port(t, s, socket.local.any_host());
        } else if !socket.is_local() && socket.state == SockState::FRESH {
            let listens = |o: &Socket| {
                o.domain != 0 && o.state == SockState::LISTEN && o.is_tcp() && o.local.port == socket.local.port
            };
            let others = self.sockets.as_slice().iter().any(listens);
            if others && self.address_taken(s, &socket.local) == Taken::Yes {
                return -errno::EADDRINUSE;
            }
        }
        let socket = &mut self.sockets[s];
        (socket.state, socket.shut) = (SockState::LISTEN, 0);
        (socket.backlog, socket.own_cred) = (backlog.min(MAX_BACKLOG), cred);
        0
    }

    /// Switches one of the options of [`Socket::options`] on or off.
    pub fn socket_switch(&mut self, s: SockId, option: u32, on: bool) {
        let options = &mut self.sockets[s].options;
        *options = if on { *options | option } else { *options & !option };
    }

    /// SO_SNDBUF. A larger buffer needs a larger ring; one that is in use stays as it is.
    pub fn socket_send_buffer(&mut self, s: SockId, bytes: u32) {
        let socket = &mut self.sockets[s];
        socket.send_buffer = (bytes.min(MAX_BUFFER) * 2).max(MIN_SEND);
        socket.options |= SEND_SET;
        let wanted = u64::from(socket.send_buffer).next_power_of_two() * 2;
        let output = self.descs[socket.desc].output;
        if let Some(channel) = self.channels.as_mut_slice().get_mut(output as usize) {
            if channel.ring == NO_RING && channel.room < wanted {
                channel.room = wanted;
            }
        }
    }

    /// SO_RCVBUF.
    pub fn socket_receive_buffer(&mut self, s: SockId, bytes: u32) {
        self.sockets[s].receive_buffer = (bytes.min(MAX_BUFFER) * 2).max(MIN_RECEIVE);
        self.sockets[s].options |= RECEIVE_SET;
    }

    /// SO_RCVTIMEO or SO_SNDTIMEO, ns; 0: none.
    pub fn socket_timeout(&mut self, s: SockId, receives: bool, ns: u64) {
        let socket = &mut self.sockets[s];
        *if receives { &mut socket.receive_timeout } else { &mut socket.send_timeout } = ns;
    }

    /// An option whose value is only given back. False: no room.
    pub fn socket_keep(&mut self, s: SockId, level: u16, name: u16, value: i32) -> bool {
        let socket = &mut self.sockets[s];
        let n = (socket.n_values as usize).min(MAX_OPTIONS);
        if let Some(old) = socket.values[..n].iter_mut().find(|v| (v.level, v.name) == (level, name)) {
            old.value = value;
        } else if n == MAX_OPTIONS {
            return false;
        } else {
            socket.values[n] = OptionValue { level, name, value };
            socket.n_values += 1;
        }
        true
    }

    /// True if closing a description is nothing to anybody: a socket that has no connection, and cannot be found.
    pub fn socket_is_alone(&self, desc: DescId) -> bool {
        self.socket_of(desc).is_some_and(|s| {
            let socket = &self.sockets[s];
            socket.state == SockState::FRESH && !socket.local.is_name() && socket.peer == NONE
        })
    }

    /// The bits of what is found under an address by `s`: of the address, and where it is a path of what is bound to its file.
    pub fn names_bits(&self, s: SockId, address: &Address) -> u32 {
        let found = self.socket_at(s, address, false).filter(|_| address.is_path());
        address.bit() | found.map_or(0, |other| self.sockets[other].local.bit())
    }
}

/// Flag of a send of a datagram: to `Thread::address`, not to whom the socket is connected.
pub const TO_ADDRESS: u8 = crate::op::VARIANT;
/// Flag of a receive: what is received stays where it is (MSG_PEEK).
pub const PEEK: u8 = crate::op::VARIANT;
