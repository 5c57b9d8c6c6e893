//! Opening files.

use super::copies::{access, copy, give_up, may_change, shadow, target};
use super::layer::shadow_path;
use super::path::{given, Path, Stat};
use super::room::Answer;
use super::walk::{Place, Side};
use crate::sys::errno::*;
use crate::sys::raw;

/// With these flags a file may be made or changed.
pub fn may_write(flags: i32) -> bool {
    flags & libc::O_PATH == 0 && (flags & libc::O_ACCMODE != 0 || flags & (libc::O_CREAT | libc::O_TRUNC) != 0)
}

/// open and openat: (directory, path, flags, mode).
pub fn open(place: &mut Place, (dir, path, flags, mode): (i32, u64, i32, u64)) -> Result<Answer, i64> {
    if path == 0 {
        return Ok(Answer::AsItIs);
    }
    let exclusive = flags & libc::O_CREAT != 0 && flags & libc::O_EXCL != 0;
    place.find(dir, given(path), flags & libc::O_NOFOLLOW == 0 && !exclusive)?;
    let writes = may_write(flags);
    if writes && flags & libc::O_TMPFILE == libc::O_TMPFILE && place.side != Side::Outside {
        return nameless(place, flags, mode);
    }
    match (place.side, place.stat) {
        (Side::Outside, _) => Ok(kernels(place, flags, mode)),
        (_, None) if !writes || flags & libc::O_CREAT == 0 => Err(ENOENT),
        (_, None) if place.slash => Err(EISDIR),
        (_, None) => {
            let mut own = Path::new();
            target(place, &mut own)?;
            let answer = open_own(own.ptr(), flags, mode);
            if matches!(answer, Answer::Done(error) if error < 0) {
                give_up(place)?;
            }
            Ok(answer)
        }
        (_, Some(_)) if exclusive && writes => Err(EEXIST),
        (Side::Own, Some(stat)) if matches!(stat.kind(), libc::S_IFREG | libc::S_IFDIR) => {
            Ok(open_own(place.ptr(), flags, mode))
        }
        (Side::Real, Some(stat)) if writes => real(place, &stat, flags, mode),
        _ => Ok(kernels(place, flags, mode)),
    }
}

/// The kernel opens it, by the program's own words where it comes to the same with them. That may block.
fn kernels(place: &Place, flags: i32, mode: u64) -> Answer {
    match place.clean {
        true => Answer::AsItIs,
        false => Answer::Call(libc::SYS_openat, [libc::AT_FDCWD as u64, place.ptr(), flags as u64, mode, 0, 0]),
    }
}

/// Something in the real file system, with flags that may change it.
fn real(place: &mut Place, stat: &Stat, flags: i32, mode: u64) -> Result<Answer, i64> {
    let changes = flags & libc::O_ACCMODE != 0 || flags & libc::O_TRUNC != 0;
    if stat.kind() != libc::S_IFREG || !changes {
        // These change nothing in the file system, and the kernel has the right error for directories.
        return Ok(kernels(place, flags, mode));
    }
    // The kernel says whether the program may.
    let asked = flags & !(libc::O_CREAT | libc::O_TRUNC | libc::O_EXCL) | libc::O_CLOEXEC | libc::O_NONBLOCK;
    let fd = raw!(libc::SYS_open, place.ptr(), asked, 0);
    if fd < 0 {
        return Err(fd);
    }
    raw!(libc::SYS_close, fd);
    match access(place.ptr(), libc::W_OK) {
        0 => copy(place, flags & libc::O_TRUNC == 0)?,
        error => return Err(error),
    }
    Ok(open_own(place.ptr(), flags & !libc::O_CREAT, mode))
}

/// A file without a name (O_TMPFILE).
fn nameless(place: &mut Place, flags: i32, mode: u64) -> Result<Answer, i64> {
    match place.stat {
        None => return Err(ENOENT),
        Some(stat) if !stat.is_dir() => return Err(ENOTDIR),
        Some(_) if place.side == Side::Own => return Ok(open_own(place.ptr(), flags, mode)),
        Some(_) => {}
    }
    may_change(place.ptr())?;
    // Any name in it leads to its shadow.
    place.at.join(b".")?;
    let row = shadow(place)?;
    let mut own = Path::new();
    shadow_path(&mut own, row, b"")?;
    Ok(open_own(own.ptr(), flags, mode))
}

/// Opens in the layer. The memory that it lies in may know no direct input and output, which changes nothing for the
/// program but speed.
fn open_own(path: u64, flags: i32, mode: u64) -> Answer {
    Answer::Done(raw!(libc::SYS_open, path, flags & !libc::O_DIRECT, mode))
}
