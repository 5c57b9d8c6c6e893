//! Virtual time. CLOCK_REALTIME is virtual monotonic time plus a fixed epoch, so that every run sees the same dates.

use vsrun_model::{inject as fault, Kind, Op};

use crate::gate::{self, inject, local, model, world};
use crate::sys::errno::*;
use crate::sys::{load, raw, store, store_if, touch};

/// 2026-01-01T00:00:00Z, what CLOCK_REALTIME shows at virtual time 0, ns.
const EPOCH: u64 = 1_767_225_600 * SECOND;
const SECOND: u64 = 1_000_000_000;

/// True for clocks that show the date.
pub fn is_realtime(clock: i32) -> bool {
    matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_TAI | 8)
}

/// Reads a clock, ns.
pub fn read(clock: i32) -> u64 {
    let now = model().read_clock();
    if is_realtime(clock) {
        EPOCH + now
    } else {
        now
    }
}

/// What CLOCK_REALTIME shows at virtual time `ns`, ns.
pub fn real(ns: u64) -> u64 {
    EPOCH + ns
}

/// The date, seconds, at virtual time `ns`.
pub fn date_of(ns: u64) -> i64 {
    ((EPOCH + ns) / SECOND) as i64
}

/// A timespec of the program, ns. `None`: not one that system calls take.
pub fn timespec(addr: u64) -> Option<u64> {
    let (s, n): (i64, i64) = (load(addr), load(addr + 8));
    if s < 0 || !(0..SECOND as i64).contains(&n) {
        return None;
    }
    Some((s as u64).saturating_mul(SECOND).saturating_add(n as u64))
}

/// A clock of processor time that is there: the two of the caller's own, and those by number, which are negative. They name a
/// thread of the caller's process, or a process, and what is counted (include/linux/posix-timers.h).
pub fn is_processor_time(clock: i32) -> bool {
    const PER_THREAD: i32 = 4;
    let owner = !(clock >> 3);
    let there = || match clock & PER_THREAD {
        _ if owner == 0 => true,
        0 => world().process_by_vpid(owner).is_some(),
        _ => world().live.as_slice().iter().any(|&t| {
            let thread = &world().threads[t];
            thread.vtid == owner && thread.pid == local().pid
        }),
    };
    matches!(clock, libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID)
        || clock < 0 && clock & 3 != 3 && there()
}

/// A clock that can be read.
fn is_clock(clock: i32) -> bool {
    matches!(clock, 0..=9 | libc::CLOCK_TAI) || is_processor_time(clock)
}

/// What is wrong with a clock to sleep by, or to set a timer by; 0: nothing.
pub fn fault_of(clock: i32) -> i64 {
    match clock {
        libc::CLOCK_MONOTONIC_RAW | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_MONOTONIC_COARSE => EOPNOTSUPP,
        _ if is_clock(clock) => 0,
        _ => EINVAL,
    }
}

/// Virtual deadline of an absolute time on `clock`.
pub fn absolute(clock: i32, ns: u64) -> u64 {
    world().settled_deadline(local().cur, if is_realtime(clock) { ns.saturating_sub(EPOCH) } else { ns })
}

/// Virtual deadline of a time span from now.
pub fn relative(ns: u64) -> u64 {
    world().deadline_after(local().cur, ns)
}

/// The operation, giving up at the absolute time at `abstime` on `clock`; or minus an error number.
pub fn timed(op: Op, clock: i32, abstime: u64) -> Result<Op, i64> {
    if !matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC) {
        return Err(EINVAL);
    }
    // One before the beginning of the clock has passed, for functions of libc.
    let (s, n): (i64, i64) = (load(abstime), load(abstime + 8));
    match n {
        n if !(0..SECOND as i64).contains(&n) => Err(EINVAL),
        _ if s < 0 => Ok(op.until(absolute(clock, 0))),
        n => Ok(op.until(absolute(clock, (s as u64).saturating_mul(SECOND).saturating_add(n as u64)))),
    }
}

/// Writes a timespec.
pub fn put_timespec(addr: u64, ns: u64) {
    store(addr, (ns / SECOND) as i64);
    store(addr + 8, (ns % SECOND) as i64);
}

/// clock_gettime.
pub fn clock_gettime(clock: i32, addr: u64) -> i64 {
    // Most are not negative, and there is no need to look further.
    if !(0..=9).contains(&clock) && !is_clock(clock) {
        return EINVAL;
    }
    put_timespec(addr, read(clock));
    0
}

/// clock_getres of a clock of processor time.
pub fn clock_getres(clock: i32, addr: u64) -> i64 {
    if !is_clock(clock) {
        return EINVAL;
    }
    store_if(addr, [0u64, 1]);
    0
}

/// clock_settime: nobody may.
pub fn clock_settime(clock: i32, addr: u64) -> i64 {
    if clock != libc::CLOCK_REALTIME && !(clock < 0 && is_clock(clock)) {
        return EINVAL;
    }
    touch(addr, 16);
    EPERM
}

/// gettimeofday.
pub fn gettimeofday(tv: u64, tz: u64) -> i64 {
    if tv != 0 {
        let now = read(libc::CLOCK_REALTIME);
        store(tv, (now / SECOND) as i64);
        store(tv + 8, (now % SECOND / 1000) as i64);
    }
    store_if(tz, 0u64);
    0
}

/// time.
pub fn time(addr: u64) -> i64 {
    let now = (read(libc::CLOCK_REALTIME) / SECOND) as i64;
    store_if(addr, now);
    now
}

/// times: clock ticks since some moment; those of the processor that the process has used go to `addr`.
pub fn times(addr: u64) -> i64 {
    let now = (read(libc::CLOCK_MONOTONIC) / 10_000_000) as i64;
    store_if(addr, [now, 0, 0, 0]);
    now
}

/// getrusage: what the kernel says of memory; the processor's time is the clock's, as everywhere, and nothing else is counted, since what
/// the kernel counts differs from run to run.
pub fn rusage(who: i32, at: u64) -> i64 {
    const MEMORY: usize = 4;
    let mut usage = [0u64; 18];
    let result = raw!(libc::SYS_getrusage, who, usage.as_mut_ptr());
    if result < 0 {
        return result;
    }
    let mut ours = [0u64; 18];
    ours[MEMORY] = usage[MEMORY];
    if who != libc::RUSAGE_CHILDREN {
        let now = read(libc::CLOCK_PROCESS_CPUTIME_ID);
        (ours[0], ours[1]) = (now / SECOND, now % SECOND / 1000);
    }
    store(at, ours);
    result
}

/// A sleep until `deadline` (virtual ns), as a visible operation; what is left of it, if it was interrupted, goes to
/// the timespec at `left`.
pub fn sleep_until(deadline: u64, left: u64) -> i64 {
    let result = match inject::strikes(fault::EINTR) {
        true => EINTR,
        false => gate::pass(Op::new(Kind::SLEEP).until(deadline)),
    };
    if result != 0 && left != 0 {
        put_timespec(left, deadline.saturating_sub(model().told_clock()));
    }
    result
}

/// nanosleep and clock_nanosleep.
pub fn nanosleep(clock: i32, flags: i32, request: u64, left: u64) -> i64 {
    match fault_of(clock) {
        0 if clock == libc::CLOCK_THREAD_CPUTIME_ID => return EOPNOTSUPP,
        0 => {}
        error => return error,
    }
    let Some(ns) = timespec(request) else { return EINVAL };
    if flags & libc::TIMER_ABSTIME != 0 {
        sleep_until(absolute(clock, ns), 0)
    } else {
        sleep_until(relative(ns), left)
    }
}
