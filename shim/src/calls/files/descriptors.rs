//! What is known of the descriptors of this process: which open file description one names, and which file that is. So a
//! read or write does not ask the kernel for it each time: a write after an fstat costs the kernel more, since the
//! time of the change must differ then.
//!
//! A number stands for something else only after a close, or as the target of dup2 and dup3: all of which forget it. A
//! fork copies the table, exec empties it. The child of a vfork has descriptors of its own in its parent's memory: it
//! neither reads nor writes the table.

use core::cell::UnsafeCell;

use vsrun_model::closing::Awaits;
use vsrun_model::file::PLACED;

use super::layer::{file, watches};
use super::path::{mix, Path, Stat};
use super::room::with_stack;
use crate::gate::{arena, local, me, world};
use crate::sys::raw;

/// Descriptors that something is known of.
const MAX_FDS: usize = 1024;

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    /// Not asked for.
    Unknown,
    /// The file with these numbers, and for what it is open.
    File((u64, u64), Access),
    /// What the program prints to, where that is looked at.
    Output,
    /// No file of the program's.
    Other,
}

/// What a file is open for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Reading,
    Writing,
    Both,
}

#[derive(Clone, Copy)]
struct Known {
    /// The name of the open file description; 0: not known.
    description: u32,
    what: What,
}

const NOTHING: Known = Known { description: 0, what: What::Unknown };

struct Table(UnsafeCell<[Known; MAX_FDS]>);
// SAFETY: one kernel thread a process; used for a statement at a time.
unsafe impl Sync for Table {}

static TABLE: Table = Table(UnsafeCell::new([NOTHING; MAX_FDS]));

fn known(fd: i32) -> Option<&'static mut Known> {
    if local().borrowed {
        return None;
    }
    // SAFETY: see `Table`.
    unsafe { (*TABLE.0.get()).get_mut(usize::try_from(fd).ok()?) }
}

/// The name of the open file description of `fd`; 0: not known.
pub fn description(fd: i32) -> u32 {
    known(fd).map_or(0, |known| known.description)
}

/// Descriptor `fd` has come in a message, for the description of that name.
pub fn received(fd: i32, description: u32) {
    if let Some(known) = known(fd) {
        *known = Known { description, ..NOTHING };
    }
}

/// Descriptor `fd` is closed, or becomes another.
pub fn forget(fd: i32) {
    if let Some(known) = known(fd) {
        *known = NOTHING;
    }
}

/// `to` stands for what `from` does.
pub fn copy(from: i32, to: i32) {
    let what = known(from).map_or(NOTHING, |known| *known);
    if let Some(known) = known(to) {
        *known = what;
    }
}

/// A call has made descriptor `result`, by opening or as another name of an open file description, or has closed some.
pub fn made(nr: i64, a: &[u64; 6], result: i64) {
    let now = match nr {
        libc::SYS_close => return forget(a[0] as i32),
        libc::SYS_close_range => {
            let last = a[1].min(MAX_FDS as u64 - 1) as i32;
            return (a[0].min(MAX_FDS as u64) as i32..=last).for_each(forget);
        }
        _ if result < 0 => return,
        // Opened by this thread with this number: two of which that is so are taken for one.
        libc::SYS_open | libc::SYS_openat | libc::SYS_creat | libc::SYS_memfd_create => {
            let description = (mix(me().uid.0, result as u64) as u32).clamp(1, PLACED - 1);
            Known { description, ..NOTHING }
        }
        libc::SYS_dup | libc::SYS_dup2 | libc::SYS_dup3 => known(a[0] as i32).map_or(NOTHING, |known| *known),
        libc::SYS_fcntl if matches!(a[1] as i32, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) => {
            known(a[0] as i32).map_or(NOTHING, |known| *known)
        }
        _ => return,
    };
    if let Some(known) = known(result as i32) {
        *known = now;
    }
}

fn what(fd: i32) -> What {
    let kept = known(fd).map_or(What::Unknown, |known| known.what);
    if kept != What::Unknown {
        return kept;
    }
    let Ok(stat) = Stat::of_fd(fd) else { return What::Unknown };
    let access = || match raw!(libc::SYS_fcntl, fd, libc::F_GETFL) as i32 & libc::O_ACCMODE {
        libc::O_RDONLY => Access::Reading,
        libc::O_WRONLY => Access::Writing,
        _ => Access::Both,
    };
    let what = match file(&stat) {
        _ if is_output(&stat) => What::Output,
        Some(id) => What::File(id, access()),
        None if is_nameless(fd, &stat) => What::File(stat.id(), access()),
        None => What::Other,
    };
    if let Some(known) = known(fd) {
        known.what = what;
    }
    what
}

/// What the standard streams are, for all processes that are forked from this one.
pub fn know_streams() {
    for fd in 0..3 {
        what(fd);
    }
}

/// A file that has no name, or none any more, outside of the layer: one that was removed, that memfd_create or O_TMPFILE made, or
/// standard input. What collects the program's output is no file of its own.
fn is_nameless(fd: i32, stat: &Stat) -> bool {
    let is = || {
        let mut name = Path::new();
        let known = name.of_descriptor(fd).is_ok();
        let own = name.get().strip_prefix(b"/memfd:vsrun-");
        known && own.is_none_or(|own| own.starts_with(b"stdin"))
    };
    stat.kind() == libc::S_IFREG && stat.links() == 0 && with_stack(is)
}

/// The numbers of the file of `fd` as the program knows it; `None`: it is no file of the program's.
pub fn file_of(fd: i32) -> Option<(u64, u64)> {
    match what(fd) {
        What::File(id, _) => Some(id),
        _ => None,
    }
}

/// What the program prints to is known by now: descriptors that were taken for something else are looked at again.
pub fn know_output() {
    for fd in 0..MAX_FDS as i32 {
        if let Some(known) = known(fd).filter(|known| known.what == What::Other) {
            known.what = What::Unknown;
        }
    }
    know_streams();
}

/// The file with these numbers is what the program prints to, and that is looked at.
fn is_output(stat: &Stat) -> bool {
    arena().closing.awaits == Awaits::OUTPUT && arena().closing.outputs.contains(&stat.id())
}

/// What is written by `fd` is what the program prints, and is looked at.
pub fn prints(fd: i32) -> bool {
    let is_read = arena().closing.awaits == Awaits::OUTPUT && watches() && !world().is_of_client(local().cur);
    is_read && what(fd) == What::Output
}

/// Calls `each` with descriptors through which this process, which has opened them, may write files, and with the files.
pub fn each_written(mut each: impl FnMut(i32, (u64, u64))) {
    for fd in 0..MAX_FDS as i32 {
        if description(fd) == 0 {
            continue;
        }
        if let What::File(id, Access::Writing | Access::Both) = what(fd) {
            each(fd, id);
        }
    }
}

/// True if the file can be written through `fd`, but not read.
pub fn only_writes(fd: i32) -> bool {
    matches!(what(fd), What::File(_, Access::Writing))
}

/// True if the file can be read through `fd`, but not written.
pub fn only_reads(fd: i32) -> bool {
    matches!(what(fd), What::File(_, Access::Reading))
}
