//! The further root processes of a world, and the signal at its end.

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
    /// They begin once a socket listens.
    pub awaits: u32,
    /// Bytes of `commands`.
    pub len: u32,
    /// For each command: the file, the number of arguments as one byte, the arguments with the name first; texts end
    /// with a NUL.
    pub commands: [u8; MAX_COMMANDS],
}
