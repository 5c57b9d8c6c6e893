use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use nix::sys::ptrace::{self, Options};
use nix::unistd::Pid;

use super::testing::*;
use super::*;

const KILL: Signal = match Signal::from_number(9) {
    Some(kill) => kill,
    None => panic!(),
};

#[test]
fn signals_have_names() {
    assert_eq!(signal(11).to_string(), "SIGSEGV");
    assert_eq!(signal(32).to_string(), "signal 32");
    assert_eq!(signal(36).to_string(), "SIGRTMIN+2");
    assert_eq!((Signal::from_number(0), Signal::from_number(65)), (None, None));
    assert_eq!(Signal::from(nix::sys::signal::SIGUSR1).number(), 10);
}

#[test]
fn signals_are_passed_on_or_kept() {
    let source = "#include <signal.h>\nint main(void){raise(SIGRTMIN+1); return 3;}";
    let at_signal = |stopped: Stopped| {
        let at = testing::stopped(stopped.resume(None).unwrap().wait().unwrap());
        assert_eq!(at.reason(), Reason::Signal(signal(35)));
        assert_eq!(at.siginfo().unwrap().si_signo, 35);
        at
    };
    with_program(source, |stopped| {
        assert_eq!(exit_code(at_signal(stopped).resume(None).unwrap().wait().unwrap()), 3);
    });
    with_program(source, |stopped| {
        let at = at_signal(stopped);
        match at.resume(Some(signal(35))).unwrap().wait().unwrap() {
            Event::Signaled { signal: by, core: false, .. } => assert_eq!(by, signal(35)),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn registers_are_read_and_set() {
    let source = r#"int main(void){int r = 5; __asm__ volatile("int3\n nop" : "+a"(r)); return r;}"#;
    with_program(source, |at_exec| {
        let at = stopped(at_exec.resume(None).unwrap().wait().unwrap());
        assert_eq!(at.reason(), Reason::Signal(signal(libc::SIGTRAP)));
        let mut regs = at.regs().unwrap();
        assert_eq!(regs.rax, 5);
        regs.rax = 77;
        ptrace::setregs(at.pid(), regs).unwrap();
        let at = stopped(at.step(None).unwrap().wait().unwrap());
        assert_eq!(at.regs().unwrap().rip, regs.rip + 1);
        assert_eq!(exit_code(at.resume(None).unwrap().wait().unwrap()), 77);
    });
}

#[test]
fn fault_addresses_are_told() {
    let at_fault = |body: &str| {
        with_program(&format!("#include <signal.h>\nint main(void){{{body} return 0;}}"), |at_exec| {
            let at = stopped(at_exec.resume(None).unwrap().wait().unwrap());
            let address = fault_address(&at.siginfo().unwrap());
            let rip = at.regs().unwrap().rip;
            at.kill().unwrap().reap().map(drop).unwrap();
            (address, rip)
        })
    };
    assert_eq!(at_fault("*(volatile char *)0x123 = 1;").0, Some(0x123));
    assert_eq!(at_fault("raise(SIGSEGV);").0, None);
    // Not a canonical address: the processor does not tell which.
    assert_eq!(at_fault("*(volatile char *)0x8000000000000000 = 1;").0, None);
    let (address, rip) = at_fault("__builtin_trap();");
    assert_eq!(address, Some(rip));
}

#[test]
fn job_control_stops_are_told_apart() {
    with_program("#include <signal.h>\nint main(void){raise(SIGSTOP); return 4;}", |at_exec| {
        let stop = signal(libc::SIGSTOP);
        let at = stopped(at_exec.resume(None).unwrap().wait().unwrap());
        assert_eq!(at.reason(), Reason::Signal(stop));
        let at = stopped(at.resume(Some(stop)).unwrap().wait().unwrap());
        assert_eq!(at.reason(), Reason::GroupStop(stop));
        assert_eq!(exit_code(at.resume(None).unwrap().wait().unwrap()), 4);
    });
}

#[test]
fn a_running_tracee_is_interrupted() {
    with_program("int main(void){for(;;);}", |at_exec| {
        let running = at_exec.resume(None).unwrap();
        running.interrupt().unwrap();
        let at = stopped(running.wait().unwrap());
        assert_eq!(at.reason(), Reason::Signal(signal(libc::SIGSTOP)));
        let end = at.kill().unwrap().reap().unwrap();
        assert!(matches!(end, Event::Signaled { signal: KILL, .. }), "{end:?}");
    });
}

#[test]
fn a_detached_tracee_goes_its_way() {
    with_program("int main(void){return 7;}", |at_exec| {
        let pid = at_exec.pid();
        at_exec.detach(None).unwrap();
        assert_eq!(exit_code(Running::traced(pid).wait().unwrap()), 7);
        assert!(Running::traced(pid).wait().unwrap_err().is_death());
    });
}

#[test]
fn death_is_data() {
    with_program("int main(void){return 0;}", |mut at| {
        nix::sys::signal::kill(at.pid(), nix::sys::signal::SIGKILL).unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while at.regs().is_ok() {
            assert!(Instant::now() < deadline);
        }
        assert_eq!(at.regs().unwrap_err(), TraceError::Died { operation: "get registers", pid: at.pid() });
        assert!(at.set_options(Options::PTRACE_O_EXITKILL).unwrap_err().is_death());
        let end = at.resume(None).unwrap().wait().unwrap();
        assert!(matches!(end, Event::Signaled { signal: KILL, core: false, .. }), "{end:?}");
    });
}

#[test]
fn an_invalid_signal_status_is_an_error() {
    let status = WaitStatus::from_raw(0xffff);
    let pid = Pid::from_raw(1);
    assert_eq!(Event::decode(pid, status).unwrap_err(), TraceError::Status { pid, status });
}

#[test]
fn a_central_loop_sees_every_kind_of_event() {
    let dir = TempDir::new();
    let source = r#"
        #define _GNU_SOURCE
        #include <pthread.h>
        #include <stdlib.h>
        #include <unistd.h>
        #include <sys/wait.h>
        static void *thread(void *x) { return x; }
        int main(int argc, char **argv) {
            if (argc > 1) return 9;
            if (fork() == 0) abort();
            wait(0);
            if (vfork() == 0) _exit(2);
            wait(0);
            pthread_t t;
            pthread_create(&t, 0, thread, 0);
            pthread_join(t, 0);
            execl("/proc/self/exe", "again", "x", (char *)0);
        }"#;
    let exe = dir.compile("program", "c", source, &["-pthread"]);
    let run = in_own_process(module_path!(), "inner_central_loop", &[("VSRUN_TEST_EXE", &exe)]);
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{text}{}", String::from_utf8_lossy(&run.stderr));
    let events: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix("event ")).collect();
    for wanted in [
        "root Fork",
        "root Vfork",
        "root VforkDone",
        "root Clone",
        "root Exec",
        "other Exit",
        "root Exit",
        "other Signal SIGABRT",
        "other signaled SIGABRT",
        "other exited 2",
        "other exited 0",
        "root exited 9",
        "other Signal SIGSTOP",
    ] {
        assert!(events.contains(&wanted), "{wanted} in {events:#?}");
    }
    assert_eq!(events.last(), Some(&"root exited 9"));
}

#[test]
#[ignore = "waits for any child; run by a_central_loop_sees_every_kind_of_event"]
fn inner_central_loop() {
    let Some(exe) = variable("VSRUN_TEST_EXE") else { return };
    let mut root = launch(&plain(exe)).unwrap();
    let root_pid = root.pid();
    root.set_options(Options::all()).unwrap();
    let _ = root.resume(None).unwrap();
    println!();
    loop {
        match wait_any(true).unwrap() {
            Waited::Changed(pid, status) => {
                let who = if pid == root_pid { "root" } else { "other" };
                println!("event {who} {}", describe_and_resume(Event::decode(pid, status).unwrap()));
            }
            Waited::NoChildren => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(wait_any(false).unwrap(), Waited::NoChildren);
}

fn describe_and_resume(event: Event) -> String {
    let at = match event {
        Event::Stopped(at) => at,
        Event::Exited { code, .. } => return format!("exited {code}"),
        Event::Signaled { signal, .. } => return format!("signaled {signal}"),
        Event::Dying(_) => return "dying".to_string(),
    };
    let message = ptrace::getevent(at.pid()).unwrap();
    let (text, pass_on) = match at.reason() {
        Reason::Signal(signal) => (format!("Signal {signal}"), (signal.number() != libc::SIGSTOP).then_some(signal)),
        Reason::Fork(p) | Reason::Vfork(p) | Reason::Clone(p) => {
            assert_eq!(message, i64::from(p.as_raw()));
            (format!("{:?}", at.reason()).split('(').next().unwrap().to_string(), None)
        }
        other => (format!("{other:?}"), None),
    };
    let _ = at.resume(pass_on).unwrap();
    text
}

#[test]
fn tracees_die_with_the_tracer() {
    let dir = TempDir::new();
    let exe = dir.compile("program", "c", "int main(void){for(;;);}", &[]);
    let run = in_own_process(module_path!(), "inner_killed_tracer", &[("VSRUN_TEST_EXE", &exe)]);
    assert_eq!(run.status.signal(), Some(9), "{run:?}");
    let text = String::from_utf8(run.stdout).unwrap();
    let pid = text.lines().find_map(|l| l.strip_prefix("pid ")).unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    let is_ours = || fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|path| path == exe);
    while is_ours() {
        assert!(Instant::now() < deadline, "process {pid} lives");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
#[ignore = "kills its process; run by tracees_die_with_the_tracer"]
fn inner_killed_tracer() {
    let Some(exe) = variable("VSRUN_TEST_EXE") else { return };
    let stopped = launch(&plain(exe)).unwrap();
    println!("\npid {}", stopped.pid());
    let _running = stopped.resume(None).unwrap();
    nix::sys::signal::raise(nix::sys::signal::SIGKILL).unwrap();
}

#[test]
fn errors_can_leave_the_thread() {
    fn sendable<T: Send + Sync + std::error::Error>() {}
    sendable::<TraceError>();
    sendable::<LaunchError>();
}
