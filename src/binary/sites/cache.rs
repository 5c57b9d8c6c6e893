//! Analyses that are kept: a file for each module, named by its build-id, in a directory of the user's. A file is believed if it is the
//! user's own, whole, and of the content that the module has now; otherwise, and where there is no such directory, the module is
//! analysed again, and nothing is said.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

use super::super::fingerprint::BinaryId;
use super::find::{find, FindError};
use super::{Choice, Sites};
use crate::base::files;
use crate::base::hash::fnv1a;
use crate::codec;

/// Changes with anything that an analysis finds or how it is written: what is kept is believed as long as it is this one.
const VERSION: u32 = 13;
const MAGIC: &[u8; 8] = b"vsrsites";
/// Magic, version, checksum of the rest.
const HEADER: usize = 8 + 4 + 8;
/// No analysis is larger.
const MOST: u64 = 1 << 30;
/// Below that it takes less to analyse a module than to ask.
const SMALL: u64 = 32 << 10;

/// The directory of the user's for analyses; `None`: nothing says where.
pub fn directory() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("vsrun"))
}

/// The sites of the file at `path`, from `directory` if they are kept there; otherwise they are found, and kept.
///
/// # Errors
/// Those of [`find`].
pub fn find_cached(path: &Path, choice: Choice, directory: Option<&Path>) -> Result<Sites, FindError> {
    let small = fs::metadata(path).is_ok_and(|meta| meta.len() < SMALL);
    let id = if small { None } else { BinaryId::of(path).ok() };
    let Some((directory, id)) = directory.zip(id) else { return find(path, choice) };
    let Some(name) = id.build_id.as_deref().filter(|name| is_name(name)) else { return find(path, choice) };
    let file = directory.join(format!("{name}.sites"));
    if let Some(sites) = load(&file, &id, choice) {
        return Ok(sites);
    }
    let sites = find(path, choice)?;
    keep(directory, &file, &id, choice, &sites);
    Ok(sites)
}

fn is_name(build_id: &str) -> bool {
    (4..=128).contains(&build_id.len()) && build_id.bytes().all(|b| b.is_ascii_hexdigit())
}

fn load(file: &Path, id: &BinaryId, choice: Choice) -> Option<Sites> {
    let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK | nix::libc::O_CLOEXEC;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(file).ok()?;
    let meta = opened.metadata().ok()?;
    if !meta.is_file() || meta.uid() != geteuid().as_raw() || meta.mode() & 0o022 != 0 || meta.len() > MOST {
        return None;
    }
    let mut bytes = Vec::with_capacity(meta.len() as usize);
    opened.take(MOST).read_to_end(&mut bytes).ok()?;
    let (header, rest) = bytes.split_at_checked(HEADER)?;
    if header != header_of(rest) {
        return None;
    }
    let (kept_id, kept_choice, sites): (BinaryId, Choice, Sites) = codec::decode(rest).ok()?;
    (kept_id == *id && kept_choice == choice && sites.is_ordered()).then_some(sites)
}

fn header_of(rest: &[u8]) -> Vec<u8> {
    let mut header = MAGIC.to_vec();
    header.extend(VERSION.to_le_bytes());
    header.extend(fnv1a(rest.iter().copied()).to_le_bytes());
    header
}

/// Keeps an analysis, if that can be done.
fn keep(directory: &Path, file: &Path, id: &BinaryId, choice: Choice, sites: &Sites) {
    let _ = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    let own = |meta: fs::Metadata| meta.is_dir() && meta.uid() == geteuid().as_raw() && meta.mode() & 0o022 == 0;
    if !fs::symlink_metadata(directory).is_ok_and(own) {
        return;
    }
    let rest = codec::encode(&(id, choice, sites));
    // Modules are analysed beside each other, and other runs of vsrun do the same.
    let Ok((temporary, mut new)) = files::temporary(directory) else { return };
    let written = new.write_all(&header_of(&rest)).and_then(|()| new.write_all(&rest));
    if written.and_then(|()| fs::rename(&temporary, file)).is_err() {
        let _ = fs::remove_file(&temporary);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;

    #[test]
    fn what_is_kept_is_what_was_found() {
        let dir = TempDir::new();
        let source = "int x[9]; int main(int n, char **v) { return x[n] + v[0][n]; } char big[40000] = {1};";
        let program = dir.compile("p", "c", source, &["-O1", "-Wl,--build-id"]);
        let kept = dir.path().join("kept");
        let found = find(&program, Choice::default()).unwrap();
        let ask = || find_cached(&program, Choice::default(), Some(&kept)).unwrap();
        assert_eq!(ask(), found);
        let file = fs::read_dir(&kept).unwrap().next().unwrap().unwrap().path();
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        let id = BinaryId::of(&program).unwrap();
        assert_eq!(load(&file, &id, Choice::default()), Some(found.clone()));
        // Another choice is another analysis.
        assert_eq!(load(&file, &id, Choice { stack: true, ..Choice::default() }), None);
        // Any damage is seen, and mended.
        let good = fs::read(&file).unwrap();
        for at in (0..good.len()).step_by(7) {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            fs::write(&file, &bad).unwrap();
            assert_eq!(load(&file, &id, Choice::default()), None, "byte {at}");
        }
        fs::write(&file, &good[..good.len() / 2]).unwrap();
        assert_eq!(ask(), found);
        assert_eq!(fs::read(&file).unwrap(), good);
        // A link is not followed; a directory that cannot be made is no error.
        fs::rename(&file, dir.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), &file).unwrap();
        assert_eq!(load(&file, &id, Choice::default()), None);
        assert_eq!(find_cached(&program, Choice::default(), Some(&program.join("x"))).unwrap(), found);
    }
}
