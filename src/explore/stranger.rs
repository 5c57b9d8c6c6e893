//! A scenario that somebody else has written, or another machine: what it would run is shown before it runs.

use std::io::{self, BufRead, IsTerminal};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::failure::Failure;
use crate::base::print::complain;
use crate::base::text::one_line;
use crate::incomplete::uncontrolled;
use crate::report::terminal::{shell_path, shell_word};
use crate::scenario::Scenario;

/// Shows what the scenario at `path` would run, and asks whether it is to.
///
/// # Errors
/// It is not to, or there is nobody to ask.
pub(super) fn ask(scenario: &Scenario, path: &Path) -> Result<(), Failure> {
    let file = shell_path(path);
    complain(&format!("vsrun: {file} was not written by your vsrun on this machine. To replay it is to run"));
    complain(&format!("  {}", one_line(&command(scenario))));
    for line in unusual(scenario, path) {
        complain(&format!("  {}", one_line(&line)));
    }
    let refused = || Failure::environment(format!("{file} was not replayed; --trust replays it without a question"));
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(refused());
    }
    complain("Run it? [y/N]");
    let mut answer = String::new();
    let _ = io::stdin().lock().read_line(&mut answer);
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(refused()),
    }
}

/// What a shell would be told.
fn command(scenario: &Scenario) -> String {
    let program = &scenario.program;
    let mut words = vec!["cd".to_string(), shell_word(program.cwd.as_bytes()), "&&".to_string()];
    words.push(shell_word(program.exe.as_bytes()));
    words.extend(program.argv.iter().skip(1).map(|arg| shell_word(arg.as_bytes())));
    words.join(" ")
}

/// What of it a reader would want to know before that.
fn unusual(scenario: &Scenario, path: &Path) -> Vec<String> {
    let (program, options) = (&scenario.program, &scenario.options);
    let folder = path.canonicalize().ok().and_then(|path| path.parent().map(Path::to_path_buf));
    let outside = |file: &Path| folder.as_ref().is_none_or(|folder| !file.starts_with(folder));
    let mut lines = Vec::new();
    if outside(Path::new(&program.exe)) {
        lines.push("the program is not in the scenario's folder".to_string());
    }
    if program.argv.first().is_some_and(|name| Path::new(name).file_name() != Path::new(&program.exe).file_name()) {
        lines.push(format!("its name is given as {}", shell_word(program.argv[0].as_bytes())));
    }
    for entry in program.env.iter().filter(|entry| changes_what_runs(entry.as_bytes())) {
        lines.push(format!("in its environment: {}", shell_word(entry.as_bytes())));
    }
    for client in &options.with {
        let words: Vec<_> = client.argv.iter().skip(1).map(|arg| shell_word(arg.as_bytes())).collect();
        lines.push(format!("beside it: {} {}", shell_word(client.exe.as_bytes()), words.join(" ")));
    }
    if options.real_files {
        lines.push("what it writes goes to the real files".to_string());
    }
    lines.extend(uncontrolled(options.uncontrolled));
    if nix::unistd::geteuid().is_root() {
        lines.push("it runs as root".to_string());
    }
    lines
}

/// Variables by which the loader, the shell or an interpreter takes other code than the program's.
fn changes_what_runs(entry: &[u8]) -> bool {
    const NAMES: [&[u8]; 9] = [
        b"BASH_ENV=",
        b"ENV=",
        b"GCONV_PATH=",
        b"GLIBC_TUNABLES=",
        b"PERL5LIB=",
        b"PERL5OPT=",
        b"PYTHONPATH=",
        b"PYTHONSTARTUP=",
        b"RUBYOPT=",
    ];
    entry.starts_with(b"LD_") || NAMES.iter().any(|name| entry.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Client, Options, Program};

    #[test]
    fn what_would_run_and_what_is_unusual() {
        let mut scenario = Scenario {
            program: Program {
                exe: "/home/me/work/prog".into(),
                argv: vec!["prog".into(), "a b".into()],
                cwd: "/tmp".into(),
                env: vec!["PATH=/bin".into(), "TERM=x".into()],
                ..Program::default()
            },
            fingerprint: serde_json::Value::Null,
            options: Options::default(),
            bug: crate::scenario::Shown { kind: crate::finding::BugKind::Crash, summary: String::new(), identity: 0 },
            found: crate::scenario::Found { search: String::new(), execution: 1, shortened: None },
            objects: Default::default(),
            people: Default::default(),
            steps: Vec::new(),
            then: None,
        };
        assert_eq!(command(&scenario), "cd /tmp && /home/me/work/prog 'a b'");
        scenario.program.env.push("LD_PRELOAD=./evil.so".into());
        scenario.options.with.push(Client { exe: "/bin/sh".into(), argv: vec!["sh".into(), "-c".into()] });
        scenario.options.real_files = true;
        scenario.program.argv[0] = "ls".into();
        let lines = unusual(&scenario, Path::new("/nowhere/else.json")).join("\n");
        for said in [
            "not in the scenario's folder",
            "given as ls",
            "LD_PRELOAD=./evil.so",
            "beside it: /bin/sh -c",
            "real files",
        ] {
            assert!(lines.contains(said), "{said} in {lines}");
        }
        assert!(!lines.contains("PATH=/bin"));
    }
}
