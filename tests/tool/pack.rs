//! `vsrun pack`: what runs from a pack is what runs on the machine, byte by byte; what is damaged or hostile is refused; what the machine forbids is said.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{symlink, MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A directory with a program in `made`, and others to run it from.
pub(super) struct Place {
    pub dir: PathBuf,
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Two threads that lock in a circle, in a library of the program's own; how many there are stands in a file. It writes one, too.
const LIBRARY: &str = r#"
#include <pthread.h>
pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
void both(pthread_mutex_t *x, pthread_mutex_t *y) {
    pthread_mutex_lock(x);
    pthread_mutex_lock(y);
    pthread_mutex_unlock(y);
    pthread_mutex_unlock(x);
}
"#;
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
extern pthread_mutex_t a, b;
void both(pthread_mutex_t *x, pthread_mutex_t *y);
static void *one(void *n) { both(&a, &b); return n; }
static void *two(void *n) { both(&b, &a); return n; }
int main(void) {
    char line[64] = "";
    FILE *f = fopen("conf", "r");
    if (!f || !fgets(line, sizeof line, f)) return 3;
    fclose(f);
    FILE *log = fopen("log", "w");
    if (!log || fprintf(log, "begun\n") < 0) return 4;
    fclose(log);
    pthread_t s, t;
    pthread_create(&s, 0, one, 0);
    if (atoi(line) > 1) pthread_create(&t, 0, two, 0);
    pthread_join(s, 0);
    if (atoi(line) > 1) pthread_join(t, 0);
    return 0;
}
"#;

impl Place {
    pub fn new(test: &str) -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-pack-{test}-{}", std::process::id()));
        for name in ["made", "here", "there", "home"] {
            fs::create_dir_all(dir.join(name)).expect("a temporary directory");
            // Others run packs, too.
            fs::set_permissions(dir.join(name), Permissions::from_mode(0o777)).expect("chmod");
        }
        Place { dir }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("written");
    }

    pub fn compile(&self, compiler: &str, arguments: &[&str]) {
        let done = Command::new(compiler).args(arguments).current_dir(self.path("made")).status();
        assert!(done.expect(compiler).success());
    }

    /// The program with its library and its file.
    pub fn with_program(test: &str) -> Place {
        let place = Place::new(test);
        place.write("made/lib.c", LIBRARY);
        place.write("made/program.c", PROGRAM);
        place.write("made/conf", "2\n");
        place.compile("gcc", &["-O1", "-shared", "-fPIC", "-o", "libboth.so", "lib.c"]);
        place
            .compile("gcc", &["-O1", "-o", "program", "program.c", "-L.", "-lboth", "-Wl,-rpath,$ORIGIN", "-lpthread"]);
        place
    }

    /// Status and all that a program says in that directory, in an environment that is always the same.
    pub fn run(&self, cwd: &str, program: &Path, arguments: &[&str]) -> (Option<i32>, String) {
        ended(self.command(cwd, program, arguments))
    }

    pub fn command(&self, cwd: &str, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.path(cwd)).stdin(Stdio::null()).env_clear();
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env("HOME", self.path("home")).env("PATH", path).env("SECRET", "not to be told");
        command
    }

    pub fn vsrun(&self, cwd: &str, arguments: &[&str]) -> (Option<i32>, String) {
        self.run(cwd, Path::new(env!("CARGO_BIN_EXE_vsrun")), arguments)
    }

    /// Packs what these words say.
    pub fn pack(&self, words: &[&str]) {
        let (status, said) = self.vsrun("made", &[&["pack", "-o", "../pack", "--look", "500ms"], words].concat());
        assert!(status == Some(0) && said.starts_with("packed: "), "{status:?} {said}");
    }

    pub fn packed(&self, cwd: &str, arguments: &[&str]) -> (Option<i32>, String) {
        self.run(cwd, &self.path("pack/run"), arguments)
    }

    /// The pack can be run here. Otherwise it is said why not, and what to do.
    pub fn runs_here(&self) -> bool {
        let (status, said) = self.packed("here", &["show", "none"]);
        let forbidden = status == Some(2) && said.contains(FORBIDDEN) && said.contains("allow user namespaces");
        assert!(forbidden || said.contains("none: cannot read the scenario"), "{status:?} {said}");
        if forbidden {
            eprintln!("left out, since this machine forbids packs: {said}");
        }
        !forbidden
    }

    pub fn json(&self) -> String {
        fs::read_to_string(self.path("pack/pack.json")).expect("pack.json")
    }
}

const FORBIDDEN: &str = "a pack runs in a root file system of its own, and this machine lets nobody but root make one";
pub(super) const SCENARIO: &str = "program-deadlock-1.vsrun.json";
pub(super) const SAME: &str = "the same bug, by the same steps";

pub(super) fn ended(mut command: Command) -> (Option<i32>, String) {
    let done = command.output().expect("it is started");
    let said = [done.stdout, done.stderr].concat();
    (done.status.code(), String::from_utf8_lossy(&said).into_owned())
}

/// The line of a report that counts, without times.
pub(super) fn counts(said: &str) -> &str {
    let line = said
        .lines()
        .find(|line| line.contains(" transitions, deepest "))
        .unwrap_or_else(|| panic!("no counts: {said}"));
    line.split(", ")
        .next()
        .map_or(line, |_| &line[..line.find(" s, ").and_then(|at| line[..at].rfind(", ")).unwrap_or(line.len())])
}

#[test]
fn what_runs_from_a_pack_is_what_ran_on_the_machine_and_scenarios_go_both_ways() {
    let place = Place::with_program("same");
    let (status, native) = place.vsrun("made", &["--keep-going", "--scenario-dir", "../here", "-j", "1", "./program"]);
    assert!(status == Some(1) && native.starts_with("DEADLOCK: "), "{native}");
    fs::rename(place.path("here").join(SCENARIO), place.path("native.json")).expect("the scenario");
    place.pack(&["--keep-going", "-j", "1", "./program"]);
    assert!(!place.path("made/log").exists(), "a look changes nothing");
    if !place.runs_here() {
        return;
    }
    // Nothing of it is left on the machine, and the pack moves.
    fs::rename(place.path("made"), place.path("kept")).expect("moved");
    fs::create_dir(place.path("else")).expect("a directory");
    fs::rename(place.path("pack"), place.path("else/pack")).expect("moved");
    symlink("else/pack", place.path("pack")).expect("a link");
    let (status, said) = place.packed("here", &[]);
    assert_eq!(status, Some(1), "{said}");
    assert_eq!(counts(&said), counts(&native));
    assert!(said.contains("/else/pack/run replay ./program-deadlock-1.vsrun.json"), "{said}");
    let scenario = |place: &Place, name: &str| fs::read_to_string(place.path(name)).expect("a scenario");
    let without_environment = |text: String| -> String {
        let unmarked =
            |line: &&str| !["\"env\"", "\"checksum\"", "\"mark\""].iter().any(|key| line.trim_start().starts_with(key));
        text.lines().filter(unmarked).map(|line| format!("{line}\n")).collect()
    };
    let (found, native) = (scenario(&place, &format!("here/{SCENARIO}")), scenario(&place, "native.json"));
    assert!(native.contains("SECRET") && !found.contains("SECRET"), "the environment is the pack's");
    assert_eq!(without_environment(found), without_environment(native), "steps, objects and names are the same");

    // Another directory, absolute names and relative ones.
    let absolute = place.path("here").join(SCENARIO);
    for name in [absolute.to_string_lossy().as_ref(), "../here/program-deadlock-1.vsrun.json", "../native.json"] {
        let (status, said) = place.packed("there", &["replay", name]);
        assert!(status == Some(1) && said.contains(SAME), "{name}: {said}");
        assert!(!said.contains("/.vsrun/node"), "names are those of the machine: {said}");
    }
    let (status, said) = place.packed("there", &["--scenario-dir", &place.path("there/new").to_string_lossy()]);
    assert!(status == Some(1) && place.path("there/new").join(SCENARIO).exists(), "{said}");

    // On the machine itself, where the files are again.
    let (status, said) = place.vsrun("there", &["replay", "../here/program-deadlock-1.vsrun.json"]);
    assert!(status == Some(2) && said.contains("cannot be read"), "{said}");
    fs::rename(place.path("kept"), place.path("made")).expect("moved");
    let (status, said) = place.vsrun("there", &["replay", "../here/program-deadlock-1.vsrun.json"]);
    assert!(status == Some(1) && said.contains(SAME), "{said}");

    // What changes there later does not matter to the pack, even where it is run there.
    place.write("made/conf", "1\n");
    let (status, said) = place.packed("made", &[]);
    assert!(status == Some(1) && place.path("made").join(SCENARIO).exists(), "{said}");
}

#[test]
fn who_is_not_root_runs_it_as_who_he_is() {
    let place = Place::with_program("user");
    place.pack(&["./program"]);
    if !place.runs_here() || !nix::unistd::geteuid().is_root() {
        return;
    }
    let as_nobody = |arguments: &[&str]| {
        let mut command = place.command("here", &place.path("pack/run"), arguments);
        command.uid(65534).gid(65534);
        ended(command)
    };
    let (status, said) = as_nobody(&[]);
    if status == Some(2) && said.contains(FORBIDDEN) {
        return;
    }
    assert!(status == Some(1) && said.starts_with("DEADLOCK: "), "{said}");
    assert_eq!(fs::metadata(place.path("here").join(SCENARIO)).expect("a scenario").uid(), 65534);
    let (status, said) = as_nobody(&["replay", "--trust", SCENARIO]);
    assert!(status == Some(1) && said.contains(SAME), "{said}");
}

#[test]
fn a_search_in_pieces_and_options_that_are_given_later() {
    let place = Place::with_program("pieces");
    place.write("made/notes", "unshared a\n");
    place.pack(&["--keep-going", "--seed", "7", "--annotations", "notes", "./program"]);
    assert!(place.json().contains("\"--annotations=/.vsrun/annotations\""), "{}", place.json());
    fs::remove_dir_all(place.path("made")).expect("removed");
    if !place.runs_here() {
        return;
    }
    let (status, said) = place.packed("here", &["pieces", "split", "--into", "5", "--look", "0", "-o", "p"]);
    assert!(status == Some(0) && said.contains("/pack/run pieces work p/piece-1-00001.vsrun"), "{said}");
    for round in 0.. {
        assert!(round < 9, "there is always something new");
        let mut outdated = false;
        for entry in fs::read_dir(place.path("here/p")).expect("pieces").flatten() {
            let name = format!("p/{}", entry.file_name().to_string_lossy());
            if name.ends_with(".vsrun") {
                let (status, said) = place.packed("here", &["pieces", "work", &name]);
                outdated |= said.contains("outdated") || said.contains("to be split again");
                assert!(matches!(status, Some(0 | 1 | 3)), "{said}");
            }
        }
        if !outdated {
            break;
        }
        let (status, said) = place.packed("here", &["pieces", "split", "--again", "-o", "p"]);
        assert!(status == Some(0), "{said}");
    }
    let (status, said) = place.packed("here", &["pieces", "merge", "p"]);
    assert!(status == Some(1) && said.contains("explored completely"), "{said}");
    let (status, said) = place.packed("there", &["cluster", "-n", "2", "-o", "q", "--look", "0"]);
    assert!(status == Some(1) && said.contains("explored completely"), "{said}");
    let (status, said) = place.packed("there", &["cluster", "--engine", "slurm", "-o", "r"]);
    assert!(status == Some(2) && said.contains("no engine can be reached from a pack: a vsrun outside"), "{said}");
    // A swarm of what is packed needs no program either.
    let swarm = ["cluster", "--swarm", "-n", "1", "--max-executions", "10", "--vary", "none", "-o", "s"];
    let (status, said) = place.packed("there", &swarm);
    assert!(matches!(status, Some(1 | 3)) && said.contains("executions"), "{said}");

    // --once cannot stand beside --keep-going, which the pack has; and what is written to its files is gone.
    let (status, said) = place.packed("here", &["--once"]);
    assert!(status == Some(0) || status == Some(3), "{said}");
    assert!(!place.path("made").exists());
    let (_, said) = place.packed("here", &["--bound", "delays=0", "--format", "json"]);
    assert!(said.contains("\"verdict\""), "{said}");
    // By the seed of the pack it comes to the deadlock; in the order in which threads run on it does not.
    let (status, said) = place.packed("here", &["trace"]);
    assert!(status == Some(1) && said.contains("deadlock: 2 threads"), "{said}");
    let (status, said) = place.packed("here", &["trace", "--seed", "1"]);
    assert!(matches!(status, Some(0 | 1)) && said.contains("pthread_mutex_lock(b)"), "{said}");
    for words in [&["./program"][..], &["--keep-going", "/bin/true"], &["pieces", "split", "-o", "x", "./program"]] {
        let (status, said) = place.packed("here", words);
        assert!(status == Some(2) && said.contains("a pack runs the program that is in it"), "{words:?}: {said}");
    }
    let (status, said) = place.packed("here", &["pack", "-o", "x", "/bin/true"]);
    assert!(status == Some(2) && said.contains("vsrun runs in a pack already"), "{said}");
}

#[test]
fn what_is_damaged_missing_foreign_or_hostile_is_refused_by_name() {
    let place = Place::with_program("hostile");
    place.pack(&["./program"]);
    let runs = place.runs_here();
    let (status, said) = place.vsrun("here", &["pack", "check", "../pack"]);
    assert!(status == Some(0) && said.contains("as it was packed") && said.contains("it runs ./program"), "{said}");
    let program = format!("root{}", place.path("made/program").display());
    let refused = |what: &str, by_check_alone: bool| {
        let (status, said) = place.vsrun("here", &["pack", "check", "../pack"]);
        assert!(status == Some(2) && said.contains("the pack ../pack: ") && said.contains(what), "{what}: {said}");
        if runs && !by_check_alone {
            let (status, said) = place.vsrun("here", &["pack", "run", "../pack"]);
            assert!(status == Some(2) && said.contains(what) && !said.contains("DEADLOCK"), "{what}: {said}");
        }
    };
    // A byte that is another one.
    let path = place.path("pack").join(&program);
    let mut file = OpenOptions::new().read(true).write(true).open(&path).expect("the program");
    let mut byte = [0];
    let mut change = || {
        file.seek(SeekFrom::End(-1)).expect("seek");
        file.read_exact(&mut byte).expect("read");
        file.seek(SeekFrom::End(-1)).expect("seek");
        file.write_all(&[byte[0] ^ 1]).expect("write");
    };
    change();
    refused(&format!("{program}: it is not what was packed"), false);
    change();
    // One that is not there, one that is none of the pack's, one that leads elsewhere.
    let aside = place.path("aside");
    fs::rename(&path, &aside).expect("moved");
    refused(&format!("{program} is missing"), false);
    symlink(&aside, &path).expect("a link");
    refused(&format!("{program}: "), false);
    fs::remove_file(&path).expect("removed");
    fs::rename(&aside, &path).expect("moved");
    let foreign = place.path("pack/root/tmp/foreign");
    fs::write(&foreign, "x").expect("written");
    refused("root/tmp/foreign is none of its files", true);
    fs::remove_file(&foreign).expect("removed");
    // A directory on the way is a link that leads out.
    let (made, moved) = (path.parent().expect("a directory"), place.path("moved"));
    fs::rename(made, &moved).expect("moved");
    symlink(&moved, made).expect("a link");
    refused(&format!("root{}", place.path("made").display()), false);
    fs::remove_file(made).expect("removed");
    fs::rename(&moved, made).expect("moved");
    // What pack.json says.
    let whole = place.json();
    let entry = "{\"path\":\"tmp\",\"directory\":{\"mode\":511}}";
    assert!(whole.contains(entry), "{whole}");
    let with = |more: &str| whole.replace(entry, &format!("{entry},\n    {more}"));
    let file = "\"file\":{\"mode\":420,\"size\":1,\"fnv\":\"0000000000000000\",\"modified\":[0,0]}";
    for (text, what) in [
        (with(&format!("{{\"path\":\"tmp/../../x\",{file}}}")), "tmp/../../x: it has '..' or '.' in it"),
        (with(&format!("{{\"path\":\"/etc/passwd\",{file}}}")), "/etc/passwd: it is absolute"),
        (with("{\"path\":\"tmp/l\",\"link\":\"/etc/passwd\"}"), "the symbolic link tmp/l is absolute"),
        (with("{\"path\":\"tmp/l\",\"link\":\"../../etc\"}"), "the symbolic link tmp/l leads out of the pack"),
        (
            with(&format!("{{\"path\":\"tmp/l\",\"link\":\".\"}},{{\"path\":\"tmp/l/x\",{file}}}")),
            "tmp/l/x: the directory that it is in is not listed",
        ),
        (
            whole.replace("\"vsrun_pack\": 1", "\"vsrun_pack\": 2"),
            "pack.json is of format 2; this vsrun reads format 1",
        ),
        (whole[..whole.len() / 2].to_string(), "pack.json is damaged"),
        ("[]".into(), "pack.json is damaged"),
        ("[".repeat(100_000), "pack.json is damaged"),
    ] {
        assert_ne!(text, whole);
        place.write("pack/pack.json", &text);
        refused(what, false);
    }
    File::create(place.path("pack/pack.json")).and_then(|file| file.set_len(65 << 20)).expect("a large file");
    refused("pack.json cannot be read: it is larger than 64 MiB", false);
    fs::remove_file(place.path("pack/pack.json")).expect("removed");
    refused("there is no pack.json: it is no pack, or not all of one", false);
    place.write("pack/pack.json", &whole);
    let script = fs::read(place.path("pack/run")).expect("the script");
    fs::write(place.path("pack/run"), [&script[..], b"#"].concat()).expect("written");
    refused("run: it is not what was packed", true);
    fs::write(place.path("pack/run"), script).expect("written");
    let (status, said) = place.vsrun("here", &["pack", "check", "../pack"]);
    assert_eq!(status, Some(0), "all is as it was: {said}");
    // It is not packed over.
    let (status, said) = place.vsrun("made", &["pack", "-o", "../pack", "./program"]);
    assert!(status == Some(2) && said.contains("is not empty: another -o DIR is needed"), "{said}");
}

#[test]
fn where_namespaces_are_forbidden_it_is_said_what_to_do() {
    let place = Place::with_program("forbidden");
    place.pack(&["./program"]);
    let profile = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/container/profile.c");
    place.compile("gcc", &["-O1", "-o", "profile", &profile.to_string_lossy()]);
    let run = place.path("pack/run");
    let (status, said) = place.run("here", &place.path("made/profile"), &["personality", &run.to_string_lossy()]);
    assert_eq!(status, Some(2), "{said}");
    for part in [
        FORBIDDEN,
        "vsrun: environment: ",
        "run it as root",
        "kernel.apparmor_restrict_unprivileged_userns=0",
        "--cap-add SYS_ADMIN",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let text = said.lines().count();
    assert_eq!(text, 1, "{said}");
    // To look at it needs none.
    let check = [env!("CARGO_BIN_EXE_vsrun"), "pack", "check", "../pack"];
    let (status, said) = place.run("here", &place.path("made/profile"), &[&["personality"], &check[..]].concat());
    assert_eq!(status, Some(0), "{said}");
}

/// Where libraries lie, in one line each; an exception; a locale.
const CPLUSPLUS: &str = r#"
#include <clocale>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
static int thrown;
static void work(int n) {
    try {
        if (n) throw std::runtime_error("thrown");
    } catch (const std::exception &e) {
        thrown += e.what()[0] == 't';
    }
}
int main(int argc, char **argv) {
    std::setlocale(LC_ALL, "");
    std::thread t(work, 1);
    t.join();
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
        if (line.find(" r-xp ") != line.npos && line.find('/') != line.npos && line.find("libvsrun") == line.npos)
            std::cout << line.substr(0, line.find(' ')) << line.substr(line.rfind('/')) << "\n";
    std::cout << "thrown " << thrown << " stack " << (void *)argv << " heap " << (void *)new int << "\n";
    return 0;
}
"#;

#[test]
fn libraries_lie_where_they_lie_on_the_machine_also_large_ones() {
    let place = Place::new("addresses");
    place.write("made/program.cc", CPLUSPLUS);
    place.compile("g++", &["-O1", "-o", "program", "program.cc", "-lpthread"]);
    place.pack(&["--once", "./program"]);
    if !place.runs_here() {
        return;
    }
    // With the environment that the pack has, to the byte.
    let mut native = place.command(
        "made",
        Path::new(env!("CARGO_BIN_EXE_vsrun")),
        &["--once", "--output", "../native", "./program"],
    );
    native.env_remove("SECRET");
    let (status, said) = ended(native);
    assert_eq!(status, Some(3), "{said}");
    let (status, said) = place.packed("here", &["--output", "packed"]);
    assert_eq!(status, Some(3), "{said}");
    let read = |name: &str| fs::read_to_string(place.path(name)).expect("what it printed");
    let (native, packed) = (read("native"), read("here/packed"));
    assert!(native.contains("/libstdc++.so") && native.contains("thrown 1 stack 0x7ff"), "{native}");
    // Where huge pages could be, on the disk of the machine and in the pack; see NOTE [Addresses].
    let on_disk = Command::new("stat").args(["-f", "-c", "%T"]).arg(place.path("made")).output().expect("stat").stdout;
    if String::from_utf8_lossy(&on_disk).starts_with("ext") {
        assert_eq!(packed, native);
    }
    let (_, again) = place.packed("there", &["--output", "packed"]);
    assert_eq!(read("there/packed"), packed, "{again}");
}

#[test]
fn scripts_programs_that_are_executed_clients_and_what_is_added_are_in_it() {
    let place = Place::new("others");
    place.write("made/child.c", "#include <stdio.h>\nint main(int n, char **v) { FILE *f = fopen(v[1], \"r\"); int c = f ? fgetc(f) : 'n'; putchar(c); return c != 'x'; }");
    place.compile("gcc", &["-o", "child", "child.c"]);
    fs::create_dir_all(place.path("made/data/deep")).expect("a directory");
    place.write("made/data/deep/file", "x");
    place.write("made/data/unused", "u");
    symlink(place.path("made/data/deep/file"), place.path("made/data/link")).expect("a link");
    symlink("made/data", place.path("alias")).expect("a link");
    place.write("made/script", "#!/bin/sh\n./child data/deep/file && test \"$GIVEN\" = value && test -z \"$SECRET\" && exec ./child ../alias/link\n");
    fs::set_permissions(place.path("made/script"), Permissions::from_mode(0o755)).expect("chmod");
    place.pack(&[
        "--env",
        "GIVEN=value",
        "--add",
        "data",
        "--fail-on-exit",
        "--with",
        "./child 'data/deep/file'",
        "--max-executions",
        "5",
        "./script",
    ]);
    assert!(!place.json().contains("SECRET"), "{}", place.json());
    let root = place.path("pack/root").join(place.path("made").strip_prefix("/").expect("absolute"));
    assert!(root.join("data/unused").exists() && !root.join("child.c").exists());
    assert!(fs::read_link(root.join("data/link")).expect("a link").is_relative());
    let (status, said) = place.vsrun("made", &["pack", "-o", "../other", "--env", "NONE_SUCH", "./child"]);
    assert!(status == Some(2) && said.contains("--env NONE_SUCH: there is no such variable"), "{said}");
    let (status, said) = place.vsrun("made", &["pack", "-o", "../other", "--add", "none", "./child"]);
    assert!(status == Some(2) && said.contains("--add none: ") && !place.path("other").exists(), "{said}");
    if !place.runs_here() {
        return;
    }
    fs::remove_dir_all(place.path("made")).expect("removed");
    let (status, said) = place.packed("here", &["--output", "printed"]);
    assert!(matches!(status, Some(0 | 3)), "{status:?} {said}");
    assert_eq!(fs::read_to_string(place.path("here/printed")).expect("what it printed").matches('x').count(), 3);
}
