//! What operations on descriptors concern beyond the objects they name: the channels of [`Op::mask`], those of sockets here, those
//! of epoll instances in `epoll`.

use crate::base::{Op, NONE, REACHES, SEVERAL, VARIANT};
use crate::objects::row::Channels;
use crate::state::{Act, ChanId, Desc, DescId, SockId, SockState, World};

/// The channels that an operation on descriptors concerns: bits of [`Op::mask`], and the flags that say how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reach {
    mask: u32,
    flags: u8,
}

impl Reach {
    /// `None`: it is not on descriptors.
    pub fn of(act: &Act) -> Option<Reach> {
        let channels = act.op.kind.row().channels;
        channels.any().then(|| Reach { mask: act.op.mask, flags: act.op.flags & Reach::flags_of(channels) })
    }

    /// Those of its flags that others change.
    fn flags_of(channels: Channels) -> u8 {
        match channels {
            Channels::Polls | Channels::Sends => REACHES | VARIANT,
            _ => REACHES,
        }
    }

    /// Both.
    pub fn with(self, other: Reach) -> Reach {
        Reach { mask: self.mask | other.mask, flags: self.flags | other.flags }
    }

    /// What `other` does not have.
    pub fn beyond(self, other: Reach) -> Reach {
        Reach { mask: self.mask & !other.mask, flags: self.flags & !other.flags }
    }

    /// What an operation that was performed may have taken out of this.
    pub fn taken_by(self, act: &Act) -> Reach {
        let recorded = ((act.state as u64 >> 32) as u32, act.state as u32);
        let (of, reached) = match act.op.kind.row().channels {
            Channels::Watches | Channels::ClosesAll => recorded,
            Channels::Closes if act.op.has(SEVERAL) => recorded,
            Channels::Accepts => (act.op.mask, recorded.0),
            // Which names a socket has is not recorded: it may have had any.
            Channels::Connects | Channels::SendsTo | Channels::Binds => (act.op.mask, u32::MAX),
            Channels::Controls | Channels::Closes if act.op.has(VARIANT) => (act.op.mask, u32::MAX),
            _ => (0, 0),
        };
        Reach { mask: if of & self.mask == 0 { 0 } else { reached }, flags: self.flags }
    }

    /// `act` with this.
    pub fn put(self, act: &Act) -> Act {
        let flags = act.op.flags & !Reach::flags_of(act.op.kind.row().channels) | self.flags;
        Act { op: Op { mask: self.mask, flags, ..act.op }, ..*act }
    }
}

impl World {
    /// The bits of [`Op::mask`](crate::base::op::Op) for what concerns a socket, beside its channels.
    pub(crate) fn socket_bits(&self, desc: &Desc) -> u32 {
        let Some(socket) = self.sockets.get(desc.extra) else { return 0 };
        let bits = socket.local.bit();
        match socket.state {
            SockState::CONNECTED if !socket.is_dgram() => 0,
            SockState::CONNECTING => bits | socket.remote.bit(),
            SockState::LISTEN | SockState::CLOSED | SockState::FAILED => bits,
            _ if socket.is_dgram() && (socket.peer != NONE || bits != 0) => {
                let peer = self.sockets.get(socket.peer).map_or(0, |p| self.channel_bit(p.input) | p.local.bit());
                bits | peer | socket.remote.bit()
            }
            // It may come to be found under any name.
            _ if bits == 0 => u32::MAX,
            _ => bits,
        }
    }

    /// Who would be told of a listener's end: both ends of the connections in its queue.
    pub(crate) fn queue_bits(&self, desc: DescId) -> u32 {
        let Some(s) = self.socket_of(desc) else { return 0 };
        let (mut at, mut bits) = (self.sockets[s].queue[0], 0);
        while at != NONE {
            bits |= self.end_bits(at);
            at = self.sockets[at].next;
        }
        bits
    }

    /// The bits of both ends of a connection.
    fn end_bits(&self, s: SockId) -> u32 {
        let ends = [Some(s), self.peer(s)].into_iter().flatten();
        ends.fold(0, |bits, s| bits | self.channel_bit(self.sockets[s].input))
    }

    /// Those of the first connection in the queue of the listener with this channel.
    pub(crate) fn first_in_queue(&self, id: ChanId) -> u32 {
        let first = self.sink(id).map_or(NONE, |s| self.sockets[s].queue[0]);
        if first == NONE {
            0
        } else {
            self.end_bits(first)
        }
    }
}
