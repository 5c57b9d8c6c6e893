//! Incremental refinement (Flanagan and Qadeer, Transactions for Software Model Checking, Section 6): what turns out to have been assumed
//! wrongly is put right in the search tree, where [`Selective`] otherwise begins again (Stoller and Cohen).
//!
//! A state-less search has only the present path. So each step that was taken is kept, with the state it was taken from; that is the price.
//! Rules only ever find fewer operations invisible than they did. When they have learned something, the kept steps are gone through, parents
//! first: how far each thread had come in its transaction is worked out anew, and where a thread moved alone and by what is known now should
//! not have, the others are still to be tried from that state. Such states on the present path are tried with the rest of it, the others once
//! it is done, behind the same prefix. At the end each state of the tree has been treated as the rules want it that hold in the end; its
//! sleep sets rest on transactions that were longer, which wakes more than need be and no less.
//!
//! What is not kept is the block of what had been explored first from such a state, so that does not sleep while the rest is: some executions
//! are run that a search which begins again with the same knowledge would leave out.

use super::block::Block;
use super::node::Rules;
use super::sss::Selective;

impl<R: Rules> Selective<R> {
    /// States from which others were to be tried after all.
    pub fn put_right(&self) -> usize {
        self.tree.as_ref().map_or(0, |tree| tree.opened.len())
    }

    /// The rules have learned something: what was explored is put right.
    pub(super) fn refine(&mut self) {
        let Some(mut tree) = self.tree.take() else { return };
        // On the present path.
        for n in 0..self.nodes.len() {
            let node = &self.nodes[n];
            let state = self.state(n, &node.objects);
            let alone = node.alone && self.rules.invisible(node.act(), state);
            let phase = self.rules.phase((node.act(), node.did), alone, node.creates, state);
            let node = &mut self.nodes[n];
            if node.alone && !alone {
                node.try_all();
                tree.opened.insert(node.place);
            }
            (node.alone, node.phase) = (alone, phase);
        }
        // Elsewhere: a step behind one on the present path is behind it as it is now.
        let on_path = |step: usize| self.nodes.iter().find(|node| node.step == Some(step));
        for at in 0..tree.steps.len() {
            let Some(mut node) = tree.steps[at].node.take() else { continue };
            let before = tree.steps[at].parent.and_then(|p| tree.steps[p].node.as_ref().or_else(|| on_path(p)));
            let state = node.state(&node.objects, before);
            let alone = node.alone && self.rules.invisible(node.act(), state);
            let phase = self.rules.phase((node.act(), node.did), alone, node.creates, state);
            if node.alone && !alone && tree.opened.insert(tree.steps[at].place) {
                tree.due.push(at);
            }
            (node.alone, node.phase) = (alone, phase);
            tree.steps[at].node = Some(node);
        }
        self.tree = Some(tree);
    }

    /// From some states others are to be tried.
    pub(super) fn is_due(&self) -> bool {
        self.tree.as_ref().is_some_and(|tree| !tree.due.is_empty())
    }

    /// Turns to a state, off the path that is done, from which others are to be tried. False: there is none.
    pub(super) fn reopen(&mut self) -> bool {
        let Some(tree) = &mut self.tree else { return false };
        let Some(last) = tree.due.pop() else { return false };
        let mut path = Vec::new();
        let mut at = Some(last);
        while let Some(step) = at {
            let kept = &tree.steps[step];
            // Nothing is on a path while one is looked for.
            let Some(mut node) = kept.node.clone() else {
                self.partial = true;
                return false;
            };
            node.todo.fill(false);
            node.step = Some(step);
            path.push(node);
            at = kept.parent;
        }
        path.reverse();
        // What has been tried there, in all its alternatives; it is not put to sleep, see above.
        let same = &tree.places[tree.steps[last].place];
        let tried = same.iter().filter_map(|&step| tree.steps[step].node.as_ref());
        let tried: Vec<_> = tried.map(|node| (node.act().tid, node.value)).collect();
        if let Some(node) = path.last_mut() {
            node.done.extend(tried);
            node.try_all();
            (node.dropped, node.step, node.block) = (true, None, Block::default());
        }
        self.nodes = path;
        true
    }
}
