//! Functions of libc that the shim calls.

use core::cell::UnsafeCell;

use crate::gate::end;
use crate::sys::elf::{libc_image, Auxv, Image};

macro_rules! functions {
    ($($name:ident)*) => {
        /// Their addresses; 0: there is none.
        #[derive(Clone, Copy)]
        pub struct Functions { $(pub $name: u64),* }

        impl Functions {
            fn of(image: &Image) -> Functions {
                Functions { $($name: image.find(stringify!($name).as_bytes()).unwrap_or(0)),* }
            }
        }
    };
}

functions! {
    __libc_start_main pthread_create pthread_join pthread_detach pthread_cancel pthread_testcancel
    pthread_setcancelstate pthread_once call_once thrd_join thrd_detach
}

struct Cell(UnsafeCell<Option<Functions>>);
// SAFETY: written once by the constructor, before the program has a second fiber.
unsafe impl Sync for Cell {}

static FUNCTIONS: Cell = Cell(UnsafeCell::new(None));

/// libc's functions.
pub fn get() -> Functions {
    // SAFETY: see `Cell`.
    match unsafe { *FUNCTIONS.0.get() } {
        Some(functions) => functions,
        None => end::bug(b"a function of libc was called before the library was initialized"),
    }
}

/// Finds them. An error says why the program cannot be run.
pub fn find(auxv: &Auxv) -> Result<(), &'static [u8]> {
    let Some(image) = libc_image(auxv) else { return Err(b"the program does not use glibc's libc.so.6") };
    let functions = Functions::of(&image);
    if functions.__libc_start_main == 0 || functions.pthread_create == 0 {
        return Err(b"the program's glibc is older than 2.34, which vsrun does not support");
    }
    // SAFETY: see `Cell`.
    unsafe { *FUNCTIONS.0.get() = Some(functions) };
    Ok(())
}
