//! `vsrun cluster`: a search is split, its pieces are explored side by side, and summed up. What the pieces have come to stands in their files alone, so that
//! whoever is killed, this process too, costs no more than the time since it last saved. What explores them is an engine that its users have.

mod desk;
mod engine;
mod hands;
mod hq;
mod in_pack;
mod local;
mod rounds;
mod slurm;
pub mod swarm;

use crate::config::{Cluster, MergePieces, Searched, SplitPieces};
use crate::explore::{merge, split, Failure, Split};
use crate::finding::{self, Summary};
use crate::incomplete::Reason;
use crate::runtime::{cpus, tracee};
pub use in_pack::InPack;
pub use rounds::parts;

use desk::{own_file, Desk, End};
use rounds::{begin, engine_of, explore_all, handed_over, EACH};
use swarm::Swarm;

/// Runs all of it; `again` says whether there are pieces that go on.
///
/// # Errors
/// The program cannot be run, or a piece cannot be explored.
pub fn run(args: &Cluster, search: &Searched, again: bool) -> Result<Summary, Failure> {
    let (mut engine, nodes) = begin(args)?;
    let how = SplitPieces { into: parts(args, nodes), dir: args.dir.clone(), look: args.look, search: None };
    if !again {
        if let Split::Over(summary) = split(&how, search, false)? {
            return Ok(summary);
        }
    }
    let mut split_again = || split(&how, search, true).map(drop);
    explore_all(args, (engine.as_deref_mut(), nodes), (&own_file()?, search.config.keep_going), &mut split_again)?;
    let (format, scenario_dir) = (args.format, args.scenario_dir.clone());
    merge(&MergePieces { format, scenario_dir, dir: args.dir.clone() }, search.config.clone())
}

/// Draws executions by lot, in a directory that has a swarm, perhaps one of a pack, until a bound is reached, or a bug is found; sums up.
///
/// # Errors
/// The program cannot be run, or a file of the swarm is damaged.
pub fn draw(args: &Cluster, search: &Searched, pack: Option<&InPack>) -> Result<finding::Swarm, Failure> {
    tracee::catch_requests()?;
    let mut engine = engine_of(args.engine)?;
    let usual = match &engine {
        Some(_) => handed_over(engine.as_deref_mut()).unwrap_or(EACH as usize),
        None => cpus().len().max(1),
    };
    let nodes = args.nodes.map_or(usual, |n| n as usize);
    let swarm = Swarm::open(&args.dir, args.swarm.unwrap_or_default(), nodes)?;
    let desk = Desk::of_swarm(swarm, args.grain, search.config.keep_going);
    let own = pack.map_or_else(own_file, |pack| Ok(pack.vsrun().to_path_buf()))?;
    let desk = match &mut engine {
        None => local::explore_all(desk, args, nodes, &own),
        Some(engine) => hands::explore_all(desk, args, engine.as_mut(), Some(nodes), &own)?,
    };
    let mut report = swarm::sum(&args.dir, &args.scenario_dir)?;
    match desk.ends {
        Some(End::Failed(failure)) if failure.is_interrupted() => {
            report.reasons.insert(Reason::Interrupted);
            report.notes.insert(0, failure.message);
        }
        Some(End::Failed(failure)) => return Err(failure),
        Some(End::Bug) => drop(report.reasons.insert(Reason::FirstBug)),
        None => {}
    }
    Ok(report)
}
