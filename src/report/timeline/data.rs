//! The picture for other programs.
//!
//! Perfetto and chrome://tracing read the Trace Event Format (Google, "Trace Event Format", 2016): `X` is a slice with `ts` and `dur` in
//! microseconds, `M` names, `s` and `f` begin and end an arrow, which binds to the slice around its time (`bp: e`). vsrun has no time, so a
//! step takes ten microseconds.

use std::fmt::Write;

use serde_json::{json, Value};

use super::picture::{Graph, Lane, Picture};
use crate::base::text::one_line;
use crate::report::places::{add_line, brief};

/// Microseconds of a step.
const STEP: u64 = 10;

/// The object for Perfetto.
pub fn perfetto(picture: &Picture) -> String {
    let mut events = Vec::new();
    let pid = |lane: &Lane| picture.processes.get(lane.process).map_or(0, |(vpid, _)| *vpid);
    // Threads of different processes have different numbers; 0 is nobody.
    let tid = |lane: usize| lane + 1;
    for (process, (vpid, program)) in picture.processes.iter().enumerate() {
        let name = format!("{} {vpid}", if program.is_empty() { "process" } else { program });
        events.push(json!({"ph": "M", "name": "process_name", "pid": vpid, "tid": 0, "args": {"name": name}}));
        events.push(
            json!({"ph": "M", "name": "process_sort_index", "pid": vpid, "tid": 0, "args": {"sort_index": process}}),
        );
    }
    for (lane, i) in picture.lanes.iter().zip(0..) {
        let of =
            |name: &str, args: Value| json!({"ph": "M", "name": name, "pid": pid(lane), "tid": tid(i), "args": args});
        events.push(of("thread_name", json!({"name": lane.name})));
        events.push(of("thread_sort_index", json!({"sort_index": i})));
    }
    for row in &picture.rows {
        let Some(lane) = picture.lanes.get(row.lane) else { continue };
        let mut args = json!({"step": row.n});
        if !row.note.is_empty() {
            args["note"] = row.note.clone().into();
        }
        if let Some(place) = row.place.as_ref().filter(|place| brief(place).is_some()) {
            args["place"] = place.to_string().into();
        }
        events.push(json!({
            "ph": "X", "name": row.text, "cat": row.kind, "pid": pid(lane), "tid": tid(row.lane), "ts": row.n * STEP, "dur": STEP, "args": args,
        }));
    }
    let end = (picture.steps + 1) * STEP;
    for (lane, i) in picture.lanes.iter().zip(0..).filter(|(lane, _)| !lane.at.is_empty()) {
        let name = match lane.waits_for.is_empty() {
            true => lane.at.clone(),
            false => format!("{}: waits for {}", lane.at, lane.waits_for.join("; ")),
        };
        events.push(
            json!({"ph": "X", "name": name, "cat": "at the end", "pid": pid(lane), "tid": tid(i), "ts": end, "dur": 4 * STEP,
            "args": {"status": lane.status, "holds": lane.holds}}),
        );
    }
    for (link, id) in picture.links.iter().zip(1..) {
        let (from, to) = (&picture.rows[link.from], &picture.rows[link.to]);
        let mut event = |phase: &str, lane: usize, at: u64| {
            let Some(of) = picture.lanes.get(lane) else { return };
            let mut event = json!({"ph": phase, "id": id, "name": link.why, "cat": link.kind, "pid": pid(of), "tid": tid(lane), "ts": at});
            if phase == "f" {
                event["bp"] = "e".into();
            }
            events.push(event);
        };
        event("s", from.lane, from.n * STEP + STEP / 2);
        event("f", to.lane, to.n * STEP + STEP / 2);
    }
    let about = json!({
        "vsrun": env!("CARGO_PKG_VERSION"), "program": picture.program, "scenario": picture.scenario,
        "verdict": picture.kind.map_or("ok", |kind| kind.name()), "summary": picture.summary,
        "uncontrolled": picture.uncontrolled,
    });
    json!({"displayTimeUnit": "ns", "otherData": about, "traceEvents": events}).to_string() + "\n"
}

/// Who waits for whom at the end, for Graphviz.
pub fn dot(picture: &Picture) -> String {
    let first = picture.uncontrolled.as_ref().map_or_else(String::new, |line| format!("{line}: "));
    let title = format!("{first}{}", picture.summary);
    let mut out =
        format!("digraph waits {{\n  label={};\n  labelloc=t;\n  node [fontname=\"monospace\"];\n", quoted(&title));
    for (node, i) in picture.graph.nodes.iter().zip(0..) {
        let shape = if node.lane.is_some() { "ellipse" } else { "box" };
        let colour = if node.in_circle { ", color=red" } else { "" };
        let _ = writeln!(out, "  n{i} [label={}, shape={shape}{colour}];", quoted(&node.label));
    }
    for edge in &picture.graph.edges {
        let round = picture.graph.nodes[edge.from].in_circle && picture.graph.nodes[edge.to].in_circle;
        let colour = if round { ", color=red" } else { "" };
        let style = if edge.label == "held by" { ", style=dashed" } else { "" };
        let _ = writeln!(out, "  n{} -> n{} [label=\"{}\"{style}{colour}];", edge.from, edge.to, edge.label);
    }
    out + "}\n"
}

/// A string of the DOT language: a quotation mark is the only character that is escaped, and what may stand before one is a backslash.
fn quoted(text: &str) -> String {
    format!("\"{}\"", one_line(text).replace('\\', "\\\\").replace('"', "\\\""))
}

/// Who waits for whom as an object; `lane` gives the path of creation of a lane's thread.
pub(crate) fn waits<'a>(graph: &Graph, lane: &dyn Fn(usize) -> Option<&'a String>) -> Value {
    let nodes = graph.nodes.iter().map(|node| {
        let thread = node.lane.and_then(lane);
        json!({"label": node.label, "thread": thread, "in_circle": node.in_circle})
    });
    let edges = graph.edges.iter().map(|edge| json!({"from": edge.from, "to": edge.to, "label": edge.label}));
    let (nodes, edges): (Vec<Value>, Vec<Value>) = (nodes.collect(), edges.collect());
    json!({"nodes": nodes, "edges": edges})
}

/// All of it as one object.
pub fn json(picture: &Picture) -> String {
    let place = |object: &mut Value, at: Option<&crate::finding::PlaceView>| {
        if let Some(at) = at {
            object["place"] = at.by_symbol().into();
            add_line(object, at);
        }
    };
    let lanes = picture.lanes.iter().map(|lane| {
        let process = picture.processes.get(lane.process).map(|(vpid, _)| *vpid);
        let frames: Vec<Value> = lane.frames.iter().map(|frame| {
            let mut object = json!({});
            place(&mut object, Some(frame));
            object
        }).collect();
        json!({"thread": lane.id, "name": lane.name, "process": process, "status": lane.status, "at": lane.at, "frames": frames,
            "waits_for": lane.waits_for, "holds": lane.holds})
    });
    let lanes: Vec<Value> = lanes.collect();
    let steps = picture.rows.iter().map(|row| {
        let thread = picture.lanes.get(row.lane).map(|lane| lane.id.clone());
        let mut object =
            json!({"step": row.n, "thread": thread, "kind": row.kind, "text": row.text, "matters": row.matters});
        if !row.note.is_empty() {
            object["note"] = row.note.clone().into();
        }
        place(&mut object, row.place.as_ref());
        object
    });
    let steps: Vec<Value> = steps.collect();
    let number = |row: usize| picture.rows[row].n;
    let order: Vec<Value> = picture
        .links
        .iter()
        .map(|link| json!({"from": number(link.from), "to": number(link.to), "kind": link.kind, "why": link.why}))
        .collect();
    let object = json!({
        "vsrun": env!("CARGO_PKG_VERSION"), "program": picture.program, "scenario": picture.scenario,
        "verdict": picture.kind.map_or("ok", |kind| kind.name()), "summary": picture.summary, "story": picture.story, "transitions": picture.steps,
        "processes": picture.processes.iter().map(|(vpid, program)| json!({"process": vpid, "program": program})).collect::<Vec<_>>(),
        "threads": lanes, "steps": steps, "order": order, "waits": waits(&picture.graph, &|lane| Some(&picture.lanes.get(lane)?.id)), "printed": picture.printed, "uncontrolled": picture.uncontrolled,
    });
    object.to_string() + "\n"
}
