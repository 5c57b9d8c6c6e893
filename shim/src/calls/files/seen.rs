//! Calls that look at files: by names in the layer, with numbers as the program knows them.

use super::copies::listing;
use super::layer::{self, numbers, row_of, seen_as, shadow_path};
use super::path::{given, Path, Stat};
use super::room::Answer;
use super::walk::{Place, Side};
use crate::gate::arena;
use crate::sys::errno::*;
use crate::sys::{copy_out, cstr, load, raw, raw6, store};

const AT_FDCWD: u64 = libc::AT_FDCWD as u64;

/// A call that changes nothing, but looks at a file by name or descriptor.
pub fn only_looks(nr: i64) -> bool {
    named(nr, &[0; 6]).is_some()
        || matches!(nr, libc::SYS_fstat | libc::SYS_getcwd | libc::SYS_getdents64 | libc::SYS_getdents)
}

/// Where a call has its directory and path, and whether it follows a last link.
pub(super) fn named(nr: i64, a: &[u64; 6]) -> Option<(Option<usize>, usize, bool)> {
    let nofollow = |at: usize| a[at] as i32 & libc::AT_SYMLINK_NOFOLLOW == 0;
    Some(match nr {
        libc::SYS_stat | libc::SYS_access | libc::SYS_chdir | libc::SYS_statfs => (None, 0, true),
        libc::SYS_getxattr | libc::SYS_listxattr => (None, 0, true),
        libc::SYS_lstat | libc::SYS_readlink | libc::SYS_lgetxattr | libc::SYS_llistxattr => (None, 0, false),
        libc::SYS_newfstatat => (Some(0), 1, nofollow(3)),
        libc::SYS_statx => (Some(0), 1, nofollow(2)),
        libc::SYS_faccessat => (Some(0), 1, true),
        libc::SYS_faccessat2 | libc::SYS_execveat => (Some(0), 1, nofollow(3)),
        libc::SYS_readlinkat => (Some(0), 1, false),
        libc::SYS_inotify_add_watch => (None, 1, a[2] as u32 & libc::IN_DONT_FOLLOW == 0),
        _ => return None,
    })
}

/// Performs such a call.
pub fn look(nr: i64, a: [u64; 6], place: &mut Place) -> Result<Answer, i64> {
    match nr {
        libc::SYS_fstat => return of_descriptor(nr, a, a[0] as i32),
        libc::SYS_getcwd => return working_directory(a[0], a[1]),
        libc::SYS_getdents64 | libc::SYS_getdents => return entries(nr, a),
        _ => {}
    }
    let Some((dir_at, path_at, follow)) = named(nr, &a) else { return Ok(Answer::AsItIs) };
    let dir = dir_at.map_or(libc::AT_FDCWD, |at| a[at] as i32);
    let empty = a[path_at] == 0 || load::<u8>(a[path_at]) == 0;
    if empty {
        return match nr {
            libc::SYS_newfstatat | libc::SYS_statx if dir != libc::AT_FDCWD => of_descriptor(nr, a, dir),
            _ => Ok(Answer::AsItIs),
        };
    }
    place.find(dir, given(a[path_at]), follow)?;
    if place.stat.is_none() {
        return Err(ENOENT);
    }
    if let libc::SYS_readlink | libc::SYS_readlinkat = nr {
        return read_link(a, path_at, place);
    }
    let mut b = a;
    if !place.clean {
        b[path_at] = place.ptr();
        if let Some(at) = dir_at {
            b[at] = AT_FDCWD;
        }
    }
    if matches!(nr, libc::SYS_stat | libc::SYS_lstat | libc::SYS_newfstatat | libc::SYS_statx) {
        let result = raw6(nr, b[0], b[1], b[2], b[3], b[4], b[5]);
        if result == 0 {
            correct(nr, &a, place.at.get(), place.ptr())?;
        }
        return Ok(Answer::Done(result));
    }
    if nr == libc::SYS_statfs && place.side == Side::Own {
        // The file system is the one that the program believes to be on.
        let mut seen = Path::new();
        seen.set(&[place.dir()])?;
        seen_as(&mut seen)?;
        return Ok(Answer::Done(raw!(nr, seen.ptr(), a[1])));
    }
    match place.clean {
        true => Ok(Answer::AsItIs),
        false => Ok(Answer::Call(nr, b)),
    }
}

/// Where such a call puts what it finds.
fn result_at(nr: i64, a: &[u64; 6]) -> u64 {
    match nr {
        libc::SYS_statx => a[4],
        libc::SYS_newfstatat => a[2],
        _ => a[1],
    }
}

/// stat of an open file.
fn of_descriptor(nr: i64, a: [u64; 6], fd: i32) -> Result<Answer, i64> {
    let result = raw6(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
    if result != 0 {
        return Ok(Answer::Done(result));
    }
    let stat = Stat::of_fd(fd)?;
    let own = stat.id().0 == arena().files.dev;
    let shadowed = stat.is_dir() && arena().files.shadow_of(stat.id().0, stat.id().1).is_some();
    if own || shadowed {
        let mut path = Path::new();
        path.of_descriptor(fd)?;
        if let Some(row) = layer::is_listing(path.get()) {
            // A listing stands for the directory itself.
            layer::leave_listing(&mut path)?;
            let result = whole(nr, &a, &path);
            if result < 0 {
                return Err(result);
            }
            shadowed_directory(nr, result_at(nr, &a), row)?;
            return Ok(Answer::Done(0));
        }
        correct(nr, &a, path.get(), path.ptr())?;
    }
    Ok(Answer::Done(0))
}

/// The same call for a name.
fn whole(nr: i64, a: &[u64; 6], path: &Path) -> i64 {
    match nr {
        libc::SYS_statx => raw!(nr, AT_FDCWD, path.ptr(), libc::AT_SYMLINK_NOFOLLOW, a[3], a[4]),
        _ => raw!(libc::SYS_lstat, path.ptr(), result_at(nr, a)),
    }
}

/// Puts the numbers that the program knows into the result of a call that has succeeded, for what is named `path`.
fn correct(nr: i64, a: &[u64; 6], path: &[u8], ptr: u64) -> Result<(), i64> {
    let to = result_at(nr, a);
    if layer::is_own(path) {
        let (dev, ino) = if nr == libc::SYS_statx {
            (device_number(load(to + 0x88), load(to + 0x8c)), load::<u64>(to + 0x20))
        } else {
            (load::<u64>(to), load::<u64>(to + 8))
        };
        let (dev, ino) = numbers(path, (dev, ino));
        if nr == libc::SYS_statx {
            store(to + 0x20, ino);
            store(to + 0x88, ((dev >> 8 & 0xfff) | (dev >> 32 & !0xfff)) as u32);
            store(to + 0x8c, ((dev & 0xff) | (dev >> 12 & !0xff)) as u32);
        } else {
            store(to, dev);
            store(to + 8, ino);
        }
        return Ok(());
    }
    let stat = Stat::of(ptr);
    if stat.is_ok_and(|stat| stat.is_dir()) {
        if let Some(row) = row_of(ptr)? {
            shadowed_directory(nr, to, row)?;
        }
    }
    Ok(())
}

fn device_number(major: u32, minor: u32) -> u64 {
    let (major, minor) = (u64::from(major), u64::from(minor));
    (major & 0xfff) << 8 | (major & !0xfff) << 32 | minor & 0xff | (minor & !0xff) << 12
}

/// A directory in which something was changed: the time of that, and a number of links that says nothing.
fn shadowed_directory(nr: i64, to: u64, row: u32) -> Result<(), i64> {
    let mut own = Path::new();
    shadow_path(&mut own, row, b"")?;
    let stat = Stat::of(own.ptr())?;
    let (modified, changed) = ([stat.0[11], stat.0[12]], [stat.0[13], stat.0[14]]);
    if nr == libc::SYS_statx {
        store(to + 0x10, 1u32);
        store(to + 0x70, modified[0]);
        store(to + 0x78, modified[1] as u32);
        store(to + 0x60, changed[0]);
        store(to + 0x68, changed[1] as u32);
    } else {
        store(to + 16, 1u64);
        store(to + 88, [modified, changed]);
    }
    Ok(())
}

/// getcwd.
pub(super) fn working_directory(buffer: u64, size: u64) -> Result<Answer, i64> {
    let mut path = Path::new();
    path.of_cwd()?;
    layer::leave_listing(&mut path)?;
    seen_as(&mut path)?;
    let len = path.get().len() + 1;
    if size < len as u64 {
        return Err(ERANGE);
    }
    put(buffer, path.get());
    store(buffer + len as u64 - 1, 0u8);
    Ok(Answer::Done(len as i64))
}

fn put(to: u64, bytes: &[u8]) {
    copy_out(to, bytes);
}

/// readlink and readlinkat: links of /proc tell names as the program knows them.
fn read_link(a: [u64; 6], path_at: usize, place: &mut Place) -> Result<Answer, i64> {
    let Some(stat) = place.stat else { return Err(ENOENT) };
    if stat.kind() != libc::S_IFLNK {
        return Err(EINVAL);
    }
    let mut text = Path::new();
    text.of_link(place.ptr())?;
    if place.at.get().starts_with(b"/proc/") {
        layer::leave_listing(&mut text)?;
        seen_as(&mut text)?;
    } else if place.clean {
        return Ok(Answer::AsItIs);
    }
    let (to, size) = (a[path_at + 1], a[path_at + 2] as i64);
    if size as i32 <= 0 {
        return Err(EINVAL);
    }
    let len = text.get().len().min(size as usize);
    put(to, &text.get()[..len]);
    Ok(Answer::Done(len as i64))
}

/// getdents and getdents64. At its beginning, a real directory that has a shadow is exchanged for a listing of both.
fn entries(nr: i64, a: [u64; 6]) -> Result<Answer, i64> {
    let fd = a[0] as i32;
    let mut path = Path::new();
    let Ok(stat) = Stat::of_fd(fd) else { return Ok(Answer::AsItIs) };
    let (dev, ino) = stat.id();
    let mut row = arena().files.shadow_of(dev, ino);
    if row.is_none() && stat.is_dir() && dev == arena().files.dev && path.of_descriptor(fd).is_ok() {
        row = layer::is_listing(path.get());
    }
    let Some(row) = row else { return Ok(Answer::AsItIs) };
    if raw!(libc::SYS_lseek, fd, 0, libc::SEEK_CUR) == 0 {
        let list = listing(row)?;
        let flags = if raw!(libc::SYS_fcntl, fd, libc::F_GETFD) > 0 { libc::O_CLOEXEC } else { 0 };
        raw!(libc::SYS_dup3, list, fd, flags);
        raw!(libc::SYS_close, list);
    }
    let n = raw6(nr, a[0], a[1], a[2], 0, 0, 0);
    if n > 0 {
        correct_numbers(row, a[1], n as u64, if nr == libc::SYS_getdents64 { 19 } else { 18 })?;
    }
    Ok(Answer::Done(n))
}

/// The inode numbers in a listing are those of the files.
fn correct_numbers(row: u32, buffer: u64, len: u64, name_at: u64) -> Result<(), i64> {
    let (mut own, mut real) = (Path::new(), Path::new());
    let dir = arena().files.shadows[row].path();
    let mut entry = buffer;
    while entry < buffer + len {
        let name = cstr(entry + name_at, 256);
        shadow_path(&mut own, row, name)?;
        real.set(&[dir])?;
        real.join(name)?;
        let dots = name == b"." || name == b"..";
        let ino = match Stat::of(own.ptr()) {
            Ok(stat) if !dots => Some(numbers(own.get(), stat.id()).1),
            _ => Stat::of(real.ptr()).ok().map(|stat| stat.id().1),
        };
        if let Some(ino) = ino {
            store(entry, ino);
        }
        entry += u64::from(load::<u16>(entry + 16));
    }
    Ok(())
}
