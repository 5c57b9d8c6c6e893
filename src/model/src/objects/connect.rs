//! Connections: asked for, queued, accepted.

use super::row::*;
use crate::base::{Address, Host};
use crate::state::{
    poll, Advance, SockId, SockState, ACCEPTED, CONNECTED_BY_ADDRESS, DEFERRED, DEFER_ACCEPT, GAVE_UP_PORT, GIVEN_PORT,
    LISTENS, NO_RECEIVE, NO_SEND, SYN_RETRIES, UNTOLD,
};

kinds! {
    /// Take a connection from the queue `obj`.
    FD_ACCEPT = 69, "accept" {
        operands: Operands::Objects,
        enabled: blocks(|w, t, op| u32::from(op.tries() || w.may_time_out(op) || w.cancelled(t, op) || w.acceptable(op)), |q| q.channel()),
        perform: |w, t, op, _| w.accept_perform(t, op),
        records: Records::number(|w, t, op| w.channel_states(t, op) | w.taken_out_of_reach(t, op)), cells: ON_CHANNELS,
        follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::Accepts, signals: Signals::TRANSFERS, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle { peer: |_, _, _| true, ..Idle::BUSY }, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::Row, arguments: OBJECT, outcome: Outcome::Nothing, waits: Some(|_, _, op, words| {
            say![words, "a connection to ", Thing::Object(op.obj), " (nobody has connected)"];
        }), identity: BY_OBJECTS },
    }
    /// Connect the socket whose channel is `obj` to `Thread::address`; a bit in `mask` for what is found there.
    FD_CONNECT = 70, "connect" {
        operands: Operands::Objects, enabled: blocks(World::connect_choices, |_| Answer::Unknown),
        perform: |w, t, op, _| w.connect_perform(t, op),
        records: Records::number(World::channel_states), cells: ON_CHANNELS, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::Connects, signals: Signals { asks_first: AsksFirst::Always, ..Signals::TRANSFERS }, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::Row, arguments: OBJECT,
            outcome: Outcome::Nothing, waits: Some(|world, t, _, words| room_words(world, t, "in the queue of connections of", words)), identity: BY_OBJECTS },
    }
    /// Send a datagram of `arg` bytes from the socket whose channel is `obj`, [`VARIANT`](crate::op::VARIANT): to `Thread::address`.
    FD_SEND = 76, "send" {
        operands: Operands::Objects, enabled: blocks(World::send_choices, |_| Answer::Unknown),
        perform: |w, t, op, _| w.send_perform(t, op),
        records: Records::number(World::channel_states), cells: ON_CHANNELS, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::SendsTo, signals: Signals { asks_first: AsksFirst::Always, ..Signals::TRANSFERS }, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::Row, arguments: OBJECT_AND_NUMBER,
            outcome: Outcome::Nothing, waits: Some(|world, t, _, words| room_words(world, t, "for a datagram at", words)), identity: BY_OBJECTS },
    }
    /// Give the socket whose channel is `obj` an address, or take its name for connections (bind; with `LISTENS`: listen).
    FD_BIND = 77, "bind" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: DONE,
        records: Records::number(World::channel_states), cells: ON_CHANNELS, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::Binds, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown::passes(Call::By(|op| if op.has(LISTENS) { "listen" } else { "bind" }), OBJECT),
    }
}

fn room_words(world: &World, t: Tid, what: &str, words: &mut dyn Words) {
    say![words, "room ", what, " "];
    match &world.threads[t].address {
        address if address.is_name() => say![words, address],
        _ => say![words, "its peer"],
    }
}

/// What becomes of a connect in the present state.
enum Way {
    /// It gives this now.
    Gives(i64),
    /// It is put into the queue of a listener.
    Joins(SockId),
    /// There is no room in the queue of a listener.
    Full(SockId),
    /// It waits for what it has asked for before.
    Waits,
}

impl World {
    /// What a connect, a datagram or a bind of thread `t` concerns beside what it names: who is told of the socket that it
    /// finds.
    pub(crate) fn found_reach(&self, t: Tid, op: &Op) -> u32 {
        let Some(s) = self.connecting(op) else { return 0 };
        let channels = op.kind.row().channels;
        let target = match channels == Channels::SendsTo {
            true => self.destination(t, op, s).ok(),
            false => self.socket_at(s, &self.threads[t].address, channels == Channels::Connects),
        };
        target.map_or(0, |to| self.reach(self.sockets[to].input))
    }

    fn connecting(&self, op: &Op) -> Option<SockId> {
        self.channel_of(op.obj).and_then(|channel| self.sink(channel))
    }

    fn way(&self, t: Tid, s: SockId) -> Way {
        let socket = &self.sockets[s];
        let address = &self.threads[t].address;
        let own = match socket.state {
            SockState::CONNECTED if socket.options & UNTOLD != 0 => Some(Way::Gives(0)),
            SockState::LISTEN if socket.is_local() => Some(Way::Gives(errno::EINVAL)),
            SockState::CONNECTED | SockState::LISTEN => Some(Way::Gives(errno::EISCONN)),
            SockState::CONNECTING => Some(Way::Waits),
            SockState::FAILED | SockState::CLOSED if socket.is_local() => Some(Way::Gives(errno::EISCONN)),
            SockState::FAILED | SockState::CLOSED if socket.error != 0 => Some(Way::Gives(-i64::from(socket.error))),
            SockState::FAILED | SockState::CLOSED => Some(Way::Gives(errno::ECONNABORTED)),
            _ => None,
        };
        // A local one looks for the other first (net/unix/af_unix.c, unix_stream_connect).
        let own = match own {
            Some(way) if !socket.is_local() => return way,
            own => own,
        };
        let found = match socket.is_local() {
            // What is there, listening or not, is not looked further for.
            true => self.socket_at(s, address, true).or_else(|| self.socket_at(s, address, false)),
            false => self.socket_at(s, address, true),
        };
        let Some(listener) = found else {
            let missing = address.is_path() && address.ino == 0;
            return Way::Gives(if missing { errno::ENOENT } else { errno::ECONNREFUSED });
        };
        let there = &self.sockets[listener];
        if there.typ != socket.typ {
            return Way::Gives(errno::EPROTOTYPE);
        }
        if there.state != SockState::LISTEN || there.shut & NO_RECEIVE != 0 {
            return Way::Gives(errno::ECONNREFUSED);
        }
        if there.queued > there.backlog {
            return Way::Full(listener);
        }
        own.unwrap_or(Way::Joins(listener))
    }

    pub(crate) fn connect_choices(&self, t: Tid, op: &Op) -> u32 {
        let waits = self.connecting(op).is_some_and(|s| matches!(self.way(t, s), Way::Full(_) | Way::Waits));
        u32::from(op.tries() || self.may_time_out(op) || self.cancelled(t, op) || !waits)
    }

    /// Connects the socket whose channel the operation names to `Thread::address`. Gives 0 or minus an error number.
    pub(crate) fn connect_perform(&mut self, t: Tid, op: &Op) -> Applied {
        let Some(s) = self.connecting(op) else { return Applied::Done(errno::EBADF) };
        let (local, at_once) = (self.sockets[s].is_local(), op.has(TRY));
        let state = self.sockets[s].state;
        let result = match self.way(t, s) {
            Way::Gives(error) if matches!(state, SockState::FAILED | SockState::CLOSED) && !local => {
                let socket = &mut self.sockets[s];
                (socket.error, socket.shut, socket.state) = (0, 0, SockState::FRESH);
                error
            }
            Way::Gives(0) => {
                self.sockets[s].options &= !UNTOLD;
                0
            }
            Way::Gives(error) if error == errno::ECONNREFUSED && at_once && !local => {
                self.name_client(t, s);
                let socket = &mut self.sockets[s];
                (socket.error, socket.state) = (-errno::ECONNREFUSED as i32, SockState::FAILED);
                socket.shut = NO_RECEIVE | NO_SEND;
                let input = socket.input;
                self.woke(input, 0);
                errno::EINPROGRESS
            }
            Way::Gives(error) => error,
            Way::Full(_) if local || !at_once => {
                let Applied::Done(error) = self.not_ready(t, op) else { return Applied::Ended };
                let timed_out = error == errno::EAGAIN && !local;
                if timed_out {
                    errno::EINPROGRESS
                } else {
                    error
                }
            }
            Way::Waits if at_once => errno::EALREADY,
            Way::Waits => {
                let Applied::Done(error) = self.not_ready(t, op) else { return Applied::Ended };
                error
            }
            Way::Joins(listener) | Way::Full(listener) => {
                if !self.join_queue(t, s, listener) {
                    return self.full("connections");
                }
                if local || !at_once {
                    0
                } else {
                    self.sockets[s].options |= UNTOLD;
                    errno::EINPROGRESS
                }
            }
        };
        Applied::Done(result)
    }

    /// Gives a TCP client its address.
    fn name_client(&mut self, t: Tid, s: SockId) {
        let target = self.threads[t].address.concrete();
        let own = self.sockets[s].local;
        if own.port == 0 || self.sockets[s].options & GAVE_UP_PORT != 0 {
            let host = if own.any_host().is_any() { target.host() } else { own.host() };
            self.give_port(t, s, host);
        } else if own.host().is_any() {
            self.sockets[s].local = Address::internet(target.host(), own.port);
        }
    }

    /// Makes the other end of a connection and puts it into the queue of a listener.
    fn join_queue(&mut self, t: Tid, client: SockId, listener: SockId) -> bool {
        let there = self.sockets[listener];
        let Some(desc) = self.socket_new(t, there.domain, there.typ, there.protocol, 0) else { return false };
        let Some(server) = self.socket_of(desc) else { return false };
        self.descs[desc].refs = 1;
        if !there.is_local() {
            self.name_client(t, client);
            self.sockets[client].remote = self.threads[t].address.concrete();
        } else {
            self.sockets[client].remote = there.local;
        }
        let established = there.queued <= there.backlog;
        if there.kept(DEFER_ACCEPT).is_some_and(|retransmissions| retransmissions > 0) {
            self.never_comes(DEFERRED);
        }
        let (near, far) = (self.sockets[client].local, self.sockets[client].remote);
        let socket = &mut self.sockets[server];
        socket.local = if there.is_local() { there.local } else { far };
        socket.remote = near;
        socket.options = there.options & !(UNTOLD | GIVEN_PORT) | ACCEPTED;
        socket.send_buffer = there.send_buffer;
        socket.receive_buffer = there.receive_buffer;
        (socket.values, socket.n_values) = (there.values, there.n_values);
        (socket.receive_timeout, socket.send_timeout) =
            if there.is_local() { (0, 0) } else { (there.receive_timeout, there.send_timeout) };
        socket.peer_cred = self.threads[t].cred;
        self.sockets[client].peer_cred = there.own_cred;
        self.socket_join(client, server);
        if !established {
            self.sockets[client].state = SockState::CONNECTING;
        }
        let [_, last] = self.sockets[listener].queue;
        match last {
            NONE => self.sockets[listener].queue = [server; 2],
            last => {
                self.sockets[last].next = server;
                self.sockets[listener].queue[1] = server;
            }
        }
        self.sockets[listener].queued += 1;
        if established {
            self.woke(there.input, poll::IN | poll::RDNORM);
            self.woke(self.sockets[client].input, 0);
        }
        true
    }

    fn acceptable(&self, op: &Op) -> bool {
        let Some(s) = self.connecting(op) else { return true };
        let socket = &self.sockets[s];
        socket.state != SockState::LISTEN || socket.established() > 0 || socket.shut & NO_RECEIVE != 0
    }

    /// Gives the description of a connection, to which the caller now refers, or minus an error number.
    pub(crate) fn accept_perform(&mut self, t: Tid, op: &Op) -> Applied {
        let Some(s) = self.connecting(op) else { return Applied::Done(errno::EINVAL) };
        let socket = self.sockets[s];
        if socket.state != SockState::LISTEN {
            return Applied::Done(errno::EINVAL);
        }
        let [first, last] = socket.queue;
        if first == NONE {
            let over = socket.shut & NO_RECEIVE != 0;
            return if over { Applied::Done(errno::EINVAL) } else { self.not_ready(t, op) };
        }
        let next = self.sockets[first].next;
        self.sockets[first].next = NONE;
        self.sockets[s].queue = if first == last { [NONE; 2] } else { [next, last] };
        self.sockets[s].queued -= 1;
        self.establish_next(s);
        self.advances(t, Advance::ACCEPTED, -1);
        Applied::Done(i64::from(self.sockets[first].desc))
    }

    /// One more of those who wait for room in a queue has it.
    fn establish_next(&mut self, listener: SockId) {
        let [mut at, _] = self.sockets[listener].queue;
        for _ in 1..self.sockets[listener].established() {
            at = self.sockets[at].next;
        }
        if at == NONE {
            return;
        }
        if let Some(client) = self.peer(at) {
            if self.sockets[client].state == SockState::CONNECTING {
                self.sockets[client].state = SockState::CONNECTED;
                // TCP asks again when its time is over, not when there is room (net/ipv4/tcp_timer.c); a local one is let in.
                if self.sockets[client].is_tcp() {
                    self.never_comes(SYN_RETRIES);
                }
                self.woke(self.sockets[client].input, 0);
            }
        }
    }

    /// Connects a datagram socket to `Thread::address`. Gives 0 or minus an error number.
    pub fn connect_dgram(&mut self, t: Tid, s: SockId) -> i64 {
        let address = self.threads[t].address;
        let socket = self.sockets[s];
        if address.family == 0 {
            if socket.is_local() && socket.peer != NONE {
                self.lose_peer(s);
            }
            let socket = &mut self.sockets[s];
            (socket.peer, socket.peer_serial, socket.state) = (NONE, 0, SockState::FRESH);
            socket.remote = Address::NONE;
            if !socket.is_local() && socket.options & GIVEN_PORT != 0 {
                socket.local = Address::of_family(socket.domain);
                socket.options &= !GIVEN_PORT;
            }
            return 0;
        }
        if socket.is_local() {
            let Some(to) = self.socket_at(s, &address, false) else {
                let missing = address.is_path() && address.ino == 0;
                return if missing { errno::ENOENT } else { errno::ECONNREFUSED };
            };
            let there = self.sockets[to];
            if there.typ != socket.typ {
                return errno::EPROTOTYPE;
            }
            if there.peer != NONE && !(there.peer == s && there.peer_serial == socket.serial) {
                return errno::EPERM;
            }
            if socket.peer != NONE && self.peer(s) != Some(to) {
                self.lose_peer(s);
            }
            let own = &mut self.sockets[s];
            (own.peer, own.peer_serial, own.remote) = (to, there.serial, there.local);
            own.state = SockState::CONNECTED;
            return 0;
        }
        if socket.local.port == 0 || socket.local.any_host().is_any() {
            let host: Host = address.concrete().host();
            if socket.local.port == 0 {
                self.give_port(t, s, host);
            } else {
                self.sockets[s].local = Address::internet(host, socket.local.port);
            }
        }
        let own = &mut self.sockets[s];
        (own.peer, own.peer_serial) = (NONE, CONNECTED_BY_ADDRESS);
        own.remote = address.concrete();
        own.state = SockState::CONNECTED;
        0
    }
}
