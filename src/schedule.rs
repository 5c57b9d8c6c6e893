//! What an execution is to do: a prefix of choices, a sleep set at its end, a policy for what comes after.

use vsrun_model::aims::Wish;
use vsrun_model::arena::{Choice, Policy, MAX_PREFIX};
use vsrun_model::{Effects, Tid, Uid};

/// Whether the steps of an execution, of which so many were recorded and so many not, can be the choices of a schedule.
pub fn has_room_for(recorded: usize, unrecorded: u64) -> bool {
    unrecorded == 0 && recorded <= MAX_PREFIX
}

/// A schedule. Self-contained: any worker can run it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// What the search knows it by.
    pub ticket: u64,
    /// The choices to make first.
    pub prefix: Vec<Choice>,
    /// Choices that are made next, as far as that is possible: where a thread waits those of others come first, and what it does not come to is
    /// left out.
    pub guide: Vec<Choice>,
    /// (thread, alternative) pairs that are asleep in the state the prefix leads to.
    pub sleep: Vec<(Tid, u32)>,
    /// What comes after the prefix.
    pub policy: Policy,
    /// Seed of a policy that draws lots.
    pub seed: u64,
    /// Depth of a PCT schedule.
    pub pct_depth: u32,
    /// Transitions among which a PCT schedule changes priorities.
    pub pct_length: u32,
    /// Transitions after which a schedule by [`Policy::PCT`], [`Policy::SURW`], [`Policy::RFF`] or [`Policy::NOVEL`] becomes fair.
    pub pct_fair: u64,
    /// Transitions that threads are expected to make, ascending by name, for [`Policy::WALK`] and [`Policy::SURW`].
    pub expected: Vec<(Uid, u32)>,
    /// Names of the objects whose operations are of interest, ascending, for [`Policy::SURW`].
    pub interest: Vec<u64>,
    /// What is wished for, for [`Policy::RFF`].
    pub wishes: Vec<Wish>,
    /// Whether the search needs the pending operations of the states after the prefix.
    pub record: bool,
    /// With `record`: so many of the last choices of the prefix are recorded like what comes after it.
    pub record_back: u32,
    /// Go on after a circle of locks while something is enabled.
    pub past_cycles: bool,
    /// What sleeps wakes by what the transitions did, see [`vsrun_model::arena::Plan::late_wake`].
    pub late_wake: bool,
    /// The last choice of the prefix may turn out to be blocked.
    pub unsure: bool,
    /// What ends a thread or a process wakes what sleeps there: effects of sleeping operations are not known.
    pub wake_by_effects: bool,
    /// What the last transition of the prefix is expected to do beyond its operation: what sleeps after it sleeps for that.
    pub expected_effects: Effects,
    /// The transitions are not needed: the schedule alone repeats the execution.
    pub blind: bool,
    /// The execution is over where the prefix is.
    pub ends: bool,
    /// It is cut off after so many transitions, to be looked at there: of those only the last are.
    pub depth: Option<u64>,
    /// It is cut after so many transitions, if not before.
    pub most: Option<u64>,
    /// From the state after so many choices of the prefix the rest of it leads back to that state, and the execution ends there.
    pub loops: Option<u32>,
    /// Whether it ends where it comes to a state that was met before.
    pub states: States,
    /// After so many choices of the prefix states are not told apart any more.
    pub untold: Option<u32>,
    /// The time is a part of these states from the beginning: the program looks at the clock.
    pub timed: bool,
}

/// Whether states are told apart, see [`vsrun_model::states`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum States {
    /// They are not.
    #[default]
    Off,
    /// They are, and none was met before.
    Begin,
    /// They are.
    On,
}
