//! Semaphores and the System V message queues.

use super::io::failed;
use crate::calls::sem::{self, wait};
use crate::calls::thread::cancellation_point;
use crate::calls::time::timed;
use crate::calls::{buffers, files, msg, sysv};
use crate::net::guarded;
use crate::sys::ret;

fn waiting(nr: i64, a: [u64; 6]) -> i64 {
    cancellation_point();
    let result = guarded(|| buffers::around(nr, a, |a| msg::call(nr, a, true)));
    failed(nr, result);
    // It may have been done, but a call that has met a request does not return.
    cancellation_point();
    ret(result)
}

fn sets(nr: i64, a: [u64; 6]) -> i32 {
    ret(guarded(|| buffers::around(nr, a, |a| files::with_cells(nr, a, || sysv::call(nr, a))))) as i32
}

fn queues(nr: i64, a: [u64; 6]) -> i32 {
    ret(guarded(|| buffers::around(nr, a, |a| files::with_cells(nr, a, || msg::call(nr, a, true))))) as i32
}

symbols! {
    fn sem_init(s: u64, shared: i32, value: u32) -> i32 = sem::init(s, shared != 0, value);
    fn sem_destroy(s: u64) -> i32 = sem::destroy(s);
    fn sem_wait(s: u64) -> i32 = wait(s, Ok);
    fn sem_timedwait(s: u64, abstime: u64) -> i32 = wait(s, |op| timed(op, libc::CLOCK_REALTIME, abstime));
    fn sem_clockwait(s: u64, clock: i32, abstime: u64) -> i32 = wait(s, |op| timed(op, clock, abstime));
    fn sem_trywait(s: u64) -> i32 = sem::try_wait(s);
    fn sem_post(s: u64) -> i32 = sem::post(s);
    fn sem_getvalue(s: u64, value: u64) -> i32 = sem::value(s, value);
    /// `mode` and `value` are there only with O_CREAT; what the registers hold otherwise is not looked at.
    fn sem_open(name: u64, flags: i32, _mode: u32, value: u32) -> u64 = sem::open(name, flags, value);
    fn sem_close(_s: u64) -> i32 = 0;
    fn sem_unlink(name: u64) -> i32 = sem::unlink(name);
    fn semop(id: i32, ops: u64, n: u64) -> i32 = sets(libc::SYS_semop, [id as u64, ops, n, 0, 0, 0]);
    fn semtimedop(id: i32, ops: u64, n: u64, timeout: u64) -> i32 =
        sets(libc::SYS_semtimedop, [id as u64, ops, n, timeout, 0, 0]);
    fn semget(key: i32, n: i32, flags: i32) -> i32 =
        sets(libc::SYS_semget, [key as u64, n as u64, flags as u64, 0, 0, 0]);
    fn semctl(id: i32, num: i32, command: i32, arg: u64) -> i32 =
        sets(libc::SYS_semctl, [id as u64, num as u64, command as u64, arg, 0, 0]);
    fn msgget(key: i32, flags: i32) -> i32 =
        queues(libc::SYS_msgget, [key as u64, flags as u64, 0, 0, 0, 0]);
    fn msgsnd(id: i32, message: u64, size: u64, flags: i32) -> i32 =
        waiting(libc::SYS_msgsnd, [id as u64, message, size, flags as u64, 0, 0]) as i32;
    fn msgrcv(id: i32, message: u64, size: u64, mtype: i64, flags: i32) -> i64 =
        waiting(libc::SYS_msgrcv, [id as u64, message, size, mtype as u64, flags as u64, 0]);
    fn msgctl(id: i32, command: i32, buffer: u64) -> i32 =
        queues(libc::SYS_msgctl, [id as u64, command as u64, buffer, 0, 0, 0]);
}
