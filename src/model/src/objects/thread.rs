//! Threads: created, parked, running, exited, joined, detached.

use super::answer::SIGCANCEL;
use super::row::*;
use crate::base::{Address, Uid, CANCEL_POINT};
use crate::state::{
    bit, Advance, Awaited, Credentials, End, FiberState, Handling, Misuse, Polled, ProcState, Process, SemBuf, SigInfo,
    ThreadState, CANCELLED_WITHIN, CANCELS_LATE, CANCEL_ANYWHERE, CANCEL_DISABLED, CANCEL_REQUESTED, DEATH_SIGNAL,
    EXPIRED, LETS_GO, MAX_AWAITED, MAX_HANDLERS, MAX_POLLED, MAX_SEMBUF, YIELD_WINDOW,
};

kinds! {
    /// Wait for the end of thread `obj` (an index of threads).
    JOIN = 4, "join" {
        operands: Operands::Thread, enabled: blocks(World::join_choices, |q| q.join()),
        perform: |w, t, op, _| w.join_perform(t, op),
        records: Records::number(|w, t, op| i64::from(w.join_ready(t, op))), cells: |act, _, cells| {
            // One that does not block also sees that the end has not come yet.
            cells.touch(Cell::Thread(act.op.obj), How::Joins { sees: act.op.has(TRY) || act.fate & EXPIRED != 0 });
        }, follows: |a, b| a.op.obj == b.tid && b.op.kind != Kind::JOIN && b.op.kind != Kind::CANCEL, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::ExposesThreadIfItGivesUp, idle: Idle::WORKER, tells: |act, _| act.op.looks() || act.fate & LETS_GO != 0, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::Three("pthread_join", "pthread_tryjoin_np", "pthread_timedjoin_np"), arguments: THREAD,
            outcome: Outcome::Nothing, waits: Some(|_, _, op, words| say![words, "the end of thread ", Thing::Thread(op.obj)]),
            identity: |world, _, op, add| add(thread_identity(world, op.obj)) },
    }
    /// End of a thread that leaves robust mutexes behind.
    THREAD_EXIT = 7, "thread_exit" {
        operands: Operands::Nothing, enabled: Enabled::Always, perform: |w, t, _, _| {
            w.orphan_mutexes(t);
            Applied::Done(0)
        },
        records: Records::NOTHING, cells: WIDE, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals::NEVER, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(Call::One("pthread_exit"), NO_ARGUMENTS),
    }
    /// End of a thread, or with it of its process, where somebody can tell when it comes otherwise than by waiting for it (see
    /// [`Arena::is_watched`](crate::arena::Arena::is_watched)). What it does shows in the effects of the transition.
    END = 12, "end" {
        operands: Operands::Nothing, enabled: Enabled::Always, perform: DONE,
        records: Records::NOTHING, cells: |_, _, _| {}, follows: NOBODY, blocks: GIVES,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(Call::Words("ends"), NO_ARGUMENTS),
    }
    /// Call number `arg`, which is no operation by itself, where somebody can tell when it comes.
    PLACE = 13, "call" {
        operands: Operands::Nothing, enabled: Enabled::Always, perform: DONE,
        records: Records::NOTHING, cells: |act, _, cells| {
            // What a signal does rests on masks and actions.
            if act.op.arg != FORK_CALL {
                cells.touch(Cell::Process(act.pid), How::Writes);
                // So does whether a child that ends is left to be waited for, and whether it is told by a signal.
                cells.touch(Cell::Children(act.pid), How::Awaits { child: 0, sees: false });
            }
        }, follows: NOBODY, blocks: GIVES,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown::passes(Call::By(|op| crate::base::calls::name(op.arg).unwrap_or("?")), NO_ARGUMENTS),
    }
    /// Look whether process `obj`, the parent, is still there.
    GETPPID = 14, "getppid" {
        operands: Operands::Process, enabled: Enabled::Always, perform: DONE,
        records: Records::NOTHING, cells: |act, _, cells| cells.touch(Cell::Left(act.op.obj), How::Looks), follows: NOBODY, blocks: GIVES,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::ExposesProcess, idle: Idle::BUSY, tells: YES, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(Call::Row, NO_ARGUMENTS),
    }
    /// The end of a call, where a signal may come before what its thread does next; see `objects::answer`.
    RETURN = 15, "return" {
        operands: Operands::Nothing, enabled: Enabled::Always, perform: DONE,
        records: Records::NOTHING, cells: |_, _, _| {}, follows: NOBODY, blocks: GIVES,
        role: Role::None, channels: Channels::None, signals: Signals::RETURNS, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(Call::Row, NO_ARGUMENTS),
    }
    /// Cancellation request for thread `obj`.
    CANCEL = 8, "cancel" {
        operands: Operands::Thread, enabled: Enabled::Always, perform: |w, _, op, _| w.cancel_perform(op),
        records: Records::NOTHING, cells: WIDE, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::ExposesThread, idle: Idle::BUSY, tells: YES, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(Call::One("pthread_cancel"), THREAD),
    }
}

/// Number of the call fork.
const FORK_CALL: i64 = 57;

impl Question<'_> {
    fn join(&self) -> Answer {
        let target = self.act.op.obj;
        Answer::from(!self.dropped.iter().any(|d| d.act.tid == target) && self.act.state != 0)
    }
}

impl World {
    /// Creates a thread in process `pid`; `creator` is [`NONE`] for the first thread of the world.
    /// `None`: the table is full.
    pub fn create_thread(&mut self, pid: Pid, creator: Tid) -> Option<Tid> {
        let uid = if creator == NONE {
            Uid::MAIN
        } else {
            self.threads[creator].children += 1;
            self.threads[creator].creates = true;
            self.threads[creator].uid.child(self.threads[creator].children)
        };
        // Later than all that the creator has used, counted or not; see `sched::sharing`.
        self.ops += 1;
        if creator != NONE {
            self.advances(creator, Advance::BEGUN, -1);
        }
        let t = self.threads.push(Thread {
            uid,
            pid,
            creator,
            children: 0,
            state: ThreadState::STARTING,
            detached: false,
            joined: false,
            cancel: 0,
            pending: Op::default(),
            woken: false,
            compare: false,
            spent: false,
            polls: 0,
            looks: 0,
            waits: 0,
            time: self.threads.get(creator).map_or(0, |c| c.time),
            waited: self.threads.get(creator).map_or(0, |c| c.waited),
            ticks: 0,
            due: 0,
            in_once: 0,
            born_expired: false,
            left_woken: false,
            once: NONE,
            moved: self.moves,
            begun: self.moves,
            last: Kind::FORK,
            creates: false,
            answered: 0,
            transitions: 0,
            yields: [0; YIELD_WINDOW],
            exposed: 0,
            loads: false,
            long_run: false,
            long_runs: 0,
            atomic_held: 0,
            streams: 0,
            stream: NONE,
            heir: NONE,
            joined_at: 0,
            born: self.ops,
            queued_on: NONE,
            queue_next: NONE,
            out: [0; 3],
            sigmask: 0,
            within: 0,
            masked: false,
            hushed_at: 0,
            moved_late: false,
            stop_hit: false,
            stops_late: false,
            sigpending: 0,
            taken: SigInfo::default(),
            handlers: [Handling::default(); MAX_HANDLERS],
            n_handlers: 0,
            held: false,
            held_woken: false,
            vtid: 0,
            priority: 0,
            staged: NONE,
            n_sembuf: 0,
            sem_at: 0,
            made: 0,
            n_polled: 0,
            n_awaited: 0,
            awaited: [Awaited::default(); MAX_AWAITED],
            awaits: Default::default(),
            polled: [Polled::default(); MAX_POLLED],
            holding: NONE,
            hidden: [[0; 2]; 2],
            address: Address::NONE,
            sending: NONE,
            cred: Credentials::default(),
            says_cred: false,
            sembuf: [SemBuf::default(); MAX_SEMBUF],
            fiber: FiberState::default(),
        })?;
        self.threads[t].vtid = self.next_id();
        self.live.push(t);
        self.procs[pid].threaded |= creator != NONE && self.threads[creator].pid == pid;
        self.procs[pid].live_threads += 1;
        if creator == NONE {
            self.threads[t].state = ThreadState::RUNNING;
        } else {
            self.concurrent = true;
        }
        Some(t)
    }

    /// The thread of process `pid` whose pthread_t is `fs`, the latest if it was used before.
    pub fn thread_by_fs(&self, pid: Pid, fs: u64) -> Option<Tid> {
        let threads = self.threads.as_slice();
        (0..threads.len()).rev().find(|&i| threads[i].pid == pid && threads[i].fiber.fs == fs).map(|i| i as Tid)
    }

    /// Ends thread `t`: robust mutexes it holds become orphans. Call only when it is not queued anywhere.
    pub fn thread_exit(&mut self, t: Tid) {
        let pid = self.threads[t].pid;
        self.leaves_at_end(t);
        self.leave_queue(t);
        if t == self.current {
            let nearly = if self.end_changes_more(pid) { Effects::NEARLY_EXITS } else { Effects::NONE };
            let leaves = if self.procs[pid].live_threads == 2 { Effects::LEAVES_ONE } else { Effects::NONE };
            self.did = self.did.with(Effects::ENDS).with(nearly).with(leaves);
        }
        self.advances(t, Advance::ENDED, -1);
        self.orphan_mutexes(t);
        self.threads[t].state = ThreadState::EXITED;
        self.threads[t].pending = Op::default();
        self.leave_handlers(t, 0);
        self.threads[t].sigpending = 0;
        self.forget_signals(|q| q.tid == t);
        self.procs[pid].live_threads = self.procs[pid].live_threads.saturating_sub(1);
        if let Some(at) = self.live.as_slice().iter().position(|&x| x == t) {
            let live = self.live.as_mut_slice();
            live.copy_within(at + 1.., at);
            self.live.len -= 1;
        }
        let asks =
            |c: &Process| c.forker == t && c.parent == pid && c.state == ProcState::LIVE && c.own.death_signal != 0;
        if self.procs.as_slice().iter().any(asks) {
            self.never_comes(DEATH_SIGNAL);
        }
        self.hand_children_on(t);
    }

    /// No other thread of the process of `t` is there, or may have been there a moment ago: all have been waited for.
    pub fn is_alone(&self, t: Tid) -> bool {
        let pid = self.threads[t].pid;
        let gone = |u: &Thread| u.pid != pid || !u.alive() && u.joined;
        let threads = self.threads.as_slice().iter().enumerate();
        !self.procs[pid].threaded || threads.clone().all(|(u, thread)| u as Tid == t || gone(thread))
    }

    /// True if a join returns at once, with success or not.
    pub(crate) fn join_ready(&self, t: Tid, op: &Op) -> bool {
        let gone =
            |waits: bool| self.threads.get(op.obj).is_none_or(|o| !o.alive() || waits && (o.detached || o.joined));
        if op.has(TRY) {
            return gone(false);
        }
        self.join_deadlocks(t, op) || gone(true)
    }

    pub(crate) fn join_choices(&self, t: Tid, op: &Op) -> u32 {
        u32::from(self.join_ready(t, op) || op.has(TRY) || self.may_time_out(op) || self.cancelled(t, op))
    }

    /// A thread that joins itself gets EDEADLK; two that join each other wait for ever (glibc 2.36, measured).
    fn join_deadlocks(&self, t: Tid, op: &Op) -> bool {
        op.obj == t
    }

    pub(crate) fn join_perform(&mut self, t: Tid, op: &Op) -> Applied {
        if !self.threads.contains(op.obj) {
            return Applied::Done(errno::ESRCH);
        }
        let target = self.threads[op.obj];
        if target.joined {
            // Not allowed at all: glibc 2.36 does not see that somebody else joins, and uses what that one has freed: who was early waits
            // for ever, who is late is told ESRCH, or crashes.
            self.finish(End::MISUSE, t, NONE, Misuse::JOIN_TWICE.0);
            return Applied::Ended;
        }
        // pthread_tryjoin_np looks at nothing else first (nptl/pthread_tryjoin.c).
        Applied::Done(if op.has(TRY) && target.alive() {
            errno::EBUSY
        } else if target.detached {
            errno::EINVAL
        } else if self.join_deadlocks(t, op) {
            errno::EDEADLK
        } else if !target.alive() {
            self.threads[op.obj].joined = true;
            self.threads[op.obj].heir = t;
            self.threads[op.obj].joined_at = self.ops;
            0
        } else if self.cancelled(t, op) {
            errno::EINTR
        } else {
            errno::ETIMEDOUT
        })
    }

    /// True if `t` is asked to end and its pending operation is a point at which it does.
    pub(crate) fn cancelled(&self, t: Tid, op: &Op) -> bool {
        op.has(CANCEL_POINT) && self.threads[t].cancel & (CANCEL_REQUESTED | CANCEL_DISABLED) == CANCEL_REQUESTED
    }

    /// The pending operation of `t`, which need not wait, is a point at which a request to end it is heeded: the request has come
    /// before the call, or strikes in a wait of libc's own that has just been let go. What the kernel has performed is done all the same, but a call
    /// of it that has met a request does not return. A wait of a condition variable is left by its second half alone, see `objects::cond`.
    pub(crate) fn cancelled_though_ready(&self, t: Tid) -> bool {
        let op = &self.threads[t].pending;
        self.cancelled(t, op)
            && !self.is_within_send(t)
            && !matches!(op.kind, Kind::COND_WAIT | Kind::COND_WAKE)
            && (op.kind != Kind::JOIN || self.joins_the_dead(op))
            && self.choices_of(t, &Op { flags: op.flags & !CANCEL_POINT, ..*op }) > 0
    }

    /// `op` joins a thread that has ended. That comes some time after the last of what it does, so there may have been a wait for it.
    fn joins_the_dead(&self, op: &Op) -> bool {
        self.threads.get(op.obj).is_some_and(|o| !o.alive() && !o.detached && !o.joined)
    }

    /// A request to end `t` is heeded while signals are due that have handlers. The kernel makes the frames of those that come first by their
    /// numbers, and on top of them that of the request, which is not left again: these handlers never run.
    pub(crate) fn lose_handlers(&mut self, t: Tid) {
        let first = bit(SIGCANCEL) - 1;
        loop {
            let lost = self.due(t) & first & self.procs[self.threads[t].pid].handled;
            if !self.take(t, lost) {
                break;
            }
        }
    }

    /// The request is heeded.
    pub(crate) fn cancel_ready(&mut self, t: Tid) -> Applied {
        self.leaves_for_good(t);
        self.lose_handlers(t);
        let staged = core::mem::replace(&mut self.threads[t].staged, NONE);
        self.free_chunks(staged);
        self.threads[t].state = ThreadState::RUNNING;
        self.threads[t].long_run = false;
        Applied::Done(errno::EINTR)
    }

    pub(crate) fn cancel_perform(&mut self, op: &Op) -> Applied {
        if let Some(target) = self.threads.get(op.obj) {
            // Its last call may still be under way, and is left where it is (glibc before 2.41 has asynchronous requests on all the while).
            let heeds = target.alive() && target.cancel & CANCEL_DISABLED == 0;
            let (late, anywhere) = (target.moved_late, target.cancel & CANCEL_ANYWHERE != 0);
            if heeds && late {
                self.never_comes(CANCELS_LATE);
            }
            if heeds && anywhere {
                self.never_comes(CANCELLED_WITHIN);
            }
            self.threads[op.obj].cancel |= CANCEL_REQUESTED;
        }
        Applied::Done(0)
    }
}

impl World {
    /// The new thread `t` has the mask of its creator.
    pub fn inherit_mask(&mut self, t: Tid) {
        self.threads[t].sigmask = self.threads[self.threads[t].creator].sigmask;
    }

    /// A thread waits for the end of `t`.
    pub fn is_awaited(&self, t: Tid) -> bool {
        let joins =
            |waits: &Thread| waits.pending.kind == Kind::JOIN && waits.pending.obj == t && !waits.pending.has(TRY);
        self.threads.as_slice().iter().any(|waits| waits.state == ThreadState::PARKED && joins(waits))
    }

    /// Nobody will join `t`.
    pub fn detach(&mut self, t: Tid) {
        self.threads[t].detached = true;
    }

    /// Requests to end `t` are heeded or not.
    pub fn allow_cancel(&mut self, t: Tid, allowed: bool) {
        let thread = &mut self.threads[t];
        thread.cancel = if allowed { thread.cancel & !CANCEL_DISABLED } else { thread.cancel | CANCEL_DISABLED };
    }

    /// Requests to end `t` strike it anywhere, or where it heeds them.
    pub fn cancel_anywhere(&mut self, t: Tid, anywhere: bool) {
        let thread = &mut self.threads[t];
        thread.cancel = if anywhere { thread.cancel | CANCEL_ANYWHERE } else { thread.cancel & !CANCEL_ANYWHERE };
    }

    /// A use of a file by `t` was in vain, or not: one in a row of failed polls, if `tries`.
    pub fn note_use(&mut self, t: Tid, tries: bool, vain: bool) {
        let thread = &mut self.threads[t];
        thread.polls = if vain && tries { thread.polls.saturating_add(1) } else { 0 };
    }

    /// What is published next by `t` carries these numbers, see [`Thread::out`].
    #[inline]
    pub fn set_out(&mut self, t: Tid, out: [i64; 3]) {
        self.threads[t].out = out;
    }

    /// The word of the futex that `t` is about to operate on is as it expects it.
    pub fn set_compare(&mut self, t: Tid, equal: bool) {
        self.threads[t].compare = equal;
    }

    /// The operations of the semop that `t` publishes next.
    pub fn set_semops(&mut self, t: Tid, ops: &[SemBuf]) {
        self.threads[t].n_sembuf = ops.len() as u32;
        self.threads[t].sembuf[..ops.len()].copy_from_slice(ops);
    }

    /// What the poll that `t` publishes next asks about.
    pub fn set_polled(&mut self, t: Tid, polled: &[Polled]) {
        self.threads[t].n_polled = polled.len() as u32;
        self.threads[t].polled[..polled.len()].copy_from_slice(polled);
    }

    /// One more of them.
    pub fn add_polled(&mut self, t: Tid, polled: Polled) {
        let thread = &mut self.threads[t];
        thread.polled[thread.n_polled as usize] = polled;
        thread.n_polled += 1;
    }

    /// Whom the operation on a socket that `t` publishes next names, and who it says it is.
    pub fn set_address(&mut self, t: Tid, address: Address) {
        self.threads[t].address = address;
    }

    /// See [`World::set_address`]. `says`: the message has them.
    pub fn set_credentials(&mut self, t: Tid, cred: Credentials, says: bool) {
        (self.threads[t].cred, self.threads[t].says_cred) = (cred, says);
    }

    /// The descriptions that go along with what `t` sends next: a list of `World::rights`. Gives those of before.
    pub fn send_along(&mut self, t: Tid, rights: u32) -> u32 {
        core::mem::replace(&mut self.threads[t].sending, rights)
    }

    /// The message that `t` is about to send is this one, of [`World::stage`]. Gives the one of before.
    pub fn exchange_staged(&mut self, t: Tid, staged: u32) -> u32 {
        core::mem::replace(&mut self.threads[t].staged, staged)
    }

    /// What the shim keeps of thread `t`.
    #[inline]
    pub fn fiber_state(&mut self, t: Tid) -> &mut FiberState {
        &mut self.threads[t].fiber
    }
}

#[cfg(test)]
mod tests {
    use super::Uid;
    use std::string::ToString;

    #[test]
    fn uid_round_trips() {
        let a = Uid::MAIN.child(1).child(4095).child(7);
        assert_eq!(a.to_string(), "0.1.4095.7");
        assert_eq!(Uid::parse("0.1.4095.7"), Some(a));
        let wide = Uid::MAIN.child(5000);
        assert!(wide.to_string().starts_with('h'));
        assert_eq!(Uid::parse(&wide.to_string()), Some(wide));
        assert_eq!(Uid::parse("0"), Some(Uid::MAIN));
        for bad in ["", "1", "0.", "0.0", "0.4096", "0.x", "hxyz"] {
            assert_eq!(Uid::parse(bad), None, "{bad}");
        }
    }
}
