//! The private layer: what is where in it, and what the program knows it as.
//!
//! NOTE [Layer] The directory `files` beside the shim library holds one directory `N` for each shadow: in it is what
//! was made or changed in the real directory that the arena's table names, and whiteouts (links to a text that is no
//! path) for what was taken away. What is below a directory that the program made lies there as it is. `lN.K` is a
//! listing of the directory with shadow K: a directory with an entry of the right type for each entry to be seen.

use super::path::{Path, Stat};
use crate::gate::{arena, local, machine, world, Phase};
use crate::sys::{decimal, raw};

pub(super) const WHITEOUT: &[u8] = b"\x01whiteout";
/// In numbers of new files, so that they are not those of real ones.
const NEW: u64 = 1 << 48;

/// A file with this number, as the program sees it, was made in the layer.
pub fn is_made(ino: u64) -> bool {
    ino & NEW != 0
}

pub(super) fn private() -> &'static [u8] {
    let path = &arena().control.shim_path;
    let end = path.iter().position(|&b| b == 0).unwrap_or(path.len());
    &path[..path[..end].iter().rposition(|&b| b == b'/').unwrap_or(0)]
}

/// What comes after "DIR/files/".
fn inside(path: &[u8]) -> Option<&[u8]> {
    path.strip_prefix(private())?.strip_prefix(b"/files/")
}

/// It lies in the layer.
pub fn is_own(path: &[u8]) -> bool {
    inside(path).is_some()
}

/// It lies in vsrun's private directory.
pub fn is_private(path: &[u8]) -> bool {
    path.starts_with(private())
}

/// The layer does not reach there: nothing in it is a file that lasts. Of /dev it has what is made and taken away; the devices
/// that are there stay what they are.
pub fn is_outside(path: &[u8]) -> bool {
    const TOPS: [&[u8]; 7] =
        [b"/proc", b"/sys", b"/dev/shm", b"/dev/pts", b"/dev/fd", b"/dev/mqueue", b"/dev/hugepages"];
    let below = |top: &&[u8]| path.strip_prefix(*top).is_some_and(|rest| rest.is_empty() || rest[0] == b'/');
    TOPS.iter().any(below) || is_private(path)
}

/// Becomes the directory that stands for /dev/shm.
pub fn shm_directory(path: &mut Path) -> Result<(), i64> {
    machine().use_shm();
    path.set(&[private(), b"/shm"])
}

/// Shadow and rest of a name in the layer; true: it is in a listing.
pub(super) fn parse(path: &[u8]) -> Option<(u32, &[u8], bool)> {
    let rest = inside(path)?;
    let len = rest.iter().position(|&b| b == b'/').unwrap_or(rest.len());
    let (head, tail) = rest.split_at(len);
    let number = |digits: &[u8]| digits.iter().fold(0u32, |n, d| n.wrapping_mul(10).wrapping_add(u32::from(d - b'0')));
    match head.strip_prefix(b"l") {
        Some(listing) => {
            let dot = listing.iter().position(|&b| b == b'.')?;
            Some((number(&listing[dot + 1..]), tail, true))
        }
        None => Some((number(head), tail, false)),
    }
}

pub(super) fn row_path(row: u32) -> &'static [u8] {
    arena().files.shadows.get(row).map_or(b"/".as_slice(), |s| s.path())
}

/// A name in the layer becomes what the program knows it as; others stay.
pub fn seen_as(path: &mut Path) -> Result<(), i64> {
    if let Some((row, rest, _)) = parse(path.get()) {
        let len = path.get().len() - rest.len();
        let joined = if row_path(row) == b"/" && !rest.is_empty() { b"".as_slice() } else { row_path(row) };
        return path.replace_front(len, joined);
    }
    let shm = private().len() + 4;
    let below = path.get().strip_prefix(private()).and_then(|rest| rest.strip_prefix(b"/shm"));
    if below.is_some_and(|rest| rest.is_empty() || rest[0] == b'/') {
        return path.replace_front(shm, b"/dev/shm");
    }
    Ok(())
}

/// The real directory instead of its shadow, or `/dev` above the one for /dev/shm.
pub fn leave_shadow(path: &mut Path) -> Result<(), i64> {
    match parse(path.get()) {
        Some((row, b"", _)) => path.set(&[row_path(row)]),
        _ if path.get() == private() => path.set(&[b"/dev"]),
        _ => Ok(()),
    }
}

/// The real directory instead of a listing of it.
pub fn leave_listing(path: &mut Path) -> Result<(), i64> {
    match parse(path.get()) {
        Some((row, b"", true)) => path.set(&[row_path(row)]),
        _ => Ok(()),
    }
}

/// The shadow of the real directory with that name.
pub fn row_of(dir: u64) -> Result<Option<u32>, i64> {
    let (dev, ino) = Stat::of(dir)?.id();
    Ok(arena().files.shadow_of(dev, ino))
}

/// The device that things in a directory of that name are on, as the program sees it.
pub fn device(dir: &[u8], ptr: u64) -> Option<u64> {
    match parse(dir) {
        Some((row, ..)) => arena().files.shadows.get(row).map(|s| s.dev),
        None => Stat::of(ptr).ok().map(|s| s.id().0),
    }
}

/// Becomes the name of `name` in shadow `row`.
pub fn shadow_path(path: &mut Path, row: u32, name: &[u8]) -> Result<(), i64> {
    path.set(&[private(), b"/files/", &decimal(row)])?;
    if name.is_empty() {
        return Ok(());
    }
    path.join(name)
}

/// It stands for nothing.
pub fn is_whiteout(stat: &Stat, path: u64) -> bool {
    let mut text = [0u8; WHITEOUT.len()];
    stat.kind() == libc::S_IFLNK
        && stat.size() == WHITEOUT.len() as u64
        && raw!(libc::SYS_readlink, path, text.as_mut_ptr(), text.len()) == WHITEOUT.len() as i64
        && text == WHITEOUT
}

/// The numbers that the program sees of a file in the layer, whose name there is `path`.
pub fn numbers(path: &[u8], (dev, ino): (u64, u64)) -> (u64, u64) {
    if let Some(copied) = arena().files.copies.as_slice().iter().find(|c| c.own == ino) {
        return (copied.dev, copied.ino);
    }
    match parse(path) {
        Some((row, ..)) => (arena().files.shadows.get(row).map_or(dev, |s| s.dev), ino | NEW),
        None => (dev, ino),
    }
}

/// True if `path` is a listing.
pub fn is_listing(path: &[u8]) -> Option<u32> {
    parse(path).filter(|p| p.2 && p.1.is_empty()).map(|p| p.0)
}

/// Uses of files are looked at: several threads have existed.
pub(super) fn watches() -> bool {
    world().concurrent && local().phase != Phase::BeforeRoot && local().phase != Phase::Off
}

/// The numbers of a file as the program knows it; `None`: it is no file of the program's.
pub(super) fn file(stat: &Stat) -> Option<(u64, u64)> {
    let (dev, ino) = stat.id();
    let own = dev == arena().files.dev;
    // What collects the program's output has no name and is in no layer; nor has a memfd.
    if stat.kind() != libc::S_IFREG || stat.links() == 0 && !own {
        return None;
    }
    let copied = arena().files.copies.as_slice().iter().find(|c| own && c.own == ino);
    let id = copied.map_or((dev, ino), |c| (c.dev, c.ino));
    if stat.links() > 0 && arena().files.used_files.len > 0 {
        machine().file_has_name(id);
    }
    Some(id)
}
