//! The chance that a bug was not found, by the bound of probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi, Nagarakatte, ASPLOS 2010).
//!
//! A bug of depth d needs d orders of operations to show. An execution with n threads, whose priorities are changed at D - 1 of k transitions, shows a
//! bug of depth D with probability 1/(n k^(D - 1)) at least. One of a lesser depth needs fewer orders, which are among D that some execution has, so the same
//! bound holds for it; for one of a greater depth nothing is known. Executions are drawn independently, so the chances that each misses it multiply.

use crate::search::Chance;

/// Depths of which the chance is told.
pub(super) const DEPTHS: [u32; 3] = [1, 2, 3];

/// The probability at least with which one of these executions shows a bug of the depth that it looks for.
fn shows(chance: &Chance) -> f64 {
    let power = i32::try_from(chance.depth.saturating_sub(1)).unwrap_or(i32::MAX);
    1.0 / (f64::from(chance.threads.max(1)) * f64::from(chance.length.max(1)).powi(power))
}

/// The probability at most with which a bug of depth `depth` was missed by all of them, and of how many executions that is known.
pub(super) fn missed(chances: &[Chance], depth: u32) -> (f64, u64) {
    // A file may tell of none; they miss nothing and show nothing.
    let count = chances.iter().filter(|chance| chance.depth >= depth && chance.executions > 0);
    let (log, executions) = count.fold((0.0, 0), |(log, n): (f64, u64), chance| {
        // One alone never misses what shows always.
        let one = (-shows(chance)).ln_1p();
        (log + one * chance.executions as f64, n + chance.executions)
    });
    (if executions == 0 { 1.0 } else { log.exp() }, executions)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(depth: u32, threads: u32, length: u32, executions: u64) -> Chance {
        Chance { depth, threads, length, executions }
    }

    #[test]
    fn by_hand() {
        let near = |(p, n): (f64, u64), expected: f64, executions: u64| {
            assert!((p - expected).abs() < 1e-12 && n == executions, "{p} of {n}, not {expected} of {executions}");
        };
        near(missed(&[], 1), 1.0, 0);
        // 1/2 each.
        near(missed(&[of(1, 2, 77, 3)], 1), 0.125, 3);
        near(missed(&[of(1, 2, 77, 3)], 2), 1.0, 0);
        // 1/(2 * 5) each.
        near(missed(&[of(2, 2, 5, 2)], 2), 0.81, 2);
        near(missed(&[of(2, 2, 5, 2)], 1), 0.81, 2);
        // 1/(4 * 9) and 1/3.
        near(missed(&[of(3, 4, 3, 1), of(1, 3, 9, 2)], 1), 35.0 / 36.0 * 4.0 / 9.0, 3);
        near(missed(&[of(3, 4, 3, 1), of(1, 3, 9, 2)], 3), 35.0 / 36.0, 1);
        near(missed(&[of(1, 1, 1, 1)], 1), 0.0, 1);
        near(missed(&[of(1, 1, 1, 0), of(1, 2, 7, 1)], 1), 0.5, 1);
        // Of many small ones nothing is lost by rounding.
        let (p, _) = missed(&[of(3, 10, 100_000, 100_000_000_000)], 3);
        assert!((p - (-1.0_f64).exp()).abs() < 1e-6, "{p}");
    }

    /// Whether an execution shows a bug that needs all operations of thread 0 from its `at`th on after all of thread 1 (depth 2, where thread 0 begins
    /// before), run by priorities with one change at step `change` of the one that would move.
    fn misses(steps: [usize; 2], at: usize, (first, change): (usize, usize)) -> bool {
        let (mut done, mut high, mut order) = ([0, 0], first, Vec::new());
        for step in 0..steps[0] + steps[1] {
            if step == change && done[high] < steps[high] {
                high = 1 - high;
            }
            let moves = if done[high] < steps[high] { high } else { 1 - high };
            order.push((moves, done[moves]));
            done[moves] += 1;
        }
        let place = |which: (usize, usize)| order.iter().position(|o| *o == which).unwrap();
        // Thread 0 has made `at` steps before thread 1 begins, and goes on after its end.
        !(place((0, at - 1)) < place((1, 0)) && place((1, steps[1] - 1)) < place((0, at)))
    }

    #[test]
    fn no_less_than_what_all_executions_by_priorities_show() {
        // Each priority and each place of a change is as likely as any other: all of them are run.
        for steps in [[2, 1], [3, 2], [4, 4]] {
            let k = steps[0] + steps[1];
            for at in 1..steps[0] {
                let all: Vec<_> = (0..2).flat_map(|first| (0..k).map(move |change| (first, change))).collect();
                let missing = all.iter().filter(|drawn| misses(steps, at, **drawn)).count();
                let really = missing as f64 / all.len() as f64;
                let (bound, _) = missed(&[of(2, 2, k as u32, 1)], 2);
                assert!(really < 1.0 && really <= bound + 1e-12, "{steps:?} {at}: {really} of at most {bound}");
            }
        }
    }
}
