//! The processes of `--with`, and those that start the program again (`--restart`).

use vsrun_model::closing::{Awaits, ALWAYS};
use vsrun_model::{Kind, Op, Pid};

use super::files;
use super::process::{self, CloneArgs};
use crate::gate::{arena, end, exit, local, model, pass};
use crate::sys::{cstr, raw};

/// Most arguments of a command.
const MAX_ARGS: usize = 128;

/// Starts what `--with` names, as a shell would: each in a process group of its own, with nothing to read. Then those that wait for the end
/// of the program to start it again.
pub fn start(envp: u64) {
    let closing = &arena().closing;
    let (clients, restarts) = (closing.clients, closing.restarts);
    model().set_roots(clients, restarts, closing.stop_signal as i32);
    files::expect();
    let mut at = 0;
    for _ in 0..clients {
        let first = at;
        at = command_end(at);
        if process::clone(&CloneArgs { exit_signal: libc::SIGCHLD, ..CloneArgs::default() }) == 0 {
            become_client(first, envp);
        }
    }
    for n in 0..restarts {
        if process::clone(&CloneArgs { exit_signal: libc::SIGCHLD, ..CloneArgs::default() }) == 0 {
            become_start(if n == 0 { 0 } else { clients + n }, at, envp);
        }
    }
}

/// Where the text that begins at `at` ends, its NUL included.
fn text_end(at: usize) -> usize {
    let rest = &arena().closing.commands[at..];
    at + rest.iter().position(|&b| b == 0).unwrap_or(rest.len() - 1) + 1
}

/// Where the command that begins at `at` ends.
fn command_end(at: usize) -> usize {
    let mut at = text_end(at);
    let n = usize::from(arena().closing.commands[at]).min(MAX_ARGS);
    at += 1;
    for _ in 0..n {
        at = text_end(at);
    }
    at
}

/// Nobody waits for this process; the first one does not know of it. It has nothing to read.
fn become_root() {
    model().become_root(local().pid);
    let null = raw!(libc::SYS_open, c"/dev/null".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
    if null > 0 {
        raw!(libc::SYS_dup2, null, 0);
        raw!(libc::SYS_close, null);
    }
}

fn become_client(first: usize, envp: u64) -> ! {
    become_root();
    let awaits = arena().closing.awaits;
    if awaits != Awaits::NOTHING {
        pass(Op::new(Kind::LISTENER).arg(awaits.0.into()));
    }
    become_command(first, envp)
}

/// Starts the program of the command at `first` once process `before` is over, or ends where that is not asked for.
fn become_start(before: Pid, first: usize, envp: u64) -> ! {
    become_root();
    model().will_start(local().pid);
    let op = Op::new(Kind::RESTART).arg(before.into());
    let again = pass(if arena().closing.always != 0 { op.with(ALWAYS) } else { op });
    if again == 0 {
        exit::exit_group(0);
    }
    become_command(first, envp)
}

fn become_command(first: usize, envp: u64) -> ! {
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
    end::unsupported(&[b"a program of --with or --restart cannot be executed: ", cstr(file, 512)])
}
