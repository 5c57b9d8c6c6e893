//! `vsrun pieces`: a search that is split, explored piece by piece, and summed up is that search.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::Value;

/// A directory with a program, removed at the end.
struct Place {
    dir: PathBuf,
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Another thread locks the second mutex only if the first one has been locked twice before it came: seldom enough that the default schedule does not
/// show that the mutex is shared.
const LATE: &str = r#"
#include <pthread.h>
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static int count;
static void *one(void *nothing) {
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&first);
        count++;
        pthread_mutex_unlock(&first);
    }
    pthread_mutex_lock(&second);
    pthread_mutex_unlock(&second);
    return nothing;
}
static void *two(void *nothing) {
    pthread_mutex_lock(&first);
    int seen = count;
    pthread_mutex_unlock(&first);
    if (seen == 1) {
        pthread_mutex_lock(&second);
        pthread_mutex_unlock(&second);
    }
    return nothing;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, one, 0);
    pthread_create(&b, 0, two, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
"#;

impl Place {
    fn new(test: &str, source: &str) -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-pieces-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary directory");
        let place = Place { dir };
        place.compile(source);
        place
    }

    fn compile(&self, source: &str) {
        let path = match source.ends_with(".c") {
            true => Path::new(env!("CARGO_MANIFEST_DIR")).join("c-tests").join(source),
            false => {
                fs::write(self.dir.join("source.c"), source).expect("written");
                self.dir.join("source.c")
            }
        };
        let mut gcc = Command::new("gcc");
        gcc.args(["-O1", "-o"]).arg(self.dir.join("program")).arg(path).arg("-lpthread");
        assert!(gcc.status().expect("gcc").success());
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vsrun"));
        command.args(arguments).current_dir(&self.dir).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("vsrun")
    }

    /// The JSON that a command prints.
    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(arguments);
        let text = String::from_utf8_lossy(&output.stdout);
        let said = String::from_utf8_lossy(&output.stderr);
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{arguments:?}: {e}: {text} {said}"))
    }

    fn split(&self, arguments: &[&str]) {
        let output = self.run(&[&["pieces", "split"], arguments].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stdout));
    }

    /// The files of the pieces, by name.
    fn pieces(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.dir.join("pieces")).expect("pieces").flatten().map(|e| e.path());
        let mut all: Vec<_> = files.filter(|p| p.extension().is_some_and(|e| e == "vsrun")).collect();
        all.sort();
        all
    }

    fn work(&self, piece: &Path, options: &[&str]) -> Value {
        let piece = piece.to_string_lossy();
        self.json(&[&["pieces", "work", "--format", "json"], options, &[&*piece]].concat())
    }

    /// Explores each piece, and splits again while objects turn out to be shared. How often that was.
    fn explore_all(&self) -> u32 {
        for turn in 0..20 {
            let outdated = self.pieces().iter().filter(|piece| self.work(piece, &[])["outdated"] == true).count();
            if outdated == 0 {
                return turn;
            }
            let merged = self.merge();
            assert_eq!(
                (&merged["complete"], &merged["incomplete_reason"]),
                (&false.into(), &"pieces:again".into()),
                "{merged}"
            );
            self.split(&["--into", "9", "--again", "-o", "pieces"]);
        }
        panic!("there is always something new");
    }

    fn merge(&self) -> Value {
        let temporary = self.dir.join("temporary");
        fs::create_dir_all(&temporary).expect("a directory");
        let mut command = self.command(&["pieces", "merge", "--format", "json", "pieces"]);
        let output = command.env("TMPDIR", &temporary).output().expect("vsrun");
        let left: Vec<_> = fs::read_dir(&temporary).expect("it is there").flatten().map(|e| e.path()).collect();
        assert!(left.is_empty(), "{left:?}");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
    }
}

/// What a search has explored: verdict, whether that is all, executions that are not redundant, outcomes.
fn told(summary: &Value) -> (Value, Value, u64, Value) {
    let number = |name: &str| summary[name].as_u64().unwrap_or_else(|| panic!("{name} in {summary}"));
    let executions = number("executions") - number("sleep_blocked");
    let outcomes = &summary["outcomes"];
    (summary["verdict"].clone(), summary["complete"].clone(), executions, outcomes["different"].clone())
}

#[test]
fn all_pieces_are_the_whole() {
    let programs: [(&str, &str, &[&str]); 3] = [
        ("philosophers_threads.c", "5", &["--race", "off"]),
        ("lockcount.c", "4", &[]),
        ("philosophers_sysv.c", "3", &[]),
    ];
    for (source, argument, options) in programs {
        let place = Place::new(source.trim_end_matches(".c"), source);
        let search = [options, &["--keep-going", "./program", argument]].concat();
        let whole = place.json(&[&["--search", "optimal", "--format", "json"], &search[..]].concat());
        place.split(&[&["--into", "9", "--look", "0", "-o", "pieces"], &search[..]].concat());
        // What is shared is known now: the same once more.
        place.explore_all();
        place.split(&["--into", "9", "--again", "-o", "pieces"]);
        let pieces = place.pieces();
        assert!(pieces.len() >= 9, "{source}: {} pieces", pieces.len());
        let open = place.merge();
        assert_eq!(open["complete"], false, "{open}");
        assert_eq!(open["incomplete_reason"], "pieces", "{open}");
        // The last first, one of them twice, two workers for another.
        for (n, piece) in pieces.iter().enumerate().rev() {
            let workers = if n == 3 { "2" } else { "1" };
            let first = place.work(piece, &["-j", workers]);
            assert_eq!(first["explored"], true, "{first}");
            if n == 5 {
                let again = place.work(piece, &[]);
                assert_eq!((&again["executions"], &again["explored"]), (&first["executions"], &first["explored"]));
            }
        }
        let merged = place.merge();
        assert_eq!(told(&merged), told(&whole), "{source}: {merged}\n{whole}");
        assert_eq!(merged["bugs"].as_array().map(Vec::len), whole["bugs"].as_array().map(Vec::len));
        for bug in merged["bugs"].as_array().expect("bugs") {
            let replay = place.run(&["replay", bug["scenario"].as_str().expect("a scenario")]);
            assert_eq!(replay.status.code(), Some(1), "{}", String::from_utf8_lossy(&replay.stdout));
        }
    }
}

#[test]
fn a_piece_goes_on_where_it_was_left() {
    let place = Place::new("killed", "lockcount.c");
    let search = ["--race", "off", "./program", "7"];
    let whole = place.json(&[&["--search", "optimal", "--format", "json"], &search[..]].concat());
    place.split(&[&["--into", "2", "--look", "0", "-o", "pieces"], &search[..]].concat());
    place.explore_all();
    place.split(&["--into", "2", "--again", "-o", "pieces"]);
    let pieces = place.pieces();
    let mut left = false;
    for piece in &pieces {
        let state = piece.with_extension("state");
        let name = piece.to_string_lossy().into_owned();
        let mut worker = place.command(&["pieces", "work", &name]);
        worker.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let mut worker = worker.spawn().expect("vsrun");
        let since = Instant::now();
        while !state.exists() && since.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = kill(Pid::from_raw(worker.id() as i32), Signal::SIGKILL);
        worker.wait().expect("it ends");
        // A while, and then to the end.
        left |= place.work(piece, &["--time", "0.15"])["explored"] == false;
        // What was cut off half-written is not what counts.
        if let Ok(bytes) = fs::read(&state) {
            fs::write(&state, &bytes[..bytes.len() / 2]).expect("written");
        }
        assert_eq!(place.work(piece, &[])["explored"], true);
    }
    assert!(left, "nothing was left of any piece after a while");
    let merged = place.merge();
    assert_eq!(told(&merged), told(&whole), "{merged}\n{whole}");
}

#[test]
fn what_turns_out_to_be_shared_makes_new_pieces() {
    let place = Place::new("late", LATE);
    let search = ["--keep-going", "./program"];
    let whole = place.json(&[&["--search", "optimal", "--format", "json"], &search[..]].concat());
    place.split(&[&["--into", "4", "--look", "0", "-o", "pieces"], &search[..]].concat());
    assert!(place.explore_all() > 0, "nothing was learnt, so that nothing was tested");
    let merged = place.merge();
    assert_eq!(told(&merged), told(&whole), "{merged}\n{whole}");
}

#[test]
fn what_is_no_piece_is_refused() {
    let place = Place::new("refused", "lockcount.c");
    let split = |options: &[&str]| place.run(&[&["pieces", "split", "-o", "pieces"], options].concat());
    for (options, words) in [
        (&["--search", "naive", "./program"][..], "only --search optimal can be split"),
        (&["--time", "3", "./program"], "a bound of time or executions"),
        (&["--save", "x", "./program"], "no --save"),
        (&["--once", "./program"], "only --search optimal"),
        (&["replay", "x"], "options and a program are expected"),
        (&["--nonsense", "./program"], "--nonsense"),
        (&[], "no program given"),
        (&["--again", "./program"], "it takes no program"),
        (&["./nothing"], "nothing"),
    ] {
        let output = split(options);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(words), "{options:?}: {said}");
        assert!(!place.dir.join("pieces/pieces.json").exists());
    }
    let search = ["--into", "3", "--look", "0", "-o", "pieces", "./program", "4"];
    place.split(&search);
    let refused = |arguments: &[&str], words: &str| {
        let output = place.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(words), "{arguments:?}: {said}");
    };
    refused(&[&["pieces", "split"], &search[..]].concat(), "has pieces already");
    let pieces = place.pieces();
    let name = |n: usize| pieces[n].to_string_lossy().into_owned();
    refused(&["--resume", &name(0), "./program", "4"], "it is a piece of a search");
    refused(&["pieces", "work", "program"], "is no piece that can be explored");
    refused(&["pieces", "work", "absent"], "absent");
    refused(&["pieces", "merge", "."], "is no directory of pieces");
    refused(&["cluster", "-o", "absent"], "a program is expected");
    // Cut off anywhere, or changed.
    let bytes = fs::read(&pieces[1]).expect("a piece");
    for at in [0, 1, 15, 16, 30, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&pieces[1], &bytes[..at]).expect("written");
        refused(&["pieces", "work", &name(1)], "is no piece that can be explored");
    }
    refused(&["pieces", "merge", "pieces"], "is no piece that can be explored");
    fs::remove_file(&pieces[1]).expect("removed");
    refused(&["pieces", "merge", "pieces"], "is no piece that can be explored");
    // One of another program in its place.
    let other = Place::new("other", "philosophers_threads.c");
    other.split(&["--into", "3", "--look", "0", "-o", "pieces", "--race", "off", "./program", "4"]);
    fs::copy(&other.pieces()[1], &pieces[1]).expect("copied");
    refused(&["pieces", "merge", "pieces"], "is of another search");
    fs::write(&pieces[1], &bytes).expect("written");
    // The program is another one than that which was split.
    place.compile("philosophers_threads.c");
    refused(&["pieces", "work", &name(1)], "the program has changed since");
}

/// Pieces are split while something is left of them, again and again, with a bug found before or behind.
#[test]
fn a_piece_is_split_again() {
    for (source, argument, options) in [
        ("lockcount.c", "6", &["--race", "off"][..]),
        ("philosophers_threads.c", "7", &["--race", "off", "--keep-going"]),
    ] {
        let place = Place::new(&format!("again-{}", source.trim_end_matches(".c")), source);
        let search = [options, &["./program", argument]].concat();
        let whole = place.json(&[&["--search", "optimal", "--format", "json"], &search[..]].concat());
        place.split(&[&["--into", "2", "--look", "0", "-o", "pieces"], &search[..]].concat());
        place.explore_all();
        place.split(&["--into", "2", "--again", "-o", "pieces"]);
        let mut divided = 0;
        // Each turn makes three pieces of one. The time has to be too short for one of them.
        for turn in 0..3 {
            for piece in place.pieces() {
                // The first time some have not been begun.
                if turn > 0 {
                    place.work(&piece, &["--time", "0.06"]);
                }
                let name = piece.to_string_lossy();
                let done = place.run(&["pieces", "divide", "--into", "3", &*name]);
                let said = String::from_utf8_lossy(&done.stderr);
                let over = said.contains("nothing is left of it");
                assert!(done.status.success() || over, "{said}");
                divided += u32::from(done.status.success() && turn > 0);
            }
        }
        assert!(divided > 0, "{source}: none had something left");
        for piece in place.pieces() {
            assert_eq!(place.work(&piece, &[])["explored"], true);
        }
        let merged = place.merge();
        assert_eq!(told(&merged), told(&whole), "{source}: {merged}\n{whole}");
        assert_eq!(merged["bugs"].as_array().map(Vec::len), whole["bugs"].as_array().map(Vec::len), "{merged}");
    }
}

#[test]
fn a_cluster_is_the_whole() {
    let place = Place::new("cluster", "lockcount.c");
    let search = ["--race", "off", "./program", "7"];
    let whole = place.json(&[&["--search", "optimal", "--format", "json"], &search[..]].concat());
    let cluster = ["cluster", "-n", "2", "--into", "8", "--grain", "0.3", "--look", "0", "-o"];
    // Its turn is over before the program is at its main.
    let hasty =
        ["cluster", "-n", "2", "--into", "3", "--grain", "1ms", "--look", "1ms", "-o", "hasty", "--format", "json"];
    let few = ["--race", "off", "./program", "4"];
    let hasty = place.json(&[&hasty[..], &few].concat());
    assert_eq!(told(&hasty), told(&place.json(&[&["--search", "optimal", "--format", "json"], &few[..]].concat())));
    let all = place.json(&[&cluster[..], &["one", "--format", "json"], &search[..]].concat());
    assert_eq!(told(&all), told(&whole), "{all}\n{whole}");
    let left = fs::read_dir(place.dir.join("one")).expect("pieces").flatten().map(|e| e.file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().ends_with(".err")).collect();
    assert!(left.is_empty(), "{left:?}");
    // Whoever hands the pieces out is killed, and begins again.
    let mut killed = place.command(&[&cluster[..], &["pieces"], &search[..]].concat());
    let mut killed = killed.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("vsrun");
    let since = Instant::now();
    let begun = || {
        fs::read_dir(place.dir.join("pieces"))
            .is_ok_and(|all| all.flatten().any(|e| e.path().extension().is_some_and(|e| e == "state")))
    };
    while !begun() && since.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    killed.kill().expect("killed");
    killed.wait().expect("it ends");
    let again = place.run(&[&cluster[..], &["pieces"], &search[..]].concat());
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(again.status.code() == Some(2) && said.contains("without a program they go on"), "{said}");
    let rest = place.json(&["cluster", "-n", "2", "-o", "pieces", "--format", "json"]);
    assert_eq!(told(&rest), told(&whole), "{rest}\n{whole}");
}

#[test]
fn a_cluster_stops_at_the_first_bug() {
    let place = Place::new("stops", "philosophers_threads.c");
    let options = ["cluster", "-n", "2", "--into", "8", "--look", "0", "-o", "pieces", "--format", "json"];
    let summary = place.json(&[&options[..], &["--race", "off", "./program", "4"]].concat());
    assert_eq!(summary["verdict"], "deadlock", "{summary}");
    let replay = place.run(&["replay", summary["bugs"][0]["scenario"].as_str().expect("a scenario")]);
    assert_eq!(replay.status.code(), Some(1));
}

/// A thread changes what another one is about to write: whichever order of the two stands for a trace, in pieces or not, what is written is what the step
/// says at which it was read.
#[test]
fn what_is_sent_is_what_its_step_says() {
    let place = Place::new("later", "memory_calls.c");
    for call in ["write-late", "writev-late", "sendmsg-late", "parts-late"] {
        let line = ["--race", "explore", "--keep-going", "--shrink", "0", "./program", call];
        let whole = place.json(&[&["--search", "optimal", "--format", "json"], &line[..]].concat());
        assert_eq!((&whole["verdict"], &whole["complete"]), (&"assert".into(), &true.into()), "{call}: {whole}");
        for into in ["2", "7"] {
            place.split(&[&["--into", into, "--look", "0", "-o", "pieces"], &line[..]].concat());
            place.explore_all();
            let merged = place.merge();
            let found = (&merged["verdict"], &merged["complete"]);
            assert_eq!(found, (&whole["verdict"], &whole["complete"]), "{call} {into}: {merged}");
            fs::remove_dir_all(place.dir.join("pieces")).expect("removed");
        }
    }
}
