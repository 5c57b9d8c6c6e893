//! Executions that run under the tracer, to be looked at.

use std::io;
use std::time::{Duration, Instant};

use nix::sys::ptrace::Options;
use nix::sys::signal::Signal as NixSignal;
use vsrun_model::arena::Command;
use vsrun_model::signal::{bit, ignored_by_default};

use super::execute::Clock;
use super::inspect::Inspector;
use super::processes::{is_answered, is_fault, is_reading, resume_quietly};
use super::setup::{Guarded, LOOKED_AT_CALLS};
use super::tracee::{send, sender, wait_any, Event, Reason, Signal, Stopped, Waited};
use super::worker::{Worker, LOOK};
use crate::finding::{Ending, Finding, Intrusion};
use crate::schedule::Schedule;
use crate::trace::Trace;

/// Wall-clock time in which a traced execution stands at its beginning.
const START_LIMIT: Duration = Duration::from_secs(20);

/// So many transitions of an execution that is cut off are looked at.
pub const LAST_STEPS: usize = 10_000;

impl Worker {
    /// Runs a schedule under the tracer and looks at the world where it ends. `race`: the identity of two uses of memory that are looked
    /// for; if the execution has them, they are what it shows.
    ///
    /// # Errors
    /// The execution could not be traced.
    pub fn examine(
        &mut self,
        inspector: &mut Inspector,
        schedule: &Schedule,
        race: Option<u64>,
    ) -> io::Result<Finding> {
        Ok(self.examine_all(inspector, schedule, race)?.0)
    }

    /// The same, with the trace.
    ///
    /// # Errors
    /// The execution could not be traced.
    pub fn examine_all(
        &mut self,
        inspector: &mut Inspector,
        schedule: &Schedule,
        race: Option<u64>,
    ) -> io::Result<(Finding, Trace)> {
        self.told.begin(schedule);
        let (ending, stopped) = match self.start_traced(schedule)? {
            Some(first) => self.run_to_end(first)?,
            None => (Ending::Interrupted, None),
        };
        let mut trace = Trace::read(&self.arena);
        if schedule.depth.is_some() {
            trace.keep_last(LAST_STEPS);
        }
        if let Some(watched) = &self.watched {
            inspector.use_moves(watched.moves.clone(), watched.addresses());
        }
        let mut finding = inspector.look(&self.arena.world, &trace, &ending, stopped.as_ref());
        inspector.show_steps(self.told.take(), &mut finding);
        self.name_blocks(inspector, &mut finding);
        if let Some(identity) = race {
            self.show_race(identity, &trace, inspector, &mut finding);
        }
        self.show_gone(inspector, &mut finding);
        finding.tosses = !self.tossed.is_empty();
        self.list = self.points.take();
        (finding.touches, finding.touches_lost) = (self.list.seen.clone(), self.list.lost);
        self.clean_up(&ending)?;
        Ok((finding, trace))
    }

    /// Runs a schedule under the tracer, so that each use of a watched variable is seen.
    pub(super) fn run_pointed(&mut self, schedule: &Schedule) -> io::Result<Ending> {
        let (ending, _stopped) = match self.start_traced(schedule)? {
            Some(first) => self.run_to_end(first)?,
            None => (Ending::Interrupted, None),
        };
        self.list = self.points.take();
        Ok(ending)
    }

    /// Starts one execution under the tracer; the first process stands still. [`Worker::run_to_end`] goes on. `None`: vsrun was asked
    /// to end.
    fn start_traced(&mut self, schedule: &Schedule) -> io::Result<Option<Stopped>> {
        let guarded = if self.looks_unguarded { Guarded::None } else { Guarded::First(LOOKED_AT_CALLS) };
        self.begin(schedule, guarded, Command::RUN_TRACED)?;
        let since = Instant::now();
        loop {
            match wait_any(true).map_err(io::Error::other)? {
                Waited::Changed(pid, status) => match Event::decode(pid, status).map_err(io::Error::other)? {
                    Event::Stopped(mut stopped) if pid != self.root => {
                        let options = Options::PTRACE_O_EXITKILL
                            | Options::PTRACE_O_TRACEFORK
                            | Options::PTRACE_O_TRACECLONE
                            | Options::PTRACE_O_TRACEVFORK
                            | Options::PTRACE_O_TRACEEXEC;
                        stopped.set_options(options).map_err(io::Error::other)?;
                        self.alive.insert(pid.as_raw());
                        self.points.begin();
                        self.points.arm(&stopped)?;
                        return Ok(Some(stopped));
                    }
                    Event::Stopped(root) => resume_quietly(root),
                    _ => return Err(io::Error::other("the traced execution ended before it began")),
                },
                Waited::NoChildren => {
                    return Err(io::Error::other("environment: the process from which executions are forked is gone"))
                }
                _ => {
                    self.is_forked()?;
                    if self.is_to_stop() {
                        return Ok(None);
                    }
                    if since.elapsed() > START_LIMIT {
                        return Err(io::Error::other("the traced execution did not begin"));
                    }
                }
            }
        }
    }

    /// Lets a traced execution run until it ends in any way; what stands still then is given back to be looked at.
    fn run_to_end(&mut self, first: Stopped) -> io::Result<(Ending, Option<Stopped>)> {
        let mut clock = Clock::new();
        // The SIGSTOP that it started with is not for the program.
        drop(first.resume(None).map_err(io::Error::other)?);
        let mut stopping: Option<Ending> = None;
        // Where a child stops again and again, waiting always finds it, and never that a tick has come.
        let mut looked = Instant::now();
        loop {
            let event = match wait_any(true).map_err(io::Error::other)? {
                Waited::Changed(pid, status) => Some(Event::decode(pid, status).map_err(io::Error::other)?),
                Waited::NoChildren => return Ok((Ending::Died(-1), None)),
                _ => None,
            };
            let ticks = event.is_none();
            // First of all: it is let go on by that.
            if let Some(end) = event.map(|event| self.traced_event(event, &mut stopping)).transpose()?.flatten() {
                return Ok(end);
            }
            if ticks || looked.elapsed() >= LOOK {
                looked = Instant::now();
                if self.is_to_stop() {
                    return Ok((Ending::Interrupted, None));
                }
                self.output.bound()?;
                if stopping.is_none() {
                    stopping = self.look(&mut clock);
                    // There is nobody who could be stopped.
                    if let Some(Ending::Died(status)) = stopping {
                        return Ok((Ending::Died(status), None));
                    }
                    if let (Some(_), Some(pid)) = (&stopping, self.turn_holder()) {
                        send(pid, NixSignal::SIGSTOP);
                    }
                }
            }
        }
    }

    fn traced_event(
        &mut self,
        event: Event,
        stopping: &mut Option<Ending>,
    ) -> io::Result<Option<(Ending, Option<Stopped>)>> {
        match event {
            Event::Stopped(stopped) if stopped.pid() == self.root => resume_quietly(stopped),
            Event::Stopped(stopped) => {
                let pid = stopped.pid();
                self.alive.insert(pid.as_raw());
                let moves = self.watched.as_ref().map(|watched| watched.moves.clone()).unwrap_or_default();
                if stopped.reason() == Reason::Exec {
                    self.points.forget(&stopped);
                }
                self.points.arm(&stopped)?;
                if self.points.sees(&stopped, &self.arena, &moves)? {
                    drop(stopped.resume(None));
                    return Ok(None);
                }
                match stopped.reason() {
                    Reason::Signal(signal) if signal.number() == libc::SIGSTOP => {
                        if self.arena.progress().1 != 0 {
                            return Ok(Some((Ending::Modelled, Some(stopped))));
                        }
                        if let Some(ending) = stopping.take() {
                            return Ok(Some((ending, Some(stopped))));
                        }
                        if std::mem::take(&mut self.arena.control.tells) != 0 && !self.told.sees(&stopped, &self.arena)
                        {
                            self.arena.control.told_from = 0;
                        }
                        resume_quietly(stopped);
                    }
                    Reason::Signal(signal) if self.is_sent_from_outside(&stopped, signal) => {
                        let sender = stopped.siginfo().ok().and_then(|info| sender(&info)).unwrap_or(0);
                        let process = self.process_of(pid.as_raw());
                        let what = Intrusion { signal: signal.number(), process, sender };
                        return Ok(Some((Ending::Outside(what), Some(stopped))));
                    }
                    Reason::Signal(signal) if self.is_fatal(&stopped, signal) => {
                        let process = self.process_of(pid.as_raw()).unwrap_or(0);
                        return Ok(Some((Ending::Crash { signal: signal.number(), process }, Some(stopped))));
                    }
                    Reason::Signal(signal) => drop(stopped.resume(Some(signal))),
                    Reason::Fork(child) | Reason::Vfork(child) | Reason::Clone(child) => {
                        self.alive.insert(child.as_raw());
                        resume_quietly(stopped);
                    }
                    _ => resume_quietly(stopped),
                }
            }
            Event::Exited { pid, code } => {
                self.alive.remove(&pid.as_raw());
                if let Some(ending) = self.after_death(pid, None, code) {
                    return Ok(Some((ending, None)));
                }
            }
            Event::Signaled { pid, signal, .. } => {
                self.alive.remove(&pid.as_raw());
                if let Some(ending) = self.after_death(pid, Some(signal), 0) {
                    return Ok(Some((ending, None)));
                }
            }
            Event::Dying(_) => {}
        }
        Ok(None)
    }

    /// True if `signal` was sent, not by the world, and the process minds it. What the world sends in earnest it sends to itself,
    /// and it says so where the sender that it names is one of the model's.
    fn is_sent_from_outside(&self, stopped: &Stopped, signal: Signal) -> bool {
        let Some(sender) = stopped.siginfo().ok().and_then(|info| sender(&info)) else { return false };
        let world = &self.arena.world;
        let process = self.process_of(stopped.pid().as_raw()).map(|p| &world.procs[p]);
        let (number, bit) = (signal.number(), bit(signal.number()));
        let ours = self.process_of(sender).is_some() || process.is_some_and(|p| p.own.delivers == number);
        let handled = process.is_some_and(|p| p.handled & bit != 0);
        let minds = handled || !(ignored_by_default(number) || process.is_some_and(|p| p.ignored & bit != 0));
        !ours && minds
    }

    /// True if `signal` is a fault that the program does not handle.
    fn is_fatal(&self, stopped: &Stopped, signal: Signal) -> bool {
        let world = &self.arena.world;
        let process = self.process_of(stopped.pid().as_raw()).map(|p| &world.procs[p]);
        let handled = process.map_or(0, |p| p.handled);
        if !is_fault(signal.number()) || handled & 1 << (signal.number() - 1) != 0 {
            return false;
        }
        // A tracer is told of signals that are ignored, too; those that say where an instruction failed come all the same.
        let of_limits = matches!(signal.number(), libc::SIGXCPU | libc::SIGXFSZ);
        if of_limits && process.is_some_and(|p| p.ignored & 1 << (signal.number() - 1) != 0) {
            return false;
        }
        if process.is_some_and(|p| is_answered(stopped, &p.own)) {
            return false;
        }
        if self.watched.as_ref().is_some_and(|watched| watched.answers(stopped, signal)) {
            return false;
        }
        let at = stopped.regs().map_or(0, |regs| regs.rip.wrapping_sub(1));
        if signal.number() == libc::SIGTRAP && self.tossed.iter().any(|tossed| tossed.traps_at(at)) {
            return false;
        }
        let asked_for = world.threads.get(world.current).is_some_and(|t| t.fiber.tsc_faults);
        asked_for || !is_reading(stopped)
    }
}
