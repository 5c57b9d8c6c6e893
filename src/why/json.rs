//! The picture for programs: one JSON object. Its keys:
//!
//! `vsrun`, `why` (the version of this form), `pid`, `program` (words), `verdict` (`deadlock`, `unknown`, `ok`, `error`), `certain` (of a
//! deadlock: nothing is only likely), `summary`; `circles` and `possible_circles` (which somebody, a helper, may still break): `links` (each
//! `thread` waits for the next, for `waits_for`), `certain`, `helpers`; `processes`; `threads`: `tid`, `pid`, `name`, `does`, `stuck`, `wait`
//! (null, or `call`, `object`, `via`, `who`, `facts`, `time_limit`, `outside`, `unknown`), `holds`, `exact_stack`, `stack`, `places`; `unknown`
//! (what could not be found out); `looked` (times in microseconds); `explore` (a command for a shell).

use std::time::Duration;

use serde_json::{json, Value};

use super::picture::{CircleView, Picture, ThreadView, Verdict, WaitView};
use crate::report::{json, stack};

/// The object on one line, without a line end.
pub fn line(picture: &Picture) -> String {
    let certain = matches!(picture.verdict, Verdict::Deadlock { certain: true });
    let processes = picture.processes.iter().map(|p| json!({"pid": p.pid, "program": p.program}));
    let circles = |all: &[CircleView]| all.iter().map(|c| circle(picture, c)).collect::<Vec<_>>();
    let micros = |time: Duration| time.as_micros() as u64;
    let (stops, longest, all) = picture.looked.stops;
    let object = json!({
        "vsrun": env!("CARGO_PKG_VERSION"),
        "why": json::WHY_FORMAT,
        "pid": picture.pid,
        "program": picture.program,
        "verdict": picture.verdict.name(),
        "certain": certain,
        "summary": picture.summary,
        "circles": circles(&picture.circles),
        "possible_circles": circles(&picture.possible),
        "processes": processes.collect::<Vec<_>>(),
        "threads": picture.threads.iter().map(thread).collect::<Vec<_>>(),
        "unknown": picture.unknown,
        "looked": {
            "between_us": micros(picture.looked.between), "stopped": stops, "longest_stop_us": micros(longest),
            "all_stops_us": micros(all), "not_stopped": picture.looked.spared,
        },
        "explore": picture.explore,
    });
    object.to_string()
}

/// The object for a process that could not be looked at.
pub fn refused(pid: i32, message: &str) -> String {
    let object = json!({
        "vsrun": env!("CARGO_PKG_VERSION"), "why": json::WHY_FORMAT, "pid": pid, "verdict": "error", "summary": message,
    });
    object.to_string()
}

fn circle(picture: &Picture, circle: &CircleView) -> Value {
    let link = |&t: &usize| {
        let thread = &picture.threads[t];
        json!({"thread": thread.tid, "waits_for": thread.wait.as_ref().map(|wait| wait.object.clone())})
    };
    let links: Vec<Value> = circle.threads.iter().map(link).collect();
    json!({"links": links, "certain": circle.certain, "helpers": circle.helpers})
}

fn thread(thread: &ThreadView) -> Value {
    let mut object = json!({
        "tid": thread.tid, "pid": thread.pid, "name": thread.name, "does": thread.doing, "stuck": thread.stuck,
        "wait": thread.wait.as_ref().map(wait), "holds": thread.holds, "exact_stack": thread.exact,
    });
    stack(&mut object, &thread.frames);
    object
}

fn wait(wait: &WaitView) -> Value {
    json!({
        "call": wait.call, "object": wait.object, "via": wait.via, "who": wait.who, "facts": wait.facts,
        "time_limit": wait.limited, "outside": wait.outside, "unknown": wait.unknown,
    })
}
