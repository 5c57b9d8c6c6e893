//! FIFOs: the inode is real, what goes through it is the model's.

use vsrun_model::fd::{ACCESS, NONBLOCK};

use super::{fd, files};
use crate::gate::{self, end, local, model, world};
use crate::sys::errno::*;
use crate::sys::{cstr, raw};

/// Words of struct stat.
const ST_INO: usize = 1;
const ST_MODE: usize = 3;

/// Where `path` leads from directory `dir`, as the kernel finds it, and what that is, if it is a FIFO.
fn find(dir: i32, path: u64, follow: i32) -> Option<(i32, u64, [u64; 18])> {
    let mut stat = [0u64; 18];
    let located = files::locate(dir, path, follow);
    files::keep_walk(dir, path, follow);
    let (dir, path) = located.ok()?;
    let result = raw!(libc::SYS_newfstatat, dir, path, stat.as_mut_ptr(), follow);
    (result == 0 && stat[ST_MODE] as u32 & libc::S_IFMT == libc::S_IFIFO).then_some((dir, path, stat))
}

/// Opens `path`, relative to directory `dir`, if it is a FIFO.
pub fn open(dir: i32, path: u64, flags: i32) -> Option<i64> {
    if path == 0 || flags & libc::O_PATH != 0 {
        return None;
    }
    let follow = if flags & libc::O_NOFOLLOW != 0 { libc::AT_SYMLINK_NOFOLLOW } else { 0 };
    let given = path;
    let mut found = find(dir, path, follow)?;
    files::forget_walk();
    if files::announce(libc::SYS_faccessat, [dir as u64, path, 0, 0, 0, 0]) {
        // Others make and remove it.
        found = find(dir, path, follow)?;
        files::forget_walk();
    }
    let (dir, path, stat) = found;
    if flags & libc::O_CREAT != 0 && flags & libc::O_EXCL != 0 {
        return Some(EEXIST);
    }
    if flags & libc::O_DIRECTORY != 0 {
        return Some(ENOTDIR);
    }
    let wanted = match flags & libc::O_ACCMODE {
        libc::O_RDONLY => libc::R_OK,
        libc::O_WRONLY => libc::W_OK,
        _ => libc::R_OK | libc::W_OK,
    };
    let allowed = raw!(libc::SYS_faccessat, dir, path, wanted);
    if allowed < 0 {
        return Some(allowed);
    }
    let whole = cstr(given, 4096);
    let name = whole.rsplit(|&byte| byte == b'/').next().unwrap_or(whole);
    let Some(obj) = model().fifo(stat[0], stat[ST_INO], name) else { out_of_room() };
    let kept = flags as u32 & (ACCESS | NONBLOCK | libc::O_APPEND as u32);
    let mut number = 0;
    let op = world().fifo_op(obj);
    gate::pass_then(op, |_| {
        number = match model().fifo_open(local().cur, obj, kept) {
            Some(Ok(desc)) => fd::install(desc, flags & libc::O_CLOEXEC != 0),
            Some(Err(error)) => error,
            None => out_of_room(),
        };
    });
    let Some(desc) = fd::find(number as u64).filter(|_| number >= 0) else { return Some(number) };
    if let Some(wait) = world().fifo_wait(desc) {
        let result = gate::pass(wait);
        if result < 0 {
            fd::close(number as i32);
            return Some(result);
        }
    }
    Some(number)
}

fn out_of_room() -> ! {
    end::unsupported(&[b"the program opens more FIFOs than vsrun can hold"])
}
