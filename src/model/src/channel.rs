//! Channels: what is written at one end and read at the other. A pipe is one channel, a pair of connected sockets two.
//!
//! The model knows how much a channel holds; the bytes lie in a ring of the pool, where who performs the operation
//! moves them.

use crate::fd::{poll, Desc};
use crate::object::{Key, ObjKind, NONE, SHARED};
use crate::op::Op;
use crate::thread::Uid;
use crate::world::{Applied, World};
use crate::{errno, ObjId, Tid};

/// Index of a channel in [`World::channels`].
pub type ChanId = u32;

/// Bytes that a pipe always takes whole.
pub const PIPE_BUF: u64 = 4096;
/// Buffers of a pipe, a page each.
pub const PIPE_SLOTS: usize = 16;
/// Bytes of a pipe's ring.
pub const PIPE_RING: u64 = PIPE_BUF * PIPE_SLOTS as u64;
const PAGE: u64 = 4096;
/// Space of the keys of channels.
const SPACE: u32 = SHARED | 0x3fff_fffe;
/// Space of the keys of FIFOs.
pub(crate) const FIFO_SPACE: u32 = SHARED | 0x3fff_fffd;

/// How a channel keeps what is written to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct ChanKind(pub u8);

#[allow(missing_docs)]
impl ChanKind {
    /// Bytes in pages, as a pipe does.
    pub const PIPE: ChanKind = ChanKind(1);
    /// Bytes in pages, of a pipe with a name.
    pub const FIFO: ChanKind = ChanKind(7);
    /// A number (eventfd).
    pub const COUNTER: ChanKind = ChanKind(8);
    /// When to fire (timerfd).
    pub const TIMER: ChanKind = ChanKind(9);
    /// Nothing: what there is to be read are pending signals (signalfd).
    pub const SIGNALS: ChanKind = ChanKind(10);
    /// Nothing: what there is are events of what is watched (epoll).
    pub const EPOLL: ChanKind = ChanKind(11);
    /// Bytes, as TCP does.
    pub const STREAM: ChanKind = ChanKind(2);
    /// Bytes in pieces, as local stream sockets do.
    pub const LOCAL: ChanKind = ChanKind(3);
    /// Messages.
    pub const PACKET: ChanKind = ChanKind(4);
    /// Messages by priority (POSIX message queues).
    pub const QUEUE: ChanKind = ChanKind(12);
}

/// A channel.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Channel {
    /// Its object, or [`NONE`] if the record is not in use (then `extra` is the next free one).
    pub obj: ObjId,
    /// How it keeps things.
    pub kind: ChanKind,
    /// Pipes: the first slot in use.
    pub first: u8,
    /// Pipes: slots in use.
    pub used: u8,
    /// Pipes: slots that there are.
    pub slots: u8,
    /// Open file descriptions that read from it.
    pub readers: u32,
    /// Open file descriptions that write to it.
    pub writers: u32,
    /// Bytes read so far, since it was last empty.
    pub head: u64,
    /// Bytes written so far, since it was last empty.
    pub tail: u64,
    /// Where its ring lies in the pool, or [`NO_RING`].
    pub ring: u64,
    /// Size of its ring, bytes.
    pub room: u64,
    /// Pipes: bytes in each slot.
    pub lengths: [u16; PIPE_SLOTS],
    /// Counters: the number. Timers: when it fires next, or has fired and was not read since, virtual ns; 0: disarmed.
    /// Signal descriptors: the signals. FIFOs: how often it has been opened for writing. Message queues: index of its record.
    pub value: u64,
    /// Counters: [`SEMAPHORE`](crate::event::SEMAPHORE) or 0. Timers: ns from one time to the next, 0: once. FIFOs: how
    /// often it has been opened for reading.
    pub period: u64,
    /// How often its descriptions are watched by epoll instances.
    pub watched: u32,
    pad: u32,
    /// The thread that made it, and how many it had made before.
    pub maker: Uid,
    /// See `maker`.
    pub number: u32,
    /// Sockets: the one that reads from it, or [`NONE`]; next free record.
    pub extra: u32,
    /// Sockets with connections: the one that writes to it, or [`NONE`].
    pub source: u32,
    /// Sockets: messages in it, the first and the last.
    pub queue: [u32; 2],
    /// Sockets and message queues: how many there are.
    pub messages: u32,
    /// Sockets: nothing will be written any more.
    pub finished: bool,
    pad2: [u8; 3],
    /// Sockets: memory charged for what is in it.
    pub charge: u64,
}

/// No ring yet.
pub const NO_RING: u64 = u64::MAX;

/// A ring of the pool that nobody uses.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct FreeRing {
    /// Offset in the pool; [`NO_RING`]: the record is not in use.
    pub at: u64,
    /// Size, bytes.
    pub size: u64,
}

fn name_of(maker: Uid, number: u32) -> u64 {
    let mut z = maker.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(number).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 30)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 29)
}

/// A number for the name of a FIFO (FNV-1a).
pub(crate) fn name_hash(name: &[u8]) -> u64 {
    name.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

impl Channel {
    /// Bytes that it holds.
    pub fn len(&self) -> u64 {
        self.tail - self.head
    }

    /// It is what a socket reads from.
    pub fn is_socket(&self) -> bool {
        matches!(self.kind, ChanKind::STREAM | ChanKind::LOCAL | ChanKind::PACKET)
    }

    /// True if it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.tail == self.head
    }

    fn slot(&mut self, n: u8) -> &mut u16 {
        &mut self.lengths[(self.first as usize + n as usize) % PIPE_SLOTS]
    }

    fn pipe_put(&mut self, n: u64) {
        let odd = n % PAGE;
        let mut left = n;
        if odd > 0 && self.used > 0 {
            let last = self.used - 1;
            if u64::from(*self.slot(last)) + odd <= PAGE {
                *self.slot(last) += odd as u16;
                left -= odd;
            }
        }
        while left > 0 && self.used < self.slots {
            let part = left.min(PAGE);
            let next = self.used;
            *self.slot(next) = part as u16;
            self.used += 1;
            left -= part;
        }
        self.tail += n;
    }

    fn pipe_take(&mut self, n: u64) {
        let mut left = n;
        while left > 0 && self.used > 0 {
            let part = left.min(u64::from(*self.slot(0)));
            *self.slot(0) -= part as u16;
            left -= part;
            if *self.slot(0) == 0 {
                self.first = (self.first + 1) % PIPE_SLOTS as u8;
                self.used -= 1;
            }
        }
        self.head += n;
    }
}

impl World {
    /// A new channel without ends, made by thread `t`. `None`: no room.
    pub fn channel_new(&mut self, t: Tid, kind: ChanKind, room: u64) -> Option<ChanId> {
        let (maker, number) = (self.threads[t].uid, self.threads[t].made);
        self.threads[t].made += 1;
        let obj = self.make(Key::new(SPACE, ObjKind::CHANNEL, name_of(maker, number)), |object| {
            // Kept when it is closed, for reports.
            object.flags = u32::from(kind.0);
            object.value = t as i32;
            object.count = number + 1;
        })?;
        self.channel_at(obj, maker, number, kind, room)
    }

    /// A channel for an object that has none, made by thread `t`. `None`: no room.
    pub(crate) fn channel_on(&mut self, t: Tid, obj: ObjId, kind: ChanKind, room: u64) -> Option<ChanId> {
        self.channel_at(obj, self.threads[t].uid, 0, kind, room)
    }

    fn channel_at(&mut self, obj: ObjId, maker: Uid, number: u32, kind: ChanKind, room: u64) -> Option<ChanId> {
        let fresh = Channel {
            obj,
            kind,
            slots: PIPE_SLOTS as u8,
            ring: NO_RING,
            room,
            maker,
            number,
            extra: NONE,
            source: NONE,
            queue: [NONE; 2],
            ..Channel::default()
        };
        let id = match self.free_channel {
            NONE => self.channels.push(fresh)?,
            free => {
                self.free_channel = self.channels[free].extra;
                self.channels[free] = fresh;
                free
            }
        };
        self.objects[obj].extra = id;
        self.n_timers += u32::from(kind == ChanKind::TIMER);
        Some(id)
    }

    /// Forgets a channel that has no ends left.
    pub(crate) fn channel_free(&mut self, id: ChanId) {
        let Channel { readers, writers, ring, room, obj, kind, .. } = self.channels[id];
        if readers > 0 || writers > 0 || obj == NONE {
            return;
        }
        if ring != NO_RING {
            self.ring_free(ring, room);
        }
        self.n_timers -= u32::from(kind == ChanKind::TIMER);
        if kind == ChanKind::QUEUE {
            self.mqueue_free(id);
        }
        self.objects[obj].extra = NONE;
        self.channels[id] = Channel { obj: NONE, extra: self.free_channel, ..Channel::default() };
        self.free_channel = id;
    }

    fn ring_free(&mut self, at: u64, size: u64) {
        let free = FreeRing { at, size };
        match self.free_rings.as_slice().iter().position(|r| r.at == NO_RING) {
            Some(place) => self.free_rings[place as u32] = free,
            // What does not fit is lost until the execution ends.
            None => drop(self.free_rings.push(free)),
        }
    }

    /// A ring of that size that nobody uses any more.
    pub fn ring_again(&mut self, size: u64) -> Option<u64> {
        let place = self.free_rings.as_slice().iter().position(|r| r.at != NO_RING && r.size == size)?;
        let at = self.free_rings[place as u32].at;
        self.free_rings[place as u32].at = NO_RING;
        Some(at)
    }

    /// The object of a channel, or [`NONE`].
    pub fn channel_obj(&self, id: ChanId) -> ObjId {
        self.channels.get(id).map_or(NONE, |c| c.obj)
    }

    /// The bit of [`Op::mask`] for a channel; it is the same in every execution.
    pub fn channel_bit(&self, id: ChanId) -> u32 {
        match self.channel_obj(id) {
            NONE => 0,
            obj => 1 << (self.objects[obj].key.addr % 32),
        }
    }

    /// The channel of an object.
    pub fn channel_of(&self, obj: ObjId) -> Option<ChanId> {
        let object = self.objects.get(obj)?;
        (object.key.kind == ObjKind::CHANNEL && self.channels.contains(object.extra)).then_some(object.extra)
    }

    /// An operation on one channel.
    pub fn channel_op(&self, kind: crate::Kind, id: ChanId, arg: i64) -> Op {
        let mut op = Op::on(kind, self.channel_obj(id)).arg(arg);
        op.mask = self.channel_bit(id);
        op
    }

    /// Bytes of `n` that could be written now. A write of up to a page goes into the last buffer, if it fits there whole, or
    /// into one of its own; of a longer one the odd part comes first (fs/pipe.c, pipe_write).
    pub fn channel_takes(&self, id: ChanId, n: u64) -> u64 {
        self.state_of(id).takes(n)
    }

    pub(crate) fn pipe_readiness(&self, desc: &Desc) -> u16 {
        let mut ready = 0;
        if let Some(input) = self.channels.get(desc.input) {
            ready |= if input.is_empty() { 0 } else { poll::IN | poll::RDNORM };
            // A FIFO that nobody has had open for writing since is not at its end.
            let never = desc.extra != NONE && desc.extra == input.value as u32;
            ready |= if input.writers == 0 && !never { poll::HUP } else { 0 };
        }
        if let Some(output) = self.channels.get(desc.output) {
            ready |= if output.used < output.slots { poll::OUT | poll::WRNORM } else { 0 };
            ready |= if output.readers == 0 { poll::ERR } else { 0 };
        }
        ready
    }

    /// A write that fits in a buffer is made at once or not at all.
    pub(crate) fn goes_on(&self, t: Tid, op: &Op) -> bool {
        let Some(id) = self.channel_of(op.obj) else { return true };
        let channel = &self.channels[id];
        if channel.is_socket() {
            let n = op.arg.max(0) as u64;
            return if op.kind == crate::Kind::FD_READ {
                self.readable_socket(id)
            } else {
                self.socket_writable(id, n)
            };
        }
        match op.kind {
            _ if !channel.is_event() => self.state_of(id).lets(op),
            crate::Kind::FD_READ => self.event_readable(t, channel, op),
            _ => channel.counter_takes(op.arg as u64),
        }
    }

    pub(crate) fn read_choices(&self, t: Tid, op: &Op) -> u32 {
        u32::from(op.tries() || self.goes_on(t, op) || self.may_time_out(op) || self.cancelled(t, op))
    }

    pub(crate) fn write_choices(&self, t: Tid, op: &Op) -> u32 {
        u32::from(op.tries() || self.goes_on(t, op) || self.may_time_out(op) || self.cancelled(t, op))
    }

    /// Gives the bytes to be copied from position `Thread::out[0]` on, 0 at the end of the file, or minus an error number.
    pub(crate) fn read_perform(&mut self, t: Tid, op: &Op) -> Applied {
        if let Some(socket) = self.channel_of(op.obj).and_then(|channel| self.sink(channel)) {
            return self.socket_read(t, op, socket);
        }
        if !self.goes_on(t, op) {
            return self.not_ready(t, op);
        }
        let Some(id) = self.channel_of(op.obj) else { return Applied::Done(0) };
        if self.channels[id].is_event() {
            return self.event_read(t, id);
        }
        let channel = &mut self.channels[id];
        let full = channel.used >= channel.slots;
        let n = channel.len().min(op.arg.max(0) as u64);
        self.threads[t].out[0] = channel.head as i64;
        channel.pipe_take(n);
        if channel.is_empty() {
            // The next bytes lie at the beginning of the ring, in memory that is in use already.
            (channel.head, channel.tail) = (0, 0);
        }
        if full && channel.used < channel.slots {
            self.woke(id, poll::OUT | poll::WRNORM);
        }
        Applied::Done(n as i64)
    }

    /// Gives the bytes to be copied to position `Thread::out[0]` on, or minus an error number.
    pub(crate) fn write_perform(&mut self, t: Tid, op: &Op) -> Applied {
        if !self.goes_on(t, op) {
            return self.not_ready(t, op);
        }
        let Some(id) = self.channel_of(op.obj) else { return Applied::Done(-errno::EPIPE) };
        if self.channels[id].is_socket() {
            return self.socket_write(t, op, id);
        }
        if self.channels[id].is_event() {
            return self.counter_add(id, op.arg as u64);
        }
        if self.channels[id].readers == 0 {
            return Applied::Done(-errno::EPIPE);
        }
        let n = self.channel_takes(id, op.arg.max(0) as u64);
        let channel = &mut self.channels[id];
        self.threads[t].out[0] = channel.tail as i64;
        channel.pipe_put(n);
        self.woke(id, poll::IN | poll::RDNORM);
        Applied::Done(n as i64)
    }

    pub(crate) fn not_ready(&self, t: Tid, op: &Op) -> Applied {
        let interrupted = !op.tries() && !self.may_time_out(op) && self.cancelled(t, op);
        Applied::Done(if interrupted { -errno::EINTR } else { -errno::EAGAIN })
    }

    /// What operations on channels are conditional on: the states of both that they name.
    pub(crate) fn channel_states(&self, t: Tid, op: &Op) -> i64 {
        let state = |id| {
            let channel: &Channel = &self.channels[id];
            if channel.is_socket() {
                let readable = self.readable_socket(id);
                return ChannelState { readable, broken: false, last: 0, free: 0, event: COUNTS }.pack();
            }
            if !channel.is_event() {
                return self.state_of(id).pack();
            }
            let event = if channel.kind == ChanKind::COUNTER { COUNTS } else { OTHERWISE };
            let readable = self.event_readable(t, channel, op);
            ChannelState { readable, broken: false, last: 0, free: 0, event }.pack()
        };
        let state = |obj| self.channel_of(obj).map_or(0, state);
        state(op.obj) | state(op.obj2) << STATE_BITS
    }

    fn state_of(&self, id: ChanId) -> ChannelState {
        let channel = &self.channels[id];
        if channel.kind == ChanKind::QUEUE {
            let (readable, free) = (channel.messages > 0, self.mqueue_room(id).min(1));
            return ChannelState { readable, broken: false, last: 0, free, event: QUEUED };
        }
        let last = channel.lengths[(channel.first as usize + channel.used as usize + PIPE_SLOTS - 1) % PIPE_SLOTS];
        ChannelState {
            readable: !channel.is_empty() || channel.writers == 0,
            broken: channel.readers == 0,
            last: if channel.used > 0 { PAGE - u64::from(last) } else { 0 },
            free: u64::from(channel.slots.saturating_sub(channel.used)),
            event: 0,
        }
    }
}

const STATE_BITS: u32 = 22;
/// [`ChannelState::event`] of a counter or a socket.
const COUNTS: u8 = 1;
/// [`ChannelState::event`] of a timer, of signals, of an epoll instance.
const OTHERWISE: u8 = 2;

/// [`ChannelState::event`] of a message queue: `free` is 0 or 1.
const QUEUED: u8 = 3;

/// How a channel is found: half of [`Act::state`](crate::Act) of the operations on channels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChannelState {
    /// A read goes on.
    pub readable: bool,
    /// A write goes on, in vain.
    pub broken: bool,
    /// Bytes left in the buffer written last.
    pub last: u64,
    /// Buffers not in use.
    pub free: u64,
    /// It is no pipe: then only `readable` is known of it, and of a message queue whether there is room.
    pub event: u8,
}

impl ChannelState {
    fn pack(self) -> i64 {
        let buffers = (self.last as i64) << 2 | (self.free as i64) << 15;
        i64::from(self.readable) | i64::from(self.broken) << 1 | buffers | i64::from(self.event) << 20
    }

    /// From [`Act::state`](crate::Act): that of the first channel.
    pub fn of(state: i64) -> ChannelState {
        ChannelState {
            readable: state & 1 != 0,
            broken: state & 2 != 0,
            last: (state >> 2 & 0x1fff) as u64,
            free: (state >> 15 & 0x1f) as u64,
            event: (state >> 20 & 3) as u8,
        }
    }

    /// True if it tells whether `op` goes on: not of a write to a counter, nor of what depends on time and signals.
    pub fn tells(self, op: &Op) -> bool {
        matches!(self.event, 0 | QUEUED)
            || self.event == COUNTS && matches!(op.kind, crate::Kind::FD_READ | crate::Kind::FD_ACCEPT)
    }

    /// That of the second channel.
    pub fn second(state: i64) -> ChannelState {
        ChannelState::of(state >> STATE_BITS)
    }

    /// Bytes of a write of `n` that a pipe takes.
    fn takes(self, n: u64) -> u64 {
        let odd = n % PAGE;
        let merged = if odd > 0 && odd <= self.last { odd } else { 0 };
        merged + (n - merged).min(self.free * PAGE)
    }

    /// True if a read or write goes on.
    pub fn lets(self, op: &Op) -> bool {
        let n = op.arg.max(0) as u64;
        match op.kind {
            crate::Kind::FD_READ | crate::Kind::FD_ACCEPT | crate::Kind::MQ_RECEIVE => self.readable,
            crate::Kind::MQ_SEND => self.free > 0,
            _ if n <= PIPE_BUF => self.broken || self.takes(n) == n,
            _ => self.broken || self.takes(n) > 0,
        }
    }
}

impl World {
    /// F_SETPIPE_SZ: so many buffers. Gives minus an error number if more are in use.
    pub fn pipe_resize(&mut self, id: ChanId, slots: u8) -> i64 {
        if self.channels[id].used > slots {
            return -errno::EBUSY;
        }
        self.channels[id].slots = slots;
        i64::from(slots) * PAGE as i64
    }
}
