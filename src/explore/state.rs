//! What the workers of an exploration share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use vsrun_model::arena::{Policy, MAX_SYSCALLS};

use super::covered::Covering;
use super::executions::{Counts, Part, Task};
use super::failure::Failure;
use super::first::{self, First};
use super::found::Found;
use super::outcomes::Outcomes;
use super::progress::{Figures, Progress};
use super::save::Saver;
use super::setting::{watch, Of, Setting};
use super::sharing::Sharing;
use super::unfinished::Unfinished;
use crate::config::SearchKind;
use crate::finding::Bug;
use crate::incomplete::Reason;
use crate::race::LockOrder;
use crate::runtime::GoesBack;
use crate::schedule::Schedule;
use crate::search::Search;
use crate::trace::Trace;

/// Why an exploration ends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Stop {
    /// The search is over.
    Over,
    /// At a bug, or at something that is not supported.
    FirstBug,
    /// At a bound.
    Bound(Reason),
    /// vsrun was asked to end.
    Interrupted,
    /// A worker failed.
    Failed,
}

impl Stop {
    /// Why the exploration is not complete then.
    pub fn reason(self) -> Option<Reason> {
        match self {
            Stop::Over => None,
            Stop::FirstBug => Some(Reason::FirstBug),
            Stop::Bound(reason) => Some(reason),
            Stop::Interrupted => Some(Reason::Interrupted),
            Stop::Failed => Some(Reason::Failed),
        }
    }
}

/// What the workers share.
pub(super) struct State {
    pub search: Box<dyn Search>,
    /// What is known of the sharing of objects.
    pub sharing: Sharing,
    /// In what order threads acquire locks.
    pub locks: LockOrder,
    pub counts: Counts,
    /// Bugs, by identity.
    pub found: BTreeMap<u64, Found>,
    /// What executions came to that ran to their end.
    pub outcomes: Outcomes,
    /// An execution that was cut or broken off.
    pub unfinished: Option<Unfinished>,
    /// What ended the exploration: something that is not supported, somebody outside, or a failure.
    pub obstacle: Option<Bug>,
    pub stop: Option<Stop>,
    /// Calls that went to the kernel, by worker, those of the root only with the first.
    pub passed: Vec<Vec<u32>>,
    /// The same before this run, if it was resumed.
    pub passed_earlier: Vec<u32>,
    /// How executions of this run came to where they began.
    pub back: WentBack,
    pub progress: Progress,
    pub saver: Option<Saver>,
    /// When this run began, and for how many seconds earlier ones explored.
    pub started_at: Instant,
    pub seconds_earlier: f64,
    /// Executions that were started.
    pub started: u64,
    pub under_way: usize,
    pub idle: usize,
    /// The first worker has its world.
    pub open: bool,
    /// What is drawn by lot.
    pub first: Option<First>,
    /// The first execution was long, and waits for what is drawn before.
    put_off: Option<Schedule>,
    /// Whether the first execution is long is not known.
    unseen: bool,
    /// In the beginning of an execution nothing more turned out to be an object.
    pub looked_for_objects: bool,
    /// What executions have covered, where that is asked for.
    pub covering: Option<Covering>,
}

/// How executions came to where they began.
#[derive(Default)]
pub struct WentBack {
    /// So many by rollback.
    pub executions: u64,
    /// So many by copies of processes that stand still.
    pub copied: u64,
    /// So many from within the execution before.
    pub from_marks: u64,
    /// In so many there was no room for a state that the next one could have gone on from.
    pub no_room: u64,
    /// Why the last one did not that could not.
    pub hindered: Option<String>,
}

impl WentBack {
    /// One more is over.
    pub fn note(&mut self, back: GoesBack) {
        match back {
            GoesBack::Did { from_mark, no_room, copied } => {
                self.executions += u64::from(!copied);
                self.copied += u64::from(copied);
                self.no_room += u64::from(no_room);
                self.from_marks += u64::from(from_mark);
            }
            GoesBack::Hindered(why) => self.hindered = Some(why),
            GoesBack::WasNotAsked => {}
        }
    }
}

impl State {
    /// An exploration that has not begun, or that goes on from `counts`.
    pub fn new((search, sharing): (Box<dyn Search>, Sharing), counts: Counts, progress: Progress) -> State {
        State {
            search,
            started_at: Instant::now(),
            seconds_earlier: 0.0,
            started: counts.executions + sharing.earlier(),
            sharing,
            locks: LockOrder::default(),
            counts,
            found: BTreeMap::new(),
            outcomes: Outcomes::default(),
            unfinished: None,
            obstacle: None,
            stop: None,
            passed: Vec::new(),
            back: WentBack::default(),
            passed_earlier: Vec::new(),
            progress,
            saver: None,
            under_way: 0,
            idle: 0,
            open: false,
            looked_for_objects: false,
            first: None,
            put_off: None,
            unseen: true,
            covering: None,
        }
    }

    /// Sums over the workers, by number of the call.
    pub fn passed_calls(&self) -> [u32; MAX_SYSCALLS] {
        let mut sums = [0u32; MAX_SYSCALLS];
        for worker in self.passed.iter().chain([&self.passed_earlier]) {
            sums.iter_mut().zip(worker).for_each(|(sum, n)| *sum = sum.saturating_add(*n));
        }
        sums
    }

    pub fn figures(&self) -> Figures {
        Figures {
            drawn: self.first.as_ref().map_or(0, First::drawn),
            ..figures(&*self.search, &self.counts, self.found.len())
        }
    }

    /// The search starts over, with what is known of objects now.
    pub fn start_over(&mut self, setting: &Setting) -> Result<(), Failure> {
        if let Of::Piece(_) | Of::Again(..) = setting.of {
            // Its beginning is that of a search in which these were no objects.
            self.end(Stop::Bound(Reason::Again));
            return Ok(());
        }
        log::debug!("the search starts over");
        self.search = setting.search()?;
        self.search.watch(watch(setting.until));
        self.unfinished = None;
        self.put_off = None;
        self.first.iter_mut().for_each(First::start_over);
        self.outcomes = Outcomes::default();
        self.sharing.start_over(self.counts.executions);
        self.counts.start_over();
        self.progress.start_over();
        Ok(())
    }

    /// The next execution.
    pub fn hand_out(&mut self, search: SearchKind) -> Option<Task> {
        let search_of = &self.search;
        let drawn = self.first.as_mut().and_then(|first| first.next(|| search_of.progress()));
        let (of, mut schedule) = match drawn {
            Some((lot, schedule)) => (Part::Lot(lot), schedule),
            None => self.next_of_search()?,
        };
        if search == SearchKind::Once {
            schedule.policy = Policy::LIKELY;
        }
        self.under_way += 1;
        self.started += 1;
        let (objects, restarts) = (Arc::clone(self.sharing.objects()), self.sharing.restarts());
        Some(Task { number: self.started, schedule, objects, restarts, of })
    }

    /// The search's next execution: of the first one its beginning, if there are lots to be drawn where it is long.
    fn next_of_search(&mut self) -> Option<(Part, Schedule)> {
        if let Some(schedule) = self.put_off.take() {
            return Some((Part::Search, schedule));
        }
        let schedule = self.search.next()?;
        match self.first.is_some() && self.unseen && self.under_way == 0 {
            true => Some((Part::Beginning, Schedule { most: Some(first::LONG), ..schedule })),
            false => Some((Part::Search, schedule)),
        }
    }

    /// Takes account of the work of an execution that is over, whosever it is; `new`: more of it turned out to be an object.
    pub fn note_part(&mut self, task: &Task, trace: &Trace, new: bool) {
        let Some(first) = &mut self.first else { return };
        let cut = task.was_cut(trace);
        match task.of {
            Part::Lot(lot) => first.done(lot, task.schedule.ticket, trace, cut),
            Part::Beginning if cut => {
                // It begins anew where there are new objects, and so does what is looked at.
                if !new {
                    self.unseen = false;
                    first.is_long();
                    first.began(trace);
                }
                self.put_off = Some(Schedule { most: None, ..task.schedule.clone() });
            }
            Part::Beginning | Part::Search => {
                self.unseen &= new;
                first.searched(trace);
            }
        }
    }

    /// Takes account of executions of which the search knows by now whether they are part of it.
    pub fn settle(&mut self) {
        let settled = self.search.settled();
        self.outcomes.settle(settled);
    }

    /// Ends the exploration unless something else has ended it.
    pub fn end(&mut self, stop: Stop) {
        self.stop.get_or_insert(stop);
    }

    /// Ends the exploration because it failed; what was found before is kept. A failure that is only that vsrun is asked to end,
    /// or that comes of the exploration's being over, is none.
    pub fn fail(&mut self, failure: &Failure) {
        if failure.is_interrupted() {
            return self.end(Stop::Interrupted);
        }
        if !matches!(self.stop, Some(Stop::FirstBug | Stop::Interrupted)) {
            self.obstacle.get_or_insert_with(|| Bug::failure(&failure.message, failure.code == 4));
        }
        self.end(Stop::FirstBug);
    }

    pub fn report_progress(&mut self) {
        let State { search, counts, found, progress, first, .. } = self;
        let drawn = first.as_ref().map_or(0, First::drawn);
        progress.look(|| Figures { drawn, ..figures(&**search, counts, found.len()) });
    }

    /// Saves to where `saver` does.
    ///
    /// # Errors
    /// One line.
    pub fn save<'f>(
        &self,
        setting: &Setting,
        saver: &mut Saver,
        found: impl Iterator<Item = &'f Found>,
    ) -> Result<(), String> {
        let passed = self.passed_calls();
        let seen = (&self.counts, &self.outcomes, &passed[..]);
        saver.save(setting, (&*self.search, &self.sharing), seen, found)
    }

    /// Saves where it is time to; what goes wrong is noted.
    pub fn save_if_due(&mut self, setting: &Setting) {
        let Some(mut saver) = self.saver.take_if(|saver| saver.is_due()) else { return };
        if let Err(e) = self.save(setting, &mut saver, self.found.values()) {
            self.counts.note(&e);
        }
        self.saver = Some(saver);
    }
}

fn figures(search: &dyn Search, counts: &Counts, bugs: usize) -> Figures {
    Figures {
        executions: counts.executions - search.discarded(),
        drawn: 0,
        transitions: search.transitions(),
        max_depth: counts.max_depth,
        frontier: search.frontier(),
        bugs,
        cut: counts.cut,
        done: search.progress(),
    }
}
