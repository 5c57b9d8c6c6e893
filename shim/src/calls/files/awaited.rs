//! What the processes of `--with` may wait for (`--clients`): that there is a file, or that the program has printed a text.

use vsrun_model::closing::{Awaits, MAX_AWAITED_TEXT};
use vsrun_model::object::SHARED;
use vsrun_model::{ObjId, ObjKind, NONE};

use super::answer::ask;
use super::calls::changes;
use super::descriptors::know_output;
use super::layer::watches;
use super::path::Stat;
use super::uses::call_it;
use crate::gate::{arena, machine, model, world};
use crate::sys::{any_of, load};

/// The address of the object that the program's output is. Those of files are hashes.
const OUTPUT: u64 = 1;

/// Before anything of the program runs: what there is already, and what its output is.
pub fn expect() {
    match arena().closing.awaits {
        Awaits::FILE => look(),
        Awaits::OUTPUT => {
            let id = |fd: i32| Stat::of_fd(fd).map_or((0, 0), |stat| stat.id());
            machine().set_outputs([id(1), id(2)]);
            know_output();
            let output = the_output();
            if output != NONE {
                call_it(output, b"output");
            }
        }
        _ => {}
    }
}

/// A call has been performed that may have made a name: clients may begin if it is the one that they wait for.
pub fn names_made(nr: i64) {
    if arena().closing.awaits != Awaits::FILE || world().met != 0 || !watches() {
        return;
    }
    if changes(nr) || matches!(nr, any_of!(SYS_open SYS_openat)) {
        look();
    }
}

/// Looks whether the file is there.
///
/// Its path has been worked out before, without symbolic links, and it is followed without any here. So whether it is there is decided by
/// the names on that path alone, and of two operations that matter for it each changes such a name, or goes by one that the other changes: they
/// depend on each other.
#[cold]
#[inline(never)]
fn look() {
    let len = world().awaited_text().len();
    let mut names = (1..len).filter(|&at| world().awaited_text()[at] == b'/');
    if kind_of(len).is_some() && names.all(|at| kind_of(at) == Some(libc::S_IFDIR)) {
        model().meets_clients();
    }
}

/// What the first `len` bytes of the path lead to.
fn kind_of(len: usize) -> Option<u32> {
    const HERE: u64 = libc::AT_FDCWD as u64;
    machine().cut_awaited(len.min(MAX_AWAITED_TEXT - 1));
    let mut stat = [0u64; 18];
    let path = arena().closing.part.as_ptr() as u64;
    let args = [HERE, path, stat.as_mut_ptr() as u64, libc::AT_SYMLINK_NOFOLLOW as u64, 0, 0];
    (ask(libc::SYS_newfstatat, args) == 0).then_some(stat[3] as u32 & libc::S_IFMT)
}

/// The program's output as an object: whether it comes to the text depends on the order of all that is written there.
pub(super) fn the_output() -> ObjId {
    model().object_at(SHARED, ObjKind::FILE, OUTPUT, 0).unwrap_or(NONE)
}

/// That object is it.
pub(super) fn is_the_output(obj: ObjId) -> bool {
    arena().closing.awaits == Awaits::OUTPUT && obj == the_output()
}

/// A call has written `result` bytes to the program's output.
#[cold]
#[inline(never)]
pub(super) fn printed(nr: i64, a: &[u64; 6], result: i64) {
    let mut left = result.max(0) as u64;
    let mut piece = |at: u64, len: u64| {
        let n = len.min(left);
        left -= n;
        model().printed((at..at + n).map(load::<u8>));
    };
    match nr {
        libc::SYS_write | libc::SYS_pwrite64 => piece(a[1], a[2]),
        libc::SYS_writev | libc::SYS_pwritev | libc::SYS_pwritev2 => {
            (0..a[2]).for_each(|i| piece(load(a[1] + 16 * i), load(a[1] + 16 * i + 8)));
        }
        _ => {}
    }
}
