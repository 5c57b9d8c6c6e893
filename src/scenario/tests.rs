use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use vsrun_model::arena::{Choice, Policy};
use vsrun_model::{Kind, Uid};

use super::super::{Found, Options, Program, ScenarioStep, Shown, Then};
use super::*;
use crate::base::testing::TempDir;
use crate::finding::BugKind;
use crate::objects::{Declaration, Objects, What};
use crate::schedule::Schedule;

fn sample() -> Scenario {
    let step = |thread: Uid, value, op, text: &str| ScenarioStep {
        thread,
        op,
        value,
        alternatives: 3,
        text: text.into(),
        note: None,
        at: None,
    };
    Scenario {
        program: Program {
            exe: "/bin/philosophers".into(),
            argv: vec!["philosophers".into(), "a\nb".into(), OsString::from_vec(vec![0xff, 0, b'x'])],
            cwd: "/tmp".into(),
            env: vec!["A=1".into(), OsString::from_vec(b"B=\xc3".to_vec())],
            ..Program::default()
        },
        fingerprint: serde_json::json!({"size": 16000, "fnv": "00000000000000ff", "build_id": "abcd"}),
        options: Options {
            timeouts_any: true,
            store_buffers: false,
            livelock: 3,
            fail_on_exit: true,
            divergence_timeout_ms: 500,
            seed: u64::MAX,
            stdin: "null".into(),
            watches: false,
            watched: false,
            ..Options::default()
        },
        bug: Shown { kind: BugKind::Deadlock, summary: "two threads \"wait\"".into(), identity: 0xfedc_ba98_7654_3210 },
        found: Found { search: "dpor".into(), execution: 3, shortened: None },
        people: [("0.1".into(), "worker#1".into())].into(),
        steps: vec![
            step(Uid::MAIN.child(1), 0, Kind::MUTEX_LOCK, "pthread_mutex_lock(lock_a)"),
            step(Uid::MAIN.child(2).child(5000), 2, Kind::TOSS, "VS_toss(2)"),
        ],
        then: Some(Then::new(&Schedule { policy: Policy::RANDOM, seed: 7, ..Schedule::default() })),
        objects: Objects {
            unshared: true,
            shared: [3, u64::MAX].into(),
            declared: vec![Declaration { symbol: "lock".into(), what: What::Atomic, start: 0x4000, size: 40 }],
            words: [(0, 8), (1, 0x4000)].into(),
            distrusts: true,
            reuses: true,
            late: ["/usr/lib/a.so".into()].into(),
        },
    }
}

/// A file as the first version wrote it: what told its bug from others is not what tells them apart today.
#[test]
fn older_versions_are_read() {
    let mut now = Scenario { objects: Objects::default(), ..sample() };
    let text = now.to_json().replacen("\"vsrun_scenario\": 11", "\"vsrun_scenario\": 1", 1);
    assert!(!text.contains("objects"));
    let content = text.rsplit_once(",\n  \"checksum\"").unwrap().0;
    let text = format!("{content}, \"checksum\": \"{:016x}\" }}\n", checksum(content.as_bytes()));
    now.bug.identity = 0;
    assert_eq!(Scenario::from_json(text.as_bytes()).unwrap(), now);
}

fn line(cause: LoadCause) -> String {
    let text = LoadError { path: PathBuf::from("d/f\n.json"), cause }.to_string();
    assert!(text.starts_with("d/f\\x0a.json: ") && !text.contains('\n'), "{text}");
    text
}

#[test]
fn round_trip() {
    let scenario = sample();
    let text = scenario.to_json();
    assert_eq!(Scenario::from_json(text.as_bytes()).unwrap(), scenario, "{text}");
    assert_eq!(Scenario::from_json(text.as_bytes()).unwrap().to_json(), text);
    assert_eq!(scenario.prefix()[1], Choice::new(Uid::MAIN.child(2).child(5000), 2, Kind::TOSS));
    assert_eq!(scenario.then.unwrap().policy(), Some(Policy::RANDOM));
}

#[test]
fn layout_is_for_people_too() {
    let text = sample().to_json();
    assert!(
        text.starts_with("{\n  \"vsrun_scenario\": 11,\n  \"program\": {\n    \"exe\": \"/bin/philosophers\",\n"),
        "{text}"
    );
    assert!(text.contains("[\"philosophers\",\"a\\nb\",{\"hex\":\"ff0078\"}]"), "{text}");
    let step =
        r#"    {"thread":"0.1","op":"mutex_lock","value":0,"alternatives":3,"text":"pthread_mutex_lock(lock_a)"},"#;
    assert!(text.lines().any(|l| l == step), "{text}");
    assert!(text.ends_with("\"\n}\n"), "{text}");
}

#[test]
fn odd_bytes_round_trip() {
    let mut random = 1u64;
    let mut next = || {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 33) as usize
    };
    let parts: [&[u8]; 10] = [
        b"a",
        b"\"",
        b"\\",
        b"\n",
        b"\x00",
        b"\xff",
        b"\xc3\xa4",
        b"\xed\xa0\x80",
        b"{\"hex\":\"\"}",
        b"\x7f\xe2\x80\xa8",
    ];
    for _ in 0..500 {
        let mut text =
            || OsString::from_vec((0..next() % 6).flat_map(|_| parts[next() % parts.len()].to_vec()).collect());
        let mut scenario = sample();
        scenario.program =
            Program { exe: text(), script: text(), argv: vec![text(), text()], cwd: text(), env: vec![text()] };
        scenario.bug.summary = text().to_string_lossy().into_owned();
        let json = scenario.to_json();
        assert_eq!(Scenario::from_json(json.as_bytes()).unwrap(), scenario, "{json}");
    }
}

#[test]
fn truncation_anywhere_is_recognized() {
    let text = sample().to_json().into_bytes();
    assert!(matches!(Scenario::from_json(&[]), Err(LoadCause::Empty)));
    for n in 1..text.len() {
        let result = Scenario::from_json(&text[..n]);
        assert!(matches!(result, Err(LoadCause::Truncated(..))), "{n}: {result:?}");
    }
    assert_eq!(
        line(Scenario::from_json(&text[..30]).unwrap_err()),
        "d/f\\x0a.json: the scenario is truncated: it ends too early at line 3, column 4"
    );
}

#[test]
fn a_changed_byte_anywhere_is_recognized() {
    let text = sample().to_json().into_bytes();
    let scenario = sample();
    for n in 0..text.len() {
        let mut changed = text.clone();
        changed[n] = if changed[n] == b'7' { b'6' } else { b'7' };
        // White space is not content: only there may a change be without effect.
        match Scenario::from_json(&changed) {
            Err(_) => {}
            Ok(read) => panic!("byte {n}: {read:?} {}", read == scenario),
        }
    }
}

#[test]
fn other_files_are_told_apart() {
    let cause = |text: &str| line(Scenario::from_json(text.as_bytes()).unwrap_err());
    assert!(cause("hello\n").ends_with("not a vsrun scenario: not JSON at line 1, column 1"));
    assert!(cause("\x7fELF").contains("not JSON"));
    assert!(cause("{}\n").ends_with("not a vsrun scenario: it has no \"vsrun_scenario\""));
    assert!(cause("[1]\n").ends_with("not a vsrun scenario: [1]"));
    assert!(cause("3\n").contains("not a vsrun scenario: "));
    assert!(cause("{\"vsrun_scenario\": 12}\n").ends_with("a scenario of format 12; this vsrun reads format 1 to 11"));
    let edited = sample().to_json().replace("\"seed\": 18446744073709551615", "\"seed\": 1");
    assert!(cause(&edited).contains("edited or damaged"));
    let more = sample().to_json().replace("\"\n}\n", "\", \"then\": null}\n");
    assert!(cause(&more).contains("edited or damaged"));
    let without = sample().to_json().replace("checksum", "checksun");
    assert!(cause(&without).contains("edited or damaged"));
}

#[test]
fn only_white_space_between_tokens_may_change() {
    let text = sample().to_json();
    let tight = text.replace("\n  ", "\n").replace("\": ", "\":");
    assert_eq!(Scenario::from_json(tight.as_bytes()).unwrap(), sample());
    let inside = text.replace("two threads", "two  threads");
    assert!(matches!(Scenario::from_json(inside.as_bytes()), Err(LoadCause::Checksum)));
    let none = Scenario { steps: Vec::new(), then: None, fingerprint: Value::Null, ..sample() };
    assert_eq!(Scenario::from_json(none.to_json().as_bytes()).unwrap(), none);
}

#[test]
fn content_that_makes_no_sense_is_named() {
    let wrong = |from: &str, to: &str| {
        let text = sample().to_json().replace(from, to);
        let content = text.rsplit_once(",\n  \"checksum\"").unwrap().0;
        let text = format!("{content}, \"checksum\": \"{:016x}\" }}\n", checksum(content.as_bytes()));
        line(Scenario::from_json(text.as_bytes()).unwrap_err())
    };
    assert!(wrong("\"0.1\"", "\"7.1\"").contains("\"7.1\" is not a thread"));
    assert!(wrong("mutex_lock\"", "mutex_luck\"").contains("\"mutex_luck\" is not an operation"));
    assert!(wrong("\"ff0078\"", "\"ff007\"").contains("hexadecimal"));
    assert!(wrong("\"0000000000000003\"", "\"3x\"").contains("\"3x\" is not hexadecimal"));
    assert!(wrong("\"atomic\"", "\"atomar\"").contains("atomar"));
    assert!(wrong("\"deadlock\"", "\"headlock\"").contains("headlock"));
    assert!(wrong("\"random\"", "\"wild\"").contains("unknown policy"));
    assert!(wrong("\"cwd\"", "\"cwx\"").contains("cwd"));
}

#[test]
fn files_are_new_and_complete() {
    let dir = TempDir::new();
    let below = dir.0.join("new/dir");
    let first = sample().write(&below).unwrap();
    let second = sample().write(&below).unwrap();
    assert_eq!(first, below.join("philosophers-deadlock-1.vsrun.json"));
    assert_eq!(second, below.join("philosophers-deadlock-2.vsrun.json"));
    fs::write(&first, "mine").unwrap();
    assert_eq!(sample().write(&below).unwrap(), below.join("philosophers-deadlock-3.vsrun.json"));
    assert_eq!(fs::read(&first).unwrap(), b"mine");
    assert_eq!(Scenario::load(&second).unwrap(), sample());
    assert_eq!(fs::read_dir(&below).unwrap().count(), 3, "no temporary file stays");
}

#[test]
fn threads_that_write_at_once_get_different_files() {
    let dir = TempDir::new();
    let write = || sample().write(&dir.0).unwrap();
    let mut paths: Vec<_> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8).map(|_| scope.spawn(write)).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    paths.sort();
    paths.dedup();
    assert_eq!((paths.len(), fs::read_dir(&dir.0).unwrap().count()), (8, 8));
    assert!(paths.iter().all(|path| Scenario::load(path).is_ok()));
}

#[test]
fn names_need_no_quoting() {
    let mut scenario = sample();
    for (exe, name) in
        [("/x/a b'\"\n", "a_b___-crash"), ("-rf", "rf-crash"), ("/", "program-crash"), ("..", "program-crash")]
    {
        scenario.program.exe = exe.into();
        scenario.bug.kind = BugKind::Crash;
        assert_eq!(scenario.base_name(), name);
    }
    scenario.program.exe = "n".repeat(255).into();
    let dir = TempDir::new();
    assert!(scenario.write(&dir.0).is_ok());
}

#[test]
fn directories_that_cannot_be_written_to() {
    let dir = TempDir::new();
    let file = dir.0.join("file");
    fs::write(&file, "x").unwrap();
    for bad in [file.as_path(), &file.join("below"), Path::new("/proc/nowhere"), Path::new("/proc")] {
        let text = sample().write(bad).unwrap_err().to_string();
        assert!(text.starts_with(&format!("cannot write a scenario to {}: ", bad.display())), "{text}");
        assert!(text.contains("--scenario-dir") && !text.contains('\n'), "{text}");
    }
    assert_eq!(fs::read(&file).unwrap(), b"x");
    let missing = Scenario::load(&dir.0.join("none")).unwrap_err();
    assert!(matches!(missing.cause, LoadCause::Unreadable(_)), "{missing}");
    assert!(Scenario::load(&dir.0).unwrap_err().to_string().ends_with("cannot read the scenario: it is a directory"));
    assert!(Scenario::load(Path::new("/dev/zero")).unwrap_err().to_string().contains("it is a device"));
}

#[test]
fn what_comes_after_the_steps_is_said_with_its_guide() {
    let choice = |thread, value, kind| Choice::new(Uid::parse(thread).unwrap(), value, kind);
    let guide = vec![choice("0", 0, Kind::MUTEX_LOCK), choice("0.3", 2, Kind::SEM_POST)];
    let schedule = Schedule { guide, policy: Policy::POS, seed: 5, pct_fair: u64::MAX, ..Schedule::default() };
    let text = serde_json::to_string(&Then::new(&schedule)).unwrap();
    let then: Then = serde_json::from_str(&text).unwrap();
    assert_eq!(then.schedule(Vec::new()), schedule);
    assert!(!serde_json::to_string(&Then::new(&Schedule::default())).unwrap().contains("guide"));
}
