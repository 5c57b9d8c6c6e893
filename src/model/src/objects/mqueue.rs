//! POSIX message queues: messages in the order of their priorities, of one priority in that of their sending.
//!
//! A queue is a channel, its descriptors are descriptions like others, so that poll and epoll work on them. What is sent
//! is kept as System V messages are (see [`crate::msg`]). A queue lives as long as it has a name or a descriptor; the name
//! counts as a reader and a writer of the channel.
//!
//! A call that waits may be taken as one that has not entered the kernel yet, see [`crate::msg`]. For mq_notify that means
//! that a message which finds the queue empty is announced although somebody waits for it: the kernel does so where the
//! receiver comes a little later.

use super::msg::Used;
use super::row::*;
use crate::base::{Address, NETLINK, NOTICE};
use crate::state::{
    poll, ChanId, ChanKind, DescId, DescKind, Message, Notice, Queue, SockId, ThreadState, BY_SOCKET, REMOVED, WOKEN_UP,
};

kinds! {
    /// mq_send: an operation on the queue's channel, `arg & 0xffff` is the priority, `arg >> 16` the number of bytes; the
    /// contents are staged, see [`crate::mqueue`].
    /// [`VARIANT`](crate::op::VARIANT), filled in where it is recorded: it may send a signal or tell a socket (mq_notify).
    MQ_SEND = 107, "mq_send" {
        operands: Operands::Objects, enabled: blocks(World::read_choices, |q| q.channel()),
        perform: |w, t, op, _| w.mq_send_perform(t, op),
        records: Records::number(World::channel_states), cells: |act, did, cells| {
            if act.op.has(VARIANT) {
                cells.touch(Cell::World, How::Writes);
            }
            ON_CHANNELS(act, did, cells);
        }, follows: NOBODY, blocks: |_, p| p.op.kind != Kind::MQ_RECEIVE,
        role: Role::None, channels: Channels::Sends, signals: Signals::RESTARTS, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle { peer: World::waits_by_name, ..Idle::BUSY },
        tells: NOT, memory: Memory::Nothing, unproven: |op| op.has(VARIANT).then_some(Unproven::Notified),
        shown: Shown { call: Call::Three("mq_send", "mq_send", "mq_timedsend"), arguments: |op, _, words| {
            say![words, Thing::Object(op.obj), ", ", op.arg >> 16, " bytes, priority ", op.arg & 0xffff];
        }, outcome: Outcome::Nothing, waits: Some(send_waits), identity: |world, _, op, add| {
            object_identity(world, op.obj, add);
            add(op.arg as u64);
        } },
    }
    /// mq_receive: the same; the buffer has room for the longest message.
    MQ_RECEIVE = 108, "mq_receive" {
        operands: Operands::Objects, enabled: blocks(World::read_choices, |q| q.channel()),
        perform: |w, t, op, _| w.mq_receive_perform(t, op),
        records: Records::number(World::channel_states), cells: ON_CHANNELS,
        follows: NOBODY, blocks: |_, p| p.op.kind != Kind::MQ_SEND,
        role: Role::None, channels: Channels::Receives, signals: Signals::RESTARTS, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle { peer: World::waits_by_name, ..Idle::WORKER }, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::Three("mq_receive", "mq_receive", "mq_timedreceive"), arguments: OBJECT,
            outcome: Outcome::Nothing, waits: Some(receive_waits), identity: BY_OBJECTS },
    }
}

fn send_waits(world: &World, t: Tid, op: &Op, words: &mut dyn Words) {
    let name = Thing::Object(op.obj);
    let Some(id) = world.channel_of(op.obj) else { return say![words, name] };
    let (queue, count) = (world.mqueue(id), world.channels[id].messages);
    say![words, "room in ", name, " (it holds ", count, " of ", queue.limit, " messages; "];
    say![words, Used(world, &queue, true), ")", hopeless(world, t)];
}

fn receive_waits(world: &World, t: Tid, op: &Op, words: &mut dyn Words) {
    let name = Thing::Object(op.obj);
    let Some(id) = world.channel_of(op.obj) else { return say![words, name] };
    say![
        words,
        "a message in ",
        name,
        " (it is empty; ",
        Used(world, &world.mqueue(id), false),
        ")",
        hopeless(world, t)
    ];
}

impl World {
    /// A new queue without a name, made by thread `t`; of `queue` the limits and the mode count. `None`: no room.
    pub fn mqueue_new(&mut self, t: Tid, queue: Queue) -> Option<ChanId> {
        let fresh = Queue { first: NONE, last: NONE, used: 1, ..queue };
        let free = self.queues.as_slice().iter().position(|q| q.used == 0);
        let record = match free {
            Some(at) => {
                self.queues[at as u32] = fresh;
                at as u32
            }
            None => self.queues.push(fresh)?,
        };
        let id = self.channel_new(t, ChanKind::QUEUE, 0)?;
        self.channels[id].value = u64::from(record);
        Some(id)
    }

    /// The record of a queue.
    pub fn mqueue(&self, id: ChanId) -> Queue {
        self.channels.get(id).and_then(|c| self.queues.get(c.value as u32)).copied().unwrap_or_default()
    }

    /// The record of a queue, to be changed.
    pub(crate) fn mqueue_mut(&mut self, id: ChanId) -> &mut Queue {
        let record = self.channels[id].value as u32;
        &mut self.queues[record]
    }

    /// The records of all queues.
    pub fn mqueues(&self) -> impl Iterator<Item = Queue> + '_ {
        let queues = self.channels.as_slice().iter().filter(|c| c.obj != NONE && c.kind == ChanKind::QUEUE);
        queues.filter_map(|c| self.queues.get(c.value as u32)).copied()
    }

    /// Messages that a queue has room for.
    pub(crate) fn mqueue_room(&self, id: ChanId) -> u64 {
        self.mqueue(id).limit.saturating_sub(self.channels[id].messages.into())
    }

    /// The messages of a queue, in the order in which they are received: (priority, bytes).
    pub fn mqueue_messages(&self, id: ChanId) -> impl Iterator<Item = (i64, u32)> + '_ {
        let mut at = self.mqueue(id).first;
        core::iter::from_fn(move || {
            let message = self.queued.get(at).copied()?;
            at = message.next;
            Some((message.mtype, message.len))
        })
    }

    fn mqueue_name(&self, name: &[u8]) -> Option<u32> {
        let queue = |obj: ObjId| {
            let channel = self.channel_of(obj).and_then(|id| self.channels.get(id));
            channel.is_some_and(|c| c.kind == ChanKind::QUEUE)
        };
        let names = self.names.as_slice().iter();
        let at = names.zip(0..).find(|(n, _)| n.obj != NONE && &n.bytes[..n.len as usize] == name && queue(n.obj));
        at.map(|(_, at)| at)
    }

    /// The queue of that name.
    pub fn mqueue_named(&self, name: &[u8]) -> Option<ChanId> {
        self.channel_of(self.names[self.mqueue_name(name)?].obj)
    }

    /// Gives a queue that name. False: no room.
    pub fn mqueue_call(&mut self, id: ChanId, name: &[u8]) -> bool {
        self.channels[id].readers += 1;
        self.channels[id].writers += 1;
        self.name_add(name, self.channels[id].obj)
    }

    /// Takes the name away; without descriptors, the queue is gone. False: there is no such name.
    pub fn mqueue_unlink(&mut self, name: &[u8]) -> bool {
        let Some(at) = self.mqueue_name(name) else { return false };
        let obj = core::mem::replace(&mut self.names[at].obj, NONE);
        if let Some(id) = self.channel_of(obj) {
            self.channels[id].readers -= 1;
            self.channels[id].writers -= 1;
            self.channel_free(id);
        }
        true
    }

    /// The name of queue `obj`, if it has one.
    pub fn mqueue_called(&self, obj: ObjId) -> Option<&[u8]> {
        let name = self.names.as_slice().iter().find(|n| n.obj == obj)?;
        name.bytes.get(..name.len as usize)
    }

    /// The queue is gone.
    pub(crate) fn mqueue_free(&mut self, id: ChanId) {
        let record = self.channels[id].value as u32;
        self.clear_queue(record);
        self.queues[record] = Queue::default();
    }

    /// Process `p` has closed a name of `desc`: what it has asked to be told about that queue it is not told.
    pub(crate) fn mqueue_left(&mut self, p: Pid, desc: DescId) {
        let input = self.descs[desc].input;
        if self.descs[desc].kind == DescKind::QUEUE && self.mqueue(input).notified == p + 1 {
            self.mqueue_take_back(input);
        }
    }

    /// What has been asked to be told about queue `id` is not told; a socket is told of that (ipc/mqueue.c, remove_notification).
    fn mqueue_take_back(&mut self, id: ChanId) {
        self.tell_socket(id, REMOVED);
        self.mqueue_mut(id).notified = 0;
    }

    /// The channel of the socket that is to be told of a message in queue `id`.
    pub fn mqueue_socket(&self, id: ChanId) -> Option<ChanId> {
        let queue = self.mqueue(id);
        let told = queue.notified != 0 && queue.signal == BY_SOCKET;
        let socket = self.sockets.as_slice().iter().find(|s| s.domain == NETLINK && s.serial == queue.value);
        socket.filter(|_| told).map(|s| s.input)
    }

    /// Tells the socket that waits for news of queue `id`, if one does.
    fn tell_socket(&mut self, id: ChanId, what: u8) {
        /// Memory that the kernel charges for it (struct sk_buff and its data).
        const CHARGE: u32 = 768;
        let Some(to) = self.mqueue_socket(id) else { return };
        let mut says = self.mqueue(id).cookie;
        says[NOTICE - 1] = what;
        let len = NOTICE as u32;
        let message =
            Message { len, charge: CHARGE, sent: self.now, from: Address::notice(says), ..Message::default() };
        let channel = &self.channels[to];
        if channel.room - channel.len() < u64::from(len) || !self.message_push(to, message) {
            self.full("messages");
        }
        self.reaches_far();
    }

    /// Whether process `p` would lose what it has asked to be told by closing a name of `desc`.
    pub fn mqueue_owner(&self, p: Pid, desc: DescId) -> bool {
        let desc = &self.descs[desc];
        desc.kind == DescKind::QUEUE && self.mqueue(desc.input).notified == p + 1
    }

    /// A message into queue `obj` may send a signal, or tell a socket.
    pub(crate) fn mqueue_signals(&self, obj: ObjId) -> bool {
        self.channel_of(obj)
            .map(|id| self.mqueue(id))
            .is_some_and(|q| q.notified != 0 && (q.signal > 0 || q.signal == BY_SOCKET))
    }

    pub(crate) fn mqueue_readiness(&self, id: ChanId) -> u16 {
        let input = if self.channels[id].messages > 0 { poll::IN | poll::RDNORM } else { 0 };
        input | if self.mqueue_room(id) > 0 { poll::OUT | poll::WRNORM } else { 0 }
    }

    fn mq_waits(&self, t: Tid, op: &Op) -> Applied {
        Applied::Done(match () {
            () if op.tries() => errno::EAGAIN,
            () if self.cancelled(t, op) && !self.may_time_out(op) => errno::EINTR,
            () => errno::ETIMEDOUT,
        })
    }

    /// Gives 0 or minus an error number; then comes [`World::mqueue_notice`].
    pub(crate) fn mq_send_perform(&mut self, t: Tid, op: &Op) -> Applied {
        let staged = core::mem::replace(&mut self.threads[t].staged, NONE);
        let Some(id) = self.channel_of(op.obj) else { return Applied::Done(errno::EBADF) };
        if !self.goes_on(t, op) {
            self.free_chunks(staged);
            return self.mq_waits(t, op);
        }
        let priority = op.arg & 0xffff;
        let Some(at) = self.new_message(priority, (op.arg >> 16) as u32, staged) else {
            return self.full("messages in queues");
        };
        let record = self.channels[id].value as u32;
        let (mut before, mut next) = (NONE, self.queues[record].first);
        while self.queued.contains(next) && self.queued[next].mtype >= priority {
            (before, next) = (next, self.queued[next].next);
        }
        self.link(record, at, before);
        self.channels[id].messages += 1;
        self.queues[record].sender = self.procs[self.threads[t].pid].vpid;
        self.woke(id, 0);
        if self.channels[id].messages == 1 {
            self.tell_socket(id, WOKEN_UP);
        }
        Applied::Done(0)
    }

    /// Some thread waits for a message in queue `id`.
    pub fn mqueue_awaited(&self, id: ChanId) -> bool {
        let obj = self.channel_obj(id);
        self.live.as_slice().iter().map(|&t| &self.threads[t]).any(|thread| {
            let op = &thread.pending;
            thread.state == ThreadState::PARKED && op.kind == Kind::MQ_RECEIVE && op.obj == obj && !op.tries()
        })
    }

    /// The process that is told of the message that has just been sent into queue `id`; once.
    pub fn mqueue_notice(&mut self, id: ChanId) -> Option<Notice> {
        let Queue { notified, signal, value, .. } = self.mqueue(id);
        if notified == 0 || self.channels[id].messages != 1 {
            return None;
        }
        self.mqueue_mut(id).notified = 0;
        Some(Notice { process: notified - 1, signal, value })
    }

    /// Gives 0 or minus an error number; leaves the length (bytes) and the priority of the message in `Thread::out`, its
    /// contents for [`World::unstage`].
    pub(crate) fn mq_receive_perform(&mut self, t: Tid, op: &Op) -> Applied {
        let Some(id) = self.channel_of(op.obj) else { return Applied::Done(errno::EBADF) };
        if !self.goes_on(t, op) {
            return self.mq_waits(t, op);
        }
        let record = self.channels[id].value as u32;
        let message = self.unlink_message(record, NONE, self.queues[record].first);
        self.channels[id].messages -= 1;
        self.queues[record].receiver = self.procs[self.threads[t].pid].vpid;
        self.threads[t].staged = message.chunk;
        self.threads[t].out = [i64::from(message.len), message.mtype, 0];
        self.woke(id, 0);
        Applied::Done(0)
    }

    /// To send a message of `len` bytes, which have been staged, into queue `id`.
    pub fn mq_send_op(&self, id: ChanId, priority: u32, len: u32) -> Op {
        self.channel_op(Kind::MQ_SEND, id, i64::from(priority & 0xffff) | i64::from(len) << 16)
    }
}

impl World {
    /// Process `p` asks to be told of a message in queue `id` by `signal`, with `value`. `None`: it takes that back.
    /// Gives 0 or minus an error number.
    pub fn mqueue_ask(&mut self, id: ChanId, p: Pid, how: Option<(i32, u64)>) -> i64 {
        let record = self.mqueue_mut(id);
        match how {
            None if record.notified == p + 1 => self.mqueue_take_back(id),
            None => {}
            Some(_) if record.notified != 0 => return errno::EBUSY,
            Some((signal, value)) => (record.notified, record.signal, record.value) = (p + 1, signal, value),
        }
        0
    }

    /// The same, to be told by socket `s`, and what.
    pub fn mqueue_ask_by_socket(&mut self, id: ChanId, p: Pid, s: SockId, cookie: [u8; NOTICE]) -> i64 {
        let result = self.mqueue_ask(id, p, Some((BY_SOCKET, self.sockets[s].serial)));
        if result == 0 {
            self.mqueue_mut(id).cookie = cookie;
        }
        result
    }

    /// Sets the permission bits of queue `id`.
    pub fn mqueue_set_mode(&mut self, id: ChanId, mode: u32) {
        self.mqueue_mut(id).mode = mode;
    }

    /// Bytes that the file of a queue is said to have; what it says of the queue is as long as it is.
    pub fn mqueue_set_size(&mut self, id: ChanId, size: u64) {
        self.mqueue_mut(id).size = size;
    }
}
