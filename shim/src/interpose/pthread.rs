//! pthread_*, and C11 threads.h, whose threads themselves go through clone.

use vsrun_model::{op, Kind, Op};

use crate::calls::joins::{about, about_locked, detach, join_with, thrd_join as join};
use crate::calls::pthread::{
    barrier_destroy, barrier_init, barrier_wait, cond_destroy, cond_wait, cond_wake, lock, mutex_destroy, rwlock,
    rwlock_destroy, spin, spin_init, timed_lock, unlock, ENDS_SPIN, LEAVES, READS, SPINS, WAKES_ALL, WAKES_ONE, WRITES,
};
use crate::calls::thread::{
    create, create_key, delete_key, libc_functions, once, set_cancel_state, set_cancel_type, test_cancel,
};
use crate::calls::time::timed;
use crate::calls::unwinder::cancel;
use crate::calls::{guard, priority, sync};
use crate::gate::{self, local, model};
use crate::net::guarded;
use crate::sys::ret_pthread;

// What the functions of threads.h return.
const SUCCESS: i32 = 0;
const BUSY: i32 = 1;
const ERROR: i32 = 2;
const TIMEDOUT: i32 = 4;

/// mtx_recursive of the type.
const RECURSIVE: i32 = 1;

fn outcome(error: i32) -> i32 {
    match error {
        0 => SUCCESS,
        libc::EBUSY => BUSY,
        libc::ETIMEDOUT => TIMEDOUT,
        _ => ERROR,
    }
}

// Mutexes, spin locks.
symbols! {
    fn pthread_mutex_init(m: u64, attr: u64) -> i32 = { sync::mutex_init(m, attr); 0 };
    fn pthread_mutex_destroy(m: u64) -> i32 = mutex_destroy(m);
    fn pthread_mutex_lock(m: u64) -> i32 = lock(m, Ok);
    fn pthread_mutex_trylock(m: u64) -> i32 = lock(m, |op| Ok(op.with(op::TRY)));
    fn pthread_mutex_timedlock(m: u64, abstime: u64) -> i32 = timed_lock(m, libc::CLOCK_REALTIME, abstime);
    fn pthread_mutex_clocklock(m: u64, clock: i32, abstime: u64) -> i32 = timed_lock(m, clock, abstime);
    fn pthread_mutex_unlock(m: u64) -> i32 = unlock(m);
    fn pthread_mutex_consistent(m: u64) -> i32 =
        ret_pthread(model().mutex_consistent(local().cur, sync::mutex(m)));
    fn pthread_mutex_consistent_np(m: u64) -> i32 = pthread_mutex_consistent(m);
    fn __pthread_mutex_lock(m: u64) -> i32 = lock(m, Ok);
    fn __pthread_mutex_trylock(m: u64) -> i32 = pthread_mutex_trylock(m);
    fn __pthread_mutex_unlock(m: u64) -> i32 = unlock(m);
    fn pthread_spin_init(s: u64, _pshared: i32) -> i32 = spin_init(s);
    fn pthread_spin_destroy(_s: u64) -> i32 = 0;
    fn pthread_spin_lock(s: u64) -> i32 = spin(SPINS, s, Ok);
    fn pthread_spin_trylock(s: u64) -> i32 = spin(SPINS, s, |op| Ok(op.with(op::TRY)));
    fn pthread_spin_unlock(s: u64) -> i32 = spin(ENDS_SPIN, s, Ok);
}

// Condition variables, barriers.
symbols! {
    fn pthread_cond_init(c: u64, attr: u64) -> i32 = { sync::cond_init(c, attr); 0 };
    fn pthread_cond_destroy(c: u64) -> i32 = cond_destroy(c);
    fn pthread_cond_wait(c: u64, m: u64) -> i32 = cond_wait(c, m, Ok);
    fn pthread_cond_timedwait(c: u64, m: u64, abstime: u64) -> i32 = {
        let clock = if sync::cond_is_monotonic(c) { libc::CLOCK_MONOTONIC } else { libc::CLOCK_REALTIME };
        cond_wait(c, m, |op| timed(op, clock, abstime))
    };
    fn pthread_cond_clockwait(c: u64, m: u64, clock: i32, abstime: u64) -> i32 =
        cond_wait(c, m, |op| timed(op, clock, abstime));
    fn pthread_cond_signal(c: u64) -> i32 = cond_wake(WAKES_ONE, c);
    fn pthread_cond_broadcast(c: u64) -> i32 = cond_wake(WAKES_ALL, c);
    fn pthread_barrier_init(b: u64, attr: u64, count: u32) -> i32 = barrier_init(b, attr, count);
    fn pthread_barrier_destroy(b: u64) -> i32 = barrier_destroy(b);
}

/// With where it returns to: whether the program looks at the result is known by that.
///
/// # Safety
/// As pthread_barrier_wait.
#[unsafe(naked)]
#[no_mangle]
unsafe extern "C" fn pthread_barrier_wait(b: u64) -> i32 {
    // SAFETY: at the first instruction of a function its return address lies at the stack pointer; the second argument's register is free,
    // and the jump leaves the stack as the caller made it.
    core::arch::naked_asm!("mov rsi, [rsp]", "jmp {}", sym barrier_wait_from)
}

extern "C" fn barrier_wait_from(b: u64, caller: u64) -> i32 {
    crate::gate::returning(|| barrier_wait(b, caller))
}

// Read-write locks.
symbols! {
    fn pthread_rwlock_init(l: u64, attr: u64) -> i32 = { sync::rwlock_init(l, attr); 0 };
    fn pthread_rwlock_destroy(l: u64) -> i32 = rwlock_destroy(l);
    fn pthread_rwlock_rdlock(l: u64) -> i32 = rwlock(READS, l, Ok);
    fn pthread_rwlock_tryrdlock(l: u64) -> i32 = rwlock(READS, l, |op| Ok(op.with(op::TRY)));
    fn pthread_rwlock_timedrdlock(l: u64, abstime: u64) -> i32 =
        rwlock(READS, l, |op| timed(op, libc::CLOCK_REALTIME, abstime));
    fn pthread_rwlock_clockrdlock(l: u64, clock: i32, abstime: u64) -> i32 =
        rwlock(READS, l, |op| timed(op, clock, abstime));
    fn pthread_rwlock_wrlock(l: u64) -> i32 = rwlock(WRITES, l, Ok);
    fn pthread_rwlock_trywrlock(l: u64) -> i32 = rwlock(WRITES, l, |op| Ok(op.with(op::TRY)));
    fn pthread_rwlock_timedwrlock(l: u64, abstime: u64) -> i32 =
        rwlock(WRITES, l, |op| timed(op, libc::CLOCK_REALTIME, abstime));
    fn pthread_rwlock_clockwrlock(l: u64, clock: i32, abstime: u64) -> i32 =
        rwlock(WRITES, l, |op| timed(op, clock, abstime));
    fn pthread_rwlock_unlock(l: u64) -> i32 = rwlock(LEAVES, l, Ok);
}

// Threads.
symbols! {
    fn pthread_create(thread: u64, attr: u64, start: u64, arg: u64) -> i32 = create(thread, attr, start, arg);
    fn pthread_join(pthread: u64, value: u64) -> i32 = join_with(pthread, value, Ok);
    fn pthread_tryjoin_np(pthread: u64, value: u64) -> i32 = join_with(pthread, value, |op| Ok(op.with(op::TRY)));
    fn pthread_timedjoin_np(pthread: u64, value: u64, abstime: u64) -> i32 =
        pthread_clockjoin_np(pthread, value, libc::CLOCK_REALTIME, abstime);
    fn pthread_clockjoin_np(pthread: u64, value: u64, clock: i32, abstime: u64) -> i32 =
        join_with(pthread, value, |op| if abstime == 0 { Ok(op) } else { timed(op, clock, abstime) });
    fn thrd_join(thread: u64, value: u64) -> i32 = join(thread, value);
    fn pthread_detach(pthread: u64) -> i32 = detach(pthread, libc_functions().pthread_detach);
    fn thrd_detach(thread: u64) -> i32 = detach(thread, libc_functions().thrd_detach);
    fn pthread_cancel(pthread: u64) -> i32 = cancel(pthread);
    fn pthread_testcancel() = test_cancel();
    fn pthread_kill(pthread: u64, signal: i32) -> i32 = about(pthread, libc_functions().pthread_kill, signal as u64, 0);
    fn pthread_sigqueue(pthread: u64, signal: i32, value: u64) -> i32 =
        about(pthread, libc_functions().pthread_sigqueue, signal as u64, value);
    fn pthread_getcpuclockid(pthread: u64, clock: u64) -> i32 =
        about(pthread, libc_functions().pthread_getcpuclockid, clock, 0);
    fn pthread_getschedparam(pthread: u64, policy: u64, parameters: u64) -> i32 =
        about_locked("pthread_getschedparam", pthread, libc_functions().pthread_getschedparam, policy, parameters);
    fn pthread_setschedparam(pthread: u64, policy: i32, parameters: u64) -> i32 =
        about_locked("pthread_setschedparam", pthread, libc_functions().pthread_setschedparam, policy as u64, parameters);
    fn pthread_setschedprio(pthread: u64, priority: i32) -> i32 =
        about_locked("pthread_setschedprio", pthread, libc_functions().pthread_setschedprio, priority as u64, 0);
    fn pthread_getaffinity_np(pthread: u64, size: u64, set: u64) -> i32 =
        about(pthread, libc_functions().pthread_getaffinity_np, size, set);
    fn pthread_setaffinity_np(pthread: u64, size: u64, set: u64) -> i32 =
        about(pthread, libc_functions().pthread_setaffinity_np, size, set);
    fn pthread_setname_np(pthread: u64, name: u64) -> i32 = ret_pthread(guarded(|| priority::give_name(pthread, name)));
    fn pthread_getname_np(pthread: u64, to: u64, room: u64) -> i32 =
        ret_pthread(guarded(|| priority::tell_name(pthread, to, room)));
    fn pthread_setcancelstate(state: i32, old: u64) -> i32 = set_cancel_state(state, old);
    fn pthread_setcanceltype(kind: i32, old: u64) -> i32 = set_cancel_type(kind, old);
    fn pthread_key_create(key: u64, destructor: u64) -> i32 =
        create_key(key, destructor, libc_functions().pthread_key_create);
    fn pthread_key_delete(key: u32) -> i32 = delete_key(key.into(), libc_functions().pthread_key_delete);
    fn tss_delete(key: u32) = { delete_key(key.into(), libc_functions().tss_delete); };
    fn pthread_once(control: u64, routine: u64) -> i32 = once(control, routine, libc_functions().pthread_once);
    fn __cxa_guard_acquire(guard: u64) -> i32 = guard::acquire(guard);
    fn call_once(control: u64, routine: u64) = { once(control, routine, libc_functions().call_once); };
}

/// A function of libc's that needs what unwinds: goes on to it from the caller, since that unwinds or tells whose frames there are. Two arguments at
/// most are kept.
macro_rules! unwinds {
    ($($name:ident)*) => {
        $(
            /// # Safety
            /// As libc's function of that name.
            #[unsafe(naked)]
            #[no_mangle]
            unsafe extern "C" fn $name() {
                // SAFETY: three words keep the stack aligned as a call wants it; the arguments and the stack are the caller's again where
                // libc's function is jumped to.
                core::arch::naked_asm!(
                    ".cfi_startproc",
                    "push rdi",
                    "push rsi",
                    "sub rsp, 8",
                    ".cfi_adjust_cfa_offset 24",
                    "call {}",
                    "add rsp, 8",
                    "pop rsi",
                    "pop rdi",
                    ".cfi_adjust_cfa_offset -24",
                    "jmp rax",
                    ".cfi_endproc",
                    sym behind::$name
                )
            }
        )*

        /// Where they go on.
        mod behind {
            $(pub extern "C" fn $name() -> u64 {
                crate::gate::returning(crate::calls::unwinder::ready);
                crate::calls::thread::libc_functions().$name
            })*
        }
    };
}

unwinds! { pthread_exit thrd_exit backtrace }

// threads.h: mtx_*, cnd_*, thrd_*.
symbols! {
    fn mtx_init(m: u64, kind: i32) -> i32 = {
        let attr: u32 = if kind & RECURSIVE != 0 { 1 } else { 0 };
        sync::mutex_init(m, &attr as *const u32 as u64);
        SUCCESS
    };
    fn mtx_destroy(m: u64) = { mutex_destroy(m); };
    fn mtx_lock(m: u64) -> i32 = outcome(lock(m, Ok));
    fn mtx_trylock(m: u64) -> i32 = outcome(lock(m, |op| Ok(op.with(op::TRY))));
    fn mtx_timedlock(m: u64, abstime: u64) -> i32 =
        outcome(timed_lock(m, libc::CLOCK_REALTIME, abstime));
    fn mtx_unlock(m: u64) -> i32 = outcome(unlock(m));
    fn cnd_init(c: u64) -> i32 = { sync::cond_init(c, 0); SUCCESS };
    fn cnd_destroy(c: u64) = { cond_destroy(c); };
    fn cnd_wait(c: u64, m: u64) -> i32 = outcome(cond_wait(c, m, Ok));
    fn cnd_timedwait(c: u64, m: u64, abstime: u64) -> i32 =
        outcome(cond_wait(c, m, |op| timed(op, libc::CLOCK_REALTIME, abstime)));
    fn cnd_signal(c: u64) -> i32 = outcome(cond_wake(WAKES_ONE, c));
    fn cnd_broadcast(c: u64) -> i32 = outcome(cond_wake(WAKES_ALL, c));
    fn thrd_yield() = { gate::pass(Op::new(Kind::YIELD)); };
}
