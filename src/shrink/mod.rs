//! A schedule that shows a bug, shortened: fewest switches between threads, then fewest steps, then fewest tosses that are not 0.
//!
//! First what is not in the causal past of the end is left out, and what is left is put into the order of its happens-before that has
//! the fewest switches ([`Order`]): that is an equivalent execution, which one run confirms. Then come real changes: switches are left
//! out, steps of one thread are moved to others of it, pieces are dropped (delta debugging; Zeller, Hildebrandt, IEEE TSE 2002), tosses
//! become 0. The moves are those of Jalbert and Sen (A Trace Simplification Technique for Effective Debugging of Concurrent Programs,
//! FSE 2010). A candidate says which threads move and in which alternative, not at which operations, and where it ends the thread goes
//! on that moved last. It counts only if the execution came to the same bug, by fewer switches, or as many and fewer steps, and so on.
//!
//! The executions come from a function, so that this is tested with no process at all. Nothing here draws lots: what is tried depends
//! on the traces alone.

mod order;
mod pieces;

pub use order::Order;

use std::collections::BTreeSet;

use vsrun_model::arena::Choice;
use vsrun_model::Kind;

use crate::base::hash::fnv1a;
use crate::finding::{Length, Shortened};
use crate::trace::Trace;
use pieces::Pieces;

/// Executions for one bug.
const MOST: u64 = 1000;
/// So many switches, spread over all, are tried to be the last one.
const SPREAD: usize = 16;
/// Longer traces are not put into another order.
const LONGEST: usize = 5000;

/// What a candidate came to.
pub enum Tried {
    /// The same bug, by this trace. All its states are recorded.
    Same(Box<Trace>),
    /// Something else, or it could not be followed.
    Otherwise,
    /// There is no time left.
    Over,
}

/// How long a trace is.
pub fn length(trace: &Trace) -> Length {
    let moved = trace.steps.iter().map(|step| step.act.uid);
    Length {
        switches: switches(moved),
        steps: trace.steps.len() as u64,
        tosses: trace.steps.iter().filter(|step| step.value != 0).count() as u64,
    }
}

fn switches<T: PartialEq>(moved: impl Iterator<Item = T> + Clone) -> u64 {
    moved.clone().zip(moved.skip(1)).filter(|(one, next)| one != next).count() as u64
}

/// The shortest trace that was found, and how far it was shortened.
pub struct Short {
    /// The trace.
    pub trace: Trace,
    /// How far.
    pub how: Shortened,
}

/// Shortens a trace whose states are all recorded. `run` gives what came of choices, where the thread that moved last goes on at their
/// end, and the execution is cut after as many steps as `trace` has.
pub fn shorten(trace: Trace, run: &mut dyn FnMut(&[Choice]) -> Tried) -> Short {
    let from = length(&trace);
    let mut shrinker = Shrinker {
        best: trace,
        length: from,
        most: from.steps,
        run,
        tried: BTreeSet::new(),
        executions: 0,
        over: false,
    };
    shrinker.remember(&shrinker.choices());
    loop {
        let before = shrinker.length;
        shrinker.reorder();
        shrinker.let_go_on();
        shrinker.drop_pieces();
        shrinker.move_together();
        shrinker.drop_steps();
        shrinker.toss_nothing();
        if shrinker.over || shrinker.length == before {
            break;
        }
    }
    let how = Shortened { from, to: shrinker.length, executions: shrinker.executions };
    Short { trace: shrinker.best, how }
}

struct Shrinker<'a> {
    /// The shortest so far.
    best: Trace,
    length: Length,
    /// Steps of the first: none has more.
    most: u64,
    run: &'a mut dyn FnMut(&[Choice]) -> Tried,
    /// Hashes of what was run.
    tried: BTreeSet<u64>,
    executions: u64,
    over: bool,
}

impl Shrinker<'_> {
    /// The choices of the best trace: who moves, in which alternative.
    fn choices(&self) -> Vec<Choice> {
        self.best.steps.iter().map(|step| Choice::new(step.act.uid, step.value, Kind::NONE)).collect()
    }

    fn pieces(&self) -> Pieces {
        Pieces::of(self.choices())
    }

    /// True if these have not been run before.
    fn remember(&mut self, choices: &[Choice]) -> bool {
        self.tried
            .insert(fnv1a(choices.iter().flat_map(|c| (c.uid.0.rotate_left(32) ^ u64::from(c.value)).to_le_bytes())))
    }

    /// Runs choices. True: they came to the same bug, and are the best now.
    fn offer(&mut self, choices: &[Choice]) -> bool {
        // As many switches are made at least, if all of them are followed.
        let too_many = switches(choices.iter().map(|c| c.uid)) > self.length.switches;
        if self.over || too_many || !self.remember(choices) {
            return false;
        }
        if self.executions >= MOST {
            self.over = true;
            return false;
        }
        self.executions += 1;
        match (self.run)(choices) {
            Tried::Same(trace) => {
                let length = length(&trace);
                let better = length < self.length && length.steps <= self.most;
                if better {
                    (self.best, self.length) = (*trace, length);
                }
                better
            }
            Tried::Otherwise => false,
            Tried::Over => {
                self.over = true;
                false
            }
        }
    }

    /// What the end depends on, in the order with the fewest switches.
    fn reorder(&mut self) {
        if self.best.steps.len() > LONGEST {
            return;
        }
        // What commutes in the states recorded may not where it comes elsewhere; then what commutes in every state.
        for conditional in [true, false] {
            let Some(order) = Order::of(&self.best, conditional) else { return };
            let choices = self.choices();
            let past = order.past(&self.best);
            let all = vec![true; choices.len()];
            let pick = |steps: Vec<usize>| steps.into_iter().map(|n| choices[n]).collect::<Vec<_>>();
            let kept = (0..choices.len()).filter(|&n| past[n]).collect();
            let candidates = [pick(order.packed(&past)), pick(order.packed(&all)), pick(kept)];
            if candidates.iter().any(|candidate| self.offer(candidate)) {
                return;
            }
        }
    }

    /// The thread that moved last goes on, from some switch on.
    fn let_go_on(&mut self) {
        let (pieces, choices) = (self.pieces(), self.choices());
        for n in (0..pieces.len()).step_by(pieces.len().div_ceil(SPREAD).max(1)) {
            let start = pieces.start(n);
            // Without the switch, and with it and none behind.
            if self.offer(&choices[..start]) || self.offer(&choices[..start + 1]) {
                return;
            }
        }
    }

    /// A piece comes right behind the one before of its thread, or that one right before it.
    fn move_together(&mut self) {
        let mut n = 0;
        while n < self.pieces().len() && !self.over {
            let pieces = self.pieces();
            let Some(next) = pieces.next_of_thread(n) else {
                n += 1;
                continue;
            };
            if !self.offer(&pieces.moved(next, n + 1)) && !self.offer(&pieces.moved(n, next - 1)) {
                n += 1;
            }
        }
    }

    /// All of a thread, then runs of pieces, half of all at first, then fewer, are left out.
    fn drop_pieces(&mut self) {
        for thread in self.pieces().threads() {
            let without = self.choices().into_iter().filter(|c| c.uid != thread).collect::<Vec<_>>();
            self.offer(&without);
        }
        let mut size = self.pieces().len() / 2;
        while size > 0 {
            // From the end: what comes before is not changed by it.
            let mut end = self.pieces().len();
            while end >= size && !self.over {
                let without = self.pieces().without(end - size..end);
                self.offer(&without);
                end = (end - size).min(self.pieces().len());
            }
            size /= 2;
        }
    }

    /// The last steps of a piece are left out: half of them, then fewer.
    fn drop_steps(&mut self) {
        let mut n = self.pieces().len();
        while n > 0 && !self.over {
            n -= 1;
            let mut size = self.pieces().steps(n).div_ceil(2);
            while size > 0 && !self.over {
                let pieces = self.pieces();
                if n >= pieces.len() {
                    break;
                }
                if pieces.steps(n) < size || !self.offer(&pieces.shortened(n, size)) {
                    size /= 2;
                }
            }
        }
    }

    /// Choices other than the first become the first.
    fn toss_nothing(&mut self) {
        let mut n = 0;
        while n < self.best.steps.len() && !self.over {
            let mut choices = self.choices();
            if choices[n].value != 0 {
                choices[n].value = 0;
                let _ = self.offer(&choices) || self.offer(&choices[..=n]);
            }
            n += 1;
        }
    }
}
