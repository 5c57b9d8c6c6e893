//! Addresses that running programs print about themselves must be named right.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::*;
use crate::base::testing::TempDir;

/// A child that is ended also when a test fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/mman.h>
#include <pthread.h>
#include <dlfcn.h>
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long table[10000];
const char constant[64] = "c";
int work(int x) { return x * (int)table[x]; }
int main(void) {
    int local;
    void *anonymous = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("%p %p %p %p %p %p %p %p %p\n", (void *)work, (void *)&lock, (void *)&table[9999], (void *)constant,
           malloc(10), (void *)&local, anonymous, dlsym(RTLD_DEFAULT, "pthread_mutex_trylock"), (void *)pthread_mutex_lock);
    fflush(stdout);
    pause();
}
"#;

/// Starts the program and gives its map and the addresses it prints.
fn start(program: &Path) -> (Running, Modules, Vec<u64>) {
    let mut child = Running(Command::new(program).stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let addresses = line.split_whitespace().map(|a| hex(a.trim_start_matches("0x")).unwrap()).collect();
    let modules = Modules::of_process(child.0.id() as i32, &mut SymbolCache::new()).unwrap();
    (child, modules, addresses)
}

fn check(flags: &[&str]) {
    let dir = TempDir::new();
    let program = dir.compile("robot", "c", SOURCE, flags);
    let (_child, modules, at) = start(&program);
    assert_eq!(modules.locate(at[0] + 2).to_string(), "work+0x2 (robot)");
    assert_eq!(modules.object_name(at[1]).as_deref(), Some("lock"));
    assert_eq!(modules.describe(at[1] + 8), "lock+0x8");
    assert_eq!(modules.describe(at[2] + 1), format!("table+{:#x}", 9999 * 8 + 1));
    assert_eq!(modules.describe(at[3]), "constant");
    assert!(modules.describe(at[4]).starts_with("[heap]+0x"));
    assert!(modules.describe(at[5]).starts_with("[stack]+0x"));
    assert_eq!(modules.region(at[6]), "anonymous memory");
    assert_eq!(modules.locate(at[7]).to_string(), "pthread_mutex_trylock+0x0 (libc.so.6)");
    let through_plt = modules.locate(at[8]).function;
    assert_eq!(through_plt.as_deref(), Some("pthread_mutex_lock"));
    assert_eq!(modules.locate(8).to_string(), "0x8 (not mapped)");
    assert_eq!(modules.object_name(8), None);
    let main = modules.modules().iter().find(|m| m.name() == "robot").unwrap();
    assert_eq!(main.bias == 0, flags.contains(&"-no-pie"));
    let names: Vec<_> = modules.modules().iter().map(Module::name).collect();
    assert!(names.iter().any(|n| n.starts_with("ld-linux")) && names.len() == 3, "{names:?}");
}

#[test]
fn names_of_a_pie() {
    check(&["-O0"]);
}

#[test]
fn names_of_a_program_at_fixed_addresses() {
    check(&["-O0", "-no-pie", "-fno-pie"]);
}

/// Other layouts of segments: code and data in one file page, lazy binding, all in two segments.
#[test]
fn names_whatever_the_layout() {
    check(&["-O0", "-Wl,-z,noseparate-code"]);
    check(&["-O2", "-fno-inline", "-Wl,-z,norelro"]);
    check(&["-O0", "-no-pie", "-fno-pie", "-Wl,-z,noseparate-code", "-Wl,-z,lazy"]);
}

#[test]
fn a_stripped_program_is_located_by_its_own_addresses() {
    let dir = TempDir::new();
    let whole = dir.compile("whole", "c", SOURCE, &["-O0"]);
    let (_child, modules, at) = start(&whole);
    let inside = at[0] - modules.module(at[0]).unwrap().bias;
    let stripped = dir.compile("stripped", "c", SOURCE, &["-O0", "-s"]);
    let (_child, modules, at) = start(&stripped);
    assert_eq!(modules.locate(at[0]).to_string(), format!("stripped+{inside:#x}"));
    assert!(modules.describe(at[1]).starts_with("stripped+0x"));
    assert_eq!(modules.region(at[1]), "stripped");
}

#[test]
fn lines_of_maps() {
    let line = b"7f00-7f10 r-xp 00001000 fe:00 12   /a dir/x\\012y (deleted)";
    let mapping = Mapping::parse(line).unwrap();
    assert_eq!((mapping.start, mapping.end, mapping.offset), (0x7f00, 0x7f10, 0x1000));
    assert_eq!(mapping.path.as_deref(), Some(Path::new("/a dir/x\ny (deleted)")));
    assert!(mapping.is_executable() && mapping.contains(0x7f0f) && !mapping.contains(0x7f10));
    assert_eq!(Mapping::parse(b"7f00-7f10 rw-p 00000000 00:00 0 ").unwrap().path, None);
    for bad in [&b""[..], b"x", b"7f00 r-xp", b"7f00-7f10 r-xp", b"zz-7f10 r-xp 0 0 0"] {
        assert_eq!(Mapping::parse(bad), None);
    }
    let text = b"7fc5-7fc7 r-xp 00000000 00:00 0      [vdso]\n7fc9-7fca rw-p 00000000 00:00 0 \nnot a mapping\n";
    let maps = Mapping::parse_all(text);
    assert_eq!((maps[0].is_executable(), maps[0].file()), (true, None));
    assert_eq!((maps[1].is_executable(), maps[1].file(), maps.len()), (false, None, 2));
}

#[test]
fn a_return_address_belongs_to_its_call() {
    let dir = TempDir::new();
    let program = dir.compile("robot", "c", SOURCE, &["-O0"]);
    let (_child, modules, at) = start(&program);
    let next = modules.locate_return(at[0] + 5);
    assert_eq!((next.to_string(), next.address), ("work+0x5 (robot)".to_string(), at[0] + 5));
    assert_ne!(modules.locate_return(at[0]).function.as_deref(), Some("work"));
}

#[test]
fn files_that_are_only_mapped_are_no_modules() {
    let maps = format!(
        "10000-11000 r--p 00000000 00:00 1 {0}\n20000-21000 rw-s 00000000 00:00 2 /dev/shm/x\n30000-31000 r-xp 00000000 00:00 0 [vdso]\n",
        "/bin/true"
    );
    let modules = Modules::parse(maps.as_bytes(), &mut SymbolCache::new());
    assert!(modules.modules().is_empty());
    assert_eq!(modules.region(0x10010), "true");
    assert_eq!(modules.describe(0x20010), "x+0x10");
    assert_eq!(modules.locate(0x30010).to_string(), "[vdso]+0x10");
    assert_eq!(modules.mappings().len(), 3);
}
