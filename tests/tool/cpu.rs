//! The processor that programs see (`--cpu`): what libc and its loader choose, what is hidden from the program, which scenarios and saved searches run on
//! another one. With the vsrun binary.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use vsrun::scenario::Scenario;

/// A directory with the program, removed at the end.
struct Place(PathBuf);

impl Place {
    fn new(test: &str, flags: &[&str]) -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-cpu-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary directory");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cpu/program.c");
        let mut gcc = Command::new("gcc");
        gcc.args(["-O1", "-g", "-o"]).arg(dir.join("program")).arg(source).args(["-lpthread", "-ldl"]).args(flags);
        assert!(gcc.status().expect("gcc").success());
        Place(dir)
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command.arg("120").arg(program).args(arguments).current_dir(&self.0).stdin(Stdio::null());
        command
    }

    /// Exit status, and all that vsrun said.
    fn run(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.command(env!("CARGO_BIN_EXE_vsrun"), arguments).output().expect("vsrun");
        let said = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&said).into_owned())
    }

    /// A scenario of the bug, and its file.
    fn scenario(&self, arguments: &[&str]) -> (PathBuf, Scenario) {
        let all = [arguments, &["--scenario-dir", ".", "./program", "bug"]].concat();
        let (code, said) = self.run(&all);
        assert!(code == 1 && said.contains("it is found"), "{code}: {said}");
        let files = fs::read_dir(&self.0).expect("a directory").flatten().map(|entry| entry.path());
        let file = files.filter(|path| path.extension().is_some_and(|e| e == "json")).last().expect("a scenario");
        let scenario = Scenario::load(&file).expect("the file");
        (file, scenario)
    }

    /// The same, as if it had been found on another processor.
    fn found_elsewhere(&self, arguments: &[&str]) -> (PathBuf, Scenario) {
        let (file, mut scenario) = self.scenario(arguments);
        let cpu = scenario.options.cpu.as_mut().expect("a processor");
        assert!(cpu.model.contains("family"), "{cpu:?}");
        cpu.model = "Another Processor (family 6)".into();
        fs::write(&file, scenario.to_json()).expect("room");
        (file, scenario)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What loaders have chosen by the processor since glibc 2.33: the best of these directories that it can run.
#[test]
fn the_loader_chooses_as_on_x86_64_v2() {
    let place = Place::new("loader", &[]);
    for level in ["x86-64-v2", "x86-64-v3", "x86-64-v4"] {
        let dir = place.0.join("glibc-hwcaps").join(level);
        fs::create_dir_all(&dir).expect("a directory");
        let source = dir.join("level.c");
        fs::write(&source, format!("const char *level(void) {{ return \"{level}\"; }}\n")).expect("room");
        let mut gcc = Command::new("gcc");
        gcc.args(["-shared", "-fPIC", "-o"]).arg(dir.join("libchosen.so")).arg(source);
        assert!(gcc.status().expect("gcc").success());
    }
    let chosen = |program: &str, options: &[&str]| {
        let all = [options, &["./program", "library"]].concat();
        let all = if program == "./program" { vec!["library"] } else { all };
        let mut command = place.command(program, &all);
        let output = command.env("LD_LIBRARY_PATH", &place.0).output().expect("a program");
        match options.is_empty() {
            true => String::from_utf8_lossy(&output.stdout).into_owned(),
            false => fs::read_to_string(place.0.join("out")).expect("its output"),
        }
    };
    let vsrun = env!("CARGO_BIN_EXE_vsrun");
    let native = chosen("./program", &[]);
    // On a machine that has no more than that the first one says little.
    assert_eq!(chosen(vsrun, &["--once", "--output", "out"]), "x86-64-v2\n");
    assert_eq!(chosen(vsrun, &["--cpu", "baseline", "--once", "--output", "out"]), "x86-64-v2\n");
    assert_eq!(chosen(vsrun, &["--cpu", "native", "--once", "--output", "out"]), native);
}

#[test]
fn the_program_sees_the_environment_that_it_has_natively() {
    let place = Place::new("environment", &[]);
    let more = "glibc.malloc.tcache_count=3";
    for env in [vec![], vec![("A", "b"), ("C", "")], vec![("A", "b"), ("GLIBC_TUNABLES", more), ("C", "d")]] {
        let shown = |program: &str, arguments: &[&str]| {
            let mut command = place.command(program, arguments);
            let output =
                command.env_clear().env("PATH", "/usr/bin:/bin").envs(env.clone()).output().expect("a program");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let native = shown("./program", &["environment"]);
        assert!(native.contains("child: PATH=") && native.contains("it, by /proc: PATH="), "{native}");
        for cpu in ["baseline", "native"] {
            shown(
                env!("CARGO_BIN_EXE_vsrun"),
                &["--cpu", cpu, "--once", "--output", "out", "./program", "environment"],
            );
            let seen = fs::read_to_string(place.0.join("out")).expect("its output");
            let sorted = |text: &str| {
                let mut lines: Vec<String> = text.lines().map(String::from).collect();
                lines.sort();
                lines
            };
            // glibc before 2.39 cuts its tunables apart where they stand.
            let by_proc =
                |line: &String| !(line.contains("by /proc: GLIBC_TUNABLES=") || line.contains("by /proc: glibc."));
            let kept = |text: &str| sorted(text).into_iter().filter(by_proc).collect::<Vec<_>>();
            assert_eq!(kept(&seen), kept(&native), "{cpu}, {env:?}");
            let own = ["libvsrun", "hwcaps", "x86_"];
            assert!(!own.iter().any(|word| seen.contains(word)), "{cpu}, {env:?}: {seen}");
        }
    }
}

#[test]
fn what_is_native_is_refused_on_another_processor() {
    let place = Place::new("refused", &[]);
    let (file, scenario) = place.found_elsewhere(&["--cpu", "native"]);
    assert!(scenario.options.cpu.is_some_and(|cpu| !cpu.baseline && !cpu.trapped));
    let (code, said) = place.run(&["replay", "--trust", &file.to_string_lossy()]);
    let expected = "it was recorded with --cpu native on another processor, Another Processor (family 6), and this is ";
    assert!(code == 2 && said.contains(expected) && said.contains("--cpu baseline"), "{code}: {said}");
}

#[test]
fn what_is_of_the_baseline_runs_on_another_processor() {
    let place = Place::new("elsewhere", &[]);
    let (file, mut scenario) = place.found_elsewhere(&[]);
    let cpu = scenario.options.cpu.take().expect("a processor");
    assert!(cpu.baseline);
    let (code, said) = place.run(&["replay", "--trust", &file.to_string_lossy()]);
    assert!(code == 1 && said.contains("it is found"), "{code}: {said}");
    // Where both trap cpuid nothing is left to say.
    assert_eq!(said.contains("recorded on another processor, Another Processor (family 6); "), !cpu.trapped, "{said}");
    // One of a vsrun that knew nothing of this is the machine's, and not refused.
    fs::write(&file, scenario.to_json()).expect("room");
    let (code, said) = place.run(&["replay", "--trust", &file.to_string_lossy()]);
    assert!(code == 1 && said.contains("it is found") && !said.contains("another processor"), "{code}: {said}");
}

#[test]
fn a_saved_search_goes_on_with_the_same_choice() {
    let place = Place::new("saved", &[]);
    let once = ["--max-executions", "1", "--keep-going", "--search", "naive"];
    let (code, said) = place.run(&[&once[..], &["--cpu", "native", "--save", "state", "./program", "bug"]].concat());
    assert!(code == 1 || code == 3, "{code}: {said}");
    let resume = ["--keep-going", "--search", "naive", "--resume", "state", "./program", "bug"];
    let (code, said) = place.run(&resume);
    assert!(code == 2 && said.contains("it was saved with another --cpu"), "{code}: {said}");
    let (code, said) = place.run(&[&["--cpu", "native"], &resume[..]].concat());
    assert_eq!(code, 1, "{said}");
}

#[test]
fn random_numbers_of_the_processor_are_named() {
    let asks = Place::new("random", &["-DRANDOM"]);
    let (_, said) = asks.run(&["--scenario-dir", ".", "./program", "bug"]);
    let expected =
        "program has 1 of the instructions by which the processor gives random numbers (rdrand, rdseed), the first in asks: ";
    assert!(said.contains(expected), "{said}");
    let does_not = Place::new("no-random", &[]);
    let (_, said) = does_not.run(&["--scenario-dir", ".", "./program", "bug"]);
    assert!(!said.contains("rdrand"), "{said}");
}
