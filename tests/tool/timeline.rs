//! Pictures of scenarios, lists of single executions, and reports for servers. With the vsrun binary, and with Chromium where it is installed.

mod browser;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use browser::Browser;
use serde_json::{json, Value};

/// A directory with a program and its source, removed at the end.
struct Place(PathBuf);

impl Place {
    /// `source` of `tests/timeline`, compiled there to `program`.
    fn new(test: &str, source: &str) -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-timeline-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary directory");
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/timeline").join(source);
        fs::copy(from, dir.join(source)).expect("the source");
        let place = Place(dir);
        let arguments = ["-O2", "-g", "-pthread", "-o", "program", source];
        assert!(place.command("gcc", &arguments).status().expect("gcc").success(), "{source}");
        place
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.0);
        command
    }

    fn vsrun(&self, arguments: &[&str]) -> Output {
        self.command(env!("CARGO_BIN_EXE_vsrun"), arguments).output().expect("vsrun runs")
    }

    /// What vsrun prints, which ends with that status.
    fn text(&self, arguments: &[&str], status: i32) -> String {
        let done = self.vsrun(arguments);
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(status), "{said}{}", String::from_utf8_lossy(&done.stdout));
        String::from_utf8(done.stdout).expect("UTF-8")
    }

    fn json(&self, arguments: &[&str], status: i32) -> Value {
        serde_json::from_str(&self.text(arguments, status)).expect("JSON")
    }

    fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.0.join(name), text).expect(name);
        name.into()
    }

    /// The same as a path.
    fn path(&self, name: &str, text: &str) -> PathBuf {
        self.0.join(self.write(name, text))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const DEADLOCK: &str = "program-deadlock-1.vsrun.json";

/// A server whose threads wait for each other, with a scenario.
fn server(test: &str) -> Place {
    let place = Place::new(test, "server.c");
    // As it was found: a shorter one has no signal any more.
    place.text(
        &["--search", "optimal", "--race", "off", "--shrink", "0", "--progress", "never", "./program", HOSTILE],
        1,
    );
    place
}

/// An argument that would be code on a page that takes it as it is; the program gives such a name to its child, too.
const HOSTILE: &str = "\"'><script>console.error('argument')</script>&amp;";

/// The number of the first step of that kind by that thread on that object.
fn step_of(steps: &Value, thread: &str, kind: &str, object: &str) -> u64 {
    let is_it = |step: &&Value| {
        step["thread"] == thread
            && step["kind"] == kind
            && step["text"].as_str().is_some_and(|text| text.contains(object))
    };
    let found = steps["steps"].as_array().expect("steps").iter().find(is_it);
    found.unwrap_or_else(|| panic!("{thread} {kind} {object} in {steps}"))["step"].as_u64().expect("a number")
}

/// The line of the source with this in it.
fn source_line(part: &str) -> u64 {
    let source = include_str!("../timeline/server.c");
    source.lines().zip(1..).find(|(line, _)| line.contains(part)).expect(part).1
}

fn has(text: &str, part: &str) {
    assert!(text.contains(part), "\n{part}\nis not in\n{text}");
}

/// The page of the server's scenario.
fn page(place: &Place) -> String {
    assert_eq!(place.text(&["timeline", DEADLOCK, "-o", "bug.html"], 0), "");
    fs::read_to_string(place.0.join("bug.html")).expect("the page")
}

#[test]
fn a_page_says_who_waits_and_what_happened() {
    let place = server("page");
    let text = page(&place);
    for part in [
        "<p class=\"verdict bad\">deadlock</p>",
        "<h1>2 threads wait for each other: worker#2 (0.3) for stats_lock, reporter (0.4) for queue_lock</h1>",
        "worker#2 (0.3)</span> waits for stats_lock, held by thread reporter (0.4)</li>",
        "reporter (0.4)</span> waits for queue_lock, held by thread worker#2 (0.3)</li>",
        "<p class=\"op\">pthread_cond_broadcast(not_empty)",
        "data-source=\"pthread_mutex_lock(&amp;queue_lock); /* the statistics are held */\"",
        "data-why=\"lock queue_lock\"",
        "data-why=\"creates the thread\"",
        "data-why=\"signal SIGUSR1\"",
        "<section class=\"story\">",
    ] {
        has(&text, part);
    }
    has(&text, &format!("take_job server.c:{}", source_line("/* the queue is held */")));
    // What the program printed is text.
    has(&text, "&lt;script&gt;console.error(&#39;printed&#39;)&lt;/script&gt; &amp; &quot;done&quot;");
    has(&text, "&gt;&lt;script&gt;console.error(");
    has(&text, "&lt;b&gt;&amp;&#39;");
    assert_eq!((text.matches("<script").count(), text.matches("<b>&").count()), (1, 0));
    for outside in ["http:", "https:", "src=", "@import"] {
        assert!(!text.contains(outside), "{outside}");
    }
}

#[test]
fn the_page_in_a_browser() {
    let place = server("browser");
    page(&place);
    let Some(mut browser) = Browser::start(&place.0) else { return };
    let file = place.0.join("bug.html");
    // That complaints are heard at all.
    browser.open(&place.path("wrong.html", "<script>console.error('heard'); nothing.there</script>"), "", 800, "light");
    assert!(browser.complaints.len() >= 2, "{:?}", browser.complaints);
    browser.complaints.clear();
    browser.requests.clear();
    for (width, scheme) in [(1280, "light"), (1280, "dark"), (400, "light"), (400, "dark")] {
        browser.open(&file, "", width, scheme);
        let picture = browser.picture(&format!("page-{width}-{scheme}.png"), true);
        assert!(picture.starts_with(b"\x89PNG") && picture.len() > 20_000, "{} bytes", picture.len());
        // Nothing is wider than the window, and text is large enough to be read and stands out from what is behind it.
        assert_eq!(browser.value("document.documentElement.scrollWidth"), width);
        let smallest = "Math.min(...[...document.querySelectorAll('p, li, dd, dt, h1, h2, span, b, pre')].map(e => parseFloat(getComputedStyle(e).fontSize)))";
        assert!(browser.value(smallest).as_f64().expect("a size") >= 12.0);
        let contrast = browser.value(CONTRAST).as_f64().expect("a ratio");
        assert!(contrast >= 4.5, "{contrast} at {width}, {scheme}");
        let op = browser.value("Math.min(...[...document.querySelectorAll('.op')].map(e => e.clientWidth))");
        assert!(op.as_f64().expect("a width") >= 180.0, "{op} at {width}");
    }
    // On paper everything is there, and nothing that is only for the screen.
    browser.ask("Emulation.setEmulatedMedia", json!({"media": "print"}));
    let style = |of: &str, what: &str| format!("getComputedStyle(document.querySelector('{of}')).{what}");
    let (chunk, panel) = (style(".chunk", "contentVisibility"), style("#panel", "display"));
    assert_eq!((browser.value(&chunk), browser.value(&panel)), (Value::from("visible"), Value::from("none")));
    let paper = browser.ask("Page.printToPDF", json!({"printBackground": true}));
    assert!(paper["data"].as_str().is_some_and(|data| data.len() > 20_000));
    browser.ask("Emulation.setEmulatedMedia", json!({"media": ""}));
    assert_eq!(browser.value(&chunk), "auto");
    // A step that is named in the address is shown in the panel, with what comes before it.
    let all = place.json(&["timeline", "--format", "json", DEADLOCK], 0);
    let lock = step_of(&all, "0.2", "mutex_lock", "queue_lock");
    let unlock = step_of(&all, "0", "mutex_unlock", "queue_lock");
    let (sent, taken) = (step_of(&all, "0.1", "kill", ""), signalled(&all));
    let panel = "document.getElementById('panel').innerText";
    browser.open(&file, &format!("#s{lock}"), 1280, "light");
    let said = browser.value(panel).to_string();
    has(&said, "pthread_mutex_lock(queue_lock)");
    has(&said, &format!("comes after step {unlock} (lock queue_lock): pthread_mutex_unlock(queue_lock)"));
    // The keys go from row to row, and the mouse shows a row.
    let press = "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowDown', bubbles: true})), document.activeElement.id";
    assert_eq!(browser.value(press), format!("s{}", lock + 1));
    has(&browser.value(panel).to_string(), "the queue is held");
    let point = format!(
        "document.activeElement.blur(), document.getElementById('s{sent}').dispatchEvent(new MouseEvent('mouseover', {{bubbles: true}}))"
    );
    browser.value(&point);
    has(&browser.value(panel).to_string(), &format!("comes before step {taken} (signal SIGUSR1)"));
    browser.picture("panel.png", false);
    assert_eq!(browser.complaints, Vec::<String>::new());
    let outside =
        |url: &&String| !url.starts_with("file://") && !url.starts_with("about:") && !url.starts_with("data:");
    assert_eq!(browser.requests.iter().find(outside), None);
}

/// The number of the step that takes the signal.
fn signalled(all: &Value) -> u64 {
    let taken = |step: &&Value| step["note"].as_str().is_some_and(|note| note.contains("SIGUSR1"));
    let step = all["steps"].as_array().expect("steps").iter().find(taken).expect("a step that takes it");
    step["step"].as_u64().expect("a number")
}

/// The least contrast of text with the page (WCAG 2.1, "contrast ratio").
const CONTRAST: &str = r#"(() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const light = colour => {
    canvas.fillStyle = "black"; canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    const part = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
  };
  const paper = light(getComputedStyle(document.documentElement).backgroundColor);
  const all = [...document.querySelectorAll("h1, h2, dt, dd, p, span, li, b")].map(e => light(getComputedStyle(e).color));
  return Math.min(...all.map(ink => (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05)));
})()"#;

#[test]
fn many_steps_scroll() {
    let place = Place::new("many", "turns.c");
    place.text(&["--once", "./program", "1100"], 1);
    place.text(&["timeline", "program-assert-1.vsrun.json", "-o", "many.html"], 0);
    let text = fs::read_to_string(place.0.join("many.html")).expect("the page");
    assert!(text.matches("<li id=\"s").count() > 10_000);
    let Some(mut browser) = Browser::start(&place.0) else { return };
    browser.open(&place.0.join("many.html"), "", 1280, "light");
    // Milliseconds between frames, in their order, while the page scrolls from its beginning to its end.
    let frames = "new Promise(done => {
        const times = []; let last;
        const step = now => {
            if (last) times.push(now - last);
            last = now;
            scrollBy(0, document.documentElement.scrollHeight / 120);
            times.length < 120 ? requestAnimationFrame(step) : done(times.sort((a, b) => a - b));
        };
        requestAnimationFrame(step);
    })";
    let times = browser.value(frames);
    let at = |n: usize| times[n].as_f64().expect("a time");
    eprintln!(
        "{} rows: frames of {:.0} ms (median), {:.0} ms (95 of 100)",
        text.matches("<li id=\"s").count(),
        at(60),
        at(114)
    );
    // A screen shows 60 a second; this machine may be busy.
    assert!(at(60) < 100.0, "{times}");
    assert!(browser.value("scrollY").as_f64().expect("a place") > 300_000.0);
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn the_picture_for_other_programs() {
    let place = server("formats");
    let dot = place.text(&["timeline", "--format", "dot", DEADLOCK], 0);
    let node = |label: &str| {
        let line = dot.lines().find(|line| line.contains(&format!("[label=\"{label}\"")));
        line.expect(label).split_whitespace().next().expect("a name").to_string()
    };
    for (from, to, why) in [
        ("worker#2 (0.3)", "stats_lock", "waits for"),
        ("stats_lock", "reporter (0.4)", "held by"),
        ("reporter (0.4)", "queue_lock", "waits for"),
        ("queue_lock", "worker#2 (0.3)", "held by"),
        ("program (0)", "worker#2 (0.3)", "waits for"),
    ] {
        has(&dot, &format!("{} -> {} [label=\"{why}\"", node(from), node(to)));
    }
    let all = place.json(&["timeline", "--format", "json", DEADLOCK], 0);
    assert_eq!((&all["verdict"], &all["steps"][0]["step"]), (&Value::from("deadlock"), &Value::from(1)));
    let line = source_line("pthread_cond_broadcast");
    let broadcast = all["steps"].as_array().expect("steps").iter().find(|step| step["kind"] == "cond_broadcast");
    assert_eq!(broadcast.expect("a broadcast")["line"], line);
    trace_events(
        &place.json(&["timeline", "--format", "perfetto", DEADLOCK], 0),
        all["steps"].as_array().expect("steps").len(),
    );
    // A scenario that does not come again has no picture.
    let text = fs::read_to_string(place.0.join(DEADLOCK)).expect("a scenario");
    let other = place.write("other.vsrun.json", &text.replacen("2 threads wait for each other", "x", 1));
    let done = place.vsrun(&["timeline", &other]);
    assert!(done.stdout.is_empty() && done.status.code() != Some(0), "{done:?}");
}

/// What the Trace Event Format asks of events.
fn trace_events(file: &Value, steps: usize) {
    let events = file["traceEvents"].as_array().expect("events");
    let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).collect::<Vec<_>>();
    assert_eq!(events.len(), of("M").len() + of("X").len() + of("s").len() + of("f").len());
    assert!(of("M").iter().any(|event| event["name"] == "thread_name" && event["args"]["name"] == "worker#2 (0.3)"));
    let slices = of("X");
    let (made, at_end): (Vec<&Value>, Vec<&Value>) =
        slices.iter().copied().partition(|event| event["cat"] != "at the end");
    assert_eq!((made.len(), at_end.len()), (steps, 3));
    let number = |value: &Value| value.as_u64().expect("a number");
    for slice in &slices {
        assert!(
            number(&slice["dur"]) > 0
                && slice["name"].is_string()
                && slice["pid"].is_i64()
                && number(&slice["tid"]) > 0
        );
    }
    assert!(!of("s").is_empty() && of("s").len() == of("f").len());
    for (begin, end) in of("s").into_iter().zip(of("f")) {
        assert_eq!(
            (&begin["id"], &begin["cat"], &begin["name"], &end["bp"]),
            (&end["id"], &end["cat"], &end["name"], &Value::from("e"))
        );
        assert!(number(&begin["ts"]) < number(&end["ts"]));
        // Each end lies within a slice of its thread.
        for event in [begin, end] {
            let around = slices.iter().any(|slice| {
                let (from, at) = (number(&slice["ts"]), number(&event["ts"]));
                (&slice["pid"], &slice["tid"]) == (&event["pid"], &event["tid"])
                    && (from..from + number(&slice["dur"])).contains(&at)
            });
            assert!(around, "{event}");
        }
    }
}

#[test]
fn one_execution_as_a_list() {
    let place = Place::new("list", "turns.c");
    let text = place.text(&["trace", "./program"], 0);
    has(&text, "pthread_mutex_lock(lock)");
    has(&text, "pthread_cond_wait(turn, lock)");
    has(&text, "pthread_cond_signal(turn) wakes play (0.1)");
    let line = include_str!("../timeline/turns.c")
        .lines()
        .zip(1..)
        .find(|(line, _)| line.contains("cond_signal"))
        .expect("a line")
        .1;
    has(&text, &format!("play turns.c:{line}\n"));
    has(&text, "everything finished");
    assert!(text.ends_with("the program exited with status 0\n"), "{text}");
    // The same again, and other orders by other seeds.
    assert_eq!(place.text(&["trace", "./program"], 0), text);
    let seeds: Vec<String> =
        (1..=4).map(|seed| place.text(&["trace", "--seed", &seed.to_string(), "./program"], 0)).collect();
    assert_eq!(place.text(&["trace", "--seed", "1", "./program"], 0), seeds[0]);
    assert!(seeds.iter().any(|other| *other != seeds[0]));
    // As data; a bug, and an end before the end.
    let lines = |arguments: &[&str], status| {
        let text = place.text(arguments, status);
        let all: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        all
    };
    let all = lines(&["trace", "--format", "json", "./program"], 0);
    let last = all.last().expect("an end");
    assert_eq!((&last["end"], &last["program_status"]["exit"]), (&Value::from("finished"), &Value::from(0)));
    let numbers: Vec<u64> = all[..all.len() - 1].iter().map(|step| step["step"].as_u64().expect("a number")).collect();
    assert!(numbers.is_sorted() && *numbers.last().expect("steps") == last["transitions"].as_u64().expect("a number"));
    let signal = all.iter().find(|step| step["kind"] == "cond_signal" && step["woken"][0] == "0.1").expect("a wake-up");
    assert_eq!(signal["line"], line);
    let cut = lines(&["trace", "--max-depth", "5", "--format", "json", "./program"], 3);
    assert_eq!((&cut.last().expect("an end")["end"], cut.len()), (&Value::from("depth"), 6));
    has(&place.text(&["trace", "./program", "12"], 1), "assert: ");
    let waits = server("waits");
    has(&waits.text(&["trace", "--seed", "1", "--max-depth", "3", "./program"], 3), "depth bound");
}

#[test]
fn reports_for_servers() {
    let place = Place::new("servers", "server.c");
    let arguments = |format| ["--race", "off", "--format", format, "./program"];
    let file = place.json(&arguments("sarif"), 1);
    let result = &file["runs"][0]["results"][0];
    assert_eq!((&file["version"], &result["ruleId"]), (&Value::from("2.1.0"), &Value::from("deadlock")));
    let place_of = |location: &Value| location["physicalLocation"]["region"]["startLine"].clone();
    let found = [place_of(&result["locations"][0]), place_of(&result["relatedLocations"][0])];
    let (queue, statistics) = (source_line("/* the queue is held */"), source_line("/* the statistics are held */"));
    assert_eq!(found, [Value::from(queue), Value::from(statistics)]);
    let uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].as_str().expect("a place");
    assert!(uri.starts_with("file:///") && uri.ends_with("/server.c"), "{uri}");
    assert_eq!(file["runs"][0]["invocations"][0]["exitCode"], 1);
    let xml = place.text(&arguments("junit"), 1);
    has(&xml, "tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"1\"");
    has(&xml, "<failure type=\"deadlock\" message=\"2 threads wait for each other");
    if Command::new("xmllint").arg("--version").output().is_ok() {
        place.write("report.xml", &xml);
        assert!(place.command("xmllint", &["--noout", "report.xml"]).status().expect("xmllint").success());
    }
    // What did not take place.
    let failed = place.text(&["--format", "junit", "./nothing"], 2);
    has(&failed, "errors=\"1\"");
    let failed = place.json(&["--format", "sarif", "./nothing"], 2);
    assert_eq!(failed["runs"][0]["invocations"][0]["executionSuccessful"], false);
}
