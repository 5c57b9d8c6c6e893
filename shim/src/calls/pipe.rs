//! Pipes and FIFOs. The inode of a FIFO is real, what goes through it is the model's.

use vsrun_model::channel::{ChanId, ChanKind, MAX_PIPE_SLOTS, PIPE_BUF, PIPE_RING};
use vsrun_model::fd::{Desc, DescId, DescKind, ACCESS, NONBLOCK, READ_ONLY, WRITE_ONLY};
use vsrun_model::{inject as fault, op, Kind, NONE};

use super::memory::{copy, lacking, refuse_part, Memory};
use super::{fd, files, msg};
use crate::gate::{self, end, inject, local, me, model, signal, world};
use crate::sys::errno::*;
use crate::sys::{cstr, guard, raw, store, writable};

/// pipe and pipe2.
pub fn make(at: u64, flags: i32) -> i64 {
    if flags & !(libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_DIRECT) != 0 {
        return EINVAL;
    }
    if flags & libc::O_DIRECT != 0 {
        end::unsupported(&[b"a pipe in packet mode (O_DIRECT)"]);
    }
    if writable(at, 8) < 8 {
        return EFAULT;
    }
    let (cloexec, nonblock) = (flags & libc::O_CLOEXEC != 0, (flags & libc::O_NONBLOCK) as u32);
    let channel = fd::new_channel(ChanKind::PIPE, PIPE_RING);
    let input = fd::new_desc(DescKind::PIPE, READ_ONLY | nonblock, channel, NONE);
    let output = fd::new_desc(DescKind::PIPE, WRITE_ONLY | nonblock, NONE, channel);
    let read = fd::install(input, cloexec);
    if read < 0 {
        model().desc_drop(output);
        return read;
    }
    let write = fd::install(output, cloexec);
    if write < 0 {
        fd::take_back(read);
        return write;
    }
    store(at, read as i32);
    store(at + 4, write as i32);
    0
}

/// read from a pipe.
pub fn read(desc: DescId, memory: Memory) -> i64 {
    read_as(desc, memory, 0)
}

/// The same; `how`: [`op::TRY`] or 0.
pub fn read_as(desc: DescId, memory: Memory, how: u8) -> i64 {
    read_with(world().descs[desc], desc, memory, how)
}

/// The same, where O_NONBLOCK does not count (vmsplice).
pub fn read_anyhow(desc: DescId, memory: Memory, how: u8) -> i64 {
    let mut d = world().descs[desc];
    d.flags &= !NONBLOCK;
    read_with(d, desc, memory, how)
}

fn read_with(d: Desc, desc: DescId, memory: Memory, how: u8) -> i64 {
    if d.flags & ACCESS == WRITE_ONLY {
        return EBADF;
    }
    if !memory.is_possible() {
        return EFAULT;
    }
    let wanted = memory.len();
    if wanted == 0 {
        return 0;
    }
    let wanted = match faults(d, wanted) {
        Ok(wanted) => wanted,
        Err(error) => return error,
    };
    let mut op = world().channel_op(Kind::FD_READ, d.input, wanted as i64).with(how);
    if d.flags & NONBLOCK != 0 {
        op = op.with(op::TRY);
    }
    fd::pass(desc, lacking(op, memory.writable(0, wanted), wanted), |n| {
        if n > 0 {
            let from = me().out[0] as u64;
            copy(d.input, from, &memory, 0, n as u64, false);
            if guard::failed() {
                refuse_part();
            }
        }
    })
}

/// write to a pipe: more than a buffer takes several steps.
pub fn write(desc: DescId, memory: Memory) -> i64 {
    write_as(desc, memory, 0)
}

/// The same; `how`: [`op::TRY`], [`OWN_BUFFER`].
pub fn write_as(desc: DescId, memory: Memory, how: u8) -> i64 {
    let d = world().descs[desc];
    if d.flags & ACCESS == READ_ONLY {
        return EBADF;
    }
    if !memory.is_possible() {
        return EFAULT;
    }
    let n = memory.len();
    if n == 0 {
        return 0;
    }
    let n = match faults(d, n) {
        Ok(n) => n,
        Err(error) => return error,
    };
    match n <= PIPE_BUF {
        true => write_all(desc, &memory, n, how),
        false => fd::throughout(desc, || write_all(desc, &memory, n, how)),
    }
}

fn write_all(desc: DescId, memory: &Memory, n: u64, how: u8) -> i64 {
    let d = world().descs[desc];
    let there = memory.readable(0, n);
    let mut done = 0;
    while done < n {
        let mut op = world().channel_op(Kind::FD_WRITE, d.output, (n - done) as i64).with(how);
        if d.flags & NONBLOCK != 0 {
            op = op.with(op::TRY);
        }
        if done > 0 {
            memory.goes_on(done, n - done);
            op = op.with(op::PARTIAL);
        }
        let result = fd::pass(desc, lacking(op, there - done, n - done), |put| {
            if put > 0 {
                let from = me().out[0] as u64;
                copy(d.output, from, memory, done, put as u64, true);
            }
        });
        match result {
            // The signal comes also where a part has been written (fs/pipe.c, pipe_write).
            EPIPE => {
                let error = broken();
                return if done > 0 { done as i64 } else { error };
            }
            error if error < 0 => return if done > 0 { done as i64 } else { error },
            put => done += put as u64,
        }
        // What is left of a write that was larger than a buffer may come in any pieces, but for the kernel's own sake a
        // non-blocking one ends with the first.
        if d.flags & NONBLOCK != 0 && n > PIPE_BUF {
            break;
        }
    }
    done as i64
}

/// How many bytes of `n` a read or write is to move, if faults may strike it; or the error that it fails with. It may be
/// interrupted where it would have to wait.
pub fn faults(d: Desc, n: u64) -> Result<u64, i64> {
    if world().inject == 0 {
        return Ok(n);
    }
    if d.flags & NONBLOCK != 0 {
        if inject::strikes(fault::EAGAIN) {
            return Err(EAGAIN);
        }
    } else {
        inject::interrupts();
    }
    Ok(if n > 1 && inject::strikes(fault::SHORT_IO) { n.div_ceil(2) } else { n })
}

/// A write that nobody will read.
pub fn broken() -> i64 {
    signal::send_thread_now(libc::SIGPIPE);
    EPIPE
}

/// F_GETPIPE_SZ.
pub fn size(desc: DescId) -> i64 {
    match channel_of(desc) {
        Some(channel) => {
            // As a change of it has: that comes after this operation, not with the one about the number and the size.
            fd::settle(desc);
            i64::from(world().channels[channel].slots) * PIPE_BUF as i64
        }
        None => EBADF,
    }
}

fn channel_of(desc: DescId) -> Option<ChanId> {
    let d = world().descs[desc];
    let channel = if d.input != NONE { d.input } else { d.output };
    (d.kind == DescKind::PIPE).then_some(channel)
}

/// F_SETPIPE_SZ.
pub fn resize(desc: DescId, wanted: u64) -> i64 {
    let Some(channel) = channel_of(desc) else { return EBADF };
    let wanted = u64::from(wanted as u32);
    if wanted > 1 << 31 {
        return EINVAL;
    }
    let slots = (wanted.max(1).div_ceil(PIPE_BUF)).next_power_of_two();
    if slots > MAX_PIPE_SLOTS as u64 {
        if !msg::has_capability(msg::CAP_SYS_RESOURCE) {
            return EPERM;
        }
        end::unsupported(&[b"a pipe of more than a MiB (F_SETPIPE_SZ)"]);
    }
    fd::settle(desc);
    let result = model().pipe_resize(channel, slots as u16);
    result.unwrap_or_else(|| end::unsupported(&[b"F_SETPIPE_SZ beyond 64 KiB while something is in the pipe"]))
}

/// Words of struct stat.
const ST_INO: usize = 1;
const ST_MODE: usize = 3;

/// Where `path` leads from directory `dir`, as the kernel finds it, and what that is, if it is a FIFO.
fn find_fifo(dir: i32, path: u64, follow: i32) -> Option<(i32, u64, [u64; 18])> {
    let mut stat = [0u64; 18];
    let located = files::locate(dir, path, follow);
    files::keep_walk(dir, path, follow);
    let (dir, path) = located.ok()?;
    let result = raw!(libc::SYS_newfstatat, dir, path, stat.as_mut_ptr(), follow);
    (result == 0 && stat[ST_MODE] as u32 & libc::S_IFMT == libc::S_IFIFO).then_some((dir, path, stat))
}

/// Whether a link at the end of the path is followed, as flags of the calls that look at a name.
fn follows(flags: i32) -> i32 {
    if flags & libc::O_NOFOLLOW != 0 {
        libc::AT_SYMLINK_NOFOLLOW
    } else {
        0
    }
}

/// open with these flags would find a FIFO.
pub fn is_fifo(dir: i32, path: u64, flags: i32) -> bool {
    let found = path != 0 && flags & libc::O_PATH == 0 && find_fifo(dir, path, follows(flags)).is_some();
    files::forget_walk();
    found
}

/// `path` has been made, relative to directory `dir`: 0.
pub fn made(dir: i32, path: u64) -> i64 {
    if let Some((_, _, stat)) = find_fifo(dir, path, libc::AT_SYMLINK_NOFOLLOW) {
        model().inode_is_new(stat[0], stat[ST_INO]);
    }
    files::forget_walk();
    0
}

/// Opens `path`, relative to directory `dir`, if it is a FIFO.
pub fn open_fifo(dir: i32, path: u64, flags: i32) -> Option<i64> {
    if path == 0 || flags & libc::O_PATH != 0 {
        return None;
    }
    let follow = follows(flags);
    let given = path;
    let mut found = find_fifo(dir, path, follow)?;
    files::forget_walk();
    if files::announce(libc::SYS_faccessat, [dir as u64, path, 0, 0, 0, 0]) {
        // Others make and remove it; what it is when it is opened is looked at again.
        found = find_fifo(dir, path, follow)?;
        files::forget_walk();
    }
    let (dir, path, stat) = found;
    if flags & libc::O_CREAT != 0 && flags & libc::O_EXCL != 0 {
        return Some(EEXIST);
    }
    if flags & libc::O_DIRECTORY != 0 {
        return Some(ENOTDIR);
    }
    let wanted = match flags & libc::O_ACCMODE {
        libc::O_RDONLY => libc::R_OK,
        libc::O_WRONLY => libc::W_OK,
        _ => libc::R_OK | libc::W_OK,
    };
    let allowed = raw!(libc::SYS_faccessat, dir, path, wanted);
    if allowed < 0 {
        return Some(allowed);
    }
    let whole = cstr(given, 4096);
    let name = whole.rsplit(|&byte| byte == b'/').next().unwrap_or(whole);
    let Some(obj) = model().fifo(stat[0], stat[ST_INO], name) else { out_of_room() };
    let kept = flags as u32 & (ACCESS | NONBLOCK | libc::O_APPEND as u32);
    let mut number = 0;
    let op = world().fifo_op(obj);
    gate::pass_then(op, |_| {
        number = match model().fifo_open(local().cur, obj, kept) {
            Some(Ok(desc)) => fd::install(desc, flags & libc::O_CLOEXEC != 0),
            Some(Err(error)) => error,
            None => out_of_room(),
        };
    });
    let Some(desc) = fd::find(number as u64).filter(|_| number >= 0) else { return Some(number) };
    if let Some(wait) = world().fifo_wait(desc) {
        let result = gate::pass(wait);
        if result < 0 {
            fd::close(number as i32);
            return Some(result);
        }
    }
    Some(number)
}

fn out_of_room() -> ! {
    end::no_room(&[b"the program opens more FIFOs than vsrun can hold"])
}
