//! `vsrun cluster --swarm`: executions drawn by lot, by tasks that are killed, done twice, damaged, and gone on with.

use std::collections::BTreeSet;
use std::fs;
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

/// Two threads that each have a lock once.
const LOCK: &str = r#"
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *one(void *nothing) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return nothing;
}
static void *two(void *nothing) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
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

/// A read that is interrupted is no end of the file.
const INTERRUPTED: &str = r#"
#include <assert.h>
#include <pthread.h>
#include <unistd.h>
static int ends[2];
static void *writer(void *nothing) {
    write(ends[1], "x", 1);
    return nothing;
}
int main(void) {
    pthread_t thread;
    char c;
    if (pipe(ends)) return 1;
    pthread_create(&thread, 0, writer, 0);
    assert(read(ends[0], &c, 1) == 1);
    pthread_join(thread, 0);
    return 0;
}
"#;

impl Place {
    fn new(test: &str, source: &str) -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-swarm-{test}-{}", std::process::id()));
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
        gcc.args(["-O1", "-w", "-o"]).arg(self.dir.join("program")).arg(path).arg("-lpthread");
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

    /// The JSON that a command prints, and its exit status.
    fn json(&self, arguments: &[&str]) -> (Value, Option<i32>) {
        let output = self.run(arguments);
        let text = String::from_utf8_lossy(&output.stdout);
        let said = String::from_utf8_lossy(&output.stderr);
        let value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{arguments:?}: {e}: {text} {said}"));
        (value, output.status.code())
    }

    /// A swarm in `dir` with these options of `cluster`, and then these of the search and the program.
    fn swarm(&self, dir: &str, options: &[&str], search: &[&str]) -> (Value, Option<i32>) {
        self.json(&[&["cluster", "--swarm", "--format", "json", "-n", "2", "-o", dir], options, search].concat())
    }

    /// The files of that kind in a directory, by name.
    fn files(&self, dir: &str, kind: &str) -> Vec<PathBuf> {
        let all = fs::read_dir(self.dir.join(dir)).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut all: Vec<_> = all.filter(|path| path.extension().is_some_and(|e| e == kind)).collect();
        all.sort();
        all
    }

    fn refused(&self, arguments: &[&str], words: &str) {
        let output = self.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(words), "{arguments:?}: {said}");
    }
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("{name} in {value}"))
}

#[test]
fn a_bug_that_needs_a_fault_is_found() {
    let place = Place::new("fault", INTERRUPTED);
    let search = ["--race", "off", "./program"];
    let (without, status) = place.swarm("without", &["--vary", "none", "--max-executions", "300"], &search);
    assert_eq!(
        (status, &without["verdict"], number(&without, "executions")),
        (Some(3), &"ok".into(), 300),
        "{without}"
    );
    let (with, status) = place.swarm("with", &["--max-executions", "3000"], &search);
    assert_eq!((status, &with["verdict"], &with["complete"]), (Some(1), &"assert".into(), &false.into()), "{with}");
    let bug = &with["bugs"][0];
    assert!(bug["faults"].as_array().expect("faults").contains(&"eintr".into()), "{bug}");
    let replay = place.run(&["replay", bug["scenario"].as_str().expect("a scenario")]);
    assert_eq!(replay.status.code(), Some(1), "{}", String::from_utf8_lossy(&replay.stdout));
    // The first bug has ended it.
    assert!(number(&with, "executions") < 3000, "{with}");
}

#[test]
fn what_is_covered_has_the_same_names_in_all_tasks() {
    let place = Place::new("covered", LOCK);
    let (all, status) =
        place.swarm("swarm", &["--max-executions", "400", "--seed", "5"], &["--race", "off", "./program"]);
    assert_eq!(status, Some(3), "{all}");
    // One and two have the lock, in either order.
    assert_eq!((number(&all, "pairs"), number(&all, "pairs_both_ways")), (1, 1), "{all}");
    let tasks = place.files("swarm", "lot");
    assert!(tasks.len() as u64 == number(&all, "tasks") && tasks.len() > 9, "{all}");
    let mut seeds = BTreeSet::new();
    for task in &tasks {
        // What has been done is not done again.
        let (done, status) = place.json(&["pieces", "work", "--format", "json", &task.to_string_lossy()]);
        assert_eq!(status, Some(3), "{done}");
        seeds.insert(number(&done, "seed"));
    }
    assert_eq!(seeds.len(), tasks.len());
    // Of three threads with priorities alone each order comes in every third execution at least.
    let missed = all["missed"].as_array().expect("missed");
    assert_eq!(missed.iter().map(|m| number(m, "depth")).collect::<Vec<_>>(), [1, 2, 3]);
    let (executions, chance) = (number(&missed[0], "executions"), missed[0]["chance"].as_f64().expect("a chance"));
    assert!(executions > 10 && chance < 0.9 && chance > 0.0, "{all}");
    assert_eq!(all["missed_threads"], serde_json::json!([3, 3]), "{all}");
}

#[test]
fn tasks_and_commands_that_are_killed_cost_nothing_twice() {
    let place = Place::new("killed", "philosophers_threads.c");
    let options = ["cluster", "--swarm", "-n", "2", "--grain", "0.4", "--max-executions", "2000", "--seed", "3"];
    let rest = ["-o", "swarm", "--keep-going", "--race", "off", "--shrink", "0", "./program", "4"];
    let mut command = place.command(&[&options[..], &rest[..]].concat());
    let mut command = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("vsrun");
    let since = Instant::now();
    let wait = |until: &dyn Fn() -> bool| {
        while !until() && since.elapsed() < Duration::from_secs(100) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(until(), "nothing came");
    };
    wait(&|| place.files("swarm", "done").len() >= 2);
    // A task, while it is done.
    let children = || -> Vec<i32> {
        let tasks = fs::read_dir(format!("/proc/{}/task", command.id())).into_iter().flatten().flatten();
        let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
        lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
    };
    wait(&|| children().iter().any(|&child| kill(Pid::from_raw(child), Signal::SIGKILL).is_ok()));
    let before = place.files("swarm", "done").len();
    wait(&|| place.files("swarm", "done").len() >= before + 2);
    command.kill().expect("killed");
    command.wait().expect("it ends");
    place.refused(&[&options[..], &rest[..]].concat(), "without a program it goes on");
    // Tasks that it has left behind may be done still: what they come to counts once.
    let (all, status) = place.json(&["cluster", "-n", "2", "-o", "swarm", "--format", "json"]);
    assert_eq!((status, &all["verdict"]), (Some(1), &"deadlock".into()), "{all}");
    assert_eq!((number(&all, "executions"), number(&all, "tasks_left")), (2000, 0), "{all}");
    assert_eq!(all["bugs"].as_array().map(Vec::len), Some(1), "{all}");
    let (again, _) = place.json(&["cluster", "-n", "2", "-o", "swarm", "--format", "json"]);
    for name in ["executions", "transitions", "tasks", "pairs", "pairs_both_ways"] {
        assert_eq!(number(&again, name), number(&all, name), "{name}: {again} {all}");
    }
    assert_eq!(again["bugs"], all["bugs"]);
    let bug = &all["bugs"][0];
    assert!(number(bug, "tasks") > 1, "{bug}");
    let replay = place.run(&["replay", bug["scenario"].as_str().expect("a scenario")]);
    assert_eq!(replay.status.code(), Some(1), "{}", String::from_utf8_lossy(&replay.stdout));
    // More of it.
    let (more, _) = place.json(&["cluster", "-n", "2", "--max-executions", "50", "-o", "swarm", "--format", "json"]);
    assert_eq!(number(&more, "executions"), 2050, "{more}");
}

#[test]
fn the_time_is_kept() {
    let place = Place::new("time", "philosophers_threads.c");
    let began = Instant::now();
    let search = ["--keep-going", "--race", "off", "--time", "3", "./program", "5"];
    let (all, status) = place.swarm("swarm", &["--grain", "30"], &search);
    let took = began.elapsed();
    assert_eq!(status, Some(1), "{all}");
    assert!(took >= Duration::from_secs(3) && took < Duration::from_secs(6), "{took:?}");
    assert!(number(&all, "executions") > 0, "{all}");
    // It is over: what is asked for now is more time.
    let (again, _) = place.json(&["cluster", "-o", "swarm", "--format", "json"]);
    assert_eq!(number(&again, "executions"), number(&all, "executions"));
    let (more, _) = place.json(&["cluster", "--time", "1", "-o", "swarm", "--format", "json"]);
    assert!(number(&more, "executions") > number(&all, "executions"), "{more}");
}

#[test]
fn what_is_no_swarm_or_of_another_one_is_refused() {
    let place = Place::new("refused", LOCK);
    let swarm = |dir: &str, seed: &str| {
        let options = ["--max-executions", "40", "--seed", seed];
        assert_eq!(place.swarm(dir, &options, &["--race", "off", "./program"]).1, Some(3));
    };
    for (arguments, words) in [
        (&["--swarm", "--search", "pos", "./program"][..], "chooses the searches"),
        (&["--swarm", "--save", "x", "./program"], "no --save"),
        (&["--swarm", "--into", "3", "./program"], "--into is about pieces"),
        (&["--swarm", "--format", "sarif", "./program"], "text or json"),
        (&["--swarm", "--vary", "nonsense", "./program"], "or none"),
        (&["--swarm"], "a program is expected"),
        (&["--time", "3", "./program"], "are about --swarm"),
        (&["--vary", "none", "./program"], "are about --swarm"),
        (&["--swarm", "./nothing"], "nothing"),
    ] {
        place.refused(&[&["cluster", "-o", "no"], arguments].concat(), words);
        assert!(!place.dir.join("no/swarm.json").exists(), "{arguments:?}");
    }
    swarm("one", "1");
    swarm("two", "2");
    let (lots, dones) = (place.files("one", "lot"), place.files("one", "done"));
    let (others, other_dones) = (place.files("two", "lot"), place.files("two", "done"));
    let goes_on = ["cluster", "-o", "one"];
    let name = |path: &Path| path.to_string_lossy().into_owned();
    for file in [&lots[1], &dones[1]] {
        let bytes = fs::read(file).expect("a file");
        for at in [0, 5, 15, 16, 30, bytes.len() / 2, bytes.len() - 1] {
            fs::write(file, &bytes[..at]).expect("written");
            place.refused(&goes_on, &file.file_name().expect("a name").to_string_lossy());
            place.refused(&["pieces", "work", &name(&lots[1])], "cannot be used");
        }
        let mut changed = bytes.clone();
        changed[bytes.len() / 2] ^= 1;
        fs::write(file, changed).expect("written");
        place.refused(&goes_on, "checksum");
        fs::write(file, bytes).expect("written");
    }
    // What another swarm has.
    let bytes = (fs::read(&lots[1]).expect("a task"), fs::read(&dones[1]).expect("done"));
    fs::copy(&others[1], &lots[1]).expect("copied");
    place.refused(&goes_on, "is a task of another swarm");
    fs::write(&lots[1], &bytes.0).expect("written");
    fs::copy(&other_dones[1], &dones[1]).expect("copied");
    place.refused(&goes_on, "of another swarm, came to");
    fs::copy(&dones[0], &dones[1]).expect("copied");
    place.refused(&goes_on, "is what another task");
    fs::write(&dones[1], &bytes.1).expect("written");
    assert_eq!(place.run(&goes_on).status.code(), Some(3));
    // A task alone, without its swarm.
    fs::copy(&lots[0], place.dir.join("task-000001.lot")).expect("copied");
    place.refused(&["pieces", "work", "task-000001.lot"], "is no directory of a swarm");
    place.refused(&["pieces", "merge", "one"], "is no directory of pieces");
    // The program has changed.
    fs::remove_file(dones.last().expect("done")).expect("removed");
    place.compile("lockcount.c");
    place.refused(&goes_on, "the program has changed since");
    let description = place.dir.join("one/swarm.json");
    let text = fs::read_to_string(&description).expect("a description");
    fs::write(&description, &text[..text.len() / 2]).expect("written");
    place.refused(&goes_on, "swarm.json is damaged");
    fs::write(&description, text.replace("vsrun swarm", "vsrun swarn")).expect("written");
    place.refused(&goes_on, "another version");
}
