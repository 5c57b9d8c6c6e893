//! `vsrun cluster` of a program in a pack, by a vsrun outside of it: what it comes to is what a search on the machine comes to.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::pack::{ended, Place, SCENARIO};

/// The program of scripts/cluster.sh, packed with these threads; what a search without a pack says of it. Its file is gone.
fn packed(test: &str, threads: &str) -> (Place, [Value; 4]) {
    let place = Place::new(test);
    let root = env!("CARGO_MANIFEST_DIR");
    let (include, source) = (format!("-I{root}/shim/include"), format!("{root}/scripts/cluster/tosses.c"));
    place.compile("gcc", &["-O1", "-o", "tosses", &include, &source, "-lpthread"]);
    let search = ["--race", "off", "--keep-going", "./tosses", threads];
    let native = json(&place, "made", &[&["--search", "optimal", "--format", "json"][..], &search].concat());
    place.pack(&search);
    fs::rename(place.path("made"), place.path("kept")).expect("moved");
    (place, counts(&native))
}

fn json(place: &Place, cwd: &str, arguments: &[&str]) -> Value {
    let (_, said) = place.vsrun(cwd, arguments);
    let line = said.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{arguments:?}: {said}"));
    serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {said}"))
}

/// What is the same however it is explored.
fn counts(report: &Value) -> [Value; 4] {
    let whole = report["executions"].as_u64().expect("executions") - report["sleep_blocked"].as_u64().expect("cut off");
    let bugs = report["bugs"].as_array().expect("bugs").len();
    [report["verdict"].clone(), report["complete"].clone(), whole.into(), bugs.into()]
}

#[test]
fn a_vsrun_outside_explores_it_as_on_the_machine_also_when_it_is_killed() {
    let (place, native) = packed("outside", "4");
    if !place.runs_here() {
        return;
    }
    let report = json(
        &place,
        "here",
        &[
            "cluster", "-n", "2", "--into", "8", "--grain", "300ms", "--look", "0", "-o", "p", "--format", "json",
            "../pack",
        ],
    );
    assert_eq!(counts(&report), native, "{report}");

    // It is killed: what has been done stays.
    let words = ["cluster", "-n", "2", "--into", "8", "--grain", "100ms", "--look", "0", "-o", "q", "../pack"];
    let mut command = place.command("here", env!("CARGO_BIN_EXE_vsrun").as_ref(), &words);
    let mut first = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("vsrun");
    let (began, pieces) = (Instant::now(), place.path("here/q"));
    let begun = || {
        fs::read_dir(&pieces).is_ok_and(|files| {
            files.flatten().any(|file| file.path().extension().is_some_and(|extension| extension == "state"))
        })
    };
    while !begun() {
        assert!(began.elapsed() < Duration::from_secs(120), "no piece is begun");
        std::thread::sleep(Duration::from_millis(10));
    }
    first.kill().expect("killed");
    first.wait().expect("waited");
    // The pack has moved since.
    fs::rename(place.path("pack"), place.path("there/pack")).expect("moved");
    let (status, said) = place.vsrun("here", &["cluster", "-o", "q"]);
    assert!(status == Some(2) && said.contains("there is no pack.json"), "{said}");
    let report = json(&place, "here", &["cluster", "-n", "2", "-o", "q", "--format", "json", "../there/pack"]);
    assert_eq!(counts(&report), native, "{report}");
    // Nothing is left of it.
    fs::rename(place.path("there/pack"), place.path("pack")).expect("moved");
    let report = json(&place, "there", &["cluster", "-o", "../here/q", "--format", "json"]);
    assert_eq!(counts(&report), native, "{report}");
}

#[test]
fn a_swarm_of_it_is_drawn_and_gone_on_with() {
    let (place, _) = packed("drawn", "3");
    if !place.runs_here() {
        return;
    }
    let swarm = ["cluster", "--swarm", "-n", "2", "--grain", "300ms", "--vary", "none", "--seed", "7", "-o", "s"];
    let more = ["--max-executions", "200", "--format", "json", "../pack"];
    let report = json(&place, "here", &[&swarm[..], &more].concat());
    assert_eq!((&report["executions"], &report["tasks_left"]), (&200.into(), &0.into()), "{report}");
    let report = json(&place, "here", &["cluster", "-n", "2", "-o", "s", "--max-executions", "50", "--format", "json"]);
    assert_eq!((&report["executions"], &report["tasks_left"]), (&250.into(), &0.into()), "{report}");
    let (status, said) = place.packed("here", &["pieces", "work", "s/task-000001.lot"]);
    assert!(status == Some(3), "it is done already: {said}");
}

#[test]
fn a_bug_of_it_is_said_as_the_pack_says_it_and_what_does_not_fit_is_refused_by_name() {
    let place = Place::with_program("unfit");
    place.pack(&["./program"]);
    fs::rename(place.path("made"), place.path("kept")).expect("moved");
    if !place.runs_here() {
        return;
    }
    let refused = |cwd: &str, words: &[&str], why: &str| {
        let (status, said) = place.vsrun(cwd, words);
        assert!(status == Some(2) && said.contains(why), "{words:?}: {status:?} {said}");
    };
    // Found by the look, and by a piece.
    for (dir, look) in [("d", "10"), ("e", "0")] {
        fs::create_dir(place.path(dir)).expect("a directory");
        let (status, said) = place.vsrun(dir, &["cluster", "-n", "2", "--look", look, "-o", "p", "../pack"]);
        assert!(status == Some(1) && said.contains("DEADLOCK: ") && said.contains("/pack/run replay "), "{said}");
        assert!(place.path(dir).join(SCENARIO).exists(), "{said}");
    }
    let (status, said) =
        place.vsrun("here", &["cluster", "-n", "0", "--into", "3", "--look", "0", "-o", "p", "../pack"]);
    assert!(status == Some(0) && place.path("here/p/pieces.json").exists(), "{said}");
    // A file that an option names is found wherever a piece is explored.
    place.write("here/notes", "unshared a\n");
    let (status, said) = place.vsrun(
        "here",
        &["cluster", "-n", "1", "--into", "3", "--look", "0", "-o", "f", "--annotations", "notes", "../pack"],
    );
    assert!(matches!(status, Some(0 | 1)) && said.contains("explored"), "{said}");
    refused("here", &["cluster", "-o", "x", "../pack", "argument"], "none are expected behind it");
    refused("here", &["cluster", "-o", "x", "--search", "naive", "../pack"], "only --search optimal can be split");
    refused("here", &["cluster", "-o", "p", "--keep-going", "../pack"], "goes on with the options that it has");
    // A file of it is another one.
    let program = place.path("pack/root").join(place.path("made/conf").strip_prefix("/").expect("absolute"));
    fs::write(&program, "3\n").expect("written");
    refused("here", &["cluster", "-n", "1", "-o", "p"], "made/conf: it is not what was packed");
    fs::write(&program, "2\n").expect("written");
    // All of it is.
    let whole = place.json();
    place.write("pack/pack.json", &format!("{whole}\n"));
    refused("here", &["cluster", "-o", "p"], "is of another pack than ");
    refused("here", &["cluster", "-o", "p", "../pack"], "or that one was changed since");
    let (status, said) = place.packed("here", &["pieces", "merge", "p"]);
    assert!(status == Some(2) && said.contains("is of another pack than this one"), "{said}");
    let (status, said) = place.packed("here", &["pieces", "work", "p/piece-1-00001.vsrun"]);
    assert!(status == Some(2) && said.contains("is of another pack than this one"), "{said}");
    // Another vsrun is in it.
    let own = format!("\"vsrun\": \"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(whole.contains(&own), "{whole}");
    place.write("pack/pack.json", &whole.replace(&own, "\"vsrun\": \"9.9.9\""));
    refused("here", &["cluster", "-o", "x", "../pack"], "the vsrun in it is of version 9.9.9, this one of version ");
    place.write("pack/pack.json", &whole);
    fs::write(place.path("pack/run"), "#!/bin/sh\n").expect("written");
    refused("here", &["cluster", "-o", "p"], "run: it is not what was packed");
    assert!(!place.path("here/x").exists(), "nothing was begun");
    // What is no pack is a program as before.
    let mut command = Command::new(env!("CARGO_BIN_EXE_vsrun"));
    command.args(["cluster", "-o", "x", "../there"]).current_dir(place.path("here")).stdin(Stdio::null());
    let (status, said) = ended(command);
    assert!(status == Some(2) && !said.contains("pack.json"), "{said}");
}
