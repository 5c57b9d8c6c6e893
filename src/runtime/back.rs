//! Executions that begin at the first choice, in a process that has gone back to it from the end of the execution before: see
//! `vsrun_model::back`, and `gate::back` in the shim.
//!
//! A process that is asked to stops before its first choice. What it finds there is the same for every schedule, so what stands in the arena then is kept
//! here, and put back each time; its own memory the process puts back by itself. Which pages that are is learnt from executions.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use nix::sys::resource::{getrusage, UsageWho};
use nix::sys::time::TimeValLike;
use nix::time::ClockId;
use nix::unistd::Pid;
use vsrun_model::arena::{Choice, Command, Plan};
use vsrun_model::back::{Hinders, Order, Stand, Turn, MAX_BACK_PAGES, MAX_SPANS};

use super::checkpoint::{ArenaMap, RootState};
use super::kept::{Bytes, Pool};
use super::processes::reap;
use super::setup::{plan_of, Guarded};
use super::spans::{spans, FAR, NEAR};
use super::stood::{recorded_from, until_prefix_ends, GoingBack, Key, Mark, Member, Stood, Together};
use super::tracee::{wait_any, Waited};
use super::worker::Worker;
use crate::binary::modules::Mapping;
use crate::config::Checkpoint;
use crate::schedule::Schedule;

/// So long a process that says nothing is waited for before it is looked whether it has ended.
const GLANCE: Duration = Duration::from_millis(2);
/// So many executions of a worker are forked before one goes back, if nothing else is asked for: that pays in searches that are longer.
const FIRST: u32 = 8;
/// What one loses that does not come back, and what one wins that does: it costs what four save. An execution that is not asked wins 1.
const LOSS: u32 = 64;
const GAIN: u32 = LOSS / 4;
/// While so much is lost no execution is asked to: where none can come back, one of 64 is.
const IN_VAIN: u32 = 4 * LOSS;
/// So often pages may turn out to be written that were not known.
const LESSONS: u32 = 64;
/// Most bytes of the pool (pipes, sockets, semaphores with names) that marks keep, each.
const MOST_POOL: u64 = 1 << 23;
/// Most bytes of memory and files without a name that are shared, for there to be marks: each keeps them.
const MOST_SHARED: u64 = 1 << 20;

/// Whether the process of an execution goes back to its first choice, for the next one.
pub enum GoesBack {
    /// It was not asked to.
    WasNotAsked,
    /// It has.
    Did {
        /// The execution had begun at a mark.
        from_mark: bool,
        /// Marks would have paid, and there was no room for one.
        no_room: bool,
        /// It does not go back: its originals stand still.
        copied: bool,
    },
    /// It could not: why.
    Hindered(String),
}

/// How a wait ended.
pub(super) enum Awaited {
    /// With what the kernel says of a child.
    Child(Waited),
    /// The execution is over, and its process is back.
    Back,
}

impl Worker {
    /// The schedule is run by a process that goes back, if there can be one.
    pub(super) fn may_go_back(&mut self, tells: bool) -> bool {
        self.back.copies |= self.spec.checkpoint == Checkpoint::Copies;
        let back = &self.back;
        let wanted = match self.spec.checkpoint {
            // What tells states is a process that goes back.
            _ if tells && back.copies => false,
            Checkpoint::Rollback | Checkpoint::Copies => true,
            Checkpoint::Auto => tells || self.runs > FIRST,
            Checkpoint::Fork | Checkpoint::Replay => false,
        };
        // What is written to real files, or goes to the kernel, is outside of processes.
        let outside = back.copies && (self.spec.options.real_files || self.spec.options.uncontrolled != 0);
        wanted && !outside && !back.off && back.lost < IN_VAIN && !self.spec.guards && !self.spec.options.store_buffers
    }

    /// Begins an execution that goes back.
    pub(super) fn begin_back(&mut self, schedule: &Schedule) -> io::Result<()> {
        (self.back.under_way, self.back.asked) = (true, true);
        self.back.spent = if self.back.trial.rests() { Some(0.0) } else { self.spent() };
        self.back.ended = None;
        let (prefix_len, guide_len) = (schedule.prefix.len() as u32, schedule.guide.len() as u32);
        let plan = Plan { prefix_len, guide_len, ..plan_of(&self.spec, schedule) };
        let key = Key::of(plan, &self.arena);
        if std::mem::take(&mut self.back.gone) || self.back.stood.as_ref().is_some_and(|stood| stood.key != key) {
            self.end_standing();
        }
        self.back.resumed = self.back.stood.is_some();
        self.back.passed_before = self.arena.control.passed.to_vec();
        let (marks, usable) = (&mut self.back.marks, self.arena.back.usable);
        let Some(stood) = &mut self.back.stood else {
            marks.clear();
            (marks.seen_from, marks.began) = (recorded_from(&plan).unwrap_or(u64::MAX), (0, None));
            self.arena.back.n_missed = 0;
            (self.arena.back.held, self.arena.back.largest) = (0, 0);
            self.arena.back.stand = Stand::ASKED;
            // One that was ended may have left what it was told.
            self.arena.back.words.fill(Turn::NONE);
            self.want_marks(&plan, 0);
            self.arena.back.late.fill(0);
            self.begin(schedule, Guarded::None, Command::RUN)?;
            return Ok(());
        };
        let copies = self.back.copies;
        // Each of several sees to that when it goes back.
        let usable = if copies || stood.members.len() > 1 { u32::MAX } else { usable };
        let mark = marks.choose(&plan, &schedule.prefix, usable);
        let start = mark.map_or(0, |mark| mark.step);
        let reached = mark.map(|mark| mark.reached);
        self.arena.back.to = mark.map_or(0, |mark| mark.slot + 1);
        let (state, printed) = mark.map_or((&stood.state, stood.printed), |mark| (&mark.state, mark.printed));
        state.restore(&mut self.arena);
        let passed = mark.map_or(&stood.passed, |mark| &mark.passed);
        self.arena.control.passed.iter_mut().zip(passed).for_each(|(all, these)| *all = all.saturating_add(*these));
        self.output.cut(printed)?;
        let together = mark.map_or(&stood.first, |mark| &mark.together).clone();
        let name = mark.map_or(0, |mark| mark.name);
        stood.restore(together.members, mark.map(|mark| mark.later.as_slice()))?;
        if let Some(mark) = mark {
            let (used, bytes) = &mark.pool;
            bytes.restore(&Pool(&self.pool), (0, *used))?;
        }
        self.only_members(together.members);
        self.order(schedule, Guarded::None, Command::RUN)?;
        match (reached, &self.back.stood) {
            (Some(reached), _) => self.arena.goes_on_from(&reached),
            (None, Some(stood)) => self.arena.take_recorded(&stood.recorded),
            (None, None) => {}
        }
        (self.arena.back.holds, self.arena.back.astray) = (u32::from(!copies), 0);
        self.arena.back.copies = copies.into();
        if !copies {
            self.all_go_back(&together, name);
        }
        self.want_marks(&plan, start);
        self.back.marks.began = (start, Some(Instant::now()));
        match copies {
            true => self.copies_go_on(&together),
            false => self.arena.go_on(together.leader),
        }
        Ok(())
    }

    /// Says where marks are to be made in an execution that begins after so many transitions.
    fn want_marks(&mut self, plan: &Plan, start: u64) {
        let (memory, processes) = (self.spec.marks_memory, self.back.sharers());
        let marks = &mut self.back.marks;
        // Where there can be none, none is tried.
        let no_marks = self.back.stood.as_ref().is_some_and(|stood| stood.content() > MOST_SHARED)
            || !plan.goes_through_tree()
            || self.arena.control.pool_used > MOST_POOL;
        let (wanted, every) = match no_marks || self.spec.marks == 0 && !self.back.trial.makes() {
            true => (Vec::new(), 0),
            false => marks.wanted(start, plan.prefix_len.into(), self.spec.marks),
        };
        let used = self.arena.control.pool_used;
        let back = &mut self.arena.back;
        let most = marks.most(memory, back, used, processes);
        back.room = marks.room(memory, most, used, processes);
        // One is given up for the next only where there is to be a next.
        let slot = if every > 0 { marks.free_slot(most) } else { u32::MAX };
        let pays = !wanted.is_empty() || self.spec.marks > 0 && every > 0;
        let (n_wanted, every) = if slot == u32::MAX { (0, 0) } else { (wanted.len() as u32, every) };
        (back.n_wanted, back.every, back.marked_at, back.slot) = (n_wanted, every, start, slot);
        back.no_room = u32::from(pays && most == 0);
        back.wanted[..wanted.len()].copy_from_slice(&wanted);
        self.next_original();
    }

    /// The process that has the turn has made a mark: the others do too, vsrun keeps the rest, and it goes on.
    fn has_marked(&mut self) -> io::Result<()> {
        let since = Instant::now();
        let copies = self.back.copies;
        let all = if copies { self.all_copied() } else { self.all_mark() };
        let Some(together) = all else {
            if !copies && !self.back.is_member(self.real_pid(self.arena.back.speaker)) {
                self.say_to_keep_nothing();
            }
            self.arena.marks_no_more();
            self.goes_on();
            return Ok(());
        };
        let step = self.arena.taken;
        let processes = self.back.sharers();
        let passed = self.back.passed(&self.arena.control.passed);
        let GoingBack { marks, stood, .. } = &mut self.back;
        let used = self.arena.control.pool_used;
        let reached = self.arena.reached().filter(|_| used <= MOST_POOL);
        let (Some(reached), Some(stood)) = (reached, stood.as_mut().filter(|stood| stood.content() <= MOST_SHARED))
        else {
            self.arena.marks_no_more();
            self.goes_on();
            return Ok(());
        };
        let mut state = match marks.spare.pop() {
            Some(state) => state,
            None => {
                let state = RootState::take(&self.arena)?;
                // It grows with what the program has; a quarter more is reckoned with.
                marks.state_size = marks.state_size.max(state.size() / 4 * 5);
                state
            }
        };
        state.take_again(&self.arena);
        let steps = &self.arena.trace()[marks.path.len()..];
        marks.path.extend(steps.iter().map(|s| Choice::new(s.act.uid, s.value, s.act.op.kind)));
        let (printed, later) = (self.output.bytes()?, stood.later()?);
        let pool = (used, Bytes::take(&Pool(&self.pool), (0, used)));
        let (slot, seen_from) = (self.arena.back.slot, marks.seen_from);
        let mut others = Vec::new();
        if marks.path.len() as u64 == step {
            let plan = until_prefix_ends(self.arena.plan);
            marks.made += 1;
            let name = marks.made;
            others = together.others.clone();
            marks.all.push(Mark {
                slot,
                step,
                plan,
                seen_from,
                state,
                reached,
                pool,
                printed,
                later,
                together,
                name,
                passed,
            });
        } else {
            // Not all steps are recorded.
            self.arena.marks_no_more();
        }
        let most = marks.most(self.spec.marks_memory, &self.arena.back, used, processes);
        self.arena.back.room = marks.room(self.spec.marks_memory, most, used, processes);
        self.arena.back.slot = marks.free_slot(most);
        // Its process has kept about as much; of several all have been waited for.
        let times = if processes > 1 { 1.0 } else { 2.0 };
        marks.mark = times * since.elapsed().as_nanos() as f64;
        let name = marks.made;
        if copies {
            self.next_original();
            self.end_unused();
        } else {
            others.iter().for_each(|&p| self.comes_to(p, name));
        }
        self.goes_on();
        Ok(())
    }

    /// All processes but the one that has the turn, which has, keep what they need to come back here; those that are new join, that one too. `None`: one of
    /// them cannot.
    fn all_mark(&mut self) -> Option<Together> {
        let together = self.together(0)?;
        for &p in &together.others {
            let pid = self.real_pid(p);
            match self.back.is_member(pid) {
                true => self.commands(p, Order::MARK).ok()?,
                false => {
                    let mut stood = self.back.stood.take()?;
                    let member = self.joins(p, &stood.members);
                    let joined = member.map(|member| stood.members.push(member));
                    self.back.stood = Some(stood);
                    joined.ok()?;
                }
            }
        }
        let leader = self.real_pid(together.leader);
        if !self.back.is_member(leader) {
            let kept = self.keep_for(leader, &self.back.stood.as_ref()?.members).ok()?;
            self.say_what_to_keep(leader)?;
            self.back.stood.as_mut()?.members.push(Member { pid: leader, kept, state: None });
        }
        let members = self.back.stood.as_ref()?.members.len();
        Some(Together { members, ..together })
    }

    /// The process that has stopped with the turn does.
    fn goes_on(&mut self) {
        self.arena.go_on(self.arena.back.speaker);
    }

    /// Who ends the execution still says so: another process has ended before.
    pub(super) fn is_to_speak(&self, gone: Pid) -> bool {
        let holds = self.back.under_way && self.arena.back.holds != 0 && self.arena.stand() == Stand::RUNS;
        holds && self.turn_holder() != Some(gone)
    }

    /// A process that has ended was still to go back in this execution, which counts for nothing then.
    pub(super) fn is_missed(&mut self, gone: Pid) -> bool {
        let process = self.process_of(gone.as_raw()).filter(|_| self.back.under_way && self.back.is_member(gone));
        let is_late = process.is_some_and(|p| self.arena.late(p).is_some());
        let missed = is_late || self.back.copies && self.stood_for_one(gone);
        self.arena.back.astray |= u32::from(missed);
        missed
    }

    /// A process could not come back to where the execution was to begin, or one of several to where it was within it.
    pub(super) fn went_astray(&self) -> bool {
        let start = self.back.marks.began.0;
        let did_not_begin = self.arena.stand() == Stand::GIVEN_UP && self.arena.taken == start;
        self.back.resumed && (did_not_begin || self.arena.back.astray != 0)
    }

    /// Waits for what comes next of the execution that is under way.
    pub(super) fn await_next(&mut self) -> io::Result<Awaited> {
        let wait = |block| wait_any(block).map_err(io::Error::other);
        while self.back.under_way {
            if let Some(ended) = self.back.ended.take() {
                return Ok(Awaited::Child(ended));
            }
            match self.arena.stand() {
                Stand::STOPPED => self.has_stopped()?,
                Stand::MARKED => self.has_marked()?,
                Stand::BACK => {
                    self.back.under_way = false;
                    self.back.came_back += 1;
                    let speaker = self.arena.back.speaker;
                    let there = self.arena.world.procs.get(speaker).map(|p| Pid::from_raw(p.own.real_pid));
                    self.back.speaker = there.filter(|&pid| self.back.is_member(pid)).map(|_| speaker);
                    self.output.rests()?;
                    return Ok(Awaited::Back);
                }
                stand @ (Stand::ASKED | Stand::RUNS) => {
                    let interrupted = self.arena.await_stand(stand, GLANCE);
                    match self.arena.stand() {
                        next if next != stand => continue,
                        _ if interrupted => return Ok(Awaited::Child(Waited::Interrupted)),
                        _ => {}
                    }
                    match wait(false)? {
                        Waited::NothingYet => {}
                        other => return Ok(Awaited::Child(other)),
                    }
                }
                // It ends as any other.
                _ => return wait(true).map(Awaited::Child),
            }
        }
        wait(true).map(Awaited::Child)
    }

    /// The program has come to its first choice.
    fn has_stopped(&mut self) -> io::Result<()> {
        let copies = self.back.copies;
        let stood = if copies { self.stand_still() } else { self.stand() };
        match stood {
            Ok(stood) => {
                let others = stood.first.others.clone();
                self.back.stood = Some(stood);
                self.back.marks.began = (0, Some(Instant::now()));
                if copies {
                    self.next_original();
                } else {
                    others.iter().for_each(|&p| self.comes_to(p, 0));
                    self.arena.back.holds = 1;
                }
            }
            Err(why) => {
                log::debug!("processes cannot stand together: {why:?}");
                if !copies {
                    self.say_to_keep_nothing();
                }
                self.back.cause = Some(why);
            }
        }
        self.goes_on();
        Ok(())
    }

    fn stand(&mut self) -> Result<Stood, Hinders> {
        let first = self.together(0).ok_or(Hinders::PROCESSES)?;
        let pid = self.real_pid(first.leader);
        if !self.kept.has_no_names() {
            return Err(Hinders::SHARED);
        }
        let mut members = Vec::new();
        for &p in &first.others {
            members.push(self.joins(p, &members)?);
        }
        members.push(Member { pid, kept: self.keep_for(pid, &members)?, state: None });
        self.say_what_to_keep(pid).ok_or(Hinders::ROOM)?;
        let first = Together { members: members.len(), ..first };
        self.stood(first, members)
    }

    /// What stands in the arena at the first choice.
    pub(super) fn stood(&self, first: Together, members: Vec<Member>) -> Result<Stood, Hinders> {
        let mut recorded = ArenaMap::private().map_err(|_| Hinders::ROOM)?;
        recorded.take_recorded(&self.arena);
        let state = RootState::take(&self.arena).map_err(|_| Hinders::ROOM)?;
        let key = Key::of(self.arena.plan, &self.arena);
        let printed = self.output.bytes().map_err(|_| Hinders::ROOM)?;
        let passed = self.back.passed(&self.arena.control.passed);
        Ok(Stood { members, first, key, state, recorded, printed, passed })
    }

    /// Says which memory is watched, and which pages are kept. `None`: there is too much.
    pub(super) fn say_what_to_keep(&mut self, pid: Pid) -> Option<()> {
        let maps = Mapping::parse_all(&fs::read(format!("/proc/{pid}/maps")).ok()?);
        let spans = spans(&maps, if self.back.far { FAR } else { NEAR });
        let inside = |page: u64| spans.iter().any(|span| span.is_writable() && span.start <= page && page < span.end);
        let pages: Vec<u64> = self.back.pages.iter().copied().filter(|&page| inside(page)).collect();
        if spans.len() > MAX_SPANS || pages.len() > MAX_BACK_PAGES {
            return None;
        }
        let output = fs::metadata(format!("/proc/self/fd/{}", self.output.fd().as_raw_fd())).ok()?;
        let is_output = |fd: u32| {
            let found = fs::metadata(format!("/proc/{pid}/fd/{fd}"));
            found.is_ok_and(|found| (found.dev(), found.ino()) == (output.dev(), output.ino()))
        };
        let back = &mut self.arena.back;
        back.printed = (0..32).filter(|&fd| is_output(fd)).fold(0, |bits, fd| bits | 1 << fd);
        back.spans[..spans.len()].copy_from_slice(&spans);
        back.n_spans = spans.len() as u32;
        back.pages[..pages.len()].copy_from_slice(&pages);
        back.n_pages = pages.len() as u32;
        back.n_missed = 0;
        Some(())
    }

    /// The process that reads this goes on as any other: there cannot be so many.
    pub(super) fn say_to_keep_nothing(&mut self) {
        self.arena.back.n_spans = u32::MAX;
    }

    /// It does, and the execution that is over has shown pages that are written of which that was not known.
    pub(super) fn has_learnt(&self) -> bool {
        self.arena.stand() == Stand::GIVEN_UP && self.arena.back.why == Hinders::PAGES && !self.back.off
    }

    /// An execution is over; `rough`: not by itself, or what it leaves is not to be trusted.
    pub(super) fn settle_back(&mut self, rough: bool) {
        let asked = std::mem::take(&mut self.back.asked);
        self.back.marks.over(self.arena.taken);
        if !asked {
            // What was recorded on the way to marks has been written over.
            self.back.marks.clear();
        }
        let came_back = match self.back.copies {
            false => self.arena.stand() == Stand::BACK,
            true => self.arena.stand() == Stand::ENDS && self.arena.back.astray == 0 && self.back.stood.is_some(),
        };
        (self.back.why, self.back.did) = (None, asked && !rough && came_back);
        self.back.under_way &= !(asked && self.back.copies);
        self.try_marks();
        match asked {
            true if self.back.did => self.back.wins(GAIN),
            true => self.has_not_gone_back(),
            false => {
                self.back.wins(1);
                if rough {
                    self.end_standing();
                }
            }
        }
    }

    /// The CPU time, in ns, that this worker and the processes that go back have taken so far: by the clock, others would count that run beside them. `None`: it
    /// cannot be told.
    fn spent(&self) -> Option<f64> {
        let clock = |clock: ClockId| Some(clock.now().ok()?.num_nanoseconds() as f64);
        let members = self.back.stood.iter().flat_map(|stood| &stood.members).filter(|member| member.pid.as_raw() > 0);
        let each = members.map(|member| clock(ClockId::pid_cpu_clock_id(member.pid).ok()?));
        // Copies are over by then.
        let over = self.back.copies.then(|| {
            let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok()?;
            Some((usage.user_time().num_nanoseconds() + usage.system_time().num_nanoseconds()) as f64)
        });
        [clock(ClockId::CLOCK_THREAD_CPUTIME_ID)].into_iter().chain(over).chain(each).sum()
    }

    /// Learns from the execution that is over whether marks pay.
    fn try_marks(&mut self) {
        let before = self.back.spent.take().filter(|_| self.back.resumed && self.back.did && self.spec.marks == 0);
        let Some(before) = before else { return };
        let spent = if self.back.trial.rests() { 0.0 } else { self.spent().map_or(0.0, |now| now - before) };
        let GoingBack { marks, trial, .. } = &mut self.back;
        let marked = marks.began.0 > 0 || !marks.all.is_empty();
        let rested = trial.rests();
        if trial.over(spent, marked) {
            marks.clear();
        }
        if !rested && trial.rests() && !trial.makes() {
            // There are none for a long time: what they have taken is given back, by the process with its end.
            marks.spare.clear();
            self.end_standing();
        }
    }

    /// The execution that was to go back has ended, or is broken off, and its process with it.
    fn has_not_gone_back(&mut self) {
        self.back.under_way = false;
        let is_told = self.arena.stand() == Stand::GIVEN_UP || self.arena.back.astray != 0;
        self.end_standing();
        let back = &mut self.back;
        let why = if is_told { self.arena.back.why } else { Hinders::NONE };
        // That they are to keep nothing is no reason of its own.
        let why = back.cause.take().unwrap_or(why);
        back.why = Some(why);
        log::debug!(
            "an execution did not go back: {why:?}, {} pages, {} missed; {} did",
            back.pages.len(),
            self.arena.back.n_missed,
            back.came_back
        );
        if why == Hinders::PAGES {
            let missed = self.arena.back.missed();
            back.pages.extend(missed.iter().filter(|page| page.is_multiple_of(4096)));
            back.lessons += 1;
            back.off |= back.lessons > LESSONS || back.pages.len() > MAX_BACK_PAGES;
        } else if why == Hinders::SHADOWS && !back.far {
            // The next one has these.
            (back.far, back.why) = (true, None);
        } else {
            back.lost += LOSS;
            back.off |= why == Hinders::KERNEL;
        }
        let in_vain = back.off || back.lost >= IN_VAIN;
        if in_vain && !back.copies && self.spec.checkpoint == Checkpoint::Auto {
            // What a process cannot undo a copy of it has not done.
            (back.copies, back.off, back.lost) = (true, false, 0);
        }
        self.arena.back.stand = Stand::NONE;
    }

    /// What became of the process of the execution last run.
    pub fn goes_back(&self) -> GoesBack {
        match self.back.why {
            _ if self.back.did => {
                let copied = self.back.copies;
                GoesBack::Did { from_mark: self.back.marks.began.0 > 0, no_room: self.arena.back.no_room > 0, copied }
            }
            // The next one knows these.
            Some(Hinders::PAGES) if !self.back.off => GoesBack::WasNotAsked,
            Some(why) => GoesBack::Hindered(sentence(why)),
            None => GoesBack::WasNotAsked,
        }
    }

    /// Ends the processes that stand before their first choice, if there are any.
    pub(super) fn end_standing(&mut self) {
        self.back.marks.clear();
        self.back.gone = false;
        if let Some(stood) = self.back.stood.take() {
            let pids = stood.members.into_iter().map(|member| member.pid.as_raw());
            reap(pids.filter(|&pid| pid > 0), &self.dir);
            (self.arena.back.stand, self.arena.back.holds) = (Stand::NONE, 0);
        }
    }

    /// The processes that go back.
    pub(super) fn standing(&self) -> Vec<i32> {
        let stood = self.back.stood.as_ref().filter(|_| self.back.copies || self.arena.stand() == Stand::BACK);
        stood.iter().flat_map(|stood| &stood.members).map(|member| member.pid.as_raw()).collect()
    }
}

/// Why a process does not go back, for people.
fn sentence(why: Hinders) -> String {
    let text = match why {
        Hinders::NONE => "it ended otherwise, or before its first choice",
        Hinders::KERNEL => "the kernel does not tell which pages are written, or is not allowed to (userfaultfd, PAGEMAP_SCAN; Linux 6.7)",
        Hinders::PROCESSES => "there are more processes than go back together (64), or several whose states would have to be known",
        Hinders::ROOM => "there is too much memory, or in too many pieces",
        Hinders::PAGES => "it wrote to other pages than executions before",
        Hinders::SHARED => "it uses files or memory that processes share",
        Hinders::MAPPINGS => "mappings of files or of the heap were changed",
        Hinders::GONE => "one of its processes was ended by somebody else",
        Hinders::COPIES => "the kernel refused a copy of a process (ulimit -u, pids.max, memory)",
        Hinders::SHADOWS => "it used memory far from what it had at its first choice",
        Hinders(nr) => return format!("system call {}", vsrun_model::calls::name(nr.into()).unwrap_or("without a name")),
    };
    text.into()
}
