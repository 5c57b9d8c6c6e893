//! The transitions of a trace in words: with the results of tosses and who is woken by whom.

use std::collections::BTreeMap;

use vsrun_model::arena::Step;
use vsrun_model::{signal, Kind, ObjId, Tid};

use super::ops::op_text;
use crate::finding::{words, StepView, Word, Words};

/// Which alternative was taken, where there were several and the operation's text does not say it.
pub fn note(kind: Kind, value: u32, alternatives: u32) -> Option<String> {
    let said = alternatives > 1 && kind != Kind::TOSS;
    said.then(|| format!("alternative {} of {alternatives}", value + 1))
}

/// The signal that was delivered in the place of the operation, before it or so that it fails.
fn signalled(step: &Step) -> Option<Words> {
    let ways = step.act.op.signals;
    let first = step.choices.checked_sub((ways & signal::ALTERNATIVES).count_ones())?;
    let name = Word::Signal((ways & signal::NUMBER).into());
    let texts = [
        (signal::BEFORE, words![name.clone(), " comes first"]),
        (signal::INTERRUPTS, words!["interrupted by ", name]),
        (signal::STOP_BEFORE, "begun after the stop".into()),
        (signal::STOP_INTERRUPTS, "interrupted by the stop".into()),
    ];
    let mut present = texts.into_iter().filter(|(bit, _)| ways & bit != 0);
    present.nth(step.value.checked_sub(first)? as usize).map(|(_, text)| text)
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
            text: words![op_text(&op), outcome(step, woken.as_deref())],
            note: signalled(step).or_else(|| note(op.kind, value, alternatives).map(Words::from)),
            woken,
        }
    };
    steps.iter().map(&mut view).collect()
}

fn outcome(step: &Step, woken: Option<&[Tid]>) -> Words {
    match (step.act.op.kind, woken) {
        (Kind::TOSS, _) => words![" = ", step.value],
        (Kind::COND_WAKE | Kind::BARRIER_WAKE | Kind::FUTEX_SLEEP | Kind::FUTEX_PI_WAIT, _) => " returns".into(),
        (Kind::RW_WRWAIT, _) => " gets it".into(),
        (_, Some([])) => " wakes nobody".into(),
        (_, Some(woken)) => words![" wakes ", Words::join(woken.iter().map(|&t| Word::Thread(t).into()), ", ")],
        _ => Words::default(),
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
        match op.kind {
            Kind::COND_WAIT | Kind::FUTEX_WAIT => {
                let at = queue.partition_point(|waiter| *waiter < t);
                queue.insert(at, t);
                None
            }
            Kind::COND_SIGNAL => Waiters::wake(queue, step, 1),
            Kind::COND_BROADCAST => Waiters::wake(queue, step, usize::MAX),
            Kind::FUTEX_WAKE => Waiters::wake(queue, step, (op.arg & 0xffff_ffff) as usize),
            _ => None,
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
