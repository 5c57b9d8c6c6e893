//! Calls about who and what a thread is: virtual ids, what the kernel keeps per thread, random numbers.

use vsrun_model::{Kind, Op, Pid};

use super::{priority, signal, timer};
use crate::gate::{self, cpuid, end, fiber, local, me, model, process_of, tsc, world};
use crate::sys::dispatch::PR_SET_SYSCALL_USER_DISPATCH;
use crate::sys::errno::*;
use crate::sys::{any_of, fs_base, raw, store, store_if, writable};

/// Whether a list of robust futexes is that of glibc's threads, in what describes them.
fn is_of_libc(head: u64) -> bool {
    const DESCRIPTION: u64 = 0x1000;
    head.wrapping_sub(fs_base()) < DESCRIPTION
}

/// Calls about who and what this thread is: virtual ids, signals, what the kernel keeps per thread.
pub fn call(nr: i64, a: [u64; 6]) -> Option<i64> {
    let (p, id) = (local().pid, a[0] as i32);
    Some(match nr {
        libc::SYS_getpid => world().procs[p].vpid as i64,
        libc::SYS_gettid | libc::SYS_set_tid_address => {
            if nr == libc::SYS_set_tid_address {
                fiber().clear_tid = a[0];
            }
            me().vtid as i64
        }
        libc::SYS_getppid => parent(p),
        libc::SYS_getpgrp => world().procs[p].pgid as i64,
        libc::SYS_getpgid | libc::SYS_getsid | libc::SYS_setpgid | libc::SYS_setsid => group(nr, id, a[1] as i32),
        libc::SYS_rt_sigprocmask => signal::sigprocmask(a[0] as i32, a[1], a[2], a[3]),
        libc::SYS_rt_sigaction => signal::sigaction(a[0] as i32, a[1], a[2], a[3]),
        libc::SYS_rt_sigpending => signal::sigpending(a[0], a[1]),
        libc::SYS_rt_sigtimedwait => signal::timedwait(a[0], a[1], a[2], a[3]),
        libc::SYS_rt_sigsuspend => signal::suspend(a[0], a[1]),
        libc::SYS_pause => signal::pause(),
        libc::SYS_sigaltstack => signal::sigaltstack(a[0], a[1]),
        any_of!(
            SYS_alarm SYS_setitimer SYS_getitimer SYS_timer_create SYS_timer_settime SYS_timer_gettime
            SYS_timer_getoverrun SYS_timer_delete
        ) => timer::call(nr, a),
        libc::SYS_kill => signal::kill(id, a[1] as i32),
        libc::SYS_tkill => signal::tkill(id, a[1] as i32),
        libc::SYS_tgkill => signal::tgkill(id, a[1] as i32, a[2] as i32, 0),
        libc::SYS_rt_sigqueueinfo => signal::queue(id, a[1] as i32, a[2]),
        libc::SYS_rt_tgsigqueueinfo => signal::tgkill(id, a[1] as i32, a[2] as i32, a[3]),
        libc::SYS_set_robust_list if a[1] != 24 => EINVAL,
        libc::SYS_set_robust_list if !is_of_libc(a[0]) => {
            end::unsupported(&[b"a list of robust futexes that is not libc's (set_robust_list)"])
        }
        libc::SYS_set_robust_list => 0,
        libc::SYS_rseq => {
            store_if(a[0], 0u64);
            0
        }
        libc::SYS_prctl if id == libc::PR_SET_PDEATHSIG && a[1] > 64 => EINVAL,
        libc::SYS_prctl if id == libc::PR_SET_PDEATHSIG => {
            process_of(p).death_signal = a[1] as i32;
            0
        }
        libc::SYS_prctl if id == libc::PR_SET_NAME => {
            priority::set_name(local().cur, a[1]);
            0
        }
        libc::SYS_prctl if id == libc::PR_GET_NAME => {
            store(a[1], priority::name_of(local().cur));
            0
        }
        libc::SYS_prctl if id == libc::PR_GET_PDEATHSIG => {
            store(a[1], process_of(p).death_signal);
            0
        }
        libc::SYS_prctl if id == libc::PR_SET_CHILD_SUBREAPER => {
            model().set_subreaper(p, a[1] != 0);
            0
        }
        libc::SYS_prctl if id == libc::PR_GET_CHILD_SUBREAPER => {
            store(a[1], i32::from(world().procs[p].subreaper));
            0
        }
        libc::SYS_prctl if matches!(id, libc::PR_GET_TSC | libc::PR_SET_TSC) => return tsc::control(id, a[1]),
        libc::SYS_prctl if id == PR_SET_SYSCALL_USER_DISPATCH => EINVAL,
        libc::SYS_prctl if id == libc::PR_SET_SECCOMP => EINVAL,
        libc::SYS_seccomp | libc::SYS_ptrace => EPERM,
        libc::SYS_arch_prctl if cpuid::is_about(id) => cpuid::control(id),
        libc::SYS_arch_prctl if id == 0x1002 => {
            fiber().fs = a[1];
            raw!(nr, a[0], a[1])
        }
        _ => return priority::call(nr, a),
    })
}

fn group(nr: i64, id: i32, value: i32) -> i64 {
    let own = local().pid;
    if nr == libc::SYS_setpgid {
        let id = if id == 0 { world().procs[own].vpid } else { id };
        let pgid = if value == 0 { id } else { value };
        return match world().may_set_group(own, id, pgid) {
            Ok(p) => {
                model().set_group(p, pgid);
                0
            }
            Err(error) => error,
        };
    }
    let Some(p) = (if id == 0 || nr == libc::SYS_setsid { Some(own) } else { world().process_by_id(id) }) else {
        return ESRCH;
    };
    match nr {
        libc::SYS_getpgid => world().procs[p].pgid as i64,
        libc::SYS_getsid => world().procs[p].sid as i64,
        _ => model().new_session(p),
    }
}

/// Deterministic random bytes: splitmix64, a stream for each process.
pub fn random(buffer: u64, len: u64) -> i64 {
    let there = writable(buffer, len.min(1 << 20));
    if there == 0 && len > 0 {
        return EFAULT;
    }
    let len = there;
    for i in 0..len {
        if i % 8 == 0 {
            let state = &mut process_of(local().pid).random;
            *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        }
        let mut z = process_of(local().pid).random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        store(buffer + i, ((z ^ (z >> 31)) >> (8 * (i % 8))) as u8);
    }
    len as i64
}

/// getppid of process `p`: its parent's end changes it. Asked is about whom it had first: that it has ended could have come later.
fn parent(p: Pid) -> i64 {
    let parent = world().procs[p].creator;
    if world().procs.contains(parent) && !local().borrowed {
        gate::pass(Op { obj: parent, ..Op::new(Kind::GETPPID) });
    }
    world().procs.get(world().procs[p].parent).map_or(1, |q| q.vpid as i64)
}
