//! A piece is explored.

use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;

use super::super::failure::Failure;
use super::super::run::explore_part;
use super::super::setting::Of;
use super::store::{piece_of, state_file, state_of, State};
use crate::base::files;
use crate::base::text::escape;
use crate::config::{Config, WorkPiece};
use crate::finding::{Summary, Worked};
use crate::runtime::stay_on_claimed;
use crate::search::Search;

/// How often it is looked whether a piece is still wanted.
const LOOK: Duration = Duration::from_millis(500);

fn worked(state: &State, summary: Option<Summary>) -> Worked {
    let header = &state.saved.header;
    Worked {
        name: piece_of(state).map_or_else(String::new, |piece| piece.name.clone()),
        executions: header.executions,
        sleep_blocked: state.search.sleep_blocked(),
        transitions: state.search.transitions(),
        over: state.is_over(),
        outdated: state.is_outdated(),
        summary,
        bugs: header.bugs(),
    }
}

/// Ends this process in the usual way when the file is gone.
pub fn end_without(wanted: PathBuf) {
    std::thread::spawn(move || {
        while wanted.exists() {
            std::thread::sleep(LOOK);
        }
        // Its own number is nobody else's.
        let _ = kill(Pid::this(), Signal::SIGTERM);
    });
}

/// Explores a piece of the search of `config`, from where it was left.
///
/// # Errors
/// It is none, or cannot be run here.
pub fn work(args: &WorkPiece, config: Config) -> Result<Worked, Failure> {
    let file = std::path::absolute(&args.file)?;
    let state = state_of(&file)?;
    if state.is_over() || state.is_outdated() {
        return Ok(worked(&state, None));
    }
    let Some(piece) = piece_of(&state).cloned() else {
        return Err(Failure::environment(format!("{} is no piece of a search", escape(&file))));
    };
    let cwd = PathBuf::from(&state.saved.header.program.cwd);
    std::env::set_current_dir(&cwd)
        .map_err(|e| Failure::environment(format!("the program runs in {}, which is not there: {e}", escape(&cwd))))?;
    let begun = state_file(&file);
    if let Some(wanted) = &args.wanted {
        end_without(std::path::absolute(wanted)?);
    }
    stay_on_claimed(args.workers as usize);
    let mut config = Config {
        resume: Some(if state.untouched { file.clone() } else { begun.clone() }),
        save: Some(begun),
        workers: Some(args.workers),
        scenario_dir: files::directory_of(&file).to_path_buf(),
        ..config
    };
    config.bounds.time = args.time;
    let summary = explore_part(&config, Of::Piece(piece))?.summary;
    Ok(worked(&state_of(&file)?, Some(summary)))
}
