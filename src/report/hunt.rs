//! The report on several searches of the same program (`vsrun daemon`): every bug, what each search has covered, one verdict.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

use serde_json::{json, Value};

use super::json::bug as bug_json;
use super::terminal::{shell_path, shell_word, Paint};
use super::text;
use crate::base::text::one_line;
use crate::finding::{Hunt, Phase, Verdict};
use crate::incomplete::undoing;

/// Notes of all searches together, at most; what is more is in the JSON.
const MOST_NOTES: usize = 12;

/// For people.
pub fn text(hunt: &Hunt, colours: bool) -> String {
    let paint = Paint(colours);
    let mut out = String::new();
    for bug in hunt.bugs.iter().chain(&hunt.obstacles) {
        out.push_str(&text::bug(bug, colours));
        out.push('\n');
    }
    let unfinished = hunt.phases.iter().rev().find_map(|phase| phase.summary.unfinished.as_ref());
    let unfinished = unfinished.filter(|_| hunt.bugs.is_empty() && hunt.obstacles.is_empty() && hunt.reached_no_end());
    if let Some(bug) = unfinished {
        out.push_str(&text::bug(bug, colours));
        out.push('\n');
    }
    let words: Vec<_> = hunt.program.iter().map(|arg| shell_word(arg.as_bytes())).collect();
    let verdict = match hunt.verdict() {
        Verdict::Ok if hunt.reached_no_end() => paint.bad("no bug found, but no execution reached its end"),
        Verdict::Ok => paint.good("no bug found"),
        Verdict::Found(kind) if kind.is_of_program() => {
            let n = hunt.bugs.len();
            paint.bad(&format!("{} ({n} bug{})", kind.name(), if n == 1 { "" } else { "s" }))
        }
        Verdict::Found(_) => paint.bad("none, see above"),
    };
    let _ = writeln!(out, "{}: {verdict} in {}", paint.head("Verdict"), words.join(" "));
    for bug in hunt.bugs.iter().filter(|_| hunt.bugs.len() > 1) {
        let file = bug.scenario.as_ref().map_or_else(String::new, |path| format!(" [{}]", shell_path(path)));
        let _ = writeln!(out, "    {}: {}{file}", bug.kind.name(), one_line(&bug.summary));
    }
    let _ = writeln!(out, "  {}", explored(hunt));
    let _ = writeln!(out, "\n{}", paint.head("Searches"));
    let width = hunt.phases.iter().map(|phase| phase.name.len()).max().unwrap_or(0);
    for phase in &hunt.phases {
        let _ = writeln!(out, "  {:width$}  {}", phase.name, line(phase));
    }
    if !hunt.not_run.is_empty() {
        let _ = writeln!(out, "  not run: {}", hunt.not_run.join(", "));
    }
    let notes = notes(hunt);
    for note in notes.iter().take(MOST_NOTES) {
        let _ = writeln!(out, "  note: {}", one_line(note));
    }
    if notes.len() > MOST_NOTES {
        let _ = writeln!(out, "  and {} notes more, see --format json", notes.len() - MOST_NOTES);
    }
    let first = hunt.bugs.iter().chain(unfinished).find_map(|bug| bug.scenario.as_ref());
    out + &first.map_or_else(String::new, |path| format!("scenario: {}\n", shell_path(path)))
}

/// What is claimed of all searches together.
fn explored(hunt: &Hunt) -> String {
    if hunt.is_complete() {
        return "explored completely, by the search 'optimal'".to_string();
    }
    let last = hunt.phases.iter().rev().find(|phase| phase.name == "optimal");
    let why = last.and_then(|phase| undoing(&phase.summary.reasons).next()).map(|reason| reason.sentence().to_string());
    let not_begun = "no search that goes through everything came to its turn";
    let why = match (why, last) {
        (Some(why), _) => why,
        (None, None) => not_begun.to_string(),
        (None, Some(_)) => "memory was not watched".to_string(),
    };
    format!("NOT explored completely; {why}")
}

/// What a search has covered.
fn line(phase: &Phase) -> String {
    let summary = &phase.summary;
    let cut = if summary.cut > 0 { format!(", {} cut off", summary.cut) } else { String::new() };
    let news = match phase.news {
        0 => String::new(),
        1 => ", 1 new bug".to_string(),
        n => format!(", {n} new bugs"),
    };
    let all = if summary.is_complete() { ", all there is" } else { "" };
    let memory = if summary.watched { "memory watched" } else { "memory not watched" };
    format!(
        "{:>6.1} s of {:.1}: {} executions ({} to their end{cut}), {} transitions, deepest {}, {memory}{all}{news}",
        summary.seconds,
        phase.budget.as_secs_f64(),
        summary.executions,
        summary.ended,
        summary.transitions,
        summary.max_depth,
    )
}

/// The notes of all searches; of those that differ in numbers only, the first.
fn notes(hunt: &Hunt) -> Vec<String> {
    let mut known = BTreeSet::new();
    let words = |note: &str| note.replace(|c: char| c.is_ascii_digit(), "");
    let all = hunt.notes.iter().chain(hunt.phases.iter().flat_map(|phase| &phase.summary.notes));
    all.filter(|note| known.insert(words(note))).cloned().collect()
}

/// For programs: one object on one line, without a line end.
pub fn json(hunt: &Hunt) -> String {
    let phase = |phase: &Phase| {
        let summary = &phase.summary;
        let reasons: Vec<_> = undoing(&summary.reasons).map(|reason| reason.name()).collect();
        let seconds = (summary.seconds * 1e6).round() / 1e6;
        json!({
            "search": phase.name, "seconds": seconds, "budget_seconds": phase.budget.as_secs_f64(), "executions": summary.executions,
            "transitions": summary.transitions, "max_depth": summary.max_depth, "reached_end": summary.ended, "cut_off": summary.cut,
            "watched": summary.watched, "complete": summary.is_complete(), "incomplete_reasons": reasons, "new_bugs": phase.news,
        })
    };
    let program: Vec<_> = hunt.program.iter().map(|arg| arg.to_string_lossy()).collect();
    let bugs: Vec<Value> = hunt.bugs.iter().chain(&hunt.obstacles).map(bug_json).collect();
    let object = json!({
        "vsrun": env!("CARGO_PKG_VERSION"), "program": program, "verdict": hunt.verdict().name(), "bugs": bugs,
        "complete": hunt.is_complete(), "searches": hunt.phases.iter().map(phase).collect::<Vec<_>>(), "not_run": hunt.not_run,
        "notes": notes(hunt),
    });
    object.to_string()
}
