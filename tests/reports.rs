//! Whole reports on buggy programs, as an engineer on call reads them: who, where, in which order, and why nobody can go on. What depends on
//! the machine is left out: frames of libc, ports of clients, counts of what libc does, times. `VSRUN_BLESS=1` writes the files anew; read them then.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles `tests/reports/NAME.c`, explores it with these options, and compares the report with `tests/reports/NAME.txt`.
fn compare(name: &str, options: &[&str]) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reports");
    let dir = std::env::temp_dir().join(format!("vsrun-reports-{name}-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("a temporary directory");
    let source = format!("{name}.c");
    fs::copy(sources.join(&source), dir.join(&source)).expect("the source");
    // Without optimization each function has a frame of its own, whatever the version of the compiler.
    let flags = ["-O0", "-g", "-pthread", "-o", name, &source];
    assert!(Command::new("gcc").args(flags).current_dir(&dir).status().expect("gcc").success());
    let report = |dir: &PathBuf| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vsrun"));
        // As short as it gets, however slow the machine is.
        command.args(["-j", "1", "--shrink", "100"]).args(options).arg(format!("./{name}")).current_dir(dir);
        let done = command.output().expect("vsrun runs");
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        assert_eq!(done.status.code(), Some(1), "{text}{}", String::from_utf8_lossy(&done.stderr));
        text
    };
    let text = report(&dir);
    let again = report(&dir);
    let files = fs::read_dir(&dir).expect("the directory").flatten();
    let scenarios = files.filter(|file| file.file_name().to_string_lossy().ends_with(".vsrun.json")).count();
    let _ = fs::remove_dir_all(&dir);
    assert_eq!((plain(&again), scenarios), (plain(&text), 1), "the same bug has one file");
    let golden = sources.join(format!("{name}.txt"));
    if std::env::var_os("VSRUN_BLESS").is_some() {
        fs::write(&golden, plain(&text)).expect("a file");
    }
    let expected = fs::read_to_string(&golden).expect("the report");
    assert!(plain(&text) == expected, "{} is not what was expected:\n{}", golden.display(), plain(&text));
}

/// A report without what depends on the machine.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines().filter(|line| !line.ends_with(" (libc.so.6)")) {
        if line.contains(" executions/s; ") || line.ends_with(" no place to switch") {
            continue;
        }
        let mut rest = line;
        while let Some((before, port)) = rest.split_once("127.0.0.1:") {
            let digits = port.chars().take_while(char::is_ascii_digit).count();
            let shown = if digits == 5 { "PORT" } else { &port[..digits] };
            out.push_str(&format!("{before}127.0.0.1:{shown}"));
            rest = &port[digits..];
        }
        out.push_str(rest);
        out.push('\n');
    }
    out
}

#[test]
fn a_pool_server_with_clients_whose_workers_lock_accounts_in_two_orders() {
    compare("pool_server", &["--search", "random", "--seed", "3"]);
}

#[test]
fn a_pre_forking_daemon_one_of_whose_children_is_killed_with_a_semaphore() {
    compare("prefork", &[]);
}

#[test]
fn a_handler_that_takes_the_lock_that_it_has_interrupted() {
    compare("handler", &[]);
}
