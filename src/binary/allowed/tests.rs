//! Small programs are compiled in many ways; what their threads may do must come out exactly.

use std::path::Path;

use super::*;
use crate::base::testing::TempDir;
use crate::search::allowed::{KindClass, Operand};

/// Ways to compile C. All but the last keep symbols.
const FLAGS: [&[&str]; 10] = [
    &["-O0"],
    &["-O2"],
    &["-O0", "-no-pie", "-fno-pie"],
    &["-O2", "-no-pie", "-fno-pie"],
    &["-O2", "-fno-plt"],
    &["-O0", "-fcf-protection=full"],
    &["-O2", "-fcf-protection=full"],
    &["-O2", "-Wl,-z,lazy", "-Wl,-z,norelro"],
    &["-O2", "-Wl,-z,noseparate-code"],
    &["-O3", "-g", "-rdynamic"],
];

/// The operations as text, objects by their names: `mutex lock`, `mutex forks[]`, `mutex any`, `join`.
fn text(program: &Program, exe: &Path, allowed: &AllowedOps) -> Vec<String> {
    let module = super::super::symbols::ElfModule::open(exe).unwrap();
    let base = program.images().all()[0].bias;
    let name = |at: u64| match module.symbols().object(at - base) {
        Some((name, 0)) => name,
        Some((name, offset)) => format!("{name}+{offset}"),
        None => format!("{at:#x}"),
    };
    let mut all: Vec<String> = allowed
        .ops
        .iter()
        .map(|(class, operand)| match (class, operand) {
            (KindClass::On(kind), Operand::Addr(at)) => format!("{} {}", kind.name(), name(*at)),
            (KindClass::On(kind), Operand::Range(start, _)) => format!("{} {}[]", kind.name(), name(*start)),
            (KindClass::On(kind), Operand::Any) => format!("{} any", kind.name()),
            (class, _) => class.to_string(),
        })
        .collect();
    if allowed.anything {
        all.push("anything".to_string());
    }
    all.sort();
    all
}

/// What the functions named `names` may do themselves, compiled with `flags`.
fn own(extension: &str, source: &str, flags: &[&str], names: &[&str]) -> Vec<Vec<String>> {
    let dir = TempDir::new();
    let exe = dir.compile("p", extension, source, flags);
    let program = Program::load(&exe, &[]).unwrap();
    let bound = |name: &&str| match *name {
        "main" => program.main_thread(),
        name => program.thread(program.function(name).unwrap_or_else(|| panic!("{name}"))),
    };
    names.iter().map(|name| text(&program, &exe, &bound(name).own)).collect()
}

const HEAD: &str = "
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/sem.h>
#include <sys/wait.h>
";

/// Checks that with all of [`FLAGS`] the threads that start with the named functions may do just what is given.
fn check(source: &str, expected: &[(&str, &[&str])]) {
    let source = format!("{HEAD}{source}");
    let names: Vec<&str> = expected.iter().map(|e| e.0).collect();
    for flags in FLAGS {
        for (found, (name, wanted)) in own("c", &source, flags, &names).iter().zip(expected) {
            let mut wanted = wanted.to_vec();
            wanted.sort_unstable();
            assert_eq!(*found, wanted, "{name} with {flags:?}");
        }
    }
}

const PHILOSOPHERS: &str = r#"
pthread_mutex_t forks[5];
pthread_mutex_t print = PTHREAD_MUTEX_INITIALIZER;
static void eat(int i) { pthread_mutex_lock(&print); printf("%d\n", i); pthread_mutex_unlock(&print); }
void *philosopher(void *arg) {
    int i = (int)(long)arg;
    pthread_mutex_lock(&forks[i]);
    pthread_mutex_lock(&forks[(i + 1) % 5]);
    eat(i);
    pthread_mutex_unlock(&forks[(i + 1) % 5]);
    pthread_mutex_unlock(&forks[i]);
    return 0;
}
int main(void) {
    pthread_t t[5];
    for (long i = 0; i < 5; i++) pthread_mutex_init(&forks[i], NULL);
    for (long i = 0; i < 5; i++) pthread_create(&t[i], NULL, philosopher, (void *)i);
    for (int i = 0; i < 5; i++) pthread_join(t[i], NULL);
}
"#;

#[test]
fn arrays_of_mutexes() {
    check(
        PHILOSOPHERS,
        &[("philosopher", &["mutex print", "mutex forks[]"]), ("main", &["create", "join", "exit_group"])],
    );
}

#[test]
fn what_created_threads_do_counts_for_their_creator() {
    let dir = TempDir::new();
    let exe = dir.compile("p", "c", &format!("{HEAD}{PHILOSOPHERS}"), &["-O2"]);
    let program = Program::load(&exe, &[]).unwrap();
    assert_eq!(
        text(&program, &exe, &program.of_main()),
        ["create", "exit_group", "join", "mutex forks[]", "mutex print"]
    );
    let start = program.function("philosopher").unwrap();
    assert_eq!(program.main_thread().creates.into_iter().collect::<Vec<_>>(), [start]);
    assert_eq!(program.of_function(start), program.thread(start).own);
    assert_eq!(program.of_function(0), program.of_function(start), "whatever address is taken");
}

#[test]
fn stripped_programs() {
    for flags in [&["-O2"][..], &["-O0"], &["-O2", "-no-pie", "-fno-pie"], &["-O2", "-fno-plt"]] {
        let dir = TempDir::new();
        let source = format!("{HEAD}{PHILOSOPHERS}");
        let whole = dir.compile("whole", "c", &source, flags);
        let whole = Program::load(&whole, &[]).unwrap();
        let stripped = dir.compile("p", "c", &source, &[flags, &["-s"]].concat());
        let stripped = Program::load(&stripped, &[]).unwrap();
        assert_eq!(stripped.main(), whole.main(), "{flags:?}");
        assert_eq!(stripped.main_thread(), whole.main_thread(), "{flags:?}");
        let start = *stripped.main_thread().creates.first().unwrap();
        // Where arrays end is lost; single variables are not.
        let any = |(class, operand): &(KindClass, Operand)| match operand {
            Operand::Range(..) => (*class, Operand::Any),
            _ => (*class, *operand),
        };
        let expected: Vec<_> = whole.thread(start).own.ops.iter().map(any).collect();
        let found = stripped.thread(start).own.ops;
        assert!(found.iter().any(|(_, o)| matches!(o, Operand::Addr(_))));
        assert_eq!(found, expected.into_iter().collect(), "{flags:?}");
    }
}

#[test]
fn arrays_side_by_side_cannot_be_told_apart() {
    let source = "
        struct { pthread_mutex_t a[2]; pthread_mutex_t b[2]; } both; int other[4];
        pthread_mutex_t single;
        void *f(void *i) { pthread_mutex_lock(&both.b[(long)i]); return 0; }
        int main(void) { f(0); }";
    check(source, &[("f", &["mutex both[]"])]);
}

#[test]
fn all_kinds_of_objects() {
    let source = "
        pthread_mutex_t m; pthread_cond_t c; pthread_rwlock_t r; pthread_spinlock_t s; pthread_barrier_t b; sem_t e;
        pthread_once_t o; sem_t inner; int word, set;
        static void first(void) { sem_post(&inner); }
        void *locks(void *x) { pthread_mutex_trylock(&m); pthread_cond_wait(&c, &m); pthread_rwlock_rdlock(&r); return 0; }
        void *others(void *x) { pthread_spin_lock(&s); pthread_barrier_wait(&b); sem_wait(&e); return 0; }
        void *once(void *x) { pthread_once(&o, first); return 0; }
        void *futex(void *x) { syscall(SYS_futex, &word, 128, 0, NULL, 0, 0); sched_yield(); return 0; }
        void *requeue(void *x) { syscall(SYS_futex, &word, 3, 0, NULL, &set, 0); return 0; }
        void *inherits(void *x) { syscall(SYS_futex, &word, 134, 0, NULL, 0, 0); return 0; }
        void *processes(void *x) { if (fork() == 0) _exit(1); wait(NULL); kill(getppid(), 9); usleep(1); return 0; }
        int main(void) { semop(set, NULL, 1); return 0; }";
    // Somebody sends signals, which may end the process, and semaphore operations may be undone when it ends: hence exit.
    check(
        source,
        &[
            ("locks", &["mutex m", "condition variable c", "rwlock r", "exit_group", "poll"]),
            ("others", &["spinlock s", "barrier b", "semaphore e", "exit_group"]),
            ("once", &["once control o", "semaphore inner", "exit_group"]),
            ("futex", &["futex word", "yield", "exit_group"]),
            ("requeue", &["futex word", "futex set", "exit_group"]),
            ("inherits", &["anything", "exit_group"]),
            ("processes", &["fork", "wait", "exit_group", "kill", "sleep"]),
            ("main", &["semaphore set any", "exit_group", "poll"]),
        ],
    );
}

#[test]
fn constants_reach_through_blocks_and_loops() {
    let source = "
        sem_t a, b, many[20]; sem_t *volatile hidden = &a; extern int turn; int turn;
        void *loop(void *x) { for (long i = 0; i < (long)x; i++) { sem_wait(&a); if (i & 1) sem_post(&a); } return 0; }
        void *either(void *x) { sem_post(x ? &a : &b); return 0; }
        void *through(void *x) { for (int i = 0; i < 20; i++) sem_post(&many[i]); return 0; }
        void *unknown(void *x) { sem_post(hidden); return 0; }
        int main(void) { return turn; }";
    check(
        source,
        &[
            ("loop", &["semaphore a"]),
            ("through", &["semaphore many[]"]),
            ("unknown", &["semaphore any"]),
            ("main", &["exit_group"]),
        ],
    );
    for flags in FLAGS.iter().filter(|f| !f.contains(&"-O0")) {
        let found = own("c", &format!("{HEAD}{source}"), flags, &["either"]).remove(0);
        assert_eq!(found, ["semaphore a", "semaphore b"], "{flags:?}");
    }
}

#[test]
fn tail_calls_and_parts_of_functions() {
    let source = "
        pthread_mutex_t m, n;
        __attribute__((noinline)) static int inner(int x) { if (__builtin_expect(x > 3, 0)) { pthread_mutex_lock(&n); abort(); } return x; }
        int tail(void *x) { inner((int)(long)x); return pthread_mutex_lock(&m); }
        int main(int c, char **v) { return inner(c); }";
    check(source, &[("tail", &["mutex m", "mutex n"]), ("main", &["mutex n", "exit_group"])]);
}

#[test]
fn switches_are_not_calls_through_pointers() {
    let source = "
        pthread_mutex_t m; sem_t e; volatile int v; void (*pointer)(void);
        static void other(void) { sem_post(&e); }
        int choose(int *x) {
            switch (*x) {
            case 0: v = 3; break; case 1: v = 9; break; case 2: pthread_mutex_lock(&m); break; case 3: v = 1; v = 5; break;
            case 4: pthread_mutex_unlock(&m); break; case 5: v = 77; break; case 6: v += 4; break; case 7: v = 8; return 9;
            case 8: __builtin_trap(); default: v = v * 3; abort();
            }
            return v;
        }
        void *call(void *x) { pointer(); return 0; }
        int main(void) { pointer = other; return 0; }";
    check(source, &[("choose", &["mutex m"]), ("call", &["semaphore e"]), ("main", &["exit_group"])]);
}

#[test]
fn labels_whose_addresses_are_taken() {
    let source = "
        pthread_mutex_t m, n;
        int run(const unsigned char *code) {
            static const void *const labels[] = { &&lock, &&unlock, &&stop };
            pthread_mutex_t *p = &n;
            goto *labels[*code++];
        lock: pthread_mutex_lock(&m); goto *labels[*code++];
        unlock: pthread_mutex_unlock(&m); goto *labels[*code++];
        stop: return 0;
        }
        int main(void) { return 0; }";
    // Either the table is understood or nothing is: then the object is lost, and what is called through pointers counts.
    let source = format!("{HEAD}{source}");
    for flags in FLAGS {
        let found = own("c", &source, flags, &["run"]).remove(0);
        assert!(found == ["mutex m"] || found == ["mutex any"], "{flags:?}: {found:?}");
    }
}

#[test]
fn callbacks_of_libc() {
    let source = "
        sem_t in_compare, in_other; int data[9]; void (*volatile keep)(void);
        static int compare(const void *a, const void *b) { sem_post(&in_compare); return *(int *)a - *(int *)b; }
        static void other(void) { sem_post(&in_other); }
        void *sort(void *x) { qsort(data, 9, 4, compare); return 0; }
        void *sort_with(void *x) { qsort(data, 9, 4, *(int (**)(const void *, const void *))x); return 0; }
        int main(void) { keep = other; sort(0); return 0; }";
    check(
        source,
        &[("sort", &["semaphore in_compare"]), ("sort_with", &["semaphore in_compare", "semaphore in_other"])],
    );
}

#[test]
fn what_comes_at_the_end_belongs_to_all() {
    let source = "
        sem_t at_exit, at_end, in_fini; pthread_key_t key;
        static void bye(void) { sem_post(&at_exit); }
        static void gone(void *x) { sem_post(&at_end); }
        __attribute__((destructor)) static void fini(void) { sem_post(&in_fini); }
        void *idle(void *x) { return 0; }
        int main(void) { atexit(bye); pthread_key_create(&key, gone); return 0; }";
    let source = format!("{HEAD}{source}");
    for flags in FLAGS {
        let mut found = own("c", &source, flags, &["idle"]).remove(0);
        // What atexit is given is not known inside it. Where the address of main is taken, it may be that, which calls atexit.
        found.retain(|op| op != "libc's own any");
        assert_eq!(found, ["semaphore at_end", "semaphore at_exit", "semaphore in_fini"], "{flags:?}");
    }
}

#[test]
fn signal_handlers_belong_to_all() {
    let source = "
        sem_t handled;
        static void handler(int x) { sem_post(&handled); }
        void *idle(void *x) { return 0; }
        int main(void) { struct sigaction a = { .sa_handler = handler }; sigaction(SIGUSR1, &a, NULL); return 0; }";
    check(source, &[("idle", &["semaphore handled"])]);
    let source = source.replace("sigaction(SIGUSR1, &a, NULL)", "signal(SIGUSR1, handler)");
    check(&source, &[("idle", &["semaphore handled"])]);
    let ignored = "void *idle(void *x) { return 0; } int main(void) { signal(SIGPIPE, SIG_IGN); return 0; }";
    check(ignored, &[("idle", &[])]);
}

#[test]
fn locks_of_libc_after_fork() {
    let source = "
        void *print(void *x) { puts(\"x\"); return 0; }
        void *compare(void *x) { return (void *)(long)strcmp(x, \"y\"); }
        int main(void) { pthread_t t; pthread_create(&t, NULL, print, NULL); fork(); return 0; }";
    check(source, &[("print", &["futex any", "stream any"]), ("compare", &[])]);
}

#[test]
fn system_call_instructions() {
    let source = "
        int word;
        void *wake(void *x) { long r; __asm__ volatile(\"syscall\" : \"=a\"(r) : \"0\"(202L), \"D\"(&word), \"S\"(1L), \"d\"(1L) : \"rcx\", \"r11\", \"memory\"); return (void *)r; }
        void *any(void *x) { long r; __asm__ volatile(\"syscall\" : \"=a\"(r) : \"0\"(*(long *)x) : \"rcx\", \"r11\", \"memory\"); return (void *)r; }
        int main(void) { return 0; }";
    let source = format!("{HEAD}{source}");
    for flags in FLAGS.iter().filter(|f| !f.contains(&"-O0")) {
        let found = own("c", &source, flags, &["wake", "any"]);
        assert_eq!(found, [vec!["futex word"], vec!["anything"]], "{flags:?}");
    }
}

#[test]
fn reasons_can_be_read() {
    let dir = TempDir::new();
    let source = format!(
        "{HEAD}
        void *run(void *x) {{ return (void *)(long)system(x); }}
        void (*volatile pointer)(void *);
        static void hidden(void *x) {{ system(x); }}
        void *indirect(void *x) {{ pointer(x); return 0; }}
        int main(void) {{ pointer = hidden; return 0; }}"
    );
    let exe = dir.compile("p", "c", &source, &["-O1", "-fno-optimize-sibling-calls"]);
    let program = Program::load(&exe, &[]).unwrap();
    let why = |name: &str| program.of_function(program.function(name).unwrap()).why;
    assert_eq!(why("run"), ["system, called in run, may do anything"]);
    assert_eq!(
        why("indirect"),
        ["system, called in hidden (which an indirect call in indirect may reach), may do anything"]
    );
}

/// `libhelp.so`, loaded at an address of its own, and a program that uses it.
#[test]
fn libraries_of_the_program_are_analysed_too() {
    const BASE: u64 = 0x7fff_f000_0000;
    for flags in [&["-O0"][..], &["-O2"], &["-O2", "-no-pie", "-fno-pie"], &["-O2", "-fno-plt"]] {
        let dir = TempDir::new();
        let library = format!(
            "{HEAD} sem_t shared, own[3]; static pthread_mutex_t m;
            void weak_hook(void); void help(int i) {{ sem_wait(&shared); sem_post(&own[i]); pthread_mutex_lock(&m); weak_hook(); }}"
        );
        let so = dir.compile("libhelp.so", "c", &library, &["-shared", "-fPIC", "-O2"]);
        let source = format!(
            "{HEAD} extern sem_t shared; sem_t mine; void help(int); void weak_hook(void) {{ sem_post(&mine); }}
            void *thread(void *x) {{ help((int)(long)x); sem_post(&shared); return 0; }}
            int main(void) {{ return 0; }}"
        );
        let link = ["-L.", "-lhelp", "-rdynamic"];
        let exe = dir.compile("p", "c", &source, &[flags, &link].concat());
        let program = Program::load(&exe, &[(so.clone(), BASE)]).unwrap();
        let bound = program.thread(program.function("thread").unwrap()).own;
        assert!(!bound.anything, "{:?}", bound.why);
        let module = super::super::symbols::ElfModule::open(&so).unwrap();
        let near = |at: u64| module.symbols().object(at.wrapping_sub(BASE)).map(|o| o.0);
        let names: Vec<String> = bound
            .ops
            .iter()
            .map(|(class, operand)| match operand {
                Operand::Addr(at) => format!("{class} {:?}", near(*at)),
                Operand::Range(at, _) => format!("{class} {:?}[]", near(*at)),
                Operand::Any | Operand::Sems(_) => format!("{class} any"),
            })
            .collect();
        // The program has its own copy of the variable, which the library uses too.
        let below = bound.ops.iter().filter(|(_, o)| matches!(o, Operand::Addr(at) if *at < BASE)).count();
        assert_eq!(below, 2, "{flags:?} {names:?}");
        assert!(names.contains(&"semaphore Some(\"own\")[]".to_string()), "{flags:?} {names:?}");
        assert!(names.contains(&"mutex Some(\"m\")".to_string()), "{flags:?} {names:?}");
        assert_eq!(bound.ops.len(), 4, "{flags:?} {names:?}");
        let without = Program::load(&exe, &[]).unwrap();
        let bound = without.thread(without.function("thread").unwrap()).own;
        assert_eq!(bound.why, ["help, called in thread, may do anything"]);
    }
}

const CXX: &str = r#"
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <semaphore.h>
std::mutex m; std::condition_variable c; bool ready; sem_t caught;
struct Shape { virtual ~Shape() {} virtual void draw() { sem_post(&caught); } };
Shape *volatile shape;
extern "C" void waiting() { std::unique_lock<std::mutex> l(m); c.wait(l, [] { return ready; }); std::cout << "ready\n"; }
extern "C" void notifying() { { std::lock_guard<std::mutex> l(m); ready = true; } c.notify_one(); }
extern "C" void throwing(int x) {
    try { std::vector<std::string> v; v.push_back(std::string(x, 'x')); if (x > 9) throw std::runtime_error("x"); }
    catch (std::exception &e) { sem_post(&caught); std::cerr << e.what(); }
}
extern "C" void virtual_call() { shape->draw(); }
int main() {
    std::thread a([] { waiting(); }), b([] { notifying(); });
    a.join(); b.join();
}
"#;

#[test]
fn cxx_programs() {
    for flags in [
        &["-O0"][..],
        &["-O2"],
        &["-O2", "-fno-plt"],
        &["-O2", "-no-pie", "-fno-pie"],
        &["-O1", "-fcf-protection=full"],
    ] {
        let names = ["throwing", "notifying", "main"];
        let dir = TempDir::new();
        let exe = dir.compile("p", "cc", CXX, flags);
        let program = Program::load(&exe, &[]).unwrap();
        let bound = |name: &&str| match *name {
            "main" => program.main_thread(),
            name => program.thread(program.function(name).unwrap()),
        };
        let all: Vec<ThreadBound> = names.iter().map(bound).collect();
        for (name, bound) in names.iter().zip(&all) {
            assert!(!bound.own.anything, "{name} {flags:?}: {:?}", bound.own.why);
        }
        assert_eq!(all[2].creates.len(), 2, "{flags:?}");
        // Where the library's own start routine is all that is known, both may be meant.
        let both: std::collections::BTreeSet<_> =
            all[2].creates.iter().flat_map(|body| program.thread(*body).own.ops).collect();
        assert_eq!(program.of_function(0x7fff_0000_0000).ops, both, "{flags:?}");
        if !flags.contains(&"-O0") {
            let text = |n: usize| text(&program, &exe, &all[n].own);
            assert!(text(0).contains(&"semaphore caught".to_string()), "{flags:?}: {:?}", text(0));
            assert!(text(1).iter().any(|t| t == "mutex m"), "{flags:?}: {:?}", text(1));
        }
    }
}
