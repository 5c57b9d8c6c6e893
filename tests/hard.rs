//! What must not break vsrun, nor bend a verdict: limits, streams that cannot be written, files that are none. With the vsrun binary.

use std::fs;
use std::mem::offset_of;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{kill, Signal};
use nix::sys::stat::Mode;
use nix::unistd::{geteuid, mkfifo, Pid};
use vsrun_model::{Arena, World};

/// A user without processes, where the tests run as root, whom no limit on processes binds.
const NOBODY: u32 = 61_234;

/// A directory with programs in it that everybody may use, removed at the end.
struct Place {
    dir: PathBuf,
}

impl Place {
    fn new(test: &str) -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-hard-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary directory");
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).expect("permissions");
        // By another program: a child of this one could have the copy open for writing when it is to run (ETXTBSY).
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_vsrun")).arg(dir.join("vsrun")).status();
        assert!(copied.expect("cp").success());
        Place { dir }
    }

    /// Compiles a program of c-tests.
    fn program(&self, name: &str) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("c-tests").join(format!("{name}.c"));
        let done =
            Command::new("gcc").arg("-O1").arg("-o").arg(self.dir.join(name)).arg(source).arg("-lpthread").status();
        assert!(done.expect("gcc").success());
    }

    /// What a shell says of a line, in that directory: exit status, output, errors.
    fn shell(&self, line: &str, as_nobody: bool) -> (i32, String, String) {
        let mut command = Command::new("timeout");
        command.args(["60", "bash", "-o", "pipefail", "-c", line]).current_dir(&self.dir).stdin(Stdio::null());
        if as_nobody {
            command.uid(NOBODY).gid(NOBODY);
        }
        let output = command.output().expect("bash");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Six processes, and what vsrun needs itself, under fewer than that: never another verdict, never a hang.
#[test]
fn a_limit_on_processes_is_the_environments() {
    if !geteuid().is_root() {
        println!("left out: other processes of this user count as well");
        return;
    }
    let place = Place::new("processes");
    place.program("robot_controller");
    let mut refused = 0;
    for most in 3..=12 {
        let line = format!("ulimit -u {most}; ./vsrun --progress never ./robot_controller");
        let (code, out, err) = place.shell(&line, true);
        assert!(code == 2 && !out.contains("explored completely."), "{most}: {code} {out} {err}");
        assert!(err.contains("vsrun: ") || out.contains("environment: "), "{most}: {out} {err}");
        refused += u32::from(out.contains("environment: the kernel refused a process"));
    }
    assert!(refused > 3, "{refused}");
    let (code, out, err) = place.shell("./vsrun --progress never --divergence-timeout 0.5 ./robot_controller", true);
    assert!(code == 1 && out.contains("divergence"), "{code} {out} {err}");
}

/// Descriptors that the program may have and the kernel does not give out, since vsrun's own stand among them.
#[test]
fn a_limit_on_descriptors_is_the_environments() {
    let place = Place::new("descriptors");
    let source = "#include <fcntl.h>\n#include <pthread.h>\nstatic void *t(void *a) { return a; }\n\
                  int main(void) { pthread_t p; pthread_create(&p, 0, t, 0); pthread_join(p, 0); int n = 0;\n\
                  while (open(\"/dev/null\", O_RDONLY) >= 0) n++; return n < 200; }";
    fs::write(place.dir.join("all.c"), source).expect("write");
    assert!(place.shell("gcc -O1 -o all all.c -lpthread", false).0 == 0);
    let (code, out, err) = place.shell("ulimit -n 400; ./vsrun ./all", false);
    assert!(code == 2 && out.contains("environment: the kernel refused a descriptor (EMFILE)"), "{code} {out} {err}");
}

/// A mapping that fits below the limit natively, and not beside vsrun's own; and one that fits nowhere, which the program is to see.
#[test]
fn a_limit_on_memory_is_the_environments() {
    let place = Place::new("memory");
    let source = "#include <stdlib.h>\n#include <sys/mman.h>\n#include <sys/resource.h>\n\
                  int main(int argc, char **argv) { (void)argc; struct rlimit l = { (rlim_t)atol(argv[1]) << 20, RLIM_INFINITY };\n\
                  if (setrlimit(RLIMIT_AS, &l)) return 9;\n\
                  return mmap(0, 512 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED; }";
    fs::write(place.dir.join("map.c"), source).expect("write");
    assert!(place.shell("gcc -O1 -o map map.c", false).0 == 0);
    let (code, out, err) = place.shell("./map 1024 && ./vsrun ./map 1024", false);
    let said = out.contains("environment: the kernel refused memory for a mapping (ENOMEM)");
    assert!(code == 2 && said && !out.contains("explored completely."), "{code} {out} {err}");
    let (code, out, err) = place.shell("./map 100; test $? = 1 && ./vsrun ./map 100", false);
    assert!(code == 0 && out.contains("exited with status 1"), "{code} {out} {err}");
}

/// What an execution prints beyond what is kept does not fill the memory, and changes no verdict. One alone prints all.
#[test]
fn output_is_bounded() {
    let place = Place::new("output");
    let source = "#include <string.h>\n#include <unistd.h>\nstatic char b[1 << 20];\n\
                  int main(void) { memset(b, 'x', sizeof b); for (int i = 0; i < 100; i++) if (write(1, b, sizeof b) < 0) return 1;\n\
                  return 0; }";
    fs::write(place.dir.join("print.c"), source).expect("write");
    assert!(place.shell("gcc -O1 -o print print.c", false).0 == 0);
    let (code, out, err) = place.shell("./vsrun --output all ./print; tail -c 70 all; wc -c <all", false);
    let noted = out.contains("note: an execution printed more than 64 MiB: what came after that is not kept");
    let cut = out.contains("x\n[37748736 bytes more were printed, which vsrun has not kept]\n");
    assert!(code == 0 && noted && cut && out.contains("explored completely"), "{out} {err}");
    let size: u64 = out.lines().last().and_then(|line| line.parse().ok()).expect("a size");
    assert!(size > 64 << 20 && size < 65 << 20, "{size}");
    let (code, out, err) = place.shell("./vsrun --once --output all ./print; tr -d x <all | wc -c; wc -c <all", false);
    assert!(code == 0 && out.ends_with(&format!("0\n{}\n", 100 << 20)) && !out.contains("note:"), "{out} {err}");
}

/// A program that uses more memory than it may; the same where it may.
#[test]
fn memory_is_bounded() {
    let place = Place::new("bounded");
    let source = "#include <stdlib.h>\n#include <string.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
                  int main(void) { fork(); for (int i = 0; i < 100; i++) memset(malloc(1 << 20), 1, 1 << 20);\n\
                  for (volatile long i = 0; i < 200000000; i++) {} wait(0); return 0; }";
    fs::write(place.dir.join("use.c"), source).expect("write");
    assert!(place.shell("gcc -O0 -fno-builtin -o use use.c", false).0 == 0);
    let (code, out, err) = place.shell("./vsrun -j 1 --memory 60M ./use", false);
    let said =
        out.contains("environment: the program's processes use ") && out.contains(" and may use 60 MiB; --memory");
    let verdict = out.contains("Verdict: none, disturbed from outside in ./use");
    assert!(code == 2 && said && verdict && !out.contains("explored completely."), "{code} {out} {err}");
    let (code, out, err) = place.shell("./vsrun -j 1 --memory 2G ./use", false);
    assert!(code == 0 && out.contains("explored completely."), "{code} {out} {err}");
    assert!(place.shell("pgrep -f ^./use", false).1.is_empty());
}

/// A program that writes to vsrun's memory, always or in one order of its threads, with whatever comes of it: it is told where.
#[test]
fn who_overwrites_the_arena_is_told_so() {
    let place = Place::new("arena");
    let source = "#include <pthread.h>\n#include <stdlib.h>\n#include <string.h>\n\
                  static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static int first;\n\
                  static void *t(void *a) { pthread_mutex_lock(&m); if (!first) first = 1 + (a != 0); pthread_mutex_unlock(&m); return a; }\n\
                  int main(int c, char **v) { pthread_t p; pthread_create(&p, 0, t, v); t(0); pthread_join(p, 0);\n\
                  if (atoi(v[4]) == 0 || atoi(v[4]) == first)\n\
                  memset((char *)0x200000000000 + strtoul(v[1], 0, 0), atoi(v[3]), strtoul(v[2], 0, 0));\n\
                  return c > 9 ? 1 : t(0) != 0; }";
    fs::write(place.dir.join("stomp.c"), source).expect("write");
    assert!(place.shell("gcc -O1 -g -o stomp stomp.c -lpthread", false).0 == 0);
    // The whole first page; a word of the version, of what the root waits for, of the plan; the world.
    for (what, when) in [
        ("0 4096 0", 2),
        ("0 4096 255", 1),
        ("8 4 65", 2),
        ("24 8 1", 0),
        ("0x1000 4096 255", 1),
        ("0x1000 65536 0", 2),
    ] {
        let (code, out, err) = place.shell(&format!("./vsrun -j 1 --time 20 ./stomp {what} {when}"), false);
        let told = out.starts_with("CRASH: SIGSEGV in thread ") && out.contains(": it writes to vsrun's memory,");
        assert!(code == 1 && told && !out.contains("explored completely."), "{what} {when}: {code} {out} {err}");
        let (code, out, err) = place.shell("./vsrun replay stomp-crash-1.vsrun.json; rm stomp-*", false);
        assert!(code == 0 && out.contains(": it writes to vsrun's memory,"), "{what} {when}: {code} {out} {err}");
    }
    let (code, out, err) = place.shell("./vsrun -j 1 --guard-arena ./stomp 0x2000000 8 1 2", false);
    assert!(code == 1 && out.contains(": it writes to vsrun's memory,"), "{code} {out} {err}");
    let (code, out, err) = place.shell("./vsrun -j 1 --guard-arena ./stomp 0x2000000 8 1 3", false);
    assert!(code == 0 && out.contains("explored completely."), "{code} {out} {err}");
}

/// A program that writes to vsrun's memory again and again, each time where that does no harm, and only once it has run for long.
#[test]
fn who_writes_to_the_arena_late_is_told_so() {
    let place = Place::new("late-arena");
    let source = "#include <pthread.h>\n#include <string.h>\n\
                  static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
                  static void *t(void *a) { for (int i = 0; i < 300; i++) { pthread_mutex_lock(&m); pthread_mutex_unlock(&m);\n\
                  if (i > 100) memset((char *)0x200002000000, 1, 8); } return a; }\n\
                  int main(void) { pthread_t p; pthread_create(&p, 0, t, 0); pthread_join(p, 0); return 0; }";
    fs::write(place.dir.join("often.c"), source).expect("write");
    assert!(place.shell("gcc -O1 -g -o often often.c -lpthread", false).0 == 0);
    let (code, out, err) = place.shell("./vsrun -j 1 ./often", false);
    assert!(code == 1 && out.contains(": it writes to vsrun's memory,"), "{code} {out} {err}");
}

/// A program that writes over the beginning of a table in one late order of its threads, where executions are not guarded any more.
#[test]
fn who_overwrites_a_table_is_told_so() {
    let place = Place::new("table");
    let source = "#include <pthread.h>\n#include <stdlib.h>\n#include <string.h>\n\
                  static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static int order;\n\
                  static void *t(void *a) { pthread_mutex_lock(&m); order = order * 10 + (int)(long)a; pthread_mutex_unlock(&m); return a; }\n\
                  int main(int c, char **v) { pthread_t p[4]; for (long i = 0; i < 4; i++) pthread_create(p + i, 0, t, (void *)(i + 1));\n\
                  for (int i = 0; i < 4; i++) pthread_join(p[i], 0);\n\
                  if (order == 4321) memset((char *)0x200000000000 + strtoul(v[1], 0, 0), atoi(v[3]), strtoul(v[2], 0, 0));\n\
                  return c > 9; }";
    fs::write(place.dir.join("late.c"), source).expect("write");
    assert!(place.shell("gcc -O1 -g -o late late.c -lpthread", false).0 == 0);
    let world = offset_of!(Arena, world);
    let tables = [
        world + offset_of!(World, semvals),
        world + offset_of!(World, rights),
        offset_of!(Arena, segments),
        offset_of!(Arena, known_shared),
        offset_of!(Arena, seen),
    ];
    for (at, byte) in tables.iter().flat_map(|at| [(at, 0), (at, 255)]) {
        let (code, out, err) = place.shell(&format!("./vsrun -j 1 --search naive ./late {at} 8 {byte}"), false);
        let told = out.starts_with("CRASH: SIGSEGV in thread ") && out.contains(": it writes to vsrun's memory,");
        assert!(code == 1 && told && !out.contains("explored completely."), "{at} {byte}: {code} {out} {err}");
        let executions =
            out.split_once(" in execution ").and_then(|(_, rest)| rest.split([' ', ',', '.', ':', '\n']).next());
        assert!(executions.and_then(|n| n.parse::<u32>().ok()).is_some_and(|n| n > 10), "{out}");
        place.shell("rm late-*", false);
    }
    let (code, out, err) = place.shell("./vsrun -j 1 --search naive ./late 0 0 0", false);
    assert!(code == 0 && out.contains("explored completely."), "{code} {out} {err}");
}

/// A scenario is code: of one that another user or machine has written nothing runs before it is trusted.
#[test]
fn a_scenario_of_a_stranger_is_not_run_unasked() {
    let place = Place::new("stranger");
    let source = "#include <stdio.h>\n#include <stdlib.h>\nint main(int c, char **v) { fclose(fopen(v[1], \"a\")); if (c > 1) abort(); }";
    fs::write(place.dir.join("prog.c"), source).expect("write");
    assert!(place.shell("gcc -O1 -o prog prog.c", false).0 == 0);
    let run = "export XDG_STATE_HOME=$PWD/me; LD_BIND_NOW=1 ./vsrun --files real ./prog ran";
    let (code, out, err) = place.shell(run, false);
    assert!(code == 1 && out.contains("abort() was called"), "{code} {out} {err}");
    let scenario = "prog-assert-1.vsrun.json";
    let (code, out, err) = place.shell(&format!("XDG_STATE_HOME=$PWD/me ./vsrun replay {scenario}"), false);
    assert!(code == 1 && out.contains("abort() was called"), "{code} {out} {err}");
    fs::remove_file(place.dir.join("ran")).expect("it has run");
    for line in ["XDG_STATE_HOME=$PWD/other ./vsrun replay", "XDG_STATE_HOME=$PWD/me ./vsrun replay --no-supervisor"] {
        let file = if line.contains("other") { scenario } else { "edited.json" };
        let unmarked = format!("sed '/^  \"mark\"/d' {scenario} >edited.json");
        let (code, out, err) = place.shell(&format!("{unmarked}; {line} {file}"), false);
        let edited = file == "edited.json" && err.contains("the checksum does not match");
        let said = ["was not written by your vsrun", "/prog ran", "LD_BIND_NOW=1", "goes to the real files", "--trust"];
        assert!(
            code == 2 && out.is_empty() && (edited || said.iter().all(|s| err.contains(s))),
            "{line}: {code} {out} {err}"
        );
        assert!(!place.dir.join("ran").exists(), "{line}");
    }
    for line in ["show", "show --format json"] {
        let (code, out, _) = place.shell(&format!("XDG_STATE_HOME=$PWD/other ./vsrun {line} {scenario}"), false);
        assert!(code == 0 && out.contains("abort") && !place.dir.join("ran").exists(), "{line}");
    }
    let (code, out, err) = place.shell(&format!("XDG_STATE_HOME=$PWD/other ./vsrun replay --trust {scenario}"), false);
    assert!(code == 1 && out.contains("abort() was called") && place.dir.join("ran").exists(), "{code} {out} {err}");
}

/// A fork bomb, with and without an end to the forks; a signal that asks to end.
#[test]
fn time_ends_it_whatever_the_program_does() {
    let place = Place::new("time");
    let source =
        "#include <unistd.h>\nint main(int c, char **v) { (void)v; for (;;) if (fork() < 0 && c > 1) return 1; }";
    fs::write(place.dir.join("bomb.c"), source).expect("write");
    assert!(place.shell("gcc -O1 -o bomb bomb.c", false).0 == 0);
    // What it takes to clean up depends on how many processes there are by then.
    for line in [
        "./vsrun -j 1 --time 1 ./bomb",
        "ulimit -u 40; ./vsrun -j 1 --time 1 ./bomb x",
        "timeout -s TERM 1 ./vsrun ./bomb",
    ] {
        let since = Instant::now();
        let (code, out, err) = place.shell(line, line.starts_with("ulimit"));
        assert!([2, 3, 124].contains(&code) && since.elapsed() < Duration::from_secs(10), "{line}: {code} {out} {err}");
        assert!(!out.contains("explored completely."), "{line}: {out}");
        // What is killed takes a moment to die, hundreds of them on a busy machine more than that.
        let left = "for _ in $(seq 50); do pgrep -x bomb >/dev/null || exit 0; sleep 0.1; done; pgrep -x bomb";
        assert!(place.shell(left, false).1.is_empty(), "{line}");
    }
}

/// Limits below which vsrun does not begin: said at the start and by doctor.
#[test]
fn limits_that_are_too_low_are_named() {
    let place = Place::new("limits");
    place.program("lockcount");
    for (limit, name) in [
        ("-f 16", "file size"),
        ("-f 16000000", "file size"),
        ("-v 10000000", "address space"),
        ("-n 64", "open files"),
    ] {
        let (code, _, err) = place.shell(&format!("ulimit {limit}; ./vsrun ./lockcount 2"), false);
        let said =
            err.starts_with(&format!("vsrun: environment: the limit on {name} is ")) && err.contains("; ulimit -");
        assert!(code == 2 && said && err.lines().count() == 1, "{limit}: {code} {err}");
        let (code, out, err) = place.shell(&format!("ulimit {limit}; ./vsrun doctor"), false);
        assert!(code == 2 && out.contains(&format!("BAD {name}: limit ")), "{limit}: {code} {out} {err}");
    }
    let (code, out, err) = place.shell("ulimit -v 20000000; ./vsrun --race explore ./lockcount 2", false);
    let said = err.contains("environment: memory cannot be watched: ") && err.contains("--race off");
    assert!(code == 2 && said && out.is_empty(), "{code} {out} {err}");
    for (limit, race) in [("-f 17000000", "explore"), ("-v 20000000", "off"), ("-n 300", "explore")] {
        let line = format!("ulimit {limit}; ./vsrun -j 2 --race {race} ./lockcount 2; ./vsrun doctor");
        let (code, out, err) = place.shell(&line, false);
        assert!(code == 0 && out.contains("explored completely"), "{limit}: {code} {out} {err}");
    }
}

/// Calls by `int 0x80` and with numbers of x32.
#[test]
fn calls_of_another_architecture_are_refused() {
    let place = Place::new("architecture");
    let source = "int main(int argc, char **argv) { long r = argc > 1 ? 0x40000000 + 39 : 20; (void)argv;\n\
                  if (argc > 1) __asm__ volatile (\"syscall\" : \"+a\"(r) : : \"rcx\", \"r11\", \"memory\");\n\
                  else __asm__ volatile (\"int $0x80\" : \"+a\"(r) : : \"memory\");\n\
                  return r > 0; }";
    fs::write(place.dir.join("call.c"), source).expect("write");
    assert!(place.shell("gcc -O1 -o call call.c", false).0 == 0);
    for arguments in ["", "x32"] {
        let (code, out, err) = place.shell(&format!("./vsrun ./call {arguments}"), false);
        let said = out.contains("unsupported: a system call of another architecture") && out.contains("address 0x");
        assert!(code == 2 && said, "{code} {out} {err}");
    }
}

/// Standard output and error that nobody reads, that are full, or closed.
#[test]
fn streams_that_cannot_be_written() {
    let place = Place::new("streams");
    place.program("mutex_order");
    let (code, _, _) = place.shell("./vsrun ./mutex_order buggy", false);
    assert_eq!(code, 1);
    let names =
        fs::read_dir(&place.dir).expect("names").flatten().map(|e| e.file_name().into_string().expect("a name"));
    let scenario = names.into_iter().find(|name| name.ends_with(".vsrun.json")).expect("a scenario");
    let lines = [
        ("./vsrun --help".to_string(), 0),
        (format!("./vsrun show {scenario}"), 0),
        (format!("./vsrun show --format json {scenario}"), 0),
        (format!("./vsrun replay {scenario}"), 1),
        (format!("./vsrun replay --format json {scenario}"), 1),
        ("./vsrun ./mutex_order fixed".to_string(), 0),
        ("./vsrun --format json ./mutex_order fixed".to_string(), 0),
        ("./vsrun --once ./mutex_order fixed".to_string(), 3),
        ("./vsrun --nonsense".to_string(), 2),
        ("./vsrun ./not-there".to_string(), 2),
    ];
    for (line, usual) in lines {
        for (streams, expected) in [
            (" >/dev/full", 2),
            (" 2>/dev/full", usual),
            (" | true", usual),
            (" >&-", 2),
            (" 2>&-", usual),
            (" >/dev/full 2>&1", 2),
            (" >&- 2>&-", 2),
        ] {
            let (code, _, err) = place.shell(&format!("{line}{streams}"), false);
            assert_eq!(code, expected, "{line}{streams}: {err}");
            assert!(expected != 2 || streams.contains('2') || err.contains("vsrun: "), "{line}{streams} says nothing");
        }
    }
}

/// A run of vsrun that lasts, with its guard and their directory.
struct Lasting {
    vsrun: Child,
    guard: i32,
    dir: PathBuf,
}

impl Lasting {
    fn start(place: &Place) -> Lasting {
        let mut command = Command::new(place.dir.join("vsrun"));
        command.args(["--search", "naive", "--keep-going", "--progress", "never", "./philosophers_threads", "5"]);
        command.current_dir(&place.dir).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut lasting = Lasting { vsrun: command.spawn().expect("vsrun"), guard: 0, dir: PathBuf::new() };
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(30) {
            let children = format!("/proc/{0}/task/{0}/children", lasting.vsrun.id());
            for pid in fs::read_to_string(children).unwrap_or_default().split_whitespace() {
                let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                let mut words = line.split(|c| *c == 0).map(|word| String::from_utf8_lossy(word).into_owned());
                let dir = PathBuf::from(words.nth(2).unwrap_or_default());
                if line.starts_with(b"vsrun-guard") && dir.join("alive").exists() {
                    std::thread::sleep(Duration::from_millis(300));
                    (lasting.guard, lasting.dir) = (pid.parse().expect("a number"), dir);
                    return lasting;
                }
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("no guard");
    }

    /// The directory looks as if it were made a while ago.
    fn age(&self) {
        let before = std::time::SystemTime::now() - Duration::from_secs(300);
        let dir = fs::File::open(&self.dir).expect("the directory");
        dir.set_modified(before).expect("an older time");
    }

    fn kill(&mut self) {
        kill(Pid::from_raw(self.guard), Signal::SIGKILL).expect("kill");
        self.end();
    }

    fn end(&mut self) {
        let _ = self.vsrun.kill();
        let _ = self.vsrun.wait();
    }
}

impl Drop for Lasting {
    fn drop(&mut self) {
        self.end();
    }
}

/// What vsrun leaves when it is killed together with its guard, the next run sweeps away; not what is in use.
#[test]
fn what_was_left_is_swept_away() {
    let place = Place::new("swept");
    place.program("philosophers_threads");
    place.program("mutex_order");
    let (mut dead, mut alive) = (Lasting::start(&place), Lasting::start(&place));
    dead.kill();
    dead.age();
    alive.age();
    let (code, _, err) = place.shell("./vsrun ./mutex_order fixed", false);
    let left = (dead.dir.exists(), alive.dir.exists());
    alive.kill();
    alive.age();
    assert_eq!((code, left), (0, (false, true)), "{err}");
    assert_eq!(place.shell("./vsrun ./mutex_order fixed", false).0, 0);
    assert!(!alive.dir.exists());
}

/// Files that are none: pipes, devices, directories.
#[test]
fn what_is_no_file_is_refused_before_it_is_read() {
    let place = Place::new("files");
    place.program("mutex_order");
    mkfifo(&place.dir.join("fifo"), Mode::S_IRWXU).expect("a FIFO");
    for (path, what) in [("fifo", "pipe"), ("/dev/zero", "device"), (".", "directory")] {
        for line in [
            format!("./vsrun show {path}"),
            format!("./vsrun replay {path}"),
            format!("./vsrun --resume {path} ./mutex_order fixed"),
            format!("./vsrun --annotations {path} ./mutex_order fixed"),
            format!("./vsrun --save {path} ./mutex_order fixed"),
        ] {
            let (code, out, err) = place.shell(&line, false);
            assert!(code == 2 && err.contains(what), "{line}: {code} {out} {err}");
        }
    }
    for path in ["fifo", "."] {
        let (code, out, err) = place.shell(&format!("./vsrun --output {path} ./mutex_order fixed"), false);
        assert!(code == 2 && err.contains(path), "{path}: {code} {out} {err}");
    }
    assert_eq!(place.shell("./vsrun --output /dev/null ./mutex_order fixed", false).0, 0);
}
