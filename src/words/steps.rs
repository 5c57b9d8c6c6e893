//! The transitions of a trace in words: with the results of tosses and who is woken by whom.

use std::collections::BTreeMap;

use vsrun_model::arena::Step;
use vsrun_model::kind::{Outcome, Role};
use vsrun_model::lock::{CLOSE, UNLOCK};
use vsrun_model::{signal, Kind, ObjId, Op, Tid};

use super::ops::op_text;
use crate::finding::{words, StepView, Thing, Words};

/// Which alternative was taken, where there were several and the operation's text does not say it.
pub fn note(kind: Kind, value: u32, alternatives: u32) -> Option<String> {
    let said = alternatives > 1 && !matches!(kind.row().shown.outcome, Outcome::Value);
    said.then(|| format!("alternative {} of {alternatives}", value + 1))
}

/// What tells alternative `value` of an operation from the others, where it could go on in so many ways. `None`: there is one alone.
pub fn way(op: &Op, value: u32, alternatives: u32) -> Option<Words> {
    if alternatives > 1 && matches!(op.kind.row().shown.outcome, Outcome::Value) {
        return Some(words!["= ", value]);
    }
    signalled(op.signals, value, alternatives).or_else(|| note(op.kind, value, alternatives).map(Words::from))
}

/// The signal that was delivered in the place of the operation, before it or so that it fails.
fn signalled(ways: u16, value: u32, choices: u32) -> Option<Words> {
    let first = choices.checked_sub((ways & signal::ALTERNATIVES).count_ones())?;
    if first == 1 && value == 0 && choices > 1 {
        let stops = ways & (signal::STOP_BEFORE | signal::STOP_INTERRUPTS) == ways & signal::ALTERNATIVES;
        return Some(if stops {
            "before the stop".into()
        } else {
            words![Thing::Signal((ways & signal::NUMBER).into()), " not yet"]
        });
    }
    let name = Thing::Signal((ways & signal::NUMBER).into());
    let ends = ways & signal::DIES != 0;
    let texts = [
        (signal::BEFORE, words![name.clone(), if ends { " ends the process" } else { " comes first" }]),
        (signal::INTERRUPTS, words!["interrupted by ", name]),
        (signal::STOP_BEFORE, "begun after the stop".into()),
        (signal::STOP_INTERRUPTS, "interrupted by the stop".into()),
    ];
    let mut present = texts.into_iter().filter(|(bit, _)| ways & bit != 0);
    present.nth(value.checked_sub(first)? as usize).map(|(_, text)| text)
}

/// The signal that is handled where a call returns.
fn handled(step: &Step) -> Option<Words> {
    let ways = step.act.op.signals;
    let due = step.act.op.kind == Kind::RETURN && ways & signal::BEFORE == 0 && ways & signal::NUMBER != 0;
    due.then(|| words![Thing::Signal((ways & signal::NUMBER).into()), " is handled as the call returns"])
}

/// The transitions of a trace, from the first.
pub fn step_views(steps: &[Step]) -> Vec<StepView> {
    let mut waiters = Waiters::default();
    let mut view = |step: &Step| {
        let woken = waiters.advance(step);
        let (op, value, alternatives) = (step.act.op, step.value, step.choices);
        StepView {
            thread: step.act.uid,
            op,
            value,
            alternatives,
            text: handled(step).unwrap_or_else(|| words![op_text(&op), outcome(step, woken.as_deref())]),
            note: signalled(op.signals, value, alternatives)
                .or_else(|| note(op.kind, value, alternatives).map(Words::from)),
            woken,
            matters: true,
            replaced: None,
            at: None,
        }
    };
    steps.iter().map(&mut view).collect()
}

/// Marks the steps that take locks of files which `rename` has put others in the place of, as far as the steps tell: somebody had used the lock
/// before the renaming. `name`: what an object is called.
pub fn mark_replaced(views: &mut [StepView], name: &dyn Fn(ObjId) -> Option<String>) {
    let mut first = BTreeMap::<ObjId, usize>::new();
    let mut renamed = BTreeMap::<String, usize>::new();
    for (n, view) in views.iter_mut().enumerate() {
        let op = view.op;
        if op.kind == Kind::PATH_CHANGE && op.call().starts_with("rename") {
            renamed.extend(name(op.mask).map(|name| (name, n)));
            continue;
        }
        let Role::FileLock(_) = op.kind.row().role else { continue };
        let known = *first.entry(op.obj).or_insert(n);
        if op.mask & (UNLOCK | CLOSE) != 0 {
            continue;
        }
        view.replaced = name(op.obj).and_then(|name| renamed.get(&name).copied()).filter(|&by| known < by);
        if let Some(by) = view.replaced {
            let said = words!["the old file: another one was put in its place at step ", by + 1];
            view.note = Some(view.note.take().map_or(said.clone(), |note| words![note, "; ", said]));
        }
    }
}

fn outcome(step: &Step, woken: Option<&[Tid]>) -> Words {
    match (&step.act.op.kind.row().shown.outcome, woken) {
        (Outcome::Value, _) => words![" = ", step.value],
        (Outcome::Returns, _) => " returns".into(),
        (Outcome::GetsIt, _) => " gets it".into(),
        (Outcome::Wakes(_), Some([])) => " wakes nobody".into(),
        (Outcome::Wakes(_), Some(woken)) => {
            words![" wakes ", Words::list(woken.iter().map(|&t| Thing::Thread(t)), ", ", usize::MAX)]
        }
        (Outcome::Wakes(_), None) | (Outcome::Queues | Outcome::Nothing, _) => Words::default(),
    }
}

/// Who waits on which condition variable or futex, followed along a trace. Traces do not record it; where the number
/// recorded with a wake-up differs (requeued, timed out, bit sets), nothing is said.
#[derive(Default)]
struct Waiters(BTreeMap<ObjId, Vec<Tid>>);

impl Waiters {
    /// Takes account of a step; for one that wakes, the threads woken if they are known.
    fn advance(&mut self, step: &Step) -> Option<Vec<Tid>> {
        let (t, op) = (step.act.tid, &step.act.op);
        for queue in self.0.values_mut() {
            queue.retain(|waiter| *waiter != t); // who moves does not wait
        }
        let queue = self.0.entry(op.obj).or_default();
        match &op.kind.row().shown.outcome {
            Outcome::Queues => {
                queue.insert(queue.partition_point(|waiter| *waiter < t), t);
                None
            }
            Outcome::Wakes(most) => Waiters::wake(queue, step, most(op)),
            Outcome::Nothing | Outcome::Value | Outcome::Returns | Outcome::GetsIt => None,
        }
    }

    /// Wakes `n` from the chosen one on, in thread order, wrapping: what the model does.
    fn wake(queue: &mut Vec<Tid>, step: &Step, n: usize) -> Option<Vec<Tid>> {
        let known = queue.len() as i64 == step.act.state;
        let n = n.min(queue.len());
        let mut first = step.value as usize;
        let mut woken = Vec::new();
        for _ in 0..n {
            first %= queue.len();
            woken.push(queue.remove(first));
        }
        known.then_some(woken)
    }
}

#[cfg(test)]
mod tests {
    use vsrun_model::{Act, Uid};

    use super::*;

    #[test]
    fn a_lock_of_a_file_that_was_replaced() {
        let step = |t: Tid, kind: Kind, object: ObjId, (mask, deadline): (u32, u64)| {
            let mut op = Op::on(kind, object);
            (op.mask, op.deadline) = (mask, deadline);
            Step { act: Act { uid: Uid::MAIN.child(t), tid: t, op, ..Act::NOTHING }, choices: 1, ..Step::default() }
        };
        let lock = |t, object| step(t, Kind::FLOCK, object, (1, 0));
        // What it is called by is in its mask, the system call in its deadline.
        let rename = step(1, Kind::PATH_CHANGE, 5, (9, libc::SYS_rename as u64));
        let unlock = step(1, Kind::FLOCK, 3, (UNLOCK, 0));
        let marked = |steps: &[Step]| {
            let mut views = step_views(steps);
            mark_replaced(&mut views, &|id| Some(if id == 7 { "/d/other" } else { "/d/file" }.to_string()));
            views.iter().map(|view| view.replaced).collect::<Vec<_>>()
        };
        assert_eq!(marked(&[lock(1, 3), rename, unlock, lock(2, 3)]), [None, None, None, Some(1)]);
        // Another file, one that came up behind the renaming, one that is locked before it.
        assert_eq!(marked(&[lock(1, 7), rename, lock(2, 7)]), [None; 3]);
        assert_eq!(marked(&[rename, lock(2, 3), lock(1, 3)]), [None; 3]);
        assert_eq!(marked(&[lock(1, 3), lock(2, 3), rename]), [None; 3]);
    }
}
