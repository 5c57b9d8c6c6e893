//! The steps of one execution by what may depend on them ([`vsrun_model::footprint`]), so that a search does not ask all
//! earlier steps for each new one.

use std::collections::BTreeMap;

use vsrun_model::footprint::{found_at, looks_at, Place};
use vsrun_model::{Act, Effects};

use super::clock::contains;

/// The steps. Each list is ascending.
#[derive(Debug, Default)]
pub struct Index {
    /// By place and thread number.
    steps: BTreeMap<(Place, u32), Vec<u32>>,
}

impl Index {
    /// Adds step `n`, the last so far.
    pub fn add(&mut self, n: usize, act: &Act, did: Effects) {
        found_at(act, did, |place| {
            let list = self.steps.entry((place, act.tid)).or_default();
            if list.last() != Some(&(n as u32)) {
                list.push(n as u32);
            }
        });
    }

    /// Those of the first `n` steps that are kept where `sought` tells.
    pub fn candidates(&self, n: usize, sought: &Sought) -> Candidates<'_> {
        let mut lists = Vec::new();
        let mut all_under = |from: Place, to: Place| {
            for ((_, thread), list) in self.steps.range((from, 0)..=(to, u32::MAX)) {
                let list = &list[..list.partition_point(|&k| (k as usize) < n)];
                lists.push((*thread, list));
            }
        };
        if sought.everything {
            all_under(Place::ALL.0, Place::ALL.1);
        } else {
            sought.places.iter().for_each(|&place| all_under(place, place));
        }
        Candidates { lists }
    }
}

/// Where the steps are that operations may depend on.
#[derive(Debug, Default)]
pub struct Sought {
    everything: bool,
    places: Vec<Place>,
}

impl Sought {
    /// Adds where those are that `act`, which did `did`, may depend on.
    pub fn add(&mut self, act: &Act, did: Effects) {
        self.everything |= looks_at(act, did, |place| {
            if !self.places.contains(&place) {
                self.places.push(place);
            }
        });
    }
}

/// Steps, the last first.
#[derive(Debug)]
pub struct Candidates<'a> {
    /// By thread number, ascending.
    lists: Vec<(u32, &'a [u32])>,
}

impl Candidates<'_> {
    /// The next step that is not in `clock`, to which only steps may have been added since the last call, with all that
    /// happened before them.
    pub fn next(&mut self, clock: &[u32]) -> Option<usize> {
        self.next_where(|thread, k| contains(clock, thread, k))
    }

    /// The next step that is not `known`, by thread number and step. With a step those before it of its thread are known, and what is
    /// known stays so.
    pub fn next_where(&mut self, known: impl Fn(u32, usize) -> bool) -> Option<usize> {
        let last = |list: &[u32]| list.last().copied();
        self.lists.retain(|(thread, list)| last(list).is_some_and(|k| !known(*thread, k as usize)));
        let next = self.lists.iter().filter_map(|(_, list)| last(list)).max()?;
        for (_, list) in &mut self.lists {
            if let Some((&k, before)) = list.split_last() {
                if k == next {
                    *list = before;
                }
            }
        }
        Some(next as usize)
    }
}
