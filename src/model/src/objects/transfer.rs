//! What moves through sockets: streams, messages, datagrams. How much fits is counted as Linux counts it: the memory of
//! its buffers, not the bytes in them (net/unix/af_unix.c, net/ipv4/udp.c; checked against Linux 6.18).

use crate::base::{errno, Address, Kind, Op, Tid, LACKS, NETLINK, NONE, PARTIAL, VARIANT};
use crate::state::{
    poll, Applied, Arrival, ChanId, ChanKind, Channel, Credentials, Message, SockId, SockState, Socket, Thread,
    ThreadState, World, CONNECTED_BY_ADDRESS, HURRIES, MAX_DGRAMS, NO_RECEIVE, NO_SEND, PASS_CRED, PKTINFO, PKTINFO6,
    REFILLED, RESET_WITHIN, SEND_SET, TCP_ROOM,
};

/// Management of a buffer, aligned: struct sk_buff and struct skb_shared_info.
const SKB: u64 = 256;
const SHARED_INFO: u64 = 320;
const PAGE: u64 = 4096;
/// Bytes of a piece of a local stream that lie in the buffer itself, and in pages beside it.
const HEAD: u64 = PAGE - SHARED_INFO;
const FRAGS: u64 = 32_768;
/// Bytes of a message that lie in the buffer itself.
const MESSAGE_HEAD: u64 = 4 * PAGE - SHARED_INFO;

/// Bytes of the first segments of a TCP connection over loopback, and of the further ones: half of the first window of the
/// receiver, and what one packet takes (net/ipv4/tcp.c, tcp_send_mss; measured on Linux 6.18).
const SEGMENT: u64 = 32_741;
const LARGE_SEGMENT: u64 = 65_483;

/// Bytes of a local stream of socket `sender` that lie in one buffer (net/unix/af_unix.c, unix_stream_sendmsg).
fn largest_piece(sender: &Socket) -> u64 {
    (HEAD + FRAGS).min(u64::from(sender.send_buffer) / 2 - 64)
}

/// Bytes of what goes into `output` that its reader finds there at once, or not at all.
fn piece(sender: &Socket, output: &Channel) -> u64 {
    match output.kind {
        ChanKind::LOCAL => largest_piece(sender),
        ChanKind::STREAM if output.len() < 2 * SEGMENT => SEGMENT,
        ChanKind::STREAM => LARGE_SEGMENT,
        _ => u64::MAX,
    }
}

fn pages(n: u64) -> u64 {
    n.div_ceil(PAGE) * PAGE
}

fn linear(n: u64) -> u64 {
    SKB + (n.div_ceil(64) * 64 + SHARED_INFO).next_power_of_two().max(512)
}

/// Memory charged for a piece of `n` bytes of a local stream.
fn piece_charge(n: u64) -> u64 {
    let beside = if n > HEAD { pages(n - HEAD).min(n) } else { 0 };
    linear(n - beside) + pages(beside)
}

/// Memory charged for a local message of `n` bytes.
fn message_charge(n: u64) -> u64 {
    let beside = if n > MESSAGE_HEAD { pages(n - MESSAGE_HEAD).min(17 * PAGE).min(n) } else { 0 };
    linear(n - beside) + pages(beside)
}

/// Memory charged for a UDP datagram of `n` bytes.
fn datagram_charge(n: u64) -> u64 {
    /// Small buffers come from a cache of their own.
    const SMALL: u64 = 832;
    /// Headers, and what is left free before them.
    const HEADERS: u64 = 44;
    match n + HEADERS {
        small if small <= 256 => SMALL,
        whole if whole <= MESSAGE_HEAD => linear(whole),
        _ => SMALL + n,
    }
}

/// A write of a stream that goes on and has not waited.
fn is_hurrying(op: &Op) -> bool {
    op.kind == Kind::FD_WRITE && op.has(PARTIAL) && op.has(HURRIES)
}

impl World {
    /// True if a read from the channel of a socket, or an accept, would not wait.
    pub(crate) fn readable_socket(&self, channel: ChanId) -> bool {
        match self.sink(channel) {
            Some(s) if self.sockets[s].state == SockState::LISTEN && self.sockets[s].shut & NO_RECEIVE == 0 => {
                self.sockets[s].established() > 0
            }
            Some(s) => self.socket_readable(s),
            None => true,
        }
    }

    /// True if a read from the channel of socket `s` would not wait.
    pub(crate) fn socket_readable(&self, s: SockId) -> bool {
        let socket = &self.sockets[s];
        let input = &self.channels[socket.input];
        let there = !input.is_empty() || input.messages > 0 || socket.error != 0 || socket.shut & NO_RECEIVE != 0;
        let never =
            matches!(socket.state, SockState::FRESH | SockState::LISTEN | SockState::CLOSED | SockState::FAILED);
        there || never && !socket.is_dgram()
    }

    /// Gives the bytes to be copied from position `Thread::out[0]` on, 0 at the end, or minus an error number; `out[1]` is
    /// the length of the message, `out[2]` 1 if there was something. What came with it is in [`World::received`].
    pub(crate) fn socket_read(&mut self, t: Tid, op: &Op, s: SockId) -> Applied {
        self.received = Message::default();
        let fits = if op.has(LACKS) { self.threads[t].out[0] as u64 } else { u64::MAX };
        self.threads[t].out = [0; 3];
        let socket = self.sockets[s];
        let input = self.channels[socket.input];
        let stream = matches!(input.kind, ChanKind::STREAM | ChanKind::LOCAL);
        let there = !input.is_empty() || input.messages > 0;
        if !socket.is_dgram() && matches!(socket.state, SockState::FRESH | SockState::LISTEN) {
            let local_stream = socket.is_local() && stream;
            return Applied::Done(if local_stream { errno::EINVAL } else { errno::ENOTCONN });
        }
        if socket.is_tcp() && !there && input.finished {
            return Applied::Done(0);
        }
        if socket.error != 0 && !(stream && there) {
            if socket.is_dgram() {
                self.sockets[s].error = 0;
            } else {
                self.socket_error(s);
            }
            return Applied::Done(-i64::from(socket.error));
        }
        if !there {
            let ended = socket.shut & NO_RECEIVE != 0 || socket.state == SockState::CLOSED;
            // Of datagrams who does not wait is told of none (net/core/datagram.c, __skb_wait_for_more_packets).
            let ended = ended && !(socket.is_dgram() && op.tries());
            return if ended { Applied::Done(0) } else { self.not_ready(t, op) };
        }
        let wanted = self.pieces_within(&input, op.arg.max(0) as u64, fits);
        if wanted == 0 && op.arg > 0 {
            return Applied::Done(errno::EFAULT);
        }
        let peek = op.has(VARIANT);
        let n = match input.kind {
            ChanKind::STREAM => self.take_bytes(socket.input, wanted, peek),
            ChanKind::LOCAL => self.take_pieces(s, wanted, peek),
            _ => self.take_message(socket.input, wanted, peek),
        };
        if !peek {
            self.freed(s, &input);
            let hungry = stream && n < op.arg as u64;
            let full = if input.kind == ChanKind::LOCAL { input.charge } else { input.len() };
            let channel = &mut self.channels[socket.input];
            (channel.found, channel.found_by) = (if hungry { full } else { 0 }, t);
        }
        let whole = if stream { n } else { u64::from(self.received.len) };
        self.threads[t].out = [input.head as i64, whole as i64, 1];
        Applied::Done(n as i64)
    }

    /// Bytes of `wanted` that a stream gives to memory of which the first `there` bytes are there: whole pieces.
    fn pieces_within(&self, input: &Channel, wanted: u64, there: u64) -> u64 {
        if there >= wanted || input.kind == ChanKind::STREAM && input.len() <= there {
            return wanted;
        }
        let [mut at, _] = input.queue;
        let mut fits = 0;
        while at != NONE && input.kind == ChanKind::LOCAL {
            let part = u64::from(self.messages[at].len).min(wanted - fits);
            if part == 0 || fits + part > there {
                break;
            }
            fits += part;
            at = self.messages[at].next;
        }
        fits
    }

    /// Something has been taken out of the channel of `s`, which was as `before`: those who write to it are told, as Linux
    /// does, if it counts as writable now.
    fn freed(&mut self, s: SockId, before: &Channel) {
        let socket = self.sockets[s];
        let input = self.channels[socket.input];
        if let Some(writer) = self.sockets.get(input.source).copied() {
            let open = |channel: &Channel| self.writable_soon_to(&writer, channel);
            let told = if writer.is_tcp() { !open(before) && open(&input) } else { open(&input) };
            if told && before.charge + before.len() != input.charge + input.len() {
                self.woke(socket.input, poll::OUT | poll::WRNORM | poll::WRBAND);
            }
        } else if socket.is_local() {
            for other in 0..self.sockets.len {
                if self.peer(other) == Some(s) {
                    let channel = self.sockets[other].input;
                    self.woke(channel, 0);
                }
            }
        }
    }

    fn take_bytes(&mut self, id: ChanId, wanted: u64, peek: bool) -> u64 {
        let channel = &mut self.channels[id];
        let n = channel.len().min(wanted);
        if !peek {
            channel.head += n;
            if channel.is_empty() {
                (channel.head, channel.tail) = (0, 0);
            }
        }
        n
    }

    fn take_message(&mut self, id: ChanId, wanted: u64, peek: bool) -> u64 {
        let [first, _] = self.channels[id].queue;
        self.received = self.messages[first];
        if !peek {
            self.message_pop(id);
        }
        wanted.min(u64::from(self.received.len))
    }

    /// Pieces are read as one, up to the end of one that carries descriptions; where the receiver asks for credentials, only
    /// those of one sender.
    fn take_pieces(&mut self, s: SockId, wanted: u64, peek: bool) -> u64 {
        let id = self.sockets[s].input;
        let by_sender = self.sockets[s].options & crate::state::socket::PASS_CRED != 0;
        let [mut at, _] = self.channels[id].queue;
        let mut n = 0;
        while at != NONE && n < wanted {
            let piece = self.messages[at];
            if n > 0 && by_sender && piece.cred != self.received.cred {
                break;
            }
            let part = u64::from(piece.len).min(wanted - n);
            if n == 0 {
                self.received = Message { rights: NONE, ..piece };
            }
            n += part;
            self.received.rights = if piece.rights == NONE { self.received.rights } else { piece.rights };
            at = piece.next;
            if peek {
                if piece.rights != NONE {
                    break;
                }
                continue;
            }
            if part < u64::from(piece.len) {
                let [first, _] = self.channels[id].queue;
                self.messages[first].len -= part as u32;
                self.messages[first].rights = NONE;
                self.channels[id].head += part;
                break;
            }
            self.message_pop(id);
            if piece.rights != NONE {
                break;
            }
        }
        n
    }

    /// What a TCP connection takes. Buffers that the program chose count as they are.
    pub(crate) fn tcp_room(&self, sender: &Socket, output: &Channel) -> u64 {
        let receiver = self.sockets.get(output.extra);
        let chosen = receiver.filter(|r| r.options & crate::state::socket::RECEIVE_SET != 0);
        if sender.options & SEND_SET == 0 && chosen.is_none() {
            return TCP_ROOM;
        }
        let sends = if sender.options & SEND_SET != 0 { u64::from(sender.send_buffer) } else { TCP_ROOM * 2 / 3 };
        let receives = chosen.map_or(TCP_ROOM / 3, |r| u64::from(r.receive_buffer) / 2);
        (sends + receives).min(TCP_ROOM)
    }

    /// Bytes of `n` that a connection takes now; a message counts as one byte more than it has.
    pub(crate) fn socket_takes(&self, id: ChanId, n: u64) -> u64 {
        let output = &self.channels[id];
        let Some(sender) = self.sockets.get(output.source) else { return 0 };
        let free = output.room - output.len();
        let limit = u64::from(sender.send_buffer);
        match output.kind {
            ChanKind::STREAM => n.min(self.tcp_room(sender, output).saturating_sub(output.len())),
            ChanKind::LOCAL => {
                let (mut charge, mut taken) = (output.charge, 0);
                let largest = largest_piece(sender);
                while taken < n && charge < limit {
                    let part = (n - taken).min(largest);
                    if taken + part > free {
                        break;
                    }
                    charge += piece_charge(part);
                    taken += part;
                }
                taken
            }
            _ if output.charge < limit && n <= free => n + 1,
            _ => 0,
        }
    }

    /// True if a write to a connection would not wait.
    pub(crate) fn socket_writable(&self, id: ChanId, n: u64) -> bool {
        let output = &self.channels[id];
        let Some(sender) = self.sockets.get(output.source) else { return true };
        let fails = sender.error != 0 || sender.shut & NO_SEND != 0 || output.readers == 0;
        let too_long = output.kind == ChanKind::PACKET && n + 32 > u64::from(sender.send_buffer);
        fails || too_long || self.socket_takes(id, n) > 0
    }

    /// `t` is within a send of several pieces and need not wait for room: no signal ends it there, not even a fatal one.
    pub(crate) fn is_within_send(&self, t: Tid) -> bool {
        let op = &self.threads[t].pending;
        is_hurrying(op) && self.threads[t].state == ThreadState::PARKED && self.goes_on(t, op)
    }

    /// TCP: a thread other than `t` has the lock of socket `s`, for a send of several pieces that has not waited.
    pub(crate) fn is_held(&self, s: SockId, t: Tid) -> bool {
        let sends = |&&u: &&Tid| {
            let Thread { pending: op, state, .. } = &self.threads[u];
            u != t
                && *state == ThreadState::PARKED
                && is_hurrying(op)
                && self.channel_of(op.obj).is_some_and(|c| self.channels[c].source == s)
        };
        self.sockets[s].is_tcp() && self.live.as_slice().iter().any(|u| sends(&u))
    }

    /// A write of `t` that has to wait for another one on the same connection.
    pub(crate) fn waits_for_sender(&self, t: Tid, op: &Op) -> bool {
        let source = |c: ChanId| self.channels[c].source;
        self.channel_of(op.obj).map(source).is_some_and(|s| self.sockets.contains(s) && self.is_held(s, t))
    }

    /// A further piece of a local stream whose peer has gone, leaving an error: that is taken where memory for the piece is
    /// asked for, and stays where the peer went after that (net/unix/af_unix.c, unix_stream_sendmsg).
    pub(crate) fn may_overlook_error(&self, op: &Op) -> bool {
        let sender = self.channel_of(op.obj).and_then(|c| self.sockets.get(self.channels[c].source));
        op.has(PARTIAL) && sender.is_some_and(|s| s.is_local() && s.error != 0)
    }

    /// Gives the bytes to be copied to position `Thread::out[0]` on, or minus an error number; `out[1]` is 0 if they are to
    /// be forgotten, `out[2]` 1 if there is room for more. A stream takes one piece. `value` 1: it overlooks an error.
    pub(crate) fn socket_write(&mut self, t: Tid, op: &Op, id: ChanId, value: u32) -> Applied {
        let n = op.arg.max(0) as u64;
        let output = self.channels[id];
        let Some(sender) = self.sockets.get(output.source).copied() else { return Applied::Done(errno::EPIPE) };
        let lacks = self.threads[t].out[0] as u64;
        self.threads[t].out = [output.tail as i64, 1, 0];
        let partial = op.has(PARTIAL);
        if sender.is_tcp() {
            let lost = sender.error != 0 || sender.shut & NO_SEND != 0;
            if lost && is_hurrying(op) {
                // The answer of the other end comes when the socket is let go of: until then it takes what it has room for.
                self.threads[t].out[1] = 0;
                return Applied::Done(self.socket_takes(id, n) as i64);
            }
            if lost && partial {
                return Applied::Done(errno::EPIPE);
            }
        }
        // A connection of packets looks for an error before all else (unix_seqpacket_sendmsg), a local stream where it asks for
        // memory.
        let looks = sender.is_tcp() || output.kind == ChanKind::PACKET || partial && value == 0;
        if looks && sender.error != 0 {
            return Applied::Done(-self.socket_error(output.source));
        }
        if output.kind == ChanKind::PACKET && n + 32 > u64::from(sender.send_buffer) {
            return Applied::Done(errno::EMSGSIZE);
        }
        if sender.shut & NO_SEND != 0 {
            // One that had begun before the other end went takes its error where it asks for memory (sock_alloc_send_pskb).
            let apart = self.concurrent && sender.reset_by != NONE && sender.reset_by != t;
            if output.kind == ChanKind::LOCAL && sender.error != 0 && !partial && apart {
                self.never_comes(RESET_WITHIN);
            }
            return Applied::Done(errno::EPIPE);
        }
        let there = if op.has(LACKS) { lacks } else { u64::MAX };
        if there < n {
            // It is copied before anybody looks who is at the other end.
            if self.socket_takes(id, n) == 0 && output.readers > 0 {
                return self.not_ready(t, op);
            }
            if output.kind != ChanKind::LOCAL || there < n.min(largest_piece(&sender)) {
                return Applied::Done(errno::EFAULT);
            }
        }
        if output.readers == 0 && sender.is_local() {
            return Applied::Done(errno::EPIPE);
        }
        if output.readers == 0 {
            // It arrives where nobody is any more, and a reset comes back.
            let socket = &mut self.sockets[output.source];
            (socket.error, socket.shut) = (-errno::EPIPE as i32, NO_SEND | NO_RECEIVE);
            socket.state = SockState::CLOSED;
            let own = socket.input;
            self.woke(own, 0);
            self.reaches_far();
            self.threads[t].out[1] = 0;
            return Applied::Done(n as i64);
        }
        if let Some(receiver) = self.sink(id).filter(|&s| sender.is_tcp() && self.sockets[s].refuses_data()) {
            // Both ends are reset (net/ipv4/tcp_input.c, tcp_rcv_state_process: data in FIN_WAIT1 and FIN_WAIT2).
            self.reset_tcp(receiver);
            self.reset_tcp(output.source);
            self.reaches_far();
            self.threads[t].out[1] = 0;
            return Applied::Done(n as i64);
        }
        let room = self.socket_takes(id, n);
        let takes = room.min(piece(&sender, &output));
        if takes > 0 {
            self.note_refill(t, id, &sender, takes);
        }
        match output.kind {
            _ if takes == 0 => return self.not_ready(t, op),
            ChanKind::STREAM => {
                self.channels[id].tail += takes;
                self.woke(id, poll::IN | poll::RDNORM);
            }
            ChanKind::LOCAL => {
                if !self.send_message(t, id, &sender, (takes, piece_charge(takes)), Arrival::NONE) {
                    return self.full("messages");
                }
            }
            _ => {
                if !self.send_message(t, id, &sender, (n, message_charge(n)), Arrival::NONE) {
                    return self.full("messages");
                }
                return Applied::Done(n as i64);
            }
        }
        self.threads[t].out[2] = i64::from(room > takes);
        if room <= takes && sender.shut_later != 0 {
            self.sockets[output.source].shut_later = 0;
            self.socket_shutdown(output.source, sender.shut_later);
            self.reaches_far();
        }
        Applied::Done(takes as i64)
    }

    /// A piece of `n` bytes goes into a stream. If it had no room before the last read, which found less than it asked for, that one could
    /// have got it too, once it had made room for it: it looks again after each piece (net/unix/af_unix.c, unix_stream_read_generic;
    /// net/ipv4/tcp.c, tcp_recvmsg_locked).
    fn note_refill(&mut self, t: Tid, id: ChanId, sender: &Socket, n: u64) {
        let output = self.channels[id];
        if output.found == 0 || output.found_by == t {
            return;
        }
        let (room, more) = match output.kind {
            ChanKind::LOCAL => (u64::from(sender.send_buffer), piece_charge(n)),
            _ => (self.tcp_room(sender, &output), n),
        };
        if output.found >= room {
            self.never_comes(REFILLED);
        }
        self.channels[id].found += more;
    }

    /// Puts a message into a channel, with the descriptions that the thread sends along.
    fn send_message(&mut self, t: Tid, to: ChanId, sender: &Socket, (n, charge): (u64, u64), arrival: Arrival) -> bool {
        let message = Message {
            next: NONE,
            len: n as u32,
            charge: charge as u32,
            rights: core::mem::replace(&mut self.threads[t].sending, NONE),
            cred: self.credentials_sent(t, to, sender),
            sender: sender.serial,
            sent: self.now,
            from: sender.local,
            arrival,
        };
        self.message_push(to, message)
    }

    /// Who sends a message is kept with it where one of the two ends asks for it just then, or where the message says it
    /// (net/unix/af_unix.c, unix_maybe_add_creds).
    fn credentials_sent(&self, t: Tid, to: ChanId, sender: &Socket) -> Credentials {
        let asks = |socket: &Socket| socket.options & PASS_CRED != 0;
        let receiver = || self.sink(to).is_some_and(|s| asks(&self.sockets[s]));
        match !sender.is_local() || self.threads[t].says_cred || asks(sender) || receiver() {
            true => self.threads[t].cred,
            false => Credentials::NOBODY,
        }
    }

    /// Where a datagram of the pending operation goes: the socket, or minus an error number.
    pub(crate) fn destination(&self, t: Tid, op: &Op, s: SockId) -> Result<SockId, i64> {
        let socket = &self.sockets[s];
        // The answer of the kernel.
        if socket.domain == NETLINK {
            return Ok(s);
        }
        if op.has(VARIANT) {
            let address = &self.threads[t].address;
            return match self.socket_at(s, address, false) {
                Some(to) if socket.is_local() && self.sockets[to].typ != socket.typ => Err(errno::EPROTOTYPE),
                Some(to) => Ok(to),
                None if address.is_path() && address.ino == 0 => Err(errno::ENOENT),
                None => Err(errno::ECONNREFUSED),
            };
        }
        if socket.peer_serial == CONNECTED_BY_ADDRESS {
            return self.socket_at(s, &socket.remote, false).ok_or(errno::ECONNREFUSED);
        }
        self.peer(s).ok_or(if socket.peer == NONE { errno::ENOTCONN } else { errno::ECONNREFUSED })
    }

    /// True if there is no room for a datagram of socket `s` at socket `to`.
    fn is_crowded(&self, s: SockId, to: SockId, n: u64) -> bool {
        let (from, target) = (&self.sockets[s], &self.sockets[to]);
        let channel = &self.channels[target.input];
        if channel.len() + n > channel.room {
            return true;
        }
        if !from.is_local() {
            return channel.charge + datagram_charge(n) > u64::from(target.receive_buffer);
        }
        let mutual = target.peer == s && target.peer_serial == from.serial;
        !mutual && channel.messages > MAX_DGRAMS || self.charged(from, target.input) >= u64::from(from.send_buffer)
    }

    /// Only local datagrams wait for room.
    pub(crate) fn send_choices(&self, t: Tid, op: &Op) -> u32 {
        let waits = || {
            let s = self.channel_of(op.obj).and_then(|c| self.sink(c))?;
            let socket = &self.sockets[s];
            if !socket.is_local() || socket.shut & NO_SEND != 0 || socket.error != 0 {
                return None;
            }
            let to = self.destination(t, op, s).ok()?;
            let open = self.sockets[to].shut & NO_RECEIVE == 0 && self.may_send(s, to);
            (open && self.is_crowded(s, to, op.arg.max(0) as u64)).then_some(())
        };
        u32::from(op.tries() || self.may_time_out(op) || self.cancelled(t, op) || waits().is_none())
    }

    /// A local socket that is connected takes from its peer only.
    fn may_send(&self, s: SockId, to: SockId) -> bool {
        let target = &self.sockets[to];
        !target.is_local() || target.peer == NONE || target.peer == s && target.peer_serial == self.sockets[s].serial
    }

    /// Gives the bytes sent or minus an error number; they are to be copied to position `Thread::out[0]` of channel `out[1]`,
    /// if that is not -1.
    pub(crate) fn send_perform(&mut self, t: Tid, op: &Op) -> Applied {
        self.threads[t].out = [0, -1, 0];
        let Some(s) = self.channel_of(op.obj).and_then(|c| self.sink(c)) else { return Applied::Done(errno::EBADF) };
        let (socket, n) = (self.sockets[s], op.arg.max(0) as u64);
        if socket.error != 0 {
            self.sockets[s].error = 0;
            return Applied::Done(-i64::from(socket.error));
        }
        if socket.shut & NO_SEND != 0 {
            return Applied::Done(errno::EPIPE);
        }
        let limit = if socket.is_local() { u64::from(socket.send_buffer) - 32 } else { 65_507 };
        if n > limit {
            return Applied::Done(errno::EMSGSIZE);
        }
        let is_netlink = socket.domain == NETLINK;
        if !socket.is_local() && !is_netlink && socket.local.port == 0 {
            self.give_port(t, s, socket.local.any_host());
        }
        let to = match self.destination(t, op, s) {
            Ok(to) => to,
            Err(error) if socket.is_local() => {
                if error == errno::ECONNREFUSED && !op.has(VARIANT) {
                    self.lose_peer(s);
                    (self.sockets[s].peer, self.sockets[s].state) = (NONE, SockState::FRESH);
                }
                return Applied::Done(error);
            }
            Err(_) => {
                // The answer that nobody is there comes to those that are connected.
                if socket.peer_serial == CONNECTED_BY_ADDRESS && !op.has(VARIANT) {
                    self.sockets[s].error = -errno::ECONNREFUSED as i32;
                    self.woke(socket.input, 0);
                }
                return Applied::Done(n as i64);
            }
        };
        if !self.may_send(s, to) {
            return Applied::Done(errno::EPERM);
        }
        if socket.is_local() && self.sockets[to].shut & NO_RECEIVE != 0 {
            return Applied::Done(errno::EPIPE);
        }
        if self.is_crowded(s, to, n) {
            // UDP loses it without a word.
            return if socket.is_local() { self.not_ready(t, op) } else { Applied::Done(n as i64) };
        }
        let mut sender = self.sockets[s];
        let target = self.sockets[to].input;
        let mut arrival = Arrival::NONE;
        if is_netlink {
            sender.local = Address::netlink(0, 0);
        } else if !sender.is_local() {
            let wanted = if op.has(VARIANT) { self.threads[t].address } else { sender.remote };
            let host = wanted.concrete().host();
            arrival = Arrival { host: host.mapped(), asked: self.sockets[to].options & (PKTINFO | PKTINFO6) };
            if sender.local.host().is_any() {
                sender.local = Address::internet(host, sender.local.port);
            }
        }
        let at = self.channels[target].tail;
        let charge = if socket.is_local() { message_charge(n) } else { datagram_charge(n) };
        if !self.send_message(t, target, &sender, (n, charge), arrival) {
            return self.full("messages");
        }
        self.threads[t].out = [at as i64, i64::from(target), 0];
        Applied::Done(n as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages until a socket is full: with Linux 6.18 and buffers of 212,992 bytes.
    #[test]
    fn charges_are_those_of_linux() {
        let until_full = |charge: u64| 212_992_u64.div_ceil(charge);
        for (n, pieces) in
            [(1, 278), (193, 167), (704, 167), (705, 93), (3776, 49), (3777, 44), (8192, 24), (36_544, 6)]
        {
            assert_eq!(until_full(piece_charge(n)), pieces, "pieces of {n}");
        }
        for (n, messages) in [(1, 278), (3776, 49), (3777, 26), (8192, 13), (20_000, 11), (36_544, 6), (65_536, 4)] {
            assert_eq!(until_full(message_charge(n)), messages, "messages of {n}");
        }
        for (n, received) in
            [(1, 256), (193, 256), (700, 92), (1000, 92), (4096, 25), (8192, 12), (20_000, 10), (36_544, 5)]
        {
            assert_eq!(212_992 / datagram_charge(n), received, "datagrams of {n}");
        }
    }
}
