//! Creation of threads and processes, exec, wait.

use vsrun_model::arena::{Mode, ARENA_FD, POOL_FD};
use vsrun_model::inject as fault;
use vsrun_model::world::FORK_LOCKS;
use vsrun_model::{Kind, Op, Pid, Tid, CLONES, WCONTINUED, WEXITED_NOT, WNOHANG, WNOTHREAD, WNOWAIT, WUNTRACED};

use super::thread::{call1, call4, libc_functions};
use super::{busy, env, files, helpers, locks, numbers, pidfd, priority, stream};
use crate::gate::fiber::{self, Start};
use crate::gate::local::{arena, fiber, fiber_of, local, machine, me, model, world};
use crate::gate::{self, birth, end, inject, is_threaded, signal, stacks, tsc, turn, watched, Phase};
use crate::sys::errno::*;
use crate::sys::{cstr, elf, guard, limit, load, raw, store, store_if, writable, zero};

const CLONE_VM: u64 = 0x100;
const CLONE_PARENT: u64 = 0x8000;
const CLONE_THREAD: u64 = 0x10000;
const CLONE_VFORK: u64 = 0x4000;
const CLONE_PARENT_SETTID: u64 = 0x100000;
const CLONE_CHILD_CLEARTID: u64 = 0x200000;
const CLONE_CHILD_SETTID: u64 = 0x1000000;
const CLONE_PIDFD: u64 = 0x1000;
/// Namespaces, cgroup: not modelled.
const CLONE_UNSUPPORTED: u64 = 0x7e02_0000 | 0x2_0000_0000;

/// The arguments of clone or clone3, brought to one form.
#[derive(Clone, Copy, Default)]
pub struct CloneArgs {
    /// CLONE_* without the signal number.
    pub flags: u64,
    /// That number: the signal by which the end of a process is told.
    pub exit_signal: i32,
    /// Highest address of the child's stack, or 0.
    pub stack: u64,
    /// Its size, or 0 if it is not known.
    pub stack_size: u64,
    /// Where the parent wants the id.
    pub parent_tid: u64,
    /// Where the child wants it, and wants it cleared.
    pub child_tid: u64,
    /// Where the parent wants a descriptor of it.
    pub pidfd: u64,
    /// Thread pointer.
    pub tls: u64,
    /// Registers at the call.
    pub start: Start,
    /// It is made by an instruction of libc's, as far as is known.
    pub within: bool,
}

fn out_of_room() -> ! {
    end::no_room(&[b"the program creates more threads or processes than vsrun can hold"])
}

/// clone, clone3, fork, vfork.
pub fn clone(args: &CloneArgs) -> i64 {
    if inject::strikes(fault::ENOMEM) {
        return EAGAIN;
    }
    inject::begins_with_others();
    if args.flags & CLONE_PIDFD != 0 {
        return with_descriptor(args);
    }
    if args.flags & CLONE_THREAD != 0 {
        return create_thread(args);
    }
    if args.exit_signal != libc::SIGCHLD {
        end::unsupported(&[b"clone of a process whose end is told by another signal than SIGCHLD"]);
    }
    if args.flags & CLONE_PARENT != 0 {
        end::unsupported(&[b"clone of a process that becomes a brother (CLONE_PARENT)"]);
    }
    if args.flags & CLONE_UNSUPPORTED != 0 {
        end::unsupported(&[b"clone with namespaces"]);
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

/// A process that has been killed makes no other one any more, though its signal may still have to take effect.
fn dies_first() {
    if world().procs[local().pid].dying != 0 {
        gate::pass(Op::new(Kind::FORK));
    }
}

/// The operation of a fork beside other threads. The child gets the locks of the other threads as they are now: that others can notice.
fn announce_fork() {
    numbers::copied(true);
    files::copied(libc::SYS_fork, true, true);
    stream::copies();
    gate::pass(Op::new(Kind::FORK));
    numbers::kept();
    files::kept();
}

/// Handlers of pthread_atfork, registered before those of the program where that is possible, so that this one runs after them. What comes next in
/// libc's fork is to take its own locks, those of malloc among them: the operation comes before that, so that nobody stands at it with
/// locks held that others cannot see. The lock of the list of streams, which is an operation itself, is taken before both. Where another
/// handler comes to an operation after that the fork is announced again.
pub fn register_handlers() {
    let register = libc_functions().__register_atfork;
    if register != 0 {
        call4(register, before_fork as *const () as u64, after_fork as *const () as u64, 0, 0);
    }
}

extern "C" fn before_fork() {
    gate::returning(|| {
        if is_threaded() && local().phase == Phase::Running {
            call1(libc_functions()._IO_list_lock, 0);
            announce_fork();
            fiber().forks = 1 + me().transitions;
            // It is the fork that returns, not this.
            fiber().fork_returns = core::mem::take(&mut local().returns);
            fiber().holds_list = true;
        }
    });
}

/// In the parent; in the child libc has made the lock anew.
extern "C" fn after_fork() {
    gate::returning(|| {
        fiber().forks = 0;
        if core::mem::take(&mut fiber().holds_list) {
            call1(libc_functions()._IO_list_unlock, 0);
        }
    });
}

/// CLONE_PIDFD: the caller gets a descriptor of the child.
fn with_descriptor(args: &CloneArgs) -> i64 {
    if args.flags & CLONE_THREAD != 0 {
        end::unsupported(&[b"clone of a thread with a pidfd"]);
    }
    if writable(args.pidfd, 4) < 4 {
        return EFAULT;
    }
    local().child_has_pidfd = true;
    let vpid = clone(&CloneArgs { flags: args.flags & !CLONE_PIDFD, ..*args });
    local().child_has_pidfd = false;
    let child = world().procs.as_slice().iter().position(|p| vpid > 0 && i64::from(p.vpid) == vpid);
    if let Some(p) = child {
        store(args.pidfd, pidfd::of_process(p as Pid, libc::O_CLOEXEC) as i32);
    }
    vpid
}

fn create_thread(args: &CloneArgs) -> i64 {
    stream::arm_all();
    files::copied(libc::SYS_clone, false, false);
    let l = local();
    let Some(t) = model().create_thread(l.pid, l.cur) else { out_of_room() };
    model().inherit_mask(t);
    if core::mem::take(&mut l.next_detached) {
        model().detach(t);
    }
    let new = fiber_of(t);
    new.fs = args.tls;
    new.clear_tid = if args.flags & CLONE_CHILD_CLEARTID != 0 { args.child_tid } else { 0 };
    new.start = core::mem::take(&mut l.next_start);
    new.tsc_faults = fiber().tsc_faults;
    priority::inherit(l.cur, t);
    let vtid = world().threads[t].vtid;
    if args.flags & CLONE_PARENT_SETTID != 0 {
        tell_id(args.parent_tid, vtid);
    }
    if args.flags & CLONE_CHILD_SETTID != 0 {
        tell_id(args.child_tid, vtid);
    }
    fiber_of(t).context = fiber::lay_out(args.stack, &args.start);
    if args.stack_size > 0 {
        // glibc gives the stack of a thread that is over to the next one, and lays the thread's own data above it.
        const THREAD_DATA: u64 = 4096;
        let low = args.stack - args.stack_size;
        watched::stack_is_gone(low, args.stack);
        stacks::begins_on(t, [low, args.stack], core::mem::take(&mut local().next_stack));
        watched::anew(low, args.tls.max(args.stack) + THREAD_DATA - low);
    }
    match local().sets_up == local().cur {
        true => local().held_back = t,
        false => turn::start(t),
    }
    gate::deliver();
    vtid as i64
}

/// Where the id of a child is wanted; that nothing is there is no failure.
fn tell_id(at: u64, id: i32) {
    if at != 0 && writable(at, 4) == 4 {
        store(at, id);
    }
}

/// fork, and vfork and clone without a stack of its own: the child is a copy; that it may run on before a vfork
/// child has exec'd is covered, since it runs up to its first visible operation first.
fn fork(args: &CloneArgs) -> i64 {
    let creator = local().cur;
    if !is_threaded() {
        // The child has what a handler has done before.
        gate::place_for_handlers(libc::SYS_clone);
        files::copied(libc::SYS_fork, true, false);
        dies_first();
    } else if core::mem::take(&mut fiber().forks) == 1 + me().transitions {
        local().returns = fiber().fork_returns;
    } else {
        if args.within {
            model().never_comes(FORK_LOCKS);
        }
        announce_fork();
    }
    watched::forks(false);
    let (p, t) = fork_in_model(creator);
    watched::look();
    if !machine().segments_forked(local().pid, p) {
        out_of_room();
    }
    fiber_of(t).altstack = fiber().altstack;
    let vpid = world().procs[p].vpid;
    let real = raw!(libc::SYS_clone, parentage(), 0, 0, 0, 0);
    if real == 0 {
        become_process(p, t);
        if args.flags & (CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID) != 0 {
            tell_id(args.child_tid, vpid);
        }
        // Who joins the first thread waits for that.
        fiber().clear_tid = if args.flags & CLONE_CHILD_CLEARTID != 0 { args.child_tid } else { 0 };
        return 0;
    }
    if real < 0 {
        machine().segments_left(p);
        return refused(real, p, creator);
    }
    if args.flags & CLONE_PARENT_SETTID != 0 {
        tell_id(args.parent_tid, vpid);
    }
    turn::wait();
    debug_assert!(world().current == creator);
    gate::deliver();
    // The child may be over before the caller goes on. libc has all signals blocked for the caller meanwhile, so that another thread takes
    // the one that tells of that.
    gate::place(if gate::is_threaded() { libc::SYS_clone } else { libc::SYS_fork });
    vpid as i64
}

/// The model's part of a fork by `creator`: the process and its thread, which has the turn.
fn fork_in_model(creator: Tid) -> (Pid, Tid) {
    let Some((p, t)) = model().fork(creator) else { out_of_room() };
    model().forked_beside(p, creator, files::sets_what_is_copied);
    fiber_of(t).fs = fiber_of(creator).fs;
    priority::inherit(creator, t);
    if core::mem::take(&mut local().child_has_pidfd) {
        model().tells_its_end(p);
    }
    watched::creates(t);
    model().give_turn(t);
    (p, t)
}

/// Every process of a world is a child of vsrun; without a supervisor, of the process that forks it. Only where its end is told by SIGCHLD
/// is it a process for debuggers, not a thread.
fn parentage() -> u64 {
    if arena().control.mode == Mode::ROOT {
        CLONE_PARENT
    } else {
        libc::SIGCHLD as u64
    }
}

/// First steps of a forked child: it is process `p` with the one thread `t`.
fn become_process(p: Pid, t: Tid) {
    let l = local();
    l.pid = p;
    l.cur = t;
    l.n_onces = 0;
    l.returns = false;
    stream::forked();
    helpers::forked();
    watched::is_copy();
    birth::begin();
}

/// posix_spawn and the like: a child on a stack of its own that shares memory until it execs or exits.
fn spawn(args: &CloneArgs) -> i64 {
    let (creator, parent) = (local().cur, local().pid);
    gate::place_for_handlers(libc::SYS_vfork);
    dies_first();
    numbers::copied(false);
    files::copied(libc::SYS_vfork, true, false);
    watched::forks(true);
    let (p, t) = fork_in_model(creator);
    watched::look();
    let vpid = world().procs[p].vpid;
    let l = local();
    l.pid = p;
    l.cur = t;
    l.borrowed = true;
    let stack = fiber::lay_out(args.stack, &args.start);
    // The child shares memory, but has dispositions of its own, which it sets before it execs.
    let actions = local().actions;
    let call = guard::suspend();
    let real = fiber::clone_vm(CLONE_VM | CLONE_VFORK | parentage(), stack, spawned);
    guard::resume(call);
    let l = local();
    l.pid = parent;
    l.cur = creator;
    l.borrowed = false;
    l.actions = actions;
    if real < 0 {
        return refused(real, p, creator);
    }
    turn::wait();
    gate::deliver();
    vpid as i64
}

/// The kernel has refused the process `p`. Where the program has itself lowered how many there may be, that is its doing.
fn refused(error: i64, p: Pid, creator: Tid) -> i64 {
    if error != EAGAIN || limit(libc::RLIMIT_NPROC) >= arena().control.processes {
        end::refused(b"a process", error);
    }
    model().fork_failed(p, creator);
    error
}

/// Runs first in the child of [`spawn`].
extern "C" fn spawned() {
    birth::begin();
}

const OF_CLONES: i32 = libc::__WNOTHREAD | libc::__WALL | libc::__WCLONE;

/// Whom a wait with these options is for.
fn wait_selector(selector: i64, options: i32) -> i64 {
    if options & (libc::__WALL | libc::__WCLONE) == libc::__WCLONE {
        CLONES
    } else {
        selector
    }
}

fn wait_flags(options: i32) -> u8 {
    let flag = |option: i32, flag: u8| if options & option != 0 { flag } else { 0 };
    flag(libc::WNOHANG, WNOHANG)
        | flag(libc::WUNTRACED, WUNTRACED)
        | flag(libc::WCONTINUED, WCONTINUED)
        | flag(libc::__WNOTHREAD, WNOTHREAD)
}

/// wait4.
pub fn wait4(selector: i32, status: u64, options: i32, usage: u64) -> i64 {
    if options & !(libc::WNOHANG | libc::WUNTRACED | libc::WCONTINUED | OF_CLONES) != 0 {
        return EINVAL;
    }
    if selector == i32::MIN {
        return ESRCH;
    }
    let flags = wait_flags(options);
    if flags & WNOHANG == 0 {
        inject::interrupts();
    }
    if selector == 0 || selector < -1 {
        files::group_told();
    }
    match gate::pass(Op::new(Kind::WAIT).arg(wait_selector(selector.into(), options)).with(flags)) {
        0 => {}
        EAGAIN => return 0,
        error => return error,
    }
    let [vpid, code, _] = me().out;
    store_if(status, code as i32);
    if usage != 0 {
        zero(usage, 144);
    }
    vpid
}

/// waitid.
pub fn waitid(kind: i32, id: i32, info: u64, options: i32, usage: u64) -> i64 {
    const KNOWN: i32 = libc::WNOHANG | libc::WNOWAIT | libc::WEXITED | libc::WSTOPPED | libc::WCONTINUED | OF_CLONES;
    if options & !KNOWN != 0 {
        return EINVAL;
    }
    let mut at_once = false;
    let selector = match kind as u32 {
        libc::P_ALL => -1,
        libc::P_PID if id <= 0 => return EINVAL,
        libc::P_PID => id as i64,
        libc::P_PGID if id < 0 => return EINVAL,
        libc::P_PGID if id == 0 => 0,
        libc::P_PGID => -(id as i64),
        libc::P_PIDFD => match pidfd::waited_for(id) {
            Ok((selector, dont_wait)) => {
                at_once = dont_wait && options & libc::WNOHANG == 0;
                selector
            }
            Err(error) => return error,
        },
        _ => return EINVAL,
    };
    if options & (libc::WEXITED | libc::WSTOPPED | libc::WCONTINUED) == 0 {
        return EINVAL;
    }
    let flags = wait_flags(options)
        | if options & libc::WNOWAIT != 0 { WNOWAIT } else { 0 }
        | if options & libc::WEXITED == 0 { WEXITED_NOT } else { 0 }
        | if at_once { WNOHANG } else { 0 };
    if flags & WNOHANG == 0 {
        inject::interrupts();
    }
    if selector == 0 || selector < -1 {
        files::group_told();
    }
    let r = gate::pass(Op::new(Kind::WAIT).arg(wait_selector(selector, options)).with(flags));
    if r != 0 && (r != EAGAIN || at_once) {
        return r;
    }
    if info != 0 {
        zero(info, 128);
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
            store(info + 20, raw!(libc::SYS_getuid) as u32);
            store(info + 24, what as i32);
        }
    }
    if usage != 0 {
        zero(usage, 144);
    }
    0
}

/// execve and execveat. Returns only if it fails.
pub fn exec(dir: i32, path: u64, argv: u64, envp: u64, flags: i32) -> i64 {
    let threaded = is_threaded();
    // A name that cannot be read is told before anything comes between.
    cstr(path, 4096);
    let look = [dir as u64, path, 0, flags as u64, 0, 0];
    files::tell(libc::SYS_execveat, &look);
    if threaded {
        // Which file it is is settled when the other threads are gone.
        files::note(libc::SYS_execveat, look);
    } else if !files::announce(libc::SYS_execveat, look) {
        // Handlers run before it, or not any more.
        gate::place_for_handlers(libc::SYS_execve);
    }
    let (dir, path) = match files::locate(dir, path, flags) {
        Ok(program) => program,
        Err(error) => return error,
    };
    if let Err(error) = check_program(dir, path, flags, 0) {
        return error;
    }
    if ![argv, envp].into_iter().all(env::is_there) {
        // The kernel says whether there is anything else; it does not get beyond this argument.
        const NOWHERE: [u64; 2] = [8, 0];
        return raw!(libc::SYS_execveat, dir, path, NOWHERE.as_ptr(), 0, flags);
    }
    files::replaced();
    // Its robust mutexes are given up then.
    if threaded || world().holds_robust(local().cur) {
        gate::pass(Op::new(Kind::EXEC));
    }
    if threaded {
        numbers::kept();
        files::kept();
    }
    let released = locks::close_locked(0, i32::MAX, true);
    let envp = env::with_shim(envp);
    for fd in [ARENA_FD, POOL_FD] {
        raw!(libc::SYS_fcntl, fd, libc::F_SETFD, 0);
    }
    tsc::before_exec();
    signal::before_exec();
    gate::back::is_replaced();
    let error = busy::patiently(|| raw!(libc::SYS_execveat, dir, path, argv, envp, flags));
    tsc::arm();
    signal::install_faults();
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
    let name = cstr(path, 512);
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
    match elf::verdict(head) {
        None => Ok(()),
        Some(reason) => end::unsupported(&[b"exec of ", name, b": ", reason]),
    }
}
