//! Threads that are joined, detached and asked about, by their `pthread_t`.

use vsrun_model::object::THREAD_DATA;
use vsrun_model::{op, Kind, Op, NONE};

use super::thread::{call1, call2, call3, cancellation_point, libc_functions, thread_of};
use super::{files, stream};
use crate::gate::{self, local, model, world};
use crate::sys::errno::EINTR;
use crate::sys::ret_pthread;

/// A thread is asked about, or something is asked of it: libc knows by itself that it is over, and makes no call then.
pub fn asked_about(pthread: u64) {
    let t = thread_of(pthread);
    if t != NONE && t != local().cur {
        files::thread_told(t);
    }
}

/// Calls `function` of libc about `pthread`, with what else it takes.
pub fn about(pthread: u64, function: u64, a: u64, b: u64) -> i32 {
    asked_about(pthread);
    call3(function, pthread, a, b)
}

/// The same of the function of that name, which has libc's lock on what it keeps of the thread while it makes its calls.
pub fn about_locked(name: &str, pthread: u64, function: u64, a: u64, b: u64) -> i32 {
    if thread_of(pthread) == NONE {
        return call3(function, pthread, a, b);
    }
    // libc looks whether the thread is over in the step in which that is asked here.
    stream::under_lock(pthread, THREAD_DATA, name, || {
        asked_about(pthread);
        call3(function, pthread, a, b)
    })
}

/// Waits for a thread as a visible operation; then glibc's function finds it over.
/// A request to end is heeded where it has to wait only (nptl/pthread_join_common.c).
fn join(pthread: u64, shape: impl FnOnce(Op) -> Result<Op, i64>, finish: impl FnOnce() -> i32) -> i32 {
    let t = thread_of(pthread);
    if t == NONE {
        return libc::ESRCH;
    }
    let op = match shape(Op::on(Kind::JOIN, t)) {
        Ok(op) if op.tries() => op,
        Ok(op) => op.with(op::CANCEL_POINT),
        Err(error) => return ret_pthread(error),
    };
    // libc looks whether it is detached before it waits (one that only tries, behind that), and notes that it is joined.
    let meets = || stream::meets_thread(pthread, "pthread_join", world().threads[t].detached);
    let tries = op.tries();
    if !tries {
        meets();
    }
    match gate::pass(op) {
        0 => {
            if tries {
                meets();
            }
            finish()
        }
        EINTR => {
            cancellation_point();
            libc::EINVAL
        }
        error => ret_pthread(error),
    }
}

/// pthread_join and its like; `shape` adds flags or a deadline.
pub fn join_with(pthread: u64, value: u64, shape: impl FnOnce(Op) -> Result<Op, i64>) -> i32 {
    join(pthread, shape, || call2(libc_functions().pthread_join, pthread, value))
}

/// thrd_join: thrd_success 0, thrd_error 2.
pub fn thrd_join(thread: u64, value: u64) -> i32 {
    match join(thread, Ok, || call2(libc_functions().thrd_join, thread, value)) {
        0 => 0,
        _ => 2,
    }
}

/// pthread_detach or thrd_detach, as `function` of libc.
pub fn detach(pthread: u64, function: u64) -> i32 {
    let t = thread_of(pthread);
    if t != NONE {
        stream::meets_thread(pthread, "pthread_detach", world().is_awaited(t));
        if world().is_awaited(t) && !world().threads[t].detached {
            // Who joins it has noted that, and libc leaves it so (nptl/pthread_detach.c).
            return 0;
        }
    }
    let result = call1(function, pthread);
    if result == 0 && t != NONE {
        model().detach(t);
    }
    result
}
