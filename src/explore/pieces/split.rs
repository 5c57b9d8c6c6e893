//! A search is split.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};

use super::super::executions::Counts;
use super::super::failure::Failure;
use super::super::outcomes::Outcomes;
use super::super::run::{begin, explore_part, prepare};
use super::super::save::{Header, Saved};
use super::super::setting::{divide_memory, Of, Piece, Setting};
use super::super::sharing::Sharing;
use super::super::state::Stop;
use super::super::workers::Shared;
use super::store::{bytes_of, clear, piece_file, piece_of, state_of, write, Manifest};
use crate::base::files;
use crate::base::text::escape;
use crate::config::{Config, DividePiece, Searched, SplitPieces};
use crate::finding::Summary;
use crate::incomplete::Reason;
use crate::runtime::{cpus_for, tracee};
use crate::search::{self, Search};

/// What came of it.
#[allow(clippy::large_enum_variant)]
pub enum Split {
    /// The look before had it all, or a bug: there is nothing to be split.
    Over(Summary),
    /// There are pieces.
    Into(Done),
}

/// There are pieces.
pub struct Done {
    /// Where.
    pub dir: PathBuf,
    /// Files of the pieces.
    pub pieces: Vec<PathBuf>,
    /// How long it took.
    pub time: Duration,
}

/// Splits a search; or again one that is split in the directory, of which `search` is. Then what its pieces have shown of objects is known.
///
/// # Errors
/// The program cannot be run, its executions do not depend on their schedules alone, or the files cannot be written.
pub fn split(args: &SplitPieces, search: &Searched, again: bool) -> Result<Split, Failure> {
    let began = Instant::now();
    let dir = &args.dir;
    let failed = |e: std::io::Error| Failure::environment(format!("{}: {e}", escape(dir)));
    fs::create_dir_all(dir).map_err(failed)?;
    let (turn, known) = match again {
        true => known_by_pieces(dir)?,
        false if Manifest::is_there(dir) => {
            return Err(Failure::environment(format!("{} has pieces already: --again splits them again", escape(dir))));
        }
        false if args.look.is_zero() => (0, Sharing::new(&search.config)?),
        false => match look(args, &search.config)? {
            Looked::Over(summary) => return Ok(Split::Over(summary)),
            Looked::Known(sharing) => (0, sharing),
        },
    };
    let (pieces, transitions, header) = parts(&search.config, Of::Split(args.into as usize), &known)?;
    let manifest = Manifest::new(&search.words, turn + 1, pieces.len(), transitions);
    let mut paths = Vec::new();
    for (name, bytes) in manifest.pieces.iter().zip(pieces) {
        let path = piece_file(dir, name);
        let piece = Piece { name: name.clone(), words: bytes_of(&search.words) };
        let header = Header { piece: Some(piece), ..header.clone() };
        write(&path, &Saved { header, search: bytes }.to_bytes()).map_err(failed)?;
        paths.push(path);
    }
    manifest.write(dir).map_err(failed)?;
    clear(dir, &manifest);
    Ok(Split::Into(Done { dir: dir.clone(), pieces: paths, time: began.elapsed() }))
}

/// Splits a piece of a directory, which nobody explores meanwhile. What has been explored of it is its first part's.
///
/// # Errors
/// As [`split`]; or nothing is left of it, or all pieces are to be split again.
pub fn divide(args: &DividePiece, search: &Searched) -> Result<Done, Failure> {
    let began = Instant::now();
    let file = std::path::absolute(&args.file)?;
    let dir = files::directory_of(&file).to_path_buf();
    let failed = |e: std::io::Error| Failure::environment(format!("{}: {e}", escape(&dir)));
    // Two that split pieces of one directory do so one after the other.
    let _alone = Flock::lock(File::open(&dir).map_err(failed)?, FlockArg::LockExclusive)
        .map_err(|(_, e)| failed(std::io::Error::from(e)))?;
    let mut manifest = Manifest::of(&dir)?;
    let state = state_of(&file)?;
    let Some(piece) = piece_of(&state).cloned().filter(|piece| manifest.pieces.contains(&piece.name)) else {
        return Err(Failure::environment(format!("{} is no piece of the search in {}", escape(&file), escape(&dir))));
    };
    if state.is_over() || state.is_outdated() {
        let why = if state.is_over() { "nothing is left of it" } else { "it is outdated (vsrun pieces split --again)" };
        return Err(Failure::environment(format!("{} is not split: {why}", escape(&file))));
    }
    let old = state.saved.header;
    std::env::set_current_dir(&old.program.cwd).map_err(|e| {
        Failure::environment(format!("the program runs in {}, which is not there: {e}", escape(&old.program.cwd)))
    })?;
    let of = Of::Again(state.saved.search, args.into as usize);
    let (pieces, transitions, fresh) = parts(&search.config, of, &old.sharing)?;
    let begun = state.search.transitions() > 0;
    let names = manifest.divide(&piece.name, pieces.len(), transitions);
    let mut paths = Vec::new();
    for (n, (name, bytes)) in names.into_iter().zip(pieces).enumerate() {
        let path = piece_file(&dir, &name);
        let of = Some(Piece { name, words: piece.words.clone() });
        let header = if n == 0 && begun { &old } else { &fresh };
        let header = Header { piece: of, ..header.clone() };
        write(&path, &Saved { header, search: bytes }.to_bytes()).map_err(failed)?;
        paths.push(path);
    }
    manifest.write(&dir).map_err(failed)?;
    clear(&dir, &manifest);
    Ok(Done { dir, pieces: paths, time: began.elapsed() })
}

/// What a look shows.
#[allow(clippy::large_enum_variant)]
enum Looked {
    Over(Summary),
    Known(Sharing),
}

/// Explores for a while, for objects that are shared, and bugs that are found soon.
fn look(args: &SplitPieces, config: &Config) -> Result<Looked, Failure> {
    let mut config = Config { draws: true, ..config.clone() };
    config.bounds.time = Some(args.look);
    let (summary, sharing) = match explore_part(&config, Of::Whole) {
        // The program had not come to its main by then.
        Err(failure) if failure.is_interrupted() && !tracee::interrupted() => {
            return Ok(Looked::Known(Sharing::new(&config)?));
        }
        looked => {
            let looked = looked?;
            (looked.summary, looked.sharing)
        }
    };
    let ends = summary.is_complete() || !summary.bugs.is_empty() && !config.keep_going || summary.exit_code() == 2;
    Ok(if ends { Looked::Over(summary) } else { Looked::Known(sharing) })
}

/// How often the search in the directory has been split, and what its pieces know of objects.
fn known_by_pieces(dir: &Path) -> Result<(u32, Sharing), Failure> {
    let manifest = Manifest::of(dir)?;
    let mut states = manifest.states(dir)?.into_iter().map(|state| state.saved.header.sharing);
    let mut known = states.next().unwrap_or_default();
    states.for_each(|sharing| known.join(&sharing));
    Ok((manifest.turn, known))
}

/// The pieces, as searches are saved, the transitions above them, and the rest of what is saved with each.
fn parts(config: &Config, of: Of, known: &Sharing) -> Result<(Vec<Vec<u8>>, u64, Header), Failure> {
    // Bugs on the way are the pieces' too.
    let config = Config { keep_going: true, shrink: Duration::ZERO, ..config.clone() };
    let (mut setting, input) = begin(&config, of)?;
    let mut state = prepare(&mut setting)?;
    let other = |name| Failure::own(format!("vsrun bug: {name} differs from the look"));
    state.sharing.resume(&known.at_a_beginning()).map_err(other)?;
    divide_memory(&mut setting.spec, &config, 1);
    let shared = Shared::new(&setting, input, state);
    shared.run(&[cpus_for(1).first().copied()], false, None)?;
    let mut state = shared.into_state();
    state.progress.clear();
    if let Some(obstacle) = state.obstacle {
        return Err(Failure { code: if obstacle.kind.is_of_program() { 1 } else { 2 }, message: obstacle.summary });
    }
    if state.stop == Some(Stop::Bound(Reason::Again)) {
        let why = "objects turned out to be shared that were not when the search was split: vsrun pieces split --again";
        return Err(Failure::environment(why));
    }
    if state.stop != Some(Stop::Over) {
        return Err(Failure::interrupted("the search was not split: interrupted"));
    }
    let differs = "the search cannot be split: executions do not depend on their schedules alone";
    let saved = state.search.save().ok_or_else(|| Failure::environment(differs))?;
    let bug = |e| Failure::own(format!("vsrun bug: pieces: {e}"));
    let pieces = search::Split::pieces_of(&saved).map_err(bug)?;
    Ok((pieces, state.search.transitions(), header(&setting, &state.sharing)))
}

/// Nothing is counted yet.
fn header(setting: &Setting, sharing: &Sharing) -> Header {
    let nothing = (&Counts::default(), &Outcomes::default(), &[][..]);
    Header::new(setting, &sharing.at_a_beginning(), nothing, 0.0, [].iter())
}
