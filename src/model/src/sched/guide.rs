//! The guide: choices that are made as far as that is possible. It stands for an execution that is expected and need not come about as expected: a
//! prefix that cannot be followed ends the execution, a guide does not.

use crate::arena::Arena;
use crate::base::{Tid, Uid};

/// So many choices of other threads are looked at while threads wait.
const WINDOW: u32 = 256;
/// So many threads may wait meanwhile.
const WAITING: usize = 16;
/// In `Choice::value`: it was made.
const MADE: u32 = u32::MAX;

impl Arena {
    /// The first choice of the guide that can be made, of each thread the first that is left. Where a thread that is enabled has come to another
    /// operation, or has no such alternative, its choice is left out; where it is not enabled, it keeps its choices for later, as long as those of
    /// others are near.
    #[inline]
    pub(super) fn next_of_guide(&mut self) -> Option<(Tid, u32)> {
        if self.guided >= self.plan.guide_len {
            return None;
        }
        self.follow_guide()
    }

    #[cold]
    #[inline(never)]
    fn follow_guide(&mut self) -> Option<(Tid, u32)> {
        let (from, mut waiting, mut n_waiting) = (self.plan.prefix_len as usize, [Uid(0); WAITING], 0);
        let mut at = self.guided;
        loop {
            at = at.max(self.guided);
            if at >= self.plan.guide_len || at - self.guided >= WINDOW {
                return None;
            }
            let place = from + at as usize;
            let choice = self.prefix[place];
            at += 1;
            if choice.value == MADE || waiting[..n_waiting].contains(&choice.uid) {
                continue;
            }
            let threads = &self.world.threads;
            let mut enabled = self.enabled.as_slice().iter();
            match enabled.find(|&&(t, _)| threads[t].uid == choice.uid) {
                Some(&(t, choices)) => {
                    let fits = threads[t].pending.kind == choice.kind && choice.value < choices;
                    self.prefix[place].value = MADE;
                    self.pass_made();
                    if fits {
                        return Some((t, choice.value));
                    }
                }
                None if n_waiting < WAITING => {
                    waiting[n_waiting] = choice.uid;
                    n_waiting += 1;
                }
                None => return None,
            }
        }
    }

    /// What was made at the beginning is not looked at again.
    fn pass_made(&mut self) {
        let from = self.plan.prefix_len as usize;
        while self.guided < self.plan.guide_len && self.prefix[from + self.guided as usize].value == MADE {
            self.guided += 1;
        }
    }
}
