//! Which pages of code and constants executions use, and what the root keeps of them: see `vsrun_model::arena::Pages`.

use vsrun_model::arena::{Pages, PAGE};

use super::{arena, local, machine, process_of};
use crate::sys::{load, raw};

fn pages() -> &'static Pages {
    &arena().control.pages
}

/// Has what is known to be used, and gives up the rest. All of that is as it is in its file (`runtime::pages` sees to it), and comes back from there.
pub fn keep() {
    for (at, _) in pages().all().filter(|&(_, n)| pages().is_used(n)) {
        load::<u8>(at);
    }
    give_up();
}

/// Gives up what is not known to be used.
fn give_up() {
    // What is given up lies between these.
    let (mut from, mut to) = (0, 0);
    let piece = |from: u64, to: u64| {
        if from < to {
            raw!(libc::SYS_madvise, from, to - from, libc::MADV_DONTNEED);
        }
    };
    for (at, n) in pages().all() {
        if pages().is_used(n) {
            continue;
        }
        if at != to {
            piece(from, to);
            from = at;
        }
        to = at + PAGE;
    }
    piece(from, to);
}

/// This process, which has just been forked, tells at its end what it has used.
pub fn begin() {
    give_up();
    advise(libc::MADV_RANDOM);
    local().tells_pages = true;
}

/// Advice to the kernel about every other page. One that has neighbours with other advice is a mapping of its own, and is not mapped
/// when a neighbour is used.
fn advise(advice: i32) {
    for (at, _) in pages().all().filter(|(at, _)| (at / PAGE).is_multiple_of(2)) {
        raw!(libc::SYS_madvise, at, PAGE, advice);
    }
}

/// The program looks at its mappings, or moves some: it is to find them as it always does. Nothing is told then.
pub fn be_whole() {
    if local().tells_pages {
        local().tells_pages = false;
        advise(libc::MADV_NORMAL);
    }
}

/// The process ends: which pages it has used. Says nothing where the kernel does not tell.
pub fn tell() {
    // Not a child of the one that was asked.
    if !local().tells_pages || process_of(local().pid).real_pid != process_of(0).real_pid {
        return;
    }
    let file = raw!(libc::SYS_open, c"/proc/self/pagemap".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
    if file < 0 {
        return;
    }
    for (at, n) in pages().all() {
        let mut entry = 0u64;
        let got = raw!(libc::SYS_pread64, file, &mut entry as *mut u64, 8, at / PAGE * 8);
        if got == 8 && entry >> 63 != 0 {
            machine().page_is_used(n);
        }
    }
    raw!(libc::SYS_close, file);
}
