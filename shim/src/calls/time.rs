//! Virtual time. CLOCK_REALTIME is virtual monotonic time plus a fixed epoch, so that every run sees the same dates.

use vsrun_model::{Kind, Op};

use crate::gate::{self, local, model, world};
use crate::sys::errno::*;
use crate::sys::{load, store, store_if};

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

/// Seconds of the date at virtual time `at`.
pub fn date(at: u64) -> i64 {
    ((EPOCH + at) / SECOND) as i64
}

/// A timespec of the program, ns; negative times count as 0. `None`: not a valid timespec.
pub fn timespec(addr: u64) -> Option<u64> {
    let (s, n): (i64, i64) = (load(addr), load(addr + 8));
    if !(0..SECOND as i64).contains(&n) {
        return None;
    }
    Some((s.max(0) as u64).saturating_mul(SECOND).saturating_add(n as u64))
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
    match timespec(abstime) {
        Some(ns) => Ok(op.until(absolute(clock, ns))),
        None => Err(EINVAL),
    }
}

/// Writes a timespec.
pub fn put_timespec(addr: u64, ns: u64) {
    store(addr, (ns / SECOND) as i64);
    store(addr + 8, (ns % SECOND) as i64);
}

/// clock_gettime.
pub fn clock_gettime(clock: i32, addr: u64) -> i64 {
    if !(-1000..12).contains(&clock) && clock > 0 {
        return EINVAL;
    }
    put_timespec(addr, read(clock));
    0
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

/// A sleep until `deadline` (virtual ns), as a visible operation; what is left of it, if it was interrupted, goes to
/// the timespec at `left`.
pub fn sleep_until(deadline: u64, left: u64) -> i64 {
    let result = gate::pass(Op::new(Kind::SLEEP).until(deadline));
    if result != 0 && left != 0 {
        put_timespec(left, deadline.saturating_sub(world().now));
    }
    result
}

/// nanosleep and clock_nanosleep.
pub fn nanosleep(clock: i32, flags: i32, request: u64, left: u64) -> i64 {
    let Some(ns) = timespec(request) else { return EINVAL };
    if flags & libc::TIMER_ABSTIME != 0 {
        sleep_until(absolute(clock, ns), 0)
    } else {
        sleep_until(relative(ns), left)
    }
}
