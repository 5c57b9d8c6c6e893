//! The net: every system call that does not come from the shim's own text is caught by Syscall User Dispatch and
//! arrives here as a SIGSYS. What becomes of each is in one table, `vsrun_model::calls`; what passes through to the
//! kernel is counted and known to vsrun while it lasts.

use vsrun_model::world::VFORKED;
use vsrun_model::{Kind, Op};

use crate::calls::process::{self, CloneArgs};
use crate::calls::{
    buffers, descriptors, files, futex, identity, kernel, mqueue, msg, shm, stream, sysv, table, taken, time, toss,
    waitv,
};
use crate::gate::fiber::{self, Start};
use crate::gate::{self, end, exit, local, model, shield, signal, watched, world};
use crate::sys::errno::EINVAL;
use crate::sys::{any_of, context as reg, decimal, guard, hex, load, store, store_if};

/// Handler of SIGSYS.
pub extern "C" fn on_sigsys(_: i32, info: u64, context: u64) {
    const SYS_USER_DISPATCH: i32 = 2;
    let entered = shield::enter();
    let nr: u64 = load(context + reg::RAX);
    if local().delivering || load::<i32>(info + 8) != SYS_USER_DISPATCH {
        signal::sent_as_sigsys(info, context);
        return shield::leave(entered);
    }
    if load::<u32>(info + SI_ARCH) != AUDIT_ARCH_X86_64 || nr & X32 != 0 {
        refuse_architecture(nr, load(info + SI_CALL_ADDR));
    }
    let at = |offset: u64| load::<u64>(context + offset);
    let args = [at(reg::RDI), at(reg::RSI), at(reg::RDX), at(reg::R10), at(reg::R8), at(reg::R9)];
    let result = call(nr as i64, args, context);
    gate::back();
    store(context + reg::RAX, result);
    if nr as i64 == libc::SYS_sigaltstack {
        // The kernel takes the stack from there when the handler returns.
        let [stack, flags, size] = fiber::real_altstack();
        store(context + reg::STACK, stack);
        store(context + reg::STACK + 8, flags as u32);
        store(context + reg::STACK + 16, size);
    }
    shield::leave(entered);
}

// Fields of siginfo_t for SIGSYS.
const SI_CALL_ADDR: u64 = 16;
const SI_ARCH: u64 = 28;
const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
/// Bit of the number of a call of the x32 ABI.
const X32: u64 = 0x4000_0000;

/// Its number and arguments mean something else there. `next`: the address behind the instruction.
#[cold]
fn refuse_architecture(nr: u64, next: u64) -> ! {
    end::unsupported(&[
        b"a system call of another architecture (int 0x80, x32), number ",
        &decimal((nr & !X32) as i64),
        b", by the instruction before address 0x",
        &hex(next),
    ])
}

fn start_of(context: u64) -> Start {
    let at = |offset: u64| load::<u64>(context + offset);
    Start {
        saved: [at(reg::RBP), at(reg::RBX), at(reg::R12), at(reg::R13), at(reg::R14), at(reg::R15)],
        scratch: [at(reg::R8), at(reg::R9), at(reg::R10), at(reg::RDI), at(reg::RSI), at(reg::RDX)],
        rip: at(reg::RIP),
    }
}

/// Performs a system call of the program, `work`, with an answer to bad pointers.
#[inline]
pub fn guarded(work: impl FnOnce() -> i64) -> i64 {
    guard::call(work, left)
}

/// A call was left while it read its arguments: what it has set for its operation is taken back.
#[cold]
fn left() {
    model().wait_with_own_mask(local().cur);
    files::forget_walk();
    table::left();
}

/// Performs system call `nr` for the program. `context` is 0 when there is no trap (interposed syscall()).
pub fn call(nr: i64, a: [u64; 6], context: u64) -> i64 {
    guarded(|| perform(nr, a, context, context != 0))
}

/// The same for one of libc's own sites, which has been rewritten. `own`: it uses variables of libc's own, which nobody else knows of, so that what it
/// does to memory is not recorded, as nothing is that libc does within.
pub fn call_of_site(nr: i64, a: [u64; 6], own: bool) -> i64 {
    let result =
        guarded(|| if own { buffers::unwatched(|| performed(nr, a, 0, true)) } else { perform(nr, a, 0, true) });
    gate::back();
    result
}

/// `within`: by an instruction of libc's, as far as is known.
fn perform(nr: i64, a: [u64; 6], context: u64, within: bool) -> i64 {
    if !matches!(nr, any_of!(SYS_rt_sigprocmask SYS_rseq SYS_set_robust_list SYS_mprotect SYS_madvise SYS_brk)) {
        gate::drain_stores();
    }
    if within && matches!(nr, any_of!(SYS_write SYS_writev)) {
        stream::copy_written(Some(a[0] as i32));
    }
    if context != 0 {
        taken::by_number(nr, a, load(context + reg::RIP));
    }
    let result = buffers::around(nr, a, |a| performed(nr, a, context, within));
    if matches!(nr, any_of!(SYS_mmap SYS_mprotect SYS_pkey_mprotect)) && result >= 0 {
        watched::code_comes(nr, a, result as u64);
        toss::code_comes(nr, a);
    }
    result
}

fn performed(nr: i64, a: [u64; 6], context: u64, within: bool) -> i64 {
    match nr {
        libc::SYS_futex => futex::call(a),
        // What each thread does at its beginning and end: there is no descriptor, name or state of others in it.
        libc::SYS_rt_sigprocmask | libc::SYS_rseq | libc::SYS_set_robust_list => {
            identity::call(nr, a).unwrap_or_else(|| kernel::call(nr, a))
        }
        libc::SYS_mprotect | libc::SYS_madvise | libc::SYS_brk => gate::through(nr, a),
        449 => waitv::call(a),
        454..=456 => futex::refuse_new(nr),
        libc::SYS_clone | libc::SYS_clone3 | libc::SYS_fork | libc::SYS_vfork => make(nr, a, start_of(context), within),
        libc::SYS_exit => {
            if world().procs[local().pid].live_threads <= 1 {
                files::ending();
            }
            exit::exit_thread(a[0] as i32)
        }
        libc::SYS_exit_group => {
            stream::exited();
            files::ending();
            exit::exit_group((a[0] as i32 & 0xff) << 8)
        }
        libc::SYS_wait4 => process::wait4(a[0] as i32, a[1], a[2] as i32, a[3]),
        libc::SYS_waitid => process::waitid(a[0] as i32, a[1] as i32, a[2], a[3] as i32, a[4]),
        libc::SYS_execve => process::exec(libc::AT_FDCWD, a[0], a[1], a[2], 0),
        libc::SYS_execveat => process::exec(a[0] as i32, a[1], a[2], a[3], a[4] as i32),
        libc::SYS_sched_yield => gate::pass(Op::new(Kind::YIELD)),
        libc::SYS_nanosleep => time::nanosleep(libc::CLOCK_MONOTONIC, 0, a[0], a[1]),
        libc::SYS_clock_nanosleep => time::nanosleep(a[0] as i32, a[1] as i32, a[2], a[3]),
        libc::SYS_clock_gettime => time::clock_gettime(a[0] as i32, a[1]),
        libc::SYS_clock_getres if (a[0] as i32) < 0 => time::clock_getres(a[0] as i32, a[1]),
        libc::SYS_clock_settime => time::clock_settime(a[0] as i32, a[1]),
        libc::SYS_gettimeofday => time::gettimeofday(a[0], a[1]),
        libc::SYS_time => time::time(a[0]),
        libc::SYS_times => time::times(a[0]),
        libc::SYS_getrusage => time::rusage(a[0] as i32, a[1]),
        libc::SYS_getcpu => {
            store_if(a[0], 0u32);
            store_if(a[1], 0u32);
            0
        }
        libc::SYS_getrandom => {
            gate::cancellation_place(nr);
            identity::random(a[0], a[1])
        }
        libc::SYS_semget | libc::SYS_semop | libc::SYS_semtimedop | libc::SYS_semctl => {
            files::with_cells(nr, a, || sysv::call(nr, a))
        }
        libc::SYS_msgget | libc::SYS_msgsnd | libc::SYS_msgrcv | libc::SYS_msgctl => {
            files::with_cells(nr, a, || msg::call(nr, a, false))
        }
        any_of!(
            SYS_mq_open SYS_mq_unlink SYS_mq_timedsend SYS_mq_timedreceive SYS_mq_notify SYS_mq_getsetattr
        ) => table::with(nr, a, within, |a| mqueue::call(nr, a)),
        libc::SYS_shmget | libc::SYS_shmat | libc::SYS_shmdt | libc::SYS_shmctl => {
            files::with_cells(nr, a, || shm::call(nr, a))
        }
        libc::SYS_mmap | libc::SYS_munmap | libc::SYS_mremap => {
            let anonymous = nr != libc::SYS_mmap || a[3] as i32 & libc::MAP_ANONYMOUS != 0;
            let call = |a| files::with_cells(nr, a, || descriptors::call(nr, a).unwrap_or_else(|| shm::mapping(nr, a)));
            if anonymous {
                call(a)
            } else {
                table::with(nr, a, within, call)
            }
        }
        _ => {
            if heeds_cancellation(nr, &a) {
                gate::cancellation_place(nr);
            }
            table::with(nr, a, within, |a| {
                files::with_cells(nr, a, || {
                    descriptors::call(nr, a).or_else(|| identity::call(nr, a)).unwrap_or_else(|| kernel::call(nr, a))
                })
            })
        }
    }
}

/// Calls that are cancellation points and may be no operation; those on bytes are in `interpose::io`.
fn heeds_cancellation(nr: i64, a: &[u64; 6]) -> bool {
    match nr {
        libc::SYS_fcntl => matches!(a[1] as i32, libc::F_SETLKW | libc::F_OFD_SETLKW),
        any_of!(
            SYS_open SYS_openat SYS_creat SYS_close SYS_fsync SYS_fdatasync SYS_msync SYS_sync_file_range SYS_fallocate
            SYS_splice SYS_tee SYS_vmsplice SYS_open_by_handle_at
        ) => true,
        _ => false,
    }
}

/// clone and its like; `start`: what a new thread begins with.
pub fn clone(nr: i64, a: [u64; 6], start: Start) -> i64 {
    let result = guarded(|| make(nr, a, start, true));
    gate::back();
    result
}

fn make(nr: i64, a: [u64; 6], start: Start, within: bool) -> i64 {
    gate::drain_stores();
    let mut args = CloneArgs { start, within, exit_signal: libc::SIGCHLD, ..CloneArgs::default() };
    match nr {
        libc::SYS_clone3 => {
            let p = a[0];
            args.flags = load::<u64>(p);
            args.exit_signal = load::<u64>(p + 32) as i32;
            args.pidfd = load(p + 8);
            args.child_tid = load(p + 16);
            args.parent_tid = load(p + 24);
            (args.stack, args.stack_size) = (load::<u64>(p + 40) + load::<u64>(p + 48), load(p + 48));
            args.tls = load(p + 56);
        }
        libc::SYS_clone => {
            args.flags = a[0] & !0xff;
            args.exit_signal = (a[0] & 0xff) as i32;
            args.stack = a[1];
            args.parent_tid = a[2];
            args.pidfd = a[2];
            args.child_tid = a[3];
            args.tls = a[4];
        }
        // It is made as by fork.
        libc::SYS_vfork => model().never_comes(VFORKED),
        _ => {}
    }
    // Both are told where the first is to be.
    const BOTH: u64 = (libc::CLONE_PIDFD | libc::CLONE_PARENT_SETTID) as u64;
    if nr == libc::SYS_clone && args.flags & BOTH == BOTH {
        return EINVAL;
    }
    process::clone(&args)
}
