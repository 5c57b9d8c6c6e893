//! Whether a scenario was written on this machine by this user. It says which program runs with which arguments and environment, so one
//! from a stranger is code. What this user's vsrun writes carries a mark that takes a key to make, which lies in a file of the user's.

use std::fs::{self, File, OpenOptions};
#[allow(deprecated)] // the standard library's other hasher takes no key
use std::hash::{Hasher, SipHasher};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::libc;
use nix::unistd::geteuid;

use crate::base::files::PRIVATE;

/// Bytes of the key.
const LEN: usize = 16;

/// The mark of a content by the user's key: SipHash-2-4. `None`: no key can be kept here.
#[allow(deprecated)]
pub(super) fn mark(content: impl Iterator<Item = u8>) -> Option<u64> {
    let key = places().iter().find_map(|place| key_in(place))?;
    let half = |at: usize| key[at..at + 8].iter().rev().fold(0, |n: u64, &byte| n << 8 | u64::from(byte));
    let mut hasher = SipHasher::new_with_keys(half(0), half(8));
    let bytes: Vec<u8> = content.collect();
    hasher.write(&bytes);
    Some(hasher.finish())
}

/// Directories that may hold the key, best first.
fn places() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = variable("XDG_STATE_HOME");
    let home = variable("HOME").map(|home| home.join(".local/state"));
    let mut all: Vec<PathBuf> = [state, home].into_iter().flatten().map(|dir| dir.join("vsrun")).collect();
    all.push(PathBuf::from(format!("/var/tmp/vsrun-{}", geteuid())));
    all
}

/// The key in that directory, made if there is none.
fn key_in(dir: &Path) -> Option<[u8; LEN]> {
    let path = dir.join("key");
    if let Some(key) = read(&path) {
        return Some(key);
    }
    let _ = fs::DirBuilder::new().mode(0o700).recursive(true).create(dir);
    let mut key = [0; LEN];
    File::open("/dev/urandom").ok()?.read_exact(&mut key).ok()?;
    // Another run may be at it: the first that gives its file the name has made the key.
    let (temporary, mut file) = crate::base::files::temporary(dir).ok()?;
    let written = file.write_all(&key).and_then(|()| file.sync_all());
    let linked = written.and_then(|()| fs::hard_link(&temporary, &path));
    let _ = fs::remove_file(&temporary);
    drop(linked);
    read(&path)
}

/// The key in that file, if nobody else can have read or written it.
fn read(path: &Path) -> Option<[u8; LEN]> {
    let owner = |path: &Path| fs::metadata(path).ok().filter(|meta| meta.uid() == geteuid().as_raw());
    let safe = |meta: &fs::Metadata, mode: u32| meta.uid() == geteuid().as_raw() && meta.mode() & mode == 0;
    let mut file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path).ok()?;
    let meta = file.metadata().ok()?;
    let dir = owner(path.parent()?)?;
    if !meta.is_file() || !safe(&meta, !PRIVATE & 0o777) || !safe(&dir, 0o022) {
        return None;
    }
    let mut key = [0; LEN];
    file.read_exact(&mut key).ok()?;
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_made_once_and_is_the_users() {
        let dir = TempDir::new();
        let place = dir.path().join("state/vsrun");
        let key = key_in(&place).unwrap();
        assert_ne!(key, [0; LEN]);
        assert_eq!(key_in(&place), Some(key));
        let path = place.join("key");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(&place).unwrap().count(), 1);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(key_in(&place), None, "others can read it");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, [1; 3]).unwrap();
        assert_eq!(key_in(&place), None, "too short");
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert_eq!(key_in(&place), None, "a link");
    }
}
