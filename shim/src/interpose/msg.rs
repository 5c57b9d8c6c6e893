//! The System V message queue functions.

use crate::calls::msg;
use crate::calls::thread::cancellation_point;
use crate::sys::errno::EINTR;
use crate::sys::ret;

fn waiting(nr: i64, a: [u64; 6]) -> i64 {
    cancellation_point();
    let result = msg::call(nr, a, true);
    if result == EINTR {
        cancellation_point();
    }
    ret(result)
}

symbols! {
    fn msgget(key: i32, flags: i32) -> i32 =
        ret(msg::call(libc::SYS_msgget, [key as u64, flags as u64, 0, 0, 0, 0], true)) as i32;
    fn msgsnd(id: i32, message: u64, size: u64, flags: i32) -> i32 =
        waiting(libc::SYS_msgsnd, [id as u64, message, size, flags as u64, 0, 0]) as i32;
    fn msgrcv(id: i32, message: u64, size: u64, mtype: i64, flags: i32) -> i64 =
        waiting(libc::SYS_msgrcv, [id as u64, message, size, mtype as u64, flags as u64, 0]);
    fn msgctl(id: i32, command: i32, buffer: u64) -> i32 =
        ret(msg::call(libc::SYS_msgctl, [id as u64, command as u64, buffer, 0, 0, 0], true)) as i32;
}
