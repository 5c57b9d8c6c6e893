//! What executions have covered: which operations of different threads came one after the other on an object, by names that are the same in
//! all executions, processes and machines.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use vsrun_model::orders::Succession;

use crate::runtime::{OrderNames, Worker};

/// Pairs that are kept.
const MOST: usize = 1 << 18;

/// Pairs of operations, by what they are called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Covered {
    /// What operations are called.
    sides: Vec<String>,
    /// The second came right after the first, as indices of `sides`.
    orders: BTreeSet<(u32, u32)>,
}

impl Covered {
    /// What is called so is meant from now on.
    fn side(&mut self, index: &mut BTreeMap<String, u32>, name: &str) -> u32 {
        if let Some(&known) = index.get(name) {
            return known;
        }
        let n = self.sides.len() as u32;
        self.sides.push(name.to_string());
        index.insert(name.to_string(), n);
        n
    }

    fn index(&self) -> BTreeMap<String, u32> {
        self.sides.iter().cloned().zip(0..).collect()
    }

    /// Takes what another one has. How many pairs are new.
    pub fn join(&mut self, other: &Covered) -> u64 {
        let mut index = self.index();
        let sides: Vec<u32> = other.sides.iter().map(|name| self.side(&mut index, name)).collect();
        let before = self.orders.len();
        let known = |n: u32| sides.get(n as usize).copied();
        let all = other.orders.iter().filter_map(|&(a, b)| Some((known(a)?, known(b)?)));
        self.orders.extend(all);
        (self.orders.len() - before) as u64
    }

    /// Pairs, whichever came first.
    pub fn pairs(&self) -> u64 {
        self.orders.iter().filter(|&&(a, b)| a <= b || !self.orders.contains(&(b, a))).count() as u64
    }

    /// Of these so many were seen in both orders. What is the same of two threads is.
    pub fn both_ways(&self) -> u64 {
        self.orders.iter().filter(|&&(a, b)| a <= b && self.orders.contains(&(b, a))).count() as u64
    }

    /// Every index is one of a name.
    pub fn is_whole(&self) -> bool {
        let n = self.sides.len() as u32;
        self.orders.iter().all(|&(a, b)| a < n && b < n)
    }
}

/// The pairs of executions that go on.
#[derive(Default)]
pub(super) struct Covering {
    /// What they have covered.
    pub covered: Covered,
    index: BTreeMap<String, u32>,
    /// Those that are in it, as executions have them.
    known: BTreeSet<Succession>,
    names: Option<OrderNames>,
    /// Seconds after the beginning at which a pair was new last.
    pub newest: f64,
}

impl Covering {
    /// Takes what the worker has last run, so many seconds after the beginning.
    pub fn see(&mut self, worker: &Worker, seconds: f64) {
        let (before, full) = (self.covered.orders.len(), self.known.len() >= MOST);
        for order in worker.orders().iter().filter(|_| !full) {
            if !self.known.insert(*order) {
                continue;
            }
            let names = self.names.get_or_insert_with(|| worker.order_names());
            let (first, second) = (names.side(worker, order, true), names.side(worker, order, false));
            let first = self.covered.side(&mut self.index, &first);
            let second = self.covered.side(&mut self.index, &second);
            self.covered.orders.insert((first, second));
        }
        if self.covered.orders.len() > before {
            self.newest = seconds;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(orders: &[(&str, &str)]) -> Covered {
        let (mut covered, mut index) = (Covered::default(), BTreeMap::new());
        for (a, b) in orders {
            let pair = (covered.side(&mut index, a), covered.side(&mut index, b));
            covered.orders.insert(pair);
        }
        covered
    }

    #[test]
    fn a_pair_counts_once_and_both_ways_if_both_orders_were_seen() {
        let mut all = of(&[("a", "b"), ("b", "a"), ("a", "c"), ("d", "d")]);
        assert_eq!((all.pairs(), all.both_ways()), (3, 2));
        // The same by other numbers is not new.
        assert_eq!(all.join(&of(&[("c", "a"), ("b", "a")])), 1);
        assert_eq!((all.pairs(), all.both_ways()), (3, 3));
        assert_eq!(all.join(&all.clone()), 0);
        assert_eq!(all.join(&of(&[("x", "a")])), 1);
        assert_eq!((all.pairs(), all.both_ways()), (4, 3));
        assert!(all.is_whole());
        all.orders.insert((0, 99));
        assert!(!all.is_whole());
    }
}
