//! The commands of `vsrun debug --format json`: a JSON object a line.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Everything that is to be seen where one stands.
    Who,
    /// So many steps forward.
    Step(usize),
    /// So many steps back.
    Back(usize),
    /// To after that step; 0: before the first one.
    Goto(usize),
    /// Steps of the path, from that number on, so many.
    Steps(usize, usize),
    /// That thread makes the next step, in that alternative.
    Choose(String, u32),
    /// Where the scenario could have gone another way: samples, time.
    Explain(u64, Duration),
    /// Write the path as a scenario, to that file.
    Save(Option<PathBuf>),
    /// End.
    Quit,
}

/// A line that was read.
#[derive(Debug, PartialEq)]
pub struct Asked {
    /// The name of the command; empty: it has none.
    pub command: String,
    /// What the asker calls it: any value of his, which the answer has.
    pub id: Option<Value>,
    /// What is asked for, or what is wrong with it.
    pub request: Result<Request, String>,
}

const COMMANDS: &str = "who, step, back, goto, steps, choose, explain, save, quit";
/// Steps that are told at once, if nothing else is said.
const STEPS: u64 = 100;
/// The longest time for `explain`, in seconds.
const LONGEST: f64 = 3600.0;

impl Asked {
    /// Reads a line.
    pub fn read(line: &[u8]) -> Asked {
        let wrong = |why: String| Asked { command: String::new(), id: None, request: Err(why) };
        let members = match serde_json::from_slice::<Value>(line) {
            Ok(Value::Object(members)) => members,
            Ok(_) => return wrong("a command is an object: {\"command\": \"who\"}".into()),
            Err(e) => return wrong(format!("not JSON: {e}")),
        };
        let id = members.get("id").cloned();
        match members.get("command") {
            Some(Value::String(command)) => Asked { command: command.clone(), id, request: request(command, &members) },
            _ => Asked { id, ..wrong(format!("\"command\" has to be one of {COMMANDS}")) },
        }
    }
}

fn request(command: &str, members: &Map<String, Value>) -> Result<Request, String> {
    let known: &[&str] = match command {
        "who" | "quit" => &[],
        "step" | "back" => &["count"],
        "goto" => &["step"],
        "steps" => &["from", "count"],
        "choose" => &["thread", "alternative"],
        "explain" => &["samples", "seconds"],
        "save" => &["file"],
        _ => return Err(format!("no command {command}: there are {COMMANDS}")),
    };
    if let Some(key) =
        members.keys().find(|key| !["command", "id"].contains(&key.as_str()) && !known.contains(&key.as_str()))
    {
        return Err(format!("{command} has no \"{key}\""));
    }
    let number = |key: &str, default: Option<u64>| match (members.get(key), default) {
        (None | Some(Value::Null), Some(default)) => Ok(default),
        (Some(value), _) if value.is_u64() => Ok(value.as_u64().unwrap_or(0)),
        _ => Err(format!("{command} needs \"{key}\", a number from 0 up")),
    };
    let place =
        |key: &str, default: Option<u64>| number(key, default).map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    let text = |key: &str| match members.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if !text.is_empty() => Ok(Some(text.clone())),
        _ => Err(format!("{command} needs \"{key}\", a text")),
    };
    Ok(match command {
        "who" => Request::Who,
        "step" => Request::Step(place("count", Some(1))?),
        "back" => Request::Back(place("count", Some(1))?),
        "goto" => Request::Goto(place("step", None)?),
        "steps" => Request::Steps(place("from", Some(1))?, place("count", Some(STEPS))?),
        "choose" => {
            let thread = text("thread")?.ok_or("choose needs \"thread\": its path of creation (0.1) or its name")?;
            let alternative = number("alternative", Some(0))?;
            Request::Choose(thread, u32::try_from(alternative).unwrap_or(u32::MAX))
        }
        "explain" => Request::Explain(number("samples", Some(20))?.max(1), seconds(members.get("seconds"))?),
        "save" => Request::Save(text("file")?.map(PathBuf::from)),
        _ => Request::Quit,
    })
}

fn seconds(value: Option<&Value>) -> Result<Duration, String> {
    let seconds = match value {
        None | Some(Value::Null) => 10.0,
        Some(value) => value.as_f64().unwrap_or(-1.0),
    };
    match seconds {
        0.0..=LONGEST => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("explain needs \"seconds\", a number from 0 to {LONGEST}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> Result<Request, String> {
        Asked::read(line.as_bytes()).request
    }

    #[test]
    fn commands() {
        let all = [
            (r#"{"command":"who"}"#, Request::Who),
            (r#"{"command":"step"}"#, Request::Step(1)),
            (r#"{"command":"back","count":3}"#, Request::Back(3)),
            (r#"{"command":"goto","step":0}"#, Request::Goto(0)),
            (r#"{"command":"steps","from":5}"#, Request::Steps(5, 100)),
            (r#"{"command":"choose","thread":"0.1"}"#, Request::Choose("0.1".into(), 0)),
            (
                r#"{"command":"choose","thread":"0.1","alternative":99999999999}"#,
                Request::Choose("0.1".into(), u32::MAX),
            ),
            (r#"{"command":"explain","seconds":0.5}"#, Request::Explain(20, Duration::from_millis(500))),
            (r#"{"command":"save"}"#, Request::Save(None)),
            (r#"{"command":"save","file":"a.json"}"#, Request::Save(Some("a.json".into()))),
            (r#"{"command":"quit","id":[1]}"#, Request::Quit),
        ];
        for (line, request) in all {
            assert_eq!(asked(line), Ok(request), "{line}");
        }
    }

    #[test]
    fn what_is_no_command_is_told_and_keeps_its_id() {
        for (line, why) in [
            ("", "not JSON"),
            ("{", "not JSON"),
            ("[]", "is an object"),
            ("{}", "has to be one of who"),
            (r#"{"command":3}"#, "has to be one of who"),
            (r#"{"command":"jump"}"#, "no command jump"),
            (r#"{"command":"goto"}"#, "needs \"step\""),
            (r#"{"command":"goto","step":-1}"#, "needs \"step\""),
            (r#"{"command":"goto","step":1.5}"#, "needs \"step\""),
            (r#"{"command":"goto","step":1,"to":2}"#, "goto has no \"to\""),
            (r#"{"command":"choose"}"#, "needs \"thread\""),
            (r#"{"command":"choose","thread":""}"#, "needs \"thread\""),
            (r#"{"command":"explain","seconds":-1}"#, "needs \"seconds\""),
            (r#"{"command":"save","file":7}"#, "needs \"file\""),
        ] {
            let told = asked(line).unwrap_err();
            assert!(told.contains(why), "{line}: {told}");
        }
        assert_eq!(Asked::read(br#"{"id":"x"}"#).id, Some("x".into()));
        assert_eq!(Asked::read(br#"{"id":4,"command":"no"}"#).id, Some(4.into()));
        assert!(asked("\u{0}").is_err() && Asked::read(b"\xff\xfe").request.is_err());
    }
}
