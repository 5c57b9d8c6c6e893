//! The net: every system call that does not come from the shim's own text is caught by Syscall User Dispatch and
//! arrives here as a SIGSYS. What becomes of each is in one table, `vsrun_model::calls`; what passes through to the
//! kernel is counted and known to vsrun while it lasts.

use core::cell::UnsafeCell;

use vsrun_model::arena::{FIRST_FD, LAST_FD, MAX_SYSCALLS};
use vsrun_model::calls::{fate, name, Fate};
use vsrun_model::object::NONE;
use vsrun_model::{Kind, Op, SigInfo, ThreadState};

use crate::fiber::Start;
use crate::local::{arena, local, me, world};
use crate::process::{self, CloneArgs};
use crate::sys::{load, store, store_if};
use crate::{end, fd, gate, locks, raw, shm, signal, time};

const PR_SET_SYSCALL_USER_DISPATCH: i32 = 59;
const BLOCK: u8 = 1;

struct Selector(UnsafeCell<u8>);
// SAFETY: one kernel thread a process; only the kernel reads it.
unsafe impl Sync for Selector {}
static SELECTOR: Selector = Selector(UnsafeCell::new(0));

/// Arms the net in this kernel thread; the shim's own text stays exempt.
pub fn arm() {
    let (low, high) = local().text;
    let selector = SELECTOR.0.get();
    store(selector as u64, BLOCK);
    if raw!(libc::SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, 1, low, high - low, selector) < 0 {
        end::bug(b"Syscall User Dispatch could not be armed");
    }
}

/// Takes the net down again.
pub fn disarm() {
    raw!(libc::SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0, 0);
}

/// Offsets of registers in the kernel's ucontext.
mod reg {
    pub const R8: u64 = 40;
    pub const R9: u64 = 48;
    pub const R10: u64 = 56;
    pub const R12: u64 = 72;
    pub const R13: u64 = 80;
    pub const R14: u64 = 88;
    pub const R15: u64 = 96;
    pub const RDI: u64 = 104;
    pub const RSI: u64 = 112;
    pub const RBP: u64 = 120;
    pub const RBX: u64 = 128;
    pub const RDX: u64 = 136;
    pub const RAX: u64 = 144;
    pub const RIP: u64 = 168;
}

/// Handler of SIGSYS.
pub extern "C" fn on_sigsys(_: i32, info: u64, context: u64) {
    const SYS_USER_DISPATCH: i32 = 2;
    let nr: u64 = load(context + reg::RAX);
    if load::<i32>(info + 8) != SYS_USER_DISPATCH {
        return;
    }
    let at = |offset: u64| load::<u64>(context + offset);
    let args = [at(reg::RDI), at(reg::RSI), at(reg::RDX), at(reg::R10), at(reg::R8), at(reg::R9)];
    let result = call(nr as i64, args, context);
    store(context + reg::RAX, result);
}

fn start_of(context: u64) -> Start {
    let at = |offset: u64| load::<u64>(context + offset);
    Start {
        saved: [at(reg::RBP), at(reg::RBX), at(reg::R12), at(reg::R13), at(reg::R14), at(reg::R15)],
        scratch: [at(reg::R8), at(reg::R9), at(reg::R10), at(reg::RDI), at(reg::RSI), at(reg::RDX)],
        rip: at(reg::RIP),
    }
}

/// Performs system call `nr` for the program. `context` is 0 when there is no trap (interposed syscall()).
pub fn call(nr: i64, a: [u64; 6], context: u64) -> i64 {
    match nr {
        libc::SYS_futex => crate::futex::call(a),
        449 | 454..=456 => crate::futex::refuse_new(nr),
        libc::SYS_clone | libc::SYS_clone3 | libc::SYS_fork | libc::SYS_vfork => clone(nr, a, start_of(context)),
        libc::SYS_exit => process::exit_thread(a[0] as i32),
        libc::SYS_exit_group => process::exit_group((a[0] as i32 & 0xff) << 8),
        libc::SYS_wait4 => process::wait4(a[0] as i32, a[1], a[2] as i32, a[3]),
        libc::SYS_waitid => process::waitid(a[0] as i32, a[1] as i32, a[2], a[3] as i32, a[4]),
        libc::SYS_execve => process::exec(libc::AT_FDCWD, a[0], a[1], a[2], 0),
        libc::SYS_execveat => process::exec(a[0] as i32, a[1], a[2], a[3], a[4] as i32),
        libc::SYS_sched_yield => gate::pass(Op::new(Kind::YIELD)),
        libc::SYS_nanosleep => time::nanosleep(libc::CLOCK_MONOTONIC, 0, a[0], a[1]),
        libc::SYS_clock_nanosleep => time::nanosleep(a[0] as i32, a[1] as i32, a[2], a[3]),
        libc::SYS_clock_gettime => time::clock_gettime(a[0] as i32, a[1]),
        libc::SYS_gettimeofday => time::gettimeofday(a[0], a[1]),
        libc::SYS_time => time::time(a[0]),
        libc::SYS_times => (time::read(libc::CLOCK_MONOTONIC) / 10_000_000) as i64,
        libc::SYS_getcpu => {
            store_if(a[0], 0u32);
            store_if(a[1], 0u32);
            0
        }
        libc::SYS_getrandom => random(a[0], a[1]),
        libc::SYS_semget | libc::SYS_semop | libc::SYS_semtimedop | libc::SYS_semctl => crate::sysv::call(nr, a),
        libc::SYS_msgget | libc::SYS_msgsnd | libc::SYS_msgrcv | libc::SYS_msgctl => crate::msg::call(nr, a, false),
        libc::SYS_mq_open
        | libc::SYS_mq_unlink
        | libc::SYS_mq_timedsend
        | libc::SYS_mq_timedreceive
        | libc::SYS_mq_notify
        | libc::SYS_mq_getsetattr => crate::mqueue::call(nr, a),
        libc::SYS_shmget | libc::SYS_shmat | libc::SYS_shmdt | libc::SYS_shmctl => shm::call(nr, a),
        libc::SYS_mmap | libc::SYS_munmap | libc::SYS_mremap => fd::call(nr, a).unwrap_or_else(|| shm::mapping(nr, a)),
        _ => fd::call(nr, a).or_else(|| identity(nr, a)).unwrap_or_else(|| guarded(nr, a)),
    }
}

/// Calls about who and what this thread is: virtual ids, signals, what the kernel keeps per thread.
fn identity(nr: i64, a: [u64; 6]) -> Option<i64> {
    let (p, id) = (local().pid, a[0] as i32);
    Some(match nr {
        libc::SYS_getpid => world().procs[p].vpid as i64,
        libc::SYS_gettid | libc::SYS_set_tid_address => {
            if nr == libc::SYS_set_tid_address {
                me().clear_tid = a[0];
            }
            me().vtid as i64
        }
        libc::SYS_getppid => world().procs.get(world().procs[p].parent).map_or(1, |q| q.vpid as i64),
        libc::SYS_getpgrp => world().procs[p].pgid as i64,
        libc::SYS_getpgid | libc::SYS_getsid | libc::SYS_setpgid | libc::SYS_setsid => group(nr, id, a[1] as i32),
        libc::SYS_rt_sigprocmask => signal::sigprocmask(a[0] as i32, a[1], a[2], a[3]),
        libc::SYS_rt_sigaction => signal::sigaction(a[0] as i32, a[1], a[2]),
        libc::SYS_rt_sigpending => signal::sigpending(a[0]),
        libc::SYS_rt_sigtimedwait => crate::sigwait::timedwait(a[0], a[1], a[2], a[3]),
        libc::SYS_rt_sigsuspend => crate::sigwait::suspend(a[0], a[1]),
        libc::SYS_pause => crate::sigwait::pause(),
        libc::SYS_sigaltstack => signal::sigaltstack(a[0], a[1]),
        libc::SYS_alarm
        | libc::SYS_setitimer
        | libc::SYS_getitimer
        | libc::SYS_timer_create
        | libc::SYS_timer_settime
        | libc::SYS_timer_gettime
        | libc::SYS_timer_getoverrun
        | libc::SYS_timer_delete => crate::timer::call(nr, a),
        libc::SYS_kill => kill(id, a[1] as i32, 0),
        libc::SYS_tkill => tgkill(0, id, a[1] as i32, 0),
        libc::SYS_tgkill => tgkill(id, a[1] as i32, a[2] as i32, 0),
        libc::SYS_rt_sigqueueinfo if id <= 0 => -(libc::ESRCH as i64),
        libc::SYS_rt_sigqueueinfo => kill(id, a[1] as i32, a[2]),
        libc::SYS_rt_tgsigqueueinfo => tgkill(id, a[1] as i32, a[2] as i32, a[3]),
        libc::SYS_set_robust_list => 0,
        libc::SYS_rseq => {
            store_if(a[0], 0u64);
            0
        }
        libc::SYS_prctl if id == libc::PR_SET_PDEATHSIG => {
            local().pdeathsig = a[1] as i32;
            0
        }
        libc::SYS_prctl if id == libc::PR_GET_PDEATHSIG => {
            store(a[1], local().pdeathsig);
            0
        }
        libc::SYS_prctl if matches!(id, libc::PR_GET_TSC | libc::PR_SET_TSC) => return crate::tsc::control(id, a[1]),
        libc::SYS_prctl if id == PR_SET_SYSCALL_USER_DISPATCH => -(libc::EINVAL as i64),
        libc::SYS_prctl if id == libc::PR_SET_SECCOMP => -(libc::EINVAL as i64),
        libc::SYS_seccomp | libc::SYS_ptrace => -(libc::EPERM as i64),
        libc::SYS_arch_prctl if id == 0x1002 => {
            me().fs = a[1];
            raw!(nr, a[0], a[1])
        }
        // The kernel's own accounts of a process would show vsrun's work, and differ from run to run.
        libc::SYS_sched_getaffinity => affinity(a[1] as usize, a[2]),
        libc::SYS_sched_setaffinity => 0,
        _ => return None,
    })
}

/// Two processors, as far as the program is concerned: those of vsrun's world are no business of its.
fn affinity(len: usize, mask: u64) -> i64 {
    if len < 8 {
        return -(libc::EINVAL as i64);
    }
    store(mask, 3u64);
    8
}

fn group(nr: i64, id: i32, value: i32) -> i64 {
    let own = local().pid;
    let Some(p) = (if id == 0 || nr == libc::SYS_setsid { Some(own) } else { world().process_by_vpid(id) }) else {
        return -(libc::ESRCH as i64);
    };
    let process = &mut world().procs[p];
    match nr {
        libc::SYS_getpgid => process.pgid as i64,
        libc::SYS_getsid => process.sid as i64,
        libc::SYS_setpgid => {
            process.pgid = if value == 0 { process.vpid } else { value };
            0
        }
        _ if process.pgid == process.vpid => -(libc::EPERM as i64),
        _ => {
            process.pgid = process.vpid;
            process.sid = process.vpid;
            process.vpid as i64
        }
    }
}

/// What a signal sent by kill (`given` 0) or sigqueue says; the latter may not claim to come from the kernel or kill.
fn info(signal: i32, code: i32, given: u64, to_self: bool) -> Result<SigInfo, i64> {
    let (pid, uid) = (world().procs[local().pid].vpid, raw!(libc::SYS_getuid) as u32);
    if given == 0 {
        return Ok(SigInfo { signal, code, pid, uid, value: 0 });
    }
    let code: i32 = load(given + 8);
    if (code >= 0 || code == libc::SI_TKILL) && !to_self {
        return Err(-(libc::EPERM as i64));
    }
    Ok(SigInfo { signal, code, pid: load(given + 16), uid: load(given + 20), value: load(given + 24) })
}

fn kill(id: i32, signal: i32, given: u64) -> i64 {
    if !(0..=64).contains(&signal) {
        return -(libc::EINVAL as i64);
    }
    let own = local().pid;
    let group = match id {
        0 => world().procs[own].pgid,
        i if i < 0 => i.saturating_neg(),
        _ => 0,
    };
    let target = if group == 0 { world().process_by_vpid(id).unwrap_or(u32::MAX) } else { u32::MAX };
    let info = match info(signal, libc::SI_USER, given, target == own) {
        Ok(info) => info,
        Err(error) => return error,
    };
    // Alone with itself, a process is the only one to notice.
    if target != own || group != 0 || world().procs[own].live_threads > 1 || signal::stops(signal) {
        gate::pass(Op::on(Kind::KILL, target).arg(signal as i64));
    }
    let mut hit = 0;
    for p in 0..world().procs.len {
        let process = world().procs[p];
        let chosen = if group == 0 { p == target } else { id == -1 && p != own || process.pgid == group };
        if chosen && process.state != vsrun_model::ProcState::REAPED {
            hit += 1;
            if p != own {
                signal::send(p, NONE, info);
            }
        }
    }
    let process = world().procs[own];
    if if group == 0 { own == target } else { process.pgid == group && id != -1 } {
        signal::send(own, NONE, info);
    }
    signal::deliver();
    if hit > 0 {
        0
    } else {
        -(libc::ESRCH as i64)
    }
}

fn tgkill(vpid: i32, vtid: i32, signal: i32, given: u64) -> i64 {
    if !(0..=64).contains(&signal) {
        return -(libc::EINVAL as i64);
    }
    let own = local().pid;
    let target = world().live.as_slice().iter().copied().find(|&t| world().threads[t].vtid == vtid);
    let Some(t) = target else { return -(libc::ESRCH as i64) };
    let p = world().threads[t].pid;
    if vpid != 0 && world().procs[p].vpid != vpid {
        return -(libc::ESRCH as i64);
    }
    let info = match info(signal, libc::SI_TKILL, given, p == own) {
        Ok(info) => info,
        Err(error) => return error,
    };
    if t != local().cur && signal > 0 || signal::stops(signal) {
        gate::pass(Op::on(Kind::KILL, p).arg(signal as i64));
        if !world().threads[t].alive() {
            return -(libc::ESRCH as i64);
        }
    }
    signal::send(p, t, info);
    signal::deliver();
    0
}

/// clone and its like; `start`: what a new thread begins with.
pub fn clone(nr: i64, a: [u64; 6], start: Start) -> i64 {
    let mut args = CloneArgs { start, ..CloneArgs::default() };
    match nr {
        libc::SYS_clone3 => {
            let p = a[0];
            args.flags = load::<u64>(p);
            args.child_tid = load(p + 16);
            args.parent_tid = load(p + 24);
            args.stack = load::<u64>(p + 40) + load::<u64>(p + 48);
            args.tls = load(p + 56);
        }
        libc::SYS_clone => {
            args.flags = a[0] & !0xff;
            args.stack = a[1];
            args.parent_tid = a[2];
            args.child_tid = a[3];
            args.tls = a[4];
        }
        _ => {}
    }
    process::clone(&args)
}

/// Deterministic random bytes: splitmix64, a stream for each process.
fn random(buffer: u64, len: u64) -> i64 {
    let len = len.min(1 << 20);
    for i in 0..len {
        if i % 8 == 0 {
            let state = &mut world().procs[local().pid].random;
            *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        }
        let mut z = world().procs[local().pid].random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        store(buffer + i, ((z ^ (z >> 31)) >> (8 * (i % 8))) as u8);
    }
    len as i64
}

fn ours(fd: u64) -> bool {
    (FIRST_FD..LAST_FD).contains(&(fd as i32))
}

fn valid(fd: u64) -> bool {
    raw!(libc::SYS_fcntl, fd, libc::F_GETFD) >= 0
}

/// A call that closes `fd`.
fn closing(fd: i32, call: impl FnOnce() -> i64) -> i64 {
    let seen = locks::before_close(fd);
    let result = call();
    locks::after_close(seen);
    result
}

/// Calls that pass through unless they would touch what is vsrun's; visible operations where they use what others use.
fn guarded(nr: i64, a: [u64; 6]) -> i64 {
    crate::files::using(nr, a, || guarded_call(nr, a))
}

fn guarded_call(nr: i64, a: [u64; 6]) -> i64 {
    const EBADF: i64 = -(libc::EBADF as i64);
    match nr {
        libc::SYS_close if ours(a[0]) => EBADF,
        libc::SYS_dup2 | libc::SYS_dup3 if ours(a[1]) => EBADF,
        libc::SYS_fcntl | libc::SYS_dup if ours(a[0]) => EBADF,
        libc::SYS_close_range => {
            let (first, last, flags) = (a[0] as u32, a[1] as u32, a[2]);
            let (low, high) = (FIRST_FD as u32, LAST_FD as u32);
            const CLOEXEC: u64 = 4;
            if flags & CLOEXEC == 0 && first <= last {
                locks::close_locked(first as i32, last.min(i32::MAX as u32) as i32, false);
            }
            let mut result = 0;
            if first < low {
                result = raw!(nr, first, last.min(low - 1), flags);
            }
            if last >= high && result >= 0 {
                result = raw!(nr, first.max(high), last, flags);
            }
            result
        }
        libc::SYS_fcntl if locks::is_lock(a[1] as i32) => locks::fcntl(a[0] as i32, a[1] as i32, a[2], false),
        libc::SYS_flock if ours(a[0]) => EBADF,
        libc::SYS_flock => locks::flock(a[0] as i32, a[1] as i32),
        libc::SYS_close => closing(a[0] as i32, || through(nr, a)),
        libc::SYS_dup2 | libc::SYS_dup3 if a[0] != a[1] && valid(a[0]) => closing(a[1] as i32, || through(nr, a)),
        libc::SYS_open | libc::SYS_openat | libc::SYS_unlink | libc::SYS_unlinkat => shm::open(nr, a),
        _ => match fate(nr) {
            Fate::Real | Fate::Mixed => crate::files::call(nr, a),
            Fate::Fails(error) => -error,
            Fate::Modelled | Fate::Refused => refuse(nr, a),
        },
    }
}

/// A call that nothing is made of: the execution ends with its name and arguments.
fn refuse(nr: i64, a: [u64; 6]) -> ! {
    let (mut first, mut second, mut third) = ([0; 24], [0; 24], [0; 24]);
    end::unsupported(&[
        b"system call ",
        name(nr).unwrap_or("without a name").as_bytes(),
        b"(",
        crate::sys::decimal(&mut first, a[0] as i64),
        b", ",
        crate::sys::decimal(&mut second, a[1] as i64),
        b", ",
        crate::sys::decimal(&mut third, a[2] as i64),
        b", ..)",
    ])
}

/// Passes a call through to the kernel, counted, and visible to vsrun while it lasts.
pub fn through(nr: i64, a: [u64; 6]) -> i64 {
    if (nr as usize) < MAX_SYSCALLS {
        arena().control.passed[nr as usize] += 1;
    }
    let cur = local().cur;
    let record = &mut world().threads[cur].in_call as *mut [u64; 7] as u64;
    store(record, [nr as u64 + 1, a[0], a[1], a[2], a[3], a[4], a[5]]);
    let result = crate::sys::raw6(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
    store(record, 0u64);
    if me().state == ThreadState::EXITED {
        end::bug(b"a finished thread made a system call");
    }
    signal::deliver();
    result
}
