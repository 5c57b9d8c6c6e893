//! `vsrun doctor`: whether this machine can do what vsrun needs, one line per check, with what to do where it cannot.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sched::{sched_getaffinity, CpuSet};
use nix::sys::memfd::{memfd_create, MemFdCreateFlag};
use nix::sys::personality::{self, Persona};
use nix::sys::resource::{getrlimit, Resource, RLIM_INFINITY};
use nix::sys::statvfs::{statvfs, FsFlags};
use nix::unistd::{access, AccessFlags, Pid};

use crate::base::cgroup;
use crate::binary::ldcache::LdCache;
use crate::runtime::limits::{needs, Need};

const MIB: u64 = 1 << 20;
/// Capability number of CAP_SYS_PTRACE.
const CAP_SYS_PTRACE: u32 = 19;

/// What was really tried, by those who can: Ok if it works, else the error; None if it was not tried.
#[derive(Clone, Debug, Default)]
pub struct Probes {
    /// `prctl(PR_SET_SYSCALL_USER_DISPATCH)` and a system call caught by it.
    pub syscall_user_dispatch: Option<Result<(), String>>,
    /// Tracing a child.
    pub ptrace: Option<Result<(), String>>,
    /// Watching the memory of a program whose accesses are known: how it was patched.
    pub canary: Option<Result<String, String>>,
}

/// Prints one line per check to `out`: `ok  name: detail`, or `BAD name: detail; what to do`. Returns whether all
/// that vsrun cannot do without is there.
///
/// # Errors
/// Those of writing to `out`. Whatever cannot be found out is a result, not an error.
pub fn run(out: &mut dyn Write, probes: &Probes) -> io::Result<bool> {
    report(out, &examine(&Machine::here(), probes))
}

/// The result of one check.
struct Check {
    name: &'static str,
    detail: String,
    /// What is to be done if the check failed.
    fix: Option<String>,
    /// Whether vsrun cannot work when it fails.
    essential: bool,
}

impl Check {
    fn ok(name: &'static str, detail: impl Into<String>) -> Check {
        Check { name, detail: detail.into(), fix: None, essential: true }
    }

    fn bad(name: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Check {
        Check { name, detail: detail.into(), fix: Some(fix.into()), essential: true }
    }

    /// vsrun works without it, if less well.
    fn optional(self) -> Check {
        Check { essential: false, ..self }
    }

    /// Good if `holds`, else bad with this remedy.
    fn that(holds: bool, name: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Check {
        if holds {
            Check::ok(name, detail)
        } else {
            Check::bad(name, detail, fix)
        }
    }
}

fn report(out: &mut dyn Write, checks: &[Check]) -> io::Result<bool> {
    for Check { name, detail, fix, essential } in checks {
        match (fix, essential) {
            (None, _) => writeln!(out, "ok  {name}: {detail}")?,
            (Some(fix), true) => writeln!(out, "BAD {name}: {detail}; {fix}")?,
            (Some(fix), false) => writeln!(out, "BAD {name}: {detail} (vsrun works, with limits); {fix}")?,
        }
    }
    Ok(!checks.iter().any(|c| c.essential && c.fix.is_some()))
}

fn examine(machine: &Machine, probes: &Probes) -> Vec<Check> {
    let [file_size, address_space, open_files] = needs();
    vec![
        platform(),
        kernel(machine),
        syscall_user_dispatch(machine, probes),
        ptrace(machine, probes),
        fsgsbase(machine),
        address_randomization(machine),
        glibc(machine),
        memfd(),
        shared_memory(machine),
        private_files(machine),
        userfaultfd(machine),
        needed(&file_size),
        needed(&address_space),
        needed(&open_files),
        limit("processes", Resource::RLIMIT_NPROC, 256, "ulimit -u 256 (or more) in the calling shell").optional(),
        cgroup_processes(machine),
        seccomp(machine),
        processors(),
        watched_memory(probes),
    ]
}

/// The files that tell about a machine; the tests have some below another root.
struct Machine {
    root: PathBuf,
}

impl Machine {
    fn here() -> Machine {
        Machine { root: PathBuf::from("/") }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    fn text(&self, path: &str) -> Option<String> {
        let bytes = std::fs::read(self.path(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_string())
    }

    /// A field of `/proc/self/status`.
    fn status(&self, field: &str) -> Option<String> {
        let status = self.text("/proc/self/status")?;
        let value = status.lines().find_map(|l| l.strip_prefix(field)?.strip_prefix(':'))?;
        Some(value.trim().to_string())
    }

    fn has_capability(&self, number: u32) -> bool {
        let effective = self.status("CapEff").and_then(|v| u64::from_str_radix(&v, 16).ok());
        effective.is_some_and(|e| e >> number & 1 == 1)
    }

    /// Release as text, and its first two numbers.
    fn kernel(&self) -> (String, (u32, u32)) {
        let release = self.text("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_string());
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|n| n.parse().ok());
        let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        (release, version)
    }

    /// Whether the kernel was configured with `option`; None if its configuration is not published.
    fn configured(&self, option: &str) -> Option<bool> {
        let unpacked = || self.text(&format!("/boot/config-{}", self.kernel().0));
        let packed = || {
            let file = Some(self.path("/proc/config.gz")).filter(|f| f.exists())?;
            let output = Command::new("gzip").arg("-dc").stdin(std::fs::File::open(file).ok()?).output().ok()?;
            output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let config = packed().or_else(unpacked)?;
        Some(config.lines().any(|l| l.strip_prefix(option) == Some("=y")))
    }
}

fn platform() -> Check {
    let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
    let right = arch == "x86_64" && os == "linux";
    Check::that(right, "platform", format!("{arch} {os}"), "vsrun runs on x86-64 Linux only")
}

fn kernel(machine: &Machine) -> Check {
    let (release, version) = machine.kernel();
    Check::that(version >= (5, 11), "kernel", release, "vsrun needs Linux 5.11 or later")
}

fn syscall_user_dispatch(machine: &Machine, probes: &Probes) -> Check {
    const NAME: &str = "Syscall User Dispatch";
    let fix = "run on a kernel (not an emulation such as gVisor) of version 5.11 or later with CONFIG_GENERIC_ENTRY";
    match &probes.syscall_user_dispatch {
        Some(Ok(())) => Check::ok(NAME, "tried, works"),
        Some(Err(e)) => Check::bad(NAME, format!("tried, fails: {e}"), fix),
        None if machine.kernel().1 < (5, 11) => Check::bad(NAME, "this kernel is too old for it", fix),
        None => match machine.configured("CONFIG_GENERIC_ENTRY") {
            Some(false) => Check::bad(NAME, "this kernel was built without CONFIG_GENERIC_ENTRY", fix),
            Some(true) => Check::ok(NAME, "in this kernel (not tried)"),
            None => Check::ok(NAME, "should be in this kernel (not tried)"),
        },
    }
}

fn ptrace(machine: &Machine, probes: &Probes) -> Check {
    const NAME: &str = "ptrace";
    let scope = machine.text("/proc/sys/kernel/yama/ptrace_scope").and_then(|t| t.parse::<u32>().ok()).unwrap_or(0);
    let described = format!("yama ptrace_scope {scope}");
    let yama = "sysctl kernel.yama.ptrace_scope=1 (from 3, only a reboot helps: see /etc/sysctl.d)";
    match &probes.ptrace {
        Some(Ok(())) => Check::ok(NAME, format!("tried, works ({described})")),
        Some(Err(e)) if scope < 2 => {
            let fix = "in a container allow it (--cap-add=SYS_PTRACE, or a seccomp profile that permits ptrace)";
            Check::bad(NAME, format!("tried, fails: {e} ({described})"), fix)
        }
        Some(Err(e)) => Check::bad(NAME, format!("tried, fails: {e} ({described})"), yama),
        None if scope >= 3 || (scope == 2 && !machine.has_capability(CAP_SYS_PTRACE)) => {
            Check::bad(NAME, format!("{described} forbids it"), yama)
        }
        None => Check::ok(NAME, format!("{described} allows it (not tried)")),
    }
}

fn fsgsbase(machine: &Machine) -> Check {
    const AT_HWCAP2: u64 = 26;
    const HWCAP2_FSGSBASE: u64 = 2;
    let auxv = std::fs::read(machine.path("/proc/self/auxv")).unwrap_or_default();
    let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
    let mut entries = auxv.chunks_exact(16).map(|e| (word(&e[..8]), word(&e[8..])));
    let enabled = entries.any(|(key, value)| key == AT_HWCAP2 && value & HWCAP2_FSGSBASE != 0);
    let detail = if enabled { "user code may set its fs base" } else { "user code may not set its fs base" };
    let fix =
        "use a kernel of version 5.9 or later on an Ivy Bridge or newer processor, without the boot option nofsgsbase";
    Check::that(enabled, "fsgsbase", detail, fix)
}

fn address_randomization(machine: &Machine) -> Check {
    const NAME: &str = "address randomization";
    if machine.text("/proc/sys/kernel/randomize_va_space").as_deref() == Some("0") {
        return Check::ok(NAME, "off on this machine");
    }
    match switch_off_randomization() {
        Ok(()) => Check::ok(NAME, "can be switched off for the program"),
        Err(e) => {
            let fix =
                "in a container allow it (--security-opt seccomp=unconfined), or sysctl kernel.randomize_va_space=0";
            Check::bad(NAME, format!("cannot be switched off for the program: {e}"), fix)
        }
    }
}

/// Tries it on ourselves; it would only count from the next exec on, and is undone.
fn switch_off_randomization() -> nix::Result<()> {
    let before = personality::get()?;
    personality::set(before | Persona::ADDR_NO_RANDOMIZE)?;
    personality::set(before).map(|_| ())
}

fn glibc(machine: &Machine) -> Check {
    const NAME: &str = "C library";
    let cache = LdCache::system();
    let known = ["/lib64/libc.so.6", "/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/libc.so.6"].map(Path::new);
    let mut files = cache.find("libc.so.6").chain(known).map(|p| machine.path(&p.to_string_lossy()));
    let found = files.find_map(|f| Some((glibc_version(&std::fs::read(&f).ok()?)?, f)));
    match found {
        Some((version, file)) => Check::ok(NAME, format!("glibc {version} ({})", crate::base::text::escape(file))),
        None => {
            Check::bad(NAME, "no glibc found", "run on a distribution with glibc; programs for musl are not supported")
        }
    }
}

/// The version in the banner `GNU C Library (...) stable release version 2.36.`
fn glibc_version(library: &[u8]) -> Option<String> {
    const BANNER: &[u8] = b"GNU C Library ";
    let at = library.windows(BANNER.len()).position(|w| w == BANNER)?;
    let line = library[at..].split(|b| matches!(b, b'\n' | 0)).next()?;
    let line = String::from_utf8_lossy(line);
    let (_, version) = line.split_once("version ")?;
    Some(version.trim_end_matches('.').to_string()).filter(|v| !v.is_empty())
}

fn memfd() -> Check {
    match memfd_create(c"vsrun-doctor", MemFdCreateFlag::MFD_CLOEXEC) {
        Ok(_) => Check::ok("memfd_create", "works"),
        Err(e) => Check::bad("memfd_create", e.to_string(), "in a container allow it in the seccomp profile"),
    }
}

/// Where the preloaded library is put: `/dev/shm`, or else the directory for temporary files.
fn shared_memory(machine: &Machine) -> Check {
    const NAME: &str = "/dev/shm";
    let (shm, temporary) = (machine.path("/dev/shm"), std::env::temp_dir());
    let other = if place(&temporary).is_ok() {
        "the directory for temporary files is used instead"
    } else {
        "TMPDIR is no better"
    };
    match place(&shm) {
        Ok(free) => Check::ok(NAME, format!("{} MiB free", free / MIB)),
        Err(why) => {
            let fix = "mount it: mount -t tmpfs -o mode=1777,exec tmpfs /dev/shm (docker: --tmpfs /dev/shm:rw,exec,size=256m)";
            let bad = Check::bad(NAME, format!("{why}; {other}"), fix);
            if place(&temporary).is_ok() {
                bad.optional()
            } else {
                bad
            }
        }
    }
}

/// The free bytes of a directory in which a library can be written and then executed, or why it cannot.
fn place(directory: &Path) -> Result<u64, String> {
    if !directory.is_dir() {
        return Err("does not exist".to_string());
    }
    access(directory, AccessFlags::W_OK | AccessFlags::X_OK).map_err(|e| format!("is not writable: {e}"))?;
    let system = statvfs(directory).map_err(|e| e.to_string())?;
    if system.flags().contains(FsFlags::ST_NOEXEC) {
        return Err("is mounted noexec, so no library can be loaded from it".to_string());
    }
    let free = system.blocks_available() * system.fragment_size();
    if free < 64 * MIB {
        return Err(format!("has only {} MiB free of the 64 wanted", free / MIB));
    }
    Ok(free)
}

/// Where executions have their private layer over the file system. It is kept by the preloaded library, which needs no
/// privilege; mount namespaces and overlayfs are not used.
fn private_files(machine: &Machine) -> Check {
    const NAME: &str = "private files";
    let temporary = std::env::temp_dir();
    let found = [machine.path("/dev/shm"), temporary].into_iter().find_map(|dir| Some((place(&dir).ok()?, dir)));
    match found {
        Some((free, dir)) => {
            let dir = crate::base::text::escape(dir);
            Check::ok(
                NAME,
                format!("copied when they are written, by vsrun's library, to {dir} ({} MiB free)", free / MIB),
            )
        }
        None => Check::bad(NAME, "there is no place for them", "make room in /dev/shm or TMPDIR").optional(),
    }
}

fn userfaultfd(machine: &Machine) -> Check {
    const NAME: &str = "userfaultfd";
    let sysctl = machine.text("/proc/sys/vm/unprivileged_userfaultfd");
    let device = access(&machine.path("/dev/userfaultfd"), AccessFlags::R_OK | AccessFlags::W_OK).is_ok();
    let allowed = match sysctl.as_deref() {
        Some("1") => Some("allowed for everyone"),
        Some(_) if machine.has_capability(CAP_SYS_PTRACE) => Some("allowed with our privileges"),
        _ if device => Some("allowed through /dev/userfaultfd"),
        _ => None,
    };
    let fix = "sysctl vm.unprivileged_userfaultfd=1: processes then go back from the end of an execution, and need not be copied for the next one";
    Check::that(allowed.is_some(), NAME, allowed.unwrap_or("not allowed"), fix).optional()
}

fn limit(name: &'static str, resource: Resource, wanted: u64, fix: &str) -> Check {
    match getrlimit(resource) {
        Ok((RLIM_INFINITY, _)) => Check::ok(name, "no limit"),
        Ok((soft, _)) => Check::that(soft >= wanted, name, format!("limit {soft}, wanted {wanted}"), fix),
        Err(e) => Check::bad(name, format!("limit unknown: {e}"), fix),
    }
}

/// vsrun does not begin below these.
fn needed(need: &Need) -> Check {
    limit(need.name, need.resource, need.least, need.fix)
}

/// The lowest `pids.max` of our cgroup and those above it.
fn cgroup_processes(machine: &Machine) -> Check {
    const NAME: &str = "cgroup processes";
    const WANTED: u64 = 256;
    match cgroup_limit(machine) {
        None => Check::ok(NAME, "no limit"),
        Some(limit) => {
            let detail = format!("limit {limit}, wanted {WANTED}");
            Check::that(limit >= WANTED, NAME, detail, "raise pids.max of the cgroup (docker: --pids-limit)").optional()
        }
    }
}

fn cgroup_limit(machine: &Machine) -> Option<u64> {
    let groups = cgroup::directories(&machine.root, "pids");
    groups.iter().filter_map(|group| cgroup::number(group, "pids.max")).min()
}

fn seccomp(machine: &Machine) -> Check {
    const NAME: &str = "seccomp";
    let fix = "run vsrun outside of the strict sandbox";
    match machine.status("Seccomp").as_deref() {
        Some("1") => Check::bad(NAME, "strict mode: nothing but read and write is allowed", fix),
        Some("2") => Check::ok(NAME, "we run under a filter (a container?): what it forbids fails above"),
        _ => Check::ok(NAME, "no filter on us"),
    }
}

fn processors() -> Check {
    let set = sched_getaffinity(Pid::from_raw(0));
    let count = set.map_or(0, |set| (0..CpuSet::count()).filter(|i| set.is_set(*i).unwrap_or(false)).count());
    let detail = format!("{count} allowed: as many worlds at a time");
    Check::that(count > 0, "processors", detail, "check taskset and the cpuset of the cgroup").optional()
}

/// Accesses that are known must be recorded.
fn watched_memory(probes: &Probes) -> Check {
    const NAME: &str = "watched memory";
    match &probes.canary {
        None => Check::ok(NAME, "not tried"),
        Some(Ok(detail)) => Check::ok(NAME, format!("known accesses are recorded ({detail})")),
        Some(Err(why)) => {
            Check::bad(NAME, why, "what threads do to memory cannot be watched here: vsrun --race off").optional()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;

    /// A machine with these files.
    fn machine(dir: &TempDir, files: &[(&str, &str)]) -> Machine {
        for (path, content) in files {
            std::fs::create_dir_all(dir.path().join(path).parent().unwrap()).unwrap();
            std::fs::write(dir.path().join(path), content).unwrap();
        }
        Machine { root: dir.path().to_path_buf() }
    }

    fn line(check: Check) -> String {
        let mut out = Vec::new();
        report(&mut out, &[check]).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn one_line_for_each_check_here() {
        let mut out = Vec::new();
        let works = Probes { syscall_user_dispatch: Some(Ok(())), ptrace: Some(Ok(())), canary: None };
        run(&mut out, &works).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), examine(&Machine::here(), &works).len());
        assert!(text.lines().all(|l| l.starts_with("ok  ") || l.starts_with("BAD ")), "{text}");
        assert!(text.contains("ok  platform: x86_64 linux\n"), "{text}");
        assert!(text.contains("ok  C library: glibc 2."), "{text}");
    }

    #[test]
    fn only_essential_failures_count() {
        let mut out = Vec::new();
        assert!(report(&mut out, &[Check::bad("a", "b", "c").optional(), Check::ok("d", "e")]).unwrap());
        assert!(!report(&mut out, &[Check::bad("a", "b", "c")]).unwrap());
        let expected = "BAD a: b (vsrun works, with limits); c\nok  d: e\nBAD a: b; c\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        assert!(!run(&mut Vec::new(), &Probes { ptrace: Some(Err("EPERM".to_string())), ..Probes::default() }).unwrap());
    }

    #[test]
    fn kernels() {
        let dir = TempDir::new();
        for (release, good) in
            [("5.10.0-21-amd64", false), ("5.11.0", true), ("6.1", true), ("4.19", false), ("x", false)]
        {
            let machine = machine(&dir, &[("proc/sys/kernel/osrelease", &format!("{release}\n"))]);
            assert_eq!(kernel(&machine).fix.is_none(), good, "{release}");
            assert_eq!(syscall_user_dispatch(&machine, &Probes::default()).fix.is_none(), good, "{release}");
        }
        let old =
            machine(&dir, &[("proc/sys/kernel/osrelease", "6.1"), ("boot/config-6.1", "CONFIG_GENERIC_ENTRY=n\n")]);
        assert!(line(syscall_user_dispatch(&old, &Probes::default())).contains("built without CONFIG_GENERIC_ENTRY"));
        let probes = Probes { syscall_user_dispatch: Some(Ok(())), ..Probes::default() };
        assert!(syscall_user_dispatch(&old, &probes).fix.is_none(), "what was tried counts more");
    }

    #[test]
    fn ptrace_scopes() {
        let dir = TempDir::new();
        let check = |scope: &str, capabilities: &str, probe: Option<Result<(), String>>| {
            let status = format!("Name:\tx\nCapEff:\t{capabilities}\n");
            let files = [("proc/sys/kernel/yama/ptrace_scope", scope), ("proc/self/status", status.as_str())];
            let probes = Probes { ptrace: probe, ..Probes::default() };
            line(ptrace(&machine(&dir, &files), &probes))
        };
        assert!(check("1\n", "0", None).starts_with("ok "));
        assert!(check("2", "0", None).starts_with("BAD ptrace: yama ptrace_scope 2 forbids it; sysctl"));
        assert!(check("2", "0000000000080000", None).starts_with("ok "));
        assert!(check("3", "ffffffffffffffff", None).starts_with("BAD "));
        assert!(check("0", "0", Some(Err("EPERM".to_string()))).contains("tried, fails: EPERM"));
    }

    #[test]
    fn cgroup_limits_of_both_versions_and_of_parents() {
        let dir = TempDir::new();
        assert_eq!(cgroup_limit(&machine(&dir, &[])), None);
        let v2 = [("proc/self/cgroup", "0::/a/b\n"), ("sys/fs/cgroup/a/b/pids.max", "max\n")];
        assert_eq!(cgroup_limit(&machine(&dir, &v2)), None);
        let parent = machine(&dir, &[("sys/fs/cgroup/a/pids.max", "100\n")]);
        assert!(line(cgroup_processes(&parent)).starts_with("BAD cgroup processes: limit 100, wanted 256 (vsrun works"));
        let v1 = [("proc/self/cgroup", "8:cpu,pids:/x\n1:cpu:/\n"), ("sys/fs/cgroup/pids/x/pids.max", "5000")];
        assert_eq!(cgroup_limit(&machine(&dir, &v1)), Some(5000));
    }

    #[test]
    fn glibc_banner() {
        let banner = b"..\0GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.\nCopyright";
        assert_eq!(glibc_version(banner).as_deref(), Some("2.36"));
        assert_eq!(glibc_version(b"musl libc"), None);
    }

    #[test]
    fn places_for_the_library() {
        let dir = TempDir::new();
        assert_eq!(place(&dir.path().join("none")), Err("does not exist".to_string()));
        assert!(place(Path::new("/proc/sys")).is_err());
    }

    #[test]
    fn missing_files_make_no_panic() {
        let dir = TempDir::new();
        let checks = examine(&machine(&dir, &[]), &Probes::default());
        assert!(checks.iter().any(|c| c.name == "fsgsbase" && c.fix.is_some()));
    }
}
