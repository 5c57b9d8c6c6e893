//! Which shadows are put back with the memory that they are of (see `watch::log`). Shadows are as large as all memory could be, and to ask the kernel what was
//! written there takes the longer the larger that is. So vsrun names only those of what there is at the first choice, and of what lies around it
//! (`runtime::spans`); memory that comes, or is used, with a shadow elsewhere lets the process not go back.

use core::sync::atomic::Ordering::Relaxed;

use vsrun_model::back::{Hinders, Span};
use vsrun_model::watch::{MEMORY, READ_BIT, WRITE_BIT};

use super::track::{track, Track};
use super::{raw, WATCHES};

/// The shadows of memory from an address to another one are in these pieces of memory.
fn are_in(spans: &[Span], start: u64, end: u64) -> bool {
    let is_in = |from: u64, to: u64| spans.iter().any(|span| span.start <= from && to <= span.end);
    MEMORY.iter().all(|area| {
        let (from, to) = (start.max(area[0]), end.min(area[1]));
        from >= to || [READ_BIT, WRITE_BIT].iter().all(|bit| is_in(from ^ (1 << bit), ((to - 1) ^ (1 << bit)) + 1))
    })
}

impl Track {
    /// Memory that was there before the first choice; none, before vsrun has said so.
    pub(super) fn spans(&self) -> &'static [Span] {
        match self.spans {
            (_, 0) => &[],
            // SAFETY: `gate::back` says where it keeps what vsrun has written, which stays there.
            (spans, n) => unsafe { core::slice::from_raw_parts(spans as *const Span, n) },
        }
    }

    /// Memory is mapped there, or used, from now on.
    pub fn uses(&mut self, start: u64, end: u64) {
        if self.armed && start < end && WATCHES.load(Relaxed) && !are_in(self.spans(), start, end) {
            self.hinder(Hinders::SHADOWS);
        }
    }

    /// Memory is mapped there.
    pub(super) fn comes(&mut self, start: u64, end: u64) {
        self.uses(start, end);
        self.add(start, end);
    }

    /// The end of the heap is to be there; 0: it is only asked for.
    pub(super) fn heap_ends(&mut self, at: u64) {
        if at != 0 && at < self.heap() {
            self.hinder(Hinders::MAPPINGS);
        }
        self.uses(self.heap(), at);
    }
}

/// Nothing is to stand in that shadow any more.
pub fn give_up(start: u64, end: u64) {
    let drop = |from: u64, to: u64| raw!(libc::SYS_madvise, from, to - from, libc::MADV_DONTNEED);
    if !track().armed {
        drop(start, end);
        return;
    }
    // Elsewhere nothing stands.
    for n in 0..track().spans().len() {
        let span = track().spans()[n];
        let (from, to) = (start.max(span.start), end.min(span.end));
        if from < to {
            drop(from, to);
        }
    }
}
