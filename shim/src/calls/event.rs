//! eventfd, timerfd, signalfd.

use vsrun_model::channel::{ChanId, ChanKind};
use vsrun_model::fd::{DescId, DescKind, NONBLOCK, READ_WRITE};
use vsrun_model::signal::bit;
use vsrun_model::{op, Kind, SigInfo};

use super::memory::{vector, Memory};
use super::pipe::faults;
use super::{fd, time};
use crate::gate::{self, local, me, model, world};
use crate::sys::errno::*;
use crate::sys::load;

/// Bytes of a signalfd_siginfo.
const SIGINFO: u64 = 128;

/// A new descriptor of `kind` with a channel of its own, for reading and writing; its number or an error.
pub fn make(kind: DescKind, channel: ChanKind, flags: i32, set: impl FnOnce(ChanId)) -> i64 {
    let id = fd::new_channel(channel, 0);
    let nonblock = if flags & libc::O_NONBLOCK != 0 { NONBLOCK } else { 0 };
    let desc = fd::new_desc(kind, READ_WRITE | nonblock, id, id);
    set(id);
    fd::install(desc, flags & libc::O_CLOEXEC != 0)
}

/// eventfd and eventfd2.
pub fn counter(first: u64, flags: i32) -> i64 {
    if flags & !(libc::EFD_SEMAPHORE | libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) != 0 {
        return EINVAL;
    }
    make(DescKind::EVENT, ChanKind::COUNTER, flags, |id| {
        model().counter_begin(id, first & 0xffff_ffff, flags & libc::EFD_SEMAPHORE != 0);
    })
}

/// timerfd_create.
fn timer(clock: i32, flags: i32) -> i64 {
    // CLOCK_BOOTTIME, and the clocks that wake a machine.
    let known = matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC | 7..=9);
    if !known || flags & !(libc::TFD_CLOEXEC | libc::TFD_NONBLOCK) != 0 {
        return EINVAL;
    }
    let fd = make(DescKind::TIMER, ChanKind::TIMER, flags, |_| {});
    if let Some(desc) = fd::find(fd as u64) {
        model().desc_set_extra(desc, clock as u32);
    }
    fd
}

/// The timer that `fd` names.
fn timer_of(fd: u64) -> Result<DescId, i64> {
    match fd::find(fd) {
        Some(desc) if world().descs[desc].kind == DescKind::TIMER => Ok(desc),
        Some(_) => Err(EINVAL),
        None if !fd::is_open(fd) => Err(EBADF),
        None => Err(EINVAL),
    }
}

/// timerfd_settime.
fn timer_set(a: [u64; 6]) -> i64 {
    let (flags, new, old) = (a[1] as i32, a[2], a[3]);
    if flags & !(libc::TFD_TIMER_ABSTIME | libc::TFD_TIMER_CANCEL_ON_SET) != 0 {
        return EINVAL;
    }
    let (Some(period), Some(first)) = (time::timespec(new), time::timespec(new + 16)) else { return EINVAL };
    let desc = match timer_of(a[0]) {
        Ok(desc) => desc,
        Err(error) => return error,
    };
    on_timer(desc, |id, clock| {
        let at = match first {
            0 => 0,
            ns if flags & libc::TFD_TIMER_ABSTIME != 0 => time::absolute(clock, ns).max(1),
            ns => time::relative(ns),
        };
        let before = model().timer_set(id, at, period);
        if old != 0 {
            put_setting(old, before);
        }
    });
    0
}

/// timerfd_gettime.
fn timer_get(a: [u64; 6]) -> i64 {
    let desc = match timer_of(a[0]) {
        Ok(desc) => desc,
        Err(error) => return error,
    };
    on_timer(desc, |id, _| {
        let channel = world().channels[id];
        put_setting(a[1], (channel.value, channel.period));
    });
    0
}

/// Does something to a timer, visibly if others can notice, or a signal may come before it.
fn on_timer(desc: DescId, mut act: impl FnMut(ChanId, i32)) {
    let d = world().descs[desc];
    let mut act = |_| act(d.input, d.extra as i32);
    let is_own = fd::is_private(desc) && world().channels[d.input].watched == 0;
    if is_own && !gate::is_place_for_handlers() {
        act(0);
    } else {
        gate::pass_then(world().desc_op(Kind::FD_CONTROL, desc), act);
    }
}

/// Writes an itimerspec: the time left of a timer that fires at `at`, and its period.
fn put_setting(to: u64, (at, period): (u64, u64)) {
    let now = world().timer_now(local().cur);
    let left = match at {
        0 => 0,
        at if at > now => at - now,
        _ if period == 0 => 0,
        at => period - (now - at) % period,
    };
    time::put_timespec(to, period);
    time::put_timespec(to + 16, left);
}

/// signalfd and signalfd4.
fn signals(fd: i32, mask: u64, size: u64, flags: i32) -> i64 {
    if size != 8 || flags & !(libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) != 0 {
        return EINVAL;
    }
    let mask = load::<u64>(mask) & !(bit(libc::SIGKILL) | bit(libc::SIGSTOP));
    if fd == -1 {
        return make(DescKind::SIGNAL, ChanKind::SIGNALS, flags, |id| model().signals_set(id, mask));
    }
    match fd::find(fd as u64) {
        Some(desc) if world().descs[desc].kind == DescKind::SIGNAL => {
            fd::settle(desc);
            model().signals_set(world().descs[desc].input, mask);
            i64::from(fd)
        }
        None if !fd::is_open(fd as u64) => EBADF,
        _ => EINVAL,
    }
}

/// Performs call `nr` if it makes one of these descriptors or is about timers.
pub fn call(nr: i64, a: [u64; 6]) -> Option<i64> {
    Some(match nr {
        libc::SYS_eventfd => counter(a[0], 0),
        libc::SYS_eventfd2 => counter(a[0], a[1] as i32),
        libc::SYS_timerfd_create => timer(a[0] as i32, a[1] as i32),
        libc::SYS_timerfd_settime => timer_set(a),
        libc::SYS_timerfd_gettime => timer_get(a),
        libc::SYS_signalfd => signals(a[0] as i32, a[1], a[2], 0),
        libc::SYS_signalfd4 => signals(a[0] as i32, a[1], a[2], a[3] as i32),
        _ => return None,
    })
}

/// Call `nr` on such a descriptor, or on an epoll instance. `None`: what holds for all descriptors.
pub fn on(nr: i64, desc: DescId, a: [u64; 6]) -> Option<i64> {
    let kind = world().descs[desc].kind;
    if kind == DescKind::PROCESS {
        return of_process(nr, a);
    }
    if !matches!(kind, DescKind::EVENT | DescKind::TIMER | DescKind::SIGNAL | DescKind::EPOLL) {
        return None;
    }
    let one = || Memory::one(a[1], a[2]);
    Some(match nr {
        libc::SYS_read => read(desc, one()),
        libc::SYS_write => write(desc, one()),
        libc::SYS_readv if kind == DescKind::EPOLL => EINVAL,
        libc::SYS_writev if kind != DescKind::EVENT => EINVAL,
        libc::SYS_preadv2 if kind == DescKind::EPOLL => EINVAL,
        libc::SYS_readv => vector(a[1], a[2], |memory| read(desc, memory)),
        libc::SYS_writev => vector(a[1], a[2], |memory| write_pieces(desc, memory)),
        libc::SYS_lseek => 0,
        libc::SYS_ioctl if !matches!(a[1] & 0xffff_ffff, libc::FIONBIO | libc::FIOCLEX | libc::FIONCLEX) => {
            if kind == DescKind::EPOLL {
                EINVAL
            } else {
                ENOTTY
            }
        }
        _ => return None,
    })
}

/// Of a process there is nothing to be read.
fn of_process(nr: i64, a: [u64; 6]) -> Option<i64> {
    Some(match nr {
        libc::SYS_read | libc::SYS_write | libc::SYS_readv | libc::SYS_writev => EINVAL,
        libc::SYS_preadv2 | libc::SYS_pwritev2 => EINVAL,
        libc::SYS_ioctl if !matches!(a[1] & 0xffff_ffff, libc::FIONBIO | libc::FIOCLEX | libc::FIONCLEX) => ENOTTY,
        _ => return None,
    })
}

fn read(desc: DescId, memory: Memory) -> i64 {
    let d = world().descs[desc];
    let least = match d.kind {
        DescKind::EPOLL => return EINVAL,
        DescKind::SIGNAL => SIGINFO,
        _ => 8,
    };
    if !memory.is_possible() {
        return EFAULT;
    }
    if memory.len() < least {
        return EINVAL;
    }
    if let Err(error) = faults(d, 1) {
        return error;
    }
    let mut op = world().channel_op(Kind::FD_READ, d.input, least as i64);
    if d.flags & NONBLOCK != 0 {
        op = op.with(op::TRY);
    }
    let mut done = 0;
    let result = super::fd::pass(desc, op, |n| match d.kind {
        _ if n <= 0 => {}
        DescKind::SIGNAL => done = take_signals(d.input, &memory),
        _ => memory.put(&me().out[0].to_ne_bytes()),
    });
    match d.kind {
        DescKind::SIGNAL if result > 0 => done,
        _ => result,
    }
}

/// A signalfd_siginfo (fs/signalfd.c): which fields are filled in depends on si_code.
fn described(info: &SigInfo) -> [u8; SIGINFO as usize] {
    const PID: usize = 12;
    const UID: usize = 16;
    const TID: usize = 24;
    const OVERRUN: usize = 32;
    const STATUS: usize = 40;
    const INT: usize = 44;
    const PTR: usize = 48;
    let mut all = [0u8; SIGINFO as usize];
    let mut put = |at: usize, bytes: &[u8]| all[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &info.signal.to_ne_bytes());
    put(8, &info.code.to_ne_bytes());
    let timer = info.code == libc::SI_TIMER;
    if timer {
        put(TID, &info.pid.to_ne_bytes());
        put(OVERRUN, &info.uid.to_ne_bytes());
    } else {
        put(PID, &info.pid.to_ne_bytes());
        put(UID, &info.uid.to_ne_bytes());
    }
    if timer || info.code == libc::SI_QUEUE {
        put(INT, &(info.value as u32).to_ne_bytes());
        put(PTR, &info.value.to_ne_bytes());
    } else if info.signal == libc::SIGCHLD && info.code > 0 {
        put(STATUS, &(info.value as u32).to_ne_bytes());
    }
    all
}

/// As many signals as there are and as there is room for; bytes.
fn take_signals(id: ChanId, memory: &Memory) -> i64 {
    let mask = world().channels[id].value;
    let mut done = 0;
    while memory.len() - done >= SIGINFO {
        let Some(taken) = model().signal_taken(local().cur, mask) else { break };
        memory.put_at(done, &described(&taken));
        done += SIGINFO;
    }
    if done == 0 {
        return EAGAIN;
    }
    done as i64
}

fn write(desc: DescId, memory: Memory) -> i64 {
    let d = world().descs[desc];
    if d.kind == DescKind::EVENT && !memory.is_possible() {
        return EFAULT;
    }
    if d.kind != DescKind::EVENT || memory.len() < 8 {
        return EINVAL;
    }
    let mut bytes = [0; 8];
    memory.get(&mut bytes);
    let add = u64::from_ne_bytes(bytes);
    if add == u64::MAX {
        return EINVAL;
    }
    if let Err(error) = faults(d, 1) {
        return error;
    }
    let mut op = world().channel_op(Kind::FD_WRITE, d.output, add as i64);
    if d.flags & NONBLOCK != 0 {
        op = op.with(op::TRY);
    }
    super::fd::pass(desc, op, |_| {})
}

/// Each piece of a writev is a write of its own (fs/read_write.c, do_loop_readv_writev).
fn write_pieces(desc: DescId, memory: Memory) -> i64 {
    let mut done = 0;
    for i in 0..memory.pieces() {
        let (at, n) = memory.piece(i);
        let result = write(desc, Memory::one(at, n));
        if result < 0 {
            return if done > 0 { done } else { result };
        }
        done += result;
        if result as u64 != n {
            break;
        }
    }
    done
}
