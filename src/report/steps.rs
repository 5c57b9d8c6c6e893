//! The transitions on paper: a column for each thread where that fits, else a list.

use std::collections::BTreeSet;
use std::fmt::Write;

use vsrun_model::{Kind, Uid};

use crate::base::text::one_line;
use crate::finding::{Finding, People, PlaceView, StepView};
use crate::scenario::{Scenario, ScenarioStep};
use crate::words::steps::note;

/// One transition for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepLine {
    /// Its number, from 1.
    pub n: u64,
    /// Who moved.
    pub uid: Option<Uid>,
    /// What it is called.
    pub thread: String,
    /// The operation: `pthread_mutex_lock(lock_a)`.
    pub op: String,
    /// More to say: `alternative 2 of 3`.
    pub note: Option<String>,
    /// The source line that made it: `transfer accounts.c:19`.
    pub place: Option<String>,
    /// It is named in the story.
    pub named: bool,
    /// The end does not depend on it.
    pub beside: bool,
}

/// The transitions of an execution that was looked at. That a call returns, with no signal to be handled, is left out.
pub fn of_finding(found: &Finding, people: &People, named: &BTreeSet<usize>) -> Vec<StepLine> {
    let line = |(step, n): (&StepView, u64)| StepLine {
        n,
        uid: Some(step.thread),
        thread: people.mover(step.thread),
        op: step.text.render(people),
        note: step.note.as_ref().map(|note| note.render(people)),
        place: step.at.as_ref().and_then(PlaceView::brief),
        named: named.contains(&(n as usize - 1)),
        beside: !step.matters,
    };
    let all = found.steps.iter().zip(1..).filter(|(step, _)| step.op.kind != Kind::RETURN || step.op.signals != 0);
    all.map(line).collect()
}

/// The transitions of a scenario.
pub fn of_scenario(scenario: &Scenario) -> Vec<StepLine> {
    let called = |uid: Uid| scenario.people.get(&uid.to_string());
    let name = |uid: Uid| called(uid).map_or_else(|| uid.to_string(), |name| format!("{name} ({uid})"));
    let line = |(step, n): (&ScenarioStep, u64)| StepLine {
        n,
        uid: Some(step.thread),
        thread: name(step.thread),
        op: if step.text.is_empty() { step.op.name().to_string() } else { step.text.clone() },
        note: step.note.clone().or_else(|| note(step.op, step.value, step.alternatives)),
        place: step.at.clone(),
        ..StepLine::default()
    };
    let silent = |step: &ScenarioStep| step.op == Kind::RETURN && step.text == step.op.name() && step.value == 0;
    scenario.steps.iter().zip(1..).filter(|(step, _)| !silent(step)).map(line).collect()
}

/// More steps than this are not shown unless all are asked for.
const MANY: usize = 60;
/// How many are shown then.
const SHOWN: usize = 40;
/// Most columns of the picture.
const MAX_COLUMNS: usize = 6;
/// Widest line of the picture, without the source lines.
const MAX_WIDTH: usize = 100;
/// The same with them.
const MAX_WIDTH_WITH_LINES: usize = 132;
/// Source lines stand in a column of their own, behind operations that are not wider than this.
const LINES_BEHIND: usize = 64;

/// The steps. If there are many: without those on which the end does not depend, and if these are still many, the last of them; with how
/// many earlier ones, and how many others, were left out.
pub fn recent(mut steps: Vec<StepLine>) -> (Vec<StepLine>, usize, usize) {
    let all = steps.len();
    if folded(&steps).len() > MANY {
        steps.retain(|step| step.named || !step.beside);
    }
    let beside = all - steps.len();
    let rows = folded(&steps);
    let left_out = if rows.len() > MANY { rows[..rows.len() - SHOWN].iter().map(|run| run.len()).sum() } else { 0 };
    (steps.split_off(left_out), left_out, beside)
}

/// Fewer equal steps than this are told one by one.
const RUN: usize = 3;

/// Steps that are the same but for their numbers, one behind the other, are one run.
fn folded(steps: &[StepLine]) -> Vec<&[StepLine]> {
    let same = |a: &StepLine, b: &StepLine| {
        let alike = (&a.uid, &a.op, &a.note, &a.place) == (&b.uid, &b.op, &b.note, &b.place);
        alike && b.n == a.n + 1 && a.named == b.named
    };
    let runs = steps.chunk_by(same);
    runs.flat_map(|run| run.chunks(if run.len() < RUN { 1 } else { run.len() })).collect()
}

/// The steps as lines, indented by two, each with its line end: side by side if that fits, else one after the other.
pub fn lines(steps: &[StepLine]) -> String {
    rows(steps.chunks(1).collect())
}

/// The same with runs of equal steps in one line.
pub fn folded_lines(steps: &[StepLine]) -> String {
    rows(folded(steps))
}

fn rows(runs: Vec<&[StepLine]>) -> String {
    let rows: Vec<Row> = runs.into_iter().filter_map(Row::new).collect();
    picture(&rows).unwrap_or_else(|| list(&rows))
}

struct Row {
    /// Its number, or the first and the last of a run.
    n: String,
    named: bool,
    uid: Option<Uid>,
    thread: String,
    text: String,
    /// Its source line; empty if that is not known.
    place: String,
}

impl Row {
    fn new(run: &[StepLine]) -> Option<Row> {
        let (step, last) = (run.first()?, run.last()?);
        let note = step.note.as_ref().map_or_else(String::new, |n| format!("  ({n})"));
        let (n, times) = match run.len() {
            1 => (step.n.to_string(), String::new()),
            times => (format!("{}-{}", step.n, last.n), format!("  x{times}")),
        };
        let text = one_line(&format!("{}{note}{times}", step.op));
        let place = step.place.as_deref().map_or_else(String::new, one_line);
        Some(Row { n, named: step.named, uid: step.uid, thread: one_line(&step.thread), text, place })
    }

    /// What stands before its number.
    fn mark(&self) -> &'static str {
        if self.named {
            "> "
        } else {
            "  "
        }
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// A column for each thread, time going down. `None`: one thread only, too many, or too wide.
fn picture(rows: &[Row]) -> Option<String> {
    let mut threads: Vec<(Option<Uid>, &str)> = rows.iter().map(|row| (row.uid, row.thread.as_str())).collect();
    threads.sort_unstable();
    threads.dedup();
    let threads: Vec<&str> = threads.into_iter().map(|(_, name)| name).collect();
    if !(2..=MAX_COLUMNS).contains(&threads.len()) {
        return None;
    }
    let widest = |thread: &&str| rows.iter().filter(|r| r.thread == *thread).map(|r| width(&r.text)).max().unwrap_or(0);
    let widths: Vec<usize> = threads.iter().map(|t| widest(t).max(width(t))).collect();
    let number = number_width(rows);
    let columns = 2 + number + widths.iter().map(|w| 2 + w).sum::<usize>();
    let places = rows.iter().map(|row| width(&row.place)).max().unwrap_or(0);
    if columns > MAX_WIDTH || columns + 2 + places > MAX_WIDTH_WITH_LINES {
        return None;
    }
    let starts: Vec<usize> = widths.iter().scan(4 + number, |at, w| Some(std::mem::replace(at, *at + w + 2))).collect();
    let mut head = String::new();
    for (thread, start) in threads.iter().zip(&starts) {
        let gap = start - width(&head);
        let _ = write!(head, "{:gap$}{thread}", "");
    }
    let mut out = head + "\n";
    for row in rows {
        let column = threads.iter().position(|t| *t == row.thread).unwrap_or(0);
        let indent = starts[column] - 2 - number;
        let line = format!("{}{:>number$}{:indent$}{}", row.mark(), row.n, "", row.text);
        let _ = writeln!(out, "{}", with_place(line, columns, &row.place));
    }
    Some(out)
}

/// One line a step; the thread is named where it changes.
fn list(rows: &[Row]) -> String {
    let number = number_width(rows);
    let names = rows.iter().map(|row| width(&row.thread)).max().unwrap_or(0);
    let before = 2 + names + 2 + number + 2;
    let texts = rows.iter().map(|row| width(&row.text)).filter(|width| *width <= LINES_BEHIND).max().unwrap_or(0);
    let mut out = String::new();
    let mut last = None;
    for row in rows {
        let name = if last == Some(&row.thread) { "" } else { row.thread.as_str() };
        last = Some(&row.thread);
        let line = format!("{}{name:names$}  {:>number$}  {}", row.mark(), row.n, row.text);
        let _ = writeln!(out, "{}", with_place(line, before + texts, &row.place));
    }
    out
}

/// The line with a source line behind it, from that column on.
fn with_place(line: String, column: usize, place: &str) -> String {
    match place {
        "" => line,
        place => format!("{line}{:1$}  {place}", "", column.saturating_sub(width(&line))),
    }
}

fn number_width(rows: &[Row]) -> usize {
    rows.iter().map(|row| row.n.len()).max().unwrap_or(1).max(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(n: u64, thread: &str, op: &str) -> StepLine {
        StepLine { n, uid: Uid::parse(thread), thread: thread.into(), op: op.into(), ..StepLine::default() }
    }

    #[test]
    fn side_by_side() {
        let mut steps =
            [step(9, "0.2", "lock(b)"), step(10, "0.1", "lock(a)"), step(11, "0.10", "toss"), step(12, "0.2", "x")];
        steps[2].note = Some("2 of 3".into());
        steps[1].op += " = 0";
        let expected = "      0.1          0.2      0.10
   9               lock(b)
  10  lock(a) = 0
  11                        toss  (2 of 3)
  12               x
";
        assert_eq!(lines(&steps), expected);
    }

    #[test]
    fn source_lines_have_a_column_of_their_own() {
        let at = |n, thread: &str, op: &str, place: &str| StepLine { place: Some(place.into()), ..step(n, thread, op) };
        let steps = [at(1, "0.1", "lock(a)", "f a.c:3"), step(2, "0.2", "end()"), at(3, "0.2", "lock(b)", "g a.c:9")];
        let expected = "      0.1      0.2
   1  lock(a)           f a.c:3
   2           end()
   3           lock(b)  g a.c:9
";
        assert_eq!(lines(&steps), expected);
        let long = "x".repeat(LINES_BEHIND + 1);
        let steps = [at(1, "0.1", "lock(a)", "f a.c:3"), at(2, "0.1", &long, "g a.c:9"), step(3, "0.1", "y")];
        let expected = format!("  0.1   1  lock(a)  f a.c:3\n        2  {long}  g a.c:9\n        3  y\n");
        assert_eq!(lines(&steps), expected);
    }

    #[test]
    fn a_list_where_columns_do_not_fit() {
        let long = "pthread_rwlock_timedwrlock(configuration_lock)";
        let steps = [step(1, "0.1", long), step(2, "0.1", long), step(3, "0.1.2", long), step(4, "0", "x\ny\\")];
        let expected =
            format!("  0.1     1  {long}\n          2  {long}\n  0.1.2   3  {long}\n  0       4  x\\x0ay\\\n");
        assert_eq!(lines(&steps), expected);
        let many: Vec<_> = (1..=7).map(|n| step(n, &format!("0.{n}"), "x")).collect();
        assert!(lines(&many).starts_with("  0.1   1  x\n  0.2   2  x\n"));
        assert_eq!(lines(&[]), "");
        assert_eq!(lines(&many[..1]), "  0.1   1  x\n");
    }

    #[test]
    fn no_line_of_the_picture_is_too_wide() {
        for n in 1..80 {
            let op = "x".repeat(n);
            let steps: Vec<_> = (1..=5).map(|t| step(t, &format!("0.{t}"), &op)).collect();
            let text = lines(&steps);
            if text.starts_with("      ") {
                assert!(text.lines().all(|line| width(line) <= MAX_WIDTH));
            }
            assert_eq!(text.starts_with("      "), n <= 17, "{n}");
        }
    }

    #[test]
    fn many_steps_are_cut() {
        let op = |n: u64| format!("x{}", n % 2);
        let steps: Vec<_> = (1..=61).map(|n| step(n, "0", &op(n))).collect();
        assert_eq!(recent(steps[..60].to_vec()).1, 0);
        let (shown, left_out, beside) = recent(steps.clone());
        assert_eq!((shown.len(), left_out, beside, shown[0].n), (40, 21, 0, 22));
        // Rather those on which the end does not depend.
        let beside = |n: u64| n.is_multiple_of(3);
        let some = steps.iter().map(|step| StepLine { beside: beside(step.n), named: step.n == 3, ..step.clone() });
        let (shown, left_out, beside) = recent(some.collect());
        assert_eq!((shown.len(), left_out, beside), (42, 0, 19));
        assert!(shown[2].n == 3 && shown[4].n == 5);
    }

    #[test]
    fn runs_are_one_line() {
        let mut steps: Vec<_> = (1..=70).map(|n| step(n, "0.1", "read(pipe, 1)")).collect();
        steps.push(StepLine { named: true, ..step(71, "0.1", "read(pipe, 1)") });
        steps.push(step(72, "0.1", "end"));
        let (shown, left_out, _) = recent(steps);
        assert_eq!(left_out, 0);
        let expected = "  0.1  1-70  read(pipe, 1)  x70\n>        71  read(pipe, 1)\n         72  end\n";
        assert_eq!(folded_lines(&shown), expected);
    }
}
