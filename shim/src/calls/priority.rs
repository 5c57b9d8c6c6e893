//! Priorities, policies and limits of threads and processes: by ids, which are the program's own. What decides who runs next is
//! vsrun, so nice values and policies are kept for the program and never reach the kernel.

use vsrun_model::carrier::FiberState;
use vsrun_model::file::Use;
use vsrun_model::{Pid, ProcState, ThreadState, Tid};

use super::msg::has_capability;
use super::{files, joins};
use crate::gate::end;
use crate::gate::local::{fiber_of, local, process_of, world};
use crate::sys::errno::*;
use crate::sys::{cstr, limit, load, raw, store, touch};

const CAP_SYS_NICE: u32 = 23;
/// Among the bits of a policy: children begin with the usual one.
const RESET_ON_FORK: i32 = 0x4000_0000;
const DEADLINE: i32 = 6;
/// Policies that have a priority.
const REAL_TIME: [i32; 2] = [libc::SCHED_FIFO, libc::SCHED_RR];

/// The calls about them. `None`: it is another one.
pub fn call(nr: i64, a: [u64; 6]) -> Option<i64> {
    let id = a[0] as i32;
    Some(match nr {
        libc::SYS_getpriority => get_nice(id, a[1] as i32),
        libc::SYS_setpriority => set_nice(id, a[1] as i32, a[2] as i32),
        libc::SYS_sched_getscheduler => with(id, |t| policy_of(fiber_of(t))),
        libc::SYS_sched_setscheduler if (a[1] as i32) < 0 => EINVAL,
        libc::SYS_sched_setscheduler => schedule(nr, id, Some(a[1] as i32), a[2]),
        libc::SYS_sched_setparam => schedule(nr, id, None, a[1]),
        libc::SYS_sched_getparam if a[1] == 0 => EINVAL,
        libc::SYS_sched_getparam => with(id, |t| {
            store(a[1], i32::from(fiber_of(t).rt_priority));
            0
        }),
        libc::SYS_sched_rr_get_interval => with(id, |t| interval(t, a[1])),
        libc::SYS_sched_getattr => get_attributes(id, a[1], a[2] as u32, a[3]),
        libc::SYS_sched_setattr => set_attributes(id, a[1], a[2]),
        libc::SYS_sched_getaffinity => get_affinity(id, a[1] as usize, a[2]),
        libc::SYS_sched_setaffinity => set_affinity(id, a[1], a[2]),
        libc::SYS_prlimit64 => by_process(id, |real| raw!(nr, real, a[1], a[2], a[3])),
        libc::SYS_get_robust_list => by_process(id, |real| raw!(nr, real, a[1], a[2])),
        libc::SYS_ioprio_get | libc::SYS_ioprio_set => disk(nr, id, a),
        libc::SYS_capget | libc::SYS_capset => capabilities(nr, a),
        _ => return None,
    })
}

/// The thread with that id, of any process of the program.
fn thread(id: i32) -> Option<Tid> {
    files::thread_with_id(id)
}

fn with(id: i32, work: impl FnOnce(Tid) -> i64) -> i64 {
    match thread(id) {
        _ if id < 0 => EINVAL,
        Some(t) => work(t),
        None => ESRCH,
    }
}

/// Calls the kernel for the process of a thread, by its real id: 0 for this one.
fn by_process(id: i32, call: impl FnOnce(i32) -> i64) -> i64 {
    match thread(id).map(|t| world().threads[t].pid) {
        Some(p) if p == local().pid => call(0),
        Some(p) if world().procs[p].state == ProcState::LIVE => call(process_of(p).real_pid),
        // The kernel keeps what it had until it is waited for; here the real one is gone.
        Some(_) => end::unsupported(&[
            b"limits, capabilities or disk priority of a process that has ended, asked for by its id",
        ]),
        None => ESRCH,
    }
}

/// The threads that a call of setpriority is about, or an error.
fn chosen(which: i32, who: i32) -> Result<impl Iterator<Item = Tid>, i64> {
    let own = local().pid;
    let group = if who == 0 { world().procs[own].pgid } else { who };
    let user = who == 0 || who as u32 == raw!(libc::SYS_getuid) as u32;
    let one = if which == libc::PRIO_PROCESS as i32 { thread(who) } else { None };
    if !(0..=2).contains(&which) {
        return Err(EINVAL);
    }
    let is_meant = move |t: &Tid| match which as u32 {
        libc::PRIO_PROCESS => one == Some(*t),
        libc::PRIO_PGRP => world().procs[world().threads[*t].pid].pgid == group,
        _ => user,
    };
    Ok((0..world().threads.len).filter(|&t| files::is_there(t)).filter(is_meant))
}

fn get_nice(which: i32, who: i32) -> i64 {
    match chosen(which, who) {
        Ok(threads) => threads.map(|t| 20 - i64::from(fiber_of(t).nice)).max().unwrap_or(ESRCH),
        Err(error) => error,
    }
}

fn set_nice(which: i32, who: i32, nice: i32) -> i64 {
    let nice = nice.clamp(-20, 19) as i8;
    let threads = match chosen(which, who) {
        Ok(threads) => threads,
        Err(error) => return error,
    };
    let mut result = ESRCH;
    for t in threads {
        if !may_be_nice(t, nice) {
            result = EACCES;
            continue;
        }
        fiber_of(t).nice = nice;
        result = if result == ESRCH { 0 } else { result };
    }
    result
}

/// Nobody gets a lower nice value than RLIMIT_NICE allows.
fn may_be_nice(t: Tid, nice: i8) -> bool {
    nice >= fiber_of(t).nice
        || (20 - i64::from(nice)) as u64 <= limit(libc::RLIMIT_NICE)
        || has_capability(CAP_SYS_NICE)
}

fn policy_of(fiber: &FiberState) -> i64 {
    i64::from(fiber.policy) | if fiber.reset_on_fork { RESET_ON_FORK as i64 } else { 0 }
}

/// sched_setscheduler, and sched_setparam (without a policy), which wants the priority at `at`. The kernel reads the nice value first and
/// sets it again with the policy (kernel/sched/syscalls.c, _sched_setscheduler): what somebody else sets in between is lost.
fn schedule(nr: i64, id: i32, policy: Option<i32>, at: u64) -> i64 {
    if at == 0 || id < 0 {
        return EINVAL;
    }
    let priority: i32 = load(at);
    with(id, |t| {
        let nice = fiber_of(t).nice;
        files::policy_changes(nr, t);
        let result = set_policy(t, policy, priority);
        if result == 0 && !REAL_TIME.contains(&fiber_of(t).policy.into()) {
            fiber_of(t).nice = nice;
        }
        result
    })
}

fn set_policy(t: Tid, policy: Option<i32>, priority: i32) -> i64 {
    let fiber = fiber_of(t);
    let reset = policy.map_or(fiber.reset_on_fork, |policy| policy & RESET_ON_FORK != 0);
    let policy = policy.map_or(fiber.policy.into(), |policy| policy & !RESET_ON_FORK);
    let known =
        matches!(policy, libc::SCHED_OTHER | libc::SCHED_BATCH | libc::SCHED_IDLE) || REAL_TIME.contains(&policy);
    if !known || !(0..=99).contains(&priority) || REAL_TIME.contains(&policy) != (priority != 0) {
        return EINVAL;
    }
    let higher = priority > i32::from(fiber.rt_priority) || policy != i32::from(fiber.policy);
    let allowed = || priority as u64 <= limit(libc::RLIMIT_RTPRIO) || has_capability(CAP_SYS_NICE);
    if REAL_TIME.contains(&policy) && higher && !allowed()
        || fiber.reset_on_fork && !reset && !has_capability(CAP_SYS_NICE)
    {
        return EPERM;
    }
    (fiber.policy, fiber.rt_priority, fiber.reset_on_fork) = (policy as u8, priority as u8, reset);
    0
}

/// sched_rr_get_interval: a tenth of a second for those that take turns, what the kernel says for the usual.
fn interval(t: Tid, at: u64) -> i64 {
    match i32::from(fiber_of(t).policy) {
        libc::SCHED_FIFO => store(at, [0u64, 0]),
        libc::SCHED_RR => store(at, [0u64, 100_000_000]),
        _ => return raw!(libc::SYS_sched_rr_get_interval, 0, at),
    }
    0
}

/// Bytes of struct sched_attr in its first version.
const ATTRIBUTES: u64 = 48;

fn get_attributes(id: i32, at: u64, size: u32, flags: u64) -> i64 {
    if at == 0 || id < 0 || !(48..=4096).contains(&size) || flags as u32 != 0 {
        return EINVAL;
    }
    with(id, |t| {
        let fiber = fiber_of(t);
        let nice = if REAL_TIME.contains(&fiber.policy.into()) { 0 } else { i32::from(fiber.nice) };
        store(at, [ATTRIBUTES as u32, fiber.policy.into()]);
        store(at + 8, u64::from(fiber.reset_on_fork));
        store(at + 16, [nice, fiber.rt_priority.into()]);
        store(at + 24, [0u64; 3]);
        0
    })
}

fn set_attributes(id: i32, at: u64, flags: u64) -> i64 {
    if at == 0 || id < 0 || flags as u32 != 0 {
        return EINVAL;
    }
    let size: u32 = load(at);
    if size != 0 && u64::from(size) < ATTRIBUTES {
        return E2BIG;
    }
    touch(at, ATTRIBUTES);
    let (policy, options, nice, priority): (i32, u64, i32, i32) =
        (load(at + 4), load(at + 8), load(at + 16), load(at + 20));
    if policy < 0 {
        return EINVAL;
    }
    if policy == DEADLINE {
        return EPERM;
    }
    with(id, |t| {
        let reset = if options & 1 != 0 { RESET_ON_FORK } else { 0 };
        if !REAL_TIME.contains(&policy) && !may_be_nice(t, nice.clamp(-20, 19) as i8) {
            return EPERM;
        }
        let result = set_policy(t, Some(policy | reset), priority);
        if result == 0 && !REAL_TIME.contains(&policy) {
            fiber_of(t).nice = nice.clamp(-20, 19) as i8;
        }
        result
    })
}

/// Two processors, as far as the program is concerned: those of vsrun's world are no business of its.
const PROCESSORS: u64 = 3;

fn get_affinity(id: i32, len: usize, mask: u64) -> i64 {
    if len < 8 || !len.is_multiple_of(8) {
        return EINVAL;
    }
    let Some(t) = thread(id) else { return ESRCH };
    store(mask, PROCESSORS & !u64::from(fiber_of(t).barred));
    8
}

fn set_affinity(id: i32, len: u64, mask: u64) -> i64 {
    let n = len.min(8);
    touch(mask, n);
    let wanted = (0..n).fold(0, |all, i| all | u64::from(load::<u8>(mask + i)) << (8 * i));
    let Some(t) = thread(id) else { return ESRCH };
    if wanted & PROCESSORS == 0 {
        return EINVAL;
    }
    fiber_of(t).barred = (PROCESSORS & !wanted) as u8;
    0
}

/// ioprio_get and ioprio_set: of one thread the kernel's; of a group or a user, which others may be of, this process's.
fn disk(nr: i64, which: i32, a: [u64; 6]) -> i64 {
    const PROCESS: i32 = 1;
    match which {
        PROCESS => by_process(a[1] as i32, |real| raw!(nr, PROCESS, real, a[2])),
        2 | 3 => raw!(nr, PROCESS, 0, a[2]),
        _ => EINVAL,
    }
}

/// capget and capset: the header has the id.
fn capabilities(nr: i64, a: [u64; 6]) -> i64 {
    let header: [u32; 2] = load(a[0]);
    let id = header[1] as i32;
    if id <= 0 {
        return raw!(nr, a[0], a[1]);
    }
    let own = thread(id).map(|t| world().threads[t].pid);
    let answer = |real: Pid| {
        let header = [header[0], if real == local().pid { 0 } else { process_of(real).real_pid as u32 }];
        let result = raw!(nr, header.as_ptr(), a[1]);
        store(a[0], header[0]);
        result
    };
    own.map_or(ESRCH, answer)
}

/// The first process begins as vsrun was started.
pub fn begin() {
    let fiber = fiber_of(local().cur);
    fiber.nice = (20 - raw!(libc::SYS_getpriority, libc::PRIO_PROCESS, 0)).clamp(-20, 19) as i8;
    let mut priority = 0i32;
    let policy = raw!(libc::SYS_sched_getscheduler, 0);
    raw!(libc::SYS_sched_getparam, 0, &raw mut priority);
    if (0..RESET_ON_FORK as i64).contains(&policy) {
        (fiber.policy, fiber.rt_priority) = (policy as u8, priority as u8);
    }
    if policy == i64::from(libc::SCHED_OTHER) {
        // Who is given the turn does not take the CPU from who gives it, and is about to wait: that would be two switches more.
        raw!(libc::SYS_sched_setscheduler, 0, libc::SCHED_BATCH, &raw const NO_PRIORITY);
    }
}

/// struct sched_param of what is not real-time.
static NO_PRIORITY: i32 = 0;

/// The name of thread `t` of this process. The kernel knows that of the first one.
pub fn name_of(t: Tid) -> [u8; 16] {
    let mut name = fiber_of(t).name;
    if name == [0; 16] {
        raw!(libc::SYS_prctl, libc::PR_GET_NAME, name.as_mut_ptr());
    }
    name
}

/// The running thread or another one of this process gets the name at `at`.
pub fn set_name(t: Tid, at: u64) {
    let mut name = [0u8; 16];
    for (i, to) in name[..15].iter_mut().enumerate() {
        *to = load(at + i as u64);
        if *to == 0 {
            break;
        }
    }
    if t == world().procs[local().pid].main_thread {
        raw!(libc::SYS_prctl, libc::PR_SET_NAME, name.as_ptr());
    }
    fiber_of(t).name = name;
}

/// The thread of this process that pthreads knows by that number.
fn by_handle(handle: u64) -> Option<Tid> {
    let ours = |&t: &Tid| world().threads[t].pid == local().pid && fiber_of(t).fs == handle;
    let live = |&t: &Tid| world().threads[t].state != ThreadState::EXITED;
    world().live.as_slice().iter().copied().find(|t| ours(t) && live(t))
}

/// pthread_setname_np; an error number of libc's kind.
pub fn give_name(handle: u64, at: u64) -> i64 {
    if cstr(at, 17).len() > 15 {
        return ERANGE;
    }
    joins::asked_about(handle);
    let Some(t) = by_handle(handle) else { return ENOENT };
    files::own_name(t, Use::Write);
    if world().threads[t].state == ThreadState::EXITED {
        return ENOENT;
    }
    set_name(t, at);
    0
}

/// pthread_getname_np.
pub fn tell_name(handle: u64, to: u64, room: u64) -> i64 {
    if room < 16 {
        return ERANGE;
    }
    joins::asked_about(handle);
    let Some(t) = by_handle(handle) else { return ENOENT };
    files::own_name(t, Use::Read);
    if world().threads[t].state == ThreadState::EXITED {
        return ENOENT;
    }
    store(to, name_of(t));
    0
}

/// A new thread or process begins as its creator is.
pub fn inherit(from: Tid, to: Tid) {
    let old = *fiber_of(from);
    let new = fiber_of(to);
    new.name = name_of(from);
    (new.nice, new.policy, new.rt_priority, new.barred) = (old.nice, old.policy, old.rt_priority, old.barred);
    if old.reset_on_fork {
        (new.policy, new.rt_priority, new.nice) = (libc::SCHED_OTHER as u8, 0, old.nice.max(0));
    }
}
