//! What is said of the pieces of a search (`vsrun pieces`).

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{json, Value};

use super::json::bug as bug_json;
use super::terminal::shell_path;
use crate::base::surroundings;
use crate::base::text::one_line;
use crate::finding::Worked;

/// A search was split into pieces in `dir`.
pub fn split(dir: &Path, pieces: &[PathBuf], time: Duration) -> String {
    let n = pieces.len();
    let mut out =
        format!("{n} piece{} in {} ({:.1} s)\n", if n == 1 { "" } else { "s" }, shell_path(dir), time.as_secs_f64());
    if let Some(first) = pieces.first() {
        let _ = writeln!(out, "  explore each:  {} pieces work {}", surroundings::command(), shell_path(first));
    }
    let _ = writeln!(out, "  sum up:        {} pieces merge {}", surroundings::command(), shell_path(dir));
    out
}

/// What has become of a piece.
fn state(worked: &Worked) -> &'static str {
    match () {
        () if worked.outdated => {
            "objects turned out to be shared that were not when the search was split: it is to be split again (vsrun pieces split --again)"
        }
        () if worked.over => "explored",
        () => "something is left of it: the same command goes on",
    }
}

/// A piece was explored.
pub fn worked(worked: &Worked) -> String {
    let Worked { name, executions, sleep_blocked, transitions, bugs, .. } = worked;
    let plural = |n: u64| if n == 1 { "" } else { "s" };
    let mut out = format!(
        "Piece {name}: {}\n  {executions} execution{} ({sleep_blocked} cut off), {transitions} transition{}, {bugs} bug{}\n",
        state(worked),
        plural(*executions),
        plural(*transitions),
        plural(*bugs as u64)
    );
    for bug in worked.summary.iter().flat_map(|summary| &summary.bugs) {
        let file = bug.scenario.as_ref().map_or_else(String::new, |path| format!(" [{}]", shell_path(path)));
        let _ = writeln!(out, "  {}: {}{file}", bug.kind.name(), one_line(&bug.summary));
    }
    out
}

/// The same as one JSON object.
pub fn worked_json(worked: &Worked) -> String {
    let Worked { name, executions, sleep_blocked, transitions, over, outdated, bugs, .. } = worked;
    let found: Vec<Value> = worked.summary.iter().flat_map(|summary| summary.bugs.iter().map(bug_json)).collect();
    json!({
        "vsrun": env!("CARGO_PKG_VERSION"),
        "piece": name,
        "explored": over,
        "outdated": outdated,
        "executions": executions,
        "sleep_blocked": sleep_blocked,
        "transitions": transitions,
        "bugs_so_far": bugs,
        "bugs": found,
    })
    .to_string()
}
