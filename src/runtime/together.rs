//! Several processes that go back to the same state: see NOTE \[Several\] of `vsrun_model::back`.

use std::time::Duration;

use nix::unistd::Pid;
use vsrun_model::back::{Answer, Hinders, Order, MAX_MEMBERS};
use vsrun_model::ProcState;

use super::kept::Kept;
use super::processes::reap;
use super::stood::{known, Member, Together};
use super::tracee::{wait_for, Waited};
use super::worker::Worker;

/// So long an answer is waited for before it is looked whether the process is still there.
const GLANCE: Duration = Duration::from_millis(20);

impl Worker {
    /// Who is there now, `members` of which have joined by then. `None`: there are more than go back together.
    pub(super) fn together(&self, members: usize) -> Option<Together> {
        let world = &self.arena.world;
        let leader = self.arena.back.speaker;
        world.procs.get(leader)?;
        let live = |&p: &u32| world.procs[p].state == ProcState::LIVE && world.procs[p].own.real_pid > 0;
        let others = (0..world.procs.len).filter(|&p| p != leader).filter(live).collect();
        (world.procs.len as usize <= MAX_MEMBERS).then_some(Together { leader, others, members, at: Vec::new() })
    }

    pub(super) fn real_pid(&self, p: u32) -> Pid {
        Pid::from_raw(self.arena.world.procs[p].own.real_pid)
    }

    /// Has process `p` do something, and waits until it has.
    ///
    /// # Errors
    /// It cannot, or is gone: why.
    pub(super) fn commands(&mut self, p: u32, order: Order) -> Result<(), Hinders> {
        self.arena.tell(p, order);
        self.is_done(p)
    }

    /// Waits until process `p` has done what it is told to.
    fn is_done(&mut self, p: u32) -> Result<(), Hinders> {
        loop {
            match self.arena.await_answer(p, GLANCE) {
                Answer::DONE => return Ok(()),
                Answer::AWAITED => {}
                _ => return Err(self.arena.back.why),
            }
            let waited = wait_for(self.real_pid(p));
            if !matches!(waited, Ok(Waited::NothingYet | Waited::Interrupted)) || self.is_to_stop() {
                // Whoever waits for what comes next of the execution is told.
                self.back.ended = waited.ok().filter(|waited| matches!(waited, Waited::Changed(..)));
                return Err(Hinders::GONE);
            }
        }
    }

    /// What a process shares that is to go back, but for what the members share with it.
    ///
    /// # Errors
    /// It cannot be put back.
    pub(super) fn keep_for(&self, pid: Pid, members: &[Member]) -> Result<Kept, Hinders> {
        self.keep_of(pid, &known(members)).ok().filter(Kept::has_no_names).ok_or(Hinders::SHARED)
    }

    /// Process `p`, which waits for its turn, goes back from now on, with these.
    ///
    /// # Errors
    /// It cannot: why.
    pub(super) fn joins(&mut self, p: u32, members: &[Member]) -> Result<Member, Hinders> {
        let pid = self.real_pid(p);
        self.commands(p, Order::PREPARE)?;
        let kept = self.keep_for(pid, members).and_then(|kept| {
            self.say_what_to_keep(pid).ok_or(Hinders::ROOM)?;
            Ok(kept)
        });
        if kept.is_err() {
            self.say_to_keep_nothing();
        }
        // What it cannot keep it says, and waits for its turn as it did.
        let done = self.commands(p, Order::KEEP);
        let kept = kept?;
        done?;
        Ok(Member { pid, kept, state: None })
    }

    /// All of them go back to state `name` when they have the turn, but for the one that had it there, if it is the one that has ended the execution before, and does
    /// in any case; and those that are there, or are to go there, as they have not had the turn since.
    pub(super) fn all_go_back(&mut self, together: &Together, name: u64) {
        let late = self.arena.back.to + 1;
        let leader = Some(together.leader).filter(|&leader| self.back.speaker != Some(leader));
        for &p in together.others.iter().chain(&leader) {
            if self.is_in(p) != Some(name) {
                if let Some(place) = self.arena.back.late.get_mut(p as usize) {
                    *place = late;
                }
                self.comes_to(p, name);
            }
        }
    }

    /// The state that process `p` is in, or is to go to, if it is one that has a name: 0 is the first choice, marks are counted from 1 on.
    fn is_in(&self, p: u32) -> Option<u64> {
        let moved = self.arena.back.moved.get(p as usize).is_none_or(|&moved| moved != 0);
        let pid = self.real_pid(p);
        let member = self.back.stood.as_ref()?.members.iter().find(|member| member.pid == pid)?;
        member.state.filter(|_| !moved)
    }

    /// Process `p` is in that state now.
    pub(super) fn comes_to(&mut self, p: u32, name: u64) {
        let pid = self.real_pid(p);
        if let Some(moved) = self.arena.back.moved.get_mut(p as usize) {
            *moved = 0;
        }
        let members = self.back.stood.iter_mut().flat_map(|stood| &mut stood.members);
        members.filter(|member| member.pid == pid).for_each(|member| member.state = Some(name));
    }

    /// Ends those that have joined behind the first `n`.
    pub(super) fn only_members(&mut self, n: usize) {
        if let Some(stood) = &mut self.back.stood {
            let left = stood.members.drain(n.min(stood.members.len())..);
            reap(left.map(|member| member.pid.as_raw()).filter(|&pid| pid > 0), &self.dir);
        }
    }

    /// Before an execution that does not go back. One process that has spoken last waits at a word of its own; any other would take the turns of that execution
    /// for its own.
    pub(super) fn stand_aside(&mut self) {
        let copies = self.back.copies;
        self.arena.back.copies = u32::from(copies && self.back.under_way);
        self.arena.back.stands.fill(0);
        // Nobody in that execution is to take one that stands for one of its own.
        self.arena.back.late.fill(0);
        self.back.stood.iter_mut().flat_map(|stood| &mut stood.members).for_each(|member| member.state = None);
        self.arena.back.holds = 0;
        // Those that stand still wait elsewhere.
        if !copies && (self.back.processes() > 1 || self.back.speaker.is_none()) {
            self.end_standing();
        }
    }
}
