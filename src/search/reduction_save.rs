//! Saving and restoring searches by partial-order reduction.
//!
//! Nodes are written in preorder, each with the number of its children, and without their indices: parents, depths, and
//! what waits where follow from that. So no bytes can give a tree with a circle or a child of two parents, and equal trees
//! have equal bytes, however they came about. A leaf whose execution is under way is written as one that waits; what has
//! been run ahead of its turn is not written, and is run again.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use vsrun_model::Uid;

use super::ahead::InOrder;
use super::canon::Names;
use super::reduction::{Insertion, Reduction};
use super::route::Unsettled;
use super::tree::{Node, Phase, Step, Tree, NOWHERE};
use crate::codec::{self, DecodeError};

/// No state has as many branches as this.
const MOST_BRANCHES: u32 = 1 << 30;

/// No operation has as many alternatives as this: each of them becomes a branch.
const MOST_ALTERNATIVES: u32 = 1 << 12;

/// A search as it is saved.
#[derive(Serialize, Deserialize)]
struct Saved<'a> {
    /// It inserts sequences, not single steps.
    sequences: bool,
    /// Where it begins, and whether it is a piece, see [`super::pieces`].
    base: (usize, bool),
    /// Names in the order of their numbers.
    threads: Vec<Uid>,
    objects: Vec<(u32, u8, u64)>,
    next_ticket: u64,
    partial: bool,
    transitions: u64,
    sleep_blocked: u64,
    /// In preorder, each with the number of its children.
    nodes: Vec<(Cow<'a, Node>, usize)>,
}

impl InOrder {
    /// See [`super::api::Search::save`].
    pub(super) fn encoded(&self) -> Vec<u8> {
        encoded(self.reduction(), &self.names, (self.next_ticket, self.under_way()))
    }

    /// A search that is over, and has made so many transitions, and executions that were cut off. `partial`: it does not know all.
    pub fn over((transitions, sleep_blocked): (u64, u64), partial: bool) -> InOrder {
        let mut search = Reduction::new(Insertion::Sequence);
        let _ = search.tree.take();
        (search.transitions, search.sleep_blocked, search.partial) = (transitions, sleep_blocked, partial);
        InOrder::going_on(search, Names::default(), 0)
    }

    /// See [`super::api::Search::restore`].
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub(super) fn decode(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        let saved: Saved = codec::decode(bytes)?;
        let insertion = self.reduction().insertion;
        if saved.sequences != (insertion == Insertion::Sequence) {
            return Err(DecodeError::Wrong("algorithm"));
        }
        codec::counted([saved.next_ticket, saved.transitions, saved.sleep_blocked])?;
        let threads = numbered(saved.threads).ok_or(DecodeError::Wrong("names of threads"))?;
        let objects = numbered(saved.objects).ok_or(DecodeError::Wrong("names of objects"))?;
        let mut search = Reduction::new(insertion);
        (search.partial, search.transitions) = (saved.partial, saved.transitions);
        search.sleep_blocked = saved.sleep_blocked;
        (search.base, search.piece) = saved.base;
        search.tree = tree_of(saved.nodes, threads.len())?;
        search.tree.piece = search.piece;
        search.unsettled = Unsettled::of(&search.tree);
        *self = InOrder::going_on(search, Names { threads, objects }, saved.next_ticket);
        Ok(())
    }
}

/// The bytes of a search, with the ticket that comes next, and the leaf whose execution is under way.
pub(super) fn encoded(search: &Reduction, names: &Names, (next_ticket, under_way): (u64, Option<usize>)) -> Vec<u8> {
    codec::encode(&Saved {
        sequences: search.insertion == Insertion::Sequence,
        base: (search.base, search.piece),
        threads: by_number(&names.threads),
        objects: by_number(&names.objects),
        next_ticket,
        partial: search.partial,
        transitions: search.transitions,
        sleep_blocked: search.sleep_blocked,
        nodes: in_preorder(&search.tree, under_way),
    })
}

/// Names in the order of their numbers, which are 0, 1, ..
fn by_number<T: Copy>(names: &BTreeMap<T, u32>) -> Vec<T> {
    let mut all: Vec<(u32, T)> = names.iter().map(|(&name, &n)| (n, name)).collect();
    all.sort_unstable_by_key(|&(n, _)| n);
    all.into_iter().map(|(_, name)| name).collect()
}

/// What [`by_number`] was given; `None` if a name stands there twice.
fn numbered<T: Ord>(names: Vec<T>) -> Option<BTreeMap<T, u32>> {
    let count = names.len();
    let names: BTreeMap<T, u32> = names.into_iter().zip(0..).collect();
    (names.len() == count).then_some(names)
}

/// The nodes with the numbers of their children; `under_way` is a leaf that has been started and not been run.
fn in_preorder(tree: &Tree, under_way: Option<usize>) -> Vec<(Cow<'_, Node>, usize)> {
    let (mut nodes, mut todo) = (Vec::new(), vec![0]);
    while let Some(at) = todo.pop() {
        let mut node = Cow::Borrowed(tree.node(at));
        if under_way == Some(at) {
            node.to_mut().phase = Phase::Waiting;
        }
        if node.phase == Phase::Waiting && node.whole {
            node.to_mut().whole = false;
        }
        todo.extend(node.children.iter().rev());
        let children = node.children.len();
        nodes.push((node, children));
    }
    nodes
}

/// The tree of what [`in_preorder`] gave; `threads`: how many threads have numbers.
fn tree_of(saved: Vec<(Cow<'_, Node>, usize)>, threads: usize) -> Result<Tree, DecodeError> {
    let mut nodes: Vec<Node> = Vec::new();
    // Nodes whose children have not all come, with the number of those that are missing.
    let mut incomplete: Vec<(usize, usize)> = Vec::new();
    for (node, children) in saved {
        let parent = incomplete.last().map(|p| p.0);
        if parent.is_none() && !nodes.is_empty() {
            return Err(DecodeError::Long);
        }
        let mut node = node.into_owned();
        (node.parent, node.depth) = parent.map_or((NOWHERE, 0), |p| (p, nodes[p].depth + 1));
        node.serial = nodes.len() as u64;
        check(&node, parent.map(|p| &nodes[p]), children, threads)?;
        let at = nodes.len();
        nodes.push(node);
        if let (Some(parent), Some(missing)) = (parent, incomplete.last_mut()) {
            nodes[parent].children.push(at);
            missing.1 -= 1;
        }
        if children > 0 {
            incomplete.push((at, children));
        }
        while incomplete.last().is_some_and(|p| p.1 == 0) {
            incomplete.pop();
        }
    }
    if nodes.is_empty() || !incomplete.is_empty() {
        return Err(DecodeError::Short);
    }
    for at in 0..nodes.len() {
        let next_rank = ranks(&nodes, at).ok_or(DecodeError::Wrong("order of branches"))?;
        nodes[at].next_rank = next_rank;
    }
    Ok(with_what_waits(nodes))
}

/// Whether a node that has been read can be below `parent`, with so many children.
fn check(node: &Node, parent: Option<&Node>, children: usize, threads: usize) -> Result<(), DecodeError> {
    let depth = node.depth;
    let below = match parent {
        Some(p) if node.visited && !p.visited => false,
        Some(p) => p.phase == Phase::Started || node.phase == Phase::Waiting,
        None => true,
    };
    // Leaves that have been run are forgotten, but for the root of a search that is over.
    let fresh = match node.phase {
        Phase::Waiting => !node.visited && !node.whole && node.complete.is_empty(),
        Phase::Started => children > 0 || parent.is_none(),
    };
    let threads_of = |step: &Option<Step>| step.map(|s| s.thread());
    let expected = threads_of(&node.step) == threads_of(&node.expected);
    if parent.is_some() != node.step.is_some() || !expected || !below || !fresh {
        return Err(DecodeError::Wrong("state"));
    }
    if node.pending.iter().any(|p| p.choices > MOST_ALTERNATIVES) {
        return Err(DecodeError::Wrong("number of alternatives"));
    }
    let races = node.unsettled.iter().all(|r| {
        !r.last.is_empty()
            && ascending(&r.taken)
            && r.taken.last().is_some_and(|&n| n < depth.saturating_sub(1))
            && node.visited
    });
    let leaf = node.phase == Phase::Waiting && children == 0 && node.unsure;
    if !races || !node.covers.is_empty() && !leaf || node.covers.iter().any(|c| c.depth >= depth) {
        return Err(DecodeError::Wrong("race"));
    }
    let sequences = node.unsettled.iter().map(|r| &r.last).chain(node.covers.iter().map(|c| &c.v)).flatten();
    let steps = node.step.iter().chain(&node.sleep).chain(node.complete.iter().map(|c| &c.1));
    let steps = steps.chain(sequences).map(|s| s.act.tid);
    let known = |thread: u32| (thread as usize) < threads;
    if !steps.chain(node.pending.iter().map(|p| p.act.tid)).all(known) || node.clock.len() > threads {
        return Err(DecodeError::Wrong("thread"));
    }
    match node.pending.iter().all(|p| p.origin <= p.since && p.since <= depth)
        && node.clock.iter().all(|&c| c as usize <= depth)
    {
        true => Ok(()),
        false => Err(DecodeError::Wrong("origin")),
    }
}

fn ascending<T: PartialOrd>(numbers: &[T]) -> bool {
    numbers.windows(2).all(|two| two[0] < two[1])
}

/// The next rank of a node, if its children have different ranks with those that are complete, and are in that order.
fn ranks(nodes: &[Node], at: usize) -> Option<u32> {
    let living: Vec<u32> = nodes[at].children.iter().map(|&c| nodes[c].rank).collect();
    let mut all: Vec<u32> = living.iter().copied().chain(nodes[at].complete.iter().map(|c| c.0)).collect();
    all.sort_unstable();
    let next = all.last().map_or(0, |last| last.saturating_add(1));
    (ascending(&all) && ascending(&living) && next < MOST_BRANCHES).then_some(next)
}

/// The tree of these nodes.
fn with_what_waits(nodes: Vec<Node>) -> Tree {
    let waits = |node: &Node| node.phase == Phase::Waiting;
    let has_waiting = |node: &Node| !waits(node) && node.children.iter().any(|&c| waits(&nodes[c]));
    let open = nodes.iter().enumerate().filter(|(_, n)| has_waiting(n)).map(|(at, n)| (n.depth, at)).collect();
    let waiting = nodes.iter().filter(|n| waits(n) && n.children.is_empty()).count() as u64;
    Tree { open, waiting, serial: nodes.len() as u64, nodes, ..Tree::default() }
}
