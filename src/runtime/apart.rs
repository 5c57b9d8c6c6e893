//! What makes states differ (`--states=why`): the pieces that tell each of them apart are kept, and compared when the search is over.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use nix::unistd::Pid;
use vsrun_model::arena::Arena;
use vsrun_model::states::{kind, Mixer, Piece, Purpose};

use crate::binary::{Modules, SymbolCache};
use crate::finding::{Apart, Differing, Nearest, Without};
use crate::words::names::{object_name, thread_name};

/// Most pieces that are kept of all states: 256 MiB.
const MOST: usize = 1 << 24;
/// Most things of which it is told what would be without them.
const MOST_THINGS: usize = 10;
/// Most words that are told of two states.
const MOST_WORDS: usize = 8;
/// Most pairs of states that are compared.
const MOST_PAIRS: usize = 20_000;

/// A state that was met.
struct State {
    execution: u64,
    transitions: u64,
    /// Ascending; those that are the same in all states are left out at the end.
    pieces: Vec<Piece>,
}

/// States, as executions meet them.
#[derive(Default)]
pub(super) struct States {
    all: Vec<State>,
    met: HashSet<[u64; 2]>,
    kept: usize,
    more: bool,
    executions: u64,
    /// What pieces that are no memory are called.
    names: BTreeMap<u64, String>,
    /// Stacks of threads: first and one past the last byte, and what they are called.
    stacks: BTreeMap<u64, (u64, String)>,
    /// Where the variables are.
    places: Option<Modules>,
}

impl States {
    /// An execution has come to these.
    pub fn add(&mut self, arena: &Arena, root: Pid) {
        self.executions += 1;
        if self.more {
            return;
        }
        self.name(arena, root);
        for (transitions, pieces) in arena.pieces.states() {
            let told = arena.states.get(transitions as usize).filter(|state| state.is_told());
            let Some(state) = told else { continue };
            if !self.met.insert(state.digest) {
                continue;
            }
            if self.kept + pieces.len() > MOST {
                self.more = true;
                return;
            }
            self.kept += pieces.len();
            let mut pieces = pieces.to_vec();
            pieces.sort_unstable();
            self.all.push(State { execution: self.executions, transitions, pieces });
        }
        self.more |= arena.pieces.is_full();
    }

    fn name(&mut self, arena: &Arena, root: Pid) {
        let world = &arena.world;
        let places = self
            .places
            .get_or_insert_with(|| Modules::of_process(root.as_raw(), &mut SymbolCache::new()).unwrap_or_default());
        for id in 0..world.objects.as_slice().len() as u32 {
            let name = || format!("object {}", object_name(world, id, &|key| places.variable_name(key.addr)));
            self.names.entry(world.piece_of_object(id)).or_insert_with(name);
        }
        for t in 0..world.threads.as_slice().len() as u32 {
            let start = world.threads[t].fiber.start;
            let function = places.locate(start).function.filter(|_| start != 0);
            let name = match function {
                Some(function) => format!("{function} ({})", thread_name(world, t)),
                None => thread_name(world, t),
            };
            self.names.entry(kind::THREAD | u64::from(t)).or_insert_with(|| format!("thread {name} in the model"));
            self.names.entry(kind::REGISTERS | u64::from(t)).or_insert_with(|| format!("registers of {name}"));
            let [low, high] = world.threads[t].fiber.stack;
            if low < high {
                self.stacks.insert(low, (high, format!("stack of {name}")));
            }
        }
    }

    /// What a piece is a part of.
    fn thing(&self, at: u64) -> String {
        if let Some(name) = self.names.get(&at) {
            return name.clone();
        }
        match at & kind::MASK {
            kind::KERNEL => return "mappings, descriptors, signals".into(),
            kind::MODEL => return "the process in the model".into(),
            kind::POOL => return "what is in pipes and sockets".into(),
            kind::DESCRIPTOR => return format!("descriptor {}", at & !kind::MASK),
            kind::USES => return "who has used which files".into(),
            kind::OBJECT => return "an object that is gone".into(),
            _ => {}
        }
        if let Some((_, (_, name))) = self.stacks.range(..=at).next_back().filter(|(_, (end, _))| at < *end) {
            return name.clone();
        }
        let Some(places) = &self.places else { return "memory".into() };
        match places.object_name(at) {
            // The variable it is in.
            Some(name) => name.split_once('+').map_or(name.clone(), |(variable, _)| variable.to_string()),
            None => match places.region(at).as_str() {
                "[stack]" => "stack of the first thread".into(),
                "[heap]" | NOT_MAPPED => "memory that was allocated".into(),
                region => format!("memory of {region} without a name"),
            },
        }
    }

    /// A word, or what else a piece is.
    fn word(&self, at: u64) -> String {
        if at & kind::MASK >= kind::STATE {
            return self.thing(at);
        }
        let variable = self.places.as_ref().and_then(|places| places.variable_name(at));
        variable.unwrap_or_else(|| format!("{} at {at:#x}", self.thing(at)))
    }

    /// What makes them differ.
    pub fn compare(&mut self) -> Apart {
        self.leave_out_what_is_the_same();
        let mut numbers: HashMap<String, usize> = HashMap::new();
        let mut thing_of: HashMap<u64, usize> = HashMap::new();
        for piece in self.all.iter().flat_map(|state| &state.pieces) {
            thing_of.entry(piece[0]).or_insert_with(|| {
                let next = numbers.len();
                *numbers.entry(self.thing(piece[0])).or_insert(next)
            });
        }
        // A state is the sum of the hashes of its things, each of which is that of its pieces.
        let of_things = |state: &State| {
            let mut sums: BTreeMap<usize, u64> = BTreeMap::new();
            for piece in &state.pieces {
                let sum = sums.entry(thing_of[&piece[0]]).or_default();
                *sum = sum.wrapping_add(Mixer::of(Purpose::ANY, piece)[0]);
            }
            sums
        };
        let sums: Vec<BTreeMap<usize, u64>> = self.all.iter().map(of_things).collect();
        let whole = |sums: &BTreeMap<usize, u64>| sums.values().fold(0, |all: u64, sum| all.wrapping_add(*sum));
        let rest = |thing: usize, sums: &BTreeMap<usize, u64>| {
            whole(sums).wrapping_sub(sums.get(&thing).copied().unwrap_or_default())
        };
        let n = self.all.len() as u64;
        let mut without: Vec<(u64, &String, usize)> = numbers
            .iter()
            .map(|(what, &thing)| {
                let left: HashSet<u64> = sums.iter().map(|sums| rest(thing, sums)).collect();
                (left.len() as u64, what, thing)
            })
            .filter(|(states, ..)| *states < n)
            .collect();
        without.sort();
        let mut pairs = BTreeSet::new();
        for &(.., thing) in &without {
            // In an order that is the same each time.
            let mut alike: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
            sums.iter().enumerate().for_each(|(i, sums)| alike.entry(rest(thing, sums)).or_default().push(i));
            for group in alike.values() {
                let near =
                    group.iter().enumerate().flat_map(|(n, &a)| group[n + 1..].iter().take(16).map(move |&b| (a, b)));
                pairs.extend(near.take(MOST_PAIRS.saturating_sub(pairs.len())));
            }
        }
        if pairs.is_empty() {
            // More than one thing is different in each pair.
            let all = (0..self.all.len()).flat_map(|a| (a + 1..self.all.len()).map(move |b| (a, b)));
            pairs.extend(all.take(MOST_PAIRS));
        }
        // Of those that are as near, two that lie near each other.
        let far = |near: &Nearest| (near.at[1].0 - near.at[0].0, near.at[1].1.abs_diff(near.at[0].1));
        let key = |near: &Nearest| (near.others, near.bytes, far(near), near.at);
        let nearest = pairs.into_iter().map(|pair| self.differ(pair)).min_by_key(key);
        let told = without.iter().take(MOST_THINGS);
        let without = told.map(|&(states, what, _)| Without { what: what.clone(), states }).collect();
        Apart { states: n, more: self.more, without, nearest }
    }

    /// Most of what a program has written is.
    fn leave_out_what_is_the_same(&mut self) {
        let Some((first, others)) = self.all.split_first() else { return };
        let mut same: HashSet<Piece> = first.pieces.iter().copied().collect();
        for state in others {
            let own: HashSet<Piece> = state.pieces.iter().copied().collect();
            same.retain(|piece| own.contains(piece));
        }
        self.all.iter_mut().for_each(|state| state.pieces.retain(|piece| !same.contains(piece)));
    }

    /// A word from the first byte on that differs.
    fn differing(&self, at: u64, is: Option<[Option<u64>; 2]>) -> Differing {
        let Some([a, b]) = is else { return Differing { what: self.word(at), is: None } };
        let apart = a.zip(b).map_or(a.or(b).unwrap_or_default(), |(a, b)| a ^ b);
        let before = if apart == 0 { 0 } else { apart.trailing_zeros() / 8 };
        let is = [a, b].map(|word| word.map(|word| word >> (8 * before)));
        Differing { what: self.word(at + u64::from(before)), is: Some(is) }
    }

    /// What two of them differ in. Of a word that is as it was at the first choice there is no piece.
    fn differ(&self, (a, b): (usize, usize)) -> Nearest {
        let [a, b] = [&self.all[a], &self.all[b]];
        let mut both: BTreeMap<u64, [Option<u64>; 2]> = BTreeMap::new();
        a.pieces.iter().for_each(|piece| both.entry(piece[0]).or_default()[0] = Some(piece[1]));
        b.pieces.iter().for_each(|piece| both.entry(piece[0]).or_default()[1] = Some(piece[1]));
        both.retain(|_, [a, b]| a != b);
        let (mut bytes, mut others) = (0, 0);
        let mut words = Vec::new();
        for (&at, &[a, b]) in &both {
            let is_memory = at & kind::MASK < kind::STATE;
            let differ = |a: u64, b: u64| (a ^ b).to_le_bytes().iter().filter(|&&byte| byte != 0).count() as u64;
            match is_memory {
                // At least, where one is what it was at the first choice.
                true => bytes += a.zip(b).map_or(1, |(a, b)| differ(a, b)),
                false => others += 1,
            }
            if words.len() < MOST_WORDS {
                words.push((at, is_memory.then_some([a, b])));
            }
        }
        let left_out = (both.len() - words.len()) as u64;
        let words = words.into_iter().map(|(at, is)| self.differing(at, is)).collect();
        let at = [a, b].map(|state| (state.execution, state.transitions));
        Nearest { at, bytes, others, words, left_out }
    }
}

const NOT_MAPPED: &str = "not mapped";
