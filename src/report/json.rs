//! The report for programs: the one JSON object of the contract, its keys in the contract's order.

use std::ffi::OsString;
use std::path::Path;

use serde_json::{json, Map, Value};

use super::places::{add_line, of_bug, stack};
use super::{apart, outcomes};
use crate::finding::{
    Bug, BugKind, Finding, GoneView, Names, OriginView, People, ProcessView, ProgramStatus, Summary, ThreadView,
    Touched, Words,
};
use crate::incomplete::{uncontrolled, Reason};

/// The version of the object that `vsrun why` prints: higher once what a key means has changed, or one is gone.
pub const WHY_FORMAT: u32 = 1;

/// The same of the objects that `vsrun debug --format json` prints.
pub const DEBUG_FORMAT: u32 = 1;

/// The object. Names that are not UTF-8 are lossy here; scenarios have the bytes.
pub fn object(summary: &Summary) -> Value {
    let seconds = (summary.seconds * 1e6).round() / 1e6;
    let program: Vec<_> = summary.program.iter().map(|arg| arg.to_string_lossy()).collect();
    let passed: Map<String, Value> = summary.passed_calls.iter().map(|(call, n)| (call.clone(), (*n).into())).collect();
    let (assumptions, incomplete): (Vec<_>, Vec<_>) = summary.reasons.iter().partition(|reason| reason.is_assumption());
    let names = |reasons: Vec<&Reason>| reasons.into_iter().map(|reason| reason.name()).collect::<Vec<_>>();
    let (assumptions, incomplete) = (names(assumptions), names(incomplete));
    let mut object = json!({
        "vsrun": env!("CARGO_PKG_VERSION"),
        "program": program,
        "verdict": summary.verdict.name(),
        "bugs": summary.bugs.iter().map(bug).collect::<Vec<_>>(),
        "complete": summary.is_complete(),
        "incomplete_reason": incomplete.first(),
        "incomplete_reasons": incomplete,
        "assumptions": assumptions,
        "search": summary.search,
        "executions": summary.executions,
        "transitions": summary.transitions,
        "sleep_blocked": summary.sleep_blocked,
        "watched": summary.watched,
        "max_depth": summary.max_depth,
        "workers": summary.workers,
        "seconds": seconds,
        "program_status": summary.program_status,
        "notes": summary.notes,
        "passed_through": passed,
    });
    object["drawn"] = summary.drawn.into();
    object["preemptions_covered"] = summary.covered.map(|covered| covered.preemptions).into();
    object["rolled_back"] = summary.rolled_back.into();
    object["copied"] = summary.copied.into();
    object["from_marks"] = summary.from_marks.into();
    object["marks_without_room"] = summary.marks_without_room.into();
    object["not_rolled_back"] = summary.not_rolled_back.clone().into();
    object["reached_end"] = summary.ended.into();
    object["cut_off"] = summary.cut.into();
    if let Some(unfinished) = &summary.unfinished {
        object["unfinished"] = bug(unfinished);
        if let Some(found) = unfinished.finding.as_ref().filter(|found| !found.rounds.is_empty()) {
            object["unfinished"]["rounds"] = found.rounds.clone().into();
        }
    }
    if let Some(transitions) = summary.broken_off {
        object["broken_off_after"] = transitions.into();
    }
    if let Some(line) = uncontrolled(summary.uncontrolled) {
        object["uncontrolled"] = line.into();
    }
    if !summary.with.is_empty() {
        let words = |command: &Vec<OsString>| -> Vec<String> {
            command.iter().map(|arg| arg.to_string_lossy().into_owned()).collect()
        };
        object["with"] = summary.with.iter().map(words).collect::<Vec<_>>().into();
    }
    if !summary.uses.is_empty() {
        let all = summary.uses.iter().map(|uses| {
            let mut object = touched(&uses.first);
            object["execution"] = uses.execution.into();
            object["times"] = uses.times.into();
            object
        });
        object["uses"] = all.collect();
    }
    if let Some(apart) = &summary.apart {
        object["states"] = apart::json(apart);
    }
    if let Some(outcomes) = &summary.outcomes {
        object["outcomes"] = outcomes::json(outcomes);
    }
    if let Some(traces) = summary.traces {
        object["traces"] = traces.into();
    }
    if let Some(trace) = summary.trace {
        object["trace"] = format!("{trace:016x}").into();
    }
    object
}

/// The object on one line, without a line end.
pub fn line(summary: &Summary) -> String {
    object(summary).to_string()
}

/// The line for a scenario that was replayed and came to something else than it records: the bug that was expected, the kind of
/// the one that came, if one did, and a line about it.
pub fn replayed_otherwise(
    file: &Path,
    (kind, summary): &(BugKind, String),
    came: Option<BugKind>,
    line: &str,
) -> String {
    let line = json!({
        "vsrun": env!("CARGO_PKG_VERSION"), "replayed": false, "kind": kind.name(), "summary": summary,
        "scenario": file.to_string_lossy(), "came": came.map(BugKind::name), "message": line,
    });
    line.to_string()
}

/// The line for a scenario that a changed program has followed: the bug that it records; whether that came (null: one of its kind did that looks
/// different), and the bug that came, if one did; a line about it.
pub fn followed(
    file: &Path,
    (kind, summary): (BugKind, &str),
    (there, came): (Option<bool>, Option<&Bug>),
    line: &str,
) -> String {
    let line = json!({
        "vsrun": env!("CARGO_PKG_VERSION"), "relaxed": true, "still_there": there, "kind": kind.name(), "summary": summary,
        "scenario": file.to_string_lossy(), "came": came.map(bug), "message": line,
    });
    line.to_string()
}

/// The line for a scenario that could not be replayed to its end.
pub fn not_replayed(file: &Path, message: &str) -> String {
    let line = json!({
        "vsrun": env!("CARGO_PKG_VERSION"), "replayed": false, "scenario": file.to_string_lossy(), "message": message,
    });
    line.to_string()
}

/// The line for a scenario that was replayed and has shown its bug again, with calls of these kinds let through.
pub fn replayed(bug: &Bug, kinds: u32) -> String {
    let mut line = json!({
        "vsrun": env!("CARGO_PKG_VERSION"), "replayed": true, "kind": bug.kind.name(), "summary": bug.summary,
        "scenario": bug.scenario.as_ref().map(|path| path.to_string_lossy()), "transitions": bug.transitions,
    });
    if let Some(found) = bug.finding.as_ref().filter(|found| !found.touches.is_empty()) {
        line["uses"] = found.touches.iter().map(touched).collect();
    }
    if let Some(places) = bug.finding.as_deref().and_then(of_bug) {
        line["places"] = places;
    }
    if let Some(said) = uncontrolled(kinds) {
        line["uncontrolled"] = said.into();
    }
    line.to_string()
}

/// The line for the state after so many steps of a scenario, of `of` if that is known: `threads` as in a report, and of each what it is at, waits
/// for and holds, and its call stack; and the last of the `transitions`.
pub fn until(file: &Path, found: &Finding, of: Option<usize>) -> String {
    let mut object = json!({
        "vsrun": env!("CARGO_PKG_VERSION"), "scenario": file.to_string_lossy(), "step": found.transitions(), "steps": of,
    });
    people(&mut object, found);
    for (thread, line) in found.threads.iter().zip(object["threads"].as_array_mut().into_iter().flatten()) {
        add_state(line, thread, found);
    }
    if let Some(step) = found.steps.last() {
        let mut last = json!({"thread": step.thread.to_string(), "does": step.text.render(found)});
        if let Some(at) = &step.at {
            last["at"] = at.by_symbol().into();
            add_line(&mut last, at);
        }
        object["last"] = last;
    }
    if !found.touches.is_empty() {
        object["uses"] = found.touches.iter().map(touched).collect();
    }
    object.to_string()
}

/// What a thread is `at`, `waits_for` and `holds`, and its call stack.
pub(crate) fn add_state(line: &mut Value, thread: &ThreadView, names: &dyn Names) {
    let text = |all: &[Words]| all.iter().map(|words| words.render(names)).collect::<Vec<_>>();
    line["at"] = thread.pending.as_ref().map(|pending| pending.text.render(names)).into();
    line["waits_for"] = text(&thread.waits_for).into();
    line["holds"] = text(&thread.holds).into();
    stack(line, &thread.frames);
}

/// A use of a watched variable: after `step` transitions `thread` does `does` at `place`.
fn touched(touched: &Touched) -> Value {
    let mut object = json!({
        "variable": touched.variable, "size": touched.size, "thread": touched.thread.to_string(), "process": touched.process,
        "step": touched.step, "does": touched.does.name(), "old": touched.old, "new": touched.new,
        "place": touched.place.by_symbol(),
    });
    add_line(&mut object, &touched.place);
    object
}

/// A bug, as a member of `bugs`.
pub(super) fn bug(bug: &Bug) -> Value {
    let mut object = json!({
        "kind": bug.kind.name(),
        "summary": bug.summary,
        "scenario": bug.scenario.as_ref().map(|path| path.to_string_lossy()),
        "execution": bug.execution,
        "transitions": bug.transitions,
    });
    if let Some(how) = &bug.shortened {
        object["shortened"] = json!(how);
    }
    let found = bug.finding.as_deref();
    if let Some(places) = found.and_then(of_bug) {
        object["places"] = places;
    }
    if let Some(found) = found.filter(|found| !found.threads.is_empty()) {
        people(&mut object, found);
    }
    if let Some((found, gone)) = found.and_then(|found| Some((found, found.gone.as_ref()?))) {
        object["freed_memory"] = freed(gone, found);
    }
    if let Some((found, block)) = found.and_then(|found| Some((found, found.race.as_ref()?.allocated.as_ref()?))) {
        object["allocated"] = origin(Some(block), found);
    }
    object
}

/// `threads` by their paths of creation, and `processes` by their numbers, with the names that reports for people use.
fn people(object: &mut Value, found: &Finding) {
    let people = People::of(found);
    let thread = |(t, thread): (u32, &ThreadView)| {
        json!({
            "thread": thread.uid.to_string(), "name": people.name(t), "process": found.process(thread.process),
            "start": thread.start, "status": thread.status,
        })
    };
    object["threads"] = (0..).zip(&found.threads).map(thread).collect();
    let process = |(p, process): (u32, &ProcessView)| {
        json!({
            "process": found.process(p), "name": people.process_name(p), "program": found.program_of(p),
            "forked_by": found.forker(p).map(|t| found.thread(t)),
            "ended": process.over.map(ProgramStatus::from_wait),
        })
    };
    object["processes"] = (0..).zip(&found.processes).map(process).collect();
}

/// A use of freed memory: `use` at `at` by `thread` of the byte at `offset` of a block of `size` bytes.
fn freed(gone: &GoneView, found: &Finding) -> Value {
    let mut object = json!({
        "use": gone.what, "at": gone.at.by_symbol(), "thread": found.thread(gone.thread), "offset": gone.offset, "size": gone.size,
        "freed": origin(gone.freed.as_ref(), found), "allocated": origin(gone.allocated.as_ref(), found),
    });
    if let Some(owner) = gone.owner {
        object["stack_of"] = found.thread(owner).into();
    }
    add_line(&mut object, &gone.at);
    object
}

/// Where a block was given out or freed; null: that is not known any more.
fn origin(origin: Option<&OriginView>, found: &Finding) -> Value {
    let Some(origin) = origin else { return Value::Null };
    let mut object = json!({"thread": found.thread(origin.thread)});
    stack(&mut object, &origin.frames);
    object["function"] = origin.function().into();
    object
}

#[cfg(test)]
mod tests {
    use super::super::testing::{deadlock, summary};
    use super::*;
    use crate::finding::{ProgramStatus, Verdict};

    #[test]
    fn keys_and_order_of_the_contract() {
        let text = line(&summary());
        let Value::Object(object) = serde_json::from_str(&text).unwrap() else { panic!("{text}") };
        let keys: Vec<_> = object.keys().map(String::as_str).collect();
        let contract =
            "vsrun program verdict bugs complete incomplete_reason incomplete_reasons assumptions search executions \
                        transitions sleep_blocked watched max_depth workers seconds program_status notes passed_through \
                        drawn preemptions_covered rolled_back copied from_marks marks_without_room not_rolled_back reached_end cut_off";
        assert_eq!(keys.join(" "), contract);
        assert_eq!(object["incomplete_reason"], Value::Null);
        assert_eq!(object["program_status"], Value::Null);
        assert_eq!(object["passed_through"], json!({"read": 3, "poll": 1}));
        assert!(!text.contains('\n'));
    }

    #[test]
    fn trace_of_a_single_execution() {
        let mut once = summary();
        assert_eq!(object(&once).get("trace"), None);
        once.trace = Some(0xa5);
        assert_eq!(object(&once)["trace"], "00000000000000a5");
    }

    #[test]
    fn bugs() {
        let mut all = summary();
        all.bugs = vec![deadlock()];
        all.verdict = Verdict::Found(all.bugs[0].kind);
        all.reasons.extend([Reason::Depth, Reason::PassedThrough, Reason::FairSchedules]);
        all.program_status = Some(ProgramStatus::Exit(3));
        let value = object(&all);
        let expected = r#"[{"kind":"deadlock","summary":"2 threads wait for each other","scenario":"prog-deadlock-1.vsrun.json","execution":3,"transitions":2,"threads":[{"thread":"0","name":"main","process":"1001","start":"","status":"waiting"},{"thread":"0.1","name":"worker#1","process":"1001","start":"worker","status":"waiting"},{"thread":"0.2","name":"worker#2","process":"1001","start":"worker","status":"waiting"},{"thread":"0.3","name":"worker#3","process":"1001","start":"worker","status":"exited"}],"processes":[{"process":"1001","name":"prog","program":"prog","forked_by":null,"ended":null}]}]"#;
        assert_eq!(value["bugs"].to_string(), expected);
        assert_eq!((value["verdict"].as_str(), value["complete"].as_bool()), (Some("deadlock"), Some(false)));
        assert_eq!(value["incomplete_reason"], "depth");
        assert_eq!(value["incomplete_reasons"], json!(["depth", "passed-through"]));
        assert_eq!(value["assumptions"], json!(["fair-schedules"]));
        assert_eq!(value["program_status"], json!({"exit": 3}));
        all.bugs[0].scenario = None;
        assert_eq!(object(&all)["bugs"][0]["scenario"], Value::Null);
    }
}
