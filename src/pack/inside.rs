//! vsrun that runs in a pack: what it is to run, and where the machine's files are.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::manifest::{Manifest, OWN, SCRIPT, VSRUN};
use crate::base::hash::fnv1a;
use crate::base::surroundings::{self, Pack, Surroundings, NODE};
use crate::config::Packed;
use crate::explore::Failure;
use crate::report::terminal::shell_path;

/// Where the pack is on the machine.
pub(super) const PACK_VARIABLE: &str = "VSRUN_PACK";

/// What a pack has.
pub struct Inside {
    /// Its search.
    pub packed: Packed,
}

/// What this vsrun is to run, if it is the one of a pack in its root file system. From here on programs have the directory and environment of the pack.
///
/// # Errors
/// The pack is damaged.
pub fn inside() -> Result<Option<Inside>, Failure> {
    let root = Path::new("/");
    if !std::env::current_exe().is_ok_and(|exe| exe == root.join(VSRUN)) {
        return Ok(None);
    }
    let (manifest, text) = Manifest::of(&root.join(OWN))?;
    let dir = std::env::var_os(PACK_VARIABLE).map(PathBuf::from);
    let command = dir.as_ref().map_or_else(|| "vsrun".to_string(), |dir| shell_path(&dir.join(SCRIPT)));
    let options = manifest.options.into_iter().map(|option| (option.name, option.word)).collect();
    let pack = Some(Pack { dir, command, hash: fnv1a(text) });
    surroundings::set(Surroundings { cwd: PathBuf::from(manifest.cwd), env: manifest.env, pack });
    Ok(Some(Inside { packed: Packed { options, program: manifest.program } }))
}

/// Where an absolute path of the machine is, for vsrun in a pack. Relative ones, and those of vsrun's own there, stay.
pub fn to_node(path: &Path) -> PathBuf {
    match path.strip_prefix("/") {
        Ok(rest) if !path.starts_with(Path::new("/").join(OWN)) => Path::new(NODE).join(rest),
        _ => path.to_path_buf(),
    }
}

/// Name and value of a variable.
pub(super) fn split(entry: &OsStr) -> Option<(OsString, OsString)> {
    let bytes = entry.as_bytes();
    let at = bytes.iter().skip(1).position(|byte| *byte == b'=')? + 1;
    Some((OsStr::from_bytes(&bytes[..at]).into(), OsStr::from_bytes(&bytes[at + 1..]).into()))
}
