//! Rules of the preloaded library that the compiler does not hold: modelled state is changed by operations of the model
//! only, and flags of operations are called by what they mean.

use std::fs;
use std::path::Path;

/// The library's sources: path and text.
fn sources() -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("shim/src")];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).expect("a directory").flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                all.push((path.display().to_string(), fs::read_to_string(&path).expect("UTF-8")));
            }
        }
    }
    assert!(all.len() > 50, "the sources were not found");
    all
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The text without comments.
fn code(text: &str) -> String {
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// What follows each use of the word `name` in `code`, spaces left out; with the number of its line.
fn after<'a>(code: &'a str, name: &'a str) -> impl Iterator<Item = (usize, String)> + 'a {
    code.match_indices(name).filter_map(move |(at, _)| {
        let before = code[..at].chars().next_back();
        let rest = &code[at + name.len()..];
        if before.is_some_and(is_word) || rest.chars().next().is_some_and(is_word) {
            return None;
        }
        let line = code[..at].lines().count().max(1);
        Some((line, rest.chars().filter(|c| !c.is_whitespace()).take(200).collect()))
    })
}

/// True if an accessor, of which this follows, is used for a method call: `().name(`.
fn calls_a_method(rest: &str) -> bool {
    let Some(rest) = rest.strip_prefix("().") else { return false };
    let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
    end > 0 && rest[end..].starts_with('(')
}

/// Places in `text` where an accessor that gives the model to be changed is used for anything but a method call. Where it
/// is defined and imported is no use.
fn breaches(text: &str) -> Vec<usize> {
    let code = code(text);
    let uses = ["model", "machine"].into_iter().flat_map(|name| after(&code, name).collect::<Vec<_>>());
    let called = uses.filter(|(_, rest)| rest.starts_with("()") && !rest.starts_with("()->"));
    called.filter(|(_, rest)| !calls_a_method(rest)).map(|(line, _)| line).collect()
}

#[test]
fn modelled_state_is_changed_by_operations_of_the_model() {
    for (path, text) in sources() {
        let found = breaches(&text);
        assert!(found.is_empty(), "{path}: the model is used for more than a method call in lines {found:?}");
    }
}

#[test]
fn the_model_is_reached_through_its_accessors() {
    // Nobody else makes a reference to the arena that could be written through, nor turns one that is for reading into one.
    for (path, text) in sources() {
        let code = code(&text);
        let own = path.ends_with("gate/local.rs");
        for name in ["Arena", "World", "Thread", "Process", "Object"] {
            let mutable = [format!("&mut{name}"), format!("&'staticmut{name}"), format!("*mut{name}")];
            let packed: String = code.chars().filter(|c| !c.is_whitespace()).collect();
            let found = mutable.iter().any(|form| {
                packed
                    .match_indices(form.as_str())
                    .any(|(at, _)| !packed[at + form.len()..].chars().next().is_some_and(is_word))
            });
            assert!(!found || own, "{path}: a {name} to be written");
        }
        assert!(own || !code.contains("ARENA_ADDR as *"), "{path}: the arena by its address");
        // These hand what they find to their caller to be written.
        for method in ["make", "find_or_make", "fiber_state", "process_state"] {
            assert!(own || !code.contains(&format!(".{method}(")), "{path}: {method}");
        }
    }
}

#[test]
fn flags_have_names_of_their_own() {
    for (path, text) in sources() {
        let code = code(&text);
        for flag in ["VARIANT", "SEVERAL", "REACHES", "RESUMED"] {
            let found: Vec<usize> = after(&code, flag).map(|(line, _)| line).collect();
            assert!(found.is_empty(), "{path}: {flag} in lines {found:?}");
        }
    }
}

#[test]
fn a_breach_is_found() {
    let lines = [
        ("model().now += 1;", true),
        ("let w = model();", true),
        ("f(model())", true),
        ("model().threads[t].out = [0; 3];", true),
        ("machine().world.finish(end);", true),
        ("model()\n    .set_mask(t, 0);", false),
        ("machine().step();", false),
        ("pub fn model() -> &'static mut World {", false),
        ("use crate::gate::local::{model, world};", false),
        ("// model().now", false),
        ("world().now", false),
        ("submodel().now", false),
    ];
    for (line, breach) in lines {
        assert_eq!(!breaches(line).is_empty(), breach, "{line}");
    }
}

/// The literals `b".."` of a list as one text, `..` for what is none of them.
fn template(list: &str) -> String {
    let (mut text, mut depth, mut part) = (String::new(), 0i32, String::new());
    let mut flush = |part: &mut String| {
        let word = part.trim();
        if !word.is_empty() {
            text.push_str(literal(word).as_deref().unwrap_or(".."));
        }
        part.clear();
    };
    let (mut quoted, mut escaped) = (false, false);
    for c in list.chars() {
        match c {
            '"' if !escaped => quoted = !quoted,
            '(' | '[' | '{' if !quoted => depth += 1,
            ')' | ']' | '}' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                flush(&mut part);
                continue;
            }
            _ => {}
        }
        escaped = c == '\\' && !escaped;
        part.push(c);
    }
    flush(&mut part);
    text
}

/// What the byte string literal `word` says.
fn literal(word: &str) -> Option<String> {
    let text = word.strip_prefix("b\"")?.strip_suffix('"')?;
    // A backslash at the end of a line goes with the blanks of the next.
    let mut lines = text.split("\\\n");
    let first = lines.next()?.to_string();
    Some(lines.fold(first, |all, line| all + line.trim_start()))
}

/// What stands in `text` from each `start` to the bracket that closes the last one in it.
fn lists<'a>(text: &'a str, start: &'a str) -> impl Iterator<Item = &'a str> {
    text.match_indices(start).map(move |(at, _)| {
        let rest = &text[at + start.len()..];
        let (mut depth, mut quoted, mut escaped) = (1, false, false);
        let end = rest.find(|c| {
            match c {
                '"' if !escaped => quoted = !quoted,
                '[' | '(' if !quoted => depth += 1,
                ']' | ')' if !quoted => depth -= 1,
                _ => {}
            }
            escaped = c == '\\' && !escaped;
            depth == 0
        });
        &rest[..end.unwrap_or(rest.len())]
    })
}

/// Every message of a refusal in the sources.
fn refusals() -> std::collections::BTreeSet<String> {
    let mut all = std::collections::BTreeSet::new();
    for (_, text) in sources() {
        for start in ["unsupported(&[", "no_room(&["] {
            all.extend(lists(&text, start).map(template));
        }
        // What others begin their message with.
        let first = |list: &str| Some(list.strip_prefix("b\"")?.split('"').next()?.to_string());
        all.extend(lists(&text, "refuse(").filter_map(first));
    }
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/model/src");
    let read = |name: &str| fs::read_to_string(model.join(name)).expect("a source of the model");
    for name in ["lock", "rwlock", "connect", "mqueue", "sysv", "msg", "transfer"] {
        let text = read(&format!("objects/{name}.rs"));
        let what = |list: &str| format!("the program uses more {} than vsrun can hold", list.trim_matches('"'));
        all.extend(lists(&text, ".full(").map(what));
    }
    all
}

/// Messages of the model, by words that must stand in its sources.
const OF_THE_MODEL: [(&str, &str); 5] = [
    ("objects/lock.rs", "fcntl(F_SETLKW) blocked by several processes"),
    ("world/perform.rs", "a signal handler that interrupted a wait in a queue waits in another one: "),
    ("world/perform.rs", "a barrier at which somebody waits who is not there: in the child of a fork, or killed"),
    ("objects/process.rs", "a process that ends before a child that asked for a signal then (PR_SET_PDEATHSIG)"),
    ("objects/process.rs", "a process that leaves children to a subreaper (PR_SET_CHILD_SUBREAPER)"),
];

#[test]
fn every_refusal_is_in_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = fs::read_to_string(root.join("docs/REFUSED.md")).expect("the table");
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split("` |").next());
    let mut rows: std::collections::BTreeSet<String> = rows.map(str::to_string).collect();
    for (file, words) in OF_THE_MODEL {
        let text = fs::read_to_string(root.join("src/model/src").join(file)).expect("a source");
        assert!(text.contains(words), "{file} does not say {words}");
        let count = rows.len();
        rows.retain(|row| !row.starts_with(words));
        assert_eq!(rows.len() + 1, count, "docs/REFUSED.md: {words}");
    }
    let found = refusals();
    assert!(found.len() > 80, "the refusals were not found");
    let missing: Vec<_> = found.difference(&rows).collect();
    assert!(missing.is_empty(), "docs/REFUSED.md does not have {missing:#?}");
    let gone: Vec<_> = rows.difference(&found).collect();
    assert!(gone.is_empty(), "docs/REFUSED.md has what is not refused any more: {gone:#?}");
    // The model has no other end of that kind.
    let model = [("objects/lock.rs", 1), ("world/perform.rs", 2)];
    for (path, text) in model_sources() {
        let ends = text.matches("End::UNSUPPORTED,").count();
        let known = model.iter().find(|(file, _)| path.ends_with(file)).map_or(0, |(_, ends)| *ends);
        assert_eq!(ends, known, "{path} refuses something that is not above");
    }
}

/// The model's sources: path and text.
fn model_sources() -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src/model/src")];
    while let Some(dir) = open.pop() {
        for path in fs::read_dir(&dir).expect("a directory").flatten().map(|entry| entry.path()) {
            match path.is_dir() {
                true => open.push(path),
                false => all.push((path.display().to_string(), fs::read_to_string(&path).expect("UTF-8"))),
            }
        }
    }
    all
}
