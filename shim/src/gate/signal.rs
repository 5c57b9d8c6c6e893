//! Delivery of signals: handlers are entered by the kernel through one trampoline, so context, siginfo and alternate stacks
//! are real; when they are entered is decided here. Masks are virtual, one a fiber; the kernel's mask stays empty, since a
//! blocked SIGSYS would kill at the next trap.

use core::cell::UnsafeCell;

use vsrun_model::arena::Mode;
use vsrun_model::signal::{bit, ignored_by_default, stops, Disposition, Kept, Sent};
use vsrun_model::{Kind, Op, Pid, SigInfo, Tid};

use super::local::{arena, local, machine, me, model, process_of, world, Action};
use super::{cpuid, direct, end, exit, fiber, shield, tsc, turn};
use crate::sys::errno::EAGAIN;
use crate::sys::track::track;
use crate::sys::{context as reg, die, guard, limit, load, raw, store};
use crate::watch;

const SA_NOCLDSTOP: u64 = 1;
const SA_RESTART: u64 = 0x1000_0000;
const SA_SIGINFO: u64 = 4;
const SA_ONSTACK: u64 = 0x0800_0000;
const SA_NODEFER: u64 = 0x4000_0000;
const SA_RESETHAND: u64 = 0x8000_0000;
const SA_RESTORER: u64 = 0x0400_0000;
const SA_NOCLDWAIT: u64 = 2;
/// First real-time signal of the kernel.
const OF_REAL_TIME: i32 = 32;
const SIG_DFL: u64 = 0;
const SIG_IGN: u64 = 1;

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

fn install(signal: i32, handler: u64, flags: u64) -> i64 {
    let action = Action { handler, flags: flags | SA_RESTORER, restorer: __restore_rt as *const () as u64, mask: 0 };
    raw!(libc::SYS_rt_sigaction, signal, &action as *const Action, 0, 8)
}

/// Makes the net's handler the process's handler of SIGSYS.
pub fn install_net(handler: u64) {
    install(libc::SIGSYS, handler, SA_SIGINFO | SA_NODEFER);
}

/// Signals by which the processor tells of memory that is not there.
const FAULTS: [i32; 2] = [libc::SIGSEGV, libc::SIGBUS];

/// The same of instructions.
const OF_INSTRUCTIONS: [i32; 2] = [libc::SIGFPE, libc::SIGILL];

fn is_alone() -> bool {
    arena().control.mode == Mode::DIRECT
}

/// The shim's handler gets it first: without a supervisor whatever an instruction fails by, since a debugger is to see all threads then.
fn is_fault(signal: i32) -> bool {
    FAULTS.contains(&signal) || is_alone() && OF_INSTRUCTIONS.contains(&signal)
}

struct Stack(UnsafeCell<[u8; 1 << 15]>);
// SAFETY: only the kernel writes there, for one fault at a time.
unsafe impl Sync for Stack {}

/// Without a supervisor, until the program has alternate stacks: where a fault is met whose stack is used up. Whoever is there comes back
/// or ends; no fiber is left there.
static SPARE: Stack = Stack(UnsafeCell::new([0; 1 << 15]));

/// Makes the kernel's action of faults the shim's handler of them; see `tsc` and `sys::guard`.
pub fn install_faults() {
    if is_alone() && !local().altstacks {
        let stack = [SPARE.0.get() as u64, 0, size_of::<Stack>() as u64];
        raw!(libc::SYS_sigaltstack, stack.as_ptr(), 0);
    }
    FAULTS.into_iter().chain(OF_INSTRUCTIONS).filter(|&signal| is_fault(signal)).for_each(install_fault);
}

/// The same of one, on the program's alternate stack if its own handler is to run there.
fn install_fault(signal: i32) {
    let action = local().actions[signal as usize];
    let spare = is_alone() && !local().altstacks && matches!(action.handler, SIG_DFL | SIG_IGN);
    let flags = if spare { SA_ONSTACK } else { action.flags & SA_ONSTACK };
    install(signal, on_fault as *const () as u64, flags | SA_SIGINFO | SA_NODEFER);
}

/// Before exec, which keeps what is ignored.
pub fn before_exec() {
    for signal in FAULTS.into_iter().chain(OF_INSTRUCTIONS) {
        if is_fault(signal) && local().actions[signal as usize].handler == SIG_IGN {
            install(signal, SIG_IGN, 0);
        }
    }
}

/// The program's action of a signal becomes `action`. Gives 0 or a negative error number.
pub fn set_action(signal: i32, action: Action) -> i64 {
    let before = core::mem::replace(&mut local().actions[signal as usize], action);
    note_disposition(signal, &action);
    let result = match action.handler {
        _ if signal == libc::SIGSYS => 0,
        _ if signal == trap_signal() && (watch::is_mapped() || local().toss_traps) => {
            install_traps();
            0
        }
        _ if is_fault(signal) => {
            install_fault(signal);
            0
        }
        SIG_DFL | SIG_IGN => install(signal, action.handler, 0),
        _ => install(signal, trampoline as *const () as u64, action.flags & SA_ONSTACK | SA_SIGINFO | SA_NODEFER),
    };
    if result < 0 {
        local().actions[signal as usize] = before;
    }
    result
}

/// The signal that patches of one byte give, see [`TRAP_ALONE`](vsrun_model::watch::TRAP_ALONE).
fn trap_signal() -> i32 {
    if is_alone() {
        libc::SIGILL
    } else {
        libc::SIGTRAP
    }
}

/// Makes the kernel's action of that signal the shim's handler.
pub fn install_traps() {
    let signal = trap_signal();
    let flags = local().actions[signal as usize].flags & SA_ONSTACK;
    install(signal, on_trap as *const () as u64, flags | SA_SIGINFO | SA_NODEFER);
}

/// Where the entry of a function that returns a choice leads, if that is a trap and stands at `address`.
fn toss_at(address: u64) -> Option<u64> {
    let traps = &arena().control.tossing.traps;
    traps.iter().find(|trap| local().toss_traps && trap.at == address).map(|trap| trap.to)
}

/// Handler of [`trap_signal`] where patches are traps.
extern "C" fn on_trap(signal: i32, info: u64, context: u64) {
    const SI_KERNEL: i32 = 0x80;
    let code: i32 = load(info + 8);
    let rip: u64 = load(context + reg::RIP);
    // SIGTRAP comes behind the instruction, SIGILL at it.
    let (of_instruction, at) = match signal {
        libc::SIGTRAP => (code == SI_KERNEL, rip - 1),
        _ => (code > 0, rip),
    };
    if of_instruction {
        if let Some(to) = watch::trap(at).or_else(|| toss_at(at)) {
            store(context + reg::RIP, to);
            return;
        }
    }
    let entered = shield::enter();
    match local().actions[signal as usize].handler {
        _ if local().delivering => trampoline(signal, info, context),
        SIG_IGN if code <= 0 => {}
        SIG_DFL | SIG_IGN => {
            // It is fatal, where it happened.
            process_of(local().pid).crashes = true;
            direct::crashes(signal);
            install(signal, SIG_DFL, 0);
            if of_instruction {
                store(context + reg::RIP, at);
            } else {
                raise(signal);
            }
        }
        _ => trampoline(signal, info, context),
    }
    shield::leave(entered);
}

/// Tells the model what a signal would do here.
fn note_disposition(signal: i32, action: &Action) {
    let p = local().pid;
    let what = match action.handler {
        SIG_DFL => Disposition::Default,
        SIG_IGN => Disposition::Ignored,
        _ => Disposition::Handled,
    };
    model().set_disposition(p, signal, what, action.flags & SA_RESTART != 0);
    if signal == libc::SIGCHLD {
        let zombies = action.handler != SIG_IGN && action.flags & SA_NOCLDWAIT == 0;
        model().set_child_news(p, zombies, action.flags & SA_NOCLDSTOP == 0);
    }
}

/// Reads which signals the program was started with ignored: exec keeps those.
pub fn read_dispositions() {
    for signal in 1..=64 {
        let mut action = Action::NONE;
        if raw!(libc::SYS_rt_sigaction, signal, 0, &mut action as *mut Action, 8) == 0 && action.handler == SIG_IGN {
            local().actions[signal as usize] = action;
            note_disposition(signal, &action);
        }
    }
}

/// A fault of an address where nothing is, in `si_code`.
const SEGV_MAPERR: i32 = 1;

/// Handler of SIGSEGV and SIGBUS.
extern "C" fn on_fault(signal: i32, info: u64, context: u64) {
    let sent = load::<i32>(info + 8) <= 0;
    if !sent && shield::is_own(load(info + 16), load(context + reg::RIP)) {
        return;
    }
    if let Some(next) = (!sent).then(|| watch::mends(load(context + reg::RIP))).flatten() {
        let entered = shield::enter();
        machine().note_later_code(b"memory at addresses without a shadow");
        shield::leave(entered);
        return store(context + reg::RIP, next);
    }
    if !sent && signal == libc::SIGSEGV && track().hides_at(load(info + 16)) {
        // As far as the program knows nothing is there.
        store(info + 8, SEGV_MAPERR);
    }
    if !sent {
        let at = load(info + 16);
        track().uses(at, at.saturating_add(1));
    }
    let entered = shield::enter();
    fault(signal, sent, info, context);
    shield::leave(entered);
}

fn fault(signal: i32, sent: bool, info: u64, context: u64) {
    let action = local().actions[signal as usize];
    if sent && action.handler != SIG_IGN {
        yield_to_outside(signal, info);
    }
    let emulated = || tsc::emulated(info, context) || cpuid::emulated(info, context);
    let passes = || signal == libc::SIGSEGV && emulated() || !sent && answered(context);
    if !local().delivering && passes() {
        return;
    }
    match action.handler {
        SIG_IGN if sent => {}
        // It is fatal. The default action is put in place, and the instruction faults again: the crash is where it happened.
        SIG_DFL | SIG_IGN => {
            process_of(local().pid).crashes = true;
            direct::crashes(signal);
            install(signal, SIG_DFL, 0);
            if sent {
                raise(signal);
            }
        }
        _ => trampoline(signal, info, context),
    }
}

/// A SIGSYS that is none of the net's: the program's own.
pub fn sent_as_sigsys(info: u64, context: u64) {
    if !matches!(local().actions[libc::SIGSYS as usize].handler, SIG_DFL | SIG_IGN) {
        trampoline(libc::SIGSYS, info, context);
    }
}

/// A fault of an access to the program's memory in a call goes on where that says.
fn answered(context: u64) -> bool {
    let Some((next, stack)) = guard::recover(load(context + reg::RIP)) else { return false };
    store(context + reg::RIP, next);
    if let Some(stack) = stack {
        store(context + reg::RSP, stack);
    }
    true
}

/// Where the signal was sent by a process outside of the world, the execution is over: what comes of such a signal is no
/// behaviour of the closed system. Everything that the program sends itself is the model's, and the processes of the world send
/// nothing in earnest but to themselves. The world may be another process's now, so this one only notes it and ends.
fn yield_to_outside(signal: i32, info: u64) {
    let sender: i32 = load(info + 16);
    let own = process_of(local().pid);
    if own.delivers == signal || is_alone() {
        return;
    }
    if sender > 0 && world().procs.as_slice().iter().any(|p| p.own.real_pid == sender) {
        return;
    }
    own.outside = [signal, sender];
    die(1)
}

/// The kernel sends this process a signal.
fn raise(signal: i32) {
    raw!(libc::SYS_tgkill, raw!(libc::SYS_getpid), raw!(libc::SYS_gettid), signal);
}

/// What a handler would overwrite and what was interrupted still needs.
struct Saved {
    of_thread: Kept,
    returns: bool,
    cancellable: bool,
    reserved: [i32; 2],
}

impl Saved {
    fn save() -> Saved {
        let cancellable = core::mem::take(&mut super::local::fiber().cancellable);
        let returns = core::mem::take(&mut local().returns);
        let reserved = core::mem::take(&mut super::local::fiber().reserved);
        Saved { of_thread: model().keep(local().cur), returns, cancellable, reserved }
    }

    fn restore(self) {
        model().restore(local().cur, self.of_thread);
        super::local::fiber().cancellable = self.cancellable;
        local().returns = self.returns;
        super::local::fiber().reserved = self.reserved;
    }
}

/// Enters the handlers of signals that are due for the running fiber. Whoever looks takes those for the process too.
// Not part of what every operation goes through: what is kept takes room on the program's stack.
#[cold]
#[inline(never)]
pub fn deliver_due() {
    let saved = Saved::save();
    loop {
        let cur = local().cur;
        let ready = world().due_to_who_looks(cur);
        if !model().take(cur, ready) {
            break;
        }
        let info = me().taken;
        act(&info, &Op::default());
    }
    saved.restore();
}

/// The running fiber has taken a signal while it was parked at `op`: the handler runs. `fails`: in the call, which then
/// fails; otherwise the operation goes on. True: it fails.
#[inline(never)]
pub fn run_taken(op: &Op, fails: bool) -> bool {
    let info = me().taken;
    if world().procs[local().pid].dying != 0 {
        exit::killed_by(local().pid, info.signal);
        exit::exit_group(info.signal);
    }
    if info.signal == 0 {
        // A stop: no handler of its own.
        turn::deliver();
        return fails;
    }
    let carried = (me().sending, me().staged);
    let own_mask = {
        let cur = local().cur;
        (op.kind == Kind::SIGSUSPEND || world().has_own_mask(cur, op)).then(|| world().mask_within(cur, op))
    };
    let polled = (op.kind == Kind::FD_POLL).then(|| (me().n_polled, me().polled));
    let saved = Saved::save();
    let semops = (op.kind == Kind::SYSV_OP).then(|| (me().n_sembuf, me().sembuf));
    if let (true, Some(within)) = (fails, own_mask) {
        local().mask_after = Some(me().sigmask);
        model().set_mask(local().cur, within);
    }
    act(&info, op);
    if let Some(mask) = local().mask_after.take() {
        model().set_mask(local().cur, mask);
    }
    turn::look();
    saved.restore();
    if let Some((n, ops)) = semops {
        model().set_semops(local().cur, &ops[..n as usize]);
    }
    if let Some((n, polled)) = polled {
        model().set_polled(local().cur, &polled[..n as usize]);
    }
    if carried != (me().sending, me().staged) {
        end::unsupported(&[b"a fork in a signal handler that interrupted the sending of a message"]);
    }
    fails
}

/// What a signal does to this process now; `op` is the operation that it interrupts, if it does.
fn act(info: &SigInfo, op: &Op) {
    let signal = info.signal;
    match local().actions[signal as usize].handler {
        SIG_IGN => {}
        SIG_DFL => default_action(signal),
        _ => {
            let cur = local().cur;
            if local().altstacks {
                fiber::install_altstack(cur);
            }
            local().delivering = true;
            let real = siginfo(info);
            // It is the kernel that enters the handler, with a signal in its own queue.
            const ENOUGH: u64 = 64;
            if (signal >= OF_REAL_TIME || info.code < 0) && limit(libc::RLIMIT_SIGPENDING) < ENOUGH {
                end::unsupported(&[b"a handler of a signal with data where RLIMIT_SIGPENDING is small"]);
            }
            if !model().handler_begins(cur, signal, real.as_ptr() as u64, *op) {
                end::unsupported(&[b"more than four signal handlers, one in another, in calls on descriptors"]);
            }
            let pid = raw!(libc::SYS_getpid);
            process_of(local().pid).delivers = signal;
            raw!(libc::SYS_rt_tgsigqueueinfo, pid, raw!(libc::SYS_gettid), signal, real.as_ptr());
            model().handler_over(local().cur);
        }
    }
}

/// A siginfo_t: the fields of all kinds of signals lie in the same places.
pub fn siginfo(info: &SigInfo) -> [u64; 16] {
    let mut real = [0u64; 16];
    real[0] = info.signal as u32 as u64;
    real[1] = info.code as u32 as u64;
    real[2] = info.pid as u32 as u64 | (info.uid as u64) << 32;
    real[3] = info.value;
    real
}

/// The process does nothing about `signal` and it would end it.
pub fn is_fatal(signal: i32) -> bool {
    local().actions[signal as usize].handler == SIG_DFL && !ignored_by_default(signal) && !stops(signal)
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
        direct::crashes(signal);
        install(signal, SIG_DFL, 0);
        raise(signal);
    }
    exit::killed_by(local().pid, signal);
    exit::exit_group(signal);
}

/// How many signals may be pending that were sent to process `p`, where it matters for this one.
fn may_be_pending(p: Pid, info: &SigInfo) -> u64 {
    if info.signal < OF_REAL_TIME && info.code >= 0 {
        return u64::MAX;
    }
    let mut limit = [u64::MAX; 2];
    raw!(libc::SYS_prlimit64, process_of(p).real_pid, libc::RLIMIT_SIGPENDING, 0, limit.as_mut_ptr());
    limit[0]
}

/// Sends a signal to process `p`, or to its thread `t`; its caller has the turn and the operation is visible already. Gives 0 or a negative
/// error number.
pub fn send(p: Pid, t: Tid, info: SigInfo) -> i64 {
    let signal = info.signal;
    match model().send_within(may_be_pending(p, &info), local().cur, p, t, info) {
        Sent::Done => {}
        sent @ (Sent::Refused | Sent::LosesData) => {
            // Whom it strikes depends on who has taken theirs by then, in other processes too.
            if world().live.len > 1 {
                machine().note_unexplored();
            }
            return if sent == Sent::Refused { EAGAIN } else { 0 };
        }
        Sent::NoRoom => end::no_room_for_signal(),
        Sent::Stops => stop(p, signal),
        Sent::Kills if p == local().pid => default_action(signal),
        // The first process, by another one: that is a crash, and the execution is over.
        Sent::Kills => exit::killed_by(p, signal),
    }
    0
}

/// Sends a signal to the process of the running thread or to that thread, in the name of the process itself.
pub fn send_own(p: Pid, t: Tid, signal: i32, code: i32, value: u64) {
    let (pid, uid) = (world().procs[local().pid].vpid, raw!(libc::SYS_getuid) as u32);
    send(p, t, SigInfo { signal, code, pid, uid, value });
}

/// Sends a signal to the running thread, as the kernel does when a call of its own fails (SIGPIPE); its handler runs
/// at once unless it is blocked.
pub fn send_thread_now(signal: i32) {
    send_own(local().pid, local().cur, signal, libc::SI_USER, 0);
    turn::deliver();
}

/// Process `p` stops. Of the own one, the running thread stands still here.
fn stop(p: Pid, signal: i32) {
    if model().stop_and_tell(p, signal, local().cur) && p == local().pid {
        turn::pass(Op::new(Kind::STOPPED));
    }
}

type Handler = extern "C" fn(i32, u64, u64);

/// Every handler of the program is entered here. A signal from outside that comes while the shim's own code runs, or
/// that the fiber blocks, waits.
extern "C" fn trampoline(signal: i32, info: u64, context: u64) {
    if is_ends_of_child(signal, info) {
        return;
    }
    let entered = shield::enter();
    enter_handler(signal, info, context);
    shield::leave(entered);
}

/// Without a supervisor a process that has been killed tells its parent in earnest, too.
fn is_ends_of_child(signal: i32, info: u64) -> bool {
    signal == libc::SIGCHLD && is_alone() && !local().delivering && load::<i32>(info + 8) > 0
}

/// A handler is about to return, which has blocked the signals `barred` in its thread: meanwhile other threads of the process get those.
fn handler_ends(barred: u64) {
    const CHILD: u64 = bit(libc::SIGCHLD);
    let cur = local().cur;
    let come = (world().timer_signals(cur) | CHILD) & barred != 0 || machine().is_sent_signals(local().pid);
    if come && world().others_take(cur, barred) {
        turn::place(libc::SYS_rt_sigreturn);
    }
}

fn enter_handler(signal: i32, info: u64, context: u64) {
    let rip: u64 = load(context + reg::RIP);
    let on_purpose = core::mem::replace(&mut local().delivering, false);
    let in_shim = rip >= local().text.0 && rip < local().text.1;
    let fault = matches!(signal, libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL | libc::SIGTRAP);
    if !on_purpose && load::<i32>(info + 8) <= 0 {
        yield_to_outside(signal, info);
    }
    process_of(local().pid).delivers = 0;
    if !on_purpose && !fault && (in_shim || me().sigmask & bit(signal) != 0) {
        model().pend(local().cur, signal);
        return;
    }
    let action = local().actions[signal as usize];
    let within = me().sigmask;
    let before = local().mask_after.take().unwrap_or(within);
    store(context + reg::SIGMASK, before);
    if action.flags & SA_RESETHAND != 0 {
        // The flags stay (kernel/signal.c, get_signal).
        set_action(signal, Action { handler: SIG_DFL, ..action });
    }
    let own = if action.flags & SA_NODEFER != 0 { 0 } else { bit(signal) };
    model().set_mask(local().cur, within | action.mask | own);
    if on_purpose {
        // The kernel makes the frames of all signals that are due before the first instruction of any of the handlers.
        turn::look();
    }
    // SAFETY: the program registered this address as the handler of the signal.
    let handler: Handler = unsafe { core::mem::transmute::<u64, Handler>(action.handler) };
    let call = guard::suspend();
    // The program knows nothing of where its instructions were moved to.
    let moved = watch::moved_from(rip);
    if let Some(before) = moved {
        store(context + reg::RIP, before);
    }
    shield::close();
    handler(signal, info, context);
    shield::enter();
    if moved.is_some() {
        let next: u64 = load(context + reg::RIP);
        store(context + reg::RIP, watch::moved_to(next).unwrap_or(next));
    }
    guard::resume(call);
    if on_purpose {
        handler_ends(me().sigmask & !before);
    }
    model().set_mask(local().cur, load(context + reg::SIGMASK));
    store(context + reg::SIGMASK, 0u64);
}
