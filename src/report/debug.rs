//! What `vsrun debug --format json` answers: an object a line. Its version is [`DEBUG_FORMAT`]; `docs/STEPPING.md` has the keys.

use serde_json::{json, Map, Value};

use super::json::DEBUG_FORMAT;
use super::places::{add_line, stack};
use crate::finding::PlaceView;

/// The place of something in code, with its source line.
pub fn add_place(object: &mut Value, place: Option<&PlaceView>) {
    let Some(place) = place else { return };
    object["place"] = place.by_symbol().into();
    add_line(object, place);
    if let Some(text) = place.text() {
        object["source"] = text.into();
    }
}

/// A call stack, innermost first.
pub fn add_stack(object: &mut Value, frames: &[PlaceView]) {
    if !frames.is_empty() {
        stack(object, frames);
    }
}

/// An answer: what was asked for, and the members of `body`, an object. `id`: what the asker has named it.
pub fn answer(command: &str, id: Option<&Value>, body: Value) -> String {
    line(command, id, true, body)
}

/// The answer to what could not be done.
pub fn refusal(command: &str, id: Option<&Value>, why: &str) -> String {
    line(command, id, false, json!({ "error": why }))
}

fn line(command: &str, id: Option<&Value>, ok: bool, body: Value) -> String {
    let mut object = Map::new();
    object.insert("debug".into(), DEBUG_FORMAT.into());
    object.insert("ok".into(), ok.into());
    object.insert("command".into(), command.into());
    if let Some(id) = id {
        object.insert("id".into(), id.clone());
    }
    if let Value::Object(body) = body {
        object.extend(body);
    }
    Value::from(object).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::LineView;

    #[test]
    fn every_answer_says_which_version_it_is_and_to_what() {
        assert_eq!(
            answer("who", Some(&json!(7)), json!({"step": 3})),
            r#"{"debug":1,"ok":true,"command":"who","id":7,"step":3}"#
        );
        assert_eq!(refusal("", None, "no\nJSON"), r#"{"debug":1,"ok":false,"command":"","error":"no\nJSON"}"#);
    }

    #[test]
    fn places_have_their_source_line() {
        let line = LineView {
            file: "/src/a.c".into(),
            name: "a.c".into(),
            line: 9,
            text: Some("x++;".into()),
            ..LineView::default()
        };
        let place = PlaceView { lines: vec![line], .."f+0x1 (prog)".into() };
        let mut object = json!({});
        add_place(&mut object, Some(&place));
        assert_eq!(
            object,
            json!({"place": "f+0x1 (prog)", "file": "/src/a.c", "line": 9, "inlined": [], "source": "x++;"})
        );
        add_place(&mut object, None);
        add_stack(&mut object, &[]);
        assert_eq!(object["place"], "f+0x1 (prog)");
    }
}
