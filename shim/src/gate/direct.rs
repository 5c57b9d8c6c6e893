//! The end of an execution without a supervisor: every fiber becomes a real kernel thread again, on its own stack and
//! thread pointer, so that a debugger shows them all.

use vsrun_model::{End, ThreadState, Tid};

use super::{fiber_of, local, word, world};
use crate::sys::{complain, decimal, die, dispatch, raw};

const THREAD_FLAGS: u64 = 0x100 | 0x200 | 0x400 | 0x800 | 0x10000 | 0x40000 | 0x80000;

core::arch::global_asm!(
    // vs_materialize(flags, stack, fs): a thread whose stack is a parked fiber's. It waits for ever in a frame below.
    ".hidden vs_materialize",
    ".globl vs_materialize",
    ".type vs_materialize,@function",
    "vs_materialize:",
    ".cfi_startproc",
    " mov r8, rdx",
    " xor edx, edx",
    " xor r10d, r10d",
    " mov eax, 56",
    " syscall",
    " test rax, rax",
    " jz 1f",
    " ret",
    // The fiber's saved frame lies at rsp: 64 bytes, then its return address is what `vs_switch` would return to.
    "1:",
    ".cfi_def_cfa rsp, 64",
    ".cfi_offset rip, -8",
    ".cfi_offset rbp, -16",
    ".cfi_offset rbx, -24",
    ".cfi_offset r12, -32",
    ".cfi_offset r13, -40",
    ".cfi_offset r14, -48",
    ".cfi_offset r15, -56",
    "2: mov eax, 34",
    " syscall",
    " jmp 2b",
    ".cfi_endproc",
    ".size vs_materialize, .-vs_materialize",
);

core::arch::global_asm!(
    ".hidden vsrun_end_of_scenario",
    ".globl vsrun_end_of_scenario",
    ".type vsrun_end_of_scenario,@function",
    "vsrun_end_of_scenario:",
    ".cfi_startproc",
    " int3",
    " nop",
    " ret",
    ".cfi_endproc",
    ".size vsrun_end_of_scenario, .-vsrun_end_of_scenario",
);

extern "C" {
    fn vsrun_end_of_scenario();
    fn vs_materialize(flags: u64, stack: u64, fs: u64) -> i64;
}

/// Shows the end of the world to whoever looks and ends it. Only the first process does: a debugger is attached to
/// that one. Materializes its fibers, says what happened, stops in a debugger if there is one.
pub fn show() -> ! {
    if local().pid != 0 {
        word::wake(0);
        park();
    }
    dispatch::disarm();
    let w = world();
    for i in 0..w.live.len {
        let t: Tid = w.live[i];
        let thread = &w.threads[t];
        if t != local().cur && thread.pid == local().pid && thread.state == ThreadState::PARKED {
            // SAFETY: the fiber is parked, its stack is its own, and nobody switches to it any more.
            unsafe { vs_materialize(THREAD_FLAGS, fiber_of(t).context, fiber_of(t).fs) };
        }
    }
    // The new threads have yet to reach the place where they wait.
    let moment: [i64; 2] = [0, 30_000_000];
    raw!(libc::SYS_nanosleep, moment.as_ptr(), 0);
    let code = say();
    if traced() {
        // SAFETY: a breakpoint for the debugger that traces this process, in a function that says why.
        unsafe { vsrun_end_of_scenario() };
    }
    for process in world().procs.as_slice() {
        if process.own.real_pid > 0 && process.own.real_pid as i64 != raw!(libc::SYS_getpid) {
            raw!(libc::SYS_kill, process.own.real_pid, libc::SIGKILL);
        }
    }
    die(code)
}

/// This process is over or has nothing more to do, but its children live as long as it does.
pub fn park() -> ! {
    loop {
        wait();
    }
}

/// Waits until this process is given the turn, and shows the end if that is what there is to be seen.
pub fn wait() {
    word::wait(local().pid, Some(check_holder));
    if world().end != End::RUNNING {
        show();
    }
}

/// Says that the last step of the scenario is being taken: what follows may be a loop without end.
#[inline(never)]
pub fn last_step(t: Tid) {
    let process = &world().procs[world().threads[t].pid];
    let (seen, real) = (decimal(process.vpid), decimal(process.own.real_pid));
    complain(&[b"vsrun: the last step of the scenario is taken by process ", &seen, b" of the program, pid ", &real]);
}

/// Says how the world ended; the exit code of the replay.
fn say() -> i32 {
    let w = world();
    let text: &[u8] = match w.end {
        End::DEADLOCK => b"deadlock: nothing can move",
        End::CYCLE => b"deadlock: threads wait for each other in a circle",
        End::MISUSE => b"misuse of a synchronization object",
        End::LIVELOCK => b"livelock",
        End::STATUS => b"exit status",
        End::KILLED => b"the first process is killed by a signal",
        End::FINISHED => b"everything finished, without the bug",
        End::MISMATCH => b"the replay diverged: the program did not follow the scenario",
        _ => w.message(),
    };
    complain(&[b"vsrun: reached the end of the scenario: ", text]);
    for process in w.procs.as_slice() {
        if process.state == vsrun_model::ProcState::LIVE && process.main_thread != 0 {
            let (seen, real) = (decimal(process.vpid), decimal(process.own.real_pid));
            complain(&[b"vsrun: process ", &seen, b" of the program can be looked at with: gdb -p ", &real]);
        }
    }
    match w.end {
        End::FINISHED | End::MISMATCH | End::BUG => 4,
        End::UNSUPPORTED | End::ROOM => 2,
        _ => 1,
    }
}

/// While this process waits for its turn: the process that has it may have been killed, and nobody else would notice.
fn check_holder() {
    let w = world();
    let Some(thread) = w.threads.get(w.current) else { return };
    let real = w.procs[thread.pid].own.real_pid;
    if w.end != End::RUNNING || real <= 0 || alive(real) {
        return;
    }
    let seen = decimal(w.procs[thread.pid].vpid);
    complain(&[b"vsrun: process ", &seen, b" of the program was killed by a signal"]);
    die(1);
}

/// True if the process exists and is not a zombie.
fn alive(pid: i32) -> bool {
    let pid = decimal(pid);
    let mut path = [0u8; 64];
    let mut used = 0;
    for part in [b"/proc/".as_slice(), &pid, b"/stat"] {
        path[used..used + part.len()].copy_from_slice(part);
        used += part.len();
    }
    let fd = raw!(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), libc::O_RDONLY);
    if fd < 0 {
        return false;
    }
    let mut text = [0u8; 512];
    let n = raw!(libc::SYS_read, fd, text.as_mut_ptr(), text.len()).max(0) as usize;
    raw!(libc::SYS_close, fd);
    !text[..n].windows(4).any(|w| w == b") Z " || w == b") X ")
}

/// True if a debugger is attached.
fn traced() -> bool {
    let fd = raw!(libc::SYS_openat, libc::AT_FDCWD, c"/proc/self/status".as_ptr(), libc::O_RDONLY);
    let mut text = [0u8; 4096];
    let n = raw!(libc::SYS_read, fd, text.as_mut_ptr(), text.len()).max(0) as usize;
    raw!(libc::SYS_close, fd);
    let key = b"TracerPid:\t";
    text[..n].windows(key.len() + 1).any(|w| w.starts_with(key) && w[key.len()] != b'0')
}
