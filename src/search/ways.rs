//! Which of several steps that block another one are taken away together.

/// Step `j` with some of the later ones that block too, in their order: all selections of a few, of many all together and each alone.
pub(super) fn ways_to_take(j: usize, blockers: &[usize]) -> Vec<Vec<usize>> {
    const FEW: usize = 5;
    let with = |mut others: Vec<usize>| {
        others.sort_unstable();
        [vec![j], others].concat()
    };
    if blockers.len() > FEW {
        return std::iter::once(with(blockers.to_vec())).chain(blockers.iter().map(|&b| with(vec![b]))).collect();
    }
    let chosen = |set: usize| blockers.iter().enumerate().filter(|(i, _)| set >> i & 1 != 0).map(|(_, &b)| b).collect();
    (1..1 << blockers.len()).map(|set| with(chosen(set))).collect()
}
