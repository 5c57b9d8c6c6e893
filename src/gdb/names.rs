//! What vsrun, gdb's script and the program that gdb starts call things among themselves.

/// First argument of a vsrun that gdb starts as the program.
pub(super) const PROGRAM: &str = "__program";
/// First argument of the one that answers the script.
pub(super) const STATES: &str = "__states";

/// File of the patches, in the directory of the script.
pub(super) const PATCHES: &str = "patches";
/// File of the transition before which the program that is started next is to stop.
pub(super) const STOP: &str = "stop";
/// File of the number of the process that becomes the program.
pub(super) const NUMBER: &str = "number";
/// File to which the program prints.
pub(super) const OUTPUT: &str = "output";
