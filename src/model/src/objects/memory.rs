//! Accesses to memory that several threads use without an order that other operations keep: such a piece of memory is an object, and
//! each access to it an operation. It is performed by the program's own instruction; here is only that it has its turn.

use super::row::*;

kinds! {
    /// Read memory.
    MEM_READ = 118, "mem_read" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: DONE,
        records: Records::NOTHING, cells: |act, _, cells| cells.touch_all(act, How::Looks), follows: NOBODY, blocks: GIVES,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: YES, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown::passes(Call::By(|op| if op.has(ATOMIC) { "atomic load" } else { "load" }), OBJECT),
    }
    /// Write memory, or read and write it in one step.
    MEM_WRITE = 119, "mem_write" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: DONE,
        records: Records::NOTHING, cells: ON_OBJECTS, follows: NOBODY, blocks: GIVES,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: YES, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown::passes(Call::By(|op| if op.has(ATOMIC) { "atomic update" } else { "store" }), OBJECT),
    }
}

/// Flag of these operations: the instruction is atomic (a LOCK prefix, or xchg).
pub const ATOMIC: u8 = VARIANT;
