//! Which files a program uses, as a few executions show it: to pack them.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use vsrun_model::arena::Policy;

use super::failure::Failure;
use super::setting::{memory_of_each, spec_of};
use crate::binary::Mapping;
use crate::config::Config;
use crate::runtime::streams::Input;
use crate::runtime::{tracee, Spec, Worker};
use crate::scenario::{Client, Program};
use crate::schedule::Schedule;

/// Executions at the most: one as it comes, then random ones.
const MOST: u64 = 50;

/// What a program is and uses.
pub struct Used {
    /// It itself.
    pub program: Program,
    /// The processes beside it.
    pub with: Vec<Client>,
    /// Names that it has used, and the files that it has mapped at its main: absolute, whatever there is at them.
    pub names: BTreeSet<PathBuf>,
    /// Executions that have shown them.
    pub executions: u64,
}

/// Runs the program for that long. What it writes goes to the private layer of each execution.
///
/// # Errors
/// It cannot be run.
pub fn names_used(config: &Config, look: Duration) -> Result<Used, Failure> {
    let until = Instant::now().checked_add(look);
    let (spec, _) = spec_of(config)?;
    let memory = memory_of_each(config.memory_size(), 1);
    let mut spec = Spec { memory, tells_names: true, watch: None, ..spec };
    spec.options.real_files = false;
    let (program, with) = (spec.program.clone(), spec.options.with.clone());
    let mut worker = Worker::start(spec, Input::prepare(false)?, None)?;
    let maps = std::fs::read(format!("/proc/{}/maps", worker.root_pid()))?;
    let mut names: BTreeSet<PathBuf> =
        Mapping::parse_all(&maps).iter().filter_map(|map| map.file().map(PathBuf::from)).collect();
    let mut executions = 0;
    while executions < MOST {
        let policy = if executions == 0 { Policy::STAY } else { Policy::RANDOM };
        // The first one may be long: half of the packs would be for nothing without it.
        worker.break_off(until.map(|until| if executions == 0 { until + look } else { until }));
        worker.run(&Schedule { policy, seed: executions, ..Schedule::default() })?;
        executions += 1;
        if tracee::interrupted() {
            return Err(Failure::interrupted("interrupted: nothing was packed"));
        }
        if until.is_none_or(|until| Instant::now() >= until) {
            break;
        }
    }
    names.extend(worker.names_told()?);
    Ok(Used { program, with, names, executions })
}
