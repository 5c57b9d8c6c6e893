//! Plain data of everything that is modelled. No behaviour.

pub mod act;
pub mod carrier;
pub mod channel;
pub mod closing;
pub mod epoll;
pub mod fd;
pub mod files;
pub mod footprint;
pub mod lock;
pub mod object;
pub mod process;
pub mod queue;
pub mod recorded;
pub mod rwlock;
pub mod sem;
pub mod sharing;
pub mod signal;
pub mod socket;
pub mod thread;
pub mod world;
