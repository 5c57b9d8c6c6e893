//! What needs nothing of the model: raw system calls, the program's memory, messages, loaded images.

pub mod call;
pub mod context;
pub mod dispatch;
pub mod elf;
pub mod memory;
pub mod text;

pub(crate) use call::{any_of, raw};
pub use call::{die, fs_base, raw6};
pub use memory::FIRST_ADDRESS;
pub use memory::{bytes, bytes_mut, cstr, load, store, store_if, zero};
pub use text::{complain, decimal, ret, ret_pthread};
pub use vsrun_model::errno;
