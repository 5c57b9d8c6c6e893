//! Descriptors in the interpreter: two counters, a pipe, a timer, two epoll instances, two message queues, by their numbers
//! in [`Fd`].

use vsrun_model::channel::{ChanKind, PIPE_RING};
use vsrun_model::epoll::{flag, Control};
use vsrun_model::event::SEMAPHORE;
use vsrun_model::fd::{poll, DescId, DescKind, Polled, NONBLOCK, READ_ONLY, READ_WRITE, WRITE_ONLY};
use vsrun_model::msg::Queue;
use vsrun_model::world::START;
use vsrun_model::{Kind, Op, Tid, NONE};

use super::{How, Ins, Run};

/// Descriptors of every process, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Fd {
    Counter,
    Semaphore,
    PipeIn,
    PipeOut,
    Timer,
    Inner,
    Outer,
    /// A message queue for two messages.
    Queue,
    /// One for one message.
    Narrow,
    /// A counter that nobody watches.
    Plain,
}

/// How a watch reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watching {
    Level,
    Edge,
    Once,
    /// For room.
    Output,
}

/// What is done with a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// Reads up to this many bytes (pipes).
    Take(u16),
    /// Writes so many bytes, or adds this number.
    Put(u16),
    /// Adds or changes a watch of `Fd` by this instance.
    Watch(Fd, Watching),
    Change(Fd, Watching),
    Unwatch(Fd),
    /// Waits for at most so many events of this instance.
    Events(u8),
    /// Waits until this descriptor or the other can be read.
    Poll(Fd),
    /// Sets the timer to the n-th millisecond of the run and a period in ms; 0: disarms it.
    Set(u8, u8),
    /// Sends a message of this priority and so many bytes.
    Send(u16, u16),
    Receive,
    /// Asks to be told of a message.
    Notify,
    /// Where the process has one thread.
    Close,
}

impl Watching {
    fn events(self) -> u32 {
        let input = u32::from(poll::IN);
        match self {
            Watching::Level => input,
            Watching::Edge => input | flag::EDGE,
            Watching::Once => input | flag::ONESHOT,
            Watching::Output => u32::from(poll::OUT) | flag::EDGE,
        }
    }
}

/// True if the program uses descriptors.
pub fn uses(program: &super::Program) -> bool {
    program.iter().flatten().any(|ins| matches!(ins, Ins::Fd(..)))
}

impl Run<'_> {
    /// Gives the first process its descriptors. The first two counters are watched: one by each instance, and the inner one by the
    /// outer one.
    pub(super) fn make_descriptors(&mut self) {
        let counter = |value, period| (DescKind::EVENT, ChanKind::COUNTER, value, period);
        let all = [
            (Fd::Counter, counter(0, 0)),
            (Fd::Semaphore, counter(1, SEMAPHORE)),
            (Fd::Plain, counter(0, 0)),
            (Fd::Timer, (DescKind::TIMER, ChanKind::TIMER, 0, 0)),
            (Fd::Inner, (DescKind::EPOLL, ChanKind::EPOLL, 0, 0)),
            (Fd::Outer, (DescKind::EPOLL, ChanKind::EPOLL, 0, 0)),
        ];
        for (fd, (kind, channel, value, period)) in all {
            let world = &mut self.arena.world;
            let id = world.channel_new(0, channel, 0).expect("room");
            (world.channels[id].value, world.channels[id].period) = (value, period);
            let desc = world.desc_new(kind, READ_WRITE, id, id).expect("room");
            assert!(world.fd_set(0, fd as i32, desc));
        }
        let world = &mut self.arena.world;
        let id = world.channel_new(0, ChanKind::PIPE, PIPE_RING).expect("room");
        world.channels[id].slots = 2;
        let input = world.desc_new(DescKind::PIPE, READ_ONLY, id, NONE).expect("room");
        let output = world.desc_new(DescKind::PIPE, WRITE_ONLY | NONBLOCK, NONE, id).expect("room");
        assert!(world.fd_set(0, Fd::PipeIn as i32, input) && world.fd_set(0, Fd::PipeOut as i32, output));
        for (fd, limit) in [(Fd::Queue, 2), (Fd::Narrow, 1)] {
            let id = world.mqueue_new(0, Queue { limit, longest: 8, ..Queue::default() }).expect("room");
            let desc = world.desc_new(DescKind::QUEUE, READ_WRITE, id, id).expect("room");
            assert!(world.fd_set(0, fd as i32, desc));
        }
        self.control(0, Fd::Inner, Fd::Counter, Control::Add(Watching::Edge.events(), 0));
        self.control(0, Fd::Outer, Fd::Semaphore, Control::Add(Watching::Level.events(), 1));
    }

    fn named(&self, t: Tid, fd: Fd) -> Option<DescId> {
        self.arena.world.fd(self.pid(t), fd as i32)
    }

    fn control(&mut self, t: Tid, epoll: Fd, fd: Fd, control: Control) -> i64 {
        let (Some(instance), Some(desc)) = (self.named(t, epoll), self.named(t, fd)) else { return -1 };
        let world = &mut self.arena.world;
        let channel = world.descs[instance].input;
        world.epoll_control(t, channel, fd as i32, desc, control).expect("room")
    }

    /// The operation of an instruction on descriptor `fd`; `None`: it is closed, or the instruction makes no sense there.
    pub(super) fn on_descriptor(&mut self, t: Tid, fd: Fd, on: On, how: How) -> Option<Op> {
        let desc = self.named(t, fd)?;
        let threaded = self.arena.world.procs[self.pid(t)].threaded;
        let world = &mut self.arena.world;
        let d = world.descs[desc];
        let op = match on {
            On::Take(n) if d.input != NONE && !matches!(d.kind, DescKind::EPOLL | DescKind::QUEUE) => {
                world.channel_op(Kind::FD_READ, d.input, if d.kind == DescKind::PIPE { n.into() } else { 8 })
            }
            On::Put(n) if d.kind == DescKind::EVENT || d.kind == DescKind::PIPE && d.output != NONE => {
                world.channel_op(Kind::FD_WRITE, d.output, n.into())
            }
            On::Watch(what, _) | On::Change(what, _) | On::Unwatch(what) if d.kind == DescKind::EPOLL && what != fd => {
                let target = self.named(t, what)?;
                let world = &self.arena.world;
                let mut op = Op::on(Kind::FD_EPOLL_CTL, world.channel_obj(d.input));
                op.mask = world.channel_bit(d.input) | world.desc_bits(target);
                op.arg(i64::from(fd as i32) | i64::from(what as i32) << 32)
            }
            On::Events(n) if d.kind == DescKind::EPOLL => world.channel_op(Kind::FD_WAIT, d.input, n.into()),
            On::Poll(other) => {
                let asked = [Some(desc), self.named(t, other)];
                let world = &mut self.arena.world;
                let mut op = Op::new(Kind::FD_POLL);
                world.threads[t].n_polled = 0;
                for desc in asked.into_iter().flatten() {
                    let at = world.threads[t].n_polled as usize;
                    world.threads[t].polled[at] = Polled { desc, events: poll::IN, ready: 0 };
                    world.threads[t].n_polled += 1;
                    op.mask |= world.desc_bits(desc);
                }
                op
            }
            On::Send(priority, len) if d.kind == DescKind::QUEUE => {
                assert!(world.stage(t, &vec![0; len.into()]), "room");
                world.mq_send_op(d.input, priority.into(), len.into())
            }
            On::Receive if d.kind == DescKind::QUEUE => world.channel_op(Kind::MQ_RECEIVE, d.input, 0),
            On::Notify if d.kind == DescKind::QUEUE => world.desc_op(Kind::FD_CONTROL, desc),
            On::Set(..) if d.kind == DescKind::TIMER => world.desc_op(Kind::FD_CONTROL, desc),
            On::Close if !threaded => world.desc_op(Kind::FD_CLOSE, desc).arg(fd as i64),
            _ => return None,
        };
        Some(match (op.kind, how) {
            (Kind::FD_READ | Kind::FD_WRITE | Kind::FD_POLL | Kind::FD_WAIT, _) => Self::how(op, how),
            (Kind::MQ_SEND | Kind::MQ_RECEIVE, _) => Self::how(op, how),
            _ => op,
        })
    }

    /// What belongs to an operation on a descriptor and is done by who performs it; what the program sees of it.
    pub(super) fn after_descriptor(&mut self, t: Tid, ins: &Ins, op: &Op) -> Vec<i64> {
        let Ins::Fd(fd, on, _) = *ins else { return Vec::new() };
        match on {
            On::Watch(what, how) => {
                vec![self.control(t, fd, what, Control::Add(how.events(), what as u64))]
            }
            On::Change(what, how) => vec![self.control(t, fd, what, Control::Change(how.events(), what as u64))],
            On::Unwatch(what) => vec![self.control(t, fd, what, Control::Remove)],
            On::Events(_) => {
                let events = self.arena.world.delivered.as_slice().iter();
                events.flat_map(|e| [e.data as i64, i64::from(e.events)]).collect()
            }
            On::Set(at, period) => {
                if let Some(desc) = self.named(t, fd) {
                    let world = &mut self.arena.world;
                    let at = if at == 0 { 0 } else { START + u64::from(at) * 1_000_000 };
                    let id = world.descs[desc].input;
                    world.timer_set(id, at, u64::from(period) * 1_000_000);
                }
                Vec::new()
            }
            On::Notify => {
                let (p, Some(desc)) = (self.pid(t), self.named(t, fd)) else { return Vec::new() };
                self.arena.expose_to_timers(p);
                let id = self.arena.world.descs[desc].input;
                let asked = self.arena.world.mqueue_ask(id, p, Some((super::signals::POSTS, 0)));
                vec![i64::from(asked == 0)]
            }
            On::Poll(_) => {
                let thread = &self.arena.world.threads[t];
                thread.polled[..thread.n_polled as usize].iter().map(|p| p.ready.into()).collect()
            }
            On::Take(_) if op.kind == Kind::FD_READ && fd != Fd::PipeIn => vec![self.arena.world.threads[t].out[0]],
            _ => Vec::new(),
        }
    }

    /// What the program sees of a message that was sent or received, and who is told of it.
    pub(super) fn after_message(&mut self, t: Tid, op: &Op, result: i64) -> Vec<i64> {
        let world = &mut self.arena.world;
        let id = world.channel_of(op.obj);
        if op.kind == Kind::MQ_RECEIVE && result == 0 {
            let [len, priority, _] = world.threads[t].out;
            world.unstage(t, &mut []);
            return vec![len, priority];
        }
        if op.kind == Kind::MQ_SEND && result != 0 {
            world.unstage(t, &mut []);
        } else if let Some(notice) = id.and_then(|id| world.mqueue_notice(id)).filter(|_| op.kind == Kind::MQ_SEND) {
            self.arena.expose_to_timers(notice.process);
            self.send(t, notice.process, NONE, notice.signal);
        }
        Vec::new()
    }

    /// The end of a process closes what it has.
    pub(super) fn closes_all(&self, pid: vsrun_model::Pid) -> Op {
        let world = &self.arena.world;
        let mut op = Op::new(Kind::FD_CLOSE_ALL);
        op.mask = world.fds_from(pid, 0).fold(0, |mask, (_, desc)| mask | world.desc_bits(desc));
        op
    }

    /// What channels hold and who watches them in which order.
    pub(super) fn descriptors(&self) -> String {
        let world = &self.arena.world;
        let channel = |c: &vsrun_model::channel::Channel| {
            (c.kind.0, c.number, c.value, c.period, c.len(), c.used, c.watched, c.readers, c.writers)
        };
        let channels: Vec<_> = world.channels.as_slice().iter().filter(|c| c.obj != NONE).map(channel).collect();
        let mut watches: Vec<_> = world.watches.as_slice().iter().filter(|w| w.epoll != NONE).collect();
        watches.sort_by_key(|w| (w.epoll, w.place, w.fd));
        let watch = |w: &&vsrun_model::epoll::Watch| (w.epoll, w.fd, w.desc, w.events, w.data, w.place != 0);
        let queues =
            world.channels.as_slice().iter().zip(0..).filter(|(c, _)| c.kind == ChanKind::QUEUE && c.obj != NONE);
        let queue = |(_, id)| (world.mqueue(id).notified, world.mqueue_messages(id).collect::<Vec<_>>());
        let queues: Vec<_> = queues.map(queue).collect();
        format!("{channels:?} {:?} {queues:?}", watches.iter().map(watch).collect::<Vec<_>>())
    }
}
