//! Bad pointers in system calls.
//!
//! NOTE [Bad pointers] Every access to the program's memory in `memory` has an entry in a table, as in the kernel's
//! copy_from_user: the address of its instruction, and where to go on if that faults. The access itself costs nothing more.
//! A system call of the program runs inside [`call`], so a fault there (SIGSEGV, SIGBUS) is not the program's crash:
//! * While arguments are read, nothing has been done yet. The call is left at once, by a jump to where it began; it gives
//!   EFAULT. Frames in between have nothing to clean up, and what a call has set for itself its caller takes back.
//! * Once its operation is under way ([`commit`]), and for everything that is written, the access is left out (what is read is
//!   0), the call goes on to its end, and then gives EFAULT: as the kernel does, which keeps what it has done.
//!
//! Outside of [`call`] a fault is a crash. So it is in functions of libc that use such memory themselves, as the locks do.
//! vsrun finds the table by [`table`] when it watches a process: it lets faults pass that are answered here.

use core::arch::asm;
use core::cell::UnsafeCell;

use super::errno::EFAULT;

/// A call of the program, as far as its faults are concerned.
#[derive(Clone, Copy)]
pub struct Guard {
    /// Stack pointer to leave the call with while its arguments are read, else 0.
    landing: u64,
    /// There is a call.
    inside: bool,
    /// The program's memory was not there.
    failed: bool,
}

impl Guard {
    const NONE: Guard = Guard { landing: 0, inside: false, failed: false };
}

struct Cell(UnsafeCell<Guard>);
// SAFETY: a process of a world has one kernel thread, and no borrow is kept across a switch of fibers.
unsafe impl Sync for Cell {}

static GUARD: Cell = Cell(UnsafeCell::new(Guard::NONE));

fn guard() -> &'static mut Guard {
    // SAFETY: see `Cell`; callers use the borrow for one statement.
    unsafe { &mut *GUARD.0.get() }
}

/// Where what is known of the call stands: from an address to another one. While its operation is under way that is nothing but whether there is one.
pub fn place() -> (u64, u64) {
    let at = GUARD.0.get() as u64;
    (at, at + size_of::<Guard>() as u64)
}

core::arch::global_asm!(
    // vs_enter(argument, function, landing): function(argument), left early by a jump to vs_landing with the stack pointer
    // that is kept at `landing`.
    ".hidden vs_enter",
    ".globl vs_enter",
    ".type vs_enter,@function",
    "vs_enter:",
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
    " mov [rdx], rsp",
    " call rsi",
    ".hidden vs_landing",
    ".globl vs_landing",
    "vs_landing:",
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
    ".size vs_enter, .-vs_enter",
);

extern "C" {
    fn vs_enter(argument: u64, function: extern "C" fn(u64), landing: *mut u64);
    fn vs_landing();
}

/// Performs a system call of the program: what `work` gives, or EFAULT where it uses memory that is not there. `left` is called
/// if `work` was left before it had done anything.
#[inline]
pub fn call<F: FnOnce() -> i64>(work: F, left: fn()) -> i64 {
    struct Job<F>(Option<F>, Option<i64>);
    extern "C" fn run<F: FnOnce() -> i64>(job: u64) {
        // SAFETY: `call` made it and waits.
        let job = unsafe { &mut *(job as *mut Job<F>) };
        job.1 = job.0.take().map(|work| work());
    }
    let mut job = Job(Some(work), None);
    let outer = core::mem::replace(guard(), Guard { inside: true, ..Guard::NONE });
    let landing = &raw mut guard().landing;
    // SAFETY: `run` has this type. If it does not return, a fault has led to `vs_landing` with the stack pointer of this frame.
    unsafe { vs_enter(&raw mut job as u64, run::<F>, landing) };
    let failed = core::mem::replace(guard(), outer).failed;
    // SAFETY: initialized above; `run` may have written it.
    match unsafe { core::ptr::read_volatile(&raw const job.1) } {
        Some(_) if failed => EFAULT,
        Some(result) => result,
        None => {
            left();
            EFAULT
        }
    }
}

/// From now on the call of the program has effects: it is not left any more.
#[inline]
pub fn commit() {
    guard().landing = 0;
}

/// There is no call for a while: another fiber runs, or a handler. What there was is for [`resume`].
#[inline]
pub fn suspend() -> Guard {
    core::mem::replace(guard(), Guard::NONE)
}

/// Goes on with the call that there was.
#[inline]
pub fn resume(before: Guard) {
    *guard() = before;
}

/// True if the call has met memory that is not there.
pub fn failed() -> bool {
    guard().failed
}

/// The call has met memory that is not there.
pub fn fail() {
    guard().failed = true;
}

/// It reads the program's memory: a fault leaves the call while its arguments are read.
const READS: u32 = 0;
/// It only looks whether memory is there. (1: it writes, and a fault is noted.)
const LOOKS: u32 = 2;

/// The table's entries: distances from each field to the instruction and to where to go on, and what the access is.
#[repr(C)]
struct Entry {
    at: i32,
    next: i32,
    access: u32,
}

/// Assembler text that enters the instruction between the labels 2 and 3 into the table, by what it does.
macro_rules! entry {
    (reads) => {
        $crate::sys::guard::entry!("0")
    };
    (writes) => {
        $crate::sys::guard::entry!("1")
    };
    (looks) => {
        $crate::sys::guard::entry!("2")
    };
    ($access:literal) => {
        concat!(
            ".pushsection vs_faults,\"aR\",@progbits\n.balign 4\n.long 2b - .\n.long 3b - .\n.long ",
            $access,
            "\n.popsection"
        )
    };
}
pub(crate) use entry;

/// Where the table begins and ends.
pub fn table() -> (u64, u64) {
    let (start, end): (u64, u64);
    // SAFETY: reads addresses that the linker provides.
    unsafe {
        asm!("lea {}, [rip + __start_vs_faults]", "lea {}, [rip + __stop_vs_faults]", out(reg) start, out(reg) end,
             options(nomem, nostack));
    }
    (start, end)
}

/// The instruction at `rip` has faulted: where to go on, and with what stack pointer if with another one. `None`: it is a crash.
pub fn recover(rip: u64) -> Option<(u64, Option<u64>)> {
    let (start, end) = table();
    let n = (end - start) as usize / size_of::<Entry>();
    // SAFETY: the linker puts the entries there, one behind the other.
    let entries = unsafe { core::slice::from_raw_parts(start as *const Entry, n) };
    let target = |field: &i32| (field as *const i32 as u64).wrapping_add(i64::from(*field) as u64);
    let entry = entries.iter().find(|entry| target(&entry.at) == rip)?;
    let next = target(&entry.next);
    if entry.access == LOOKS {
        return Some((next, None));
    }
    let guard = guard();
    if !guard.inside {
        return None;
    }
    guard.failed = true;
    if entry.access == READS && guard.landing != 0 {
        return Some((vs_landing as *const () as u64, Some(guard.landing)));
    }
    Some((next, None))
}
