use std::process::Command;
use std::time::{Duration, SystemTime};

use super::*;
use crate::base::testing::TempDir;
use crate::binary::elf::ElfFile;
use crate::binary::symbols::ElfModule;

/// Line 2 is inlined into line 4, and that into nothing.
const SOURCE: &str = "volatile int counter;
static inline __attribute__((always_inline)) void add(int n) { counter += n; }
__attribute__((noipa)) void worker(int n) {
    add(n);
}
int main(void) { worker(3); return 0; }
";

struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Place {
        Place { dir: TempDir::new() }
    }

    fn compile(&self, flags: &[&str]) -> PathBuf {
        self.dir.compile("p", "c", SOURCE, flags)
    }

    fn stores(&self) -> Stores {
        Stores { debug: self.dir.path().join("debug"), fetched: Some(self.dir.path().join("fetched")) }
    }

    fn run(&self, command: &str, arguments: &[&str]) {
        let done = Command::new(command).args(arguments).current_dir(self.dir.path()).output().unwrap();
        assert!(done.status.success(), "{command}: {}", String::from_utf8_lossy(&done.stderr));
    }

    /// Makes `bare` without debug information, of which `how` has it.
    fn strip(&self, how: &str) -> PathBuf {
        let parent = self.dir.path().join(how);
        std::fs::create_dir_all(parent.parent().unwrap()).unwrap();
        self.run("objcopy", &["--only-keep-debug", "p", how]);
        self.run("objcopy", &["--strip-all", "p", "bare"]);
        std::fs::remove_file(self.dir.path().join("p")).unwrap();
        self.dir.path().join("bare")
    }
}

/// Where in `worker` of the file at `path` the counter changes.
fn places(path: &Path, worker: (u64, u64), stores: &Stores) -> Vec<String> {
    let Some(mut lines) = Lines::open(path, stores) else { return Vec::new() };
    let of = |at: u64| lines.at(at).iter().map(ToString::to_string).collect::<Vec<_>>().join(", inlined in ");
    let mut all: Vec<String> = (worker.0..worker.0 + worker.1).map(of).collect();
    all.dedup();
    all
}

fn worker(path: &Path) -> (u64, u64) {
    ElfModule::open(path).unwrap().symbols().functions_named("worker")[0]
}

const INLINED: &str = "add p.src.c:2, inlined in worker p.src.c:4";

#[test]
fn lines_of_each_format() {
    let all: [&[&str]; 8] = [
        &["-g", "-O2"],
        &["-gdwarf-4", "-O2"],
        &["-gdwarf-5", "-O2", "-fdebug-types-section"],
        &["-g", "-gz=zlib", "-O2"],
        &["-gdwarf-4", "-gsplit-dwarf", "-O2"],
        &["-gdwarf-5", "-gsplit-dwarf", "-O2"],
        &["-g", "-O2", "-no-pie"],
        &["-g", "-O2", "-flto"],
    ];
    for flags in all {
        let place = Place::new();
        let path = place.compile(flags);
        let found = places(&path, worker(&path), &place.stores());
        assert!(found.contains(&INLINED.to_string()), "{flags:?}: {found:?}");
        assert!(found.iter().any(|at| at.starts_with("worker p.src.c:")), "{flags:?}: {found:?}");
    }
    let place = Place::new();
    let path = place.compile(&["-O2"]);
    assert_eq!(places(&path, worker(&path), &place.stores()), [""; 0]);
}

#[test]
fn sections_may_be_compressed() {
    const COMPRESSED: u64 = 1 << 11;
    for method in ["zlib", "zstd"] {
        let place = Place::new();
        let path = place.compile(&["-g", "-O2"]);
        let where_it_is = worker(&path);
        place.run("objcopy", &[&format!("--compress-debug-sections={method}"), "p"]);
        let info = ElfFile::open(&path).unwrap().section(b".debug_info").unwrap();
        assert!(info.sh_flags & COMPRESSED != 0, "{method}: it is too small to be compressed");
        assert!(places(&path, where_it_is, &place.stores()).contains(&INLINED.to_string()), "{method}");
        // A size that is not that of the content.
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[info.sh_offset as usize + 8] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(places(&path, where_it_is, &place.stores()), [""; 0], "{method}");
    }
}

/// Information that is nested deeper than code ever is would be followed by recursion.
#[test]
fn what_is_nested_too_deep_is_refused() {
    let nested = |depth: usize| {
        let opened: String = (0..depth).map(|n| format!("{{ volatile int v{n} = {n};\n")).collect();
        format!(
            "__attribute__((noipa)) void worker(void) {{\n{opened}{}}}\nint main(void) {{ worker(); return 0; }}\n",
            "}".repeat(depth)
        )
    };
    let dir = TempDir::new();
    let known = |depth: usize| {
        let path = dir.compile(&format!("p{depth}"), "c", &nested(depth), &["-g", "-O0"]);
        !places(&path, worker(&path), &Stores { debug: "/nowhere".into(), fetched: None }).is_empty()
    };
    assert!(known(400));
    assert!(!known(600));
}

#[test]
fn text_of_the_source_unless_it_is_younger() {
    let place = Place::new();
    let path = place.compile(&["-g", "-O2"]);
    let (start, size) = worker(&path);
    let text = || {
        let mut lines = Lines::open(&path, &place.stores()).unwrap();
        let all = (start..start + size).filter_map(|at| lines.at(at).into_iter().nth(1)).next().unwrap();
        assert_eq!((all.line, all.function.as_str()), (4, "worker"));
        assert_eq!(Path::new(&all.file), place.dir.path().join("p.src.c"));
        all.text
    };
    assert_eq!(text().as_deref(), Some("add(n);"));
    let source = File::options().append(true).open(place.dir.path().join("p.src.c")).unwrap();
    source.set_modified(SystemTime::now() + Duration::from_secs(60)).unwrap();
    assert_eq!(text(), None);
    std::fs::remove_file(place.dir.path().join("p.src.c")).unwrap();
    assert_eq!(text(), None);
}

// Of DWARF 4: the dwp of binutils 2.40 crashes at DWARF 5.
#[test]
fn split_information_is_found_in_a_package() {
    let place = Place::new();
    let path = place.compile(&["-gdwarf-4", "-gsplit-dwarf", "-O2"]);
    let where_it_is = worker(&path);
    place.run("dwp", &["-e", "p", "-o", "p.dwp"]);
    let parts = std::fs::read_dir(place.dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let parts: Vec<_> = parts.filter(|path| path.extension().is_some_and(|e| e == "dwo")).collect();
    assert!(!parts.is_empty());
    parts.iter().for_each(|path| std::fs::remove_file(path).unwrap());
    assert!(places(&path, where_it_is, &place.stores()).contains(&INLINED.to_string()));
    std::fs::remove_file(place.dir.path().join("p.dwp")).unwrap();
    let left: Vec<_> = places(&path, where_it_is, &place.stores());
    assert!(!left.contains(&INLINED.to_string()), "the functions are in the parts");
    assert!(left.contains(&"p.src.c:2".to_string()), "{left:?}");
}

#[test]
fn separate_files_are_found() {
    for how in ["debug/.build-id/ab/cdef.debug", "fetched/abcdef/debuginfo"] {
        let place = Place::new();
        let path = place.compile(&["-g", "-O2", "-Wl,--build-id=0xabcdef"]);
        let where_it_is = worker(&path);
        let bare = place.strip(how);
        assert!(places(&bare, where_it_is, &place.stores()).contains(&INLINED.to_string()), "{how}");
        let nowhere = Stores { debug: "/nowhere".into(), fetched: None };
        assert_eq!(places(&bare, where_it_is, &nowhere), [""; 0]);
    }
    for how in ["p.debug", ".debug/p.debug"] {
        let place = Place::new();
        let path = place.compile(&["-g", "-O2", "-Wl,--build-id=none"]);
        let where_it_is = worker(&path);
        let bare = place.strip(how);
        place.run("objcopy", &[&format!("--add-gnu-debuglink={how}"), "bare"]);
        assert!(ElfFile::open(&bare).unwrap().build_id().is_none());
        assert!(places(&bare, where_it_is, &place.stores()).contains(&INLINED.to_string()), "{how}");
        // Another file of the same name.
        let debug = place.dir.path().join(how);
        let mut bytes = std::fs::read(&debug).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&debug, bytes).unwrap();
        assert_eq!(places(&bare, where_it_is, &place.stores()), [""; 0], "the CRC is not that of the file");
    }
}

#[test]
fn names_of_templates() {
    let source = "template <typename T> struct Box { T value; __attribute__((noinline)) T take() { return value; } };
volatile int n;
int main() { Box<int> box{n}; return box.take(); }
";
    let dir = TempDir::new();
    let path = dir.compile("t", "cc", source, &["-g", "-O1"]);
    let take = ElfModule::open(&path).unwrap().symbols().functions_named("Box<int>::take()")[0];
    let all = places(&path, take, &Stores { debug: "/nowhere".into(), fetched: None });
    assert_eq!(all, ["Box<int>::take() t.src.cc:1"]);
}

#[test]
fn files_by_the_directory_of_the_compilation() {
    assert_eq!(short("/home/u/p/src/a.c", "/home/u/p"), "src/a.c");
    assert_eq!(short("/home/u/p/./a.c", "/home/u/p"), "a.c");
    assert_eq!(short("/home/u/p/build/../../src/a.c", "/home/u/p/build"), "src/a.c");
    assert_eq!(short("/home/u/p2/a.c", "/home/u/p"), "a.c");
    assert_eq!(short("/usr/include/c++/12/mutex", ""), "mutex");
    assert_eq!(short("a.c", "/home"), "a.c");
}

/// What is damaged gives other lines or none, and nothing else happens.
#[test]
fn damaged_information_does_no_harm() {
    let place = Place::new();
    let path = place.compile(&["-g", "-O2", "-gdwarf-5"]);
    let where_it_is = worker(&path);
    let whole = std::fs::read(&path).unwrap();
    let elf = ElfFile::open(&path).unwrap();
    let mut random = 1u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    let names: [&[u8]; 6] =
        [b".debug_info", b".debug_abbrev", b".debug_line", b".debug_line_str", b".debug_rnglists", b".debug_aranges"];
    for name in names {
        let Some(section) = elf.section(name) else { continue };
        let range = section.sh_offset as usize..(section.sh_offset + section.sh_size) as usize;
        for round in 0..120 {
            let mut bytes = whole.clone();
            for _ in 0..1 + round % 4 {
                let at = range.start + next(range.len());
                match round % 3 {
                    0 => bytes[at] ^= 1 << next(8),
                    1 => bytes[at] = [0, 0x7f, 0x80, 0xff][next(4)],
                    _ => {
                        let (end, value) = ((at + next(64)).min(range.end), bytes[at]);
                        bytes[at..end].fill(value);
                    }
                }
            }
            let damaged = place.dir.file("damaged", &bytes, 0o755);
            places(&damaged, where_it_is, &place.stores());
        }
    }
}
