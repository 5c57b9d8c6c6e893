//! What needs nothing of the model: raw system calls, the program's memory, messages, loaded images.

pub mod bare;
pub mod bind;
pub mod call;
mod closed;
pub mod context;
pub mod copied;
pub mod cover;
pub mod cpuid;
pub mod dispatch;
pub mod elf;
pub mod guard;
mod hidden;
pub mod memory;
pub mod names;
mod numbered;
pub mod origin;
mod protected;
pub mod text;
pub mod track;
pub mod written;

pub(crate) use bare::any_of;
pub(crate) use call::raw;
pub use call::{die, fs_base, limit, raw6};
pub use memory::{
    bytes, bytes_mut, copy_in, copy_out, cstr, load, readable, store, store_if, store_over, touch, writable, zero,
};
pub use memory::{END_OF_ADDRESSES, FIRST_ADDRESS};
pub use text::{complain, decimal, hex, keeping_errno, ret, ret_pthread};
pub use vsrun_model::errno;

/// Memory is watched in this process: set by `watch`. It stands here, on a page that each process uses anyway, so that nothing of `watch` is looked at
/// where it is not.
pub static WATCHES: core::sync::atomic::AtomicBool = core::sync::atomic::AtomicBool::new(false);
