//! Store buffers (`--memory tso`): what a thread stores to memory that is an object comes out of its buffer later, in order, at a moment that is
//! explored; until then the thread alone sees it (Sewell, Sarkar, Owens, Nardelli, Myreen: x86-TSO, CACM 2010).
//!
//! NOTE [Buffers] A store is no operation where it goes into the buffer; that it comes out is one, `MEM_WRITE`. Between two uses of such memory by a
//! thread any number of its stores may come out: how many is a toss right behind the first of the two, and each is an operation of
//! that thread. Later, in the code that follows, would be the same to others, and give that code an order with their uses which it need
//! not have. A store may come out at once, with all that is in the buffer: then it is an operation as without buffers.
//! NOTE [Own view] The program's own instruction stores and loads. What it stores is taken back when its thread comes to the gate next, before
//! anybody else moves; what it loads is put there before it, if others have changed that since the load had its turn, or if it is in the
//! buffer, and taken away again.
//! NOTE [Forced] Fences and locked instructions wait for an empty buffer. So does whatever is no use of memory, and an instruction or function that uses several
//! words; where that is no fence, it is for `race::tso` to tell whether it matters: such a store has no flag `LATE`. A loop that goes round waits for it too,
//! which leaves out nothing: rounds in vain before are nothing to anybody.

use vsrun_model::carrier::{Late, MAX_LATE};
use vsrun_model::memory::{comes_out, LATE};
use vsrun_model::{Kind, ObjId, Op};

use super::local::{fiber, local, model, View};
use super::turn;
use super::view::{put, settle, value};
use crate::sys::{load, readable};
use crate::watch::{self, Touch};

/// Loads in a row that may find what is in the buffer: a loop of them would wait for ever.
const MOST_FORWARDED: u8 = 16;

/// What the instruction is to find, or what is to become of its store; see [`leave`].
pub enum Then {
    /// Nothing: it uses memory as all see it.
    Nothing,
    /// It loads this.
    Loads(u64),
    /// It stores to the object with this number, in the buffer. What it loads before, if it does.
    Stores(ObjId, Option<u64>),
}

/// The instruction is about to be executed, nobody else comes in between.
pub fn leave(touch: &Touch, then: Then) {
    let (address, size) = (touch.address, touch.size as u32);
    let others = value(address, size);
    match then {
        Then::Nothing => {}
        Then::Loads(found) => {
            if found != others {
                local().own_view = View { size, stores: false, address, others };
                put(address, size, found);
            }
        }
        Then::Stores(word, found) => {
            let f = fiber();
            f.late[usize::from(f.n_late)] = Late::new(address, size, touch.site, word);
            f.n_late += 1;
            local().own_view = View { size, stores: true, address, others };
            if let Some(found) = found {
                put(address, size, found);
            }
        }
    }
}

/// The buffer has room for one that waits, or for nothing.
fn has_room() -> bool {
    usize::from(fiber().n_late) < MAX_LATE
}

/// So many stores come out of the buffer of the running fiber, the oldest first. `explored`: that they come out now and not later.
pub fn come_out(count: u8, explored: bool) {
    fiber().forwarded = 0;
    for _ in 0..count {
        let f = fiber();
        let oldest = f.late[0];
        f.late.copy_within(1.., 0);
        f.n_late -= 1;
        let mask = ((1 << oldest.size) - 1) << (oldest.address & 7);
        let op = Op { mask, ..Op::on(Kind::MEM_WRITE, oldest.word).arg(oldest.site.into()) };
        pass(if explored { op.with(LATE) } else { op });
        // It may have been unmapped since.
        if readable(oldest.address, oldest.size.into()) == u64::from(oldest.size) {
            put(oldest.address, oldest.size, oldest.value);
            model().content_is(oldest.word, load(oldest.address & !7));
        }
    }
}

/// What comes next waits for an empty buffer; see NOTE [Forced].
pub fn drain() {
    settle();
    if fiber().n_late > 0 && !local().borrowed {
        fiber().fenced |= watch::has_fenced();
        come_out(fiber().n_late, false);
        local().touches = false;
    }
}

fn pass(op: Op) -> i64 {
    local().touches = true;
    turn::pass(op)
}

/// How many stores come out now: at most `most`.
fn toss(most: u8) -> u8 {
    if most == 0 {
        return 0;
    }
    pass(comes_out(most.into())) as u8
}

/// The running fiber has loaded `found`: stores of its buffer may come out before it goes on.
pub fn loaded(found: u64) -> Then {
    let count = toss(fiber().n_late);
    come_out(count, true);
    Then::Loads(found)
}

/// What a load finds in the buffer. `None`: it has to look at memory; what it overlaps is there then.
pub fn forwarded(touch: &Touch) -> Option<u64> {
    let f = fiber();
    let (first, end) = (touch.address, touch.address + touch.size);
    let overlaps = |late: &Late| late.address < end && first < late.address + u64::from(late.size);
    let at = f.late[..usize::from(f.n_late)].iter().rposition(overlaps)?;
    let late = f.late[at];
    let covers = late.address <= first && end <= late.address + u64::from(late.size);
    if !covers || f.forwarded == MOST_FORWARDED {
        come_out(at as u8 + 1, !covers);
        return None;
    }
    f.forwarded += 1;
    let value = late.value >> (8 * (first - late.address));
    Some(value & u64::MAX >> (64 - 8 * touch.size))
}

/// The running fiber is about to store: whether that goes into the buffer. Otherwise all that was in it has come out.
pub fn goes_in() -> bool {
    if !has_room() {
        come_out(1, false);
    }
    // That others come out and this one does not would be the same right behind the use before.
    let at_once = toss(1) == 1;
    if at_once {
        come_out(fiber().n_late, true);
    }
    !at_once
}
