//! What `vsrun explain` prints: where a scenario could still have gone another way.

use std::fmt::Write;
use std::path::Path;

use serde_json::{json, Value};

use super::terminal::Paint;
use crate::base::text::{count, one_line};
use crate::finding::{Explained, Move, Shows, Turn};

/// The text for people.
pub fn text(explained: &Explained, colours: bool) -> String {
    let paint = Paint(colours);
    let kind = explained.bug.0;
    let mut out = format!("{}: {}\n\n", paint.bad(&kind.name().to_uppercase()), one_line(&explained.line));
    let looked_at = match explained.left {
        0 => String::new(),
        n => format!(" Steps 1 to {n} were not looked at, for want of time (--time)."),
    };
    if let Some(both) = &explained.uses {
        let _ = writeln!(
            out,
            "{}",
            paint.head("Both uses are enabled at once where the scenario ends; the other order is the same race.")
        );
        for one in both {
            let at = one.at.as_ref().map_or_else(String::new, |at| format!("  {at}"));
            let _ = writeln!(out, "  {}", one_line(&format!("{}  {}{at}", one.people.0, one.people.1)));
        }
        let before = "The latest step at which another choice puts them in an order:";
        let _ = writeln!(out, "{}", if explained.turn.is_some() { format!("\n{before}") } else { String::new() });
    }
    match &explained.turn {
        None => {
            let _ = match &explained.uses {
                Some(_) => write!(
                    out,
                    "No other choice was found that puts them in an order: whatever is done instead of a step, nothing orders them in all \
                     random continuations."
                ),
                None => write!(
                    out,
                    "No other choice was found that leads away from the bug: whatever is done instead of a step, it shows in all random \
                     continuations."
                ),
            };
            let _ = writeln!(out, "{}{looked_at}", explained.beginning.as_ref().map_or_else(String::new, beginning));
        }
        Some(first) => {
            turn(&mut out, paint, first);
            if let Some(later) = &explained.later {
                let _ = writeln!(out, "\nLater it can be avoided, but need not be:");
                turn(&mut out, paint, later);
            } else if first.shows[1].bug > 0 {
                let _ = writeln!(
                    out,
                    "\nNo earlier step was found at which another choice leads away each time.{looked_at}"
                );
            }
        }
    }
    let _ = writeln!(out, "\n{}, {}.", count(explained.steps, "step"), count(explained.executions, "execution"));
    out
}

/// Whether it is the schedule's doing at all.
fn beginning(shows: &Shows) -> String {
    let other = if shows.other > 0 { format!(", another bug in {}", shows.other) } else { String::new() };
    let counted = format!("it shows in {} of {} random executions from the beginning{other}", shows.bug, shows.all());
    match (shows.bug == shows.all(), shows.away()) {
        (true, _) => format!("\nIt does not depend on the schedule, as far as these tell: {counted}."),
        (false, 0) => format!("\nOf all choices together: {counted}, {} cut before the end.", shows.cut),
        _ => format!("\nIt takes more than one other choice: {counted}."),
    }
}

/// `swap steps 12 and 13 and the bug is gone`, the two operations, and what was counted.
fn turn(out: &mut String, paint: Paint, turn: &Turn) {
    let Turn { taken, instead, shows: [as_it_is, changed] } = turn;
    let step = taken.step.unwrap_or(0);
    let what = match instead.step {
        _ if taken.thread == instead.thread => format!("let step {step} come out another way"),
        Some(later) if later == step + 1 => format!("swap steps {step} and {later}"),
        Some(later) => format!("make step {later} before step {step}"),
        None => format!("let {} go on before step {step}", instead.people.0),
    };
    let gone = match changed.bug {
        0 => "the bug is gone".to_string(),
        n => format!("the bug shows in {n} of {} only", changed.all()),
    };
    let _ = writeln!(out, "{}", paint.head(&format!("{}{}, and {gone}.", what[..1].to_uppercase(), &what[1..])));
    let moved = |label: &str, one: &Move| {
        let at = one.at.as_ref().map_or_else(String::new, |at| format!("  {at}"));
        one_line(&format!("{label}  {}  {}{at}", one.people.0, one.people.1))
    };
    let _ = writeln!(out, "  {}", moved(&format!("step {step:<4}"), taken));
    let label = match instead.step {
        _ if taken.thread == instead.thread => "instead  ".to_string(),
        Some(later) => format!("step {later:<4}"),
        None => "not made ".to_string(),
    };
    let _ = writeln!(out, "  {}", moved(&label, instead));
    let _ = writeln!(out, "  as in the scenario: {}", counted(as_it_is));
    let _ = writeln!(out, "  the other way:      {}", counted(changed));
}

fn counted(shows: &Shows) -> String {
    let mut text = format!("the bug shows in {} of {} random continuations", shows.bug, shows.all());
    if shows.other > 0 {
        let _ = write!(text, ", another bug in {}", shows.other);
    }
    if shows.cut > 0 {
        let _ = write!(text, ", {} cut before the end", shows.cut);
    }
    text
}

/// The same as one JSON object.
pub fn json(explained: &Explained, file: &Path) -> String {
    object(explained, file).to_string()
}

/// That object.
pub fn object(explained: &Explained, file: &Path) -> Value {
    let (kind, summary) = &explained.bug;
    json!({
        "vsrun": env!("CARGO_PKG_VERSION"), "scenario": file.to_string_lossy(), "kind": kind.name(), "summary": summary,
        "steps": explained.steps, "executions": explained.executions, "not_looked_at": explained.left,
        "uses": explained.uses.as_ref().map(|both| both.each_ref().map(use_object)),
        "beginning": explained.beginning.as_ref().map(shows_object),
        "turn": explained.turn.as_ref().map(turn_object), "later": explained.later.as_ref().map(turn_object),
    })
}

fn use_object(one: &Move) -> Value {
    json!({"thread": one.thread, "name": one.people.0, "use": one.text, "at": one.at})
}

fn shows_object(shows: &Shows) -> Value {
    json!({"samples": shows.all(), "bug": shows.bug, "other_bug": shows.other, "no_bug": shows.none, "cut": shows.cut})
}

fn turn_object(turn: &Turn) -> Value {
    let one = |made: &Move, shows: &Shows| {
        json!({
            "step": made.step, "thread": made.thread, "name": made.people.0, "operation": made.text, "at": made.at,
            "samples": shows.all(), "bug": shows.bug, "other_bug": shows.other, "no_bug": shows.none, "cut": shows.cut,
        })
    };
    json!({ "taken": one(&turn.taken, &turn.shows[0]), "instead": one(&turn.instead, &turn.shows[1]) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::BugKind;

    fn explained() -> Explained {
        let made = |step, thread: &str, text: &str| Move {
            step,
            thread: thread.into(),
            text: text.into(),
            people: (format!("f ({thread})"), text.into()),
            at: step.map(|n| format!("f a.c:{n}")),
        };
        let turn = Turn {
            taken: made(Some(12), "0.2", "pthread_mutex_lock(b)"),
            instead: made(Some(13), "0.1", "pthread_mutex_lock(a)"),
            shows: [Shows { bug: 20, ..Shows::default() }, Shows { none: 19, cut: 1, ..Shows::default() }],
        };
        let bug = (BugKind::Deadlock, "2 threads wait".to_string());
        let line = "f and f wait".to_string();
        Explained {
            bug,
            line,
            uses: None,
            steps: 14,
            turn: Some(turn),
            later: None,
            beginning: None,
            left: 0,
            executions: 60,
        }
    }

    #[test]
    fn a_pair_to_swap() {
        let expected = "\
DEADLOCK: f and f wait

Swap steps 12 and 13, and the bug is gone.
  step 12    f (0.2)  pthread_mutex_lock(b)  f a.c:12
  step 13    f (0.1)  pthread_mutex_lock(a)  f a.c:13
  as in the scenario: the bug shows in 20 of 20 random continuations
  the other way:      the bug shows in 0 of 20 random continuations, 1 cut before the end

14 steps, 60 executions.
";
        assert_eq!(text(&explained(), false), expected);
    }

    #[test]
    fn what_is_not_known_is_said() {
        let mut one = explained();
        let turn = one.turn.as_mut().unwrap();
        (turn.instead.step, turn.shows[1].bug, one.left) = (None, 3, 5);
        let said = text(&one, false);
        assert!(said.contains("Let f (0.1) go on before step 12, and the bug shows in 3 of 23 only.\n"), "{said}");
        assert!(said.contains(
            "No earlier step was found at which another choice leads away each time. Steps 1 to 5 were not looked at"
        ));
        one.turn = None;
        assert!(text(&one, false).contains("No other choice was found that leads away"), "{}", text(&one, false));
        one.left = 0;
        one.beginning = Some(Shows { bug: 100, ..Shows::default() });
        let said = text(&one, false);
        assert!(
            said.contains(
                "It does not depend on the schedule, as far as these tell: it shows in 100 of 100 random executions"
            ),
            "{said}"
        );
        one.beginning = Some(Shows { bug: 90, none: 10, ..Shows::default() });
        let said = text(&one, false);
        assert!(
            said.contains("It takes more than one other choice: it shows in 90 of 100 random executions"),
            "{said}"
        );
    }

    #[test]
    fn as_json() {
        let value: Value = serde_json::from_str(&json(&explained(), Path::new("s"))).unwrap();
        assert_eq!(value["turn"]["taken"]["step"], 12);
        assert_eq!(value["turn"]["instead"]["bug"], 0);
        assert_eq!(
            (&value["turn"]["taken"]["name"], &value["turn"]["taken"]["at"]),
            (&json!("f (0.2)"), &json!("f a.c:12"))
        );
        assert_eq!(value["turn"]["instead"]["samples"], 20);
        assert_eq!((value["later"].clone(), value["not_looked_at"].clone()), (Value::Null, json!(0)));
    }
}
