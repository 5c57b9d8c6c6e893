//! Uses of files that may be visible operations: who uses what is noted, and what is known to be shared is published before
//! the kernel is asked. What it means is the model's: `vsrun_model::file`.

use vsrun_model::arena::{MAX_SYSCALLS, SHARED_FILES};
use vsrun_model::file::{Use, Verdict, PLACE, PLACED};
use vsrun_model::object::NONE;
use vsrun_model::op::TRY;
use vsrun_model::{Kind, ObjId, ObjKind, Op, MAX_NAME};

use super::descriptors::{description, file_of, made, only_writes};
use super::layer::seen_as;
use super::names::names;
use super::path::{Path, Stat};
use super::with_stack;
use crate::local::{arena, local, me, world, Phase};
use crate::sys::load;
use crate::{gate, raw};

const SYS_PREADV2: i64 = 327;
const SYS_PWRITEV2: i64 = 328;

pub(super) fn mix(a: u64, b: u64) -> u64 {
    let z = (a ^ b.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (z ^ z >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

pub(super) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(FNV, step)
}

pub(super) const FNV: u64 = 0xcbf2_9ce4_8422_2325;

pub(super) fn step(hash: u64, byte: &u8) -> u64 {
    (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
}

/// Uses of files are looked at: several threads have existed.
pub(super) fn watches() -> bool {
    world().concurrent && local().phase != Phase::BeforeRoot && local().phase != Phase::Off
}

/// Performs a call with `kernel`, after a visible operation if it uses what is shared.
pub fn using(nr: i64, a: [u64; 6], kernel: impl FnOnce() -> i64) -> i64 {
    let turn = if watches() { turn(nr, &a) } else { None };
    let result = kernel();
    super::forget_walk();
    made(nr, &a, result);
    let Some((op, same)) = turn else { return result };
    let thread = me();
    // In vain: there is nothing, or not yet, or it is there already, or it is what it was.
    let error = |e: i32| result == -i64::from(e);
    let vain = error(libc::ENOENT) || error(libc::EEXIST) || same != 0 && same == thread.looked;
    thread.polls = if vain && op.tries() { thread.polls.saturating_add(1) } else { 0 };
    thread.looked = same;
    result
}

/// Waits until the operation has been performed that a call is, if it is one.
fn turn(nr: i64, a: &[u64; 6]) -> Option<(Op, u64)> {
    let (mut op, mut same) = planned(nr, a)?;
    loop {
        super::forget_walk();
        gate::pass(op);
        // What names lead to may be something else by now: then all that was done is to look.
        match planned(nr, a) {
            Some((now, now_same)) if !covers(&op, &now) => (op, same) = (now, now_same),
            _ => return Some((op, same)),
        }
    }
}

/// Announces what the shim is going to do itself instead of a call: true if that is an operation of its own, which has its turn
/// now.
pub fn announce(nr: i64, a: [u64; 6]) -> bool {
    let visible = watches() && turn(nr, &a).is_some();
    super::forget_walk();
    visible
}

/// The same for what has no operation of its own: noted instead.
pub fn note(nr: i64, a: [u64; 6]) {
    if watches() && planned(nr, &a).is_some() {
        unexplored(|| Err(0));
    }
    super::forget_walk();
}

/// Whether the operation `now` concerns nothing that `op` does not.
fn covers(op: &Op, now: &Op) -> bool {
    let same = |a: ObjId, b: ObjId| b == NONE || a == b;
    now.arg & !op.arg == 0 && op.kind == now.kind && same(op.obj, now.obj) && same(op.obj2, now.obj2)
        || !matches!(now.kind, Kind::PATH_LOOK | Kind::PATH_CHANGE | Kind::PATH_TRUNCATE)
}

fn planned(nr: i64, a: &[u64; 6]) -> Option<(Op, u64)> {
    let (op, same) = contents(nr, a).or_else(|| names(nr, a))?;
    if local().borrowed {
        // The child of a vfork is part of its parent's transition.
        unexplored(|| Err(0));
        return None;
    }
    Some((op, same))
}

/// Notes that there is an order that matters and is not explored, with a name for the first such file.
#[cold]
#[inline(never)]
pub(super) fn unexplored(name: impl FnOnce() -> Result<Path, i64>) {
    arena().control.passed[SHARED_FILES.min(MAX_SYSCALLS - 1)] += 1;
    if arena().files.shown_len == 0 {
        with_stack(|| show(name));
    }
}

#[inline(never)]
fn show(name: impl FnOnce() -> Result<Path, i64>) {
    let files = &mut arena().files;
    if let Ok(name) = name() {
        let len = name.get().len().min(files.shown.len());
        files.shown[..len].copy_from_slice(&name.get()[..len]);
        files.shown_len = len as u32;
    }
}

fn logged(name: &Path) {
    let files = &mut arena().files;
    let len = name.get().len().min(files.logged.len());
    if files.logged_len == 0 {
        files.logged[..len].copy_from_slice(&name.get()[..len]);
        files.logged_len = len as u32;
    }
}

pub(super) fn name_of(fd: i32) -> Result<Path, i64> {
    let mut name = Path::new();
    name.of_descriptor(fd)?;
    seen_as(&mut name)?;
    Ok(name)
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
    Some(copied.map_or((dev, ino), |c| (c.dev, c.ino)))
}

/// Notes a use of a file; its object if that is visible. `name` is its path.
///
/// Paths are long, and the stack is the program's: only what is called seldom has them.
pub(super) fn use_of(id: (u64, u64), what: Use, name: impl Fn() -> Result<Path, i64>) -> ObjId {
    let Some(row) = arena().used_file(id).or_else(|| with_stack(|| first_use(id, &name))) else {
        unexplored(name);
        return NONE;
    };
    match arena().use_file(local().cur, row, what) {
        Verdict::Passes => NONE,
        verdict => with_stack(|| judged(verdict, row, &name)),
    }
}

#[inline(never)]
fn first_use(id: (u64, u64), name: impl Fn() -> Result<Path, i64>) -> Option<u32> {
    arena().add_used_file(id, name().map_or(id.1, |name| hash(name.get())))
}

#[inline(never)]
fn judged(verdict: Verdict, row: u32, name: impl Fn() -> Result<Path, i64>) -> ObjId {
    match verdict {
        Verdict::Passes => NONE,
        Verdict::Unexplored => {
            unexplored(name);
            NONE
        }
        Verdict::Logged => {
            if let Ok(name) = name() {
                logged(&name);
            }
            NONE
        }
        Verdict::Visible => object(row, name),
    }
}

#[inline(never)]
fn object(row: u32, name: impl Fn() -> Result<Path, i64>) -> ObjId {
    let Some((obj, new)) = arena().file_object(row) else {
        crate::end::unsupported(&[b"the program shares more files than vsrun can hold"])
    };
    if new && world().objects[obj].key.kind == ObjKind::FILE {
        if let Ok(name) = name() {
            call_it(obj, name.get());
        }
    }
    obj
}

/// The name in reports; where there is no room for it, the object is shown by its number.
pub(super) fn call_it(obj: ObjId, name: &[u8]) {
    world().name_add(&name[name.len().saturating_sub(MAX_NAME)..], obj);
}

pub(super) fn of_descriptor(fd: i32, what: Use) -> ObjId {
    file_of(fd).map_or(NONE, |id| use_of(id, what, || name_of(fd)))
}

/// A read that moves the place of the description: visible too if others read through the same one.
fn moving(fd: i32) -> ObjId {
    let Some(id) = file_of(fd) else { return NONE };
    let reads = use_of(id, Use::Read, || name_of(fd));
    if reads != NONE {
        return reads;
    }
    // One that is not known may be any of the file.
    let name = u64::from(description(fd));
    let id_of_place = (PLACE, if name == 0 { mix(id.0, id.1) } else { name });
    let row = arena().used_file(id_of_place).or_else(|| arena().add_used_file(id_of_place, id_of_place.1));
    let Some(row) = row else {
        unexplored(|| name_of(fd));
        return NONE;
    };
    if arena().use_file(local().cur, row, Use::Write) != Verdict::Visible {
        return NONE;
    }
    arena().used_file(id).map_or(NONE, |file| with_stack(|| object(file, || name_of(fd))))
}

/// What the descriptor may be used for decides what it is to look at the size.
fn size_by(fd: i32) -> Use {
    match only_writes(fd) {
        true => Use::Size,
        false => Use::Read,
    }
}

/// No path, or an empty one.
pub(super) fn is_empty(path: u64) -> bool {
    const FIRST_ADDRESS: u64 = 4096;
    path < FIRST_ADDRESS || load::<u8>(path) == 0
}

/// Calls about the contents of open files.
fn contents(nr: i64, a: &[u64; 6]) -> Option<(Op, u64)> {
    let fd = a[0] as i32;
    let (mut reads, mut writes) = (NONE, NONE);
    let (mut placed, mut bytes) = (true, a[2] as i64);
    let mut from = fd;
    match nr {
        libc::SYS_read | libc::SYS_readv => {
            reads = moving(fd);
            placed = false;
        }
        libc::SYS_pread64 | libc::SYS_preadv => reads = of_descriptor(fd, Use::Read),
        SYS_PREADV2 => {
            reads = of_descriptor(fd, Use::Read);
            placed = a[3] as i64 != -1;
        }
        libc::SYS_write | libc::SYS_writev | libc::SYS_pwrite64 | libc::SYS_pwritev | SYS_PWRITEV2 => {
            writes = of_descriptor(fd, Use::Write);
        }
        libc::SYS_ftruncate => {
            writes = of_descriptor(fd, Use::Write);
            bytes = a[1] as i64;
        }
        libc::SYS_fallocate => {
            writes = of_descriptor(fd, Use::Write);
            bytes = a[3] as i64;
        }
        libc::SYS_sendfile => {
            (from, placed, bytes) = (a[1] as i32, a[2] != 0, a[3] as i64);
            (reads, writes) = (of_descriptor(from, Use::Read), of_descriptor(fd, Use::Write));
        }
        libc::SYS_copy_file_range | libc::SYS_splice => {
            (placed, bytes) = (a[1] != 0, a[4] as i64);
            (reads, writes) = (of_descriptor(fd, Use::Read), of_descriptor(a[2] as i32, Use::Write));
        }
        libc::SYS_fstat => reads = of_descriptor(fd, size_by(fd)),
        libc::SYS_newfstatat if a[3] as i32 & libc::AT_EMPTY_PATH != 0 && is_empty(a[1]) => {
            reads = of_descriptor(fd, size_by(fd));
        }
        libc::SYS_statx if a[2] as i32 & libc::AT_EMPTY_PATH != 0 && is_empty(a[1]) => {
            reads = of_descriptor(fd, size_by(fd));
        }
        libc::SYS_lseek if !matches!(a[2] as i32, libc::SEEK_SET | libc::SEEK_CUR) => {
            reads = of_descriptor(fd, size_by(fd));
            bytes = a[1] as i64;
        }
        _ => return None,
    }
    if reads == NONE && writes == NONE {
        return None;
    }
    let mut op = match (reads, writes) {
        (reads, NONE) => Op::on(Kind::FILE_READ, reads).with(TRY),
        (NONE, writes) => Op::on(Kind::FILE_WRITE, writes),
        (reads, writes) if reads != writes => Op { obj2: reads, ..Op::on(Kind::FILE_COPY, writes) },
        (_, writes) => Op::on(Kind::FILE_WRITE, writes),
    };
    op.mask = if placed { PLACED } else { description(from) };
    op.arg = bytes;
    op.deadline = nr as u64 | (fd as u64 & 0xffff) << 16;
    let mut same = 0;
    if op.kind == Kind::FILE_READ {
        let place = match nr {
            libc::SYS_pread64 | libc::SYS_preadv => a[3] as i64,
            _ => raw!(libc::SYS_lseek, fd, 0, libc::SEEK_CUR),
        };
        same = mix(u64::from(reads) << 16 | nr as u64, place as u64) | 1;
    }
    Some((op, same))
}

pub(super) fn copy_of(path: &Path) -> Path {
    let mut copy = Path::new();
    let _fits = copy.set(&[path.get()]);
    copy
}

/// A mapping of a file: what is done to it there is not seen, from now on until the process ends. Shared memory of other kinds has no
/// name in the file system, or is in /dev/shm: it is taken for shared memory like any other.
pub fn mapped(fd: i32, prot: i32, shared: bool) {
    if matches!(local().phase, Phase::BeforeRoot | Phase::Off) {
        return;
    }
    if let Some(id) = file_of(fd) {
        with_stack(|| keep(id, fd, shared && prot & libc::PROT_WRITE != 0));
    }
}

#[inline(never)]
fn keep(id: (u64, u64), fd: i32, writes: bool) {
    let name = || name_of(fd);
    if name().is_ok_and(|name| name.get().starts_with(b"/dev/shm/")) {
        return;
    }
    let mut visible = use_of(id, Use::Read, name) != NONE;
    if writes {
        visible |= use_of(id, Use::Write, name) != NONE;
    }
    if visible {
        unexplored(name);
    }
    if let Some(row) = arena().used_file(id) {
        arena().keep_using(local().cur, row, writes);
    }
}
