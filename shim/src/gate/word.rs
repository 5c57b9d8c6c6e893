//! The futex words by which the turn goes from process to process, see `turn`.

use vsrun_model::back::Turn;
use vsrun_model::Pid;

use super::{back, process_of};
use crate::sys::{load, raw, store, store_over};

const FUTEX_WAIT: i32 = 0;
const FUTEX_WAKE: i32 = 1;
/// How long one looks before somebody else is looked after.
const LOOK: [i64; 2] = [0, 200_000_000];

/// Gives the turn to process `p`: its kernel thread goes on with fiber `World::current`.
pub fn wake(p: Pid) {
    // That of the world is the last, as it takes the turn there, wherever it waits.
    if let Some(word) = back::other_word(p) {
        store(word, Turn::TAKES);
        raw!(libc::SYS_futex, word, FUTEX_WAKE, 1);
    }
    let word = &raw mut process_of(p).turn as u64;
    store(word, Turn::TAKES);
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
    loop {
        match load::<Turn>(word) {
            Turn::NONE => {
                raw!(libc::SYS_futex, word, FUTEX_WAIT, Turn::NONE.0, limit);
                if let Some(look) = look.filter(|_| load::<Turn>(word) == Turn::NONE) {
                    look();
                }
            }
            Turn::OBEYS => {
                store_over(word, Turn::OBEYS.0, Turn::NONE.0);
                back::obeys();
            }
            _ => {
                if !back::is_late() {
                    break;
                }
                back::catches_up();
            }
        }
    }
    store(word, Turn::NONE);
    back::moves();
}
