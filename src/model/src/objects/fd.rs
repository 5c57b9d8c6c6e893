//! File descriptors that are not files: the table of each process, open file descriptions, and who refers to them.
//!
//! A descriptor is a number of a process and names an open file description; dup, fork and SCM_RIGHTS make more names
//! for the same one. Regular files, terminals and other devices stay with the kernel: they are not in these tables. In
//! the kernel a placeholder stands at the number of each descriptor of the model, so that it gives out the same numbers
//! as it would.
//!
//! The operations on a description are operations on its channels (see `channel`), which are objects. Several
//! descriptions can be named at once (poll, the end of a process): [`Op::mask`](crate::Op) has a bit for each channel
//! that an operation concerns, chosen by the channel's name, and two operations without a common bit are independent.

use super::row::*;
use crate::base::SEVERAL;
use crate::state::{
    poll, Applied, ChanId, Desc, DescId, DescKind, Owner, Polled, World, FDS_PER_PAGE, FD_PAGES, MAX_POLLED, NONBLOCK,
};

kinds! {
    /// Close descriptor `arg`, whose description has channels `obj` and `obj2`; `deadline`: 1 + the number that the program knows, or 0.
    FD_CLOSE = 66, "close" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: |w, t, op, _| w.close_perform(t, op),
        records: Records { state: |w, t, op| match op.has(SEVERAL) {
            true => w.taken_out_of_reach(t, op),
            false => w.channel_states(t, op),
        }, ..UNNUMBERED }, cells: ON_CHANNELS, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::Closes, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown::passes(Call::Row, |op, _, words| {
            let and = if op.obj2 == NONE { "" } else { " and " };
            let number = if op.deadline > 0 { op.deadline as i64 - 1 } else { op.arg };
            say![words, "descriptor ", number, " of ", Thing::Object(op.obj), and, Thing::Object(op.obj2)];
        }),
    }
    /// Change the state of a description with channels `obj` and `obj2` (fcntl, shutdown, socket options).
    FD_CONTROL = 67, "fcntl" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: DONE,
        records: UNNUMBERED, cells: ON_CHANNELS, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::Controls, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(Call::Row, OBJECT),
    }
    /// Wait for events of the descriptions in `Thread::polled`.
    FD_POLL = 68, "poll" {
        operands: Operands::Objects, enabled: blocks(World::poll_choices, |q| match q.act.op.has(VARIANT) {
            true => q.as_found(),
            false => q.channels(),
        }), perform: |w, t, op, value| w.poll_perform(t, op, value),
        records: Records::number(|w, t, _| w.polled_state(t)), cells: ON_CHANNELS, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::Polls, signals: Signals { taken: Taken::WithMask, asks: true, ..Signals::FAILS }, polls: Polls::Events,
        alone: Alone::ExposesOwnProcessIfMasked, idle: Idle { peer: World::polls_strangers, ..Idle::WORKER }, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::Row, arguments: OBJECT, outcome: Outcome::Nothing, waits: Some(|world, t, _, words| {
            let thread = &world.threads[t];
            for asked in &thread.polled[..(thread.n_polled as usize).min(thread.polled.len())] {
                event_words(world, asked.desc, asked.events, words);
                words.next();
            }
        }), identity: BY_OBJECTS },
    }
    /// Close all descriptors: the end of a process.
    FD_CLOSE_ALL = 72, "close (all, at the end of the process)" {
        operands: Operands::Nothing, enabled: Enabled::Always, perform: |w, t, _, _| w.close_all_perform(t),
        records: Records::number(World::taken_out_of_reach), cells: ON_CHANNELS, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::ClosesAll, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(Call::Row, NO_ARGUMENTS),
    }
}

/// Says that events of a description must come; false if there is no such description.
pub fn event_words(world: &World, desc: DescId, events: u16, words: &mut dyn Words) -> bool {
    let Some(desc) = world.descs.get(desc) else { return false };
    let what = match events & (poll::IN | poll::OUT) {
        0 => "an event",
        poll::IN => "input",
        poll::OUT => "room",
        _ => "input or room",
    };
    say![words, what, " of "];
    match world.channel_obj(if desc.input == NONE { desc.output } else { desc.input }) {
        NONE => say![words, desc.kind.name()],
        object => say![words, Thing::Object(object)],
    }
    true
}

/// The states of the channels. Which number a descriptor has depends on what others had at the time; it is the same description.
const UNNUMBERED: Records =
    Records { renamed: |act, _| (act.op.arg, act.op.deadline) = (0, 0), ..Records::number(World::channel_states) };

impl World {
    /// The description that descriptor `fd` of process `p` names, if it is one of the model.
    #[inline]
    pub fn fd(&self, p: Pid, fd: i32) -> Option<DescId> {
        let page = *self.procs[p].fds.get(fd as u32 as usize / FDS_PER_PAGE)?;
        let desc = self.fd_pages.get(page)?[fd as u32 as usize % FDS_PER_PAGE];
        (desc != NONE).then_some(desc)
    }

    /// True if process `p` may have descriptors of the model.
    #[inline]
    pub fn has_fds(&self, p: Pid) -> bool {
        self.procs[p].n_fds > 0
    }

    /// Makes `fd` of process `p` a name of `desc`; what it named before has been closed. False: no room.
    pub fn fd_set(&mut self, p: Pid, fd: i32, desc: DescId) -> bool {
        let (at, place) = (fd as u32 as usize / FDS_PER_PAGE, fd as u32 as usize % FDS_PER_PAGE);
        if fd < 0 || at >= FD_PAGES {
            return false;
        }
        let mut page = self.procs[p].fds[at];
        if page == NONE {
            page = match self.free_fd_page {
                NONE => match self.fd_pages.push([NONE; FDS_PER_PAGE]) {
                    Some(page) => page,
                    None => return false,
                },
                free => {
                    self.free_fd_page = self.fd_pages[free][0];
                    self.fd_pages[free] = [NONE; FDS_PER_PAGE];
                    free
                }
            };
            self.procs[p].fds[at] = page;
        }
        if self.fd_pages[page][place] == NONE {
            self.procs[p].n_fds += 1;
        }
        self.fd_pages[page][place] = desc;
        self.descs[desc].refs += 1;
        true
    }

    /// Takes `fd` out of the table of process `p`; gives the description, which has not lost its reference.
    fn fd_take(&mut self, p: Pid, fd: i32) -> Option<DescId> {
        let desc = self.fd(p, fd)?;
        let page = self.procs[p].fds[fd as usize / FDS_PER_PAGE];
        self.fd_pages[page][fd as usize % FDS_PER_PAGE] = NONE;
        self.procs[p].n_fds -= 1;
        self.mqueue_left(p, desc);
        Some(desc)
    }

    /// Closes `fd` of process `p`. False: it is not of the model.
    pub fn fd_close(&mut self, p: Pid, fd: i32) -> bool {
        match self.fd_take(p, fd) {
            Some(desc) => {
                self.desc_drop(desc);
                true
            }
            None => false,
        }
    }

    /// The call that held what `fd` of process `p` stands for is over.
    pub fn fd_let_go(&mut self, p: Pid, fd: i32) {
        if let Some(desc) = self.fd_take(p, fd) {
            self.desc_let_go(desc);
        }
    }

    /// The call of thread `t` has these numbers beside the program's.
    pub fn hide_numbers(&mut self, t: Tid, hidden: [[i32; 2]; 2]) {
        self.threads[t].hidden = hidden;
    }

    /// Descriptors of process `p` from `first` on: (number, description).
    pub fn fds_from(&self, p: Pid, first: i32) -> impl Iterator<Item = (i32, DescId)> + '_ {
        let pages = self.procs[p].fds.iter().enumerate().filter(|(_, &page)| page != NONE);
        let all = pages.flat_map(|(at, &page)| {
            self.fd_pages[page].iter().enumerate().map(move |(i, &desc)| ((at * FDS_PER_PAGE + i) as i32, desc))
        });
        all.filter(move |&(fd, desc)| desc != NONE && fd >= first)
    }

    /// Closes all descriptors of process `p`.
    pub fn fd_close_all(&mut self, p: Pid) {
        for t in 0..self.threads.len {
            if self.threads[t].pid == p {
                self.desc_release(t);
                let rights = core::mem::replace(&mut self.threads[t].sending, NONE);
                self.rights_drop(rights);
                self.leave_handlers(t, 0);
            }
        }
        for at in 0..FD_PAGES {
            let page = core::mem::replace(&mut self.procs[p].fds[at], NONE);
            if page == NONE {
                continue;
            }
            for place in 0..FDS_PER_PAGE {
                let desc = core::mem::replace(&mut self.fd_pages[page][place], NONE);
                if desc != NONE {
                    self.mqueue_left(p, desc);
                    self.desc_drop(desc);
                }
            }
            self.fd_pages[page][0] = core::mem::replace(&mut self.free_fd_page, page);
        }
        self.procs[p].n_fds = 0;
    }

    /// The child of a fork gets names for what its parent has. False: no room.
    pub(crate) fn fd_fork(&mut self, parent: Pid, child: Pid) -> bool {
        for at in 0..FD_PAGES {
            let page = self.procs[parent].fds[at];
            if page == NONE {
                continue;
            }
            for place in 0..FDS_PER_PAGE {
                let desc = self.fd_pages[page][place];
                if desc != NONE {
                    self.descs[desc].passed_on = true;
                }
                if desc != NONE && !self.fd_set(child, (at * FDS_PER_PAGE + place) as i32, desc) {
                    return false;
                }
            }
        }
        // What calls of other threads hold is not passed on.
        for i in 0..self.live.len {
            let t = self.live[i];
            let hidden = if self.threads[t].pid == parent { self.threads[t].hidden } else { [[0; 2]; 2] };
            for [number, _] in hidden.into_iter().filter(|&[number, _]| number > 0) {
                self.fd_close(child, number - 1);
            }
        }
        true
    }

    /// A new description without names. Each channel gets an end. `None`: no room.
    pub fn desc_new(&mut self, kind: DescKind, flags: u32, input: ChanId, output: ChanId) -> Option<DescId> {
        let fresh =
            Desc { kind, flags, refs: 0, input, output, extra: NONE, owner_kind: Owner::PROCESS, ..Desc::default() };
        let desc = match self.free_desc {
            NONE => self.descs.push(fresh)?,
            free => {
                self.free_desc = self.descs[free].extra;
                let earlier = self.descs[free].earlier.wrapping_add(1);
                self.descs[free] = Desc { earlier, ..fresh };
                free
            }
        };
        if input != NONE {
            self.channels[input].readers += 1;
        }
        if output != NONE {
            self.channels[output].writers += 1;
        }
        Some(desc)
    }

    /// `desc` has one name less; after the last one it is gone.
    pub fn desc_drop(&mut self, desc: DescId) {
        self.descs[desc].refs = self.descs[desc].refs.saturating_sub(1);
        if self.descs[desc].refs > 0 {
            return;
        }
        self.forget_watches(desc);
        if let Some(socket) = self.socket_of(desc) {
            self.socket_close(socket);
        }
        let Desc { input, output, .. } = self.descs[desc];
        if input != NONE {
            self.channels[input].readers -= 1;
        }
        if output != NONE {
            self.channels[output].writers -= 1;
        }
        for (id, again) in [(input, false), (output, output == input)] {
            if id != NONE && !again {
                // Of two ends, the one that is left is told (fs/pipe.c, pipe_release).
                if (self.channels[id].readers == 0) != (self.channels[id].writers == 0) {
                    self.woke(id, 0);
                }
                self.channel_free(id);
            }
        }
        self.descs[desc] = Desc { extra: self.free_desc, ..Desc::default() };
        self.free_desc = desc;
    }

    /// Thread `t` begins an operation on `desc`, which stays until it is over, whoever closes it.
    pub fn desc_hold(&mut self, t: Tid, desc: DescId) {
        self.threads[t].holding = desc;
        self.descs[desc].refs += 1;
    }

    /// The operation of `t` is over, or `t` is.
    pub fn desc_release(&mut self, t: Tid) {
        let desc = core::mem::replace(&mut self.threads[t].holding, NONE);
        self.desc_let_go(desc);
    }

    /// An operation on `desc`, or [`NONE`], is over.
    pub(crate) fn desc_let_go(&mut self, desc: DescId) {
        if desc != NONE {
            if self.descs[desc].refs == 1 {
                self.reaches_far();
            }
            self.desc_drop(desc);
        }
    }

    /// One less refers to `desc`, or [`NONE`], at the end of an operation. `shared`: others close it beside that. Where this one is not the last
    /// it is in another order of the two, and what waits for the last one rests on both.
    pub fn desc_unhold(&mut self, desc: DescId, shared: bool) {
        if desc != NONE && shared {
            self.desc_ends_within(desc);
        }
        self.desc_let_go(desc);
    }

    /// An operation that is about something else may be the end of `desc`, which others close beside it.
    pub fn desc_ends_within(&mut self, desc: DescId) {
        if self.last_is_told(desc) {
            self.reaches_far();
        }
    }

    /// Somebody can tell when the last one that refers to `desc` is gone: at another end, or by what watches it.
    fn last_is_told(&self, desc: DescId) -> bool {
        let counts = matches!(self.descs[desc].kind, DescKind::EVENT | DescKind::TIMER | DescKind::SIGNAL);
        !counts || self.n_watches > 0
    }

    /// The bits of [`Op::mask`] for what concerns a description.
    pub fn desc_bits(&self, desc: DescId) -> u32 {
        let Some(desc) = self.descs.get(desc) else { return 0 };
        let socket = if desc.kind == DescKind::SOCKET { self.socket_bits(desc) } else { 0 };
        self.channel_bit(desc.input) | self.channel_bit(desc.output) | socket
    }

    /// An operation on both channels of `desc`.
    pub fn desc_op(&self, kind: Kind, desc: DescId) -> Op {
        let mut op = Op::new(kind);
        let Desc { input, output, .. } = self.descs[desc];
        op.obj = self.channel_obj(input);
        op.obj2 = self.channel_obj(output);
        if op.obj == NONE {
            core::mem::swap(&mut op.obj, &mut op.obj2);
        }
        op.mask = self.desc_bits(desc);
        op.arg = i64::from(desc);
        // What it writes to is settled by a connect, of another thread perhaps: the operation names what is settled, and
        // the rest is in its mask.
        if self.socket_of(desc).is_some_and(|s| self.sockets[s].may_connect()) {
            op = op.with(VARIANT);
            op.obj2 = NONE;
        }
        op
    }

    /// The POLL* bits that hold for a description.
    pub fn readiness(&self, desc: DescId) -> u16 {
        let Some(&desc) = self.descs.get(desc) else { return poll::NVAL };
        match desc.kind {
            DescKind::PIPE => self.pipe_readiness(&desc),
            DescKind::SOCKET => self.socket_readiness(&desc),
            DescKind::QUEUE => self.mqueue_readiness(desc.input),
            _ => 0,
        }
    }

    fn polled_ready(&self, t: Tid) -> bool {
        let thread = &self.threads[t];
        let ready = |p: &Polled| self.readiness_for(t, p.desc) & (p.events | poll::ALWAYS) != 0;
        thread.polled[..thread.n_polled as usize].iter().any(ready)
    }

    /// A bit for each of the descriptions that has an event.
    pub(crate) fn polled_state(&self, t: Tid) -> i64 {
        let thread = &self.threads[t];
        let ready = |p: &Polled| self.readiness_for(t, p.desc) & (p.events | poll::ALWAYS) != 0;
        let polled = thread.polled[..thread.n_polled as usize].iter().enumerate();
        polled.filter(|(_, p)| ready(p)).fold(0, |bits, (i, _)| bits | 1 << (i % 64))
    }

    /// What the pending poll of `t` asks about.
    pub(crate) fn polled(&self, t: Tid) -> &[Polled] {
        let thread = &self.threads[t];
        &thread.polled[..(thread.n_polled as usize).min(MAX_POLLED)]
    }

    pub(crate) fn poll_choices(&self, t: Tid, op: &Op) -> u32 {
        u32::from(self.poll_goes_on(t, op)) + self.early_timers(t, op)
    }

    /// Whatever timers may do.
    pub(crate) fn poll_goes_on(&self, t: Tid, op: &Op) -> bool {
        let late = self.may_time_out(op) && !self.timer_comes_first(t, op);
        op.tries() || late || self.cancelled(t, op) || self.polled_ready(t) || self.timer_is_due(t, op)
    }

    /// Gives how many of the descriptions have an event. `value`: so many timers have fired meanwhile, or one more if it needs one.
    pub(crate) fn poll_perform(&mut self, t: Tid, op: &Op, value: u32) -> Applied {
        let needs = u32::from(!self.poll_goes_on(t, op));
        self.compare_timers(t, op);
        self.fire_due(t, op);
        self.fire_early(t, op, value + needs);
        let mut count = 0;
        for i in 0..self.threads[t].n_polled as usize {
            let Polled { desc, events, .. } = self.threads[t].polled[i];
            let ready = self.look_at(t, desc) & (events | poll::ALWAYS);
            self.threads[t].polled[i].ready = ready;
            count += i64::from(ready != 0);
        }
        Applied::Done(count)
    }

    /// Closes a descriptor: `arg` is its number.
    pub(crate) fn close_perform(&mut self, t: Tid, op: &Op) -> Applied {
        let p = self.threads[t].pid;
        self.fd_close(p, op.arg as i32);
        Applied::Done(0)
    }

    pub(crate) fn close_all_perform(&mut self, t: Tid) -> Applied {
        self.fd_close_all(self.threads[t].pid);
        Applied::Done(0)
    }

    /// The processes that have a descriptor for reading from (`write` = false) or writing to a channel.
    pub fn holders(&self, channel: ChanId, write: bool) -> impl Iterator<Item = Pid> + '_ {
        let end = move |desc: DescId| {
            let desc = &self.descs[desc];
            if write {
                desc.output == channel
            } else {
                desc.input == channel
            }
        };
        (0..self.procs.len).filter(move |&p| self.has_fds(p) && self.fds_from(p, 0).any(|(_, desc)| end(desc)))
    }
}

/// What F_SETFL can change: O_APPEND, O_NONBLOCK, O_NOATIME.
const SETTABLE: u32 = 0o2000 | NONBLOCK | 0o1_000_000;

impl World {
    /// The file status flags of a description become `flags`, as far as F_SETFL changes them.
    pub fn with_settable(&self, desc: DescId, flags: u32) -> u32 {
        self.descs[desc].flags & !SETTABLE | flags & SETTABLE
    }

    /// Who is told of input on a description.
    pub fn owner_of(&self, desc: DescId) -> Owner {
        let d = &self.descs[desc];
        Owner { kind: d.owner_kind, id: d.owner, signal: d.signal }
    }

    /// Sets that.
    pub fn desc_set_owner(&mut self, desc: DescId, owner: Owner) {
        let d = &mut self.descs[desc];
        (d.owner_kind, d.owner, d.signal) = (owner.kind, owner.id, owner.signal);
    }

    /// Sets the file status flags of a description.
    pub fn desc_set_flags(&mut self, desc: DescId, flags: u32) {
        self.descs[desc].flags = flags;
    }

    /// Sets what `Desc::extra` says of a description that is no socket.
    pub fn desc_set_extra(&mut self, desc: DescId, extra: u32) {
        self.descs[desc].extra = extra;
    }

    /// One more refers to a description.
    pub fn desc_refer(&mut self, desc: DescId) {
        self.descs[desc].refs += 1;
    }

    /// One less, of several.
    pub fn desc_unrefer(&mut self, desc: DescId) {
        self.descs[desc].refs -= 1;
    }

    /// A description that stands for a file while a message carries it; its number is [`Desc::extra`]. `None`: no room.
    pub fn desc_of_file(&mut self) -> Option<DescId> {
        let desc = self.desc_new(DescKind::FILE, 0, NONE, NONE)?;
        self.mails += 1;
        self.descs[desc].extra = self.mails;
        Some(desc)
    }

    /// True if messages under way carry descriptors of files.
    pub fn files_under_way(&self) -> bool {
        self.mails > 0 && self.descs.as_slice().iter().any(|d| d.kind == DescKind::FILE)
    }

    /// True if nobody but thread `t` can notice what it does to `desc`: no other thread or process has a name of it, or has had one, for
    /// whether that is closed by now is a question of who came first.
    pub fn desc_is_private(&self, t: Tid, desc: DescId) -> bool {
        !self.procs[self.threads[t].pid].threaded && !self.descs[desc].passed_on
    }

    /// True if nobody but thread `t` can notice that it closes one of its names of `desc`.
    pub fn close_is_private(&self, t: Tid, desc: DescId) -> bool {
        let p = self.threads[t].pid;
        // What somebody has asked to be told about a message queue is lost with any descriptor of it that he closes.
        if self.procs[p].threaded || self.mqueue_owner(p, desc) {
            return false;
        }
        // Others are left, whatever other processes do. That the parent of a fork has one still says nothing: it may close it first.
        let own = || self.fds_from(p, 0).filter(|&(_, d)| d == desc).count();
        self.socket_is_alone(desc) || own() > 1
    }

    /// To close all descriptors of process `p`. `None`: it has none.
    pub fn close_all_op(&self, p: Pid) -> Option<Op> {
        let mut op = Op::new(Kind::FD_CLOSE_ALL);
        for (_, desc) in self.fds_from(p, 0) {
            op.mask |= self.desc_bits(desc);
        }
        self.has_fds(p).then_some(op)
    }
}
