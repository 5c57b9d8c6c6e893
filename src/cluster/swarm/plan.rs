//! What the next task draws: which search, and which faults may strike. Half of the tasks go round, so that each kind has its share; the others are of
//! what has brought most that is new lately for its time. So it is a function of what tasks have come to, in the order in which that was taken.

use crate::config::SearchKind;

/// How much of what a kind has brought counts still after its next task.
const LATELY: f64 = 0.6;

/// The searches, with the depth of bugs that they look for, where that is said.
pub(super) const KINDS: [(SearchKind, u32); 10] = [
    (SearchKind::Random, 0),
    (SearchKind::Pct, 2),
    (SearchKind::Rff, 0),
    (SearchKind::Pos, 0),
    (SearchKind::Surw, 0),
    (SearchKind::Pct, 1),
    (SearchKind::Predict, 0),
    (SearchKind::Walk, 0),
    (SearchKind::Pct, 3),
    (SearchKind::Novel, 0),
];

/// How it is called: `pct d=2`.
pub(super) fn name_of(kind: usize) -> String {
    match KINDS[kind % KINDS.len()] {
        (search, 0) => search.name().to_string(),
        (search, depth) => format!("{} d={depth}", search.name()),
    }
}

/// How a kind has done.
#[derive(Clone, Debug, Default, PartialEq)]
struct Standing {
    /// Tasks that were begun.
    tasks: u64,
    /// New pairs and seconds, the last ones counting most.
    news: f64,
    seconds: f64,
}

impl Standing {
    fn take(&mut self, news: u64, seconds: f64) {
        self.news = self.news * LATELY + news as f64;
        self.seconds = self.seconds * LATELY + seconds;
    }

    fn rate(&self) -> f64 {
        self.news / self.seconds.max(0.001)
    }
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    kinds: Vec<Standing>,
    /// Sets of faults, the first of them none.
    faults: Vec<u32>,
    variations: Vec<Standing>,
}

/// The one whose turn it is, the `n`th time.
fn choose(n: u64, all: &[Standing]) -> usize {
    let fewest = |which: &dyn Fn(&Standing) -> bool| {
        let some = (0..all.len()).filter(|&i| which(&all[i]));
        some.min_by_key(|&i| all[i].tasks).unwrap_or(0)
    };
    let best = all.iter().map(Standing::rate).fold(0.0, f64::max);
    if n.is_multiple_of(2) || best <= 0.0 || all.iter().any(|one| one.tasks == 0) {
        return fewest(&|_| true);
    }
    fewest(&|one| one.rate() >= best)
}

impl Plan {
    /// These faults may strike in some tasks: each alone, and all together.
    pub fn new(vary: u32) -> Plan {
        let single: Vec<u32> = (0..u32::BITS).map(|bit| 1 << bit).filter(|bit| vary & bit != 0).collect();
        let mut faults = vec![0];
        faults.extend(&single);
        faults.extend((single.len() > 1).then_some(vary));
        let variations = vec![Standing::default(); faults.len()];
        Plan { kinds: vec![Standing::default(); KINDS.len()], faults, variations }
    }

    /// The kind of search and the faults of the next task, which is number `n`, from 1.
    pub fn next(&mut self, n: u64) -> (usize, u32) {
        let kind = choose(n, &self.kinds);
        // In every other round nothing strikes.
        let round = n.saturating_sub(1) / KINDS.len() as u64;
        let variation = match self.variations.split_first() {
            Some((_, faults)) if !faults.is_empty() && !round.is_multiple_of(2) => 1 + choose(n, faults),
            _ => 0,
        };
        self.begun(kind, self.faults[variation]);
        (kind, self.faults[variation])
    }

    /// Such a task was begun.
    pub fn begun(&mut self, kind: usize, faults: u32) {
        if let Some(standing) = self.kinds.get_mut(kind) {
            standing.tasks += 1;
        }
        if let Some(at) = self.faults.iter().position(|&known| known == faults) {
            self.variations[at].tasks += 1;
        }
    }

    /// It has brought so many new pairs in so many seconds.
    pub fn take(&mut self, (kind, faults): (usize, u32), news: u64, seconds: f64) {
        if let Some(standing) = self.kinds.get_mut(kind) {
            standing.take(news, seconds);
        }
        if let Some(at) = self.faults.iter().position(|&known| known == faults) {
            self.variations[at].take(news, seconds);
        }
    }
}

/// The seed of a task: of one swarm all differ.
pub(super) fn seed_of(seed: u64, number: u64) -> u64 {
    // splitmix64, which is one to one.
    let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(number);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_kind_has_its_share_and_what_brings_most_has_more() {
        let mut plan = Plan::new(3);
        let mut times = [0; KINDS.len()];
        let mut faults = BTreeSet::new();
        for n in 1..=180 {
            let (kind, strike) = plan.next(n);
            times[kind] += 1;
            faults.insert(strike);
            plan.take((kind, strike), if kind == 4 { 50 } else { 1 }, 1.0);
        }
        assert!(times.iter().all(|&n| n >= 9) && times[4] > 60, "{times:?}");
        assert_eq!(faults, [0, 1, 2, 3].into());
        // What brings nothing any more is left.
        for n in 181..=360 {
            let (kind, strike) = plan.next(n);
            times[kind] += 1;
            plan.take((kind, strike), if kind == 7 { 50 } else { 0 }, 1.0);
        }
        assert!(times[7] > 60 && times[4] < 130, "{times:?}");
    }

    #[test]
    fn it_depends_on_what_was_taken_alone() {
        let run = || {
            let mut plan = Plan::new(19);
            (1..100).map(|n| plan.next(n)).collect::<Vec<_>>()
        };
        assert_eq!(run(), run());
        let first: BTreeSet<usize> = run().iter().take(KINDS.len()).map(|next| next.0).collect();
        assert_eq!(first.len(), KINDS.len());
    }

    #[test]
    fn no_two_tasks_have_the_same_seed() {
        let seeds: BTreeSet<u64> = (0..10_000).map(|n| seed_of(7, n)).collect();
        assert_eq!(seeds.len(), 10_000);
        assert!(!seeds.contains(&seed_of(8, 1)));
    }
}
