//! The directory of a swarm.
//!
//! | file | |
//! |---|---|
//! | `swarm.json` | the program, the options, the seed, the bounds ([`Description`]); never changed |
//! | `task-K.lot` | a task ([`Lot`]) |
//! | `task-K.done` | what it came to ([`Done`]); without it the task has not been done |
//! | `clock.json` | how long the swarm has gone on ([`Clock`]) |
//!
//! Each file is written beside its place and then given its name. A task that two have done
//! is done once, by who was first.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::base::files;
use crate::base::hash::fnv1a;
use crate::base::text::escape;
use crate::codec;
use crate::explore::{Covered, Failure, OfPack};
use crate::finding::BugKind;
use crate::incomplete::Reason;
use crate::scenario::Program;
use crate::search::Chance;

const NAME: &str = "swarm.json";
const CLOCK: &str = "clock.json";
const FORMAT: &str = "vsrun swarm";
/// Changes when an older vsrun would misread a file.
const VERSION: u32 = 1;
/// First bytes of tasks and of what they came to.
const MAGIC: [&[u8; 16]; 2] = [b"vsrun swarm lo1\n", b"vsrun swarm do1\n"];
/// Bytes that a file may have.
const LARGEST: u64 = 256 << 20;

/// What is drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Description {
    format: String,
    version: u32,
    /// The command, to be read.
    command: String,
    /// The options, and the program: the bytes of each word.
    words: Vec<Vec<u8>>,
    /// The program as it was, with its environment.
    pub program: Program,
    /// What tells it from a changed one.
    pub fingerprint: serde_json::Value,
    pub seed: u64,
    /// Faults that are varied.
    pub vary: u32,
    /// How long, and how many executions, in all.
    pub seconds: Option<f64>,
    pub executions: Option<u64>,
    /// The pack in which it was begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pack: Option<OfPack>,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Lot {
    /// The swarm that it is of.
    pub swarm: u64,
    /// From 1.
    pub number: u64,
    /// The kind of search, an index of [`super::plan::KINDS`].
    pub kind: u32,
    pub seed: u64,
    /// Faults that may strike beside those that the options name.
    pub faults: u32,
    /// At most so many executions.
    pub executions: Option<u64>,
    /// The task from which it goes on.
    pub from: Option<u64>,
}

/// A bug that a task has found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Bug {
    pub kind: BugKind,
    /// Equal for equal bugs.
    pub identity: u64,
    pub summary: String,
    /// The name of its scenario in the directory.
    pub scenario: Option<String>,
    pub execution: u64,
    pub transitions: u64,
}

/// What a task came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Done {
    /// The task, as it was.
    pub lot: Lot,
    pub executions: u64,
    pub transitions: u64,
    pub cut: u64,
    pub ended: u64,
    pub max_depth: u64,
    pub seconds: f64,
    /// Seconds after the beginning at which something was new to it last.
    pub newest: f64,
    pub covered: Covered,
    pub chances: Vec<Chance>,
    pub kept: Option<Vec<u8>>,
    pub bugs: Vec<Bug>,
    pub reasons: Vec<Reason>,
    pub notes: Vec<String>,
    pub watched: bool,
}

/// How long it has gone on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Clock {
    /// Seconds.
    pub seconds: f64,
    /// When an order of two operations was new last.
    pub newest: f64,
}

impl Description {
    pub fn new(words: &[OsString], (program, fingerprint): (Program, serde_json::Value)) -> Description {
        Description {
            format: FORMAT.into(),
            version: VERSION,
            command: words.iter().map(escape).collect::<Vec<_>>().join(" "),
            words: words.iter().map(|word| word.as_bytes().to_vec()).collect(),
            program,
            fingerprint,
            seed: 0,
            vary: 0,
            seconds: None,
            executions: None,
            pack: OfPack::now(),
        }
    }

    /// The options, and the program.
    pub fn words(&self) -> Vec<OsString> {
        self.words.iter().map(|word| OsString::from_vec(word.clone())).collect()
    }

    /// There is one.
    pub fn is_there(dir: &Path) -> bool {
        dir.join(NAME).exists()
    }

    /// Writes it; no other one is there.
    pub fn write(&self, dir: &Path) -> io::Result<()> {
        write(&dir.join(NAME), &serde_json::to_vec_pretty(self).unwrap_or_default())
    }

    /// That of a directory, and what tells it from others.
    ///
    /// # Errors
    /// There is none, or it is damaged.
    pub fn of(dir: &Path) -> Result<(Description, u64), Failure> {
        let path = dir.join(NAME);
        let wrong = |why: String| Failure::environment(format!("{} is no directory of a swarm: {why}", escape(dir)));
        let bytes = files::read(&path, LARGEST).map_err(|e| wrong(format!("{}: {e}", escape(&path))))?;
        let description = Description::parse(&bytes).map_err(|why| wrong(format!("{} {why}", escape(&path))))?;
        OfPack::fits(description.pack.as_ref(), dir)?;
        Ok((description, fnv1a(bytes)))
    }

    /// The content of a file.
    ///
    /// # Errors
    /// What the file is instead.
    pub fn parse(bytes: &[u8]) -> Result<Description, String> {
        let description: Description = serde_json::from_slice(bytes).map_err(|e| format!("is damaged: {e}"))?;
        match description.format == FORMAT && description.version == VERSION {
            true => Ok(description),
            false => Err("was written by another version of vsrun".into()),
        }
    }
}

/// Writes a file beside its place, and then gives it its name.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    files::may_be_replaced(path)?;
    named(path, bytes, |temporary| fs::rename(temporary, path))
}

/// The same where nothing has that name yet; otherwise what has it stays.
fn write_once(path: &Path, bytes: &[u8]) -> io::Result<()> {
    named(path, bytes, |temporary| match fs::hard_link(temporary, path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // There are file systems without links.
        Err(_) if !path.exists() => fs::rename(temporary, path),
        linked => linked,
    })
}

fn named(path: &Path, bytes: &[u8], name: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let (temporary, mut file) = files::temporary(files::directory_of(path))?;
    let written = file.write_all(bytes).and_then(|()| file.sync_data()).and_then(|()| name(&temporary));
    // A rename has taken it away already.
    let _ = fs::remove_file(&temporary);
    written
}

fn sealed(magic: &[u8], value: &impl Serialize) -> Vec<u8> {
    let mut bytes = [magic, &codec::encode(value)].concat();
    let sum = fnv1a(bytes.iter().copied());
    bytes.extend(sum.to_le_bytes());
    bytes
}

fn unsealed<T: DeserializeOwned>(magic: &[u8; 16], bytes: &[u8]) -> Result<T, String> {
    if bytes.get(..12) != Some(&magic[..12]) {
        return Err("it is another kind of file, or it is cut off".into());
    }
    if bytes.get(..16) != Some(&magic[..]) {
        return Err("it is another kind of file of a swarm, or of another version of vsrun".into());
    }
    let (body, sum) = bytes.split_last_chunk::<8>().filter(|(body, _)| body.len() >= 16).ok_or("it is cut off")?;
    if fnv1a(body.iter().copied()) != u64::from_le_bytes(*sum) {
        return Err("it is damaged, or cut off: its checksum does not match".into());
    }
    Ok(codec::decode(&body[16..])?)
}

fn read<T: DeserializeOwned>(path: &Path, magic: &[u8; 16]) -> Result<T, Failure> {
    let wrong = |why: String| Failure::environment(format!("{} cannot be used: {why}", escape(path)));
    let bytes = files::read(path, LARGEST).map_err(|e| wrong(e.to_string()))?;
    unsealed(magic, &bytes).map_err(wrong)
}

/// The file of a task.
pub(super) fn lot_file(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("task-{number:06}.lot"))
}

/// The file of what a task came to.
pub(super) fn done_file(lot: &Path) -> PathBuf {
    lot.with_extension("done")
}

/// The file looks like a task of a swarm.
pub(super) fn is_lot(path: &Path) -> bool {
    let mut start = [0; 12];
    let read = fs::File::open(path).and_then(|mut file| io::Read::read_exact(&mut file, &mut start));
    read.is_ok() && start[..] == MAGIC[0][..12] || path.extension().is_some_and(|extension| extension == "lot")
}

impl Lot {
    pub fn write(&self, dir: &Path) -> io::Result<PathBuf> {
        let path = lot_file(dir, self.number);
        write(&path, &sealed(MAGIC[0], self)).map(|()| path)
    }

    /// That of a file, which is of the swarm `swarm`.
    ///
    /// # Errors
    /// It is none, or of another swarm.
    pub fn of(path: &Path, swarm: u64) -> Result<Lot, Failure> {
        let lot: Lot = read(path, MAGIC[0])?;
        let name = lot_file(Path::new(""), lot.number);
        if lot.swarm != swarm || path.file_name() != name.file_name() || lot.kind as usize >= super::plan::KINDS.len() {
            return Err(Failure::environment(format!("{} is a task of another swarm", escape(path))));
        }
        Ok(lot)
    }
}

impl Done {
    /// Writes what the task of that file came to, unless somebody has done it meanwhile.
    pub fn write(&self, lot: &Path) -> io::Result<()> {
        write_once(&done_file(lot), &sealed(MAGIC[1], self))
    }

    /// What the task of that file came to; `None`: it has not been done.
    ///
    /// # Errors
    /// It is damaged, or of another task.
    pub fn of(path: &Path, lot: &Lot) -> Result<Option<Done>, Failure> {
        let path = done_file(path);
        if !path.exists() {
            return Ok(None);
        }
        let done: Done = read(&path, MAGIC[1])?;
        if done.lot != *lot {
            return Err(Failure::environment(format!(
                "{} is what another task, or one of another swarm, came to",
                escape(&path)
            )));
        }
        match done.can_be() {
            true => Ok(Some(done)),
            false => Err(Failure::environment(format!("{} cannot be used: what it says cannot be", escape(&path)))),
        }
    }

    /// What it says may have happened, and its scenarios are files of its directory.
    pub fn can_be(&self) -> bool {
        let sane = self.covered.is_whole() && self.seconds.is_finite() && self.newest.is_finite();
        let beside =
            |bug: &Bug| bug.scenario.as_ref().is_none_or(|name| Path::new(name).file_name() == Some(name.as_ref()));
        let counts = [self.executions, self.transitions, self.cut, self.ended].into_iter();
        let counts = counts.chain(self.chances.iter().map(|chance| chance.executions));
        sane && self.bugs.iter().all(beside) && codec::counted(counts).is_ok()
    }
}

/// The tasks of a directory, by number.
///
/// # Errors
/// One is damaged, or of another swarm.
pub(super) fn lots(dir: &Path, id: u64) -> Result<Vec<(PathBuf, Lot)>, Failure> {
    let mut all = Vec::new();
    for number in 1.. {
        let path = lot_file(dir, number);
        if !path.exists() {
            break;
        }
        let lot = Lot::of(&path, id)?;
        all.push((path, lot));
    }
    Ok(all)
}

impl Clock {
    /// That of a directory. Without one no time has gone by.
    ///
    /// # Errors
    /// It is damaged.
    pub fn of(dir: &Path) -> Result<Clock, Failure> {
        let path = dir.join(CLOCK);
        if !path.exists() {
            return Ok(Clock::default());
        }
        let bytes = files::read(&path, LARGEST).map_err(|e| e.to_string());
        let clock = bytes.and_then(|bytes| Clock::parse(&bytes));
        clock.map_err(|why| Failure::environment(format!("{} cannot be used: {why}", escape(&path))))
    }

    /// The content of a file.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(bytes: &[u8]) -> Result<Clock, String> {
        let clock: Clock = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
        match clock.seconds >= 0.0 && clock.newest >= 0.0 {
            true => Ok(clock),
            false => Err("no time can be less than none".into()),
        }
    }

    /// What is left of so many seconds.
    pub fn rest(&self, seconds: f64) -> Duration {
        Duration::try_from_secs_f64((seconds - self.seconds).max(0.0)).unwrap_or(Duration::MAX)
    }

    pub fn write(&self, dir: &Path) -> io::Result<()> {
        write(&dir.join(CLOCK), &serde_json::to_vec(self).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_damaged_cut_off_or_something_else_is_refused() {
        let lot = Lot { swarm: 1, number: 2, kind: 3, seed: 4, faults: 5, executions: Some(6), from: None };
        let whole = sealed(MAGIC[0], &lot);
        assert_eq!(unsealed::<Lot>(MAGIC[0], &whole), Ok(lot));
        for n in 0..whole.len() {
            assert!(unsealed::<Lot>(MAGIC[0], &whole[..n]).is_err(), "{n} bytes");
            let mut other = whole.clone();
            other[n] ^= 4;
            assert!(unsealed::<Lot>(MAGIC[0], &other).is_err(), "byte {n}");
        }
        assert!(unsealed::<Lot>(MAGIC[1], &whole).is_err_and(|why| why.contains("another kind")));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let done = super::super::fuzz::done();
        assert!(done.can_be() && done.bugs.len() == 1);
        for name in ["../s.vsrun.json", "/s.vsrun.json", "a/s.vsrun.json", "..", ".", "", "s.vsrun.json/"] {
            let mut other = done.clone();
            other.bugs[0].scenario = Some(name.into());
            assert!(!other.can_be(), "{name}");
        }
        for other in [Done { executions: u64::MAX, ..done.clone() }, Done { newest: f64::NAN, ..done.clone() }] {
            assert!(!other.can_be(), "{other:?}");
        }
        assert!(Clock::parse(b"{\"seconds\": -1.0, \"newest\": 0.0}").is_err());
        assert_eq!(Clock { seconds: 2.0, newest: 0.0 }.rest(1e300), Duration::MAX);
        assert_eq!(Clock { seconds: 2.0, newest: 0.0 }.rest(3.0), Duration::from_secs(1));
    }
}
