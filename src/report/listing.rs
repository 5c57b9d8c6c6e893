//! What `vsrun trace` prints: the visible operations of one execution, and how it ended.

use std::fmt::Write;

use serde_json::{json, Value};

use super::places::{add_line, brief};
use super::terminal::Paint;
use super::text;
use crate::base::text::one_line;
use crate::finding::{
    BugKind, Ending, Finding, Names, People, PlaceView, ProgramStatus, StepView, ThreadStatus, Words,
};
use crate::incomplete::uncontrolled;
use vsrun_model::{End, Kind};

/// A column is not wider than this: longer text moves what is behind it.
const WIDEST: usize = 56;

/// How an execution came to its end, in one word.
pub(crate) fn end(found: &Finding) -> &'static str {
    match (found.kind, &found.ending, found.end) {
        (Some(kind), ..) => kind.name(),
        (None, Ending::Interrupted, _) => "interrupted",
        (None, Ending::Modelled, End::FINISHED) => "finished",
        (None, Ending::Modelled, End::DEPTH) => "depth",
        (None, Ending::Modelled, End::WAITS_OUTSIDE) => "waits-outside",
        (None, Ending::Outside(_) | Ending::Memory { .. }, _) => "environment",
        (None, ..) => "error",
    }
}

/// The exit status: 0: the execution came to its end without a bug; 1: a bug; 2: it could not be run to its end; 3: it was cut.
pub fn exit_code(found: &Finding) -> i32 {
    match (found.kind.map(BugKind::is_of_program), end(found)) {
        (Some(true), _) => 1,
        (None, "finished" | "waits-outside") => 0,
        (None, "depth" | "interrupted") => 3,
        _ => 2,
    }
}

/// That a call returns, with no signal to be handled, says nothing.
fn told(found: &Finding) -> impl Iterator<Item = (&StepView, u64)> {
    found.steps.iter().zip(1..).filter(|(step, _)| step.op.kind != Kind::RETURN || step.op.signals != 0)
}

/// One line a step: number, thread, operation, and where in the program. Then how it ended, with calls of these kinds let through to the kernel.
pub fn text(found: &Finding, (status, kinds): (Option<ProgramStatus>, u32), colours: bool) -> String {
    let (paint, people) = (Paint(colours), &People::of(found));
    let rows: Vec<[String; 4]> = told(found)
        .map(|(step, n)| {
            let note = step.note.as_ref().map_or_else(String::new, |note| format!("  ({})", note.render(people)));
            let place = step.at.as_ref().and_then(brief).unwrap_or_default();
            let operation = format!("{}{note}", step.text.render(people));
            [n.to_string(), one_line(&people.mover(step.thread)), one_line(&operation), one_line(&place)]
        })
        .collect();
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).filter(|w| *w <= WIDEST).max().unwrap_or(0);
    let (numbers, names, operations) = (width(0), width(1), width(2));
    let mut out = text::uncontrolled(kinds);
    for [n, who, operation, place] in &rows {
        let line = format!("{n:>numbers$}  {who:names$}  {operation:operations$}  {place}");
        let _ = writeln!(out, "{}", line.trim_end());
    }
    if rows.is_empty() {
        out.push_str("no visible operations: there was never more than one thread\n");
    }
    if found.unrecorded > 0 {
        let _ = writeln!(out, "and {} more that were not recorded", found.unrecorded);
    }
    out + &ending((found, people), status, paint)
}

/// How it ended, and where the threads are that are left.
fn ending((found, people): (&Finding, &People), status: Option<ProgramStatus>, paint: Paint) -> String {
    let mut out = String::new();
    let line = one_line(&found.summary.render(people));
    let _ = match found.kind {
        Some(kind) => writeln!(out, "{}: {line}", paint.bad(kind.name())),
        None => writeln!(out, "{}: {line}", paint.head("end")),
    };
    let texts = |all: &[Words]| all.iter().map(|words| words.render(people)).collect::<Vec<_>>().join("; ");
    for (t, thread) in (0..).zip(&found.threads).filter(|(_, thread)| thread.status != ThreadStatus::Exited) {
        let Some(pending) = &thread.pending else { continue };
        let at =
            PlaceView::of_program(&thread.frames).and_then(brief).map_or_else(String::new, |at| format!(" in {at}"));
        let who = people.thread(t);
        let waits = if thread.waits_for.is_empty() {
            String::new()
        } else {
            format!(", waits for {}", texts(&thread.waits_for))
        };
        let _ = writeln!(out, "  {}", one_line(&format!("{who} is at {}{at}{waits}", pending.text.render(people))));
    }
    match status {
        Some(ProgramStatus::Exit(code)) => out + &format!("the program exited with status {code}\n"),
        Some(ProgramStatus::Signal(signal)) => out + &format!("the program was ended by signal {signal}\n"),
        None => out,
    }
}

/// The same for programs: an object a line, the last one about the end.
pub fn json(found: &Finding, (status, kinds): (Option<ProgramStatus>, u32)) -> String {
    let (mut out, people) = (String::new(), &People::of(found));
    for (step, n) in told(found) {
        let thread = found.threads.iter().find(|thread| thread.uid == step.thread);
        let mut object = json!({
            "step": n, "thread": step.thread.to_string(), "name": people.mover(step.thread),
            "process": thread.and_then(|thread| found.process_of(thread)).map(|process| process.vpid),
            "kind": step.op.kind.row().name, "text": step.text.render(people), "value": step.value, "alternatives": step.alternatives,
        });
        if let Some(note) = &step.note {
            object["note"] = note.render(people).into();
        }
        if let Some(woken) = &step.woken {
            object["woken"] = woken.iter().map(|&t| Value::from(found.thread(t))).collect();
        }
        if let Some(at) = &step.at {
            object["place"] = at.by_symbol().into();
            add_line(&mut object, at);
        }
        let _ = writeln!(out, "{object}");
    }
    let mut last = json!({
        "vsrun": env!("CARGO_PKG_VERSION"), "end": end(found), "summary": found.line(), "transitions": found.transitions(),
        "unrecorded": found.unrecorded, "program_status": status,
    });
    if let Some(line) = uncontrolled(kinds) {
        last["uncontrolled"] = line.into();
    }
    let _ = writeln!(out, "{last}");
    out
}
