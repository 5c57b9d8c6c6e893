//! The report for code scanning: SARIF 2.1.0 (OASIS, "Static Analysis Results Interchange Format Version 2.1.0"; sections in the comments).
//! A result for each bug of the program, with the places of its threads as far as source lines are known, and its steps as a thread flow for
//! each thread (3.36 to 3.38). What is not explored, and what vsrun failed of, are notifications (3.58).

use std::collections::BTreeSet;

use serde_json::{json, Value};
use vsrun_model::Uid;

use super::places::places_of_bug;
use super::steps::of_finding;
use crate::finding::{Bug, BugKind, Finding, People, PlaceView, StepView, Summary};
use crate::incomplete::{uncontrolled, undoing};

/// Steps of an execution in the file: the last ones.
const MOST_STEPS: usize = 1000;

/// The rules: kind of bug, and what it is.
const RULES: [(BugKind, &str); 6] = [
    (BugKind::Deadlock, "Threads wait for each other, or nothing can move any more."),
    (BugKind::Assert, "A failed assertion, an abort, a misuse of an object, or an exit status that is not wanted."),
    (BugKind::Crash, "A fatal signal."),
    (BugKind::Race, "Uses of memory that nothing orders, or without a lock that all users hold."),
    (BugKind::Divergence, "A thread runs without ever reaching a visible operation."),
    (BugKind::Livelock, "A process could do nothing in too many states in a row."),
];

/// The file, on one line.
pub fn line(summary: &Summary) -> String {
    let of_program = || summary.bugs.iter().filter(|bug| bug.kind.is_of_program());
    let rules = RULES.map(|(kind, text)| json!({"id": kind.name(), "shortDescription": {"text": text}}));
    let failed = summary.bugs.iter().filter(|bug| !bug.kind.is_of_program());
    let mut notes: Vec<Value> = failed.map(|bug| note("error", &bug.summary)).collect();
    let successful = notes.is_empty();
    notes.extend(uncontrolled(summary.uncontrolled).map(|line| note("warning", &line)));
    notes.extend(
        undoing(&summary.reasons)
            .map(|reason| note("warning", &format!("not explored completely: {}", reason.sentence()))),
    );
    notes.extend(summary.notes.iter().map(|text| note("note", text)));
    let program: Vec<String> = summary.program.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let file = json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "vsrun", "version": env!("CARGO_PKG_VERSION"), "rules": rules}},
            "invocations": [{"executionSuccessful": successful, "exitCode": summary.exit_code(), "toolExecutionNotifications": notes}],
            "results": of_program().map(result).collect::<Vec<_>>(),
            "columnKind": "utf16CodeUnits",
            "properties": {
                "program": program, "search": summary.search, "complete": summary.is_complete(), "executions": summary.executions,
                "transitions": summary.transitions,
            },
        }],
    });
    file.to_string()
}

fn note(level: &str, text: &str) -> Value {
    json!({"level": level, "message": {"text": text}})
}

fn result(bug: &Bug) -> Value {
    let rule = RULES.iter().position(|(kind, _)| *kind == bug.kind);
    let found = bug.finding.as_deref();
    let places = found.map(places_of_bug).unwrap_or_default();
    let called = |thread: &str| match (found, Uid::parse(thread)) {
        (Some(found), Some(uid)) => People::of(found).mover(uid),
        _ => thread.to_string(),
    };
    let mut locations =
        places.iter().map(|place| location(&place.at, &format!("{}: {}", called(&place.thread), place.does)));
    let mut result = json!({
        "ruleId": bug.kind.name(), "level": "error", "message": {"text": bug.summary},
        "properties": {
            "scenario": bug.scenario.as_ref().map(|path| path.to_string_lossy()), "execution": bug.execution, "transitions": bug.transitions,
        },
    });
    if let Some(rule) = rule {
        result["ruleIndex"] = rule.into();
    }
    // 3.27.12: more than one location only where the fault is at all of them; where the others are is related to it.
    if let Some(first) = locations.next() {
        result["locations"] = json!([first]);
    }
    let others: Vec<Value> = locations.collect();
    if !others.is_empty() {
        result["relatedLocations"] = others.into();
    }
    if let Some(found) = found {
        // Bugs with one identity are one (3.27.17).
        result["partialFingerprints"] = json!({"vsrun/v1": format!("{:016x}", found.identity)});
        let flows = thread_flows(found);
        if !flows.is_empty() {
            result["codeFlows"] = json!([{"threadFlows": flows}]);
        }
    }
    result
}

/// A place with what is said of it.
fn location(at: &PlaceView, text: &str) -> Value {
    let mut object = json!({"message": {"text": text}});
    if let Some(line) = at.lines.first() {
        let mut region = json!({});
        if line.line > 0 {
            region["startLine"] = line.line.into();
        }
        if let Some(text) = &line.text {
            region["snippet"] = json!({"text": text});
        }
        object["physicalLocation"] = json!({"artifactLocation": {"uri": uri(&line.file)}});
        if line.line > 0 {
            object["physicalLocation"]["region"] = region;
        }
        if !line.function.is_empty() {
            object["logicalLocations"] = json!([{"name": line.function, "kind": "function"}]);
        }
    }
    object
}

/// A path as a reference (RFC 3986, section 2): an absolute one as a file URI.
fn uri(path: &str) -> String {
    let mut out = String::from(if path.starts_with('/') { "file://" } else { "" });
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b'+' | b',' | b'=' | b'@' => {
                out.push(byte.into());
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// The steps of each thread, with their place in the order of all.
fn thread_flows(found: &Finding) -> Vec<Value> {
    let lines = of_finding(found, &People::of(found), &BTreeSet::new());
    let recent = &lines[lines.len().saturating_sub(MOST_STEPS)..];
    let mut threads: Vec<(Option<Uid>, &str)> = Vec::new();
    for line in recent {
        if !threads.iter().any(|(uid, _)| *uid == line.uid) {
            threads.push((line.uid, &line.thread));
        }
    }
    let step = |n: u64| found.steps.get(n as usize - 1);
    let flow = |(uid, name): &(Option<Uid>, &str)| {
        let own = recent.iter().filter(|line| line.uid == *uid);
        let all = own.map(|line| {
            let text = line.note.as_ref().map_or_else(|| line.op.clone(), |note| format!("{} ({note})", line.op));
            let at = step(line.n).and_then(|step: &StepView| step.at.clone()).unwrap_or_default();
            json!({"executionOrder": line.n, "location": location(&at, &text)})
        });
        let id = uid.map_or_else(|| name.to_string(), |uid| uid.to_string());
        json!({"id": id, "message": {"text": name}, "locations": all.collect::<Vec<_>>()})
    };
    threads.iter().map(flow).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{deadlock, summary};
    use super::*;
    use crate::finding::{LineView, Verdict};
    use crate::incomplete::Reason;

    fn at(file: &str, line: u32) -> PlaceView {
        let line = LineView {
            file: file.into(),
            name: "a.c".into(),
            function: "f".into(),
            line,
            text: Some("lock();".into()),
        };
        PlaceView { lines: vec![line], ..PlaceView::from("f+0x1 (prog)") }
    }

    fn run(summary: &Summary) -> Value {
        let file: Value = serde_json::from_str(&line(summary)).unwrap();
        assert_eq!((file["version"].as_str(), file["runs"].as_array().unwrap().len()), (Some("2.1.0"), 1));
        file["runs"][0].clone()
    }

    #[test]
    fn a_bug_with_its_places_and_steps() {
        let mut bug = deadlock();
        let found = bug.finding.as_mut().unwrap();
        found.threads[1].frames.insert(0, at("/src/a b.c", 11));
        found.threads[2].frames.insert(0, at("a.c", 0));
        found.steps[1].at = Some(at("/src/a b.c", 9));
        let all = Summary {
            verdict: Verdict::Found(bug.kind),
            reasons: [Reason::FirstBug].into(),
            bugs: vec![bug],
            ..summary()
        };
        let run = run(&all);
        let result = &run["results"][0];
        assert_eq!(
            run["tool"]["driver"]["rules"][result["ruleIndex"].as_u64().unwrap() as usize]["id"],
            result["ruleId"]
        );
        let first = &result["locations"][0];
        assert_eq!(first["message"]["text"], "worker#1 (0.1): pthread_mutex_lock(lock_b)");
        assert_eq!(first["physicalLocation"]["artifactLocation"]["uri"], "file:///src/a%20b.c");
        assert_eq!(first["physicalLocation"]["region"], json!({"startLine": 11, "snippet": {"text": "lock();"}}));
        // Code that belongs to no line has no region.
        let other = &result["relatedLocations"][0]["physicalLocation"];
        assert_eq!(*other, json!({"artifactLocation": {"uri": "a.c"}}));
        let flows = result["codeFlows"][0]["threadFlows"].as_array().unwrap();
        assert_eq!(
            (flows.len(), &flows[1]["id"], &flows[1]["locations"][0]["executionOrder"]),
            (2, &json!("0.2"), &json!(2))
        );
        assert_eq!(flows[1]["locations"][0]["location"]["physicalLocation"]["region"]["startLine"], 9);
        assert!(flows[0]["locations"][0]["location"].get("physicalLocation").is_none());
        let said = &run["invocations"][0];
        assert_eq!((&said["executionSuccessful"], &said["exitCode"]), (&json!(true), &json!(1)));
        assert!(said["toolExecutionNotifications"][0]["message"]["text"]
            .as_str()
            .unwrap()
            .starts_with("not explored completely: "));
    }

    #[test]
    fn what_vsrun_failed_of_is_no_result() {
        let run = run(&Summary::failed(&["./prog".into()], "no such file"));
        assert_eq!(run["results"], json!([]));
        assert_eq!(run["invocations"][0]["executionSuccessful"], false);
        assert_eq!(
            run["invocations"][0]["toolExecutionNotifications"][0],
            json!({"level": "error", "message": {"text": "no such file"}})
        );
    }
}
