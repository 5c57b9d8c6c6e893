//! Saving and restoring searches by partial-order reduction.
//!
//! Nodes are written in preorder, each with the number of its children, and without their indices: parents, depths, and
//! what waits where follow from that. So no bytes can give a tree with a circle or a child of two parents, and equal trees
//! have equal bytes, however they came about. A leaf whose execution is under way is written as one that waits; what has
//! been run ahead of its turn is not written, and is run again.

use vsrun_model::{Act, Effects, Uid};

use super::ahead::InOrder;
use super::canon::Names;
use super::reduction::{Insertion, Reduction};
use super::tree::{Covered, Node, Pending, Phase, Race, Step, Tree, NOWHERE};
use crate::codec::{encode_slice, Codec, DecodeError, Reader};

impl Codec for Step {
    fn encode(&self, out: &mut Vec<u8>) {
        self.act.encode(out);
        self.value.encode(out);
        self.did.0.encode(out);
    }
    fn decode(from: &mut Reader) -> Result<Step, DecodeError> {
        Ok(Step { act: Act::decode(from)?, value: u32::decode(from)?, did: Effects(u8::decode(from)?) })
    }
}

impl Codec for Race {
    fn encode(&self, out: &mut Vec<u8>) {
        self.taken.encode(out);
        self.last.encode(out);
        self.unsure.encode(out);
        self.otherwise.encode(out);
    }
    fn decode(from: &mut Reader) -> Result<Race, DecodeError> {
        let (taken, last, unsure) = (Vec::decode(from)?, Vec::decode(from)?, bool::decode(from)?);
        Ok(Race { taken, last, unsure, otherwise: bool::decode(from)? })
    }
}

impl Codec for Covered {
    fn encode(&self, out: &mut Vec<u8>) {
        self.depth.encode(out);
        self.v.encode(out);
        self.unsure.encode(out);
        self.own_from.encode(out);
    }
    fn decode(from: &mut Reader) -> Result<Covered, DecodeError> {
        let (depth, v, unsure) = (usize::decode(from)?, Vec::decode(from)?, bool::decode(from)?);
        Ok(Covered { depth, v, unsure, own_from: usize::decode(from)? })
    }
}

impl Codec for Pending {
    fn encode(&self, out: &mut Vec<u8>) {
        self.act.encode(out);
        self.choices.encode(out);
        self.origin.encode(out);
        self.raw.encode(out);
    }
    fn decode(from: &mut Reader) -> Result<Pending, DecodeError> {
        let (act, choices) = (Act::decode(from)?, u32::decode(from)?);
        Ok(Pending { act, choices, origin: usize::decode(from)?, raw: u32::decode(from)? })
    }
}

impl Codec for Names {
    fn encode(&self, out: &mut Vec<u8>) {
        let mut threads: Vec<(u32, Uid)> = self.threads.iter().map(|(&uid, &n)| (n, uid)).collect();
        threads.sort_unstable_by_key(|t| t.0);
        threads.iter().map(|t| t.1).collect::<Vec<Uid>>().encode(out);
        let mut objects: Vec<_> = self.objects.iter().map(|(&key, &n)| (n, key)).collect();
        objects.sort_unstable_by_key(|o| o.0);
        objects.iter().map(|(_, (space, kind, addr))| (*space, (*kind, *addr))).collect::<Vec<_>>().encode(out);
    }
    fn decode(from: &mut Reader) -> Result<Names, DecodeError> {
        let (mut names, threads) = (Names::default(), Vec::<Uid>::decode(from)?);
        for (n, uid) in (0u32..).zip(threads) {
            names.threads.insert(uid, n).map_or(Ok(()), |_| Err(DecodeError::Wrong("names of threads")))?;
        }
        let objects = Vec::<(u32, (u8, u64))>::decode(from)?;
        for (n, (space, (kind, addr))) in (0u32..).zip(objects) {
            let key = (space, kind, addr);
            names.objects.insert(key, n).map_or(Ok(()), |_| Err(DecodeError::Wrong("names of objects")))?;
        }
        Ok(names)
    }
}

impl InOrder {
    /// See [`super::api::Search::save`].
    pub fn save(&self) -> Vec<u8> {
        let (mut out, search) = (Vec::new(), self.reduction());
        (search.insertion == Insertion::Sequence).encode(&mut out);
        self.names.encode(&mut out);
        self.next_ticket.encode(&mut out);
        search.partial.encode(&mut out);
        search.transitions.encode(&mut out);
        search.sleep_blocked.encode(&mut out);
        encode_tree(&search.tree, self.under_way(), &mut out);
        out
    }

    /// See [`super::api::Search::restore`].
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        let from = &mut Reader::new(bytes);
        let insertion = self.reduction().insertion;
        if bool::decode(from)? != (insertion == Insertion::Sequence) {
            return Err(DecodeError::Wrong("algorithm"));
        }
        let (names, next_ticket) = (Names::decode(from)?, u64::decode(from)?);
        let mut search = Reduction::new(insertion);
        search.partial = bool::decode(from)?;
        search.transitions = u64::decode(from)?;
        search.sleep_blocked = u64::decode(from)?;
        search.tree = decode_tree(from, names.threads.len())?;
        from.end()?;
        *self = InOrder::going_on(search, names, next_ticket);
        Ok(())
    }
}

/// Appends the nodes; `under_way` is a leaf that has been started and not been run.
fn encode_tree(tree: &Tree, under_way: Option<usize>, out: &mut Vec<u8>) {
    let mut todo = vec![0];
    while let Some(at) = todo.pop() {
        let node = tree.node(at);
        node.rank.encode(out);
        node.step.encode(out);
        node.expected.encode(out);
        let phase = if under_way == Some(at) { Phase::Waiting } else { node.phase };
        (phase as u8).encode(out);
        (node.whole && phase != Phase::Waiting).encode(out);
        node.clock.encode(out);
        node.visited.encode(out);
        encode_slice(&node.pending, out);
        node.sleep.encode(out);
        node.complete.encode(out);
        node.unsure.encode(out);
        node.unsettled.encode(out);
        node.covers.encode(out);
        node.children.len().encode(out);
        todo.extend(node.children.iter().rev());
    }
}

/// Reads what [`encode_tree`] wrote; `threads`: how many threads have numbers.
fn decode_tree(from: &mut Reader, threads: usize) -> Result<Tree, DecodeError> {
    let mut nodes: Vec<Node> = Vec::new();
    // Nodes whose children have not all been read, with the number of those that are missing.
    let mut incomplete: Vec<(usize, usize)> = Vec::new();
    loop {
        let parent = incomplete.last().map(|p| p.0);
        let (node, children) = decode_node(from, parent.map(|p| (p, &nodes[p])), threads)?;
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
        if incomplete.is_empty() {
            break;
        }
    }
    for at in 0..nodes.len() {
        let next_rank = ranks(&nodes, at).ok_or(DecodeError::Wrong("order of branches"))?;
        nodes[at].next_rank = next_rank;
    }
    Ok(with_what_waits(nodes))
}

/// A node and the number of its children; `parent`: with its index.
fn decode_node(
    from: &mut Reader,
    parent: Option<(usize, &Node)>,
    threads: usize,
) -> Result<(Node, usize), DecodeError> {
    let (rank, step, expected) = (u32::decode(from)?, Option::<Step>::decode(from)?, Option::<Step>::decode(from)?);
    let (index, depth) = parent.map_or((NOWHERE, 0), |(index, p)| (index, p.depth + 1));
    let mut node = Node::new(index, depth, rank, step);
    node.expected = expected;
    node.phase = match u8::decode(from)? {
        0 => Phase::Waiting,
        1 => Phase::Started,
        _ => return Err(DecodeError::Wrong("phase")),
    };
    node.whole = bool::decode(from)?;
    node.clock = Vec::decode(from)?;
    node.visited = bool::decode(from)?;
    node.pending = Vec::decode(from)?.into();
    node.sleep = Vec::decode(from)?;
    node.complete = Vec::decode(from)?;
    node.unsure = bool::decode(from)?;
    node.unsettled = Vec::decode(from)?;
    node.covers = Vec::decode(from)?;
    let children = usize::decode(from)?;
    let below = match parent {
        Some((_, p)) if node.visited && !p.visited => false,
        Some((_, p)) => match p.phase {
            Phase::Waiting => node.phase == Phase::Waiting,
            Phase::Started => true,
        },
        None => true,
    };
    // Leaves that have been run are forgotten, but for the root of a search that is over.
    let fresh = match node.phase {
        Phase::Waiting => !node.visited && !node.whole && node.complete.is_empty(),
        Phase::Started => children > 0 || parent.is_none(),
    };
    if parent.is_some() != node.step.is_some() || !below || !fresh {
        return Err(DecodeError::Wrong("state"));
    }
    let races = node
        .unsettled
        .iter()
        .all(|r| !r.taken.is_empty() && !r.last.is_empty() && r.taken.iter().all(|&n| n + 1 < depth) && node.visited);
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
    match node.pending.iter().all(|p| p.origin <= depth) && node.clock.iter().all(|&c| c as usize <= depth) {
        true => Ok((node, children)),
        false => Err(DecodeError::Wrong("origin")),
    }
}

/// The next rank of a node, if its children have different ranks with those that are complete, and are in that order.
fn ranks(nodes: &[Node], at: usize) -> Option<u32> {
    let living: Vec<u32> = nodes[at].children.iter().map(|&c| nodes[c].rank).collect();
    let mut all: Vec<u32> = living.iter().copied().chain(nodes[at].complete.iter().map(|c| c.0)).collect();
    all.sort_unstable();
    let ascending = |ranks: &[u32]| ranks.windows(2).all(|two| two[0] < two[1]);
    (ascending(&all) && ascending(&living)).then_some(all.last().map_or(0, |last| last.saturating_add(1)))
}

/// The tree of these nodes.
fn with_what_waits(nodes: Vec<Node>) -> Tree {
    let waits = |node: &Node| node.phase == Phase::Waiting;
    let has_waiting = |node: &Node| !waits(node) && node.children.iter().any(|&c| waits(&nodes[c]));
    let open = nodes.iter().enumerate().filter(|(_, n)| has_waiting(n)).map(|(at, n)| (n.depth, at)).collect();
    let waiting = nodes.iter().filter(|n| waits(n) && n.children.is_empty()).count() as u64;
    Tree { open, waiting, nodes, free: Vec::new() }
}
