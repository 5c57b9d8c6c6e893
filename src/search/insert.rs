//! Where a sequence of steps belongs in the tree of a partial-order search: below what covers its beginning, or beside it (Abdulla, Aronis, Jonsson,
//! Sagonas, Source Sets: A Foundation for Optimal Dynamic Partial Order Reduction, JACM 2017, Section 5).

use std::borrow::Borrow;
use std::sync::Arc;

use vsrun_model::depend::as_it_stood;
use vsrun_model::Kind;

use super::tree::{Covered, Pending, Phase, Step, Tree, NOWHERE};

/// A sequence that is being inserted.
struct Given<'a> {
    /// Depth of the state below which it is.
    depth: usize,
    v: &'a [&'a Step],
    /// It is not known whether its last step is enabled.
    unsure: bool,
}

impl Given<'_> {
    /// To be kept. `own_from`: see [`Covered`].
    fn covered(&self, own_from: usize) -> Covered {
        Covered { depth: self.depth, v: self.v.iter().map(|&s| *s).collect(), unsure: self.unsure, own_from }
    }
}

/// What is left of a sequence, of which mostly the first step is taken out.
#[derive(Clone)]
struct Rest<'a> {
    steps: Vec<&'a Step>,
    from: usize,
}

impl<'a> Rest<'a> {
    fn new(v: &[&'a Step]) -> Rest<'a> {
        Rest { steps: v.to_vec(), from: 0 }
    }

    fn left(&self) -> &[&'a Step] {
        &self.steps[self.from..]
    }

    /// Takes out the step at place `i` of what is left.
    fn take_out(&mut self, i: usize) {
        self.steps.copy_within(self.from..self.from + i, self.from + 1);
        self.from += 1;
    }
}

/// What became of a sequence that was to be inserted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inserted {
    /// It is there now.
    New,
    /// Something explored or to be explored covers it.
    Covered,
}

/// Where a sequence that is to be inserted belongs.
enum Way {
    /// Nothing covers its beginning.
    New,
    /// Below this node, or [`NOWHERE`].
    Below(usize),
    /// It is there.
    Over(Inserted),
}

impl Tree {
    /// Inserts `v` below `at`, which has been visited, unless what sleeps there, has been started there or waits there
    /// covers it. Figure 8 and Algorithm 2 of the paper.
    pub fn insert(&mut self, at: usize, v: &[&Step], unsure: bool) -> Inserted {
        let part = |q: &&Step| !self.piece || v.iter().any(|s| s.thread() == q.thread());
        let asleep = self.nodes[at].sleep.iter().filter(part).map(|&q| (q, NOWHERE));
        let known = asleep.chain(self.children_of(at)).collect();
        let given = Given { depth: self.nodes[at].depth, v, unsure };
        if log::log_enabled!(log::Level::Trace) {
            let steps = |v: &[&Step]| {
                v.iter().map(|s| format!(" {}:{}.{}", s.thread(), s.act.op.kind.name(), s.value)).collect::<String>()
            };
            log::trace!("at depth {}:{}{}", given.depth, steps(v), if unsure { ", if it is enabled" } else { "" });
        }
        self.insert_among(known, at, Rest::new(v), &given)
    }

    /// Inserts `v` below `at`, or below what covers it there: `known`, steps with the nodes they lead to ([`NOWHERE`] where
    /// these are complete), in order. What covers it may be as deep as executions are long, so this goes down in a loop.
    fn insert_among(&mut self, known: Vec<(Step, usize)>, at: usize, v: Rest, given: &Given) -> Inserted {
        let (mut known, mut at, mut v) = (known, at, v);
        loop {
            match self.way(&known, at, &mut v, given) {
                Way::New => return self.add_sequence(at, v.left(), given),
                Way::Over(inserted) => return inserted,
                Way::Below(child) => {
                    if self.covers(child, v.left(), given) {
                        return Inserted::Covered;
                    }
                    known = self.children_of(child).collect();
                    at = child;
                }
            }
        }
    }

    /// Where `v` belongs among the `known` steps at `at`; a step of `v` that leads there is taken out of it.
    fn way(&mut self, known: &[(Step, usize)], at: usize, v: &mut Rest, given: &Given) -> Way {
        let pending = Arc::clone(&self.nodes[at].pending);
        for (i, (q, child)) in known.iter().enumerate() {
            if !begins(q, v.left(), &pending, self.piece) {
                continue;
            }
            let own = v.left().iter().position(|s| s.thread() == q.thread());
            if let Some(own) = own {
                v.take_out(own);
                return Way::Below(*child);
            }
            // What is to come may take any alternative of a toss: all of them must be there.
            let same = |(r, _): &&(Step, usize)| r.thread() == q.thread() && begins(r, v.left(), &pending, self.piece);
            let mut all: Vec<(Step, usize)> = known[i..].iter().filter(same).copied().collect();
            all.sort_by_key(|(r, _)| r.value);
            all.dedup_by_key(|(r, _)| r.value);
            let needed = if q.act.op.kind == Kind::TOSS { q.act.op.arg.max(0) as usize + 1 } else { 1 };
            if all.len() < needed {
                // These sleep in what is inserted for the others.
                for (_, child) in all {
                    self.insert_below(child, v.clone(), given);
                }
                continue;
            }
            if needed == 1 {
                return Way::Below(*child);
            }
            let mut inserted = Inserted::Covered;
            for (_, child) in all {
                if self.insert_below(child, v.clone(), given) == Inserted::New {
                    inserted = Inserted::New;
                }
            }
            return Way::Over(inserted);
        }
        Way::New
    }

    /// Adds `v` below `at`.
    fn add_sequence(&mut self, at: usize, v: &[&Step], given: &Given) -> Inserted {
        // Below what may turn out to be blocked it is on trial, too: then it is to be inserted elsewhere.
        let on_trial = self.may_be_blocked(at);
        let own_from = self.nodes[at].depth + 1;
        let mut at = at;
        for step in v {
            at = self.add_waiting(at, **step);
        }
        self.nodes[at].unsure = given.unsure || on_trial;
        if on_trial {
            self.nodes[at].covers.push(given.covered(own_from));
        }
        self.waiting += 1;
        Inserted::New
    }

    /// True if nothing at or below `at`, which no execution has reached, is known to be enabled.
    fn may_be_blocked(&self, at: usize) -> bool {
        !self.nodes[at].visited && self.leaves_of(at).all(|leaf| self.nodes[leaf].unsure)
    }

    fn insert_below(&mut self, at: usize, v: Rest, given: &Given) -> Inserted {
        if self.covers(at, v.left(), given) {
            return Inserted::Covered;
        }
        let known = self.children_of(at).collect();
        self.insert_among(known, at, v, given)
    }

    /// Whether `v` need not be inserted below `at`.
    fn covers(&mut self, at: usize, v: &[&Step], given: &Given) -> bool {
        if at == NOWHERE {
            return true;
        }
        // A leaf that waits is the end of a sequence.
        let node = &self.nodes[at];
        let ends = node.whole || node.phase == Phase::Waiting && node.children.is_empty();
        if v.is_empty() || ends {
            self.rests_on(at, given);
        }
        v.is_empty() || ends
    }

    /// `given` is covered by what waits at or below `at`. If all of that may turn out to be blocked, it is kept.
    fn rests_on(&mut self, at: usize, given: &Given) {
        if !self.may_be_blocked(at) {
            return;
        }
        let leaf = self.leaves_of(at).next();
        if let Some(leaf) = leaf {
            self.nodes[leaf].covers.push(given.covered(NOWHERE));
        }
    }

    /// True if a sequence equivalent to `v` leads from `at` along what is there or sleeps, by steps of `v` alone: then
    /// whatever may come after `v` is explored, or has been. [`Tree::insert`] also goes along steps that are merely independent
    /// of `v`, which covers only what comes after `v` and does not depend on them.
    pub fn leads(&self, at: usize, v: &[&Step]) -> bool {
        let part = |q: &&Step| !self.piece || v.iter().any(|s| s.thread() == q.thread());
        let asleep: Vec<(Step, usize)> = self.nodes[at].sleep.iter().filter(part).map(|&q| (q, NOWHERE)).collect();
        let mut known: Vec<(Step, usize)> = asleep.into_iter().chain(self.children_of(at)).collect();
        let (mut here, mut v) = (at, Rest::new(v));
        loop {
            let pending = &self.nodes[here].pending;
            let Some(&(q, child)) = known.iter().find(|(q, _)| begins(q, v.left(), pending, self.piece)) else {
                return false;
            };
            let Some(own) = v.left().iter().position(|s| s.thread() == q.thread()) else { return false };
            v.take_out(own);
            if child == NOWHERE || v.left().is_empty() || self.nodes[child].whole {
                return true;
            }
            known = self.children_of(child).collect();
            here = child;
        }
    }

    /// Adds the first step of one of the sequences equivalent to `v` as a child of `at`, unless one of them is there or
    /// sleeps: source sets (the paper's Algorithm 1). `first`: the one that is to be added.
    pub fn insert_first(&mut self, at: usize, v: &[Step], first: Step) -> Inserted {
        let node = &self.nodes[at];
        let children = node.children.iter().filter_map(|&c| self.nodes[c].covering());
        let known: Vec<Step> =
            children.chain(node.complete.iter().map(|c| c.1)).chain(node.sleep.iter().copied()).collect();
        // Unlike with whole sequences it is not enough that `q` is independent of `v`: what comes first must be part of it.
        let part = |q: &&Step| v.iter().any(|s| s.thread() == q.thread());
        if known.iter().filter(part).any(|q| begins(q, v, &node.pending, self.piece)) {
            return Inserted::Covered;
        }
        self.add_waiting(at, first);
        self.waiting += 1;
        Inserted::New
    }
}

/// True if `q` can come first in a sequence equivalent to `v` or to `v` with `q` somewhere in it: the weak initials.
/// `pending`: the state before `v`, if it is known. There `q` is made while the others stand as they are pending, which may be
/// other than what they are once they are performed; it must not depend on either. `piece`: see [`Step::wakes`].
pub fn begins<S: Borrow<Step>>(q: &Step, v: &[S], pending: &[Pending], piece: bool) -> bool {
    let own = v.iter().position(|s| s.borrow().thread() == q.thread());
    // Threads of which a step has come.
    let mut moved: Vec<u32> = Vec::new();
    let mut stands = |s: &Step| {
        if moved.contains(&s.thread()) {
            return false;
        }
        moved.push(s.thread());
        let here = pending.iter().find(|p| p.act.tid == s.thread());
        here.is_some_and(|p| Step { act: as_it_stood(&p.act, &s.act), ..*s }.depends_on(q))
    };
    match own {
        // What comes before may have let the operation go on, which then does not depend on it any more: as it stood, it did.
        Some(own) => {
            let (before, own) = (&v[..own], v[own].borrow());
            let otherwise = |s: &Step| s.depends_on(q) || piece && s.wakes(q, piece);
            let free = |s: &Step| !s.depends_on(own) && !otherwise(s) && !stands(s);
            q.value == own.value && before.iter().map(Borrow::borrow).all(free)
        }
        None => v.iter().map(Borrow::borrow).all(|s: &Step| !s.wakes(q, piece) && !stands(s)),
    }
}

/// The steps of `v` that depend on none before them, neither as they were performed nor as they stood at first, in the
/// state that `pending` is of.
pub fn initials<'a>(v: &'a [Step], pending: &'a [Pending]) -> impl Iterator<Item = Step> + 'a {
    let stood = |s: &Step| {
        pending.iter().find(|p| p.act.tid == s.thread()).map_or(*s, |p| Step { act: as_it_stood(&p.act, &s.act), ..*s })
    };
    let free = move |i: usize| {
        let q = stood(&v[i]);
        !v[..i].iter().any(|s| s.thread() == q.thread() || s.depends_on(&v[i]) || s.depends_on(&q))
    };
    (0..v.len()).filter(move |&i| free(i)).map(|i| v[i])
}

#[cfg(test)]
mod tests {
    use super::*;
    use vsrun_model::{Act, Effects, Op};

    /// What covers a sequence may be as deep as executions are long.
    #[test]
    fn deep_trees_are_no_deep_recursion() {
        let step = |thread: u32| {
            let mut act = Act { op: Op::on(Kind::SEM_POST, thread), ..Act::default() };
            act.tid = thread;
            Step { act, value: 0, did: Effects::NONE }
        };
        let mut tree = Tree::new();
        let steps: Vec<Step> = (0..100_000).map(step).collect();
        tree.insert(0, &steps.iter().collect::<Vec<&Step>>(), false);
        assert_eq!(tree.insert(0, &[&step(200_000)], false), Inserted::Covered);
    }
}
