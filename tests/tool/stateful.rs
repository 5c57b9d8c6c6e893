//! States that are met once (`--search stateful`), and livelocks. With the vsrun binary.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Threads that each lock a mutex, count and unlock it.
const COUNT: &str = r#"
#include <pthread.h>
#include <stdlib.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int count;
static void *run(void *x) { pthread_mutex_lock(&m); count++; pthread_mutex_unlock(&m); return x; }
int main(int argc, char **argv) {
    int n = atoi(argv[argc - 1]);
    pthread_t t[16];
    for (int i = 0; i < n; i++) pthread_create(&t[i], 0, run, 0);
    for (int i = 0; i < n; i++) pthread_join(t[i], 0);
    return count != n;
}
"#;

/// Two locks in opposite orders, the second one tried, the first given back where that fails.
const BACK_OFF: &str = r#"
#include <pthread.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static int fixed;
static void *run(void *x) {
    pthread_mutex_t *first = x && !fixed ? &b : &a, *second = x && !fixed ? &a : &b;
    for (;;) {
        pthread_mutex_lock(first);
        if (pthread_mutex_trylock(second) == 0) break;
        pthread_mutex_unlock(first);
    }
    pthread_mutex_unlock(second);
    pthread_mutex_unlock(first);
    return 0;
}
int main(int argc, char **argv) {
    pthread_t t[2];
    fixed = argc > 1;
    for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, run, i ? &a : 0);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    return 0;
}
"#;

/// The same, where one of them counts how often it has failed: no state comes again.
const COUNTED: &str = r#"
#include <pthread.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static struct { long hits; int padding, misses; } stats;
static void *run(void *x) {
    pthread_mutex_t *first = x ? &b : &a, *second = x ? &a : &b;
    for (;;) {
        pthread_mutex_lock(first);
        if (pthread_mutex_trylock(second) == 0) break;
        if (x) stats.misses++;
        pthread_mutex_unlock(first);
    }
    pthread_mutex_unlock(second);
    pthread_mutex_unlock(first);
    return 0;
}
int main(void) {
    pthread_t t[2];
    for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, run, i ? &a : 0);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    return 0;
}
"#;

/// Two threads that let each other go for ever, or three times; between, with a third argument, something is printed.
const PING_PONG: &str = r#"
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>
static sem_t turn[2];
static int fixed, prints;
static void *run(void *x) {
    long me = (long)x;
    for (int n = 0; !fixed || n < 3; n += fixed) {
        sem_wait(&turn[me]);
        if (prints && write(1, ".", 1) != 1) return 0;
        sem_post(&turn[1 - me]);
    }
    return 0;
}
int main(int argc, char **argv) {
    pthread_t t[2];
    fixed = argc == 2, prints = argc > 2;
    for (int i = 0; i < 2; i++) sem_init(&turn[i], 0, !i);
    for (long i = 0; i < 2; i++) pthread_create(&t[i], 0, run, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    return 0;
}
"#;

/// Two threads that step aside for each other; the fixed one waits until the other one is done.
const POLITE: &str = r#"
#include <pthread.h>
#include <sched.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int wants[2], fixed;
static int get(int i) { pthread_mutex_lock(&m); int v = wants[i]; pthread_mutex_unlock(&m); return v; }
static void set(int i, int v) { pthread_mutex_lock(&m); wants[i] = v; pthread_mutex_unlock(&m); }
static void *run(void *x) {
    long me = (long)x;
    set(me, 1);
    while (get(1 - me)) {
        if (fixed && me == 0) { sched_yield(); continue; }
        set(me, 0);
        while (fixed && get(1 - me)) sched_yield();
        sched_yield();
        set(me, 1);
    }
    set(me, 0);
    return 0;
}
int main(int argc, char **argv) {
    pthread_t t[2];
    fixed = argc > 1;
    for (long i = 0; i < 2; i++) pthread_create(&t[i], 0, run, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    return 0;
}
"#;

/// Two threads note in which order they come; a bug in one of the two orders. What they note it in was a stack, or lies below one that main is on; threads
/// have small stacks.
const ORDER: &str = r#"
#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static _Alignas(64) char area[1 << 16];
static char *notes;
static int n;
static ucontext_t back, inside;
static void *nothing(void *x) { return x; }
static void *note(void *x) {
    pthread_mutex_lock(&m);
    notes[n++ * 64] = *(char *)x;
    pthread_mutex_unlock(&m);
    return 0;
}
static void both(void) {
    pthread_t t[2];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN);
    for (int i = 0; i < 2; i++) pthread_create(&t[i], &small, note, &"ab"[i]);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    n = 0;
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
}
int main(int argc, char **argv) {
    pthread_t t;
    pthread_attr_t own;
    if (!strcmp(argv[1], "stack")) {
        notes = area + sizeof area / 2;
        pthread_attr_init(&own);
        pthread_attr_setstack(&own, area, sizeof area);
        pthread_create(&t, &own, note, "c");
        pthread_join(t, 0);
        n = 0;
        both();
    } else if (!strcmp(argv[1], "coroutine")) {
        notes = malloc(256);
        getcontext(&inside);
        inside.uc_stack.ss_sp = malloc(1 << 16);
        inside.uc_stack.ss_size = 1 << 16;
        inside.uc_link = &back;
        makecontext(&inside, both, 0);
        swapcontext(&back, &inside);
    } else {
        notes = area;
        both();
    }
    assert(!(notes[0] == 'b' && notes[64] == 'a'));
    return 0;
}
"#;

/// A directory with programs, removed at the end.
struct Place {
    dir: PathBuf,
}

impl Place {
    fn new(test: &str, programs: &[(&str, &str)]) -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-stateful-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary directory");
        for (name, text) in programs {
            let source = dir.join(format!("{name}.c"));
            fs::write(&source, text).expect("a source");
            let mut gcc = Command::new("gcc");
            gcc.args(["-O1", "-g", "-pthread", "-o"]).arg(dir.join(name)).arg(source);
            assert!(gcc.status().expect("gcc").success());
        }
        Place { dir }
    }

    fn vsrun(&self, line: &str) -> Output {
        let mut vsrun = Command::new("timeout");
        vsrun.args(["-s", "KILL", "120", env!("CARGO_BIN_EXE_vsrun")]).args(line.split_whitespace());
        vsrun.current_dir(&self.dir).stdin(Stdio::null()).output().expect("vsrun")
    }

    fn report(&self, line: &str) -> Value {
        let output = self.vsrun(&format!("--search stateful --format json {line}"));
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|e| panic!("{line}: {e}: {}", String::from_utf8_lossy(&output.stderr)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Verdict, completeness, executions, transitions.
fn told(report: &Value) -> (&str, bool, u64, u64) {
    let number = |key: &str| report[key].as_u64().expect(key);
    let complete = report["complete"].as_bool().expect("complete");
    (report["verdict"].as_str().expect("verdict"), complete, number("executions"), number("transitions"))
}

/// States of n threads that lock, count, unlock, and are joined in turn by the first one: each set of those that have counted, with one that holds the
/// lock or none, and how many have been joined. As many as there are transitions between these, if each was met once.
fn transitions_of(n: u32) -> u64 {
    let mut all = 0;
    for joined in 0..=n {
        for done in 0..1u32 << (n - joined) {
            let open = n - joined - done.count_ones();
            // The next one to be joined is over.
            let joins = u64::from(done & 1);
            // Nobody holds the lock: each of those left may take it, or the join comes. One of them holds it: it goes on, or the join comes.
            all += u64::from(open) + joins + u64::from(open) * (1 + joins);
        }
    }
    all
}

#[test]
fn threads_that_count_cost_what_their_states_are() {
    let place = Place::new("count", &[("count", COUNT)]);
    for n in [2, 3, 5, 7] {
        let report = place.report(&format!("--keep-going ./count {n}"));
        let (verdict, complete, _, transitions) = told(&report);
        assert_eq!((verdict, complete), ("ok", true), "{n}");
        assert_eq!(transitions, transitions_of(n), "{n} threads");
    }
    // Of the 5,040 orders none is left out by what depends on what: a bug in any is found.
    let wrong = COUNT.replace("return count != n;", "return count == n;");
    let place = Place::new("wrong", &[("count", &wrong)]);
    assert_eq!(told(&place.report("--fail-on-exit --keep-going ./count 4")).0, "assert");
}

/// A counter keeps states apart that are alike for the program: it is named, with how many states there would be without it, and which two differ in it alone.
#[test]
fn what_makes_states_differ_is_named() {
    let place = Place::new("why", &[("counted", COUNTED), ("back_off", BACK_OFF), ("count", COUNT)]);
    let report = place.report("--states=why --keep-going --max-depth 300 --max-executions 200 ./counted");
    let states = &report["states"];
    let all = states["states"].as_u64().expect("a number");
    let first = &states["without"][0];
    let left = first["states"].as_u64().expect("a number");
    assert_eq!(first["what"], "stats", "{states}");
    assert!(all > 300 && left * 5 < all && !states["more"].as_bool().expect("a truth"), "{states}");
    let near = &states["nearest"];
    assert_eq!(
        (near["bytes"].as_u64(), near["others"].as_u64(), near["words"].as_array().map(Vec::len)),
        (Some(1), Some(0), Some(1)),
        "{near}"
    );
    let word = &near["words"][0];
    assert_eq!(word["what"], "stats.misses", "{near}");
    // Two that come one after the other; of the first nothing is told before it is counted for the first time.
    let was = word["is"][0].as_u64().unwrap_or(0);
    assert_eq!(word["is"][1].as_u64(), Some(was + 1), "{near}");
    // Without the counter they come again, and the loop is found.
    assert_eq!(told(&place.report("--states=why ./back_off")).0, "livelock");
    // Nothing alone does in this one.
    let text = String::from_utf8_lossy(&place.vsrun("--states=why ./count 2").stdout).into_owned();
    assert!(text.contains("What makes states differ (12 states told apart)\n    no variable"), "{text}");
}

/// `--states` alone makes the naive search one of states, or that of nobody's choice; others are refused.
#[test]
fn each_state_once_by_an_option() {
    let place = Place::new("option", &[("count", COUNT)]);
    let stateful = place.report("./count 4");
    for line in ["--states --search naive", "--states", "--states=once"] {
        let output = place.vsrun(&format!("--format json {line} ./count 4"));
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!((told(&report), &report["search"]), (told(&stateful), &Value::from("stateful")), "{line}");
        assert_eq!(report["states"], Value::Null, "{line}");
    }
    for search in ["optimal", "dpor", "sss", "random"] {
        let output = place.vsrun(&format!("--states --search {search} ./count 4"));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && text.contains("--states goes with"), "{search}: {text}");
    }
}

#[test]
fn who_goes_round_for_ever_is_told_with_the_way_there_and_once_round() {
    let place = Place::new("livelock", &[("back_off", BACK_OFF), ("ping_pong", PING_PONG), ("polite", POLITE)]);
    for program in ["back_off", "ping_pong", "polite"] {
        let report = place.report(&format!("./{program}"));
        let bug = &report["bugs"][0];
        assert_eq!((told(&report).0, &bug["kind"]), ("livelock", &Value::from("livelock")), "{program}");
        let summary = bug["summary"].as_str().expect("summary");
        assert!(summary.contains("can go round for ever"), "{program}: {summary}");
        let file = bug["scenario"].as_str().expect("a scenario");
        for _ in 0..2 {
            let again = place.vsrun(&format!("replay {file}"));
            let text = String::from_utf8_lossy(&again.stdout).into_owned();
            assert_eq!(again.status.code(), Some(1), "{program}: {text}");
            assert!(text.contains("can go round for ever"), "{program}: {text}");
        }
        // Without a supervisor, too.
        let alone = place.vsrun(&format!("replay --no-supervisor {file}"));
        let text = String::from_utf8_lossy(&alone.stderr).into_owned();
        assert_eq!(alone.status.code(), Some(1), "{program}: {text}");
        assert!(text.contains("livelock: threads have gone round"), "{program}: {text}");
        // No single choice leads away from it for good.
        let explained = place.vsrun(&format!("explain {file}"));
        assert_eq!(explained.status.code(), Some(2), "{program}: {}", String::from_utf8_lossy(&explained.stdout));
        let fixed = place.report(&format!("--keep-going ./{program} fixed"));
        assert_eq!((told(&fixed).0, told(&fixed).1), ("ok", true), "{program}, fixed");
    }
    // What prints gets on, and what has been printed is no part of a state.
    let report = place.report("--keep-going ./ping_pong it prints");
    assert_eq!((told(&report).0, told(&report).1), ("ok", true));
    assert!(report["seconds"].as_f64().is_some_and(|seconds| seconds < 5.0), "{}", report["seconds"]);
}

/// A thread that gives way until another one has opened a file: from there on states are not told apart, and loops that never end have to give way.
const UNTOLD: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int ready;
static int is_ready(void) { pthread_mutex_lock(&m); int is = ready; pthread_mutex_unlock(&m); return is; }
static void *opens(void *x) {
    int fd = open("untold.data", O_RDWR | O_CREAT, 0600);
    pthread_mutex_lock(&m);
    ready = fd >= 0;
    pthread_mutex_unlock(&m);
    return x;
}
static void *waits(void *x) { while (!is_ready()) sched_yield(); return x; }
int main(void) {
    pthread_t t[2];
    pthread_create(&t[0], 0, opens, 0);
    pthread_create(&t[1], 0, waits, 0);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    return 0;
}
"#;

#[test]
fn where_states_are_not_told_apart_who_goes_round_gives_way() {
    let place = Place::new("untold", &[("untold", UNTOLD)]);
    let report = place.report("--keep-going ./untold");
    assert_eq!((told(&report).0, told(&report).1), ("ok", true), "{}", report["incomplete_reasons"]);
}

#[test]
fn what_was_a_stack_or_lies_below_one_counts() {
    let place = Place::new("order", &[("order", ORDER)]);
    for kind in ["plain", "stack", "coroutine"] {
        let report = place.report(&format!("--keep-going ./order {kind}"));
        assert_eq!((told(&report).0, told(&report).1), ("assert", true), "{kind}: {}", report["bugs"]);
    }
}

#[test]
fn what_states_are_not_told_by_is_refused() {
    let place = Place::new("refused", &[("count", COUNT)]);
    for (options, why) in [
        ("--race explore", "--race off"),
        ("--race hb", "--race off"),
        ("--checkpoint fork", "--checkpoint auto or rollback"),
        ("--checkpoint replay", "--checkpoint auto or rollback"),
    ] {
        let output = place.vsrun(&format!("--search stateful {options} ./count 2"));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && text.contains(why), "{options}: {text}");
    }
}
