//! Closing the system: the processes of `--with`, and the signal for what they leave over.

use vsrun_model::{Decision, Disposal, End, ProcState, SigInfo, NONE};

use crate::local::{arena, local, world};
use crate::process::{self, CloneArgs};
use crate::{end, gate, raw, signal};

/// Most arguments of a command.
const MAX_ARGS: usize = 128;

/// Starts what `--with` names, as a shell would: each in a process group of its own, with nothing to read.
pub fn start_clients(envp: u64) {
    let mut at = 0;
    for _ in 0..arena().closing.clients {
        let first = at;
        at = text_end(at);
        let n = usize::from(arena().closing.commands[at]).min(MAX_ARGS);
        at += 1;
        for _ in 0..n {
            at = text_end(at);
        }
        if process::clone(&CloneArgs::default()) == 0 {
            become_client(first, envp);
        }
    }
}

/// Where the text that begins at `at` ends, its NUL included.
fn text_end(at: usize) -> usize {
    let rest = &arena().closing.commands[at..];
    at + rest.iter().position(|&b| b == 0).unwrap_or(rest.len() - 1) + 1
}

fn become_client(first: usize, envp: u64) -> ! {
    let p = local().pid;
    let me = &mut world().procs[p];
    // Nobody waits for it; the first process does not know of it.
    me.parent = vsrun_model::NONE;
    me.pgid = me.vpid;
    let null = raw!(libc::SYS_open, c"/dev/null".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
    if null > 0 {
        raw!(libc::SYS_dup2, null, 0);
        raw!(libc::SYS_close, null);
    }
    let text = |at: usize| &raw const arena().closing.commands[at] as u64;
    let file = text(first);
    let mut at = text_end(first);
    let n = usize::from(arena().closing.commands[at]).min(MAX_ARGS);
    at += 1;
    let mut argv = [0u64; MAX_ARGS + 1];
    for word in &mut argv[..n] {
        *word = text(at);
        at = text_end(at);
    }
    process::exec(libc::AT_FDCWD, file, argv.as_ptr() as u64, envp, 0);
    end::unsupported(&[b"a program of --with cannot be executed: ", crate::sys::cstr(file, 512)])
}

/// The scheduler step. Where only peers that do not come are waited for, what is left gets the signal that was asked
/// for, once.
pub fn step() -> Decision {
    let decision = arena().step();
    let signal = arena().closing.stop_signal as i32;
    if world().end != End::WAITS_OUTSIDE || signal == 0 {
        return decision;
    }
    world().end = End::RUNNING;
    arena().closing.stopped = 1;
    for p in 0..world().procs.len {
        if world().procs[p].state == ProcState::LIVE {
            stop(p, signal);
        }
    }
    let decision = arena().step();
    if world().procs[local().pid].state != ProcState::LIVE {
        leave(decision);
    }
    decision
}

/// Sends the signal. That it ends a process is what is wanted, not a crash.
fn stop(p: u32, number: i32) {
    let real = world().procs[p].real_pid;
    match world().disposal(p, NONE, number) {
        Disposal::Kills => {}
        Disposal::Stops => end::unsupported(&[b"a signal that stops what is left over"]),
        Disposal::Ignored | Disposal::Pending => {
            let uid = raw!(libc::SYS_getuid) as u32;
            return signal::send(p, NONE, SigInfo { signal: number, code: libc::SI_USER, pid: 0, uid, value: 0 });
        }
    }
    if p == 0 {
        arena().control.status = number;
        arena().control.status_known = 1;
    }
    world().process_exit(p, number);
    process::child_over(p);
    if p != local().pid {
        raw!(libc::SYS_kill, real, libc::SIGKILL);
    }
}

/// The process that had the turn has been ended.
fn leave(decision: Decision) -> ! {
    match decision {
        Decision::Ended => end::finish(),
        Decision::Run(t) => {
            let target = world().threads[t].pid;
            gate::wake_process(target);
            end::die(0)
        }
    }
}
