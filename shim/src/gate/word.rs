//! The futex words by which the turn goes from process to process, see `turn`.

use vsrun_model::Pid;

use super::process_of;
use crate::sys::{load, raw, store};

const FUTEX_WAIT: i32 = 0;
const FUTEX_WAKE: i32 = 1;
/// How long one looks before somebody else is looked after.
const LOOK: [i64; 2] = [0, 200_000_000];

/// Gives the turn to process `p`: its kernel thread goes on with fiber `World::current`.
pub fn wake(p: Pid) {
    let word = &raw mut process_of(p).turn as u64;
    store(word, 1u32);
    raw!(libc::SYS_futex, word, FUTEX_WAKE, 1);
}

/// Process `p`, if it waits, is to look.
pub fn nudge(p: Pid) {
    let word = &raw mut process_of(p).turn as u64;
    raw!(libc::SYS_futex, word, FUTEX_WAKE, 1);
}

/// Waits until process `p`, this one, is given the turn; meanwhile `look` is called now and then.
pub fn wait(p: Pid, look: Option<fn()>) {
    let word = &raw mut process_of(p).turn as u64;
    let limit = if look.is_some() { LOOK.as_ptr() as u64 } else { 0 };
    while load::<u32>(word) == 0 {
        raw!(libc::SYS_futex, word, FUTEX_WAIT, 0, limit);
        if let Some(look) = look.filter(|_| load::<u32>(word) == 0) {
            look();
        }
    }
    store(word, 0u32);
}
