//! What is kept of the readers of a read-write lock.

use crate::base::Tid;

/// One thread's read holds of one lock; a list per lock.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Hold {
    /// The reader.
    pub tid: Tid,
    /// How often it holds it; 0 marks a free record.
    pub count: u32,
    /// Next hold of the same lock, or of the free list.
    pub next: u32,
}
