//! What a program needs, found on this machine: files by all the names and links that lead to them, loaders, libraries, interpreters.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use super::manifest::OF_THE_NODE;
use crate::binary::libraries;

/// Links on the way to one file; the kernel follows as many.
const MOST_LINKS: usize = 40;
/// Bytes of a script that may name its interpreter.
const FIRST_LINE: usize = 256;

/// A file that is to be packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Directory {
        mode: u32,
    },
    Link(PathBuf),
    /// With the content of that file.
    File(PathBuf),
}

/// Files that are to be packed, by their names relative to the root.
#[derive(Default)]
pub(super) struct Gathered {
    pub files: BTreeMap<PathBuf, Found>,
    /// Files whose libraries are not looked for yet.
    new: Vec<PathBuf>,
    /// Names that are left out: the pack itself.
    without: Option<PathBuf>,
}

impl Gathered {
    /// Nothing yet; what is in that directory never will be.
    pub fn without(dir: &Path) -> Gathered {
        Gathered { without: Some(dir.to_path_buf()), ..Gathered::default() }
    }

    /// What is at that absolute path, links on the way and directories included; the files in a directory are not. Where it leads to; `None`: there is
    /// nothing, or nothing that is packed: devices, what the kernel tells, sockets.
    pub fn add(&mut self, path: &Path) -> Option<PathBuf> {
        let mut rest: VecDeque<OsString> = parts(path);
        let mut at = PathBuf::from("/");
        let mut links = 0;
        while let Some(name) = rest.pop_front() {
            if name == ".." {
                at.pop();
                continue;
            }
            let next = at.join(&name);
            let within = next.strip_prefix("/").ok()?.to_path_buf();
            if OF_THE_NODE.iter().any(|top| within.starts_with(top))
                || self.without.as_ref().is_some_and(|dir| next.starts_with(dir))
            {
                return None;
            }
            let meta = fs::symlink_metadata(&next).ok()?;
            let mode = meta.permissions().mode() & 0o777;
            if meta.file_type().is_symlink() {
                links += 1;
                if links > MOST_LINKS {
                    return None;
                }
                let to = fs::read_link(&next).ok()?;
                parts(&to).into_iter().rev().for_each(|part| rest.push_front(part));
                self.files.entry(within).or_insert_with(|| Found::Link(relative(&at, &to)));
                if to.is_absolute() {
                    at = PathBuf::from("/");
                }
            } else if meta.is_dir() {
                self.files.entry(within).or_insert(Found::Directory { mode });
                at = next;
            } else if meta.is_file() && rest.is_empty() {
                if self.files.insert(within, Found::File(next.clone())).is_none() {
                    self.new.push(next.clone());
                }
                at = next;
            } else {
                return None;
            }
        }
        Some(at)
    }

    /// What is at that path, and if that is a directory all that is in it.
    ///
    /// # Errors
    /// There is nothing, or a directory cannot be read.
    pub fn add_all(&mut self, path: &Path) -> io::Result<()> {
        let at = self.add(path).ok_or(io::ErrorKind::NotFound)?;
        if at.is_dir() {
            for entry in fs::read_dir(&at)? {
                let entry = entry?;
                match entry.file_type()?.is_dir() {
                    true => self.add_all(&entry.path())?,
                    // A link may lead to nothing.
                    false => drop(self.add(&entry.path())),
                }
            }
        }
        Ok(())
    }

    /// A file of that name, relative to the root, with the content of another one.
    pub fn put(&mut self, name: &str, content: &Path) {
        let name = PathBuf::from(name);
        for dir in name.ancestors().skip(1).filter(|dir| !dir.as_os_str().is_empty()) {
            self.files.entry(dir.to_path_buf()).or_insert(Found::Directory { mode: 0o755 });
        }
        self.files.insert(name, Found::File(content.to_path_buf()));
    }

    /// Loaders, libraries and interpreters of what was added, to the last one.
    pub fn complete(&mut self, cwd: &Path) {
        while let Some(path) = self.new.pop() {
            for needed in libraries::needed(&path, cwd).iter().chain(&interpreter(&path)) {
                self.add(&cwd.join(needed));
            }
        }
    }
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let part = |part: Component| match part {
        Component::Normal(name) => Some(name.to_os_string()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    };
    path.components().filter_map(part).collect()
}

/// A link in directory `at`, which no link leads to, as one that does not leave the root.
fn relative(at: &Path, to: &Path) -> PathBuf {
    let deep = at.components().filter(|part| matches!(part, Component::Normal(_))).count();
    if to.is_absolute() {
        let up = (0..deep).map(|_| OsStr::new(".."));
        let down = to.components().filter(|part| *part != Component::RootDir).map(|part| part.as_os_str());
        let whole: PathBuf = up.chain(down).collect();
        return if whole.as_os_str().is_empty() { PathBuf::from(".") } else { whole };
    }
    // Above the root there is the root.
    let ups = to.components().take_while(|part| *part == Component::ParentDir).count();
    match ups > deep {
        true => to.components().skip(ups - deep).collect(),
        false => to.to_path_buf(),
    }
}

/// What a script is run by.
fn interpreter(path: &Path) -> Option<PathBuf> {
    let mut start = Vec::with_capacity(FIRST_LINE);
    File::open(path).ok()?.take(FIRST_LINE as u64).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let word = line.trim_ascii().split(|byte| byte.is_ascii_whitespace()).next()?;
    Some(PathBuf::from(OsStr::from_bytes(word))).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_do_not_leave_the_root() {
        let of = |at: &str, to: &str| relative(Path::new(at), Path::new(to)).to_string_lossy().into_owned();
        assert_eq!(of("/usr/bin", "/etc/alternatives/x"), "../../etc/alternatives/x");
        assert_eq!(of("/", "/etc"), "etc");
        assert_eq!(of("/", "/"), ".");
        assert_eq!(of("/a", "../../../b"), "../b");
        assert_eq!(of("/a/b", "../c"), "../c");
    }

    #[test]
    fn all_names_on_the_way_are_packed_and_what_is_none_is_not() {
        let dir = TempDir::new();
        let top = dir.path().strip_prefix("/").unwrap().to_path_buf();
        fs::create_dir_all(dir.path().join("real/deep")).unwrap();
        dir.file("real/deep/script", "#!/bin/sh -e\n", 0o700);
        symlink(dir.path().join("real"), dir.path().join("link")).unwrap();
        let mut found = Gathered::default();
        let path = dir.path().join("link/deep/../deep/script");
        assert_eq!(found.add(&path), Some(dir.path().join("real/deep/script")));
        assert!(matches!(found.files.get(&top.join("link")), Some(Found::Link(to)) if !to.is_absolute()));
        assert!(matches!(found.files.get(&top.join("real/deep")), Some(Found::Directory { .. })));
        assert_eq!(found.add(&dir.path().join("none")), None);
        assert_eq!(found.add(Path::new("/dev/null")), None);
        assert_eq!(found.add(Path::new("/proc/self/maps")), None);
        found.complete(dir.path());
        let is = |name: &str| found.files.contains_key(Path::new(name));
        assert!(is("bin") || is("bin/sh"), "the interpreter");
        assert!(is("lib64") || is("lib64/ld-linux-x86-64.so.2"), "its loader");
    }
}
