//! What the root of executions gives up of its memory (`src/runtime/pages.rs`): executions find less of libc mapped when they begin, and
//! nothing else is different for them. With the vsrun binary.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Says how many pages of libc's code are mapped when main begins, and how many mappings there are; a thread, a lock.
const PROGRAM: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *lock(void *a) { pthread_mutex_lock(&m); pthread_mutex_unlock(&m); return a; }
static int pages(void *place) {
    int n = 0, fd = open("/proc/self/pagemap", O_RDONLY);
    uintptr_t first = (uintptr_t)place / 4096 - 64;
    for (uintptr_t page = first; page < first + 128; page++) {
        uint64_t entry = 0;
        n += pread(fd, &entry, 8, page * 8) == 8 && entry >> 63;
    }
    close(fd);
    return n;
}
int main(int argc, char **argv) {
    int mapped = pages((void *)qsort);
    pthread_t t[2];
    for (int i = 0; i < 2; i++) pthread_create(t + i, 0, lock, 0);
    lock(0);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    int lines = 0;
    if (argc > 1) {
        char line[512];
        FILE *maps = fopen("/proc/self/maps", "r");
        while (fgets(line, sizeof line, maps)) lines++;
        fclose(maps);
    } else {
        printf("%d\n", mapped);
    }
    return lines > 100;
}
"#;

struct Place(PathBuf);

impl Place {
    fn new(test: &str) -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-pages-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary directory");
        fs::write(dir.join("program.c"), PROGRAM).expect("a file");
        let mut gcc = Command::new("gcc");
        gcc.args(["-O1", "-o", "program", "program.c", "-lpthread"]).current_dir(&dir);
        assert!(gcc.status().expect("gcc").success());
        Place(dir)
    }

    /// Status of a random search of so many executions, and what the last one printed.
    fn run(&self, executions: &str, more: &[&str]) -> (i32, String) {
        let mut command = Command::new("timeout");
        command.arg("120").arg(env!("CARGO_BIN_EXE_vsrun")).args(["-j", "1", "--search", "random", "--fail-on-exit"]);
        command.args(["--output", "printed", "--max-executions", executions, "./program"]).args(more);
        let output = command.current_dir(&self.0).stdin(Stdio::null()).output().expect("vsrun");
        let printed = fs::read_to_string(self.0.join("printed")).unwrap_or_default();
        (output.status.code().unwrap_or(-1), printed)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn what_executions_do_not_use_is_given_up() {
    let place = Place::new("kept");
    let mapped = |executions| {
        let (status, printed) = place.run(executions, &[]);
        assert_eq!(status, 3, "{printed}");
        printed.trim().parse::<u32>().expect("a number")
    };
    // Of 128 pages; all that the root has mapped, until executions have told what they use. It was less than 64 while libc's table of symbols was not
    // written to (`sys::names` in the shim); of 66 nobody has looked which of them could still be given up.
    let (before, after) = (mapped("5"), mapped("70"));
    assert!(before > 40 && after < before / 4 * 3, "{before} pages, then {after}");
}

#[test]
fn who_looks_at_its_mappings_finds_them_whole() {
    let (status, _) = Place::new("whole").run("70", &["look"]);
    assert_eq!(status, 3);
}
