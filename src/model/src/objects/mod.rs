//! What operations do, a file for each family.

pub mod channel;
pub mod cond;
pub mod connect;
pub mod epoll;
pub mod event;
pub mod fd;
pub mod fifo;
pub mod futex;
pub mod lock;
pub mod mqueue;
pub mod msg;
pub mod mutex;
pub mod object;
pub mod pifutex;
pub mod process;
pub mod reach;
pub mod rwlock;
pub mod sem;
pub mod signal;
pub mod simple;
pub mod socket;
pub mod sysv;
pub mod thread;
pub mod timer;
pub mod transfer;
