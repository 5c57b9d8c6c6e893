//! All pieces of a directory are explored, by whichever engine, whoever splits them and sums them up.

use std::path::Path;

use super::desk::{tell, Desk, End};
use super::{engine, hands, hq, local, slurm};
use crate::config::{Cluster, Engine};
use crate::explore::{progress, Failure};
use crate::runtime::{cpus, tracee};

/// Pieces for each that is explored at a time.
pub(super) const EACH: u32 = 16;
/// Pieces at a time, as `-n` has them.
const MOST_AT_A_TIME: usize = 1024;
/// Pieces where it is not known how many that will be.
const MANY: u32 = 256;

/// An engine, and how many pieces it has at a time.
type Begun = (Option<Box<dyn engine::Engine>>, Option<usize>);

/// The engine, and how many pieces are explored at a time, if that is known.
pub(super) fn begin(args: &Cluster) -> Result<Begun, Failure> {
    // Children get Ctrl-C too, and end by themselves.
    tracee::catch_requests()?;
    // What would refuse all pieces is said before.
    let mut engine = engine_of(args.engine)?;
    let nodes = match args.engine {
        Engine::Local => Some(args.nodes.map_or_else(|| cpus().len().max(1), |n| n as usize)),
        _ => args.nodes.map(|n| n as usize).or_else(|| handed_over(engine.as_deref_mut())),
    };
    Ok((engine, nodes))
}

/// How many pieces there are to be.
pub fn parts(args: &Cluster, nodes: Option<usize>) -> u32 {
    args.into.unwrap_or(nodes.map_or(MANY, |nodes| EACH * nodes as u32))
}

/// Explores all pieces of the directory, by `own` vsrun, until nothing is left of them or a bug ends it.
pub(super) fn explore_all(
    args: &Cluster,
    (mut engine, nodes): (Option<&mut (dyn engine::Engine + 'static)>, Option<usize>),
    (own, keep_going): (&Path, bool),
    split_again: &mut dyn FnMut() -> Result<(), Failure>,
) -> Result<(), Failure> {
    loop {
        let pieces = progress(&args.dir)?;
        if pieces.iter().any(|piece| piece.outdated) {
            tell("objects turned out to be shared: the search is split again");
            split_again()?;
            continue;
        }
        let desk = Desk::new(pieces, args.grain, keep_going);
        if desk.is_over() {
            return Ok(());
        }
        let desk = match &mut engine {
            None => local::explore_all(desk, args, nodes.unwrap_or(1), own),
            Some(engine) => hands::explore_all(desk, args, *engine, nodes, own)?,
        };
        match desk.ends {
            Some(End::Bug) => return Ok(()),
            Some(End::Failed(failure)) => return Err(failure),
            None => {}
        }
    }
}

/// How many pieces an engine has at a time that says how many it can work on: a quarter more, so that something waits there when a task ends.
pub(super) fn handed_over(engine: Option<&mut (dyn engine::Engine + 'static)>) -> Option<usize> {
    let slots = engine?.slots()?;
    Some((slots + slots.div_ceil(4)).min(MOST_AT_A_TIME))
}

/// The one that is asked for; `None`: processes on this machine.
///
/// # Errors
/// It is not there.
pub(super) fn engine_of(engine: Engine) -> Result<Option<Box<dyn engine::Engine>>, Failure> {
    let failed = |why: String| Failure::environment(format!("--engine {}: {why}", engine.word()));
    Ok(match engine {
        Engine::Local => None,
        Engine::Slurm => Some(Box::new(slurm::Slurm::new().map_err(failed)?)),
        Engine::Hq => Some(Box::new(hq::HyperQueue::new().map_err(failed)?)),
    })
}
