//! Hot trap sites of libc, rewritten to jumps. A trap costs 1.6 us, mostly for the signal frame; creating and joining
//! a thread makes ten.
//!
//! NOTE [Sites] Only the sequences `mov eax, N; syscall` (7 bytes), the same with `lea rsi, [..]` between them (14 bytes), and four of libc's own are
//! rewritten, for calls that never unwind through it, and only if no direct branch of libc goes into it behind its first
//! instruction. libc's own are the ends of a thread and of a process, which nothing comes back from, so that what lies behind the first instruction never runs, and the
//! two calls of its own locks (`is_of_lock`), where other futex calls may be left by a cancellation. The bytes of every possible branch are looked at, aligned or not, so the test errs on the side of leaving a
//! site alone. It is done once, before the root, while the process has one thread.
//!
//! NOTE [Own] Each creation of a thread, its beginning and its end block and unblock signals, with sets on libc's own stack frames or in what it
//! keeps of the thread. Recorded as what the kernel does to the program's memory, these would touch the shadow of a page of each thread's stack: a tenth
//! of what small executions take. The thunk of a site that no function hands a set of its caller's to says so (`OWN`), and what lies there, or in
//! libc, is libc's then.
//!
//! The two functions in which libc waits for its own locks and wakes who waits for them are rewritten too, at their first instruction:
//! that is where every use of a stream by a process with several threads comes by (`calls::stream`).

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::calls::futex;
use crate::gate::fiber::Start;
use crate::gate::shield;
use crate::net;
use crate::sys::elf::{self, Auxv};
use crate::sys::{any_of, bytes, fs_base, load, raw, store};

/// Calls whose sites are rewritten.
fn is_hot(nr: i64) -> bool {
    matches!(
        nr,
        any_of!(
            SYS_clone3 SYS_rt_sigprocmask SYS_rt_sigaction SYS_mmap SYS_mprotect SYS_munmap SYS_madvise SYS_brk
            SYS_rseq SYS_set_robust_list SYS_exit SYS_getpid SYS_gettid SYS_clock_gettime SYS_getrandom SYS_close
            SYS_lseek SYS_newfstatat SYS_semop SYS_futex SYS_exit_group
        )
    )
}
/// Functions that hand sets of their callers' to `rt_sigprocmask` themselves.
const HANDS_SETS: [&[u8]; 4] = [b"pthread_sigmask", b"getcontext", b"setcontext", b"swapcontext"];
/// In the number that a thunk gives: see NOTE [Own].
const OWN: u32 = 1 << 30;
/// Bytes above the frame of `vs_hot_call` in which variables of a function of libc's lie.
const FRAME: u64 = 2048;
/// Bytes of what libc keeps of a thread, at its thread pointer; 0: it does not say.
static THREAD: AtomicU64 = AtomicU64::new(0);
/// Where libc's constants are: first and one past the last address.
static CONSTANTS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// Sites that are rewritten at most.
const MAX_SITES: usize = 256;
/// A jump to a thunk.
const JUMP: u64 = 5;
/// Bytes of a thunk.
const THUNK: u64 = 48;
/// `mov eax, imm32`.
const MOV: u64 = 5;
/// `lea rsi, [rip + disp32]` or `lea rsi, [reg + disp32]`.
const LEA: u64 = 7;
/// `xor sil, imm8`.
const XOR: u64 = 4;
/// A filler, `xor edi, edi`, `mov eax, edx`.
const EXIT: u64 = 6;
/// `syscall`.
const SYSCALL: u64 = 2;

core::arch::global_asm!(
    // Entered by a call from a thunk, with the registers of a system call; preserves what a system call preserves.
    ".hidden vs_hot_call",
    ".globl vs_hot_call",
    ".type vs_hot_call,@function",
    "vs_hot_call:",
    // The caller is who stands at the site, 128 bytes above what the thunk's call has pushed; the thunk is nobody's frame.
    ".cfi_startproc",
    ".cfi_def_cfa rsp, 136",
    ".cfi_undefined rip",
    " push rbp",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset rbp, 0",
    " mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    " and rsp, -16",
    " sub rsp, 368",
    " mov [rsp], rdi",
    " mov [rsp + 8], rsi",
    " mov [rsp + 16], rdx",
    " mov [rsp + 24], r10",
    " mov [rsp + 32], r8",
    " mov [rsp + 40], r9",
    " movups [rsp + 48], xmm0",
    " movups [rsp + 64], xmm1",
    " movups [rsp + 80], xmm2",
    " movups [rsp + 96], xmm3",
    " movups [rsp + 112], xmm4",
    " movups [rsp + 128], xmm5",
    " movups [rsp + 144], xmm6",
    " movups [rsp + 160], xmm7",
    " movups [rsp + 176], xmm8",
    " movups [rsp + 192], xmm9",
    " movups [rsp + 208], xmm10",
    " movups [rsp + 224], xmm11",
    " movups [rsp + 240], xmm12",
    " movups [rsp + 256], xmm13",
    " movups [rsp + 272], xmm14",
    " movups [rsp + 288], xmm15",
    // What a new thread begins with besides, and where: behind the site, which the jump at the end of the thunk goes to.
    " mov rcx, [rbp]",
    " mov [rsp + 304], rcx",
    " mov [rsp + 312], rbx",
    " mov [rsp + 320], r12",
    " mov [rsp + 328], r13",
    " mov [rsp + 336], r14",
    " mov [rsp + 344], r15",
    " mov rcx, [rbp + 8]",
    " movsxd r11, dword ptr [rcx + 9]",
    " lea rcx, [rcx + r11 + 13]",
    " mov [rsp + 352], rcx",
    // rip is saved at (rbp & -16) - 16, which is rsp + 352.
    ".cfi_escape 0x10, 0x10, 0x07, 0x76, 0x00, 0x09, 0xf0, 0x1a, 0x40, 0x1c",
    " mov edi, eax",
    " mov rsi, rsp",
    " call {call}",
    " mov rdi, [rsp]",
    " mov rsi, [rsp + 8]",
    " mov rdx, [rsp + 16]",
    " mov r10, [rsp + 24]",
    " mov r8, [rsp + 32]",
    " mov r9, [rsp + 40]",
    " movups xmm0, [rsp + 48]",
    " movups xmm1, [rsp + 64]",
    " movups xmm2, [rsp + 80]",
    " movups xmm3, [rsp + 96]",
    " movups xmm4, [rsp + 112]",
    " movups xmm5, [rsp + 128]",
    " movups xmm6, [rsp + 144]",
    " movups xmm7, [rsp + 160]",
    " movups xmm8, [rsp + 176]",
    " movups xmm9, [rsp + 192]",
    " movups xmm10, [rsp + 208]",
    " movups xmm11, [rsp + 224]",
    " movups xmm12, [rsp + 240]",
    " movups xmm13, [rsp + 256]",
    " movups xmm14, [rsp + 272]",
    " movups xmm15, [rsp + 288]",
    " mov rsp, rbp",
    " pop rbp",
    ".cfi_def_cfa rsp, 136",
    ".cfi_restore rbp",
    ".cfi_undefined rip",
    " ret",
    ".cfi_endproc",
    ".size vs_hot_call, .-vs_hot_call",
    call = sym hot_call,
);

extern "C" {
    fn vs_hot_call();
}

/// `frame`: rdi, rsi, rdx, r10, r8, r9, sixteen vector registers, rbp, rbx, r12 to r15, and the address behind the site.
extern "C" fn hot_call(nr: u32, frame: u64) -> i64 {
    let entered = shield::enter();
    let result = call_of_site(nr, frame);
    shield::leave(entered);
    result
}

fn call_of_site(nr: u32, frame: u64) -> i64 {
    let args: [u64; 6] = load(frame);
    let own = nr & OWN != 0 && args[1..3].iter().all(|&set| is_libcs(set, frame));
    let nr = nr & !OWN;
    if i64::from(nr) == libc::SYS_clone3 {
        let [rdi, rsi, rdx, r10, r8, r9] = args;
        let start = Start { saved: load(frame + 304), scratch: [r8, r9, r10, rdi, rsi, rdx], rip: load(frame + 352) };
        return net::clone(libc::SYS_clone3, args, start);
    }
    net::call_of_site(nr as i64, args, own)
}

/// A set is none, or lies where libc's own do.
fn is_libcs(set: u64, frame: u64) -> bool {
    let [first, end] = [0, 1].map(|n| CONSTANTS[n].load(Relaxed));
    let of_thread = set.wrapping_sub(fs_base()) < THREAD.load(Relaxed);
    set == 0 || set.wrapping_sub(frame) < FRAME || (first..end).contains(&set) || of_thread
}

/// Bytes of the site that `text` begins with; 0: there is none.
fn length(text: &[u8]) -> u64 {
    let syscall = |at: u64| text.get(at as usize..(at + SYSCALL) as usize) == Some(&[0x0f, 0x05]);
    let lea = |lea: &[u8]| {
        let by_register = |modrm: u8| modrm & 0xf8 == 0xb0 && modrm != 0xb4;
        lea[..2] == [0x48, 0x8d] && (lea[2] == 0x35 || by_register(lea[2]))
    };
    match text {
        [0xb8, ..] if syscall(MOV) => MOV + SYSCALL,
        [0xb8, ..] if syscall(MOV + LEA) && lea(&text[MOV as usize..]) => MOV + LEA + SYSCALL,
        [0xb8, _, _, _, _, 0x40, 0x80, 0xf6, 0x80 | 0x81, ..] if syscall(MOV + XOR) => MOV + XOR + SYSCALL,
        // A loop of `exit`, of which the first instruction is before the loop.
        [0xba, 0x3c, 0, 0, 0, 0x66, 0x90, 0x31, 0xff, 0x89, 0xd0, ..] if syscall(MOV + EXIT) => MOV + EXIT + SYSCALL,
        // `_exit` has its number in another register first.
        [0xbe, 0xe7, 0, 0, 0, 0xba, 0x3c, 0, 0, 0, 0xeb, ..] => MOV + SYSCALL,
        _ => 0,
    }
}

/// A futex call of libc's own locks, at `at` of `text`: it waits for a lock that is taken (2), or wakes one. Nothing unwinds through these.
fn is_of_lock(text: &[u8], at: usize) -> bool {
    let before = at.checked_sub(MOV as usize).map(|from| &text[from..at]);
    match &text[at + MOV as usize..] {
        [0x40, 0x80, 0xf6, 0x80, ..] => before == Some(&[0xba, 2, 0, 0, 0]),
        [0x40, 0x80, 0xf6, 0x81, ..] | [0x0f, 0x05, 0xc3, ..] => before == Some(&[0xba, 1, 0, 0, 0]),
        _ => false,
    }
}

fn length_at(site: u64) -> u64 {
    length(bytes(site, (MOV + LEA + SYSCALL) as usize))
}

/// Rewrites the hot sites of libc. Whatever stands in the way, the sites simply go on trapping.
pub fn libc_sites(auxv: &Auxv) {
    let Some(image) = elf::libc_image(auxv) else { return };
    let (low, high) = image.text();
    let mut sites = [0u64; MAX_SITES];
    let n = find(low, high, &mut sites);
    let mut locks = [b"__lll_lock_wait_private".as_slice(), b"__lll_lock_wake_private"]
        .map(|name| image.find(name).filter(|at| (low..high).contains(at)).unwrap_or(0));
    let n = without_branches(low, high, &mut sites, n, &mut locks);
    let size = ((n + locks.len()) as u64 * THUNK + 4095) & !4095;
    let (rw, rx) = (libc::PROT_READ | libc::PROT_WRITE, libc::PROT_READ | libc::PROT_EXEC);
    let hint = (image.base() - size) & !4095;
    let thunks = raw!(libc::SYS_mmap, hint, size, rw, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1i64, 0);
    let far = |a: u64, b: u64| a.abs_diff(b) > 0x7000_0000;
    let entry = vs_hot_call as *const () as u64;
    if thunks < 0 {
        return;
    }
    let thunks = thunks as u64;
    if far(thunks, low) || far(thunks, high) || far(thunks, entry) {
        raw!(libc::SYS_munmap, thunks, size);
        return;
    }
    let thread = image.find(b"_thread_db_sizeof_pthread").map_or(0, load::<u32>);
    THREAD.store(thread.into(), Relaxed);
    let hands_sets = HANDS_SETS.map(|name| image.bounds(name));
    elf::each_fixed_segment(image.base(), |start, length, _| {
        if CONSTANTS[0].load(Relaxed) == 0 {
            CONSTANTS[0].store(start, Relaxed);
        }
        CONSTANTS[1].store(start + length, Relaxed);
    });
    for (i, &site) in sites[..n].iter().enumerate() {
        let is_within = |&(first, end): &(u64, u64)| (first..end).contains(&site);
        let own = hands_sets.iter().all(|bounds| bounds.is_some_and(|bounds| !is_within(&bounds)));
        write_thunk(thunks + THUNK * i as u64, site, entry, own);
    }
    let handlers = [futex::wait_for_lock as *const () as u64, futex::wake_for_lock as *const () as u64];
    let place = |i: usize| thunks + THUNK * (n + i) as u64;
    for (i, handler) in handlers.into_iter().enumerate() {
        // mov rax, handler; jmp rax
        store(place(i), [0x48u8, 0xb8]);
        store(place(i) + 2, handler);
        store(place(i) + 10, [0xffu8, 0xe0]);
    }
    if raw!(libc::SYS_mprotect, thunks, size, rx) < 0 {
        return;
    }
    if raw!(libc::SYS_mprotect, low, high - low, rw | libc::PROT_EXEC) < 0 {
        return;
    }
    for (i, &site) in sites[..n].iter().enumerate() {
        store(site, 0xe9u8);
        store(site + 1, relative(site + 5, thunks + THUNK * i as u64));
    }
    for (i, &function) in locks.iter().enumerate().filter(|(_, &function)| function != 0) {
        store(function, 0xe9u8);
        store(function + 1, relative(function + JUMP, place(i)));
    }
    raw!(libc::SYS_mprotect, low, high - low, rx);
}

/// Makes fork copy the page tables of libc, the loader and this library. The kernel leaves out those of file mappings that no
/// page of has been written to, and each execution then begins with 17 page faults on code that has been used before
/// (DESIGN-NOTES says what they cost). Whatever stands in the way, they come.
pub fn keep_page_tables(auxv: &Auxv) {
    let libc = elf::libc_image(auxv).map_or(0, |image| image.base());
    let own = elf::own_base();
    for base in [own, libc, auxv.base].into_iter().filter(|&base| base != 0) {
        elf::each_fixed_segment(base, |start, length, prot| {
            if raw!(libc::SYS_mprotect, start, length, prot | libc::PROT_WRITE) >= 0 {
                store(start, load::<u8>(start));
                raw!(libc::SYS_mprotect, start, length, prot);
            }
            // Of this library every execution needs most pages, and which have been used by now is chance.
            for page in (start..start + length).step_by(4096).filter(|_| base == own) {
                load::<u8>(page);
            }
        });
    }
}

fn relative(from: u64, to: u64) -> i32 {
    to.wrapping_sub(from) as i32
}

/// The thunk: what stood between number and call, over the red zone, number, call, back behind the site.
fn write_thunk(at: u64, site: u64, entry: u64, own: bool) {
    let (nr, length): (u32, u64) = (load(site + 1), length_at(site));
    let own = own && i64::from(nr) == libc::SYS_rt_sigprocmask;
    let mut at = at;
    let between = length - MOV - SYSCALL;
    for i in 0..between {
        store(at + i, load::<u8>(site + MOV + i));
    }
    if between == LEA && load::<u8>(at + 2) == 0x35 {
        let target = (site + MOV + LEA).wrapping_add(load::<i32>(site + MOV + 3) as i64 as u64);
        store(at + 3, relative(at + LEA, target));
    }
    at += between;
    store(at, [0x48u8, 0x8d, 0x64, 0x24, 0x80]);
    store(at + 5, 0xb8u8);
    store(at + 6, nr | if own { OWN } else { 0 });
    store(at + 10, 0xe8u8);
    store(at + 11, relative(at + 15, entry));
    store(at + 15, [0x48u8, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0]);
    store(at + 23, 0xe9u8);
    store(at + 24, relative(at + 28, site + length));
}

/// Addresses of the sites in [low, high), ascending.
fn find(low: u64, high: u64, sites: &mut [u64; MAX_SITES]) -> usize {
    let text = bytes(low, (high - low) as usize);
    let mut n = 0;
    let mut at = 0;
    while at + (MOV + LEA + SYSCALL) as usize <= text.len() && n < MAX_SITES {
        if length(&text[at..]) > 0 {
            let nr = u32::from_le_bytes([text[at + 1], text[at + 2], text[at + 3], text[at + 4]]);
            if is_hot(nr as i64) && (nr as i64 != libc::SYS_futex || is_of_lock(text, at)) {
                sites[n] = low + at as u64;
                n += 1;
            }
        }
        at += 1;
    }
    n
}

/// Keeps the sites that nothing in [low, high) may branch into the middle of; of functions, those into whose first bytes nothing
/// branches.
fn without_branches(low: u64, high: u64, sites: &mut [u64; MAX_SITES], n: usize, functions: &mut [u64; 2]) -> usize {
    let text = bytes(low, (high - low) as usize);
    let mut good = [true; MAX_SITES];
    let mut mark = |target: u64| {
        // The second instruction of the site, or the third. Code does not go to the middle of one.
        let after = sites[..n].partition_point(|&s| s < target);
        let into = |site: u64| target == site + MOV || target == site + length_at(site) - SYSCALL;
        if after > 0 && into(sites[after - 1]) {
            good[after - 1] = false;
        }
        for function in functions.iter_mut().filter(|function| target > **function && target < **function + JUMP) {
            *function = 0;
        }
    };
    let mut at = 0;
    while at + 6 <= text.len() {
        let here = low + at as u64;
        let long = |i: usize| {
            i32::from_le_bytes([text[at + i], text[at + i + 1], text[at + i + 2], text[at + i + 3]]) as i64 as u64
        };
        match text[at] {
            0x70..=0x7f | 0xeb | 0xe0..=0xe3 => mark((here + 2).wrapping_add(text[at + 1] as i8 as u64)),
            0xe8 | 0xe9 => mark((here + 5).wrapping_add(long(1))),
            0x0f if text[at + 1] & 0xf0 == 0x80 => mark((here + 6).wrapping_add(long(2))),
            _ => {}
        }
        at += 1;
    }
    let mut kept = 0;
    for i in 0..n {
        if good[i] {
            sites[kept] = sites[i];
            kept += 1;
        }
    }
    kept
}
