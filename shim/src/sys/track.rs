//! What a process that goes back (`gate::back`) does outside its memory from its first choice on: every call of the kernel's that this library makes
//! is looked at here. What leaves nothing is let pass, new mappings are kept in mind, and anything else says that the process cannot go back.
//!
//! This stands in the process's own memory, so it is put back with it.

use core::cell::UnsafeCell;
use core::hash::Hash;

use vsrun_model::back::{Hinders, Span};
use vsrun_model::states::{together, Mixer, Purpose};

use super::bare::{any_of, bare};
use super::copied::{has_place, Copied};
use super::numbered::{Closed, Opened, MAX_CLOSED, MAX_OPEN};
use super::written;

/// Most mappings of its own at a time.
const MAX_FRESH: usize = 512;
/// Most changes to mappings that were there before.
const MAX_CHANGES: usize = 1024;
/// Most times that mappings made since are changed in one execution, for marks to be of use.
const MAX_TOUCHED: usize = 512;
/// Numbers of signals that are put back: all but the last one, for which there would be no bit.
const SIGNALS: usize = 64;
/// Most pieces of memory of which is kept what may be done there.
const MAX_PROTECTED: usize = 512;
/// What may be done with memory that is mapped, of which nothing is kept.
pub(super) const READ_WRITE: u64 = (libc::PROT_READ | libc::PROT_WRITE) as u64;
/// MADV_GUARD_INSTALL (Linux 6.13); in place of what may be done with memory: nobody may use it, and nothing is there.
const GUARD_INSTALL: i32 = 102;
pub(super) const GUARDED: u64 = 1 << 32;
/// Most pages that are told.
const MAX_MISSED: usize = 512;

/// What was done to a piece of memory that was there before: unmapped, or protected.
#[derive(Clone, Copy)]
pub(super) struct Change {
    pub piece: Span,
    pub unmapped: bool,
    /// It is there still, and nobody can use it: see `hidden`.
    pub hidden: bool,
}

/// Most pieces of memory that are there at a mark and were not at the first choice.
pub const MAX_PIECES: usize = 128;

/// What was done outside of memory up to a mark.
#[derive(Clone, Copy)]
pub struct AtMark {
    n: usize,
    pieces: [(u64, u64); MAX_PIECES],
    n_changes: usize,
    n_touched: usize,
    n_gone: usize,
    /// Memory that was there at the first choice and is not any more, or something else is there.
    gone: [(u64, u64); MAX_PIECES],
    /// The end of the heap.
    pub brk: u64,
    handled: u64,
    actions: [[u64; 4]; SIGNALS],
    n_closed: usize,
    n_open: usize,
    open: [Opened; MAX_OPEN],
}

impl AtMark {
    /// Memory that was mapped since the first choice, from an address to another one.
    pub fn pieces(&self) -> &[(u64, u64)] {
        &self.pieces[..self.n]
    }

    /// The page was there at the first choice, and is not any more.
    pub fn has_lost(&self, page: u64) -> bool {
        self.gone[..self.n_gone].iter().any(|&(from, to)| from <= page && page < to)
    }
}

/// Looks at a part of a stretch of memory, from an address to another one; see [`Track::parts`].
type Each<'a> = dyn FnMut(&mut Track, u64, u64, Option<Span>) -> bool + 'a;

/// What is kept in mind.
pub struct Track {
    /// The process goes back.
    pub armed: bool,
    /// It may make others, which vsrun ends.
    forks: bool,
    /// Why it does not any more.
    pub why: Hinders,
    /// Number of `fresh`.
    n: usize,
    /// Mappings that were made since, from an address to another one.
    fresh: [(u64, u64); MAX_FRESH],
    pub(super) n_changes: usize,
    pub(super) changes: [Change; MAX_CHANGES],
    /// Some of these are hidden.
    pub(super) hides: bool,
    /// Some memory was locked before the first choice.
    locks: bool,
    /// What was unmapped or protected of those in `fresh`, or changed again of `changes`: a mark from before is of no use then.
    n_touched: usize,
    touched: [(u64, u64); MAX_TOUCHED],
    /// What may be done with memory that was protected since, or was mapped since as something else than [`READ_WRITE`]: from an address to another one. No
    /// two pieces overlap.
    pub(super) n_protected: usize,
    pub(super) protected: [(u64, u64, u64); MAX_PROTECTED],
    /// There is more of that than there is room for, or it is not known.
    pub(super) unknown: bool,
    /// No marks are made any more.
    odd: bool,
    /// The end of the heap (brk) then.
    heap: u64,
    /// Bits of the descriptors that what is printed goes to.
    printed: u32,
    /// Memory that was there before: address and number of the spans.
    pub(super) spans: (u64, usize),
    /// Pages that are kept: address and number of the addresses.
    pages: (u64, usize),
    /// Actions of signals as they were before, and a bit for each signal of which one is there.
    actions: [[u64; 4]; SIGNALS],
    handled: u64,
    /// A bit for each descriptor that was opened since, and for each of these that was open at a mark.
    pub(super) descriptors: [u64; 16],
    pub(super) at_marks: [u64; 16],
    /// See `closed`.
    pub(super) n_closed: usize,
    pub(super) closed: [Closed; MAX_CLOSED],
    n_missed: usize,
    /// Pages that have been taken away and are not kept.
    missed: [u64; MAX_MISSED],
    /// Who is told of memory that was unmapped, or mapped anew.
    gone: fn(u64, u64),
    /// Where it does not go back: see there.
    pub copied: Copied,
}

struct Cell(UnsafeCell<Track>);
// SAFETY: a process of a world has one kernel thread, and no borrow is kept across a call.
unsafe impl Sync for Cell {}

const NOWHERE: Span = Span { start: 0, end: 0, prot: 0, kind: 0 };

static TRACK: Cell = Cell(UnsafeCell::new(Track {
    armed: false,
    forks: false,
    why: Hinders::NONE,
    n: 0,
    fresh: [(0, 0); MAX_FRESH],
    n_changes: 0,
    changes: [Change { piece: NOWHERE, unmapped: false, hidden: false }; MAX_CHANGES],
    hides: false,
    locks: false,
    n_touched: 0,
    touched: [(0, 0); MAX_TOUCHED],
    n_protected: 0,
    protected: [(0, 0, 0); MAX_PROTECTED],
    unknown: false,
    odd: false,
    heap: 0,
    printed: 0,
    spans: (0, 0),
    pages: (0, 0),
    actions: [[0; 4]; SIGNALS],
    handled: 0,
    descriptors: [0; 16],
    at_marks: [0; 16],
    n_closed: 0,
    closed: [Closed::NONE; MAX_CLOSED],
    n_missed: 0,
    missed: [0; MAX_MISSED],
    gone: |_, _| (),
    copied: Copied::NEW,
}));

/// What is kept in mind.
pub fn track() -> &'static mut Track {
    // SAFETY: see `Cell`; callers use the borrow for one statement.
    unsafe { &mut *TRACK.0.get() }
}

/// The call leaves nothing that outlives the execution, whatever its arguments are. The mask of signals is put back, as is the alternate stack, and the
/// places in files that were open before.
#[inline(always)]
pub const fn is_harmless(nr: i64) -> bool {
    matches!(
        nr,
        any_of!(
            SYS_futex SYS_getpid SYS_gettid SYS_getppid SYS_getuid SYS_geteuid SYS_getgid SYS_getegid SYS_getgroups
            SYS_getresuid SYS_getresgid SYS_getcwd SYS_getrusage SYS_getpriority SYS_getrandom SYS_clock_gettime
            SYS_clock_getres SYS_gettimeofday SYS_time SYS_times SYS_uname SYS_sysinfo SYS_nanosleep SYS_sched_yield
            SYS_sched_getaffinity SYS_sched_getscheduler SYS_sched_getparam SYS_rt_sigprocmask SYS_sigaltstack
            SYS_stat SYS_lstat SYS_fstat SYS_newfstatat SYS_statx SYS_statfs SYS_fstatfs SYS_access SYS_faccessat
            SYS_faccessat2 SYS_readlink SYS_readlinkat SYS_lseek SYS_exit_group
        )
    )
}

/// Makes a call that may leave something.
#[cold]
#[inline(never)]
pub fn tracked(nr: i64, a: [u64; 6]) -> i64 {
    if !track().armed {
        track().locks |= matches!(nr, any_of!(SYS_mlock SYS_mlock2 SYS_mlockall));
        track().copied.looks(nr, a);
        let result = bare(nr, a);
        if nr == libc::SYS_rt_tgsigqueueinfo && is_pending(a[2]) {
            track().copied.awaits_signal();
        }
        return result;
    }
    if track().hides && shows(nr) {
        track().let_go();
    }
    match nr {
        libc::SYS_madvise => advise(a),
        libc::SYS_mmap => mapped(nr, a),
        libc::SYS_munmap => unmap(a),
        libc::SYS_mprotect => {
            track().let_go_in(a[0], pages_end(a[0], a[1]));
            track().about_to(a[0], pages_end(a[0], a[1]), false);
            // What stands there could not be put back without a change of that.
            track().odd |= a[2] as i32 & libc::PROT_WRITE == 0;
            let result = bare(nr, a);
            if result >= 0 {
                track().protects(a[0], pages_end(a[0], a[1]), a[2]);
            } else {
                // It may have been done in part.
                track().unknown = true;
            }
            result
        }
        libc::SYS_brk => {
            track().heap_ends(a[0]);
            bare(nr, a)
        }
        libc::SYS_fcntl if matches!(a[1] as i32, libc::F_GETFD | libc::F_GETFL) => bare(nr, a),
        libc::SYS_fcntl if matches!(a[1] as i32, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) => track().opened(bare(nr, a)),
        libc::SYS_fcntl if a[1] as i32 == libc::F_SETFD => {
            track().changes_flag(a[0]);
            bare(nr, a)
        }
        libc::SYS_open | libc::SYS_openat | libc::SYS_dup => track().opened(bare(nr, a)),
        libc::SYS_dup2 | libc::SYS_dup3 => {
            let open = a[0] != a[1] && track().closes(nr, a[1]);
            match bare(nr, a) {
                // What was there is there still.
                error @ ..0 if open => {
                    track().opened(a[1] as i64);
                    error
                }
                result if a[0] == a[1] => result,
                result => track().opened(result),
            }
        }
        libc::SYS_close => {
            track().closes(nr, a[0]);
            bare(nr, a)
        }
        libc::SYS_read | libc::SYS_readv if has_place(a[0]) => bare(nr, a),
        libc::SYS_clone if track().forks && a[0] as i32 & libc::CLONE_VM == 0 => {
            let child = bare(nr, a);
            if child == 0 {
                track().is_child();
            }
            child
        }
        // They leave nothing.
        libc::SYS_mincore | libc::SYS_pread64 => bare(nr, a),
        libc::SYS_getdents64 | libc::SYS_fadvise64 if track().has_opened(a[0]) => bare(nr, a),
        libc::SYS_ioctl if matches!(a[1], libc::TCGETS | libc::TIOCGWINSZ | libc::FIONREAD) => bare(nr, a),
        libc::SYS_prlimit64 if a[2] == 0 => bare(nr, a),
        libc::SYS_prctl if only_asks(a[0] as i32) => bare(nr, a),
        libc::SYS_rt_sigaction => {
            track().handles(a[0]);
            bare(nr, a)
        }
        libc::SYS_rt_tgsigqueueinfo if a[0] as i64 == bare(libc::SYS_getpid, [0; 6]) => {
            let result = bare(nr, a);
            if is_pending(a[2]) {
                track().hinder(Hinders(nr as u32));
            }
            result
        }
        libc::SYS_write | libc::SYS_writev if a[0] < 32 && track().printed >> a[0] & 1 != 0 => bare(nr, a),
        _ => {
            track().hinder(Hinders(nr as u32));
            bare(nr, a)
        }
    }
}

/// The call could tell what is hidden from what is not there, or is not known not to; those that are given an address are looked at by themselves.
fn shows(nr: i64) -> bool {
    !matches!(
        nr,
        any_of!(SYS_munmap SYS_mprotect SYS_madvise SYS_close SYS_fcntl SYS_rt_sigaction SYS_write SYS_writev)
    )
}

/// munmap, which may be done later: see `hidden`.
fn unmap(a: [u64; 6]) -> i64 {
    let (start, end) = (a[0], pages_end(a[0], a[1]));
    track().let_go_in(start, end);
    let result = match track().hide(start, end) {
        true => 0,
        false => {
            track().about_to(start, end, true);
            bare(libc::SYS_munmap, a)
        }
    };
    if result >= 0 {
        track().unmapped(start, end);
    }
    result
}

/// A signal that this process has sent to itself has not come. Where it has, its handler is over by now, or does not come back.
fn is_pending(signal: u64) -> bool {
    let mut pending = 0u64;
    bare(libc::SYS_rt_sigpending, [&raw mut pending as u64, 8, 0, 0, 0, 0]);
    signal > 64 || signal > 0 && pending >> (signal - 1) & 1 != 0
}

/// That prctl changes nothing.
fn only_asks(option: i32) -> bool {
    use libc::{PR_GET_CHILD_SUBREAPER, PR_GET_NAME, PR_GET_PDEATHSIG, PR_GET_TSC};
    matches!(option, PR_GET_CHILD_SUBREAPER | PR_GET_NAME | PR_GET_PDEATHSIG | PR_GET_TSC)
}

/// The end of the last page of `len` bytes from `at` on.
fn pages_end(at: u64, len: u64) -> u64 {
    at.saturating_add(len).saturating_add(4095) & !4095
}

fn mapped(nr: i64, a: [u64; 6]) -> i64 {
    let flags = a[3] as i32;
    if flags & libc::MAP_FIXED != 0 {
        // What it is to lie over goes.
        track().about_to(a[0], pages_end(a[0], a[1]), true);
    }
    let result = bare(nr, a);
    if result < 0 {
        return result;
    }
    let (start, end) = (result as u64, pages_end(result as u64, a[1]));
    let own = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    if flags & (own | libc::MAP_SHARED) != own {
        track().hinder(Hinders(libc::SYS_mmap as u32));
        return result;
    }
    track().unmapped(start, end);
    track().comes(start, end);
    if a[2] != READ_WRITE {
        track().protect(start, end, a[2]);
    }
    result
}

/// What stays of advice is how fast memory is, or what a core has; but where memory is given up, what was there has to be kept.
fn advise(a: [u64; 6]) -> i64 {
    let (start, end) = (a[0], pages_end(a[0], a[1]));
    track().let_go_in(start, end);
    if a[2] as i32 == libc::MADV_DONTNEED && track().is_bare(start, end) {
        return 0;
    }
    let leaves_nothing = match a[2] as i32 {
        libc::MADV_NORMAL | libc::MADV_RANDOM | libc::MADV_SEQUENTIAL | libc::MADV_WILLNEED => true,
        libc::MADV_DONTDUMP | libc::MADV_DODUMP | libc::MADV_HUGEPAGE | libc::MADV_NOHUGEPAGE => true,
        // What is there then is there as if it had been used.
        libc::MADV_POPULATE_READ | libc::MADV_POPULATE_WRITE => true,
        libc::MADV_DONTNEED => track().can_lose(start, end),
        advice => {
            match advice {
                GUARD_INSTALL => {
                    track().odd = true;
                    track().protect(start, end, GUARDED);
                }
                // How it goes on is not kept.
                _ => track().unknown = true,
            }
            track().parts(start, end, &mut |_, _, _, span| span.is_none())
        }
    };
    if !leaves_nothing {
        track().hinder(Hinders(libc::SYS_madvise as u32));
    }
    bare(libc::SYS_madvise, a)
}

impl Track {
    /// From now on; `gone` is told of memory that is unmapped, or mapped anew; `forks`: the process may make others.
    pub fn arm(&mut self, heap: u64, gone: fn(u64, u64), forks: bool) {
        (self.armed, self.why, self.heap, self.gone, self.forks) = (true, Hinders::NONE, heap, gone, forks);
        (self.n, self.n_changes, self.n_missed, self.n_touched) = (0, 0, 0, 0);
        (self.descriptors, self.handled, self.odd, self.hides) = ([0; 16], 0, false, false);
        (self.at_marks, self.n_closed) = ([0; 16], 0);
        (self.n_protected, self.unknown) = (0, false);
    }

    /// What vsrun has said of the process: descriptors that are printed to, where the spans stand, and the addresses of pages that are kept.
    pub fn told(&mut self, printed: u32, spans: (u64, usize), pages: (u64, usize)) {
        (self.printed, self.spans, self.pages) = (printed, spans, pages);
    }

    /// While a child uses this memory until it runs a program of its own nothing is kept in mind: what it does outside of memory is its own. Says whether
    /// something was.
    pub fn lends(&mut self) -> bool {
        if !self.forks {
            self.hinder(Hinders::PROCESSES);
        }
        core::mem::replace(&mut self.armed, false)
    }

    /// The process does not go back; the first reason counts.
    pub fn hinder(&mut self, why: Hinders) {
        if self.why == Hinders::NONE {
            self.why = why;
        }
    }

    pub(super) fn has_opened(&self, fd: u64) -> bool {
        self.descriptors.get(fd as usize / 64).is_some_and(|bits| bits >> (fd % 64) & 1 != 0)
    }

    /// A call that opens a descriptor has given this.
    fn opened(&mut self, result: i64) -> i64 {
        match usize::try_from(result) {
            Ok(fd) if fd < 64 * self.descriptors.len() => self.descriptors[fd / 64] |= 1 << (fd % 64),
            Ok(_) => self.hinder(Hinders(libc::SYS_open as u32)),
            Err(_) => {}
        }
        result
    }

    /// The action of a signal is asked for, or changed.
    fn handles(&mut self, signal: u64) {
        let n = signal as usize;
        if n >= SIGNALS {
            return self.hinder(Hinders(libc::SYS_rt_sigaction as u32));
        }
        if self.handled >> n & 1 != 0 {
            return;
        }
        let old = self.actions[n].as_mut_ptr() as u64;
        if bare(libc::SYS_rt_sigaction, [signal, 0, old, 8, 0, 0]) >= 0 {
            self.handled |= 1 << n;
        }
    }

    fn touch(&mut self, start: u64, end: u64) {
        if let Some(place) = self.touched.get_mut(self.n_touched) {
            *place = (start, end);
        }
        self.n_touched += 1;
    }

    /// What a mark keeps of this. `None`: there is what it cannot bring back.
    pub fn at_mark(&mut self) -> Option<AtMark> {
        // What was hidden at a mark could be gone when one comes back to it.
        self.let_go();
        if self.why != Hinders::NONE || self.odd || self.n > MAX_PIECES || self.n_touched > MAX_TOUCHED {
            return None;
        }
        let mut at = AtMark {
            n: self.n,
            pieces: [(0, 0); MAX_PIECES],
            n_changes: self.n_changes,
            n_touched: self.n_touched,
            n_gone: 0,
            gone: [(0, 0); MAX_PIECES],
            brk: bare(libc::SYS_brk, [0; 6]) as u64,
            handled: self.handled,
            actions: [[0; 4]; SIGNALS],
            n_closed: self.n_closed,
            n_open: 0,
            open: [Opened::NONE; MAX_OPEN],
        };
        at.n_open = self.open_now(&mut at.open)?;
        at.pieces[..self.n].copy_from_slice(&self.fresh[..self.n]);
        for Change { piece, .. } in self.changes[..self.n_changes].iter().filter(|change| change.unmapped) {
            *at.gone.get_mut(at.n_gone)? = (piece.start, piece.end);
            at.n_gone += 1;
        }
        for n in (0..SIGNALS).filter(|&n| self.handled >> n & 1 != 0) {
            bare(libc::SYS_rt_sigaction, [n as u64, 0, at.actions[n].as_mut_ptr() as u64, 8, 0, 0]);
        }
        Some(at)
    }

    /// The process can come back to that mark.
    pub fn can_come_to(&self, mark: &AtMark) -> bool {
        let Some(touched) = self.touched.get(mark.n_touched..self.n_touched) else { return false };
        let is_there = |&(from, to): &(u64, u64)| mark.pieces().iter().any(|piece| piece.0 < to && from < piece.1);
        !touched.iter().any(|part| (part.0, part.1) == (0, u64::MAX) || is_there(part))
    }

    /// Undoes what was done to descriptors and mappings since a mark, as [`Track::undo`] does what was done since the first choice.
    pub fn undo_to(&self, mark: &AtMark) -> Option<()> {
        let well = |result: i64| (result >= 0).then_some(());
        self.open_again(&mark.open[..mark.n_open], mark.n_closed)?;
        for n in (0..SIGNALS).filter(|&n| self.handled >> n & 1 != 0) {
            let actions = if mark.handled >> n & 1 != 0 { &mark.actions } else { &self.actions };
            bare(libc::SYS_rt_sigaction, [n as u64, actions[n].as_ptr() as u64, 0, 8, 0, 0]);
        }
        for &(start, end) in &self.fresh[..self.n] {
            let mut at = start;
            while at < end {
                let inside = mark.pieces().iter().find(|piece| piece.0 <= at && at < piece.1);
                let next = mark.pieces().iter().map(|piece| piece.0).filter(|&from| from > at).min();
                let to = inside.map_or(next.unwrap_or(end), |piece| piece.1).min(end);
                if inside.is_none() {
                    well(bare(libc::SYS_munmap, [at, to - at, 0, 0, 0, 0]))?;
                }
                at = to;
            }
        }
        self.undo_changes(mark.n_changes)
    }

    /// Undoes what was done to descriptors and mappings. Of what was unmapped the pages that are kept are still to be put back. `None`: it cannot be undone.
    pub fn undo(&self) -> Option<()> {
        let well = |result: i64| (result >= 0).then_some(());
        self.open_again(&[], 0)?;
        for n in (0..SIGNALS).filter(|&n| self.handled >> n & 1 != 0) {
            bare(libc::SYS_rt_sigaction, [n as u64, self.actions[n].as_ptr() as u64, 0, 8, 0, 0]);
        }
        for &(start, end) in &self.fresh[..self.n] {
            well(bare(libc::SYS_munmap, [start, end - start, 0, 0, 0, 0]))?;
        }
        self.undo_changes(0)
    }

    /// Undoes changes of what was there before, but for the first `kept`.
    fn undo_changes(&self, kept: usize) -> Option<()> {
        let well = |result: i64| (result >= 0).then_some(());
        for Change { piece, unmapped, hidden } in self.changes[kept..self.n_changes].iter().rev() {
            let (at, len, prot) = (piece.start, piece.end - piece.start, piece.prot.into());
            if *hidden {
                // What nobody may use is as it was.
                (prot == 0 || bare(libc::SYS_mprotect, [at, len, prot, 0, 0, 0]) >= 0).then_some(())?;
                continue;
            }
            if *unmapped {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
                well(bare(libc::SYS_mmap, [at, len, prot, flags as u64, u64::MAX, 0]))?;
                written::watch(at, piece.end).then_some(())?;
                continue;
            }
            if !piece.is_writable() {
                // Nothing was there, see `about_to`.
                well(bare(libc::SYS_madvise, [at, len, libc::MADV_DONTNEED as u64, 0, 0, 0]))?;
            }
            well(bare(libc::SYS_mprotect, [at, len, prot, 0, 0, 0]))?;
        }
        Some(())
    }

    /// The page was there at the first choice, and is not any more.
    pub fn has_gone(&self, page: u64) -> bool {
        let changes = &self.changes[..self.n_changes];
        changes.iter().any(|change| change.unmapped && change.piece.start <= page && page < change.piece.end)
    }

    /// Pages that have been taken away and are not kept.
    pub fn missed(&self) -> &[u64] {
        &self.missed[..self.n_missed]
    }

    /// What the process has done outside of memory since the first choice, as far as that can be told: mappings, in whatever order they were made, and
    /// descriptors. `None`: there is more than that.
    pub fn digest(&self) -> Option<[u64; 2]> {
        let known = self.why == Hinders::NONE && !self.unknown && self.n_missed == 0 && self.n_closed == 0;
        if !self.armed || !known {
            return None;
        }
        let edge = |at: u64| Mixer::of(Purpose::MAPPED, &at);
        let mut all = [0; 2];
        // Two mappings side by side are one.
        for &(from, to) in &self.fresh[..self.n] {
            let (from, to) = (edge(from), edge(to));
            all = together(all, [to[0].wrapping_sub(from[0]), to[1].wrapping_sub(from[1])]);
        }
        for (from, to, prot) in &self.protected[..self.n_protected] {
            let (from, to) = (Mixer::of(Purpose::PROTECTED, &(from, prot)), Mixer::of(Purpose::PROTECTED, &(to, prot)));
            all = together(all, [to[0].wrapping_sub(from[0]), to[1].wrapping_sub(from[1])]);
        }
        for Change { piece, .. } in self.changes[..self.n_changes].iter().filter(|change| change.unmapped) {
            all = together(all, Mixer::of(Purpose::UNMAPPED, &(piece.start, piece.end)));
        }
        let mut mixer = Mixer::new(Purpose::MAPPED);
        mixer.pair(all);
        (self.descriptors, self.odd, bare(libc::SYS_brk, [0; 6])).hash(&mut mixer);
        Some(mixer.digest())
    }

    /// Each descriptor that was opened since the first choice.
    pub fn opened_since(&self) -> impl Iterator<Item = u64> + '_ {
        (0..64 * self.descriptors.len() as u64).filter(|&fd| self.has_opened(fd))
    }

    /// Mappings that were made since the first choice, from an address to another one.
    pub fn fresh(&self) -> &[(u64, u64)] {
        &self.fresh[..self.n]
    }

    /// Where this stands: from an address to another one.
    pub fn place(&self) -> (u64, u64) {
        let at = &raw const *self as u64;
        (at, at + size_of::<Track>() as u64)
    }

    /// The end of the heap at the first choice.
    pub fn heap(&self) -> u64 {
        self.heap
    }

    pub(super) fn add(&mut self, start: u64, end: u64) {
        // One that goes on where another one ends is one with it.
        if let Some(last) = self.fresh[..self.n].iter_mut().find(|last| last.1 == start) {
            last.1 = end;
            return;
        }
        if self.n == MAX_FRESH {
            return self.hinder(Hinders::ROOM);
        }
        self.fresh[self.n] = (start, end);
        self.n += 1;
    }

    /// Calls `each` with the parts of a stretch of memory: with what was there before, or `None` where it was mapped since. False: `each` gave false,
    /// or a part is neither.
    pub(super) fn parts(&mut self, start: u64, end: u64, each: &mut Each) -> bool {
        let spans = self.spans();
        let mut at = start;
        while at < end {
            let fresh = self.fresh[..self.n].iter().find(|piece| piece.0 <= at && at < piece.1);
            let (to, span) = match fresh {
                Some(piece) => (piece.1, None),
                None => match spans.iter().find(|span| span.start <= at && at < span.end) {
                    Some(span) => {
                        let next = self.fresh[..self.n].iter().map(|piece| piece.0).filter(|&from| from > at).min();
                        (span.end.min(next.unwrap_or(u64::MAX)), Some(*span))
                    }
                    None => return false,
                },
            };
            let to = to.min(end);
            if !each(self, at, to, span) {
                return false;
            }
            at = to;
        }
        true
    }

    /// Memory is about to be unmapped, or protected.
    pub(super) fn about_to(&mut self, start: u64, end: u64, unmapped: bool) {
        let done = self.parts(start, end, &mut |track, from, to, span| match span {
            None => {
                track.touch(from, to);
                true
            }
            Some(span) => track.change(from, to, span, unmapped),
        });
        if !done {
            self.hinder(Hinders::MAPPINGS);
        }
    }

    /// That piece of memory, which was there before, is changed. False: that cannot be undone.
    fn change(&mut self, start: u64, end: u64, span: Span, unmapped: bool) -> bool {
        if !span.comes_back() || self.n_changes == MAX_CHANGES {
            return false;
        }
        // What can be written and is not taken away is looked at in the end.
        let lost = unmapped || !span.is_writable();
        if lost && !self.is_guard(start, end, span) && !self.knows_all(start, end, span.is_writable()) {
            return false;
        }
        if self.has_changed(start, end) {
            // It is put back as it was at first.
            self.touch(0, u64::MAX);
        }
        self.changes[self.n_changes] = Change { piece: Span { start, end, ..span }, unmapped, hidden: false };
        self.n_changes += 1;
        true
    }

    /// Something was done to mappings there.
    pub(super) fn has_changed(&self, start: u64, end: u64) -> bool {
        let changes = &self.changes[..self.n_changes];
        changes.iter().any(|change| change.piece.start < end && start < change.piece.end)
    }

    /// Of each page that is there there is a copy; where none is kept, nothing is there.
    pub(super) fn knows_all(&mut self, start: u64, end: u64, kept: bool) -> bool {
        let (pages, n) = self.pages;
        // SAFETY: as the spans.
        let pages = unsafe { core::slice::from_raw_parts(pages as *const u64, n) };
        let mut nothing = true;
        let known = written::present(start, end, &mut |from, to| {
            nothing = false;
            let mut page = from;
            while kept && page < to {
                if pages.binary_search(&page).is_err() {
                    self.hinder(Hinders::PAGES);
                    if self.n_missed == MAX_MISSED {
                        return true;
                    }
                    self.missed[self.n_missed] = page;
                    self.n_missed += 1;
                }
                page += 4096;
            }
            true
        });
        known && (kept || nothing)
    }

    /// What is there may be given up: it is kept, or was not there before. False: it cannot be put back.
    fn can_lose(&mut self, start: u64, end: u64) -> bool {
        self.parts(start, end, &mut |track, from, to, span| match span {
            None => true,
            Some(span) => track.is_guard(from, to, span) || track.knows_all(from, to, span.is_writable()),
        })
    }

    /// It is as at the first choice, and nothing is there: to give that up changes nothing, and the kernel would not refuse to.
    fn is_bare(&mut self, start: u64, end: u64) -> bool {
        let plain = !self.locks && start.is_multiple_of(4096) && !self.has_changed(start, end);
        plain
            && self.parts(start, end, &mut |_, from, to, span| {
                span.is_some_and(|span| {
                    span.is_empty() || span.comes_back() && written::present(from, to, &mut |_, _| false)
                })
            })
    }

    /// It cannot be written, and nothing is there.
    fn is_guard(&self, start: u64, end: u64, span: Span) -> bool {
        span.is_empty() && !self.has_changed(start, end)
    }

    /// Nothing is mapped there any more, or something else is.
    pub(super) fn unmapped(&mut self, start: u64, end: u64) {
        (self.gone)(start, end);
        self.forget_protected(start, end);
        let mut i = 0;
        while i < self.n {
            let (from, to) = self.fresh[i];
            if to <= start || end <= from {
                i += 1;
                continue;
            }
            let (left, right) = ((from, start.max(from)), (end.min(to), to));
            self.n -= 1;
            self.fresh[i] = self.fresh[self.n];
            for (a, b) in [left, right] {
                if a < b {
                    if self.n == MAX_FRESH {
                        return self.hinder(Hinders::ROOM);
                    }
                    self.fresh[self.n] = (a, b);
                    self.n += 1;
                }
            }
            // What has come to this place is looked at next: it lies beside, or is one of them too.
        }
    }
}
