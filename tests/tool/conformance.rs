//! The programs of `tests/conformance`: small checks of system and library calls, one a line. What they print natively is the truth;
//! under vsrun they must print the same. What is known to differ is in [`KNOWN`], with a reason: the test fails too when one of
//! these begins to agree.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// One run may take so long.
const LIMIT: Duration = Duration::from_secs(60);

/// A line, or all lines that begin so, that differ: its program, how it begins, why.
const KNOWN: &[(&str, &str, &str)] =
    &[("fds", "sockets/mmap of a TCP socket", "receiving without copies (tcp_mmap) is not modelled")];

/// Groups of checks that vsrun refuses: its program, its name, what the refusal says.
const REFUSED: &[(&str, &str, &str)] = &[
    ("fds", "locks", "system call flock on a pipe"),
    ("fds", "record_locks", "system call fcntl on a pipe"),
    ("processes", "death_signal", "PR_SET_PDEATHSIG"),
    ("processes", "subreaper", "PR_SET_CHILD_SUBREAPER"),
    ("threads", "protect", "PTHREAD_PRIO_PROTECT"),
];

/// A directory that goes away with this value.
struct TempDir(PathBuf);

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a command to its end with its output in a file of `dir`; that output, and its exit status.
fn run(command: &mut Command, dir: &Path) -> Result<(String, Option<i32>), String> {
    let path = dir.join("output");
    let file = || File::options().create(true).append(true).open(&path).map_err(|e| e.to_string());
    let _ = fs::remove_file(&path);
    command.stdin(Stdio::null()).stdout(file()?).stderr(file()?).process_group(0);
    let mut child = command.spawn().map_err(|e| format!("{:?}: {e}", command.get_program()))?;
    let since = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            break status;
        }
        if since.elapsed() > LIMIT {
            let _ = child.kill();
            let _ = child.wait();
            return Err("no end within its time".into());
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    Ok((String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).into_owned(), status.code()))
}

fn compile(source: &Path, dir: &Path) -> Result<PathBuf, String> {
    let binary = dir.join(source.file_stem().unwrap_or_default());
    let mut command = Command::new("gcc");
    command.args(["-O1", "-Wall", "-Wno-nonnull", "-o"]).arg(&binary).arg(source).args(["-lpthread", "-lrt"]);
    match run(&mut command, dir)? {
        (_, Some(0)) => Ok(binary),
        (said, _) => Err(format!("does not compile: {said}")),
    }
}

/// What one execution of the program prints, and what vsrun says of it.
fn explored(binary: &Path, groups: &[String], dir: &Path) -> Result<(String, String), String> {
    let shown = dir.join("shown");
    let mut command = Command::new(env!("CARGO_BIN_EXE_vsrun"));
    command.args(["--once", "--allow-misuse", "--output"]).arg(&shown).arg(binary).args(groups);
    let (said, _) = run(command.current_dir(dir), dir)?;
    Ok((fs::read_to_string(shown).unwrap_or_default(), said))
}

/// The lines of a program by their names, in order. A name that is there several times gets a number.
fn lines(text: &str) -> Vec<(String, String)> {
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    let mut all = Vec::new();
    for line in text.lines() {
        let (name, result) = line.split_once(": ").unwrap_or((line, ""));
        let times = seen.entry(name).or_insert(0);
        *times += 1;
        let name = if *times == 1 { name.to_string() } else { format!("{name} #{times}") };
        all.push((name, result.to_string()));
    }
    all
}

/// What is wrong with a program.
fn judge(source: &Path, dir: &Path) -> Result<(usize, String), String> {
    let program = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    fs::create_dir_all(dir).map_err(|e| e.to_string())?;
    let binary = compile(source, dir)?;
    let refused: Vec<_> = REFUSED.iter().filter(|r| r.0 == program).collect();
    let left_out: Vec<String> = refused.iter().map(|r| format!("-{}", r.1)).collect();
    let (native, status) = run(Command::new(&binary).args(&left_out).current_dir(dir), dir)?;
    if status != Some(0) {
        return Err(format!("natively it ends with {status:?}, after {:?}", native.lines().last()));
    }
    let (ours, said) = explored(&binary, &left_out, dir)?;
    let (native, ours) = (lines(&native), lines(&ours));
    let known: Vec<_> = KNOWN.iter().filter(|k| k.0 == program).collect();
    let mut differs = vec![false; known.len()];
    let mut wrong = String::new();
    let given: BTreeMap<_, _> = ours.iter().cloned().collect();
    for (name, result) in &native {
        let got = given.get(name);
        if got == Some(result) {
            continue;
        }
        match known.iter().position(|k| name.starts_with(k.1)) {
            Some(k) => differs[k] = true,
            None => drop(writeln!(wrong, "  {name}: natively {result}, under vsrun {}", got.map_or("nothing", |g| g))),
        }
    }
    let names: BTreeMap<_, _> = native.iter().cloned().collect();
    for (name, result) in ours.iter().filter(|(name, _)| !names.contains_key(name)) {
        let _ = writeln!(wrong, "  {name}: natively nothing, under vsrun {result}");
    }
    for (k, _) in known.iter().zip(&differs).filter(|(_, differs)| !**differs) {
        let _ = writeln!(wrong, "  {} does not differ any more", k.1);
    }
    if !said.starts_with("Verdict: no bug found") {
        let _ = writeln!(wrong, "  vsrun says: {said}");
    }
    for (_, group, words) in refused {
        let (_, said) = explored(&binary, &[format!("+{group}")], dir)?;
        if !said.contains("unsupported") || !said.contains(words) {
            let _ = writeln!(wrong, "  {group} is not refused any more: {said}");
        }
    }
    Ok((native.len(), wrong))
}

#[test]
fn calls_answer_as_natively() {
    let temp = TempDir(std::env::temp_dir().join(format!("vsrun-conformance-{}", std::process::id())));
    let sources = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance")).expect("the programs");
    let mut sources: Vec<_> = sources.flatten().map(|e| e.path()).collect();
    sources.retain(|p| p.extension().is_some_and(|e| e == "c"));
    sources.sort();
    assert!(sources.len() > 1, "the programs were not found");
    let run = |source: &PathBuf| {
        let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let outcome = judge(source, &temp.0.join(&name)).unwrap_or_else(|e| (0, format!("  {e}\n")));
        (name, outcome)
    };
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let halves = sources.chunks(sources.len().div_ceil(2));
        let threads: Vec<_> = halves.map(|h| scope.spawn(|| h.iter().map(run).collect::<Vec<_>>())).collect();
        threads.into_iter().flat_map(|t| t.join().expect("it ends")).collect()
    });
    let wrong: String = outcomes
        .iter()
        .filter(|(_, (_, wrong))| !wrong.is_empty())
        .map(|(name, (_, wrong))| format!("{name}:\n{wrong}"))
        .collect();
    let checks: usize = outcomes.iter().map(|(_, (n, _))| n).sum();
    assert!(wrong.is_empty(), "of {checks} checks:\n{wrong}");
    println!("{checks} checks in {} programs", outcomes.len());
}

/// What the kernel tells of a process that others could change: its nice value, policy, processors, limits, group, state.
fn account(pid: u32) -> Vec<String> {
    let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let stat = read("stat");
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let of = |at: usize| fields.get(at).map_or_else(String::new, ToString::to_string);
    let status = read("status");
    let cpus = status.lines().find(|l| l.starts_with("Cpus_allowed:")).unwrap_or("").to_string();
    // State, group, session, priority, nice value; real-time priority and policy (man 5 proc).
    [0, 2, 3, 15, 16, 37, 38].into_iter().map(of).chain([cpus, read("limits")]).collect()
}

#[test]
fn a_process_outside_is_not_touched() {
    let temp = TempDir(std::env::temp_dir().join(format!("vsrun-outside-{}", std::process::id())));
    fs::create_dir_all(&temp.0).expect("a directory");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/outside/outside.c");
    let binary = compile(&source, &temp.0).expect("it compiles");
    let mut decoy = Command::new("sleep").arg("300").process_group(0).spawn().expect("a decoy");
    std::thread::sleep(Duration::from_millis(50));
    let before = account(decoy.id());
    let outcome = explored(&binary, &[decoy.id().to_string()], &temp.0);
    let after = account(decoy.id());
    let alive = decoy.try_wait().is_ok_and(|status| status.is_none());
    let _ = decoy.kill();
    let _ = decoy.wait();
    let (lines, said) = outcome.expect("vsrun runs");
    assert!(alive, "the decoy is dead: {lines}");
    assert_eq!(before, after, "the decoy was changed: {lines}");
    assert_eq!(lines.lines().count(), 22, "{lines}{said}");
    let refused = ["ESRCH", "ECHILD", "EPERM", "ENOSYS", "EINVAL"];
    let reached: Vec<_> = lines.lines().filter(|l| !refused.iter().any(|e| l.ends_with(e))).collect();
    assert!(reached.is_empty(), "these succeeded: {reached:?}");
}

/// Numbers that vsrun gives children: the first process has 1001.
const FIRST_CHILD: u32 = 1002;

#[test]
fn a_process_outside_with_the_number_of_a_child_is_not_touched() {
    const CHILDREN: u32 = 4;
    let temp = TempDir(std::env::temp_dir().join(format!("vsrun-numbers-{}", std::process::id())));
    fs::create_dir_all(&temp.0).expect("a directory");
    let build = |name: &str| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/outside").join(name);
        compile(&source, &temp.0).expect("it compiles")
    };
    let (decoys, children) = (build("decoys.c"), build("children.c"));
    let (count, _) = run(&mut Command::new(&children), &temp.0).expect("it runs");
    let count: usize = count.trim().parse().expect("a number");
    assert!(count > 50, "{count} things to do");
    let mut wrong = String::new();
    for n in 0..count {
        let shown = temp.0.join("shown");
        let _ = fs::remove_file(&shown);
        let mut command = Command::new(&decoys);
        command.args([FIRST_CHILD.to_string(), (2 * CHILDREN).to_string()]).arg(env!("CARGO_BIN_EXE_vsrun"));
        command.args(["--once", "--allow-misuse", "--output"]).arg(&shown).arg(&children);
        command.args([CHILDREN.to_string(), n.to_string()]);
        let (said, status) = run(command.current_dir(&temp.0), &temp.0).unwrap_or_else(|e| (e, None));
        if status == Some(77) {
            println!("numbers of processes may not be chosen here: nothing is tested");
            return;
        }
        let shown = fs::read_to_string(&shown).unwrap_or_default();
        let what = shown.lines().next().unwrap_or("nothing was done").to_string();
        let found = shown.lines().find(|line| line.contains("decoy"));
        let made = said.lines().any(|line| line.strip_prefix("decoys: ").is_some_and(|n| n != "0"));
        let judged = said.starts_with("Verdict: no bug found") || said.contains("unsupported");
        if status != Some(0) || found.is_some() || !made || shown.is_empty() || !judged {
            let _ = writeln!(wrong, "{n}, {what}: {status:?}, found {found:?}, {said}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
