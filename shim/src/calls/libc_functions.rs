//! Functions of libc that the shim calls.

use core::cell::UnsafeCell;

use crate::gate::end;
use crate::sys::elf;

/// Their addresses.
#[derive(Clone, Copy, Default)]
pub struct Libc {
    /// __libc_start_main.
    pub start_main: u64,
    /// pthread_create.
    pub pthread_create: u64,
    /// pthread_join.
    pub pthread_join: u64,
    /// pthread_detach.
    pub pthread_detach: u64,
    /// pthread_cancel.
    pub pthread_cancel: u64,
    /// pthread_testcancel.
    pub pthread_testcancel: u64,
    /// pthread_setcancelstate.
    pub pthread_setcancelstate: u64,
    /// pthread_once.
    pub pthread_once: u64,
    /// call_once.
    pub call_once: u64,
    /// thrd_join.
    pub thrd_join: u64,
    /// thrd_detach.
    pub thrd_detach: u64,
}

struct Cell(UnsafeCell<Option<Libc>>);
// SAFETY: written once by the constructor, before the program has a second fiber.
unsafe impl Sync for Cell {}

static LIBC: Cell = Cell(UnsafeCell::new(None));

/// libc's functions.
pub fn get() -> Libc {
    // SAFETY: see `Cell`.
    match unsafe { *LIBC.0.get() } {
        Some(functions) => functions,
        None => end::bug(b"a function of libc was called before the library was initialized"),
    }
}

/// Finds them. An error says why the program cannot be run.
pub fn find(auxv: &elf::Auxv) -> Result<(), &'static [u8]> {
    let Some(image) = elf::libc_image(auxv) else { return Err(b"the program does not use glibc's libc.so.6") };
    let find = |name: &[u8]| image.find(name).unwrap_or(0);
    let functions = Libc {
        start_main: find(b"__libc_start_main"),
        pthread_create: find(b"pthread_create"),
        pthread_join: find(b"pthread_join"),
        pthread_detach: find(b"pthread_detach"),
        pthread_cancel: find(b"pthread_cancel"),
        pthread_testcancel: find(b"pthread_testcancel"),
        pthread_setcancelstate: find(b"pthread_setcancelstate"),
        pthread_once: find(b"pthread_once"),
        call_once: find(b"call_once"),
        thrd_join: find(b"thrd_join"),
        thrd_detach: find(b"thrd_detach"),
    };
    if functions.start_main == 0 || functions.pthread_create == 0 {
        return Err(b"the program's glibc is older than 2.34, which vsrun does not support");
    }
    // SAFETY: see `Cell`.
    unsafe { *LIBC.0.get() = Some(functions) };
    Ok(())
}
