//! Places of code in the report for programs: by symbol as ever, and by source line where there is debug information.

use serde_json::{json, Value};

use crate::finding::{Finding, LineView, Names, PlaceView, ThreadStatus, ThreadView};

/// `file` and `line` of a place, and the functions that this code is `inlined` in, from the inside out; nothing without debug information.
pub(super) fn add_line(object: &mut Value, place: &PlaceView) {
    let Some((first, outer)) = place.lines.split_first() else { return };
    object["file"] = first.file.clone().into();
    object["line"] = line(first);
    let outer = outer.iter().map(|at| json!({"function": at.function, "file": at.file, "line": line(at)}));
    object["inlined"] = outer.collect();
}

/// Of code that the compiler made for no line: null.
fn line(at: &LineView) -> Value {
    match at.line {
        0 => Value::Null,
        line => line.into(),
    }
}

/// A call stack as `stack`, by symbols; with debug information as `places`, too, an object for each of its frames.
pub(super) fn stack(object: &mut Value, frames: &[PlaceView]) {
    object["stack"] = frames.iter().map(PlaceView::by_symbol).collect();
    if frames.iter().any(|frame| !frame.lines.is_empty()) {
        object["places"] = frames.iter().map(place).collect();
    }
}

fn place(at: &PlaceView) -> Value {
    let mut object = json!({"place": at.by_symbol()});
    if let Some(first) = at.lines.first() {
        object["function"] = first.function.clone().into();
    }
    add_line(&mut object, at);
    object
}

/// The innermost frame of the program's own code of which the source line is known.
fn known(frames: &[PlaceView]) -> Option<&PlaceView> {
    frames.iter().find(|frame| !frame.lines.is_empty() && !frame.is_of_libc())
}

/// Where the threads are that a bug is about, the innermost place of each in the program's own code of which the source line is known; `None`: of none.
pub(super) fn of_bug(found: &Finding) -> Option<Value> {
    let mut all = Vec::new();
    let mut add = |thread: String, does: String, at: &PlaceView| {
        if !at.lines.is_empty() {
            let mut object = place(at);
            (object["thread"], object["does"]) = (thread.into(), does.into());
            all.push(object);
        }
    };
    if let Some(race) = &found.race {
        for access in &race.uses {
            let at = if access.at.lines.is_empty() { known(&access.frames) } else { Some(&access.at) };
            at.into_iter().for_each(|at| add(found.thread(access.thread), access.what.clone(), at));
        }
    } else {
        for (_, thread) in (0..).zip(&found.threads).filter(|(t, thread)| concerns(found, *t, thread)) {
            let does = thread.pending.as_ref().map_or(String::new(), |pending| pending.text.render(found));
            known(&thread.frames).into_iter().for_each(|at| add(thread.uid.to_string(), does.clone(), at));
        }
    }
    (!all.is_empty()).then(|| all.into())
}

/// Whether a bug is about a thread: it is in the circle, or has the signal, or has made the use; otherwise all that are not over are.
fn concerns(found: &Finding, t: u32, thread: &ThreadView) -> bool {
    let of_use = found.gone.as_ref().map(|gone| gone.thread == t);
    let of_signal = found.signal.as_ref().map(|signal| signal.thread == t);
    let of_circle = found.cycle.as_ref().map(|cycle| cycle.iter().any(|link| link.thread == t));
    of_use.or(of_signal).or(of_circle).unwrap_or(thread.status != ThreadStatus::Exited)
}
