//! FIFOs: the inode is real, what goes through it is the model's.

use vsrun_model::fd::{ACCESS, NONBLOCK};

use crate::local::{local, world};
use crate::sys::{cstr, load};
use crate::{end, fd, files, gate, raw};

/// Offsets in struct stat.
const ST_INO: u64 = 8;
const ST_MODE: u64 = 24;
const AT_SYMLINK_NOFOLLOW: i32 = 0x100;

/// Opens `path`, relative to directory `dir`, if it is a FIFO.
pub fn open(dir: i32, path: u64, flags: i32) -> Option<i64> {
    if path == 0 || flags & libc::O_PATH != 0 {
        return None;
    }
    let mut stat = [0u64; 18];
    let at = stat.as_mut_ptr() as u64;
    let follow = if flags & libc::O_NOFOLLOW != 0 { AT_SYMLINK_NOFOLLOW } else { 0 };
    let given = path;
    let (dir, path) = files::locate(dir, path, follow).ok()?;
    let result = raw!(libc::SYS_newfstatat, dir, path, at, follow);
    if result < 0 || load::<u32>(at + ST_MODE) & libc::S_IFMT != libc::S_IFIFO {
        return None;
    }
    if flags & libc::O_CREAT != 0 && flags & libc::O_EXCL != 0 {
        return Some(-(libc::EEXIST as i64));
    }
    if flags & libc::O_DIRECTORY != 0 {
        return Some(-(libc::ENOTDIR as i64));
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
    let Some(obj) = world().fifo(load(at), load(at + ST_INO), name) else { out_of_room() };
    let kept = flags as u32 & (ACCESS | NONBLOCK | libc::O_APPEND as u32);
    let mut number = 0;
    let op = world().fifo_op(obj);
    gate::pass_then(op, |_| {
        number = match world().fifo_open(local().cur, obj, kept) {
            Some(Ok(desc)) => fd::install(desc, flags & libc::O_CLOEXEC != 0),
            Some(Err(error)) => -error,
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
