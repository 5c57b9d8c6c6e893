//! How far a schedule that shows a bug was shortened.

use serde::{Deserialize, Serialize};

/// How long a schedule is. Of two the shorter one is the lesser: fewer switches, of as many fewer steps, of as many fewer tosses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Length {
    /// Steps whose thread is another one than that of the step before.
    pub switches: u64,
    /// Transitions.
    pub steps: u64,
    /// Transitions that were made in another alternative than the first.
    pub tosses: u64,
}

/// How far it was shortened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortened {
    /// As it was found.
    pub from: Length,
    /// As it is now.
    pub to: Length,
    /// Executions that were run for it. They are no part of the search.
    pub executions: u64,
}

impl Shortened {
    /// `14 switches to 3, 61 steps to 33, in 41 executions`.
    pub fn line(&self) -> String {
        let Shortened { from, to, executions } = self;
        let one = |from: u64, to: u64, what: &str| {
            (from != to).then(|| format!("{from} {what}{} to {to}", if from == 1 { "" } else { "s" }))
        };
        let parts = [
            one(from.switches, to.switches, "switch").map(|part| part.replacen("switchs", "switches", 1)),
            one(from.steps, to.steps, "step"),
            one(from.tosses, to.tosses, "toss").map(|part| part.replacen("tosss", "tosses", 1)),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        format!("{}, in {executions} execution{}", parts.join(", "), if *executions == 1 { "" } else { "s" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_words() {
        let length = |switches, steps, tosses| Length { switches, steps, tosses };
        let of = |from, to, executions| Shortened { from, to, executions }.line();
        assert_eq!(of(length(14, 61, 0), length(3, 33, 0), 41), "14 switches to 3, 61 steps to 33, in 41 executions");
        assert_eq!(of(length(1, 5, 1), length(0, 5, 0), 1), "1 switch to 0, 1 toss to 0, in 1 execution");
        assert_eq!(of(length(2, 5, 3), length(2, 5, 1), 2), "3 tosses to 1, in 2 executions");
        assert!(
            length(1, 9, 9) < length(2, 0, 0) && length(1, 3, 9) < length(1, 4, 0) && length(1, 3, 0) < length(1, 3, 1)
        );
    }
}
