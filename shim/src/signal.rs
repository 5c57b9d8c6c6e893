//! Signals: masks are virtual, one a fiber; the kernel's mask stays empty, since a blocked SIGSYS would kill at the
//! next trap. Handlers are entered by the kernel through one trampoline, so context, siginfo and alternate stacks are
//! real; when they are entered is decided here.

use vsrun_model::socket::Credentials;
use vsrun_model::{Address, Disposal, Kind, Op, ProcState, SigInfo};

use crate::local::{local, me, world, Action, Phase};
use crate::sys::{load, store};
use crate::{end, raw};

const SA_NOCLDSTOP: u64 = 1;
const SA_RESTART: u64 = 0x1000_0000;
const SA_SIGINFO: u64 = 4;
const SA_ONSTACK: u64 = 0x0800_0000;
const SA_NODEFER: u64 = 0x4000_0000;
const SA_RESETHAND: u64 = 0x8000_0000;
const SA_RESTORER: u64 = 0x0400_0000;
const SA_NOCLDWAIT: u64 = 2;
const SIG_DFL: u64 = 0;
const SIG_IGN: u64 = 1;
/// Offset of uc_sigmask in the kernel's ucontext.
const UC_SIGMASK: u64 = 296;
/// Offset of the saved program counter.
const UC_RIP: u64 = 168;

// The frame that a handler returns to. gdb and unwinders know these bytes and this name from glibc.
core::arch::global_asm!(
    ".hidden __restore_rt",
    ".globl __restore_rt",
    ".type __restore_rt,@function",
    ".cfi_startproc",
    ".cfi_signal_frame",
    ".cfi_escape 0x0f,0x04,0x77,0xa0,0x01,0x06",
    ".cfi_escape 0x10,0x08,0x02,0x77,0x28",
    ".cfi_escape 0x10,0x09,0x02,0x77,0x30",
    ".cfi_escape 0x10,0x0a,0x02,0x77,0x38",
    ".cfi_escape 0x10,0x0b,0x03,0x77,0xc0,0x00",
    ".cfi_escape 0x10,0x0c,0x03,0x77,0xc8,0x00",
    ".cfi_escape 0x10,0x0d,0x03,0x77,0xd0,0x00",
    ".cfi_escape 0x10,0x0e,0x03,0x77,0xd8,0x00",
    ".cfi_escape 0x10,0x0f,0x03,0x77,0xe0,0x00",
    ".cfi_escape 0x10,0x05,0x03,0x77,0xe8,0x00",
    ".cfi_escape 0x10,0x04,0x03,0x77,0xf0,0x00",
    ".cfi_escape 0x10,0x06,0x03,0x77,0xf8,0x00",
    ".cfi_escape 0x10,0x03,0x03,0x77,0x80,0x01",
    ".cfi_escape 0x10,0x01,0x03,0x77,0x88,0x01",
    ".cfi_escape 0x10,0x00,0x03,0x77,0x90,0x01",
    ".cfi_escape 0x10,0x02,0x03,0x77,0x98,0x01",
    ".cfi_escape 0x10,0x07,0x03,0x77,0xa0,0x01",
    ".cfi_escape 0x10,0x10,0x03,0x77,0xa8,0x01",
    " nop",
    "__restore_rt:",
    ".byte 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00",
    " syscall",
    ".cfi_endproc",
    ".size __restore_rt, .-__restore_rt",
);

extern "C" {
    fn __restore_rt();
}

/// The bit of a signal in a mask.
pub const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

fn install(signal: i32, handler: u64, flags: u64) -> i64 {
    let action = Action { handler, flags: flags | SA_RESTORER, restorer: __restore_rt as *const () as u64, mask: 0 };
    raw!(libc::SYS_rt_sigaction, signal, &action as *const Action, 0, 8)
}

/// Makes the net's handler the process's handler of SIGSYS.
pub fn install_net(handler: u64) {
    install(libc::SIGSYS, handler, SA_SIGINFO | SA_NODEFER);
}

/// Makes the kernel's action of SIGSEGV the shim's handler of it, on the program's alternate stack if its own is to run
/// there; see `tsc`.
pub fn install_fault() {
    let flags = local().actions[libc::SIGSEGV as usize].flags & SA_ONSTACK;
    install(libc::SIGSEGV, crate::tsc::on_sigsegv as *const () as u64, flags | SA_SIGINFO | SA_NODEFER);
}

/// Before exec, which keeps what is ignored.
pub fn before_exec() {
    if local().actions[libc::SIGSEGV as usize].handler == SIG_IGN {
        install(libc::SIGSEGV, SIG_IGN, 0);
    }
}

/// A SIGSEGV that has nothing to do with the time-stamp counter: the program's handler gets it, or it is fatal. The
/// default action is put in place, and the instruction faults again: the crash is where it happened.
pub fn fault(signal: i32, info: u64, context: u64) {
    let action = local().actions[signal as usize];
    let sent = load::<i32>(info + 8) <= 0;
    match action.handler {
        SIG_IGN if sent => {}
        SIG_DFL | SIG_IGN => {
            install(signal, SIG_DFL, 0);
            if sent {
                raw!(libc::SYS_tgkill, raw!(libc::SYS_getpid), raw!(libc::SYS_gettid), signal);
            }
        }
        _ => trampoline(signal, info, context),
    }
}

/// rt_sigaction.
pub fn sigaction(signal: i32, new: u64, old: u64) -> i64 {
    if !(1..=64).contains(&signal) {
        return -(libc::EINVAL as i64);
    }
    if new != 0 && (signal == libc::SIGKILL || signal == libc::SIGSTOP) {
        return -(libc::EINVAL as i64);
    }
    let before = local().actions[signal as usize];
    if new != 0 {
        let action: Action = load(new);
        local().actions[signal as usize] = action;
        note_disposition(signal, &action);
        if signal != libc::SIGSYS {
            let result = match action.handler {
                _ if signal == libc::SIGSEGV => {
                    install_fault();
                    0
                }
                SIG_DFL | SIG_IGN => install(signal, action.handler, 0),
                _ => {
                    install(signal, trampoline as *const () as u64, action.flags & SA_ONSTACK | SA_SIGINFO | SA_NODEFER)
                }
            };
            if result < 0 {
                local().actions[signal as usize] = before;
                return result;
            }
        }
    }
    if old != 0 {
        store(old, before);
    }
    0
}

/// Tells the other processes what a signal would do here.
fn note_disposition(signal: i32, action: &Action) {
    let process = &mut world().procs[local().pid];
    process.handled &= !bit(signal);
    process.ignored &= !bit(signal);
    process.restarts &= !bit(signal);
    if action.flags & SA_RESTART != 0 {
        process.restarts |= bit(signal);
    }
    match action.handler {
        SIG_DFL => {}
        SIG_IGN => process.ignored |= bit(signal),
        _ => process.handled |= bit(signal),
    }
    if signal == libc::SIGCHLD {
        process.no_stop_news = action.flags & SA_NOCLDSTOP != 0;
        process.no_zombies = action.handler == SIG_IGN || action.flags & SA_NOCLDWAIT != 0;
    }
}

/// Reads which signals the program was started with ignored: exec keeps those.
pub fn read_dispositions() {
    for signal in 1..=64 {
        let mut action = Action { handler: 0, flags: 0, restorer: 0, mask: 0 };
        if raw!(libc::SYS_rt_sigaction, signal, 0, &mut action as *mut Action, 8) == 0 && action.handler == SIG_IGN {
            local().actions[signal as usize] = action;
            note_disposition(signal, &action);
        }
    }
}

/// rt_sigprocmask of the running fiber.
pub fn sigprocmask(how: i32, set: u64, old: u64, size: u64) -> i64 {
    if size != 8 {
        return -(libc::EINVAL as i64);
    }
    let before = me().sigmask;
    if set != 0 {
        let set: u64 = load(set);
        let after = match how {
            libc::SIG_BLOCK => before | set,
            libc::SIG_UNBLOCK => before & !set,
            libc::SIG_SETMASK => set,
            _ => return -(libc::EINVAL as i64),
        };
        me().sigmask = after & !(bit(libc::SIGKILL) | bit(libc::SIGSTOP));
    }
    if old != 0 {
        store(old, before);
    }
    deliver();
    0
}

/// rt_sigpending.
pub fn sigpending(set: u64) -> i64 {
    let pending = me().sigpending | world().procs[local().pid].sigpending;
    store(set, pending & me().sigmask);
    0
}

/// The operation that follows waits with the mask at `set`, if that is not 0; then `Thread::masked` is to be taken back.
pub fn mask_within(set: u64) {
    if set != 0 {
        me().within = load::<u64>(set) & !(bit(libc::SIGKILL) | bit(libc::SIGSTOP));
        me().masked = true;
    }
}

/// What the operations of a handler would overwrite and what was interrupted still needs.
struct Kept {
    out: [i64; 3],
    taken: SigInfo,
    within: u64,
    masked: bool,
    address: Address,
    cred: Credentials,
    cancellable: bool,
}

impl Kept {
    fn keep() -> Kept {
        let t = me();
        let cancellable = core::mem::replace(&mut local().cancellable, false);
        let masked = core::mem::replace(&mut t.masked, false);
        Kept { out: t.out, taken: t.taken, within: t.within, masked, address: t.address, cred: t.cred, cancellable }
    }

    fn restore(self) {
        let t = me();
        (t.out, t.taken, t.within, t.masked) = (self.out, self.taken, self.within, self.masked);
        (t.address, t.cred) = (self.address, self.cred);
        local().cancellable = self.cancellable;
    }
}

/// Enters the handlers of signals that are pending for the running fiber and not blocked.
pub fn deliver() {
    if local().phase == Phase::Off || local().borrowed {
        return;
    }
    if world().due(local().cur) != 0 {
        deliver_due();
    }
}

// Not part of what every operation goes through: what is kept takes room on the program's stack.
#[cold]
#[inline(never)]
fn deliver_due() {
    let kept = Kept::keep();
    loop {
        let cur = local().cur;
        let ready = world().due(cur);
        if !world().take(cur, ready) {
            break;
        }
        let info = me().taken;
        act(&info, &Op::default());
    }
    kept.restore();
}

/// The running fiber has taken a signal while it was parked at `op`: the handler runs. `fails`: in the call, which then
/// fails; otherwise the operation goes on. True: it fails.
#[inline(never)]
pub fn run_taken(op: &Op, fails: bool) -> bool {
    let info = me().taken;
    if info.signal == 0 {
        // A stop: no handler of its own.
        deliver();
        return fails;
    }
    let carried = (me().sending, me().staged);
    let own_mask = {
        let cur = local().cur;
        (op.kind == Kind::SIGSUSPEND || world().has_own_mask(cur, op)).then(|| world().mask_within(cur, op))
    };
    let polled = (op.kind == Kind::FD_POLL).then(|| (me().n_polled, me().polled));
    let kept = Kept::keep();
    let semops = (op.kind == Kind::SYSV_OP).then(|| (me().n_sembuf, me().sembuf));
    if let (true, Some(within)) = (fails, own_mask) {
        let mask = me().sigmask;
        local().mask_after = Some(mask);
        me().sigmask = within;
    }
    act(&info, op);
    if let Some(mask) = local().mask_after.take() {
        me().sigmask = mask;
    }
    deliver();
    kept.restore();
    if let Some((n, ops)) = semops {
        (me().n_sembuf, me().sembuf) = (n, ops);
    }
    if let Some((n, polled)) = polled {
        (me().n_polled, me().polled) = (n, polled);
    }
    if carried != (me().sending, me().staged) {
        end::unsupported(&[b"a fork in a signal handler that interrupted the sending of a message"]);
    }
    fails
}

/// Handlers that were left by a jump (siglongjmp) are over. A handler may run on a stack of its own, of which nothing
/// follows.
pub fn settle_handlers() {
    if me().n_handlers == 0 {
        return;
    }
    let here = 0u8;
    let sp = &here as *const u8 as u64;
    let [stack, _, size] = me().altstack;
    if sp.wrapping_sub(stack) >= size {
        let cur = local().cur;
        world().abandon(cur, sp);
    }
}

/// What a signal does to this process now; `op` is the operation that it interrupts, if it does.
fn act(info: &SigInfo, op: &Op) {
    let signal = info.signal;
    let action = local().actions[signal as usize];
    match action.handler {
        SIG_IGN => {}
        SIG_DFL => default_action(signal),
        _ => {
            let cur = local().cur;
            if local().altstacks {
                install_altstack(cur);
            }
            local().delivering = true;
            let real = siginfo(info);
            if !world().handler_begins(cur, signal, real.as_ptr() as u64, *op) {
                end::unsupported(&[b"more than four signal handlers, one in another, in calls on descriptors"]);
            }
            let pid = raw!(libc::SYS_getpid);
            raw!(libc::SYS_rt_tgsigqueueinfo, pid, raw!(libc::SYS_gettid), signal, real.as_ptr());
            let cur = local().cur;
            world().handler_over(cur);
        }
    }
}

/// A siginfo_t: the fields of all kinds of signals lie in the same places.
fn siginfo(info: &SigInfo) -> [u64; 16] {
    let mut real = [0u64; 16];
    real[0] = info.signal as u32 as u64;
    real[1] = info.code as u32 as u64;
    real[2] = info.pid as u32 as u64 | (info.uid as u64) << 32;
    real[3] = info.value;
    real
}

/// Writes a siginfo_t of the program.
pub fn put_siginfo(addr: u64, info: &SigInfo) {
    if addr != 0 {
        store(addr, siginfo(info));
    }
}

/// sigaltstack of the running fiber.
pub fn sigaltstack(new: u64, old: u64) -> i64 {
    const SS_ONSTACK: u64 = 1;
    const SS_DISABLE: u64 = 2;
    const SS_AUTODISARM: u64 = 1 << 31;
    const SMALLEST: u64 = 2048;
    let [stack, flags, size] = me().altstack;
    let here = 0u8;
    // The frames of a trap lie on the stack of the fiber, too.
    let on = size > 0 && (&here as *const u8 as u64).wrapping_sub(stack) < size;
    if new != 0 {
        let (to, mode, len): (u64, u32, u64) = (load(new), load(new + 8), load(new + 16));
        let mode = u64::from(mode);
        if on {
            return -(libc::EPERM as i64);
        }
        if mode & !SS_AUTODISARM > SS_DISABLE {
            return -(libc::EINVAL as i64);
        }
        if mode & SS_DISABLE == 0 && len < SMALLEST {
            return -(libc::ENOMEM as i64);
        }
        me().altstack = if mode & SS_DISABLE != 0 { [0; 3] } else { [to, mode & SS_AUTODISARM, len] };
        local().altstacks = true;
        let cur = local().cur;
        install_altstack(cur);
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

/// The kernel knows one alternate stack, that of the fiber that runs; it refuses to change the one that is in use.
pub fn install_altstack(t: vsrun_model::Tid) {
    let [stack, flags, size] = world().threads[t].altstack;
    let disable = if size == 0 { 2 } else { flags };
    let real = [stack, disable, size];
    raw!(libc::SYS_sigaltstack, real.as_ptr(), 0);
}

/// True if the default action of a signal is to do nothing.
pub fn ignored_by_default(signal: i32) -> bool {
    matches!(signal, libc::SIGCHLD | libc::SIGURG | libc::SIGWINCH | libc::SIGCONT)
}

/// True if the default action of a signal is to stop the process.
pub fn stops(signal: i32) -> bool {
    matches!(signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU)
}

fn default_action(signal: i32) {
    if ignored_by_default(signal) {
        return;
    }
    if stops(signal) {
        return stop(local().pid, signal);
    }
    let faults = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGABRT, libc::SIGSYS];
    if faults.contains(&signal) {
        install(signal, SIG_DFL, 0);
        raw!(libc::SYS_tgkill, raw!(libc::SYS_getpid), raw!(libc::SYS_gettid), signal);
    }
    crate::process::killed_by(local().pid, signal);
    crate::process::exit_group(signal);
}

/// Sends a signal to process `p`, or to its thread `t`; its caller has the turn and the operation is visible already.
pub fn send(p: u32, t: u32, info: SigInfo) {
    let signal = info.signal;
    if signal == 0 || world().procs[p].state != ProcState::LIVE {
        return;
    }
    let cur = local().cur;
    let news = world().procs[p].stop_news;
    world().prepare(p, signal, cur);
    if world().procs[p].stop_news != news {
        tell_parent(p, libc::CLD_CONTINUED, libc::SIGCONT);
    }
    match world().disposal(p, t, signal) {
        Disposal::Ignored => {}
        Disposal::Pending => {
            if !world().post(p, t, info, 0) {
                end::unsupported(&[b"more signals are pending at a time than vsrun can hold"]);
            }
        }
        Disposal::Stops => stop(p, signal),
        Disposal::Kills if p == local().pid => default_action(signal),
        Disposal::Kills => {
            crate::process::killed_by(p, signal);
            crate::locks::refuse_kill();
            let real = world().procs[p].real_pid;
            world().process_exit(p, signal);
            crate::process::child_over(p);
            raw!(libc::SYS_kill, real, libc::SIGKILL);
        }
    }
}

/// Sends a signal to the running thread, as the kernel does when a call of its own fails (SIGPIPE); its handler runs
/// at once unless it is blocked.
pub fn send_thread_now(signal: i32) {
    let (p, t) = (local().pid, local().cur);
    let (pid, uid) = (world().procs[p].vpid, raw!(libc::SYS_getuid) as u32);
    send(p, t, SigInfo { signal, code: libc::SI_USER, pid, uid, value: 0 });
    deliver();
}

/// Process `p` stops. Of the own one, the running thread stands still here.
fn stop(p: u32, signal: i32) {
    let cur = local().cur;
    if world().procs[p].stopped != 0 {
        return;
    }
    world().stop(p, signal, cur);
    tell_parent(p, libc::CLD_STOPPED, signal);
    world().did = world().did.with(vsrun_model::Effects::SIGNALS);
    if p == local().pid {
        crate::gate::pass(Op::new(Kind::STOPPED));
    }
}

/// The parent of `p` gets SIGCHLD about a stop or its end, unless it does not want to know.
fn tell_parent(p: u32, code: i32, status: i32) {
    let parent = world().procs[p].parent;
    if world().procs.get(parent).is_some_and(|q| !q.no_stop_news) && world().tell_parent(p, code, status).is_some() {
        world().did = world().did.with(vsrun_model::Effects::SIGNALS);
    }
}

type Handler = extern "C" fn(i32, u64, u64);

/// Every handler of the program is entered here. A signal from outside that comes while the shim's own code runs, or
/// that the fiber blocks, waits.
extern "C" fn trampoline(signal: i32, info: u64, context: u64) {
    let rip: u64 = load(context + UC_RIP);
    let on_purpose = core::mem::replace(&mut local().delivering, false);
    let in_shim = rip >= local().text.0 && rip < local().text.1;
    let fault = matches!(signal, libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL | libc::SIGTRAP);
    if !on_purpose && !fault && (in_shim || me().sigmask & bit(signal) != 0) {
        me().sigpending |= bit(signal);
        return;
    }
    let action = local().actions[signal as usize];
    let within = me().sigmask;
    let before = local().mask_after.take().unwrap_or(within);
    store(context + UC_SIGMASK, before);
    if action.flags & SA_RESETHAND != 0 {
        let none = Action { handler: SIG_DFL, flags: 0, restorer: 0, mask: 0 };
        local().actions[signal as usize] = none;
        note_disposition(signal, &none);
        if signal == libc::SIGSEGV {
            install_fault();
        } else {
            install(signal, SIG_DFL, 0);
        }
    }
    let own = if action.flags & SA_NODEFER != 0 { 0 } else { bit(signal) };
    me().sigmask = (within | action.mask | own) & !(bit(libc::SIGKILL) | bit(libc::SIGSTOP));
    if on_purpose {
        // The kernel makes the frames of all signals that are due before the first instruction of any of the handlers.
        deliver();
    }
    // SAFETY: the program registered this address as the handler of the signal.
    let handler: Handler = unsafe { core::mem::transmute::<u64, Handler>(action.handler) };
    handler(signal, info, context);
    me().sigmask = load(context + UC_SIGMASK);
    store(context + UC_SIGMASK, 0u64);
}
