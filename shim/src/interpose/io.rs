//! The hot calls on descriptors. They would be caught as system calls too, but that costs more than a microsecond each.
//!
//! All but close are cancellation points: a thread that is asked to end does so before the call, or while it waits in one
//! on a descriptor of the model.

use crate::calls::thread::cancellation_point;
use crate::calls::{fd, helpers};
use crate::gate::{self, local, Phase};
use crate::net;
use crate::sys::{errno::EINTR, raw6, ret};

fn call(nr: i64, a: [u64; 6]) -> i64 {
    if local().phase == Phase::Off {
        return ret(raw6(nr, a[0], a[1], a[2], a[3], a[4], a[5]));
    }
    let waits = fd::find(a[0]).is_some();
    if !waits {
        gate::cancellation_place(nr);
    }
    cancellation_point();
    gate::fiber().cancellable = waits;
    let result = net::call(nr, a, 0);
    gate::fiber().cancellable = false;
    if waits {
        failed(nr, result);
    }
    // The kernel may have done all or a part of it, but a call that has met a request does not return.
    cancellation_point();
    ret(result)
}

/// A call that fails is left at once where a request to end comes while it lasts: it has done nothing that would come before that.
pub fn failed(nr: i64, result: i64) {
    if result < 0 && result != EINTR {
        gate::cancellation_place(nr);
        cancellation_point();
    }
}

symbols! {
    fn read(fd: i32, at: u64, n: u64) -> i64 = call(libc::SYS_read, [fd as u64, at, n, 0, 0, 0]);
    fn write(fd: i32, at: u64, n: u64) -> i64 = call(libc::SYS_write, [fd as u64, at, n, 0, 0, 0]);
    fn readv(fd: i32, at: u64, n: i32) -> i64 = call(libc::SYS_readv, [fd as u64, at, n as u64, 0, 0, 0]);
    fn writev(fd: i32, at: u64, n: i32) -> i64 = call(libc::SYS_writev, [fd as u64, at, n as u64, 0, 0, 0]);
    fn send(fd: i32, at: u64, n: u64, flags: i32) -> i64 =
        call(libc::SYS_sendto, [fd as u64, at, n, flags as u64, 0, 0]);
    fn recv(fd: i32, at: u64, n: u64, flags: i32) -> i64 =
        call(libc::SYS_recvfrom, [fd as u64, at, n, flags as u64, 0, 0]);
    fn sendto(fd: i32, at: u64, n: u64, flags: i32, to: u64, len: u32) -> i64 =
        call(libc::SYS_sendto, [fd as u64, at, n, flags as u64, to, len.into()]);
    fn recvfrom(fd: i32, at: u64, n: u64, flags: i32, from: u64, len: u64) -> i64 =
        call(libc::SYS_recvfrom, [fd as u64, at, n, flags as u64, from, len]);
    fn sendmsg(fd: i32, message: u64, flags: i32) -> i64 =
        call(libc::SYS_sendmsg, [fd as u64, message, flags as u64, 0, 0, 0]);
    fn recvmsg(fd: i32, message: u64, flags: i32) -> i64 =
        call(libc::SYS_recvmsg, [fd as u64, message, flags as u64, 0, 0, 0]);
    fn accept(fd: i32, at: u64, len: u64) -> i32 = call(libc::SYS_accept, [fd as u64, at, len, 0, 0, 0]) as i32;
    fn accept4(fd: i32, at: u64, len: u64, flags: i32) -> i32 =
        call(libc::SYS_accept4, [fd as u64, at, len, flags as u64, 0, 0]) as i32;
    fn connect(fd: i32, at: u64, len: u32) -> i32 =
        call(libc::SYS_connect, [fd as u64, at, len.into(), 0, 0, 0]) as i32;
    fn pread(fd: i32, at: u64, n: u64, offset: i64) -> i64 =
        call(libc::SYS_pread64, [fd as u64, at, n, offset as u64, 0, 0]);
    fn pread64(fd: i32, at: u64, n: u64, offset: i64) -> i64 = pread(fd, at, n, offset);
    fn pwrite(fd: i32, at: u64, n: u64, offset: i64) -> i64 =
        call(libc::SYS_pwrite64, [fd as u64, at, n, offset as u64, 0, 0]);
    fn pwrite64(fd: i32, at: u64, n: u64, offset: i64) -> i64 = pwrite(fd, at, n, offset);
}

// What libc may make a thread for.
symbols! {
    fn mq_notify(queue: i32, event: u64) -> i32 = helpers::notify(queue, event);
    fn timer_create(clock: i32, event: u64, timer: u64) -> i32 = helpers::create_timer(clock, event, timer);
}

// The POSIX message queue functions that wait; the others are caught as system calls.
symbols! {
    fn mq_send(queue: i32, at: u64, len: u64, priority: u32) -> i32 =
        call(libc::SYS_mq_timedsend, [queue as u64, at, len, priority.into(), 0, 0]) as i32;
    fn mq_timedsend(queue: i32, at: u64, len: u64, priority: u32, until: u64) -> i32 =
        call(libc::SYS_mq_timedsend, [queue as u64, at, len, priority.into(), until, 0]) as i32;
    fn mq_receive(queue: i32, at: u64, size: u64, priority: u64) -> i64 =
        call(libc::SYS_mq_timedreceive, [queue as u64, at, size, priority, 0, 0]);
    fn mq_timedreceive(queue: i32, at: u64, size: u64, priority: u64, until: u64) -> i64 =
        call(libc::SYS_mq_timedreceive, [queue as u64, at, size, priority, until, 0]);
}
