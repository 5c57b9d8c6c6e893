//! Taking the patches back: a program that is about to write to its own code shall find there what it expects, and what it writes shall be what
//! is executed. What is in a trampoline would be neither.
//!
//! All patches of the process go at once: a jump may share bytes with the one behind it.

use vsrun_model::watch::{Header, Original, WATCH_ADDR};

use super::late;
use super::log::{is_patched, is_undone, may_hold_patches};
use crate::sys::{load, raw, store};

const PAGE: u64 = 4096;

fn header() -> Header {
    load(WATCH_ADDR)
}

fn original(header: &Header, n: u64) -> Original {
    load(WATCH_ADDR + header.originals[0] + size_of::<Original>() as u64 * n)
}

fn first_page(original: &Original) -> u64 {
    original.at & !(PAGE - 1)
}

fn end_page(original: &Original) -> u64 {
    (original.at + original.length).next_multiple_of(PAGE)
}

/// All pages with patches lie from the first of these addresses to before the second.
pub fn patched_pages() -> [u64; 2] {
    let header = header();
    match header.originals[1] {
        0 => [0; 2],
        count => [first_page(&original(&header, 0)), end_page(&original(&header, count - 1))],
    }
}

/// There are patches in pages of this memory.
pub fn holds_patches(start: u64, length: u64) -> bool {
    let end = start.saturating_add(length);
    // Mostly the table is not looked at: that would be a page more for each execution.
    if !is_patched() || !may_hold_patches(start, end) {
        return false;
    }
    // They do not overlap, so both their beginnings and their ends ascend.
    let header = header();
    let (mut low, mut high) = (0, header.originals[1]);
    while low < high {
        let middle = low + (high - low) / 2;
        if end_page(&original(&header, middle)) <= start {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low < header.originals[1] && first_page(&original(&header, low)) < end || late::holds_late_patches(start, length)
}

/// Puts back what was there before the patches. Nobody executes a patch meanwhile: threads are in the library, or in a trampoline, which goes on
/// behind the instructions that it stands for. Pages are executable and can be read afterwards.
pub fn undo() {
    let header = header();
    let count = header.originals[1];
    let mut n = 0;
    while n < count {
        let first = original(&header, n);
        let (start, mut end, mut next) = (first_page(&first), end_page(&first), n + 1);
        while next < count && first_page(&original(&header, next)) <= end {
            end = end_page(&original(&header, next));
            next += 1;
        }
        let all = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        // Where the code has been unmapped there is nothing to be put back.
        if raw!(libc::SYS_mprotect, start, end - start, all) == 0 {
            (n..next).map(|n| original(&header, n)).for_each(|o| put(&o));
            raw!(libc::SYS_mprotect, start, end - start, libc::PROT_READ | libc::PROT_EXEC);
        }
        n = next;
    }
    late::undo();
    is_undone();
}

fn put(original: &Original) {
    for n in 0..original.length {
        store(original.at + n, load::<u8>(WATCH_ADDR + original.offset + n));
    }
}
