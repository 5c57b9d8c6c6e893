//! Subtrees that need nobody. A search by partial-order reduction knows what to run beside a path only when it has seen the executions on it, so its subtrees
//! depend on each other. Above a *frontier* they need not: there every step that is enabled and awake is a branch, with sleep sets only
//! (Godefroid 1996). What a race below would insert above is there already, or sleeps. So each subtree at the frontier is a *piece* that is
//! explored by `optimal` with the sleep set that it begins with, by whom, when and in which order does not matter.
//!
//! What that costs are executions that turn out to be redundant half-way, since sleep sets cut them off only when everything enabled sleeps. These are
//! counted apart.
//!
//! A branch sleeps for those after it with what its step *did*, which is known once it has been made. So a state at the frontier is looked at by an
//! execution that is over there, child by child, before the next child is defined.

use std::collections::{BTreeSet, VecDeque};

use vsrun_model::{Effects, End};

use super::ahead::InOrder;
use super::api::Search;
use super::canon::{Canon, Names};
use super::reduction::{Insertion, Reduction, Run};
use super::reduction_save::encoded;
use super::tree::Step;
use crate::codec;
use crate::schedule::Schedule;
use crate::trace::Trace;

/// A subtree that is to be explored.
#[derive(Debug)]
struct Piece {
    /// A tree with the path to it, and a leaf that waits there.
    search: Reduction,
    /// The same once the state there has been looked at: with what is pending. `None`: it has not been, or the execution ended on the way.
    seen: Option<Reduction>,
    /// Nothing is to be split there.
    whole: bool,
}

/// What is being split.
#[derive(Debug)]
struct Splitting {
    /// The leaf has been looked at.
    parent: Reduction,
    /// Its state.
    at: usize,
    /// Steps from there that are still to become pieces.
    steps: VecDeque<Step>,
    /// What has become a piece.
    children: Vec<Piece>,
}

/// What an execution under way looks at.
#[derive(Debug)]
enum Looks {
    /// Where a piece begins.
    Piece(Piece),
    /// Where the next child does, a node of the parent's tree.
    Child(Splitting, usize),
}

/// A search that only divides the tree: it is over when there are so many pieces, or none can be split.
#[derive(Debug)]
pub struct Split {
    pieces: Vec<Piece>,
    splitting: Option<Splitting>,
    looks: Option<(u64, Looks)>,
    names: Names,
    into: usize,
    /// Steps to where it begins.
    base: usize,
    ticket: u64,
    /// Pieces in whose state everything that is enabled sleeps.
    blocked: u64,
    /// Steps to states that have been split.
    transitions: u64,
    /// An execution did other things than its schedule says.
    failed: bool,
}

impl Piece {
    /// Steps that sleep where it begins, if that is known.
    fn asleep(&self) -> usize {
        let at = |seen: &Reduction| seen.tree.deepest().map_or(0, |at| seen.tree.node(at).sleep.len());
        self.seen.as_ref().map_or(0, at)
    }
}

impl Split {
    /// Divides a whole search into that many pieces or a few more.
    pub fn whole(into: usize) -> Split {
        Split::of(Reduction::new(Insertion::Sequence), Names::default(), into)
    }

    /// Divides a piece: one that has not been begun, or one that has. Then the first of the pieces has what was explored of it, and goes on with the branch
    /// that is under way.
    ///
    /// # Errors
    /// It is none, or nothing is left of it.
    pub fn piece(bytes: &[u8], into: usize) -> Result<Split, String> {
        let mut search = InOrder::optimal();
        search.restore(bytes)?;
        let names = search.names.clone();
        let search = search.into_reduction();
        match (search.tree.leaves().count(), search.transitions) {
            (0, _) => Err("nothing is left of it".into()),
            (1, 0) => Ok(Split::of(search, names, into)),
            _ => Ok(Split::begun(search, names, into)),
        }
    }

    /// Above the first state of the path that is explored at which something else could be done, nothing is left but that path: the piece may as well begin
    /// there. What is left there becomes pieces; what has been explored from there sleeps in them, and so does what is under way, which is
    /// the rest of this piece from now on.
    fn begun(search: Reduction, names: Names, into: usize) -> Split {
        let mut rest = search.into_piece();
        let mut split = Split { pieces: Vec::new(), ..Split::of(Reduction::new(Insertion::Sequence), names, into) };
        for at in rest.tree.started() {
            if rest.tree.node(at).depth < rest.base {
                continue;
            }
            if !rest.tree.node(at).visited {
                break;
            }
            let under_way = rest.tree.started_child(at);
            let mut parent = rest.branch(at).into_piece();
            parent.tree = rest.tree.beside(at, under_way);
            let last = parent.tree.deepest().unwrap_or(0);
            let is_begun = |step: &Step| {
                let complete = &parent.tree.node(last).complete;
                complete.iter().any(|(_, s)| s.thread() == step.thread() && s.value == step.value)
            };
            let steps: VecDeque<Step> = parent.awake(last).into_iter().filter(|step| !is_begun(step)).collect();
            rest.tree.give_away(at);
            rest.base = rest.tree.node(at).depth + 1;
            if under_way.is_none() {
                rest.tree.complete(at);
            }
            if !steps.is_empty() {
                split.base = parent.base;
                let rest = Piece { search: rest, seen: None, whole: true };
                split.splitting = Some(Splitting { parent, at: last, steps, children: vec![rest] });
                return split;
            }
        }
        split.pieces.push(Piece { search: rest, seen: None, whole: true });
        split
    }

    fn of(search: Reduction, names: Names, into: usize) -> Split {
        let base = search.base;
        let pieces = vec![Piece { search: search.into_piece(), seen: None, whole: false }];
        Split {
            pieces,
            splitting: None,
            looks: None,
            names,
            into,
            base,
            ticket: 0,
            blocked: 0,
            transitions: 0,
            failed: false,
        }
    }

    /// The pieces that [`Search::save`] of a search that splits has given, each as `save` of the search that explores it: what is explored of all of them
    /// together is what was to be explored.
    ///
    /// # Errors
    /// The bytes are something else.
    pub fn pieces_of(saved: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        Ok(codec::decode(saved)?)
    }

    /// The piece that is split next: of a short path, and with little that sleeps, so that sleep sets cut off little of what comes of it.
    fn next_piece(&mut self) -> Option<Piece> {
        let open = self.pieces.iter().enumerate().filter(|(_, piece)| !piece.whole);
        let at = open.min_by_key(|(n, piece)| (piece.search.base + piece.asleep(), *n)).map(|(n, _)| n)?;
        Some(self.pieces.remove(at))
    }

    /// The next look, and its schedule.
    fn look(&mut self) -> Option<(Looks, Schedule)> {
        loop {
            if let Some(mut splitting) = self.splitting.take() {
                if let Some(step) = splitting.steps.pop_front() {
                    let Splitting { parent, at, .. } = &mut splitting;
                    parent.tree.add_branch(*at, step);
                    let (leaf, schedule) = parent.take()?;
                    return Some((Looks::Child(splitting, leaf), schedule));
                }
                self.pieces.append(&mut splitting.children);
            }
            if self.failed || self.pieces.len() >= self.into {
                return None;
            }
            let mut piece = self.next_piece()?;
            match piece.seen.take() {
                Some(parent) => self.begin(parent),
                None => {
                    let (_, schedule) = piece.search.branch(piece.search.tree.leaves().next()?).take()?;
                    return Some((Looks::Piece(piece), schedule));
                }
            }
        }
    }

    /// Begins to split what has been looked at.
    fn begin(&mut self, parent: Reduction) {
        let Some(at) = parent.tree.deepest() else { return };
        let steps: VecDeque<Step> = parent.awake(at).into();
        self.blocked += u64::from(steps.is_empty());
        self.transitions += u64::from(parent.tree.node(at).depth > self.base);
        self.splitting = Some(Splitting { parent, at, steps, children: Vec::new() });
    }

    /// What a look has shown of the piece.
    fn looked_at(&mut self, mut piece: Piece, trace: &Trace) {
        let canon = self.names.of(trace);
        let leaf = piece.search.tree.leaves().next();
        let mut seen = leaf.map(|leaf| piece.search.branch(leaf)).map(Reduction::into_piece);
        let shown = seen.as_mut().and_then(|seen| {
            let (leaf, _) = seen.take()?;
            let goes_on = seen.look(leaf, trace, &canon)?;
            Some(goes_on && seen.is_enabled(leaf))
        });
        match shown {
            Some(true) => piece.seen = seen,
            // It is over there.
            Some(false) => piece.whole = true,
            None => (piece.whole, self.failed) = (true, true),
        }
        self.pieces.push(piece);
    }

    fn child_looked_at(&mut self, mut splitting: Splitting, leaf: usize, trace: &Trace) {
        let canon = self.names.of(trace);
        let shown = splitting.parent.look(leaf, trace, &canon);
        self.failed |= shown.is_none();
        let goes_on = shown == Some(true) && splitting.parent.is_enabled(leaf);
        if goes_on && splitting.parent.awake(leaf).is_empty() {
            // All that comes there is others'.
            (self.blocked, self.transitions) = (self.blocked + 1, self.transitions + 1);
        } else {
            let search = splitting.parent.unseen_branch(leaf);
            let seen = goes_on.then(|| splitting.parent.seen_branch(leaf));
            splitting.children.push(Piece { search, whole: seen.is_none(), seen });
        }
        self.splitting = Some(splitting);
    }
}

impl Search for Split {
    fn next(&mut self) -> Option<Schedule> {
        if self.looks.is_some() {
            return None;
        }
        let (looks, schedule) = self.look()?;
        self.ticket += 1;
        self.looks = Some((self.ticket, looks));
        Some(Schedule { ticket: self.ticket, ends: true, ..schedule })
    }

    fn done(&mut self, ticket: u64, trace: &Trace) {
        match self.looks.take_if(|looks| looks.0 == ticket) {
            Some((_, Looks::Piece(piece))) => self.looked_at(piece, trace),
            Some((_, Looks::Child(splitting, leaf))) => self.child_looked_at(splitting, leaf, trace),
            None => {}
        }
    }

    fn transitions(&self) -> u64 {
        self.transitions
    }

    /// See [`Split::pieces_of`]. Nothing, before it is over, or if an execution did other things than another one with the same steps.
    fn save(&self) -> Option<Vec<u8>> {
        let whole = self.looks.is_none() && self.splitting.is_none() && !self.failed;
        let pieces = || self.pieces.iter().map(|piece| encoded(&piece.search, &self.names, (0, None)));
        whole.then(|| codec::encode(&pieces().collect::<Vec<_>>()))
    }

    fn sleep_blocked(&self) -> u64 {
        self.blocked
    }
}

impl Reduction {
    /// The same as a piece: what sleeps at its beginning is no more than sleep sets make of it.
    fn into_piece(mut self) -> Reduction {
        (self.piece, self.tree.piece) = (true, true);
        self
    }

    /// Something is enabled in a state that has been seen, asleep or not.
    fn is_enabled(&self, at: usize) -> bool {
        self.tree.node(at).pending.iter().any(|p| p.choices > 0)
    }

    /// A piece that begins at a node which has been looked at, as if it had not been.
    fn unseen_branch(&self, at: usize) -> Reduction {
        let mut search = self.branch(at).into_piece();
        search.tree = self.tree.unseen_branch(at);
        search
    }

    /// The same with what was seen there.
    fn seen_branch(&self, at: usize) -> Reduction {
        let mut search = self.branch(at).into_piece();
        (search.tree.waiting, search.tree.open) = (0, BTreeSet::new());
        search
    }

    /// Takes what an execution shows that was to be over at `leaf`. True: it was; false: it was over before, or could not go on there. `None`: it was
    /// something else.
    fn look(&mut self, leaf: usize, trace: &Trace, canon: &Canon) -> Option<bool> {
        let steps = self.tree.node(leaf).depth;
        if trace.end == End::MISMATCH || trace.steps.len() > steps {
            return None;
        }
        let over = trace.steps.len() == steps && trace.end == End::DEPTH;
        // A step that ends its execution is known by what it was expected to do.
        if trace.steps.len() < steps {
            return Some(false);
        }
        self.see(leaf, trace, canon).then_some(over)
    }

    /// Fills in the states up to `leaf` by an execution that is over there, and does not look for races. False: as [`Reduction::extend`].
    fn see(&mut self, leaf: usize, trace: &Trace, canon: &Canon) -> bool {
        self.route.turn_to(&self.tree, leaf);
        let fresh = self.route.visited(&self.tree).saturating_sub(1);
        let mut run = self.run_along(self.route.nodes().to_vec(), fresh, trace);
        let extended = self.extend(trace, canon, &mut run);
        self.keeps_index_of(run);
        extended
    }

    /// The step sleeps in that state.
    pub(super) fn sleeps(&self, at: usize, step: &Step) -> bool {
        self.tree.node(at).sleep.iter().any(|s| s.thread() == step.thread() && s.value == step.value)
    }

    /// An execution went on with what slept: it does not know what sleeping steps do beyond their operations, and has woken more than they depend on.
    /// It counts as one that was cut off there. If something else is enabled and awake there, that is to be run.
    pub(super) fn look_at_beginning(&mut self, trace: &Trace, run: &Run) {
        let (steps, at) = (run.path.len() - 1, run.path[run.path.len() - 1]);
        self.sleep_blocked += 1;
        self.transitions -= (trace.steps.len() - steps) as u64;
        let last = trace.seen.get(steps).unwrap_or(&trace.last).clone();
        let beginning = Trace {
            steps: trace.steps[..steps].to_vec(),
            seen: trace.seen[..steps].to_vec(),
            last,
            end: End::SLEEP_BLOCKED,
            ..trace.clone()
        };
        self.look_at(&beginning, run);
        if let Some(step) = self.awake(at).into_iter().next().filter(|_| self.tree.node(at).children.is_empty()) {
            self.tree.add_branch(at, step);
        }
    }

    /// The steps that are enabled in a state that has been seen, and do not sleep there.
    fn awake(&self, at: usize) -> Vec<Step> {
        let all = self.tree.node(at).pending.iter().flat_map(|p| (0..p.choices).map(move |value| (p.act, value)));
        let steps = all.map(|(act, value)| Step { act, value, did: Effects::NONE });
        steps.filter(|step| !self.sleeps(at, step)).collect()
    }
}
