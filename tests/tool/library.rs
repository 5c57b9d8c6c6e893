//! Functions of libc of which it is not known what they do to memory: however many a program knows, the one that it calls is named.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use goblin::elf::Elf;
use vsrun_model::library::FUNCTIONS;

/// The file of libc that this program has.
fn libc() -> PathBuf {
    let maps = fs::read_to_string("/proc/self/maps").expect("maps");
    let path = maps.lines().filter_map(|line| line.split(' ').next_back()).find(|path| path.contains("/libc.so"));
    PathBuf::from(path.expect("libc"))
}

/// The functions that programs can be linked with, and that are in no row.
fn unknown() -> BTreeSet<String> {
    let bytes = fs::read(libc()).expect("libc");
    let elf = Elf::parse(&bytes).expect("libc");
    let (numbers, definitions) = (elf.versym.as_ref().expect("versions"), elf.verdef.as_ref().expect("versions"));
    let version = |name| elf.dynstrtab.get_at(name).unwrap_or_default();
    let names = definitions.iter().filter_map(|one| Some((one.vd_ndx, version(one.iter().next()?.vda_name))));
    let names: BTreeMap<u16, &str> = names.collect();
    let all = elf.dynsyms.iter().enumerate().filter(|(n, symbol)| {
        let number = numbers.get_at(*n).expect("a version");
        let is_public = names.get(&number.version()).is_some_and(|name| *name != "GLIBC_PRIVATE");
        symbol.is_function() && symbol.st_value != 0 && is_public && !number.is_hidden()
    });
    let all = all.filter_map(|(_, symbol)| elf.dynstrtab.get_at(symbol.st_name));
    all.filter(|name| FUNCTIONS.iter().all(|known| known.name != *name)).map(String::from).collect()
}

/// A program that has the addresses of all these functions, and of which two threads write to the same text by the last one.
fn program(functions: &[&str]) -> String {
    let mut text = String::from("#include <pthread.h>\n");
    for (n, name) in functions.iter().enumerate() {
        writeln!(text, "extern char f{n} __asm__(\"{name}\");").expect("a text");
    }
    text += "void *const volatile all[] = {";
    (0..functions.len()).for_each(|n| write!(text, "&f{n},").expect("a text"));
    text += "};\nstatic int text[16];\ntypedef void *function(void *, const void *, unsigned long);\n\
             static void *copies(void *from) { ((function *)all[sizeof all / sizeof all[0] - 1])(text, from, 3); return 0; }\n\
             int main(void) {\n    pthread_t a, b;\n    pthread_create(&a, 0, copies, L\"one\");\n    pthread_create(&b, 0, copies, L\"two\");\n    \
             pthread_join(a, 0);\n    pthread_join(b, 0);\n    return text[0] != 't';\n}\n";
    text
}

#[test]
fn of_many_functions_that_are_not_known_each_is_named() {
    const CALLED: &str = "wcsncpy";
    let all = unknown();
    assert!(all.contains(CALLED));
    let others = all.iter().map(String::as_str).filter(|name| *name != CALLED).take(700);
    let functions: Vec<&str> = others.chain([CALLED]).collect();
    assert_eq!(functions.len(), 701, "libc has fewer");
    let dir = std::env::temp_dir().join(format!("vsrun-library-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("a directory");
    let (source, binary) = (dir.join("many.c"), dir.join("many"));
    fs::write(&source, program(&functions)).expect("a file");
    let gcc =
        Command::new("gcc").args(["-O1", "-w", "-pthread", "-o"]).arg(&binary).arg(&source).output().expect("gcc");
    assert!(gcc.status.success(), "{}", String::from_utf8_lossy(&gcc.stderr));
    let said = explored(&dir, &binary);
    fs::remove_dir_all(&dir).expect("the directory");
    assert!(said.contains("NOT explored completely"), "{said}");
    assert!(said.contains("not watched: what libc's function wcsncpy does to memory"), "{said}");
}

fn explored(dir: &Path, binary: &Path) -> String {
    let run = Command::new(env!("CARGO_BIN_EXE_vsrun"))
        .args(["--race", "explore", "--time", "60", "--scenario-dir"])
        .arg(dir)
        .arg(binary)
        .output()
        .expect("vsrun runs");
    String::from_utf8_lossy(&run.stdout).into_owned()
}
