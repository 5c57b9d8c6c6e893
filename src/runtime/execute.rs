//! Executions that run untraced: begun, watched, cleaned up. Whether a world that runs gets on: does it move, does it use CPU time?

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{fallocate, FallocateFlags};
use nix::unistd::Pid;
use vsrun_model::arena::{Command, GUARDED_ALWAYS, POOL_SIZE};
use vsrun_model::{End, ProcState};

use super::back::Awaited;
use super::outcome::Outcome;
use super::processes::{children, is_fault, is_stopped, reap, resume_quietly};
use super::room;
use super::setup::{is_intact, prepare, Guarded, LOOKED_AT_CALLS};
use super::tracee::{is_ours, Event, Signal, Waited};
use super::worker::{Worker, LOOK};
use crate::config::Checkpoint;
use crate::finding::{Ending, Intrusion};
use crate::schedule::{Schedule, States};
use crate::trace::Trace;

/// So many executions of a worker are guarded, then one of [`GUARDED_EVERY`]. A guarded execution of a small program takes two to
/// three times as long, so these cost some 1 % of a search of 4,000 executions.
const GUARDED_FIRST: u32 = 4;
/// See [`GUARDED_FIRST`].
const GUARDED_EVERY: u32 = 256;
/// For so many calls of each of its processes, and behind these for ever fewer: long executions are not to take much longer than others. Only as far as
/// executions are guarded that are looked at, where what was found is to be found again.
const SAMPLED_CALLS: (u32, u32) = (64, LOOKED_AT_CALLS);
/// So many looks, one after the other, find a process that is to move and is gone, where nobody else will be given its turn. Looks are counted, not time:
/// vsrun may have been stopped between two of them.
const GONE_LOOKS: u32 = 50;
/// Wall-clock time in which what was killed ends.
const REAP_LIMIT: Duration = Duration::from_secs(2);

impl Worker {
    /// Runs one execution, untraced.
    pub fn run(&mut self, schedule: &Schedule) -> io::Result<Outcome> {
        let mut passed = 0;
        if self.spec.checkpoint == Checkpoint::Replay {
            self.begin_anew().map_err(|e| io::Error::other(e.to_string()))?;
        }
        loop {
            self.spec.own_pages = self.own.are_allowed(&self.spec);
            self.own.write(&mut self.arena);
            if let Some(outcome) = self.run_once(schedule, passed)? {
                return Ok(outcome);
            }
            passed = self.output.passed();
        }
    }

    /// The same, with a loop that only looks at memory taken for a divergence sooner. What it looks at may turn out to be shared; if it does not,
    /// that it goes on for so long says nothing.
    pub fn run_hasty(&mut self, schedule: &Schedule) -> io::Result<Outcome> {
        self.spec.hasty = true;
        let outcome = self.run(schedule);
        self.spec.hasty = false;
        outcome
    }

    /// The same; `None`: it is to be run again, since what was recorded of memory is not all. So many bytes of what it prints have been passed on
    /// before.
    fn run_once(&mut self, schedule: &Schedule, passed: u64) -> io::Result<Option<Outcome>> {
        let since = Instant::now();
        // A process that is guarded does not go back, and only one that does tells states.
        let tells = schedule.states != States::Off;
        let sampled = !tells && (self.runs < GUARDED_FIRST || self.runs.is_multiple_of(GUARDED_EVERY));
        // Other calls in each.
        let seed = self.runs.wrapping_add(self.runs / GUARDED_EVERY);
        self.runs = self.runs.wrapping_add(1);
        let back = !sampled && !self.points.is_on() && self.may_go_back(tells);
        let ended = match self.points.is_on() {
            true => self.run_pointed(schedule),
            false => {
                if back {
                    self.begin_back(schedule)?;
                } else {
                    let command = self.tend_pages()?;
                    self.begin(schedule, if sampled { Guarded::Some(seed) } else { Guarded::None }, command)?;
                }
                self.output.has_passed(passed);
                self.watch()
            }
        };
        let ending = match ended {
            Ok(ending) => ending,
            Err(_) if !is_intact(&self.arena, &self.spec, schedule) => Ending::Overwritten,
            Err(e) => return Err(e),
        };
        self.pass_output_on()?;
        if !is_intact(&self.arena, &self.spec, schedule) {
            self.clean_up(&Ending::Overwritten)?;
            self.repair()?;
            return Ok(Some(Outcome::overwritten()));
        }
        if tells && self.has_learnt() {
            // What was not known to be written could not be compared.
            self.clean_up(&ending)?;
            return Ok(None);
        }
        if back && self.went_astray() {
            self.arena.control.passed.copy_from_slice(&self.back.passed_before);
            self.clean_up(&ending)?;
            return Ok(None);
        }
        if self.spec.own_pages && self.own.is_to_run_again(&self.arena, &ending, since.elapsed()) {
            self.clean_up(&ending)?;
            return Ok(None);
        }
        let ending = self.own.ending(ending);
        // What is broken off goes on meanwhile, and is not looked at.
        let trace = match ending {
            Ending::Interrupted => Trace { unrecorded: self.arena.taken, ..Trace::default() },
            _ => Trace::read(&self.arena),
        };
        let polled = if ending == Ending::Divergence { self.polled() } else { BTreeSet::new() };
        let alone = self.diverges_alone();
        self.clean_up(&ending)?;
        if let Some(states) = self.states.as_mut().filter(|_| self.arena.plan.pieces) {
            states.add(&self.arena, self.root);
        }
        let by_step = self.spec.watch.as_ref().is_some_and(|watch| watch.by_step);
        let mut answers = std::mem::take(&mut self.answers);
        let late = (&self.spec.objects.late, &(|| self.is_to_stop()) as &dyn Fn() -> bool);
        let outcome = Outcome::new(&self.arena, trace, ending, (self.spec.flaws, by_step), late, &mut answers);
        self.answers = answers;
        Ok(Some(outcome.with_polled(polled, alone)))
    }

    /// Puts back what the program has overwritten and no execution begins with anew.
    fn repair(&mut self) -> io::Result<()> {
        // The root gets to where it waits, whatever it was told.
        std::thread::sleep(LOOK);
        self.arena.init_header();
        self.arena.clear();
        self.spec.objects.write(&mut self.arena).map_err(io::Error::other)?;
        self.arena.control = self.control;
        self.arena.control.ready = self.commands + 1;
        Ok(())
    }

    /// A traced execution stops at its end, to be looked at.
    pub(super) fn begin(&mut self, schedule: &Schedule, guarded: Guarded, command: Command) -> io::Result<()> {
        self.stand_aside();
        self.state.restore(&mut self.arena);
        self.output.clear()?;
        self.kept.restore()?;
        self.order(schedule, guarded, command)?;
        self.commands += 1;
        self.arena.command(command.0);
        Ok(())
    }

    /// Writes what an execution is to do, wherever it begins.
    pub(super) fn order(&mut self, schedule: &Schedule, guarded: Guarded, command: Command) -> io::Result<()> {
        // What is looked at tells everything.
        self.spec.own_pages &= command != Command::RUN_TRACED;
        prepare(&mut self.arena, &self.spec, schedule).map_err(|e| io::Error::other(e.to_string()))?;
        self.arena.control.stop_at_end = u32::from(command == Command::RUN_TRACED);
        let told = if command == Command::RUN_TRACED { self.told.from() } else { 0 };
        (self.arena.control.told_from, self.arena.control.tells) = (told, 0);
        let control = &mut self.arena.control;
        (control.guarded, control.guarded_thickly, control.guarded_seed) = match guarded {
            _ if self.spec.guards => (GUARDED_ALWAYS, 0, 0),
            Guarded::None => (0, 0, 0),
            Guarded::Some(seed) => (SAMPLED_CALLS.1, SAMPLED_CALLS.0, seed),
            Guarded::First(calls) => (calls, 0, 0),
        };
        self.alive.clear();
        Ok(())
    }

    /// Copies what the program has printed since the last time to where it is shown, if it is shown; keeps no more than is needed.
    fn pass_output_on(&mut self) -> io::Result<()> {
        match &mut self.echo {
            Some(echo) => self.output.pass_on(echo),
            None => self.output.bound(),
        }
    }

    /// Waits for the end of an untraced execution.
    fn watch(&mut self) -> io::Result<Ending> {
        let mut clock = Clock::new();
        loop {
            let waited = match self.await_next()? {
                Awaited::Back => return Ok(Ending::Modelled),
                Awaited::Child(waited) => waited,
            };
            match waited {
                Waited::Changed(pid, status) if pid == self.root => {
                    match Event::decode(pid, status).map_err(io::Error::other)? {
                        Event::Stopped(stopped) => resume_quietly(stopped),
                        Event::Signaled { signal, .. } => {
                            return Ok(Ending::Outside(Intrusion { signal: signal.number(), process: None, sender: 0 }))
                        }
                        _ => {
                            return Err(io::Error::other(
                                "environment: the process from which executions are forked is gone",
                            ))
                        }
                    }
                }
                Waited::Changed(pid, status) => {
                    let raw = status.raw();
                    if libc::WIFSTOPPED(raw) {
                        continue;
                    }
                    // Nobody goes back to a state in which it was.
                    self.back.gone |= self.back.is_member(pid);
                    if self.is_missed(pid) {
                        return Ok(Ending::Died(0));
                    }
                    if self.back.copies && self.back.is_member(pid) {
                        // None of this execution.
                        continue;
                    }
                    let signal = if libc::WIFSIGNALED(raw) { Signal::from_number(libc::WTERMSIG(raw)) } else { None };
                    if let Some(ending) = self.after_death(pid, signal, libc::WEXITSTATUS(raw)) {
                        return Ok(ending);
                    }
                }
                Waited::NoChildren => {
                    return Err(io::Error::other("environment: the process from which executions are forked is gone"))
                }
                _ => {
                    if self.is_to_stop() {
                        return Ok(Ending::Interrupted);
                    }
                    self.is_forked()?;
                    self.pass_output_on()?;
                    if let Some(ending) = self.look(&mut clock) {
                        return Ok(ending);
                    }
                }
            }
        }
    }

    /// What the end of a process of the execution means; `None`: the others go on.
    ///
    /// A signal that is no fault is the model's wherever the program sends it, so a process that one has killed was killed from
    /// outside. That a fault was sent is seen where it is looked at: by the library's handlers of SIGSEGV and SIGBUS, and by the
    /// tracer.
    pub(super) fn after_death(&mut self, pid: Pid, signal: Option<Signal>, code: i32) -> Option<Ending> {
        let process = self.process_of(pid.as_raw());
        if self.arena.world.end != End::RUNNING {
            return (!self.is_to_speak(pid)).then_some(Ending::Modelled);
        }
        if let Some(process) = process {
            let [signal, sender] = self.arena.world.procs[process].own.outside;
            if signal != 0 {
                return Some(Ending::Outside(Intrusion { signal, process: Some(process), sender }));
            }
        }
        let expected = process.is_some_and(|p| self.arena.world.procs[p].state != ProcState::LIVE);
        match (signal, process) {
            _ if expected => None,
            (Some(signal), _) if pid == self.root || !is_fault(signal.number()) => {
                Some(Ending::Outside(Intrusion { signal: signal.number(), process, sender: 0 }))
            }
            (Some(signal), Some(process)) => Some(Ending::Crash { signal: signal.number(), process }),
            (Some(signal), None) => Some(Ending::Died(128 + signal.number())),
            (None, _) => Some(Ending::Died(code)),
        }
    }

    /// An error if the kernel has refused the root the process of the execution that it was asked for.
    pub(super) fn is_forked(&self) -> io::Result<()> {
        let (ready, forked) = self.arena.root_signs();
        if ready <= self.commands || forked >= 0 {
            return Ok(());
        }
        let why = Errno::from_raw(-forked).desc();
        Err(io::Error::other(format!(
            "environment: the kernel refused a process for an execution ({why}); the limit is that of this user's processes (ulimit -u), \
             the container's (pids.max) or memory; raise it and begin again"
        )))
    }

    /// Waits until the root has forked the execution that it was asked for: one that is given up at once could come to life
    /// after its end otherwise, in the world of the next one.
    fn await_fork(&self) {
        const LIMIT: Duration = Duration::from_secs(10);
        let since = Instant::now();
        // It is ready once before the first, and again after each.
        while self.arena.root_signs().0 <= self.commands {
            let limit = if self.is_to_stop() { LIMIT / 20 } else { LIMIT };
            if since.elapsed() > limit || !is_ours(self.root) {
                return;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Kills what is left of the execution, collects it, and puts back what it changed outside its memory.
    pub(super) fn clean_up(&mut self, ending: &Ending) -> io::Result<()> {
        let rough = *ending != Ending::Modelled;
        self.settle_back(rough);
        let standing = self.standing();
        for process in self.arena.world.procs.as_slice() {
            let pid = process.own.real_pid;
            if pid > 0 && pid != self.root.as_raw() && !standing.contains(&pid) {
                self.alive.insert(pid);
            }
        }
        if rough {
            self.await_fork();
            for child in children() {
                self.alive.insert(child);
            }
            self.alive.remove(&self.root.as_raw());
            self.alive.retain(|pid| !standing.contains(pid));
        }
        reap(std::mem::take(&mut self.alive), &self.dir);
        // Those that are killed may have forked until then.
        if rough {
            self.reap_all();
        }
        if self.arena.control.pool_used > 0 {
            let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
            fallocate(self.pool.as_raw_fd(), flags, 0, POOL_SIZE as i64)?;
        }
        if self.arena.control.shm_used != 0 {
            self.dir.clear_shm()?;
        }
        if self.arena.files.used != 0 {
            self.dir.clear_files()?;
        }
        Ok(())
    }

    /// Kills and collects every child but the root and the guard.
    fn reap_all(&self) {
        let since = Instant::now();
        while since.elapsed() < REAP_LIMIT {
            let spared = [Some(self.root.as_raw()), self.dir.guard_pid()];
            let standing = self.standing();
            let is_left = |c: &i32| !spared.contains(&Some(*c)) && !standing.contains(c);
            let left: Vec<i32> = children().into_iter().filter(is_left).collect();
            if left.is_empty() {
                return;
            }
            reap(left, &self.dir);
        }
    }
}

/// So many times the CPU time of a divergence may be spent on operations on objects of the thread's own, which are no
/// visible ones: a loop over these alone never comes back to the scheduler.
const OWN_OBJECTS: u32 = 10;
/// Without CPU time and without moving for so long, a world sits in a system call.
const SITS: Duration = Duration::from_millis(700);

impl Worker {
    pub(super) fn process_of(&self, pid: i32) -> Option<u32> {
        let procs = self.arena.world.procs.as_slice();
        procs.iter().rposition(|p| p.own.real_pid == pid).map(|p| p as u32)
    }

    /// The process that has the turn.
    pub(super) fn turn_holder(&self) -> Option<Pid> {
        let world = &self.arena.world;
        let thread = world.threads.get(world.current)?;
        let real = world.procs.get(thread.pid)?.own.real_pid;
        (real > 0).then(|| Pid::from_raw(real))
    }

    /// Bytes that the processes of the execution use, if that is more than they may.
    fn beyond_memory(&self) -> Option<u64> {
        let procs = self.arena.world.procs.as_slice().iter();
        let there = procs.filter(|p| p.state == ProcState::LIVE && p.own.real_pid > 0);
        // What marks take has a bound of its own.
        let marks = if self.back.asked { self.arena.back.held * 4096 * self.back.processes() as u64 } else { 0 };
        room::beyond(self.spec.memory.saturating_add(marks), &there.map(|p| p.own.real_pid).collect::<Vec<_>>())
    }

    /// Looks at a world that has run for a while: does it move, does it use CPU time and not too much memory?
    pub(super) fn look(&self, clock: &mut Clock) -> Option<Ending> {
        if let Some(used) = self.beyond_memory() {
            return Some(Ending::Memory { used, bound: self.spec.memory });
        }
        let pid = self.turn_holder()?;
        let now = Instant::now();
        let cpu = match cpu_time(pid) {
            Ok(cpu) => cpu,
            // Its end has been taken for one that the model knows of, but it has not given the turn to anybody.
            Err(Errno::ESRCH) => return clock.misses(pid).then_some(Ending::Died(0)),
            // Nothing is known of it.
            Err(_) => return None,
        };
        clock.gone = None;
        let ops = self.arena.progress().0;
        let visible = self.arena.visible_ops();
        let other = pid != clock.pid;
        if other || visible > clock.visible {
            (clock.visible, clock.visible_cpu) = (visible, cpu);
        } else if cpu.saturating_sub(clock.visible_cpu) > self.spec.divergence_timeout() * OWN_OBJECTS {
            return Some(Ending::Divergence);
        }
        if other || ops != clock.ops {
            (clock.ops, clock.pid) = (ops, pid);
            (clock.moved_cpu, clock.last_cpu, clock.busy) = (cpu, cpu, now);
            return None;
        }
        if cpu > clock.last_cpu + Duration::from_millis(1) {
            (clock.last_cpu, clock.busy) = (cpu, now);
        }
        if cpu.saturating_sub(clock.moved_cpu) > self.spec.divergence_timeout() {
            return Some(Ending::Divergence);
        }
        if now.duration_since(clock.busy) < SITS {
            return None;
        }
        let current = self.arena.world.current;
        let call = self.arena.world.threads.get(current)?.fiber.in_call;
        // A stopped or swapped-out machine is given ten seconds before vsrun is blamed.
        let lost = now.duration_since(clock.busy) > Duration::from_secs(10);
        if lost && is_stopped(pid) {
            let process = self.process_of(pid.as_raw());
            return Some(Ending::Outside(Intrusion { signal: libc::SIGSTOP, process, sender: 0 }));
        }
        (call[0] != 0 || lost).then_some(Ending::Sits { thread: current, call })
    }
}

/// CPU time of a process. ESRCH: it is gone.
fn cpu_time(pid: Pid) -> Result<Duration, Errno> {
    let clock = nix::time::clock_getcpuclockid(pid)?;
    // The kernel has no clock of a process that has gone since then.
    let gone = |e| if e == Errno::EINVAL { Errno::ESRCH } else { e };
    let time = nix::time::clock_gettime(clock).map_err(gone)?;
    Ok(Duration::new(time.tv_sec() as u64, time.tv_nsec() as u32))
}

/// What was seen of a world's progress.
pub(super) struct Clock {
    ops: u64,
    /// Visible operations, and the CPU time when there was a new one.
    visible: u64,
    visible_cpu: Duration,
    pid: Pid,
    moved_cpu: Duration,
    last_cpu: Duration,
    busy: Instant,
    /// Who is to move, where that is a process that is not there any more, and how many looks in a row have found it so.
    gone: Option<(Pid, u32)>,
}

impl Clock {
    pub fn new() -> Clock {
        let zero = Duration::ZERO;
        let (ops, visible, pid, busy) = (u64::MAX, u64::MAX, Pid::from_raw(0), Instant::now());
        Clock { ops, visible, visible_cpu: zero, pid, moved_cpu: zero, last_cpu: zero, busy, gone: None }
    }

    /// A look has found that the process that is to move is gone. True: so have more before than there are where another one is about to be given the turn.
    fn misses(&mut self, pid: Pid) -> bool {
        let before = self.gone.filter(|gone| gone.0 == pid).map_or(0, |gone| gone.1);
        self.gone = Some((pid, before + 1));
        before >= GONE_LOOKS
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn looks_in_a_row_that_find_a_process_gone_are_counted() {
        let (one, other) = (Pid::from_raw(7), Pid::from_raw(8));
        let mut clock = Clock::new();
        assert!((0..GONE_LOOKS).all(|_| !clock.misses(one)));
        assert!(clock.misses(one) && clock.misses(one));
        // Somebody else is to move, who is gone too.
        assert!((0..GONE_LOOKS).all(|_| !clock.misses(other)));
        // It was there meanwhile.
        clock.gone = None;
        assert!(!clock.misses(other));
    }

    #[test]
    fn who_is_gone_is_told_from_who_is_there() {
        let mut child = Command::new("true").spawn().expect("true");
        let pid = Pid::from_raw(child.id() as i32);
        child.wait().expect("wait");
        assert_eq!(cpu_time(pid), Err(Errno::ESRCH));
        assert!(cpu_time(Pid::this()).is_ok_and(|cpu| cpu > Duration::ZERO));
    }
}
