//! Memory that was there at the first choice and is unmapped is only hidden, as long as nobody can tell: to unmap it, to map it again, to watch it again and to
//! fault its pages in again costs some ten times as much as that nobody may use it. (libc unmaps the stacks of threads that are over where they are more than 40 MB.)
//!
//! NOTE \[Who can tell\] A fault in what is hidden is one of an address where nothing is ([`Track::hides_at`]). Of calls those could tell that map something, look at
//! mappings, or read what tells of them; before each of these, and before any that is not known to be none of them, what is hidden is unmapped ([`shows`]). The kernel
//! answers all others alike, whether memory is not there or nobody may use it.
//!
//! NOTE \[Nothing is lost\] Of each page that is there when it is hidden there is a copy, as for memory that is unmapped; and nobody writes to it until it is
//! put back.

use super::any_of;
use super::bare::bare;
use super::track::{pages_end, track, Track};

/// The call could tell what is hidden from what is not there, or is not known not to; those that are given an address are looked at by themselves.
pub(super) fn shows(nr: i64) -> bool {
    !matches!(
        nr,
        any_of!(SYS_munmap SYS_mprotect SYS_madvise SYS_close SYS_fcntl SYS_rt_sigaction SYS_write SYS_writev)
    )
}

/// munmap.
pub(super) fn unmap(a: [u64; 6]) -> i64 {
    let (start, end) = (a[0], pages_end(a[0], a[1]));
    track().let_go_in(start, end);
    let first = track().n_changes;
    let fits = track().can_be_hidden(start, end);
    track().about_to(start, end, true);
    let hidden = fits && track().hide(first, start, end);
    let result = if hidden { 0 } else { bare(libc::SYS_munmap, a) };
    if result >= 0 {
        track().unmapped(start, end);
    }
    result
}

impl Track {
    /// All of it was there at the first choice, and is as it was then.
    fn can_be_hidden(&mut self, start: u64, end: u64) -> bool {
        let pages = start.is_multiple_of(4096) && start < end;
        pages && !self.has_changed(start, end) && self.parts(start, end, &mut |_, _, _, span| span.is_some())
    }

    /// Hides what has just been noted as unmapped, from a change on. False: that cannot be.
    fn hide(&mut self, first: usize, start: u64, end: u64) -> bool {
        let goes_back = self.why == vsrun_model::back::Hinders::NONE;
        if !goes_back || bare(libc::SYS_mprotect, [start, end - start, 0, 0, 0, 0]) < 0 {
            return false;
        }
        self.changes[first..self.n_changes].iter_mut().for_each(|change| change.hidden = true);
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
        for change in self.changes[..self.n_changes].iter_mut().filter(|change| change.hidden) {
            let piece = change.piece;
            bare(libc::SYS_munmap, [piece.start, piece.end - piece.start, 0, 0, 0, 0]);
            change.hidden = false;
        }
        self.hides = false;
    }

    /// What was at that address is hidden.
    pub fn hides_at(&self, address: u64) -> bool {
        let changes = &self.changes[..self.n_changes];
        let is_it = |piece: &vsrun_model::back::Span| piece.start <= address && address < piece.end;
        self.hides && changes.iter().any(|change| change.hidden && is_it(&change.piece))
    }
}
