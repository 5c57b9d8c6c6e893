//! The guard of a variable inside of a function that is to be initialized (libstdc++ on x86-64): its first byte is 1 once that is done, which
//! the compiler looks at first; here a once control. libstdc++ gives it back, and wakes who waits by futex.

use vsrun_model::{Kind, Op, NONE};

use super::{futex, sync};
use crate::gate::{self, mirror, world};
use crate::sys::{load, store};

const GUARD_DONE: i32 = 1;
const GUARD_PENDING: i32 = 1 << 8;
const GUARD_WAITED_FOR: i32 = 1 << 16;

/// __cxa_guard_acquire: 1 if the caller is to initialize the variable.
pub fn acquire(guard: u64) -> i32 {
    loop {
        let word: i32 = load(guard);
        if word & 0xff != 0 {
            return 0;
        }
        if !world().concurrent && word == 0 {
            store(guard, GUARD_PENDING);
            return 1;
        }
        let id = sync::guard(guard);
        if word != 0 && world().objects[id].owner == NONE {
            // Begun before there were others, or by a thread that a fork left behind.
            let waited_for = word | GUARD_WAITED_FOR;
            store(guard, waited_for);
            futex::call([guard, libc::FUTEX_WAIT as u64, waited_for as u64, 0, 0, 0]);
            continue;
        }
        if gate::pass(Op::on(Kind::ONCE, id)) != 0 {
            return 0;
        }
        store(guard, GUARD_PENDING);
        mirror::once_entered(id, guard, GUARD_DONE);
        return 1;
    }
}
