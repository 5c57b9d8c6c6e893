//! Functions of libc that use memory of their caller's, where memory is watched: the modules call what stands here instead. A stand-in
//! records what the function is about to use and goes on to it, with the registers and the stack that it was called with; or, if the
//! function writes what only its result tells, calls it and records that then.
//!
//! NOTE [Frames] A function that is called from here has one more frame above it, which the unwinder knows (cancellation, exceptions
//! of comparison functions). What finds its caller's frame by itself (setjmp, vfork) never has one.
//! NOTE [Aside] As for system calls (`calls::buffers`), memory that is an object is written elsewhere, and word by word from there.

mod formats;
mod frame;
mod texts;
mod unknown;

use core::mem::{offset_of, size_of};

use vsrun_model::library::{Does, FUNCTIONS, MAX_USES, SPECIAL, STRIDE};

use crate::gate::{local, Phase};
use crate::sys::{elf, names};
use crate::watch;
use frame::{find_function, is_at, stand_in, Aside, Frame, List, COUNT, REAL};

core::arch::global_asm!(
    ".text",
    ".p2align 4",
    ".hidden vs_stand_ins",
    ".globl vs_stand_ins",
    "vs_stand_ins:",
    ".set vs_number, 0",
    ".rept {count}",
    " mov r11d, offset vs_number",
    " jmp vs_library",
    ".p2align 4",
    ".set vs_number, vs_number + 1",
    ".endr",
    // r11: the number. r10 and r11 are nobody's at a call.
    "vs_library:",
    ".cfi_startproc",
    " cmp byte ptr [rip + {log} + {recording}], 0",
    " jne 2f",
    "1:",
    " lea r10, [rip + {real}]",
    " jmp [r10 + 8 * r11]",
    "2:",
    " cmp r11d, {special}",
    " jae 3f",
    " push rdi",
    ".cfi_adjust_cfa_offset 8",
    " push rsi",
    ".cfi_adjust_cfa_offset 8",
    " push rdx",
    ".cfi_adjust_cfa_offset 8",
    " push rcx",
    ".cfi_adjust_cfa_offset 8",
    " push r8",
    ".cfi_adjust_cfa_offset 8",
    " push r9",
    ".cfi_adjust_cfa_offset 8",
    " push r11",
    ".cfi_adjust_cfa_offset 8",
    " mov rcx, rdx",
    " mov rdx, rsi",
    " mov rsi, rdi",
    " mov edi, r11d",
    " call {note}",
    " pop r11",
    ".cfi_adjust_cfa_offset -8",
    " pop r9",
    ".cfi_adjust_cfa_offset -8",
    " pop r8",
    ".cfi_adjust_cfa_offset -8",
    " pop rcx",
    ".cfi_adjust_cfa_offset -8",
    " pop rdx",
    ".cfi_adjust_cfa_offset -8",
    " pop rsi",
    ".cfi_adjust_cfa_offset -8",
    " pop rdi",
    ".cfi_adjust_cfa_offset -8",
    " jmp 1b",
    "3:",
    " push rbp",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_offset rbp, -16",
    " mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    " sub rsp, {size}",
    " and rsp, -16",
    " mov [rsp], rdi",
    " mov [rsp + 8], rsi",
    " mov [rsp + 16], rdx",
    " mov [rsp + 24], rcx",
    " mov [rsp + 32], r8",
    " mov [rsp + 40], r9",
    " movaps [rsp + {vectors}], xmm0",
    " movaps [rsp + {vectors} + 16], xmm1",
    " movaps [rsp + {vectors} + 32], xmm2",
    " movaps [rsp + {vectors} + 48], xmm3",
    " movaps [rsp + {vectors} + 64], xmm4",
    " movaps [rsp + {vectors} + 80], xmm5",
    " movaps [rsp + {vectors} + 96], xmm6",
    " movaps [rsp + {vectors} + 112], xmm7",
    " mov [rsp + {number}], r11",
    " mov [rsp + {rax}], rax",
    " lea r10, [rbp + 16]",
    " mov [rsp + {overflow}], r10",
    " mov [rsp + {save}], rsp",
    " mov rdi, rsp",
    " call {before}",
    " mov r10, rax",
    " mov rdi, [rsp + {arguments}]",
    " mov rsi, [rsp + {arguments} + 8]",
    " mov rdx, [rsp + {arguments} + 16]",
    " mov rcx, [rsp + {arguments} + 24]",
    " mov r8, [rsp + {arguments} + 32]",
    " mov r9, [rsp + {arguments} + 40]",
    " movaps xmm0, [rsp + {vectors}]",
    " movaps xmm1, [rsp + {vectors} + 16]",
    " movaps xmm2, [rsp + {vectors} + 32]",
    " movaps xmm3, [rsp + {vectors} + 48]",
    " movaps xmm4, [rsp + {vectors} + 64]",
    " movaps xmm5, [rsp + {vectors} + 80]",
    " movaps xmm6, [rsp + {vectors} + 96]",
    " movaps xmm7, [rsp + {vectors} + 112]",
    " mov r11, [rsp + {number}]",
    " mov rax, [rsp + {rax}]",
    " test r10, r10",
    " jz 4f",
    " call r10",
    " mov [rsp + {rdx}], rdx",
    " movaps [rsp + {xmm0}], xmm0",
    " mov rdi, rsp",
    " mov rsi, rax",
    " call {after}",
    " mov rdx, [rsp + {rdx}]",
    " movaps xmm0, [rsp + {xmm0}]",
    " leave",
    ".cfi_remember_state",
    ".cfi_def_cfa rsp, 8",
    " ret",
    ".cfi_restore_state",
    "4:",
    " leave",
    ".cfi_def_cfa rsp, 8",
    " jmp 1b",
    ".cfi_endproc",
    count = const COUNT,
    special = const SPECIAL,
    log = sym watch::LOG,
    recording = const watch::RECORDING,
    real = sym REAL,
    note = sym texts::note,
    before = sym before,
    after = sym after,
    size = const size_of::<Frame>(),
    vectors = const offset_of!(Frame, vectors),
    arguments = const offset_of!(Frame, arguments),
    number = const offset_of!(Frame, number),
    rax = const offset_of!(Frame, rax),
    rdx = const offset_of!(Frame, rdx),
    xmm0 = const offset_of!(Frame, xmm0),
    overflow = const offset_of!(Frame, list) + offset_of!(List, overflow),
    save = const offset_of!(Frame, list) + offset_of!(List, save),
);

/// Two instructions of up to 11 bytes, see above.
const _: () = assert!(STRIDE == 16);

/// Finds the functions that are known, and gives where the stand-ins are: that of function n is [`STRIDE`] * n bytes further.
pub fn stand_ins() -> u64 {
    find();
    stand_in(0)
}

fn find() {
    for (n, function) in FUNCTIONS.iter().enumerate().filter(|(_, f)| f.does != Does::Nothing) {
        let at = find_function(function.name.as_bytes());
        is_at(n, at);
    }
}

/// Who asks libc for one of these functions (dlsym) gets what stands for it: see `sys::names`. So does who asks the shim, which defines some of them: that
/// is how libraries that come later are bound.
pub fn lead_here() {
    unknown::find();
    for image in [names::libc(), names::own()] {
        names::lead(image, |image| {
            lead_known(image);
            unknown::lead_told(image);
        });
    }
    let mut end = 0;
    names::lead(names::libc(), |libc| end = unknown::lead_rest(libc));
    names::lead(names::own(), |own| unknown::lead_own(own, end));
}

fn lead_known(image: &elf::Image) {
    let known = FUNCTIONS.iter().enumerate().filter(|(_, f)| f.does != Does::Nothing);
    for (n, function) in known.filter(|&(n, _)| frame::real(n) != 0) {
        names::lead_to(image, function.name.as_bytes(), stand_in(n));
    }
}

/// A function is about to be called. Gives the address of what is to be called and to be followed by `after`; 0: nothing is to be.
extern "C" fn before(frame: &mut Frame) -> u64 {
    frame.arguments = frame.asked;
    if local().phase != Phase::Running || local().borrowed {
        return 0;
    }
    watch::begins();
    let number = frame.number as usize;
    let Some(function) = FUNCTIONS.get(number) else {
        unknown::note(number);
        return 0;
    };
    frame.call.writes = [Aside::default(); MAX_USES];
    match function.does {
        Does::Uses(uses) => frame.uses(uses),
        Does::Prints { .. } | Does::Scans { .. } => frame.formats(function),
        Does::Nothing | Does::Special => 0,
    }
}

/// The function has been called, with this result. Gives the result.
extern "C" fn after(frame: &mut Frame, result: u64) -> u64 {
    let Some(function) = FUNCTIONS.get(frame.number as usize) else { return result };
    match function.does {
        Does::Uses(uses) => frame.used(function, uses, result),
        _ => frame.formatted(function, result),
    }
}
