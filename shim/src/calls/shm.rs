//! Shared memory: which mappings are shared (so that objects in them are the same object in every process), SysV
//! segments cut from the pool, and /dev/shm files kept in the execution's private directory.

use vsrun_model::arena::{Arena, Segment, POOL_ADDR, POOL_FD, POOL_SIZE, RANDOM_FD};
use vsrun_model::file::Use;
use vsrun_model::inject as fault;
use vsrun_model::object::SHARED;
use vsrun_model::watch::Range;

use super::{files, time};
use crate::gate::local::{add_range, arena, local, machine, remove_range, world, POOL_REGION};
use crate::gate::pages::be_whole;
use crate::gate::{end, inject, is_threaded, through, watched};
use crate::sys::errno::*;
use crate::sys::{cstr, decimal, limit, load, raw, raw6, readable, store, touch, zero};
use crate::watch;

const PAGE: u64 = 4096;

fn pages(len: u64) -> u64 {
    (len + PAGE - 1) & !(PAGE - 1)
}

/// mmap, munmap, mremap: real, with shared mappings noted.
pub fn mapping(nr: i64, a: [u64; 6]) -> i64 {
    let [addr, len, prot, flags, fd, offset] = a;
    let grows = nr == libc::SYS_mmap && flags as i32 & libc::MAP_ANONYMOUS != 0 && flags as i32 & libc::MAP_FIXED == 0;
    if (grows || nr == libc::SYS_mremap) && inject::strikes(fault::ENOMEM) {
        return ENOMEM;
    }
    if nr == libc::SYS_mremap {
        be_whole();
    }
    if nr == libc::SYS_munmap {
        image_goes(addr);
    }
    if nr != libc::SYS_mmap && is_shared(addr, len) {
        has_another_name();
    }
    let of_file = nr == libc::SYS_mmap && flags as i32 & libc::MAP_ANONYMOUS == 0;
    let kernel = || {
        // A library that the tool knows has a place; where that is taken it is like any other.
        let placed = if nr == libc::SYS_mmap { watch::place(a) } else { None };
        let there = placed.map(|at| raw6(nr, at, len, prot, flags | libc::MAP_FIXED_NOREPLACE as u64, fd, offset));
        there.filter(|&at| at >= 0).unwrap_or_else(|| raw6(nr, addr, len, prot, flags, fd, offset))
    };
    let result = if of_file { files::mapping(a, kernel) } else { kernel() };
    if (-4095..0).contains(&result) {
        if result == ENOMEM && nr != libc::SYS_munmap {
            memory_refused(len);
        }
        return result;
    }
    match nr {
        libc::SYS_mmap => {
            let shared = matches!(flags as i32 & libc::MAP_TYPE, libc::MAP_SHARED | libc::MAP_SHARED_VALIDATE);
            let start = result as u64;
            watched::stack_is_gone(start, start + pages(len));
            // Where nothing was: what others did here was to memory that they have given back.
            if flags as i32 & libc::MAP_FIXED == 0 && !shared {
                watched::anew(start, pages(len));
            }
            if of_file {
                files::mapped(fd as i32, prot as i32, shared);
            }
            if shared {
                note(start, len, flags as i32, fd as i32, offset);
                if flags as i32 & libc::MAP_FIXED != 0 && flags as i32 & libc::MAP_FIXED_NOREPLACE == 0 {
                    has_another_name();
                }
            } else if local().n_ranges > 0 {
                remove_range(start, start + pages(len));
            }
        }
        libc::SYS_munmap if local().n_ranges > 0 => remove_range(addr, addr + pages(len)),
        libc::SYS_mremap if local().n_ranges > 0 => moved(addr, len, result as u64, prot),
        _ => {}
    }
    result
}

/// Memory from `at` on is given back. Where a library begins (dlclose) another thread may be in its code, or about to be: that is not seen.
fn image_goes(at: u64) {
    const ELF: u32 = u32::from_le_bytes(*b"\x7fELF");
    if is_threaded() && world().concurrent && watch::is_recording() && readable(at, 4) == 4 && load::<u32>(at) == ELF {
        machine().note_later_code(b"a library that is closed beside other threads");
    }
}

/// The kernel has no room for a mapping. Where the address space is limited, vsrun's own mappings, which are larger than most programs,
/// count as well: then it is the environment's doing, unless the program alone would be beyond the limit.
#[cold]
fn memory_refused(len: u64) {
    let limit = limit(libc::RLIMIT_AS);
    if limit == u64::MAX {
        return;
    }
    let own = size_of::<Arena>() as u64 + POOL_SIZE + watch::reserved();
    let beyond = |size: u64| size.saturating_add(len) > limit;
    let size = address_space();
    if beyond(size) && !beyond(size.saturating_sub(own)) {
        end::refused(b"memory for a mapping", ENOMEM);
    }
}

/// Bytes that are mapped in this process.
fn address_space() -> u64 {
    let mut text = [0u8; 32];
    let fd = raw!(libc::SYS_open, c"/proc/self/statm".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
    raw!(libc::SYS_read, fd, text.as_mut_ptr(), text.len());
    raw!(libc::SYS_close, fd);
    let digits = text.iter().take_while(|c| c.is_ascii_digit());
    digits.fold(0u64, |n, c| n.wrapping_mul(10).wrapping_add(u64::from(c - b'0'))).saturating_mul(PAGE)
}

fn note(start: u64, len: u64, flags: i32, fd: i32, offset: u64) {
    // What is opened for reading only can never be written there.
    let writable =
        flags & libc::MAP_ANONYMOUS != 0 || raw!(libc::SYS_fcntl, fd, libc::F_GETFL) & libc::O_ACCMODE as i64 != 0;
    let region = if flags & libc::MAP_ANONYMOUS != 0 {
        machine().new_region()
    } else {
        let mut stat = [0u64; 18];
        if raw!(libc::SYS_fstat, fd, stat.as_mut_ptr()) < 0 {
            return;
        }
        machine().region(stat[0] + 1, stat[1])
    };
    let Some(region) = region else { too_many() };
    let range = Range { start, end: start + pages(len), space: SHARED | region, offset, segment: 0 };
    if !add_range(range) {
        too_many();
    }
    watched::shares(Some(region), writable);
    watched::mark_objects();
}

/// Memory that is shared is known by what is mapped, not by its address: what other threads of this process do at one address before it is mapped
/// there, or given back, and behind that, is not held against each other.
fn has_another_name() {
    if is_threaded() && world().concurrent && watch::is_recording() {
        machine().note_wide_use();
    }
}

fn too_many() -> ! {
    end::no_room(&[b"the program has more shared mappings than vsrun can hold"])
}

fn moved(old: u64, old_len: u64, new: u64, new_len: u64) {
    let l = local();
    let found = l.ranges[..l.n_ranges].iter().find(|r| r.start <= old && old < r.end).copied();
    if let Some(range) = found {
        remove_range(old, old + pages(old_len));
        let offset = range.offset + (old - range.start);
        if !add_range(Range { start: new, end: new + pages(new_len), offset, ..range }) {
            too_many();
        }
        watched::mark_objects();
    }
}

/// `len` bytes of the pool; offset in it.
fn take_pool(len: u64) -> u64 {
    machine()
        .take_pool(len)
        .unwrap_or_else(|| end::no_room(&[b"the program uses more SysV shared memory than vsrun can hold"]))
}

/// Room for a named semaphore; its address, the same in every process.
pub fn named_sem() -> u64 {
    POOL_ADDR + take_pool(64)
}

/// shmget, shmat, shmdt, shmctl.
pub fn call(nr: i64, a: [u64; 6]) -> i64 {
    match nr {
        libc::SYS_shmget => get(a[0] as i32, a[1], a[2] as i32),
        libc::SYS_shmat => attach(a[0] as i32, a[1], a[2] as i32),
        libc::SYS_shmdt => detach(a[0]),
        _ => control(a[0] as i32, a[1] as i32 & !0x100, a[2]),
    }
}

fn get(key: i32, size: u64, flags: i32) -> i64 {
    let found = arena().segments.as_slice().iter().find(|s| key != libc::IPC_PRIVATE && s.key == key && s.removed == 0);
    if let Some(segment) = found {
        let both = libc::IPC_CREAT | libc::IPC_EXCL;
        return match () {
            _ if flags & both == both => EEXIST,
            _ if size > segment.size => EINVAL,
            _ => segment.id as i64,
        };
    }
    if key != libc::IPC_PRIVATE && flags & libc::IPC_CREAT == 0 {
        return ENOENT;
    }
    if size == 0 {
        return EINVAL;
    }
    let creator = world().procs[local().pid].vpid;
    let offset = pages(take_pool(pages(size) + PAGE));
    let mode = flags as u32 & 0o777;
    match machine().segment_make(key, size, offset, mode, creator) {
        Some(id) => id as i64,
        None => ENOSPC,
    }
}

fn index_of(id: i32) -> Option<u32> {
    let live = |s: &Segment| s.id == id && s.removed < 2;
    arena().segments.as_slice().iter().position(live).map(|i| i as u32)
}

/// The same for call `nr` in two steps: it is looked up, and then locked, unless it is gone by then (shm_obtain_object_check and
/// ipc_valid_object in the kernel's ipc/shm.c).
fn lock(nr: i64, id: i32, what: Use) -> Result<u32, i64> {
    let index = index_of(id).ok_or(EINVAL)?;
    files::segment_looked_up(nr, id, what);
    index_of(id).map(|_| index).ok_or(EIDRM)
}

fn attach(id: i32, addr: u64, flags: i32) -> i64 {
    let index = match lock(libc::SYS_shmat, id, Use::Write) {
        Ok(index) => index,
        Err(error) => return error,
    };
    let segment = arena().segments[index];
    let write = if flags & libc::SHM_RDONLY != 0 { 0 } else { libc::PROT_WRITE };
    let prot = libc::PROT_READ | write | if flags & libc::SHM_EXEC != 0 { libc::PROT_EXEC } else { 0 };
    let addr = if flags & libc::SHM_RND != 0 { addr & !(PAGE - 1) } else { addr };
    let fixed = if addr != 0 { 0x10_0000 } else { 0 };
    let len = pages(segment.size);
    // The kernel counts it once for the call and once for the mapping, and when the call is over no more for that.
    let own = local().pid;
    if !machine().segment_enters(own, index) {
        too_many();
    }
    files::segment_changes(libc::SYS_shmat, id);
    let at = raw!(libc::SYS_mmap, addr, len, prot, libc::MAP_SHARED | fixed, POOL_FD, segment.offset);
    if at < 0 {
        machine().segment_entered(own, index);
        return EINVAL;
    }
    let start = at as u64;
    let range = Range { start, end: start + len, space: POOL_REGION, offset: segment.offset, segment: index + 1 };
    if !add_range(range) {
        too_many();
    }
    watched::code_comes(libc::SYS_mmap, [start, len, prot as u64, libc::MAP_ANONYMOUS as u64, 0, 0], start);
    watched::shares(None, true);
    watched::mark_objects();
    if flags & libc::SHM_REMAP != 0 {
        has_another_name();
    }
    if !machine().segment_attach(own, index) {
        too_many();
    }
    files::segment_changes(libc::SYS_shmat, id);
    machine().segment_entered(own, index);
    at
}

/// Some of it is shared.
fn is_shared(start: u64, len: u64) -> bool {
    let l = local();
    l.ranges[..l.n_ranges].iter().any(|r| r.start < start.saturating_add(len) && start < r.end)
}

/// The segment that is attached at an address.
fn segment_at(addr: u64) -> Option<Range> {
    let l = local();
    l.ranges[..l.n_ranges].iter().find(|r| r.start == addr && r.segment != 0).copied()
}

fn detach(addr: u64) -> i64 {
    let Some(range) = segment_at(addr) else { return EINVAL };
    has_another_name();
    raw!(libc::SYS_munmap, range.start, range.end - range.start);
    remove_range(range.start, range.end);
    machine().segment_detach(local().pid, range.segment - 1);
    0
}

fn control(id: i32, command: i32, buffer: u64) -> i64 {
    if id >= 0 && matches!(command, libc::IPC_INFO | 13..=15) {
        end::unsupported(&[
            b"shmctl with IPC_INFO, SHM_STAT, SHM_INFO or SHM_STAT_ANY (command ",
            &decimal(command),
            b")",
        ]);
    }
    if command == libc::IPC_SET {
        touch(buffer, 112);
    }
    let found = match command {
        libc::IPC_STAT | 11 | 12 => lock(libc::SYS_shmctl, id, Use::Read),
        // Whoever changes it does so while nobody can remove it.
        _ => index_of(id).ok_or(EINVAL),
    };
    let index = match found {
        Ok(index) => index,
        Err(error) => return error,
    };
    let segment = arena().segments[index];
    match command {
        libc::IPC_RMID => {
            machine().segment_remove(index);
            0
        }
        libc::IPC_STAT => {
            zero(buffer, 112);
            /// SHM_DEST: it goes with the last who has it.
            const DEST: u32 = 0o1000;
            let dest = if segment.removed != 0 { DEST } else { 0 };
            let (uid, gid) = (raw!(libc::SYS_geteuid) as u32, raw!(libc::SYS_getegid) as u32);
            let date = |ns: u64| if ns == 0 { 0 } else { time::date_of(ns) };
            store(buffer, segment.key);
            store(buffer + 4, [uid, gid, uid, gid, segment.mode | dest]);
            store(buffer + 48, segment.size);
            store(buffer + 56, segment.dates.map(date));
            store(buffer + 80, [segment.creator, segment.last]);
            store(buffer + 88, segment.attached as u64);
            0
        }
        libc::IPC_SET => {
            machine().segment_mode(index, load::<u32>(buffer + 20) & 0o777);
            0
        }
        11 | 12 => 0,
        _ => EINVAL,
    }
}

/// open, openat, unlink, unlinkat: /dev/shm is the execution's own, the random devices are deterministic.
pub fn open(nr: i64, a: [u64; 6]) -> i64 {
    let at = matches!(nr, libc::SYS_openat | libc::SYS_unlinkat);
    let path_arg = if at { a[1] } else { a[0] };
    if path_arg == 0 {
        return files::call(nr, a);
    }
    let path = cstr(path_arg, 4096);
    if let Some(name) = path.strip_prefix(b"/dev/shm/").filter(|_| !files::is_private(path)) {
        let mut buffer = [0u8; 640];
        if let Some(len) = private_path(name, &mut buffer) {
            buffer[len] = 0;
            machine().use_shm();
            let mut b = a;
            b[if at { 1 } else { 0 }] = buffer.as_ptr() as u64;
            return through(nr, b);
        }
    }
    if matches!(nr, libc::SYS_open | libc::SYS_openat) && (path == b"/dev/urandom" || path == b"/dev/random") {
        let mut name = *b"/proc/self/fd/000\0";
        let digits = [100, 10, 1].map(|d| b'0' + (RANDOM_FD / d % 10) as u8);
        name[14..17].copy_from_slice(&digits);
        return raw!(libc::SYS_openat, libc::AT_FDCWD, name.as_ptr(), libc::O_RDONLY | (a[2] as i32 & libc::O_CLOEXEC));
    }
    // What is written at one end of a pseudo-terminal reaches the other through the kernel, which the model would not know: as on a
    // kernel without them, programs take a pipe.
    if matches!(nr, libc::SYS_open | libc::SYS_openat) && (path == b"/dev/ptmx" || path == b"/dev/pts/ptmx") {
        return ENODEV;
    }
    files::call(nr, a)
}

/// "DIR/shm/NAME" where DIR is the directory of the shim library.
fn private_path(name: &[u8], buffer: &mut [u8]) -> Option<usize> {
    let shim = &arena().control.shim_path;
    let dir = shim.iter().rposition(|&b| b == b'/')?;
    let parts: [&[u8]; 3] = [&shim[..dir], b"/shm/", name];
    let mut used = 0;
    for part in parts {
        buffer.get_mut(used..used + part.len())?.copy_from_slice(part);
        used += part.len();
    }
    (used < buffer.len()).then_some(used)
}
