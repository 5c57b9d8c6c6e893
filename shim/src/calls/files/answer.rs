//! Calls that name or change a file, and calls of the shim's own about files.
//!
//! NOTE [Clean] Until something has been written, calls that only look go to the kernel as they are; later too, where
//! the layer makes no difference for their path. So an execution that writes no file pays nothing.

use super::path::{given, is_empty, Path};
use super::room::{on_stack, room, Answer, Request, Room};
use super::{calls, layer, memory, open, seen};
use crate::calls::busy;
use crate::gate::{self, arena, end, note_passed, through};
use crate::sys::{load, raw6};

extern "C" fn answer(request: u64) {
    // SAFETY: `asked` made it and waits.
    let request = unsafe { &mut *(request as *mut Request) };
    request.answer = Some(answer_to(request.nr, request.args, room()));
}

/// What becomes of a call, worked out on a stack that is big enough.
fn asked(nr: i64, args: [u64; 6]) -> Option<Answer> {
    let mut request = Request { nr, args, answer: None };
    on_stack(&raw mut request as u64, answer);
    request.answer
}

/// A call that may name or change a file, with the private layer in its place.
pub fn call(nr: i64, a: [u64; 6]) -> i64 {
    busy::patiently(|| answered(nr, a))
}

fn answered(nr: i64, a: [u64; 6]) -> i64 {
    if arena().files.private == 0 {
        return memory::with(nr, a, through);
    }
    if !concerns_files(nr, &a) {
        return through(nr, a);
    }
    match asked(nr, a) {
        Some(Answer::Done(result)) => {
            note_passed(nr);
            gate::deliver();
            result
        }
        Some(Answer::AsItIs) => through(nr, a),
        Some(Answer::Call(nr, args)) => through(nr, args),
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
    let kernel = |nr: i64, a: [u64; 6]| raw6(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
    if arena().files.private == 0 {
        return memory::with(nr, a, kernel);
    }
    if !concerns_files(nr, &a) {
        return kernel(nr, a);
    }
    match asked(nr, a) {
        Some(Answer::Done(result)) => result,
        Some(Answer::Call(nr, b)) => kernel(nr, b),
        _ => kernel(nr, a),
    }
}

/// What a path names, for a call of the shim's own: directory and path as the kernel finds it, an error if there is
/// nothing. `flags`: AT_SYMLINK_NOFOLLOW. It stays valid until the next call about a file.
pub fn locate(dir: i32, path: u64, flags: i32) -> Result<(i32, u64), i64> {
    let empty = path == 0 || load::<u8>(path) == 0;
    if arena().files.private == 0 || !layered() || empty {
        return Ok((dir, path));
    }
    let args = [dir as u64, path, 0, flags as u64, 0, 0];
    match asked(libc::SYS_execveat, args) {
        Some(Answer::Call(_, b)) => Ok((b[0] as i32, b[1])),
        // What is not to be seen in the layer may be there without it.
        Some(Answer::Done(error)) => Err(error),
        _ => Ok((dir, path)),
    }
}

/// The call itself comes next: it will follow the path of the last [`locate`].
pub fn keep_walk(dir: i32, path: u64, flags: i32) {
    if arena().files.private != 0 && layered() && !is_empty(path) {
        room().one.keep(dir, given(path), flags & libc::AT_SYMLINK_NOFOLLOW == 0);
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
