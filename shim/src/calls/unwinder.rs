//! What libc unwinds with. libgcc_s is loaded for the first thread that ends by pthread_exit, asks another to end, or asks for its stack
//! (`__libc_unwind_link_get` in glibc): under the loader's lock, with a descriptor of its own. Who comes later finds it loaded, which no call
//! tells. So it is loaded here, before libc's function is called, and where others can tell how far that is, it is an object that is initialized once
//! (see `vsrun_model::sharing`).
//!
//! libc lets two load at once: the second waits for the loader's lock, finds the library there, and gives it back. Here it waits for the first, which
//! waits for that lock: the same circles come of both.

use vsrun_model::{Kind, Op, NONE};

use super::sync;
use super::thread::{call1, call2, libc_functions, thread_of};
use crate::gate::{self, local, machine, me, mirror, world};
use crate::sys::elf;

/// The word of a once control whose initializer runs.
const UNDER_WAY: i32 = 1;

/// libc is about to be asked for what needs it.
pub fn ready() {
    if libc_functions().backtrace == 0 || local().borrowed || me().loads {
        return;
    }
    if !world().concurrent || !machine().loading_is_told() {
        if local().unwinder != mirror::ONCE_DONE {
            load();
        }
        return;
    }
    let control = &raw mut local().unwinder as u64;
    let id = sync::unwinder(control);
    if gate::pass(Op::on(Kind::ONCE, id)) == 0 {
        mirror::once_entered(id, control, mirror::ONCE_DONE);
        load();
        mirror::settle_onces();
    }
}

/// `backtrace` of nothing does the loading and no more. Where there is no such library nothing has changed, and libc's own function, which tries again,
/// says so.
fn load() {
    let t = local().cur;
    local().unwinder = UNDER_WAY;
    let asks = core::mem::replace(&mut gate::fiber().asks_to_end, true);
    machine().loads(t, true);
    call2(libc_functions().backtrace, 0, 0);
    machine().loads(t, false);
    gate::fiber().asks_to_end = asks;
    let is_there = elf::find_map(|map| elf::is_named(map, b"/libgcc_s.so.")).is_some();
    local().unwinder = if is_there { mirror::ONCE_DONE } else { 0 };
}

/// pthread_cancel. The first time, libc loads what unwinds, before it asks the thread to end: others may tell which descriptors that
/// uses, and the thread that is asked may go on meanwhile.
pub fn cancel(pthread: u64) -> i32 {
    let t = thread_of(pthread);
    if t != NONE {
        machine().note_cancels();
        ready();
        gate::pass(Op::on(Kind::CANCEL, t));
        if !world().threads[t].alive() {
            return 0;
        }
    }
    asking(|| call1(libc_functions().pthread_cancel, pthread))
}

/// What libc calls for that is no call of the program's.
fn asking(call: impl FnOnce() -> i32) -> i32 {
    gate::fiber().asks_to_end = true;
    let result = call();
    gate::fiber().asks_to_end = false;
    result
}
