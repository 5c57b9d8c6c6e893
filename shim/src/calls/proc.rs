//! Names below /proc: the numbers in them are those that the program knows. A process outside that happens to have such a number for
//! the kernel is none of the program's; and what the program writes about another process reaches none outside at all.

use crate::gate::local::world;
use crate::sys::errno::*;
use crate::sys::{any_of, cstr, decimal, load, raw};
use vsrun_model::{Pid, ProcState};

/// Longest name below /proc that is followed, and longest directory that it begins at.
const LONGEST: usize = 512;

/// Where a call has its path, and the directory at which that begins; `None`: the working directory.
fn path_of(nr: i64) -> Option<(Option<usize>, usize)> {
    match nr {
        any_of!(
            SYS_openat SYS_openat2 SYS_newfstatat SYS_statx SYS_faccessat SYS_faccessat2 SYS_readlinkat SYS_fchmodat SYS_fchmodat2
            SYS_fchownat SYS_utimensat SYS_futimesat SYS_name_to_handle_at SYS_execveat
        ) => Some((Some(0), 1)),
        any_of!(
            SYS_open SYS_creat SYS_stat SYS_lstat SYS_access SYS_readlink SYS_truncate SYS_chdir SYS_statfs SYS_execve SYS_chmod SYS_chown
            SYS_lchown SYS_utime SYS_utimes SYS_getxattr SYS_lgetxattr SYS_listxattr SYS_llistxattr SYS_setxattr SYS_lsetxattr
        ) => Some((None, 0)),
        libc::SYS_inotify_add_watch => Some((None, 1)),
        _ => None,
    }
}

/// The call opens for writing.
fn writes(nr: i64, a: &[u64; 6]) -> bool {
    let flags = match nr {
        libc::SYS_open => a[1],
        libc::SYS_openat => a[2],
        libc::SYS_openat2 => load::<u64>(a[2]),
        libc::SYS_creat | libc::SYS_truncate => return true,
        _ => return false,
    };
    flags as i32 & (libc::O_ACCMODE | libc::O_TRUNC) != libc::O_RDONLY
}

/// The number that a component is.
fn number(component: &[u8]) -> Option<i32> {
    let digits = !component.is_empty() && component.len() < 10 && component.iter().all(u8::is_ascii_digit);
    digits.then(|| component.iter().fold(0, |n, d| n * 10 + i32::from(d - b'0')))
}

fn components(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|&b| b == b'/').filter(|c| !c.is_empty() && *c != b".")
}

/// A directory on the way: how far below the root, and whether below /proc, and there in a process's `task`.
#[derive(Default)]
struct Way {
    depth: usize,
    proc: bool,
    task: bool,
}

impl Way {
    fn step(&mut self, component: &[u8]) {
        if component == b".." {
            self.depth = self.depth.saturating_sub(1);
            return;
        }
        match self.depth {
            0 => self.proc = component == b"proc",
            2 => self.task = component == b"task",
            _ => {}
        }
        self.depth += 1;
    }

    /// A number is one of a process or thread here.
    fn numbers(&self) -> bool {
        self.proc && (self.depth == 1 || self.depth == 3 && self.task)
    }
}

/// The directory at which a relative path begins.
fn begin(way: &mut Way, dir: i32) -> Result<(), i64> {
    let mut name = [0u8; LONGEST];
    let n = if dir == libc::AT_FDCWD {
        raw!(libc::SYS_getcwd, name.as_mut_ptr(), LONGEST) - 1
    } else {
        let mut link = [0u8; 40];
        let mut len = 0;
        for part in [b"/proc/self/fd/".as_slice(), &decimal(dir)] {
            link[len..len + part.len()].copy_from_slice(part);
            len += part.len();
        }
        raw!(libc::SYS_readlink, link.as_ptr(), name.as_mut_ptr(), LONGEST)
    };
    // What is longer, or has no name, is not below /proc.
    if !(0..LONGEST as i64).contains(&n) || name[0] != b'/' {
        return Err(ENOENT);
    }
    components(&name[..n as usize]).for_each(|c| way.step(c));
    Ok(())
}

/// What the kernel knows the process or thread `id` as. `Err`: the program has had it, or what it asks reaches outside.
fn real(id: i32, writes: bool) -> Result<i32, i64> {
    let w = world();
    if let Some(p) = w.process_by_id(id) {
        return real_process(p);
    }
    let ours = || w.procs.as_slice().iter().any(|p| p.own.real_pid == id);
    match id {
        1001.. if id <= w.ids => Err(ENOENT),
        _ if writes && !ours() => Err(EACCES),
        _ => Ok(id),
    }
}

fn real_process(p: Pid) -> Result<i32, i64> {
    let process = &world().procs[p];
    // The kernel may have given the number of one that is over to another.
    if process.state == ProcState::LIVE && process.own.real_pid > 0 {
        Ok(process.own.real_pid)
    } else {
        Err(ENOENT)
    }
}

/// Makes a call with the kernel's numbers in the place of the program's, where its path lies below /proc.
pub fn with_real_numbers(nr: i64, a: [u64; 6], call: impl FnOnce([u64; 6]) -> i64) -> i64 {
    let Some((dir_at, path_at)) = path_of(nr) else { return call(a) };
    if a[path_at] == 0 {
        return call(a);
    }
    let path = cstr(a[path_at], LONGEST);
    if path.len() == LONGEST || !components(path).any(|c| number(c).is_some()) {
        return call(a);
    }
    let mut buffer = [0u8; LONGEST + 64];
    match translated(path, dir_at.map_or(libc::AT_FDCWD, |at| a[at] as i32), writes(nr, &a), &mut buffer) {
        Ok(false) => call(a),
        Ok(true) => {
            let mut b = a;
            b[path_at] = buffer.as_ptr() as u64;
            call(b)
        }
        Err(error) => error,
    }
}

/// Writes the path with the kernel's numbers to `to`, with a NUL after it. False: there is none that would be another.
fn translated(path: &[u8], dir: i32, writes: bool, to: &mut [u8; LONGEST + 64]) -> Result<bool, i64> {
    let mut way = Way::default();
    if path[0] != b'/' && begin(&mut way, dir).is_err() {
        return Ok(false);
    }
    let (mut len, mut changed) = (0, false);
    for (n, component) in path.split(|&b| b == b'/').enumerate() {
        let id = number(component).filter(|_| way.numbers());
        let real = id.map(|id| real(id, writes)).transpose()?;
        changed |= id != real;
        let digits = real.map(decimal);
        let component = digits.as_deref().unwrap_or(component);
        let slash = usize::from(n > 0);
        if len + slash + component.len() >= to.len() {
            return Ok(false);
        }
        to[len..len + slash].fill(b'/');
        to[len + slash..len + slash + component.len()].copy_from_slice(component);
        len += slash + component.len();
        if !component.is_empty() && component != b"." {
            way.step(component);
        }
    }
    to[len] = 0;
    Ok(changed)
}
