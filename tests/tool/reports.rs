//! Whole reports on buggy programs, as an engineer on call reads them: who, where, in which order, and why nobody can go on. What depends on
//! the machine is left out: frames of libc, ports of clients, counts of what libc does, times. `VSRUN_BLESS=1` writes the files anew; read them then.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles `tests/reports/NAME.c`, explores it with these options, and compares the report with `tests/reports/NAME.txt`.
fn compare(name: &str, options: &[&str]) {
    compare_from("tests/reports", name, options);
}

/// The same with a program from another directory.
fn compare_from(from: &str, name: &str, options: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = root.join("tests/reports");
    let base = std::env::temp_dir().join(format!("vsrun-reports-{name}-{:08}", std::process::id()));
    let dir = base.join("program");
    fs::create_dir_all(&dir).expect("a temporary directory");
    // Where the programs of c-tests look for it.
    let header = base.join("shim/include");
    fs::create_dir_all(&header).expect("a temporary directory");
    fs::copy(root.join("shim/include/vs.h"), header.join("vs.h")).expect("the header");
    let source = format!("{name}.c");
    fs::copy(root.join(from).join(&source), dir.join(&source)).expect("the source");
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
    let scenarios = |dir: &Path| {
        let files = fs::read_dir(dir).expect("the directory").flatten().map(|file| file.path());
        files.filter(|path| path.to_string_lossy().ends_with(".vsrun.json")).collect::<Vec<_>>()
    };
    // Directories of tests have names of the same length; so what stands beside them keeps its columns.
    let plain = |text: &str| plain(&text.replace(&*dir.to_string_lossy(), "DIR"));
    let text = report(&dir);
    if plain(&text).contains(LOOP) {
        // Where in its loop it was seen belongs to a divergence.
        scenarios(&dir).iter().for_each(|path| fs::remove_file(path).expect("a scenario"));
    }
    let again = report(&dir);
    let scenarios = scenarios(&dir).len();
    let _ = fs::remove_dir_all(&base);
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
        let line = without_line_of_header(&without_loop(line));
        let in_loop = out.trim_end().ends_with(LOOP);
        if in_loop && (line.trim() == LOOP || line.starts_with("                 ")) {
            continue;
        }
        let mut rest = line.as_str();
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

/// Where in its endless loop the robot controller is when its time is up: the functions, and what stands for any of their lines.
const IN_LOOP: [&str; 2] = ["table_take robot_controller.c:", "table_slot robot_controller.c:"];
const LOOP: &str = "LOOP";

fn without_loop(line: &str) -> String {
    let Some((at, name)) = IN_LOOP.iter().filter_map(|name| Some((line.find(name)?, name))).min() else {
        return line.to_string();
    };
    format!("{}{LOOP}{}", &line[..at], line[at + name.len()..].trim_start_matches(|c: char| c.is_ascii_digit()))
}

/// The line of vs.h at which a function of it stands, which each addition to that file moves.
fn without_line_of_header(line: &str) -> String {
    const HEADER: &str = "vs.h:";
    let Some((before, rest)) = line.split_once(HEADER) else { return line.to_string() };
    format!("{before}{HEADER}LINE{}", rest.trim_start_matches(|c: char| c.is_ascii_digit()))
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

#[test]
fn a_supervisor_that_waits_in_select_for_what_its_handler_has_noted() {
    compare("supervisor", &[]);
}

#[test]
fn an_order_system_whose_queues_fill_up() {
    compare("orders", &[]);
}

#[test]
fn a_ledger_that_is_replaced_while_others_wait_for_the_lock_of_the_old_one() {
    compare("ledger", &[]);
}

#[test]
fn a_robot_controller_one_of_whose_robots_looks_for_an_object_that_is_gone() {
    let options = ["--search", "random", "--seed", "3", "--race", "off", "--divergence-timeout", "0.5"];
    compare_from("c-tests", "robot_controller", &options);
}
