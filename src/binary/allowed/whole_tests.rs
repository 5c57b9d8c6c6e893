//! Whole programs: those of `c-tests`, large ones of this machine, damaged ones.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::super::elf::ElfFile;
use super::*;
use crate::base::testing::TempDir;

/// The libraries that a program needs and their made-up load addresses, found by name in the usual places.
fn libraries(exe: &Path) -> Vec<(PathBuf, u64)> {
    let directories = ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/usr/local/lib"];
    let mut found: Vec<(PathBuf, u64)> = Vec::new();
    let mut open = vec![exe.to_path_buf()];
    while let Some(path) = open.pop() {
        let Ok(Some(dynamic)) = ElfFile::open(&path).and_then(|elf| elf.dynamic()) else { continue };
        let own = dynamic.runpath.or(dynamic.rpath).unwrap_or_default();
        for needed in dynamic.needed {
            let at = directories.iter().copied().chain(own.split(':')).map(|d| Path::new(d).join(&needed));
            let Some(at) = at.filter(|p| p.is_file()).map(|p| p.canonicalize().unwrap()).next() else { continue };
            if !found.iter().any(|(known, _)| *known == at) {
                found.push((at.clone(), 0x7f00_0000_0000 + 0x1000_0000 * found.len() as u64));
                open.push(at);
            }
        }
    }
    found
}

/// All of `c-tests`: nothing fails, and what is not known is said. Run with `--nocapture` to see the bounds.
#[test]
fn c_tests() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("c-tests");
    let mut sources: Vec<PathBuf> = std::fs::read_dir(&directory).unwrap().map(|e| e.unwrap().path()).collect();
    sources.retain(|p| p.extension().is_some_and(|e| e == "c" || e == "cc"));
    sources.sort();
    let dir = TempDir::new();
    let (mut exact, mut all) = (0, 0);
    for source in sources {
        let extension = source.extension().unwrap().to_str().unwrap();
        let includes =
            [format!("-I{}", directory.display()), format!("-I{}", directory.join("../shim/include").display())];
        let mut flags = vec!["-O1", "-w", "-pthread", &includes[0], &includes[1]];
        flags.extend((extension == "cc").then_some("-std=c++20"));
        let name = source.file_stem().unwrap().to_str().unwrap();
        let exe = dir.compile(name, extension, &std::fs::read_to_string(&source).unwrap(), &flags);
        let program = Program::load(&exe, &libraries(&exe)).unwrap_or_else(|e| panic!("{name}: {e}"));
        let main = program.main_thread();
        for (thread, bound) in
            std::iter::once((program.main(), main.clone())).chain(main.creates.iter().map(|t| (*t, program.thread(*t))))
        {
            all += 1;
            exact += usize::from(!bound.own.anything);
            assert_eq!(bound.own.anything, !bound.own.why.is_empty(), "{name}");
            println!("{name} {}: {}", program.function_name(thread), printed(&bound.own));
        }
    }
    println!("{exact} of {all} threads have a bound");
    // 559 of 661: programs about watched memory call many functions of which no bound is known.
    assert!(all > 100 && exact * 100 >= all * 84, "{exact} of {all}");
}

fn printed(allowed: &AllowedOps) -> String {
    if allowed.anything {
        return format!("anything: {}", allowed.why.join("; "));
    }
    let ops: Vec<String> = allowed.ops.iter().map(|(class, operand)| format!("{class} {operand:?}")).collect();
    ops.join(", ")
}

/// Large programs, if they are here. Run with `--nocapture` to see how long they take.
#[test]
fn large_programs() {
    for exe in [
        "/usr/bin/gdb",
        "/usr/bin/python3",
        "/usr/bin/cmake",
        "/usr/bin/bash",
        "/usr/bin/pigz",
        "/usr/bin/xz",
        "/usr/bin/zstd",
    ] {
        let Ok(exe) = Path::new(exe).canonicalize() else { continue };
        let libraries = libraries(&exe);
        let start = Instant::now();
        match Program::load(&exe, &libraries) {
            Ok(program) => {
                let loaded = start.elapsed();
                let bound = program.of_main();
                println!(
                    "{}: {} files, {loaded:?} + {:?}; {}",
                    exe.display(),
                    libraries.len() + 1,
                    start.elapsed() - loaded,
                    printed(&bound)
                );
            }
            Err(e) => println!("{}: {e}", exe.display()),
        }
    }
}

const SOURCE: &str = "
    #include <pthread.h>
    #include <stdio.h>
    #include <stdlib.h>
    pthread_mutex_t locks[4]; int order[4]; void (*volatile pointer)(int);
    static int compare(const void *a, const void *b) { return *(int *)a - *(int *)b; }
    static void use(int n) {
        switch (n) {
        case 0: puts(\"a\"); break; case 1: exit(1); case 2: pthread_mutex_lock(&locks[n]); break; case 3: puts(\"b\"); break;
        case 4: puts(\"c\"); break; case 5: puts(\"d\"); abort(); case 6: puts(\"e\"); break;
        }
    }
    void *run(void *x) { qsort(order, 4, 4, compare); pointer = use; pointer((int)(long)x); return 0; }
    int main(int c, char **v) { pthread_t t; pthread_create(&t, NULL, run, v); use(c); return pthread_join(t, NULL); }";

/// Analyses a damaged file; whatever comes out, it is a value.
fn survives(dir: &TempDir, bytes: &[u8]) -> bool {
    let exe = dir.file("damaged", bytes, 0o755);
    match Program::load(&exe, &[(exe.clone(), 0x7000_0000_0000)]) {
        Ok(program) => {
            let bound = program.of_main();
            let _ = (program.of_function(0), program.of_function(program.main() + 1), program.of_function(u64::MAX));
            assert_eq!(bound.anything, !bound.why.is_empty());
            true
        }
        Err(e) => {
            assert!(!e.to_string().is_empty());
            false
        }
    }
}

#[test]
fn damaged_files_do_not_panic() {
    for flags in [&["-O2"][..], &["-O0", "-no-pie", "-fno-pie", "-s"], &["-O2", "-Wl,-z,pack-relative-relocs"]] {
        let dir = TempDir::new();
        let whole = std::fs::read(dir.compile("p", "c", SOURCE, flags)).unwrap();
        assert!(survives(&dir, &whole));
        for len in (0..whole.len()).step_by(211) {
            survives(&dir, &whole[..len]);
        }
        // The headers byte by byte, the rest here and there; with ones, zeros and numbers that are a little off.
        for (n, at) in (0..1200).chain((1200..whole.len() - 8).step_by(37)).enumerate() {
            let mut bytes = whole.clone();
            match n % 4 {
                0 => bytes[at..at + 4].fill(0xff),
                1 => bytes[at..at + 8].fill(0),
                2 => bytes[at] ^= 1 << (n / 4 % 8),
                _ => bytes[at] = bytes[at].wrapping_add(1),
            }
            survives(&dir, &bytes);
        }
    }
}

/// Code replaced by noise: decoding goes anywhere, and ends.
#[test]
fn noise_as_code() {
    let dir = TempDir::new();
    let whole = std::fs::read(dir.compile("p", "c", SOURCE, &["-O2"])).unwrap();
    let mut noise = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..200 {
        let mut bytes = whole.clone();
        for byte in &mut bytes[0x1000..0x1300] {
            noise = noise.wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(23) ^ 0x94d0_49bb_1331_11eb;
            if noise >> 60 != 0 {
                *byte = (noise >> 32) as u8;
            }
        }
        survives(&dir, &bytes);
    }
}
