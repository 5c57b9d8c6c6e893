//! Processes: fork, exit, status, wait.

use crate::carrier::ProcessState;
use crate::depend::{Effects, WaitState};
use crate::fd::FD_PAGES;
use crate::object::NONE;
use crate::op::{self, Op};
use crate::world::{Applied, World};
use crate::{errno, Pid, Tid};

/// Where a process is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct ProcState(pub u8);

#[allow(missing_docs)]
impl ProcState {
    pub const FREE: ProcState = ProcState(0);
    pub const LIVE: ProcState = ProcState(1);
    /// Over, its status not collected.
    pub const ZOMBIE: ProcState = ProcState(2);
    pub const REAPED: ProcState = ProcState(3);
}

/// One process. `own` is the shim's, the rest the model's.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Process {
    /// Parent, or [`NONE`] when it has gone (the kernel's init would be the parent).
    pub parent: Pid,
    /// The process that created it, gone or not.
    pub creator: Pid,
    /// Where it is in its life.
    pub state: ProcState,
    /// SIGCHLD is ignored: its children leave no status.
    pub no_zombies: bool,
    /// A child created by vfork: its parent waits until it execs or ends.
    pub vfork_child: bool,
    /// It has had a second thread: fork and exec are visible from then on, whatever has become of the others, so that
    /// it does not depend on when those ended.
    pub threaded: bool,
    /// It has had record locks: its end may give some back.
    pub record_locks: bool,
    /// It, or one that it was forked from before that, has locked open file descriptions: its end may close the last
    /// descriptor of one.
    pub description_locks: bool,
    /// Programs it has become by exec.
    pub execs: u8,
    /// Wait status once it is over.
    pub status: i32,
    /// The process id that the program sees.
    pub vpid: i32,
    /// Process group, as the program sees it.
    pub pgid: i32,
    /// Session, as the program sees it.
    pub sid: i32,
    /// Threads that are not over.
    pub live_threads: u32,
    /// Its first thread.
    pub main_thread: Tid,
    /// First object in its private memory.
    pub objects: u32,
    /// Signals pending for the process.
    pub sigpending: u64,
    /// Signals that it handles; written by the process itself.
    pub handled: u64,
    /// Signals that it ignores; written by the process itself.
    pub ignored: u64,
    /// Signals whose handlers were installed with SA_RESTART; written by the process itself.
    pub restarts: u64,
    /// Pending signals that were sent by a timer.
    pub by_clock: u64,
    /// Signals that it has noticed, by handlers or by waiting for them. One that it sends itself then is its way to say what ended
    /// it.
    pub noticed: u64,
    /// The signal that stopped it, 0: it is not stopped.
    pub stopped: u8,
    /// What its parent has not been told: [`crate::signal::STOPPED`], [`crate::signal::CONTINUED`] or 0.
    pub stop_news: u8,
    /// SA_NOCLDSTOP: it is not told when its children stop and continue.
    pub no_stop_news: bool,
    pad2: u8,
    /// The thread that stopped it or made it continue.
    pub stopper: Tid,
    /// States in a row in which none of its threads was enabled (livelock).
    pub starved: u32,
    /// Descriptors of the model that it has.
    pub n_fds: u32,
    /// Where they are, in [`World::fd_pages`].
    pub fds: [u32; FD_PAGES],
    /// Threads that had been created when it was waited for; 0: it was not.
    pub waited: u32,
    /// The thread that waited for it, or [`NONE`].
    pub waiter: Tid,
    /// What the shim keeps of it.
    pub own: ProcessState,
}

/// WNOHANG of wait options.
pub const WNOHANG: u8 = op::TRY;
/// Leave the child waitable (WNOWAIT).
pub const WNOWAIT: u8 = op::VARIANT;
/// Children that have stopped, too (WUNTRACED, WSTOPPED).
pub const WUNTRACED: u8 = 32;
/// Children that have continued, too (WCONTINUED).
pub const WCONTINUED: u8 = 64;
/// Not those that are over (waitid without WEXITED).
pub const WEXITED_NOT: u8 = 128;

impl World {
    /// The process that a forking or spawning thread creates, with its first thread. `None`: a table is full.
    pub fn create_process(&mut self, creator: Tid) -> Option<(Pid, Tid)> {
        let parent = if creator == NONE { NONE } else { self.threads[creator].pid };
        let (pgid, sid) = if parent == NONE { (0, 0) } else { (self.procs[parent].pgid, self.procs[parent].sid) };
        let p = self.procs.push(Process {
            parent,
            creator: parent,
            state: ProcState::LIVE,
            no_zombies: false,
            vfork_child: false,
            threaded: false,
            record_locks: false,
            description_locks: false,
            execs: 0,
            status: 0,
            vpid: 0,
            pgid,
            sid,
            live_threads: 0,
            main_thread: NONE,
            objects: NONE,
            sigpending: 0,
            handled: 0,
            ignored: 0,
            restarts: 0,
            by_clock: 0,
            noticed: 0,
            stopped: 0,
            stop_news: 0,
            no_stop_news: false,
            pad2: 0,
            stopper: NONE,
            starved: 0,
            n_fds: 0,
            fds: [NONE; FD_PAGES],
            waited: 0,
            waiter: NONE,
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
            || self.procs[p].description_locks
            // They are closed visibly, by whichever thread is the last.
            || self.has_fds(p)
            // Also where the adjustments happen to add up to nothing now: others may have set the semaphore.
            || self.undos.as_slice().iter().any(|u| u.pid == p)
            || self.live.as_slice().iter().any(|&t| self.threads[t].pid == p && self.holds_robust(t))
    }

    /// Ends process `p` with wait status `status`.
    pub fn process_exit(&mut self, p: Pid, status: i32) {
        if self.procs[p].state != ProcState::LIVE {
            return;
        }
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
        self.procs[p].state = if orphan { ProcState::REAPED } else { ProcState::ZOMBIE };
        for child in 0..self.procs.len {
            if self.procs[child].parent == p && child != p {
                self.procs[child].parent = NONE;
                if self.procs[child].state == ProcState::ZOMBIE {
                    self.procs[child].state = ProcState::REAPED;
                }
            }
        }
    }

    /// Ends all threads of `t`'s process but `t` and forgets its private objects: what exec does to it.
    pub fn exec(&mut self, t: Tid) {
        let p = self.threads[t].pid;
        while let Some(&other) = self.live.as_slice().iter().find(|&&x| x != t && self.threads[x].pid == p) {
            self.thread_exit(other);
        }
        self.orphan_mutexes(t);
        self.forget_private_objects(p);
        self.procs[p].main_thread = t;
        self.procs[p].threaded = false;
        self.procs[p].handled = 0;
        self.procs[p].restarts = 0;
        self.drop_timers(p, |timer| timer.id >= 0);
        self.threads[t].n_handlers = 0;
        self.threads[t].fiber.altstack = [0; 3];
        self.threads[t].held = false;
        self.procs[p].execs = self.procs[p].execs.wrapping_add(1);
        self.threads[t].vtid = self.procs[p].vpid;
        self.threads[t].cancel = 0;
    }

    /// The process whose virtual id is `vpid`, if it is not reaped.
    pub fn process_by_vpid(&self, vpid: i32) -> Option<Pid> {
        let procs = self.procs.as_slice();
        procs.iter().position(|p| p.vpid == vpid && p.state != ProcState::REAPED).map(|p| p as Pid)
    }

    fn wait_matches(&self, p: Pid, child: Pid, selector: i64) -> bool {
        let c = &self.procs[child];
        c.parent == p
            && match selector {
                -1 => true,
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
            crate::signal::STOPPED if op.has(WUNTRACED) => Some(i32::from(child.stopped) << 8 | 0x7f),
            crate::signal::CONTINUED if op.has(WCONTINUED) => Some(0xffff),
            _ => None,
        }
    }

    /// (a child that matches and is over, or has stopped or continued if that is asked for, a child that matches at all)
    fn wait_candidates(&self, t: Tid, op: &Op) -> (Option<Pid>, bool) {
        let p = self.threads[t].pid;
        let mut any = false;
        for child in 0..self.procs.len {
            if !self.wait_matches(p, child, op.arg) {
                continue;
            }
            match self.procs[child].state {
                ProcState::ZOMBIE if !op.has(WEXITED_NOT) => return (Some(child), true),
                ProcState::LIVE if self.stop_status(child, op).is_some() => return (Some(child), true),
                ProcState::LIVE | ProcState::ZOMBIE => any = true,
                _ => {}
            }
        }
        (None, any)
    }

    /// What a wait is conditional on. The process keeps its number after it has been waited for.
    pub(crate) fn wait_state(&self, t: Tid, op: &Op) -> WaitState {
        let p = self.threads[t].pid;
        let procs = self.procs.as_slice();
        let target = if op.arg > 0 { procs.iter().position(|c| i64::from(c.vpid) == op.arg) } else { None };
        let matching = |state: ProcState| {
            (0..self.procs.len).filter(|&c| self.procs[c].state == state && self.wait_matches(p, c, op.arg)).count()
                as u32
        };
        let news = |&c: &Pid| self.wait_matches(p, c, op.arg) && self.stop_status(c, op).is_some();
        let told = (0..self.procs.len).filter(news).count() as u32;
        WaitState {
            target: target.map_or(0, |c| c as u32 + 1),
            over: matching(ProcState::ZOMBIE) + told,
            alive: matching(ProcState::LIVE) - told,
        }
    }

    pub(crate) fn wait_choices(&self, t: Tid, op: &Op) -> u32 {
        let (over, any) = self.wait_candidates(t, op);
        u32::from(over.is_some() || !any || op.has(WNOHANG) || self.cancelled(t, op))
    }

    pub(crate) fn wait_perform(&mut self, t: Tid, op: &Op) -> Applied {
        let (over, any) = self.wait_candidates(t, op);
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
            None => errno::EINTR,
        })
    }

    pub(crate) fn exit_perform(&mut self, t: Tid, op: &Op) -> Applied {
        self.process_exit(self.threads[t].pid, op.arg as i32);
        Applied::Done(0)
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
        self.procs[p].pgid = if pgid == 0 { self.procs[p].vpid } else { pgid };
    }

    /// setsid. Gives the number of the session, or minus an error number.
    pub fn new_session(&mut self, p: Pid) -> i64 {
        let process = &mut self.procs[p];
        if process.pgid == process.vpid {
            return -errno::EPERM;
        }
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
