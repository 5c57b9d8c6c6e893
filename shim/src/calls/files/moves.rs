//! What calls do to shared memory that has a descriptor (memfds, files in /dev/shm) and is mapped, too: the bytes that they move are those of
//! the mapping. Where memory is watched they are recorded as uses of it. Where another process alone has it mapped, that is noted as not explored.
//!
//! A call has its bytes in one step. Where some of them are objects others would have their turn within: that is told.

use vsrun_model::object::SHARED;
use vsrun_model::watch::Range;
use vsrun_model::ProcState;

use super::descriptors::file_of;
use super::path::Stat;
use super::room::with_stack;
use super::uses::{is_memory, name_of_file, unexplored};
use crate::calls::buffers::{site_of, wrote};
use crate::calls::taken::MOST;
use crate::gate::{arena, local, machine, world, Phase};
use crate::sys::{any_of, load, raw, readable};
use crate::watch;

const PAGE: u64 = 4096;

/// Bytes of a file.
#[derive(Clone, Copy, Default)]
struct Span {
    region: u32,
    from: u64,
    len: u64,
    writes: bool,
}

/// What a call moves, of each of its two descriptors.
pub struct Moves([Option<Span>; 2]);

impl Moves {
    /// Of the call that is about to be made; what of it is an object has its turn first.
    #[inline]
    pub fn of(nr: i64, a: &[u64; 6]) -> Moves {
        let nothing = Moves([None; 2]);
        if arena().regions.len == 0
            || !moves(nr)
            || local().phase != Phase::Running
            || !world().concurrent
            || local().borrowed
        {
            return nothing;
        }
        Moves::found(nr, a)
    }

    #[cold]
    #[inline(never)]
    fn found(nr: i64, a: &[u64; 6]) -> Moves {
        let mut spans = spans(nr, a);
        if !gives_bytes(nr) {
            for span in spans.iter_mut().flatten().filter(|span| span.len > MOST) {
                span.len = MOST;
                machine().note_wide_use();
            }
        }
        for span in spans.iter().flatten() {
            span.each(|at, size| {
                if watch::has_object(at, size) {
                    machine().note_wide_use();
                    watch::call_reads(at, size, site_of(nr));
                }
            });
        }
        Moves(spans)
    }

    /// The call has been made, with that result.
    #[inline]
    pub fn done(&self, nr: i64, result: i64) {
        if result >= 0 && self.0.iter().any(Option::is_some) {
            self.record(nr, result as u64);
        }
    }

    #[cold]
    #[inline(never)]
    fn record(&self, nr: i64, result: u64) {
        for span in self.0.iter().flatten() {
            let len = if gives_bytes(nr) { span.len.min(result) } else { span.len };
            Span { len, ..*span }.each(|at, size| match span.writes {
                true => wrote(at, size, site_of(nr)),
                false if watch::has_object(at, size) => {}
                false => watch::call_reads(at, size, site_of(nr)),
            });
        }
    }
}

impl Span {
    /// Each stretch of it that this process has mapped.
    fn each(&self, f: impl Fn(u64, u64)) {
        if !watch::is_recording() {
            return;
        }
        let l = local();
        for range in l.ranges[..l.n_ranges].iter().filter(|r| r.space == SHARED | self.region) {
            let (from, to) = self.within(range);
            if from < to {
                f(range.start + (from - range.offset), to - from);
            }
        }
    }

    fn within(&self, range: &Range) -> (u64, u64) {
        let ends = range.offset + (range.end - range.start);
        (self.from.max(range.offset), self.from.saturating_add(self.len).min(ends))
    }
}

/// Calls that move bytes of files.
fn moves(nr: i64) -> bool {
    gives_bytes(nr) || matches!(nr, any_of!(SYS_ftruncate SYS_fallocate))
}

/// Those whose result says how many.
fn gives_bytes(nr: i64) -> bool {
    matches!(
        nr,
        any_of!(
            SYS_read SYS_readv SYS_pread64 SYS_preadv SYS_preadv2 SYS_write SYS_writev SYS_pwrite64 SYS_pwritev SYS_pwritev2 SYS_sendfile
            SYS_splice SYS_copy_file_range
        )
    )
}

fn spans(nr: i64, a: &[u64; 6]) -> [Option<Span>; 2] {
    let (one, here) = (a[0], u64::MAX);
    let at = |place: u64| if place == 0 { here } else { number(place) };
    let (first, second) = match nr {
        libc::SYS_read => ((one, here, a[2], false), None),
        libc::SYS_write => ((one, here, a[2], true), None),
        libc::SYS_pread64 => ((one, a[3], a[2], false), None),
        libc::SYS_pwrite64 => ((one, a[3], a[2], true), None),
        libc::SYS_readv => ((one, here, total(a), false), None),
        libc::SYS_writev => ((one, here, total(a), true), None),
        // The place -1 is where the description stands.
        libc::SYS_preadv | libc::SYS_preadv2 => ((one, a[3], total(a), false), None),
        libc::SYS_pwritev | libc::SYS_pwritev2 => ((one, a[3], total(a), true), None),
        libc::SYS_sendfile => ((a[1], at(a[2]), a[3], false), Some((one, here, a[3], true))),
        libc::SYS_splice | libc::SYS_copy_file_range => {
            ((one, at(a[1]), a[4], false), Some((a[2], at(a[3]), a[4], true)))
        }
        // What becomes zeros, or does not exist any more.
        libc::SYS_fallocate if a[1] as i32 & !libc::FALLOC_FL_KEEP_SIZE != 0 => ((one, a[2], a[3], true), None),
        // What comes or goes.
        libc::SYS_ftruncate => {
            let size = Stat::of_fd(one as i32).map_or(0, |stat| stat.size());
            let whole = |size: u64| size.saturating_add(PAGE - 1) & !(PAGE - 1);
            let (first, end) = if a[1] < size { (a[1], whole(size)) } else { (whole(size), whole(a[1])) };
            ((one, first, end - first, true), None)
        }
        _ => return [None; 2],
    };
    [span(first), second.and_then(span)]
}

/// Bytes of all pieces (`struct iovec`) of a call.
fn total(a: &[u64; 6]) -> u64 {
    let piece = |n: u64| number(a[1].wrapping_add(16 * n + 8));
    (0..a[2].min(1024)).map(piece).fold(0, u64::saturating_add)
}

fn number(at: u64) -> u64 {
    match readable(at, 8) == 8 {
        true => load(at),
        false => 0,
    }
}

/// What is mapped of `len` bytes of a descriptor's file from `place` on, or from where its description stands.
fn span((fd, place, len, writes): (u64, u64, u64, bool)) -> Option<Span> {
    let fd = i32::try_from(fd).ok()?;
    let (dev, ino) = file_of(fd)?;
    let region = arena().regions.as_slice().iter().position(|r| (r.dev, r.ino) == (dev + 1, ino))? as u32;
    // Of other files that are mapped it is noted who uses them, see `shared::mapped`.
    if !with_stack(|| is_memory(fd)) {
        return None;
    }
    let appends = writes && raw!(libc::SYS_fcntl, fd, libc::F_GETFL) & i64::from(libc::O_APPEND) != 0;
    let from = match place {
        _ if appends => Stat::of_fd(fd).ok()?.size(),
        u64::MAX => u64::try_from(raw!(libc::SYS_lseek, fd, 0, libc::SEEK_CUR)).ok()?,
        place => place,
    };
    let span = Span { region, from, len, writes };
    let own = |r: &Range| r.space == SHARED | region;
    let l = local();
    let others = || (0..world().procs.len).any(|p| p != local().pid && world().procs[p].state != ProcState::REAPED);
    if len > 0 && !l.ranges[..l.n_ranges].iter().any(own) && others() {
        unexplored(|| name_of_file(fd));
    }
    Some(span)
}
