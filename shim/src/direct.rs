//! The end of an execution without a supervisor: every fiber becomes a real kernel thread again, on its own stack and
//! thread pointer, so that a debugger shows them all.

use vsrun_model::{ThreadState, Tid};

use crate::local::{local, world};
use crate::{net, raw};

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

extern "C" {
    fn vs_materialize(flags: u64, stack: u64, fs: u64) -> i64;
}

/// Shows the end of the world to whoever looks: materializes the fibers of this process, says what happened, and stops
/// in a debugger if there is one.
pub fn show() {
    net::disarm();
    let w = world();
    for i in 0..w.live.len {
        let t: Tid = w.live[i];
        let thread = &w.threads[t];
        if t != local().cur && thread.pid == local().pid && thread.state == ThreadState::PARKED {
            // SAFETY: the fiber is parked, its stack is its own, and nobody switches to it any more.
            unsafe { vs_materialize(THREAD_FLAGS, thread.context, thread.fs) };
        }
    }
    if traced() {
        // SAFETY: a breakpoint for the debugger that traces this process.
        unsafe { core::arch::asm!("int3") };
    }
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
