//! Operations on no object: to yield, to sleep, to choose.

use super::memory::LATE;
use super::row::*;
use crate::base::inject::{fault_of, is_of_reuse};
use crate::state::START;

kinds! {
    /// Nothing is pending.
    NONE = 0, "none" {
        operands: Operands::Nothing, enabled: Enabled::Ways(|_, _, _| 0), perform: DONE,
        records: Records::NOTHING, cells: ON_OBJECTS, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals::NEVER, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(Call::Row, NO_ARGUMENTS),
    }
    /// sched_yield: enabled once another thread has moved, a few times in a row before that, or when nothing else can.
    YIELD = 1, "yield" {
        operands: Operands::Nothing, enabled: Enabled::Always, perform: DONE,
        records: Records::NOTHING, cells: WIDE, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: YES, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::One("sched_yield"), arguments: NO_ARGUMENTS,
            outcome: Outcome::Nothing, waits: Some(|_, _, _, words| say![words, "another thread to move"]), identity: BY_OBJECTS },
    }
    /// Sleep until `deadline`.
    SLEEP = 2, "sleep" {
        operands: Operands::Nothing,
        enabled: blocks(|w, t, op| u32::from(w.may_time_out(op) || w.cancelled(t, op)), |_| Answer::No),
        perform: |w, _, op, _| Applied::Done(if w.may_time_out(op) { 0 } else { errno::EINTR }),
        records: Records::NOTHING, cells: ON_OBJECTS, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals { taken: Taken::WithMask, ..Signals::FAILS }, polls: Polls::Errors,
        alone: Alone::ExposesOwnProcessIfMasked, idle: Idle::WORKER, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::One("sleep"), arguments: |op, _, words| {
            say![words, "until +", op.deadline.saturating_sub(START) as f64 / 1e9, " s"];
        }, outcome: Outcome::Nothing, waits: Some(|_, _, _, words| say![words, "time to pass"]), identity: BY_OBJECTS },
    }
    /// VS_toss: `arg` + 1 alternatives.
    TOSS = 3, "toss" {
        operands: Operands::Nothing,
        enabled: Enabled::Ways(|_, _, op| op.arg.clamp(0, u32::MAX as i64 - 1) as u32 + 1),
        perform: |_, _, _, value| Applied::Done(value as i64),
        records: Records::NOTHING, cells: ON_OBJECTS, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::By(|op| if op.has(LATE) { "store_buffer" } else if is_of_reuse(op) { "heap" } else { "VS_toss" }), arguments: |op, _, words| match fault_of(op) {
            Some(fault) => say![words, "fault ", fault, "?"],
            None if is_of_reuse(op) => say![words, "freed blocks are given out again?"],
            None => say![words, op.arg],
        }, outcome: Outcome::Value, waits: None, identity: BY_OBJECTS },
    }
}
