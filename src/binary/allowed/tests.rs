//! Small programs are compiled in many ways; what their threads may do must come out exactly.

use std::collections::BTreeSet;

use vsrun_model::ObjKind;

use super::super::testing::TempDir;
use super::*;

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
fn text(program: &Program, exe: &std::path::Path, allowed: &AllowedOps) -> Vec<String> {
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

const PHILOSOPHERS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
pthread_mutex_t forks[5];
char space[1000];
pthread_mutex_t print = PTHREAD_MUTEX_INITIALIZER;
sem_t;
static void eat(int i) { pthread_mutex_lock(&print); printf("%d\n", i); pthread_mutex_unlock(&print); }
void *philosopher(void *arg) {
    int i = (int)(long)arg;
    pthread_mutex_lock(&forks[i]);
    pthread_mutex_lock(&forks[(i + 1) % 5]);
    eat(i);
    pthread_mutex_unlock(&forks[(i + 1) % 5]);
    pthread_mutex_unlock(&forks[i]);
    return memset(space, i, 10);
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
    for flags in FLAGS {
        let source = PHILOSOPHERS.replace("sem_t;\n", "");
        let [thread, main] = own("c", &source, flags, &["philosopher", "main"]).try_into().unwrap();
        assert_eq!(thread, ["mutex print", "mutex forks[]"], "{flags:?}");
        assert_eq!(main, ["create", "join", "exit"], "{flags:?}");
    }
}
