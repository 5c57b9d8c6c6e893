//! A task of a swarm: executions drawn by lot for a while, and what they have covered.

use std::path::{Path, PathBuf};

use super::covered::Covered;
use super::failure::Failure;
use super::run::explore_part;
use super::setting::{identity_of, spec_of, Lot, Of};
use crate::base::text::escape;
use crate::config::Config;
use crate::finding::Summary;
use crate::runtime::stay_on_claimed;
use crate::scenario::Program;
use crate::search::Chance;

/// What a task has come to.
pub struct Drawn {
    /// As of any search.
    pub summary: Summary,
    /// What its executions have covered.
    pub covered: Covered,
    /// Seconds after its beginning at which something was new last.
    pub newest: f64,
    /// What its executions could have found.
    pub chances: Vec<Chance>,
    /// What a task of the same kind of search can go on from.
    pub kept: Option<Vec<u8>>,
}

/// The program that a configuration runs, and what tells it from a changed one.
///
/// # Errors
/// It is not there, or cannot be run.
pub fn program_of(config: &Config) -> Result<(Program, serde_json::Value), Failure> {
    let (spec, program) = spec_of(config)?;
    let identity = identity_of(Path::new(&spec.program.exe), &program, &spec.options.with)?;
    Ok((spec.program, identity))
}

/// Draws executions in the directory of the program until a bound of the configuration is reached.
///
/// # Errors
/// The program cannot be run here, or has changed.
pub fn draw(config: &Config, lot: Lot) -> Result<Drawn, Failure> {
    let cwd = PathBuf::from(&lot.program.cwd);
    std::env::set_current_dir(&cwd)
        .map_err(|e| Failure::environment(format!("the program runs in {}, which is not there: {e}", escape(&cwd))))?;
    stay_on_claimed(config.workers.unwrap_or(1) as usize);
    let explored = explore_part(config, Of::Lot(Box::new(lot)))?;
    let covering = explored.covering.unwrap_or_default();
    Ok(Drawn {
        summary: explored.summary,
        covered: covering.covered,
        newest: covering.newest,
        chances: explored.chances,
        kept: explored.kept,
    })
}
