//! The way from the root of a tree to the leaf that was taken last. The next leaf shares most of it, so only what it does not share is walked: a path is as
//! long as an execution, and its nodes lie far apart in memory.

use std::collections::BTreeMap;

use vsrun_model::arena::Choice;

use super::tree::{Tree, NOWHERE};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Route {
    /// From the root on.
    nodes: Vec<usize>,
    /// By node: that no other node of the tree has or had.
    serials: Vec<u64>,
    /// What leads from each to the next.
    choices: Vec<Choice>,
}

impl Route {
    /// Turns to another node.
    pub fn turn_to(&mut self, tree: &Tree, leaf: usize) {
        let (mut new, mut here) = (Vec::new(), leaf);
        while here != NOWHERE {
            let node = tree.node(here);
            if self.nodes.get(node.depth) == Some(&here) && self.serials[node.depth] == node.serial {
                break;
            }
            new.push(here);
            here = node.parent;
        }
        let common = if here == NOWHERE { 0 } else { tree.node(here).depth + 1 };
        self.nodes.truncate(common);
        self.serials.truncate(common);
        self.choices.truncate(common.saturating_sub(1));
        for &at in new.iter().rev() {
            let node = tree.node(at);
            self.nodes.push(at);
            self.serials.push(node.serial);
            self.choices.extend(node.step.map(|step| step.choice()));
        }
    }

    /// The nodes.
    pub fn nodes(&self) -> &[usize] {
        &self.nodes
    }

    /// So many of the nodes, from the root on, have been visited.
    pub fn visited(&self, tree: &Tree) -> usize {
        self.nodes.iter().rposition(|&at| tree.node(at).visited).map_or(0, |last| last + 1)
    }

    /// By node: a number that no other one of the tree has or had.
    pub fn serials(&self) -> &[u64] {
        &self.serials
    }

    /// The choices that lead to the last one.
    pub fn choices(&self) -> &[Choice] {
        &self.choices
    }
}

/// Nodes on the way with races that are to be looked at again, by depth.
#[derive(Debug, Default)]
pub(super) struct Unsettled(BTreeMap<usize, (usize, u64)>);

impl Unsettled {
    /// Those of a tree.
    pub fn of(tree: &Tree) -> Unsettled {
        let mut all = Unsettled::default();
        tree.all().filter(|&at| !tree.node(at).unsettled.is_empty()).for_each(|at| all.add(tree, at));
        all
    }

    /// Adds a node. What has been started is one path, so another one of that depth is gone.
    pub fn add(&mut self, tree: &Tree, at: usize) {
        let node = tree.node(at);
        self.0.insert(node.depth, (at, node.serial));
    }

    /// The depths of those on this way, down to `depth`; those that are not on it are forgotten.
    pub fn on(&mut self, tree: &Tree, path: &[usize], depth: usize) -> Vec<usize> {
        self.0.retain(|&depth, &mut (at, serial)| path.get(depth) == Some(&at) && tree.node(at).serial == serial);
        self.0.range(..=depth).map(|(&depth, _)| depth).collect()
    }
}
