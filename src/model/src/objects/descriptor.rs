//! The numbers of a process's descriptors, where several threads use them: which are taken, and what each stands for. The table itself is
//! the kernel's (and `fd`'s, for what is modelled); here is which uses of it are visible operations. When one is, `sched::descriptor` says.
//!
//! In the kernel (fs/file.c) a call begins by looking its numbers up, and holds the file from then on, whatever becomes of the number. To open
//! is two steps: the lowest free number is reserved, and later, perhaps after a wait (accept, a FIFO), the file is put there. Until then the
//! number is taken and stands for nothing. To close is two steps as well: the number is given back, then what it stood for is let go.

use super::row::*;

kinds! {
    /// Look up what the numbers `obj` and `obj2` stand for, or read flags of a description.
    FD_LOOK = 78, "fd_look" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: DONE,
        records: NUMBERS, cells: |act, _, cells| cells.touch_all(act, How::Shares), follows: NOBODY, blocks: GIVES,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Unknown,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(Call::Words("looks up"), number_words),
    }
    /// Make number `obj` stand for something else, or nothing (close, dup2), or for what `obj2` does; `arg`: 1 + the object of which numbers
    /// are free, or 0.
    FD_CHANGE = 79, "fd_change" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: DONE,
        records: NUMBERS, cells: |act, _, cells| {
            cells.touch_object(act.op.obj, How::Writes);
            cells.touch_object(act.op.obj2, How::Shares);
            // Two that give numbers back leave the same ones free.
            cells.touch_object((act.op.arg as u32).wrapping_sub(1), How::Shares);
        }, follows: NOBODY, blocks: GIVES,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Unknown,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(Call::Words("changes"), number_words),
    }
    /// Reserve the lowest free number; `obj`: which are free.
    FD_RESERVE = 80, "fd_reserve" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: DONE,
        records: NUMBERS, cells: ON_OBJECTS, follows: NOBODY, blocks: GIVES,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Unknown,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(Call::Words("takes the lowest free descriptor"), NO_ARGUMENTS),
    }
}

/// Nothing; `arg` is an object.
const NUMBERS: Records = Records {
    renamed: |act, to| {
        if act.op.arg > 0 {
            act.op.arg = i64::from((to.object)(act.op.arg as u32 - 1)) + 1;
        }
    },
    ..Records::NOTHING
};

fn number_words(op: &Op, _: Option<&Thread>, words: &mut dyn Words) {
    let free = (op.arg as u32).wrapping_sub(1);
    let and = if op.obj2 == NONE { "" } else { ", " };
    say![words, Thing::Object(if op.obj == NONE { free } else { op.obj }), and, Thing::Object(op.obj2)];
}
