//! Checkpoints that are processes: an original stands still, and its copies go on. See NOTE \[Copies\] of `vsrun_model::back`.

use vsrun_model::back::{Hinders, Stand, Turn, MAX_MARKS};

use super::said::{answer, await_word, say, wake};
use super::{arena, birth, local, machine};
use crate::sys::bare::bare;
use crate::sys::track::track;
use crate::sys::{any_of, decimal, die, load, store, store_over};

/// Who comes out of [`copy`].
enum Copy {
    /// The first copy: the execution that is under way goes on.
    First,
    /// A later one: an execution begins here.
    Again,
    /// There is none.
    Refused,
}

/// The process, which has the turn before the first choice, is copied; returns in each copy that goes on from here.
pub(super) fn stand() -> Result<(), Hinders> {
    shares_nothing()?;
    match copy(arena().back.place) {
        Copy::First => waits(Stand::STOPPED),
        Copy::Again => machine().has_moved(local().pid),
        Copy::Refused => return Err(Hinders::COPIES),
    }
    Ok(())
}

/// The same before another choice.
pub(super) fn mark() {
    if arena().back.slot >= MAX_MARKS as u32 || shares_nothing().is_err() {
        return machine().marks_no_more();
    }
    match copy(arena().back.place) {
        Copy::First => {
            machine().has_marked();
            waits(Stand::MARKED);
        }
        Copy::Again => machine().has_moved(local().pid),
        Copy::Refused => machine().marks_no_more(),
    }
}

/// The process, which waits for its turn, has been told to be copied. It waits on.
pub(super) fn obey() {
    match copy(arena().back.place) {
        Copy::First => answer(Ok(())),
        Copy::Again => {}
        Copy::Refused => answer(Err(Hinders::COPIES)),
    }
}

/// What processes share by names, and files that are written, nobody puts back.
fn shares_nothing() -> Result<(), Hinders> {
    let shares = arena().files.used != 0 || arena().control.shm_used != 0;
    if shares {
        Err(Hinders::SHARED)
    } else {
        Ok(())
    }
}

/// Says that the copy is where it is, and waits until vsrun lets it go on.
fn waits(stand: Stand) {
    say(stand);
    let Some(word) = machine().back_word(local().pid) else { die(0) };
    loop {
        match load::<Turn>(word) {
            Turn::TAKES => break,
            // It has taken that order at its other word.
            Turn::OBEYS => store_over(word, Turn::OBEYS.0, Turn::NONE.0),
            _ => await_word(word),
        }
    }
    store(word, Turn::NONE);
    machine().has_moved(local().pid);
}

/// From now on it is seen what this process does that is outside of it, if originals stand still: copies have not done that.
pub fn follows() {
    if machine().copies() {
        track().copied.outside = Some(leaves);
    }
}

/// The process makes a call that may leave something. What is in vsrun's private directory does not outlive the execution, and all that changes names does that
/// there: where real files are changed no originals stand still.
fn leaves(nr: i64, a: [u64; 6]) {
    if !changes_names(nr) && !is_private(a[0]) {
        machine().does_not_go_back(Hinders(nr as u32));
    }
}

const fn changes_names(nr: i64) -> bool {
    matches!(
        nr,
        any_of!(
            SYS_mkdir SYS_mkdirat SYS_rmdir SYS_unlink SYS_unlinkat SYS_rename SYS_renameat SYS_renameat2 SYS_link SYS_linkat
            SYS_symlink SYS_symlinkat SYS_mknod SYS_mknodat SYS_creat SYS_truncate SYS_chmod SYS_fchmodat SYS_chown SYS_lchown
            SYS_fchownat SYS_utime SYS_utimes SYS_utimensat SYS_futimesat
        )
    )
}

/// Descriptor `fd` is of a file in vsrun's private directory.
fn is_private(fd: u64) -> bool {
    let mut link = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0\0";
    let number = decimal(fd as i32);
    let place = 14..14 + number.len();
    link[place].copy_from_slice(&number);
    let mut found = [0u8; 256];
    let n = bare(libc::SYS_readlink, [link.as_ptr() as u64, found.as_mut_ptr() as u64, found.len() as u64, 0, 0, 0]);
    let path = &arena().control.shim_path;
    let end = path.iter().position(|&b| b == 0).unwrap_or(path.len());
    let dir = &path[..path[..end].iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1)];
    n > 0 && !dir.is_empty() && found[..n as usize].starts_with(dir)
}

/// The process stands still in that place from now on; its copies come back.
fn copy(place: u32) -> Copy {
    let known = machine().original_word(place).filter(|_| !local().borrowed && !track().copied.lacks);
    let Some(word) = known else { return Copy::Refused };
    follows();
    store(word, Turn::NONE);
    machine().is_original(bare(libc::SYS_getpid, [0; 6]) as i32);
    let mut comes = Copy::First;
    loop {
        match (birth::brother(), &comes) {
            (0, _) => {
                machine().stands_for_none(local().pid);
                birth::begin();
                return comes;
            }
            (..0, Copy::First) => return Copy::Refused,
            (..0, _) => {
                machine().goes_astray();
                machine().does_not_go_back(Hinders::COPIES);
                wake();
                die(0)
            }
            _ => {}
        }
        comes = Copy::Again;
        while load::<Turn>(word) == Turn::NONE {
            await_word(word);
        }
        store(word, Turn::NONE);
    }
}
