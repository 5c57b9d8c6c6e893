//! Descriptors of processes: pidfd_open, pidfd_send_signal, waitid(P_PIDFD), CLONE_PIDFD. One is ready to be read from once its process
//! is over; there is nothing to be read.

use vsrun_model::channel::ChanKind;
use vsrun_model::fd::{DescId, DescKind, NONBLOCK};
use vsrun_model::{Kind, Op, Pid};

use super::{event, fd, files, signal};
use crate::gate::{self, local, model, world};
use crate::sys::errno::*;
use crate::sys::load;

/// Performs call `nr` if it is about these.
pub fn call(nr: i64, a: [u64; 6]) -> Option<i64> {
    Some(match nr {
        libc::SYS_pidfd_open => open(a[0] as i32, a[1] as u32),
        libc::SYS_pidfd_send_signal => send(a[0], a[1] as i32, a[2], a[3]),
        libc::SYS_pidfd_getfd if a[2] != 0 => EINVAL,
        // As to a user who may not trace the process.
        libc::SYS_pidfd_getfd => find(a[0]).map_or_else(|error| error, |_| EPERM),
        _ => return None,
    })
}

fn open(id: i32, flags: u32) -> i64 {
    if flags & !(libc::O_NONBLOCK as u32) != 0 || id <= 0 {
        return EINVAL;
    }
    // Whether it is there still is a question of who came first, and so is later whether it is over.
    if id != world().procs[local().pid].vpid {
        let target = world().process_named(id).unwrap_or(u32::MAX);
        gate::pass(Op::on(Kind::KILL, target));
    }
    match world().process_by_vpid(id) {
        Some(p) => of_process(p, libc::O_CLOEXEC | flags as i32),
        // The id of a thread that is not the first.
        None if files::thread_with_id(id).is_some() => EINVAL,
        None => ESRCH,
    }
}

/// A descriptor of that process: its number, or an error.
pub fn of_process(p: Pid, flags: i32) -> i64 {
    event::make(DescKind::PROCESS, ChanKind::PROCESS, flags, |id| model().process_watched(id, p))
}

/// The process that descriptor `fd` is of, and its description.
fn find(fd: u64) -> Result<(Pid, DescId), i64> {
    match fd::find(fd) {
        Some(desc) if world().descs[desc].kind == DescKind::PROCESS => {
            Ok((world().channels[world().descs[desc].input].value as Pid, desc))
        }
        _ => Err(EBADF),
    }
}

fn send(fd: u64, number: i32, info: u64, flags: u64) -> i64 {
    if flags as u32 != 0 {
        return EINVAL;
    }
    let p = match find(fd) {
        Ok((p, _)) => p,
        Err(error) => return error,
    };
    if info != 0 {
        // All of it is read first.
        let given: [u64; 16] = load(info);
        if given[0] as i32 != number {
            return EINVAL;
        }
    }
    signal::queue(world().procs[p].vpid, number, info)
}

/// What waitid is to wait for: the selector of its process, and whether it does not wait for the sake of the descriptor.
pub fn waited_for(fd: i32) -> Result<(i64, bool), i64> {
    if fd < 0 {
        return Err(EINVAL);
    }
    let (p, desc) = find(fd as u64)?;
    Ok((world().procs[p].vpid.into(), world().descs[desc].flags & NONBLOCK != 0))
}
