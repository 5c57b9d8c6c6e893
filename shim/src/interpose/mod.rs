//! The interposed symbols: tables that turn a libc call into an operation of the model. No logic beyond reading
//! arguments and giving back what the call gives back.

mod c11;
mod cond;
mod io;
#[cfg(feature = "enomem")]
pub mod malloc;
mod misc;
mod mqueue;
mod msg;
mod mutex;
mod rwlock;
mod sem;
mod thread;
