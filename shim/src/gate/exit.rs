//! The end of threads and processes.

use vsrun_model::arena::Mode;
use vsrun_model::{Key, Kind, ObjKind, Op, Pid, ThreadState, Tid};

use super::local::{arena, local, machine, me, model, space_of, world};
use super::{back, direct, end, mirror, pages, turn, view, watched};
use crate::sys::{die, store};

/// The creator of the running thread, if that is still to give the turn back to it.
fn owes_turn() -> Option<Tid> {
    (me().state == ThreadState::STARTING || local().borrowed).then(|| me().creator)
}

/// The exit system call: this thread ends.
pub fn exit_thread(status: i32) -> ! {
    mirror::settle_onces();
    let cur = local().cur;
    let last = |cur| world().procs[local().pid].live_threads <= 1 && world().threads[cur].alive();
    // The kernel leaves its robust mutexes before those are told that wait for its end.
    if !last(cur) && world().holds_robust(cur) {
        turn::pass(Op::new(Kind::THREAD_EXIT));
    }
    if !last(cur) {
        watched::stack_ends();
    }
    end_visibly(cur);
    machine().hold_streams(cur);
    if last(cur) {
        end_process((status & 0xff) << 8, false);
    }
    let back = (me().state == ThreadState::STARTING).then(|| me().creator);
    let word = me().fiber.clear_tid;
    if word != 0 {
        store(word, 0i32);
        wake_all(word);
    }
    model().thread_exit(cur);
    turn::leave_to_others(back)
}

/// The end of the running fiber `cur` is a place to switch if somebody can tell when it comes.
fn end_visibly(cur: Tid) {
    if !local().borrowed && machine().is_watched(cur) {
        turn::pass(Op::new(Kind::END));
    }
}

/// Wakes whoever waits with a futex of their own on a thread's id word, as the kernel does.
fn wake_all(addr: u64) {
    let (space, at) = space_of(addr);
    if let Some(id) = world().find(Key::new(space, ObjKind::FUTEX, at)) {
        model().futex_wake_all(id);
    }
}

/// The process ends with wait status `status`.
pub fn exit_group(status: i32) -> ! {
    end_process(status, true)
}

/// The same; `called`: by a call that ends other threads too, not as the end of the last thread.
fn end_process(status: i32, called: bool) -> ! {
    let (p, cur) = (local().pid, local().cur);
    // (Whether another one that nobody has waited for is over already depends on the order.)
    if called && !local().borrowed && !world().is_alone(cur) {
        // Another thread may end the process, too, or replace its program: the first one decides.
        turn::pass(Op::new(Kind::PLACE).arg(libc::SYS_exit_group));
    } else if called {
        end_visibly(cur);
    }
    if called && !local().borrowed && view::loses_stores(p) {
        end::loses_stores();
    }
    let status = model().decide_end(p, status);
    if called && !local().borrowed {
        model().ends_all(p, cur);
    }
    if !local().borrowed {
        model().exit_is_visible(p, called);
        // Where other threads are left, descriptors are closed when they end, all at once. What the child of a vfork has is
        // closed with it.
        let alone = world().procs[p].live_threads <= 1;
        let mut given_back = machine().is_sent_signals(p);
        while let Some(op) = world().exit_part(cur, machine().is_watched(cur)).filter(|_| alone) {
            turn::pass(op);
            given_back = true;
        }
        if let Some(op) = world().close_all_op(p).filter(|_| alone) {
            turn::pass(op);
            given_back = true;
        }
        if let Some(op) = world().locks_part(p).filter(|_| alone) {
            turn::pass(op);
            (local().hooks.close_locked)();
            given_back = true;
        }
        if given_back {
            // All that is seen before the parent is told and children are given away.
            end_visibly(cur);
        }
        if model().exit_is_visible(p, called) {
            turn::pass(Op::new(Kind::EXIT).arg(status as i64));
        }
    }
    refuse_unmodelled(p);
    let creator = owes_turn();
    (local().hooks.close_locked)();
    if !local().borrowed {
        machine().segments_left(p);
    }
    model().process_exit(p, status);
    if machine().note_exit(p, cur, status) {
        end::finish();
    }
    model().child_over(p);
    turn::leave(creator);
    if arena().control.mode == Mode::DIRECT && !local().borrowed {
        direct::park();
    }
    back::parks();
    pages::tell();
    die(status >> 8 & 0xff)
}

/// The end of process `p` is refused where it does what is not modelled.
fn refuse_unmodelled(p: Pid) {
    if let Some(what) = world().end_does_more(p) {
        end::unsupported(&[what.as_bytes()]);
    }
}

/// Signal `signal`, sent by the running fiber, is about to kill process `p`: a crash ends the execution.
pub fn killed_by(p: Pid, signal: i32) {
    refuse_unmodelled(p);
    if machine().note_kill(p, signal, local().cur) {
        end::finish();
    }
}
