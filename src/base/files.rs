//! Files that come from outside, and files that vsrun writes. What is read is a regular file of bounded size, looked at before it is read: a
//! FIFO or device would not come to an end. What is written is a new file that nobody else has a name for, in the place of the old one
//! once it is whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Permissions of what vsrun writes: scenarios and saved searches hold the program's environment, which may hold secrets.
pub const PRIVATE: u32 = 0o600;

/// The content of a regular file of at most `most` bytes.
///
/// # Errors
/// It is another kind of file, too large, or the system does not give it out.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // It may become a FIFO between two looks at its name; then the opening must not wait for a writer.
    let file = OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY).open(path)?;
    let meta = file.metadata()?;
    if let Some(what) = not_regular(meta.file_type()) {
        return Err(io::Error::other(what));
    }
    let mut bytes = Vec::new();
    if meta.len() <= most {
        file.take(most + 1).read_to_end(&mut bytes)?;
    }
    if meta.len() > most || bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it is larger than {} MiB", most >> 20)));
    }
    Ok(bytes)
}

/// What a file is that is none to be read or replaced.
fn not_regular(kind: fs::FileType) -> Option<&'static str> {
    match () {
        () if kind.is_file() => None,
        () if kind.is_dir() => Some("it is a directory"),
        () if kind.is_fifo() || kind.is_socket() => Some("it is a pipe or socket, not a file"),
        () if kind.is_char_device() || kind.is_block_device() => Some("it is a device, not a file"),
        () => Some("it is no regular file"),
    }
}

/// An error if a file stands at `path` that is not one to be replaced: a device, pipe or directory.
///
/// # Errors
/// Such a file stands there.
pub fn may_be_replaced(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(meta) => not_regular(meta.file_type()).map_or(Ok(()), |what| Err(io::Error::other(what))),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e),
    }
}

/// Opens `path` for output, from its beginning: a regular file, made if it is not there, or a device such as a terminal or /dev/null.
///
/// # Errors
/// It is a directory, a pipe or a socket, or cannot be opened.
pub fn output(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).custom_flags(nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY);
    let kind = fs::metadata(path).map(|meta| meta.file_type());
    if kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket()) {
        return Err(io::Error::other("it is a pipe or socket, not a file"));
    }
    let file = options.open(path)?;
    let none = nix::fcntl::OFlag::empty();
    nix::fcntl::fcntl(std::os::fd::AsRawFd::as_raw_fd(&file), nix::fcntl::FcntlArg::F_SETFL(none))?;
    Ok(file)
}

/// A new, hidden file in `dir`, to get its name once it is whole.
///
/// # Errors
/// The directory cannot be written to.
pub fn temporary(dir: &Path) -> io::Result<(PathBuf, File)> {
    for n in 0..u32::MAX {
        let path = dir.join(format!(".vsrun.{}.{n}.tmp", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(e) => return Err(e),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The directory that `path` is in.
pub fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;

    #[test]
    fn what_has_no_end_is_not_read() {
        let dir = TempDir::new();
        let fifo = dir.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for (path, what) in [(fifo.as_path(), "pipe"), (Path::new("/dev/zero"), "device"), (dir.path(), "directory")] {
            assert!(read(path, 100).unwrap_err().to_string().contains(what), "{}", path.display());
            assert!(may_be_replaced(path).unwrap_err().to_string().contains(what), "{}", path.display());
        }
        assert!(output(&fifo).unwrap_err().to_string().contains("pipe"));
        assert!(output(Path::new("/dev/null")).is_ok());
        let file = dir.path().join("file");
        fs::write(&file, [7; 100]).unwrap();
        assert_eq!(read(&file, 100).unwrap(), [7; 100]);
        assert!(read(&file, 99).unwrap_err().to_string().contains("larger"));
        assert!(may_be_replaced(&file).is_ok() && may_be_replaced(&dir.path().join("new")).is_ok());
    }
}
