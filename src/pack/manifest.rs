//! What is in a pack, as `pack.json` says it. Hashes are those of [`BinaryId`](crate::binary::BinaryId): against damage, not against who means harm, who
//! would write the hash of his own file beside it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::tree::{follow, Step};
use crate::base::files;
use crate::base::serial;
use crate::base::text::escape;
use crate::explore::Failure;

/// Its name in the pack.
pub(super) const MANIFEST: &str = "pack.json";
/// The directory beside it that becomes the root.
pub(super) const ROOT: &str = "root";
/// The script beside it that runs vsrun there.
pub(super) const SCRIPT: &str = "run";
/// What is vsrun's in the root.
pub(super) const OWN: &str = ".vsrun";
/// vsrun's file there.
pub(super) const VSRUN: &str = ".vsrun/vsrun";
/// Where the machine's files are then.
pub(super) const NODE: &str = ".vsrun/node";
/// Changes when an older vsrun would misread it.
const VERSION: u64 = 1;
/// Bytes that it may have.
const LARGEST: u64 = 64 << 20;
/// What stands in the root without being packed.
pub(super) const OF_THE_NODE: [&str; 4] = ["proc", "dev", "sys", NODE];

/// All that is said of a pack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// The version of this file.
    pub vsrun_pack: u64,
    /// The version of the vsrun in it.
    pub vsrun: String,
    /// The program and its arguments, as they were given.
    #[serde(with = "serial::byte_list")]
    pub program: Vec<OsString>,
    /// Options of its search: name and word.
    pub options: Vec<PackedOption>,
    /// Its working directory.
    #[serde(with = "serial::bytes")]
    pub cwd: OsString,
    /// Its environment.
    #[serde(with = "serial::byte_list")]
    pub env: Vec<OsString>,
    /// The script.
    pub script: Content,
    /// What the script starts vsrun with. Packs of before images were made have it in the script alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
    /// The files, directories before what is in them.
    pub files: Vec<Entry>,
}

/// The loader of the vsrun in a pack, and where its libraries are: names relative to the root, without a link on the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Start {
    #[serde(with = "serial::bytes")]
    pub loader: OsString,
    #[serde(with = "serial::byte_list")]
    pub libraries: Vec<OsString>,
}

/// An option.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PackedOption {
    pub name: String,
    #[serde(with = "serial::bytes")]
    pub word: OsString,
}

/// A file in the root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Its name, relative to the root.
    #[serde(with = "serial::bytes")]
    pub path: OsString,
    #[serde(flatten)]
    pub what: What,
}

/// What it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum What {
    Directory { mode: u32 },
    Link(#[serde(with = "serial::bytes")] OsString),
    File(Content),
}

/// A regular file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Content {
    pub mode: u32,
    pub size: u64,
    #[serde(with = "serial::hex64")]
    pub fnv: u64,
    /// When it was modified: seconds and nanoseconds.
    pub modified: (u64, u32),
}

impl Entry {
    /// Its name.
    pub fn path(&self) -> &Path {
        Path::new(&self.path)
    }
}

fn step(what: &What) -> Step<'_> {
    match what {
        What::Directory { .. } => Step::Directory,
        What::Link(to) => Step::Link(Path::new(to)),
        What::File(_) => Step::File,
    }
}

/// A failure of the pack in `dir`.
pub(super) fn refused(dir: &Path, why: impl std::fmt::Display) -> Failure {
    Failure::environment(format!("environment: the pack {}: {why}", escape(dir)))
}

impl Manifest {
    /// That of the pack in `dir`.
    ///
    /// # Errors
    /// It is not there, or says what no vsrun has written.
    pub fn of(dir: &Path) -> Result<(Manifest, Vec<u8>), Failure> {
        let why = |e: std::io::Error| match e.kind() {
            std::io::ErrorKind::NotFound => "there is no pack.json: it is no pack, or not all of one".to_string(),
            _ => format!("pack.json cannot be read: {e}"),
        };
        let text = files::read(&dir.join(MANIFEST), LARGEST).map_err(|e| refused(dir, why(e)))?;
        Manifest::read(&text).map(|manifest| (manifest, text)).map_err(|why| refused(dir, why))
    }

    /// The same of its text.
    pub fn read(text: &[u8]) -> Result<Manifest, String> {
        #[derive(Deserialize)]
        struct Head {
            vsrun_pack: Option<Value>,
        }
        let head: Head =
            serde_json::from_slice(text).map_err(|e| format!("pack.json is damaged, or none of vsrun's: {e}"))?;
        match head.vsrun_pack {
            None => return Err("pack.json is none of vsrun's: it has no \"vsrun_pack\"".into()),
            Some(version) if version.as_u64() != Some(VERSION) => {
                return Err(format!(
                    "pack.json is of format {}; this vsrun reads format {VERSION}",
                    escape(version.to_string())
                ));
            }
            Some(_) => {}
        }
        let manifest: Manifest = serde_json::from_slice(text).map_err(|e| format!("pack.json is damaged: {e}"))?;
        manifest.is_sound()?;
        Ok(manifest)
    }

    /// Nothing in it leads out of the pack, and what has to be there is there.
    fn is_sound(&self) -> Result<(), String> {
        let mut known: BTreeMap<PathBuf, &What> = BTreeMap::new();
        for entry in &self.files {
            let of = |why: &str| format!("pack.json: {}: {why}", escape(&entry.path));
            let path = is_plain(&entry.path).map_err(of)?;
            let parent = path.parent().unwrap_or(Path::new(""));
            let under = parent.as_os_str().is_empty() || matches!(known.get(parent), Some(What::Directory { .. }));
            let mode = match &entry.what {
                _ if !under => return Err(of("the directory that it is in is not listed before it")),
                _ if known.contains_key(path) => return Err(of("it is listed twice")),
                _ if OF_THE_NODE.iter().any(|top| path.starts_with(top)) => {
                    return Err(of("that place is the machine's, and never packed"));
                }
                What::Directory { mode } => *mode,
                What::File(content) => content.mode,
                What::Link(to) if to.as_bytes().contains(&0) || to.is_empty() => return Err(of("no link leads there")),
                What::Link(_) => 0,
            };
            if mode & !0o777 != 0 {
                return Err(of("no such permissions are packed"));
            }
            known.insert(path.to_path_buf(), &entry.what);
        }
        let to = |path: &Path| follow(&known, |what: &&What| step(what), path);
        for entry in self.files.iter().filter(|entry| matches!(entry.what, What::Link(_))) {
            match to(entry.path()) {
                // It may lead to what was not packed: then it leads nowhere.
                Ok(_) | Err("leads to nothing that is in the pack") => {}
                Err(why) => return Err(format!("pack.json: the symbolic link {} {why}", escape(&entry.path))),
            }
        }
        let is_file = |path: &OsStr| matches!(known.get(Path::new(path)), Some(What::File(_)));
        let is_directory = |path: &OsString| matches!(known.get(Path::new(path)), Some(What::Directory { .. }));
        let starts = |start: &Start| is_file(&start.loader) && start.libraries.iter().all(is_directory);
        let cwd =
            Path::new(&self.cwd).strip_prefix("/").map_err(|_| "pack.json: \"cwd\" is not absolute".to_string())?;
        let in_directory =
            to(cwd).is_ok_and(|at| at.as_os_str().is_empty() || matches!(known.get(&at), Some(What::Directory { .. })));
        let words = || self.program.iter().chain(&self.env).chain(self.options.iter().map(|option| &option.word));
        match () {
            () if !self.start.as_ref().is_none_or(starts) => {
                Err("pack.json: what starts vsrun is no file or directory of the pack".into())
            }
            () if !is_file(VSRUN.as_ref()) => Err(format!("pack.json: {VSRUN} is not listed")),
            () if !in_directory => Err("pack.json: \"cwd\" is no directory of the pack".into()),
            () if self.program.is_empty() => Err("pack.json: there is no program".into()),
            () if words().any(|word| word.as_bytes().contains(&0)) => Err("pack.json: a NUL in a word".into()),
            () if self.env.iter().any(|entry| !entry.as_bytes()[1.min(entry.len())..].contains(&b'=')) => {
                Err("pack.json: a variable without a value".into())
            }
            () => Ok(()),
        }
    }

    /// Its text: a file a line.
    pub fn text(&self) -> String {
        let line = |value: &dyn Fn() -> serde_json::Result<String>| value().unwrap_or_default();
        let mut out = format!("{{\n  \"vsrun_pack\": {}", self.vsrun_pack);
        let whole = serde_json::to_value(Manifest { files: Vec::new(), ..self.clone() }).unwrap_or_default();
        for (key, value) in
            whole.as_object().into_iter().flatten().filter(|(key, _)| *key != "vsrun_pack" && *key != "files")
        {
            let _ = write!(out, ",\n  {}: {value}", Value::from(key.as_str()));
        }
        out.push_str(",\n  \"files\": [");
        for (n, entry) in self.files.iter().enumerate() {
            out.push_str(if n == 0 { "\n    " } else { ",\n    " });
            out.push_str(&line(&|| serde_json::to_string(entry)));
        }
        out + "\n  ]\n}\n"
    }

    /// A manifest of this version.
    pub fn version() -> u64 {
        VERSION
    }
}

/// A name that goes down from the root, and nowhere else.
fn is_plain(path: &OsStr) -> Result<&Path, &'static str> {
    let plain = Path::new(path);
    let normal = plain.components().all(|part| matches!(part, Component::Normal(_)));
    // Components leave out what does not matter to the kernel, such as "a//b": here it does.
    let written = plain.components().collect::<PathBuf>();
    match () {
        () if path.is_empty() => Err("it has no name"),
        () if plain.is_absolute() => Err("it is absolute"),
        () if !normal => Err("it has '..' or '.' in it, and may lead out of the pack"),
        () if written.as_os_str() != path || path.as_bytes().contains(&0) => Err("it is no name as vsrun writes it"),
        () => Ok(plain),
    }
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
