//! Sockets: what they are, how they are found, how they come to their ends.
//!
//! Each has a channel of its own that it reads from, from the beginning; a listening one has its queue of connections
//! there. What it writes to is the channel of its peer. A connection that nobody has accepted yet has its description
//! already, which only the queue refers to. Behaviour: net/ipv4/tcp.c, net/ipv4/udp.c, net/unix/af_unix.c.

use crate::base::{errno, Address, Host, Pid, Tid, INET6, NONE, UNIX};
use crate::state::{
    poll, ChanId, ChanKind, Channel, Credentials, Desc, DescId, DescKind, Effects, Message, OptionValue, Right, SockId,
    SockState, Socket, World, ACCEPTED, BUFFER, CONNECTED_BY_ADDRESS, GAVE_UP_PORT, GIVEN_PORT, MAX_DGRAMS,
    MAX_OPTIONS, NO_RECEIVE, NO_RING, NO_SEND, READ_WRITE, RECEIVE_SET, RESETS, REUSE_ADDRESS, REUSE_PORT, SEND_SET,
    STREAM, V6_ONLY,
};

const BOTH: u8 = 3;
/// A TCP socket that is full is writable again when so much is free (measured: 0.24 to 1.1 million).
const TCP_LOW: u64 = 262_144;
/// Size of a ring for messages.
const MESSAGE_RING: u64 = 4 << 20;
/// Size of a ring for a stream between local sockets.
const LOCAL_RING: u64 = 1 << 20;

impl World {
    /// `t` reads from a socket that hears of peers it does not know yet, or signals.
    pub(crate) fn reads_from_strangers(&self, t: Tid, _: bool) -> bool {
        self.channel_of(self.threads[t].pending.obj).is_some_and(|c| {
            let signals = self.channels[c].kind == ChanKind::SIGNALS;
            signals || self.sink(c).is_some_and(|s| self.takes_strangers(s))
        })
    }

    /// `t` polls one of these.
    pub(crate) fn polls_strangers(&self, t: Tid, _: bool) -> bool {
        self.polled(t).iter().any(|p| self.meets_strangers(p.desc))
    }

    /// `t` waits for the events of an instance that watches one of these.
    pub(crate) fn watches_strangers(&self, t: Tid, _: bool) -> bool {
        let epoll = self.channel_of(self.threads[t].pending.obj);
        self.watches.as_slice().iter().any(|w| Some(w.epoll) == epoll && self.meets_strangers(w.desc))
    }

    fn meets_strangers(&self, desc: DescId) -> bool {
        let signals = self.descs.get(desc).is_some_and(|d| d.kind == DescKind::SIGNAL);
        signals || self.socket_of(desc).is_some_and(|s| self.takes_strangers(s))
    }

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
            shut_later: 0,
            pad: [0; 2],
            protocol,
            options: 0,
            error: 0,
            reset_by: NONE,
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
    pub(crate) fn reset_tcp(&mut self, s: SockId) {
        let ended = self.channels[self.sockets[s].input].finished;
        let socket = &mut self.sockets[s];
        socket.error = if ended { -errno::EPIPE } else { -errno::ECONNRESET } as i32;
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
                        self.sockets[peer].error = -errno::ECONNRESET as i32;
                        self.sockets[peer].reset_by = if self.concurrent { self.current } else { NONE };
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
                    self.sockets[client].error = -errno::ECONNRESET as i32;
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

    /// A local datagram socket leaves who it was connected to: what it has not received is lost, and one at the other end that
    /// is connected to it hears of that (net/unix/af_unix.c, unix_dgram_disconnected).
    pub(crate) fn lose_peer(&mut self, s: SockId) {
        let socket = self.sockets[s];
        if self.channels[socket.input].messages == 0 {
            return;
        }
        self.drop_messages(socket.input);
        self.woke(socket.input, 0);
        if let Some(peer) = self.peer(s).filter(|&peer| self.peer(peer) == Some(s)) {
            self.sockets[peer].error = -errno::ECONNRESET as i32;
            self.woke(self.sockets[peer].input, 0);
        }
        self.reaches_far();
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
        self.descs[desc].passed_on = true;
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
            // What becomes of a file is the kernel's. Which of several that have a description is the last one shows, whether it is this
            // one or not.
            if self.descs[desc].kind != DescKind::FILE {
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
        if self.is_held(s, NONE) {
            // It waits for the socket's lock (net/ipv4/af_inet.c, inet_shutdown); nothing else tells when it returns.
            self.sockets[s].shut_later |= how;
            return 0;
        }
        match socket.state {
            SockState::LISTEN if socket.is_tcp() => {
                if how & NO_RECEIVE != 0 {
                    self.drop_queue(s);
                    let socket = &mut self.sockets[s];
                    socket.state = SockState::FRESH;
                    // One that it was bound to is kept (net/ipv4/tcp.c, tcp_set_state).
                    socket.options |= if socket.options & GIVEN_PORT != 0 { GAVE_UP_PORT } else { 0 };
                }
                return 0;
            }
            SockState::CONNECTED => {}
            // A datagram socket wakes those who wait all the same.
            _ if socket.is_local() || socket.is_dgram() => {}
            _ => return errno::ENOTCONN,
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
            errno::ENOTCONN
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
            if !same || socket.local.port != address.port || socket.options & GAVE_UP_PORT != 0 {
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
                let options = &mut self.sockets[s].options;
                *options = *options & !GAVE_UP_PORT | GIVEN_PORT;
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
        let gave_up = self.sockets[s].options & GAVE_UP_PORT != 0;
        if self.sockets[s].local.is_name() && !gave_up {
            return Some(errno::EINVAL);
        }
        let chosen = if address.family == UNIX { address.len != 0 } else { address.port != 0 };
        if address.family != UNIX {
            if address.port == 0 {
                self.give_port(t, s, address.host());
                return Some(0);
            }
            match self.address_taken(s, &address) {
                Taken::Yes => {
                    if gave_up {
                        // That it has failed takes its address away (net/ipv4/af_inet.c, __inet_bind).
                        let socket = &mut self.sockets[s];
                        socket.local =
                            Address::internet(Address::of_family(socket.domain).any_host(), socket.local.port);
                    }
                    return Some(errno::EADDRINUSE);
                }
                Taken::Shared => return None,
                Taken::No => {}
            }
        } else if address.len == 0 {
            address = self.give_name(t);
        } else if !address.is_path() && self.name_taken(&address) {
            return Some(errno::EADDRINUSE);
        }
        // A file that was just made has the number of an older one: that one's is gone, and nobody finds it any more. The kernel
        // gives no number anew while a socket has it, but here none is held.
        for other in self.sockets.as_mut_slice().iter_mut().filter(|_| address.is_path()) {
            if other.is_local() && other.local.same_name(&address) {
                other.local.ino = 0;
            }
        }
        let socket = &mut self.sockets[s];
        socket.local = address;
        socket.options &= if gave_up { !(GAVE_UP_PORT | GIVEN_PORT) } else { !0 };
        // One of a pair has a name of its own then.
        socket.options &= if socket.is_local() && socket.is_dgram() { !ACCEPTED } else { !0 };
        // A server of datagrams does not listen: that it has taken a name of its choice is what its clients wait for.
        self.listened |= u8::from(chosen && self.sockets[s].is_dgram());
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
        if !matches!(socket.state, SockState::FRESH | SockState::LISTEN) {
            return errno::EINVAL;
        }
        if !socket.local.is_name() {
            if socket.is_local() {
                return errno::EINVAL;
            }
            self.give_port(t, s, socket.local.any_host());
        } else if socket.options & GAVE_UP_PORT != 0 {
            self.give_port(t, s, socket.local.host());
        } else if !socket.is_local() && socket.state == SockState::FRESH {
            let listens = |o: &Socket| {
                o.domain != 0 && o.state == SockState::LISTEN && o.is_tcp() && o.local.port == socket.local.port
            };
            let others = self.sockets.as_slice().iter().any(listens);
            if others && self.address_taken(s, &socket.local) == Taken::Yes {
                return errno::EADDRINUSE;
            }
        }
        let socket = &mut self.sockets[s];
        socket.state = SockState::LISTEN;
        // A local one stays shut down (net/unix/af_unix.c, unix_listen).
        socket.shut = if socket.is_local() { socket.shut } else { 0 };
        (socket.backlog, socket.own_cred) = (backlog.min(MAX_BACKLOG), cred);
        self.listened = 1;
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
