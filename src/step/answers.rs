//! What is answered to the commands of `vsrun debug --format json`: functions from a path and its states to JSON.

use serde_json::{json, Value};

use crate::explore::{At, Path, State, Step};
use crate::report::debug::{add_place, add_stack};
use crate::report::timeline;

/// Where one stands: the step that was made last, the one that the path makes next, how it ends.
pub fn standing(path: &Path, state: &State) -> Value {
    let made = state.at.checked_sub(1).and_then(|n| path.steps.get(n)).map(step);
    let next = path.steps.get(state.at).map(step);
    let mut object = json!({ "step": state.at, "steps": path.steps.len(), "made": made, "next": next });
    // The place of what is done next is the place to look at; at the end that of what was done last.
    let place = path.steps.get(state.at).or(path.steps.last()).and_then(|step| step.place.as_ref());
    add_place(&mut object, place);
    if state.at == path.steps.len() {
        object["end"] = end(path);
    }
    if let Some(left) = path.left {
        object["left_after"] = left.into();
    }
    object
}

/// What is said of a path as a whole.
pub fn opened(path: &Path) -> Value {
    let threads = path.threads.iter().map(|(id, name)| json!({"thread": id, "name": name}));
    let threads: Vec<Value> = threads.collect();
    json!({ "program": path.program, "end": end(path), "threads": threads, "notes": path.notes })
}

fn end(path: &Path) -> Value {
    json!({ "kind": path.end.name, "bug": path.end.is_bug, "summary": path.end.line })
}

/// A step.
pub fn step(step: &Step) -> Value {
    let mut object = json!({
        "step": step.n, "thread": step.thread, "name": step.name, "kind": step.kind, "text": step.text,
        "alternative": step.value, "alternatives": step.alternatives,
    });
    if !step.note.is_empty() {
        object["note"] = step.note.clone().into();
    }
    add_place(&mut object, step.place.as_ref());
    object
}

/// Everything that is to be seen: the threads, who waits for whom, what was printed.
pub fn who(path: &Path, state: &State) -> Value {
    let mut object = standing(path, state);
    object["threads"] = state.threads.iter().map(|at| thread(path, at)).collect();
    object["waits"] = timeline::waits(&state.graph, &|lane| state.threads.get(lane).map(|at| &at.lane.id));
    let objects = state.objects().into_iter();
    object["objects"] =
        objects.map(|(name, held, waiting)| json!({"name": name, "held_by": held, "waited_for_by": waiting})).collect();
    object["printed"] = state.printed.clone().into();
    object
}

fn thread(path: &Path, at: &At) -> Value {
    let lane = &at.lane;
    let process = path.processes.get(lane.process).map(|(vpid, _)| *vpid);
    let ways = (0..at.ways.len() as u32).map(|value| json!({"alternative": value, "text": at.way(value)}));
    let ways: Vec<Value> = ways.collect();
    let mut object = json!({
        "thread": lane.id, "name": lane.name, "process": process, "status": lane.status, "at": lane.at,
        "enabled": at.can_move(), "ways": ways, "waits_for": lane.waits_for, "holds": lane.holds,
    });
    let place = at.place.as_ref();
    add_stack(&mut object, &lane.frames);
    add_place(&mut object, place);
    object
}

#[cfg(test)]
mod tests {
    use super::super::testing::{path, state};
    use super::*;

    #[test]
    fn where_one_stands() {
        let path = path();
        let first = standing(&path, &state(0));
        assert_eq!((&first["step"], &first["steps"], &first["made"]), (&json!(0), &json!(3), &Value::Null));
        assert_eq!((&first["next"]["thread"], &first["line"]), (&json!("0.1"), &json!(11)));
        assert_eq!(first.get("end"), None);
        let last = standing(&path, &state(3));
        assert_eq!((&last["made"]["step"], &last["next"], &last["line"]), (&json!(3), &Value::Null, &json!(13)));
        assert_eq!(last["end"], json!({"kind": "deadlock", "bug": true, "summary": "two wait for each other"}));
    }

    #[test]
    fn who_waits_for_whom() {
        let all = who(&path(), &state(2));
        let (one, two) = (&all["threads"][1], &all["threads"][2]);
        assert_eq!((&one["enabled"], &one["waits_for"]), (&json!(false), &json!(["lock_b, held by worker#2 (0.2)"])));
        assert_eq!(two["ways"], json!([{"alternative": 0, "text": "pthread_mutex_lock(lock_a)"}]));
        assert_eq!((&two["process"], &two["holds"]), (&json!(1001), &json!(["lock_b"])));
        assert_eq!(all["objects"][0], json!({"name": "lock_a", "held_by": ["worker#1 (0.1)"], "waited_for_by": []}));
        assert_eq!(all["objects"][1]["waited_for_by"], json!(["worker#1 (0.1)"]));
        assert_eq!(all["waits"]["edges"][0], json!({"from": 0, "to": 1, "label": "waits for"}));
        assert_eq!(all["printed"], "hello\n");
    }
}
