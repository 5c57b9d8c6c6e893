//! The processes of `--with`.

use vsrun_model::{Kind, Op};

use super::process::{self, CloneArgs};
use crate::gate::{arena, end, local, model, pass};
use crate::sys::{cstr, raw};

/// Most arguments of a command.
const MAX_ARGS: usize = 128;

/// Starts what `--with` names, as a shell would: each in a process group of its own, with nothing to read.
pub fn start(envp: u64) {
    let closing = &arena().closing;
    model().may_be_ended(closing.clients, closing.stop_signal as i32);
    let mut at = 0;
    for _ in 0..arena().closing.clients {
        let first = at;
        at = text_end(at);
        let n = usize::from(arena().closing.commands[at]).min(MAX_ARGS);
        at += 1;
        for _ in 0..n {
            at = text_end(at);
        }
        if process::clone(&CloneArgs { exit_signal: libc::SIGCHLD, ..CloneArgs::default() }) == 0 {
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
    // Nobody waits for it; the first process does not know of it.
    model().become_root(local().pid);
    let null = raw!(libc::SYS_open, c"/dev/null".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
    if null > 0 {
        raw!(libc::SYS_dup2, null, 0);
        raw!(libc::SYS_close, null);
    }
    if arena().closing.awaits != 0 {
        pass(Op::new(Kind::LISTENER));
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
    end::unsupported(&[b"a program of --with cannot be executed: ", cstr(file, 512)])
}
