//! Channels: what is written at one end and read at the other. A pipe is one channel, a pair of connected sockets two.
//!
//! The model knows how much a channel holds; the bytes lie in a ring of the pool, where who performs the operation
//! moves them.

use super::question::Did;
use super::row::*;
use crate::base::{Uid, LACKS, REACHES};
use crate::state::{
    poll, ChanId, ChanKind, Channel, ChannelState, Desc, FreeRing, Key, ObjKind, COUNTS, EDGE_AGAIN, FULL_BEFORE,
    FULL_ONCE, MAX_PIPE_SLOTS, NO_RING, OTHERWISE, OWN_BUFFER, PAGE, PIPE_BUF, PIPE_SLOTS, QUEUED, SHARED, STATE_BITS,
    WAITS_ON,
};

kinds! {
    /// Take up to `arg` bytes from channel `obj`; like all operations on descriptors it has a bit in `mask` for each
    /// channel that it concerns.
    FD_READ = 64, "read" {
        operands: Operands::Objects, enabled: blocks(World::read_choices, |q| q.channel()),
        perform: |w, t, op, value| w.read_perform(t, op, value),
        records: Records::number(World::channel_states), cells: ON_CHANNELS, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::Reads, signals: Signals { asks_first: AsksFirst::Over(ChanKind::LOCAL), ..Signals::TRANSFERS }, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle { peer: World::reads_from_strangers, ..Idle::WORKER }, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::Row, arguments: OBJECT_AND_NUMBER, outcome: Outcome::Nothing, waits: Some(read_waits), identity: BY_OBJECTS },
    }
    /// Put up to `arg` bytes into channel `obj`.
    FD_WRITE = 65, "write" {
        operands: Operands::Objects, enabled: blocks(World::write_choices, |q| q.channel()),
        perform: |w, t, op, value| w.write_perform(t, op, value),
        records: Records::number(World::channel_states), cells: |act, did, cells| match adds(act) {
            true => {
                cells.touch(Cell::Channels, How::Channels { mask: act.op.mask, by: act.op.concerns() });
                cells.touch_all(act, How::Adds { value: 0 });
            }
            false => ON_CHANNELS(act, did, cells),
        }, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::Writes, signals: Signals { asks_first: AsksFirst::Over(ChanKind::STREAM), ..Signals::TRANSFERS }, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::Row, arguments: OBJECT_AND_NUMBER, outcome: Outcome::Nothing, waits: Some(write_waits), identity: BY_OBJECTS },
    }
    /// tee: what is in pipe `obj`, up to `arg` bytes, goes into pipe `obj2` too. It does not wait: that there is something, and room,
    /// has been waited for by operations of their own, after which others may have been there.
    FD_TEE = 128, "tee" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: |w, t, op, _| w.tee_perform(t, op),
        records: Records::number(World::channel_states), cells: ON_CHANNELS, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::Controls, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown::passes(Call::Row, |op, _, words| say![words, Thing::Object(op.obj), ", ", Thing::Object(op.obj2), ", ", op.arg]),
    }
}

/// What a read waits for, and who could bring it about.
fn read_waits(world: &World, _: Tid, op: &Op, words: &mut dyn Words) {
    let Some(id) = world.channel_of(op.obj) else { return };
    let name = Thing::Object(op.obj);
    if let Some(s) = world.sink(id).filter(|&s| world.sockets.contains(s)) {
        let what = if world.sockets[s].is_dgram() { "a datagram for" } else { "data from" };
        say![words, what, " socket ", name];
        if let Some(channel) = world.peer(s).map(|peer| world.sockets[peer].input) {
            say![words, " (its peer is held by ", Holders(world, channel, false, usize::MAX), ")"];
        }
        return;
    }
    match world.channels[id].kind {
        ChanKind::COUNTER => say![words, name, " to be written to (its value is 0)"],
        ChanKind::TIMER => say![words, name, " to be set"],
        ChanKind::SIGNALS => say![words, "a signal of ", name],
        ChanKind::PROCESS => say![words, "the end of the process of ", name],
        _ => {
            let holders = Holders(world, id, true, 4);
            say![words, "something in ", name, ", which is empty (its end for writing is open in ", holders, ")"];
        }
    }
}

/// The same for a write.
fn write_waits(world: &World, _: Tid, op: &Op, words: &mut dyn Words) {
    let Some(id) = world.channel_of(op.obj) else { return };
    let (name, channel) = (Thing::Object(op.obj), &world.channels[id]);
    let holders = |most| Holders(world, id, false, most);
    if world.sink(id).is_some_and(|s| world.sockets.contains(s)) {
        say![words, "room for ", op.arg, " bytes in socket ", name, ", where ", channel.len(), " wait to be read"];
        say![words, " (held by ", holders(usize::MAX), ")"];
    } else if channel.kind == ChanKind::COUNTER {
        say![words, name, " to be read (its value is ", channel.value, ", and ", op.arg, " more is too much)"];
    } else {
        say![words, "room for ", op.arg, " bytes in ", name, ", which holds ", channel.len()];
        say![words, " (its end for reading is open in ", holders(4), ")"];
    }
}

fn goes_on(state: ChannelState, op: &Op) -> Answer {
    if state.tells(op) {
        Answer::from(state.lets(op))
    } else {
        Answer::Unknown
    }
}

/// Looks for a socket by its name, or is on one that may come to be connected.
fn by_name(e: &Act) -> bool {
    let channels = e.op.kind.row().channels;
    channels.names() || channels.settles() && e.op.has(VARIANT)
}

/// True if `e` may change a channel that `p` concerns: everything may that closes descriptors.
fn may_change(e: &Act, p: &Act) -> bool {
    let (theirs, mine) = (e.op.kind.row().channels, p.op.kind.row().channels);
    let looks = theirs.watches() || theirs == Channels::Watches;
    // To move something takes one channel; the bits of the instances that watch it do not matter.
    let concerns = !mine.moves() || theirs == Channels::ClosesAll || e.op.names(p.op.obj) && !looks || by_name(e);
    theirs.any() && concerns && e.op.mask & p.op.mask != 0 || theirs == Channels::Ends
}

/// A write to a counter (eventfd) that is far from its limit: two of them commute, for who does not wait for both.
fn adds(act: &Act) -> bool {
    let state = ChannelState::of(act.state);
    let counter = state.event == COUNTS && state.free > 0;
    act.op.kind == Kind::FD_WRITE && counter && (0..1 << 32).contains(&act.op.arg)
}

impl Question<'_> {
    /// What is performed on a channel after a dropped operation on it depends on that one and is dropped too: the channel
    /// is as the first dropped operation on it found it.
    pub(crate) fn channel(&self) -> Answer {
        let p = self.act;
        let Some(first) = self.dropped.iter().find(|d| may_change(d.act, p) || d.did.has(Effects::FAR)) else {
            return goes_on(ChannelState::of(p.state), &p.op);
        };
        // Which of the channels of its mask are those that it closes, the bits of watching instances do not tell.
        // Those that look for a socket by its name may meet it by their bits alone: others on it do not depend on them.
        let closes_all = first.act.op.kind.row().channels == Channels::ClosesAll;
        if by_name(first.act) || first.did.has(Effects::FAR) || closes_all && p.op.has(REACHES) {
            return Answer::Unknown;
        }
        let found = match first.found {
            Some((before, _)) => ChannelState::of(before),
            None if first.act.op.obj == p.op.obj => ChannelState::of(first.act.state),
            None if first.act.op.obj2 == p.op.obj => ChannelState::second(first.act.state),
            None => return Answer::Unknown,
        };
        match goes_on(found, &p.op) {
            Answer::No if adds(first.act) && self.others_add() => self.added(),
            answer => answer,
        }
    }

    /// Whether a counter that is 0 without what is dropped is more than that by what stays, for who reads it.
    fn added(&self) -> Answer {
        let on = |d: &&Did| may_change(d.act, self.act);
        let only_adds = self.kept.iter().filter(on).all(|d| adds(d.act) && d.act.op.arg > 0);
        if only_adds {
            Answer::Yes
        } else {
            Answer::Unknown
        }
    }

    /// Something that stays adds to a counter that `p` concerns: it need not depend on what is dropped.
    fn others_add(&self) -> bool {
        self.kept.iter().any(|d| adds(d.act) && may_change(d.act, self.act))
    }

    /// Where it depends on several things together: known if none of them has changed.
    pub(crate) fn as_found(&self) -> Answer {
        match self.dropped.iter().any(|d| may_change(d.act, self.act) || d.did.has(Effects::FAR)) {
            true => Answer::Unknown,
            false => Answer::from(self.act.state != 0),
        }
    }

    /// The same for several channels, of which only is known whether they have an event.
    pub(crate) fn channels(&self) -> Answer {
        let mut state = self.act.state;
        for d in self.dropped.iter().rev() {
            match d.found {
                Some((before, after)) => state = state & !(before ^ after) | before & (before ^ after),
                None if may_change(d.act, self.act) || d.did.has(Effects::FAR) => return Answer::Unknown,
                None => {}
            }
        }
        match state {
            0 if self.dropped.iter().any(|d| adds(d.act)) && self.others_add() => Answer::Unknown,
            _ => Answer::from(state != 0),
        }
    }
}

/// Space of the keys of channels.
const SPACE: u32 = SHARED | 0x3fff_fffe;

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

    fn slot(&mut self, n: u16) -> &mut u16 {
        &mut self.lengths[(self.first as usize + n as usize) % MAX_PIPE_SLOTS]
    }

    fn pipe_put(&mut self, n: u64) {
        let odd = n % PAGE;
        let mut left = n;
        if odd > 0 && self.used > 0 {
            let last = self.used - 1;
            if u64::from(self.end) + odd <= PAGE {
                *self.slot(last) += odd as u16;
                self.end += odd as u16;
                left -= odd;
            }
        }
        while left > 0 && self.used < self.slots {
            let part = left.min(PAGE);
            let next = self.used;
            *self.slot(next) = part as u16;
            self.end = part as u16;
            self.pipe_uses_slot();
            left -= part;
        }
        self.tail += n;
    }

    /// One slot more is in use.
    fn pipe_uses_slot(&mut self) {
        self.used += 1;
        if self.fullness & FULL_ONCE != 0 {
            self.fullness |= FULL_BEFORE;
        }
        if self.used >= self.slots {
            self.fullness |= FULL_ONCE;
        }
    }

    /// A buffer of its own with `n` bytes, up to a page, to which nothing is added. False: there is no room.
    fn pipe_put_own(&mut self, n: u64) -> bool {
        if self.used >= self.slots {
            return false;
        }
        let next = self.used;
        *self.slot(next) = n as u16;
        self.pipe_uses_slot();
        (self.end, self.tail) = (PAGE as u16, self.tail + n);
        true
    }

    /// Bytes of the first `n` in whole buffers, or the parts of them that are among these, that fit into `there` bytes.
    fn pieces_within(&self, n: u64, there: u64) -> u64 {
        let mut fits = 0;
        for slot in 0..usize::from(self.used) {
            let part = u64::from(self.lengths[(usize::from(self.first) + slot) % MAX_PIPE_SLOTS]).min(n - fits);
            if part == 0 || fits + part > there {
                break;
            }
            fits += part;
        }
        fits
    }

    /// The same of `n` bytes that are written, with `odd` bytes over whole pages: those come first if they fit into the last buffer.
    fn pages_within(&self, odd: u64, n: u64, there: u64) -> u64 {
        let merged = if self.used > 0 && u64::from(self.end) + odd <= PAGE { odd } else { 0 };
        if merged > there {
            return 0;
        }
        let mut fits = merged;
        while fits < n && fits + (n - fits).min(PAGE) <= there {
            fits += (n - fits).min(PAGE);
        }
        fits
    }

    fn pipe_take(&mut self, n: u64) {
        let mut left = n;
        while left > 0 && self.used > 0 {
            let part = left.min(u64::from(*self.slot(0)));
            *self.slot(0) -= part as u16;
            left -= part;
            if *self.slot(0) == 0 {
                self.first = (self.first + 1) % MAX_PIPE_SLOTS as u16;
                self.used -= 1;
            }
        }
        self.head += n;
    }
}

impl ChannelState {
    /// True if it tells whether `op` goes on: not of a write to a counter, nor of what depends on time and signals.
    pub fn tells(self, op: &Op) -> bool {
        matches!(self.event, 0 | QUEUED)
            || self.event == COUNTS && matches!(op.kind.row().channels, Channels::Reads | Channels::Accepts)
    }

    /// Bytes of a write of `n` that a pipe takes.
    pub(crate) fn takes(self, n: u64) -> u64 {
        let odd = n % PAGE;
        let merged = if odd > 0 && odd <= self.last { odd } else { 0 };
        merged + (n - merged).min(self.free * PAGE)
    }

    /// True if a read or write goes on.
    pub fn lets(self, op: &Op) -> bool {
        let n = op.arg.max(0) as u64;
        match op.kind.row().channels {
            Channels::Reads | Channels::Accepts | Channels::Receives => self.readable,
            Channels::Sends => self.free > 0,
            _ if op.has(OWN_BUFFER) => self.broken || self.free > 0,
            _ if n <= PIPE_BUF => self.broken || self.takes(n) == n,
            _ => self.broken || self.takes(n) > 0,
        }
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
            slots: PIPE_SLOTS as u16,
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
    pub fn channel_op(&self, kind: crate::base::op::Kind, id: ChanId, arg: i64) -> Op {
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
            return if op.kind.row().channels == Channels::Reads {
                self.readable_socket(id)
            } else {
                self.socket_writable(id, n)
            };
        }
        match op.kind.row().channels {
            _ if !channel.is_event() => self.state_of(id).lets(op),
            Channels::Reads => self.event_readable(t, channel, op),
            _ => channel.counter_takes(op.arg as u64),
        }
    }

    pub(crate) fn read_choices(&self, t: Tid, op: &Op) -> u32 {
        let fires = u32::from(op.tries() && self.timer_may_fire(t, op));
        let more = if self.has_timers() { self.further_expiries(t, op) } else { 0 };
        u32::from(op.tries() || self.goes_on(t, op) || self.may_time_out(op) || self.cancelled(t, op)) + fires + more
    }

    pub(crate) fn write_choices(&self, t: Tid, op: &Op) -> u32 {
        if self.waits_for_sender(t, op) {
            return 0;
        }
        let overlooks = u32::from(self.may_overlook_error(op));
        overlooks + u32::from(op.tries() || self.goes_on(t, op) || self.may_time_out(op) || self.cancelled(t, op))
    }

    /// Gives the bytes to be copied from position `Thread::out[0]` on, 0 at the end of the file, or minus an error number.
    pub(crate) fn read_perform(&mut self, t: Tid, op: &Op, value: u32) -> Applied {
        if let Some(socket) = self.channel_of(op.obj).and_then(|channel| self.sink(channel)) {
            return self.socket_read(t, op, socket);
        }
        // The other alternative of one that does not wait: a timer has fired.
        if value == 0 && !self.goes_on(t, op) {
            return self.not_ready(t, op);
        }
        let Some(id) = self.channel_of(op.obj) else { return Applied::Done(0) };
        if self.channels[id].is_event() {
            // One that does not wait has found nothing in its first.
            let first = u32::from(op.tries() && self.timer_may_fire(t, op));
            return self.event_read(t, id, op.tries(), value.saturating_sub(first));
        }
        let channel = &mut self.channels[id];
        let full = channel.used >= channel.slots;
        let n = channel.len().min(op.arg.max(0) as u64);
        let there = if op.has(LACKS) { self.threads[t].out[0] as u64 } else { n };
        let n = if there < n { channel.pieces_within(n, there) } else { n };
        if n == 0 && there < channel.len() && op.has(LACKS) {
            return Applied::Done(errno::EFAULT);
        }
        self.threads[t].out[0] = channel.head as i64;
        channel.pipe_take(n);
        if channel.is_empty() {
            // The next bytes lie at the beginning of the ring, in memory that is in use already.
            (channel.head, channel.tail) = (0, 0);
        }
        let left = !channel.is_empty();
        if full && channel.used < channel.slots {
            self.woke(id, poll::OUT | poll::WRNORM);
        }
        self.note_edge(id, op, left, poll::IN);
        Applied::Done(n as i64)
    }

    /// Gives the bytes to be copied to position `Thread::out[0]` on, or minus an error number.
    pub(crate) fn write_perform(&mut self, t: Tid, op: &Op, value: u32) -> Applied {
        if !self.goes_on(t, op) {
            return self.not_ready(t, op);
        }
        let Some(id) = self.channel_of(op.obj) else { return Applied::Done(errno::EPIPE) };
        if self.channels[id].is_socket() {
            return self.socket_write(t, op, id, value);
        }
        if self.channels[id].is_event() {
            return self.counter_add(id, op.arg as u64);
        }
        if self.channels[id].readers == 0 {
            return Applied::Done(errno::EPIPE);
        }
        if op.has(OWN_BUFFER) {
            // It is there: the shim's memory, or looked at by it. Of no bytes: it has waited for room.
            let n = (op.arg.max(0) as u64).min(PAGE);
            self.threads[t].out[0] = self.channels[id].tail as i64;
            if n > 0 {
                self.channels[id].written_by = t;
                self.channels[id].pipe_put_own(n);
                self.woke(id, poll::IN | poll::RDNORM);
            }
            return Applied::Done(n as i64);
        }
        self.note_merged(t, id, op);
        let n = self.channel_takes(id, op.arg.max(0) as u64);
        let n = match op.has(LACKS) {
            true => self.channels[id].pages_within(op.arg as u64 % PAGE, n, self.threads[t].out[0] as u64),
            false => n,
        };
        if n == 0 {
            return Applied::Done(errno::EFAULT);
        }
        let channel = &mut self.channels[id];
        self.threads[t].out[0] = channel.tail as i64;
        channel.written_by = t;
        channel.pipe_put(n);
        let left = channel.used < channel.slots;
        self.woke(id, poll::IN | poll::RDNORM);
        self.note_edge(id, op, left, poll::OUT);
        Applied::Done(n as i64)
    }

    /// `t` is about to add to what another thread has written. If it has waited for room before that came, it needs a slot of its own, and
    /// waits on where there is none (fs/pipe.c, pipe_write: it looks for room in the last one before it waits only). Whether it has waited
    /// nobody knows, so it counts that the pipe has been full.
    fn note_merged(&mut self, t: Tid, id: ChanId, op: &Op) {
        let channel = &self.channels[id];
        let odd = op.arg.max(0) as u64 % PAGE;
        let merges = odd > 0 && channel.used > 0 && u64::from(channel.end) + odd <= PAGE;
        if merges && channel.fullness & FULL_BEFORE != 0 && channel.written_by != t && !op.tries() {
            self.never_comes(WAITS_ON);
        }
    }

    /// Who has waited for a pipe and leaves something there wakes the next who waits for it, and so tells those who watch for edges (fs/pipe.c,
    /// wake_next_reader). Whether it has waited, or come later, nobody knows.
    fn note_edge(&mut self, id: ChanId, op: &Op, left: bool, events: u16) {
        if left && !op.tries() && self.watched_for_edges(id, events) {
            self.never_comes(EDGE_AGAIN);
        }
    }

    /// A further buffer of a write to a pipe that has put one there (vmsplice): the position of its `n` bytes, up to a page. `None`: there
    /// is no room.
    pub fn pipe_another(&mut self, id: ChanId, n: u64) -> Option<u64> {
        let at = self.channels[id].tail;
        self.channels[id].pipe_put_own(n).then_some(at)
    }

    /// Gives the bytes to be copied from position `Thread::out[0]` of the one pipe to position `Thread::out[1]` of the other, or minus an
    /// error number (fs/splice.c, link_pipe).
    fn tee_perform(&mut self, t: Tid, op: &Op) -> Applied {
        let (Some(from), Some(to)) = (self.channel_of(op.obj), self.channel_of(op.obj2)) else {
            return Applied::Done(errno::EPIPE);
        };
        if self.channels[to].readers == 0 {
            return Applied::Done(errno::EPIPE);
        }
        self.threads[t].out = [self.channels[from].head as i64, self.channels[to].tail as i64, 0];
        let mut done = 0;
        for slot in 0..self.channels[from].used {
            let n = u64::from(*self.channels[from].slot(slot)).min(op.arg as u64 - done);
            if n == 0 || !self.channels[to].pipe_put_own(n) {
                break;
            }
            done += n;
        }
        if done > 0 {
            self.woke(to, poll::IN | poll::RDNORM);
        }
        Applied::Done(done as i64)
    }

    pub(crate) fn not_ready(&self, t: Tid, op: &Op) -> Applied {
        let interrupted = !op.tries() && !self.may_time_out(op) && self.cancelled(t, op);
        Applied::Done(if interrupted { errno::EINTR } else { errno::EAGAIN })
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
            let far = channel.kind == ChanKind::COUNTER && channel.value < u64::MAX / 2;
            ChannelState { readable, broken: false, last: 0, free: u64::from(far), event }.pack()
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
        ChannelState {
            readable: !channel.is_empty() || channel.writers == 0,
            broken: channel.readers == 0,
            last: if channel.used > 0 { PAGE - u64::from(channel.end) } else { 0 },
            free: u64::from(channel.slots.saturating_sub(channel.used)),
            event: 0,
        }
    }
}

impl World {
    /// F_SETPIPE_SZ: so many buffers. Gives minus an error number if more are in use. `None`: it would have to move what is in it to a
    /// larger ring.
    pub fn pipe_resize(&mut self, id: ChanId, slots: u16) -> Option<i64> {
        let Channel { used, slots: before, room, ring, .. } = self.channels[id];
        if used > slots {
            return Some(errno::EBUSY);
        }
        let wanted = u64::from(slots) * PAGE;
        if wanted > room {
            if used > 0 {
                return None;
            }
            if ring != NO_RING {
                self.ring_free(ring, room);
            }
            (self.channels[id].room, self.channels[id].ring) = (wanted, NO_RING);
        }
        self.channels[id].slots = slots;
        if used >= before && used < slots {
            // Who waits for room is told (fs/pipe.c, pipe_resize_ring).
            self.woke(id, poll::OUT | poll::WRNORM);
        }
        Some(wanted as i64)
    }
}
