//! Changes of the private layer: shadows of directories, whiteouts, copies, listings.

use vsrun_model::files::Copied;
use vsrun_model::ProcState;

use super::layer::{is_whiteout, parse, private, row_of, row_path, shadow_path, WHITEOUT};
use super::path::{Path, Stat};
use super::walk::{Place, Side};
use crate::gate::{arena, end, local, machine, world, Phase};
use crate::sys::errno::*;
use crate::sys::{cstr, decimal, load, raw};

fn no_room(what: &[u8]) -> ! {
    end::no_room(&[b"there is no room for the private copy of ", what, b"; --files real does without"])
}

/// Whether the program may change what is in a real directory: the kernel's error if not.
pub fn may_change(dir: u64) -> Result<(), i64> {
    match access(dir, libc::W_OK | libc::X_OK) {
        0 => Ok(()),
        error => Err(error),
    }
}

/// What the kernel says of access with the effective identity.
pub fn access(path: u64, how: i32) -> i64 {
    raw!(libc::SYS_faccessat2, libc::AT_FDCWD, path, how, libc::AT_EACCESS)
}

/// The shadow of the directory of a place in the real file system, made if there is none.
pub fn shadow(place: &mut Place) -> Result<u32, i64> {
    let mut dir = Path::new();
    dir.set(&[place.dir()])?;
    if local().phase == Phase::BeforeRoot {
        end::unsupported(&[b"before main the program changes ", place.at.get(), b"; --files real lets it"]);
    }
    let stat = Stat::of(dir.ptr())?;
    let (dev, ino) = stat.id();
    if let Some(row) = arena().files.shadow_of(dev, ino) {
        return Ok(row);
    }
    let Some(row) = machine().shadow_make(dev, ino, dir.get()) else {
        end::no_room(&[b"files are changed in more directories, or ones with longer names, than vsrun can hold"])
    };
    let mut own = Path::new();
    own.set(&[private(), b"/files"])?;
    // Users of whom the program has become another one make theirs beside it; see NOTE [Users] of the runtime. Whether they may
    // change the directory that it stands for, `may_change` asks.
    if raw!(libc::SYS_mkdir, own.ptr(), 0o700) == 0 {
        raw!(libc::SYS_chmod, own.ptr(), 0o777);
    }
    shadow_path(&mut own, row, b"")?;
    let made = raw!(libc::SYS_mkdir, own.ptr(), 0o700);
    if made < 0 {
        no_room(dir.get());
    }
    if stat.uid() as i64 != raw!(libc::SYS_geteuid) || stat.gid() as i64 != raw!(libc::SYS_getegid) {
        // What is made in a directory with the set-group-id bit gets its group.
        raw!(libc::SYS_chown, own.ptr(), -1i64, stat.gid());
    }
    raw!(libc::SYS_chmod, own.ptr(), stat.mode() & libc::S_ISGID | 0o777);
    machine().layer_is_on(Stat::of(own.ptr())?.id().0);
    Ok(row)
}

/// Becomes the name in the layer for what is at `place`, or would be; a whiteout there is taken away.
pub fn target(place: &mut Place, path: &mut Path) -> Result<(), i64> {
    if place.side != Side::Real {
        return path.set(&[place.at.get()]);
    }
    path.set(&[place.dir()])?;
    may_change(path.ptr())?;
    let row = shadow(place)?;
    shadow_path(path, row, place.name())?;
    if Stat::of(path.ptr()).is_ok_and(|stat| is_whiteout(&stat, path.ptr())) {
        raw!(libc::SYS_unlink, path.ptr());
    }
    Ok(())
}

/// What was to be made at `place`, where nothing is to be seen, could not be: what was hidden stays so.
pub fn give_up(place: &mut Place) -> Result<(), i64> {
    match (place.side, place.stat) {
        (Side::Real, None) => hide(place),
        _ => Ok(()),
    }
}

/// What was at `place` is gone: if the real directory has something of that name, it is hidden.
pub fn hide(place: &mut Place) -> Result<(), i64> {
    let mut real = Path::new();
    let row = match parse(place.at.get()) {
        Some((row, rest, _)) => {
            if rest.iter().filter(|&&b| b == b'/').count() != 1 {
                return Ok(());
            }
            real.set(&[row_path(row)])?;
            real.join(&rest[1..])?;
            row
        }
        None => {
            real.set(&[place.at.get()])?;
            shadow(place)?
        }
    };
    if Stat::of(real.ptr()).is_err() {
        return Ok(());
    }
    let mut own = Path::new();
    shadow_path(&mut own, row, place.name())?;
    let mut text = [0u8; WHITEOUT.len() + 1];
    text[..WHITEOUT.len()].copy_from_slice(WHITEOUT);
    match raw!(libc::SYS_symlink, text.as_ptr(), own.ptr()) {
        0 | EEXIST => Ok(()),
        _ => no_room(place.at.get()),
    }
}

/// Copies a real file or link into the layer, so that it can be changed; `data`: with its content. The place is the
/// copy's then.
pub fn copy(place: &mut Place, data: bool) -> Result<(), i64> {
    let Some(stat) = place.stat else { return Err(ENOENT) };
    if place.side != Side::Real {
        return Ok(());
    }
    let refuse = |why: &[u8]| -> ! {
        end::unsupported(&[
            b"a private copy of ",
            place.at.get(),
            b" cannot be made: ",
            why,
            b"; --files real does without",
        ])
    };
    let regular = stat.kind() == libc::S_IFREG;
    match stat.kind() {
        libc::S_IFREG if stat.links() > 1 => refuse(b"it has other names (hard links)"),
        libc::S_IFREG | libc::S_IFLNK => {}
        libc::S_IFDIR => refuse(b"it is a directory that was there before"),
        _ => refuse(b"it is neither a file nor a symbolic link"),
    }
    if regular && is_open_elsewhere(stat.id()) {
        refuse(b"it is open or mapped for reading already, and what is written would not be seen there");
    }
    let mut own = Path::new();
    let row = shadow(place)?;
    shadow_path(&mut own, row, place.name())?;
    if regular {
        copy_content(place, &own, if data { stat.size() } else { 0 });
    } else {
        let mut text = Path::new();
        text.of_link(place.at.ptr())?;
        if raw!(libc::SYS_symlink, text.ptr(), own.ptr()) < 0 {
            no_room(place.at.get());
        }
    }
    let nofollow = libc::AT_SYMLINK_NOFOLLOW;
    let mine = Stat::of(own.ptr())?;
    if mine.uid() != stat.uid() || mine.gid() != stat.gid() {
        let result = raw!(libc::SYS_fchownat, libc::AT_FDCWD, own.ptr(), stat.uid(), stat.gid(), nofollow);
        if result < 0 {
            end::unsupported(&[b"a private copy of ", place.at.get(), b" cannot be made: it belongs to somebody else"]);
        }
    }
    if regular {
        raw!(libc::SYS_chmod, own.ptr(), stat.mode() & 0o7777);
    }
    let times = stat.times();
    raw!(libc::SYS_utimensat, libc::AT_FDCWD, own.ptr(), times.as_ptr(), nofollow);
    let (dev, ino) = stat.id();
    if !machine().note_copy(Copied { own: mine.id().1, dev, ino }) {
        end::no_room(&[b"the program changes more files than vsrun can hold"]);
    }
    place.stat = Some(Stat::of(own.ptr())?);
    (place.side, place.clean) = (Side::Own, false);
    place.at.set(&[own.get()])
}

fn copy_content(place: &Place, own: &Path, size: u64) {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
    let to = raw!(libc::SYS_open, own.ptr(), flags, 0o600);
    if to < 0 {
        no_room(place.at.get());
    }
    if size > 0 {
        let from = raw!(libc::SYS_open, place.at.ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if from < 0 {
            end::unsupported(&[b"a private copy of ", place.at.get(), b" cannot be made: it may not be read"]);
        }
        let mut done = raw!(libc::SYS_ftruncate, to, size) == 0;
        let mut at = 0u64;
        // Holes stay holes.
        while done && at < size {
            let data = raw!(libc::SYS_lseek, from, at, libc::SEEK_DATA);
            if data < 0 {
                break;
            }
            let hole = raw!(libc::SYS_lseek, from, data, libc::SEEK_HOLE);
            let mut offset = data;
            raw!(libc::SYS_lseek, to, data, libc::SEEK_SET);
            while done && offset < hole {
                done = raw!(libc::SYS_sendfile, to, from, &mut offset as *mut i64, hole - offset) > 0;
            }
            at = hole as u64;
        }
        raw!(libc::SYS_close, from);
        if !done {
            no_room(place.at.get());
        }
    }
    raw!(libc::SYS_close, to);
}

/// A process of the world has the real file open, or mapped shared, or a message may carry a descriptor of it.
fn is_open_elsewhere(id: (u64, u64)) -> bool {
    if world().files_under_way() {
        return true;
    }
    let regions = arena().regions.as_slice();
    if regions.iter().any(|r| r.dev == id.0 + 1 && r.ino == id.1) {
        return true;
    }
    world()
        .procs
        .as_slice()
        .iter()
        .any(|p| p.state == ProcState::LIVE && p.own.real_pid > 0 && has_open(p.own.real_pid, id))
}

fn has_open(pid: i32, id: (u64, u64)) -> bool {
    let mut path = Path::new();
    if path.set(&[b"/proc/", &decimal(pid), b"/fd"]).is_err() {
        return false;
    }
    let mut found = false;
    each_entry(&path, |name, _| {
        let len = path.get().len();
        let mut stat = Stat::default();
        let joined = path_with(&path, name);
        if len > 0 && raw!(libc::SYS_stat, joined.as_ptr(), stat.0.as_mut_ptr()) == 0 {
            found |= stat.id() == id;
        }
    });
    found
}

/// "PATH/NAME" for short names.
fn path_with(path: &Path, name: &[u8]) -> [u8; 64] {
    let mut joined = [0; 64];
    let len = path.get().len();
    if len + 1 + name.len() < joined.len() {
        joined[..len].copy_from_slice(path.get());
        joined[len] = b'/';
        joined[len + 1..len + 1 + name.len()].copy_from_slice(name);
    }
    joined
}

/// Calls `f` with name and type of each entry of a directory. An error of the kernel if it cannot be read.
pub fn each_entry(dir: &Path, mut f: impl FnMut(&[u8], u8)) -> i64 {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
    let fd = raw!(libc::SYS_open, dir.ptr(), flags);
    if fd < 0 {
        return fd;
    }
    let mut buffer = [0u64; 256];
    let at = buffer.as_mut_ptr() as u64;
    let result = loop {
        let n = raw!(libc::SYS_getdents64, fd, at, 2048);
        if n <= 0 {
            break n;
        }
        let mut entry = at;
        while entry < at + n as u64 {
            let name = cstr(entry + 19, 256);
            if name != b"." && name != b".." {
                f(name, load(entry + 18));
            }
            entry += u64::from(load::<u16>(entry + 16));
        }
    };
    raw!(libc::SYS_close, fd);
    result
}

/// Whether anything is to be seen in the real directory `dir`, which may have a shadow.
pub fn is_empty(dir: &Path) -> Result<bool, i64> {
    let row = row_of(dir.ptr())?;
    let mut empty = true;
    let mut own = Path::new();
    let hidden = |own: &mut Path, name: &[u8]| -> bool {
        let Some(row) = row else { return false };
        shadow_path(own, row, name).is_ok() && Stat::of(own.ptr()).is_ok()
    };
    let error = each_entry(dir, |name, _| empty &= hidden(&mut own, name));
    if error < 0 {
        return Err(error);
    }
    if let Some(row) = row {
        let mut shadow = Path::new();
        shadow_path(&mut shadow, row, b"")?;
        each_entry(&shadow, |name, _| {
            let stat = shadow_path(&mut own, row, name).and_then(|()| Stat::of(own.ptr()));
            empty &= stat.is_ok_and(|stat| is_whiteout(&stat, own.ptr()));
        });
    }
    Ok(empty)
}

/// Makes a listing of the directory with shadow `row`; a descriptor of it.
pub fn listing(row: u32) -> Result<i32, i64> {
    let number = machine().next_listing();
    let mut list = Path::new();
    list.set(&[private(), b"/files/l", &decimal(number), b".", &decimal(row)])?;
    if raw!(libc::SYS_mkdir, list.ptr(), 0o700) < 0 {
        no_room(row_path(row));
    }
    let base = list.get().len();
    let (mut real, mut shadow, mut own) = (Path::new(), Path::new(), Path::new());
    real.set(&[row_path(row)])?;
    shadow_path(&mut shadow, row, b"")?;
    let error = each_entry(&real, |name, kind| {
        let covered = shadow_path(&mut own, row, name).is_ok() && Stat::of(own.ptr()).is_ok();
        if !covered {
            stand_in(&mut list, base, name, kind);
        }
    });
    if error < 0 {
        return Err(error);
    }
    each_entry(&shadow, |name, kind| {
        let stat = shadow_path(&mut own, row, name).and_then(|()| Stat::of(own.ptr()));
        if stat.is_ok_and(|stat| !is_whiteout(&stat, own.ptr())) {
            stand_in(&mut list, base, name, kind);
        }
    });
    list.cut(base);
    let fd = raw!(libc::SYS_open, list.ptr(), libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC);
    if fd < 0 {
        return Err(fd);
    }
    Ok(fd as i32)
}

/// An entry with that name and of that type (DT_*) in a listing.
fn stand_in(list: &mut Path, base: usize, name: &[u8], kind: u8) {
    list.cut(base);
    if list.join(name).is_err() {
        return;
    }
    let path = list.ptr();
    let result = match kind {
        libc::DT_DIR => raw!(libc::SYS_mkdir, path, 0o700),
        libc::DT_LNK => raw!(libc::SYS_symlink, c"-".as_ptr(), path),
        libc::DT_FIFO | libc::DT_SOCK => raw!(libc::SYS_mknod, path, u32::from(kind) << 12 | 0o600, 0),
        // Devices cannot be made by everybody; programs look at the file itself before they use one.
        _ => raw!(libc::SYS_mknod, path, libc::S_IFREG | 0o600, 0),
    };
    if result < 0 {
        no_room(name);
    }
}
