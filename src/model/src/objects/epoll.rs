//! epoll: what an instance watches, and its list of what has become ready (fs/eventpoll.c).
//!
//! An instance is a description with a channel of its own. A watch stands in the ready list from the moment something
//! happens to what it watches until a wait finds it not ready any more, or reports it and it is not level-triggered. So a
//! wait returns those of the list that are ready when it looks, in the order in which they came into the list; and one
//! that is level-triggered goes to the end of the list when it is reported.
//!
//! NOTE [Reach] What is done to a channel concerns the instances that watch it, and those that watch these: their bits
//! are in the operation's mask, as far as they watch when the operation is recorded ([`World::act`]). What adds to or
//! changes the watches, or ends an instance, has the bits of the channel too, so that the mask of an operation changes only
//! with operations that it depends on. Reads and writes of different channels depend on each other only where both may put a watch into
//! the list of a common instance ([`REACHES`]): the order of the list is the order of those.

use super::fd::event_words;
use super::row::*;
use crate::base::errno::{EEXIST, EFAULT, EINTR, EINVAL, ELOOP, ENOENT};
use crate::base::{LACKS, REACHES, SEVERAL};
use crate::state::{
    bit, flag, poll, ChanId, ChanKind, Control, Delivered, DescId, DescKind, ThreadState, Watch, EDGE_AGAIN,
    MAX_EVENTS, OTHER_LOOKS,
};

kinds! {
    /// Wait for events of what is watched by the epoll instance `obj`.
    FD_WAIT = 71, "epoll_wait" {
        operands: Operands::Objects, enabled: blocks(World::epoll_wait_choices, |q| q.as_found()),
        perform: |w, t, op, value| w.epoll_wait_perform(t, op, value),
        records: Records::number(|w, t, op| i64::from(w.channel_of(op.obj).is_some_and(|epoll| w.epoll_ready(t, epoll)))),
        cells: ON_CHANNELS, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::Waits,
        signals: Signals { taken: Taken::WithMask, fails_by_stop: FailsByStop::Always, ..Signals::FAILS }, polls: Polls::Events,
        alone: Alone::ExposesOwnProcessIfMasked, idle: Idle { peer: World::watches_strangers, ..Idle::WORKER }, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::Row, arguments: OBJECT, outcome: Outcome::Nothing, waits: Some(watched_words), identity: BY_OBJECTS },
    }
    /// Add, change or remove a watch: by the epoll instance with descriptor `arg & 0xffffffff`, of descriptor `arg >> 32`.
    FD_EPOLL_CTL = 73, "epoll_ctl" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: DONE,
        records: Records::number(World::taken_out_of_reach), cells: ON_CHANNELS, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::Watches, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown::passes(Call::Row, |op, _, words| say![words, Thing::Object(op.obj), ", descriptor ", op.arg >> 32]),
    }
}

/// Says which events an epoll instance waits for.
fn watched_words(world: &World, _: Tid, op: &Op, words: &mut dyn Words) {
    let Some(epoll) = world.channel_of(op.obj) else { return };
    let mut any = false;
    for watch in world.watches.as_slice().iter().filter(|w| w.epoll == epoll) {
        if event_words(world, watch.desc, watch.events as u16, words) {
            match (watch.enabled(), watch.events & flag::EDGE != 0) {
                (false, _) => say![words, " (reported once, and not set again)"],
                (true, true) => say![words, " (edge-triggered)"],
                (true, false) => {}
            }
            any = true;
        }
        words.next();
    }
    if !any {
        say![words, "an event, but it watches nothing"];
    }
}

/// Instances one inside the other (EP_MAX_NESTS and the innermost).
const MAX_NESTS: u32 = 4;

impl World {
    /// The operation as it stands now: with the bits of all instances that it concerns.
    pub(crate) fn as_it_reaches(&self, t: Tid, op: &Op) -> Op {
        let mut op = *op;
        let channels = op.kind.row().channels;
        if !channels.any() {
            return op;
        }
        if self.sockets.len > 0 {
            op.mask = self.mask_now(t, &op);
        }
        if channels == Channels::Sends && self.mqueue_signals(op.obj) {
            op = op.with(VARIANT);
        }
        let ticks = self.timeouts_any && self.n_timers > 0;
        if ticks && channels == Channels::Polls && self.polled(t).iter().any(|p| self.is_timer(p.desc)) {
            // A timer that fires for one who looks at it has fired for all.
            op = op.with(VARIANT);
        }
        if self.n_watches == 0 && channels != Channels::Watches {
            return op;
        }
        let p = self.threads[t].pid;
        match channels {
            Channels::Polls => {
                for polled in self.polled(t) {
                    op.mask |= self.desc_reach(polled.desc);
                    // To look at an instance takes out of its list what is not ready any more.
                    if self.descs.get(polled.desc).is_some_and(|d| d.kind == DescKind::EPOLL) {
                        op = op.with(VARIANT);
                    }
                }
            }
            Channels::ClosesAll => {
                let closed = |mask: u32, (_, d): (i32, DescId)| mask | self.desc_reach(d) | self.watched_by(d);
                op.mask |= self.fds_from(p, 0).fold(0, closed);
            }
            Channels::Watches => {
                for fd in [op.arg as i32, (op.arg >> 32) as i32] {
                    op.mask |= self.fd(p, fd).map_or(0, |desc| self.desc_reach(desc));
                }
            }
            _ => {
                let events = match channels {
                    Channels::Reads => poll::OUT | poll::WRNORM | poll::WRBAND,
                    Channels::Writes => poll::IN | poll::RDNORM,
                    _ => 0,
                };
                for id in [op.obj, op.obj2].into_iter().filter_map(|obj| self.channel_of(obj)) {
                    op.mask |= self.reach(id);
                    // Local datagrams are waited with by those who are connected to the receiver.
                    let waited_with = channels == Channels::Reads && self.channels[id].kind == ChanKind::PACKET;
                    if waited_with && self.channels[id].source == NONE {
                        op.mask |= self.peers_reach(id);
                        op = op.with(REACHES);
                    }
                    let instance = self.channels[id].kind == ChanKind::EPOLL;
                    if instance && channels == Channels::Closes {
                        op.mask |= self.bits_watched_by(id);
                        op = op.with(SEVERAL);
                    }
                    if self.queued_by(id, events) || instance && !channels.moves() {
                        op = op.with(REACHES);
                    }
                }
                if channels.names() {
                    op.mask |= self.found_reach(t, &op);
                }
            }
        }
        op
    }

    /// The mask of an operation on sockets: what names them and what they write to may have changed since it was published,
    /// by operations that it depends on.
    fn mask_now(&self, t: Tid, op: &Op) -> u32 {
        let own = || self.channel_of(op.obj).and_then(|id| self.sink(id)).map(|s| self.sockets[s].desc);
        let all = |mask: u32, desc: DescId| mask | self.desc_bits(desc);
        match op.kind.row().channels {
            Channels::Polls => self.polled(t).iter().fold(0, |mask, p| all(mask, p.desc)),
            Channels::ClosesAll => {
                let own = self.fds_from(self.threads[t].pid, 0);
                own.fold(0, |mask, (_, desc)| all(mask, desc) | self.queue_bits(desc))
            }
            Channels::Reads | Channels::Accepts => own().map_or(op.mask, |desc| self.desc_bits(desc)),
            Channels::Closes | Channels::Controls if op.has(VARIANT) => {
                own().map_or(op.mask, |desc| self.desc_bits(desc) | self.queue_bits(desc))
            }
            _ => op.mask,
        }
    }

    fn desc_reach(&self, desc: DescId) -> u32 {
        let Some(desc) = self.descs.get(desc) else { return 0 };
        let socket = if desc.kind == DescKind::SOCKET { self.socket_bits(desc) } else { 0 };
        self.reach(desc.input) | self.reach(desc.output) | socket
    }

    /// The bits of what a description watches, if it is an instance: with its end it watches nothing any more.
    fn watched_by(&self, desc: DescId) -> u32 {
        self.descs.get(desc).filter(|d| d.kind == DescKind::EPOLL).map_or(0, |d| self.bits_watched_by(d.input))
    }

    fn bits_watched_by(&self, epoll: ChanId) -> u32 {
        let own = self.watches.as_slice().iter().filter(|w| w.epoll == epoll);
        own.fold(0, |bits, w| bits | self.desc_bits(w.desc))
    }

    /// What operations do not reach any more once `t` has performed one that takes watches away: for [`Act::state`], the bits of
    /// those whose operations these are, shifted by 32, and the bits of what they reached. Of an accept only what is not reached,
    /// shifted by 32.
    ///
    /// [`Act::state`]: crate::state::act::Act
    pub(crate) fn taken_out_of_reach(&self, t: Tid, op: &Op) -> i64 {
        let p = self.threads[t].pid;
        let taken = |epoll: ChanId, of: u32| (u64::from(of) << 32 | u64::from(self.reach(epoll))) as i64;
        match op.kind.row().channels {
            Channels::Watches => {
                let (fd, epoll) = ((op.arg >> 32) as i32, self.channel_of(op.obj));
                let watched = self.fd(p, fd).zip(epoll).filter(|&(desc, epoll)| self.watch(epoll, fd, desc).is_some());
                watched.map_or(0, |(desc, epoll)| taken(epoll, self.desc_bits(desc)))
            }
            Channels::ClosesAll => {
                let own = |desc: DescId| self.fds_from(p, 0).filter(|&(_, d)| d == desc).count();
                let ends = |&desc: &DescId| own(desc) >= self.descs[desc].refs as usize;
                let instances = self.fds_from(p, 0).map(|(_, d)| d).filter(|&d| self.descs[d].kind == DescKind::EPOLL);
                let inputs = instances.filter(ends).map(|d| self.descs[d].input);
                inputs.fold(0, |all, epoll| all | taken(epoll, self.bits_watched_by(epoll)))
            }
            // The end of the listener is not that of the connection any more.
            Channels::Accepts => self.channel_of(op.obj).map_or(0, |id| i64::from(self.first_in_queue(id)) << 32),
            _ => self.channel_of(op.obj).map_or(0, |epoll| taken(epoll, self.bits_watched_by(epoll))),
        }
    }

    /// What the sockets that are connected to the one that reads from a channel reach.
    fn peers_reach(&self, id: ChanId) -> u32 {
        let Some(s) = self.sink(id) else { return 0 };
        let connected = (0..self.sockets.len).filter(|&other| self.peer(other) == Some(s));
        connected.fold(0, |bits, other| bits | self.reach(self.sockets[other].input))
    }

    /// The bits of a channel and of the instances that what happens to it concerns.
    pub(crate) fn reach(&self, id: ChanId) -> u32 {
        let bit = self.channel_bit(id);
        if bit == 0 || self.channels[id].watched == 0 {
            return bit;
        }
        self.watches_of(id).fold(bit, |bits, at| bits | self.reach(self.watches[at].epoll))
    }

    /// The watches on descriptions of a channel.
    fn watches_of(&self, id: ChanId) -> impl Iterator<Item = u32> + '_ {
        let on = move |desc: DescId| self.descs.get(desc).is_some_and(|d| d.input == id || d.output == id);
        (0..self.watches.len).filter(move |&at| self.watches[at].epoll != NONE && on(self.watches[at].desc))
    }

    /// True if something that happens to a channel puts watch `at` into its list: `events` say what; 0: anything.
    fn concerns(&self, at: u32, id: ChanId, events: u16) -> bool {
        const OUTPUT: u16 = poll::OUT | poll::WRNORM | poll::WRBAND;
        let watch = &self.watches[at];
        let desc = &self.descs[watch.desc];
        let side = desc.input == id && events & !OUTPUT != 0 || desc.output == id && events & OUTPUT != 0;
        watch.enabled() && (events == 0 || side && watch.events & u32::from(events) != 0)
    }

    /// Somebody watches the channel for edges of these events.
    pub(crate) fn watched_for_edges(&self, id: ChanId, events: u16) -> bool {
        let edges = |at: u32| self.watches[at].events & flag::EDGE != 0 && self.concerns(at, id, events);
        self.channels[id].watched > 0 && self.watches_of(id).any(edges)
    }

    fn queued_by(&self, id: ChanId, events: u16) -> bool {
        self.channels[id].watched > 0 && self.watches_of(id).any(|at| self.concerns(at, id, events))
    }

    /// Something has happened to a channel that those who watch it are told: `events` are the POLL* bits of what may hold
    /// now, 0 for the end of one of its ends. What has happened to a channel's input concerns those who read from it.
    pub fn woke(&mut self, id: ChanId, events: u16) {
        if self.channels[id].watched == 0 {
            return;
        }
        for at in 0..self.watches.len {
            let Some(desc) = self.descs.get(self.watches[at].desc) else { continue };
            let on = self.watches[at].epoll != NONE && (desc.input == id || desc.output == id);
            if on && self.concerns(at, id, events) {
                // What has come about can be seen before those who watch are told: who takes the event for an earlier edge then sees both,
                // and the later edge makes one more.
                if self.watches[at].place != 0 && self.watches[at].events & flag::EDGE != 0 && self.live.len > 1 {
                    self.never_comes(EDGE_AGAIN);
                }
                self.queue(at);
            }
        }
    }

    /// Puts a watch at the end of its list, if it is not in it, and tells those who watch the instance.
    fn queue(&mut self, at: u32) {
        if self.watches[at].place == 0 {
            self.last_place += 1;
            self.watches[at].place = self.last_place;
        }
        self.woke(self.watches[at].epoll, poll::IN);
    }

    /// The POLL* bits that hold for a description, seen by thread `t`.
    pub fn readiness_for(&self, t: Tid, desc: DescId) -> u16 {
        let Some(d) = self.descs.get(desc) else { return poll::NVAL };
        match d.kind {
            DescKind::EVENT | DescKind::TIMER | DescKind::SIGNAL | DescKind::PROCESS => self.event_readiness(t, d),
            DescKind::EPOLL if self.epoll_ready(t, d.input) => poll::IN | poll::RDNORM,
            DescKind::EPOLL => 0,
            _ => self.readiness(desc),
        }
    }

    /// The same, as the kernel looks: what an instance does not find ready any more leaves its list.
    pub(crate) fn look_at(&mut self, t: Tid, desc: DescId) -> u16 {
        if let Some(d) = self.descs.get(desc).filter(|d| d.kind == DescKind::EPOLL) {
            let epoll = d.input;
            let own = self.threads[t].pid;
            if self.signal_owners(epoll).any(|owner| owner != own) {
                self.never_comes(OTHER_LOOKS);
            }
            self.queue_signals(t, epoll);
            let mut after = 0;
            while let Some(at) = self.next_in_list(epoll, after) {
                after = self.watches[at].place;
                if self.look_at_watch(t, at) != 0 {
                    break;
                }
                self.watches[at].place = 0;
            }
        }
        self.readiness_for(t, desc)
    }

    fn look_at_watch(&mut self, t: Tid, at: u32) -> u32 {
        let Watch { desc, events, .. } = self.watches[at];
        u32::from(self.look_at(t, desc)) & events
    }

    fn ready_now(&self, t: Tid, watch: &Watch) -> bool {
        u32::from(self.readiness_for(t, watch.desc)) & watch.events != 0
    }

    /// True if a wait by `t` on an instance would return something.
    pub(crate) fn epoll_ready(&self, t: Tid, epoll: ChanId) -> bool {
        let watched = self.watches.as_slice().iter().filter(|w| w.epoll == epoll);
        watched.into_iter().any(|w| (w.place != 0 || self.comes_by_signal(w)) && self.ready_now(t, w))
    }

    /// The watch after place `after` in the list of an instance.
    fn next_in_list(&self, epoll: ChanId, after: u64) -> Option<u32> {
        let listed = self.watches.as_slice().iter().zip(0..).filter(|(w, _)| w.epoll == epoll && w.place > after);
        listed.min_by_key(|(w, _)| w.place).map(|(_, at)| at)
    }

    /// A signal has been sent that a signal descriptor is about, and the watch of it has not been told yet: that is done
    /// when somebody looks.
    fn comes_by_signal(&self, watch: &Watch) -> bool {
        let desc = &self.descs[watch.desc];
        desc.kind == DescKind::SIGNAL && watch.enabled() && self.awaited_signals(watch) & !watch.seen != 0
    }

    /// Signals of the watch that are pending for its owner, or any thread of it.
    fn awaited_signals(&self, watch: &Watch) -> u64 {
        let mask = self.channels.get(self.descs[watch.desc].input).map_or(0, |c| c.value);
        let own = self.live.as_slice().iter().filter(|&&t| self.threads[t].pid == watch.owner);
        own.fold(self.procs[watch.owner].sigpending, |all, &t| all | self.threads[t].sigpending) & mask
    }

    /// `t` looks at an instance: what signals have come puts the watches of its signal descriptors into the list, for whomever they are. Who
    /// else waits at the instance may be the one whom the signal wakes, and finds nothing: then the watch is out of the list again.
    fn queue_signals(&mut self, t: Tid, epoll: ChanId) {
        for at in 0..self.watches.len {
            let watch = self.watches[at];
            if watch.epoll != epoll || self.descs[watch.desc].kind != DescKind::SIGNAL {
                continue;
            }
            if self.comes_by_signal(&watch) {
                if self.ready_now(t, &watch) && self.waits_in_vain(t, &watch) {
                    self.never_comes(OTHER_LOOKS);
                }
                self.queue(at);
            }
            self.watches[at].seen = self.awaited_signals(&watch);
        }
    }

    /// Signals of process `p` put watches into the lists of instances.
    pub fn has_signal_watch(&self, p: Pid) -> bool {
        let of = |w: &Watch| w.epoll != NONE && w.owner == p && self.descs[w.desc].kind == DescKind::SIGNAL;
        self.n_watches > 0 && self.watches.as_slice().iter().any(of)
    }

    /// The processes whose signals an instance watches.
    fn signal_owners(&self, epoll: ChanId) -> impl Iterator<Item = Pid> + '_ {
        let of_signals = move |w: &&Watch| w.epoll == epoll && self.descs[w.desc].kind == DescKind::SIGNAL;
        self.watches.as_slice().iter().filter(of_signals).map(|w| w.owner)
    }

    /// `op` of `t`, which is of another process, is a wait at an instance that watches signals of process `p`: it finds nothing of them, and takes the
    /// event out of the list.
    pub(crate) fn takes_events_of(&self, t: Tid, op: &Op, p: Pid) -> bool {
        let instance = || self.channel_of(op.obj).filter(|_| op.kind == Kind::FD_WAIT && p != self.threads[t].pid);
        self.n_watches > 0 && instance().is_some_and(|epoll| self.signal_owners(epoll).any(|owner| owner == p))
    }

    /// A thread other than `t` waits at the instance of a signal descriptor of which it has no signals.
    fn waits_in_vain(&self, t: Tid, watch: &Watch) -> bool {
        let waits = |u: Tid| {
            let thread = &self.threads[u];
            let op = &thread.pending;
            thread.state == ThreadState::PARKED
                && op.kind == Kind::FD_WAIT
                && self.channel_of(op.obj) == Some(watch.epoll)
        };
        self.live.as_slice().iter().any(|&u| u != t && waits(u) && !self.ready_now(u, watch))
    }

    /// `signal` has been sent to process `p`, or a thread of it: watches are told, though it may have been pending when they looked.
    pub(crate) fn signal_is_new(&mut self, p: Pid, signal: i32) {
        for watch in self.watches.as_mut_slice().iter_mut().filter(|w| w.owner == p) {
            watch.seen &= !bit(signal);
        }
    }

    pub(crate) fn epoll_wait_choices(&self, t: Tid, op: &Op) -> u32 {
        let Some(epoll) = self.channel_of(op.obj) else { return 1 };
        let early = self.early_timers(t, op);
        let orders = if early == 0 { 1 } else { 1 + self.beside_timers(t, epoll).count() as u32 };
        u32::from(self.epoll_goes_on(t, op, epoll)) + early * orders
    }

    /// Whatever timers may do.
    pub(crate) fn epoll_goes_on(&self, t: Tid, op: &Op, epoll: ChanId) -> bool {
        let late = self.may_time_out(op) && !self.timer_comes_first(t, op);
        op.tries() || late || self.cancelled(t, op) || self.epoll_ready(t, epoll) || self.timer_is_due(t, op)
    }

    /// The places of what is ready in the list of an instance and of which a timer that it watches may have come before: that was set, or
    /// read, before they came.
    fn beside_timers(&self, t: Tid, epoll: ChanId) -> impl Iterator<Item = u64> + '_ {
        let mine = move || self.watches.as_slice().iter().filter(move |w| w.epoll == epoll);
        let timer = |w: &Watch| self.channels.get(self.descs[w.desc].input).filter(|_| self.is_timer(w.desc));
        let set = mine().filter_map(timer).filter(|c| c.value > self.time_of(t) && !c.finished).map(|c| c.charge).max();
        mine().filter(move |w| w.place > set.unwrap_or(0) && self.ready_now(t, w)).map(|w| w.place)
    }

    /// Timers fire at `n` times, and have come before the last `after` of [`World::beside_timers`].
    fn fire_among(&mut self, t: Tid, op: &Op, epoll: ChanId, n: u32, after: u32) {
        let nests = |w: &Watch| w.epoll == epoll && self.descs[w.desc].kind == DescKind::EPOLL;
        let several = n > 1 || self.watches.as_slice().iter().any(nests);
        // Several timers have each its place, those of an instance within have come with what else it has.
        self.ticks_held |= several && self.beside_timers(t, epoll).next().is_some();
        let earlier = |place: u64, _| self.beside_timers(t, epoll).filter(|&p| p < place).max().unwrap_or(place);
        let (first, last) = ((0..after).fold(u64::MAX, earlier), self.last_place);
        self.fire_early(t, op, n);
        let mut moved = first.saturating_sub(1);
        while let Some(at) = self.next_in_list(epoll, moved).filter(|&at| self.watches[at].place <= last) {
            moved = self.watches[at].place;
            self.last_place += 1;
            self.watches[at].place = self.last_place;
        }
    }

    /// Gives the number of events in [`World::delivered`], at most `arg`. `value`: so many timers have fired meanwhile, or one more
    /// if it needs one, and each in each order with what has come beside.
    pub(crate) fn epoll_wait_perform(&mut self, t: Tid, op: &Op, value: u32) -> Applied {
        self.delivered.clear();
        let Some(epoll) = self.channel_of(op.obj) else { return Applied::Done(0) };
        let early = value + u32::from(!self.epoll_goes_on(t, op, epoll));
        let orders = if early == 0 { 1 } else { 1 + self.beside_timers(t, epoll).count() as u32 };
        let (early, after) = (early.div_ceil(orders), if early == 0 { 0 } else { (early - 1) % orders });
        self.compare_timers(t, op);
        self.fire_due(t, op);
        let ready = early > 0 || self.epoll_ready(t, epoll);
        if !ready && self.cancelled(t, op) && !op.tries() && !self.may_time_out(op) {
            return Applied::Done(EINTR);
        }
        if early > 0 {
            self.fire_among(t, op, epoll, early, after);
        }
        self.queue_signals(t, epoll);
        let limit = (op.arg.max(1) as usize).min(MAX_EVENTS);
        // What is put back at the end while it is reported is not reported twice.
        let last = self.last_place;
        let mut after = 0;
        while let Some(at) = self.next_in_list(epoll, after).filter(|&at| self.watches[at].place <= last) {
            if self.delivered.len as usize == limit {
                break;
            }
            after = self.watches[at].place;
            let events = self.look_at_watch(t, at);
            self.watches[at].place = 0;
            if events == 0 {
                continue;
            }
            if op.has(LACKS) {
                self.watches[at].place = after;
                return Applied::Done(EFAULT);
            }
            let data = self.watches[at].data;
            self.delivered.push(Delivered { events, pad: 0, data });
            if self.watches[at].events & flag::ONESHOT != 0 {
                self.watches[at].events &= flag::PRIVATE;
            } else if self.watches[at].events & flag::EDGE == 0 {
                self.last_place += 1;
                self.watches[at].place = self.last_place;
            }
        }
        Applied::Done(i64::from(self.delivered.len))
    }

    /// The watch of `desc` that was added to an instance by the number `fd`.
    fn watch(&self, epoll: ChanId, fd: i32, desc: DescId) -> Option<u32> {
        let same = |w: &Watch| w.epoll == epoll && w.fd == fd && w.desc == desc;
        self.watches.as_slice().iter().position(same).map(|at| at as u32)
    }

    /// epoll_ctl by `t` of descriptor `fd`, which names `desc`, on the instance with channel `epoll`. Gives 0 or minus
    /// an error number. `None`: no room.
    pub fn epoll_control(&mut self, t: Tid, epoll: ChanId, fd: i32, desc: DescId, control: Control) -> Option<i64> {
        let found = self.watch(epoll, fd, desc);
        Some(match (control, found) {
            (Control::Add(..), Some(_)) => EEXIST,
            (Control::Add(events, data), None) => {
                if self.descs[desc].kind == DescKind::EPOLL && self.would_loop(epoll, self.descs[desc].input) {
                    return Some(ELOOP);
                }
                let at = self.watch_new(self.threads[t].pid, epoll, fd, desc)?;
                self.watch_set(t, at, events, data);
                0
            }
            (_, None) => ENOENT,
            (Control::Change(..), Some(at)) if self.watches[at].events & flag::EXCLUSIVE != 0 => EINVAL,
            (Control::Change(events, data), Some(at)) => {
                self.watch_set(t, at, events, data);
                0
            }
            (Control::Remove, Some(at)) => {
                self.watch_drop(at);
                0
            }
        })
    }

    fn watch_new(&mut self, owner: Pid, epoll: ChanId, fd: i32, desc: DescId) -> Option<u32> {
        let fresh = Watch { epoll, desc, fd, owner, ..Watch::default() };
        let at = match self.free_watch {
            NONE => self.watches.push(fresh)?,
            free => {
                self.free_watch = self.watches[free].desc;
                self.watches[free] = fresh;
                free
            }
        };
        self.n_watches += 1;
        self.count_watch(desc, 1);
        Some(at)
    }

    /// The channels of a description know how often they are watched.
    fn count_watch(&mut self, desc: DescId, by: i32) {
        let crate::state::fd::Desc { input, output, .. } = self.descs[desc];
        for id in [input, output] {
            if id != NONE {
                let watched = &mut self.channels[id].watched;
                *watched = watched.saturating_add_signed(by);
            }
        }
    }

    fn watch_set(&mut self, t: Tid, at: u32, events: u32, data: u64) {
        self.watches[at].events = events | u32::from(poll::ALWAYS);
        self.watches[at].data = data;
        if self.look_at_watch(t, at) != 0 && self.watches[at].place == 0 {
            self.queue(at);
        }
        if self.descs[self.watches[at].desc].kind == DescKind::SIGNAL {
            self.watches[at].seen = self.awaited_signals(&self.watches[at]);
        }
    }

    fn watch_drop(&mut self, at: u32) {
        self.count_watch(self.watches[at].desc, -1);
        self.watches[at] = Watch { epoll: NONE, desc: self.free_watch, ..Watch::default() };
        self.free_watch = at;
        self.n_watches -= 1;
    }

    /// `desc` is gone: nobody watches it, and if it was an instance it watches nothing.
    pub(crate) fn forget_watches(&mut self, desc: DescId) {
        if self.n_watches == 0 {
            return;
        }
        let instance = if self.descs[desc].kind == DescKind::EPOLL { self.descs[desc].input } else { NONE };
        for at in 0..self.watches.len {
            let watch = &self.watches[at];
            if watch.epoll != NONE && (watch.desc == desc || watch.epoll == instance) {
                self.watch_drop(at);
            }
        }
    }

    /// True if instance `outer` must not watch `inner`: there would be a circle, or too many one inside the other.
    fn would_loop(&self, outer: ChanId, inner: ChanId) -> bool {
        match self.depth_below(inner, outer, 0) {
            None => true,
            Some(below) => below + 1 + self.height_above(outer, 0) > MAX_NESTS,
        }
    }

    /// Instances one inside the other below `epoll`; `None`: `searched` is among them, or there are too many.
    fn depth_below(&self, epoll: ChanId, searched: ChanId, depth: u32) -> Option<u32> {
        if epoll == searched || depth > MAX_NESTS {
            return None;
        }
        let inner = |w: &Watch| self.descs.get(w.desc).filter(|d| w.epoll == epoll && d.kind == DescKind::EPOLL);
        let mut most = 0;
        for d in self.watches.as_slice().iter().filter_map(inner) {
            most = most.max(1 + self.depth_below(d.input, searched, depth + 1)?);
        }
        Some(most)
    }

    /// Instances that watch each other above `epoll`.
    fn height_above(&self, epoll: ChanId, depth: u32) -> u32 {
        if depth > MAX_NESTS {
            return depth;
        }
        let outer = self.watches_of(epoll).map(|at| 1 + self.height_above(self.watches[at].epoll, depth + 1));
        outer.max().unwrap_or(0)
    }
}
