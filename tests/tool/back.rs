//! How executions begin (`--checkpoint`): by rollback, fork and from the program's start the same is explored and found. With the vsrun binary.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A directory with programs, removed at the end.
pub(super) struct Place {
    pub(super) dir: PathBuf,
}

impl Place {
    pub(super) fn new(test: &str) -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-back-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary directory");
        Place { dir }
    }

    /// Compiles a program of the repository.
    pub(super) fn compile(&self, name: &str) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("c-tests").join(format!("{name}.c"));
        let mut gcc = Command::new("gcc");
        gcc.args(["-O1", "-g", "-pthread", "-o"]).arg(self.dir.join(name)).arg(source);
        assert!(gcc.status().expect("gcc").success());
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        let source = self.dir.join(format!("{name}.c"));
        fs::write(&source, text).expect("a source");
        let mut gcc = Command::new("gcc");
        gcc.args(["-O1", "-g", "-pthread", "-o"]).arg(self.dir.join(name)).arg(source);
        assert!(gcc.status().expect("gcc").success());
    }

    pub(super) fn run(&self, checkpoint: &str, line: &str) -> Value {
        report(line, self.command(checkpoint, line).output().expect("vsrun"))
    }

    pub(super) fn command(&self, checkpoint: &str, line: &str) -> Command {
        let mut vsrun = Command::new("timeout");
        vsrun
            .args(["-s", "KILL", "200", env!("CARGO_BIN_EXE_vsrun"), "--format", "json", "--scenario-dir", checkpoint])
            .args(["-j", "1", "--keep-going", "--checkpoint", checkpoint])
            .args(line.split_whitespace())
            .current_dir(&self.dir)
            .stdin(Stdio::null());
        vsrun
    }

    /// The same by rollback, and the most memory, in KiB, that one of the program's processes had.
    fn run_weighed(&self, name: &str, line: &str) -> (Value, u64) {
        let mut child = self.command("rollback", line).stdout(Stdio::piped()).spawn().expect("vsrun");
        let mut most = 0;
        while child.try_wait().expect("vsrun").is_none() {
            let weights = self.processes(name).into_iter().filter_map(|pid| kilobytes(pid, "status", "VmHWM:"));
            most = weights.fold(most, u64::max);
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        (report(line, child.wait_with_output().expect("vsrun")), most)
    }

    /// The processes of that program.
    pub(super) fn processes(&self, name: &str) -> Vec<i32> {
        let program = self.dir.join(name);
        let all = fs::read_dir("/proc").expect("/proc").flatten();
        let own = all.filter(|one| fs::read_link(one.path().join("exe")).is_ok_and(|exe| exe == program));
        own.filter_map(|one| one.file_name().to_string_lossy().parse().ok()).collect()
    }

    /// What is the same however executions begin, and the scenarios.
    fn found(&self, checkpoint: &str, run: &Value) -> (Value, Vec<String>) {
        let mut run = run.clone();
        for key in ["seconds", "rolled_back", "copied", "from_marks", "marks_without_room", "not_rolled_back"] {
            run[key] = Value::Null;
        }
        // How long the rest would take is told where there is a bound.
        if let Some(notes) = run["notes"].as_array_mut() {
            let other = ["the rest would take", "(--checkpoint-memory)"];
            notes.retain(|note| !note.as_str().is_some_and(|note| other.iter().any(|text| note.contains(text))));
        }
        let text = run.to_string().replace(&format!("{checkpoint}/"), "");
        let files = fs::read_dir(self.dir.join(checkpoint)).into_iter().flatten().flatten();
        let mut scenarios: Vec<String> =
            files.map(|file| fs::read_to_string(file.path()).expect("a scenario")).collect();
        scenarios.sort();
        (serde_json::from_str(&text).expect("JSON"), scenarios)
    }

    fn both(&self, line: &str) -> Value {
        self.both_as("", line)
    }

    /// Runs it both ways, by rollback with the options `how`; what rollback gives. `how` may begin with another way.
    pub(super) fn both_as(&self, how: &str, line: &str) -> Value {
        let (way, options) = match how.split_once(' ').unwrap_or((how, "")) {
            (way @ ("copies" | "auto"), options) => (way, options),
            _ => ("rollback", how),
        };
        let (other, fork) = (self.run(way, &format!("{options} {line}")), self.run("fork", line));
        assert_eq!(self.found(way, &other), self.found("fork", &fork), "{how} {line}");
        assert_eq!((fork["rolled_back"].as_u64(), &fork["not_rolled_back"]), (Some(0), &Value::Null));
        let _ = fs::remove_dir_all(self.dir.join(way));
        let _ = fs::remove_dir_all(self.dir.join("fork"));
        other
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

pub(super) fn report(line: &str, output: Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{line}: {e}: {output:?}"))
}

/// What the kernel says of a process in that file, on the line that begins so. `None`: it is over.
pub(super) fn kilobytes(pid: i32, file: &str, begins: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).ok()?;
    let line = text.lines().find(|line| line.starts_with(begins))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

pub(super) fn number(run: &Value, key: &str) -> u64 {
    run[key].as_u64().unwrap_or_else(|| panic!("{key}: {run}"))
}

/// Counts, bugs and scenarios are the same, memory watched or not; most executions go back.
#[test]
fn what_is_explored_does_not_depend_on_how_executions_begin() {
    let place = Place::new("same");
    for name in ["lockcount", "philosophers_threads", "cond_lost", "lock_free"] {
        place.compile(name);
    }
    for (line, least) in [
        ("--search naive --race off ./lockcount 4", 200),
        ("--search optimal --race off ./lockcount 5", 90),
        // Deadlocks are looked at in between, by an execution that stops at its end.
        ("--search naive --race off --shrink 0 ./philosophers_threads 3", 2000),
        ("--search optimal ./lockcount 5", 90),
        ("--search dpor ./philosophers_threads 3", 1),
        ("--search random --max-executions 100 ./philosophers_threads 3", 60),
        ("--search pct --max-executions 100 ./philosophers_threads 3", 60),
        ("--search surw --max-executions 100 ./lockcount 4", 60),
        ("--search rff --max-executions 100 ./lockcount 4", 60),
        ("--search pos --max-executions 100 ./lockcount 4", 60),
        ("--search novel --max-executions 100 ./lockcount 4", 60),
        ("--search optimal ./cond_lost buggy", 0),
        ("--search optimal ./lock_free ticket", 0),
    ] {
        let run = place.both(line);
        assert!(number(&run, "rolled_back") >= least, "{line}: {run}");
    }
}

/// Memory, mappings, descriptors, signals: the program looks itself whether all is as main has left it, in each execution.
#[test]
fn all_is_put_back() {
    let place = Place::new("all");
    place.compile("back");
    for line in ["--search random --max-executions 60 --race off ./back", "--search random --max-executions 60 ./back"]
    {
        let run = place.both(line);
        assert_eq!((run["verdict"].as_str(), number(&run, "executions")), (Some("ok"), 60), "{run}");
        assert!(number(&run, "rolled_back") >= 40, "{run}");
    }
}

/// Who has used what before a mark counts behind it: a thread looks up flags of a descriptor before, and another one changes them behind it, in some orders only.
#[test]
fn what_was_used_before_a_mark_is_known_behind_it() {
    let place = Place::new("uses");
    place.write("uses", USES);
    for marks in [1, 2, 3] {
        let run = place.both(&format!("--search optimal --race off --marks {marks} ./uses"));
        assert_eq!((run["verdict"].as_str(), &run["complete"]), (Some("assert"), &Value::Bool(true)), "{marks}: {run}");
        assert!(number(&run, "from_marks") > 30, "{marks}: {run}");
    }
}

const USES: &str = r#"
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, n = PTHREAD_MUTEX_INITIALIZER;
static sem_t looked;
static int set, fd;
static void *looks(void *a) { sem_post(&looked); assert((fcntl(fd, F_GETFL) & O_NONBLOCK) == 0); return a; }
static void *sets(void *a) { sem_wait(&looked); pthread_mutex_lock(&m); set = 1; pthread_mutex_unlock(&m); return a; }
static void *changes(void *a) {
    pthread_mutex_lock(&m);
    int changes = set;
    pthread_mutex_unlock(&m);
    if (changes) fcntl(fd, F_SETFL, O_NONBLOCK);
    return a;
}
static void *locks(void *a) {
    for (int i = 0; i < 2; i++) { pthread_mutex_lock(&n); pthread_mutex_unlock(&n); }
    return a;
}
int main(void) {
    void *(*all[])(void *) = {looks, changes, sets, locks, locks};
    pthread_t t[5];
    int p[2];
    assert(pipe(p) == 0);
    fd = p[0];
    sem_init(&looked, 0, 0);
    for (int i = 0; i < 5; i++) pthread_create(&t[i], NULL, all[i], NULL);
    for (int i = 0; i < 5; i++) pthread_join(t[i], NULL);
    return 0;
}
"#;

/// Handlers that come back, jump out, run on another stack, are for one time only, or end the program: the next execution has the actions, masks and stacks that main
/// has left.
#[test]
fn handlers_are_put_back() {
    let place = Place::new("handlers");
    place.write("handlers", HANDLERS);
    for (how, least) in [("plain", 50), ("once", 50), ("jumps", 50), ("stack", 50), ("ends", 20)] {
        for marks in [0, 1] {
            let run =
                place.both(&format!("--search naive --race off --marks {marks} --max-executions 400 ./handlers {how}"));
            assert_eq!(run["verdict"], "ok", "{how} {marks}: {run}");
            assert!(number(&run, "rolled_back") >= least, "{how} {marks}: {run}");
        }
    }
}

const HANDLERS: &str = r#"
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *how;
static volatile int came, jumped, turn;
static sigjmp_buf back;
static char other[65536];
static void handler(int n, siginfo_t *info, void *context) {
    (void)context;
    int here;
    assert(n == SIGUSR1 && info->si_signo == SIGUSR1);
    came++;
    if (strcmp(how, "stack") == 0) assert((char *)&here >= other && (char *)&here < other + sizeof other);
    if (strcmp(how, "jumps") == 0) siglongjmp(back, 1);
    if (strcmp(how, "ends") == 0) { printf("%d\n", turn); fflush(stdout); _exit(0); }
}
static void *counts(void *unused) {
    (void)unused;
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&lock);
        turn++;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}
int main(int argc, char **argv) {
    pthread_t a, b;
    struct sigaction now, action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
    stack_t stack = { .ss_sp = other, .ss_size = sizeof other };
    how = argv[argc - 1];
    if (strcmp(how, "once") == 0) action.sa_flags |= SA_RESETHAND;
    if (strcmp(how, "stack") == 0) { action.sa_flags |= SA_ONSTACK; assert(sigaltstack(&stack, NULL) == 0); }
    sigaction(SIGUSR1, &action, NULL);
    pthread_create(&a, NULL, counts, NULL);
    pthread_create(&b, NULL, counts, NULL);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    assert(came == 0 && jumped == 0);
    sigaction(SIGUSR1, NULL, &now);
    assert(now.sa_sigaction == handler);
    if (sigsetjmp(back, 1) == 0) raise(SIGUSR1); else jumped = 1;
    assert(came == 1 && jumped == (strcmp(how, "jumps") == 0));
    sigaction(SIGUSR1, NULL, &now);
    assert(strcmp(how, "once") == 0 ? now.sa_handler == SIG_DFL : now.sa_sigaction == handler);
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert(!sigismember(&mask, SIGUSR1));
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return turn != 4;
}
"#;

/// The same where executions go on from within the one before, wherever that is; and counts, bugs and scenarios do not depend on it.
#[test]
fn all_is_put_back_as_it_was_within_an_execution() {
    let place = Place::new("marks");
    for name in ["back_marks", "lockcount", "philosophers_threads"] {
        place.compile(name);
    }
    for (line, least) in [
        ("--search naive --max-executions 300 --race off ./back_marks", 250),
        ("--search optimal --max-executions 300 --race off ./back_marks takes", 250),
        ("--search naive --race off --shrink 0 ./philosophers_threads 3", 1500),
        ("--search optimal --race off ./lockcount 5", 80),
        ("--search optimal ./lockcount 5", 80),
        ("--search dpor ./lockcount 4", 8),
        ("--search sss --race off ./lockcount 4", 8),
    ] {
        for every in [1, 3] {
            let run = place.both(&format!("--marks {every} {line}"));
            assert!(number(&run, "from_marks") >= least, "{every} {line}: {run}");
            assert!(run["verdict"] == "ok" || !line.contains("back_marks"), "{run}");
        }
    }
}

/// What an execution does between its operations is not done again by the next one, where it takes long.
#[test]
fn what_takes_long_is_done_once() {
    let place = Place::new("long");
    let text = "#include <pthread.h>\n#include <unistd.h>\nstatic pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
         static void *t(void *a) { for (int i = 0; i < 5; i++) { for (volatile long n = 0; n < 1500000; n++) {} pthread_mutex_lock(&m); pthread_mutex_unlock(&m); } return a; }\n\
         int main(void) { pthread_t a, b; pthread_create(&a, 0, t, 0); pthread_create(&b, 0, t, 0); pthread_join(a, 0); pthread_join(b, 0); return 0; }\n";
    place.write("long", text);
    let (rollback, fork) = (
        place.run("rollback", "--search optimal --race off ./long"),
        place.run("fork", "--search optimal --race off ./long"),
    );
    assert_eq!(place.found("rollback", &rollback), place.found("fork", &fork));
    // Some are run without marks, to see whether these pay.
    assert!(number(&rollback, "from_marks") > 170, "{rollback}");
}

/// Each execution writes to 2,000 pages, so that a mark takes 8 MiB.
pub(super) const WRITES: &str = "#include <pthread.h>\n#include <stdlib.h>\nstatic pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\nstatic char *memory;\n\
     static void *t(void *a) { for (int i = 1; i <= 4; i++) { pthread_mutex_lock(&m); for (long p = (long)a; p < 2000; p += 2) memory[p * 4096] = i; pthread_mutex_unlock(&m); } return 0; }\n\
     int main(void) { memory = malloc(2001 * 4096); for (long p = 0; p < 2000; p++) memory[p * 4096] = 9; pthread_t a, b;\n\
     pthread_create(&a, 0, t, (void *)0); pthread_create(&b, 0, t, (void *)1); pthread_join(a, 0); pthread_join(b, 0); return 0; }\n";

/// What marks take stays within what they may take, measured from outside; nothing else depends on it, and where there is no room for any it is said.
#[test]
fn marks_take_no_more_memory_than_they_may() {
    const MOST: u64 = 40 << 10;
    let place = Place::new("bound");
    place.write("bound", WRITES);
    let line = "--search optimal --race off --marks 1 ./bound";
    let weighed = |memory: &str| place.run_weighed("bound", &format!("{memory} {line}"));
    let ((none, least), (few, between), (all, most)) =
        (weighed("--checkpoint-memory 0"), weighed("--checkpoint-memory 40M"), weighed("--checkpoint-memory 1G"));
    let fork = place.run("fork", line);
    for run in [&none, &few, &all] {
        assert_eq!(place.found("rollback", run), place.found("fork", &fork));
        assert!(number(run, "rolled_back") > 50, "{run}");
    }
    assert!(number(&few, "from_marks") > 10 && number(&all, "from_marks") > 50, "{few} {all}");
    assert_eq!((number(&none, "from_marks"), number(&all, "marks_without_room")), (0, 0), "{none} {all}");
    assert!(number(&none, "marks_without_room") > 50, "{none}");
    let said = |run: &Value| run["notes"].to_string().contains("no room for a state within them");
    assert_eq!((said(&none), said(&all)), (true, false), "{none} {all}");
    // Else nothing would be shown.
    assert!(most > least + 2 * MOST, "{least} {most} KiB");
    assert!(between > least + 8 * 1024 && between <= least + MOST, "{least} {between} KiB");
}

/// Large pages, shared and moved memory, what the kernel writes: put back, or the next execution is forked, and it is said why.
#[test]
fn memory_of_all_kinds_is_put_back_or_said_why_not() {
    let place = Place::new("memory");
    place.compile("back_memory");
    for (kind, why) in [
        ("huge", None),
        ("hugetlb", None),
        ("over", None),
        ("received", None),
        ("file", None),
        ("collapse", Some("system call madvise")),
        ("freed", Some("system call madvise")),
        ("moved", Some("system call mremap")),
        ("locked", Some("system call mlock")),
        ("memfd", Some("system call pwrite64")),
        ("shared", None),
    ] {
        let run = place.both(&format!("--search optimal --race off ./back_memory {kind}"));
        assert_eq!((run["verdict"].as_str(), number(&run, "executions")), (Some("ok"), 24), "{run}");
        let (back, said) = (number(&run, "rolled_back"), run["not_rolled_back"].as_str());
        assert!(said == why && if why.is_none() { back > 10 } else { back == 0 }, "{kind}: {run}");
    }
}

/// Memory that an execution unmaps is only hidden where nobody can tell: whoever asks finds nothing there, and the next execution finds it as it was, whichever of its
/// pages were written.
#[test]
fn what_is_unmapped_is_there_for_nobody_and_then_as_it_was() {
    let place = Place::new("hidden");
    place.compile("back_hidden");
    for kind in ["pages", "again", "sometimes", "given", "part", "asked", "advised", "listed", "fault"] {
        let run = place.both(&format!("--search optimal --race off ./back_hidden {kind}"));
        let ok = (run["verdict"].as_str(), number(&run, "executions")) == (Some("ok"), 24);
        assert!(ok && number(&run, "rolled_back") > 5 && run["not_rolled_back"].is_null(), "{kind}: {run}");
    }
}

/// Where a program is in /dev/urandom is put back as it is in any file, whether it was opened before main or in it.
#[test]
fn random_bytes_are_the_same_in_each_execution() {
    let place = Place::new("random");
    for (name, opens) in [("early", "__attribute__((constructor))"), ("late", "")] {
        let text = format!(
            "#include <fcntl.h>\n#include <pthread.h>\n#include <stdio.h>\n#include <unistd.h>\n\
             static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\nstatic int fd = -1;\n\
             {opens} static void opens(void) {{ if (fd < 0) fd = open(\"/dev/urandom\", O_RDONLY); }}\n\
             static void *t(void *a) {{ unsigned x = 0; pthread_mutex_lock(&m); if (read(fd, &x, 4) != 4) return 0; printf(\"%u\\n\", x); pthread_mutex_unlock(&m); return a; }}\n\
             int main(void) {{ pthread_t a, b; opens(); pthread_create(&a, 0, t, 0); pthread_create(&b, 0, t, 0); pthread_join(a, 0); pthread_join(b, 0); return 0; }}\n"
        );
        place.write(name, &text);
        let run = place.both(&format!("--search random --max-executions 40 --race off ./{name}"));
        assert_eq!((&run["outcomes"]["different"], number(&run, "rolled_back") > 20), (&1.into(), true), "{run}");
    }
}

/// Each execution starts the program.
#[test]
fn executions_that_start_the_program() {
    let place = Place::new("replay");
    place.compile("lockcount");
    let line = "--search optimal --race off ./lockcount 3";
    let (replay, fork) = (place.run("replay", line), place.run("fork", line));
    assert_eq!(place.found("replay", &replay), place.found("fork", &fork));
}

/// A process that has done what it cannot undo ends, and it is said why; one that crashes is followed by another one.
#[test]
fn what_cannot_be_undone_is_said() {
    let place = Place::new("hindered");
    // Of the orders of four threads, one in twelve, or all.
    let threads = |when: &str, does: &str| {
        format!(
            "#include <pthread.h>\n#include <unistd.h>\n#include <sys/stat.h>\n#include <sys/wait.h>\nstatic pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
             static long n, first, second;\n\
             static void *t(void *a) {{ pthread_mutex_lock(&m); n++; if (n == 1) first = (long)a; if (n == 2) second = (long)a;\n\
             int now = n == 4 && {when}; pthread_mutex_unlock(&m); if (now) {{ {does}; }} return 0; }}\n\
             int main(void) {{ pthread_t a[4]; for (long i = 0; i < 4; i++) pthread_create(&a[i], 0, t, (void *)(i + 1));\n\
             for (int i = 0; i < 4; i++) pthread_join(a[i], 0); return 0; }}\n"
        )
    };
    let (seldom, sets) = ("first == 3 && second == 2", "umask(022)");
    place.write("sets", &threads(seldom, sets));
    place.write("always", &threads("1", sets));
    place.write("crashes", &threads(seldom, "*(volatile int *)0 = 1"));
    let otherwise = "it ended otherwise, or before its first choice";
    // After four in a row one of many is asked.
    for (name, most, why) in
        [("sets", 200, "system call umask"), ("crashes", 200, otherwise), ("always", 0, "system call umask")]
    {
        let run = place.both(&format!("--search random --max-executions 200 --race off ./{name}"));
        assert_eq!(run["not_rolled_back"], why, "{run}");
        let back = number(&run, "rolled_back");
        assert!(back <= most && back >= most / 2, "{run}");
    }
    // What a child was is over with it.
    place.write("forks", &threads("1", "if (fork() == 0) _exit(0); wait(0)"));
    let run = place.both("--search random --max-executions 200 --race off ./forks");
    assert_eq!(run["not_rolled_back"], Value::Null, "{run}");
    assert!(number(&run, "rolled_back") > 150, "{run}");
}

/// What is recorded of memory that an execution maps far from all else is not left for the next one. Whoever comes first says what main and the threads do with
/// it: main alone uses it at the end, or two threads do, without a lock, which is to be found; the page may have been main's alone in the execution before.
#[test]
fn memory_far_from_all_else_is_watched_anew_in_each_execution() {
    let place = Place::new("far");
    place.write("far", FAR);
    for (far, hindered) in [("7ffff0000000", false), ("7f0000000000", true), ("7ff500000000", false)] {
        let run = place.both(&format!("--search optimal ./far {far}"));
        assert_eq!(run["outcomes"]["different"], 5, "{far}: {run}");
        // Within some GiB it goes back, once an execution has shown that it has to.
        assert_eq!(run["not_rolled_back"].is_null(), !hindered, "{far}: {run}");
        assert!(hindered || number(&run, "rolled_back") > 30, "{far}: {run}");
    }
}

const FAR: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all;
static long first, n;
static int *far;
static void *at;

static void *thread(void *number)
{
    long me = (long)number;
    pthread_mutex_lock(&m);
    if (n++ == 0) {
        first = me;
        far = mmap(at, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (far != at)
            abort();
    }
    pthread_mutex_unlock(&m);
    pthread_barrier_wait(&all);
    if (first == 4)
        ++*far;
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t t[4];
    at = (void *)strtoul(argv[1], NULL, 16);
    pthread_barrier_init(&all, NULL, 4);
    for (long i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, thread, (void *)(i + 1));
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    if (first != 4)
        *far += 10;
    printf("%d\n", *far);
    return argc - 2;
}
"#;
