//! Reports for other programs, held against what those formats ask for: SARIF 2.1.0 (its JSON schema: which properties an object may and must
//! have, the values of enumerations, the form of references) and the Trace Event Format.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{json, Value};

/// A directory with programs of `tests/reports`, removed at the end.
struct Place(PathBuf);

impl Place {
    fn new(test: &str, programs: &[&str]) -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-formats-{test}-{}", std::process::id()));
        // A name that a reference has to write otherwise.
        let place = Place(dir.join("with space"));
        fs::create_dir_all(&place.0).expect("a temporary directory");
        for name in programs {
            let from = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/reports/{name}.c"));
            let source = place.0.join(format!("{name}.c"));
            fs::copy(from, &source).expect("the source");
            let done = Command::new("gcc")
                .args(["-O0", "-g", "-pthread", "-o", name])
                .arg(source)
                .current_dir(&place.0)
                .status();
            assert!(done.expect("gcc").success(), "{name}");
        }
        place
    }

    /// What vsrun prints, which ends with that status.
    fn json(&self, arguments: &[&str], status: i32) -> Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vsrun"));
        let done = command.args(arguments).current_dir(&self.0).output().expect("vsrun runs");
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(status), "{said}");
        serde_json::from_slice(&done.stdout).expect("JSON")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.0.parent().map(fs::remove_dir_all);
    }
}

/// What the schema says of an object: `name: type` for what it may have, `!` before what it must have. Types: `string`, `integer`, `boolean`,
/// `uri` (a reference), `any`, a name of this table, `a|b|c` (an enumeration), `[type]`; `{type}`: an object with any names.
const SARIF: &[(&str, &str)] = &[
    ("log", "$schema: uri, !version: 2.1.0, !runs: [run], inlineExternalProperties: any, properties: any"),
    (
        "run",
        "!tool: tool, invocations: [invocation], conversion: any, language: string, versionControlProvenance: any, originalUriBaseIds: any, \
         artifacts: any, logicalLocations: any, graphs: any, results: [result], automationDetails: any, runAggregates: any, baselineGuid: string, \
         redactionTokens: any, defaultEncoding: string, defaultSourceLanguage: string, newlineSequences: any, \
         columnKind: utf16CodeUnits|unicodeCodePoints, externalPropertyFileReferences: any, threadFlowLocations: any, taxonomies: any, \
         addresses: any, translations: any, policies: any, webRequests: any, webResponses: any, specialLocations: any, properties: any",
    ),
    ("tool", "!driver: component, extensions: [component], properties: any"),
    (
        "component",
        "!name: string, guid: string, organization: string, product: string, productSuite: string, shortDescription: message, \
         fullDescription: message, fullName: string, version: string, semanticVersion: string, dottedQuadFileVersion: string, \
         releaseDateUtc: string, downloadUri: uri, informationUri: uri, globalMessageStrings: any, notifications: [rule], rules: [rule], \
         taxa: [rule], locations: any, language: string, contents: any, isComprehensive: boolean, localizedDataSemanticVersion: string, \
         minimumRequiredLocalizedDataSemanticVersion: string, associatedComponent: any, translationMetadata: any, supportedTaxonomies: any, \
         properties: any",
    ),
    (
        "rule",
        "!id: string, deprecatedIds: [string], guid: string, deprecatedGuids: any, name: string, deprecatedNames: any, \
         shortDescription: message, fullDescription: message, messageStrings: any, defaultConfiguration: any, helpUri: uri, help: message, \
         relationships: any, properties: any",
    ),
    ("message", "text: string, markdown: string, id: string, arguments: [string], properties: any"),
    (
        "invocation",
        "commandLine: string, arguments: [string], responseFiles: any, startTimeUtc: string, endTimeUtc: string, exitCode: integer, \
         ruleConfigurationOverrides: any, notificationConfigurationOverrides: any, toolExecutionNotifications: [notification], \
         toolConfigurationNotifications: [notification], exitCodeDescription: string, exitSignalName: string, exitSignalNumber: integer, \
         processStartFailureMessage: string, !executionSuccessful: boolean, machine: string, account: string, processId: integer, \
         executableLocation: artifact, workingDirectory: artifact, environmentVariables: {string}, stdin: artifact, stdout: artifact, \
         stderr: artifact, stdoutStderr: artifact, properties: any",
    ),
    (
        "notification",
        "locations: [location], !message: message, level: none|note|warning|error, threadId: integer, timeUtc: string, exception: any, \
         descriptor: any, associatedRule: any, properties: any",
    ),
    (
        "result",
        "ruleId: string, ruleIndex: integer, rule: any, kind: notApplicable|pass|fail|review|open|informational, \
         level: none|note|warning|error, !message: message, analysisTarget: artifact, locations: [location], guid: string, \
         correlationGuid: string, occurrenceCount: integer, partialFingerprints: {string}, fingerprints: {string}, stacks: any, \
         codeFlows: [flow], graphs: any, graphTraversals: any, relatedLocations: [location], suppressions: any, baselineState: string, \
         rank: any, attachments: any, hostedViewerUri: uri, workItemUris: any, provenance: any, fixes: any, taxa: any, webRequest: any, \
         webResponse: any, properties: any",
    ),
    (
        "location",
        "id: integer, physicalLocation: physical, logicalLocations: [logical], message: message, annotations: [region], relationships: any, \
         properties: any",
    ),
    ("physical", "address: any, artifactLocation: artifact, region: region, contextRegion: region, properties: any"),
    ("artifact", "uri: uri, uriBaseId: string, index: integer, description: message, properties: any"),
    (
        "region",
        "startLine: integer, startColumn: integer, endLine: integer, endColumn: integer, charOffset: integer, charLength: integer, \
         byteOffset: integer, byteLength: integer, snippet: content, message: message, sourceLanguage: string, properties: any",
    ),
    ("content", "text: string, binary: string, rendered: any, properties: any"),
    ("logical", "name: string, index: integer, fullyQualifiedName: string, decoratedName: string, parentIndex: integer, kind: string, properties: any"),
    ("flow", "message: message, !threadFlows: [thread], properties: any"),
    ("thread", "id: string, message: message, initialState: any, immutableState: any, !locations: [step], properties: any"),
    (
        "step",
        "index: integer, location: location, stack: any, kinds: [string], taxa: any, module: string, state: any, nestingLevel: integer, \
         executionOrder: integer, executionTimeUtc: string, importance: important|essential|unimportant, webRequest: any, webResponse: any, \
         properties: any",
    ),
];

/// What is wrong with a value of that type.
fn check(value: &Value, kind: &str, at: &str, wrong: &mut Vec<String>) {
    let mut expect = |good: bool, what: &str| {
        if !good {
            wrong.push(format!("{at}: {what}: {value}"));
        }
    };
    match kind {
        "any" => {}
        "string" => expect(value.is_string(), "no string"),
        "boolean" => expect(value.is_boolean(), "no boolean"),
        "integer" => expect(value.as_i64().is_some(), "no integer"),
        "uri" => expect(value.as_str().is_some_and(is_reference), "no URI reference"),
        _ if kind.starts_with('[') => {
            let Some(items) = value.as_array() else { return expect(false, "no array") };
            let inner = &kind[1..kind.len() - 1];
            items.iter().enumerate().for_each(|(i, item)| check(item, inner, &format!("{at}[{i}]"), wrong));
        }
        _ if kind.starts_with('{') => {
            let Some(items) = value.as_object() else { return expect(false, "no object") };
            let inner = &kind[1..kind.len() - 1];
            items.iter().for_each(|(name, item)| check(item, inner, &format!("{at}.{name}"), wrong));
        }
        _ => match SARIF.iter().find(|(name, _)| *name == kind) {
            Some((_, members)) => check_object(value, members, at, wrong),
            None => expect(value.as_str().is_some_and(|text| kind.split('|').any(|one| one == text)), kind),
        },
    }
}

fn check_object(value: &Value, members: &str, at: &str, wrong: &mut Vec<String>) {
    let Some(object) = value.as_object() else { return wrong.push(format!("{at}: no object: {value}")) };
    let members: BTreeMap<&str, (bool, &str)> = members
        .split(',')
        .map(|member| {
            let (name, kind) = member.trim().split_once(": ").expect("a name and a type");
            (name.trim_start_matches('!'), (name.starts_with('!'), kind))
        })
        .collect();
    for (name, (needed, kind)) in &members {
        match object.get(*name) {
            Some(member) => check(member, kind, &format!("{at}.{name}"), wrong),
            None if *needed => wrong.push(format!("{at}: no {name}")),
            None => {}
        }
    }
    let strange = object.keys().filter(|name| !members.contains_key(name.as_str()));
    wrong.extend(strange.map(|name| format!("{at}: {name} is not in the schema")));
}

/// RFC 3986: only its characters, percent signs before two hexadecimal digits, and no colon in the first segment of a relative one.
fn is_reference(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&byte);
    let mut after = text.split('%').skip(1).map(|rest| rest.as_bytes());
    let escaped = after.all(|rest| rest.len() >= 2 && rest[..2].iter().all(u8::is_ascii_hexdigit));
    let first = text.split('/').next().unwrap_or_default();
    let scheme = first.split_once(':').is_none_or(|(scheme, _)| scheme.starts_with(|c: char| c.is_ascii_alphabetic()));
    !text.is_empty() && text.bytes().all(is_part) && escaped && scheme
}

/// What is wrong with a file, beyond the types: bounds, what must not be empty or twice, and indices.
fn wrong_with(file: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    check(file, "log", "$", &mut wrong);
    for run in file["runs"].as_array().into_iter().flatten() {
        let rules = run["tool"]["driver"]["rules"].as_array().cloned().unwrap_or_default();
        let ids: BTreeSet<&str> = rules.iter().filter_map(|rule| rule["id"].as_str()).collect();
        if ids.len() != rules.len() {
            wrong.push("rules of one id".into());
        }
        for result in run["results"].as_array().into_iter().flatten() {
            let rule = result.get("ruleIndex").and_then(|index| rules.get(index.as_u64()? as usize));
            if rule.is_some_and(|rule| rule["id"] != result["ruleId"])
                || result.get("ruleIndex").is_some() && rule.is_none()
            {
                wrong.push(format!("the rule of {}", result["ruleId"]));
            }
        }
    }
    walk(file, &mut |value| {
        for list in ["threadFlows", "locations"] {
            let empty = value.get(list).and_then(Value::as_array).is_some_and(Vec::is_empty);
            if empty && (list == "threadFlows" || value.get("ruleId").is_none()) {
                wrong.push(format!("{list} is empty"));
            }
        }
        if value.get("startLine").and_then(Value::as_i64).is_some_and(|line| line < 1) {
            wrong.push("a line before the first".into());
        }
        let said =
            value.get("message").is_some_and(|message| message.get("text").is_none() && message.get("id").is_none());
        if said {
            wrong.push("a message without text".into());
        }
    });
    wrong
}

fn walk(value: &Value, each: &mut dyn FnMut(&Value)) {
    each(value);
    match value {
        Value::Array(items) => items.iter().for_each(|item| walk(item, each)),
        Value::Object(items) => items.values().for_each(|item| walk(item, each)),
        _ => {}
    }
}

#[test]
fn sarif_is_as_its_schema_asks() {
    let place = Place::new("sarif", &["handler", "prefork"]);
    for (program, status) in [("./handler", 1), ("./prefork", 1), ("./nothing", 2)] {
        let file = place.json(&["-j", "1", "--format", "sarif", program], status);
        assert_eq!(wrong_with(&file), Vec::<String>::new(), "{program}");
        let results = file["runs"][0]["results"].as_array().expect("results");
        assert_eq!(results.len(), usize::from(status == 1), "{program}");
        if let Some(result) = results.first() {
            let at = &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
            assert!(
                at.as_str().is_some_and(|uri| uri.starts_with("file:///") && uri.contains("/with%20space/")),
                "{at}"
            );
            assert!(!result["codeFlows"][0]["threadFlows"].as_array().expect("flows").is_empty());
        }
    }
}

#[test]
fn what_the_schema_forbids_is_noticed() {
    let good = json!({"version": "2.1.0", "runs": [{
        "tool": {"driver": {"name": "vsrun", "rules": [{"id": "deadlock"}]}},
        "results": [{"ruleId": "deadlock", "ruleIndex": 0, "level": "error", "message": {"text": "x"}}],
    }]});
    assert_eq!(wrong_with(&good), Vec::<String>::new());
    let changed = |pointer: &str, value: Value| {
        let mut file = good.clone();
        let (parent, name) = pointer.rsplit_once('/').expect("a path");
        file.pointer_mut(parent).expect("it is there")[name] = value;
        wrong_with(&file).len()
    };
    let result = |name: &str| format!("/runs/0/results/0/{name}");
    assert_eq!(changed("/version", json!("2.0.0")), 1);
    assert_eq!(changed(&result("level"), json!("fatal")), 1);
    assert_eq!(changed(&result("ruleIndex"), json!(1)), 1);
    assert_eq!(changed(&result("message"), json!({})), 1);
    assert_eq!(changed(&result("where"), json!("a.c")), 1);
    assert_eq!(changed("/runs/0/tool/driver", json!({})), 2, "no name, and the rule is not there");
    let at = |uri: &str, line: i64| json!([{"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": line}}}]);
    assert_eq!(changed(&result("locations"), at("file:///a%20b.c", 1)), 0);
    assert_eq!(changed(&result("locations"), at("file:///a b.c", 1)), 1);
    assert_eq!(changed(&result("locations"), at("a%2", 1)), 1);
    assert_eq!(changed(&result("locations"), at("a.c", 0)), 1);
    assert_eq!(changed(&result("codeFlows"), json!([{"threadFlows": []}])), 1);
}

/// What is wrong with a file of trace events.
fn wrong_with_events(file: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    if !matches!(file["displayTimeUnit"].as_str(), None | Some("ms" | "ns")) {
        wrong.push("displayTimeUnit".into());
    }
    let Some(events) = file["traceEvents"].as_array() else { return vec!["no traceEvents".into()] };
    let number = |event: &Value, key: &str| event[key].as_f64().filter(|n| *n >= 0.0);
    let slices: Vec<(&Value, f64, f64)> = events
        .iter()
        .filter(|event| event["ph"] == "X")
        .filter_map(|event| Some((event, number(event, "ts")?, number(event, "dur")?)))
        .collect();
    let mut flows: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for event in events {
        let mut expect = |good: bool, what: &str| {
            if !good {
                wrong.push(format!("{what}: {event}"));
            }
        };
        expect(event["pid"].is_i64() && event["tid"].is_i64(), "pid and tid are integers");
        expect(event["name"].is_string(), "a name");
        expect(event.get("args").is_none_or(Value::is_object), "args are an object");
        match event["ph"].as_str() {
            Some("M") => {
                let argument = &event["args"];
                expect(
                    match event["name"].as_str() {
                        Some("process_name" | "thread_name") => argument["name"].is_string(),
                        Some("process_sort_index" | "thread_sort_index") => argument["sort_index"].is_i64(),
                        _ => false,
                    },
                    "metadata",
                );
            }
            Some("X") => {
                expect(number(event, "ts").is_some() && number(event, "dur").is_some(), "a slice has ts and dur");
                expect(event["cat"].is_string(), "a category");
            }
            Some("s" | "f") => {
                let within = |of: &(&Value, f64, f64)| {
                    let at = number(event, "ts").unwrap_or(-1.0);
                    (&of.0["pid"], &of.0["tid"]) == (&event["pid"], &event["tid"]) && (of.1..of.1 + of.2).contains(&at)
                };
                expect(slices.iter().any(within), "an arrow binds to a slice around it");
                expect(event["ph"] == "s" || event["bp"] == "e", "an arrow ends in the slice around it");
                flows.entry(event["id"].to_string()).or_default().push(event);
            }
            _ => expect(false, "a phase that is not used here"),
        }
    }
    for (id, flow) in flows {
        let [start, end] = flow[..] else {
            wrong.push(format!("arrow {id} has {} ends", flow.len()));
            continue;
        };
        let same = ["name", "cat"].iter().all(|key| start[key] == end[key]);
        if !(start["ph"] == "s" && end["ph"] == "f" && same && start["ts"].as_f64() < end["ts"].as_f64()) {
            wrong.push(format!("arrow {id}: {start} {end}"));
        }
    }
    wrong
}

#[test]
fn trace_events_are_as_their_format_asks() {
    let place = Place::new("events", &["prefork"]);
    let report = place.json(&["-j", "1", "--format", "json", "./prefork"], 1);
    let scenario = report["bugs"][0]["scenario"].as_str().expect("a scenario");
    let file = place.json(&["timeline", "--format", "perfetto", scenario], 0);
    assert_eq!(wrong_with_events(&file), Vec::<String>::new());
    let events = file["traceEvents"].as_array().expect("events");
    let count = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count();
    assert!(count("X") > 5 && count("M") > 6 && count("s") > 0 && count("s") == count("f"), "{file}");
    // Each rule is seen to be asked.
    let changed = |phase: &str, key: &str, value: Value| {
        let mut file = file.clone();
        let all = file["traceEvents"].as_array_mut().expect("events");
        all.iter_mut().find(|event| event["ph"] == phase).expect("one")[key] = value;
        !wrong_with_events(&file).is_empty()
    };
    for (phase, key, value) in [
        ("X", "ts", json!("1")),
        ("X", "dur", json!(-1)),
        ("X", "tid", json!("main")),
        ("M", "name", json!("colour")),
        ("M", "args", json!({})),
        ("s", "ts", json!(1_000_000)),
        ("s", "id", json!(999)),
        ("f", "bp", json!("s")),
        ("f", "cat", json!("other")),
    ] {
        assert!(changed(phase, key, value), "{phase} {key}");
    }
}
