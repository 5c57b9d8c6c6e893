//! Uses of files that may be visible operations: who uses what is noted, and what is known to be shared is published before
//! the kernel is asked. What it means is the model's: `vsrun_model::file`.

use vsrun_model::arena::Region;
use vsrun_model::closing::Awaits;
use vsrun_model::file::{Use, Verdict, CELL, PLACE, PLACED};
use vsrun_model::op::TRY;
use vsrun_model::world::{ONE_STEP, PLACE_UNLOCKED};
use vsrun_model::{Kind, ObjId, ObjKind, Op, NONE};

use super::awaited::{is_the_output, names_made, printed, the_output};
use super::descriptors::{description, file_of, made, only_reads, only_writes, prints};
use super::layer::watches;
use super::moves::Moves;
use super::names::names;
use super::path::{is_empty, mix};
use super::room::{forget_walk, with_stack};
use super::states::Uses;
use super::uses::{all_names, first_use, is_memory, name_of_file, object, of_descriptor, unexplored, use_of};
use crate::gate::{self, arena, fiber, local, machine, model, world, Phase};
use crate::sys::errno::{EEXIST, ENOENT};
use crate::sys::{any_of, raw};

/// Performs a call with `kernel`, after a visible operation if it uses what is shared.
pub fn using(nr: i64, a: [u64; 6], kernel: impl FnOnce() -> i64) -> i64 {
    let turn = if watches() { turn(nr, &a) } else { None };
    if turn.is_none() && !local().borrowed {
        gate::place_for_handlers(nr);
    }
    let moves = Moves::of(nr, &a);
    let result = kernel();
    forget_walk();
    moves.done(nr, result);
    awaited(nr, &a, result);
    made(nr, &a, result);
    if let Some(file) = local().removes.take().filter(|_| result >= 0) {
        machine().file_removed(file);
    }
    let Some((op, same)) = turn else { return result };
    // What collects the program's output stands for what nobody reads while it is written.
    let kept = !is_the_output(op.obj);
    if kept
        && moves_place(nr)
        && world().is_used_beside(local().cur, &op)
        && (is_memfd(a[0]) || is_memfd(second(nr, &a)))
    {
        model().never_comes(PLACE_UNLOCKED);
    }
    // A page or more is moved piece by piece, and readers have no lock on most file systems.
    const PIECE: i64 = 4096;
    if kept && result > PIECE && world().is_seen_in_part(local().cur, &op) {
        model().never_comes(ONE_STEP);
    }
    // In vain: there is nothing, or not yet, or it is there already, or it is what it was.
    let vain = matches!(result, ENOENT | EEXIST) || same != 0 && same == fiber().looked;
    model().note_use(local().cur, op.tries(), vain);
    fiber().looked = same;
    result
}

/// What clients may wait for has come with a call.
#[inline]
fn awaited(nr: i64, a: &[u64; 6], result: i64) {
    match arena().closing.awaits {
        Awaits::FILE if result >= 0 => names_made(nr),
        Awaits::OUTPUT if result > 0 && writes(nr) && prints(a[0] as i32) => printed(nr, a, result),
        _ => {}
    }
}

/// Calls that write what is in the memory of the program.
fn writes(nr: i64) -> bool {
    matches!(nr, any_of!(SYS_write SYS_writev SYS_pwrite64 SYS_pwritev SYS_pwritev2))
}

/// The call uses the place of a description.
fn moves_place(nr: i64) -> bool {
    matches!(
        nr,
        any_of!(
            SYS_read SYS_readv SYS_preadv2 SYS_write SYS_writev SYS_pwritev2 SYS_lseek SYS_sendfile SYS_splice SYS_copy_file_range
        )
    )
}

/// The second descriptor of a call, or the first again.
fn second(nr: i64, a: &[u64; 6]) -> u64 {
    match nr {
        libc::SYS_sendfile => a[1],
        libc::SYS_splice | libc::SYS_copy_file_range => a[2],
        _ => a[0],
    }
}

/// Of descriptions that are not opened by a name the kernel does not lock the place (fs/open.c, do_dentry_open: FMODE_ATOMIC_POS). What is
/// no descriptor is none.
#[inline(never)]
fn is_memfd(number: u64) -> bool {
    number < 1 << 31 && with_stack(|| name_of_file(number as i32).is_ok_and(|name| name.get().starts_with(b"/memfd:")))
}

/// Waits until the operation has been performed that a call is, if it is one.
fn turn(nr: i64, a: &[u64; 6]) -> Option<(Op, u64)> {
    let (mut op, mut same) = planned(nr, a)?;
    loop {
        forget_walk();
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
    forget_walk();
    visible
}

/// The same for what has no operation of its own: noted instead.
pub fn note(nr: i64, a: [u64; 6]) {
    if watches() && planned(nr, &a).is_some() {
        unexplored(|| Err(0));
    }
    forget_walk();
}

/// Whether the operation `now` concerns nothing that `op` does not.
fn covers(op: &Op, now: &Op) -> bool {
    let same = |a: ObjId, b: ObjId| b == NONE || a == b;
    now.arg & !op.arg == 0 && op.kind == now.kind && same(op.obj, now.obj) && same(op.obj2, now.obj2)
        || world().objects.get(now.obj).is_none_or(|o| o.key.kind != ObjKind::PATHS)
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

/// A read that moves the place of the description: visible too if others read through the same one.
fn moving(fd: i32) -> ObjId {
    // Noted where the file is visible too: who sets the place need not use what the file holds.
    let place = at_place(fd, Use::Write);
    match of_descriptor(fd, Use::Read) {
        NONE => place,
        reads => reads,
    }
}

/// A use of the place of the description: it is told, or moved.
fn at_place(fd: i32, what: Use) -> ObjId {
    let Some(id) = file_of(fd) else { return NONE };
    let Some(file) = arena().used_file(id).or_else(|| with_stack(|| first_use(id, || name_of_file(fd)))) else {
        unexplored(|| name_of_file(fd));
        return NONE;
    };
    let number = arena().files.used_files[file].number;
    // A description that is not known may be any of the file: its use goes with those of all others.
    let visible = match u64::from(description(fd)) {
        0 => uses_place(number, Use::Write),
        own => uses_place(number, Use::Read) | uses_place(mix(number, own), what),
    };
    match visible {
        true => with_stack(|| object(file, || name_of_file(fd))),
        false => NONE,
    }
}

/// Notes a use of the place of that name; true if it is visible.
fn uses_place(name: u64, what: Use) -> bool {
    let id = (PLACE, name);
    let Some(row) = arena().used_file(id).or_else(|| machine().add_used_file(id, name)) else {
        unexplored(|| Err(0));
        return false;
    };
    machine().use_file(local().cur, row, what) == Verdict::Visible
}

/// lseek to `offset` from the place, which it tells: that depends on who has moved it, and on who has written before where what is
/// written is appended, or through the same description.
fn place_told(fd: i32, offset: i64) -> ObjId {
    let written = if only_reads(fd) { NONE } else { of_descriptor(fd, Use::Read) };
    match written {
        NONE => at_place(fd, if offset == 0 { Use::Read } else { Use::Write }),
        written => written,
    }
}

/// What the descriptor may be used for decides what it is to look at the size.
fn size_by(fd: i32) -> Use {
    match only_writes(fd) {
        true => Use::Size,
        false => Use::Read,
    }
}

/// It looks at an open file.
fn is_fstat(nr: i64, a: &[u64; 6]) -> bool {
    match nr {
        libc::SYS_fstat => true,
        libc::SYS_newfstatat => a[3] as i32 & libc::AT_EMPTY_PATH != 0 && is_empty(a[1]),
        libc::SYS_statx => a[2] as i32 & libc::AT_EMPTY_PATH != 0 && is_empty(a[1]),
        _ => false,
    }
}

/// Calls about the contents of open files.
fn contents(nr: i64, a: &[u64; 6]) -> Option<(Op, u64)> {
    let fd = if nr == libc::SYS_mmap { a[4] } else { a[0] } as i32;
    let (mut reads, mut writes) = (NONE, NONE);
    let (mut placed, mut bytes) = (true, a[2] as i64);
    let mut from = fd;
    match nr {
        libc::SYS_read | libc::SYS_readv => {
            reads = moving(fd);
            placed = false;
        }
        libc::SYS_pread64 | libc::SYS_preadv => reads = of_descriptor(fd, Use::Read),
        libc::SYS_preadv2 => {
            reads = of_descriptor(fd, Use::Read);
            placed = a[3] as i64 != -1;
        }
        libc::SYS_write | libc::SYS_writev | libc::SYS_pwrite64 | libc::SYS_pwritev | libc::SYS_pwritev2 => {
            writes = match prints(fd) {
                true => the_output(),
                false => of_descriptor(fd, Use::Write),
            };
        }
        libc::SYS_mmap => {
            bytes = a[1] as i64;
            reads = of_descriptor(fd, Use::Read);
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
        libc::SYS_fgetxattr | libc::SYS_flistxattr => reads = of_descriptor(fd, Use::Read),
        libc::SYS_fstat => reads = of_descriptor(fd, size_by(fd)),
        libc::SYS_newfstatat if a[3] as i32 & libc::AT_EMPTY_PATH != 0 && is_empty(a[1]) => {
            reads = of_descriptor(fd, size_by(fd));
        }
        libc::SYS_statx if a[2] as i32 & libc::AT_EMPTY_PATH != 0 && is_empty(a[1]) => {
            reads = of_descriptor(fd, size_by(fd));
        }
        libc::SYS_lseek => {
            (placed, bytes) = (false, a[1] as i64);
            reads = match a[2] as i32 {
                // Where a write through the same description goes depends on it.
                libc::SEEK_SET if !only_reads(fd) => match of_descriptor(fd, Use::Read) {
                    NONE => at_place(fd, Use::Write),
                    written => written,
                },
                libc::SEEK_SET => at_place(fd, Use::Write),
                libc::SEEK_CUR => place_told(fd, bytes),
                _ => match of_descriptor(fd, size_by(fd)) {
                    NONE => at_place(fd, Use::Write),
                    reads => reads,
                },
            };
        }
        _ => return None,
    }
    if is_fstat(nr, a) {
        let mut cells = Uses::NOTHING;
        if let Some(id) = file_of(fd) {
            cells.links(id, || name_of_file(fd), Use::Read);
        }
        if cells.set != 0 {
            let mut op = Op { obj2: reads, ..Op::on(Kind::PATH_LOOK, all_names()) }.with(TRY).arg(cells.set);
            (op.mask, op.deadline) = (cells.shown, nr as u64);
            return Some((op, mix(cells.set as u64, nr as u64) | 1));
        }
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
    op.deadline = nr as u64 | (gate::shown(fd) as u64 & 0xffff) << 16;
    let mut same = 0;
    if op.kind == Kind::FILE_READ {
        let place = match nr {
            libc::SYS_pread64 | libc::SYS_preadv => a[3] as i64,
            libc::SYS_mmap => a[5] as i64,
            _ => raw!(libc::SYS_lseek, fd, 0, libc::SEEK_CUR),
        };
        same = mix(u64::from(reads) << 16 | nr as u64, place as u64) | 1;
    }
    Some((op, same))
}

/// mmap of a file, by `kernel`. Of shared memory that has a name or a descriptor the size decides whether what is mapped can be used
/// (SIGBUS), so the mapping looks at it; of other files see [`mapped`].
pub fn mapping(a: [u64; 6], kernel: impl FnOnce() -> i64) -> i64 {
    match watches() && with_stack(|| is_memory(a[4] as i32)) {
        true => using(libc::SYS_mmap, a, kernel),
        false => kernel(),
    }
}

/// A mapping of a file: what is done to it there is not seen, from now on until the process ends. Shared memory of other kinds has no
/// name in the file system, or is in /dev/shm: it is taken for shared memory like any other.
pub fn mapped(fd: i32, prot: i32, shared: bool) {
    if matches!(local().phase, Phase::BeforeRoot | Phase::Off) {
        return;
    }
    if let Some(id) = file_of(fd) {
        let writes = shared && prot & libc::PROT_WRITE != 0;
        with_stack(|| keep(id, fd, shared, writes));
        with_stack(|| private(id, fd, shared, writes));
    }
}

/// A page that is mapped privately is the file's until it is written there: what is stored through another mapping, at other addresses, may be
/// seen there or not, and is not looked for.
#[inline(never)]
fn private((dev, ino): (u64, u64), fd: i32, shared: bool, writes: bool) {
    const PRIVATELY: u64 = 0x7072_6976_6174_656c;
    let row = (CELL, mix(mix(dev, ino), PRIVATELY));
    let mixed = match (shared, arena().used_file(row)) {
        (true, row) => writes && row.is_some(),
        (false, known) => {
            let written = |r: &Region| (r.dev, r.ino) == (dev + 1, ino) && r.written != 0;
            known.is_none() && machine().add_used_file(row, row.1).is_none()
                || arena().regions.as_slice().iter().any(written)
        }
    };
    if mixed {
        unexplored(|| name_of_file(fd));
    }
}

#[inline(never)]
fn keep(id: (u64, u64), fd: i32, shared: bool, writes: bool) {
    let name = || name_of_file(fd);
    if shared && is_memory(fd) {
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
        machine().keep_using(local().cur, row, writes);
    }
}
