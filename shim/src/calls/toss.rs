//! Functions of the program that return a choice (`--toss`). At the entry of each stands a jump that leads here, with the number of the
//! function on the stack.
//!
//! NOTE [Registers] A compiler that sees a function knows which registers it leaves alone, and its callers rely on that (gcc's
//! -fipa-ra), whatever the calling convention allows. So all registers but the one with the result are kept.

use core::cell::UnsafeCell;

use vsrun_model::arena::MAX_PATH;
use vsrun_model::{Kind, Op};

use crate::gate::local::{arena, machine, NAME};
use crate::gate::{self};
use crate::sys::{decimal, raw};
use crate::watch;

#[repr(transparent)]
struct Cell(UnsafeCell<u64>);
// SAFETY: written once, at the root, before the program has a second thread.
unsafe impl Sync for Cell {}

/// Bytes that XSAVE writes here.
static STATE: Cell = Cell(UnsafeCell::new(0));

core::arch::global_asm!(
    ".text",
    ".hidden vs_toss",
    ".globl vs_toss",
    ".type vs_toss, @function",
    "vs_toss:",
    ".cfi_startproc",
    // The number of the function lies above the return address.
    ".cfi_def_cfa_offset 16",
    " push rbp",
    ".cfi_def_cfa_offset 24",
    ".cfi_offset rbp, -24",
    " mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    " push rcx",
    " push rdx",
    " push rsi",
    " push rdi",
    " push r8",
    " push r9",
    " push r10",
    " push r11",
    " sub rsp, [rip + {state}]",
    " and rsp, -64",
    // The header of the area.
    " xor eax, eax",
    " mov [rsp + 512], rax",
    " mov [rsp + 520], rax",
    " mov [rsp + 528], rax",
    " mov [rsp + 536], rax",
    " mov [rsp + 544], rax",
    " mov [rsp + 552], rax",
    " mov [rsp + 560], rax",
    " mov [rsp + 568], rax",
    " mov eax, -1",
    " mov edx, -1",
    " xsave64 [rsp]",
    " cld",
    " mov rdi, [rbp + 8]",
    " call {toss}",
    " mov r11, rax",
    " mov eax, -1",
    " mov edx, -1",
    " xrstor64 [rsp]",
    " mov rax, r11",
    " lea rsp, [rbp - 64]",
    " pop r11",
    " pop r10",
    " pop r9",
    " pop r8",
    " pop rdi",
    " pop rsi",
    " pop rdx",
    " pop rcx",
    " pop rbp",
    ".cfi_def_cfa rsp, 16",
    " lea rsp, [rsp + 8]",
    ".cfi_def_cfa_offset 8",
    " ret",
    ".cfi_endproc",
    ".size vs_toss, . - vs_toss",
    state = sym STATE,
    toss = sym toss,
);

extern "C" {
    fn vs_toss();
}

/// The root: says where the jumps are to lead.
pub fn announce() {
    // SAFETY: see `Cell`.
    unsafe { *STATE.0.get() = watch::state_size() };
    machine().tosses_at(vs_toss as *const () as u64);
}

/// The root: maps the page that the tool has asked for, executable. The tool fills it.
pub fn map_room() {
    let at = arena().control.tossing.page;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    let got = raw!(libc::SYS_mmap, at, 4096, libc::PROT_READ | libc::PROT_EXEC, flags, u64::MAX, 0);
    machine().room_is(if got < 0 || got == at { got } else { crate::sys::errno::EEXIST });
}

/// What function `n` gives: 32 bits, the others are 0.
extern "C" fn toss(n: u64) -> u64 {
    gate::returning(|| {
        let most = machine().tossed(n as usize);
        gate::pass(Op::new(Kind::TOSS).arg(i64::from(most))) as u64
    })
}

/// A program that was executed has its own functions.
pub fn program_comes() {
    if arena().control.tossing.count > 0 {
        note(c"/proc/self/exe".to_bytes_with_nul());
    }
}

/// The file of descriptor `fd` is mapped, executable: it may have functions of those names, too.
pub fn code_comes(nr: i64, a: [u64; 6]) {
    let file = nr == libc::SYS_mmap && a[3] as i32 & libc::MAP_ANONYMOUS == 0;
    if arena().control.tossing.count == 0 || !file || a[2] as i32 & libc::PROT_EXEC == 0 {
        return;
    }
    let mut path = [0; 40];
    let digits = decimal(a[4] as i32);
    for (to, byte) in path.iter_mut().zip([b"/proc/self/fd/".as_slice(), &digits].into_iter().flatten()) {
        *to = *byte;
    }
    note(&path);
}

/// `link`: leads to the file's name; ends with NUL.
fn note(link: &[u8]) {
    let mut name = [0; MAX_PATH];
    let n = raw!(libc::SYS_readlink, link.as_ptr(), name.as_mut_ptr(), MAX_PATH);
    let name = &name[..n.clamp(0, MAX_PATH as i64) as usize];
    let file = name.rsplit(|&b| b == b'/').next().unwrap_or(name);
    // libc and what is below it are left alone, whenever they come.
    if !vsrun_model::watch::LEFT_OUT.iter().any(|start| file.starts_with(start.as_bytes())) {
        machine().note_own_functions(&name[..name.len().min(NAME)]);
    }
}
