//! What a process that goes back keeps in mind of descriptors: see `closed`.

/// Most that are closed in one execution.
pub(super) const MAX_CLOSED: usize = 128;
/// Most files that are open at a mark and were not at the first choice.
pub(super) const MAX_OPEN: usize = 64;
/// A descriptor that is closed, or of which the flag has changed by which it is closed on exec.
#[derive(Clone, Copy)]
pub(super) struct Closed {
    pub number: u32,
    /// The number under which it is kept; 0: it is open still.
    pub kept: u32,
    /// FD_CLOEXEC, as it was.
    pub flags: u32,
    /// It was opened since the first choice.
    pub since: bool,
}

impl Closed {
    pub const NONE: Closed = Closed { number: 0, kept: 0, flags: 0, since: false };
}

/// A descriptor and the place in its file.
#[derive(Clone, Copy)]
pub(super) struct Opened {
    pub number: u32,
    pub place: u64,
}

impl Opened {
    pub const NONE: Opened = Opened { number: 0, place: 0 };
}
