//! Names below /proc: the numbers in them are those that the program knows. A process outside that happens to have such a number for
//! the kernel is none of the program's; and what the program writes about another process reaches none outside at all.

use super::files::{self, with_stack};
use crate::gate::{local, pages, watched, world};
use crate::sys::errno::*;
use crate::sys::{any_of, bytes_mut, cstr, decimal, load, raw};
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
        if p != local().pid {
            files::others_told();
        }
        return real_process(p);
    }
    let ours = || w.procs.as_slice().iter().any(|p| p.own.real_pid == id);
    match id {
        1001.. if id <= w.ids => {
            files::others_told();
            Err(ENOENT)
        }
        _ if writes && !ours() => Err(EACCES),
        _ => Ok(id),
    }
}

fn real_process(p: Pid) -> Result<i32, i64> {
    let process = &world().procs[p];
    // The kernel may have given the number of one that is over to another; what it tells of one that has not been waited for is not there.
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
    if path.ends_with(b"maps") {
        pages::be_whole();
    }
    if path.len() == LONGEST || !components(path).any(|c| number(c).is_some()) {
        return call(a);
    }
    with_numbers(nr, a, path, dir_at, path_at, call)
}

/// The same, for a path with numbers. What needs room on the program's stack is apart, since most calls do without.
#[inline(never)]
fn with_numbers(
    nr: i64,
    a: [u64; 6],
    path: &[u8],
    dir_at: Option<usize>,
    path_at: usize,
    call: impl FnOnce([u64; 6]) -> i64,
) -> i64 {
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

/// What was opened: a `stat` or `status` of a process below /proc is exchanged for one with the program's numbers, as it is now.
pub fn opened(nr: i64, a: [u64; 6], fd: i64) -> i64 {
    let path = cstr(if nr == libc::SYS_open { a[0] } else { a[1] }, LONGEST);
    let last = path.rsplit(|&b| b == b'/').next().unwrap_or(path);
    if last == b"mem" && is_of_proc(fd) {
        watched::memory_is_open();
    }
    if last != b"stat" && last != b"status" {
        return fd;
    }
    with_stack(|| exchanged(fd, last))
}

/// The file lies below /proc.
fn is_of_proc(fd: i64) -> bool {
    const PROC_SUPER_MAGIC: u64 = 0x9fa0;
    let mut system = [0u64; 15];
    raw!(libc::SYS_fstatfs, fd, system.as_mut_ptr()) >= 0 && system[0] == PROC_SUPER_MAGIC
}

#[inline(never)]
fn exchanged(fd: i64, last: &[u8]) -> i64 {
    if !is_of_proc(fd) {
        return fd;
    }
    let mut room = Text { bytes: [0; TEXT], len: 0 };
    let n = raw!(libc::SYS_pread64, fd, room.bytes.as_mut_ptr(), TEXT, 0);
    let Some(text) = usize::try_from(n).ok().and_then(|n| room.bytes.get(..n)) else { return fd };
    let mut ours = Text { bytes: [0; TEXT], len: 0 };
    let known = if last == b"stat" { write_stat(text, &mut ours) } else { write_status(text, &mut ours) };
    if known.is_none() {
        return fd;
    }
    exchange(fd, &ours)
}

/// Puts a file with the text in the place of a descriptor.
fn exchange(fd: i64, text: &Text) -> i64 {
    let flags = raw!(libc::SYS_fcntl, fd, libc::F_GETFD);
    let file = raw!(libc::SYS_memfd_create, c"proc".as_ptr(), libc::MFD_CLOEXEC);
    if file < 0 {
        return fd;
    }
    raw!(libc::SYS_pwrite64, file, text.bytes.as_ptr(), text.len, 0);
    let cloexec = if flags as i32 & libc::FD_CLOEXEC != 0 { libc::O_CLOEXEC } else { 0 };
    raw!(libc::SYS_dup3, file, fd, cloexec);
    raw!(libc::SYS_close, file);
    fd
}

/// Longest text of a process.
const TEXT: usize = 4096;

struct Text {
    bytes: [u8; TEXT],
    len: usize,
}

impl Text {
    /// What does not fit is left out.
    fn put(&mut self, bytes: &[u8]) {
        if let Some(room) = self.bytes.get_mut(self.len..self.len + bytes.len()) {
            room.copy_from_slice(bytes);
            self.len += bytes.len();
        }
    }

    fn number(&mut self, n: i64) {
        self.put(&decimal(n));
    }
}

/// The process that the kernel knows by a number.
fn of_real(id: i32) -> Option<Pid> {
    let own = |p: &vsrun_model::Process| p.state == ProcState::LIVE && p.own.real_pid == id;
    world().procs.as_slice().iter().position(own).map(|p| p as Pid)
}

/// What a process is doing, as letter and word: all but one wait for their turn.
fn state_of(p: Pid) -> &'static [u8] {
    match () {
        () if world().procs[p].stopped != 0 => b"T (stopped)",
        () if p == local().pid => b"R (running)",
        () => b"S (sleeping)",
    }
}

fn parent_of(p: Pid) -> i64 {
    world().procs.get(world().procs[p].parent).map_or(1, |q| q.vpid.into())
}

fn threads_of(p: Pid) -> i64 {
    world().threads.as_slice().iter().filter(|t| t.pid == p && t.alive()).count() as i64
}

/// /proc/PID/stat with the program's numbers. `None`: it is of no process of the program.
fn write_stat(text: &[u8], to: &mut Text) -> Option<()> {
    let name = text.iter().position(|&b| b == b' ')?;
    let p = of_real(number(&text[..name])?)?;
    let rest = text.iter().rposition(|&b| b == b')')? + 1;
    let process = &world().procs[p];
    to.number(process.vpid.into());
    to.put(&text[name..rest]);
    for (i, field) in text[rest..].split(|&b| b == b' ').enumerate().skip(1) {
        to.put(b" ");
        match i {
            1 => to.put(&state_of(p)[..1]),
            2 => to.number(parent_of(p)),
            3 => to.number(process.pgid.into()),
            4 => to.number(process.sid.into()),
            // The group in the foreground of a terminal.
            6 if number(field).is_some_and(|group| group > 0) => to.number(process.pgid.into()),
            18 => to.number(threads_of(p)),
            _ => to.put(field),
        }
    }
    Some(())
}

/// /proc/PID/status with the program's numbers. `None`: it is of no process of the program.
fn write_status(text: &[u8], to: &mut Text) -> Option<()> {
    let value = |line: &'_ [u8], name: &[u8]| line.strip_prefix(name).and_then(number);
    let p = of_real(text.split(|&b| b == b'\n').find_map(|line| value(line, b"Pid:\t"))?)?;
    let process = &world().procs[p];
    let (id, group, session) = (process.vpid.into(), process.pgid.into(), process.sid.into());
    for line in text.split(|&b| b == b'\n').filter(|line| !line.is_empty()) {
        let name = line.iter().position(|&b| b == b'\t').map_or(line.len(), |at| at + 1);
        to.put(&line[..name]);
        match &line[..name] {
            b"State:\t" => to.put(state_of(p)),
            b"Tgid:\t" | b"Pid:\t" | b"NStgid:\t" | b"NSpid:\t" => to.number(id),
            b"PPid:\t" => to.number(parent_of(p)),
            b"NSpgid:\t" => to.number(group),
            b"NSsid:\t" => to.number(session),
            b"TracerPid:\t" => to.put(b"0"),
            b"Threads:\t" => to.number(threads_of(p)),
            _ => to.put(&line[name..]),
        }
        to.put(b"\n");
    }
    Some(())
}

/// Entries of a directory, as getdents64 gave them: /proc lists the program's processes by the program's numbers, and no others.
pub fn listed(a: [u64; 6], n: i64) -> i64 {
    let mut link = [0u8; 40];
    let mut len = 0;
    for part in [b"/proc/self/fd/".as_slice(), &decimal(a[0] as i32)] {
        link[len..len + part.len()].copy_from_slice(part);
        len += part.len();
    }
    let mut name = [0u8; 8];
    let is_proc = raw!(libc::SYS_readlink, link.as_ptr(), name.as_mut_ptr(), 8) == 5 && name.starts_with(b"/proc");
    let mut n = n;
    while is_proc && n > 0 {
        let left = translate_entries(bytes_mut(a[1], n as usize)) as i64;
        if left > 0 {
            return left;
        }
        n = raw!(libc::SYS_getdents64, a[0], a[1], a[2]);
    }
    n
}

/// Bytes of an entry before its name, and where its length is.
const NAME_AT: usize = 19;
const LENGTH_AT: usize = 16;

/// Gives the bytes that are left of the entries.
fn translate_entries(entries: &mut [u8]) -> usize {
    let (mut from, mut to) = (0, 0);
    while from + NAME_AT < entries.len() {
        let len = usize::from(u16::from_ne_bytes([entries[from + LENGTH_AT], entries[from + LENGTH_AT + 1]]));
        let name = &mut entries[from + NAME_AT..from + len];
        let used = name.iter().position(|&b| b == 0).unwrap_or(name.len());
        let keep = match number(&name[..used]) {
            None => true,
            Some(id) => of_real(id).is_some_and(|p| {
                let digits = decimal(world().procs[p].vpid);
                let fits = digits.len() < name.len();
                if fits {
                    name.fill(0);
                    name[..digits.len()].copy_from_slice(&digits);
                }
                fits
            }),
        };
        if keep {
            entries.copy_within(from..from + len, to);
            to += len;
        }
        from += len;
    }
    to
}
