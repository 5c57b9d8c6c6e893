//! What libc has locks of its own for: directories that are read, of which threads may use one together, and what threads are made with. And what
//! threads of libc's own work on (POSIX aio, getaddrinfo_a): how far these have come is told by memory and not explored.

use vsrun_model::stream::Kept;
use vsrun_model::world::LIBC_THREADS;

use crate::calls::stream::{in_directory, uses};
use crate::calls::thread::{call1, call1_long, call2, call3, call4, libc_functions, set_default};
use crate::gate::shield;
use crate::gate::{end, local, model};

fn asks_for(work: impl FnOnce() -> i32) -> i32 {
    model().never_comes(LIBC_THREADS);
    work()
}

symbols! {
    fn aio_read(request: u64) -> i32 = asks_for(|| call1(libc_functions().aio_read, request));
    fn aio_read64(request: u64) -> i32 = aio_read(request);
    fn aio_write(request: u64) -> i32 = asks_for(|| call1(libc_functions().aio_write, request));
    fn aio_write64(request: u64) -> i32 = aio_write(request);
    fn aio_fsync(how: i32, request: u64) -> i32 = asks_for(|| call2(libc_functions().aio_fsync, how as u64, request));
    fn aio_fsync64(how: i32, request: u64) -> i32 = aio_fsync(how, request);
    fn lio_listio(mode: i32, list: u64, n: i32, event: u64) -> i32 =
        asks_for(|| call4(libc_functions().lio_listio, mode as u64, list, n as u64, event));
    fn lio_listio64(mode: i32, list: u64, n: i32, event: u64) -> i32 = lio_listio(mode, list, n, event);
    fn getaddrinfo_a(mode: i32, list: u64, n: i32, event: u64) -> i32 =
        asks_for(|| call4(libc_functions().getaddrinfo_a, mode as u64, list, n as u64, event));
}

// Which entry a thread gets depends on who came first.
symbols! {
    fn readdir(dir: u64) -> u64 = in_directory(dir, "readdir", || call1_long(libc_functions().readdir, dir));
    fn readdir64(dir: u64) -> u64 = readdir(dir);
    fn readdir_r(dir: u64, entry: u64, result: u64) -> i32 =
        in_directory(dir, "readdir", || call3(libc_functions().readdir_r, dir, entry, result));
    fn readdir64_r(dir: u64, entry: u64, result: u64) -> i32 = readdir_r(dir, entry, result);
    fn telldir(dir: u64) -> i64 = in_directory(dir, "telldir", || call1_long(libc_functions().telldir, dir) as i64);
    fn seekdir(dir: u64, place: i64) =
        { in_directory(dir, "seekdir", || call2(libc_functions().seekdir, dir, place as u64)); };
    fn rewinddir(dir: u64) = { in_directory(dir, "rewinddir", || call1(libc_functions().rewinddir, dir)); };
}

// What threads are made with if nothing is said.
symbols! {
    fn pthread_setattr_default_np(attributes: u64) -> i32 = {
        uses(Kept::ATTRIBUTES, "pthread_setattr_default_np");
        set_default(attributes)
    };
    fn pthread_getattr_default_np(attributes: u64) -> i32 = {
        uses(Kept::ATTRIBUTES, "pthread_getattr_default_np");
        call1(libc_functions().pthread_getattr_default_np, attributes)
    };
}

/// Goes on to libc's with the caller's frame, by which that knows where to look for the library.
///
/// # Safety
/// As dlmopen.
#[unsafe(naked)]
#[no_mangle]
unsafe extern "C" fn dlmopen(namespace: i64, file: u64, flags: i32) -> u64 {
    // SAFETY: three words keep the stack aligned as a call wants it; the arguments and the stack are the caller's again where libc's function
    // is jumped to.
    core::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "push rdx",
        "call {}",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        sym opened_in
    )
}

/// Libraries in a namespace of their own have a libc of their own, too, whose locks and memory nobody sees.
extern "C" fn opened_in(namespace: i64) -> u64 {
    if namespace != libc::LM_ID_BASE {
        shield::enter();
        end::unsupported(&[b"dlmopen: libraries in a namespace of their own"]);
    }
    libc_functions().dlmopen
}

/// Goes on to libc's, with all arguments of the function that the context is to run.
///
/// # Safety
/// As makecontext.
#[unsafe(naked)]
#[no_mangle]
unsafe extern "C" fn makecontext(context: u64, function: u64, arguments: i32) {
    // SAFETY: seven words keep the stack aligned as a call wants it; the arguments and the stack are the caller's again where libc's function
    // is jumped to.
    core::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "push r9",
        "call {}",
        "pop r9",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        sym makes_context
    )
}

/// A context may run on any memory, a piece of a thread's stack too: then what is below it is not dead.
extern "C" fn makes_context() -> u64 {
    local().contexts = true;
    libc_functions().makecontext
}
