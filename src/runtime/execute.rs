//! Executions that run untraced: begun, watched, cleaned up.

use std::io;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use nix::fcntl::{fallocate, FallocateFlags};
use nix::sys::signal::kill;
use nix::unistd::Pid;
use vsrun_model::arena::{Command, POOL_SIZE};
use vsrun_model::{End, ProcState};

use super::outcome::Outcome;
use super::reap::{children, reap, resume_quietly};
use super::setup::prepare;
use super::tracee::{wait_any, Event, Signal, Waited};
use super::watch::Clock;
use super::worker::Worker;
use crate::finding::Ending;
use crate::schedule::Schedule;
use crate::trace::Trace;

impl Worker {
    /// Runs one execution, untraced.
    pub fn run(&mut self, schedule: &Schedule) -> io::Result<Outcome> {
        self.begin(schedule, false, Command::RUN)?;
        let ending = self.watch()?;
        self.pass_output_on()?;
        let trace = Trace::read(&self.arena);
        self.clean_up(&ending)?;
        Ok(Outcome::new(&self.arena, trace, ending))
    }

    pub(super) fn begin(&mut self, schedule: &Schedule, stop_at_end: bool, command: Command) -> io::Result<()> {
        self.state.restore(&mut self.arena);
        prepare(&mut self.arena, &self.spec, schedule).map_err(|e| io::Error::other(e.to_string()))?;
        self.arena.control.stop_at_end = u32::from(stop_at_end);
        self.output.clear()?;
        self.input.rewind()?;
        self.alive.clear();
        self.commands += 1;
        self.arena.command(command.0);
        Ok(())
    }

    /// Copies what the program has printed since the last time to where it is shown.
    fn pass_output_on(&mut self) -> io::Result<()> {
        match &mut self.echo {
            Some(echo) => self.output.pass_on(echo),
            None => Ok(()),
        }
    }

    /// Waits for the end of an untraced execution.
    fn watch(&mut self) -> io::Result<Ending> {
        let mut clock = Clock::new();
        loop {
            match wait_any(true).map_err(io::Error::other)? {
                Waited::Changed(pid, status) if pid == self.root => {
                    match Event::decode(pid, status).map_err(io::Error::other)? {
                        Event::Stopped(stopped) => resume_quietly(stopped),
                        _ => return Err(io::Error::other("the root process is gone (was it killed from outside?)")),
                    }
                }
                Waited::Changed(pid, status) => {
                    let raw = status.raw();
                    if libc::WIFSTOPPED(raw) {
                        continue;
                    }
                    let signal = if libc::WIFSIGNALED(raw) { Signal::from_number(libc::WTERMSIG(raw)) } else { None };
                    if let Some(ending) = self.after_death(pid, signal, libc::WEXITSTATUS(raw)) {
                        return Ok(ending);
                    }
                }
                Waited::NoChildren => return Err(io::Error::other("the root process is gone")),
                _ => {
                    if self.is_to_stop() {
                        return Ok(Ending::Interrupted);
                    }
                    self.pass_output_on()?;
                    if let Some(ending) = self.look(&mut clock) {
                        return Ok(ending);
                    }
                }
            }
        }
    }

    /// What the end of a process of the execution means; `None`: the others go on.
    pub(super) fn after_death(&mut self, pid: Pid, signal: Option<Signal>, code: i32) -> Option<Ending> {
        let process = self.process_of(pid.as_raw());
        if self.arena.world.end != End::RUNNING {
            return Some(Ending::Modelled);
        }
        let expected = process.is_some_and(|p| self.arena.world.procs[p].state != ProcState::LIVE);
        match (signal, process) {
            _ if expected => None,
            (Some(signal), Some(process)) => Some(Ending::Crash { signal: signal.number(), process }),
            (Some(signal), None) => Some(Ending::Died(128 + signal.number())),
            (None, _) => Some(Ending::Died(code)),
        }
    }

    /// Waits until the root has forked the execution that it was asked for: one that is given up at once could come to life
    /// after its end otherwise, in the world of the next one.
    fn await_fork(&self) {
        const LIMIT: Duration = Duration::from_secs(10);
        let since = Instant::now();
        // It is ready once before the first, and again after each.
        while self.arena.root_signs().0 <= self.commands {
            if since.elapsed() > LIMIT || kill(self.root, None).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Kills what is left of the execution, collects it, and puts back what it changed outside its memory.
    pub(super) fn clean_up(&mut self, ending: &Ending) -> io::Result<()> {
        for process in self.arena.world.procs.as_slice() {
            if process.own.real_pid > 0 && process.own.real_pid != self.root.as_raw() {
                self.alive.insert(process.own.real_pid);
            }
        }
        let rough = *ending != Ending::Modelled;
        if rough {
            self.await_fork();
            for child in children() {
                self.alive.insert(child);
            }
            self.alive.remove(&self.root.as_raw());
        }
        for pid in std::mem::take(&mut self.alive) {
            reap(pid, &self.dir);
        }
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
        loop {
            let spared = [Some(self.root.as_raw()), self.dir.guard_pid()];
            let left: Vec<i32> = children().into_iter().filter(|&c| !spared.contains(&Some(c))).collect();
            if left.is_empty() {
                return;
            }
            left.into_iter().for_each(|child| reap(child, &self.dir));
        }
    }
}
