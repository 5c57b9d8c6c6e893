//! Plain data of everything that is modelled. No behaviour. The floors above know it by names of this floor, whatever its file.

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
pub mod orders;
pub mod pieces;
pub mod process;
pub mod progress;
pub mod queue;
pub mod recorded;
pub mod sem;
pub mod sharing;
pub mod signal;
pub mod socket;
pub mod thread;
pub mod visited;
pub mod world;

pub use self::{
    act::*, carrier::*, channel::*, closing::*, epoll::*, fd::*, files::*, footprint::*, lock::*, object::*, orders::*,
    process::*, progress::*, queue::*, recorded::*, sem::*, sharing::*, signal::*, socket::*, thread::*, world::*,
};
