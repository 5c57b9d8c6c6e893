//! Time, yield, assertions, VS_toss, VS_own.

use vsrun_model::progress::Advance;
use vsrun_model::{Kind, Op};

use crate::calls::{buffers, claims, signal, time};
use crate::gate::{self, end, local, model};
use crate::net;
use crate::sys::{cstr, decimal, ret};

symbols! {
    fn clock_gettime(clock: i32, at: u64) -> i32 = match clock {
        // Those that the kernel's own library does not know, it asks the kernel for.
        0 | 1 | 4..=7 | 11 => {
            let tells = |a: [u64; 6]| time::clock_gettime(clock, a[1]);
            ret(buffers::around(libc::SYS_clock_gettime, [clock as u64, at, 0, 0, 0, 0], tells)) as i32
        }
        _ => ret(net::call(libc::SYS_clock_gettime, [clock as u64, at, 0, 0, 0, 0], 0)) as i32,
    };
    fn gettimeofday(tv: u64, tz: u64) -> i32 = {
        let tells = |a: [u64; 6]| time::gettimeofday(a[0], a[1]);
        ret(buffers::around(libc::SYS_gettimeofday, [tv, tz, 0, 0, 0, 0], tells)) as i32
    };
    fn time(at: u64) -> i64 = buffers::around(libc::SYS_time, [at, 0, 0, 0, 0, 0], |a| time::time(a[0]));
    fn sched_yield() -> i32 = gate::pass(Op::new(Kind::YIELD)) as i32;
    fn pthread_yield() -> i32 = gate::pass(Op::new(Kind::YIELD)) as i32;
}

ends! {
    fn abort() = {
        gate::returning(signal::raise_abort);
        end::assertion(&[b"abort() was called"])
    };
}

fn text<'a>(at: u64) -> &'a [u8] {
    if at == 0 {
        return b"?";
    }
    cstr(at, 512)
}

fn violated(expression: &[u8], file: u64, line: i64, function: u64) -> ! {
    let line = decimal(line);
    end::assertion(&[text(file), b":", &line, b": ", text(function), b": assertion `", expression, b"' failed"])
}

ends! {
    fn __assert_fail(expression: u64, file: u64, line: u32, function: u64) =
        violated(text(expression), file, line as i64, function);
    fn __assert(expression: u64, file: u64, line: i32) = violated(text(expression), file, line as i64, 0);
    fn __assert_perror_fail(error: i32, file: u64, line: u32, function: u64) =
        violated(&decimal(error), file, line as i64, function);
    /// VS_assert of vs.h.
    fn vsrun_assert_fail(expression: u64, file: u64, line: i32, function: u64) =
        violated(text(expression), file, line as i64, function);
}

symbols! {
    /// VS_toss of vs.h: any of 0..=n; each is an alternative.
    fn vsrun_toss(n: i32) -> i32 = gate::pass(Op::new(Kind::TOSS).arg(n.max(0) as i64)) as i32;
    /// VS_progress.
    fn vsrun_progress() = model().advances(local().cur, Advance::DECLARED, -1);
    /// VS_own.
    fn vsrun_own(at: u64, size: u64) = claims::own(at, size);
    /// VS_disown.
    fn vsrun_disown(at: u64, size: u64) = claims::disown(at, size);
    /// VS_hand_over; `to`: a thread, or 0.
    fn vsrun_hand_over(at: u64, size: u64, to: u64) = claims::hand_over(at, size, to);
}
