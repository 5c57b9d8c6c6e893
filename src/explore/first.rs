//! Bugs first: beside the systematic search schedules are drawn by lot. A systematic search turns back at the last choice of its first execution, so in a
//! program whose executions are long, or have no end, it does not come near the first choices for a long time; what a lot finds in its first draws it may
//! find in a day.
//!
//! Which lots: in turn a random walk, partial order sampling, a selectively uniform walk, samples guided by what was read from whom, priorities. Between
//! them what executions of the search allow that they did not show: circles of locks at once, operations in the other order as every third one. What they
//! find is a bug like any other. They are no part of the search: its counts, its outcomes and whether it is complete do not depend on them.
//!
//! NOTE [Measure]. How much is drawn goes by the work that was done, not by the clock, so that a run can be repeated. Small searches come to their end
//! without any (but for predictions, where executions are not). Otherwise what was drawn has cost no more than the search has so far, and there is an end to it. Where the first execution is long there is
//! work to begin with: no bug of it is known, and one execution of the search costs as much as hundreds of short ones.

use crate::config::Config;
use crate::schedule::Schedule;
use crate::search::{Pct, Predict, Random, Rff, Search, Surw};
use crate::trace::Trace;

/// What an execution costs beside its transitions, in transitions.
const EXECUTION: u64 = 200;
/// So much the search has done before anything is drawn.
const BEFORE: u64 = 128 * EXECUTION;
/// So much may be drawn at once where the first execution is long.
const AT_FIRST: u64 = 1_000_000;
/// So much may be drawn in all, and in so many executions.
const IN_ALL: (u64, u64) = (20_000_000, 4000);
/// The first execution is long if it has more transitions than this; what is drawn is cut there.
pub(super) const LONG: u64 = 2_000;
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
    lots: [Box<dyn Search>; 5],
    /// What executions allow that they did not show.
    predict: Predict,
    /// Executions that the search has had, and the transitions of the longest.
    searched: u64,
    longest: u64,
    /// Which of them come one after the other.
    turn: usize,
    /// Work of the search, and of what was drawn.
    spent: (u64, u64),
    /// Executions handed out.
    drawn: u64,
    /// Transitions after which what is drawn is cut.
    most: u64,
    /// Executions that were cut there, in a row.
    cut: u64,
}

/// The order in which they come.
const TURNS: [usize; 6] = [0, 3, 1, 2, 3, 4];

/// A schedule that was drawn: by whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lot {
    /// By one of the lots.
    Drawn(usize),
    /// It is a prediction.
    Predicted,
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
            ],
            predict: Predict::new(seed),
            searched: 0,
            longest: 0,
            turn: 0,
            spent: (0, 0),
            drawn: 0,
            most: LONG,
            cut: 0,
        }
    }

    /// One is to be drawn now.
    pub fn is_due(&self) -> bool {
        let (search, drawn) = self.spent;
        let begun = search >= BEFORE || self.longest >= LARGE && self.predict.predicts();
        begun && drawn < search && drawn < IN_ALL.0 && self.drawn < IN_ALL.1
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

    /// The next schedule, and whose it is.
    pub fn draw(&mut self) -> Option<(Lot, Schedule)> {
        let turned = self.predict.predicts() && (self.drawn.is_multiple_of(TURNED) || self.spent.0 < BEFORE);
        let (lot, schedule) = if self.predict.deadlocks() > 0 || turned {
            (Lot::Predicted, self.predict.next()?)
        } else {
            let lot = TURNS[self.turn % TURNS.len()];
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
        }
        self.spent.1 += trace.steps.len() as u64 + trace.unrecorded;
        self.cut = if cut { self.cut + 1 } else { 0 };
        if self.cut >= CUT {
            (self.cut, self.most) = (0, self.most.saturating_mul(4));
        }
    }

    /// Executions that were drawn.
    pub fn drawn(&self) -> u64 {
        self.drawn
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
            assert!(!first.is_due());
        }
    }

    #[test]
    fn what_is_drawn_costs_no_more_than_the_search_and_ends() {
        let mut first = First::of(0);
        let (mut searched, mut drawn) = (0u64, 0u64);
        for _ in 0..100_000 {
            if first.is_due() {
                let (lot, schedule) = first.draw().unwrap();
                first.done(lot, schedule.ticket, &ran(End::FINISHED, 30), false);
                drawn += 1;
            } else {
                first.searched(&ran(End::FINISHED, 30));
                searched += 1;
            }
            assert!(drawn <= searched);
        }
        assert_eq!((drawn, first.drawn()), (IN_ALL.1, IN_ALL.1));
    }

    #[test]
    fn where_executions_are_long_lots_come_first_and_grow() {
        let mut first = First::of(0);
        first.is_long();
        let mut lengths = Vec::new();
        while first.is_due() {
            let (lot, schedule) = first.draw().unwrap();
            let most = schedule.most.unwrap();
            first.done(lot, schedule.ticket, &ran(End::DEPTH, most), true);
            lengths.push(most);
        }
        assert_eq!((lengths[0], lengths[CUT as usize]), (LONG, 4 * LONG));
        assert!((100..500).contains(&lengths.len()), "{}", lengths.len());
    }
}
