//! Scenarios of executions that ran to their end (`--save-outcome`).

use std::collections::BTreeSet;
use std::path::PathBuf;

use vsrun_model::End;

use super::failure::Failure;
use super::found::scenario_of;
use super::outcomes::{Ended, Kept, Outcomes};
use super::setting::Setting;
use super::unfinished::bare_step;
use crate::finding::{Bug, BugKind, Ending, Finding, Summary};
use crate::runtime::{Inspector, Worker};
use crate::scenario::{Scenario, Then};

/// Writes those that were asked for, by their numbers in the table; what goes wrong is noted.
pub(super) fn save_outcomes(
    setting: &Setting,
    (worker, inspector): (&mut Worker, &mut Inspector),
    outcomes: &Outcomes,
    summary: &mut Summary,
) {
    let wanted: BTreeSet<usize> = setting.config.save_outcome.iter().map(|&k| k as usize).collect();
    let all = outcomes.in_order();
    let mut own = BTreeSet::new();
    for k in wanted {
        let Some((_, kept)) = k.checked_sub(1).and_then(|k| all.get(k)) else {
            let there = match all.len() {
                0 => "no execution ran to its end".to_string(),
                1 => "all executions that ran to their end had the same outcome".to_string(),
                n => format!("the table has {n} outcomes"),
            };
            summary.notes.push(format!("--save-outcome {k}: {there}"));
            continue;
        };
        match save(setting, worker, inspector, kept, &own) {
            Ok(path) => {
                own.insert(path.clone());
                let row = summary.outcomes.as_mut().and_then(|outcomes| outcomes.table.get_mut(k - 1));
                row.into_iter().for_each(|row| row.scenario = Some(path.clone()));
            }
            Err(failure) => summary.notes.push(format!("--save-outcome {k}: {}", failure.message)),
        }
    }
}

/// Runs the execution that stands for an outcome once more, and writes its scenario; not where one of an earlier run (none of `own`) is the same.
fn save(
    setting: &Setting,
    worker: &mut Worker,
    inspector: &mut Inspector,
    kept: &Kept,
    own: &BTreeSet<PathBuf>,
) -> Result<PathBuf, Failure> {
    worker.use_objects(&kept.best.objects)?;
    let found = worker.examine(inspector, &kept.best.schedule, None)?;
    let seen = match found.ending {
        // There was no time to look at it: its steps have no text.
        Ending::Interrupted => None,
        ref ending if ending.is_environments() => {
            return Err(Failure::environment(format!("environment: {}", found.line())))
        }
        _ if is_end(&found) && Ended::of(worker)?.identity() == kept.ended.identity() => Some(Box::new(found)),
        _ => {
            let line = "the same schedule, run again, came to something else: the program depends on something that vsrun does not control";
            return Err(Failure::own(line.to_string()));
        }
    };
    let is_seen = seen.is_some();
    let line = Bug::error(kept.ended.line(), kept.best.execution, kept.best.transitions);
    let bug = Bug { kind: BugKind::Outcome, finding: seen, ..line };
    let mut written = scenario_of(setting, &kept.best, &bug);
    written.bug.identity = kept.ended.identity();
    if !is_seen {
        written = Scenario {
            steps: kept.best.schedule.prefix.iter().map(bare_step).collect(),
            then: Some(Then::new(&kept.best.schedule)),
            ..written
        };
    }
    let path = written.write(&setting.config.scenario_dir).map_err(|e| Failure::environment(e.to_string()))?;
    Ok(written.unless_known(&path, own).unwrap_or(path))
}

/// The execution ran to its end, and that is no bug.
pub(super) fn is_end(found: &Finding) -> bool {
    found.kind.is_none() && found.ending == Ending::Modelled && found.end == End::FINISHED
}
