//! `vsrun daemon`: one search after the other, within a time: a short look whether it is small, then random ones, priorities, systematic ones.
//! What they found is put together: each bug once, one verdict.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::failure::Failure;
use super::recipes;
use super::run::explore;
use crate::base::print::complain;
use crate::config::{Config, Daemon, Race, ReportFormat, SearchKind};
use crate::finding::{Bug, BugKind, Hunt, Phase, Summary, Verdict};
use crate::incomplete::Reason;
use crate::search::Bound;

/// A search is not begun for less than this.
const SHORTEST: Duration = Duration::from_millis(500);

/// The searches, each with its part of the time that is left when it begins.
const PLAN: [(SearchKind, f64); 6] = [
    (SearchKind::Optimal, 1.0 / 10.0),
    (SearchKind::Predict, 1.0 / 4.0),
    (SearchKind::Random, 1.0 / 3.0),
    (SearchKind::Pct, 1.0 / 2.0),
    (SearchKind::Bounded(Bound::Preemptions(2)), 1.0 / 2.0),
    (SearchKind::Optimal, 1.0),
];

/// What a search is called in the report.
fn name(search: SearchKind) -> String {
    match search {
        SearchKind::Bounded(bound) => format!("{}={}", search.name(), bound.limit()),
        _ => search.name().to_string(),
    }
}

/// Runs them.
///
/// # Errors
/// The first search could not be run at all; what stops a later one is told with what was found before.
pub fn hunt(args: &Daemon) -> Result<Hunt, Failure> {
    let recipe = recipes::prepare(&args.config)?;
    let base = Config { program: recipe.program, with: recipe.with, ..args.config.clone() };
    let until = Instant::now() + args.time;
    let there = scenarios(&base.scenario_dir);
    let mut hunt = Hunt { program: args.config.program.clone(), notes: recipe.notes, ..Hunt::default() };
    let mut plan = PLAN.into_iter();
    for (search, part) in plan.by_ref() {
        let left = until.saturating_duration_since(Instant::now());
        let budget = left.mul_f64(part).max(SHORTEST).min(left);
        if budget < SHORTEST && !hunt.phases.is_empty() {
            hunt.not_run.push(name(search));
            break;
        }
        let config = phase(&base, search, budget, (args.race, recipe.unwatched));
        let began = Instant::now();
        if config.format == ReportFormat::Text {
            complain(&format!("vsrun: search {} for {:.0} s", name(search), budget.as_secs_f64()));
        }
        let config = Config { keep_going: !args.first, ..config };
        let summary = match explore(&config) {
            Ok(summary) => summary,
            // The time of this search was over before the program had reached its main.
            Err(failure) if failure.is_interrupted() && Instant::now() >= began + budget => {
                hunt.not_run.push(name(search));
                continue;
            }
            Err(failure) if hunt.phases.is_empty() => return Err(failure),
            Err(failure) => {
                hunt.obstacles.push(Bug::failure(&failure.message, failure.code == 4));
                break;
            }
        };
        let found = args.first && summary.bugs.iter().any(|bug| bug.kind.is_of_program());
        let ends = found || is_last(search, &summary);
        take(&mut hunt, name(search), budget, summary, &there);
        if ends {
            break;
        }
    }
    if hunt.phases.is_empty() {
        return Err(Failure::environment(
            "the time (--for) was over before the program had reached main: nothing was explored",
        ));
    }
    hunt.not_run.extend(plan.map(|(search, _)| name(search)));
    hunt.bugs.iter_mut().for_each(|bug| recipes::tell(bug, &base, recipe.sanitized));
    Ok(hunt)
}

/// One search of the program. That a search by lot is slower where memory is watched matters most in the first ones.
fn phase(base: &Config, search: SearchKind, time: Duration, (race, unwatched): (Option<Race>, bool)) -> Config {
    let plain =
        if unwatched || matches!(search, SearchKind::Random | SearchKind::Predict) { Race::Off } else { Race::Explore };
    // Lots have their own part of the plan.
    let mut config = Config { search, draws: false, ..base.clone() };
    config.bounds.time = Some(time);
    config.race = Some(race.unwrap_or(plain));
    config
}

/// After this search no other one makes sense: vsrun was asked to end, the program cannot be run, or there is no more to explore.
fn is_last(search: SearchKind, summary: &Summary) -> bool {
    let failed = matches!(summary.verdict, Verdict::Found(kind) if !kind.is_of_program());
    let ends = |reason: &Reason| matches!(reason, Reason::Interrupted | Reason::Failed | Reason::Unsupported);
    failed || summary.reasons.iter().any(ends) || search == SearchKind::Optimal && summary.is_complete()
}

/// Tells bugs apart that different searches have found.
fn key(bug: &Bug) -> (BugKind, u64) {
    (bug.kind, bug.told_apart())
}

/// Takes what a search came to. A bug that was known before keeps the scenario with fewer transitions, and the file of the other one goes, if this
/// run has written it (it is not one of those that were `there`).
fn take(hunt: &mut Hunt, name: String, budget: Duration, mut summary: Summary, there: &BTreeSet<PathBuf>) {
    let mut news = 0;
    for bug in std::mem::take(&mut summary.bugs) {
        if !bug.kind.is_of_program() {
            hunt.obstacles.push(bug);
            continue;
        }
        let Some(known) = hunt.bugs.iter_mut().find(|known| key(known) == key(&bug)) else {
            hunt.bugs.push(bug);
            news += 1;
            continue;
        };
        let better = bug.scenario.is_some() && (known.scenario.is_none() || bug.transitions < known.transitions);
        let other = if better { std::mem::replace(known, bug) } else { bug };
        let stays = |path: &PathBuf| Some(path) == known.scenario.as_ref() || there.contains(path);
        // It does no harm where it stays.
        other.scenario.filter(|path| !stays(path)).into_iter().for_each(|path| drop(fs::remove_file(path)));
    }
    hunt.phases.push(Phase { name, budget, news, summary });
}

/// The scenarios that are in a directory.
fn scenarios(dir: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| dir.join(entry.file_name()))
        .filter(|path| path.to_string_lossy().ends_with(".vsrun.json"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bug(summary: &str, transitions: u64, scenario: Option<&Path>) -> Bug {
        let scenario = scenario.map(Path::to_path_buf);
        Bug { kind: BugKind::Deadlock, scenario, ..Bug::error(summary, 1, transitions) }
    }

    fn with(bugs: Vec<Bug>) -> Summary {
        Summary { bugs, ..Summary::default() }
    }

    #[test]
    fn a_bug_that_two_searches_find_is_one_with_the_shorter_scenario() {
        let dir = crate::base::testing::TempDir::new();
        let file = |name: &str| {
            let path = dir.0.join(name);
            fs::write(&path, "x").unwrap();
            path
        };
        let (old, one, two, three) = (file("old"), file("1"), file("2"), file("3"));
        let there: BTreeSet<PathBuf> = [old.clone()].into();
        let mut hunt = Hunt::default();
        let second = Duration::from_secs(1);
        take(&mut hunt, "random".into(), second, with(vec![bug("a", 9, Some(&one)), bug("b", 5, Some(&old))]), &there);
        take(&mut hunt, "pct".into(), second, with(vec![bug("a", 4, Some(&two)), bug("b", 3, Some(&three))]), &there);
        assert_eq!(hunt.phases.iter().map(|phase| phase.news).collect::<Vec<_>>(), [2, 0]);
        let of: Vec<_> = hunt.bugs.iter().map(|bug| (bug.transitions, bug.scenario.clone())).collect();
        assert_eq!(of, [(4, Some(two.clone())), (3, Some(three.clone()))]);
        assert!(!one.exists() && old.exists() && two.exists() && three.exists());
        take(&mut hunt, "optimal".into(), second, with(vec![bug("a", 7, Some(&two))]), &there);
        assert!(two.exists());
    }

    #[test]
    fn complete_is_what_a_search_without_bounds_has_explored_with_memory_watched() {
        let phase = |name: &str, reasons: &[Reason], watched| Phase {
            name: name.into(),
            budget: Duration::ZERO,
            news: 0,
            summary: Summary { reasons: reasons.iter().copied().collect(), watched, ..Summary::default() },
        };
        let hunt = |phases: Vec<Phase>| Hunt { phases, ..Hunt::default() };
        let random = || phase("random", &[Reason::Random], false);
        assert_eq!(hunt(vec![random()]).exit_code(), 3);
        assert_eq!(hunt(vec![random(), phase("preemptions=2", &[], true)]).exit_code(), 3);
        assert_eq!(hunt(vec![random(), phase("optimal", &[Reason::Time], true)]).exit_code(), 3);
        assert_eq!(hunt(vec![random(), phase("optimal", &[], false)]).exit_code(), 3);
        assert_eq!(hunt(vec![random(), phase("optimal", &[], true)]).exit_code(), 0);
        let mut found = hunt(vec![random(), phase("optimal", &[], true)]);
        found.obstacles = vec![Bug::error("unsupported", 1, 1)];
        assert_eq!((found.exit_code(), found.is_complete()), (2, false));
        found.bugs = vec![bug("a", 1, None)];
        assert_eq!((found.exit_code(), found.is_complete()), (1, false));
    }
}
