//! Every enabled alternative in every state: depth-first search without any reduction, the yardstick for the others.

use vsrun_model::arena::{Choice, Policy};
use vsrun_model::{Kind, Uid};

use super::{is_partial, Search};
use crate::schedule::Schedule;
use crate::trace::Trace;

/// The alternatives of one enabled thread.
#[derive(Clone, Copy, Debug)]
struct Branch {
    uid: Uid,
    kind: Kind,
    choices: u32,
}

/// One state on the path; its branches lie in [`Naive::branches`].
#[derive(Clone, Copy, Debug)]
struct Node {
    /// First of its branches that have not been tried.
    first: usize,
    /// One past the last.
    end: usize,
    /// Next alternative of branch `first`.
    value: u32,
    /// The alternative that the execution took before any other, not to be taken again.
    taken: (Uid, u32),
}

/// Depth-first search over every enabled (thread, alternative).
#[derive(Debug, Default)]
pub struct Naive {
    /// The choices of the present path; one longer than what is decided once an execution is over.
    path: Vec<Choice>,
    /// invariant: `nodes.len() == path.len()`.
    nodes: Vec<Node>,
    /// Branches of all nodes, a stack of its own.
    branches: Vec<Branch>,
    started: bool,
    over: bool,
    partial: bool,
    transitions: u64,
}

impl Naive {
    /// A search that has not begun.
    pub fn new() -> Naive {
        Naive::default()
    }

    /// Turns the path into the next one that has not been tried. False: there is none.
    fn advance(&mut self) -> bool {
        while let Some(node) = self.nodes.last_mut() {
            while node.first < node.end {
                let branch = self.branches[node.first];
                if node.value >= branch.choices {
                    node.first += 1;
                    node.value = 0;
                    continue;
                }
                let value = node.value;
                node.value += 1;
                if (branch.uid, value) != node.taken {
                    let last = self.path.len() - 1;
                    self.path[last] = Choice::new(branch.uid, value, branch.kind);
                    return true;
                }
            }
            self.nodes.pop();
            self.path.pop();
            self.branches.truncate(self.nodes.last().map_or(0, |n| n.end));
        }
        false
    }
}

impl Search for Naive {
    fn next(&mut self) -> Option<Schedule> {
        if self.over || self.started && !self.advance() {
            self.over = true;
            return None;
        }
        self.started = true;
        let prefix = self.path.clone();
        Some(Schedule { prefix, policy: Policy::STAY, record: true, ..Schedule::default() })
    }

    fn done(&mut self, trace: &Trace) {
        self.partial |= is_partial(trace);
        let known = self.path.len();
        self.transitions +=
            (trace.steps.len() as u64 + trace.unrecorded).saturating_sub(known.saturating_sub(1) as u64);
        for (step, seen) in trace.steps.iter().zip(&trace.seen).skip(known) {
            let first = self.branches.len();
            let enabled = seen.iter().filter(|s| s.choices > 0);
            self.branches.extend(enabled.map(|s| Branch { uid: s.act.uid, kind: s.act.op.kind, choices: s.choices }));
            let taken = (step.act.uid, step.value);
            self.nodes.push(Node { first, end: self.branches.len(), value: 0, taken });
            self.path.push(Choice::new(step.act.uid, step.value, step.act.op.kind));
        }
    }

    fn exhaustive(&self) -> bool {
        self.over && !self.partial
    }

    fn transitions(&self) -> u64 {
        self.transitions
    }

    fn sleep_blocked(&self) -> u64 {
        0
    }
}
