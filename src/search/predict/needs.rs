//! What each step of an execution needs of the steps before it, and which of them could have come the other way round.
//!
//! A step needs those that it rests on ([`rests_on`]). Uses of memory and of semaphores that do nothing else are kept apart, since of
//! these not the nearest count but certain ones: a read needs the writes that its bytes are from, and what takes the i-th from a semaphore
//! that had v at first needs the first i - v that were added: then there is enough in whatever part of the execution it is.

use std::collections::{BTreeMap, BTreeSet};

use vsrun_model::arena::Step;
use vsrun_model::depend::{dependent_by_effects, needs, reaches_everything};
use vsrun_model::observe::{counts_alone, of_memory_alone, rests_on, Count, Use};
use vsrun_model::{dependent_after, may_be_coenabled, Act, Effects, ObjId, Tid};

use crate::search::clock::{add, contains, join, Clock};
use crate::search::index::{Index, Sought};

/// Earlier steps that are looked at for one step.
const MOST_CANDIDATES: usize = 256;

/// Steps that depend on each other, the earlier first, in a reordering that has neither.
pub(super) type Pair = (usize, usize);

/// The lock that a step takes or gives back, and whether it does nothing else.
pub(super) type OfLock = Option<(ObjId, bool)>;

/// How a semaphore is used in an execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Semaphore {
    /// As a lock: there is one, and who has taken it gives it back.
    Lock,
    /// By nothing but taking and adding, with so many at first.
    Counts(i64),
}

/// The semaphores of an execution of which all is known.
pub(super) fn semaphores(steps: &[Step]) -> BTreeMap<ObjId, Semaphore> {
    struct Seen {
        first: i64,
        now: i64,
        /// Who has it, if it is a lock.
        holder: Option<Tid>,
        is_lock: bool,
    }
    let mut seen: BTreeMap<ObjId, Seen> = BTreeMap::new();
    let mut otherwise = BTreeSet::new();
    for step in steps {
        let (act, t) = (&step.act, step.act.tid);
        let Some((id, count)) = counts_alone(act) else {
            // Without a number that is known. To look changes nothing.
            let changes = |id: &ObjId| !act.only_looks() && seen.contains_key(id);
            otherwise.extend(act.op.operands().into_iter().filter(changes));
            continue;
        };
        let (Count::Adds(found) | Count::Takes(found)) = count;
        let all = seen.entry(id).or_insert(Seen { first: found, now: found, holder: None, is_lock: true });
        if found != all.now {
            otherwise.insert(id);
        }
        let takes = matches!(count, Count::Takes(_));
        all.is_lock &= match all.holder {
            None => takes && found == 1,
            Some(holder) => !takes && found == 0 && holder == t,
        };
        all.holder = takes.then_some(t);
        all.now = found + if takes { -1 } else { 1 };
    }
    let told = |(id, seen): (ObjId, Seen)| {
        let how = if seen.is_lock { Semaphore::Lock } else { Semaphore::Counts(seen.first) };
        (!otherwise.contains(&id)).then_some((id, how))
    };
    seen.into_iter().filter_map(told).collect()
}

/// What came out.
#[derive(Default)]
pub(super) struct Needs {
    /// By step: what must have come before it, and itself.
    pub clocks: Vec<Clock>,
    /// By step: what its thread must have before it.
    pub before: Vec<Clock>,
    /// Steps that followed each other and could come the other way round.
    pub pairs: Vec<Pair>,
}

/// A write that may be read from.
struct Write {
    step: usize,
    bytes: u8,
}

/// A word of memory.
#[derive(Default)]
struct Word {
    writes: Vec<Write>,
    /// By thread, bytes and whether it writes, the last use.
    last: BTreeMap<(Tid, u8, bool), usize>,
}

/// A semaphore whose number is known.
#[derive(Default)]
struct Counted {
    /// What was added, in order, and how much of it is in `given`.
    adds: Vec<usize>,
    joined: usize,
    /// What those need.
    given: Clock,
    takes: usize,
    /// By thread, the last that added and the last that took.
    last: BTreeMap<(Tid, bool), usize>,
}

/// Steps, as they come.
pub(super) struct Follow<'a> {
    steps: &'a [Step],
    of_locks: &'a [OfLock],
    semaphores: &'a BTreeMap<ObjId, Semaphore>,
    needs: Needs,
    words: BTreeMap<ObjId, Word>,
    counted: BTreeMap<ObjId, Counted>,
    /// By step: the word or semaphore that it is about, if it is one of those.
    on: Vec<Option<ObjId>>,
    /// All other steps.
    rest: Index,
    /// Steps that only take and give back locks: those of one lock are many and do not count for each other.
    only_locks: Index,
    /// Uses of memory and semaphores: the same.
    apart: Index,
}

impl<'a> Follow<'a> {
    /// Of the steps of `threads` threads. `creations`: by thread, one past the step that made it.
    pub fn all(
        steps: &'a [Step],
        threads: usize,
        of_locks: &'a [OfLock],
        semaphores: &'a BTreeMap<ObjId, Semaphore>,
        creations: &[usize],
    ) -> Needs {
        let mut follow = Follow {
            steps,
            of_locks,
            semaphores,
            needs: Needs::default(),
            words: BTreeMap::new(),
            counted: BTreeMap::new(),
            on: Vec::with_capacity(steps.len()),
            rest: Index::default(),
            only_locks: Index::default(),
            apart: Index::default(),
        };
        let mut last: Vec<Option<usize>> = vec![None; threads];
        for (n, step) in steps.iter().enumerate() {
            let t = step.act.tid as usize;
            // That it was created by a step of its own cannot be.
            let made = || creations.get(t).copied().unwrap_or(0).checked_sub(1).filter(|&k| k < n);
            let before = last.get(t).copied().flatten().or_else(made);
            let clock = before.map_or(Clock::new(), |k| follow.needs.clocks[k].clone());
            follow.needs.before.push(clock.clone());
            follow.step(n, clock);
            if let Some(last) = last.get_mut(t) {
                *last = Some(n);
            }
        }
        follow.needs
    }

    /// The next step; `clock`: what its thread has before it.
    fn step(&mut self, n: usize, mut clock: Clock) {
        let (act, did) = (&self.steps[n].act, self.steps[n].did);
        let is_counted = |id: &ObjId| matches!(self.semaphores.get(id), Some(Semaphore::Counts(_)));
        let on = if let Some(used) = of_memory_alone(act) {
            self.uses(n, used, &mut clock);
            Some(used.word)
        } else if let Some((id, count)) = counts_alone(act).filter(|(id, _)| is_counted(id)) {
            self.counts(n, id, count, &mut clock);
            Some(id)
        } else {
            None
        };
        self.on.push(on);
        let apart = on.is_some() && did == Effects::NONE;
        self.look(n, &mut clock, apart);
        add(&mut clock, act.tid, n);
        self.needs.clocks.push(clock);
        let plain = matches!(self.of_locks[n], Some((_, true))) && did == Effects::NONE && !reaches_everything(act);
        let index = match () {
            () if apart => &mut self.apart,
            () if plain => &mut self.only_locks,
            () => &mut self.rest,
        };
        index.add(n, act, did);
    }

    /// A use of memory: a read needs what it reads from.
    fn uses(&mut self, n: usize, used: Use, clock: &mut Clock) {
        let t = self.steps[n].act.tid;
        let word = self.words.entry(used.word).or_default();
        // Of each other thread the last that it could have come before.
        let mut met: BTreeMap<Tid, usize> = BTreeMap::new();
        for (&(other, bytes, writes), &k) in &word.last {
            if other != t && bytes & used.bytes != 0 && (writes || used.writes) && !contains(clock, other, k) {
                met.entry(other).and_modify(|last| *last = k.max(*last)).or_insert(k);
            }
        }
        self.needs.pairs.extend(met.into_values().map(|k| (k, n)));
        word.last.insert((t, used.bytes, used.writes), n);
        if used.reads {
            let mut left = used.bytes;
            for write in word.writes.iter().rev() {
                if write.bytes & left != 0 {
                    join(clock, &self.needs.clocks[write.step]);
                    left &= !write.bytes;
                }
            }
        }
        if used.writes {
            // One that reads needs what it read from, so that who reads from it needs that too.
            word.writes.retain(|write| write.bytes & !used.bytes != 0);
            word.writes.push(Write { step: n, bytes: used.bytes });
        }
    }

    /// What takes from a semaphore needs as many that were added as it takes for the number to be enough.
    fn counts(&mut self, n: usize, id: ObjId, count: Count, clock: &mut Clock) {
        let Some(&Semaphore::Counts(first)) = self.semaphores.get(&id) else { return };
        let (steps, t) = (self.steps, self.steps[n].act.tid);
        let takes = matches!(count, Count::Takes(_));
        let sem = self.counted.entry(id).or_default();
        let could_be_turned = |&(&(other, _), &k): &(&(Tid, bool), &usize)| {
            let (earlier, later) = (&steps[k], &steps[n]);
            let depends = dependent_after(&earlier.act, earlier.did, &later.act, later.did, false);
            other != t && depends && may_be_coenabled(&earlier.act, &later.act) && !needs(&earlier.act, &later.act)
        };
        let met = sem.last.iter().filter(could_be_turned).filter(|(of, &k)| !contains(clock, of.0, k));
        self.needs.pairs.extend(met.map(|(_, &k)| (k, n)));
        sem.last.insert((t, takes), n);
        if !takes {
            sem.adds.push(n);
            return;
        }
        sem.takes += 1;
        let needed = usize::try_from(sem.takes as i64 - first).unwrap_or(0).min(sem.adds.len());
        while sem.joined < needed {
            join(&mut sem.given, &self.needs.clocks[sem.adds[sem.joined]]);
            sem.joined += 1;
        }
        if needed > 0 {
            join(clock, &sem.given);
        }
    }

    /// What else a step needs.
    fn look(&mut self, n: usize, clock: &mut Clock, apart: bool) {
        let (act, did) = (&self.steps[n].act, self.steps[n].did);
        let mut sought = Sought::default();
        sought.add(act, did);
        let mut paired: BTreeSet<Tid> = BTreeSet::new();
        let Needs { clocks, pairs, .. } = &mut self.needs;
        let wide = reaches_everything(act);
        let others = [(&self.apart, !apart), (&self.only_locks, self.of_locks[n].is_none() || wide)];
        for (index, _) in std::iter::once((&self.rest, true)).chain(others).filter(|(_, looks)| *looks) {
            let mut candidates = index.candidates(n, &sought);
            for _ in 0..MOST_CANDIDATES {
                let Some(k) = candidates.next(clock) else { break };
                let (earlier, its) = (&self.steps[k].act, self.steps[k].did);
                let same = match (self.of_locks[k], self.of_locks[n]) {
                    (Some((lock, pure)), Some((other, also))) => lock == other && (pure || also),
                    _ => self.on[n].is_some() && self.on[n] == self.on[k],
                };
                let (depends, needed) = match same {
                    true => [by_more((earlier, its), (act, did)); 2].into(),
                    false => (dependent_after(earlier, its, act, did, false), rests_on(earlier, its, act, did)),
                };
                let turned =
                    depends && earlier.tid != act.tid && may_be_coenabled(earlier, act) && !needs(earlier, act);
                if turned && paired.insert(earlier.tid) {
                    pairs.push((k, n));
                }
                if needed {
                    join(clock, &clocks[k]);
                }
            }
        }
    }
}

/// Whether two steps on the same lock, word or semaphore depend on each other by anything else.
fn by_more((a, a_did): (&Act, Effects), (b, b_did): (&Act, Effects)) -> bool {
    let wide = reaches_everything(a) || reaches_everything(b);
    wide || dependent_by_effects(a, a_did, b, b_did) || dependent_by_effects(b, b_did, a, a_did)
}
