//! Calls about signals: actions, masks, sending, waiting.

use vsrun_model::op::TRY;
use vsrun_model::signal::{bit, stops, PAUSE};
use vsrun_model::world::ONE_STEP;
use vsrun_model::{Kind, Op, Pid, ProcState, SigInfo, NONE};

use super::{files, time};
use crate::gate::local::{local, machine, me, model, world, Action};
use crate::gate::{self, fiber, inject, signal};
use crate::sys::errno::*;
use crate::sys::{copy_out, load, raw, store};

/// Signals that cannot be blocked or waited for.
const UNTOUCHABLE: u64 = 1 << (libc::SIGKILL - 1) | 1 << (libc::SIGSTOP - 1);

/// Signals that glibc keeps to itself: SIGCANCEL, SIGSETXID.
const OF_GLIBC: core::ops::RangeInclusive<i32> = 32..=33;

/// rt_sigaction.
pub fn sigaction(signal: i32, new: u64, old: u64, size: u64) -> i64 {
    if size != 8 {
        return EINVAL;
    }
    let action = (new != 0).then(|| load::<Action>(new));
    if !(1..=64).contains(&signal) {
        return EINVAL;
    }
    if new != 0 && (signal == libc::SIGKILL || signal == libc::SIGSTOP) {
        return EINVAL;
    }
    // That of its own signals is set by glibc in the middle of pthread_cancel, whose step is one.
    if new != 0 && !OF_GLIBC.contains(&signal) {
        if signal == libc::SIGCHLD {
            machine().child_signal_changes(local().cur);
        }
        gate::place(libc::SYS_rt_sigaction);
    }
    let before = local().actions[signal as usize];
    if let Some(action) = action {
        let result = signal::set_action(signal, Action { mask: action.mask & !UNTOUCHABLE, ..action });
        if result < 0 {
            return result;
        }
    }
    if old != 0 {
        store(old, before);
    }
    0
}

/// All signals but SIGKILL and SIGSTOP, those of glibc too.
const ALL_BLOCKED: u64 = !(1 << (libc::SIGKILL - 1) | 1 << (libc::SIGSTOP - 1));

/// rt_sigprocmask of the running fiber.
pub fn sigprocmask(how: i32, set: u64, old: u64, size: u64) -> i64 {
    if size != 8 {
        return EINVAL;
    }
    let before = me().sigmask;
    if set != 0 {
        let set: u64 = load(set);
        let after = match how {
            libc::SIG_BLOCK => before | set,
            libc::SIG_UNBLOCK => before & !set,
            libc::SIG_SETMASK => set,
            _ => return EINVAL,
        };
        // To unblock is none: what comes just after it could have come before, and is delivered then as well, unless it answers the
        // operation before. glibc blocks everything for a moment where no signal may come.
        let within = before | after == ALL_BLOCKED;
        if (after ^ before) & 1 << (libc::SIGCHLD - 1) != 0 && !within {
            machine().child_signal_changes(local().cur);
        }
        let blocks = after & !before != 0 && !within;
        // What waits for the process another thread may take first, which lets it through, too.
        let process = &world().procs[local().pid];
        let contended = before & !after & process.sigpending != 0 && process.live_threads > 1 && !within;
        // A timer's signal may come before the call, where it is not blocked, and as soon as it is not blocked any more.
        let ticks = if within { 0 } else { world().timer_signals(local().cur) };
        if ticks & !before != 0 {
            gate::place_for_timers(libc::SYS_rt_sigprocmask);
        } else if blocks || contended || before & !after != 0 && machine().is_mask_answered(local().cur) {
            gate::place(libc::SYS_rt_sigprocmask);
        }
        model().set_mask(local().cur, after);
        if after != before {
            gate::look();
        }
        if ticks & before & !after != 0 {
            gate::arms();
        }
    }
    if old != 0 {
        store(old, before);
    }
    gate::deliver();
    0
}

/// rt_sigpending.
pub fn sigpending(set: u64, size: u64) -> i64 {
    if size > 8 {
        return EINVAL;
    }
    gate::place(libc::SYS_rt_sigpending);
    model().looks_for_pending(local().cur);
    let pending = (me().sigpending | world().procs[local().pid].sigpending) & me().sigmask;
    copy_out(set, &pending.to_ne_bytes()[..size as usize]);
    0
}

/// The operation in `pass` waits with the mask at `set`, if that is not 0.
pub fn with_mask<R>(set: u64, pass: impl FnOnce() -> R) -> R {
    if set != 0 {
        let mask: u64 = load(set);
        tick_before(libc::SYS_ppoll, mask);
        model().wait_with_mask(local().cur, mask);
    }
    let result = pass();
    model().wait_with_own_mask(local().cur);
    result
}

/// sigaltstack of the running fiber.
pub fn sigaltstack(new: u64, old: u64) -> i64 {
    const SS_ONSTACK: u64 = 1;
    const SS_DISABLE: u64 = 2;
    const SS_AUTODISARM: u64 = 1 << 31;
    const SMALLEST: u64 = 2048;
    let [stack, flags, size] = fiber().altstack;
    let here = 0u8;
    // The frames of a trap lie on the stack of the fiber, too.
    let on = size > 0 && (&here as *const u8 as u64).wrapping_sub(stack) < size;
    if new != 0 {
        let (to, mode, len): (u64, u32, u64) = (load(new), load(new + 8), load(new + 16));
        let mode = u64::from(mode);
        if on {
            return EPERM;
        }
        if mode & !SS_AUTODISARM > SS_DISABLE {
            return EINVAL;
        }
        if mode & SS_DISABLE == 0 && len < SMALLEST {
            return ENOMEM;
        }
        fiber().altstack = if mode & SS_DISABLE != 0 { [0; 3] } else { [to, mode & SS_AUTODISARM, len] };
        local().altstacks = true;
        fiber::install_altstack(local().cur);
    }
    if old != 0 {
        let state = if on {
            SS_ONSTACK
        } else if size == 0 {
            SS_DISABLE
        } else {
            0
        };
        store(old, stack);
        store(old + 8, (flags | state) as u32);
        store(old + 16, size);
    }
    0
}

/// What a signal sent by kill (`given` 0) or sigqueue says; the latter may not claim to come from the kernel or kill, but to `id`, which is
/// the thread's own.
fn info(id: i32, signal: i32, code: i32, given: u64) -> Result<SigInfo, i64> {
    let (pid, uid) = (world().procs[local().pid].vpid, raw!(libc::SYS_getuid) as u32);
    if given == 0 {
        return Ok(SigInfo { signal, code, pid, uid, value: 0 });
    }
    let code: i32 = load(given + 8);
    if (code >= 0 || code == libc::SI_TKILL) && id != me().vtid {
        return Err(EPERM);
    }
    Ok(SigInfo { signal, code, pid: load(given + 16), uid: load(given + 20), value: load(given + 24) })
}

/// There is such a signal, or it is 0. Whom it is for is looked up first.
fn is_valid(signal: i32) -> bool {
    (0..=64).contains(&signal)
}

/// kill.
pub fn kill(id: i32, signal: i32) -> i64 {
    let group = match id {
        0 => world().procs[local().pid].pgid,
        i if i < 0 => i.saturating_neg(),
        _ => 0,
    };
    match info(id, signal, libc::SI_USER, 0) {
        Ok(info) if group == 0 => to_process(id, info),
        Ok(info) => to_group(group, id == -1, info),
        Err(error) => error,
    }
}

/// rt_sigqueueinfo, and kill of one process, with the siginfo at `given`, if that is not 0.
pub fn queue(id: i32, signal: i32, given: u64) -> i64 {
    match info(id, signal, libc::SI_USER, given) {
        Ok(_) if id <= 0 => ESRCH,
        Ok(info) => to_process(id, info),
        Err(error) => error,
    }
}

/// Whether a signal of a terminal stops depends on who is in the group.
fn told_by_stop(signal: i32) {
    if matches!(signal, libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU) {
        files::group_told();
    }
}

/// A signal is sent to process `p`: the superuser is not asked who he is.
fn asks_permission(p: Pid) {
    if p != local().pid && raw!(libc::SYS_geteuid) != 0 {
        model().signals_unprivileged(local().pid, p);
    }
}

/// A process that waits at an epoll instance of this one's may notice what it sends itself.
fn wakes_watchers() -> bool {
    world().has_signal_watch(local().pid) && machine().is_watched(local().cur)
}

fn to_process(id: i32, info: SigInfo) -> i64 {
    let (own, signal) = (local().pid, info.signal);
    let target = world().process_named(id).unwrap_or(u32::MAX);
    // Alone with itself, a process is the only one to notice.
    if target != own || !world().is_alone(local().cur) || is_valid(signal) && (stops(signal) || wakes_watchers()) {
        told_by_stop(signal);
        gate::pass(Op::on(Kind::KILL, target).arg(if is_valid(signal) { signal.into() } else { 0 }));
    }
    if world().process_by_id(id).is_none() {
        return ESRCH;
    }
    if !is_valid(signal) {
        return EINVAL;
    }
    asks_permission(target);
    let result = signal::send(target, NONE, info);
    if target == own {
        gate::sends();
    }
    gate::deliver();
    result
}

/// To all of that group, or to everybody else.
fn to_group(group: i32, all: bool, info: SigInfo) -> i64 {
    let (own, signal) = (local().pid, info.signal);
    files::group_told();
    gate::pass(Op::on(Kind::KILL, u32::MAX).arg(if is_valid(signal) { signal.into() } else { 0 }));
    let chosen = |p: Pid| {
        let process = &world().procs[p];
        process.state != ProcState::REAPED && if all { p != own } else { process.pgid == group }
    };
    if !(0..world().procs.len).any(chosen) {
        return ESRCH;
    }
    if !is_valid(signal) {
        return EINVAL;
    }
    // One is sent the signal after the other: what the first does about it may come before the last has it.
    let handles = |&p: &Pid| world().handled_by_program(p) & bit(signal) != 0;
    let others = || (0..world().procs.len).filter(|&p| p != own && chosen(p));
    if signal != 0 && others().count() + usize::from(chosen(own)) > 1 && others().any(|p| handles(&p)) {
        model().never_comes(ONE_STEP);
    }
    for p in others() {
        asks_permission(p);
        signal::send(p, NONE, info);
    }
    if chosen(own) {
        signal::send(own, NONE, info);
        gate::sends();
    }
    gate::deliver();
    0
}

/// tkill.
pub fn tkill(vtid: i32, signal: i32) -> i64 {
    if vtid <= 0 {
        return EINVAL;
    }
    to_thread(0, vtid, signal, 0)
}

/// tgkill, and rt_tgsigqueueinfo with the siginfo at `given`.
pub fn tgkill(vpid: i32, vtid: i32, signal: i32, given: u64) -> i64 {
    if vpid <= 0 || vtid <= 0 {
        return EINVAL;
    }
    to_thread(vpid, vtid, signal, given)
}

/// `vpid` 0: whatever process it is of.
fn to_thread(vpid: i32, vtid: i32, signal: i32, given: u64) -> i64 {
    let info = match info(vtid, signal, libc::SI_TKILL, given) {
        Ok(info) => info,
        Err(error) => return error,
    };
    let Some(t) = world().thread_named(vtid) else { return ESRCH };
    let p = world().threads[t].pid;
    if vpid != 0 && world().procs[p].vpid != vpid {
        return ESRCH;
    }
    // One that ends the process may come before or after another thread has changed that.
    let ends = || signal != libc::SIGABRT && signal::is_fatal(signal) && !world().is_alone(local().cur);
    let concerns = || signal > 0 && (files::action_is_shared(signal) || ends() || stops(signal) || wakes_watchers());
    if t != local().cur || is_valid(signal) && concerns() {
        told_by_stop(signal);
        gate::pass(Op::on(Kind::KILL, p).arg(if is_valid(signal) { signal.into() } else { 0 }));
        if !files::is_there(t) {
            return ESRCH;
        }
    }
    if !is_valid(signal) {
        return EINVAL;
    }
    // Where the first thread has ended, and its process has not, what is sent to it stays with it.
    if world().threads[t].alive() {
        asks_permission(p);
        let result = signal::send(p, t, info);
        gate::deliver();
        return result;
    }
    0
}

/// abort: a handler of SIGABRT runs first, which may leave by a jump or end the process.
pub fn raise_abort() {
    const SIGABRT: u64 = 1 << (libc::SIGABRT - 1);
    let process = &world().procs[local().pid];
    if process.handled & SIGABRT != 0 {
        sigprocmask(libc::SIG_UNBLOCK, &SIGABRT as *const u64 as u64, 0, 8);
        tgkill(process.vpid, me().vtid, libc::SIGABRT, 0);
    }
}

/// rt_sigsuspend: waits with another mask.
pub fn suspend(set: u64, size: u64) -> i64 {
    if size != 8 {
        return EINVAL;
    }
    let mask: u64 = load::<u64>(set) & !UNTOUCHABLE;
    tick_before(libc::SYS_rt_sigsuspend, mask);
    gate::pass(Op::new(Kind::SIGSUSPEND).arg(mask as i64))
}

/// A call takes or blocks signals while it waits: what a timer sends before that is handled, where it is not blocked.
fn tick_before(nr: i64, signals: u64) {
    if world().timer_signals(local().cur) & signals & !me().sigmask != 0 {
        gate::place_for_timers(nr);
    }
}

/// pause.
pub fn pause() -> i64 {
    wait_with(me().sigmask)
}

/// True if a signal may interrupt a call that asks for signals and does nothing else: one is pending, or others or a timer may
/// send one.
pub fn may_strike() -> bool {
    let pending = me().sigpending | world().procs[local().pid].sigpending;
    let timers = || !world().concurrent && world().timers_act_on(local().cur) != 0;
    pending != 0 || machine().is_watched(local().cur) || timers()
}

/// Waits for a signal with `mask`, without setting it.
pub fn wait_with(mask: u64) -> i64 {
    gate::pass(Op::new(Kind::SIGSUSPEND).with(PAUSE).arg(mask as i64))
}

/// rt_sigtimedwait: sigwait, sigwaitinfo, sigtimedwait.
pub fn timedwait(set: u64, info: u64, timeout: u64, size: u64) -> i64 {
    if size != 8 {
        return EINVAL;
    }
    let set: u64 = load::<u64>(set) & !UNTOUCHABLE;
    tick_before(libc::SYS_rt_sigtimedwait, set);
    let mut op = Op::new(Kind::SIGWAIT).arg(set as i64);
    if timeout != 0 {
        let Some(ns) = time::timespec(timeout) else { return EINVAL };
        op = if ns == 0 { op.with(TRY) } else { op.until(time::relative(ns)) };
    }
    if !op.tries() {
        inject::interrupts();
    }
    let result = gate::pass(op);
    if result != 0 {
        return result;
    }
    let taken = me().taken;
    if info != 0 {
        store(info, signal::siginfo(&taken));
    }
    taken.signal as i64
}
