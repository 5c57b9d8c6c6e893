//! Scenarios in files: JSON, versioned, with a checksum.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::error::Category;
use serde_json::Value;

use super::mark::mark;
use super::types::Scenario;
use crate::base::files::{self, PRIVATE};
use crate::base::hash::fnv1a;
use crate::base::text::escape;
use crate::incomplete::uncontrolled;

/// The version of the format. It changes when an older vsrun would misread a file.
pub const VERSION: u64 = 11;
/// The oldest version that is read. Files of version 1 say nothing of objects: each operation was a transition.
const OLDEST: u64 = 1;
/// The first version whose identities of bugs are those of today; older ones are forgotten.
const IDENTITIES: u64 = 3;

const VERSION_KEY: &str = "vsrun_scenario";
const CHECKSUM_KEY: &str = "checksum";
/// See [`super::mark`].
const MARK_KEY: &str = "mark";

/// Earlier files with which a scenario is compared.
const MOST_COMPARED: usize = 64;

/// Bytes that a scenario may have.
const LARGEST: u64 = 1 << 30;

/// Why a file is not read as a scenario. `Display` is one line that starts with the path.
#[derive(Debug)]
pub struct LoadError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub cause: LoadCause,
}

/// What is wrong with a scenario file.
#[derive(Debug)]
pub enum LoadCause {
    /// The system does not give it out.
    Unreadable(io::Error),
    /// It has no bytes.
    Empty,
    /// It ends too early: at line, column.
    Truncated(usize, usize),
    /// It is not JSON: line, column.
    NotJson(usize, usize),
    /// JSON, but not from vsrun, or without a part that must be there: which.
    NotAScenario(String),
    /// Of another version of the format: which.
    OtherVersion(String),
    /// The content is not the one that was written.
    Checksum,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let path = escape(&self.path);
        match &self.cause {
            LoadCause::Unreadable(e) => write!(f, "{path}: cannot read the scenario: {e}"),
            LoadCause::Empty => write!(f, "{path}: an empty file, not a scenario"),
            LoadCause::Truncated(line, column) => {
                write!(f, "{path}: the scenario is truncated: it ends too early at line {line}, column {column}")
            }
            LoadCause::NotJson(line, column) => {
                write!(f, "{path}: not a vsrun scenario: not JSON at line {line}, column {column}")
            }
            LoadCause::NotAScenario(what) => write!(f, "{path}: not a vsrun scenario: {}", escape(what)),
            LoadCause::OtherVersion(version) => {
                write!(
                    f,
                    "{path}: a scenario of format {}; this vsrun reads format {OLDEST} to {VERSION}",
                    escape(version)
                )
            }
            LoadCause::Checksum => {
                write!(f, "{path}: the checksum does not match: the scenario was edited or damaged; find the bug again")
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// A scenario that could not be written. `Display` is one line.
#[derive(Debug)]
pub struct WriteError {
    /// The directory.
    pub dir: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "cannot write a scenario to {}: {}; choose another --scenario-dir", escape(&self.dir), self.source)
    }
}

impl std::error::Error for WriteError {}

/// A scenario as it was read.
pub struct ScenarioFile {
    /// What it says.
    pub scenario: Scenario,
    /// This user's vsrun has written it on this machine, and nobody has changed it since.
    pub own: bool,
    /// The file's content.
    pub text: Vec<u8>,
}

impl Scenario {
    /// The content of a file: two levels on lines of their own, so that it can be read and compared, a step a line.
    pub fn to_json(&self) -> String {
        sealed(self.content())
    }

    /// The same with the mark of this user and machine.
    fn to_own_json(&self) -> String {
        let mut out = self.content();
        if let Some(mark) = mark(canonical(out.as_bytes())) {
            let _ = write!(out, ",\n  \"{MARK_KEY}\": \"{mark:016x}\"");
        }
        sealed(out)
    }

    fn content(&self) -> String {
        let mut out = "{".to_string();
        // For people, who look at the first line.
        if let Some(said) = uncontrolled(self.options.uncontrolled) {
            out.push_str(&format!("\"uncontrolled\": {},", Value::from(said)));
        }
        let _ = write!(out, "\n  \"{VERSION_KEY}\": {VERSION}");
        member(&mut out, "program", &self.program);
        member(&mut out, "fingerprint", &self.fingerprint);
        member(&mut out, "options", &self.options);
        member(&mut out, "bug", &self.bug);
        member(&mut out, "found", &self.found);
        if !self.objects.is_plain() {
            member(&mut out, "objects", &self.objects);
        }
        if !self.people.is_empty() {
            member(&mut out, "people", &self.people);
        }
        for (i, step) in self.steps.iter().enumerate() {
            out.push_str(if i == 0 { ",\n  \"steps\": [\n    " } else { ",\n    " });
            out.push_str(&serde_json::to_string(step).unwrap_or_default()); // no map, no writer: it cannot fail
        }
        out.push_str(if self.steps.is_empty() { ",\n  \"steps\": []" } else { "\n  ]" });
        if let Some(then) = &self.then {
            member(&mut out, "then", then);
        }
        out
    }

    /// Reads the content of a file.
    ///
    /// # Errors
    /// What is wrong with it; never [`LoadCause::Unreadable`].
    pub fn from_json(text: &[u8]) -> Result<Scenario, LoadCause> {
        if text.is_empty() {
            return Err(LoadCause::Empty);
        }
        let version = version(text)?;
        if !text.ends_with(b"\n") {
            let mut lines = text.split(|b| *b == b'\n');
            return Err(LoadCause::Truncated(lines.clone().count(), lines.next_back().map_or(0, <[u8]>::len)));
        }
        if !checksum_matches(text) {
            return Err(LoadCause::Checksum);
        }
        let mut scenario: Scenario =
            serde_json::from_slice(text).map_err(|e| LoadCause::NotAScenario(e.to_string()))?;
        if scenario.then.as_ref().is_some_and(|then| then.policy().is_none()) {
            return Err(LoadCause::NotAScenario("unknown policy".to_string()));
        }
        if version < IDENTITIES {
            scenario.bug.identity = 0;
        }
        Ok(scenario)
    }

    /// Reads the file at `path`.
    ///
    /// # Errors
    /// The path and what is wrong with the file.
    pub fn load(path: &Path) -> Result<Scenario, LoadError> {
        Scenario::load_file(path).map(|file| file.scenario)
    }

    /// The same, with the file itself and whether this user's vsrun has written it on this machine.
    ///
    /// # Errors
    /// The path and what is wrong with the file.
    pub fn load_file(path: &Path) -> Result<ScenarioFile, LoadError> {
        let load = || {
            let text = files::read(path, LARGEST).map_err(LoadCause::Unreadable)?;
            let scenario = Scenario::from_json(&text)?;
            Ok(ScenarioFile { scenario, own: is_marked(&text), text })
        };
        load().map_err(|cause| LoadError { path: path.to_path_buf(), cause })
    }

    /// Writes the scenario to a new file in `dir`, named `PROGRAM-KIND-N.vsrun.json` with the first free N, and returns
    /// its path. The directory is made if it does not exist. No file is ever overwritten or seen half written.
    ///
    /// # Errors
    /// The directory cannot be written to.
    pub fn write(&self, dir: &Path) -> Result<PathBuf, WriteError> {
        self.try_write(dir).map_err(|source| WriteError { dir: dir.to_path_buf(), source })
    }

    /// If an earlier file beside `path`, none of `own`, has the same scenario, found in whatever execution, `path`, which [`Scenario::write`] has
    /// made, is removed, and that one is returned.
    pub fn unless_known(&self, path: &Path, own: &BTreeSet<PathBuf>) -> Option<PathBuf> {
        let same = |other: &Scenario| Scenario { found: self.found.clone(), ..other.clone() } == *self;
        let dir = files::directory_of(path);
        let name = self.base_name();
        let earlier =
            (1..=MOST_COMPARED).map(|n| dir.join(format!("{name}-{n}.vsrun.json"))).take_while(|other| other != path);
        let earlier = earlier.filter(|other| !own.contains(other));
        let known = earlier
            .into_iter()
            .find(|other| Scenario::load_file(other).is_ok_and(|file| file.own && same(&file.scenario)))?;
        fs::remove_file(path).ok()?;
        Some(known)
    }

    /// Writes the scenario over a file that [`Scenario::write`] has made.
    ///
    /// # Errors
    /// The directory cannot be written to.
    pub fn replace(&self, path: &Path) -> Result<(), WriteError> {
        let dir = files::directory_of(path);
        let write = || {
            let (temporary, mut file) = files::temporary(dir)?;
            let written = file.write_all(self.to_own_json().as_bytes()).and_then(|()| file.sync_all());
            written.and_then(|()| fs::rename(&temporary, path)).inspect_err(|_| drop(fs::remove_file(&temporary)))
        };
        write().map_err(|source| WriteError { dir: dir.to_path_buf(), source })
    }

    /// Writes the scenario to a new file at `path`.
    ///
    /// # Errors
    /// The directory cannot be written to, or something stands at `path`.
    pub fn write_new(&self, path: &Path) -> Result<(), WriteError> {
        let dir = files::directory_of(path);
        let write = || {
            let (temporary, mut file) = files::temporary(dir)?;
            let written = file.write_all(self.to_own_json().as_bytes()).and_then(|()| file.sync_all());
            let linked = written.and_then(|()| fs::hard_link(&temporary, path));
            let _ = fs::remove_file(&temporary);
            linked
        };
        write().map_err(|source| WriteError { dir: dir.to_path_buf(), source })
    }

    fn try_write(&self, dir: &Path) -> io::Result<PathBuf> {
        fs::create_dir_all(dir)?;
        let name = self.base_name();
        let (temporary, mut file) = files::temporary(dir)?;
        let done = file
            .write_all(self.to_own_json().as_bytes())
            .and_then(|()| file.sync_all())
            .and_then(|()| publish(&temporary, dir, &name));
        let _ = fs::remove_file(&temporary); // a rename has taken it away already
        done
    }

    /// `PROGRAM-KIND` in characters that need no quoting.
    fn base_name(&self) -> String {
        let program = &self.program;
        let asked = Path::new(if program.script.is_empty() { &program.exe } else { &program.script });
        let name = asked.file_name().unwrap_or_default().as_bytes().iter().take(100);
        let plain = |b: &u8| if b.is_ascii_alphanumeric() || b"._+-".contains(b) { *b as char } else { '_' };
        let name: String = name.map(plain).collect();
        let name = name.trim_start_matches(['.', '-']);
        format!("{}-{}", if name.is_empty() { "program" } else { name }, self.bug.kind.name())
    }
}

/// Gives the complete file `temporary` the first free name. A link fails where the name is taken, in one step; on file
/// systems without links the name is reserved by an empty file first.
fn publish(temporary: &Path, dir: &Path, name: &str) -> io::Result<PathBuf> {
    for n in 1.. {
        let path = dir.join(format!("{name}-{n}.vsrun.json"));
        match fs::hard_link(temporary, &path) {
            Ok(()) => return Ok(path),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(_) => {}
        }
        match OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(&path) {
            Ok(_) => {
                return fs::rename(temporary, &path)
                    .map(|()| path.clone())
                    .inspect_err(|_| drop(fs::remove_file(&path)))
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(e) => return Err(e),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Reads all of the text as JSON, but keeps only the version, which is one that is read.
fn version(text: &[u8]) -> Result<u64, LoadCause> {
    #[derive(Deserialize)]
    struct Head {
        vsrun_scenario: Option<Value>,
    }
    let head: Head = serde_json::from_slice(text).map_err(|e| match e.classify() {
        Category::Eof => LoadCause::Truncated(e.line(), e.column()),
        Category::Data => LoadCause::NotAScenario(e.to_string()),
        _ => LoadCause::NotJson(e.line(), e.column()),
    })?;
    match head.vsrun_scenario {
        Some(version) if !text.trim_ascii_start().starts_with(b"{") => {
            Err(LoadCause::NotAScenario(format!("[{version}]")))
        }
        None => Err(LoadCause::NotAScenario(format!("it has no \"{VERSION_KEY}\""))),
        Some(version) => {
            let known = version.as_u64().filter(|v| (OLDEST..=VERSION).contains(v));
            known.ok_or_else(|| LoadCause::OtherVersion(version.to_string()))
        }
    }
}

/// Ends a content with its checksum.
#[doc(hidden)]
pub fn sealed(content: String) -> String {
    let sum = checksum(content.as_bytes());
    content + &format!(",\n  \"{CHECKSUM_KEY}\": \"{sum:016x}\"\n}}\n")
}

/// The content before the last member, whose name is `key`, and what comes after that name.
fn last_member<'a>(text: &'a [u8], key: &str) -> Option<(&'a [u8], &'a [u8])> {
    let key = format!("\"{key}\"");
    let at = text.windows(key.len()).rposition(|window| window == key.as_bytes())?;
    Some((text[..at].trim_ascii_end().strip_suffix(b",")?, &text[at + key.len()..]))
}

/// Whether the last member is the checksum of everything before it.
fn checksum_matches(text: &[u8]) -> bool {
    let Some((content, rest)) = last_member(text, CHECKSUM_KEY) else { return false };
    let after: Vec<u8> = canonical(rest).collect();
    after == format!(":\"{:016x}\"}}", checksum(content)).as_bytes()
}

/// Whether the last member before the checksum is the mark of everything before it.
fn is_marked(text: &[u8]) -> bool {
    let before = last_member(text, CHECKSUM_KEY).and_then(|(marked, _)| last_member(marked, MARK_KEY));
    let Some((content, rest)) = before else { return false };
    let after: Vec<u8> = canonical(rest).collect();
    mark(canonical(content)).is_some_and(|mark| after == format!(":\"{mark:016x}\"").as_bytes())
}

/// FNV-1a, 64 bits, over the canonical form of the content before the checksum.
fn checksum(content: &[u8]) -> u64 {
    fnv1a(canonical(content))
}

/// JSON without the white space between its tokens.
fn canonical(text: &[u8]) -> impl Iterator<Item = u8> + '_ {
    let (mut quoted, mut escaped) = (false, false);
    text.iter().copied().filter(move |byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            _ => return quoted || !byte.is_ascii_whitespace(),
        }
        true
    })
}

/// Appends a member of the top level, its own members on lines of their own.
fn member(out: &mut String, key: &str, value: &impl Serialize) {
    let _ = write!(out, ",\n  \"{key}\": ");
    match serde_json::to_value(value).unwrap_or_default() {
        Value::Object(map) if !map.is_empty() => {
            for (i, (key, value)) in map.iter().enumerate() {
                let before = if i == 0 { "{" } else { "," };
                let _ = write!(out, "{before}\n    {}: {value}", Value::from(key.as_str()));
            }
            out.push_str("\n  }");
        }
        other => out.push_str(&other.to_string()),
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
