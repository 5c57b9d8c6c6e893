//! Room that work on paths needs beyond the program's stack, and what becomes of a call about files.

use core::cell::UnsafeCell;

use super::walk::Place;
use crate::gate::{end, local};

/// What becomes of a call.
pub enum Answer {
    /// The kernel is asked, in the program's own words.
    AsItIs,
    /// The kernel is asked, with another call.
    Call(i64, [u64; 6]),
    /// This is the result.
    Done(i64),
}

/// Room that a call needs beyond the program's stack, which may be small.
pub(super) struct Room {
    pub(super) one: Place,
    pub(super) two: Place,
}

struct Cell<T>(UnsafeCell<T>);
// SAFETY: one kernel thread a process; a call uses it from its beginning to its end, and no other begins in between:
// signals are delivered and fibers switched only after it.
unsafe impl<T> Sync for Cell<T> {}

static ROOM: Cell<Room> = Cell(UnsafeCell::new(Room { one: Place::new(), two: Place::new() }));

const STACK: usize = 192 << 10;
// It ends where a page does, so that little of it is on few pages.
#[repr(align(4096))]
struct Stack {
    _memory: [u8; STACK],
}
static STACK_MEMORY: Cell<Stack> = Cell(UnsafeCell::new(Stack { _memory: [0; STACK] }));

core::arch::global_asm!(
    // vs_on_stack(argument, function, top): function(argument) on the stack that ends at `top`.
    ".hidden vs_on_stack",
    ".globl vs_on_stack",
    ".type vs_on_stack,@function",
    "vs_on_stack:",
    ".cfi_startproc",
    " push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    " mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    " mov rsp, rdx",
    " call rsi",
    " leave",
    ".cfi_def_cfa rsp, 8",
    " ret",
    ".cfi_endproc",
    ".size vs_on_stack, .-vs_on_stack",
);

extern "C" {
    fn vs_on_stack(argument: u64, function: extern "C" fn(u64), top: u64);
}

/// A call, and what becomes of it.
pub(super) struct Request {
    pub(super) nr: i64,
    pub(super) args: [u64; 6],
    pub(super) answer: Option<Answer>,
}

/// The room, for the work of one call.
pub(super) fn room() -> &'static mut Room {
    // SAFETY: see `Cell`.
    unsafe { &mut *ROOM.0.get() }
}

/// Calls `function` with `argument` on a stack that is big enough for work on paths.
pub(super) fn on_stack(argument: u64, function: extern "C" fn(u64)) {
    let top = STACK_MEMORY.0.get() as u64 + STACK as u64;
    // SAFETY: `function` has this type and returns; the stack is big enough for it, and nobody else's: see `Cell`.
    unsafe { vs_on_stack(argument, function, top) };
}

/// Calls `f` on that stack, if this is not on it already.
pub fn with_stack<R>(f: impl FnOnce() -> R) -> R {
    struct Work<F, R>(Option<F>, Option<R>);
    extern "C" fn run<F: FnOnce() -> R, R>(work: u64) {
        // SAFETY: `with_stack` made it and waits.
        let work = unsafe { &mut *(work as *mut Work<F, R>) };
        work.1 = work.0.take().map(|f| f());
    }
    fn run_of<F: FnOnce() -> R, R>(_: &Work<F, R>) -> extern "C" fn(u64) {
        run::<F, R>
    }
    let here = 0u8;
    if (&raw const here as u64).wrapping_sub(STACK_MEMORY.0.get() as u64) < STACK as u64 {
        return f();
    }
    let mut work = Work(Some(f), None);
    let function = run_of(&work);
    on_stack(&raw mut work as u64, function);
    work.1.unwrap_or_else(|| end::bug(b"work with paths was not done"))
}

/// What a path led to is not to be relied on any more.
pub fn forget_walk() {
    // The room is two pages that most programs never use.
    if !core::mem::take(&mut local().keeps_walk) {
        return;
    }
    room().one.forget();
    room().two.forget();
}
