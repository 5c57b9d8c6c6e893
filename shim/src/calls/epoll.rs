//! epoll.

use vsrun_model::channel::{ChanId, ChanKind};
use vsrun_model::epoll::{flag, Control};
use vsrun_model::fd::{DescId, DescKind};
use vsrun_model::{op, Kind, Op};

use super::memory::lacking;
use super::{event, fd, signal, time};
use crate::gate::{self, end, inject, local, model, note_passed, world};
use crate::sys::errno::*;
use crate::sys::{decimal, load, raw, store, writable, END_OF_ADDRESSES};

/// Most events of one wait that the kernel takes: bytes of events fit in an int.
const MAX_EVENTS: i32 = i32::MAX / 12;

/// Performs call `nr` if it is about epoll.
pub fn call(nr: i64, a: [u64; 6]) -> Option<i64> {
    Some(match nr {
        libc::SYS_epoll_create if a[0] as i32 <= 0 => EINVAL,
        libc::SYS_epoll_create => make(0),
        libc::SYS_epoll_create1 if a[0] as i32 & !libc::EPOLL_CLOEXEC != 0 => EINVAL,
        libc::SYS_epoll_create1 => make(a[0] as i32),
        libc::SYS_epoll_ctl => control(a),
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait => {
            let ms = a[3] as i32;
            let timeout = (ms >= 0).then_some(ms as u64 * 1_000_000);
            let mask = if nr == libc::SYS_epoll_pwait { a[4] } else { 0 };
            wait(a, timeout, mask)
        }
        libc::SYS_epoll_pwait2 => {
            let timeout = match a[3] {
                0 => None,
                at => match time::timespec(at) {
                    Some(ns) => Some(ns),
                    None => return Some(EINVAL),
                },
            };
            wait(a, timeout, a[4])
        }
        _ => return None,
    })
}

fn make(flags: i32) -> i64 {
    event::make(DescKind::EPOLL, ChanKind::EPOLL, flags & libc::EPOLL_CLOEXEC, |_| {})
}

/// The instance that `fd` names.
fn instance(fd: u64) -> Result<ChanId, i64> {
    match fd::find(fd) {
        Some(desc) if world().descs[desc].kind == DescKind::EPOLL => Ok(world().descs[desc].input),
        Some(_) => Err(EINVAL),
        None if !fd::is_open(fd) => Err(EBADF),
        None => Err(EINVAL),
    }
}

/// What the kernel says of watching a file: EPERM of one that is always ready; anything else would be waiting for
/// something outside.
fn watch_file(fd: i32) -> i64 {
    let mut event = [u64::from(flag::EDGE) | 1, 0];
    let real = raw!(libc::SYS_epoll_create1, libc::EPOLL_CLOEXEC);
    let result = raw!(libc::SYS_epoll_ctl, real, libc::EPOLL_CTL_ADD, fd, event.as_mut_ptr());
    raw!(libc::SYS_close, real);
    if result == 0 {
        end::unsupported(&[
            b"an epoll instance that watches descriptor ",
            &decimal(fd),
            b", a terminal, device or pipe from outside the program",
        ]);
    }
    result
}

/// epoll_ctl, with the kernel's errors in the kernel's order.
fn control(a: [u64; 6]) -> i64 {
    let (epfd, what, fd, at) = (a[0], a[1] as i32, a[2] as i32, a[3]);
    let (events, data): (u32, u64) = match what {
        libc::EPOLL_CTL_DEL => (0, 0),
        _ if at == 0 => return EFAULT,
        _ => (load(at), u64::from(load::<u32>(at + 4)) | u64::from(load::<u32>(at + 8)) << 32),
    };
    if fd::find(epfd).is_none() && !fd::is_open(epfd) {
        return EBADF;
    }
    let Some(desc) = fd::find(fd as u64) else {
        if !fd::is_open(fd as u64) {
            return EBADF;
        }
        let result = watch_file(fd);
        return match instance(epfd) {
            _ if result == EPERM => EPERM,
            Ok(_) => result,
            Err(error) => error,
        };
    };
    let own = fd::find(epfd) == Some(desc);
    let epoll = match instance(epfd) {
        Ok(epoll) if !own => epoll,
        _ => return EINVAL,
    };
    if let Err(error) = exclusive(what, desc, events) {
        return error;
    }
    let request = match what {
        libc::EPOLL_CTL_ADD => Control::Add(events, data),
        libc::EPOLL_CTL_MOD => Control::Change(events, data),
        libc::EPOLL_CTL_DEL => Control::Remove,
        _ => return EINVAL,
    };
    let mut op = Op::on(Kind::FD_EPOLL_CTL, world().channel_obj(epoll));
    op.mask = world().channel_bit(epoll) | world().desc_bits(desc);
    op.arg = i64::from(epfd as u32) | i64::from(fd) << 32;
    let mut result = 0;
    gate::pass_then(op, |_| result = apply(epfd, fd, request));
    result
}

/// Does it; others may have closed the descriptors since it was asked for.
fn apply(epfd: u64, fd: i32, request: Control) -> i64 {
    let Some(desc) = fd::find(fd as u64) else { return EBADF };
    let epoll = match instance(epfd) {
        Ok(epoll) => epoll,
        Err(error) => return error,
    };
    match model().epoll_control(local().cur, epoll, gate::shown(fd), desc, request) {
        Some(result) => result,
        None => end::no_room(&[b"the program watches more descriptors with epoll than vsrun can hold"]),
    }
}

/// EPOLLEXCLUSIVE: all instances that watch are told here, where the kernel tells at least one.
fn exclusive(what: i32, desc: DescId, events: u32) -> Result<(), i64> {
    const FINE: u32 = flag::EXCLUSIVE
        | flag::WAKEUP
        | flag::EDGE
        | (libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLERR | libc::EPOLLHUP) as u32;
    if events & flag::EXCLUSIVE == 0 || !matches!(what, libc::EPOLL_CTL_ADD | libc::EPOLL_CTL_MOD) {
        return Ok(());
    }
    let watchable = world().descs[desc].kind != DescKind::EPOLL && events & !FINE == 0;
    if what == libc::EPOLL_CTL_MOD || what == libc::EPOLL_CTL_ADD && !watchable {
        return Err(EINVAL);
    }
    note_passed(libc::SYS_epoll_ctl);
    Ok(())
}

/// epoll_wait and its like: waits `timeout` ns, or for ever, with the signals at `mask` blocked.
fn wait(a: [u64; 6], timeout: Option<u64>, mask: u64) -> i64 {
    let (to, room) = (a[1], a[2] as i32);
    if mask != 0 && a[5] != 8 {
        return EINVAL;
    }
    let epoll = match instance(a[0]) {
        Err(EBADF) => return EBADF,
        _ if room <= 0 || room > MAX_EVENTS => return EINVAL,
        Ok(epoll) => epoll,
        Err(error) => return error,
    };
    let Some(desc) = fd::find(a[0]) else { return EBADF };
    if timeout != Some(0) {
        inject::interrupts();
    }
    let mut op = world().channel_op(Kind::FD_WAIT, epoll, i64::from(room));
    op = match timeout {
        Some(0) => op.with(op::TRY),
        Some(ns) => op.until(time::relative(ns)),
        None => op,
    };
    if !(to..=END_OF_ADDRESSES - 12 * u64::from(room as u32)).contains(&to) {
        return EFAULT;
    }
    op = lacking(op, writable(to, 12), 12);
    let deliver = |_| {
        for (i, event) in world().delivered.as_slice().iter().enumerate() {
            let entry = to + 12 * i as u64;
            store(entry, event.events);
            store(entry + 4, event.data as u32);
            store(entry + 8, (event.data >> 32) as u32);
        }
    };
    fd::throughout(desc, || signal::with_mask(mask, || gate::pass_then(op, deliver)))
}
