//! A place in the file system for an input that is read as a file. It is the same one each time: below `TMPDIR`, in memory if that is.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

struct Place {
    path: PathBuf,
    file: File,
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        let _ = self.path.parent().map(std::fs::remove_dir);
    }
}

thread_local! {
    static PLACE: Place = {
        let directory = std::env::temp_dir().join(format!("vsrun-fuzz-{}", std::process::id()));
        let made = std::fs::create_dir_all(&directory);
        let path = directory.join("input");
        let mut options = OpenOptions::new();
        let file = made.and_then(|()| options.read(true).write(true).create(true).truncate(true).mode(0o700).open(&path));
        Place { file: file.expect("a directory for temporary files"), path }
    };
}

/// Calls `read` with the path of a file that has this content.
pub fn at_path<T>(content: &[u8], read: impl FnOnce(&Path) -> T) -> T {
    at_path_in(&[(0, content)], content.len() as u64, read)
}

/// The same with parts of the content at their offsets, the rest zeros, and so many bytes in all.
pub fn at_path_in<T>(parts: &[(u64, &[u8])], len: u64, read: impl FnOnce(&Path) -> T) -> T {
    PLACE.with(|place| {
        let emptied = place.file.set_len(0).and_then(|()| place.file.set_len(len));
        let written = emptied.and_then(|()| parts.iter().try_for_each(|(at, part)| place.file.write_all_at(part, *at)));
        written.expect("room for an input");
        read(&place.path)
    })
}
