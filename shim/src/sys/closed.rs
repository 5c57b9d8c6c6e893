//! Descriptors that a process which goes back closes, or takes the number of for something else, though they were open at the first choice or at a mark: what they
//! stand for is kept under a number of its own, far from those that the program is given, and gets its number back. So do files of which a mark knows how far they
//! had been read.

use vsrun_model::back::Hinders;

use super::bare::bare;
use super::numbered::{Closed, Opened};
use super::track::Track;

/// Numbers from here on.
const KEPT_FROM: u64 = 512;

impl Track {
    /// A descriptor is about to be closed, or to stand for something else. False: it is not open.
    pub(super) fn closes(&mut self, nr: i64, number: u64) -> bool {
        let flags = bare(libc::SYS_fcntl, [number, libc::F_GETFD as u64, 0, 0, 0, 0]);
        if flags < 0 {
            return false;
        }
        if !self.has_opened(number) || self.is_at_mark(number) {
            let kept = bare(libc::SYS_fcntl, [number, libc::F_DUPFD_CLOEXEC as u64, KEPT_FROM, 0, 0, 0]);
            if kept < 0 {
                self.hinder(Hinders(nr as u32));
                return true;
            }
            let (since, kept) = (self.has_opened(number), kept as u32);
            self.note(nr, Closed { number: number as u32, kept, flags: flags as u32, since });
        }
        if let Some(bits) = self.descriptors.get_mut(number as usize / 64) {
            *bits &= !(1 << (number % 64));
        }
        true
    }

    /// The flag is about to change by which it is closed on exec.
    pub(super) fn changes_flag(&mut self, number: u64) {
        let flags = bare(libc::SYS_fcntl, [number, libc::F_GETFD as u64, 0, 0, 0, 0]);
        if flags >= 0 && (!self.has_opened(number) || self.is_at_mark(number)) {
            let since = self.has_opened(number);
            self.note(libc::SYS_fcntl, Closed { number: number as u32, kept: 0, flags: flags as u32, since });
        }
    }

    /// That number is one under which something is kept: for the program nothing is there.
    #[inline]
    pub fn keeps(&self, number: u64) -> bool {
        self.closed[..self.n_closed].iter().any(|closed| closed.kept != 0 && u64::from(closed.kept) == number)
    }

    /// This is a child that has been forked: it does not go back, and has nothing kept.
    pub(super) fn is_child(&mut self) {
        for closed in self.closed[..self.n_closed].iter().filter(|closed| closed.kept != 0) {
            bare(libc::SYS_close, [closed.kept.into(), 0, 0, 0, 0, 0]);
        }
        (self.armed, self.n_closed) = (false, 0);
    }

    fn note(&mut self, nr: i64, closed: Closed) {
        match self.closed.get_mut(self.n_closed) {
            Some(place) => {
                *place = closed;
                self.n_closed += 1;
            }
            None => {
                bare(libc::SYS_close, [closed.kept.into(), 0, 0, 0, 0, 0]);
                self.hinder(Hinders(nr as u32));
            }
        }
    }

    fn is_at_mark(&self, number: u64) -> bool {
        self.at_marks.get(number as usize / 64).is_some_and(|bits| bits >> (number % 64) & 1 != 0)
    }

    /// What is open now and was not at the first choice. `None`: there is more of that than a mark keeps.
    pub(super) fn open_now(&mut self, opened: &mut [Opened]) -> Option<usize> {
        let mut n = 0;
        for number in self.opened_since() {
            let place = bare(libc::SYS_lseek, [number, 0, libc::SEEK_CUR as u64, 0, 0, 0]);
            *opened.get_mut(n)? = Opened { number: number as u32, place: place.max(0) as u64 };
            n += 1;
        }
        for (all, bits) in self.at_marks.iter_mut().zip(self.descriptors) {
            *all |= bits;
        }
        Some(n)
    }

    /// Closes what was opened since those were open, and opens what was closed, but for the first `n_closed`. `None`: it cannot be.
    pub(super) fn open_again(&self, opened: &[Opened], n_closed: usize) -> Option<()> {
        let was = |number: u64| opened.iter().any(|known| u64::from(known.number) == number);
        for number in self.opened_since().filter(|&number| !was(number)) {
            bare(libc::SYS_close, [number, 0, 0, 0, 0, 0]);
        }
        let closed = &self.closed[n_closed..self.n_closed];
        for closed in closed.iter().rev() {
            let (number, kept) = (u64::from(closed.number), u64::from(closed.kept));
            let done = match kept {
                0 => bare(libc::SYS_fcntl, [number, libc::F_SETFD as u64, closed.flags.into(), 0, 0, 0]),
                _ => {
                    let flag = if closed.flags as i32 & libc::FD_CLOEXEC != 0 { libc::O_CLOEXEC } else { 0 };
                    let done = bare(libc::SYS_dup3, [kept, number, flag as u64, 0, 0, 0]);
                    bare(libc::SYS_close, [kept, 0, 0, 0, 0, 0]);
                    done
                }
            };
            (done >= 0).then_some(())?;
        }
        // Some of these are from between: a later mark has them.
        for (i, one) in closed.iter().enumerate() {
            let is_first = closed[..i].iter().all(|other| other.number != one.number);
            if is_first && one.since && !was(one.number.into()) {
                bare(libc::SYS_close, [one.number.into(), 0, 0, 0, 0, 0]);
            }
        }
        for Opened { number, place } in opened {
            bare(libc::SYS_lseek, [u64::from(*number), *place, libc::SEEK_SET as u64, 0, 0, 0]);
        }
        Some(())
    }
}
