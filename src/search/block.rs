//! Transitions of one thread that belong together, for searches in which what sleeps is more than one.

use vsrun_model::{Act, Effects};

use crate::touched::Touched;

/// The transitions of one thread that were performed without a switch, one or more.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// Their operations, each with what its transition did beyond it.
    pub acts: Vec<(Act, Effects)>,
    /// What they did to memory together; `None`: that is not known.
    pub touched: Option<Touched>,
    /// They went on in several ways, and all of these are in here: the operations are no sequence.
    pub mixed: bool,
}

impl Block {
    /// Adds a transition.
    pub fn push(&mut self, act: (Act, Effects), touched: Option<&Touched>) {
        self.touched = match (self.acts.is_empty(), self.touched.take(), touched) {
            (true, _, Some(new)) => Some(new.clone()),
            (false, Some(mut all), Some(new)) => {
                all.join(new);
                Some(all)
            }
            _ => None,
        };
        self.acts.push(act);
    }
}
