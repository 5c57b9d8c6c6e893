//! Accesses to memory that several threads use without an order that other operations keep: such a piece of memory is an object, and
//! each access to it an operation. It is performed by the program's own instruction; here is only that it has its turn.

use super::row::*;
use crate::base::{errno, Op, Tid, TRY};
use crate::state::{Applied, World};

kinds! {
    /// Read memory.
    MEM_READ = 118, "mem_read" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: |w, t, op, _| w.use_memory(t, op),
        records: Records::NOTHING, cells: |act, _, cells| cells.touch_all(act, How::Looks), follows: NOBODY, blocks: GIVES,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: YES, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown::passes(Call::By(|op| if op.has(ATOMIC) { "atomic load" } else { "load" }), OBJECT),
    }
    /// Write memory, or read and write it in one step.
    MEM_WRITE = 119, "mem_write" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: |w, t, op, _| w.use_memory(t, op),
        records: Records::NOTHING, cells: ON_OBJECTS, follows: NOBODY, blocks: GIVES,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: YES, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown::passes(Call::By(|op| if op.has(ATOMIC) { "atomic update" } else { "store" }), OBJECT),
    }
}

/// Flag of these operations: the instruction is atomic (a LOCK prefix, or xchg).
pub const ATOMIC: u8 = VARIANT;

impl World {
    /// With [`TRY`]: the instruction found the same there when it was executed last, and its thread has done nothing else meanwhile. That
    /// counts as a poll in vain, so that a loop which waits for another thread to write gives way.
    fn use_memory(&mut self, t: Tid, op: &Op) -> Applied {
        if op.has(TRY) {
            return Applied::Done(errno::EAGAIN);
        }
        self.threads[t].polls = 0;
        Applied::Done(0)
    }
}
