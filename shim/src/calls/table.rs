//! Numbers of descriptors, where several threads of the process use them: what is to be done around each call that looks one up, takes one
//! or gives one back. What it means is the model's: `vsrun_model::fd`, `sched::descriptor`.
//!
//! NOTE [Hidden] A call holds the file of a descriptor from the moment at which it has looked the number up, whatever another thread makes of
//! the number meanwhile. So where others may change it, what it stands for gets a second number for as long as the call lasts, above those
//! of the program; and a number that is given back is free at once, while what it stood for is closed by a number of that kind.

use vsrun_model::arena::{LAST_FD, PLACE_FD};
use vsrun_model::file::Use;
use vsrun_model::{Kind, ObjId, Op, NONE};

use super::numbers::{hide, is_watched, look, look_at, move_away, put, stands, uncover};
use super::{descriptors, fd, files, kernel};
use crate::gate::{self, arena, fiber, local, machine, me, model, Phase};
use crate::sys::errno::*;
use crate::sys::{load, raw};

/// Looks up the descriptor in argument n: bit n.
const FIRST: u16 = 1;
const SECOND: u16 = 2;
const THIRD: u16 = 4;
const FIFTH: u16 = 16;
/// What is looked up is held while the call lasts.
const HOLDS: u16 = 1 << 8;
/// Makes a descriptor; two of them.
const MAKES: u16 = 1 << 9;
const PAIR: u16 = 1 << 10;
/// Gives numbers back, or changes what they stand for, or what is kept with them.
const CHANGES: u16 = 1 << 11;
/// Its last operation may be about one of the two descriptors only.
const EITHER: u16 = 1 << 12;

/// What calls do with numbers of descriptors, by number of the call.
static TABLE: [u16; 463] = {
    let mut table = [0; 463];
    macro_rules! calls {
        ($what:expr; $($nr:expr)+) => { $(table[$nr as usize] = $what;)+ };
    }
    use libc::*;
    calls!(FIRST | HOLDS; SYS_read SYS_write SYS_fstat SYS_lseek SYS_pread64 SYS_pwrite64 SYS_readv SYS_writev SYS_preadv SYS_pwritev
        SYS_preadv2 SYS_pwritev2 SYS_fsync SYS_fdatasync SYS_ftruncate SYS_getdents SYS_getdents64 SYS_fchdir SYS_fchmod SYS_fchown
        SYS_fstatfs SYS_readahead SYS_fadvise64 SYS_fallocate SYS_sync_file_range SYS_syncfs SYS_fgetxattr SYS_fsetxattr
        SYS_flistxattr SYS_fremovexattr SYS_vmsplice);
    calls!(FIRST | HOLDS; SYS_connect SYS_bind SYS_listen SYS_shutdown SYS_sendto SYS_recvfrom SYS_sendmsg SYS_recvmsg SYS_sendmmsg
        SYS_recvmmsg SYS_getsockname SYS_getpeername SYS_setsockopt SYS_getsockopt);
    calls!(FIRST | HOLDS; SYS_timerfd_settime SYS_timerfd_gettime SYS_mq_timedsend SYS_mq_timedreceive SYS_mq_getsetattr
        SYS_epoll_wait SYS_epoll_pwait SYS_epoll_pwait2);
    calls!(FIRST | HOLDS; SYS_mkdirat SYS_mknodat SYS_fchownat SYS_futimesat SYS_newfstatat SYS_unlinkat SYS_readlinkat SYS_fchmodat
        SYS_faccessat SYS_utimensat SYS_execveat SYS_statx SYS_faccessat2 SYS_name_to_handle_at SYS_fchmodat2);
    calls!(FIRST | HOLDS; SYS_ioctl);
    // What they ask is kept with the number, or by it.
    calls!(FIRST; SYS_flock SYS_mq_notify);
    calls!(FIRST | THIRD | HOLDS; SYS_epoll_ctl);
    calls!(FIRST | SECOND | HOLDS; SYS_tee);
    calls!(FIRST | SECOND | HOLDS | EITHER; SYS_sendfile);
    calls!(FIRST | THIRD | HOLDS | EITHER; SYS_splice);
    calls!(FIRST | THIRD | HOLDS; SYS_copy_file_range SYS_renameat SYS_renameat2 SYS_linkat);
    calls!(SECOND | HOLDS; SYS_symlinkat);
    calls!(FIFTH | HOLDS; SYS_mmap);
    calls!(FIRST | HOLDS | MAKES; SYS_openat SYS_openat2 SYS_accept SYS_accept4 SYS_dup);
    calls!(MAKES; SYS_open SYS_creat SYS_memfd_create SYS_socket SYS_epoll_create SYS_epoll_create1 SYS_eventfd SYS_eventfd2 SYS_pidfd_open
        SYS_timerfd_create SYS_mq_open SYS_memfd_secret);
    calls!(FIRST | MAKES; SYS_signalfd SYS_signalfd4);
    calls!(MAKES | PAIR; SYS_pipe SYS_pipe2 SYS_socketpair);
    calls!(FIRST | CHANGES; SYS_fcntl);
    calls!(CHANGES; SYS_close SYS_close_range SYS_dup2 SYS_dup3);
    table
};

/// See `Thread::hidden`.
type Hidden = [[i32; 2]; 2];
const NOTHING: Hidden = [[0; 2]; 2];

/// What is to be done when the call is over.
struct Held {
    /// Hidden numbers, and those of before.
    hidden: Hidden,
    before: Hidden,
    /// Reserved numbers, each with its object if that is visible.
    reserved: [Option<(i32, Option<ObjId>)>; 2],
    /// The reservations of a call that a handler has interrupted.
    outer: [i32; 2],
    /// The number that it replaced is to be closed.
    replaced: i32,
    /// It makes a descriptor whose number is not reserved.
    makes: bool,
    /// The hidden number is closed by the call.
    closes: bool,
    /// Transitions of the thread when it had looked its numbers up.
    looked: u32,
}

/// Performs call `nr`, after visible operations if others may change what its descriptors stand for. `within`: it was made inside libc,
/// as far as is known.
#[inline]
pub fn with(nr: i64, mut a: [u64; 6], within: bool, call: impl FnOnce([u64; 6]) -> i64) -> i64 {
    let what = TABLE.get(nr as usize).copied().unwrap_or(0);
    if what == 0 {
        return call(a);
    }
    let looked_up = || what & !HOLDS == FIRST && machine().has_looked_up(local().pid, local().cur, a[0] as i32);
    if !gate::is_threaded() || looked_up() {
        look_at_flags(nr, what, &a);
        return call(a);
    }
    if within && machine().libc_is_quiet() && !keeps_on_exec(nr, &a) {
        return quietly(nr, what, &a, call(a));
    }
    let held = match begin(nr, what, &mut a) {
        Ok(held) => held,
        Err(error) => return error,
    };
    look_at_flags(nr, what, &a);
    let result = call(a);
    match held {
        None => result,
        Some(held) => finish(nr, &a, held, result),
    }
}

/// What libc does not ask for inside of its own locks: it opens what is to be closed on exec as such.
fn keeps_on_exec(nr: i64, a: &[u64; 6]) -> bool {
    match nr {
        libc::SYS_fcntl => a[1] as i32 == libc::F_SETFD,
        libc::SYS_ioctl => matches!(a[1] & 0xffff_ffff, libc::FIOCLEX | libc::FIONCLEX),
        _ => false,
    }
}

#[inline]
fn look_at_flags(nr: i64, what: u16, a: &[u64; 6]) {
    let looks = match nr {
        // F_SETFL replaces them.
        libc::SYS_fcntl => a[1] as i32 == libc::F_GETFL,
        libc::SYS_ioctl | libc::SYS_flock | libc::SYS_mq_notify => false,
        _ => what & FIRST != 0,
    };
    if looks {
        fd::look_at_flags(a[0]);
    }
    // One of two pipes that does not wait is enough.
    match nr {
        libc::SYS_tee => fd::look_at_flags(a[1]),
        libc::SYS_splice => fd::look_at_flags(a[2]),
        _ => {}
    }
}

/// The call has been made, with no place to switch: whether others can tell.
#[inline(never)]
fn quietly(nr: i64, what: u16, a: &[u64; 6], result: i64) -> i64 {
    if matches!(local().phase, Phase::BeforeRoot | Phase::Off) {
        return result;
    }
    let (cur, p) = (local().cur, local().pid);
    let mut told = false;
    let concerns = |number: i32| is_watched(number) && !machine().is_made_by_libc(p, number);
    for number in (0..5).filter(|at| what >> at & 1 != 0).map(|at| a[at] as i32).filter(|&number| concerns(number)) {
        told |= machine().use_number(cur, number, Use::Read).is_some();
    }
    let changed = if nr == libc::SYS_close { a[0] as i32 } else { a[1] as i32 };
    if what & CHANGES != 0 && nr != libc::SYS_fcntl && concerns(changed) {
        told |= machine().use_free_numbers(cur, Use::Read).is_some();
        told |= machine().use_number(cur, changed, Use::Write).is_some();
    }
    if nr == libc::SYS_close {
        machine().libc_closed(p, changed);
    }
    if what & MAKES != 0 && result >= 0 {
        let visible = machine().use_free_numbers(cur, Use::Write).is_some();
        match what & PAIR {
            0 => {
                let told = visible | machine().use_number(cur, result as i32, Use::Write).is_some();
                machine().libc_made(p, result as i32, told);
            }
            _ => told |= visible,
        }
    }
    if told {
        machine().libc_used_numbers();
    }
    result
}

fn begin(nr: i64, mut what: u16, a: &mut [u64; 6]) -> Result<Option<Held>, i64> {
    if matches!(local().phase, Phase::BeforeRoot | Phase::Off) {
        return Ok(None);
    }
    if nr == libc::SYS_fcntl {
        match a[1] as i32 {
            libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => what = FIRST | HOLDS | MAKES,
            libc::F_SETFD => {}
            // The flags are those of what is looked up, whatever becomes of the number.
            libc::F_GETFL | libc::F_SETFL => what = FIRST | HOLDS,
            _ => what = FIRST,
        }
    }
    // What these set is kept with the number.
    if nr == libc::SYS_ioctl && keeps_on_exec(nr, a) {
        what = CHANGES;
    }
    if what & CHANGES != 0 {
        return change(nr, a);
    }
    let hidden = match what & (FIRST | SECOND | THIRD | FIFTH) {
        0 => NOTHING,
        FIRST if look_up_passes(a[0]) => NOTHING,
        positions => look_up(positions, what & HOLDS != 0, a)?,
    };
    if what & MAKES == 0 && hidden == NOTHING {
        return Ok(None);
    }
    let before = me().hidden;
    let mut held = Held {
        hidden,
        before,
        reserved: [None; 2],
        outer: [0; 2],
        replaced: -1,
        makes: false,
        closes: false,
        looked: me().transitions,
    };
    if hidden != NOTHING {
        model().hide_numbers(local().cur, hidden);
    }
    if what & MAKES != 0 {
        // signalfd of one that there is makes none.
        let makes = !matches!(nr, libc::SYS_signalfd | libc::SYS_signalfd4) || (a[0] as i32) < 0;
        let reserved = if makes { reserve_for(nr, what, a, &mut held) } else { Ok(()) };
        if let Err(error) = reserved {
            return Err(finish(nr, a, held, error));
        }
        // One that stood for nothing when it was looked up still does for this call, though its number is taken now.
        if what & FIRST != 0 && held.reserved.iter().flatten().any(|&(number, _)| number == a[0] as i32) {
            a[0] = -1_i64 as u64;
        }
    }
    Ok(Some(held))
}

/// The usual case: one descriptor that nobody else changes.
#[inline]
fn look_up_passes(number: u64) -> bool {
    (number as i32) < 0 || fd::is_ours(number) || machine().use_number(local().cur, number as i32, Use::Read).is_none()
}

/// Looks up what stands in these arguments, together: an operation if one of them is visible.
#[inline(never)]
fn look_up(positions: u16, holds: bool, a: &mut [u64; 6]) -> Result<Hidden, i64> {
    let mut found = [(0, NONE, 0); 2];
    let mut n = 0;
    for at in (0..5).filter(|at| positions >> at & 1 != 0) {
        let number = a[at];
        if (number as i32) < 0 || fd::is_ours(number) {
            continue;
        }
        if let Some(obj) = machine().use_number(local().cur, number as i32, Use::Read) {
            found[n] = (at, obj, number as i32);
            n += 1;
        }
    }
    if n == 0 {
        return Ok(NOTHING);
    }
    look_at(found[0].1, (n > 1).then_some(found[1].1));
    let mut hidden = NOTHING;
    for (i, &(at, obj, number)) in found[..n].iter().enumerate() {
        if !stands(obj) {
            hidden[..i].iter().for_each(|&[number, _]| uncover(number));
            return Err(EBADF);
        }
        if holds {
            if let Some(second) = hide(number) {
                hidden[i] = [second + 1, number];
                a[at] = second as u64;
            }
        }
    }
    Ok(hidden)
}

/// Takes the lowest free numbers for what the call is about to make, where others can tell which.
fn reserve_for(nr: i64, what: u16, a: &[u64; 6], held: &mut Held) -> Result<(), i64> {
    held.makes = true;
    let named = matches!(nr, libc::SYS_dup | libc::SYS_fcntl);
    let least = if nr == libc::SYS_fcntl { a[2] } else { 0 };
    if named && !fd::is_open(a[0]) || least as i32 > i32::from(i16::MAX) {
        return Ok(());
    }
    if machine().use_free_numbers(local().cur, Use::Write).is_none() {
        return Ok(());
    }
    if machine().libc_is_quiet() {
        // What libc has open for a moment is not seen.
        machine().libc_used_numbers();
    }
    held.outer = fiber().reserved;
    fiber().reserved = [0; 2];
    held.makes = false;
    for i in 0..if what & PAIR != 0 { 2 } else { 1 } {
        let number = reserve(least)?;
        held.reserved[i] = Some(number);
        fiber().reserved[i] = number.0 + 1;
    }
    Ok(())
}

/// Reserves a number from `least` on, by an operation.
fn reserve(least: u64) -> Result<(i32, Option<ObjId>), i64> {
    if let Some(free) = machine().use_free_numbers(local().cur, Use::Write) {
        gate::pass(Op::on(Kind::FD_RESERVE, free));
    }
    let number = raw!(libc::SYS_fcntl, PLACE_FD, libc::F_DUPFD_CLOEXEC, least);
    if number < 0 {
        return Err(fd::refused(number));
    }
    let obj = machine().use_number(local().cur, number as i32, Use::Write);
    if let Some(obj) = obj {
        machine().number_stands(obj, false);
    }
    Ok((number as i32, obj))
}

#[inline(never)]
fn finish(nr: i64, a: &[u64; 6], held: Held, mut result: i64) -> i64 {
    if held.replaced >= 0 {
        close(held.replaced);
    }
    if held.hidden != NOTHING {
        model().hide_numbers(local().cur, held.before);
    }
    if !held.closes {
        // The flags of a description are an object of their own.
        let of_flags = || me().transitions != held.looked && arena().last == Kind::FD_LOOK;
        if TABLE[nr as usize] & EITHER != 0 || of_flags() {
            held.hidden.iter().for_each(|&[hidden, _]| settle_end(hidden));
        }
        held.hidden.iter().for_each(|&[hidden, _]| uncover(hidden));
    }
    if held.makes && result >= 0 {
        made(nr, a, result);
    }
    if held.reserved[0].is_some() {
        let left = core::mem::replace(&mut fiber().reserved, held.outer);
        // What the kernel has made has another number.
        if result >= 0 && left[0] > 0 {
            result = exchange(result, left[0] - 1);
        }
        for (number, obj) in held.reserved.into_iter().flatten() {
            if result >= 0 {
                put(obj);
            } else {
                give_back(number, obj);
            }
        }
    }
    result
}

/// What is let go with an operation on something else has been closed meanwhile, or may have been.
fn settle_end(hidden: i32) {
    if let Some(desc) = (hidden > 0).then(|| fd::find((hidden - 1) as u64)).flatten() {
        model().desc_ends_within(desc);
    }
}

/// A call was left in the middle: what it holds is let go, and what it has reserved is free.
pub fn left() {
    model().desc_release(local().cur);
    let hidden = me().hidden;
    if hidden != NOTHING {
        model().hide_numbers(local().cur, NOTHING);
        hidden.iter().for_each(|&[hidden, _]| uncover(hidden));
    }
    for number in core::mem::take(&mut fiber().reserved).into_iter().filter(|&number| number > 0) {
        raw!(libc::SYS_close, number - 1);
        if let Some(obj) = machine().number_object(local().cur, number - 1) {
            machine().number_stands(obj, true);
        }
    }
}

/// A call has made descriptors whose numbers were nobody else's business.
fn made(nr: i64, a: &[u64; 6], result: i64) {
    let pair = match nr {
        libc::SYS_pipe | libc::SYS_pipe2 => a[0],
        libc::SYS_socketpair => a[3],
        _ => {
            return put(machine().use_number(local().cur, result as i32, Use::Write));
        }
    };
    let numbers: [i32; 2] = load(pair);
    for number in numbers {
        put(machine().use_number(local().cur, number, Use::Write));
    }
}

/// What has number `from` gets the reserved number `to`.
fn exchange(from: i64, to: i32) -> i64 {
    let flags = if raw!(libc::SYS_fcntl, from, libc::F_GETFD) > 0 { libc::O_CLOEXEC } else { 0 };
    raw!(libc::SYS_dup3, from, to, flags);
    raw!(libc::SYS_close, from);
    files::copy_descriptor(from as i32, to);
    files::forget_descriptor(from as i32);
    to.into()
}

/// A reserved number is free again: nothing was made.
fn give_back(number: i32, obj: Option<ObjId>) {
    if let Some(free) = machine().use_free_numbers(local().cur, Use::Read) {
        gate::pass(Op::new(Kind::FD_CHANGE).arg(i64::from(free) + 1));
    }
    raw!(libc::SYS_close, number);
    if let Some(obj) = obj {
        machine().number_stands(obj, true);
    }
}

/// Calls that change what numbers stand for.
fn change(nr: i64, a: &mut [u64; 6]) -> Result<Option<Held>, i64> {
    let (first, second) = (a[0] as i32, a[1] as i32);
    match nr {
        libc::SYS_close if is_watched(first) => {
            if let Some(hidden) = give_up(first, None)? {
                a[0] = hidden as u64;
                return Ok(Some(moved(hidden, first)));
            }
        }
        // It fails before it looks.
        libc::SYS_dup3 if a[2] as i32 & !libc::O_CLOEXEC != 0 => {}
        libc::SYS_close_range => close_range(a[0] as u32, a[1] as u32, a[2]),
        libc::SYS_dup2 | libc::SYS_dup3 if first != second && is_watched(first) && is_watched(second) => {
            let hidden = give_up(second, Some(first))?;
            return Ok(hidden.map(|hidden| Held { replaced: hidden, ..moved(hidden, second) }));
        }
        libc::SYS_dup2 | libc::SYS_dup3 if !look(first).stands => return Err(EBADF),
        libc::SYS_fcntl | libc::SYS_ioctl if is_watched(first) => {
            if let Some(obj) = machine().use_number(local().cur, first, Use::Write) {
                gate::pass(Op::on(Kind::FD_CHANGE, obj));
                if !stands(obj) {
                    return Err(EBADF);
                }
            }
        }
        _ => {}
    }
    Ok(None)
}

/// The hidden number goes with the call, which closes it.
fn moved(hidden: i32, number: i32) -> Held {
    let before = me().hidden;
    let hidden = [[hidden + 1, number], [0; 2]];
    model().hide_numbers(local().cur, hidden);
    Held { hidden, before, reserved: [None; 2], outer: [0; 2], replaced: -1, makes: false, closes: true, looked: 0 }
}

/// `number` is given back, or is to stand for what `source` does: an operation, if others can tell. What it stood for gets a hidden number then.
fn give_up(number: i32, source: Option<i32>) -> Result<Option<i32>, i64> {
    let cur = local().cur;
    let changed = machine().use_number(cur, number, Use::Write);
    let looked = source.and_then(|source| machine().use_number(cur, source, Use::Read));
    let free = machine().use_free_numbers(cur, Use::Read);
    if changed.is_none() && looked.is_none() && free.is_none() {
        return Ok(None);
    }
    let mut op = Op::new(Kind::FD_CHANGE);
    // Where it is not visible by itself nobody else names the object.
    op.obj = changed.or_else(|| machine().number_object(cur, number)).unwrap_or(NONE);
    op.obj2 = looked.unwrap_or(NONE);
    op.arg = free.map_or(0, |free| i64::from(free) + 1);
    gate::pass(op);
    let is_gone = |number: i32, obj: Option<ObjId>| obj.is_some_and(|obj| !stands(obj)) || !fd::is_open(number as u64);
    match source {
        Some(source) if is_gone(source, looked) => Err(EBADF),
        Some(_) if changed.is_some_and(|obj| !stands(obj)) => Err(EBUSY),
        None if is_gone(number, changed) => Err(EBADF),
        _ => Ok(move_away(number)),
    }
}

/// Closes those of a range one by one, as the kernel does, if others can tell.
fn close_range(first: u32, last: u32, flags: u64) {
    const CLOSE_RANGE_CLOEXEC: u64 = 4;
    for number in first..=last.min(LAST_FD as u32 - 1) {
        if !is_watched(number as i32) || !fd::is_open(number.into()) {
            continue;
        }
        if flags & CLOSE_RANGE_CLOEXEC != 0 {
            if let Some(obj) = machine().use_number(local().cur, number as i32, Use::Write) {
                gate::pass(Op::on(Kind::FD_CHANGE, obj));
            }
            continue;
        }
        if let Ok(Some(hidden)) = give_up(number as i32, None) {
            close(hidden);
        }
    }
}

/// Closes a hidden number.
fn close(hidden: i32) {
    let a = [hidden as u64, 0, 0, 0, 0, 0];
    if descriptors::call(libc::SYS_close, a).is_none() {
        kernel::call(libc::SYS_close, a);
    }
}
