//! Who uses which file: noted in the model, with names that reports can show.

use vsrun_model::file::{Use, Verdict};
use vsrun_model::object::SHARED;
use vsrun_model::{ObjId, ObjKind, MAX_NAME, NONE};

use super::descriptors::{description, file_of, prints};
use super::layer::{seen_as, watches};
use super::path::{hash, Path, Stat};
use super::room::with_stack;
use crate::gate::{arena, end, local, machine, model, world};
use crate::sys::hex;

/// Notes that there is an order that matters and is not explored, with a name for the first such file.
#[cold]
#[inline(never)]
pub(super) fn unexplored(name: impl FnOnce() -> Result<Path, i64>) {
    if machine().note_unexplored() {
        with_stack(|| show(name));
    }
}

#[inline(never)]
fn show(name: impl FnOnce() -> Result<Path, i64>) {
    if let Ok(name) = name() {
        machine().show_unexplored(name.get());
    }
}

/// The file is shared memory: in /dev/shm, or a memfd.
#[inline(never)]
pub(super) fn is_memory(fd: i32) -> bool {
    name_of_file(fd).is_ok_and(|name| name.get().starts_with(b"/dev/shm/") || name.get().starts_with(b"/memfd:"))
}

pub(super) fn name_of(fd: i32) -> Result<Path, i64> {
    let mut name = Path::new();
    name.of_descriptor(fd)?;
    seen_as(&mut name)?;
    Ok(name)
}

/// The same for a file, which may have lost its name, or never had one: the same in every execution, so without the number of its
/// inode.
pub(super) fn name_of_file(fd: i32) -> Result<Path, i64> {
    let mut name = name_of(fd)?;
    let Some(len) = name.get().strip_suffix(GONE).map(<[u8]>::len) else { return Ok(name) };
    if Stat::of_fd(fd).is_ok_and(|stat| stat.links() > 0) {
        return Ok(name);
    }
    name.cut(len);
    let (last, _) = name.split();
    let is_number = name.get().get(last..).and_then(|last| last.strip_prefix(b"#"));
    if is_number.is_some_and(|digits| digits.iter().all(u8::is_ascii_digit)) {
        name.cut(last + 1);
    } else if name.get().starts_with(b"/memfd:") {
        name.add(b"#")?;
    } else {
        return Ok(name);
    }
    // Of several, by who made them.
    name.add(&hex(description(fd).into())[8..])?;
    Ok(name)
}

/// What the kernel adds to the path of a file without a name.
const GONE: &[u8] = b" (deleted)";

/// Notes a use of a file; its object if that is visible. `name` is its path.
///
/// Paths are long, and the stack is the program's: only what is called seldom has them.
pub(super) fn use_of(id: (u64, u64), what: Use, name: impl Fn() -> Result<Path, i64>) -> ObjId {
    let Some(row) = arena().used_file(id).or_else(|| with_stack(|| first_use(id, &name))) else {
        unexplored(name);
        return NONE;
    };
    match machine().use_file(local().cur, row, what) {
        Verdict::Passes => NONE,
        verdict => with_stack(|| judged(verdict, row, &name)),
    }
}

#[inline(never)]
pub(super) fn first_use(id: (u64, u64), name: impl Fn() -> Result<Path, i64>) -> Option<u32> {
    machine().add_used_file(id, name().map_or(id.1, |name| hash(name.get())))
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
                machine().show_logged(name.get());
            }
            NONE
        }
        Verdict::Visible => object(row, name),
    }
}

#[inline(never)]
pub(super) fn object(row: u32, name: impl Fn() -> Result<Path, i64>) -> ObjId {
    let Some((obj, new)) = machine().file_object(row) else {
        end::no_room(&[b"the program shares more files than vsrun can hold"])
    };
    if new && world().objects[obj].key.kind == ObjKind::FILE {
        if let Ok(name) = name() {
            call_it(obj, name.get());
        }
    }
    obj
}

/// The object that stands for all names.
pub(super) fn all_names() -> ObjId {
    model()
        .object_at(SHARED, ObjKind::PATHS, 0, 0)
        .unwrap_or_else(|| end::no_room(&[b"the program shares more files than vsrun can hold"]))
}

/// The name in reports; where there is no room for it, the object is shown by its number.
pub(super) fn call_it(obj: ObjId, name: &[u8]) {
    model().name_add(&name[name.len().saturating_sub(MAX_NAME)..], obj);
}

/// Several threads change the file of that descriptor in an order that nothing decides, though not by calls of their own: in the
/// buffer of a stream. True: somebody reads it.
pub fn written_in_turn(fd: i32) -> bool {
    if prints(fd) {
        return true;
    }
    let Some(id) = file_of(fd).filter(|_| watches()) else { return false };
    let first = || with_stack(|| first_use(id, || name_of_file(fd)));
    // Without room for it nobody is known to read it.
    arena().used_file(id).or_else(first).is_none_or(|row| machine().log_file(row))
}

pub(super) fn of_descriptor(fd: i32, what: Use) -> ObjId {
    file_of(fd).map_or(NONE, |id| use_of(id, what, || name_of_file(fd)))
}
