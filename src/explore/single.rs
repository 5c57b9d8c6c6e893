//! One execution that is looked at in full, bug or not: that of a scenario (`vsrun timeline`), and that of a program as it comes
//! (`vsrun trace`).

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use vsrun_model::arena::{Policy, MAX_SEEN};
use vsrun_model::Uid;

use super::failure::Failure;
use super::replay::{difference, input_of, load, schedule_of, spec_of, undisturbed};
use super::setting::{memory_of_each, output_file, spec_of as spec_of_config};
use crate::config::{Timeline, Trace as TraceArgs};
use crate::finding::{Finding, ProgramStatus};
use crate::race::{arrows, Arrow};
use crate::runtime::halt::Halt;
use crate::runtime::streams::Input;
use crate::runtime::{cpus_for, Inspector, Spec, Worker};
use crate::scenario::Scenario;
use crate::schedule::Schedule;

/// More steps than these have no arrows: what happened before each of them would take too much memory.
const MOST_ORDERED: usize = 200_000;

/// One execution.
pub struct Single {
    /// What was seen at its end.
    pub finding: Finding,
    /// What came directly before what, by indices of its steps; of few enough.
    pub arrows: Vec<Arrow>,
    /// What the program printed.
    pub printed: Vec<u8>,
    /// How the first process of the program ended, if it did.
    pub status: Option<ProgramStatus>,
    /// What was run: the arguments, the name first.
    pub program: Vec<OsString>,
    /// Kinds of calls that went to the kernel by the user's wish, bits of [`vsrun_model::calls::KINDS`].
    pub uncontrolled: u32,
}

impl Single {
    /// Runs a schedule; with arrows if that is `drawn`. Of a race the identity.
    fn look(worker: &mut Worker, schedule: &Schedule, (drawn, race): (bool, Option<u64>)) -> Result<Single, Failure> {
        let mut inspector = Inspector::default();
        inspector.know_root(worker.root_pid());
        let (finding, trace) = worker.examine_all(&mut inspector, schedule, race)?;
        let ordered = drawn && trace.steps.len() <= MOST_ORDERED;
        let mut printed = Vec::new();
        worker.output.copy_to(&mut printed)?;
        Ok(Single {
            arrows: if ordered { arrows(&trace) } else { Vec::new() },
            finding,
            printed,
            status: worker.status().map(ProgramStatus::from_wait),
            program: Vec::new(),
            uncontrolled: worker.let_through(),
        })
    }
}

/// `vsrun timeline FILE`: the execution of a scenario, with what is needed for a picture.
///
/// # Errors
/// Those of [`super::replay()`]; and the replay came to something else than the scenario records.
pub fn timeline(args: &Timeline) -> Result<Single, Failure> {
    let (scenario, _) = load(&args.file, args.trust, false)?;
    let mut worker = Worker::start(spec_of(&scenario, &[]), input_of(&scenario)?, None)?;
    let race = (scenario.bug.kind == crate::finding::BugKind::Race).then_some(scenario.bug.identity);
    let single = Single::look(&mut worker, &told_in_full(&scenario), (true, race))?;
    undisturbed(&single.finding)?;
    match difference(&scenario, &single.finding) {
        Some(line) => Err(Failure::own(line)),
        None => Ok(Single { program: scenario.program.argv.clone(), ..single }),
    }
}

/// The schedule of a scenario, with what was pending in all states, which tells who created and woke whom.
fn told_in_full(scenario: &Scenario) -> Schedule {
    let schedule = schedule_of(scenario);
    let threads: BTreeSet<Uid> = scenario.steps.iter().map(|step| step.thread).collect();
    // There may be others that never move.
    let room = schedule.prefix.len() * (threads.len() + 8) < MAX_SEEN / 4;
    // Where memory is watched it is recorded in any case, and to ask for it means more than that.
    let record = room && scenario.then.is_none() && super::setting::watch_for(scenario).is_none();
    Schedule { record, record_back: if record { schedule.prefix.len() as u32 } else { 0 }, ..schedule }
}

/// `vsrun trace CMD`: one execution of a program.
///
/// # Errors
/// The program cannot be run, or not be traced.
pub fn trace(args: &TraceArgs) -> Result<Single, Failure> {
    let config = &args.config;
    let (spec, _) = spec_of_config(config)?;
    let halt = Arc::<Halt>::default();
    let spec = Spec { memory: memory_of_each(config.memory_size(), 1), ..spec };
    let mut worker =
        Worker::start_on(cpus_for(1).first().copied(), Arc::clone(&halt), spec, Input::prepare(true)?, None)?;
    halt.put_off(config.bounds.time.and_then(|time| Instant::now().checked_add(time)));
    let schedule = match args.seed {
        Some(seed) => Schedule { policy: Policy::RANDOM, seed, ..Schedule::default() },
        None => Schedule::default(),
    };
    let mut shown = output_file(config.output.as_deref())?;
    let single = Single::look(&mut worker, &schedule, (false, None))?;
    shown.write_all(&single.printed)?;
    shown.flush()?;
    Ok(Single { program: config.program.clone(), ..single })
}
