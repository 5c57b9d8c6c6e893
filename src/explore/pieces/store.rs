//! The directory of the pieces.
//!
//! | file | |
//! |---|---|
//! | `pieces.json` | the program, the options, the names of the pieces ([`Manifest`]) |
//! | `piece-N-K.vsrun` | a piece as it was split: a saved search ([`super::super::save`]) that says of which piece it is; N: how often the search has been split |
//! | `piece-N-K.state` | the same as far as it is explored |
//!
//! Each file is written beside its place and then renamed, so that there is none half-written. A piece that two have explored has the state of the
//! last one: both explore the same, so it counts once whichever that is.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::super::failure::Failure;
use super::super::packs::OfPack;
use super::super::save::Saved;
use super::super::setting::Piece;
use crate::base::files;
use crate::base::surroundings;
use crate::base::text::escape;
use crate::codec;
use crate::search::{InOrder, Search};

/// Its name in the directory.
const MANIFEST: &str = "pieces.json";
const FORMAT: &str = "vsrun pieces";
/// Changes when an older vsrun would misread it.
const VERSION: u32 = 1;
/// Bytes that it may have.
const LARGEST: u64 = 64 << 20;

/// What was split, and into what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct Manifest {
    format: String,
    version: u32,
    /// The command, to be read.
    command: String,
    /// The options of the search, and the program: the bytes of each word.
    pub words: Vec<Vec<u8>>,
    /// How often it has been split.
    pub turn: u32,
    /// The names of the pieces.
    pub pieces: Vec<String>,
    /// Transitions above all pieces.
    pub transitions: u64,
    /// The pack in which it was split.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pack: Option<OfPack>,
}

/// How far a piece is.
pub(super) struct State {
    /// What is saved of it.
    pub saved: Saved,
    /// What is explored of it.
    pub search: InOrder,
    /// It has not been begun.
    pub untouched: bool,
}

impl State {
    /// Nothing is left of it.
    pub fn is_over(&self) -> bool {
        self.search.frontier() == 0 && !self.is_outdated()
    }

    /// Something turned out to be an object that was none when the search was split.
    pub fn is_outdated(&self) -> bool {
        self.saved.header.sharing.is_due()
    }

    fn of(saved: Saved, untouched: bool) -> Result<State, String> {
        let mut search = InOrder::optimal();
        search.restore(&saved.search)?;
        Ok(State { saved, search, untouched })
    }
}

impl Manifest {
    /// Of the `turn`th time that a search is split.
    pub fn new(words: &[OsString], turn: u32, pieces: usize, transitions: u64) -> Manifest {
        Manifest {
            format: FORMAT.into(),
            version: VERSION,
            command: words.iter().map(escape).collect::<Vec<_>>().join(" "),
            words: bytes_of(words),
            turn,
            pieces: (1..=pieces).map(|n| format!("{turn}-{n:05}")).collect(),
            transitions,
            pack: OfPack::now(),
        }
    }

    /// That of a directory.
    ///
    /// # Errors
    /// There is none, or it is damaged.
    pub fn of(dir: &Path) -> Result<Manifest, Failure> {
        let path = dir.join(MANIFEST);
        let wrong = |why: String| Failure::environment(format!("{} is no directory of pieces: {why}", escape(dir)));
        let bytes = files::read(&path, LARGEST).map_err(|e| wrong(format!("{}: {e}", escape(&path))))?;
        Manifest::parse(&bytes).map_err(|why| wrong(format!("{} {why}", escape(&path))))
    }

    /// The content of a file.
    ///
    /// # Errors
    /// What the file is instead.
    pub fn parse(bytes: &[u8]) -> Result<Manifest, String> {
        let manifest: Manifest = serde_json::from_slice(bytes).map_err(|e| format!("is damaged: {e}"))?;
        if manifest.format != FORMAT || manifest.version != VERSION {
            return Err("was written by another version of vsrun".into());
        }
        let all: BTreeSet<&String> = manifest.pieces.iter().collect();
        let named = |name: &&String| !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit() || b == b'-');
        if all.len() != manifest.pieces.len() || !all.iter().all(named) {
            return Err("is damaged: names of pieces".into());
        }
        match codec::counted([manifest.transitions]).is_ok() && manifest.turn < u32::MAX {
            true => Ok(manifest),
            false => Err("is damaged: a count is larger than anybody has counted".into()),
        }
    }

    /// A piece becomes so many, between which there are these transitions. Gives their names.
    pub fn divide(&mut self, piece: &str, into: usize, transitions: u64) -> Vec<String> {
        let names: Vec<String> = (1..=into).map(|n| format!("{piece}-{n:05}")).collect();
        let at = self.pieces.iter().position(|name| name == piece);
        self.pieces.splice(at.map_or(0..0, |at| at..at + 1), names.clone());
        self.transitions += transitions;
        names
    }

    /// There is one.
    pub fn is_there(dir: &Path) -> bool {
        dir.join(MANIFEST).exists()
    }

    /// Writes it.
    pub fn write(&self, dir: &Path) -> io::Result<()> {
        write(&dir.join(MANIFEST), &serde_json::to_vec_pretty(self).unwrap_or_default())
    }

    /// How far its pieces are, in their order.
    ///
    /// # Errors
    /// One is missing or damaged.
    pub(super) fn states(&self, dir: &Path) -> Result<Vec<State>, Failure> {
        self.pieces.iter().map(|name| state_of(&piece_file(dir, name))).collect()
    }
}

/// Writes a file beside its place, and then gives it its name.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    files::may_be_replaced(path)?;
    let (temporary, mut file) = files::temporary(files::directory_of(path))?;
    let written = file.write_all(bytes).and_then(|()| file.sync_data()).and_then(|()| fs::rename(&temporary, path));
    written.inspect_err(|_| drop(fs::remove_file(&temporary)))
}

/// The file of a piece.
pub(super) fn piece_file(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("piece-{name}.vsrun"))
}

/// The file of how far it is explored.
pub(super) fn state_file(piece: &Path) -> PathBuf {
    piece.with_extension("state")
}

/// How far the piece of that file is. A state that is damaged is none: the piece begins anew.
///
/// # Errors
/// There is no such piece, or it is damaged.
pub(super) fn state_of(piece: &Path) -> Result<State, Failure> {
    let read = |path: &Path, untouched| {
        let bytes = files::read(path, LARGEST_STATE).map_err(|e| e.to_string())?;
        State::of(Saved::from_bytes(&bytes)?, untouched)
    };
    let begun = state_file(piece);
    if let Ok(state) =
        read(&begun, false).or_else(|e| if begun.exists() { read(&before(&begun), false) } else { Err(e) })
    {
        return Ok(state);
    }
    let wrong =
        |why: String| Failure::environment(format!("{} is no piece that can be explored: {why}", escape(piece)));
    let state = read(piece, true).map_err(wrong)?;
    match state.saved.header.piece {
        Some(_) => Ok(state),
        None => Err(wrong("it is a saved search (vsrun --resume)".into())),
    }
}

/// Bytes that the state of a piece may have.
const LARGEST_STATE: u64 = 4 << 30;

/// The state that was saved before.
fn before(state: &Path) -> PathBuf {
    state.with_extension("state.1")
}

/// The options and the program that a piece, or a directory of pieces, is of.
///
/// # Errors
/// It is none.
pub fn words_of(path: &Path) -> Result<Vec<OsString>, Failure> {
    if path.is_dir() {
        let manifest = Manifest::of(path)?;
        OfPack::fits(manifest.pack.as_ref(), path)?;
        return Ok(words(&manifest.words));
    }
    // A piece may be alone.
    let dir = files::directory_of(path);
    if surroundings::is_pack() && Manifest::is_there(dir) {
        OfPack::fits(Manifest::of(dir)?.pack.as_ref(), dir)?;
    }
    Ok(piece_of(&state_of(path)?).map_or_else(Vec::new, |piece| words(&piece.words)))
}

/// The pack in which the pieces of a directory were split, if it was one.
///
/// # Errors
/// The directory has none, or they are damaged.
pub fn pack_of(dir: &Path) -> Result<Option<OfPack>, Failure> {
    Ok(Manifest::of(dir)?.pack)
}

/// How far a piece is.
pub struct Progress {
    /// Its file.
    pub file: PathBuf,
    /// Nothing is left of it.
    pub over: bool,
    /// It is to be split again, with the others.
    pub outdated: bool,
    /// Executions so far.
    pub executions: u64,
}

/// How far all pieces of a directory are.
///
/// # Errors
/// One is missing or damaged.
pub fn progress(dir: &Path) -> Result<Vec<Progress>, Failure> {
    Manifest::of(dir)?.pieces.iter().map(|name| progress_of(&piece_file(dir, name))).collect()
}

/// How far the pieces are that a piece of the directory was split into. All others are not looked at: there may be thousands.
///
/// # Errors
/// One is missing or damaged.
pub fn progress_of_parts(dir: &Path, piece: &Path) -> Result<Vec<Progress>, Failure> {
    let whole = format!("{}-", piece.file_stem().unwrap_or_default().to_string_lossy());
    let manifest = Manifest::of(dir)?;
    let files = manifest.pieces.iter().map(|name| piece_file(dir, name));
    let is_part = |file: &PathBuf| file.file_stem().is_some_and(|stem| stem.to_string_lossy().starts_with(&whole));
    files.filter(is_part).map(|file| progress_of(&file)).collect()
}

/// How far the piece of that file is.
///
/// # Errors
/// It is missing or damaged.
pub fn progress_of(piece: &Path) -> Result<Progress, Failure> {
    let state = state_of(piece)?;
    Ok(Progress {
        file: piece.to_path_buf(),
        over: state.is_over(),
        outdated: state.is_outdated(),
        executions: state.saved.header.executions,
    })
}

/// The directory has pieces.
pub fn has_pieces(dir: &Path) -> bool {
    Manifest::is_there(dir)
}

pub(super) fn piece_of(state: &State) -> Option<&Piece> {
    state.saved.header.piece.as_ref()
}

pub(super) fn bytes_of(words: &[OsString]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

/// The words that these bytes are.
pub(in super::super) fn words(bytes: &[Vec<u8>]) -> Vec<OsString> {
    bytes.iter().map(|word| OsString::from_vec(word.clone())).collect()
}

/// Removes the files of pieces that are not among `kept`.
pub(super) fn clear(dir: &Path, kept: &Manifest) {
    let kept: BTreeSet<OsString> = kept.pieces.iter().map(|name| format!("piece-{name}").into()).collect();
    let Ok(entries) = fs::read_dir(dir) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let ours = path.extension().is_some_and(|e| e == "vsrun" || e == "state" || e == "1");
        let stem = path.file_name().map(|name| name.as_bytes().split(|&b| b == b'.').next().unwrap_or(name.as_bytes()));
        let is_piece = |stem: &&[u8]| stem.starts_with(b"piece-") && !kept.contains(OsStr::from_bytes(stem));
        if ours && stem.as_ref().is_some_and(is_piece) {
            let _ = fs::remove_file(&path);
        }
    }
}
