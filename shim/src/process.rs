//! Creation and end of threads and processes, exec, wait.

use vsrun_model::arena::{Mode, ARENA_FD, POOL_FD};
use vsrun_model::inject::{EINTR, ENOMEM};
use vsrun_model::object::NONE;
use vsrun_model::{Kind, Op, Pid, ThreadState, Tid, WCONTINUED, WEXITED_NOT, WNOHANG, WNOWAIT, WUNTRACED};

use crate::fiber::{self, Start};
use crate::local::{arena, local, me, world};
use crate::sys::{load, store, store_if};
use crate::{end, fd, gate, inject, net, raw, signal, sync, tsc};

const CLONE_VM: u64 = 0x100;
const CLONE_PARENT: u64 = 0x8000;
const CLONE_THREAD: u64 = 0x10000;
const CLONE_VFORK: u64 = 0x4000;
const CLONE_PARENT_SETTID: u64 = 0x100000;
const CLONE_CHILD_CLEARTID: u64 = 0x200000;
const CLONE_CHILD_SETTID: u64 = 0x1000000;
/// Namespaces, pidfd, cgroup: not modelled.
const CLONE_UNSUPPORTED: u64 = 0x7e02_0000 | 0x1000 | 0x2_0000_0000;

/// The arguments of clone or clone3, brought to one form.
#[derive(Clone, Copy, Default)]
pub struct CloneArgs {
    /// CLONE_* without the signal number.
    pub flags: u64,
    /// Highest address of the child's stack, or 0.
    pub stack: u64,
    /// Where the parent wants the id.
    pub parent_tid: u64,
    /// Where the child wants it, and wants it cleared.
    pub child_tid: u64,
    /// Thread pointer.
    pub tls: u64,
    /// Registers at the call.
    pub start: Start,
}

fn out_of_room() -> ! {
    end::unsupported(&[b"the program creates more threads or processes than vsrun can hold"])
}

/// clone, clone3, fork, vfork.
pub fn clone(args: &CloneArgs) -> i64 {
    if inject::strikes(ENOMEM) {
        return -(libc::EAGAIN as i64);
    }
    if args.flags & CLONE_THREAD != 0 {
        return create_thread(args);
    }
    if args.flags & CLONE_UNSUPPORTED != 0 {
        end::unsupported(&[b"clone with namespaces or a pidfd"]);
    }
    if args.flags & CLONE_VM != 0 {
        if args.flags & CLONE_VFORK == 0 {
            end::unsupported(&[
                b"clone of a process that shares memory (CLONE_VM without CLONE_THREAD or CLONE_VFORK)",
            ]);
        }
        if args.stack != 0 {
            return spawn(args);
        }
    }
    fork(args)
}

fn create_thread(args: &CloneArgs) -> i64 {
    let l = local();
    let creator = l.cur;
    let Some(t) = world().create_thread(l.pid, creator) else { out_of_room() };
    let thread = &mut world().threads[t];
    thread.fs = args.tls;
    thread.clear_tid = if args.flags & CLONE_CHILD_CLEARTID != 0 { args.child_tid } else { 0 };
    thread.start = core::mem::take(&mut l.next_start);
    thread.detached = core::mem::take(&mut l.next_detached);
    let vtid = thread.vtid;
    thread.sigmask = me().sigmask;
    thread.tsc_faults = me().tsc_faults;
    if args.flags & CLONE_PARENT_SETTID != 0 {
        store_if(args.parent_tid, vtid);
    }
    if args.flags & CLONE_CHILD_SETTID != 0 {
        store_if(args.child_tid, vtid);
    }
    world().threads[t].context = fiber::lay_out(args.stack, &args.start);
    world().current = t;
    fiber::switch(t);
    signal::deliver();
    vtid as i64
}

/// fork, and vfork and clone without a stack of its own: the child is a copy; that it may run on before a vfork
/// child has exec'd is covered, since it runs up to its first visible operation first.
fn fork(args: &CloneArgs) -> i64 {
    let creator = local().cur;
    // The child gets the locks of the other threads as they are now: that others can notice.
    if world().procs[local().pid].threaded && !local().borrowed {
        gate::pass(Op::new(Kind::FORK));
    }
    let Some((p, t)) = world().fork(creator) else { out_of_room() };
    world().threads[t].fs = me().fs;
    world().threads[t].sigmask = me().sigmask;
    world().threads[t].altstack = me().altstack;
    world().current = t;
    let vpid = world().procs[p].vpid;
    let real = raw!(libc::SYS_clone, parentage(), 0, 0, 0, 0);
    if real == 0 {
        become_process(p, t);
        if args.flags & (CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID) != 0 {
            store_if(args.child_tid, vpid);
        }
        return 0;
    }
    if real < 0 {
        return undo_creation(p, creator, real);
    }
    if args.flags & CLONE_PARENT_SETTID != 0 {
        store_if(args.parent_tid, vpid);
    }
    gate::wait_turn();
    debug_assert!(world().current == creator);
    signal::deliver();
    vpid as i64
}

/// Every process of a world is a child of vsrun; without a supervisor, of the process that forks it.
fn parentage() -> u64 {
    if arena().control.mode == Mode::ROOT {
        CLONE_PARENT
    } else {
        0
    }
}

fn undo_creation(p: Pid, creator: Tid, error: i64) -> i64 {
    world().process_exit(p, 0);
    world().procs[p].parent = NONE;
    world().current = creator;
    error
}

/// First steps of a forked child: it is process `p` with the one thread `t`.
pub fn become_process(p: Pid, t: Tid) {
    let l = local();
    l.pid = p;
    l.cur = t;
    l.n_onces = 0;
    world().procs[p].real_pid = raw!(libc::SYS_getpid) as i32;
    live_with_vsrun();
    net::arm();
}

/// Dies with vsrun, whose child every process of a world is.
pub fn live_with_vsrun() {
    raw!(libc::SYS_prctl, libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    if raw!(libc::SYS_getppid) != arena().control.vsrun_pid as i64 && arena().control.vsrun_pid != 0 {
        end::die(1);
    }
}

/// posix_spawn and the like: a child on a stack of its own that shares memory until it execs or exits.
fn spawn(args: &CloneArgs) -> i64 {
    let (creator, parent) = (local().cur, local().pid);
    let Some((p, t)) = world().fork(creator) else { out_of_room() };
    world().threads[t].fs = me().fs;
    world().threads[t].sigmask = me().sigmask;
    world().current = t;
    let vpid = world().procs[p].vpid;
    let l = local();
    l.pid = p;
    l.cur = t;
    l.borrowed = true;
    let stack = fiber::lay_out(args.stack, &args.start);
    // The child shares memory, but has dispositions of its own, which it sets before it execs.
    let actions = local().actions;
    let real = fiber::clone_vm(CLONE_VM | CLONE_VFORK | parentage(), stack, spawned);
    let l = local();
    l.pid = parent;
    l.cur = creator;
    l.borrowed = false;
    l.actions = actions;
    if real < 0 {
        return undo_creation(p, creator, real);
    }
    gate::wait_turn();
    signal::deliver();
    vpid as i64
}

/// Runs first in the child of [`spawn`].
extern "C" fn spawned() {
    world().procs[local().pid].real_pid = raw!(libc::SYS_getpid) as i32;
    live_with_vsrun();
    net::arm();
}

/// The exit system call: this thread ends.
pub fn exit_thread(status: i32) -> ! {
    sync::settle_onces();
    let cur = local().cur;
    if world().holds_robust(cur) {
        gate::pass(Op::new(Kind::THREAD_EXIT));
    }
    if world().procs[local().pid].live_threads <= 1 {
        end_process((status & 0xff) << 8, false);
    }
    let thread = *me();
    let starting = thread.state == ThreadState::STARTING;
    if thread.clear_tid != 0 {
        store(thread.clear_tid, 0i32);
        wake_all(thread.clear_tid);
    }
    world().thread_exit(cur);
    gate::leave(starting, thread.creator);
    // The turn is with another process; another fiber of this one runs when it comes back.
    gate::wait_turn();
    let current = world().current;
    fiber::switch(current);
    end::bug(b"a finished thread was resumed")
}

/// Wakes whoever waits with a futex of their own on a thread's id word, as the kernel does.
fn wake_all(addr: u64) {
    let (space, at) = crate::local::space_of(addr);
    if let Some(id) = world().find(vsrun_model::Key::new(space, vsrun_model::ObjKind::FUTEX, at)) {
        world().futex_wake_all(id);
    }
}

/// The process ends with wait status `status`.
pub fn exit_group(status: i32) -> ! {
    end_process(status, true)
}

/// The same; `called`: by a call that ends other threads too, not as the end of the last thread.
fn end_process(status: i32, called: bool) -> ! {
    let (p, cur) = (local().pid, local().cur);
    if !local().borrowed {
        world().exit_is_visible(p, called);
    }
    // Where other threads are left, descriptors are closed when they end, all at once.
    if world().procs[p].live_threads <= 1 {
        fd::close_all();
    }
    if !local().borrowed && world().exit_is_visible(p, called) {
        gate::pass(Op::new(Kind::EXIT).arg(status as i64));
    }
    let starting = me().state == ThreadState::STARTING;
    let creator = me().creator;
    crate::locks::leave();
    world().process_exit(p, status);
    note_status(p, cur, status);
    child_over(p);
    gate_out(starting, creator);
    if arena().control.mode == Mode::DIRECT && !local().borrowed {
        crate::direct::park();
    }
    end::die(status >> 8 & 0xff)
}

fn gate_out(starting: bool, creator: Tid) {
    if local().borrowed || starting {
        world().current = creator;
        let target = world().threads[creator].pid;
        gate::wake_process(target);
        return;
    }
    gate::leave(false, creator);
}

/// Signal `signal`, sent by the running fiber, kills process `p`. Of the first process that is a crash, as a shell
/// would say; others may be killed by those who know what they do, and so may itself by a signal that it had noticed: thus
/// daemons end that clean up when they are told to end.
pub fn killed_by(p: Pid, signal: i32) {
    if p != 0 {
        return;
    }
    arena().control.status = signal;
    arena().control.status_known = 1;
    if local().pid == p && world().procs[p].noticed & vsrun_model::signal::bit(signal) != 0 {
        return;
    }
    world().finish(vsrun_model::End::KILLED, local().cur, NONE, signal as u32);
    end::finish();
}

/// Reports what the caller of vsrun wants to know of exit statuses.
fn note_status(p: Pid, cur: Tid, status: i32) {
    if p == 0 {
        arena().control.status = status;
        arena().control.status_known = 1;
    }
    if arena().plan.fail_on_exit && status != 0 {
        world().finish(vsrun_model::End::STATUS, cur, p, status as u32);
        end::finish();
    }
}

/// A process is over: its parent gets SIGCHLD.
pub fn child_over(p: Pid) {
    world().child_over(p);
}

fn wait_flags(options: i32) -> u8 {
    let flag = |option: i32, flag: u8| if options & option != 0 { flag } else { 0 };
    flag(libc::WNOHANG, WNOHANG) | flag(libc::WUNTRACED, WUNTRACED) | flag(libc::WCONTINUED, WCONTINUED)
}

/// wait4.
pub fn wait4(selector: i32, status: u64, options: i32, usage: u64) -> i64 {
    let flags = wait_flags(options);
    if flags & WNOHANG == 0 && inject::strikes(EINTR) {
        return -(libc::EINTR as i64);
    }
    let r = gate::pass(Op::new(Kind::WAIT).arg(selector as i64).with(flags));
    if r == libc::EAGAIN as i64 {
        return 0;
    }
    if r != 0 {
        return -r;
    }
    let [vpid, code, _] = me().out;
    store_if(status, code as i32);
    if usage != 0 {
        sync::zero(usage, 144);
    }
    vpid
}

/// waitid.
pub fn waitid(kind: i32, id: i32, info: u64, options: i32, usage: u64) -> i64 {
    let selector = match kind as u32 {
        libc::P_ALL => -1,
        libc::P_PID => id as i64,
        libc::P_PGID if id == 0 => 0,
        libc::P_PGID => -(id as i64),
        _ => end::unsupported(&[b"waitid with a pidfd"]),
    };
    if options & (libc::WEXITED | libc::WSTOPPED | libc::WCONTINUED) == 0 {
        return -(libc::EINVAL as i64);
    }
    let flags = wait_flags(options)
        | if options & libc::WNOWAIT != 0 { WNOWAIT } else { 0 }
        | if options & libc::WEXITED == 0 { WEXITED_NOT } else { 0 };
    let r = gate::pass(Op::new(Kind::WAIT).arg(selector).with(flags));
    if r != 0 && r != libc::EAGAIN as i64 {
        return -r;
    }
    if info != 0 {
        sync::zero(info, 128);
        if r == 0 {
            let [vpid, status, _] = me().out;
            let (low, high) = (status & 0x7f, status >> 8 & 0xff);
            let (code, what) = match status {
                0xffff => (libc::CLD_CONTINUED, i64::from(libc::SIGCONT)),
                _ if low == 0x7f => (libc::CLD_STOPPED, high),
                _ if low == 0 => (libc::CLD_EXITED, high),
                _ => (libc::CLD_KILLED, low),
            };
            store(info, libc::SIGCHLD);
            store(info + 8, code);
            store(info + 16, vpid as i32);
            store(info + 24, what as i32);
        }
    }
    if usage != 0 {
        sync::zero(usage, 144);
    }
    0
}

/// execve and execveat. Returns only if it fails.
pub fn exec(dir: i32, path: u64, argv: u64, envp: u64, flags: i32) -> i64 {
    let threaded = !local().borrowed && world().procs[local().pid].threaded;
    let look = [dir as u64, path, 0, flags as u64, 0, 0];
    if threaded {
        // Which file it is is settled when the other threads are gone.
        crate::files::note(libc::SYS_execveat, look);
    } else {
        crate::files::announce(libc::SYS_execveat, look);
    }
    let (dir, path) = match crate::files::locate(dir, path, flags) {
        Ok(program) => program,
        Err(error) => return error,
    };
    if let Err(error) = check_program(dir, path, flags, 0) {
        return error;
    }
    if threaded {
        gate::pass(Op::new(Kind::EXEC));
    }
    let released = crate::locks::close_locked(0, i32::MAX, true);
    let envp = crate::env::with_shim(envp);
    for fd in [ARENA_FD, POOL_FD] {
        raw!(libc::SYS_fcntl, fd, libc::F_SETFD, 0);
    }
    tsc::before_exec();
    signal::before_exec();
    let error = raw!(libc::SYS_execveat, dir, path, argv, envp, flags);
    tsc::arm();
    signal::install_fault();
    if released {
        end::unsupported(&[b"exec that fails, with close-on-exec descriptors of files that have been locked"]);
    }
    error
}

/// Refuses programs into which the library cannot be loaded: statically linked, set-user-id, not x86-64. What the
/// kernel itself refuses, it refuses.
fn check_program(dir: i32, path: u64, flags: i32, depth: u32) -> Result<(), i64> {
    let fd = if flags & libc::AT_EMPTY_PATH != 0 && load::<u8>(path) == 0 {
        raw!(libc::SYS_dup, dir)
    } else {
        raw!(libc::SYS_openat, dir, path, libc::O_RDONLY | libc::O_CLOEXEC)
    };
    if fd < 0 {
        // Not readable is no proof; a missing file is reported by exec itself.
        return Ok(());
    }
    let mut head = [0u8; 4096];
    let n = raw!(libc::SYS_pread64, fd, head.as_mut_ptr(), head.len(), 0);
    let mut stat = [0u8; 144];
    raw!(libc::SYS_fstat, fd, stat.as_mut_ptr());
    raw!(libc::SYS_close, fd);
    let head = &head[..n.max(0) as usize];
    let mode = u32::from_ne_bytes([stat[24], stat[25], stat[26], stat[27]]);
    let name = crate::sys::cstr(path, 512);
    if mode & 0o6000 != 0 && mode & 0o111 != 0 && raw!(libc::SYS_getuid) != 0 {
        end::unsupported(&[b"exec of a set-user-id or set-group-id program: ", name]);
    }
    if head.starts_with(b"#!") && depth < 4 {
        let line = head[2..].split(|&b| b == b'\n').next().unwrap_or(b"");
        let mut words = line.split(|&b| b == b' ' || b == b'\t').filter(|w| !w.is_empty());
        let mut interpreter = [0u8; 512];
        let word = words.next().unwrap_or(b"");
        if !word.is_empty() && word.len() < interpreter.len() {
            interpreter[..word.len()].copy_from_slice(word);
            return check_program(libc::AT_FDCWD, interpreter.as_ptr() as u64, 0, depth + 1);
        }
        return Ok(());
    }
    match crate::elf::verdict(head) {
        None => Ok(()),
        Some(reason) => end::unsupported(&[b"exec of ", name, b": ", reason]),
    }
}
