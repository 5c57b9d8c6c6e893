//! Selective search with composed transitions: SSS applied to C(S) (Stoller, TR 536, Sections 5 to 7).
//!
//! A transition of C(S) is a visible operation with the invisible ones of its thread after it, so this is invisible-first
//! search ([`super::if_sss`], which says what is invisible here) in which what sleeps is the whole of it. The gain is the exception
//! (4) of Section 7: to acquire and then to release a lock leaves it as it was, so two such transitions are independent
//! if they are otherwise, where each operation by itself would depend on the other's.
//!
//! Three things differ from the paper.
//! * The exception needs to know what critical sections do to memory: two that increment a counter do not commute. In the paper accesses to
//!   objects under a lock are operations of the transition. Here they come with the trace (`Trace::touched`), where memory is
//!   watched; where it is not, there is no exception. Memory then wakes what sleeps like operations do.
//! * The exception holds for the one that sleeps only (see `dependent_composed`). (4) as it is printed, on either side, loses
//!   deadlocks: one thread passes through a lock and then waits for ever, another one acquires it and waits for ever. When the
//!   second has been explored first and sleeps, the first must wake it, or the state in which both have got to their
//!   waits is not reached. Where the one that sleeps passes through, let w be what others do until it is performed. None
//!   of w depends on it but by the lock, which is free before w and after it. So it can be performed before w, leaves
//!   the lock free, and the same state is reached: the one of the class of executions that comes first in the order of
//!   the search is never cut.
//! * Where an invisible operation has alternatives (who is woken), a composed transition stands for all of them, without the exception.
//!
//! Of two transitions only the first operations are recorded in the state in which both are pending, so the others are
//! compared in any state: this may need more executions than `if-sss`, whose invisible operations are not looked at.

use vsrun_model::{dependent_composed, Act};

use super::allowed::Allowed;
use super::block::Block;
use super::if_sss::InvisibleFirst;
use super::node::{Rules, State};
use super::sss::Selective;

/// What is invisible belongs to the transition before it.
#[derive(Debug, Default)]
pub struct Composing(InvisibleFirst);

/// The search with composed transitions.
pub type Composed = Selective<Composing>;

impl Composed {
    /// A search that has not begun.
    pub fn new(bounds: Box<dyn Allowed>) -> Composed {
        Selective::with(Composing::default(), bounds)
    }
}

impl Rules for Composing {
    fn accept(&mut self, state: State) -> bool {
        self.0.accept(state)
    }

    fn invisible(&self, act: &Act, state: State) -> bool {
        self.0.invisible(act, state)
    }

    fn wakes_block(&self, sleeper: &Block, moving: &Block) -> bool {
        let memory = sleeper.touched.as_ref().zip(moving.touched.as_ref());
        let excepts = memory.is_some() && !sleeper.mixed;
        memory.is_some_and(|(a, b)| a.meets(b)) || dependent_composed(&sleeper.acts, &moving.acts, excepts)
    }

    fn sleeps_in_blocks(&self) -> bool {
        true
    }
}
