//! The report on executions drawn by many searches by lot (`vsrun cluster --swarm`).

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde_json::{json, Value};

use super::terminal::{shell_path, shell_word, Paint};
use crate::base::surroundings;
use crate::base::text::one_line;
use crate::finding::{LotKind, LotWorked, Swarm, SwarmBug, Verdict};
use crate::incomplete::undoing;

/// Notes at most; what is more is in the JSON.
const MOST_NOTES: usize = 12;

fn plural(n: u64) -> &'static str {
    if n == 1 {
        ""
    } else {
        "s"
    }
}

/// A swarm was begun in `dir`, and nothing is drawn yet.
pub fn begun(dir: &Path) -> String {
    format!("a swarm in {0}\n  draw:  {1} cluster -o {0}\n", shell_path(dir), surroundings::command())
}

/// For people.
pub fn text(swarm: &Swarm, colours: bool) -> String {
    let paint = Paint(colours);
    let words: Vec<_> = swarm.program.iter().map(|arg| shell_word(arg.as_bytes())).collect();
    let verdict = match swarm.verdict() {
        Verdict::Ok if swarm.all.ended == 0 => paint.bad("no bug found, but no execution reached its end"),
        Verdict::Ok => paint.good("no bug found"),
        Verdict::Found(kind) => {
            let n = swarm.bugs.len() as u64;
            paint.bad(&format!("{} ({n} bug{})", kind.name(), plural(n)))
        }
    };
    let mut out = format!("{}: {verdict} in {}\n", paint.head("Verdict"), words.join(" "));
    for bug in &swarm.bugs {
        bug_lines(&mut out, bug, paint);
    }
    let all = &swarm.all;
    let _ = writeln!(
        out,
        "  NOT explored completely; executions were drawn by lot\n  {} execution{} ({} to their end{}), {} transitions, deepest {}, {} task{}{}, {:.1} s",
        all.executions,
        plural(all.executions),
        all.ended,
        cut(all),
        all.transitions,
        swarm.max_depth,
        all.tasks,
        plural(all.tasks),
        if swarm.left > 0 { format!(" ({} more begun)", swarm.left) } else { String::new() },
        swarm.seconds
    );
    let _ = writeln!(
        out,
        "  covered: {} pair{} of operations, {} of them in both orders; {}",
        swarm.pairs,
        plural(swarm.pairs),
        swarm.both_ways,
        since_new(swarm)
    );
    out.push_str(&missed(swarm));
    table(&mut out, &paint.head("Searches"), &swarm.searches);
    table(&mut out, &paint.head("Faults that could strike"), &swarm.faults);
    for note in swarm.notes.iter().take(MOST_NOTES) {
        let _ = writeln!(out, "  note: {}", one_line(note));
    }
    if swarm.notes.len() > MOST_NOTES {
        let _ = writeln!(out, "  and {} notes more, see --format json", swarm.notes.len() - MOST_NOTES);
    }
    out
}

fn bug_lines(out: &mut String, bug: &SwarmBug, paint: Paint) {
    let faults = if bug.faults.is_empty() { String::new() } else { format!(" with {}", bug.faults.join(",")) };
    let _ = writeln!(out, "    {}: {}", bug.kind.name(), one_line(&bug.summary));
    let _ = writeln!(
        out,
        "      found by {}{faults}, seed {}, in execution {} of task {} ({} transitions); {} task{} found it",
        bug.search,
        bug.seed,
        bug.execution,
        bug.task,
        bug.transitions,
        bug.tasks,
        plural(bug.tasks)
    );
    let _ = match &bug.scenario {
        Some(path) => {
            let command = format!("{} replay {}", surroundings::command(), shell_path(path));
            writeln!(out, "      see it again: {}", paint.copy(&command))
        }
        None => writeln!(out, "      no scenario was written"),
    };
}

fn cut(of: &LotKind) -> String {
    match of.cut {
        0 => String::new(),
        n => format!(", {n} cut off"),
    }
}

fn since_new(swarm: &Swarm) -> String {
    match swarm.pairs {
        0 => "no two operations of different threads were on one object".to_string(),
        _ => format!(
            "the last new order came after {:.1} s, {:.1} s before the end",
            swarm.newest,
            (swarm.seconds - swarm.newest).max(0.0)
        ),
    }
}

/// A chance for people: not smaller than can be told.
fn chance(chance: f64) -> String {
    match chance {
        c if c >= 0.001 => format!("{c:.3}"),
        c if c < 1e-300 => "less than 1e-300".to_string(),
        c => format!("{c:.1e}"),
    }
}

/// What is known of bugs that were not found.
fn missed(swarm: &Swarm) -> String {
    let known: Vec<_> = swarm.missed.iter().filter(|missed| missed.executions > 0).collect();
    if known.is_empty() {
        return "  of bugs that were not found no chance is known: no execution of pct came to its end by priorities alone\n".into();
    }
    let all: Vec<String> = known.iter().map(|m| format!("{} of depth {}", chance(m.chance), m.depth)).collect();
    let range = |(least, most): (u32, u32)| if least == most { most.to_string() } else { format!("{least} to {most}") };
    format!(
        "  chance that a bug that needs no fault was missed, at most: {} ({} executions of pct, {} threads, {} transitions)\n",
        all.join(", "),
        known.iter().map(|m| m.executions).max().unwrap_or(0),
        range(swarm.threads),
        range(swarm.lengths)
    )
}

fn table(out: &mut String, head: &str, kinds: &[LotKind]) {
    if kinds.len() < 2 {
        return;
    }
    let _ = writeln!(out, "\n{head}");
    let width = kinds.iter().map(|kind| kind.name.len()).max().unwrap_or(0);
    for kind in kinds {
        let bugs = if kind.bugs == 0 { String::new() } else { format!(", {} new bug{}", kind.bugs, plural(kind.bugs)) };
        let _ = writeln!(
            out,
            "  {:width$}  {:>3} task{}, {:>6.1} s: {} executions ({} to their end{}), {} new order{}{bugs}",
            kind.name,
            kind.tasks,
            plural(kind.tasks),
            kind.seconds,
            kind.executions,
            kind.ended,
            cut(kind),
            kind.news,
            plural(kind.news)
        );
    }
}

/// For programs: one object on one line, without a line end.
pub fn json(swarm: &Swarm) -> String {
    let seconds = |s: f64| (s * 1e6).round() / 1e6;
    let kind = |name: &str, kind: &LotKind| {
        json!({
            name: kind.name, "tasks": kind.tasks, "executions": kind.executions, "reached_end": kind.ended, "cut_off": kind.cut,
            "transitions": kind.transitions, "seconds": seconds(kind.seconds), "new_orders": kind.news, "new_bugs": kind.bugs,
        })
    };
    let bug = |bug: &SwarmBug| {
        json!({
            "kind": bug.kind.name(), "summary": bug.summary, "scenario": bug.scenario.as_ref().map(|path| path.to_string_lossy()),
            "execution": bug.execution, "transitions": bug.transitions, "task": bug.task, "search": bug.search, "seed": bug.seed,
            "faults": bug.faults, "tasks": bug.tasks,
        })
    };
    let missed: Vec<Value> = swarm
        .missed
        .iter()
        .map(|m| json!({"depth": m.depth, "chance": m.chance, "executions": m.executions}))
        .collect();
    let reasons: Vec<_> = undoing(&swarm.reasons).map(|reason| reason.name()).collect();
    let program: Vec<_> = swarm.program.iter().map(|arg| arg.to_string_lossy()).collect();
    json!({
        "vsrun": env!("CARGO_PKG_VERSION"), "program": program, "verdict": swarm.verdict().name(),
        "bugs": swarm.bugs.iter().map(bug).collect::<Vec<_>>(), "complete": false, "incomplete_reasons": reasons, "watched": swarm.watched,
        "executions": swarm.all.executions, "reached_end": swarm.all.ended, "cut_off": swarm.all.cut, "transitions": swarm.all.transitions,
        "max_depth": swarm.max_depth, "tasks": swarm.all.tasks, "tasks_left": swarm.left, "seconds": seconds(swarm.seconds),
        "pairs": swarm.pairs, "pairs_both_ways": swarm.both_ways, "last_new_order": seconds(swarm.newest),
        "missed": missed, "missed_threads": [swarm.threads.0, swarm.threads.1], "missed_transitions": [swarm.lengths.0, swarm.lengths.1],
        "searches": swarm.searches.iter().map(|k| kind("search", k)).collect::<Vec<_>>(),
        "faults": swarm.faults.iter().map(|k| kind("faults", k)).collect::<Vec<_>>(), "notes": swarm.notes,
    })
    .to_string()
}

/// A task was done.
pub fn worked(worked: &LotWorked) -> String {
    let LotWorked { number, search, seed, executions, transitions, pairs, bugs } = worked;
    let mut out = format!(
        "Task {number}, {search}, seed {seed}: {executions} execution{}, {transitions} transitions, {} pair{} of operations, {} in both orders\n",
        plural(*executions),
        pairs.0,
        plural(pairs.0),
        pairs.1
    );
    for (kind, summary, scenario) in bugs {
        let file = scenario.as_ref().map_or_else(String::new, |name| format!(" [{name}]"));
        let _ = writeln!(out, "  {}: {}{file}", kind.name(), one_line(summary));
    }
    out
}

/// The same as one JSON object.
pub fn worked_json(worked: &LotWorked) -> String {
    let LotWorked { number, search, seed, executions, transitions, pairs, bugs } = worked;
    let bug = |(kind, summary, scenario): &(crate::finding::BugKind, String, Option<String>)| json!({"kind": kind.name(), "summary": summary, "scenario": scenario});
    json!({
        "vsrun": env!("CARGO_PKG_VERSION"), "task": number, "search": search, "seed": seed, "executions": executions, "transitions": transitions,
        "pairs": pairs.0, "pairs_both_ways": pairs.1, "bugs": bugs.iter().map(bug).collect::<Vec<_>>(),
    })
    .to_string()
}
