//! `vs_check` of vs.h: tests of a test program that become explorations, with gcc, g++ and the vsrun binary.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

struct Place(PathBuf);

/// How a program ended.
#[derive(Debug)]
struct End {
    code: i32,
    out: String,
    err: String,
}

fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("shim/include")
}

impl Place {
    fn new(test: &str, compiler: &[&str]) -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-checks-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary directory");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/checks/suite.c");
        let mut command = Command::new(compiler[0]);
        command
            .args(&compiler[1..])
            .args(["-O1", "-g", "-pthread", "-Wall", "-Wextra", "-Werror", "-I"])
            .arg(include());
        assert!(command.arg("-o").arg(dir.join("suite")).arg(source).status().expect("a compiler").success());
        Place(dir)
    }

    fn run(&self, program: &str, arguments: &[&str], vsrun: &str) -> End {
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", "100", program]).args(arguments);
        command.current_dir(&self.0).stdin(Stdio::null()).env("VSRUN", vsrun).env_remove("VS_CHECK_OPTIONS");
        let output = command.output().expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        End { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }

    /// The test program, with that test, and vsrun.
    fn test(&self, which: &str) -> End {
        self.run("./suite", &[which], env!("CARGO_BIN_EXE_vsrun"))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_test_is_explored() {
    for compiler in [&["gcc"][..], &["g++", "-x", "c++"]] {
        let place = Place::new(compiler[0], compiler);
        let right = place.test("right");
        assert_eq!((right.code, right.out.as_str()), (0, "native 0, no scenario\n"), "{right:?}");
        assert!(right.err.contains("vs_check(counts)") && right.err.contains(": explored completely, "), "{right:?}");
        // As the last lines of its report say, from a directory that is not the program's, too.
        let wrong = place.test("wrong");
        assert_eq!(wrong.code, 1, "{wrong:?}");
        assert!(wrong.err.contains("ASSERTION") && wrong.err.contains(": BUG, "), "{wrong:?}");
        let scenario = wrong.out.trim_end().strip_prefix("native 0, ").expect("a scenario").to_string();
        let again = place.run(env!("CARGO_BIN_EXE_vsrun"), &["replay", "--output", "printed", &scenario], "");
        assert!(again.code == 1 && again.out.contains("total == setup->threads"), "{again:?}");
    }
}

#[test]
fn the_call_that_is_meant_is_the_one_that_runs() {
    let place = Place::new("both", &["gcc"]);
    let both = place.test("both");
    assert_eq!(both.code, 1, "{both:?}");
    let lines: Vec<&str> = both.err.lines().filter(|line| line.starts_with("vs_check(")).collect();
    assert!(lines.len() == 2 && lines[0].contains("completely") && lines[1].contains("BUG"), "{lines:?}");
}

#[test]
fn what_could_not_be_explored_is_no_success() {
    let place = Place::new("not", &["gcc"]);
    for which in ["missed", "left", "other"] {
        let end = place.test(which);
        assert_eq!((end.code, end.out.as_str()), (2, "native 0, no scenario\n"), "{which}: {end:?}");
        assert!(end.err.contains("could not be explored"), "{which}: {end:?}");
    }
    let end = place.test("options");
    assert!(end.code == 2 && end.err.contains("no-such-option"), "{end:?}");
    let end = place.test("endless");
    assert!(end.code == 2 || end.code == 3, "{end:?}");
    assert!(!end.err.contains("explored completely,"), "{end:?}");
    let none = place.run("./suite", &["right"], "./no-such-vsrun");
    assert_eq!(none.code, 2, "{none:?}");
}

#[test]
fn without_vsrun_it_runs_natively_and_under_vsrun_as_a_part_of_the_program() {
    let place = Place::new("native", &["gcc"]);
    let native = place.run("./suite", &["right"], "");
    assert_eq!((native.code, native.out.as_str()), (0, "counted 3\nnative 1, no scenario\n"), "{native:?}");
    let output =
        Command::new("./suite").arg("right").current_dir(&place.0).env("VSRUN", "").env("VS_CHECK_RUNS", "3").output();
    assert_eq!(String::from_utf8_lossy(&output.expect("it runs").stdout).matches("counted 3").count(), 3);
    let whole = place.run(env!("CARGO_BIN_EXE_vsrun"), &["--output", "printed", "./suite", "wrong"], "");
    assert!(whole.code == 1 && whole.out.starts_with("ASSERTION"), "{whole:?}");
}

/// Where POSIX is hidden there is no vs_check, and all else is as it was.
#[test]
fn the_rest_of_the_header_needs_no_posix() {
    let dir = std::env::temp_dir().join(format!("vsrun-checks-strict-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("a temporary directory");
    let source = dir.join("strict.c");
    let text = "#include \"vs.h\"\n#ifdef vs_check\n#error there\n#endif\nint main(void) { VS_assert(VS_toss(3) >= 0); return 0; }\n";
    fs::write(&source, text).expect("a file");
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(include())
        .arg("-o")
        .arg(dir.join("strict"))
        .arg(&source);
    let compiled = gcc.status().expect("gcc").success();
    let _ = fs::remove_dir_all(&dir);
    assert!(compiled);
}
