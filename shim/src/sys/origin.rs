//! Where system calls come from: libc and the loader make calls for themselves, of which nobody else knows; `syscall` makes what the program says.

use core::cell::UnsafeCell;

use super::elf::{self, Auxv};

/// From an address to another one.
type Piece = (u64, u64);

/// The code of libc and of the loader, and that of `syscall`.
struct Known(UnsafeCell<[Piece; 3]>);
// SAFETY: one kernel thread a process; written by `find` before the program runs.
unsafe impl Sync for Known {}
static KNOWN: Known = Known(UnsafeCell::new([(0, 0); 3]));

/// As far as the instruction of `syscall`, which moves arguments to registers before; less than it has with what comes behind.
const LENGTH: u64 = 48;

/// Finds them.
pub fn find(auxv: &Auxv) {
    let Some(libc) = elf::libc_image(auxv) else { return };
    let syscall = libc.find(b"syscall").map_or((0, 0), |at| (at, at + LENGTH));
    let mut loader = (0, 0);
    elf::find_map(|map| {
        let is_it = elf::is_named(map, b"/ld-linux");
        if is_it {
            loader = elf::Image::of_map(map).text();
        }
        is_it
    });
    // SAFETY: see `Known`.
    unsafe { *KNOWN.0.get() = [libc.text(), loader, syscall] };
}

/// The program itself has asked for the call whose instruction ends at that address: by `syscall`, or by an instruction of its own.
pub fn is_programs(end: u64) -> bool {
    // SAFETY: see `Known`.
    let [libc, loader, syscall] = unsafe { *KNOWN.0.get() };
    let is_in = |(from, to): Piece| from < end && end <= to;
    libc.1 != 0 && (is_in(syscall) || !(is_in(libc) || is_in(loader)))
}
