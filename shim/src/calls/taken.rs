//! What calls that map, unmap and protect take from who uses the memory, or give: for the stand-ins of their functions, and for calls by their numbers.

use vsrun_model::library::Size;

use super::buffers;
use crate::gate::{local, machine, Phase};
use crate::sys::{origin, readable};
use crate::watch;

const PAGE: u64 = 4096;
/// Advice after which what was there may be gone: MADV_DONTNEED, MADV_FREE, MADV_REMOVE, MADV_DONTNEED_LOCKED; here or in children to come: MADV_DONTFORK,
/// MADV_DOFORK, MADV_WIPEONFORK, MADV_KEEPONFORK.
const DISCARD: [i32; 8] = [4, 8, 9, 24, 10, 11, 18, 19];
/// So much of it is recorded, since its shadow is written, too. Of more the rest is not recorded, which is said.
pub const MOST: u64 = 4 << 20;

/// Bytes from the first argument on, of a call with these; 0: nothing happens to what is there.
pub fn taken(size: Size, a: [u64; 4]) -> u64 {
    let has = |flag: i32| a[3] as i32 & flag == flag;
    let length = match size {
        Size::Replaced if has(libc::MAP_FIXED) && !has(libc::MAP_FIXED_NOREPLACE) => a[1],
        Size::Discarded if DISCARD.contains(&(a[2] as i32)) => a[1],
        Size::Unmapped => a[1],
        Size::Moved => a[1].max(a[2]),
        Size::Opened if !stays_readable(a) => a[1],
        Size::Frozen if stays_readable(a) => a[1],
        _ => return 0,
    };
    let length = length.saturating_add(PAGE - 1) & !(PAGE - 1);
    if length > MOST {
        machine().note_wide_use();
    }
    length.min(MOST)
}

/// Who only reads what mprotect is about cannot tell it.
fn stays_readable([at, size, protection, _]: [u64; 4]) -> bool {
    let size = size.min(MOST);
    protection as i32 & libc::PROT_READ != 0 && readable(at, size) == size
}

/// Call `nr` is about to be made by the instruction that ends there. If the program itself makes it no stand-in has told what it takes and gives: it does
/// so in one step.
pub fn by_number(nr: i64, a: [u64; 6], end: u64) {
    // As in `vsrun_model::library`: what is written, and what is read.
    let (written, read) = match nr {
        libc::SYS_mmap => (Size::Replaced, None),
        libc::SYS_madvise => (Size::Discarded, None),
        libc::SYS_munmap => (Size::Unmapped, None),
        libc::SYS_mremap => (Size::Moved, None),
        libc::SYS_mprotect | libc::SYS_pkey_mprotect => (Size::Opened, Some(Size::Frozen)),
        _ => return,
    };
    if !watch::is_recording() || local().phase != Phase::Running || local().borrowed || !origin::is_programs(end) {
        return;
    }
    let (first, site) = ([a[0], a[1], a[2], a[3]], buffers::site_of(nr));
    let size = taken(written, first);
    if size > 0 {
        buffers::wrote(a[0], size, site);
    }
    let size = read.map_or(0, |read| taken(read, first));
    if size > 0 {
        if watch::has_object(a[0], size) {
            machine().note_wide_use();
        }
        watch::call_reads(a[0], size, site);
    }
}
