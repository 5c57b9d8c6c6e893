//! `vsrun cluster`: a search is split, its pieces are explored side by side, and summed up. What the pieces have come to stands in their files alone, so that
//! whoever is killed, this process too, costs no more than the time since it last saved. What explores them is an [`Engine`] that its users have.

mod desk;
mod engine;
mod hands;
mod hq;
mod local;
mod slurm;
pub mod swarm;

use crate::config::{Cluster, Engine, MergePieces, Searched, SplitPieces};
use crate::explore::{merge, progress, split, Failure, Split};
use crate::finding::{self, Summary};
use crate::incomplete::Reason;
use crate::runtime::{cpus, tracee};
use desk::{tell, Desk, End};
use swarm::Swarm;

/// Pieces for each that is explored at a time.
const EACH: u32 = 16;
/// Pieces at a time, as `-n` has them.
const MOST_AT_A_TIME: usize = 1024;
/// Pieces where it is not known how many that will be.
const MANY: u32 = 256;

/// Runs all of it; `again` says whether there are pieces that go on.
///
/// # Errors
/// The program cannot be run, or a piece cannot be explored.
pub fn run(args: &Cluster, search: &Searched, again: bool) -> Result<Summary, Failure> {
    // Children get Ctrl-C too, and end by themselves.
    tracee::catch_requests()?;
    // What would refuse all pieces is said before.
    let mut engine = engine_of(args.engine)?;
    let nodes = match args.engine {
        Engine::Local => Some(args.nodes.map_or_else(|| cpus().len().max(1), |n| n as usize)),
        _ => args.nodes.map(|n| n as usize).or_else(|| handed_over(engine.as_deref_mut())),
    };
    let into = args.into.unwrap_or(nodes.map_or(MANY, |nodes| EACH * nodes as u32));
    let how = SplitPieces { into, dir: args.dir.clone(), look: args.look, search: None };
    if !again {
        if let Split::Over(summary) = split(&how, search, false)? {
            return Ok(summary);
        }
    }
    loop {
        let pieces = progress(&args.dir)?;
        if pieces.iter().any(|piece| piece.outdated) {
            tell("objects turned out to be shared: the search is split again");
            split(&how, search, true)?;
            continue;
        }
        let desk = Desk::new(pieces, args.grain, search.config.keep_going);
        if desk.is_over() {
            break;
        }
        let desk = match &mut engine {
            None => local::explore_all(desk, args, nodes.unwrap_or(1))?,
            Some(engine) => hands::explore_all(desk, args, engine.as_mut(), nodes)?,
        };
        match desk.ends {
            Some(End::Bug) => break,
            Some(End::Failed(failure)) => return Err(failure),
            None => {}
        }
    }
    let (format, scenario_dir) = (args.format, args.scenario_dir.clone());
    merge(&MergePieces { format, scenario_dir, dir: args.dir.clone() }, search.config.clone())
}

/// How many pieces an engine has at a time that says how many it can work on: a quarter more, so that something waits there when a task ends.
fn handed_over(engine: Option<&mut (dyn engine::Engine + 'static)>) -> Option<usize> {
    let slots = engine?.slots()?;
    Some((slots + slots.div_ceil(4)).min(MOST_AT_A_TIME))
}

/// Draws executions by lot, in a directory that has a swarm, until a bound is reached, or a bug is found; sums up.
///
/// # Errors
/// The program cannot be run, or a file of the swarm is damaged.
pub fn draw(args: &Cluster, search: &Searched) -> Result<finding::Swarm, Failure> {
    tracee::catch_requests()?;
    let mut engine = engine_of(args.engine)?;
    let usual = match &engine {
        Some(_) => handed_over(engine.as_deref_mut()).unwrap_or(EACH as usize),
        None => cpus().len().max(1),
    };
    let nodes = args.nodes.map_or(usual, |n| n as usize);
    let swarm = Swarm::open(&args.dir, args.swarm.unwrap_or_default(), nodes)?;
    let desk = Desk::of_swarm(swarm, args.grain, search.config.keep_going);
    let desk = match &mut engine {
        None => local::explore_all(desk, args, nodes)?,
        Some(engine) => hands::explore_all(desk, args, engine.as_mut(), Some(nodes))?,
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

/// The one that is asked for; `None`: processes on this machine.
///
/// # Errors
/// It is not there.
fn engine_of(engine: Engine) -> Result<Option<Box<dyn engine::Engine>>, Failure> {
    let failed = |why: String| Failure::environment(format!("--engine {}: {why}", engine.word()));
    Ok(match engine {
        Engine::Local => None,
        Engine::Slurm => Some(Box::new(slurm::Slurm::new().map_err(failed)?)),
        Engine::Hq => Some(Box::new(hq::HyperQueue::new().map_err(failed)?)),
    })
}
