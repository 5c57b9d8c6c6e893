//! What a run of vsrun sets up around the program: a private directory with the shim, descriptors, a guard that cleans
//! up even if vsrun is killed.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use miniz_oxide::inflate::decompress_to_vec_zlib;
use nix::fcntl::{Flock, FlockArg};
use nix::libc;
use nix::unistd::{geteuid, getppid};

use super::checkpoint::memory_file;
use super::limits;
use crate::base::files::PRIVATE;

/// The shim, built and compressed by build.rs.
static SHIM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libvsrun.so"));

/// The same for `--inject enomem` and where memory is watched: it interposes the functions that allocate and free.
static SHIM_HEAP: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libvsrun-heap.so"));

/// The shim as a library.
fn unpacked(heap: bool) -> io::Result<Vec<u8>> {
    let packed = if heap { SHIM_HEAP } else { SHIM };
    decompress_to_vec_zlib(packed)
        .map_err(|e| io::Error::other(format!("vsrun bug: its library cannot be unpacked: {e}")))
}

/// File name of the shim in the private directory.
pub(super) const SHIM_NAME: &str = "libvsrun.so";
/// First argument of the guard.
pub const GUARD: &str = "__guard";

/// A directory of this run alone, removed at the end, also when vsrun is killed.
///
/// NOTE \[Users\] A program that vsrun runs as root may go on as another user, whose processes need the shim (exec), /dev/shm and the
/// private layer. So everybody may pass through the directory then, but to a place in it whose name only they know: nobody else
/// finds what is open to everybody there.
pub struct PrivateDir {
    path: PathBuf,
    /// The place in it.
    place: PathBuf,
    guard: Option<Child>,
    /// Says that somebody is there, see [`ALIVE`].
    _alive: Option<Flock<File>>,
}

/// A file in the directory, locked by vsrun and by the guard as long as one of them is there. Where both were killed together the
/// directory stays, until the next run of that user sweeps it away.
const ALIVE: &str = "alive";
/// So old a directory is before it is swept: nobody is making it just now.
const SWEPT_AFTER: Duration = Duration::from_secs(60);

/// Directories to try, best first: a place in memory, then temporary ones.
fn places() -> Vec<PathBuf> {
    let tmp = std::env::var_os("TMPDIR").map(PathBuf::from);
    [Some(PathBuf::from("/dev/shm")), tmp, Some(PathBuf::from("/tmp"))].into_iter().flatten().collect()
}

/// A name that is as long in every run: its length decides where the program's stack begins.
fn unique_name(attempt: u32) -> String {
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let mixed = (time.as_nanos() as u64).rotate_left(20) ^ u64::from(std::process::id()) << 8 ^ u64::from(attempt);
    format!("vsrun-{mixed:016x}")
}

/// A name that nobody can guess.
fn secret_name() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

/// Whatever the umask is.
fn make_directory(path: &Path, mode: u32) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(path)?;
    fs::set_permissions(path, Permissions::from_mode(mode))
}

impl PrivateDir {
    /// Looks at the limits, starts the guard, makes the directory and puts the shim into it, the one that sees the `heap` or the usual one.
    pub fn create(heap: bool) -> io::Result<PrivateDir> {
        if let Some(limit) = limits::too_low() {
            return Err(io::Error::other(limit));
        }
        let mut last = io::Error::other("no place for the private directory");
        places().iter().for_each(|place| sweep(place));
        for place in places() {
            for attempt in 0..4 {
                let path = place.join(unique_name(attempt));
                match PrivateDir::create_at(path, heap) {
                    Ok(dir) => return Ok(dir),
                    Err(e) => last = io::Error::new(e.kind(), format!("{}: {e}", place.display())),
                }
            }
        }
        Err(last)
    }

    fn create_at(path: PathBuf, heap: bool) -> io::Result<PrivateDir> {
        // The guard comes first: if vsrun is killed, a directory that nobody guards stays.
        let mut guard = start_guard(&path)?;
        let root = geteuid().is_root();
        let passage = if root { 0o711 } else { 0o700 };
        if let Err(e) = make_directory(&path, passage) {
            // It must not get to remove what is another's. A child that was not waited for keeps its number.
            let _ = guard.kill();
            let _ = guard.wait();
            return Err(e);
        }
        let mut dir = PrivateDir { place: path.join(secret_name()?), path, guard: Some(guard), _alive: None };
        OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(dir.path.join(ALIVE))?;
        dir._alive = lock(&dir.path, FlockArg::LockSharedNonblock);
        if let Some(stdin) = dir.guard.as_mut().and_then(|guard| guard.stdin.as_mut()) {
            stdin.write_all(b".")?;
        }
        make_directory(&dir.place, passage)?;
        make_directory(&dir.place.join("shm"), if root { 0o1777 } else { 0o700 })?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o500).open(dir.shim())?;
        file.set_permissions(Permissions::from_mode(if root { 0o555 } else { 0o500 }))?;
        file.write_all(&unpacked(heap)?)?;
        drop(file);
        if !executable_mount(&dir.path) {
            return Err(io::Error::other("the file system is mounted noexec"));
        }
        Ok(dir)
    }

    /// The shim library.
    pub fn shim(&self) -> PathBuf {
        self.place.join(SHIM_NAME)
    }

    /// The guard's process.
    pub fn guard_pid(&self) -> Option<i32> {
        self.guard.as_ref().map(|g| g.id() as i32)
    }

    /// The pipe whose end tells the guard that it is time to clean up.
    pub fn guard_pipe(&self) -> Option<RawFd> {
        self.guard.as_ref()?.stdin.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Empties the executions' /dev/shm.
    pub fn clear_shm(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.place.join("shm"))? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => fs::remove_dir_all(entry.path())?,
                false => fs::remove_file(entry.path())?,
            }
        }
        Ok(())
    }

    /// The directory that is /dev/shm for the program, and one beside it, for what is kept of it.
    pub fn shm_and_beside(&self) -> (PathBuf, PathBuf) {
        (self.place.join("shm"), self.place.join("kept"))
    }

    /// The names of files that executions have told, as they stand in the file: each with a NUL behind it.
    pub fn names_told(&self) -> io::Result<Vec<u8>> {
        match fs::read(self.place.join("names")) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            read => read,
        }
    }

    /// Empties the executions' private layer over the file system.
    pub fn clear_files(&self) -> io::Result<()> {
        match fs::remove_dir_all(self.place.join("files")) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
        if let Some(mut guard) = self.guard.take() {
            drop(guard.stdin.take());
            let _ = guard.wait();
        }
    }
}

fn executable_mount(path: &Path) -> bool {
    nix::sys::statvfs::statvfs(path).map_or(true, |s| !s.flags().contains(nix::sys::statvfs::FsFlags::ST_NOEXEC))
}

/// Starts a process that waits for the end of this one and then removes the directory.
fn start_guard(path: &Path) -> io::Result<Child> {
    Command::new("/proc/self/exe")
        .arg0("vsrun-guard")
        .arg(GUARD)
        .arg(path)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        .process_group(0)
        .spawn()
        .map_err(|e| {
            io::Error::other(format!(
                "environment: no process for the guard, which cleans up after vsrun: {e} (see ulimit -u)"
            ))
        })
}

/// Locks the file that says that somebody is there. `None`: it is not there, or locked.
fn lock(directory: &Path, how: FlockArg) -> Option<Flock<File>> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(directory.join(ALIVE)).ok()?;
    Flock::lock(file, how).ok()
}

/// Removes the directories of this user's runs in `place` of which nobody is left. Those of other versions have no such file.
fn sweep(place: &Path) {
    let own = geteuid().as_raw();
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let old = |meta: &fs::Metadata| meta.modified().is_ok_and(|at| at.elapsed().is_ok_and(|age| age > SWEPT_AFTER));
        let meta = fs::symlink_metadata(entry.path()).ok();
        let left = meta.filter(|meta| meta.is_dir() && meta.uid() == own && is_ours(&entry.file_name()) && old(meta));
        if left.is_some() && lock(&entry.path(), FlockArg::LockExclusiveNonblock).is_some() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The name is one of [`unique_name`].
fn is_ours(name: &OsStr) -> bool {
    let digits = name.as_bytes().strip_prefix(b"vsrun-");
    digits.is_some_and(|digits| digits.len() == 16 && digits.iter().all(u8::is_ascii_hexdigit))
}

/// What the guard does: reads until the end of its input, which comes when vsrun is gone, then cleans up.
pub fn guard(path: &Path) {
    let parent = getppid();
    let made = io::stdin().read_exact(&mut [0]).is_ok();
    let _alive = if made { lock(path, FlockArg::LockSharedNonblock) } else { None };
    let _ = io::stdin().read_to_end(&mut Vec::new());
    if !path.file_name().is_some_and(is_ours) {
        return;
    }
    // The kernel closes what a process has before it tells its children that it is gone. A program that is being started gets its death signal then: without
    // the library, which lies there, its loader would run it all the same.
    for _ in 0..1000 {
        if getppid() != parent || !path.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    // Processes of the program that are about to die may still add to it.
    for _ in 0..100 {
        match fs::remove_dir_all(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => std::thread::sleep(Duration::from_millis(20)),
            _ => return,
        }
    }
}

/// Fixed bytes for what the program reads from /dev/urandom: a stretch of numbers, then zeros, of which there is no end.
pub fn random_file() -> io::Result<OwnedFd> {
    const LEN: usize = 1 << 20;
    const ENDLESS: u64 = 1 << 40;
    let mut bytes = Vec::with_capacity(LEN);
    let mut state = 0x7673_7275_6e00_0001u64;
    while bytes.len() < LEN {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend_from_slice(&(z ^ (z >> 31)).to_le_bytes());
    }
    let mut file = File::from(memory_file(c"vsrun-random", 0)?);
    file.write_all(&bytes)?;
    file.set_len(limits::of_file(ENDLESS))?;
    Ok(file.into())
}

/// `envp` with the shim preloaded.
pub fn with_preload(envp: &[OsString], shim: &Path) -> Vec<OsString> {
    let mut preload = OsString::from("LD_PRELOAD=");
    preload.push(shim);
    let mut rest = Vec::with_capacity(envp.len() + 1);
    for entry in envp {
        match entry.as_bytes().strip_prefix(b"LD_PRELOAD=") {
            Some(old) if !old.is_empty() => {
                preload.push(":");
                preload.push(std::ffi::OsStr::from_bytes(old));
            }
            Some(_) => {}
            None => rest.push(entry.clone()),
        }
    }
    rest.insert(0, preload);
    rest
}
