//! Patches: from the sites of a module to the bytes that are written so that each site is checked before it is executed.
//!
//! Each unit of instructions is moved to a *trampoline*, with a check before each site, and its place gets, in this order of
//! preference: a jump (5 bytes: one instruction, or a group); a *punned* jump, whose distance ends with bytes of the next instruction,
//! perhaps after prefixes, to a slot that jumps on; a trap (`int3`, one byte), which the shim sends to the trampoline.
//!
//! NOTE [What is kept] A check keeps the registers that are alive, the flags if they are, and the red zone. A call through memory
//! pushes the address that it would push where it was. So return addresses, and frames as unwinders see them, are those of the
//! unpatched program, and the trampolines are never on a stack while others look, but for faults: `Plan::moves` says where each
//! moved instruction was. See docs/WATCHING.md.

mod check;
mod emit;
mod evict;
mod place;
mod plan;
mod space;
#[cfg(test)]
mod tests;

pub(crate) use emit::distance;
pub use plan::{plan, Form, Input, Mapped, Plan, Statistics};
pub use space::Space;
