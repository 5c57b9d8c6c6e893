//! What may be done with memory since the first choice, where that is not what it was, or what is usual.

use super::track::{Track, GUARDED, READ_WRITE};

impl Track {
    /// Whether what stands in a page can be read. `None`: nothing stands there.
    pub fn is_readable(&self, page: u64) -> Option<bool> {
        let piece = self.protected[..self.n_protected].iter().find(|piece| piece.0 <= page && page < piece.1);
        match piece.map_or(READ_WRITE, |piece| piece.2) {
            GUARDED => None,
            prot => Some(prot & libc::PROT_READ as u64 != 0),
        }
    }

    /// Memory is protected; where a guard is it stays.
    pub(super) fn protects(&mut self, start: u64, end: u64, prot: u64) {
        let pieces = &self.protected[..self.n_protected];
        self.unknown |= pieces.iter().any(|piece| piece.2 == GUARDED && piece.0 < end && start < piece.1);
        self.protect(start, end, prot);
    }

    /// That may be done with memory there from now on.
    pub(super) fn protect(&mut self, start: u64, end: u64, prot: u64) {
        self.forget_protected(start, end);
        self.note_protected(start, end, prot);
    }

    pub(super) fn forget_protected(&mut self, start: u64, end: u64) {
        let mut i = 0;
        while i < self.n_protected {
            let (from, to, was) = self.protected[i];
            if to <= start || end <= from {
                i += 1;
                continue;
            }
            self.n_protected -= 1;
            self.protected[i] = self.protected[self.n_protected];
            self.note_protected(from, start.max(from), was);
            self.note_protected(end.min(to), to, was);
        }
    }

    fn note_protected(&mut self, start: u64, end: u64, prot: u64) {
        if start >= end {
            return;
        }
        // One that goes on where another one ends is one with it.
        let pieces = &mut self.protected[..self.n_protected];
        if let Some(last) = pieces.iter_mut().find(|last| (last.1, last.2) == (start, prot)) {
            last.1 = end;
            return;
        }
        match self.protected.get_mut(self.n_protected) {
            Some(piece) => {
                *piece = (start, end, prot);
                self.n_protected += 1;
            }
            None => self.unknown = true,
        }
    }
}
