//! What a worker knows of going back to the first choice: see `runtime::back`.

use std::collections::BTreeSet;

use nix::unistd::Pid;
use vsrun_model::arena::{Arena, Plan, Policy};
use vsrun_model::back::Hinders;
use vsrun_model::Effects;

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
    plan: Plan,
    /// Pages that several threads use, so many: more only come.
    common: u32,
}

impl Key {
    /// What a plan says only of what comes at the first choice and behind it does not count; all else does.
    pub fn of(plan: Plan, arena: &Arena) -> Key {
        let plan = Plan {
            policy: Policy::STAY,
            prefix_len: 0,
            guide_len: 0,
            seed: 0,
            pct_depth: 0,
            pct_length: 0,
            pct_fair: 0,
            max_depth: 0,
            max_idle: 0,
            record: false,
            record_back: 0,
            blind: false,
            past_cycles: false,
            wake_by_effects: false,
            expected_effects: Effects::default(),
            late_wake: false,
            ..plan
        };
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
    /// So often there were new ones.
    pub lessons: u32,
    /// What those have lost that did not come back, less what others have won.
    pub lost: u32,
    /// No execution is asked to.
    pub off: bool,
    /// Executions that came back.
    pub came_back: u64,
    /// The process of the last one has.
    pub did: bool,
    /// Why it has not.
    pub why: Option<Hinders>,
}

impl GoingBack {
    /// Makes up for what was lost.
    pub fn wins(&mut self, gain: u32) {
        self.lost = self.lost.saturating_sub(gain);
    }
}
