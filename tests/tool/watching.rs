//! Watched memory: what is recorded is what single-stepping the unpatched program shows, and patched programs do the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};
use nix::sys::ptrace::Options;
use vsrun::binary::SymbolCache;
use vsrun::runtime::memory::ProcessMemory;
use vsrun::runtime::tracee::{launch, Event, LaunchSpec};
use vsrun_model::watch::Entry;

const VSRUN: &str = env!("CARGO_BIN_EXE_vsrun");

/// A fresh directory, removed when dropped.
struct TempDir(PathBuf);

impl TempDir {
    fn new(name: &str) -> TempDir {
        let dir = std::env::temp_dir().join(format!("vsrun-watching-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        TempDir(dir)
    }

    fn compile(&self, source: &str, flags: &[&str]) -> PathBuf {
        let input = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/watching").join(source);
        let output = self.0.join("program");
        let compiler = if source.ends_with(".c") { "gcc" } else { "g++" };
        let done = Command::new(compiler).arg(input).arg("-o").arg(&output).args(flags).arg("-pthread").output();
        let done = done.expect("a compiler");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        output
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A byte, whether it was written, and the address in the file of the instruction that was the first to do so.
type Touch = (u64, bool, u64);

/// Stands for all instructions of libc: which of them touch what is its own business.
const ELSEWHERE: u64 = u64::MAX;

/// What is recorded of the bytes of a transition: of accesses in their order, each byte once for reading and once for writing.
#[derive(Default)]
struct Shadow {
    read: BTreeSet<u64>,
    written: BTreeSet<u64>,
    touches: BTreeSet<Touch>,
}

impl Shadow {
    fn access(&mut self, address: u64, size: u64, writes: bool, site: u64) {
        for byte in address..address + size {
            let new = if writes { self.written.insert(byte) } else { !self.read.contains(&byte) };
            self.read.insert(byte);
            if new && site != ELSEWHERE {
                self.touches.insert((byte, writes, site));
            }
        }
    }
}

/// What lies between the writes to the last two rows of `cells`: to the last, then to the one before.
struct Between {
    cells: (u64, u64),
    open: bool,
    over: bool,
    shadow: Shadow,
}

impl Between {
    fn new(cells: (u64, u64)) -> Between {
        Between { cells, open: false, over: false, shadow: Shadow::default() }
    }

    fn access(&mut self, address: u64, size: u64, writes: bool, site: u64) {
        let row = |n: u64| self.cells.0 + 64 * n;
        if writes && size == 8 && address == row(127) {
            self.open = true;
        } else if writes && size == 8 && address == row(126) {
            self.over = true;
        } else if self.open && !self.over && address >= self.cells.0 && address + size <= self.cells.0 + self.cells.1 {
            self.shadow.access(address, size, writes, site);
        }
    }
}

/// What vsrun records.
fn recorded(dir: &TempDir, program: &Path, cells: (u64, u64)) -> BTreeSet<Touch> {
    let log = dir.0.join("log");
    let mut run = Command::new(VSRUN);
    run.arg("--once").arg("--scenario-dir").arg(&dir.0).arg("--watch-log").arg(&log).arg(program);
    let run = run.output().expect("vsrun runs");
    assert!(run.status.success() || run.status.code() == Some(3), "{}", String::from_utf8_lossy(&run.stdout));
    let key = fs::read_to_string(dir.0.join("log.sites")).expect("the key");
    let own = program.file_name().and_then(|n| n.to_str()).expect("a name");
    let parse = |line: &str| {
        let mut words = line.split(' ');
        let number: u32 = words.next()?.parse().ok()?;
        let module = words.next()?;
        (module == own).then_some((number, u64::from_str_radix(words.next()?, 16).ok()?))
    };
    let sites: BTreeMap<u32, u64> = key.lines().filter_map(parse).collect();
    let mut between = Between::new(cells);
    for entry in fs::read(&log).expect("the log").chunks_exact(24) {
        let word = |at: usize| u32::from_le_bytes(entry[at..at + 4].try_into().expect("four bytes"));
        let address = u64::from(word(0)) | u64::from(word(4)) << 32;
        if word(16) == 0 {
            let site = sites.get(&word(8)).copied().unwrap_or(ELSEWHERE);
            between.access(address, u64::from(word(12) >> 2), word(12) & 1 != 0, site);
        }
    }
    assert!(between.over, "the samples were not recorded to their end");
    between.shadow.touches
}

fn register(regs: &nix::libc::user_regs_struct, register: Register) -> u64 {
    let r = regs;
    let all =
        [r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15];
    match register {
        Register::RIP | Register::EIP => 0,
        Register::FS => r.fs_base,
        Register::GS => r.gs_base,
        register if register.is_segment_register() => 0,
        register => {
            let value = all[register.full_register().number()];
            match register.size() {
                8 => value,
                4 => value & 0xffff_ffff,
                _ => value & 0xffff,
            }
        }
    }
}

/// What one execution of `i` accesses: address, size, whether it writes.
fn accesses(
    i: &Instruction,
    info: &mut InstructionInfoFactory,
    regs: &nix::libc::user_regs_struct,
) -> Vec<(u64, u64, bool)> {
    let mut found = Vec::new();
    if i.is_string_instruction() && (i.has_rep_prefix() || i.has_repne_prefix()) && regs.rcx == 0 {
        return found;
    }
    for used in info.info(i).used_memory() {
        let writes = match used.access() {
            OpAccess::Read | OpAccess::CondRead => false,
            OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite => true,
            _ => continue,
        };
        let size = [used.memory_size().size(), i.memory_size().size()].into_iter().find(|s| *s > 0).unwrap_or(0) as u64;
        let mut address = if i.is_string_instruction() {
            register(regs, used.base())
        } else {
            used.virtual_address(0, |name, _, _| Some(register(regs, name))).unwrap_or(0)
        };
        let by_register = matches!(i.mnemonic(), Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc)
            && i.op1_kind() == OpKind::Register;
        if by_register {
            let value = register(regs, i.op1_register());
            let bit = match size {
                2 => i64::from(value as i16),
                4 => i64::from(value as i32),
                _ => value as i64,
            };
            address = address.wrapping_add_signed((bit >> (size * 8).trailing_zeros()) * size as i64);
        }
        found.push((address, size, writes));
    }
    found
}

/// Steps through the program until `done`.
fn step_through(
    program: &Path,
    mut done: impl FnMut(&ProcessMemory, &nix::libc::user_regs_struct, &mut InstructionInfoFactory) -> bool,
) {
    let null = fs::OpenOptions::new().read(true).write(true).open("/dev/null").expect("/dev/null");
    let fd = std::os::fd::AsRawFd::as_raw_fd(&null);
    let spec = LaunchSpec {
        exe: program.to_path_buf(),
        argv: vec![program.into()],
        envp: vec!["LD_BIND_NOW=1".into()],
        cwd: "/".into(),
        stdio: [fd; 3],
        inherit: Vec::new(),
        cpu: None,
    };
    let mut stopped = launch(&spec).expect("it starts");
    stopped.set_options(Options::PTRACE_O_EXITKILL).expect("options");
    let memory = ProcessMemory::open(stopped.pid()).expect("its memory");
    let mut info = InstructionInfoFactory::new();
    loop {
        let regs = stopped.regs().expect("registers");
        if done(&memory, &regs, &mut info) {
            let _ = stopped.kill().map(|running| running.reap());
            return;
        }
        match stopped.step(None).expect("a step").wait().expect("an event") {
            Event::Stopped(next) => stopped = next,
            event => panic!("it ended before its samples did: {event:?}"),
        }
    }
}

/// What single-stepping the unpatched program shows.
fn stepped(program: &Path, cells: (u64, u64), bias: u64) -> BTreeSet<Touch> {
    let mut between = Between::new(cells);
    step_through(program, |memory, regs, info| {
        let own = regs.rip.wrapping_sub(bias) < 1 << 24;
        let mut bytes = [0; 15];
        if (own || between.open) && memory.read(regs.rip, &mut bytes).is_ok() {
            let i = Decoder::with_ip(64, &bytes, regs.rip, DecoderOptions::NONE).decode();
            for (address, size, writes) in accesses(&i, info, regs) {
                between.access(address, size, writes, if own { regs.rip - bias } else { ELSEWHERE });
            }
        }
        between.over
    });
    between.shadow.touches
}

fn compare(flags: &[&str]) {
    let dir = TempDir::new(&flags.join(""));
    let program = dir.compile("samples.c", flags);
    let mut cache = SymbolCache::new();
    let module = cache.get(&program).expect("a module");
    let (start, size) = module.symbols().objects_named("cells")[0];
    let bias = if flags.contains(&"-no-pie") { 0 } else { 0x5555_5555_4000 };
    let cells = (start + bias, size);
    let expected = stepped(&program, cells, bias);
    let found = recorded(&dir, &program, cells);
    let name = |touches: Vec<&Touch>| {
        let of = |t: &&Touch| {
            let at = module.symbols().function(t.2).map_or("?".into(), |(f, offset)| format!("{f}+{offset:#x}"));
            format!("byte {:#x} {} by {at}", t.0 - cells.0, if t.1 { "written" } else { "read" })
        };
        touches.iter().take(20).map(of).collect::<Vec<_>>()
    };
    let missed = name(expected.difference(&found).collect());
    let invented = name(found.difference(&expected).collect());
    assert!(missed.is_empty() && invented.is_empty(), "{flags:?}: missed {missed:#?}\ninvented {invented:#?}");
    assert!(expected.len() > 1300, "only {} bytes are accessed", expected.len());
}

const FORMS: [&[&str]; 4] = [
    &["-O1", "-masm=intel"],
    &["-O2", "-masm=intel", "-no-pie", "-fno-pie"],
    &["-O0", "-masm=intel"],
    &["-O3", "-masm=intel", "-static-libgcc", "-s"],
];

#[test]
fn what_is_recorded_is_what_single_stepping_shows() {
    FORMS[..3].iter().for_each(|flags| compare(flags));
}

/// Bytes of `cells` that functions of libc read and write.
#[derive(Default)]
struct Uses {
    read: BTreeSet<u64>,
    /// Of these, by instructions without vectors, which read no more than they need.
    read_alone: BTreeSet<u64>,
    written: BTreeSet<u64>,
    /// What a masked instruction may have written: the mask says whether it has.
    may_be_written: BTreeSet<u64>,
}

/// By what kind of instruction.
#[derive(Clone, Copy)]
enum How {
    Alone,
    Vectors,
    Masked,
}

/// From the beginning to the end of what `functions.c` calls.
struct Calls {
    cells: (u64, u64),
    open: bool,
    over: bool,
    uses: Uses,
}

impl Calls {
    const ROWS: u64 = 256;

    fn new(cells: (u64, u64)) -> Calls {
        assert_eq!(cells.1, 64 * Self::ROWS);
        Calls { cells, open: false, over: false, uses: Uses::default() }
    }

    fn access(&mut self, (address, size, writes): (u64, u64, bool), by_libc: bool, how: How) {
        let row = |n: u64| self.cells.0 + 64 * (Self::ROWS - n);
        match () {
            () if writes && size == 8 && address == row(1) => self.open = true,
            () if writes && size == 8 && address == row(2) => self.over = true,
            () if !by_libc || !self.open || self.over => {}
            () => {
                let (first, end) = self.cells;
                let bytes = (address..address + size).filter(|at| (first..first + end).contains(at));
                let bytes: Vec<u64> = bytes.map(|at| at - first).collect();
                let all = &mut self.uses;
                match how {
                    How::Masked if writes => all.may_be_written.extend(&bytes),
                    _ if writes => all.written.extend(&bytes),
                    How::Alone => {
                        all.read.extend(&bytes);
                        all.read_alone.extend(&bytes);
                    }
                    _ => all.read.extend(&bytes),
                }
            }
        }
    }
}

/// What vsrun records of functions of libc.
fn functions_recorded(dir: &TempDir, program: &Path, cells: (u64, u64)) -> Uses {
    let log = dir.0.join("log");
    let mut run = Command::new(VSRUN);
    run.arg("--once").arg("--scenario-dir").arg(&dir.0).arg("--watch-log").arg(&log).arg(program);
    let run = run.output().expect("vsrun runs");
    assert!(run.status.success() || run.status.code() == Some(3), "{}", String::from_utf8_lossy(&run.stdout));
    let mut calls = Calls::new(cells);
    for entry in fs::read(&log).expect("the log").chunks_exact(24) {
        let word = |at: usize| u32::from_le_bytes(entry[at..at + 4].try_into().expect("four bytes"));
        let address = u64::from(word(0)) | u64::from(word(4)) << 32;
        if word(16) == 0 {
            let by_libc = word(8) & Entry::FUNCTION != 0;
            calls.access((address, u64::from(word(12) >> 2), word(12) & 1 != 0), by_libc, How::Alone);
        }
    }
    assert!(calls.over, "the functions were not recorded to their end");
    calls.uses
}

/// What single-stepping through libc shows.
fn functions_stepped(program: &Path, cells: (u64, u64), bias: u64) -> Uses {
    let mut calls = Calls::new(cells);
    step_through(program, |memory, regs, info| {
        let own = regs.rip.wrapping_sub(bias) < 1 << 24;
        let mut bytes = [0; 15];
        if (own || calls.open) && memory.read(regs.rip, &mut bytes).is_ok() {
            let i = Decoder::with_ip(64, &bytes, regs.rip, DecoderOptions::NONE).decode();
            let vectors = i
                .op_kinds()
                .enumerate()
                .any(|(n, kind)| kind == OpKind::Register && i.op_register(n as u32).is_vector_register());
            let masked = i.has_op_mask() || matches!(i.mnemonic(), Mnemonic::Vmaskmovps | Mnemonic::Vpmaskmovd);
            for access in accesses(&i, info, regs) {
                let how = match () {
                    () if masked => How::Masked,
                    () if vectors || access.1 > 8 => How::Vectors,
                    () => How::Alone,
                };
                calls.access(access, !own, how);
            }
        }
        calls.over
    });
    calls.uses
}

/// The table of functions says what they do: no byte is written that it has not, none invented; what is said to be read is, and what
/// libc reads without vectors is said to be.
#[test]
fn functions_of_libc_use_what_is_recorded() {
    let dir = TempDir::new("functions");
    let program = dir.compile("functions.c", &["-O1", "-fno-builtin", "-w"]);
    let mut cache = SymbolCache::new();
    let module = cache.get(&program).expect("a module");
    let (start, size) = module.symbols().objects_named("cells")[0];
    let cells = (start + 0x5555_5555_4000, size);
    let expected = functions_stepped(&program, cells, 0x5555_5555_4000);
    let found = functions_recorded(&dir, &program, cells);
    let name = |bytes: Vec<&u64>| bytes.iter().map(|at| format!("row {} + {}", *at / 64, *at % 64)).collect::<Vec<_>>();
    let less = |a: &BTreeSet<u64>, b: &BTreeSet<u64>| name(a.difference(b).collect());
    // strptime sets what the format names, behind the last part strtok finds a NUL that is there, and strverscmp reads up to a difference.
    let read: BTreeSet<u64> = found.read.iter().copied().filter(|at| ![5, 57].contains(&(at / 64))).collect();
    let more: BTreeSet<u64> = found.written.iter().copied().filter(|at| at / 64 != 57 && *at != 18 * 64 + 3).collect();
    let may_be: BTreeSet<u64> = expected.written.union(&expected.may_be_written).copied().collect();
    let used: BTreeSet<u64> = found.read.union(&found.written).copied().collect();
    let all: BTreeSet<u64> = expected.read.union(&expected.written).copied().collect();
    let differences = [
        ("written and not recorded", less(&expected.written, &found.written)),
        ("recorded and not written", less(&more, &may_be)),
        ("read and not recorded", less(&expected.read_alone, &used)),
        ("recorded and not read", less(&read, &all)),
    ];
    assert!(differences.iter().all(|(_, bytes)| bytes.is_empty()), "{differences:?}");
    assert!(expected.written.len() > 600 && found.read.len() > 300, "{} {}", expected.written.len(), found.read.len());
}

/// What a program prints by itself, and patched.
fn both(dir: &TempDir, program: &Path, args: &[&str]) {
    let native = Command::new(program).args(args).output().expect("it runs");
    let out = dir.0.join("out");
    let run = Command::new(VSRUN)
        .args(["--once", "--divergence-timeout", "60", "--scenario-dir"])
        .arg(&dir.0)
        .arg("--output")
        .arg(&out)
        .arg("--watch-log")
        .arg(dir.0.join("log"))
        .arg(program)
        .args(args)
        .output()
        .expect("vsrun runs");
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(
        matches!(run.status.code(), Some(0 | 3)),
        "{program:?} {args:?}: {said}{}",
        String::from_utf8_lossy(&run.stderr)
    );
    let mut expected = native.stdout;
    expected.extend(native.stderr);
    assert!(fs::read(&out).expect("the output") == expected, "{program:?} {args:?} prints something else");
}

#[test]
fn samples_come_to_the_same() {
    for flags in FORMS {
        let dir = TempDir::new(&format!("same{}", flags.join("")));
        let program = dir.compile("samples.c", flags);
        both(&dir, &program, &[]);
    }
}

#[test]
fn exceptions_pass_through_patched_frames() {
    for flags in [&["-O2"][..], &["-O0"], &["-O2", "-no-pie", "-fno-pie"]] {
        let dir = TempDir::new(&format!("throw{}", flags.join("")));
        let program = dir.compile("throws.cc", flags);
        both(&dir, &program, &[]);
    }
}

/// Locks of Rust's library spin before they wait, which is no place where anything can be told.
#[test]
fn mutexes_of_rust_are_explored() {
    let dir = TempDir::new("rust");
    let program = dir.0.join("mutex");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/watching/mutex.rs");
    let compiled = Command::new("rustc").args(["-O", source, "-o"]).arg(&program).status().expect("rustc runs");
    assert!(compiled.success());
    for (variant, code, says) in [("fixed", 0, "  explored completely."), ("buggy", 1, "ASSERTION: exit status 101")] {
        let run = Command::new(VSRUN)
            .env("RUST_BACKTRACE", "0")
            .args(["--race", "explore", "--fail-on-exit", "--output", "/dev/null", "--scenario-dir"])
            .arg(&dir.0)
            .args([program.as_os_str(), variant.as_ref()])
            .output()
            .expect("vsrun runs");
        let said = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.code() == Some(code) && said.contains(says), "{variant}: {:?} {said}", run.status);
    }
}

#[test]
fn real_programs_do_the_same() {
    let dir = TempDir::new("real");
    let input = dir.0.join("input");
    let text: String = (0..4000).map(|n| format!("line {} of {}\n", n * n % 977, n)).collect();
    fs::write(&input, &text).expect("a file");
    let name = input.to_str().expect("UTF-8");
    let programs: [(&str, &[&str]); 6] = [
        ("/usr/bin/gzip", &["-c", name]),
        ("/usr/bin/xz", &["-T1", "-c", name]),
        (
            "/usr/bin/sqlite3",
            &[":memory:", "create table t(a,b); insert into t values(1,'x'),(2,'y'); select sum(a), max(b) from t;"],
        ),
        ("/usr/bin/perl", &["-e", "my %h; $h{$_ % 97} .= $_ for 1..2000; print map { \"$_$h{$_}\\n\" } sort keys %h"]),
        (
            "/usr/bin/lua5.4",
            &["-e", "local t = {} for i = 1, 3000 do t[i] = i * i % 71 end table.sort(t) print(table.concat(t, ','))"],
        ),
        ("/usr/bin/sort", &[name]),
    ];
    let there = programs.iter().filter(|(program, _)| Path::new(program).exists());
    there.for_each(|(program, args)| both(&dir, Path::new(program), args));
}

/// Instrumentation that is lost is never green.
#[test]
fn the_canary_sings() {
    let said = Command::new(VSRUN).arg("doctor").output().expect("vsrun runs").stdout;
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("ok  watched memory: known accesses are recorded ("), "{said}");
    let said = Command::new(VSRUN).args(["doctor", "/bin/true"]).output().expect("vsrun runs").stdout;
    assert!(String::from_utf8_lossy(&said).contains("sites, "), "{}", String::from_utf8_lossy(&said));
}

/// What libc makes and ends threads with is recorded no more than other variables of its own; what the program gives is.
#[test]
fn sets_of_signals_are_recorded_if_they_are_the_programs() {
    let dir = TempDir::new("sets");
    let program = dir.compile("signal_sets.c", &["-O1"]);
    let log = dir.0.join("log");
    let mut run = Command::new(VSRUN);
    run.arg("--once")
        .arg("--scenario-dir")
        .arg(&dir.0)
        .arg("--output")
        .arg(dir.0.join("out"))
        .arg("--watch-log")
        .arg(&log);
    let run = run.arg(&program).output().expect("vsrun runs");
    assert!(matches!(run.status.code(), Some(0 | 3)), "{}", String::from_utf8_lossy(&run.stdout));
    let printed = fs::read_to_string(dir.0.join("out")).expect("the output");
    let address = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).expect("an address");
    let places: Vec<u64> = printed.split_whitespace().map(address).collect();
    let mut sets = BTreeSet::new();
    for entry in fs::read(&log).expect("the log").chunks_exact(24) {
        let word = |at: usize| u32::from_le_bytes(entry[at..at + 4].try_into().expect("four bytes"));
        let address = u64::from(word(0)) | u64::from(word(4)) << 32;
        let by_mask_call = word(8) == Entry::FUNCTION | Entry::CALL | nix::libc::SYS_rt_sigprocmask as u32;
        if by_mask_call || places.contains(&address) {
            sets.insert(address);
        }
    }
    assert_eq!(sets, places.into_iter().collect::<BTreeSet<u64>>());
}
