//! What some programs need to run under vsrun, found out and set up: interpreters of Python behind launchers, and AddressSanitizer. Their own
//! reports become the line about a bug.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use super::failure::Failure;
use super::replay::{replay, Replayed};
use crate::base::{files, surroundings};
use crate::binary::{self, preflight::Launch};
use crate::config::{Config, Format, Replay, Words};
use crate::finding::Bug;

/// Bytes of a program, or of what it prints, that are looked at.
const MOST: u64 = 64 << 20;

/// What is run, and what was done for that.
pub(super) struct Recipe {
    pub program: Vec<OsString>,
    pub with: Vec<Words>,
    /// What its threads do to memory is the interpreter's, or looked at by the program itself: vsrun does not watch it.
    pub unwatched: bool,
    /// The program reports errors of memory itself.
    pub sanitized: bool,
    /// Lines about it.
    pub notes: Vec<String>,
}

/// Looks at the programs of a configuration, and sets up the environment that all of them get.
///
/// # Errors
/// One of them cannot be run.
pub(super) fn prepare(config: &Config) -> Result<Recipe, Failure> {
    let mut notes = Vec::new();
    let (program, launch) = found(&config.program, &mut notes)?;
    let mut with = Vec::new();
    let mut any_python = is_python(&launch.exe);
    let mut sanitized = is_sanitized(&launch.exe);
    for Words(words) in &config.with {
        let (words, launch) = found(words, &mut notes)?;
        any_python |= is_python(&launch.exe);
        sanitized |= is_sanitized(&launch.exe);
        with.push(Words(words));
    }
    if any_python {
        set_unless_set("PYTHONDONTWRITEBYTECODE", "1", &mut notes);
        set_unless_set("PYTHONHASHSEED", "0", &mut notes);
    }
    if sanitized {
        // What the user says comes later, and counts.
        let own = "verify_asan_link_order=0:abort_on_error=1:detect_leaks=0";
        let options = match env::var_os("ASAN_OPTIONS").filter(|given| !given.is_empty()) {
            Some(given) => [OsStr::new(own), &given].join(OsStr::new(":")),
            None => own.into(),
        };
        notes.push(format!("AddressSanitizer: ASAN_OPTIONS={}", options.to_string_lossy()));
        surroundings::set_variable("ASAN_OPTIONS", &options);
    }
    let unwatched = is_python(&launch.exe) || is_sanitized(&launch.exe);
    Ok(Recipe { program, with, unwatched, sanitized, notes })
}

fn set_unless_set(name: &str, value: &str, notes: &mut Vec<String>) {
    if env::var_os(name).is_none() {
        surroundings::set_variable(name, OsStr::new(value));
        notes.push(format!("Python: {name}={value}"));
    }
}

/// A command as it is to be run, and what that executes. A launcher of Python that is a script (of a version manager) would hand over to the
/// interpreter only later, and is left out.
fn found(words: &[OsString], notes: &mut Vec<String>) -> Result<(Vec<OsString>, Launch), Failure> {
    let launch = resolved(words)?;
    // A script begins `#!/usr/bin/env python3`.
    let through_env = launch.exe.file_name() == Some(OsStr::new("env")) && launch.argv.len() > 1;
    let (launcher, rest) = match through_env {
        true => (&launch.argv[1], &launch.argv[2..]),
        false => (&words[0], &words[1..]),
    };
    let named = Path::new(launcher).file_name().is_some_and(|name| name.as_bytes().starts_with(b"python"));
    if !named || !through_env && launch.interpreter_chain.is_empty() {
        return Ok((words.to_vec(), launch));
    }
    let Some(real) = interpreter(launcher) else { return Ok((words.to_vec(), launch)) };
    notes.push(format!("Python: {} is run instead of {}", real.display(), launcher.to_string_lossy()));
    let words: Vec<OsString> = std::iter::once(real.into_os_string()).chain(rest.iter().cloned()).collect();
    let launch = resolved(&words)?;
    Ok((words, launch))
}

fn resolved(words: &[OsString]) -> Result<Launch, Failure> {
    let cwd = surroundings::cwd().map_err(|e| Failure::environment(format!("the current directory: {e}")))?;
    let (program, args) = words.split_first().ok_or_else(|| Failure::environment("no program given"))?;
    let path = env::var_os("PATH");
    binary::resolve(program, args, &cwd, path.as_deref()).map_err(|refusal| Failure::environment(refusal.message()))
}

/// The interpreter behind a launcher, as it says itself.
fn interpreter(launcher: &OsStr) -> Option<PathBuf> {
    let mut command = Command::new(launcher);
    command.args(["-c", "import sys; print(sys.executable)"]).stdin(Stdio::null()).stderr(Stdio::null());
    let printed = command.output().ok().filter(|output| output.status.success())?.stdout;
    let path = PathBuf::from(OsString::from_vec(printed.trim_ascii_end().to_vec()));
    path.is_absolute().then_some(path)
}

fn is_python(exe: &Path) -> bool {
    exe.file_name().is_some_and(|name| name.as_bytes().starts_with(b"python"))
}

/// It was built with AddressSanitizer: it has, or asks for, the function that begins it.
fn is_sanitized(exe: &Path) -> bool {
    const BEGINS: &[u8] = b"__asan_init";
    files::read(exe, MOST).is_ok_and(|bytes| bytes.windows(BEGINS.len()).any(|window| window == BEGINS))
}

/// Replays the scenario of a bug, once: what a sanitizer has printed there becomes the line about it, and what does not come again is told.
pub(super) fn tell(bug: &mut Bug, config: &Config, sanitized: bool) {
    let Some(file) = bug.scenario.clone() else { return };
    let Ok((printed, _)) = files::temporary(&env::temp_dir()) else { return };
    let (watch, format) = (config.watch.clone(), Format::Text);
    let args = Replay {
        no_supervisor: false,
        watch,
        until: None,
        relaxed: false,
        trust: true,
        output: Some(printed.clone()),
        format,
        file,
    };
    let came = replay(&args);
    let output = fs::read(&printed).unwrap_or_default();
    // It lies in a directory for such files: it does no harm where it stays.
    let _ = fs::remove_file(&printed);
    match came {
        Ok(Replayed::Same(..)) => {}
        Ok(Replayed::Otherwise(other)) => {
            bug.summary = format!("{} (a replay went another way: {})", bug.summary, other.line)
        }
        _ => return,
    }
    if let Some(line) = said(&output).filter(|_| sanitized) {
        bug.summary = format!("{line} ({})", bug.summary);
    }
}

/// The line in which a sanitizer says what is wrong.
fn said(output: &[u8]) -> Option<String> {
    let output = String::from_utf8_lossy(output);
    let begins = |line: &str| line.find("ERROR: AddressSanitizer: ").or_else(|| line.find("runtime error: "));
    let line = output.lines().find_map(|line| Some(line[begins(line)?..].trim_end().to_string()))?;
    Some(line.strip_prefix("ERROR: ").unwrap_or(&line).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sanitizer_says() {
        let text =
            b"hello\n==1001==ERROR: AddressSanitizer: heap-use-after-free on address 0x1 at pc 0x2\nREAD of size 4\n";
        assert_eq!(said(text).as_deref(), Some("AddressSanitizer: heap-use-after-free on address 0x1 at pc 0x2"));
        assert_eq!(
            said(b"a.c:3:5: runtime error: signed integer overflow\n").as_deref(),
            Some("runtime error: signed integer overflow")
        );
        assert_eq!(said(b"nothing\n"), None);
    }
}
