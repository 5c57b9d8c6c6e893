//! What processes that go back, or stand still, say to vsrun, and how they wait for what it says: see `vsrun_model::back`.

use vsrun_model::back::{Hinders, Stand, Turn};

use super::{local, machine};
use crate::sys::bare::bare;
use crate::sys::store;

/// Says how far the process is.
pub(super) fn say(stand: Stand) {
    store(machine().stand_word(local().pid), stand);
    wake();
}

/// vsrun looks.
pub(super) fn wake() {
    bare(libc::SYS_futex, [machine().stand_word(local().pid), libc::FUTEX_WAKE as u64, 1, 0, 0, 0]);
}

/// Says what has become of what the process was told to do.
pub(super) fn answer(done: Result<(), Hinders>) {
    let p = local().pid;
    machine().answers(p, done);
    bare(libc::SYS_futex, [machine().answer_word(p), libc::FUTEX_WAKE as u64, 1, 0, 0, 0]);
}

/// Waits until the word may be another than [`Turn::NONE`].
pub(super) fn await_word(at: u64) {
    bare(libc::SYS_futex, [at, libc::FUTEX_WAIT as u64, Turn::NONE.0.into(), 0, 0, 0]);
}
