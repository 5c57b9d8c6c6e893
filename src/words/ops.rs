//! Visible operations as the calls that programs make.

use vsrun_model::kind::Call;
use vsrun_model::signal::Handling;
use vsrun_model::{Kind, Op, Thread, Tid, World};

use crate::finding::{words, Thing, Words};

/// A visible operation as a call: `pthread_mutex_lock(lock_a)`.
pub fn op_text(op: &Op) -> Words {
    call(op, None)
}

/// The operation that `t` is parked at.
pub fn pending_text(world: &World, t: Tid) -> Words {
    let thread = &world.threads[t];
    words![call(&thread.pending, Some(thread)), in_handler(thread)]
}

fn call(op: &Op, thread: Option<&Thread>) -> Words {
    let shown = &op.kind.row().shown;
    let mut arguments = Words::default();
    (shown.arguments)(op, thread, &mut arguments);
    match shown.call {
        Call::Words(words) if arguments.is_empty() => words.into(),
        Call::Words(words) => words![words, " ", arguments],
        _ => words![op.call(), "(", arguments, ")"],
    }
}

/// The signal handlers that a thread is in, the innermost first, and what they interrupted.
pub fn in_handler(thread: &Thread) -> Words {
    let noted = &thread.handlers[..usize::from(thread.n_handlers).min(thread.handlers.len())];
    let one = |h: &Handling| match h.op.kind {
        Kind::NONE => words![", in the handler of ", Thing::Signal(h.signal)],
        _ => words![", in the handler of ", Thing::Signal(h.signal), ", which interrupted ", op_text(&h.op)],
    };
    Words::list(noted.iter().rev().map(one), "", usize::MAX)
}

#[cfg(test)]
#[path = "ops_tests.rs"]
mod tests;
