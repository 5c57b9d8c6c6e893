//! The table of outcomes: how often executions that ran to their end came to what, and what is not the same.

use std::fmt::Write;

use serde_json::{json, Value};

use super::terminal::shell_path;
use crate::base::text::one_line;
use crate::finding::{OutcomeView, Outcomes, Printed, ProgramStatus};

/// Lines for people, each with its line end.
pub fn lines(outcomes: &Outcomes) -> String {
    let executions = match outcomes.executions {
        1 => "the execution that ran to its end".to_string(),
        n => format!("{n} executions that ran to their end"),
    };
    let mut out = format!("  Outcomes of {executions}: how often, how the first process ended, what was printed\n");
    let of = |row: &OutcomeView| row.times.map_or_else(|| "?".to_string(), |n| format!("x{n}"));
    let often = outcomes.table.iter().map(|row| of(row).len()).max().unwrap_or(0);
    let digits = outcomes.table.len().to_string().len();
    let status = outcomes.table.iter().map(|row| ended(row).len()).max().unwrap_or(0);
    let shown = outcomes.table.first().and_then(|row| match row.printed {
        Printed::Line { number, .. } => Some(number),
        _ => None,
    });
    for (n, row) in outcomes.table.iter().enumerate() {
        let (times, how) = (of(row), ended(row));
        let what = printed(row, n > 0, shown);
        let _ = writeln!(out, "    {:>digits$}  {times:>often$}  {how:status$}  {}", n + 1, one_line(&what));
        if let Some(path) = &row.scenario {
            let _ = writeln!(out, "    {:digits$}  {:often$}  scenario: {}", "", "", shell_path(path));
        }
    }
    let rest = outcomes.different.saturating_sub(outcomes.table.len() as u64);
    if outcomes.overflow {
        let told = outcomes.different;
        let _ = writeln!(out, "    there are more: only {told} are told apart, so how often each came is not known");
    } else if rest > 0 {
        let _ = writeln!(out, "    and {rest} more; shown are those to which the shortest executions lead");
    }
    out.push_str("    (the order in which threads print where nobody reads it is not explored; files that they write are not compared)\n");
    if outcomes.table.len() > 1 && outcomes.table.iter().all(|row| row.scenario.is_none()) {
        out.push_str("    --save-outcome K writes a scenario of the K-th, for replay and timeline\n");
    }
    out
}

/// How the first process ended.
fn ended(row: &OutcomeView) -> String {
    match row.status {
        Some(ProgramStatus::Exit(code)) => format!("exits with {code}"),
        Some(ProgramStatus::Signal(signal)) => format!("signal {signal}"),
        None => "does not end".to_string(),
    }
}

/// What is printed; the first outcome is `shown` with that line.
fn printed(row: &OutcomeView, beside: bool, shown: Option<u64>) -> String {
    let quoted = |text: &Option<String>| match text {
        Some(text) => format!("\"{text}\""),
        None => "nothing more".to_string(),
    };
    match &row.printed {
        Printed::Nothing => "prints nothing".to_string(),
        Printed::Same => "prints the same as 1".to_string(),
        Printed::Beyond(bytes) => format!("prints the same as 1 in its first {bytes} bytes, and something else later"),
        Printed::Line { number, text, first } => {
            let line = format!("line {number}: {}", quoted(text));
            match beside && shown != Some(*number) {
                true => format!("{line} (1: {})", quoted(first)),
                false => line,
            }
        }
    }
}

/// The same for programs.
pub fn json(outcomes: &Outcomes) -> Value {
    let row = |(n, row): (usize, &OutcomeView)| {
        let mut object =
            json!({"outcome": n + 1, "times": row.times, "program_status": row.status, "bytes": row.bytes});
        let scenario = row.scenario.as_ref().map(|path| path.to_string_lossy());
        object["scenario"] = scenario.map_or(Value::Null, |path| path.into());
        match &row.printed {
            Printed::Nothing | Printed::Same => object["printed"] = "same".into(),
            Printed::Beyond(bytes) => (object["printed"], object["same_bytes"]) = ("differs".into(), (*bytes).into()),
            Printed::Line { number, text, first } => {
                object["printed"] = if n == 0 { "first" } else { "differs" }.into();
                (object["line"], object["text"]) = ((*number).into(), json!(text));
                if n > 0 {
                    object["instead_of"] = json!(first);
                }
            }
        }
        object
    };
    json!({
        "executions": outcomes.executions, "different": outcomes.different, "more": outcomes.overflow,
        "table": outcomes.table.iter().enumerate().map(row).collect::<Vec<_>>(),
    })
}
