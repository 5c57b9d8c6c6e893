//! Mapping what the tool has made.

use vsrun_model::watch::{Change, Header, Mapping, Watching, WATCH_ADDR, WATCH_MAGIC};

use super::log::Hooks;
use super::{log, slow, undo};
use crate::sys::errno::EINVAL;
use crate::sys::{load, raw};

/// Where the slow paths are, and what stands for functions of libc.
pub fn announce(watching: &Watching, functions: u64) -> Watching {
    Watching { log: log::state_at(), slow: slow::paths(), functions, ..*watching }
}

/// Maps the file of that name. Gives 0 or a negative error number.
pub fn map(path: &[u8], hooks: Hooks) -> i64 {
    let file = raw!(libc::SYS_open, path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC, 0);
    if file < 0 {
        return file;
    }
    let result = map_file(file as i32, hooks);
    raw!(libc::SYS_close, file);
    result
}

fn map_file(file: i32, hooks: Hooks) -> i64 {
    let flags = libc::MAP_PRIVATE | libc::MAP_FIXED_NOREPLACE;
    let part = |at: u64, length: u64, prot: i32, offset: u64| {
        let result = raw!(libc::SYS_mmap, at, length, prot, flags, file, offset);
        match result {
            error if error < 0 => error,
            elsewhere if elsewhere as u64 != at => crate::sys::errno::EEXIST,
            _ => 0,
        }
    };
    let error = part(WATCH_ADDR, 4096, libc::PROT_READ, 0);
    if error < 0 {
        return error;
    }
    let header: Header = load(WATCH_ADDR);
    if header.magic != WATCH_MAGIC {
        return EINVAL;
    }
    raw!(libc::SYS_munmap, WATCH_ADDR, 4096);
    let error = part(WATCH_ADDR, header.tables, libc::PROT_READ, 0);
    if error < 0 {
        return error;
    }
    let [at, count] = header.mappings;
    for n in 0..count {
        let m: Mapping = load(WATCH_ADDR + at + size_of::<Mapping>() as u64 * n);
        let error = part(m.at, m.length, libc::PROT_READ | libc::PROT_EXEC, m.offset);
        if error < 0 {
            return error;
        }
    }
    let path = WATCH_ADDR + core::mem::offset_of!(Header, log) as u64;
    match log::set_up(if header.log[0] != 0 { path } else { 0 }, hooks) {
        0 => {
            log::set_patches(undo::patched_pages(), header.parts[1] > 0);
            make(header.changes)
        }
        error => error,
    }
}

const ENOEXEC: i64 = -(libc::ENOEXEC as i64);

/// Writes over this process's memory, which may be mapped read-only, what is in that table. ENOEXEC: something else is there than the tool has seen.
fn make([table, count]: [u64; 2]) -> i64 {
    if count == 0 {
        return 0;
    }
    let memory = raw!(libc::SYS_open, c"/proc/self/mem".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC, 0);
    if memory < 0 {
        return memory;
    }
    let change = |n: u64| load::<Change>(WATCH_ADDR + table + size_of::<Change>() as u64 * n);
    let error = if !(0..count).all(|n| is_as_it_was(memory, change(n))) {
        ENOEXEC
    } else {
        let write = |c: Change| raw!(libc::SYS_pwrite64, memory, WATCH_ADDR + c.is, c.length, c.at);
        let failed = (0..count).map(change).map(|c| (write(c), c.length as i64)).find(|(written, all)| written != all);
        failed.map_or(0, |(result, _)| if result < 0 { result } else { ENOEXEC })
    };
    raw!(libc::SYS_close, memory);
    error
}

/// What is there is what the tool has seen there.
fn is_as_it_was(memory: i64, change: Change) -> bool {
    let mut there = [0u8; 256];
    (0..change.length).step_by(there.len()).all(|n| {
        let size = (change.length - n).min(there.len() as u64);
        let read = raw!(libc::SYS_pread64, memory, there.as_mut_ptr(), size, change.at + n);
        read == size as i64 && (0..size).all(|b| load::<u8>(WATCH_ADDR + change.was + n + b) == there[b as usize])
    })
}
