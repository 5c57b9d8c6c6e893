//! What vsrun says: all of it goes through here. A reader that has seen enough (EPIPE) is the end of what is said, and no error; what
//! cannot be written for another reason is one, which is told on the other stream. Nothing here panics.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use nix::fcntl::{fcntl, FcntlArg, OFlag};

use super::surroundings::shown;

/// Device number of /dev/null.
const NULL: u64 = nix::libc::makedev(1, 3);

/// Writes to standard output, to its end.
///
/// # Errors
/// It could not be written, though somebody may want it: a full device, a limit, a stream that was closed from the start.
pub fn out(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(shown(text).as_bytes()).and_then(|()| stdout.flush());
    let written =
        written.and_then(|()| if was_closed(&stdout) { Err(io::Error::other("it is closed")) } else { Ok(()) });
    written
        .or_else(unless_closed)
        .map_err(|e| io::Error::other(format!("environment: standard output cannot be written: {e}")))
}

/// Writes a line to standard error. Where that cannot be written, nobody can be told.
pub fn complain(line: &str) {
    let _ = writeln!(io::stderr(), "{}", shown(line));
}

/// A reader that has seen enough is no error.
pub fn unless_closed(e: io::Error) -> io::Result<()> {
    if e.kind() == io::ErrorKind::BrokenPipe {
        Ok(())
    } else {
        Err(e)
    }
}

/// The stream was closed when vsrun was started: Rust's runtime has put /dev/null there then, to be read and written. Shells open that
/// for writing alone.
fn was_closed(stream: &impl AsFd) -> bool {
    let mode = fcntl(stream.as_fd().as_raw_fd(), FcntlArg::F_GETFL).map(OFlag::from_bits_truncate);
    let both = mode.is_ok_and(|mode| mode & OFlag::O_ACCMODE == OFlag::O_RDWR);
    let meta = || stream.as_fd().try_clone_to_owned().and_then(|fd| File::from(fd).metadata());
    both && meta().is_ok_and(|meta| meta.file_type().is_char_device() && meta.rdev() == NULL)
}
