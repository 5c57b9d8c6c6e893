//! Pipes.

use vsrun_model::channel::{ChanId, ChanKind, PIPE_BUF, PIPE_RING, PIPE_SLOTS};
use vsrun_model::fd::{Desc, DescId, DescKind, ACCESS, NONBLOCK, READ_ONLY, WRITE_ONLY};
use vsrun_model::{inject as fault, op, Kind, NONE};

use super::fd;
use super::memory::{copy, Memory};
use crate::gate::{end, inject, me, model, signal, world};
use crate::sys::errno::*;
use crate::sys::store;

/// pipe and pipe2.
pub fn make(at: u64, flags: i32) -> i64 {
    if flags & !(libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_DIRECT) != 0 {
        return EINVAL;
    }
    if flags & libc::O_DIRECT != 0 {
        end::unsupported(&[b"a pipe in packet mode (O_DIRECT)"]);
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
    let d = world().descs[desc];
    if d.flags & ACCESS == WRITE_ONLY {
        return EBADF;
    }
    let wanted = memory.len();
    if wanted == 0 {
        return 0;
    }
    let wanted = match faults(d, wanted) {
        Ok(wanted) => wanted,
        Err(error) => return error,
    };
    let mut op = world().channel_op(Kind::FD_READ, d.input, wanted as i64);
    if d.flags & NONBLOCK != 0 {
        op = op.with(op::TRY);
    }
    fd::pass(desc, op, |n| {
        if n > 0 {
            let from = me().out[0] as u64;
            copy(d.input, from, &memory, 0, n as u64, false);
        }
    })
}

/// write to a pipe: more than a buffer takes several steps.
pub fn write(desc: DescId, memory: Memory) -> i64 {
    let d = world().descs[desc];
    if d.flags & ACCESS == READ_ONLY {
        return EBADF;
    }
    let n = memory.len();
    if n == 0 {
        return 0;
    }
    let n = match faults(d, n) {
        Ok(n) => n,
        Err(error) => return error,
    };
    let mut done = 0;
    while done < n {
        let mut op = world().channel_op(Kind::FD_WRITE, d.output, (n - done) as i64);
        if d.flags & NONBLOCK != 0 {
            op = op.with(op::TRY);
        }
        if done > 0 {
            op = op.with(op::PARTIAL);
        }
        let result = fd::pass(desc, op, |put| {
            if put > 0 {
                let from = me().out[0] as u64;
                copy(d.output, from, &memory, done, put as u64, true);
            }
        });
        match result {
            EPIPE if done == 0 => return broken(),
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

/// How many bytes of `n` a read or write is to move, if faults may strike it; or the error that it fails with.
pub fn faults(d: Desc, n: u64) -> Result<u64, i64> {
    if world().inject == 0 {
        return Ok(n);
    }
    if d.flags & NONBLOCK != 0 {
        if inject::strikes(fault::EAGAIN) {
            return Err(EAGAIN);
        }
    } else if inject::strikes(fault::EINTR) {
        return Err(EINTR);
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
        Some(channel) => i64::from(world().channels[channel].slots) * PIPE_BUF as i64,
        None => EBADF,
    }
}

fn channel_of(desc: DescId) -> Option<ChanId> {
    let d = world().descs[desc];
    let channel = if d.input != NONE { d.input } else { d.output };
    (d.kind == DescKind::PIPE).then_some(channel)
}

/// F_SETPIPE_SZ. Pipes are not made larger than they are at first; the kernel refuses that too where a user has many.
pub fn resize(desc: DescId, wanted: u64) -> i64 {
    let Some(channel) = channel_of(desc) else { return EBADF };
    let slots = (wanted.max(1).div_ceil(PIPE_BUF)).next_power_of_two();
    if slots > PIPE_SLOTS as u64 {
        return EPERM;
    }
    fd::settle(desc);
    model().pipe_resize(channel, slots as u8)
}
