//! Watched memory: what the patches of the tool lead to. The slow paths append what is accessed to a log and mark it as recorded;
//! at the end of a transition the log is handed over and the marks are taken back. docs/WATCHING.md says how it all works together.
//!
//! Nothing here allocates, locks, or touches the program's registers: a slow path may be entered in a signal handler, in malloc, in the
//! loader, or on a small stack. Below the gate, which says when transitions end and who gets the log.

mod faults;
mod late;
mod log;
mod map;
mod pages;
mod slow;
mod state;
mod undo;

pub use faults::{mends, moved_from, moved_to, trap};
pub use late::{patch, place};
pub use log::forget;
pub use log::renews;
pub use log::{
    appends_to, begin, begins, call_reads, call_writes, call_wrote, call_wrote_at_once, discard, end_of_transition,
    end_of_transition_keeping, hand_over, hand_over_keeping, has_fenced, has_object, has_objects, is_mapped, is_object,
    is_recording, is_special, keeps_writes_apart, kernel_uses, pages, range, reserved, state_size, switches, Claimed,
    Hooks, Touch, LOG, RECORDING,
};
pub use map::{announce, map};
pub use pages::Use;
pub use slow::is_untold;
pub use state::of as state_of;
pub use undo::{holds_patches, undo};
