use super::*;
use crate::runtime::tracee::fix_auxv;
use crate::runtime::tracee::testing::*;
use std::fs;
use std::os::fd::IntoRawFd;

#[test]
fn failures_survive_the_pipe() {
    for (number, (step, _)) in LaunchStep::ALL.into_iter().enumerate() {
        assert_eq!(step as usize, number);
        let back = Failure::from_bytes(Failure { step, errno: Errno::EPERM }.to_bytes()).unwrap();
        assert_eq!((back.step, back.errno), (step, Errno::EPERM));
    }
    assert!(Failure::from_bytes([LaunchStep::ALL.len() as u8, 1, 0, 0, 0]).is_none());
}

#[test]
fn launch_stops_before_the_loader_runs() {
    with_program("int main(void){return 42;}", |stopped| {
        assert_eq!(stopped.reason(), Reason::Exec);
        let maps = fs::read_to_string(format!("/proc/{}/maps", stopped.pid())).unwrap();
        assert!(maps.contains("/program") && !maps.contains("libc.so"), "{maps}");
        assert_eq!(nix::sys::ptrace::getevent(stopped.pid()).unwrap(), i64::from(stopped.pid().as_raw()));
        assert_eq!(exit_code(stopped.resume(None).unwrap().wait().unwrap()), 42);
    });
}

/// Prints what a launch decides, one `name value` per line; the descriptors given at 10 and 11 are read.
const REPORTER: &str = r#"
    #define _GNU_SOURCE
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>
    #include <sched.h>
    #include <dirent.h>
    #include <sys/personality.h>
    #include <sys/prctl.h>
    #include <sys/resource.h>
    #include <sys/auxv.h>
    #include <sys/mman.h>
    extern char **environ;
    int main(int argc, char **argv) {
        for (int i = 0; i < argc; i++) printf("arg %s\n", argv[i]);
        for (char **e = environ; *e; e++) printf("env %s\n", *e);
        printf("cwd %s\n", getcwd(0, 0));
        printf("leader %d\n", getsid(0) == getpid());
        printf("personality %x\n", personality(0xffffffff));
        int death; prctl(PR_GET_PDEATHSIG, &death);
        printf("death %d\n", death);
        printf("thp %d\n", prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
        struct rlimit r;
        getrlimit(RLIMIT_CORE, &r); printf("core %lu\n", (long)r.rlim_cur);
        getrlimit(RLIMIT_STACK, &r); printf("stack %lu\n", (long)r.rlim_cur);
        cpu_set_t cpus; sched_getaffinity(0, sizeof cpus, &cpus);
        printf("cpus %d:", CPU_COUNT(&cpus));
        for (int i = 0; i < CPU_SETSIZE; i++) if (CPU_ISSET(i, &cpus)) printf(" %d", i);
        printf("\n");
        char line[256]; FILE *status = fopen("/proc/self/status", "r");
        while (fgets(line, sizeof line, status))
            if (!strncmp(line, "SigBlk", 6) || !strncmp(line, "SigIgn", 6)) printf("%s", line);
        fclose(status);
        DIR *d = opendir("/proc/self/fd");
        for (struct dirent *e; (e = readdir(d)); )
            if (*e->d_name != '.' && atoi(e->d_name) != dirfd(d)) printf("fd %s\n", e->d_name);
        closedir(d);
        for (int fd = 10; fd < 12; fd++) {
            char text[16] = ""; if (pread(fd, text, 15, 0) >= 0) printf("read %d %s\n", fd, text);
        }
        void *map = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        printf("addresses %p %p %p %p %p\n", main, &r, malloc(10), map, printf);
        printf("random ");
        for (int i = 0; i < 16; i++) printf("%02x", ((unsigned char *)getauxval(AT_RANDOM))[i]);
        printf("\nvdso %lx\n", getauxval(AT_SYSINFO_EHDR));
        return 0;
    }"#;

/// The reporter as `launch` starts it, with two files given crosswise, and its lines.
fn reporter(dir: &TempDir) -> (LaunchSpec, File) {
    let exe = dir.0.join("program");
    if !exe.exists() {
        dir.compile("program", "c", REPORTER, &[]);
    }
    let open = |name: &str| {
        fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(dir.0.join(name)).unwrap()
    };
    for name in ["ten", "eleven"] {
        fs::write(dir.0.join(name), name).unwrap();
    }
    let (ten, eleven, null) = (open("ten").into_raw_fd(), open("eleven").into_raw_fd(), open("null").into_raw_fd());
    let output = dir.0.join("output");
    let _ = fs::remove_file(&output);
    let out = open("output");
    let spec = LaunchSpec {
        exe,
        argv: vec!["name".into(), "two words".into(), "".into()],
        envp: vec!["B=1".into(), "A=2".into()],
        cwd: dir.0.clone(),
        stdio: [null, out.as_raw_fd(), 2],
        inherit: vec![(ten, 10), (eleven, 11)],
        cpu: Some(allowed_cpu()),
    };
    (spec, out)
}

/// The last CPU that this process may use.
fn allowed_cpu() -> usize {
    let allowed = nix::sched::sched_getaffinity(Pid::from_raw(0)).unwrap();
    (0..CpuSet::count()).rfind(|cpu| allowed.is_set(*cpu).unwrap()).unwrap()
}

fn launch_reporter(dir: &TempDir, random: Option<[u8; 16]>) -> Vec<String> {
    let (spec, _out) = reporter(dir);
    let mut stopped = launch(&spec).unwrap();
    let killer = Killer::of(&stopped);
    if let Some(random) = random {
        fix_auxv(&mut stopped, random).unwrap();
    }
    assert_eq!(exit_code(stopped.resume(None).unwrap().wait().unwrap()), 0);
    killer.disarm();
    lines(dir)
}

fn lines(dir: &TempDir) -> Vec<String> {
    fs::read_to_string(dir.0.join("output")).unwrap().lines().map(String::from).collect()
}

fn line<'a>(lines: &'a [String], name: &str) -> &'a str {
    lines.iter().find(|l| l.starts_with(name)).unwrap()
}

fn without<'a>(lines: &'a [String], names: &[&str]) -> Vec<&'a str> {
    lines.iter().map(String::as_str).filter(|l| !names.iter().any(|name| l.starts_with(name))).collect()
}

#[test]
fn launch_decides_the_surroundings() {
    let dir = TempDir::new();
    let lines = launch_reporter(&dir, None);
    let expected = [
        "arg name",
        "arg two words",
        "arg ",
        "env B=1",
        "env A=2",
        "leader 1",
        "personality 40000",
        "death 9",
        "thp 1",
        "core 0",
        "stack 8388608",
        "SigBlk:\t0000000000000000",
        "SigIgn:\t0000000000000000",
        "read 10 ten",
        "read 11 eleven",
    ];
    for wanted in expected {
        assert!(lines.iter().any(|l| l == wanted), "{wanted} in {lines:#?}");
    }
    assert_eq!(line(&lines, "cwd"), format!("cwd {}", dir.0.display()));
    assert_eq!(line(&lines, "cpus"), format!("cpus 1: {}", allowed_cpu()));
    let fds: Vec<_> = lines.iter().filter(|l| l.starts_with("fd")).collect();
    assert_eq!(fds, ["fd 0", "fd 1", "fd 2", "fd 10", "fd 11"]);
}

#[test]
fn descriptors_can_change_places() {
    let dir = TempDir::new();
    let (mut spec, _out) = reporter(&dir);
    let (ten, eleven) = (spec.inherit[0].0, spec.inherit[1].0);
    spec.inherit = vec![(ten, eleven), (eleven, ten), (eleven, 600)];
    let stopped = launch(&spec).unwrap();
    let killer = Killer::of(&stopped);
    let target = |fd| fs::read_link(format!("/proc/{}/fd/{fd}", stopped.pid())).unwrap();
    assert!(target(ten).ends_with("eleven") && target(eleven).ends_with("ten") && target(600).ends_with("eleven"));
    stopped.kill().unwrap().reap().map(drop).unwrap();
    killer.disarm();
}

/// NOTE [Layout]: the random bytes are all that differs.
#[test]
fn auxv_is_fixed_and_nothing_moves() {
    let dir = TempDir::new();
    let random = *b"0123456789abcdef";
    let fixed = launch_reporter(&dir, Some(random));
    assert_eq!(line(&fixed, "random"), "random 30313233343536373839616263646566");
    assert_ne!(line(&fixed, "vdso"), "vdso 0");
    assert_eq!(fixed, launch_reporter(&dir, Some(random)));
    let unfixed = launch_reporter(&dir, None);
    assert_ne!(line(&unfixed, "random"), line(&fixed, "random"));
    assert_eq!(without(&unfixed, &["random"]), without(&fixed, &["random"]));
}

#[test]
fn untraced_launch_gives_the_same_program() {
    let dir = TempDir::new();
    let fixed = launch_reporter(&dir, Some([7; 16]));
    let run = in_own_process(module_path!(), "inner_untraced", &[("VSRUN_TEST_DIR", &dir.0)]);
    assert!(run.status.success(), "{run:?}");
    let untraced = lines(&dir);
    assert_ne!(line(&untraced, "random"), line(&fixed, "random")); // really another run
                                                                   // A process that is not ours to fork may stay in its session.
    let chance = ["random", "leader"];
    assert_eq!(without(&untraced, &chance), without(&fixed, &chance));
}

#[test]
#[ignore = "becomes another program; run by untraced_launch_gives_the_same_program"]
fn inner_untraced() {
    let Some(dir) = variable("VSRUN_TEST_DIR") else { return };
    let dir = std::mem::ManuallyDrop::new(TempDir(dir));
    let (spec, _out) = reporter(&dir);
    panic!("{}", launch_untraced(&spec).unwrap_err());
}

fn failed_step(spec: &LaunchSpec) -> (LaunchStep, Errno) {
    match launch(spec) {
        Err(LaunchError::Step { step, errno }) => (step, errno),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_failed_launch_says_what_failed() {
    let dir = TempDir::new();
    let good = plain(dir.program("program", &[]));
    let missing = LaunchSpec { exe: dir.0.join("missing"), ..good.clone() };
    assert_eq!(failed_step(&missing), (LaunchStep::Exec, Errno::ENOENT));
    assert_eq!(launch(&missing).unwrap_err().to_string(), "cannot execute it (execve): No such file or directory");
    let directory = LaunchSpec { exe: dir.0.clone(), ..good.clone() };
    assert_eq!(failed_step(&directory), (LaunchStep::Exec, Errno::EACCES));
    let nowhere = LaunchSpec { cwd: dir.0.join("missing"), ..good.clone() };
    assert_eq!(failed_step(&nowhere), (LaunchStep::Directory, Errno::ENOENT));
    let closed = LaunchSpec { inherit: vec![(987_654, 7)], ..good.clone() };
    assert_eq!(failed_step(&closed), (LaunchStep::Descriptors, Errno::EBADF));
    let nul = LaunchSpec { argv: vec!["a\0b".into()], ..good.clone() };
    assert_eq!(launch(&nul).unwrap_err().to_string(), r#"argument "a\0b" contains a NUL byte"#);
    let many = LaunchSpec { cpu: Some(1_000_000), ..good.clone() };
    assert_eq!(failed_step(&many), (LaunchStep::Cpu, Errno::EINVAL));
    let absent = LaunchSpec { cpu: Some(1000), ..good };
    assert_eq!(failed_step(&absent), (LaunchStep::Cpu, Errno::EINVAL));
}
