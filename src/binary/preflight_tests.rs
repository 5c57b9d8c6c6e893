//! Every way a program can be refused, on real files.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;
use crate::base::testing::TempDir;

fn run(dir: &TempDir, program: impl AsRef<OsStr>, path: &str) -> Result<Launch, Refusal> {
    resolve(program.as_ref(), &["x\ny".into(), OsStr::from_bytes(b"\xff").into()], dir.path(), Some(OsStr::new(path)))
}

/// The refusal of `./name`, which is one line.
fn refused(dir: &TempDir, name: &str) -> Refusal {
    let refusal = run(dir, format!("./{name}"), "").unwrap_err();
    let line = refusal.to_string();
    assert!(line.starts_with("vsrun: ./") && !line.contains('\n') && line.len() < 300, "{line}");
    refusal
}

fn strings(argv: &[OsString]) -> Vec<String> {
    argv.iter().map(crate::base::text::escape).collect()
}

#[test]
fn a_program_is_found_and_gets_its_arguments() {
    let dir = TempDir::new();
    let program = dir.program("p", &[]);
    symlink("p", dir.path().join("link")).unwrap();
    let launch = run(&dir, "./link", "").unwrap();
    assert_eq!((&launch.exe, &launch.program), (&program, &program));
    assert_eq!(strings(&launch.argv), ["./link", "x\\x0ay", "\\xff"]);
    assert!(launch.interpreter_chain.is_empty());
    assert!(run(&dir, dir.program("nopie", &["-no-pie"]), "").is_ok());
}

#[test]
fn path_is_searched_as_a_shell_does() {
    let dir = TempDir::new();
    for sub in ["a", "b", "c", "a/p"] {
        fs::create_dir(dir.path().join(sub)).unwrap();
    }
    let program = dir.program("c/p", &[]);
    dir.file("b/p", "not executable", 0o644);
    assert_eq!(run(&dir, "p", "a:none:b:c").unwrap().exe, program);
    assert_eq!(strings(&run(&dir, "p", "c").unwrap().argv)[0], "p");
    assert_eq!(run(&dir, "p", "a:b").unwrap_err(), Refusal::NotExecutable("b/p".into()));
    assert_eq!(run(&dir, "p", "a").unwrap_err(), Refusal::NotInPath { program: "p".into(), here: false });
    assert_eq!(run(&dir, "a", "b").unwrap_err(), Refusal::NotInPath { program: "a".into(), here: true });
    assert_eq!(run(&dir, "", "c:").unwrap_err(), Refusal::NotInPath { program: "".into(), here: false });
    fs::copy(&program, dir.path().join("here")).unwrap();
    assert_eq!(run(&dir, "here", "a:").unwrap().exe, dir.path().join("here"));
    assert!(resolve(OsStr::new("true"), &[], dir.path(), None).is_ok());
}

#[test]
fn files_that_are_no_programs() {
    let dir = TempDir::new();
    fs::create_dir(dir.path().join("d")).unwrap();
    dir.file("empty", "", 0o755);
    dir.file("text", "echo hi\n", 0o755);
    dir.file("plain", "\x7fELF", 0o644);
    symlink("nowhere", dir.path().join("dangling")).unwrap();
    symlink("loop", dir.path().join("loop")).unwrap();
    assert!(Command::new("mkfifo").arg(dir.path().join("fifo")).status().unwrap().success());
    let path = |name: &str| PathBuf::from(format!("./{name}"));
    assert_eq!(refused(&dir, "none"), Refusal::NotFound(path("none")));
    assert_eq!(refused(&dir, "no\nne"), Refusal::NotFound(path("no\nne")));
    assert_eq!(refused(&dir, "d"), Refusal::Directory(path("d")));
    assert_eq!(refused(&dir, "empty"), Refusal::Empty(path("empty")));
    assert_eq!(refused(&dir, "text"), Refusal::NotElf(path("text")));
    assert_eq!(refused(&dir, "plain"), Refusal::NotExecutable(path("plain")));
    assert_eq!(refused(&dir, "dangling"), Refusal::DanglingLink(path("dangling")));
    assert_eq!(refused(&dir, "fifo"), Refusal::NotRegular(path("fifo")));
    assert!(matches!(refused(&dir, "loop"), Refusal::Io(..)));
    assert!(matches!(refused(&dir, "text/x"), Refusal::Io(..)));
    assert!(matches!(refused(&dir, "nul\0"), Refusal::Io(..)));
    assert!(matches!(refused(&dir, &"l".repeat(5000)[..256]), Refusal::Io(..)));
}

#[test]
fn elf_files_of_the_wrong_kind() {
    let dir = TempDir::new();
    let bytes = fs::read(dir.program("p", &[])).unwrap();
    let patched = |name: &str, at: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        dir.file(name, bytes, 0o755);
        refused(&dir, name)
    };
    assert!(matches!(patched("class", 4, 1), Refusal::Bits32(_)));
    assert!(matches!(patched("data", 5, 2), Refusal::BigEndian(_)));
    assert!(matches!(patched("machine", 18, 183), Refusal::OtherMachine(_, name) if name == "aarch64"));
    assert!(matches!(patched("object", 16, 1), Refusal::NotAProgram(..)));
    assert!(matches!(patched("phnum", 56, 0), Refusal::Damaged(..)));
    assert!(matches!(patched("class9", 4, 9), Refusal::Damaged(..)));
    for len in [5, 40, 100, bytes.len() / 2] {
        dir.file("short", &bytes[..len], 0o755);
        assert!(matches!(refused(&dir, "short"), Refusal::Damaged(..)), "{len}");
    }
}

#[test]
fn static_programs_and_libraries() {
    let dir = TempDir::new();
    dir.program("static", &["-static"]);
    dir.program("static-pie", &["-static-pie"]);
    dir.program("bare", &["-nostdlib", "-static", "-Wl,-e,main"]);
    dir.program("lib.so", &["-shared", "-fPIC"]);
    for name in ["static", "static-pie", "bare"] {
        assert!(matches!(refused(&dir, name), Refusal::Static(_)), "{name}");
    }
    assert!(matches!(refused(&dir, "lib.so"), Refusal::SharedLibrary(_)));
    assert_eq!(
        refused(&dir, "static").to_string(),
        "vsrun: ./static: statically linked, so vsrun's library cannot be loaded into it; link it dynamically (without -static)"
    );
}

#[test]
fn privileged_programs() {
    let dir = TempDir::new();
    let set = |name: &str, mode| {
        let program = dir.program(name, &[]);
        fs::set_permissions(program, fs::Permissions::from_mode(mode)).unwrap();
    };
    set("suid", 0o4755);
    set("sgid", 0o2755);
    assert!(matches!(refused(&dir, "suid"), Refusal::SetId(_)));
    assert!(matches!(refused(&dir, "sgid"), Refusal::SetId(_)));
    let caps = dir.program("caps", &[]);
    let given = Command::new("/sbin/setcap").arg("cap_net_raw+ep").arg(&caps).status();
    if given.is_ok_and(|s| s.success()) {
        assert!(matches!(refused(&dir, "caps"), Refusal::Capabilities(_)));
    }
    let entry = |key: u64, value: u64| [key.to_ne_bytes(), value.to_ne_bytes()].concat();
    assert!(is_secure_exec(&[entry(6, 4096), entry(23, 1), entry(0, 0)].concat()));
    assert!(!is_secure_exec(&[entry(6, 23), entry(23, 0), entry(0, 0)].concat()));
    assert!(!is_secure_exec(&fs::read("/proc/self/auxv").unwrap()));
}

#[test]
fn loaders() {
    let dir = TempDir::new();
    let text = dir.file("text", "no loader", 0o755);
    dir.program("missing", &["-Wl,--dynamic-linker=/none/ld-linux-x86-64.so.2"]);
    dir.program("musl", &["-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"]);
    dir.program("broken", &[&format!("-Wl,--dynamic-linker={}", text.display())]);
    assert!(matches!(refused(&dir, "missing"), Refusal::LoaderMissing(..)));
    assert!(matches!(refused(&dir, "musl"), Refusal::NotGlibc(..)));
    assert!(matches!(refused(&dir, "broken"), Refusal::LoaderUnusable(..)));
}

#[test]
fn a_missing_library_is_named() {
    let dir = TempDir::new();
    let library = dir.compile("libgone.so", "c", "int f(void){return 0;}", &["-shared", "-fPIC"]);
    dir.compile("p", "c", "int f(void);int main(void){return f();}", &["-L.", "-lgone"]);
    fs::remove_file(library).unwrap();
    let line = refused(&dir, "p").to_string();
    assert_eq!(line, "vsrun: ./p: the shared library libgone.so is not found; install it or set LD_LIBRARY_PATH");
}

#[test]
fn scripts_run_their_interpreter() {
    let dir = TempDir::new();
    dir.file("s", "#!/bin/sh -e\n", 0o755);
    let launch = run(&dir, "./s", "").unwrap();
    assert_eq!(launch.exe, Path::new("/bin/sh").canonicalize().unwrap());
    assert_eq!(launch.program, dir.path().join("s"));
    assert_eq!(strings(&launch.argv), ["/bin/sh", "-e", "./s", "x\\x0ay", "\\xff"]);
    assert_eq!(launch.interpreter_chain, [PathBuf::from("/bin/sh")]);
    dir.file("t", "#!./s two words\n", 0o755);
    let launch = run(&dir, "t", ".").unwrap();
    assert_eq!(strings(&launch.argv), ["/bin/sh", "-e", "./s", "two words", "./t", "x\\x0ay", "\\xff"]);
    assert_eq!(launch.interpreter_chain, [PathBuf::from("./s"), PathBuf::from("/bin/sh")]);
}

/// The arguments are those that the kernel passes.
#[test]
fn scripts_as_the_kernel_runs_them() {
    let dir = TempDir::new();
    let print = "#include <stdio.h>\nint main(int c,char**v){for(int i=0;i<c;i++)puts(v[i]);}";
    dir.compile("print", "c", print, &[]);
    dir.file("s", "#!./print  -a b \n", 0o755);
    dir.file("t", "#! ./s\n", 0o755);
    for name in ["./s", "./t"] {
        let output = Command::new(name).current_dir(dir.path()).arg("last").output().unwrap();
        let launch = resolve(OsStr::new(name), &["last".into()], dir.path(), None).unwrap();
        let expected: Vec<_> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_string).collect();
        assert_eq!(strings(&launch.argv), expected);
    }
}

#[test]
fn scripts_that_cannot_run() {
    let dir = TempDir::new();
    dir.program("static", &["-static"]);
    dir.file("none", "#!/no/such\n", 0o755);
    dir.file("dos", "#!/bin/sh\r\n", 0o755);
    dir.file("blank", "#! \n", 0o755);
    dir.file("stat", "#!./static\n", 0o755);
    dir.file("self", "#!./self\n", 0o755);
    let cause = |name: &str| match refused(&dir, name) {
        Refusal::Script { cause, .. } => *cause,
        other => panic!("{other}"),
    };
    assert!(matches!(cause("none"), Refusal::NotFound(_)));
    assert!(refused(&dir, "dos").to_string().contains("DOS line ends"));
    assert!(matches!(cause("stat"), Refusal::Static(_)));
    assert!(matches!(refused(&dir, "blank"), Refusal::BadScript(..)));
    assert!(matches!(refused(&dir, "self"), Refusal::TooManyInterpreters(_)));
}

fn line(text: &str) -> (String, Option<String>) {
    let line = script_line(text.as_bytes()).unwrap().unwrap();
    (line.interpreter.to_str().unwrap().to_string(), line.argument.map(|a| a.into_string().unwrap()))
}

#[test]
fn first_lines_of_scripts_are_split_as_the_kernel_does() {
    assert_eq!(line("#!/bin/sh\necho"), ("/bin/sh".into(), None));
    assert_eq!(line("#! \t/usr/bin/env  python3 -u \t\nx"), ("/usr/bin/env".into(), Some("python3 -u".into())));
    assert_eq!(line("#!/bin/sh"), ("/bin/sh".into(), None));
    assert_eq!(line("#!/bin/sh\r\n"), ("/bin/sh\r".into(), None));
    assert_eq!(script_line(b"echo"), Ok(None));
    assert_eq!(script_line(b""), Ok(None));
}

#[test]
fn first_lines_of_scripts_are_refused() {
    assert!(script_line(b"#!\n/bin/sh").is_err());
    assert!(script_line(b"#!  \t").is_err());
    assert!(script_line([b"#!/".to_vec(), vec![b'a'; LINE_MAX - 3]].concat().as_slice()).is_err());
}
