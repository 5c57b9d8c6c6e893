//! Pages of memory that one thread alone uses: what is done there is not recorded ([`Plan::own_pages`](vsrun_model::arena::Plan)). Where another thread comes to such
//! a page the execution is run once more, with that page known to be common; what was recorded of it before is not looked at.

use std::time::Duration;

use vsrun_model::arena::{Arena, ALL_PAGES, MAX_COMMON};

use super::setup::Spec;
use crate::finding::Ending;

/// So many executions of a worker are run again for this, or executions that took so long, then no page is taken to be anybody's own.
const TRIES: u32 = 8;
const LOST: Duration = Duration::from_secs(1);

/// What a worker knows of it.
#[derive(Default)]
pub(super) struct OwnPages {
    /// Pages that several threads use, by number.
    common: Vec<u64>,
    /// Those that the arena has.
    written: usize,
    tries: u32,
    lost: Duration,
    given_up: bool,
    /// How the execution ended that is run again, if it is not known who has ended it.
    suspect: Option<Ending>,
}

impl OwnPages {
    /// Threads may have pages of their own: nobody asks what each step did, or who was the first. Where memory is an object it has to be known what
    /// else is written meanwhile.
    pub(super) fn are_allowed(&self, spec: &Spec) -> bool {
        let simple = |watch: &super::Watch| watch.log.is_none() && !watch.by_step && !watch.by_itself;
        let watched = spec.watch.as_ref().is_some_and(simple) && spec.merges && spec.points.is_empty();
        let plain = spec.objects.words.is_empty() && !spec.options.store_buffers && spec.options.predicates.is_empty();
        !self.given_up && watched && plain
    }

    /// Tells the arena what is common.
    pub(super) fn write(&mut self, arena: &mut Arena) {
        if self.written != self.common.len() || arena.common.len as usize != self.written {
            arena.common.clear();
            self.common.iter().for_each(|&page| _ = arena.common.push(page));
            self.written = self.common.len();
        }
    }

    /// Of the execution that ended so, after so long, it is not known what it did to memory: what was somebody's own is common from now on. A loop
    /// without an end may wait for memory that it has looked at before. Where somebody outside has interfered, that is told.
    pub(super) fn is_to_run_again(&mut self, arena: &Arena, ending: &Ending, took: Duration) -> bool {
        let met = arena.met.as_slice();
        let diverges = *ending == Ending::Divergence;
        let disturbed = *ending == Ending::Interrupted || ending.is_environments();
        if disturbed || met.is_empty() && !diverges {
            return false;
        }
        self.tries += 1;
        self.lost += took;
        self.common.extend(met.iter().filter(|&&page| page != ALL_PAGES && !arena.common.as_slice().contains(&page)));
        let often = self.tries > TRIES || self.lost > LOST || self.common.len() > MAX_COMMON;
        self.suspect = matches!(ending, Ending::Crash { .. } | Ending::Died(_)).then(|| ending.clone());
        self.given_up = often || diverges || met.contains(&ALL_PAGES);
        true
    }

    /// The ending of an execution that counts. A fault that does not come again where it is run again may have been sent from outside: whoever runs
    /// it a third time is to find that out.
    pub(super) fn ending(&mut self, ending: Ending) -> Ending {
        match (self.suspect.take(), ending) {
            (Some(before), Ending::Modelled) => before,
            (_, ending) => ending,
        }
    }
}
