//! Files: calls that name or change a file see the real file system with the execution's private layer on top.
//!
//! NOTE [Clean] Until something has been written, calls that only look go to the kernel as they are; later too, where
//! the layer makes no difference for their path. So an execution that writes no file pays nothing.

mod calls;
mod descriptors;
mod layer;
mod names;
mod open;
mod path;
mod seen;
mod shared;
mod walk;

use core::cell::UnsafeCell;

use crate::local::{arena, local};
use crate::{end, net, signal};
use path::Path;
use walk::Place;

pub use descriptors::forget as forget_descriptor;
pub use layer::{given, is_made, is_private};
pub use names::CONNECT;
pub use shared::{announce, mapped, note, using};

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
struct Room {
    one: Place,
    two: Place,
}

struct Cell<T>(UnsafeCell<T>);
// SAFETY: one kernel thread a process; a call uses it from its beginning to its end, and no other begins in between:
// signals are delivered and fibers switched only after it.
unsafe impl<T> Sync for Cell<T> {}

static ROOM: Cell<Room> = Cell(UnsafeCell::new(Room { one: Place::new(), two: Place::new() }));

const STACK: usize = 192 << 10;
#[repr(align(64))]
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

#[repr(C)]
struct Request {
    nr: i64,
    args: [u64; 6],
    answer: Option<Answer>,
}

extern "C" fn answer(request: u64) {
    // SAFETY: `call` made it and waits; see `Cell` for the room.
    let (request, room) = unsafe { (&mut *(request as *mut Request), &mut *ROOM.0.get()) };
    request.answer = Some(answer_to(request.nr, request.args, room));
}

/// Calls `function` with `argument` on a stack that is big enough for work on paths.
fn on_stack(argument: u64, function: extern "C" fn(u64)) {
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
    match work.1 {
        Some(result) => result,
        None => end::bug(b"work with paths was not done"),
    }
}

/// A call that may name or change a file, with the private layer in its place.
pub fn call(nr: i64, a: [u64; 6]) -> i64 {
    if arena().files.private == 0 || !concerns_files(nr, &a) {
        return net::through(nr, a);
    }
    let mut request = Request { nr, args: a, answer: None };
    on_stack(&raw mut request as u64, answer);
    match request.answer {
        Some(Answer::Done(result)) => {
            if let Some(n) = arena().control.passed.get_mut(nr as usize) {
                *n += 1;
            }
            signal::deliver();
            result
        }
        Some(Answer::AsItIs) => net::through(nr, a),
        Some(Answer::Call(nr, args)) => net::through(nr, args),
        None => end::bug(b"a call about a file has no answer"),
    }
}

/// The name and the numbers (device, inode) of what descriptor `fd` refers to, as the program knows them, where the kernel
/// says `real`. The name is empty where it is too long.
pub fn known_as(fd: i32, real: (u64, u64), name: impl FnOnce(&[u8])) -> (u64, u64) {
    let mut path = Path::new();
    if path.of_descriptor(fd).is_err() {
        name(b"");
        return real;
    }
    let numbers = layer::numbers(path.get(), real);
    name(if layer::seen_as(&mut path).is_ok() { path.get() } else { b"" });
    numbers
}

/// A call of the shim's own about a name, with the private layer in its place: not counted, and nothing is delivered.
pub fn ask(nr: i64, a: [u64; 6]) -> i64 {
    let kernel = |nr: i64, a: [u64; 6]| crate::sys::raw6(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
    if arena().files.private == 0 || !concerns_files(nr, &a) {
        return kernel(nr, a);
    }
    let mut request = Request { nr, args: a, answer: None };
    on_stack(&raw mut request as u64, answer);
    match request.answer {
        Some(Answer::Done(result)) => result,
        Some(Answer::Call(nr, b)) => kernel(nr, b),
        _ => kernel(nr, a),
    }
}

/// What a path names, for a call of the shim's own: directory and path as the kernel finds it, an error if there is
/// nothing. `flags`: AT_SYMLINK_NOFOLLOW. It stays valid until the next call about a file.
pub fn locate(dir: i32, path: u64, flags: i32) -> Result<(i32, u64), i64> {
    let empty = path == 0 || crate::sys::load::<u8>(path) == 0;
    if arena().files.private == 0 || !layered() || empty {
        return Ok((dir, path));
    }
    let args = [dir as u64, path, 0, flags as u64, 0, 0];
    let mut request = Request { nr: libc::SYS_execveat, args, answer: None };
    on_stack(&raw mut request as u64, answer);
    match request.answer {
        Some(Answer::Call(_, b)) => Ok((b[0] as i32, b[1])),
        // What is not to be seen in the layer may be there without it.
        Some(Answer::Done(error)) => Err(error),
        _ => Ok((dir, path)),
    }
}

/// What a path led to is not to be relied on any more.
pub fn forget_walk() {
    // The room is two pages that most programs never use.
    if !core::mem::take(&mut local().keeps_walk) {
        return;
    }
    // SAFETY: see `Cell`.
    let room = unsafe { &mut *ROOM.0.get() };
    room.one.forget();
    room.two.forget();
}

/// The call itself comes next: it will follow the path of the last [`locate`].
pub fn keep_walk(dir: i32, path: u64, flags: i32) {
    if arena().files.private != 0 && layered() && !shared::is_empty(path) {
        // SAFETY: see `Cell`.
        let room = unsafe { &mut *ROOM.0.get() };
        room.one.keep(dir, given(path), flags & libc::AT_SYMLINK_NOFOLLOW == 0);
    }
}

/// Something has been made or changed, or lies in the execution's /dev/shm.
fn layered() -> bool {
    arena().files.used != 0 || arena().control.shm_used != 0
}

fn concerns_files(nr: i64, a: &[u64; 6]) -> bool {
    match nr {
        libc::SYS_open => layered() || open::may_write(a[1] as i32),
        libc::SYS_openat => layered() || open::may_write(a[2] as i32),
        _ if seen::only_looks(nr) => layered(),
        _ => calls::changes(nr),
    }
}

fn answer_to(nr: i64, a: [u64; 6], room: &mut Room) -> Answer {
    let result = match nr {
        libc::SYS_open => open::open(&mut room.one, (libc::AT_FDCWD, a[0], a[1] as i32, a[2])),
        libc::SYS_creat => {
            let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
            open::open(&mut room.one, (libc::AT_FDCWD, a[0], flags, a[1]))
        }
        libc::SYS_openat => open::open(&mut room.one, (a[0] as i32, a[1], a[2] as i32, a[3])),
        _ if seen::only_looks(nr) => seen::look(nr, a, &mut room.one),
        _ => calls::change(nr, a, room),
    };
    result.unwrap_or_else(Answer::Done)
}
