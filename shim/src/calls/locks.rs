//! Locks of files: fcntl (record locks of processes and of open file descriptions) and flock; what they mean is the
//! model's.
//!
//! NOTE [Tags] Files and descriptors are real, their locks are not: no lock of the program reaches the kernel. Which
//! descriptors share an open file description, and when its last one is closed, in whatever process, only the kernel knows.
//! A description that takes a lock gets a tag: a real lock of its own (F_OFD_SETLK) on a byte far behind the end of the file,
//! another byte for each description. A descriptor that is not in conflict with the tag is one of this description; when the
//! last one is closed, the kernel takes the tag away, which another description of the file can see.

use vsrun_model::lock::{self, by_description, LAST};
use vsrun_model::object::{NONE, SHARED};
use vsrun_model::op::{CANCEL_POINT, TRY};
use vsrun_model::{Key, Kind, ObjId, ObjKind, Op, MAX_NAME};

use super::fd::is_ours;
use super::files;
use crate::gate::{self, end, inject, local, machine, me, model, process_of, world};
use crate::sys::bare::bare;
use crate::sys::errno::*;
use crate::sys::{any_of, decimal, limit, load, raw, store};

/// Descriptors that are looked at where all are closed.
const MANY: i32 = 65536;
/// The first byte of tags; the id of the execution and the name of the description are added.
const TAGS: u64 = 1 << 62;

/// struct flock.
#[derive(Clone, Copy)]
#[repr(C)]
struct Flock {
    kind: i16,
    whence: i16,
    start: i64,
    len: i64,
    pid: i32,
}

/// What fstat says of a descriptor.
struct Real {
    dev: u64,
    ino: u64,
    mode: u32,
    size: i64,
    flags: i32,
}

fn look(fd: i32) -> Option<Real> {
    let mut stat = [0u64; 18];
    let flags = raw!(libc::SYS_fcntl, fd, libc::F_GETFL) as i32;
    if flags < 0 || raw!(libc::SYS_fstat, fd, stat.as_mut_ptr()) < 0 {
        return None;
    }
    Some(Real { dev: stat[0], ino: stat[1], mode: stat[3] as u32, size: stat[6] as i64, flags })
}

/// True for the commands of fcntl that are about locks.
pub fn is_lock(command: i32) -> bool {
    matches!(
        command,
        libc::F_SETLK | libc::F_SETLKW | libc::F_GETLK | libc::F_OFD_GETLK | libc::F_OFD_SETLK | libc::F_OFD_SETLKW
    )
}

/// fcntl with such a command. `cancellable`: called through libc, which makes waits cancellation points.
pub fn fcntl(fd: i32, command: i32, at: u64, cancellable: bool) -> i64 {
    let Some(real) = look(fd).filter(|r| r.flags & libc::O_PATH == 0) else { return EBADF };
    let asked: Flock = load(at);
    let by_file = matches!(command, libc::F_OFD_GETLK | libc::F_OFD_SETLK | libc::F_OFD_SETLKW);
    let test = matches!(command, libc::F_GETLK | libc::F_OFD_GETLK);
    let kind = asked.kind as i32;
    if test && kind == libc::F_UNLCK && by_file {
        end::unsupported(&[b"fcntl(F_OFD_GETLK) with F_UNLCK"]);
    }
    if test && kind != libc::F_RDLCK && kind != libc::F_WRLCK {
        return EINVAL;
    }
    let (first, last) = match range(fd, &asked, real.size) {
        Ok(range) => range,
        Err(error) => return error,
    };
    if !matches!(kind as i16 as libc::c_int, libc::F_RDLCK | libc::F_WRLCK | libc::F_UNLCK) || by_file && asked.pid != 0
    {
        return EINVAL;
    }
    let mode = real.flags & libc::O_ACCMODE;
    let denied = match kind as libc::c_int {
        libc::F_RDLCK => mode == libc::O_WRONLY,
        libc::F_WRLCK => mode == libc::O_RDONLY,
        _ => false,
    };
    if denied && !test {
        return EBADF;
    }
    let [records, _] = files::with_stack(|| objects(fd, &real));
    let mut op = Op::on(if test { Kind::RECORD_TEST } else { Kind::RECORD_LOCK }, records).arg(first as i64);
    op.deadline = last;
    op.mask = if by_file { by_description(describe(fd, &real)) } else { 0 };
    if by_file {
        machine().note_flocked(world().objects[records].key.addr);
    }
    match kind as libc::c_int {
        libc::F_WRLCK => op.mask |= lock::WRITE,
        libc::F_UNLCK => op.kind = Kind::RECORD_UNLOCK,
        _ => {}
    }
    if world().procs[local().pid].threaded {
        op = op.with(lock::THREADED);
    }
    let waits = matches!(command, libc::F_SETLKW | libc::F_OFD_SETLKW);
    if op.kind == Kind::RECORD_LOCK {
        op = op.with(if !waits {
            TRY
        } else if cancellable {
            CANCEL_POINT
        } else {
            0
        });
    }
    if op.kind == Kind::RECORD_LOCK && waits {
        inject::interrupts();
    }
    let error = gate::pass(op);
    if error == 0 && test {
        tell(at, &asked);
    }
    error
}

/// A file has been opened by call `nr` with that result, a descriptor or an error number.
pub fn opened(nr: i64, result: i64) {
    let opens = matches!(nr, any_of!(SYS_open SYS_openat SYS_openat2 SYS_creat));
    if !opens || result < 0 || !machine().knows_flocked() {
        return;
    }
    let fd = result as i32;
    let is_file = |r: &Real| r.mode & libc::S_IFMT == libc::S_IFREG && r.flags & libc::O_PATH == 0;
    let Some(real) = look(fd).filter(is_file) else { return };
    let [_, object] = files::with_stack(|| objects(fd, &real));
    if machine().is_flocked(world().objects[object].key.addr) {
        describe_new(fd, &real);
        model().flocks_come();
    }
}

/// What F_GETLK leaves behind.
fn tell(at: u64, asked: &Flock) {
    let [what, first, last] = me().out;
    let found = match what & 0xff {
        0 => Flock { kind: libc::F_UNLCK as i16, ..*asked },
        kind => Flock {
            kind: if kind == 2 { libc::F_WRLCK as i16 } else { libc::F_RDLCK as i16 },
            whence: libc::SEEK_SET as i16,
            start: first,
            len: if last as u64 == LAST { 0 } else { last - first + 1 },
            pid: (what >> 8) as i32,
        },
    };
    store(at, found);
}

/// First and last byte, as the kernel counts.
fn range(fd: i32, asked: &Flock, size: i64) -> Result<(u64, u64), i64> {
    let base = match asked.whence as i32 {
        libc::SEEK_SET => 0,
        libc::SEEK_CUR => raw!(libc::SYS_lseek, fd, 0, libc::SEEK_CUR).max(0),
        libc::SEEK_END => size,
        _ => return Err(EINVAL),
    };
    let start = base.checked_add(asked.start).ok_or(EOVERFLOW)?;
    if start < 0 {
        return Err(EINVAL);
    }
    match asked.len {
        0 => Ok((start as u64, LAST)),
        n if n > 0 => Ok((start as u64, start.checked_add(n - 1).ok_or(EOVERFLOW)? as u64)),
        n if start.checked_add(n).is_none_or(|first| first < 0) => Err(EINVAL),
        n => Ok(((start + n) as u64, (start - 1) as u64)),
    }
}

/// flock.
pub fn flock(fd: i32, what: i32) -> i64 {
    const MANDATORY: i32 = 32;
    if what & MANDATORY != 0 {
        return 0;
    }
    let mask = match what & !libc::LOCK_NB {
        libc::LOCK_SH => 0,
        libc::LOCK_EX => lock::WRITE,
        libc::LOCK_UN => lock::UNLOCK,
        _ => return EINVAL,
    };
    let Some(real) = look(fd).filter(|r| r.flags & libc::O_PATH == 0) else { return EBADF };
    let [_, object] = files::with_stack(|| objects(fd, &real));
    machine().note_flocked(world().objects[object].key.addr);
    let mut op = Op::on(Kind::FLOCK, object);
    op.mask = mask | by_description(describe(fd, &real));
    op.deadline = LAST;
    if what & libc::LOCK_NB != 0 && mask != lock::UNLOCK {
        op = op.with(TRY);
    } else if mask != lock::UNLOCK {
        inject::interrupts();
    }
    gate::pass(op)
}

fn path(prefix: &[u8], fd: i32, out: &mut [u8; 64]) {
    let number = decimal(fd);
    out[..prefix.len()].copy_from_slice(prefix);
    out[prefix.len()..prefix.len() + number.len()].copy_from_slice(&number);
}

fn too_many() -> ! {
    end::no_room(&[b"the program locks more files than vsrun can hold"])
}

/// The file behind a descriptor, by the numbers that the program knows it by: those of a file and of its private copy are
/// the same.
fn known(fd: i32, real: &Real) -> Option<u64> {
    let (dev, ino) = files::with_stack(|| files::known_as(fd, (real.dev, real.ino), |_| {}));
    world().locked_files.as_slice().iter().find(|f| f.dev == dev && f.ino == ino).map(|f| f.number)
}

/// The objects of a file: for record locks, for flock. Named by the path at its first use, so that they are the same in
/// every execution.
fn objects(fd: i32, real: &Real) -> [ObjId; 2] {
    let mut buffer = [0u8; MAX_NAME];
    let (mut len, mut number) = (0, 0xcbf2_9ce4_8422_2325u64);
    let (dev, ino) = files::known_as(fd, (real.dev, real.ino), |name| {
        number = name.iter().fold(number, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        // The end tells more where it is long.
        let end = &name[name.len().saturating_sub(MAX_NAME)..];
        len = end.len();
        buffer[..len].copy_from_slice(end);
    });
    let number = known(fd, real).or_else(|| model().know_locked_file(dev, ino, number)).unwrap_or_else(|| too_many());
    [ObjKind::RECORDS, ObjKind::FLOCK].map(|kind| {
        let key = Key::new(SHARED, kind, number);
        if let Some(id) = world().find(key) {
            return id;
        }
        match model().object_new(key, 0) {
            Some(id) if model().name_add(&buffer[..len], id) => id,
            _ => too_many(),
        }
    })
}

fn tag(name: u32) -> Flock {
    let start = TAGS | (process_of(0).real_pid as u64) << lock::NAME_BITS | u64::from(name);
    Flock { kind: libc::F_WRLCK as i16, whence: libc::SEEK_SET as i16, start: start as i64, len: 1, pid: 0 }
}

/// True if another open file description than that of `fd` has the tag `name`.
fn conflicts(fd: i32, name: u32) -> bool {
    let mut lock = tag(name);
    let result = raw!(libc::SYS_fcntl, fd, libc::F_OFD_GETLK, &mut lock as *mut Flock);
    result == 0 && load::<i16>(&lock as *const Flock as u64) != libc::F_UNLCK as i16
}

/// Another open file description of the file behind `fd`.
fn another(fd: i32) -> i32 {
    let mut link = [0u8; 64];
    path(b"/proc/self/fd/", fd, &mut link);
    for mode in [libc::O_RDONLY, libc::O_WRONLY] {
        let flags = mode | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
        let other = raw!(libc::SYS_openat, libc::AT_FDCWD, link.as_ptr(), flags);
        if other >= 0 {
            return other as i32;
        }
    }
    end::unsupported(&[b"flock or F_OFD_SETLK on a file that cannot be opened a second time"])
}

/// The open file description of `fd` among those that are known.
fn described(fd: i32, real: &Real) -> Option<u32> {
    for i in 0..world().descriptions.len {
        let tagged = world().descriptions[i];
        if tagged.dev != real.dev || tagged.ino != real.ino || conflicts(fd, tagged.name) {
            continue;
        }
        let other = another(fd);
        let alive = conflicts(other, tagged.name);
        raw!(libc::SYS_close, other);
        if alive {
            return Some(tagged.name);
        }
    }
    None
}

/// True if locks have been taken with the open file description of `fd`.
pub fn is_locked(fd: i32) -> bool {
    if !world().flocks_used {
        return false;
    }
    let Some(real) = look(fd).filter(|r| r.flags & libc::O_PATH == 0) else { return false };
    known(fd, &real).is_some() && described(fd, &real).is_some()
}

/// The name of the open file description of `fd`, which gets a tag if it has none.
fn describe(fd: i32, real: &Real) -> u32 {
    if world().files_under_way() {
        end::unsupported(&[b"flock or F_OFD_SETLK while the descriptor of a file is under way in a message"]);
    }
    described(fd, real).unwrap_or_else(|| describe_new(fd, real))
}

/// The same of one that has none.
fn describe_new(fd: i32, real: &Real) -> u32 {
    let name = world().new_description_name(local().cur);
    let mut lock = tag(name);
    if real.flags & libc::O_ACCMODE != libc::O_WRONLY {
        lock.kind = libc::F_RDLCK as i16;
    }
    if raw!(libc::SYS_fcntl, fd, libc::F_OFD_SETLK, &lock as *const Flock) < 0 {
        end::unsupported(&[
            b"flock or F_OFD_SETLK on a file on which the kernel takes no lock of an open file description, or which a process \
outside of the program has locked",
        ]);
    }
    if !model().know_description(real.dev, real.ino, name) {
        too_many();
    }
    name
}

/// A descriptor that is being closed: what to look at afterwards.
pub struct Closing {
    /// Another open file description of the file, or -1.
    other: i32,
    name: u32,
}

/// To be called before descriptor `fd` is closed in whatever way: gives back the record locks of the process.
pub fn before_close(fd: i32) -> Closing {
    const NOTHING: Closing = Closing { other: -1, name: 0 };
    let pid = local().pid;
    let process = &world().procs[pid];
    if !process.record_locks && !world().flocks_used {
        return NOTHING;
    }
    let Some(real) = look(fd) else { return NOTHING };
    let Some(number) = known(fd, &real) else { return NOTHING };
    let find = |kind| world().find(Key::new(SHARED, kind, number)).unwrap_or(NONE);
    let (records, flocks) = (find(ObjKind::RECORDS), find(ObjKind::FLOCK));
    // Other threads may take locks before this one gets to close.
    if world().has_record_locks(pid, records) || process.threaded && process.record_locks {
        let mut op = Op::on(Kind::RECORD_UNLOCK, records);
        op.mask = lock::CLOSE;
        pass_whole(op);
        model().drop_record_locks(pid, records);
    }
    if real.flags & libc::O_PATH != 0 {
        return NOTHING;
    }
    let Some(name) = described(fd, &real) else { return NOTHING };
    let mut op = Op::on(Kind::FLOCK, flocks);
    op.obj2 = records;
    op.mask = lock::UNLOCK | lock::CLOSE | by_description(name);
    pass_whole(op);
    Closing { other: another(fd), name }
}

/// The child of a vfork closes within the transition of its parent.
fn pass_whole(mut op: Op) {
    op.deadline = LAST;
    if world().procs[local().pid].threaded {
        op = op.with(lock::THREADED);
    }
    if !local().borrowed {
        gate::pass(op);
    }
}

/// To be called when it has been closed.
pub fn after_close(closing: Closing) {
    if closing.other < 0 {
        return;
    }
    if !conflicts(closing.other, closing.name) {
        model().drop_description_locks(closing.name);
    }
    raw!(libc::SYS_close, closing.other);
}

/// Closes descriptors from `first` to `last` that may have locks, those with FD_CLOEXEC only if `on_exec`. True: there were some.
pub fn close_locked(first: i32, last: i32, on_exec: bool) -> bool {
    if !world().procs[local().pid].record_locks && !world().flocks_used {
        return false;
    }
    let mut any = false;
    each_open(first, last.min(MANY), &mut |fd| {
        let flags = raw!(libc::SYS_fcntl, fd, libc::F_GETFD);
        if flags < 0 || is_ours(fd as u64) || on_exec && flags as i32 & libc::FD_CLOEXEC == 0 {
            return;
        }
        if look(fd).is_some_and(|real| known(fd, &real).is_some()) {
            let closing = before_close(fd);
            raw!(libc::SYS_close, fd);
            after_close(closing);
            any = true;
        }
    });
    any
}

/// Calls `each` with the descriptors from `first` to `last` that are open, but for those that are places only (O_PATH), which have no locks. There may be tens of
/// thousands of numbers, so it is poll that is asked, which tells of many at a time.
fn each_open(first: i32, last: i32, each: &mut dyn FnMut(i32)) {
    const AT_A_TIME: usize = 64;
    let mut next = first;
    while next <= last {
        let n = AT_A_TIME.min((last - next + 1) as usize);
        let mut asked = [libc::pollfd { fd: -1, events: 0, revents: 0 }; AT_A_TIME];
        for (fd, one) in (next..).zip(&mut asked[..n]) {
            one.fd = fd;
        }
        // Nothing is waited for, so nothing is left by that. It fails where the process may have fewer.
        let told = bare(libc::SYS_poll, [asked.as_mut_ptr() as u64, n as u64, 0, 0, 0, 0]) >= 0;
        asked[..n].iter().filter(|one| !told || one.revents & libc::POLLNVAL == 0).for_each(|one| each(one.fd));
        next += n as i32;
    }
}

/// The process ends: its record locks go with it in the model; what the ends of its descriptors give back is seen here.
pub fn close_all_locked() {
    if !world().flocks_used {
        return;
    }
    each_open(0, open_limit() - 1, &mut |fd| {
        let Some(real) = look(fd).filter(|r| r.flags & libc::O_PATH == 0) else { return };
        if known(fd, &real).is_none() {
            return;
        }
        if let Some(name) = described(fd, &real) {
            let closing = Closing { other: another(fd), name };
            raw!(libc::SYS_close, fd);
            let held = world().description_locks(name);
            after_close(closing);
            if held && !world().description_locks(name) {
                model().gave_locks_back(local().pid);
            }
        }
    });
}

/// No descriptor is as large.
fn open_limit() -> i32 {
    limit(libc::RLIMIT_NOFILE).min(MANY as u64) as i32
}
