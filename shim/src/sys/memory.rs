//! The program's memory.

/// No mapping of a program begins below.
pub const FIRST_ADDRESS: u64 = 4096;

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

/// Fills program memory with zero.
pub fn zero(addr: u64, len: usize) {
    bytes_mut(addr, len).fill(0);
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
