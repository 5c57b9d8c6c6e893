//! The tree of executions of a partial-order search: what has been run, what runs, and wakeup trees of what is to be run
//! (Abdulla, Aronis, Jonsson, Sagonas, Source Sets: A Foundation for Optimal Dynamic Partial Order Reduction, JACM 2017).
//!
//! A node is a state, reached by the step from its parent. Its children have an order, in which they are added: each
//! child's sleep set is made of what sleeps in the parent and of the children before it, whether these have been explored
//! yet or not. Children that are complete are forgotten but for their steps, which go on sleeping.
//!
//! Where nothing sleeps, at the end of an inserted sequence and below, everything is explored. On the way there it is not:
//! what a sleeping step covers is left to the siblings before, and what these find then goes into sequences that begin
//! with steps on the way. So the order matters: a leaf is taken when the siblings before it, and before the nodes on the
//! way to it, are complete, and until all below it is complete no other leaf is. What has been started is one path. Several
//! executions at a time: see [`super::ahead`].

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vsrun_model::arena::Choice;
use vsrun_model::depend::{either, ends_otherwise};
use vsrun_model::{dependent_after, Act, Effects, NONE};

use super::clock::Clock;

/// A step: a thread's pending operation in one of its alternatives.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Step {
    /// The operation, by numbers that mean the same in every execution.
    pub act: Act,
    /// The alternative.
    pub value: u32,
    /// What it did beyond its operation when it was last performed.
    pub did: Effects,
}

impl Step {
    /// Number of the thread.
    pub fn thread(&self) -> u32 {
        self.act.tid
    }

    /// Whether `asleep`, as it was performed before this, is another step after it, or a dependent one.
    ///
    /// `piece`: it is asked by the search of a piece. The last thread of a process tells the parent of its end. Of two that end the last two threads, each
    /// was seen as the first only, so what was recorded does not show that their order matters; a whole search sees an execution with both.
    pub(super) fn wakes(&self, asleep: &Step, piece: bool) -> bool {
        let told = piece && self.act.parent != NONE && self.act.pid == asleep.act.pid;
        let is_last = || told && self.did.has(Effects::LEAVES_ONE) && asleep.did.has(Effects::ENDS);
        self.depends_on(asleep) || ends_otherwise(&self.act, self.did, &asleep.act, asleep.did) || is_last()
    }

    pub(super) fn depends_on(&self, other: &Step) -> bool {
        dependent_after(&self.act, self.did, &other.act, other.did, false)
    }

    /// The choice that makes it.
    pub fn choice(&self) -> Choice {
        Choice::new(self.act.uid, self.value, self.act.op.kind)
    }
}

/// The pending operation of a thread in a state.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Pending {
    /// The operation.
    pub act: Act,
    /// Its alternatives; 0: blocked.
    pub choices: u32,
    /// 1 + the index of the step that left the thread here: its own last one, or the one that created it; 0: none.
    pub origin: usize,
    /// The same of the last step that changed something in `act`, if one did since.
    pub since: usize,
    /// Index of the thread in the executions that pass here.
    pub raw: u32,
}

/// How far a node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Phase {
    /// To be explored.
    Waiting,
    /// An execution that passes here is under way, or has been run.
    Started,
}

/// A state. What follows from the shape of the tree is not saved with it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Node {
    #[serde(skip)]
    pub parent: usize,
    /// Steps from the root.
    #[serde(skip)]
    pub depth: usize,
    /// No other node of the tree has or had it.
    #[serde(skip)]
    pub(super) serial: u64,
    /// Place among its siblings.
    pub rank: u32,
    /// What leads here; the root has none.
    pub step: Option<Step>,
    /// The step as it was expected when it was inserted. It may do less: it ends its thread and is not the last of its process,
    /// or reaches fewer channels. Siblings were inserted because of what it was expected to do, so it does not cover them.
    pub(super) expected: Option<Step>,
    pub phase: Phase,
    /// What happened before the step, and itself. Known once visited.
    pub clock: Clock,
    /// An execution that passed here has been seen: `pending` and `sleep` are known.
    pub visited: bool,
    /// Shared with the copies of the path, see [`Tree::branch`].
    pub pending: Arc<[Pending]>,
    pub sleep: Vec<Step>,
    /// Children that are not complete, in order.
    #[serde(skip)]
    pub children: Vec<usize>,
    /// Children that are, with their places.
    pub complete: Vec<(u32, Step)>,
    #[serde(skip)]
    pub(super) next_rank: u32,
    /// It is not known whether the step is enabled.
    pub unsure: bool,
    /// An inserted sequence that has been started ends here or further up: all that is below will be explored.
    pub whole: bool,
    /// Races of the step that are to be looked at again, see [`super::reduction`].
    pub unsettled: Vec<Race>,
    /// Of a leaf that is unsure: sequences that were not inserted because this one covers them.
    pub covers: Vec<Covered>,
}

/// A sequence that was to be inserted and is covered by one that may turn out to be blocked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Covered {
    /// Depth of the state below which it was to be inserted: one on the way to the other's leaf.
    pub depth: usize,
    /// The sequence.
    pub v: Vec<Step>,
    /// It is not known whether its last step is enabled.
    pub unsure: bool,
    /// Where it is the sequence that ends at the leaf, on trial since what it was inserted below may be blocked: depth of the first
    /// state that none but its steps lead to. One of these that is blocked is blocked elsewhere too. Otherwise [`NOWHERE`].
    pub own_from: usize,
}

/// A race of a step with earlier ones.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Race {
    /// The steps that it is to come before, by index; the first is the earliest.
    pub taken: Vec<usize>,
    /// How it would be performed there, and what follows it.
    pub last: Vec<Step>,
    /// It is not known whether it is enabled there.
    pub unsure: bool,
    /// There it depends on other steps than it does as it was performed: what follows it here may come before it there.
    pub otherwise: bool,
}

impl Node {
    pub(super) fn new(parent: usize, depth: usize, rank: u32, step: Option<Step>) -> Node {
        Node {
            parent,
            depth,
            serial: 0,
            rank,
            step,
            expected: step,
            phase: Phase::Waiting,
            clock: Clock::new(),
            visited: false,
            pending: Arc::default(),
            sleep: Vec::new(),
            children: Vec::new(),
            complete: Vec::new(),
            next_rank: 0,
            unsure: false,
            whole: false,
            unsettled: Vec::new(),
            covers: Vec::new(),
        }
    }

    /// The step as it covers what its siblings lead to.
    pub(super) fn covering(&self) -> Option<Step> {
        let (came, expected) = (self.step?, self.expected?);
        Some(Step { act: either(&came.act, &expected.act), did: came.did.with(expected.did), ..came })
    }
}

/// No node.
pub const NOWHERE: usize = usize::MAX;

/// The tree. Node 0 is the root.
#[derive(Debug, Default)]
pub struct Tree {
    pub(super) nodes: Vec<Node>,
    pub(super) free: Vec<usize>,
    /// Started nodes with children that wait: (depth, node). The deepest goes first, so that little is kept.
    pub(super) open: BTreeSet<(usize, usize)>,
    pub(super) waiting: u64,
    /// What the last node was given.
    pub(super) serial: u64,
    /// Executions may be cut off since everything sleeps, so a sequence does not show all that comes: what sleeps covers it only if it is part of it.
    pub(super) piece: bool,
}

impl Tree {
    /// A tree with nothing but a root that waits.
    pub fn new() -> Tree {
        Tree { nodes: vec![Node::new(NOWHERE, 0, 0, None)], waiting: 1, ..Tree::default() }
    }

    /// A node.
    pub fn node(&self, at: usize) -> &Node {
        &self.nodes[at]
    }

    /// A node to be changed.
    pub fn node_mut(&mut self, at: usize) -> &mut Node {
        &mut self.nodes[at]
    }

    /// All nodes, those that are not in use too.
    pub fn all(&self) -> std::ops::Range<usize> {
        0..self.nodes.len()
    }

    /// Branches that are known and not started.
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// The nodes from the root to `at`.
    pub fn path(&self, at: usize) -> Vec<usize> {
        let mut path = Vec::with_capacity(self.nodes[at].depth + 1);
        let mut here = at;
        while here != NOWHERE {
            path.push(here);
            here = self.nodes[here].parent;
        }
        path.reverse();
        path
    }

    fn add(&mut self, parent: usize, step: Step) -> usize {
        let (depth, rank) = (self.nodes[parent].depth + 1, self.nodes[parent].next_rank);
        self.nodes[parent].next_rank += 1;
        self.serial += 1;
        let node = Node { serial: self.serial, ..Node::new(parent, depth, rank, Some(step)) };
        let at = match self.free.pop() {
            Some(at) => {
                self.nodes[at] = node;
                at
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() - 1
            }
        };
        self.nodes[parent].children.push(at);
        at
    }

    /// Adds a child that an execution has gone to by itself.
    pub fn add_started(&mut self, parent: usize, step: Step) -> usize {
        let at = self.add(parent, step);
        self.nodes[at].phase = Phase::Started;
        self.nodes[at].whole = true;
        at
    }

    pub(super) fn add_waiting(&mut self, parent: usize, step: Step) -> usize {
        let at = self.add(parent, step);
        if self.nodes[parent].phase == Phase::Started {
            self.open.insert((self.nodes[parent].depth, parent));
        }
        at
    }

    fn start(&mut self, at: usize) {
        self.nodes[at].phase = Phase::Started;
        let depth = self.nodes[at].depth;
        if self.nodes[at].children.iter().any(|&c| self.nodes[c].phase == Phase::Waiting) {
            self.open.insert((depth, at));
        }
    }

    /// The first child that waits.
    fn next_of(&self, at: usize) -> Option<usize> {
        self.nodes[at].children.iter().copied().find(|&c| self.nodes[c].phase == Phase::Waiting)
    }

    /// Takes the next branch that waits and starts it, down to its leaf. `None`: nothing waits.
    pub fn take(&mut self) -> Option<usize> {
        let mut at = if self.nodes[0].phase == Phase::Waiting {
            0
        } else {
            let ready = |&(_, parent): &(usize, usize)| self.next_of(parent).map(|c| (parent, c));
            let (parent, child) = self.open.iter().rev().find_map(ready)?;
            let waits = |&&c: &&usize| self.nodes[c].phase == Phase::Waiting;
            if self.nodes[parent].children.iter().filter(waits).count() == 1 {
                self.open.remove(&(self.nodes[parent].depth, parent));
            }
            child
        };
        self.waiting -= 1;
        loop {
            let next = self.nodes[at].children.first().copied();
            self.start(at);
            let Some(next) = next else {
                self.nodes[at].whole = true;
                return Some(at);
            };
            let only = self.nodes[at].children.len() == 1;
            if only {
                self.open.remove(&(self.nodes[at].depth, at));
            }
            at = next;
        }
    }

    /// The leaves that wait, in the order in which they will be taken if nothing is inserted.
    pub fn leaves(&self) -> impl Iterator<Item = usize> + '_ {
        let waits = |c: &usize| self.nodes[*c].phase == Phase::Waiting;
        let root = Some(0).filter(waits);
        let below = self.open.iter().rev().flat_map(|&(_, parent)| self.nodes[parent].children.iter().copied());
        root.into_iter().chain(below.filter(waits)).flat_map(|at| self.leaves_of(at))
    }

    /// The leaves at or below a node that waits.
    pub(super) fn leaves_of(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        let mut todo = vec![at];
        std::iter::from_fn(move || loop {
            let here = todo.pop()?;
            let children = &self.nodes[here].children;
            if children.is_empty() {
                return Some(here);
            }
            todo.extend(children.iter().rev());
        })
    }

    /// A tree in which nothing waits but a leaf that waits here: the path to it, and beside the path what sleeps for it.
    pub fn branch(&self, leaf: usize) -> Tree {
        let path = self.path(leaf);
        let mut nodes = Vec::with_capacity(path.len());
        for (i, &at) in path.iter().enumerate() {
            let mut node = self.nodes[at].clone();
            (node.parent, node.children) = (i.checked_sub(1).unwrap_or(NOWHERE), Vec::new());
            if let Some(&next) = path.get(i + 1) {
                let rank = self.nodes[next].rank;
                node.complete.retain(|c| c.0 < rank);
                let living = self.nodes[at].children.iter().map(|&c| &self.nodes[c]).filter(|c| c.rank < rank);
                node.complete.extend(living.filter_map(|c| Some((c.rank, c.covering()?))));
                node.children.push(i + 1);
            }
            nodes.push(node);
        }
        let started = nodes.iter().rposition(|n| n.phase == Phase::Started);
        let open = started.map(|at| (nodes[at].depth, at)).into_iter().collect();
        Tree { nodes, free: Vec::new(), open, waiting: 1, serial: self.serial, piece: self.piece }
    }

    /// The same for a node that has been started, as if it had not been.
    pub fn unseen_branch(&self, at: usize) -> Tree {
        let mut tree = self.branch(at);
        let last = tree.nodes.len() - 1;
        let node = &mut tree.nodes[last];
        (node.phase, node.visited, node.whole) = (Phase::Waiting, false, false);
        (node.clock, node.pending, node.sleep, node.complete) = (Clock::new(), Arc::default(), Vec::new(), Vec::new());
        let parent = (node.parent != NOWHERE).then_some(node.parent);
        tree.open = parent.map(|parent| (tree.nodes[parent].depth, parent)).into_iter().collect();
        tree
    }

    /// The last node of a tree that is one path.
    pub fn deepest(&self) -> Option<usize> {
        self.nodes.len().checked_sub(1)
    }

    /// The nodes that have been started, from the root on: one path.
    pub fn started(&self) -> Vec<usize> {
        let root = Some(0).filter(|&root| self.nodes[root].phase == Phase::Started);
        std::iter::successors(root, |&at| self.started_child(at)).collect()
    }

    /// The child of `at` that has been started.
    pub fn started_child(&self, at: usize) -> Option<usize> {
        self.nodes[at].children.iter().copied().find(|&c| self.nodes[c].phase == Phase::Started)
    }

    /// A tree with the path to `at`, which has been visited, and nothing below: what has been explored from there, or is by `under_way`, one of its
    /// children, sleeps for what is added.
    pub fn beside(&self, at: usize, under_way: Option<usize>) -> Tree {
        let mut tree = self.branch(at);
        let own = tree.nodes.len() - 1;
        let begun = under_way.map(|child| &self.nodes[child]).and_then(|c| Some((c.rank, c.covering()?)));
        tree.nodes[own].complete.extend(begun);
        (tree.waiting, tree.open) = (0, BTreeSet::new());
        tree
    }

    /// Adds a branch that waits.
    pub fn add_branch(&mut self, parent: usize, step: Step) {
        self.add_waiting(parent, step);
        self.waiting += 1;
    }

    /// The places among their siblings of the nodes from the root's child to `at`.
    pub fn ranks(&self, at: usize) -> Vec<u32> {
        self.path(at).iter().skip(1).map(|&n| self.nodes[n].rank).collect()
    }

    /// The leaf that waits at the end of such places.
    pub fn leaf_at(&self, ranks: &[u32]) -> Option<usize> {
        let below =
            |at: usize, rank: &u32| self.nodes[at].children.iter().copied().find(|&c| self.nodes[c].rank == *rank);
        let at = ranks.iter().try_fold(0, below)?;
        (self.nodes[at].phase == Phase::Waiting && self.nodes[at].children.is_empty()).then_some(at)
    }

    /// Nodes that there are.
    pub fn size(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    /// The steps that sleep in the state of `at`, whose parent has been visited: those of the parent and of the siblings
    /// before it that its step does not depend on.
    pub fn sleep_at(&self, at: usize) -> Vec<Step> {
        let node = &self.nodes[at];
        let Some(step) = &node.step else { return Vec::new() };
        let parent = &self.nodes[node.parent];
        let living = parent.children.iter().map(|&c| &self.nodes[c]).filter(|c| c.rank < node.rank);
        let done = parent.complete.iter().filter(|c| c.0 < node.rank).map(|c| c.1);
        let before = living.filter_map(Node::covering).chain(done);
        parent.sleep.iter().copied().chain(before).filter(|s| !step.wakes(s, self.piece)).collect()
    }

    /// Estimated part of the tree that is done, 0 to 1: of each state on the path that has been started, all branches that
    /// are known now have the same part (Knuth 1975).
    pub fn done(&self) -> f64 {
        let (mut at, mut done, mut part) = (0, 0.0, 1.0);
        loop {
            let node = &self.nodes[at];
            part /= (node.children.len() + node.complete.len()).max(1) as f64;
            done += part * node.complete.len() as f64;
            match node.children.first() {
                Some(&first) if self.nodes[first].phase == Phase::Started => at = first,
                _ => return done,
            }
        }
    }

    /// `at` is a leaf that has been run: it, and what is complete with it, is forgotten.
    pub fn complete(&mut self, leaf: usize) {
        let mut at = leaf;
        while at != 0 && self.nodes[at].children.is_empty() {
            let parent = self.nodes[at].parent;
            self.forget(at);
            at = parent;
        }
    }

    /// Forgets a node and what is below, but for its step.
    fn forget(&mut self, at: usize) {
        self.cut(at);
        let (parent, rank) = (self.nodes[at].parent, self.nodes[at].rank);
        self.nodes[parent].children.retain(|&c| c != at);
        if let Some(step) = self.nodes[at].covering() {
            self.nodes[parent].complete.push((rank, step));
        }
        self.nodes[at] = Node::new(NOWHERE, 0, 0, None);
        self.free.push(at);
    }

    /// The execution ended at `at`, before the steps that were to follow: these, and all that waits or is under way below,
    /// are forgotten, and nothing will be inserted there. Gives the nodes that are gone.
    pub fn cut(&mut self, at: usize) -> BTreeSet<usize> {
        self.nodes[at].whole = true;
        let below = std::mem::take(&mut self.nodes[at].children);
        self.open.remove(&(self.nodes[at].depth, at));
        self.remove(below)
    }

    /// The branches that wait at `at` are somebody else's: they are forgotten.
    pub fn give_away(&mut self, at: usize) {
        let children = std::mem::take(&mut self.nodes[at].children);
        let (waits, kept) = children.into_iter().partition(|&c| self.nodes[c].phase == Phase::Waiting);
        self.nodes[at].children = kept;
        self.open.remove(&(self.nodes[at].depth, at));
        self.remove(waits);
    }

    /// Removes these nodes, which are nobody's children any more, and what is below. Gives all of them.
    fn remove(&mut self, mut below: Vec<usize>) -> BTreeSet<usize> {
        let mut gone = BTreeSet::new();
        while let Some(node) = below.pop() {
            let (depth, waits) = (self.nodes[node].depth, self.nodes[node].phase == Phase::Waiting);
            if self.nodes[node].children.is_empty() && waits {
                self.waiting -= 1;
            }
            self.open.remove(&(depth, node));
            below.append(&mut self.nodes[node].children);
            self.nodes[node] = Node::new(NOWHERE, 0, 0, None);
            self.free.push(node);
            gone.insert(node);
        }
        gone
    }

    /// The execution of a leaf that was unsure has shown that the step to `blocked`, on the way to it, is blocked there: what is below
    /// on trial is no more, nor what led to nothing else. Gives the nodes that are gone, and what they were to cover.
    pub fn withdraw(&mut self, blocked: usize) -> (BTreeSet<usize>, Vec<Covered>) {
        let (mut gone, mut covers, depth) = (BTreeSet::new(), Vec::new(), self.nodes[blocked].depth);
        let on_trial: Vec<usize> = self.leaves_of(blocked).filter(|&leaf| self.nodes[leaf].unsure).collect();
        for leaf in on_trial {
            self.waiting -= u64::from(self.nodes[leaf].phase == Phase::Waiting);
            covers.extend(self.nodes[leaf].covers.drain(..).filter(|c| c.own_from > depth));
            let mut at = leaf;
            while at != 0 && self.nodes[at].children.is_empty() && !self.nodes[at].visited {
                let parent = self.nodes[at].parent;
                self.open.remove(&(self.nodes[at].depth, at));
                self.nodes[parent].children.retain(|&c| c != at);
                self.nodes[at] = Node::new(NOWHERE, 0, 0, None);
                self.free.push(at);
                gone.insert(at);
                at = parent;
            }
            let waits = |&c: &usize| self.nodes[c].phase == Phase::Waiting;
            if at != 0 && !self.nodes[at].children.iter().any(waits) {
                self.open.remove(&(self.nodes[at].depth, at));
            }
        }
        (gone, covers)
    }

    /// The steps from `at`, in order, with the nodes they lead to ([`NOWHERE`] where these are complete).
    pub(super) fn children_of(&self, at: usize) -> impl Iterator<Item = (Step, usize)> {
        let node = &self.nodes[at];
        let living = node.children.iter().filter_map(|&c| Some((self.nodes[c].rank, (self.nodes[c].covering()?, c))));
        let complete = node.complete.iter().map(|&(rank, step)| (rank, (step, NOWHERE)));
        let mut all: Vec<(u32, (Step, usize))> = complete.chain(living).collect();
        all.sort_by_key(|c| c.0);
        all.into_iter().map(|c| c.1)
    }
}
