//! sendfile, splice, tee and vmsplice.

use vsrun_model::channel::{OWN_BUFFER, PIPE_RING};
use vsrun_model::fd::{DescId, DescKind, ACCESS, NONBLOCK, READ_ONLY, READ_WRITE, WRITE_ONLY};
use vsrun_model::world::PAGES_SHARED;
use vsrun_model::{op, Kind, NONE};

use super::memory::{copy, copy_between, vector, Memory};
use super::{fd, message, pipe, socket};
use crate::gate::{me, model, note_passed, world};
use crate::sys::errno::*;
use crate::sys::{load, raw, store};

/// SPLICE_F_MOVE, SPLICE_F_NONBLOCK, SPLICE_F_MORE, SPLICE_F_GIFT.
const SPLICE_FLAGS: u64 = 0xf;

/// sendfile. `None`: both are files.
pub fn send_file(a: [u64; 6]) -> Option<i64> {
    let (out, input) = (fd::find(a[0]), fd::find(a[1]));
    if let Some(input) = input {
        let readable = world().descs[input].flags & ACCESS != WRITE_ONLY;
        return Some(if readable { EINVAL } else { EBADF });
    }
    let out = out?;
    Some(from_file(a[1], a[2], a[3], |memory, done| match world().descs[out].kind {
        // Only what there is room for (fs/read_write.c, do_sendfile).
        DescKind::PIPE => pipe::write_as(out, memory, OWN_BUFFER | if done > 0 { op::TRY } else { 0 }),
        _ => output(out, memory, 0, a),
    }))
}

fn output(desc: DescId, memory: Memory, how: u8, a: [u64; 6]) -> i64 {
    match world().descs[desc].kind {
        DescKind::PIPE => pipe::write_as(desc, memory, how),
        DescKind::SOCKET => message::send(desc, memory, 0),
        _ => fd::refuse(libc::SYS_sendfile, desc, a),
    }
}

/// Moves up to `n` bytes of file `from` on, a piece at a time; `offset`: address of the place to read from, or 0 for
/// the file's own.
fn from_file(from: u64, offset: u64, n: u64, mut put: impl FnMut(Memory, u64) -> i64) -> i64 {
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
        let result = put(Memory::one(at, got as u64), done);
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
    if a[5] & !SPLICE_FLAGS != 0 {
        return Some(EINVAL);
    }
    let access = |desc: Option<DescId>| desc.map_or(NONE, |desc| world().descs[desc].flags & ACCESS);
    if access(input) == WRITE_ONLY || access(out) == READ_ONLY {
        return Some(EBADF);
    }
    if input.is_some() && a[1] != 0 || out.is_some() && a[3] != 0 {
        return Some(ESPIPE);
    }
    for offset in [a[1], a[3]] {
        if offset != 0 {
            load::<i64>(offset);
        }
    }
    let how = if a[5] & u64::from(libc::SPLICE_F_NONBLOCK) != 0 { op::TRY } else { 0 };
    Some(match (input, out) {
        (None, Some(out)) => from_file(a[0], a[1], n.min(PIPE_RING), |memory, done| {
            output(out, memory, how | OWN_BUFFER | if done > 0 { op::TRY } else { 0 }, a)
        }),
        (Some(input), None) if matches!(world().descs[input].kind, DescKind::PIPE | DescKind::SOCKET) => {
            to_file(input, a[2], a[3], n, how)
        }
        (Some(input), Some(out)) => between(input, out, n, how, a),
        (Some(input), None) => fd::refuse(libc::SYS_splice, input, a),
        (None, None) => EINVAL,
    })
}

/// Moves bytes from a pipe to a socket or another pipe, or the other way; what one that does not wait has no room for is refused.
fn between(input: DescId, out: DescId, n: u64, how: u8, a: [u64; 6]) -> i64 {
    let (from, to) = (world().descs[input], world().descs[out]);
    let pipes = from.kind == DescKind::PIPE && to.kind == DescKind::PIPE;
    if pipes && from.input == to.output {
        return EINVAL;
    }
    // Of two pipes one is enough (fs/splice.c, do_splice).
    let how = if pipes && (from.flags | to.flags) & NONBLOCK != 0 { op::TRY } else { how };
    if !pipes && to.flags & NONBLOCK != 0 {
        fd::refuse(libc::SYS_splice, out, a);
    }
    let mut buffer = [0u8; 4096];
    let at = buffer.as_mut_ptr() as u64;
    let memory = Memory::one(at, n.min(buffer.len() as u64));
    let got = take(input, memory, how, a);
    if got <= 0 {
        return got;
    }
    note_rest(got, n);
    let result = output(out, Memory::one(at, got as u64), how, a);
    match result {
        // It would have stayed where it was.
        EPIPE => note_passed(libc::SYS_splice),
        _ if result < got => fd::refuse(libc::SYS_splice, out, a),
        _ => {}
    }
    result
}

/// Takes what there is out of a pipe or socket.
fn take(input: DescId, memory: Memory, how: u8, a: [u64; 6]) -> i64 {
    match world().descs[input].kind {
        // TCP goes by the descriptor alone (net/ipv4/tcp.c, tcp_splice_read).
        DescKind::SOCKET if how & op::TRY != 0 && !world().sockets[socket::of(input)].is_tcp() => {
            message::receive(input, memory, libc::MSG_DONTWAIT)
        }
        DescKind::SOCKET => message::receive(input, memory, 0),
        DescKind::PIPE => pipe::read_as(input, memory, how),
        _ => fd::refuse(libc::SYS_splice, input, a),
    }
}

/// More than a page is not moved at once here, though the kernel moves it.
fn note_rest(got: i64, wanted: u64) {
    if got == 4096 && wanted > 4096 {
        note_passed(libc::SYS_splice);
    }
}

/// Moves what a pipe or socket holds into a file.
fn to_file(input: DescId, to: u64, offset: u64, n: u64, how: u8) -> i64 {
    let mut buffer = [0u8; 4096];
    let at = buffer.as_mut_ptr() as u64;
    let memory = Memory::one(at, n.min(buffer.len() as u64));
    let got = take(input, memory, how, [0; 6]);
    if got <= 0 {
        return got;
    }
    note_rest(got, n);
    let result = match offset {
        0 => fd::on_file(libc::SYS_write, [to, at, got as u64, 0, 0, 0]),
        _ => fd::on_file(libc::SYS_pwrite64, [to, at, got as u64, load(offset), 0, 0]),
    };
    if offset != 0 && result > 0 {
        store(offset, load::<i64>(offset) + result);
    }
    result
}

/// tee: what is in one pipe goes into another one too. `None`: neither is of the model.
pub fn tee(a: [u64; 6]) -> Option<i64> {
    let (input, output) = (fd::find(a[0]), fd::find(a[1]));
    if input.is_none() && output.is_none() {
        return None;
    }
    // Of what is no descriptor of the model the kernel knows it, or that it is none.
    let access = |desc: Option<DescId>, number: u64| match desc {
        Some(desc) => world().descs[desc].flags & ACCESS,
        None => match raw!(libc::SYS_fcntl, number, libc::F_GETFL) {
            flags if flags >= 0 && flags & i64::from(libc::O_PATH) == 0 => flags as u32 & ACCESS,
            _ => NONE,
        },
    };
    let reads = [READ_ONLY, READ_WRITE].contains(&access(input, a[0]));
    let writes = [WRITE_ONLY, READ_WRITE].contains(&access(output, a[1]));
    let is_pipe = |desc: DescId| world().descs[desc].kind == DescKind::PIPE;
    Some(match (input, output) {
        _ if a[3] & !SPLICE_FLAGS != 0 => EINVAL,
        _ if a[2] == 0 => 0,
        _ if !reads || !writes => EBADF,
        (Some(from), Some(to))
            if is_pipe(from) && is_pipe(to) && world().descs[from].input != world().descs[to].output =>
        {
            tee_pipes(from, to, a[2].min(i64::MAX as u64), a[3])
        }
        _ => EINVAL,
    })
}

/// It waits for something in the one pipe, then for room in the other, and then looks at both: what it has waited for may be gone again
/// (fs/splice.c, do_tee).
fn tee_pipes(from: DescId, to: DescId, n: u64, flags: u64) -> i64 {
    let (d, out) = (world().descs[from], world().descs[to]);
    let hurries = flags & u64::from(libc::SPLICE_F_NONBLOCK) != 0 || (d.flags | out.flags) & NONBLOCK != 0;
    let how = if hurries { op::TRY } else { 0 };
    let mut something = world().channel_op(Kind::FD_READ, d.input, 0).with(how);
    let mut room = world().channel_op(Kind::FD_WRITE, out.output, 0).with(how | OWN_BUFFER);
    // The call may be over with either, and then lets go of both pipes, of which others may have closed their ends.
    something.obj2 = world().channel_obj(out.output);
    room.obj2 = world().channel_obj(d.input);
    loop {
        let result = fd::pass(from, something, |_| {});
        if result < 0 {
            return result;
        }
        let before = me().transitions;
        match fd::pass(to, room, |_| {}) {
            EPIPE => return pipe::broken(),
            error if error < 0 => return error,
            // A handler of a signal has run meanwhile, and restarts the call from its beginning.
            _ if me().transitions > before + 1 => {}
            _ => break,
        }
    }
    let mut both = world().channel_op(Kind::FD_TEE, d.input, n as i64);
    both.obj2 = world().channel_obj(out.output);
    both.mask |= world().channel_bit(out.output);
    let result = fd::pass(to, both, |n| {
        if n > 0 {
            let [head, tail, _] = me().out;
            copy_between(d.input, head as u64, out.output, tail as u64, n as u64);
        }
    });
    if result == EPIPE {
        return pipe::broken();
    }
    result
}

/// vmsplice: pages of the program go into a pipe, or what is in it into memory.
pub fn vmsplice(desc: DescId, a: [u64; 6]) -> i64 {
    let d = world().descs[desc];
    let how = if a[3] & u64::from(libc::SPLICE_F_NONBLOCK) != 0 { op::TRY } else { 0 };
    let kind = d.kind;
    if a[3] & !SPLICE_FLAGS != 0 {
        return EINVAL;
    }
    vector(a[1], a[2], |memory| match kind {
        _ if !memory.is_possible() => EFAULT,
        DescKind::PIPE if d.flags & ACCESS == READ_ONLY => pipe::read_anyhow(desc, memory, how),
        DescKind::PIPE => pages_to_pipe(desc, &memory, how),
        _ => EBADF,
    })
}

/// Each page, or part of one, is a buffer of its own; all that there is room for goes in at once (fs/splice.c, iter_to_pipe). The kernel
/// keeps the pages themselves, here they are copied: a change made to them before they are read is not seen at the other end.
fn pages_to_pipe(desc: DescId, memory: &Memory, how: u8) -> i64 {
    const PAGE: u64 = 4096;
    let output = world().descs[desc].output;
    let there = memory.readable(0, memory.len());
    let part = |done: u64| {
        let mut part = 0;
        memory.stretches(done, there - done, |at, n, before| {
            part = if before == 0 { n.min(PAGE - at % PAGE) } else { part };
        });
        part
    };
    let mut done = 0;
    let op = world().channel_op(Kind::FD_WRITE, output, part(0) as i64).with(how | OWN_BUFFER);
    let result = fd::pass(desc, op, |n| {
        if n <= 0 {
            return;
        }
        copy(output, me().out[0] as u64, memory, 0, n as u64, true);
        done = n as u64;
        while done < there {
            let n = part(done);
            let Some(at) = model().pipe_another(output, n) else { break };
            copy(output, at, memory, done, n, true);
            done += n;
        }
    });
    match result {
        EPIPE => pipe::broken(),
        error if error < 0 => error,
        _ if there == 0 => EFAULT,
        _ => {
            model().never_comes(PAGES_SHARED);
            done as i64
        }
    }
}
