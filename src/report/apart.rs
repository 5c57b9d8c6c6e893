//! What makes states differ (`--states=why`), for people and for programs.

use serde_json::{json, Value};

use crate::base::text::count;
use crate::finding::{Apart, Differing, Nearest};

/// As it is told.
pub(super) fn lines(apart: &Apart) -> Vec<String> {
    let most = if apart.more { "the first " } else { "" };
    let mut lines = vec![format!("What makes states differ ({most}{} told apart)", count(apart.states, "state"))];
    if apart.states < 2 {
        return lines;
    }
    if apart.without.is_empty() {
        lines.push("  no variable, stack or object alone: without any one of them there are as many".into());
    }
    let width = apart.without.iter().map(|one| one.what.chars().count()).max().unwrap_or(0);
    lines.extend(
        apart
            .without
            .iter()
            .map(|one| format!("  without {:<width$}  {} would be left", one.what, count(one.states, "state"))),
    );
    if let Some(near) = &apart.nearest {
        let [a, b] = near.at.map(|(execution, transitions)| {
            format!("after {} of execution {execution}", count(transitions, "transition"))
        });
        lines.push(format!("  The two that differ least, in {}: {a}, and {b}", in_what(near)));
        let width = near.words.iter().map(|word| word.what.chars().count()).max().unwrap_or(0);
        lines.extend(
            near.words.iter().map(|word| format!("    {:<width$}  {}", word.what, values(word)).trim_end().to_string()),
        );
        if near.left_out > 0 {
            lines.push(format!("    ({} left out)", near.left_out));
        }
    }
    lines
}

fn in_what(near: &Nearest) -> String {
    match (near.bytes, near.others) {
        (0, n) => count(n, "other thing"),
        (bytes, 0) => count(bytes, "byte"),
        (bytes, n) => format!("{} of memory and {n} more", count(bytes, "byte")),
    }
}

fn values(word: &Differing) -> String {
    let shown = |value: Option<u64>| value.map_or("as at the first choice".to_string(), |value| format!("{value:#x}"));
    word.is.map_or(String::new(), |[a, b]| format!("{} and {}", shown(a), shown(b)))
}

/// The same for programs.
pub(super) fn json(apart: &Apart) -> Value {
    let without: Vec<Value> = apart.without.iter().map(|one| json!({"what": one.what, "states": one.states})).collect();
    let nearest = apart.nearest.as_ref().map(|near| {
        let at = near.at.map(|(execution, transitions)| json!({"execution": execution, "transitions": transitions}));
        let words: Vec<Value> = near.words.iter().map(|word| json!({"what": word.what, "is": word.is})).collect();
        json!({"at": at, "bytes": near.bytes, "others": near.others, "words": words, "left_out": near.left_out})
    });
    json!({"states": apart.states, "more": apart.more, "without": without, "nearest": nearest})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Without;

    fn told() -> Apart {
        let differing = |what: &str, is| Differing { what: what.into(), is };
        Apart {
            states: 12,
            more: false,
            without: vec![
                Without { what: "hits".into(), states: 3 },
                Without { what: "stack of a (0.1)".into(), states: 11 },
            ],
            nearest: Some(Nearest {
                at: [(1, 5), (2, 9)],
                bytes: 2,
                others: 1,
                words: vec![differing("hits", Some([Some(3), None])), differing("registers of a (0.1)", None)],
                left_out: 1,
            }),
        }
    }

    #[test]
    fn what_makes_them_differ_stands_first() {
        let text = lines(&told()).join("\n");
        let wanted = "What makes states differ (12 states told apart)
  without hits              3 states would be left
  without stack of a (0.1)  11 states would be left
  The two that differ least, in 2 bytes of memory and 1 more: after 5 transitions of execution 1, and after 9 transitions of execution 2
    hits                  0x3 and as at the first choice
    registers of a (0.1)
    (1 left out)";
        assert_eq!(text, wanted);
        let alone = Apart { states: 1, ..Apart::default() };
        assert_eq!(lines(&alone), ["What makes states differ (1 state told apart)"]);
        let none = Apart { states: 2, more: true, ..Apart::default() };
        assert!(lines(&none)[1].contains("no variable") && lines(&none)[0].contains("the first 2 states"));
    }

    #[test]
    fn programs_get_all_of_it() {
        let value = json(&told());
        assert_eq!(value["without"][0], json!({"what": "hits", "states": 3}));
        assert_eq!(value["nearest"]["at"][1], json!({"execution": 2, "transitions": 9}));
        assert_eq!(value["nearest"]["words"][0]["is"], json!([3, null]));
        assert_eq!(value["nearest"]["words"][1]["is"], Value::Null);
    }
}
