//! Calls that change names and attributes: what they change is in the private layer, or is copied there first.

use vsrun_model::world::TERMINAL;

use super::copies::{access, copy, give_up, hide, is_empty, may_change, target};
use super::layer::{self, device};
use super::path::{given, Path, Stat};
use super::room::{Answer, Room};
use super::walk::{Place, Side};
use crate::gate::{end, model, world};
use crate::sys::errno::*;
use crate::sys::{any_of, raw};

const FS_IOC_SETFLAGS: u64 = 0x4008_6602;
const FS_IOC_FSSETXATTR: u64 = 0x401c_5820;

/// A call that may change the file system, other than open and openat.
pub fn changes(nr: i64) -> bool {
    matches!(
        nr,
        any_of!(
            SYS_creat SYS_unlink SYS_unlinkat SYS_rmdir SYS_mkdir SYS_mkdirat SYS_mknod SYS_mknodat SYS_symlink
            SYS_symlinkat SYS_link SYS_linkat SYS_rename SYS_renameat SYS_renameat2 SYS_ioctl SYS_io_uring_setup
        )
    ) || nr == libc::SYS_openat2
        || attribute(nr, &[0; 6]).is_some()
        || by_descriptor(nr)
        || refused(nr).is_some()
}

/// Calls that would reach past the layer.
fn refused(nr: i64) -> Option<&'static [u8]> {
    Some(match nr {
        libc::SYS_chroot => b"chroot",
        libc::SYS_pivot_root => b"pivot_root",
        libc::SYS_mount => b"mount",
        libc::SYS_umount2 => b"umount",
        libc::SYS_swapon => b"swapon",
        libc::SYS_open_by_handle_at => b"open_by_handle_at",
        _ => return None,
    })
}

/// Calls that change attributes by name: where directory and path are, and whether a last link is followed.
pub(super) fn attribute(nr: i64, a: &[u64; 6]) -> Option<(Option<usize>, usize, bool)> {
    let follow = |at: usize| a[at] as i32 & libc::AT_SYMLINK_NOFOLLOW == 0;
    Some(match nr {
        libc::SYS_truncate | libc::SYS_chmod | libc::SYS_chown | libc::SYS_utime | libc::SYS_utimes => (None, 0, true),
        libc::SYS_setxattr | libc::SYS_removexattr => (None, 0, true),
        libc::SYS_lchown | libc::SYS_lsetxattr | libc::SYS_lremovexattr => (None, 0, false),
        libc::SYS_fchmodat | libc::SYS_futimesat => (Some(0), 1, true),
        libc::SYS_fchmodat2 | libc::SYS_utimensat => (Some(0), 1, follow(3)),
        libc::SYS_fchownat => (Some(0), 1, follow(4)),
        _ => return None,
    })
}

/// Such a call changes permissions or owner.
pub(super) fn sets_access(nr: i64) -> bool {
    matches!(nr, libc::SYS_chmod | libc::SYS_chown | libc::SYS_lchown | libc::SYS_fchownat)
        || matches!(nr, libc::SYS_fchmodat | libc::SYS_fchmodat2)
}

/// Calls that change attributes of an open file.
fn by_descriptor(nr: i64) -> bool {
    matches!(nr, libc::SYS_fchmod | libc::SYS_fchown | libc::SYS_fsetxattr | libc::SYS_fremovexattr)
}

/// Performs such a call.
pub fn change(nr: i64, a: [u64; 6], room: &mut Room) -> Result<Answer, i64> {
    let (one, two) = (&mut room.one, &mut room.two);
    if let Some(name) = refused(nr) {
        end::unsupported(&[name, b": private files do not reach there; --files real lets it through"]);
    }
    if let Some((dir_at, path_at, follow)) = attribute(nr, &a) {
        return change_attribute(nr, a, (dir_at, path_at, follow), one);
    }
    if by_descriptor(nr) {
        return change_open(a[0] as i32, one);
    }
    let at = |fd: u64, path: u64| (fd as i32, path);
    match nr {
        libc::SYS_unlink => unlink(at(libc::AT_FDCWD as u64, a[0]), one),
        libc::SYS_unlinkat if a[2] as i32 & libc::AT_REMOVEDIR != 0 => rmdir(at(a[0], a[1]), one),
        libc::SYS_unlinkat => unlink(at(a[0], a[1]), one),
        libc::SYS_rmdir => rmdir(at(libc::AT_FDCWD as u64, a[0]), one),
        libc::SYS_mkdir => make(at(libc::AT_FDCWD as u64, a[0]), one, true, |p| raw!(libc::SYS_mkdir, p, a[1])),
        libc::SYS_mkdirat => make(at(a[0], a[1]), one, true, |p| raw!(libc::SYS_mkdir, p, a[2])),
        libc::SYS_mknod => make(at(libc::AT_FDCWD as u64, a[0]), one, false, |p| raw!(nr, p, a[1], a[2])),
        libc::SYS_mknodat => make(at(a[0], a[1]), one, false, |p| raw!(libc::SYS_mknod, p, a[2], a[3])),
        libc::SYS_symlink => make(at(libc::AT_FDCWD as u64, a[1]), one, false, |p| raw!(nr, a[0], p)),
        libc::SYS_symlinkat => make(at(a[1], a[2]), one, false, |p| raw!(libc::SYS_symlink, a[0], p)),
        libc::SYS_link => link(at(libc::AT_FDCWD as u64, a[0]), at(libc::AT_FDCWD as u64, a[1]), 0, (one, two)),
        libc::SYS_linkat => link(at(a[0], a[1]), at(a[2], a[3]), a[4] as i32, (one, two)),
        libc::SYS_rename => rename(at(libc::AT_FDCWD as u64, a[0]), at(libc::AT_FDCWD as u64, a[1]), 0, (one, two)),
        libc::SYS_renameat => rename(at(a[0], a[1]), at(a[2], a[3]), 0, (one, two)),
        libc::SYS_renameat2 => rename(at(a[0], a[1]), at(a[2], a[3]), a[4] as u32, (one, two)),
        libc::SYS_ioctl if a[1] == FS_IOC_SETFLAGS || a[1] == FS_IOC_FSSETXATTR => change_open(a[0] as i32, one),
        libc::SYS_ioctl if changes_terminal(a) => {
            model().never_comes(TERMINAL);
            Ok(Answer::AsItIs)
        }
        // As in kernels that do not have them yet: programs do without.
        libc::SYS_openat2 | libc::SYS_io_uring_setup => Err(ENOSYS),
        _ => Ok(Answer::AsItIs),
    }
}

/// Sets what a terminal does, or whom it belongs to, where others might use it.
fn changes_terminal(a: [u64; 6]) -> bool {
    const TCSETS2_TO_TCSETSF2: core::ops::RangeInclusive<u64> = 0x402c_542b..=0x402c_542d;
    let sets = matches!(a[1], 0x5402..=0x5404 | 0x5406..=0x540b | 0x540e | 0x5410 | 0x5412 | 0x5414 | 0x5422 | 0x5423);
    let mut state = [0u8; 64];
    (sets || TCSETS2_TO_TCSETSF2.contains(&a[1]))
        && world().concurrent
        && raw!(libc::SYS_ioctl, a[0], libc::TCGETS, state.as_mut_ptr()) == 0
}

type At = (i32, u64);

/// Finds the place of a name that is to be made, taken away or given another; links are not followed.
fn entry(place: &mut Place, (dir, path): At) -> Result<(), i64> {
    if path == 0 {
        return Err(EFAULT);
    }
    place.find(dir, given(path), false)
}

/// Whether the program may take the name away.
fn may_remove(place: &Place, stat: &Stat) -> Result<(), i64> {
    let mut dir = Path::new();
    dir.set(&[place.dir()])?;
    if place.side == Side::Own {
        layer::leave_shadow(&mut dir)?;
    }
    may_change(dir.ptr())?;
    let of_dir = Stat::of(dir.ptr())?;
    let me = raw!(libc::SYS_geteuid) as u32;
    if of_dir.mode() & libc::S_ISVTX != 0 && me != 0 && me != stat.uid() && me != of_dir.uid() {
        return Err(EPERM);
    }
    Ok(())
}

fn make(name: At, place: &mut Place, directory: bool, mut how: impl FnMut(u64) -> i64) -> Result<Answer, i64> {
    entry(place, name)?;
    if place.stat.is_some() {
        return Err(EEXIST);
    }
    if place.slash && !directory {
        return Err(ENOENT);
    }
    let mut own = Path::new();
    target(place, &mut own)?;
    let result = how(own.ptr());
    if result < 0 {
        give_up(place)?;
    }
    Ok(Answer::Done(result))
}

fn unlink(name: At, place: &mut Place) -> Result<Answer, i64> {
    entry(place, name)?;
    let Some(stat) = place.stat else { return Err(ENOENT) };
    if stat.is_dir() {
        return Err(EISDIR);
    }
    if place.side == Side::Outside {
        return Ok(Answer::Done(raw!(libc::SYS_unlink, place.ptr())));
    }
    may_remove(place, &stat)?;
    take_away(place, libc::SYS_unlink)
}

/// Removes what is in the layer and hides what is below.
fn take_away(place: &mut Place, how: i64) -> Result<Answer, i64> {
    if place.side == Side::Own {
        let result = raw!(how, place.ptr());
        if result < 0 {
            return Err(result);
        }
    }
    hide(place)?;
    Ok(Answer::Done(0))
}

fn rmdir(name: At, place: &mut Place) -> Result<Answer, i64> {
    entry(place, name)?;
    let Some(stat) = place.stat else { return Err(ENOENT) };
    if !stat.is_dir() {
        return Err(ENOTDIR);
    }
    if !place.named {
        return Ok(Answer::AsItIs);
    }
    match place.side {
        Side::Outside => return Ok(Answer::Done(raw!(libc::SYS_rmdir, place.ptr()))),
        Side::Real if !is_empty(&place.at)? => return Err(ENOTEMPTY),
        _ => {}
    }
    may_remove(place, &stat)?;
    take_away(place, libc::SYS_rmdir)
}

/// The device that a place's directory is on, for the program.
fn device_of(place: &Place) -> Option<u64> {
    let mut dir = Path::new();
    dir.set(&[place.dir()]).ok()?;
    device(dir.get(), dir.ptr())
}

fn link(old: At, new: At, flags: i32, (one, two): (&mut Place, &mut Place)) -> Result<Answer, i64> {
    let empty = old.1 != 0 && given(old.1).is_empty();
    let by_descriptor = empty && flags & libc::AT_EMPTY_PATH != 0;
    if !by_descriptor {
        if old.1 == 0 {
            return Err(EFAULT);
        }
        one.find(old.0, given(old.1), flags & libc::AT_SYMLINK_FOLLOW != 0)?;
    }
    entry(two, new)?;
    if two.stat.is_some() {
        return Err(EEXIST);
    }
    if two.slash {
        return Err(ENOENT);
    }
    let mut own = Path::new();
    if by_descriptor {
        target(two, &mut own)?;
        return linked(raw!(libc::SYS_linkat, old.0, old.1, libc::AT_FDCWD, own.ptr(), flags), two);
    }
    let Some(stat) = one.stat else { return Err(ENOENT) };
    if stat.is_dir() {
        return Err(EPERM);
    }
    if one.side != Side::Outside {
        if device_of(one) != device_of(two) {
            return Err(EXDEV);
        }
        copy(one, true)?;
    }
    target(two, &mut own)?;
    // A file without a name yet is reached through its link in /proc.
    let follow = if one.side == Side::Outside { flags & libc::AT_SYMLINK_FOLLOW } else { 0 };
    linked(raw!(libc::SYS_linkat, libc::AT_FDCWD, one.ptr(), libc::AT_FDCWD, own.ptr(), follow), two)
}

fn linked(result: i64, new: &mut Place) -> Result<Answer, i64> {
    if result < 0 {
        give_up(new)?;
    }
    Ok(Answer::Done(result))
}

fn rename(old: At, new: At, flags: u32, (one, two): (&mut Place, &mut Place)) -> Result<Answer, i64> {
    entry(one, old)?;
    entry(two, new)?;
    let Some(stat) = one.stat else { return Err(ENOENT) };
    if !one.named || two.stat.is_some() && !two.named {
        return Err(EBUSY);
    }
    if one.side == Side::Outside || two.side == Side::Outside {
        // Both in /dev/shm, say; from there to elsewhere is another file system.
        let both = one.side == two.side;
        return if both {
            Ok(Answer::Done(raw!(libc::SYS_renameat2, libc::AT_FDCWD, one.ptr(), libc::AT_FDCWD, two.ptr(), flags)))
        } else {
            Err(EXDEV)
        };
    }
    if flags & !libc::RENAME_NOREPLACE != 0 {
        end::unsupported(&[
            b"renameat2 with RENAME_EXCHANGE or RENAME_WHITEOUT on private files; --files real lets it through",
        ]);
    }
    if two.slash && !stat.is_dir() {
        return Err(ENOTDIR);
    }
    if let Some(covered) = two.stat {
        match (stat.is_dir(), covered.is_dir()) {
            _ if flags & libc::RENAME_NOREPLACE != 0 => return Err(EEXIST),
            _ if covered.id() == stat.id() => return Ok(Answer::Done(0)),
            (true, false) => return Err(ENOTDIR),
            (false, true) => return Err(EISDIR),
            (true, true) if two.side == Side::Real && !is_empty(&two.at)? => return Err(ENOTEMPTY),
            _ => {}
        }
        may_remove(two, &covered)?;
    }
    if device_of(one) != device_of(two) {
        return Err(EXDEV);
    }
    may_remove(one, &stat)?;
    if one.side == Side::Real && stat.is_dir() {
        end::unsupported(&[
            b"rename of ",
            one.at.get(),
            b", a directory that was there before; --files real lets it through",
        ]);
    }
    let mut own = Path::new();
    target(two, &mut own)?;
    copy(one, true)?;
    let result = raw!(libc::SYS_rename, one.ptr(), own.ptr());
    if result < 0 {
        give_up(two)?;
        return Err(result);
    }
    hide(one)?;
    Ok(Answer::Done(0))
}

/// Truncates, or changes permissions, owner, times or extended attributes, by name.
fn change_attribute(
    nr: i64,
    a: [u64; 6],
    (dir_at, path_at, follow): (Option<usize>, usize, bool),
    place: &mut Place,
) -> Result<Answer, i64> {
    let dir = dir_at.map_or(libc::AT_FDCWD, |at| a[at] as i32);
    if a[path_at] == 0 || given(a[path_at]).is_empty() {
        // Of the descriptor itself.
        return if dir == libc::AT_FDCWD { Ok(Answer::AsItIs) } else { change_open(dir, place) };
    }
    place.find(dir, given(a[path_at]), follow)?;
    let Some(stat) = place.stat else { return Err(ENOENT) };
    if place.side == Side::Real {
        if !matches!(stat.kind(), libc::S_IFREG | libc::S_IFLNK | libc::S_IFDIR) {
            end::unsupported(&[
                b"attributes of ",
                place.at.get(),
                b", which is no file, are changed; --files real lets it",
            ]);
        }
        may_change_attributes(nr, place, &stat)?;
        copy(place, true)?;
    }
    if place.clean {
        return Ok(Answer::AsItIs);
    }
    let mut b = a;
    b[path_at] = place.ptr();
    if let Some(at) = dir_at {
        b[at] = libc::AT_FDCWD as u64;
    }
    Ok(Answer::Call(nr, b))
}

/// What the kernel would say to changing a real file: the copy belongs to the program, which may do more with it.
fn may_change_attributes(nr: i64, place: &Place, stat: &Stat) -> Result<(), i64> {
    let me = raw!(libc::SYS_geteuid) as u32;
    let by_owner = !matches!(nr, libc::SYS_truncate | libc::SYS_setxattr | libc::SYS_removexattr);
    if by_owner && me != 0 && me != stat.uid() {
        return Err(EPERM);
    }
    if !by_owner {
        return match access(place.ptr(), libc::W_OK) {
            0 => Ok(()),
            error => Err(error),
        };
    }
    Ok(())
}

/// The same for an open file: one in the layer, or one that has no name in the file system.
fn change_open(fd: i32, place: &mut Place) -> Result<Answer, i64> {
    let Ok(stat) = Stat::of_fd(fd) else { return Ok(Answer::AsItIs) };
    let named = matches!(stat.kind(), libc::S_IFREG | libc::S_IFDIR | libc::S_IFLNK);
    place.at.of_descriptor(fd)?;
    let path = place.at.get();
    if named
        && path.first() == Some(&b'/')
        && !layer::is_own(path)
        && !layer::is_outside(path)
        && !path.starts_with(b"/memfd:")
    {
        end::unsupported(&[
            b"attributes of ",
            path,
            b" are changed, which is not open for writing; --files real lets it",
        ]);
    }
    Ok(Answer::AsItIs)
}
