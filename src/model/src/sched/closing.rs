//! Closing the system: further root processes (`--with`), and what is left when they are done.
//!
//! A server that is left over when its clients are gone waits for ever, and that is no deadlock. The world is *idle* if
//!
//! 1. nothing is enabled, and no thread waits in a circle of locks;
//! 2. the clients are all over and one of them exited by itself; where there are none, the first process did (the shell
//!    in `sh -c 'server & client'`);
//! 3. in every process that is left, some thread waits for what only a new peer could give, or for a child that is left;
//!    and no thread waits for anything else than that or what its own process gives threads without work: a condition
//!    variable, a semaphore, a futex, the end of a thread, a descriptor;
//! 4. no process that is left has noticed a signal by which a client has told it to end (SIGTERM, or that of `--stop-signal`): who sends that
//!    expects the end.
//!
//! Deadlines of what is left go on firing for a while ([`IDLE_JUMPS`]): housekeeping that a server does every second would
//! have no end.

use crate::arena::Arena;
use crate::base::{Pid, Tid, NONE};
use crate::state::{bit, Disposal, End, ProcState, Sent, SigInfo};

/// So often time moves on in an idle world before it is over.
pub const IDLE_JUMPS: u32 = 32;

impl Arena {
    /// Whether what is left only waits for peers that do not come, where nothing is enabled: see the head of the file.
    #[inline]
    pub fn is_idle(&self) -> bool {
        // Asked at each transition of programs that yield.
        let first = self.world.procs.get(u32::from(self.closing.clients > 0));
        first.is_none_or(|p| p.state != ProcState::LIVE) && self.waits_for_peers_only()
    }

    fn waits_for_peers_only(&self) -> bool {
        let world = &self.world;
        let clients = self.closing.clients;
        let roots = if clients > 0 { 1..clients + 1 } else { 0..1 };
        let over = |p: Pid| world.procs.get(p).is_some_and(|p| p.state != ProcState::LIVE);
        let by_itself = |p: Pid| over(p) && world.procs[p].status & 0x7f == 0;
        if self.closing.stopped != 0 || !roots.clone().all(over) || !roots.clone().any(by_itself) {
            return false;
        }
        let live = world.live.as_slice();
        let idle = |t: Tid| world.threads[t].pending.kind.row().idle;
        let awaits_peer = |t: Tid| (idle(t).peer)(world, t, clients > 0);
        let waits = |t: Tid| awaits_peer(t) || idle(t).child && self.has_child(t);
        let waits_in = |p: Pid| live.iter().any(|&t| world.threads[t].pid == p && waits(t));
        live.iter().all(|&t| (waits(t) || idle(t).work) && waits_in(world.threads[t].pid))
            && live.iter().any(|&t| awaits_peer(t))
            && !live.iter().any(|&t| world.stays(world.threads[t].pid))
    }

    /// An idle world has seen enough time pass.
    pub(crate) fn is_settled(&mut self) -> bool {
        if !self.is_idle() {
            return false;
        }
        self.world.idle_jumps += 1;
        self.world.idle_jumps > IDLE_JUMPS
    }

    /// A child of its process is still there.
    fn has_child(&self, t: Tid) -> bool {
        let world = &self.world;
        let parent = world.threads[t].pid;
        world.procs.as_slice().iter().any(|c| c.parent == parent && parent != NONE && c.state == ProcState::LIVE)
    }
}

impl Arena {
    /// Where what is left only waits for peers that do not come, and it is to get a signal: the execution goes on, and the
    /// caller sends that signal to each process with [`Arena::close`]. Once.
    pub fn begin_closing(&mut self) -> Option<i32> {
        let signal = self.closing.stop_signal as i32;
        if self.world.end != End::WAITS_OUTSIDE || signal == 0 {
            return None;
        }
        self.world.end = End::RUNNING;
        self.closing.stopped = 1;
        self.world.stop_signal = signal;
        for p in 0..self.world.procs.len {
            if self.world.start_of(p).is_some() {
                self.world.procs[p].told |= bit(signal);
            }
        }
        Some(signal)
    }

    /// Thread `sender` sends that signal to process `p`, in the name of user `uid`. That it ends the process is what is
    /// wanted, not a crash: [`Sent::Kills`] says that it has.
    pub fn close(&mut self, sender: Tid, uid: u32, p: Pid, signal: i32) -> Sent {
        if self.world.procs[p].unborn {
            // Nothing is started again from now on, whatever that process makes of the signal.
            self.world.call_off(p);
            return Sent::Kills;
        }
        match self.world.disposal(p, NONE, signal) {
            Disposal::Stops => Sent::Stops,
            Disposal::Ignored | Disposal::Pending => {
                self.world.send(sender, p, NONE, SigInfo { signal, code: 0, pid: 0, uid, value: 0 })
            }
            Disposal::Kills => {
                if self.is_start(p) {
                    self.note_status(signal);
                }
                self.world.kill(p, signal);
                Sent::Kills
            }
        }
    }

    /// The first `len` bytes of what clients wait for stand by themselves, with a NUL behind them.
    pub fn cut_awaited(&mut self, len: usize) {
        self.closing.part[..len].copy_from_slice(&self.world.awaited[..len]);
        self.closing.part[len] = 0;
    }

    /// Those are the files that the program's standard output and error are.
    pub fn set_outputs(&mut self, outputs: [(u64, u64); 2]) {
        self.closing.outputs = outputs;
    }

    /// Process `p` is the program, as it was started first or again.
    fn is_start(&self, p: Pid) -> bool {
        self.world.start_of(p).is_some() && !self.world.procs[p].unborn
    }

    /// The wait status of the first process, or of the start that ended last, for the caller of vsrun.
    pub fn note_status(&mut self, status: i32) {
        self.control.status = status;
        self.control.status_known = 1;
    }

    /// Process `p` ends with wait status `status` by its thread `t`. True: the caller of vsrun wants that reported, and the
    /// execution is over.
    pub fn note_exit(&mut self, p: Pid, t: Tid, status: i32) -> bool {
        if self.is_start(p) {
            self.note_status(status);
        }
        let as_asked = self.world.ends_as_asked(p, status);
        let reported = self.plan.fail_on_exit && status != 0 && !as_asked || self.world.did_not_come_up(p, status);
        if reported {
            self.world.finish(End::STATUS, t, p, status as u32);
        }
        reported
    }

    /// A signal that thread `sender` has sent is about to kill process `p`. True: that is a crash, and the execution is over.
    /// The first process crashes, as a shell would say; others may be killed by those who know what they do, and so may
    /// itself by a signal that it had noticed: thus daemons end that clean up when they are told to end; and so may it by the signal that is
    /// said to end it, or by any that comes from clients where it is started again. Its further starts are like the first.
    pub fn note_kill(&mut self, p: Pid, signal: i32, sender: Tid) -> bool {
        if !self.is_start(p) {
            return false;
        }
        self.note_status(signal);
        let noticed = self.world.threads[sender].pid == p && self.world.procs[p].noticed & bit(signal) != 0;
        if noticed || self.world.ends_as_asked(p, signal) {
            return false;
        }
        self.world.finish(End::KILLED, sender, if p == 0 { NONE } else { p }, signal as u32);
        true
    }
}
