//! Error numbers of x86-64 Linux that operations of the model return.
#![allow(missing_docs)]

pub const EPERM: i64 = 1;
pub const ENOENT: i64 = 2;
pub const ESRCH: i64 = 3;
pub const EINTR: i64 = 4;
pub const E2BIG: i64 = 7;
pub const ECHILD: i64 = 10;
pub const EAGAIN: i64 = 11;
pub const EBUSY: i64 = 16;
pub const EEXIST: i64 = 17;
pub const EINVAL: i64 = 22;
pub const EFBIG: i64 = 27;
pub const ENOSPC: i64 = 28;
pub const ERANGE: i64 = 34;
pub const EDEADLK: i64 = 35;
pub const ENOMSG: i64 = 42;
pub const EIDRM: i64 = 43;
pub const EOVERFLOW: i64 = 75;
pub const ETIMEDOUT: i64 = 110;
pub const EOWNERDEAD: i64 = 130;
pub const ENOTRECOVERABLE: i64 = 131;
