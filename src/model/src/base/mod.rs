//! Numbers, tables, addresses, operations: what has no state.

pub mod address;
pub mod aims;
pub mod back;
pub mod buffers;
pub mod calls;
pub mod counter;
pub mod cpu;
pub mod errno;
pub mod ids;
pub mod inject;
pub mod library;
pub mod mixer;
pub mod op;
pub mod records;
pub mod table;
pub mod toss;
pub mod watch;
pub mod words;

pub use self::{address::*, ids::*, op::*, table::*};
pub(crate) use ids::numbers;
