//! System V message queues (msgsnd, msgrcv, msgctl), and how messages are kept, those of POSIX queues (see
//! [`crate::mqueue`]) too.
//!
//! What a program sends is copied when it calls, as the kernel does, into chunks that all processes of the world share;
//! whoever receives copies it out and gives the chunks back. A call that waits may be taken as one that has not entered
//! the kernel yet: so who is served first among several that wait is a matter of the schedule, as the kernel's hand-over
//! to sleepers is one of the orders of calls.
//!
//! NOTE [Order] All operations that change a queue depend on each other in every state. That a send and a receive of an older
//! message commute where both go on must not be used for sleep sets alone: what is asleep then hides races of later sends with
//! that one, for which the receive comes between.

use super::question::Did;
use super::row::*;
use super::sysv::touch_removal;
use crate::base::{errno, Kind, ObjId, Op, Tid, Uid, NONE, PARTIAL, TELLS_LAST, TRY};
use crate::state::{
    Chunk, Ctl, How, Key, ObjKind, Queue, QueueState, Queued, CHUNK, COPY, DESTROYED, EXCEPT, MSGMAX, NOERROR,
    SET_SIZE, SHARED,
};

kinds! {
    /// msgsnd: `arg` is the type, `mask` the number of bytes; the contents are staged, see [`crate::msg`].
    MSG_SEND = 104, "msgsnd" {
        operands: Operands::Objects, enabled: blocks(World::msg_send_choices, |q| q.queue()),
        perform: World::msg_send_perform,
        records: RECORDS, cells: ON_OBJECTS, follows: NOBODY, blocks: |e, p| p.op.kind != Kind::MSG_RECEIVE || e.op.has(TELLS_LAST),
        role: Role::None, channels: Channels::None, signals: Signals { asks_first: AsksFirst::Always, ..Signals::FAILS }, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::Row, arguments: |op, _, words| say![words, Thing::Object(op.obj), ", type ", op.arg, ", ", op.mask, " bytes"],
            outcome: Outcome::Nothing, waits: Some(send_waits), identity: by_message },
    }
    /// msgrcv: `arg` is the type asked for, `mask` the size of the buffer and [`crate::msg::NOERROR`].
    MSG_RECEIVE = 105, "msgrcv" {
        operands: Operands::Objects, enabled: blocks(World::msg_receive_choices, |q| q.queue()),
        perform: World::msg_receive_perform,
        records: RECORDS, cells: ON_OBJECTS, follows: NOBODY, blocks: |e, p| p.op.kind != Kind::MSG_SEND || e.op.has(TELLS_LAST),
        role: Role::None, channels: Channels::None, signals: Signals::FAILS, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::Row, arguments: receive_arguments, outcome: Outcome::Nothing, waits: Some(receive_waits), identity: by_message },
    }
    /// msgctl on a System V queue; `arg` as for [`Kind::SYSV_CTL`]. msgrcv that leaves the message where it is.
    MSG_CTL = 106, "msgctl" {
        operands: Operands::Objects,
        enabled: blocks(|w, t, op| match Ctl(op.arg as u8) {
            _ if w.sleeper_goes_first(t, op) => 0,
            Ctl::REMOVE | SET_SIZE => 1,
            _ => w.ways_of_removed(t, op.obj),
        }, |q| q.unless_someone_sleeps()),
        perform: World::queue_ctl_perform,
        records: RECORDS, cells: |act, _, cells| {
            touch_removal(act, cells);
            cells.touch_all(act, if matches!(Ctl(act.op.arg as u8), Ctl::ACCESS | COPY) { How::Shares } else { How::Writes });
        }, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { waits: Some(|_, _, _, words| say![words, "one that sleeps there and can go on"]), ..Shown::passes(Call::Row, |op, _, words| match Ctl(op.arg as u8) {
            Ctl::REMOVE => say![words, Thing::Object(op.obj), ", IPC_RMID"],
            SET_SIZE => say![words, Thing::Object(op.obj), ", IPC_SET ", op.arg >> 8, " bytes"],
            COPY => say![words, Thing::Object(op.obj), ", message ", op.arg >> 8, " (MSG_COPY)"],
            _ => say![words, Thing::Object(op.obj), ", IPC_STAT"],
        }) },
    }
}

/// Who has used a queue from the other end: who has received, for one who sends.
pub struct Used<'a>(pub &'a World, pub &'a Queue, pub bool);

impl Part for Used<'_> {
    fn say(&self, words: &mut dyn Words) {
        let Used(world, queue, sends) = *self;
        let (verb, other) = if sends { ("received from", queue.receiver) } else { ("sent to", queue.sender) };
        match other {
            0 => say![words, "nobody has ", verb, " it yet"],
            vpid => say![words, "last ", verb, " by process ", Numbered(world, vpid)],
        }
    }
}

fn receive_arguments(op: &Op, _: Option<&Thread>, words: &mut dyn Words) {
    say![words, Thing::Object(op.obj)];
    match op.arg {
        0 => say![words, ", any type"],
        n if op.has(EXCEPT) => say![words, ", any type but ", n],
        n if n < 0 => say![words, ", lowest type up to ", n.unsigned_abs()],
        n => say![words, ", type ", n],
    }
    let size = op.mask & !NOERROR;
    if size != MSGMAX {
        say![words, ", up to ", size, " bytes"];
    }
}

fn send_waits(world: &World, t: Tid, op: &Op, words: &mut dyn Words) {
    let Some(object) = world.objects.get(op.obj) else { return };
    let queue = world.message_queue(op.obj);
    say![words, "room for ", op.mask, " bytes in ", Thing::Object(op.obj), " (it holds ", counted(object.count), ", "];
    say![words, object.value, " of ", queue.limit, " bytes; ", Used(world, &queue, true), ")", hopeless(world, t)];
}

fn receive_waits(world: &World, t: Tid, op: &Op, words: &mut dyn Words) {
    let Some(object) = world.objects.get(op.obj) else { return };
    say![words, "a message"];
    match op.arg {
        0 => {}
        n if op.has(EXCEPT) => say![words, " of another type than ", n],
        n if n < 0 => say![words, " of a type up to ", n.unsigned_abs()],
        n => say![words, " of type ", n],
    }
    say![words, " in ", Thing::Object(op.obj)];
    match object.count {
        0 => say![words, " (it is empty; "],
        1 => say![words, " (it holds 1 message of another type; "],
        n => say![words, " (it holds ", n, " messages of other types; "],
    }
    say![words, Used(world, &world.message_queue(op.obj), false), ")", hopeless(world, t)];
}

/// `1 message`, `2 messages`.
fn counted(n: u32) -> impl Part {
    struct Counted(u32);
    impl Part for Counted {
        fn say(&self, words: &mut dyn Words) {
            say![words, self.0, if self.0 == 1 { " message" } else { " messages" }];
        }
    }
    Counted(n)
}

fn by_message(world: &World, _: Tid, op: &Op, add: &mut dyn FnMut(u64)) {
    object_identity(world, op.obj, add);
    [op.arg as u64, op.mask.into()].into_iter().for_each(add);
}

/// See [`QueueState`].
const RECORDS: Records = Records::number(|w, _, op| w.queue_state(op.obj).pack());

impl Question<'_> {
    /// Operations that change a queue all depend on each other.
    fn queue(&self) -> Answer {
        if self.act.op.has(TELLS_LAST) {
            return Answer::Unknown;
        }
        let before = |d: &Did| match d.found {
            Some((before, after)) if before != after => Some(before),
            _ if d.act.op.names(self.act.op.obj) => Some(d.act.state),
            _ => None,
        };
        let state = self.dropped.iter().find_map(before).unwrap_or(self.act.state);
        QueueState::of(state).goes(&self.act.op).map_or(Answer::Unknown, Answer::from)
    }
}

/// What a receive would get.
enum Found {
    Message { before: u32, at: u32 },
    Nothing,
    TooLong,
    Removed,
}

impl QueueState {
    /// Whether `op` goes on without waiting. `None`: the state does not tell.
    pub fn goes(self, op: &Op) -> Option<bool> {
        match op.kind == Kind::MSG_SEND {
            _ if self.removed => Some(true),
            true => Some(self.room && op.mask <= self.free),
            false => self.offers(op),
        }
    }

    /// Whether there is a message for a msgrcv.
    fn offers(self, op: &Op) -> Option<bool> {
        const MANY: u32 = 1 << 31;
        let many = |rest: u32| {
            if rest != 0 {
                Some(true)
            } else if self.types & MANY != 0 {
                None
            } else {
                Some(false)
            }
        };
        let few = self.types & !MANY;
        match op.arg {
            0 => Some(self.types != 0),
            n if n < 0 && n > -32 => Some(few & ((1 << -n) - 1) != 0),
            n if n < 0 => many(few),
            n if n < 32 && op.has(EXCEPT) => Some(self.types & !(1 << (n - 1)) != 0),
            n if n < 32 => Some(few & 1 << (n - 1) != 0),
            _ if op.has(EXCEPT) => many(few),
            _ => many(0),
        }
    }
}

impl World {
    /// A new queue with identifier `id`. `None`: no room.
    pub fn queue_make(&mut self, kind: ObjKind, id: u64, queue: Queue) -> Option<ObjId> {
        let record = self.queues.push(Queue { first: NONE, last: NONE, used: 1, ..queue })?;
        self.make(Key::new(SHARED, kind, id), |new| new.extra = record)
    }

    /// The queue with identifier `id`, if it exists.
    pub fn queue_find(&self, kind: ObjKind, id: u64) -> Option<ObjId> {
        self.find(Key::new(SHARED, kind, id)).filter(|&o| self.objects[o].flags & DESTROYED == 0)
    }

    /// The record of queue `obj`.
    pub fn message_queue(&self, obj: ObjId) -> Queue {
        self.queues.get(self.objects[obj].extra).copied().unwrap_or_default()
    }

    /// The record of queue `obj`, to be changed.
    pub(crate) fn queue_mut(&mut self, obj: ObjId) -> &mut Queue {
        let at = self.objects[obj].extra;
        &mut self.queues[at]
    }

    /// The messages of queue `obj`, in order.
    pub fn messages_of(&self, obj: ObjId) -> impl Iterator<Item = Queued> + '_ {
        let mut at = self.message_queue(obj).first;
        core::iter::from_fn(move || {
            let message = self.queued.get(at).copied()?;
            at = message.next;
            Some(message)
        })
    }

    /// Copies `bytes` into chunks for a message of `t`, which it is about to send. False: no room.
    pub fn stage(&mut self, t: Tid, bytes: &[u8]) -> bool {
        let mut first = NONE;
        // From the last piece to the first, so that each knows the next.
        for piece in bytes.chunks(CHUNK).rev() {
            let at = if self.chunks.contains(self.free_chunk) {
                let at = self.free_chunk;
                self.free_chunk = self.chunks[at].next;
                at
            } else {
                match self.chunks.push(Chunk { next: NONE, bytes: [0; CHUNK] }) {
                    Some(at) => at,
                    None => {
                        self.free_chunks(first);
                        return false;
                    }
                }
            };
            self.chunks[at].bytes[..piece.len()].copy_from_slice(piece);
            self.chunks[at].next = first;
            first = at;
        }
        self.threads[t].staged = first;
        true
    }

    /// Copies the message that `t` has received, as much as `out` holds, and gives its chunks back.
    pub fn unstage(&mut self, t: Tid, out: &mut [u8]) {
        let first = core::mem::replace(&mut self.threads[t].staged, NONE);
        let mut at = first;
        for piece in out.chunks_mut(CHUNK) {
            let Some(chunk) = self.chunks.get(at) else { break };
            piece.copy_from_slice(&chunk.bytes[..piece.len()]);
            at = chunk.next;
        }
        self.free_chunks(first);
    }

    pub(crate) fn free_chunks(&mut self, first: u32) {
        let mut at = first;
        while self.chunks.contains(at) {
            let next = self.chunks[at].next;
            self.chunks[at].next = core::mem::replace(&mut self.free_chunk, at);
            at = next;
        }
    }

    /// What an operation on queue `obj` is conditional on.
    pub(crate) fn queue_state(&self, obj: ObjId) -> QueueState {
        let object = &self.objects[obj];
        let (limit, count) = (self.message_queue(obj).limit, u64::from(object.count));
        let bit = |m: Queued| 1u32 << (m.mtype.clamp(1, 32) - 1);
        let used = object.value.max(0) as u64;
        QueueState {
            types: self.messages_of(obj).map(bit).fold(0, |set, bit| set | bit),
            free: limit.saturating_sub(used).min(0xf_ffff) as u32,
            room: count < limit,
            removed: object.flags & DESTROYED != 0,
        }
    }

    pub(crate) fn msg_send_choices(&self, t: Tid, op: &Op) -> u32 {
        let object = &self.objects[op.obj];
        let limit = self.message_queue(op.obj).limit;
        let fits = u64::from(object.count) < limit && object.value.max(0) as u64 + u64::from(op.mask) <= limit;
        let removed = object.flags & DESTROYED != 0;
        match removed {
            _ if self.sleeper_goes_first(t, op) => 0,
            true => self.ways_of_removed(t, op.obj),
            false => u32::from(fits || op.has(TRY) || self.may_time_out(op) || self.cancelled(t, op)),
        }
    }

    /// Gives 0 or minus an error number.
    pub(crate) fn msg_send_perform(&mut self, t: Tid, op: &Op, value: u32) -> Applied {
        let staged = core::mem::replace(&mut self.threads[t].staged, NONE);
        let plain = Op { flags: 0, ..*op };
        if self.objects[op.obj].flags & DESTROYED != 0 {
            self.free_chunks(staged);
            return self.finds_removed(t, op, value);
        }
        if self.msg_send_choices(t, &plain) == 0 {
            self.free_chunks(staged);
            return Applied::Done(match () {
                () if op.has(TRY) => errno::EAGAIN,
                () if self.cancelled(t, op) => errno::EINTR,
                () => errno::ETIMEDOUT,
            });
        }
        let Some(at) = self.new_message(op.arg, op.mask, staged) else { return self.full("messages in queues") };
        let last = self.message_queue(op.obj).last;
        self.link(self.objects[op.obj].extra, at, last);
        let vpid = self.procs[self.threads[t].pid].vpid;
        self.queue_mut(op.obj).sender = vpid;
        self.objects[op.obj].count += 1;
        self.objects[op.obj].value += op.mask as i32;
        Applied::Done(0)
    }

    /// A record for a message whose contents are staged.
    pub(crate) fn new_message(&mut self, mtype: i64, len: u32, chunk: u32) -> Option<u32> {
        let message = Queued { mtype, len, chunk, next: NONE, pad: 0 };
        if !self.queued.contains(self.free_queued) {
            return self.queued.push(message);
        }
        let at = self.free_queued;
        self.free_queued = self.queued[at].next;
        self.queued[at] = message;
        Some(at)
    }

    /// Links message `at` into the queue with that record, behind message `before` or, if that is [`NONE`], as the first.
    pub(crate) fn link(&mut self, record: u32, at: u32, before: u32) {
        let next = match before {
            NONE => core::mem::replace(&mut self.queues[record].first, at),
            b => core::mem::replace(&mut self.queued[b].next, at),
        };
        self.queued[at].next = next;
        if next == NONE {
            self.queues[record].last = at;
        }
    }

    /// Takes message `at`, which comes after `before`, out of the queue with that record.
    pub(crate) fn unlink_message(&mut self, record: u32, before: u32, at: u32) -> Queued {
        let message = self.queued[at];
        if message.next == NONE {
            self.queues[record].last = before;
        }
        match before {
            NONE => self.queues[record].first = message.next,
            b => self.queued[b].next = message.next,
        }
        self.queued[at].next = core::mem::replace(&mut self.free_queued, at);
        message
    }

    /// Takes all messages out of the queue with that record.
    pub(crate) fn clear_queue(&mut self, record: u32) {
        while self.queued.contains(self.queues[record].first) {
            let message = self.unlink_message(record, NONE, self.queues[record].first);
            self.free_chunks(message.chunk);
        }
    }

    fn receivable(&self, op: &Op) -> Found {
        if self.objects[op.obj].flags & DESTROYED != 0 {
            return Found::Removed;
        }
        let matches = |m: &Queued| match op.arg {
            _ if op.kind == Kind::MQ_RECEIVE => true,
            0 => true,
            n if n < 0 => m.mtype <= n.saturating_neg(),
            n if op.has(EXCEPT) => m.mtype != n,
            n => m.mtype == n,
        };
        let lowest = op.arg < 0;
        let mut best: Option<(u32, u32)> = None;
        let mut before = NONE;
        let mut at = self.message_queue(op.obj).first;
        while let Some(message) = self.queued.get(at) {
            let better = best.is_none_or(|(_, b)| lowest && message.mtype < self.queued[b].mtype);
            if matches(message) && better {
                best = Some((before, at));
                if !lowest {
                    break;
                }
            }
            (before, at) = (at, message.next);
        }
        match best {
            None => Found::Nothing,
            Some((_, at)) if op.mask & NOERROR == 0 && self.queued[at].len > op.mask => Found::TooLong,
            Some((before, at)) => Found::Message { before, at },
        }
    }

    /// There is a message for a msgrcv, or the queue is gone.
    pub(crate) fn offers(&self, op: &Op) -> bool {
        !matches!(self.receivable(op), Found::Nothing)
    }

    pub(crate) fn msg_receive_choices(&self, t: Tid, op: &Op) -> u32 {
        if self.sleeper_goes_first(t, op) {
            return 0;
        }
        let found = self.receivable(op);
        if matches!(found, Found::Removed) && !op.has(PARTIAL) {
            return self.ways_of_removed(t, op.obj);
        }
        u32::from(!matches!(found, Found::Nothing) || op.has(TRY) || self.may_time_out(op) || self.cancelled(t, op))
    }

    /// Leaves the length (bytes, cut to the buffer) and the type of the message in `Thread::out`, its contents for
    /// [`World::unstage`].
    pub(crate) fn msg_receive_perform(&mut self, t: Tid, op: &Op, value: u32) -> Applied {
        let (before, at) = match self.receivable(op) {
            Found::Message { before, at } => (before, at),
            Found::Removed => return self.finds_removed(t, op, value),
            Found::TooLong => return Applied::Done(errno::E2BIG),
            Found::Nothing => {
                return Applied::Done(match () {
                    () if op.has(TRY) => errno::ENOMSG,
                    () if self.cancelled(t, op) => errno::EINTR,
                    () => errno::ETIMEDOUT,
                });
            }
        };
        let message = self.unlink_message(self.objects[op.obj].extra, before, at);
        self.objects[op.obj].count -= 1;
        self.objects[op.obj].value -= message.len as i32;
        // Who sends to one that sleeps leaves the number of its thread there (ipc/msg.c, pipelined_send).
        let id = if op.has(PARTIAL) { self.threads[t].vtid } else { self.procs[self.threads[t].pid].vpid };
        self.queue_mut(op.obj).receiver = id;
        self.threads[t].staged = message.chunk;
        self.threads[t].out = [i64::from(message.len.min(op.mask & !NOERROR)), message.mtype, 0];
        Applied::Done(0)
    }

    /// Looking at a queue is done by the caller, with the turn.
    pub(crate) fn queue_ctl_perform(&mut self, t: Tid, op: &Op, value: u32) -> Applied {
        if self.objects[op.obj].flags & DESTROYED != 0 {
            return self.finds_removed(t, op, value);
        }
        match Ctl(op.arg as u8) {
            SET_SIZE => self.queue_mut(op.obj).limit = (op.arg >> 8) as u64,
            Ctl::REMOVE => self.queue_remove(t, op.obj),
            COPY if self.nth_message(op.obj, op.arg >> 8).is_none() => return Applied::Done(errno::ENOMSG),
            _ => {}
        }
        Applied::Done(0)
    }

    /// The message of queue `obj` that stands at place `n`, from 0.
    pub fn nth_message(&self, obj: ObjId, n: i64) -> Option<Queued> {
        usize::try_from(n).ok().and_then(|n| self.messages_of(obj).nth(n))
    }

    /// Copies a message that stays, as much as `out` holds.
    pub fn peek(&self, message: Queued, out: &mut [u8]) {
        let mut at = message.chunk;
        for piece in out.chunks_mut(CHUNK) {
            let Some(chunk) = self.chunks.get(at) else { break };
            piece.copy_from_slice(&chunk.bytes[..piece.len()]);
            at = chunk.next;
        }
    }

    /// Its messages and its name are gone; who waits is told so.
    fn queue_remove(&mut self, t: Tid, obj: ObjId) {
        self.clear_queue(self.objects[obj].extra);
        let object = &mut self.objects[obj];
        (object.count, object.value) = (0, 0);
        self.note_removal(t, obj);
        for name in self.names.as_mut_slice() {
            if name.obj == obj {
                name.obj = NONE;
            }
        }
    }
}

impl World {
    /// The date of the last send (0), receive (1) or change (2) of queue `obj`, seconds.
    pub fn queue_dated(&mut self, obj: ObjId, what: usize, date: i64) {
        self.queue_mut(obj).dates[what] = date;
    }

    /// The permission bits of queue `obj` are set (IPC_SET), at that date.
    pub fn queue_set_mode(&mut self, obj: ObjId, mode: u32, date: i64) {
        self.queue_mut(obj).mode = mode;
        self.queue_dated(obj, 2, date);
    }

    /// An identifier for a queue made by thread `t`, which does not depend on what other threads create meanwhile, so that a
    /// queue has the same one in every order of independent steps: the first thread counts from 0, each other one in a
    /// range of its own.
    pub fn new_queue_id(&self, t: Tid) -> u64 {
        let uid = self.threads[t].uid;
        let hash = uid.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let mut id = if uid == Uid::MAIN { 0 } else { (hash % 0x7ffe + 1) << 16 };
        while self.find(Key::new(SHARED, ObjKind::MSGQ, id)).is_some() {
            id += 1;
        }
        id
    }
}
