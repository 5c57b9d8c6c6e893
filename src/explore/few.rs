//! What few preemptions can bring about, beside the systematic search: that is where most bugs are (Musuvathi and Qadeer, PLDI 2007), and where a search does
//! not come to its end it is something that can be said of what it has covered.
//!
//! First what no preemption can bring about, then what one can, then two, .. It has a part of the work, like what is drawn by lot; see
//! [`super::first`].

use crate::finding::FewRun;
use crate::incomplete::Reasons;
use crate::schedule::Schedule;
use crate::search::{BoundedReduction, Search};
use crate::trace::Trace;

/// No more preemptions than these: what is beyond is the search's.
const MOST: u32 = 8;
/// So many choices are kept at most, 16 bytes each.
const KEPT: usize = 2_000_000;

/// The search.
pub(super) struct Few {
    search: BoundedReduction,
    /// How often it has begun anew.
    generation: u64,
    /// Executions since then.
    executions: u64,
    /// What makes that less than all.
    reasons: Reasons,
    /// What it has covered, and when it had. Executions with more preemptions show others with fewer again, which bring about nothing that is new: so it
    /// stays what it was.
    best: Option<FewRun>,
    /// There is nothing to be had of it any more.
    over: bool,
}

impl Few {
    pub fn new() -> Few {
        let search = BoundedReduction::new(MOST);
        Few { search, generation: 0, executions: 0, reasons: Reasons::new(), best: None, over: false }
    }

    /// More is known of objects, so that there is more to choose.
    pub fn start_over(&mut self) {
        *self = Few { generation: self.generation + 1, ..Few::new() };
    }

    /// The next schedule, if there is one at the moment, and in which generation.
    pub fn next(&mut self) -> Option<(u64, Schedule)> {
        self.over |= self.search.kept() > KEPT;
        if self.over {
            return None;
        }
        Some((self.generation, self.search.next()?))
    }

    /// What became of one.
    pub fn done(&mut self, generation: u64, ticket: u64, trace: &Trace) {
        if generation == self.generation {
            self.executions += 1;
            self.reasons.extend(trace.reasons(true));
            self.search.done(ticket, trace);
            if let Some(preemptions) =
                self.search.covered().filter(|&n| self.best.is_none_or(|best| best.preemptions < n))
            {
                self.best = Some(FewRun { preemptions, executions: self.executions });
            }
        }
    }

    /// What it has covered so far. `None`: nothing that can be said.
    pub fn covered(&self) -> Option<FewRun> {
        self.best.filter(|_| self.search.can_tell() && self.reasons.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vsrun_model::End;

    #[test]
    fn nothing_is_said_of_what_was_cut_or_is_of_an_earlier_beginning() {
        let mut few = Few::new();
        let (generation, schedule) = few.next().unwrap();
        assert!(few.next().is_none(), "the first one shows what else there is");
        assert_eq!(few.covered(), None);
        few.done(generation, schedule.ticket, &Trace { end: End::FINISHED, ..Trace::default() });
        // Nothing was to be chosen: no preemption brings about anything else.
        assert_eq!(few.covered(), Some(FewRun { preemptions: MOST, executions: 1 }));
        few.start_over();
        assert_eq!(few.covered(), None);
        let (again, schedule) = few.next().unwrap();
        few.done(generation, schedule.ticket, &Trace { end: End::FINISHED, ..Trace::default() });
        assert_eq!(few.covered(), None, "that was of before");
        few.done(again, schedule.ticket, &Trace { end: End::DEPTH, ..Trace::default() });
        assert_eq!(few.covered(), None, "it was cut");
    }

    #[test]
    fn what_is_not_proven_is_not_said() {
        let mut few = Few::new();
        let (generation, schedule) = few.next().unwrap();
        let saw = [crate::incomplete::Reason::Room].into();
        few.done(generation, schedule.ticket, &Trace { end: End::FINISHED, saw, ..Trace::default() });
        assert_eq!(few.covered(), None);
    }
}
