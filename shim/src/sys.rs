//! Raw system calls, the program's memory, processor state. Everything here lies in the shim's text, which Syscall
//! User Dispatch exempts.

use core::arch::asm;

/// A system call with six arguments; returns the kernel's value (negative error numbers).
#[inline]
pub fn raw6(nr: i64, a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> i64 {
    let r: i64;
    // SAFETY: the kernel checks its arguments; calls that change this process's memory are made where that is meant.
    unsafe {
        asm!("syscall", inlateout("rax") nr => r, in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e,
             in("r9") f, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    r
}

/// The same with up to six arguments, the rest 0.
#[macro_export]
macro_rules! raw {
    ($nr:expr) => {
        $crate::sys::raw6($nr, 0, 0, 0, 0, 0, 0)
    };
    ($nr:expr, $a:expr) => {
        $crate::sys::raw6($nr, $a as u64, 0, 0, 0, 0, 0)
    };
    ($nr:expr, $a:expr, $b:expr) => {
        $crate::sys::raw6($nr, $a as u64, $b as u64, 0, 0, 0, 0)
    };
    ($nr:expr, $a:expr, $b:expr, $c:expr) => {
        $crate::sys::raw6($nr, $a as u64, $b as u64, $c as u64, 0, 0, 0)
    };
    ($nr:expr, $a:expr, $b:expr, $c:expr, $d:expr) => {
        $crate::sys::raw6($nr, $a as u64, $b as u64, $c as u64, $d as u64, 0, 0)
    };
    ($nr:expr, $a:expr, $b:expr, $c:expr, $d:expr, $e:expr) => {
        $crate::sys::raw6($nr, $a as u64, $b as u64, $c as u64, $d as u64, $e as u64, 0)
    };
    ($nr:expr, $a:expr, $b:expr, $c:expr, $d:expr, $e:expr, $f:expr) => {
        $crate::sys::raw6($nr, $a as u64, $b as u64, $c as u64, $d as u64, $e as u64, $f as u64)
    };
}

/// Reads a value of the program's memory.
#[inline]
pub fn load<T: Copy>(addr: u64) -> T {
    // SAFETY: the address is one that the program handed to a call which would read it too: a bad one faults here as
    // it would there, and is reported as the program's crash.
    unsafe { core::ptr::read_volatile(addr as *const T) }
}

/// Writes a value into the program's memory.
#[inline]
pub fn store<T: Copy>(addr: u64, value: T) {
    // SAFETY: as for `load`: the call that this stands for would write there.
    unsafe { core::ptr::write_volatile(addr as *mut T, value) }
}

/// Writes if the address is not null.
#[inline]
pub fn store_if<T: Copy>(addr: u64, value: T) {
    if addr != 0 {
        store(addr, value);
    }
}

/// Bytes of the program's memory.
pub fn bytes<'a>(addr: u64, len: usize) -> &'a [u8] {
    // SAFETY: as for `load`; the slice is used up before the program runs on.
    unsafe { core::slice::from_raw_parts(addr as *const u8, len) }
}

/// Writable bytes of the program's memory.
pub fn bytes_mut<'a>(addr: u64, len: usize) -> &'a mut [u8] {
    // SAFETY: as for `load`; the slice is used up before the program runs on.
    unsafe { core::slice::from_raw_parts_mut(addr as *mut u8, len) }
}

/// A NUL-terminated string of the program, without the NUL; at most `max` bytes.
pub fn cstr<'a>(addr: u64, max: usize) -> &'a [u8] {
    let mut len = 0;
    while len < max && load::<u8>(addr + len as u64) != 0 {
        len += 1;
    }
    bytes(addr, len)
}

/// The thread pointer.
#[inline]
pub fn fs_base() -> u64 {
    let v: u64;
    // SAFETY: reads a register; vsrun checks for FSGSBASE before it starts a program.
    unsafe { asm!("rdfsbase {}", out(reg) v, options(nomem, nostack)) };
    v
}

extern "C" {
    fn __errno_location() -> *mut i32;
}

/// Sets the program's errno.
pub fn set_errno(value: i64) {
    // SAFETY: glibc's function returns the address of the calling thread's errno; it takes no lock.
    unsafe { *__errno_location() = value as i32 }
}

/// The convention of most libc functions: a negative error number becomes -1 and errno.
pub fn ret(value: i64) -> i64 {
    if (-4095..0).contains(&value) {
        set_errno(-value);
        return -1;
    }
    value
}

/// The same for an error number (0: success).
pub fn ret_errno(error: i64) -> i32 {
    if error == 0 {
        return 0;
    }
    set_errno(error);
    -1
}

/// Writes a message of vsrun's own to standard error.
pub fn complain(parts: &[&[u8]]) {
    for part in parts {
        raw!(libc::SYS_write, 2, part.as_ptr(), part.len());
    }
    raw!(libc::SYS_write, 2, b"\n".as_ptr(), 1);
}

/// Formats a number into `buffer`, returns the digits.
pub fn decimal(buffer: &mut [u8; 24], value: i64) -> &[u8] {
    let mut at = buffer.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        at -= 1;
        buffer[at] = b'-';
    }
    &buffer[at..]
}

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
