//! What a worker knows of going back to the first choice: see `runtime::back`.

use std::collections::BTreeSet;

use nix::unistd::Pid;
use vsrun_model::arena::{Arena, Plan};
use vsrun_model::back::Hinders;

use super::checkpoint::{ArenaMap, RootState};
use super::kept::Kept;

/// A process that stands before its first choice, or has an execution under way from there.
pub(super) struct Stood {
    pub pid: Pid,
    pub key: Key,
    /// What stood in the arena.
    pub state: Box<RootState>,
    pub recorded: ArenaMap,
    /// What is shared with others.
    pub kept: Kept,
    /// Bytes that it had printed.
    pub printed: u64,
}

/// What the way to the first choice depends on, beside the program.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Key {
    pub plan: Plan,
    pub common: u32,
}

impl Key {
    pub fn of(plan: Plan, arena: &Arena) -> Key {
        let Plan { past_cycles, fail_on_exit, unshared, watches, merges, has_words, own_pages, .. } = plan;
        let plan =
            Plan { past_cycles, fail_on_exit, unshared, watches, merges, has_words, own_pages, ..Plan::default() };
        Key { plan, common: arena.common.len }
    }
}

/// What a worker knows of going back.
#[derive(Default)]
pub(super) struct GoingBack {
    pub stood: Option<Stood>,
    /// An execution is under way that goes back, if it can.
    pub under_way: bool,
    /// The execution that is under way, or was last, was asked to.
    pub asked: bool,
    /// Pages that executions write.
    pub pages: BTreeSet<u64>,
    pub lessons: u32,
    pub in_vain: u32,
    /// No execution is asked to.
    pub off: bool,
    /// Executions that came back.
    pub came_back: u64,
    /// The process of the last one has.
    pub did: bool,
    /// Why it has not.
    pub why: Option<Hinders>,
}
