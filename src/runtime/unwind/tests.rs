use super::frame::RBP;
use super::*;
use crate::base::testing::TempDir;
use crate::runtime::memory::ProcessMemory;
use crate::runtime::tracee::testing::{plain, stopped, Killer};
use crate::runtime::tracee::{launch, Reason, Running, Stopped};
use nix::sys::ptrace::Options;
use std::fs;
use std::process::Command;

/// What all the programs begin with: functions that are not inlined and whose calls are not in tail position.
const COMMON: &str = r#"
    #define _GNU_SOURCE
    #include <pthread.h>
    #include <signal.h>
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>
    #include <ucontext.h>
    #include <sys/syscall.h>
    #define STOP __asm__ volatile("int3")
    #define KEEP __asm__ volatile("" ::: "memory")
    #define CALL __attribute__((noipa))
"#;

/// A program that stands at its `STOP`, with the symbols `nm` finds in it.
struct Debuggee {
    _dir: TempDir,
    exe: PathBuf,
    symbols: BTreeMap<u64, String>,
    unwinder: Unwinder,
}

impl Debuggee {
    fn build(source: &str, flags: &[&str]) -> Debuggee {
        let dir = TempDir::new();
        let exe = dir.compile("program", "c", &format!("{COMMON}{source}"), &[&["-pthread", "-w"], flags].concat());
        let nm = Command::new("nm").arg(&exe).output().unwrap();
        let symbols = String::from_utf8(nm.stdout).unwrap().lines().filter_map(function).collect();
        Debuggee { _dir: dir, exe, symbols, unwinder: Unwinder::new() }
    }

    /// Runs the program to its first breakpoint, in whichever thread, and gives that to `look`.
    fn at_stop(&mut self, look: impl FnOnce(&mut Debuggee, Stopped) -> Stopped) {
        let mut root = launch(&plain(self.exe.clone())).unwrap();
        let killer = Killer::of(&root);
        root.set_options(Options::PTRACE_O_EXITKILL | Options::PTRACE_O_TRACECLONE).unwrap();
        let root_pid = root.pid();
        let at = look(self, to_breakpoint(root));
        let dying = at.kill().unwrap();
        if dying.pid() != root_pid {
            let _ = dying.reap().unwrap(); // a thread must go before the first thread can
        }
        drop(killer);
    }

    fn backtrace(&mut self, at: &Stopped) -> Vec<String> {
        let maps = Mapping::parse_all(&fs::read(format!("/proc/{}/maps", at.pid())).unwrap());
        let memory = ProcessMemory::open(at.pid()).unwrap();
        let counters = self.unwinder.backtrace(&maps, &memory, Regs::from(&at.regs().unwrap()), 50);
        counters.iter().enumerate().map(|(i, pc)| self.name(&maps, *pc, i == 0)).collect()
    }

    /// The function of the program, or the file, that the counter is in. The first counter is exact, and so is one
    /// at which a function starts, in these programs.
    fn name(&self, maps: &[Mapping], counter: u64, exact: bool) -> String {
        let Some(mapping) = maps.iter().find(|m| m.contains(counter)) else { return format!("{counter:#x}") };
        let Some(path) = mapping.file() else { return "anonymous".to_string() };
        if path != self.exe {
            return path.file_name().unwrap().to_string_lossy().into_owned();
        }
        // Independent of the code under test: gcc's first segment starts at the file's start.
        let start = maps.iter().find(|m| m.file() == Some(path)).unwrap().start;
        let bias = if start < 0x1000_0000 { 0 } else { start };
        let address = counter - bias;
        let address = if exact || self.symbols.contains_key(&address) { address } else { address - 1 };
        self.symbols.range(..=address).next_back().unwrap().1.clone()
    }
}

fn function(line: &str) -> Option<(u64, String)> {
    let mut fields = line.split(' ');
    let (address, kind, name) = (fields.next()?, fields.next()?, fields.next()?);
    let address = u64::from_str_radix(address, 16).ok()?;
    kind.eq_ignore_ascii_case("t").then(|| (address, name.to_string()))
}

fn to_breakpoint(root: Stopped) -> Stopped {
    let mut at = root;
    loop {
        at = match at.reason() {
            Reason::Signal(s) if s.number() == libc::SIGTRAP => return at,
            Reason::Clone(thread) => {
                let leader = at.pid();
                let _ = at.resume(None).unwrap();
                let thread = stopped(Running::traced(thread).wait().unwrap());
                // The programs' threads reach the breakpoint, not the one that waits for them.
                assert_ne!(thread.pid(), leader);
                stopped(thread.resume(None).unwrap().wait().unwrap())
            }
            Reason::Signal(s) => stopped(at.resume(Some(s)).unwrap().wait().unwrap()),
            _ => stopped(at.resume(None).unwrap().wait().unwrap()),
        };
    }
}

/// Checks the whole stack of a program at its breakpoint.
fn check(source: &str, flags: &[&str], expected: &[&str]) {
    let mut debuggee = Debuggee::build(source, flags);
    debuggee.at_stop(|debuggee, at| {
        assert_eq!(debuggee.backtrace(&at), expected);
        at
    });
}

const LIBC: &str = "libc.so.6";

const NESTED: &str = r#"
    CALL int deep(int n) { volatile char room[200]; room[n] = n; STOP; return room[n]; }
    CALL int middle(int n) { char room[n * 100]; memset(room, n, sizeof room); KEEP; return deep(n) + room[3]; }
    CALL int outer(int n) { int r = middle(n + 1); KEEP; return r + n; }
    "#;

#[test]
fn nested_calls() {
    let source = format!("{NESTED} int main(int c, char **v) {{ int r = outer(c); KEEP; return r; }}");
    let expected = ["deep", "middle", "outer", "main", LIBC, LIBC, "_start"];
    check(&source, &["-O2"], &expected);
    check(&source, &["-O0", "-no-pie"], &expected);
    check(&source, &["-O2", "-no-pie", "-Wl,-z,noseparate-code"], &expected);
}

#[test]
fn threads() {
    let source = format!(
        "{NESTED} CALL void *work(void *x) {{ long r = outer(2); KEEP; return (void *)r; }}
        int main(void) {{ pthread_t t; pthread_create(&t, 0, work, 0); pthread_join(t, 0); }}"
    );
    check(&source, &["-O2", "-fomit-frame-pointer"], &["deep", "middle", "outer", "work", LIBC, LIBC]);
}

const HANDLER: &str = r#"
    CALL int in_handler(int n) { STOP; return n; }
    CALL void handler(int n) { in_handler(n); KEEP; }
    "#;

#[test]
fn signal_handlers() {
    for on_stack in ["0", "SA_ONSTACK"] {
        let source = format!(
            "{HANDLER} static char room[65536];
            CALL int crash(int *p) {{ volatile char more[100]; more[0] = 1; KEEP; return *p + more[0]; }}
            CALL int outer(int *p) {{ int r = crash(p); KEEP; return r; }}
            int main(void) {{
                stack_t other = {{ .ss_sp = room, .ss_size = sizeof room }};
                sigaltstack(&other, 0);
                struct sigaction a = {{ .sa_handler = handler, .sa_flags = {on_stack} }};
                sigaction(SIGSEGV, &a, 0);
                int r = outer(0); KEEP; return r;
            }}"
        );
        let expected = ["in_handler", "handler", LIBC, "crash", "outer", "main", LIBC, LIBC, "_start"];
        check(&source, &["-O2"], &expected);
    }
}

/// A function interrupted at its very first instruction lies right behind another that has a large frame.
#[test]
fn an_interrupted_address_is_exact() {
    let source = format!(
        r#"{HANDLER}
        __asm__(".text\n.type before,@function\nbefore: .cfi_startproc\n .cfi_def_cfa_offset 4096\n ud2\n"
            ".cfi_endproc\n.type crash,@function\ncrash: .cfi_startproc\n movl $0, 0\n ret\n .cfi_endproc\n");
        void crash(void);
        int main(void) {{ signal(SIGSEGV, handler); crash(); KEEP; return 0; }}"#
    );
    check(&source, &["-O2"], &["in_handler", "handler", LIBC, "crash", "main", LIBC, LIBC, "_start"]);
}

/// A restorer as small runtimes bring it, right behind a function with tables.
#[test]
fn a_signal_return_without_tables() {
    let source = format!(
        r#"{HANDLER}
        __asm__(".text\n.type before,@function\nbefore: .cfi_startproc\n .cfi_def_cfa_offset 4096\n ud2\n"
            ".cfi_endproc\n.type restorer,@function\nrestorer: mov $15, %eax\n syscall\n");
        void restorer(void);
        CALL int send(void) {{ int r = kill(getpid(), SIGUSR1); KEEP; return r; }}
        int main(void) {{
            struct {{ void *handler; long flags; void *restorer; long mask; }} a = {{ handler, 0x04000000, restorer }};
            syscall(SYS_rt_sigaction, SIGUSR1, &a, 0, 8L);
            int r = send(); KEEP; return r;
        }}"#
    );
    let expected = ["in_handler", "handler", "restorer", LIBC, "send", "main", LIBC, LIBC, "_start"];
    check(&source, &["-O2"], &expected);
}

#[test]
fn code_without_tables_by_frame_pointer() {
    let source = format!("{NESTED} int main(int c, char **v) {{ int r = outer(c); KEEP; return r; }}");
    let flags = ["-O2", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-omit-frame-pointer"];
    check(&source, &flags, &["deep", "middle", "outer", "main", LIBC, LIBC, "_start"]);
}

/// Each kind of register rule: the callee saves rbx by an expression, and the caller finds its frame by rbx.
#[test]
fn every_kind_of_rule() {
    let source = r#"
        __asm__(".text\n.type callee,@function\ncallee: .cfi_startproc\n push %rbx\n .cfi_def_cfa_offset 16\n"
            ".cfi_escape 0x10, 16, 3, 0x09, 0xf8, 0x22\n"       // return address: at CFA - 8
            ".cfi_escape 0x14, 7, 0\n"                          // rsp: CFA + 0
            ".cfi_escape 0x16, 3, 4, 0x09, 0xf0, 0x22, 0x06\n"  // rbx: the content of CFA - 16
            ".cfi_register 12, 6\n"                             // r12: in rbp
            "xor %ebx, %ebx\n int3\n pop %rbx\n ret\n .cfi_endproc\n"
            ".type caller,@function\ncaller: .cfi_startproc\n push %rbx\n .cfi_def_cfa_offset 16\n"
            ".cfi_offset 3, -16\n mov %rsp, %rbx\n .cfi_def_cfa_register 3\n sub $400, %rsp\n call callee\n"
            "mov %rbx, %rsp\n pop %rbx\n ret\n .cfi_endproc\n");
        void caller(void);
        int main(void) { caller(); KEEP; return 0; }"#;
    check(source, &["-O2"], &["callee", "caller", "main", LIBC, LIBC, "_start"]);
}

/// A call at the very end of a function that does not come back: its return address belongs to the next.
#[test]
fn a_call_that_does_not_return() {
    let source = r#"
        __asm__(".text\n.type last,@function\nlast: .cfi_startproc\n sub $72, %rsp\n .cfi_adjust_cfa_offset 72\n"
            "call stop_here\n.cfi_endproc\n.type next,@function\nnext: .cfi_startproc\n"
            ".cfi_def_cfa_offset 4096\n ret\n .cfi_endproc\n");
        CALL void stop_here(void) { STOP; _exit(0); }
        void last(void);
        int main(void) { last(); KEEP; return 0; }"#;
    let mut debuggee = Debuggee::build(source, &["-O2"]);
    debuggee.at_stop(|debuggee, at| {
        let names = debuggee.backtrace(&at);
        assert_eq!(names[0], "stop_here");
        assert_eq!(names[2..], ["main", LIBC, LIBC, "_start"]);
        at
    });
}

#[test]
fn a_call_of_a_null_pointer() {
    let source = "
        void (*volatile nothing)(void);
        CALL int caller(int n) { nothing(); KEEP; return n; }
        int main(int c, char **v) { STOP; int r = caller(c); KEEP; return r; }";
    let mut debuggee = Debuggee::build(source, &["-O2"]);
    debuggee.at_stop(|debuggee, at| {
        let at = stopped(at.resume(None).unwrap().wait().unwrap());
        assert_eq!(at.siginfo().unwrap().si_signo, libc::SIGSEGV);
        assert_eq!(debuggee.backtrace(&at), ["0x0", "caller", "main", LIBC, LIBC, "_start"]);
        at
    });
}

/// At every single instruction of a call through the PLT that the loader must resolve first.
#[test]
fn every_instruction_of_a_lazy_call() {
    let source = "
        CALL int outer(void) { STOP; int r = getppid(); KEEP; return r; }
        CALL void finished(void) { KEEP; }
        int main(void) { int r = outer(); KEEP; finished(); return r; }";
    let mut debuggee = Debuggee::build(source, &["-O2", "-Wl,-z,lazy"]);
    debuggee.at_stop(|debuggee, mut at| {
        let mut seen = BTreeSet::new();
        for _ in 0..20_000 {
            let names = debuggee.backtrace(&at);
            let from_main = &names[names.len().saturating_sub(4)..];
            assert_eq!(from_main, ["main", LIBC, LIBC, "_start"], "{names:?} {:#x?}", at.regs());
            seen.extend(names.clone());
            if names[0] == "finished" {
                break;
            }
            assert!(names[0] == "main" || names[names.len() - 5] == "outer", "{names:?}");
            at = stopped(at.step(None).unwrap().wait().unwrap());
        }
        assert!(seen.contains("finished"), "{seen:?}");
        assert!(seen.iter().any(|n| n.starts_with("ld-linux")), "{seen:?}");
        at
    });
}

#[test]
fn damaged_stacks_end() {
    struct Garbage;
    impl ReadMemory for Garbage {
        fn read_u64(&self, addr: u64) -> Option<u64> {
            (!addr.is_multiple_of(3)).then_some(addr.rotate_left(13) ^ 0x5555)
        }
    }
    struct Loop;
    impl ReadMemory for Loop {
        fn read_u64(&self, addr: u64) -> Option<u64> {
            Some(if addr == 0x2000 { 0x2000 } else { 0x1234 })
        }
    }
    let maps = Mapping::parse_all(b"1000-3000 r-xp 00000000 00:00 0 \n");
    let mut regs = Regs { general: [0x2000; 16], rip: 0x1010 };
    let mut unwinder = Unwinder::new();
    assert_eq!(unwinder.backtrace(&maps, &Garbage, regs, 50)[0], 0x1010);
    // rbp points to itself: its second frame is below the first.
    assert_eq!(unwinder.backtrace(&maps, &Loop, regs, 50), [0x1010, 0x1234]);
    assert_eq!(unwinder.backtrace(&maps, &Loop, regs, 1), [0x1010]);
    assert_eq!(unwinder.backtrace(&maps, &Loop, regs, 0), [0; 0]);
    regs.general[RBP] = u64::MAX - 7;
    assert_eq!(unwinder.backtrace(&maps, &Loop, regs, 50), [0x1010]);
    assert_eq!(unwinder.backtrace(&[], &Garbage, Regs::default(), 50)[0], 0);
}

#[test]
fn registers_are_numbered_as_dwarf_does() {
    let mut at = Debuggee::build("int main(void){STOP; return 0;}", &["-O1"]);
    at.at_stop(|_, at| {
        let r = at.regs().unwrap();
        let regs = Regs::from(&r);
        assert_eq!((regs.rip, regs.get(16)), (r.rip, Some(r.rip)));
        assert_eq!([regs.get(1), regs.get(2), regs.get(4), regs.get(5)], [r.rdx, r.rcx, r.rsi, r.rdi].map(Some));
        assert_eq!([regs.get(6), regs.get(7), regs.get(15)], [r.rbp, r.rsp, r.r15].map(Some));
        assert_eq!(regs.get(17), None);
        at
    });
}
