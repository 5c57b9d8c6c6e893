//! The steps of one execution by what may depend on them ([`vsrun_model::footprint`]), so that a search does not ask all
//! earlier steps for each new one.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use vsrun_model::footprint::{asked_of, found_at, looks_at, Place};
use vsrun_model::{Act, Effects};

use super::clock::contains;

/// The steps.
#[derive(Debug, Default)]
pub struct Index {
    /// Numbers of places.
    numbers: HashMap<Place, u32, BuildHasherDefault<Mix>>,
    /// By number of place and by thread number the steps that are kept there, ascending.
    steps: Vec<Vec<(u32, Vec<u32>)>>,
    /// Numbers of the places where all steps are, each in one.
    all: Vec<u32>,
    /// Where steps are kept, in the order in which they came: the step, the number of the place, and which of its lists.
    kept: Vec<(u32, u32, u32)>,
}

impl Index {
    /// Adds step `n`, the last so far.
    pub fn add(&mut self, n: usize, act: &Act, did: Effects) {
        let Index { numbers, steps, all, kept } = self;
        let n = n as u32;
        found_at(act, did, |place| {
            let number = *numbers.entry(place).or_insert_with(|| {
                let number = steps.len() as u32;
                steps.push(Vec::new());
                if (Place::ALL.0..=Place::ALL.1).contains(&place) {
                    all.push(number);
                }
                number
            });
            let lists = &mut steps[number as usize];
            let list = lists.iter().position(|list| list.0 == act.tid).unwrap_or_else(|| {
                lists.push((act.tid, Vec::new()));
                lists.len() - 1
            });
            if lists[list].1.last() != Some(&n) {
                lists[list].1.push(n);
                kept.push((n, number, list as u32));
            }
        });
    }

    /// Forgets the steps from step `n` on.
    pub fn cut(&mut self, n: usize) {
        while let Some((_, number, list)) = self.kept.pop_if(|kept| kept.0 as usize >= n) {
            self.steps[number as usize][list as usize].1.pop();
        }
    }

    /// Those of the first `n` steps that are kept where `sought` tells.
    pub fn candidates(&self, n: usize, sought: &Sought) -> Candidates<'_> {
        let mut found = Vec::with_capacity(32);
        let mut all_at = |number: u32| {
            for (thread, list) in &self.steps[number as usize] {
                found.push((*thread, &list[..list.partition_point(|&k| (k as usize) < n)]));
            }
        };
        sought.places.iter().filter_map(|place| self.numbers.get(place).copied()).for_each(&mut all_at);
        for &(from, to) in &sought.all_of {
            let to = to.min(n);
            for (thread, list) in self.all.iter().flat_map(|&number| &self.steps[number as usize]) {
                let place = |end: usize| list.partition_point(|&k| (k as usize) < end);
                found.push((*thread, list.get(place(from)..place(to)).unwrap_or_default()));
            }
        }
        Candidates { lists: found }
    }
}

/// A hash of a few small numbers, which nobody chooses who means harm: what is searched here is what one execution has touched.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    #[inline]
    fn write_u32(&mut self, n: u32) {
        self.write_u64(n.into());
    }

    #[inline]
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(5) ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    #[inline]
    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }

    #[inline]
    fn write_isize(&mut self, n: isize) {
        self.write_u64(n as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

/// The steps of the execution that was looked at last: of the next one only what it does not share with that is added.
#[derive(Debug, Default)]
pub struct Followed {
    /// Their index.
    pub index: Index,
    /// What each of them leads to, by numbers that nothing else has.
    leads_to: Vec<u64>,
}

impl Followed {
    /// Adds the next step, which leads there.
    pub fn add(&mut self, leads_to: u64, act: &Act, did: Effects) {
        self.index.add(self.leads_to.len(), act, did);
        self.leads_to.push(leads_to);
    }

    /// Forgets what does not lead along these. Gives how many steps are left.
    pub fn turn_to(&mut self, along: &[u64]) -> usize {
        let same = self.leads_to.iter().zip(along).take_while(|(one, other)| one == other).count();
        self.leads_to.truncate(same);
        self.index.cut(same);
        same
    }
}

/// Where the steps are that operations may depend on.
#[derive(Debug, Default)]
pub struct Sought {
    /// All steps from one to another one.
    all_of: Vec<(usize, usize)>,
    places: Vec<Place>,
}

impl Sought {
    /// Nowhere so far.
    pub fn new() -> Sought {
        // Most are about one object or two.
        Sought { all_of: Vec::new(), places: Vec::with_capacity(16) }
    }

    /// Adds where those are that are to be asked whether `act` could have come earlier, as it stood from step `since` on.
    pub fn ask(&mut self, act: &Act, since: usize) {
        let places = &mut self.places;
        if asked_of(act, |place| look(places, place)) {
            self.all_of.push((since, usize::MAX));
        }
    }

    /// Adds where those are that `act`, which did `did`, may depend on.
    pub fn add(&mut self, act: &Act, did: Effects) {
        self.add_as_it_stood(act, did, (0, usize::MAX));
    }

    /// The same for how it stood before these steps, for those alone where it may depend on any.
    pub fn add_as_it_stood(&mut self, act: &Act, did: Effects, stood: (usize, usize)) {
        let places = &mut self.places;
        if looks_at(act, did, |place| look(places, place)) {
            self.all_of.push(stood);
        }
    }
}

fn look(places: &mut Vec<Place>, place: Place) {
    if !places.contains(&place) {
        places.push(place);
    }
}

/// Steps, the last first.
#[derive(Debug)]
pub struct Candidates<'a> {
    /// With thread numbers.
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

/// The steps by which is told whether an operation could have come earlier, gathered as far back as that is asked.
#[derive(Debug)]
pub struct Telling<'a> {
    candidates: Candidates<'a>,
    /// The next one of them.
    next: Option<usize>,
    /// Further ones, the next one last.
    others: Vec<usize>,
    /// Those gathered.
    steps: ByThread,
}

impl<'a> Telling<'a> {
    /// These, and `others`, the last first.
    pub fn new(mut candidates: Candidates<'a>, mut others: Vec<usize>) -> Telling<'a> {
        others.reverse();
        let next = candidates.next_where(|_, _| false);
        Telling { candidates, next, others, steps: ByThread::default() }
    }

    /// Those from step `at` on; `thread`: by step. It is asked for earlier and earlier ones.
    pub fn from(&mut self, at: usize, thread: impl Fn(usize) -> u32) -> &ByThread {
        while let Some(k) = self.next.max(self.others.last().copied()).filter(|&k| k >= at) {
            if self.next == Some(k) {
                self.next = self.candidates.next_where(|_, _| false);
            }
            self.others.pop_if(|other| *other == k);
            self.steps.add(thread(k), k);
        }
        &self.steps
    }
}

/// Steps that are gathered from the last to the first.
#[derive(Debug, Default)]
pub struct ByThread {
    /// With thread numbers; the last step first.
    lists: Vec<(u32, Vec<usize>)>,
}

impl ByThread {
    /// Adds a step before all others.
    pub fn add(&mut self, thread: u32, k: usize) {
        match self.lists.iter_mut().find(|list| list.0 == thread) {
            Some((_, list)) => list.push(k),
            None => self.lists.push((thread, vec![k])),
        }
    }

    /// In their order those that do not follow what `follows` tells: of each thread the first ones, since the steps of a thread
    /// follow each other.
    pub fn apart(&self, follows: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut steps = Vec::new();
        for (_, list) in &self.lists {
            steps.extend(list.iter().rev().copied().take_while(|&k| !follows(k)));
        }
        steps.sort_unstable();
        steps
    }

    /// All of them, in their order.
    pub fn all(&self) -> Vec<usize> {
        let mut steps: Vec<usize> = self.lists.iter().flat_map(|(_, list)| list).copied().collect();
        steps.sort_unstable();
        steps
    }
}
