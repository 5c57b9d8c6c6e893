//! Waiting for signals: sigsuspend, pause, sigwait and its relatives.

use vsrun_model::op::{TRY, VARIANT};
use vsrun_model::{Kind, Op};

use crate::local::me;
use crate::sys::load;
use crate::{gate, signal, time};

/// Signals that cannot be blocked or waited for.
const UNTOUCHABLE: u64 = signal::bit(libc::SIGKILL) | signal::bit(libc::SIGSTOP);

/// rt_sigsuspend: waits with another mask.
pub fn suspend(set: u64, size: u64) -> i64 {
    if size != 8 {
        return -(libc::EINVAL as i64);
    }
    let mask: u64 = load::<u64>(set) & !UNTOUCHABLE;
    -gate::pass(Op::new(Kind::SIGSUSPEND).arg(mask as i64))
}

/// pause.
pub fn pause() -> i64 {
    let mask = me().sigmask;
    -gate::pass(Op::new(Kind::SIGSUSPEND).with(VARIANT).arg(mask as i64))
}

/// rt_sigtimedwait: sigwait, sigwaitinfo, sigtimedwait.
pub fn timedwait(set: u64, info: u64, timeout: u64, size: u64) -> i64 {
    if size != 8 {
        return -(libc::EINVAL as i64);
    }
    let set: u64 = load::<u64>(set) & !UNTOUCHABLE;
    let mut op = Op::new(Kind::SIGWAIT).arg(set as i64);
    if timeout != 0 {
        let Some(ns) = time::timespec(timeout) else { return -(libc::EINVAL as i64) };
        op = if ns == 0 { op.with(TRY) } else { op.until(time::relative(ns)) };
    }
    let result = gate::pass(op);
    if result != 0 {
        return -result;
    }
    let taken = me().taken;
    signal::put_siginfo(info, &taken);
    taken.signal as i64
}
