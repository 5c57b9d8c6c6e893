//! Memory that was there at the first choice and is unmapped is only hidden, as long as nobody can tell: to unmap it, to map it again, to watch it again and to
//! fault its pages in again costs a good deal more than to let nobody use it. (libc unmaps the stacks of threads that are over where they are more than 40 MB.)
//!
//! NOTE \[Who can tell\] A fault in what is hidden is one of an address where nothing is ([`Track::hides_at`]). Of calls those could tell that map something, look at
//! mappings, or read what tells of them; before each of these, and before any that is not known to be none of them, what is hidden is unmapped (`track::shows`). The kernel
//! answers all others alike, whether memory is not there or nobody may use it.
//!
//! NOTE \[Nothing is lost\] What stands in it stays, and nobody writes to it until it can be used again. Whether there is a copy of each page that was written before
//! it was hidden the kernel is asked in the end with all other memory that was there at the first choice; where it is unmapped after all, before that.

use vsrun_model::back::{Hinders, Span};

use super::bare::bare;
use super::track::{Change, Track};

impl Track {
    /// Hides memory, all of which was there at the first choice and is as it was then, in place of unmapping it. False: it is not so, or that cannot be.
    pub(super) fn hide(&mut self, start: u64, end: u64) -> bool {
        let pages = start.is_multiple_of(4096) && start < end;
        let mut comes_back =
            |_: &mut Track, _: u64, _: u64, span: Option<Span>| span.is_some_and(|span| span.comes_back());
        let fits = pages && self.why == Hinders::NONE && !self.has_changed(start, end);
        if !(fits && self.parts(start, end, &mut comes_back)) {
            return false;
        }
        let n = self.n_changes;
        let noted = self.parts(start, end, &mut |track, start, end, span| {
            let (Some(span), Some(place)) = (span, track.changes.get_mut(track.n_changes)) else { return false };
            *place = Change { piece: Span { start, end, ..span }, unmapped: true, hidden: true };
            track.n_changes += 1;
            true
        });
        if !noted || bare(libc::SYS_mprotect, [start, end - start, 0, 0, 0, 0]) < 0 {
            self.n_changes = n;
            return false;
        }
        self.hides = true;
        true
    }

    /// Unmaps what is hidden.
    pub(super) fn let_go(&mut self) {
        self.let_go_in(0, u64::MAX);
    }

    /// The same, if a part of it is there.
    pub(super) fn let_go_in(&mut self, start: u64, end: u64) {
        let changes = &self.changes[..self.n_changes];
        let is_there = self.hides
            && changes.iter().any(|change| change.hidden && change.piece.start < end && start < change.piece.end);
        if !is_there {
            return;
        }
        for n in 0..self.n_changes {
            let Change { piece, hidden: true, .. } = self.changes[n] else { continue };
            self.changes[n].hidden = false;
            if !piece.is_empty() && !self.knows_all(piece.start, piece.end, piece.is_writable()) {
                self.hinder(Hinders::MAPPINGS);
            }
            bare(libc::SYS_munmap, [piece.start, piece.end - piece.start, 0, 0, 0, 0]);
        }
        self.hides = false;
    }

    /// Something that was there at the first choice is really gone: not only hidden.
    pub fn has_unmapped(&self) -> bool {
        self.changes[..self.n_changes].iter().any(|change| change.unmapped && !change.hidden)
    }

    /// Calls `each` with the parts of a stretch of memory that were not unmapped, from an address to another one. False: `each` gave false.
    pub fn each_there(&self, start: u64, end: u64, mut each: impl FnMut(u64, u64) -> bool) -> bool {
        let gone = || self.changes[..self.n_changes].iter().filter(|c| c.unmapped && !c.hidden).map(|c| c.piece);
        let mut at = start;
        while at < end {
            if let Some(piece) = gone().find(|piece| piece.start <= at && at < piece.end) {
                at = piece.end;
                continue;
            }
            let to = gone().map(|piece| piece.start).filter(|&from| from > at).min().map_or(end, |from| from.min(end));
            if !each(at, to) {
                return false;
            }
            at = to;
        }
        true
    }

    /// What was at that address is hidden.
    pub fn hides_at(&self, address: u64) -> bool {
        let changes = &self.changes[..self.n_changes];
        let is_it = |piece: &Span| piece.start <= address && address < piece.end;
        self.hides && changes.iter().any(|change| change.hidden && is_it(&change.piece))
    }
}
