//! Whether marks pay: it is tried. What a mark costs and saves cannot be read off one execution: its process writes to pages that it then has to keep, the
//! kernel takes faults for them, and a transition takes less than what an execution takes as a whole, divided by its transitions. So some executions are run
//! with marks and some without, in turn, and what took less is gone on with until it is tried again.

/// Executions of a block, and those at its beginning that do not count: there are no marks yet, or pages are not known.
const BLOCK: u32 = 32;
const WARM: u32 = 8;
/// Blocks of each kind. Their median counts, as something else may take the processor in one of them.
const BLOCKS: usize = 3;
/// A block that has taken so many times what one of the other kind does, whole, is not gone on with: it is worse.
const HOPELESS: f64 = 1.5;
/// Executions between two trials: at first, and, twice as many each time that nothing changes, at most.
const PAUSE: u32 = 1 << 10;
const LONGEST: u32 = 1 << 16;

/// See the module.
pub(super) struct Trial {
    /// Marks are made.
    makes: bool,
    /// What the trial before has shown.
    paid: bool,
    /// Executions until the next trial; 0: one is under way.
    left: u32,
    /// So many there are to be after it.
    pause: u32,
    /// Executions of the block, what they have taken in ns, the longest of them, and those that count.
    n: u32,
    all: f64,
    longest: f64,
    counted: f64,
    /// One of them had a mark.
    marked: bool,
    /// ns of each execution: of the blocks without marks, and of those with them.
    took: [Vec<f64>; 2],
}

impl Default for Trial {
    fn default() -> Trial {
        Trial {
            makes: true,
            paid: true,
            left: 0,
            pause: PAUSE / 2,
            n: 0,
            all: 0.0,
            longest: 0.0,
            counted: 0.0,
            marked: false,
            took: [Vec::new(), Vec::new()],
        }
    }
}

impl Trial {
    /// Marks are to be made.
    pub fn makes(&self) -> bool {
        self.makes
    }

    /// There is no trial under way.
    pub fn rests(&self) -> bool {
        self.left > 0
    }

    /// An execution has taken so many ns of CPU time, from the order to begin it until it was back; `marked`: it began at a mark or made one. Says whether it is now the
    /// other way round.
    pub fn over(&mut self, ns: f64, marked: bool) -> bool {
        if self.left > 0 {
            self.left -= 1;
            return false;
        }
        self.n += 1;
        self.all += ns;
        self.longest = self.longest.max(ns);
        self.marked |= marked;
        if self.n > WARM {
            self.counted += ns;
        }
        let other = median(&self.took[usize::from(!self.makes)]);
        // But for one, which may have been held up.
        if other.is_some_and(|other| self.all - self.longest > HOPELESS * f64::from(BLOCK) * other) {
            return self.go_on(!self.makes);
        }
        if self.n < BLOCK {
            return false;
        }
        if self.makes && !self.marked {
            // There is nothing to be compared.
            return self.go_on(true);
        }
        self.took[usize::from(self.makes)].push(self.counted / f64::from(BLOCK - WARM));
        if self.took.iter().all(|took| took.len() >= BLOCKS) {
            return self.go_on(median(&self.took[1]) < median(&self.took[0]));
        }
        self.begin_block();
        self.makes = !self.makes;
        true
    }

    /// So it is until the next trial.
    fn go_on(&mut self, pays: bool) -> bool {
        self.pause = if pays == self.paid { (2 * self.pause).min(LONGEST) } else { PAUSE };
        self.left = self.pause;
        self.begin_block();
        self.took.iter_mut().for_each(Vec::clear);
        let changes = self.makes != pays;
        (self.makes, self.paid) = (pays, pays);
        changes
    }

    fn begin_block(&mut self) {
        (self.n, self.all, self.longest, self.counted, self.marked) = (0, 0.0, 0.0, 0.0, false);
    }
}

fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs so many executions that take so much with marks, and without; says how many had marks, and what they took together.
    fn run(
        trial: &mut Trial,
        n: u32,
        mut with: impl FnMut(u32) -> f64,
        mut without: impl FnMut(u32) -> f64,
    ) -> (u32, f64) {
        let (mut made, mut sum) = (0, 0.0);
        for k in 0..n {
            let makes = trial.makes();
            let ns = if makes { with(k) } else { without(k) };
            made += u32::from(makes);
            sum += ns;
            trial.over(ns, makes);
        }
        (made, sum)
    }

    #[test]
    fn what_takes_less_is_gone_on_with() {
        for (with, without, at_least, at_most) in [(100.0, 250.0, 9_500, 10_000), (250.0, 100.0, 96, 500)] {
            let (made, _) = run(&mut Trial::default(), 10_000, |_| with, |_| without);
            assert!((at_least..=at_most).contains(&made), "{with} {without}: {made}");
        }
    }

    #[test]
    fn an_execution_that_is_held_up_now_and_then_decides_nothing() {
        // One in 150 takes a hundred times as long: one block of each three at most.
        let rare = |k: u32, ns: f64| if k % 150 == 20 { 100.0 * ns } else { ns };
        let (made, _) = run(&mut Trial::default(), 10_000, |k| rare(k, 250.0), |_| 100.0);
        assert!(made < 1_000, "{made}");
        let (made, _) = run(&mut Trial::default(), 10_000, |k| rare(k, 100.0), |_| 250.0);
        assert!(made > 9_000, "{made}");
    }

    #[test]
    fn what_is_much_worse_is_left_at_once() {
        // A block of those would take as long as a thousand others.
        let (_, sum) = run(&mut Trial::default(), 3_000, |_| 1.0, |_| 1000.0);
        assert!(sum < 3.0 * 3_000.0, "{sum}");
        let (_, sum) = run(&mut Trial::default(), 3_000, |_| 1000.0, |_| 1.0);
        assert!(sum < 1.5 * f64::from(BLOCK) * 1000.0, "{sum}");
    }

    #[test]
    fn it_is_tried_again_and_changes_with_the_program() {
        let mut trial = Trial::default();
        let (made, _) = run(&mut trial, 5_000, |_| 250.0, |_| 100.0);
        assert!(made < 500, "{made}");
        // Deeper in the tree it is otherwise.
        let (made, _) = run(&mut trial, 20_000, |_| 100.0, |_| 300.0);
        assert!(made > 15_000, "{made}");
    }

    #[test]
    fn where_no_marks_are_made_nothing_is_tried() {
        let mut trial = Trial::default();
        for _ in 0..10_000 {
            assert!(!trial.over(1.0, false) && trial.makes());
        }
    }
}
