//! What a search algorithm is to those who run it.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vsrun_model::End;

use super::allowed::Allowed;
use crate::incomplete::Reason;
use crate::schedule::Schedule;
use crate::trace::Trace;

/// True if the trace cannot be continued or shows less than happened, so that a search that built on it may have
/// missed something.
pub(super) fn is_partial(trace: &Trace) -> bool {
    matches!(trace.end, End::DEPTH | End::MISMATCH | End::BUG | End::UNSUPPORTED | End::ROOM | End::REFUSED)
        || trace.unrecorded > 0
}

/// Says whether vsrun is to end: to look at an execution of tens of thousands of transitions may take longer than the
/// user wants to wait.
#[derive(Clone, Default)]
pub struct Watch(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl Watch {
    /// It asks `ends`.
    pub fn new(ends: impl Fn() -> bool + Send + Sync + 'static) -> Watch {
        Watch(Some(Arc::new(ends)))
    }

    /// vsrun is to end.
    pub fn ends(&self) -> bool {
        self.0.as_ref().is_some_and(|ends| ends())
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Watch")
    }
}

/// Executions each of which shows a bug of that depth with probability 1/(n k^(depth - 1)) at least ([`Pct`](super::Pct)).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Chance {
    /// The depth that they looked for.
    pub depth: u32,
    /// n: threads.
    pub threads: u32,
    /// k: transitions among which priorities were changed.
    pub length: u32,
    /// So many.
    pub executions: u64,
}

/// A search algorithm.
pub trait Search: Send {
    /// Who is asked now and then, while the search looks at an execution, whether it is to give that up. Then it does not
    /// claim any more to be exhaustive.
    fn watch(&mut self, watch: Watch) {
        let _ = watch;
    }

    /// The next execution to run. `None`: there is nothing to hand out now; the search is over if nothing is under way
    /// either.
    fn next(&mut self) -> Option<Schedule>;

    /// What the execution did that was handed out with this ticket.
    fn done(&mut self, ticket: u64, trace: &Trace);

    /// True if `next` may be called while executions are under way; otherwise one is run at a time.
    fn parallel(&self) -> bool {
        false
    }

    /// Executions that were run ahead of their turns for nothing: they are not part of what has been explored.
    fn discarded(&self) -> u64 {
        0
    }

    /// Executions that were run ahead of their turns, which have not come yet: they are not part of what has been explored so
    /// far, nor of what is saved.
    fn ahead(&self) -> u64 {
        0
    }

    /// What has become of executions by their tickets, since it was asked last, where the search runs some ahead of their turns: they are part of
    /// what has been explored (true), or were run for nothing. `None`: each is part of it as soon as it is done.
    fn settled(&mut self) -> Option<Vec<(u64, bool)>> {
        None
    }

    /// What [`Search::restore`] needs to go on from here, with executions under way as if they had not been started.
    /// `None`: this search cannot be saved.
    fn save(&self) -> Option<Vec<u8>> {
        None
    }

    /// Makes a search that has not begun one that was saved. With an error it is not to be used.
    fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        let _ = bytes;
        Err("this search cannot be resumed".into())
    }

    /// Branches that are known and have not been started; 0 if unknown.
    fn frontier(&self) -> u64 {
        0
    }

    /// Estimated part of the search that is done, 0 to 1.
    fn progress(&self) -> Option<f64> {
        None
    }

    /// True if everything has been explored, once `next` gives `None` and nothing is under way (random searches never
    /// have).
    fn exhaustive(&self) -> bool {
        false
    }

    /// Why a search of this kind is not exhaustive, if that is how it is made.
    fn limit(&self) -> Option<Reason> {
        None
    }

    /// Transitions executed so far, edges of the search tree: re-executed prefixes are not counted again.
    fn transitions(&self) -> u64;

    /// Executions that were cut off because everything enabled was asleep.
    fn sleep_blocked(&self) -> u64 {
        0
    }

    /// Mazurkiewicz traces seen, where they are counted.
    fn traces(&self) -> Option<u64> {
        None
    }

    /// True if the search makes use of [`Search::learn_bounds`].
    fn wants_bounds(&self) -> bool {
        false
    }

    /// What the threads of the program may do at most. Before the first schedule is asked for.
    fn learn_bounds(&mut self, bounds: Box<dyn Allowed>) {
        let _ = bounds;
    }

    /// What its executions could have found by lot, of which that is known.
    fn chances(&self) -> Vec<Chance> {
        Vec::new()
    }

    /// What the user should know about how the search went.
    fn notes(&self) -> &[String] {
        &[]
    }
}
