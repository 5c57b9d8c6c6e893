//! Memory that threads have for themselves, by what the program says of it (exclusive access predicates: Stoller and Cohen, Optimistic
//! Synchronization-Based State-Space Reduction).
//!
//! Where memory is an object, a use by the thread that owns it is no operation: such variables are protected, and their uses invisible
//! (Section 1). It is recorded like a use of memory that is none. Whether a thread owns memory follows from what it has said itself, and from
//! what was said behind which its own operations come, so it is the same in equivalent executions; the tool checks that in every execution.
//! Where it does not hold, the search starts over, and nothing that is said counts ([`Arena::distrusts`]).

use crate::arena::Arena;
use crate::base::watch::Record;
use crate::base::{Tid, NONE};
use crate::state::{Owned, SHARED};

impl Arena {
    /// A thread says who may use memory, or memory is given out anew.
    pub fn claims(&mut self, record: Record) {
        let Record { address, size, site: to, thread, space, what, .. } = record;
        let piece = Owned { start: address, end: address.saturating_add(size), space, thread };
        // Memory that processes share has several addresses, and other processes' loops wait for what is there.
        if space & SHARED != 0 || size == 0 {
            return;
        }
        match what {
            Record::OWNS => self.adds_owned(piece),
            Record::DISOWNS => self.removes_owned(piece, Some(thread)),
            Record::HANDS_OVER => {
                self.removes_owned(piece, Some(thread));
                if to != NONE {
                    self.adds_owned(Owned { thread: to, ..piece });
                }
            }
            _ => self.removes_owned(piece, None),
        }
    }

    /// `thread` owns these bytes; that what is said counts.
    pub fn owns(&self, thread: Tid, space: u32, start: u64, end: u64) -> bool {
        let has = |o: &Owned| (o.thread, o.space) == (thread, space) && o.start <= start && end <= o.end;
        self.distrusts == 0 && self.owned.as_slice().iter().any(has)
    }

    fn adds_owned(&mut self, piece: Owned) {
        let Owned { start, end, space, thread } = piece;
        let known = |o: &Owned| (o.thread, o.space) == (thread, space) && o.start <= start && end <= o.end;
        if !self.owned.as_slice().iter().any(known) && self.owned.push(piece).is_none() {
            self.owned_lost += 1;
        }
    }

    /// Nobody, or that thread no longer, owns what lies in `piece`.
    fn removes_owned(&mut self, piece: Owned, of: Option<Tid>) {
        let mut at = self.owned.len;
        while at > 0 {
            at -= 1;
            let old = self.owned[at];
            let meets = old.space == piece.space && old.start < piece.end && piece.start < old.end;
            if !meets || of.is_some_and(|thread| thread != old.thread) {
                continue;
            }
            self.owned.remove(at);
            for rest in [Owned { end: piece.start, ..old }, Owned { start: piece.end, ..old }] {
                if rest.start < rest.end {
                    self.adds_owned(rest);
                }
            }
        }
    }
}
