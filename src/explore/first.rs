//! Bugs first: beside the systematic search schedules are drawn by lot. A systematic search turns back at the last choice of its first execution, so in a
//! program whose executions are long, or have no end, it does not come near the first choices for a long time; what a lot finds in its first draws it may
//! find in a day.
//!
//! Which lots: in turn a random walk, partial order sampling, a selectively uniform walk, samples guided by what was read from whom, priorities, executions that begin like one that showed something new. Between
//! them what executions of the search allow that they did not show: circles of locks at once, operations in the other order as every third one. In a longer
//! search what few preemptions can bring about comes beside these (see [`super::few`]). What they find is a bug like any other. They are no part of the search: its counts,
//! its outcomes and whether it is complete do not depend on them.
//!
//! NOTE [Measure]. How much is drawn goes by the work that was done, not by the clock, so that a run can be repeated. Small searches come to their end
//! without any (but for predictions, where executions are not). Otherwise what was drawn has cost no more than the search has so far, and there is an end to it. Where the first execution is long there is
//! work to begin with: no bug of it is known, and one execution of the search costs as much as hundreds of short ones.
//!
//! NOTE [Out of reach]. A search that has not done a tenth of its tree by then, as far as can be estimated, or whose estimate grows and grows, may well never
//! come to its end. Then most of the work goes to what is drawn, for as long as that is so.

use super::few::Few;
use crate::config::Config;
use crate::finding::FewRun;
use crate::schedule::Schedule;
use crate::search::{Novel, Pct, Predict, Random, Rff, Search, Surw};
use crate::trace::Trace;

/// What an execution costs beside its transitions, in transitions.
const EXECUTION: u64 = 200;
/// So much the search has done before anything is drawn.
const BEFORE: u64 = 128 * EXECUTION;
/// So much may be drawn at once where the first execution is long.
const AT_FIRST: u64 = 1_000_000;
/// So much may be drawn in all, and in so many executions.
const IN_ALL: (u64, u64) = (20_000_000, 4000);
/// A search that has done less of its tree when those are over is out of reach: then so many times as much as the search does is drawn. If the estimate is right
/// that costs at most 0.3 of the search.
const OUT_OF_REACH: f64 = 0.1;
const BESIDE: u64 = 3;
/// So is one of which less than half is done and whose tree has turned out so much larger since it had half as many executions, or less: the estimate is
/// worth little yet.
const GROWS: f64 = 1.2;
/// So much the search has done before few preemptions are looked at; these get one for so many of its own.
const BEFORE_FEW: u64 = 1000 * EXECUTION;
const FEW: u64 = 2;
/// The first execution is long if it has more transitions than this; what is drawn is cut there.
pub(super) const LONG: u64 = 2_000;
/// So many executions of a search whose executions are long come one after the other, and then what is drawn for them: each begins within the one before, which
/// one that is drawn between them would undo.
const TOGETHER: u64 = 32;
/// After so many executions that were cut in a row, the next ones may be four times as long.
const CUT: u64 = 64;
/// Changes of priority, and one more, of [`Pct`].
const DEPTH: u32 = 3;

/// What the search allows is looked at after so many of its executions.
const LOOKS: [u64; 6] = [1, 2, 8, 32, 128, 512];
/// Of a search whose executions have so many transitions, that is done at once: by lot one hardly comes to an order that is far from those seen.
const LARGE: u64 = 256;
/// Of what else is to be drawn each such one is an operation in the other order.
const TURNED: u64 = 3;

/// What is drawn by lot.
pub(super) struct First {
    lots: [Box<dyn Search>; 6],
    /// What executions allow that they did not show.
    predict: Predict,
    few: Few,
    /// Executions that the search has had, and the transitions of the longest.
    searched: u64,
    longest: u64,
    /// Which of them come one after the other.
    turn: usize,
    /// Work of the search, and of what was drawn.
    spent: (u64, u64),
    /// Work on few preemptions.
    spent_on_few: u64,
    /// Executions handed out, but for those.
    drawn: u64,
    /// Executions with few preemptions handed out.
    few_run: u64,
    /// Executions that it has had when it last started over.
    restarted: u64,
    /// Executions since then and how many there were to be in all, lately and when there were about half as many.
    estimates: [(u64, f64); 2],
    /// What was asked for last was to be drawn.
    drawing: bool,
    /// Transitions after which what is drawn is cut.
    most: u64,
    /// Executions that were cut there, in a row.
    cut: u64,
}

/// The order in which they come.
const TURNS: [usize; 8] = [0, 3, 5, 1, 2, 3, 5, 4];
/// The same where the search is out of reach: half of it begins like what showed something new, which finds bugs that need several rare things in turn.
const TURNS_ON: [usize; 8] = [5, 3, 5, 1, 5, 0, 5, 4];

/// A schedule that was drawn: by whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lot {
    /// By one of the lots.
    Drawn(usize),
    /// It is a prediction.
    Predicted,
    /// It has few preemptions, and is of this generation of them.
    Few(u64),
}

impl First {
    /// What is drawn with these options; `None`: nothing.
    pub fn new(config: &Config) -> Option<First> {
        config.draws_first().then(|| First::of(config.seed))
    }

    fn of(seed: u64) -> First {
        First {
            lots: [
                Box::new(Random::new(seed)),
                Box::new(Random::pos(seed)),
                Box::new(Surw::new(seed)),
                Box::new(Rff::new(seed)),
                Box::new(Pct::new(seed, DEPTH, Pct::FAIR)),
                Box::new(Novel::new(seed)),
            ],
            predict: Predict::new(seed),
            few: Few::new(),
            searched: 0,
            longest: 0,
            turn: 0,
            spent: (0, 0),
            spent_on_few: 0,
            drawn: 0,
            few_run: 0,
            restarted: 0,
            estimates: [(0, 0.0); 2],
            drawing: false,
            most: LONG,
            cut: 0,
        }
    }

    /// One beside the search, if it is time for one: the schedule, and whose it is.
    /// `done`: the part of the search that is done, as far as that is known.
    pub fn next(&mut self, done: impl FnOnce() -> Option<f64>) -> Option<(Lot, Schedule)> {
        let far = self.is_out_of_reach(done());
        let drawn = if self.is_due(far) { self.draw() } else { None };
        drawn.or_else(|| self.with_few_preemptions(far))
    }

    /// The search may well not come to its end.
    fn is_out_of_reach(&mut self, done: Option<f64>) -> bool {
        let Some(done) = done else { return true };
        let searched = self.searched - self.restarted;
        let all = searched as f64 / done;
        let [late, before] = &mut self.estimates;
        if searched >= 2 * late.0.max(1) {
            (*before, *late) = (*late, (searched, all));
        }
        done < OUT_OF_REACH || done < 0.5 && all > before.1 * GROWS
    }

    fn with_few_preemptions(&mut self, far: bool) -> Option<(Lot, Schedule)> {
        let search = self.spent.0;
        // Of long executions nothing would be covered.
        let worthwhile = far && self.longest <= LONG && search >= BEFORE_FEW;
        if !worthwhile || self.spent_on_few > search / FEW {
            return None;
        }
        let (generation, schedule) = self.few.next()?;
        self.spent_on_few += EXECUTION;
        self.few_run += 1;
        Some((Lot::Few(generation), Schedule { most: Some(LONG), ..schedule }))
    }

    /// The search starts over, with more known of objects: what was tried so far is not all that there is to choose.
    pub fn start_over(&mut self) {
        self.few.start_over();
        (self.restarted, self.estimates) = (self.searched, [(0, 0.0); 2]);
    }

    /// One is to be drawn now.
    fn is_due(&mut self, far: bool) -> bool {
        let (search, drawn) = self.spent;
        let begun = search >= BEFORE || self.longest >= LARGE && self.predict.predicts();
        let (may, drawn) = match self.goes_on() {
            false => (begun, drawn),
            true => (far, drawn / BESIDE),
        };
        let together = if self.longest > LONG { TOGETHER * (EXECUTION + self.longest) } else { 0 };
        let behind = if self.drawing { 0 } else { together };
        self.drawing = may && drawn.saturating_add(behind) < search;
        self.drawing
    }

    /// What is drawn in any case has been.
    fn goes_on(&self) -> bool {
        self.spent.1 >= IN_ALL.0 || self.drawn >= IN_ALL.1
    }

    /// The first execution is long.
    pub fn is_long(&mut self) {
        self.spent.0 += AT_FIRST;
    }

    /// The search has had an execution.
    pub fn searched(&mut self, trace: &Trace) {
        let transitions = trace.steps.len() as u64 + trace.unrecorded;
        self.spent.0 += EXECUTION + transitions;
        (self.searched, self.longest) = (self.searched + 1, self.longest.max(transitions));
        if LOOKS.contains(&self.searched) {
            self.predict.learn(trace);
        }
    }

    /// The beginning of a long first execution is known.
    pub fn began(&mut self, trace: &Trace) {
        self.predict.learn(trace);
    }

    /// The next schedule that is drawn, and whose it is.
    fn draw(&mut self) -> Option<(Lot, Schedule)> {
        let turned =
            self.predict.predicts() && !self.goes_on() && (self.drawn.is_multiple_of(TURNED) || self.spent.0 < BEFORE);
        let (lot, schedule) = if self.predict.deadlocks() > 0 || turned {
            (Lot::Predicted, self.predict.next()?)
        } else {
            let turns: &[usize] = if self.goes_on() { &TURNS_ON } else { &TURNS };
            let lot = turns[self.turn % turns.len()];
            self.turn += 1;
            (Lot::Drawn(lot), self.lots[lot].next()?)
        };
        self.drawn += 1;
        // With several workers these are under way at the same time.
        self.spent.1 += EXECUTION;
        Some((lot, Schedule { most: Some(self.most), ..schedule }))
    }

    /// What became of one; `cut`: it was at `most` transitions.
    pub fn done(&mut self, lot: Lot, ticket: u64, trace: &Trace, cut: bool) {
        match lot {
            Lot::Drawn(n) => self.lots[n].done(ticket, trace),
            Lot::Predicted => self.predict.done(ticket, trace),
            Lot::Few(generation) => {
                self.spent_on_few += trace.steps.len() as u64 + trace.unrecorded;
                return self.few.done(generation, ticket, trace);
            }
        }
        self.spent.1 += trace.steps.len() as u64 + trace.unrecorded;
        self.cut = if cut { self.cut + 1 } else { 0 };
        if self.cut >= CUT {
            (self.cut, self.most) = (0, self.most.saturating_mul(4));
        }
    }

    /// Executions that were run beside the search.
    pub fn drawn(&self) -> u64 {
        self.drawn + self.few_run
    }

    /// What few preemptions can bring about, as far as all of it was run.
    pub fn covered(&self) -> Option<FewRun> {
        self.few.covered()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vsrun_model::End;

    fn ran(end: End, transitions: u64) -> Trace {
        Trace { end, unrecorded: transitions, ..Trace::default() }
    }

    #[test]
    fn a_small_search_draws_nothing() {
        let mut first = First::of(0);
        for _ in 0..100 {
            first.searched(&ran(End::FINISHED, 40));
            assert!(!first.is_due(true));
        }
    }

    /// Executions of the search, and what was drawn, after so many in all; `far`: the search is out of reach.
    fn both(first: &mut First, all: usize, far: bool) -> (u64, u64) {
        let (mut searched, mut drawn) = (0u64, 0u64);
        for _ in 0..all {
            if first.is_due(far) {
                let (lot, schedule) = first.draw().unwrap();
                first.done(lot, schedule.ticket, &ran(End::FINISHED, 30), false);
                drawn += 1;
            } else {
                first.searched(&ran(End::FINISHED, 30));
                searched += 1;
            }
            assert!(drawn <= searched || drawn > IN_ALL.1);
        }
        (searched, drawn)
    }

    #[test]
    fn what_is_drawn_costs_no_more_than_the_search_and_ends() {
        let mut first = First::of(0);
        let (_, drawn) = both(&mut first, 100_000, false);
        assert_eq!((drawn, first.drawn()), (IN_ALL.1, IN_ALL.1));
    }

    #[test]
    fn where_the_search_is_out_of_reach_most_of_the_work_goes_on_to_be_drawn() {
        let mut first = First::of(0);
        let (searched, drawn) = both(&mut first, 100_000, true);
        assert!((74_000..76_000).contains(&drawn), "{searched}, {drawn}");
        // It has turned out to be in reach after all.
        assert_eq!(both(&mut first, 1000, false), (1000, 0));
    }

    #[test]
    fn executions_of_a_search_of_long_ones_come_many_together() {
        let mut first = First::of(0);
        let (mut searched, mut turns, mut was_drawn) = (0u64, 0u64, false);
        for _ in 0..10_000 {
            let due = first.is_due(false);
            turns += u64::from(due && !was_drawn);
            was_drawn = due;
            if due {
                let (lot, schedule) = first.draw().unwrap();
                first.done(lot, schedule.ticket, &ran(End::FINISHED, 3 * LONG), false);
            } else {
                first.searched(&ran(End::FINISHED, 3 * LONG));
                searched += 1;
            }
        }
        // There is an end to what is drawn.
        assert!(first.drawn() > 1000 && searched / turns >= TOGETHER, "{searched} {turns}");
    }

    #[test]
    fn a_search_is_out_of_reach_that_has_done_little_or_whose_estimate_grows() {
        let far = |estimates: &[(u64, f64)]| {
            let mut first = First::of(0);
            let told = estimates.iter().map(|&(searched, all)| {
                first.searched = searched;
                first.is_out_of_reach(Some(searched as f64 / all))
            });
            told.last().unwrap()
        };
        let steady = |all: f64| (1..100).map(|n| (n * 100, all)).collect::<Vec<_>>();
        assert!(far(&steady(200_000.0)));
        assert!(!far(&steady(20_000.0)));
        // Ten times as many as there were so far, time and again.
        let growing: Vec<(u64, f64)> = (1..100).map(|n| (n * 100, n as f64 * 900.0)).collect();
        assert!(far(&growing));
        // It cannot be far from the end.
        let nearly: Vec<(u64, f64)> = (1..100).map(|n| (n * 100, n as f64 * 160.0)).collect();
        assert!(!far(&nearly));
    }

    #[test]
    fn few_preemptions_have_a_part_of_the_work_of_a_search_that_is_not_small() {
        let mut first = First::of(0);
        let mut few = 0;
        for _ in 0..4000 {
            if let Some((lot, schedule)) = first.with_few_preemptions(true) {
                first.done(lot, schedule.ticket, &ran(End::FINISHED, 30), false);
                few += 1;
            }
            first.searched(&ran(End::FINISHED, 30));
        }
        // What is not recorded shows nothing else to be tried, and nothing can be said of it.
        assert_eq!((few, first.drawn(), first.covered()), (1, 1, None));
        first.start_over();
        assert!(first.with_few_preemptions(false).is_none());
        assert!(first.with_few_preemptions(true).is_some(), "it begins anew");
    }

    #[test]
    fn where_executions_are_long_lots_come_first_and_grow() {
        let mut first = First::of(0);
        first.is_long();
        let mut lengths = Vec::new();
        while first.is_due(false) {
            let (lot, schedule) = first.draw().unwrap();
            let most = schedule.most.unwrap();
            first.done(lot, schedule.ticket, &ran(End::DEPTH, most), true);
            lengths.push(most);
        }
        assert_eq!((lengths[0], lengths[CUT as usize]), (LONG, 4 * LONG));
        assert!((100..500).contains(&lengths.len()), "{}", lengths.len());
    }
}
