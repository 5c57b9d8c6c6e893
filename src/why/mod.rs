//! `vsrun why PID`: a process that hangs now, natively, looked at from outside: who waits for whom. It is not changed.

mod calls;
mod command;
mod descriptors;
mod draw;
mod futex;
mod graph;
pub mod json;
mod layout;
mod locks;
mod look;
mod names;
mod picture;
mod proc;
mod target;
mod text;
mod wait;
mod words;

pub use draw::why;
pub use picture::{CircleView, Looked, Picture, ProcessView, ThreadView, Verdict, WaitView};
pub use text::text;
