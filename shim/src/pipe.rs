//! Pipes, and what moves bytes between a channel and memory.

use vsrun_model::arena::POOL_ADDR;
use vsrun_model::channel::{ChanId, ChanKind, PIPE_BUF, PIPE_RING, PIPE_SLOTS};
use vsrun_model::fd::{Desc, DescId, DescKind, ACCESS, NONBLOCK, READ_ONLY, WRITE_ONLY};
use vsrun_model::inject::{EAGAIN as EAGAIN_FAULT, EINTR, SHORT_IO};
use vsrun_model::object::NONE;
use vsrun_model::{op, Kind};

use crate::local::{arena, local, me, world};
use crate::sys::{bytes, bytes_mut, load, store};
use crate::{end, fd, inject, message, signal};

const EBADF: i64 = -(libc::EBADF as i64);
const EINVAL: i64 = -(libc::EINVAL as i64);
const EPIPE: i64 = -(libc::EPIPE as i64);

/// Memory that bytes are moved to or from: one piece or an array of `iovec`.
#[derive(Clone, Copy)]
pub struct Memory {
    /// Address of the piece, or of the array.
    at: u64,
    /// Bytes of the piece, or pieces of the array.
    n: u64,
    vector: bool,
}

impl Memory {
    /// One piece.
    pub fn one(at: u64, n: u64) -> Memory {
        Memory { at, n: n.min(0x7fff_f000), vector: false }
    }

    /// An array of `n` iovecs.
    pub fn many(at: u64, n: u64) -> Memory {
        Memory { at, n, vector: true }
    }

    /// Address and length of the `i`-th piece.
    pub fn piece(&self, i: u64) -> (u64, u64) {
        if self.vector {
            (load(self.at + 16 * i), load(self.at + 16 * i + 8))
        } else {
            (self.at, self.n)
        }
    }

    /// How many pieces there are.
    pub fn pieces(&self) -> u64 {
        if self.vector {
            self.n
        } else {
            1
        }
    }

    /// Bytes in all.
    pub fn len(&self) -> u64 {
        (0..self.pieces()).map(|i| self.piece(i).1).sum::<u64>().min(0x7fff_f000)
    }

    /// Calls `each` with (address, length, bytes before it) for the stretches that make up `n` bytes from byte `skip` on.
    pub fn stretches(&self, mut skip: u64, n: u64, mut each: impl FnMut(u64, u64, u64)) {
        let mut done = 0;
        for i in 0..self.pieces() {
            let (at, len) = self.piece(i);
            let from = skip.min(len);
            skip -= from;
            let part = (len - from).min(n - done);
            if part > 0 {
                each(at + from, part, done);
                done += part;
            }
            if done == n {
                return;
            }
        }
    }
}

impl Memory {
    /// Writes `source` from the first byte on.
    pub fn put(&self, source: &[u8]) {
        self.put_at(0, source);
    }

    /// Writes `source` from byte `skip` on.
    pub fn put_at(&self, skip: u64, source: &[u8]) {
        self.stretches(skip, source.len() as u64, |at, n, before| {
            let from = before as usize;
            bytes_mut(at, n as usize).copy_from_slice(&source[from..from + n as usize]);
        });
    }

    /// Reads the first bytes.
    pub fn get(&self, target: &mut [u8]) {
        self.stretches(0, target.len() as u64, |at, n, before| {
            let from = before as usize;
            target[from..from + n as usize].copy_from_slice(bytes(at, n as usize));
        });
    }
}

/// readv and its like: checks the array.
pub fn vector(at: u64, n: u64, transfer: impl FnOnce(Memory) -> i64) -> i64 {
    if n > 1024 {
        return EINVAL;
    }
    let memory = Memory::many(at, n);
    if (0..n).any(|i| memory.piece(i).1 > i64::MAX as u64) {
        return EINVAL;
    }
    transfer(memory)
}

/// Copies `n` bytes between a channel's ring, from position `from` on, and memory from byte `skip` on.
pub fn copy(channel: ChanId, from: u64, memory: &Memory, skip: u64, n: u64, to_ring: bool) {
    let Some(ring) = arena().ring(channel) else {
        end::unsupported(&[b"the program keeps more in pipes and sockets than vsrun can hold"])
    };
    let room = world().channels[channel].room;
    memory.stretches(skip, n, |at, len, before| {
        let mut done = 0;
        while done < len {
            let place = (from + before + done) % room;
            let part = (len - done).min(room - place);
            let (inside, outside) = (POOL_ADDR + ring + place, at + done);
            let (source, target) = if to_ring { (outside, inside) } else { (inside, outside) };
            bytes_mut(target, part as usize).copy_from_slice(bytes(source, part as usize));
            done += part;
        }
    });
}

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
        world().desc_drop(output);
        return read;
    }
    let write = fd::install(output, cloexec);
    if write < 0 {
        world().fd_close(local().pid, read as i32);
        crate::raw!(libc::SYS_close, read);
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
    let wanted = match faults(&d, wanted) {
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
    let n = match faults(&d, n) {
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
pub fn faults(d: &Desc, n: u64) -> Result<u64, i64> {
    if world().inject == 0 {
        return Ok(n);
    }
    if d.flags & NONBLOCK != 0 {
        if inject::strikes(EAGAIN_FAULT) {
            return Err(-(libc::EAGAIN as i64));
        }
    } else if inject::strikes(EINTR) {
        return Err(-(libc::EINTR as i64));
    }
    Ok(if n > 1 && inject::strikes(SHORT_IO) { n.div_ceil(2) } else { n })
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
        return -(libc::EPERM as i64);
    }
    fd::settle(desc);
    if u64::from(world().channels[channel].used) > slots {
        return -(libc::EBUSY as i64);
    }
    world().channels[channel].slots = slots as u8;
    (slots * PIPE_BUF) as i64
}

/// sendfile. `None`: both are files.
pub fn send_file(a: [u64; 6]) -> Option<i64> {
    let (out, input) = (fd::find(a[0]), fd::find(a[1]));
    if input.is_some() {
        return Some(EINVAL);
    }
    let out = out?;
    Some(from_file(a[1], a[2], a[3], |memory| output(out, memory, a)))
}

fn output(desc: DescId, memory: Memory, a: [u64; 6]) -> i64 {
    match world().descs[desc].kind {
        DescKind::PIPE => write(desc, memory),
        DescKind::SOCKET => message::send(desc, memory, 0),
        _ => fd::refuse(libc::SYS_sendfile, desc, a),
    }
}

/// Moves up to `n` bytes of file `from` on, a piece at a time; `offset`: address of the place to read from, or 0 for
/// the file's own.
fn from_file(from: u64, offset: u64, n: u64, mut put: impl FnMut(Memory) -> i64) -> i64 {
    let mut buffer = [0u8; 4096];
    let mut done = 0;
    while done < n {
        let want = (n - done).min(buffer.len() as u64);
        let at = buffer.as_mut_ptr() as u64;
        let place: i64 = if offset == 0 { 0 } else { load(offset) };
        let got = match offset {
            0 => fd::on_file(libc::SYS_read, [from, at, want, 0, 0, 0]),
            _ => fd::on_file(libc::SYS_pread64, [from, at, want, place as u64, 0, 0]),
        };
        if got <= 0 {
            return if done > 0 { done as i64 } else { got };
        }
        let result = put(Memory::one(at, got as u64));
        let taken = result.max(0);
        match offset {
            // What was read and not taken is given back.
            0 if taken < got => {
                fd::on_file(libc::SYS_lseek, [from, (taken - got) as u64, libc::SEEK_CUR as u64, 0, 0, 0]);
            }
            0 => {}
            _ => store(offset, place + taken),
        }
        if result < 0 {
            return if done > 0 { done as i64 } else { result };
        }
        done += taken as u64;
        if taken < got {
            break;
        }
    }
    done as i64
}

/// splice between a pipe and a file, or between pipes. `None`: neither is of the model.
pub fn splice(a: [u64; 6]) -> Option<i64> {
    let (input, out) = (fd::find(a[0]), fd::find(a[2]));
    if input.is_none() && out.is_none() {
        return None;
    }
    let n = a[4].min(0x7fff_f000);
    if n == 0 {
        return Some(0);
    }
    if input.is_some() && a[1] != 0 || out.is_some() && a[3] != 0 {
        return Some(-(libc::ESPIPE as i64));
    }
    Some(match (input, out) {
        (None, Some(out)) => from_file(a[0], a[1], n.min(PIPE_RING), |memory| output(out, memory, a)),
        (Some(input), None) if matches!(world().descs[input].kind, DescKind::PIPE | DescKind::SOCKET) => {
            to_file(input, a[2], a[3], n)
        }
        (Some(input), Some(out)) => between(input, out, n, a),
        (Some(input), None) => fd::refuse(libc::SYS_splice, input, a),
        (None, None) => EINVAL,
    })
}

/// Moves bytes from a pipe to a socket, or the other way; what a socket that does not wait has no room for is refused.
fn between(input: DescId, out: DescId, n: u64, a: [u64; 6]) -> i64 {
    if world().descs[out].flags & NONBLOCK != 0 {
        fd::refuse(libc::SYS_splice, out, a);
    }
    let mut buffer = [0u8; 4096];
    let at = buffer.as_mut_ptr() as u64;
    let memory = Memory::one(at, n.min(buffer.len() as u64));
    let got = match world().descs[input].kind {
        DescKind::SOCKET => message::receive(input, memory, 0),
        DescKind::PIPE => read(input, memory),
        _ => fd::refuse(libc::SYS_splice, input, a),
    };
    if got <= 0 {
        return got;
    }
    output(out, Memory::one(at, got as u64), a)
}

/// Moves what a pipe or socket holds into a file.
fn to_file(input: DescId, to: u64, offset: u64, n: u64) -> i64 {
    let mut buffer = [0u8; 4096];
    let at = buffer.as_mut_ptr() as u64;
    let memory = Memory::one(at, n.min(buffer.len() as u64));
    let got = match world().descs[input].kind {
        DescKind::SOCKET => message::receive(input, memory, 0),
        _ => read(input, memory),
    };
    if got <= 0 {
        return got;
    }
    let result = match offset {
        0 => fd::on_file(libc::SYS_write, [to, at, got as u64, 0, 0, 0]),
        _ => fd::on_file(libc::SYS_pwrite64, [to, at, got as u64, load(offset), 0, 0]),
    };
    if offset != 0 && result > 0 {
        store(offset, load::<i64>(offset) + result);
    }
    result
}
