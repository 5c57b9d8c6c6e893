//! Which pages have been written: the kernel's userfaultfd, asynchronously, and its ioctl PAGEMAP_SCAN (Linux 6.7).

use vsrun_model::arena::{WRITES_FD, WRITTEN_FD};

use super::bare::bare;

/// UFFD_USER_MODE_ONLY: for that no privilege is needed.
const USER_MODE_ONLY: u64 = 1;
/// UFFDIO_API, and its version.
const API: u64 = 0xc018_aa3f;
const UFFD_API: u64 = 0xaa;
/// UFFD_FEATURE_WP_UNPOPULATED, UFFD_FEATURE_WP_ASYNC.
const FEATURES: u64 = 1 << 13 | 1 << 15;
/// UFFDIO_REGISTER, with UFFDIO_REGISTER_MODE_WP.
const REGISTER: u64 = 0xc020_aa00;
const MODE_WP: u64 = 1 << 1;
const PAGEMAP_SCAN: u64 = 0xc060_6610;

/// PM_SCAN_WP_MATCHING: what is found is watched again.
const PROTECT: u64 = 1;
/// PM_SCAN_CHECK_WPASYNC: an error where there is memory that is not watched.
const CHECK: u64 = 2;

// Categories (PAGE_IS_..).
const WATCHED: u64 = 1 << 0;
const WRITTEN: u64 = 1 << 1;
const FILE: u64 = 1 << 2;
const PRESENT: u64 = 1 << 3;
const SWAPPED: u64 = 1 << 4;
const ZERO: u64 = 1 << 5;

/// struct pm_scan_arg.
#[repr(C)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// Opens what is needed, under vsrun's descriptors. False: the kernel does not have it, or does not allow it.
pub fn open() -> bool {
    let flags = (libc::O_CLOEXEC | libc::O_NONBLOCK) as u64 | USER_MODE_ONLY;
    let fd = bare(libc::SYS_userfaultfd, [flags, 0, 0, 0, 0, 0]);
    if fd < 0 || !renumber(fd, WRITES_FD) {
        return false;
    }
    let mut api = [UFFD_API, FEATURES, 0];
    if bare(libc::SYS_ioctl, [WRITES_FD as u64, API, api.as_mut_ptr() as u64, 0, 0, 0]) < 0 {
        return false;
    }
    let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as u64;
    let fd = bare(libc::SYS_open, [c"/proc/self/pagemap".as_ptr() as u64, flags, 0, 0, 0, 0]);
    fd >= 0 && renumber(fd, WRITTEN_FD)
}

fn renumber(fd: i64, to: i32) -> bool {
    let result = bare(libc::SYS_dup3, [fd as u64, to as u64, libc::O_CLOEXEC as u64, 0, 0, 0]);
    bare(libc::SYS_close, [fd as u64, 0, 0, 0, 0, 0]);
    result == to as i64
}

/// Closes it again.
pub fn close() {
    bare(libc::SYS_close, [WRITES_FD as u64, 0, 0, 0, 0, 0]);
    bare(libc::SYS_close, [WRITTEN_FD as u64, 0, 0, 0, 0, 0]);
}

/// Watches memory for writes; all that is there is taken to be written until [`protect`].
pub fn watch(start: u64, end: u64) -> bool {
    let mut register = [start, end - start, MODE_WP, 0];
    bare(libc::SYS_ioctl, [WRITES_FD as u64, REGISTER, register.as_mut_ptr() as u64, 0, 0, 0]) >= 0
}

/// Nothing that is there now has been written. (Asked to say nothing, the kernel would also protect what is not there, by an entry for each page.)
pub fn protect(start: u64, end: u64, room: &mut [Piece]) -> bool {
    let scan = Scan {
        flags: PROTECT | CHECK,
        category_inverted: 0,
        category_mask: 0,
        category_anyof_mask: PRESENT | SWAPPED,
        return_mask: PRESENT,
        ..WRITES
    };
    all(scan, start, end, room, &mut |_, _| true)
}

/// Asks for what was written, where memory is watched: the kernel goes past all else.
const WRITES: Scan = Scan {
    size: size_of::<Scan>() as u64,
    flags: 0,
    start: 0,
    end: 0,
    walk_end: 0,
    vec: 0,
    vec_len: 0,
    max_pages: 0,
    // What is still the file's has only been read.
    category_inverted: ZERO | FILE,
    category_mask: WATCHED | WRITTEN | ZERO | FILE,
    category_anyof_mask: PRESENT | SWAPPED,
    return_mask: WRITTEN,
};

/// A piece of memory as the kernel tells it: from, to, categories.
pub type Piece = [u64; 3];

/// Shows each piece of memory that is watched and was written since it was protected, ascending; `room` is for what the kernel says. False: it does not know,
/// or `each` gave false. Pages that have only been read, where nothing was before, are not written. What lies between two pieces of memory that are watched
/// costs nothing, so it is asked for all of them at once.
pub fn each(start: u64, end: u64, room: &mut [Piece], each: &mut dyn FnMut(u64, u64) -> bool) -> bool {
    all(WRITES, start, end, room, each)
}

/// Whether all of a stretch of memory is watched.
pub fn is_watched(start: u64, end: u64, room: &mut [Piece]) -> bool {
    all(Scan { flags: CHECK, ..WRITES }, start, end, room, &mut |_, _| true)
}

fn all(mut scan: Scan, start: u64, end: u64, room: &mut [Piece], each: &mut dyn FnMut(u64, u64) -> bool) -> bool {
    (scan.start, scan.end) = (start, end);
    (scan.vec, scan.vec_len) = (room.as_mut_ptr() as u64, room.len() as u64);
    while scan.start < end {
        let n = bare(libc::SYS_ioctl, [WRITTEN_FD as u64, PAGEMAP_SCAN, &raw mut scan as u64, 0, 0, 0]);
        if n < 0 {
            return false;
        }
        for piece in room.iter().take(n as usize) {
            if !each(piece[0], piece[1]) {
                return false;
            }
        }
        // SAFETY: the field is initialized; the kernel has written it.
        let walked = unsafe { core::ptr::read_volatile(&raw const scan.walk_end) };
        if walked <= scan.start {
            return false;
        }
        scan.start = walked;
    }
    true
}

/// Shows each piece of memory that is there, ascending, watched or not; `room` is for what the kernel says. False: as for [`each`].
pub fn there(start: u64, end: u64, room: &mut [Piece], each: &mut dyn FnMut(u64, u64) -> bool) -> bool {
    let scan = Scan { category_inverted: ZERO, category_mask: ZERO, return_mask: PRESENT, ..WRITES };
    all(scan, start, end, room, each)
}

/// Shows each piece of memory that is there, ascending, where all of it is watched. False: as for [`each`], or it is not.
pub fn present(start: u64, end: u64, each: &mut dyn FnMut(u64, u64) -> bool) -> bool {
    let scan = Scan { flags: CHECK, category_inverted: ZERO, category_mask: ZERO, return_mask: PRESENT, ..WRITES };
    let mut room = [[0; 3]; 16];
    all(scan, start, end, &mut room, each)
}
