//! Names that calls use, told to vsrun: it wants to know which files a program needs, to pack them.

use super::layer::{leave_listing, private, seen_as};
use super::names::names_of;
use super::path::{given, is_empty, Path};
use super::room::with_stack;
use crate::gate::arena;
use crate::sys::raw;

/// If vsrun asks for them: the absolute names of a call, each with a NUL behind it, go to the end of the file `names` beside the shim library.
pub fn tell(nr: i64, a: &[u64; 6]) {
    if arena().control.names_told != 0 {
        tell_all(nr, a);
    }
}

// What it takes of the stack, which is the program's and may be small, calls of other runs need not have.
#[cold]
#[inline(never)]
fn tell_all(nr: i64, a: &[u64; 6]) {
    for (dir, path) in names_of(nr, a).into_iter().flatten() {
        if !is_empty(path) {
            // A name that is too long is none of a file.
            let _ = with_stack(|| tell_one(dir, given(path)));
        }
    }
}

fn tell_one(dir: i32, name: &[u8]) -> Result<(), i64> {
    let mut path = Path::new();
    if name.starts_with(b"/") {
        path.set(&[name])?;
    } else {
        match dir {
            libc::AT_FDCWD => path.of_cwd()?,
            _ => path.of_descriptor(dir)?,
        }
        leave_listing(&mut path)?;
        seen_as(&mut path)?;
        path.join(name)?;
    }
    let mut file = Path::new();
    file.set(&[private(), b"/names"])?;
    let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC;
    let fd = raw!(libc::SYS_open, file.ptr(), flags, 0o622);
    if fd < 0 {
        return Err(fd);
    }
    let written = raw!(libc::SYS_write, fd, path.ptr(), path.get().len() + 1);
    raw!(libc::SYS_close, fd);
    if written < 0 {
        return Err(written);
    }
    Ok(())
}
