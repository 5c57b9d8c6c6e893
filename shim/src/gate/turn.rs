//! The gate: where a thread reaches a visible operation, publishes it and, having the turn, passes it on.
//!
//! NOTE [Turn] Exactly one thread of the world has the turn. Within a process it is passed by a switch of fibers,
//! between processes by a futex word (`word`). A process whose fiber passed the turn away waits there; who gets it back
//! is `World::current`, which may be another fiber of the process than the one that waits.
//!
//! NOTE [Start] A new thread or process runs up to its first visible operation before its creator goes on; then (or
//! at its end) the turn goes back to the creator without a choice.

use vsrun_model::arena::Mode;
use vsrun_model::object::NONE;
use vsrun_model::signal::Sent;
use vsrun_model::{Applied, Decision, End, Kind, Op, Pid, ProcState, ThreadState, Tid};

use super::local::{arena, fiber, local, machine, me, model, world, Phase};
use super::mirror::{self, Mirror};
use super::stacks::stands;
use super::{back as going_back, digest, direct, eintr, end, fiber as fibers, fiber_of, shield, view, watched, word};
use crate::sys::errno::EINTR;
use crate::sys::{die, guard, keeping_errno, raw};

/// What is done around an operation, with the turn and as a part of it.
struct Around<'a> {
    /// Memory that is kept in step with its object.
    mirror: Mirror,
    /// Called before it is performed.
    before: Option<&'a dyn Fn()>,
    /// Called with its result, before a signal can come in between.
    then: &'a mut dyn FnMut(i64),
}

/// Performs a visible operation; returns what it gives.
pub fn pass(op: Op) -> i64 {
    pass_mirrored(op, None)
}

/// The same for what libc does on its own account: where it is no place to switch, no signal comes in either.
pub fn pass_quietly(op: Op) -> i64 {
    drain_stores();
    local().acts += 1;
    if !local().borrowed {
        if let Some(Applied::Done(result)) = machine().pass(local().cur, &op) {
            return result;
        }
    }
    pass(op)
}

/// The same; `then` is called with the result as a part of the operation, before a signal can come in between.
pub fn pass_then(op: Op, mut then: impl FnMut(i64)) -> i64 {
    pass_with(op, Around { mirror: None, before: None, then: &mut then })
}

/// The same; `before` is called when it is about to be performed, with the turn.
pub fn pass_after(op: Op, before: Option<fn()>, mut then: impl FnMut(i64)) -> i64 {
    let before = before.as_ref().map(|before| before as &dyn Fn());
    pass_with(op, Around { mirror: None, before, then: &mut then })
}

/// The same; `each` is called before each step of it, with the turn.
pub fn pass_in_steps(op: Op, each: &dyn Fn()) -> i64 {
    pass_with(op, Around { mirror: None, before: Some(each), then: &mut |_| {} })
}

/// The same, keeping the word that mirrors the object's state up to date.
pub fn pass_mirrored(op: Op, mirror: Mirror) -> i64 {
    pass_with(op, Around { mirror, before: None, then: &mut |_| {} })
}

/// Call `nr`, which is no operation by itself, is a place to switch where somebody can tell when it comes.
pub fn place(nr: i64) {
    if !local().borrowed && machine().is_watched(local().cur) {
        pass(Op::new(Kind::PLACE).arg(nr));
    }
}

/// The same where a timer may fire: also where there is one thread only.
pub fn place_for_timers(nr: i64) {
    if tells_ticks() {
        pass(Op::new(Kind::PLACE).arg(nr));
    }
}

/// The same of call `nr` where a handler of the program may run before it, and tell that it has not been made; or a timer's signal may end
/// the process before, of which others tell.
pub fn place_for_handlers(nr: i64) {
    if is_place_for_handlers() {
        pass(Op::new(Kind::PLACE).arg(nr));
    }
}

/// Any call is one here, also one that uses nothing that others have.
pub fn is_place_for_handlers() -> bool {
    let cur = local().cur;
    let handled = world().handled_by_program(local().pid) & !me().sigmask;
    let comes_between = || world().timers_act_on(cur) != 0 && tells_ticks();
    !local().borrowed && (handled != 0 && machine().is_watched(cur) || comes_between())
}

fn tells_ticks() -> bool {
    !local().borrowed && (!world().concurrent || machine().is_watched(local().cur))
}

/// The same of a call at which a request to end the thread is heeded, where there are any.
pub fn cancellation_place(nr: i64) {
    if world().concurrent && !fiber_of(local().cur).asks_to_end && machine().cancels() {
        place(nr);
    }
}

/// An operation of that kind is over, and with it may be the call that it is of. Where signals answer it, what is due is handled at a place
/// to switch of its own, once that call has done all that it does.
fn returns(kind: Kind) {
    if kind != Kind::RETURN && !local().borrowed && machine().is_answered(local().cur, kind) {
        local().returns = true;
    }
}

/// The running fiber has sent its own process a signal, which another thread may take before it does.
pub fn sends() {
    let cur = local().cur;
    let threaded = world().procs[local().pid].threaded && !local().borrowed;
    if threaded && world().due(cur) != 0 && machine().is_watched(cur) {
        local().returns = true;
    }
}

/// A timer has been set, or its signal is not blocked any more, which may come before what is next: also where there is one thread only,
/// which may fork, exec or end then.
pub fn arms() {
    let cur = local().cur;
    if world().timer_signals(cur) & !world().threads[cur].sigmask != 0 && tells_ticks() {
        local().returns = true;
    }
}

/// A call of the program that is `work`.
#[inline(always)]
pub fn returning<R>(work: impl FnOnce() -> R) -> R {
    local().acts += 1;
    let entered = shield::enter();
    let result = work();
    back();
    shield::leave(entered);
    result
}

/// A call of the program is over.
#[inline]
pub fn back() {
    if local().returns {
        pass_return();
    }
}

#[cold]
#[inline(never)]
fn pass_return() {
    local().returns = false;
    if local().phase != Phase::Running || local().borrowed || fiber_of(local().cur).asks_to_end {
        return;
    }
    // A handler runs before libc sets errno.
    keeping_errno(|| pass(Op::new(Kind::RETURN)));
}

fn pass_with(mut op: Op, around: Around) -> i64 {
    drain_stores();
    local().acts += 1;
    guard::commit();
    mirror::settle_onces();
    settle_handlers();
    local().spin.site = 0;
    let interrupted_once_blocked = eintr::once_blocked(&mut op);
    let told = |result| if interrupted_once_blocked { eintr::outcome(&op, result) } else { result };
    if let Some(result) = pass_at_once(&op, around.mirror) {
        return told(result);
    }
    let cur = local().cur;
    let starting = me().state == ThreadState::STARTING;
    watched::transition_ends();
    model().publish(cur, op);
    finish_if_over();
    if local().borrowed {
        end::unsupported(&[
            b"a visible operation (",
            op.kind.name().as_bytes(),
            b") in the child of a vfork before it execs",
        ]);
    }
    let mut value = if starting { give_back() } else { take(cur).unwrap_or(0) };
    loop {
        mirror::before(&op, around.mirror);
        if let Some(before) = around.before {
            before();
        }
        let parked = me().pending;
        let applied = model().perform(cur, value);
        mirror::after(around.mirror);
        match applied {
            Applied::Done(result) => {
                finish_if_over();
                let result = told(result);
                (around.then)(result);
                returns(parked.kind);
                watched::look();
                deliver();
                return result;
            }
            Applied::Ended => end::finish(),
            Applied::Signalled(fails) => {
                if interrupted(&parked, fails) {
                    (around.then)(EINTR);
                    return EINTR;
                }
                // What the handler did to memory is this thread's, and others may move before its operation.
                watched::transition_ends();
                model().resume_at(cur, parked, op);
                finish_if_over();
                value = take(cur).unwrap_or(0);
            }
            Applied::Parked => {
                finish_if_over();
                value = take(cur).unwrap_or(value);
            }
        }
    }
}

/// What comes next waits until the store buffer of the running fiber is empty, unless it is a use of memory, which decides that itself.
#[inline]
pub fn drain_stores() {
    if view::is_on() && !local().touches {
        (local().hooks.drain)();
    }
}

/// A handler of the program's is about to run.
fn refuse_if_apart() {
    if view::is_apart() {
        end::unsupported(&[
            b"with --memory tso, a signal handler that runs while stores of its thread are in the buffer",
        ]);
    }
}

fn finish_if_over() {
    if world().end != End::RUNNING {
        end::finish();
    }
}

/// An operation on an object of the thread's own is no place to switch; see `vsrun_model::sharing`. `None`: it is one.
fn pass_at_once(op: &Op, mirror: Mirror) -> Option<i64> {
    if local().borrowed {
        return None;
    }
    let applied = machine().pass(local().cur, op)?;
    mirror::after(mirror);
    match applied {
        Applied::Done(result) if world().end == End::RUNNING => {
            // One that has just been created takes signals once it has been scheduled.
            if me().state == ThreadState::RUNNING {
                deliver();
            }
            Some(result)
        }
        _ => end::finish(),
    }
}

/// The running fiber has taken a signal while it was parked. True: its call fails.
fn interrupted(parked: &Op, fails: bool) -> bool {
    let cur = local().cur;
    refuse_if_apart();
    fiber().n_reads = 0;
    if fails && world().loses_connect(cur, parked) {
        end::unsupported(&[b"a signal whose handler interrupts a connect over TCP that waits"]);
    }
    // The handler may send messages of its own.
    let staged = model().exchange_staged(cur, NONE);
    let over = (local().hooks.run_taken)(parked, fails);
    model().exchange_staged(cur, staged);
    if over {
        // What it was to send is not sent.
        model().unstage(cur, &mut []);
    }
    over
}

/// Enters the handlers of signals that are pending for the running fiber and not blocked.
#[inline]
pub fn deliver() {
    if local().phase == Phase::Off || local().borrowed || local().returns {
        return;
    }
    if world().due(local().cur) != 0 {
        refuse_if_apart();
        fiber().n_reads = 0;
        (local().hooks.deliver)();
    }
}

/// The same where the kernel looks for signals: after a change of the mask, and at the end of a handler. Those for the process are taken
/// then whoever was chosen for them.
pub fn look() {
    if local().phase == Phase::Off || local().borrowed || local().returns {
        return;
    }
    if world().due_to_who_looks(local().cur) != 0 {
        refuse_if_apart();
        fiber().n_reads = 0;
        (local().hooks.deliver)();
    }
}

/// Handlers that were left by a jump (siglongjmp) are over. A handler may run on a stack of its own, of which nothing
/// follows.
fn settle_handlers() {
    if me().n_handlers == 0 {
        return;
    }
    let here = 0u8;
    let sp = &here as *const u8 as u64;
    let [stack, _, size] = me().fiber.altstack;
    if sp.wrapping_sub(stack) >= size {
        model().abandon(local().cur, sp);
    }
}

/// The alternative in which the operation of the running fiber is performed, once it has the turn. `None`: nobody else is
/// there to have it.
fn take(cur: Tid) -> Option<u32> {
    if model().goes_alone(cur, local().phase == Phase::BeforeRoot) {
        return None;
    }
    stands!(cur);
    let next = decide();
    if arena().control.mode == Mode::DIRECT && arena().taken == arena().plan.prefix_len as u64 {
        direct::last_step(next);
    }
    hand_to(next);
    tell();
    Some(world().value)
}

/// First visible operation of a new thread: back to its creator; returns when the scheduler picks this fiber.
fn give_back() -> u32 {
    let creator = me().creator;
    stands!(local().cur);
    model().give_turn(creator);
    hand_to(creator);
    tell();
    world().value
}

/// The running fiber is about to make the transition that has been decided on.
#[inline]
fn tell() {
    if arena().is_told() {
        stand_still();
    }
}

/// vsrun looks from where in the program it does so, and lets this process go on.
#[cold]
#[inline(never)]
fn stand_still() {
    if arena().control.mode == Mode::DIRECT {
        return direct::stop_before_step();
    }
    machine().tell();
    raw!(libc::SYS_kill, raw!(libc::SYS_getpid), libc::SIGSTOP);
}

/// Who moves next. Where only peers that do not come are waited for, what is left gets the signal that was asked for.
#[inline]
fn decide() -> Tid {
    going_back::begin();
    if machine().is_to_tell_state() {
        digest::tell();
    }
    match machine().step() {
        Decision::Run(t) => t,
        Decision::Ended => close_what_is_left(),
    }
}

#[cold]
#[inline(never)]
fn close_what_is_left() -> Tid {
    let Some(signal) = machine().begin_closing() else { end::finish() };
    for p in 0..world().procs.len {
        if world().procs[p].state == ProcState::LIVE {
            close(p, signal);
        }
    }
    let Decision::Run(next) = machine().step() else { end::finish() };
    if world().procs[local().pid].state != ProcState::LIVE {
        // The process that had the turn has been ended.
        word::wake(world().threads[next].pid);
        going_back::parks();
        die(0);
    }
    next
}

/// Sends process `p`, which is left over, the signal that was asked for.
fn close(p: Pid, signal: i32) {
    let uid = raw!(libc::SYS_getuid) as u32;
    match machine().close(local().cur, uid, p, signal) {
        Sent::Done | Sent::Refused | Sent::LosesData => {}
        Sent::NoRoom => end::no_room_for_signal(),
        Sent::Stops => end::unsupported(&[b"a signal that stops what is left over"]),
        Sent::Kills if p == local().pid => {}
        Sent::Kills => {
            machine().segments_left(p);
            end::kill(p);
        }
    }
}

/// Passes the turn to `to` and returns when this fiber has it again.
#[inline]
fn hand_to(to: Tid) {
    // A fiber of this process that is running, or waits to.
    let target = world().threads[to].pid;
    if target == local().pid {
        fibers::switch(to);
    } else {
        hand_over_to(target);
    }
}

#[inline(never)]
fn hand_over_to(target: Pid) {
    word::wake(target);
    wait();
    fibers::switch(world().current);
}

/// Waits until this process is given the turn.
pub fn wait() {
    match arena().control.mode {
        Mode::DIRECT => direct::wait(),
        _ => word::wait(local().pid, None),
    }
}

/// The new thread `t` of this process, whose registers are laid out, runs up to its first visible operation.
pub fn start(t: Tid) {
    watched::is_reached();
    local().made_keys = ([None; 2], NONE, 0);
    watched::creates(t);
    model().give_turn(t);
    fibers::switch(t);
}

/// The running fiber's thread is over (and recorded as such): somebody else goes on. `back`: its creator, to whom it was
/// still to give the turn back. Returns only if the turn went to another process; the caller then ends this process or
/// waits.
pub fn leave(back: Option<Tid>) {
    watched::ends();
    let next = match back {
        Some(creator) => {
            model().give_turn(creator);
            creator
        }
        None => decide(),
    };
    let target = world().threads[next].pid;
    if target == local().pid {
        fibers::switch(next);
        end::bug(b"a finished thread was resumed");
    }
    word::wake(target);
}

/// The same of a thread of a process that has others: another of its fibers runs when the turn comes back.
pub fn leave_to_others(back: Option<Tid>) -> ! {
    leave(back);
    wait();
    fibers::switch(world().current);
    end::bug(b"a finished thread was resumed")
}
