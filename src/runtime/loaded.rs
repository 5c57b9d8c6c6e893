//! Modules that are to be watched, and what is to be written over them.

use std::path::{Path, PathBuf};

use vsrun_model::watch::LEFT_OUT;

use super::memory::{MemoryError, ProcessMemory};
use super::session::SHIM_NAME;

/// Modules that are not watched.
pub(super) fn is_left_out(name: &str) -> bool {
    LEFT_OUT.iter().chain(&["linux-vdso", "[", SHIM_NAME]).any(|start| name.starts_with(start))
}

/// The last part of a path, or all of it.
pub(super) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// A module at the root, or one that comes later.
pub(super) struct Loaded {
    pub(super) path: PathBuf,
    pub(super) name: String,
    pub(super) bias: u64,
    /// Its executable parts.
    pub(super) text: Vec<(u64, Vec<u8>)>,
    /// Those are what the file has.
    pub(super) intact: bool,
    /// It is not there yet.
    pub(super) is_late: bool,
}

/// What a process is to write over its own memory: words of [`Change`]s, with offsets from where the bytes begin, and these.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) words: Vec<[u64; 4]>,
    pub(super) bytes: Vec<u8>,
}

impl Changes {
    /// These, in the process with that memory, which has not been changed yet.
    pub(super) fn new(writes: &[(u64, Vec<u8>)], memory: &ProcessMemory) -> Result<Changes, MemoryError> {
        let mut all = Changes::default();
        for (at, bytes) in writes {
            let mut was = vec![0; bytes.len()];
            memory.read(*at, &mut was)?;
            all.add(*at, &was, bytes);
        }
        Ok(all)
    }

    /// One more: what is there before, and after.
    pub(super) fn add(&mut self, at: u64, was: &[u8], is: &[u8]) {
        let from = self.bytes.len() as u64;
        self.bytes.extend(was.iter().chain(is));
        self.words.push([at, is.len() as u64, from, from + was.len() as u64]);
    }
}
