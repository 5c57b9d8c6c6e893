//! The turn, in one place: what a process keeps, fibers, operations, delivery of signals, ends.

pub mod back;
pub mod birth;
pub mod copies;
pub mod cpuid;
pub mod digest;
pub mod direct;
pub mod eintr;
pub mod end;
pub mod exit;
pub mod fiber;
pub mod freed;
pub mod inject;
pub mod late;
pub mod local;
pub mod mirror;
pub mod origins;
pub mod others;
pub mod own;
pub mod pages;
pub mod passage;
mod said;
pub mod shield;
pub mod signal;
pub mod since;
pub mod stacks;
mod stale;
pub mod touch;
pub mod tsc;
pub mod turn;
pub mod view;
pub mod watched;
pub mod word;

pub use local::{
    arena, fiber, fiber_of, local, machine, me, model, process_of, shown, space_of, world, Phase, POOL_REGION,
};
pub use passage::{is_threaded, note_passed, through};
pub use turn::{
    arms, back, cancellation_place, deliver, drain_stores, is_place_for_handlers, look, pass, pass_after,
    pass_in_steps, pass_mirrored, pass_quietly, pass_then, place, place_for_handlers, place_for_timers, returning,
    sends,
};
