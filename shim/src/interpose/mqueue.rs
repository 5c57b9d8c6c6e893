//! The POSIX message queue functions that wait, and the one for which glibc would make a socket of the kernel's; the others
//! are caught as system calls.

use super::io::call;
use crate::net;
use crate::sys::ret;

symbols! {
    fn mq_send(queue: i32, at: u64, len: u64, priority: u32) -> i32 =
        call(libc::SYS_mq_timedsend, [queue as u64, at, len, priority.into(), 0, 0]) as i32;
    fn mq_timedsend(queue: i32, at: u64, len: u64, priority: u32, until: u64) -> i32 =
        call(libc::SYS_mq_timedsend, [queue as u64, at, len, priority.into(), until, 0]) as i32;
    fn mq_receive(queue: i32, at: u64, size: u64, priority: u64) -> i64 =
        call(libc::SYS_mq_timedreceive, [queue as u64, at, size, priority, 0, 0]);
    fn mq_timedreceive(queue: i32, at: u64, size: u64, priority: u64, until: u64) -> i64 =
        call(libc::SYS_mq_timedreceive, [queue as u64, at, size, priority, until, 0]);
    fn mq_notify(queue: i32, event: u64) -> i32 =
        ret(net::call(libc::SYS_mq_notify, [queue as u64, event, 0, 0, 0, 0], 0)) as i32;
}
