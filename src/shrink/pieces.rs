//! Choices, cut where the thread changes.

use std::ops::Range;

use vsrun_model::arena::Choice;
use vsrun_model::Uid;

/// Choices in pieces, each of one thread.
pub(super) struct Pieces {
    choices: Vec<Choice>,
    /// Where each begins, and the end.
    starts: Vec<usize>,
}

impl Pieces {
    pub fn of(choices: Vec<Choice>) -> Pieces {
        let begins = |&n: &usize| n == 0 || choices[n].uid != choices[n - 1].uid;
        let mut starts: Vec<usize> = (0..choices.len()).filter(begins).collect();
        starts.push(choices.len());
        Pieces { choices, starts }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The first choice of piece `n`.
    pub fn start(&self, n: usize) -> usize {
        self.starts[n]
    }

    /// Choices of piece `n`; 0 where there is none.
    pub fn steps(&self, n: usize) -> usize {
        if n < self.len() {
            self.starts[n + 1] - self.starts[n]
        } else {
            0
        }
    }

    fn piece(&self, n: usize) -> &[Choice] {
        &self.choices[self.starts[n]..self.starts[n + 1]]
    }

    fn thread(&self, n: usize) -> Uid {
        self.choices[self.starts[n]].uid
    }

    /// Those that move.
    pub fn threads(&self) -> Vec<Uid> {
        let mut all: Vec<Uid> = self.choices.iter().map(|c| c.uid).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The next piece of the same thread.
    pub fn next_of_thread(&self, n: usize) -> Option<usize> {
        (n + 1..self.len()).find(|&next| self.thread(next) == self.thread(n))
    }

    /// With piece `from` taken out and put to where it is piece `to` then.
    pub fn moved(&self, from: usize, to: usize) -> Vec<Choice> {
        let mut order: Vec<usize> = (0..self.len()).collect();
        let piece = order.remove(from);
        order.insert(to.min(order.len()), piece);
        order.into_iter().flat_map(|n| self.piece(n)).copied().collect()
    }

    /// Without these pieces.
    pub fn without(&self, left_out: Range<usize>) -> Vec<Choice> {
        let kept = (0..self.len()).filter(|n| !left_out.contains(n));
        kept.flat_map(|n| self.piece(n)).copied().collect()
    }

    /// Without the last `by` choices of piece `n`.
    pub fn shortened(&self, n: usize, by: usize) -> Vec<Choice> {
        let end = self.starts[n + 1];
        [&self.choices[..end - by], &self.choices[end..]].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vsrun_model::Kind;

    fn pieces(threads: &[u64]) -> Pieces {
        Pieces::of(threads.iter().zip(0..).map(|(&t, n)| Choice::new(Uid(t), n, Kind::NONE)).collect())
    }

    /// Thread and number of each choice.
    fn numbers(choices: &[Choice]) -> Vec<u32> {
        choices.iter().map(|c| c.value).collect()
    }

    #[test]
    fn cut_where_the_thread_changes() {
        let all = pieces(&[1, 1, 2, 1, 3, 3]);
        assert_eq!((all.len(), all.threads()), (4, vec![Uid(1), Uid(2), Uid(3)]));
        assert_eq!((0..5).map(|n| all.start(n)).collect::<Vec<_>>(), [0, 2, 3, 4, 6]);
        assert_eq!((0..5).map(|n| all.steps(n)).collect::<Vec<_>>(), [2, 1, 1, 2, 0]);
        assert_eq!((0..4).map(|n| all.next_of_thread(n)).collect::<Vec<_>>(), [Some(2), None, None, None]);
        assert_eq!(pieces(&[]).len(), 0);
    }

    #[test]
    fn changes() {
        let all = pieces(&[1, 1, 2, 1, 3, 3]);
        assert_eq!(numbers(&all.moved(2, 1)), [0, 1, 3, 2, 4, 5]);
        assert_eq!(numbers(&all.moved(0, 1)), [2, 0, 1, 3, 4, 5]);
        assert_eq!(numbers(&all.without(1..3)), [0, 1, 4, 5]);
        assert_eq!(numbers(&all.shortened(0, 1)), [0, 2, 3, 4, 5]);
        assert_eq!(numbers(&all.shortened(3, 2)), [0, 1, 2, 3]);
    }
}
