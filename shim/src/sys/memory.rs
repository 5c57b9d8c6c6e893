//! The program's memory. What becomes of a call where that is not there says `guard`.

use core::arch::asm;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, Ordering};

use super::guard::{self, entry};

/// No mapping of a program begins below.
pub const FIRST_ADDRESS: u64 = 4096;
/// No address of a program is this one or above (TASK_SIZE_MAX).
pub const END_OF_ADDRESSES: u64 = 0x7fff_ffff_f000;
const PAGE: u64 = 4096;

/// A function that reads a number; one that cannot be read is 0.
macro_rules! reads {
    ($name:ident, $type:ty, $mov:literal) => {
        #[inline(always)]
        fn $name(addr: u64) -> $type {
            let value: u64;
            // SAFETY: the address is one that the program handed to a call which would read it too; a fault there is answered.
            unsafe {
                asm!("xor {v:e}, {v:e}", $mov, "3:", entry!(reads), v = out(reg) value, a = in(reg) addr,
                     options(nostack, readonly));
            }
            value as $type
        }
    };
}

reads!(read8, u8, "2: movzx {v:e}, byte ptr [{a}]");
reads!(read16, u16, "2: movzx {v:e}, word ptr [{a}]");
reads!(read32, u32, "2: mov {v:e}, dword ptr [{a}]");
reads!(read64, u64, "2: mov {v}, qword ptr [{a}]");

/// A function that writes a number.
macro_rules! writes {
    ($name:ident, $type:ty, $class:ident, $mov:literal) => {
        #[inline(always)]
        fn $name(addr: u64, value: $type) {
            // SAFETY: as for reading: the call that this stands for would write there.
            unsafe {
                asm!($mov, "3:", entry!(writes), v = in($class) value, a = in(reg) addr,
                     options(nostack, preserves_flags));
            }
        }
    };
}

writes!(write8, u8, reg_byte, "2: mov byte ptr [{a}], {v}");
writes!(write16, u16, reg, "2: mov word ptr [{a}], {v:x}");
writes!(write32, u32, reg, "2: mov dword ptr [{a}], {v:e}");
writes!(write64, u64, reg, "2: mov qword ptr [{a}], {v}");

/// Reads a value of the program's memory: of numbers only, since it is 0 where there is no such memory.
#[inline(always)]
pub fn load<T: Copy>(addr: u64) -> T {
    let mut value = MaybeUninit::<T>::uninit();
    let (to, size) = (value.as_mut_ptr().cast::<u8>(), size_of::<T>());
    let mut at = 0;
    // SAFETY: every byte of the value is written, none beyond it; any bytes are one.
    unsafe {
        while at + 8 <= size {
            to.add(at).cast::<u64>().write_unaligned(read64(addr.wrapping_add(at as u64)));
            at += 8;
        }
        if size - at >= 4 {
            to.add(at).cast::<u32>().write_unaligned(read32(addr.wrapping_add(at as u64)));
            at += 4;
        }
        if size - at >= 2 {
            to.add(at).cast::<u16>().write_unaligned(read16(addr.wrapping_add(at as u64)));
            at += 2;
        }
        if size > at {
            to.add(at).write(read8(addr.wrapping_add(at as u64)));
        }
        value.assume_init()
    }
}

/// Writes a value into the program's memory.
#[inline(always)]
pub fn store<T: Copy>(addr: u64, value: T) {
    let (from, size) = ((&raw const value).cast::<u8>(), size_of::<T>());
    let mut at = 0;
    // SAFETY: every byte of the value is read, none beyond it.
    unsafe {
        while at + 8 <= size {
            write64(addr.wrapping_add(at as u64), from.add(at).cast::<u64>().read_unaligned());
            at += 8;
        }
        if size - at >= 4 {
            write32(addr.wrapping_add(at as u64), from.add(at).cast::<u32>().read_unaligned());
            at += 4;
        }
        if size - at >= 2 {
            write16(addr.wrapping_add(at as u64), from.add(at).cast::<u16>().read_unaligned());
            at += 2;
        }
        if size > at {
            write8(addr.wrapping_add(at as u64), from.add(at).read());
        }
    }
}

/// Writes if the address is not null.
#[inline]
pub fn store_if<T: Copy>(addr: u64, value: T) {
    if addr != 0 {
        store(addr, value);
    }
}

/// Stores a word where another one stands, if that does still: others may store there too.
pub fn store_over(addr: u64, old: u32, new: u32) {
    // SAFETY: callers give the address of an aligned word of the arena, which stays mapped.
    let word = unsafe { AtomicU32::from_ptr(addr as *mut u32) };
    let _ = word.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst);
}

/// The first addresses in pages from `addr` on, up to `len` bytes.
fn pages(addr: u64, len: u64) -> impl Iterator<Item = u64> {
    let next = move |at: &u64| (at & !(PAGE - 1)).checked_add(PAGE).filter(|&next| next - addr < len);
    core::iter::successors((len > 0).then_some(addr), next)
}

/// Reads from each page of the program's memory, as a call does that copies its arguments first.
pub fn touch(addr: u64, len: u64) {
    for page in pages(addr, len) {
        load::<u8>(page);
    }
}

/// Bytes from `addr` on, of `len`, that can be read.
pub fn readable(addr: u64, len: u64) -> u64 {
    let there = |addr: u64| {
        let there: u32;
        // SAFETY: nothing but a byte of the program's is read, and a fault there is answered.
        unsafe {
            asm!("xor {t:e}, {t:e}", "2: cmp byte ptr [{a}], 0", "mov {t:e}, 1", "3:", entry!(looks), t = out(reg) there,
                 a = in(reg) addr, options(nostack, readonly));
        }
        there != 0
    };
    pages(addr, len).find(|&page| !there(page)).map_or(len, |page| page - addr)
}

/// Bytes from `addr` on, of `len`, that can be written.
pub fn writable(addr: u64, len: u64) -> u64 {
    let there = |addr: u64| {
        let there: u32;
        // SAFETY: as in `readable`; the byte stays what it is, and nobody else writes it meanwhile: there is one thread.
        unsafe {
            asm!("xor {t:e}, {t:e}", "2: or byte ptr [{a}], 0", "mov {t:e}, 1", "3:", entry!(looks), t = out(reg) there,
                 a = in(reg) addr, options(nostack));
        }
        there != 0
    };
    pages(addr, len).find(|&page| !there(page)).map_or(len, |page| page - addr)
}

extern "C" {
    fn vs_copy_in(to: *mut u8, from: u64, n: usize) -> usize;
    fn vs_copy_out(to: u64, from: *const u8, n: usize) -> usize;
}

/// Copies from the program's memory. False: it was not there.
pub fn copy_in(to: &mut [u8], from: u64) -> bool {
    // SAFETY: writes `to` alone; a fault in the program's memory is answered.
    unsafe { vs_copy_in(to.as_mut_ptr(), from, to.len()) == 0 }
}

/// Copies into the program's memory. False: it was not there.
pub fn copy_out(to: u64, from: &[u8]) -> bool {
    // SAFETY: reads `from` alone; the call that this stands for would write there, and a fault is answered.
    unsafe { vs_copy_out(to, from.as_ptr(), from.len()) == 0 }
}

/// Bytes of the program's memory; none where they are not there in a call that is not left any more.
pub fn bytes<'a>(addr: u64, len: usize) -> &'a [u8] {
    let before = guard::failed();
    touch(addr, len as u64);
    if len == 0 || guard::failed() && !before {
        return &[];
    }
    // SAFETY: they were all there now; the slice is used up before the program runs on.
    unsafe { core::slice::from_raw_parts(addr as *const u8, len) }
}

/// Bytes to be written: memory of the shim's own, or of the program where it is known to be there ([`writable`]).
pub fn bytes_mut<'a>(addr: u64, len: usize) -> &'a mut [u8] {
    // SAFETY: its caller knows; the slice is used up before the program runs on.
    unsafe { core::slice::from_raw_parts_mut(addr as *mut u8, len) }
}

/// A NUL-terminated string of the program, without the NUL; at most `max` bytes.
pub fn cstr<'a>(addr: u64, max: usize) -> &'a [u8] {
    let mut len = 0;
    while len < max && load::<u8>(addr.wrapping_add(len as u64)) != 0 {
        len += 1;
    }
    bytes(addr, len)
}

/// Fills program memory with zero.
pub fn zero(addr: u64, len: usize) {
    let end = addr.wrapping_add(len as u64);
    let mut at = addr;
    while end.wrapping_sub(at) >= 8 {
        store(at, 0u64);
        at = at.wrapping_add(8);
    }
    while at != end {
        store(at, 0u8);
        at = at.wrapping_add(1);
    }
}

/// A function that copies between the shim's memory and the program's, and gives the bytes that it has not copied. `2` and `3`
/// of the program's side are entered; bytes of the last sixteen are tried one by one.
macro_rules! copies {
    ($name:literal, $load:literal, $loaded:literal, $store:literal, $stored:literal, $access:literal) => {
        core::arch::global_asm!(
            concat!(".hidden ", $name),
            concat!(".globl ", $name),
            concat!(".type ", $name, ",@function"),
            concat!($name, ":"),
            " cmp rdx, 512",
            " ja 8f",
            "6: cmp rdx, 16",
            " jb 7f",
            concat!($load, " movups xmm0, [rsi]"),
            concat!($store, " movups [rdi], xmm0"),
            " add rsi, 16",
            " add rdi, 16",
            " sub rdx, 16",
            " jmp 6b",
            "7: test rdx, rdx",
            " jz 9f",
            concat!($loaded, " movzx ecx, byte ptr [rsi]"),
            concat!($stored, " mov [rdi], cl"),
            " inc rsi",
            " inc rdi",
            " dec rdx",
            " jmp 7b",
            "8: mov rcx, rdx",
            "25: rep movsb",
            "26: mov rdx, rcx",
            "9: mov rax, rdx",
            " ret",
            ".pushsection vs_faults,\"aR\",@progbits",
            ".balign 4",
            concat!(".long 22b - .\n.long 7b - .\n.long ", $access),
            concat!(".long 23b - .\n.long 9b - .\n.long ", $access),
            concat!(".long 25b - .\n.long 26b - .\n.long ", $access),
            ".popsection",
        );
    };
}

copies!("vs_copy_in", "22:", "23:", "", "", "0");
copies!("vs_copy_out", "", "", "22:", "23:", "1");

// memcpy and friends for the compiler's own use, hidden so that the program keeps libc's.
core::arch::global_asm!(
    ".hidden memcpy, memmove, memset, memcmp, bcmp, strlen",
    ".globl memcpy, memmove, memset, memcmp, bcmp, strlen",
    ".type memcpy,@function",
    "memcpy: mov rax, rdi",
    " cmp rdx, 512",
    " ja 8f",
    // Records are short, and rep movsb is slow to start.
    "6: cmp rdx, 16",
    " jb 7f",
    " movups xmm0, [rsi]",
    " movups [rdi], xmm0",
    " add rsi, 16",
    " add rdi, 16",
    " sub rdx, 16",
    " jmp 6b",
    "7: test rdx, rdx",
    " jz 9f",
    " movzx ecx, byte ptr [rsi]",
    " mov [rdi], cl",
    " inc rsi",
    " inc rdi",
    " dec rdx",
    " jmp 7b",
    "8: mov rcx, rdx",
    " rep movsb",
    "9: ret",
    ".type memmove,@function",
    "memmove: mov rax, rdi",
    " mov rcx, rdx",
    " mov r8, rdi",
    " sub r8, rsi",
    " cmp r8, rdx",
    " jb 2f",
    " rep movsb",
    " ret",
    "2: lea rdi, [rdi + rdx - 1]",
    " lea rsi, [rsi + rdx - 1]",
    " std",
    " rep movsb",
    " cld",
    " ret",
    ".type memset,@function",
    "memset: mov r8, rdi",
    " mov eax, esi",
    " mov rcx, rdx",
    " rep stosb",
    " mov rax, r8",
    " ret",
    ".type memcmp,@function",
    ".type bcmp,@function",
    "bcmp:",
    "memcmp: xor eax, eax",
    " mov rcx, rdx",
    " cmp rcx, rcx",
    " repe cmpsb",
    " je 3f",
    " movzx eax, byte ptr [rdi - 1]",
    " movzx ecx, byte ptr [rsi - 1]",
    " sub eax, ecx",
    "3: ret",
    ".type strlen,@function",
    "strlen: xor eax, eax",
    "4: cmp byte ptr [rdi + rax], 0",
    " je 5f",
    " inc rax",
    " jmp 4b",
    "5: ret",
    // The precompiled core library refers to it; nothing unwinds into Rust code here: go on (_URC_CONTINUE_UNWIND).
    ".hidden rust_eh_personality",
    ".globl rust_eh_personality",
    ".type rust_eh_personality,@function",
    "rust_eh_personality: mov eax, 8",
    " ret",
);
