//! Signals: masks are virtual, one a fiber; the kernel's mask stays empty, since a blocked SIGSYS would kill at the
//! next trap. Handlers are entered by the kernel through one trampoline, so context, siginfo and alternate stacks are
//! real; when they are entered is decided here.

use vsrun_model::object::NONE;
use vsrun_model::ProcState;

use crate::local::{local, me, world, Action, Phase};
use crate::sys::{load, store};
use crate::{end, raw};

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
    match action.handler {
        SIG_DFL => {}
        SIG_IGN => process.ignored |= bit(signal),
        _ => process.handled |= bit(signal),
    }
    if signal == libc::SIGCHLD {
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
    store(set, me().sigpending | world().procs[local().pid].sigpending);
    0
}

/// rt_sigtimedwait (sigwait, sigwaitinfo) of a signal that is pending already; otherwise the kernel does the waiting.
pub fn take_pending(set: u64, info: u64) -> Option<i64> {
    let wanted: u64 = load(set);
    let ready = (me().sigpending | world().procs[local().pid].sigpending) & wanted;
    let signal = ready.trailing_zeros() as i32 + 1;
    if ready == 0 {
        return None;
    }
    forget_pending(signal);
    if info != 0 {
        crate::sync::zero(info, 128);
        store(info, signal);
    }
    Some(signal as i64)
}

/// Signal `signal` is no longer pending for the running fiber, or if it was not, for its process.
fn forget_pending(signal: i32) {
    if me().sigpending & bit(signal) != 0 {
        me().sigpending &= !bit(signal);
    } else {
        world().procs[local().pid].sigpending &= !bit(signal);
    }
}

/// Enters the handlers of signals that are pending for the running fiber and not blocked.
pub fn deliver() {
    if local().phase == Phase::Off || local().borrowed {
        return;
    }
    loop {
        let process = world().procs[local().pid].sigpending;
        let ready = (me().sigpending | process) & !me().sigmask;
        if ready == 0 {
            return;
        }
        let signal = ready.trailing_zeros() as i32 + 1;
        forget_pending(signal);
        act(signal);
    }
}

/// What signal `signal` does to this process now.
fn act(signal: i32) {
    let action = local().actions[signal as usize];
    match action.handler {
        SIG_IGN => {}
        SIG_DFL => default_action(signal),
        _ => {
            local().delivering = true;
            let mut info = [0u64; 16];
            info[0] = signal as u64;
            info[1] = (-6i32) as u32 as u64;
            info[2] = world().procs[local().pid].vpid as u64;
            let pid = raw!(libc::SYS_getpid);
            raw!(libc::SYS_rt_tgsigqueueinfo, pid, raw!(libc::SYS_gettid), signal, info.as_ptr());
        }
    }
}

/// True if the default action of a signal is to do nothing.
pub fn ignored_by_default(signal: i32) -> bool {
    matches!(signal, libc::SIGCHLD | libc::SIGURG | libc::SIGWINCH | libc::SIGCONT)
}

/// True if the default action of a signal is to stop the process.
fn stops_by_default(signal: i32) -> bool {
    matches!(signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU)
}

fn default_action(signal: i32) {
    if ignored_by_default(signal) {
        return;
    }
    if stops_by_default(signal) {
        end::unsupported(&[b"a signal that stops a process"]);
    }
    let faults = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGABRT, libc::SIGSYS];
    if faults.contains(&signal) {
        install(signal, SIG_DFL, 0);
        raw!(libc::SYS_tgkill, raw!(libc::SYS_getpid), raw!(libc::SYS_gettid), signal);
    }
    crate::process::killed_by(local().pid, signal);
    crate::process::exit_group(signal);
}

/// Sends signal `signal` to process `p`; its caller has the turn and the operation is visible already.
pub fn send(p: u32, signal: i32) {
    if signal == 0 || world().procs[p].state != ProcState::LIVE {
        return;
    }
    let process = world().procs[p];
    let uncatchable = signal == libc::SIGKILL || signal == libc::SIGSTOP;
    if !uncatchable && process.handled & bit(signal) != 0 || p == local().pid {
        world().procs[p].sigpending |= bit(signal);
        return;
    }
    if !uncatchable && (process.ignored & bit(signal) != 0 || ignored_by_default(signal)) {
        return;
    }
    if blocked_everywhere(p, signal) && !uncatchable {
        world().procs[p].sigpending |= bit(signal);
        return;
    }
    if stops_by_default(signal) {
        end::unsupported(&[b"a signal that stops a process"]);
    }
    crate::process::killed_by(p, signal);
    crate::locks::refuse_kill();
    let real = world().procs[p].real_pid;
    world().process_exit(p, signal);
    crate::process::child_over(p);
    raw!(libc::SYS_kill, real, libc::SIGKILL);
}

/// What the signal does to a process that has said nothing about it is to end it.
pub fn ends_by_default(signal: i32) -> bool {
    !ignored_by_default(signal) && !stops_by_default(signal)
}

/// No thread of process `p` takes the signal.
pub fn blocked_everywhere(p: u32, signal: i32) -> bool {
    let w = world();
    let mut open =
        w.live.as_slice().iter().filter(|&&t| w.threads[t].pid == p && w.threads[t].sigmask & bit(signal) == 0);
    open.next().is_none()
}

/// Sends a signal to one thread of this process.
pub fn send_thread(t: u32, signal: i32) {
    if t != NONE && signal != 0 {
        world().threads[t].sigpending |= bit(signal);
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
    let before = me().sigmask;
    store(context + UC_SIGMASK, before);
    if action.flags & SA_RESETHAND != 0 {
        let none = Action { handler: SIG_DFL, flags: 0, restorer: 0, mask: 0 };
        local().actions[signal as usize] = none;
        note_disposition(signal, &none);
        install(signal, SIG_DFL, 0);
    }
    let own = if action.flags & SA_NODEFER != 0 { 0 } else { bit(signal) };
    me().sigmask = before | action.mask | own;
    // SAFETY: the program registered this address as the handler of the signal.
    let handler: Handler = unsafe { core::mem::transmute::<u64, Handler>(action.handler) };
    handler(signal, info, context);
    me().sigmask = load(context + UC_SIGMASK);
    store(context + UC_SIGMASK, 0u64);
}
