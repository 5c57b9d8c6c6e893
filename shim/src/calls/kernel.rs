//! Calls that the kernel performs, with what has to be done around them.

use vsrun_model::arena::{FIRST_FD, LAST_FD};
use vsrun_model::calls::{fate, kind_name, name, Fate};

use super::fd::{is_open, is_ours, refused};
use super::{descriptors, files, locks, owner, pipe, proc, shm, uncontrolled};
use crate::gate::{end, me, through, world};
use crate::sys::errno::*;
use crate::sys::{decimal, raw};

/// No result of the kernel's: what was to be opened is a FIFO by now, which the model opens.
const FIFO_CAME: i64 = i64::MIN;

/// A call that closes `fd`.
fn closing(fd: i32, call: impl FnOnce() -> i64) -> i64 {
    let seen = locks::before_close(fd);
    let result = call();
    locks::after_close(seen);
    result
}

/// Calls that pass through unless they would touch what is vsrun's; visible operations where they use what others use.
pub fn call(nr: i64, a: [u64; 6]) -> i64 {
    files::tell(nr, &a);
    let before = me().transitions;
    let result = proc::with_real_numbers(nr, a, |a| {
        files::using(nr, a, || match me().transitions != before && descriptors::opens_fifo(nr, a) {
            true => FIFO_CAME,
            false => guarded(nr, a),
        })
    });
    if result == FIFO_CAME {
        return descriptors::call(nr, a).unwrap_or_else(|| call(nr, a));
    }
    if result == EMFILE || result == ENFILE {
        refused(result);
    }
    locks::opened(nr, result);
    match nr {
        libc::SYS_open | libc::SYS_openat | libc::SYS_openat2 if result >= 0 => proc::opened(nr, a, result),
        libc::SYS_getdents64 if result > 0 => proc::listed(a, result),
        libc::SYS_mknod if result == 0 => pipe::made(libc::AT_FDCWD, a[0]),
        libc::SYS_mknodat if result == 0 => pipe::made(a[0] as i32, a[1]),
        _ => result,
    }
}

// What it takes of the stack, which is the program's and may be small, calls that are not for it need not have.
#[inline(never)]
fn guarded(nr: i64, a: [u64; 6]) -> i64 {
    match nr {
        libc::SYS_close if is_ours(a[0]) => EBADF,
        libc::SYS_dup2 | libc::SYS_dup3 if is_ours(a[1]) => EBADF,
        libc::SYS_fcntl | libc::SYS_dup if is_ours(a[0]) => EBADF,
        libc::SYS_close_range => {
            let (first, last, flags) = (a[0] as u32, a[1] as u32, a[2]);
            let (low, high) = (FIRST_FD as u32, LAST_FD as u32);
            const CLOEXEC: u64 = 4;
            if flags & CLOEXEC == 0 && first <= last {
                locks::close_locked(first as i32, last.min(i32::MAX as u32) as i32, false);
            }
            let mut result = 0;
            if first < low {
                result = raw!(nr, first, last.min(low - 1), flags);
            }
            if last >= high && result >= 0 {
                result = raw!(nr, first.max(high), last, flags);
            }
            result
        }
        libc::SYS_fcntl if locks::is_lock(a[1] as i32) => locks::fcntl(a[0] as i32, a[1] as i32, a[2], false),
        libc::SYS_fcntl if owner::concerns(a[1] as i32) => owner::of_file(a),
        libc::SYS_flock if is_ours(a[0]) => EBADF,
        libc::SYS_flock => locks::flock(a[0] as i32, a[1] as i32),
        libc::SYS_close => closing(a[0] as i32, || through(nr, a)),
        libc::SYS_dup2 | libc::SYS_dup3 if a[0] != a[1] && is_open(a[0]) => closing(a[1] as i32, || through(nr, a)),
        libc::SYS_open | libc::SYS_openat | libc::SYS_unlink | libc::SYS_unlinkat => shm::open(nr, a),
        libc::SYS_read | libc::SYS_readv if world().uncontrolled != 0 => {
            uncontrolled::before_read(a[0]);
            files::call(nr, a)
        }
        _ => match fate(nr) {
            Fate::Real | Fate::Mixed => files::call(nr, a),
            Fate::Fails(error) => error,
            Fate::OnRequest(kind, _) if world().uncontrolled & kind != 0 => uncontrolled::call(nr, a),
            Fate::OnRequest(_, error) if error < 0 => error,
            Fate::OnRequest(kind, _) => refuse_kind(nr, kind),
            Fate::Modelled | Fate::Refused => refuse(nr, a),
        },
    }
}

/// A call that may go to the kernel, but was not asked to.
fn refuse_kind(nr: i64, kind: u32) -> ! {
    let (call, kind) = (name(nr).unwrap_or("").as_bytes(), kind_name(kind).as_bytes());
    end::unsupported(&[
        b"system call ",
        call,
        b"; or --uncontrolled ",
        kind,
        b", and the kernel performs it, unexplored",
    ])
}

/// A call that nothing is made of: the execution ends with its name and arguments.
fn refuse(nr: i64, a: [u64; 6]) -> ! {
    end::unsupported(&[
        b"system call ",
        name(nr).unwrap_or("without a name").as_bytes(),
        b"(",
        &decimal(a[0] as i64),
        b", ",
        &decimal(a[1] as i64),
        b", ",
        &decimal(a[2] as i64),
        b", ..)",
    ])
}
