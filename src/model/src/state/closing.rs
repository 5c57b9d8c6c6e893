//! The further root processes of a world, and the signal at its end.

use crate::base::{numbers, VARIANT};

/// Of a start of the program again: after any end, not only after a failure.
pub const ALWAYS: u8 = VARIANT;

/// Room for what clients wait for: a path, or a text.
pub const MAX_AWAITED_TEXT: usize = 1024;

numbers! {
    /// When the processes of `--with` begin.
    Awaits(u32):
    /// With the program.
    NOTHING = 0,
    /// Once a socket listens.
    LISTENER = 1,
    /// Once there is a file of that path.
    FILE = 2,
    /// Once the program has printed that text.
    OUTPUT = 3,
}

/// Room for the commands of `--with`, bytes.
pub const MAX_COMMANDS: usize = 1 << 14;

/// The further root processes and the signal at the end. Written by vsrun, except as its fields say.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Closing {
    /// Commands in `commands`.
    pub clients: u32,
    /// Signal for what is left when the world is idle; 0: none.
    pub stop_signal: u32,
    /// It has been sent. Written by the holder of the turn.
    pub stopped: u32,
    /// When they begin.
    pub awaits: Awaits,
    /// So often the program is started again.
    pub restarts: u32,
    /// 1: whatever its end was like, not only after a failure.
    pub always: u32,
    /// The files, by device and inode, that the program's standard output and error are. Written by the holder of the turn.
    pub outputs: [(u64, u64); 2],
    /// Where a path of which a part is looked at stands. Written by the holder of the turn.
    pub part: [u8; MAX_AWAITED_TEXT],
    /// Bytes of `commands`.
    pub len: u32,
    /// For each command of `--with`, and then for the program if it is started again: the file, the number of arguments as one byte, the arguments with the name first; texts end
    /// with a NUL.
    pub commands: [u8; MAX_COMMANDS],
}
