//! Error numbers of x86-64 Linux that operations of the model return.
#![allow(missing_docs)]

pub const EPERM: i64 = 1;

pub const ENOENT: i64 = 2;

pub const ESRCH: i64 = 3;

pub const EINTR: i64 = 4;

pub const ENXIO: i64 = 6;

pub const E2BIG: i64 = 7;

pub const ECHILD: i64 = 10;

pub const EAGAIN: i64 = 11;

pub const EACCES: i64 = 13;

pub const EBUSY: i64 = 16;

pub const EEXIST: i64 = 17;

pub const EINVAL: i64 = 22;

pub const EPIPE: i64 = 32;

pub const EFBIG: i64 = 27;

pub const ENOSPC: i64 = 28;

pub const ERANGE: i64 = 34;

pub const EDEADLK: i64 = 35;

pub const ENOMSG: i64 = 42;

pub const ENOSYS: i64 = 38;

pub const ELOOP: i64 = 40;

pub const EIDRM: i64 = 43;

pub const EOVERFLOW: i64 = 75;

pub const ETIMEDOUT: i64 = 110;

pub const EOWNERDEAD: i64 = 130;

pub const ENOTRECOVERABLE: i64 = 131;

pub const EBADF: i64 = 9;

pub const EADDRINUSE: i64 = 98;

pub const EMSGSIZE: i64 = 90;

pub const EPROTOTYPE: i64 = 91;

pub const ECONNABORTED: i64 = 103;

pub const ECONNRESET: i64 = 104;

pub const EISCONN: i64 = 106;

pub const ENOTCONN: i64 = 107;

pub const ECONNREFUSED: i64 = 111;

pub const EALREADY: i64 = 114;

pub const EINPROGRESS: i64 = 115;
