//! Following a path through the real file system and the private layer on top of it, component by component.

use core::cell::UnsafeCell;

use super::layer::{self, is_own, is_whiteout, row_of, watches};
use super::path::{hash, Path, Stat};
use crate::gate::{arena, local};
use crate::sys::errno::*;
use crate::sys::raw;

/// Where something is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// In the private layer.
    Own,
    /// In the real file system.
    Real,
    /// Where the layer does not reach: devices, /proc, /sys, and what has no name.
    Outside,
}

/// What a path leads to.
pub struct Place {
    /// The real name of the object, or of where it would be: in the real directory even if it would be made in the
    /// layer over that.
    pub at: Path,
    /// Where it is; where it does not exist, where its directory is.
    pub side: Side,
    /// What the kernel says of it, if it exists.
    pub stat: Option<Stat>,
    /// The kernel would come to the same without the layer.
    pub clean: bool,
    /// The path ends with a slash, or with something that is a directory in any case.
    pub slash: bool,
    /// The path has a last component that is a name: one can make or remove what it names.
    pub named: bool,
    /// Hashes of the names of the links that were followed, while uses of names are looked at.
    pub links: [u64; LINKS],
    /// How many.
    pub followed: usize,
    rest: Path,
    other: Path,
    found: Result<(), i64>,
    kept: Option<Asked>,
}

/// Directory, path (where it is, and its length), and whether a last link is followed.
type Asked = (i32, usize, usize, bool);

/// Directories of the real file system by a hash of their path, with [`vsrun_model::files::Files::directories_changed`] then.
struct Directories(UnsafeCell<[(u64, u32); DIRECTORIES]>);
// SAFETY: one kernel thread a process; used for a statement at a time.
unsafe impl Sync for Directories {}

const DIRECTORIES: usize = 256;
static KNOWN: Directories = Directories(UnsafeCell::new([(0, 0); DIRECTORIES]));

fn known(path: &[u8]) -> &'static mut (u64, u32) {
    // SAFETY: see `Directories`.
    unsafe { &mut (*KNOWN.0.get())[hash(path) as usize % DIRECTORIES] }
}

/// What is a directory is one until somebody takes a directory away, which is seen while uses of names are looked at; and
/// nothing lies over it.
fn may_know() -> bool {
    arena().files.shadows.len == 0 && watches()
}

const LINKS: usize = 40;

impl Place {
    /// Nowhere.
    pub const fn new() -> Place {
        let (at, rest, other) = (Path::new(), Path::new(), Path::new());
        Place {
            at,
            side: Side::Real,
            stat: None,
            clean: true,
            slash: false,
            named: false,
            links: [0; LINKS],
            followed: 0,
            rest,
            other,
            found: Err(ENOENT),
            kept: None,
        }
    }

    /// The directory: its real name.
    pub fn dir(&self) -> &[u8] {
        let (_, dir) = self.at.split();
        &self.at.get()[..dir]
    }

    /// The last component.
    pub fn name(&self) -> &[u8] {
        let (name, _) = self.at.split();
        &self.at.get()[name..]
    }

    /// Goes where `path` leads from directory `dir`; `follow`: also through a last link. What does not exist in a
    /// directory that does is a place too.
    pub fn find(&mut self, dir: i32, path: &[u8], follow: bool) -> Result<(), i64> {
        let asked = (dir, path.as_ptr() as usize, path.len(), follow);
        if self.kept.take() != Some(asked) {
            self.found = self.walk(dir, path, follow);
        }
        self.found
    }

    /// The next [`Place::find`] finds the same as the last one if it is asked this: the path was followed for the same call, and nobody
    /// else has run since.
    pub fn keep(&mut self, dir: i32, path: &[u8], follow: bool) {
        local().keeps_walk = true;
        self.kept = Some((dir, path.as_ptr() as usize, path.len(), follow));
    }

    /// The next [`Place::find`] looks for itself.
    pub fn forget(&mut self) {
        self.kept = None;
    }

    fn walk(&mut self, dir: i32, path: &[u8], follow: bool) -> Result<(), i64> {
        (self.clean, self.named, self.slash, self.side) = (true, false, false, Side::Real);
        self.followed = 0;
        if path.is_empty() {
            return Err(ENOENT);
        }
        if path.len() >= super::path::MAX {
            return Err(ENAMETOOLONG);
        }
        self.rest.set(&[path])?;
        if is_own(path) {
            // The kernel tells such names to the interpreter of a script.
            layer::seen_as(&mut self.rest)?;
            self.clean = false;
        } else if layer::is_private(path) {
            self.at.set(&[path])?;
            (self.side, self.stat) = (Side::Outside, Stat::of(self.at.ptr()).ok());
            return Ok(());
        }
        if path[0] == b'/' {
            self.at.set(&[b"/"])?;
        } else if dir == libc::AT_FDCWD {
            self.at.of_cwd()?;
        } else {
            if !Stat::of_fd(dir)?.is_dir() {
                return Err(ENOTDIR);
            }
            self.at.of_descriptor(dir)?;
        }
        self.clean &= !is_own(self.at.get());
        layer::leave_listing(&mut self.at)?;
        self.go(follow)
    }

    fn go(&mut self, follow: bool) -> Result<(), i64> {
        loop {
            let from = self.rest.get().iter().take_while(|&&b| b == b'/').count();
            let len = self.rest.get()[from..].iter().take_while(|&&b| b != b'/').count();
            if len == 0 {
                return self.rest_at_directory();
            }
            let last = self.rest.get()[from + len..].iter().all(|&b| b == b'/');
            let slash = last && self.rest.get().len() > from + len;
            let mut name = [0u8; 256];
            if len > 255 {
                return Err(ENAMETOOLONG);
            }
            name[..len].copy_from_slice(&self.rest.get()[from..from + len]);
            let name = &name[..len];
            self.rest.replace_front(from + len, b"")?;
            match name {
                b"." => continue,
                b".." => {
                    self.up()?;
                    continue;
                }
                _ => {}
            }
            if !last && self.enter_known(name)? {
                continue;
            }
            self.step(name)?;
            let Some(stat) = self.stat else {
                if last {
                    (self.named, self.slash) = (true, slash);
                    return Ok(());
                }
                return Err(ENOENT);
            };
            if stat.kind() == libc::S_IFLNK && (!last || follow || slash) {
                if self.followed == LINKS {
                    return Err(ELOOP);
                }
                if watches() {
                    self.other.set(&[self.at.get()])?;
                    layer::seen_as(&mut self.other)?;
                    self.links[self.followed] = hash(self.other.get());
                }
                self.followed += 1;
                if self.through_link()? {
                    continue;
                }
                if !last {
                    return Err(ENOTDIR);
                }
                (self.named, self.slash, self.side) = (false, slash, Side::Outside);
                return Ok(());
            }
            if last {
                if slash && !stat.is_dir() {
                    return Err(ENOTDIR);
                }
                (self.named, self.slash) = (true, slash);
                return Ok(());
            }
            if !stat.is_dir() {
                return Err(ENOTDIR);
            }
            if may_know() {
                *known(self.at.get()) = (hash(self.at.get()), arena().files.directories_changed);
            }
        }
    }

    /// Steps into `name` in the directory `at` without asking the kernel, if that was a directory before and still is.
    fn enter_known(&mut self, name: &[u8]) -> Result<bool, i64> {
        if !may_know() {
            return Ok(false);
        }
        let len = self.at.get().len();
        self.at.join(name)?;
        let path = self.at.get();
        if *known(path) == (hash(path), arena().files.directories_changed) {
            return Ok(true);
        }
        self.at.cut(len);
        Ok(false)
    }

    /// The path ends with a directory that has no name in it: `/`, `.`, `..`.
    fn rest_at_directory(&mut self) -> Result<(), i64> {
        let stat = Stat::of(self.at.ptr())?;
        if !stat.is_dir() {
            return Err(ENOTDIR);
        }
        (self.stat, self.named, self.slash) = (Some(stat), false, true);
        self.side = side_of(self.at.get());
        Ok(())
    }

    /// To the directory above.
    fn up(&mut self) -> Result<(), i64> {
        if !Stat::of(self.at.ptr())?.is_dir() {
            return Err(ENOTDIR);
        }
        let (_, len) = self.at.split();
        self.at.cut(len);
        if is_own(self.at.get()) {
            layer::leave_shadow(&mut self.at)?;
        }
        Ok(())
    }

    /// To what `name` is in the directory `at`. Leaves the directory's name in front of it where there is nothing.
    fn step(&mut self, name: &[u8]) -> Result<(), i64> {
        let own = is_own(self.at.get());
        if self.at.get() == b"/dev" && name == b"shm" {
            layer::shm_directory(&mut self.at)?;
            self.clean = false;
            (self.side, self.stat) = (Side::Outside, Some(Stat::of(self.at.ptr())?));
            return Ok(());
        }
        if !own && arena().files.shadows.len > 0 {
            if let Some(row) = row_of(self.at.ptr())? {
                layer::shadow_path(&mut self.other, row, name)?;
                if let Ok(stat) = Stat::of(self.other.ptr()) {
                    self.clean = false;
                    if is_whiteout(&stat, self.other.ptr()) {
                        (self.side, self.stat) = (Side::Real, None);
                        return self.at.join(name);
                    }
                    (self.side, self.stat) = (Side::Own, Some(stat));
                    return self.at.set(&[self.other.get()]);
                }
            }
        }
        self.at.join(name)?;
        if own {
            self.clean = false;
        }
        self.side = side_of(self.at.get());
        self.stat = match Stat::of(self.at.ptr()) {
            Ok(stat) => Some(stat),
            Err(ENOENT) => None,
            Err(error) => return Err(error),
        };
        Ok(())
    }

    /// Takes the link `at` out of the path and puts its target in. False: a link of /proc to something without a name.
    fn through_link(&mut self) -> Result<bool, i64> {
        self.other.of_link(self.at.ptr())?;
        if self.at.get().starts_with(b"/proc/") && !self.names_its_target()? {
            return Ok(false);
        }
        self.rest.replace_front(0, self.other.get())?;
        if self.other.get().first() == Some(&b'/') {
            self.at.set(&[b"/"])?;
            // What a descriptor or a working directory refers to is told by its place in the layer.
            if is_own(self.other.get()) {
                self.enter_own()?;
            }
        } else {
            let (_, len) = self.at.split();
            self.at.cut(len);
            if is_own(self.at.get()) {
                layer::leave_shadow(&mut self.at)?;
            }
        }
        Ok(true)
    }

    /// Links of /proc are not texts: what they lead to may have another name now, or none.
    fn names_its_target(&mut self) -> Result<bool, i64> {
        if self.other.get().first() != Some(&b'/') {
            // "self" and the like are texts; "pipe:[1]" has no name.
            return Ok(!self.other.get().contains(&b':'));
        }
        let (mut link, mut name) = (Stat::default(), Stat::default());
        let a = raw!(libc::SYS_stat, self.at.ptr(), link.0.as_mut_ptr());
        let b = raw!(libc::SYS_stat, self.other.ptr(), name.0.as_mut_ptr());
        Ok(a == 0 && b == 0 && link.id() == name.id())
    }

    /// The rest begins with a name in the layer: that much of it is `at` already.
    fn enter_own(&mut self) -> Result<(), i64> {
        self.clean = false;
        let mut row = Path::new();
        row.set(&[self.other.get()])?;
        layer::seen_as(&mut row)?;
        let len = self.other.get().len();
        self.rest.replace_front(len, row.get())
    }

    /// A pointer to the name for a call that is to reach the object, links included.
    pub fn ptr(&self) -> u64 {
        self.at.ptr()
    }
}

fn side_of(path: &[u8]) -> Side {
    match () {
        _ if is_own(path) => Side::Own,
        _ if layer::is_outside(path) => Side::Outside,
        _ => Side::Real,
    }
}
