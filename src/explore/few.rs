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
    /// There is nothing to be had of it any more.
    over: bool,
}

impl Few {
    pub fn new() -> Few {
        let search = BoundedReduction::new(MOST);
        Few { search, generation: 0, executions: 0, reasons: Reasons::new(), over: false }
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
        }
    }

    /// What it has covered so far. `None`: nothing that can be said.
    pub fn covered(&self) -> Option<FewRun> {
        let preemptions = self.search.covered().filter(|_| self.executions > 0 && self.reasons.is_empty())?;
        Some(FewRun { preemptions, executions: self.executions })
    }
}
