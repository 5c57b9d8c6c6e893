//! Finds the shared libraries of a program the way glibc's loader does, to say before the start what is missing.
//! It says so only when it is certain: a loader, variable or path token that we do not know ends the search.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::elf::{Dynamic, ElfFile};
use super::ldcache::LdCache;

const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";
const TRUSTED: [&str; 6] =
    ["/lib64", "/usr/lib64", "/lib", "/usr/lib", "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"];
/// What `$LIB` may stand for; which one depends on the distribution.
const LIB: [&str; 3] = ["lib64", "lib/x86_64-linux-gnu", "lib"];
/// Subdirectories with variants for newer processors: a library that only exists there still counts as found.
const VARIANTS: [&str; 8] = [
    "",
    "glibc-hwcaps/x86-64-v2",
    "glibc-hwcaps/x86-64-v3",
    "glibc-hwcaps/x86-64-v4",
    "tls",
    "tls/x86_64",
    "haswell",
    "x86_64",
];

/// What of the environment the loader listens to.
pub(super) struct LoaderEnv {
    pub library_path: Option<OsString>,
    /// `LD_PRELOAD` or `LD_AUDIT` is set: libraries may come from there.
    pub preload: bool,
}

impl LoaderEnv {
    /// That of this process.
    pub fn inherited() -> LoaderEnv {
        let set = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty());
        LoaderEnv { library_path: std::env::var_os("LD_LIBRARY_PATH"), preload: set("LD_PRELOAD") || set("LD_AUDIT") }
    }
}

/// A library that is certainly not there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Missing {
    pub library: String,
    pub needed_by: PathBuf,
}

/// A loaded object and where the libraries it needs are searched because of it.
struct Object {
    path: PathBuf,
    dynamic: Dynamic,
    /// RPATH of the objects that led here, its own first; it counts unless the object has a RUNPATH.
    rpath: Vec<PathBuf>,
}

struct Search<'a> {
    env: &'a LoaderEnv,
    cwd: &'a Path,
    cache: LdCache,
    seen: BTreeSet<String>,
    queue: Vec<Object>,
    missing: Vec<Missing>,
    /// Something that we cannot follow was met.
    uncertain: bool,
}

/// The first library that `program` needs, directly or not, and that is certainly missing.
pub(super) fn missing(program: &Path, elf: &ElfFile, loader: &Path, cwd: &Path, env: &LoaderEnv) -> Option<Missing> {
    let standard = Path::new(LOADER).canonicalize().ok()?;
    if env.preload || loader.canonicalize().ok()? != standard {
        return None;
    }
    let Search { seen, missing, uncertain, .. } = Search::of(program, elf, cwd, env);
    missing.into_iter().find(|m| !uncertain && !seen.contains(&m.library))
}

/// The loader of the program or library at `path`, and the libraries that it needs, directly or not, as far as they are found: by the names
/// under which the loader opens them. Nothing, if it is neither.
pub fn needed(path: &Path, cwd: &Path) -> Vec<PathBuf> {
    let Ok(elf) = ElfFile::open(path) else { return Vec::new() };
    let loader = elf.interpreter().ok().flatten().map(|loader| PathBuf::from(OsString::from_vec(loader)));
    let env = LoaderEnv::inherited();
    let search = Search::of(path, &elf, cwd, &env);
    loader.into_iter().chain(search.queue.into_iter().skip(1).map(|object| object.path)).collect()
}

impl<'a> Search<'a> {
    /// All that a program needs, found or not.
    fn of(program: &Path, elf: &ElfFile, cwd: &'a Path, env: &'a LoaderEnv) -> Search<'a> {
        let mut search = Search {
            env,
            cwd,
            cache: LdCache::system(),
            seen: BTreeSet::new(),
            queue: Vec::new(),
            missing: Vec::new(),
            uncertain: false,
        };
        search.push(program.to_path_buf(), elf, &[]);
        // Breadth first, as the loader does; `seen` keeps it finite.
        let mut next = 0;
        while next < search.queue.len() {
            search.visit(next);
            next += 1;
        }
        search
    }

    /// Notes an object whose own needs are to be visited.
    fn push(&mut self, path: PathBuf, elf: &ElfFile, inherited: &[PathBuf]) {
        let dynamic = match elf.dynamic() {
            Ok(dynamic) => dynamic.unwrap_or_default(),
            Err(_) => {
                self.uncertain = true;
                Dynamic::default()
            }
        };
        let mut rpath = match (&dynamic.rpath, &dynamic.runpath) {
            (Some(list), None) => self.expand(list.as_ref(), &path),
            _ => Vec::new(),
        };
        rpath.extend_from_slice(inherited);
        self.seen.extend(dynamic.soname.clone());
        self.queue.push(Object { path, dynamic, rpath });
    }

    fn visit(&mut self, index: usize) {
        for library in self.queue[index].dynamic.needed.clone() {
            if self.seen.contains(&library) {
                continue;
            }
            match self.find(&library, index) {
                Some((path, elf)) => {
                    self.seen.insert(library);
                    let inherited = self.queue[index].rpath.clone();
                    self.push(path, &elf, &inherited);
                }
                None => self.missing.push(Missing { library, needed_by: self.queue[index].path.clone() }),
            }
        }
    }

    fn find(&mut self, library: &str, index: usize) -> Option<(PathBuf, ElfFile)> {
        if library.contains('/') {
            let path = self.queue[index].path.clone();
            return self.expand(OsStr::new(library), &path).into_iter().find_map(open);
        }
        let in_directories = self.directories(index).into_iter().flat_map(|d| variants(&d, library)).find_map(open);
        in_directories
            .or_else(|| self.cache.find(library).map(Path::to_path_buf).find_map(open))
            .or_else(|| TRUSTED.iter().flat_map(|d| variants(Path::new(d), library)).find_map(open))
    }

    /// The directories to search before the cache: RPATH, LD_LIBRARY_PATH, RUNPATH.
    fn directories(&mut self, index: usize) -> Vec<PathBuf> {
        let object = &self.queue[index];
        let (path, runpath) = (object.path.clone(), object.dynamic.runpath.clone());
        let mut all = if runpath.is_none() { object.rpath.clone() } else { Vec::new() };
        if let Some(list) = &self.env.library_path {
            all.extend(self.expand(list, &path));
        }
        if let Some(list) = runpath {
            all.extend(self.expand(list.as_ref(), &path));
        }
        all
    }

    /// The paths in a list; an empty one is the current directory. `$ORIGIN` is the directory of `object`.
    fn expand(&mut self, list: &OsStr, object: &Path) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for entry in list.as_bytes().split(|b| matches!(b, b':' | b';')) {
            let entry = String::from_utf8_lossy(entry).replace("${", "$").replace('}', "");
            self.uncertain |= entry.contains("$PLATFORM") || entry.contains('\u{fffd}');
            let origin = object.parent().unwrap_or(Path::new("/")).to_string_lossy();
            let entry = entry.replace("$ORIGIN", &origin);
            let forms: Vec<String> = if entry.contains("$LIB") {
                LIB.iter().map(|l| entry.replace("$LIB", l)).collect()
            } else {
                vec![entry]
            };
            paths.extend(forms.into_iter().map(|f| self.cwd.join(f)));
        }
        paths
    }
}

fn variants(directory: &Path, library: &str) -> Vec<PathBuf> {
    VARIANTS.iter().map(|v| directory.join(v).join(library)).collect()
}

/// The loader skips files that are not libraries for this machine.
fn open(path: PathBuf) -> Option<(PathBuf, ElfFile)> {
    if !path.metadata().is_ok_and(|m| m.is_file()) {
        return None;
    }
    let elf = ElfFile::open(&path).ok()?;
    Some((path, elf))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;

    const PLAIN: LoaderEnv = LoaderEnv { library_path: None, preload: false };

    fn check(program: &Path, env: &LoaderEnv) -> Option<String> {
        let elf = ElfFile::open(program).unwrap();
        missing(program, &elf, Path::new(LOADER), Path::new("/"), env).map(|m| m.library)
    }

    /// `libinner.so` is needed by `libouter.so` in lib/, which `prog` needs.
    fn chain(dir: &TempDir, program_flags: &[&str]) -> PathBuf {
        std::fs::create_dir_all(dir.path().join("lib")).unwrap();
        let library = "int f(void){return 1;}";
        dir.compile("lib/libinner.so", "c", library, &["-shared", "-fPIC", "-Wl,-soname,libinner.so"]);
        let outer = "int f(void);int g(void){return f();}";
        dir.compile("lib/libouter.so", "c", outer, &["-shared", "-fPIC", "-Llib", "-linner"]);
        let flags = [&["-Llib", "-louter", "-Wl,-rpath-link,lib"], program_flags].concat();
        dir.compile("prog", "c", "int g(void);int main(void){return g();}", &flags)
    }

    fn runs(program: &Path) -> bool {
        std::process::Command::new(program).output().unwrap().status.code() == Some(1)
    }

    #[test]
    fn no_false_alarm_on_this_machine() {
        let mut checked = 0;
        for entry in std::fs::read_dir("/usr/bin").unwrap().flatten() {
            let Ok(elf) = ElfFile::open(&entry.path()) else { continue };
            if elf.interpreter().is_ok_and(|i| i.is_some()) {
                let path = entry.path().canonicalize().unwrap();
                assert_eq!(missing(&path, &elf, Path::new(LOADER), Path::new("/"), &PLAIN), None, "{path:?}");
                checked += 1;
            }
        }
        assert!(checked > 10);
    }

    #[test]
    fn rpath_reaches_the_libraries_of_libraries_and_runpath_does_not() {
        let dir = TempDir::new();
        let program = chain(&dir, &["-Wl,-rpath,$ORIGIN/lib", "-Wl,--disable-new-dtags"]);
        assert_eq!(check(&program, &PLAIN), None);
        assert!(runs(&program));
        let program = chain(&dir, &["-Wl,-rpath,$ORIGIN/lib", "-Wl,--enable-new-dtags"]);
        assert_eq!(check(&program, &PLAIN).as_deref(), Some("libinner.so"));
        assert!(!runs(&program));
    }

    #[test]
    fn library_path_and_what_is_uncertain() {
        let dir = TempDir::new();
        let program = chain(&dir, &[]);
        assert_eq!(check(&program, &PLAIN).as_deref(), Some("libouter.so"));
        let path = dir.path().join("lib").into_os_string();
        assert_eq!(check(&program, &LoaderEnv { library_path: Some(path), preload: false }), None);
        assert_eq!(check(&program, &LoaderEnv { library_path: None, preload: true }), None);
        let platform = Some(OsString::from("/x/$PLATFORM"));
        assert_eq!(check(&program, &LoaderEnv { library_path: platform, preload: false }), None);
    }

    #[test]
    fn a_library_that_is_no_library_is_missing() {
        let dir = TempDir::new();
        let program = chain(&dir, &["-Wl,-rpath,$ORIGIN/lib", "-Wl,--disable-new-dtags"]);
        dir.file("lib/libinner.so", "text", 0o755);
        assert_eq!(check(&program, &PLAIN).as_deref(), Some("libinner.so"));
        assert!(!runs(&program));
    }
}
