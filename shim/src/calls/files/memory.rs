//! `/dev/shm` where what the program writes goes to the real files (`--files real`): it is the execution's own all the same, so that
//! what one execution leaves in it is not there for the next. Names in it are exchanged as they are given; relative ones come there
//! by directories that have been opened by such names.

use super::layer::shm_directory;
use super::path::Path;
use super::room::{with_stack, Answer};
use super::{calls, seen};
use crate::gate::{arena, local, Phase};
use crate::sys::errno::ENAMETOOLONG;
use crate::sys::{cstr, load};

const PLACE: &[u8] = b"/dev/shm";
/// Bytes of a name below it.
const LONGEST: usize = 512;

/// Where a call has its paths.
fn paths(nr: i64) -> [Option<usize>; 2] {
    let one = |at| [Some(at), None];
    match nr {
        libc::SYS_open | libc::SYS_creat | libc::SYS_mkdir | libc::SYS_rmdir | libc::SYS_unlink | libc::SYS_mknod => {
            one(0)
        }
        libc::SYS_openat | libc::SYS_openat2 | libc::SYS_mkdirat | libc::SYS_mknodat | libc::SYS_unlinkat => one(1),
        libc::SYS_link | libc::SYS_rename => [Some(0), Some(1)],
        libc::SYS_linkat | libc::SYS_renameat | libc::SYS_renameat2 => [Some(1), Some(3)],
        libc::SYS_symlink => one(1),
        libc::SYS_symlinkat => one(2),
        _ => [calls::attribute(nr, &[0; 6]).or_else(|| seen::named(nr, &[0; 6])).map(|named| named.1), None],
    }
}

/// The part of a path below `/dev/shm`, with its slash, if it leads there.
fn below(path: u64) -> Option<&'static [u8]> {
    // Nobody's path of its own is in the first page: the kernel has the error.
    if path < 4096 || load::<u8>(path) != b'/' {
        return None;
    }
    let path = cstr(path, 4096);
    let slashes = path.iter().take_while(|&&b| b == b'/').count();
    let rest = path[slashes - 1..].strip_prefix(PLACE)?;
    (rest.is_empty() || rest[0] == b'/').then_some(rest)
}

/// Makes a call with the execution's own directory in the place of `/dev/shm`.
pub fn with(nr: i64, a: [u64; 6], call: impl FnOnce(i64, [u64; 6]) -> i64) -> i64 {
    if nr == libc::SYS_getcwd && arena().control.shm_used != 0 {
        return match with_stack(|| working_directory(a)) {
            Ok(Answer::Done(result)) | Err(result) => result,
            Ok(_) => call(nr, a),
        };
    }
    let places = paths(nr);
    if local().phase == Phase::Off || places.iter().flatten().all(|&at| below(a[at]).is_none()) {
        return call(nr, a);
    }
    exchanged(nr, a, places, call)
}

#[inline(never)]
fn working_directory(a: [u64; 6]) -> Result<Answer, i64> {
    seen::working_directory(a[0], a[1])
}

/// Writes the execution's own name for what is `rest` below `/dev/shm`. What it takes of the stack is not the caller's, whose is the program's.
#[inline(never)]
fn write_name(rest: &[u8], name: &mut [u8; LONGEST]) -> Result<(), i64> {
    let mut own = Path::new();
    shm_directory(&mut own)?;
    let len = own.get().len();
    if len + rest.len() >= LONGEST {
        return Err(ENAMETOOLONG);
    }
    name[..len].copy_from_slice(own.get());
    name[len..len + rest.len()].copy_from_slice(rest);
    Ok(())
}

#[inline(never)]
fn exchanged(nr: i64, mut a: [u64; 6], places: [Option<usize>; 2], call: impl FnOnce(i64, [u64; 6]) -> i64) -> i64 {
    let mut names = [[0u8; LONGEST]; 2];
    for (at, name) in places.into_iter().zip(&mut names).filter_map(|(at, name)| Some((at?, name))) {
        let Some(rest) = below(a[at]) else { continue };
        if let Err(error) = with_stack(|| write_name(rest, name)) {
            return error;
        }
        a[at] = name.as_ptr() as u64;
    }
    call(nr, a)
}
