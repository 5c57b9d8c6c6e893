//! Executions to be run.

use std::sync::Arc;

use crate::objects::Objects;
use crate::schedule::Schedule;
use crate::trace::Trace;

/// An execution to be run.
#[derive(Clone)]
pub(super) struct Task {
    /// Its number, from 1.
    pub number: u64,
    pub schedule: Schedule,
    /// What is known of the sharing of objects.
    pub objects: Arc<Objects>,
    /// How often the search has started over.
    pub restarts: u64,
}

/// A schedule that leads through all recorded steps of a trace; one whose steps were too many to record is its own.
pub(super) fn replayable(schedule: &Schedule, trace: &Trace) -> Schedule {
    if trace.unrecorded > 0 {
        return Schedule { record: false, blind: false, ..schedule.clone() };
    }
    Schedule { prefix: trace.choices(trace.steps.len()), ..Schedule::default() }
}
