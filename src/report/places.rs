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
pub(crate) fn stack(object: &mut Value, frames: &[PlaceView]) {
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
    PlaceView::of_program(frames).filter(|frame| !frame.lines.is_empty())
}

/// A place in a list: the innermost source line, else function and offset; `None`: it is in no file.
pub(crate) fn brief(at: &PlaceView) -> Option<String> {
    at.brief().or_else(|| at.symbol.contains('(').then(|| at.by_symbol()))
}

/// Where a thread is that a bug is about.
pub(super) struct PlaceOfBug {
    /// Its name.
    pub thread: String,
    /// What it does there.
    pub does: String,
    /// The innermost place in the program's own code; its source line is known.
    pub at: PlaceView,
}

/// Where the threads are that a bug is about, as far as source lines are known.
pub(super) fn places_of_bug(found: &Finding) -> Vec<PlaceOfBug> {
    let mut all = Vec::new();
    let mut add = |thread: String, does: String, at: &PlaceView| {
        if !at.lines.is_empty() {
            all.push(PlaceOfBug { thread, does, at: at.clone() });
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
    all
}

/// The same as an object for each; `None`: none is known.
pub(super) fn of_bug(found: &Finding) -> Option<Value> {
    let object = |of: &PlaceOfBug| {
        let mut object = place(&of.at);
        (object["thread"], object["does"]) = (of.thread.clone().into(), of.does.clone().into());
        object
    };
    let all: Vec<Value> = places_of_bug(found).iter().map(object).collect();
    (!all.is_empty()).then(|| all.into())
}

/// Whether a bug is about a thread: it is in the circle, or has the signal, or has made the use; otherwise all that are not over are.
fn concerns(found: &Finding, t: u32, thread: &ThreadView) -> bool {
    let of_use = found.gone.as_ref().map(|gone| gone.thread == t);
    let of_signal = found.signal.as_ref().map(|signal| signal.thread == t);
    let of_circle = found.cycle.as_ref().map(|cycle| cycle.iter().any(|link| link.thread == t));
    of_use.or(of_signal).or(of_circle).unwrap_or(thread.status != ThreadStatus::Exited)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(symbol: &str, files: &[&str]) -> PlaceView {
        let line = |file: &&str| LineView { file: file.to_string(), line: 3, ..LineView::default() };
        PlaceView { lines: files.iter().map(line).collect(), ..symbol.into() }
    }

    #[test]
    fn the_place_that_is_the_programs_own() {
        let frames = [
            frame("wait+0x3 (libc.so.6)", &["/libc/wait.c"]),
            frame("f+0x1 (prog)", &[]),
            frame("lock+0x2 (prog)", &["/usr/include/c++/12/mutex"]),
            frame("g+0x9 (prog)", &["/usr/include/c++/12/mutex", "/src/a.cc"]),
        ];
        let symbol = |frames: &[PlaceView]| known(frames).map(|frame| frame.symbol.clone());
        assert_eq!(symbol(&frames).as_deref(), Some("g+0x9 (prog)"));
        assert_eq!(symbol(&frames[..3]).as_deref(), Some("lock+0x2 (prog)"));
        assert_eq!(symbol(&frames[..2]), None);
    }

    #[test]
    fn nothing_is_added_without_debug_information() {
        let mut object = json!({});
        stack(&mut object, &["f+0x1 (prog)".into()]);
        add_line(&mut object, &"f+0x1 (prog)".into());
        assert_eq!(object, json!({"stack": ["f+0x1 (prog)"]}));
        stack(&mut object, &[frame("g+0x9 (prog)", &["/src/b.h", "/src/a.cc"]), "f+0x1 (prog)".into()]);
        let places = json!([
            {"place": "g+0x9 (prog)", "function": "", "file": "/src/b.h", "line": 3,
             "inlined": [{"function": "", "file": "/src/a.cc", "line": 3}]},
            {"place": "f+0x1 (prog)"},
        ]);
        assert_eq!(object, json!({"stack": ["g+0x9 (prog)", "f+0x1 (prog)"], "places": places}));
    }
}
