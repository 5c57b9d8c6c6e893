//! The files of a pack against what was packed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::libc;

use super::manifest::{refused, Content, Manifest, What, ROOT, SCRIPT};
use crate::base::hash::{fnv1a, fold};
use crate::base::text::escape;
use crate::config::CheckPack;
use crate::explore::Failure;
use crate::report::shell_line;
use crate::report::terminal::shell_path;

/// What is said of a file that is not as it was packed.
const CHANGED: &str = "it is not what was packed (damaged, or changed since): pack it again, or copy it again";

/// A pack that is as it was packed.
pub struct Checked {
    /// Where.
    pub dir: PathBuf,
    /// Regular files.
    pub files: usize,
    /// Bytes of them.
    pub bytes: u64,
    /// The program and its arguments.
    pub program: Vec<OsString>,
}

impl Checked {
    /// What is said of it.
    pub fn text(&self) -> String {
        let (dir, program, megabytes) = (shell_path(&self.dir), shell_line(&self.program), self.bytes as f64 / 1e6);
        format!("{dir}: as it was packed: {} files, {megabytes:.1} MB; it runs {program}\n", self.files)
    }
}

/// The directory with the files of a pack. Nothing is looked up but below it, and through no link.
pub(super) struct Files {
    root: File,
}

/// The directory of that name, if it is one itself.
fn directory(path: &Path) -> io::Result<File> {
    let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// A name in an open directory.
fn within(dir: &File, name: &Path) -> PathBuf {
    Path::new("/proc/self/fd").join(dir.as_raw_fd().to_string()).join(name)
}

impl Files {
    /// That of the pack in `dir`.
    pub fn of(dir: &Path) -> Result<Files, Failure> {
        let root = directory(&dir.join(ROOT)).map_err(|e| refused(dir, format!("{ROOT}: {e}")))?;
        Ok(Files { root })
    }

    /// The name in the open directory that it is in.
    fn find(&self, name: &Path) -> io::Result<(File, PathBuf)> {
        let mut dir = self.root.try_clone()?;
        for part in name.parent().into_iter().flat_map(Path::components) {
            dir = directory(&within(&dir, part.as_ref()))?;
        }
        let path = within(&dir, Path::new(name.file_name().unwrap_or_default()));
        Ok((dir, path))
    }

    /// Opens the regular file of that name.
    pub fn open(&self, name: &Path) -> io::Result<File> {
        let (_dir, path) = self.find(name)?;
        regular(&path)
    }

    /// Where the link of that name leads to.
    pub fn link(&self, name: &Path) -> io::Result<PathBuf> {
        let (_dir, path) = self.find(name)?;
        fs::read_link(path)
    }

    /// An error if that is no directory.
    pub fn directory(&self, name: &Path) -> io::Result<()> {
        let (_dir, path) = self.find(name)?;
        directory(&path).map(drop)
    }
}

fn regular(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no regular file")),
    }
}

/// It has that content.
fn has(content: &Content, mut file: File) -> io::Result<bool> {
    // What has grown without end is not read to it.
    if file.metadata()?.len() != content.size {
        return Ok(false);
    }
    let mut buffer = vec![0; 1 << 16];
    let mut fnv = fnv1a([]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(fnv == content.fnv),
            n => fnv = fold(fnv, buffer[..n].iter().copied()),
        }
    }
}

/// What is to be said of a file of a pack that cannot be used.
pub(super) fn damaged(dir: &Path, name: &Path, what: io::Result<bool>) -> Result<(), Failure> {
    let name = escape(Path::new(ROOT).join(name));
    match what {
        Ok(true) => Ok(()),
        Ok(false) => Err(refused(dir, format!("{name}: {CHANGED}"))),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Err(refused(dir, format!("{name} is missing"))),
        Err(e) => Err(refused(dir, format!("{name}: {e}; {CHANGED}"))),
    }
}

/// Compares all of a pack with what was packed. Nothing is run.
///
/// # Errors
/// The first file that is damaged, missing or none of the pack's.
pub fn check(args: &CheckPack) -> Result<Checked, Failure> {
    let dir = &args.dir;
    let (manifest, _) = Manifest::of(dir)?;
    let files = Files::of(dir)?;
    let mut known: BTreeMap<&Path, &What> = BTreeMap::new();
    let (mut count, mut bytes) = (0, 0);
    for entry in &manifest.files {
        let name = entry.path();
        damaged(
            dir,
            name,
            match &entry.what {
                What::Directory { .. } => files.directory(name).map(|()| true),
                What::Link(to) => files.link(name).map(|found| found.as_os_str() == to),
                What::File(content) => files.open(name).and_then(|file| has(content, file)),
            },
        )?;
        if let What::File(content) = &entry.what {
            (count, bytes) = (count + 1, bytes + content.size);
        }
        known.insert(name, &entry.what);
    }
    script_is_as_packed(dir, &manifest)?;
    none_else(dir, Path::new(""), &known)?;
    Ok(Checked { dir: dir.clone(), files: count, bytes, program: manifest.program })
}

/// An error if what runs vsrun in the pack is another script.
pub(super) fn script_is_as_packed(dir: &Path, manifest: &Manifest) -> Result<(), Failure> {
    match regular(&dir.join(SCRIPT)).and_then(|file| has(&manifest.script, file)) {
        Ok(true) => Ok(()),
        Ok(false) => Err(refused(dir, format!("{SCRIPT}: {CHANGED}"))),
        Err(e) => Err(refused(dir, format!("{SCRIPT}: {e}"))),
    }
}

/// An error if there is a file below that name that is none of the pack's.
fn none_else(dir: &Path, name: &Path, known: &BTreeMap<&Path, &What>) -> Result<(), Failure> {
    let unreadable = |e: io::Error| refused(dir, format!("{}: {e}", escape(Path::new(ROOT).join(name))));
    for entry in fs::read_dir(dir.join(ROOT).join(name)).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let below = name.join(entry.file_name());
        match known.get(below.as_path()) {
            None => return Err(refused(dir, format!("{} is none of its files", escape(Path::new(ROOT).join(below))))),
            Some(What::Directory { .. }) => none_else(dir, &below, known)?,
            Some(_) => {}
        }
    }
    Ok(())
}
