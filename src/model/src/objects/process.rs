//! Processes: fork, exit, status, wait.

use super::row::*;
use super::signal::SIGKILL;
use crate::base::{errno, Kind, Op, Pid, Tid, NONE, TRY, VARIANT};
use crate::state::world::FORK_COPIES;
use crate::state::{
    Act, Effects, ObjKind, ProcState, Process, ProcessState, WaitState, CLONES, EXPIRED, FD_PAGES, HANDED_ON,
    UNDECIDED, WCONTINUED, WEXITED_NOT, WNOHANG, WNOTHREAD, WNOWAIT, WUNTRACED,
};

/// Parts of the end of a process, see [`World::exit_part`].
const PART_ROBUST: i64 = 1;
const PART_UNDO: i64 = 2;
const PART_RECORDS: i64 = 3;
const PART_LOCKS: i64 = 4;

kinds! {
    /// Wait for a child process; `arg` is the pid argument of waitpid.
    WAIT = 5, "wait" {
        operands: Operands::Nothing, enabled: blocks(World::wait_choices, |q| q.wait()),
        perform: |w, t, op, value| w.wait_perform(t, op, value),
        records: Records { renamed: |act, to| {
            let state = WaitState::of(act.state);
            let target = if state.target == 0 { 0 } else { (to.process)(state.target - 1) + 1 };
            act.state = WaitState { target, ..state }.pack();
        }, ..Records::number(|w, t, op| w.wait_state(t, op).pack()) },
        cells: |act, _, cells| {
            // Who waits for any child, of the same process, gets another one then.
            let sees = act.op.has(TRY) || sleeps_on(&act.op) || act.fate & EXPIRED != 0;
            let child = WaitState::of(act.state).target;
            cells.touch(Cell::Children(act.pid), How::Awaits { child, sees });
            cells.touch(Cell::Ids, How::Changes);
        },
        follows: |a, b| WaitState::of(a.state).target == b.pid + 1 && b.parent == a.pid && b.op.kind != Kind::CANCEL, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals::RESTARTS, polls: Polls::Errors,
        alone: Alone::ExposesChildren, idle: Idle { child: true, ..Idle::BUSY }, tells: |act, _| act.op.looks() || WaitState::of(act.state).target == 0, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::One("waitpid"), arguments: |op, _, words| say![words, op.arg, if op.has(TRY) { ", WNOHANG" } else { "" }],
            outcome: Outcome::Nothing, waits: Some(children), identity: |world, _, op, add| match op.arg {
            vpid if vpid > 0 => add(world.process_by_vpid(vpid as i32).map_or(0, |p| process_identity(world, p))),
            any => add(any as u64),
        } },
    }
    /// A wait that has found nobody goes on, see `sleeps_on`: it looks again once it is woken by news of a child of the group `-arg`.
    WAIT_SLEEP = 100, "wait_sleep" {
        operands: Operands::Nothing, enabled: blocks(World::wait_sleep_choices, |_| Answer::Unknown),
        perform: |w, t, op, _| w.wait_sleep_perform(t, op),
        records: Records::NOTHING, cells: WIDE, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None,
        signals: Signals { taken: Taken::Sleeps(Leave::Queue), fails: Fails::UnlessRestarted, ..Signals::NEVER }, polls: Polls::Errors,
        alone: Alone::ExposesChildren, idle: Idle { child: true, ..Idle::BUSY }, tells: YES, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::One("waitpid"), arguments: |op, _, words| say![words, op.arg],
            outcome: Outcome::Nothing, waits: Some(children), identity: |_, _, op, add| add(op.arg as u64) },
    }
    /// End of a process that others can notice: `arg` is the wait status. `VARIANT`: what it gives back before that, by
    /// [`World::exit_part`].
    EXIT = 6, "exit_group" {
        operands: Operands::Nothing, enabled: Enabled::Always, perform: |w, t, op, _| w.exit_perform(t, op),
        records: Records::NOTHING, cells: WIDE, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::Ends, signals: Signals::NEVER, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: |_, siblings| siblings, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown::passes(Call::By(|op| if op.has(VARIANT) { "exit_group, gives back" } else { "exit_group" }), |op, _, words| {
            match (op.has(VARIANT), op.arg & 0x7f) {
                (true, PART_ROBUST) => say![words, "robust mutexes"],
                (true, PART_UNDO) => say![words, "semaphores (SEM_UNDO)"],
                (true, PART_LOCKS) => say![words, "locks of open files"],
                (true, _) => say![words, "record locks"],
                (false, 0) => say![words, op.arg >> 8 & 0xff],
                (false, signal) => say![words, "signal ", signal],
            }
        }),
    }
    /// Replace the program of a process that has had other threads, or that holds robust mutexes.
    EXEC = 10, "exec" {
        operands: Operands::Nothing, enabled: Enabled::Always, perform: DONE,
        records: Records::NOTHING, cells: WIDE, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::Ends, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: YES, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(Call::Row, NO_ARGUMENTS),
    }
    /// fork in a process that has had other threads, whose locks the child gets as they are.
    FORK = 11, "fork" {
        operands: Operands::Nothing, enabled: Enabled::Ways(may_fork), perform: DONE,
        records: Records::NOTHING, cells: WIDE, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::ExposesCopied, idle: Idle::BUSY, tells: YES, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(Call::Row, NO_ARGUMENTS),
    }
}

/// With a fatal signal pending fork makes nobody (kernel/fork.c, copy_process): the process goes to its end, so that who kills a group
/// reaches all of it. libc blocks signals meanwhile: others than SIGKILL are fatal then where another thread takes them.
fn may_fork(world: &World, t: Tid, _: &Op) -> u32 {
    let process = &world.procs[world.threads[t].pid];
    let dying = i32::from(process.dying);
    u32::from(dying == 0 || dying != SIGKILL && process.live_threads <= 1)
}

/// A wait whose children may become others without news: those of a group, which they may leave or join, or of one thread alone. That
/// there is none is found only when it begins or is woken (kernel/exit.c, do_wait), so that is two steps.
fn sleeps_on(op: &Op) -> bool {
    !op.has(WNOHANG) && (op.arg == 0 || op.arg < -1 && op.arg != CLONES || op.has(WNOTHREAD))
}

/// Says which children would do.
fn children(world: &World, t: Tid, op: &Op, words: &mut dyn Words) {
    let (p, selector) = (world.threads[t].pid, op.arg);
    let awaited =
        |c: &Process| c.parent == p && c.state == ProcState::LIVE && (selector <= 0 || selector == i64::from(c.vpid));
    let all = || world.procs.as_slice().iter().zip(0..).filter(|(c, _)| awaited(c)).map(|(_, c)| Thing::Process(c));
    let one = all().take(2).count() == 1;
    say![words, "the end of ", if one { "process " } else { "one of the processes " }];
    list(all(), ", ", 8, words);
}

impl Question<'_> {
    fn wait(&self) -> Answer {
        let p = self.act;
        if sleeps_on(&p.op) {
            return Answer::Yes;
        }
        // Of those that are over none may be left to wait for.
        if p.op.has(WEXITED_NOT) {
            return Answer::Unknown;
        }
        let WaitState { target, over, alive, lost } = WaitState::of(p.state);
        let (mut over, mut alive) = (i64::from(over), i64::from(alive));
        let child = |a: &Act| a.parent == p.pid && (target == 0 || target == a.pid + 1);
        for (i, d) in self.dropped.iter().enumerate() {
            let again = self.dropped[..i].iter().any(|x| x.act.pid == d.act.pid && x.did.has(Effects::ENDS));
            if child(d.act) && d.did.has(Effects::ENDS) {
                // Without the end of one of its threads a process is not over.
                if d.over && lost {
                    return Answer::Unknown;
                }
                if d.over && !again {
                    over -= 1;
                    alive += 1;
                }
            } else if let Some((before, after)) = d.found {
                let [before, after] = [before, after].map(WaitState::of);
                over -= i64::from(after.over) - i64::from(before.over);
                alive -= i64::from(after.alive) - i64::from(before.alive);
            } else if d.act.op.kind == Kind::WAIT && d.act.pid == p.pid {
                let theirs = WaitState::of(d.act.state);
                // Which child a wait for any has got is not recorded.
                if target != 0 && theirs.target != target && theirs.over > 0 {
                    return Answer::Unknown;
                }
                over += i64::from(theirs.over > 0);
            } else if d.act.op.kind == Kind::FORK && d.act.pid == p.pid {
                if target != 0 {
                    return Answer::Unknown;
                }
                alive -= 1;
            }
        }
        Answer::from(over > 0 || over + alive == 0)
    }
}

/// What threads order themselves by is memory of theirs, of which a fork makes a copy.
fn is_in_memory(kind: ObjKind) -> bool {
    matches!(
        kind,
        ObjKind::MUTEX
            | ObjKind::COND
            | ObjKind::RWLOCK
            | ObjKind::SPIN
            | ObjKind::BARRIER
            | ObjKind::ONCE
            | ObjKind::SEM
            | ObjKind::FUTEX
    )
}

impl World {
    /// Process `p` was just forked by `t`. If another thread stood at a change of what a fork copies before it copies the memory (kernel/fork.c,
    /// copy_process), a number of a descriptor or state that is set by one of the calls `of_state`, then natively that may come between the
    /// two. The child finds out when it uses what threads share: under a lock, or told by a semaphore, of which its memory has a copy.
    pub fn forked_beside(&mut self, p: Pid, t: Tid, of_state: impl Fn(i64) -> bool) {
        let changes = |op: &Op| match op.kind {
            Kind::FD_RESERVE | Kind::FD_CHANGE => true,
            Kind::PATH_CHANGE => of_state(op.deadline as i64),
            // All else that a thread stands at changes neither: see `calls::table` and `with_cells` in the shim.
            _ => false,
        };
        let beside = |u: Tid| u != t && self.threads[u].pid == self.threads[t].pid;
        if self.live.as_slice().iter().any(|&u| beside(u) && changes(&self.threads[u].pending)) {
            self.procs[p].copied_beside = true;
            self.any_copied_beside = true;
        }
    }

    /// `t` has come to `op`: see [`World::forked_beside`].
    pub(crate) fn note_copied(&mut self, t: Tid, op: &Op) {
        let p = self.threads[t].pid;
        let copied = |obj: ObjId| {
            self.objects.get(obj).is_some_and(|object| object.key.space == p && is_in_memory(object.key.kind))
        };
        if self.procs[p].copied_beside && (copied(op.obj) || copied(op.obj2)) {
            self.never_comes(FORK_COPIES);
        }
    }

    /// The process that a forking or spawning thread creates, with its first thread. `None`: a table is full.
    pub fn create_process(&mut self, creator: Tid) -> Option<(Pid, Tid)> {
        let parent = if creator == NONE { NONE } else { self.threads[creator].pid };
        let (pgid, sid) = if parent == NONE { (0, 0) } else { (self.procs[parent].pgid, self.procs[parent].sid) };
        let p = self.procs.push(Process {
            parent,
            forker: creator,
            place: self.place_behind(creator),
            handed_on: false,
            creator: parent,
            state: ProcState::LIVE,
            no_zombies: false,
            child_signal_for: NONE,
            chosen: 0,
            ids_set: parent != NONE && self.procs[parent].ids_set,
            copied_beside: parent != NONE && self.procs[parent].copied_beside,
            signalled: false,
            lost_a_child: false,
            vfork_child: false,
            threaded: false,
            record_locks: false,
            has_pidfd: false,
            description_locks: false,
            execs: 0,
            status: 0,
            fate: UNDECIDED,
            vpid: 0,
            pgid,
            sid,
            live_threads: 0,
            main_thread: NONE,
            objects: NONE,
            sigpending: 0,
            handled: 0,
            ignored: 0,
            ignored_sent: 0,
            hushed_signals: 0,
            hushed: NONE,
            failing_signals: 0,
            failing: NONE,
            restarts: 0,
            by_clock: 0,
            noticed: 0,
            told: 0,
            asked: 0,
            unborn: false,
            stopped: 0,
            stop_news: 0,
            no_stop_news: false,
            subreaper: false,
            struck: false,
            dying: 0,
            stopper: NONE,
            starved: 0,
            n_fds: 0,
            fds: [NONE; FD_PAGES],
            waited: 0,
            waiter: NONE,
            ender: NONE,
            own: ProcessState::new(),
        })?;
        let t = self.create_thread(p, creator)?;
        let id = self.threads[t].vtid;
        self.procs[p].main_thread = t;
        self.procs[p].vpid = id;
        if parent == NONE {
            self.procs[p].pgid = id;
            self.procs[p].sid = id;
        } else {
            let drawn = self.procs[parent].own.random;
            self.procs[p].own.random = drawn ^ self.threads[t].uid.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            self.threads[t].sigmask = self.threads[creator].sigmask;
            self.threads[t].fiber.tsc_faults = self.threads[creator].fiber.tsc_faults;
        }
        Some((p, t))
    }

    /// A fork by `forker`: a process with copies of the private objects. `None`: a table is full.
    pub fn fork(&mut self, forker: Tid) -> Option<(Pid, Tid)> {
        let parent = self.threads[forker].pid;
        let (p, t) = self.create_process(forker)?;
        self.procs[p].no_zombies = self.procs[parent].no_zombies;
        self.procs[p].description_locks = self.procs[parent].description_locks;
        self.procs[p].handled = self.procs[parent].handled;
        self.procs[p].ignored = self.procs[parent].ignored;
        self.procs[p].restarts = self.procs[parent].restarts;
        self.procs[p].no_stop_news = self.procs[parent].no_stop_news;
        self.inherit_streams(forker, t);
        (self.fd_fork(parent, p) && self.copy_private_objects(parent, p, forker, t)).then_some((p, t))
    }

    /// Next virtual process or thread id.
    pub(crate) fn next_id(&mut self) -> i32 {
        self.ids += 1;
        self.ids
    }

    /// True if the end of process `p` is more than its last transition shows: other threads end with it, or
    /// semaphore undo, robust mutexes or locks of files change what others may do. Then it is a visible operation.
    /// `called`: by a call that ends other threads too, not as the end of the last thread.
    pub fn exit_is_visible(&mut self, p: Pid, called: bool) -> bool {
        let visible = self.procs[p].live_threads > 1 || self.end_changes_more(p);
        if called || visible {
            self.did = self.did.with(Effects::EXITS);
        }
        visible
    }

    /// The end of process `p` changes what others may do, even if it ends with its last thread.
    pub(crate) fn end_changes_more(&self, p: Pid) -> bool {
        self.procs[p].record_locks
            || self.procs[p].has_pidfd
            || self.procs[p].description_locks
            // They are closed visibly, by whichever thread is the last.
            || self.has_fds(p)
            // Also where the adjustments happen to add up to nothing now: others may have set the semaphore.
            || self.undos.as_slice().iter().any(|u| u.pid == p)
            || self.live.as_slice().iter().any(|&t| self.threads[t].pid == p && self.holds_robust(t))
    }

    /// Process `p` begins to end with wait status `status`, unless that is decided already: by the first call of exit_group, or by a fatal
    /// signal when it was sent (kernel/exit.c, do_group_exit; kernel/signal.c, complete_signal). Gives the status that stands.
    pub fn decide_end(&mut self, p: Pid, status: i32) -> i32 {
        if self.procs[p].fate == UNDECIDED {
            self.procs[p].fate = status;
        }
        self.procs[p].fate
    }

    /// Thread `t` ends process `p` by a call, and with it all its threads. The first that does.
    pub fn ends_all(&mut self, p: Pid, t: Tid) {
        if self.procs[p].ender == NONE {
            self.procs[p].ender = t;
        }
    }

    /// Ends process `p` with wait status `status`, if no other one is decided.
    pub fn process_exit(&mut self, p: Pid, status: i32) {
        if self.procs[p].state != ProcState::LIVE {
            return;
        }
        let status = self.decide_end(p, status);
        while let Some(&t) = self.live.as_slice().iter().find(|&&t| self.threads[t].pid == p) {
            self.thread_exit(t);
        }
        self.undo_all(p);
        self.drop_process_locks(p);
        self.fd_close_all(p);
        self.forget_signals(|q| q.pid == p);
        self.procs[p].sigpending = 0;
        self.drop_timers(p, |_| true);
        self.procs[p].stopped = 0;
        self.procs[p].status = status;
        let parent = self.procs[p].parent;
        let orphan = parent == NONE || self.procs[parent].state != ProcState::LIVE || self.procs[parent].no_zombies;
        if self.procs.get(parent).is_some_and(|q| q.no_zombies) {
            self.procs[parent].lost_a_child = true;
        }
        self.procs[p].state = if orphan { ProcState::REAPED } else { ProcState::ZOMBIE };
        self.wake_waiters(p);
        if self.procs[p].has_pidfd {
            self.process_over(p);
        }
        for child in 0..self.procs.len {
            if self.procs[child].parent == p && child != p {
                self.procs[child].parent = NONE;
                if self.procs[child].state == ProcState::ZOMBIE {
                    self.procs[child].state = ProcState::REAPED;
                }
            }
        }
        self.orphan_groups(p, parent);
    }

    /// Ends all threads of `t`'s process but `t` and forgets its private objects: what exec does to it.
    pub fn exec(&mut self, t: Tid) {
        let p = self.threads[t].pid;
        while let Some(&other) = self.live.as_slice().iter().find(|&&x| x != t && self.threads[x].pid == p) {
            self.thread_exit(other);
        }
        self.orphan_mutexes(t);
        self.leave_calls(t, 0);
        self.forget_private_objects(p);
        self.procs[p].main_thread = t;
        self.procs[p].threaded = false;
        self.procs[p].handled = 0;
        self.procs[p].restarts = 0;
        self.drop_timers(p, |timer| timer.id >= 0);
        self.threads[t].fiber.altstack = [0; 3];
        self.procs[p].execs = self.procs[p].execs.wrapping_add(1);
        self.procs[p].copied_beside = false;
        (self.procs[p].ignored_sent, self.procs[p].hushed_signals, self.procs[p].failing_signals) = (0, 0, 0);
        self.threads[t].hushed_at = 0;
        self.threads[t].vtid = self.procs[p].vpid;
        self.threads[t].cancel = 0;
    }

    /// The process whose virtual id is `vpid`, if it is not reaped.
    pub fn process_by_vpid(&self, vpid: i32) -> Option<Pid> {
        let procs = self.procs.as_slice();
        procs.iter().position(|p| p.vpid == vpid && p.state != ProcState::REAPED && !p.unborn).map(|p| p as Pid)
    }

    /// The process that an id means where the id of any thread will do.
    pub fn process_by_id(&self, id: i32) -> Option<Pid> {
        let by_thread =
            || self.live.as_slice().iter().find(|&&t| self.threads[t].vtid == id).map(|&t| self.threads[t].pid);
        self.process_by_vpid(id).or_else(by_thread).filter(|&p| !self.procs[p].unborn)
    }

    /// The thread that has or had an id: none is given again. Whether it is there still is a question of who came first, which what asks
    /// after it has been chosen by this.
    pub fn thread_named(&self, id: i32) -> Option<Tid> {
        // The last: a thread that has called exec has the id of the process, which was that of another one before.
        self.threads.as_slice().iter().rposition(|t| t.vtid == id).map(|t| t as Tid)
    }

    /// The process that an id means or meant, where that of any of its threads will do.
    pub fn process_named(&self, id: i32) -> Option<Pid> {
        self.thread_named(id).map(|t| self.threads[t].pid)
    }

    /// PR_SET_CHILD_SUBREAPER.
    pub fn set_subreaper(&mut self, p: Pid, on: bool) {
        self.procs[p].subreaper = on;
    }

    /// The end of process `p` would do something that is not modelled: give its children to a subreaper, or send them the signal
    /// that they asked for. Its name.
    pub fn end_does_more(&self, p: Pid) -> Option<&'static str> {
        let mut children = self.procs.as_slice().iter().filter(|c| c.parent == p);
        if children.any(|c| c.state == ProcState::LIVE && c.own.death_signal != 0) {
            return Some("a process that ends before a child that asked for a signal then (PR_SET_PDEATHSIG)");
        }
        let mut above = self.procs[p].parent;
        let mut reaper = false;
        while above != NONE {
            reaper |= self.procs[above].subreaper && self.procs[above].state == ProcState::LIVE;
            above = self.procs[above].parent;
        }
        let left = self
            .procs
            .as_slice()
            .iter()
            .any(|c| c.parent == p && matches!(c.state, ProcState::LIVE | ProcState::ZOMBIE));
        (reaper && left).then_some("a process that leaves children to a subreaper (PR_SET_CHILD_SUBREAPER)")
    }

    /// Child `child` is one of those that `op` of `t` waits for (kernel/exit.c, eligible_child, is_effectively_child).
    fn wait_matches(&self, t: Tid, child: Pid, op: &Op) -> bool {
        let (c, p) = (&self.procs[child], self.threads[t].pid);
        c.parent == p
            && (c.forker == t || !op.has(WNOTHREAD))
            && match op.arg {
                -1 => true,
                CLONES => false,
                0 => c.pgid == self.procs[p].pgid,
                s if s > 0 => c.vpid as i64 == s,
                s => c.pgid as i64 == -s,
            }
    }

    /// What `op` is told about child `c` that has stopped or continued, as a wait status.
    fn stop_status(&self, c: Pid, op: &Op) -> Option<i32> {
        let child = &self.procs[c];
        match child.stop_news {
            _ if child.state != ProcState::LIVE => None,
            crate::state::signal::STOPPED if op.has(WUNTRACED) => Some(i32::from(child.stopped) << 8 | 0x7f),
            crate::state::signal::CONTINUED if op.has(WCONTINUED) => Some(0xffff),
            _ => None,
        }
    }

    /// (a child that matches and is over, or has stopped or continued if that is asked for, a child that matches at all). Of several it is
    /// the first of the thread's own children, then of those of the threads made after it, and so on in a circle (do_wait). One that is
    /// over is nobody's where only stops are asked for.
    fn wait_candidates(&self, t: Tid, op: &Op) -> (Option<Pid>, bool) {
        let (mut any, mut first) = (false, None);
        for child in (0..self.procs.len).filter(|&c| self.wait_matches(t, c, op)) {
            let c = &self.procs[child];
            let goes = match c.state {
                ProcState::ZOMBIE => !op.has(WEXITED_NOT),
                ProcState::LIVE => self.stop_status(child, op).is_some(),
                _ => continue,
            };
            any |= goes || c.state == ProcState::LIVE;
            let place = (c.forker.wrapping_sub(t), c.place, child);
            if goes && first.is_none_or(|before| place < before) {
                first = Some(place);
            }
        }
        (first.map(|(_, _, child)| child), any)
    }

    /// What a wait is conditional on. The process keeps its number after it has been waited for.
    pub(crate) fn wait_state(&self, t: Tid, op: &Op) -> WaitState {
        let p = self.threads[t].pid;
        let procs = self.procs.as_slice();
        let matches = |c: Pid| self.wait_matches(t, c, op);
        let target = if op.arg > 0 { procs.iter().position(|c| i64::from(c.vpid) == op.arg) } else { None };
        let matching = |state: ProcState| {
            (0..self.procs.len).filter(|&c| self.procs[c].state == state && matches(c)).count() as u32
        };
        let news = |&c: &Pid| matches(c) && self.stop_status(c, op).is_some();
        let told = (0..self.procs.len).filter(news).count() as u32;
        WaitState {
            target: target.map_or(0, |c| c as u32 + 1),
            over: if op.has(WEXITED_NOT) { told } else { matching(ProcState::ZOMBIE) + told },
            alive: matching(ProcState::LIVE) - told,
            lost: self.procs[p].lost_a_child,
        }
    }

    pub(crate) fn wait_choices(&self, t: Tid, op: &Op) -> u32 {
        let (over, any) = self.wait_candidates(t, op);
        let goes = over.is_some() || !any || op.has(WNOHANG) || sleeps_on(op) || self.cancelled(t, op);
        u32::from(goes) + u32::from(op.has(WNOHANG) && over.is_some_and(|child| self.procs[child].struck))
    }

    /// A wait of `t` has found `child`. Where others would do as well, which is the first depends on the threads they belong to, and on whether
    /// these have ended: an end of a thread that nobody watches is no step of its own.
    fn note_handed_on(&mut self, t: Tid, op: &Op, child: Pid) {
        let first = &self.procs[child];
        let (of, moved) = (first.forker, first.handed_on);
        let differs = |other: Pid| {
            let c = &self.procs[other];
            let goes = match c.state {
                ProcState::ZOMBIE => !op.has(WEXITED_NOT),
                ProcState::LIVE => self.stop_status(other, op).is_some(),
                _ => false,
            };
            other != child && goes && (moved || c.handed_on || c.forker != of) && self.wait_matches(t, other, op)
        };
        if self.procs[self.threads[t].pid].threaded && (0..self.procs.len).any(differs) {
            self.never_comes(HANDED_ON);
        }
    }

    /// Whoever is told by SIGCHLD that children have ended, stopped or continued finds that they have.
    pub(crate) fn children_are_over(&mut self, parent: Pid) {
        self.procs.as_mut_slice().iter_mut().filter(|c| c.parent == parent).for_each(|c| c.struck = false);
    }

    /// `value` 1: the child that another has killed (stopped, continued) has not got that far yet. One look finds it so, the next one does not.
    pub(crate) fn wait_perform(&mut self, t: Tid, op: &Op, value: u32) -> Applied {
        let (over, any) = self.wait_candidates(t, op);
        if let Some(child) = over {
            self.note_handed_on(t, op, child);
            self.procs[child].struck = false;
            if value > 0 {
                return Applied::Done(errno::EAGAIN);
            }
        }
        Applied::Done(match over {
            Some(child) => {
                let stop = self.stop_status(child, op);
                let status = stop.unwrap_or(self.procs[child].status);
                self.threads[t].out = [self.procs[child].vpid as i64, status as i64, 0];
                if stop.is_some() {
                    let news = &mut self.procs[child].stop_news;
                    *news = if op.has(WNOWAIT) { *news } else { 0 };
                } else if !op.has(WNOWAIT) {
                    self.procs[child].state = ProcState::REAPED;
                    (self.procs[child].waited, self.procs[child].waiter) = (self.threads.len, t);
                }
                0
            }
            None if !any => errno::ECHILD,
            None if op.has(WNOHANG) => errno::EAGAIN,
            None if sleeps_on(op) && !self.cancelled(t, op) => {
                // Which group that is was settled when the wait began.
                let group = if op.arg == 0 { -i64::from(self.procs[self.threads[t].pid].pgid) } else { op.arg };
                self.park(t, Op { kind: Kind::WAIT_SLEEP, arg: group, ..*op });
                return Applied::Parked;
            }
            None => errno::EINTR,
        })
    }

    /// It looks again when it is woken, by a signal too.
    fn wait_sleep_choices(&self, t: Tid, op: &Op) -> u32 {
        let signal = || self.deliverable(t, self.threads[t].sigmask) != 0;
        let finds = || {
            let (over, any) = self.wait_candidates(t, op);
            over.is_some() || !any
        };
        u32::from(self.threads[t].woken || self.cancelled(t, op) || signal() && finds())
    }

    fn wait_sleep_perform(&mut self, t: Tid, op: &Op) -> Applied {
        self.wait_perform(t, &Op { kind: Kind::WAIT, ..*op }, 0)
    }

    /// The parent of `p` has news of it, which wakes those of its threads that wait for it (kernel/exit.c, child_wait_callback).
    pub(crate) fn wake_waiters(&mut self, p: Pid) {
        let Process { parent, forker, vpid, pgid, .. } = self.procs[p];
        let concerned = |t: Tid, op: &Op| {
            let about = op.arg == -1 || op.arg == i64::from(vpid) || op.arg == -i64::from(pgid);
            about && (t == forker || !op.has(WNOTHREAD))
        };
        for at in 0..self.live.len {
            let t = self.live[at];
            let Thread { pid, pending: op, .. } = self.threads[t];
            self.threads[t].woken |= pid == parent && op.kind == Kind::WAIT_SLEEP && concerned(t, &op);
        }
    }

    /// The place behind the children of thread `t`.
    fn place_behind(&self, t: Tid) -> u32 {
        self.procs.as_slice().iter().filter(|c| c.forker == t).map(|c| c.place + 1).max().unwrap_or(0)
    }

    /// Thread `t` of a process that goes on is over: its children become those of the first thread that is left, after its own
    /// (kernel/exit.c, forget_original_parent).
    pub(crate) fn hand_children_on(&mut self, t: Tid) {
        let p = self.threads[t].pid;
        let Some(heir) = (0..self.threads.len).find(|&u| self.threads[u].pid == p && self.threads[u].alive()) else {
            return;
        };
        let left = |c: &Process| c.parent == p && c.forker == t && c.state != ProcState::REAPED;
        let behind = self.place_behind(heir);
        // As far apart as they were, so that their order stays.
        for c in self.procs.as_mut_slice().iter_mut().filter(|c| left(c)) {
            (c.forker, c.place, c.handed_on) = (heir, behind + c.place, true);
        }
    }

    pub(crate) fn exit_perform(&mut self, t: Tid, op: &Op) -> Applied {
        let p = self.threads[t].pid;
        match (op.has(VARIANT), op.arg) {
            (false, status) => self.process_exit(p, status as i32),
            (true, PART_ROBUST) => self.orphan_mutexes(t),
            (true, PART_UNDO) => self.undo_all(p),
            // The shim closes what is locked.
            (true, PART_LOCKS) => {}
            (true, _) => self.drop_process_locks(p),
        }
        Applied::Done(0)
    }

    /// What the process of `t`, its last thread, gives back next at its end, before its descriptors, in the order of the kernel
    /// (kernel/exit.c, do_exit: exit_mm, exit_sem, exit_files): robust mutexes, semaphores, record locks. `None`: nothing that
    /// others can tell from the end itself; `watched`: they can tell when that comes. Where it is the only thing it goes with the end.
    pub fn exit_part(&self, t: Tid, watched: bool) -> Option<Op> {
        let p = self.threads[t].pid;
        let parts = [
            (PART_ROBUST, self.holds_robust(t)),
            // Also where the adjustments happen to add up to nothing now: others may have set the semaphore.
            (PART_UNDO, self.undos.as_slice().iter().any(|u| u.pid == p)),
            (PART_RECORDS, self.has_record_locks(p, NONE)),
        ];
        let mut left = parts.into_iter().filter(|part| part.1);
        let first = left.next()?.0;
        let more = self.has_fds(p) || left.next().is_some();
        (more || watched).then(|| Op::new(Kind::EXIT).with(VARIANT).arg(first))
    }

    /// What process `p`, of which one thread is left, does when it closes files that it, or one that it was forked from, has locked (flock,
    /// F_OFD_SETLK). `None`: there are none.
    pub fn locks_part(&self, p: Pid) -> Option<Op> {
        self.procs[p].description_locks.then(|| Op::new(Kind::EXIT).with(VARIANT).arg(PART_LOCKS))
    }
}

impl World {
    /// The fork of process `p` by thread `creator` has failed in the kernel.
    pub fn fork_failed(&mut self, p: Pid, creator: Tid) {
        self.process_exit(p, 0);
        self.procs[p].parent = NONE;
        self.current = creator;
    }

    /// Process `p` is one that nobody waits for, in a group of its own.
    pub fn become_root(&mut self, p: Pid) {
        let process = &mut self.procs[p];
        process.parent = NONE;
        process.pgid = process.vpid;
    }

    /// setpgid; 0 is its own number.
    pub fn set_group(&mut self, p: Pid, pgid: i32) {
        self.procs[p].pgid = pgid;
    }

    /// What process `own` is told that moves the process with id `id` to group `pgid`: that process, or a negative error number
    /// (kernel/sys.c, setpgid).
    pub fn may_set_group(&self, own: Pid, id: i32, pgid: i32) -> Result<Pid, i64> {
        if pgid < 0 {
            return Err(errno::EINVAL);
        }
        let p = self.process_by_vpid(id).ok_or(errno::ESRCH)?;
        let (process, session) = (&self.procs[p], self.procs[own].sid);
        if process.parent == own && p != own {
            if process.sid != session {
                return Err(errno::EPERM);
            }
            if process.execs > 0 {
                return Err(errno::EACCES);
            }
        } else if p != own {
            return Err(errno::ESRCH);
        }
        let mut group = self.procs.as_slice().iter().filter(|q| q.state != ProcState::REAPED && q.pgid == pgid);
        if process.sid == process.vpid || pgid != id && !group.any(|q| q.sid == session) {
            return Err(errno::EPERM);
        }
        Ok(p)
    }

    /// setsid. Gives the number of the session, or minus an error number.
    pub fn new_session(&mut self, p: Pid) -> i64 {
        let own = self.procs[p].vpid;
        if self.procs.as_slice().iter().any(|q| q.state != ProcState::REAPED && q.pgid == own) {
            return errno::EPERM;
        }
        let process = &mut self.procs[p];
        (process.pgid, process.sid) = (process.vpid, process.vpid);
        process.vpid.into()
    }

    /// The end of `p` has given locks of files back, which was not expected of it, and so was no operation of its own.
    pub fn gave_locks_back(&mut self, p: Pid) {
        if !self.procs[p].description_locks {
            self.did = self.did.with(Effects::SIGNALS);
        }
    }

    /// What the shim keeps of process `p`.
    #[inline]
    pub fn process_state(&mut self, p: Pid) -> &mut ProcessState {
        &mut self.procs[p].own
    }
}
