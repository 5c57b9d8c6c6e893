//! Executions that begin at the first choice, in a process that has gone back to it from the end of the execution before: see
//! `vsrun_model::back`, and `gate::back` in the shim.
//!
//! A process that is asked to stops before its first choice. What it finds there is the same for every schedule, so what stands in the arena then is kept
//! here, and put back each time; its own memory the process puts back by itself. Which pages that are is learnt from executions.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::{Duration, Instant};

use nix::unistd::Pid;
use vsrun_model::arena::{Choice, Command, Plan};
use vsrun_model::back::{Hinders, Stand, MAX_BACK_PAGES, MAX_SPANS};

use super::checkpoint::{ArenaMap, RootState};
use super::processes::reap;
use super::setup::{plan_of, Guarded};
use super::spans::{spans, FAR, NEAR};
use super::stood::{recorded_from, until_prefix_ends, GoingBack, Key, Mark, Stood};
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
const MOST_POOL: u64 = 1 << 20;

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
    pub(super) fn may_go_back(&self, tells: bool) -> bool {
        let back = &self.back;
        let wanted = match self.spec.checkpoint {
            Checkpoint::Rollback => true,
            Checkpoint::Auto => tells || self.runs > FIRST,
            Checkpoint::Fork | Checkpoint::Replay => false,
        };
        wanted && !back.off && back.lost < IN_VAIN && !self.spec.guards && !self.spec.options.store_buffers
    }

    /// Begins an execution that goes back.
    pub(super) fn begin_back(&mut self, schedule: &Schedule) -> io::Result<()> {
        (self.back.under_way, self.back.asked, self.back.since) = (true, true, Some(Instant::now()));
        let (prefix_len, guide_len) = (schedule.prefix.len() as u32, schedule.guide.len() as u32);
        let plan = Plan { prefix_len, guide_len, ..plan_of(&self.spec, schedule) };
        let key = Key::of(plan, &self.arena);
        if self.back.stood.as_ref().is_some_and(|stood| stood.key != key) {
            self.end_standing();
        }
        let (marks, usable) = (&mut self.back.marks, self.arena.back.usable);
        self.back.resumed = self.back.stood.is_some();
        let Some(stood) = &mut self.back.stood else {
            marks.clear();
            (marks.seen_from, marks.began) = (recorded_from(&plan).unwrap_or(u64::MAX), (0, None));
            self.arena.back.n_missed = 0;
            (self.arena.back.held, self.arena.back.largest) = (0, 0);
            self.arena.back.stand = Stand::ASKED;
            self.want_marks(&plan, 0);
            return self.begin(schedule, Guarded::None, Command::RUN);
        };
        let mark = marks.choose(&plan, &schedule.prefix, usable);
        let start = mark.map_or(0, |mark| mark.step);
        let reached = mark.map(|mark| mark.reached);
        self.arena.back.to = mark.map_or(0, |mark| mark.slot + 1);
        let (state, printed) = mark.map_or((&stood.state, stood.printed), |mark| (&mark.state, mark.printed));
        state.restore(&mut self.arena);
        self.output.cut(printed)?;
        stood.kept.restore()?;
        if let Some(mark) = mark {
            stood.kept.restore_places(&mark.places)?;
            self.pool.write_all_at(&mark.pool, 0)?;
        }
        self.order(schedule, Guarded::None, Command::RUN)?;
        match (reached, &self.back.stood) {
            (Some(reached), _) => self.arena.goes_on_from(&reached),
            (None, Some(stood)) => self.arena.take_recorded(&stood.recorded),
            (None, None) => {}
        }
        self.want_marks(&plan, start);
        self.back.marks.began = (start, Some(Instant::now()));
        self.arena.go_on();
        Ok(())
    }

    /// Says where marks are to be made in an execution that begins after so many transitions.
    fn want_marks(&mut self, plan: &Plan, start: u64) {
        let memory = self.spec.marks_memory;
        let marks = &mut self.back.marks;
        // Where there can be none, none is tried.
        let shares = self.back.stood.as_ref().is_some_and(|stood| !stood.kept.has_no_content());
        let no_marks = shares || !plan.goes_through_tree() || self.arena.control.pool_used > MOST_POOL;
        let (wanted, every) = match no_marks || self.spec.marks == 0 && !self.back.trial.makes() {
            true => (Vec::new(), 0),
            false => marks.wanted(start, plan.prefix_len.into(), self.spec.marks),
        };
        let used = self.arena.control.pool_used;
        let back = &mut self.arena.back;
        let most = marks.most(memory, back, used);
        back.room = marks.room(memory, most, used);
        // One is given up for the next only where there is to be a next.
        let slot = if every > 0 { marks.free_slot(most) } else { u32::MAX };
        let pays = !wanted.is_empty() || self.spec.marks > 0 && every > 0;
        let (n_wanted, every) = if slot == u32::MAX { (0, 0) } else { (wanted.len() as u32, every) };
        (back.n_wanted, back.every, back.marked_at, back.slot) = (n_wanted, every, start, slot);
        back.no_room = u32::from(pays && most == 0);
        back.wanted[..wanted.len()].copy_from_slice(&wanted);
    }

    /// The process has made a mark.
    fn has_marked(&mut self) -> io::Result<()> {
        let since = Instant::now();
        let step = self.arena.taken;
        let GoingBack { marks, stood, .. } = &mut self.back;
        let used = self.arena.control.pool_used;
        let reached = self.arena.reached().filter(|_| used <= MOST_POOL);
        let kept = stood.as_mut().map(|stood| &mut stood.kept).filter(|kept| kept.has_no_content());
        let (Some(reached), Some(kept)) = (reached, kept) else {
            self.arena.marks_no_more();
            self.arena.go_on();
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
        let (printed, places) = (self.output.bytes()?, kept.places()?);
        let mut pool = vec![0; used as usize];
        self.pool.read_exact_at(&mut pool, 0)?;
        let (slot, seen_from) = (self.arena.back.slot, marks.seen_from);
        if marks.path.len() as u64 == step {
            let plan = until_prefix_ends(self.arena.plan);
            marks.all.push(Mark { slot, step, plan, seen_from, state, reached, pool, printed, places });
        } else {
            // Not all steps are recorded.
            self.arena.marks_no_more();
        }
        let most = marks.most(self.spec.marks_memory, &self.arena.back, used);
        self.arena.back.room = marks.room(self.spec.marks_memory, most, used);
        self.arena.back.slot = marks.free_slot(most);
        // The process keeps about as much.
        marks.mark = 2.0 * since.elapsed().as_nanos() as f64;
        self.arena.go_on();
        Ok(())
    }

    /// The process could not come back to where the execution was to begin.
    pub(super) fn did_not_begin(&self) -> bool {
        let start = self.back.marks.began.0;
        self.back.resumed && self.arena.stand() == Stand::GIVEN_UP && self.arena.taken == start
    }

    /// Waits for what comes next of the execution that is under way.
    pub(super) fn await_next(&mut self) -> io::Result<Awaited> {
        let wait = |block| wait_any(block).map_err(io::Error::other);
        while self.back.under_way {
            match self.arena.stand() {
                Stand::STOPPED => self.has_stopped()?,
                Stand::MARKED => self.has_marked()?,
                Stand::BACK => {
                    self.back.under_way = false;
                    self.back.came_back += 1;
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

    /// The process has come to its first choice.
    fn has_stopped(&mut self) -> io::Result<()> {
        let stood = self.stand();
        let told = match &stood {
            Some(stood) => self.say_what_to_keep(stood.pid),
            None => None,
        };
        match told {
            Some(()) => {
                self.back.stood = stood;
                self.back.marks.began = (0, Some(Instant::now()));
            }
            // There cannot be so many.
            None => self.arena.back.n_spans = u32::MAX,
        }
        self.arena.go_on();
        Ok(())
    }

    fn stand(&self) -> Option<Stood> {
        let pid = Pid::from_raw(self.arena.world.procs.get(0)?.own.real_pid);
        let kept = self.keep_of(pid).ok().filter(|kept| kept.has_no_names() && self.kept.has_no_names())?;
        let mut recorded = ArenaMap::private().ok()?;
        recorded.take_recorded(&self.arena);
        Some(Stood {
            pid,
            key: Key::of(self.arena.plan, &self.arena),
            state: RootState::take(&self.arena).ok()?,
            recorded,
            kept,
            printed: self.output.bytes().ok()?,
        })
    }

    /// Says which memory is watched, and which pages are kept. `None`: there is too much.
    fn say_what_to_keep(&mut self, pid: Pid) -> Option<()> {
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
        (self.back.why, self.back.did) = (None, asked && !rough && self.arena.stand() == Stand::BACK);
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

    /// Learns from the execution that is over whether marks pay.
    fn try_marks(&mut self) {
        let GoingBack { marks, trial, since, resumed, did, .. } = &mut self.back;
        let Some(since) = since.take().filter(|_| *resumed && *did && self.spec.marks == 0) else { return };
        let marked = marks.began.0 > 0 || !marks.all.is_empty();
        let rested = trial.rests();
        if trial.over(since.elapsed().as_nanos() as f64, marked) {
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
        let stand = self.arena.stand();
        self.end_standing();
        let back = &mut self.back;
        let why = if stand == Stand::GIVEN_UP { self.arena.back.why } else { Hinders::NONE };
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
        self.arena.back.stand = Stand::NONE;
    }

    /// What became of the process of the execution last run.
    pub fn goes_back(&self) -> GoesBack {
        match self.back.why {
            _ if self.back.did => {
                GoesBack::Did { from_mark: self.back.marks.began.0 > 0, no_room: self.arena.back.no_room > 0 }
            }
            // The next one knows these.
            Some(Hinders::PAGES) if !self.back.off => GoesBack::WasNotAsked,
            Some(why) => GoesBack::Hindered(sentence(why)),
            None => GoesBack::WasNotAsked,
        }
    }

    /// Ends the process that stands before its first choice, if there is one.
    pub(super) fn end_standing(&mut self) {
        self.back.marks.clear();
        if let Some(stood) = self.back.stood.take() {
            reap([stood.pid.as_raw()], &self.dir);
            self.arena.back.stand = Stand::NONE;
        }
    }

    /// The process that stands before its first choice.
    pub(super) fn standing(&self) -> Option<i32> {
        let stood = self.back.stood.as_ref().filter(|_| self.arena.stand() == Stand::BACK);
        stood.map(|stood| stood.pid.as_raw())
    }
}

/// Why a process does not go back, for people.
fn sentence(why: Hinders) -> String {
    let text = match why {
        Hinders::NONE => "it ended otherwise, or before its first choice",
        Hinders::KERNEL => "the kernel does not tell which pages are written, or is not allowed to (userfaultfd, PAGEMAP_SCAN; Linux 6.7)",
        Hinders::PROCESSES => "there are several processes",
        Hinders::ROOM => "there is too much memory, or in too many pieces",
        Hinders::PAGES => "it wrote to other pages than executions before",
        Hinders::SHARED => "it uses files or memory that processes share",
        Hinders::MAPPINGS => "mappings of files or of the heap were changed",
        Hinders::SHADOWS => "it used memory far from what it had at its first choice",
        Hinders(nr) => return format!("system call {}", vsrun_model::calls::name(nr.into()).unwrap_or("without a name")),
    };
    text.into()
}
