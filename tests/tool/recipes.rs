//! The recipes of docs/TESTING.md, run as they stand there. A block whose first line names files (`c ctest/queue_test.c`) is written to them; one that begins
//! with `sh NAME` is what is typed in directory NAME.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PAGE: &str = include_str!("../../docs/TESTING.md");

/// The blocks of the page: the words behind the fence, and the lines.
fn blocks() -> Vec<(Vec<&'static str>, String)> {
    let mut all = Vec::new();
    let mut lines = PAGE.lines();
    while let Some(line) = lines.next() {
        if let Some(words) = line.strip_prefix("```") {
            let text: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            all.push((words.split_whitespace().collect(), text.join("\n") + "\n"));
        }
    }
    all
}

struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn is_there(command: &[&str]) -> bool {
    let output = Command::new(command[0]).args(&command[1..]).stdin(Stdio::null()).output();
    output.is_ok_and(|output| output.status.success())
}

/// Runs a recipe. What it prints; `None`: a tool is missing, which is said.
fn run(recipe: &str, tool: &[&str]) -> Option<String> {
    if !is_there(tool) {
        eprintln!("skipped: there is no {}", tool.join(" "));
        return None;
    }
    let place = Place(std::env::temp_dir().join(format!("vsrun-recipes-{recipe}-{}", std::process::id())));
    let dir = place.0.join(recipe);
    fs::create_dir_all(&dir).expect("a directory");
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("shim/include/vs.h");
    fs::copy(header, dir.join("vs.h")).expect("the header");
    let mut typed = String::new();
    for (words, text) in blocks() {
        if words[..] == ["sh", recipe] {
            typed += &text;
        }
        for file in words.iter().skip(1).filter(|file| file.starts_with(&format!("{recipe}/"))) {
            let path = place.0.join(file);
            fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
            fs::write(path, &text).expect("a file");
        }
    }
    assert!(!typed.is_empty(), "docs/TESTING.md has no recipe {recipe}");
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "100", "sh", "-euc", &typed]).current_dir(&dir).stdin(Stdio::null());
    let output =
        command.env("VSRUN", env!("CARGO_BIN_EXE_vsrun")).env_remove("CARGO_TARGET_DIR").output().expect("a shell");
    let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{printed}");
    Some(printed)
}

#[test]
fn ctest() {
    if let Some(printed) = run("ctest", &["cmake", "--version"]) {
        assert!(printed.contains("100% tests passed"), "{printed}");
    }
}

#[test]
fn pytest() {
    if let Some(printed) = run("pytest", &["python3", "-c", "import pytest"]) {
        assert!(printed.contains("2 passed"), "{printed}");
    }
}

#[test]
fn cargo() {
    if let Some(printed) = run("cargo", &["cargo", "--version"]) {
        assert!(printed.contains("1 passed"), "{printed}");
    }
}

/// The test of the recipes can fail: without the wake-up a thread waits for ever.
#[test]
fn the_test_of_the_recipes_can_fail() {
    let place = Place(std::env::temp_dir().join(format!("vsrun-recipes-fails-{}", std::process::id())));
    fs::create_dir_all(&place.0).expect("a directory");
    let (_, text) = blocks().into_iter().find(|(words, _)| words.contains(&"ctest/queue_test.c")).expect("the program");
    let wrong = text.replace("    pthread_cond_signal(&not_empty);\n", "");
    assert_ne!(text, wrong);
    let source = place.0.join("queue_test.c");
    fs::write(&source, wrong).expect("a file");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("shim/include");
    let mut gcc = Command::new("gcc");
    gcc.args(["-g", "-pthread", "-I"]).arg(include).arg("-o").arg(place.0.join("queue_test")).arg(&source);
    assert!(gcc.status().expect("gcc").success());
    let mut command = Command::new("timeout");
    command
        .args(["-s", "KILL", "100", "./queue_test", "keeps_all"])
        .current_dir(&place.0)
        .env("VSRUN", env!("CARGO_BIN_EXE_vsrun"));
    let output = command.output().expect("it runs");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("DEADLOCK"), "{output:?}");
}
