//! A pack as a vsrun outside of it sees it that has its search explored.

use std::path::{Path, PathBuf};

use super::check::script_is_as_packed;
use super::manifest::{refused, Manifest, MANIFEST, SCRIPT};
use crate::base::hash::fnv1a;
use crate::base::text::escape;
use crate::explore::Failure;

/// A pack whose vsrun this one starts.
#[derive(Clone, Debug)]
pub struct Driven {
    /// Where it is.
    pub dir: PathBuf,
    /// What runs vsrun in it.
    pub run: PathBuf,
    /// The hash of its `pack.json`.
    pub hash: u64,
}

/// That path is a pack: a directory that says so, damaged or not.
pub fn is_there(dir: &Path) -> bool {
    dir.is_dir() && dir.join(MANIFEST).exists()
}

impl Driven {
    /// The pack in that directory. Its files are compared where they are used.
    ///
    /// # Errors
    /// It is none, or damaged, or has a vsrun of another version, whose files this one may misread.
    pub fn of(dir: &Path) -> Result<Driven, Failure> {
        let dir = std::path::absolute(dir)?;
        let (manifest, text) = Manifest::of(&dir)?;
        let own = env!("CARGO_PKG_VERSION");
        if manifest.vsrun != own {
            let why = format!("the vsrun in it is of version {}, this one of version {own}", escape(&manifest.vsrun));
            return Err(refused(&dir, format!("{why}: one of the same version is needed, or another pack")));
        }
        script_is_as_packed(&dir, &manifest)?;
        Ok(Driven { run: dir.join(SCRIPT), hash: fnv1a(text), dir })
    }
}
