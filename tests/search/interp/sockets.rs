//! Sockets in the interpreter: a pair of local stream sockets, a listener and two clients, two datagram sockets of UDP and
//! two of local ones, by their numbers in [`Sock`].

use vsrun_model::address::{Host, INET, UNIX};
use vsrun_model::fd::{poll, DescId, Polled};
use vsrun_model::socket::{SockState, ACCEPTED, DGRAM, NO_RECEIVE, NO_SEND, STREAM};
use vsrun_model::{Address, Kind, Op, Tid};

use super::{How, Ins, Run};

/// Descriptors of every process, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Sock {
    Left = 20,
    Right,
    Listener,
    One,
    Two,
    Udp,
    Vdp,
    Dgram,
    Egram,
    /// The other ends of connections of `One` and `Two`, where they have been accepted.
    First,
    Second,
}

/// What is done with a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    Receive(u16),
    /// Looks at what there is.
    Peek,
    /// Streams: so many bytes. Datagrams: to the other one.
    Send(u16),
    Connect,
    Accept,
    ShutReceive,
    ShutSend,
    Poll(Sock),
    /// Where the process has one thread.
    Close,
}

const PORT: u16 = 80;

/// True if the program uses sockets.
pub fn uses(program: &super::Program) -> bool {
    program.iter().flatten().any(|ins| matches!(ins, Ins::Sock(..)))
}

fn at(port: u16) -> Address {
    Address::internet(Host::V4([127, 0, 0, 1]), port)
}

impl Run<'_> {
    /// Gives the first process its sockets. Local ones have room for two messages, the listener's queue for one connection.
    pub(super) fn make_sockets(&mut self) {
        let new = |run: &mut Self, domain, typ, number: Sock, local: Address| {
            let world = &mut run.arena.world;
            let desc = world.socket_new(0, domain, typ, 0, 0).expect("room");
            assert!(world.fd_set(0, number as i32, desc));
            let s = world.socket_of(desc).expect("a socket");
            world.sockets[s].local = local;
            world.sockets[s].send_buffer = 1000;
            world.sockets[s].receive_buffer = 1000;
            s
        };
        let none = Address::of_family(UNIX);
        let (left, right) = (new(self, UNIX, STREAM, Sock::Left, none), new(self, UNIX, STREAM, Sock::Right, none));
        self.arena.world.socket_join(left, right);
        self.arena.world.sockets[left].options |= ACCEPTED;
        self.arena.world.sockets[right].options |= ACCEPTED;
        let listener = new(self, INET, STREAM, Sock::Listener, at(PORT));
        self.arena.world.sockets[listener].state = SockState::LISTEN;
        new(self, INET, STREAM, Sock::One, at(1001));
        new(self, INET, STREAM, Sock::Two, at(1002));
        new(self, INET, DGRAM, Sock::Udp, at(1003));
        new(self, INET, DGRAM, Sock::Vdp, at(1004));
        new(self, UNIX, DGRAM, Sock::Dgram, Address::local(b"\0d"));
        new(self, UNIX, DGRAM, Sock::Egram, Address::local(b"\0e"));
    }

    fn socket(&self, t: Tid, sock: Sock) -> Option<DescId> {
        self.arena.world.fd(self.pid(t), self.number(t, sock))
    }

    /// A thread knows the connections that it has accepted itself.
    fn number(&self, t: Tid, sock: Sock) -> i32 {
        match sock {
            Sock::First | Sock::Second => sock as i32 + 2 * self.fibers[t as usize].code as i32,
            _ => sock as i32,
        }
    }

    /// The operation of an instruction on a socket; `None`: it is closed, or the instruction makes no sense there.
    pub(super) fn on_socket(&mut self, t: Tid, sock: Sock, does: Does, how: How) -> Option<Op> {
        let desc = self.socket(t, sock)?;
        let other = if let Does::Poll(other) = does { self.socket(t, other) } else { None };
        let threaded = self.arena.world.procs[self.pid(t)].threaded;
        let number = self.number(t, sock);
        let world = &mut self.arena.world;
        let d = world.descs[desc];
        let s = world.socket_of(desc)?;
        let socket = world.sockets[s];
        let on_own = |kind: Kind, n: u16| {
            let mut op = world.channel_op(kind, d.input, n.into());
            op.mask = world.desc_bits(desc);
            op
        };
        let op = match does {
            Does::Receive(n) => Self::how(on_own(Kind::FD_READ, n), how),
            Does::Peek => Self::how(on_own(Kind::FD_READ, 9).with(vsrun_model::op::VARIANT), how),
            Does::Accept if sock == Sock::Listener => Self::how(on_own(Kind::FD_ACCEPT, 0), how),
            Does::Send(n) if socket.is_dgram() => {
                let target = match sock {
                    Sock::Udp => at(1004),
                    Sock::Vdp => at(1003),
                    Sock::Dgram => Address::local(b"\0e"),
                    _ => Address::local(b"\0d"),
                };
                let mut op = world.channel_op(Kind::FD_SEND, d.input, n.into()).with(vsrun_model::op::VARIANT);
                op.mask |= target.bit();
                world.threads[t].address = target;
                Self::how(op, how)
            }
            Does::Send(n) if world.channels.contains(d.output) => {
                let mut op = world.channel_op(Kind::FD_WRITE, d.output, n.into());
                op.mask |= world.channel_bit(d.input);
                Self::how(op, how)
            }
            // It fails; that it is not connected yet is seen.
            Does::Send(_) => world.desc_op(Kind::FD_CONTROL, desc),
            Does::Connect if matches!(sock, Sock::One | Sock::Two) => {
                let mut op = world.channel_op(Kind::FD_CONNECT, d.input, 0);
                op.mask |= at(PORT).bit();
                world.threads[t].address = at(PORT);
                Self::how(op, how)
            }
            Does::ShutReceive | Does::ShutSend => world.desc_op(Kind::FD_CONTROL, desc),
            Does::Poll(_) => {
                let mut op = Op::new(Kind::FD_POLL);
                world.threads[t].n_polled = 0;
                for desc in [Some(desc), other].into_iter().flatten() {
                    let at = world.threads[t].n_polled as usize;
                    let events = if at == 0 { poll::IN } else { poll::OUT };
                    world.threads[t].polled[at] = Polled { desc, events, ready: 0 };
                    world.threads[t].n_polled += 1;
                    op.mask |= world.desc_bits(desc);
                }
                Self::how(op, how)
            }
            Does::Close if !threaded => world.desc_op(Kind::FD_CLOSE, desc).arg(number.into()),
            _ => return None,
        };
        Some(op)
    }

    /// What belongs to an operation on a socket and is done by who performs it; what the program sees of it.
    pub(super) fn after_socket(&mut self, t: Tid, ins: &Ins, result: i64) -> Vec<i64> {
        let Ins::Sock(sock, does, _) = *ins else { return Vec::new() };
        let p = self.pid(t);
        let desc = self.socket(t, sock);
        let world = &mut self.arena.world;
        let s = desc.and_then(|desc| world.socket_of(desc));
        match does {
            Does::ShutReceive | Does::ShutSend => {
                let how = if does == Does::ShutSend { NO_SEND } else { NO_RECEIVE };
                s.map(|s| world.socket_shutdown(s, how)).into_iter().collect()
            }
            // Which connection it is shows in the result no more: it is an index.
            Does::Accept if result >= 0 => {
                let new = result as DescId;
                let client = world.sockets[world.socket_of(new).expect("a socket")].remote.port;
                let which = if client == 1001 { Sock::First } else { Sock::Second };
                // One that is accepted again cannot be named.
                let fd = self.number(t, which);
                let world = &mut self.arena.world;
                let fd = if world.fd(p, fd).is_some() { fd + 20 } else { fd };
                assert!(world.fd_set(p, fd, new));
                world.descs[new].refs -= 1;
                vec![client.into()]
            }
            Does::Receive(_) | Does::Peek => vec![world.threads[t].out[1], world.threads[t].out[2]],
            Does::Poll(_) => {
                let thread = &world.threads[t];
                thread.polled[..thread.n_polled as usize].iter().map(|p| p.ready.into()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// What the sockets are like at the end, whatever order they were made in.
    pub(super) fn sockets(&self) -> String {
        let world = &self.arena.world;
        let mut all: Vec<_> = world.sockets.as_slice().iter().filter(|s| s.domain != 0).collect();
        all.sort_by_key(|s| {
            (s.domain, s.typ, s.local.port, s.remote.port, s.local.bytes, s.state == SockState::LISTEN)
        });
        let one = |s: &&vsrun_model::socket::Socket| {
            let c = &world.channels[s.input];
            let refs = world.descs[s.desc].refs;
            let held = (c.len(), c.messages, c.charge, c.readers, c.writers, c.finished);
            (s.local.port, s.remote.port, s.state.0, s.shut, s.error, s.queued, refs, held)
        };
        format!("{:?}", all.iter().map(one).collect::<Vec<_>>())
    }
}
