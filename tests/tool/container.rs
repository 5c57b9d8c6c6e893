//! vsrun under what docker's default seccomp profile forbids (`tests/container/profile.c`): it says which flag it needs, and needs no other.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A directory with the filter and a program.
struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-container-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary directory");
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        for source in ["tests/container/profile.c", "c-tests/philosophers_threads.c"] {
            let name = Path::new(source).file_stem().expect("a name");
            let mut gcc = Command::new("gcc");
            gcc.args(["-O1", "-pthread", "-o"]).arg(dir.join(name)).arg(root.join(source));
            assert!(gcc.status().expect("gcc").success());
        }
        Place(dir)
    }

    /// Status and all that vsrun says under this profile.
    fn run(&self, profile: &str, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new("timeout");
        command.args(["60", "./profile", profile, env!("CARGO_BIN_EXE_vsrun")]).args(arguments);
        let done = command.current_dir(&self.0).stdin(Stdio::null()).output().expect("timeout");
        let said = [done.stdout, done.stderr].concat();
        (done.status.code(), String::from_utf8_lossy(&said).into_owned())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn dockers_profile_is_told_with_the_flag_that_helps_and_nothing_else_is_missing() {
    const FLAG: &str = "--security-opt seccomp=unconfined";
    let place = Place::new();
    let (status, said) = place.run("docker", &["doctor"]);
    assert_eq!(status, Some(2), "{said}");
    let bad: Vec<&str> =
        said.lines().filter(|l| l.starts_with("BAD ") && !l.contains("(vsrun works, with limits)")).collect();
    assert!(
        matches!(bad[..], [line] if line.starts_with("BAD address randomization: ") && line.contains(FLAG)),
        "{said}"
    );
    let (status, said) = place.run("docker", &["./philosophers_threads", "3"]);
    assert!(status == Some(2) && said.contains(FLAG), "{status:?} {said}");

    // With that alone allowed, all the rest of the profile is no hindrance.
    let (status, said) = place.run("personality", &["doctor"]);
    assert_eq!(status, Some(0), "{said}");
    let (status, said) = place.run("personality", &["./philosophers_threads", "3"]);
    assert!(status == Some(1) && said.starts_with("DEADLOCK: 3 threads wait for each other"), "{status:?} {said}");
    let (status, said) = place.run("personality", &["replay", "philosophers_threads-deadlock-1.vsrun.json"]);
    assert!(status == Some(1) && said.starts_with("DEADLOCK: "), "{status:?} {said}");
    // Executions cannot go back without userfaultfd: they are forked, and the same comes of it.
    for how in ["rollback", "fork"] {
        let line = ["--format", "json", "--search", "optimal", "--keep-going", "--checkpoint", how];
        let (status, said) = place.run("personality", &[&line[..], &["./philosophers_threads", "3"]].concat());
        let report: serde_json::Value =
            said.lines().find_map(|line| serde_json::from_str(line).ok()).unwrap_or_default();
        assert_eq!((status, &report["executions"], &report["rolled_back"]), (Some(1), &7.into(), &0.into()), "{said}");
        let why = report["not_rolled_back"].as_str().unwrap_or_default();
        assert_eq!(why.contains("userfaultfd"), how == "rollback", "{why}");
    }
    // Copies need nothing that is forbidden.
    let line =
        ["--format", "json", "--search", "optimal", "--keep-going", "--shrink", "0", "./philosophers_threads", "6"];
    let (status, said) = place.run("personality", &line);
    let report: serde_json::Value = said.lines().find_map(|line| serde_json::from_str(line).ok()).unwrap_or_default();
    let copied = report["copied"].as_u64().unwrap_or(0);
    assert!((status, &report["executions"]) == (Some(1), &63.into()) && copied > 20, "{said}");
}
