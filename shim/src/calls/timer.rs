//! alarm, setitimer and POSIX timers: the arguments of the calls. They run on the virtual clock; see the model.

use vsrun_model::timer::{ITIMER, ITIMER_PROF, ITIMER_VIRTUAL};
use vsrun_model::{Kind, Op, NONE};

use super::time;
use crate::gate::{self, end, is_threaded, local, machine, model, world};
use crate::sys::errno::*;
use crate::sys::{decimal, limit, load, store, touch};

const SECOND: u64 = 1_000_000_000;

/// The calls about timers.
pub fn call(nr: i64, a: [u64; 6]) -> i64 {
    if nr == libc::SYS_setitimer && time_value(a[1]).is_none() || nr == libc::SYS_getitimer && a[1] == 0 {
        return EINVAL;
    }
    match nr {
        libc::SYS_timer_settime => touch(a[2], 32),
        libc::SYS_timer_create if a[1] != 0 => touch(a[1], 64),
        _ => {}
    }
    // What one thread does to the timers of its process others may notice.
    if is_threaded() {
        gate::pass(Op::on(Kind::TIMER, local().pid));
    } else {
        machine().expose_to_timers(local().pid);
        gate::place_for_handlers(nr);
    }
    let result = match nr {
        libc::SYS_alarm => alarm(a[0] as u32),
        libc::SYS_setitimer => setitimer(a[0] as i32, a[1], a[2]),
        libc::SYS_getitimer => getitimer(a[0] as i32, a[1]),
        libc::SYS_timer_create => create(a[0] as i32, a[1], a[2]),
        libc::SYS_timer_settime => settime(a[0] as i32, a[1] as i32, a[2], a[3]),
        libc::SYS_timer_gettime => gettime(a[0] as i32, a[1]),
        libc::SYS_timer_getoverrun => match timer(a[0] as i32) {
            Some(at) => {
                model().overruns_are_told();
                world().timers[at].last_overrun as i64
            }
            None => EINVAL,
        },
        _ => delete(a[0] as i32),
    };
    if matches!(nr, libc::SYS_alarm | libc::SYS_setitimer | libc::SYS_timer_settime) && result >= 0 {
        gate::arms();
    }
    result
}

fn itimer(which: i32) -> u32 {
    let p = local().pid;
    let id = [ITIMER, ITIMER_VIRTUAL, ITIMER_PROF][which as usize % 3];
    model().itimer(p, id).unwrap_or_else(|| out_of_room())
}

fn out_of_room() -> ! {
    end::no_room(&[b"the program has more timers than vsrun can hold"])
}

fn timer(id: i32) -> Option<u32> {
    let p = local().pid;
    if id < 0 {
        return None;
    }
    world().timer(p, id)
}

/// Seconds that were left of the one before, rounded as Linux does: up, but for less than half a second over one.
fn alarm(seconds: u32) -> i64 {
    let at = itimer(libc::ITIMER_REAL);
    let (before, _) = world().timer_left(at);
    model().timer_arm(at, u64::from(seconds) * SECOND, 0);
    let (whole, rest) = (before / SECOND, before % SECOND);
    if whole == 0 && rest > 0 || rest >= SECOND / 2 {
        whole as i64 + 1
    } else {
        whole as i64
    }
}

/// A timeval of the program, ns. `None`: not a valid one.
fn timeval(addr: u64) -> Option<u64> {
    let (s, us): (i64, i64) = (load(addr), load(addr + 8));
    (s >= 0 && (0..1_000_000).contains(&us)).then(|| s as u64 * SECOND + us as u64 * 1000)
}

/// An itimerval, as (value, interval); none is a value of 0.
fn time_value(addr: u64) -> Option<(u64, u64)> {
    if addr == 0 {
        return Some((0, 0));
    }
    Some((timeval(addr + 16)?, timeval(addr)?))
}

fn setitimer(which: i32, new: u64, old: u64) -> i64 {
    if !(0..3).contains(&which) {
        return EINVAL;
    }
    getitimer(which, old);
    let Some((value, interval)) = time_value(new) else { return EINVAL };
    model().timer_arm(itimer(which), value, interval);
    0
}

fn getitimer(which: i32, at: u64) -> i64 {
    if !(0..3).contains(&which) {
        return EINVAL;
    }
    if at != 0 {
        let (value, interval) = world().timer_left(itimer(which));
        for (addr, ns) in [(at, interval), (at + 16, value)] {
            store(addr, (ns / SECOND) as i64);
            store(addr + 8, (ns % SECOND / 1000) as i64);
        }
    }
    0
}

fn create(clock: i32, event: u64, id: u64) -> i64 {
    let processor = time::is_processor_time(clock);
    match time::fault_of(clock) {
        0 if matches!(clock, 8 | 9) => end::unsupported(&[b"timer_create of clock ", &decimal(clock)]),
        0 => {}
        error => return error,
    }
    // Its signal has a place from the start.
    if world().queued_signals() >= limit(libc::RLIMIT_SIGPENDING) {
        return EAGAIN;
    }
    let p = local().pid;
    let number = world().timer_number(p);
    let (mut value, mut signal, mut notify, mut target) = (number as u64, libc::SIGALRM, libc::SIGEV_SIGNAL, NONE);
    if event != 0 {
        (value, signal, notify) = (load(event), load(event + 8), load(event + 12));
    }
    match notify {
        libc::SIGEV_NONE => signal = 0,
        libc::SIGEV_SIGNAL | libc::SIGEV_THREAD_ID if !(1..=64).contains(&signal) => return EINVAL,
        libc::SIGEV_SIGNAL => {}
        libc::SIGEV_THREAD_ID => {
            let vtid: i32 = load(event + 16);
            let found = world().live.as_slice().iter().copied();
            let mut of = found.filter(|&t| world().threads[t].vtid == vtid && world().threads[t].pid == p);
            let Some(t) = of.next() else { return EINVAL };
            target = t;
        }
        _ => return EINVAL,
    }
    match model().timer_make(p, target, number, signal, value) {
        // Absolute times of some are dates.
        Some(at) => model().timer_counts(at, processor, time::is_realtime(clock)),
        None => out_of_room(),
    }
    store(id, number);
    0
}

fn settime(id: i32, flags: i32, new: u64, old: u64) -> i64 {
    let Some(at) = timer(id) else { return EINVAL };
    let (Some(interval), Some(value)) = (time::timespec(new), time::timespec(new + 16)) else { return EINVAL };
    if old != 0 {
        gettime(id, old);
    }
    model().timer_arm(at, value, interval);
    if flags & libc::TIMER_ABSTIME != 0 && world().timers[at].processor {
        let now = time::read(libc::CLOCK_PROCESS_CPUTIME_ID);
        model().timer_arm_until(at, 0, if value == 0 { 0 } else { value.saturating_sub(now).max(1) });
    } else if flags & libc::TIMER_ABSTIME != 0 && value != 0 {
        let clock = if world().timers[at].realtime { libc::CLOCK_REALTIME } else { libc::CLOCK_MONOTONIC };
        model().timer_arm_until(at, time::absolute(clock, value), 0);
    }
    0
}

fn gettime(id: i32, addr: u64) -> i64 {
    let Some(at) = timer(id) else { return EINVAL };
    let (value, interval) = world().timer_left(at);
    time::put_timespec(addr, interval);
    time::put_timespec(addr + 16, value);
    0
}

fn delete(id: i32) -> i64 {
    let Some(at) = timer(id) else { return EINVAL };
    model().timer_delete(at);
    0
}
