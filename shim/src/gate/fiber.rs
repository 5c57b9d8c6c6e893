//! Fibers: threads of a process carried by one kernel thread. A switch saves the callee-saved registers, the
//! floating-point control words and the thread pointer; the rest is the caller's to save, by the calling convention.

use vsrun_model::Tid;

use super::{fiber_of, local, shield};
use crate::sys::track::track;
use crate::sys::{guard, raw, store};
use crate::watch;

core::arch::global_asm!(
    // vs_switch(save: *mut u64, to: u64, fs: u64)
    ".hidden vs_switch",
    ".globl vs_switch",
    ".type vs_switch,@function",
    "vs_switch:",
    ".cfi_startproc",
    " push rbp",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset rbp, 0",
    " push rbx",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset rbx, 0",
    " push r12",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset r12, 0",
    " push r13",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset r13, 0",
    " push r14",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset r14, 0",
    " push r15",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset r15, 0",
    " sub rsp, 8",
    ".cfi_adjust_cfa_offset 8",
    " stmxcsr [rsp]",
    " fnstcw [rsp + 4]",
    " mov [rdi], rsp",
    " mov rsp, rsi",
    " wrfsbase rdx",
    // A materialized thread comes in here with its own stack pointer.
    ".hidden vs_resume",
    ".globl vs_resume",
    "vs_resume:",
    " ldmxcsr [rsp]",
    " fldcw [rsp + 4]",
    " add rsp, 8",
    ".cfi_adjust_cfa_offset -8",
    " pop r15",
    ".cfi_adjust_cfa_offset -8",
    ".cfi_restore r15",
    " pop r14",
    ".cfi_adjust_cfa_offset -8",
    ".cfi_restore r14",
    " pop r13",
    ".cfi_adjust_cfa_offset -8",
    ".cfi_restore r13",
    " pop r12",
    ".cfi_adjust_cfa_offset -8",
    ".cfi_restore r12",
    " pop rbx",
    ".cfi_adjust_cfa_offset -8",
    ".cfi_restore rbx",
    " pop rbp",
    ".cfi_adjust_cfa_offset -8",
    ".cfi_restore rbp",
    " ret",
    ".cfi_endproc",
    ".size vs_switch, .-vs_switch",
    // First instructions of a new thread: the registers it starts with lie on its stack, then its program counter.
    ".hidden vs_start",
    ".globl vs_start",
    ".type vs_start,@function",
    "vs_start:",
    ".cfi_startproc",
    ".cfi_undefined rip",
    // The stack is aligned for the call.
    " mov rax, rsp",
    " and rsp, -16",
    " push rax",
    " push rax",
    " call {begins}",
    " pop rax",
    " mov rsp, rax",
    " pop r8",
    " pop r9",
    " pop r10",
    " pop rdi",
    " pop rsi",
    " pop rdx",
    " xor eax, eax",
    " ret",
    ".cfi_endproc",
    ".size vs_start, .-vs_start",
    // vs_clone_vm(flags, stack, entry): clone that shares memory; the child calls entry() on the new stack and then
    // takes its registers from it, like a new fiber.
    ".hidden vs_clone_vm",
    ".globl vs_clone_vm",
    ".type vs_clone_vm,@function",
    "vs_clone_vm:",
    ".cfi_startproc",
    " mov rax, rdx",
    " push rbx",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset rbx, 0",
    " mov rbx, rax",
    " xor edx, edx",
    " xor r10d, r10d",
    " xor r8d, r8d",
    " mov eax, 56",
    " syscall",
    " test rax, rax",
    " jz 1f",
    " pop rbx",
    ".cfi_adjust_cfa_offset -8",
    " ret",
    "1: mov rax, rbx",
    " mov rbx, rsp",
    " and rsp, -16",
    " call rax",
    " mov rsp, rbx",
    " jmp vs_resume",
    ".cfi_endproc",
    ".size vs_clone_vm, .-vs_clone_vm",
    begins = sym begins,
);

extern "C" {
    fn vs_switch(save: *mut u64, to: u64, fs: u64);
    fn vs_start();
    fn vs_clone_vm(flags: u64, stack: u64, entry: extern "C" fn()) -> i64;
}

/// The first instruction of the program's in a new thread is next.
extern "C" fn begins() {
    shield::close();
}

/// Runs fiber `to` of this process; returns when somebody switches back. No borrow of `Local` or the arena may be
/// alive in the caller.
#[inline]
pub fn switch(to: Tid) {
    if local().cur != to {
        really_switch(to);
    }
}

#[inline(never)]
fn really_switch(to: Tid) {
    watch::switches();
    let from = core::mem::replace(&mut local().cur, to);
    if local().altstacks {
        install_altstack(to);
    }
    let (target, fs) = (fiber_of(to).context, fiber_of(to).fs);
    let save = &raw mut fiber_of(from).context;
    let returns = core::mem::take(&mut local().returns);
    let call = guard::suspend();
    // SAFETY: `target` was saved by vs_switch or laid out by `lay_out` on the stack of a fiber that is not running.
    unsafe { vs_switch(save, target, fs) }
    guard::resume(call);
    local().returns = returns;
}

/// Leaves the running fiber at `save` and goes on with the one that left itself as `to`, with that thread pointer.
///
/// # Safety
/// `to` was saved by this or laid out as this lays it, on the stack of a fiber that is not running.
#[inline(never)]
pub unsafe fn switch_context(save: *mut u64, to: u64, fs: u64) {
    // SAFETY: as this function's own.
    unsafe { vs_switch(save, to, fs) }
}

/// The registers a new thread starts with: those of its creator at the system call, but for rax.
#[derive(Clone, Copy, Default)]
pub struct Start {
    /// rbp, rbx, r12, r13, r14, r15.
    pub saved: [u64; 6],
    /// r8, r9, r10, rdi, rsi, rdx.
    pub scratch: [u64; 6],
    /// Program counter.
    pub rip: u64,
}

/// Lays a new thread's first registers out below `top` of its stack; returns the stack pointer to switch to.
pub fn lay_out(top: u64, start: &Start) -> u64 {
    let top = top & !7;
    let [rbp, rbx, r12, r13, r14, r15] = start.saved;
    let control = 0x0000_037f_0000_1f80u64;
    let entry = vs_start as *const () as u64;
    let [r8, r9, r10, rdi, rsi, rdx] = start.scratch;
    let frame = [control, r15, r14, r13, r12, rbx, rbp, entry, r8, r9, r10, rdi, rsi, rdx, start.rip];
    let bottom = top - 8 * frame.len() as u64;
    for (i, word) in frame.iter().enumerate() {
        store(bottom + 8 * i as u64, *word);
    }
    bottom
}

/// A clone that shares memory and suspends the caller until the child execs or exits; see `vs_clone_vm`.
pub fn clone_vm(flags: u64, stack: u64, entry: extern "C" fn()) -> i64 {
    let armed = track().lends();
    // SAFETY: `stack` was laid out by `lay_out`; with CLONE_VFORK the caller's kernel thread is stopped meanwhile.
    let result = unsafe { vs_clone_vm(flags, stack, entry) };
    track().armed = armed;
    // The child has left the memory that they shared as it was while its own code ran.
    shield::enter();
    result
}

/// The kernel knows one alternate stack, that of the fiber that runs; it refuses to change the one that is in use.
pub fn install_altstack(t: Tid) {
    let real = altstack_of(t);
    raw!(libc::SYS_sigaltstack, real.as_ptr(), 0);
}

/// That of the running fiber, as the kernel is to know it: address, flags, size.
pub fn real_altstack() -> [u64; 3] {
    altstack_of(local().cur)
}

fn altstack_of(t: Tid) -> [u64; 3] {
    let [stack, flags, size] = fiber_of(t).altstack;
    [stack, if size == 0 { 2 } else { flags }, size]
}
