//! Several processes that go back together: by rollback and by fork the same is explored and found. With the vsrun binary.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::back::{number, report, Place};

/// Each process looks itself whether its memory is as it was, and what all have done together comes out.
pub(super) const SEVERAL: &str = r#"
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static struct shared { pthread_mutex_t m; int n; } *shared;
static int mine, ends[2];
static char *heap;
static void works(int seat)
{
    assert(mine == 7 && strcmp(heap, "before") == 0);
    mine += seat;
    strcpy(heap, "behind");
    close(ends[0]);
    pthread_mutex_lock(&shared->m);
    shared->n++;
    pthread_mutex_unlock(&shared->m);
    assert(mine == 7 + seat && strcmp(heap, "behind") == 0);
    char c = seat;
    assert(write(ends[1], &c, 1) == 1);
}
static int reads(void)
{
    int sum = 0;
    char c;
    close(ends[1]);
    while (read(ends[0], &c, 1) == 1)
        sum += c;
    return sum;
}
int main(int argc, char **argv)
{
    const char *how = argv[1];
    int children = atoi(argv[2]), status, killed = 0, sum = 0;
    if (argc > 3) {
        char c = 3;
        return write(atoi(argv[3]), &c, 1) != 1;
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared->m, &a);
    mine = 7;
    heap = strcpy(malloc(100), "before");
    assert(pipe(ends) == 0);
    pid_t last = 0;
    for (int i = 1; i <= children; i++) {
        sum += i;
        if ((last = fork()) == 0) {
            if (i == 3 && strcmp(how, "exec") == 0) {
                char end[10] = {'0' + ends[1] / 10, '0' + ends[1] % 10};
                execl(argv[0], argv[0], "exec", "0", end, (char *)NULL);
            }
            works(i);
            _exit(0);
        }
    }
    if (strcmp(how, "kill") == 0)
        assert(kill(last, SIGKILL) == 0);
    int got = reads();
    for (int i = 0; i < children; i++) {
        assert(wait(&status) > 0);
        killed += WIFSIGNALED(status);
        assert(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    }
    assert(killed <= (strcmp(how, "kill") == 0));
    assert(got == sum || killed && got == sum - children);
    assert(shared->n >= children - 1 && mine == 7 && strcmp(heap, "before") == 0);
    return 0;
}
"#;

/// Two processes that have a file mapped which has a name.
const MAPPED: &str = r#"
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static void *locks(void *m)
{
    pthread_mutex_lock(m);
    pthread_mutex_unlock(m);
    return m;
}
int main(void)
{
    int file = open("mapped.c", O_RDWR);
    volatile char *text = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert(file >= 0 && text != MAP_FAILED && text[0] == '\n');
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    if (fork() == 0) {
        pthread_t t;
        pthread_create(&t, NULL, locks, &m);
        locks(&m);
        pthread_join(t, NULL);
        _exit(0);
    }
    pthread_t t;
    pthread_create(&t, NULL, locks, &m);
    locks(&m);
    pthread_join(t, NULL);
    wait(NULL);
    return 0;
}
"#;

/// A thread closes both ends of a pipe; then a child closes all numbers, and its parent all that are left.
const CLOSES: &str = r#"
#include <assert.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int a[2], b[2], turns;
static void *turn(void *arg)
{
    pthread_mutex_lock(&m);
    if (turns++ == 0) {
        assert(close(b[0]) == 0);
        assert(close(b[1]) == 0);
    }
    pthread_mutex_unlock(&m);
    return arg;
}
static void closes(void)
{
    for (int i = 3; i < 1500; i++) {
        int there = close(i) == 0;
        assert(there ? i < 512 : i != a[0] && i != a[1]);
    }
}
int main(void)
{
    assert(pipe(a) == 0 && pipe(b) == 0);
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, turn, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    if (fork() == 0) {
        closes();
        _exit(0);
    }
    closes();
    int status;
    assert(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return 0;
}
"#;

/// Before its first choice there is one process; two threads each make another one.
const LATER: &str = r#"
#include <assert.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static void *forks(void *code)
{
    if (fork() == 0)
        _exit(*(int *)code);
    return code;
}
int main(void)
{
    int codes[2] = {1, 2}, sum = 0, status;
    pthread_t t;
    pthread_create(&t, NULL, forks, &codes[1]);
    forks(&codes[0]);
    while (wait(&status) > 0)
        sum = 10 * sum + WEXITSTATUS(status);
    return sum;
}
"#;

/// Private and shared memory, descriptors that are closed, children that are over, killed, or run another program.
#[test]
fn each_process_is_as_it_was() {
    let place = Place::new("together-each");
    place.write("several", SEVERAL);
    for (line, part) in [
        ("--search optimal --max-executions 400 --race off ./several works 2", 7),
        ("--search optimal --max-executions 400 ./several works 2", 7),
        ("--search random --max-executions 60 ./several works 4", 9),
        ("--search random --max-executions 60 --race off ./several exec 3", 9),
        // Who is killed may hold the mutex.
        ("--shrink 0 --search random --max-executions 60 --race off ./several kill 2", 9),
    ] {
        // Searches that draw lots begin at the first choice.
        let hows = if line.contains("optimal") { &["", "--marks 1", "--marks 3"][..] } else { &[""] };
        for how in hows {
            let run = place.both_as(how, line);
            let verdict = if line.contains("kill") { "deadlock" } else { "ok" };
            assert_eq!(run["verdict"].as_str(), Some(verdict), "{how} {line}: {run}");
            let all = number(&run, "executions");
            assert!(all > 20 && number(&run, "rolled_back") * 10 >= all * part, "{how} {line}: {run}");
            if !how.is_empty() {
                assert!(number(&run, "from_marks") * 2 > all, "{how} {line}: {run}");
            }
        }
    }
}

/// Daemons close all numbers that there are: what is kept of descriptors that are closed, for the next execution, is there for nobody.
#[test]
fn all_numbers_are_closed() {
    let place = Place::new("together-closes");
    place.write("closes", CLOSES);
    for how in ["", "--marks 1", "--marks 3"] {
        // 24 orders of the threads, and 6 in which parent and child close both ends of the pipe that is left.
        let run = place.both_as(how, "--search optimal ./closes");
        assert_eq!((run["verdict"].as_str(), number(&run, "executions")), (Some("ok"), 144), "{how}: {run}");
        assert!(number(&run, "rolled_back") >= 130, "{how}: {run}");
    }
}

/// The only process that goes back is over, and another one ends the execution: it goes back when it is told to go on.
#[test]
fn one_that_is_over_when_another_one_ends_the_execution() {
    let place = Place::new("together-later");
    place.write("later", LATER);
    for how in ["", "--marks 1"] {
        let run = place.both_as(how, "--search optimal --race off --max-executions 3000 ./later");
        let (all, back) = (number(&run, "executions"), number(&run, "rolled_back"));
        assert!(run["verdict"] == "ok" && all > 1000 && back * 10 > all * 9, "{how}: {run}");
        let different = run["outcomes"]["different"].as_u64();
        assert_eq!(different, Some(3), "{how}: {run}");
    }
}

/// Bugs in between, which are looked at by an execution that is forked.
#[test]
fn philosophers_over_system_v_semaphores() {
    let place = Place::new("together-philosophers");
    place.compile("philosophers_sysv");
    for line in [
        "--shrink 0 --search optimal ./philosophers_sysv 6",
        "--shrink 0 --search naive --race off ./philosophers_sysv 3",
    ] {
        for how in ["", "--marks 2"] {
            let run = place.both_as(how, line);
            assert_eq!(run["verdict"].as_str(), Some("deadlock"), "{how} {line}: {run}");
            assert!(number(&run, "rolled_back") * 10 > number(&run, "executions") * 8, "{how} {line}: {run}");
        }
    }
}

/// What processes write there is in the file: the executions are forked, and it is said why.
#[test]
fn a_file_that_is_mapped_is_not_put_back() {
    let place = Place::new("together-mapped");
    place.write("mapped", MAPPED);
    for how in ["", "--marks 1"] {
        let run = place.both_as(how, "--search optimal --race off --files real ./mapped");
        assert_eq!((run["verdict"].as_str(), number(&run, "rolled_back")), (Some("ok"), 0), "{run}");
        assert_eq!(run["not_rolled_back"], "it uses files or memory that processes share", "{run}");
    }
}

/// A process that waits to go back is killed by somebody else: what it was to do is done by another execution, or vsrun says that somebody has done that.
#[test]
fn one_that_is_killed_from_outside() {
    let place = Place::new("together-killed");
    place.write("several", SEVERAL);
    let line = "--search optimal --race off --max-executions 3000 ./several works 4";
    let (mut went_on, mut told) = (0, 0);
    for pause in [150, 170, 190, 210, 230] {
        let mut vsrun =
            place.command("rollback", line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("vsrun");
        let (since, mut killed) = (Instant::now(), false);
        while vsrun.try_wait().expect("vsrun").is_none() {
            if since.elapsed() > Duration::from_millis(pause) && !killed {
                killed = kill_one(&place.dir.join("several"));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let output = vsrun.wait_with_output().expect("vsrun");
        let code = output.status.code();
        let run = report(line, output);
        match run["verdict"].as_str() {
            Some("ok") => went_on += 1,
            // In the middle of an execution: no bug of the program's, and no failure of vsrun's.
            _ => {
                let kinds: Vec<_> =
                    run["bugs"].as_array().into_iter().flatten().map(|bug| bug["kind"].as_str()).collect();
                assert_eq!((code, kinds), (Some(2), vec![Some("environment")]), "{run}");
                told += 1;
            }
        }
    }
    assert_eq!(went_on + told, 5);
}

/// Kills the youngest process of that program.
fn kill_one(program: &Path) -> bool {
    let all = fs::read_dir("/proc").expect("/proc").flatten();
    let own = all.filter(|one| fs::read_link(one.path().join("exe")).is_ok_and(|exe| exe == program));
    let pid = own.filter_map(|one| one.file_name().to_string_lossy().parse::<i32>().ok()).max();
    pid.is_some_and(|pid| Command::new("kill").args(["-9", &pid.to_string()]).status().is_ok_and(|done| done.success()))
}
