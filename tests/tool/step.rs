//! `vsrun debug --format json` and `vsrun step`: standing at any step of a scenario, going back, choosing another way, saving it; driven as an
//! editor would, and through tmux. With the vsrun binary.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{json, Value};

/// A directory with the programs and their scenarios, removed at the end.
struct Place {
    dir: PathBuf,
}

fn vsrun() -> Command {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "60", env!("CARGO_BIN_EXE_vsrun")]);
    command
}

impl Place {
    fn new(test: &str, programs: &[&str]) -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-step-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary directory");
        let place = Place { dir };
        for name in programs {
            let root = Path::new(env!("CARGO_MANIFEST_DIR"));
            let mut gcc = Command::new("gcc");
            gcc.args(["-O1", "-g", "-pthread", "-I"])
                .arg(root.join("shim/include"))
                .arg("-o")
                .arg(place.dir.join(name));
            assert!(gcc.arg(root.join(format!("tests/step/{name}.c"))).status().expect("gcc").success());
            let found = place.run(&["--race", "off", &format!("./{name}")]);
            assert_eq!(found.status.code(), Some(1), "{found:?}");
        }
        place
    }

    fn run(&self, args: &[&str]) -> Output {
        vsrun().args(args).current_dir(&self.dir).stdin(Stdio::null()).output().expect("vsrun")
    }

    /// Answers to the opening and to these commands.
    fn debug(&self, file: &str, commands: &[Value]) -> Vec<Value> {
        let lines: String = commands.iter().map(|command| format!("{command}\n")).collect();
        let (code, answers) = self.debug_lines(file, lines.as_bytes());
        assert_eq!(code, Some(0), "{answers:?}");
        assert_eq!(answers.len(), commands.len() + 1, "one answer to each: {answers:?}");
        answers
    }

    fn debug_lines(&self, file: &str, lines: &[u8]) -> (Option<i32>, Vec<Value>) {
        let mut command = vsrun();
        command.args(["debug", "--format", "json", file]).current_dir(&self.dir);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("vsrun");
        let mut stdin = child.stdin.take().unwrap();
        let lines = lines.to_vec();
        let writer = std::thread::spawn(move || drop(stdin.write_all(&lines)));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let answers = text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")));
        (output.status.code(), answers.collect())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// The line of the program with that comment.
fn line_with(name: &str, text: &str) -> u64 {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/step/{name}.c"));
    let source = fs::read_to_string(source).unwrap();
    source.lines().position(|line| line.contains(text)).unwrap() as u64 + 1
}

fn goto(step: usize) -> Value {
    json!({"command": "goto", "step": step})
}

fn who() -> Value {
    json!({"command": "who"})
}

fn thread<'a>(answer: &'a Value, id: &str) -> &'a Value {
    answer["threads"].as_array().unwrap().iter().find(|thread| thread["thread"] == id).unwrap()
}

const DEADLOCK: &str = "clerks-deadlock-1.vsrun.json";

/// What is to be seen at a step does not depend on from where one has come: that is the first N steps of the scenario, run again.
#[test]
fn standing_at_each_step_forward_and_back() {
    let place = Place::new("walk", &["clerks"]);
    let open = &place.debug(DEADLOCK, &[])[0];
    let steps = open["steps"].as_u64().unwrap() as usize;
    assert_eq!((&open["debug"], &open["ok"], &open["end"]["kind"]), (&json!(1), &json!(true), &json!("deadlock")));
    assert!(steps >= 2, "{open}");
    let at_each = |order: Vec<usize>| {
        let commands: Vec<Value> = order.iter().flat_map(|&n| [goto(n), who()]).collect();
        let answers = place.debug(DEADLOCK, &commands);
        let mut all: Vec<Value> = answers[1..].iter().skip(1).step_by(2).cloned().collect();
        all.sort_by_key(|answer| answer["step"].as_u64());
        all
    };
    let (forward, back) = (at_each((0..=steps).collect()), at_each((0..=steps).rev().collect()));
    assert_eq!(forward, back);
    for (n, state) in forward.iter().enumerate() {
        assert_eq!((&state["step"], &state["steps"]), (&json!(n), &json!(steps)));
        assert!(state["line"].as_u64().is_some() && state["file"].as_str().unwrap().ends_with("clerks.c"), "{state}");
        assert_eq!(state["printed"], "open\n");
    }
    // Both stand at their second lock; each waits for the other in the end, and neither is enabled.
    let (first, end) = (&forward[0], &forward[steps]);
    assert_eq!(thread(first, "0.1")["enabled"], true);
    assert_eq!(thread(first, "0.1")["holds"], json!([]));
    for (id, second, held, wanted) in
        [("0.1", "deposit's second", "ledger", "till"), ("0.2", "withdraw's second", "till", "ledger")]
    {
        let one = thread(end, id);
        assert_eq!(
            (&one["enabled"], &one["status"], &one["holds"]),
            (&json!(false), &json!("waiting"), &json!([held])),
            "{one}"
        );
        assert!(one["waits_for"][0].as_str().unwrap().contains(wanted), "{one}");
        assert_eq!(one["line"], line_with("clerks", second), "{one}");
        assert!(one["stack"].as_array().unwrap().len() > 1, "{one}");
    }
    let labels: Vec<&str> =
        end["waits"]["edges"].as_array().unwrap().iter().map(|edge| edge["label"].as_str().unwrap()).collect();
    assert!(labels.contains(&"waits for") && labels.contains(&"held by"), "{end}");
    assert_eq!(end["next"], Value::Null);
    // Relative steps.
    let walked = place.debug(DEADLOCK, &[goto(0), json!({"command": "step"}), json!({"command": "back", "count": 1})]);
    assert_eq!((&walked[2]["step"], &walked[3]["step"]), (&json!(1), &json!(0)));
    assert_eq!(walked[2]["made"]["thread"], walked[1]["next"]["thread"]);
}

/// Another thread goes on: the circle does not close. That is a scenario, from which the circle is chosen again.
#[test]
fn a_choice_leaves_the_scenario_and_is_saved() {
    let place = Place::new("choose", &["clerks"]);
    let open = place.debug(DEADLOCK, &[goto(1)]);
    let first = open[1]["made"]["thread"].as_str().unwrap().to_string();
    let other = if first == "0.1" { "0.2" } else { "0.1" };
    let save = json!({"command": "save", "file": "peace.json"});
    let answers = place.debug(
        DEADLOCK,
        &[
            goto(1),
            json!({"command": "choose", "thread": first}),
            who(),
            save.clone(),
            save.clone(),
            json!({"command": "back"}),
            json!({"command": "explain", "samples": 3}),
        ],
    );
    let chosen = &answers[2];
    assert_eq!(
        (&chosen["left"], &chosen["step"], &chosen["left_after"]),
        (&json!(true), &json!(2), &json!(1)),
        "{chosen}"
    );
    assert_eq!((&chosen["made"]["thread"], &chosen["end"]["kind"]), (&json!(first), &json!("finished")), "{chosen}");
    assert_eq!(thread(&answers[3], &first)["holds"].as_array().unwrap().len(), 2, "{}", answers[3]);
    assert_eq!((&answers[4]["ok"], &answers[4]["file"]), (&json!(true), &json!("peace.json")));
    assert_eq!(answers[5]["ok"], false, "no file is overwritten: {}", answers[5]);
    assert_eq!(
        (&answers[6]["step"], &answers[6]["next"]["thread"]),
        (&json!(1), &json!(first)),
        "the chosen path is the path now"
    );
    assert_eq!(answers[7]["explained"]["kind"], "deadlock", "{}", answers[7]);
    let again = place.run(&["replay", "--format", "json", "peace.json"]);
    let told: Value = serde_json::from_slice(&again.stdout).unwrap_or_else(|e| panic!("{e}: {again:?}"));
    assert_eq!((again.status.code(), &told["replayed"], &told["kind"]), (Some(3), &json!(true), &json!("outcome")));
    let text = place.run(&["replay", "peace.json"]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("it is no bug"), "{text:?}");
    assert!(String::from_utf8_lossy(&text.stderr).contains("closed"), "what the chosen way prints: {text:?}");
    // And back into it.
    let answers = place.debug(
        "peace.json",
        &[goto(1), json!({"command": "choose", "thread": other}), json!({"command": "save", "file": "war.json"})],
    );
    assert_eq!(
        (&answers[2]["end"]["kind"], &answers[2]["end"]["bug"]),
        (&json!("deadlock"), &json!(true)),
        "{}",
        answers[2]
    );
    let again = place.run(&["replay", "--format", "json", "war.json"]);
    let told: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!((again.status.code(), &told["replayed"], &told["kind"]), (Some(1), &json!(true), &json!("deadlock")));
    let scenario = |name: &str| {
        fs::read_to_string(place.dir.join(name)).map(|text| serde_json::from_str::<Value>(&text).unwrap()).unwrap()
    };
    assert_eq!(scenario("war.json")["bug"], scenario(DEADLOCK)["bug"], "the same bug");
}

/// Another value of a toss is a choice, too; and what cannot be chosen is told and changes nothing.
#[test]
fn alternatives_and_what_cannot_be_done() {
    let place = Place::new("toss", &["dice"]);
    let file = "dice-assert-1.vsrun.json";
    let answers =
        place.debug(file, &[goto(0), who(), json!({"command": "choose", "thread": "0", "alternative": 2}), who()]);
    let ways = thread(&answers[2], "0")["ways"].clone();
    assert_eq!(ways[2], json!({"alternative": 2, "text": "VS_toss(2) = 2"}), "{ways}");
    assert_eq!(
        (&answers[3]["end"]["kind"], &answers[4]["printed"]),
        (&json!("finished"), &json!("thrown 2\n")),
        "{}",
        answers[3]
    );
    let lines = b"\n{\"command\":\"goto\",\"step\":0}\nnonsense\n[1]\n{\"command\":\"fly\",\"id\":9}\n{\"command\":\"goto\",\"step\":99}\n\
        {\"command\":\"back\"}\n{\"command\":\"choose\",\"thread\":\"0.7\"}\n{\"command\":\"choose\",\"thread\":\"0\",\"alternative\":3}\n\
        {\"command\":\"who\"}\n{\"command\":\"quit\"}\n{\"command\":\"who\"}\n";
    let (code, answers) = place.debug_lines(file, lines);
    assert_eq!((code, answers.len()), (Some(0), 11), "nothing comes after quit: {answers:?}");
    let wrong: Vec<bool> = answers.iter().map(|answer| answer["ok"] == false).collect();
    assert_eq!(wrong, [false, false, true, true, true, true, true, true, true, false, false], "{answers:?}");
    assert!(answers[2..9].iter().all(|answer| answer["error"].as_str().is_some_and(|error| !error.is_empty())));
    assert_eq!(
        (&answers[4]["id"], &answers[9]["step"], &answers[9]["steps"]),
        (&json!(9), &json!(0), &answers[0]["steps"])
    );
    // The end of what is read ends it, also in the middle of a line; too long a line is passed over.
    let long =
        [b"{\"command\":\"who\",\"id\":\"".to_vec(), vec![b'x'; 3 << 20], b"\"}\n{\"command\":\"who\"}".to_vec()]
            .concat();
    let (code, answers) = place.debug_lines(file, &long);
    let ok: Vec<&Value> = answers.iter().map(|answer| &answer["ok"]).collect();
    assert_eq!((code, ok), (Some(0), vec![&json!(true), &json!(false), &json!(true)]), "{answers:?}");
}

/// A terminal with vsrun in it.
struct Screen<'a> {
    place: &'a Place,
    socket: String,
}

impl Screen<'_> {
    /// Behind it says how it ended, and whether the terminal reads lines as before.
    fn open<'a>(place: &'a Place, size: (u32, u32), environment: &str, file: &str) -> Screen<'a> {
        // A server that is asked to end still answers for a moment: the next one has a socket of its own.
        static SCREENS: AtomicUsize = AtomicUsize::new(0);
        let name = format!("tmux{}", SCREENS.fetch_add(1, Ordering::Relaxed));
        let screen = Screen { place, socket: place.dir.join(name).to_string_lossy().into_owned() };
        let vsrun = env!("CARGO_BIN_EXE_vsrun");
        let line = format!(
            "{environment} {vsrun} step {file}; echo \"left: $?\"; stty -a | grep -o '.icanon'; exec sleep 100"
        );
        let (wide, high) = (size.0.to_string(), size.1.to_string());
        screen.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", &wide, "-y", &high, "sh", "-c", &line]);
        screen
    }

    fn tmux(&self, args: &[&str]) -> String {
        let mut command = Command::new("timeout");
        command.args(["20", "tmux", "-u", "-S", &self.socket]).args(args).current_dir(&self.place.dir);
        let output = command.env("TERM", "xterm-256color").output().expect("tmux");
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// What is on the screen, once it has this.
    fn shows(&self, text: &str) -> String {
        let since = Instant::now();
        loop {
            let screen = self.tmux(&["capture-pane", "-p"]);
            if screen.contains(text) {
                return screen;
            }
            assert!(since.elapsed() < Duration::from_secs(30), "{text} does not come:\n{screen}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }
}

impl Drop for Screen<'_> {
    fn drop(&mut self) {
        let _ = Command::new("tmux").args(["-S", &self.socket, "kill-server"]).output();
    }
}

#[test]
fn the_screen_walks_chooses_and_saves() {
    let place = Place::new("screen", &["clerks"]);
    let steps = place.debug(DEADLOCK, &[])[0]["steps"].as_u64().unwrap();
    let screen = Screen::open(&place, (80, 24), "", DEADLOCK);
    screen.shows(&format!("after step {steps} of {steps}; the end"));
    screen.keys(&["Home"]);
    let first = screen.shows("after step 0 of");
    assert!(
        first.lines().nth(2).is_some_and(|row| row.starts_with(" 1 |*| deposit ") && row.contains("clerks.c:")),
        "{first}"
    );
    assert!(first.contains("-- threads") && first.contains(">b deposit: pthread_mutex_lock(ledger)"), "{first}");
    screen.keys(&["Right"]);
    screen.shows("after step 1 of");
    screen.keys(&["Left", "Right", "Tab", "Tab"]);
    let source = screen.shows("-- source");
    assert!(source.contains("clerks.c:"), "{source}");
    screen.keys(&["BTab", "BTab", "g", "1", "Enter", "c"]);
    let asked = screen.shows("who makes the next step?");
    // Both stand at a lock that is free: the one that the scenario does not take is the other way.
    assert!(asked.contains("[as it is]"), "{asked}");
    let taken = place.debug(DEADLOCK, &[goto(1)])[1]["next"]["thread"].clone();
    let to: &[&str] = if taken == "0.1" { &["Down", "Enter"] } else { &["Enter"] };
    screen.keys(to);
    screen.shows("[another way after step 1]");
    screen.shows("finished");
    // The size changes.
    screen.tmux(&["resize-window", "-x", "130", "-y", "45"]);
    let wide = screen.shows("-- output so far");
    assert!(wide.contains("-- held and waited for") && wide.contains("-- source") && wide.contains("open"), "{wide}");
    screen.tmux(&["resize-window", "-x", "60", "-y", "20"]);
    screen.keys(&["s", "x", ".", "j", "s", "o", "n", "Enter"]);
    screen.shows("saved as x.json");
    screen.keys(&["q"]);
    screen.shows("left: 0");
    screen.shows(" icanon");
    let again = place.run(&["replay", "--format", "json", "x.json"]);
    assert_eq!(again.status.code(), Some(3), "{again:?}");
    assert!(String::from_utf8_lossy(&again.stdout).contains("\"replayed\":true"), "{again:?}");
}

/// What ends it.
type End<'a> = &'a dyn Fn(&Screen);

/// However it ends; and without a terminal it does not begin.
#[test]
fn the_terminal_is_as_it_was() {
    let place = Place::new("terminal", &["clerks"]);
    let ends: [(&str, End); 2] = [
        ("left: 0", &|screen| screen.keys(&["C-c"])),
        ("left: 3", &|screen| {
            let shell = screen.tmux(&["display-message", "-p", "#{pane_pid}"]);
            let child = fs::read_to_string(format!("/proc/{0}/task/{0}/children", shell.trim())).unwrap();
            let vsrun = child.split_whitespace().next().unwrap();
            assert!(Command::new("kill").args(["-TERM", vsrun]).status().unwrap().success());
        }),
    ];
    for (left, end) in ends {
        let screen = Screen::open(&place, (60, 20), "NO_COLOR=1", DEADLOCK);
        screen.shows("; the end");
        let coloured = screen.tmux(&["capture-pane", "-p", "-e"]);
        assert!(!coloured.contains("\u{1b}[31m") && !coloured.contains("\u{1b}[32m"), "NO_COLOR: {coloured:?}");
        end(&screen);
        let after = screen.shows(left);
        screen.shows(" icanon");
        assert!(!after.contains("-- threads"), "the screen of before: {after}");
    }
    let piped = place.run(&["step", DEADLOCK]);
    assert_eq!((piped.status.code(), piped.stdout.len()), (Some(2), 0));
    assert!(String::from_utf8_lossy(&piped.stderr).contains("needs a terminal"), "{piped:?}");
}

/// Nobody can press a key any more: it ends, rather than ask for ever.
#[test]
fn it_ends_with_its_terminal() {
    let place = Place::new("closed", &["clerks"]);
    let screen = Screen::open(&place, (60, 20), "", DEADLOCK);
    screen.shows("; the end");
    let shell = screen.tmux(&["display-message", "-p", "#{pane_pid}"]);
    let child = fs::read_to_string(format!("/proc/{0}/task/{0}/children", shell.trim())).unwrap();
    let vsrun = Path::new("/proc").join(child.split_whitespace().next().unwrap());
    assert!(vsrun.exists());
    drop(screen);
    let since = Instant::now();
    while vsrun.exists() {
        assert!(since.elapsed() < Duration::from_secs(20), "it is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}
