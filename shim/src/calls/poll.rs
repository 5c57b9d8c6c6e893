//! poll, ppoll, select, pselect: of descriptors of the model, of files, of both, of none.

use vsrun_model::fd::{poll, DescId, Polled, ASKS_MANY, MAX_FDS, MAX_POLLED, MAX_TOLD};
use vsrun_model::world::ONE_STEP;
use vsrun_model::{op, Kind, Op, NONE};

use super::{fd, numbers, signal, time, uncontrolled};
use crate::gate::{self, end, inject, local, me, model, note_passed, world};
use crate::sys::errno::*;
use crate::sys::{limit, load, raw, store, writable, END_OF_ADDRESSES};

/// Descriptors that one call asks about.
const MAX_ASKED: usize = 1024;

/// What is asked about one descriptor, and what the answer is.
#[derive(Clone, Copy)]
struct Asked {
    fd: i32,
    events: u16,
    ready: u16,
    /// The description, if it is one of the model.
    desc: DescId,
    /// Other threads may make something else of the number: what it stands for is held until the call is over.
    held: DescId,
    /// They do: which of those that refer to what is held is the last to let go rests on their order.
    shared: bool,
    /// What it stood for when the call began to wait, and is held too.
    waited: DescId,
    /// Of its place in the table, see [`Desc::earlier`](vsrun_model::fd::Desc::earlier).
    earlier: u8,
    /// The number was closed while it waited.
    closed: bool,
}

impl Asked {
    const NOTHING: Asked = Asked {
        fd: -1,
        events: 0,
        ready: 0,
        desc: NONE,
        held: NONE,
        shared: false,
        waited: NONE,
        earlier: 0,
        closed: false,
    };
}

/// Performs the call. `None`: it concerns neither descriptors of the model nor time alone.
// Not part of what every call on descriptors goes through: what is asked takes room on the program's stack.
#[inline(never)]
pub fn call(nr: i64, a: [u64; 6]) -> Option<i64> {
    let timeout = match timeout(nr, a) {
        Ok(timeout) => timeout,
        Err(error) => return Some(error),
    };
    let (mask, size) = match nr {
        libc::SYS_ppoll => (a[3], a[4]),
        libc::SYS_pselect6 if a[5] != 0 => (load::<u64>(a[5]), load(a[5] + 8)),
        _ => (0, 8),
    };
    if mask != 0 && size != 8 {
        return Some(EINVAL);
    }
    let end = timeout.map_or(0, time::relative);
    let result = signal::with_mask(mask, || match nr {
        libc::SYS_poll | libc::SYS_ppoll => of_array(a[0], a[1], timeout),
        _ => of_sets(a[0], [a[1], a[2], a[3]], timeout),
    });
    tell_left(nr, a, if result == 0 { 0 } else { end });
    Some(result)
}

/// What is left of the timeout goes to where it was; that it cannot be written is no error.
fn tell_left(nr: i64, a: [u64; 6], end: u64) {
    let at = match nr {
        libc::SYS_poll => 0,
        libc::SYS_ppoll => a[2],
        _ => a[4],
    };
    if at == 0 || writable(at, 16) < 16 {
        return;
    }
    let left = end.saturating_sub(model().told_clock());
    time::put_timespec(at, left);
    if nr == libc::SYS_select {
        store(at + 8, left % 1_000_000_000 / 1000);
    }
}

/// Nanoseconds to wait; `None`: for ever.
fn timeout(nr: i64, a: [u64; 6]) -> Result<Option<u64>, i64> {
    let spec = |at: u64| match at {
        0 => Ok(None),
        at => time::timespec(at).map(Some).ok_or(EINVAL),
    };
    match nr {
        libc::SYS_poll if (a[2] as i32) < 0 => Ok(None),
        libc::SYS_poll => Ok(Some(a[2] as i32 as u64 * 1_000_000)),
        libc::SYS_ppoll => spec(a[2]),
        libc::SYS_pselect6 => spec(a[4]),
        _ if a[4] == 0 => Ok(None),
        _ => {
            let (seconds, micro): (i64, i64) = (load(a[4]), load(a[4] + 8));
            if seconds < 0 || micro < 0 {
                return Err(EINVAL);
            }
            Ok(Some((seconds as u64).saturating_mul(1_000_000_000).saturating_add(micro as u64 * 1000)))
        }
    }
}

/// The stack is the program's, and may be small: room for many is taken only where many are asked for, which is why each of the
/// functions that take it is there twice and is not inlined.
const FEW_ASKED: usize = 64;

fn of_array(at: u64, n: u64, timeout: Option<u64>) -> i64 {
    match n as usize {
        n if n <= FEW_ASKED => of_array_in::<FEW_ASKED>(at, n, timeout),
        n if n <= MAX_ASKED => of_array_in::<MAX_ASKED>(at, n, timeout),
        _ if n > limit(libc::RLIMIT_NOFILE) => EINVAL,
        _ => end::unsupported(&[b"a poll of more than 1024 descriptors"]),
    }
}

#[inline(never)]
fn of_array_in<const ROOM: usize>(at: u64, n: usize, timeout: Option<u64>) -> i64 {
    let mut asked = [Asked::NOTHING; ROOM];
    for (i, one) in asked[..n].iter_mut().enumerate() {
        let entry = at + 8 * i as u64;
        *one = Asked { fd: load(entry), events: load(entry + 4), ..Asked::NOTHING };
    }
    let result = ask(&mut asked[..n], timeout);
    if result >= 0 && at >= END_OF_ADDRESSES {
        return EFAULT;
    }
    if result >= 0 {
        for (i, one) in asked[..n].iter().enumerate() {
            store(at + 8 * i as u64 + 6, one.ready);
        }
    }
    result
}

/// The events that make a descriptor ready for reading, for writing, exceptional (fs/select.c).
const SETS: [u16; 3] = [
    poll::RDNORM | poll::RDBAND | poll::IN | poll::HUP | poll::ERR,
    poll::WRBAND | poll::WRNORM | poll::OUT | poll::ERR,
    poll::PRI,
];

fn of_sets(n: u64, sets: [u64; 3], timeout: Option<u64>) -> i64 {
    if (n as i32) < 0 {
        return EINVAL;
    }
    let n = u64::from(n as u32).min(MAX_FDS as u64);
    if n as usize > MAX_ASKED {
        end::unsupported(&[b"a select of descriptors above 1023"]);
    }
    let wanted = (0..n).filter(|&fd| sets.iter().any(|&set| is_in(set, fd))).count();
    match wanted {
        0..=FEW_ASKED => of_sets_in::<FEW_ASKED>(n, sets, timeout),
        _ => of_sets_in::<MAX_ASKED>(n, sets, timeout),
    }
}

fn word(set: u64, fd: u64) -> u64 {
    set + fd / 64 * 8
}

fn is_in(set: u64, fd: u64) -> bool {
    set != 0 && load::<u64>(word(set, fd)) >> (fd % 64) & 1 != 0
}

#[inline(never)]
fn of_sets_in<const ROOM: usize>(n: u64, sets: [u64; 3], timeout: Option<u64>) -> i64 {
    let mut asked = [Asked::NOTHING; ROOM];
    let mut used = 0;
    for fd in 0..n {
        let wanted = sets.map(|set| is_in(set, fd));
        if wanted == [false; 3] {
            continue;
        }
        let events = SETS.iter().zip(wanted).filter(|(_, wanted)| *wanted).fold(0, |all, (set, _)| all | set);
        asked[used] = Asked { fd: fd as i32, events: events & !poll::ALWAYS, ..Asked::NOTHING };
        used += 1;
    }
    let result = ask(&mut asked[..used], timeout);
    if result < 0 {
        return result;
    }
    if asked[..used].iter().any(|one| one.ready & poll::NVAL != 0 && !one.closed) {
        return EBADF;
    }
    let old: [[u64; MAX_ASKED / 64]; 3] = sets.map(|set| {
        let mut words = [0; MAX_ASKED / 64];
        if set != 0 {
            for (i, w) in words.iter_mut().take(n.div_ceil(64) as usize).enumerate() {
                *w = load(set + 8 * i as u64);
                store(set + 8 * i as u64, 0u64);
            }
        }
        words
    });
    let mut count = 0;
    for one in &asked[..used] {
        let (at, bit) = (one.fd as usize / 64, 1u64 << (one.fd % 64));
        for (k, &set) in sets.iter().enumerate() {
            // The kernel has POLLNVAL in all three.
            if set != 0 && old[k][at] & bit != 0 && one.ready & (SETS[k] | poll::NVAL) != 0 {
                let place = word(set, one.fd as u64);
                store(place, load::<u64>(place) | bit);
                count += 1;
            }
        }
    }
    count
}

/// Looks the numbers up, one after the other. What others may close is held.
fn resolve(asked: &mut [Asked]) {
    for one in asked.iter_mut().filter(|one| one.fd >= 0) {
        let numbers::Looked { stands, shared } = numbers::look(one.fd);
        one.shared = shared;
        one.desc = fd::find(one.fd as u64).filter(|_| stands).unwrap_or(NONE);
        match one.desc {
            _ if !stands => one.ready = poll::NVAL,
            NONE => one.ready = of_file(one),
            desc if gate::is_threaded() => {
                (one.held, one.earlier) = (desc, world().descs[desc].earlier);
                model().desc_refer(desc);
            }
            _ => {}
        }
    }
}

fn let_go(asked: &mut [Asked]) {
    for one in asked {
        model().desc_unhold(core::mem::replace(&mut one.held, NONE), one.shared);
    }
}

/// Asks, waiting until something is ready. Gives how many descriptors are, or a negative error number.
#[inline]
fn ask(asked: &mut [Asked], timeout: Option<u64>) -> i64 {
    if world().uncontrolled != 0 && timeout != Some(0) && asked.iter().any(|one| uncontrolled::is(one.fd as u64)) {
        return by_turns(asked, timeout);
    }
    ask_once(asked, timeout)
}

#[inline]
fn ask_once(asked: &mut [Asked], timeout: Option<u64>) -> i64 {
    resolve(asked);
    let modelled = asked.iter().filter(|one| one.desc != NONE).count();
    // The kernel looks at one after the other, and what comes about at the first may be missed where the last is seen: of 900 in 3 % of tries.
    const LONG: usize = 64;
    if modelled > LONG {
        model().never_comes(ONE_STEP);
    }
    if modelled > MAX_POLLED {
        end::unsupported(&[b"a poll or select of more than 256 pipes and sockets"]);
    }
    let files = asked.iter().filter(|one| one.ready != 0).count() as i64;
    // Who asks for nothing and does not wait only wants to know whether the number stands for something (the start of Rust programs).
    let asks = |one: &Asked| one.events != 0 || timeout != Some(0);
    let waits_outside = files == 0 && asked.iter().any(|one| one.fd >= 0 && one.desc == NONE && asks(one));
    if waits_outside {
        // Whether input from outside comes is not the model's to say.
        if modelled == 0 && timeout != Some(0) {
            return outside(asked, timeout);
        }
        note_passed(libc::SYS_poll);
    }
    if modelled == 0 {
        return match timeout {
            _ if files != 0 => files,
            Some(0) if signal::may_strike() => {
                model().set_polled(local().cur, &[]);
                gate::pass(Op::new(Kind::FD_POLL).with(op::TRY))
            }
            Some(0) => 0,
            Some(ns) => time::sleep_until(time::relative(ns), 0),
            None if asked.iter().all(|one| one.fd < 0) => {
                signal::wait_with(if me().masked { me().within } else { me().sigmask })
            }
            None => outside(asked, None),
        };
    }
    if timeout != Some(0) && files == 0 {
        inject::interrupts();
    }
    let mut op = Op::new(Kind::FD_POLL);
    // Not before that: a handler may have polled meanwhile.
    model().set_polled(local().cur, &[]);
    for one in asked.iter().filter(|one| one.desc != NONE) {
        model().add_polled(local().cur, Polled { desc: one.desc, events: one.events, ready: 0 });
        op.mask |= world().desc_bits(one.desc);
    }
    op = match timeout {
        _ if files > 0 => op.with(op::TRY),
        Some(0) => op.with(op::TRY),
        Some(ns) => op.until(time::relative(ns)),
        None => op,
    };
    if modelled > MAX_TOLD {
        op = op.with(ASKS_MANY);
    }
    let mut answers = [Polled::default(); MAX_POLLED];
    let looks_again = !op.tries();
    let result = gate::pass_then(op, |result| {
        answers = me().polled;
        // The kernel holds what it waits for until the call is over.
        if result < 0 || !looks_again {
            let_go(asked);
        }
    });
    if result < 0 {
        return result;
    }
    for (one, answer) in asked.iter_mut().filter(|one| one.desc != NONE).zip(&answers) {
        one.ready = answer.ready;
    }
    if looks_again && asked.iter().any(|one| one.held != NONE) {
        let others = look_again(asked);
        let result = if others { Some(ask_others(asked)) } else { None };
        let_go(asked);
        if let Some(result) = result {
            return result;
        }
    }
    asked.iter().filter(|one| one.ready != 0).count() as i64
}

/// Asks again and again, and lets others go on in between: some of it is what the kernel has by the user's wish. Once nobody else can
/// go on, the kernel waits.
#[cold]
#[inline(never)]
fn by_turns(asked: &mut [Asked], timeout: Option<u64>) -> i64 {
    loop {
        let result = ask_now(asked);
        if result != 0 {
            return result;
        }
        if !uncontrolled::give_way() {
            break;
        }
    }
    match timeout.map(|ns| time::sleep_until(time::relative(ns), 0)) {
        Some(error) if error < 0 => error,
        Some(_) => ask_now(asked),
        None => outside(asked, None),
    }
}

#[inline(never)]
fn ask_now(asked: &mut [Asked]) -> i64 {
    ask_once(asked, Some(0))
}

/// Who has waited looks the numbers up once more (fs/select.c): those that have been closed meanwhile are told. True: one stands for
/// something else now.
#[cold]
fn look_again(asked: &mut [Asked]) -> bool {
    let mut others = false;
    for one in asked.iter_mut().filter(|one| one.held != NONE) {
        let numbers::Looked { stands, shared } = numbers::look(one.fd);
        one.shared |= shared;
        if !stands || !fd::is_open(one.fd as u64) {
            (one.ready, one.closed) = (poll::NVAL, true);
            continue;
        }
        let same = |desc: DescId| desc == one.desc && world().descs[desc].earlier == one.earlier;
        others |= !fd::find(one.fd as u64).is_some_and(same);
    }
    others
}

/// What the numbers stand for now is asked. Where that has nothing to tell, the kernel waits on for what they stood for before.
#[cold]
#[inline(never)]
fn ask_others(asked: &mut [Asked]) -> i64 {
    for one in asked.iter_mut() {
        *one = Asked { fd: one.fd, events: one.events, waited: one.held, ..Asked::NOTHING };
    }
    let result = ask_now(asked);
    if result == 0 {
        end::no_room(&[b"a poll or select goes on waiting though one of its descriptors was closed, and its number given to another, which is not modelled"]);
    }
    for one in asked {
        model().desc_unhold(one.waited, true);
        // What select finds closed now was open when it began.
        one.closed = one.ready & poll::NVAL != 0;
    }
    result
}

/// What the kernel says of a file, without waiting.
#[inline(never)]
fn of_file(one: &Asked) -> u16 {
    let mut entry = [one.fd as u32 as u64 | u64::from(one.events) << 32];
    raw!(libc::SYS_poll, entry.as_mut_ptr(), 1, 0);
    (entry[0] >> 48) as u16
}

/// Waits for input from outside: the kernel does, and vsrun sees it.
fn outside(asked: &mut [Asked], timeout: Option<u64>) -> i64 {
    match asked.len() {
        0..=FEW_ASKED => outside_in::<FEW_ASKED>(asked, timeout),
        _ => outside_in::<MAX_ASKED>(asked, timeout),
    }
}

#[inline(never)]
fn outside_in<const ROOM: usize>(asked: &mut [Asked], timeout: Option<u64>) -> i64 {
    let mut entries = [0u64; ROOM];
    for (entry, one) in entries.iter_mut().zip(asked.iter()) {
        let fd = if one.desc == NONE { one.fd } else { -1 };
        *entry = fd as u32 as u64 | u64::from(one.events) << 32;
    }
    let ms = timeout.map_or(-1, |ns| (ns / 1_000_000).min(i32::MAX as u64) as i64);
    let result = fd::on_file(libc::SYS_poll, [entries.as_mut_ptr() as u64, asked.len() as u64, ms as u64, 0, 0, 0]);
    for (entry, one) in entries.iter().zip(asked.iter_mut()) {
        one.ready = (entry >> 48) as u16;
    }
    result
}
