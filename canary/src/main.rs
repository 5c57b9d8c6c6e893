//! A program whose memory accesses are known: `vsrun doctor` watches it, and fails if it does not see them.
//!
//! Two threads touch `vs_canary_cells`, without a lock: by instructions that have room for a jump, by short ones in a row, and by those of
//! one and two bytes beside entries. Which bytes which thread reads and writes is said in `src/canary.rs` of vsrun.
#![no_std]
#![no_main]

use core::ffi::c_void;
use core::ptr;

/// What is touched.
#[no_mangle]
static mut vs_canary_cells: [u64; 64] = [0; 64];

core::arch::global_asm!(
    ".globl vs_canary_touch",
    ".type vs_canary_touch,@function",
    // vs_canary_touch(cells)
    "vs_canary_touch:",
    ".cfi_startproc",
    // With room.
    " mov rax, qword ptr [rdi + 0x100]",
    " add dword ptr [rdi + 0x110], 7",
    " lock xadd qword ptr [rdi + 0x120], rax",
    // In a row.
    " mov eax, [rdi]",
    " inc eax",
    " mov [rdi + 8], eax",
    " mov cx, [rdi + 16]",
    // Between entries.
    " mov esi, 2",
    "2: mov al, [rdi + 24]",
    "3: dec esi",
    " jnz 2b",
    " jmp 5f",
    "4: mov [rdi], al",
    " ret",
    "5: add rdi, 32",
    " test esi, esi",
    " jnz 3b",
    " jz 4b",
    ".cfi_endproc",
    ".size vs_canary_touch, .-vs_canary_touch",
);

#[link(name = "c")]
extern "C" {
    fn vs_canary_touch(cells: *mut u64);
    fn pthread_create(
        thread: *mut usize,
        attributes: *const c_void,
        start: extern "C" fn(*mut c_void) -> *mut c_void,
        argument: *mut c_void,
    ) -> i32;
    fn pthread_join(thread: usize, result: *mut *mut c_void) -> i32;
}

extern "C" fn work(argument: *mut c_void) -> *mut c_void {
    // SAFETY: the cells are as long as it takes. That both threads touch them is what this is for: nothing depends on what is in them.
    unsafe { vs_canary_touch((&raw mut vs_canary_cells).cast()) };
    argument
}

/// Touches the cells in a second thread, and in the first beside it.
#[no_mangle]
extern "C" fn main(_argc: i32, _argv: *const *const u8) -> i32 {
    let mut thread = 0;
    // SAFETY: as these functions are to be called: `thread` is written by the first.
    let created = unsafe { pthread_create(&mut thread, ptr::null(), work, ptr::null_mut()) };
    if created != 0 {
        return 2;
    }
    work(ptr::null_mut());
    // SAFETY: as above.
    unsafe { pthread_join(thread, ptr::null_mut()) }
}

#[panic_handler]
fn panicked(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
