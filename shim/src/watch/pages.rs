//! Which thread of a process has a page of memory for itself; what that is good for says `gate::own`.

use vsrun_model::{Tid, MAX_THREADS};

/// Pages are looked for among so many places, from one that their number tells, first here,
const NEAR: usize = 64;
const NEAR_TRIES: usize = 8;
/// then there. One for which there is no place is common: places are never given up.
const FAR: usize = 1 << 14;
const FAR_TRIES: usize = 32;
const MAX_WIDE: usize = 16;

/// In a place: the number of the page, above bits for one more than its thread, or for this. 0: nothing.
const COMMON: u64 = (1 << BITS) - 1;
const BITS: u32 = 16;
const _: () = assert!(MAX_THREADS as u64 + 1 < COMMON);

/// The first part: what a short execution needs.
#[repr(C)]
pub struct Pages {
    /// Pages may be a thread's own.
    pub is_on: bool,
    /// Some page is, or has been.
    pub any: bool,
    /// The process has, or has had, several threads.
    pub several: bool,
    n_wide: u32,
    near: [u64; NEAR],
}

/// The second part.
#[repr(C)]
pub struct MorePages {
    /// First and last page of accesses to very many of them: who comes to these later finds them common.
    wide: [(u64, u64); MAX_WIDE],
    far: [u64; FAR],
}

/// What a use of a page is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// By the one thread that has ever used it.
    Own,
    /// One of several threads that may use it.
    Common,
    /// By a second thread, the first time.
    Meets,
}

impl Pages {
    /// None.
    pub const NONE: Pages = Pages { is_on: false, any: false, several: false, n_wide: 0, near: [0; NEAR] };

    /// The place of a page, or the one where it is to be; `None`: there is no room.
    fn place<'a>(&'a mut self, more: &'a mut MorePages, page: u64) -> Option<&'a mut u64> {
        let is_it = |place: u64| place == 0 || place >> BITS == page;
        let start = page as usize;
        let near = (start..start + NEAR_TRIES).map(|at| at % NEAR).find(|&at| is_it(self.near[at]));
        if let Some(at) = near {
            return Some(&mut self.near[at]);
        }
        let start = (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize;
        let far = (start..start + FAR_TRIES).map(|at| at % FAR).find(|&at| is_it(more.far[at]))?;
        Some(&mut more.far[far])
    }

    /// From the start all that is done there is recorded.
    pub fn is_common(&mut self, more: &mut MorePages, page: u64) {
        if let Some(place) = self.place(more, page) {
            *place = page << BITS | COMMON;
        }
    }

    /// `thread` uses a page.
    pub fn uses(&mut self, more: &mut MorePages, page: u64, thread: Tid) -> Use {
        self.any = true;
        let of_thread = page << BITS | (u64::from(thread) + 1);
        let is_wide = |more: &MorePages, n: u32| {
            more.wide[..n as usize].iter().any(|&(first, last)| first <= page && page <= last)
        };
        let wide = self.n_wide > 0 && is_wide(more, self.n_wide);
        let Some(place) = self.place(more, page) else { return Use::Common };
        if *place == 0 {
            *place = if wide { page << BITS | COMMON } else { of_thread };
        }
        match *place & COMMON {
            _ if *place == of_thread => Use::Own,
            COMMON => Use::Common,
            _ => {
                *place = page << BITS | COMMON;
                Use::Meets
            }
        }
    }

    /// `meets` gets the pages from the first to the last one that another thread than `thread` has had for its own so far, of those that are in the first part: the
    /// second one is large, and mostly untouched.
    pub fn gives_up(&mut self, (first, last): (u64, u64), thread: Tid, mut meets: impl FnMut(u64)) {
        for place in &mut self.near {
            let (page, owner) = (*place >> BITS, *place & COMMON);
            if *place != 0 && first <= page && page <= last && owner != u64::from(thread) + 1 && owner != COMMON {
                *place = page << BITS | COMMON;
                meets(page);
            }
        }
    }

    /// `thread` uses all pages from the first to the last one; `meets` gets those that were another one's. False: that cannot be remembered.
    pub fn uses_all(&mut self, more: &mut MorePages, (first, last): (u64, u64), thread: Tid, meets: fn(u64)) -> bool {
        for place in self.near.iter_mut().chain(&mut more.far) {
            let (page, owner) = (*place >> BITS, *place & COMMON);
            if *place != 0 && first <= page && page <= last && owner != u64::from(thread) + 1 && owner != COMMON {
                *place = page << BITS | COMMON;
                meets(page);
            }
        }
        let n = self.n_wide as usize;
        if more.wide[..n].iter().any(|known| known.0 <= first && last <= known.1) {
            return true;
        }
        let Some(free) = more.wide.get_mut(n) else { return false };
        *free = (first, last);
        self.n_wide += 1;
        true
    }

    /// The process is a new one: nobody has used anything.
    pub fn clear(&mut self, more: &mut MorePages) {
        *self = Pages { is_on: self.is_on, ..Pages::NONE };
        more.far.iter_mut().filter(|place| **place != 0).for_each(|place| *place = 0);
    }
}

impl MorePages {
    /// None.
    pub const NONE: MorePages = MorePages { wide: [(0, 0); MAX_WIDE], far: [0; FAR] };
}
