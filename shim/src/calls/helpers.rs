//! The threads of libc's that tell the program by a call (SIGEV_THREAD): of a timer that fires (timer_create), and of a message (mq_notify).
//! Each is made with the first request, by a once control inside of libc, where nothing can be put before. So that this is an operation
//! all the same, a control of the shim's is around it: under that a request is made which cannot come to anything, and all others find
//! libc's done (sysdeps/unix/sysv/linux: mq_notify.c, timer_create.c, timer_routines.c).

use core::sync::atomic::{AtomicI32, Ordering};

use super::thread::{call2, call3, libc_functions, once};
use crate::sys::{keeping_errno, load, readable};

/// Once controls, of glibc's layout. libc begins anew in a forked child, which has neither thread.
static TIMERS: AtomicI32 = AtomicI32::new(0);
static QUEUES: AtomicI32 = AtomicI32::new(0);

/// struct sigevent.
type Event = [u64; 8];

/// The process has just been forked.
pub fn forked() {
    for control in [&TIMERS, &QUEUES] {
        control.store(0, Ordering::Relaxed);
    }
}

/// mq_notify.
pub fn notify(queue: i32, event: u64) -> i32 {
    prepare(&QUEUES, event, no_queue as *const () as u64);
    call2(libc_functions().mq_notify, queue as u64, event)
}

/// timer_create.
pub fn create_timer(clock: i32, event: u64, timer: u64) -> i32 {
    prepare(&TIMERS, event, no_clock as *const () as u64);
    call3(libc_functions().timer_create, clock as u64, event, timer)
}

fn prepare(control: &AtomicI32, event: u64, routine: u64) {
    let by_thread = event != 0 && readable(event, 16) == 16 && load::<i32>(event + 12) == libc::SIGEV_THREAD;
    if by_thread {
        keeping_errno(|| once(control.as_ptr() as u64, routine, libc_functions().pthread_once));
    }
}

fn by_thread() -> Event {
    [0, (libc::SIGEV_THREAD as u64) << 32, 0, 0, 0, 0, 0, 0]
}

extern "C" fn no_queue() {
    call2(libc_functions().mq_notify, u64::MAX, by_thread().as_ptr() as u64);
}

extern "C" fn no_clock() {
    const NONE: u64 = 1000;
    let mut timer = 0u64;
    call3(libc_functions().timer_create, NONE, by_thread().as_ptr() as u64, &mut timer as *mut u64 as u64);
}
