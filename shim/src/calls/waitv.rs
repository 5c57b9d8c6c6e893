//! futex_waitv: its arguments; what they mean is the model's.

use vsrun_model::futex::Several;
use vsrun_model::memory::OF_WORDS;
use vsrun_model::{Kind, ObjId, Op, NONE};

use super::futex::SITE;
use super::{sync, time};
use crate::gate::touch::compared;
use crate::gate::{self, end, local, model, world};
use crate::sys::errno::{EFAULT, EINVAL};
use crate::sys::{load, readable, touch, END_OF_ADDRESSES};

/// FUTEX_WAITV_MAX.
const MOST: usize = 128;
/// FUTEX2_SIZE_U32, the only size that there is.
const OF_32_BITS: u32 = 2;
const SIZES: u32 = 3;
/// FUTEX2_NUMA and FUTEX2_MPOL: the node that a word is looked up on stands beside it.
const ON_NODES: u32 = 4 | 8;
const PRIVATE: u32 = 128;

/// One of the words: `struct futex_waitv`.
#[derive(Clone, Copy)]
struct Word {
    value: u32,
    at: u64,
    private: bool,
}

/// `futex_waitv(waiters, n, flags, timeout, clock)`.
pub fn call(a: [u64; 6]) -> i64 {
    let [waiters, n, flags, timeout, clock, _] = a;
    let (n, clock) = (n as u32 as usize, clock as i32);
    if flags as u32 != 0 || !(1..=MOST).contains(&n) || waiters == 0 {
        return EINVAL;
    }
    let mut deadline = None;
    if timeout != 0 {
        if !matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC) {
            return EINVAL;
        }
        touch(timeout, 16);
        let Some(ns) = time::timespec(timeout) else { return EINVAL };
        deadline = Some(time::absolute(clock, ns));
    }
    let mut words = [Word { value: 0, at: 0, private: false }; MOST];
    for (i, word) in words[..n].iter_mut().enumerate() {
        match parse(waiters + 24 * i as u64) {
            Ok(there) => *word = there,
            Err(error) => return error,
        }
    }
    match check(&words[..n]) {
        Ok(there) => wait(&words[..n], there, deadline),
        Err(error) => error,
    }
}

/// futex_parse_waitv in kernel/futex/syscalls.c.
fn parse(from: u64) -> Result<Word, i64> {
    touch(from, 24);
    let (value, at): (u64, u64) = (load(from), load(from + 8));
    let (flags, reserved): (u32, u32) = (load(from + 16), load(from + 20));
    if flags & !(SIZES | ON_NODES | PRIVATE) != 0 || reserved != 0 {
        return Err(EINVAL);
    }
    if flags & SIZES != OF_32_BITS || value >> 32 != 0 {
        return Err(EINVAL);
    }
    if flags & ON_NODES != 0 {
        end::unsupported(&[b"futex_waitv with FUTEX2_NUMA or FUTEX2_MPOL"]);
    }
    Ok(Word { value: value as u32, at, private: flags & PRIVATE != 0 })
}

/// What the kernel says of the words before it compares one: those that processes share have to be there (get_futex_key). How many are,
/// before the first that is not; that one gives an error where its turn comes.
fn check(words: &[Word]) -> Result<usize, i64> {
    for word in words {
        if !word.at.is_multiple_of(4) {
            return Err(EINVAL);
        }
        if word.at >= END_OF_ADDRESSES || !word.private && readable(word.at, 4) < 4 {
            return Err(EFAULT);
        }
    }
    Ok(words.iter().position(|word| readable(word.at, 4) < 4).unwrap_or(words.len()))
}

/// Waits for the first `n` of the words; the next is not there, if there is one.
fn wait(words: &[Word], n: usize, deadline: Option<u64>) -> i64 {
    if n == 0 {
        return EFAULT;
    }
    let mut objects = [NONE; MOST];
    for (object, word) in objects.iter_mut().zip(&words[..n]) {
        *object = sync::futex(word.at, word.private);
    }
    let several = Several { n: n as u8, timed: deadline.is_some(), lacks: n < words.len(), ..Several::default() };
    let mut op = Op::on(Kind::FUTEX_WAITV, objects[0]).arg(several.pack());
    op.mask = u32::MAX;
    op.deadline = deadline.unwrap_or(0);
    for word in &words[..n] {
        if compared(word.at, SITE).is_some() {
            op.flags |= OF_WORDS;
        }
    }
    model().set_out(local().cur, [0; 3]);
    gate::pass_in_steps(op, &|| look(words, &objects[..n]))
}

/// Just before a word is compared. It may begin anew, after a signal handler that has waited for others.
fn look(words: &[Word], objects: &[ObjId]) {
    let cur = local().cur;
    let Some(at) = world().compares_word(cur) else { return };
    if at == 0 {
        model().set_words(cur, objects);
    }
    model().set_compare(cur, load::<u32>(words[at].at) == words[at].value);
}
