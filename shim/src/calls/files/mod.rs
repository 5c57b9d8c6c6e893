//! Files: calls that name or change a file see the real file system with the execution's private layer on top.

mod answer;
mod awaited;
mod calls;
mod cells;
mod copies;
mod descriptors;
mod layer;
mod memory;
mod moves;
mod names;
mod open;
mod path;
mod room;
mod seen;
mod shared;
mod sorts;
mod states;
mod told;
mod uses;
mod walk;

pub use answer::{ask, call, keep_walk, known_as, locate};
pub use awaited::{expect, names_made};
pub use cells::{
    action_is_shared, copied, ending, group_told, is_there, kept, own_name, policy_changes, queue_mask, replaced,
    segment_changes, segment_looked_up, sets_what_is_copied, thread_told, thread_with_id, with_cells,
};
pub use descriptors::{copy as copy_descriptor, description, forget as forget_descriptor, know_streams, received};
pub use layer::{is_made, is_private};
pub use names::{others_told, CONNECT};
pub use path::mix;
pub use room::{forget_walk, with_stack};
pub use shared::{announce, mapped, mapping, note, using};
pub use told::tell;
pub use uses::written_in_turn;
