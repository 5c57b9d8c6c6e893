//! The tree of a selective search, as far as it has been explored, where it is kept ([`refine`](super::refine)).

use std::collections::BTreeSet;
use std::sync::Arc;

use vsrun_model::Key;

use super::node::Node;

/// A step that was taken, or is on the present path.
#[derive(Debug)]
pub(super) struct Kept {
    /// The step before, as an index.
    pub(super) parent: Option<usize>,
    /// The number of its state: steps from the same state have the same.
    pub(super) place: usize,
    /// The state with the step chosen; of the present path, `None`.
    pub(super) node: Option<Node>,
}

/// The tree, as far as it has been explored.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) steps: Vec<Kept>,
    /// By number of a state, the steps that were taken from it.
    pub(super) places: Vec<Vec<usize>>,
    /// Steps from whose states others are to be tried.
    pub(super) due: Vec<usize>,
    /// States of which that is so, or has been.
    pub(super) opened: BTreeSet<usize>,
    /// What object numbers stand for in the execution that is being followed.
    pub(super) objects: Arc<Vec<Key>>,
}

impl Tree {
    /// A new state.
    pub(super) fn place(&mut self) -> usize {
        self.places.push(Vec::new());
        self.places.len() - 1
    }

    /// The step that `node` takes, behind that of `before`.
    pub(super) fn enters(&mut self, node: &mut Node, before: Option<usize>) {
        node.objects = Arc::clone(&self.objects);
        node.step = Some(self.steps.len());
        self.places[node.place].push(self.steps.len());
        self.steps.push(Kept { parent: before, place: node.place, node: None });
    }

    /// It has been explored.
    pub(super) fn leaves(&mut self, node: &mut Node) {
        if let Some(step) = node.step.take() {
            self.steps[step].node = Some(node.clone());
        }
    }
}
