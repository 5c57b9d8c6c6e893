//! The gate: where a thread reaches a visible operation, publishes it and, having the turn, passes it on.
//!
//! NOTE [Turn] Exactly one thread of the world has the turn. Within a process it is passed by a switch of fibers,
//! between processes by the futex word `Process::turn`. A process whose fiber passed the turn away waits there; who
//! gets it back is `World::current`, which may be another fiber of the process than the one that waits.
//!
//! NOTE [Start] A new thread or process runs up to its first visible operation before its creator goes on; then (or
//! at its end) the turn goes back to the creator without a choice.

use vsrun_model::arena::Mode;
use vsrun_model::object::NONE;
use vsrun_model::{Applied, Decision, End, Kind, Op, ThreadState, Tid};

use crate::local::{arena, local, me, world, Phase};
use crate::{end, fiber, raw, signal, sync};

const FUTEX_WAIT: i32 = 0;
const FUTEX_WAKE: i32 = 1;

/// A mutex or rwlock whose memory mirrors whether it is held, or a futex with priority inheritance; see `sync`.
pub type Mirror = Option<(u64, u32)>;

/// Performs a visible operation; returns what it gives.
pub fn pass(op: Op) -> i64 {
    pass_mirrored(op, None)
}

/// The same; `then` is called with the result as a part of the operation, before a signal can come in between.
pub fn pass_then(op: Op, mut then: impl FnMut(i64)) -> i64 {
    pass_with(op, None, &mut then)
}

/// The same, keeping the word that mirrors the object's state up to date.
pub fn pass_mirrored(op: Op, mirror: Mirror) -> i64 {
    pass_with(op, mirror, &mut |_| {})
}

fn pass_with(op: Op, mirror: Mirror, then: &mut dyn FnMut(i64)) -> i64 {
    sync::settle_onces();
    signal::settle_handlers();
    local().spin.site = 0;
    if let Some(result) = pass_at_once(&op, mirror) {
        return result;
    }
    let cur = local().cur;
    let starting = me().state == ThreadState::STARTING;
    world().publish(cur, op);
    if world().end != End::RUNNING {
        end::finish();
    }
    if local().borrowed {
        end::unsupported(&[
            b"a visible operation (",
            op.kind.name().as_bytes(),
            b") in the child of a vfork before it execs",
        ]);
    }
    let mut value = 0;
    if starting {
        give_back();
        value = world().value;
    } else if !decide_alone(cur) {
        value = decide();
    }
    loop {
        if mirror.is_some() || matches!(op.kind, Kind::FUTEX_WAIT | Kind::FUTEX_REQUEUE | Kind::FUTEX_WAKE_OP) {
            sync::before(&op);
        }
        if let (Some((addr, _)), Kind::FUTEX_LOCK_PI | Kind::FUTEX_UNLOCK_PI) = (mirror, op.kind) {
            world().threads[cur].out[0] = i64::from(crate::sys::load::<u32>(addr));
        }
        if matches!(op.kind, Kind::FD_CONNECT | Kind::FD_SEND) {
            crate::socket::look_again();
        }
        let parked = world().threads[cur].pending;
        let applied = world().perform(cur, value);
        if let Some((addr, object)) = mirror {
            sync::mirror(addr, object);
        }
        match applied {
            Applied::Done(result) => {
                if world().end != End::RUNNING {
                    end::finish();
                }
                then(result);
                crate::signal::deliver();
                return result;
            }
            Applied::Ended => end::finish(),
            Applied::Signalled(fails) => {
                if fails && parked.kind == Kind::FD_CONNECT {
                    crate::socket::refuse_interrupted_connect();
                }
                // The handler may send messages of its own.
                let staged = core::mem::replace(&mut world().threads[cur].staged, NONE);
                let over = signal::run_taken(&parked, fails);
                world().threads[cur].staged = staged;
                if over {
                    // What it was to send is not sent.
                    if matches!(parked.kind, Kind::MSG_SEND | Kind::MQ_SEND) {
                        world().unstage(cur, &mut []);
                    }
                    // Operations on descriptors give negative error numbers, others positive ones.
                    let error = libc::EINTR as i64;
                    let result = if parked.kind.row().channels.any() { -error } else { error };
                    then(result);
                    return result;
                }
                let anew = matches!(parked.kind, Kind::FUTEX_SLEEP | Kind::FUTEX_PI_WAIT);
                world().resume(cur, if anew { op } else { parked });
                if world().end != End::RUNNING {
                    end::finish();
                }
                value = if decide_alone(cur) { 0 } else { decide() };
            }
            Applied::Parked => {
                if world().end != End::RUNNING {
                    end::finish();
                }
                if !decide_alone(cur) {
                    value = decide();
                }
            }
        }
    }
}

/// An operation on an object of the thread's own is no place to switch; see `vsrun_model::sharing`. `None`: it is one.
fn pass_at_once(op: &Op, mirror: Mirror) -> Option<i64> {
    if local().borrowed {
        return None;
    }
    let applied = arena().pass(local().cur, op)?;
    if let Some((addr, object)) = mirror {
        sync::mirror(addr, object);
    }
    match applied {
        Applied::Done(result) if world().end == End::RUNNING => {
            // One that has just been created takes signals once it has been scheduled.
            if me().state == ThreadState::RUNNING {
                crate::signal::deliver();
            }
            Some(result)
        }
        _ => end::finish(),
    }
}

/// While the world has had one thread only, operations are initialization: executed, not counted. Returns false if
/// the scheduler has to decide: there are others, or it is a toss, or the operation blocks for good.
fn decide_alone(cur: Tid) -> bool {
    if world().concurrent {
        return false;
    }
    let op = world().threads[cur].pending;
    if world().timers.len > 0 || world().due(cur) != 0 {
        return false;
    }
    if op.kind == Kind::TOSS {
        return local().phase == Phase::BeforeRoot;
    }
    while world().choices(cur) == 0 {
        let Some(deadline) = world().deadline_of(cur) else { break };
        world().jump_to(deadline);
    }
    world().now += vsrun_model::world::TICK;
    world().choices(cur) > 0
}

/// Lets the scheduler decide who goes next and returns once this fiber has the turn, with the alternative chosen.
fn decide() -> u32 {
    let next = match crate::closing::step() {
        Decision::Run(t) => t,
        Decision::Ended => end::finish(),
    };
    let a = arena();
    if a.control.mode == Mode::DIRECT && a.taken == a.plan.prefix_len as u64 {
        crate::direct::last_step(next);
    }
    hand_to(next);
    world().value
}

/// First visible operation of a new thread: back to its creator; returns when the scheduler picks this fiber.
fn give_back() {
    let creator = me().creator;
    world().current = creator;
    hand_to(creator);
}

/// Passes the turn to `to` and returns when this fiber has it again.
pub fn hand_to(to: Tid) {
    let target = world().threads[to].pid;
    if target == local().pid {
        fiber::switch(to);
        return;
    }
    wake_process(target);
    wait_turn();
    let current = world().current;
    fiber::switch(current);
}

/// Gives the turn to process `p`: its kernel thread goes on with fiber `World::current`.
pub fn wake_process(p: u32) {
    let word = &mut world().procs[p].turn as *mut u32;
    crate::sys::store(word as u64, 1u32);
    raw!(libc::SYS_futex, word, FUTEX_WAKE, 1);
}

/// Waits until this process is given the turn.
pub fn wait_turn() {
    const LOOK: [i64; 2] = [0, 200_000_000];
    let direct = arena().control.mode == Mode::DIRECT;
    let limit = if direct { LOOK.as_ptr() as u64 } else { 0 };
    let word = &mut world().procs[local().pid].turn as *mut u32 as u64;
    while crate::sys::load::<u32>(word) == 0 {
        raw!(libc::SYS_futex, word, FUTEX_WAIT, 0, limit);
        if direct && crate::sys::load::<u32>(word) == 0 {
            crate::direct::check_holder();
        }
    }
    crate::sys::store(word, 0u32);
    if direct && world().end != End::RUNNING {
        crate::direct::show();
    }
}

/// The running fiber's thread is over (and recorded as such): somebody else goes on. Returns only if the turn went
/// to another process; the caller then ends this process or waits.
pub fn leave(starting: bool, creator: Tid) {
    let next = if starting {
        world().current = creator;
        creator
    } else {
        match crate::closing::step() {
            Decision::Run(t) => t,
            Decision::Ended => end::finish(),
        }
    };
    let target = world().threads[next].pid;
    if target == local().pid {
        fiber::switch(next);
        end::bug(b"a finished thread was resumed");
    }
    wake_process(target);
}
