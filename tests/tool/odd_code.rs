//! Programs whose code is not as compilers leave it: what vsrun says of them holds, or it says that their memory is not watched; and they do what they do
//! natively. With the vsrun binary.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A directory with the program, removed at the end.
struct Place(PathBuf);

impl Place {
    fn new(test: &str, flags: &[&str]) -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-odd-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary directory");
        let place = Place(dir);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/odd_code/program.c");
        place.tool("gcc", &[&["-O2", "-pthread", "-o", "program"], flags, &[source.to_str().expect("text")]].concat());
        place
    }

    fn tool(&self, name: &str, arguments: &[&str]) {
        let done = Command::new(name).args(arguments).current_dir(&self.0).output().expect(name);
        assert!(done.status.success(), "{name}: {}", said(&done));
    }

    /// The report of an exploration; what the program prints goes to `printed`.
    fn explore(&self, arguments: &[&str]) -> Value {
        let options = ["--race", "explore", "--time", "60", "--format", "json", "--output", "printed", "./program"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_vsrun"));
        let done = command.args(options).args(arguments).current_dir(&self.0).output().expect("vsrun runs");
        serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{}", said(&done)))
    }

    /// What the program prints natively, and how it ends.
    fn natively(&self, arguments: &[&str]) -> (String, Option<i32>) {
        let done = Command::new("./program").args(arguments).current_dir(&self.0).output().expect("it runs");
        (String::from_utf8_lossy(&done.stdout).into(), done.status.code())
    }

    /// Without a race nothing is found, and what is printed is the same.
    fn does_the_same(&self, what: &str) -> Value {
        let (text, status) = self.natively(&[what]);
        assert_eq!(status, Some(0), "{what}");
        let report = self.explore(&[what]);
        assert_eq!(report["verdict"], "ok", "{what}: {report}");
        assert_eq!(fs::read_to_string(self.0.join("printed")).expect("the output"), text, "{what}");
        report
    }

    fn frames(&self) -> Vec<u8> {
        self.tool("objcopy", &["--dump-section", ".eh_frame=frames", "program", "copy"]);
        fs::read(self.0.join("frames")).expect("the section")
    }

    fn put_frames(&self, bytes: &[u8]) {
        fs::write(self.0.join("frames"), bytes).expect("the section");
        self.tool("objcopy", &["--update-section", ".eh_frame=frames", "program"]);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn said(done: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr))
}

fn is_not_watched(report: &Value) -> bool {
    let reasons = report["incomplete_reasons"].as_array().into_iter().flatten();
    report["complete"] == false && reasons.filter_map(Value::as_str).any(|reason| reason == "not-watched")
}

#[test]
fn a_race_is_found_without_symbols() {
    let place = Place::new("stripped", &[]);
    let whole = place.explore(&["nothing", "racy"]);
    place.tool("strip", &["-s", "program"]);
    let stripped = place.explore(&["nothing", "racy"]);
    for field in ["verdict", "executions", "transitions"] {
        assert_eq!(whole[field], stripped[field], "{field}");
    }
    assert_eq!(stripped["verdict"], "assert");
}

#[test]
fn code_of_which_nothing_is_known_is_named() {
    let place = Place::new("bare", &["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]);
    // Symbols are enough.
    assert_eq!(place.explore(&["nothing", "racy"])["verdict"], "assert");
    place.tool("strip", &["-s", "program"]);
    let report = place.explore(&["nothing", "racy"]);
    assert!(report["verdict"] == "assert" || is_not_watched(&report), "{report}");
    assert!(is_not_watched(&place.does_the_same("nothing")));
}

#[test]
fn unwind_information_that_is_noise_crashes_nothing() {
    for stripped in [false, true] {
        let place = Place::new(if stripped { "noise-stripped" } else { "noise" }, &[]);
        let mut bytes = place.frames();
        let mut state = 7u64;
        for byte in &mut bytes {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            *byte = (state >> 33) as u8;
        }
        place.put_frames(&bytes);
        if stripped {
            place.tool("strip", &["-s", "program"]);
        }
        place.does_the_same("nothing");
        let report = place.explore(&["nothing", "racy"]);
        assert!(report["verdict"] == "assert" || is_not_watched(&report), "{report}");
        // What the symbols bound is watched all the same.
        assert!(stripped || report["verdict"] == "assert", "{report}");
    }
}

/// Calls `change` with first address, as it stands there, and length of each function, in call frame information of a small program.
fn each_function(frames: &mut [u8], mut change: impl FnMut(&mut i32, &mut u32)) {
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let mut at = 0;
    while at + 16 <= frames.len() && word(frames, at) != 0 {
        // What has a zero there is common to several functions.
        if word(frames, at + 4) != 0 {
            let (mut start, mut length) = (word(frames, at + 8) as i32, word(frames, at + 12));
            change(&mut start, &mut length);
            frames[at + 8..at + 12].copy_from_slice(&start.to_le_bytes());
            frames[at + 12..at + 16].copy_from_slice(&length.to_le_bytes());
        }
        at += 4 + word(frames, at) as usize;
    }
}

/// The unwind information of the program is changed so; with `table`, its table of where functions begin, too.
fn survives(name: &str, table: Option<i32>, change: fn(&mut i32, &mut u32)) {
    for stripped in [false, true] {
        let place = Place::new(&format!("{name}-{stripped}"), &[]);
        let mut bytes = place.frames();
        let before = bytes.clone();
        each_function(&mut bytes, change);
        assert_ne!(bytes, before);
        place.put_frames(&bytes);
        if let Some(more) = table {
            place.tool("objcopy", &["--dump-section", ".eh_frame_hdr=table", "program", "copy"]);
            let mut table = fs::read(place.0.join("table")).expect("the section");
            // Four bytes of encodings, the place of the information, how many there are; then for each where it begins, and where that is said.
            for entry in table[12..].chunks_exact_mut(8) {
                let start = i32::from_le_bytes(entry[..4].try_into().expect("four bytes")) + more;
                entry[..4].copy_from_slice(&start.to_le_bytes());
            }
            fs::write(place.0.join("table"), table).expect("the section");
            place.tool("objcopy", &["--update-section", ".eh_frame_hdr=table", "program"]);
        }
        if stripped {
            place.tool("strip", &["-s", "program"]);
        }
        let report = place.does_the_same("nothing");
        // All bytes of code lie in some function, but the table knows better.
        assert!(name != "moved" || is_not_watched(&report) == stripped, "{name} {stripped}: {report}");
        let report = place.explore(&["nothing", "racy"]);
        assert!(report["verdict"] == "assert" || is_not_watched(&report), "{name} {stripped}: {report}");
        // What the symbols bound is watched all the same.
        assert!(stripped || report["verdict"] == "assert", "{name}: {report}");
    }
}

#[test]
fn functions_that_are_said_to_end_early_are_no_harm() {
    survives("short", None, |_, length| *length /= 2);
}

#[test]
fn functions_that_are_said_to_overlap_are_no_harm() {
    survives("long", None, |_, length| *length *= 3);
}

#[test]
fn functions_that_are_said_to_begin_elsewhere_than_in_the_table_are_no_harm() {
    survives("moved", None, |start, length| (*start, *length) = (*start - 1, *length + 1));
    survives("forward", None, |start, _| *start += 1);
}

#[test]
fn functions_that_are_said_to_begin_within_an_instruction_are_no_harm() {
    survives("within", Some(1), |start, _| *start += 1);
    survives("behind", Some(5), |start, _| *start += 5);
}

#[test]
fn functions_that_are_said_to_begin_early_are_no_harm() {
    survives("early", Some(-1), |start, _| *start -= 1);
    survives("earlier", Some(-7), |start, _| *start -= 7);
}

#[test]
fn what_is_as_compilers_leave_it_is_complete() {
    let report = Place::new("plain", &[]).does_the_same("nothing");
    assert!(report["complete"] == true, "{report}");
}

#[test]
fn data_among_the_instructions_stays_what_it_is() {
    let place = Place::new("data", &["-DDATA"]);
    assert!(is_not_watched(&place.does_the_same("nothing")));
    assert_eq!(place.explore(&["nothing", "racy"])["verdict"], "assert");
}

#[test]
fn code_that_may_be_written_is_named() {
    let place = Place::new("writable", &[]);
    assert!(is_not_watched(&place.does_the_same("writable")));
}

#[test]
fn a_program_that_changes_its_code_finds_it_as_it_was() {
    let place = Place::new("changes", &[]);
    assert!(is_not_watched(&place.does_the_same("changes")));
}

#[test]
fn generated_code_is_named() {
    let place = Place::new("generated", &[]);
    assert!(is_not_watched(&place.does_the_same("generated")));
}
