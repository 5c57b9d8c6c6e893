//! The futex system call: its arguments; what they mean is the model's.

use vsrun_model::memory::OF_WORDS;
use vsrun_model::op::TRY;
use vsrun_model::watch::Entry;
use vsrun_model::{inject as fault, Kind, Op};

use super::thread::begin_held_back;
use super::{stream, sync, time};
use crate::gate::touch::{about_to_change, changed, compared};
use crate::gate::{self, end, inject, local, machine, me, mirror, model};
use crate::sys::errno::*;
use crate::sys::{load, store, touch, writable, END_OF_ADDRESSES};

/// Where what futexes do to memory is recorded.
pub const SITE: u32 = Entry::FUNCTION | Entry::CALL | libc::SYS_futex as u32;
const PRIVATE: u64 = 128;
const REALTIME: u64 = 256;

/// The futex system call.
pub fn call(a: [u64; 6]) -> i64 {
    let [addr, op, value, timeout, addr2, value3] = a;
    let clock = if op & REALTIME != 0 { libc::CLOCK_REALTIME } else { libc::CLOCK_MONOTONIC };
    let private = op & PRIVATE != 0;
    let command = (op & !(PRIVATE | REALTIME)) as i32;
    if let Err(error) = check(a) {
        return error;
    }
    // pthread_create could not set the new thread up, and waits until that is over.
    begin_held_back();
    let remember = |word: u64, expected: u32| model().set_out(local().cur, [0, word as i64, expected as i64]);
    match command {
        libc::FUTEX_WAIT if private && value as u32 == 2 && timeout == 0 && stream::is_one(addr) => stream::waits(addr),
        libc::FUTEX_WAKE if private && value as u32 == 1 && stream::is_one(addr) => stream::wakes(addr),
        libc::FUTEX_WAKE if private && mirror::is_once(addr) => 0,
        libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET => {
            let mut op = Op::on(Kind::FUTEX_WAIT, sync::futex(addr, private));
            op.mask = if command == libc::FUTEX_WAIT { u32::MAX } else { value3 as u32 };
            if timeout != 0 {
                let Some(ns) = time::timespec(timeout) else { return EINVAL };
                let relative = command == libc::FUTEX_WAIT;
                op = op.until(if relative { time::relative(ns) } else { time::absolute(clock, ns) });
            }
            if inject::strikes(fault::SPURIOUS) {
                return 0;
            }
            remember(addr, value as u32);
            if let Some((memory, bytes)) = compared(addr, SITE) {
                (op.obj2, op.arg) = (memory, bytes.into());
            }
            gate::pass(op)
        }
        libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET => {
            let mut op =
                Op::on(Kind::FUTEX_WAKE, sync::futex(addr, private)).arg((value as u32 as i64).min(i32::MAX as i64));
            op.mask = if command == libc::FUTEX_WAKE { u32::MAX } else { value3 as u32 };
            gate::pass(op);
            me().out[0]
        }
        libc::FUTEX_REQUEUE | libc::FUTEX_CMP_REQUEUE => {
            let counts =
                (value as u32 as i64).min(i32::MAX as i64) | ((timeout as u32).min(i32::MAX as u32) as i64) << 32;
            let mut op = Op::on(Kind::FUTEX_REQUEUE, sync::futex(addr, private)).arg(counts);
            op.obj2 = sync::futex(addr2, private);
            op.mask = u32::MAX;
            let compares = command == libc::FUTEX_CMP_REQUEUE;
            remember(if compares { addr } else { 0 }, value3 as u32);
            if compares && compared(addr, SITE).is_some() {
                op.flags |= OF_WORDS;
            }
            match gate::pass(op) {
                0 => me().out[0],
                error => error,
            }
        }
        libc::FUTEX_WAKE_OP => {
            let what = value3 as u32;
            if what >> 28 & 7 > 4 || what >> 24 & 15 > 5 {
                return ENOSYS;
            }
            let most = |n: u64| i64::from((n as u32).min(i32::MAX as u32));
            let mut op = Op::on(Kind::FUTEX_WAKE_OP, sync::futex(addr, private)).arg(most(value) | most(timeout) << 32);
            op.obj2 = sync::futex(addr2, private);
            op.mask = u32::MAX;
            remember(addr2, what);
            let is_object = about_to_change(addr2, SITE).is_some();
            gate::pass(op.with(if is_object { OF_WORDS } else { 0 }));
            if is_object {
                changed(addr2);
            }
            me().out[0]
        }
        // FUTEX_FD is gone since Linux 2.6.26.
        libc::FUTEX_FD => ENOSYS,
        libc::FUTEX_LOCK_PI | libc::FUTEX_UNLOCK_PI | libc::FUTEX_TRYLOCK_PI if op & REALTIME != 0 => ENOSYS,
        libc::FUTEX_LOCK_PI => lock_pi(addr, private, libc::CLOCK_REALTIME, timeout),
        libc::FUTEX_LOCK_PI2 => lock_pi(addr, private, clock, timeout),
        libc::FUTEX_TRYLOCK_PI => pass_pi(Kind::FUTEX_LOCK_PI, addr, private, |op| op.with(TRY)),
        libc::FUTEX_UNLOCK_PI => pass_pi(Kind::FUTEX_UNLOCK_PI, addr, private, |op| op),
        libc::FUTEX_WAIT_REQUEUE_PI => refuse(b"FUTEX_WAIT_REQUEUE_PI"),
        libc::FUTEX_CMP_REQUEUE_PI => refuse(b"FUTEX_CMP_REQUEUE_PI"),
        _ => ENOSYS,
    }
}

const PRIVATE_WAIT: u64 = 128;
const PRIVATE_WAKE: u64 = 129;

/// What stands for libc's `__lll_lock_wait_private`: takes the lock whose word is at `lock`, 2 while it is taken and waited for.
pub extern "C" fn wait_for_lock(lock: u64) {
    const TAKEN: u32 = 2;
    if !stream::is_one(lock) && load::<u32>(lock) != 0 && !local().borrowed {
        machine().meets_libc_lock();
    }
    if load::<u32>(lock) == TAKEN {
        call([lock, PRIVATE_WAIT, TAKEN.into(), 0, 0, 0]);
    }
    // No other thread runs in between.
    while load::<u32>(lock) != 0 {
        store(lock, TAKEN);
        call([lock, PRIVATE_WAIT, TAKEN.into(), 0, 0, 0]);
    }
    store(lock, TAKEN);
}

/// What stands for `__lll_lock_wake_private`.
pub extern "C" fn wake_for_lock(lock: u64) {
    call([lock, PRIVATE_WAKE, 1, 0, 0, 0]);
}

/// What the kernel says of the words and the timeout of a call before it does anything: it looks the timeout up, then the words,
/// and needs those of one process alone only where it reads or changes them.
fn check(a: [u64; 6]) -> Result<(), i64> {
    let [addr, op, value, timeout, addr2, value3] = a;
    let (private, command) = (op & PRIVATE != 0, (op & !(PRIVATE | REALTIME)) as i32);
    let word = |addr: u64, reads: bool, writes: bool| {
        if !addr.is_multiple_of(4) {
            return Err(EINVAL);
        }
        if addr >= END_OF_ADDRESSES || writes && writable(addr, 4) < 4 {
            return Err(EFAULT);
        }
        if reads || !private {
            load::<u32>(addr);
        }
        Ok(())
    };
    let waits =
        matches!(command, libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET | libc::FUTEX_LOCK_PI | libc::FUTEX_LOCK_PI2);
    if waits && timeout != 0 {
        touch(timeout, 16);
        if time::timespec(timeout).is_none() {
            return Err(EINVAL);
        }
    }
    match command {
        libc::FUTEX_WAIT_BITSET | libc::FUTEX_WAKE_BITSET if value3 as u32 == 0 => Err(EINVAL),
        libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET => word(addr, true, false),
        libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET => word(addr, false, false),
        libc::FUTEX_REQUEUE | libc::FUTEX_CMP_REQUEUE => {
            if (value as i32) < 0 || (timeout as i32) < 0 {
                return Err(EINVAL);
            }
            word(addr, command == libc::FUTEX_CMP_REQUEUE, false).and_then(|()| word(addr2, false, false))
        }
        libc::FUTEX_WAKE_OP => word(addr, false, false).and_then(|()| word(addr2, false, true)),
        libc::FUTEX_LOCK_PI | libc::FUTEX_LOCK_PI2 | libc::FUTEX_TRYLOCK_PI => word(addr, false, true),
        libc::FUTEX_UNLOCK_PI => {
            word(addr, true, false)?;
            let owner = load::<u32>(addr) & libc::FUTEX_TID_MASK;
            word(addr, true, owner == me().vtid as u32)
        }
        _ => Ok(()),
    }
}

/// Waits that are moved to a lock with priority inheritance.
fn refuse(name: &[u8]) -> ! {
    end::unsupported(&[b"futex(", name, b")"])
}

/// FUTEX_LOCK_PI: the timeout is an absolute time.
fn lock_pi(addr: u64, private: bool, clock: i32, timeout: u64) -> i64 {
    let mut deadline = None;
    if timeout != 0 {
        let Some(ns) = time::timespec(timeout) else { return EINVAL };
        deadline = Some(time::absolute(clock, ns));
    }
    pass_pi(Kind::FUTEX_LOCK_PI, addr, private, |op| deadline.map_or(op, |at| op.until(at)))
}

fn pass_pi(kind: Kind, addr: u64, private: bool, shape: impl FnOnce(Op) -> Op) -> i64 {
    let lock = sync::futex(addr, private);
    // It depends on everything.
    let is_object = about_to_change(addr, SITE).is_some();
    let result = gate::pass_mirrored(shape(Op::on(kind, lock)), Some((addr, lock)));
    if is_object {
        changed(addr);
    }
    result
}

/// The calls of Linux 6.7.
pub fn refuse_new(nr: i64) -> ! {
    let name: &[u8] = match nr {
        454 => b"futex_wake",
        455 => b"futex_wait",
        _ => b"futex_requeue",
    };
    end::unsupported(&[b"the system call ", name])
}
